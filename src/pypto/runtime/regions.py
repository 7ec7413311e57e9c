"""The bytes of a view inside its buffer, and whether two views overlap."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any

from ..ops.partial_window import PartialWindow
from ..ops.values import ArrayValue

# Steps that a search for a common byte may take before it answers "perhaps". Boxes of equal strides need far less.
_SEARCH_LIMIT = 2_000


class Region:
    """A strided box of bytes relative to the buffer's start: elements of ``itemsize`` bytes in ``[low, high)`` at
    ``low + sum(i * stride)``; shape, strides and offsets in bytes. Strides are not negative.
    """

    __slots__ = ("high", "itemsize", "low", "shape", "strides")

    def __init__(self, value: ArrayValue) -> None:
        # A window past the end has no array of its own: its bytes are those of the part that exists.
        data: Any = value.inner if type(value) is PartialWindow else value.data
        base = value.buffer.base
        self._set(0 if data is base else _address(data) - _address(base), data.shape, data.strides, data.itemsize)

    def _set(self, low: int, shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> None:
        high = low
        if 0 not in shape:
            high += itemsize
            for n, stride in zip(shape, strides, strict=True):
                if stride >= 0:
                    high += (n - 1) * stride
                else:  # counted from the other end
                    low += (n - 1) * stride
                    strides = tuple(map(abs, strides))
        self.low = low
        self.high = high
        self.shape = shape
        self.strides = strides
        self.itemsize = itemsize

    @staticmethod
    def box(low: int, shape: Sequence[int], strides: Sequence[int], itemsize: int) -> Region:
        """The region of these numbers, which need no array."""
        made = Region.__new__(Region)
        made._set(low, tuple(shape), tuple(strides), itemsize)
        return made

    @staticmethod
    def of_array(data: Any, base: Any) -> Region:
        """The region of a NumPy view into ``base``."""
        return Region.box(_address(data) - _address(base), data.shape, data.strides, data.itemsize)

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for regions that are the same box."""
        return self.low, self.shape, self.strides, self.itemsize

    def overlaps(self, other: Region) -> bool:
        """Whether the two may share a byte; exact for boxes of equal strides, and mostly for others."""
        if self.high <= other.low or other.high <= self.low:
            return False
        if self.low == self.high or other.low == other.high:
            return False  # no bytes
        if self._contiguous() and other._contiguous():
            return True
        return _meet(self, other)

    def covers(self, other: Region) -> bool:
        """Whether every byte of ``other`` is certainly in this region."""
        if self.low > other.low or self.high < other.high:
            return False
        if self._contiguous():
            return True
        if self.itemsize != other.itemsize or self.strides != other.strides:
            return False
        rest = other.low - self.low
        for stride, n, m in sorted(zip(self.strides, self.shape, other.shape, strict=True), reverse=True):
            if n < m:
                return False
            if stride:
                rest -= min(rest // stride, n - m) * stride
        return rest == 0

    def merged(self, other: Region) -> Region | None:
        """One box that is exactly both together; None where there is none that is found at once."""
        if self.low > other.low:
            self, other = other, self
        if self.covers(other):
            return self
        if other.covers(self):
            return other
        if self.itemsize != other.itemsize or self.strides != other.strides:
            return None
        axis = -1
        for i, (n, m) in enumerate(zip(self.shape, other.shape, strict=True)):
            if n != m:
                if axis >= 0:
                    return None
                axis = i
        shift = other.low - self.low
        for i in (axis,) if axis >= 0 else range(len(self.shape)):
            stride = self.strides[i]
            if stride and shift % stride == 0 and shift // stride <= self.shape[i]:
                shape = list(self.shape)
                shape[i] = max(shape[i], shift // stride + other.shape[i])
                return Region.box(self.low, shape, self.strides, self.itemsize)
        return None

    def _contiguous(self) -> bool:
        run = self.itemsize
        for n, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if n > 1:
                if stride != run:
                    return self._gapless()
                run *= n
        return True

    def _gapless(self) -> bool:
        """Whether axes in another order than row by row leave no byte out."""
        run = self.itemsize
        for stride, n in sorted(zip(self.strides, self.shape, strict=True)):
            if n > 1:
                if stride > run:
                    return False
                run += (n - 1) * stride
        return True


def _address(data: Any) -> int:
    return data.__array_interface__["data"][0]  # type: ignore[no-any-return]


def _meet(a: Region, b: Region) -> bool:
    """Whether a byte of one box is a byte of the other.

    That is a sum: ``sum(k * stride) = b.low - a.low`` with each k in a range. Axes of one stride share their k: its
    range is that of the difference of the two positions. The difference of the bytes within the elements is a k of
    stride 1.
    """
    ranges: dict[int, list[int]] = {1: [1 - b.itemsize, a.itemsize - 1]}
    for n, stride in zip(a.shape, a.strides, strict=True):
        ranges.setdefault(stride, [0, 0])[1] += n - 1
    for n, stride in zip(b.shape, b.strides, strict=True):
        ranges.setdefault(stride, [0, 0])[0] -= n - 1
    ranges.pop(0, None)  # a broadcast axis adds nothing
    terms = sorted(((s, lo, hi) for s, (lo, hi) in ranges.items()), reverse=True)
    # What the terms behind each one can add: their least and largest sum, and the divisor of all but the bytes.
    reach = [(0, 0)]
    divisors = [0]
    for stride, lo, hi in reversed(terms):
        reach.append((reach[-1][0] + stride * lo, reach[-1][1] + stride * hi))
        divisors.append(0 if stride == 1 else gcd(divisors[-1], stride))
    return _Search(terms, reach[::-1], divisors[::-1], ranges[1]).find(0, b.low - a.low)


class _Search:
    """Looks for a sum of multiples of strides that is a wanted number."""

    __slots__ = ("divisors", "left", "reach", "terms", "within")

    def __init__(self, terms: list[Any], reach: list[Any], divisors: list[int], within: list[int]) -> None:
        self.terms = terms
        self.reach = reach
        self.divisors = divisors
        self.within = within
        self.left = _SEARCH_LIMIT

    def find(self, at: int, wanted: int) -> bool:
        """Whether the terms from ``at`` on can give ``wanted``; True as well when the search takes too long."""
        least, most = self.reach[at]
        if not least <= wanted <= most:
            return False
        stride, lo, hi = self.terms[at]
        if stride == 1:
            return True  # the last term, and every number in its range
        divisor = self.divisors[at]
        # Some byte difference must leave a multiple of all the strides that are left.
        if (wanted - self.within[0]) // divisor * divisor < wanted - self.within[1]:
            return False
        self.left -= 1
        if self.left <= 0:
            return True
        least, most = self.reach[at + 1]
        first = max(lo, -((most - wanted) // stride))
        last = min(hi, (wanted - least) // stride)
        return any(self.find(at + 1, wanted - k * stride) for k in range(first, last + 1))
