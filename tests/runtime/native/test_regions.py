"""Views, the bytes they have, and the index of writers: compared with NumPy and with brute force."""

import ctypes

import numpy as np
import pytest
from native_kit import Suite
from numpy.lib.stride_tricks import as_strided

from pypto.ir.dtype import DataType
from pypto.runtime.native_library import ELEMENT_TYPES, ChipTensor

suite = Suite(
    "regions",
    more=r"""
#include <bitset>
#include <memory>
#include <set>
#include <vector>

#include "runtime/regions.cpp"

using pto::Region;

// --- views: a list of operations, each a number and its arguments ---
PTO_EXPORT void make_view(ChipTensor* tensor, const uint32_t* ops, uint32_t count) {
    for (uint32_t at = 0; at < count;) {
        const uint32_t* given = ops + at + 1;
        switch (ops[at]) {
            case 0:  // offsets, extents
                at += 1 + 2 * tensor->ndims;
                *tensor = tensor->view(given + tensor->ndims, given);
                break;
            case 1:
                at += 5;
                *tensor = tensor->slice(given[0], given[1], given[2], given[3]);
                break;
            case 2:
                at += 3;
                *tensor = tensor->transpose(given[0], given[1]);
                break;
            case 3:
                at += 1 + tensor->ndims;
                *tensor = tensor->permute(given);
                break;
            default:  // count, extents
                at += 2 + given[0];
                *tensor = tensor->reshape(given + 1, given[0]);
        }
    }
}

static void mark_box(const Region& region, uint32_t level, int64_t base, uint8_t* bytes) {
    if (level == region.levels) {
        for (int64_t i = 0; i < region.run; ++i) bytes[base + i] = 1;
        return;
    }
    for (int64_t k = 0; k < region.extent[level]; ++k) mark_box(region, level + 1, base + k * region.stride[level], bytes);
}
PTO_EXPORT void mark(const ChipTensor* tensor, uint8_t* bytes) {
    const Region region = Region::of(*tensor);
    if (!region.empty()) mark_box(region, 0, region.low, bytes);
}

// Bit 0: a overlaps b. 1: b overlaps a. 2: a covers b. 3: the answers are meant to be exact.
PTO_EXPORT uint32_t relation(const ChipTensor* a, const ChipTensor* b) {
    const Region x = Region::of(*a), y = Region::of(*b);
    const bool boxes = x.same_strides(y) && x.digital() && y.digital();
    const bool exact = x.levels == 0 || y.levels == 0 || boxes;
    return overlaps(x, y) | overlaps(y, x) << 1 | covers(x, y) << 2 | exact << 3;
}

// --- the index ---
struct Random {
    uint64_t state;
    uint32_t below(uint32_t limit) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        return static_cast<uint32_t>((state >> 33) % limit);
    }
};

// A matrix of 64 x 64 floats from a byte on.
static ChipTensor whole(uint32_t rows, uint32_t columns) {
    ChipTensor made{};
    made.ndims = 2;
    made.is_contiguous = true;
    made.shapes[0] = rows;
    made.shapes[1] = columns;
    made.strides[0] = columns;
    made.strides[1] = 1;
    return made;
}

static ChipTensor some_view(Random& random) {
    ChipTensor t = whole(64, 64);
    const uint32_t row = random.below(60), column = random.below(60);
    switch (random.below(6)) {
        case 0:
            return rows(t, row, 1 + random.below(4));
        case 1:
            return columns(t, column, 1 + random.below(4));
        case 2:
            return box(t, row, 1 + random.below(64 - row), column, 1 + random.below(64 - column));
        case 3:
            return box(t, row, 1, column, 1);
        case 4:
            return t.slice(random.below(2), random.below(4), 64, 2 + random.below(3));
        default:
            return columns(t.transpose(0, 1), row, 1 + random.below(4)).slice(0, column, 64, 1 + random.below(8));
    }
}

// An entry and, for brute force, the elements of its view.
struct Known {
    pto::Entry entry;
    std::bitset<64 * 64> elements;
};
static void choose_view(Random& random, Known& known) {
    const ChipTensor view = some_view(random);
    known.entry.region = Region::of(view);
    std::vector<uint8_t> bytes(64 * 64 * 4);
    mark(&view, bytes.data());
    for (size_t i = 0; i < known.elements.size(); ++i) known.elements[i] = bytes[4 * i] != 0;
}

// Adds, removes and asks at random, at most `most` at a time. `found`: how many were found. Gives back how many answers
// are wrong: a writer is missing that shares an element, or one is there whose region is known not to overlap.
PTO_EXPORT uint32_t exercise(uint64_t seed, uint32_t steps, uint32_t most, uint64_t* found) {
    pto::WriterIndex index;
    std::vector<std::unique_ptr<Known>> live;
    Random random{seed};
    uint32_t wrong = 0;
    for (uint32_t step = 0; step < steps; ++step) {
        const uint32_t choice = random.below(3);
        auto made = std::make_unique<Known>();
        choose_view(random, *made);
        if (choice == 0 && live.size() < most) {
            index.add(&made->entry);
            live.push_back(std::move(made));
        } else if (choice == 1 && !live.empty()) {
            std::swap(live[random.below(static_cast<uint32_t>(live.size()))], live.back());
            index.remove(&live.back()->entry);
            live.pop_back();
        } else {
            uint64_t visited = 0;
            std::multiset<const pto::Entry*> met, all;
            index.overlapping(made->entry.region, visited, [&](pto::Entry* entry) { met.insert(entry); });
            index.all([&](pto::Entry* entry) { all.insert(entry); });
            *found += met.size();
            wrong += all.size() != live.size() || visited < met.size();
            for (auto& each : live) {
                const size_t times = met.count(&each->entry);
                const bool shares = (each->elements & made->elements).any();
                const bool may = overlaps(each->entry.region, made->entry.region);
                wrong += times > 1 || (shares && times == 0) || (!may && times != 0) || all.count(&each->entry) != 1;
            }
        }
        wrong += index.size() != live.size() || index.empty() != live.empty();
    }
    return wrong;
}

// The i-th of `count` disjoint parts of a matrix that is made of them.
static ChipTensor disjoint(uint32_t kind, uint32_t count, uint32_t i) {
    uint32_t side = 1;
    while (side * side < count) ++side;
    switch (kind) {
        case 0:
            return rows(whole(8 * count, 64), 8 * i, 8);
        case 1:
            return columns(whole(64, 8 * count), 8 * i, 8);
        case 2:
            return box(whole(8 * side, 8 * side), i / side * 8, 8, i % side * 8, 8);
        case 3:  // rows of a part of a matrix
            return box(whole(8 * count, 64), 8 * i, 8, 8, 16);
        default:  // of different sizes
            return rows(whole(16 * count, 64), 16 * i, 1 + i % 16);
    }
}

// Fills an index with disjoint parts, and asks it for each of them: `corner`: for its first element, else the whole part.
// Gives back the most that a question looked at, less what it found; -1 when one did not find exactly its part.
PTO_EXPORT int64_t cost(uint32_t kind, uint32_t count, bool corner) {
    pto::WriterIndex index;
    std::vector<pto::Entry> entries(count);
    for (uint32_t i = 0; i < count; ++i) {
        entries[i].region = Region::of(disjoint(kind, count, i));
        index.add(&entries[i]);
    }
    int64_t most = 0;
    for (uint32_t i = 0; i < count; ++i) {
        ChipTensor asked = disjoint(kind, count, i);
        if (corner) asked = box(asked, 0, 1, 0, 1);
        uint64_t visited = 0, met = 0;
        index.overlapping(Region::of(asked), visited, [&](pto::Entry* entry) { met += entry == &entries[i] ? 1 : 1000; });
        if (met != 1) return -1;
        most = std::max(most, static_cast<int64_t>(visited - met));
    }
    return most;
}
""",
)

SIZES = {1: DataType.UINT8, 2: DataType.FP16, 4: DataType.FP32, 8: DataType.INT64}


def tensor(shape, size, start=0):
    """A contiguous tensor from element ``start`` of its buffer on."""
    made = ChipTensor(start_offset=start, ndims=len(shape), dtype=ELEMENT_TYPES.index(SIZES[size]), is_contiguous=True)
    stride = 1
    for d in reversed(range(len(shape))):
        made.shapes[d], made.strides[d] = shape[d], stride
        stride *= shape[d]
    return made


def random_shape(random, elements):
    """Up to four extents, whose product is at most ``elements``."""
    shape = []
    for _ in range(random.integers(1, 5)):
        shape.append(int(random.integers(1, max(2, min(9, elements + 1)))))
        elements //= shape[-1]
    return tuple(shape)


def random_operation(random, view):
    """(operation as numbers, the view that it makes of the array of element numbers)."""
    kind = random.integers(5)
    if kind == 0:
        offsets = [int(random.integers(0, n + 1)) for n in view.shape]
        extents = [int(random.integers(min(1, n - o), n - o + 1)) for n, o in zip(view.shape, offsets, strict=True)]
        return [0, *offsets, *extents], view[tuple(slice(o, o + e) for o, e in zip(offsets, extents, strict=True))]
    dim = int(random.integers(view.ndim))
    if kind == 1:
        start = int(random.integers(0, view.shape[dim] + 1))
        end = int(random.integers(start, view.shape[dim] + 1))
        step = int(random.integers(1, 4))
        index = [slice(None)] * view.ndim
        index[dim] = slice(start, end, step)
        return [1, dim, start, end, step], view[tuple(index)]
    if kind == 2:
        other = int(random.integers(view.ndim))
        return [2, dim, other], view.swapaxes(dim, other)
    if kind == 3:
        order = [int(d) for d in random.permutation(view.ndim)]
        return [3, *order], view.transpose(order)
    if not view.flags.c_contiguous or view.size == 0:
        return [], view
    parts = [n for n in (2, 3, 5, 7) if view.size % n == 0]
    shape = [view.size // parts[0], parts[0]] if parts else [view.size, 1]
    return [4, 2, *shape], view.reshape(shape)


def random_view(random, buffer_bytes):
    """(tensor, set of its bytes, its elements' numbers as an array)."""
    size = int(random.choice(list(SIZES)))
    shape = random_shape(random, buffer_bytes // size)
    start = int(random.integers(0, buffer_bytes // size - int(np.prod(shape)) + 1))
    view = start + np.arange(np.prod(shape)).reshape(shape)
    made = tensor(shape, size, start)
    ops = []
    for _ in range(random.integers(0, 4)):
        op, view = random_operation(random, view)
        ops += op
    suite.library.make_view(ctypes.byref(made), (ctypes.c_uint32 * max(1, len(ops)))(*ops), len(ops))
    elements = {int(e) for e in view.flat}
    return made, {e * size + b for e in elements for b in range(size)}, view


def test_views_have_the_elements_that_numpy_says():
    random = np.random.default_rng(1)
    for _ in range(1000):
        made, _, view = random_view(random, 256)
        assert tuple(made.shapes[: made.ndims]) == view.shape
        assert made.is_contiguous == view.flags.c_contiguous
        strides = [s * 8 for s in made.strides[: made.ndims]]
        if view.size:
            found = as_strided(np.arange(256)[made.start_offset :], view.shape, strides)
            np.testing.assert_array_equal(found, view)


def marked_bytes(made, buffer_bytes=256):
    marked = np.zeros(buffer_bytes, np.uint8)
    suite.library.mark(ctypes.byref(made), marked.ctypes.data_as(ctypes.c_void_p))
    return set(np.flatnonzero(marked))


def test_a_region_is_the_bytes_of_its_view():
    random = np.random.default_rng(2)
    for _ in range(1000):
        made, expected, _ = random_view(random, 256)
        assert marked_bytes(made) == expected


def test_repeated_elements_are_bytes_once():
    made = tensor((4, 3, 8), 4)
    made.is_contiguous = False
    made.strides[0], made.strides[1] = 16, 0  # as broadcasting makes it
    assert marked_bytes(made) == {64 * i + b for i in range(4) for b in range(32)}


def relation(a, b):
    bits = suite.library.relation(ctypes.byref(a), ctypes.byref(b))
    return [bool(bits >> i & 1) for i in range(4)]


def test_overlap_and_cover_against_brute_force():
    random = np.random.default_rng(3)
    exact_ones = 0
    met = covered = 0
    for _ in range(1500):
        (a, bytes_a, _), (b, bytes_b, _) = random_view(random, 192), random_view(random, 192)
        overlaps, mirrored, covers, exact = relation(a, b)
        shared = not bytes_a.isdisjoint(bytes_b)
        assert overlaps == mirrored
        assert overlaps or not shared, "a shared byte is missed"
        assert not covers or bytes_a >= bytes_b, "said to cover what it does not"
        if exact:
            assert overlaps == shared
        exact_ones += exact
        met += shared
        covered += covers and bool(bytes_b)
    assert exact_ones > 700 and 200 < met < 1300 and covered > 20  # the sample tells something


def test_tiles_of_one_matrix_are_told_apart_exactly():
    """Equal strides: covering, too, is exact. (Their rows are whole elements of one stride.)"""
    random = np.random.default_rng(4)
    base = np.arange(16 * 16).reshape(16, 16)
    answers = set()
    for _ in range(2000):
        pair = []
        for _ in range(2):
            row, column = random.integers(0, 15, 2)
            height, width = random.integers(1, 17 - row), random.integers(1, 16 - column)  # never the full width
            made = tensor((16, 16), 4)
            ops = (ctypes.c_uint32 * 5)(0, int(row), int(column), int(height), int(width))
            suite.library.make_view(ctypes.byref(made), ops, 5)
            pair.append((made, set(base[row : row + height, column : column + width].flat), height))
        (a, elements_a, height_a), (b, elements_b, height_b) = pair
        overlaps, mirrored, covers, exact = relation(a, b)
        assert overlaps == mirrored == (not elements_a.isdisjoint(elements_b))
        assert exact
        if height_a > 1 and height_b > 1:
            assert covers == (elements_a >= elements_b)
            answers.add((overlaps, covers))
    assert answers == {(False, False), (True, False), (True, True)}


# --- the index of writers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [4, 12, 200])  # a list; around the change to trees; trees
@pytest.mark.parametrize("seed", range(5))
def test_the_index_finds_what_brute_force_finds(seed, most):
    found = ctypes.c_uint64()
    wrong = suite.library.exercise(ctypes.c_uint64(seed), 2000, most, ctypes.byref(found))
    assert wrong == 0
    assert found.value > 500


PARTS = ("rows", "columns", "tiles", "rows of a part", "rows of different sizes")


@pytest.mark.parametrize("kind", range(len(PARTS)), ids=PARTS)
@pytest.mark.parametrize("corner", [False, True], ids=["whole", "element"])
def test_a_lookup_costs_what_it_finds(kind, corner):
    """Disjoint parts, one of them is found: no more is looked at for 10,000 than for 100, and that is little."""
    suite.library.cost.restype = ctypes.c_int64
    few, many = (suite.library.cost(kind, count, corner) for count in (100, 10_000))
    assert 0 <= few <= many <= few + 2
    assert many <= 16
