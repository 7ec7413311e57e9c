"""The records of a run of the task runtime, in the form that all executors share (:mod:`.task_records`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..diag.location import Location
from .native_library import ELEMENT_TYPES, KINDS, REASONS, TAGS
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

_NOBODY = 2**64 - 1  # a number that is none; the orchestrator's own accesses count down from the one below
_KINDS = {
    "allocation": EdgeKind.ALLOCATION,
    "overlap": EdgeKind.OVERLAP,
    "explicit": EdgeKind.EXPLICIT,
    "predicate": EdgeKind.OVERLAP,
    "sync": EdgeKind.SYNC,
    "overwrite": EdgeKind.SOURCE_ORDER,
}
_MODES = (Mode.READ, Mode.WRITE, Mode.ATOMIC)  # by PtoAccess
# What an argument says of the bytes that its task touches. NO_DEP says nothing.
_TAG_MODES = {"INPUT": Mode.READ, "INOUT": Mode.WRITE, "OUTPUT": Mode.WRITE, "OUTPUT_EXISTING": Mode.WRITE}


def run_record(
    arrays: Sequence[Any],
    kernels: Sequence[str],
    arguments: Sequence[str] = (),
    position: Callable[[int], Location | None] | None = None,
) -> RunRecord:
    """The record of a run.

    ``arrays``: as ``TaskRuntime.records`` gives them; ``kernels``: names by number; ``arguments``: names of the tensor
    arguments of the run; ``position``: line of the orchestration source -> where in the user's program.
    """
    return _Conversion(arrays, kernels, arguments, position).record


class _Conversion:
    def __init__(
        self,
        arrays: Sequence[Any],
        kernels: Sequence[str],
        arguments: Sequence[str],
        position: Callable[[int], Location | None] | None,
    ) -> None:
        tasks, edges, accesses, buffers, events, touches = arrays
        self.record = RunRecord()
        self._kernels = kernels
        self._position = position or (lambda line: Location("orchestration", line, 1))
        self._task_count = len(tasks)
        self._sizes = [1] * len(buffers)
        self._buffers(buffers, arguments)
        self._tasks(tasks, events)
        self._accesses(accesses, {touch.task for touch in touches})
        for touch in touches:
            box = self._box(touch.buffer, touch.region)
            self.record.accesses.append(AccessRecord(touch.task, touch.buffer, _MODES[touch.how], box))
        self.record.edges = [self._edge(edge) for edge in edges]

    def _buffers(self, buffers: Any, arguments: Sequence[str]) -> None:
        for each in buffers:
            dtype = ELEMENT_TYPES[each.dtype]
            size = self._sizes[each.number] = dtype.get_byte()
            if each.argument >= 0:
                name = arguments[each.argument] if arguments else f"argument {each.argument}"
            else:
                name = f"output of task #{each.owner}" if each.owner != _NOBODY else "a created tensor"
            shape = tuple(each.shapes[: each.ndims])
            self.record.buffers.append(BufferRecord(each.number, name, shape, str(dtype), size, bool(each.manual_dep)))

    def _tasks(self, tasks: Any, events: Any) -> None:
        times: dict[int, tuple[int, int, int]] = {}  # start, end, worker
        for event in events:
            start, end, worker = times.get(event.task, (event.start, event.end, event.worker))
            times[event.task] = (min(start, event.start), max(end, event.end), worker)
        for task in tasks:
            start, end, worker = times.get(task.number, (0, 0, 0))
            names = [self._kernels[k] for k in task.kernels if k >= 0]
            name = names[0] if names else KINDS[task.kind]
            self.record.tasks.append(
                TaskRecord(
                    task.number,
                    name,
                    "+".join(dict.fromkeys(names)),
                    self._position(task.line) or NOWHERE,
                    task.submitted,
                    task.ready,
                    start,
                    end,
                    worker,
                    task.block_num,
                )
            )

    def _accesses(self, accesses: Any, told: set[int]) -> None:
        """What arguments say; ``told``: tasks whose kernels said it better."""
        for each in accesses:
            tag = TAGS[each.tag]
            if each.task >= self._task_count:  # of the orchestrator
                number = self._number(each.task)
                name = "get_tensor_data" if tag == "INPUT" else "set_tensor_data"
                self.record.hosts.append(HostRecord(number, name, each.after))
                mode, box = _TAG_MODES[tag], self._box(each.buffer, each.region)
                self.record.accesses.append(AccessRecord(number, each.buffer, mode, box))
                continue
            self.record.arguments.append(ArgumentRecord(each.task, each.buffer, tag.lower()))
            mode_of_tag = _TAG_MODES.get(tag)
            if mode_of_tag is not None and each.task not in told and each.region.low < each.region.high:
                box = self._box(each.buffer, each.region)
                self.record.accesses.append(AccessRecord(each.task, each.buffer, mode_of_tag, box))

    def _edge(self, edge: Any) -> EdgeRecord:
        kind = REASONS[edge.reason]
        buffer = edge.buffer if edge.buffer < len(self._sizes) else -1
        used = self._box(buffer, edge.used) if edge.used.low < edge.used.high else None
        written = self._box(buffer, edge.written) if edge.written.low < edge.written.high else None
        reason = kind
        if buffer >= 0:
            about = self.record.buffers[buffer]
            reason = f"{kind} of {about.describe(used) if used is not None else about.name}"
        return EdgeRecord(
            self._number(edge.producer), self._number(edge.consumer), _KINDS[kind], reason, buffer, written, used
        )

    def _number(self, native: int) -> int:
        return native if native < self._task_count else self._task_count + _NOBODY - 1 - native

    def _box(self, buffer: int, region: Any) -> Box:
        """A region in elements of the buffer's type, or else in bytes."""
        strides = tuple(region.stride[: region.levels])
        extents = tuple(region.extent[: region.levels])
        size = self._sizes[buffer]
        if any(value % size for value in (region.low, region.run, *strides)):
            size = 1
        return Box(region.low, (*extents, region.run // size), (*strides, size), size)


__all__ = ["run_record"]
