"""Random integer expressions, and what they are worth."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from pypto.ir import expr as x
from pypto.ir import scalar as s
from pypto.ir.dtype import DataType
from pypto.ir.expr import BinaryExpr, ConstInt, UnaryExpr, Var
from pypto.ir.type import ScalarType


def var(name: str, dtype: DataType = DataType.INT64) -> Var:
    return Var(name, ScalarType(dtype))


def const(value: int, dtype: DataType = DataType.INT64) -> ConstInt:
    return ConstInt(value, dtype)


class Undefined(Exception):
    """A division by zero, or a number too large to matter."""


def _shift_count(b: int) -> int:
    if not 0 <= b < 63:
        raise Undefined
    return b


def _divide(a: int, b: int) -> int:
    if b == 0:
        raise Undefined
    return a // b


def _power(a: int, b: int) -> int:
    if not 0 <= b < 16:
        raise Undefined
    return a**b


_MEANING: dict[type, Any] = {
    x.Add: lambda a, b: a + b,
    x.Sub: lambda a, b: a - b,
    x.Mul: lambda a, b: a * b,
    x.FloorDiv: _divide,
    x.FloorMod: lambda a, b: a - b * _divide(a, b),
    x.Min: min,
    x.Max: max,
    x.Pow: _power,
    x.Eq: lambda a, b: a == b,
    x.Ne: lambda a, b: a != b,
    x.Lt: lambda a, b: a < b,
    x.Le: lambda a, b: a <= b,
    x.Gt: lambda a, b: a > b,
    x.Ge: lambda a, b: a >= b,
    x.And: lambda a, b: bool(a and b),
    x.Or: lambda a, b: bool(a or b),
    x.Xor: lambda a, b: bool(a) != bool(b),
    x.BitAnd: lambda a, b: a & b,
    x.BitOr: lambda a, b: a | b,
    x.BitXor: lambda a, b: a ^ b,
    x.BitShiftLeft: lambda a, b: a << _shift_count(b),
    x.BitShiftRight: lambda a, b: a >> _shift_count(b),
    x.Neg: lambda a: -a,
    x.Abs: abs,
    x.Not: lambda a: not a,
    x.BitNot: lambda a: ~a,
}


def value_of(e: Any, values: dict[Any, int]) -> Any:
    """The value of ``e`` in mathematical integers; raises Undefined."""
    if isinstance(e, Var):
        return values[e]
    if isinstance(e, BinaryExpr):
        result = _MEANING[type(e)](value_of(e.left, values), value_of(e.right, values))
    elif type(e) is x.Cast:
        result = _cast(value_of(e.operand, values), e.dtype)
    elif isinstance(e, UnaryExpr):
        result = _MEANING[type(e)](value_of(e.operand, values))
    else:
        return e.value
    if abs(result) > 2**62:
        raise Undefined
    return result


def _cast(value: int, dtype: DataType) -> int:
    bits = dtype.get_bit()
    low = value % 2**bits
    return low - 2**bits if dtype.is_signed_ and low >= 2 ** (bits - 1) else low


X, Y, Z = var("x"), var("y"), var("z")
N, M = var("n", DataType.INDEX), var("m", DataType.INDEX)
B = var("b", DataType.INT8)
U = var("u", DataType.UINT8)
VARIABLES = (X, Y, Z, N, M, B, U)
_RANGES = {N: (0, 12), M: (0, 12), B: (-128, 127), U: (0, 255)}

_NUMBERS = st.integers(-9, 9).map(const)
_DIVISORS = st.sampled_from([-8, -4, -3, -2, 2, 3, 4, 5, 8]).map(const)
_WIDE = [v if v.type.dtype.get_bit() == 64 else s.cast(v, DataType.INT64) for v in VARIABLES]
_LEAVES = st.one_of(st.sampled_from(_WIDE), _NUMBERS)
_CASTS = st.sampled_from([DataType.INT8, DataType.UINT8, DataType.INT32, DataType.INDEX])


def _larger(inner: Any) -> Any:
    def node(cls: Any) -> Any:
        return lambda a, b: cls(a, b, a.dtype if hasattr(a, "dtype") else a.type.dtype)

    def there_and_back(e: Any, dtype: DataType) -> Any:
        return s.cast(s.cast(e, dtype), DataType.INT64)

    pairs = [x.Add, x.Add, x.Sub, x.Sub, x.Mul, x.Min, x.Max, x.FloorDiv, x.FloorMod]
    return st.one_of(
        *(st.builds(node(cls), inner, inner) for cls in pairs),
        *(st.builds(node(cls), inner, _DIVISORS) for cls in (x.FloorDiv, x.FloorMod, x.FloorDiv, x.FloorMod)),
        *(st.builds(node(x.Mul), inner, _DIVISORS) for _ in range(2)),
        st.builds(s.neg, inner),
        st.builds(s.abs_, inner),
        st.builds(there_and_back, inner, _CASTS),
        st.builds(node(x.BitAnd), inner, st.sampled_from([1, 3, 7]).map(const)),
        *(st.builds(node(cls), inner, st.integers(0, 4).map(const)) for cls in (x.BitShiftLeft, x.BitShiftRight)),
    )


integers = st.recursive(_LEAVES, _larger, max_leaves=12)
_COMPARISONS = [x.Eq, x.Ne, x.Lt, x.Le, x.Gt, x.Ge]


def _compare(cls: Any, a: Any, b: Any) -> Any:
    return cls(a, b, DataType.BOOL)


comparisons = st.builds(_compare, st.sampled_from(_COMPARISONS), integers, integers)
conditions = st.recursive(
    comparisons,
    lambda inner: st.one_of(st.builds(s.and_, inner, inner), st.builds(s.or_, inner, inner), st.builds(s.not_, inner)),
    max_leaves=4,
)
assignments = st.fixed_dictionaries({v: st.integers(*_RANGES.get(v, (-12, 12))) for v in VARIABLES})
