"""scatter (index, mask) and scatter_update."""

import numpy as np
import pytest
from ops_kit import D, check, integers, ir_tensor, pl, pl_tensor, pl_tile, run, shape_of, tensor, tile, valid_of, value

from pypto.ir.enums import ArgEffect
from pypto.ir.expr import ConstInt
from pypto.ops.registry import REGISTRY, create_op_call, get_op_arg_effect


def test_index_form_types():
    x, i, s = tensor([8, 16], D.FP16, valid=[6, 16]), tensor([8, 4], D.INT16), tensor([8, 4], D.FP16)
    call = pl["scatter"](x, dim=-1, index=i, src=s)
    assert (call.op.name, shape_of(call), valid_of(call), dict(call.kwargs)) == (
        "tensor.scatter",
        [8, 16],
        [6, 16],
        {"dim": -1},
    )
    assert pl_tensor["scatter"](x, -1, i, s).kwargs["dim"] == -1
    for a, dim, index, src, phrase in (
        (tensor([16], D.FP16), -1, i, s, "input of rank 2"),
        (x, 1, i, s, "only dim=-1"),
        (tensor([8, 16], D.INT64), -1, i, tensor([8, 4], D.INT64), "requires input dtype in"),
        (x, -1, i, tensor([8, 4], D.FP32), "same dtype"),
        (x, -1, tensor([8, 4], D.INT32), s, "index dtype int16"),
        (tensor([8, 16]), -1, i, tensor([8, 4]), "index dtype int32"),
        (x, -1, tensor([8, 5], D.INT16), s, "index shape to equal the src shape"),
        (x, -1, tensor([9, 4], D.INT16), tensor([9, 4], D.FP16), "src extents <= input extents"),
    ):
        with pytest.raises(ValueError, match=phrase):
            pl["scatter"](a, dim, index, src)


def test_forms():
    x, d = tensor([4, 8]), tensor([4, 16])
    call = pl["scatter"](x, mask_pattern=1, dst=d)
    assert (call.op.name, shape_of(call), dict(call.kwargs)) == ("tensor.scatter_mask", [4, 16], {"mask_pattern": 1})
    assert ir_tensor["scatter_mask"](x, d, 2).kwargs["mask_pattern"] == 2
    with pytest.raises(ValueError, match="mutually exclusive"):
        pl["scatter"](x, -1, mask_pattern=1, dst=d)
    with pytest.raises(ValueError, match="missing dst"):
        pl["scatter"](x, mask_pattern=1)
    with pytest.raises(ValueError, match="missing index, src"):
        pl["scatter"](x, -1)
    with pytest.raises(ValueError, match="missing dim, index, src"):
        pl["scatter"](x)


def test_mask_form_errors():
    for build, level in (
        (lambda s, d, p: pl["scatter"](s, mask_pattern=p, dst=d), tensor),
        (lambda s, d, p: pl_tile["scatter_mask"](d, s, p), tile),
    ):
        assert shape_of(build(level([4, 8]), level([4, 32]), 3)) == [4, 32]
        with pytest.raises(ValueError, match="4 times the source columns"):
            build(level([4, 8]), level([4, 16]), 3)
        with pytest.raises(ValueError, match="equal rows"):
            build(level([4, 8]), level([5, 16]), 1)
        with pytest.raises(ValueError, match="same dtype"):
            build(level([4, 8]), level([4, 16], D.FP16), 1)
        with pytest.raises(ValueError, match="mask_pattern in 1..7"):
            build(level([4, 8]), level([4, 16]), 0)
        with pytest.raises(ValueError, match="rank 2"):
            build(level([8]), level([4, 16]), 1)


def test_index_form_semantics():
    x, s = integers((3, 8), 0, 99, 1), integers((3, 4), 100, 199, 2)
    index = np.array([[0, 7, 3, 3], [1, 1, 1, 2], [5, 4, 0, 6]], np.int32)  # repeated: the last one stays
    expected = x.copy()
    for r in range(3):
        for c in range(4):
            expected[r, index[r, c]] = s[r, c]
    source = value(x)
    call = pl["scatter"](tensor([3, 8], D.INT32), -1, tensor([3, 4], D.INT32), tensor([3, 4], D.INT32))
    check(run(call, source, value(index), value(s)), expected)
    np.testing.assert_array_equal(source.data, x)  # a copy
    poisoned = run(call, source, value(index), value(s, undefined=[(2, 1)]))
    check(poisoned, expected, undefined=[(2, 4)])
    partial = pl["scatter"](
        tensor([3, 8], D.INT32), -1, tensor([3, 4], D.INT32, valid=[2, 4]), tensor([3, 4], D.INT32, valid=[2, 4])
    )
    expected[2] = x[2]
    check(run(partial, source, value(index, valid=(2, 4)), value(s, valid=(2, 4))), expected)


def test_an_undefined_index_may_have_written_anywhere():
    call = pl["scatter"](tensor([1, 3], D.INT32), -1, tensor([1, 1], D.INT32), tensor([1, 1], D.INT32))
    result = run(call, value([[1, 2, 3]], D.INT32), value([[0]], D.INT32, undefined=[(0, 0)]), value([[9]], D.INT32))
    assert not result.mask.any()


def test_tile_scatter_writes_flat_positions_in_place():
    dst, src, t = tile([2, 4], D.INT32, valid=[2, 3]), tile([1, 3], D.INT32), tile([1, 3], D.INT32)
    call = pl_tile["scatter"](dst, src, t)
    assert call.type.shape is dst.type.shape and valid_of(call) == [2, 3]
    target = value([[1, 2, 3, 4], [5, 6, 7, 8]], D.INT32)
    result = run(call, target, value([[10, 20, 30]], D.INT32), value([[6, 0, 8]], D.INT32))
    assert result.buffer is target.buffer
    check(result, [[20, 2, 3, 4], [5, 6, 10, 8]])
    for name in ("tile.scatter", "tile.scatter_mask", "tile.scatter_update"):
        assert get_op_arg_effect(name, 0) is ArgEffect.ReadWrite and REGISTRY[name].alias_operand == 0


@pytest.mark.parametrize(
    "pattern, group, start", [(1, 2, 0), (2, 2, 1), (3, 4, 0), (4, 4, 1), (5, 4, 2), (6, 4, 3), (7, 1, 0)]
)
def test_mask_form_semantics(pattern, group, start):
    s, d = integers((3, 4), 0, 99, 1), integers((3, 4 * group), 100, 199, 2)
    expected = d.copy()
    expected[:, start::group] = s
    call = pl["scatter"](tensor([3, 4], D.INT32), mask_pattern=pattern, dst=tensor(d.shape, D.INT32))
    check(run(call, value(s), value(d)), expected)
    on_chip = pl_tile["scatter_mask"](tile(d.shape, D.INT32), tile([3, 4], D.INT32), pattern)
    zeroed = np.zeros_like(d)
    zeroed[:, start::group] = s
    check(run(on_chip, value(d), value(s)), zeroed)


def test_scatter_update_types():
    for level, build in ((tensor, pl_tensor), (tile, pl_tile)):
        x, i, s = level([16, 8]), level([2, 3], D.INT32), level([6, 8])
        call = build["scatter_update"](x, i, s)
        assert (shape_of(call), dict(call.kwargs)) == ([16, 8], {"dim": -2})
        for other in (
            pl["scatter_update"](x, -2, i, s),
            pl["scatter_update"](x, ConstInt(-2, D.INDEX), i, s),
            pl["scatter_update"](x, i, s, dim=-2),
            pl["scatter_update"](x, dim=-2, index=i, src=s),
            pl["scatter_update"](x, i, src=s),
            pl["scatter_update"](x, -2, i, src=s),
        ):
            assert [a is b for a, b in zip(other.args, (x, i, s), strict=True)] == [True] * 3
        for bad in ((x, -1, i, s), (x, 0, i, s)):
            with pytest.raises(ValueError, match="only dim=-2"):
                pl["scatter_update"](*bad)
        with pytest.raises(ValueError, match="rank 2 or 4"):
            pl["scatter_update"](level([2, 3, 4]), i, level([2, 3, 4]))
        with pytest.raises(ValueError, match="index of rank 2"):
            pl["scatter_update"](x, level([6], D.INT32), s)
        with pytest.raises(ValueError, match="integer index"):
            pl["scatter_update"](x, level([2, 3]), s)
        with pytest.raises(ValueError, match="src of rank 2"):
            pl["scatter_update"](x, i, level([2, 3, 1, 8]))
        with pytest.raises(ValueError, match="same dtype"):
            pl["scatter_update"](x, i, level([6, 8], D.FP16))
        with pytest.raises(TypeError, match="requires src"):
            pl["scatter_update"](x, i)
        with pytest.raises(TypeError, match="unexpected keyword argument 'axis'"):
            pl["scatter_update"](x, i, s, axis=1)
    with pytest.raises(ValueError, match="only dim=-2"):
        create_op_call("tile.scatter_update", [x, i, s], {"dim": 0})


def test_scatter_update_semantics():
    x, s = integers((6, 4), 0, 99, 1), integers((3, 4), 100, 199, 2)
    index = np.array([[4, 0, 4]], np.int32)
    expected = x.copy()
    for k, row in enumerate(index.ravel()):
        expected[row] = s[k]
    call = pl["scatter_update"](tensor([6, 4], D.INT32), tensor([1, 3], D.INT32), tensor([3, 4], D.INT32))
    check(run(call, value(x), value(index), value(s)), expected)
    target = value(x)
    on_chip = pl["scatter_update"](tile([6, 4], D.INT32), tile([1, 3], D.INT32), tile([3, 4], D.INT32))
    check(run(on_chip, target, value(index), value(s)), expected)
    np.testing.assert_array_equal(target.data, expected)


def test_scatter_update_of_blocks():
    x, s = integers((2, 3, 1, 4), 0, 99, 1), integers((1, 2, 1, 4), 100, 199, 2)
    index = np.array([[5, 1]], np.int32)
    expected = x.reshape(6, 4).copy()
    expected[[5, 1]] = s.reshape(2, 4)
    call = pl["scatter_update"](tensor([2, 3, 1, 4], D.INT32), tensor([1, 2], D.INT32), tensor([1, 2, 1, 4], D.INT32))
    check(run(call, value(x), value(index), value(s)), expected.reshape(2, 3, 1, 4))
