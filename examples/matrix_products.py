"""Matrix products in FP32 and BF16 by blocks: a task for each block of the result, which sums in FP32 along K.

The blocks follow from the shapes: at least 16 of them, where they are not too small then. A result of BF16 is rounded
once, at the end.
"""

import ml_dtypes
import numpy as np

import pypto.language as pl

BLOCK, SMALLEST, STEP = 256, 128, 256  # of a block; the inner dimension that it loads at a time


@pl.jit
def matrix_product(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    rows, inner = a.shape
    cols = b.shape[1]
    height = min(rows, BLOCK, max(SMALLEST, rows // 4))
    width = min(cols, BLOCK, max(SMALLEST, cols // 4))
    step = min(STEP, inner)
    for i in pl.parallel(0, rows, height):
        for j in pl.parallel(0, cols, width):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="block"):
                acc = pl.matmul(a[i : i + height, 0:step], b[0:step, j : j + width], out_dtype=pl.FP32)
                for k in pl.range(step, inner, step):
                    acc = pl.matmul_acc(acc, a[i : i + height, k : k + step], b[k : k + step, j : j + width])
                if c.dtype == pl.FP32:  # known when the function is compiled
                    c[i : i + height, j : j + width] = acc
                else:
                    c[i : i + height, j : j + width] = pl.cast(acc, target_type=c.dtype)
    return c


ENTRY = matrix_product
RTOL, ATOL = 1e-2, 1e-3


def make_args(rng, size=512, dtype=ml_dtypes.bfloat16):
    a, b = (rng.standard_normal((size, size), dtype=np.float32) for _ in range(2))
    return [a.astype(dtype), (b / size**0.5).astype(dtype), np.full((size, size), 9, dtype)]


def expected(a, b, c):
    return {2: (a.astype(np.float32) @ b.astype(np.float32)).astype(c.dtype)}


def main():
    for dtype in (np.float32, ml_dtypes.bfloat16):
        args = make_args(np.random.default_rng(0), dtype=dtype)
        matrix_product(*args)
        got, want = args[2].astype(np.float32), expected(*args)[2].astype(np.float32)
        print(f"{np.dtype(dtype).name}: largest error {np.abs(got - want).max():.1e}")
        np.testing.assert_allclose(got, want, rtol=RTOL, atol=ATOL)
    print("OK")


if __name__ == "__main__":
    main()
