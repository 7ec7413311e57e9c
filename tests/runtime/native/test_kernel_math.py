"""Element types and element functions of generated kernels, against NumPy and ml_dtypes."""

import ctypes
import functools
import math
import platform
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from pypto.ir.dtype import DataType
from pypto.ops.conversion import convert
from pypto.ops.normalize import CAST_MODE_NAMES
from pypto.ops.numpy_types import numpy_dtype
from pypto.runtime.build import build, find_compiler, load
from pypto.runtime.native_library import SOURCES

HERE = Path(__file__).parent
# Of generated kernels. -Wextra: the headers are to be silent in them.
FLAGS = (
    "-O3", "-fopenmp-simd", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-Wextra", "-Werror",
)  # fmt: skip

NARROW = {
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "fp16": np.dtype(np.float16),
    "fp8e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "fp8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "fp8e8m0": np.dtype(ml_dtypes.float8_e8m0fnu),
}
# In the order of the numbers in kernel_cast.h.
CAST_TYPES = {
    DataType.BOOL: "bool",
    DataType.INT8: "int8_t",
    DataType.INT16: "int16_t",
    DataType.INT32: "int32_t",
    DataType.INT64: "int64_t",
    DataType.UINT8: "uint8_t",
    DataType.UINT16: "uint16_t",
    DataType.UINT32: "uint32_t",
    DataType.UINT64: "uint64_t",
    DataType.FP32: "float",
    DataType.FP16: "pto::fp16",
    DataType.BF16: "pto::bf16",
    DataType.FP8E4M3FN: "pto::fp8e4m3fn",
    DataType.FP8E5M2: "pto::fp8e5m2",
    DataType.FP8E8M0: "pto::fp8e8m0",
}
F32 = np.dtype(np.float32)
BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


@functools.cache
def built():
    report = ("-fopt-info-vec-optimized",) if find_compiler().kind == "gcc" else ()
    return build([HERE / "kernel_math.cpp"], include_dirs=[SOURCES], flags=(*FLAGS, *report), name="kernel_math")


# Of these the loops become vector code. There are a thousand of pairs and modes: optimizing all takes long.
OPTIMIZED = (DataType.BOOL, DataType.INT64, DataType.FP32)


@functools.cache
def cast_library(optimized):
    units = [
        (f"cast{i}.cpp", f'#define FROM {name}\n#define FUNCTION cast_{i}\n#include "kernel_cast.h"\n')
        for i, (dtype, name) in enumerate(CAST_TYPES.items())
        if (dtype in OPTIMIZED) == optimized
    ]
    header = ("kernel_cast.h", (HERE / "kernel_cast.h").read_text())
    flags = FLAGS if optimized else (*FLAGS, "-O0")
    return load(build([*units, header], include_dirs=[SOURCES], flags=flags, name="kernel_cast"))


def call(name, result_dtype, *operands, library=None, numbers=()):
    operands = [np.ascontiguousarray(o) for o in operands]
    result = np.zeros(operands[0].shape, result_dtype)
    function = getattr(library or load(built()), name)
    function.restype = None
    arrays = [ctypes.c_void_p(a.ctypes.data) for a in (*operands, result)]
    function(*map(ctypes.c_int, numbers), *arrays, ctypes.c_int64(result.size))
    return result


def patterns(dtype):
    """All values of a type of up to 16 bits."""
    return np.arange(1 << 8 * dtype.itemsize).astype(BITS[dtype.itemsize]).view(dtype)


def random_floats(count=2_000_000):
    return np.random.default_rng(1).integers(0, 1 << 32, count, np.uint32).view(F32)


def near_values(dtype):
    """Floats at, between and next to the values of a narrow type, also where it ends."""
    values = patterns(dtype).astype(F32)
    values = np.unique(values[np.isfinite(values)]).astype(np.float64)
    largest = values[-1]
    beyond = [largest * (1 + k / 64) for k in range(65)]
    with np.errstate(over="ignore"):
        points = np.concatenate([values, (values[1:] + values[:-1]) / 2, beyond, [-b for b in beyond]]).astype(F32)
        around = [points, np.nextafter(points, F32.type(np.inf)), np.nextafter(points, F32.type(-np.inf))]
    return np.concatenate(around)


SPECIAL = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.0, -1.0, 1e-45, -1e-45, 2.0**-126, 2.0**-127, 3.4028235e38, -3.4028235e38],
    F32,
)  # fmt: skip


def assert_same(actual, expected, given):
    """The same bits, NaN of any payload."""
    assert actual.dtype == expected.dtype
    bits = BITS[actual.dtype.itemsize]
    same = actual.view(bits) == expected.view(bits)
    if actual.dtype.kind not in "iub" or actual.dtype.name.startswith(("bfloat", "float")):
        same |= np.isnan(actual.astype(F32)) & np.isnan(expected.astype(F32))
    if not same.all():
        wrong = np.flatnonzero(~same)
        at = wrong[:5]
        raise AssertionError(f"{wrong.size} wrong: of {given[at]!r}: {actual[at]!r}, expected {expected[at]!r}")


# --- storage ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("function", ["load", "to_floats"])
def test_every_pattern_becomes_its_float(name, function):
    values = patterns(NARROW[name])
    result = call(f"{function}_{name}", F32, values)
    assert_same(result, values.astype(F32), values)
    if name != "fp8e8m0":
        sign = values.view(BITS[values.itemsize]) >> 8 * values.itemsize - 1
        np.testing.assert_array_equal(np.signbit(result), sign)


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("function", ["store", "from_floats"])
def test_floats_are_rounded_as_numpy_does(name, function):
    dtype = NARROW[name]
    for floats in (random_floats(), near_values(dtype), SPECIAL):
        with np.errstate(all="ignore"):
            expected = floats.astype(dtype)
        result = call(f"{function}_{name}", dtype, floats)
        assert_same(result, expected, floats)
        if name != "fp8e8m0":
            shift = 8 * dtype.itemsize - 1
            np.testing.assert_array_equal(result.view(BITS[dtype.itemsize]) >> shift, np.signbit(floats))


@pytest.mark.parametrize("name", NARROW)
def test_rounded_is_stored_and_loaded(name):
    floats = np.concatenate([near_values(NARROW[name]), SPECIAL])
    with np.errstate(all="ignore"):
        expected = floats.astype(NARROW[name]).astype(F32)
    assert_same(call(f"rounded_{name}", F32, floats), expected, floats)


# --- functions of one number ------------------------------------------------------------------------------------------


def sigmoid(x):
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1.0) / (1.0 + small)


# The function in float64, and what math.h says of the error in ulp.
FUNCTIONS = {
    "exp": (np.exp, 1.1),
    "log": (np.log, 0.9),
    "sin": (np.sin, 1.7),
    "cos": (np.cos, 1.7),
    "sqrt": (np.sqrt, 0.5001),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1.5),
    "recip": (lambda x: 1 / x, 0.5001),
    "tanh": (np.tanh, 1.4),
    "erf": (np.vectorize(math.erf, otypes=[np.float64]), 1.0),
    "sigmoid": (sigmoid, 2.5),
}


@functools.cache
def end_of(name):
    """Where a function ends to be defined."""
    if name not in ("sin", "cos"):
        return np.inf
    function = load(built()).trigonometric_end
    function.restype = ctypes.c_float
    return function()


def errors(actual, exact):
    """In units in the last place of float; infinite where a result is not what it has to be."""
    expected = exact.astype(F32)
    ordinary = np.isfinite(exact) & np.isfinite(actual) & (np.abs(exact) <= float(np.finfo(F32).max))
    unit = np.ldexp(1.0, np.maximum(np.frexp(np.where(ordinary, exact, 1.0))[1] - 24, -149))
    error = np.abs(np.where(ordinary, actual.astype(np.float64) - exact, 0.0)) / unit
    same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    return np.where(ordinary | same, error, np.inf)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_is_as_accurate_as_it_says(name):
    function, bound = FUNCTIONS[name]
    step = 100_003 if name == "erf" else 1_499
    everywhere = np.arange(0, 1 << 32, step, np.uint64).astype(np.uint32).view(F32)
    common = np.linspace(-20, 20, 20_001 if name == "erf" else 1_000_001, dtype=F32)
    for x in (everywhere, common, np.linspace(-110, 110, 100_001, dtype=F32)):
        x = x[(np.abs(x) < end_of(name)) | ~np.isfinite(x)]
        with np.errstate(all="ignore"):
            error = errors(call(f"unary_{name}", F32, x), function(x.astype(np.float64)))
        worst = error.argmax()
        assert error[worst] <= bound, (x[worst], error[worst])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name):
    x = SPECIAL[(np.abs(SPECIAL) < end_of(name)) | ~np.isfinite(SPECIAL)]
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[name][0](x.astype(np.float64)).astype(F32)
    result = call(f"unary_{name}", F32, x)
    inexact = np.isfinite(expected) & (expected != 0)
    np.testing.assert_allclose(result[inexact], expected[inexact], rtol=3e-7, atol=1e-44)
    assert_same(result[~inexact], expected[~inexact], x[~inexact])


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_multiples_of_a_right_angle(name):
    # Where almost all digits cancel.
    x = (np.arange(1, 200_000) * (math.pi / 2)).astype(F32)
    x = np.concatenate(
        [x, -x, np.nextafter(x, F32.type(0)), np.linspace(1e9, end_of(name) * 0.99, 200_001).astype(F32)]
    )
    assert errors(call(f"unary_{name}", F32, x), FUNCTIONS[name][0](x.astype(np.float64))).max() <= 1.7


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_turns_beyond_the_largest_are_nan(name):
    end = end_of(name)
    assert end in (2.0**31, 2.0**51)
    assert np.isnan(call(f"unary_{name}", F32, np.array([end, -end, 2 * end, 1e20, 3e38], F32))).all()


def test_exp_has_subnormal_results():
    x = np.linspace(-104.5, -87, 300_001).astype(F32)
    result = call("unary_exp", F32, x)
    assert errors(result, np.exp(x.astype(np.float64))).max() <= 1.1
    assert 0 < result[(x > -100) & (x < -99)].max() < np.finfo(F32).tiny


@pytest.mark.parametrize("name", ["bf16", "fp16"])
def test_narrow_floats_compute_in_float(name):
    values = patterns(NARROW[name])
    with np.errstate(all="ignore"):
        expected = np.exp(values.astype(F32))
        neighbours = [np.nextafter(expected, F32.type(to)).astype(NARROW[name]) for to in (-np.inf, np.inf)]
    result = call(f"exp_{name}", NARROW[name], values).astype(F32)
    low, high = (n.astype(F32) for n in neighbours)
    assert ((low <= result) & (result <= high) | np.isnan(expected) & np.isnan(result)).all()


# --- functions of two numbers -----------------------------------------------------------------------------------------

INTEGERS = [np.dtype(f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
BINARY = ("maximum", "minimum", "fmod", "remainder")


def pairs(dtype):
    rng = np.random.default_rng(2)
    if dtype == F32:
        few = np.concatenate([SPECIAL, np.array([0.5, 2, 3, -3, 5.5, -7.25, 1e10, 1e-10, 2.0**100, 3e-40], F32)])
        a, b = (m.ravel() for m in np.meshgrid(few, few))
        more = [random_floats(400_000), rng.uniform(-100, 100, 200_000).astype(F32)]
        a = np.concatenate([a, *more, rng.integers(-50, 50, 10_000).astype(F32)])
        return a, np.concatenate([b, *[rng.permutation(m) for m in more], rng.integers(-9, 9, 10_000).astype(F32)])
    info = np.iinfo(dtype)
    few = np.array([info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 7, info.max // 2], dtype)
    few = np.concatenate([few, -few]) if dtype.kind == "i" else few
    a, b = (m.ravel() for m in np.meshgrid(few, few))
    more = rng.integers(info.min, info.max, (2, 50_000), dtype, endpoint=True)
    return np.concatenate([a, more[0]]), np.concatenate(
        [b, more[1] >> rng.integers(0, 8 * dtype.itemsize, 50_000, dtype)]
    )


@pytest.mark.parametrize("dtype", [F32, *INTEGERS], ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_binary_function_is_numpys(name, dtype):
    a, b = pairs(dtype)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(a, b)
    result = call(f"{name}_{'float' if dtype == F32 else f'{dtype}_t'}", dtype, a, b)
    if name in ("maximum", "minimum") and dtype == F32:  # which of two zeros NumPy gives depends on the machine
        result, expected = (np.where(r == 0, F32.type(0), r) for r in (result, expected))
    assert_same(result, expected, np.stack([a, b], 1))


# --- cast -------------------------------------------------------------------------------------------------------------


@functools.cache
def cast_inputs(source):
    dtype = numpy_dtype(source)
    if source is DataType.BOOL:
        return np.array([False, True] * 20)
    if dtype.itemsize <= 2:
        return patterns(dtype)
    if dtype == F32:
        whole = np.array([2.0**k for k in range(66)])
        steps = np.concatenate([whole + d for d in (-1, -0.5, -0.25, 0, 0.25, 0.5, 1)])
        halves = np.arange(-600, 600) / 2
        limits = np.concatenate([steps, -steps, halves, halves + 2.0**-20]).astype(F32)
        limits = np.concatenate(
            [limits, np.nextafter(limits, F32.type(np.inf)), np.nextafter(limits, F32.type(-np.inf))]
        )
        narrow = [near_values(d) for d in NARROW.values()]
        return np.concatenate([SPECIAL, limits, *narrow, random_floats(50_000)])
    info, rng = np.iinfo(dtype), np.random.default_rng(3)
    ends = [sign * 2**k + d for k in range(65) for d in (-3, -2, -1, 0, 1, 2, 3) for sign in (-1, 1)]
    # Around the ties of formats with 2, 3, 7, 10 and 23 bits behind the first.
    ends += [
        sign * ((2**bits + m << k) + (1 << k - 1) + d)
        for bits in (2, 3, 7, 10, 23)
        for k in range(1, 40)
        for m in (0, 1, 2, 3, 2**bits - 1)
        for d in (-1, 0, 1)
        for sign in (-1, 1)
    ]
    ends = np.array([e for e in ends if info.min <= e <= info.max], dtype)
    wide = rng.integers(info.min, info.max, 20_000, dtype, endpoint=True)
    return np.concatenate([ends, wide >> rng.integers(0, 8 * dtype.itemsize, wide.size, dtype)])


CASTS = [(source, target) for source in CAST_TYPES for target in CAST_TYPES if source is not target]


@pytest.mark.parametrize(("source", "target"), CASTS, ids=str)
def test_cast_is_that_of_the_op(source, target):
    numbers = {dtype: i for i, dtype in enumerate(CAST_TYPES)}
    x = cast_inputs(source)
    for mode in CAST_MODE_NAMES.values():
        with np.errstate(all="ignore"):
            expected, _ = convert(x, source, target, mode)  # the undefined elements, too
        name = f"cast_{numbers[source]}"
        result = call(
            name, numpy_dtype(target), x, library=cast_library(source in OPTIMIZED), numbers=(numbers[target], mode)
        )
        assert_same(result, expected, x)


# --- vector code ------------------------------------------------------------------------------------------------------


def test_loops_become_vector_code():
    if find_compiler().kind != "gcc" or platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("asks GCC for x86-64 what it made of the loops")
    if end_of("sin") < 2.0**51:
        pytest.skip("a CPU without AVX2")
    log = (built().path.parent / "build.log").read_text()
    found = {int(line) for line in re.findall(r"kernel_math\.cpp:(\d+):\d+: optimized: .*loop vectorized", log)}
    lines = (HERE / "kernel_math.cpp").read_text().splitlines()
    loops = {i: text for i, text in enumerate(lines, 1) if re.match(r"(UNARY|BINARIES|NARROW)\(\w+\)$", text)}
    assert len(loops) == 24 and [text for i, text in loops.items() if i not in found] == []
