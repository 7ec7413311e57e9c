"""gather (index, mask, compare), gatherb, gather_row, paged_gather."""

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

from pypto.ir.enums import ArgEffect, MemorySpace
from pypto.ir.expr import Var
from pypto.ir.type import ScalarType, TensorType, TileType, TupleType
from pypto.ops.registry import REGISTRY, create_op_call, get_op_arg_effect
from pypto.ops.values import OutOfBoundsError

# --- index form -------------------------------------------------------------------------------------------------------


def test_index_form_types():
    call = pl["gather"](tensor([8, 16], D.FP16), -1, tensor([8, 4], D.INT32, valid=[6, 4]))
    assert (call.op.name, shape_of(call), valid_of(call), call.type.dtype) == ("tensor.gather", [8, 4], [6, 4], D.FP16)
    assert dict(call.kwargs) == {"dim": -1}
    assert pl["gather"](tensor([8, 16], D.INT16), dim=0, index=tensor([20, 16], D.INT16)).op.name == "tensor.gather"
    x, index = tensor([8, 16]), tensor([8, 4], D.INT32)
    for a, dim, i, phrase in (
        (tensor([8, 16], D.BF16), 1, index, "requires input dtype in {INT16, INT32, FP16, FP32}"),
        (x, 1, tensor([8, 4], D.INT64), "index dtype INT32"),
        (x, 1, tensor([8, 4], D.INT16), "16-bit input"),
        (tensor([16]), 0, tensor([4], D.INT32), "rank >= 2"),
        (x, 1, tensor([1, 8, 4], D.INT32), "index of rank 2"),
        (x, 2, index, "out of range"),
        (x, -3, index, "out of range"),
        (x, 1, tensor([9, 4], D.INT32), "non-gather axes"),
    ):
        with pytest.raises(ValueError, match=phrase):
            pl["gather"](a, dim, i)
    with pytest.raises(ValueError, match="requires a 'dim' kwarg"):
        create_op_call("tensor.gather", [x, index], {})


@pytest.mark.parametrize(
    "arguments",
    [
        {"dim": 1, "mask_pattern": 1},
        {"index": 1, "kvalue": 1},
        {"mask_pattern": 1, "out_cols": 4},
        {"output_dtype": D.INT32, "offset": 3},
    ],
)
def test_forms_exclude_each_other(arguments):
    with pytest.raises(ValueError, match="mutually exclusive"):
        pl["gather"](tensor([8, 16]), **arguments)


@pytest.mark.parametrize(
    "arguments, missing",
    [
        ({"dim": 1}, "index"),
        ({"index": tensor([8, 4], D.INT32)}, "dim"),
        ({}, "dim, index"),
        ({"output_dtype": D.INT32}, "mask_pattern"),
        ({"kvalue": 1.0}, "cmp_mode, out_cols"),
        ({"cmp_mode": "eq", "out_cols": 4}, "kvalue"),
        ({"offset": 2}, "kvalue"),
    ],
)
def test_incomplete_forms(arguments, missing):
    with pytest.raises(ValueError, match=f"missing {missing}"):
        pl["gather"](tensor([8, 16]), **arguments)


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_index_form_semantics(dim):
    x = random((3, 4, 5), 1)
    axis = dim % 3
    shape = [2, 3, 4]
    index = integers(shape, 0, x.shape[axis], 2)
    expected = np.empty(shape, np.float32)
    for position in np.ndindex(*shape):
        source = list(position)
        source[axis] = index[position]
        expected[position] = x[tuple(source)]
    check(run(pl["gather"](tensor(x.shape), dim, tensor(shape, D.INT32)), value(x), value(index)), expected)


def test_index_form_poison():
    x = value(random((2, 4), 1), valid=(2, 3), undefined=[(1, 0)])
    index = value([[0, 3, 9], [0, 1, -1]], D.INT32)
    result = run(pl["gather"](tensor([2, 4], valid=[2, 3]), 1, tensor([2, 3], D.INT32)), x, index)
    data = random((2, 4), 1)
    expected = np.array([[data[0, 0], 0, 0], [0, data[1, 1], 0]])
    check(result, expected, undefined=[(0, 1), (0, 2), (1, 0), (1, 2)])


def test_tile_gather():
    call = pl_tile["gather"](tile([4, 6]), tile([2, 8], D.INT32, valid=[2, 5]), tile([4, 6], D.INT32))
    assert (shape_of(call), valid_of(call), call.type.memory_space) == ([2, 8], [2, 5], MemorySpace.Vec)
    x, index = random((4, 6), 1), integers((2, 8), 0, 24, 2)
    result = run(call, value(x), value(index, valid=(2, 5)), value(np.zeros((4, 6), np.int32)))
    check(result, x.ravel()[index], valid=(2, 5))
    index[0, 0] = 24
    result = run(call, value(x, undefined=[(0, 3)]), value(index, valid=(2, 5)), None)
    gone = [(0, 0)] + [tuple(p) for p in np.argwhere(index[:, :5] == 3)]
    check(result, x.ravel()[np.minimum(index, 23)], valid=(2, 5), undefined=gone)
    with pytest.raises(ValueError, match=r"third argument \(tmp\)"):
        create_op_call("tile.gather", [tile([4, 6]), tile([2, 8], D.INT32), tensor([4, 6])], {})
    with pytest.raises(ValueError, match="16-bit input"):
        pl_tile["gather"](tile([4, 6]), tile([2, 8], D.INT16), tile([4, 6]))


# --- 32-byte blocks ---------------------------------------------------------------------------------------------------


def test_gatherb_types():
    call = pl["gatherb"](tile([8, 64]), tile([4, 8], D.UINT32, valid=[3, 5]))
    assert (shape_of(call), valid_of(call), call.type.dtype) == ([4, 64], [3, 40], D.FP32)
    call = pl["gatherb"](tile([8, 64]), tile([4, 8], D.UINT32), output_dtype=D.INT16)
    assert (shape_of(call), call.type.dtype) == ([4, 128], D.INT16)
    with pytest.raises(ValueError, match="offset dtype UINT32"):
        pl["gatherb"](tile([8, 64]), tile([4, 8], D.INT32))
    for columns in (7, Var("n", ScalarType(D.INDEX))):
        with pytest.raises(ValueError, match="positive multiple of 8"):
            pl["gatherb"](tile([8, 64]), tile([4, columns], D.UINT32))
    with pytest.raises(ValueError, match="src of rank 2"):
        pl["gatherb"](tile([64]), tile([4, 8], D.UINT32))


def test_gatherb_semantics():
    x = random((8, 16), 1)
    offsets = np.array([[0, 32, 448, 480, 64, 64, 0, 100], [4, 8, 12, 16, 20, 24, 28, 500]], np.uint32)
    result = run(pl["gatherb"](tile([8, 16]), tile([2, 8], D.UINT32)), value(x, undefined=[(0, 1)]), value(offsets))
    raw = x.tobytes()
    expected, gone = np.zeros((2, 64), np.float32), []
    for r in range(2):
        for c in range(8):
            start = int(offsets[r, c])
            if start + 32 > len(raw):
                gone += [(r, c * 8 + k) for k in range(8)]
                continue
            expected[r, c * 8 : c * 8 + 8] = np.frombuffer(raw[start : start + 32], np.float32)
            gone += [(r, c * 8 + k) for k in range(8) if start <= 4 < start + 32 and start + 4 * k == 4]
    check(result, expected, undefined=gone)


# --- mask form --------------------------------------------------------------------------------------------------------

COLUMNS = {
    1: lambda c: c % 2 == 0,
    2: lambda c: c % 2 == 1,
    3: lambda c: c % 4 == 0,
    4: lambda c: c % 4 == 1,
    5: lambda c: c % 4 == 2,
    6: lambda c: c % 4 == 3,
    7: lambda c: True,
}


@pytest.mark.parametrize("pattern", COLUMNS)
def test_mask_form(pattern):
    picked = [c for c in range(16) if COLUMNS[pattern](c)]
    x = random((3, 16), 1)
    for build, level in ((pl["gather"], tensor), (pl_tile["gather_mask"], tile)):
        call = build(level([3, 16]), mask_pattern=pattern)
        assert (shape_of(call), dict(call.kwargs)) == ([3, len(picked)], {"mask_pattern": pattern})
        check(run(call, value(x)), x[:, picked])
        for valid in range(1, 16):
            call = build(level([3, 16], valid=[2, valid]), mask_pattern=pattern)
            used = [c for c in picked if c < valid]
            assert valid_of(call) == [2, len(used)]
            check(run(call, value(x, valid=(2, valid))), x[:, picked], valid=(2, len(used)))


def test_mask_form_reinterprets_bits():
    x = random((2, 8), 1)
    call = pl["gather"](tensor([2, 8]), mask_pattern=2, output_dtype=D.INT32)
    assert call.type.dtype is D.INT32
    result = run(call, value(x))
    np.testing.assert_array_equal(result.data, np.ascontiguousarray(x[:, 1::2]).view(np.int32))
    assert ir_tensor["gather_mask"](tensor([2, 8]), 2, D.INT32).type.dtype is D.INT32


def test_mask_form_errors():
    for build, level in ((pl["gather"], tensor), (pl_tile["gather_mask"], tile)):
        with pytest.raises(ValueError, match="divisible by 2"):
            build(level([2, 9]), mask_pattern=1)
        with pytest.raises(ValueError, match="divisible by 4"):
            build(level([2, 10]), mask_pattern=3)
        with pytest.raises(ValueError, match="same bit width"):
            build(level([2, 8]), mask_pattern=1, output_dtype=D.FP16)
        for pattern in (0, 8):
            with pytest.raises(ValueError, match="mask_pattern in 1..7"):
                build(level([2, 8]), mask_pattern=pattern)
        with pytest.raises(ValueError, match="rank 2"):
            build(level([8]), mask_pattern=1)
        with pytest.raises(ValueError, match="dtype in {INT16, INT32, FP16, FP32}"):
            build(level([2, 8], D.INT8), mask_pattern=1)


# --- compare form -----------------------------------------------------------------------------------------------------


def test_compare_form_types():
    call = pl["gather"](tensor([4, 16], D.FP16), kvalue=2, cmp_mode="gt", out_cols=8, offset=5, count_dtype=D.UINT32)
    assert type(call.type) is TupleType
    positions, counts = call.type.types
    assert (positions, counts) == (TensorType([4, 8], D.INT32), TensorType([1, 4], D.UINT32))
    assert dict(call.kwargs) == {"cmp_mode": 4, "offset": 5, "out_cols": 8, "count_dtype": D.UINT32}
    assert call.args[1].type.dtype is D.FP16
    call = pl_tile["gather_compare"](tile([4, 16]), 2.0, tile([1, 64], D.UINT8), out_cols=8)
    assert [type(t) for t in call.type.types] == [TileType, TileType]
    assert all(t.memory_space is MemorySpace.Vec for t in call.type.types)
    assert dict(call.kwargs) == {"cmp_mode": 0, "out_cols": 8}
    same = ir_tensor["gather_compare"](tensor([4, 16]), 2.0, cmp_mode=3, out_cols=8)
    assert same.kwargs["cmp_mode"] == 3
    assert ir_tile["resolve_gather_compare_cmp_mode"]("ge") == 5


@pytest.mark.parametrize(
    "changes, phrase",
    [
        ({"cmp_mode": "above"}, "cmp_mode must be one of"),
        ({"cmp_mode": 6}, "cmp_mode must be one of"),
        ({"out_cols": 0}, "out_cols > 0"),
        ({"count_dtype": D.INT64}, "requires count_dtype dtype in {INT32, UINT32}"),
        ({"kvalue": scalar(D.FP16)}, "kvalue dtype"),
    ],
)
def test_compare_form_errors(changes, phrase):
    arguments = {"kvalue": 1.0, "cmp_mode": "eq", "out_cols": 4, **changes}
    with pytest.raises(ValueError, match=phrase):
        pl["gather"](tensor([4, 16]), **arguments)
    with pytest.raises(ValueError, match=phrase):
        pl_tile["gather_compare"](tile([4, 16]), arguments.pop("kvalue"), tile([1, 64], D.UINT8), **arguments)


def test_compare_form_needs_a_byte_scratch():
    with pytest.raises(ValueError, match="tmp dtype UINT8"):
        pl_tile["gather_compare"](tile([4, 16]), 1.0, tile([1, 64]), out_cols=4)


@pytest.mark.parametrize("mode, operator", [("eq", np.equal), ("lt", np.less), ("ge", np.greater_equal)])
def test_compare_form_semantics(mode, operator):
    x = integers((3, 12), 0, 4, 1)
    call = pl["gather"](tensor([3, 12], D.INT32, valid=[3, 10]), kvalue=2, cmp_mode=mode, out_cols=4, offset=100)
    positions, counts = run(call, value(x, valid=(3, 10)), 2)
    expected, gone, numbers = np.zeros((3, 4)), [], []
    for r in range(3):
        hits = [c for c in range(10) if operator(x[r, c], 2)]
        numbers.append(len(hits))
        for k in range(4):
            if k < len(hits):
                expected[r, k] = 100 + hits[k]
            else:
                gone.append((r, k))
    check(positions, expected, undefined=gone)
    check(counts, [numbers])
    positions, counts = run(call, value(x, valid=(3, 10), undefined=[(1, 5)]), 2)
    assert not positions.mask[1].any() and counts.mask[0].tolist() == [True, False, True]


# --- rows -------------------------------------------------------------------------------------------------------------


def test_gather_row_types():
    for level, build in ((tensor, pl_tensor), (tile, pl_tile)):
        dst = level([8, 16], D.FP16)
        call = build["gather_row"](dst, tensor([100, 64], D.FP16), [0, 0], [5, 16], [1, 16])
        assert (call.type == dst.type, len(call.args), dict(call.kwargs)) == (True, 5, {})
        assert (
            len(pl["gather_row"](dst, tensor([100, 64], D.FP16), [0, 0], [5, 16], [1, 16], valid_shape=[1, 9]).args)
            == 6
        )
        name = call.op.name
        assert get_op_arg_effect(name, 0) is ArgEffect.ReadWrite and REGISTRY[name].alias_operand == 0
        src = tensor([100, 64], D.FP16)
        for operands, kwargs, phrase in (
            ([dst, tensor([100, 64]), [0, 0], [0, 0], [1, 16]], {}, "same dtype"),
            ([dst, src, [0], [0, 0], [1, 16]], {}, "dst_offset of rank 2"),
            ([dst, src, [0, 0], [0, 0], [1]], {}, "shapes of rank 2"),
            ([dst, src, [8, 0], [0, 0], [1, 16]], {}, "leaves destination"),
            ([dst, src, [0, 0], [0, 60], [1, 16]], {}, "leaves src"),
            ([dst, src, [0, 0], [-1, 0], [1, 16]], {}, "provably negative"),
            ([dst, src, [0, 0], [0, 0], [1, 16]], {"valid_shape": [1, 17]}, "valid_shape within shapes"),
            ([dst, src, [0, 0], [0, 0], [1, scalar(D.INDEX)]], {}, "compile-time constant"),
            (
                [dst, src, [0, 0], [0, 0], [1, 8]],
                {"transpose": True, "valid_shape": [1, scalar(D.INDEX)]},
                "static valid_shape",
            ),
            ([dst, src, [0, 0], [0, 0], [1, 16]], {"transpose": True}, "leaves destination"),
        ):
            with pytest.raises(ValueError, match=phrase):
                build["gather_row"](*operands, **kwargs)
    with pytest.raises(TypeError, match="expected Tensor or Tile"):
        pl["gather_row"](3, tensor([4, 4]), [0, 0], [0, 0], [1, 1])


def test_gather_row_semantics():
    src, dst = random((10, 8), 1), value(np.zeros((4, 8)), D.FP32)
    call = pl["gather_row"](tile([4, 8]), tensor([10, 8]), [1, 2], [7, 3], [2, 4])
    result = run(call, dst, value(src), [1, 2], [7, 3], [2, 4])
    expected = np.zeros((4, 8), np.float32)
    expected[1:3, 2:6] = src[7:9, 3:7]
    check(result, expected)
    assert result.buffer is dst.buffer
    call = pl["gather_row"](tile([4, 8]), tensor([10, 8]), [0, 7], [9, 0], [1, 4], transpose=True, valid_shape=[1, 3])
    expected[0:3, 7] = src[9, 0:3]
    check(run(call, dst, value(src), [0, 7], [9, 0], [1, 4], [1, 3]), expected)
    with pytest.raises(OutOfBoundsError):
        run(call, dst, value(src), [2, 7], [9, 0], [1, 4], [1, 3])


def test_paged_gather():
    src, table = random((32, 16), 1), np.array([6, 2, 0, 5], np.int32)
    index = np.array([9, 0, 15, 4], np.int32)
    expected = np.stack([src[table[i // 4] * 4 + i % 4, 2:10] for i in index])
    x, i, t = tensor([32, 16]), tensor([1, 4], D.INT32), tensor([4], D.INT32)
    call = pl["paged_gather"](x, i, t, 4, 8, 4, col_off=2)
    assert (shape_of(call), valid_of(call)) == ([4, 8], [4, 8])
    assert dict(call.kwargs) == {"block_size": 4, "size": 8, "max_indices": 4, "col_off": 2}
    check(run(call, value(src), value(index[None]), value(table)), expected)
    transposed = pl_tensor["paged_gather"](x, i, t, 4, 8, 6, col_off=2, is_trans=True)
    assert (shape_of(transposed), valid_of(transposed)) == ([8, 6], [8, 4])
    padded = np.zeros((8, 6))
    padded[:, :4] = expected.T
    check(run(transposed, value(src), value(index[None]), value(table)), padded, valid=(8, 4))
    for changes, phrase in (
        ({"size": 16}, "col_off"),
        ({"is_trans": True, "space": MemorySpace.Vec}, "space=Mat"),
        ({"block_size": 0}, "block_size > 0"),
        ({"col_off": -1}, "col_off >= 0"),
    ):
        arguments = {"block_size": 4, "size": 8, "max_indices": 4, "col_off": 2, **changes}
        with pytest.raises(ValueError, match=phrase):
            pl["paged_gather"](x, i, t, **arguments)
    with pytest.raises(ValueError, match="indices dtype INT32"):
        pl["paged_gather"](x, tensor([4]), t, 4, 8, 4)
    with pytest.raises(ValueError, match="block_table of shape"):
        pl["paged_gather"](x, i, tensor([2, 4], D.INT32), 4, 8, 4)
