"""Kernels that the interpreter runs as tasks of the C++ runtime."""

import numpy as np
import pytest
from native_kit import Suite

import pypto.language as pl
from pypto import ir
from pypto.ir.dtype import DataType
from pypto.runtime.errors import ProgramError
from pypto.runtime.host_executor import RunOptions
from pypto.runtime.interpreted_kernels import interpreted_kernels
from pypto.runtime.scalar_args import from_bits, to_bits

suite = Suite("interpreted_kernels")
for name in ("scale", "cube", "vector", "typed"):
    suite.kernel(name)
suite.entry(
    "bands",
    """
    PTO2_SCOPE() {
        for (int64_t i = 0; i < n; ++i) {
            CoreTaskArgs task;
            task.add_input(x);
            task.add_output(y);
            task.add_scalar(to_u64(1.5f));
            task.add_scalar(i);
            rt_submit_aiv_task(id::scale, task);
        }
    }
    """,
    tensors="x y",
    scalars="n",
)
suite.entry(
    "together",
    """
    PTO2_SCOPE() {
        CoreTaskArgs task;
        task.add_input(x);
        task.add_output(y);
        task.launch_spec.set_block_num(blocks);
        rt_submit_task(MixedKernels{id::cube, id::vector, INVALID_KERNEL_ID}, task);
    }
    """,
    tensors="x y",
    scalars="blocks",
)


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def scale(
        self,
        factor: pl.Scalar[pl.FP32],
        x: pl.Tensor[[64, 16], pl.FP32],
        i: pl.Scalar[pl.INDEX],
        y: pl.Out[pl.Tensor[[64, 16], pl.FP32]],
    ) -> pl.Tensor[[64, 16], pl.FP32]:
        t = pl.load(x, [i * 16, 0], [16, 16])
        y = pl.store(pl.mul(t, factor), [i * 16, 0], y)
        return y

    @pl.function(type=pl.FunctionType.AIC)
    def cube(self, x: pl.Tensor[[32, 16], pl.FP32], y: pl.Out[pl.Tensor[[32, 16], pl.FP32]]):
        b = pl.tile.get_block_idx()
        t = pl.load(x, [b * 16, 0], [16, 16])
        pl.tile.tpush_to_aiv(t, split=0)

    @pl.function(type=pl.FunctionType.AIV)
    def vector(
        self, x: pl.Tensor[[32, 16], pl.FP32], y: pl.Out[pl.Tensor[[32, 16], pl.FP32]]
    ) -> pl.Tensor[[32, 16], pl.FP32]:
        b = pl.tile.get_block_idx()
        t: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tile.tpop_from_aic(split=0)
        y = pl.store(pl.add(t, 1.0), [b * 16, 0], y)
        return y


def kernels(*names):
    made = interpreted_kernels(P, [P.get_function(name) for name in names])
    return {kernel.name: kernel.function for kernel in made}


@pytest.mark.parametrize("workers", [1, 2])
def test_tensors_come_before_scalars(workers):
    x, y = np.random.default_rng(0).random((64, 16), np.float32), np.zeros((64, 16), np.float32)
    suite.run("bands", [x, y], [4], kernels("scale"), workers=workers)
    np.testing.assert_array_equal(y, x * np.float32(1.5))


def test_an_error_is_the_users():
    x = np.zeros((64, 16), np.float32)
    with pytest.raises(ProgramError, match="out of|outside|beyond") as caught:
        suite.run("bands", [x, np.zeros_like(x)], [5], kernels("scale"))
    assert caught.value.function == "scale" and caught.value.task == "scale#4"
    assert "pl.load(x, [i * 16, 0]" in caught.value.source_line()


@pytest.mark.parametrize(
    "dtype, value",
    [
        (DataType.FP32, 1.5),
        (DataType.FP16, -0.25),
        (DataType.BF16, 3.0),
        (DataType.INT32, -7),
        (DataType.INDEX, -(2**40)),
        (DataType.UINT8, 200),
        (DataType.BOOL, True),
        (DataType.INT8, -1),
    ],
)
def test_scalars_travel_as_bits(dtype, value):
    bits = to_bits(value, dtype)
    assert 0 <= bits < 2**64
    assert from_bits(bits, dtype) == value
    assert from_bits(bits - 2**64 if bits >= 2**63 else bits, dtype) == value


def test_a_tensor_may_be_a_part_of_an_array():
    whole = np.arange(64 * 32, dtype=np.float32).reshape(64, 32)
    x, y = whole[:, :16], np.zeros((64, 32), np.float32)[:, 16:]
    suite.program("bands", kernels("scale")).run([x, y], [4], RunOptions(workers=2))
    np.testing.assert_array_equal(y, x * np.float32(1.5))


@pytest.mark.parametrize("workers", [1, 2])
def test_parts_that_exchange_tiles(workers):
    x, y = np.random.default_rng(1).random((32, 16), np.float32), np.zeros((32, 16), np.float32)
    suite.run("together", [x, y], [2], kernels("cube", "vector"), workers=workers)
    np.testing.assert_array_equal(y, x + 1)
    assert isinstance(P, ir.Program)
