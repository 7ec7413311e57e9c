"""The index of accesses answers as a list of all of them would."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto.ir.span import Span
from pypto.ops.values import ArrayValue, Buffer
from pypto.runtime.accesses import AccessIndex
from pypto.runtime.graph import Tag, Task, TaskGraph
from pypto.runtime.regions import Region

SPAN = Span("program.py", 1, 1)
DATA = np.zeros((12, 10), np.float32)
BUFFER = Buffer(DATA)


def task(number):
    return Task(number, "k", lambda: None, SPAN)


def box(rows, columns):
    return Region(ArrayValue(DATA[rows[0] : rows[1], columns[0] : columns[1]], BUFFER))


def interval(n):
    return st.tuples(st.integers(0, n), st.integers(0, n)).map(sorted)


boxes = st.builds(box, interval(12), interval(10))


@given(st.lists(st.tuples(st.sampled_from(["add", "find", "drop"]), boxes), max_size=60))
def test_agrees_with_a_list(actions):
    index, everything = AccessIndex(keep_done=True), []
    for number, (action, region) in enumerate(actions):
        if action == "add":
            added = task(number)
            index.add(added, region)
            if region.low < region.high:
                everything.append((added, region))
        elif action == "drop":
            index.drop_covered(region)
            everything = [e for e in everything if not region.covers(e[1])]
        assert [a.task for a in index.overlapping(region)] == [t for t, r in everything if region.overlaps(r)]
        assert index.size == len(everything) == len(list(index))


def test_only_completed_tasks_are_forgotten():
    index, live = AccessIndex(keep_done=False), []
    for i in range(500):
        added = task(i)
        added.done = i % 10 != 0
        if not added.done:
            live.append(added)
        index.add(added, box((i % 12, i % 12 + 1), (0, 10)))
    assert index.size < 200
    assert [a.task for a in index.overlapping(box((0, 12), (0, 10))) if not a.task.done] == live


# --- who is forgotten because a later task stands for it ---------------------------------------------------------------


def whole():
    data = np.zeros((4, 4), np.float32)
    return ArrayValue(data, Buffer(data, "t"))


class Recorder:
    def __init__(self):
        self.graph = TaskGraph(record=True)

    def __call__(self, *arguments, manual=False):
        return self.graph.submit("k", lambda: None, SPAN, list(arguments), [], manual)


def test_a_writer_stands_for_the_readers_that_it_waited_for():
    record, x = Recorder(), whole()
    reader = record((x, Tag.INPUT))
    first = record((x, Tag.SOURCE_WRITE))
    second = record((x, Tag.SOURCE_WRITE))
    assert list(first.edges) == [reader] and list(second.edges) == [first]


@pytest.mark.parametrize("part", ["a part only", "a manual scope", "a tensor without automatic dependencies"])
def test_a_writer_that_did_not_wait_for_all_of_it_stands_for_nobody(part):
    record, x = Recorder(), whole()
    reader = record((x, Tag.INPUT))
    if part == "a part only":
        first = record((x.view(x.data[:2]), Tag.SOURCE_WRITE))
    elif part == "a manual scope":
        first = record((x, Tag.SOURCE_WRITE), manual=True)
    else:
        x.buffer.manual_dep = True
        first = record((x, Tag.SOURCE_WRITE))
        x.buffer.manual_dep = False
    second = record((x, Tag.SOURCE_WRITE))
    assert set(second.edges) == {reader, first}


def test_an_inout_argument_waits_for_no_reader_and_so_stands_for_none():
    record, x = Recorder(), whole()
    reader = record((x, Tag.INPUT))
    first = record((x, Tag.INOUT))
    second = record((x, Tag.SOURCE_WRITE))
    assert not first.edges and set(second.edges) == {reader, first}
