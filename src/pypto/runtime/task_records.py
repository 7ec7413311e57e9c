"""What a run did, in one form that every executor fills: tasks, why they waited for each other, and what they touched.

All records are flat and refer to each other by number, so that they can be made from plain tuples:
``TaskRecord(*row)``. Times are ns of one monotonic clock; 0 stands for "not known". Regions are boxes of bytes
relative to the start of their buffer.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence

import msgspec

from ..diag.location import Location
from .regions import Region

NOWHERE = Location("", -1, -1)


class EdgeKind(str, enum.Enum):
    """Why a task waits for another."""

    ALLOCATION = "allocation"  # the producer owns the storage
    OVERLAP = "overlap"  # it writes bytes of the consumer's argument
    EXPLICIT = "explicit"  # the program names it: deps=
    COMPILER = "compiler"  # the compiler found that it is needed
    SYNC = "sync"  # the orchestrator waits for it before it touches a tensor itself
    SOURCE_ORDER = "source order"  # it reads what the consumer overwrites


class Mode(str, enum.Enum):
    """How a region is touched. Two accesses of the same bytes conflict unless both read or both are atomic."""

    READ = "read"
    WRITE = "write"  # perhaps after reading
    ATOMIC = "atomic"  # combined by the memory, in any order


class Box(msgspec.Struct, frozen=True):
    """Elements of ``itemsize`` bytes at ``low + sum(index * stride)``; ``low`` and ``strides`` in bytes."""

    low: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    def region(self) -> Region:
        """The box as a region that can be compared."""
        return Region.box(self.low, self.shape, self.strides, self.itemsize)


class BufferRecord(msgspec.Struct, frozen=True):
    """Storage that tasks share. ``shape``, ``dtype`` and ``itemsize`` are those it was made with, row by row.

    ``manual_dep``: the program takes care of the order of its users.
    """

    number: int
    name: str
    shape: tuple[int, ...] = ()
    dtype: str = ""
    itemsize: int = 1
    manual_dep: bool = False

    def describe(self, box: Box) -> str:
        """A region in elements, ``name[0:4, 8:16]``, where the buffer's own axes can express it, else in bytes."""
        name = self.name or "a tensor"
        slices = self._slices(box)
        if slices is None:
            region = box.region()
            return f"bytes {region.low}:{region.high} of {name}"
        return f"{name}[{', '.join(slices)}]"

    def _slices(self, box: Box) -> list[str] | None:
        """The box as slices of the buffer's axes; None where it is no such thing."""
        if box.itemsize != self.itemsize or not self.shape:
            return None
        pitch = [self.itemsize] * len(self.shape)
        for axis in range(len(self.shape) - 2, -1, -1):
            pitch[axis] = pitch[axis + 1] * self.shape[axis + 1]
        extents = self._by_axis(box, pitch)
        if extents is None:
            return None
        found, rest = [], box.low
        for axis, size in enumerate(pitch):
            start, rest = divmod(rest, size)
            count, step = extents[axis]
            stop = start + (count - 1) * step + 1
            if stop > self.shape[axis]:
                return None
            found.append(f"{start}:{stop}" + (f":{step}" if step > 1 else ""))
        return None if rest else found

    def _by_axis(self, box: Box, pitch: Sequence[int]) -> list[tuple[int, int]] | None:
        """``(count, step)`` for each axis of the buffer; axes of the box that run over several are taken apart."""
        extents = [(1, 1)] * len(pitch)
        for count, stride in zip(box.shape, box.strides, strict=True):
            if count == 1:
                continue
            axis = next((i for i, size in enumerate(pitch) if size <= stride), None)
            if axis is None or stride % pitch[axis]:
                return None
            step = stride // pitch[axis]
            while axis > 0 and step == 1 and count > self.shape[axis] and count % self.shape[axis] == 0:
                if extents[axis] != (1, 1):
                    return None
                extents[axis] = (self.shape[axis], 1)
                count //= self.shape[axis]
                axis -= 1
            if count == 1:
                continue
            if extents[axis] != (1, 1):
                return None
            extents[axis] = (count, step)
        return extents


class TaskRecord(msgspec.Struct, frozen=True):
    """One submit. ``number`` is its place among the tasks in submit order; ``worker`` the core or thread it ran on;
    ``blocks`` the instances of its kernel. ``manual``: only explicit dependencies order it.
    """

    number: int
    name: str
    kernel: str = ""
    source: Location = NOWHERE
    submitted: int = 0
    ready: int = 0
    started: int = 0
    ended: int = 0
    worker: int = 0
    blocks: int = 1
    manual: bool = False

    def __str__(self) -> str:
        return f"{self.name}#{self.number}"


class HostRecord(msgspec.Struct, frozen=True):
    """The orchestrator itself touches tensors. ``number`` goes on behind those of the tasks, so that edges and accesses
    can name it; ``after``: how many tasks had been submitted. Tasks that come later run after it.
    """

    number: int
    name: str
    after: int
    source: Location = NOWHERE
    time: int = 0

    def __str__(self) -> str:
        return f"{self.name} by the orchestrator"


class ArgumentRecord(msgspec.Struct, frozen=True):
    """A tensor argument of a task, with the tag that says how it orders the task, and where it lies if known."""

    task: int
    buffer: int
    tag: str
    box: Box | None = None


class EdgeRecord(msgspec.Struct, frozen=True):
    """``consumer`` waits for ``producer``. ``buffer`` is what an automatic edge is about (-1: nothing), the boxes are
    the overlapping arguments of the two. ``also``: further kinds of order between the two, where they are recorded.
    """

    producer: int
    consumer: int
    kind: EdgeKind
    reason: str
    buffer: int = -1
    producer_box: Box | None = None
    consumer_box: Box | None = None
    also: tuple[EdgeKind, ...] = ()


class AccessRecord(msgspec.Struct, frozen=True):
    """Bytes that a task, or the orchestrator, really touched."""

    task: int
    buffer: int
    mode: Mode
    box: Box


class RunRecord(msgspec.Struct):
    """One run. ``tasks`` in submit order; edges and accesses in any order. ``accesses`` is empty unless they were
    asked for: it is what the search for races reads.
    """

    tasks: list[TaskRecord] = []
    hosts: list[HostRecord] = []
    buffers: list[BufferRecord] = []
    arguments: list[ArgumentRecord] = []
    edges: list[EdgeRecord] = []
    accesses: list[AccessRecord] = []

    def who(self, number: int) -> TaskRecord | HostRecord:
        """The task or the access of the orchestrator with a number."""
        count = len(self.tasks)
        return self.tasks[number] if number < count else self.hosts[number - count]

    def in_order(self) -> Iterator[TaskRecord | HostRecord]:
        """All of them as the orchestrator came to them."""
        hosts = iter(self.hosts)
        host = next(hosts, None)
        for at, task in enumerate(self.tasks):
            while host is not None and host.after <= at:
                yield host
                host = next(hosts, None)
            yield task
        while host is not None:
            yield host
            host = next(hosts, None)


__all__ = [
    "AccessRecord",
    "ArgumentRecord",
    "Box",
    "BufferRecord",
    "EdgeKind",
    "EdgeRecord",
    "HostRecord",
    "Mode",
    "RunRecord",
    "TaskRecord",
]
