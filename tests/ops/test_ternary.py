"""rem(s), addc/subc/addsc/subsc, lrelu, prelu, rsqrt."""

import numpy as np
import pytest
from ops_kit import (
    D,
    check,
    integers,
    ir_tile,
    pl,
    pl_tensor,
    pl_tile,
    random,
    run,
    scalar,
    tensor,
    tile,
    valid_of,
    value,
)

from pypto.ir.expr import ConstFloat
from pypto.ops.registry import REGISTRY, create_op_call

TMP = value(np.zeros((4, 9), np.float32))


def test_rem_types():
    t = tile([4, 9], D.FP32, valid=[3, 9])
    call = pl["rem"](t, tile([1, 9], D.FP16), tile([2, 2], D.INT8))
    assert (call.op.name, call.type.dtype, valid_of(call)) == ("tile.rem", D.FP32, [3, 9])
    call = pl["rems"](t, 2, tile([99, 99], D.FP32))
    assert (call.op.name, valid_of(call), call.args[1].type.dtype) == ("tile.rems", [3, 9], D.FP32)
    assert pl["rems"](tile([4, 9], D.INT32), 2.5, tile([4, 9])).type.dtype is D.FP32
    for name, rhs in (("tile.rem", t), ("tile.rems", scalar(D.FP32))):
        with pytest.raises(ValueError, match=r"third argument \(tmp\)"):
            create_op_call(name, [t, rhs, tensor([4, 9])], {})


def test_rem_follows_the_divisor():
    a, b = value([[7.5, -7.5, 7.5, -7.5]], D.FP32), value([[2.0, 2.0, -2.0, -2.0]], D.FP32)
    t = tile([1, 4])
    x, y = a.data.astype(float), b.data.astype(float)
    check(run(pl["rem"](t, t, t), a, b, TMP), x - np.floor(x / y) * y)
    check(run(pl["rems"](tile([1, 4], D.INT32), -3, t), value([[7, -7, 6, -6]], D.INT32), -3, TMP), [[-2, -1, 0, 0]])


@pytest.mark.parametrize("name, sign", [("addc", 1), ("subc", -1), ("addsc", 1), ("subsc", -1)])
def test_three_operands(name, sign):
    a, b, c = integers((4, 9), 0, 99, 1), integers((4, 9), 0, 99, 2), integers((4, 9), 0, 99, 3)
    with_scalar = name.endswith("sc")
    rhs = 5 if with_scalar else tile([4, 9], D.INT32)
    call = pl[name](tile([4, 9], D.INT32, valid=[3, 9]), rhs, tile([4, 9], D.INT32, valid=[4, 7]))
    assert (call.op.name, call.type.dtype, valid_of(call)) == (f"tile.{name}", D.INT32, [3, 7])
    second = 5 if with_scalar else b
    result = run(
        call, value(a, valid=(3, 9)), second if with_scalar else value(b), value(c, valid=(4, 7), undefined=[(1, 1)])
    )
    check(result, a + sign * second + sign * c, valid=(3, 7), undefined=[(1, 1)])
    wide = pl[name](tile([4, 9], D.INT32), rhs, tile([1, 9], D.FP32))
    assert wide.type.dtype is D.FP32
    with pytest.raises(ValueError, match="Cannot broadcast shapes"):
        pl[name](tile([4, 9], D.INT32), rhs, tile([4, 8], D.INT32))


def test_lrelu():
    call = pl["lrelu"](tile([2, 3], D.FP16, valid=[2, 2]), 2)
    assert (call.type.dtype, valid_of(call)) == (D.FP16, [2, 2])
    assert type(call.args[1]) is ConstFloat and call.args[1].type.dtype is D.FP32
    x = value([[-1.0, 2.0, 0.0]], D.FP32)
    check(run(pl["lrelu"](tile([1, 3]), 0.25), x, 0.25), [[-0.25, 2.0, 0.0]])
    nan = run(pl["lrelu"](tile([1, 1]), 0.25), value([[np.nan]], D.FP32), 0.25)
    assert np.isnan(nan.data).all()
    with pytest.raises(ValueError, match="requires a float tile"):
        pl["lrelu"](tile([2, 3], D.INT32), 0.5)


def test_prelu():
    t, slope = tile([2, 3], valid=[2, 2]), tile([2, 3], valid=[2, 2])
    call = pl["prelu"](t, slope, tile([4, 32], D.UINT8))
    assert (call.type.dtype, valid_of(call)) == (D.FP32, [2, 2])
    assert REGISTRY["tile.prelu"].not_in_place
    x, s = random((2, 3), 1), random((2, 3), 2)
    result = run(call, value(x, valid=(2, 2)), value(s, valid=(2, 2)), TMP)
    check(result, np.where(x > 0, x, x * s), valid=(2, 2), rtol=1e-6)
    for slope, phrase in (
        (tile([2, 3], D.FP16, valid=[2, 2]), "same dtype"),
        (tile([2, 4], valid=[2, 2]), "same shape"),
        (tile([2, 3]), "same valid_shape"),
        (tile([1, 2, 3]), "rank 2"),
    ):
        with pytest.raises(ValueError, match=phrase):
            pl["prelu"](t, slope, tile([4, 32], D.UINT8))
    with pytest.raises(ValueError, match="requires tile dtype in {FP16, FP32}"):
        pl["prelu"](tile([2, 3], D.BF16), tile([2, 3], D.BF16), tile([4, 32], D.UINT8))
    with pytest.raises(ValueError, match="tmp of rank 2"):
        pl["prelu"](t, tile([2, 3], valid=[2, 2]), tile([32], D.UINT8))


def test_rsqrt():
    x = random((2, 3), 1, 0.5, 9.0)
    call = pl["rsqrt"](tensor([2, 3], D.INT32, valid=[2, 2]))
    assert (call.type.dtype, valid_of(call), dict(call.kwargs)) == (D.FP32, [2, 2], {})
    assert dict(pl["rsqrt"](tensor([2, 3]), high_precision=True).kwargs) == {"high_precision": True}
    assert dict(pl_tensor["rsqrt"](tensor([2, 3]), False).kwargs) == {}
    check(run(pl["rsqrt"](tensor([2, 3])), value(x)), 1 / np.sqrt(x), rtol=1e-6)
    t = tile([2, 3], D.FP16)
    assert pl["rsqrt"](t).type.dtype is D.FP16
    assert pl["rsqrt"](t, high_precision=False).op.name == "tile.rsqrt"
    assert len(pl_tile["rsqrt"](t, tile([2, 3], D.FP16)).args) == 2
    assert len(ir_tile["rsqrt"](t).args) == 1
    with pytest.raises(TypeError, match="'high_precision' is not supported for Tile operands.*pl.tile.rsqrt"):
        pl["rsqrt"](t, high_precision=True)
    with pytest.raises(ValueError, match="tmp dtype"):
        pl_tile["rsqrt"](t, tile([2, 3], D.FP32))
    with pytest.raises(ValueError, match="tmp shape"):
        pl_tile["rsqrt"](t, tile([2, 4], D.FP16))
    with pytest.raises(ValueError, match="float tile"):
        pl["rsqrt"](tile([2, 3], D.INT32))
    with pytest.raises(TypeError, match="expected Tensor or Tile"):
        pl["rsqrt"](2.0)
    result = run(pl_tile["rsqrt"](tile([2, 3]), tile([2, 3])), value(x), TMP)
    check(result, 1 / np.sqrt(x), rtol=1e-6)
