"""What the specifications say in words, as programs: loops, carries, task ids, views, and what leaves a scope."""

import numpy as np
import pytest
from spec_kit import BASE, Example, check_round_trips, check_values, noise, ramp, text_params, zeros


def broken_loops(n):
    """The loops of the example with breaks and continues, in Python."""
    a = b = i = 0
    while i < n:
        i += 1
        if i % 3 == 0:
            continue
        for j in range(i):
            if j == 4:
                break
            for k in range(2):
                if k + j == 2:
                    continue
                a += k + j
            b += 1
        if b > 20:
            break
    return a, b


EXAMPLES = [
    Example(
        "manual scope true deps via arrays w/ rebinding",
        {
            "written": """
            @Orchestration
            def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]], w: pl.InOut[f32[8, 8]], n: idx):
                with pl.manual_scope():
                    a = pl.array.create(2, pl.TASK_ID)
                    for i in pl.range(n):
                        y, t = pl.submit(self.fix, x, y, deps=[a])
                        a[0] = t
                        w, t2 = pl.submit(self.fix, y, w, deps=[a])
                        a[1] = t2
                    y, t3 = pl.submit(self.twice, y, deps=[a[k] for k in range(2)])
            """,
        },
        lambda: {"x": ramp(8, 8), "y": zeros(8, 8), "w": zeros(8, 8), "n": 3},
        lambda x, y, w, n: {"y": 6 * x, "w": 6 * x},
        common=BASE,
    ),
    Example(
        "swap of tensors in loop with kernels",
        {
            "written": """
            @Orchestration
            def run(self, x: pl.InOut[f32[8, 8]], y: pl.InOut[f32[8, 8]], n: idx) -> tuple[f32[8, 8], f32[8, 8]]:
                for i, (a, b) in pl.range(n, init_values=(x, y)):
                    a1 = self.fix(b, a)
                    p, q = pl.yield_(b, a1)
                p1 = self.twice(p)
                return p1, q
            """,
        },
        lambda: {"x": ramp(8, 8), "y": noise(8, 8), "n": 2},
        lambda x, y, n: {"x": 2 * (x + y), "y": y + x + y},
        common=BASE,
    ),
    Example(
        "while loop tensors read cond",
        {
            "written": """
            @Orchestration
            def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                while pl.read(y, [7, 7]) < 200.0:
                    y = self.fix(x, y)
                return y
            """,
        },
        lambda: {"x": ramp(8, 8), "y": zeros(8, 8)},
        lambda x, y: {"y": 4 * x},
        common=BASE,
    ),
    Example(
        "read after submit in host cond",
        {
            "written": """
            @Orchestration
            def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                y, t = pl.submit(self.fix, x, y)
                v = pl.tensor.read(y, [0, 5])
                if v > 4.0:
                    y, t1 = pl.submit(self.twice, y)
                else:
                    y, t1 = pl.submit(self.fix, x, y)
                pl.tensor.write(y, [0, 0], v)
                y, t2 = pl.submit(self.twice, y, deps=[t1])
                return y
            """,
        },
        lambda: {"x": ramp(8, 8), "y": zeros(8, 8)},
        lambda x, y: {"y": np.where(np.arange(64).reshape(8, 8) == 0, 10, 4 * x)},
        common=BASE,
    ),
    Example(
        "slices as views: writes via slice",
        {
            "written": """
            @InCore
            def row(self, x: f32[1, 8], y: pl.Out[f32[1, 8]]) -> f32[1, 8]:
                return pl.store(pl.mul(pl.load(x, [0, 0], [1, 8]), 3.0), [0, 0], y)
            @Orchestration
            def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                for i in pl.parallel(8):
                    src = x[i:i+1, :]
                    dst = pl.slice(y, [1, 8], [7 - i, 0])
                    dst = self.row(src, dst)
                y = self.fix(x, y)
                return y
            """,
        },
        lambda: {"x": ramp(8, 8), "y": zeros(8, 8)},
        lambda x, y: {"y": x + 3 * x[::-1]},
        common=BASE,
    ),
    Example(
        "reshape transposed views",
        {
            "written": """
            @InCore
            def cp(self, x: f32[4, 16], y: pl.Out[f32[4, 16]]) -> f32[4, 16]:
                return pl.store(pl.load(x, [0, 0], [4, 16]), [0, 0], y)
            @Orchestration
            def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                a = pl.reshape(x, [4, 16])
                b = pl.reshape(y, [4, 16])
                b1 = self.cp(a, b)
                y = self.twice(y)
                return y
            """,
        },
        lambda: {"x": ramp(8, 8), "y": zeros(8, 8)},
        lambda x, y: {"y": 2 * x},
        common=BASE,
    ),
    Example(
        "task_is_valid",
        {
            "written": """
            @Orchestration
            def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]], n: idx) -> f32[8, 8]:
                t = None
                for i in pl.range(n):
                    if pl.system.task_is_valid(t):
                        y, t = pl.submit(self.twice, y, deps=[t])
                    else:
                        y, t = pl.submit(self.fix, x, y)
                return y
            """,
        },
        lambda: {"x": ramp(8, 8), "y": zeros(8, 8), "n": 3},
        lambda x, y, n: {"y": 4 * x},
        common=BASE,
    ),
    Example(
        "opaque calls opaque w/ scopes",
        {
            "written": """
            @Opaque
            def inner(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                with pl.at(level=pl.Level.CORE_GROUP):
                    y = pl.assemble(y, pl.add(x, y), [0, 0])
                return y
            @Orchestration
            def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                y = self.inner(x, y)
                y = self.inner(x, y)
                y = self.twice(y)
                return y
            """,
        },
        lambda: {"x": ramp(8, 8), "y": zeros(8, 8)},
        lambda x, y: {"y": 4 * x},
        common=BASE,
    ),
    Example(
        "early return-ish branch results",
        {
            "written": """
            @Orchestration
            def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]], n: idx) -> f32[8, 8]:
                if n > 2:
                    y = self.twice(y)
                    return y
                y = self.fix(x, y)
                return y
            """,
        },
        lambda: {"x": ramp(8, 8), "y": noise(8, 8), "n": 3},
        lambda x, y, n: {"y": 2 * y},
        common=BASE,
    ),
    Example(
        "spmd scope with local carried & names leak",
        {
            "written": """
            @Opaque
            def run(self, x: f32[64, 8], y: pl.InOut[f32[8, 8]], z: pl.InOut[f32[64, 8]]) -> f32[8, 8]:
                for b in pl.spmd(8):
                    acc = pl.create_tile([1, 8], pl.FP32, target_memory=pl.Mem.Vec)
                    acc = pl.mul(pl.load(x, [b * 8, 0], [1, 8]), 0.0)
                    for j in pl.range(8):
                        acc = pl.add(acc, pl.load(x, [b * 8 + j, 0], [1, 8]))
                    y = pl.store(acc, [b, 0], y)
                    z[b * 8 : b * 8 + 8, :] = pl.mul(x[b * 8 : b * 8 + 8, :], 2.0)
                return y
            """,
        },
        lambda: {"x": ramp(64, 8), "y": zeros(8, 8), "z": zeros(64, 8)},
        lambda x, y, z: {"y": x.reshape(8, 8, 8).sum(1), "z": 2 * x},
        common=BASE,
    ),
    Example(
        "rotation of three",
        {
            "written": """
            @Orchestration
            def run(self, a0: pl.InOut[f32[8, 8]], b0: pl.InOut[f32[8, 8]], c0: pl.InOut[f32[8, 8]], o: pl.InOut[f32[8,8]], n: idx):
                for i, (a, b, c) in pl.range(n, init_values=(a0, b0, c0)):
                    a1 = self.twice(a)
                    a2, b2, c2 = pl.yield_(b, c, a1)
                o1 = self.fix(a2, o)
            """,
        },
        lambda: {"a0": ramp(8, 8), "b0": noise(8, 8), "c0": noise(8, 8, seed=2), "o": zeros(8, 8), "n": 4},
        lambda a0, b0, c0, o, n: {"a0": 4 * a0, "b0": 2 * b0, "c0": 2 * c0, "o": 2 * b0},
        common=BASE,
    ),
    Example(
        "nested rebind",
        {
            "written": """
            @InCore
            def plus(self, cur: f32[8, 8], nxt: pl.Out[f32[8, 8]]) -> f32[8, 8]:
                n1 = pl.store(pl.add(pl.load(cur, [0, 0], [8, 8]), 1.0), [0, 0], nxt)
                return nxt
            @Orchestration
            def run(self, x: f32[8, 8], o: pl.InOut[f32[8,8]]):
                cur = x
                for i in pl.range(3):
                    for j in pl.range(2):
                        t = pl.create_tensor([8, 8], dtype=pl.FP32)
                        t2 = self.plus(cur, t)
                        cur = t2
                o = self.fix(cur, o)
            """,
        },
        lambda: {"x": ramp(8, 8), "o": zeros(8, 8)},
        lambda x, o: {"o": x + 6},
        common=BASE,
    ),
    Example(
        "scopes deferred: leaks in loops and branches",
        {
            "written": """
            @Orchestration
            def run(self, x: f32[8, 8], o: pl.InOut[f32[8,8]], n: idx):
                acc = x
                for i in pl.range(n):
                    with pl.at(level=pl.Level.CORE_GROUP):
                        t = pl.add(acc, 1.0)
                    if i > 1:
                        with pl.at(level=pl.Level.CORE_GROUP):
                            acc = pl.mul(t, 2.0)
                    else:
                        acc = t
                o = self.fix(acc, o)
            """,
        },
        lambda: {"x": ramp(8, 8), "o": zeros(8, 8), "n": 4},
        lambda x, o, n: {"o": ((x + 3) * 2 + 1) * 2},
        common=BASE,
    ),
    Example(
        "scope with scalar leak",
        {
            "written": """
            @Orchestration
            def run(self, x: f32[8, 8], o: pl.InOut[f32[8,8]], n: idx):
                with pl.at(level=pl.Level.CORE_GROUP):
                    k = n * 2
                    t = pl.slice(x, [1, 8], [k, 0])
                    o = pl.assemble(o, t, [k, 0])
                o = self.part(x, k - 1, o)
            """,
        },
        lambda: {"x": ramp(8, 8), "o": zeros(8, 8), "n": 2},
        lambda x, o, n: {"o": np.where(np.arange(8)[:, None] == 4, x, np.where(np.arange(8)[:, None] == 3, x + 1, 0))},
        common=BASE,
    ),
    Example(
        "while with scope + carried tensor read",
        {
            "written": """
            @Opaque
            def run(self, x: f32[8, 8], o: pl.InOut[f32[8,8]], n: idx):
                i = 0
                while i < n:
                    with pl.at(level=pl.Level.CORE_GROUP) as t:
                        o[i : i + 1, :] = pl.add(x[i : i + 1, :], o[i : i + 1, :])
                    with pl.at(level=pl.Level.CORE_GROUP, deps=[t]):
                        o = pl.assemble(o, pl.mul(o, 2.0), [0, 0])
                    i = i + 1
            """,
        },
        lambda: {"x": ramp(8, 8), "o": zeros(8, 8), "n": 3},
        lambda x, o, n: {"o": np.stack([x[0] * 8, x[1] * 4, x[2] * 2] + [np.zeros(8)] * 5)},
        common=BASE,
    ),
    Example(
        "omitted outputs multi",
        {
            "written": """
            @InCore
            def two(self, x: f32[8, 8], p: pl.Out[f32[8, 8]], q: pl.Out[f32[4, 8]]) -> tuple[f32[8, 8], f32[4, 8]]:
                t = pl.load(x, [0, 0], [8, 8])
                p1 = pl.store(pl.mul(t, 3.0), [0, 0], p)
                q1 = pl.store(pl.load(x, [4, 0], [4, 8]), [0, 0], q)
                return p1, q1
            @Orchestration
            def run(self, x: f32[8, 8], o: pl.InOut[f32[8,8]]):
                (a, b), t = pl.submit(self.two, x)
                o, t1 = pl.submit(self.fix, a, o)
                v = pl.slice(o, [4, 8], [4, 0])
                (c, d), t2 = pl.submit(self.two, o, a, v, deps=[t1])
                o, t3 = pl.submit(self.fix, c, o)
            """,
        },
        lambda: {"x": ramp(8, 8), "o": zeros(8, 8)},
        lambda x, o: {"o": 3 * x + 9 * x + 0},
        common=BASE,
    ),
    Example(
        "desc loop w/ break continue",
        {
            "written": """
            @Opaque
            def run(self, n: idx, k: idx) -> tuple[idx, idx]:
                s = 0
                last = -1
                for i in pl.range(n, -3, -2):
                    if i == k:
                        continue
                    if i < 0:
                        break
                    s = s + i
                    last = i
                return s, last
            """,
        },
        lambda: {"n": 9, "k": 5},
        lambda n, k: {"return": (9 + 7 + 3 + 1, 1)},
    ),
    Example(
        "nested b/c 2",
        {
            "written": """
            @Opaque
            def run(self, n: idx) -> tuple[idx, idx]:
                a = 0
                b = 0
                i = 0
                while i < n:
                    i = i + 1
                    if i % 3 == 0:
                        continue
                    for j in pl.range(i):
                        if j == 4:
                            break
                        for k in pl.range(2):
                            if k + j == 2:
                                continue
                            a = a + k + j
                        b = b + 1
                    if b > 20:
                        break
                return a, b
            """,
        },
        lambda: {"n": 30},
        lambda n: {"return": broken_loops(n)},
    ),
    Example(
        "explicit carries with continue",
        {
            "written": """
            @Opaque
            def run(self, n: idx) -> tuple[idx, idx]:
                for i, (s, p) in pl.range(n, init_values=(0, 1)):
                    if i % 2 == 0:
                        continue
                    s1 = s + i
                    p1 = p * 2
                    s2, p2 = pl.yield_(s1, p1)
                return s2, p2
            """,
        },
        lambda: {"n": 7},
        lambda n: {"return": (1 + 3 + 5, 8)},
    ),
    Example(
        "carry no yield _out",
        {
            "written": """
            @Opaque
            def run(self, n: idx, x: f32[8]) -> f32[8]:
                for i, (s,) in pl.range(n, init_values=(x,)):
                    s = pl.add(s, 1.0)
                return s_out
            """,
        },
        lambda: {"n": 7, "x": ramp(8)},
        lambda n, x: {"return": x + 7},
    ),
    Example(
        "graph fn",
        {
            "written": """
            @Graph
            def g(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                y = self.fix(x, y)
                y, t = pl.submit(self.twice, y)
                return y
            @Orchestration
            def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                y, tid = pl.submit(self.g, x, y)
                y = self.g(x, y)
                y, t2 = pl.submit(self.twice, y, deps=[tid])
                return y
            """,
        },
        lambda: {"x": ramp(8, 8), "y": zeros(8, 8)},
        lambda x, y: {"y": 12 * x},
        common=BASE,
    ),
    Example(
        "no_dep parallel writes disjoint",
        {
            "written": """
            @Orchestration
            def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
                tids = pl.array.create(8, pl.TASK_ID)
                for i in pl.parallel(8):
                    y1, t = pl.submit(self.part, x, i, pl.no_dep(y))
                    tids[i] = t
                y2, t2 = pl.submit(self.twice, y, deps=[tids])
                return y2
            """,
        },
        lambda: {"x": ramp(8, 8), "y": zeros(8, 8)},
        lambda x, y: {"y": 2 * (x + 1)},
        common=BASE,
    ),
    Example(
        "inline helper returns kernel",
        {
            "written": """
            @Inline
            def helper(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]], k: idx):
                k = k + 1
                y = self.part(x, k, y)
                return y
            @Orchestration
            def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]], k: idx) -> f32[8, 8]:
                y = self.helper(x, y, k)
                self.helper(x, y, k + 1)
                y = self.part(x, k, y)
                return y
            """,
        },
        lambda: {"x": ramp(8, 8), "y": zeros(8, 8), "k": 2},
        lambda x, y, k: {"y": np.where(np.isin(np.arange(8), [2, 3, 4])[:, None], x + 1, 0)},
        common=BASE,
    ),
    Example(
        "tensor ops at orchestration/opaque",
        {
            "written": """
            @Opaque
            def run(self, x: f32[16, 64], w: f32[64, 32]) -> f32[16, 1]:
                q = pl.matmul(x, w)
                m = pl.row_max(q)
                e = pl.exp(pl.row_expand_sub(q, m))
                s = pl.row_sum(e)
                return pl.recip(s)
            """,
        },
        lambda: {"x": noise(16, 64) / 16, "w": noise(64, 32, seed=1)},
        lambda x, w: {"return": 1 / np.exp(x @ w - (x @ w).max(1, keepdims=True)).sum(1, keepdims=True)},
    ),
    *[
        Example(
            f"results of an elif, {n}",
            {
                "written": """
                @Orchestration
                def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]], n: idx, o: pl.InOut[f32[8, 8]]):
                    if n > 3:
                        a = self.fix(x, y)
                        r, k = pl.yield_(a, 1)
                    elif n > 2:
                        r, k = pl.yield_(x, 2)
                    else:
                        b = self.twice(y)
                        r, k = pl.yield_(b, n + 3)
                    o = self.part(r, k, o)
                """,
                "nested": """
                @Orchestration
                def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]], n: idx, o: pl.InOut[f32[8, 8]]):
                    if n > 3:
                        a = self.fix(x, y)
                        r, k = pl.yield_(a, 1)
                    else:
                        if n > 2:
                            q, j = pl.yield_(x, 2)
                        else:
                            b = self.twice(y)
                            q, j = pl.yield_(b, n + 3)
                        r, k = pl.yield_(q, j)
                    o = self.part(r, k, o)
                """,
            },
            lambda n=n: {"x": ramp(8, 8), "y": noise(8, 8), "n": n, "o": zeros(8, 8)},
            lambda x, y, n, o: {
                "o": np.where(
                    np.arange(8)[:, None] == (1 if n > 3 else 2 if n > 2 else n + 3),
                    (x + y if n > 3 else x if n > 2 else 2 * y) + 1,
                    0,
                )
            },
            common=BASE,
        )
        for n in (1, 3, 4)
    ],
    Example(
        "atomic adds from spmd",
        {
            "written": """
            @InCore
            def f(self, a: f32[8, 16], o: pl.InOut[f32[1, 16]]) -> f32[1, 16]:
                b = pl.tile.get_block_idx()
                t = pl.load(a, [b, 0], [1, 16])
                o1 = pl.store(t, [0, 0], o, atomic=pl.AtomicType.Add)
                return o1
            @Orchestration
            def run(self, a: f32[8, 16], o: pl.InOut[f32[1, 16]]) -> f32[1, 16]:
                o1, t = pl.spmd_submit(self.f, a, o, core_num=8)
                return o1
            """,
        },
        lambda: {"a": ramp(8, 16), "o": zeros(1, 16) + 3},
        lambda a, o: {"o": o + a.sum(0)},
    ),
    Example(
        "dyn shapes across calls incl composite",
        {
            "written": """
            @InCore
            def cat(self, a: f32[M, 8], b: f32[N, 8], o: pl.InOut[f32[M + N, 8]]) -> f32[M + N, 8]:
                m = pl.tensor.dim(a, 0)
                n = pl.tensor.dim(b, 0)
                for i, (o1,) in pl.range(m, init_values=(o,)):
                    o2 = pl.yield_(pl.store(pl.load(a, [i, 0], [1, 8]), [i, 0], o1))
                for i, (o3,) in pl.range(n, init_values=(o2,)):
                    o4 = pl.yield_(pl.store(pl.load(b, [i, 0], [1, 8]), [m + i, 0], o3))
                return o4
            @Orchestration
            def run(self, a: f32[M, 8], b: f32[N, 8], o: pl.InOut[f32[M + N, 8]], p: pl.InOut[f32[M * 2, 8]]):
                o1 = self.cat(a, b, o)
                p1 = self.cat(a, a, p)
            """,
        },
        lambda: {"a": ramp(3, 8), "b": noise(5, 8), "o": zeros(8, 8), "p": zeros(6, 8)},
        lambda a, b, o, p: {"o": np.concatenate([a, b]), "p": np.concatenate([a, a])},
    ),
    Example(
        "task array of loops with phase arrays",
        {
            "written": """
            @Orchestration
            def run(self, x: f32[8, 8], a: pl.InOut[f32[8, 8]], b: pl.InOut[f32[8, 8]], o: pl.InOut[f32[8,8]]):
                with pl.manual_scope():
                    tids = pl.array.create(4, pl.TASK_ID)
                    for p in pl.range(2):
                        for i in pl.parallel(4):
                            a1, t = pl.submit(self.part, x, i * 2 + p, a, deps=[tids[i]])
                            tids[i] = t
                    o1, u = pl.submit(self.fix, a, o, deps=[tids])
                    d = pl.system.task_dummy(deps=[u])
                    o2, u2 = pl.submit(self.twice, o1, deps=[d])
            """,
        },
        lambda: {"x": ramp(8, 8), "a": zeros(8, 8), "b": zeros(8, 8), "o": zeros(8, 8)},
        lambda x, a, b, o: {"a": x + 1, "o": 2 * (x + 1)},
        common=BASE,
    ),
]


@pytest.mark.parametrize(("example", "form"), text_params(EXAMPLES))
def test_round_trips(example, form):
    check_round_trips(example.parse(form))


@pytest.mark.parametrize(("example", "form"), text_params(EXAMPLES))
def test_values(example, form):
    check_values(example, example.parse(form), seeds=6)
