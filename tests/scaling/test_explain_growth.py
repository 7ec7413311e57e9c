"""To explain twice as many tasks takes twice the work: calls are counted, not time. (Records are flat: no nesting.)"""

import pytest
from test_frontend_growth import LIMIT, calls_of

from pypto.diag.location import Location
from pypto.runtime.task_records import (
    AccessRecord,
    ArgumentRecord,
    Box,
    BufferRecord,
    EdgeKind,
    EdgeRecord,
    Mode,
    RunRecord,
    TaskRecord,
)
from pypto.tools.explain_orders import Explanation, Verdict
from pypto.tools.explain_report import Report, plain

SIZE = 8


def bytes_of(first, count):
    return Box(SIZE * first, (SIZE * count,), (1,), 1)


def run(n, edges, kind, writes, reads=()):
    """``writes`` and ``reads``: (task, first item, items) of one buffer; each task is given all of it."""
    record = RunRecord(
        tasks=[TaskRecord(i, "t", "t", Location("none.py", 1 + i % 3, 1), 0, 0, 1, 2) for i in range(n)],
        buffers=[BufferRecord(0, "x", (SIZE * n,), "uint8", 1)],
        arguments=[ArgumentRecord(i, 0, "inout", bytes_of(0, n)) for i in range(n)],
        edges=[EdgeRecord(a, b, kind, "", 0, bytes_of(0, n), bytes_of(0, n)) for a, b in edges],
    )
    for mode, touches in ((Mode.WRITE, writes), (Mode.READ, reads)):
        record.accesses += [AccessRecord(task, 0, mode, bytes_of(first, count)) for task, first, count in touches]
    return record


def granular_chain(n):
    return run(n, [(i, i + 1) for i in range(n - 1)], EdgeKind.OVERLAP, [(i, i, 1) for i in range(n)])


def true_chain(n):
    return run(n, [(i, i + 1) for i in range(n - 1)], EdgeKind.OVERLAP, [(i, 0, 1) for i in range(n)])


def fork_and_join(n):
    inner = range(1, n - 1)
    edges = [(0, i) for i in inner] + [(i, n - 1) for i in inner]
    writes = [(0, 0, n), *[(i, i, 1) for i in inner]]
    return run(n, edges, EdgeKind.EXPLICIT, writes, [(n - 1, 0, n)])


def fence(n):
    """The middle task touches nothing, and puts each task of the second half behind the one of the same bytes.

    Only the first task has none there: no byte needs its edge.
    """
    half = n // 2
    edges = [(i, half) for i in range(half)] + [(half, i) for i in range(half + 1, n)]
    return run(n, edges, EdgeKind.EXPLICIT, [(i, i % half, 1) for i in range(n) if i != half])


def many_regions(n):
    """A task reads every second item, one by one, behind the tasks that wrote all."""
    writers = range(n - 1)
    edges = [(i, n - 1) for i in writers]
    return run(n, edges, EdgeKind.OVERLAP, [(i, i, 1) for i in writers], [(n - 1, i, 1) for i in range(0, n - 1, 2)])


SHAPES = [granular_chain, true_chain, fork_and_join, fence, many_regions]


def told(record):
    report = Report("run", Explanation(record), {0})
    text = plain([*report.summary(), *report.orders(20), *report.pair(0, len(record.tasks) - 1)])
    assert report.as_dict(None, None)["count"]["orders"] == len(record.edges)
    return text


@pytest.mark.parametrize("shape", SHAPES)
def test_all_that_is_told_grows_linearly(shape):
    def work(n):
        record = shape(n)
        return calls_of(lambda: told(record))

    work(8)  # imports and caches of the first use
    assert work(400) <= LIMIT * work(200)


@pytest.mark.parametrize(
    "shape, needed, indirect, unneeded",
    [
        (granular_chain, 0, 0, 39),
        (true_chain, 39, 0, 0),
        (fork_and_join, 76, 0, 0),
        (fence, 0, 38, 1),
        (many_regions, 20, 0, 19),
    ],
)
def test_the_shapes_are_what_they_are_said_to_be(shape, needed, indirect, unneeded):
    found = Explanation(shape(40))
    assert [found.count(v) for v in (Verdict.NEEDED, Verdict.INDIRECT, Verdict.UNNEEDED)] == [
        needed,
        indirect,
        unneeded,
    ]
