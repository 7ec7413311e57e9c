"""Which regions of a buffer stand for what: an index, so that a look-up does not grow with the regions elsewhere."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from .regions import Region

if TYPE_CHECKING:
    from .graph import Task

_FIRST_SWEEP = 32


class HasRegion(Protocol):
    """What an index holds."""

    region: Region


T = TypeVar("T", bound=HasRegion)


class Access:
    """One task's use of a region."""

    __slots__ = ("number", "region", "task")

    def __init__(self, task: Task, region: Region) -> None:
        self.task = task
        self.region = region
        self.number = task.number


_NUMBER = attrgetter("number")


class _SizeClass(Generic[T]):
    """Items of less than ``reach`` and at least half of ``reach`` bytes, sorted by their first byte.

    Those of similar sizes stand together, because then only the ones that start in a short stretch can overlap a
    region: one item of the whole buffer does not make each look-up search all of it.
    """

    __slots__ = ("items", "reach", "starts")

    def __init__(self, reach: int) -> None:
        self.reach = reach
        self.starts: list[int] = []
        self.items: list[T] = []

    def add(self, item: T) -> None:
        start = item.region.low
        at = bisect_right(self.starts, start)
        self.starts.insert(at, start)
        self.items.insert(at, item)

    def near(self, region: Region) -> tuple[int, int]:
        """Positions of all items that may overlap a region."""
        return bisect_right(self.starts, region.low - self.reach), bisect_left(self.starts, region.high)

    def replace(self, first: int, last: int, kept: list[T]) -> None:
        """Let ``kept`` take the places from ``first`` up to ``last``."""
        self.items[first:last] = kept
        self.starts[first:last] = [item.region.low for item in kept]


class RegionIndex(Generic[T]):
    """Things that have a region of one buffer."""

    __slots__ = ("_classes", "size")

    def __init__(self) -> None:
        self.size = 0
        self._classes: dict[int, _SizeClass[T]] = {}

    def __iter__(self) -> Iterator[T]:
        for group in self._classes.values():
            yield from group.items

    def insert(self, item: T) -> None:
        """Add one whose region has bytes."""
        region = item.region
        bits = (region.high - region.low).bit_length()
        group = self._classes.get(bits)
        if group is None:
            group = self._classes[bits] = _SizeClass(1 << bits)
        group.add(item)
        self.size += 1

    def find(self, region: Region) -> list[T]:
        """Those whose region may share a byte with this one."""
        found: list[T] = []
        for group in self._classes.values():
            first, last = group.near(region)
            found += [item for item in group.items[first:last] if region.overlaps(item.region)]
        return found

    def drop(self, region: Region, unwanted: Callable[[T], bool]) -> None:
        """Forget the unwanted among those that may overlap a region."""
        for group in self._classes.values():
            first, last = group.near(region)
            kept = [item for item in group.items[first:last] if not unwanted(item)]
            if len(kept) < last - first:
                self.size -= last - first - len(kept)
                group.replace(first, last, kept)


class AccessIndex(RegionIndex[Access]):
    """Accesses of one buffer, in the order of their tasks where several are found.

    ``keep_done``: accesses of completed tasks stay; else they are dropped when they have become the larger part.
    """

    __slots__ = ("_sweep_at", "keep_done")

    def __init__(self, keep_done: bool) -> None:
        super().__init__()
        self.keep_done = keep_done
        self._sweep_at = _FIRST_SWEEP

    def add(self, task: Task, region: Region) -> None:
        """Add a task's access."""
        if region.low == region.high:
            return  # no bytes: nothing can overlap it
        if self.size >= self._sweep_at and not self.keep_done:
            self._sweep()
        self.insert(Access(task, region))

    def overlapping(self, region: Region) -> list[Access]:
        """Accesses whose region may share a byte with this one."""
        return sorted(self.find(region), key=_NUMBER)

    def drop_covered(self, region: Region) -> None:
        """Forget the accesses that lie within a region."""
        covers = region.covers
        self.drop(region, lambda access: covers(access.region))

    def _sweep(self) -> None:
        """Forget completed tasks; the next sweep waits until the index has doubled, so that each access pays once."""
        for group in self._classes.values():
            group.replace(0, len(group.items), [a for a in group.items if not a.task.done])
        self.size = sum(len(group.items) for group in self._classes.values())
        self._sweep_at = 2 * self.size + _FIRST_SWEEP
