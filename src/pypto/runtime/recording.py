"""What a run leaves behind when it is asked to: buffers, accesses of the orchestrator, and the bytes that were touched.

A :class:`Recorder` belongs to a :class:`~pypto.runtime.graph.TaskGraph`, which tells it about tasks; the interpreter
tells it about ops. :func:`run_record` puts everything into the form of :mod:`pypto.runtime.task_records`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..diag.location import Location
from ..ir.enums import ArgEffect
from ..ir.span import Span
from ..ops.definition import OpDef
from ..ops.footprint import touched_elements
from ..ops.values import ArrayValue, Buffer
from .region_set import RegionSet
from .regions import Region
from .task_records import (
    NOWHERE,
    AccessRecord,
    ArgumentRecord,
    Box,
    BufferRecord,
    EdgeKind,
    EdgeRecord,
    HostRecord,
    Mode,
    RunRecord,
    TaskRecord,
)

if TYPE_CHECKING:
    from .graph import Task, TaskGraph


class BufferInfo:
    """What is told about a buffer; it does not keep the storage."""

    __slots__ = ("dtype", "itemsize", "manual_dep", "name", "number", "shape")

    def __init__(self, number: int, buffer: Buffer) -> None:
        self.number = number
        self.name = buffer.name
        self.shape = buffer.base.shape
        self.dtype = buffer.base.dtype.name
        self.itemsize = buffer.base.itemsize
        self.manual_dep = buffer.manual_dep


class HostAccess:
    """The orchestrator touches tensors: after ``after`` submits, when the tasks of ``waits`` had completed."""

    __slots__ = ("after", "name", "span", "time", "waits")

    def __init__(self, name: str, span: Span, after: int, waits: list[Task]) -> None:
        self.name = name
        self.span = span
        self.after = after
        self.waits = waits
        self.time = time.perf_counter_ns()


class Recorder:
    """``accesses``: whether the bytes that ops touch are recorded. ``current``: who touches them."""

    def __init__(self, accesses: bool) -> None:
        self.accesses = accesses
        self.current: Task | HostAccess | None = None
        self.hosts: list[HostAccess] = []
        self.buffers: list[BufferInfo] = []
        self.touched: dict[Task | HostAccess, dict[tuple[int, Mode], RegionSet]] = {}
        self._lock = threading.Lock()  # the parts of a mixed kernel run in threads

    def info(self, buffer: Buffer, known: BufferInfo | None) -> BufferInfo:
        """The buffer's entry, made on first sight; names may come later."""
        if known is None:
            known = BufferInfo(len(self.buffers), buffer)
            self.buffers.append(known)
        elif not known.name:
            known.name = buffer.name
        return known

    def host(self, name: str, span: Span, after: int, waits: Iterable[Task]) -> HostAccess:
        """The orchestrator waited for tasks. Those that it has waited for before need no mention."""
        new = []
        for task in waits:
            if not task.synced:
                task.synced = True
                new.append(task)
        made = HostAccess(name, span, after, new)
        self.hosts.append(made)
        return made

    def op(
        self,
        graph: TaskGraph,
        definition: OpDef,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        touched: Iterable[tuple[int, ArgEffect, bool]],
    ) -> None:
        """An op of the current task, or of the orchestrator, touches these operands."""
        for index, effect, atomic in touched:
            elements = touched_elements(definition, index, args, kwargs, effect)
            mode = Mode.ATOMIC if atomic else Mode.READ if effect is ArgEffect.Read else Mode.WRITE
            buffer = args[index].buffer
            self._add(graph, self.current, buffer, Region.of_array(elements, buffer.base), mode)

    def result(self, graph: TaskGraph, task: Task, value: ArrayValue) -> None:
        """A task made storage and filled it."""
        if self.accesses:
            self._add(graph, task, value.buffer, Region(value), Mode.WRITE)

    def _add(self, graph: TaskGraph, who: Any, buffer: Buffer, region: Region, mode: Mode) -> None:
        if region.low == region.high or who is None:
            return
        with self._lock:
            key = graph.info_of(buffer).number, mode
            touched = self.touched.setdefault(who, {})
            regions = touched.get(key)
            if regions is None:
                regions = touched[key] = RegionSet()
            regions.add(region)


def run_record(graph: TaskGraph) -> RunRecord:
    """The record of a run so far; ``ValueError`` for a graph that kept none."""
    recorder = graph.recorder
    if recorder is None:
        raise ValueError("this run was not recorded: TaskGraph(record=True)")
    record = RunRecord(
        buffers=[BufferRecord(b.number, b.name, b.shape, b.dtype, b.itemsize, b.manual_dep) for b in recorder.buffers]
    )
    for task in graph.tasks:
        record.tasks.append(_task_record(task))
        record.arguments += [
            ArgumentRecord(task.number, info.number, tag.value, _as_box(region)) for info, tag, region in task.arguments
        ]
        record.edges += [
            EdgeRecord(
                edge.producer.number,
                task.number,
                edge.kind,
                edge.reason,
                -1 if edge.info is None else edge.info.number,
                _box(edge.producer_region),
                _box(edge.region),
                edge.also,
            )
            for edge in task.edges.values()
        ]
    numbers: dict[Any, int] = {}
    for number, host in enumerate(recorder.hosts, len(record.tasks)):
        numbers[host] = number
        record.hosts.append(HostRecord(number, host.name, host.after, Location.of(host.span) or NOWHERE, host.time))
        record.edges += [
            EdgeRecord(task.number, number, EdgeKind.SYNC, "the orchestrator waits") for task in host.waits
        ]
    for who, touched in recorder.touched.items():
        number = numbers[who] if isinstance(who, HostAccess) else who.number
        for (buffer, mode), regions in touched.items():
            record.accesses += [AccessRecord(number, buffer, mode, _as_box(region)) for region in regions.compact()]
    return record


def _task_record(task: Task) -> TaskRecord:
    return TaskRecord(
        task.number,
        task.name,
        task.name,
        Location.of(task.span) or NOWHERE,
        task.submitted,
        task.ready,
        task.started,
        task.ended,
        0,
        task.blocks,
        task.manual,
    )


def _box(region: Region | None) -> Box | None:
    return None if region is None else _as_box(region)


def _as_box(region: Region) -> Box:
    return Box(region.low, region.shape, region.strides, region.itemsize)


__all__ = ["Recorder", "run_record"]
