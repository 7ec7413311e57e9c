"""Results that an orchestration hands over (see :mod:`..codegen.host_results`): tensors that the host allocates for
them, and the kernel that takes all others."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from typing import Any

from .._lazy import np
from ..codegen.host_results import Results
from ..ir.program import Function
from ..ir.type import ScalarType, TensorType
from ..ops.numpy_types import numpy_dtype
from ..ops.registry import REGISTRY
from ..ops.values import EvalContext
from .binding import extent_value
from .host_executor import KernelArgs
from .native_library import ELEMENT_TYPES, ChipTensor
from .scalar_args import from_bits


def allocated(results: Results, function: Function, args: Sequence[Any]) -> list[Any]:
    """An array for each parameter that the host adds; ``args``: those of the caller."""
    if not results.made:
        return []
    known: dict[Any, int] = {}
    for param, arg in zip(function.params, args, strict=False):
        if isinstance(param.type, TensorType):
            known.update(zip(param.type.shape, np.shape(arg), strict=True))
        else:
            known[param] = arg
    create = REGISTRY["tensor.create"].reference
    assert create is not None
    arrays = []
    for call in results.made:
        extents: Any = call.args[0]
        shape = [extent_value(e, known) for e in extents.elements]
        arrays.append(create(EvalContext(), shape, **call.kwargs).data)
    return arrays


class Taker:
    """The kernel that is given what one return statement returns. Runs of several threads may go on at once; each has
    a ticket."""

    def __init__(self, kernel: Function) -> None:
        *kinds, _ = [p.type for p in kernel.params]
        tensors = sum(isinstance(kind, TensorType) for kind in kinds)
        places = {True: iter(range(tensors)), False: itertools.count(tensors)}
        # For each result its slot among the task's arguments, and the dtype of a scalar.
        self._slots = [
            (next(places[isinstance(kind, TensorType)]), kind.dtype if isinstance(kind, ScalarType) else None)
            for kind in kinds
        ]
        self._ticket = len(kinds)
        self._tickets = itertools.count()
        self._arrays: dict[int, Sequence[Any]] = {}
        self._taken: dict[int, list[Any]] = {}

    def open(self, arrays: Sequence[Any]) -> int:
        """Begin a run on these arrays; its ticket."""
        ticket = next(self._tickets)
        self._arrays[ticket] = arrays
        return ticket

    def close(self, ticket: int) -> list[Any]:
        """End a run; what it returned."""
        self._arrays.pop(ticket, None)
        return self._taken.pop(ticket, [])

    def __call__(self, args: KernelArgs) -> None:
        ticket = args.scalar(self._ticket)
        memory = _Memory(self._arrays[ticket])
        self._taken[ticket] = [
            memory.array(args.descriptor(slot)) if dtype is None else from_bits(args.scalar(slot), dtype)
            for slot, dtype in self._slots
        ]


class _Memory:
    """Tensors of the runtime as arrays that outlive the run: those in an argument's memory share it, others are copied,
    each buffer once."""

    def __init__(self, arrays: Sequence[Any]) -> None:
        self._arrays = arrays
        self._copies: dict[int, Any] = {}
        self._seen: dict[Any, Any] = {}

    def array(self, tensor: ChipTensor) -> Any:
        shape, strides = tuple(tensor.shapes[: tensor.ndims]), tuple(tensor.strides[: tensor.ndims])
        key = (tensor.buffer_addr, tensor.start_offset, tensor.dtype, shape, strides)
        if key not in self._seen:
            self._seen[key] = self._made(tensor, shape, strides)
        return self._seen[key]

    def _made(self, tensor: ChipTensor, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        dtype = np.dtype(numpy_dtype(ELEMENT_TYPES[tensor.dtype]))
        steps = tuple(s * dtype.itemsize for s in strides)
        offset = tensor.start_offset * dtype.itemsize
        begin = tensor.buffer_addr + offset
        for array in self._arrays:
            if (shape, steps, dtype, begin) == (array.shape, array.strides, array.dtype, array.ctypes.data):
                return array
        if 0 in shape:
            return np.empty(shape, dtype)
        owner = next((a for a in self._arrays if a.ctypes.data <= begin < a.ctypes.data + _reach(a)), None)
        if owner is None:
            return np.ndarray(shape, dtype, self._copy(tensor), offset, steps)
        size = dtype.itemsize + sum((n - 1) * s for n, s in zip(shape, steps, strict=True))
        memory: Any = (ctypes.c_ubyte * size).from_address(begin)
        memory.owner = owner  # lives as long as a view of its memory
        return np.ndarray(shape, dtype, memory, 0, steps)

    def _copy(self, tensor: ChipTensor) -> Any:
        address = tensor.buffer_addr
        if address not in self._copies:
            memory = (ctypes.c_ubyte * tensor.buffer_size).from_address(address)
            self._copies[address] = np.frombuffer(memory, np.uint8).copy()
        return self._copies[address]


def _reach(array: Any) -> int:
    """How many bytes from its first element on an array touches."""
    return int(array.itemsize + sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)))


__all__ = ["Taker", "allocated"]
