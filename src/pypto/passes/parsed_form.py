"""The form in which text is parsed: what rewrites of whole bodies leave as a user would have written it."""

from __future__ import annotations

from typing import Any

from ..ir.expr import ConstFloat, ConstInt, Expr, Neg
from ..ir.mutator import IRMutator
from ..ir.stmt import IfStmt, Stmt
from ..ir.tree import flatten_to_stmts


def without_empty_else(stmt: IfStmt) -> IfStmt:
    """An else branch without statements is none."""
    other = stmt.else_body
    return stmt if other is None or flatten_to_stmts(other) else stmt.replace(else_body=None)


class ParsedForm(IRMutator):
    """A mutator whose result is as its text is parsed: a negated constant is a constant, an empty else branch none."""

    def visit_neg(self, op: Neg) -> Expr:
        new: Any = super().visit_neg(op)
        value: Any = new.operand
        if type(value) is ConstInt:
            new = ConstInt(-value.value, value.dtype, op.span)
        elif type(value) is ConstFloat:
            new = ConstFloat(-value.value, value.dtype, op.span)
        return new  # type: ignore[no-any-return]

    def visit_if_stmt(self, op: IfStmt) -> Stmt:
        new: Any = super().visit_if_stmt(op)
        return without_empty_else(new)


__all__ = ["ParsedForm", "without_empty_else"]
