"""The kinds of faults that users met in this half of the pipeline, one test each (spec 04, section 28).

Every program computes what NumPy or plain Python does, before the first pass and behind the last one; behind each pass
between, all properties that are expected then are verified, the meaning stays, the pass has nothing to do on its own
result, and the text comes back as the same program. Beside that stands what the passes have to make of it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from spec_kit import BASE, parse, program_text, ramp, zeros

from differential.harness import Checker
from differential.run import run
from pypto import ir
from pypto.diag.parser_errors import ParserError
from pypto.ir.names import build_name
from pypto.ir.traversal import walk
from pypto.ir.tree import get_last_yield_stmt
from pypto.passes import (
    CallbackInstrument,
    IRProperty,
    PassContext,
    PassError,
    PassManager,
    PropertyVerifierRegistry,
    VerificationError,
    convert_to_ssa,
    ctrl_flow_transform,
    flatten_call_expr,
    inline_functions,
    outline_hierarchy_scopes,
)
from pypto.verify.properties import property_set

Args = dict[str, Any]


def right(text: str, args: Callable[[], Args], want: Callable[..., Args]) -> ir.Program:
    """The program means what ``want`` says, all the way through the pipeline; gives what the pipeline makes of it.

    ``want`` gives the written parameters by name, and what is returned as ``return``.
    """
    source = parse(textwrap.dedent(text))
    wanted = want(**args())
    computes(source, args, wanted)
    fault = Checker(orders=2, round_trip=True).check(source, "run", [list(args().values())])
    assert fault is None, f"{fault}\n{fault.after}"
    after = PassManager().run_passes(source)
    computes(after, args, wanted)
    return after


def computes(program: ir.Program, args: Callable[[], Args], wanted: Args, entry: str = "run") -> None:
    """A function of a program gives these values, in the order of the text and in others."""
    given = args()
    names = list(given)
    for schedule, seed in [("submit", 0), ("random", 0), ("random", 1)]:
        outcome = run(program, entry, list(given.values()), schedule, seed)
        results = outcome[len(names) :]
        seen = dict(zip(names, outcome, strict=False))
        for name, want in wanted.items():
            if name == "return":
                pairs = zip(results, want if isinstance(want, tuple) else (want,), strict=True)
            else:
                pairs = zip([seen[name]], [want], strict=True)
            for got, value in pairs:
                np.testing.assert_allclose(got, value, rtol=1e-5, atol=1e-6, err_msg=f"{name}, {schedule} {seed}")


def through(text: str, *passes: Callable[[], Any]) -> ir.Program:
    """What these passes make of a program."""
    program = parse(textwrap.dedent(text))
    for make in passes:
        program = make()(program)
    return program


def loops(program: ir.Program, name: str = "run") -> list[Any]:
    """The loops of a function, outer ones first."""
    return [node for node in walk(program[name].body) if isinstance(node, (ir.ForStmt, ir.WhileStmt))]


def launches(program: ir.Program, name: str = "run") -> list[Any]:
    """The calls and submits of functions, in order."""
    return [
        node
        for node in walk(program[name].body)
        if isinstance(node, (ir.Call, ir.Submit)) and isinstance(node.op, ir.GlobalVar)
    ]


def ops(program: ir.Program, name: str = "run") -> list[str]:
    """The names of the operations and functions that a function calls, in order."""
    return [node.op.name for node in walk(program[name].body) if isinstance(node, (ir.Call, ir.Submit))]


def bases(variables: Any) -> list[str]:
    """What the user called these variables."""
    return [v.name_hint.partition("__")[0] for v in variables]


def refused(text: str, phrase: str, line: str, *others: str) -> PassError:
    """The pipeline refuses a program with this phrase at this line; ``others``: lines that the message points at, too."""
    source = textwrap.dedent(text)
    with pytest.raises(PassError, match=phrase) as info:
        PassManager().run_passes(parse(source))
    error = info.value
    shown = program_text(source).splitlines()
    assert error.span is not None and line in shown[error.span.begin_line - 1]
    places = [shown[span.begin_line - 1] for span, _ in error.labels]
    for other in others:
        assert any(other in place for place in places), (other, places)
    return error


# --- values that live in loops and branches ---------------------------------------------------------------------------


def test_row_1_one_temporary_name_in_two_loops():
    text = """
    @Opaque
    def run(self, x: f32[96], p: f32[24], q: f32[24]) -> tuple[f32[24], f32[24]]:
        for a in pl.range(3):
            off = a * 24
            p = pl.add(p, pl.slice(x, [24], [off]))
        for a in pl.range(3):
            off = a * 24 + 4
            q = pl.add(q, pl.slice(x, [24], [off]))
        return p, q
    """

    def want(x, p, q):
        return {"return": (sum(x[a * 24 :][:24] for a in range(3)), sum(x[a * 24 + 4 :][:24] for a in range(3)))}

    after = right(text, lambda: {"x": ramp(96), "p": zeros(24), "q": zeros(24)}, want)
    assert [bases(loop.iter_args) for loop in loops(after)] == [["p"], ["q"]]


@pytest.mark.parametrize("bad", [0, 2, 4, 9])
def test_row_2_a_value_of_the_path_without_continue(bad: int):
    text = """
    @InCore
    def step(self, x: f32[8, 8], r: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        r = pl.store(pl.add(pl.mul(pl.load(r, [0, 0], [8, 8]), 2.0), pl.load(x, [0, 0], [8, 8])), [0, 0], r)
        return r
    @Opaque
    def run(self, bad: idx, x: f32[8, 8], res0: pl.InOut[f32[8, 8]], out: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        res = res0
        for a in pl.range(5):
            if a == bad:
                continue
            res = self.step(x, res)
        done = self.step(res, out)
        return done
    """

    def want(bad, x, res0, out):
        for a in range(5):
            if a != bad:
                res0 = res0 * 2 + x
        return {"res0": res0, "out": out * 2 + res0}

    right(text, lambda: {"bad": bad, "x": ramp(8, 8), "res0": zeros(8, 8) + 1, "out": zeros(8, 8) + 3}, want)


def test_row_2_no_value_at_all_is_the_users_error():
    refused(
        """
        @InCore
        def run(self, n: idx, bad: idx) -> idx:
            for a in pl.range(n):
                if a == bad:
                    continue
                res = a * 2
            return res
        """,
        "'res' may be undefined",
        "return res",
    )


@pytest.mark.parametrize("k", [0, 1])
def test_row_3_one_name_for_values_of_different_shape(k: int):
    text = """
    @Opaque
    def run(self, k: idx, x: f32[8, 8], a: pl.InOut[f32[8, 8]], b: pl.InOut[f32[4, 8]]) -> tuple[f32[8, 8], f32[4, 8]]:
        if k > 0:
            with pl.at(level=pl.Level.CORE_GROUP):
                v = pl.add(pl.load(x, [0, 0], [8, 8]), 1.0)
                a = pl.store(v, [0, 0], a)
        else:
            with pl.at(level=pl.Level.CORE_GROUP):
                v = pl.mul(pl.load(x, [4, 0], [4, 8]), 2.0)
                b = pl.store(v, [0, 0], b)
        return a, b
    """
    after = right(
        text,
        lambda: {"k": k, "x": ramp(8, 8), "a": zeros(8, 8), "b": zeros(4, 8)},
        lambda k, x, a, b: {"a": x + 1 if k else a, "b": b if k else 2 * x[4:]},
    )
    [branch] = [node for node in walk(after["run"].body) if isinstance(node, ir.IfStmt)]
    assert bases(branch.return_vars) == ["a", "b"]


def test_row_4_suffixes_mean_nothing():
    text = """
    @Opaque
    def run(self, n: idx) -> tuple[idx, idx, idx]:
        buf = n
        buf_1 = n + 1
        buf__x = n + 2
        for i in pl.range(n):
            buf_1 = buf_1 + buf
            buf = buf + buf__x
            buf__x = buf__x + 1
        return buf, buf_1, buf__x
    """

    def want(n):
        a, b, c = n, n + 1, n + 2
        for _ in range(n):
            b, a, c = b + a, a + c, c + 1
        return {"return": (a, b, c)}

    after = right(text, lambda: {"n": 3}, want)
    assert len({arg.name_hint for arg in loops(after)[0].iter_args}) == 3 or str(after).count("buf__iter") >= 2


def test_row_4_a_generated_name_has_no_base_with_the_delimiter():
    with pytest.raises(ValueError, match="IR auto-name base cannot contain reserved delimiter '__'"):
        build_name("buf__x", role="ssa", version=0)


# Row 5, equal text of every compilation: test_whole_pipeline.py.


def test_row_6_continue_in_a_loop_with_carries():
    text = """
    @InCore
    def run(self, n: idx, skip: idx) -> idx:
        for i, (s,) in pl.range(n, init_values=(7,)):
            s1 = s + i
            if i == skip:
                continue
            s2 = s1 * 2
            r = pl.yield_(s2)
        return r
    """

    def want(n, skip):
        s = 7
        for i in range(n):
            s = s if i == skip else (s + i) * 2
        return {"return": s}

    for n, skip in ((5, 9), (5, 0), (5, 2), (5, 4), (0, 0)):
        right(text, lambda n=n, skip=skip: {"n": n, "skip": skip}, want)


@pytest.mark.parametrize(("lo", "hi", "limit"), [(9, 0, 4), (9, 0, -1), (9, 0, 9), (0, 9, 4), (9, 2, 3)])
def test_row_7_a_descending_loop_with_break(lo: int, hi: int, limit: int):
    text = """
    @InCore
    def run(self, lo: idx, hi: idx, limit: idx) -> idx:
        s = 0
        for i in pl.range(lo, hi, -2):
            if i <= limit:
                break
            s = s * 10 + i
        return s
    """

    def want(lo, hi, limit):
        s = 0
        for i in range(lo, hi, -2):
            if i <= limit:
                break
            s = s * 10 + i
        return {"return": s}

    right(text, lambda: {"lo": lo, "hi": hi, "limit": limit}, want)
    [loop] = loops(through(text, ctrl_flow_transform))
    assert isinstance(loop, ir.WhileStmt) and any(isinstance(node, ir.Gt) for node in walk(loop.condition))


# --- scalars between scopes and the code around them ------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 2])
def test_row_8_a_scalar_of_a_kernel_scope_used_after_it(n: int):
    text = """
    @Opaque
    def run(self, n: idx, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        with pl.at(level=pl.Level.CORE_GROUP):
            k = n * 2 + 1
            v = pl.cast(pl.read(x, [0, k]), pl.INDEX)
            o = pl.store(pl.load(x, [k, 0], [1, 8]), [0, 0], o)
        for i in pl.range(k):
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.store(pl.load(x, [v, 0], [1, 8]), [i + 1, 0], o)
        return o
    """

    def want(n, x, o):
        k = n * 2 + 1
        o[0] = x[k]
        o[1 : k + 1] = x[int(x[0, k])]
        return {"o": o}

    after = right(text, lambda: {"n": n, "x": ramp(8, 8) % 8, "o": zeros(8, 8)}, want)
    results = after["run_incore_0"].return_types
    assert sum(isinstance(kind, ir.ScalarType) for kind in results) == 1, "what was read is a result"
    [loop] = loops(after)
    assert any(isinstance(node, ir.Mul) for node in walk(loop.stop)) or isinstance(loop.stop, ir.Var)


def test_row_9_a_width_from_a_scalar_of_the_loop():
    text = """
    @Opaque
    def run(self, x: f32[80, 32], o: pl.InOut[f32[80, 32]]) -> f32[80, 32]:
        for g in pl.parallel(3):
            wide = g * 4 + 2
            for b in pl.spmd(wide):
                t = pl.load(x, [b * 8, 0], [8, 32])
                o = pl.store(t, [b * 8, 0], o)
        return o
    """
    after = right(text, lambda: {"x": ramp(80, 32), "o": zeros(80, 32)}, lambda x, o: {"o": x})
    [call] = launches(after)
    [loop] = loops(after)
    width = next(s for s in walk(loop.body) if isinstance(s, ir.AssignStmt) and bases([s.var]) == ["wide"])
    assert call.op.name == "run_spmd_0" and call.attrs["core_num"] is width.var
    assert "core_num" not in after["run_spmd_0"].attrs


@pytest.mark.parametrize("rows", [1, 5, 11])
def test_row_10_an_extent_in_a_type_inside_a_loop(rows: int):
    text = """
    @Opaque
    def run(self, rows: idx, x: f32[16, 8], o: pl.InOut[f32[16, 8]]) -> f32[16, 8]:
        for r in pl.range(0, rows, 4):
            left = pl.min(rows - r, 4)
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [r, 0], [4, 8], valid_shape=[left, 8])
                o = pl.store(pl.add(t, 1.0), [r, 0], o)
        return o
    """

    def want(rows, x, o):
        o[:rows] = x[:rows] + 1
        return {"o": o}

    after = right(text, lambda: {"rows": rows, "x": ramp(16, 8), "o": zeros(16, 8)}, want)
    kernel = after["run_incore_0"]
    [extent] = [p for p in kernel.params if p.name_hint.startswith("left")]
    load = next(s for s in walk(kernel.body) if isinstance(s, ir.AssignStmt) and s.value.op.name == "tile.load")
    assert load.var.type.tile_view.valid_shape[0] is extent


# --- yields -----------------------------------------------------------------------------------------------------------


def test_row_11_a_yield_in_the_middle_of_a_body():
    source = parse(
        """
        @Opaque
        def run(self, n: idx) -> idx:
            for i, (s,) in pl.range(n, init_values=(0,)):
                t = s + 1
                r = pl.yield_(t)
            return r
        """
    )
    loop, last = source["run"].body.stmts
    assign, result = loop.body.stmts
    middle = ir.YieldStmt([loop.iter_args[0]], result.span)
    early = loop.replace(body=loop.body.replace(stmts=type(loop.body.stmts)([middle, assign, result])))
    function = source["run"].replace(body=ir.SeqStmts([early, last]))
    broken = source.with_functions([function])
    found = PropertyVerifierRegistry.verify(property_set(IRProperty.SSAForm), broken)
    assert [d.error_code for d in found] == [7]
    ran: list[str] = []
    with (
        PassContext([CallbackInstrument(lambda p, _program: ran.append(p.get_name()))]),
        pytest.raises(VerificationError, match="pipeline_input") as info,
    ):
        PassManager().run_passes(broken)
    assert ran == [] and info.value.pass_name == "pipeline_input"


@pytest.mark.parametrize("n", [0, 6])
def test_row_12_the_yield_of_a_runtime_scope_is_the_loops(n: int):
    text = (
        BASE
        + """
@pl.function(auto_scope=False)
def run(self, n: idx, x: f32[8, 8], s0: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    for a, (s,) in pl.range(n, init_values=(s0,)):
        with pl.scope():
            s1 = self.fix(x, s)
            r = pl.yield_(s1)
    done = self.twice(r)
    return done
"""
    )
    after = right(
        text,
        lambda: {"n": n, "x": ramp(8, 8), "s0": zeros(8, 8) + 1},
        lambda n, x, s0: {"s0": 2 * (s0 + n * x)},
    )
    [loop] = loops(after)
    fix, twice = launches(after)
    assert len(loop.iter_args) == 1 and fix.args[1] is loop.iter_args[0] and twice.args[0] is loop.return_vars[0]


def test_row_13_calls_as_yielded_and_returned_values():
    text = """
    @Opaque
    def run(self, n: idx, x: f32[8]) -> f32[8]:
        for i, (s,) in pl.range(n, init_values=(x,)):
            r = pl.yield_(pl.add(pl.mul(s, 2.0), 1.0))
        if n > 2:
            y = pl.yield_(pl.neg(r))
        else:
            y = pl.yield_(pl.abs(r))
        return pl.add(y, pl.exp(pl.mul(x, 0.0)))
    """

    def want(n, x):
        r = x
        for _ in range(n):
            r = r * 2 + 1
        return {"return": (-r if n > 2 else np.abs(r)) + 1}

    for n in (0, 1, 4):
        after = right(text, lambda n=n: {"n": n, "x": ramp(8) - 4}, want)
    assert [op.partition(".")[2] for op in ops(after)] == ["muls", "adds", "neg", "abs", "muls", "exp", "add"]
    single = through(
        "@Opaque\ndef run(self, n: idx, x: f32[8]) -> f32[8]:\n"
        "    for i, (s,) in pl.range(n, init_values=(x,)):\n        r = pl.yield_(pl.mul(s, 2.0))\n    return r",
        convert_to_ssa,
        flatten_call_expr,
    )
    assign, result = ir.flatten_to_stmts(loops(single)[0].body)
    assert result.value == [assign.var]


def test_row_14_unused_results_go_by_identity():
    text = """
    @Opaque
    def run(self, k: idx, x: f32[8], z: f32[8]) -> f32[8]:
        if k > 1:
            a, b, c = pl.yield_(pl.mul(x, 3.0), pl.add(x, 5.0), k + 1)
        else:
            a, b, c = pl.yield_(z, pl.sub(x, 2.0), k + 2)
        return b
    """
    for k in (0, 3):
        after = right(
            text,
            lambda k=k: {"k": k, "x": ramp(8), "z": zeros(8)},
            lambda k, x, z: {"return": x + 5 if k > 1 else x - 2},
        )
    [branch] = [node for node in walk(after["run"].body) if isinstance(node, ir.IfStmt)]
    assert bases(branch.return_vars) == ["b"]
    for body, op in ((branch.then_body, "tensor.adds"), (branch.else_body, "tensor.subs")):
        stmts = ir.flatten_to_stmts(body)
        [value] = stmts[-1].value
        assert next(s for s in stmts[:-1] if s.var is value).value.op.name == op


# --- helpers that are put in place ------------------------------------------------------------------------------------


def test_row_15_a_returned_launch_of_a_helper_called_as_a_statement():
    text = f"""
{BASE}
@Inline
def relay(self, v: f32[8, 8], dst: pl.InOut[f32[8, 8]]):
    return self.fix(v, dst)
@Opaque
def run(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]):
    self.relay(x, y)
"""
    after = right(text, lambda: {"x": ramp(8, 8), "y": zeros(8, 8) + 1}, lambda x, y: {"y": x + y})
    [call] = launches(after)
    assert call.op.name == "fix"


def test_row_16_a_helper_that_assigns_its_scalar_parameter():
    text = """
    @Inline
    def shift(self, v: f32[64], base: idx):
        base = base + 8
        return pl.slice(v, [8], [base])
    @Opaque
    def run(self, v: f32[64], base: idx) -> tuple[f32[8], f32[8], idx]:
        s = self.shift(v, base)
        t = pl.slice(v, [8], [base])
        return s, t, base
    """
    right(
        text,
        lambda: {"v": ramp(64), "base": 24},
        lambda v, base: {"return": (v[base + 8 : base + 16], v[base : base + 8], base)},
    )


def test_row_17_a_helper_that_writes_in_place_makes_no_self_assignment():
    text = f"""
{BASE}
@Inline
def fill(self, v: f32[8, 8], o: pl.Out[f32[8, 8]]):
    o = pl.assemble(o, v, [0, 0])
    return o
@Opaque
def run(self, x: f32[8, 8], q: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    with pl.at(level=pl.Level.CORE_GROUP):
        q = self.fill(pl.add(x, 1.0), q)
    q = self.twice(q)
    return q
"""
    right(text, lambda: {"x": ramp(8, 8), "q": zeros(8, 8)}, lambda x, q: {"q": 2 * (x + 1)})
    expanded = through(text, inline_functions)
    assigns = [node for node in walk(expanded["run"].body) if isinstance(node, ir.AssignStmt)]
    assert not any(s.var is s.value for s in assigns)


def test_row_18_an_early_return_in_a_helper():
    refused(
        """
        @Inline
        def pick(self, k: idx):
            if k > 3:
                return k
            return k + 1
        @Opaque
        def run(self, n: idx) -> idx:
            m = self.pick(n)
            return m
        """,
        "non-trailing ReturnStmt",
        "return k",
        "self.pick(n)",
    )


# --- types of carries -------------------------------------------------------------------------------------------------


def test_row_19_a_carry_is_not_typed_by_its_seed():
    text = """
    @InCore
    def run(self, n: idx, x: f32[16, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        t = pl.load(x, [0, 0], [8, 8], valid_shape=[4, 8])
        for i, (c,) in pl.range(n, init_values=(t,)):
            w = pl.load(x, [8, 0], [8, 8])
            r = pl.yield_(w)
        o = pl.store(r, [0, 0], o)
        return o
    """
    source = parse(textwrap.dedent(text))
    found = PropertyVerifierRegistry.verify(property_set(IRProperty.TypeChecked), source)
    carry = loops(source)[0].iter_args[0]
    assert found or carry.type.tile_view is None, "the carry is as wide as what is yielded, or that is an error"
    if found:
        assert {d.error_code for d in found} <= {104, 111} and all(d.span.is_valid() for d in found)


# --- tensors that scopes write ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 4])
def test_row_20_a_carried_tensor_that_a_kernel_scope_captures(n: int):
    text = """
    @Opaque
    def run(self, n: idx, x: f32[8, 8], a0: f32[8, 8]) -> f32[8, 8]:
        for r, (acc,) in pl.range(n, init_values=(a0,)):
            with pl.at(level=pl.Level.CORE_GROUP):
                acc1 = pl.add(acc, pl.slice(x, [8, 8], [0, 0]))
            out = pl.yield_(acc1)
        return out
    """
    after = right(
        text,
        lambda: {"n": n, "x": ramp(8, 8), "a0": zeros(8, 8) + 2},
        lambda n, x, a0: {"return": a0 + n * x},
    )
    [loop] = loops(after)
    [call] = launches(after)
    [place] = [i for i, arg in enumerate(call.args) if arg is loop.iter_args[0]]
    assert bases(after["run_incore_0"].params)[place] == "acc"
    assert not any(arg is loop.iter_args[0].initValue for arg in call.args)


@pytest.mark.parametrize("task", ["", " as t{0}"])
def test_row_21_scopes_that_write_one_tensor_in_sequence(task: str):
    scopes = "".join(
        f"    with pl.at(level=pl.Level.CORE_GROUP){task.format(k)}:\n"
        f"        o = pl.store(pl.add(pl.mul(pl.load(o, [0, 0], [8, 8]), 2.0), {k}.0), [0, 0], o)\n"
        for k in range(5)
    )
    text = f"@Opaque\ndef run(self, o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:\n{scopes}    return o\n"

    def want(o):
        for k in range(5):
            o = o * 2 + k
        return {"o": o}

    after = right(text, lambda: {"o": ramp(8, 8)}, want)
    calls = launches(after)
    assert [call.op.name for call in calls] == [f"run_incore_{k}" for k in range(5)]
    passed = [call.args[0] for call in calls]
    assert passed[0] is after["run"].params[0] and len({id(arg) for arg in passed}) == 5
    assert all(bases([arg]) == ["o"] for arg in passed)


def test_row_22_equal_hints_in_two_functions():
    text = """
    @Orchestration
    def other(self, x: f32[8, 8], o: pl.Out[f32[8, 8]]) -> f32[8, 8]:
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="step"):
            o = pl.store(pl.add(pl.load(x, [0, 0], [8, 8]), 1.0), [0, 0], o)
        return o
    @Orchestration
    def run(self, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="step"):
            o = pl.store(pl.mul(pl.load(x, [0, 0], [8, 8]), 3.0), [0, 0], o)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="step"):
            o = pl.store(pl.sub(pl.load(o, [0, 0], [8, 8]), 1.0), [0, 0], o)
        return o
    """
    source = parse(textwrap.dedent(text))
    after = PassManager().run_passes(source)
    assert {f.name for f in after.functions.values()} == {"step", "other", "run_step", "run_step_0", "run"}
    for program in (source, after):
        for entry, value in (("run", 3 * ramp(8, 8) - 1), ("other", ramp(8, 8) + 1)):
            computes(program, lambda: {"x": ramp(8, 8), "o": zeros(8, 8)}, {"o": value}, entry)
    assert [call.op.name for call in launches(after)] == ["run_step", "run_step_0"]


def test_row_23_a_target_that_the_inner_of_two_scopes_renames():
    text = """
    @Opaque
    def run(self, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        with pl.at(level=pl.Level.HOST):
            with pl.at(level=pl.Level.CHIP):
                with pl.at(level=pl.Level.CORE_GROUP):
                    o = pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], o)
            with pl.at(level=pl.Level.CHIP):
                with pl.at(level=pl.Level.CORE_GROUP):
                    o = pl.store(pl.add(pl.load(o, [0, 0], [4, 8]), 1.0), [4, 0], o)
        return o
    """

    def want(x, o):
        o[:4], o[4:] = x[:4], x[:4] + 1
        return {"o": o}

    right(text, lambda: {"x": ramp(8, 8), "o": zeros(8, 8)}, want)
    after = through(text, convert_to_ssa, outline_hierarchy_scopes)
    first, second = launches(after, "run_host_0")
    host = after["run_host_0"]
    made = [s.var for s in ir.flatten_to_stmts(host.body) if isinstance(s, ir.AssignStmt)]
    assert first.args[-1] is next(p for p in host.params if bases([p]) == ["o"])
    assert second.args == [made[0]], "the outer body sees what the inner one made"
    assert ir.flatten_to_stmts(host.body)[-1].value == [made[1]]
    [outer] = launches(after)
    assert outer.args[-1] is after["run"].params[1], "the outer call has the argument of the function around it"


# --- tasks ------------------------------------------------------------------------------------------------------------


def test_row_24_a_task_id_that_only_deps_name():
    text = """
    @Opaque
    def run(self, x: f32[8, 8], o: pl.InOut[f32[8, 8]], p: pl.InOut[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8]]:
        with pl.at(level=pl.Level.CORE_GROUP) as t:
            o = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], o)
        with pl.at(level=pl.Level.CORE_GROUP, deps=[t]):
            p = pl.store(pl.add(pl.load(x, [0, 0], [8, 8]), 1.0), [0, 0], p)
        return o, p
    """
    after = right(
        text,
        lambda: {"x": ramp(8, 8), "o": zeros(8, 8), "p": zeros(8, 8)},
        lambda x, o, p: {"o": x, "p": x + 1},
    )
    ids = [s.var for s in walk(after["run"].body) if isinstance(s, ir.AssignStmt) and bases([s.var]) == ["t"]]
    assert launches(after)[1].deps == ids and len(ids) == 1


def test_row_25_a_task_id_out_of_a_branch():
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
    for flag in (0, 1):
        after = right(text, lambda flag=flag: {"flag": flag, "x": ramp(8, 8)}, lambda flag, x: {"x": 2 * (x + flag)})
    [branch] = [node for node in walk(after["run"].body) if isinstance(node, ir.IfStmt)]
    last = launches(after)[-1]
    assert len(last.deps) == 1 and any(var is last.deps[0] for var in branch.return_vars)
    slot = next(i for i, var in enumerate(branch.return_vars) if var is last.deps[0])
    invalid = [
        s.var
        for s in walk(after["run"].body)
        if getattr(getattr(s, "value", None), "op", None) is not None and s.value.op.name == "system.task_invalid"
    ]
    assert get_last_yield_stmt(branch.else_body).value[slot] in invalid


def test_row_25_a_task_id_out_of_a_loop():
    text = """
    @Opaque
    def run(self, n: idx, x: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        last = None
        for r in pl.range(n):
            with pl.at(level=pl.Level.CORE_GROUP) as last:
                x = pl.assemble(x, pl.add(x, 1.0), [0, 0])
        with pl.at(level=pl.Level.CORE_GROUP, deps=[last]):
            x = pl.assemble(x, pl.mul(x, 2.0), [0, 0])
        return x
    """
    for n in (0, 3):
        after = right(text, lambda n=n: {"n": n, "x": ramp(8, 8)}, lambda n, x: {"x": 2 * (x + n)})
    [loop] = loops(after)
    last = launches(after)[-1]
    slot = next(i for i, var in enumerate(loop.return_vars) if var is last.deps[0])
    seed = loop.iter_args[slot].initValue
    made = next(s for s in walk(after["run"].body) if isinstance(s, ir.AssignStmt) and s.var is seed)
    assert made.value.op.name == "system.task_invalid"


# --- control flow -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_row_26_exchanging_and_rotating_carries(n: int):
    text = """
    @Opaque
    def run(self, n: idx, a: f32[8], b: f32[8]) -> tuple[f32[8], f32[8], idx, idx, idx]:
        u = n
        v = n + 10
        w = n + 20
        for i in pl.range(n):
            t = a
            a = b
            b = t
            k = u
            u = v
            v = w
            w = k
        return a, b, u, v, w
    """

    def want(n, a, b):
        u, v, w = n, n + 10, n + 20
        for _ in range(n):
            a, b, u, v, w = b, a, v, w, u
        return {"return": (a, b, u, v, w)}

    after = right(text, lambda: {"n": n, "a": ramp(8), "b": ramp(8) * -3}, want)
    assert bases(loops(after)[0].iter_args) == ["a", "b", "u", "v", "w"]


def test_row_27_a_loop_without_iterations():
    text = """
    @Opaque
    def run(self, n: idx, x: f32[8]) -> tuple[f32[8], f32[8]]:
        keep = x
        for a in pl.range(0):
            keep = pl.add(keep, 1.0)
        also = x
        for a in pl.range(n, n):
            also = pl.mul(also, 5.0)
        return keep, also
    """
    after = right(text, lambda: {"n": 4, "x": ramp(8)}, lambda n, x: {"return": (x, x)})
    assert loops(after) == []


def test_row_27_a_value_of_a_loop_that_may_not_run():
    refused(
        """
        @InCore
        def run(self, n: idx) -> idx:
            for a in pl.range(n):
                inner = a + 1
            return inner
        """,
        "'inner' may be undefined",
        "return inner",
    )


@pytest.mark.parametrize("k", [-1, 0, 2])
def test_row_28_an_if_without_else_that_rebinds_a_carried_tensor(k: int):
    text = """
    @Opaque
    def run(self, k: idx, x: f32[8], w: f32[8]) -> f32[8]:
        for i in pl.range(4):
            if i <= k:
                w = pl.add(pl.mul(w, 2.0), x)
        return w
    """

    def want(k, x, w):
        for _ in range(k + 1):
            w = w * 2 + x
        return {"return": w}

    after = right(text, lambda: {"k": k, "x": ramp(8), "w": zeros(8) + 1}, want)
    [loop] = loops(after)
    [branch] = [node for node in walk(loop) if isinstance(node, ir.IfStmt)]
    assert ir.flatten_to_stmts(branch.else_body)[-1].value == [loop.iter_args[0]]


@pytest.mark.parametrize("n", [0, 1, 4])
def test_row_29_scopes_in_loops_in_branches_in_loops(n: int):
    text = """
    @Opaque
    def run(self, n: idx, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        k = 0
        while k < n:
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.store(pl.add(pl.load(o, [0, 0], [8, 8]), 1.0), [0, 0], o)
            for i in pl.range(n):
                if i > k:
                    for j in pl.range(2):
                        with pl.at(level=pl.Level.CORE_GROUP):
                            t = pl.mul(pl.load(o, [j, 0], [1, 8]), 2.0)
                            o = pl.store(t, [j, 0], o)
                    with pl.at(level=pl.Level.CORE_GROUP):
                        pl.store(pl.load(x, [i, 0], [1, 8]), [7, 0], o)
                else:
                    with pl.at(level=pl.Level.CORE_GROUP):
                        o = pl.store(pl.add(pl.load(o, [2, 0], [1, 8]), 3.0), [2, 0], o)
            k = k + 1
        return o
    """

    def want(n, x, o):
        for k in range(n):
            o += 1
            for i in range(n):
                if i > k:
                    o[:2] *= 2
                    o[7] = x[i]
                else:
                    o[2] += 3
        return {"o": o}

    after = right(text, lambda: {"n": n, "x": ramp(8, 8), "o": ramp(8, 8) % 3}, want)
    assert [len([a for a in loop.iter_args if bases([a]) == ["o"]]) for loop in loops(after)] == [1, 1, 1]


@pytest.mark.parametrize("task", ["", " as tid"])
def test_row_30_two_tensors_of_one_scope_one_of_them_without_ordering(task: str):
    text = f"""
    @Opaque
    def run(self, x: f32[8, 8], a: pl.InOut[f32[8, 8]], b: pl.InOut[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8]]:
        with pl.at(level=pl.Level.CORE_GROUP):
            b = pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], b)
        with pl.at(level=pl.Level.CORE_GROUP, no_dep_args=[b]){task}:
            t = pl.load(x, [4, 0], [4, 8])
            a = pl.store(t, [4, 0], a)
            b = pl.store(t, [4, 0], b)
        return a, b
    """

    def want(x, a, b):
        a[4:] = x[4:]
        return {"a": a, "b": x}

    after = right(text, lambda: {"x": ramp(8, 8), "a": zeros(8, 8), "b": zeros(8, 8)}, want)
    second = launches(after)[1]
    [position] = second.attrs["arg_direction_overrides"]
    assert bases([second.args[position]]) == ["b"] and len(after["run_incore_1"].return_types) == 2


# --- calls and submits ------------------------------------------------------------------------------------------------


def _launch(form: str, name: str, *args: str, to: str = "") -> str:
    listed = ", ".join(args)
    if form == "call":
        return f"{to} = self.{name}({listed})" if to else f"self.{name}({listed})"
    return f"{to}, _t = pl.submit(self.{name}, {listed})" if to else f"pl.submit(self.{name}, {listed})"


@pytest.mark.parametrize("form", ["call", "submit"])
def test_row_31_calls_and_submits_go_through_every_pass_alike(form: str):
    """Inlined, unrolled, carried, flattened, in a cluster: what holds of a call holds of a submit."""
    text = f"""
{BASE}
@Inline
def relay(self, v: f32[8, 8], dst: pl.InOut[f32[8, 8]], at: idx):
    at = at + 1
    {_launch(form, "part", "v", "at", "dst", to="dst")}
    return dst
@Opaque
def run(self, n: idx, x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    for c in pl.unroll(2):
        y = self.relay(x, y, c * 2)
    for i in pl.range(n):
        if i > 0:
            {_launch(form, "twice", "y", to="y")}
        else:
            {_launch(form, "fix", "x", "y", to="y")}
    with pl.cluster():
        {_launch(form, "part", "x", "n + 1", "y", to="y")}
    return y
"""

    def want(n, x, y):
        y[1], y[3] = x[1] + 1, x[3] + 1
        for i in range(n):
            y = y * 2 if i else y + x
        y[n + 1] = x[n + 1] + 1
        return {"y": y}

    for n in (0, 1, 3):
        after = right(text, lambda n=n: {"n": n, "x": ramp(8, 8), "y": zeros(8, 8)}, want)
    kinds = {
        type(call)
        for f in after.functions.values()
        for call in launches(after, f.name)
        if call.op.name in ("part", "twice", "fix")
    }
    assert kinds == {ir.Call if form == "call" else ir.Submit}


@pytest.mark.parametrize("form", ["call", "submit"])
def test_row_31_verifiers_look_at_both(form: str):
    def found(prop: IRProperty, body: str, kind: str = "Orchestration") -> list[int]:
        text = f"{BASE}\n@{kind}\ndef run(self, n: idx, x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:\n"
        node = parse(text + textwrap.indent(body, "    "))
        findings = PropertyVerifierRegistry.verify(property_set(prop), node)
        return [d.error_code for d in findings if "'run'" in d.message]

    read_after = f"{_launch(form, 'twice', 'y', to='z')}\n{_launch(form, 'fix', 'y', 'x', to='w')}\nreturn z"
    assert found(IRProperty.InOutUseValid, read_after) == [0]
    nested = _launch(form, "part", "pl.add(x, 1.0)", "n", "y", to="z") + "\nreturn z"
    assert found(IRProperty.NoNestedCalls, nested) == [201]
    local = "for i in pl.range(n):\n    k = i + 1\n" + _launch(form, "part", "x", "k", "y", to="z") + "\nreturn z"
    assert 6 in found(IRProperty.SSAForm, local)


# --- annotations ------------------------------------------------------------------------------------------------------


def test_row_32_a_split_of_the_scope_and_one_in_it():
    """The parser says so at once; what is built by hand is refused by the pass (test_outline_incore_scopes.py)."""
    text = """
    @Opaque
    def run(self, x: f32[16, 32], o: pl.Out[f32[16, 32]]) -> f32[16, 32]:
        with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):
            for i in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
                t = pl.load(x, [i * 8, 0], [8, 32])
                pl.store(t, [i * 8, 0], o)
        return o
    """
    with pytest.raises(ParserError, match="mutually exclusive AIV-split mechanisms") as info:
        parse(textwrap.dedent(text))
    assert "pl.split_aiv" in program_text(textwrap.dedent(text)).splitlines()[info.value.span["begin_line"] - 1]


def test_row_32_a_width_that_the_cluster_itself_computes():
    refused(
        f"""
{BASE}
@Opaque
def run(self, n: idx, y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    with pl.cluster():
        w = n + 1
        with pl.spmd(w):
            y = self.twice(y)
    return y
""",
        "defined inside the enclosing",
        "pl.spmd(w)",
    )


def test_row_33_a_scalar_next_to_a_kernel_scope_stays_outside():
    text = """
    @Opaque
    def run(self, n: idx, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
        k = n * n + 1
        with pl.at(level=pl.Level.CORE_GROUP):
            j = n + 1
            t = pl.load(x, [k, 0], [1, 8])
            o = pl.store(pl.add(t, 1.0), [j, 0], o)
        return o
    """

    def want(n, x, o):
        o[n + 1] = x[n * n + 1] + 1
        return {"o": o}

    after = right(text, lambda: {"n": 2, "x": ramp(8, 8), "o": zeros(8, 8)}, want)
    kernel = after["run_incore_0"]
    assert "k" in bases(kernel.params) and not any(isinstance(node, ir.Mul) for node in walk(kernel.body))
    assert any(isinstance(node, ir.Add) for node in walk(kernel.body)), "what the user put into the scope stays there"
