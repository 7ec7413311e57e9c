"""The bytes of a view inside its buffer, and whether two views overlap."""

from __future__ import annotations

from typing import Any

from ..ops.values import ArrayValue


class Region:
    """A strided box of bytes relative to the buffer's start: extents ``[low, high)``, shape and byte strides."""

    __slots__ = ("high", "low", "shape", "strides")

    def __init__(self, value: ArrayValue) -> None:
        data: Any = value.data
        base = value.buffer.base
        self.low = 0
        if data is not base:
            self.low = data.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        self.high = self.low
        if data.size:
            self.high += data.itemsize
            for n, stride in zip(data.shape, data.strides, strict=True):
                self.high += (n - 1) * stride
        self.shape = data.shape
        self.strides = data.strides

    def overlaps(self, other: Region) -> bool:
        """Whether the two may share a byte; exact for boxes of equal strides."""
        if self.high <= other.low or other.high <= self.low:
            return False
        if self.low == self.high or other.low == other.high:
            return False  # no bytes
        if self.strides != other.strides or not _nested(self.strides):
            return True
        a, b = self.low, other.low
        for n, m, stride in zip(self.shape, other.shape, self.strides, strict=True):
            start_a, a = divmod(a, stride)
            start_b, b = divmod(b, stride)
            if start_a >= start_b + m or start_b >= start_a + n:
                return False
        return True

    def covers(self, other: Region) -> bool:
        """Whether every byte of ``other`` is certainly in this region."""
        if self.low > other.low or self.high < other.high:
            return False
        contiguous = self._contiguous()
        if contiguous:
            return True
        return self.strides == other.strides and self.low == other.low and self.shape == other.shape

    def _contiguous(self) -> bool:
        size = 1
        for n in self.shape:
            size *= n
        return size * (self.strides[-1] if self.strides else 1) == self.high - self.low


def _nested(strides: tuple[int, ...]) -> bool:
    """Whether each stride divides the one before it, so that positions are digits of an offset."""
    return all(s > 0 for s in strides) and all(a % b == 0 for a, b in zip(strides, strides[1:], strict=False))
