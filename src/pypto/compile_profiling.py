"""Where the time of a compilation goes: stages with their children.

>>> with CompileProfiler() as profiler:
...     with profiler.stage("passes"), profiler.stage("Simplify"):
...         pass
>>> [child.name for child in profiler.stages[0].children]
['Simplify']
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

VARIABLE = "PYPTO_COMPILE_PROFILING"
_TITLE = "PyPTO Compile Profile"
_WIDTH = 28


class StageRecord:
    """A stage and when it ran, in seconds of the monotonic clock."""

    __slots__ = ("children", "end", "name", "start")

    def __init__(self, name: str, start: float, end: float = 0.0, children: list[StageRecord] | None = None) -> None:
        self.name = name
        self.start = start
        self.end = end
        self.children: list[StageRecord] = [] if children is None else children

    @property
    def duration(self) -> float:
        """Seconds from start to end; 0 for a stage that has not ended."""
        return max(0.0, self.end - self.start)

    def to_dict(self) -> dict[str, Any]:
        """Name, seconds rounded to microseconds, and children."""
        return {
            "name": self.name,
            "seconds": round(self.duration, 6),
            "children": [child.to_dict() for child in self.children],
        }


_thread = threading.local()


def _stack() -> list[CompileProfiler]:
    try:
        return _thread.profilers  # type: ignore[no-any-return]
    except AttributeError:
        _thread.profilers = []
        return _thread.profilers  # type: ignore[no-any-return]


class CompileProfiler:
    """Records stages while it is entered, in this thread. Profilers nest; the innermost one records."""

    def __init__(self) -> None:
        self.stages: list[StageRecord] = []
        self._open: list[StageRecord] = []

    @staticmethod
    def current() -> CompileProfiler | None:
        """The innermost profiler that this thread is in, or None."""
        stack = _stack()
        return stack[-1] if stack else None

    def __enter__(self) -> CompileProfiler:
        _stack().append(self)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        _stack().remove(self)

    @contextmanager
    def stage(self, name: str) -> Iterator[StageRecord]:
        """Time the block as a stage, inside the stage that is open."""
        record = StageRecord(name, time.perf_counter())
        self.add_stage_record(record)
        self._open.append(record)
        try:
            yield record
        finally:
            record.end = time.perf_counter()
            self._open.pop()

    def add_stage_record(self, record: StageRecord) -> None:
        """Add a stage that was timed elsewhere, as a child of the stage that is open."""
        (self._open[-1].children if self._open else self.stages).append(record)

    @property
    def total_seconds(self) -> float:
        """The sum of the outermost stages."""
        return sum(stage.duration for stage in self.stages)

    def to_dict(self) -> dict[str, Any]:
        """Total and stages."""
        return {
            "total_seconds": round(self.total_seconds, 6),
            "stages": [stage.to_dict() for stage in self.stages],
        }

    def to_json(self, path: str | os.PathLike[str] | None = None, indent: int = 2) -> str:
        """:meth:`to_dict` as text, also written to ``path`` if given."""
        text = json.dumps(self.to_dict(), indent=indent)
        if path is not None:
            Path(path).write_text(text + "\n", encoding="utf-8")
        return text

    def summary(self) -> str:
        """A table of the stages with times and shares of the total."""
        total = self.total_seconds
        lines = [_TITLE, "=" * (len(_TITLE) + 1), f"Total: {_time(total)}", ""]
        pending = [(stage, 0) for stage in reversed(self.stages)]
        while pending:
            stage, depth = pending.pop()
            share = 100 * stage.duration / total if total else 0.0
            name = "  " * depth + stage.name
            lines.append(f"{name:<{_WIDTH}}{_time(stage.duration):>10} ({share:5.1f}%)")
            pending.extend((child, depth + 1) for child in reversed(stage.children))
        return "\n".join(lines)

    def write_report(self, report_dir: str | os.PathLike[str]) -> None:
        """Write ``pipeline_profile.txt`` and ``pipeline_profile.json`` into a directory."""
        folder = Path(report_dir)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pipeline_profile.txt").write_text(self.summary() + "\n", encoding="utf-8")
        self.to_json(folder / "pipeline_profile.json")


def _time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f}us"
    return f"{seconds * 1e3:.1f}ms" if seconds < 1 else f"{seconds:.3f}s"


_shared: CompileProfiler | None = None
_shared_lock = threading.Lock()


def profiling_asked_for() -> bool:
    """Whether the environment asks for profiles."""
    return os.environ.get(VARIABLE, "").strip().lower() in ("1", "true", "yes")


def get_active_profiler() -> CompileProfiler | None:
    """The innermost profiler of this thread, else the shared one if ``PYPTO_COMPILE_PROFILING`` asks for it."""
    current = CompileProfiler.current()
    if current is not None or not profiling_asked_for():
        return current
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = CompileProfiler()
        return _shared


__all__ = ["CompileProfiler", "StageRecord", "get_active_profiler", "profiling_asked_for"]
