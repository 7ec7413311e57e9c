"""torch tensors as arguments: in place, in every element type, and refused by name where they can't be."""

import numpy as np
import pytest
from run_support import program, ramp

import pypto.language as pl
from pypto import ir
from pypto.runtime import ChipWorker, TensorSpec, run_test
from pypto.runtime.arrays import array_shape_and_dtype, is_array

torch = pytest.importorskip("torch")

TYPES = {
    "FP32": torch.float32,
    "FP16": torch.float16,
    "BF16": torch.bfloat16,
    "INT8": torch.int8,
    "INT16": torch.int16,
    "INT32": torch.int32,
    "INT64": torch.int64,
    "UINT8": torch.uint8,
    "UINT16": torch.uint16,
    "UINT32": torch.uint32,
    "FP8E4M3FN": torch.float8_e4m3fn,
    "FP8E5M2": torch.float8_e5m2,
}


def copier(dtype="FP32"):
    found = program(
        "y = self.same(x, y)\nreturn y",
        f"x: pl.Tensor[[4, 8], pl.{dtype}], y: pl.Out[pl.Tensor[[4, 8], pl.{dtype}]]",
        f"""
        @pl.function(type=pl.FunctionType.InCore)
        def same(self, a: pl.Tensor[[4, 8], pl.{dtype}], b: pl.Out[pl.Tensor[[4, 8], pl.{dtype}]]
                 ) -> pl.Tensor[[4, 8], pl.{dtype}]:
            return pl.store(pl.load(a, [0, 0], [4, 8]), [0, 0], b)
        """,
    )
    return ir.compile(found, dump_passes=False)


def raw(tensor):
    return tensor.contiguous().view(torch.uint8).numpy()


@pytest.mark.parametrize("name", TYPES)
def test_element_types_work_in_place_and_in_return_style(name):
    copy, dtype = copier(name), TYPES[name]
    x = torch.arange(32, dtype=torch.float32).reshape(4, 8).to(dtype)
    y = torch.zeros(4, 8, dtype=torch.float32).to(dtype)
    copy(x, y)
    np.testing.assert_array_equal(raw(y), raw(x))
    made = copy(x)
    assert isinstance(made, torch.Tensor) and made.dtype is dtype
    np.testing.assert_array_equal(raw(made), raw(x))
    assert is_array(x) and array_shape_and_dtype(x) == ((4, 8), getattr(ir, name))


def test_numpy_and_torch_together():
    x, y = ramp(4, 8), torch.zeros(4, 8)
    copier()(x, y)
    np.testing.assert_array_equal(y.numpy(), x)


def test_strided_tensors():
    x = torch.arange(64.0).reshape(8, 8).T[:4]
    base = torch.full((4, 16), -1.0)
    copier()(x, base[:, ::2])
    assert torch.equal(base[:, ::2], x) and (base[:, 1::2] == -1).all()
    half = torch.zeros(4, 16, dtype=torch.bfloat16)
    copier("BF16")(x.to(torch.bfloat16), half[:, ::2])
    assert torch.equal(half[:, ::2], x.to(torch.bfloat16))


def test_gradients():
    copy = copier()
    x = torch.ones(4, 8, requires_grad=True)
    assert torch.equal(copy(x), torch.ones(4, 8))
    with pytest.raises(RuntimeError, match="parameter 'y'.*requires grad"):
        copy(torch.ones(4, 8), x)


def test_what_is_refused():
    copy = copier()
    with pytest.raises(ValueError, match=r"parameter 'x' is on meta, expected CPU. Call .cpu\(\)"):
        copy(torch.zeros(4, 8, device="meta"))
    with pytest.raises(TypeError, match=r"Parameter 'x': expected \[4, 8\] fp32, got \(4, 8\) float64"):
        copy(torch.zeros(4, 8, dtype=torch.float64))
    with pytest.raises(TypeError, match="parameter 'x': this torch tensor has no dense view"):
        copy(torch.zeros(4, 8).to_sparse())
    with pytest.raises(TypeError, match="Unsupported torch dtype torch.complex64 of parameter 'k'"):
        array_shape_and_dtype(torch.zeros(1, dtype=torch.complex64), "k")


def test_resident_tensors():
    with ChipWorker() as worker:
        x = worker.alloc_tensor((4, 8), torch.bfloat16, init=torch.full((4, 8), 2.5).to(torch.bfloat16))
        made = copier("BF16")(x)
        assert made.dtype is torch.bfloat16 and (made == 2.5).all()
        out = torch.zeros(4, 8, dtype=torch.bfloat16)
        x.to_host(out)
        assert torch.equal(out, made)


def test_tensor_specs():
    made = TensorSpec("t", (4, 8), torch.bfloat16, 1.5).create_tensor()
    assert made.dtype is torch.bfloat16 and (made == 1.5).all()
    torch.manual_seed(3)
    first = TensorSpec("t", (4, 8), torch.float32, torch.randn).create_tensor()
    torch.manual_seed(3)
    assert torch.equal(first, torch.randn(4, 8))
    assert TensorSpec("t", (2,), torch.int32, torch.ones).create_tensor().tolist() == [1, 1]


def test_run_test():
    specs = [
        TensorSpec("x", (4, 8), torch.float32, torch.randn),
        TensorSpec("y", (4, 8), torch.float32, is_output=True),
    ]
    found = program("y = self.copy(x, y)", "x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]]")
    assert run_test(found, specs, lambda tensors, _: tensors["y"].copy_(tensors["x"])).passed
    assert not run_test(found, specs, lambda tensors, _: tensors["y"].fill_(3)).passed


def test_jit_functions_take_tensors():
    @pl.jit
    def doubled(x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:] = pl.mul(x, 2.0)
        return out

    x, out = torch.ones(4, 8), torch.zeros(4, 8)
    doubled(x, out)
    assert (out == 2).all()
