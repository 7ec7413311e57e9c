"""Timing of compiled programs. Times come from the executor itself."""

from __future__ import annotations

import logging
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

from .execute import Timing
from .log import logger
from .run_config import RunConfig
from .spans import DEVICE_WALL, ORCH, RUN, SCHED, TraceInvocation, TraceSpan

_METRICS = ("device", "host", "effective", "union")


@dataclass
class BenchmarkStats:
    """Times of the rounds of a benchmark, in microseconds.

    ``host_wall_us``: the whole dispatch. ``device_wall_us``: from the start of the first task to the end of the last.
    """

    device_wall_us: list[float] = field(default_factory=list)
    host_wall_us: list[float] = field(default_factory=list)
    rounds: int = 0
    warmup: int = 0
    invocations: list[TraceInvocation] = field(default_factory=list)
    rounds_dispatches: list[Any] = field(default_factory=list)
    fallback_flattened: bool = False
    unstable_dispatch_slots: tuple[Any, ...] = ()

    # --- summaries ----------------------------------------------------------------------------------------------------

    @property
    def samples(self) -> list[float]:
        return self.device_wall_us

    @property
    def device_us_min(self) -> float:
        return min(self.device_wall_us)

    @property
    def device_us_median(self) -> float:
        return statistics.median(self.device_wall_us)

    @property
    def device_us_mean(self) -> float:
        return statistics.fmean(self.device_wall_us)

    @property
    def device_us_max(self) -> float:
        return max(self.device_wall_us)

    @property
    def device_us_stdev(self) -> float:
        return _stdev(self.device_wall_us)

    @property
    def device_wall_us_min(self) -> float:
        return self.device_us_min

    @property
    def device_wall_us_median(self) -> float:
        return self.device_us_median

    @property
    def device_wall_us_mean(self) -> float:
        return self.device_us_mean

    @property
    def device_wall_us_max(self) -> float:
        return self.device_us_max

    @property
    def device_wall_us_stdev(self) -> float:
        return self.device_us_stdev

    @property
    def all_zero_device(self) -> bool:
        """Whether no device time was measured."""
        return not any(self.device_wall_us)

    def device_us_p(self, percent: float) -> float:
        """A percentile of the device times."""
        return _percentile(self.device_wall_us, percent)

    @property
    def throughput(self) -> float:
        """Dispatches a second, one after the other."""
        return 1e6 * len(self.host_wall_us) / sum(self.host_wall_us)

    def to_dict(self) -> dict[str, Any]:
        """The times and their summary as plain data."""
        return {
            "rounds": self.rounds,
            "warmup": self.warmup,
            "device_wall_us": list(self.device_wall_us),
            "host_wall_us": list(self.host_wall_us),
            "device_us": {
                "min": self.device_us_min,
                "median": self.device_us_median,
                "mean": self.device_us_mean,
                "max": self.device_us_max,
                "stdev": self.device_us_stdev,
            },
            "throughput": self.throughput,
        }

    # --- by round, rank, dispatch -------------------------------------------------------------------------------------

    def per_round(self, metric: str = "device") -> list[float]:
        """One time a round. A round of one chip is one dispatch, so that ``union`` is the device time."""
        if metric not in _METRICS:
            raise ValueError(f"Unknown metric '{metric}'. Expected one of {', '.join(_METRICS)}")
        if metric == "host":
            return list(self.host_wall_us)
        if metric == "effective":
            return [invocation.effective_us for invocation in self.invocations]
        return list(self.device_wall_us)

    def per_rank(self, metric: str = "device") -> dict[int, list[float]]:
        """Times by rank; there is one rank."""
        pid = self.invocations[0].pid if self.invocations else os.getpid()
        return {pid: self.per_round(metric)}

    def per_dispatch(self, metric: str = "device") -> dict[int, list[list[float]]]:
        """Times by rank and dispatch slot; a round of one chip has one slot."""
        return {pid: [values] for pid, values in self.per_rank(metric).items()}

    def dispatch_groups(self) -> list[Any]:
        """Dispatches of a distributed program; none here."""
        return []

    def dispatch_tasks(self) -> list[Any]:
        """Tasks of the dispatches of a distributed program; none here."""
        return []

    # --- trees --------------------------------------------------------------------------------------------------------

    def format_tree(self, launch: int | None = None, *, us: bool = True) -> str:
        """The spans of one launch (the first by default) as a tree."""
        index = 0 if launch is None else launch
        if not -len(self.invocations) <= index < len(self.invocations):
            raise ValueError(f"launch must be in 0..{len(self.invocations) - 1}, got {launch}")
        return self.invocations[index].format_tree(us=us)

    def print_tree(self, launch: int | None = None, *, us: bool = True, file: TextIO | None = None) -> None:
        """Print :meth:`format_tree`."""
        print(self.format_tree(launch, us=us), file=file or sys.stdout)

    def mean_invocation(self, *, pid: int | None = None, slot: int | None = None) -> TraceInvocation:
        """An invocation whose spans have the mean times of all."""
        del slot
        chosen = [i for i in self.invocations if pid is None or i.pid == pid]
        if not chosen:
            raise ValueError(f"no launch of process {pid}")
        spans = []
        for position, span in enumerate(chosen[0].spans):
            durations = [i.spans[position].dur for i in chosen]
            spans.append(span.with_duration(round(statistics.fmean(durations))))
        return TraceInvocation(chosen[0].pid, chosen[0].inv, chosen[0].hid, spans)

    def format_mean_tree(
        self, *, us: bool = True, spread: str = "stdev", pid: int | None = None, slot: int | None = None
    ) -> str:
        """The mean times of all launches as a tree, with their spread (``stdev`` or ``minmax``)."""
        if spread not in ("stdev", "minmax"):
            raise ValueError(f"spread must be 'stdev' or 'minmax', got {spread!r}")
        chosen = [i for i in self.invocations if pid is None or i.pid == pid]
        durations = {
            span.name: [invocation.by_name()[span.name].dur for invocation in chosen]
            for span in (chosen[0].spans if chosen else [])
        }
        scale, unit = (1e3, "us") if us else (1.0, "ns")

        def value(span: TraceSpan) -> str:
            times = [d / scale for d in durations[span.name]]
            mean = statistics.fmean(times)
            if spread == "stdev":
                return f"{mean:.1f} ± {_stdev(times):.1f} {unit}"
            return f"{mean:.1f} [{min(times):.1f}, {max(times):.1f}] {unit}"

        return self.mean_invocation(pid=pid, slot=slot).format_tree(us=us, value_fn=value)

    def print_mean_tree(
        self,
        *,
        us: bool = True,
        spread: str = "stdev",
        pid: int | None = None,
        slot: int | None = None,
        file: TextIO | None = None,
    ) -> None:
        """Print :meth:`format_mean_tree`."""
        print(self.format_mean_tree(us=us, spread=spread, pid=pid, slot=slot), file=file or sys.stdout)

    def __str__(self) -> str:
        host = statistics.median(self.host_wall_us)
        return (
            f"{self.rounds} rounds after {self.warmup}: device {self.device_us_median:.1f} us median "
            f"(min {self.device_us_min:.1f}, mean {self.device_us_mean:.1f} ± {self.device_us_stdev:.1f}, "
            f"max {self.device_us_max:.1f}), host {host:.1f} us median"
        )


def _stdev(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


def _percentile(values: Sequence[float], percent: float) -> float:
    if not 0 <= percent <= 100:
        raise ValueError(f"a percentile is between 0 and 100, got {percent}")
    ordered = sorted(values)
    position = (len(ordered) - 1) * percent / 100
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def benchmark(
    compiled: Any,
    args: Sequence[Any],
    *,
    rounds: int = 100,
    warmup: int = 3,
    platform: str | None = None,
    device_id: int | None = None,
    config: RunConfig | None = None,
    persistent: bool = False,
    reset_persistent_windows: bool | None = None,
) -> BenchmarkStats:
    """Run a compiled program ``warmup + rounds`` times and measure the rounds."""
    if rounds <= 0:
        raise ValueError(f"rounds must be positive, got {rounds}")
    if warmup < 0:
        raise ValueError(f"warmup must not be negative, got {warmup}")
    if config is not None and (platform is not None or device_id is not None):
        raise ValueError("give config, or platform and device_id, not both")
    if persistent or reset_persistent_windows is not None:
        raise ValueError("persistent and reset_persistent_windows are for distributed programs")
    if config is None and (platform is not None or device_id is not None):
        config = RunConfig(platform=platform or compiled.platform, device_id=device_id or 0)
    compiled.load()
    level = logger.level
    logger.setLevel(max(level, logging.ERROR))
    timings: list[Timing] = []
    try:
        for number in range(warmup + rounds):
            outcome = compiled.execute(args, {}, config)
            if number >= warmup:
                timings.append(outcome.timing)
    finally:
        logger.setLevel(level)
    if not timings:
        raise RuntimeError("nothing was measured")
    invocations = [_invocation(t, i) for i, t in enumerate(timings)]
    return BenchmarkStats(
        [i.device_wall_us for i in invocations],
        [i.host_wall_us for i in invocations],
        rounds,
        warmup,
        invocations,
    )


def _invocation(timing: Timing, number: int) -> TraceInvocation:
    """The spans of one dispatch. ``.sched`` is the time inside tasks, ``.orch`` the rest between them."""
    pid = os.getpid()
    device = max(timing.last_task - timing.first_task, 1)
    in_tasks = min(timing.task_ns, device)

    def span(name: str, depth: int, begin: int, duration: int, attrs: dict[str, Any]) -> TraceSpan:
        return TraceSpan(pid, 0, number, 0, depth, name, begin, duration, attrs)

    on_device = {"clk": "dev"}
    make: Callable[..., TraceSpan] = span
    return TraceInvocation(
        pid,
        number,
        0,
        [
            make(RUN, 0, timing.begin, timing.end - timing.begin, {"tasks": timing.tasks}),
            make(f"{RUN}.bind", 1, timing.begin, timing.bound - timing.begin, {}),
            make(DEVICE_WALL, 1, timing.first_task, device, on_device),
            make(ORCH, 2, timing.first_task, device - in_tasks, on_device),
            make(SCHED, 2, timing.first_task, in_tasks, on_device),
        ],
    )


__all__ = ["BenchmarkStats", "TraceInvocation", "TraceSpan", "benchmark"]
