"""tensor.slice and tile.slice: windows, dropped axes, views and write-through."""

import math
import warnings

import numpy as np
import pytest
from memory_support import PL, TENSOR, TILE, D, M, array, ramp, run, scalar, shape_of, tensor, tile, valid_of

from pypto.ir.enums import PadValue, TensorLayout, TileLayout
from pypto.ir.expr import Var
from pypto.ir.location import use_parser_span
from pypto.ir.span import Span
from pypto.ir.type import DistributedTensorType
from pypto.ops.registry import get_op_memory_spec
from pypto.ops.values import OutOfBoundsError, empty


def text(call):
    return call.as_python(format=False)


# --- types ------------------------------------------------------------------------------------------------------------


def test_tensor_windows():
    x = tensor([100, 64])
    assert valid_of(PL.slice(x, [16, 64], [96, 0], clamp=True)) == [4, 64]
    with pytest.raises(ValueError, match="reads past the end of dimension 0.*clamp=True"):
        PL.slice(x, [16, 64], [96, 0])
    assert valid_of(PL.slice(x, [16, 64], [96, 0], [4, 64])) == [4, 64]


def test_exact_window_of_a_tile():
    b = tile([16, 64], valid=[4, 64])
    assert valid_of(PL.slice(b, [8, 64], [0, 0])) == [4, 64]
    with pytest.raises(ValueError, match="reads past the end of dimension 0.*no clamping mechanism"):
        PL.slice(b, [16, 64], [8, 0])
    with pytest.raises(ValueError, match="no clamping mechanism"):
        PL.slice(b, [16, 64], [8, 0], [4, 64])


def test_tile_slice_shape_is_static():
    with pytest.raises(ValueError, match="compile-time constant"):
        PL.slice(tile([16, 64]), [scalar(), 64], [0, 0])
    with pytest.raises(ValueError, match="must be positive"):
        PL.slice(tile([16, 64]), [0, 64], [0, 0])


def test_symbolic_tile_offset_on_a_partial_tile():
    assert valid_of(PL.slice(tile([16, 64], valid=[12, 64]), [8, 64], [scalar(), 0])) == [
        "pl.min(pl.max(12 - i, 0), 8)",
        64,
    ]


def test_layout_rules():
    dn = PL.slice(tensor([64, 64], layout=TensorLayout.DN, pad=PadValue.zero), [16, 64], [0, 0]).type
    assert dn.tensor_view.layout is TensorLayout.ND and dn.tensor_view.pad is PadValue.zero
    column = PL.slice(tile([16, 64]), [16, 1], [0, 0]).type
    assert column.tile_view.blayout is TileLayout.row_major and column.memory_space is M.Vec
    mat = PL.slice(tile([32, 64], space=M.Mat), [16, 64], [0, 0]).type
    assert mat.memory_space is M.Mat and mat.tile_view is None
    with pytest.raises(ValueError, match="does not support MX"):
        PL.slice(tensor([64, 64], D.UINT8, layout=TensorLayout.MX_A_ZZ), [16, 64], [0, 0])


def test_distributed_stays_distributed():
    kind = PL.slice(Var("d", DistributedTensorType([64, 64], D.FP32)), [16, 64], [0, 0]).type
    assert type(kind) is DistributedTensorType


def test_specs():
    for op in ("tensor.slice", "tile.slice"):
        assert get_op_memory_spec(op) == {"input_constraints": [], "output_memory": "inherit_from_input"}


def test_printed_forms():
    x = tensor([64, 64])
    assert text(PL.slice(x, [8, 64], [40, 0])) == "pl.tensor.slice(x, [8, 64], [40, 0])"
    assert text(PL.slice(x, [1, 64], [3, 0], drop_dims=[0])) == "pl.tensor.slice(x, [1, 64], [3, 0], [], [0])"
    assert text(PL.slice(x, [8, 64], [0, 0], [4, 64], pad_value=0)) == (
        "pl.tensor.slice(x, [8, 64], [0, 0], [4, 64], pad_value=pl.PadValue.zero)"
    )
    assert text(PL.slice(x, [8, 64], [60, 0], clamp=True)).endswith("clamp=True)")


# --- dropped axes -----------------------------------------------------------------------------------------------------


def test_drop_dims():
    assert shape_of(PL.slice(tensor([8, 64]), [1, 64], [3, 0], drop_dims=[0])) == [64]
    assert shape_of(PL.slice(tile([8, 64]), [1, 64], [3, 0], drop_dims=[0])) == [1, 64]
    assert shape_of(PL.slice(tile([4, 8, 64]), [1, 8, 64], [3, 0, 0], drop_dims=[0])) == [8, 64]


@pytest.mark.parametrize(
    ("shape", "drops", "phrase"),
    [
        ([2, 64], [0], "static unit dimension"),
        ([1, 64], [2], "out of range"),
        ([1, 64], [-1], "out of range"),
        ([1, 64], [0, 0], "is repeated|cannot erase"),
        ([1, 1], [0, 1], "cannot erase every dimension"),
    ],
)
def test_bad_drops(shape, drops, phrase):
    with pytest.raises(ValueError, match=phrase):
        PL.slice(tensor([8, 64]), shape, [0, 0], drop_dims=drops)


def test_dropped_axis_must_be_valid():
    with pytest.raises(ValueError, match="not provably 1"):
        PL.slice(tensor([8, 64]), [1, 64], [0, 0], [scalar("n"), 64], drop_dims=[0])
    with pytest.raises(ValueError, match="is repeated"):
        PL.slice(tensor([8, 4, 64]), [1, 4, 64], [0, 0, 0], drop_dims=[0, 0])


# --- dispatch and pads ------------------------------------------------------------------------------------------------


def test_dispatch():
    with pytest.raises(TypeError, match="clamp=True is not supported for a Tile"):
        PL.slice(tile([8, 64]), [4, 64], [0, 0], clamp=True)
    assert PL.slice(tile([8, 64]), [4, 64], [0, 0], clamp=False) is not None
    with pytest.raises(TypeError, match="pl.slice: expected Tensor or Tile, got Scalar"):
        PL.slice(scalar(), [4], [0])


@pytest.mark.parametrize(
    ("given", "pad"),
    [
        (0, PadValue.zero),
        (0.0, PadValue.zero),
        (math.inf, PadValue.max),
        (-math.inf, PadValue.min),
        (PadValue.null, PadValue.null),
        (PadValue.min, PadValue.min),
    ],
)
def test_pad_values(given, pad):
    made = TENSOR.slice(tensor([8, 64], pad=PadValue.zero), [8, 64], [0, 0], [4, 64], pad_value=given)
    assert made.type.tensor_view.pad is pad


@pytest.mark.parametrize(
    ("given", "error"), [(1, ValueError), (math.nan, ValueError), (True, TypeError), ("x", TypeError)]
)
def test_bad_pad_values(given, error):
    with pytest.raises(error):
        TENSOR.slice(tensor([8, 64]), [8, 64], [0, 0], [4, 64], pad_value=given)


@pytest.mark.parametrize("function", [PL.slice, TENSOR.slice])
def test_pad_without_effect_warns_at_the_users_line(function):
    with pytest.warns(UserWarning, match="pad_value has no effect") as caught:
        function(tensor([8, 64]), [4, 64], [0, 0], pad_value=PadValue.zero)
    assert caught[0].filename == __file__


def test_pad_without_effect_warns_at_the_parsed_line():
    with pytest.warns(UserWarning, match="no effect") as caught, use_parser_span(Span("kernel.py", 17, 4)):
        PL.slice(tile([8, 64]), [4, 64], [0, 0], pad_value=PadValue.zero)
    assert (caught[0].filename, caught[0].lineno) == ("kernel.py", 17)


def test_effective_pad_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PL.slice(tensor([8, 64]), [4, 64], [0, 0], [2, 64], pad_value=PadValue.zero)


# --- semantics --------------------------------------------------------------------------------------------------------


def test_views_write_through():
    source = ramp(8, 4)
    window = run(PL.slice(tensor([8, 4]), [2, 4], [3, 0]), source)
    assert window.buffer is source.buffer
    window.write((slice(None), slice(None)), -1.0, None)
    assert (source.data[3:5] == -1).all() and source.data[2, 0] == 8


def test_tile_view_of_view():
    source = ramp(8, 8)
    outer = run(PL.slice(tile([8, 8]), [4, 8], [4, 0]), source)
    inner = run(PL.slice(tile([4, 8]), [2, 2], [1, 1]), outer)
    np.testing.assert_array_equal(inner.data, source.data[5:7, 1:3])
    assert np.shares_memory(inner.data, source.data)


def test_window_past_the_end_shows_later_writes():
    source = ramp(6, 4)
    call = PL.slice(tensor([scalar("n"), 4]), [4, 4], [scalar("i"), 0], clamp=True)
    window = run(call, source, 4)
    assert window.shape == (4, 4) and window.valid == (2, 4)
    assert window.mask[:2].all() and not window.mask[2:].any()
    source.data[4] = 9
    assert (window.data[0] == 9).all() and (window.valid_data()[0] == 9).all()
    window.write((slice(0, 1), slice(0, 4)), np.full((1, 4), 7.0), None)
    assert (source.data[4] == 7).all()
    with pytest.raises(OutOfBoundsError):
        window.write((slice(1, 3), slice(0, 4)), np.zeros((2, 4)), None)
    inner = run(PL.slice(tensor([4, 4]), [1, 4], [1, 0]), window)
    assert np.shares_memory(inner.data, source.data)


def test_run_time_bounds():
    call = PL.slice(tensor([8, 4]), [4, 4], [scalar(), 0])
    with pytest.raises(OutOfBoundsError, match=r"tensor\.slice.*offset 6"):
        run(call, ramp(8, 4), 6)
    call = PL.slice(tile([8, 4]), [4, 4], [scalar(), 0], [1, 4])
    with pytest.raises(OutOfBoundsError, match=r"tile\.slice"):
        run(call, ramp(8, 4), 6)


def test_drop_dims_at_run():
    source = ramp(4, 6)
    row = run(PL.slice(tensor([4, 6]), [1, 6], [2, 0], drop_dims=[0]), source)
    assert row.shape == (6,) and np.shares_memory(row.data, source.data)
    np.testing.assert_array_equal(row.data, source.data[2])
    column = run(TILE.slice(tile([4, 6]), [4, 1], [0, 5], drop_dims=[1]), source)
    assert column.shape == (1, 4)
    np.testing.assert_array_equal(column.data[0], source.data[:, 5])


def test_masks_and_valid_regions_follow():
    source = empty((8, 4), np.dtype(np.float32))
    source.write((slice(0, 5), slice(None)), 1.0, None)
    window = run(PL.slice(tensor([8, 4]), [4, 4], [3, 0]), source)
    assert window.mask[:2].all() and not window.mask[2:].any()
    partial = array(np.zeros((8, 4), np.float32), valid=(5, 4))
    assert run(PL.slice(tile([8, 4], valid=[5, 4]), [4, 4], [3, 0]), partial).valid == (2, 4)
