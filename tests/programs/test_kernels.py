"""Kernels as users write them, at tensor and at tile level, against NumPy in submission order and in random legal orders."""

import ml_dtypes
import numpy as np
import pytest

import pypto.language as pl
from pypto import ir
from pypto.runtime import RunConfig

F32, F16, I32, BF16 = np.float32, np.float16, np.int32, ml_dtypes.bfloat16
SCHEDULES = [None, RunConfig(schedule="random", seed=1), RunConfig(schedule="random", seed=2)]
EPS = 1e-5


def noise(*shape, dtype=F32, seed=0):
    """Standard normal numbers; the same for the same shape."""
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape).astype(dtype)


def check(entry, args, want, rtol=1e-5, atol=1e-6):
    """Runs ``entry`` on copies of ``args`` and compares the arguments at the positions of ``want``."""
    run = ir.compile(entry, dump_passes=False) if isinstance(entry, ir.Program) else entry
    for config in SCHEDULES:
        given = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
        assert run(*given, config=config) is None
        for position, expected in want.items():
            np.testing.assert_allclose(given[position].astype(np.float64), expected, rtol=rtol, atol=atol)


# --- normalisation and activations ----------------------------------------------------------------------------------------


@pl.jit
def rms_norm(x: pl.Tensor, gamma: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows, cols = x.shape
    for r in pl.parallel(0, rows, 16):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="rms"):
            part = x[r : r + 16, :]
            mean = pl.mul(pl.row_sum(pl.mul(part, part)), 1.0 / cols)
            scale = pl.rsqrt(pl.add(mean, EPS))
            out[r : r + 16, :] = pl.col_expand_mul(pl.row_expand_mul(part, scale), gamma)
    return out


def test_rms_norm():
    x, gamma = noise(48, 96), noise(1, 96)
    want = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + EPS) * gamma
    check(rms_norm, [x, gamma, np.zeros_like(x)], {2: want})


@pl.jit
def rope(x: pl.Tensor, cosine: pl.Tensor, sine: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows, width = x.shape
    half = width // 2
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="rope"):
        low, high = x[:, 0:half], x[:, half:width]
        out[:, 0:half] = pl.sub(pl.mul(low, cosine), pl.mul(high, sine))
        out[:, half:width] = pl.add(pl.mul(high, cosine), pl.mul(low, sine))
    return out


def test_rope():
    x, angle = noise(8, 64), noise(8, 32, seed=3)
    c, s = np.cos(angle), np.sin(angle)
    low, high = x[:, :32], x[:, 32:]
    want = np.concatenate([low * c - high * s, high * c + low * s], axis=1)
    check(rope, [x, c, s, np.zeros_like(x)], {3: want})


@pl.jit.inline
def tanh(x: pl.Tensor):
    e = pl.exp(pl.mul(x, 2.0))
    return pl.div(pl.sub(e, 1.0), pl.add(e, 1.0))


@pl.jit
def gelu(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        cube = pl.mul(pl.mul(x, x), x)
        inner = pl.mul(pl.add(x, pl.mul(cube, 0.044715)), 0.7978845608)
        out = pl.assemble(out, pl.mul(pl.mul(x, 0.5), pl.add(tanh(inner), 1.0)), [0, 0])
    return out


def test_gelu_with_an_inline_helper():
    x = noise(16, 32)
    want = 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))
    check(gelu, [x, np.zeros_like(x)], {1: want}, rtol=1e-4, atol=1e-5)


@pl.program
class Softmax:
    """Columns beyond ``length`` take no part: compare and select on tiles."""

    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        x: pl.Tensor[[8, 64], pl.FP32],
        mask: pl.Tensor[[8, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[8, 64], pl.FP32]],
    ) -> pl.Tensor[[8, 64], pl.FP32]:
        scores = pl.load(x, [0, 0], [8, 64])
        keep = pl.load(mask, [0, 0], [8, 64])
        scratch = pl.create_tile([8, 64], dtype=pl.FP32)
        bits = pl.cmp(keep, 0.5, cmp_type=4)
        low = pl.tile.full([8, 64], dtype=pl.FP32, value=-1e30)
        masked = pl.sel(bits, scores, low, scratch)
        powers = pl.exp(pl.row_expand_sub(masked, pl.row_max(masked, scratch)))
        result = pl.row_expand_div(powers, pl.row_sum(powers, scratch))
        return pl.store(result, [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[8, 64], pl.FP32],
        mask: pl.Tensor[[8, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[8, 64], pl.FP32]],
    ) -> pl.Tensor[[8, 64], pl.FP32]:
        out = self.kernel(x, mask, out)
        return out


def test_masked_softmax():
    x = noise(8, 64)
    mask = (np.arange(64) < np.arange(1, 9)[:, None] * 7).astype(F32)
    powers = np.where(mask > 0, np.exp(x), 0)
    check(Softmax, [x, mask, np.zeros_like(x)], {2: powers / powers.sum(axis=1, keepdims=True)})


# --- selection and order --------------------------------------------------------------------------------------------------


@pl.jit
def argmax(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.assemble(out, pl.row_argmax(x), [0, 0])
    return out


def test_argmax_takes_the_first_of_equals():
    x = noise(8, 40)
    x[3, 7] = x[3, 21] = 9
    check(argmax, [x, np.zeros((8, 1), I32)], {1: x.argmax(axis=1)[:, None]})


@pl.jit
def top8(x: pl.Tensor, values: pl.Out[pl.Tensor], places: pl.Out[pl.Tensor]):
    """The eight largest of 128 numbers: sort blocks of 32, merge the four runs, take the head apart."""
    with pl.at(level=pl.Level.CORE_GROUP):
        order = pl.arange(0, [1, 128], dtype=pl.UINT32)
        runs = pl.sort32(x, order)
        ranked = pl.mrgsort(runs, block_len=64)
        head = pl.slice(ranked, [1, 16], [0, 0])
        values = pl.assemble(values, pl.gather(head, mask_pattern=1), [0, 0])
        places = pl.assemble(places, pl.gather(head, mask_pattern=2, output_dtype=pl.INT32), [0, 0])
    return values, places


def test_top8():
    x = noise(1, 128)
    order = np.argsort(-x[0], kind="stable")[:8]
    check(top8, [x, np.zeros((1, 8), F32), np.zeros((1, 8), I32)], {1: x[:, order], 2: order[None, :]})


@pl.jit
def pick(x: pl.Tensor, index: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.assemble(out, pl.gather(x, dim=-1, index=index), [0, 0])
    return out


def test_gather_by_index():
    x = noise(4, 32)
    index = np.random.default_rng(0).integers(0, 32, (4, 8)).astype(I32)
    check(pick, [x, index, np.zeros((4, 8), F32)], {2: np.take_along_axis(x, index, axis=1)})


# --- quantisation, types ----------------------------------------------------------------------------------------------------


@pl.jit
def quantise(x: pl.Tensor, q: pl.Out[pl.Tensor], scales: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        scale = pl.div(pl.maximum(pl.row_max(pl.abs(x)), 1e-8), 127.0)
        scales = pl.assemble(scales, scale, [0, 0])
        whole = pl.cast(pl.row_expand_div(x, scale), pl.INT32, mode="rint")
        half = pl.cast(whole, pl.FP16, mode="none")
        q = pl.assemble(q, pl.cast(half, pl.INT8, mode="trunc"), [0, 0])
    return q, scales


def test_int8_with_scales():
    x = noise(16, 64)
    scale = np.abs(x).max(axis=1, keepdims=True) / F32(127)
    check(quantise, [x, np.zeros((16, 64), np.int8), np.zeros((16, 1), F32)], {1: np.rint(x / scale), 2: scale})


# --- matrices -----------------------------------------------------------------------------------------------------------------


@pl.jit
def linear(x: pl.Tensor, w: pl.Tensor, bias: pl.Tensor, out: pl.Out[pl.Tensor]):
    m, k = x.shape
    n = w.shape[1]
    for j in pl.parallel(0, n, 32):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="linear"):
            y = pl.matmul(x, w[:, j : j + 32], out_dtype=pl.FP32)
            y = pl.col_expand_add(y, bias[:, j : j + 32])
            out[:, j : j + 32] = pl.cast(y, pl.BF16, mode="rint")
    return out


def test_bf16_matmul_with_bias():
    x, w, bias = noise(16, 64, dtype=BF16), noise(64, 96, dtype=BF16), noise(1, 96)
    want = x.astype(F32) @ w.astype(F32) + bias
    check(linear, [x, w, bias, np.zeros((16, 96), BF16)], {3: want}, rtol=1e-2, atol=1e-2)


@pl.program
class SplitK:
    """The blocks of K add into one output: atomic stores."""

    @pl.function(type=pl.FunctionType.InCore)
    def part(
        self,
        a: pl.Tensor[[32, 128], pl.FP32],
        b: pl.Tensor[[128, 32], pl.FP32],
        k: pl.Scalar[pl.INDEX],
        out: pl.InOut[pl.Tensor[[32, 32], pl.FP32]],
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        left = pl.move(pl.load(a, [0, k], [32, 32], target_memory=pl.Mem.Mat), pl.Mem.Left)
        right = pl.move(pl.load(b, [k, 0], [32, 32], target_memory=pl.Mem.Mat), pl.Mem.Right)
        out = pl.store(pl.matmul(left, right), [0, 0], out, atomic=pl.AtomicType.Add)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[32, 128], pl.FP32],
        b: pl.Tensor[[128, 32], pl.FP32],
        out: pl.InOut[pl.Tensor[[32, 32], pl.FP32]],
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        for k in pl.range(0, 128, 32):
            out = self.part(a, b, k, out)
        return out


def test_split_k_adds_into_an_inout():
    a, b, start = noise(32, 128), noise(128, 32), noise(32, 32)
    check(SplitK, [a, b, start], {2: start + a @ b}, rtol=1e-4, atol=1e-4)


@pl.jit
def accumulate(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.create_tile([32, 48], pl.FP32, target_memory=pl.Mem.Acc)
        for k in pl.range(0, 256, 64):
            left = pl.move(pl.load(a, [0, k], [32, 64], target_memory=pl.Mem.Mat), pl.Mem.Left)
            right = pl.move(pl.load(b, [k, 0], [64, 48], target_memory=pl.Mem.Mat), pl.Mem.Right)
            acc = pl.matmul_acc(acc, left, right, init_cond=(k == 0))
        out = pl.store(acc, [0, 0], out)
    return out


def test_matmul_accumulator_on_chip():
    a, b = noise(32, 256), noise(256, 48)
    check(accumulate, [a, b, np.zeros((32, 48), F32)], {2: a @ b}, rtol=1e-4, atol=1e-4)


@pl.jit
def attention(q: pl.Tensor, keys: pl.Tensor, values: pl.Tensor, out: pl.Out[pl.Tensor]):
    """Softmax over the keys block by block: the running maximum rescales what was summed before."""
    rows, width = q.shape
    block = 16
    scale = width**-0.5
    with pl.at(level=pl.Level.CORE_GROUP):
        top = pl.full([rows, 1], dtype=pl.FP32, value=-1e30)
        total = pl.full([rows, 1], dtype=pl.FP32, value=0.0)
        acc = pl.full([rows, width], dtype=pl.FP32, value=0.0)
        for j in pl.range(0, keys.shape[0], block):
            scores = pl.matmul(q, keys[j : j + block, :], b_trans=True, out_dtype=pl.FP32) * scale
            new_top = pl.maximum(top, pl.row_max(scores))
            powers = pl.exp(pl.row_expand_sub(scores, new_top))
            shrink = pl.exp(top - new_top)
            total = total * shrink + pl.row_sum(powers)
            acc = pl.row_expand_mul(acc, shrink) + pl.matmul(powers, values[j : j + block, :])
            top = new_top
        out[:, :] = pl.row_expand_div(acc, total)
    return out


def test_blockwise_attention():
    q, keys, values = noise(16, 32), noise(64, 32), noise(64, 32, seed=5)
    scores = q @ keys.T / np.sqrt(32)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    want = powers / powers.sum(axis=1, keepdims=True) @ values
    check(attention, [q, keys, values, np.zeros_like(q)], {3: want}, rtol=1e-4, atol=1e-4)


@pl.jit
def flip(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows, cols = x.shape
    for r in pl.parallel(0, rows, 16):
        for c in pl.parallel(0, cols, 16):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="flip"):
                out[c : c + 16, r : r + 16] = pl.transpose(x[r : r + 16, c : c + 16], 0, 1)
    return out


@pl.jit
def flip_tiles(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.store(pl.transpose(pl.load(x, [0, 0], [32, 48]), 0, 1), [0, 0], out)
    return out


@pytest.mark.parametrize("kernel", [flip, flip_tiles])
def test_transpose(kernel):
    x = noise(32, 48)
    check(kernel, [x, np.zeros((48, 32), F32)], {1: x.T})


# --- regions ------------------------------------------------------------------------------------------------------------------

ROWS = pl.dynamic("ROWS")


@pl.jit
def ragged_max(x: pl.Tensor[[ROWS, 64], pl.FP32], out: pl.Out[pl.Tensor[[1, 64], pl.FP32]]):
    rows = x.shape[0]
    with pl.at(level=pl.Level.CORE_GROUP):
        best = pl.tile.full([1, 64], dtype=pl.FP32, value=-1e30)
        for r in pl.range(0, rows, 16):
            band = pl.load(x, [r, 0], [16, 64], valid_shape=[pl.min(rows - r, 16), 64])
            best = pl.maximum(best, pl.col_max(pl.fillpad(band, pad_value=pl.PadValue.min)))
        out = pl.store(best, [0, 0], out)
    return out


@pytest.mark.parametrize("rows", [1, 16, 37])
def test_ragged_last_block(rows):
    x = noise(rows, 64)
    check(ragged_max, [x, np.zeros((1, 64), F32)], {1: x.max(axis=0, keepdims=True)})


@pl.jit
def scaled(
    x: pl.Tensor[[ROWS, 32], pl.FP32],
    factors: pl.Tensor[[ROWS, 1], pl.FP32],
    out: pl.Out[pl.Tensor[[ROWS, 32], pl.FP32]],
):
    for r in pl.parallel(0, x.shape[0], 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            part = pl.load(x, [r, 0], [8, 32], clamp=True)
            factor = pl.load(factors, [r, 0], [8, 1], clamp=True)
            out = pl.store(pl.row_expand_mul(part, factor), [r, 0], out)
    return out


def test_one_dynamic_dimension_in_several_parameters():
    for rows in (8, 21):
        x, f = noise(rows, 32), noise(rows, 1)
        check(scaled, [x, f, np.zeros_like(x)], {2: x * f})
    assert scaled.cache_info().currsize == 2  # without a configuration and with one; not one for each row count
    with pytest.raises(ValueError, match=r"dynamic dimension 'ROWS' is 16 in x \(dim 0\) but 24 in factors \(dim 0\)"):
        scaled(noise(16, 32), noise(24, 1), np.zeros((16, 32), F32))


@pl.jit
def append(cache: pl.InOut[pl.Tensor], new: pl.Tensor, lengths: pl.Tensor):
    batch = new.shape[0]
    for b in pl.range(batch):
        place = pl.read(lengths, [b])
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="append"):
            row = pl.slice(new, [1, 32], [b, 0])
            cache = pl.assemble(cache, pl.reshape(row, [1, 1, 32]), [b, place, 0])
    return cache


def test_kv_cache_update():
    cache, new, lengths = noise(3, 8, 32), noise(3, 32), np.array([0, 5, 7], I32)
    want = cache.copy()
    want[np.arange(3), lengths] = new
    check(append, [cache, new, lengths], {0: want})


# --- control flow -------------------------------------------------------------------------------------------------------------


@pl.jit
def running_sum(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows, cols = x.shape
    with pl.at(level=pl.Level.CORE_GROUP):
        total = pl.full([1, cols], dtype=pl.FP32, value=0.0)
        for r in pl.range(rows):
            total = pl.add(total, x[r : r + 1, :])
            out[r : r + 1, :] = total
    return out


def test_running_sum():
    x = noise(12, 32)
    check(running_sum, [x, np.zeros_like(x)], {1: x.cumsum(axis=0)}, rtol=1e-4, atol=1e-5)


@pl.jit
def either(x: pl.Tensor, out: pl.Out[pl.Tensor], mode: pl.INT32):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 32])
        if mode == 0:
            y = pl.exp(t)
        elif mode == 1:
            y = pl.mul(t, t)
        else:
            y = pl.neg(t)
        out = pl.store(y, [0, 0], out)
    return out


@pytest.mark.parametrize(("mode", "want"), [(0, np.exp), (1, np.square), (2, np.negative)])
def test_conditional(mode, want):
    x = noise(16, 32)
    check(either, [x, np.zeros_like(x), mode], {1: want(x)})


@pl.jit
def first_over(x: pl.Tensor, limit: pl.Tensor, out: pl.Out[pl.Tensor]):
    """For each row, the first column whose running sum passes the limit: nested loops, the inner one left early."""
    rows, cols = x.shape
    bound = pl.read(limit, [0])
    with pl.at(level=pl.Level.CORE_GROUP):
        for r in pl.range(rows):
            total = pl.const(0.0, pl.FP32)
            found = pl.const(-1, pl.INT32)
            for c in pl.range(cols):
                total = total + pl.read(x, [r, c])
                if total > bound:
                    found = pl.cast(c, pl.INT32)
                    break
            pl.write(out, [r], found)
    return out


def test_nested_loops_with_break():
    x = np.abs(noise(6, 10))
    sums = x.cumsum(axis=1) > 4
    want = np.where(sums.any(axis=1), sums.argmax(axis=1), -1)
    check(first_over, [x, np.array([4], F32), np.zeros(6, I32)], {2: want})


@pl.jit
def lower_bound(x: pl.Tensor, key: pl.Tensor, place: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        wanted = pl.read(key, [0])
        low = 0
        high = x.shape[0]
        while low < high:
            middle = (low + high) // 2
            if x[middle] < wanted:
                low = middle + 1
            else:
                high = middle
        pl.write(place, [0], pl.cast(low, pl.INT32))
    return place


@pytest.mark.parametrize("key", [-5.0, 0.1, 5.0])
def test_binary_search(key):
    x = np.sort(noise(33))
    check(lower_bound, [x, np.array([key], F32), np.zeros(1, I32)], {2: [np.searchsorted(x, F32(key))]})


@pl.jit
def histogram(ids: pl.Tensor, counts: pl.InOut[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(ids.shape[0]):
            pl.write(counts, [ids[i]], counts[ids[i]] + pl.const(1, pl.INT32))
    return counts


def test_histogram():
    ids = np.random.default_rng(0).integers(0, 4, 20).astype(I32)
    check(histogram, [ids, np.ones(4, I32)], {1: 1 + np.bincount(ids, minlength=4)})


# --- functions ----------------------------------------------------------------------------------------------------------------


@pl.jit.incore
def add_scalar(x: pl.Tensor, out: pl.Out[pl.Tensor], k: pl.FP32):
    rows, cols = x.shape
    out = pl.store(pl.add(pl.load(x, [0, 0], [rows, cols]), k), [0, 0], out)
    return out


@pl.jit
def two_shapes(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor], d: pl.Out[pl.Tensor]):
    c = add_scalar(a, c, 1.5)
    d = add_scalar(b, d, -2.0)
    return c, d


def test_one_helper_with_two_shapes_and_constants():
    a, b = noise(8, 32), noise(4, 64)
    check(two_shapes, [a, b, np.zeros_like(a), np.zeros_like(b)], {2: a + 1.5, 3: b - 2})


def scaler(factor, tile=(8, 32)):
    @pl.jit
    def scale(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.store(pl.mul(pl.load(x, [0, 0], tile), factor), [0, 0], out)
        return out

    return scale


def test_closures_over_constants():
    x = noise(8, 32)
    check(scaler(3.0), [x, np.zeros_like(x)], {1: 3 * x})
    check(scaler(0.25), [x, np.zeros_like(x)], {1: 0.25 * x})


@pl.jit.incore
def bump(total: pl.InOut[pl.Tensor], x: pl.Tensor, i: pl.INDEX):
    t = pl.add(pl.load(total, [0, 0], [1, 64]), pl.load(x, [i, 0], [1, 64]))
    total = pl.store(t, [0, 0], total)
    return total


@pl.jit
def sum_rows(total: pl.InOut[pl.Tensor], x: pl.Tensor):
    for i in pl.range(x.shape[0]):
        total = bump(total, x, i)
    return total


def test_inout_accumulation_over_tasks():
    total, x = noise(1, 64), noise(9, 64)
    check(sum_rows, [total, x], {0: total + x.sum(axis=0)}, rtol=1e-4, atol=1e-5)


@pl.jit.inline
def silu(t: pl.Tile):
    return pl.div(t, pl.add(pl.exp(pl.neg(t)), 1.0))


@pl.jit
def swiglu(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        gate, value = pl.load(a, [0, 0], a.shape), pl.load(b, [0, 0], b.shape)
        out = pl.store(silu(gate) * value, [0, 0], out)
    return out


def test_an_inline_helper_on_tiles():
    a, b = noise(8, 32), noise(8, 32, seed=1)
    check(swiglu, [a, b, np.zeros_like(a)], {2: a / (1 + np.exp(-a)) * b})


@pl.jit
def two_steps(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.manual_scope():
        between = pl.create_tensor(x.shape, dtype=pl.FP32)
        between, first = pl.submit(add_scalar, x, between, 1.0)
        out, _ = pl.submit(add_scalar, between, out, 2.0, deps=[first])
    return out


def test_manual_dependencies():
    x = noise(16, 32)
    check(two_steps, [x, np.zeros_like(x)], {1: x + 3})
