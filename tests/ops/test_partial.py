"""part_add, part_mul, part_max, part_min."""

import numpy as np
import pytest
from ops_kit import D, check, integers, pl, pl_tile, run, shape_of, tensor, tile, valid_of, value

from pypto.ir.expr import Var
from pypto.ir.type import ScalarType

NUMPY = {"part_add": np.add, "part_mul": np.multiply, "part_max": np.maximum, "part_min": np.minimum}


@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.parametrize("level", [tensor, tile])
def test_types(name, level):
    call = pl[name](level([4, 9], D.FP16), level([4, 9], D.FP32))
    assert (call.type.dtype, shape_of(call)) == (D.FP32, [4, 9])
    assert valid_of(pl[name](level([4, 9], valid=[2, 9]), level([4, 9]))) == [4, 9]
    assert valid_of(pl[name](level([4, 9], valid=[3, 7]), level([4, 9], valid=[2, 5]))) == [3, 7]
    assert valid_of(pl[name](level([4, 9], valid=[2, 5]), level([4, 9], valid=[3, 7]))) == [3, 7]
    with pytest.raises(ValueError, match="to contain the other's"):
        pl[name](level([4, 9], valid=[2, 7]), level([4, 9], valid=[3, 5]))
    with pytest.raises(ValueError, match="Cannot broadcast shapes: dimension 0 mismatch"):
        pl[name](level([4, 9]), level([4, 8]))


def test_symbolic_regions():
    n, m = Var("n", ScalarType(D.INDEX)), Var("m", ScalarType(D.INDEX))
    a, b = tile([16, 64], valid=[n, 64]), tile([16, 64], valid=[m, 64])
    assert valid_of(pl["part_add"](a, b)) == ["pl.max(n, m)", 64]
    assert valid_of(pl["part_add"](a, a)) == ["n", 64]
    assert valid_of(pl["part_add"](a, tile([16, 64]))) == [16, 64]
    # regions of unknown relation along both axes: what the first operand covers is sure
    assert valid_of(pl["part_add"](tile([16, 64], valid=[n, m]), tile([16, 64], valid=[8, 8]))) == ["n", "m"]


def test_dispatch():
    with pytest.raises(TypeError, match="cannot mix Tensor and Tile"):
        pl["part_add"](tensor([4, 9]), tile([4, 9]))
    with pytest.raises(TypeError, match="expected Tensor or Tile operands"):
        pl["part_add"](tensor([4, 9]), 1.0)
    assert pl_tile["part_max"](src0=tile([4, 9]), src1=tile([4, 9])).op.name == "tile.part_max"


@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.parametrize("level", [tensor, tile])
def test_semantics(name, level):
    a, b = integers((4, 9), 1, 9, 1), integers((4, 9), 1, 9, 2)
    call = pl[name](level([4, 9], D.INT32, valid=[4, 7]), level([4, 9], D.INT32, valid=[2, 5]))
    expected = a.copy()
    expected[:2, :5] = NUMPY[name](a, b)[:2, :5]
    check(run(call, value(a, valid=(4, 7)), value(b, valid=(2, 5))), expected, valid=(4, 7))
    # the same with the operands changed over
    expected = b.copy()
    expected[:2, :5] = NUMPY[name](a, b)[:2, :5]
    check(run(call, value(a, valid=(2, 5)), value(b, valid=(4, 7))), expected, valid=(4, 7))


def test_poison():
    a = value(integers((2, 4), 1, 9, 1), valid=(2, 4), undefined=[(0, 0), (1, 3)])
    b = value(integers((2, 4), 1, 9, 2), valid=(2, 3), undefined=[(1, 1)])
    call = pl["part_add"](tile([2, 4], D.INT32), tile([2, 4], D.INT32, valid=[2, 3]))
    expected = integers((2, 4), 1, 9, 1)
    expected[:, :3] += integers((2, 4), 1, 9, 2)[:, :3]
    check(run(call, a, b), expected, undefined=[(0, 0), (1, 1), (1, 3)])
