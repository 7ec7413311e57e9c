"""tile.load, tile.store, tile.move, tile.extract: types and semantics."""

import numpy as np
import pytest
from memory_support import IR_TILE, PL, TILE, D, M, array, ramp, run, scalar, shape_of, tensor, tile, valid_of

from pypto.ir.enums import ArgEffect, AtomicType, CompactMode, PadValue, TensorLayout, TileLayout, WriteChannel
from pypto.ir.type import TileType
from pypto.ops.registry import create_op_call, get_op_arg_effect, get_op_memory_spec, get_op_write_channel
from pypto.ops.values import OutOfBoundsError, empty


def text(call):
    return call.as_python(format=False)


# --- window reads (8.4, example b) ------------------------------------------------------------------------------------


def test_window_past_the_end_is_refused():
    x = tensor([100, 64])
    with pytest.raises(ValueError, match="reads past the end of dimension 0.*clamp=True"):
        PL.load(x, [96, 0], [16, 64])


def test_clamp_gives_what_is_there():
    b = PL.load(tensor([100, 64]), [96, 0], [16, 64], clamp=True)
    assert shape_of(b) == [16, 64] and valid_of(b) == [4, 64]


def test_stated_valid_shape_only_has_to_fit():
    assert valid_of(PL.load(tensor([100, 64]), [96, 0], [16, 64], [4, 64])) == [4, 64]
    with pytest.raises(ValueError, match="reads past the end of dimension 0"):
        PL.load(tensor([100, 64]), [96, 0], [16, 64], [5, 64])


def test_symbolic_offset_is_accepted():
    assert valid_of(PL.load(tensor([100, 64]), [scalar(), 0], [16, 64])) == [16, 64]


def test_symbolic_offset_clamped():
    e = PL.load(tensor([100, 64]), [scalar(), 0], [16, 64], clamp=True)
    assert valid_of(e) == ["pl.min(pl.max(100 - i, 0), 16)", 64]


def test_symbolic_extent():
    n = scalar("n")
    x = tensor([n, 64])
    assert valid_of(PL.load(x, [0, 0], [16, 64], clamp=True)) == ["pl.min(n, 16)", 64]
    assert valid_of(PL.load(x, [0, 0], [n, 64])) == ["n", 64]
    with pytest.raises(ValueError, match="reads past the end of dimension 0"):
        PL.load(x, [1, 0], [n, 64])
    with pytest.raises(ValueError, match="reads past the end"):
        PL.load(x, [n, 0], [8, 64])


def test_runtime_valid_shape_is_kept():
    count = scalar("count")
    assert valid_of(PL.load(tensor([100, 64]), [scalar(), 0], [16, 64], [count, 64])) == ["count", 64]


def test_partially_valid_source_narrows():
    x = tensor([100, 64], valid=[20, 64])
    assert valid_of(PL.load(x, [16, 0], [16, 64])) == [4, 64]
    assert valid_of(PL.load(x, [32, 0], [16, 64])) == [0, 64]
    assert valid_of(PL.load(x, [0, 0], [16, 64], [8, 64])) == [8, 64]


@pytest.mark.parametrize(
    ("args", "phrase"),
    [
        (([-1, 0], [16, 64]), "offset 0 is provably negative"),
        (([0, 0], [16, 64], [17, 64]), "exceeds the window extent"),
        (([0, 0, 0], [16, 64]), "offsets rank"),
        (([0, 0], [16, 64], [16]), "valid_shape rank"),
    ],
)
def test_bad_windows(args, phrase):
    with pytest.raises(ValueError, match=phrase):
        PL.load(tensor([100, 64]), *args)


def test_window_of_another_rank_skips_the_rule():
    assert valid_of(PL.load(tensor([4, 100, 64]), [0, 0], [16, 64])) == [16, 64]


# --- load: layout, printing -------------------------------------------------------------------------------------------


def test_load_prints_valid_shape_and_memory():
    call = PL.load(tensor([64, 64]), [scalar("r"), 0], [16, 64])
    assert text(call) == "pl.tile.load(x, [r, 0], [16, 64], [16, 64], target_memory=pl.Mem.Vec)"
    assert call.type.memory_space is M.Vec and call.type.tile_view is None


def test_load_layouts():
    mat = PL.load(tensor([64, 64]), [0, 0], [16, 64], target_memory=M.Mat).type
    assert mat.tile_view is None and mat.get_effective_tile_view().blayout is TileLayout.col_major
    dn = PL.load(tensor([64, 64], layout=TensorLayout.DN), [0, 0], [16, 64], target_memory=M.Mat).type
    assert (dn.tile_view.blayout, dn.tile_view.slayout) == (TileLayout.row_major, TileLayout.col_major)
    row = PL.load(tensor([64, 64]), [0, 0], [1, 64], target_memory=M.Mat).type
    assert (row.tile_view.blayout, row.tile_view.slayout) == (TileLayout.row_major, TileLayout.none_box)
    column = PL.load(tensor([64, 1]), [0, 0], [16, 1]).type
    assert column.tile_view is None and column.get_effective_tile_view().blayout is TileLayout.col_major


def test_load_memory_choices():
    with pytest.raises(ValueError, match="target_memory must be Vec or Mat"):
        PL.load(tensor([64, 64]), [0, 0], [16, 64], target_memory=M.Left)
    assert get_op_memory_spec("tile.load") == {"input_constraints": [], "output_memory": "deferred"}
    x = tensor([64, 64])
    typed = PL.load(x, [0, 0], [16, 64])
    bare = create_op_call("tile.load", list(typed.args), {}, typed.span)
    assert bare.type.memory_space is None


def test_load_needs_a_tensor():
    with pytest.raises(TypeError, match="requires first argument to be a TensorType"):
        PL.load(tile([16, 64]), [0, 0], [16, 64])


# --- load: semantics --------------------------------------------------------------------------------------------------


def test_load_copies():
    source = ramp(8, 4)
    x = tensor([8, 4])
    got = run(PL.load(x, [2, 0], [4, 4]), source)
    np.testing.assert_array_equal(got.data, source.data[2:6])
    source.data[...] = 0
    assert got.data[0, 0] == 8 and got.mask is None


def test_load_past_the_end_at_run():
    call = PL.load(tensor([scalar("n"), 4]), [scalar("i"), 0], [4, 4])
    with pytest.raises(OutOfBoundsError, match=r"tile\.load.*offset 6.*dimension 0.*8"):
        run(call, ramp(8, 4), 6)
    with pytest.raises(OutOfBoundsError, match="offset -1"):
        run(call, ramp(8, 4), -1)


def test_load_clamped_at_run():
    call = PL.load(tensor([scalar("n"), 4]), [scalar("i"), 0], [4, 4], clamp=True)
    got = run(call, ramp(8, 4), 6)
    assert got.valid == (2, 4) and got.shape == (4, 4)
    np.testing.assert_array_equal(got.valid_data(), np.arange(24, 32).reshape(2, 4))
    assert not got.mask[2:].any() and got.valid_mask().all()
    assert run(call, ramp(8, 4), 20).valid == (0, 4)


def test_load_of_valid_part_only_must_fit():
    call = PL.load(tensor([scalar("n"), 4]), [scalar("i"), 0], [4, 4], [scalar("k"), 4])
    assert run(call, ramp(8, 4), 6, 2).valid == (2, 4)
    with pytest.raises(OutOfBoundsError):
        run(call, ramp(8, 4), 6, 3)
    with pytest.raises(OutOfBoundsError, match="valid_shape"):
        run(call, ramp(8, 4), 0, 5)


def test_load_carries_undefinedness():
    source = empty((8, 4), np.dtype(np.float32))
    source.write((slice(0, 3), slice(None)), 1.0, None)
    got = run(PL.load(tensor([8, 4]), [2, 0], [4, 4]), source)
    assert got.mask[0].all() and not got.mask[1:].any()


def test_flattened_load_keeps_valid_rows_together():
    call = PL.load(tensor([2, 3, 4]), [0, 0, 0], [2, 3, 4], [2, 2, 4])
    flat = call.replace(type=TileType([6, 4], D.FP32, None, None, M.Vec))
    got = run(flat, ramp(2, 3, 4))
    assert got.shape == (6, 4) and got.valid == (4, 4)
    np.testing.assert_array_equal(got.valid_data(), np.arange(24).reshape(2, 3, 4)[:, :2].reshape(4, 4))


# --- store ------------------------------------------------------------------------------------------------------------


def test_store_type_prints_and_grows():
    out = tensor([64, 32])
    call = PL.store(tile([16, 32]), [0, 0], out)
    assert call.type is out.type and text(call) == "pl.tile.store(t, [0, 0], x)"
    grown = PL.store(tile([16, 32]), [16, 0], tensor([64, 32], valid=[16, 32]))
    assert valid_of(grown) == [32, 32]


def test_store_bounds_use_the_valid_region():
    assert PL.store(tile([16, 32], valid=[4, 32]), [60, 0], tensor([64, 32])) is not None
    with pytest.raises(ValueError, match="writes past the end of dimension 0"):
        PL.store(tile([16, 32], valid=[5, 32]), [60, 0], tensor([64, 32]))


def test_store_with_window_operand_skips_the_rule():
    out = tensor([4, 3, 32], valid=[1, 3, 32])
    call = PL.store(tile([12, 32]), [0, 0, 0], out, [4, 3, 32])
    assert call.type is out.type


def test_store_dtypes():
    with pytest.raises(ValueError, match="convert it with pl.cast"):
        PL.store(tile([16, 32]), [0, 0], tensor([64, 32], D.FP16))
    assert PL.store(tile([16, 32], space=M.Acc), [0, 0], tensor([64, 32], D.BF16)) is not None
    with pytest.raises(ValueError, match="atomic Add requires a target dtype"):
        PL.store(tile([16, 32], D.UINT8), [0, 0], tensor([64, 32], D.UINT8), atomic=AtomicType.Add)


def test_store_facts():
    assert get_op_memory_spec("tile.store") == {"input_constraints": [[M.Vec, M.Acc]], "output_memory": None}
    assert get_op_arg_effect("tile.store", 2) is ArgEffect.Write
    assert get_op_arg_effect("tile.store", 2, atomic=AtomicType.Add) is ArgEffect.ReadWrite
    assert get_op_write_channel("tile.store") is WriteChannel.Dma
    added = PL.store(tile([16, 32]), [0, 0], tensor([64, 32]), atomic=AtomicType.Add)
    assert text(added).endswith("atomic=pl.AtomicType.Add)")


def test_store_writes_valid_part_in_place():
    target, source = array(np.zeros((4, 4), np.float32)), array(np.ones((2, 4), np.float32), valid=(2, 3))
    out, t = tensor([4, 4]), tile([2, 4], valid=[2, 3])
    got = run(PL.store(t, [1, 0], out), source, target)
    assert got.buffer is target.buffer
    want = np.zeros((4, 4))
    want[1:3, :3] = 1
    np.testing.assert_array_equal(target.data, want)


def test_store_adds():
    target = array(np.full((2, 4), 3, np.float32))
    run(PL.store(tile([2, 4]), [0, 0], tensor([2, 4]), atomic=AtomicType.Add), ramp(2, 4), target)
    np.testing.assert_array_equal(target.data, np.arange(8).reshape(2, 4) + 3)


def test_store_out_of_range_at_run():
    call = PL.store(tile([2, 4]), [scalar(), 0], tensor([4, 4]))
    with pytest.raises(OutOfBoundsError, match=r"tile\.store.*offset 3"):
        run(call, ramp(2, 4), 3, ramp(4, 4))


def test_store_of_undefined_values_is_remembered():
    target = array(np.zeros((2, 4), np.float32))
    run(PL.store(tile([2, 4]), [0, 0], tensor([2, 4])), empty((2, 4), np.dtype(np.float32)), target, span="here")
    assert target.buffer.poisoned_at == "here" and not target.mask.any()


def test_store_of_flattened_tile():
    target = array(np.zeros((2, 3, 4), np.float32))
    source = array(np.arange(24, dtype=np.float32).reshape(6, 4), valid=(4, 4))
    call = PL.store(tile([6, 4], valid=[4, 4]), [0, 0, 0], tensor([2, 3, 4]), [2, 3, 4])
    run(call, source, target)
    want = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    want[1, 1:] = 0
    np.testing.assert_array_equal(target.data, want)


def test_store_2d_tile_into_3d_tensor():
    target = array(np.zeros((2, 3, 4), np.float32))
    run(PL.store(tile([3, 4]), [1, 0, 0], tensor([2, 3, 4])), ramp(3, 4), target)
    assert not target.data[0].any() and target.data[1, 2, 3] == 11


# --- move and extract -------------------------------------------------------------------------------------------------


def test_move_layouts():
    source = tile([16, 64], space=M.Mat)
    left = PL.move(source, M.Left).type
    assert left.memory_space is M.Left and left.tile_view is None
    right = PL.move(tile([16, 1], space=M.Mat), M.Right).type
    assert right.get_effective_tile_view().blayout is TileLayout.row_major
    vec = PL.move(tile([16, 64], space=M.Acc), M.Vec, blayout=TileLayout.row_major, slayout=TileLayout.none_box)
    assert vec.type.tile_view is None
    assert text(vec).endswith(
        "target_memory=pl.Mem.Vec, blayout=pl.TileLayout.row_major, slayout=pl.TileLayout.none_box)"
    )
    padded = PL.move(tile([16, 64], valid=[4, 64], pad=PadValue.zero), M.Mat).type
    assert padded.tile_view.pad is PadValue.zero


def test_move_requires_a_target_and_knows_scales():
    source = tile([16, 2], D.UINT8, space=M.Mat, blayout=TileLayout.row_major, slayout=TileLayout.row_major)
    assert PL.move(source, M.LeftScale).type.dtype is D.FP8E8M0
    with pytest.raises(ValueError, match="hardware-fixed layout"):
        PL.move(source, M.LeftScale, blayout=TileLayout.col_major)
    with pytest.raises(ValueError, match="UINT8 or FP8E8M0"):
        PL.move(tile([16, 2], space=M.Mat), M.LeftScale)
    with pytest.raises(ValueError, match="requires a source layout matching"):
        PL.move(tile([16, 2], D.UINT8, space=M.Mat), M.LeftScale)
    with pytest.raises(ValueError, match="requires a 'target_memory' kwarg"):
        create_op_call("tile.move", [source], {})


def test_move_copies():
    source = ramp(2, 4)
    got = run(PL.move(tile([2, 4]), M.Mat), source)
    assert not np.shares_memory(got.data, source.data)
    np.testing.assert_array_equal(got.data, source.data)


def test_extract():
    source = tile([32, 64], space=M.Mat)
    left = TILE.extract(source, 16, 0, [16, 32], target_memory=M.Left).type
    assert (left.tile_view.blayout, left.tile_view.slayout) == (TileLayout.row_major, TileLayout.row_major)
    partial = TILE.extract(tile([32, 64], valid=[20, 64], space=M.Mat), 16, 0, [16, 32], target_memory=M.Right)
    assert valid_of(partial) == [4, 32] and partial.type.tile_view.compact is CompactMode.normal
    for arguments, phrase in (
        ((20, 0, [16, 32]), "exceeds src row"),
        ((0, 40, [16, 32]), "exceeds src col"),
        ((-1, 0, [16, 32]), "must be >= 0"),
    ):
        with pytest.raises(ValueError, match=phrase):
            IR_TILE.extract(source, *arguments, target_memory=M.Left)
    got = run(TILE.extract(source, 16, 0, [16, 32], target_memory=M.Left), ramp(32, 64))
    np.testing.assert_array_equal(got.data, np.arange(2048).reshape(32, 64)[16:, :32])
