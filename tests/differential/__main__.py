"""``python -m tests.differential --programs 5000 [--seed N]``: a long run over generated programs.

Ends with a line of counts; exit status 1 when a pass changed a program's meaning (or a program's meaning is not what it
should be before the first pass), with the smallest program found and the pass at fault.
"""

from __future__ import annotations

import argparse
import sys
import time

from .campaign import Options, results
from .emitted import Report
from .explore import Failing, shrink
from .features import statistics
from .harness import Counts


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--orders", type=int, default=1, help="random legal orders behind each pass")
    parser.add_argument("--round-trip", action="store_true", help="print and parse behind each pass as well")
    parser.add_argument("--stats", action="store_true", help="how often the programs use what")
    parser.add_argument("--keep-going", action="store_true", help="shrink one program of each fault, not of the first")
    parser.add_argument("--emitted", action="store_true", help="run the C++ that is emitted for each program as well")
    parser.add_argument("--native", action="store_true", help="run emitted C++ with native kernels as well")
    parser.add_argument("--no-passes", action="store_true", help="with --emitted or --native: nothing behind each pass")
    parser.add_argument("--source-only", action="store_true", help="no passes: parse, run, other orders")
    given = parser.parse_args()
    options = Options(
        given.orders, given.round_trip, given.source_only, given.emitted, given.native, not given.no_passes
    )
    begin = time.perf_counter()
    counts = Counts()
    faults: dict[tuple[str, str, str], list[tuple[Failing, int]]] = {}
    as_code = Report()
    for size, found, made, report in results(options, given.programs, given.seed, given.jobs):
        counts.add(made)
        as_code.add(report)
        for fault in report.faults:
            print(f"{'=' * 100}\n{fault.text}\n{fault.code}\n--- {fault}", flush=True)
        for failing in found:
            examples = faults.setdefault(failing.fault.key, [])
            if not examples:  # at once: making it smaller takes a while
                print(f"{failing.fault.where}: {failing.fault.kind} (seed {failing.seed})", flush=True)
            examples.append((failing, size))
        if (found or report.faults) and not given.keep_going:
            break
    took = time.perf_counter() - begin
    for examples in list(faults.values())[: None if given.keep_going else 1]:
        failing, size = min(examples, key=lambda e: len(e[0].text))
        small = shrink(options.checker(), failing, size)
        print(f"{'=' * 100}\n{len(examples)} x {small.fault.where}: {small.fault.kind} (seed {small.seed})\n")
        print(small.text)
        print(f"--- {small.fault}\n--- the program there:\n{small.fault.after}")
    if given.stats:
        print(statistics(counts))
    wrong = sum(map(len, faults.values()))
    print(
        f"{counts.programs} programs, {counts.passes} passes run, {counts.runs} executions, {wrong} mismatches"
        f" in {took:.0f} s (seed {given.seed})"
    )
    if given.emitted or given.native:
        for message, count in as_code.refused.most_common():
            print(f"{count} not as C++: {message}")
        print(f"{as_code.emitted} programs as C++, {as_code.runs} executions, {len(as_code.faults)} mismatches")
    if given.native:
        print(as_code.native_share())
    return 1 if faults or as_code.faults else 0


if __name__ == "__main__":
    sys.exit(main())
