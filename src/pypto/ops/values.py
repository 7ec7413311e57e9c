"""Run-time values of tensors and tiles: what the reference semantics of ops work on.

An :class:`ArrayValue` is a NumPy view into a :class:`Buffer`, with the extents of its valid region. A buffer knows
which of its elements were never given a value (or were given one computed from such): reading one where it matters is
reported instead of yielding zeros. Masks cost nothing while everything is defined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._lazy import np


class Buffer:
    """Storage: a C-contiguous base array, with a lazily made mask of defined elements.

    ``name`` is for messages. ``external``: the storage is the caller's. ``owner``, ``manual_dep`` and ``record`` belong
    to the task graph of the runtime. ``poisoned_at`` remembers the statement that first stored undefined values.
    """

    __slots__ = ("_mask", "base", "external", "manual_dep", "name", "owner", "poisoned_at", "record")

    def __init__(self, base: Any, name: str = "", *, defined: bool = True, external: bool = False) -> None:
        self.base = base
        self.name = name
        self.external = external
        self.owner: Any = None
        self.manual_dep = False
        self.poisoned_at: Any = None
        self.record: Any = None  # bookkeeping of the task graph
        self._mask = None if defined else np.zeros(base.size, np.bool_)

    @property
    def maybe_undefined(self) -> bool:
        """Whether some element may be undefined."""
        return self._mask is not None

    def mask_of(self, data: Any) -> Any:
        """The mask of the elements of ``data``, a view into this buffer, as a writable view; None: all defined.

        A view with another item size (a reinterpretation) gets a read-only copy: an element is defined when all the
        bytes that it covers are.
        """
        if self._mask is None:
            return None
        return _mask_view(self._mask, self.base, data)

    def ensure_mask(self) -> None:
        """Make the mask, all defined."""
        if self._mask is None:
            self._mask = np.ones(self.base.size, np.bool_)

    def tidy(self) -> None:
        """Drop the mask once everything is defined."""
        if self._mask is not None and self._mask.all():
            self._mask = None


def _mask_view(mask: Any, base: Any, data: Any) -> Any:
    offset = data.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    if data.itemsize == base.itemsize:
        strides = [s // base.itemsize for s in data.strides]
        return np.lib.stride_tricks.as_strided(mask[offset // base.itemsize :], data.shape, strides)
    by_byte = np.repeat(mask, base.itemsize)
    starts = np.full(data.shape, offset, np.int64)
    for axis, stride in enumerate(data.strides):
        index = np.arange(data.shape[axis]) * stride
        starts += index.reshape([-1 if a == axis else 1 for a in range(data.ndim)])
    covered = np.ones(data.shape, np.bool_)
    for k in range(data.itemsize):
        covered &= by_byte[starts + k]
    return covered


class ArrayValue:
    """A tensor or tile: ``data`` (a NumPy view into ``buffer.base``) and the extents of its valid region."""

    __slots__ = ("buffer", "data", "valid")

    def __init__(self, data: Any, buffer: Buffer | None = None, valid: Sequence[int] | None = None) -> None:
        self.data = data
        self.buffer = buffer if buffer is not None else Buffer(data)
        self.valid: tuple[int, ...] = data.shape if valid is None else tuple(valid)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape  # type: ignore[no-any-return]

    @property
    def dtype(self) -> Any:
        return self.data.dtype

    @property
    def mask(self) -> Any:
        """Which elements are defined; None: all. Ignores the valid region."""
        return self.buffer.mask_of(self.data)

    @property
    def fully_valid(self) -> bool:
        return bool(self.valid == self.data.shape)

    def valid_window(self) -> tuple[slice, ...]:
        """Index of the valid region."""
        return tuple(slice(0, v) for v in self.valid)

    def valid_data(self) -> Any:
        """The elements of the valid region."""
        return self.data if self.fully_valid else self.data[self.valid_window()]

    def valid_mask(self) -> Any:
        """The mask of the valid region; None: all defined."""
        mask = self.mask
        return mask if mask is None or self.fully_valid else mask[self.valid_window()]

    def view(self, data: Any, valid: Sequence[int] | None = None) -> ArrayValue:
        """Another view into the same buffer."""
        return ArrayValue(data, self.buffer, valid)

    def write(self, window: tuple[Any, ...], values: Any, mask: Any, accumulate: bool = False) -> bool:
        """Store ``values`` (already of this dtype, or castable) at ``window``; ``mask`` says which are defined.

        Returns whether undefined values were stored. With ``accumulate`` the values are added.
        """
        target = self.data[window]
        if accumulate:
            values = target + values
        dtype = getattr(values, "dtype", None)  # a Python number has none
        if dtype is None or dtype == self.data.dtype:
            self.data[window] = values
        else:
            with np.errstate(over="ignore", invalid="ignore"):  # a store that converts overflows to infinity
                self.data[window] = values
        return self.mark(window, mask, accumulate)

    def mark(self, window: tuple[Any, ...], mask: Any, accumulate: bool = False) -> bool:
        """Record that the elements at ``window`` were written with values of this definedness."""
        undefined = mask is not None and not mask.all()
        if undefined:
            self.buffer.ensure_mask()
        own = self.mask
        if own is not None:
            if accumulate:
                if mask is not None:
                    own[window] &= mask
            else:
                own[window] = True if mask is None else mask
        return undefined


def fresh(data: Any, mask: Any = None, valid: Sequence[int] | None = None) -> ArrayValue:
    """A computed value in a buffer of its own; ``mask`` None means all of the valid region is defined."""
    data = np.ascontiguousarray(data) if data.ndim else data
    value = ArrayValue(data, Buffer(data), valid)
    full = value.fully_valid
    if mask is not None and mask.all():
        mask = None
    if mask is not None or not full:
        value.buffer.ensure_mask()
        own = value.mask
        if mask is not None:
            own[...] = mask
        if not full:  # outside the valid region nothing is defined
            inside = np.zeros(data.shape, np.bool_)
            inside[value.valid_window()] = True
            own &= inside
    return value


def empty(shape: Sequence[int], dtype: Any, name: str = "") -> ArrayValue:
    """A fresh buffer whose elements are all undefined (filled with NaN, or an odd pattern, so that misuse shows)."""
    data = np.empty(tuple(shape), dtype)
    kind = data.dtype.kind
    if kind == "f" or data.dtype.name.startswith(("bfloat", "float")):
        data[...] = np.nan if data.dtype.name not in ("float4_e2m1fn", "float8_e8m0fnu") else 1
    elif kind in "iu":
        data.view(np.uint8)[...] = 0xA5
    elif kind == "b":
        data[...] = False
    return ArrayValue(data, Buffer(data, name, defined=False))


def combine_masks(*masks: Any) -> Any:
    """Defined where all are (with broadcasting); None: everywhere."""
    result = None
    for mask in masks:
        if mask is not None:
            result = mask if result is None else result & mask
    return result


class EvalContext:
    """What a reference function may ask: the call's type and span, and where it runs.

    ``type``: the result type of the call; ``block_idx``/``block_num``: position in an SPMD launch; ``lane``: vector
    lane; ``pipes``: cross-core queues (see :mod:`pypto.ops.pipe`); ``dims``: unused extents. One object is reused
    for many calls.
    """

    __slots__ = ("block_idx", "block_num", "lane", "pipes", "runtime", "span", "type")

    def __init__(self) -> None:
        self.type: Any = None
        self.span: Any = None
        self.block_idx = 0
        self.block_num = 1
        self.lane = 0
        self.pipes: Any = None
        self.runtime: Any = None  # services of the interpreter: task ids, notes


class UndefinedValueError(ValueError):
    """A program used an element that nothing had defined."""


class OutOfBoundsError(IndexError):
    """A window or an index left its tensor or tile."""
