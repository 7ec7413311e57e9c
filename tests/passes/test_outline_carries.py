"""How the new name of a written tensor leaves loops and branches: spec 06 section 3, every row of 3.9."""

import numpy as np
import pytest
from outlining_kit import apply, check_meaning, expect, incore, outline, run_all_orders, source
from spec_kit import noise, ramp, zeros

from pypto import ir
from pypto.ir.tree import walk
from pypto.passes.outline_incore_scopes import outline_incore_scopes

ROWS = """
@Opaque
def f(self, src: f32[48, 32], dst: pl.Out[f32[48, 32]], done: pl.Out[f32[48, 32]]) -> f32[48, 32]:
    for r in pl.range(3):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(src, [r * 16, 0], [16, 32]), [r * 16, 0], dst)
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(dst, [r * 16, 0], [16, 32])
            pl.store(pl.exp(t), [r * 16, 0], dst)
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(dst, [0, 0], [48, 32]), [0, 0], done)
    return done
"""

# A kernel scope that adds 1 to a row of a tensor, and the kernel that it becomes.
BUMP = """\
with pl.at(level=pl.Level.CORE_GROUP):
    pl.store(pl.add(pl.load({t}, [{r}, 0], [1, 8]), {by}), [{r}, 0], {t})
"""


def bump(target: str, row: str = "0", by: str = "1.0", indent: int = 4) -> str:
    text = BUMP.format(t=target, r=row, by=by)
    return "".join(" " * indent + line + "\n" for line in text.splitlines()).rstrip()


def loops_of(program: ir.Program, name: str = "f") -> list[ir.ForStmt]:
    function = program.get_function(name)
    assert function is not None
    return [n for n in walk(function.body) if isinstance(n, (ir.ForStmt, ir.WhileStmt))]


def branches_of(program: ir.Program, name: str = "f") -> list[ir.IfStmt]:
    function = program.get_function(name)
    assert function is not None
    return [n for n in walk(function.body) if isinstance(n, ir.IfStmt)]


def test_a_loop_then_a_call():
    expect(
        incore(ROWS),
        """
        @InCore
        def f_incore_0(self, src: f32[48, 32], r: idx, dst: pl.Out[f32[48, 32]]) -> f32[48, 32]:
            dst__store = pl.store(pl.load(src, [r * 16, 0], [16, 32]), [r * 16, 0], dst)
            return dst
        @InCore
        def f_incore_1(self, dst: pl.InOut[f32[48, 32]], r: idx) -> f32[48, 32]:
            t = pl.load(dst, [r * 16, 0], [16, 32])
            dst__store = pl.store(pl.exp(t), [r * 16, 0], dst)
            return dst
        @InCore
        def f_incore_2(self, dst: f32[48, 32], done: pl.Out[f32[48, 32]]) -> f32[48, 32]:
            done__store = pl.store(pl.load(dst, [0, 0], [48, 32]), [0, 0], done)
            return done
        @Orchestration
        def f(self, src: f32[48, 32], dst: pl.Out[f32[48, 32]], done: pl.Out[f32[48, 32]]) -> f32[48, 32]:
            for r, (dst__iter_v1,) in pl.range(3, init_values=(dst,)):
                dst__ssa_v1 = self.f_incore_0(src, r, dst__iter_v1)
                dst__ssa_v2 = self.f_incore_1(dst__ssa_v1, r)
                dst__rv_v3 = pl.yield_(dst__ssa_v2)
            done__ssa_v1 = self.f_incore_2(dst__rv_v3, done)
            return done__ssa_v1
        """,
    )


def test_what_the_loop_computes():
    check_meaning(
        ROWS,
        lambda: {"src": noise(48, 32), "dst": zeros(48, 32), "done": zeros(48, 32)},
        lambda src, dst, done: {"dst": np.exp(src), "done": np.exp(src)},
    )


def test_a_loop_then_a_return():
    text = """
    @Opaque
    def f(self, src: f32[64, 16], dst: pl.Out[f32[64, 16]]) -> f32[64, 16]:
        for r in pl.range(4):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="row"):
                t = pl.load(src, [r * 16, 0], [16, 16])
                pl.store(t, [r * 16, 0], dst)
        return dst
    """
    expect(
        incore(text),
        """
        @InCore
        def row(self, src: f32[64, 16], r: idx, dst: pl.Out[f32[64, 16]]) -> f32[64, 16]:
            t = pl.load(src, [r * 16, 0], [16, 16])
            dst__store = pl.store(t, [r * 16, 0], dst)
            return dst
        @Orchestration
        def f(self, src: f32[64, 16], dst: pl.Out[f32[64, 16]]) -> f32[64, 16]:
            for r, (it,) in pl.range(4, init_values=(dst,)):
                d1 = self.row(src, r, it)
                rv = pl.yield_(d1)
            return rv
        """,
    )
    check_meaning(text, lambda: {"src": ramp(64, 16), "dst": zeros(64, 16)}, lambda src, dst: {"dst": src})


CARRIED = """
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
"""


def test_a_carry_of_the_user_is_kept_a_target_is_appended_a_scratch_is_not():
    expect(
        incore(CARRIED),
        """
        @InCore
        def f_incore_0(self, x: f32[8, 8], tmp: pl.Out[f32[8, 8]]) -> f32[8, 8]:
            tmp__store = pl.store(pl.add(pl.load(x, [0, 0], [8, 8]), 1.0), [0, 0], tmp)
            return tmp
        @InCore
        def f_incore_1(self, tmp: f32[8, 8], acc: pl.InOut[f32[8, 8]], k: idx,
                       log: pl.Out[f32[4, 8]]) -> tuple[f32[4, 8], f32[8, 8]]:
            t = pl.load(tmp, [0, 0], [8, 8])
            acc__store = pl.store(pl.add(t, pl.load(acc, [0, 0], [8, 8])), [0, 0], acc)
            log__store = pl.store(pl.load(acc, [0, 0], [1, 8]), [k, 0], log)
            return log, acc
        @Orchestration
        def f(self, x: f32[8, 8], total: pl.InOut[f32[8, 8]], log: pl.InOut[f32[4, 8]]) -> f32[8, 8]:
            for k, (acc, log__iter_v1) in pl.range(4, init_values=(total, log)):
                tmp = pl.create_tensor([8, 8], dtype=pl.FP32)
                tmp1 = self.f_incore_0(x, tmp)
                ret__tmp_v0 = self.f_incore_1(tmp1, acc, k, log__iter_v1)
                log1 = ret__tmp_v0[0]
                acc1 = ret__tmp_v0[1]
                acc_next, log__rv_v3 = pl.yield_(acc1, log1)
            return acc_next
        """,
    )
    check_meaning(
        CARRIED,
        lambda: {"x": ramp(8, 8), "total": noise(8, 8), "log": zeros(4, 8)},
        lambda x, total, log: {
            "total": total + 4 * (x + 1),
            "log": np.stack([total[0] + (k + 1) * (x[0] + 1) for k in range(4)]),
        },
    )


def test_a_target_that_an_outer_loop_carries():
    text = f"""
    @Opaque
    def f(self, x: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        for i, (acc,) in pl.range(3, init_values=(x,)):
            for j in pl.range(2):
                {bump("acc", "i + j", indent=16).lstrip()}
            res = pl.yield_(acc)
        return res
    """
    after = incore(text)
    outer, inner = loops_of(after)
    assert len(outer.iter_args) == 1 and len(inner.iter_args) == 1
    assert inner.iter_args[0].initValue is outer.iter_args[0]
    want = zeros(8, 8)
    for i in range(3):
        for j in range(2):
            want[i + j] += 1
    check_meaning(text, lambda: {"x": zeros(8, 8)}, lambda x: {"x": want})


@pytest.mark.parametrize("depth", [2, 3])
def test_nested_loops_have_one_slot_a_level(depth: int):
    lines = ["def f(self, x: pl.InOut[f32[8, 8]]) -> f32[8, 8]:"]
    for level in range(depth):
        lines.append(f"{'    ' * (level + 1)}for i{level} in pl.range(2):")
    row = " + ".join(f"i{level}" for level in range(depth))
    lines.append(bump("x", row, indent=4 * (depth + 1)))
    lines += ["    return x"]
    text = "@Opaque\n" + "\n".join(lines) + "\n"
    loops = loops_of(incore(text))
    assert [len(loop.iter_args) for loop in loops] == [1] * depth
    for outer, inner in zip(loops, loops[1:], strict=False):
        assert inner.iter_args[0].initValue is outer.iter_args[0]
        last = ir.get_last_yield_stmt(outer.body)
        assert last is not None and last.value[0] is inner.return_vars[0]
    want = zeros(8, 8)
    for trip in np.ndindex(*[2] * depth):
        want[sum(trip)] += 1
    check_meaning(text, lambda: {"x": zeros(8, 8)}, lambda x: {"x": want})


BRANCH = """
@Opaque
def g(self, flag: idx, src: f32[16, 16], dst: pl.InOut[f32[16, 16]]) -> f32[16, 16]:
    if flag > 0:
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(src, [0, 0], [16, 16]), [0, 0], dst)
    return dst
"""


def test_a_branch_without_else():
    expect(
        incore(BRANCH),
        """
        @InCore
        def g_incore_0(self, src: f32[16, 16], dst: pl.Out[f32[16, 16]]) -> f32[16, 16]:
            dst__store = pl.store(pl.load(src, [0, 0], [16, 16]), [0, 0], dst)
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
    )


@pytest.mark.parametrize("flag", [0, 1])
def test_what_the_branch_computes(flag: int):
    check_meaning(
        BRANCH,
        lambda: {"flag": flag, "src": ramp(16, 16), "dst": noise(16, 16)},
        lambda flag, src, dst: {"dst": src if flag else dst},
    )


OTHER_TARGET = f"""
@Opaque
def f(self, flag: idx, a: pl.InOut[f32[8, 8]], b: pl.InOut[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8]]:
    if flag > 0:
        {bump("a", "1", indent=8).lstrip()}
    else:
        {bump("b", "2", indent=8).lstrip()}
    return a, b
"""


def test_branches_that_write_different_targets():
    [branch] = branches_of(incore(OTHER_TARGET))
    assert len(branch.return_vars) == 2
    for body in (branch.then_body, branch.else_body):
        assert len(ir.get_last_yield_stmt(body).value) == 2


@pytest.mark.parametrize("flag", [0, 1])
def test_what_branches_that_write_different_targets_compute(flag: int):
    def want(flag, a, b):
        (a if flag else b)[1 if flag else 2] += 1
        return {"a": a, "b": b}

    check_meaning(OTHER_TARGET, lambda: {"flag": flag, "a": ramp(8, 8), "b": noise(8, 8)}, want)


def test_a_branch_in_a_loop():
    text = f"""
    @Opaque
    def f(self, x: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        for i in pl.range(6):
            if i % 2 == 0:
                {bump("x", "i", indent=16).lstrip()}
        return x
    """
    after = incore(text)
    [loop], [branch] = loops_of(after), branches_of(after)
    assert len(loop.iter_args) == 1 and len(branch.return_vars) == 1
    assert ir.get_last_yield_stmt(loop.body).value[0] is branch.return_vars[0]
    assert ir.get_last_yield_stmt(branch.else_body).value[0] is loop.iter_args[0]
    check_meaning(
        text,
        lambda: {"x": zeros(8, 8)},
        lambda x: {"x": x + np.isin(np.arange(8), [0, 2, 4])[:, None]},
    )


@pytest.mark.parametrize("flag", [0, 1])
def test_a_loop_in_a_branch_in_a_loop(flag: int):
    """04 section 28 row 29: a kernel scope in each."""
    text = f"""
    @Opaque
    def f(self, flag: idx, x: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        for i in pl.range(2):
            {bump("x", "i", indent=12).lstrip()}
            if flag > 0:
                {bump("x", "i + 2", "10.0", indent=16).lstrip()}
                for j in pl.range(3):
                    {bump("x", "j + 4", "100.0", indent=20).lstrip()}
            else:
                {bump("x", "7", "1000.0", indent=16).lstrip()}
        return x
    """

    def want(flag, x):
        for i in range(2):
            x[i] += 1
            if flag:
                x[i + 2] += 10
                x[4:7] += 100
            else:
                x[7] += 1000
        return {"x": x}

    check_meaning(text, lambda: {"flag": flag, "x": ramp(8, 8)}, want)


def test_while_carries_and_its_condition_reads_the_carry():
    text = f"""
    @Opaque
    def f(self, x: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        zero: idx = 0
        for (i,) in pl.while_(init_values=(zero,)):
            pl.cond(pl.read(x, [0, 0]) < 5.0 and i < 100)
            {bump("x", "0", indent=12).lstrip()}
            j = i + 1
            n = pl.yield_(j)
        return x
    """
    after = incore(text)
    [loop] = loops_of(after)
    assert len(loop.iter_args) == 2
    assert any(node is loop.iter_args[1] for node in walk(loop.condition))

    def want(x):
        x[0] += 5
        return {"x": x}

    check_meaning(text, lambda: {"x": zeros(8, 8)}, want)


def test_two_scopes_with_one_target_share_a_slot_and_two_targets_have_two():
    text = """
    @Opaque
    def f(self, x: f32[8, 8], a: pl.InOut[f32[8, 8]], b: pl.InOut[f32[8, 8]]):
        for i in pl.range(3):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [i, 0], [1, 8])
                pl.store(t, [i, 0], a)
                pl.store(pl.mul(t, 2.0), [i, 0], b)
            with pl.at(level=pl.Level.CORE_GROUP):
                u = pl.load(a, [i, 0], [1, 8])
                pl.store(pl.add(u, 1.0), [i, 0], a)
    """
    [loop] = loops_of(incore(text))
    assert len(loop.iter_args) == 2

    def want(x, a, b):
        a[:3], b[:3] = x[:3] + 1, x[:3] * 2
        return {"a": a, "b": b}

    check_meaning(text, lambda: {"x": ramp(8, 8), "a": noise(8, 8), "b": noise(8, 8)}, want)


@pytest.mark.parametrize("listed", ["x", "dst"])
def test_no_dep_arguments_are_carried_like_others(listed: str):
    text = f"""
    @Opaque
    def f(self, x: f32[8, 8], dst: pl.Out[f32[8, 8]]) -> f32[8, 8]:
        for i in pl.range(8):
            with pl.at(level=pl.Level.CORE_GROUP, no_dep_args=[{listed}]):
                pl.store(pl.load(x, [i, 0], [1, 8]), [i, 0], dst)
        return dst
    """
    after = incore(text)
    [loop] = loops_of(after)
    assert len(loop.iter_args) == 1
    [call] = [n for n in walk(loop.body) if isinstance(n, ir.Call) and isinstance(n.op, ir.GlobalVar)]
    assert call.attrs["arg_direction_overrides"] == [0 if listed == "x" else 2]
    assert call.args[2] is loop.iter_args[0]
    check_meaning(text, lambda: {"x": ramp(8, 8), "dst": zeros(8, 8)}, lambda x, dst: {"dst": x})


def test_task_ids_in_an_array_beside_a_written_tensor():
    text = """
    @Orchestration
    def f(self, x: f32[8, 8], dst: pl.Out[f32[8, 8]]) -> f32[8, 8]:
        ids = pl.array.create(8, pl.TASK_ID)
        for i in pl.parallel(8):
            with pl.at(level=pl.Level.CORE_GROUP) as t:
                pl.store(pl.load(x, [i, 0], [1, 8]), [i, 0], dst)
            ids[i] = t
        with pl.at(level=pl.Level.CORE_GROUP, deps=[ids]):
            pl.store(pl.add(pl.load(dst, [0, 0], [8, 8]), 1.0), [0, 0], dst)
        return dst
    """
    [loop] = loops_of(incore(text))
    assert [type(arg.type).__name__ for arg in loop.iter_args] == ["ArrayType", "TensorType"]
    check_meaning(text, lambda: {"x": ramp(8, 8), "dst": zeros(8, 8)}, lambda x, dst: {"dst": x + 1})


def test_a_scope_at_the_top_needs_no_carry():
    text = f"""
    @Opaque
    def f(self, x: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        {bump("x", "3", indent=8).lstrip()}
        return x
    """
    after = incore(text)
    assert not loops_of(after) and not branches_of(after)
    check_meaning(text, lambda: {"x": zeros(8, 8)}, lambda x: {"x": x + (np.arange(8) == 3)[:, None]})


def test_the_yield_stands_in_a_trailing_runtime_scope():
    text = f"""
    @pl.function(type=pl.FunctionType.Orchestration, auto_scope=False)
    def f(self, x: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        for i in pl.range(3):
            with pl.scope():
                {bump("x", "i", indent=16).lstrip()}
        return x
    """
    after = incore(text)
    [loop] = loops_of(after)
    assert isinstance(loop.body, ir.RuntimeScopeStmt)
    assert isinstance(ir.flatten_to_stmts(loop.body.body)[-1], ir.YieldStmt)
    check_meaning(text, lambda: {"x": zeros(8, 8)}, lambda x: {"x": x + (np.arange(8) < 3)[:, None]})


def test_a_yield_in_a_trailing_runtime_scope_is_extended():
    """04 section 28 row 12: the yield is the loop's."""
    text = f"""
    @pl.function(type=pl.FunctionType.Orchestration, auto_scope=False)
    def f(self, s0: f32[8, 8], x: pl.InOut[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8]]:
        for i, (s,) in pl.range(3, init_values=(s0,)):
            with pl.scope():
                {bump("x", "i", indent=16).lstrip()}
                with pl.at(level=pl.Level.CORE_GROUP):
                    s1 = pl.add(s, 1.0)
                r = pl.yield_(s1)
        return r, x
    """
    [loop] = loops_of(incore(text))
    assert len(ir.get_last_yield_stmt(loop.body).value) == 2
    check_meaning(
        text,
        lambda: {"s0": ramp(8, 8), "x": zeros(8, 8)},
        lambda s0, x: {"return": (s0 + 3, x + (np.arange(8) < 3)[:, None]), "x": x + (np.arange(8) < 3)[:, None]},
    )


def test_zero_trips():
    """04 section 28 row 27: the result is what the tensor was."""
    text = f"""
    @Opaque
    def f(self, n: idx, x: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        for i in pl.range(n):
            {bump("x", "i", indent=12).lstrip()}
        return x
    """
    check_meaning(text, lambda: {"n": 0, "x": ramp(8, 8)}, lambda n, x: {"x": x})


def test_the_old_name_in_front_of_a_write_is_the_carry():
    """Every mention inside the loop becomes the iter arg: also what is read before the write, and a nested seed."""
    text = f"""
    @Opaque
    def f(self, x: pl.InOut[f32[8, 8]], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        for i in pl.range(3):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(x, [i, 0], [1, 8]), [i, 0], o)
            for j in pl.range(2):
                {bump("x", "i + j", indent=16).lstrip()}
        return o
    """
    outer, inner = loops_of(incore(text))
    calls = [n for n in walk(outer.body) if isinstance(n, ir.Call) and isinstance(n.op, ir.GlobalVar)]
    carried = {arg.name_hint.partition("__")[0]: arg for arg in outer.iter_args}
    assert calls[0].args[0] is carried["x"] and inner.iter_args[0].initValue is carried["x"]

    def want(x, o):
        for i in range(3):
            o[i] = x[i]
            for j in range(2):
                x[i + j] += 1
        return {"x": x, "o": o}

    check_meaning(text, lambda: {"x": ramp(8, 8), "o": zeros(8, 8)}, want)


def test_a_long_chain_through_one_tensor_in_ssa_form():
    """04 section 28 row 21: each call gets the previous result."""
    lines = "".join(
        f"    with pl.at(level=pl.Level.CORE_GROUP):\n"
        f"        x{i + 1} = pl.store(pl.add(pl.load(x{i}, [0, 0], [8, 8]), {i}.0), [0, 0], x{i})\n"
        for i in range(12)
    )
    text = f"@Opaque\ndef f(self, x0: pl.InOut[f32[8, 8]]) -> f32[8, 8]:\n{lines}    return x12\n"
    after = incore(text, ssa=False)
    function = after.get_function("f")
    assert function is not None
    current = function.params[0]
    for stmt in ir.flatten_to_stmts(function.body)[:-1]:
        assert stmt.value.args == [current]
        current = stmt.var
    check_meaning(text, lambda: {"x0": ramp(8, 8)}, lambda x0: {"x0": x0 + 66})


def test_nothing_to_outline_is_the_same_object():
    program = source(
        """
        @InCore
        def k(self, x: f32[8, 8], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
            y1 = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], y)
            return y
        @Orchestration
        def f(self, x: f32[8, 8], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
            for i, (a,) in pl.range(3, init_values=(y,)):
                b = self.k(x, a)
                c = pl.yield_(b)
            return c
        """,
        ssa=False,
    )
    assert outline_incore_scopes()(program) is program
    assert outline(program) is program
    assert apply(outline_incore_scopes, program) is program


def test_written_twice_by_hand_in_mixed_names():
    """The old name of a tensor behind a scope that renamed it: later readers get the newest one."""
    text = """
    @Opaque
    def f(self, x: pl.InOut[f32[8, 8]], o: pl.Out[f32[8, 8]]) -> f32[8, 8]:
        with pl.at(level=pl.Level.CORE_GROUP):
            x1 = pl.store(pl.add(pl.load(x, [0, 0], [8, 8]), 1.0), [0, 0], x)
        with pl.at(level=pl.Level.CORE_GROUP):
            x2 = pl.store(pl.mul(pl.load(x1, [0, 0], [8, 8]), 2.0), [0, 0], x1)
        with pl.at(level=pl.Level.CORE_GROUP):
            o1 = pl.store(pl.add(pl.load(x, [0, 0], [8, 8]), pl.load(x2, [0, 0], [8, 8])), [0, 0], o)
        return o1
    """
    program = source(text, ssa=False)
    after = apply(outline_incore_scopes, program)
    kernel = after.get_function("f_incore_2")
    assert kernel is not None and len(kernel.params) == 2, "two names of one buffer are one argument"
    run_all_orders(after, lambda: {"x": ramp(8, 8), "o": zeros(8, 8)}, {"o": 4 * (ramp(8, 8) + 1)})
