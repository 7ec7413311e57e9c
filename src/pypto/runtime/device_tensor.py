"""Tensors that live on a worker: handles that a program takes in place of arrays, without a copy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._lazy import np
from .element_types import host_dtype


def checked_shape(shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of positive ints; ``TypeError`` or ``ValueError`` otherwise."""
    if isinstance(shape, (str, bytes)) or not isinstance(shape, Sequence):
        raise TypeError(f"shape must be a sequence of ints, got {type(shape).__name__}")
    result = []
    for extent in shape:
        if isinstance(extent, bool) or not hasattr(extent, "__index__"):
            raise TypeError(f"shape must hold ints, got {extent!r}")
        number = extent.__index__()
        if number <= 0:
            raise ValueError(f"shape must hold positive extents, got {tuple(shape)}")
        result.append(number)
    if not result:
        raise ValueError("shape must not be empty")
    return tuple(result)


@dataclass(frozen=True)
class DeviceTensor:
    """A tensor at an address of a worker's memory.

    ``buffer`` is the allocation behind it; a handle made by hand has none and can't be dispatched. Equality ignores it.
    """

    data_ptr: int
    shape: tuple[int, ...]
    dtype: Any
    buffer: Any = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        if isinstance(self.data_ptr, bool) or not isinstance(self.data_ptr, int):
            raise TypeError(f"data_ptr must be an int, got {type(self.data_ptr).__name__}")
        if self.data_ptr <= 0:
            raise ValueError(f"data_ptr must be a positive address, got {self.data_ptr}")
        object.__setattr__(self, "shape", checked_shape(self.shape))
        host_dtype(self.dtype)  # refuses what is no element type

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return math.prod(self.shape) * int(host_dtype(self.dtype).itemsize)

    def host_view(self, name: str = "tensor") -> Any:
        """The memory as a NumPy array; errors name the parameter ``name``."""
        if self.buffer is None:
            raise TypeError(
                f"parameter '{name}': a DeviceTensor made by hand has no memory behind it; "
                "make one with worker.alloc_tensor(...)"
            )
        memory = getattr(self.buffer, "memory", None)
        if memory is None:
            raise ValueError(f"parameter '{name}': {self!r} is not a live allocation owned by this ChipWorker")
        return memory[: self.nbytes].view(host_dtype(self.dtype)).reshape(self.shape)

    def to_host(self, out: Any = None) -> Any:
        """A copy of the contents as a NumPy array, or into ``out``."""
        view = self.host_view()
        if out is None:
            return view.copy()
        from .arrays import host_view

        target = host_view(out, "out", written=True)
        if target.shape != view.shape or target.dtype != view.dtype:
            raise ValueError(
                f"out has shape {target.shape} and dtype {target.dtype}, the tensor {view.shape} and {view.dtype}"
            )
        np.copyto(target, view)
        return out

    def __repr__(self) -> str:
        return f"DeviceTensor(data_ptr=0x{self.data_ptr:x}, shape={self.shape}, dtype={self.dtype})"


@dataclass(frozen=True)
class StackedDeviceTensor:
    """One tensor spread over workers along its first dimension, a shard each."""

    shards: tuple[DeviceTensor, ...]
    full_shape: tuple[int, ...]
    worker_ids: tuple[int, ...]

    def __post_init__(self) -> None:
        shards, full, workers = tuple(self.shards), checked_shape(self.full_shape), tuple(self.worker_ids)
        for attribute, value in (("shards", shards), ("full_shape", full), ("worker_ids", workers)):
            object.__setattr__(self, attribute, value)
        if len(full) < 2:
            raise ValueError(f"a stacked tensor has at least two dimensions, got shape {full}")
        if not len(shards) == full[0] == len(workers):
            raise ValueError(f"{full[0]} shards and worker ids are needed, got {len(shards)} and {len(workers)}")
        if len(set(workers)) != len(workers):
            raise ValueError(f"each shard needs a worker of its own, got worker ids {workers}")
        for shard in shards:
            if shard.shape != full[1:]:
                raise ValueError(f"a shard has shape {shard.shape}, expected {full[1:]}")
            if shard.dtype != shards[0].dtype:
                raise ValueError(f"shards have different element types: {shards[0].dtype} and {shard.dtype}")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.full_shape

    @property
    def dtype(self) -> Any:
        return self.shards[0].dtype

    def __getitem__(self, idx: Any) -> DeviceTensor:
        """The shard of one rank: ``x[r]``, ``x[r, ...]`` or ``x[r, 0:N, 0:M]`` with full slices."""
        items = idx if isinstance(idx, tuple) else (idx,)
        if sum(item is Ellipsis for item in items) > 1:
            raise IndexError("an index can only have a single ellipsis ('...')")
        if len([item for item in items if item is not Ellipsis]) > len(self.full_shape):
            raise IndexError(f"too many indices: the tensor has {len(self.full_shape)} dimensions, got {len(items)}")
        rank: Any = items[0] if items else None
        if isinstance(rank, bool) or not hasattr(rank, "__index__"):
            raise ValueError(f"the first index of a stacked tensor names a shard, got {rank!r}")
        for item, extent in zip(items[1:], self.full_shape[1:], strict=False):
            if item is Ellipsis:
                break
            if not isinstance(item, slice) or item.indices(extent) != (0, extent, 1):
                raise ValueError(f"only whole shards can be taken, got index {item!r} for an extent of {extent}")
        number = rank.__index__()
        if not -len(self.shards) <= number < len(self.shards):
            raise IndexError(f"shard {number} is out of range: there are {len(self.shards)}")
        return self.shards[number]


def default_init_prep(init: Any) -> Any:
    """The initial contents of a device tensor as a contiguous NumPy array."""
    from .arrays import host_view

    return np.ascontiguousarray(host_view(init, "init", written=False))


def alloc_device_tensor(
    *,
    malloc: Callable[[int], int],
    copy_to: Callable[[int, int, int], None],
    free: Callable[[int], None],
    buffer_for_ptr: Callable[[int], Any] | None = None,
    shape: Any,
    dtype: Any,
    init: Any = None,
    init_prep: Callable[[Any], Any] | None = None,
) -> DeviceTensor:
    """Allocate a tensor with the memory functions of a worker, and fill it with ``init``.

    What is wrong with the arguments shows before anything is allocated; a failure afterwards frees again.
    """
    extents = checked_shape(shape)
    kind = host_dtype(dtype)
    contents = None
    if init is not None:
        contents = (init_prep or default_init_prep)(init)
        if contents.shape != extents:
            raise ValueError(f"init has shape {contents.shape}, the tensor {extents}")
        if contents.dtype != kind:
            raise ValueError(f"init has dtype {contents.dtype}, the tensor {kind}")
    size = math.prod(extents) * int(kind.itemsize)
    pointer = malloc(size)
    try:
        if contents is not None:
            copy_to(pointer, contents.ctypes.data, size)
        buffer = buffer_for_ptr(pointer) if buffer_for_ptr is not None else None
        return DeviceTensor(pointer, extents, dtype, buffer=buffer)
    except BaseException:
        free(pointer)
        raise


__all__ = ["DeviceTensor", "StackedDeviceTensor", "alloc_device_tensor", "default_init_prep"]
