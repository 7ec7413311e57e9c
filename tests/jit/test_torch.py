"""torch tensors as arguments; torch is optional."""

import numpy as np
import pytest

import pypto.language as pl

torch = pytest.importorskip("torch", reason="torch is optional and not installed: pip install torch to run these")


@pl.jit
def exponential(x: pl.Tensor[[8, 16], pl.FP32], y: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:] = pl.exp(x)
    return y


@pl.jit
def double(x: pl.Tensor[[8, 16], pl.BF16], y: pl.Out[pl.Tensor[[8, 16], pl.BF16]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:] = pl.add(x, x)
    return y


def test_results_are_written_in_place():
    x, y = torch.randn(8, 16), torch.zeros(8, 16)
    exponential(x, y)
    torch.testing.assert_close(y, torch.exp(x))


def test_an_omitted_output_is_a_torch_tensor():
    x = torch.randn(8, 16)
    y = exponential(x)
    assert isinstance(y, torch.Tensor)
    torch.testing.assert_close(y, torch.exp(x))


def test_inputs_may_be_strided():
    x = torch.randn(16, 8).t()
    torch.testing.assert_close(exponential(x), torch.exp(x))


def test_bfloat16_without_a_copy_through_float32():
    x = torch.randn(8, 16).to(torch.bfloat16)
    y = torch.zeros(8, 16, dtype=torch.bfloat16)
    double(x, y)
    assert torch.equal(y, x + x)


def test_one_cache_entry_for_torch_and_numpy():
    exponential.cache_clear()
    exponential(torch.zeros(8, 16), torch.zeros(8, 16))
    exponential(np.zeros((8, 16), np.float32), np.zeros((8, 16), np.float32))
    assert exponential.cache_info().currsize == 1


def test_an_output_that_requires_grad_is_refused():
    with pytest.raises(RuntimeError, match="'y'"):
        exponential(torch.zeros(8, 16), torch.zeros(8, 16, requires_grad=True))
