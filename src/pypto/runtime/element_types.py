"""Element types as the caller's libraries name them. torch is asked only where the process has loaded it."""

from __future__ import annotations

import sys
from typing import Any

from ..ir.dtype import DataType
from ..ops.numpy_types import from_numpy_dtype, numpy_dtype

TORCH_NAMES = {
    DataType.BOOL: "bool",
    DataType.INT8: "int8",
    DataType.INT16: "int16",
    DataType.INT32: "int32",
    DataType.INT64: "int64",
    DataType.INDEX: "int64",
    DataType.UINT8: "uint8",
    DataType.UINT16: "uint16",
    DataType.UINT32: "uint32",
    DataType.UINT64: "uint64",
    DataType.FP16: "float16",
    DataType.FP32: "float32",
    DataType.BF16: "bfloat16",
    DataType.FP8E4M3FN: "float8_e4m3fn",
    DataType.FP8E5M2: "float8_e5m2",
    DataType.FP8E8M0: "float8_e8m0fnu",
}
FROM_TORCH_NAME = {name: dtype for dtype, name in TORCH_NAMES.items() if dtype is not DataType.INDEX}
# Types that NumPy lacks are viewed through a type of the same size.
TORCH_CARRIERS = {"bfloat16": "int16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8", "float8_e8m0fnu": "uint8"}


def loaded_torch() -> Any:
    """The torch module if the process has loaded it, else None."""
    return sys.modules.get("torch")


def dtype_of(dtype: Any, name: str = "argument") -> DataType:
    """The element type of a NumPy or torch dtype (or itself); ``TypeError`` for one that programs can't have."""
    if isinstance(dtype, DataType):
        return dtype
    if type(dtype).__module__ == "torch":
        text = str(dtype)
        found = FROM_TORCH_NAME.get(text[6:])
        if found is None:
            supported = ", ".join(f"torch.{n}" for n in FROM_TORCH_NAME)
            raise TypeError(f"Unsupported torch dtype {text} of parameter '{name}'. Supported: {supported}")
        return found
    try:
        return from_numpy_dtype(dtype)
    except TypeError as error:
        raise TypeError(f"parameter '{name}': {error}") from None


def host_dtype(dtype: Any, name: str = "argument") -> Any:
    """The NumPy dtype that holds an element type given as a NumPy, torch or PyPTO type."""
    return numpy_dtype(dtype_of(dtype, name))


def torch_dtype(dtype: DataType) -> Any:
    """The torch dtype of an element type; ``ValueError`` where the loaded torch has none."""
    name = TORCH_NAMES.get(dtype)
    found = getattr(loaded_torch(), name, None) if name is not None else None
    if found is None:
        raise ValueError(f"torch has no element type for {dtype}")
    return found


__all__ = ["dtype_of", "host_dtype", "loaded_torch", "torch_dtype"]
