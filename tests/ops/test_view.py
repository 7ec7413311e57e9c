"""reshape, transpose, views, set_validshape, concat, reinterpret_view."""

import numpy as np
import pytest
from memory_support import (
    IR_TENSOR,
    IR_TILE,
    PL,
    TENSOR,
    TILE,
    D,
    M,
    array,
    ramp,
    run,
    scalar,
    shape_of,
    shown,
    tensor,
    tile,
    valid_of,
)

from pypto.ir.enums import PadValue, TensorLayout, TileLayout
from pypto.ir.expr import Var
from pypto.ir.type import DistributedTensorType
from pypto.ops.registry import op_has_declared_arg_effect
from pypto.ops.values import OutOfBoundsError, empty
from pypto.ops.windows import reshape_valid_at_run

ND, DN, NZ = TensorLayout.ND, TensorLayout.DN, TensorLayout.NZ


def text(call):
    return call.as_python(format=False)


# --- reshape (8.6, example d) -----------------------------------------------------------------------------------------


def test_partial_region_must_fill_rows():
    t = tile([8, 16], valid=[3, 16])
    with pytest.raises(ValueError, match="whole number of rows"):
        PL.reshape(t, [4, 32])
    assert valid_of(PL.reshape(t, [2, 4, 16])) == [1, 3, 16]
    assert valid_of(PL.reshape(t, [1, 8, 16])) == [1, 3, 16]


def test_unit_axes_follow():
    n = scalar("n")
    assert valid_of(PL.reshape(tile([8, 16], valid=[n, 5]), [1, 8, 1, 16])) == [1, "n", 1, 5]
    assert valid_of(PL.reshape(tensor([1, 8, 16], valid=[1, 3, 5]), [8, 16])) == [3, 5]


def test_scattered_region_is_refused():
    with pytest.raises(ValueError, match="scattered across the buffer"):
        PL.reshape(tile([8, 16], valid=[3, 5]), [16, 8])


def test_symbolic_free_extent():
    t = tile([8, 16], valid=[scalar("n"), 16])
    assert valid_of(PL.reshape(t, [8, 4, 4])) == ["n", 4, 4]
    with pytest.raises(ValueError, match="has the matching row size"):
        PL.reshape(t, [4, 32])
    with pytest.raises(ValueError, match="has the matching row size"):
        PL.reshape(t, [2, 4, 16])  # the axis of 4 can't hold up to 8 rows


def test_not_row_major():
    with pytest.raises(ValueError, match="not stored row-major"):
        PL.reshape(tile([8, 16], valid=[3, 16], blayout=TileLayout.col_major), [4, 32])


def test_volumes():
    with pytest.raises(ValueError, match="cannot reshape .* of size 128 into .* of size 64"):
        PL.reshape(tile([8, 16]), [8, 8])
    assert valid_of(PL.reshape(tensor([scalar("n"), 16]), [scalar("m"), 8])) == ["m", 8]


def test_empty_region():
    assert valid_of(PL.reshape(tile([8, 16], valid=[0, 16]), [4, 32])) == [0, 0]


@pytest.mark.parametrize(
    ("shape", "valid", "new", "want"),
    [
        ((8, 16), (8, 16), (4, 32), (4, 32)),
        ((8, 16), (4, 16), (4, 32), (2, 32)),
        ((8, 16), (2, 16), (4, 32), (1, 32)),
        ((1, 128), (1, 48), (8, 16), (3, 16)),
        ((8, 16), (3, 16), (128,), (48,)),
    ],
)
def test_reshape_of_regions_at_run(shape, valid, new, want):
    assert reshape_valid_at_run("op", shape, valid, new) == want
    # the elements of the source's region are exactly those of the mapped one
    inside = np.zeros(shape, bool)
    inside[tuple(slice(0, v) for v in valid)] = True
    mapped = np.zeros(new, bool)
    mapped[tuple(slice(0, v) for v in want)] = True
    np.testing.assert_array_equal(inside.reshape(new), mapped)


def test_ir_reshape_narrows_only():
    n = scalar("n")
    narrowed = IR_TENSOR.reshape(tensor([8, 16]), [4, 32], [2, 32])
    assert valid_of(narrowed) == [2, 32] and text(narrowed) == "pl.tensor.reshape(x, [4, 32], [2, 32])"
    for bad in ([5, 32], [n, 32]):
        with pytest.raises(ValueError, match="not provably within the source-derived extent"):
            IR_TENSOR.reshape(tensor([8, 16]), [4, 32], bad)


def test_reshape_keeps_pad_and_space():
    made = PL.reshape(tile([8, 16], valid=[4, 16], pad=PadValue.zero), [4, 32]).type
    assert made.tile_view.pad is PadValue.zero and made.memory_space is M.Vec
    assert PL.reshape(tile([1, 16]), [16, 1]).type.tile_view is None  # implied by the shape: column-major
    assert PL.reshape(tensor([8, 16], pad=PadValue.min), [4, 32]).type.tensor_view.pad is PadValue.min


def test_reshape_is_a_view():
    source = ramp(4, 6)
    got = run(PL.reshape(tensor([4, 6]), [2, 12]), source)
    assert got.buffer is source.buffer
    got.write((slice(0, 1), slice(0, 1)), np.full((1, 1), -5.0), None)
    assert source.data[0, 0] == -5


def test_reshape_that_must_copy_refuses_writes():
    source = ramp(4, 6)
    flipped = run(PL.transpose(tensor([4, 6]), 0, 1), source)
    got = run(PL.reshape(tensor([6, 4]), [24]), flipped)
    np.testing.assert_array_equal(got.data, source.data.T.reshape(24))
    store = PL.store(tile([1, 24]), [0], tensor([24]))
    with pytest.raises(ValueError, match=r"tile\.store.*is a copy.*would not reach the original"):
        run(store, array(np.zeros((1, 24), np.float32)), got)


def test_reshape_maps_masks():
    source = empty((4, 6), np.dtype(np.float32))
    source.write((slice(0, 2), slice(None)), 1.0, None)
    got = run(PL.reshape(tensor([4, 6]), [2, 12]), source)
    assert got.mask[0].all() and not got.mask[1].any()


# --- transpose --------------------------------------------------------------------------------------------------------


def test_tensor_transpose_types():
    call = PL.transpose(tensor([48, 80], D.BF16, valid=[40, 80]), 0, 1)
    view = call.type.tensor_view
    assert shape_of(call) == [80, 48] and valid_of(call) == [80, 40]
    assert view.layout is DN and shown(view.stride) == [1, 80]
    back = PL.transpose(Var("y", call.type), -1, -2).type
    assert back.tensor_view.layout is ND and not back.tensor_view.stride and shown(back.valid_extents) == [40, 80]
    outer = PL.transpose(tensor([2, 3, 4]), 0, 1).type.tensor_view
    assert outer.layout is ND and shown(outer.stride) == [4, 12, 1]
    n = scalar("n")
    assert shown(PL.transpose(tensor([n, 16]), 0, 1).type.tensor_view.stride) == [1, 16]


@pytest.mark.parametrize(
    ("axes", "phrase"),
    [((0, 2), "out of range"), ((1, -1), "two different axes"), ((-3, 0), "out of range")],
)
def test_bad_axes(axes, phrase):
    with pytest.raises(ValueError, match=phrase):
        PL.transpose(tensor([4, 6]), *axes)
    with pytest.raises(ValueError, match=phrase):
        PL.transpose(tile([4, 6]), *axes)


def test_axes_are_constants():
    with pytest.raises(TypeError, match="compile-time integer"):
        PL.transpose(tensor([4, 6]), scalar(), 0)


def test_tile_transpose_swaps_the_valid_region():
    call = TILE.transpose(tile([16, 32], valid=[3, 5]), 0, 1, tile([16, 32]))
    assert shape_of(call) == [32, 16] and valid_of(call) == [5, 3] and len(call.args) == 4
    with pytest.raises(ValueError, match="dtype and rank"):
        IR_TILE.transpose(tile([16, 32]), 0, 1, tmp=tile([16, 32], D.FP16))


def test_transposes_at_run():
    source = ramp(2, 3)
    view = run(PL.transpose(tensor([2, 3]), 0, 1), source)
    assert np.shares_memory(view.data, source.data)
    np.testing.assert_array_equal(view.data, source.data.T)
    copy = run(PL.transpose(tile([2, 3]), 0, 1), source)
    assert not np.shares_memory(copy.data, source.data)
    np.testing.assert_array_equal(copy.data, source.data.T)


def test_transpose_view():
    call = TILE.transpose_view(tile([16, 64], valid=[3, 64], space=M.Mat))
    view = call.type.tile_view
    assert (view.blayout, view.slayout) == (TileLayout.row_major, TileLayout.col_major)
    assert shape_of(call) == [64, 16] and valid_of(call) == [64, 3] and call.type.memory_space is M.Mat
    source = ramp(2, 3)
    assert np.shares_memory(run(TILE.transpose_view(tile([2, 3])), source).data, source.data)


# --- tensor.view ------------------------------------------------------------------------------------------------------


def test_view_types():
    flat = TENSOR.view(tensor([2, 3, 4]), [6, 4])
    assert shape_of(flat) == [6, 4] and flat.type.tensor_view is None
    assert text(flat) == "pl.tensor.view(x, [6, 4])"
    dn = TENSOR.view(tensor([48, 80]), layout=DN)
    assert shape_of(dn) == [80, 48] and shown(dn.type.tensor_view.stride) == [1, 80]
    back = TENSOR.view(Var("y", dn.type), layout=ND)
    assert shape_of(back) == [48, 80] and back.type.tensor_view.layout is ND
    assert type(TENSOR.view(Var("d", DistributedTensorType([4, 6], D.FP32)), [24]).type) is DistributedTensorType


@pytest.mark.parametrize(
    ("source", "args", "kwargs", "phrase"),
    [
        (tensor([4, 6]), (), {}, "at least one of shape and layout"),
        (tensor([4, 6]), (), {"layout": NZ}, "NZ layout is not allowed"),
        (tensor([4, 6]), (), {"layout": TensorLayout.MX_A_ZZ}, "does not support MX"),
        (tensor([4, 6]), ([5, 5],), {}, "cannot reshape"),
        (tensor([4, 6], stride=[12, 1]), ([24],), {}, "packed source"),
        (tensor([4, 6], stride=[12, 2]), (), {"layout": DN}, "not canonical"),
        (tensor([4, 6], valid=[2, 6]), ([2, 12],), {}, "requires the valid_shape of the target"),
        (tensor([4, 6], valid=[2, 6]), ([2, 12], [1, 12]), {}, "ND collapse"),
        (tensor([2, 3, 4], valid=[2, 2, 4]), ([6, 4], [4, 4]), {}, "contiguous prefix"),
        (tensor([6]), (), {"layout": DN}, "rank >= 2"),
    ],
)
def test_bad_views(source, args, kwargs, phrase):
    with pytest.raises(ValueError, match=phrase):
        TENSOR.view(source, *args, **kwargs)


def test_view_of_a_partial_source():
    call = TENSOR.view(tensor([2, 3, 4], valid=[1, 2, 4]), [6, 4], [2, 4])
    assert valid_of(call) == [2, 4]


def test_views_at_run():
    source = ramp(4, 6)
    flat = run(TENSOR.view(tensor([4, 6]), [2, 12]), source)
    assert np.shares_memory(flat.data, source.data)
    dn = run(TENSOR.view(tensor([4, 6]), layout=DN), source)
    np.testing.assert_array_equal(dn.data, source.data.T)
    kind = TENSOR.view(tensor([4, 6]), layout=DN).type
    nd = run(TENSOR.view(Var("y", kind), layout=ND), dn)
    np.testing.assert_array_equal(nd.data, source.data)
    square = ramp(4, 4)
    turned = run(TENSOR.view(tensor([4, 4]), layout=DN), square)
    np.testing.assert_array_equal(turned.data, square.data.T)
    reshaped = run(TENSOR.view(Var("y", kind), [12, 2]), dn)  # same bytes, column-major
    np.testing.assert_array_equal(reshaped.data, source.data.reshape(2, 12).T)


# --- set_validshape ---------------------------------------------------------------------------------------------------


def test_set_validshape():
    n = scalar("n")
    call = PL.set_validshape(tile([16, 32]), n, 8)
    assert valid_of(call) == ["n", 8] and text(call) == "pl.tile.set_validshape(t, n, 8)"
    assert valid_of(PL.set_validshape(tensor([16, 32]), 4, n)) == [4, "n"]
    assert op_has_declared_arg_effect("tensor.set_validshape", 0)


@pytest.mark.parametrize(
    ("operand", "args", "phrase"),
    [
        (tensor([4, 16, 32]), (1, 1), "requires a 2D tensor"),
        (tensor([16, 32]), (17, 1), "exceeds tensor bound"),
        (tile([16, 32]), (1, 33), "exceeds tile bound"),
        (tensor([16, 32]), (-1, 1), "must be >= 0"),
        (tensor([16, 32]), (scalar("n", D.INT32), 1), "INT64, UINT64 or INDEX"),
    ],
)
def test_bad_valid_shapes(operand, args, phrase):
    with pytest.raises((ValueError, TypeError), match=phrase):
        PL.set_validshape(operand, *args)


def test_set_validshape_at_run():
    source = ramp(4, 6)
    call = PL.set_validshape(tile([4, 6]), scalar("n"), 3)
    got = run(call, source, 2)
    assert got.buffer is source.buffer and got.valid == (2, 3) and source.valid == (4, 6)
    with pytest.raises(OutOfBoundsError, match="valid_rows 5"):
        run(call, source, 5)


# --- concat -----------------------------------------------------------------------------------------------------------


def test_concat():
    call = PL.concat(tile([4, 6], valid=[3, 6]), tile([4, 2], valid=[4, 1]))
    assert shape_of(call) == [4, 8] and valid_of(call) == [3, 7]
    got = run(PL.concat(tensor([4, 6]), tensor([4, 2])), ramp(4, 6), ramp(4, 2))
    np.testing.assert_array_equal(got.data, np.concatenate([ramp(4, 6).data, ramp(4, 2).data], 1))
    for a, b, phrase in (
        (tensor([4, 6], valid=[4, 5]), tensor([4, 2]), "fully valid in its columns"),
        (tensor([4, 6]), tensor([5, 2]), "same row count"),
        (tensor([4, 6]), tensor([4, 2], D.FP16), "same dtype"),
        (tensor([4]), tensor([4]), "2D"),
    ):
        with pytest.raises(ValueError, match=phrase):
            PL.concat(a, b)


# --- reinterpret_view -------------------------------------------------------------------------------------------------


def test_reinterpret_types():
    call = PL.reinterpret_view(tensor([4, 6], valid=[4, 3]), D.INT16)
    assert shape_of(call) == [4, 12] and valid_of(call) == [4, 6] and call.type.dtype is D.INT16
    assert text(PL.reinterpret_view(tensor([4, 6]), D.INT16, shape=[4, 12])) == (
        "pl.tensor.reinterpret_view(x, dtype=pl.INT16, shape=[4, 12])"
    )
    assert shape_of(PL.reinterpret_view(tile([4, 6], D.INT16), D.FP32)) == [4, 3]
    column = PL.reinterpret_view(tile([8, 1], D.INT16), D.INT32)
    assert shape_of(column) == [4, 1]
    padded = PL.reinterpret_view(tile([4, 6], D.INT16, valid=[2, 6], pad=PadValue.min), D.FP32).type
    assert padded.tile_view.pad is PadValue.null
    n = scalar("n")
    from pypto.ir import scalar as scalars
    from pypto.ir.expr import index_const

    double = scalars.mul(n, index_const(2))
    assert shape_of(PL.reinterpret_view(tensor([4, double], D.INT16), D.FP32)) == [4, "n"]


@pytest.mark.parametrize(
    ("operand", "dtype", "shape", "phrase"),
    [
        (tensor([4, 5], D.INT16), D.FP32, None, "not divisible by 2"),
        (tensor([4, 6]), D.FP32, None, "cannot reinterpret"),
        (tensor([4, 6]), D.BOOL, None, "requires target dtype"),
        (tensor([4, 6]), D.INT16, [4, 6], "equal source and target byte sizes"),
        (tensor([4, 6], stride=[12, 1]), D.INT16, None, "packed tensors"),
        (tensor([4, 6], layout=NZ), D.INT16, None, "cannot reinterpret"),
        (tile([16, 32], space=M.Mat), D.INT16, None, "boxed tile"),
    ],
)
def test_bad_reinterpretations(operand, dtype, shape, phrase):
    with pytest.raises(ValueError, match=phrase):
        PL.reinterpret_view(operand, dtype, shape=shape)


def test_reinterpret_at_run():
    source = array(np.array([[1.0, 2.0], [3.0, 4.0]], np.float32))
    got = run(PL.reinterpret_view(tensor([2, 2]), D.INT32), source)
    np.testing.assert_array_equal(got.data, source.data.view(np.int32))
    got.write((slice(0, 1), slice(0, 1)), np.zeros((1, 1), np.int32), None)
    assert source.data[0, 0] == 0


def test_reinterpret_tracks_definedness():
    source = empty((2, 2), np.dtype(np.float32))
    got = run(PL.reinterpret_view(tensor([2, 2]), D.INT16), source)
    assert got.shape == (2, 4) and not got.mask.any()
    got.write((slice(0, 1), slice(0, 4)), np.ones((1, 4), np.int16), None)
    assert source.mask[0].all() and not source.mask[1].any()
