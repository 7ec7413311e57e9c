"""Softmax over long rows: a task for each band of rows, as many rows as fit into on-chip memory.

How many rows that are follows from the shape of the array, which is plain numbers when the function is compiled.
"""

import numpy as np

import pypto.language as pl

BAND_ELEMENTS = 32 * 1024  # of a tile: 128 KiB in FP32


@pl.jit
def row_softmax(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows, cols = x.shape
    band = max(1, BAND_ELEMENTS // cols)
    for row in pl.parallel(0, rows, band):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="softmax_band"):
            scores = pl.load(x, [row, 0], [band, cols])
            scratch = pl.create_tile([band, cols], dtype=pl.FP32, target_memory=pl.Mem.Vec)
            powers = pl.exp(pl.row_expand_sub(scores, pl.row_max(scores, scratch)))
            total = pl.row_sum(powers, scratch)
            out = pl.store(pl.row_expand_div(powers, total), [row, 0], out)
    return out


ENTRY = row_softmax


def make_args(rng, rows=32, cols=4096):
    return [2 * rng.standard_normal((rows, cols), dtype=np.float32), np.ones((rows, cols), np.float32)]


def expected(x, out):
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return {1: powers / powers.sum(axis=1, keepdims=True)}


def main():
    x, out = make_args(np.random.default_rng(0))
    row_softmax(x, out)
    want = expected(x, out)[1]
    print(f"{x.shape[0]} rows of {x.shape[1]}: largest error {np.abs(out - want).max():.1e}")
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-6)
    print("OK")


if __name__ == "__main__":
    main()
