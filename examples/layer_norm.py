"""Layer normalisation over rows with a learned scale and shift, written on tensors.

On tensors nothing is said about on-chip memory: the compiler turns the expressions into tiles, loads and stores.
"""

import numpy as np

import pypto.language as pl

BAND, COLS, EPSILON = 32, 128, 1e-5


@pl.jit
def layer_norm(
    x: pl.Tensor[[128, COLS], pl.FP32],
    gamma: pl.Tensor[[1, COLS], pl.FP32],
    beta: pl.Tensor[[1, COLS], pl.FP32],
    out: pl.Out[pl.Tensor[[128, COLS], pl.FP32]],
):
    for band in pl.parallel(128 // BAND):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="norm_band"):
            rows = x[band * BAND : band * BAND + BAND, :]
            centred = pl.row_expand_sub(rows, pl.row_sum(rows) * (1.0 / COLS))
            variance = pl.row_sum(centred * centred) * (1.0 / COLS)
            unit = pl.row_expand_mul(centred, pl.rsqrt(variance + EPSILON))
            scaled = pl.col_expand_mul(unit, gamma)
            out[band * BAND : band * BAND + BAND, :] = pl.col_expand_add(scaled, beta)
    return out


ENTRY = layer_norm
RTOL, ATOL = 1e-4, 1e-4


def make_args(rng):
    shapes = [(128, COLS), (1, COLS), (1, COLS)]
    return [*[rng.standard_normal(s, dtype=np.float32) for s in shapes], np.zeros((128, COLS), np.float32)]


def expected(x, gamma, beta, out):
    centred = x - x.mean(axis=1, keepdims=True)
    return {3: centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPSILON) * gamma + beta}


if __name__ == "__main__":
    args = make_args(np.random.default_rng(0))
    layer_norm(*args)
    np.testing.assert_allclose(args[3], expected(*args)[3], rtol=RTOL, atol=ATOL)
    print("OK")
