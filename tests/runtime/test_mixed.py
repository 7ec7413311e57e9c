"""Kernels whose parts run together: vector lanes of a split region, cube and vector members of a group."""

import numpy as np
import pytest
from run_support import F32, call, call_in_all_orders, program, ramp

from pypto.runtime.errors import ProgramError

LANES = """
@pl.function(type=pl.FunctionType.InCore)
def halves(self, src: pl.Tensor[[4, 8], pl.FP32], dst: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]
           ) -> pl.Tensor[[4, 8], pl.FP32]:
    t = pl.load(src, [0, 0], [4, 8])
    for aiv in pl.split_aiv(2, mode=pl.SplitMode.{mode}):
        half = pl.aiv_shard(t)
        half = pl.add(half, pl.cast(aiv + 1, pl.FP32))
        whole = pl.aic_gather(half)
    dst = pl.store(whole, [0, 0], dst)
    return dst
"""


def arrays():
    return [ramp(4, 8), np.zeros((4, 8), F32)]


@pytest.mark.parametrize(("mode", "axis"), [("UP_DOWN", 0), ("LEFT_RIGHT", 1)])
def test_lanes_work_on_halves_and_join_them(mode, axis):
    found = program("y = self.halves(x, y)", more=LANES.format(mode=mode))
    x, y = call_in_all_orders(found, arrays)
    shape = [1, 1]
    shape[axis] = 2
    offset = np.repeat(np.array([1, 2], F32).reshape(shape), x.shape[axis] // 2, axis)
    np.testing.assert_array_equal(y, x + offset)


GROUP = """
@pl.function(type=pl.FunctionType.AIC)
def cube(self, a: pl.Tensor[[16, 16], pl.FP32], b: pl.Tensor[[16, 16], pl.FP32],
         out: pl.InOut[pl.Tensor[[16, 16], pl.FP32]]):
    left = pl.load(a, [0, 0], [16, 16], target_memory=pl.Mem.Mat)
    right = pl.load(b, [0, 0], [16, 16], target_memory=pl.Mem.Mat)
    acc = pl.matmul(left, right)
    {push}

@pl.function(type=pl.FunctionType.AIV)
def vector(self, a: pl.Tensor[[16, 16], pl.FP32], b: pl.Tensor[[16, 16], pl.FP32],
           out: pl.InOut[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor[[16, 16], pl.FP32]:
    t = pl.tile.tpop_from_aic(shape=[16, 16], dtype=pl.FP32)
    out = pl.store(pl.add(t, 1.0), [0, 0], out)
    return out

@pl.function(type=pl.FunctionType.Group)
def both(self, a: pl.Tensor[[16, 16], pl.FP32], b: pl.Tensor[[16, 16], pl.FP32],
         out: pl.InOut[pl.Tensor[[16, 16], pl.FP32]]) -> pl.Tensor[[16, 16], pl.FP32]:
    self.cube(a, b, out)
    out = self.vector(a, b, out)
    return out
"""
SQUARE = "x: pl.Tensor[[16, 16], pl.FP32], w: pl.Tensor[[16, 16], pl.FP32], y: pl.InOut[pl.Tensor[[16, 16], pl.FP32]]"


def squares():
    rng = np.random.default_rng(0)
    return [*(rng.integers(-3, 4, (16, 16)).astype(F32) for _ in range(2)), np.zeros((16, 16), F32)]


def test_a_group_passes_tiles_from_cube_to_vector():
    found = program("y = self.both(x, w, y)", SQUARE, GROUP.format(push="pl.tile.tpush_to_aiv(acc, split=0)"))
    x, w, y = call_in_all_orders(found, squares, seeds=3)
    np.testing.assert_array_equal(y, x @ w + 1)


def test_a_pop_without_a_push_is_a_deadlock_and_ends():
    found = program("y = self.both(x, w, y)", SQUARE, GROUP.format(push="pass"))
    with pytest.raises(ProgramError, match="deadlock in cross-core pipes: pop from c2v"):
        call(found, *squares())


def test_an_error_of_one_member_ends_the_others():
    push = "pl.tile.tpush_to_aiv(pl.load(a, [n, 0], [16, 16], target_memory=pl.Mem.Mat), split=0)"
    text = (
        GROUP.format(push=push)
        .replace(
            "out: pl.InOut[pl.Tensor[[16, 16], pl.FP32]]",
            "n: pl.Scalar[pl.INDEX], out: pl.InOut[pl.Tensor[[16, 16], pl.FP32]]",
        )
        .replace("(a, b, out)", "(a, b, n, out)")
    )
    found = program("y = self.both(x, w, 3, y)", SQUARE, text)
    with pytest.raises(ProgramError, match="out of range") as caught:
        call(found, *squares())
    assert caught.value.function == "cube"
