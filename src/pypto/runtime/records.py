"""Records of one run as files: the task graph, and a time line that trace viewers open."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .artifact import write_file
from .graph import Task, TaskGraph

DIRECTORY = "dfx_outputs"


def write_records(directory: Path, graph: TaskGraph, deps: bool, trace: bool) -> None:
    """Write ``deps.json`` (each edge with its reason) and ``trace.json`` (Chrome trace events)."""
    if deps or trace:
        write_file(directory / DIRECTORY / "deps.json", json.dumps(dependencies(graph), indent=1) + "\n")
    if trace:
        write_file(directory / DIRECTORY / "trace.json", json.dumps(trace_events(graph)) + "\n")


def dependencies(graph: TaskGraph) -> dict[str, Any]:
    """The recorded tasks, and why each waits for another."""
    return {
        "tasks": [{"id": task.number, "name": task.name, "source": str(task.span)} for task in graph.tasks],
        "edges": [
            {"producer": edge.producer.number, "consumer": task.number, "reason": edge.reason}
            for task in graph.tasks
            for edge in task.edges.values()
        ],
    }


def trace_events(graph: TaskGraph) -> dict[str, Any]:
    """Tasks as complete events, edges as flows. All tasks run on one thread."""
    events: list[dict[str, Any]] = []
    origin = min((task.started for task in graph.tasks if task.started), default=0)

    def at(ns: int) -> float:
        return (ns - origin) / 1e3

    for task in graph.tasks:
        events.append(
            {
                "name": task.name,
                "cat": "task",
                "ph": "X",
                "pid": 0,
                "tid": 0,
                "ts": at(task.started),
                "dur": (task.ended - task.started) / 1e3,
                "args": {"id": task.number, "source": str(task.span)},
            }
        )
        for edge in task.edges.values():
            events += _flow(edge.producer, task, edge.reason, at)
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _flow(producer: Task, consumer: Task, reason: str, at: Any) -> list[dict[str, Any]]:
    common = {"name": reason, "cat": "edge", "pid": 0, "tid": 0, "id": f"{producer.number}-{consumer.number}"}
    return [
        {**common, "ph": "s", "ts": at(producer.ended)},
        {**common, "ph": "f", "bp": "e", "ts": at(consumer.started)},
    ]


__all__ = ["dependencies", "trace_events", "write_records"]
