"""Cost of running programs on the host: kernel tasks, kernel scopes, scalar loops, tile operations.

    python benchmarks/interpreter.py [--quick] [--profile]

Each program repeats one thing n times; a figure is the time of the run divided by n, the best of several runs. What a
call costs apart from that (arguments, set-up) is measured with n = 0 and taken off. `growth` is how the total grows
from the smaller n to the larger one, which is ten times as large: 10 is linear.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import io
import pstats
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import pypto.language as pl
from pypto import ir
from pypto.runtime import RunConfig

_ROWS = 160
_HEAD = f"""\
@pl.program
class Bench:
    @pl.function(type=pl.FunctionType.InCore)
    def row(
        self,
        x: pl.Tensor[[{_ROWS}, 64], pl.FP32],
        i: pl.Scalar[pl.INDEX],
        y: pl.Out[pl.Tensor[[{_ROWS}, 64], pl.FP32]],
    ) -> pl.Tensor[[{_ROWS}, 64], pl.FP32]:
        t = pl.load(x, [i, 0], [1, 64])
        return pl.store(pl.add(t, 1.0), [i, 0], y)

    @pl.function(type=pl.FunctionType.InCore)
    def chain(
        self,
        x: pl.Tensor[[{_ROWS}, 64], pl.FP32],
        n: pl.Scalar[pl.INDEX],
        y: pl.Out[pl.Tensor[[{_ROWS}, 64], pl.FP32]],
    ) -> pl.Tensor[[{_ROWS}, 64], pl.FP32]:
        t = pl.load(x, [0, 0], [16, 64])
        for i in pl.range(n):
            t = pl.add(t, 1.0)
        return pl.store(t, [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[{_ROWS}, 64], pl.FP32],
        n: pl.Scalar[pl.INDEX],
        y: pl.InOut[pl.Tensor[[{_ROWS}, 64], pl.FP32]],
        out: pl.InOut[pl.Tensor[[1], pl.INT64]],
    ):
"""
_KERNELS = f"""\
        for i in pl.range(n):
            y = self.row(x, i % {_ROWS}, y)
"""
_SCOPES = f"""\
        for i in pl.range(n):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [i % {_ROWS}, 0], [1, 64])
                y = pl.store(pl.add(t, 1.0), [i % {_ROWS}, 0], y)
"""
_SUBMITS = f"""\
        with pl.manual_scope():
            last = pl.system.task_invalid()
            for i in pl.range(n):
                y, last = pl.submit(self.row, x, i % {_ROWS}, y, deps=[last])
"""
_SCALARS = """\
        total: pl.Scalar[pl.INT64] = 0
        for i in pl.range(n):
            total = total + i * 3 % 7
        pl.write(out, [0], total)
"""
_CHAIN = """\
        y = self.chain(x, n, y)
"""

_RANDOM = {"schedule": "random", "seed": 1}
# name, body of main, largest n, options of the run, goal in microseconds (None: no goal set)
_CASES: list[tuple[str, str, int, dict[str, Any], float | None]] = [
    ("kernel task, submit order", _KERNELS, 10_000, {}, 50),
    ("kernel task, random order", _KERNELS, 10_000, _RANDOM, 100),
    ("submit with a dependency", _SUBMITS, 10_000, {}, 50),
    ("submit, random order", _SUBMITS, 10_000, _RANDOM, 100),
    ("kernel scope, submit order", _SCOPES, 10_000, {}, 50),
    ("kernel scope, random order", _SCOPES, 10_000, _RANDOM, 100),
    ("scalar loop, iteration", _SCALARS, 100_000, {}, 5),
    ("tile operation, 16 x 64", _CHAIN, 10_000, {}, 15),
]


def best(function: Callable[[], Any], repeats: int) -> float:
    """Seconds of the fastest of several calls, each without a collection of garbage that others left."""
    times = []
    for _ in range(repeats):
        gc.collect()
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def runner(body: str, options: dict[str, Any], folder: str) -> Callable[[int], None]:
    """Runs the program of this body for an n."""
    compiled = ir.compile(pl.parse(_HEAD + body), dump_passes=False, output_dir=folder)
    x, y, out = np.ones((_ROWS, 64), np.float32), np.zeros((_ROWS, 64), np.float32), np.zeros(1, np.int64)
    config = RunConfig(**options)
    return lambda n: compiled(x, n, y, out, config=config)


def measure(options: argparse.Namespace, folder: str) -> None:
    """Print the table."""
    repeats = 2 if options.quick else 5
    print(f"{'':<30}{'n':>9}{'us each':>10}{'goal':>7}{'growth':>9}")
    for name, body, full, config, goal in _CASES:
        large = full // 10 if options.quick else full
        run = runner(body, config, folder)
        run(10)
        nothing = best(lambda run=run: run(0), 5)
        small, total = (max(best(lambda run=run, n=n: run(n), repeats) - nothing, 1e-9) for n in (large // 10, large))
        each = 1e6 * total / large
        missed = "  MISSED" if goal is not None and each > goal else ""
        print(f"{name:<30}{large:>9,}{each:>10.1f}{goal if goal is not None else '':>7}{total / small:>9.1f}{missed}")
        if options.profile:
            profiler = cProfile.Profile()
            profiler.runcall(run, large)
            out = io.StringIO()
            pstats.Stats(profiler, stream=out).strip_dirs().sort_stats("tottime").print_stats(20)
            print(out.getvalue())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the repetitions")
    parser.add_argument("--profile", action="store_true", help="show where the time of each case goes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(options, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
