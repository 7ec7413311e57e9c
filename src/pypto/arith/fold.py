"""Constant folding of the top node of an expression."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from ..ir import expr as x
from ..ir.dtype import DataType
from ..ir.expr import ConstBool, ConstFloat, ConstInt, Expr
from .helpers import INT64_MIN, fits_int64, int_range, wrap_int64

TRUE = ConstBool(True)
FALSE = ConstBool(False)


def fold_const(expr: Expr) -> Expr | None:
    """``expr`` folded by its top node alone (its children are taken as they are); None if no rule applies.

    The result has no span and the dtype of the left operand; a comparison gives a ``ConstBool``. Raises ``ValueError``
    for a division by a constant zero and for a negative integer exponent.
    """
    cls = type(expr)
    binary = _BINARY.get(cls)
    if binary is not None:
        left, right = expr.left, expr.right  # type: ignore[attr-defined]
        kinds = type(left), type(right)
        mixed = kinds == (ConstInt, ConstFloat) or kinds == (ConstFloat, ConstInt)
        return None if mixed else binary(left, right)
    unary = _UNARY.get(cls)
    return None if unary is None else unary(expr.operand)  # type: ignore[attr-defined]


def _int(value: int, dtype: DataType) -> ConstInt | None:
    """A constant, unless it fits neither 64 bits nor the dtype (whose arithmetic would wrap)."""
    if dtype is DataType.INDEX or dtype is DataType.INT64:
        return ConstInt(value, dtype) if fits_int64(value) else None
    bounds = int_range(dtype)
    if bounds is None or not (fits_int64(value) and bounds[0] <= value <= bounds[1]):
        return None
    return ConstInt(value, dtype)


def _bool(value: bool) -> ConstBool:
    return TRUE if value else FALSE


def _is_int(e: Any, value: int) -> bool:
    return type(e) is ConstInt and e.value == value


def _is_number(e: Any, value: int) -> bool:
    return type(e) in (ConstInt, ConstFloat) and e.value == value


def _floats(a: Any, b: Any) -> bool:
    return type(a) is ConstFloat and type(b) is ConstFloat


def _ints(a: Any, b: Any) -> bool:
    return type(a) is ConstInt and type(b) is ConstInt


def _float_op(op: Callable[[float, float], float], a: Any, b: Any) -> Expr | None:
    try:
        return ConstFloat(op(a.value, b.value), a.dtype)
    except (ArithmeticError, ValueError):  # Python raises where IEEE gives an infinity or NaN: left to the target
        return None


def _add(a: Any, b: Any) -> Expr | None:
    if _ints(a, b):
        return _int(a.value + b.value, a.dtype)
    if _floats(a, b):
        return _float_op(operator.add, a, b)
    if _is_number(a, 0):
        return b  # type: ignore[no-any-return]
    return a if _is_number(b, 0) else None


def _sub(a: Any, b: Any) -> Expr | None:
    if _ints(a, b):
        return _int(a.value - b.value, a.dtype)
    if _floats(a, b):
        return _float_op(operator.sub, a, b)
    return a if _is_number(b, 0) else None


def _mul(a: Any, b: Any) -> Expr | None:
    if _ints(a, b):
        return _int(a.value * b.value, a.dtype)
    if _floats(a, b):
        return _float_op(operator.mul, a, b)
    if _is_number(a, 1):
        return b  # type: ignore[no-any-return]
    if _is_number(b, 1) or _is_int(a, 0):
        return a  # type: ignore[no-any-return]
    return b if _is_int(b, 0) else None


def _floor_div(a: Any, b: Any) -> Expr | None:
    if type(b) is not ConstInt:
        return None
    if b.value == 0:
        raise ValueError("division by zero in a constant integer expression")
    if type(a) is ConstInt:
        if a.value == INT64_MIN and b.value == -1:
            raise ValueError("overflow in the division of the smallest 64-bit integer by -1")
        return _int(a.value // b.value, a.dtype)
    return a if b.value == 1 else None


def _floor_mod(a: Any, b: Any) -> Expr | None:
    if type(b) is not ConstInt:
        return None
    if b.value == 0:
        raise ValueError("modulo by zero in a constant integer expression")
    if type(a) is ConstInt:
        if a.value == INT64_MIN and b.value == -1:
            raise ValueError("overflow in the modulo of the smallest 64-bit integer by -1")
        return _int(a.value % b.value, a.dtype)
    return ConstInt(0, a.type.dtype) if b.value == 1 else None


def _float_div(a: Any, b: Any) -> Expr | None:
    if _floats(a, b):
        if b.value != 0:
            return _float_op(operator.truediv, a, b)
        if a.value == 0 or math.isnan(a.value):
            return ConstFloat(math.nan, a.dtype)
        sign = math.copysign(1.0, a.value) * math.copysign(1.0, b.value)
        return ConstFloat(math.copysign(math.inf, sign), a.dtype)
    return a if type(b) is ConstFloat and b.value == 1 else None


def _pow(a: Any, b: Any) -> Expr | None:
    if _ints(a, b):
        if b.value < 0:
            raise ValueError("an integer power needs a non-negative exponent")
        if abs(a.value) > 1 and b.value > 63:
            return None  # overflows; also keeps the number small
        return _int(a.value**b.value, a.dtype)
    if _floats(a, b):
        return _float_op(math.pow, a, b)
    if _is_number(a, 1):
        return a  # type: ignore[no-any-return]
    if _is_number(b, 0):
        dtype = a.type.dtype
        return ConstFloat(1.0, dtype) if dtype.is_float_ else ConstInt(1, dtype)
    return a if _is_number(b, 1) else None


def _choose(op: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Expr | None]:
    def fold(a: Any, b: Any) -> Expr | None:
        if a is b:
            return a  # type: ignore[no-any-return]
        if _ints(a, b):
            return _int(op(a.value, b.value), a.dtype)
        if _floats(a, b):
            if math.isnan(a.value) or math.isnan(b.value):
                return None
            return ConstFloat(op(a.value, b.value), a.dtype)
        return None

    return fold


def _compare(op: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Expr | None]:
    def fold(a: Any, b: Any) -> Expr | None:
        return _bool(op(a.value, b.value)) if _ints(a, b) or _floats(a, b) else None

    return fold


def _is_bool(e: Any) -> bool:
    return getattr(e.type, "dtype", None) is DataType.BOOL


def _logic(absorbing: bool) -> Callable[[Any, Any], Expr | None]:
    def fold(a: Any, b: Any) -> Expr | None:
        for constant, other in ((a, b), (b, a)):
            if type(constant) is ConstBool:
                if constant.value is absorbing:
                    return constant
                return other if _is_bool(other) else None
        return None

    return fold


def _xor(a: Any, b: Any) -> Expr | None:
    return _bool(a.value != b.value) if type(a) is ConstBool and type(b) is ConstBool else None


def _bits(op: Callable[[int, int], int]) -> Callable[[Any, Any], Expr | None]:
    def fold(a: Any, b: Any) -> Expr | None:
        return _int(op(a.value, b.value), a.dtype) if _ints(a, b) else None

    return fold


def _shift(op: Callable[[int, int], int]) -> Callable[[Any, Any], Expr | None]:
    def fold(a: Any, b: Any) -> Expr | None:
        if not _ints(a, b) or not 0 <= b.value <= 63:
            return None
        return _int(wrap_int64(op(a.value, b.value)), a.dtype)

    return fold


def _neg(a: Any) -> Expr | None:
    if type(a) is ConstInt:
        return _int(-a.value, a.dtype)
    return ConstFloat(-a.value, a.dtype) if type(a) is ConstFloat else None


def _abs(a: Any) -> Expr | None:
    if type(a) is ConstInt:
        return _int(abs(a.value), a.dtype)
    return ConstFloat(abs(a.value), a.dtype) if type(a) is ConstFloat else None


def _not(a: Any) -> Expr | None:
    return _bool(not a.value) if type(a) is ConstBool else None


def _bit_not(a: Any) -> Expr | None:
    if type(a) is not ConstInt:
        return None
    value = ~a.value
    return _int(value % 2 ** a.dtype.get_bit() if a.dtype.is_unsigned_ else value, a.dtype)


_BINARY: dict[type, Callable[[Any, Any], Expr | None]] = {
    x.Add: _add,
    x.Sub: _sub,
    x.Mul: _mul,
    x.FloorDiv: _floor_div,
    x.FloorMod: _floor_mod,
    x.FloatDiv: _float_div,
    x.Pow: _pow,
    x.Min: _choose(min),
    x.Max: _choose(max),
    x.Eq: _compare(operator.eq),
    x.Ne: _compare(operator.ne),
    x.Lt: _compare(operator.lt),
    x.Le: _compare(operator.le),
    x.Gt: _compare(operator.gt),
    x.Ge: _compare(operator.ge),
    x.And: _logic(False),
    x.Or: _logic(True),
    x.Xor: _xor,
    x.BitAnd: _bits(operator.and_),
    x.BitOr: _bits(operator.or_),
    x.BitXor: _bits(operator.xor),
    x.BitShiftLeft: _shift(operator.lshift),
    x.BitShiftRight: _shift(operator.rshift),
}
_UNARY: dict[type, Callable[[Any], Expr | None]] = {x.Neg: _neg, x.Abs: _abs, x.Not: _not, x.BitNot: _bit_not}

__all__ = ["FALSE", "TRUE", "fold_const"]
