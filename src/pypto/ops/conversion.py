"""Conversion of NumPy arrays between element types with a chosen rounding mode (the semantics of ``cast``)."""

from __future__ import annotations

from typing import Any

from .._lazy import np
from ..ir.dtype import DataType
from .numpy_types import numpy_dtype

# The numbers of ``mode`` kwargs.
NONE, RINT, ROUND, FLOOR, CEIL, TRUNC, ODD = range(7)


def convert(data: Any, source: DataType, target: DataType, mode: int) -> tuple[Any, Any]:
    """``data`` as ``target``, and a mask of the elements whose result is defined (None: all).

    A value out of the range of an integer type saturates and is undefined; so is one that a float type without
    infinity cannot hold. Mode ``none`` promises an exact conversion; where it is not, nearest-even is taken.
    """
    with np.errstate(all="ignore"):
        if target is DataType.BOOL:
            return data.astype(np.float32) != 0 if source.is_float_ else data != 0, None
        if target.is_float_:
            return _to_float(data, source, target, mode)
        if source.is_float_:
            return _float_to_int(data, target, mode)
        return _to_int_bits(data, target), None


def _to_int_bits(data: Any, target: DataType) -> Any:
    """Integer to integer: the low bits stay."""
    wide = data.astype(np.int64, copy=False) if data.dtype != np.uint64 else data
    if target is DataType.INT4:
        wide = (wide.astype(np.int64) + 8 & 15) - 8
    elif target is DataType.UINT4:
        wide = wide.astype(np.int64) & 15
    return wide.astype(numpy_dtype(target))


def _float_to_int(data: Any, target: DataType, mode: int) -> tuple[Any, Any]:
    exact = data.astype(np.float64)
    whole = round_to_whole(exact, mode)
    low, high = int_range(target)
    fits = (whole >= float(low)) & (whole < float(high + 1))  # high + 1 is a power of two, so exact as a float
    inside = np.where(fits, whole, 0.0)
    if target is DataType.UINT64:  # a float64 above 2**63 must not pass through int64
        result = inside.astype(np.uint64)
    else:
        result = _to_int_bits(inside.astype(np.int64), target)
    if fits.all():
        return result, None
    dtype = numpy_dtype(target)
    saturated = np.where(whole < low, np.array(low).astype(dtype), np.array(high, object).astype(dtype))
    result = np.where(fits, result, np.where(np.isnan(whole), np.zeros((), dtype), saturated))
    return result.astype(dtype), fits


def int_range(dtype: DataType) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    bits = dtype.get_bit()
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype.is_signed_ else (0, (1 << bits) - 1)


def round_to_whole(x: Any, mode: int) -> Any:
    """Float64 values rounded to whole numbers."""
    if mode == FLOOR:
        return np.floor(x)
    if mode == CEIL:
        return np.ceil(x)
    if mode == TRUNC:
        return np.trunc(x)
    nearest = np.rint(x)
    if mode in (ROUND, ODD):
        tie = np.abs(x - np.trunc(x)) == 0.5
        away = np.trunc(x) + np.copysign(1.0, x)
        if mode == ROUND:
            return np.where(tie, away, nearest)
        odd_is_away = np.mod(np.trunc(x), 2.0) == 0
        return np.where(tie, np.where(odd_is_away, away, np.trunc(x)), nearest)
    return nearest


_NO_INFINITY = (DataType.FP8E4M3FN, DataType.FP4)


def _to_float(data: Any, source: DataType, target: DataType, mode: int) -> tuple[Any, Any]:
    dtype = numpy_dtype(target)
    if source is DataType.FP32 and target in (DataType.FP16, DataType.BF16) and mode in (NONE, RINT, ROUND):
        if mode == ROUND:
            # One FP32 step away from zero breaks a tie. A tie has one significant bit more than the target keeps, so
            # its low bits are 0; stepping from such a value only changes no rounding of another one.
            bits = np.ascontiguousarray(data).view(np.int32)
            low = (1 << 23 - _FORMAT[target][0]) - 1
            data = (bits + (((bits & low) == 0) & np.isfinite(data))).view(np.float32)
        return data.astype(dtype), None
    return _general_to_float(data, source, target, mode)


def _general_to_float(data: Any, source: DataType, target: DataType, mode: int) -> tuple[Any, Any]:
    """Any number to any float type: by the two neighbours of each value in the target type."""
    dtype = numpy_dtype(target)
    if target is DataType.FP8E8M0:  # powers of two only: no sign, no zero, so no neighbours in the sense below
        return data.astype(np.float32).astype(dtype), None
    # float64 holds every source but wide integers exactly.
    wide: Any = np.longdouble if not source.is_float_ and source.get_bit() > 32 else np.float64
    if source is DataType.BOOL:
        data = data.astype(np.int8)
    exact = data.astype(np.float32 if not _native(data.dtype) else wide).astype(wide)
    if source.is_float_ and _holds(target, source):
        return exact.astype(dtype), None
    nearest = exact.astype(np.float32).astype(dtype)
    if (nearest.astype(np.float32).astype(wide) == exact).all():
        return nearest, None
    magnitude = np.abs(exact)
    lower, upper, lower_value, upper_value = _neighbours(magnitude, dtype)
    chosen = _choose(magnitude, exact < 0, lower, upper, lower_value, upper_value, mode)
    bits = chosen | (np.signbit(exact).astype(chosen.dtype) << np.array(target.get_bit() - 1, chosen.dtype))
    result = bits.view(dtype)
    special = ~np.isfinite(exact)
    if special.any():
        result = np.where(special, exact.astype(np.float32).astype(dtype), result)
    if target in _NO_INFINITY:
        largest = float(_limits(dtype))
        fits = magnitude <= largest
        if not fits.all():
            result = np.where(fits, result, np.copysign(largest, exact).astype(np.float32).astype(dtype))
            return result, fits
    return result, None


# significand bits (with the hidden one) and exponent bits
_FORMAT = {
    DataType.FP32: (24, 8),
    DataType.FP16: (11, 5),
    DataType.BF16: (8, 8),
    DataType.FP8E5M2: (3, 5),
    DataType.FP8E4M3FN: (4, 4),
    DataType.FP4: (2, 2),
    DataType.FP8E8M0: (1, 8),
}
SIGNIFICAND_BITS = {dtype: bits for dtype, (bits, _) in _FORMAT.items()}


def _holds(target: DataType, source: DataType) -> bool:
    """Whether every value of ``source`` is one of ``target``."""
    return all(t >= s for t, s in zip(_FORMAT[target], _FORMAT[source], strict=True))


def _native(dtype: Any) -> bool:
    """Whether NumPy itself, not ml_dtypes, defines a dtype (``kind`` does not tell: float8_e5m2 says "f")."""
    return bool(dtype.isbuiltin == 1)


def _limits(dtype: Any) -> Any:
    """The largest finite value of a float dtype."""
    if _native(dtype):
        return np.finfo(dtype).max
    from .._lazy import ml_dtypes

    return ml_dtypes.finfo(dtype).max  # type: ignore[no-untyped-call]


def lowest_and_largest(dtype: DataType) -> tuple[Any, Any]:
    """The identities of max and min: infinities where the type has them, else its extreme values."""
    if dtype.is_int_:
        return int_range(dtype)
    if dtype in _NO_INFINITY:
        largest = float(_limits(numpy_dtype(dtype)))
        return -largest, largest
    return float("-inf"), float("inf")


def _neighbours(magnitude: Any, dtype: Any) -> tuple[Any, Any, Any, Any]:
    """The values of ``dtype`` next below (or equal to) and next above each magnitude: as bits, and as numbers."""
    unsigned = {1: np.uint8, 2: np.uint16, 4: np.uint32}[dtype.itemsize]
    top = np.array(_limits(dtype)).astype(dtype)
    clipped = np.minimum(magnitude, magnitude.dtype.type(float(top)))
    near = clipped.astype(dtype) if _native(dtype) else clipped.astype(np.float32).astype(dtype)
    bits = near.view(unsigned).astype(unsigned)
    one = unsigned(1)
    above = near.astype(np.float32).astype(magnitude.dtype) > clipped
    lower = np.where(above, bits - one, bits).astype(unsigned)
    lower_value = lower.view(dtype).astype(np.float32).astype(magnitude.dtype)
    # A conversion through float32 may have rounded twice; one step corrects it.
    step = (lower + one).astype(unsigned)
    step_value = step.view(dtype).astype(np.float32).astype(magnitude.dtype)
    low_again = (step_value <= clipped) & (lower.view(dtype) != top)
    lower = np.where(low_again, step, lower).astype(unsigned)
    lower_value = np.where(low_again, step_value, lower_value)
    upper = (lower + one).astype(unsigned)
    spacing_up = upper.view(dtype).astype(np.float32).astype(magnitude.dtype)
    # Above the largest finite value the next "number" is where the next binade would go on.
    below_top = (lower - one).astype(unsigned).view(dtype).astype(np.float32).astype(magnitude.dtype)
    at_top = lower.view(dtype) == top
    upper_value = np.where(at_top, lower_value + (lower_value - below_top), spacing_up)
    return lower, upper, lower_value, upper_value


def _choose(
    magnitude: Any, negative: Any, lower: Any, upper: Any, lower_value: Any, upper_value: Any, mode: int
) -> Any:
    """Which neighbour a rounding mode takes, as bits."""
    exact = magnitude == lower_value
    if mode == TRUNC:
        take_upper = np.zeros(magnitude.shape, np.bool_)
    elif mode == FLOOR:
        take_upper = negative
    elif mode == CEIL:
        take_upper = ~negative
    else:
        down, up = magnitude - lower_value, upper_value - magnitude
        odd = (lower & lower.dtype.type(1)).astype(np.bool_)
        at_tie = {ROUND: np.ones_like(odd), ODD: ~odd}.get(mode, odd)
        take_upper = (up < down) | ((up == down) & at_tie)
    return np.where(take_upper & ~exact, upper, lower)
