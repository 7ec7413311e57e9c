"""Scalar arithmetic as a core does it: integers wrap at their width, floats round to their type."""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Callable
from typing import Any

from .._lazy import np
from ..ir import expr as x
from ..ir.dtype import DataType
from ..ops.numpy_types import numpy_dtype


def wrap(value: int, dtype: DataType) -> int:
    """Two's complement at the width of ``dtype``."""
    bits = dtype.get_bit()
    if dtype.is_signed_:
        half = 1 << (bits - 1)
        if -half <= value < half:
            return value
        return (value + half) % (1 << bits) - half
    return value % (1 << bits)


def round_float(value: float, dtype: DataType) -> float:
    """Nearest value of a float type (ties to even)."""
    if dtype is DataType.FP32:
        return ctypes.c_float(value).value
    with np.errstate(over="ignore"):
        return float(numpy_dtype(dtype).type(value))


def normalize(value: Any, dtype: DataType) -> Any:
    """A Python number as a value of ``dtype``."""
    if dtype.is_int_:
        return wrap(int(value), dtype)
    if dtype.is_float_:
        return round_float(float(value), dtype)
    return bool(value) if dtype is DataType.BOOL else value


def _floored(function: Callable[[Any, Any], Any], word: str) -> Callable[[Any, Any], Any]:
    def divide(a: Any, b: Any) -> Any:
        if b == 0:
            if isinstance(b, int):
                raise ZeroDivisionError(f"integer {word} by zero")
            return math.nan
        return function(a, b)

    return divide


def _true_divide(a: Any, b: Any) -> Any:
    if b == 0 and isinstance(b, int):
        raise ZeroDivisionError("integer division by zero")
    if isinstance(a, int) and isinstance(b, int):
        quotient = abs(a) // abs(b)  # integers round toward zero
        return quotient if (a < 0) == (b < 0) else -quotient
    if b == 0:
        return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)
    return a / b


def _shift(function: Callable[[int, int], int]) -> Callable[[int, int], int]:
    def shift(a: int, b: int) -> int:
        if not 0 <= b < 64:
            raise ValueError(f"shift distance {b} is outside [0, 64)")
        return function(a, b)

    return shift


def _power(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int):
        if b < 0:
            raise ValueError(f"integer power with the negative exponent {b}")
        return a**b
    try:
        value = math.pow(a, b)
    except OverflowError:
        return math.copysign(math.inf, a) if b % 2 == 1 else math.inf
    except ValueError:  # no real result, or a pole
        return math.inf if a == 0 else math.nan
    return value


BINARY: dict[type, Callable[[Any, Any], Any]] = {
    x.Add: operator.add,
    x.Sub: operator.sub,
    x.Mul: operator.mul,
    x.FloorDiv: _floored(operator.floordiv, "division"),
    x.FloorMod: _floored(operator.mod, "modulo"),
    x.FloatDiv: _true_divide,
    x.Min: min,
    x.Max: max,
    x.Pow: _power,
    x.Eq: operator.eq,
    x.Ne: operator.ne,
    x.Lt: operator.lt,
    x.Le: operator.le,
    x.Gt: operator.gt,
    x.Ge: operator.ge,
    x.And: lambda a, b: bool(a) and bool(b),
    x.Or: lambda a, b: bool(a) or bool(b),
    x.Xor: lambda a, b: bool(a) != bool(b),
    x.BitAnd: operator.and_,
    x.BitOr: operator.or_,
    x.BitXor: operator.xor,
    x.BitShiftLeft: _shift(operator.lshift),
    x.BitShiftRight: _shift(operator.rshift),
}


def operate(node: x.BinaryExpr, left: Any, right: Any) -> Any:
    """The value of a two-operand expression for the values of its operands."""
    value = BINARY[type(node)](left, right)
    dtype = node.dtype
    if dtype.is_int_:
        return wrap(value, dtype)
    if dtype.is_float_:
        return round_float(value, dtype)
    return value


def cast(value: Any, dtype: DataType) -> Any:
    """Scalar conversion: float to int truncates toward zero (NaN is an error), to BOOL tests for non-zero."""
    if dtype is DataType.BOOL:
        return value != 0
    if dtype.is_int_ and isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"cannot convert {value} to {dtype}")
        return wrap(math.trunc(value), dtype)
    return normalize(value, dtype)


UNARY: dict[type, Callable[[Any, DataType], Any]] = {
    x.Neg: lambda a, _: -a,
    x.Abs: lambda a, _: abs(a),
    x.Not: lambda a, _: not a,
    x.BitNot: lambda a, _: ~a,
    x.Cast: cast,
}
