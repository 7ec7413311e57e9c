"""Arrays of the caller as NumPy views that work in place: NumPy, torch, DLPack, and tensors resident on a worker.

torch is never imported here: if the caller has a torch tensor, torch is loaded already. Element types that NumPy lacks
(bf16, fp8) are viewed through an integer type of the same size and viewed again with the ``ml_dtypes`` type; no value
passes through another float type.
"""

from __future__ import annotations

from typing import Any

from .._lazy import np
from ..ir.dtype import DataType
from ..ops.numpy_types import from_numpy_dtype, numpy_dtype
from .device_tensor import DeviceTensor
from .element_types import FROM_TORCH_NAME, TORCH_CARRIERS, TORCH_NAMES, dtype_of, loaded_torch, torch_dtype

_DLPACK_CPU = 1


def is_torch_tensor(obj: Any) -> bool:
    """Whether an object is a torch tensor."""
    torch = loaded_torch()
    kind = getattr(torch, "Tensor", None)
    return kind is not None and isinstance(obj, kind)


def is_array(obj: Any) -> bool:
    """Whether an object can stand for a tensor parameter on the host: NumPy, torch, or DLPack on the CPU."""
    if isinstance(obj, np.ndarray) or is_torch_tensor(obj):
        return True
    if isinstance(obj, type) or not (hasattr(obj, "__dlpack__") and hasattr(obj, "__dlpack_device__")):
        return False
    return bool(obj.__dlpack_device__()[0] == _DLPACK_CPU)


def array_shape_and_dtype(obj: Any, name: str = "argument") -> tuple[tuple[int, ...], DataType]:
    """Shape and element type of an array or a :class:`DeviceTensor`; ``TypeError`` names ``name``."""
    if isinstance(obj, DeviceTensor):
        return obj.shape, dtype_of(obj.dtype, name)
    if is_torch_tensor(obj):
        return tuple(obj.shape), dtype_of(obj.dtype, name)
    if isinstance(obj, np.ndarray):
        return obj.shape, dtype_of(obj.dtype, name)
    if hasattr(obj, "dtype") and hasattr(obj, "shape"):
        return tuple(obj.shape), dtype_of(obj.dtype, name)
    view = host_view(obj, name, written=False)
    return view.shape, dtype_of(view.dtype, name)


def host_view(obj: Any, name: str, written: bool) -> Any:
    """An array as a NumPy view of its own memory. ``written``: the program writes it."""
    if isinstance(obj, np.ndarray):
        view = obj
    elif isinstance(obj, DeviceTensor):
        return obj.host_view(name)
    elif is_torch_tensor(obj):
        view = _view_of_torch(obj, name, written)
    else:
        view = _view_of_dlpack(obj, name)
    if written and not view.flags.writeable:
        raise ValueError(f"parameter '{name}' is written by the program, but its array is read-only")
    return view


def _view_of_torch(tensor: Any, name: str, written: bool) -> Any:
    if tensor.device.type != "cpu":
        raise ValueError(f"parameter '{name}' is on {tensor.device}, expected CPU. Call .cpu() before passing it")
    if tensor.requires_grad:
        if written:
            raise RuntimeError(
                f"parameter '{name}' is written by the program, but its torch tensor requires grad: "
                "pass tensor.detach()"
            )
        tensor = tensor.detach()
    text = str(tensor.dtype)[6:]
    try:
        carrier = TORCH_CARRIERS.get(text)
        if carrier is None:
            return tensor.numpy()
        return tensor.view(getattr(loaded_torch(), carrier)).numpy().view(numpy_dtype(FROM_TORCH_NAME[text]))
    except (TypeError, RuntimeError) as error:
        raise TypeError(f"parameter '{name}': this torch tensor has no dense view on the host: {error}") from error


def _view_of_dlpack(obj: Any, name: str) -> Any:
    device = obj.__dlpack_device__()[0]
    if device != _DLPACK_CPU:
        raise ValueError(f"parameter '{name}' is on DLPack device type {int(device)}, expected CPU")
    try:
        return np.from_dlpack(obj)
    except (TypeError, RuntimeError, BufferError) as error:
        raise TypeError(f"parameter '{name}': NumPy can't view this array: {error}") from error


def as_torch(view: Any) -> Any:
    """A NumPy array as a torch tensor that shares its memory."""
    torch = loaded_torch()
    dtype = from_numpy_dtype(view.dtype)
    carrier = TORCH_CARRIERS.get(TORCH_NAMES.get(dtype, ""))
    if carrier is None:
        return torch.from_numpy(view)
    return torch.from_numpy(view.view(getattr(np, carrier))).view(torch_dtype(dtype))


def zeros(shape: tuple[int, ...], dtype: DataType, like_torch: bool) -> Any:
    """An array of zeros of the kind that the caller uses."""
    array = np.zeros(shape, numpy_dtype(dtype))
    return as_torch(array) if like_torch else array


__all__ = [
    "array_shape_and_dtype",
    "as_torch",
    "host_view",
    "is_array",
    "is_torch_tensor",
    "zeros",
]
