"""Element types as NumPy dtypes."""

from __future__ import annotations

from typing import Any

from .._lazy import ml_dtypes, np
from ..ir.dtype import DataType

_NUMPY_NAMES = {
    "BOOL": "bool_",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "INDEX": "int64",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "FP16": "float16",
    "FP32": "float32",
}
_ML_NAMES = {
    "BF16": "bfloat16",
    "FP8E4M3FN": "float8_e4m3fn",
    "FP8E5M2": "float8_e5m2",
    "FP8E8M0": "float8_e8m0fnu",
    "FP4": "float4_e2m1fn",
    "INT4": "int4",
    "UINT4": "uint4",
}
_CACHE: dict[DataType, Any] = {}
_FOUND: dict[Any, DataType] = {}  # the other way round; a dtype's name takes long to make


def numpy_dtype(dtype: DataType) -> Any:
    """The NumPy dtype of an element type (``ml_dtypes`` for bf16, fp8, fp4, int4); ``ValueError`` where none exists."""
    found = _CACHE.get(dtype)
    if found is None:
        if dtype.name in _NUMPY_NAMES:
            found = np.dtype(getattr(np, _NUMPY_NAMES[dtype.name]))
        elif dtype.name in _ML_NAMES:
            found = np.dtype(getattr(ml_dtypes, _ML_NAMES[dtype.name]))
        elif dtype is DataType.TASK_ID:
            found = np.dtype(object)
        else:
            raise ValueError(f"element type {dtype} has no host representation; use FP8E4M3FN, FP8E5M2 or FP16")
        _CACHE[dtype] = found
    return found


def from_numpy_dtype(dtype: Any) -> DataType:
    """The element type of a NumPy dtype (int64 gives INT64); ``TypeError`` if there is none."""
    known = _FOUND.get(dtype) if isinstance(dtype, np.dtype) else None
    if known is not None:
        return known
    name = np.dtype(dtype).name
    for table in (_NUMPY_NAMES, _ML_NAMES):
        for ours, theirs in table.items():
            if ours != "INDEX" and theirs.rstrip("_") == name:
                found: DataType = getattr(DataType, ours)
                _FOUND[np.dtype(dtype)] = found
                return found
    names = dict.fromkeys(v.rstrip("_") for v in (*_NUMPY_NAMES.values(), *_ML_NAMES.values()))  # INDEX is int64 too
    supported = ", ".join(names)
    raise TypeError(f"Unsupported array dtype {name}. Supported: {supported}")
