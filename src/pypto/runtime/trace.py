"""Records of one run as files: the task graph, and a time line that trace viewers open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from .files import write_file
from .task_records import EdgeRecord, RunRecord, TaskRecord

DIRECTORY = "dfx_outputs"
# The orchestrator has a track of its own, behind those of the workers.
_HOST_TRACK = 1_000_000


def write_records(directory: Path, record: RunRecord, deps: bool, trace: bool) -> None:
    """Write ``deps.json`` (each edge with its reason) and ``trace.json`` (Chrome trace events, as Perfetto opens)."""
    if deps or trace:
        write_file(directory / DIRECTORY / "deps.json", _text(dependencies(record), indent=1))
    if trace:
        write_file(directory / DIRECTORY / "trace.json", _text(trace_events(record)))


def _text(value: Any, indent: int = -1) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=indent) + b"\n"


# --- the graph --------------------------------------------------------------------------------------------------------


def dependencies(record: RunRecord) -> dict[str, Any]:
    """The tasks, and why each waits for another. ``orchestrator``: where it touches tensors itself; ``after`` is how
    many tasks had been submitted, and the tasks behind them come after it."""
    tasks = [{"id": task.number, "name": task.name, "source": task.source.describe()} for task in record.tasks]
    hosts = [
        {"id": host.number, "name": host.name, "source": host.source.describe(), "after": host.after}
        for host in record.hosts
    ]
    return {"tasks": tasks, "orchestrator": hosts, "edges": [_edge(record, edge) for edge in record.edges]}


def _edge(record: RunRecord, edge: EdgeRecord) -> dict[str, Any]:
    found: dict[str, Any] = {
        "producer": edge.producer,
        "consumer": edge.consumer,
        "kind": edge.kind.value,
        "reason": edge.reason,
    }
    if edge.producer_box is not None and edge.consumer_box is not None:
        buffer = record.buffers[edge.buffer]
        found["regions"] = [buffer.describe(edge.producer_box), buffer.describe(edge.consumer_box)]
    return found


# --- the time line ----------------------------------------------------------------------------------------------------


def trace_events(record: RunRecord) -> dict[str, Any]:
    """Tasks as complete events on the track of their worker, edges as flows, the number of ready tasks as a counter."""
    ran = [task for task in record.tasks if task.started]
    times = [time for task in ran for time in (task.submitted, task.ready, task.started) if time]
    line = _TimeLine(min(times + [host.time for host in record.hosts if host.time], default=0))
    events = [_name_of(track, f"worker {track}") for track in sorted({task.worker for task in ran})]
    if record.hosts:
        events.append(_name_of(_HOST_TRACK, "orchestrator"))
    events += [line.task(task) for task in ran]
    for host in record.hosts:
        details = {"source": host.source.describe()}
        events.append({**line.at(host.time, host.name, "host", _HOST_TRACK), "ph": "i", "s": "t", "args": details})
    for edge in record.edges:
        if edge.consumer < len(record.tasks):
            producer, consumer = record.tasks[edge.producer], record.tasks[edge.consumer]
            if producer.started and consumer.started:
                events += line.flow(producer, consumer, edge.reason)
    events += line.ready(ran)
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _name_of(track: int, name: str) -> dict[str, Any]:
    return {"name": "thread_name", "cat": "__metadata", "ph": "M", "pid": 0, "tid": track, "args": {"name": name}}


class _TimeLine:
    """Events from an origin on, in microseconds as the format wants them."""

    def __init__(self, origin: int) -> None:
        self.origin = origin

    def at(self, time: int, name: str, category: str, track: int) -> dict[str, Any]:
        return {"name": name, "cat": category, "pid": 0, "tid": track, "ts": (time - self.origin) / 1e3}

    def task(self, task: TaskRecord) -> dict[str, Any]:
        details = {
            "id": task.number,
            "source": task.source.describe(),
            "submitted_us": (task.submitted - self.origin) / 1e3 if task.submitted else None,
            "ready_us": (task.ready - self.origin) / 1e3 if task.ready else None,
            "blocks": task.blocks,
        }
        return {
            **self.at(task.started, task.name, "task", task.worker),
            "ph": "X",
            "dur": (task.ended - task.started) / 1e3,
            "args": details,
        }

    def flow(self, producer: TaskRecord, consumer: TaskRecord, reason: str) -> list[dict[str, Any]]:
        """An arrow. It begins just before the end of the producer: a viewer looks for the event around that time."""
        common = {"id": f"{producer.number}-{consumer.number}"}
        begin = max(producer.started, producer.ended - 1)
        return [
            {**self.at(begin, reason, "edge", producer.worker), **common, "ph": "s"},
            {**self.at(consumer.started, reason, "edge", consumer.worker), **common, "ph": "f", "bp": "e"},
        ]

    def ready(self, tasks: list[TaskRecord]) -> Iterator[dict[str, Any]]:
        """How many tasks could run and did not, whenever that changes."""
        changes = sorted([(t.ready, 1) for t in tasks if t.ready] + [(t.started, -1) for t in tasks if t.ready])
        count = 0
        for number, (time, change) in enumerate(changes):
            count += change
            if number + 1 == len(changes) or changes[number + 1][0] != time:
                yield {**self.at(time, "ready tasks", "counter", 0), "ph": "C", "args": {"ready": count}}


__all__ = ["DIRECTORY", "dependencies", "trace_events", "write_records"]
