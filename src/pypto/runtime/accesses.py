"""Which tasks touch which bytes of a buffer: an index, so that a look-up does not grow with the regions elsewhere."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import attrgetter
from typing import TYPE_CHECKING

from .regions import Region

if TYPE_CHECKING:
    from .graph import Task

_FIRST_SWEEP = 32


class Access:
    """One task's use of a region."""

    __slots__ = ("number", "region", "task")

    def __init__(self, task: Task, region: Region) -> None:
        self.task = task
        self.region = region
        self.number = task.number


_NUMBER = attrgetter("number")


class _SizeClass:
    """Accesses of less than ``reach`` and at least half of ``reach`` bytes, sorted by their first byte.

    Those of similar sizes stand together, because then only the ones that start in a short stretch can overlap a
    region: one access of the whole buffer does not make each look-up search all of it.
    """

    __slots__ = ("accesses", "reach", "starts")

    def __init__(self, reach: int) -> None:
        self.reach = reach
        self.starts: list[int] = []
        self.accesses: list[Access] = []

    def add(self, access: Access) -> None:
        start = access.region.low
        at = bisect_right(self.starts, start)
        self.starts.insert(at, start)
        self.accesses.insert(at, access)

    def near(self, region: Region) -> tuple[int, int]:
        """Positions of all accesses that may overlap a region."""
        return bisect_right(self.starts, region.low - self.reach), bisect_left(self.starts, region.high)

    def replace(self, first: int, last: int, kept: list[Access]) -> None:
        """Let ``kept`` take the places from ``first`` up to ``last``."""
        self.accesses[first:last] = kept
        self.starts[first:last] = [a.region.low for a in kept]


class AccessIndex:
    """Accesses of one buffer, in the order of their tasks where several are found.

    ``keep_done``: accesses of completed tasks stay; else they are dropped when they have become the larger part.
    """

    __slots__ = ("_classes", "_sweep_at", "keep_done", "size")

    def __init__(self, keep_done: bool) -> None:
        self.keep_done = keep_done
        self.size = 0
        self._classes: dict[int, _SizeClass] = {}
        self._sweep_at = _FIRST_SWEEP

    def __iter__(self) -> Iterator[Access]:
        for group in self._classes.values():
            yield from group.accesses

    def add(self, task: Task, region: Region) -> None:
        if region.low == region.high:
            return  # no bytes: nothing can overlap it
        if self.size >= self._sweep_at and not self.keep_done:
            self._sweep()
        bits = (region.high - region.low).bit_length()
        group = self._classes.get(bits)
        if group is None:
            group = self._classes[bits] = _SizeClass(1 << bits)
        group.add(Access(task, region))
        self.size += 1

    def overlapping(self, region: Region) -> list[Task]:
        """Tasks whose region may share a byte with this one."""
        found: list[Access] = []
        for group in self._classes.values():
            first, last = group.near(region)
            found += [a for a in group.accesses[first:last] if region.overlaps(a.region)]
        found.sort(key=_NUMBER)
        return [a.task for a in found]

    def drop_covered(self, region: Region) -> None:
        """Forget the accesses that lie within a region."""
        for group in self._classes.values():
            first, last = group.near(region)
            kept = [a for a in group.accesses[first:last] if not region.covers(a.region)]
            if len(kept) < last - first:
                self.size -= last - first - len(kept)
                group.replace(first, last, kept)

    def _sweep(self) -> None:
        """Forget completed tasks; the next sweep waits until the index has doubled, so that each access pays once."""
        for group in self._classes.values():
            group.replace(0, len(group.accesses), [a for a in group.accesses if not a.task.done])
        self.size = sum(len(group.accesses) for group in self._classes.values())
        self._sweep_at = 2 * self.size + _FIRST_SWEEP
