"""One decode step of grouped-query attention over a key/value cache, with an online softmax.

`GROUP` query heads share one key/value head. The cache holds `positions` rows for each of them, of which the first
`length` are filled; the number of blocks to visit, and how much of the last one counts, is known only at run time.
Each block goes through four kernels; the running maximum, sum and output are tensors that the loop carries.

    python examples/attention_decode.py

prints what was compiled, how long calls take, and the comparison with NumPy.
"""

import sys
import time

import ml_dtypes
import numpy as np

import pypto.language as pl
from pypto.runtime import benchmark

KV_HEADS, GROUP, DIM = 2, 16, 128
HEADS = KV_HEADS * GROUP
BLOCK = 64
SCALE = DIM**-0.5
LOWEST = -1e30  # below every score: the maximum of no scores at all

POSITIONS = pl.dynamic("POSITIONS")


@pl.jit.incore
def start(
    m: pl.Out[pl.Tensor[[GROUP, 1], pl.FP32]],
    total: pl.Out[pl.Tensor[[GROUP, 1], pl.FP32]],
    o: pl.Out[pl.Tensor[[GROUP, DIM], pl.FP32]],
):
    """No block seen yet."""
    m = pl.store(pl.tile.full([GROUP, 1], dtype=pl.FP32, value=LOWEST), [0, 0], m)
    total = pl.store(pl.tile.full([GROUP, 1], dtype=pl.FP32, value=0.0), [0, 0], total)
    o = pl.store(pl.tile.full([GROUP, DIM], dtype=pl.FP32, value=0.0), [0, 0], o)
    return m, total, o


@pl.jit.incore
def scores(
    q: pl.Tensor[[HEADS, DIM], pl.BF16],
    keys: pl.Tensor[[POSITIONS, KV_HEADS * DIM], pl.BF16],
    head: pl.INDEX,
    row: pl.INDEX,
    count: pl.INDEX,
    s: pl.Out[pl.Tensor[[GROUP, BLOCK], pl.FP32]],
):
    """Queries of one group times the keys of one block."""
    q_l1 = pl.load(q, [head * GROUP, 0], [GROUP, DIM], target_memory=pl.Mem.Mat)
    k_l1 = pl.load(keys, [row, head * DIM], [BLOCK, DIM], valid_shape=[count, DIM], target_memory=pl.Mem.Mat)
    q_l0 = pl.move(q_l1, target_memory=pl.Mem.Left)
    k_l0 = pl.move(pl.tile.transpose_view(k_l1), target_memory=pl.Mem.Right)
    s = pl.store(pl.matmul(q_l0, k_l0), [0, 0], s)
    return s


@pl.jit.incore
def softmax_step(
    s: pl.Tensor[[GROUP, BLOCK], pl.FP32],
    count: pl.INDEX,
    p: pl.Out[pl.Tensor[[GROUP, BLOCK], pl.BF16]],
    shrink: pl.Out[pl.Tensor[[GROUP, 1], pl.FP32]],
    m: pl.InOut[pl.Tensor[[GROUP, 1], pl.FP32]],
    total: pl.InOut[pl.Tensor[[GROUP, 1], pl.FP32]],
):
    """Weights of one block against the new running maximum, and the factor for what was summed up before."""
    t = pl.load(s, [0, 0], [GROUP, BLOCK], valid_shape=[GROUP, count]) * SCALE
    scratch = pl.create_tile([GROUP, BLOCK], dtype=pl.FP32, target_memory=pl.Mem.Vec)
    peak = pl.row_max(t, scratch)
    # Statistics are columns; arithmetic on them runs on the same bytes seen as one row.
    old = pl.reshape(pl.load(m, [0, 0], [GROUP, 1]), [1, GROUP])
    new = pl.maximum(old, pl.reshape(peak, [1, GROUP]))
    factor = pl.exp(old - new)
    weights = pl.cast(pl.exp(pl.row_expand_sub(t, pl.reshape(new, [GROUP, 1]))), target_type=pl.BF16)
    block_sum = pl.row_sum(pl.cast(weights, target_type=pl.FP32), scratch)
    sums = pl.reshape(pl.load(total, [0, 0], [GROUP, 1]), [1, GROUP]) * factor + pl.reshape(block_sum, [1, GROUP])
    p = pl.store(weights, [0, 0], p)
    shrink = pl.store(pl.reshape(factor, [GROUP, 1]), [0, 0], shrink)
    m = pl.store(pl.reshape(new, [GROUP, 1]), [0, 0], m)
    total = pl.store(pl.reshape(sums, [GROUP, 1]), [0, 0], total)
    return p, shrink, m, total


@pl.jit.incore
def weigh(
    p: pl.Tensor[[GROUP, BLOCK], pl.BF16],
    values: pl.Tensor[[POSITIONS, KV_HEADS * DIM], pl.BF16],
    head: pl.INDEX,
    row: pl.INDEX,
    count: pl.INDEX,
    part: pl.Out[pl.Tensor[[GROUP, DIM], pl.FP32]],
):
    """Weights of one block times its values."""
    p_l1 = pl.load(p, [0, 0], [GROUP, BLOCK], valid_shape=[GROUP, count], target_memory=pl.Mem.Mat)
    v_l1 = pl.load(values, [row, head * DIM], [BLOCK, DIM], valid_shape=[count, DIM], target_memory=pl.Mem.Mat)
    p_l0 = pl.move(p_l1, target_memory=pl.Mem.Left)
    v_l0 = pl.move(v_l1, target_memory=pl.Mem.Right)
    part = pl.store(pl.matmul(p_l0, v_l0), [0, 0], part)
    return part


@pl.jit.incore
def accumulate(
    part: pl.Tensor[[GROUP, DIM], pl.FP32],
    shrink: pl.Tensor[[GROUP, 1], pl.FP32],
    o: pl.InOut[pl.Tensor[[GROUP, DIM], pl.FP32]],
):
    """Scale the output so far to the new maximum and add this block's part."""
    so_far = pl.row_expand_mul(pl.load(o, [0, 0], [GROUP, DIM]), pl.load(shrink, [0, 0], [GROUP, 1]))
    o = pl.store(so_far + pl.load(part, [0, 0], [GROUP, DIM]), [0, 0], o)
    return o


@pl.jit.incore
def normalise(
    o: pl.Tensor[[GROUP, DIM], pl.FP32],
    total: pl.Tensor[[GROUP, 1], pl.FP32],
    head: pl.INDEX,
    out: pl.Out[pl.Tensor[[HEADS, DIM], pl.FP32]],
):
    """Divide by the sum of the weights."""
    result = pl.row_expand_div(pl.load(o, [0, 0], [GROUP, DIM]), pl.load(total, [0, 0], [GROUP, 1]))
    out = pl.store(result, [head * GROUP, 0], out)
    return out


@pl.jit
def attention_decode(
    q: pl.Tensor[[HEADS, DIM], pl.BF16],
    keys: pl.Tensor[[POSITIONS, KV_HEADS * DIM], pl.BF16],
    values: pl.Tensor[[POSITIONS, KV_HEADS * DIM], pl.BF16],
    length: pl.Tensor[[1], pl.INT64],
    out: pl.Out[pl.Tensor[[HEADS, DIM], pl.FP32]],
):
    filled = pl.cast(pl.tensor.read(length, [0]), pl.INDEX)
    for head in pl.parallel(KV_HEADS):
        m = pl.create_tensor([GROUP, 1], dtype=pl.FP32)
        total = pl.create_tensor([GROUP, 1], dtype=pl.FP32)
        o = pl.create_tensor([GROUP, DIM], dtype=pl.FP32)
        m, total, o = start(m, total, o)
        for row in pl.range(0, filled, BLOCK):
            count = pl.min(filled - row, BLOCK)
            s = pl.create_tensor([GROUP, BLOCK], dtype=pl.FP32)
            p = pl.create_tensor([GROUP, BLOCK], dtype=pl.BF16)
            shrink = pl.create_tensor([GROUP, 1], dtype=pl.FP32)
            part = pl.create_tensor([GROUP, DIM], dtype=pl.FP32)
            s = scores(q, keys, head, row, count, s)
            p, shrink, m, total = softmax_step(s, count, p, shrink, m, total)
            part = weigh(p, values, head, row, count, part)
            o = accumulate(part, shrink, o)
        out = normalise(o, total, head, out)
    return out


ENTRY = attention_decode
RTOL, ATOL = 2e-2, 2e-2


def make_args(rng, positions=320, length=211):
    cache = (positions, KV_HEADS * DIM)
    return [
        rng.standard_normal((HEADS, DIM)).astype(ml_dtypes.bfloat16),
        rng.standard_normal(cache).astype(ml_dtypes.bfloat16),
        rng.standard_normal(cache).astype(ml_dtypes.bfloat16),
        np.array([length], np.int64),
        np.zeros((HEADS, DIM), np.float32),
    ]


def expected(q, keys, values, length, out):
    filled = int(length[0])
    queries = q.astype(np.float32).reshape(KV_HEADS, GROUP, DIM)
    k, v = (t[:filled].astype(np.float32).reshape(filled, KV_HEADS, DIM).swapaxes(0, 1) for t in (keys, values))
    s = queries @ k.swapaxes(1, 2) * np.float32(SCALE)
    weights = np.exp(s - s.max(axis=2, keepdims=True))
    return {4: (weights / weights.sum(axis=2, keepdims=True) @ v).reshape(HEADS, DIM)}


def main() -> int:
    args = make_args(np.random.default_rng(0))
    begin = time.perf_counter()
    attention_decode(*args)
    first = 1e3 * (time.perf_counter() - begin)

    compiled = attention_decode.compile(*args)  # what the call above has compiled
    for function in compiled.lowered_program.functions.values():
        print(f"compiled {function.func_type.name:<14} {function.name}")
    stats = benchmark(compiled, args, rounds=5, warmup=1)
    print(f"tasks: {stats.invocations[0].root().attrs['tasks']}")
    print(f"first call, with compilation: {first:.1f} ms; later calls: {min(stats.host_wall_us) / 1e3:.1f} ms")

    failed = 0
    for length in (211, 64, 1, 320):  # a ragged end, one whole block, a single position, the full cache
        args = make_args(np.random.default_rng(length), length=length)
        attention_decode(*args)
        want = expected(*args)[4]
        within = bool(np.allclose(args[4], want, rtol=RTOL, atol=ATOL))
        failed += not within
        print(
            f"length {length:>3}: max abs error {np.abs(args[4] - want).max():.1e}, "
            f"tolerance {ATOL:g} + {RTOL:g} * |x|: {'OK' if within else 'WRONG'}"
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
