"""Kernels as tasks of the host: what they return that is none of their parameters, and tensor math outside of kernels.

A task gives nothing back, so what it computes has to be a parameter. Programs behind the passes may still hold kernels
that return tensors of their own or numbers, and orchestrations that compute with tensors.

Before::

    def total(x) -> tuple[pl.Tensor[[16, 1]], pl.Scalar]:            # a kernel
        s = pl.tensor.row_sum(x)
        return s, pl.tensor.read(s, [0, 0])
    def main(x):
        s, first = self.total(x)
        e = pl.tensor.exp(s)
        return e, first

After::

    def total(x, s_out: pl.Out, first_out: pl.Out):
        s = pl.tensor.row_sum(x)
        pl.tensor.assemble(s_out, s, [0, 0])
        pl.tensor.write(first_out, [0], pl.tensor.read(s, [0, 0]))
        return s_out, ...
    def main(x):
        s_out, first_out = pl.tensor.create([16, 1]), pl.tensor.create([1])
        s, _ = self.total(x, s_out, first_out)
        first = pl.tensor.read(first_out, [0])
        e_out = pl.tensor.create([16, 1])
        e = self.main_math(s, e_out)                                  # a kernel that is made of the exp
        return e, first

A result that may share memory with a parameter stays as it is: a copy would not be the same tensor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..analysis.buffer_names import BufferNames
from ..analysis.callees import callees_of
from ..analysis.constants import constant_int
from ..analysis.made_inside import bodies_handing_out_buffers
from ..ir.call_types import named_results, result_type
from ..ir.dtype import DataType
from ..ir.enums import ArgDirection, ArgEffect, FunctionType, ParamDirection
from ..ir.expr import Call, Expr, GlobalVar, MakeTuple, Submit, TupleGetItemExpr, Var, index_const
from ..ir.mutator import IRMutator
from ..ir.node import FrozenDict, FrozenList
from ..ir.program import Function, Program
from ..ir.span import Span
from ..ir.stmt import AssignStmt, EvalStmt, ForStmt, ReturnStmt, RuntimeScopeStmt, SeqStmts, Stmt
from ..ir.substitution import substitute
from ..ir.traversal import walk
from ..ir.tree import free_vars, get_last_yield_stmt, read_counts, walk_stmts
from ..ir.type import ScalarType, TensorType, TupleType
from ..ops.definition import Alias
from ..ops.registry import REGISTRY, create_op_call
from ..ops.transfer import layout_of
from .errors import CodegenError
from .host_carries import Turns
from .host_entry import with_direct_returns
from .orch.tensors import PRINTED_OPS

_KERNELS = (FunctionType.AIC, FunctionType.AIV)


def with_tasks(program: Program, name: str) -> Program:
    """The program whose orchestration ``name`` launches kernels with parameters alone."""
    program = _with_outputs(_with_math(program, name))
    _check_results(program, name)
    return program.with_functions([_without_short_scopes(f, program) for f in program.functions.values()])


# --- tensor math ------------------------------------------------------------------------------------------------------


def _with_math(program: Program, name: str) -> Program:
    function = program.get_function(name)
    if function is None or function.func_type is not FunctionType.Orchestration:
        return program
    outliner = _Outliner(program, function)
    body = outliner.visit_stmt(function.body)
    if body is function.body:
        return program
    functions = [function.replace(body=body) if f is function else f for f in program.functions.values()]
    return program.with_functions([*functions, *outliner.made])


class _Outliner(IRMutator):
    """Makes a kernel of each run of statements that compute with tensors."""

    def __init__(self, program: Program, function: Function) -> None:
        self.made: list[Function] = []
        self._program = program
        self._function = function
        self._names: BufferNames = callees_of(program).names(function)
        self._reads = read_counts(function.body)

    def visit_stmt(self, stmt: Stmt) -> Stmt:
        if type(stmt) is SeqStmts:
            return self._sequence(stmt)
        if self._is_math(stmt):
            return self._sequence(SeqStmts([stmt], stmt.span))
        return super().visit_stmt(stmt)

    def _sequence(self, seq: SeqStmts) -> Stmt:
        found: list[Stmt] = []
        run: list[Any] = []
        for stmt in seq.stmts:
            if self._is_math(stmt):
                run.append(stmt)
            elif run and _is_view(stmt) and _defined(run).isdisjoint(_read(stmt)):
                found.append(stmt)  # it looks at no element, so it may as well stand in front
            else:
                found += self._kernel(run)
                run = []
                found.append(self.visit_stmt(stmt))
        found += self._kernel(run)
        same = len(found) == len(seq.stmts) and all(a is b for a, b in zip(found, seq.stmts, strict=True))
        return seq if same else SeqStmts(found, seq.span)

    def _is_math(self, stmt: Any) -> bool:
        call = stmt.value if type(stmt) is AssignStmt else stmt.expr if type(stmt) is EvalStmt else None
        if type(call) is not Call or not call.op.name.startswith("tensor."):
            return False
        if call.op.name == "tensor.assemble":
            target, part = (self._names.viewed(e) if isinstance(e, Var) else None for e in call.args[:2])
            return bool(call.kwargs.get("atomic")) or (target is not None and part is not None and target is not part)
        definition = REGISTRY.get(call.op.name)
        if definition is None or definition.alias is Alias.IS or call.op.name in PRINTED_OPS:
            return False
        return isinstance(call.type, TensorType)

    def _kernel(self, run: Sequence[Any]) -> list[Stmt]:
        """The launch of a kernel that does what these statements do."""
        if not run:
            return []
        body = SeqStmts(run, run[0].span)
        inside = read_counts(body)
        results = [
            stmt.var
            for stmt in run
            if type(stmt) is AssignStmt and self._reads.get(stmt.var, 0) > inside.get(stmt.var, 0)
        ]
        args = _arguments(body)
        written = _written(run)
        params = [Var(v.name_hint, v.type, v.span) for v in args]
        body = substitute(
            SeqStmts([*run, ReturnStmt(results, body.span)], body.span), list(zip(args, params, strict=True))
        )
        directions = [ParamDirection.InOut if v in written else ParamDirection.In for v in args]
        name = self._free_name()
        types = [v.type for v in results]
        both = list(zip(params, directions, strict=True))
        self.made.append(with_direct_returns(Function(name, both, types, body, body.span, FunctionType.AIV)))
        passed = [
            ArgDirection.Scalar
            if not isinstance(v.type, TensorType)
            else ArgDirection.InOut
            if v in written
            else ArgDirection.Input
            for v in args
        ]
        call = Call(GlobalVar(name), args, {}, {"arg_directions": passed}, *result_type(types), body.span)
        return named_results(call, results, lambda: "ret")

    def _free_name(self) -> str:
        number = len(self.made)
        while self._program.get_function(f"{self._function.name}_math_{number}") is not None:
            number += 1000
        return f"{self._function.name}_math_{number}"


def _is_view(stmt: Any) -> bool:
    call = stmt.value if type(stmt) is AssignStmt else None
    if type(call) is not Call:
        return False
    definition = REGISTRY.get(call.op.name)
    return definition is not None and definition.alias is Alias.VIEW


def _defined(run: Iterable[Any]) -> set[Var]:
    return {stmt.var for stmt in run if type(stmt) is AssignStmt}


def _read(stmt: Any) -> list[Var]:
    return [node for node in walk(stmt.value) if isinstance(node, Var)]


def _arguments(body: Stmt) -> list[Any]:
    """What a kernel of these statements is given. It knows the extents of its tensors."""
    free = free_vars(body)
    extents = {e for v in free if isinstance(v.type, TensorType) for e in v.type.shape if isinstance(e, Var)}
    return [v for v in free if v not in extents]


def _written(run: Iterable[Any]) -> set[Var]:
    found = set()
    for stmt in run:
        call: Any = stmt.value if type(stmt) is AssignStmt else stmt.expr
        definition = REGISTRY[call.op.name]
        for index in definition.effects:
            if index < len(call.args) and definition.effect(index, call.kwargs) is not ArgEffect.Read:
                found.add(call.args[index])
    return found


# --- results of kernels -----------------------------------------------------------------------------------------------


def _with_outputs(program: Program) -> Program:
    """Results that kernels make become parameters."""
    places: dict[str, list[int]] = {}
    changed: dict[str, Function] = {}
    wrapped = {
        node.op.name
        for f in program.functions.values()
        if f.func_type is not FunctionType.Orchestration
        for node in walk(f.body)
        if type(node) in (Call, Submit) and type(node.op) is GlobalVar
    }
    callees = callees_of(program)
    for function in program.functions.values():
        if function.func_type in _KERNELS and function.name not in wrapped:
            made = _made_results(function, callees.names(function), callees.returned_params(function) or ())
            if made:
                places[function.name] = made
                changed[function.name] = _handing_out(function, made)
    if not places:
        return program
    functions = [changed.get(f.name, f) for f in program.functions.values()]
    passing = {f: _Passing(changed, places) for f in functions if f.func_type is FunctionType.Orchestration}
    program = program.with_functions(
        [f.replace(body=passing[f].visit_stmt(f.body)) if f in passing else f for f in functions]
    )
    fresh: frozenset[Var] = frozenset().union(*(p.made for p in passing.values()))
    callees = callees_of(program)
    return program.with_functions(
        [
            f.replace(body=Turns(callees.names(f), fresh).visit_stmt(f.body))
            if f.func_type is FunctionType.Orchestration
            else f
            for f in program.functions.values()
        ]
    )


def _made_results(function: Function, names: BufferNames, returned: Sequence[int | None]) -> list[int]:
    """The positions of results that can become parameters."""
    returns = [stmt for stmt in walk_stmts(function.body) if type(stmt) is ReturnStmt]
    if not returns or any(len(stmt.value) != len(returned) for stmt in returns):
        return []
    found = []
    for i, index in enumerate(returned):
        values = [stmt.value[i] for stmt in returns]
        if index is not None:
            continue
        if all(isinstance(v.type, ScalarType) and v.type.dtype is not DataType.TASK_ID for v in values) or all(
            _is_own(v, stmt, function, names) for v, stmt in zip(values, returns, strict=True)
        ):
            found.append(i)
    return found


def _is_own(value: Any, stmt: ReturnStmt, function: Function, names: BufferNames) -> bool:
    """Whether a result is a tensor that no parameter and no other result shares memory with."""
    kind = value.type
    if not isinstance(kind, TensorType) or layout_of(kind).name != "ND":
        return False
    if kind.tensor_view is not None and kind.tensor_view.valid_shape:
        return False
    mine = set(names.candidates(_behind_loops(value, function)))
    others = [v for v in stmt.value if v is not value and isinstance(v.type, TensorType)]
    shared = {buffer for v in others for buffer in names.candidates(_behind_loops(v, function))}
    return not mine & {*function.params, *shared} and sum(v is value for v in stmt.value) == 1


def _behind_loops(value: Any, function: Function) -> Any:
    """What a value is: behind a loop that runs at least once what the last iteration has yielded."""
    yielded: dict[Any, Any] = {}
    for stmt in walk_stmts(function.body):
        if type(stmt) is ForStmt:
            start, stop, step = (constant_int(e) for e in (stmt.start, stmt.stop, stmt.step))
            last = get_last_yield_stmt(stmt.body)
            if start is not None and stop is not None and step and (stop - start) * step > 0 and last is not None:
                yielded.update(zip(stmt.return_vars, last.value, strict=True))
    while value in yielded:
        value = yielded[value]
    return value


def _check_results(program: Program, name: str) -> None:
    """Refuse a kernel whose result, if anybody needs it, may be a parameter or another tensor."""
    function = program.get_function(name)
    if function is None:
        return
    callees = callees_of(program)
    reads = read_counts(function.body)
    results: dict[Any, tuple[Any, Function]] = {}
    for stmt in walk_stmts(function.body):
        if type(stmt) is not AssignStmt:
            continue
        var, value = stmt.var, stmt.value
        callee = callees.of(value) if type(value) in (Call, Submit) else None
        if callee is not None and callee.func_type in _KERNELS:
            results[var] = value, callee
        whole, index = (value.tuple, value.index) if type(value) is TupleGetItemExpr else (var, 0)
        if whole not in results or not isinstance(var.type, TensorType) or not reads.get(var):
            continue
        call, callee = results[whole]
        returned = callees.returned_params(callee) or ()
        if index < len(returned) and returned[index] is None:
            raise CodegenError(
                f"result {index} of the kernel '{callee.name}' may be one of its parameters, or a part of one, or not",
                call.span,
                hint="return a tensor that the kernel computes, or store into a parameter",
            )


def _held(kind: Any) -> TensorType:
    """The tensor that carries a result."""
    if isinstance(kind, ScalarType):
        return TensorType([index_const(1)], kind.dtype)
    return TensorType(kind.shape, kind.dtype)


def _handing_out(function: Function, places: Sequence[int]) -> Function:
    first = next(stmt for stmt in walk_stmts(function.body) if type(stmt) is ReturnStmt)
    outputs = {i: Var(f"out_{i}", _held(first.value[i].type), first.span) for i in places}
    return function.replace(
        params=FrozenList([*function.params, *outputs.values()]),
        param_directions=FrozenList([*function.param_directions, *[ParamDirection.Out] * len(outputs)]),
        body=_Storing(outputs).visit_stmt(function.body),
    )


class _Storing(IRMutator):
    """Stores results into parameters in front of each return."""

    def __init__(self, outputs: dict[int, Var]) -> None:
        self._outputs = outputs

    def visit_return_stmt(self, op: ReturnStmt) -> Stmt:
        values = list(op.value)
        stores: list[Stmt] = []
        for i, target in self._outputs.items():
            if isinstance(values[i].type, ScalarType):
                at = MakeTuple([index_const(0)])
                stores.append(EvalStmt(create_op_call("tensor.write", [target, at, values[i]], {}, op.span), op.span))
                continue
            at = MakeTuple([index_const(0) for _ in target.type.shape])  # type: ignore[attr-defined]
            store = create_op_call("tensor.assemble", [target, values[i], at], {}, op.span)
            stores.append(AssignStmt(Var(f"{target.name_hint}_stored", store.type, op.span), store, op.span))
            values[i] = target
        return SeqStmts([*stores, ReturnStmt(values, op.span)], op.span)


class _Passing(IRMutator):
    """Makes a tensor for each result, passes it, and reads the numbers behind the launch."""

    def __init__(self, kernels: dict[str, Function], places: dict[str, list[int]]) -> None:
        self._kernels = kernels
        self._places = places
        self.made: set[Var] = set()
        self._numbers: dict[Var, dict[int, Var]] = {}  # what is returned as a tuple -> the tensor of each number

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        value: Any = op.value
        if type(value) is TupleGetItemExpr and value.tuple in self._numbers:
            held = self._numbers[value.tuple].get(value.index)  # type: ignore[index]
            return op if held is None else _reading(op.var, held, op.span)
        return self._launch(op, op.var, value)

    def visit_eval_stmt(self, op: EvalStmt) -> Stmt:
        return self._launch(op, None, op.expr)

    def _launch(self, op: Any, var: Var | None, call: Any) -> Stmt:
        places = self._places.get(call.op.name) if type(call) in (Call, Submit) and type(call.op) is GlobalVar else None
        if places is None:
            return op  # type: ignore[no-any-return]
        kinds = call.type.types if isinstance(call.type, TupleType) else [call.type]
        declared = self._kernels[call.op.name].return_types
        if len(kinds) < len(declared):
            kinds = declared
        held = {i: Var(f"{call.op.name}_{i}", _held(kinds[i]), op.span) for i in places}
        self.made.update(held.values())
        stmts: list[Stmt] = []
        for made in held.values():
            kind: Any = made.type
            create = create_op_call("tensor.create", [MakeTuple(kind.shape)], {"dtype": kind.dtype}, op.span)
            stmts.append(AssignStmt(made, create, op.span))
        directions = [*call.arg_directions, *[ArgDirection.OutputExisting] * len(held)]
        passed = call.replace(
            args=FrozenList([*call.args, *held.values()]),
            attrs=FrozenDict({**call.attrs, "arg_directions": FrozenList(directions)}),
        )
        numbers = {i: made for i, made in held.items() if isinstance(kinds[i], ScalarType)}
        if var is not None and not isinstance(var.type, TupleType) and numbers:
            stmts += [EvalStmt(passed, op.span), _reading(var, numbers[0], op.span)]
        else:
            stmts.append(op.replace(expr=passed) if var is None else op.replace(value=passed))
            if var is not None and numbers:
                self._numbers[var] = numbers
        return SeqStmts(stmts, op.span)


def _reading(var: Var, held: Var, span: Span) -> Stmt:
    read: Expr = create_op_call("tensor.read", [held, MakeTuple([index_const(0)])], {}, span)
    return AssignStmt(var, read, span)


# --- scopes -----------------------------------------------------------------------------------------------------------


def _without_short_scopes(function: Function, program: Program) -> Function:
    """What a body makes and hands out has to live longer than a scope around the body."""
    if function.func_type is not FunctionType.Orchestration:
        return function
    bare = bodies_handing_out_buffers(function, callees_of(program))
    if not bare:
        return function
    return function.replace(body=_Unscoped(bare).visit_stmt(function.body))


class _Unscoped(IRMutator):
    def __init__(self, bare: frozenset[Any]) -> None:
        self._bare = bare

    def _opened(self, op: Any, *fields: str) -> Stmt:
        bodies = {field: self.visit_stmt(getattr(op, field)) for field in fields if getattr(op, field) is not None}
        for field, body in bodies.items():
            if (op, field) in self._bare and type(body) is RuntimeScopeStmt and not body.manual:
                bodies[field] = body.body
        return op.replace(**bodies)  # type: ignore[no-any-return]

    def visit_for_stmt(self, op: Any) -> Stmt:
        return self._opened(op, "body")

    def visit_while_stmt(self, op: Any) -> Stmt:
        return self._opened(op, "body")

    def visit_if_stmt(self, op: Any) -> Stmt:
        return self._opened(op, "then_body", "else_body")


__all__ = ["with_tasks"]
