"""A loop that carries a tensor: each step reads the state of the step before and writes a fresh tensor.

In the orchestration, `state` names another tensor after each iteration, like a Python variable. The tasks of two steps
are ordered by the data: nobody writes the dependency down.
"""

import numpy as np

import pypto.language as pl

CHAINS, STATES, STEPS = 16, 64, 6


@pl.jit.incore
def advance(
    state: pl.Tensor[[CHAINS, STATES], pl.FP32],
    transition: pl.Tensor[[STATES, STATES], pl.FP32],
    result: pl.Out[pl.Tensor[[CHAINS, STATES], pl.FP32]],
):
    result[:] = pl.matmul(state, transition, out_dtype=pl.FP32)
    return result


@pl.jit
def markov(
    start: pl.Tensor[[CHAINS, STATES], pl.FP32],
    transition: pl.Tensor[[STATES, STATES], pl.FP32],
    out: pl.Out[pl.Tensor[[CHAINS, STATES], pl.FP32]],
):
    state = start
    for _step in pl.range(STEPS - 1):
        fresh = pl.create_tensor([CHAINS, STATES], dtype=pl.FP32)
        state = advance(state, transition, fresh)
    out = advance(state, transition, out)
    return out


ENTRY = markov


def make_args(rng):
    start, transition = rng.random((CHAINS, STATES), np.float32), rng.random((STATES, STATES), np.float32)
    transition /= transition.sum(axis=1, keepdims=True)
    return [start / start.sum(axis=1, keepdims=True), transition, np.zeros((CHAINS, STATES), np.float32)]


def expected(start, transition, out):
    return {2: start @ np.linalg.matrix_power(transition, STEPS)}


if __name__ == "__main__":
    args = make_args(np.random.default_rng(0))
    markov(*args)
    np.testing.assert_allclose(args[2], expected(*args)[2], rtol=1e-5, atol=1e-6)
    print("OK")
