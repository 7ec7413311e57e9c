"""Boxes of bytes: overlap, covering and joining agree with sets of bytes."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto.ops.partial_window import PartialWindow
from pypto.ops.values import ArrayValue, Buffer
from pypto.runtime.region_set import RegionSet
from pypto.runtime.regions import Region

STRIDES = [0, 1, 2, 3, 4, 6, 8, 12, 16, 24]
dims = st.lists(st.tuples(st.integers(1, 4), st.sampled_from(STRIDES)), min_size=1, max_size=3)


def box(low, axes, itemsize):
    return Region.box(low, [n for n, _ in axes], [stride for _, stride in axes], itemsize)


regions = st.builds(box, st.integers(0, 40), dims, st.sampled_from([1, 2, 4]))


@st.composite
def alike(draw):
    """Two boxes of equal strides."""
    strides = draw(st.lists(st.sampled_from(STRIDES), min_size=1, max_size=3))
    itemsize = draw(st.sampled_from([1, 2, 4]))
    made = [
        box(draw(st.integers(0, 40)), [(draw(st.integers(1, 4)), stride) for stride in strides], itemsize)
        for _ in range(2)
    ]
    return tuple(made)


def bytes_of(region):
    found = {region.low}
    for n, stride in zip(region.shape, region.strides, strict=True):
        found = {byte + i * stride for byte in found for i in range(n)}
    return {byte + k for byte in found for k in range(region.itemsize)}


@settings(max_examples=400)
@given(st.one_of(alike(), st.tuples(regions, regions)))
def test_agree_with_sets_of_bytes(pair):
    a, b = pair
    first, second = bytes_of(a), bytes_of(b)
    assert (a.low, a.high) == (min(first), max(first) + 1)
    assert a.overlaps(b) == b.overlaps(a) == bool(first & second)
    if a.covers(b):
        assert second <= first
    joined = a.merged(b)
    if joined is not None:
        assert bytes_of(joined) == first | second


def test_even_and_odd_columns():
    data = np.zeros((4, 8), np.float32)

    def of(view):
        return Region.of_array(view, data)

    assert not of(data[:, ::2]).overlaps(of(data[:, 1::2]))
    assert not of(data[:, ::2]).overlaps(of(data[:, 1::4]))
    assert of(data[:, ::2]).overlaps(of(data[:, 2::4]))
    assert not of(data[:, ::2]).overlaps(of(data[:, 3]))


def test_rows_that_begin_in_the_middle_of_other_rows():
    """Boxes of equal strides need not lie on one grid: a window of a flat tensor under another shape."""
    flat = np.zeros(100, np.float32)
    shifted, grid = flat[6:70].reshape(8, 8), flat[8:72].reshape(8, 8)[:, :2]
    assert np.shares_memory(shifted, grid)
    assert Region.of_array(shifted, flat).overlaps(Region.of_array(grid, flat))


def test_a_window_of_columns_covers_a_part_of_it():
    data = np.zeros((4, 8), np.float32)
    columns = Region.of_array(data[:, 2:6], data)
    assert columns.covers(Region.of_array(data[1:3, 3:6], data))
    assert not columns.covers(Region.of_array(data[1:3, 3:7], data))
    assert not columns.covers(Region.of_array(data[1:3, 1:3], data))


def test_backward_views():
    data = np.zeros(8, np.float32)
    assert Region.of_array(data[::-2], data).key == Region.of_array(data[1::2], data).key


def test_a_search_that_takes_long_answers_yes():
    """Many axes of strides without a common divisor: the answer is safe, and comes."""
    strides = [1009 * 2, 1013 * 2, 1019 * 2, 1021 * 2, 1031 * 2]
    a = Region.box(0, [60] * 5, strides, 1)
    b = Region.box(1, [60] * 5, [stride + 24 for stride in strides], 1)
    assert a.overlaps(b) in (True, False)
    far = Region.box(100_001, [60] * 5, strides, 1)
    assert not far.overlaps(Region.box(0, [60] * 5, strides, 1))  # odd against even, seen at once


def test_a_window_past_the_end_is_the_part_that_exists():
    data = np.zeros((4, 8), np.float32)
    buffer = Buffer(data)
    window = PartialWindow(data[3:4], buffer, (2, 8), (1, 8))
    assert Region(window).key == Region(ArrayValue(data[3:4], buffer)).key
    assert Region(window).overlaps(Region(ArrayValue(data, buffer)))


# --- sets --------------------------------------------------------------------------------------------------------------


def joined(*views):
    made = RegionSet()
    for view in views:
        made.add(Region.of_array(view, DATA))
    return made.compact()


DATA = np.zeros((64, 64), np.float32)
TILES = [DATA[i : i + 8, j : j + 8] for i in range(0, 64, 8) for j in range(0, 64, 8)]


def test_a_walk_over_tiles_is_one_box():
    whole = Region.of_array(DATA, DATA).key
    by_columns = sorted(TILES, key=lambda view: view.ctypes.data % 256)
    every_other_row = [*TILES[::16], *(tile for i, tile in enumerate(TILES) if i % 16)]
    for order in (TILES, by_columns, TILES[::-1], every_other_row, [*TILES, *TILES]):
        assert [region.key for region in joined(*order)] == [whole]


def test_a_set_stays_small_while_it_grows():
    made = RegionSet()
    for _ in range(50):
        for tile in TILES:
            made.add(Region.of_array(tile, DATA))
        assert len(made) == 1


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(1, 3), st.integers(1, 3)), max_size=90))
def test_a_set_is_the_union_of_what_was_added(boxes):
    data = np.zeros((10, 10), np.uint8)
    made, expected = RegionSet(), set()
    for row, column, rows, columns in boxes:
        region = Region.of_array(data[row : row + rows, column : column + columns], data)
        made.add(region)
        expected |= bytes_of(region)
    found = [bytes_of(region) for region in made.compact()]
    assert set().union(*found) == expected
    assert len(found) <= len(boxes)
