"""create, full, arange, tri, random, alloc."""

import numpy as np
import pytest
from memory_support import IR_TILE, PL, TENSOR, TILE, D, M, run, scalar, shape_of, tensor, valid_of

from pypto.ir.enums import TensorLayout, TileLayout
from pypto.ir.expr import ConstFloat, ConstInt, Neg
from pypto.ir.type import PtrType
from pypto.ops.random import philox, stream
from pypto.ops.registry import get_op_memory_spec


def text(call):
    return call.as_python(format=False)


def test_tensor_create():
    call = PL.create_tensor([48, 64], D.FP32)
    assert text(call) == "pl.tensor.create([48, 64], dtype=pl.FP32, layout=pl.TensorLayout.ND)"
    got = run(call)
    assert got.shape == (48, 64) and not got.mask.any() and not got.buffer.manual_dep
    assert run(PL.create_tensor([4], D.INT32, manual_dep=True)).buffer.manual_dep
    filled = run(TENSOR.create([4], D.BF16, init_value=2))
    assert filled.mask is None and (filled.data.astype(np.float32) == 2).all()
    assert text(TENSOR.create([4], D.BF16, init_value=2)).endswith("init_value=2.0)")
    assert shape_of(PL.create_tensor([scalar("n"), 4], D.INT8)) == ["n", 4]


def test_dn_tensors_lie_column_major():
    call = PL.create_tensor([4, 6], D.FP32, layout=TensorLayout.DN)
    assert call.type.tensor_view.layout is TensorLayout.DN
    assert run(call).data.strides == (4, 16)
    with pytest.raises(ValueError, match="NZ layout is not allowed"):
        PL.create_tensor([4, 6], D.FP32, layout=TensorLayout.NZ)


def test_tile_create():
    call = PL.create_tile([16, 32], D.FP32)
    assert text(call) == "pl.tile.create([16, 32], dtype=pl.FP32, target_memory=pl.Mem.Vec)"
    assert call.type.memory_space is M.Vec and call.type.tile_view is None
    acc = PL.create_tile([16, 32], D.FP32, target_memory=M.Acc).type
    assert acc.memory_space is M.Acc and acc.get_effective_tile_view().fractal == 1024
    turned = PL.create_tile([16, 32], D.FP32, target_memory=M.Mat, transpose=True).type.tile_view
    assert (turned.blayout, turned.slayout) == (TileLayout.row_major, TileLayout.col_major)
    flat = PL.create_tile([16, 32], D.FP32, target_memory=M.Mat, flat_layout=True).type
    assert flat.tile_view.slayout is TileLayout.none_box and flat.memory_space is M.Mat
    assert get_op_memory_spec("tile.create") == {"input_constraints": [], "output_memory": "deferred"}
    assert not run(call).mask.any()


@pytest.mark.parametrize(
    ("args", "kwargs", "phrase"),
    [
        (([scalar("n"), 4], D.FP32), {}, "compile-time constant"),
        (([0, 4], D.FP32), {}, "must be positive"),
        (([4, 4], D.FP8E8M0), {"target_memory": M.LeftScale}, "LeftScale"),
        (([4, 4], D.FP32), {"transpose": True}, "2D tile in Mat"),
        (([4, 4], D.FP32), {"flat_layout": True}, "requires target_memory=Mat"),
        (([4, 4], D.FP32), {"target_memory": M.Mat, "flat_layout": True, "transpose": True}, "exclude"),
    ],
)
def test_bad_tiles(args, kwargs, phrase):
    with pytest.raises(ValueError, match=phrase):
        PL.create_tile(*args, **kwargs)


def test_full_constants_follow_the_dtype():
    call = PL.full([4, 8], dtype=D.FP32, value=0)
    assert type(call.args[1]) is ConstFloat and call.args[1].dtype is D.FP32
    assert text(call) == "pl.tensor.full([4, 8], dtype=pl.FP32, value=0.0)"
    assert type(TILE.full([4, 8], D.INT16, 3.0).args[1]) is ConstInt
    negative = TENSOR.full([4], D.BF16, Neg(ConstFloat(1.5, D.FP32), D.FP32))
    assert negative.args[1].value == -1.5 and negative.args[1].dtype is D.BF16
    with pytest.raises(ValueError, match="non-integral"):
        PL.full([4], D.INT32, 2.5)
    with pytest.raises(ValueError, match="constant value"):
        PL.full([4], D.FP32, scalar("a", D.FP32))
    np.testing.assert_array_equal(run(TILE.full([2, 3], D.UINT8, -1)).data, np.full((2, 3), 255, np.uint8))


def test_arange():
    call = PL.arange(5, [1, 4])
    assert call.args[0].dtype is D.INT32 and call.op.name == "tensor.ci"
    np.testing.assert_array_equal(run(call).data, [[5, 6, 7, 8]])
    np.testing.assert_array_equal(run(TILE.ci(1, [1, 3], D.UINT16, descending=True)).data, np.array([[1, 0, 65535]]))
    for bad, phrase in (
        (lambda: PL.arange(0, [4, 1]), "innermost dimension"),
        (lambda: PL.arange(0, [2, 4]), "leading dimensions must be 1"),
        (lambda: PL.arange(0, [4], D.FP32), "requires result dtype"),
        (lambda: PL.arange(scalar("s", D.INDEX), [4]), "must have dtype int32"),
    ):
        with pytest.raises(ValueError, match=phrase):
            bad()


def test_tri():
    call = PL.tri(1, [3, 4], dtype=D.FP32)
    np.testing.assert_array_equal(run(call).data, np.tri(3, 4, 1))
    upper = run(PL.tri(-1, [4, 4], [2, 3], upper=True))
    np.testing.assert_array_equal(upper.valid_data(), np.triu(np.ones((4, 4)), -1)[:2, :3])
    assert valid_of(PL.tri(-1, [4, 4], [2, 3], upper=True)) == [2, 3]
    with pytest.raises(ValueError, match=r"valid_shape\[0\]"):
        PL.tri(0, [4, 4], [5, 4])
    with pytest.raises(ValueError, match=r"valid_shape\[1\]"):
        PL.tri(0, [4, 4], [4, 0])


def test_philox_known_answers():
    # test vectors of the Random123 distribution for philox4x32-10
    zero = philox(np.zeros((4, 1), np.uint64), 0, 0, 10)
    assert [hex(int(w[0])) for w in zero] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]
    ones = philox(np.full((4, 1), 0xFFFFFFFF, np.uint64), 0xFFFFFFFF, 0xFFFFFFFF, 10)
    assert [hex(int(w[0])) for w in ones] == ["0x408f276d", "0x41c83b0e", "0xa20bc7c6", "0x6d5451fd"]
    seven = philox(np.zeros((4, 1), np.uint64), 0, 0, 7)
    assert [hex(int(w[0])) for w in seven] == ["0x5f6fb709", "0xd893f64", "0x4f121f81", "0x4f730a48"]


def test_random():
    call = PL.random(0, 0, 0, 0, 0, 0, [2, 256])
    got = run(call).data
    assert got.dtype == np.uint32 and got[0, 0] == 0x6627E8D5 and got[0, 64] == 0xE169C58D
    # the second row goes on where the first ended: 64 counters later
    np.testing.assert_array_equal(got[1], stream(1, 256, [0, 0], 64, 10)[0])
    signed = run(TILE.random(1, 2, 3, 4, 5, 6, [1, 100], dtype=D.INT32)).data
    assert signed.dtype == np.int32 and signed.shape == (1, 100)
    with pytest.raises(ValueError, match="rounds must be 7 or 10"):
        PL.random(0, 0, 0, 0, 0, 0, [2, 256], rounds=8)


def test_alloc():
    call = TILE.alloc(M.Vec, 2304)
    assert text(call) == "pl.tile.alloc(pl.Mem.Vec, 2304)" and call.type == PtrType()
    assert text(TILE.alloc(M.Mat, 64, pinned=True)) == "pl.tile.alloc(pl.Mem.Mat, 64, pinned=True)"
    assert text(TENSOR.alloc(M.DDR, 4096)) == "pl.tensor.alloc(pl.Mem.DDR, 4096)"
    assert len(IR_TILE.alloc(M.Vec, 0, 64, 3).args) == 2


def test_create_l1():
    call = PL.create_l1([16, 32], D.BF16, transpose=True)
    assert call.type == tensor([16, 32], D.BF16).type and call.kwargs["transpose"] is True
