"""Printed calls of the compute families parse back to the same calls, with optional operands and kwargs and without."""

import pytest

import pypto.language as pl
from pypto.ir import structural_equal

TENSORS = """
    pl.cast(x, pl.FP16, mode="rint")
    pl.cast(x, pl.BF16)
    pl.rsqrt(x, high_precision=True)
    pl.rsqrt(x)
    pl.row_sum(x)
    pl.tensor.row_argmax(x, axis=0, keep_dim=False)
    pl.col_max(x)
    pl.row_expand_add(x, v)
    pl.row_expand(x, v)
    pl.col_expand_mul(x, w)
    pl.expands(x, 2.5)
    pl.expand_clone(b, c)
    pl.cmp(x, 0.5, 4)
    pl.cmp(x, x)
    pl.and_(i, 3)
    pl.or_(i, i)
    pl.xor(i, i)
    pl.shr(i, 2)
    pl.part_max(x, x)
    pl.div(x, x, high_precision=True)
    pl.maximum(x, 0.0)
    pl.matmul(x, z, b_trans=True)
    pl.matmul(x, z, pl.FP16, False, True, True)
    pl.matmul_acc(a, x, z, b_trans=True)
    pl.matmul_acc(a, x, z, False, True, init_cond=k == 0)
    pl.matmul_acc(a, x, z, b_trans=True, init_cond=True)
    pl.fillpad(x, 0)
    pl.fillpad_expand(x, [32, 128], pl.PadValue.min)
    pl.sort32(x, u)
    pl.mrgsort(s, block_len=64)
    pl.mrgsort(s, s, s, exhausted=True)
    pl.gather(x, -1, i)
    pl.gather(x, dim=0, index=i)
    pl.gather(x, mask_pattern=3, output_dtype=pl.INT32)
    pl.gather(x, kvalue=2.0, cmp_mode="gt", out_cols=8, offset=3, count_dtype=pl.UINT32)
    pl.scatter(x, -1, i, y)
    pl.scatter(y, mask_pattern=7, dst=y)
    pl.scatter_update(x, -2, j, z)
    pl.gather_row(x, z, [0, 0], [k, 0], [1, 96])
    pl.gather_row(x, z, [0, 0], [k, 0], [1, 96], valid_shape=[1, k])
    pl.paged_gather(x, j, j, 4, 16, 32, col_off=2, is_trans=True)
"""

TILES = """
    pl.cast(t, pl.BF16, mode="floor")
    pl.tile.rsqrt(t)
    pl.tile.rsqrt(t, t)
    pl.row_max(t, t)
    pl.col_sum(t)
    pl.col_sum(t, t)
    pl.col_argmin(t, t)
    pl.row_expand_sub(t, tv)
    pl.row_expand_add(t, tv)
    pl.row_expand_add(t, tv, t)
    pl.expands(t, 2)
    pl.cmp(t, t, cmp_type=2)
    pl.cmps(t, 1.5)
    pl.sel(m, t, t, m)
    pl.sels(m, t, m, 0)
    pl.sels(m, ti, m, -3)
    pl.and_(ti, 3)
    pl.xor(ti, 3, ti)
    pl.xor(ti, ti, ti)
    pl.shl(ti, ti)
    pl.part_add(t, t)
    pl.rem(t, t, t)
    pl.rems(t, 3, t)
    pl.addsc(t, 2, t)
    pl.subc(t, t, t)
    pl.lrelu(t, 0.1)
    pl.prelu(t, t, t)
    pl.matmul(t, tz)
    pl.tile.matmul_acc(ta, t, tz, k == 0)
    pl.matmul_acc(ta, t, tz, init_cond=True)
    pl.matmul_bias(t, tz, tb)
    pl.batch_matmul(t, tz)
    pl.tile.batch_matmul_acc(ta, t, tz)
    pl.gemv(tw, tz, "partial")
    pl.gemv_bias(tw, tz, tb)
    pl.fillpad(t, pl.PadValue.max)
    pl.tile.fillpad_inplace(t)
    pl.fillpad_expand(t, [32, 96])
    pl.sort32(t, tu)
    pl.mrgsort(t, block_len=64)
    pl.mrgsort(t, t, tmp=ts)
    pl.mrgsort(t, t, t, tmp=ts, exhausted=True)
    pl.tile.gather(t, ti, ti)
    pl.gatherb(t, tu, output_dtype=pl.INT16)
    pl.tile.gather_mask(t, mask_pattern=2)
    pl.tile.gather_compare(t, 1.0, m, out_cols=8)
    pl.tile.scatter(t, t, ti)
    pl.tile.scatter_mask(t, t, 7)
    pl.scatter_update(t, tj, tz)
    pl.gather_row(t, z, [0, 0], [0, 0], [1, 96], valid_shape=[1, 9])
"""

HEAD = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, x: pl.Tensor[[24, 96], pl.FP32], v: pl.Tensor[[24, 1], pl.FP32], w: pl.Tensor[[1, 96], pl.FP32],
          z: pl.Tensor[[32, 96], pl.FP32], a: pl.Tensor[[24, 32], pl.FP32], i: pl.Tensor[[24, 96], pl.INT32],
          j: pl.Tensor[[1, 32], pl.INT32], u: pl.Tensor[[24, 96], pl.UINT32], y: pl.Tensor[[24, 96], pl.FP32],
          s: pl.Tensor[[1, 512], pl.FP32], b: pl.Tensor[[4, 1, 6], pl.FP32], c: pl.Tensor[[4, 5, 6], pl.FP32],
          k: pl.Scalar[pl.INDEX]) -> pl.Tensor[[24, 96], pl.FP32]:
        t = pl.create_tile([24, 96], pl.FP32)
        tv = pl.create_tile([24, 1], pl.FP32)
        tw = pl.create_tile([1, 96], pl.FP32)
        tz = pl.create_tile([96, 96], pl.FP32)
        ta = pl.create_tile([24, 96], pl.FP32)
        tb = pl.create_tile([1, 96], pl.FP32)
        ts = pl.create_tile([24, 192], pl.FP32)
        ti = pl.create_tile([24, 96], pl.INT32)
        tj = pl.create_tile([2, 48], pl.INT32)
        tu = pl.create_tile([24, 96], pl.UINT32)
        m = pl.create_tile([24, 32], pl.UINT8)
        r = {call}
        return x
"""


def lines(text):
    return [line.strip() for line in text.strip().splitlines()]


@pytest.mark.parametrize("call", lines(TENSORS) + lines(TILES))
def test_printed_calls_parse_back(call):
    program = pl.parse("import pypto.language as pl\n" + HEAD.replace("{call}", call))
    text = program.as_python()
    assert structural_equal(program, pl.parse(text)), text
