"""read, write, dim, launch geometry; arrays; task ids."""

import numpy as np
import pytest
from memory_support import ARRAY, PL, SYSTEM, TENSOR, TILE, D, array, ramp, run, scalar, tensor, tile

from pypto.ir.enums import ArgEffect, CoreType, WriteChannel
from pypto.ir.expr import Var
from pypto.ir.type import ArrayType, ScalarType
from pypto.ops.registry import REGISTRY, create_op_call, get_op_arg_effect, get_op_write_channel
from pypto.ops.values import OutOfBoundsError, UndefinedValueError, empty


def text(call):
    return call.as_python(format=False)


# --- read and write ---------------------------------------------------------------------------------------------------


def test_read_type_and_printing():
    call = PL.read(tensor([4, 6]), [1, scalar()])
    assert call.type == ScalarType(D.FP32) and text(call) == "pl.tensor.read(x, [1, i])"
    assert PL.read(tensor([4]), 2).type == ScalarType(D.FP32)
    assert text(PL.read(tile([4, 6], D.INT32), [1, 2])) == "pl.tile.read(t, [1, 2])"


@pytest.mark.parametrize(
    ("indices", "phrase"),
    [([1], "indices count"), ([1, 2, 3], "indices count"), ([4, 0], "out of range"), ([-1, 0], "out of range")],
)
def test_bad_indices(indices, phrase):
    with pytest.raises(ValueError, match=phrase):
        PL.read(tensor([4, 6]), indices)


def test_indices_are_integers():
    with pytest.raises((TypeError, ValueError), match="integer scalar"):
        PL.read(tensor([4, 6]), [scalar("f", D.FP32), 0])


def test_read_at_run():
    call = PL.read(tensor([4, 6]), [scalar("i"), 2])
    got = run(call, ramp(4, 6), 3)
    assert type(got) is float and got == 20
    for index in (4, -1):
        with pytest.raises(OutOfBoundsError, match=rf"tensor\.read: index {index}.*dimension 0"):
            run(call, ramp(4, 6), index)
    flags = PL.read(tensor([2], D.BOOL), [1])
    assert run(flags, array(np.array([False, True]))) is True


def test_reading_undefined_elements_is_reported():
    call = PL.read(tensor([4, 6]), [1, 2])
    with pytest.raises(UndefinedValueError, match=r"tensor\.read: element \[1, 2\] of scratch"):
        run(call, empty((4, 6), np.dtype(np.float32), "scratch"))
    with pytest.raises(UndefinedValueError):
        run(call, array(np.zeros((4, 6), np.float32), valid=(1, 6)))


def test_write():
    target = array(np.zeros((4, 6), np.float32))
    call = TENSOR.write(tensor([4, 6]), [1, 2], 3)
    assert text(call) == "pl.tensor.write(x, [1, 2], 3.0)"
    got = run(call, target)
    assert got is target and target.data[1, 2] == 3
    scratch = empty((4, 6), np.dtype(np.float32))
    run(call, scratch)
    assert scratch.mask.sum() == 1 and scratch.mask[1, 2]
    wrapped = array(np.zeros(2, np.uint8))
    run(PL.write(tensor([2], D.UINT8), 0, 257), wrapped)
    assert wrapped.data[0] == 1


def test_write_dtype_must_match():
    with pytest.raises(ValueError, match="convert it with pl.cast"):
        PL.write(tensor([4], D.INT32), [0], scalar())
    with pytest.raises(ValueError, match="requires a value of dtype fp32"):
        PL.write(tensor([4]), [0], scalar("h", D.FP16))
    with pytest.raises(TypeError, match="pl.write: expected Tensor or Tile, got Scalar"):
        PL.write(scalar(), [0], 1)


def test_effects_and_channels():
    assert get_op_arg_effect("tensor.write", 0) is ArgEffect.Write
    assert get_op_write_channel("tensor.write") is WriteChannel.Scalar
    assert get_op_arg_effect("tile.write", 0) is ArgEffect.ReadWrite
    assert get_op_write_channel("tile.write") is None


# --- dim, geometry ----------------------------------------------------------------------------------------------------


def test_dim():
    call = PL.dim(tensor([scalar("n"), 6]), 0)
    assert call.type == ScalarType(D.INDEX) and text(call) == "pl.tensor.dim(x, 0)"
    assert run(call, ramp(4, 6)) == 4 and run(PL.dim(tensor([4, 6]), -1), ramp(4, 6)) == 6
    with pytest.raises(ValueError, match="out of range"):
        PL.dim(tensor([4]), 1)


def test_geometry():
    assert text(PL.get_block_idx()) == "pl.tensor.get_block_idx()"
    assert run(TILE.get_block_idx(), block_idx=3) == 3
    assert run(TILE.get_block_num(), block_num=8) == 8
    assert run(TILE.get_subblock_idx(), lane=1) == 1
    assert REGISTRY["tile.get_block_idx"].core == "SHARED"
    assert REGISTRY["tile.get_subblock_idx"].core is CoreType.VECTOR


# --- arrays -----------------------------------------------------------------------------------------------------------


class Runtime:
    null = object()

    def task_invalid(self):
        return self.null


def test_array_types():
    assert ARRAY.create(3, D.TASK_ID).type == ArrayType(D.TASK_ID, 3)
    assert text(ARRAY.create(3, D.TASK_ID)) == "pl.array.create(3, dtype=pl.TASK_ID)"
    ids = Var("ids", ArrayType(D.INT32, 3))
    assert ARRAY.get_element(ids, scalar()).type == ScalarType(D.INT32)
    assert ARRAY.update_element(ids, 0, scalar()).type == ArrayType(D.INT32, 3)  # INDEX and integers interchange
    for bad, phrase in (
        (lambda: ARRAY.create(0, D.INT32), "positive constant extent"),
        (lambda: ARRAY.create(3, D.FP32), "integer, BOOL or TASK_ID"),
        (lambda: ARRAY.get_element(ids, 3), "out of range"),
        (lambda: ARRAY.update_element(ids, 0, scalar("f", D.FP32)), "must match array dtype"),
    ):
        with pytest.raises(ValueError, match=phrase):
            bad()


def test_arrays_update_in_place():
    ids = Var("ids", ArrayType(D.INT32, 3))
    values = run(ARRAY.create(3, D.INT32))
    assert values == [0, 0, 0]
    assert run(ARRAY.update_element(ids, scalar(), 7), values, 1) is values and values == [0, 7, 0]
    assert run(ARRAY.get_element(ids, 1), values) == 7
    with pytest.raises(OutOfBoundsError, match="index 3"):
        run(ARRAY.get_element(ids, scalar()), values, 3)
    assert run(ARRAY.create(2, D.TASK_ID), runtime=Runtime()) == [Runtime.null] * 2


def test_task_ids():
    assert text(SYSTEM.task_invalid()) == "pl.system.task_invalid()"
    assert run(SYSTEM.task_invalid(), runtime=Runtime()) is Runtime.null
    valid = create_op_call("system.task_is_valid", [scalar("tid", D.TASK_ID)], {})
    assert valid.type == ScalarType(D.BOOL)
    assert run(valid, Runtime.null, runtime=Runtime()) is False
    assert run(valid, object(), runtime=Runtime()) is True
    with pytest.raises(RuntimeError):
        SYSTEM.task_dummy(deps=[])
