"""Twice the tasks, twice the work of ordering and scheduling them: lines are counted, so that no clock decides."""

import sys

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir
from pypto.ir.span import Span
from pypto.ops.values import ArrayValue, Buffer
from pypto.runtime.graph import Tag, TaskGraph
from pypto.runtime.run_config import RunConfig

LIMIT = 2.3
N = 128
SPAN = Span("program.py", 1, 1)


def lines_of(function) -> int:
    """Lines that run while ``function`` does. Each turn of a loop counts, also in a comprehension on one line."""
    count = 0

    def trace(_frame, event, _argument):
        nonlocal count
        if event == "line":
            count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


def nothing():
    pass


class Tasks:
    """Submits empty tasks over the rows of some tensors."""

    def __init__(self, graph, rows):
        self.graph = graph
        self.x, self.y = self.tensor(rows), self.tensor(rows)
        self.order = np.random.default_rng(0).permutation(rows).tolist()

    @staticmethod
    def tensor(rows):
        data = np.zeros((rows, 4), np.float32)
        return ArrayValue(data, Buffer(data, "t"))

    @staticmethod
    def band(value, i):
        return value.view(value.data[i : i + 1])

    def submit(self, *arguments, deps=(), manual=False):
        return self.graph.submit("k", nothing, SPAN, list(arguments), deps, manual)


def independent(t, n):
    for _ in range(n):
        t.submit()


def a_chain_of_dependencies(t, n):
    last = t.submit()
    for _ in range(n):
        last = t.submit(deps=[last], manual=True)


def a_fan(t, n):
    first = t.submit()
    t.submit(deps=[t.submit(deps=[first], manual=True) for _ in range(n)], manual=True)


def one_tensor_updated(t, n):
    for _ in range(n):
        t.submit((t.x, Tag.INOUT))


def one_tensor_rewritten(t, n):
    """Source order: each task reads all and writes all."""
    for _ in range(n):
        t.submit((t.x, Tag.INPUT), (t.x, Tag.SOURCE_WRITE))


def bands(t, n):
    for i in t.order:
        t.submit((t.band(t.x, i), Tag.SOURCE_WRITE))
    for i in t.order:
        t.submit((t.band(t.x, i), Tag.INPUT), (t.band(t.y, i), Tag.INOUT))


def bands_under_the_whole(t, n):
    """A task that touches everything must not make each look-up search everything."""
    t.submit((t.x, Tag.SOURCE_WRITE))
    t.submit((t.x, Tag.INPUT))
    bands(t, n)
    t.submit((t.x, Tag.SOURCE_WRITE))


def bands_again_and_again(t, n):
    for i in range(n):
        t.submit((t.band(t.x, i % 8), Tag.INPUT), (t.band(t.x, i % 8), Tag.SOURCE_WRITE))


def one_input_for_all(t, n):
    for i in range(n):
        t.submit((t.x, Tag.INPUT), (t.band(t.y, i), Tag.SOURCE_WRITE))
    t.submit((t.x, Tag.SOURCE_WRITE))


def the_host_reads_each(t, n):
    """All tasks are ready; each wait runs one."""
    for i in range(n):
        t.submit((t.band(t.x, i), Tag.SOURCE_WRITE))
    for i in t.order:
        t.graph.sync(t.band(t.x, i))


def the_host_waits_after_each(t, n):
    for _ in range(n):
        t.submit((t.x, Tag.INPUT), (t.y, Tag.OUTPUT_EXISTING))
        t.graph.finish()


SHAPES = [
    independent,
    a_chain_of_dependencies,
    a_fan,
    one_tensor_updated,
    one_tensor_rewritten,
    bands,
    bands_under_the_whole,
    bands_again_and_again,
    one_input_for_all,
    the_host_reads_each,
    the_host_waits_after_each,
]


@pytest.mark.parametrize("shape", SHAPES)
def test_random_schedules_grow_linearly(shape):
    def work(n):
        graph = TaskGraph("random", 1)
        tasks = Tasks(graph, n)

        def run():
            shape(tasks, n)
            graph.finish()

        count = lines_of(run)
        assert not graph.pending and not graph.ready and graph.submitted >= n
        assert count > n
        return count

    assert work(2 * N) <= LIMIT * work(N)


# A record keeps what is done, so tasks that all write one tensor without order among them stay live: N edges each.
@pytest.mark.parametrize("shape", [s for s in SHAPES if s is not the_host_waits_after_each])
def test_recorded_runs_grow_linearly(shape):
    def work(n):
        graph = TaskGraph(record=True)
        tasks = Tasks(graph, n)
        return lines_of(lambda: shape(tasks, n))

    assert work(2 * N) <= LIMIT * work(N)


def test_what_is_done_does_not_pile_up():
    graph = TaskGraph("random")
    tasks = Tasks(graph, 4)
    the_host_waits_after_each(tasks, 1000)
    for value in (tasks.x, tasks.y):
        assert value.buffer.record.readers.size + value.buffer.record.writers.size < 100


PROGRAM = """
@pl.program
class Bands:
    @pl.function(type=pl.FunctionType.InCore)
    def bump(self, x: pl.Tensor[[256, 8], pl.FP32], i: pl.Scalar[pl.INDEX], y: pl.InOut[pl.Tensor[[256, 8], pl.FP32]]
             ) -> pl.Tensor[[256, 8], pl.FP32]:
        return pl.store(pl.add(pl.load(x, [i, 0], [1, 8]), 1.0), [i, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[256, 8], pl.FP32], n: pl.Scalar[pl.INDEX], y: pl.InOut[pl.Tensor[[256, 8], pl.FP32]]
             ) -> pl.Tensor[[256, 8], pl.FP32]:
        total: pl.Scalar[pl.INDEX] = 0
        for i in pl.range(n):
            total = total + i
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.store(pl.load(x, [i, 0], [1, 8]), [i, 0], y)
            y = self.bump(x, i, y)
        return y
"""


@pytest.mark.parametrize(
    "options", [{}, {"schedule": "random", "seed": 1}, {"check_races": True}], ids=["submit", "random", "check_races"]
)
def test_runs_of_whole_programs_grow_linearly(options, tmp_path, monkeypatch):
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path))
    compiled = ir.compile(pl.parse(PROGRAM), dump_passes=False)

    def work(n):
        x, y = np.ones((256, 8), np.float32), np.zeros((256, 8), np.float32)
        count = lines_of(lambda: compiled(x, n, y, config=RunConfig(**options)))
        assert (y[:n] == 2).all() and (y[n:] == 0).all()
        return count

    work(2)  # imports and caches of the first use
    assert work(100) <= LIMIT * work(50)


def test_the_count_sees_quadratic_work():
    """The measure itself can fail."""

    def quadratic(n):
        waiting = list(range(n))
        while waiting:
            waiting = [w for w in waiting if w is not waiting[-1]]

    def hidden(n):
        return [any(i < 0 for i in range(n)) for _ in range(n)]

    for work in (quadratic, hidden):
        assert lines_of(lambda work=work: work(2 * N)) > LIMIT * lines_of(lambda work=work: work(N)) > N * N / 4
