"""Windows that reach past the end of their tensor, and copies that stand for a view that NumPy can not express."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._lazy import np
from .values import ArrayValue, Buffer, OutOfBoundsError, fresh


class PartialWindow(ArrayValue):
    """A window of which only ``inner``, its leading corner, exists in the buffer.

    ``data`` is put together anew at each use, so that it shows later writes to the buffer; what lies past the end is
    undefined. A write goes to the part that exists.
    """

    __slots__ = ("full_shape", "inner")

    def __init__(self, inner: Any, buffer: Buffer, full_shape: Sequence[int], valid: Sequence[int]) -> None:
        self.inner = inner
        self.buffer = buffer
        self.full_shape = tuple(full_shape)
        self.valid = tuple(valid)

    @property
    def data(self) -> Any:
        data = np.zeros(self.full_shape, self.inner.dtype)
        data[self._corner()] = self.inner
        data.flags.writeable = False
        return data

    def _corner(self) -> tuple[slice, ...]:
        return tuple(slice(0, n) for n in self.inner.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.full_shape

    @property
    def dtype(self) -> Any:
        return self.inner.dtype

    @property
    def mask(self) -> Any:
        mask = np.zeros(self.full_shape, np.bool_)
        own = self.buffer.mask_of(self.inner)
        mask[self._corner()] = True if own is None else own
        return mask

    @property
    def fully_valid(self) -> bool:
        return self.valid == self.full_shape

    def valid_data(self) -> Any:
        return self.inner[self.valid_window()]

    def valid_mask(self) -> Any:
        own = self.buffer.mask_of(self.inner)
        return None if own is None else own[self.valid_window()]

    def view(self, data: Any, valid: Sequence[int] | None = None) -> ArrayValue:
        raise OutOfBoundsError("a window that reaches past the end of its tensor has no other view")

    def write(self, window: tuple[Any, ...], values: Any, mask: Any, accumulate: bool = False) -> bool:
        if np.ndim(values) and self.inner[window].shape != np.shape(values):
            raise OutOfBoundsError("a write reaches past the end of the tensor behind this window")
        return ArrayValue(self.inner, self.buffer).write(window, values, mask, accumulate)

    def mark(self, window: tuple[Any, ...], mask: Any, accumulate: bool = False) -> bool:
        return ArrayValue(self.inner, self.buffer).mark(window, mask, accumulate)


class ReinterpretedValue(ArrayValue):
    """A view with another item size than its buffer's elements: a write marks every element that it touches."""

    __slots__ = ()

    def view(self, data: Any, valid: Sequence[int] | None = None) -> ArrayValue:
        return ReinterpretedValue(data, self.buffer, valid)

    def mark(self, window: tuple[Any, ...], mask: Any, accumulate: bool = False) -> bool:
        undefined = mask is not None and not mask.all()
        if undefined:
            self.buffer.ensure_mask()
        own = self.buffer._mask
        if own is None or accumulate:
            return bool(undefined)
        base = self.buffer.base
        target = self.data[window]
        starts = np.full(target.shape, _address(target) - _address(base), np.int64)
        for axis, stride in enumerate(target.strides):
            index = np.arange(target.shape[axis]) * stride
            starts += index.reshape([-1 if a == axis else 1 for a in range(target.ndim)])
        defined = np.broadcast_to(np.asarray(True if mask is None else mask), target.shape)
        for byte in range(0, target.itemsize, min(base.itemsize, target.itemsize)):
            own[(starts + byte) // base.itemsize] = defined
        return bool(undefined)


def _address(data: Any) -> int:
    return data.__array_interface__["data"][0]  # type: ignore[no-any-return]


def plain(value: ArrayValue) -> ArrayValue:
    """The value itself, or a read-only copy of a window that reaches past the end."""
    if type(value) is PartialWindow:
        return frozen_copy(value.data, value.mask, value.valid)
    return value


def frozen_copy(data: Any, mask: Any, valid: Sequence[int]) -> ArrayValue:
    """A copy in a buffer of its own that refuses writes, since they would not reach the original."""
    value = fresh(np.array(data), mask, valid)
    value.data.flags.writeable = False
    return value


def require_writable(op: str, target: ArrayValue) -> None:
    """Refuse to write into a copy that stands for a view."""
    if type(target) is not PartialWindow and not target.data.flags.writeable:
        raise ValueError(
            f"{op}: the target is a copy (a reshape of data that is not contiguous, or of a window past the end), so a "
            f"write would not reach the original tensor; write into the original tensor instead"
        )
