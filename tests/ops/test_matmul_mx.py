"""Block-scaled products."""

import ml_dtypes
import numpy as np
import pytest
from ops_kit import D, check, ir_tile, pl, run, shape_of, tile, valid_of, value

from pypto.ir.enums import ArgEffect, CompactMode, MemorySpace
from pypto.ir.expr import Var
from pypto.ops.registry import get_op_arg_effect

M, K, N = 16, 64, 32
F8, E8 = D.FP8E4M3FN, D.FP8E8M0


def operands(**changes):
    parts = {
        "lhs": tile([M, K], F8),
        "lhs_scale": tile([M, K // 32], E8),
        "rhs": tile([K, N], F8),
        "rhs_scale": tile([K // 32, N], E8),
    }
    parts.update(changes)
    return list(parts.values())


def test_types():
    call = pl["matmul_mx"](*operands())
    assert (shape_of(call), call.type.dtype, call.type.memory_space) == ([M, N], D.FP32, MemorySpace.Acc)
    partial = pl["matmul_mx"](*operands(lhs=tile([M, K], F8, valid=[9, 50]), rhs=tile([K, N], F8, valid=[50, 20])))
    assert (valid_of(partial), partial.type.tile_view.compact) == ([9, 20], CompactMode.normal)
    acc = Var("acc", call.type)
    assert pl["matmul_mx_acc"](acc, *operands()).type == call.type
    assert pl["matmul_mx_bias"](*operands(), tile([1, N])).type == call.type


@pytest.mark.parametrize(
    "changes, phrase",
    [
        ({"lhs": tile([M, K], D.FP16)}, "requires lhs dtype FP8E4M3FN"),
        ({"lhs": tile([M, K], D.FP4)}, "requires lhs dtype FP8E4M3FN.*cast FP4"),
        ({"rhs": tile([K, N], D.FP8E5M2)}, "requires rhs dtype FP8E4M3FN"),
        ({"lhs_scale": tile([M, K // 32], D.UINT8)}, "requires lhs_scale dtype FP8E8M0"),
        ({"lhs_scale": tile([M, 3], E8)}, "lhs_scale columns"),
        ({"rhs_scale": tile([2, 31], E8)}, "rhs_scale columns"),
        ({"rhs_scale": tile([1, N], E8)}, "rhs_scale rows"),
        ({"lhs": tile([8, K], F8), "lhs_scale": tile([8, 2], E8)}, "M to be a multiple of 16"),
        (
            {"lhs": tile([M, 32], F8), "lhs_scale": tile([M, 1], E8), "rhs": tile([32, N], F8)},
            "K to be a multiple of 64",
        ),
        ({"rhs": tile([K, 16], F8), "rhs_scale": tile([2, 16], E8)}, "N to be a multiple of 32"),
        ({"lhs": tile([M, K], F8, valid=[M, 50])}, "same valid K"),
        ({"lhs": tile([M, K], F8, valid=[M, 30]), "rhs": tile([K, N], F8, valid=[30, N])}, "scale-group count"),
        ({"lhs": tile([M, K], F8, valid=[M, 0]), "rhs": tile([K, N], F8, valid=[0, N])}, "positive valid K"),
        ({"rhs": tile([128, N], F8)}, "inner dimensions"),
    ],
)
def test_errors(changes, phrase):
    with pytest.raises(ValueError, match=phrase):
        pl["matmul_mx"](*operands(**changes))


def test_accumulator_and_bias_errors():
    with pytest.raises(ValueError, match="accumulator dtype"):
        pl["matmul_mx_acc"](tile([M, N], D.FP16), *operands())
    with pytest.raises(ValueError, match="acc N dimension"):
        pl["matmul_mx_acc"](tile([M, 16]), *operands())
    with pytest.raises(ValueError, match="acc valid M"):
        pl["matmul_mx_acc"](tile([M, N], valid=[8, N]), *operands())
    with pytest.raises(ValueError, match="accumulator dtype"):
        pl["matmul_mx_bias"](*operands(), tile([1, N], D.FP16))


def test_tget_scale_addr():
    scale, data = tile([M, 2], E8, space=MemorySpace.LeftScale), tile([M, K], F8, space=MemorySpace.Left)
    assert ir_tile["tget_scale_addr"](scale, data).type == scale.type
    assert get_op_arg_effect("tile.tget_scale_addr", 0) is ArgEffect.Write
    with pytest.raises(ValueError, match="LeftScale with Left or RightScale with Right"):
        ir_tile["tget_scale_addr"](scale, tile([M, K], F8, space=MemorySpace.Right))


def test_semantics():
    rng = np.random.default_rng(3)
    a = rng.uniform(-2, 2, (M, K)).astype(ml_dtypes.float8_e4m3fn)
    b = rng.uniform(-2, 2, (K, N)).astype(ml_dtypes.float8_e4m3fn)
    ls, rs = rng.integers(-3, 4, (M, 2)), rng.integers(-3, 4, (2, N))
    scaled_a = a.astype(np.float32) * np.repeat(2.0**ls, 32, axis=1)
    scaled_b = b.astype(np.float32) * np.repeat(2.0**rs, 32, axis=0)
    expected = scaled_a @ scaled_b
    scales = [value((2.0**s).astype(ml_dtypes.float8_e8m0fnu)) for s in (ls, rs)]
    values = [value(a), scales[0], value(b), scales[1]]
    check(run(pl["matmul_mx"](*operands()), *values), expected, rtol=1e-4)
    acc = value(np.ones((M, N), np.float32))
    check(run(pl["matmul_mx_acc"](tile([M, N]), *operands()), acc, *values), expected + 1, rtol=1e-4)
    bias = value(np.arange(N, dtype=np.float32)[None])
    check(run(pl["matmul_mx_bias"](*operands(), tile([1, N])), *values, bias), expected + np.arange(N), rtol=1e-4)


def test_an_undefined_scale_poisons_its_row():
    a, b = np.ones((M, K), ml_dtypes.float8_e4m3fn), np.ones((K, N), ml_dtypes.float8_e4m3fn)
    one = ml_dtypes.float8_e8m0fnu(1)
    scale = value(np.full((M, 2), one), undefined=[(3, 1)])
    result = run(pl["matmul_mx"](*operands()), value(a), scale, value(b), value(np.full((2, N), one)))
    check(result, np.full((M, N), 64.0), undefined=[(3, j) for j in range(N)])
