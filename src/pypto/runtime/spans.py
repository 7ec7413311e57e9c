"""Spans of one dispatch, and the tree that their dotted names form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

RUN = "chip.run"
DEVICE_WALL = "chip.run.runner_run.device_wall"
ORCH = f"{DEVICE_WALL}.orch"
SCHED = f"{DEVICE_WALL}.sched"


@dataclass(frozen=True)
class TraceSpan:
    """A named stretch of time; ``ts`` and ``dur`` in ns."""

    pid: int
    tid: int
    inv: int
    hid: int
    depth: int
    name: str
    ts: int
    dur: int
    attrs: dict[str, Any] = field(default_factory=dict)

    @property
    def is_device(self) -> bool:
        return self.attrs.get("clk") == "dev"

    @property
    def dur_us(self) -> float:
        return self.dur / 1e3

    def with_duration(self, dur: int) -> TraceSpan:
        """The same span with another duration."""
        return replace(self, dur=dur)


@dataclass
class TraceInvocation:
    """The spans of one dispatch."""

    pid: int
    inv: int
    hid: int
    spans: list[TraceSpan]

    def root(self) -> TraceSpan:
        """The outermost span."""
        return min(self.spans, key=lambda s: (s.depth, s.ts))

    def by_name(self) -> dict[str, TraceSpan]:
        return {span.name: span for span in self.spans}

    @property
    def task(self) -> int | None:
        """The task of a distributed program that this dispatch is; None for a single chip."""
        value = self.root().attrs.get("task")
        return value if isinstance(value, int) else None

    @property
    def task_name(self) -> str | None:
        value = self.root().attrs.get("task_name")
        return value if isinstance(value, str) else None

    def _duration_us(self, name: str) -> float:
        span = self.by_name().get(name)
        return span.dur_us if span is not None else 0.0

    @property
    def device_wall_us(self) -> float:
        """From the start of the first task to the end of the last."""
        return self._duration_us(DEVICE_WALL)

    @property
    def host_wall_us(self) -> float:
        """The whole dispatch."""
        return self.root().dur_us

    @property
    def effective_us(self) -> float:
        """Time in which tasks ran."""
        return self._duration_us(SCHED)

    def format_tree(self, *, us: bool = True, value_fn: Callable[[TraceSpan], str] | None = None) -> str:
        """The spans as an indented tree with their durations."""
        value = value_fn or (lambda span: f"{span.dur_us:.1f} us" if us else f"{span.dur} ns")
        rows = [("  " * depth + span.name[cut:], value(span)) for depth, cut, span in self._rows()]
        left = max(len(name) for name, _ in rows)
        right = max(len(text) for _, text in rows)
        return "\n".join(f"{name:<{left}}  {text:>{right}}" for name, text in rows)

    def _rows(self) -> list[tuple[int, int, TraceSpan]]:
        """Depth, length of the parent's prefix, span. A parent is the longest proper dotted prefix that is present."""
        names = self.by_name()
        children: dict[str | None, list[TraceSpan]] = {}
        for span in self.spans:
            parts = span.name.split(".")
            prefixes = (".".join(parts[:n]) for n in range(len(parts) - 1, 0, -1))
            children.setdefault(next((p for p in prefixes if p in names), None), []).append(span)
        rows: list[tuple[int, int, TraceSpan]] = []

        def add(parent: str | None, depth: int) -> None:
            for span in sorted(children.get(parent, ()), key=lambda s: (s.ts, s.name)):
                rows.append((depth, 0 if parent is None else len(parent) + 1, span))
                add(span.name, depth + 1)

        add(None, 0)
        return rows


__all__ = ["TraceInvocation", "TraceSpan"]
