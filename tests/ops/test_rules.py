"""Promotion of element types, and the warning where a promotion loses values."""

import warnings

import pytest

import pypto.language as pl
from pypto.ir.dtype import DataType as D
from pypto.ops.rules import promote_dtypes, result_dtype


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (D.INT32, D.FP16, D.FP16),
        (D.FP16, D.FP32, D.FP32),
        (D.FP16, D.BF16, D.FP16),
        (D.BF16, D.FP16, D.BF16),
        (D.UINT32, D.INT32, D.INT32),
        (D.INT32, D.UINT32, D.INT32),
        (D.UINT8, D.INT32, D.INT32),
    ],
)
def test_promotion(a, b, expected):
    assert promote_dtypes(a, b) is expected
    assert result_dtype(a, b) is expected


def multiply(a, b):
    """Define a program in which a tensor of one type meets one of another."""

    @pl.function
    def kernel(x: pl.Tensor[[16, 16], a], y: pl.Tensor[[16, 16], b]):
        z = pl.mul(x, y)
        return z

    return kernel


@pytest.mark.parametrize(
    ("a", "b", "loss"),
    [
        (D.INT32, D.FP16, r"INT32 with FP16 computes in FP16, which holds integers exactly up to 2\*\*11"),
        (D.FP32, D.INT32, r"INT32 with FP32 computes in FP32, which holds integers exactly up to 2\*\*24"),
        (D.UINT16, D.FP16, r"UINT16 with FP16"),
        (D.FP16, D.BF16, "FP16 with BF16 computes in the type of the first operand"),
        (D.BF16, D.FP16, "FP16 with BF16"),
    ],
)
def test_a_promotion_that_loses_values_warns_at_the_users_line(a, b, loss):
    with pytest.warns(UserWarning, match=f"lossy promotion: {loss}") as caught:
        function = multiply(a, b)
    assert [(w.filename, w.lineno) for w in caught] == [(__file__, multiply.__code__.co_firstlineno + 5)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pl.parse(str(function))  # printed IR never warns


@pytest.mark.parametrize(("a", "b"), [(D.INT8, D.BF16), (D.INT16, D.FP32), (D.FP16, D.FP32), (D.INT32, D.INT16)])
def test_a_promotion_that_keeps_all_values_is_silent(a, b):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        multiply(a, b)
