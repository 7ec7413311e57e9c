"""Printed statements: comments, yields as results, branches and loops (spec 17.1 - 17.4)."""

import pytest

from pypto.diag.errors import InternalError
from pypto.ir.dtype import DataType
from pypto.ir.enums import ForKind, InlineLanguage
from pypto.ir.expr import Call, ConstBool, ConstInt, IterArg, Op, Var, index_const
from pypto.ir.printer import python_print
from pypto.ir.program import Function
from pypto.ir.span import Span
from pypto.ir.stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    InlineStmt,
    ReturnStmt,
    RuntimeScopeStmt,
    SeqStmts,
    WhileStmt,
    YieldStmt,
    attach_leading_comments,
)
from pypto.ir.type import ScalarType, TensorType, UnknownType

U = Span.unknown()
INDEX = ScalarType(DataType.INDEX)
A, B, N, IDX = (Var(name, INDEX) for name in ("a", "b", "n", "i"))
R, S = (Var(name, INDEX) for name in "rs")
ZERO, ONE = index_const(0), index_const(1)


def lines(node, concise=False):
    return python_print(node, format=False, concise=concise).split("\n")


def assign(var, value):
    return AssignStmt(var, value, U)


def seq(*stmts):
    return SeqStmts(list(stmts), U)


def carry(name, init):
    return IterArg(name, INDEX, init, U)


# --- simple statements ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stmt", "expected"),
    [
        (AssignStmt(A, B + 1, U), "a: pl.Scalar[pl.INDEX] = b + 1"),
        (AssignStmt(Var("u", UnknownType()), Call(Op("f"), [], U), U), "u: pl.UnknownType = f()"),
        (ReturnStmt([A, B], U), "return a, b"),
        (ReturnStmt(U), "return"),
        (YieldStmt([A, B], U), "pl.yield_(a, b)"),
        (YieldStmt(U), "pl.yield_()"),
        (EvalStmt(Call(Op("system.bar_all"), [], U), U), "pl.system.bar_all()"),
        (BreakStmt(U), "break"),
        (ContinueStmt(U), "continue"),
        (InlineStmt("print('hi')", InlineLanguage.Python, U), "print('hi')"),
    ],
)
def test_simple_statements(stmt, expected):
    assert lines(stmt) == [expected]


def test_concise_drops_annotations():
    assert lines(assign(A, B + 1), concise=True) == ["a = b + 1"]
    branch = IfStmt(A > B, YieldStmt([A], U), YieldStmt([B], U), [R], U)
    assert lines(branch, concise=True) == ["if a > b:", "    r = pl.yield_(a)", "else:", "    r = pl.yield_(b)"]


def test_a_sequence_adds_no_level():
    assert lines(seq(BreakStmt(U), seq(ContinueStmt(U), seq(BreakStmt(U))))) == ["break", "continue", "break"]


def test_an_empty_sequence_is_pass():
    assert lines(seq()) == ["pass"]
    assert lines(IfStmt(A > B, seq(), seq(seq()), [], U)) == ["if a > b:", "    pass", "else:", "    pass"]


def test_inline_text_is_indented_with_its_block():
    stmt = InlineStmt("if x:\n    y()\n\nz()", InlineLanguage.Python, U)
    assert lines(IfStmt(A > B, stmt, None, [], U)) == ["if a > b:", "    if x:", "        y()", "", "    z()"]
    assert lines(IfStmt(A > B, InlineStmt("", InlineLanguage.Python, U), None, [], U)) == ["if a > b:", "    pass"]


# --- comments ---------------------------------------------------------------------------------------------------------


def test_comments_stand_above_at_the_same_level():
    inner = attach_leading_comments(BreakStmt(U), ["one", "", "two\nthree"])
    outer = attach_leading_comments(IfStmt(A > B, inner, None, [], U), ["outer"])
    expected = ["# outer", "if a > b:", "    # one", "    #", "    # two", "    # three", "    break"]
    assert lines(seq(outer)) == expected
    assert lines(outer) == expected  # the root prints its own as well


# --- branches ---------------------------------------------------------------------------------------------------------


def test_a_branch_with_one_result():
    assert lines(IfStmt(A > B, YieldStmt([A], U), YieldStmt([B], U), [R], U)) == [
        "if a > b:",
        "    r: pl.Scalar[pl.INDEX] = pl.yield_(a)",
        "else:",
        "    r: pl.Scalar[pl.INDEX] = pl.yield_(b)",
    ]


def test_a_branch_with_several_results_has_no_annotations():
    assert lines(IfStmt(A > B, YieldStmt([A, B], U), YieldStmt([B, A], U), [R, S], U)) == [
        "if a > b:",
        "    r, s = pl.yield_(a, b)",
        "else:",
        "    r, s = pl.yield_(b, a)",
    ]


def test_a_branch_without_results_keeps_bare_yields():
    assert lines(IfStmt(ConstBool(True), YieldStmt([A], U), None, [], U)) == ["if True:", "    pl.yield_(a)"]


def test_only_the_last_yield_defines_the_results():
    body = seq(YieldStmt([A], U), YieldStmt([B], U))
    assert lines(IfStmt(A > B, body, None, [R], U)) == [
        "if a > b:",
        "    pl.yield_(a)",
        "    r: pl.Scalar[pl.INDEX] = pl.yield_(b)",
    ]


def test_an_inner_yield_belongs_to_the_inner_branch():
    inner = IfStmt(A > B, YieldStmt([A], U), YieldStmt([B], U), [S], U)
    assert lines(IfStmt(A > B, seq(inner, YieldStmt([S], U)), YieldStmt([B], U), [R], U)) == [
        "if a > b:",
        "    if a > b:",
        "        s: pl.Scalar[pl.INDEX] = pl.yield_(a)",
        "    else:",
        "        s: pl.Scalar[pl.INDEX] = pl.yield_(b)",
        "    r: pl.Scalar[pl.INDEX] = pl.yield_(s)",
        "else:",
        "    r: pl.Scalar[pl.INDEX] = pl.yield_(b)",
    ]


@pytest.mark.parametrize(("manual", "mode"), [(False, ""), (True, "mode=pl.ScopeMode.MANUAL")])
def test_a_runtime_scope_around_a_body_is_transparent_for_its_yield(manual, mode):
    scope = RuntimeScopeStmt(manual, body=seq(assign(S, A + 1), YieldStmt([S], U)), span=U)
    assert lines(IfStmt(A > B, scope, YieldStmt([B], U), [R], U)) == [
        "if a > b:",
        f"    with pl.scope({mode}):",
        "        s: pl.Scalar[pl.INDEX] = a + 1",
        "        r: pl.Scalar[pl.INDEX] = pl.yield_(s)",
        "else:",
        "    r: pl.Scalar[pl.INDEX] = pl.yield_(b)",
    ]


def test_a_yield_at_function_level_prints_as_return():
    func = Function("f", [A], [], seq(IfStmt(A > 0, YieldStmt([A], U), None, [], U), YieldStmt([A], U)), U)
    assert lines(func)[2:] == ["    if a > 0:", "        pl.yield_(a)", "    return a"]


# --- for --------------------------------------------------------------------------------------------------------------


def loop(start=ZERO, stop=N, step=ONE, carries=(), body=None, results=(), kind=ForKind.Sequential, attrs=None):
    return ForStmt(IDX, start, stop, step, list(carries), body or BreakStmt(U), list(results), U, kind, attrs)


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ((ZERO, N, ONE), "n"),
        ((index_const(2), N, ONE), "2, n"),
        ((ZERO, N, index_const(4)), "0, n, 4"),
        ((A, N, B), "a, n, b"),
        # Left out, these would come back as INDEX.
        ((ConstInt(0, DataType.INT64), N, ONE), "pl.const(0, pl.INT64), n"),
        ((ZERO, N, ConstInt(1, DataType.INT32)), "0, n, pl.const(1, pl.INT32)"),
    ],
)
def test_bounds(bounds, expected):
    assert lines(loop(*bounds))[0] == f"for i in pl.range({expected}):"


@pytest.mark.parametrize(
    ("kind", "name"), [(ForKind.Sequential, "range"), (ForKind.Parallel, "parallel"), (ForKind.Unroll, "unroll")]
)
def test_loop_kinds(kind, name):
    assert lines(loop(kind=kind))[0] == f"for i in pl.{name}(n):"


def test_one_carry_keeps_its_comma():
    x = carry("x", A)
    assert lines(loop(carries=[x], body=YieldStmt([x + IDX], U), results=[R])) == [
        "for i, (x,) in pl.range(n, init_values=(a,)):",
        "    r: pl.Scalar[pl.INDEX] = pl.yield_(x + i)",
    ]


def test_several_carries():
    x, y = carry("x", A), carry("y", B)
    assert lines(loop(index_const(2), carries=[x, y], body=YieldStmt([y, x], U), results=[R, S])) == [
        "for i, (x, y) in pl.range(2, n, init_values=(a, b)):",
        "    r, s = pl.yield_(y, x)",
    ]


def test_a_carried_loop_before_ssa_has_no_yield():
    assert lines(loop(carries=[carry("x", A)], results=[R])) == [
        "for i, (x,) in pl.range(n, init_values=(a,)):",
        "    break",
    ]


def test_a_pipeline_prints_its_stages_behind_the_bounds():
    attrs = {"pipeline_overlap_stores": False, "pipeline_stages": 2}
    x = carry("x", A)
    stmt = loop(ZERO, N, index_const(4), [x], YieldStmt([x], U), [R], ForKind.Pipeline, attrs)
    assert lines(stmt)[0] == (
        'for i, (x,) in pl.pipeline(0, n, 4, stage=2, init_values=(a,), attrs={"pipeline_overlap_stores": False}):'
    )


def test_loop_attributes():
    stmt = loop(attrs={"iter_arg_rebind_0": True, "iter_arg_array_size_0": 4, "w": 0.5, "s": 'a"b'})
    assert lines(stmt)[0] == (
        'for i in pl.range(n, attrs={"iter_arg_rebind_0": True, "iter_arg_array_size_0": 4, "w": 0.5, "s": "a\\"b"}):'
    )


def test_malformed_loops_are_refused():
    with pytest.raises(InternalError, match="pipeline loop without pipeline_stages"):
        lines(loop(kind=ForKind.Pipeline))
    with pytest.raises(InternalError, match="does not support iter_args"):
        lines(loop(kind=ForKind.Unroll, carries=[carry("x", A)]))
    with pytest.raises(InternalError, match="loop attribute 'e' has no printed form"):
        lines(loop(attrs={"e": A}))


# --- while ------------------------------------------------------------------------------------------------------------


def test_a_natural_while():
    assert lines(WhileStmt(A < N, [], assign(A, A + 1), [], U)) == [
        "while a < n:",
        "    a: pl.Scalar[pl.INDEX] = a + 1",
    ]


def test_a_carried_while():
    x, y = carry("x", A), carry("y", B)
    assert lines(WhileStmt(x < N, [x, y], YieldStmt([x + 1, y], U), [R, S], U)) == [
        "for (x, y) in pl.while_(init_values=(a, b)):",
        "    pl.cond(x < n)",
        "    r, s = pl.yield_(x + 1, y)",
    ]
    assert lines(WhileStmt(x < N, [x], YieldStmt([x + 1], U), [R], U)) == [
        "for (x,) in pl.while_(init_values=(a,)):",
        "    pl.cond(x < n)",
        "    r: pl.Scalar[pl.INDEX] = pl.yield_(x + 1)",
    ]


# --- size -------------------------------------------------------------------------------------------------------------


def test_deeply_nested_branches():
    stmt = BreakStmt(U)
    for _ in range(80):
        stmt = IfStmt(A > B, stmt, None, [], U)
    assert lines(stmt)[-1] == "    " * 80 + "break"


def test_long_bodies():
    kind = TensorType([64, 64], DataType.FP32)
    x = Var("x", kind)
    stmts, last = [], x
    for number in range(10_000):
        new = Var(f"t{number}", kind)
        stmts.append(assign(new, Call(Op("tensor.add"), [last, x], kind, U)))
        last = new
    text = lines(Function("f", [x], [kind], seq(*stmts, ReturnStmt([last], U)), U))
    assert len(text) == 10_003
    assert text[10_001] == "    t9999: pl.Tensor[[64, 64], pl.FP32] = pl.tensor.add(t9998, x)"
