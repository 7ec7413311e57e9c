"""Result types of a function in terms that its callers see: its parameters, and the symbols in their types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .expr import Call, ConstInt, Expr, IterArg, MakeTuple, TupleGetItemExpr, Var
from .mutator import IRMutator
from .program import Function
from .stmt import AssignStmt, ReturnStmt
from .substitution import definitions
from .tree import walk
from .type import ShapedType, Type, UnknownType


def inferred_return_types(function: Function) -> list[Type]:
    """Types of the values of the first value-bearing return of a body, when all are known.

    Local scalars in their extents are replaced by what they are computed from. One that is assigned more than once, or
    not by arithmetic on parameters, stays.
    """
    for inner in walk(function.body):
        if type(inner) is ReturnStmt and inner.value:
            types = [v.type for v in inner.value]
            return [] if any(isinstance(t, UnknownType) for t in types) else _visible(function, types)
    return []


def _visible(function: Function, types: Sequence[Type]) -> list[Type]:
    params = set(function.params)
    extents = [e for kind in types if isinstance(kind, ShapedType) for e in (*kind.shape, *kind.valid_extents)]
    if all(e in params for extent in extents for e in walk(extent) if isinstance(e, Var)):
        return list(types)
    resolver = _Resolver(function)
    return [resolver.resolved(kind) for kind in types]


class _IsLocal(Exception):
    """The value of a variable is known inside the function only."""


class _Resolver(IRMutator):
    """Replaces local scalars by what they are computed from."""

    def __init__(self, function: Function) -> None:
        # None: its value is not that of one expression.
        self._assigned: dict[Any, Expr | None] = dict.fromkeys(definitions(function.body))
        params = set(function.params)
        seen = set(params)
        for stmt in walk(function.body):
            if type(stmt) is AssignStmt:
                self._assigned[stmt.var] = None if stmt.var in seen else stmt.value
                seen.add(stmt.var)

    def resolved(self, kind: Type) -> Type:
        try:
            return self._rewrite_type(kind)  # type: ignore[no-any-return]
        except _IsLocal:
            return kind

    def visit_var(self, op: Var) -> Expr:
        if op not in self._assigned:
            return op
        definition = self._assigned[op]
        if definition is None:
            raise _IsLocal
        return self.visit_expr(definition)

    def visit_iter_arg(self, op: IterArg) -> Expr:
        raise _IsLocal

    def visit_tuple_get_item_expr(self, op: TupleGetItemExpr) -> Expr:
        source: Any = self._assigned.get(op.tuple) if isinstance(op.tuple, Var) else op.tuple
        if type(source) is not MakeTuple:
            raise _IsLocal
        return self.visit_expr(source.elements[op.index])

    def visit_call(self, op: Call) -> Expr:
        if op.op.name not in ("tensor.dim", "tile.dim"):
            raise _IsLocal
        source, axis = op.args
        if not isinstance(source.type, ShapedType) or type(axis) is not ConstInt:
            raise _IsLocal
        return self.visit_expr(source.type.shape[axis.value])


__all__ = ["inferred_return_types"]
