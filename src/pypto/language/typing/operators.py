"""Python's arithmetic on tensors and tiles: ``a + b`` is ``pl.add(a, b)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pypto.ir.expr import Expr

from .value import DslValue


def _is_operand(value: Any) -> bool:
    return isinstance(value, (DslValue, Expr, int, float)) and not isinstance(value, bool)


def _operator(op: str) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        # The op modules need the classes that inherit this one.
        from ..op import unified_ops

        return getattr(unified_ops, op)(self, other)

    method.__doc__ = f"``pl.{op}`` of both operands."
    return method


class ArrayOperators(DslValue):
    """Element-wise operators, and subscripts that refuse: a body is read as source, never executed.

    A scalar may stand on either side of the commutative operators, and on the right of the others, as in the functions.
    """

    __slots__ = ()

    __add__ = _operator("add")
    __sub__ = _operator("sub")
    __mul__ = _operator("mul")
    __truediv__ = _operator("div")
    __radd__ = _operator("add")
    __rmul__ = _operator("mul")

    def __neg__(self) -> Any:
        from ..op import unified_ops

        negate: Any = unified_ops.neg
        return negate(self)

    def __getitem__(self, indices: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} subscripts are only available inside @pl.function bodies")

    def __setitem__(self, indices: Any, value: Any) -> None:
        raise NotImplementedError(
            f"{type(self).__name__} subscript assignment is only available inside @pl.function bodies"
        )

    # Without this, Python would iterate by subscripts.
    __iter__ = None
