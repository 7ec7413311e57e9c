"""Looking into a program: what was compiled, what a value is, and whether the order of the tasks is right."""

import numpy as np

import pypto.language as pl
from pypto.runtime import RunConfig


@pl.jit
def normalise_pairs(x: pl.Tensor[[32, 64], pl.FP32], out: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):
    squares = pl.create_tensor([32, 64], dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="square"):
        squares[:] = x * x
        pl.static_assert(64 % 16 == 0, "rows are a multiple of 64 bytes")
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="scale"):
        length = pl.sqrt(pl.row_sum(squares))
        # while the function is read, this prints the type of `length`
        pl.static_print("one length for each row:", length)
        out[:] = pl.row_expand_div(x, length)
    return out


ENTRY = normalise_pairs


def make_args(rng):
    return [rng.standard_normal((32, 64), dtype=np.float32), np.zeros((32, 64), np.float32)]


def expected(x, out):
    return {1: x / np.sqrt((x * x).sum(axis=1, keepdims=True))}


if __name__ == "__main__":
    x, out = make_args(np.random.default_rng(0))
    print(normalise_pairs.lower(x, out).as_python(concise=True))  # the program after all passes
    for seed in range(3):  # tasks in other legal orders: a missing dependency would give other values
        out[:] = 0
        normalise_pairs(x, out, config=RunConfig(schedule="random", seed=seed))
        np.testing.assert_allclose(out, expected(x, out)[1], rtol=1e-5)
    print("OK")
