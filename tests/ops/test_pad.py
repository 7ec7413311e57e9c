"""fillpad, fillpad_inplace, fillpad_expand."""

import math

import numpy as np
import pytest
from ops_kit import D, check, pl, pl_tensor, pl_tile, run, shape_of, tensor, tile, valid_of, value

from pypto.ir.enums import ArgEffect, MemorySpace, PadValue, TensorLayout
from pypto.ir.expr import ConstFloat, ConstInt, Var
from pypto.ir.type import ScalarType
from pypto.ops.registry import REGISTRY, create_op_call, get_op_arg_effect


def test_types():
    call = pl["fillpad"](tensor([4, 6], D.FP16, valid=[3, 5]))
    assert (call.op.name, call.type.dtype, valid_of(call)) == ("tensor.fillpad", D.FP16, [4, 6])
    assert dict(call.kwargs) == {"pad_value": PadValue.zero}
    call = pl["fillpad"](tile([4, 6], D.FP16, valid=[3, 5], space=MemorySpace.Vec), PadValue.min)
    assert (call.op.name, valid_of(call), call.type.memory_space) == ("tile.fillpad", [4, 6], MemorySpace.Vec)
    assert call.type.tile_view.pad is PadValue.min
    assert pl_tile["fillpad_inplace"](tile([4, 6], valid=[3, 5])).op.name == "tile.fillpad_inplace"


def test_expand_types():
    call = pl["fillpad_expand"](tensor([4, 6], valid=[3, 5]), [8, 6], pad_value=PadValue.max)
    assert (shape_of(call), valid_of(call)) == ([8, 6], [8, 6])
    assert (call.type.tensor_view.pad, call.type.tensor_view.layout) == (PadValue.max, TensorLayout.ND)
    call = pl["fillpad_expand"](tile([4, 6], valid=[3, 5]), [8, 16], 0)
    assert (shape_of(call), call.type.tile_view.pad) == ([8, 16], PadValue.zero)
    for level in (tensor, tile):
        with pytest.raises(ValueError, match="must be >= source dimension"):
            pl["fillpad_expand"](level([4, 6]), [4, 5])
        with pytest.raises(ValueError, match="shape of rank 2"):
            pl["fillpad_expand"](level([4, 6]), [4])
        n = Var("n", ScalarType(D.INDEX))
        with pytest.raises(ValueError, match="literal tuple of constants"):
            pl["fillpad_expand"](level([4, 6]), [n, 6])
        assert shape_of(pl["fillpad_expand"](level([n, 6]), [8, 6])) == [8, 6]


@pytest.mark.parametrize(
    "given, stored",
    [
        (PadValue.zero, PadValue.zero),
        (PadValue.max, PadValue.max),
        (PadValue.min, PadValue.min),
        (0, PadValue.zero),
        (0.0, PadValue.zero),
        (math.inf, PadValue.max),
        (-math.inf, PadValue.min),
        (ConstInt(0, D.INDEX), PadValue.zero),
        (ConstFloat(math.inf, D.FP32), PadValue.max),
    ],
)
def test_pad_values(given, stored):
    assert pl["fillpad"](tensor([4, 6]), given).kwargs["pad_value"] is stored


@pytest.mark.parametrize(
    "given, error",
    [
        (PadValue.null, ValueError),
        (math.nan, ValueError),
        (1, ValueError),
        (-0.5, ValueError),
        (True, TypeError),
        ("zero", TypeError),
        (None, TypeError),
    ],
)
def test_pad_value_errors(given, error):
    for function, operands in (
        (pl["fillpad"], [tensor([4, 6])]),
        (pl_tile["fillpad_inplace"], [tile([4, 6])]),
        (pl_tensor["fillpad_expand"], [tensor([4, 6]), [4, 6]]),
    ):
        with pytest.raises(error, match="fillpad pad_value"):
            function(*operands, given)


def test_ir_level():
    assert create_op_call("tile.fillpad", [tile([4, 6])], {}).type.tile_view.pad is PadValue.zero
    with pytest.raises(ValueError, match="fillpad pad_value"):
        create_op_call("tile.fillpad", [tile([4, 6])], {"pad_value": PadValue.null})
    assert get_op_arg_effect("tile.fillpad_inplace", 0) is ArgEffect.ReadWrite
    assert REGISTRY["tile.fillpad_inplace"].alias_operand == 0
    with pytest.raises(TypeError, match="expected Tensor or Tile"):
        pl["fillpad"](3)


@pytest.mark.parametrize(
    "dtype, low, high",
    [
        (D.FP32, -math.inf, math.inf),
        (D.BF16, -math.inf, math.inf),
        (D.INT8, -128, 127),
        (D.UINT16, 0, 65535),
        (D.INT32, -(2**31), 2**31 - 1),
        (D.FP8E4M3FN, -448, 448),
    ],
)
@pytest.mark.parametrize("level", [tensor, tile])
def test_semantics(dtype, low, high, level):
    for pad, number in ((PadValue.zero, 0), (PadValue.min, low), (PadValue.max, high)):
        x = value([[1, 2, 3], [4, 5, 6]], dtype, valid=(1, 2))
        expected = np.full((2, 3), number, float)
        expected[0, :2] = [1, 2]
        check(run(pl["fillpad"](level([2, 3], dtype, valid=[1, 2]), pad), x), expected)
        expected = np.full((3, 4), number, float)
        expected[0, :2] = [1, 2]
        check(run(pl["fillpad_expand"](level([2, 3], dtype, valid=[1, 2]), [3, 4], pad), x, [3, 4]), expected)


def test_in_place():
    x = value([[1, 2, 3], [4, 5, 6]], D.INT32, valid=(1, 2), undefined=[(0, 1)])
    result = run(pl_tile["fillpad_inplace"](tile([2, 3], D.INT32, valid=[1, 2]), -math.inf), x)
    check(result, [[1, 0, -(2**31)], [-(2**31)] * 3], undefined=[(0, 1)])
    assert result.buffer is x.buffer
    copy = run(pl["fillpad"](tile([2, 3], D.INT32, valid=[1, 2])), x)
    assert copy.buffer is not x.buffer
