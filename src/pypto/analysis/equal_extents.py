"""Whether two extents in one function have the same value."""

from __future__ import annotations

from typing import Any

from ..arith.prove import prove_eq
from ..ir.expr import Expr, Var
from ..ir.program import Function
from ..ir.stmt import AssignStmt, Stmt
from ..ir.substitution import substitute_expr
from ..ir.traversal import walk
from ..ir.tree import stmt_children
from ..ir.type import ScalarType, extent_equal

_MOST_ROUNDS = 8  # of writing out variables: chains of scalars longer than that are not followed


class EqualExtents:
    """Compares extents: constants and identical expressions first, then by proof, at last with scalars written out.

    A scalar that is assigned once stands for its value, as far as the variables in that are assigned at most once, too.
    """

    def __init__(self, function: Function) -> None:
        self._function = function
        self._values: dict[Any, Expr] | None = None  # made when a proof needs it

    def holds(self, a: Any, b: Any) -> bool | None:
        """True or False where it is known, else None."""
        if a is b or extent_equal(a, b):
            return True
        answer = prove_eq(a, b)
        if answer is not None:
            return answer
        x, y = self._written_out(a), self._written_out(b)
        if x is a and y is b:
            return None
        return True if extent_equal(x, y) else prove_eq(x, y)

    def _written_out(self, e: Any) -> Any:
        if self._values is None:
            self._values = _single_values(self._function)
        for _ in range(_MOST_ROUNDS):
            found = {node: self._values[node] for node in walk(e) if isinstance(node, Var) and node in self._values}
            if not found:
                break
            e = substitute_expr(e, found)
        return e


def _single_values(function: Function) -> dict[Any, Expr]:
    assigned: dict[Any, int] = {}
    values: dict[Any, Expr] = {}
    stack: list[Stmt] = [function.body]
    while stack:
        stmt = stack.pop()
        if type(stmt) is AssignStmt:
            assigned[stmt.var] = assigned.get(stmt.var, 0) + 1
            if isinstance(stmt.var.type, ScalarType) and stmt.var.type.dtype.is_int_:
                values[stmt.var] = stmt.value
        else:
            stack += stmt_children(stmt)
    changing = {var for var, count in assigned.items() if count > 1}
    return {
        var: value
        for var, value in values.items()
        if var not in changing and not any(node in changing for node in walk(value) if isinstance(node, Var))
    }


__all__ = ["EqualExtents"]
