"""Entries for the host: whatever function a caller starts is an orchestration there, and launches kernels alone.

* an Opaque function that nothing made an Orchestration function of, since it launches nothing, is one;
* an entry that is a kernel gets an orchestration that launches it once;
* scopes of other levels are part of the function around them, since the host has one level;
* a function of another level that only computes runs as a kernel, and one that launches tasks is put into its caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..analysis.callees import Callees
from ..ir.call_types import named_results, result_type, symbol_bindings
from ..ir.enums import ArgDirection, FunctionType, Level, ParamDirection, Role
from ..ir.expr import Call, GlobalVar, Submit, TupleGetItemExpr, Var
from ..ir.mutator import IRMutator
from ..ir.node import FrozenDict
from ..ir.program import Function, Program
from ..ir.stmt import AssignStmt, EvalStmt, HierarchyScopeStmt, ReturnStmt, RuntimeScopeStmt, SeqStmts, Stmt
from ..ir.substitution import deep_clone
from ..ir.traversal import walk
from ..ir.tree import flatten_to_stmts, walk_stmts
from ..ir.type import TensorType, TupleType
from ..passes.classify_iter_arg_carry import ClassifyIterArgCarry
from ..passes.materialize_runtime_scopes import MaterializeRuntimeScopes

_HOST_SIDE = (FunctionType.Opaque, FunctionType.Orchestration)
_KERNELS = (FunctionType.AIC, FunctionType.AIV)


def with_entry(program: Program, name: str) -> Program:
    """The program whose function ``name`` is an orchestration."""
    function = program.get_function(name)
    if function is None:
        return program
    if function.func_type in _KERNELS:
        program = program.with_functions([f for f in program.functions.values() if f is not function])
        kernel = function.replace(name=_free(program, f"{name}_kernel"))
        program = program.with_functions([*program.functions.values(), kernel, _launcher(name, kernel)])
    elif function.func_type is FunctionType.Opaque:
        program = replaced(program, _orchestration(function))
    program = _flat(program, name)
    function = program.get_function(name)
    assert function is not None
    body = _Unlevelled().visit_stmt(function.body)
    return program if body is function.body else replaced(program, function.replace(body=body))


class _Unlevelled(IRMutator):
    """The host has one level."""

    def visit_hierarchy_scope_stmt(self, op: HierarchyScopeStmt) -> Stmt:
        return self.visit_stmt(op.body)


def with_placement(program: Program) -> Program:
    """The scopes and carries of orchestrations that no pass has seen in this form."""
    return ClassifyIterArgCarry().run(MaterializeRuntimeScopes().run(program))


def _free(program: Program, name: str) -> str:
    while program.get_function(name) is not None:
        name += "_"
    return name


def replaced(program: Program, function: Function) -> Program:
    """The program with another function of the same name."""
    return program.with_functions([function if f.name == function.name else f for f in program.functions.values()])


def _orchestration(function: Function) -> Function:
    return function.replace(func_type=FunctionType.Orchestration, level=Level.CHIP, role=Role.Orchestrator)


_OF_PARAM = {
    ParamDirection.In: ArgDirection.Input,
    ParamDirection.Out: ArgDirection.OutputExisting,
    ParamDirection.InOut: ArgDirection.InOut,
}


def _launcher(name: str, kernel: Function) -> Function:
    """An orchestration that launches a kernel once."""
    copied, pairs = deep_clone(kernel)
    new = dict(pairs)
    params = [new[p] for p in kernel.params]
    span = kernel.span
    directions = [
        _OF_PARAM[d] if isinstance(p.type, TensorType) else ArgDirection.Scalar
        for p, d in zip(kernel.params, kernel.param_directions, strict=True)
    ]
    returns = next((s for s in walk_stmts(copied.body) if type(s) is ReturnStmt), None)
    types = [v.type for v in returns.value] if returns is not None else []
    call = Call(GlobalVar(kernel.name), params, {}, {"arg_directions": directions}, *result_type(types), span)
    results = [Var(f"ret_{i}" if len(types) > 1 else "ret", t, span) for i, t in enumerate(types)]
    stmts = [*named_results(call, results, lambda: "ret"), ReturnStmt(results, span)]
    both = list(zip(params, kernel.param_directions, strict=True))
    return Function(name, both, kernel.return_types, SeqStmts(stmts, span), span, FunctionType.Orchestration)


# --- functions of other levels ----------------------------------------------------------------------------------------


def _calls(function: Function) -> set[str]:
    return {node.op.name for node in walk(function.body) if type(node) in (Call, Submit) and type(node.op) is GlobalVar}


def _flat(program: Program, name: str) -> Program:
    """The program whose function ``name`` calls no other orchestration."""
    host_side = {f.name: f for f in program.functions.values() if f.func_type in _HOST_SIDE and f.name != name}
    if not host_side:
        return program
    leaves = {n: f for n, f in host_side.items() if not _calls(f)}
    if leaves:
        placed = [_as_kernel(f) if f.name in leaves else f for f in program.functions.values()]
        program = program.with_functions(placed)
    others = {n: f for n, f in host_side.items() if n not in leaves}
    function = program.get_function(name)
    assert function is not None
    for _ in others:
        if not _calls(function) & set(others):
            break
        function = function.replace(body=_Inlining(others).visit_stmt(function.body))
    return replaced(program, function)


def _as_kernel(function: Function) -> Function:
    attrs: Any = FrozenDict({k: v for k, v in function.attrs.items() if k != "auto_scope"})
    body = _Unscoped().visit_stmt(function.body)
    placed = function.replace(func_type=FunctionType.AIV, level=None, role=None, attrs=attrs, body=body)
    return with_direct_returns(placed)


class _Unscoped(_Unlevelled):
    def visit_runtime_scope_stmt(self, op: RuntimeScopeStmt) -> Stmt:
        return self.visit_stmt(op.body)


def with_direct_returns(kernel: Function) -> Function:
    """A result that is a parameter is returned under the parameter's name."""
    returned = Callees([kernel]).returned_params(kernel) or ()
    if all(index is None for index in returned):
        return kernel
    return kernel.replace(body=_Direct(kernel, returned).visit_stmt(kernel.body))


class _Direct(IRMutator):
    def __init__(self, kernel: Function, returned: Sequence[int | None]) -> None:
        self._params = kernel.params
        self._returned = returned

    def visit_return_stmt(self, op: ReturnStmt) -> Stmt:
        values = [v if i is None else self._params[i] for v, i in zip(op.value, self._returned, strict=True)]
        return ReturnStmt(values, op.span)


class _Inlining(IRMutator):
    """Puts functions into the place of their calls."""

    def __init__(self, functions: dict[str, Function]) -> None:
        self._functions = functions
        self._results: dict[Any, list[Any]] = {}

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        value: Any = op.value
        if type(value) is TupleGetItemExpr and value.tuple in self._results:
            return op.replace(value=self._results[value.tuple][value.index])  # type: ignore[no-any-return]
        return self._called(op, op.var, value)

    def visit_eval_stmt(self, op: EvalStmt) -> Stmt:
        return self._called(op, None, op.expr)

    def _called(self, op: Any, var: Var | None, call: Any) -> Stmt:
        callee = self._functions.get(call.op.name) if type(call) is Call and type(call.op) is GlobalVar else None
        if callee is None or len(call.args) != len(callee.params):
            return op  # type: ignore[no-any-return]
        pairs: list[tuple[Any, Any]] = list(zip(callee.params, call.args, strict=True))
        pairs += symbol_bindings(callee.params, call.args).items()
        body, _ = deep_clone(callee.body, pairs)
        stmts = statements_of(body)
        values: list[Any] = []
        if stmts and type(stmts[-1]) is ReturnStmt:
            values = list(stmts.pop().value)
        if any(type(s) is ReturnStmt for stmt in stmts for s in walk_stmts(stmt)):
            return op  # type: ignore[no-any-return]
        if var is not None:
            if isinstance(var.type, TupleType):
                self._results[var] = values
            elif values:
                stmts.append(AssignStmt(var, values[0], op.span))
        return SeqStmts(stmts, op.span)


def statements_of(body: Stmt) -> list[Any]:
    """The statements of a body, without an AUTO scope around all of them."""
    found = flatten_to_stmts(body)
    while len(found) == 1 and type(found[0]) is RuntimeScopeStmt and not found[0].manual:
        found = flatten_to_stmts(found[0].body)
    return list(found)


__all__ = ["replaced", "statements_of", "with_direct_returns", "with_entry", "with_placement"]
