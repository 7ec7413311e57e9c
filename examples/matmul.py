"""A tiled matrix product in BF16: a task for each block of the output, which accumulates in FP32 along K."""

import ml_dtypes
import numpy as np

import pypto.language as pl

M, K, N = 128, 256, 192
TILE = 64


@pl.jit
def matmul(
    a: pl.Tensor[[M, K], pl.BF16],
    b: pl.Tensor[[K, N], pl.BF16],
    c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
):
    for i in pl.parallel(0, M, TILE):
        for j in pl.parallel(0, N, TILE):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="block"):
                acc = pl.matmul(a[i : i + TILE, 0:TILE], b[0:TILE, j : j + TILE], out_dtype=pl.FP32)
                for k in pl.range(TILE, K, TILE):
                    acc = pl.matmul_acc(acc, a[i : i + TILE, k : k + TILE], b[k : k + TILE, j : j + TILE])
                c[i : i + TILE, j : j + TILE] = acc
    return c


ENTRY = matmul
RTOL, ATOL = 1e-4, 1e-4  # products of BF16 numbers are exact in FP32; only the order of the sums differs


def make_args(rng):
    a, b = rng.standard_normal((M, K)), rng.standard_normal((K, N))
    return [a.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16), np.zeros((M, N), np.float32)]


def expected(a, b, c):
    return {2: a.astype(np.float32) @ b.astype(np.float32)}


if __name__ == "__main__":
    a, b, c = make_args(np.random.default_rng(0))
    matmul(a, b, c)
    np.testing.assert_allclose(c, expected(a, b, c)[2], rtol=RTOL, atol=ATOL)
    print("OK")
