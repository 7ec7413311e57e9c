"""mgather and mscatter."""

import numpy as np
import pytest
from memory_support import PL, D, M, array, ramp, run, shape_of, tensor, tile, valid_of

from pypto.ir.enums import ArgEffect
from pypto.ops.registry import get_op_arg_effect
from pypto.ops.values import OutOfBoundsError


def text(call):
    return call.as_python(format=False)


def test_row_gather_types():
    idx = tile([1, 8], D.INT32, valid=[1, 5])
    call = PL.mgather(tensor([100, 64]), idx)
    assert shape_of(call) == [8, 64] and valid_of(call) == [5, 64] and call.type.memory_space is M.Vec
    assert text(call) == "pl.tile.mgather(x, t, target_memory=pl.Mem.Vec)"
    assert shape_of(PL.mgather(tensor([4, 100, 64]), tile([8, 1], D.INT32))) == [8, 64]


def test_element_gather_types():
    call = PL.mgather(tensor([100]), tile([4, 8], D.INT32, valid=[3, 8]), "elem", gather_oob="clamp")
    assert shape_of(call) == [4, 8] and valid_of(call) == [3, 8]
    assert call.kwargs["coalesce"] == 1 and call.kwargs["gather_oob"] == 1


def test_mat_gather_types():
    table, idx = tensor([100, 64], D.FP16), tensor([1, 32], D.INT32)
    call = PL.mgather(table, idx, target_memory=M.Mat, valid_shape=[20, 64])
    assert shape_of(call) == [32, 64] and valid_of(call) == [20, 64] and call.type.memory_space is M.Mat
    assert "valid_shape=[20, 64]" in text(call)
    scratch = tensor([16, 16], D.FP16)
    element = PL.mgather(table, tensor([16, 16], D.INT32), "elem", target_memory=M.Mat, scratch=scratch)
    assert "scratch=x" in text(element) and len(element.args) == 3


@pytest.mark.parametrize(
    ("args", "kwargs", "phrase"),
    [
        ((tensor([100, 64]), tile([2, 8], D.INT32)), {}, "static idx"),
        ((tensor([100]), tile([1, 8], D.INT32)), {}, "rank >= 2"),
        ((tensor([100, 64]), tile([1, 8], D.INT16)), {}, "requires idx dtype"),
        ((tensor([100, 64]), tile([1, 8], D.INT32), "col"), {}, "coalesce must be one of"),
        ((tensor([100, 64]), tile([1, 8], D.INT32)), {"gather_oob": "drop"}, "gather_oob must be one of"),
        ((tensor([100, 64]), tile([1, 8], D.INT32)), {"scratch": tensor([8])}, "takes a scratch"),
        ((tensor([100, 64]), tensor([1, 8], D.INT32)), {"target_memory": M.Mat}, "multiple of 16"),
        ((tensor([100, 64]), tensor([16, 16], D.INT32), "elem"), {"target_memory": M.Mat}, "requires a scratch"),
        (
            (tensor([100, 64]), tensor([16, 16], D.INT32), "elem"),
            {"target_memory": M.Mat, "scratch": tensor([16])},
            "at least 256",
        ),
    ],
)
def test_bad_gathers(args, kwargs, phrase):
    with pytest.raises(ValueError, match=phrase):
        PL.mgather(*args, **kwargs)


def test_scratch_effect_depends_on_the_form():
    assert get_op_arg_effect("tile.mgather", 2) is ArgEffect.Read
    assert get_op_arg_effect("tile.mgather", 2, coalesce=1, target_memory=M.Mat) is ArgEffect.Write


def test_row_gather_at_run():
    call = PL.mgather(tensor([6, 4]), tile([1, 3], D.INT32))
    got = run(call, ramp(6, 4), array(np.array([[4, 0, 9]], np.int32)))
    np.testing.assert_array_equal(got.data[:2], [[16, 17, 18, 19], [0, 1, 2, 3]])
    assert got.mask[:2].all() and not got.mask[2].any()  # out of range: undefined


@pytest.mark.parametrize(("mode", "want"), [("clamp", 23), ("wrap", 1), ("zero", 0)])
def test_element_gather_out_of_range(mode, want):
    call = PL.mgather(tensor([6, 4]), tile([1, 2], D.INT32), "elem", gather_oob=mode)
    got = run(call, ramp(6, 4), array(np.array([[5, 25]], np.int32)))
    np.testing.assert_array_equal(got.data, [[5, want]])
    assert got.mask is None


def test_scatter():
    call = PL.mscatter(tile([2, 3]), tile([2, 3], D.INT32), tensor([4, 4]))
    target = array(np.zeros((4, 4), np.float32))
    index = array(np.array([[0, 5, 5], [15, 1, 2]], np.int32))
    got = run(call, ramp(2, 3), index, target)
    assert got is target
    want = np.zeros(16)
    want[[0, 5, 15, 1, 2]] = [0, 2, 3, 4, 5]  # of equal positions the last wins
    np.testing.assert_array_equal(target.data.ravel(), want)
    with pytest.raises(OutOfBoundsError, match="index 16"):
        run(call, ramp(2, 3), array(np.full((2, 3), 16, np.int32)), target)


def test_bad_scatters():
    for source, index, target, phrase in (
        (tile([2, 3]), tile([3, 2], D.INT32), tensor([4]), "shape of src"),
        (tile([2, 3]), tile([2, 3], D.INT32), tensor([4], D.FP16), "output_tensor dtype"),
        (tile([2, 3], D.INT8), tile([2, 3], D.INT32), tensor([4], D.INT8), "requires src dtype"),
    ):
        with pytest.raises(ValueError, match=phrase):
            PL.mscatter(source, index, target)
