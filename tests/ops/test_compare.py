"""cmp, cmps, sel, sels: 0/1 tensors and packed predicates."""

import numpy as np
import pytest
from ops_kit import D, check, integers, pl, pl_tile, random, run, scalar, shape_of, tensor, tile, valid_of, value

from pypto.ir.enums import MemorySpace
from pypto.ir.expr import ConstFloat, ConstInt, Var
from pypto.ir.type import ScalarType
from pypto.ops.registry import REGISTRY, create_op_call

OPERATORS = [np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal]


def packed(truth, width):
    """The packed predicate of a boolean matrix, written out bit by bit."""
    rows, cols = truth.shape
    out = np.zeros((rows, width), np.uint8)
    for r in range(rows):
        for c in range(cols):
            if truth[r, c]:
                out[r, c // 8] |= 1 << (c % 8)
    return out


# --- types ------------------------------------------------------------------------------------------------------------


def test_tensor_type():
    call = pl["cmp"](tensor([4, 40], D.FP16), tensor([1, 40], D.FP32), cmp_type=4)
    assert (call.type.dtype, shape_of(call), dict(call.kwargs)) == (D.FP32, [4, 40], {"cmp_type": 4})
    assert valid_of(pl["cmp"](tensor([4, 40], valid=[3, 9]), tensor([4, 40], valid=[2, 11]))) == [2, 9]
    call = pl["cmp"](tensor([4, 40], D.INT32), 3)
    assert (call.type.dtype, dict(call.kwargs)) == (D.INT32, {"cmp_type": 0})
    assert call.args[1].type.dtype is D.INT32
    assert pl["cmp"](tensor([4, 40], D.INT32), 2.5).type.dtype is D.FP32


@pytest.mark.parametrize(
    "columns, width, used", [(1, 32, 1), (8, 32, 1), (9, 32, 2), (40, 32, 5), (256, 32, 32), (257, 64, 33)]
)
def test_packed_type(columns, width, used):
    for call in (pl["cmp"](tile([4, columns]), tile([4, columns])), pl["cmp"](tile([4, columns]), 0.5)):
        assert call.type.dtype is D.UINT8
        assert shape_of(call) == [4, width]
        assert valid_of(call) == [4, used]
        assert call.type.memory_space is MemorySpace.Vec
        assert dict(call.kwargs) == {"cmp_type": 0}


def test_packed_type_of_a_partial_tile():
    assert valid_of(pl["cmp"](tile([4, 40], valid=[3, 17]), tile([4, 40]))) == [3, 3]
    n = Var("n", ScalarType(D.INDEX))
    call = pl["cmp"](tile([4, 40], valid=[4, n]), 0.5)
    assert shape_of(call) == [4, 32]
    assert valid_of(call) == [4, "(n + 7) // 8"]


def test_dispatch():
    t = tile([4, 40])
    assert pl["cmp"](t, t).op.name == "tile.cmp"
    assert pl["cmp"](t, 1.0).op.name == "tile.cmps"
    assert pl["cmps"](t, 1.0, cmp_type=2).kwargs["cmp_type"] == 2
    assert pl_tile["cmp"](t, scalar(D.FP32)).op.name == "tile.cmps"
    with pytest.raises(TypeError, match="cannot mix Tensor and Tile"):
        pl["cmp"](t, tensor([4, 40]))
    with pytest.raises(TypeError, match="expected Tensor or Tile operands"):
        pl["cmp"](1.0, t)


def test_ir_level_kwargs():
    t, x = tile([4, 40]), tensor([4, 40])
    with pytest.raises(ValueError, match="requires a 'cmp_type' kwarg"):
        create_op_call("tile.cmp", [t, t], {})
    assert create_op_call("tensor.cmp", [x, x], {}).type.dtype is D.FP32
    for mode in (-1, 6):
        with pytest.raises(ValueError, match="cmp_type must be 0..5"):
            create_op_call("tensor.cmp", [x, x], {"cmp_type": mode})
        with pytest.raises(ValueError, match="cmp_type must be 0..5"):
            pl["cmp"](t, t, cmp_type=mode)
    with pytest.raises(ValueError, match="Cannot broadcast shapes"):
        pl["cmp"](t, tile([4, 41]))


def test_sel_type():
    u, v = tile([4, 40], D.FP16, valid=[3, 40]), tile([4, 40], D.FP32)
    mask = pl["cmp"](u, v, cmp_type=4)
    call = pl["sel"](mask, u, v, tile([1, 32], D.UINT8))
    assert (call.type.dtype, valid_of(call)) == (D.FP32, [3, 40])
    assert REGISTRY["tile.sel"].no_alias == (0, 3)
    with pytest.raises(ValueError, match="each mask carrier row"):
        pl["sel"](tile([4, 4], D.UINT8), v, v, tile([1, 32], D.UINT8))
    with pytest.raises(ValueError, match="mask carrier rows"):
        pl["sel"](tile([2, 32], D.UINT8), v, v, tile([1, 32], D.UINT8))
    with pytest.raises(ValueError, match="packed mask"):
        pl["sel"](tile([4, 40], D.FP32), v, v, tile([1, 32], D.UINT8))
    with pytest.raises(ValueError, match="rank >= 1"):
        pl["sel"](tile([], D.UINT8), tile([]), tile([]), tile([1, 32], D.UINT8))
    with pytest.raises(ValueError, match="fourth argument to be a TileType"):
        pl["sel"](mask, v, v, tensor([1, 32], D.UINT8))


def test_sels_type():
    src, mask, tmp = tile([4, 40]), tile([4, 32], D.UINT8), tile([1, 32], D.UINT8)
    call = pl["sels"](mask, src, tmp, 0)
    assert (call.type.dtype, shape_of(call)) == (D.FP32, [4, 40])
    assert type(call.args[3]) is ConstFloat and call.args[3].type.dtype is D.FP32
    with pytest.raises(ValueError, match="mask carrier rows"):
        pl["sels"](tile([3, 32], D.UINT8), src, tmp, 0)
    with pytest.raises(ValueError, match="each mask carrier row"):
        pl["sels"](tile([4, 4], D.UINT8), src, tmp, 0)
    assert shape_of(pl["sels"](tile([4, 2], D.INT32), src, tmp, 0)) == [4, 40]
    with pytest.raises(ValueError, match="rank 2"):
        pl["sels"](tile([1, 4, 32], D.UINT8), src, tmp, 0)
    with pytest.raises(ValueError, match="requires scalar dtype"):
        create_op_call("tile.sels", [mask, src, tmp, ConstInt(1, D.INT32)], {})
    with pytest.raises(ValueError, match="requires scalar dtype"):
        pl["sels"](mask, src, tmp, scalar(D.FP16))


def test_sels_needs_proven_coverage():
    n = Var("n", ScalarType(D.INDEX))
    src = tile([4, 40], valid=[4, n])
    mask = pl["cmp"](src, 0.5)
    assert valid_of(pl["sels"](mask, src, tile([1, 32], D.UINT8), 0)) == [4, "n"]
    with pytest.raises(ValueError, match="mask carrier rows to provably cover"):
        pl["sels"](tile([4, 32], D.UINT8, valid=[n, 32]), tile([4, 40]), tile([1, 32], D.UINT8), 0)


def test_sels_constants():
    mask, tmp = tile([4, 32], D.UINT8), tile([1, 32], D.UINT8)
    call = pl["sels"](mask, tile([4, 40], D.UINT8), tmp, 200)
    assert (call.args[3].value, call.args[3].type.dtype) == (200 - 256, D.INT8)
    call = pl["sels"](mask, tile([4, 40], D.INT16), tmp, ConstInt(5, D.INT32))
    assert (call.args[3].value, call.args[3].type.dtype) == (5, D.INT16)
    call = pl["sels"](mask, tile([4, 40], D.INT16), tmp, 2.0)
    assert (call.args[3].value, call.args[3].type.dtype) == (2, D.INT16)
    with pytest.raises(ValueError, match="non-integral"):
        pl["sels"](mask, tile([4, 40], D.INT16), tmp, 2.5)
    with pytest.raises(ValueError, match="has dtype `index`"):
        pl["sels"](mask, tile([4, 40], D.INT16), tmp, scalar(D.INDEX))


# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", range(6))
def test_tensor_semantics(mode):
    a, b = integers((4, 9), 0, 3, 1), integers((4, 9), 0, 3, 2)
    call = pl["cmp"](tensor([4, 9], D.INT32, valid=[3, 9]), tensor([4, 9], D.INT32), cmp_type=mode)
    check(run(call, value(a, valid=(3, 9)), value(b)), OPERATORS[mode](a, b).astype(int), valid=(3, 9))
    call = pl["cmp"](tensor([4, 9], D.INT32), 1, cmp_type=mode)
    check(run(call, value(a), 1), OPERATORS[mode](a, 1).astype(int))


@pytest.mark.parametrize("mode", range(6))
@pytest.mark.parametrize("columns", [1, 8, 9, 40, 256, 257])
def test_packed_semantics(mode, columns):
    a, b = integers((3, columns), 0, 3, 1), integers((3, columns), 0, 3, 2)
    t, width = tile([3, columns], D.INT32), (columns + 255) // 256 * 32
    used = (columns + 7) // 8
    result = run(pl["cmp"](t, t, cmp_type=mode), value(a), value(b))
    check(result, packed(OPERATORS[mode](a, b), width), valid=(3, used))
    result = run(pl["cmp"](t, 1, cmp_type=mode), value(a), 1)
    check(result, packed(OPERATORS[mode](a, 1), width), valid=(3, used))


def test_bits_beyond_the_valid_columns_are_zero():
    a = integers((4, 40), 0, 3)
    truth = a >= 0
    truth[:, 13:] = False
    result = run(pl["cmp"](tile([4, 40], D.INT32, valid=[3, 13]), 0, cmp_type=5), value(a, valid=(3, 13)), 0)
    check(result, packed(truth, 32), valid=(3, 2))


def test_undefined_elements_make_their_byte_undefined():
    a = value(random((2, 20)), undefined=[(0, 9)])
    result = run(pl["cmp"](tile([2, 20]), 0.0, cmp_type=4), a, 0.0)
    check(result, packed(random((2, 20)) > 0, 32), valid=(2, 3), undefined=[(0, 1)])


def test_select_is_the_maximum():
    u, v = random((4, 40), 1), random((4, 40), 2)
    t, tmp = tile([4, 40], valid=[3, 37]), tile([1, 32], D.UINT8)
    x, y = value(u, valid=(3, 37)), value(v, valid=(3, 37))
    compare = pl["cmp"](t, t, cmp_type=4)
    mask = run(compare, x, y)
    call = pl["sel"](compare, t, t, tmp)
    check(run(call, mask, x, y, value(np.zeros((1, 32), np.uint8))), np.maximum(u, v), valid=(3, 37))


def test_select_reads_only_the_chosen_side():
    t, tmp = tile([1, 8]), value(np.zeros((1, 32), np.uint8))
    mask = value(packed(np.array([[1, 0, 1, 0, 1, 0, 1, 0]], bool), 32))
    a, b = value(np.arange(8.0)[None], D.FP32, undefined=[(0, 1), (0, 2)]), value(np.full((1, 8), 9.0), D.FP32)
    call = pl["sel"](tile([1, 32], D.UINT8), t, t, tile([1, 32], D.UINT8))
    check(run(call, mask, a, b, tmp), [[0, 9, 2, 9, 4, 9, 6, 9]], undefined=[(0, 2)])
    # an undefined mask byte leaves eight columns undefined
    mask = value(packed(np.ones((1, 8), bool), 32), undefined=[(0, 0)])
    check(run(call, mask, b, b, tmp), np.full((1, 8), 9.0), undefined=[(0, j) for j in range(8)])


@pytest.mark.parametrize("carrier", [D.UINT8, D.INT16, D.INT32])
def test_select_with_a_scalar(carrier):
    src = integers((3, 40), 0, 250, dtype=np.uint8)
    truth = integers((3, 40), 0, 2, 5).astype(bool)
    mask = packed(truth, 32).view({D.UINT8: np.uint8, D.INT16: np.int16, D.INT32: np.int32}[carrier])
    call = pl["sels"](tile(mask.shape, carrier), tile([3, 40], D.UINT8), tile([1, 32], D.UINT8), 251)
    result = run(call, value(mask), value(src), value(np.zeros((1, 32), np.uint8)), call.args[3].value)
    check(result, np.where(truth, src, 251))


def test_bf16_compares_in_single_precision():
    a = value([[1.0, 2.0, 3.0]], D.BF16)
    check(
        run(pl["cmp"](tile([1, 3], D.BF16), 2.0, cmp_type=3), a, 2.0), packed(np.array([[1, 1, 0]], bool), 32), (1, 1)
    )


def test_sels_accepts_a_mask_that_covers_the_whole_tile():
    n = Var("n", ScalarType(D.INDEX))
    src = tile([4, 40], valid=[n, n])
    assert valid_of(pl["sels"](tile([4, 5], D.UINT8), src, tile([1, 32], D.UINT8), 0)) == ["n", "n"]
