"""``pypto bench``: how long a program takes, and what the time goes to."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from ..ops.values import ArrayValue
from ..runtime.execute import Executable
from ..runtime.host_executor import RunOptions
from ..runtime.native_executor import NotNative
from ..runtime.run_config import RunConfig
from ..runtime.task_records import RunRecord
from ..runtime.trace import write_records

_MS = 1e3
_WARM_S = 0.2  # of calls before those that count
_SHOWN = 12  # kernels


class KernelTime(msgspec.Struct, frozen=True):
    """The tasks of one kernel in one run. ``total``: seconds, over all threads."""

    kernel: str
    tasks: int
    total: float
    slowest: float


class Measurement(msgspec.Struct, frozen=True):
    """Times in seconds. ``compile``: the passes; ``build``: the C++ (from the cache if that had it); ``calls``: warm
    ones; ``notes``: what has no native form. ``kernels`` of one more run, which is recorded."""

    executor: str
    compile: float
    build: float
    first: float
    calls: list[float]
    tasks: int
    workers: int
    notes: list[str]
    kernels: list[KernelTime]
    record: RunRecord | None = None


def measure(entry: Any, args: Sequence[Any], config: RunConfig, rounds: int) -> Measurement:
    """Compile an entry of a file, call it, and look at one run in detail. The arguments are written."""
    begin = time.perf_counter()
    compiled = entry.compile(list(args), config)
    compiled_at = time.perf_counter()
    executable: Executable = compiled.executable
    notes: list[str] = []
    try:
        assert executable.native is not None
        program = executable.native.make()
        notes = list(program.notes)
        config = replace(config, executor="native")
    except NotNative as reason:
        program = None
        notes = [f"the interpreter runs the program: {reason}"]
        config = replace(config, executor="interpreter")
    built_at = time.perf_counter()
    outcome = compiled.execute(list(args), {}, config)
    first = time.perf_counter() - built_at
    calls = _calls(compiled, args, config, rounds)
    record = None
    workers = 1
    if program is not None:
        bound = executable.bind(args, {}, config)
        arguments = [v.data if type(v) is ArrayValue else v for v in bound.values]
        record = program.record(program.run(arguments, RunOptions(workers=config.workers, trace=True)))
        workers = len({task.worker for task in record.tasks}) or 1
    return Measurement(
        outcome.executor,
        compiled_at - begin,
        built_at - compiled_at,
        first,
        calls,
        outcome.timing.tasks,
        workers,
        notes,
        kernel_times(record) if record is not None else [],
        record,
    )


def _calls(compiled: Any, args: Sequence[Any], config: RunConfig, rounds: int) -> list[float]:
    end = time.perf_counter() + _WARM_S
    while time.perf_counter() < end:
        compiled.execute(list(args), {}, config)
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        compiled.execute(list(args), {}, config)
        times.append(time.perf_counter() - begin)
    return times


def kernel_times(record: RunRecord) -> list[KernelTime]:
    """What each kernel took in a recorded run, the longest first."""
    found: dict[str, list[float]] = {}
    for task in record.tasks:
        found.setdefault(task.kernel or task.name, []).append((task.ended - task.started) / 1e9)
    times = [KernelTime(name, len(each), sum(each), max(each)) for name, each in found.items()]
    return sorted(times, key=lambda item: -item.total)


def report(name: str, kind: str, found: Measurement) -> list[str]:
    """The measurement in words."""
    median = statistics.median(found.calls)
    lines = [
        f"{name} ({kind}), by the {found.executor} executor",
        f"  compiled: passes {_MS * found.compile:.1f} ms, C++ {_MS * found.build:.1f} ms; "
        f"first call {_MS * found.first:.2f} ms",
        f"  {len(found.calls)} calls: median {_MS * median:.3f} ms, best {_MS * min(found.calls):.3f} ms, "
        f"slowest {_MS * max(found.calls):.3f} ms; {found.tasks} task{'' if found.tasks == 1 else 's'}",
    ]
    lines += [f"  note: {note}" for note in found.notes]
    if not found.kernels:
        return lines
    total = sum(item.total for item in found.kernels) or 1e-9
    span = _span(found.record)
    busy = total / (span * found.workers) if span else 0.0
    lines.append(
        f"  one recorded run: {_MS * span:.3f} ms from the first task to the last, {found.workers} "
        f"thread{'' if found.workers == 1 else 's'} {100 * busy:.0f} % in kernels"
    )
    width = max(len(item.kernel) for item in found.kernels[:_SHOWN])
    lines.append(f"  {'kernel':<{width}} {'tasks':>7} {'total ms':>10} {'mean us':>10} {'slowest us':>11} {'share':>6}")
    for item in found.kernels[:_SHOWN]:
        mean = 1e6 * item.total / item.tasks
        lines.append(
            f"  {item.kernel:<{width}} {item.tasks:>7} {_MS * item.total:>10.3f} {mean:>10.2f} "
            f"{1e6 * item.slowest:>11.2f} {100 * item.total / total:>5.0f}%"
        )
    if len(found.kernels) > _SHOWN:
        lines.append(f"  and {len(found.kernels) - _SHOWN} more kernels")
    return lines


def _span(record: RunRecord | None) -> float:
    if record is None or not record.tasks:
        return 0.0
    return (max(t.ended for t in record.tasks) - min(t.started for t in record.tasks)) / 1e9


def write_trace(folder: Path, found: Measurement) -> None:
    """``deps.json`` and ``trace.json`` of the recorded run. ``ValueError`` if there is none."""
    if found.record is None:
        raise ValueError("there is no trace: the program did not run natively")
    write_records(folder, found.record, True, True)


__all__ = ["KernelTime", "Measurement", "kernel_times", "measure", "report", "write_trace"]
