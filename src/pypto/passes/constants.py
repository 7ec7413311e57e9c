"""Constants in place of variables, in passes that leave arithmetic to Simplify."""

from __future__ import annotations

from typing import Any

from ..ir.expr import ConstFloat, ConstInt, Expr, Neg
from ..ir.mutator import IRMutator


class ConstantMutator(IRMutator):
    """A mutator that may put a constant in place of a variable. A negated constant is a constant, as in its text."""

    def visit_neg(self, op: Neg) -> Expr:
        new: Any = super().visit_neg(op)
        value = new.operand
        if new is op or type(value) not in (ConstInt, ConstFloat):
            return new  # type: ignore[no-any-return]
        return type(value)(-value.value, value.dtype, op.span)  # type: ignore[no-any-return]


__all__ = ["ConstantMutator"]
