"""Softmax over rows, written on tiles: load a band of rows into on-chip memory, compute there, store it.

The bands are independent, so `pl.parallel` launches a task for each of them.
"""

import numpy as np

import pypto.language as pl

BAND = 32


@pl.jit
def softmax(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows, cols = x.shape  # plain numbers: the function is compiled once for each shape that it is called with
    for band in pl.parallel(rows // BAND):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="softmax_band"):
            scores = pl.load(x, [band * BAND, 0], [BAND, cols])
            scratch = pl.create_tile([BAND, cols], dtype=pl.FP32, target_memory=pl.Mem.Vec)
            powers = pl.exp(pl.row_expand_sub(scores, pl.row_max(scores, scratch)))
            total = pl.row_sum(powers, scratch)
            out = pl.store(pl.row_expand_div(powers, total), [band * BAND, 0], out)
    return out


ENTRY = softmax


def make_args(rng):
    return [4 * rng.standard_normal((128, 192), dtype=np.float32), np.zeros((128, 192), np.float32)]


def expected(x, out):
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return {1: powers / powers.sum(axis=1, keepdims=True)}


if __name__ == "__main__":
    x, out = make_args(np.random.default_rng(0))
    softmax(x, out)
    np.testing.assert_allclose(out, expected(x, out)[1], rtol=1e-5, atol=1e-6)
    print("OK")
