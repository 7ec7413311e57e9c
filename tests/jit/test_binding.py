"""Which values a call bakes in, and what is refused."""

import ml_dtypes
import numpy as np
import pytest

import pypto.language as pl
from pypto.ir import DataType

M = pl.dynamic("M")
TILE = pl.Tensor[[16, 64], pl.FP32]


@pl.jit
def scale(x: TILE, y: pl.Out[TILE], g: pl.FP32):
    with pl.at(level=pl.Level.CORE_GROUP):
        y = pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), g), [0, 0], y)
    return y


@pl.jit
def any_type(x: pl.Tensor):
    return x


@pl.jit
def rows(x: pl.Tensor[[M, 64], pl.FP32], y: pl.Out[pl.Tensor[[M, 64], pl.FP32]], g: pl.FP32 = 2.0):
    with pl.at(level=pl.Level.CORE_GROUP):
        y = pl.store(pl.mul(pl.load(x, [0, 0], [16, 64]), g), [0, 0], y)
    return y


def zeros(*shape, dtype=np.float32):
    return np.zeros(shape, dtype)


@pytest.mark.parametrize(
    ("numpy_type", "element"),
    [
        (np.float32, DataType.FP32),
        (np.float16, DataType.FP16),
        (ml_dtypes.bfloat16, DataType.BF16),
        (np.int8, DataType.INT8),
        (np.uint16, DataType.UINT16),
        (np.int64, DataType.INT64),
        (np.uint64, DataType.UINT64),
        (np.bool_, DataType.BOOL),
        (ml_dtypes.float8_e4m3fn, DataType.FP8E4M3FN),
        (ml_dtypes.float8_e5m2, DataType.FP8E5M2),
    ],
)
def test_arrays_decide_shape_and_element_type(numpy_type, element):
    function = any_type.specialize(zeros(4, 32, dtype=numpy_type))["any_type"]
    kind = function.params[0].type
    assert [extent.value for extent in kind.shape] == [4, 32]
    assert kind.dtype is element
    assert function.return_types[0] == kind


def test_an_int64_array_fits_an_index_parameter():
    @pl.jit
    def entry(x: pl.Tensor[[4], pl.INDEX]):
        return x

    assert entry.specialize(zeros(4, dtype=np.int64))["entry"].params[0].type.dtype is DataType.INDEX


@pytest.mark.parametrize(
    ("value", "literal"),
    [(2, "2.0"), (2.5, "2.5"), (True, "1.0"), (np.float32(0.5), "0.5"), (np.int64(3), "3.0"), (np.array(4.0), "4.0")],
)
def test_numbers_are_baked_as_the_declared_element_type(value, literal, text_of):
    assert f"pl.tile.load(x, [0, 0], [16, 64], [16, 64], target_memory=pl.Mem.Vec), {literal})" in text_of(
        scale.specialize(zeros(16, 64), zeros(16, 64), value)
    )


def test_the_parameter_of_a_baked_scalar_stays():
    function = scale.specialize(zeros(16, 64), zeros(16, 64), 1.0)["scale"]
    assert [p.name_hint for p in function.params] == ["x", "y", "g"]
    assert function.params[2].type.dtype is DataType.FP32


def bad(x, y, g):
    return lambda: scale.specialize(x, y, g)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (bad(zeros(8, 64), zeros(16, 64), 1.0), "parameter 'x': annotated [16, 64] FP32, got (8, 64) float32"),
        (bad(zeros(16), zeros(16, 64), 1.0), "parameter 'x': annotated [16, 64] FP32, got (16,) float32"),
        (
            bad(zeros(16, 64), zeros(16, 64, dtype=np.float16), 1.0),
            "parameter 'y': annotated [16, 64] FP32, got (16, 64) float16",
        ),
        (bad(zeros(16, 64, dtype=np.float64), zeros(16, 64), 1.0), "parameter 'x': Unsupported array dtype float64"),
        (bad(zeros(16, 64), 3, 1.0), "parameter 'y': expected an array, got int"),
        (bad(zeros(16, 64), [[1.0]], 1.0), "parameter 'y': expected an array, got list"),
        (
            bad(np.array(1.0, np.float32), zeros(16, 64), 1.0),
            "parameter 'x': a tensor parameter can't take a 0-d array",
        ),
        (bad(zeros(16, 64), zeros(16, 64), "1"), "scalar parameter 'g' must be an int/float/bool, got str"),
        (bad(zeros(16, 64), zeros(16, 64), zeros(2)), "scalar parameter 'g' must be an int/float/bool, got ndarray"),
        (
            bad(zeros(16, 64), zeros(16, 64), pl.RUNTIME),
            "received pl.RUNTIME, which is a compile-time marker rather than a value",
        ),
        (lambda: scale(zeros(16, 64), zeros(16, 64)), "@pl.jit function 'scale': missing a required argument: 'g'"),
        (
            lambda: scale.compile(zeros(16, 64), zeros(16, 64), 1.0, skip_ptoas=True),
            "@pl.jit function 'scale': got an unexpected keyword argument 'skip_ptoas'",
        ),
        (lambda: scale.lower(g=1.0, zzz=3), "got an unexpected keyword argument 'zzz'"),
        (lambda: scale.lower(), "scalar parameter 'g' has no value"),
        (lambda: scale.lower(g="a"), "scalar parameter 'g' must be an int/float/bool to be baked in, or pl.RUNTIME"),
        (
            lambda: any_type.lower(),
            "cannot specialize from the signature because parameter 'x' has a bare 'pl.Tensor' annotation with no shape",
        ),
    ],
)
def test_refused_calls(call, message):
    with pytest.raises(TypeError) as info:
        call()
    assert message in str(info.value)


def test_integer_parameters_take_whole_numbers_only():
    @pl.jit
    def entry(x: TILE, k: pl.INT32):
        return x

    entry.specialize(zeros(16, 64), 2.0)
    with pytest.raises(TypeError, match="scalar parameter 'k' is INT32, got 1.5"):
        entry.specialize(zeros(16, 64), 1.5)


def test_signature_mode_leaves_a_runtime_scalar_symbolic(text_of):
    text = text_of(rows.specialize(g=pl.RUNTIME))
    assert "pl.tile.muls(pl.tile.load(x, [0, 0], [16, 64], [16, 64], target_memory=pl.Mem.Vec), g)" in text
    assert 'M = pl.dynamic("M")' in text


def test_signature_mode_uses_defaults(text_of):
    assert "target_memory=pl.Mem.Vec), 2.0)" in text_of(rows.specialize())


def test_equal_symbols_have_equal_extents():
    with pytest.raises(ValueError, match=r"dynamic dimension 'M' is 48 in x \(dim 0\) but 16 in y \(dim 0\)"):
        rows.specialize(zeros(48, 64), zeros(16, 64))


def test_a_parameter_without_annotation_takes_what_it_is_given():
    @pl.jit
    def entry(x, k):
        with pl.at(level=pl.Level.CORE_GROUP):
            x = pl.store(pl.add(pl.load(x, [0, 0], [16, 64]), k), [0, 0], x)
        return x

    function = entry.specialize(zeros(16, 64), 1.5)["entry"]
    assert [p.type.dtype for p in function.params] == [DataType.FP32, DataType.FP32]


def test_text_annotations_see_the_names_around_the_function():
    height = 16

    @pl.jit
    def entry(x: "pl.Tensor[[height, 64], pl.FP32]"):
        return x

    with pytest.raises(TypeError, match=r"annotated \[16, 64\] FP32, got \(8, 64\) float32"):
        entry.specialize(zeros(8, 64))


@pytest.mark.parametrize("layout", [pl.NZ, pl.ND])
def test_the_layout_slot_of_the_annotation_is_kept(layout):
    @pl.jit
    def entry(x: pl.Tensor[[32, 64], pl.FP16, layout]):
        return x

    view = entry.specialize(zeros(32, 64, dtype=np.float16))["entry"].params[0].type.tensor_view
    assert (view.layout if view is not None else pl.ND) is layout


def test_a_tensor_view_in_the_layout_slot_is_refused():
    @pl.jit
    def entry(x: pl.Tensor[[32, 64], pl.FP16, pl.TensorView(layout=pl.NZ)]):
        return x

    with pytest.raises(
        TypeError, match="annotates a TensorView in its layout slot, which @pl.jit does not yet support"
    ):
        entry.specialize(zeros(32, 64, dtype=np.float16))
