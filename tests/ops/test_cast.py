"""cast: types, modes and the numbers that each rounding mode gives."""

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ops_kit import D, check, ir_tensor, pl, pl_tensor, pl_tile, run, scalar, shape_of, tensor, tile, valid_of, value

from pypto.ir.enums import MemorySpace
from pypto.ir.expr import Cast, ConstInt
from pypto.ops.registry import create_op_call

MODES = ("none", "rint", "round", "floor", "ceil", "trunc", "odd")


def test_type_keeps_shape_and_valid_region():
    call = pl["cast"](tensor([24, 80], D.FP32, valid=[3, 80]), D.FP16)
    assert call.op.name == "tensor.cast"
    assert call.type.dtype is D.FP16
    assert shape_of(call) == [24, 80]
    assert valid_of(call) == [3, 80]
    assert dict(call.kwargs) == {"target_type": D.FP16, "mode": 2}


def test_tile_form_is_stamped_with_the_vector_space():
    call = pl["cast"](tile([16, 64], D.FP32), D.BF16, mode="rint")
    assert (call.op.name, call.type.dtype, call.type.memory_space) == ("tile.cast", D.BF16, MemorySpace.Vec)
    assert call.kwargs["mode"] == 1


@pytest.mark.parametrize("number, name", list(enumerate(MODES)))
def test_mode_names_and_numbers(number, name):
    x = tensor([4, 8])
    assert pl_tensor["cast"](x, D.FP16, name).kwargs["mode"] == number
    assert pl_tensor["cast"](x, D.FP16, mode=number).kwargs["mode"] == number


@pytest.mark.parametrize("mode", [-1, 7, True, False, "nearest", None, 2.0])
def test_invalid_modes(mode):
    with pytest.raises(ValueError, match="Invalid rounding mode"):
        pl["cast"](tensor([4, 8]), D.FP16, mode=mode)


def test_ir_level_requires_both_kwargs():
    x = tensor([4, 8])
    with pytest.raises(ValueError, match="requires a 'mode' kwarg"):
        create_op_call("tensor.cast", [x], {"target_type": D.FP16})
    with pytest.raises(ValueError, match="requires a 'target_type' kwarg"):
        create_op_call("tensor.cast", [x], {"mode": 2})
    with pytest.raises(ValueError, match="Invalid rounding mode"):
        create_op_call("tensor.cast", [x], {"target_type": D.FP16, "mode": 9})
    assert create_op_call("tensor.cast", [x], {"target_type": D.FP16.code(), "mode": 2}).type.dtype is D.FP16


def test_same_dtype_is_refused():
    with pytest.raises(ValueError, match="same-dtype cast is not a valid operation"):
        pl_tile["cast"](tile([4, 8], D.FP32), D.FP32)


def test_operand_class():
    with pytest.raises(ValueError, match="requires first argument to be a TileType, but got TensorType"):
        create_op_call("tile.cast", [tensor([4, 8])], {"target_type": D.FP16, "mode": 2})
    with pytest.raises(ValueError, match="requires exactly 1 arguments"):
        create_op_call("tile.cast", [tile([4, 8])] * 2, {"target_type": D.FP16, "mode": 2})
    with pytest.raises(TypeError, match="expected Tensor or Tile, got str"):
        pl["cast"]("x", D.FP16)


def test_scalar_form():
    s = scalar(D.INT32)
    cast = pl["cast"](s, D.FP32)
    assert type(cast) is Cast
    assert cast.type.dtype is D.FP32
    assert type(pl["cast"](s, D.FP32, mode="round")) is Cast
    with pytest.raises(TypeError, match="Scalar inputs do not support non-default mode"):
        pl["cast"](s, D.FP32, mode="rint")
    assert type(pl["cast"](3, D.INT32).operand) is ConstInt


def test_ir_constructor_is_the_surface_function():
    assert ir_tensor["cast"](tensor([4]), D.FP16).kwargs["mode"] == 2


# --- numbers ----------------------------------------------------------------------------------------------------------

X = [-2.5, -1.5, -1.2, -0.5, -0.0, 0.3, 0.5, 1.5, 1.7, 2.5, 3.0]
WHOLE = {
    "none": [-2, -2, -1, 0, 0, 0, 0, 2, 2, 2, 3],
    "rint": [-2, -2, -1, 0, 0, 0, 0, 2, 2, 2, 3],
    "round": [-3, -2, -1, -1, 0, 0, 1, 2, 2, 3, 3],
    "floor": [-3, -2, -2, -1, 0, 0, 0, 1, 1, 2, 3],
    "ceil": [-2, -1, -1, 0, 0, 1, 1, 2, 2, 3, 3],
    "trunc": [-2, -1, -1, 0, 0, 0, 0, 1, 1, 2, 3],
    "odd": [-3, -1, -1, -1, 0, 0, 1, 1, 2, 3, 3],
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("source", [D.FP32, D.FP16, D.BF16])
def test_float_to_int(mode, source):
    x = value([X], source)
    exact = x.data.astype(np.float64)[0]
    expected = list(WHOLE[mode])
    if source is not D.FP32:  # 1.2, 0.3 and 1.7 are inexact there, but on the same side of every boundary
        assert all(abs(a - b) < 0.01 for a, b in zip(exact, X, strict=True))
    check(run(pl["cast"](tensor([1, 11], source), D.INT32, mode=mode), x), [expected])


def test_float_to_int_saturates_and_is_undefined_out_of_range():
    call = pl["cast"](tensor([1, 5]), D.INT8)
    result = run(call, value([[127.4, 127.6, -128.0, -1e9, math.nan]], D.FP32))
    assert result.data.tolist() == [[127, 127, -128, -128, 0]]
    assert result.mask.tolist() == [[True, False, True, False, False]]


def test_float_to_wide_integers():
    big = [2.0**63, -(2.0**63), 2.0**62, 2.0**31]
    result = run(pl["cast"](tensor([1, 4]), D.INT64), value([big], D.FP32))
    assert result.data.tolist() == [[2**63 - 1, -(2**63), 2**62, 2**31]]
    assert result.mask.tolist() == [[False, True, True, True]]
    unsigned = run(pl["cast"](tensor([1, 3]), D.UINT64), value([[2.0**63, -1.0, 7.0]], D.FP32))
    assert unsigned.data.tolist() == [[2**63, 0, 7]]


def test_int_to_int_keeps_the_low_bits():
    x = value([[300, -1, 127, -129]], D.INT32)
    check(run(pl["cast"](tensor([1, 4], D.INT32), D.INT8), x), [[44, -1, 127, 127]])
    check(run(pl["cast"](tensor([1, 4], D.INT32), D.UINT8), x), [[44, 255, 127, 127]])
    check(run(pl["cast"](tensor([1, 4], D.INT32), D.INT64), x), [[300, -1, 127, -129]])
    check(run(pl["cast"](tensor([1, 4], D.INT32), D.INT4), x), [[-4, -1, -1, -1]])


def test_narrowing_rounds_at_the_last_kept_bit():
    step = 2.0**-10  # spacing of FP16 just above 1
    x = [[1 + step / 2, 1 + 3 * step / 2, 1 + step / 4, -(1 + step / 2), -(1 + 3 * step / 4)]]
    low, high = 1.0, 1 + step
    expected = {
        "rint": [low, 1 + 2 * step, low, -low, -high],
        "round": [high, 1 + 2 * step, low, -high, -high],
        "floor": [low, high, low, -high, -high],
        "ceil": [high, 1 + 2 * step, high, -low, -low],
        "trunc": [low, high, low, -low, -low],
        "odd": [high, high, low, -high, -high],
    }
    for mode, want in expected.items():
        check(run(pl["cast"](tensor([1, 5]), D.FP16, mode=mode), value(x, D.FP32)), [want])


def test_int_to_float_rounds_once():
    n = 2**60 + 2**36 + 1  # just above the middle of two FP32 values: rounding through float64 would lose the 1
    call = pl["cast"](tensor([1, 1], D.INT64), D.FP32, mode="rint")
    check(run(call, value([[n]], D.INT64)), [[float(2**60 + 2**37)]])
    for mode, want in (("floor", 2.0**24), ("ceil", 2.0**24 + 2)):
        call = pl["cast"](tensor([1, 1], D.INT32), D.FP32, mode=mode)
        check(run(call, value([[2**24 + 1]], D.INT32)), [[want]])


def test_float_overflow_and_specials():
    x = [[1e6, -1e6, math.inf, -math.inf, math.nan, 0.0, -0.0, 1e-30]]
    result = run(pl["cast"](tensor([1, 8]), D.FP16, mode="rint"), value(x, D.FP32))
    assert result.data[0, :2].tolist() == [math.inf, -math.inf]
    assert result.data[0, 2:4].tolist() == [math.inf, -math.inf]
    assert np.isnan(result.data[0, 4])
    assert np.signbit(result.data[0, 5:7]).tolist() == [False, True]
    toward_zero = run(pl["cast"](tensor([1, 8]), D.FP16, mode="trunc"), value(x, D.FP32))
    assert toward_zero.data[0, :2].tolist() == [65504.0, -65504.0]
    fp8 = run(pl["cast"](tensor([1, 8]), D.FP8E4M3FN), value(x, D.FP32))
    assert fp8.data[0, :2].astype(float).tolist() == [448.0, -448.0]
    assert fp8.mask[0, :2].tolist() == [False, False]


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=40))
@settings(max_examples=200, deadline=None)
@pytest.mark.parametrize("target, dtype", [(D.FP16, np.float16), (D.BF16, ml_dtypes.bfloat16)])
def test_rint_is_the_conversion_of_numpy(target, dtype, numbers):
    x = np.array([numbers], np.float32)
    result = run(pl["cast"](tensor(x.shape), target, mode="rint"), value(x))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(result.data.view(np.uint16), x.astype(dtype).view(np.uint16))


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=40))
@settings(max_examples=100, deadline=None)
def test_directed_modes_bracket_the_value(numbers):
    x = np.array([numbers], np.float32)
    down, up, zero = (
        run(pl["cast"](tensor(x.shape), D.BF16, mode=m), value(x)).data.astype(np.float64)
        for m in ("floor", "ceil", "trunc")
    )
    assert (down <= x).all() and (up >= x).all() and (np.abs(zero) <= np.abs(x.astype(np.float64))).all()
    nearest = x.astype(ml_dtypes.bfloat16).astype(np.float64)
    assert ((nearest == down) | (nearest == up)).all()


@pytest.mark.parametrize(
    "target, dtype",
    [(D.FP8E5M2, ml_dtypes.float8_e5m2), (D.FP8E4M3FN, ml_dtypes.float8_e4m3fn), (D.FP4, ml_dtypes.float4_e2m1fn)],
)
def test_small_formats_round_to_nearest(target, dtype):
    x = np.linspace(-5.9, 5.9, 400, dtype=np.float32)[None]
    result = run(pl["cast"](tensor(x.shape), target, mode="rint"), value(x))
    np.testing.assert_array_equal(result.data.astype(np.float32), x.astype(dtype).astype(np.float32))


def test_widening_is_exact():
    x = np.arange(0, 2**16, dtype=np.uint16).view(np.float16)[None]
    result = run(pl["cast"](tensor(x.shape, D.FP16), D.FP32), value(x))
    np.testing.assert_array_equal(result.data, x.astype(np.float32))


def test_undefined_elements_and_valid_region():
    x = value([[1.5, 2.5, 9.0], [3.5, 4.5, 9.0]], D.FP32, valid=[2, 2], undefined=[(1, 0)])
    check(
        run(pl["cast"](tile([2, 3], D.FP32, valid=[2, 2]), D.INT32), x),
        [[2, 3, 0], [4, 5, 0]],
        valid=[2, 2],
        undefined=[(1, 0)],
    )


@pytest.mark.parametrize("target", [D.FP16, D.BF16])
@pytest.mark.parametrize("mode", [1, 2])
def test_the_short_way_of_common_narrowings_agrees_with_the_general_one(target, mode):
    from pypto.ops import conversion

    bits = np.random.default_rng(5).integers(0, 2**32, 20000, dtype=np.uint64).astype(np.uint32)
    small = bits & 0x87FFFFFF | 0x30000000  # around the subnormal numbers of FP16
    x = [bits]
    for base in (bits, small):
        for keep, tie in ((0xFFFFE000, 0x1000), (0xFFFF0000, 0x8000)):
            x += [(base & keep) + (tie + step) for step in (-1, 0, 1)]
    x = np.concatenate(x).view(np.float32)
    x = np.concatenate([x, np.array([0.0, -0.0, math.inf, -math.inf, 65519.9, 65520.0], np.float32)])
    x = x[~np.isnan(x)]
    short, _ = conversion.convert(x, D.FP32, target, mode)
    with np.errstate(all="ignore"):
        general, _ = conversion._general_to_float(x, D.FP32, target, mode)
    np.testing.assert_array_equal(short.view(np.uint16), general.view(np.uint16))
