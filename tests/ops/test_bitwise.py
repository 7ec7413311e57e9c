"""and, or, xor, shl, shr with their scalar forms."""

import numpy as np
import pytest
from ops_kit import D, check, integers, pl, pl_tensor, pl_tile, run, scalar, shape_of, tensor, tile, valid_of, value

from pypto.ir.enums import MemorySpace
from pypto.ir.expr import ConstInt
from pypto.ops.registry import REGISTRY, create_op_call

NAMES = {"and": "and_", "or": "or_", "xor": "xor", "shl": "shl", "shr": "shr"}
NUMPY = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": np.left_shift,
    "shr": np.right_shift,
}


def build(name, lhs, rhs):
    extra = [tile([4, 9], lhs.type.dtype)] if name == "xor" and type(lhs.type).__name__ == "TileType" else []
    return pl[NAMES[name]](lhs, rhs, *extra)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("level", [tensor, tile])
def test_types(name, level):
    shift = name.startswith("sh")
    prefix = "tensor" if level is tensor else "tile"
    call = build(name, level([4, 9], D.INT16, valid=[3, 9]), level([4, 9], D.INT32, valid=[4, 8]))
    assert call.op.name == f"{prefix}.{name}"
    assert call.type.dtype is (D.INT16 if shift else D.INT32)
    assert valid_of(call) == [3, 8]
    call = build(name, level([4, 9], D.INT16, valid=[3, 9]), 5)
    assert (call.op.name, call.type.dtype, valid_of(call)) == (f"{prefix}.{name}s", D.INT16, [3, 9])
    assert type(call.args[1]) is ConstInt and call.args[1].type.dtype is D.INT16
    assert build(name, level([4, 9], D.INT16), scalar(D.INT32)).type.dtype is D.INT16


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("level", [tensor, tile])
def test_type_errors(name, level):
    word = "tensor" if level is tensor else "tile"
    with pytest.raises(ValueError, match=f"requires an integer {word} dtype"):
        build(name, level([4, 9]), level([4, 9]))
    with pytest.raises(ValueError, match=f"requires an integer {word} dtype"):
        build(name, level([4, 9]), 3)
    with pytest.raises(ValueError, match="requires the shift/bitwise scalar"):
        build(name, level([4, 9], D.INT32), 1.5)
    with pytest.raises(ValueError, match="has dtype `index`"):
        build(name, level([4, 9], D.INT32), scalar(D.INDEX))
    with pytest.raises(TypeError, match="expected Tensor or Tile operands"):
        pl[NAMES[name]](3, level([4, 9], D.INT32))
    with pytest.raises(TypeError, match="cannot mix Tensor and Tile"):
        pl[NAMES[name]](level([4, 9], D.INT32), (tile if level is tensor else tensor)([4, 9], D.INT32))


@pytest.mark.parametrize("name", NAMES)
def test_tensors_do_not_broadcast(name):
    with pytest.raises(ValueError, match="requires both operands to have the same shape"):
        build(name, tensor([4, 9], D.INT32), tensor([1, 9], D.INT32))
    assert shape_of(build(name, tile([4, 9], D.INT32), tile([1, 9], D.INT32))) == [4, 9]


@pytest.mark.parametrize("name", ["shl", "shr"])
@pytest.mark.parametrize("level", [tensor, tile])
def test_negative_shift(name, level):
    with pytest.raises(ValueError, match="non-negative shift count"):
        pl[name](level([4, 9], D.INT32), -1)
    assert pl[name](level([4, 9], D.INT32), 0).op.name.endswith(f"{name}s")


def test_scalar_names():
    x, t, tmp = tensor([4, 9], D.INT32), tile([4, 9], D.INT32), tile([4, 9], D.INT32)
    for name in ("ands", "ors", "shls", "shrs"):
        assert pl[name](x, 3).op.name == pl_tensor[name](x, 3).op.name == f"tensor.{name}"
        assert pl[name](t, 3).op.name == pl_tile[name](t, 3).op.name == f"tile.{name}"
        with pytest.raises(TypeError, match="expected Tensor or Tile operands"):
            pl[name](t, t)
    assert pl["xors"](x, 3).op.name == "tensor.xors"
    assert pl["xors"](t, 3, tmp).op.name == "tile.xors"
    with pytest.raises(TypeError, match="expected Tensor or Tile operands"):
        pl["xors"](t, t, tmp)


def test_xor_scratch():
    x, t, tmp = tensor([4, 9], D.INT32), tile([4, 9], D.INT32), tile([4, 9], D.INT32)
    for name, rhs in (("xor", None), ("xors", 3)):
        with pytest.raises(TypeError, match="Tensor inputs must not pass tmp"):
            pl[name](x, x if rhs is None else rhs, tmp)
        with pytest.raises(TypeError, match="Tile inputs require tmp"):
            pl[name](t, t if rhs is None else rhs)
    assert pl["xor"](t, 3, tmp).op.name == "tile.xors"
    with pytest.raises(ValueError, match=r"third argument \(tmp\)"):
        create_op_call("tile.xor", [t, t, x], {})
    # scratch takes no part in inference
    assert pl["xor"](t, t, tile([8, 99], D.INT8)).type.dtype is D.INT32


def test_facts():
    assert [REGISTRY[f"tile.{n}"].not_in_place for n in ("ands", "ors", "xors", "and", "xor", "shls")] == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]
    assert REGISTRY["tile.xors"].input_memory == ((MemorySpace.Vec,), (), (MemorySpace.Vec,))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.int16, np.uint16, np.int32, np.uint8])
def test_semantics(name, dtype):
    ours = {np.int16: D.INT16, np.uint16: D.UINT16, np.int32: D.INT32, np.uint8: D.UINT8}[dtype]
    low = 0 if np.dtype(dtype).kind == "u" else -100
    a, b = integers((4, 9), low, 100, 1, dtype), integers((4, 9), 0, 7, 2, dtype)
    expected = NUMPY[name](a, b)
    for level in (tensor, tile):
        scratch = [value(np.zeros((4, 9), dtype))] if name == "xor" and level is tile else []
        call = build(name, level([4, 9], ours), level([4, 9], ours))
        check(run(call, value(a), value(b), *scratch), expected)
        call = build(name, level([4, 9], ours, valid=[3, 5]), 3)
        check(run(call, value(a, valid=(3, 5)), 3, *scratch), NUMPY[name](a, dtype(3)), valid=(3, 5))


def test_shift_right_is_arithmetic_or_logical():
    check(run(pl["shr"](tensor([1, 2], D.INT8), 1), value([[-3, 127]], D.INT8), 1), [[-2, 63]])
    check(run(pl["shr"](tensor([1, 2], D.UINT8), 1), value([[253, 127]], D.UINT8), 1), [[126, 63]])


def test_distance_out_of_range_is_undefined():
    a, b = value([[1, 1, 1, 1]], D.INT16), value([[0, 15, 16, -1]], D.INT16)
    result = run(pl["shl"](tensor([1, 4], D.INT16), tensor([1, 4], D.INT16)), a, b)
    check(result, [[1, -32768, 0, 0]], undefined=[(0, 2), (0, 3)])
    check(
        run(pl["shl"](tensor([1, 1], D.INT16), scalar(D.INT32)), value([[1]], D.INT16), 16), [[0]], undefined=[(0, 0)]
    )


def test_poison():
    a, b = integers((2, 3), 0, 9, 1), integers((2, 3), 0, 5, 2)
    for name in NAMES:
        call = build(name, tensor([2, 3], D.INT32), tensor([2, 3], D.INT32))
        result = run(call, value(a, undefined=[(0, 1)]), value(b, undefined=[(1, 2)]))
        check(result, NUMPY[name](a, b), undefined=[(0, 1), (1, 2)])
