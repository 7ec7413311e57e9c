"""matmul, matmul_acc, matmul_bias, batch_matmul and gemv."""

import ml_dtypes
import numpy as np
import pytest
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

from pypto.ir.enums import ArgEffect, CompactMode, MemorySpace, TileLayout
from pypto.ir.expr import ConstBool, Var
from pypto.ir.type import ScalarType
from pypto.ops.registry import REGISTRY, create_op_call, get_op_arg_effect, get_op_memory_spec

M = MemorySpace


def acc_view(call):
    view = call.type.get_effective_tile_view()
    return view.blayout, view.slayout, view.fractal


ACC = (TileLayout.col_major, TileLayout.row_major, 1024)


# --- tensors: types ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lhs, rhs, shape",
    [
        ([32, 64], [64, 48], [32, 48]),
        ([64], [64], []),
        ([32, 64], [64], [32]),
        ([64], [64, 48], [48]),
        ([5, 32, 64], [64, 48], [5, 32, 48]),
        ([1, 32, 64], [5, 64, 48], [5, 32, 48]),
        ([2, 1, 32, 64], [3, 64, 48], [2, 3, 32, 48]),
    ],
)
def test_tensor_shapes(lhs, rhs, shape):
    call = pl["matmul"](tensor(lhs), tensor(rhs))
    assert shape_of(call) == shape
    x, y = np.ones(lhs, np.float32), np.ones(rhs, np.float32)
    assert run(call, value(x), value(y)).shape == tuple(shape) == np.matmul(x, y).shape


def test_tensor_dtype_and_flags():
    x, y = tensor([32, 64], D.BF16), tensor([64, 48], D.BF16)
    assert pl["matmul"](x, y).type.dtype is D.BF16
    call = pl["matmul"](x, y, out_dtype=D.FP32, a_trans=False)
    assert (call.type.dtype, dict(call.kwargs)) == (D.FP32, {"out_dtype": D.FP32})
    call = pl["matmul"](tensor([64, 32]), tensor([48, 64]), a_trans=True, b_trans=True, c_matrix_nz=True)
    assert shape_of(call) == [32, 48]
    assert dict(call.kwargs) == {"a_trans": True, "b_trans": True, "c_matrix_nz": True}
    with pytest.raises(ValueError, match="cannot be transposed"):
        pl["matmul"](tensor([64]), tensor([64, 48]), a_trans=True)
    with pytest.raises(ValueError, match="matching inner dimensions, but got lhs K=64 and rhs K=63"):
        pl["matmul"](x, tensor([63, 48], D.BF16))
    with pytest.raises(ValueError, match="Cannot broadcast shapes"):
        pl["matmul"](tensor([2, 32, 64]), tensor([3, 64, 48]))


def test_tensor_valid_region():
    call = pl["matmul"](tensor([32, 64], valid=[20, 50]), tensor([64, 48], valid=[50, 40]))
    assert valid_of(call) == [20, 40]
    call = pl["matmul"](tensor([64, 32], valid=[50, 20]), tensor([64, 48], valid=[64, 40]), a_trans=True)
    assert valid_of(call) == [20, 40]
    n = Var("n", ScalarType(D.INDEX))
    assert valid_of(pl["matmul"](tensor([4, 32, 64], valid=[n, 32, 64]), tensor([64, 48]))) == ["n", 32, 48]
    with pytest.raises(ValueError, match="rhs valid K to cover"):
        pl["matmul"](tensor([32, 64]), tensor([64, 48], valid=[50, 48]))


def test_tensor_matmul_acc_types():
    acc, x, y = tensor([32, 48]), tensor([32, 64], D.FP16), tensor([64, 48], D.FP16)
    call = pl["matmul_acc"](acc, x, y)
    assert (call.op.name, call.type.dtype, len(call.args), dict(call.kwargs)) == ("tensor.matmul_acc", D.FP32, 3, {})
    k = scalar(D.INDEX)
    assert len(pl["matmul_acc"](acc, x, y, init_cond=k == 0).args) == 4
    assert type(pl["matmul_acc"](acc, x, y, init_cond=True).args[3]) is ConstBool
    assert len(ir_tensor["matmul_acc"](acc, x, y, init_cond=k == 0).args) == 4
    assert pl_tensor["matmul_acc"](acc, tensor([64, 32], D.FP16), y, True).kwargs["a_trans"] is True
    with pytest.raises(ValueError, match="have dtype BOOL.*k == 0"):
        pl["matmul_acc"](acc, x, y, init_cond=k)
    with pytest.raises(ValueError, match="identical lhs and rhs"):
        pl["matmul_acc"](acc, x, tensor([64, 48], D.BF16))
    with pytest.raises(ValueError, match="accumulator dtype"):
        pl["matmul_acc"](tensor([32, 48], D.FP16), x, y)
    with pytest.raises(ValueError, match="accumulator dtype int32"):
        pl["matmul_acc"](acc, tensor([32, 64], D.INT8), tensor([64, 48], D.INT8))
    with pytest.raises(ValueError, match="acc batch dim"):
        pl["matmul_acc"](tensor([2, 32, 48]), tensor([3, 32, 64]), tensor([3, 64, 48]))
    with pytest.raises(ValueError, match="acc batch dim"):
        pl["matmul_acc"](tensor([32, 48]), tensor([3, 32, 64]), tensor([3, 64, 48]))
    with pytest.raises(ValueError, match="inner dimensions"):
        pl["matmul_acc"](acc, x, tensor([63, 48], D.FP16))
    with pytest.raises(ValueError, match="acc M dimension"):
        pl["matmul_acc"](tensor([31, 48]), x, y)
    with pytest.raises(ValueError, match="acc N dimension"):
        pl["matmul_acc"](tensor([32, 47]), x, y)
    with pytest.raises(ValueError, match="rank >= 2"):
        pl["matmul_acc"](tensor([32]), tensor([32, 64]), tensor([64]))


# --- tiles: types -----------------------------------------------------------------------------------------------------


def test_tile_matmul_type():
    call = pl["matmul"](tile([32, 64], D.BF16), tile([64, 48], D.BF16))
    assert (call.op.name, call.type.dtype, shape_of(call)) == ("tile.matmul", D.FP32, [32, 48])
    assert (call.type.memory_space, acc_view(call), call.type.tile_view) == (M.Acc, ACC, None)
    assert pl["matmul"](tile([32, 64], D.INT8), tile([64, 48], D.INT8)).type.dtype is D.INT32
    partial = pl["matmul"](tile([32, 64], valid=[20, 50]), tile([64, 48], valid=[50, 40]))
    assert valid_of(partial) == [20, 40]
    assert partial.type.tile_view.compact is CompactMode.normal
    columns = pl["matmul"](tile([32, 64]), tile([64, 48], valid=[64, 40]))
    assert columns.type.tile_view.compact is CompactMode.null
    n = Var("n", ScalarType(D.INDEX))
    rows = pl["matmul"](tile([32, 64], valid=[n, 64]), tile([64, 48]))
    assert rows.type.tile_view.compact is CompactMode.normal


def test_tile_matmul_errors():
    x, y = tile([32, 64], D.FP16), tile([64, 48], D.FP16)
    with pytest.raises(ValueError, match="matching physical inner dimensions, but got lhs K=64 and rhs K=63"):
        pl["matmul"](x, tile([63, 48], D.FP16))
    with pytest.raises(ValueError, match="identical lhs and rhs"):
        pl["matmul"](x, tile([64, 48], D.BF16))
    with pytest.raises(ValueError, match="rhs valid K to cover"):
        pl["matmul"](x, tile([64, 48], D.FP16, valid=[50, 48]))
    with pytest.raises(ValueError, match="rank 2"):
        pl["matmul"](tile([2, 32, 64], D.FP16), y)
    for flag in ("a_trans", "b_trans", "c_matrix_nz"):
        with pytest.raises(TypeError, match=f"'{flag}' is not supported for Tile operands"):
            pl["matmul"](x, y, **{flag: True})
        assert pl["matmul"](x, y, **{flag: False}).op.name == "tile.matmul"
    with pytest.raises(TypeError, match="transpose_view"):
        pl["matmul"](x, y, a_trans=True)
    with pytest.raises(TypeError, match="'out_dtype' is not supported for Tile operands"):
        pl["matmul"](x, y, out_dtype=D.FP16)
    assert pl["matmul"](x, y, out_dtype=D.FP32).op.name == "tile.matmul"
    with pytest.raises(TypeError, match="cannot mix Tensor and Tile"):
        pl["matmul"](x, tensor([64, 48]))


def test_tile_matmul_acc_type():
    x, y = tile([32, 64], D.FP16, valid=[20, 64]), tile([64, 48], D.FP16, valid=[64, 40])
    product = pl["matmul"](x, y)
    acc = Var("acc", product.type)
    call = pl["matmul_acc"](acc, x, y)
    assert call.type == product.type
    k = scalar(D.INDEX)
    assert len(ir_tile["matmul_acc"](acc, x, y, init_cond=k == 0).args) == 4
    with pytest.raises(ValueError, match="have dtype BOOL"):
        pl_tile["matmul_acc"](acc, x, y, k)
    with pytest.raises(TypeError, match="'b_trans' is not supported for Tile operands"):
        pl["matmul_acc"](acc, x, y, b_trans=True)
    for valid, phrase in (([10, 40], "acc valid M"), ([20, 30], "acc valid N")):
        with pytest.raises(ValueError, match=phrase):
            pl["matmul_acc"](tile([32, 48], valid=valid), x, y)
    with pytest.raises(ValueError, match="accumulator dtype"):
        pl["matmul_acc"](tile([32, 48], D.FP16), x, y)
    with pytest.raises(ValueError, match="acc N dimension"):
        pl["matmul_acc"](tile([32, 64]), x, y)
    with pytest.raises(TypeError, match="cannot mix Tensor and Tile"):
        pl["matmul_acc"](acc, x, tensor([64, 48]))


def test_tile_matmul_bias_type():
    x, y = tile([32, 64], D.FP16), tile([64, 48], D.FP16)
    call = pl["matmul_bias"](x, y, tile([1, 48]))
    assert (shape_of(call), call.type.dtype, call.type.memory_space) == ([32, 48], D.FP32, M.Acc)
    for bias, phrase in (
        (tile([48]), r"shape \[1, N\]"),
        (tile([2, 48]), r"shape \[1, N\]"),
        (tile([1, 48], D.FP16), "accumulator dtype"),
        (tile([1, 40]), "bias N dimension"),
        (tile([1, 48], valid=[1, 40]), "bias valid N"),
    ):
        with pytest.raises(ValueError, match=phrase):
            pl["matmul_bias"](x, y, bias)


def test_batch_matmul_types():
    call = pl["batch_matmul"](tile([1, 32, 64], D.FP16), tile([5, 64, 48], D.FP16))
    assert (shape_of(call), call.type.dtype, call.type.memory_space, acc_view(call)) == (
        [5, 32, 48],
        D.FP32,
        M.Acc,
        ACC,
    )
    acc = Var("acc", call.type)
    again = pl_tile["batch_matmul_acc"](acc, tile([1, 32, 64], D.FP16), tile([5, 64, 48], D.FP16))
    assert again.type == call.type
    with pytest.raises(ValueError, match="inner dimensions"):
        pl["batch_matmul"](tile([5, 32, 64]), tile([5, 63, 48]))
    with pytest.raises(ValueError, match="acc batch dim"):
        pl_tile["batch_matmul_acc"](tile([4, 32, 48]), tile([5, 32, 64]), tile([5, 64, 48]))
    with pytest.raises(ValueError, match="rank >= 2"):
        pl["batch_matmul"](tile([64]), tile([64, 48]))
    with pytest.raises(TypeError, match="pl.batch_matmul: expected Tile operands"):
        pl["batch_matmul"](tensor([5, 32, 64]), tensor([5, 64, 48]))
    with pytest.raises(TypeError, match="cannot mix Tensor and Tile"):
        pl["batch_matmul"](tensor([5, 32, 64]), tile([5, 64, 48]))


def test_gemv_types():
    x, y = tile([1, 64], D.FP16), tile([64, 48], D.FP16, valid=[64, 40])
    call = pl["gemv"](x, y)
    assert (shape_of(call), valid_of(call), acc_view(call)) == ([16, 48], [1, 40], ACC)
    assert (call.type.dtype, call.type.memory_space, dict(call.kwargs)) == (D.FP32, M.Acc, {})
    assert pl["gemv"](tile([1, 64], D.INT8), tile([64, 48], D.INT8)).type.dtype is D.INT32
    assert dict(pl["gemv"](x, y, "partial").kwargs) == {"acc_phase": "partial"}
    assert dict(ir_tile["gemv"](x, y, acc_phase="final").kwargs) == {"acc_phase": "final"}
    acc = Var("acc", call.type)
    assert pl["gemv_acc"](acc, x, y, acc_phase="final").type == call.type
    assert pl["gemv_bias"](x, y, tile([1, 48])).type == call.type
    with pytest.raises(ValueError, match="acc_phase must be one of"):
        pl["gemv"](x, y, acc_phase="last")
    with pytest.raises(ValueError, match="exactly one row"):
        pl["gemv"](tile([16, 64], D.FP16, valid=[1, 64]), y)
    with pytest.raises(ValueError, match="supports only INT8"):
        pl["gemv"](tile([1, 64], D.INT16), tile([64, 48], D.INT16))
    with pytest.raises(ValueError, match="accumulator valid_shape"):
        pl["gemv_acc"](tile([16, 48], valid=[1, 48]), x, y)
    with pytest.raises(ValueError, match="accumulator of shape"):
        pl["gemv_acc"](tile([32, 48], valid=[1, 40]), x, y)
    with pytest.raises(ValueError, match="accumulator dtype"):
        pl["gemv_acc"](tile([16, 48], D.INT32, valid=[1, 40]), x, y)


def test_facts():
    assert get_op_memory_spec("tile.matmul") == {"input_constraints": [[M.Left], [M.Right]], "output_memory": M.Acc}
    assert get_op_memory_spec("tile.matmul_acc")["input_constraints"] == [[M.Acc], [M.Left], [M.Right]]
    assert get_op_memory_spec("tensor.matmul") is None
    for name in ("tile.matmul_acc", "tile.gemv_acc", "tile.batch_matmul_acc", "tile.matmul_mx_acc"):
        assert get_op_arg_effect(name, 0) is ArgEffect.ReadWrite
        assert REGISTRY[name].alias_operand == 0
    with pytest.raises(ValueError, match="Unknown kwarg 'a_trans'"):
        create_op_call("tile.matmul", [tile([4, 4]), tile([4, 4])], {"a_trans": True})


# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("a_trans", [False, True])
@pytest.mark.parametrize("b_trans", [False, True])
@pytest.mark.parametrize("lead", [(), (3,)])
def test_tensor_semantics(a_trans, b_trans, lead):
    x, y = random((*lead, 7, 5), 1), random((5, 6), 2)
    a = np.swapaxes(x, -1, -2) if a_trans else x
    b = y.T if b_trans else y
    call = pl["matmul"](tensor(a.shape), tensor(b.shape), a_trans=a_trans, b_trans=b_trans)
    check(run(call, value(a), value(b)), x @ y, rtol=1e-5)


def test_half_accumulates_in_single_precision_and_rounds_once():
    for dtype, numpy_type in ((D.BF16, ml_dtypes.bfloat16), (D.FP16, np.float16)):
        x, y = random((4, 256), 1).astype(numpy_type), random((256, 3), 2).astype(numpy_type)
        wide = x.astype(np.float32) @ y.astype(np.float32)
        rounded = run(pl["matmul"](tensor(x.shape, dtype), tensor(y.shape, dtype)), value(x), value(y))
        assert rounded.dtype == np.dtype(numpy_type)
        check(rounded, wide.astype(numpy_type), rtol=1e-6)
        full = run(pl["matmul"](tensor(x.shape, dtype), tensor(y.shape, dtype), out_dtype=D.FP32), value(x), value(y))
        check(full, wide, rtol=1e-6)
        on_chip = run(pl["matmul"](tile(x.shape, dtype), tile(y.shape, dtype)), value(x), value(y))
        check(on_chip, wide, rtol=1e-6)


def test_integers_accumulate_in_int32():
    x, y = integers((4, 300), -128, 128, 1, np.int8), integers((300, 3), -128, 128, 2, np.int8)
    exact = x.astype(np.int64) @ y.astype(np.int64)
    check(run(pl["matmul"](tile(x.shape, D.INT8), tile(y.shape, D.INT8)), value(x), value(y)), exact)
    big = value([[2**20, 1]], D.INT32)
    check(run(pl["matmul"](tile([1, 2], D.INT32), tile([2, 1], D.INT32)), big, value([[2**12], [5]], D.INT32)), [[5]])


def test_only_the_valid_region_takes_part():
    x, y = random((6, 8), 1), random((8, 7), 2)
    call = pl["matmul"](tile([6, 8], valid=[4, 5]), tile([8, 7], valid=[5, 3]))
    expected = np.zeros((6, 7))
    expected[:4, :3] = x[:4, :5] @ y[:5, :3]
    result = run(call, value(x, valid=(4, 5)), value(y, valid=(5, 3)))
    check(result, expected, valid=(4, 3), rtol=1e-5)


def test_a_contraction_past_the_valid_rows_is_undefined():
    n = Var("n", ScalarType(D.INDEX))
    call = pl["matmul"](tile([2, 8]), tile([8, 2], valid=[n, 2]))
    result = run(call, value(np.ones((2, 8), np.float32)), value(np.ones((8, 2), np.float32), valid=(5, 2)))
    check(result, np.zeros((2, 2)), undefined=[(i, j) for i in range(2) for j in range(2)])


def test_poison_follows_rows_and_columns():
    x, y = random((4, 5), 1), random((5, 3), 2)
    call = pl["matmul"](tensor([4, 5]), tensor([5, 3]))
    result = run(call, value(x, undefined=[(1, 2)]), value(y, undefined=[(4, 0)]))
    poisoned = [(1, j) for j in range(3)] + [(i, 0) for i in (0, 2, 3)]
    check(result, x @ y, undefined=poisoned, rtol=1e-5)
    vector = run(pl["matmul"](tensor([4, 5]), tensor([5])), value(x, undefined=[(1, 2)]), value(y[:, 0]))
    check(vector, x @ y[:, 0], undefined=[(1,)], rtol=1e-5)
    dot = run(pl["matmul"](tensor([5]), tensor([5])), value(x[0]), value(y[:, 0], undefined=[(3,)]))
    assert not dot.mask.any()


@pytest.mark.parametrize("level", [tensor, tile])
def test_accumulation(level):
    x, y, c = random((4, 5), 1), random((5, 3), 2), random((4, 3), 3)
    acc = value(c)
    call = pl["matmul_acc"](level([4, 3]), level([4, 5]), level([5, 3]))
    check(run(call, acc, value(x), value(y)), c + x @ y, rtol=1e-5)
    in_place = level is tile
    np.testing.assert_allclose(acc.data, c + x @ y if in_place else c, rtol=1e-5)
    with_condition = pl["matmul_acc"](level([4, 3]), level([4, 5]), level([5, 3]), init_cond=scalar(D.BOOL))
    check(run(with_condition, value(c), value(x), value(y), False), c + x @ y, rtol=1e-5)
    check(run(with_condition, value(c), value(x), value(y), True), x @ y, rtol=1e-5)


def test_init_cond_hides_an_undefined_accumulator():
    x, y = random((4, 5), 1), random((5, 3), 2)
    empty = [(i, j) for i in range(4) for j in range(3)]
    call = pl["matmul_acc"](tile([4, 3]), tile([4, 5]), tile([5, 3]), init_cond=scalar(D.BOOL))
    check(run(call, value(np.zeros((4, 3)), D.FP32, undefined=empty), value(x), value(y), True), x @ y, rtol=1e-5)
    left = run(call, value(np.zeros((4, 3)), D.FP32, undefined=empty), value(x), value(y), False)
    check(left, np.zeros((4, 3)), undefined=empty)


def test_an_accumulator_keeps_what_the_product_does_not_cover():
    x, y, c = random((4, 5), 1), random((5, 3), 2), random((4, 3), 3)
    call = pl["matmul_acc"](tile([4, 3]), tile([4, 5], valid=[2, 5]), tile([5, 3]))
    expected = c.copy()
    expected[:2] += x[:2] @ y
    check(run(call, value(c), value(x, valid=(2, 5)), value(y)), expected, rtol=1e-5)


def test_batches():
    x, y = random((1, 4, 5), 1), random((3, 5, 6), 2)
    call = pl["batch_matmul"](tile(x.shape), tile(y.shape))
    check(run(call, value(x), value(y)), x @ y, rtol=1e-5)
    c = random((3, 4, 6), 3)
    call = pl_tile["batch_matmul_acc"](tile(c.shape), tile(x.shape), tile(y.shape))
    check(run(call, value(c), value(x), value(y)), c + x @ y, rtol=1e-5)


def test_bias():
    x, y, b = random((4, 5), 1), random((5, 3), 2), random((1, 3), 3)
    call = pl["matmul_bias"](tile([4, 5]), tile([5, 3]), tile([1, 3]))
    result = run(call, value(x), value(y), value(b, undefined=[(0, 1)]))
    check(result, x @ y + b, undefined=[(i, 1) for i in range(4)], rtol=1e-5)


def test_gemv_semantics():
    x, y, b = random((1, 5), 1), random((5, 3), 2), random((1, 3), 3)
    expected = np.zeros((16, 3))
    expected[:1] = x @ y
    call = pl["gemv"](tile([1, 5]), tile([5, 3]))
    acc = run(call, value(x), value(y))
    check(acc, expected, valid=(1, 3), rtol=1e-5)
    again = pl["gemv_acc"](Var("acc", call.type), tile([1, 5]), tile([5, 3]))
    check(run(again, acc, value(x), value(y)), 2 * expected, valid=(1, 3), rtol=1e-5)
    expected[:1] += b
    biased = pl["gemv_bias"](tile([1, 5]), tile([5, 3]), tile([1, 3]))
    check(run(biased, value(x), value(y), value(b)), expected, valid=(1, 3), rtol=1e-5)
