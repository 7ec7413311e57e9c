"""One decode step of grouped-query attention over a paged cache: a task for each sequence and key/value head.

Keys and values of a sequence lie in pages of `PAGE` positions, anywhere in the pools; its row of `table` names them in
order. Lengths, and so the number of pages and how much of the last one counts, are read while the program runs.
"""

import ml_dtypes
import numpy as np

import pypto.language as pl

PAGE, DIM = 64, 128
LOWEST = -1e30  # below every score


@pl.jit
def attention_paged(
    q: pl.Tensor, keys: pl.Tensor, values: pl.Tensor, table: pl.Tensor, lengths: pl.Tensor, out: pl.Out[pl.Tensor]
):
    sequences = table.shape[0]
    kv_heads = keys.shape[1] // DIM
    group = q.shape[0] // (sequences * kv_heads)  # query heads that share a key/value head
    for seq in pl.parallel(sequences):
        for head in pl.parallel(kv_heads):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="attend"):
                row = (seq * kv_heads + head) * group
                length = pl.cast(pl.read(lengths, [seq]), pl.INDEX)
                peak = pl.full([group, 1], dtype=pl.FP32, value=LOWEST)
                total = pl.full([group, 1], dtype=pl.FP32, value=0.0)
                acc = pl.full([group, DIM], dtype=pl.FP32, value=0.0)
                for start in pl.range(0, length, PAGE):
                    count = pl.min(length - start, PAGE)
                    first = pl.cast(pl.read(table, [seq, start // PAGE]), pl.INDEX) * PAGE
                    k = pl.slice(keys, [PAGE, DIM], [first, head * DIM], valid_shape=[count, DIM])
                    v = pl.slice(values, [PAGE, DIM], [first, head * DIM], valid_shape=[count, DIM])
                    scores = pl.matmul(q[row : row + group, :], k, b_trans=True, out_dtype=pl.FP32) * DIM**-0.5
                    higher = pl.maximum(peak, pl.row_max(scores))
                    shrink = pl.exp(peak - higher)
                    weights = pl.exp(pl.row_expand_sub(scores, higher))
                    total = total * shrink + pl.row_sum(weights)
                    part = pl.matmul(pl.cast(weights, target_type=pl.BF16), v, out_dtype=pl.FP32)
                    acc = pl.row_expand_mul(acc, shrink) + part
                    peak = higher
                out[row : row + group, :] = pl.row_expand_div(acc, total)
    return out


ENTRY = attention_paged
RTOL, ATOL = 2e-2, 2e-3


def make_args(rng, lengths=(150, 64, 1), kv_heads=2, group=4):
    pages = -(-max(lengths) // PAGE)
    table = rng.permutation(len(lengths) * pages).astype(np.int32).reshape(len(lengths), pages)
    shapes = [(len(lengths) * kv_heads * group, DIM), *[(table.size * PAGE, kv_heads * DIM)] * 2]
    arrays = [rng.standard_normal(shape, dtype=np.float32).astype(ml_dtypes.bfloat16) for shape in shapes]
    return [*arrays, table, np.array(lengths, np.int32), np.zeros(shapes[0], np.float32)]


def expected(q, keys, values, table, lengths, out):
    result = np.empty(out.shape, np.float32).reshape(len(lengths), keys.shape[1] // DIM, -1, DIM)
    for seq, length in enumerate(lengths):
        rows = (table[seq, :, None] * PAGE + np.arange(PAGE)).reshape(-1)[:length]
        k, v = (t[rows].astype(np.float32).reshape(length, -1, DIM).swapaxes(0, 1) for t in (keys, values))
        weights = np.exp(q.astype(np.float32).reshape(result.shape)[seq] @ k.swapaxes(1, 2) * np.float32(DIM**-0.5))
        result[seq] = weights @ v / weights.sum(axis=2, keepdims=True)
    return {5: result.reshape(out.shape)}


def main():
    args = make_args(np.random.default_rng(0))
    attention_paged(*args)
    want = expected(*args)[5]
    print(f"largest error {np.abs(args[5] - want).max():.1e}")
    np.testing.assert_allclose(args[5], want, rtol=RTOL, atol=ATOL)
    print("OK")


if __name__ == "__main__":
    main()
