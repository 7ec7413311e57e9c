"""Row and column reductions."""

import ml_dtypes
import numpy as np
import pytest
from ops_kit import (
    D,
    check,
    integers,
    pl,
    pl_tensor,
    pl_tile,
    random,
    run,
    shape_of,
    tensor,
    tile,
    valid_of,
    value,
)

from pypto.ir.dtype import DataType
from pypto.ir.enums import MemorySpace, TileLayout
from pypto.ir.expr import Var
from pypto.ir.type import ScalarType
from pypto.ops.registry import REGISTRY, create_op_call
from pypto.ops.values import UndefinedValueError

FOLDS = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}
POSITIONS = {"argmax": np.argmax, "argmin": np.argmin}
NUMPY = {**FOLDS, **POSITIONS}
NAMES = [f"{axis}_{f}" for axis in ("row", "col") for f in NUMPY]
SCRATCH = [n for n in NAMES if n.startswith("row_") or "arg" in n]


def numpy_of(name):
    return NUMPY[name.split("_")[1]]


# --- types ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_tensor_type(name):
    call = pl[name](tensor([3, 24, 80], D.FP32, valid=[3, 5, 7]))
    rows = name.startswith("row")
    assert shape_of(call) == ([3, 24, 1] if rows else [3, 1, 80])
    assert valid_of(call) == ([3, 5, 1] if rows else [3, 1, 7])
    assert call.type.dtype is (D.INT32 if "arg" in name else D.FP32)
    assert dict(call.kwargs) == {}


def test_axis_and_keep_dim_of_the_ir_level():
    x = tensor([3, 24, 80])
    assert shape_of(create_op_call("tensor.row_sum", [x], {"axis": 0})) == [1, 24, 80]
    assert shape_of(create_op_call("tensor.row_sum", [x], {"axis": -2, "keep_dim": False})) == [3, 80]
    assert shape_of(pl_tensor["row_sum"](x, axis=1, keep_dim=False)) == [3, 80]
    total = create_op_call("tensor.row_max", [tensor([8], D.FP16)], {"keep_dim": False})
    assert total.type == ScalarType(D.FP16)
    assert create_op_call("tensor.row_argmax", [tensor([8])], {"keep_dim": False}).type == ScalarType(D.INT32)
    for axis in (2, -3):
        with pytest.raises(ValueError, match="axis .* out of range"):
            create_op_call("tensor.row_sum", [tensor([3, 4])], {"axis": axis})


def test_columns_need_two_dimensions():
    with pytest.raises(ValueError, match="rank >= 2"):
        pl["col_sum"](tensor([8]))
    assert shape_of(pl["row_sum"](tensor([8]))) == [1]


@pytest.mark.parametrize("name", NAMES)
def test_tile_type(name):
    t, tmp = tile([16, 64], D.FP32, valid=[5, 7]), tile([16, 64])
    call = pl[name](t, tmp) if name in SCRATCH else pl[name](t)
    rows = name.startswith("row")
    assert shape_of(call) == ([16, 1] if rows else [1, 64])
    assert valid_of(call) == ([5, 1] if rows else [1, 7])
    assert call.type.dtype is (D.INT32 if "arg" in name else D.FP32)
    assert call.type.memory_space is MemorySpace.Vec
    view = call.type.get_effective_tile_view()
    assert view.blayout is (TileLayout.col_major if rows else TileLayout.row_major)


def test_tile_columns_reduce_axis_0():
    assert shape_of(pl["col_sum"](tile([3, 16, 64]))) == [1, 16, 64]


def test_symbolic_extents_pass():
    n = Var("n", ScalarType(D.INDEX))
    call = pl["row_max"](tensor([n, 64], D.FP32, valid=[n, 5]))
    assert shape_of(call) == ["n", 1]
    assert valid_of(call) == ["n", 1]


@pytest.mark.parametrize("valid, axis", [([0, 64], 0), ([16, 0], 1)])
@pytest.mark.parametrize("name", ["row_sum", "col_max"])
def test_empty_valid_extent_on_any_axis(name, valid, axis):
    with pytest.raises(ValueError, match=f"valid extent on axis {axis} is 0"):
        pl[name](tensor([16, 64], valid=valid))
    operands = [tile([16, 64], valid=valid)] + ([tile([16, 64])] if name == "row_sum" else [])
    with pytest.raises(ValueError, match=f"valid extent on axis {axis} is 0"):
        pl[name](*operands)


def test_scratch_rules():
    t = tile([16, 64])
    assert pl["row_sum"](t, tile([16, 128])).op.name == "tile.row_sum"
    with pytest.raises(ValueError, match="tmp_tile dtype to match"):
        pl["row_sum"](t, tile([16, 64], D.FP16))
    with pytest.raises(ValueError, match="same rank"):
        pl["row_sum"](t, tile([1, 16, 64]))
    with pytest.raises(ValueError, match="at least the input shape"):
        pl["row_max"](t, tile([16, 32]))
    with pytest.raises(ValueError, match="exactly match the input shape"):
        pl["row_argmax"](t, tile([16, 128]))
    with pytest.raises(ValueError, match="rank >= 2"):
        pl["row_sum"](tile([64]), tile([64]))
    with pytest.raises(ValueError, match="second argument to be a TileType"):
        pl_tile["row_sum"](t, tensor([16, 64]))


def test_row_min_is_restricted():
    for level in (tensor, tile):
        operands = [level([16, 64], D.BF16)] + ([tile([16, 64], D.BF16)] if level is tile else [])
        with pytest.raises(ValueError, match="requires input dtype in {INT16, INT32, FP16, FP32}"):
            pl["row_min"](*operands)
    with pytest.raises(ValueError, match="requires an ND input layout"):
        pl["row_min"](tile([16, 64], blayout=TileLayout.col_major), tile([16, 64]))


def test_dispatch_refusals():
    for name in SCRATCH + ["col_sum"]:
        with pytest.raises(TypeError, match="Tensor inputs must not pass tmp"):
            pl[name](tensor([16, 64]), tile([16, 64]))
        assert pl[name](tensor([16, 64]), None).op.name == f"tensor.{name}"
    for name in SCRATCH:
        with pytest.raises(TypeError, match="Tile inputs require tmp_tile"):
            pl[name](tile([16, 64]))
    for name in NAMES:
        with pytest.raises(TypeError, match=f"pl.{name}: expected Tensor or Tile, got int|got Scalar"):
            pl[name](3)
    assert len(pl["col_sum"](tile([16, 64])).args) == 1
    assert len(pl["col_sum"](tile([16, 64]), tile([16, 64])).args) == 2


def test_plain_tensors_only():
    from pypto.ir.type import DistributedTensorType

    x = Var("x", DistributedTensorType([16, 64], D.FP32))
    with pytest.raises(ValueError, match="requires first argument to be a TensorType, but got DistributedTensorType"):
        pl["row_sum"](x)


def test_facts():
    row = REGISTRY["tile.row_sum"]
    assert row.not_in_place and [o.name for o in row.operands] == ["tile", "tmp_tile"]
    assert not REGISTRY["tile.col_sum"].not_in_place and REGISTRY["tile.col_argmax"].not_in_place
    assert REGISTRY["tile.row_sum"].min_operands == 2 and REGISTRY["tile.col_sum"].min_operands == 1


# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("valid", [None, (5, 7)])
@pytest.mark.parametrize("level", ["tensor", "tile"])
def test_semantics(name, valid, level):
    x = random((8, 12), seed=1, low=0.5, high=1.5)
    rows = name.startswith("row")
    region = x if valid is None else x[:5, :7]
    axis = -1 if rows else 0
    expected = np.zeros((8, 1) if rows else (1, 12))
    reduced = numpy_of(name)(region, axis=axis, keepdims=True)
    expected[tuple(slice(0, n) for n in reduced.shape)] = reduced
    if level == "tensor":
        call, operands = pl[name](tensor(x.shape, valid=valid)), []
    else:
        operands = [value(np.zeros((8, 12), np.float32))] if name in SCRATCH else []
        call = pl[name](tile(x.shape, valid=valid), *([tile(x.shape)] if operands else []))
    check(run(call, value(x, valid=valid), *operands), expected, valid=reduced.shape, rtol=1e-6)


def test_first_index_on_ties():
    x = value([[3, 7, 7, 1], [2, 2, 2, 2]], D.FP32)
    check(run(pl["row_argmax"](tensor([2, 4])), x), [[1], [0]])
    check(run(pl["row_argmin"](tensor([2, 4])), x), [[3], [0]])
    check(run(pl["col_argmax"](tensor([2, 4])), value([[2, 5], [2, 9]], D.FP32)), [[0, 1]])


def test_integers_wrap_at_their_own_width():
    x = value([[100, 100, 100]], D.INT8)
    result = run(pl["row_sum"](tensor([1, 3], D.INT8)), x)
    assert result.dtype == np.int8
    check(result, [[300 - 256]])
    check(run(pl["row_prod"](tensor([1, 3], D.INT32)), value([[2**20, 2**10, 3]], D.INT32)), [[3 * 2**30 - 2**32]])


@pytest.mark.parametrize("dtype, numpy_type", [(D.FP16, np.float16), (D.BF16, ml_dtypes.bfloat16)])
def test_half_types_reduce_in_single_precision(dtype, numpy_type):
    x = np.full((1, 4096), 0.1, np.float32).astype(numpy_type)
    expected = x.astype(np.float32).sum(axis=1, keepdims=True).astype(numpy_type)
    result = run(pl["row_sum"](tensor(x.shape, dtype)), value(x))
    assert result.data.astype(float).tolist() == expected.astype(float).tolist()
    picked = run(pl["row_argmax"](tensor([1, 3], dtype)), value([[1, 5, 2]], dtype))
    check(picked, [[1]])


def test_undefined_elements_poison_their_row_or_column():
    x = value(integers((4, 6), 0, 9), D.INT32, undefined=[(2, 3)])
    data = integers((4, 6), 0, 9)
    check(run(pl["row_sum"](tensor([4, 6], D.INT32)), x), data.sum(1, keepdims=True), undefined=[(2, 0)])
    check(run(pl["col_sum"](tensor([4, 6], D.INT32)), x), data.sum(0, keepdims=True), undefined=[(0, 3)])


def test_keep_dim_false_and_scalar_results():
    x = integers((4, 6), 0, 9)
    call = pl_tensor["row_sum"](tensor([4, 6], D.INT32), keep_dim=False)
    check(run(call, value(x)), x.sum(1))
    total = pl_tensor["row_max"](tensor([6], D.INT32), keep_dim=False)
    assert run(total, value(x[0])) == x[0].max()
    with pytest.raises(UndefinedValueError):
        run(total, value(x[0], undefined=[(2,)]))


def test_an_empty_run_time_region_gives_undefined_results():
    n = Var("n", ScalarType(DataType.INDEX))
    call = pl["row_max"](tensor([2, 4], valid=[2, n]))
    check(run(call, value(np.ones((2, 4), np.float32), valid=(2, 0))), [[0], [0]], undefined=[(0, 0), (1, 0)])
