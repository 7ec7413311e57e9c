"""Add two matrices element by element: the smallest program.

`pl.at` marks a kernel, a part that runs on one core. `out = ...` would only rebind a name; `out[:] = ...` writes.
"""

import numpy as np

import pypto.language as pl


@pl.jit
def vector_add(
    x: pl.Tensor[[64, 256], pl.FP32],
    y: pl.Tensor[[64, 256], pl.FP32],
    out: pl.Out[pl.Tensor[[64, 256], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = x + y
    return out


ENTRY = vector_add


def make_args(rng):
    return [rng.standard_normal((64, 256), dtype=np.float32) for _ in range(2)] + [np.zeros((64, 256), np.float32)]


def expected(x, y, out):
    return {2: x + y}


if __name__ == "__main__":
    x, y, out = make_args(np.random.default_rng(0))
    vector_add(x, y, out)  # compiles for these shapes, runs, and fills `out`
    np.testing.assert_allclose(out, x + y, rtol=1e-6)
    print("OK")
