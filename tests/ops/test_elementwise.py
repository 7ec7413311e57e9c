"""Element-wise arithmetic: binary ops with their scalar forms, and unary functions."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ops_kit import (
    D,
    check,
    integers,
    ir_tensor,
    ir_tile,
    pl,
    pl_tensor,
    pl_tile,
    random,
    run,
    scalar,
    shape_of,
    tensor,
    tile,
    valid_of,
    value,
)

from pypto.ir.enums import MemorySpace, PadValue, TileLayout
from pypto.ir.expr import Add, ConstFloat, ConstInt, FloatDiv, Max, Min, Mul, Sub, Var
from pypto.ir.type import ScalarType
from pypto.ops.registry import REGISTRY, create_op_call
from pypto.ops.rules import promote_dtypes

BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "fmod": np.fmod,
}
UNARY = {
    "neg": np.negative,
    "abs": np.abs,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "recip": np.reciprocal,
    "log": np.log,
    "sin": np.sin,
    "cos": np.cos,
}


# --- promotion and broadcasting ---------------------------------------------------------------------------------------

PROMOTION = """
        INT8   INT32  UINT32 FP16  BF16  FP32
INT32   INT32  INT32  INT32  FP16  BF16  FP32
UINT32  UINT32 INT32  UINT32 FP16  BF16  FP32
FP16    FP16   FP16   FP16   FP16  FP16  FP32
BF16    BF16   BF16   BF16   BF16  BF16  FP32
"""


def test_promotion_table():
    header, *rows = (line.split() for line in PROMOTION.strip().splitlines())
    for left, *results in rows:
        for right, result in zip(header, results, strict=True):
            assert promote_dtypes(getattr(D, left), getattr(D, right)) is getattr(D, result), (left, right)
    assert promote_dtypes(D.UINT8, D.INT8) is promote_dtypes(D.INT8, D.UINT8) is D.INT8


@pytest.mark.parametrize("level", [tensor, tile])
def test_broadcasting(level):
    n, m = Var("n", ScalarType(D.INDEX)), Var("m", ScalarType(D.INDEX))
    for a, b, result in (
        ([4, 6], [4, 6], [4, 6]),
        ([4, 6], [6], [4, 6]),
        ([4, 1], [1, 6], [4, 6]),
        ([6], [4, 1], [4, 6]),
        ([n, 6], [n, 6], ["n", 6]),
        ([n, 6], [1, 6], ["n", 6]),
        ([1, 6], [n, 6], ["n", 6]),
    ):
        assert shape_of(pl["add"](level(a), level(b))) == result
    for a, b, axis in (([4, 6], [4, 5], 0), ([4, 6], [3, 6], 1), ([n, 6], [m, 6], 1), ([n, 6], [4, 6], 1)):
        with pytest.raises(ValueError, match=f"Cannot broadcast shapes: dimension {axis} mismatch"):
            pl["add"](level(a), level(b))


def test_dimensions_are_compared_by_proof():
    n = Var("n", ScalarType(D.INDEX))
    assert shape_of(pl["add"](tensor([n + n, 6]), tensor([2 * n, 6])))[1] == 6


@pytest.mark.parametrize("level", [tensor, tile])
def test_valid_region_is_the_intersection(level):
    n, m = Var("n", ScalarType(D.INDEX)), Var("m", ScalarType(D.INDEX))
    for a, b, result in (
        ((None, [4, 6]), (None, [4, 6]), [4, 6]),
        (([3, 6], [4, 6]), (None, [4, 6]), [3, 6]),
        (([3, 6], [4, 6]), ([4, 5], [4, 6]), [3, 5]),
        (([n, 6], [4, 6]), ([n, 6], [4, 6]), ["n", 6]),
        (([n, 6], [4, 6]), (None, [4, 6]), ["n", 6]),
        (([n, 6], [4, 6]), ([m, 6], [4, 6]), ["pl.min(n, m)", 6]),
        ((None, [4, 6]), ([1, 5], [1, 6]), [4, 5]),
        ((None, [1, 6]), ([3, 6], [4, 6]), [3, 6]),
    ):
        call = pl["mul"](level(a[1], valid=a[0]), level(b[1], valid=b[0]))
        assert valid_of(call) == result


# --- types ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("level, prefix", [(tensor, "tensor"), (tile, "tile")])
def test_binary_types(name, level, prefix):
    other = D.FP16 if name != "div" or level is tensor else D.FP32
    call = pl[name](level([4, 6]), level([4, 6], other))
    assert (call.op.name, call.type.dtype, dict(call.kwargs)) == (f"{prefix}.{name}", D.FP32, {})
    call = pl[name](level([4, 6], valid=[3, 6]), 2)
    scalar_name = name if level is tensor and name in ("maximum", "minimum") else f"{name}s"
    assert (call.op.name, valid_of(call)) == (f"{prefix}.{scalar_name}", [3, 6])
    assert type(call.args[1]) is ConstFloat and call.args[1].type.dtype is D.FP32
    if level is tile:
        assert call.type.memory_space is MemorySpace.Vec


def test_scalar_operands():
    assert type(pl["add"](tensor([4, 6], D.INT16), 3).args[1]) is ConstInt
    assert pl["add"](tensor([4, 6], D.INT16), 3).args[1].type.dtype is D.INT16
    assert pl["mul"](tensor([4, 6], D.INT16), 2.5).type.dtype is D.FP32
    assert pl["mul"](tensor([4, 6], D.FP16), ConstInt(3, D.INT32)).args[1].type.dtype is D.INT32
    assert pl["mul"](tensor([4, 6], D.FP16), ConstInt(3, D.INDEX)).args[1].type.dtype is D.FP16
    assert pl["mul"](tensor([4, 6], D.FP16), scalar(D.FP32)).type.dtype is D.FP32
    with pytest.raises(ValueError, match="Scalar operand has dtype `index`.*pl.cast"):
        pl["mul"](tensor([4, 6]), scalar(D.INDEX))
    with pytest.raises(ValueError, match="float scalar on an integer tile"):
        pl["mul"](tile([4, 6], D.INT32), 2.5)


def test_sub_scalar_dtypes():
    for level, what in ((tensor, "tensor"), (tile, "tile")):
        assert pl["sub"](level([4, 6], D.BF16), scalar(D.FP32)).type.dtype is D.BF16
        with pytest.raises(ValueError, match=f"requires {what} dtype in"):
            pl["sub"](level([4, 6], D.UINT8), 3)
        with pytest.raises(ValueError, match="requires scalar dtype in"):
            pl["sub"](level([4, 6]), scalar(D.INT64))


def test_div_rules():
    for level in (tensor, tile):
        with pytest.raises(ValueError, match="requires operand dtype in {INT16, INT32, FP16, FP32}"):
            pl["div"](level([4, 6], D.BF16), level([4, 6], D.BF16))
        assert dict(pl["div"](level([4, 6]), level([4, 6]), high_precision=True).kwargs) == {"high_precision": True}
        with pytest.raises(ValueError, match="high_precision only for FP16 or FP32"):
            pl["div"](level([4, 6], D.INT32), level([4, 6], D.INT32), high_precision=True)
    with pytest.raises(TypeError, match="requires a Tensor rhs"):
        pl["div"](tensor([4, 6]), 2.0, high_precision=True)
    with pytest.raises(TypeError, match="requires a Tile rhs"):
        pl["div"](tile([4, 6]), 2.0, high_precision=True)
    with pytest.raises(ValueError, match="same dtype"):
        pl["div"](tile([4, 6]), tile([4, 6], D.FP16))
    with pytest.raises(ValueError, match="same physical shape"):
        pl["div"](tile([4, 6]), tile([1, 6]))
    with pytest.raises(ValueError, match="same valid_shape"):
        pl["div"](tile([4, 6], valid=[3, 6]), tile([4, 6]))
    assert dict(ir_tensor["div"](tensor([4, 6]), tensor([4, 6]), high_precision=True).kwargs) == {
        "high_precision": True
    }
    assert dict(ir_tile["div"](tile([4, 6]), tile([4, 6])).kwargs) == {}


def test_scalar_arithmetic():
    s = scalar(D.INT32)
    for name, node in (("add", Add), ("sub", Sub), ("mul", Mul), ("div", FloatDiv)):
        assert type(pl[name](s, s)) is node
    assert type(pl["max"](s, s)) is Max and type(pl_tile["min"](s, s)) is Min
    with pytest.raises(TypeError, match="expected two scalars"):
        pl["max"](tensor([4, 6]), 2.0)
    with pytest.raises(TypeError, match="high_precision"):
        pl["div"](s, s, high_precision=True)
    for name in ("fmod", "maximum", "minimum"):
        with pytest.raises(TypeError, match="expected Tensor or Tile operands"):
            pl[name](s, s)


def test_dispatch_errors():
    for name in BINARY:
        with pytest.raises(TypeError, match=f"pl.{name}: cannot mix Tensor and Tile arguments"):
            pl[name](tensor([4, 6]), tile([4, 6]))
        with pytest.raises(TypeError, match=f"pl.{name}: expected Tensor or Tile operands, got"):
            pl[name](2.0, tensor([4, 6]))
    for name in UNARY:
        with pytest.raises(TypeError, match=f"pl.{name}: expected Tensor or Tile, got Scalar"):
            pl[name](2.0)
    assert pl["fmods"](tensor([4, 6]), 2.0).op.name == "tensor.fmods"
    assert pl["fmods"](tile([4, 6]), 2.0).op.name == "tile.fmods"
    with pytest.raises(TypeError, match="expected Tensor or Tile operands"):
        pl["fmods"](tensor([4, 6]), tensor([4, 6]))
    for name in ("maximums", "minimums"):
        assert pl[name](tile([4, 6]), 1.0).op.name == f"tile.{name}"


def test_operand_class_and_arity():
    with pytest.raises(ValueError, match="requires second argument to be a TileType, but got TensorType"):
        create_op_call("tile.add", [tile([4, 6]), tensor([4, 6])], {})
    with pytest.raises(ValueError, match="requires exactly 2 arguments, but got 1"):
        create_op_call("tensor.add", [tensor([4, 6])], {})
    with pytest.raises(ValueError, match="Unknown kwarg 'mode' for operator 'tensor.add'"):
        create_op_call("tensor.add", [tensor([4, 6])] * 2, {"mode": 1})


def test_unary_dtypes():
    for name in ("exp", "sqrt", "recip"):
        assert pl[name](tensor([4, 6], D.INT32, valid=[3, 6])).type.dtype is D.FP32
        assert pl[name](tensor([4, 6], D.BF16)).type.dtype is D.BF16
        with pytest.raises(ValueError, match="requires a float tile"):
            pl[name](tile([4, 6], D.INT32))
    for name in ("neg", "abs"):
        assert pl[name](tensor([4, 6], D.INT32)).type.dtype is D.INT32
    for level in (tensor, tile):
        with pytest.raises(ValueError, match="is FP32-only.*pl.cast"):
            pl["sin"](level([4, 6], D.FP16))
        with pytest.raises(ValueError, match="requires dtype in {FP16, FP32}"):
            pl["log"](level([4, 6], D.BF16))
        with pytest.raises(ValueError, match="requires dtype in {INT16, UINT16}"):
            pl["not_"](level([4, 6], D.INT32))
        with pytest.raises(ValueError, match="high_precision only for FP16 or FP32"):
            pl["recip"](level([4, 6], D.BF16), high_precision=True)
        assert dict(pl["log"](level([4, 6]), high_precision=True).kwargs) == {"high_precision": True}
    assert dict(ir_tensor["recip"](tensor([4, 6]), high_precision=True).kwargs) == {"high_precision": True}
    assert pl["relu"](tile([4, 6], D.INT32)).op.name == "tile.relu"


def test_tile_results_keep_the_layout_of_the_first_operand():
    view = pl["add"](tile([4, 6], blayout=TileLayout.col_major, pad=PadValue.min), tile([4, 6])).type.tile_view
    assert (view.blayout, view.pad) == (TileLayout.col_major, PadValue.min)
    assert pl["exp"](tile([16, 1])).type.tile_view is None


def test_in_place_facts():
    unsafe = ("fmod", "fmods", "recip")
    for name in (*BINARY, *UNARY, "adds", "fmods", "relu"):
        assert REGISTRY[f"tile.{name}"].not_in_place == (name in unsafe), name


# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("level", [tensor, tile])
def test_binary_semantics(name, level):
    a, b = random((4, 6), 1), random((4, 6), 2, 0.5, 3.0)
    call = pl[name](level([4, 6], valid=[3, 5]), level([4, 6], valid=[3, 5]))
    result = run(call, value(a, valid=(3, 5), undefined=[(0, 0)]), value(b, valid=(3, 5), undefined=[(2, 1)]))
    check(result, BINARY[name](a, b), valid=(3, 5), undefined=[(0, 0), (2, 1)])
    call = pl[name](level([4, 6], valid=[3, 5]), 1.5)
    check(run(call, value(a, valid=(3, 5)), 1.5), BINARY[name](a, np.float32(1.5)), valid=(3, 5))


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("level", [tensor, tile])
def test_unary_semantics(name, level):
    a = random((4, 6), 1, 0.5, 3.0)
    result = run(pl[name](level([4, 6], valid=[3, 5])), value(a, valid=(3, 5), undefined=[(1, 1)]))
    check(result, UNARY[name](a), valid=(3, 5), undefined=[(1, 1)], rtol=1e-6)


def test_broadcasting_semantics():
    a, b = random((4, 1), 1), random((1, 6), 2)
    check(run(pl["sub"](tensor([4, 1]), tensor([1, 6])), value(a), value(b)), a - b)
    result = run(pl["sub"](tile([4, 1]), tile([1, 6])), value(a, undefined=[(2, 0)]), value(b))
    check(result, a - b, undefined=[(2, j) for j in range(6)])


def test_integers():
    a, b = value([[100, -100, 7, -7]], D.INT8), value([[100, 100, 2, 2]], D.INT8)
    check(run(pl["add"](tensor([1, 4], D.INT8), tensor([1, 4], D.INT8)), a, b), [[-56, 0, 9, -5]])
    wide = pl["div"](tensor([1, 4], D.INT32), tensor([1, 4], D.INT32))
    check(run(wide, value([[7, -7, 7, -7]], D.INT32), value([[2, 2, -2, -2]], D.INT32)), [[3, -3, -3, 3]])
    check(run(pl["fmod"](tensor([1, 4], D.INT32), 3), value([[7, -7, 6, -6]], D.INT32), 3), [[1, -1, 0, 0]])
    check(run(pl["add"](tile([1, 2], D.UINT8), -1), value([[0, 5]], D.UINT8), -1), [[255, 4]])
    check(run(pl["not_"](tile([1, 2], D.INT16)), value([[0, 5]], D.INT16)), [[-1, -6]])
    check(run(pl["relu"](tile([1, 2], D.INT32)), value([[-3, 5]], D.INT32)), [[0, 5]])


def test_mixed_dtypes_compute_in_the_promoted_one():
    a, b = integers((2, 3), 0, 99), random((2, 3), 2)
    check(run(pl["mul"](tensor([2, 3], D.INT32), tensor([2, 3])), value(a), value(b)), a.astype(np.float32) * b)
    half = random((2, 3), 3).astype(np.float16)
    check(run(pl["exp"](tensor([2, 3], D.INT16)), value(a, D.INT16)), np.exp(a.astype(np.float32)), rtol=1e-6)
    result = run(pl["add"](tensor([2, 3], D.FP16), tensor([2, 3], D.FP16)), value(half), value(half))
    check(result, half + half)


@given(st.lists(st.floats(-100, 100, width=16), min_size=1, max_size=20))
@settings(max_examples=50, deadline=None)
def test_bf16_rounds_once(numbers):
    x = np.array([numbers], np.float32).astype(ml_dtypes.bfloat16)
    result = run(pl["mul"](tensor(x.shape, D.BF16), tensor(x.shape, D.BF16)), value(x), value(x))
    expected = (x.astype(np.float32) * x.astype(np.float32)).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(result.data.view(np.uint16), expected.view(np.uint16))


def test_nan_propagates_through_maximum():
    a, b = value([[np.nan, 1.0]], D.FP32), value([[0.0, np.nan]], D.FP32)
    assert np.isnan(run(pl["maximum"](tensor([1, 2]), tensor([1, 2])), a, b).data).all()


def test_scalar_forms_of_the_tensor_level():
    for name in ("adds", "subs", "muls", "divs", "fmods"):
        assert pl_tensor[name](tensor([4, 6]), 2).op.name == f"tensor.{name}"
        assert pl_tile[name](tile([4, 6]), 2).op.name == f"tile.{name}"
