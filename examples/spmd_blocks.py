"""One launch, many blocks: `pl.spmd` runs its body once for each block index, as one task.

The blocks run in any order or at once, so they must not depend on each other.
"""

import numpy as np

import pypto.language as pl

BLOCKS, BAND, COLS = 8, 32, 64


@pl.jit
def gelu_blocks(x: pl.Tensor[[256, COLS], pl.FP32], out: pl.Out[pl.Tensor[[256, COLS], pl.FP32]]):
    for block in pl.spmd(BLOCKS, name_hint="gelu"):
        row = block * BAND
        t = pl.load(x, [row, 0], [BAND, COLS])
        denominator = pl.exp(t * -1.702) + 1.0
        out = pl.store(t * pl.recip(denominator), [row, 0], out)  # x * sigmoid(1.702 x)
    return out


ENTRY = gelu_blocks


def make_args(rng):
    return [rng.standard_normal((256, COLS), dtype=np.float32), np.zeros((256, COLS), np.float32)]


def expected(x, out):
    return {1: x / (1 + np.exp(-1.702 * x))}


if __name__ == "__main__":
    x, out = make_args(np.random.default_rng(0))
    gelu_blocks(x, out)
    np.testing.assert_allclose(out, expected(x, out)[1], rtol=1e-5, atol=1e-6)
    print("OK")
