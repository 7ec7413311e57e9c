"""Attention of a prompt, FP32 or BF16: a task for each head and block of queries, with an online softmax over the keys.

The rows of all heads stand below each other: those of head h begin at h times the rows of one head. One kernel does it
all: the products, and the running maximum, sum and output between them, which its loop carries.
"""

import ml_dtypes
import numpy as np

import pypto.language as pl

QUERIES, KEYS = 64, 128  # of a block
LOWEST = -1e30  # below every score


@pl.jit
def attention_prefill(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, heads: pl.INDEX, out: pl.Out[pl.Tensor]):
    dim = q.shape[1]
    queries = q.shape[0] // heads
    keys = k.shape[0] // heads
    for head in pl.parallel(heads):
        for block in pl.parallel(0, queries, QUERIES):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="attend"):
                row = head * queries + block
                peak = pl.full([QUERIES, 1], dtype=pl.FP32, value=LOWEST)
                total = pl.full([QUERIES, 1], dtype=pl.FP32, value=0.0)
                acc = pl.full([QUERIES, dim], dtype=pl.FP32, value=0.0)
                for key in pl.range(head * keys, head * keys + keys, KEYS):
                    products = pl.matmul(
                        q[row : row + QUERIES, :], k[key : key + KEYS, :], b_trans=True, out_dtype=pl.FP32
                    )
                    scores = products * dim**-0.5
                    higher = pl.maximum(peak, pl.row_max(scores))
                    shrink = pl.exp(peak - higher)
                    weights = pl.exp(pl.row_expand_sub(scores, higher))
                    total = total * shrink + pl.row_sum(weights)
                    if v.dtype == pl.FP32:  # known when the function is compiled
                        part = pl.matmul(weights, v[key : key + KEYS, :])
                    else:
                        narrow = pl.cast(weights, target_type=v.dtype)
                        part = pl.matmul(narrow, v[key : key + KEYS, :], out_dtype=pl.FP32)
                    acc = pl.row_expand_mul(acc, shrink) + part
                    peak = higher
                out[row : row + QUERIES, :] = pl.row_expand_div(acc, total)
    return out


ENTRY = attention_prefill
RTOL, ATOL = 1e-2, 1e-3


def make_args(rng, heads=2, queries=128, keys=384, dim=128, dtype=ml_dtypes.bfloat16):
    q, k, v = (rng.standard_normal((heads * n, dim), dtype=np.float32).astype(dtype) for n in (queries, keys, keys))
    return [q, k, v, heads, np.zeros((heads * queries, dim), np.float32)]


def expected(q, k, v, heads, out):
    q, k, v = (t.astype(np.float32).reshape(heads, -1, t.shape[1]) for t in (q, k, v))
    weights = np.exp(q @ k.swapaxes(1, 2) * np.float32(q.shape[2] ** -0.5))
    return {4: (weights @ v / weights.sum(axis=2, keepdims=True)).reshape(out.shape)}


def main():
    for dtype in (np.float32, ml_dtypes.bfloat16):
        args = make_args(np.random.default_rng(0), dtype=dtype)
        attention_prefill(*args)
        want = expected(*args)[4]
        print(f"{np.dtype(dtype).name}: largest error {np.abs(args[4] - want).max():.1e}")
        np.testing.assert_allclose(args[4], want, rtol=RTOL, atol=ATOL)
    print("OK")


if __name__ == "__main__":
    main()
