"""The function that a scope becomes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...analysis.buffers import READ, WRITE
from ...ir.enums import ParamDirection
from ...ir.expr import BINARY_CLASSES, UNARY_CLASSES, Call, ConstBool, ConstFloat, ConstInt, Expr, Var
from ...ir.mutator import IRMutator
from ...ir.names import base_name, build_name
from ...ir.program import Function
from ...ir.stmt import AssignStmt, EvalStmt, ReturnStmt, Stmt, seq
from ...ir.substitution import substitute
from ...ir.tree import definitions, flatten_to_stmts, walk
from ...ir.type import ArrayType, ScalarType
from ..errors import PassError
from .comments import commented
from .policy import Policy
from .scan import Family, ScopeInfo


class Result:
    """One result: ``var`` in the caller, ``value`` as the body of the scope calls it."""

    __slots__ = ("family", "value", "var")

    def __init__(self, var: Var, value: Var, family: Family | None) -> None:
        self.var = var
        self.value = value
        self.family = family


_DIRECTIONS = {
    0: ParamDirection.In,
    READ: ParamDirection.In,
    WRITE: ParamDirection.Out,
    READ | WRITE: ParamDirection.InOut,
}


class Parameters:
    """The parameters of a scope's function: one for each argument, however many names the body has for it.

    ``replaced``: names in the body -> parameters.
    """

    def __init__(self, info: ScopeInfo, pairs: Sequence[tuple[Var, Any]]) -> None:
        self.args: list[Any] = []
        self.replaced: dict[Var, Var] = {}
        self._first: list[Var] = []
        self._flags: list[int] = []
        position: dict[Any, int] = {}
        for var, arg in pairs:
            flags = info.buffers.accesses.get(var, 0)
            index = position.get(arg)
            if index is None:
                position[arg] = len(self.args)
                param = Var(var.name_hint, var.type, var.span)
                self.args.append(arg)
                self._first.append(var)
                self._flags.append(flags)
                self.replaced[var] = self.replaced[arg] = param
            else:
                self._flags[index] |= flags
                self.replaced[var] = self.replaced[arg]
        self.position = position

    def declared(self) -> list[tuple[Var, ParamDirection]]:
        """The parameters under the names of the body, with directions."""
        return [(var, _DIRECTIONS[flags]) for var, flags in zip(self._first, self._flags, strict=True)]


def make_function(
    name: str,
    policy: Policy,
    info: ScopeInfo,
    parameters: Parameters,
    results: Sequence[Result],
    body: Stmt,
    defined_outside: Sequence[Var],
) -> Function:
    """The function of a scope. ``defined_outside``: what the caller defines in its place."""
    scope = info.scope
    declared = parameters.declared()
    _refuse_arrays(scope, [var for var, _ in declared], "reads")
    _refuse_arrays(scope, [result.value for result in results], "makes")
    if policy.names_stores:
        body = _name_stores(info, body)
    if results:
        body = seq([body, ReturnStmt([result.value for result in results], scope.span)], body.span)
    level, role = policy.place(scope)
    function = Function(
        name,
        declared,
        [result.value.type for result in results],
        body,
        scope.span,
        policy.func_type(scope),
        level,
        role,
        dict(policy.function_attrs(info)),
    )
    replaced: dict[Any, Any] = dict(parameters.replaced)
    for var in defined_outside:
        # Each function has variables of its own.
        replaced.setdefault(var, Var(var.name_hint, var.type, var.span))
    return substitute(function, replaced)


def _refuse_arrays(scope: Stmt, crossing: Iterable[Var], does: str) -> None:
    """An array lives on the core that made it: it is neither argument nor result."""
    for var in crossing:
        if isinstance(var.type, ArrayType):
            name = base_name(var.name_hint)
            raise PassError(
                f"array '{name}' can't leave the function that makes it, and this scope, which becomes a function of "
                f"its own, {does} it",
                scope.span,
                labels=((var.span, f"'{name}' is defined here"),),
                hint="Make and use the array on the same side of the scope; pass single elements instead.",
            )


# --- stores -----------------------------------------------------------------------------------------------------------


def _name_stores(info: ScopeInfo, body: Stmt) -> Stmt:
    """Each store to a tensor from outside gives a new name of it: no store is left that is only a statement."""
    stores = {store.stmt: store.target for store in info.direct_stores if _is_whole(store.stmt, store.call)}
    return _NameStores(stores).visit_stmt(body) if stores else body


def _is_whole(stmt: Any, call: Call) -> bool:
    return (stmt.value if type(stmt) is AssignStmt else getattr(stmt, "expr", None)) is call


class _NameStores(IRMutator):
    def __init__(self, stores: dict[Stmt, Var]) -> None:
        self._stores = stores
        self._next: dict[str, int] = {}

    def visit_eval_stmt(self, op: EvalStmt) -> Stmt:
        target = self._stores.get(op)
        if target is None:
            return op
        return commented(AssignStmt(self._name(target), op.expr, op.span), op.leading_comments)

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        target = self._stores.get(op)
        if target is None or op.value.op.name != "tile.store":  # type: ignore[attr-defined]
            return op
        if op.var is target:
            return op.replace(var=self._name(target))  # type: ignore[no-any-return]
        return seq([op, AssignStmt(self._name(target), op.var, op.span)])

    def _name(self, target: Var) -> Var:
        base = base_name(target.name_hint)
        number = self._next.get(base, -1)
        self._next[base] = number + 1
        return Var(build_name(base, None, "store", None if number < 0 else number), target.type, target.span)


# --- scalars ----------------------------------------------------------------------------------------------------------


def recomputed(info: ScopeInfo, wanted: Sequence[Var]) -> list[AssignStmt]:
    """Statements of the scope that give the wanted scalars, for those that are arithmetic on values from outside."""
    scalars = [var for var in wanted if type(var.type) is ScalarType]
    if not scalars:
        return []
    inside = set(definitions(info.scope.body))
    pure: dict[Var, tuple[AssignStmt, list[Var]]] = {}
    for stmt in flatten_to_stmts(info.scope.body):
        if type(stmt) is not AssignStmt or type(stmt.var.type) is not ScalarType:
            continue
        reads = _arithmetic_on(stmt.value)
        if reads is not None and all(var not in inside or var in pure for var in reads):
            pure[stmt.var] = stmt, [var for var in reads if var in pure]
    needed: set[Var] = set()
    work = [var for var in scalars if var in pure]
    while work:
        var = work.pop()
        if var not in needed:
            needed.add(var)
            work += pure[var][1]
    return [stmt for var, (stmt, _) in pure.items() if var in needed]


def _arithmetic_on(value: Expr) -> list[Any] | None:
    """The variables that an expression of scalar arithmetic reads; None for any other expression."""
    found: list[Any] = []
    for node in walk(value):
        if isinstance(node, Var):
            found.append(node)
        elif type(node) not in _ARITHMETIC and not (type(node) is Call and node.op.name == "tensor.dim"):
            return None
    return found


_ARITHMETIC: frozenset[type] = frozenset((*BINARY_CLASSES, *UNARY_CLASSES, ConstInt, ConstFloat, ConstBool))

__all__ = ["Parameters", "Result", "make_function", "recomputed"]
