"""Scalars of programs compute as a core does: integers wrap, floats round, division is checked."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_support import call, program

from pypto import ir
from pypto.ir import expr as x
from pypto.ir.dtype import DataType as D
from pypto.runtime.errors import ProgramError
from pypto.runtime.scalars import BINARY, cast, normalize, round_float, wrap

INTEGERS = {
    D.INT8: np.int8,
    D.INT16: np.int16,
    D.INT32: np.int32,
    D.INT64: np.int64,
    D.UINT8: np.uint8,
    D.UINT16: np.uint16,
    D.UINT32: np.uint32,
    D.UINT64: np.uint64,
    D.INDEX: np.int64,
}


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@given(value=st.integers(-(2**70), 2**70))
def test_wrap_is_twos_complement(dtype, value):
    bits = dtype.get_bit()
    want = np.array(value % 2**bits, np.uint64).astype(INTEGERS[dtype])
    assert wrap(value, dtype) == int(want)


@given(st.floats(allow_nan=False))
def test_fp32_rounds_like_numpy(value):
    with np.errstate(over="ignore"):
        assert round_float(value, D.FP32) == float(np.float32(value))
        assert round_float(value, D.FP16) == float(np.float16(value))


def test_rounding_raises_no_warning(recwarn):
    assert round_float(1e300, D.FP32) == math.inf
    assert round_float(1e300, D.FP16) == math.inf
    assert round_float(1e300, D.BF16) == math.inf
    assert math.isnan(round_float(math.nan, D.FP32))
    assert not recwarn.list


def test_casts():
    assert cast(-2.7, D.INT32) == -2
    assert cast(300.0, D.UINT8) == 44
    assert cast(0.5, D.BOOL) is True and cast(0, D.BOOL) is False
    assert cast(7, D.FP32) == 7.0
    assert cast(16777217, D.FP32) == 16777216.0
    for value in (math.nan, math.inf):
        with pytest.raises(ValueError, match="cannot convert"):
            cast(value, D.INT32)
    assert normalize(True, D.INT32) == 1


@pytest.mark.parametrize(
    ("kind", "a", "b", "want"),
    [
        (x.FloorDiv, -7, 2, -4),
        (x.FloorDiv, 7, -2, -4),
        (x.FloorMod, -7, 4, 1),
        (x.FloorMod, 7, -4, -1),
        (x.FloorDiv, -7.5, 2.0, -4.0),
        (x.FloatDiv, 7.0, 2.0, 3.5),
        (x.FloatDiv, -1.0, 0.0, -math.inf),
        (x.FloatDiv, 1.0, -0.0, -math.inf),
        (x.Min, 3, -1, -1),
        (x.Max, 3, -1, 3),
        (x.Pow, 2, 10, 1024),
        (x.Pow, 2.0, -1.0, 0.5),
        (x.Pow, 10.0, 400.0, math.inf),
        (x.Pow, -10.0, 401.0, -math.inf),
        (x.And, 1, 0, False),
        (x.Or, 0, 2, True),
        (x.Xor, True, True, False),
        (x.BitXor, 6, 3, 5),
        (x.BitShiftRight, -8, 1, -4),
    ],
)
def test_operators(kind, a, b, want):
    assert BINARY[kind](a, b) == want


def test_undefined_results():
    assert math.isnan(BINARY[x.FloatDiv](0.0, 0.0))
    assert math.isnan(BINARY[x.Pow](-8.0, 1 / 3))
    for kind in (x.FloorDiv, x.FloorMod, x.FloatDiv):
        with pytest.raises(ZeroDivisionError, match="by zero"):
            BINARY[kind](1, 0)
    with pytest.raises(ValueError, match="negative exponent"):
        BINARY[x.Pow](2, -1)
    with pytest.raises(ValueError, match="shift distance"):
        BINARY[x.BitShiftLeft](1, 64)


def scalar_call(expression, n, dtype="INT32"):
    found = program(
        f"pl.tensor.write(y, [0], {expression})",
        f"n: pl.Scalar[pl.{dtype}], y: pl.InOut[pl.Tensor[[1], pl.{dtype}]]",
    )
    y = np.zeros(1, {"INT32": np.int32, "INT8": np.int8, "UINT8": np.uint8, "FP32": np.float32}[dtype])
    call(found, n, y)
    return y[0].item()


def test_programs_wrap_at_the_width_of_the_type():
    assert scalar_call("n + n", 2**31 - 1) == -2
    assert scalar_call("n * n", 65_537) == 131_073
    assert scalar_call("n - pl.const(1, pl.UINT8)", 0, "UINT8") == 255
    assert scalar_call("-n", -128, "INT8") == -128


def test_programs_round_after_each_operation():
    n = np.float32(16_777_216)
    assert scalar_call("n + 1.0 + 1.0", float(n), "FP32") == float(n)


def test_division_by_zero_names_the_line():
    with pytest.raises(ProgramError, match="by zero") as caught:
        scalar_call("n // (n - n)", 5)
    assert caught.value.span.filename == "case.py"
    assert caught.value.function == "main"


def test_a_chain_of_hundreds_of_operators():
    found = program(
        "pl.tensor.write(y, [0], " + " + ".join(["n"] * 800) + ")",
        "n: pl.Scalar[pl.INT32], y: pl.InOut[pl.Tensor[[1], pl.INT32]]",
    )
    y = np.zeros(1, np.int32)
    ir.compile(found, dump_passes=False)(2, y)
    assert y[0] == 1600
