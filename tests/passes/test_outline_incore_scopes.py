"""OutlineIncoreScopes: spec 04 sections 22 and 24, 06 section 2. Carries have a file of their own."""

import textwrap

import numpy as np
import pytest
from outlining_kit import apply, body_of, check_meaning, expect, incore, run_all_orders, signature_of, source
from spec_kit import noise, program_text, ramp, zeros

import pypto.language as pl
from pypto import ir
from pypto.diag.errors import InternalError
from pypto.ir.tree import free_vars, walk
from pypto.passes.errors import PassError
from pypto.passes.outline_incore_scopes import outline_incore_scopes

AT = "with pl.at(level=pl.Level.CORE_GROUP{}):"


def function(program: ir.Program, name: str = "f") -> ir.Function:
    found = program.get_function(name)
    assert found is not None
    return found


def launches(program: ir.Program, name: str = "f") -> list:
    return [
        node
        for node in walk(function(program, name).body)
        if isinstance(node, (ir.Call, ir.Submit)) and isinstance(node.op, ir.GlobalVar)
    ]


def names_of(program: ir.Program) -> list[str]:
    return [g.name for g in program.functions]


# --- results ----------------------------------------------------------------------------------------------------------


def test_needed_definitions_leave_in_order():
    text = """
    @Opaque
    def norm(self, v: f32[16, 64], w: f32[4], o: pl.Out[f32[8, 64]]) -> f32[8, 64]:
        with pl.at(level=pl.Level.CORE_GROUP):
            s = pl.slice(v, [8, 64], [0, 0])
            hi = pl.add(s, 1.0)
            lo = pl.mul(s, 0.5)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="mix"):
            o = pl.assemble(o, pl.add(hi, lo), [0, 0])
        return o
    """
    expect(
        incore(text, flatten=True),
        """
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
    )
    check_meaning(
        text,
        lambda: {"v": ramp(16, 64), "w": zeros(4), "o": zeros(8, 64)},
        lambda v, w, o: {"o": v[:8] * 1.5 + 1},
    )


def test_several_targets_are_returned_last_stored_first():
    text = """
    @Opaque
    def f(self, x: f32[8, 8], a: pl.Out[f32[8, 8]], b: pl.Out[f32[8, 8]], c: pl.Out[f32[8, 8]],
          d: pl.Out[f32[8, 8]]):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="k"):
            t = pl.load(x, [0, 0], [8, 8])
            pl.store(t, [0, 0], c)
            pl.store(t, [0, 0], a)
            pl.store(t, [0, 0], d)
            pl.store(t, [0, 0], b)
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.add(pl.load(a, [0, 0], [8, 8]), 1.0), [0, 0], a)
    """
    after = incore(text)
    last = ir.flatten_to_stmts(function(after, "k").body)[-1]
    assert [v.name_hint.partition("__")[0] for v in last.value] == ["b", "d", "a", "c"]
    unpacked = [s for s in ir.flatten_to_stmts(function(after).body) if isinstance(s.value, ir.TupleGetItemExpr)]
    assert [s.var.name_hint.partition("__")[0] for s in unpacked[:4]] == ["b", "d", "a", "c"]
    check_meaning(
        text,
        lambda: {"x": ramp(8, 8), **{name: zeros(8, 8) for name in "abcd"}},
        lambda x, a, b, c, d: {"a": x + 1, "b": x, "c": x, "d": x},
    )


def test_a_tile_whose_extent_the_scope_computes_stays_in_it():
    """The last scope gives all that it makes, but outside nobody could say what the type of this tile means."""
    text = """
    @Opaque
    def f(self, x: f32[8, 8], n: idx, o: pl.Out[f32[8, 8]]):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="k"):
            m = n % 4 + 1
            part = pl.load(x, [0, 0], [8, 8], valid_shape=[m, 8])
            pl.store(pl.add(part, 1.0), [0, 0], o)
    """
    after = incore(text)
    last = ir.flatten_to_stmts(function(after, "k").body)[-1]
    assert [v.name_hint.partition("__")[0] for v in last.value] == ["o"]
    check_meaning(
        text,
        lambda: {"x": ramp(8, 8), "n": 6, "o": zeros(8, 8)},
        lambda x, n, o: {"o": np.where(np.arange(8)[:, None] < 3, x + 1, 0)},
    )


def test_a_post_store_name_is_another_name_of_the_target():
    text = """
    @Opaque
    def f(self, x: f32[8, 8], dst: pl.Out[f32[8, 8]], o: pl.Out[f32[8, 8]]) -> f32[8, 8]:
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], dst)
        with pl.at(level=pl.Level.CORE_GROUP):
            z = pl.store(pl.add(pl.load(y, [0, 0], [8, 8]), pl.load(dst, [0, 0], [8, 8])), [0, 0], o)
        return z
    """
    after = incore(text)
    first, second = launches(after)
    assert len(function(after, "f_incore_0").return_types) == 1
    assert len(second.args) == 2, "two names, one buffer, one argument"
    check_meaning(
        text, lambda: {"x": ramp(8, 8), "dst": zeros(8, 8), "o": zeros(8, 8)}, lambda x, dst, o: {"dst": x, "o": 2 * x}
    )


def test_stores_get_names():
    after = incore(
        """
        @Opaque
        def f(self, x: f32[8, 8], dst: pl.Out[f32[8, 8]]) -> f32[8, 8]:
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [0, 0], [4, 8])
                pl.store(t, [0, 0], dst)
                # the lower half
                pl.store(t, [4, 0], dst)
                y = pl.store(t, [2, 0], dst)
            return y
        """,
        ssa=False,
    )
    expect(
        after,
        """
        @InCore
        def f_incore_0(self, x: f32[8, 8], dst: pl.Out[f32[8, 8]]) -> f32[8, 8]:
            t = pl.load(x, [0, 0], [4, 8])
            dst__store = pl.store(t, [0, 0], dst)
            dst__store_v0 = pl.store(t, [4, 0], dst)
            y = pl.store(t, [2, 0], dst)
            dst__store_v1 = y
            return dst
        @Orchestration
        def f(self, x: f32[8, 8], dst: pl.Out[f32[8, 8]]) -> f32[8, 8]:
            d1 = self.f_incore_0(x, dst)
            return d1
        """,
    )
    stmts = ir.flatten_to_stmts(function(after, "f_incore_0").body)
    assert [s.var.name_hint for s in stmts[1:5]] == ["dst__store", "dst__store_v0", "y", "dst__store_v1"]
    assert stmts[2].leading_comments == ["the lower half"]


def test_all_that_the_body_makes_leaves_if_nothing_follows():
    after = incore(
        """
        @Opaque
        def f(self, x: f32[8, 8], o: pl.Out[f32[8, 8]]):
            with pl.at(level=pl.Level.CORE_GROUP):
                k = 4
                t = pl.add(x, 1.0)
                u = pl.load(x, [k, 0], [1, 8])
                pl.store(u, [0, 0], o)
        """
    )
    assert body_of(after, "f_incore_0").splitlines()[-1].startswith("return t")
    assert [type(kind).__name__ for kind in function(after, "f_incore_0").return_types] == [
        "TensorType",
        "TileType",
        "TensorType",
    ]


@pytest.mark.parametrize("follows", ["return o", "o2 = pl.assemble(o, x, [0, 0])"])
def test_only_what_is_read_leaves_if_something_follows(follows: str):
    after = incore(
        f"""
        @Opaque
        def f(self, x: f32[8, 8], o: pl.Out[f32[8, 8]]):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.add(x, 1.0)
                u = pl.load(x, [0, 0], [1, 8])
                pl.store(u, [0, 0], o)
            {follows}
        """
    )
    assert len(function(after, "f_incore_0").return_types) == 1


def test_a_scope_without_results_is_a_statement():
    text = """
    @Opaque
    def f(self, x: f32[8, 8], n: idx) -> idx:
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [8, 8])
        return n
    """
    after = incore(text)
    first = ir.flatten_to_stmts(function(after).body)[0]
    assert isinstance(first, ir.EvalStmt) and function(after, "f_incore_0").return_types == []
    run_all_orders(after, lambda: {"x": ramp(8, 8), "n": 3}, {"return": 3})


# --- what a result is -------------------------------------------------------------------------------------------------


def test_a_loop_result_is_not_the_tensor_it_started_from():
    """04 section 22.2: the work of the loop was lost."""
    text = """
    @Opaque
    def f(self, x: f32[8], n: idx) -> f32[8]:
        with pl.at(level=pl.Level.CORE_GROUP):
            y = x
            for i in pl.range(n):
                y = pl.add(y, 1.0)
        return y
    """
    after = incore(text)
    kernel = function(after, "f_incore_0")
    result = ir.flatten_to_stmts(kernel.body)[-1].value[0]
    assert all(result is not p for p in kernel.params)
    for n in (0, 3):
        check_meaning(text, lambda n=n: {"x": ramp(8), "n": n}, lambda x, n: {"return": x + n})


def test_a_loop_that_stores_through_its_carry_gives_the_parameter():
    text = """
    @Opaque
    def f(self, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        with pl.at(level=pl.Level.CORE_GROUP):
            for i in pl.range(4):
                o = pl.store(pl.load(x, [i, 0], [1, 8]), [i, 0], o)
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.store(pl.add(pl.load(o, [0, 0], [8, 8]), 1.0), [0, 0], o)
        return o
    """
    after = incore(text)
    assert dict(signature_of(after, "f_incore_0")) == {"o": "Out", "x": "In"}
    kernel = function(after, "f_incore_0")
    assert ir.flatten_to_stmts(kernel.body)[-1].value[0] is next(p for p in kernel.params if p.name_hint[0] == "o")

    def want(x, o):
        o[:4] = x[:4]
        return {"o": o + 1}

    check_meaning(text, lambda: {"x": ramp(8, 8), "o": noise(8, 8)}, want)


@pytest.mark.parametrize("flag", [0, 1])
def test_a_branch_that_stores_or_not_gives_the_parameter_and_one_that_rebinds_does_not(flag: int):
    text = """
    @Opaque
    def f(self, flag: idx, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8]]:
        with pl.at(level=pl.Level.CORE_GROUP):
            y = x
            if flag > 0:
                o = pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], o)
                y = pl.add(x, 5.0)
        return y, o
    """
    after = incore(text)
    kernel = function(after, "f_incore_0")
    values = ir.flatten_to_stmts(kernel.body)[-1].value
    assert [any(v is p for p in kernel.params) for v in values] == [False, True]
    assert dict(signature_of(after, "f_incore_0"))["o"] == "Out"

    def want(flag, x, o):
        if flag:
            o[:4] = x[:4]
        return {"o": o, "return": (x + 5 * flag, o)}

    check_meaning(text, lambda: {"flag": flag, "x": ramp(8, 8), "o": noise(8, 8)}, want)


# --- parameters -------------------------------------------------------------------------------------------------------


def test_parameters_in_the_order_of_first_read():
    after = incore(
        """
        @Opaque
        def f(self, a: f32[8, 8], b: f32[8, 8], c: f32[8, 8], m: idx, n: idx, o: pl.Out[f32[8, 8]]) -> f32[8, 8]:
            with pl.at(level=pl.Level.CORE_GROUP):
                k = m * 2
                if k > n:
                    t = pl.load(c, [0, 0], [1, 8])
                    o1 = pl.store(t, [0, 0], o)
                else:
                    u = pl.load(a, [0, 0], [1, 8])
                    o2 = pl.store(u, [0, 0], o)
                for i in pl.range(n, m):
                    v = pl.load(b, [i, 0], [1, 8])
                    o3 = pl.store(v, [i, 0], o)
            return o
        """,
        ssa=False,
    )
    assert [name for name, _ in signature_of(after, "f_incore_0")] == ["m", "n", "c", "o", "a", "b"]


def test_a_captured_carry_is_a_parameter_its_seed_is_not():
    """04 section 28 row 20."""
    text = """
    @Opaque
    def f(self, acc0: f32[8, 8], x: f32[32, 8]) -> f32[8, 8]:
        for r, (acc,) in pl.range(4, init_values=(acc0,)):
            with pl.at(level=pl.Level.CORE_GROUP):
                acc1 = pl.add(acc, pl.slice(x, [8, 8], [r * 8, 0]))
            out = pl.yield_(acc1)
        return out
    """
    after = incore(text)
    [call] = launches(after)
    [loop] = [n for n in walk(function(after).body) if isinstance(n, ir.ForStmt)]
    assert call.args[0] is loop.iter_args[0] and len(call.args) == 3
    assert not isinstance(function(after, "f_incore_0").params[0], ir.IterArg)
    check_meaning(
        text,
        lambda: {"acc0": noise(8, 8), "x": ramp(32, 8)},
        lambda acc0, x: {"return": acc0 + x.reshape(4, 8, 8).sum(0)},
    )


def test_a_scalar_in_a_type_is_captured():
    """04 section 28 row 10: the extent of a captured tensor, of a local one, and a valid shape."""
    text = """
    @Opaque
    def f(self, x: f32[8, 8], o: pl.Out[f32[8, 8]]) -> f32[8, 8]:
        for i in pl.range(1, 3):
            n = i * 2
            w = pl.slice(x, [8, 8], [0, 0], valid_shape=[n, 8])
            with pl.at(level=pl.Level.CORE_GROUP):
                u = pl.add(w, 1.0)
                o = pl.assemble(o, u, [0, 0])
        return o
    """
    after = incore(text)
    kernel = function(after, "f_incore_0")
    assert "n" in [name for name, _ in signature_of(after, "f_incore_0")]
    inside = {id(p) for p in kernel.params}
    for param in kernel.params:
        for var in free_vars(param):
            assert id(var) in inside

    def want(x, o):
        o[:4] = x[:4] + 1
        return {"o": o}

    check_meaning(text, lambda: {"x": ramp(8, 8), "o": zeros(8, 8)}, want)


def test_symbols_of_the_signature_stay_symbols():
    text = """
    @Opaque
    def f(self, x: f32[M, 8], o: pl.Out[f32[M, 8]]) -> f32[M, 8]:
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.assemble(o, pl.add(x, 1.0), [0, 0])
        return o
    """
    after = incore(text)
    assert [name for name, _ in signature_of(after, "f_incore_0")] == ["o", "x"]
    check_meaning(text, lambda: {"x": ramp(16, 8), "o": zeros(16, 8)}, lambda x, o: {"o": x + 1})


def test_a_symbol_that_no_argument_declares_is_passed():
    text = """
    @Opaque
    def f(self, x: f32[M, 8], o: pl.Out[f32[8, 8]]) -> f32[8, 8]:
        n = pl.tensor.dim(x, 0)
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(o, [0, 0], [8, 8])
            o = pl.store(pl.add(t, pl.cast(n, pl.FP32)), [0, 0], o)
        return o
    """
    after = incore(text)
    [call] = launches(after)
    assert [arg.name_hint.partition("__")[0] for arg in call.args] == ["o", "M"], "the read of the extent is folded"
    check_meaning(text, lambda: {"x": ramp(16, 8), "o": zeros(8, 8)}, lambda x, o: {"o": o + 16})


def test_a_scalar_next_to_the_scope_stays_outside():
    """04 section 28 row 33."""
    after = incore(
        """
        @Opaque
        def f(self, x: f32[8, 8], n: idx, o: pl.Out[f32[8, 8]]) -> f32[8, 8]:
            k = n * 2 + 1
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.store(pl.load(x, [k, 0], [1, 8]), [0, 0], o)
            return o
        """
    )
    assert body_of(after, "f").splitlines()[0].startswith("k")
    assert "k" in [name for name, _ in signature_of(after, "f_incore_0")]


# --- directions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "direction"),
    [
        ("t = pl.load(o, [0, 0], [8, 8])\nx1 = pl.store(t, [0, 0], x)", "In"),
        ("pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], o)", "Out"),
        ("o1 = pl.assemble(o, pl.add(x, 1.0), [0, 0])", "Out"),
        ("t = pl.load(o, [0, 0], [8, 8])\no1 = pl.store(t, [0, 0], o)", "InOut"),
        ("pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], o)\nt = pl.load(o, [0, 0], [8, 8])", "InOut"),
        ("o1 = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], o)\nt = pl.load(o1, [0, 0], [8, 8])", "InOut"),
        ("o1 = pl.assemble(o, x, [0, 0])\nt = pl.add(o1, 1.0)\nx1 = pl.assemble(x, t, [0, 0])", "InOut"),
        ("o1 = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], o, atomic=pl.AtomicType.Add)", "InOut"),
        ("o1 = pl.assemble(o, pl.add(x, 1.0), [0, 0], atomic=pl.AtomicType.Add)", "InOut"),
        ("w = pl.slice(o, [4, 8], [0, 0])\nw1 = pl.assemble(w, pl.slice(x, [4, 8], [0, 0]), [0, 0])", "Out"),
        ("for i, (a,) in pl.range(8, init_values=(o,)):\n"
         "    a1 = pl.store(pl.load(x, [i, 0], [1, 8]), [i, 0], a)\n    a2 = pl.yield_(a1)", "Out"),
        ("for i, (a,) in pl.range(8, init_values=(o,)):\n"
         "    a1 = pl.store(pl.add(pl.load(a, [i, 0], [1, 8]), 1.0), [i, 0], a)\n    a2 = pl.yield_(a1)", "InOut"),
        ("if n > 0:\n    p = pl.yield_(o)\nelse:\n    p = pl.yield_(x)\n"
         "p1 = pl.store(pl.tile.full([8, 8], dtype=pl.FP32, value=1.0), [0, 0], p)", "Out"),
        ("pl.write(o, [0, 0], 1.0)", "Out"),
        ("self.twice(o)", "InOut"),
    ],
)  # fmt: skip
def test_directions(body: str, direction: str):
    lines = "\n            ".join(body.splitlines())
    after = incore(
        f"""
        @InCore
        def twice(self, y: pl.InOut[f32[8, 8]]):
            pl.store(pl.mul(pl.load(y, [0, 0], [8, 8]), 2.0), [0, 0], y)
        @Opaque
        def f(self, x: pl.InOut[f32[8, 8]], n: idx, o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
            with pl.at(level=pl.Level.CORE_GROUP, dumps=[o], no_dep_args=[o]):
                {lines.replace(chr(10) + "    " * 3, chr(10) + "    " * 4)}
            return o
        """,
        ssa=False,
    )
    assert dict(signature_of(after, "f_incore_0"))["o"] == direction


# --- names ------------------------------------------------------------------------------------------------------------


def scope(hint: str = "") -> str:
    named = f', name_hint="{hint}"' if hint else ""
    return (
        f"    with pl.at(level=pl.Level.CORE_GROUP{named}):\n        pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], o)\n"
    )


def test_names_count_every_scope_and_number_repeated_hints():
    text = "@Opaque\ndef f(self, x: f32[8, 8], o: pl.Out[f32[8, 8]]) -> f32[8, 8]:\n"
    text += scope() + scope("h") + scope("h") + scope() + scope("h") + "    return o\n"
    assert names_of(incore(text)) == ["f", "f_incore_0", "f_incore_3", "h", "h_0", "h_1"]


def test_a_hint_that_another_function_has():
    """04 section 28 row 22."""
    head = "@Opaque\ndef {}(self, x: f32[8, 8], o: pl.Out[f32[8, 8]]) -> f32[8, 8]:\n"
    text = head.format("a") + scope("fill") + "    return o\n"
    text += head.format("b") + scope("fill") + scope("fill") + scope("a") + "    return o\n"
    assert names_of(incore(text)) == ["a", "b", "b_a", "b_fill", "b_fill_0", "fill"]


# --- launches ---------------------------------------------------------------------------------------------------------

TASKS = """
@Opaque
def run(self, src: f32[32, 32], dst: pl.Out[f32[32, 32]]) -> f32[32, 32]:
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="fill", no_dep_args=[src]) as t1:
        a = pl.load(src, [0, 0], [16, 32])
        dst = pl.store(a, [0, 0], dst)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="fill", deps=[t1]):
        b = pl.load(src, [16, 0], [16, 32])
        dst = pl.store(b, [16, 0], dst)
    return dst
"""


def test_tasks_are_submits():
    expect(
        incore(TASKS),
        """
        @InCore
        def fill(self, src: f32[32, 32], dst: pl.Out[f32[32, 32]]) -> f32[32, 32]:
            a = pl.load(src, [0, 0], [16, 32])
            dst__ssa_v1 = pl.store(a, [0, 0], dst)
            dst__store = dst__ssa_v1
            return dst
        @InCore
        def fill_0(self, src: f32[32, 32], dst: pl.Out[f32[32, 32]]) -> f32[32, 32]:
            b = pl.load(src, [16, 0], [16, 32])
            dst__ssa_v1 = pl.store(b, [16, 0], dst)
            dst__store = dst__ssa_v1
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
    )
    check_meaning(TASKS, lambda: {"src": ramp(32, 32), "dst": zeros(32, 32)}, lambda src, dst: {"dst": src})


def test_the_fresh_task_id_and_the_tuple_have_their_names():
    assert [s.var.name_hint for s in ir.flatten_to_stmts(function(incore(TASKS), "run").body)[:-1]] == [
        "ret__tmp_v0",
        "dst__ssa_v3",
        "t1__ssa_v0",
        "ret__tmp_v1",
        "dst__ssa_v4",
        "tid__ssa_v0",
    ]


def test_a_task_without_results_gives_a_tuple_of_its_id():
    after = incore(
        """
        @Opaque
        def f(self, x: f32[8, 8], n: idx) -> idx:
            with pl.at(level=pl.Level.CORE_GROUP, allow_early_resolve=True) as t:
                a = pl.load(x, [0, 0], [8, 8])
            return n
        """
    )
    [submit] = launches(after)
    assert isinstance(submit, ir.Submit) and submit.allow_early_resolve
    assert submit.type == ir.TupleType([ir.ScalarType(pl.TASK_ID)])
    whole, task = ir.flatten_to_stmts(function(after).body)[:2]
    assert task.value.index == 0 and task.value.tuple is whole.var


def test_only_the_placeholder_of_the_scope_goes_away():
    text = """
    @Opaque
    def f(self, flag: idx, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        seed = None
        # why
        with pl.at(level=pl.Level.CORE_GROUP) as t:
            o = pl.assemble(o, x, [0, 0])
        with pl.at(level=pl.Level.CORE_GROUP, deps=[seed, t]):
            o = pl.assemble(o, pl.add(o, 1.0), [0, 0])
        return o
    """
    after = incore(text)
    nulls = [n for n in walk(function(after).body) if isinstance(n, ir.Call) and n.op.name == "system.task_invalid"]
    assert len(nulls) == 1
    commented = [s for s in ir.flatten_to_stmts(function(after).body) if s.leading_comments]
    assert [s.leading_comments for s in commented] == [["why"]] and isinstance(commented[0].value, ir.Submit)
    check_meaning(text, lambda: {"flag": 1, "x": ramp(8, 8), "o": zeros(8, 8)}, lambda flag, x, o: {"o": x + 1})


@pytest.mark.parametrize("flag", [0, 1])
def test_an_id_out_of_a_branch(flag: int):
    """04 section 28 row 25."""
    text = """
    @Opaque
    def run(self, flag: idx, x: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        t = None
        if flag > 0:
            with pl.at(level=pl.Level.CORE_GROUP) as t:
                x = pl.assemble(x, pl.add(x, 1.0), [0, 0])
        with pl.at(level=pl.Level.CORE_GROUP, deps=[t]):
            x = pl.assemble(x, pl.mul(x, 2.0), [0, 0])
        return x
    """
    check_meaning(text, lambda: {"flag": flag, "x": ramp(8, 8)}, lambda flag, x: {"x": 2 * (x + flag)})


@pytest.mark.parametrize("n", [0, 3])
def test_an_id_out_of_a_loop(n: int):
    text = """
    @Opaque
    def run(self, n: idx, acc: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        last = None
        for r in pl.range(n):
            with pl.at(level=pl.Level.CORE_GROUP) as last:
                acc = pl.assemble(acc, pl.add(acc, 1.0), [0, 0])
        with pl.at(level=pl.Level.CORE_GROUP, deps=[last]):
            acc = pl.assemble(acc, pl.mul(acc, 2.0), [0, 0])
        return acc
    """
    check_meaning(text, lambda: {"n": n, "acc": ramp(8, 8)}, lambda n, acc: {"acc": 2 * (acc + n)})


@pytest.mark.parametrize("task", ["", " as tid"])
def test_two_targets_one_of_them_no_dep_after_an_earlier_write(task: str):
    """04 section 28 rows 30 and 31: the override is found by the argument, whatever its name is by then."""
    text = f"""
    @Opaque
    def f(self, x: f32[8, 8], a: pl.Out[f32[8, 8]], b: pl.Out[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8]]:
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], b)
        with pl.at(level=pl.Level.CORE_GROUP, no_dep_args=[b]){task}:
            t = pl.load(x, [4, 0], [4, 8])
            pl.store(t, [4, 0], a)
            pl.store(t, [4, 0], b)
        return a, b
    """
    after = incore(text)
    first, second = launches(after)
    assert len(function(after, "f_incore_1").return_types) == 2
    assert second.attrs["arg_direction_overrides"] == [2]
    assert second.args[2].name_hint.startswith("b__ssa")
    check_meaning(
        text,
        lambda: {"x": ramp(8, 8), "a": zeros(8, 8), "b": zeros(8, 8)},
        lambda x, a, b: {"b": x, "a": np.concatenate([a[:4], x[4:]])},
    )


def test_dumps_name_arguments_and_come_first():
    after = incore(
        """
        @Opaque
        def f(self, x: f32[8, 8], u: f32[8, 8], o: pl.Out[f32[8, 8]]) -> f32[8, 8]:
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], o)
            with pl.at(level=pl.Level.CORE_GROUP, no_dep_args=[x], dumps=[u, o]):
                pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], o)
            return o
        """
    )
    second = launches(after)[1]
    assert list(second.attrs) == ["dump_vars", "arg_direction_overrides"]
    assert len(second.attrs["dump_vars"]) == 1 and second.attrs["dump_vars"][0] is second.args[1]


def test_attributes_of_the_scope_go_to_the_kernel():
    after = incore(
        """
        @Opaque
        def f(self, x: f32[8, 8], o: pl.Out[f32[8, 8]]) -> f32[8, 8]:
            with pl.at(level=pl.Level.CORE_GROUP, windowize=True,
                       optimizations=[pl.split(pl.SplitMode.UP_DOWN), pl.cross_core_slot(slot_num=4)]):
                o = pl.assemble(o, pl.add(x, 1.0), [0, 0])
            return o
        """
    )
    kernel = function(after, "f_incore_0")
    assert dict(kernel.attrs) == {"split": 1, "slot_num": 4, "windowize": True}
    assert kernel.level is ir.Level.CHIP_DIE and kernel.role is ir.Role.SubWorker


def test_split_regions_mark_the_kernel():
    after = incore(
        """
        @Opaque
        def f(self, x: f32[16, 8], o: pl.Out[f32[16, 8]]) -> f32[16, 8]:
            with pl.at(level=pl.Level.CORE_GROUP):
                for aiv in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
                    t = pl.load(x, [aiv * 8, 0], [8, 8])
                    pl.store(t, [aiv * 8, 0], o)
            return o
        """
    )
    assert dict(function(after, "f_incore_0").attrs) == {"split_aiv": True, "split": 1}


# --- promotion --------------------------------------------------------------------------------------------------------


def test_a_function_with_scopes_becomes_an_orchestration():
    program = source(
        """
        @Opaque
        def f(self, x: f32[8, 8], o: pl.Out[f32[8, 8]]) -> f32[8, 8]:
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.assemble(o, x, [0, 0])
            return o
        @Opaque
        def g(self, n: idx) -> idx:
            return n
        """
    )
    after = apply(outline_incore_scopes, program)
    f = function(after)
    assert (f.func_type, f.level, f.role) == (ir.FunctionType.Orchestration, ir.Level.CHIP, ir.Role.Orchestrator)
    assert function(after, "g") is function(program, "g")


def test_reads_of_declared_extents_are_folded():
    text = """
    @Opaque
    def f(self, x: f32[M, 8], axis: idx, o: pl.InOut[f32[M, 8]]) -> f32[M, 8]:
        n = pl.tensor.dim(x, 0)
        m = n
        c = pl.tensor.dim(x, 1)
        for i in pl.range(m // 8):
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.store(pl.add(pl.load(x, [i * c, 0], [8, 8]), pl.cast(n, pl.FP32)), [i * 8, 0], o)
        k = pl.tensor.dim(o, -2)
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.store(pl.load(x, [k - 8, 0], [8, 8]), [k - 8, 0], o)
        return o
    """
    after = incore(text)
    lines = body_of(after, "f").splitlines()
    assert lines[0].startswith("c") and "dim" in lines[0], "constant extents are left alone"
    assert sum("tensor.dim" in line for line in lines) == 1
    assert "pl.range(M // 8" in "\n".join(lines)

    def want(x, axis, o):
        o = x + len(x)
        o[-8:] = x[-8:]
        return {"o": o}

    check_meaning(text, lambda: {"x": ramp(24, 8), "axis": 0, "o": zeros(24, 8)}, want)


def with_dim_read(kind: ir.FunctionType) -> ir.Program:
    """``n = tensor.dim(x, 0)`` in front of a kernel scope that uses it. (The parser folds it itself.)"""
    program = source(
        """
        @Opaque
        def f(self, x: f32[M, 8], q: idx, o: pl.InOut[f32[M, 8]]) -> f32[M, 8]:
            n = q
            with pl.at(level=pl.Level.CORE_GROUP):
                o1 = pl.store(pl.load(x, [n - 8, 0], [8, 8]), [n - 8, 0], o)
            return o1
        """,
        ssa=False,
    )
    f = function(program)
    read = ir.create_op_call("tensor.dim", [f.params[0], ir.ConstInt(0, pl.INT64)], {}, ir.Span.unknown())
    stmts = ir.flatten_to_stmts(f.body)
    body = ir.SeqStmts([ir.AssignStmt(stmts[0].var, read, stmts[0].span), *stmts[1:]], f.body.span)
    return program.with_functions([f.replace(body=body, func_type=kind)])


def test_with_promotion_the_read_of_a_declared_extent_is_folded():
    after = apply(outline_incore_scopes, with_dim_read(ir.FunctionType.Opaque))
    assert "tensor.dim" not in body_of(after, "f")
    [call] = launches(after)
    assert [arg.name_hint for arg in call.args] == ["x", "M", "o"]
    kernel = function(after, "f_incore_0")
    assert [p.name_hint for p in kernel.params] == ["x", "n", "o"], "the kernel is as it was"


def test_without_promotion_nothing_is_folded():
    program = with_dim_read(ir.FunctionType.Orchestration)
    assert "tensor.dim" in body_of(apply(outline_incore_scopes, program), "f")


# --- scalars that leave a scope ---------------------------------------------------------------------------------------


def test_arithmetic_on_host_values_is_computed_again_outside():
    """04 section 28 row 8."""
    text = """
    @Opaque
    def f(self, x: f32[8, 8], n: idx, o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        with pl.at(level=pl.Level.CORE_GROUP):
            h = n + 1
            k = h * 2
            o = pl.store(pl.load(x, [k, 0], [1, 8]), [0, 0], o)
        for i in pl.range(k):
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.store(pl.load(x, [i, 0], [1, 8]), [i + 1, 0], o)
        return o
    """
    after = incore(text)
    assert [line.partition("__")[0] for line in body_of(after, "f").splitlines()[:3]] == ["h", "k", "o"]
    assert len(function(after, "f_incore_0").return_types) == 1

    def want(x, n, o):
        k = (n + 1) * 2
        o[0] = x[k]
        o[1 : k + 1] = x[:k]
        return {"o": o}

    check_meaning(text, lambda: {"x": ramp(8, 8), "n": 2, "o": zeros(8, 8)}, want)


def test_any_other_scalar_is_a_result():
    text = """
    @Opaque
    def f(self, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        with pl.at(level=pl.Level.CORE_GROUP):
            v = pl.read(x, [0, 3])
            k = pl.cast(v, pl.INDEX)
            o = pl.store(pl.load(x, [k, 0], [1, 8]), [0, 0], o)
        for i in pl.range(k):
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.store(pl.load(x, [i, 0], [1, 8]), [i + 1, 0], o)
        return o
    """
    after = incore(text)
    assert [type(kind).__name__ for kind in function(after, "f_incore_0").return_types] == ["ScalarType", "TensorType"]

    def want(x, o):
        o[0] = x[3]
        o[1:4] = x[:3]
        return {"o": o}

    check_meaning(text, lambda: {"x": ramp(8, 8), "o": zeros(8, 8)}, want)


# --- refusals ---------------------------------------------------------------------------------------------------------


def refused(text: str, phrase: str, line: str) -> PassError:
    program = source(text)
    with pytest.raises(PassError, match=phrase) as info:
        outline_incore_scopes()(program)
    error = info.value
    assert error.span is not None and error.hint
    assert error.code != "PT1000", "every kind of error has its code"
    assert line in program_text(textwrap.dedent(text)).splitlines()[error.span.begin_line - 1]
    return error


def test_a_no_dep_tensor_has_to_be_captured():
    refused(
        """
        @Opaque
        def f(self, x: f32[8, 8], q: f32[8, 8], o: pl.Out[f32[8, 8]]) -> f32[8, 8]:
            with pl.at(level=pl.Level.CORE_GROUP, no_dep_args=[q]):
                pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], o)
            return o
        """,
        r"pl.at\(no_dep_args=\[...\]\) references tensor 'q', which is not captured by the scope body",
        "no_dep_args=[q]",
    )


def test_nested_kernel_scopes():
    error = refused(
        """
        @Opaque
        def f(self, x: f32[8, 8], o: pl.Out[f32[8, 8]]) -> f32[8, 8]:
            with pl.at(level=pl.Level.CORE_GROUP):
                with pl.at(level=pl.Level.CORE_GROUP):
                    pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], o)
            return o
        """,
        "Nested InCore scope detected",
        "with pl.at",
    )
    assert len(error.labels) == 1


@pytest.mark.parametrize("place", ["level=pl.Level.HOST", "level=pl.Level.CHIP_DIE"])
def test_a_kernel_scope_needs_an_enclosing_chip(place: str):
    refused(
        f"""
        @pl.function({place})
        def f(self, x: f32[8, 8], o: pl.Out[f32[8, 8]]) -> f32[8, 8]:
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], o)
            return o
        """,
        "a kernel scope needs an enclosing CHIP level",
        "with pl.at",
    )


def test_a_return_that_ends_a_scope_is_put_behind_it():
    text = """
    @Opaque
    def f(self, x: f32[8]) -> f32[8]:
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.add(x, 1.0)
            return y
    """
    expect(
        incore(text),
        """
        @InCore
        def f_incore_0(self, x: f32[8]) -> f32[8]:
            y = pl.add(x, 1.0)
            return y
        @Orchestration
        def f(self, x: f32[8]) -> f32[8]:
            y = self.f_incore_0(x)
            return y
        """,
    )
    check_meaning(text, lambda: {"x": ramp(8)}, lambda x: {"return": x + 1})


def test_any_other_return_in_a_scope_is_refused():
    refused(
        """
        @Opaque
        def f(self, n: idx, x: f32[8]) -> f32[8]:
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.add(x, 1.0)
                if n > 0:
                    return x
            return y
        """,
        "a return in the middle of a scope that becomes a function",
        "return x",
    )


def test_two_ways_to_split():
    """04 section 28 row 32; the parser refuses it, too, so the program is made by hand."""
    program = source(
        """
        @Opaque
        def f(self, x: f32[16, 8], o: pl.Out[f32[16, 8]]) -> f32[16, 8]:
            with pl.at(level=pl.Level.CORE_GROUP):
                for aiv in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
                    t = pl.load(x, [aiv * 8, 0], [8, 8])
                    pl.store(t, [aiv * 8, 0], o)
            return o
        """
    )

    class Split(ir.IRMutator):
        def visit_in_core_scope_stmt(self, op):
            return op.replace(split=ir.SplitMode.LEFT_RIGHT)

    with pytest.raises(PassError, match="mutually exclusive AIV-split mechanisms"):
        outline_incore_scopes()(Split().visit_program(program))


def test_outlining_before_convert_to_ssa_is_a_bug_of_the_caller():
    from outlining_kit import parse

    program = parse(
        "@Opaque\ndef f(self, x: f32[8, 8], n: idx) -> idx:\n"
        "    with pl.at(level=pl.Level.CORE_GROUP):\n        n = n + 1\n        t = pl.load(x, [n, 0], [1, 8])\n    return n\n"
    )
    with pytest.raises(InternalError, match="ConvertToSSA"):
        outline_incore_scopes()(program)


# --- waiting tasks ----------------------------------------------------------------------------------------------------


def waiter(body: str, options: str = "", task: str = " as t", around: str = "") -> str:
    lines = textwrap.indent(textwrap.dedent(body).strip(), "        ")
    return f"""
@InCore
def helper(self, x: f32[8, 8]):
    t = pl.load(x, [0, 0], [8, 8])
@Opaque
def f(self, sig: pld.DistributedTensor[[4], pl.INT32], m: idx, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    with pl.at(level=pl.Level.CORE_GROUP{options}){task}:
{lines}
    o = pl.assemble(o, x, [0, 0])
    return o
"""


REGISTER = "pld.system.defer_wait(sig, [0], 1, cmp=pld.WaitCmp.Ge)"


def test_a_waiting_task():
    text = waiter(f"for i in pl.range(64):\n    k = i * 2\n    {REGISTER}")
    after = incore(text)
    kernel = function(after, "f_incore_0")
    assert dict(kernel.attrs) == {"deferred_completion_waiter": True} and kernel.return_types == []
    [submit] = [call for call in launches(after) if isinstance(call, ir.Submit)]
    assert submit.type == ir.TupleType([ir.ScalarType(pl.TASK_ID)])


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        (waiter(REGISTER, task=""), "a task of its own"),
        (waiter(REGISTER, options=", allow_early_resolve=True"), "can't resolve early"),
        (waiter(f"for i in pl.range(65):\n    {REGISTER}"), "at most 64 conditions, not 65"),
        (waiter(f"for i in pl.range(8):\n    for j in pl.range(9):\n        {REGISTER}"), "at most 64 conditions"),
        (waiter(f"for i in pl.range(m):\n    {REGISTER}"), "statically known positive trip count"),
        (waiter(f"for i in pl.range(0):\n    {REGISTER}"), "statically known positive trip count"),
        (waiter(f"{REGISTER}\nv = pl.read(x, [0, 0])"), "tensor read after registration"),
        (waiter(f"{REGISTER}\no = pl.assemble(o, x, [0, 0])"), "payload updates"),
        (waiter(f"{REGISTER}\nself.helper(x)"), "helper calls"),
    ],
)
def test_waiting_tasks_that_do_more(text: str, phrase: str):
    with pytest.raises(PassError, match=f"defer_wait.*{phrase}") as info:
        outline_incore_scopes()(source(text))
    assert info.value.code == "PT1074" and info.value.span is not None
