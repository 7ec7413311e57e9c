"""Comparisons of a variable with a constant: most conditions are of this form, and simple arithmetic decides them.

What the conditions around a place say of one variable is kept as a range with holes. Where nothing else is known of the
variable, that is all that counts, and no analyzer need be asked.
"""

from __future__ import annotations

from typing import Any

from ...arith.bounds import INF, MIRROR
from ...arith.compare import ESTABLISHES
from ...arith.structure import is_integer
from ...ir import expr as x
from ...ir.expr import ConstInt, IterArg, Var

Values = tuple[int, int, frozenset[int]]  # the least and the largest value, and those between that are none
NO_HOLES: frozenset[int] = frozenset()
_FINITE = INF - 1  # constants below count as they are


class Limit:
    """A comparison of a variable with a constant: ``var <= value``, ``var >= value``, ``==`` or ``!=``."""

    __slots__ = ("op", "value", "var")

    def __init__(self, var: Any, op: type, value: int) -> None:
        self.var = var
        self.op = op  # x.Le, x.Ge, x.Eq or x.Ne
        self.value = value

    def negated(self) -> Limit:
        """The opposite."""
        if self.op is x.Le:
            return Limit(self.var, x.Ge, self.value + 1)
        if self.op is x.Ge:
            return Limit(self.var, x.Le, self.value - 1)
        return Limit(self.var, x.Ne if self.op is x.Eq else x.Eq, self.value)

    def narrow(self, values: Values) -> Values:
        """Those of the values for which it holds."""
        low, high, holes = values
        op, value = self.op, self.value
        if op is x.Ne:
            holes |= {value}
        else:
            if op is not x.Le:
                low = max(low, value)
            if op is not x.Ge:
                high = min(high, value)
        while low in holes:
            low += 1
        while high in holes:
            high -= 1
        return low, high, holes

    def truth(self, values: Values) -> bool | None:
        """Whether it holds for all of the values or for none; unknown where there are none."""
        low, high, holes = values
        op, value = self.op, self.value
        if low > high:
            return None
        if op is x.Le:
            return True if high <= value else False if low > value else None
        if op is x.Ge:
            return True if low >= value else False if high < value else None
        if low > value or high < value or value in holes:
            return op is x.Ne
        return op is x.Eq if low == high else None


def limit_of(condition: Any) -> Limit | None:
    """A comparison of an integer variable with a constant as a limit of the variable; None for other conditions."""
    cls = type(condition)
    if cls not in ESTABLISHES:
        return None
    var, constant = condition.left, condition.right
    if type(var) is ConstInt:
        var, constant = constant, var
        cls = MIRROR[cls]
    if type(constant) is not ConstInt or type(var) not in (Var, IterArg) or not is_integer(var):
        return None
    value = constant.value
    if not -_FINITE < value < _FINITE:
        return None
    if cls is x.Lt:
        return Limit(var, x.Le, value - 1)
    if cls is x.Gt:
        return Limit(var, x.Ge, value + 1)
    return Limit(var, cls, value)


__all__ = ["NO_HOLES", "Limit", "Values", "limit_of"]
