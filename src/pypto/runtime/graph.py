"""The task graph of a run: how arguments order tasks (spec 10, sections 3 and 4), and legal orders to run them in."""

from __future__ import annotations

import enum
import random
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..ir.span import Span
from ..ops.values import ArrayValue, Buffer
from .accesses import Access, AccessIndex
from .recording import BufferInfo, Recorder
from .regions import Region
from .task_records import EdgeKind


class Tag(enum.Enum):
    """How an argument takes part in automatic ordering."""

    INPUT = "input"
    INOUT = "inout"
    OUTPUT = "output"
    OUTPUT_EXISTING = "output_existing"
    NO_DEP = "no_dep"
    # Source-level write of a program whose directions are not derived yet: ordered like INOUT, and after readers.
    SOURCE_WRITE = "source_write"


_LOOKS_UP = (Tag.INPUT, Tag.INOUT, Tag.SOURCE_WRITE)
_REGISTERS = (Tag.INOUT, Tag.OUTPUT_EXISTING, Tag.SOURCE_WRITE)


_REASONS = {
    EdgeKind.ALLOCATION: "allocation of {}",
    EdgeKind.OVERLAP: "overlap with the write of {}",
    EdgeKind.SOURCE_ORDER: "overwrites what is read of {}",
}


class Edge:
    """Why a task waits for another. An automatic edge knows the buffer; one by overlap the arguments' regions, too.
    ``also``: what else orders the two.
    """

    __slots__ = ("also", "info", "kind", "producer", "producer_region", "region")

    def __init__(
        self,
        producer: Task,
        kind: EdgeKind,
        info: BufferInfo | None = None,
        producer_region: Region | None = None,
        region: Region | None = None,
    ) -> None:
        self.producer = producer
        self.kind = kind
        self.also: tuple[EdgeKind, ...] = ()
        self.info = info
        self.producer_region = producer_region
        self.region = region

    @property
    def reason(self) -> str:
        """In words."""
        name = self.info.name if self.info is not None else ""
        return _REASONS[self.kind].format(name or "a tensor") if self.kind in _REASONS else self.kind.value

    def __repr__(self) -> str:
        return f"{self.producer!r}: {self.reason}"


class Task:
    """One submit. ``waiting``: how many producers are not done; ``slot``: where it stands in the list of ready tasks;
    ``started``/``ended``: ns of the monotonic clock. Of a recorded run only: ``submitted``/``ready``, ``blocks``,
    ``manual``, ``arguments`` (buffer, tag and region), and ``synced``: the orchestrator has waited for it.
    """

    __slots__ = (
        "arguments",
        "blocks",
        "body",
        "consumers",
        "done",
        "edges",
        "ended",
        "manual",
        "name",
        "number",
        "predicate",
        "ready",
        "slot",
        "span",
        "started",
        "submitted",
        "synced",
        "waiting",
    )

    def __init__(self, number: int, name: str, body: Callable[[], None], span: Span) -> None:
        self.number = number
        self.name = name
        self.body = body
        self.span = span
        self.done = False
        self.edges: dict[Task, Edge] = {}
        self.consumers: list[Task] = []
        self.waiting = 0
        self.slot = -1
        self.predicate: Callable[[], bool] | None = None
        self.started = self.ended = 0

    def note(self, manual: bool, blocks: int) -> None:
        """Begin what a recorded run tells about the task."""
        self.manual = manual
        self.blocks = blocks
        self.arguments: list[tuple[BufferInfo, Tag, Region]] = []
        self.synced = False
        self.submitted = self.ready = time.perf_counter_ns()

    def __repr__(self) -> str:
        return f"{self.name}#{self.number}"


class InvalidTaskId:
    """The null task id: no producer yet."""

    def __repr__(self) -> str:
        return "invalid"


INVALID_TASK = InvalidTaskId()


class _Record:
    """Live accesses of one buffer."""

    __slots__ = ("info", "readers", "writers")

    def __init__(self, keep_done: bool) -> None:
        self.info: BufferInfo | None = None
        self.writers = AccessIndex(keep_done)
        self.readers = AccessIndex(keep_done)


class TaskGraph:
    """Tasks of one run.

    ``schedule`` "submit" runs each task as it is submitted; "random" defers them and runs ready ones in a seeded random
    order. ``record`` keeps the tasks in ``tasks``, and edges to completed tasks too; with ``accesses`` also the bytes
    that tasks touch (see :func:`pypto.runtime.recording.run_record`). ``order_reads``: what writes waits for earlier
    readers of it, also where the rules leave that open. Counters: ``submitted``, ``edge_count``,
    ``task_ns`` (time inside tasks), ``first_start``, ``last_end``.
    """

    def __init__(
        self,
        schedule: str = "submit",
        seed: int = 0,
        record: bool = False,
        accesses: bool = False,
        order_reads: bool = False,
    ) -> None:
        if schedule not in ("submit", "default", "random"):
            raise ValueError(f"schedule must be 'submit' or 'random', got {schedule!r}")
        self.deferred = schedule == "random"
        self.rng = random.Random(seed)
        self.record = record or accesses
        self.recorder = Recorder(accesses) if self.record else None
        self.order_reads = order_reads
        self.ordered = self.deferred or self.record  # whether anybody asks for the order of tasks
        self.tasks: list[Task] = []
        self.pending: dict[Task, None] = {}
        self.ready: list[Task] = []
        self.submitted = 0
        self.edge_count = 0
        self.task_ns = self.first_start = self.last_end = 0

    # --- submission ---------------------------------------------------------------------------------------------------

    def submit(
        self,
        name: str,
        body: Callable[[], None],
        span: Span,
        arguments: Sequence[tuple[ArrayValue, Tag]],
        explicit: Iterable[Any],
        manual: bool,
        predicate: Callable[[], bool] | None = None,
        compiler: Iterable[Any] = (),
        blocks: int = 1,
    ) -> Task:
        """Add a task; in submit order it has run when this returns.

        ``explicit``: tasks that the program orders it after; ``compiler``: those that the compiler does.
        """
        task = Task(self.submitted, name, body, span)
        task.predicate = predicate
        self.submitted += 1
        if self.record:
            task.note(manual, blocks)
            self.tasks.append(task)
        if self.ordered:
            self._order(task, arguments, manual)
            for kind, deps in ((EdgeKind.EXPLICIT, explicit), (EdgeKind.COMPILER, compiler)):
                for dep in deps:
                    if isinstance(dep, Task):
                        self._edge(task, dep, kind)
        if not self.deferred:
            self._run(task)
            return task
        self.pending[task] = None
        for producer in task.edges:
            if not producer.done:
                producer.consumers.append(task)
                task.waiting += 1
        if not task.waiting:
            self._make_ready(task)
        return task

    def _edge(self, task: Task, producer: Task, kind: EdgeKind, *details: Any) -> None:
        if producer is task or (producer.done and not self.record):
            return
        known = task.edges.get(producer)
        if known is not None:
            if self.record and kind is not known.kind and kind not in known.also:
                known.also += (kind,)
            return
        task.edges[producer] = Edge(producer, kind, *details)
        self.edge_count += 1

    def _record_of(self, buffer: Buffer) -> _Record:
        record: _Record | None = buffer.record
        if record is None:
            record = buffer.record = _Record(self.record)
        if self.recorder is not None:
            record.info = self.recorder.info(buffer, record.info)
        return record

    def info_of(self, buffer: Buffer) -> BufferInfo:
        """What a recorded run tells about a buffer."""
        info = self._record_of(buffer).info
        assert info is not None, "the run is not recorded"
        return info

    def _order(self, task: Task, arguments: Sequence[tuple[ArrayValue, Tag]], manual: bool) -> None:
        for value, tag in arguments:
            buffer: Buffer = value.buffer
            owner = buffer.owner
            record = self._record_of(buffer)
            region = Region(value)
            if record.info is not None:
                task.arguments.append((record.info, tag, region))
            if isinstance(owner, Task) and not manual:
                self._edge(task, owner, EdgeKind.ALLOCATION, record.info)
            automatic = not manual and not buffer.manual_dep
            if automatic and tag in _LOOKS_UP:
                self._look_up(task, record, region, tag)
            if automatic and self.order_reads and tag in (Tag.INOUT, Tag.OUTPUT_EXISTING):
                self._wait_for_readers(task, record, region)
            # A manual task is registered too: automatic tasks behind the manual scope are ordered after it.
            if tag in _REGISTERS:
                # Who comes after this task comes after all that it waited for.
                if automatic and tag in _LOOKS_UP:
                    record.writers.drop_covered(region)
                if automatic and tag is Tag.SOURCE_WRITE:
                    record.readers.drop_covered(region)
                record.writers.add(task, region)
            if tag is Tag.INPUT or tag is Tag.INOUT:
                record.readers.add(task, region)

    def _look_up(self, task: Task, record: _Record, region: Region, tag: Tag) -> None:
        for writer in record.writers.overlapping(region):
            self._edge(task, writer.task, EdgeKind.OVERLAP, record.info, writer.region, region)
        if tag is Tag.SOURCE_WRITE:
            self._wait_for_readers(task, record, region)

    def _wait_for_readers(self, task: Task, record: _Record, region: Region) -> None:
        for reader in record.readers.overlapping(region):
            self._edge(task, reader.task, EdgeKind.SOURCE_ORDER, record.info, reader.region, region)

    def own(self, task: Task, values: Iterable[ArrayValue]) -> None:
        """The task allocated these."""
        for value in values:
            if value.buffer.owner is None and not value.buffer.external:
                value.buffer.owner = task
                if self.recorder is not None:
                    self.recorder.result(self, task, value)

    # --- execution ----------------------------------------------------------------------------------------------------

    def _run(self, task: Task) -> None:
        recorder = self.recorder
        if recorder is not None:
            recorder.current = task
        task.started = time.perf_counter_ns()
        if task.predicate is None or task.predicate():
            task.body()
        task.ended = time.perf_counter_ns()
        if recorder is not None:
            recorder.current = None
        task.done = True
        task.body = _finished
        task.predicate = None
        self.first_start = self.first_start or task.started
        self.last_end = task.ended
        self.task_ns += task.ended - task.started

    def wait_for(self, tasks: Iterable[Task]) -> None:
        """Run tasks in random legal order until these are done: these and what they wait for, nothing else."""
        among = self._unfinished_ancestors(tasks)
        candidates = [t for t in among if not t.waiting]
        left = len(among)
        while candidates:
            task = self._draw(candidates)
            self._run_ready(task)
            left -= 1
            candidates += [t for t in task.consumers if not t.waiting and t in among]
            task.consumers.clear()
        if left:
            raise RuntimeError("no task can run: the dependencies form a cycle")

    def _unfinished_ancestors(self, tasks: Iterable[Task]) -> dict[Task, None]:
        """These tasks and all that they wait for, in an order that does not depend on hashes."""
        found: dict[Task, None] = {}
        stack = list(tasks)
        while stack:
            task = stack.pop()
            if task not in found and not task.done:
                found[task] = None
                stack.extend(task.edges)
        return found

    def _make_ready(self, task: Task) -> None:
        if self.record:
            task.ready = time.perf_counter_ns()
        task.slot = len(self.ready)
        self.ready.append(task)

    def _draw(self, candidates: list[Task]) -> Task:
        """Take a random task out of a list: the last one takes its place."""
        at = self.rng.randrange(len(candidates))
        task = candidates[at]
        candidates[at] = candidates[-1]
        candidates.pop()
        return task

    def _run_ready(self, task: Task) -> None:
        """Run a ready task and count it off in its consumers."""
        last = self.ready.pop()
        if last is not task:
            self.ready[task.slot] = last
            last.slot = task.slot
        del self.pending[task]
        self._run(task)
        for consumer in task.consumers:
            consumer.waiting -= 1
            if not consumer.waiting:
                self._make_ready(consumer)

    def finish(self) -> None:
        """Run everything that is left."""
        while self.ready:
            task = self.ready[self.rng.randrange(len(self.ready))]
            self._run_ready(task)
            task.consumers.clear()
        if self.pending:
            raise RuntimeError("no task can run: the dependencies form a cycle")

    def sync(self, value: ArrayValue, for_write: bool = False) -> list[Task]:
        """Wait for the owner and the overlapping writers of a tensor (and its readers, before the host writes it).

        Returns those tasks: all of a recorded run, else what was not known to be done.
        """
        if not self.pending and not self.record:
            return []
        record = value.buffer.record
        waits = []
        if isinstance(value.buffer.owner, Task):
            waits.append(value.buffer.owner)
        if record is not None:
            region = Region(value)
            found: list[Access] = record.writers.overlapping(region)
            if for_write:
                found += record.readers.overlapping(region)
            waits += [access.task for access in found]
        if self.pending:
            self.wait_for(waits)
        return waits


def _finished() -> None:
    raise AssertionError("a completed task must not run again")
