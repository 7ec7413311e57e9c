"""How arguments order tasks: each row of the table, region overlap, schedules."""

import numpy as np
import pytest

from pypto.ir.span import Span
from pypto.ops.values import ArrayValue, Buffer
from pypto.runtime.graph import INVALID_TASK, Tag, TaskGraph
from pypto.runtime.regions import Region

SPAN = Span("program.py", 1, 1)


def tensor(shape=(8, 8), name="t"):
    data = np.zeros(shape, np.float32)
    return ArrayValue(data, Buffer(data, name))


def rows(value, first, last):
    return value.view(value.data[first:last])


class Recorder:
    """Submits empty tasks and tells which earlier tasks each waits for."""

    def __init__(self):
        self.graph = TaskGraph(record=True)

    def task(self, *arguments, manual=False, deps=()):
        return self.graph.submit("k", lambda: None, SPAN, list(arguments), deps, manual)

    @staticmethod
    def producers(task):
        return [edge.producer for edge in task.edges.values()]

    @staticmethod
    def reasons(task):
        return [edge.reason for edge in task.edges.values()]


@pytest.fixture
def record():
    return Recorder()


# --- the table, AUTO: tag -> (edge to the allocator, edge to an earlier writer, registers as a writer) -----------------

TABLE = {
    Tag.INPUT: (True, True, False),
    Tag.INOUT: (True, True, True),
    Tag.OUTPUT_EXISTING: (True, False, True),
    Tag.NO_DEP: (True, False, False),
    Tag.SOURCE_WRITE: (True, True, True),
}


@pytest.mark.parametrize("tag", TABLE)
def test_edge_to_the_allocator(record, tag):
    value = tensor()
    allocator = record.task((value, Tag.OUTPUT))
    value.buffer.owner = allocator
    user = record.task((value, tag))
    assert (allocator in record.producers(user)) is TABLE[tag][0]
    assert record.reasons(user) == ["allocation of t"]


@pytest.mark.parametrize("tag", TABLE)
def test_edge_to_an_earlier_writer(record, tag):
    value = tensor()
    writer = record.task((value, Tag.OUTPUT_EXISTING))
    user = record.task((value, tag))
    assert (writer in record.producers(user)) is TABLE[tag][1]


@pytest.mark.parametrize("tag", TABLE)
def test_who_becomes_a_writer(record, tag):
    value = tensor()
    first = record.task((value, tag))
    reader = record.task((value, Tag.INPUT))
    assert (first in record.producers(reader)) is TABLE[tag][2]


def test_output_allocates_and_waits_for_nobody(record):
    old, new = tensor(name="old"), tensor(name="new")
    record.task((old, Tag.OUTPUT_EXISTING))
    allocator = record.task((new, Tag.OUTPUT))
    assert not allocator.edges
    # It is no writer in the map: readers find it as the owner.
    new.buffer.owner = allocator
    reader = record.task((new, Tag.INPUT))
    assert record.reasons(reader) == ["allocation of new"]


def test_inout_replaces_covered_writers_and_output_existing_does_not(record):
    value = tensor()
    a = record.task((rows(value, 0, 4), Tag.OUTPUT_EXISTING))
    b = record.task((rows(value, 4, 8), Tag.OUTPUT_EXISTING))
    both = record.task((value, Tag.INPUT))
    assert record.producers(both) == [a, b]
    whole = record.task((value, Tag.INOUT))
    assert record.producers(whole) == [a, b]
    assert record.producers(record.task((value, Tag.INPUT))) == [whole]
    again = record.task((rows(value, 0, 4), Tag.OUTPUT_EXISTING))
    assert record.producers(record.task((value, Tag.INPUT))) == [whole, again]


def test_write_after_read_is_no_edge_but_for_source_writes(record):
    value = tensor()
    reader = record.task((value, Tag.INPUT))
    for tag in (Tag.INOUT, Tag.OUTPUT_EXISTING):
        assert reader not in record.producers(record.task((value, tag)))
    other = tensor()
    reader = record.task((other, Tag.INPUT))
    writer = record.task((other, Tag.SOURCE_WRITE))
    assert record.reasons(writer) == ["overwrites what is read of t"]


def test_edges_are_deduplicated(record):
    value = tensor()
    writer = record.task((rows(value, 0, 4), Tag.OUTPUT_EXISTING), (rows(value, 4, 8), Tag.OUTPUT_EXISTING))
    reader = record.task((value, Tag.INPUT), (rows(value, 0, 2), Tag.INPUT), deps=[writer, writer])
    assert record.producers(reader) == [writer]


def test_manual_dep_keeps_only_the_allocation_edge(record):
    value = tensor()
    value.buffer.manual_dep = True
    allocator = record.task((value, Tag.OUTPUT))
    value.buffer.owner = allocator
    for tag in TABLE:
        assert record.producers(record.task((value, tag))) == [allocator]


# --- MANUAL ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tag", [*TABLE, Tag.OUTPUT])
def test_manual_tasks_wait_for_explicit_ids_only(record, tag):
    value = tensor()
    allocator = record.task((value, Tag.OUTPUT))
    value.buffer.owner = allocator
    writer = record.task((value, Tag.OUTPUT_EXISTING))
    assert not record.task((value, tag), manual=True).edges
    ordered = record.task((value, tag), manual=True, deps=[writer, INVALID_TASK, None])
    assert record.producers(ordered) == [writer]
    assert record.reasons(ordered) == ["explicit"]


def test_an_automatic_task_behind_a_manual_scope_finds_its_writers(record):
    value = tensor()
    writer = record.task((value, Tag.INOUT), manual=True)
    silent = record.task((value, Tag.NO_DEP), manual=True)
    reader = record.task((value, Tag.INPUT))
    assert record.producers(reader) == [writer] and silent not in reader.edges


def test_explicit_ids_are_added_in_automatic_scopes(record):
    a, b = tensor(), tensor()
    first = record.task((a, Tag.INOUT))
    second = record.task((b, Tag.INOUT), deps=[first])
    assert record.reasons(second) == ["explicit"]


# --- regions -----------------------------------------------------------------------------------------------------------


def regions(a, b):
    return Region(a), Region(b)


def test_bands_and_columns():
    value = tensor((8, 8))
    top, bottom = regions(rows(value, 0, 4), rows(value, 4, 8))
    assert not top.overlaps(bottom) and not bottom.overlaps(top)
    left, right = regions(value.view(value.data[:, :4]), value.view(value.data[:, 4:]))
    assert not left.overlaps(right)
    middle = Region(value.view(value.data[2:6, 2:6]))
    for other in (top, bottom, left, right):
        assert middle.overlaps(other) and other.overlaps(middle)
    corner = Region(value.view(value.data[:2, :2]))
    assert not corner.overlaps(Region(value.view(value.data[:2, 2:])))
    assert Region(value).covers(middle) and not middle.covers(corner) and top.covers(corner)


def test_extents_are_compared_in_bytes():
    data = np.zeros(16, np.float32)
    buffer = Buffer(data)
    low = ArrayValue(data[:8], buffer)
    high_as_halves = ArrayValue(data[8:].view(np.float16), buffer)
    low_as_halves = ArrayValue(data[:8].view(np.float16), buffer)
    assert not Region(low).overlaps(Region(high_as_halves))
    assert Region(low).overlaps(Region(low_as_halves))


def test_regions_agree_with_memory():
    """Random boxes of one buffer: an overlap is never missed, and of equal strides never invented."""
    rng = np.random.default_rng(0)
    value = tensor((6, 5, 4))
    for _ in range(500):
        pair = []
        for _ in range(2):
            box = []
            for n in value.shape:
                begin = int(rng.integers(0, n))
                box.append(slice(begin, int(rng.integers(begin + 1, n + 1))))
            pair.append(value.data[tuple(box)])
        a, b = (Region(value.view(p)) for p in pair)
        assert a.overlaps(b) == np.shares_memory(*pair)
        assert a.overlaps(b) == b.overlaps(a)
        if a.covers(b):
            value.data[...] = 0
            pair[1][...] = 1
            pair[0][...] = 2
            assert not (value.data == 1).any()


def test_a_transposed_view_may_overlap():
    value = tensor((8, 8))
    assert Region(value.view(value.data.T[:4])).overlaps(Region(rows(value, 0, 4)))


def test_different_buffers_never_meet(record):
    a, b = tensor(), tensor()
    record.task((a, Tag.INOUT))
    assert not record.task((b, Tag.INPUT)).edges


# --- schedules ---------------------------------------------------------------------------------------------------------


def submit_appending(graph, order, name, *arguments, deps=(), manual=True):
    return graph.submit(name, lambda: order.append(name), SPAN, list(arguments), deps, manual)


def test_submit_order_runs_at_once():
    graph, order = TaskGraph(), []
    submit_appending(graph, order, "a")
    assert order == ["a"]
    assert not graph.pending


def run_diamond(seed):
    graph, order = TaskGraph("random", seed), []
    top = submit_appending(graph, order, "top")
    sides = [submit_appending(graph, order, side, deps=[top]) for side in ("left", "right")]
    submit_appending(graph, order, "bottom", deps=sides)
    submit_appending(graph, order, "free")
    assert order == []
    graph.finish()
    return order


def test_random_order_is_legal_repeatable_and_varies():
    orders = [run_diamond(seed) for seed in range(20)]
    for order in orders:
        assert sorted(order) == ["bottom", "free", "left", "right", "top"]
        assert order.index("top") < order.index("left") < order.index("bottom")
        assert order.index("top") < order.index("right") < order.index("bottom")
    assert len({tuple(o) for o in orders}) > 3
    assert orders == [run_diamond(seed) for seed in range(20)]


def test_waiting_runs_ancestors_only():
    graph, order = TaskGraph("random", 1), []
    a = submit_appending(graph, order, "a")
    submit_appending(graph, order, "other")
    b = submit_appending(graph, order, "b", deps=[a])
    graph.wait_for([b])
    assert order == ["a", "b"]
    graph.finish()
    assert order == ["a", "b", "other"]


def test_host_access_waits_for_writers_and_before_a_write_for_readers():
    graph, order = TaskGraph("random", 0), []
    value = tensor()
    submit_appending(graph, order, "writer", (rows(value, 0, 4), Tag.INOUT), manual=False)
    submit_appending(graph, order, "elsewhere", (rows(value, 4, 8), Tag.INOUT), manual=False)
    submit_appending(graph, order, "reader", (rows(value, 0, 4), Tag.INPUT), manual=False)
    graph.sync(rows(value, 0, 2))
    assert order == ["writer"]
    graph.sync(rows(value, 0, 2), for_write=True)
    assert order == ["writer", "reader"]


def test_a_false_predicate_skips_the_body_and_frees_the_consumers():
    graph, order = TaskGraph("random", 0), []
    skipped = graph.submit("skipped", lambda: order.append("skipped"), SPAN, [], [], True, lambda: False)
    submit_appending(graph, order, "after", deps=[skipped])
    graph.finish()
    assert order == ["after"] and skipped.done


def test_many_tasks_are_not_quadratic():
    graph, order = TaskGraph("random", 0), []
    for i in range(20_000):
        submit_appending(graph, order, i)
    graph.finish()
    assert sorted(order) == list(range(20_000))
    assert graph.submitted == 20_000 and graph.task_ns > 0


def test_unknown_schedule():
    with pytest.raises(ValueError, match="schedule must be"):
        TaskGraph("backwards")
