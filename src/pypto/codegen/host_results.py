"""What an orchestration returns that is none of its parameters: how the host gets hold of it.

On a device outputs are parameters, so emitted code returns nothing. Users write functions that make what they return.
For the host such a tensor becomes one more parameter, which the host allocates before the run.

Before::

    def main(x, n):
        with pl.scope():
            y = pl.tensor.create([16, 64], dtype=pl.FP32)
            y1 = self.add_one(x, y)
            return y1, n + 1

After::

    def main(x, n, y_made: pl.Out):
        with pl.scope():
            y = y_made
            y1 = self.add_one(x, y)
            self.take_results(y1, n + 1, ticket)
            return y1, n + 1

The task in front of the return is there if a result is not one parameter for certain: a number, a part of a tensor, one
of two tensors, one that a loop makes. The host runs it: it sees where each result lies, and copies what the runtime has
allocated. ``ticket``, a parameter too, says for which of the runs that may go on at once.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..analysis.buffer_names import BufferNames
from ..analysis.callees import callees_of, returned_params
from ..analysis.constants import constant_int
from ..ir.dtype import DataType
from ..ir.enums import ArgDirection, FunctionType, ParamDirection
from ..ir.expr import Call, Expr, GlobalVar, Var
from ..ir.mutator import IRMutator
from ..ir.node import FrozenList
from ..ir.program import Function, Program
from ..ir.stmt import AssignStmt, EvalStmt, ForStmt, ReturnStmt, RuntimeScopeStmt, SeqStmts, Stmt, WhileStmt
from ..ir.substitution import substitute
from ..ir.traversal import walk
from ..ir.tree import walk_stmts
from ..ir.type import ScalarType, TensorType
from ..ops.transfer import layout_of
from .host_entry import replaced

_TAKE = "take_results"


class Results(msgspec.Struct, frozen=True):
    """``made``: for each parameter that was added the ``tensor.create`` that says what it is, with a shape in terms of
    the parameters; ``returned``: for each result the parameter that it is. ``taker``: the kernel that is given all
    results instead, if there is one. ``missing``: why results can't be had at all."""

    made: list[Call] = []
    returned: list[int | None] = []
    taker: Function | None = None
    missing: str = ""


class _NoResults(Exception):
    pass


def with_results(program: Program, name: str) -> tuple[Program, Results]:
    """The program whose function ``name`` hands over what it returns."""
    function = program.get_function(name)
    if function is None or function.func_type is not FunctionType.Orchestration:
        return program, Results()
    try:
        return _handed_over(program, function)
    except _NoResults as reason:
        return program, Results(missing=str(reason))


def _handed_over(program: Program, function: Function) -> tuple[Program, Results]:
    returned = list(returned_params(function, program) or ())
    if None not in returned:
        return program, Results([], returned)
    _check_types(function)
    function, made = _with_parameters(function, callees_of(program).names(function))
    program = replaced(program, function)
    returned = list(returned_params(function, program) or ())
    if None not in returned:
        return program, Results(made, returned)
    names = callees_of(program).names(function)
    _check_order(function, names)
    taker = _taker(program, function)
    ticket = Var("ticket", ScalarType(DataType.INT64), function.span)
    function = function.replace(
        params=FrozenList([*function.params, ticket]),
        param_directions=FrozenList([*function.param_directions, ParamDirection.In]),
        body=_Take(taker.name, ticket).visit_stmt(function.body),
    )
    program = program.with_functions([*replaced(program, function).functions.values(), taker])
    return program, Results(made, returned, taker)


def _returned_values(function: Function) -> list[Any]:
    return [value for stmt in walk_stmts(function.body) if type(stmt) is ReturnStmt for value in stmt.value]


def _check_types(function: Function) -> None:
    for value in _returned_values(function):
        kind = value.type
        if not isinstance(kind, (ScalarType, TensorType)) or kind.dtype in (DataType.TASK_ID, DataType.FP4):
            raise _NoResults(f"it returns a value of type {kind}, which only the interpreter hands over")


# --- tensors that the host allocates ----------------------------------------------------------------------------------


def _with_parameters(function: Function, names: BufferNames) -> tuple[Function, list[Call]]:
    """The function with a parameter for each tensor that it may return and that is made once."""
    wanted = {buffer for value in _returned_values(function) for buffer in names.candidates(value)}
    finder = _Once(function)
    finder.visit(function.body)
    params, made = [], []
    instead: dict[Any, Stmt] = {}
    for stmt in finder.creates:
        shape = finder.shape(stmt.value) if stmt.var in wanted else None
        if shape is not None:
            param = Var(f"{stmt.var.name_hint}_made", stmt.var.type, stmt.span)
            params.append(param)
            made.append(stmt.value.replace(args=FrozenList([stmt.value.args[0].replace(elements=FrozenList(shape))])))
            instead[stmt] = AssignStmt(stmt.var, param, stmt.span)
    if not params:
        return function, []
    return (
        function.replace(
            params=FrozenList([*function.params, *params]),
            param_directions=FrozenList([*function.param_directions, *[ParamDirection.Out] * len(params)]),
            body=_Instead(instead).visit_stmt(function.body),
        ),
        made,
    )


class _Once:
    """The tensors that a function makes at most once, and its numbers in terms of its parameters."""

    def __init__(self, function: Function) -> None:
        self.creates: list[Any] = []
        self._numbers: list[tuple[Var, Expr]] = []
        self._known = {p for p in function.params if isinstance(p.type, ScalarType)}
        for param in function.params:
            if isinstance(param.type, TensorType):
                self._known.update(e for e in param.type.shape if type(e) is Var)

    def visit(self, stmt: Any) -> None:
        cls = type(stmt)
        if cls is SeqStmts:
            for inner in stmt.stmts:
                self.visit(inner)
        elif cls is AssignStmt:
            if type(stmt.value) is Call and stmt.value.op.name == "tensor.create":
                if layout_of(stmt.var.type).name == "ND":
                    self.creates.append(stmt)
            elif isinstance(stmt.var.type, ScalarType):
                self._numbers.append((stmt.var, substitute(_extent(stmt.value), self._numbers)))
        elif cls not in (ForStmt, WhileStmt):
            for field in ("body", "then_body", "else_body"):
                inner = getattr(stmt, field, None)
                if inner is not None:
                    self.visit(inner)

    def shape(self, create: Call) -> list[Expr] | None:
        """The shape of a new tensor; None if it depends on more than the parameters."""
        shape = [substitute(e, self._numbers) for e in create.args[0].elements]  # type: ignore[attr-defined]
        leaves = [node for e in shape for node in walk(e)]
        unknown = any(type(n) is Call or (isinstance(n, Var) and n not in self._known) for n in leaves)
        return None if unknown else shape


def _extent(value: Any) -> Expr:
    """``tensor.dim`` as the extent that the type names."""
    if type(value) is Call and value.op.name == "tensor.dim":
        axis = constant_int(value.args[1])
        return value.args[0].type.shape[axis]  # type: ignore[attr-defined, no-any-return]
    return value  # type: ignore[no-any-return]


class _Instead(IRMutator):
    """Puts statements in the place of others."""

    def __init__(self, instead: dict[Any, Stmt]) -> None:
        self._instead = instead

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        return self._instead.get(op, op)


# --- results that a task takes ----------------------------------------------------------------------------------------


def _check_order(function: Function, names: BufferNames) -> None:
    """What the runtime allocates is copied behind the last writer, so the runtime has to know the writers."""
    params = set(function.params)
    inside = [v for v in _returned_values(function) if not params.issuperset(names.candidates(v))]
    if not inside:
        return
    for stmt in walk_stmts(function.body):
        value = stmt.value if type(stmt) is AssignStmt else getattr(stmt, "expr", None)
        if type(stmt) is RuntimeScopeStmt and stmt.manual:
            raise _NoResults("it returns a tensor that it makes, and orders tasks in a MANUAL scope")
        if type(value) is Call and value.op.name == "tensor.create" and value.kwargs.get("manual_dep"):
            raise _NoResults("it returns a tensor that it makes, and makes tensors with manual_dep")
        if ArgDirection.NoDep in getattr(value, "arg_directions", ()):
            raise _NoResults("it returns a tensor that it makes, and hides writers by no_dep")


class _Take(IRMutator):
    """A launch of the taker in front of each return."""

    def __init__(self, taker: str, ticket: Var) -> None:
        self._op = GlobalVar(taker)
        self._ticket = ticket

    def visit_return_stmt(self, op: ReturnStmt) -> Stmt:
        args = [*op.value, self._ticket]
        directions = [ArgDirection.Input if isinstance(e.type, TensorType) else ArgDirection.Scalar for e in args]
        launch = Call(self._op, args, {}, {"arg_directions": directions}, op.span)
        return SeqStmts([EvalStmt(launch, op.span), op], op.span)


def _taker(program: Program, function: Function) -> Function:
    """The kernel. Its body is the host's."""
    name = _TAKE
    while program.get_function(name) is not None:
        name += "_"
    kinds = {tuple(v.type for v in stmt.value) for stmt in walk_stmts(function.body) if type(stmt) is ReturnStmt}
    if len({tuple(_carried(kind) for kind in types) for types in kinds}) != 1:
        raise _NoResults("its return statements give values of different kinds")
    params = [Var(f"result_{i}", kind, function.span) for i, kind in enumerate(kinds.pop())]
    params.append(Var("ticket", ScalarType(DataType.INT64), function.span))
    return Function(name, params, [], SeqStmts([], function.span), function.span, FunctionType.AIV)


def _carried(kind: Any) -> tuple[bool, DataType]:
    return isinstance(kind, TensorType), kind.dtype


__all__ = ["Results", "with_results"]
