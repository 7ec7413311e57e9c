"""Layer norm and RMS norm over long rows, with learned scales: kernels as functions, launched for each band of rows."""

import numpy as np

import pypto.language as pl

BAND, EPSILON = 8, 1e-5


@pl.jit.incore
def layer_norm_band(x: pl.Tensor, gamma: pl.Tensor, beta: pl.Tensor, row: pl.INDEX, out: pl.Out[pl.Tensor]):
    cols = x.shape[1]
    rows = pl.load(x, [row, 0], [BAND, cols])
    scratch = pl.create_tile([BAND, cols], dtype=pl.FP32, target_memory=pl.Mem.Vec)
    centred = pl.row_expand_sub(rows, pl.row_sum(rows, scratch) * (1.0 / cols))
    variance = pl.row_sum(centred * centred, scratch) * (1.0 / cols)
    unit = pl.row_expand_mul(centred, pl.rsqrt(variance + EPSILON))
    scaled = pl.col_expand_mul(unit, pl.load(gamma, [0, 0], [1, cols]))
    return pl.store(pl.col_expand_add(scaled, pl.load(beta, [0, 0], [1, cols])), [row, 0], out)


@pl.jit.incore
def rms_norm_band(x: pl.Tensor, gamma: pl.Tensor, row: pl.INDEX, out: pl.Out[pl.Tensor]):
    cols = x.shape[1]
    rows = pl.load(x, [row, 0], [BAND, cols])
    scratch = pl.create_tile([BAND, cols], dtype=pl.FP32, target_memory=pl.Mem.Vec)
    unit = pl.row_expand_mul(rows, pl.rsqrt(pl.row_sum(rows * rows, scratch) * (1.0 / cols) + EPSILON))
    return pl.store(pl.col_expand_mul(unit, pl.load(gamma, [0, 0], [1, cols])), [row, 0], out)


@pl.jit
def layer_norm(x: pl.Tensor, gamma: pl.Tensor, beta: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], BAND):
        out = layer_norm_band(x, gamma, beta, row, out)
    return out


@pl.jit
def rms_norm(x: pl.Tensor, gamma: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], BAND):
        out = rms_norm_band(x, gamma, row, out)
    return out


@pl.jit
def norms(x: pl.Tensor, gamma: pl.Tensor, beta: pl.Tensor, layer: pl.Out[pl.Tensor], rms: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], BAND):
        layer = layer_norm_band(x, gamma, beta, row, layer)
        rms = rms_norm_band(x, gamma, row, rms)
    return layer, rms


ENTRY = norms
RTOL, ATOL = 1e-4, 1e-4


def make_args(rng, rows=16, cols=4096):
    inputs = [rng.standard_normal(shape, dtype=np.float32) for shape in ((rows, cols), (1, cols), (1, cols))]
    return [*inputs, np.zeros((rows, cols), np.float32), np.zeros((rows, cols), np.float32)]


def expected(x, gamma, beta, layer, rms):
    centred = x - x.mean(axis=1, keepdims=True)
    normed = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPSILON) * gamma + beta
    return {3: normed, 4: x / np.sqrt((x**2).mean(axis=1, keepdims=True) + EPSILON) * gamma}


def main():
    args = make_args(np.random.default_rng(0))
    norms(*args)
    for name, index in (("layer norm", 3), ("RMS norm", 4)):
        want = expected(*args)[index]
        print(f"{name}: largest error {np.abs(args[index] - want).max():.1e}")
        np.testing.assert_allclose(args[index], want, rtol=RTOL, atol=ATOL)
    print("OK")


if __name__ == "__main__":
    main()
