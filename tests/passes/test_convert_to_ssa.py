"""ConvertToSSA: forms of the result, refusals, and that every converted program means what its source means."""

import textwrap
import warnings
from typing import Any

import numpy as np
import pytest
from spec_kit import check_round_trips, parse, program_text, ramp, zeros

import pypto.language as pl
from frontend.dsl import HEAD
from frontend.test_generated_meaning import HELPERS, Generator, version
from pypto import ir
from pypto.diag.errors import InternalError
from pypto.ir.traversal import walk
from pypto.ir.tree import definitions
from pypto.ops.values import ArrayValue, Buffer
from pypto.passes.convert_to_ssa import convert_to_ssa
from pypto.passes.ctrl_flow_transform import ctrl_flow_transform
from pypto.passes.errors import PassError, PassTypeError
from pypto.passes.unroll_loops import unroll_loops
from pypto.runtime.interpreter import Interpreter
from pypto.verify.properties import IRProperty, property_set
from pypto.verify.registry import PropertyVerifierRegistry

FORM = property_set(IRProperty.SSAForm, IRProperty.UseAfterDef)


def ssa(source: str | ir.Program) -> ir.Program:
    """The program in SSA form: verified, and the pass has nothing to do there."""
    program = parse(textwrap.dedent(source)) if isinstance(source, str) else source
    after = convert_to_ssa()(program)
    PropertyVerifierRegistry.verify_or_throw(FORM, after)
    assert convert_to_ssa()(after) is after
    return after


def same_form(before: str, after: str) -> ir.Program:
    """The pass makes ``after`` of ``before``, up to names."""
    result = ssa(before)
    ir.assert_structural_equal(result, parse(textwrap.dedent(after)), enable_auto_mapping=True)
    check_round_trips(result)
    return result


def names(program: ir.Program) -> list[str]:
    """The names of the definitions of ``run``, sorted."""
    return sorted(v.name_hint for v in definitions(program["run"]))


def run(program: ir.Program, *args: Any) -> list[Any]:
    """What ``run`` returns; arrays are updated in place."""
    values = [ArrayValue(a, Buffer(a, external=True)) if isinstance(a, np.ndarray) else a for a in args]
    function = program.get_function("run")
    assert function is not None
    results = Interpreter(program).run(function, values)
    return [r.data if isinstance(r, ArrayValue) else r for r in results]


def refused(source: str, phrase: str, line: str, error: type = PassError) -> Any:
    """The pass refuses a program with this phrase, at this line of the source."""
    text = textwrap.dedent(source)
    program = parse(text)
    with pytest.raises(error) as info:
        convert_to_ssa()(program)
    assert phrase in str(info.value)
    span = info.value.span
    lines = [shown for shown in _module_lines(text) if line in shown]
    assert span is not None and _module_lines(text)[span.begin_line - 1] in lines, (span, str(info.value))
    return info.value


def _module_lines(text: str) -> list[str]:
    return program_text(text).splitlines()


# --- names ------------------------------------------------------------------------------------------------------------


def test_one_counter_for_each_variable() -> None:
    after = ssa(
        """
        @Opaque
        def run(self, n: idx, k: idx) -> idx:
            acc = n
            for i in pl.range(n):
                acc = acc + i
                if i > k:
                    acc = acc * 2
                    y = pl.yield_(i)
                else:
                    y = pl.yield_(k)
                acc = acc + y
            return acc
        """
    )
    assert names(after) == sorted(
        ["n__ssa_v0", "k__ssa_v0", "acc__ssa_v0", "i__idx_v0", "acc__iter_v1", "acc__rv_v2", "acc__ssa_v3"]
        + ["acc__phi_v5", "y__rv_v0", "acc__ssa_v4", "acc__ssa_v6"]
    )


def test_names_of_ssa_form_keep_their_base() -> None:
    after = ssa(
        """
        @Opaque
        def run(self, n__ssa_v0: idx) -> idx:
            s__ssa_v4 = n__ssa_v0
            flag__tmp_v0 = n__ssa_v0
            for i__idx_v7 in pl.range(n__ssa_v0):
                flag__tmp_v0 = flag__tmp_v0 + i__idx_v7
            return flag__tmp_v0 + s__ssa_v4
        """
    )
    assert names(after) == sorted(
        ["n__ssa_v0", "s__ssa_v4", "flag__ssa_v0", "i__idx_v7", "flag__iter_v1", "flag__rv_v2", "flag__ssa_v3"]
    )


def test_existing_carries_keep_their_objects() -> None:
    program = parse(
        textwrap.dedent(
            """
            @Opaque
            def run(self, n: idx) -> idx:
                for i, (s,) in pl.range(n, init_values=(0,)):
                    r = pl.yield_(s + i)
                return r
            """
        )
    )
    before = next(s for s in walk(program["run"].body) if isinstance(s, ir.ForStmt))
    after = next(s for s in walk(ssa(program)["run"].body) if isinstance(s, ir.ForStmt))
    assert after.iter_args == before.iter_args and after.iter_args[0] is before.iter_args[0]
    assert after.return_vars[0] is before.return_vars[0]


# --- which variables loops carry --------------------------------------------------------------------------------------


def test_carried_whether_needed_or_not_and_locals() -> None:
    same_form(
        """
        @Opaque
        def run(self, n: idx, x: f32[8]) -> idx:
            b = n
            a = n + 1
            for i in pl.range(n):
                off = i * 2
                b = off
                a = a + off
            return a
        """,
        """
        @Opaque
        def run(self, n: idx, x: f32[8]) -> idx:
            b = n
            a = n + 1
            for i, (a1, b1) in pl.range(n, init_values=(a, b)):
                off = i * 2
                b2 = off
                a2 = a1 + off
                ar, br = pl.yield_(a2, b2)
            return ar
        """,
    )


def test_slots_existing_then_carried_by_name() -> None:
    same_form(
        """
        @Opaque
        def run(self, n: idx) -> idx:
            z = n
            c = n
            for i, (s,) in pl.range(3, init_values=(n,)):
                z = z + i
                c = c + z
                r = pl.yield_(s + 1)
            return r + z + c
        """,
        """
        @Opaque
        def run(self, n: idx) -> idx:
            z = n
            c = n
            for i, (s, c1, z1) in pl.range(3, init_values=(n, c, z)):
                z2 = z1 + i
                c2 = c1 + z2
                r, cr, zr = pl.yield_(s + 1, c2, z2)
            return r + zr + cr
        """,
    )


def test_slots_carried_then_escaping_by_name() -> None:
    same_form(
        """
        @Opaque
        def run(self, n: idx) -> idx:
            z = n
            c = n
            for i in pl.range(3):
                d = i
                b = i + 1
                z = z + d
                c = c + b
            return z + c + d + b
        """,
        """
        @Opaque
        def run(self, n: idx) -> idx:
            z = n
            c = n
            for i, (c1, z1, b1, d1) in pl.range(3, init_values=(c, z, 0, 0)):
                d = i
                b = i + 1
                z2 = z1 + d
                c2 = c1 + b
                cr, zr, br, dr = pl.yield_(c2, z2, b, d)
            return zr + cr + dr + br
        """,
    )


def test_the_condition_of_a_while_reads_the_carries() -> None:
    after = same_form(
        """
        @Opaque
        def run(self, n: idx) -> idx:
            a = n
            s = 0
            while a > 0:
                s = s + a
                a = a - 1
            return s
        """,
        """
        @Opaque
        def run(self, n: idx) -> idx:
            a = n
            s: idx = 0
            for (a1, s1) in pl.while_(init_values=(a, s)):
                pl.cond(a1 > 0)
                s2 = s1 + a1
                a2 = a1 - 1
                ar, sr = pl.yield_(a2, s2)
            return sr
        """,
    )
    assert run(after, 4) == [10]


def test_a_loop_that_runs_gives_its_variables() -> None:
    after = same_form(
        """
        @InCore
        def run(self, x: f32[64, 16], o: pl.Out[f32[64, 16]]) -> f32[64, 16]:
            for i in pl.range(4):
                t = pl.load(x, [i * 16, 0], [16, 16])
            o = pl.store(t, [0, 0], o)
            return o
        """,
        """
        @InCore
        def run(self, x: f32[64, 16], o: pl.Out[f32[64, 16]]) -> f32[64, 16]:
            t0 = pl.create_tile([16, 16], dtype=pl.FP32)
            for i, (t1,) in pl.range(4, init_values=(t0,)):
                t2 = pl.load(x, [i * 16, 0], [16, 16])
                t3 = pl.yield_(t2)
            o1 = pl.store(t3, [0, 0], o)
            return o1
        """,
    )
    x, o = ramp(64, 16), zeros(64, 16)
    run(after, x, o)
    np.testing.assert_array_equal(o[:16], x[48:])


@pytest.mark.parametrize("kind", ["pl.range(2, n + 3)", "pl.range(m)", "pl.range(5, 1, -2)"])
def test_trip_counts_are_proved(kind: str) -> None:
    after = ssa(
        f"""
        @Opaque
        def run(self, n: idx) -> idx:
            m = 3
            for i in {kind}:
                last = i * 2
            return last
        """
    )
    trips = {"pl.range(2, n + 3)": range(2, 7), "pl.range(m)": range(3), "pl.range(5, 1, -2)": range(5, 1, -2)}[kind]
    assert run(after, 4) == [trips[-1] * 2]


def test_a_while_that_runs_gives_its_variables() -> None:
    source = """
        @Opaque
        def run(self, n: idx) -> idx:
            k = 0
            while k < 3:
                last = k * n
                k = k + 1
            return last
        """
    assert run(ssa(source), 5) == [10]
    refused(source.replace("k < 3", "k < n"), "'last' may be undefined", "return last")


def test_the_loop_variable_behind_the_loop() -> None:
    source = """
        @Opaque
        def run(self, n: idx) -> idx:
            for i in pl.range(3):
                for j in pl.range(4, 2, -1):
                    m = n
            return i * 10 + j
        """
    assert run(ssa(source), 5) == [23]
    text = source.replace("range(3)", "range(n)")
    error = refused(text, "'i' may be undefined: it is only assigned in a loop that may run zero times", "return i")
    assert error.code == "PT1020"


def test_a_written_buffer_is_the_value_after_no_iteration() -> None:
    after = same_form(
        """
        @Opaque
        def run(self, n: idx, src: f32[64, 16], o: pl.Out[f32[64, 16]]) -> f32[64, 16]:
            for i in pl.range(n):
                with pl.at(level=pl.Level.CORE_GROUP):
                    t = pl.load(src, [i * 16, 0], [16, 16])
                    res = pl.store(t, [i * 16, 0], o)
            return res
        """,
        """
        @Opaque
        def run(self, n: idx, src: f32[64, 16], o: pl.Out[f32[64, 16]]) -> f32[64, 16]:
            for i, (res0,) in pl.range(n, init_values=(o,)):
                with pl.at(level=pl.Level.CORE_GROUP):
                    t = pl.load(src, [i * 16, 0], [16, 16])
                    res1 = pl.store(t, [i * 16, 0], o)
                res2 = pl.yield_(res1)
            return res2
        """,
    )
    x, o = ramp(64, 16), zeros(64, 16)
    assert run(after, 4, x, o)[0].sum() == x.sum()
    kept = ramp(64, 16)
    np.testing.assert_array_equal(run(after, 0, x, kept)[0], kept)


def test_a_written_buffer_through_calls() -> None:
    after = ssa(
        """
        @InCore
        def k(self, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
            return pl.store(pl.add(pl.load(x, [0, 0], [8, 8]), 1.0), [0, 0], o)
        @Orchestration
        def run(self, n: idx, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
            buf = pl.create_tensor([8, 8], dtype=pl.FP32)
            for i in pl.range(n):
                one = self.k(x, buf)
                two, tid = pl.submit(self.k, one, o)
                o = two
            return two
        """
    )
    loop = next(s for s in walk(after["run"].body) if isinstance(s, ir.ForStmt))
    assert [(a.name_hint, a.initValue.name_hint) for a in loop.iter_args] == [
        ("o__iter_v1", "o__ssa_v0"),
        ("two__iter_v0", "o__ssa_v0"),
    ]


def test_an_initial_value_is_never_a_variable_that_happens_to_fit() -> None:
    refused(
        """
        @Opaque
        def run(self, n: idx, x: f32[8], o: pl.Out[f32[8]]) -> f32[8]:
            for i in pl.range(n):
                y = pl.add(x, 1.0)
            return y
        """,
        "'y' may be undefined: it is only assigned in a loop that may run zero times",
        "return y",
    )


# --- branches ---------------------------------------------------------------------------------------------------------


def test_the_unchanged_side_gives_the_old_value() -> None:
    same_form(
        """
        @Opaque
        def run(self, n: idx, x: f32[8]) -> f32[8]:
            a = x
            b = x
            if n > 3:
                b = pl.add(b, 1.0)
                a = pl.add(a, 2.0)
            else:
                a = pl.add(a, 3.0)
            return pl.add(a, b)
        """,
        """
        @Opaque
        def run(self, n: idx, x: f32[8]) -> f32[8]:
            a = x
            b = x
            if n > 3:
                b1 = pl.add(b, 1.0)
                a1 = pl.add(a, 2.0)
                ap, bp = pl.yield_(a1, b1)
            else:
                a2 = pl.add(a, 3.0)
                ap, bp = pl.yield_(a2, b)
            return pl.add(ap, bp)
        """,
    )


def test_defined_on_both_sides() -> None:
    same_form(
        """
        @Opaque
        def run(self, n: idx) -> idx:
            if n > 3:
                t = n
            else:
                t = n + 1
            return t
        """,
        """
        @Opaque
        def run(self, n: idx) -> idx:
            if n > 3:
                t1 = n
                t = pl.yield_(t1)
            else:
                t2 = n + 1
                t = pl.yield_(t2)
            return t
        """,
    )


def test_defined_on_one_side() -> None:
    source = """
        @Opaque
        def run(self, n: idx) -> idx:
            r = 1
            if n > 3:
                t = n
                r = t
            return r
        """
    after = ssa(source)
    assert [v.name_hint for s in walk(after["run"].body) if isinstance(s, ir.IfStmt) for v in s.return_vars] == [
        "r__phi_v2"
    ]
    error = refused(source.replace("return r", "return t"), "'t' may be undefined", "return t")
    assert "only assigned in the then branch of an `if` without an else branch" in str(error)
    assert {place.begin_line for place, _ in error.labels} == {11, 12}
    text = source.replace("return r", "return t").replace("r = t", "r = t\n            else:\n                r = 2")
    assert "whose else branch does not assign it" in str(refused(text, "'t' may be undefined", "return t"))


def test_a_read_where_all_paths_assigned_again_is_no_error() -> None:
    after = ssa(
        """
        @Opaque
        def run(self, n: idx) -> idx:
            if n > 3:
                t = n
            for i in pl.range(n):
                t = i
            t = 5
            return t
        """
    )
    assert run(after, 4) == [5]


def test_own_results_of_a_branch_stay() -> None:
    same_form(
        """
        @Opaque
        def run(self, k: idx, x: f32[16]) -> tuple[f32[16], f32[16]]:
            w = pl.mul(x, 3.0)
            if k > 1:
                w = pl.mul(x, 7.0)
                y = pl.yield_(x)
            else:
                y = pl.yield_(w)
            return w, y
        """,
        """
        @Opaque
        def run(self, k: idx, x: f32[16]) -> tuple[f32[16], f32[16]]:
            w0 = pl.mul(x, 3.0)
            if k > 1:
                w1 = pl.mul(x, 7.0)
                w2, y = pl.yield_(w1, x)
            else:
                w2, y = pl.yield_(w0, w0)
            return w2, y
        """,
    )


def test_results_that_rebind_a_name() -> None:
    after = ssa(
        """
        @Opaque
        def run(self, n: idx) -> idx:
            w = n
            for i in pl.range(n):
                if i > 2:
                    w = w + 1
                    w = pl.yield_(w)
                else:
                    w = pl.yield_(w + 10)
            for i, (s,) in pl.range(n, init_values=(w,)):
                w = pl.yield_(s + i)
            return w
        """
    )
    expected = 5
    for i in range(5):
        expected += 1 if i > 2 else 10
    assert run(after, 5) == [expected + sum(range(5))]


def test_a_branch_that_leaves_takes_no_part() -> None:
    source = """
        @Opaque
        def run(self, n: idx) -> idx:
            if n > 3:
                return n
            else:
                t = n + 1
            t = t + 1
            return t
        """
    after = ssa(source)
    assert [run(after, n) for n in (2, 7)] == [[4], [7]]


FLAGS = {
    "a flag of the user": """
        @Opaque
        def run(self, n: idx, k: idx) -> idx:
            found = False
            for i in pl.range(n):
                if i * i == k:
                    at = i * 3
                    found = True
            r = 0 - 1
            if found:
                r = at
            return r
        """,
    "a nested break": """
        @InCore
        def run(self, n: idx, k: idx) -> idx:
            r = 0
            for i in pl.range(n):
                if i > 2:
                    if i > k:
                        break
                    t = i * 10
                else:
                    t = i
                r = r + t
            return r
        """,
    "a nested continue": """
        @InCore
        def run(self, n: idx, k: idx) -> idx:
            r = 0
            for i in pl.range(n):
                if i > 2:
                    if i > k:
                        continue
                    t = i * 10
                else:
                    t = i
                r = r + t
            return r
        """,
    "a break and a continue": """
        @InCore
        def run(self, n: idx, k: idx) -> idx:
            r = 0
            for i in pl.range(n):
                if i > 5:
                    break
                else:
                    if i > 2:
                        if i == k:
                            continue
                        t = i * 10
                    else:
                        t = i
                r = r + t
            return r
        """,
    "each branch may escape": """
        @InCore
        def run(self, n: idx, k: idx) -> idx:
            r = 0
            for i in pl.range(n):
                if i < 5:
                    if i + 1 != k:
                        t = i * 3
                    else:
                        for j in pl.range(i):
                            r = r + j
                        continue
                    r = r + 1
                else:
                    break
                r = r + t
            return r
        """,
    "loops inside each other": """
        @InCore
        def run(self, n: idx, k: idx) -> idx:
            r = 0
            for i in pl.range(n):
                for j in pl.range(4):
                    if j > 1:
                        if i + j == k:
                            break
                        if i > 6:
                            continue
                        t = i * j
                    else:
                        t = j
                    r = r + t
                if i > 2:
                    if r > 50:
                        continue
                    u = r
                else:
                    u = i
                r = r + u
            return r
        """,
    "a value of the iteration before": """
        @Opaque
        def run(self, n: idx, k: idx) -> idx:
            r = 0
            found = False
            if n > 8:
                t = n
            for i in pl.range(n):
                if found:
                    r = r * 2 + t
                if i < k:
                    t = i + 5
                    found = True
            return r
        """,
    "one of two flags": """
        @Opaque
        def run(self, n: idx, k: idx) -> idx:
            small = False
            big = False
            if n > 6:
                t = n
                big = True
            else:
                if k > 4:
                    t = k * 3
                    small = True
            r = 0
            if small or big:
                r = t
            return r
        """,
}


def python_run(source: str, *args: int) -> Any:
    """What the body of ``run`` gives as Python."""
    body = textwrap.dedent(source).strip().split("\n", 2)[2].replace("pl.range", "range")
    scope: dict[str, Any] = {}
    exec(f"def run({', '.join('nk'[: len(args)])}):\n{body}", scope)
    return scope["run"](*args)


@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_says_that_there_is_a_value(name: str) -> None:
    after = ssa(ctrl_flow_transform()(parse(textwrap.dedent(FLAGS[name]))))
    for n, k in ((0, 4), (6, 4), (6, 25), (6, 3), (9, 100)):
        assert run(after, n, k) == [python_run(FLAGS[name], n, k)]


def test_a_flag_that_says_nothing() -> None:
    source = FLAGS["a flag of the user"]
    refused(
        source.replace("at = i * 3", "if n > 4:\n                        at = i"), "'at' may be undefined", "r = at"
    )
    refused(source.replace("if found:", "if not found:"), "'at' may be undefined", "r = at")
    refused(source.replace("if i * i", "found = n > 2\n                if i * i"), "'at' may be undefined", "r = at")
    refused(source.replace("r = 0 - 1", "r = 0 - 1\n            found = n > 2"), "'at' may be undefined", "r = at")


TWO_FLAGS = FLAGS["a break and a continue"]


def test_the_other_path_is_no_escape() -> None:
    def lowered(source: str) -> ir.Program:
        return ctrl_flow_transform()(parse(textwrap.dedent(source)))

    for old, new in (("continue", "r = r + 2"), ("break", "r = r + 3")):
        source = TWO_FLAGS.replace(old, new)
        with pytest.raises(PassError, match="'t' may be undefined"):
            # Where `r` is raised instead, `t` has no value then: in the first iteration nothing assigned it before.
            ssa(lowered(source.replace("t = i * 10", "r = r * 2").replace("i > 2", "i >= 0")))
    source = FLAGS["each branch may escape"].replace("continue", "r = r + 1")
    with pytest.raises(PassError, match="'t' may be undefined"):
        ssa(lowered(source))


def test_flags_that_do_not_tell_refuse() -> None:
    source = FLAGS["a value of the iteration before"]
    refused(source.replace("found = False", "found = True"), "'t' may be undefined", "r = r * 2 + t")
    refused(
        source.replace("t = i + 5", "if k > 3:\n                        t = i + 5"), "'t' may be undefined", "* 2 + t"
    )
    source = FLAGS["one of two flags"]
    refused(source.replace("t = k * 3", "r = k"), "'t' may be undefined", "r = t")
    refused(source.replace("small or big", "not small"), "'t' may be undefined", "r = t")


KERNELS = """
    @Opaque
    def run(self, n: idx, x: f32[8, 16], y: f32[8, 16], out: pl.InOut[f32[8, 16]]) -> f32[8, 16]:
        with pl.at(level=pl.Level.CORE_GROUP):
            for i in pl.range(3):
                h = x
        with pl.at(level=pl.Level.CORE_GROUP):
            a = pl.add(h, y)
            for j in pl.range(n):
                a = pl.add(a, h)
                h = y
            out = pl.assemble(out, a, [0, 0])
        return out
    """


def test_a_kernel_reads_what_an_earlier_one_made_and_assigns_it_then() -> None:
    before = parse(textwrap.dedent(KERNELS))
    x, y = ramp(8, 16), ramp(8, 16) * 3 + 1
    for n in (0, 1, 3):
        expected = x + y
        for j in range(n):
            expected = expected + (y if j else x)
        for program in (before, ssa(before)):
            out = zeros(8, 16)
            np.testing.assert_array_equal(run(program, n, x, y, out)[0], expected)
    refused(KERNELS.replace("pl.range(3)", "pl.range(n)"), "'h' may be undefined", "a = pl.add(h, y)")


# --- types and attributes ---------------------------------------------------------------------------------------------


def test_extents_follow_their_variables() -> None:
    after = ssa(
        """
        @Opaque
        def run(self, n: idx) -> f32[8, 8]:
            k = 4
            t = pl.create_tensor([k, 8], dtype=pl.FP32)
            k = n + 3
            u = pl.add(t, 1.0)
            v = pl.create_tensor([k, 8], dtype=pl.FP32)
            w = pl.add(v, 1.0)
            return u
        """
    )
    kinds = {v.name_hint: v.type.shape[0].name_hint for v in definitions(after["run"]) if hasattr(v.type, "shape")}
    # `u` is as large as `t`, whatever was assigned to the extent since.
    assert kinds == {
        "t__ssa_v0": "k__ssa_v0",
        "u__ssa_v0": "k__ssa_v0",
        "v__ssa_v0": "k__ssa_v1",
        "w__ssa_v0": "k__ssa_v1",
    }


def test_extents_in_signatures() -> None:
    program = parse(
        textwrap.dedent(
            """
            @Opaque
            def run(self, m: idx, x: f32[m, 8], y: f32[m, 8]) -> f32[m, 8]:
                m = m + 1
                z = pl.add(x, y)
                z = pl.add(z, 1.0)
                return z
            """
        )
    )
    function = convert_to_ssa()(program)["run"]
    m = function.params[0]
    assert m.name_hint == "m__ssa_v0"
    assert function.params[1].type.shape[0] is m and function.return_types[0].shape[0] is m
    kinds = [v.type for v in definitions(function) if v.name_hint.startswith("z__")]
    assert len(kinds) == 2 and all(kind.shape[0] is m for kind in kinds)


def test_valid_extents_inside_a_loop() -> None:
    """Row 10: renamed with the variable; a tile of another iteration does not go around for nothing."""
    after = same_form(
        """
        @InCore
        def run(self, n: idx, x: f32[64, 16], o: pl.Out[f32[64, 16]]) -> f32[64, 16]:
            k = 4
            t = pl.load(x, [0, 0], [16, 16], valid_shape=[k, 16])
            for i in pl.range(n):
                k = k + 1
                t = pl.load(x, [i * 16, 0], [16, 16], valid_shape=[k, 16])
                o = pl.store(t, [i * 16, 0], o)
            return o
        """,
        """
        @InCore
        def run(self, n: idx, x: f32[64, 16], o: pl.Out[f32[64, 16]]) -> f32[64, 16]:
            k: idx = 4
            t = pl.load(x, [0, 0], [16, 16], valid_shape=[k, 16])
            for i, (k1, o1) in pl.range(n, init_values=(k, o)):
                k2 = k1 + 1
                t2 = pl.load(x, [i * 16, 0], [16, 16], valid_shape=[k2, 16])
                o2 = pl.store(t2, [i * 16, 0], o1)
                kr, o_r = pl.yield_(k2, o2)
            return o_r
        """,
    )
    x, o = ramp(64, 16), zeros(64, 16)
    run(after, 2, x, o)
    assert (o[:5] == x[:5]).all() and not o[5:16].any() and (o[16:22] == x[16:22]).all()


def test_carries_whose_extents_are_carried() -> None:
    after = ssa(
        """
        @InCore
        def run(self, n: idx, x: f32[64, 16], o: pl.Out[f32[64, 16]]) -> f32[64, 16]:
            k = 4
            t = pl.load(x, [0, 0], [16, 16], valid_shape=[k, 16])
            for i in pl.range(n):
                o = pl.store(t, [i * 16, 0], o)
                k = k + 1
                t = pl.load(x, [i * 16, 0], [16, 16], valid_shape=[k, 16])
            return o
        """
    )
    loop = next(s for s in walk(after["run"].body) if isinstance(s, ir.ForStmt))
    extents = {
        v.name_hint: v.type.valid_extents[0].name_hint
        for v in (*loop.iter_args, *loop.return_vars)
        if v.name_hint[0] == "t"
    }
    assert extents == {"t__iter_v1": "k__iter_v1", "t__rv_v2": "k__rv_v2"}


def test_scope_attributes_see_the_versions_at_entry() -> None:
    after = ssa(
        """
        @Opaque
        def run(self, x: f32[96, 32], o: pl.Out[f32[96, 32]]) -> f32[96, 32]:
            for g in pl.parallel(3):
                wide = g * 4 + 2
                for b in pl.spmd(wide):
                    t = pl.load(x, [b * 8, 0], [8, 32])
                    o = pl.store(t, [b * 8, 0], o)
            with pl.at(level=pl.Level.CORE_GROUP, no_dep_args=[o]) as tid:
                o = pl.assemble(o, pl.mul(o, 2.0), [0, 0])
            with pl.at(level=pl.Level.CORE_GROUP, deps=[tid], dumps=[o]):
                o = pl.assemble(o, pl.mul(o, 2.0), [0, 0])
            return o
        """
    )
    scopes = [s for s in walk(after["run"].body) if isinstance(s, ir.ScopeStmt)]
    spmd = next(s for s in scopes if isinstance(s, ir.SpmdScopeStmt))
    assert spmd.core_num.name_hint == "wide__ssa_v0"
    kernels = [s for s in scopes if s.attrs.get("arg_direction_overrides_vars") or s.attrs.get("manual_dep_edges")]
    first, second = kernels
    assert first.attrs["arg_direction_overrides_vars"][0].name_hint == "o__rv_v2"
    tid = first.attrs["task_id_var"]
    assert tid.name_hint == "tid__ssa_v0" and second.attrs["manual_dep_edges"][0] is tid
    assert second.attrs["dump_vars"][0].name_hint == "o__ssa_v4"


def test_call_and_submit_alike() -> None:
    """Row 31: arguments, dependencies and attributes of both are renamed."""
    after = ssa(
        """
        @InCore
        def k(self, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
            return pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], o)
        @Orchestration
        def run(self, n: idx, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
            for i in pl.range(n):
                o = self.k(x, o)
                o, t = pl.submit(self.k, x, o)
                o, u = pl.submit(self.k, x, o, deps=[t], dumps=[o])
            o, v = pl.submit(self.k, x, o, deps=[u])
            return o
        """
    )
    defined = {v: None for v in definitions(after["run"])}
    for node in walk(after["run"].body, types=True):
        if isinstance(node, ir.Var):
            assert node in defined


def test_spans_comments_and_attributes_survive() -> None:
    program = pl.parse(
        textwrap.dedent(
            """
            import pypto.language as pl
            @pl.function
            def f(n: pl.Scalar[pl.INDEX]):
                # the sum
                s = n
                # all of them
                for i in pl.range(n, attrs={"note": 3}):
                    # one more
                    s = s + i
            """
        )
    )
    before = list(ir.flatten_to_stmts(program.body))
    after = list(ir.flatten_to_stmts(convert_to_ssa()(ir.Program([program], "P"))["f"].body))
    assert [s.leading_comments for s in after] == [["the sum"], ["all of them"]]
    assert [s.span for s in after] == [s.span for s in before]
    assert after[1].attrs == before[1].attrs
    assert ir.flatten_to_stmts(after[1].body)[0].leading_comments == ["one more"]


# --- task ids ---------------------------------------------------------------------------------------------------------

KERNEL = "with pl.at(level=pl.Level.CORE_GROUP"


def test_a_task_id_of_a_loop() -> None:
    after = ssa(
        f"""
        @Opaque
        def run(self, n: idx, acc: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
            last = None
            for r in pl.range(n):
                {KERNEL}) as last:
                    acc = pl.assemble(acc, pl.add(acc, 1.0), [0, 0])
            {KERNEL}, deps=[last]):
                acc = pl.assemble(acc, pl.mul(acc, 2.0), [0, 0])
            return acc
        """
    )
    check_round_trips(after)
    loop = next(s for s in walk(after["run"].body) if isinstance(s, ir.ForStmt))
    assert [a.name_hint for a in loop.iter_args] == ["acc__iter_v1", "last__iter_v1"]
    scopes = [s for s in walk(after["run"].body) if isinstance(s, ir.ScopeStmt)]
    placeholder, scope, end = ir.flatten_to_stmts(loop.body)
    assert placeholder.var is scope.attrs["task_id_var"] is end.value[1]
    assert scopes[1].attrs["manual_dep_edges"][0] is loop.return_vars[1]
    for n in (0, 3):
        acc = ramp(8, 8)
        run(after, n, acc)
        np.testing.assert_array_equal(acc, (ramp(8, 8) + n) * 2)


def test_task_ids_without_a_seed() -> None:
    """Row 25: the null id stands where no task was launched."""
    after = ssa(
        f"""
        @Opaque
        def run(self, n: idx, acc: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
            if n > 3:
                {KERNEL}) as t:
                    acc = pl.assemble(acc, pl.add(acc, 1.0), [0, 0])
            for r in pl.range(n):
                {KERNEL}) as u:
                    acc = pl.assemble(acc, pl.add(acc, 1.0), [0, 0])
            {KERNEL}, deps=[t, u]):
                acc = pl.assemble(acc, pl.mul(acc, 2.0), [0, 0])
            return acc
        """
    )
    check_round_trips(after)
    branch = next(s for s in walk(after["run"].body) if isinstance(s, ir.IfStmt))
    seed, end = ir.flatten_to_stmts(branch.else_body)
    assert seed.value.op.name == "system.task_invalid" and end.value[1] is seed.var
    loop = next(s for s in walk(after["run"].body) if isinstance(s, ir.ForStmt))
    assert [a.name_hint for a in loop.iter_args] == ["acc__iter_v3", "u__iter_v1"]
    for n in (0, 2, 5):
        acc = ramp(8, 8)
        run(after, n, acc)
        np.testing.assert_array_equal(acc, (ramp(8, 8) + n + (n > 3)) * 2)


# --- scopes -----------------------------------------------------------------------------------------------------------


def test_scopes_are_transparent_for_definitions() -> None:
    after = ssa(
        """
        @Opaque
        def run(self, x: f32[8, 8], o: pl.Out[f32[8, 8]]) -> f32[8, 8]:
            with pl.at(level=pl.Level.HOST, role=pl.Role.Orchestrator):
                y = pl.add(x, 4.0)
                with pl.at(level=pl.Level.CHIP):
                    z = pl.mul(y, 0.5)
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.assemble(o, pl.sub(z, y), [0, 0])
            return o
        """
    )
    x, o = ramp(8, 8), zeros(8, 8)
    run(after, x, o)
    np.testing.assert_array_equal(o, (x + 4) * 0.5 - (x + 4))


def test_kernels_do_not_exchange_locals_of_one_name() -> None:
    """A tile of one kernel is no initial value of a loop, and no old value of a branch, in another."""
    after = same_form(
        """
        @Opaque
        def run(self, n: idx, x: f32[64, 16], o: pl.Out[f32[64, 16]]) -> f32[64, 16]:
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [0, 0], [16, 16])
                o = pl.store(t, [0, 0], o)
            with pl.at(level=pl.Level.CORE_GROUP):
                for i in pl.range(n):
                    t = pl.load(x, [i * 16, 0], [16, 16])
                    o = pl.store(t, [i * 16, 0], o)
                if n > 3:
                    t = pl.load(x, [0, 0], [16, 16])
                    o = pl.store(t, [16, 0], o)
            return o
        """,
        """
        @Opaque
        def run(self, n: idx, x: f32[64, 16], o: pl.Out[f32[64, 16]]) -> f32[64, 16]:
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [0, 0], [16, 16])
                o1 = pl.store(t, [0, 0], o)
            with pl.at(level=pl.Level.CORE_GROUP):
                for i, (o2,) in pl.range(n, init_values=(o1,)):
                    t1 = pl.load(x, [i * 16, 0], [16, 16])
                    o3 = pl.store(t1, [i * 16, 0], o2)
                    o4 = pl.yield_(o3)
                if n > 3:
                    t2 = pl.load(x, [0, 0], [16, 16])
                    o5 = pl.store(t2, [16, 0], o4)
                    o6 = pl.yield_(o5)
                else:
                    o6 = pl.yield_(o4)
            return o6
        """,
    )
    x, o = ramp(64, 16), zeros(64, 16)
    run(after, 4, x, o)
    assert (o[:16] == x[:16]).all() and (o[16:32] == x[:16]).all() and (o[32:] == x[32:]).all()


def test_loops_of_kernels_keep_locals_that_a_later_kernel_has_under_the_same_name() -> None:
    """The order-aware answer: a later kernel that assigns the name itself needs nothing of this one."""
    after = ssa(
        """
        @Opaque
        def run(self, n: idx, w: f32[16, 16], o: pl.Out[f32[16, 16]]) -> f32[16, 16]:
            with pl.at(level=pl.Level.CORE_GROUP):
                for i in pl.range(n):
                    t = pl.add(w, 1.0)
                    o = pl.assemble(o, t, [0, 0])
            with pl.at(level=pl.Level.CORE_GROUP):
                for j in pl.range(3):
                    t = pl.add(w, 3.0)
                o = pl.assemble(o, t, [0, 0])
            return o
        """
    )
    loops = [s for s in walk(after["run"].body) if isinstance(s, ir.ForStmt)]
    assert [[a.name_hint for a in loop.iter_args] for loop in loops] == [["o__iter_v1"], ["t__iter_v2"]]


def test_a_value_of_a_kernels_loop_that_another_kernel_reads() -> None:
    after = ssa(
        """
        @Opaque
        def run(self, w: f32[16, 16], o: pl.Out[f32[16, 16]]) -> f32[16, 16]:
            with pl.at(level=pl.Level.CORE_GROUP):
                for i in pl.range(4):
                    y = pl.add(w, 1.0)
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.assemble(o, pl.mul(y, 2.0), [0, 0])
            return o
        """
    )
    w, o = ramp(16, 16), zeros(16, 16)
    run(after, w, o)
    np.testing.assert_array_equal(o, (w + 1) * 2)


def test_the_yield_of_a_runtime_scope_is_the_loops() -> None:
    """Row 12, with natural carries beside the stated one, and a branch that has results of its own."""
    after = same_form(
        """
        @pl.function(type=pl.FunctionType.Orchestration, auto_scope=False)
        def run(self, n: idx, x: f32[8]) -> f32[8]:
            for i, (a,) in pl.range(n, init_values=(x,)):
                with pl.scope():
                    if i > 2:
                        x = pl.add(x, 1.0)
                        b = pl.yield_(x)
                    else:
                        b = pl.yield_(a)
                    c = pl.yield_(b)
            return pl.add(c, x)
        """,
        """
        @pl.function(type=pl.FunctionType.Orchestration, auto_scope=False)
        def run(self, n: idx, x: f32[8]) -> f32[8]:
            for i, (a, x1) in pl.range(n, init_values=(x, x)):
                with pl.scope():
                    if i > 2:
                        x2 = pl.add(x1, 1.0)
                        x3, b = pl.yield_(x2, x2)
                    else:
                        x3, b = pl.yield_(x1, a)
                    c, x4 = pl.yield_(b, x3)
            return pl.add(c, x4)
        """,
    )
    x = ramp(8)
    np.testing.assert_array_equal(run(after, 5, x)[0], (x + 2) + (x + 2))


# --- rows of the fault table ------------------------------------------------------------------------------------------


def test_row_1_a_temporary_of_two_loops_is_local_in_both() -> None:
    after = ssa(
        """
        @Opaque
        def run(self, x: f32[96], p: f32[24]) -> f32[24]:
            for a in pl.range(3):
                off = a * 24
                p = pl.add(p, pl.slice(x, [24], [off]))
            for a in pl.range(3):
                off = a * 24 + 4
                p = pl.add(p, pl.slice(x, [24], [off]))
            return p
        """
    )
    loops = [s for s in walk(after["run"].body) if isinstance(s, ir.ForStmt)]
    assert [[a.name_hint for a in loop.iter_args] for loop in loops] == [["p__iter_v1"], ["p__iter_v4"]]
    x, p = ramp(96), zeros(24)
    want = sum(x[a * 24 : a * 24 + 24] + x[a * 24 + 4 : a * 24 + 28] for a in range(3))
    np.testing.assert_array_equal(run(after, x, p)[0], want)


def test_row_2_a_value_of_the_path_without_continue() -> None:
    source = """
        @InCore
        def run(self, n: idx, k: idx) -> idx:
            res = 100
            for a in pl.range(n):
                if a == k:
                    continue
                res = a
            return res
        """
    after = ssa(ctrl_flow_transform()(parse(textwrap.dedent(source))))
    for n, k in ((5, 4), (5, 2), (1, 0), (0, 0)):
        assert run(after, n, k) == [python_run(source, n, k)]
    lowered = ctrl_flow_transform()(parse(textwrap.dedent(source.replace("res = 100\n", "k = k\n"))))
    with pytest.raises(PassError, match="'res' may be undefined"):
        convert_to_ssa()(lowered)


def test_row_3_unrelated_values_of_one_name() -> None:
    """Values of different shapes that nobody reads behind the branches do not meet."""
    f32 = ir.TensorType([8], pl.FP32)
    wide = ir.TensorType([16], pl.FP32)
    n = ir.Var("n", ir.ScalarType(pl.INDEX), ir.Span.unknown())
    x, y = ir.Var("x", f32, ir.Span.unknown()), ir.Var("y", wide, ir.Span.unknown())
    t = ir.Var("t", f32, ir.Span.unknown())
    span = ir.Span.unknown()
    branch = ir.IfStmt(n > 3, ir.AssignStmt(t, x, span), ir.AssignStmt(t, y, span), [], span)

    def program(*rest: ir.Stmt) -> ir.Program:
        body = ir.SeqStmts([branch, *rest], span)
        return ir.Program([ir.Function("run", [n, x, y], [], body, span)], "P", span)

    after = convert_to_ssa()(program(ir.ReturnStmt([n], span)))
    PropertyVerifierRegistry.verify_or_throw(FORM, after)
    assert not any(s.return_vars for s in walk(after["run"].body) if isinstance(s, ir.IfStmt))
    with pytest.raises(PassTypeError, match="'t' has different types on two paths") as info:
        convert_to_ssa()(program(ir.ReturnStmt([t], span)))
    assert info.value.code == "PT1021"


def test_row_4_suffixes_mean_nothing() -> None:
    after = ssa(
        """
        @Opaque
        def run(self, n: idx) -> idx:
            buf = n
            buf_1 = n + 1
            buf_v2 = n + 2
            for i in pl.range(n):
                buf_1 = buf_1 + buf
                buf = buf + buf_v2
            return buf * 100 + buf_1
        """
    )
    loop = next(s for s in walk(after["run"].body) if isinstance(s, ir.ForStmt))
    assert [a.name_hint for a in loop.iter_args] == ["buf__iter_v1", "buf_1__iter_v1"]
    buf, one = 3, 4
    for _ in range(3):
        one, buf = one + buf, buf + 5
    assert run(after, 3) == [buf * 100 + one]


def test_row_5_the_result_depends_on_the_program_only() -> None:
    source = """
        @Opaque
        def run(self, n: idx) -> idx:
            c = n
            b = n
            a = n
            for i in pl.range(n):
                if i > 2:
                    b = c
                    a = b
                c = a + b
            return a
        """
    texts = {ssa(source).as_python(format=False) for _ in range(3)}
    assert len(texts) == 1
    (text,) = texts
    assert "(a__iter_v1, b__iter_v1, c__iter_v1)" in text and "a__phi_v4, b__phi_v4 = pl.yield_" in text


def test_row_11_a_yield_in_the_middle() -> None:
    program = parse(
        "@Opaque\ndef run(self, n: idx) -> idx:\n    for i, (s,) in pl.range(n, init_values=(0,)):\n        r = pl.yield_(s)\n    return r"
    )
    loop, last = program["run"].body.stmts
    body = ir.SeqStmts([loop.body, ir.EvalStmt(loop.loop_var, loop.span)])
    function = program["run"].replace(body=ir.SeqStmts([loop.replace(body=body), last]))
    with pytest.raises(InternalError, match="YieldStmt at position 0"):
        convert_to_ssa()(program.with_functions([function]))


def test_row_13_calls_in_yields_and_single_statements() -> None:
    after = ssa(
        """
        @Opaque
        def run(self, n: idx, x: f32[8]) -> f32[8]:
            for i, (a,) in pl.range(n, init_values=(x,)):
                b = pl.yield_(pl.add(a, 1.0))
            for i in pl.range(n):
                x = pl.add(x, b)
            return pl.add(x, b)
        """
    )
    x = ramp(8)
    b = x + 3
    np.testing.assert_array_equal(run(after, 3, x)[0], x + 3 * b + b)


def test_row_26_swap_and_rotation_are_simultaneous() -> None:
    after = same_form(
        """
        @Opaque
        def run(self, n: idx, a: f32[8], b: f32[8], c: f32[8]) -> tuple[f32[8], f32[8], f32[8]]:
            for i in pl.range(n):
                t = a
                a = b
                b = c
                c = t
            return a, b, c
        """,
        """
        @Opaque
        def run(self, n: idx, a: f32[8], b: f32[8], c: f32[8]) -> tuple[f32[8], f32[8], f32[8]]:
            for i, (a1, b1, c1) in pl.range(n, init_values=(a, b, c)):
                t = a1
                a2 = b1
                b2 = c1
                c2 = t
                a3, b3, c3 = pl.yield_(a2, b2, c2)
            return a3, b3, c3
        """,
    )
    a, b, c = ramp(8), ramp(8) + 10, ramp(8) + 20
    for got, want in zip(run(after, 4, a, b, c), (b, c, a), strict=True):
        np.testing.assert_array_equal(got, want)


def test_row_27_no_iterations() -> None:
    source = """
        @Opaque
        def run(self, x: f32[8]) -> f32[8]:
            keep = x
            for a in pl.range(0):
                keep = pl.add(keep, 1.0)
                own = pl.add(keep, 1.0)
            return keep
        """
    np.testing.assert_array_equal(run(ssa(source), ramp(8))[0], ramp(8))
    refused(source.replace("return keep", "return own"), "'own' may be undefined", "return own")


def test_row_28_an_if_without_else_in_a_loop() -> None:
    after = ssa(
        """
        @Opaque
        def run(self, n: idx, x: f32[8]) -> f32[8]:
            for i in pl.range(n):
                if i % 2 == 0:
                    x = pl.add(x, 1.0)
            return x
        """
    )
    branch = next(s for s in walk(after["run"].body) if isinstance(s, ir.IfStmt))
    loop = next(s for s in walk(after["run"].body) if isinstance(s, ir.ForStmt))
    assert branch.else_body.value[0] is loop.iter_args[0]
    np.testing.assert_array_equal(run(after, 5, ramp(8))[0], ramp(8) + 3)


def test_row_29_everything_nested() -> None:
    source = f"""
        @Opaque
        def run(self, n: idx, x: f32[8, 8], o: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
            k = 0
            while k < n:
                if k % 2 == 0:
                    for i in pl.range(k):
                        {KERNEL}):
                            y = pl.add(x, 1.0)
                            o = pl.assemble(o, pl.add(o, y), [0, 0])
                else:
                    {KERNEL}):
                        for j in pl.range(k):
                            if j > 0:
                                o = pl.assemble(o, pl.mul(o, 2.0), [0, 0])
                k = k + 1
            {KERNEL}):
                o = pl.assemble(o, pl.add(o, 1.0), [0, 0])
            return o
        """
    after = ssa(source)
    x, o = ramp(8, 8), ramp(8, 8)
    want = o.copy()
    for k in range(5):
        for i in range(k):
            if k % 2 == 0:
                want = want + (x + 1)
            elif i > 0:
                want = want * 2
    run(after, 5, x, o)
    np.testing.assert_array_equal(o, want + 1)


# --- escapes that stay ------------------------------------------------------------------------------------------------


def test_escapes_of_host_loops_that_lose_nothing_stay() -> None:
    source = """
        @Opaque
        def run(self, n: idx, k: idx) -> idx:
            s = 0
            for i in pl.range(n):
                if i == k:
                    break
                else:
                    w = i * 2
                s = s + w
            return s
        """
    after = ssa(source)
    assert any(isinstance(s, ir.BreakStmt) for s in walk(after["run"].body))
    for n, k in ((5, 3), (5, 9), (0, 0)):
        assert run(after, n, k) == [python_run(source, n, k)]


def test_an_escape_that_stays_in_front_of_the_only_assignment() -> None:
    refused(
        """
        @Opaque
        def run(self, n: idx) -> idx:
            for i in pl.range(4):
                if i > n:
                    break
                t = i
            return t
        """,
        "'t' may be undefined: the loop that assigns it may be left before",
        "return t",
    )


@pytest.mark.parametrize("escape", ["break", "continue"])
def test_an_escape_that_would_lose_a_value(escape: str) -> None:
    source = f"""
        @Opaque
        def run(self, n: idx, k: idx) -> idx:
            s = 0
            for i in pl.range(n):
                s = s + i
                if i > k:
                    {escape}
                s = s + 1
            return s
        """
    program = parse(textwrap.dedent(source))
    with pytest.raises(InternalError, match="'s' is lost"):
        convert_to_ssa()(program)
    after = ssa(ctrl_flow_transform()(program))
    assert run(after, 6, 3) == [python_run(source, 6, 3)]


# --- nothing to do ----------------------------------------------------------------------------------------------------


def test_text_of_the_host_language_is_kept() -> None:
    program = pl.parse(
        textwrap.dedent(
            """
            import pypto.language as pl
            @pl.program
            class P:
                @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
                def report(x: pl.Tensor[[8], pl.FP32]):
                    total = 0
                    for v in x:
                        total = total + v
                    print(total)
            """
        )
    )
    assert convert_to_ssa()(program) is program


def test_only_functions_that_change_are_new() -> None:
    program = parse(
        textwrap.dedent(
            """
            @Opaque
            def done(self, n__ssa_v0: idx) -> idx:
                for i__idx_v0, (s,) in pl.range(n__ssa_v0, init_values=(0,)):
                    r = pl.yield_(s + i__idx_v0)
                return r
            @Opaque
            def run(self, n: idx) -> idx:
                return n
            """
        )
    )
    after = ssa(program)
    assert after["done"] is program["done"] and after["run"] is not program["run"]


def test_unrolled_copies_share_statements() -> None:
    """Unrolling repeats statements that do not mention the index: one object stands in several places."""
    source = """
        @Opaque
        def run(self, n: idx) -> idx:
            s = n
            for u in pl.unroll(3):
                for i in pl.range(2):
                    t = i + 1
                    s = s + t
                for j, (c,) in pl.range(n, init_values=(s,)):
                    d = pl.yield_(c + 1)
                if n > 2:
                    s = d
            return s + t
        """
    after = ssa(unroll_loops()(parse(textwrap.dedent(source))))
    s, n = 4, 4
    for _ in range(3):
        s = s + 1 + 2
        s = s + n
    assert run(after, n) == [s + 2]


# --- meaning ----------------------------------------------------------------------------------------------------------


def _generated(seed: int, kind: str) -> tuple[ir.Program, Any]:
    body = Generator(seed).program()
    scope: dict[str, Any] = {"range_": range}
    exec(f"{HELPERS}\ndef f(n):\n{textwrap.indent(version(body, 'py'), '    ')}", scope)
    text = textwrap.indent(version(body, "pl").replace("range_", "pl.range"), " " * 8)
    helpers = HELPERS.replace("def ", "@pl.inline\ndef ")
    program = pl.parse(
        f"{HEAD}{helpers}@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.{kind})\n"
        f"    def run(self, n: pl.Scalar[pl.INDEX]):\n{text}\n"
    )
    return program, scope["f"]


@pytest.mark.parametrize("kind", ["Orchestration", "InCore"])
@pytest.mark.parametrize("seed", range(1000, 1012))
def test_generated_programs_mean_what_they_meant(seed: int, kind: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program, meaning = _generated(seed, kind)
    after = ssa(ctrl_flow_transform()(program))
    for n in (0, 1, 5):
        assert run(after, n) == list(meaning(n))
