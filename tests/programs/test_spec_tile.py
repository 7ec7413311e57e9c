"""The fragments of the kernel-side passes (tensor code in a kernel to placed tiles on two cores), before and after."""

import ml_dtypes
import numpy as np
import pytest
from spec_kit import F32, Example, check_round_trips, check_values, noise, ramp, text_params, zeros

BF16 = ml_dtypes.bfloat16
F16 = np.float16


def softmax_like(q, k):
    return np.exp(q.astype(F32) @ k.astype(F32).T)


ATT_ARGS = lambda: {  # noqa: E731
    "q": noise(32, 64, dtype=BF16) / 8,
    "k": noise(96, 64, dtype=BF16, seed=1) / 8,
    "o": zeros(32, 96),
}


def att_want(q, k, o):
    return {"o": softmax_like(q, k)}


ATT_CALL = """
@Orchestration
def run(self, q: bf16[32, 64], k: bf16[96, 64], o: pl.Out[f32[32, 96]]) -> f32[32, 96]:
    o1 = self.att(q, k, o)
    return o1
"""

EXAMPLES = [
    Example(
        "conversion of a multiply",
        {
            "before": """
            @InCore
            def axpb(self, x: f32[24, 80]) -> f32[24, 80]:
                y: f32[24, 80] = pl.tensor.muls(x, 3.0)
                return y
            @Orchestration
            def run(self, q: f32[24, 80]) -> f32[24, 80]:
                z = self.axpb(q)
                return z
            """,
            "after": """
            @InCore
            def axpb(self, x: f32[24, 80], ret0__out: pl.Out[f32[24, 80]]) -> f32[24, 80]:
                x__tile: tile_f32[24, 80] = pl.tile.load(x, [0, 0], [24, 80], [24, 80], target_memory=pl.Mem.Vec)
                y__tile: tile_f32[24, 80] = pl.tile.muls(x__tile, 3.0)
                ret0__store: f32[24, 80] = pl.tile.store(y__tile, [0, 0], ret0__out)
                return ret0__store
            @Orchestration
            def run(self, q: f32[24, 80]) -> f32[24, 80]:
                ret0__out = pl.tensor.create([24, 80], dtype=pl.FP32, layout=pl.TensorLayout.ND)
                z = self.axpb(q, ret0__out)
                return z
            """,
            "placed": """
            @InCore
            def axpb(self, x: f32[24, 80], ret0__out: pl.Out[f32[24, 80]]) -> f32[24, 80]:
                mem_vec_2: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 7680)
                x__tile: pl.Tile[[24, 80], pl.FP32, pl.MemRef(mem_vec_2, 0, 7680), pl.Mem.Vec] = pl.tile.load(
                    x, [0, 0], [24, 80], [24, 80], target_memory=pl.Mem.Vec)
                y__tile: pl.Tile[[24, 80], pl.FP32, pl.MemRef(mem_vec_2, 0, 7680), pl.Mem.Vec] = pl.tile.muls(x__tile, 3.0)
                ret0__store: pl.Tensor[[24, 80], pl.FP32, pl.MemRef("mem_ddr_1", 0, 7680)] = pl.tile.store(
                    y__tile, [0, 0], ret0__out)
                return ret0__out
            @pl.function(type=pl.FunctionType.Orchestration, auto_scope=False)
            def run(self, q: f32[24, 80]) -> f32[24, 80]:
                with pl.scope():
                    ret0__out = pl.tensor.create([24, 80], dtype=pl.FP32, layout=pl.TensorLayout.ND)
                    z = self.axpb(q, ret0__out, attrs={"arg_directions": [pl.adir.input, pl.adir.output_existing]})
                    return z
            """,
        },
        lambda: {"q": ramp(24, 80)},
        lambda q: {"return": 3 * q},
    ),
    Example(
        "a product with a transposed operand",
        {
            "tensors": """
            @InCore
            def f(self, q: bf16[32, 64], k: bf16[96, 64], o: pl.Out[f32[32, 96]]) -> f32[32, 96]:
                s = pl.matmul(q, k, b_trans=True, out_dtype=pl.FP32)
                o1 = pl.assemble(o, pl.exp(s), [0, 0])
                return o1
            """,
            "tiles": """
            @InCore
            def f(self, q: bf16[32, 64], k: bf16[96, 64], o: pl.Out[f32[32, 96]]) -> f32[32, 96]:
                q_mat = pl.tile.load(q, [0, 0], [32, 64], [32, 64], target_memory=pl.Mem.Mat)
                k_mat = pl.tile.load(k, [0, 0], [96, 64], [96, 64], target_memory=pl.Mem.Mat)
                k_mat_t = pl.tile.transpose_view(k_mat)
                s__tile = pl.tile.matmul(q_mat, k_mat_t)
                e__tile = pl.tile.exp(s__tile)
                o1 = pl.tile.store(e__tile, [0, 0], o)
                return o1
            """,
            "placed": """
            @InCore
            def f(self, q: bf16[32, 64], k: bf16[96, 64], o: pl.Out[f32[32, 96]]) -> f32[32, 96]:
                q_mat = pl.tile.load(q, [0, 0], [32, 64], [32, 64], target_memory=pl.Mem.Mat)
                k_mat = pl.tile.load(k, [0, 0], [96, 64], [96, 64], target_memory=pl.Mem.Mat)
                k_mat_t = pl.tile.transpose_view(k_mat)
                q_mat_Left = pl.tile.move(q_mat, target_memory=pl.Mem.Left)
                k_mat_t_Right = pl.tile.move(k_mat_t, target_memory=pl.Mem.Right)
                s__tile: tile_f32[32, 96]@Acc = pl.tile.matmul(q_mat_Left, k_mat_t_Right)
                s__tile_Vec = pl.tile.move(s__tile, target_memory=pl.Mem.Vec, blayout=pl.TileLayout.row_major,
                                           slayout=pl.TileLayout.none_box)
                e__tile: tile_f32[32, 96]@Vec = pl.tile.exp(s__tile_Vec)
                o1 = pl.tile.store(e__tile, [0, 0], o)
                return o1
            """,
        },
        ATT_ARGS,
        att_want,
    ),
    Example(
        "flattening to two dimensions",
        {
            "before": """
            @InCore
            def f(self, x: f32[3, 4, 32], out: pl.Out[f32[3, 4, 32]]) -> f32[3, 4, 32]:
                a: tile_f32[3, 4, 32] = pl.tile.load(x, [0, 0, 0], [3, 4, 32], [3, 4, 32], target_memory=pl.Mem.Vec)
                b: tile_f32[3, 4, 32] = pl.tile.exp(a)
                o = pl.tile.store(b, [0, 0, 0], out)
                return o
            """,
            "after": """
            @InCore
            def f(self, x: f32[3, 4, 32], out: pl.Out[f32[3, 4, 32]]) -> f32[3, 4, 32]:
                a: tile_f32[12, 32] = pl.tile.load(x, [0, 0, 0], [3, 4, 32], [3, 4, 32], target_memory=pl.Mem.Vec)
                b: tile_f32[12, 32] = pl.tile.exp(a)
                o = pl.tile.store(b, [0, 0, 0], out, [3, 4, 32])
                return o
            """,
        },
        lambda: {"x": noise(3, 4, 32), "out": zeros(3, 4, 32)},
        lambda x, out: {"out": np.exp(x)},
    ),
    Example(
        "a batch product page by page",
        {
            "before": """
            @InCore
            def f(self, x: f16[2, 16, 64], w: f16[64, 48], out: pl.Out[f32[2, 16, 48]]) -> f32[2, 16, 48]:
                p = pl.tile.load(x, [0, 0, 0], [2, 16, 64], [2, 16, 64], target_memory=pl.Mem.Mat)
                q = pl.tile.load(w, [0, 0], [64, 48], [64, 48], target_memory=pl.Mem.Mat)
                c = pl.tile.batch_matmul(p, q)
                o = pl.tile.store(c, [0, 0, 0], out)
                return o
            """,
            "after": """
            @InCore
            def f(self, x: f16[2, 16, 64], w: f16[64, 48], out: pl.Out[f32[2, 16, 48]]) -> f32[2, 16, 48]:
                p: tile_f16[32, 64]@Mat = pl.tile.load(x, [0, 0, 0], [2, 16, 64], [2, 16, 64], target_memory=pl.Mem.Mat)
                rhs_slice_0 = pl.tile.load(w, [0, 0], [64, 48], [64, 48], target_memory=pl.Mem.Mat)
                lhs_slice_0 = pl.tile.slice(p, [16, 64], [0, 0])
                matmul_0 = pl.tile.matmul(lhs_slice_0, rhs_slice_0)
                o_0 = pl.tile.store(matmul_0, [0, 0, 0], out, [1, 16, 48])
                lhs_slice_1 = pl.tile.slice(p, [16, 64], [16, 0])
                matmul_1 = pl.tile.matmul(lhs_slice_1, rhs_slice_0)
                o = pl.tile.store(matmul_1, [1, 0, 0], o_0, [1, 16, 48])
                return o
            """,
        },
        lambda: {"x": noise(2, 16, 64, dtype=F16), "w": noise(64, 48, dtype=F16, seed=1), "out": zeros(2, 16, 48)},
        lambda x, w, out: {"out": x.astype(F32) @ w.astype(F32)},
    ),
    Example(
        "a cast in steps",
        {
            "before": """
            @InCore
            def f(self, x: bf16[12, 32], out: pl.Out[i8[12, 32]]) -> i8[12, 32]:
                a = pl.tile.load(x, [0, 0], [12, 32], [12, 32], target_memory=pl.Mem.Vec)
                b: tile_i8[12, 32] = pl.tile.cast(a, target_type=pl.INT8, mode='round')
                o = pl.tile.store(b, [0, 0], out)
                return o
            """,
            "after": """
            @InCore
            def f(self, x: bf16[12, 32], out: pl.Out[i8[12, 32]]) -> i8[12, 32]:
                a = pl.tile.load(x, [0, 0], [12, 32], [12, 32], target_memory=pl.Mem.Vec)
                b__cast_fp32_tmp_v0 = pl.tile.cast(a, target_type=pl.FP32, mode='round')
                b__cast_fp16_tmp_v1 = pl.tile.cast(b__cast_fp32_tmp_v0, target_type=pl.FP16, mode='round')
                b = pl.tile.cast(b__cast_fp16_tmp_v1, target_type=pl.INT8, mode='round')
                o = pl.tile.store(b, [0, 0], out)
                return o
            """,
        },
        lambda: {"x": (noise(12, 32) * 10.25).astype(BF16), "out": zeros(12, 32, dtype=np.int8)},
        lambda x, out: {"out": np.trunc(x.astype(F32) + np.copysign(0.5, x.astype(F32))).astype(np.int8)},
    ),
    Example(
        "a product tiled over K",
        {
            "before": """
            @InCore
            def f(self, x: bf16[64, 1024], w: bf16[1024, 96], out: pl.Out[f32[64, 96]]) -> f32[64, 96]:
                a_mat = pl.tile.load(x, [0, 0], [64, 1024], [64, 1024], target_memory=pl.Mem.Mat)
                b_mat = pl.tile.load(w, [0, 0], [1024, 96], [1024, 96], target_memory=pl.Mem.Mat)
                c: tile_f32[64, 96]@Acc = pl.tile.matmul(a_mat, b_mat)
                o = pl.tile.store(c, [0, 0], out)
                return o
            """,
            "after": """
            @InCore
            def f(self, x: bf16[64, 1024], w: bf16[1024, 96], out: pl.Out[f32[64, 96]]) -> f32[64, 96]:
                a_mat = pl.tile.load(x, [0, 0], [64, 1024], [64, 1024], target_memory=pl.Mem.Mat)
                b_mat = pl.tile.load(w, [0, 0], [1024, 96], [1024, 96], target_memory=pl.Mem.Mat)
                c_l0_init: tile_f32[64, 96]@Acc = pl.tile.create([64, 96], dtype=pl.FP32, target_memory=pl.Mem.Acc)
                for c_l0_ko, (c_l0_c,) in pl.pipeline(0, 1024, 128, init_values=(c_l0_init,), stage=2):
                    c_l0_a = pl.tile.extract(a_mat, 0, c_l0_ko, [64, 128], target_memory=pl.Mem.Left)
                    c_l0_b = pl.tile.extract(b_mat, c_l0_ko, 0, [128, 96], target_memory=pl.Mem.Right)
                    if c_l0_ko == 0:
                        c_l0_c_first = pl.tile.matmul(c_l0_a, c_l0_b)
                        c_l0_c_phi = pl.yield_(c_l0_c_first)
                    else:
                        c_l0_c_acc = pl.tile.matmul_acc(c_l0_c, c_l0_a, c_l0_b)
                        c_l0_c_phi = pl.yield_(c_l0_c_acc)
                    c = pl.yield_(c_l0_c_phi)
                o = pl.tile.store(c, [0, 0], out)
                return o
            """,
        },
        lambda: {"x": noise(64, 1024, dtype=BF16), "w": noise(1024, 96, dtype=BF16, seed=1), "out": zeros(64, 96)},
        lambda x, w, out: {"out": x.astype(F32) @ w.astype(F32)},
    ),
    Example(
        "a product tiled over rows and columns",
        {
            "after": """
            @InCore
            def f(self, q: bf16[384, 128], k: bf16[128, 384], out: pl.Out[f32[384, 384]]) -> f32[384, 384]:
                q_mat = pl.tile.load(q, [0, 0], [384, 128], [384, 128], target_memory=pl.Mem.Mat)
                k_mat = pl.tile.load(k, [0, 0], [128, 384], [128, 384], target_memory=pl.Mem.Mat)
                for c_o, (c_oc,) in pl.range(0, 384, 192, init_values=(out,)):
                    c_a = pl.tile.extract(q_mat, c_o, 0, [192, 128], target_memory=pl.Mem.Left)
                    for c_i, (c_ic,) in pl.pipeline(0, 384, 128, stage=2, init_values=(c_oc,),
                                                    attrs={"pipeline_overlap_stores": False}):
                        c_b = pl.tile.extract(k_mat, 0, c_i, [128, 128], target_memory=pl.Mem.Right)
                        c_c = pl.tile.matmul(c_a, c_b)
                        out_t0 = pl.tile.store(c_c, [c_o, c_i], c_ic)
                        c_irv = pl.yield_(out_t0)
                    c_orv = pl.yield_(c_irv)
                return c_orv
            """,
        },
        lambda: {"q": noise(384, 128, dtype=BF16), "k": noise(128, 384, dtype=BF16, seed=1), "out": zeros(384, 384)},
        lambda q, k, out: {"out": q.astype(F32) @ k.astype(F32)},
    ),
    Example(
        "slices made dense",
        {
            "before": """
            @InCore
            def f(self, x: f32[8, 64], y: f32[1, 32], o: pl.Out[f32[8, 64]]) -> f32[8, 64]:
                t = pl.tile.load(x, [0, 0], [8, 64], [8, 64], target_memory=pl.Mem.Vec)
                g = pl.tile.load(y, [0, 0], [1, 32], [1, 32], target_memory=pl.Mem.Vec)
                h = pl.tile.slice(t, [8, 32], [0, 32])
                a = pl.tile.col_expand_mul(h, g)
                w = pl.tile.slice(t, [1, 64], [3, 0])
                b = pl.tile.muls(w, 2.0)
                o1 = pl.tile.store(a, [0, 0], o)
                o2 = pl.tile.store(b, [3, 0], o1)
                return o2
            """,
            "after": """
            @InCore
            def f(self, x: f32[8, 64], y: f32[1, 32], o: pl.Out[f32[8, 64]]) -> f32[8, 64]:
                t = pl.tile.load(x, [0, 0], [8, 64], [8, 64], target_memory=pl.Mem.Vec)
                g = pl.tile.load(y, [0, 0], [1, 32], [1, 32], target_memory=pl.Mem.Vec)
                h_textract = pl.tile.extract(t, 0, 32, [8, 32], target_memory=pl.Mem.Vec)
                a = pl.tile.col_expand_mul(h_textract, g)
                w = pl.tile.slice(t, [1, 64], [3, 0])
                b = pl.tile.muls(w, 2.0)
                o1 = pl.tile.store(a, [0, 0], o)
                o2 = pl.tile.store(b, [3, 0], o1)
                return o2
            """,
        },
        lambda: {"x": ramp(8, 64), "y": noise(1, 32), "o": zeros(8, 64)},
        lambda x, y, o: {
            "o": np.where(
                np.arange(8)[:, None] == 3, 2 * x, np.concatenate([x[:, 32:] * y, np.zeros((8, 32), F32)], axis=1)
            )
        },
    ),
    Example(
        "row-major detours of column vectors",
        {
            "before": """
            @InCore
            def f(self, a: f32[16, 32], out: pl.Out[f32[16, 32]]) -> f32[16, 32]:
                x = pl.tile.load(a, [0, 0], [16, 32], [16, 32], target_memory=pl.Mem.Vec)
                tmp = pl.tile.create([16, 32], dtype=pl.FP32, target_memory=pl.Mem.Vec)
                m = pl.tile.row_max(x, tmp)
                m2 = pl.tile.muls(m, 0.125)
                y = pl.tile.row_expand_sub(x, m2)
                o = pl.tile.store(y, [0, 0], out)
                return o
            """,
            "after": """
            @InCore
            def f(self, a: f32[16, 32], out: pl.Out[f32[16, 32]]) -> f32[16, 32]:
                x = pl.tile.load(a, [0, 0], [16, 32], [16, 32], target_memory=pl.Mem.Vec)
                tmp = pl.tile.create([16, 32], dtype=pl.FP32, target_memory=pl.Mem.Vec)
                m = pl.tile.row_max(x, tmp)
                m2__rm_a0_tmp_v0 = pl.tile.reshape(m, [1, 16])
                m2__row_major_tmp_v1 = pl.tile.muls(m2__rm_a0_tmp_v0, 0.125)
                m2 = pl.tile.reshape(m2__row_major_tmp_v1, [16, 1])
                y = pl.tile.row_expand_sub(x, m2)
                o = pl.tile.store(y, [0, 0], out)
                return o
            """,
        },
        lambda: {"a": ramp(16, 32), "out": zeros(16, 32)},
        lambda a, out: {"out": a - a.max(axis=1, keepdims=True) * F32(0.125)},
    ),
    Example(
        "a kernel on two lanes",
        {
            "before": """
            @InCore
            def att(self, q: bf16[32, 64], k: bf16[96, 64], out: pl.Out[f32[32, 96]]) -> f32[32, 96]:
                pl.func_attr({"split": pl.SplitMode.UP_DOWN})
                q_mat = pl.tile.load(q, [0, 0], [32, 64], [32, 64], target_memory=pl.Mem.Mat)
                k_mat = pl.tile.load(k, [0, 0], [96, 64], [96, 64], target_memory=pl.Mem.Mat)
                k_mat_t = pl.tile.transpose_view(k_mat)
                s = pl.tile.matmul(q_mat, k_mat_t)
                v = pl.tile.move(s, target_memory=pl.Mem.Vec)
                e = pl.tile.exp(v)
                o = pl.tile.store(e, [0, 0], out)
                return o
            """,
            "after": """
            @InCore
            def att(self, q: bf16[32, 64], k: bf16[96, 64], out: pl.Out[f32[32, 96]]) -> f32[32, 96]:
                pl.func_attr({"split": pl.SplitMode.UP_DOWN, "split_aiv": True})
                q_mat = pl.tile.load(q, [0, 0], [32, 64], [32, 64], target_memory=pl.Mem.Mat)
                k_mat = pl.tile.load(k, [0, 0], [96, 64], [96, 64], target_memory=pl.Mem.Mat)
                k_mat_t = pl.tile.transpose_view(k_mat)
                s = pl.tile.matmul(q_mat, k_mat_t)
                subblock_idx = pl.tile.get_subblock_idx()
                v: tile_f32[16, 96]@Vec = pl.tile.aiv_shard(s, split=1)
                e: tile_f32[16, 96]@Vec = pl.tile.exp(v)
                o = pl.tile.store(e, [0 + subblock_idx * 16, 0], out)
                return o
            """,
        },
        ATT_ARGS,
        att_want,
        common=ATT_CALL,
    ),
    Example(
        "a mixed kernel in two parts",
        {
            "before": """
            @InCore
            def att(self, q: bf16[32, 64], k: bf16[96, 64], o: pl.Out[f32[32, 96]]) -> f32[32, 96]:
                q_mat = pl.tile.load(q, [0, 0], [32, 64], [32, 64], target_memory=pl.Mem.Mat)
                k_mat = pl.tile.load(k, [0, 0], [96, 64], [96, 64], target_memory=pl.Mem.Mat)
                k_t = pl.tile.transpose_view(k_mat)
                q_Left = pl.tile.move(q_mat, target_memory=pl.Mem.Left)
                k_t_Right = pl.tile.move(k_t, target_memory=pl.Mem.Right)
                s = pl.tile.matmul(q_Left, k_t_Right)
                s_Vec = pl.tile.move(s, target_memory=pl.Mem.Vec, blayout=pl.TileLayout.row_major,
                                     slayout=pl.TileLayout.none_box)
                e = pl.tile.exp(s_Vec)
                o1 = pl.tile.store(e, [0, 0], o)
                return o
            """,
            "after": """
            @AIC
            def att_aic(self, q: bf16[32, 64], k: bf16[96, 64], o: pl.Out[f32[32, 96]]):
                att_c2v_slot_buffer_import = pl.system.import_peer_buffer(name="att_c2v_slot_buffer", peer_func="att_aiv")
                pl.system.aic_initialize_pipe(att_c2v_slot_buffer_import, 0, dir_mask=1, slot_size=12288, slot_num=2)
                q_mat = pl.tile.load(q, [0, 0], [32, 64], [32, 64], target_memory=pl.Mem.Mat)
                k_mat = pl.tile.load(k, [0, 0], [96, 64], [96, 64], target_memory=pl.Mem.Mat)
                k_t = pl.tile.transpose_view(k_mat)
                q_Left = pl.tile.move(q_mat, target_memory=pl.Mem.Left)
                k_t_Right = pl.tile.move(k_t, target_memory=pl.Mem.Right)
                s = pl.tile.matmul(q_Left, k_t_Right)
                pl.tile.tpush_to_aiv(s, split=0)
            @AIV
            def att_aiv(self, q: bf16[32, 64], k: bf16[96, 64], o: pl.Out[f32[32, 96]]) -> f32[32, 96]:
                pl.func_attr({"dual_aiv_dispatch": True})
                att_c2v_slot_buffer = pl.system.reserve_buffer(name="att_c2v_slot_buffer", size=24576, base=-1)
                pl.system.aiv_initialize_pipe(att_c2v_slot_buffer, 0, dir_mask=1, slot_size=12288, slot_num=2)
                s_Vec: tile_f32[32, 96]@Vec = pl.tile.tpop_from_aic(split=0)
                e = pl.tile.exp(s_Vec)
                pl.system.tfree_to_aic(s_Vec)
                o1 = pl.tile.store(e, [0, 0], o)
                return o
            @Group
            def att(self, q: bf16[32, 64], k: bf16[96, 64], o: pl.Out[f32[32, 96]]) -> f32[32, 96]:
                self.att_aic(q, k, o)
                self.att_aiv(q, k, o)
                return o
            """,
            "after, halves": """
            @AIC
            def att_aic(self, q: bf16[32, 64], k: bf16[96, 64], o: pl.Out[f32[32, 96]]):
                pl.func_attr({"split": pl.SplitMode.UP_DOWN})
                q_mat = pl.tile.load(q, [0, 0], [32, 64], [32, 64], target_memory=pl.Mem.Mat)
                k_mat = pl.tile.load(k, [0, 0], [96, 64], [96, 64], target_memory=pl.Mem.Mat)
                k_t = pl.tile.transpose_view(k_mat)
                s = pl.tile.matmul(q_mat, k_t)
                pl.tile.tpush_to_aiv(s, split=1)
            @AIV
            def att_aiv(self, q: bf16[32, 64], k: bf16[96, 64], o: pl.Out[f32[32, 96]]) -> f32[32, 96]:
                pl.func_attr({"split": pl.SplitMode.UP_DOWN})
                subblock_idx = pl.tile.get_subblock_idx()
                s_Vec: tile_f32[16, 96]@Vec = pl.tile.tpop_from_aic(split=1)
                e = pl.tile.exp(s_Vec)
                pl.system.tfree_to_aic(s_Vec, split=1)
                o1 = pl.tile.store(e, [0 + subblock_idx * 16, 0], o)
                return o
            @Group
            def att(self, q: bf16[32, 64], k: bf16[96, 64], o: pl.Out[f32[32, 96]]) -> f32[32, 96]:
                self.att_aic(q, k, o)
                self.att_aiv(q, k, o)
                return o
            """,
        },
        ATT_ARGS,
        att_want,
        common=ATT_CALL,
    ),
    Example(
        "pipes both ways",
        {
            "after": """
            @AIC
            def pv_aic(self, p: bf16[16, 32], w: bf16[32, 32], o: pl.Out[f32[16, 32]]):
                pv_v2c_slot_buffer = pl.system.reserve_buffer(name="pv_v2c_slot_buffer", size=30720, base=-1)
                pv_c2v_slot_buffer_import = pl.system.import_peer_buffer(name="pv_c2v_slot_buffer", peer_func="pv_aiv")
                pl.system.aic_initialize_pipe(pv_c2v_slot_buffer_import, pv_v2c_slot_buffer, dir_mask=3,
                                              slot_size=15360, slot_num=2)
                w_mat = pl.tile.load(w, [0, 0], [32, 32], [32, 32], target_memory=pl.Mem.Mat)
                a: tile_bf16[16, 32]@Mat = pl.tile.tpop_from_aiv(split=0)
                c = pl.tile.matmul(a, w_mat)
                pl.system.tfree_to_aiv(a)
                pl.tile.tpush_to_aiv(c, split=0)
            @AIV
            def pv_aiv(self, p: bf16[16, 32], w: bf16[32, 32], o: pl.Out[f32[16, 32]]) -> f32[16, 32]:
                pv_v2c_slot_buffer_import = pl.system.import_peer_buffer(name="pv_v2c_slot_buffer", peer_func="pv_aic")
                pv_c2v_slot_buffer = pl.system.reserve_buffer(name="pv_c2v_slot_buffer", size=30720, base=-1)
                pl.system.aiv_initialize_pipe(pv_c2v_slot_buffer, pv_v2c_slot_buffer_import, dir_mask=3,
                                              slot_size=15360, slot_num=2)
                x = pl.tile.load(p, [0, 0], [16, 32], [16, 32], target_memory=pl.Mem.Vec)
                pl.tile.tpush_to_aic(x, split=0)
                r: tile_f32[16, 32]@Vec = pl.tile.tpop_from_aic(split=0)
                r1 = pl.tile.adds(r, 1.0)
                pl.system.tfree_to_aic(r)
                o1 = pl.tile.store(r1, [0, 0], o)
                return o
            @Group
            def pv(self, p: bf16[16, 32], w: bf16[32, 32], o: pl.Out[f32[16, 32]]) -> f32[16, 32]:
                self.pv_aic(p, w, o)
                self.pv_aiv(p, w, o)
                return o
            @Orchestration
            def run(self, p: bf16[16, 32], w: bf16[32, 32], o: pl.Out[f32[16, 32]]) -> f32[16, 32]:
                o1 = self.pv(p, w, o)
                return o1
            """,
        },
        lambda: {"p": noise(16, 32, dtype=BF16), "w": noise(32, 32, dtype=BF16, seed=1), "o": zeros(16, 32)},
        lambda p, w, o: {"o": p.astype(F32) @ w.astype(F32) + 1},
    ),
    Example(
        "a skewed pipeline",
        {
            "before": """
            @AIC
            def k_aic(self, x: f32[96, 16], o: pl.Out[f32[96, 16]]):
                for i in pl.pipeline(0, 6, 1, stage=2):
                    a = pl.tile.load(x, [i * 16, 0], [16, 16], [16, 16], target_memory=pl.Mem.Mat)
                    pl.tile.tpush_to_aiv(a, split=0)
            @AIV
            def k_aiv(self, x: f32[96, 16], o: pl.Out[f32[96, 16]]) -> f32[96, 16]:
                for i, (o1,) in pl.pipeline(0, 6, 1, stage=2, init_values=(o,)):
                    b: tile_f32[16, 16]@Vec = pl.tile.tpop_from_aic(split=0)
                    c = pl.tile.muls(b, 2.0)
                    pl.system.tfree_to_aic(b)
                    o2 = pl.tile.store(c, [i * 16, 0], o1)
                    o3 = pl.yield_(o2)
                return o
            @Group
            def k(self, x: f32[96, 16], o: pl.Out[f32[96, 16]]) -> f32[96, 16]:
                self.k_aic(x, o)
                self.k_aiv(x, o)
                return o
            @Orchestration
            def run(self, x: f32[96, 16], o: pl.Out[f32[96, 16]]) -> f32[96, 16]:
                o1 = self.k(x, o)
                return o1
            """,
            "after": """
            @AIC
            def k_aic(self, x: f32[96, 16], o: pl.Out[f32[96, 16]]):
                a = pl.tile.load(x, [0, 0], [16, 16], [16, 16], target_memory=pl.Mem.Mat)
                pl.tile.tpush_to_aiv(a, split=0)
                a_1 = pl.tile.load(x, [16, 0], [16, 16], [16, 16], target_memory=pl.Mem.Mat)
                pl.tile.tpush_to_aiv(a_1, split=0)
                for i in pl.range(2, 6, 2):
                    a_2 = pl.tile.load(x, [i * 16, 0], [16, 16], [16, 16], target_memory=pl.Mem.Mat)
                    pl.tile.tpush_to_aiv(a_2, split=0)
                    a_3 = pl.tile.load(x, [(i + 1) * 16, 0], [16, 16], [16, 16], target_memory=pl.Mem.Mat)
                    pl.tile.tpush_to_aiv(a_3, split=0)
            @AIV
            def k_aiv(self, x: f32[96, 16], o: pl.Out[f32[96, 16]]) -> f32[96, 16]:
                for i, (o1,) in pl.range(2, 6, 2, init_values=(o,)):
                    b: tile_f32[16, 16]@Vec = pl.tile.tpop_from_aic(split=0)
                    c = pl.tile.muls(b, 2.0)
                    pl.system.tfree_to_aic(b)
                    o2 = pl.tile.store(c, [(i - 2) * 16, 0], o1)
                    b_1: tile_f32[16, 16]@Vec = pl.tile.tpop_from_aic(split=0)
                    c_1 = pl.tile.muls(b_1, 2.0)
                    pl.system.tfree_to_aic(b_1)
                    o2_1 = pl.tile.store(c_1, [(i - 1) * 16, 0], o2)
                    o3 = pl.yield_(o2_1)
                b_2: tile_f32[16, 16]@Vec = pl.tile.tpop_from_aic(split=0)
                c_2 = pl.tile.muls(b_2, 2.0)
                pl.system.tfree_to_aic(b_2)
                o4 = pl.tile.store(c_2, [64, 0], o3)
                b_3: tile_f32[16, 16]@Vec = pl.tile.tpop_from_aic(split=0)
                c_3 = pl.tile.muls(b_3, 2.0)
                pl.system.tfree_to_aic(b_3)
                o5 = pl.tile.store(c_3, [80, 0], o4)
                return o
            @Group
            def k(self, x: f32[96, 16], o: pl.Out[f32[96, 16]]) -> f32[96, 16]:
                self.k_aic(x, o)
                self.k_aiv(x, o)
                return o
            @Orchestration
            def run(self, x: f32[96, 16], o: pl.Out[f32[96, 16]]) -> f32[96, 16]:
                o1 = self.k(x, o)
                return o1
            """,
        },
        lambda: {"x": ramp(96, 16), "o": zeros(96, 16)},
        lambda x, o: {"o": 2 * x},
    ),
    Example(
        "a pipeline unrolled",
        {
            "before": """
            @InCore
            def f(self, a: f32[5, 64], o: pl.Out[f32[1, 64]]) -> f32[1, 64]:
                z = pl.tile.full([1, 64], dtype=pl.FP32, value=1.0)
                for i, (acc,) in pl.pipeline(0, 5, 1, init_values=(z,), stage=2):
                    x = pl.tile.load(a, [i, 0], [1, 64], [1, 64], target_memory=pl.Mem.Vec)
                    n = pl.tile.add(acc, x)
                    r = pl.yield_(n)
                o1 = pl.tile.store(r, [0, 0], o)
                return o1
            """,
            "after": """
            @InCore
            def f(self, a: f32[5, 64], o: pl.Out[f32[1, 64]]) -> f32[1, 64]:
                z = pl.tile.full([1, 64], dtype=pl.FP32, value=1.0)
                for i, (acc,) in pl.pipeline(0, 4, 2, init_values=(z,), stage=1):
                    x = pl.tile.load(a, [i, 0], [1, 64], [1, 64], target_memory=pl.Mem.Vec, attrs={"pipeline_membership": "0:0"})
                    n = pl.tile.add(acc, x, attrs={"pipeline_membership": "0:0"})
                    x_1 = pl.tile.load(a, [i + 1, 0], [1, 64], [1, 64], target_memory=pl.Mem.Vec,
                                       attrs={"pipeline_membership": "0:1"})
                    n_1 = pl.tile.add(n, x_1, attrs={"pipeline_membership": "0:1"})
                    r_main = pl.yield_(n_1)
                x_2 = pl.tile.load(a, [4, 0], [1, 64], [1, 64], target_memory=pl.Mem.Vec, attrs={"pipeline_membership": "1:0"})
                n_2 = pl.tile.add(r_main, x_2, attrs={"pipeline_membership": "1:0"})
                r = n_2
                o1 = pl.tile.store(r, [0, 0], o)
                return o1
            """,
            "placed": """
            @InCore
            def f(self, a: f32[5, 64], o: pl.Out[f32[1, 64]]) -> f32[1, 64]:
                mem_vec_2: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 256)
                mem_vec_3: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 256)
                mem_vec_4: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 256)
                z: pl.Tile[[1, 64], pl.FP32, pl.MemRef(mem_vec_2, 0, 256), pl.Mem.Vec] = pl.tile.full(
                    [1, 64], dtype=pl.FP32, value=1.0)
                for i, (acc,) in pl.range(0, 4, 2, init_values=(z,)):
                    x: pl.Tile[[1, 64], pl.FP32, pl.MemRef(mem_vec_3, 0, 256), pl.Mem.Vec] = pl.tile.load(
                        a, [i, 0], [1, 64], [1, 64], target_memory=pl.Mem.Vec)
                    x_1: pl.Tile[[1, 64], pl.FP32, pl.MemRef(mem_vec_4, 0, 256), pl.Mem.Vec] = pl.tile.load(
                        a, [i + 1, 0], [1, 64], [1, 64], target_memory=pl.Mem.Vec)
                    n: pl.Tile[[1, 64], pl.FP32, pl.MemRef(mem_vec_3, 0, 256), pl.Mem.Vec] = pl.tile.add(acc, x)
                    n_1: pl.Tile[[1, 64], pl.FP32, pl.MemRef(mem_vec_2, 0, 256), pl.Mem.Vec] = pl.tile.add(n, x_1)
                    r_main: pl.Tile[[1, 64], pl.FP32, pl.MemRef(mem_vec_2, 0, 256), pl.Mem.Vec] = pl.yield_(n_1)
                x_2: pl.Tile[[1, 64], pl.FP32, pl.MemRef(mem_vec_3, 0, 256), pl.Mem.Vec] = pl.tile.load(
                    a, [4, 0], [1, 64], [1, 64], target_memory=pl.Mem.Vec)
                n_2: pl.Tile[[1, 64], pl.FP32, pl.MemRef(mem_vec_2, 0, 256), pl.Mem.Vec] = pl.tile.add(r_main, x_2)
                r: pl.Tile[[1, 64], pl.FP32, pl.MemRef(mem_vec_2, 0, 256), pl.Mem.Vec] = n_2
                o1: pl.Tensor[[1, 64], pl.FP32, pl.MemRef("mem_ddr_1", 0, 256)] = pl.tile.store(r, [0, 0], o)
                return o
            """,
        },
        lambda: {"a": ramp(5, 64), "o": zeros(1, 64)},
        lambda a, o: {"o": 1 + a.sum(axis=0, keepdims=True)},
    ),
    Example(
        "loads first, stores last",
        {
            "before": """
            @InCore
            def f(self, a: f32[2, 64], t: pl.Out[f32[2, 64]]) -> f32[2, 64]:
                x0 = pl.tile.load(a, [0, 0], [1, 64], [1, 64], target_memory=pl.Mem.Vec)
                y0 = pl.tile.add(x0, x0)
                o0 = pl.tile.store(y0, [0, 0], t)
                x1 = pl.tile.load(a, [1, 0], [1, 64], [1, 64], target_memory=pl.Mem.Vec)
                y1 = pl.tile.add(x1, x1)
                o1 = pl.tile.store(y1, [1, 0], o0)
                return o1
            """,
            "after": """
            @InCore
            def f(self, a: f32[2, 64], t: pl.Out[f32[2, 64]]) -> f32[2, 64]:
                x0 = pl.tile.load(a, [0, 0], [1, 64], [1, 64], target_memory=pl.Mem.Vec)
                x1 = pl.tile.load(a, [1, 0], [1, 64], [1, 64], target_memory=pl.Mem.Vec)
                y0 = pl.tile.add(x0, x0)
                o0 = pl.tile.store(y0, [0, 0], t)
                y1 = pl.tile.add(x1, x1)
                o1 = pl.tile.store(y1, [1, 0], o0)
                return o1
            """,
        },
        lambda: {"a": ramp(2, 64), "t": zeros(2, 64)},
        lambda a, t: {"t": 2 * a},
    ),
    Example(
        "memory of a carried branch",
        {
            "placed": """
            @InCore
            def f(self, x: f32[64, 32], n: idx, out: pl.Out[f32[16, 32]]) -> f32[16, 32]:
                mem_vec_4: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 2048)
                mem_vec_5: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 2048)
                z_acc: pl.Tile[[16, 32], pl.FP32, pl.MemRef(mem_vec_4, 0, 2048), pl.Mem.Vec] = pl.tile.full(
                    [16, 32], dtype=pl.FP32, value=0.0)
                for b, (acc,) in pl.range(0, 64, 16, init_values=(z_acc,)):
                    t: pl.Tile[[16, 32], pl.FP32, pl.MemRef(mem_vec_5, 0, 2048), pl.Mem.Vec] = pl.tile.load(
                        x, [b, 0], [16, 32], [16, 32], target_memory=pl.Mem.Vec)
                    if b < n:
                        p: pl.Tile[[16, 32], pl.FP32, pl.MemRef(mem_vec_4, 0, 2048), pl.Mem.Vec] = pl.tile.add(acc, t)
                        phi: pl.Tile[[16, 32], pl.FP32, pl.MemRef(mem_vec_4, 0, 2048), pl.Mem.Vec] = pl.yield_(p)
                    else:
                        q: pl.Tile[[16, 32], pl.FP32, pl.MemRef(mem_vec_4, 0, 2048), pl.Mem.Vec] = pl.tile.sub(acc, t)
                        phi: pl.Tile[[16, 32], pl.FP32, pl.MemRef(mem_vec_4, 0, 2048), pl.Mem.Vec] = pl.yield_(q)
                    r: pl.Tile[[16, 32], pl.FP32, pl.MemRef(mem_vec_4, 0, 2048), pl.Mem.Vec] = pl.yield_(phi)
                o = pl.tile.store(r, [0, 0], out)
                return o
            """,
        },
        lambda: {"x": ramp(64, 32), "n": 32, "out": zeros(16, 32)},
        lambda x, n, out: {"out": x[:16] + x[16:32] - x[32:48] - x[48:]},
    ),
    Example(
        "one buffer for a chain",
        {
            "placed": """
            @InCore
            def f(self, x: f32[12, 48], out: pl.Out[f32[12, 48]]) -> f32[12, 48]:
                mem_vec_2: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 2304)
                a: pl.Tile[[12, 48], pl.FP32, pl.MemRef(mem_vec_2, pl.const(0, pl.INT64), 2304), pl.Mem.Vec] = pl.tile.load(
                    x, [0, 0], [12, 48], [12, 48], target_memory=pl.Mem.Vec)
                b: pl.Tile[[12, 48], pl.FP32, pl.MemRef(mem_vec_2, pl.const(0, pl.INT64), 2304), pl.Mem.Vec] = pl.tile.exp(a)
                c: pl.Tile[[12, 48], pl.FP32, pl.MemRef(mem_vec_2, pl.const(0, pl.INT64), 2304), pl.Mem.Vec] = pl.tile.muls(
                    b, 2.0)
                o = pl.tile.store(c, [0, 0], out)
                return o
            """,
        },
        lambda: {"x": noise(12, 48), "out": zeros(12, 48)},
        lambda x, out: {"out": 2 * np.exp(x)},
    ),
    Example(
        "transposes, widening casts and row vectors",
        {
            "tiles": """
            @InCore
            def f(self, x: f16[16, 16], out: pl.Out[f32[16, 16]]) -> f32[16, 16]:
                h = pl.tile.load(x, [0, 0], [16, 16], [16, 16], target_memory=pl.Mem.Vec)
                w = pl.tile.cast(h, target_type=pl.FP32, mode='round')
                tmp = pl.tile.create([16, 16], dtype=pl.FP32, target_memory=pl.Mem.Vec)
                t = pl.tile.transpose(w, 0, 1)
                m = pl.tile.row_max(t, tmp)
                y = pl.tile.row_expand_sub(t, m)
                o = pl.tile.store(y, [0, 0], out)
                return o
            """,
        },
        lambda: {"x": noise(16, 16, dtype=F16), "out": zeros(16, 16)},
        lambda x, out: {"out": (x.T - x.T.max(axis=1, keepdims=True)).astype(F32)},
    ),
    Example(
        "a symbolic valid extent as a parameter",
        {
            "before": """
            @InCore
            def k(self, x: pl.Tensor[[32, 64], pl.FP32, pl.TensorView(valid_shape=[N, 64], layout=pl.TensorLayout.ND)],
                  out: pl.Out[f32[32, 64]]) -> f32[32, 64]:
                t = pl.load(x, [0, 0], [32, 64])
                o = pl.store(pl.add(t, 1.0), [0, 0], out)
                return o
            @Orchestration
            def run(self, xs: f32[32, 64], rows: idx, o: pl.InOut[f32[32, 64]]) -> f32[32, 64]:
                xv = pl.tensor.set_validshape(xs, rows, 64)
                o1 = self.k(xv, o)
                return o1
            """,
            "after": """
            @InCore
            def k(self, n: idx, x: pl.Tensor[[32, 64], pl.FP32, pl.TensorView(valid_shape=[n, 64], layout=pl.TensorLayout.ND)],
                  out: pl.Out[f32[32, 64]]) -> f32[32, 64]:
                t = pl.load(x, [0, 0], [32, 64])
                o = pl.store(pl.add(t, 1.0), [0, 0], out)
                return o
            @Orchestration
            def run(self, xs: f32[32, 64], rows: idx, o: pl.InOut[f32[32, 64]]) -> f32[32, 64]:
                xv = pl.tensor.set_validshape(xs, rows, 64)
                o1 = self.k(rows, xv, o)
                return o1
            """,
        },
        lambda: {"xs": ramp(32, 64), "rows": 20, "o": zeros(32, 64)},
        lambda xs, rows, o: {"o": np.where(np.arange(32)[:, None] < 20, xs + 1, 0)},
    ),
    Example(
        "a strided view as a parameter",
        {
            "before": """
            @InCore
            def k(self, s: f32[16, 64], y: pl.Out[f32[16, 64]]) -> f32[16, 64]:
                o = pl.store(pl.mul(pl.load(s, [0, 0], [16, 64]), 2.0), [0, 0], y)
                return o
            @Orchestration
            def run(self, big: f32[128, 256], r: idx, y: pl.Out[f32[16, 64]]) -> f32[16, 64]:
                s = pl.slice(big, [16, 64], [r * 16, 0])
                y1 = self.k(s, y)
                return y1
            """,
            "after": """
            @InCore
            def k(self, s: pl.Tensor[[16, 64], pl.FP32, pl.TensorView(stride=[256, 1], layout=pl.TensorLayout.ND)],
                  y: pl.Out[f32[16, 64]]) -> f32[16, 64]:
                o = pl.store(pl.mul(pl.load(s, [0, 0], [16, 64]), 2.0), [0, 0], y)
                return o
            @Orchestration
            def run(self, big: f32[128, 256], r: idx, y: pl.Out[f32[16, 64]]) -> f32[16, 64]:
                s = pl.slice(big, [16, 64], [r * 16, 0])
                y1 = self.k(s, y)
                return y1
            """,
        },
        lambda: {"big": ramp(128, 256), "r": 3, "y": zeros(16, 64)},
        lambda big, r, y: {"y": 2 * big[48:64, :64]},
    ),
    Example(
        "three-dimensional broadcasting of a gate",
        {
            "tensors": """
            @InCore
            def gate(self, x: f16[24, 96], s: f16[24, 1], out: pl.Out[f16[24, 96]]) -> f16[24, 96]:
                y = pl.mul(x, s)
                z = pl.add(y, 3)
                out = pl.assemble(out, z, [0, 0])
                return out
            """,
            "tiles": """
            @InCore
            def gate(self, x: f16[24, 96], s: f16[24, 1], out: pl.Out[f16[24, 96]]) -> f16[24, 96]:
                x__tile: tile_f16[24, 96]@Vec = pl.tile.load(x, [0, 0], [24, 96], [24, 96], target_memory=pl.Mem.Vec)
                s__tile: tile_f16[24, 1]@Vec = pl.tile.load(s, [0, 0], [24, 1], [24, 1], target_memory=pl.Mem.Vec)
                y__tile: tile_f16[24, 96]@Vec = pl.tile.row_expand_mul(x__tile, s__tile)
                z__tile: tile_f16[24, 96]@Vec = pl.tile.adds(y__tile, pl.const(3.0, pl.FP16))
                out__tile: f16[24, 96] = pl.tile.store(z__tile, [0, 0], out)
                return out__tile
            """,
        },
        lambda: {"x": noise(24, 96, dtype=F16), "s": noise(24, 1, dtype=F16, seed=1), "out": zeros(24, 96, dtype=F16)},
        lambda x, s, out: {"out": x * s + F16(3)},
    ),
    Example(
        "clamped loads",
        {
            "tiles": """
            @InCore
            def f(self, x: f32[100, 64], i: idx, out: pl.InOut[f32[16, 64]]) -> f32[16, 64]:
                b = pl.load(x, [96, 0], [16, 64], clamp=True)
                c = pl.load(x, [96, 0], [16, 64], [4, 64])
                e = pl.load(x, [i, 0], [16, 64], clamp=True)
                g = pl.slice(b, [8, 64], [0, 0])
                o1 = pl.store(g, [0, 0], out)
                o2 = pl.store(pl.add(c, 1.0), [4, 0], o1)
                o3 = pl.store(e, [8, 0], o2)
                return o3
            """,
        },
        lambda: {"x": ramp(100, 64), "i": 95, "out": zeros(16, 64)},
        lambda x, i, out: {"out": np.concatenate([x[96:], x[96:] + 1, x[95:], out[13:]])},
    ),
    Example(
        "an accumulating product",
        {
            "tiles": """
            @InCore
            def f(self, lhs: bf16[32, 256], rhs: bf16[256, 48], out: pl.Out[f32[32, 48]]) -> f32[32, 48]:
                acc = pl.create_tile([32, 48], pl.FP32, target_memory=pl.Mem.Acc)
                for k, (acc_k,) in pl.range(0, 256, 64, init_values=(acc,)):
                    a = pl.move(pl.load(lhs, [0, k], [32, 64], target_memory=pl.Mem.Mat), pl.Mem.Left)
                    b = pl.move(pl.load(rhs, [k, 0], [64, 48], target_memory=pl.Mem.Mat), pl.Mem.Right)
                    acc_n = pl.matmul_acc(acc_k, a, b, init_cond=(k == 0))
                    acc = pl.yield_(acc_n)
                o = pl.store(acc, [0, 0], out)
                return o
            """,
        },
        lambda: {"lhs": noise(32, 256, dtype=BF16), "rhs": noise(256, 48, dtype=BF16, seed=1), "out": zeros(32, 48)},
        lambda lhs, rhs, out: {"out": lhs.astype(F32) @ rhs.astype(F32)},
    ),
    Example(
        "compare and select",
        {
            "tiles": """
            @InCore
            def f(self, x: f32[4, 40], y: f32[4, 40], out: pl.Out[f32[4, 40]]) -> f32[4, 40]:
                u = pl.load(x, [0, 0], [4, 40])
                v = pl.load(y, [0, 0], [4, 40])
                scratch = pl.create_tile([1, 32], pl.UINT8, target_memory=pl.Mem.Vec)
                m = pl.cmp(u, v, cmp_type=4)
                w = pl.sel(m, u, v, scratch)
                o = pl.store(w, [0, 0], out)
                return o
            """,
        },
        lambda: {"x": noise(4, 40), "y": noise(4, 40, seed=1), "out": zeros(4, 40)},
        lambda x, y, out: {"out": np.maximum(x, y)},
    ),
    Example(
        "a scan with a scalar carry and a tile out of a branch",
        {
            "written": """
            @InCore
            def scan(self, src: f16[R, 64], n: pl.Scalar[pl.INT32], dst: pl.Out[f16[R, 64]]) -> tuple[f16[R, 64], idx]:
                k = pl.const(0, pl.INDEX)
                for i in pl.range(0, n, 1):
                    u = pl.exp(pl.load(src, [i * 16, 0], [16, 64]))
                    if i > 2:
                        v = pl.mul(u, 2.0)
                        k = k + 1
                    else:
                        v = pl.add(u, 1.0)
                        k = k + 2
                    dst = pl.store(v, [i * 16, 0], dst)
                return dst, k
            """,
            "SSA": """
            @InCore
            def scan(self, src: f16[R, 64], n: pl.Scalar[pl.INT32], dst: pl.Out[f16[R, 64]]) -> tuple[f16[R, 64], idx]:
                k__ssa_v0: idx = 0
                for i__idx_v0, (dst__iter_v1, k__iter_v1) in pl.range(0, n, 1, init_values=(dst, k__ssa_v0)):
                    t__tile: tile_f16[16, 64]@Vec = pl.tile.load(src, [i__idx_v0 * 16, 0], [16, 64], [16, 64],
                                                                 target_memory=pl.Mem.Vec)
                    u__ssa_v0: tile_f16[16, 64]@Vec = pl.tile.exp(t__tile)
                    if i__idx_v0 > 2:
                        v__ssa_v0: tile_f16[16, 64]@Vec = pl.tile.muls(u__ssa_v0, pl.const(2.0, pl.FP16))
                        k__ssa_v3: idx = k__iter_v1 + 1
                        v__phi_v2, k__phi_v5 = pl.yield_(v__ssa_v0, k__ssa_v3)
                    else:
                        v__ssa_v1: tile_f16[16, 64]@Vec = pl.tile.adds(u__ssa_v0, pl.const(1.0, pl.FP16))
                        k__ssa_v4: idx = k__iter_v1 + 2
                        v__phi_v2, k__phi_v5 = pl.yield_(v__ssa_v1, k__ssa_v4)
                    dst__ssa_v3: f16[R, 64] = pl.tile.store(v__phi_v2, [i__idx_v0 * 16, 0], dst__iter_v1)
                    dst__rv_v2, k__rv_v2 = pl.yield_(dst__ssa_v3, k__phi_v5)
                return dst__rv_v2, k__rv_v2
            """,
        },
        lambda: {"src": noise(80, 64, dtype=F16) / F16(4), "n": 5, "dst": zeros(80, 64, dtype=F16)},
        lambda src, n, dst: {
            "dst": np.concatenate([np.exp(src[:48]) + F16(1), np.exp(src[48:]) * F16(2)]),
        },
    ),
    Example(
        "runtime valid rows",
        {
            "written": """
            @InCore
            def f(self, x: f32[64, 128], n: idx, out: pl.Out[f32[32, 128]]) -> f32[32, 128]:
                t = pl.load(x, [0, 0], [64, 128])
                s = pl.tile.slice(t, [32, 128], [n, 0], [n, 100])
                f = pl.tile.fillpad(s, pad_value=pl.PadValue.zero)
                r = pl.tile.reshape(f, [64, 64])
                q = pl.tile.reshape(r, [32, 128])
                o = pl.store(q, [0, 0], out)
                return o
            """,
        },
        lambda: {"x": ramp(64, 128), "n": 9, "out": zeros(32, 128)},
        lambda x, n, out: {"out": np.where((np.arange(32)[:, None] < 9) & (np.arange(128)[None] < 100), x[9:41], 0)},
    ),
    Example(
        "slots of a ring",
        {
            "placed": """
            @InCore
            def f(self, x: f32[128, 32], out: pl.Out[f32[128, 32]]) -> f32[128, 32]:
                ring: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 8192)
                for i, (o,) in pl.range(4, init_values=(out,)):
                    t: pl.Tile[[32, 32], pl.FP32, pl.MemRef(ring, 4096, 4096, slots=2)[i % 2], pl.Mem.Vec] = pl.tile.load(
                        x, [i * 32, 0], [32, 32], [32, 32], target_memory=pl.Mem.Vec)
                    o1 = pl.tile.store(t, [i * 32, 0], o)
                    o2 = pl.yield_(o1)
                return o2
            """,
            "declared": """
            @InCore
            def f(self, x: f32[128, 32], out: pl.Out[f32[128, 32]]) -> f32[128, 32]:
                for i, (o,) in pl.range(4, init_values=(out,)):
                    t: pl.Tile[[32, 32], pl.FP32, pl.MemRef("ring", slots=2)[i % 2], pl.Mem.Vec] = pl.load(
                        x, [i * 32, 0], [32, 32])
                    o1 = pl.store(t, [i * 32, 0], o)
                    o2 = pl.yield_(o1)
                return o2
            """,
        },
        lambda: {"x": ramp(128, 32), "out": zeros(128, 32)},
        lambda x, out: {"out": x},
    ),
    Example(
        "the vector side of an unsplit kernel",
        {
            "after": """
            @AIC
            def mm_aic(self, a: bf16[32, 32], b: bf16[32, 48], c: pl.Out[f32[32, 48]]):
                a_mat = pl.tile.load(a, [0, 0], [32, 32], [32, 32], target_memory=pl.Mem.Mat)
                b_mat = pl.tile.load(b, [0, 0], [32, 48], [32, 48], target_memory=pl.Mem.Mat)
                p = pl.tile.matmul(a_mat, b_mat)
                pl.tile.tpush_to_aiv(p, split=0)
            @AIV
            def mm_aiv(self, a: bf16[32, 32], b: bf16[32, 48], c: pl.Out[f32[32, 48]]) -> f32[32, 48]:
                pl.func_attr({"dual_aiv_dispatch": True})
                subblock_idx: idx = pl.tile.get_subblock_idx()
                if subblock_idx == 0:
                    c__ssa_v0_Vec: tile_f32[32, 48]@Vec = pl.tile.tpop_from_aic(split=0)
                    e = pl.tile.exp(c__ssa_v0_Vec)
                    pl.system.tfree_to_aic(c__ssa_v0_Vec)
                    c1 = pl.tile.store(e, [0, 0], c)
                    c__phi_v1 = pl.yield_(c1)
                else:
                    c__ssa_v1_Vec: pl.Tile[[32, 48], pl.FP32, pl.Mem.Vec, pl.TileView(valid_shape=[0, 0])] = (
                        pl.tile.tpop_from_aic(split=0))
                    pl.system.tfree_to_aic(c__ssa_v1_Vec)
                    c__phi_v1 = pl.yield_(c)
                return c
            @Group
            def mm(self, a: bf16[32, 32], b: bf16[32, 48], c: pl.Out[f32[32, 48]]) -> f32[32, 48]:
                self.mm_aic(a, b, c)
                self.mm_aiv(a, b, c)
                return c
            @Orchestration
            def run(self, a: bf16[32, 32], b: bf16[32, 48], c: pl.Out[f32[32, 48]]) -> f32[32, 48]:
                c1 = self.mm(a, b, c)
                return c1
            """,
        },
        lambda: {"a": noise(32, 32, dtype=BF16) / 16, "b": noise(32, 48, dtype=BF16, seed=1), "c": zeros(32, 48)},
        lambda a, b, c: {"c": np.exp(a.astype(F32) @ b.astype(F32))},
    ),
    Example(
        "an Spmd function around a group, halves both ways",
        {
            "written": """
            @AIC
            def c(self, x: bf16[32, 64], w: bf16[64, 48], o: pl.InOut[f32[32, 48]]):
                pl.func_attr({"split": pl.SplitMode.UP_DOWN})
                wm = pl.tile.load(w, [0, 0], [64, 48], [64, 48], target_memory=pl.Mem.Mat)
                for i in pl.range(2):
                    a: tile_bf16[32, 64]@Mat = pl.tile.tpop_from_aiv(split=1)
                    p = pl.tile.matmul(a, wm)
                    pl.system.tfree_to_aiv(a, split=1)
                    pl.tile.tpush_to_aiv(p, split=1)
            @AIV
            def v(self, x: bf16[32, 64], w: bf16[64, 48], o: pl.InOut[f32[32, 48]]) -> f32[32, 48]:
                pl.func_attr({"split": pl.SplitMode.UP_DOWN})
                s = pl.tile.get_subblock_idx()
                for i, (o1,) in pl.range(2, init_values=(o,)):
                    h: tile_bf16[16, 64]@Vec = pl.tile.load(x, [s * 16, 0], [16, 64], [16, 64], target_memory=pl.Mem.Vec)
                    pl.tile.tpush_to_aic(h, split=1)
                    q: tile_f32[16, 48]@Vec = pl.tile.tpop_from_aic(split=1)
                    old = pl.tile.load(o1, [s * 16, 0], [16, 48], [16, 48], target_memory=pl.Mem.Vec)
                    q1 = pl.tile.add(q, old)
                    pl.system.tfree_to_aic(q, split=1)
                    o2 = pl.tile.store(q1, [s * 16, 0], o1)
                    o3 = pl.yield_(o2)
                return o
            @Group
            def g(self, x: bf16[32, 64], w: bf16[64, 48], o: pl.InOut[f32[32, 48]]) -> f32[32, 48]:
                self.c(x, w, o)
                self.v(x, w, o)
                return o
            @Spmd
            def s(self, x: bf16[32, 64], w: bf16[64, 48], o: pl.InOut[f32[32, 48]]) -> f32[32, 48]:
                o1 = self.g(x, w, o)
                return o
            @Orchestration
            def run(self, x: bf16[32, 64], w: bf16[64, 48], o: pl.InOut[f32[32, 48]]) -> f32[32, 48]:
                o1 = self.s(x, w, o, attrs={"core_num": 2})
                o2, t = pl.spmd_submit(self.g, x, w, o1, core_num=1)
                return o2
            """,
        },
        lambda: {"x": noise(32, 64, dtype=BF16), "w": noise(64, 48, dtype=BF16, seed=1), "o": zeros(32, 48)},
        lambda x, w, o: {"o": 6 * (x.astype(F32) @ w.astype(F32))},
    ),
    Example(
        "blocks of a group",
        {
            "written": """
            @AIC
            def c(self, n: idx, x: bf16[64, 64], w: bf16[64, 48], o: pl.InOut[f32[64, 48]]):
                b = pl.tile.get_block_idx()
                a = pl.tile.load(x, [b * 16, 0], [16, 64], [16, 64], target_memory=pl.Mem.Mat)
                wm = pl.tile.load(w, [0, 0], [64, 48], [64, 48], target_memory=pl.Mem.Mat)
                p = pl.tile.matmul(a, wm)
                pl.tile.tpush_to_aiv(p, split=0)
            @AIV
            def v(self, n: idx, x: bf16[64, 64], w: bf16[64, 48], o: pl.InOut[f32[64, 48]]) -> f32[64, 48]:
                b = pl.tile.get_block_idx()
                q: tile_f32[16, 48]@Vec = pl.tile.tpop_from_aic(split=0)
                o2 = pl.tile.store(pl.tile.adds(q, pl.cast(n, pl.FP32)), [b * 16, 0], o)
                return o2
            @Group
            def g(self, n: idx, x: bf16[64, 64], w: bf16[64, 48], o: pl.InOut[f32[64, 48]]) -> f32[64, 48]:
                pl.func_attr({"spmd_unwrapped": True})
                self.c(n, x, w, o)
                o1 = self.v(n, x, w, o)
                return o1
            @Orchestration
            def run(self, n: idx, x: bf16[64, 64], w: bf16[64, 48], o: pl.InOut[f32[64, 48]]) -> f32[64, 48]:
                with pl.manual_scope():
                    o1, t = pl.spmd_submit(self.g, n, x, w, o, core_num=n)
                    o2, t2 = pl.spmd_submit(self.g, n, x, w, o, core_num=n - 1, deps=[t])
                return o2
            """,
        },
        lambda: {"n": 4, "x": noise(64, 64, dtype=BF16), "w": noise(64, 48, dtype=BF16, seed=1), "o": zeros(64, 48)},
        lambda n, x, w, o: {"o": (x.astype(F32) @ w.astype(F32)) + 4},
    ),
    Example(
        "split regions around a second product",
        {
            "written": """
            @InCore
            def f(self, x: bf16[32, 64], w: bf16[64, 32], o: pl.InOut[f32[32, 32]]) -> f32[32, 32]:
                xm = pl.tile.load(x, [0, 0], [32, 64], [32, 64], target_memory=pl.Mem.Mat)
                wm = pl.tile.load(w, [0, 0], [64, 32], [64, 32], target_memory=pl.Mem.Mat)
                s = pl.tile.matmul(xm, wm)
                for aiv in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
                    h = pl.aiv_shard(s)
                    h2 = pl.tile.adds(h, 1.0)
                    hb = pl.tile.cast(h2, target_type=pl.BF16, mode="rint")
                    full = pl.aic_gather(hb)
                vm = pl.tile.load(w, [0, 0], [32, 32], [32, 32], target_memory=pl.Mem.Mat)
                q = pl.tile.matmul(full, vm)
                for aiv in pl.split_aiv(2, mode=pl.SplitMode.LEFT_RIGHT):
                    h3 = pl.aiv_shard(q)
                    o = pl.store(h3, [0, aiv * 16], o)
                return o
            @Orchestration
            def run(self, x: bf16[32, 64], w: bf16[64, 32], o: pl.InOut[f32[32, 32]]) -> f32[32, 32]:
                o = self.f(x, w, o)
                return o
            """,
        },
        lambda: {"x": noise(32, 64, dtype=BF16), "w": noise(64, 32, dtype=BF16, seed=1), "o": zeros(32, 32)},
        lambda x, w, o: {"o": ((x.astype(F32) @ w.astype(F32)) + 1).astype(BF16).astype(F32) @ w[:32].astype(F32)},
    ),
    Example(
        "a gather in a halved kernel",
        {
            "written": """
            @InCore
            def f(self, x: f32[32, 32], o: pl.InOut[f32[32, 32]]) -> f32[32, 32]:
                pl.func_attr({"split": pl.SplitMode.UP_DOWN, "split_aiv": True})
                sub = pl.tile.get_subblock_idx()
                t: tile_f32[16, 32]@Vec = pl.tile.load(x, [0 + sub * 16, 0], [16, 32], [16, 32], target_memory=pl.Mem.Vec)
                g = pl.tile.aic_gather(t, split=1)
                m = pl.tile.matmul(g, g)
                v: tile_f32[16, 32]@Vec = pl.tile.aiv_shard(m, split=1)
                o1 = pl.tile.store(v, [0 + sub * 16, 0], o)
                return o
            @Orchestration
            def run(self, x: f32[32, 32], o: pl.InOut[f32[32, 32]]) -> f32[32, 32]:
                o1 = self.f(x, o)
                o2, t = pl.spmd_submit(self.f, x, o1, core_num=2)
                return o2
            """,
        },
        lambda: {"x": noise(32, 32), "o": zeros(32, 32)},
        lambda x, o: {"o": x @ x},
    ),
    Example(
        "tile swap carries",
        {
            "written": """
            @InCore
            def f(self, a: f32[8, 16], b: f32[8, 16], n: idx, o: pl.InOut[f32[16, 16]]) -> f32[16, 16]:
                x = pl.load(a, [0, 0], [8, 16])
                y = pl.load(b, [0, 0], [8, 16])
                for i, (p, q) in pl.range(n, init_values=(x, y)):
                    p1 = pl.add(p, 1.0)
                    p2, q2 = pl.yield_(q, p1)
                o1 = pl.store(p2, [0, 0], o)
                o2 = pl.store(pl.add(q2, x), [8, 0], o1)
                return o2
            """,
        },
        lambda: {"a": ramp(8, 16), "b": noise(8, 16), "n": 3, "o": zeros(16, 16)},
        lambda a, b, n, o: {"o": np.concatenate([b + 1, a + 2 + a])},
    ),
    Example(
        "lag chain, same init twice",
        {
            "written": """
            @InCore
            def f(self, a: f32[8, 16], n: idx, o: pl.InOut[f32[16, 16]]) -> f32[16, 16]:
                x = pl.load(a, [0, 0], [8, 16])
                for i, (p, q, s) in pl.range(n, init_values=(x, x, x)):
                    t = pl.mul(p, 2.0)
                    p2, q2, s2 = pl.yield_(t, p, q)
                o1 = pl.store(pl.add(p2, q2), [0, 0], o)
                o2 = pl.store(pl.add(s2, x), [8, 0], o1)
                return o2
            """,
        },
        lambda: {"a": ramp(8, 16), "n": 3, "o": zeros(16, 16)},
        lambda a, n, o: {"o": np.concatenate([12 * a, 3 * a])},
    ),
    Example(
        "partial region tail in loop",
        {
            "written": """
            @InCore
            def f(self, a: f32[M, 16], o: pl.InOut[f32[M, 16]], s: pl.InOut[f32[1, 16]]) -> f32[M, 16]:
                m = pl.tensor.dim(a, 0)
                z = pl.tile.full([8, 16], dtype=pl.FP32, value=0.0)
                for i, (oo, acc) in pl.range(0, m, 8, init_values=(o, z)):
                    t = pl.load(a, [i, 0], [8, 16], [pl.min(m - i, 8), 16])
                    u = pl.fillpad(t, pad_value=pl.PadValue.zero)
                    acc1 = pl.add(acc, u)
                    o1 = pl.store(pl.mul(t, 2.0), [i, 0], oo)
                    o2, acc2 = pl.yield_(o1, acc1)
                s1 = pl.store(pl.tile.col_sum(acc2), [0, 0], s)
                return o2
            """,
        },
        lambda: {"a": ramp(20, 16), "o": zeros(20, 16), "s": zeros(1, 16)},
        lambda a, o, s: {"o": 2 * a, "s": a.sum(0, keepdims=True)},
    ),
    Example(
        "zero trips dyn",
        {
            "written": """
            @InCore
            def f(self, a: f32[M, 16], n: idx, o: pl.InOut[f32[1, 16]]) -> f32[1, 16]:
                z = pl.tile.full([1, 16], dtype=pl.FP32, value=5.0)
                for i, (acc,) in pl.pipeline(0, n, 1, stage=2, init_values=(z,)):
                    t = pl.load(a, [i, 0], [1, 16])
                    acc2 = pl.yield_(pl.add(acc, t))
                o1 = pl.store(acc2, [0, 0], o)
                return o1
            """,
        },
        lambda: {"a": ramp(20, 16), "n": -1, "o": zeros(1, 16)},
        lambda a, n, o: {"o": o + 5},
    ),
    Example(
        "extent zero store",
        {
            "written": """
            @InCore
            def f(self, a: f32[8, 16], n: idx, o: pl.InOut[f32[8, 16]]) -> f32[8, 16]:
                t = pl.load(a, [0, 0], [8, 16], [n, 16])
                o1 = pl.store(t, [0, 0], o)
                return o1
            """,
        },
        lambda: {"a": ramp(8, 16), "n": 0, "o": zeros(8, 16)},
        lambda a, n, o: {"o": o},
    ),
    Example(
        "uneven split codes",
        {
            "written": """
            @AIC
            def c(self, x: bf16[32, 32], w: bf16[32, 32], o: pl.InOut[f32[32, 32]]):
                a: pl.Tile[[32, 32], pl.BF16, pl.Mem.Mat, pl.TileView(valid_shape=[17, 32])] = pl.tile.load(x, [0, 0], [32, 32], [17, 32], target_memory=pl.Mem.Mat)
                b = pl.tile.load(w, [0, 0], [32, 32], [32, 32], target_memory=pl.Mem.Mat)
                p = pl.tile.matmul(a, b)
                pl.tile.tpush_to_aiv(p, split=3)
            @AIV
            def v(self, x: bf16[32, 32], w: bf16[32, 32], o: pl.InOut[f32[32, 32]]) -> f32[32, 32]:
                pl.func_attr({"split": pl.SplitMode.UP_DOWN})
                s = pl.tile.get_subblock_idx()
                q: pl.Tile[[16, 32], pl.FP32, pl.Mem.Vec, pl.TileView(valid_shape=[9 - s, 32])] = pl.tile.tpop_from_aic(split=3)
                o2 = pl.tile.store(q, [s * 9, 0], o)
                pl.system.tfree_to_aic(q, split=3)
                return o
            @Group
            def g(self, x: bf16[32, 32], w: bf16[32, 32], o: pl.InOut[f32[32, 32]]) -> f32[32, 32]:
                self.c(x, w, o)
                self.v(x, w, o)
                return o
            @Orchestration
            def run(self, x: bf16[32, 32], w: bf16[32, 32], o: pl.InOut[f32[32, 32]]) -> f32[32, 32]:
                o1 = self.g(x, w, o)
                return o1
            """,
        },
        lambda: {"x": noise(32, 32, dtype=BF16), "w": noise(32, 32, dtype=BF16, seed=1), "o": zeros(32, 32)},
        lambda x, w, o: {"o": np.where(np.arange(32)[:, None] < 17, x.astype(F32) @ w.astype(F32), 0)},
    ),
]


@pytest.mark.parametrize(("example", "form"), text_params(EXAMPLES))
def test_round_trips(example, form):
    check_round_trips(example.parse(form))


@pytest.mark.parametrize(("example", "form"), text_params([e for e in EXAMPLES if e.args]))
def test_values(example, form):
    check_values(example, example.parse(form))
