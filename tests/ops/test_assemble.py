"""tensor.assemble and tile.assemble: region growth, in-place semantics."""

import numpy as np
import pytest
from memory_support import PL, TENSOR, TILE, D, M, array, ramp, run, scalar, tensor, tile, valid_of

from pypto.ir.enums import ArgEffect, AtomicType, PadValue, TensorLayout
from pypto.ops.registry import get_op_arg_effect, op_has_declared_arg_effect
from pypto.ops.values import OutOfBoundsError, empty


def grow(target_valid, source_shape, offset, source_valid=None, shape=(64, 32)):
    target = tensor(list(shape), valid=target_valid)
    return PL.assemble(target, tensor(list(source_shape), valid=source_valid), offset)


# --- region writes (8.5, example c) -----------------------------------------------------------------------------------


def test_growth_along_one_dimension():
    assert valid_of(grow([16, 32], (16, 32), [16, 0])) == [32, 32]
    assert valid_of(grow([16, 32], (16, 32), [8, 0])) == [24, 32]


def test_write_inside_keeps_the_region():
    assert valid_of(grow([16, 32], (4, 4), [8, 8])) == [16, 32]
    assert valid_of(grow(None, (4, 4), [60, 28])) == [64, 32]


def test_covering_source_replaces_the_region():
    assert valid_of(grow([16, 16], (32, 24), [0, 0])) == [32, 24]


def test_symbolic_growth():
    n = scalar("n")
    assert valid_of(grow([n, 32], (16, 32), [n, 0])) == ["pl.min(n + 16, 64)", 32]


def test_empty_target():
    assert valid_of(grow([0, 32], (16, 32), [0, 0])) == [16, 32]
    with pytest.raises(ValueError, match="does not start at the origin"):
        grow([0, 32], (16, 32), [4, 0])


def test_empty_source_keeps_the_region():
    assert valid_of(grow([16, 32], (16, 32), [40, 0], source_valid=[0, 32])) == [16, 32]


@pytest.mark.parametrize(
    ("case", "phrase"),
    [
        (dict(target_valid=[16, 32], source_shape=(16, 32), offset=[48, 0]), "leaves a gap in dimension 0"),
        (dict(target_valid=[32, 32], source_shape=(16, 16), offset=[32, 0]), "must provably equal"),
        (dict(target_valid=[16, 16], source_shape=(16, 16), offset=[16, 16]), "dimensions 0 and 1 at once"),
        (dict(target_valid=[16, 32], source_shape=(16, 16), offset=[16, 16]), "must span dimension 1 from the origin"),
        (dict(target_valid=[16, 32], source_shape=(16, 32), offset=[56, 0]), "writes past the end of dimension 0"),
        (dict(target_valid=[16, 32], source_shape=(16, 32), offset=[-1, 0]), "offset 0 is provably negative"),
        (dict(target_valid=[16, 32], source_shape=(16, 32), offset=[0]), "offset rank"),
    ],
)
def test_refused_growth(case, phrase):
    with pytest.raises(ValueError, match=phrase):
        grow(**case)


def test_symbolic_gap_is_refused():
    with pytest.raises(ValueError, match="leaves a gap"):
        grow([16, 32], (16, 32), [scalar(), 0])


def test_tile_assemble_copies_the_whole_subview():
    target = tile([64, 32], valid=[16, 32])
    assert valid_of(PL.assemble(target, tile([16, 32], valid=[8, 32]), [16, 0])) == [24, 32]
    with pytest.raises(ValueError, match="copies the whole source subview"):
        PL.assemble(target, tile([16, 32], valid=[8, 32]), [56, 0])


# --- types ------------------------------------------------------------------------------------------------------------


def test_result_drops_layout_and_pad():
    target = tensor([64, 32], valid=[16, 32], pad=PadValue.zero, layout=TensorLayout.DN)
    made = TENSOR.assemble(target, tensor([16, 32]), [0, 0]).type.tensor_view
    assert made.layout is TensorLayout.ND and made.pad is PadValue.null


def test_dtypes_and_levels():
    with pytest.raises(ValueError, match="convert it with pl.cast"):
        PL.assemble(tensor([64, 32]), tensor([16, 32], D.FP16), [0, 0])
    with pytest.raises(ValueError, match="requires target and source to have the same dtype"):
        PL.assemble(tile([64, 32]), tile([16, 32], D.FP16), [0, 0])
    assert PL.assemble(tile([64, 32], D.BF16), tile([16, 32]), [0, 0]).type.dtype is D.BF16
    with pytest.raises(TypeError, match="pl.assemble: cannot mix Tensor and Tile"):
        PL.assemble(tensor([64, 32]), tile([16, 32]), [0, 0])
    with pytest.raises(TypeError, match="'atomic' is not supported for Tile operands"):
        PL.assemble(tile([64, 32]), tile([16, 32]), [0, 0], atomic=AtomicType.Add)
    assert PL.assemble(tile([64, 32]), tile([16, 32]), [0, 0], atomic=AtomicType.None_) is not None
    with pytest.raises(ValueError, match="must be a literal tuple|literal tuple"):
        from pypto.ops.registry import create_op_call

        create_op_call("tile.assemble", [tile([64, 32]), tile([16, 32]), scalar()], {})


def test_space_is_kept():
    assert TILE.assemble(tile([64, 32], space=M.Mat), tile([16, 32], space=M.Mat), [0, 0]).type.memory_space is M.Mat


def test_effects():
    assert get_op_arg_effect("tensor.assemble", 0) is ArgEffect.Write
    assert get_op_arg_effect("tensor.assemble", 0, atomic=1) is ArgEffect.ReadWrite
    assert get_op_arg_effect("tile.assemble", 0) is ArgEffect.ReadWrite
    assert not op_has_declared_arg_effect("tensor.assemble", 1)


def test_printed_form():
    assert PL.assemble(tensor([64, 32]), tensor([16, 32]), [0, 0]).as_python(format=False) == (
        "pl.tensor.assemble(x, x_1, [0, 0])"
    )


# --- semantics --------------------------------------------------------------------------------------------------------


def test_writes_the_target_buffer():
    target = array(np.zeros((4, 4), np.float32))
    got = run(PL.assemble(tensor([4, 4]), tensor([2, 4]), [2, 0]), target, ramp(2, 4))
    assert got.buffer is target.buffer
    np.testing.assert_array_equal(target.data[2:], np.arange(8).reshape(2, 4))


def test_union_of_valid_regions():
    target = empty((4, 4), np.dtype(np.float32))
    target.valid = (0, 4)
    call = PL.assemble(tensor([4, 4], valid=[0, 4]), tensor([2, 4]), [0, 0])
    got = run(call, target, ramp(2, 4))
    assert got.valid == (2, 4) and got.valid_mask().all() and not got.mask[2:].any()


def test_atomic_add_converts():
    target = array(np.ones((2, 2), np.float16))
    call = PL.assemble(tensor([2, 2], D.FP16), tensor([2, 2]), [0, 0], atomic=AtomicType.Add)
    run(call, target, ramp(2, 2))
    np.testing.assert_array_equal(target.data, [[1, 2], [3, 4]])
    assert target.data.dtype == np.float16


def test_tile_assemble_writes_in_place_and_spreads_undefinedness():
    target = array(np.zeros((4, 4), np.float32))
    source = array(np.ones((2, 4), np.float32), valid=(1, 4))
    got = run(PL.assemble(tile([4, 4]), tile([2, 4], valid=[1, 4]), [0, 0]), target, source)
    assert got.buffer is target.buffer
    assert got.mask[0].all() and not got.mask[1].any() and got.mask[2:].all()


def test_out_of_range_at_run():
    call = PL.assemble(tensor([4, 4]), tensor([2, 4]), [scalar(), 0])
    with pytest.raises(OutOfBoundsError, match=r"tensor\.assemble.*offset 3.*dimension 0"):
        run(call, ramp(4, 4), ramp(2, 4), 3)


def test_a_store_that_converts_overflows_silently(recwarn):
    """Values beyond FP16 become infinite; NumPy's warning about it is none of the user's business."""
    target = array(np.zeros((2, 2), np.float16))
    run(
        PL.assemble(tensor([2, 2], D.FP16), tensor([2, 2]), [0, 0]),
        target,
        array(np.array([[1e6, 1], [-1e6, 2]], np.float32)),
        [0, 0],
    )
    assert target.data.tolist() == [[np.inf, 1], [-np.inf, 2]]
    assert not recwarn.list
