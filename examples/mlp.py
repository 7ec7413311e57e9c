"""An MLP block with GELU, weights in FP32 or BF16, for a few rows (decode) or many (prefill).

A task computes a block of a layer's result. Sums are FP32; between the layers stands the element type of the arrays.
"""

import ml_dtypes
import numpy as np

import pypto.language as pl

ROWS, COLS, STEP = 256, 128, 512  # the block of a task, and how much of the inner dimension it loads at a time
FEW, WIDE = 16, 2048  # so few rows wait for the weights, and wide blocks of these stream fast


@pl.jit.inline
def product(x: pl.Tensor, w: pl.Tensor, row: pl.INDEX, col: pl.INDEX, rows: pl.INDEX, cols: pl.INDEX):
    step = min(STEP, x.shape[1])
    acc = pl.matmul(x[row : row + rows, 0:step], w[0:step, col : col + cols], out_dtype=pl.FP32)
    for k in pl.range(step, x.shape[1], step):
        acc = pl.matmul_acc(acc, x[row : row + rows, k : k + step], w[k : k + step, col : col + cols])
    return acc


@pl.jit.inline
def narrow(value: pl.Tensor, like: pl.Tensor):
    if like.dtype == pl.FP32:  # known when the function is compiled
        return value
    else:
        return pl.cast(value, target_type=like.dtype)


@pl.jit
def gelu_mlp(x: pl.Tensor, up: pl.Tensor, down: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows = x.shape[0]
    model, inner = down.shape[1], up.shape[1]
    band = min(rows, ROWS if rows % ROWS == 0 else ROWS // 2)
    up_cols = min(inner // (4 if inner <= 4 * WIDE else 8) if rows <= FEW else COLS, inner)
    down_cols = min(model // 2 if rows <= FEW else COLS, model)
    hidden = pl.create_tensor([rows, inner], dtype=x.dtype)
    for row in pl.parallel(0, rows, band):
        for col in pl.parallel(0, inner, up_cols):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="gelu_up"):
                t = product(x, up, row, col, band, up_cols)
                power = (t + t * t * t * 0.044715) * -1.5957691  # the form with tanh, written with exp
                active = narrow(t / (pl.exp(power) + 1.0), hidden)
                hidden[row : row + band, col : col + up_cols] = active
    for row in pl.parallel(0, rows, band):
        for col in pl.parallel(0, model, down_cols):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="down"):
                total = product(hidden, down, row, col, band, down_cols)
                result = narrow(total, out)
                out[row : row + band, col : col + down_cols] = result
    return out


ENTRY = gelu_mlp
RTOL, ATOL = 1e-2, 1e-2


def make_args(rng, rows=4, model=256, inner=1024, dtype=ml_dtypes.bfloat16):
    shapes = [(rows, model), (model, inner), (inner, model)]
    arrays = [rng.standard_normal(s, dtype=np.float32) / (1 if s is shapes[0] else s[0] ** 0.5) for s in shapes]
    return [*(a.astype(dtype) for a in arrays), np.ones((rows, model), dtype)]


def expected(x, up, down, out):
    t = x.astype(np.float32) @ up.astype(np.float32)
    hidden = (t / (1 + np.exp(-1.5957691 * (t + 0.044715 * t**3)))).astype(x.dtype)
    return {3: (hidden.astype(np.float32) @ down.astype(np.float32)).astype(out.dtype)}


def main():
    for dtype in (np.float32, ml_dtypes.bfloat16):
        args = make_args(np.random.default_rng(0), dtype=dtype)
        gelu_mlp(*args)
        got, want = args[3].astype(np.float32), expected(*args)[3].astype(np.float32)
        print(f"{np.dtype(dtype).name}: largest error {np.abs(got - want).max():.1e}")
        np.testing.assert_allclose(got, want, rtol=RTOL, atol=ATOL)
    print("OK")


if __name__ == "__main__":
    main()
