"""A long run in batches, in one process or several. The programs depend on the seed alone."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from dataclasses import dataclass

from .emitted import Report
from .explore import Failing, emitted, explore
from .harness import Checker, Counts

BATCH = 50


@dataclass(frozen=True)
class Options:
    """What is checked: see :class:`Checker`; ``emitted``: also the C++ of each program; ``native``: with native kernels,
    too; ``each_pass``: the program behind each pass."""

    orders: int = 1
    round_trip: bool = False
    source_only: bool = False
    emitted: bool = False
    native: bool = False
    each_pass: bool = True

    def checker(self) -> Checker:
        passes = [] if self.source_only else None
        return Checker(passes, self.orders, self.round_trip)


Result = tuple[int, list[Failing], Counts, Report]


def _batch(job: tuple[int, int, Options]) -> Result:
    start, count, options = job
    checker = options.checker()
    report = emitted(start, count, options.native) if options.emitted or options.native else Report()
    return count, explore(checker, start, count) if options.each_pass else [], checker.counts, report


def results(options: Options, programs: int, seed: int, processes: int) -> Iterator[Result]:
    """For each batch its size, the programs with faults, what was done, and what became of emitted code."""
    sizes = [min(BATCH, programs - at) for at in range(0, programs, BATCH)]
    jobs = [(seed * 1_000_003 + number, size, options) for number, size in enumerate(sizes)]
    if processes == 1:
        yield from map(_batch, jobs)
        return
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap(_batch, jobs)
