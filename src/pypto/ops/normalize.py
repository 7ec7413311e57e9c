"""Arguments as users write them, brought to the form that calls hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..ir.dtype import DataType
from ..ir.enums import PadValue
from ..ir.expr import ConstFloat, ConstInt, Expr, MakeTuple, index_const
from ..ir.location import current_span
from ..ir.node import FrozenList
from ..ir.utils import CAST_MODE_NAMES, _normalize_const_to_dtype, resolve_cast_mode


def extents(values: Any) -> MakeTuple:
    """A shape, offset or index list as one ``MakeTuple``; a single int or scalar stands for a list of one."""
    if type(values) is MakeTuple:
        return values
    if isinstance(values, (int, Expr)) and not isinstance(values, bool):
        values = (values,)
    items = [v if isinstance(v, Expr) else extent(v) for v in values]
    return MakeTuple(FrozenList(items), current_span())


def extent(value: Any) -> Expr:
    """One extent: an int becomes an INDEX constant."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return index_const(int(value))
    if hasattr(value, "__index__") and not isinstance(value, bool):
        return index_const(value.__index__())
    raise TypeError(f"an extent must be an int or an integer scalar, got {type(value).__name__}")


def const_value(value: Any) -> int | float | None:
    """The Python number of a constant or a number; None for anything else."""
    if isinstance(value, (ConstInt, ConstFloat)):
        return value.value
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def int_attr(value: Any, what: str) -> int:
    """A compile-time int given as a Python int or a constant expression."""
    number = const_value(value)
    if not isinstance(number, int):
        raise TypeError(f"{what} must be a compile-time integer")
    return number


def typed_constant(number: int | float, dtype: DataType) -> Expr:
    """A constant whose node kind follows the dtype."""
    if dtype.is_float_:
        return ConstFloat(float(number), dtype, current_span())
    return ConstInt(int(number), dtype, current_span())


def scalar_operand(scalar: Any, dtype: DataType, *, retype_constants: bool = False) -> Expr:
    """The scalar operand of an op whose paired operand has element type ``dtype``.

    A bare int (an INDEX constant) takes ``dtype``; a Python float takes it when it is a float type and is FP32
    otherwise; typed constants (in a kernel also float literals, which are FP32) stay, unless ``retype_constants``.
    A run-time INDEX scalar is refused.
    """
    if isinstance(scalar, bool) or not isinstance(scalar, (int, float, Expr)):
        raise TypeError(f"a scalar operand must be a number or a scalar expression, got {type(scalar).__name__}")
    if isinstance(scalar, (ConstInt, ConstFloat)) and scalar.dtype is not DataType.INDEX and not retype_constants:
        return scalar
    if isinstance(scalar, ConstFloat) and not dtype.is_float_:
        return scalar
    return _normalize_const_to_dtype(scalar, dtype, current_span())


def sequence_of_ints(values: Any, what: str) -> Sequence[int]:
    """A literal list of compile-time ints."""
    return [int_attr(v, what) for v in (values.elements if isinstance(values, MakeTuple) else values)]


def resolve_pad_value(value: Any, *, allow_null: bool = False) -> PadValue:
    """The pad of ``fillpad`` and friends: a member, or 0, ``math.inf``, ``-math.inf``.

    ``ValueError`` for other numbers (and for null, unless ``allow_null``), ``TypeError`` for other kinds.
    """
    if isinstance(value, (ConstInt, ConstFloat)):
        value = value.value
    if isinstance(value, PadValue):
        if value is not PadValue.null or allow_null:
            return value
    elif isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"fillpad pad_value must be a PadValue, 0, math.inf or -math.inf, not {type(value).__name__}")
    elif value in _PAD_OF_NUMBER:
        return _PAD_OF_NUMBER[value]
    raise ValueError(f"fillpad pad_value must be PadValue.zero, max or min, 0, math.inf or -math.inf, got {value!r}")


_PAD_OF_NUMBER = {0: PadValue.zero, math.inf: PadValue.max, -math.inf: PadValue.min}


__all__ = [
    "CAST_MODE_NAMES",
    "const_value",
    "extent",
    "extents",
    "int_attr",
    "resolve_cast_mode",
    "resolve_pad_value",
    "scalar_operand",
    "sequence_of_ints",
    "typed_constant",
]
