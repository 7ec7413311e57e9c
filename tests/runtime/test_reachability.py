"""What lies before each node of a graph."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto.runtime.reachability import Ancestors, contains, insert, members, split


@st.composite
def graphs(draw):
    """Chains in front of some let the others cross the border of the first block of the sets."""
    front = draw(st.sampled_from([0, 0, 2040]))
    producers = [[i - 1] if i % 50 else [] for i in range(front)]
    for _ in range(draw(st.integers(0, 20))):
        at = len(producers)
        near = st.integers(max(0, at - draw(st.sampled_from([2, 5, 20, 2_060]))), at - 1) if at else st.nothing()
        producers.append(draw(st.lists(near, max_size=4)) if at else [])
    return producers


@given(graphs())
def test_agrees_with_sets(producers):
    expected = []
    for before, found in zip(producers, Ancestors(producers), strict=True):
        expected.append(set().union(*(expected[p] | {p} for p in before)))
        assert set(members(found)) == expected[-1]


@given(st.sets(st.integers(0, 10_000)), st.sets(st.integers(0, 10_000)))
def test_sets_of_numbers(a, b):
    first, second = {}, {}
    for numbers, made in ((a, first), (b, second)):
        for number in numbers:
            insert(made, number)
    assert list(members(first)) == sorted(a)
    common, rest = split(first, second)
    assert (set(members(common)), set(members(rest))) == (a & b, a - b)
    assert all(contains(first, n) == (n in a) for n in a | b)
    assert 0 not in common.values() and 0 not in rest.values()


def test_a_graph_must_go_forward():
    with pytest.raises(ValueError, match="node 0 follows node 1, which does not come before it"):
        Ancestors([[1], []])


def chain(n):
    return [[i - 1] if i else [] for i in range(n)]


def bands(n):
    return [[i - n // 10] if i >= n // 10 else [] for i in range(n)]


def fork_and_join(n):
    return [[], *([[0]] * (n - 2)), list(range(1, n - 1))]


def stages(n):
    """Forks and joins of ten tasks behind each other."""
    return [[i - k for k in range(1, 10)] if i and i % 10 == 0 else [i - i % 10] if i % 10 else [] for i in range(n)]


def reduction(n):
    """Independent tasks; every other one adds one of them to what was added before."""
    return [[] if i % 2 == 0 else [i - 1, i - 2] if i > 2 else [i - 1] for i in range(n)]


@pytest.mark.parametrize("shape", [bands, fork_and_join, stages, reduction, chain])
def test_the_work_grows_slowly(shape):
    """The last block sets in: some operations on blocks for each node and edge, n / 2048 of them at the most."""

    def work(n):
        ancestors = Ancestors(shape(n))
        assert sum(1 for _ in ancestors) == n
        return ancestors.blocks

    n = 8_000
    edges = sum(map(len, shape(n)))
    assert work(n) <= 4 * (n + edges)


def test_what_nobody_needs_is_forgotten():
    ancestors = Ancestors(chain(5_000))
    most = 0
    for _ in ancestors:
        most = max(most, len(ancestors._before) + len(ancestors._through))
    assert most <= 4


def test_an_edge_that_others_imply_costs_no_union():
    def work(producers):
        ancestors = Ancestors(producers)
        assert sum(1 for _ in ancestors) == len(producers)
        return ancestors.blocks

    n = 8_000
    implied = [list(range(max(0, i - 8), i)) for i in range(n)]
    assert work(implied) <= work(chain(n)) + sum(map(len, implied))
