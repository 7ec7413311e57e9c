"""Helpers of a jitted function: `.inline` is expanded where it is called, `.incore` is a kernel of its own.

A number passed to a jitted function is baked into the program; module constants are too.
"""

import numpy as np

import pypto.language as pl

SHAPE = [64, 64]


@pl.jit.inline
def affine(t: pl.Tensor[SHAPE, pl.FP32], scale: pl.FP32, shift: pl.FP32):
    return t * scale + shift


@pl.jit.incore
def scale_and_clip(x: pl.Tensor[SHAPE, pl.FP32], limit: pl.FP32, y: pl.Out[pl.Tensor[SHAPE, pl.FP32]]):
    scaled = affine(x, 2.0, 1.0)
    y[:] = pl.minimum(affine(scaled, 0.5, -0.25), limit)
    return y


@pl.jit
def clip_twice(x: pl.Tensor[SHAPE, pl.FP32], limit: pl.FP32, out: pl.Out[pl.Tensor[SHAPE, pl.FP32]]):
    half = pl.create_tensor(SHAPE, dtype=pl.FP32)
    half = scale_and_clip(x, limit, half)
    out = scale_and_clip(half, limit, out)
    return out


ENTRY = clip_twice


def make_args(rng):
    return [rng.standard_normal(SHAPE, dtype=np.float32), 0.75, np.zeros(SHAPE, np.float32)]


def expected(x, limit, out):
    for _ in range(2):
        x = np.minimum((x * 2 + 1) * np.float32(0.5) - np.float32(0.25), np.float32(limit))
    return {2: x}


if __name__ == "__main__":
    x, limit, out = make_args(np.random.default_rng(0))
    clip_twice(x, limit, out)
    np.testing.assert_allclose(out, expected(x, limit, out)[2], rtol=1e-6, atol=1e-6)
    print("OK")
