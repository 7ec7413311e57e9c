"""Run time of compiled programs against NumPy and PyTorch, and against what the memory and the cores allow.

    python benchmarks/run.py [--quick] [--case TEXT] [--threads N] [--limit SECONDS] [--best] [--json FILE]

All contenders run in one process with the same number of threads, one after another, again and again; a time is the
median, or with `--best` the fastest. Ours is the call of the entry on arrays, warm. Peers write into arrays that are
there before, where they can; a note says where not. The ratio is the time of the best peer divided by ours: above 1 we
are faster.

Two floors are measured in the same run. Memory: the bytes that have to be read or written, over the highest rate of
reading, writing, copying and a triad, each thread on its own part, with as many bytes as the case has (so the caches
count where it fits into them). Compute: the operations of the matrix products over the highest rate that a product of
PyTorch or NumPy reaches in that precision, so far in the run. The distance is the time divided by the larger floor.

The first call is that of a fresh process, from behind the imports and the making of arguments to the result: with an
empty cache folder, and with the one that this left; PyPTO's bytecode is there. A measurement that takes longer than
`--limit` is left out, and the table says so; a first call, which compiles, may take four times as long. `--quick` takes
a part of the cases, fewer runs, and a limit of a few seconds, begins no case after a minute and a half, and measures
first calls of two cases.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import ctypes
import functools
import importlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import cases
import numpy as np
from cases import F32, Case

import pypto
from pypto.runtime.build import build, load
from pypto.runtime.compilers import CompilerNotFound
from pypto.runtime.host_cpu import usable_cores

OURS = "pypto"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# Threads of OpenBLAS wait busily after a call, for 2**26 clock ticks if not told, on the cores of the next contender.
SPIN = {"OPENBLAS_THREAD_TIMEOUT": "14"}
SHORT = 5e-3  # of calls shorter than this, several are measured in a row, and the first one is not counted
QUICK_SECONDS = 90.0
FIRST = 4  # a first call, which compiles, may take so many times the limit
SETTLE = 1.5  # seconds for which short calls are repeated before they are measured
PAUSE = 0.01  # between contenders
TOLERANCES = {"fp32": 1e-3, "bf16": 3e-2}  # of the largest error, relative to the largest value

SWEEP = r"""
#include <stdint.h>
#include <string.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

static float pass(int kind, float* a, float* b, float* c, int64_t n) {
    if (kind == 1) memset(a, 1, n * sizeof(float));
    if (kind == 2) memcpy(a, b, n * sizeof(float));
    if (kind == 3)
        for (int64_t i = 0; i < n; i++) a[i] = b[i] + 3 * c[i];
    float sum = 0;
    if (kind == 0)
        for (int64_t i = 0; i < n; i++) sum += a[i];
    return sum;
}

// Bytes a second of reading (0), writing (1), copying (2), a triad (3): each thread passes over its own part, of which
// all arrays together have n floats.
extern "C" __attribute__((visibility("default"))) double sweep(int kind, int threads, int64_t n, int64_t passes) {
    const int64_t each = n / (kind < 2 ? 1 : kind);
    std::vector<std::thread> all;
    std::atomic<int> ready{0};
    std::atomic<float> sink{0};
    std::vector<std::chrono::steady_clock::time_point> begin(threads), end(threads);
    for (int t = 0; t < threads; t++)
        all.emplace_back([&, t] {
            std::vector<float> a(each, 1), b(kind >= 2 ? each : 0, 1), c(kind == 3 ? each : 0, 1);
            pass(kind, a.data(), b.data(), c.data(), each);
            ready++;
            while (ready < threads) std::this_thread::yield();
            begin[t] = std::chrono::steady_clock::now();
            for (int64_t i = 0; i < passes; i++) {
                sink = pass(kind, a.data(), b.data(), c.data(), each);
                asm volatile("" ::: "memory");
            }
            end[t] = std::chrono::steady_clock::now();
        });
    for (auto& thread : all) thread.join();
    auto first = begin[0], last = end[0];
    for (int t = 1; t < threads; t++) {
        if (begin[t] < first) first = begin[t];
        if (last < end[t]) last = end[t];
    }
    const int64_t arrays = kind < 2 ? 1 : kind;
    const double seconds = std::chrono::duration<double>(last - first).count();
    return double(threads) * passes * each * arrays * sizeof(float) / seconds;
}
"""


class TooLong(Exception):
    """A measurement took longer than the limit."""


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Stop what runs in Python after so long. (Code that does not come back to Python is not stopped.)"""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(_number: int, _frame: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def timed(call: Callable[[], Any]) -> float:
    """Seconds of one call."""
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def figure(seconds: float) -> str:
    """A time, with the unit that fits."""
    for unit, scale in (("s ", 1.0), ("ms", 1e3)):
        if seconds * scale >= 1:
            return f"{seconds * scale:8.2f} {unit}"
    return f"{seconds * 1e6:8.1f} us"


def error_of(found: Sequence[Any], want: Sequence[Any]) -> tuple[float, float]:
    """The largest absolute error, and the same relative to the largest value."""
    worst, relative = 0.0, 0.0
    for one, other in zip(found, want, strict=True):
        one, other = np.asarray(one).astype(F32), np.asarray(other).astype(F32)
        error = float(np.abs(one - other).max())
        error = float("inf") if np.isnan(error) else error
        worst, relative = max(worst, error), max(relative, error / max(float(np.abs(other).max()), 1e-30))
    return worst, relative


# --- floors -----------------------------------------------------------------------------------------------------------


class Machine:
    """What the memory and the cores reach in this run, with so many threads."""

    def __init__(self, torch: Any, threads: int, quick: bool) -> None:
        self.torch, self.threads, self.quick = torch, threads, quick
        self.seen: dict[str, float] = {}
        try:
            self.library: Any = load(build([("sweep.cpp", SWEEP)], flags=["-O3", "-ffast-math"], name="sweep"))
        except CompilerNotFound:
            self.library = None  # a copy by NumPy, which uses one thread
        else:
            self.library.sweep.restype = ctypes.c_double
            self.library.sweep.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)

    def highest(self, name: str, rate: float) -> float:
        """The highest rate of that name so far: a machine in use does not always give what it can."""
        self.seen[name] = max(rate, self.seen.get(name, 0.0))
        return self.seen[name]

    def rates(self, size: int) -> dict[str, float]:
        """Bytes a second, by kind, when all threads together go over so many bytes."""
        runs = 2 if self.quick else 5
        if self.library is None:
            source, target = np.ones(size // 8, F32), np.ones(size // 8, F32)
            seconds = min(timed(lambda: np.copyto(target, source)) for _ in range(4 * runs))
            return {"copy": 2 * source.nbytes / seconds}
        floats = max(size // 4 // self.threads, 1)
        passes = max(1, (1 << 28) // size)
        return {
            name: max(self.library.sweep(kind, self.threads, floats, passes) for _ in range(runs))
            for kind, name in enumerate(("read", "write", "copy", "triad"))
        }

    def memory_floor(self, moved: float) -> float:
        """Seconds for so many bytes."""
        size = 1 << max(16, min(29, int(moved).bit_length()))
        return moved / self.highest(f"memory {size}", max(self.rates(size).values()))

    def flop_rate(self, precision: str) -> float:
        """Operations a second of the fastest product of two matrices."""
        rates = []
        for size in (1024, 2048):
            a = np.random.default_rng(0).random((size, size), F32)
            b = a.copy()
            out = np.empty_like(a)
            calls: list[Callable[[], Any]] = []
            if precision == "fp32" or self.torch is None:
                calls.append(lambda a=a, b=b, out=out: np.matmul(a, b, out=out))  # type: ignore[misc]
            if self.torch is not None:
                kind = self.torch.float32 if precision == "fp32" else self.torch.bfloat16
                ta, tb, tc = (cases.tensor(self.torch, t).to(kind) for t in (a, b, out))
                calls.append(lambda a=ta, b=tb, out=tc: self.torch.mm(a, b, out=out))  # type: ignore[misc]
            for call in calls:
                call()
                rates.append(2 * size**3 / min(timed(call) for _ in range(3 if self.quick else 8)))
        return self.highest(precision, max(rates))

    def floors(self, case: Case, args: Sequence[Any]) -> tuple[float, float]:
        """Seconds that the bytes and the operations of a case take at least."""
        flops = case.flops(*args)
        return self.memory_floor(case.bytes_moved(args)), flops / self.flop_rate(case.precision) if flops else 0.0


# --- one case ---------------------------------------------------------------------------------------------------------


class Contender:
    """What is measured, until it fails or takes too long."""

    best = False  # the fastest run, not the median

    def __init__(self, label: str, call: Callable[[], Any], note: str = "") -> None:
        self.label, self.call, self.note = label, call, note
        self.samples: list[float] = []
        self.left_out = ""
        self.error: tuple[float, float] | None = None

    def first(self, limit: float) -> None:
        """The call that compiles, and one more that says how long it takes."""
        try:
            with at_most(limit), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.call()
        except TooLong:
            self.left_out = f"left out: the first call takes more than {limit:g} s"
        except Exception as error:  # any: the other contenders are measured all the same
            self.left_out = f"failed: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200]

    def settle(self) -> None:
        """Short calls over some time: what is called often may be compiled meanwhile."""
        end = time.perf_counter() + SETTLE
        while not self.left_out and time.perf_counter() < end and timed(self.call) < SHORT:
            pass

    def turn(self, limit: float) -> None:
        """Measure once, or several times where a call is short."""
        try:
            with at_most(limit):
                seconds = timed(self.call)
                self.samples += [seconds] if seconds >= SHORT else [timed(self.call) for _ in range(5)]
        except TooLong:
            if not self.samples:
                self.left_out = f"left out: a call takes more than {limit:g} s"

    @property
    def seconds(self) -> float | None:
        if self.left_out or not self.samples:
            return None
        return min(self.samples) if self.best else statistics.median(self.samples)


def measure(contenders: list[Contender], limit: float, budget: float, runs: int) -> None:
    """Turns of all contenders, one after another, until each had so many or the time is used up."""
    end = time.perf_counter() + budget
    for number in range(runs):
        for contender in contenders:
            if not contender.left_out and (number == 0 or time.perf_counter() < end):
                time.sleep(PAUSE)
                contender.turn(limit)
        if time.perf_counter() >= end:
            return


class Report:
    """The lines of one case, and the same as data."""

    def __init__(self, case: Case) -> None:
        self.data: dict[str, Any] = {"case": case.name, "times": {}, "errors": {}, "notes": {}}
        print(f"\n{case.name}", flush=True)

    def line(self, label: str, text: str) -> None:
        print(f"  {label:<18} {text}", flush=True)

    def contender(self, one: Contender, tolerance: float) -> None:
        """Its time, or why there is none."""
        seconds, note = one.seconds, one.note
        if seconds is None:
            self.data["notes"][one.label] = one.left_out
            self.line(one.label, one.left_out)
            return
        self.data["times"][one.label] = seconds
        if one.error is not None:
            self.data["errors"][one.label] = one.error[0]
            wrong = "WRONG, " if one.error[1] > tolerance else ""
            note = "; ".join(filter(None, (f"{wrong}largest error {one.error[0]:.1e}", note)))
        self.line(one.label, f"{figure(seconds)}  ({len(one.samples)} runs) {note}")


class Benchmark:
    """All measurements of a run."""

    def __init__(self, torch: Any, threads: int, quick: bool, limit: float) -> None:
        self.torch, self.threads, self.quick, self.limit = torch, threads, quick, limit
        self.machine = Machine(torch, threads, quick)
        self.ratios: list[float] = []

    def head(self) -> dict[str, Any]:
        """What the machine reaches, printed and as data."""
        rates = self.machine.rates(1 << 28)
        flops = {name: self.machine.flop_rate(name) for name in ("fp32", "bf16")}
        print("memory, GB/s:  " + ", ".join(f"{name} {rate / 1e9:.1f}" for name, rate in rates.items()))
        print("products, GFLOP/s:  " + ", ".join(f"{name} {rate / 1e9:.0f}" for name, rate in flops.items()))
        return {"memory": rates, "products": flops}

    def case(self, case: Case, starts: bool) -> dict[str, Any]:
        """Measure and print one case."""
        report = Report(case)
        entry, args, want = case.load()
        peers = case.peers(self.torch, *args)  # in front of the first call: they copy what calls update
        ours = Contender(OURS, lambda: entry(*args))
        ours.first(FIRST * self.limit)
        if not ours.left_out:  # compared at once: further calls may update what is expected
            ours.error = error_of([args[index] for index in want], list(want.values()))
        contenders = [ours]
        for peer in peers:
            contender = Contender(peer.label, peer.call, peer.note)
            contender.first(FIRST * self.limit)
            if not contender.left_out:
                contender.error = self.peer_error(peer.results(), list(want.values()))
            contenders.append(contender)
        for one in contenders:
            one.settle()
        measure(contenders, self.limit, 1.5 if self.quick else 10.0, 10 if self.quick else 40)
        for one in contenders:
            report.contender(one, TOLERANCES[case.precision])
        memory, compute = self.machine.floors(case, args)
        report.data["floors"] = {"memory": memory, "compute": compute}
        report.line("floors", f"{figure(memory)} memory, {figure(compute)} compute")
        self.compare(report, ours.seconds, contenders[1:], max(memory, compute))
        if starts:
            self.starts(report, case)
        return report.data

    def peer_error(self, results: Sequence[Any], want: Sequence[Any]) -> tuple[float, float]:
        shaped = [np.asarray(r, F32).reshape(np.shape(w)) for r, w in zip(results, want, strict=True)]
        return error_of(shaped, want)

    def compare(self, report: Report, seconds: float | None, peers: list[Contender], floor: float) -> None:
        """Ours against the best peer and the floor."""
        times = {peer.label: peer.seconds for peer in peers if peer.seconds is not None}
        if not times:
            return
        best = min(times, key=lambda label: times[label])
        report.line("best peer", f"{best}, {times[best] / floor:.2f} times the larger floor")
        report.data["best_peer"] = best
        if seconds is not None:
            ratio = times[best] / seconds
            self.ratios.append(ratio)
            report.data["ratio"], report.data["distance"] = ratio, seconds / floor
            report.line("ratio", f"{ratio:.3f}x the best peer; {seconds / floor:.2f} times the larger floor")

    def starts(self, report: Report, case: Case) -> None:
        """The first call of fresh processes."""
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "PYPTO_CACHE_DIR": cache, "PYTHONPYCACHEPREFIX": bytecode()}
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
            for label in ("cold first call", "warm start"):
                command = [sys.executable, __file__, "--first-call", case.name, "--threads", str(self.threads)]
                try:
                    done = subprocess.run(
                        command, env=environment, cwd=cache, capture_output=True, text=True, timeout=FIRST * self.limit
                    )
                    seconds = float(done.stdout.split()[-1])
                except subprocess.TimeoutExpired:
                    report.line(label, f"left out: takes more than {FIRST * self.limit:g} s")
                    return
                except (ValueError, IndexError):
                    why = done.stderr.strip().splitlines()[-1:] or ["no output"]
                    report.line(label, f"failed: {why[0][:200]}")
                    return
                report.data[label.replace(" ", "_")] = seconds
                report.line(label, figure(seconds))


@functools.cache
def bytecode() -> str:
    """A folder with the compiled form of PyPTO, which an installation has: this checkout may have none."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    subprocess.run(
        [sys.executable, "-X", f"pycache_prefix={folder}", "-m", "compileall", "-q", *pypto.__path__], check=True
    )
    return folder


def first_call(name: str) -> None:
    """Print how long the first call of a case takes in this process."""
    (case,) = [c for c in cases.cases() if c.name == name]
    entry, args = case.arguments()
    print(timed(lambda: entry(*args)))


def find_torch(threads: int) -> Any:
    """PyTorch, set to so many threads, or None."""
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError:
        return None
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    return torch


def run(options: argparse.Namespace) -> None:
    """Measure what the options choose."""
    Contender.best = options.best
    torch = find_torch(options.threads)
    peers = f"NumPy {np.__version__}, " + (
        f"PyTorch {torch.__version__}" if torch else "no PyTorch: it is not installed"
    )
    executor = os.environ.get("PYPTO_EXECUTOR", "auto")
    print(
        f"{options.threads} threads; executor {executor}; {'best runs' if options.best else 'medians'}; peers: {peers}"
    )
    benchmark = Benchmark(torch, options.threads, options.quick, options.limit or (4.0 if options.quick else 60.0))
    result: dict[str, Any] = {
        "threads": options.threads,
        "executor": executor,
        "peers": peers,
        "machine": benchmark.head(),
        "cases": [],
    }
    chosen = [c for c in cases.cases() if options.case in c.name and (c.quick or options.case or not options.quick)]
    begin = time.perf_counter()
    for case in chosen:
        if options.quick and time.perf_counter() - begin > QUICK_SECONDS:
            print(f"\n{case.name}\n  left out: {QUICK_SECONDS:g} s are used up")
            continue
        starts = not options.quick or bool(options.case) or case in (chosen[0], chosen[-1])
        result["cases"].append(benchmark.case(case, starts))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
    mean = f"{statistics.geometric_mean(benchmark.ratios):.3f}x" if benchmark.ratios else "none"
    counted = f"{len(benchmark.ratios)} of {len(chosen)} cases"
    print(f"\nGeometric mean of the best peer's time divided by ours: {mean} ({counted})")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer cases and runs, a limit of a few seconds")
    parser.add_argument(
        "--case", default="", metavar="TEXT", help="only cases with this text in their names, also big ones"
    )
    parser.add_argument("--threads", type=int, default=usable_cores(), help="of each contender; default: all cores")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="of one measurement")
    parser.add_argument("--best", action="store_true", help="the fastest run, not the median: for a machine in use")
    parser.add_argument("--json", metavar="FILE", help="write all figures there")
    parser.add_argument("--list", action="store_true", help="only the names of the cases")
    parser.add_argument("--first-call", metavar="NAME", help=argparse.SUPPRESS)  # in a process of its own
    options = parser.parse_args()
    if options.list:
        print("\n".join(case.name for case in cases.cases()))
        return 0
    wanted = dict.fromkeys(THREAD_VARIABLES, str(options.threads)) | SPIN
    if not wanted.items() <= os.environ.items():
        # Libraries read these when they are loaded; and who asks for the number of cores is to find as many.
        os.environ.update(wanted)
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
        os.execv(sys.executable, [sys.executable, *sys.argv])
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PYPTO_PROG_BUILD_DIR"] = folder
        if options.first_call:
            first_call(options.first_call)
        else:
            run(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
