"""Cost of the task runtime, against OpenMP tasks and oneTBB on the same graphs, in the same run.

    python benchmarks/runtime.py [--quick] [--best] [--cases TEXT] [--tbb FOLDER]

Kernels do (almost) nothing, so a figure is what the runtime costs: the time from the first submit to the end of the
last task, divided by the number of tasks, the median of several runs. `x`: the peer's time divided by ours; above 1 we
are faster. All sources are compiled with the same flags, all pools are warm, all graphs are built inside the measured
region ("run only": without the building of TBB's graph; taking it down is never measured). What the kernels wrote is
checked after each run. oneTBB is optional: `pip install tbb-devel`. Where others use the machine, medians tell about
them: look at --best.

METG(50%) is the "minimum effective task granularity" of Task Bench (Slaughter et al., "Task Bench: A Parameterized
Benchmark for Evaluating Parallel Runtime Performance", SC 2020): the mean time of a task, over all cores, at which half
of the time goes into kernels, measured against the best rate of the kernel on as many threads; from the fastest runs.
Smaller is better. Each task writes its own cell and reads cells of the step before, which alternate between two fields.
"AUTO": the runtime finds the order from the arguments (what overwrites is told whom it must not overtake, where the
pattern does not imply it: the runtime's rules find no write behind a read). "MANUAL": all dependencies are task ids.

What limits it, by instruction counts (valgrind, one worker, x86-64, gcc 12): 980 a task for independent tasks, of which
about 250 execute it; 1,800 a hop of a chain; 1,600 a task with a fresh output and a scope; 1,700 a task that writes or
reads a band, a fifth of them in the ordered maps that index bands; 5,500 a stencil task, which has four tensors, 3.7
edges and four lookups. Hardware counters were not to be had, so this is a guess: a second worker does not speed up
kernels that do nothing, since the cache lines of each task's record then move to the other core and back. Peers that
order nothing (task groups, OpenMP without `depend`) do less. libgomp with one thread runs each task where it is
created, and with more does so while over 64 tasks a thread wait.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import gc
import importlib.metadata
import math
import random
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pypto.runtime.build import build, find_compiler, load
from pypto.runtime.host_cpu import usable_cores
from pypto.runtime.host_executor import HostProgram, RunOptions
from pypto.runtime.native_library import SOURCES, task_runtime

HERE = Path(__file__).resolve().parent / "native"
MICRO = 1e6
ROW = 8  # words in a row of cells
KINDS = ("EMPTY", "INDEPENDENT", "PAIRS", "CHAIN", "BANDS", "FRESH", "GRID")
COUNTERS = ("tasks", "edges", "lookups", "visited", "waits", "helped", "stolen", "window")
PATTERNS = ("trivial", "no_comm", "stencil_1d", "fft", "tree", "random_nearest", "all_to_all")
WITHOUT_TBB = "not measured: pip install tbb-devel"

# --- the native side --------------------------------------------------------------------------------------------------

u64, f64, pointer = ctypes.c_uint64, ctypes.c_double, ctypes.c_void_p


class NativeCase(ctypes.Structure):
    """`bench::Case` in case.h."""

    _fields_ = (
        *((name, u64) for name in ("kind", "workers", "n")),
        ("cells", pointer),
        ("cell_rows", u64),
        ("out", pointer),
        ("out_words", u64),
        *((name, u64) for name in ("width", "steps", "fields", "iterations")),
        *((name, pointer) for name in ("points", "reads_at", "reads", "after_at", "after")),
    )


class NativeResult(ctypes.Structure):
    """`bench::Result` in case.h."""

    _fields_ = (("total", f64), ("submit", f64), ("counters", u64 * len(COUNTERS)))


def tbb_folder() -> Path | None:
    """The folder with `include` and `lib` of the installed tbb-devel, if there is one."""
    try:
        files = importlib.metadata.files("tbb-devel") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name == "flow_graph.h" and file.parent.name == "tbb":
            return next(p for p in Path(str(file.locate())).resolve().parents if p.name == "include").parent
    return None


def library(name: str, flags: Sequence[str] = (), link: Sequence[str] = ()) -> ctypes.CDLL:
    """One of the sources beside this file, compiled and loaded."""
    found = load(
        build([HERE / f"{name}.cpp"], include_dirs=[HERE, SOURCES], flags=["-Wextra", *flags], link=link, name=name)
    )
    if hasattr(found, "bench_run"):
        found.bench_run.argtypes = (ctypes.POINTER(NativeCase), u64, ctypes.POINTER(NativeResult))
        found.bench_run.restype = ctypes.c_bool
    return found


@dataclass
class Sample:
    """One run: seconds in all, seconds until all was submitted, counters of the runtime."""

    total: float
    submit: float
    counters: dict[str, int]

    @property
    def after(self) -> float:
        return self.total - self.submit


@dataclass(frozen=True)
class Contender:
    """A way to run a case. `run_only`: its time begins when all is submitted."""

    label: str
    library: ctypes.CDLL
    variant: int = 0
    run_only: bool = False

    def seconds(self, sample: Sample) -> float:
        return sample.after if self.run_only else sample.total


class Contenders:
    """Those that this machine has."""

    def __init__(self, tbb: Path | None) -> None:
        runtime = task_runtime()
        self.pypto_library = library("with_pypto")
        runtime.bind(self.pypto_library)
        self.pypto_library.bench_bind(
            *(ctypes.cast(function, pointer) for function in (runtime.library.pto_run, runtime.library.pto_free))
        )
        openmp = library("with_openmp", ["-fopenmp"], ["-fopenmp"])
        self.pypto = Contender("pypto", self.pypto_library)
        self.manual = Contender("MANUAL", self.pypto_library, 1)
        self.openmp = Contender("OpenMP", openmp)
        self.flow = self.flow_run = self.group = None
        if tbb is not None:
            lib = tbb / "lib"
            made = library(
                "with_tbb",
                ["-isystem", str(tbb / "include")],
                [f"-L{lib}", "-ltbb", f"-Wl,-rpath,{lib}"],
            )
            self.flow = Contender("TBB graph", made, 0)
            self.flow_run = Contender("run only", made, 0, True)
            self.group = Contender("TBB group", made, 1)

    def named(self, label: str) -> Contender:
        return next(c for c in vars(self).values() if isinstance(c, Contender) and c.label == label)

    def peers(self, group: bool, flow: bool = True) -> list[Contender]:
        """All but ours. `group`, `flow`: the case can be a task group, a flow graph."""
        found = [self.openmp, *((self.flow, self.flow_run) if flow else ()), *((self.group,) if group else ())]
        return [each for each in found if each is not None]


# --- cases ------------------------------------------------------------------------------------------------------------


class Case:
    """Work for a contender, its memory, and what must be found there behind it. `tasks`: how many it has."""

    def __init__(self, kind: str, n: int) -> None:
        self.kind = kind
        self.n = n
        self.tasks = {"PAIRS": 2 * n, "BANDS": 2 * n, "EMPTY": 1}.get(kind, n)
        self.cells = np.zeros((n if kind in ("PAIRS", "BANDS") else 1, ROW), np.uint64)
        self.out = np.zeros(max(n, 1), np.uint64)
        self.native = NativeCase(kind=KINDS.index(kind), n=n)
        self._expected = self._expect()
        self._place()

    def _place(self) -> None:
        self.native.cells, self.native.cell_rows = self.cells.ctypes.data, len(self.cells)
        self.native.out, self.native.out_words = self.out.ctypes.data, len(self.out)

    def _expect(self) -> tuple[np.ndarray, np.ndarray | None]:
        """What `out` holds behind the case, and `cells` (None: anything)."""
        if self.kind == "CHAIN":
            value = 0
            for i in range(self.n):
                value = (value * 3 + i) % 2**64
            cells = np.zeros_like(self.cells)
            cells[0, 0] = value
            return np.zeros_like(self.out), cells
        if self.kind == "INDEPENDENT":  # one byte a task
            out = np.zeros_like(self.out)
            out.view(np.uint8)[: self.n] = 1
            return out, None
        if self.kind in ("EMPTY", "GRID"):
            return np.zeros_like(self.out), None
        return 3 * np.arange(self.n, dtype=np.uint64) + np.uint64(2), None

    def run(self, contender: Contender, workers: int) -> Sample:
        """Raises RuntimeError if the run failed, or a kernel did not run as it should."""
        self.cells.fill(0)
        self.out.fill(0)
        self.native.workers = workers
        found = NativeResult()
        ended = contender.library.bench_run(ctypes.byref(self.native), contender.variant, ctypes.byref(found))
        out, cells = self._expected
        if (
            not ended
            or not np.array_equal(self.out, out)
            or (cells is not None and not np.array_equal(self.cells, cells))
        ):
            raise RuntimeError(f"{contender.label} has not done the work of {self.kind}, n = {self.n}")
        return Sample(found.total, found.submit, dict(zip(COUNTERS, found.counters, strict=True)))


def points_to_read(pattern: str, width: int, step: int, point: int) -> list[int]:
    """The points of the step before that a task of Task Bench reads."""
    if step == 0 or pattern == "trivial":
        return []
    if pattern == "no_comm":
        return [point]
    if pattern == "stencil_1d":
        return [p for p in (point - 1, point, point + 1) if 0 <= p < width]
    if pattern == "fft":
        distance = 1 << (step - 1) % max(1, (width - 1).bit_length())
        return [p for p in (point - distance, point, point + distance) if 0 <= p < width]
    if pattern == "tree":
        return [point // 2]
    if pattern == "random_nearest":  # half of the five nearest, another half for each of eight steps
        chosen = random.Random(f"{step % 8} {point}")
        return [p for p in range(point - 2, point + 3) if chosen.random() < 0.5 and 0 <= p < width]
    return list(range(width))


class Grid(Case):
    """A pattern of Task Bench: `width` points in each of `steps` steps."""

    def __init__(self, pattern: str, width: int, steps: int) -> None:
        super().__init__("GRID", 0)
        self.pattern, self.width, self.steps = pattern, width, steps
        fields = steps if pattern == "trivial" else 2  # without edges no cell may be written twice
        points = [min(width, 1 << min(step, 60)) if pattern == "tree" else width for step in range(steps)]
        self.tasks = sum(points)
        self.cells = np.zeros((fields * width, ROW), np.uint64)
        reads: list[list[int]] = []
        after: list[list[int]] = []
        for step in range(steps):
            for point in range(width):
                is_task = point < points[step]
                reads.append(points_to_read(pattern, width, step, point) if is_task else [])
                touched = is_task and fields == 2 and step >= 2 and point < points[step - 2]
                after.append(self._overtakes(reads, step, point) if touched else [])
        self._arrays = [np.array(points, np.uint64), *_lists(reads), *_lists(after)]
        native = self.native
        native.width, native.steps, native.fields = width, steps, fields
        native.points, native.reads_at, native.reads, native.after_at, native.after = (
            array.ctypes.data for array in self._arrays
        )
        self._place()
        self._expected = self._expected[0], self._execute(points, reads, fields)

    def _overtakes(self, reads: list[list[int]], step: int, point: int) -> list[int]:
        """The tasks that touch what this one overwrites, and that it does not read from."""
        before = (step - 1) * self.width
        readers = [q for q in range(self.width) if point in reads[before + q]]
        if not readers:
            return [(step - 2) * self.width + point]
        return [before + q for q in readers if q not in reads[step * self.width + point]]

    def _execute(self, points: list[int], reads: list[list[int]], fields: int) -> np.ndarray:
        """What the cells hold at the end, one task after the other."""
        cells = [0] * (fields * self.width)
        for step, count in enumerate(points):
            for point in range(count):
                task = step * self.width + point
                read = sum(cells[(step - 1) % fields * self.width + p] for p in reads[task])
                cells[step % fields * self.width + point] = (read + task) * 0x9E3779B97F4A7C15 % 2**64
        expected = np.zeros_like(self.cells)
        expected[:, 0] = np.array(cells, np.uint64)
        return expected


def _lists(lists: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Where each list begins, and all items, one list behind the other."""
    at = np.zeros(len(lists) + 1, np.uint64)
    at[1:] = np.cumsum([len(each) for each in lists])
    return at, np.array([item for each in lists for item in each] or [0], np.uint64)


# --- measuring --------------------------------------------------------------------------------------------------------

REST = 0.006  # seconds: the idle threads of the contender before have stopped to look for work


def repeat(action: Callable[[], Sample], least: int, seconds: float) -> list[Sample]:
    """Results of an action, at least so many, and until that much time has passed."""
    found: list[Sample] = []
    end = time.perf_counter() + seconds
    while len(found) < least or time.perf_counter() < end:
        found.append(action())
    return found


def samples(
    case: Case, contenders: Sequence[Contender], workers: int, rounds: int, seconds: float, rest: float = 0.0
) -> dict[str, list[Sample]]:
    """Runs of each contender, in turns of so many seconds. `rest`: seconds of idleness in front of each run."""
    found: dict[str, list[Sample]] = defaultdict(list)

    def once(contender: Contender) -> Sample:
        time.sleep(rest)
        return case.run(contender, workers)

    for _ in range(rounds):
        for contender in contenders:
            if contender.run_only:
                continue  # seen in the runs of its other self
            gc.collect()
            time.sleep(REST)
            case.run(contender, workers)
            found[contender.label] += repeat(functools.partial(once, contender), 1, seconds)
    for contender in contenders:
        if contender.run_only:
            whole = next(c for c in contenders if c.library is contender.library and c.variant == contender.variant)
            found[contender.label] = found[whole.label]
    return found


COARSE = 1e-4  # seconds of a task: what is not efficient there is not measured further


def metg(case: Grid, contender: Contender, workers: int, peak: float, seconds: float) -> float:
    """Seconds of a task over all cores at which half of them goes into kernels. `peak`: iterations a second.

    Kernels are made longer until that is so. NaN: it never is.
    """

    def look(iterations: int) -> tuple[float, float]:
        """Efficiency and seconds of a task, in the fastest of many runs."""
        case.native.iterations = iterations
        best = min(contender.seconds(s) for s in repeat(lambda: case.run(contender, workers), 3, seconds))
        return case.tasks * iterations / best / peak, best * workers / case.tasks

    time.sleep(REST)
    step = math.sqrt(2)
    iterations = max(1.0, 5e-8 * peak / workers)  # 50 ns
    less = at_less = 0.0
    while True:
        more, at_more = look(round(iterations))
        if more >= 0.5:
            break
        if at_more > COARSE:
            return math.nan
        less, at_less = more, at_more
        iterations *= step
    if at_less == 0.0 or at_more <= at_less:
        return at_more
    return at_less * (at_more / at_less) ** ((0.5 - less) / (more - less))


# --- the tables -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """A line of the table. `goal`: microseconds of a task. `group`, `flow`: TBB can do it so."""

    name: str
    kind: str
    n: int
    goal: float | None = None
    group: bool = False
    flow: bool = True
    rest: float = 0.0


ENTRIES = (
    Entry("empty run", "EMPTY", 0, 200, group=True),
    Entry("empty run, threads asleep", "EMPTY", 0, 200, group=True, rest=0.02),
    Entry("10,000 independent", "INDEPENDENT", 10_000, 0.3, group=True),
    Entry("1,000,000 independent", "INDEPENDENT", 1_000_000, 0.3, group=True),
    Entry("10,000 producer/consumer pairs", "PAIRS", 10_000, group=True),
    Entry("chain of 10,000", "CHAIN", 10_000, 1),
    Entry("10,000 bands written, then read", "BANDS", 10_000),
    Entry("100,000 fresh outputs in scopes", "FRESH", 100_000, group=True, flow=False),
)


def figure(value: float, digits: int) -> str:
    """A number in its column. NaN: no granularity was fine enough."""
    return f"{f'>{MICRO * COARSE:.0f}':>10}" if math.isnan(value) else f"{value:>10.{digits}f}"


@dataclass
class Benchmark:
    """Settings, and the ratios that were seen."""

    contenders: Contenders
    workers: list[int]
    quick: bool
    best: bool
    only: str
    ratios: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    breakdown: list[str] = field(default_factory=list)

    def typical(self, values: Iterable[float]) -> float:
        return (min if self.best else statistics.median)(values)

    def cells(self, ours: float, theirs: dict[str, float], columns: Sequence[str], digits: int = 3) -> str:
        """The figures of the peers, with ratios."""
        text = ""
        for label in columns:
            if label not in theirs:
                text += f"{'':>17}"
                continue
            ratio = theirs[label] / ours
            if math.isnan(ratio):
                text += f"{figure(theirs[label], digits)}{'':>7}"
                continue
            self.ratios[label].append(ratio)
            text += f"{figure(theirs[label], digits)}{ratio:>6.1f}x"
        return text

    def task_table(self) -> None:
        """Figures of single cases."""
        columns = [c.label for c in self.contenders.peers(True)]
        for workers in self.workers:
            header = "".join(f"{label:>17}" for label in columns)
            print(f"\nMicroseconds a task, {workers} worker(s)\n{'':<34}{'goal':>6}{'pypto':>10}{header}")
            for entry in ENTRIES:
                if self.only in entry.name:
                    self._task_line(entry, workers, columns)

    def _task_line(self, entry: Entry, workers: int, columns: Sequence[str]) -> None:
        contenders = self.contenders
        case = Case(entry.kind, entry.n // 10 if self.quick and entry.n >= 100_000 else entry.n)
        rounds, seconds = (3, 0.02) if self.quick else (7, 0.1)
        taking_part = [contenders.pypto, *contenders.peers(entry.group, entry.flow)]
        found = samples(case, taking_part, workers, rounds, seconds, entry.rest)
        figures = {
            c.label: MICRO * self.typical(c.seconds(s) for s in found[c.label]) / case.tasks for c in taking_part
        }
        ours = figures.pop(contenders.pypto.label)
        goal = "" if entry.goal is None else f"{entry.goal:g}"
        missed = "  MISSED" if entry.goal is not None and ours > entry.goal else ""
        print(f"{entry.name:<34}{goal:>6}{ours:>10.3f}{self.cells(ours, figures, columns)}{missed}", flush=True)
        if entry.rest:
            return
        mine = found[contenders.pypto.label]
        submit = MICRO * self.typical(s.submit for s in mine) / case.tasks
        after = MICRO * self.typical(s.after for s in mine) / case.tasks
        counters = "".join(f"{statistics.median(s.counters[c] for s in mine):>11,.0f}" for c in COUNTERS)
        self.breakdown.append(f"{entry.name:<34}{workers:>3}{submit:>9.3f}{after:>9.3f}{counters}")

    def submit_table(self) -> None:
        """Submitting while nothing is executed: one worker, fewer tasks than its queue takes."""
        print(f"\nMicroseconds of a submit alone (1,000 tasks, one worker)\n{'':<34}{'submit':>9}{'the rest':>10}")
        for kind, n in (("INDEPENDENT", 1000), ("CHAIN", 1000), ("PAIRS", 500), ("BANDS", 500), ("FRESH", 1000)):
            mine = samples(Case(kind, n), [self.contenders.pypto], 1, 5, 0.01)[self.contenders.pypto.label]
            submit, after = (
                MICRO * self.typical(values) / 1000 for values in ([s.submit for s in mine], [s.after for s in mine])
            )
            print(f"{kind.lower():<34}{submit:>9.3f}{after:>10.3f}")

    def breakdown_table(self) -> None:
        """What our runs did."""
        names = "".join(f"{name:>11}" for name in COUNTERS)
        print("\nOur runs: workers, microseconds a task until all was submitted and after that, counters of a run")
        print(f"{'':<37}{'submit':>9}{'after':>9}{names}")
        print("\n".join(self.breakdown))

    def memory_table(self) -> None:
        """Growth of the process while it runs many tasks, each in a process of its own."""
        columns = [c.label for c in self.contenders.peers(True) if not c.run_only]
        header = "".join(f"{label:>17}" for label in columns)
        print(f"\nGrowth of resident memory, MiB, {self.workers[-1]} worker(s)\n{'':<40}{'pypto':>10}{header}")
        for entry in ENTRIES:
            if entry.n < 100_000 or self.only not in entry.name:
                continue
            peers = [c.label for c in self.contenders.peers(entry.group, entry.flow)]
            line = f"{entry.name:<40}"
            for label in [self.contenders.pypto.label, *columns]:
                width = 10 if label == self.contenders.pypto.label else 17
                wanted = label in peers or label == self.contenders.pypto.label
                line += f"{self._memory(entry, label) if wanted else '':>{width}}"
            print(line, flush=True)

    def _memory(self, entry: Entry, label: str) -> str:
        command = [sys.executable, __file__, "--memory", entry.name, label]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def python_table(self) -> None:
        """An empty run as Python starts it."""
        program = HostProgram(self.contenders.pypto_library, [], entry="nothing", config=None)
        print(f"\nMicroseconds of an empty run through Python's HostProgram.run\n{'':<34}{'goal':>6}")
        for workers in self.workers:
            options = RunOptions(workers=workers)
            times = []
            time.sleep(REST)
            for _ in range(200 if self.quick else 1000):
                start = time.perf_counter()
                program.run([], [], options)
                times.append(time.perf_counter() - start)
            ours = MICRO * self.typical(times)
            print(f"{f'{workers} worker(s)':<34}{200:>6}{ours:>10.1f}{'  MISSED' if ours > 200 else ''}")

    def metg_table(self, peak: Callable[[int], float]) -> None:
        """Task Bench."""
        contenders = self.contenders
        goal = 2.0
        seconds = 0.01 if self.quick else 0.03
        for workers in self.workers[-1:] if self.quick else self.workers:
            best = peak(workers)
            columns = [c.label for c in contenders.peers(True)]
            header = "".join(f"{label:>17}" for label in columns)
            print(f"\nMETG(50%), microseconds, {workers} worker(s); goal {goal:g}")
            print(f"an iteration of the kernel takes {1e9 * workers / best:.2f} ns")
            print(f"{'':<18}{'width':>6}{'AUTO':>10}{contenders.manual.label:>10}{header}")
            for pattern in PATTERNS:
                for width in (8,) if self.quick else (2, 8):
                    if self.only not in pattern:
                        continue
                    case = Grid(pattern, width, 200 if self.quick else 500)
                    taking_part = [contenders.pypto, contenders.manual, *contenders.peers(pattern == "trivial")]
                    figures = {c.label: MICRO * metg(case, c, workers, best, seconds) for c in taking_part}
                    ours, manual = (figures.pop(c.label) for c in (contenders.pypto, contenders.manual))
                    missed = "" if ours <= goal else "  MISSED"
                    cells = self.cells(ours, figures, columns, 2)
                    print(f"{pattern:<18}{width:>6}{figure(ours, 2)}{figure(manual, 2)}{cells}{missed}", flush=True)


def memory_growth(entry: Entry, contender: Contender, workers: int) -> str:
    """MiB that the process grows by in one run, above what it holds in front of it."""
    Case(entry.kind, 1000).run(contender, workers)
    case = Case(entry.kind, entry.n)
    case.out.fill(1)  # its pages are there
    case.cells.fill(1)

    def status(key: str) -> int:
        line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(key))
        return int(line.split()[1])

    try:
        Path("/proc/self/clear_refs").write_text("5")  # begins a new peak
        before = status("VmRSS")
    except OSError:
        return "not measured"  # the system keeps no such account
    case.run(contender, workers)
    return f"{(status('VmHWM') - before) / 1024:.1f}"


def peak_rate(library: ctypes.CDLL, quick: bool) -> Callable[[int], float]:
    """Gives the most iterations a second that so many threads reach together."""
    library.bench_peak.restype = f64
    library.bench_peak.argtypes = (u64, u64)
    return lambda threads: max(library.bench_peak(threads, 5_000_000) for _ in range(5 if quick else 15))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer runs and tasks")
    parser.add_argument("--best", action="store_true", help="the fastest run, not the median: for a machine in use")
    parser.add_argument("--cases", default="", metavar="TEXT", help="only those with this text in their names")
    parser.add_argument("--tbb", type=Path, metavar="FOLDER", help="where include/ and lib/ of oneTBB are")
    parser.add_argument(
        "--memory", nargs=2, help=argparse.SUPPRESS
    )  # a case and a contender, in a process of their own
    options = parser.parse_args()
    tbb = options.tbb or tbb_folder()
    contenders = Contenders(tbb)
    cores = usable_cores()
    workers = [1, 2] if cores >= 2 else [1]
    if options.memory:
        name, label = options.memory
        entry = next(entry for entry in ENTRIES if entry.name == name)
        print(memory_growth(entry, contenders.named(label), workers[-1]))
        return 0
    version = importlib.metadata.version("tbb-devel") if options.tbb is None and tbb is not None else str(tbb)
    print(f"{find_compiler().version}, {cores} cores, {'best' if options.best else 'median'} of several runs")
    print(f"oneTBB: {version if tbb is not None else WITHOUT_TBB}")
    benchmark = Benchmark(contenders, workers, options.quick, options.best, options.cases)
    benchmark.task_table()
    benchmark.breakdown_table()
    benchmark.submit_table()
    benchmark.python_table()
    benchmark.memory_table()
    benchmark.metg_table(peak_rate(library("peak"), options.quick))
    means = [f"{label} {statistics.geometric_mean(r):.2f}x ({len(r)} figures)" for label, r in benchmark.ratios.items()]
    print(f"\nGeometric mean of the peer's time divided by ours: {', '.join(means)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
