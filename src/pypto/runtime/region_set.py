"""The regions that one task touches of one buffer, put together where they adjoin."""

from __future__ import annotations

from functools import partial
from typing import Any

from .regions import Region

# How many of the last regions a new one is compared with: kernels walk through a few windows at a time.
_RECENT = 4
_FIRST_SWEEP = 64


class RegionSet:
    """Boxes whose union is what was added. A walk over tiles or rows, in any nesting, ends as one box."""

    __slots__ = ("_regions", "_sweep_at")

    def __init__(self) -> None:
        self._regions: list[Region] = []
        self._sweep_at = _FIRST_SWEEP

    def __len__(self) -> int:
        return len(self._regions)

    def add(self, region: Region) -> None:
        """Add one; a few comparisons."""
        regions = self._regions
        at = len(regions) - 1
        last = at - _RECENT
        while at >= 0 and at > last:
            merged = regions[at].merged(region)
            if merged is regions[at]:
                return
            if merged is not None:  # the larger box may adjoin another one now
                del regions[at]
                region = merged
                at = len(regions) - 1
                last = at - _RECENT
            else:
                at -= 1
        regions.append(region)
        if len(regions) >= self._sweep_at:
            self._sweep_at = 2 * len(self.compact()) + _FIRST_SWEEP

    def compact(self) -> list[Region]:
        """The boxes, after merging along one axis after the other; n log n."""
        axes = max((len(region.shape) for region in self._regions), default=0)
        for axis in range(axes - 1, -1, -1) if len(self._regions) > 1 else ():
            self._regions.sort(key=partial(_order_along, axis))
            merged: list[Region] = []
            for region in self._regions:
                together = merged[-1].merged(region) if merged else None
                if together is None:
                    merged.append(region)
                else:
                    merged[-1] = together
            self._regions = merged
        return self._regions


def _order_along(axis: int, region: Region) -> tuple[Any, ...]:
    """Brings boxes that differ in their place along one axis only next to each other, in the order of their places."""
    place = [0] * len(region.shape)
    rest = region.low
    for stride, i in sorted(((s, i) for i, s in enumerate(region.strides)), reverse=True):
        if stride:
            place[i], rest = divmod(rest, stride)
    if axis >= len(place):
        return region.itemsize, region.strides, region.shape, place, rest, 0
    shape = region.shape[:axis] + region.shape[axis + 1 :]
    return region.itemsize, region.strides, shape, place[:axis] + place[axis + 1 :], rest, place[axis]


__all__ = ["RegionSet"]
