"""The fragments of the front half of the pipeline (inlining to outlining), before and after the passes."""

import numpy as np
import pytest
from spec_kit import Example, check_round_trips, check_values, noise, ramp, text_params, zeros

EXAMPLES = [
    Example(
        "an Out parameter rebound",
        {
            "written": """
            @InCore
            def widen(self, v: f32[96], dst: pl.Out[f32[96]]) -> f32[96]:
                spare = pl.mul(v, 0.5)
                dst = pl.assemble(dst, pl.add(v, 1.0), [0])
                return dst
            """,
        },
        lambda: {"v": ramp(96), "dst": zeros(96)},
        lambda v, dst: {"dst": v + 1},
    ),
    Example(
        "rows stored in a loop",
        {
            "written": """
            @Opaque
            def rows(self, src: f32[64, 16], dst: pl.Out[f32[64, 16]]) -> f32[64, 16]:
                for r in pl.range(4):
                    with pl.at(level=pl.Level.CORE_GROUP, name_hint="row"):
                        t = pl.load(src, [r * 16, 0], [16, 16])
                        pl.store(t, [r * 16, 0], dst)
                return dst
            """,
            "carried": """
            @InCore
            def row(self, src: f32[64, 16], r: idx, dst: pl.Out[f32[64, 16]]) -> f32[64, 16]:
                t = pl.load(src, [r * 16, 0], [16, 16])
                pl.store(t, [r * 16, 0], dst)
                return dst
            @Orchestration
            def rows(self, src: f32[64, 16], dst: pl.Out[f32[64, 16]]) -> f32[64, 16]:
                for r, (dst__iter_v1,) in pl.range(4, init_values=(dst,)):
                    dst__ssa_v1: f32[64, 16] = self.row(src, r, dst__iter_v1)
                    dst__rv_v2: f32[64, 16] = pl.yield_(dst__ssa_v1)
                return dst__rv_v2
            """,
            "in place": """
            @InCore
            def row(self, src: f32[64, 16], r: idx, dst: pl.Out[f32[64, 16]]) -> f32[64, 16]:
                t = pl.load(src, [r * 16, 0], [16, 16])
                pl.store(t, [r * 16, 0], dst)
                return dst
            @Orchestration
            def rows(self, src: f32[64, 16], dst: pl.Out[f32[64, 16]]) -> f32[64, 16]:
                for r in pl.range(4):
                    dst__ssa_v1 = self.row(src, r, dst)
                return dst
            """,
        },
        lambda: {"src": ramp(64, 16), "dst": zeros(64, 16)},
        lambda src, dst: {"dst": src},
    ),
    Example(
        "inline of two results",
        {
            "before": """
            @Inline
            def sum_diff(self, p: f32[40], q: f32[40]):
                up = pl.add(p, q)
                dn = pl.sub(p, q)
                return up, dn
            @Opaque
            def run(self, a: f32[40], b: f32[40]) -> f32[40]:
                h, l = self.sum_diff(a, b)
                return pl.mul(h, l)
            """,
            "after": """
            @Opaque
            def run(self, a: f32[40], b: f32[40]) -> f32[40]:
                up_inline0 = pl.tensor.add(a, b)
                dn_inline1 = pl.tensor.sub(a, b)
                h = up_inline0
                l = dn_inline1
                return pl.tensor.mul(h, l)
            """,
        },
        lambda: {"a": ramp(40), "b": noise(40)},
        lambda a, b: {"return": (a + b) * (a - b)},
    ),
    Example(
        "inline takes scalars by value",
        {
            "before": """
            @Inline
            def shift(self, v: f32[64], base: idx):
                base = base + 8
                return pl.slice(v, [8], [base])
            @Opaque
            def run(self, v: f32[64], base: idx) -> tuple[f32[8], f32[8]]:
                s = self.shift(v, base)
                t = pl.slice(v, [8], [base])
                return s, t
            """,
            "after": """
            @Opaque
            def run(self, v: f32[64], base: idx) -> tuple[f32[8], f32[8]]:
                base_inline0 = base
                base_inline0 = base_inline0 + 8
                s = pl.tensor.slice(v, [8], [base_inline0])
                t = pl.tensor.slice(v, [8], [base])
                return s, t
            """,
        },
        lambda: {"v": ramp(64), "base": 24},
        lambda v, base: {"return": (v[32:40], v[24:32])},
    ),
    Example(
        "unrolling down",
        {
            "before": """
            @Opaque
            def run(self, v: f32[48], a: f32[8]) -> f32[8]:
                acc = a
                for c in pl.unroll(5, -1, -3):
                    part = pl.slice(v, [8], [c * 8])
                    acc = pl.add(acc, part)
                return acc
            """,
            "after": """
            @Opaque
            def run(self, v: f32[48], a: f32[8]) -> f32[8]:
                acc = a
                part = pl.tensor.slice(v, [8], [40])
                acc = pl.tensor.add(acc, part)
                part = pl.tensor.slice(v, [8], [16])
                acc = pl.tensor.add(acc, part)
                return acc
            """,
        },
        lambda: {"v": ramp(48), "a": noise(8)},
        lambda v, a: {"return": a + v[40:48] + v[16:24]},
    ),
    Example(
        "unrolling nested",
        {
            "before": """
            @Opaque
            def run(self, v: f32[12], a: f32[1]) -> f32[1]:
                acc = a
                for r in pl.unroll(2):
                    for c in pl.unroll(0, 6, 3):
                        acc = pl.add(acc, pl.slice(v, [1], [r * 6 + c]))
                return acc
            """,
            "after": """
            @Opaque
            def run(self, v: f32[12], a: f32[1]) -> f32[1]:
                acc = a
                acc = pl.add(acc, pl.slice(v, [1], [0]))
                acc = pl.add(acc, pl.slice(v, [1], [3]))
                acc = pl.add(acc, pl.slice(v, [1], [6]))
                acc = pl.add(acc, pl.slice(v, [1], [9]))
                return acc
            """,
        },
        lambda: {"v": ramp(12), "a": noise(1)},
        lambda v, a: {"return": a + v[0] + v[3] + v[6] + v[9]},
    ),
    Example(
        "break becomes a flag",
        {
            "before": """
            @Opaque
            def run(self, lo: idx, hi: idx, lim: idx) -> idx:
                s = 0
                for i in pl.range(lo, hi, 3):
                    s = s + 1
                    if i >= lim:
                        break
                    s = s + i * 10
                return s
            """,
            "after": """
            @Opaque
            def run(self, lo: idx, hi: idx, lim: idx) -> idx:
                s: idx = 0
                i__idx_v1: idx = lo
                break__tmp_v0: pl.Scalar[pl.BOOL] = False
                while i__idx_v1 < hi and not break__tmp_v0:
                    s = s + 1
                    if i__idx_v1 >= lim:
                        break__tmp_v0 = True
                        pl.yield_()
                    else:
                        s = s + i__idx_v1 * 10
                        pl.yield_()
                    if not break__tmp_v0:
                        i__idx_v1 = i__idx_v1 + 3
                return s
            """,
            "plain": """
            @Opaque
            def run(self, lo: idx, hi: idx, lim: idx) -> idx:
                s: idx = 0
                i__idx_v1: idx = lo
                break__tmp_v0: pl.Scalar[pl.BOOL] = False
                while i__idx_v1 < hi and not break__tmp_v0:
                    s = s + 1
                    if i__idx_v1 >= lim:
                        break__tmp_v0 = True
                    else:
                        s = s + i__idx_v1 * 10
                    if not break__tmp_v0:
                        i__idx_v1 = i__idx_v1 + 3
                return s
            """,
        },
        lambda: {"lo": 1, "hi": 20, "lim": 7},
        lambda lo, hi, lim: {"return": 1 + 10 + 1 + 40 + 1},
    ),
    Example(
        "continue becomes a branch",
        {
            "before": """
            @Opaque
            def run(self, n: idx, skip: idx) -> tuple[idx, idx]:
                acc = 0
                cnt = 0
                for r in pl.range(n):
                    if r == skip:
                        cnt = cnt + 1
                        continue
                    acc = acc + r
                return acc, cnt
            """,
            "after": """
            @Opaque
            def run(self, n: idx, skip: idx) -> tuple[idx, idx]:
                acc = 0
                cnt = 0
                for r in pl.range(n):
                    if r == skip:
                        cnt = cnt + 1
                    else:
                        acc = acc + r
                return acc, cnt
            """,
        },
        lambda: {"n": 6, "skip": 4},
        lambda n, skip: {"return": (11, 1)},
    ),
    Example(
        "break in an explicit loop",
        {
            "before": """
            @Opaque
            def run(self, n: idx, z: idx, lim: idx) -> idx:
                for i, (s,) in pl.range(n, init_values=(z,)):
                    s1 = s + 1
                    if i > 2:
                        if i == lim:
                            break
                    s2 = s1 + i
                    r = pl.yield_(s2)
                return r
            """,
            "after": """
            @Opaque
            def run(self, n: idx, z: idx, lim: idx) -> idx:
                i__idx_v1: idx = 0
                break__tmp_v0: pl.Scalar[pl.BOOL] = False
                for (s,) in pl.while_(init_values=(z,)):
                    pl.cond(i__idx_v1 < n and not break__tmp_v0)
                    s1: idx = s + 1
                    if i__idx_v1 > 2:
                        if i__idx_v1 == lim:
                            break__tmp_v0 = True
                            s__phi_v2: idx = pl.yield_(s)
                        else:
                            s__phi_v2: idx = pl.yield_(s)
                        s__phi_v3: idx = pl.yield_(s__phi_v2)
                    else:
                        s__phi_v3: idx = pl.yield_(s)
                    if not break__tmp_v0:
                        s2: idx = s1 + i__idx_v1
                        s__phi_v4: idx = pl.yield_(s2)
                    else:
                        s__phi_v4: idx = pl.yield_(s__phi_v3)
                    if not break__tmp_v0:
                        i__idx_v1 = i__idx_v1 + 1
                    r: idx = pl.yield_(s__phi_v4)
                return r
            """,
        },
        lambda: {"n": 9, "z": 100, "lim": 5},
        lambda n, z, lim: {"return": 100 + 5 + 0 + 1 + 2 + 3 + 4},
    ),
    Example(
        "branches with named and hidden results",
        {
            "before": """
            @Opaque
            def run(self, x: f32[16], k: idx) -> tuple[f32[16], f32[16]]:
                w = pl.mul(x, 3.0)
                if k > 1:
                    w = pl.mul(x, 7.0)
                    y = pl.yield_(x)
                else:
                    y = pl.yield_(w)
                return w, y
            """,
            "after": """
            @Opaque
            def run(self, x: f32[16], k: idx) -> tuple[f32[16], f32[16]]:
                w__ssa_v0 = pl.tensor.muls(x, 3.0)
                if k > 1:
                    w__ssa_v1 = pl.tensor.muls(x, 7.0)
                    w__phi_v2, y__rv_v0 = pl.yield_(w__ssa_v1, x)
                else:
                    w__phi_v2, y__rv_v0 = pl.yield_(w__ssa_v0, w__ssa_v0)
                return w__phi_v2, y__rv_v0
            """,
        },
        lambda: {"x": ramp(16), "k": 2},
        lambda x, k: {"return": (7 * x, x)},
    ),
    Example(
        "swap in a loop",
        {
            "before": """
            @Opaque
            def run(self, n: idx, a0: f32[8], b0: f32[8]) -> tuple[f32[8], f32[8]]:
                a = a0
                b = b0
                for i in pl.range(n):
                    t = a
                    a = b
                    b = t
                return a, b
            """,
            "after": """
            @Opaque
            def run(self, n: idx, a0: f32[8], b0: f32[8]) -> tuple[f32[8], f32[8]]:
                for i__idx_v0, (a__iter_v1, b__iter_v1) in pl.range(n, init_values=(a0, b0)):
                    t__ssa_v0 = a__iter_v1
                    a__ssa_v3 = b__iter_v1
                    b__ssa_v3 = t__ssa_v0
                    a__rv_v2, b__rv_v2 = pl.yield_(a__ssa_v3, b__ssa_v3)
                return a__rv_v2, b__rv_v2
            """,
        },
        lambda: {"n": 3, "a0": ramp(8), "b0": noise(8)},
        lambda n, a0, b0: {"return": (b0, a0)},
    ),
    Example(
        "differences are signed",
        {
            "before": """
            @Opaque
            def run(self, n: idx, m: idx, x: f32[8]) -> f32[8]:
                d = n - m
                y = x
                if d >= 0:
                    y = pl.add(x, 1.0)
                return y
            """,
        },
        lambda: {"n": 3, "m": 5, "x": ramp(8)},
        lambda n, m, x: {"return": x},
    ),
    Example(
        "break leaves the one-trip loop",
        {
            "before": """
            @Opaque
            def run(self, n: idx, x: f32[8]) -> f32[8]:
                y = x
                for i in pl.range(n):
                    for j in pl.range(1):
                        if i > 3:
                            break
                        y = pl.add(y, 1.0)
                    y = pl.mul(y, 2.0)
                return y
            """,
        },
        lambda: {"n": 6, "x": ramp(8)},
        lambda n, x: {"return": ((((x + 1) * 2 + 1) * 2 + 1) * 2 + 1) * 2 * 4},
    ),
    Example(
        "dead code",
        {
            "before": """
            @Opaque
            def run(self, n: idx, x: f32[8]) -> f32[8]:
                k = 4
                half = n // 2
                for i, (y,) in pl.range(k, init_values=(x,)):
                    if i < 4:
                        y1 = pl.add(y, 1.0)
                        p = pl.yield_(y1)
                    else:
                        p = pl.yield_(y)
                    r = pl.yield_(p)
                u = pl.mul(x, 9.0)
                return r
            """,
            "after": """
            @Opaque
            def run(self, n: idx, x: f32[8]) -> f32[8]:
                for i, (y,) in pl.range(4, init_values=(x,)):
                    y1 = pl.tensor.adds(y, 1.0)
                    r = pl.yield_(y1)
                u = pl.tensor.muls(x, 9.0)
                return r
            """,
        },
        lambda: {"n": 5, "x": ramp(8)},
        lambda n, x: {"return": x + 4},
    ),
    Example(
        "ids only in deps and one-trip loops",
        {
            "before": """
            @Opaque
            def run(self, lo: idx, x: f32[8, 8], y: pl.InOut[f32[8, 8]]):
                with pl.at(level=pl.Level.CORE_GROUP) as t0:
                    y = pl.assemble(y, pl.add(x, 1.0), [0, 0])
                with pl.at(level=pl.Level.CORE_GROUP, deps=[t0]):
                    y = pl.assemble(y, pl.mul(y, 2.0), [0, 0])
                for j in pl.range(lo, lo + 1):
                    y = pl.assemble(y, pl.slice(x, [1, 8], [j, 0]), [j, 0])
                for j in pl.parallel(1):
                    y = pl.assemble(y, pl.slice(x, [1, 8], [j, 0]), [j, 0])
            """,
        },
        lambda: {"lo": 3, "x": ramp(8, 8), "y": zeros(8, 8)},
        lambda lo, x, y: {"y": np.where(np.isin(np.arange(8), [0, 3])[:, None], x, 2 * (x + 1))},
    ),
    Example(
        "a call in a while condition",
        {
            "before": """
            @Opaque
            def run(self, t: i32[16]) -> idx:
                i = 0
                while pl.read(t, [i]) > 0:
                    i = i + 1
                return i
            """,
            "after": """
            @Opaque
            def run(self, t: i32[16]) -> idx:
                i0: idx = 0
                c0 = pl.tensor.read(t, [i0])
                for (i, c) in pl.while_(init_values=(i0, c0)):
                    pl.cond(c > 0)
                    i1 = i + 1
                    c1 = pl.tensor.read(t, [i1])
                    i2, c2 = pl.yield_(i1, c1)
                return i2
            """,
        },
        lambda: {"t": np.array([3, 1, 4, 1, 5, 0, 1] + [0] * 9, np.int32)},
        lambda t: {"return": 5},
    ),
    Example(
        "nested calls",
        {
            "before": """
            @Opaque
            def run(self, a: f32[8], b: f32[8]) -> f32[8]:
                return pl.mul(pl.add(a, pl.exp(b)), pl.neg(a))
            """,
            "after": """
            @Opaque
            def run(self, a: f32[8], b: f32[8]) -> f32[8]:
                t__tmp_v0 = pl.tensor.exp(b)
                t__tmp_v1 = pl.tensor.add(a, t__tmp_v0)
                t__tmp_v2 = pl.tensor.neg(a)
                t__tmp_v3 = pl.tensor.mul(t__tmp_v1, t__tmp_v2)
                return t__tmp_v3
            """,
        },
        lambda: {"a": ramp(8), "b": noise(8)},
        lambda a, b: {"return": (a + np.exp(b)) * -a},
    ),
    Example(
        "a result seeded by an input",
        {
            "before": """
            @Opaque
            def f(self, x: f32[8], n: idx) -> f32[8]:
                with pl.at(level=pl.Level.CORE_GROUP):
                    y = x
                    for i in pl.range(n):
                        y = pl.add(y, 1.0)
                return y
            """,
            "after": """
            @InCore
            def f_incore_0(self, x: f32[8], n: idx) -> f32[8]:
                for i, (y__iter_v1,) in pl.range(n, init_values=(x,)):
                    y1 = pl.tensor.adds(y__iter_v1, 1.0)
                    y__rv_v2 = pl.yield_(y1)
                return y__rv_v2
            @Orchestration
            def f(self, x: f32[8], n: idx) -> f32[8]:
                y__rv_v2 = self.f_incore_0(x, n)
                return y__rv_v2
            """,
        },
        lambda: {"x": ramp(8), "n": 4},
        lambda x, n: {"return": x + 4},
    ),
    Example(
        "scopes with task ids",
        {
            "before": """
            @Opaque
            def run(self, src: f32[32, 32], dst: pl.Out[f32[32, 32]]) -> f32[32, 32]:
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="fill", no_dep_args=[src]) as t1:
                    a = pl.load(src, [0, 0], [16, 32])
                    dst = pl.store(a, [0, 0], dst)
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="fill", deps=[t1]):
                    b = pl.load(src, [16, 0], [16, 32])
                    dst = pl.store(b, [16, 0], dst)
                return dst
            """,
            "after": """
            @InCore
            def fill(self, src: f32[32, 32], dst: pl.Out[f32[32, 32]]) -> f32[32, 32]:
                a = pl.load(src, [0, 0], [16, 32])
                dst__ssa_v1 = pl.store(a, [0, 0], dst)
                return dst
            @InCore
            def fill_0(self, src: f32[32, 32], dst: pl.InOut[f32[32, 32]]) -> f32[32, 32]:
                b = pl.load(src, [16, 0], [16, 32])
                dst__ssa_v1 = pl.store(b, [16, 0], dst)
                return dst
            @Orchestration
            def run(self, src: f32[32, 32], dst__ssa_v0: pl.Out[f32[32, 32]]) -> f32[32, 32]:
                ret__tmp_v0 = pl.submit(self.fill, src, dst__ssa_v0, attrs={"arg_direction_overrides": [0]})
                dst__ssa_v3 = ret__tmp_v0[0]
                t1__ssa_v0 = ret__tmp_v0[1]
                ret__tmp_v1 = pl.submit(self.fill_0, src, dst__ssa_v3, deps=[t1__ssa_v0])
                dst__ssa_v4 = ret__tmp_v1[0]
                tid__ssa_v0 = ret__tmp_v1[1]
                return dst__ssa_v4
            """,
        },
        lambda: {"src": ramp(32, 32), "dst": zeros(32, 32)},
        lambda src, dst: {"dst": src},
    ),
    Example(
        "an id carried by a loop",
        {
            "before": """
            @Opaque
            def run(self, n: idx, acc: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                last = None
                for r in pl.range(n):
                    with pl.at(level=pl.Level.CORE_GROUP) as last:
                        acc = pl.assemble(acc, pl.add(acc, 1.0), [0, 0])
                with pl.at(level=pl.Level.CORE_GROUP, deps=[last]):
                    acc = pl.assemble(acc, pl.mul(acc, 2.0), [0, 0])
                return acc
            """,
            "after": """
            @InCore
            def run_incore_0(self, acc: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                acc__ssa_v1 = pl.assemble(acc, pl.add(acc, 1.0), [0, 0])
                return acc__ssa_v1
            @InCore
            def run_incore_1(self, acc: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                acc__ssa_v1 = pl.assemble(acc, pl.mul(acc, 2.0), [0, 0])
                return acc__ssa_v1
            @Orchestration
            def run(self, n: idx, acc: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                last__ssa_v0 = pl.system.task_invalid()
                for r, (acc__iter_v1, last__iter_v1) in pl.range(n, init_values=(acc, last__ssa_v0)):
                    ret__tmp_v0 = pl.submit(self.run_incore_0, acc__iter_v1)
                    acc__ssa_v2: f32[8, 8] = ret__tmp_v0[0]
                    last__ssa_v2: pl.Scalar[pl.TASK_ID] = ret__tmp_v0[1]
                    acc__rv_v3, last__rv_v3 = pl.yield_(acc__ssa_v2, last__ssa_v2)
                ret__tmp_v1 = pl.submit(self.run_incore_1, acc__rv_v3, deps=[last__rv_v3])
                acc__ssa_v4: f32[8, 8] = ret__tmp_v1[0]
                tid__ssa_v0: pl.Scalar[pl.TASK_ID] = ret__tmp_v1[1]
                return acc__ssa_v4
            """,
        },
        lambda: {"n": 3, "acc": ramp(8, 8)},
        lambda n, acc: {"acc": 2 * (acc + 3)},
    ),
    Example(
        "hierarchy scopes",
        {
            "before": """
            @Opaque
            def stage(self, x: f32[8]) -> f32[8]:
                with pl.at(level=pl.Level.HOST, role=pl.Role.Orchestrator):
                    y = pl.add(x, 4.0)
                    with pl.at(level=pl.Level.CHIP):
                        z = pl.mul(y, 0.5)
                with pl.at(level=pl.Level.CHIP_DIE, name_hint="tail"):
                    q = pl.sub(z, 1.0)
                return q
            """,
            "after": """
            @pl.function(level=pl.Level.CHIP)
            def stage_host_orch_0_chip_0(self, y: f32[8]) -> f32[8]:
                z = pl.tensor.muls(y, 0.5)
                return z
            @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
            def stage_host_orch_0(self, x: f32[8]) -> f32[8]:
                y = pl.tensor.adds(x, 4.0)
                z = self.stage_host_orch_0_chip_0(y)
                return z
            @pl.function(level=pl.Level.CHIP_DIE)
            def tail(self, z: f32[8]) -> f32[8]:
                q = pl.tensor.subs(z, 1.0)
                return q
            @Opaque
            def stage(self, x: f32[8]) -> f32[8]:
                z = self.stage_host_orch_0(x)
                q = self.tail(z)
                return q
            """,
        },
    ),
    Example(
        "two kernel scopes",
        {
            "before": """
            @Opaque
            def norm(self, v: f32[16, 64], w: f32[4], o: pl.Out[f32[8, 64]]) -> f32[8, 64]:
                with pl.at(level=pl.Level.CORE_GROUP):
                    s = pl.slice(v, [8, 64], [0, 0])
                    hi = pl.add(s, 1.0)
                    lo = pl.mul(s, 0.5)
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="mix"):
                    o = pl.assemble(o, pl.add(hi, lo), [0, 0])
                return o
            """,
            "after": """
            @InCore
            def norm_incore_0(self, v: f32[16, 64]) -> tuple[f32[8, 64], f32[8, 64]]:
                s = pl.tensor.slice(v, [8, 64], [0, 0])
                hi = pl.tensor.adds(s, 1.0)
                lo = pl.tensor.muls(s, 0.5)
                return hi, lo
            @InCore
            def mix(self, hi: f32[8, 64], lo: f32[8, 64], o: pl.Out[f32[8, 64]]) -> f32[8, 64]:
                t__tmp_v0 = pl.tensor.add(hi, lo)
                o__ssa_v1 = pl.tensor.assemble(o, t__tmp_v0, [0, 0])
                return o
            @Orchestration
            def norm(self, v: f32[16, 64], w: f32[4], o__ssa_v0: pl.Out[f32[8, 64]]) -> f32[8, 64]:
                ret__tmp_v0 = self.norm_incore_0(v)
                hi = ret__tmp_v0[0]
                lo = ret__tmp_v0[1]
                o__ssa_v2 = self.mix(hi, lo, o__ssa_v0)
                return o__ssa_v2
            """,
        },
        lambda: {"v": ramp(16, 64), "w": zeros(4), "o": zeros(8, 64)},
        lambda v, w, o: {"o": v[:8] * 1.5 + 1},
    ),
    Example(
        "a kernel scope in a carried loop",
        {
            "before": """
            @Opaque
            def f(self, acc0: f32[8, 8], x: f32[32, 8]) -> f32[8, 8]:
                for r, (acc,) in pl.range(4, init_values=(acc0,)):
                    with pl.at(level=pl.Level.CORE_GROUP):
                        acc1 = pl.add(acc, pl.slice(x, [8, 8], [r * 8, 0]))
                    out = pl.yield_(acc1)
                return out
            """,
            "after": """
            @InCore
            def f_incore_0(self, acc: f32[8, 8], x: f32[32, 8], r: idx) -> f32[8, 8]:
                acc1 = pl.add(acc, pl.slice(x, [8, 8], [r * 8, 0]))
                return acc1
            @Orchestration
            def f(self, acc0: f32[8, 8], x: f32[32, 8]) -> f32[8, 8]:
                for r, (acc,) in pl.range(4, init_values=(acc0,)):
                    acc1 = self.f_incore_0(acc, x, r)
                    out = pl.yield_(acc1)
                return out
            """,
        },
        lambda: {"acc0": noise(8, 8), "x": ramp(32, 8)},
        lambda acc0, x: {"return": acc0 + x.reshape(4, 8, 8).sum(0)},
    ),
    Example(
        "a cluster with blocks",
        {
            "before": """
            @InCore
            def halve(self, x: f32[8, 8], o: pl.Out[f32[8, 8]]) -> f32[8, 8]:
                b = pl.tile.get_block_idx()
                t = pl.load(x, [b, 0], [1, 8])
                o1 = pl.store(pl.mul(t, 0.5), [b, 0], o)
                return o1
            @Orchestration
            def run(self, n: idx, x: f32[8, 8], o0: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                with pl.cluster(name_hint="pair"):
                    with pl.spmd(n):
                        o1 = self.halve(x, o0)
                return o1
            """,
            "after": """
            @InCore
            def halve(self, x: f32[8, 8], o: pl.Out[f32[8, 8]]) -> f32[8, 8]:
                b = pl.tile.get_block_idx()
                t = pl.load(x, [b, 0], [1, 8])
                o1 = pl.store(pl.mul(t, 0.5), [b, 0], o)
                return o1
            @Group
            def pair(self, n: idx, x: f32[8, 8], o: pl.Out[f32[8, 8]]) -> f32[8, 8]:
                pl.func_attr({"spmd_unwrapped": True})
                o1 = self.halve(x, o)
                return o
            @Orchestration
            def run(self, n: idx, x: f32[8, 8], o0: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                o1 = self.pair(n, x, o0, attrs={"core_num": n})
                return o1
            """,
        },
        lambda: {"n": 5, "x": ramp(8, 8), "o0": zeros(8, 8)},
        lambda n, x, o0: {"o0": np.where(np.arange(8)[:, None] < 5, x / 2, 0)},
    ),
    Example(
        "blocks as a loop",
        {
            "before": """
            @Opaque
            def run(self, x: f32[48, 64], o: pl.Out[f32[48, 64]]) -> f32[48, 64]:
                for b in pl.spmd(6, name_hint="row"):
                    t = pl.load(x, [b * 8, 0], [8, 64])
                    o = pl.store(t, [b * 8, 0], o)
                return o
            """,
            "after": """
            @InCore
            def row(self, x: f32[48, 64], o: pl.Out[f32[48, 64]]) -> f32[48, 64]:
                b = pl.tile.get_block_idx()
                t = pl.load(x, [b * 8, 0], [8, 64])
                o1 = pl.store(t, [b * 8, 0], o)
                return o
            @Spmd
            def row_spmd(self, x: f32[48, 64], o: pl.Out[f32[48, 64]]) -> f32[48, 64]:
                o1 = self.row(x, o)
                return o
            @Orchestration
            def run(self, x: f32[48, 64], o0: pl.Out[f32[48, 64]]) -> f32[48, 64]:
                o2 = self.row_spmd(x, o0, attrs={"core_num": 6})
                return o2
            """,
        },
        lambda: {"x": ramp(48, 64), "o": zeros(48, 64)},
        lambda x, o: {"o": x},
    ),
    Example(
        "row 1: a temporary of two loops",
        {
            "before": """
            @Opaque
            def run(self, x: f32[96], p: f32[24], q: f32[24]) -> tuple[f32[24], f32[24]]:
                for a in pl.range(3):
                    off = a * 24
                    p = pl.add(p, pl.slice(x, [24], [off]))
                for a in pl.range(3):
                    off = a * 24 + 4
                    q = pl.add(q, pl.slice(x, [24], [off]))
                return p, q
            """,
        },
        lambda: {"x": ramp(96), "p": noise(24), "q": noise(24, seed=1)},
        lambda x, p, q: {"return": (p + x[:72].reshape(3, 24).sum(0), q + x[4:76].reshape(3, 24).sum(0))},
    ),
    Example(
        "row 2: a value past a continue",
        {
            "before": """
            @InCore
            def step(self, x: f32[8], r: f32[8]) -> f32[8]:
                return pl.add(x, r)
            @InCore
            def post(self, r: f32[8], out: pl.Out[f32[8]]) -> f32[8]:
                return pl.assemble(out, pl.mul(r, 2.0), [0])
            @Orchestration
            def run(self, x: f32[8], res0: f32[8], bad: idx, out: pl.Out[f32[8]]) -> f32[8]:
                res = res0
                for a in pl.range(5):
                    if a == bad:
                        continue
                    res = self.step(x, res)
                done = self.post(res, out)
                return done
            """,
        },
        lambda: {"x": ramp(8), "res0": noise(8), "bad": 2, "out": zeros(8)},
        lambda x, res0, bad, out: {"out": 2 * (res0 + 4 * x)},
    ),
    Example(
        "row 9: a width computed in a loop",
        {
            "before": """
            @Opaque
            def run(self, x: f32[80, 32], o: pl.InOut[f32[80, 32]]) -> f32[80, 32]:
                for g in pl.parallel(3):
                    wide = g * 4 + 2
                    for b in pl.spmd(wide):
                        t = pl.load(x, [b * 8, 0], [8, 32])
                        o = pl.store(t, [b * 8, 0], o)
                return o
            """,
            "after": """
            @InCore
            def f_incore_0(self, x: f32[80, 32], o: pl.Out[f32[80, 32]]) -> f32[80, 32]:
                b = pl.tile.get_block_idx()
                t = pl.load(x, [b * 8, 0], [8, 32])
                o1 = pl.store(t, [b * 8, 0], o)
                return o
            @Spmd
            def f_spmd_0(self, x: f32[80, 32], o: pl.Out[f32[80, 32]]) -> f32[80, 32]:
                o1 = self.f_incore_0(x, o)
                return o
            @Orchestration
            def run(self, x: f32[80, 32], o: pl.InOut[f32[80, 32]]) -> f32[80, 32]:
                for g, (o__iter_v1,) in pl.parallel(3, init_values=(o,)):
                    wide__ssa_v0 = g * 4 + 2
                    o__ssa_v2 = self.f_spmd_0(x, o__iter_v1, attrs={"core_num": wide__ssa_v0})
                    o__rv_v3 = pl.yield_(o__ssa_v2)
                return o__rv_v3
            """,
        },
        lambda: {"x": ramp(80, 32), "o": zeros(80, 32)},
        lambda x, o: {"o": x},
    ),
    Example(
        "row 27: a loop of no trips",
        {
            "before": """
            @Opaque
            def run(self, x: f32[8]) -> f32[8]:
                keep = x
                for a in pl.range(0):
                    keep = pl.add(keep, 1.0)
                return keep
            """,
        },
        lambda: {"x": ramp(8)},
        lambda x: {"return": x},
    ),
    *[
        Example(
            f"row 25: an id out of a branch, {flag}",
            {
                "before": """
                @Opaque
                def run(self, flag: idx, x: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                    t = None
                    if flag > 0:
                        with pl.at(level=pl.Level.CORE_GROUP) as t:
                            x = pl.assemble(x, pl.add(x, 1.0), [0, 0])
                    with pl.at(level=pl.Level.CORE_GROUP, deps=[t]):
                        x = pl.assemble(x, pl.mul(x, 3.0), [0, 0])
                    return x
                """,
                "after": """
                @InCore
                def one(self, x: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                    x__ssa_v1 = pl.assemble(x, pl.add(x, 1.0), [0, 0])
                    return x
                @InCore
                def two(self, x: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                    x__ssa_v1 = pl.assemble(x, pl.mul(x, 3.0), [0, 0])
                    return x
                @Orchestration
                def run(self, flag: idx, x: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                    t__ssa_v0 = pl.system.task_invalid()
                    if flag > 0:
                        ret__tmp_v0 = pl.submit(self.one, x)
                        x__ssa_v1: f32[8, 8] = ret__tmp_v0[0]
                        tid__ssa_v0: pl.Scalar[pl.TASK_ID] = ret__tmp_v0[1]
                        x__phi_v2, t__phi_v1 = pl.yield_(x__ssa_v1, tid__ssa_v0)
                    else:
                        x__phi_v2, t__phi_v1 = pl.yield_(x, t__ssa_v0)
                    ret__tmp_v1 = pl.submit(self.two, x__phi_v2, deps=[t__phi_v1])
                    x__ssa_v3: f32[8, 8] = ret__tmp_v1[0]
                    return x__ssa_v3
                """,
            },
            lambda flag=flag: {"flag": flag, "x": ramp(8, 8)},
            lambda flag, x: {"x": 3 * (x + flag)},
        )
        for flag in (0, 1)
    ],
    Example(
        "row 12: a yield in a runtime scope",
        {
            "before": """
            @InCore
            def step(self, x: f32[8], s: f32[8]) -> f32[8]:
                return pl.add(x, s)
            @pl.function(type=pl.FunctionType.Orchestration, auto_scope=False)
            def run(self, x: f32[8], s0: f32[8]) -> f32[8]:
                for a, (s,) in pl.range(6, init_values=(s0,)):
                    with pl.scope():
                        s1 = self.step(x, s)
                        r = pl.yield_(s1)
                return r
            """,
        },
        lambda: {"x": ramp(8), "s0": noise(8)},
        lambda x, s0: {"return": s0 + 6 * x},
    ),
]


@pytest.mark.parametrize(("example", "form"), text_params(EXAMPLES))
def test_round_trips(example, form):
    check_round_trips(example.parse(form))


@pytest.mark.parametrize(("example", "form"), text_params([e for e in EXAMPLES if e.args]))
def test_values(example, form):
    check_values(example, example.parse(form))
