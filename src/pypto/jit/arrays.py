"""Arrays that a caller hands over: NumPy, torch through DLPack, anything with ``__dlpack__`` on the CPU.

torch is never imported here: when a caller has a torch tensor, torch is loaded already.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from .._lazy import ml_dtypes, np
from ..ir.dtype import DataType
from ..ops.numpy_types import from_numpy_dtype, numpy_dtype

# torch dtype (as text) -> element type
_TORCH: dict[str, DataType] = {
    "torch.float32": DataType.FP32,
    "torch.float16": DataType.FP16,
    "torch.bfloat16": DataType.BF16,
    "torch.int8": DataType.INT8,
    "torch.int16": DataType.INT16,
    "torch.int32": DataType.INT32,
    "torch.int64": DataType.INT64,
    "torch.uint8": DataType.UINT8,
    "torch.uint16": DataType.UINT16,
    "torch.uint32": DataType.UINT32,
    "torch.uint64": DataType.UINT64,
    "torch.bool": DataType.BOOL,
    "torch.float8_e4m3fn": DataType.FP8E4M3FN,
    "torch.float8_e5m2": DataType.FP8E5M2,
    "torch.float8_e8m0fnu": DataType.FP8E8M0,
}
# Element types for which NumPy has no DLPack code: handed over as integers of the same width, then viewed.
_CARRIERS = {
    DataType.BF16: ("int16", "bfloat16"),
    DataType.FP8E4M3FN: ("uint8", "float8_e4m3fn"),
    DataType.FP8E5M2: ("uint8", "float8_e5m2"),
    DataType.FP8E8M0: ("uint8", "float8_e8m0fnu"),
}

_NUMPY_CACHE: dict[Any, DataType] = {}


def is_torch(value: Any) -> bool:
    """Whether a value is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _is_device_tensor(value: Any) -> bool:
    runtime = sys.modules.get("pypto.runtime")
    cls = getattr(runtime, "DeviceTensor", None) if runtime is not None else None
    return isinstance(cls, type) and isinstance(value, cls)


def is_array(value: Any) -> bool:
    """A NumPy array, a torch tensor, a resident tensor, or an object that exports CPU memory through DLPack."""
    if isinstance(value, np.ndarray) or is_torch(value) or _is_device_tensor(value):
        return True
    if not (hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__")) or isinstance(value, np.generic):
        return False
    return int(value.__dlpack_device__()[0]) == 1  # kDLCPU


def _numpy_element(dtype: Any, name: str) -> DataType:
    try:
        found = from_numpy_dtype(dtype)
    except (TypeError, ValueError):
        supported = ", ".join(sorted({str(numpy_dtype(t)) for t in _TORCH.values()}))
        raise TypeError(f"parameter '{name}': Unsupported NumPy dtype {dtype}. Supported: {supported}") from None
    _NUMPY_CACHE[dtype] = found
    return found


def element_type(value: Any, name: str) -> DataType:
    """The element type of an array; ``TypeError`` that names the parameter where there is none."""
    if isinstance(value, np.ndarray):
        dtype = value.dtype
        return _NUMPY_CACHE.get(dtype) or _numpy_element(dtype, name)
    if is_torch(value):
        found = _TORCH.get(str(value.dtype))
        if found is None:
            raise TypeError(
                f"parameter '{name}': Unsupported torch dtype {value.dtype}. Supported: {', '.join(_TORCH)}"
            )
        return found
    dtype = getattr(value, "dtype", None)
    if isinstance(dtype, DataType):
        return dtype
    if str(dtype) in _TORCH:
        return _TORCH[str(dtype)]
    if dtype is None:
        return element_type(np.from_dlpack(value), name)
    return _numpy_element(np.dtype(dtype), name)


def shape_of(value: Any) -> tuple[int, ...]:
    """The extents of an array."""
    shape = getattr(value, "shape", None)
    if shape is None:
        shape = np.from_dlpack(value).shape
    return tuple(int(extent) for extent in shape)


def to_numpy(value: Any) -> Any:
    """A NumPy view of the same memory."""
    if isinstance(value, np.ndarray):
        return value
    if not is_torch(value):
        return np.from_dlpack(value)
    torch = sys.modules["torch"]
    tensor = value.detach()
    if tensor.device.type != "cpu":
        raise ValueError(f"the tensor is on {tensor.device}, expected CPU. Call .cpu()")
    carrier = _CARRIERS.get(_TORCH.get(str(tensor.dtype)))  # type: ignore[arg-type]
    if carrier is None:
        return tensor.numpy()
    return tensor.view(getattr(torch, carrier[0])).numpy().view(getattr(ml_dtypes, carrier[1]))


def allocate(shape: Sequence[int], dtype: DataType, like_torch: bool) -> Any:
    """A zeroed array of an element type: a torch tensor if the caller works with torch, else a NumPy array."""
    if not like_torch:
        return np.zeros(tuple(shape), numpy_dtype(dtype))
    torch = sys.modules["torch"]
    name = next((text for text, known in _TORCH.items() if known is dtype), None)
    if name is None and dtype is DataType.INDEX:
        name = "torch.int64"
    if name is None:
        raise TypeError(f"torch has no element type for {dtype}")
    return torch.zeros(tuple(shape), dtype=getattr(torch, name.split(".")[1]))


__all__ = ["allocate", "element_type", "is_array", "is_torch", "shape_of", "to_numpy"]
