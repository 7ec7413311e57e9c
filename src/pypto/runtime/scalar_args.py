"""Scalars of the caller: Python numbers, NumPy scalars and ctypes values, checked against the parameter."""

from __future__ import annotations

import ctypes
import math
from typing import Any

from .._lazy import np
from ..ir.dtype import DataType
from ..ops.numpy_types import numpy_dtype
from .arrays import is_array
from .device_tensor import DeviceTensor
from .scalars import normalize
from .signature import ParamInfo

_CTYPES: dict[DataType, Any] = {
    DataType.BOOL: ctypes.c_bool,
    DataType.INT8: ctypes.c_int8,
    DataType.INT16: ctypes.c_int16,
    DataType.INT32: ctypes.c_int32,
    DataType.INT64: ctypes.c_int64,
    DataType.INDEX: ctypes.c_int64,
    DataType.UINT8: ctypes.c_uint8,
    DataType.UINT16: ctypes.c_uint16,
    DataType.UINT32: ctypes.c_uint32,
    DataType.UINT64: ctypes.c_uint64,
    # C has no half: smaller floats travel as float
    DataType.FP16: ctypes.c_float,
    DataType.BF16: ctypes.c_float,
    DataType.FP32: ctypes.c_float,
}


def ctype_of(dtype: DataType) -> Any:
    """The C type that carries a scalar; None where there is none."""
    return _CTYPES.get(dtype)


def scalar_value(info: ParamInfo, value: Any) -> Any:
    """The value of a scalar argument as the parameter's type holds it.

    ``TypeError`` for what is no number of that kind, ``OverflowError`` for one that does not fit.
    """
    if is_array(value) or isinstance(value, DeviceTensor):
        kind = type(value)
        raise TypeError(f"Parameter '{info.name}' is a scalar ({info.dtype}); got {kind.__module__}.{kind.__name__}")
    if isinstance(value, ctypes._SimpleCData):
        wanted = _CTYPES.get(info.dtype)
        if type(value) is not wanted:
            raise TypeError(
                f"Parameter '{info.name}' is a scalar ({info.dtype}): expected "
                f"{getattr(wanted, '__name__', 'a Python number')}, got {type(value).__name__}"
            )
        value = value.value
    elif isinstance(value, np.generic):
        value = value.item()
    return _checked(info, value)


def _checked(info: ParamInfo, value: Any) -> Any:
    dtype = info.dtype
    if not isinstance(value, (bool, int, float)):
        raise TypeError(f"Parameter '{info.name}' is a scalar ({dtype}); got {type(value).__name__}")
    if dtype is DataType.BOOL:
        if isinstance(value, float):
            raise TypeError(f"Parameter '{info.name}' is a scalar (bool); got float {value}")
        return bool(value)
    if dtype.is_int_:
        if isinstance(value, float):
            raise TypeError(f"Parameter '{info.name}' is an integer ({dtype}); got float {value}")
        number = int(value)
        if normalize(number, dtype) != number:
            raise OverflowError(f"parameter '{info.name}' ({dtype}) cannot hold {number}")
        return number
    with np.errstate(over="ignore"):
        rounded = normalize(value, dtype)
    if math.isfinite(value) and not math.isfinite(rounded):
        raise OverflowError(f"parameter '{info.name}' ({dtype}) cannot hold {value}")
    return rounded


def to_bits(value: Any, dtype: DataType) -> int:
    """A scalar as the 64 bits that the task runtime passes: integers widened with their sign, floats by their bits."""
    if dtype.is_float_:
        return int.from_bytes(np.array(value).astype(numpy_dtype(dtype)).tobytes(), "little")
    return int(value) & (2**64 - 1)


def from_bits(bits: int, dtype: DataType) -> Any:
    """The scalar of ``dtype`` that these 64 bits carry."""
    if dtype.is_float_:
        raw = (bits & (2**64 - 1)).to_bytes(8, "little")[: dtype.get_byte()]
        return float(np.frombuffer(raw, numpy_dtype(dtype))[0])
    return normalize(bits, dtype)


__all__ = ["ctype_of", "from_bits", "scalar_value", "to_bits"]
