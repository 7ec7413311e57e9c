"""Descriptions of the arguments of a checked run."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .._lazy import np
from .arrays import as_torch, host_view, is_array
from .element_types import host_dtype, loaded_torch

SCALAR_CTYPE_MAP: dict[str, Any] = {
    "int64": ctypes.c_int64,
    "int32": ctypes.c_int32,
    "uint64": ctypes.c_uint64,
    "uint32": ctypes.c_uint32,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
}

# Makers of arrays that are called with a shape; other callables are called without arguments.
_SHAPED = ("zeros", "ones", "rand", "randn", "empty", "standard_normal", "random")


@dataclass
class TensorSpec:
    """One tensor: its name, shape, element type (torch, NumPy or PyPTO) and how it is filled."""

    name: str
    shape: Sequence[int]
    dtype: Any
    init_value: Any = None
    is_output: bool = False

    def create_tensor(self) -> Any:
        """A new tensor: a torch tensor if ``dtype`` is a torch type, else a NumPy array."""
        kind = host_dtype(self.dtype, self.name)
        array = np.ascontiguousarray(self._contents(kind))
        return as_torch(array) if str(self.dtype).startswith("torch.") else array

    def _contents(self, kind: Any) -> Any:
        shape, init = tuple(self.shape), self.init_value
        if init is None:
            return np.zeros(shape, kind)
        if isinstance(init, (bool, int, float)):
            return np.full(shape, init).astype(kind)
        if not is_array(init) and callable(init):
            init = self._called(init, shape)
        if not (is_array(init) or isinstance(init, (list, tuple, int, float, np.generic))):
            raise TypeError(f"tensor '{self.name}': init_value of type {type(self.init_value).__name__} gives no array")
        value = host_view(init, self.name, False) if is_array(init) else np.asarray(init)
        if value.ndim == 0:
            return np.full(shape, value).astype(kind)
        if value.shape != shape:
            raise ValueError(f"tensor '{self.name}' has shape {shape}, its init_value {value.shape}")
        return value.astype(kind)

    def _called(self, init: Any, shape: tuple[int, ...]) -> Any:
        if getattr(init, "__name__", "") not in _SHAPED:
            return init()
        if _of_torch(init):
            # Made in the wanted type where torch can, so that the same seed gives the same values.
            return init(shape, dtype=self.dtype) if str(self.dtype).startswith("torch.float") else init(shape)
        return init(shape)


def _of_torch(function: Any) -> bool:
    torch = loaded_torch()
    return torch is not None and getattr(torch, getattr(function, "__name__", ""), None) is function


@dataclass
class ScalarSpec:
    """One scalar: its name, value and C type."""

    name: str
    value: Any
    ctype: str = "int64"

    def __post_init__(self) -> None:
        if self.ctype not in SCALAR_CTYPE_MAP:
            raise ValueError(f"scalar '{self.name}': ctype must be one of {list(SCALAR_CTYPE_MAP)}, got {self.ctype!r}")


__all__ = ["SCALAR_CTYPE_MAP", "ScalarSpec", "TensorSpec"]
