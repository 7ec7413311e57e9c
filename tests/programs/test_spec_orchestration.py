"""The fragments of the orchestration passes and of orchestration code generation, before and after the passes."""

import numpy as np
import pytest
from spec_kit import BASE, Example, check_round_trips, check_values, noise, ramp, text_params, zeros

KERNELS = (
    BASE
    + """@InCore
def plus(self, cur: f32[8, 8], nxt: pl.Out[f32[8, 8]]) -> f32[8, 8]:
    n1 = pl.store(pl.add(pl.load(cur, [0, 0], [8, 8]), 1.0), [0, 0], nxt)
    return nxt
@InCore
def both(self, x: f32[8, 8], p: pl.Out[f32[8, 8]], q: pl.Out[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8]]:
    t = pl.load(x, [0, 0], [8, 8])
    q1 = pl.store(pl.mul(t, 3.0), [0, 0], q)
    p1 = pl.store(pl.mul(t, 5.0), [0, 0], p)
    return p, q
"""
)

EXAMPLES = [
    Example(
        "two task scopes",
        {
            "before": """
            @Opaque
            def scale(self, src: f32[48, 32], dst: pl.Out[f32[48, 32]], gain: pl.Scalar[pl.FP32]) -> f32[48, 32]:
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="scale_all", no_dep_args=[src]) as tid:
                    t = pl.load(src, [0, 0], [48, 32])
                    pl.store(pl.mul(t, gain), [0, 0], dst)
                with pl.at(level=pl.Level.CORE_GROUP, deps=[tid]):
                    u = pl.load(dst, [0, 0], [48, 32])
                    pl.store(pl.add(u, 1.0), [0, 0], dst)
                return dst
            """,
            "after": """
            @InCore
            def scale_all(self, src: f32[48, 32], gain: pl.Scalar[pl.FP32], dst: pl.Out[f32[48, 32]]) -> f32[48, 32]:
                t = pl.load(src, [0, 0], [48, 32])
                pl.store(pl.mul(t, gain), [0, 0], dst)
                return dst
            @InCore
            def scale_incore_1(self, dst: pl.InOut[f32[48, 32]]) -> f32[48, 32]:
                u = pl.load(dst, [0, 0], [48, 32])
                pl.store(pl.add(u, 1.0), [0, 0], dst)
                return dst
            @Orchestration
            def scale(self, src: f32[48, 32], dst: pl.Out[f32[48, 32]], gain: pl.Scalar[pl.FP32]) -> f32[48, 32]:
                ret__tmp_v0: pl.Tuple[f32[48, 32], pl.TaskId] = pl.submit(
                    self.scale_all, src, gain, dst, attrs={"arg_direction_overrides": [0]})
                dst__ssa_v1 = ret__tmp_v0[0]
                tid__ssa_v0 = ret__tmp_v0[1]
                ret__tmp_v0_1 = pl.submit(self.scale_incore_1, dst__ssa_v1, deps=[tid__ssa_v0])
                dst__ssa_v2 = ret__tmp_v0_1[0]
                tid__ssa_v1 = ret__tmp_v0_1[1]
                return dst__ssa_v2
            """,
            "directed": """
            @InCore
            def scale_all(self, src: f32[48, 32], gain: pl.Scalar[pl.FP32], dst: pl.Out[f32[48, 32]]) -> f32[48, 32]:
                t = pl.load(src, [0, 0], [48, 32])
                dst__ssa_v1 = pl.store(pl.mul(t, gain), [0, 0], dst)
                return dst
            @InCore
            def scale_incore_1(self, dst: pl.InOut[f32[48, 32]]) -> f32[48, 32]:
                u = pl.load(dst, [0, 0], [48, 32])
                dst__ssa_v1 = pl.store(pl.add(u, 1.0), [0, 0], dst)
                return dst
            @pl.function(type=pl.FunctionType.Orchestration, level=pl.Level.CHIP, role=pl.Role.Orchestrator,
                         auto_scope=False)
            def scale(self, src: f32[48, 32], dst: pl.Out[f32[48, 32]], gain: pl.Scalar[pl.FP32]) -> f32[48, 32]:
                with pl.scope():
                    dst__ssa_v1, tid__ssa_v0 = pl.submit(
                        self.scale_all, src, gain, dst,
                        attrs={"arg_directions": [pl.adir.no_dep, pl.adir.scalar, pl.adir.output_existing]})
                    dst__ssa_v2, tid__ssa_v1 = pl.submit(
                        self.scale_incore_1, dst__ssa_v1, deps=[tid__ssa_v0],
                        attrs={"arg_directions": [pl.adir.inout]})
                    return dst__ssa_v2
            """,
        },
        lambda: {"src": ramp(48, 32), "dst": zeros(48, 32), "gain": 3.0},
        lambda src, dst, gain: {"dst": src * 3 + 1},
    ),
    Example(
        "stores carried out of a loop",
        {
            "before": """
            @Opaque
            def f(self, src: f32[48, 32], dst: pl.Out[f32[48, 32]], done: pl.Out[f32[48, 32]]) -> f32[48, 32]:
                for r in pl.range(3):
                    with pl.at(level=pl.Level.CORE_GROUP):
                        pl.store(pl.load(src, [r * 16, 0], [16, 32]), [r * 16, 0], dst)
                    with pl.at(level=pl.Level.CORE_GROUP):
                        t = pl.load(dst, [r * 16, 0], [16, 32])
                        pl.store(pl.exp(t), [r * 16, 0], dst)
                with pl.at(level=pl.Level.CORE_GROUP):
                    done = pl.store(pl.load(dst, [0, 0], [48, 32]), [0, 0], done)
                return done
            """,
            "after": """
            @InCore
            def f_incore_0(self, src: f32[48, 32], r: idx, dst: pl.Out[f32[48, 32]]) -> f32[48, 32]:
                pl.store(pl.load(src, [r * 16, 0], [16, 32]), [r * 16, 0], dst)
                return dst
            @InCore
            def f_incore_1(self, r: idx, dst: pl.InOut[f32[48, 32]]) -> f32[48, 32]:
                t = pl.load(dst, [r * 16, 0], [16, 32])
                pl.store(pl.exp(t), [r * 16, 0], dst)
                return dst
            @InCore
            def f_incore_2(self, dst: f32[48, 32], done: pl.Out[f32[48, 32]]) -> f32[48, 32]:
                pl.store(pl.load(dst, [0, 0], [48, 32]), [0, 0], done)
                return done
            @Orchestration
            def f(self, src: f32[48, 32], dst: pl.Out[f32[48, 32]], done: pl.Out[f32[48, 32]]) -> f32[48, 32]:
                for r, (dst__iter_v1,) in pl.range(3, init_values=(dst,)):
                    dst__ssa_v1 = self.f_incore_0(src, r, dst__iter_v1)
                    dst__ssa_v2 = self.f_incore_1(r, dst__ssa_v1)
                    dst__rv_v3 = pl.yield_(dst__ssa_v2)
                done__ssa_v1 = self.f_incore_2(dst__rv_v3, done)
                return done__ssa_v1
            """,
            "scoped": """
            @InCore
            def f_incore_0(self, src: f32[48, 32], r: idx, dst: pl.Out[f32[48, 32]]) -> f32[48, 32]:
                pl.store(pl.load(src, [r * 16, 0], [16, 32]), [r * 16, 0], dst)
                return dst
            @InCore
            def f_incore_1(self, r: idx, dst: pl.InOut[f32[48, 32]]) -> f32[48, 32]:
                t = pl.load(dst, [r * 16, 0], [16, 32])
                pl.store(pl.exp(t), [r * 16, 0], dst)
                return dst
            @InCore
            def f_incore_2(self, dst: f32[48, 32], done: pl.Out[f32[48, 32]]) -> f32[48, 32]:
                pl.store(pl.load(dst, [0, 0], [48, 32]), [0, 0], done)
                return done
            @pl.function(type=pl.FunctionType.Orchestration, auto_scope=False)
            def f(self, src: f32[48, 32], dst: pl.Out[f32[48, 32]], done: pl.Out[f32[48, 32]]) -> f32[48, 32]:
                with pl.scope():
                    for r, (dst__iter_v1,) in pl.range(3, init_values=(dst,), attrs={"iter_arg_rebind_0": False}):
                        with pl.scope():
                            dst__ssa_v1 = self.f_incore_0(
                                src, r, dst__iter_v1,
                                attrs={"arg_directions": [pl.adir.input, pl.adir.scalar, pl.adir.inout]})
                            dst__ssa_v2 = self.f_incore_1(
                                r, dst__ssa_v1, attrs={"arg_directions": [pl.adir.scalar, pl.adir.inout]})
                            dst__rv_v3: f32[48, 32] = pl.yield_(dst__ssa_v2)
                    done__ssa_v1 = self.f_incore_2(
                        dst__rv_v3, done, attrs={"arg_directions": [pl.adir.input, pl.adir.output_existing]})
                    return done__ssa_v1
            """,
        },
        lambda: {"src": noise(48, 32), "dst": zeros(48, 32), "done": zeros(48, 32)},
        lambda src, dst, done: {"dst": np.exp(src), "done": np.exp(src)},
    ),
    *[
        Example(
            f"stores carried out of a branch, {flag}",
            {
                "before": """
                @Opaque
                def g(self, flag: idx, src: f32[16, 16], dst: pl.InOut[f32[16, 16]]) -> f32[16, 16]:
                    if flag > 0:
                        with pl.at(level=pl.Level.CORE_GROUP):
                            pl.store(pl.load(src, [0, 0], [16, 16]), [0, 0], dst)
                    return dst
                """,
                "after": """
                @InCore
                def g_incore_0(self, src: f32[16, 16], dst: pl.Out[f32[16, 16]]) -> f32[16, 16]:
                    pl.store(pl.load(src, [0, 0], [16, 16]), [0, 0], dst)
                    return dst
                @Orchestration
                def g(self, flag: idx, src: f32[16, 16], dst: pl.InOut[f32[16, 16]]) -> f32[16, 16]:
                    if flag > 0:
                        dst__ssa_v1 = self.g_incore_0(src, dst)
                        dst__rv_v2 = pl.yield_(dst__ssa_v1)
                    else:
                        dst__rv_v2 = pl.yield_(dst)
                    return dst__rv_v2
                """,
            },
            lambda flag=flag: {"flag": flag, "src": ramp(16, 16), "dst": zeros(16, 16)},
            lambda flag, src, dst: {"dst": src * flag},
        )
        for flag in (0, 1)
    ],
    Example(
        "a carried tensor, a log and a local",
        {
            "before": """
            @Opaque
            def f(self, x: f32[8, 8], total: pl.InOut[f32[8, 8]], log: pl.InOut[f32[4, 8]]) -> f32[8, 8]:
                for k, (acc,) in pl.range(4, init_values=(total,)):
                    tmp = pl.create_tensor([8, 8], dtype=pl.FP32)
                    with pl.at(level=pl.Level.CORE_GROUP):
                        pl.store(pl.add(pl.load(x, [0, 0], [8, 8]), 1.0), [0, 0], tmp)
                    with pl.at(level=pl.Level.CORE_GROUP):
                        t = pl.load(tmp, [0, 0], [8, 8])
                        pl.store(pl.add(t, pl.load(acc, [0, 0], [8, 8])), [0, 0], acc)
                        pl.store(pl.load(acc, [0, 0], [1, 8]), [k, 0], log)
                    acc_next = pl.yield_(acc)
                return acc_next
            """,
            "after": """
            @InCore
            def f_incore_0(self, x: f32[8, 8], tmp: pl.Out[f32[8, 8]]) -> f32[8, 8]:
                pl.store(pl.add(pl.load(x, [0, 0], [8, 8]), 1.0), [0, 0], tmp)
                return tmp
            @InCore
            def f_incore_1(self, k: idx, tmp: f32[8, 8], acc: pl.InOut[f32[8, 8]],
                           log: pl.Out[f32[4, 8]]) -> tuple[f32[8, 8], f32[4, 8]]:
                t = pl.load(tmp, [0, 0], [8, 8])
                pl.store(pl.add(t, pl.load(acc, [0, 0], [8, 8])), [0, 0], acc)
                pl.store(pl.load(acc, [0, 0], [1, 8]), [k, 0], log)
                return acc, log
            @Orchestration
            def f(self, x: f32[8, 8], total: pl.InOut[f32[8, 8]], log: pl.InOut[f32[4, 8]]) -> f32[8, 8]:
                for k, (acc, log__iter_v1) in pl.range(4, init_values=(total, log)):
                    tmp = pl.create_tensor([8, 8], dtype=pl.FP32)
                    tmp__ssa_v1 = self.f_incore_0(x, tmp)
                    ret__tmp_v0 = self.f_incore_1(k, tmp__ssa_v1, acc, log__iter_v1)
                    acc__ssa_v1 = ret__tmp_v0[0]
                    log__ssa_v2 = ret__tmp_v0[1]
                    acc_next, log__rv_v3 = pl.yield_(acc__ssa_v1, log__ssa_v2)
                return acc_next
            """,
        },
        lambda: {"x": ramp(8, 8), "total": noise(8, 8), "log": zeros(4, 8)},
        lambda x, total, log: {
            "total": total + 4 * (x + 1),
            "log": np.stack([total[0] + (k + 1) * (x[0] + 1) for k in range(4)]),
        },
    ),
    Example(
        "a carry in place",
        {
            "before": """
            @InCore
            def step(self, v: f32[32, 32], o: pl.Out[f32[32, 32]]) -> f32[32, 32]:
                o1 = pl.store(pl.add(pl.load(v, [0, 0], [32, 32]), 1.0), [0, 0], o)
                return o
            @Orchestration
            def run(self, x0: pl.InOut[f32[32, 32]]) -> f32[32, 32]:
                for i, (cur,) in pl.range(8, init_values=(x0,)):
                    nxt = pl.create_tensor([32, 32], dtype=pl.FP32)
                    res = self.step(cur, nxt)
                    fin = pl.yield_(res)
                return fin
            """,
        },
        lambda: {"x0": ramp(32, 32)},
        lambda x0: {"return": x0 + 8},
    ),
    Example(
        "a carry in place, after",
        {
            "after": """
            @InCore
            def step(self, v: pl.InOut[f32[32, 32]]) -> f32[32, 32]:
                o1 = pl.store(pl.add(pl.load(v, [0, 0], [32, 32]), 1.0), [0, 0], v)
                return v
            @Orchestration
            def run(self, x0: pl.InOut[f32[32, 32]]) -> f32[32, 32]:
                for i, (cur,) in pl.range(8, init_values=(x0,)):
                    res = self.step(cur)
                    fin = pl.yield_(res)
                return fin
            """,
        },
        lambda: {"x0": ramp(32, 32)},
        lambda x0: {"x0": x0 + 8},
    ),
    Example(
        "results in parameter order",
        {
            "before": """
            @InCore
            def two(self, x: f32[8, 8], p: pl.Out[f32[8, 8]], q: pl.Out[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8]]:
                t = pl.load(x, [0, 0], [8, 8])
                u = pl.mul(t, 3.0)
                v = pl.mul(t, 5.0)
                q1 = pl.store(u, [0, 0], q)
                p1 = pl.store(v, [0, 0], p)
                return q1, p1
            @Orchestration
            def run(self, x: f32[8, 8], p: pl.Out[f32[8, 8]], q: pl.Out[f32[8, 8]], o: pl.Out[f32[8, 8]]):
                r = self.two(x, p, q)
                a = r[0]
                b = r[1]
                o1 = self.plus(a, o)
                b1 = self.twice(b)
            """,
            "after": """
            @InCore
            def two(self, x: f32[8, 8], p: pl.Out[f32[8, 8]], q: pl.Out[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8]]:
                t = pl.load(x, [0, 0], [8, 8])
                u = pl.mul(t, 3.0)
                v = pl.mul(t, 5.0)
                q1 = pl.store(u, [0, 0], q)
                p1 = pl.store(v, [0, 0], p)
                return p, q
            @Orchestration
            def run(self, x: f32[8, 8], p: pl.Out[f32[8, 8]], q: pl.Out[f32[8, 8]], o: pl.Out[f32[8, 8]]):
                r = self.two(x, p, q)
                a = r[1]
                b = r[0]
                o1 = self.plus(a, o)
                b1 = self.twice(b)
            """,
        },
        lambda: {"x": ramp(8, 8), "p": zeros(8, 8), "q": zeros(8, 8), "o": zeros(8, 8)},
        lambda x, p, q, o: {"p": 10 * x, "q": 3 * x, "o": 3 * x + 1},
        common=KERNELS,
    ),
    Example(
        "an assemble loop",
        {
            "before": """
            @InCore
            def fill(self, a: f32[64, 64], r: idx, t: pl.Out[f32[16, 64]]) -> f32[16, 64]:
                t1 = pl.store(pl.add(pl.load(a, [r * 16, 0], [16, 64]), 1.0), [0, 0], t)
                return t
            @Orchestration
            def run(self, a: f32[64, 64], out: pl.Out[f32[64, 64]]) -> f32[64, 64]:
                for r, (acc,) in pl.range(4, init_values=(out,)):
                    t = pl.create_tensor([16, 64], dtype=pl.FP32)
                    u = self.fill(a, r, t)
                    acc2 = pl.assemble(acc, u, [r * 16, 0])
                    res = pl.yield_(acc2)
                return res
            """,
            "after": """
            @InCore
            def fill(self, a: f32[64, 64], r: idx,
                     t: pl.Out[pl.Tensor[[16, 64], pl.FP32, pl.TensorView(stride=[64, 1], layout=pl.TensorLayout.ND)]]
                     ) -> f32[16, 64]:
                t1 = pl.store(pl.add(pl.load(a, [r * 16, 0], [16, 64]), 1.0), [0, 0], t)
                return t
            @Orchestration
            def run(self, a: f32[64, 64], out: pl.Out[f32[64, 64]]) -> f32[64, 64]:
                for r in pl.range(4):
                    t = pl.slice(out, [16, 64], [r * 16, 0])
                    u = self.fill(a, r, t)
                return out
            """,
        },
        lambda: {"a": ramp(64, 64), "out": zeros(64, 64)},
        lambda a, out: {"out": a + 1},
    ),
    Example(
        "a page of a volume",
        {
            "before": """
            @InCore
            def fill(self, a: f32[16, 64], t: pl.Out[f32[16, 64]]) -> f32[16, 64]:
                t1 = pl.store(pl.load(a, [0, 0], [16, 64]), [0, 0], t)
                return t
            @Orchestration
            def run(self, a: f32[16, 64], b: idx, c: idx, vol: pl.InOut[f32[3, 16, 128]]) -> f32[3, 16, 128]:
                t = pl.create_tensor([16, 64], dtype=pl.FP32)
                u = self.fill(a, t)
                vol1 = pl.assemble(vol, u, [b, 0, c])
                return vol1
            """,
            "after": """
            @InCore
            def fill(self, a: f32[16, 64], t: pl.Out[f32[1, 16, 64]]) -> f32[1, 16, 64]:
                t1 = pl.store(pl.load(a, [0, 0], [16, 64]), [0, 0, 0], t, [1, 16, 64])
                return t
            @Orchestration
            def run(self, a: f32[16, 64], b: idx, c: idx, vol: pl.InOut[f32[3, 16, 128]]) -> f32[3, 16, 128]:
                t = pl.slice(vol, [1, 16, 64], [b, 0, c])
                u = self.fill(a, t)
                return vol
            """,
        },
        lambda: {"a": ramp(16, 64) + 1, "b": 2, "c": 32, "vol": zeros(3, 16, 128)},
        lambda a, b, c, vol: {
            "vol": np.concatenate([np.zeros((2, 16, 128)), np.pad(a, ((0, 0), (32, 32)))[None]]),
        },
    ),
    Example(
        "directions of parallel and sequential writers",
        {
            "before": """
            @Orchestration
            def run(self, x: f32[8, 8], y0: pl.InOut[f32[8, 8]], w0: pl.InOut[f32[8, 8]]):
                for i in pl.parallel(4):
                    y = self.part(x, i, y0)
                z = self.fix(x, y0)
                for i in pl.range(4):
                    w = self.part(x, i, w0)
            """,
            "after": """
            @Orchestration
            def run(self, x: f32[8, 8], y0: pl.InOut[f32[8, 8]], w0: pl.InOut[f32[8, 8]]):
                for i in pl.parallel(4):
                    y = self.part(x, i, y0, attrs={"arg_directions": [
                        pl.adir.input, pl.adir.scalar, pl.adir.output_existing]})
                z = self.fix(x, y0, attrs={"arg_directions": [pl.adir.input, pl.adir.inout]})
                for i in pl.range(4):
                    w = self.part(x, i, w0, attrs={"arg_directions": [pl.adir.input, pl.adir.scalar, pl.adir.inout]})
            """,
        },
        lambda: {"x": ramp(8, 8), "y0": zeros(8, 8), "w0": zeros(8, 8)},
        lambda x, y0, w0: {
            "y0": x + np.where(np.arange(8)[:, None] < 4, x + 1, 0),
            "w0": np.where(np.arange(8)[:, None] < 4, x + 1, 0),
        },
        common=KERNELS,
    ),
    *[
        Example(
            f"directions of branches, {c}",
            {
                "before": """
                @Orchestration
                def run(self, c: idx, a: f32[8, 8], b: f32[8, 8], o: pl.InOut[f32[8, 8]], t: pl.InOut[f32[8, 8]]):
                    k = self.fix(pl.no_dep(b), o)
                    if c > 0:
                        p = self.part(a, 0, t)
                    else:
                        p = self.part(a, 1, t)
                    q = self.part(a, 2, t)
                """,
                "after": """
                @Orchestration
                def run(self, c: idx, a: f32[8, 8], b: f32[8, 8], o: pl.InOut[f32[8, 8]], t: pl.InOut[f32[8, 8]]):
                    k = self.fix(b, o, attrs={"arg_directions": [pl.adir.no_dep, pl.adir.inout],
                                              "arg_direction_overrides": [0]})
                    if c > 0:
                        p = self.part(a, 0, t, attrs={"arg_directions": [
                            pl.adir.input, pl.adir.scalar, pl.adir.output_existing]})
                    else:
                        p = self.part(a, 1, t, attrs={"arg_directions": [
                            pl.adir.input, pl.adir.scalar, pl.adir.output_existing]})
                    q = self.part(a, 2, t, attrs={"arg_directions": [pl.adir.input, pl.adir.scalar, pl.adir.inout]})
                """,
            },
            lambda c=c: {"c": c, "a": ramp(8, 8), "b": noise(8, 8), "o": ramp(8, 8), "t": zeros(8, 8)},
            lambda c, a, b, o, t: {
                "o": o + b,
                "t": np.where(np.isin(np.arange(8), [2, 1 - c])[:, None], a + 1, 0),
            },
            common=KERNELS,
        )
        for c in (0, 1)
    ],
    Example(
        "derived dependencies",
        {
            "before": """
            @Orchestration
            def run(self, a: f32[8, 8], buf: pl.InOut[f32[8, 8]], y: pl.InOut[f32[8, 8]]):
                buf1 = self.plus(a, buf)
                y1 = self.fix(buf1, y)
            """,
            "after": """
            @Orchestration
            def run(self, a: f32[8, 8], buf: pl.InOut[f32[8, 8]], y: pl.InOut[f32[8, 8]]):
                buf1, t1 = pl.submit(self.plus, a, buf, attrs={"arg_directions": [
                    pl.adir.input, pl.adir.output_existing]})
                y1, t2 = pl.submit(self.fix, buf1, y, attrs={
                    "arg_directions": [pl.adir.no_dep, pl.adir.inout], "compiler_manual_dep_edges": [t1]})
            """,
        },
        lambda: {"a": ramp(8, 8), "buf": zeros(8, 8), "y": noise(8, 8)},
        lambda a, buf, y: {"y": y + a + 1, "buf": a + 1},
        common=KERNELS,
    ),
    Example(
        "disjoint halves",
        {
            "before": """
            @InCore
            def produce(self, a: f32[32, 64], o: pl.Out[f32[32, 64]]) -> f32[32, 64]:
                o1 = pl.store(pl.add(pl.load(a, [0, 0], [32, 64]), 1.0), [0, 0], o)
                return o
            @InCore
            def consume(self, a: f32[32, 64], y: pl.InOut[f32[32, 64]]) -> f32[32, 64]:
                y1 = pl.store(pl.add(pl.load(a, [0, 0], [32, 64]), pl.load(y, [0, 0], [32, 64])), [0, 0], y)
                return y
            @Orchestration
            def run(self, a: f32[32, 64], buf: pl.InOut[f32[64, 64]], y: pl.InOut[f32[32, 64]]):
                left = pl.slice(buf, [32, 64], [0, 0])
                right = pl.slice(buf, [32, 64], [32, 0])
                l1 = self.produce(a, left)
                r1 = self.consume(right, y)
                w1 = self.produce(a, right)
            """,
        },
        lambda: {"a": ramp(32, 64), "buf": noise(64, 64), "y": noise(32, 64, seed=1)},
        lambda a, buf, y: {"y": y + buf[32:], "buf": np.concatenate([a + 1, a + 1])},
    ),
    Example(
        "a carry of unknown trips",
        {
            "before": """
            @Orchestration
            def run(self, n: idx, a: f32[8, 8], buf: pl.InOut[f32[8, 8]], y: pl.InOut[f32[8, 8]]):
                for i, (cur,) in pl.range(n, init_values=(buf,)):
                    nxt = self.part(a, i, cur)
                    res = pl.yield_(nxt)
                z = self.fix(res, y)
            """,
        },
        lambda: {"n": 5, "a": ramp(8, 8), "buf": zeros(8, 8), "y": noise(8, 8)},
        lambda n, a, buf, y: {"y": y + np.where(np.arange(8)[:, None] < 5, a + 1, 0)},
        common=KERNELS,
    ),
    Example(
        "a phase fence",
        {
            "before": """
            @Orchestration
            def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]], z: pl.InOut[f32[8, 8]]):
                tids = pl.array.create(4, pl.TASK_ID)
                with pl.manual_scope():
                    for i in pl.parallel(4):
                        y1, t = pl.submit(self.part, x, i, y)
                        tids[i] = t
                    for j in pl.parallel(4):
                        r, u = pl.submit(self.part, y, j, z, deps=[tids])
            """,
            "after": """
            @Orchestration
            def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]], z: pl.InOut[f32[8, 8]]):
                tids = pl.array.create(4, pl.TASK_ID)
                with pl.manual_scope():
                    for i, (tids__iter_v1,) in pl.parallel(4, init_values=(tids,)):
                        y1, t = pl.submit(self.part, x, i, y, attrs={"arg_directions": [
                            pl.adir.input, pl.adir.scalar, pl.adir.output_existing]})
                        tids__ssa_v2 = pl.array.update_element(tids__iter_v1, i, t)
                        tids__rv_v3 = pl.yield_(tids__ssa_v2)
                    phase_fence_barrier_0_tid = pl.system.task_dummy(deps=[tids__rv_v3])
                    for j in pl.parallel(4):
                        r, u = pl.submit(self.part, y, j, z, deps=[phase_fence_barrier_0_tid])
            """,
        },
        lambda: {"x": ramp(8, 8), "y": zeros(8, 8), "z": zeros(8, 8)},
        lambda x, y, z: {
            "y": np.where(np.arange(8)[:, None] < 4, x + 1, 0),
            "z": np.where(np.arange(8)[:, None] < 4, x + 2, 0),
        },
        common=KERNELS,
    ),
    Example(
        "phases whose array is written in the body",
        {
            "before": """
            @Orchestration
            def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]):
                tids = pl.array.create(8, pl.TASK_ID)
                with pl.manual_scope():
                    for p in pl.range(3):
                        for j in pl.parallel(4):
                            r, u = pl.submit(self.fix, x, y, deps=[tids])
                            tids = pl.array.update_element(tids, j, u)
            """,
        },
        lambda: {"x": ramp(8, 8), "y": zeros(8, 8)},
        lambda x, y: {"y": 12 * x},
        common=KERNELS,
    ),
    *[
        Example(
            f"runtime scopes, {n}",
            {
                "before": """
                @Orchestration
                def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]], n: pl.Scalar[pl.INT64]) -> f32[8, 8]:
                    for i, (c,) in pl.parallel(2, init_values=(y,)):
                        c2 = self.part(x, i, c)
                        y1 = pl.yield_(c2)
                    if n > 1:
                        y2 = self.twice(y1)
                        y3 = pl.yield_(y2)
                    else:
                        y3 = pl.yield_(y1)
                    return y3
                """,
                "after": """
                @pl.function(type=pl.FunctionType.Orchestration, auto_scope=False)
                def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]], n: pl.Scalar[pl.INT64]) -> f32[8, 8]:
                    with pl.scope():
                        for i, (c,) in pl.parallel(2, init_values=(y,)):
                            with pl.scope():
                                c2 = self.part(x, i, c)
                                y1 = pl.yield_(c2)
                        if n > 1:
                            with pl.scope():
                                y2 = self.twice(y1)
                                y3 = pl.yield_(y2)
                        else:
                            with pl.scope():
                                y3 = pl.yield_(y1)
                        return y3
                """,
            },
            lambda n=n: {"x": ramp(8, 8), "y": zeros(8, 8), "n": n},
            lambda x, y, n: {"y": np.where(np.arange(8)[:, None] < 2, x + 1, 0) * n},
            common=KERNELS,
        )
        for n in (1, 2)
    ],
    Example(
        "a manual region",
        {
            "before": """
            @Orchestration
            def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]):
                with pl.manual_scope():
                    for i in pl.parallel(4):
                        r, t = pl.submit(self.part, x, i, y)
            """,
            "after": """
            @pl.function(type=pl.FunctionType.Orchestration, auto_scope=False)
            def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]):
                with pl.scope():
                    with pl.scope(mode=pl.ScopeMode.MANUAL):
                        for i in pl.parallel(4):
                            r, t = pl.submit(self.part, x, i, y)
            """,
        },
        lambda: {"x": ramp(8, 8), "y": zeros(8, 8)},
        lambda x, y: {"y": np.where(np.arange(8)[:, None] < 4, x + 1, 0)},
        common=KERNELS,
    ),
    Example(
        "a result that names its second parameter",
        {
            "after": """
            @Orchestration
            def run(self, x: f32[8, 8], buf: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                for i, (buf_iter,) in pl.range(3, init_values=(buf,), attrs={"iter_arg_rebind_0": False}):
                    ret = pl.submit(self.fix, x, buf_iter, attrs={"arg_directions": [pl.adir.no_dep, pl.adir.inout]})
                    buf2 = ret[0]
                    res: f32[8, 8] = pl.yield_(buf2)
                return res
            """,
        },
        lambda: {"x": ramp(8, 8), "buf": noise(8, 8)},
        lambda x, buf: {"buf": buf + 3 * x},
        common=KERNELS,
    ),
    Example(
        "a carry that is no rebinding",
        {
            "written": """
            @Orchestration
            def run(self, x: f32[8, 8], out: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                for i, (acc,) in pl.range(6, init_values=(out,)):
                    acc2 = self.part(x, i, acc)
                    (res,) = pl.yield_(acc2)
                return res
            """,
            "stamped": """
            @Orchestration
            def run(self, x: f32[8, 8], out: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                for i, (acc,) in pl.range(6, init_values=(out,), attrs={"iter_arg_rebind_0": False}):
                    acc2 = self.part(x, i, acc)
                    res = pl.yield_(acc2)
                return res
            """,
        },
        lambda: {"x": ramp(8, 8), "out": zeros(8, 8)},
        lambda x, out: {"out": np.where(np.arange(8)[:, None] < 6, x + 1, 0)},
        common=KERNELS,
    ),
    Example(
        "a carry that is rebound",
        {
            "written": """
            @Orchestration
            def run(self, x0: f32[8, 8]) -> f32[8, 8]:
                for i, (cur,) in pl.range(6, init_values=(x0,)):
                    nxt = pl.create_tensor([8, 8], dtype=pl.FP32)
                    nxt2 = self.plus(cur, nxt)
                    (res,) = pl.yield_(nxt2)
                return res
            """,
            "stamped": """
            @Orchestration
            def run(self, x0: f32[8, 8]) -> f32[8, 8]:
                for i, (cur,) in pl.range(6, init_values=(x0,), attrs={"iter_arg_rebind_0": True}):
                    nxt = pl.create_tensor([8, 8], dtype=pl.FP32)
                    nxt2 = self.plus(cur, nxt)
                    res = pl.yield_(nxt2)
                return res
            """,
        },
        lambda: {"x0": ramp(8, 8)},
        lambda x0: {"return": x0 + 6},
        common=KERNELS,
    ),
    Example(
        "ids carried through nested loops",
        {
            "written": """
            @Orchestration
            def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]):
                t0 = None
                with pl.manual_scope():
                    for p, (ph,) in pl.range(3, init_values=(t0,)):
                        for j, (it,) in pl.range(5, init_values=(ph,)):
                            r, t = pl.submit(self.fix, x, y, deps=[it])
                            inner = pl.yield_(t)
                        outer = pl.yield_(inner)
            """,
        },
        lambda: {"x": ramp(8, 8), "y": zeros(8, 8)},
        lambda x, y: {"y": 15 * x},
        common=KERNELS,
    ),
    Example(
        "ids in an array",
        {
            "written": """
            @Orchestration
            def run(self, src: f32[8, 8], buf: pl.InOut[f32[8, 8]], res: pl.InOut[f32[8, 8]]):
                ids = pl.array.create(3, pl.TASK_ID)
                for p in pl.parallel(3):
                    buf, t = pl.submit(self.part, src, p, buf)
                    ids[p] = t
                res, _ = pl.submit(self.fix, buf, res, deps=[ids])
                res, _ = pl.submit(self.fix, buf, res, deps=[ids[j] for j in range(3) if j != 1])
            """,
            "explicit": """
            @Orchestration
            def run(self, src: f32[8, 8], buf: pl.InOut[f32[8, 8]], res: pl.InOut[f32[8, 8]]):
                ids: pl.Array[3, pl.TASK_ID] = pl.array.create(3, pl.TASK_ID)
                for p, (buf__iter_v1, ids__iter_v1) in pl.parallel(3, init_values=(buf, ids)):
                    ret__tmp_v0: pl.Tuple[f32[8, 8], pl.Scalar[pl.TASK_ID]] = pl.submit(self.part, src, p, buf__iter_v1)
                    buf__ssa_v2: f32[8, 8] = ret__tmp_v0[0]
                    t: pl.Scalar[pl.TASK_ID] = ret__tmp_v0[1]
                    ids__ssa_v2 = pl.array.update_element(ids__iter_v1, p, t)
                    buf__rv_v3, ids__rv_v3 = pl.yield_(buf__ssa_v2, ids__ssa_v2)
                ret__tmp_v1 = pl.submit(self.fix, buf__rv_v3, res, deps=[ids__rv_v3])
                res__ssa_v1: f32[8, 8] = ret__tmp_v1[0]
                _submit_deps_buf = pl.array.create(2, pl.TASK_ID)
                e0 = pl.array.get_element(ids__rv_v3, 0)
                _submit_deps_buf__ssa_v1 = pl.array.update_element(_submit_deps_buf, 0, e0)
                e1 = pl.array.get_element(ids__rv_v3, 2)
                _submit_deps_buf__ssa_v2 = pl.array.update_element(_submit_deps_buf__ssa_v1, 1, e1)
                ret__tmp_v2 = pl.submit(self.fix, buf__rv_v3, res__ssa_v1, deps=[_submit_deps_buf__ssa_v2])
            """,
        },
        lambda: {"src": ramp(8, 8), "buf": zeros(8, 8), "res": zeros(8, 8)},
        lambda src, buf, res: {"res": 2 * np.where(np.arange(8)[:, None] < 3, src + 1, 0)},
        common=KERNELS,
    ),
    *[
        Example(
            f"a launch with everything, {count}",
            {
                "written": """
                @InCore
                def scale_all(self, x: f32[8, 8], tmp: pl.InOut[f32[8, 8]], gain: pl.Scalar[pl.FP32],
                              n: idx) -> f32[8, 8]:
                    b = pl.tile.get_block_idx()
                    t = pl.mul(pl.load(x, [b, 0], [1, 8]), gain)
                    t1 = pl.store(pl.add(t, pl.load(tmp, [b, 0], [1, 8])), [b, 0], tmp)
                    return tmp
                @Orchestration
                def run(self, x: f32[8, 8], gain: pl.Scalar[pl.FP32], counts: i32[4], e: idx, tmp: pl.InOut[f32[8, 8]]):
                    carry = None
                    tmp1, tid = pl.submit(self.twice, tmp)
                    tmp2, t3 = pl.spmd_submit(self.scale_all, x, tmp1, gain, 16, deps=[tid, carry], dumps=[tmp1],
                                              core_num=8, sync_start=True, allow_early_resolve=True,
                                              predicate=(counts[e] > 0),
                                              attrs={"arg_directions": [pl.adir.input, pl.adir.inout, pl.adir.scalar,
                                                                        pl.adir.scalar]})
                """,
            },
            lambda count=count: {
                "x": ramp(8, 8),
                "gain": 3.0,
                "counts": np.array([0, 0, count, 0], np.int32),
                "e": 2,
                "tmp": noise(8, 8),
            },
            lambda x, gain, counts, e, tmp: {"tmp": 2 * tmp + 3 * x * (counts[2] > 0)},
            common=KERNELS,
        )
        for count in (0, 7)
    ],
    Example(
        "created tensors",
        {
            "written": """
            @Orchestration
            def run(self, x: f32[8, 8], n: idx, y: pl.Out[f32[8, 8]]):
                tmp = pl.create_tensor([8, 8], dtype=pl.FP32)
                acc = pl.full([n * 4, 8], dtype=pl.FP32, value=0.0)
                tmp1 = self.plus(x, tmp)
                part = pl.slice(acc, [8, 8], [0, 0])
                a1 = self.fix(tmp1, part)
                y1 = self.plus(part, y)
            """,
        },
        lambda: {"x": ramp(8, 8), "n": 2, "y": zeros(8, 8)},
        lambda x, n, y: {"y": x + 2},
        common=KERNELS,
    ),
    Example(
        "an output that the launch makes",
        {
            "written": """
            @Orchestration
            def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]):
                s, t = pl.submit(self.plus, x)
                y1, t1 = pl.submit(self.fix, s, y)
            """,
        },
        lambda: {"x": ramp(8, 8), "y": noise(8, 8)},
        lambda x, y: {"y": y + x + 1},
        common=KERNELS,
    ),
    *[
        Example(
            f"results of a branch, {n}",
            {
                "written": """
                @Orchestration
                def run(self, n: idx, x: f32[8, 8], y: f32[8, 8], o: pl.Out[f32[8, 8]]):
                    tmp = pl.create_tensor([8, 8], dtype=pl.FP32)
                    k: idx = 3
                    if n > 3:
                        with pl.manual_scope():
                            y2, t = pl.submit(self.plus, x, tmp)
                        y__phi_v3, k__phi_v4 = pl.yield_(y, 1)
                    else:
                        tmp1 = self.plus(y, tmp)
                        y__phi_v3, k__phi_v4 = pl.yield_(tmp1, k + 1)
                    o1 = self.part(y__phi_v3, k__phi_v4, o)
                """,
            },
            lambda n=n: {"n": n, "x": ramp(8, 8), "y": noise(8, 8), "o": zeros(8, 8)},
            lambda n, x, y, o: {
                "o": np.where(np.arange(8)[:, None] == (1 if n > 3 else 4), (y if n > 3 else y + 1) + 1, 0)
            },
            common=KERNELS,
        )
        for n in (2, 5)
    ],
    Example(
        "a while loop over carries",
        {
            "written": """
            @Orchestration
            def run(self, n: idx, x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                for (i, c) in pl.while_(init_values=(0, y)):
                    pl.cond(i < n)
                    c1 = self.part(x, i, c)
                    i1, c2 = pl.yield_(i + 1, c1)
                return c2
            """,
            "natural": """
            @Orchestration
            def run(self, n: idx, x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                i = 0
                while i < n:
                    y = self.part(x, i, y)
                    i = i + 1
                return y
            """,
        },
        lambda: {"n": 3, "x": ramp(8, 8), "y": zeros(8, 8)},
        lambda n, x, y: {"y": np.where(np.arange(8)[:, None] < 3, x + 1, 0)},
        common=KERNELS,
    ),
    Example(
        "dynamic rows",
        {
            "written": """
            @InCore
            def add(self, x: f32[R, 64], i: idx, y: pl.InOut[f32[R, 64]]) -> f32[R, 64]:
                t = pl.load(x, [i * 16, 0], [16, 64], clamp=True)
                y1 = pl.store(pl.add(t, 1.0), [i * 16, 0], y)
                return y
            @Orchestration
            def run(self, x: f32[R, 64], y: pl.InOut[f32[R, 64]]) -> f32[R, 64]:
                rows = pl.tensor.dim(x, 0)
                for i in pl.parallel((rows + 15) // 16):
                    y1 = self.add(x, i, y)
                return y
            """,
        },
        lambda: {"x": ramp(40, 64), "y": zeros(40, 64)},
        lambda x, y: {"y": x + 1},
    ),
    Example(
        "two results of a launch",
        {
            "written": """
            @Orchestration
            def run(self, x: f32[8, 8], p: pl.Out[f32[8, 8]], q: pl.Out[f32[8, 8]]):
                (a, b), t = pl.submit(self.both, x, p, q)
                a1, t1 = pl.submit(self.twice, a, deps=[t], allow_early_resolve=True)
                b1, t2 = pl.submit(self.fix, a1, b, deps=[t, t1])
            """,
        },
        lambda: {"x": ramp(8, 8), "p": zeros(8, 8), "q": zeros(8, 8)},
        lambda x, p, q: {"p": 10 * x, "q": 13 * x},
        common=KERNELS,
    ),
    Example(
        "blocks as a task",
        {
            "written": """
            @Orchestration
            def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]):
                y0, t0 = pl.submit(self.twice, y)
                with pl.spmd(4, deps=[t0], name_hint="rows") as tid:
                    b = pl.tile.get_block_idx()
                    y1 = pl.store(pl.add(pl.load(y0, [b, 0], [1, 8]), pl.load(x, [b, 0], [1, 8])), [b, 0], y0)
                y2, t2 = pl.submit(self.twice, y0, deps=[tid])
            """,
            "outlined": """
            @InCore
            def rows(self, x: f32[8, 8], y0: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                b = pl.tile.get_block_idx()
                y1 = pl.store(pl.add(pl.load(y0, [b, 0], [1, 8]), pl.load(x, [b, 0], [1, 8])), [b, 0], y0)
                return y0
            @Spmd
            def rows_spmd(self, x: f32[8, 8], y0: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                y1 = self.rows(x, y0)
                return y0
            @Orchestration
            def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]):
                y0, t0 = pl.submit(self.twice, y)
                y1, tid = pl.spmd_submit(self.rows_spmd, x, y0, core_num=4, deps=[t0])
                y2, t2 = pl.submit(self.twice, y1, deps=[tid])
            """,
        },
        lambda: {"x": ramp(8, 8), "y": noise(8, 8)},
        lambda x, y: {"y": 2 * (2 * y + np.where(np.arange(8)[:, None] < 4, x, 0))},
        common=KERNELS,
    ),
]


@pytest.mark.parametrize(("example", "form"), text_params(EXAMPLES))
def test_round_trips(example, form):
    check_round_trips(example.parse(form))


@pytest.mark.parametrize(("example", "form"), text_params([e for e in EXAMPLES if e.args]))
def test_values(example, form):
    check_values(example, example.parse(form))
