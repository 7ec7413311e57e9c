"""CtrlFlowTransform: forms of the result, refusals, and that every lowered program means what its source means."""

import itertools
import textwrap

import numpy as np
import pytest
from ctrl_flow_kit import check, escapes, lower, python_function, run
from spec_kit import parse, program_text, ramp

from pypto import ir
from pypto.ir.traversal import walk
from pypto.passes.ctrl_flow_transform import ctrl_flow_transform
from pypto.passes.errors import PassError


def same_form(before: str, after: str) -> None:
    """The pass makes ``after`` of ``before``, up to names."""
    result = lower(parse(textwrap.dedent(before)))
    ir.assert_structural_equal(result, parse(textwrap.dedent(after)), enable_auto_mapping=True)


def unchanged(text: str) -> None:
    program = parse(textwrap.dedent(text))
    assert escapes(program) and ctrl_flow_transform()(program) is program


# --- forms ------------------------------------------------------------------------------------------------------------


def test_break_becomes_a_flag_and_for_becomes_while():
    same_form(
        """
        @InCore
        def run(self, lo: idx, hi: idx, lim: idx) -> idx:
            s = 0
            for i in pl.range(lo, hi, 3):
                s = s + 1
                if i >= lim:
                    break
                s = s + i * 10
            return s
        """,
        """
        @InCore
        def run(self, lo: idx, hi: idx, lim: idx) -> idx:
            s = 0
            counter = lo
            flag = False
            while counter < hi and not flag:
                s = s + 1
                if counter >= lim:
                    flag = True
                    pl.yield_()
                else:
                    s = s + counter * 10
                    pl.yield_()
                if not flag:
                    counter = counter + 3
            return s
        """,
    )


def test_a_descending_loop_compares_the_other_way():
    same_form(
        """
        @AIV
        def run(self, n: idx, lim: idx) -> idx:
            s = 0
            for i in pl.range(n, -1, -2):
                if i == lim:
                    break
                s = s + i
            return s
        """,
        """
        @AIV
        def run(self, n: idx, lim: idx) -> idx:
            s = 0
            counter = n
            flag = False
            while counter > -1 and not flag:
                if counter == lim:
                    flag = True
                    pl.yield_()
                else:
                    s = s + counter
                    pl.yield_()
                if not flag:
                    counter = counter + -2
            return s
        """,
    )


def test_continue_keeps_the_loop():
    same_form(
        """
        @AIC
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
        """
        @AIC
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
    )


def test_a_branch_of_nothing_but_continue_becomes_pass():
    same_form(
        """
        @InCore
        def run(self, n: idx, skip: idx) -> idx:
            acc = 0
            while n > 0:
                n = n - 1
                if n == skip:
                    continue
                acc = acc + n
            return acc
        """,
        """
        @InCore
        def run(self, n: idx, skip: idx) -> idx:
            acc = 0
            while n > 0:
                n = n - 1
                if n == skip:
                    pass
                else:
                    acc = acc + n
            return acc
        """,
    )


def test_a_while_keeps_its_condition():
    same_form(
        """
        @InCore
        def run(self, n: idx, lim: idx) -> idx:
            while n > 0:
                n = n - 1
                if n < lim:
                    pass
                else:
                    break
            return n
        """,
        """
        @InCore
        def run(self, n: idx, lim: idx) -> idx:
            flag = False
            while n > 0 and not flag:
                n = n - 1
                if n < lim:
                    pl.yield_()
                else:
                    flag = True
                    pl.yield_()
            return n
        """,
    )


def test_statements_behind_an_unconditional_break_are_dropped():
    same_form(
        """
        @InCore
        def run(self, n: idx) -> idx:
            s = 0
            for i in pl.range(n):
                s = s + 1
                break
                s = s + 100
            return s
        """,
        """
        @InCore
        def run(self, n: idx) -> idx:
            s = 0
            counter = 0
            flag = False
            while counter < n and not flag:
                s = s + 1
                flag = True
                if not flag:
                    counter = counter + 1
            return s
        """,
    )


def test_an_explicit_loop_yields_on_each_path():
    """The example of the general rule: the operand isn't known at the escape, so the old value is carried on there."""
    same_form(
        """
        @InCore
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
        """
        @InCore
        def run(self, n: idx, z: idx, lim: idx) -> idx:
            counter = 0
            flag = False
            for (s,) in pl.while_(init_values=(z,)):
                pl.cond(counter < n and not flag)
                s1 = s + 1
                if counter > 2:
                    if counter == lim:
                        flag = True
                        p2 = pl.yield_(s)
                    else:
                        p2 = pl.yield_(s)
                    p3 = pl.yield_(p2)
                else:
                    p3 = pl.yield_(s)
                if not flag:
                    s2 = s1 + counter
                    p4 = pl.yield_(s2)
                else:
                    p4 = pl.yield_(p3)
                if not flag:
                    counter = counter + 1
                r = pl.yield_(p4)
            return r
        """,
    )


def test_names_have_one_counter():
    text = """
    @InCore
    def run(self, n: idx, z: idx, lim: idx) -> idx:
        for i, (s,) in pl.range(n, init_values=(z,)):
            if i > 2:
                if i == lim:
                    break
            r = pl.yield_(s + 2)
        return r
    """
    shown = str(lower(parse(textwrap.dedent(text))))
    for name in (
        "break__tmp_v0",
        "i__idx_v1",
        "s__phi_v2",
        "s__phi_v3",
        "yield__tmp_v4",
        "s__phi_v5",
    ):
        assert f" {name}: " in shown, shown


def test_an_operand_that_is_no_variable():
    """It is bound on the normal path; a break carries the old value on, a continue the expression if it can."""
    same_form(
        """
        @InCore
        def run(self, n: idx, z: idx, lim: idx) -> tuple[idx, idx]:
            for i, (s, t) in pl.range(n, init_values=(z, z)):
                if i > lim:
                    continue
                x = i * 2
                a, b = pl.yield_(s + 1, t + x)
            return a, b
        """,
        """
        @InCore
        def run(self, n: idx, z: idx, lim: idx) -> tuple[idx, idx]:
            for i, (s, t) in pl.range(n, init_values=(z, z)):
                if i > lim:
                    p, q = pl.yield_(s + 1, t)
                else:
                    x = i * 2
                    y = s + 1
                    w = t + x
                    p, q = pl.yield_(y, w)
                a, b = pl.yield_(p, q)
            return a, b
        """,
    )


def test_the_sign_of_a_step_that_is_not_constant_is_tested():
    result = check(
        """
        @InCore
        def run(self, a: idx, b: idx, step: idx, lim: idx) -> idx:
            s = 0
            for i in pl.range(a, b, step):
                if i == lim:
                    break
                s = s * 10 + i
            return s
        """,
        python_function(
            """
            def run(a, b, step, lim):
                s = 0
                for i in range(a, b, step):
                    if i == lim:
                        break
                    s = s * 10 + i
                return s
            """
        ),
        *itertools.product((0, 5), (0, 6), (1, 2, -1, -3), (99, 3)),
    )
    shown = str(result)
    assert "step > 0 and i__idx_v1 < b or step < 0 and i__idx_v1 > b" in shown


@pytest.mark.parametrize(
    ("step", "condition"),
    [("pl.max(m, 1)", "<"), ("pl.max(m, 2) * 3 + 1", "<"), ("pl.max(m, 1) * -2", ">"), ("pl.min(m, -1)", ">")],
)
def test_the_sign_of_a_step_that_is_provable(step, condition):
    text = f"""
    @InCore
    def run(self, n: idx, m: idx) -> idx:
        s = 0
        for i in pl.range(n, 20, {step}):
            s = s + i
            break
        return s
    """
    assert f"while i__idx_v1 {condition} 20 and not break__tmp_v0:" in str(lower(parse(textwrap.dedent(text))))


# --- sharing, spans, comments, refusals ----------------------------------------------------------------------------------------


def test_nothing_to_do_gives_the_same_object():
    program = parse(
        """
@InCore
def run(self, n: idx) -> idx:
    s = 0
    for i in pl.range(n):
        while s < i:
            s = s + 1
    return s
"""
    )
    assert ctrl_flow_transform()(program) is program


def test_functions_without_escapes_stay_the_same_objects():
    program = parse(
        """
@InCore
def other(self, n: idx) -> idx:
    return n
@InCore
def run(self, n: idx) -> idx:
    s = 0
    for i in pl.range(n):
        s = s + 1
        if i == 3:
            break
    return s
"""
    )
    result = lower(program)
    assert result["other"] is program["other"] and result["run"] is not program["run"]


def test_the_input_stays_as_it_is():
    text = """
    @InCore
    def run(self, n: idx) -> idx:
        s = 0
        # the loop
        for i in pl.range(n):
            # count
            s = s + 1
            # not this one
            continue
        return s
    """
    program = parse(textwrap.dedent(text))
    before = str(program)
    lower(program)
    assert str(program) == before


def test_comments_and_spans_survive():
    text = """
    @InCore
    def run(self, n: idx) -> idx:
        s = 0
        # the loop
        for i in pl.range(n):
            # the test
            if i == 3:
                # enough
                break
            # skip
            if i == 1:
                # nothing here
                continue
            # count
            s = s + 1
        return s
    """
    program = parse(textwrap.dedent(text))
    result = lower(program)
    for words in ("the loop", "the test", "enough", "skip", "nothing here", "count"):
        assert str(result).count(f"# {words}\n") == 1, result
    old = next(s for s in walk(program) if isinstance(s, ir.BreakStmt))
    new = next(
        s for s in walk(result) if isinstance(s, ir.AssignStmt) and isinstance(s.value, ir.ConstBool) and s.value.value
    )
    assert new.span == old.span
    head = next(s for s in walk(result) if isinstance(s, ir.AssignStmt) and s.var.name_hint == "i__idx_v1")
    assert head.leading_comments == ["the loop"]


def test_attributes_and_types_follow_the_counter():
    text = """
    @InCore
    def run(self, n: idx, x: f32[8, 8], o: pl.Out[f32[8, 8]]) -> f32[8, 8]:
        for i in pl.range(1, n):
            t = pl.load(x, [0, 0], [8, 8], valid_shape=[i, 8])
            o = pl.store(t, [0, 0], o)
            if i == 3:
                break
        return o
    """
    program = parse(textwrap.dedent(text))
    result = lower(program)
    old = next(s for s in walk(program) if isinstance(s, ir.ForStmt)).loop_var
    assert all(node is not old for node in walk(result, types=True))
    o = np.zeros((8, 8), np.float32)
    run(result, 8, ramp(8, 8), o)
    np.testing.assert_array_equal(o[:3], ramp(8, 8)[:3])


def refusal(text: str, phrase: str, line: str) -> PassError:
    """The program is refused at a line of the user's, with a code and a hint."""
    text = textwrap.dedent(text)
    with pytest.raises(PassError, match=phrase) as info:
        ctrl_flow_transform()(parse(text))
    error = info.value
    assert error.code == "PT1045" and error.hint
    assert program_text(text).splitlines()[error.span.begin_line - 1].strip().startswith(line)
    return error


def test_a_break_out_of_an_spmd_region_is_refused():
    refusal(
        """
        @Opaque
        def run(self, n: idx) -> idx:
            s = 0
            for i in pl.range(n):
                with pl.spmd(4):
                    s = s + pl.tile.get_block_idx()
                    if s > 3:
                        break
            return s
        """,
        "'break' inside an spmd region can't leave a loop outside it",
        "break",
    )


def test_a_break_out_of_a_pipelined_loop_is_refused():
    refusal(
        """
        @InCore
        def run(self, n: idx) -> idx:
            s = 0
            for i in pl.pipeline(n, stage=2):
                s = s + 1
                if s > 3:
                    break
            return s
        """,
        "'break' can't leave a pipelined loop",
        "for",
    )


def test_a_continue_in_a_pipelined_loop_is_lowered():
    def want(n):
        return sum(i for i in range(n) if i != 2)

    result = check(
        """
        @InCore
        def run(self, n: idx) -> idx:
            s = 0
            for i in pl.pipeline(n, stage=2):
                if i == 2:
                    continue
                s = s + i
            return s
        """,
        want,
        (0,),
        (6,),
    )
    loop = next(s for s in walk(result) if isinstance(s, ir.ForStmt))
    assert loop.kind is ir.ForKind.Pipeline and loop.attrs["pipeline_stages"] == 2


def test_a_break_in_a_parallel_loop_built_by_hand_is_refused():
    program = parse(
        """
@InCore
def run(self, n: idx) -> idx:
    s = 0
    for i in pl.range(n):
        s = s + 1
        break
    return s
"""
    )
    function = program["run"]
    stmts = [s.replace(kind=ir.ForKind.Parallel) if isinstance(s, ir.ForStmt) else s for s in function.body.stmts]
    program = program.with_functions([function.replace(body=ir.SeqStmts(stmts))])
    with pytest.raises(PassError, match="'break' is not supported in parallel loops"):
        ctrl_flow_transform()(program)


def test_an_if_with_a_result_that_has_no_value_to_give_is_refused():
    refusal(
        """
        @InCore
        def run(self, n: idx) -> idx:
            s = 0
            for i in pl.range(n):
                a = pl.array.create(4, pl.INT32)
                if i > 2:
                    if i == 4:
                        break
                    t = pl.yield_(a)
                else:
                    t = pl.yield_(a)
                s = s + pl.cast(t[0], pl.INDEX)
            return s
        """,
        "can't be left by an escape",
        "break",
    )
