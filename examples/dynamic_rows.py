"""A row count that is known only at run time, and a ragged last block.

`pl.dynamic` names the dimension: one compiled program serves every row count. A tile keeps its static shape;
`valid_shape` says which part of it holds data, and stores write no more than that.
"""

import numpy as np

import pypto.language as pl

ROWS = pl.dynamic("ROWS")
BLOCK = 16


@pl.jit
def relu_rows(x: pl.Tensor[[ROWS, 64], pl.FP32], out: pl.Out[pl.Tensor[[ROWS, 64], pl.FP32]]):
    rows = pl.tensor.dim(x, 0)
    for start in pl.parallel(0, rows, BLOCK):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="relu_block"):
            count = pl.min(rows - start, BLOCK)
            tile = pl.load(x, [start, 0], [BLOCK, 64], valid_shape=[count, 64])
            out = pl.store(pl.maximum(tile, 0.0), [start, 0], out)
    return out


ENTRY = relu_rows


def make_args(rng, rows=53):
    return [rng.standard_normal((rows, 64), dtype=np.float32), np.zeros((rows, 64), np.float32)]


def expected(x, out):
    return {1: np.maximum(x, 0)}


if __name__ == "__main__":
    for rows in (16, 53, 1):
        x, out = make_args(np.random.default_rng(rows), rows)
        relu_rows(x, out)
        np.testing.assert_array_equal(out, np.maximum(x, 0))
    print("OK")
