"""row_expand*, col_expand*, expands and expand_clone."""

import numpy as np
import pytest
from ops_kit import D, check, integers, ir_tile, pl, pl_tile, random, run, shape_of, tensor, tile, valid_of, value

from pypto.ir.enums import MemorySpace, TileLayout
from pypto.ir.expr import ConstFloat, Var
from pypto.ir.type import ScalarType
from pypto.ops.registry import REGISTRY, create_op_call

FUNCTIONS = {
    "": lambda a, v: np.broadcast_to(v, a.shape),
    "_add": np.add,
    "_sub": np.subtract,
    "_mul": np.multiply,
    "_div": np.divide,
    "_max": np.maximum,
    "_min": np.minimum,
    "_expdif": lambda a, v: np.exp(a - v),
}
NAMES = [f"{axis}_expand{suffix}" for axis in ("row", "col") for suffix in FUNCTIONS]


def vector_shape(name):
    return [16, 1] if name.startswith("row") else [1, 64]


@pytest.mark.parametrize("name", NAMES)
def test_types(name):
    call = pl[name](tensor([16, 64]), tensor(vector_shape(name)))
    assert (call.op.name, shape_of(call), call.type.dtype) == (f"tensor.{name}", [16, 64], D.FP32)
    call = pl[name](tile([16, 64], valid=[9, 64] if name != "row_expand_add" else None), tile(vector_shape(name)))
    assert (call.op.name, shape_of(call)) == (f"tile.{name}", [16, 64])
    assert call.type.memory_space is MemorySpace.Vec
    if name != "row_expand_add":
        assert valid_of(call) == [9, 64]
        promoted = pl[name](tile([16, 64], D.FP16), tile(vector_shape(name), D.FP32))
        assert promoted.type.dtype is D.FP32


def test_valid_region_is_that_of_the_first_operand_within_the_valid_vector():
    assert valid_of(pl["row_expand_mul"](tensor([16, 64], valid=[9, 30]), tensor([16, 1]))) == [9, 30]
    assert valid_of(pl["row_expand_mul"](tensor([16, 64]), tensor([16, 1], valid=[5, 1]))) == [5, 64]
    assert valid_of(pl["col_expand_mul"](tile([16, 64], valid=[9, 40]), tile([1, 64], valid=[1, 30]))) == [9, 30]
    n = Var("n", ScalarType(D.INDEX))
    assert valid_of(pl["row_expand_sub"](tile([16, 64], valid=[n, 64]), tile([16, 1], valid=[n, 1]))) == ["n", 64]
    assert valid_of(pl["row_expand_sub"](tile([16, 64], valid=[n, 64]), tile([16, 1]))) == ["n", 64]


@pytest.mark.parametrize("level", [tensor, tile])
def test_shape_errors(level):
    with pytest.raises(ValueError, match="last dimension to be 1"):
        pl["row_expand_mul"](level([16, 64]), level([16, 2]))
    with pytest.raises(ValueError, match="second-to-last dimension to be 1"):
        pl["col_expand_mul"](level([16, 64]), level([2, 64]))
    with pytest.raises(ValueError, match="matching row dimensions"):
        pl["row_expand"](level([16, 64]), level([8, 1]))
    with pytest.raises(ValueError, match="matching column dimensions"):
        pl["col_expand"](level([16, 64]), level([1, 32]))
    with pytest.raises(ValueError, match="rank >= 2"):
        pl["row_expand_sub"](level([16, 64]), level([1]))
    n = Var("n", ScalarType(D.INDEX))
    assert shape_of(pl["row_expand_mul"](level([n, 64]), level([16, 1]))) == ["n", 64]


def test_expdif_is_for_floats():
    for level in (tensor, tile):
        with pytest.raises(ValueError, match="requires a float operand"):
            pl["row_expand_expdif"](level([16, 64], D.INT32), level([16, 1], D.INT32))
        assert pl["col_expand_expdif"](level([16, 64], D.INT32), level([1, 64])).type.dtype is D.FP32


def test_dispatch_errors():
    with pytest.raises(TypeError, match="pl.row_expand_mul: cannot mix Tensor and Tile"):
        pl["row_expand_mul"](tensor([16, 64]), tile([16, 1]))
    with pytest.raises(TypeError, match="pl.col_expand: expected Tensor or Tile operands"):
        pl["col_expand"](tensor([16, 64]), 2.0)
    with pytest.raises(TypeError, match="Tensor inputs must not pass tmp"):
        pl["row_expand_add"](tensor([16, 64]), tensor([16, 1]), tile([16, 64]))


def test_row_expand_add_is_stricter():
    t = tile([16, 64], valid=[9, 64])
    assert valid_of(pl["row_expand_add"](t, tile([16, 1], valid=[9, 1], blayout=TileLayout.col_major))) == [9, 64]
    with pytest.raises(ValueError, match="valid row extent"):
        pl["row_expand_add"](t, tile([16, 1]))
    with pytest.raises(ValueError, match="src0 effective blayout"):
        pl["row_expand_add"](tile([16, 64], blayout=TileLayout.col_major), tile([16, 1]))
    with pytest.raises(ValueError, match="valid last dimension to be 1"):
        pl["row_expand_add"](tile([16, 64]), tile([16, 8], blayout=TileLayout.col_major))
    with pytest.raises(ValueError, match="valid last dimension to be 8"):
        pl["row_expand_add"](tile([16, 64]), tile([16, 4]))
    assert pl["row_expand_add"](tile([16, 64], D.FP16), tile([16, 16], D.FP16)).type.dtype is D.FP16
    for level in (tensor, tile):
        with pytest.raises(ValueError, match="same dtype"):
            pl["row_expand_add"](level([16, 64]), level([16, 1], D.FP16))
        with pytest.raises(ValueError, match="requires operand dtype in {INT8, INT16, INT32, FP16, FP32}"):
            pl["row_expand_add"](level([16, 64], D.BF16), level([16, 1], D.BF16))


def test_row_expand_add_scratch():
    t, v, tmp = tile([16, 64]), tile([16, 1]), tile([16, 64])
    assert len(pl["row_expand_add"](t, v, tmp).args) == 3
    assert len(pl_tile["row_expand_add"](t, v).args) == 2
    assert len(ir_tile["row_expand_add"](t, v, tmp=tmp).args) == 3
    assert REGISTRY["tile.row_expand_add"].no_alias == (1, 2)
    assert REGISTRY["tile.col_expand_mul"].no_alias == (1,)


# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", FUNCTIONS)
@pytest.mark.parametrize("axis", ["row", "col"])
def test_semantics(suffix, axis):
    name = f"{axis}_expand{suffix}"
    a, v = random((8, 12), 1), random((8, 1) if axis == "row" else (1, 12), 2, 0.5, 2.0)
    expected = FUNCTIONS[suffix](a, v)
    check(run(pl[name](tensor(a.shape), tensor(v.shape)), value(a), value(v)), expected, rtol=1e-6)
    if name == "row_expand_add":
        return
    result = run(pl[name](tile(a.shape, valid=[5, 7]), tile(v.shape)), value(a, valid=(5, 7)), value(v))
    check(result, expected, valid=(5, 7), rtol=1e-6)


def test_poison():
    a, v = random((4, 6), 1), random((4, 1), 2)
    result = run(
        pl["row_expand_mul"](tensor([4, 6]), tensor([4, 1])), value(a, undefined=[(0, 2)]), value(v, undefined=[(3, 0)])
    )
    check(result, a * v, undefined=[(0, 2), *((3, j) for j in range(6))])
    # A plain expansion does not read the first operand.
    result = run(
        pl["row_expand"](tensor([4, 6]), tensor([4, 1])), value(a, undefined=[(0, 2)]), value(v, undefined=[(3, 0)])
    )
    check(result, np.broadcast_to(v, a.shape), undefined=[(3, j) for j in range(6)])


def test_row_expand_add_with_a_block_per_row():
    a, v = random((4, 20), 1), random((4, 8), 2)
    call = pl["row_expand_add"](tile([4, 20]), tile([4, 8]))
    check(run(call, value(a), value(v)), a + np.tile(v, 3)[:, :20])
    column = random((4, 1), 3)
    check(run(pl["row_expand_add"](tile([4, 20]), tile([4, 1])), value(a), value(column)), a + column)


def test_integer_division_rounds_toward_zero():
    a, v = value([[-7, 7], [-8, 9]], D.INT32), value([[2], [-4]], D.INT32)
    check(run(pl["row_expand_div"](tensor([2, 2], D.INT32), tensor([2, 1], D.INT32)), a, v), [[-3, 3], [2, -2]])


def test_expands():
    call = pl["expands"](tensor([4, 6], D.FP16, valid=[2, 6]), 3)
    assert (call.type.dtype, valid_of(call)) == (D.FP16, [4, 6])
    assert type(call.args[1]) is ConstFloat and call.args[1].type.dtype is D.FP16
    check(run(call, value(np.zeros((4, 6)), D.FP16, valid=(2, 6)), 3), np.full((4, 6), 3))
    call = pl["expands"](tile([4, 6], D.INT32, valid=[2, 6]), 2.5)
    assert (call.type.dtype, valid_of(call)) == (D.FP32, [2, 6])
    check(run(call, value(np.zeros((4, 6)), D.INT32, valid=(2, 6)), 2.5), np.full((4, 6), 2.5), valid=(2, 6))
    with pytest.raises(TypeError, match="expected Tensor or Tile, got Scalar"):
        pl["expands"](3, 3)


def test_expand_clone():
    x = integers((4, 1, 6), 0, 99)
    call = pl["expand_clone"](tensor([4, 1, 6], D.INT32), tensor([4, 5, 6], D.INT32))
    assert shape_of(call) == [4, 5, 6]
    check(run(call, value(x), value(np.zeros((4, 5, 6)), D.INT32)), np.broadcast_to(x, (4, 5, 6)))
    partial = pl["expand_clone"](tensor([4, 1, 6], D.INT32, valid=[3, 1, 2]), tensor([4, 5, 6], D.INT32))
    assert valid_of(partial) == [3, 5, 2]
    result = run(partial, value(x, valid=(3, 1, 2)), value(np.zeros((4, 5, 6)), D.INT32))
    check(result, np.broadcast_to(x, (4, 5, 6)), valid=(3, 5, 2))
    assert pl["expand_clone"](tensor([4, 5, 6]), tensor([4, 5, 6])).op.name == "tensor.expand_clone"
    with pytest.raises(ValueError, match="rank 3"):
        pl["expand_clone"](tensor([4, 1]), tensor([4, 5]))
    with pytest.raises(ValueError, match="at most one dimension"):
        pl["expand_clone"](tensor([1, 1, 6]), tensor([4, 5, 6]))
    with pytest.raises(ValueError, match="constant extent 1"):
        pl["expand_clone"](tensor([2, 5, 6]), tensor([4, 5, 6]))


def test_arity():
    with pytest.raises(ValueError, match="requires exactly 2 arguments"):
        create_op_call("tensor.row_expand", [tensor([4, 6])], {})
