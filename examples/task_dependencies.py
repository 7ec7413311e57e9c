"""Tasks with explicit dependencies: in a manual scope nothing is inferred, `deps=` says what waits for what.

Also the other way to write a program: a `@pl.program` class, whose methods are the functions, compiled by `ir.compile`.
"""

import numpy as np

import pypto.language as pl
from pypto import ir

PARTS, BAND, COLS = 4, 16, 64


@pl.program
class SumOfSquares:
    @pl.function(type=pl.FunctionType.InCore)
    def square(
        self,
        x: pl.Tensor[[PARTS * BAND, COLS], pl.FP32],
        row: pl.Scalar[pl.INDEX],
        squares: pl.Out[pl.Tensor[[PARTS * BAND, COLS], pl.FP32]],
    ) -> pl.Tensor[[PARTS * BAND, COLS], pl.FP32]:
        tile = pl.load(x, [row, 0], [BAND, COLS])
        return pl.store(tile * tile, [row, 0], squares)

    @pl.function(type=pl.FunctionType.InCore)
    def total(
        self,
        squares: pl.Tensor[[PARTS * BAND, COLS], pl.FP32],
        out: pl.Out[pl.Tensor[[BAND, COLS], pl.FP32]],
    ) -> pl.Tensor[[BAND, COLS], pl.FP32]:
        acc = pl.load(squares, [0, 0], [BAND, COLS])
        for part in pl.range(1, PARTS):
            acc = acc + pl.load(squares, [part * BAND, 0], [BAND, COLS])
        return pl.store(acc, [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[PARTS * BAND, COLS], pl.FP32],
        out: pl.Out[pl.Tensor[[BAND, COLS], pl.FP32]],
    ) -> pl.Tensor[[BAND, COLS], pl.FP32]:
        squares = pl.create_tensor([PARTS * BAND, COLS], dtype=pl.FP32)
        with pl.manual_scope():
            made = pl.array.create(PARTS, pl.TASK_ID)
            for part in pl.parallel(PARTS):
                squares, task = pl.submit(self.square, x, part * BAND, squares)
                made[part] = task
            out, _ = pl.submit(self.total, squares, out, deps=[made])  # waits for all of them
        return out


ENTRY = SumOfSquares


def make_args(rng):
    return [rng.standard_normal((PARTS * BAND, COLS), dtype=np.float32), np.zeros((BAND, COLS), np.float32)]


def expected(x, out):
    return {1: (x * x).reshape(PARTS, BAND, COLS).sum(axis=0)}


if __name__ == "__main__":
    x, out = make_args(np.random.default_rng(0))
    ir.compile(SumOfSquares)(x, out)
    np.testing.assert_allclose(out, expected(x, out)[1], rtol=1e-5, atol=1e-5)
    print("OK")
