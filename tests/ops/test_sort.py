"""sort32 and mrgsort."""

import numpy as np
import pytest
from ops_kit import (
    D,
    integers,
    ir_tensor,
    ir_tile,
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

from pypto.ir.expr import Var
from pypto.ir.type import ScalarType
from pypto.ops.registry import create_op_call


def interleave(values, indices):
    """Pairs in FP32: the value, then the bits of its index."""
    out = np.empty((*values.shape[:-1], 2 * values.shape[-1]), np.float32)
    out[..., 0::2] = values
    out[..., 1::2] = indices.astype(np.uint32).view(np.float32)
    return out


def sorted_list(values, indices):
    """One row of pairs, sorted by value descending, ties by smaller index."""
    order = sorted(range(len(values)), key=lambda i: (-values[i], indices[i]))
    return interleave(np.array(values)[None, order], np.array(indices)[None, order])[0]


@pytest.mark.parametrize("level", [tensor, tile])
def test_sort32_types(level):
    call = pl["sort32"](level([4, 64]), level([4, 64], D.UINT32))
    assert (shape_of(call), call.type.dtype, valid_of(call)) == ([4, 128], D.FP32, [4, 128])
    assert valid_of(pl["sort32"](level([4, 64], valid=[3, 64]), level([4, 64], D.UINT32))) == [3, 128]
    half = pl["sort32"](level([4, 64], D.FP16), level([4, 64], D.UINT32))
    assert shape_of(half) == [4, 256], "an FP16 pair takes four elements"
    n = Var("n", ScalarType(D.INDEX))
    assert shape_of(pl["sort32"](level([n, 64]), level([n, 64], D.UINT32))) == ["n", 128]


@pytest.mark.parametrize("level", [tensor, tile])
def test_sort32_errors(level):
    good = level([4, 64], D.UINT32)
    for src, idx, phrase in (
        (level([4, 64], D.INT32), good, "requires src dtype in {FP16, FP32}"),
        (level([4, 64]), level([4, 64], D.INT32), "idx dtype"),
        (level([4, 64]), level([64], D.UINT32), "idx rank"),
        (level([4, 64]), level([4, 32], D.UINT32), "idx shape to match src shape"),
        (level([4, 40]), level([4, 40], D.UINT32), "positive multiple of 32"),
        (level([4, 64], valid=[4, 40]), good, "fully valid along its last dimension"),
    ):
        with pytest.raises(ValueError, match=phrase):
            pl["sort32"](src, idx)


def test_dispatch():
    with pytest.raises(TypeError, match="cannot mix Tensor and Tile"):
        pl["sort32"](tensor([4, 64]), tile([4, 64], D.UINT32))
    with pytest.raises(TypeError, match="pl.mrgsort: cannot mix Tensor and Tile"):
        pl["mrgsort"](tensor([4, 64]), tile([4, 64]))
    with pytest.raises(TypeError, match="Tensor inputs must not pass tmp"):
        pl["mrgsort"](tensor([4, 64]), tensor([4, 64]), tmp=tile([4, 128]))
    with pytest.raises(TypeError, match="Tile inputs require tmp"):
        pl["mrgsort"](tile([4, 64]), tile([4, 64]))


@pytest.mark.parametrize("level", [tensor, tile])
def test_format1_types(level):
    call = pl["mrgsort"](level([1, 512]), block_len=64)
    assert (call.op.name.split(".")[1], shape_of(call)) == ("mrgsort_format1", [1, 512])
    for block in (0, -64, 32, 100):
        with pytest.raises(ValueError, match="multiple of 64"):
            pl["mrgsort"](level([1, 512]), block_len=block)
    with pytest.raises(ValueError, match="constant positive multiple of 64"):
        pl["mrgsort"](level([1, 512]), block_len=Var("n", ScalarType(D.INT32)))
    with pytest.raises(ValueError, match="requires src dtype"):
        pl["mrgsort"](level([1, 512], D.INT32), block_len=64)
    others = [level([1, 512])]
    for kwargs in ({"src1": others[0]}, {"exhausted": True}):
        with pytest.raises(ValueError, match="mutually exclusive"):
            pl["mrgsort"](level([1, 512]), block_len=64, **kwargs)
    with pytest.raises(ValueError, match="missing block_len .* or src1"):
        pl["mrgsort"](level([1, 512]))


def test_format2_types():
    lists = [tensor([1, 64]), tensor([1, 128]), tensor([1, 64]), tensor([1, 32])]
    assert shape_of(pl["mrgsort"](*lists[:2])) == [1, 192]
    call = pl["mrgsort"](*lists, exhausted=True)
    assert (call.op.name, shape_of(call), dict(call.kwargs)) == (
        "tensor.mrgsort_format2",
        [1, 288],
        {"exhausted": True},
    )
    tiles = [tile([1, 64])] * 3
    call = pl["mrgsort"](*tiles, tmp=tile([1, 192]))
    assert (call.op.name, len(call.args), shape_of(call)) == ("tile.mrgsort_format2", 4, [1, 192])
    assert pl_tile["mrgsort"](tiles[0], tiles[0], None, None, tile([1, 128]), True).kwargs["exhausted"] is True
    assert ir_tensor["mrgsort_format2"](*lists[:2]).op.name == "tensor.mrgsort_format2"
    assert len(ir_tile["mrgsort_format2"](*tiles, tile([1, 192]), exhausted=True).args) == 4
    assert ir_tile["mrgsort_format1"](tile([1, 512]), 64).op.name == "tile.mrgsort_format1"
    with pytest.raises(ValueError, match="matching dtype"):
        pl["mrgsort"](tensor([1, 64]), tensor([1, 64], D.FP16))
    with pytest.raises(ValueError, match="matching rank"):
        pl["mrgsort"](tensor([1, 64]), tensor([64]))
    with pytest.raises(ValueError, match="matching leading dimensions"):
        pl["mrgsort"](tensor([1, 64]), tensor([2, 64]))
    with pytest.raises(ValueError, match="src3 requires src2"):
        pl_tensor["mrgsort"](tensor([1, 64]), tensor([1, 64]), src3=tensor([1, 64]))
    with pytest.raises(ValueError, match="requires 3 to 5 arguments"):
        create_op_call("tile.mrgsort_format2", [tile([1, 64])] * 2, {})


def test_sort32_semantics():
    values = integers((3, 64), 0, 9).astype(np.float32)  # many ties
    indices = np.random.default_rng(1).permuted(np.tile(np.arange(64), (3, 1)), axis=1).astype(np.uint32)
    expected = np.concatenate(
        [np.stack([sorted_list(values[r, b : b + 32], indices[r, b : b + 32]) for r in range(3)]) for b in (0, 32)],
        axis=1,
    )
    result = run(pl["sort32"](tile([3, 64]), tile([3, 64], D.UINT32)), value(values), value(indices))
    np.testing.assert_array_equal(result.data.view(np.uint32), expected.view(np.uint32))
    assert result.mask is None


def test_sort32_of_half_values_takes_four_slots():
    values = random((1, 32), 4).astype(np.float16)
    indices = np.arange(70000, 70032, dtype=np.uint32)[None]
    result = run(pl["sort32"](tensor([1, 32], D.FP16), tensor([1, 32], D.UINT32)), value(values), value(indices))
    order = np.argsort(-values[0], kind="stable")
    slots = result.data.reshape(32, 4)
    np.testing.assert_array_equal(slots[:, 0], values[0, order])
    assert not slots[:, 1].any()
    np.testing.assert_array_equal(np.ascontiguousarray(slots[:, 2:]).view(np.uint32)[:, 0], indices[0, order])


def test_undefined_elements_poison_their_block():
    result = run(
        pl["sort32"](tile([1, 64]), tile([1, 64], D.UINT32)),
        value(random((1, 64)), undefined=[(0, 40)]),
        value(np.arange(64, dtype=np.uint32)[None]),
    )
    assert result.mask[0, :64].all() and not result.mask[0, 64:].any()


def lists_of(sizes, seed=0):
    start, out = 0, []
    for k, size in enumerate(sizes):
        values = integers((size,), 0, 20, seed + k).astype(np.float32)
        out.append(sorted_list(values, np.arange(start, start + size)))
        start += size
    return out


def merged(lists):
    pairs = [(p[0], k, i, p) for k, one in enumerate(lists) for i, p in enumerate(one.reshape(-1, 2))]
    return np.concatenate([p for *_, p in sorted(pairs, key=lambda t: (-t[0], t[1], t[2]))])


def test_format1_merges_four_runs():
    lists = lists_of([32] * 8)
    x = np.concatenate(lists)[None]
    result = run(pl["mrgsort"](tensor([1, 512]), block_len=64), value(x), 64)
    expected = np.concatenate([merged(lists[:4]), merged(lists[4:])])[None]
    np.testing.assert_array_equal(result.data.view(np.uint32), expected.view(np.uint32))
    once_more = run(pl["mrgsort"](tensor([1, 512]), block_len=256), result, 256)
    np.testing.assert_array_equal(once_more.data.view(np.uint32), merged(lists)[None].view(np.uint32))


def test_format2_merges_lists():
    lists = lists_of([32, 64, 16])
    values = [value(one[None]) for one in lists]
    call = pl["mrgsort"](*[tensor([1, one.size]) for one in lists])
    result = run(call, *values)
    np.testing.assert_array_equal(result.data.view(np.uint32), merged(lists)[None].view(np.uint32))
    tiles = [tile([1, one.size]) for one in lists]
    total = sum(one.size for one in lists)
    on_chip = run(pl["mrgsort"](*tiles, tmp=tile([1, total])), *values, value(np.zeros((1, total), np.float32)))
    np.testing.assert_array_equal(on_chip.data, result.data)


def test_exhausted_stops_with_the_first_list_used_up():
    a, b = (
        interleave(np.array([[9.0, 8.0, 1.0]]), np.arange(3)[None]),
        interleave(np.array([[7.0, 6.0]]), np.array([[3, 4]])),
    )
    call = pl["mrgsort"](tensor([1, 6]), tensor([1, 4]), exhausted=True)
    result = run(call, value(a), value(b))
    assert result.data[0, 0:8:2].tolist() == [9, 8, 7, 6]
    assert result.mask[0].tolist() == [True] * 8 + [False] * 2


def test_lists_have_a_dimension():
    for level in (tensor, tile):
        with pytest.raises(ValueError, match="rank >= 1"):
            pl["sort32"](level([]), level([], D.UINT32))
        with pytest.raises(ValueError, match="rank >= 1"):
            pl["mrgsort"](level([]), block_len=64)
        with pytest.raises(ValueError, match="rank >= 1"):
            pl["mrgsort"](level([]), level([]), tmp=None if level is tensor else tile([]))
