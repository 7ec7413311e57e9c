"""CtrlFlowTransform: the faults of section 17.5 and of section 28, host-side loops, and branches with results."""

import itertools
import textwrap

import numpy as np
import pytest
from ctrl_flow_kit import check, escapes, lower, python_function, run
from spec_kit import parse, ramp

from pypto import ir
from pypto.ir.traversal import walk
from pypto.passes.ctrl_flow_transform import ctrl_flow_transform
from pypto.verify.properties import IRProperty, property_set
from pypto.verify.registry import PropertyVerifierRegistry


def unchanged(text: str) -> None:
    program = parse(textwrap.dedent(text))
    assert escapes(program) and ctrl_flow_transform()(program) is program


# --- rows of "wrong, right here" and of the fault kinds -----------------------------------------------------------------


def test_a_nested_continue_skips_what_follows_outside_too():
    check(
        """
        @InCore
        def run(self, n: idx, m: idx) -> tuple[idx, idx]:
            x = 0
            y = 0
            for i in pl.range(n):
                if i > 1:
                    if i % 2 == m:
                        continue
                    x = x + i
                y = y * 3 + i
            return x, y
        """,
        python_function(
            """
            def run(n, m):
                x = y = 0
                for i in range(n):
                    if i > 1:
                        if i % 2 == m:
                            continue
                        x = x + i
                    y = y * 3 + i
                return x, y
            """
        ),
        *itertools.product((0, 1, 6), (0, 1)),
    )


def test_results_of_an_inner_loop_and_of_branches_are_known_at_an_escape():
    def want(n, c):
        inner = p = q = 0
        for i in range(n):
            inner = inner + 3 * i
            p = p + (1 if i > 1 else 5)
            q = q + (2 if i > 2 else 7)
            if i == c:
                break
        return inner, p, q

    check(
        """
        @InCore
        def run(self, n: idx, c: idx) -> tuple[idx, idx, idx]:
            for i, (s, p, q) in pl.range(n, init_values=(0, 0, 0)):
                for j, (t,) in pl.range(3, init_values=(s,)):
                    inner = pl.yield_(t + i)
                if i > 1:
                    p1 = p + 1
                else:
                    p1 = p + 5
                if i > 2:
                    q1 = pl.yield_(q + 2)
                else:
                    q1 = pl.yield_(q + 7)
                if i == c:
                    break
                a, b, d = pl.yield_(inner, p1, q1)
            return a, b, d
        """,
        want,
        *itertools.product((0, 1, 5), (0, 3, 9)),
    )


def test_a_value_of_one_branch_only_is_not_known():
    def want(n, c):
        s = 0
        for i in range(n):
            if i == c:
                continue  # v may not have been assigned
            s = s + 1 if i < 2 else s + 10
        return s

    check(
        """
        @InCore
        def run(self, n: idx, c: idx) -> idx:
            for i, (s,) in pl.range(n, init_values=(0,)):
                if i < 2:
                    v = s + 1
                if i == c:
                    continue
                if i >= 2:
                    v = s + 10
                r = pl.yield_(v)
            return r
        """,
        want,
        *itertools.product((0, 1, 5), (0, 3, 9)),
    )


def test_a_swap_is_known_at_an_escape():
    def want(n, c):
        a, b = 1, 2
        for i in range(n):
            a, b = b, a
            if i == c:
                break
        return a, b

    check(
        """
        @InCore
        def run(self, n: idx, c: idx) -> tuple[idx, idx]:
            for i, (a, b) in pl.range(n, init_values=(1, 2)):
                if i == c:
                    break
                x, y = pl.yield_(b, a)
            return x, y
        """,
        want,
        *itertools.product((0, 1, 4, 5), (0, 2, 9)),
    )


@pytest.mark.parametrize("n", [0, 1, 6])
@pytest.mark.parametrize("lim", [0, 3, 9])
def test_a_loop_variable_read_behind_the_loop(n, lim):
    text = """
    @InCore
    def run(self, n: idx, lim: idx) -> idx:
        for i in pl.range(10, 20 + n, 2):
            if i == 10 + lim * 2:
                break
        return i
    """
    want = python_function(
        """
        def run(n, lim):
            for i in range(10, 20 + n, 2):
                if i == 10 + lim * 2:
                    break
            return i
        """
    )
    check(text, want, (n, lim))


def test_a_loop_variable_assigned_in_the_body_counts_nothing():
    text = """
    def run({params}){result}:
        s = 0
        for i in {range}(n):
            i = i * 2
            s = s * 10 + i
            if i == lim:
                break
        return s
    """
    want = python_function(text.format(params="n, lim", result="", range="range"))
    text = text.format(params="self, n: idx, lim: idx", result=" -> idx", range="pl.range")
    result = check(f"@InCore\n{textwrap.dedent(text).strip()}\n", want, *itertools.product((0, 1, 5), (0, 4, 9)))
    loop = next(s for s in walk(result) if isinstance(s, ir.WhileStmt))
    first = ir.flatten_to_stmts(loop.body)[0]
    assert isinstance(first, ir.AssignStmt) and first.var.name_hint == "i"
    assert isinstance(first.value, ir.Var) and first.value.name_hint == "i__idx_v1"


def test_bounds_are_those_from_the_start_of_the_loop():
    text = """
    def run({params}){result}:
        s = 0
        for i in {range}(0, n, k):
            n = n - 1
            k = 5
            s = s + 1
            if s == lim:
                break
        return s, n
    """
    want = python_function(text.format(params="n, k, lim", result="", range="range"))
    params, result = "self, n: idx, k: idx, lim: idx", " -> tuple[idx, idx]"
    text = text.format(params=params, result=result, range="pl.range")
    check(f"@InCore\n{textwrap.dedent(text).strip()}\n", want, *itertools.product((0, 1, 6), (1, 2), (1, 4, 99)))


def test_a_bound_that_reads_a_tensor_is_read_once():
    text = """
    @InCore
    def run(self, x: pl.InOut[i32[4]], lim: idx) -> idx:
        s = 0
        for i in pl.range(0, pl.cast(pl.tensor.read(x, [0]), pl.INDEX)):
            s = s + 1
            if s == lim:
                break
        return s
    """
    result = lower(parse(textwrap.dedent(text)))
    loop = next(s for s in walk(result) if isinstance(s, ir.WhileStmt))
    assert not [n for n in walk(loop.condition) if isinstance(n, ir.Call)]
    assert "stop__tmp_v" in str(result)


def test_row_2_and_6_a_value_past_a_continue():
    """The value from before, where an iteration was cut short; the new one otherwise."""

    def want(n, bad):
        res = 5
        for i in range(n):
            if i == bad:
                continue
            res = res * 2
        return res

    for text in (
        "res = 5\nfor i in pl.range(n):\n    if i == bad:\n        continue\n    res = res * 2",
        "for i, (r,) in pl.range(n, init_values=(5,)):\n    if i == bad:\n        continue\n"
        "    r1 = r * 2\n    res = pl.yield_(r1)",
    ):
        source = f"@InCore\ndef run(self, n: idx, bad: idx) -> idx:\n{textwrap.indent(text, '    ')}\n    return res\n"
        check(source, want, *itertools.product((0, 1, 4), (0, 2, 9)))


def test_row_7_a_descending_loop_with_break():
    text = """
    def run({params}){result}:
        s = 0
        for i in {range}(n, -3, -2):
            if i == lim:
                break
            s = s * 10 + i
        return s
    """
    want = python_function(text.format(params="n, lim", result="", range="range"))
    text = text.format(params="self, n: idx, lim: idx", result=" -> idx", range="pl.range")
    check(f"@InCore\n{textwrap.dedent(text).strip()}\n", want, *itertools.product((-4, 0, 1, 9), (0, 5, 99)))


# --- host side ----------------------------------------------------------------------------------------------------------

LAUNCH = """
@InCore
def bump(self, y: pl.InOut[f32[8, 8]], by: pl.Scalar[pl.FP32]) -> f32[8, 8]:
    y1 = pl.store(pl.add(pl.load(y, [0, 0], [8, 8]), by), [0, 0], y)
    return y1
"""


def test_a_host_loop_that_only_launches_keeps_its_escapes():
    unchanged(
        LAUNCH
        + """
@Orchestration
def run(self, n: idx, y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    for i in pl.range(n):
        if i == 3:
            continue
        t = i * 2
        self.bump(y, 1.0)
        if t > 8:
            break
    return y
"""
    )


def test_a_host_loop_that_escapes_before_it_assigns_keeps_its_escapes():
    unchanged(
        LAUNCH
        + """
@Orchestration
def run(self, n: idx, y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    for i in pl.range(n):
        if i == 3:
            break
        y = self.bump(y, 1.0)
    for i, (z,) in pl.range(n, init_values=(y,)):
        if i == 2:
            continue
        z1 = self.bump(z, 1.0)
        w = pl.yield_(z1)
    return w
"""
    )


@pytest.mark.parametrize(
    "loop",
    [
        "for i in pl.range(n):\n    y = self.bump(y, 1.0)\n    if i == 3:\n        break",
        "for i, (z,) in pl.range(n, init_values=(y,)):\n    z1 = self.bump(z, 1.0)\n    if i == 3:\n        break\n"
        "    y = pl.yield_(z1)",
        "for i in pl.range(n):\n    if i > 1:\n        y = self.bump(y, 1.0)\n        if i == 4:\n            break\n"
        "    else:\n        y = self.bump(y, 2.0)",
    ],
    ids=["natural", "explicit", "nested"],
)
def test_a_host_loop_that_would_lose_a_value_is_lowered(loop):
    text = f"""
{LAUNCH}
@Orchestration
def run(self, n: idx, y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
{textwrap.indent(loop, "    ")}
    return y
"""
    program = parse(text)
    result = lower(program)
    assert escapes(program) and not escapes(result)
    for n in (0, 2, 8):
        want = ramp(8, 8) + {"4": min(n, 4), "5": min(n, 2) * 2 + max(min(n, 5) - 2, 0)}["5" if "2.0" in loop else "4"]
        for node in (program, result):
            y = ramp(8, 8)
            run(node, n, y)
            np.testing.assert_array_equal(y, want)


def test_a_loop_variable_of_a_host_loop_read_behind_it():
    check(
        """
        @Opaque
        def run(self, n: idx, lim: idx) -> idx:
            for i in pl.range(4):
                if i == lim:
                    break
            return i + n
        """,
        lambda n, lim: min(lim, 3) + n,
        *itertools.product((0, 5), (0, 2, 9)),
    )


def test_a_kernel_scope_that_leaves_a_host_loop():
    """The escape leaves the scope: lowered inside, guarded behind it."""

    def want(n, lim):
        s = t = 0
        for i in range(n):
            s = s + i
            if i == lim:
                break
            s = s + 10
            t = t + s
        return s, t

    check(
        """
        @Opaque
        def run(self, n: idx, lim: idx) -> tuple[idx, idx]:
            s = 0
            t = 0
            for i in pl.range(n):
                with pl.at(level=pl.Level.CORE_GROUP):
                    s = s + i
                    if i == lim:
                        break
                    s = s + 10
                t = t + s
            return s, t
        """,
        want,
        *itertools.product((0, 1, 5), (0, 3, 9)),
    )


def test_a_kernel_scope_that_leaves_a_host_loop_without_assigning():
    text = f"""
{LAUNCH}
@Orchestration
def run(self, n: idx, y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    for i in pl.range(n):
        with pl.at(level=pl.Level.CORE_GROUP):
            if i == 2:
                break
            pl.store(pl.add(pl.load(y, [0, 0], [8, 8]), 1.0), [0, 0], y)
    return y
"""
    program = parse(text)
    result = lower(program)
    assert not escapes(result)
    for node in (program, result):
        y = ramp(8, 8)
        run(node, 5, y)
        np.testing.assert_array_equal(y, ramp(8, 8) + 2)


def test_a_trailing_yield_in_a_runtime_scope_is_the_loops():
    """Row 12: the carry update inside ``with pl.scope()`` at the end of the body."""
    text = f"""
{LAUNCH}
@pl.function(type=pl.FunctionType.Orchestration, auto_scope=False)
def run(self, n: idx, y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    for i, (z,) in pl.range(n, init_values=(y,)):
        z0 = self.bump(z, 1.0)
        if i == 2:
            continue
        with pl.scope():
            z1 = self.bump(z0, 10.0)
            w = pl.yield_(z1)
        if n < 0:
            self.bump(y, 0.0)
    return w
""".replace("        if n < 0:\n            self.bump(y, 0.0)\n", "")
    text = text.replace("        if i == 2:", "        z1 = z0\n        if i == 2:")
    program = parse(text)
    result = lower(program)
    assert not escapes(result)
    for node in (program, result):
        y = ramp(8, 8)
        run(node, 5, y)
        np.testing.assert_array_equal(y, ramp(8, 8) + 5 + 40)


# --- branches with results ------------------------------------------------------------------------------------------------


def test_a_branch_with_results_that_an_escape_leaves():
    """Its results keep their slots; the carries are appended."""

    def want(n, lim):
        s = 0
        for i in range(n):
            if i > 1:
                if i == lim:
                    break
                y = s + i
            else:
                y = s + 100
            s = y * 2
        return s

    result = check(
        """
        @InCore
        def run(self, n: idx, lim: idx) -> idx:
            for i, (s,) in pl.range(n, init_values=(0,)):
                if i > 1:
                    if i == lim:
                        break
                    y = pl.yield_(s + i)
                else:
                    y = pl.yield_(s + 100)
                s2 = y * 2
                r = pl.yield_(s2)
            return r
        """,
        want,
        *itertools.product((0, 1, 5), (0, 3, 9)),
    )
    branch = next(s for s in walk(result) if isinstance(s, ir.IfStmt))
    assert [v.name_hint for v in branch.return_vars][0] == "y" and len(branch.return_vars) == 2


def test_a_result_that_is_read_behind_the_loop_keeps_its_last_value():
    def want(n, lim):
        y = 7
        c = 0
        for i in range(n):
            if i > 1:
                c = c + 1
                if i == lim:
                    continue
                y = c + i
            else:
                y = c + 100
        return y, c

    check(
        """
        @InCore
        def run(self, n: idx, lim: idx) -> tuple[idx, idx]:
            y = 7
            c = 0
            for i in pl.range(n):
                if i > 1:
                    c = c + 1
                    if i == lim:
                        continue
                    y = pl.yield_(c + i)
                else:
                    y = pl.yield_(c + 100)
            return y, c
        """,
        want,
        *itertools.product((0, 1, 5), (0, 3, 4, 9)),
    )


def test_results_that_are_tiles_and_tensors():
    text = """
    @InCore
    def run(self, n: idx, lim: idx, x: f32[8, 8], o: pl.Out[f32[8, 8]]) -> f32[8, 8]:
        acc = pl.load(x, [0, 0], [8, 8])
        for i in pl.range(n):
            if i > 1:
                if i == lim:
                    break
                t = pl.yield_(pl.add(acc, 1.0))
            else:
                t = pl.yield_(pl.add(acc, 2.0))
            acc = pl.mul(t, 2.0)
        return pl.store(acc, [0, 0], o)
    """
    program = parse(textwrap.dedent(text))
    result = lower(program)
    assert not escapes(result)
    want = ramp(8, 8)
    for i in range(3):
        want = (want + (1 if i > 1 else 2)) * 2
    for node in (program, result):
        o = np.zeros((8, 8), np.float32)
        run(node, 6, 3, ramp(8, 8), o)
        np.testing.assert_array_equal(o, want)


def test_a_last_branch_that_sometimes_and_otherwise_always_escapes():
    check(
        """
        @InCore
        def run(self, n: idx, m: idx) -> idx:
            x = 0
            for i in pl.range(n):
                x = x + 1
                if i > m:
                    if i > m + 2:
                        x = x + 10
                    else:
                        continue
                else:
                    continue
            return x
        """,
        lambda n, m: n + 10 * sum(i > m + 2 for i in range(n)),
        (6, 0),
        (3, 5),
        (0, 0),
    )


def test_a_name_that_every_path_to_the_end_of_a_branch_assigns_is_read_behind_it():
    after = check(
        """
        @InCore
        def run(self, n: idx, m: idx) -> idx:
            for i, (s,) in pl.range(n, init_values=(m,)):
                if i > 1:
                    c = i * 2
                    if i == m:
                        continue
                else:
                    c = i + 5
                r = pl.yield_(s + c)
            return r
        """,
        python_function(
            """
            def run(n, m):
                # The carry takes its operand at the escape, too: all of it is known there.
                return m + sum(i * 2 if i > 1 else i + 5 for i in range(n))
            """
        ),
        *itertools.product((1, 4, 6), (0, 3)),
    )
    wanted = property_set(IRProperty.UseAfterDef)
    assert PropertyVerifierRegistry.verify(wanted, after) == []
