"""Generating programs and checking them: a number of them from a seed, and the smallest one with a given fault."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings
from hypothesis.strategies import SearchStrategy

from .backend import STREAM, uniform_backend
from .emitted import Job, Report, check
from .generate import Generated, kernel_programs, programs
from .harness import Checker, Fault
from .reduce import reduce

Key = tuple[str, str, str]


@dataclass
class Failing:
    """A program with a fault."""

    fault: Fault
    text: str
    seed: int

    def report(self) -> str:
        return f"{self.text}\n--- {self.fault}\n"


class _Found(AssertionError):
    """Tells Hypothesis that a program has the fault that it looks for."""


class _Enough(KeyboardInterrupt):
    """Ends a search from inside: Hypothesis lets nothing else through."""


def _run(
    start: int,
    count: int,
    phases: list[Phase],
    visit: Callable[[Generated], None],
    strategy: Callable[[], SearchStrategy[Generated]] = programs,
) -> None:
    """Let Hypothesis make ``count`` programs that depend on ``start`` alone."""
    STREAM.seed(start)
    wanted = settings(
        max_examples=count,
        phases=phases,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
        print_blob=False,
        **uniform_backend(),
    )

    def test(program: Generated) -> None:
        visit(program)

    seed(start)(wanted(given(strategy())(test)))()


def explore(checker: Checker, start: int, count: int) -> list[Failing]:
    """Check ``count`` programs; gives those with faults."""
    found: list[Failing] = []

    def visit(program: Generated) -> None:
        checker.counts.features.update(program.features.keys())
        fault = checker.check_text(program.text, unordered_writes="write after read" in program.features)
        if fault is not None:
            found.append(Failing(fault, program.text, start))

    _run(start, count, [Phase.generate], visit)
    return found


# Programs that need passes which are not built yet: kernels whose results are tensors of their own, functions of other
# levels, tensor math outside of kernels.
UNBUILT = ("tensor computed by a scope", "hierarchy scope", "tensor math on the host")


def emitted(start: int, count: int, native: bool = False, kernel_flags: Sequence[str] = ()) -> Report:
    """Run ``count`` programs as emitted C++ too, whose C++ is compiled together. ``native``: also that of the kernels, and
    every fourth program is one of large kernels."""
    jobs: list[Job] = []
    left_out: Counter[str] = Counter()

    def visit(program: Generated) -> None:
        unbuilt = next((f for f in UNBUILT if f in program.features), None)
        if unbuilt is not None:
            left_out[f"not built yet: {unbuilt}"] += 1
            return
        # Every second one with dependencies that the compiler finds.
        jobs.append(
            Job(
                f"seed {start}, program {len(jobs)}",
                program.text,
                ordered="write after read" not in program.features,
                derive=len(jobs) % 2 == 1,
            )
        )

    large = count // 4 if native else 0
    _run(start, count - large, [Phase.generate], visit)
    if large:
        _run(start, large, [Phase.generate], visit, kernel_programs)
    report = check(jobs, native, kernel_flags)
    report.refused.update(left_out)
    return report


def shrink(checker: Checker, failing: Failing, count: int, seconds: float = 40.0) -> Failing:
    """The smallest program found with the same fault: by Hypothesis, then by taking parts out of the text.

    What a pass refuses is only shrunk by Hypothesis: the rest does not know what a program may say.
    """
    checker = checker.until(failing.fault.where)
    key = failing.fault.key
    best = failing
    known: dict[str, Fault | None] = {}
    until: float | None = None

    def visit(program: Generated) -> None:
        nonlocal best, until
        text = program.text
        if text not in known:
            if until is not None and time.monotonic() > until:
                raise _Enough
            fault = checker.check_text(text, unordered_writes="write after read" in program.features)
            known[text] = fault if fault is not None and fault.key == key else None
        fault = known[text]
        if fault is None:
            return
        until = until or time.monotonic() + seconds / 2
        if (text.count("\n"), len(text)) < (best.text.count("\n"), len(best.text)):
            best = Failing(fault, text, failing.seed)
        raise _Found(str(fault))

    with suppress(_Found, _Enough):
        _run(failing.seed, count, [Phase.generate, Phase.shrink], visit)
    if best.fault.kind not in ("refused", "parse"):
        text, fault = reduce(checker, best.text, best.fault, seconds)
        best = Failing(fault, text, failing.seed)
    return best
