"""The matrix product of generated kernels, in each of the forms that the macros of a CPU choose, against NumPy.

Operands lie inside larger arrays of NaN (or of 99), so that what is read beside them shows; what lies around the result
must stay as it was.
"""

import ctypes
import functools
import platform
import threading

import ml_dtypes
import numpy as np
import pytest

from pypto.runtime.build import build, load
from pypto.runtime.native_library import SOURCES

X86 = platform.machine().lower() in ("x86_64", "amd64")
# What is taken away from this machine's instructions, behind the builder's own -march=native.
FORMS = {
    "native": "",
    "without_dot": "-mno-avx512bf16 -mno-avx512vnni" if X86 else None,
    "without_512": "-mno-avx512f -mno-avx512bf16 -mno-avx512vnni" if X86 else None,
    "portable": "-march=x86-64" if X86 else None,
}
TYPES = {
    "float": np.float32,
    "bf16": ml_dtypes.bfloat16,
    "fp16": np.float16,
    "int8_t": np.int8,
}
PAIRS = [(name, name) for name in TYPES] + [("float", "bf16"), ("fp16", "float")]
MIXED = PAIRS[4:]  # compiled once only: they share all but their packing with the others
LAYOUTS = "rows columns strided".split()

FUNCTION = """\
extern "C" __attribute__((visibility("default")))
void {a}_{b}({c}* c, int64_t c_row, const {a}* a, int64_t a_row, int64_t a_col, const {b}* b, int64_t b_row, int64_t b_col,
             int64_t m, int64_t n, int64_t k, bool accumulate) {{
    matmul(c, c_row, a, a_row, a_col, b, b_row, b_col, m, n, k, accumulate);
}}
"""


@functools.cache
def library(form):
    functions = [
        FUNCTION.format(a=a, b=b, c=result(a, b).__name__.replace("int32", "int32_t").replace("float32", "float"))
        for a, b in PAIRS
        if (a, b) not in MIXED or form == "native"
    ]
    text = '#include "kernel/matmul.h"\nusing namespace pto;\n' + "\n".join(functions)
    flags = ["-O3", "-Wextra", "-Werror", "-fopenmp-simd", *FORMS[form].split()]
    return load(build([("products.cpp", text)], include_dirs=[SOURCES], flags=flags, name="products"))


def result(a, b):
    return np.int32 if a == b == "int8_t" else np.float32


@pytest.fixture(params=list(FORMS))
def form(request):
    if FORMS[request.param] is None:
        pytest.skip("this CPU has one form only")
    return request.param


def each(form):
    return [pair for pair in PAIRS if pair not in MIXED or form == "native"]


def multiply(form, types, c, a, b, accumulate=False):
    """c (+)= a @ b, for arrays of any strides; rows of c are contiguous."""
    (m, k), n = a.shape, b.shape[1]
    assert b.shape[0] == k and c.shape == (m, n) and (c.strides[1] == c.itemsize or n <= 1)
    function = getattr(library(form), "_".join(types))
    strides = [[ctypes.c_int64(s // x.itemsize) for s in x.strides] for x in (a, b)]
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (c, a, b)]
    sizes = [ctypes.c_int64(s) for s in (m, n, k)]
    function(
        pointers[0], ctypes.c_int64(c.strides[0] // c.itemsize), pointers[1], *strides[0], pointers[2], *strides[1],
        *sizes, ctypes.c_bool(accumulate),
    )  # fmt: skip


def placed(values, layout, margin=3):
    """The same matrix inside a larger array, with rows or columns contiguous, or neither."""
    strange = 99 if values.dtype == np.int8 else np.nan
    rows, columns = values.shape
    step = 2 if layout == "strided" else 1
    shape = (rows * step + 2 * margin, columns * step + 2 * margin)
    around = np.full(shape[::-1] if layout == "columns" else shape, strange, values.dtype)
    if layout == "columns":
        around = around.T
    inside = around[margin : margin + rows * step : step, margin : margin + columns * step : step]
    inside[...] = values
    return inside


def integers(rng, shape, dtype):
    return rng.integers(-4, 5, shape).astype(dtype)


def check(form, types, m, n, k, layouts, seed, accumulate, values=integers, margin=3):
    rng = np.random.default_rng(seed)
    a = values(rng, (m, k), TYPES[types[0]])
    b = values(rng, (k, n), TYPES[types[1]])
    dtype = result(*types)
    around = integers(rng, (m + 2, n + 2 * margin), dtype)
    before = around.copy()
    multiply(
        form, types, around[1 : m + 1, margin : margin + n], placed(a, layouts[0]), placed(b, layouts[1]), accumulate
    )
    exact = np.float64 if dtype == np.float32 else np.int64
    wide_a, wide_b = a.astype(exact), b.astype(exact)
    expected = wide_a @ wide_b
    if accumulate:
        expected = expected + before[1 : m + 1, margin : margin + n]
    got = around[1 : m + 1, margin : margin + n].astype(exact)
    what = f"{types} {m} x {n} x {k} {layouts} {accumulate=}"
    if values is integers:
        np.testing.assert_array_equal(got, expected, err_msg=what)
    else:
        # Each of k sums is rounded (and may be twice, by the instruction for pairs); c is another term.
        size = np.abs(wide_a) @ np.abs(wide_b) + np.abs(expected)
        assert np.all(np.abs(got - expected) <= (k + 2) * 2.0**-24 * size + 2.0**-126 * (k + 1)), what
    around[1 : m + 1, margin : margin + n] = before[1 : m + 1, margin : margin + n]
    np.testing.assert_array_equal(around, before, err_msg=f"{what}: written outside")


def normal(rng, shape, dtype):
    scale = 2.0 ** rng.integers(-6, 7, shape)
    return np.clip(rng.standard_normal(shape) * scale, -120, 120).astype(dtype)


def test_random_shapes(form):
    rng = np.random.default_rng(1)
    for types in each(form):
        for i in range(80):
            m, n, k = (int(x) for x in rng.integers(1, 71, 3))
            layouts = [LAYOUTS[int(x)] for x in rng.integers(0, 3, 2)]
            check(
                form,
                types,
                m,
                n,
                k,
                layouts,
                i,
                bool(i % 2),
                (integers, normal)[i // 2 % 2],
                margin=int(rng.integers(4)),
            )


def test_few_rows_or_columns(form):
    """Products that are about memory, with other code."""
    rng = np.random.default_rng(2)
    for types in each(form):
        for i in range(80):
            few, other, k = int(rng.integers(1, 10)), int(rng.integers(1, 90)), int(rng.integers(1, 90))
            m, n = (few, other) if i % 2 else (other, few)
            layouts = [LAYOUTS[int(x)] for x in rng.integers(0, 3, 2)]
            check(form, types, m, n, k, layouts, i, bool(i // 2 % 2), (integers, normal)[i // 4 % 2])


def test_some_rows_by_a_large_matrix(form):
    """The matrix streams by, without being packed, if its rows are contiguous."""
    rng = np.random.default_rng(3)
    for types in each(form):
        for i in range(24):
            m, n = int(rng.integers(1, 70)), int(rng.integers(10, 1500))
            k = 33000 // n + int(rng.integers(1, 40))
            layouts = [LAYOUTS[int(rng.integers(0, 3))], "rows"]
            check(form, types, m, n, k, layouts, i, bool(i % 2), (integers, normal)[i // 2 % 2])


@pytest.mark.parametrize(
    "m, n, k",
    [
        (1, 5000, 130),  # more columns than stream by at a time
        (3, 2100, 70),
        (2100, 3, 70),
        (16, 1100, 600),  # more than a block of columns, and of k
        (200, 40, 1100),  # more than a block of rows
        (400, 70, 5),
        (129, 1060, 513),
    ],
)
def test_several_blocks(form, m, n, k):
    for types in each(form):
        for i, layouts in enumerate([("rows", "rows"), ("columns", "columns"), ("rows", "columns")]):
            check(form, types, m, n, k, layouts, i, i == 1, (integers, normal)[i // 2])


def test_tiles_without_margins(form):
    """The usual sizes, where the strides are powers of two."""
    for types in each(form):
        dtype = result(*types)
        for size in (16, 32, 64, 128):
            rng = np.random.default_rng(size)
            a, b = integers(rng, (size, size), TYPES[types[0]]), integers(rng, (size, size), TYPES[types[1]])
            for x, y in [(a, b), (a.T, b), (a, b.T), (a.T, b.T)]:
                c = np.full((size, size), 7, dtype)
                multiply(form, types, c, x, y)
                np.testing.assert_array_equal(c, (x.astype(np.int64) @ y.astype(np.int64)).astype(dtype))


@pytest.mark.parametrize("m, n", [(1, 1), (4, 30), (30, 4), (20, 40)])
def test_nothing_to_sum(form, m, n):
    for types in each(form):
        a, b = np.zeros((m, 0), TYPES[types[0]]), np.zeros((0, n), TYPES[types[1]])
        around = np.full((m + 2, n + 2), 7, result(*types))
        multiply(form, types, around[1:-1, 1:-1], a, b, accumulate=True)
        assert (around == 7).all()
        multiply(form, types, around[1:-1, 1:-1], a, b)
        assert (around[1:-1, 1:-1] == 0).all() and around.sum() == 7 * (around.size - m * n)


def test_empty_results(form):
    for types in each(form):
        a, b = np.ones((4, 3), TYPES[types[0]]), np.ones((3, 4), TYPES[types[1]])
        c = np.full((4, 4), 7, result(*types))
        multiply(form, types, c[:0], a[:0], b)
        multiply(form, types, c[:, :0], a, b[:, :0])
        assert (c == 7).all()


@pytest.mark.parametrize("m, n, k", [(3, 40, 21), (40, 3, 21), (20, 40, 21)])
@pytest.mark.parametrize("layouts", [("rows", "rows"), ("columns", "columns")])
def test_nan_and_infinity(form, m, n, k, layouts):
    for types in each(form):
        if "int8_t" in types:
            continue
        rng = np.random.default_rng(3)
        a, b = integers(rng, (m, k), TYPES[types[0]]), integers(rng, (k, n), TYPES[types[1]])
        a[0, k - 1], a[1, 0], a[2, 5] = np.nan, np.inf, -np.inf
        b[4, n - 1], b[0, 0] = np.nan, np.inf
        c = np.zeros((m, n), np.float32)
        multiply(form, types, c, placed(a, layouts[0]), placed(b, layouts[1]))
        with np.errstate(invalid="ignore"):
            expected = a.astype(np.float64) @ b.astype(np.float64)
        np.testing.assert_array_equal(c, expected.astype(np.float32))


@pytest.mark.parametrize("m", [1, 20])
def test_every_fp16(form, m):
    """All numbers, subnormal ones too, times one."""
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    a = np.ones((m, 1), np.float16)
    c = np.zeros((m, every.size), np.float32)
    multiply(form, ("fp16", "fp16"), c, a, every[None])
    np.testing.assert_array_equal(c, np.tile(every.astype(np.float32), (m, 1)))


@pytest.mark.parametrize("m", [1, 20])
def test_every_bf16(form, m):
    """All numbers times one; subnormal ones may be taken for zeros."""
    every = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    a = np.ones((m, 1), ml_dtypes.bfloat16)
    c = np.zeros((m, every.size), np.float32)
    multiply(form, ("bf16", "bf16"), c, a, every[None])
    exact = every.astype(np.float32)
    subnormal = np.abs(exact) < 2.0**-126
    np.testing.assert_array_equal(c[:, ~subnormal], np.tile(exact[~subnormal], (m, 1)))
    assert np.all((c[:, subnormal] == exact[subnormal]) | (c[:, subnormal] == 0))


@pytest.mark.parametrize("m", [2, 20])
def test_extreme_integers(form, m):
    """The largest products, and sums that wrap."""
    a, b = np.full((m, 1024), -128, np.int8), np.full((1024, 40), -128, np.int8)
    b[:, ::3] = 127
    c = np.full((m, 40), 2**31 - 1, np.int32)
    expected = a.astype(np.int64) @ b.astype(np.int64)
    multiply(form, ("int8_t", "int8_t"), c, a, b, accumulate=True)
    np.testing.assert_array_equal(c, (expected + (2**31 - 1)).astype(np.int32))
    multiply(form, ("int8_t", "int8_t"), c, a, b)
    np.testing.assert_array_equal(c, expected)


def test_threads_have_their_own_memory():
    failures = []

    def run(seed):
        try:
            for i in range(20):
                check("native", ("bf16", "bf16"), 70 + i, 90, 60 * (i + 1), ("rows", "columns"), seed + i, False)
        except AssertionError as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(100 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
