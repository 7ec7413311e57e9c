"""Buffers that the runtime allocates: reuse, budgets, values of fresh ones."""

import ml_dtypes
import numpy as np
import pytest
from native_kit import Suite, zeros

KIB = 1024
suite = Suite(
    "storage",
    more="""
    // Numbers that look random.
    struct Random {
        uint32_t state;
        uint32_t below(uint32_t limit) {
            state = state * 1664525u + 1013904223u;
            return static_cast<uint32_t>((uint64_t{state} * limit) >> 32);
        }
    };
    // Tensors that are stamped, used for some time, checked; in scopes of random depth.
    static void live(Random& random, const ChipTensor& faults, int64_t& stamp, uint32_t depth) {
        PTO2_SCOPE() {
            const int64_t first = stamp;
            const auto a = launch(id::stamp, row_of(1 + random.below(3000)), row_of(1 + random.below(20)), first);
            const auto b = alloc_tensors(row_of(1 + random.below(500)));
            launch(id::stamp, out(b.get_ref(0)), out(a.get_ref(1)), first + 1);
            stamp += 2;
            while (depth != 0 && random.below(3) != 0) live(random, faults, stamp, depth - 1);
            launch(id::check, in(a.get_ref(0)), no_dep(faults), first);
            launch(id::check, in(a.get_ref(1)), no_dep(faults), first + 1);
            launch(id::check, in(b.get_ref(0)), no_dep(faults), first + 1);
        }
    }
    """,
)
# (tensor, tensor, stamp)
suite.kernel(
    "stamp",
    """
    for (int i = 0; i < 2; ++i) {
        each_element<int32_t>(tensor_of(args, i), [&](int32_t& element, uint64_t at) {
            element = static_cast<int32_t>(static_cast<uint64_t>(args[2]) * 4096 + at);
        });
    }
    """,
)
# (tensor, two counters, stamp): counts elements that are not as they were stamped, and addresses that are not aligned
suite.kernel(
    "check",
    """
    auto* faults = reinterpret_cast<std::atomic<int32_t>*>(tensor_of(args, 1).data());
    if (tensor_of(args, 0).buffer_addr % 64 != 0) ++faults[1];
    each_element<int32_t>(tensor_of(args, 0), [&](int32_t& element, uint64_t at) {
        if (element != static_cast<int32_t>(static_cast<uint64_t>(args[2]) * 4096 + at)) ++faults[0];
    });
    """,
)
# (tensor, bytes)
suite.kernel(
    "bytes_of",
    """
    const ChipTensor& from = tensor_of(args, 0);
    memcpy(tensor_of(args, 1).data(), from.data(), from.numel() * pto_element_size(from.dtype));
    """,
)

# --- reuse and budgets ------------------------------------------------------------------------------------------------

suite.entry(
    "a_scope_each",
    """
    for (int64_t i = 0; i < n; ++i) {
        PTO2_SCOPE() {
            const auto made = launch(id::fill, matrix(64, 64), 1);
            launch(id::add, inout(made.get_ref(0)), i);
            launch(id::copy, in(box(made.get_ref(0), 63, 1, 63, 1)), out(columns(x, static_cast<uint32_t>(i), 1)));
        }
    }
    """,
    scalars="n",
)
suite.entry(
    "one_scope",
    """
    PTO2_SCOPE() {
        for (int64_t i = 0; i < n; ++i) {
            launch(id::fill, matrix(64, 64), i);
        }
    }
    """,
    scalars="n",
)
suite.entry(
    "an_open_scope_and_inner_ones",
    """
    PTO2_SCOPE() {
        const auto kept = launch(id::fill, matrix(64, 64), 5);
        for (int64_t i = 0; i < n; ++i) {
            PTO2_SCOPE() {
                const auto made = launch(id::fill, matrix(64, 64), i);
                launch(id::copy, in(box(made.get_ref(0), 0, 1, 0, 1)), inout(box(kept.get_ref(0), 0, 1, 0, 1)));
            }
            launch(id::add, inout(kept.get_ref(0)), 1);
        }
        launch(id::copy, in(box(kept.get_ref(0), 0, 1, 0, 2)), out(x));
    }
    """,
    scalars="n",
)


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("heap", [16 * KIB, 40 * KIB, 256 * KIB])
def test_storage_of_ended_scopes_is_used_again(heap, workers):
    """A full heap whose tasks will end is waited for."""
    n = 500
    x = zeros(1, n)
    counters = suite.run("a_scope_each", [x], [n], heap=heap, workers=workers).counters
    np.testing.assert_array_equal(x[0], 1 + np.arange(n))
    assert counters.allocated_bytes == n * 16 * KIB
    assert 16 * KIB <= counters.heap_high_water[1] <= heap
    assert counters.waits > 0 or workers > 1
    assert counters.heap_grown == 0


@pytest.mark.parametrize("schedule", [{}, *({"random": True, "seed": n} for n in range(5))], ids=str)
def test_rings_have_heaps_of_their_own(schedule):
    x = zeros(1, 2)
    heap = [1, 16 * KIB, 16 * KIB, 1]
    counters = suite.run("an_open_scope_and_inner_ones", [x], [100], heap=heap, **schedule).counters
    assert x.tolist() == [[99 + 1, 5 + 100]]
    assert list(counters.heap_high_water) == [0, 16 * KIB, 16 * KIB, 0]


def test_a_heap_that_open_scopes_fill_is_an_error_at_once():
    error = suite.fails(
        2,
        "one_scope",
        [zeros(1)],
        [5],
        heap=64 * KIB,
        match=r"ring 1 has no room for 16384 bytes: its heap is 65536 bytes, 65536 of them are held by scopes that are "
        r"still open \(the innermost was opened in line 1\)\. Use a larger ring_heap, or a scope that ends",
    )
    assert error.line == 3
    suite.run("one_scope", [zeros(1)], [4], heap=64 * KIB)
    suite.fails(2, "one_scope", [zeros(1)], [1], heap=16 * KIB - 1)  # larger than all there is
    suite.fails(2, "one_scope", [zeros(1)], [5], heap=64 * KIB, strict=True, workers=2)


suite.entry("large", "for (int64_t i = 0; i < n; ++i) alloc_tensors(matrix(4096, 4096));", scalars="n")


def test_the_default_heap_grows():
    counters = suite.run("large", [zeros(1)], [5]).counters  # 64 MiB each; nothing touches them
    assert counters.heap_grown == 1
    assert counters.heap_high_water[0] == counters.allocated_bytes == 5 * 64 * KIB * KIB
    assert counters.allocations == 5
    suite.fails(2, "large", [zeros(1)], [5], strict=True)


suite.entry(
    "lives",
    "Random random{static_cast<uint32_t>(seed)}; int64_t stamp = 0;\nfor (int i = 0; i < 60; ++i) live(random, x, stamp, 4);",
    scalars="seed",
)


@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("seed", range(4))
def test_buffers_do_not_move_or_overlap_while_they_live(seed, workers):
    faults = zeros(2, dtype=np.int32)
    suite.run("lives", [faults], [seed], workers=workers, heap=128 * KIB)
    assert faults.tolist() == [0, 0]


def test_buffers_do_not_move_or_overlap_in_a_random_schedule():
    for seed in range(4):
        faults = zeros(2, dtype=np.int32)
        suite.run("lives", [faults], [seed], random=True, seed=seed)
        assert faults.tolist() == [0, 0]


# --- alloc_tensors ----------------------------------------------------------------------------------------------------

_SIXTEEN = ", ".join(f"row_of({n + 1})" for n in range(16))
suite.entry(
    "alloc",
    f"""
    const auto one = alloc_tensors(row_of(10));
    const auto many = alloc_tensors({_SIXTEEN});
    always_assert(one.size() == 1 && many.size() == 16);
    for (uint32_t i = 0; i < 16; ++i) {{
        always_assert(many.get_ref(i).shapes[0] == i + 1 && many.get_ref(i).numel() == i + 1);
        launch(id::stamp, out(many.get_ref(i)), out(one.get_ref(0)), i);
    }}
    for (uint32_t i = 0; i < 16; ++i) launch(id::check, in(many.get_ref(i)), no_dep(x), i);
    """,
)


def test_alloc_tensors():
    faults = zeros(2, dtype=np.int32)
    counters = suite.run("alloc", [faults]).counters
    assert faults.tolist() == [0, 0]
    assert counters.tasks == 32 and counters.allocations == 2


suite.entry("no_such_output", "const auto made = alloc_tensors(row_of(1));\ntask(in(made.get_ref(1)));")
suite.entry("no_output_at_all", "task(in(TaskOutputTensors().get_ref(0)));")
suite.entry("six_dimensions", "const uint32_t shape[6] = {1, 1, 1, 1, 1, 1};\nalloc_tensors(TensorCreateInfo(shape, 6, DataType::INT8));")  # fmt: skip
suite.entry("unknown_type", "alloc_tensors(row_of(1, DataType::UNKNOWN));")
suite.entry("of_no_elements", "const auto made = alloc_tensors(row_of(0), matrix(3, 0));\nlaunch(id::fill, out(made.get_ref(0)), 1); launch(id::fill, out(made.get_ref(1)), 1);\nlaunch(id::add, inout(x), 1);")  # fmt: skip


def test_wrong_allocations():
    for entry in ("no_such_output", "no_output_at_all"):
        suite.fails(5, entry, [zeros(1)], match="get_ref: no such output")
    suite.fails(5, "six_dimensions", [zeros(1)], match="more than 5 dimensions")
    assert suite.fails(5, "unknown_type", [zeros(1)], match="unknown element type").line == 1


def test_tensors_without_elements():
    x = zeros(1)
    suite.run("of_no_elements", [x])
    assert x[0] == 1


# --- values of fresh buffers ------------------------------------------------------------------------------------------

suite.entry(
    "fresh",
    """
    TensorCreateInfo info = row_of(5, static_cast<DataType>(dtype));
    switch (initial * pto_element_size(info.dtype)) {
        case 0: break;
        case 1: info.set_initial_value(static_cast<uint8_t>(bits)); break;
        case 2: info.set_initial_value(static_cast<uint16_t>(bits)); break;
        case 4: info.set_initial_value(static_cast<uint32_t>(bits)); break;
        default: info.set_initial_value(bits);
    }
    const auto made = alloc_tensors(info);
    launch(id::bytes_of, in(made.get_ref(0)), out(x));
    """,
    scalars="dtype initial bits",
)
suite.entry(
    "typed_initial_values",
    """
    TensorCreateInfo f = row_of(4), i = row_of(4, DataType::INT32), z = row_of(4, DataType::FLOAT16);
    f.set_initial_value(1.5f);
    i.set_initial_value(-7);
    z.set_initial_value(0);
    const auto made = launch(id::nop, f, i, z);
    launch(id::bytes_of, in(made.get_ref(0)), out(part(x, 0, 16)));
    launch(id::bytes_of, in(made.get_ref(1)), out(part(x, 16, 16)));
    launch(id::bytes_of, in(made.get_ref(2)), out(part(x, 32, 8)));
    """,
)
# Codes of element types, by the specification's order.
FLOATS = {
    0: np.float32, 1: np.float16, 6: ml_dtypes.bfloat16, 12: ml_dtypes.float8_e4m3fn, 13: ml_dtypes.float8_e8m0fnu,
    15: ml_dtypes.float8_e5m2,
}  # fmt: skip
INTEGERS = {2: np.int32, 3: np.int16, 4: np.int8, 5: np.uint8, 7: np.int64, 8: np.uint64, 9: np.uint16, 10: np.uint32, 11: np.bool_}  # fmt: skip
TYPES = {**FLOATS, **INTEGERS}


def fresh(code, dtype, value=None, **options):
    """The five elements of a fresh buffer; ``value``: its initial value."""
    dtype = np.dtype(dtype)
    x = np.full(5 * dtype.itemsize, 0x11, np.uint8)
    bits = int.from_bytes(np.array(value).astype(dtype).tobytes(), "little") if value is not None else 0
    suite.run("fresh", [x], [code, value is not None, bits], **options)
    return x.view(dtype)


@pytest.mark.parametrize("code", TYPES, ids=lambda code: np.dtype(TYPES[code]).name)
@pytest.mark.parametrize("fill", [False, True])
def test_initial_values(code, fill):
    dtype = TYPES[code]
    for value in (1, 0) if dtype in FLOATS.values() or np.dtype(dtype).kind in "ub" else (1, 0, -5):
        if value == 0 and dtype is ml_dtypes.float8_e8m0fnu:
            continue  # it has no zero
        found = fresh(code, dtype, value, fill=fill)
        np.testing.assert_array_equal(found, np.full(5, value).astype(dtype))


def test_initial_values_by_their_type():
    x = zeros(40, dtype=np.uint8)
    suite.run("typed_initial_values", [x], fill=True)
    assert x[:16].view(np.float32).tolist() == [1.5] * 4
    assert x[16:32].view(np.int32).tolist() == [-7] * 4
    assert x[32:].view(np.float16).tolist() == [0] * 4


@pytest.mark.parametrize("code", FLOATS, ids=lambda code: np.dtype(TYPES[code]).name)
def test_fill_mode_floats_are_nan(code):
    assert np.isnan(fresh(code, FLOATS[code], fill=True).astype(np.float32)).all()


@pytest.mark.parametrize("code", INTEGERS, ids=lambda code: np.dtype(TYPES[code]).name)
def test_fill_mode_integers_have_a_pattern(code):
    found = fresh(code, INTEGERS[code], fill=True).view(np.uint8)
    assert (found == 0xA5).all()
