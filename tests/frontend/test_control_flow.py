"""Branches, loops, yields, break and continue: section 10 and item 7 of section 17 of the language description."""

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto import ir
from pypto.diag.parser_errors import (
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)

from .dsl import check_error, expect, kernel, opaque, parse, program, round_trip

F, S, T, OP, U = (
    UnsupportedFeatureError,
    ParserSyntaxError,
    ParserTypeError,
    InvalidOperationError,
    UndefinedVariableError,
)


def first(body: str, **kwargs: str) -> ir.Stmt:
    """The first statement of a body over scalars, after a round trip."""
    node = parse(opaque(body, **kwargs))
    round_trip(node)
    return node.body[0] if isinstance(node.body, ir.SeqStmts) else node.body


# --- if ---------------------------------------------------------------------------------------------------------------


def test_plain_branches_have_no_results_and_leak() -> None:
    node = parse(opaque("if n > 1:\n    a = n\n    b = g\nelse:\n    a = n + 1\nreturn a, b"))
    round_trip(node)
    branch = node.body[0]
    assert list(branch.return_vars) == []
    assert node.body[1].value[0] is branch.else_body.var


def test_an_empty_else_body_is_dropped() -> None:
    assert first("if n > 1:\n    a = n\nelse:\n    pass\nreturn").else_body is None


def test_an_empty_then_body_is_an_empty_sequence() -> None:
    branch = first("if n > 1:\n    pass\nelse:\n    a = n\nreturn")
    assert isinstance(branch.then_body, ir.SeqStmts)
    assert len(branch.then_body.stmts) == 0


def test_elif_is_a_nested_if() -> None:
    branch = first("if n > 3:\n    a = 1\nelif n > 2:\n    a = 2\nelif n > 1:\n    a = 3\nelse:\n    a = 4\nreturn a")
    assert isinstance(branch.else_body, ir.IfStmt)
    assert isinstance(branch.else_body.else_body, ir.IfStmt)


def test_yields_of_branches_are_results() -> None:
    expect(
        opaque(
            "if n > 1:\n    a: pl.Scalar[pl.INDEX] = pl.yield_(n)\nelse:\n    a = pl.yield_(n + 1)\n"
            "if n > 2:\n    (b, c) = pl.yield_(n, g)\nelse:\n    b, c = pl.yield_(a, 1.0)\nreturn a, b, c"
        ),
        """
        if n > 1:
            a: pl.Scalar[pl.INDEX] = pl.yield_(n)
        else:
            a: pl.Scalar[pl.INDEX] = pl.yield_(n + 1)
        if n > 2:
            b, c = pl.yield_(n, g)
        else:
            b, c = pl.yield_(a, 1.0)
        return a, b, c
        """,
    )


def test_names_of_branches_with_yields_do_not_leak() -> None:
    check_error(
        opaque("if n > 1:\n    q = n\n    a = pl.yield_(q)\nelse:\n    a = pl.yield_(n)\nreturn q"),
        U,
        "Undefined variable 'q'",
        "return q",
    )


def test_result_type_is_the_annotation_or_the_first_yielded_type() -> None:
    branch = first("if n > 1:\n    a: pl.Scalar[pl.INT64] = pl.yield_(n)\nelse:\n    a = pl.yield_(n)\nreturn a")
    assert branch.return_vars[0].type == ir.ScalarType(pl.INT64)
    branch = first("if n > 1:\n    a = pl.yield_(m)\nelse:\n    a = pl.yield_(m)\nreturn a")
    assert branch.return_vars[0].type == ir.ScalarType(pl.INT32)


def test_nested_results() -> None:
    branch = first(
        "if n > 1:\n    if n > 2:\n        q = pl.yield_(n)\n    else:\n        q = pl.yield_(n + 1)\n    a = pl.yield_(q)\nelse:\n    a = pl.yield_(n)\nreturn a"
    )
    assert [v.name_hint for v in branch.return_vars] == ["a"]
    inner = branch.then_body[0]
    assert [v.name_hint for v in inner.return_vars] == ["q"]
    assert branch.then_body[1].value[0] is inner.return_vars[0]


def test_runtime_scopes_are_transparent_for_yields() -> None:
    for scope, options in (("pl.manual_scope()", ""), ("pl.scope()", ", auto_scope=False")):
        text = program(
            f"if n > 1:\n    with {scope}:\n        t = self.k(x, 1.0, y)\n        a = pl.yield_(t)\nelse:\n    a = pl.yield_(y)\nself.plain(a)\nreturn",
            options,
        )
        node = parse(text)
        branch = node["main"].body[0]
        assert [v.name_hint for v in branch.return_vars] == ["a"]
        assert node["main"].body[1].expr.args[0] is branch.return_vars[0]
        round_trip(node)


def test_a_bare_yield_is_legal_in_a_branch() -> None:
    branch = first("if n > 1:\n    pl.yield_(n)\nelse:\n    pl.yield_(n + 1)\nreturn")
    assert isinstance(branch.then_body, ir.YieldStmt)
    assert list(branch.return_vars) == []


def test_a_yield_in_an_expression_stands_for_its_value() -> None:
    branch = first("if n > 1:\n    a = pl.yield_(n) + 1\nreturn")
    assert isinstance(branch.then_body[0], ir.YieldStmt)
    assert type(branch.then_body[1].value) is ir.Add


# --- for --------------------------------------------------------------------------------------------------------------


def test_loop_kinds_and_bounds() -> None:
    loop = first("for i in pl.range(n):\n    a = i\nreturn a, i")
    assert loop.kind == ir.ForKind.Sequential
    assert (loop.start.value, loop.step.value) == (0, 1)
    assert loop.loop_var.type == ir.ScalarType(pl.INDEX)
    loop = first("for i in pl.parallel(1, n):\n    a = i\nreturn")
    assert loop.kind == ir.ForKind.Parallel
    assert loop.start.value == 1
    loop = first("for i in pl.unroll(1, 9, 2):\n    a = i\nreturn")
    assert loop.kind == ir.ForKind.Unroll
    assert (loop.start.value, loop.stop.value, loop.step.value) == (1, 9, 2)
    loop = first("for i in pl.pipeline(n, stage=3):\n    a = i\nreturn")
    assert loop.kind == ir.ForKind.Pipeline
    assert loop.attrs["pipeline_stages"] == 3
    first("for i in pl.range(9, 0, -1):\n    a = i\nreturn")


def test_loop_keywords() -> None:
    loop = first("for i in pl.range(n, attrs={'a': 1, 'b': True, 'c': 2.5, 'd': 'text'}):\n    a = i\nreturn")
    assert dict(loop.attrs) == {"a": 1, "b": True, "c": 2.5, "d": "text"}
    loop = first("for i in pl.pipeline(n, stage=2, attrs={'pipeline_overlap_stores': False}):\n    a = i\nreturn")
    assert dict(loop.attrs) == {"pipeline_stages": 2, "pipeline_overlap_stores": False}
    text = opaque("for i in pl.pipeline(n, stage=ST):\n    a = i\nreturn").replace("@pl", "ST = 4\n@pl", 1)
    assert parse(text).body[0].attrs["pipeline_stages"] == 4
    text = opaque("for i in pl.unroll(LO, HI):\n    a = i\nreturn").replace("@pl", "LO, HI = 2, 5\n@pl", 1)
    assert parse(text).body[0].stop.value == 5


@pytest.mark.parametrize(
    ("bounds", "dtype"),
    [
        ("n", "INDEX"),
        ("m", "INDEX"),  # only constants count
        ("pl.const(4, pl.INT32)", "INT32"),
        ("0, pl.const(4, pl.INT32)", "INT32"),
        ("pl.const(0, pl.INT16), pl.const(4, pl.INT32)", "INT16"),  # the first such one
        ("pl.const(4, pl.INT64)", "INT64"),
        ("0, pl.const(4, pl.INT64)", "INDEX"),  # INT64 only when no bound is an INDEX constant
        ("n, pl.const(4, pl.INT64)", "INT64"),
        ("0, pl.const(4, pl.INT64), pl.const(1, pl.INT32)", "INT32"),
    ],
)
def test_loop_variable_dtype(bounds: str, dtype: str) -> None:
    loop = first(f"for i in pl.range({bounds}):\n    a = i\nreturn")
    assert loop.loop_var.type == ir.ScalarType(getattr(pl, dtype))


def test_names_of_a_simple_loop_leak() -> None:
    node = parse(opaque("for i in pl.range(n):\n    a = i + 1\nreturn a, i"))
    assert node.body[1].value[1] is node.body[0].loop_var
    assert node.body[1].value[0] is node.body[0].body.var


def test_a_carried_loop() -> None:
    expect(
        opaque(
            "for i, (a, b) in pl.range(2, n, init_values=(n, g)):\n    c, d = pl.yield_(a + i, b * 2.0)\nreturn c, d"
        ),
        """
        for i, (a, b) in pl.range(2, n, init_values=(n, g)):
            c, d = pl.yield_(a + i, b * 2.0)
        return c, d
        """,
    )
    loop = first(
        "for i, (a,) in pl.range(n, init_values=[n]):\n    b: pl.Scalar[pl.INDEX] = pl.yield_(a + 1)\nreturn b"
    )
    assert loop.iter_args[0].type == ir.ScalarType(pl.INDEX)
    assert [v.name_hint for v in loop.return_vars] == ["b"]


def test_a_carried_loop_without_yield_has_synthetic_results() -> None:
    node = parse(
        opaque("for i, (a, b) in pl.range(n, init_values=(n, g)):\n    a = a + 1\n    b = b * 2.0\nreturn a_out, b_out")
    )
    loop = node.body[0]
    assert [v.name_hint for v in loop.return_vars] == ["a_out", "b_out"]
    assert [v.name_hint for v in loop.body[-1].value] == ["a", "b"]  # the names at the end of the body are carried on
    assert [type(v) for v in node.body[1].value] == [ir.Var, ir.Var]
    assert node.body[1].value[0] is loop.return_vars[0]


def test_names_of_a_carried_loop_do_not_leak() -> None:
    for name in ("i", "a", "t"):
        check_error(
            opaque(
                f"for i, (a,) in pl.range(n, init_values=(n,)):\n    t = a + 1\n    b = pl.yield_(t)\nreturn {name}"
            ),
            U,
            f"Undefined variable '{name}'",
            f"return {name}",
        )


def test_a_result_may_have_the_name_of_the_carry_or_of_the_initial_value() -> None:
    node = parse(opaque("a = n\nfor i, (a,) in pl.range(n, init_values=(a,)):\n    a = pl.yield_(a + 1)\nreturn a"))
    round_trip(node)
    loop = node.body[1]
    assert node.body[2].value[0] is loop.return_vars[0]
    assert loop.iter_args[0].initValue is node.body[0].var


def test_loops_nest() -> None:
    node = parse(
        opaque(
            "for i, (a,) in pl.range(n, init_values=(n,)):\n"
            "    for j, (b,) in pl.range(i, init_values=(a,)):\n"
            "        c = pl.yield_(b + j)\n"
            "    d = pl.yield_(c)\n"
            "return d"
        )
    )
    round_trip(node)
    outer = node.body[0]
    inner = outer.body[0]
    assert inner.iter_args[0].initValue is outer.iter_args[0]
    assert outer.body[1].value[0] is inner.return_vars[0]


def test_a_branch_in_a_carried_loop() -> None:
    node = parse(
        opaque(
            "for i, (a,) in pl.range(n, init_values=(n,)):\n"
            "    if i > 2:\n        b = pl.yield_(a + 1)\n    else:\n        b = pl.yield_(a)\n"
            "    c = pl.yield_(b)\nreturn c"
        )
    )
    round_trip(node)


# --- while ------------------------------------------------------------------------------------------------------------


def test_natural_while() -> None:
    node = parse(opaque("a = n\nwhile a > 1:\n    a = a - 1\n    t = a\nreturn t"))
    round_trip(node)
    loop = node.body[1]
    assert isinstance(loop, ir.WhileStmt)
    assert list(loop.iter_args) == []
    assert loop.body[0].var is node.body[0].var


def test_carried_while() -> None:
    expect(
        opaque(
            "for (k, s) in pl.while_(init_values=(n, g)):\n    pl.cond(k < 9)\n    k2, s2 = pl.yield_(k + 1, s * 2.0)\nreturn k2, s2"
        ),
        """
        for (k, s) in pl.while_(init_values=(n, g)):
            pl.cond(k < 9)
            k2, s2 = pl.yield_(k + 1, s * 2.0)
        return k2, s2
        """,
    )
    loop = first("for (k,) in pl.while_(init_values=(n,)):\n    pl.cond(k < 9)\n    k = k + 1\nreturn k_out")
    assert [v.name_hint for v in loop.return_vars] == ["k_out"]
    check_error(
        opaque("for (k,) in pl.while_(init_values=(n,)):\n    pl.cond(k < 9)\n    k2 = pl.yield_(k + 1)\nreturn k"),
        U,
        "Undefined variable 'k'",
        "return k",
    )


# --- refusals ---------------------------------------------------------------------------------------------------------

CARRIED = "for i, (a,) in pl.range(n, init_values=(n,)):\n"


@pytest.mark.parametrize(
    ("body", "cls", "phrase", "line"),
    [
        ("if n:\n    a = 1", T, "if condition must be a Bool-typed scalar expression, got", "if n:"),
        ("while n:\n    a = 1", T, "while condition must be a Bool-typed scalar expression, got", "while n:"),
        ("for i in n:\n    a = 1", S, "For loop must use pl.range()", "for i in n"),
        ("for i in range(3):\n    a = 1", S, "For loop must use pl.range()", "range(3)"),
        ("for i in pl.foo(3):\n    a = 1", S, "For loop must use pl.range()", "pl.foo"),
        ("for i in pl.range():\n    a = 1", S, "requires at least 1 argument", "pl.range()"),
        ("for i in pl.range(1, 2, 3, 4):\n    a = 1", S, "", "pl.range(1"),
        ("for i in pl.range(n, foo=1):\n    a = 1", S, "Unknown keyword argument 'foo' in pl.range()", "foo"),
        ("for i in pl.parallel(n, foo=1):\n    a = 1", S, "Unknown keyword argument 'foo'", "foo"),
        ("for i in pl.range(n, stage=2):\n    a = 1", S, "stage= is only supported on pl.pipeline()", "stage"),
        ("for i in pl.range(g):\n    a = 1", T, "", "pl.range(g)"),
        ("for i in pl.range(2.5):\n    a = 1", T, "", "pl.range(2.5)"),
        ("for i in pl.range(n, attrs=n):\n    a = 1", S, "attrs must be a dict literal", "attrs"),
        ("for i in pl.range(n, attrs={'a': [1]}):\n    a = 1", S, "Unsupported value type for attrs key", "attrs"),
        ("for i in pl.range(n, attrs={'a': n}):\n    a = 1", S, "Unsupported value type for attrs key", "attrs"),
        ("for i, (a,) in pl.range(n, init_values=n):\n    a = 1", S, "init_values must be a list or tuple", "init"),
        (
            "for i in pl.range(n, init_values=(n,)):\n    a = 1",
            S,
            "For loop target must be a tuple when init_values",
            "for i",
        ),
        ("for i, a in pl.range(n):\n    b = 1", S, "For loop target must be a simple name or", "for i"),
        ("for i, a in pl.range(n, init_values=(n,)):\n    b = 1", S, "Iter args must be a tuple", "for i"),
        (
            "for (i, j), (a,) in pl.range(n, init_values=(n,)):\n    b = 1",
            S,
            "Loop variable must be a simple name",
            "for",
        ),
        ("for i, (a[0],) in pl.range(n, init_values=(n,)):\n    b = 1", S, "Iter arg must be a simple name", "for"),
        (
            "for i, (a, b) in pl.range(n, init_values=(n,)):\n    c = 1",
            S,
            "Mismatch: 2 iter_args but 1 init_values",
            "for",
        ),
        ("for i in pl.unroll(n):\n    a = 1", S, "requires compile-time constant integer bounds", "unroll"),
        ("for i in pl.unroll(0, 4, 0):\n    a = 1", S, "step cannot be zero", "unroll"),
        (
            "for i, (a,) in pl.unroll(4, init_values=(n,)):\n    a = 1",
            S,
            "cannot be combined with init_values",
            "unroll",
        ),
        ("for i in pl.pipeline(n):\n    a = 1", S, "requires stage=", "pipeline"),
        (
            "for i in pl.pipeline(n, stage=n):\n    a = 1",
            S,
            "stage must be a compile-time constant integer",
            "pipeline",
        ),
        (
            "for i in pl.pipeline(n, stage=True):\n    a = 1",
            S,
            "stage must be a compile-time constant integer",
            "pipeline",
        ),
        ("for i in pl.pipeline(n, stage=0):\n    a = 1", S, "stage must be >= 1", "pipeline"),
        ("for i in pl.range(n):\n    a = 1\nelse:\n    a = 2", S, "", "a = 2"),
        ("while n > 1:\n    n = n - 1\nelse:\n    n = 2", S, "", "n = 2"),
        (
            CARRIED + "    pl.yield_(a)",
            S,
            "Loop with init_values requires an assignment-form pl.yield_",
            "pl.yield_(a)",
        ),
        (CARRIED + "    if n > 1:\n        pl.yield_(a)", S, "requires an assignment-form pl.yield_", "pl.yield_(a)"),
        (CARRIED + "    b, c = pl.yield_(a, a)", ParserError, "", "pl.yield_(a, a)"),
        (
            "for i, (a, b) in pl.range(n, init_values=(n, g)):\n    c = pl.yield_(a)",
            S,
            "For loop has 2 iteration arguments but 1 return variables",
            "pl.yield_(a)",
        ),
        (CARRIED + "    b = pl.yield_(g)", T, "", "pl.yield_(g)"),
        (
            "for (a,) in pl.while_(n, init_values=(n,)):\n    pl.cond(a < 3)",
            S,
            "takes no positional arguments",
            "while_",
        ),
        ("for (a,) in pl.while_():\n    pl.cond(a < 3)", S, "pl.while_() requires init_values", "while_"),
        ("for (a,) in pl.while_(init_values=()):\n    pl.cond(a < 3)", S, "pl.while_() requires init_values", "while_"),
        (
            "for (a,) in pl.while_(init_values=(n,)):\n    b = a",
            S,
            "First statement in pl.while_() body must be pl.cond(condition)",
            "b = a",
        ),
        (
            "for (a,) in pl.while_(init_values=(n,)):\n    pl.cond(a < 3)\n    pl.cond(a < 3)",
            S,
            "can only be the first statement",
            "pl.cond",
        ),
        (
            "for (a,) in pl.while_(init_values=(n,)):\n    pl.cond(a)\n    b = pl.yield_(a)",
            T,
            "condition must be a Bool-typed",
            "pl.cond",
        ),
        (
            "for (a,) in pl.while_(init_values=(n,)):\n    pl.cond(a < 1, a < 2)\n    b = pl.yield_(a)",
            S,
            "pl.cond() requires exactly 1 argument",
            "pl.cond",
        ),
        ("for a in pl.while_(init_values=(n,)):\n    pl.cond(a < 3)", S, "While loop target must be a tuple", "for a"),
        (
            "for (a, b) in pl.while_(init_values=(n,)):\n    pl.cond(a < 3)",
            S,
            "Mismatch: 2 iter_args but 1 init_values",
            "for",
        ),
        (
            "for (a,) in pl.while_(init_values=(n,), foo=1):\n    pl.cond(a < 3)",
            S,
            "Unknown keyword argument 'foo'",
            "while_",
        ),
        # item 7 of section 17
        ("a = pl.yield_(n)", S, "", "pl.yield_"),
        ("pl.yield_(n)", S, "", "pl.yield_"),
        ("if n > 1:\n    a = pl.yield_(n)", S, "", None),
        ("if n > 1:\n    a = pl.yield_(n)\nelse:\n    b = n", S, "", None),
        ("if n > 1:\n    a = pl.yield_(n)\nelse:\n    b = pl.yield_(n)", S, "", None),
        ("if n > 1:\n    a, b = pl.yield_(n, n)\nelse:\n    a = pl.yield_(n)", S, "", None),
        ("if n > 1:\n    a, b = pl.yield_(n, g)\nelse:\n    b, a = pl.yield_(g, n)", S, "", None),
        ("if n > 1:\n    a = pl.yield_(n)\nelse:\n    a = pl.yield_(g)", T, "", None),
        ("if n > 1:\n    a = pl.yield_(n)\n    b = pl.yield_(n)\nelse:\n    a = pl.yield_(n)", S, "", "b = pl.yield_"),
        ("if n > 1:\n    a, b = pl.yield_(n)\nelse:\n    a, b = pl.yield_(n, n)", S, "", "a, b = pl.yield_(n)"),
        ("for i in pl.range(n):\n    a = pl.yield_(i)", S, "", "pl.yield_"),
        ("while n > 1:\n    n = pl.yield_(n - 1)", S, "", "pl.yield_"),
        (CARRIED + "    b = pl.yield_(a)\n    c = pl.yield_(a)", S, "", "c = pl.yield_"),
        (
            "if n > 1:\n    a[0] = pl.yield_(n)\nelse:\n    a = pl.yield_(n)",
            S,
            "Tuple unpacking target must be",
            "a[0]",
        ),
        ("if n > 1:\n    a = pl.yield_(v=n)\nelse:\n    a = pl.yield_(n)", S, "", "v=n"),
        ("if n > 1:\n    a = 1 + pl.yield_(n, n)", S, "Multiple yields should use tuple unpacking", "pl.yield_(n, n)"),
        # break and continue
        ("break", OP, "'break' outside loop", "break"),
        ("continue", OP, "'continue' outside loop", "continue"),
        ("if n > 1:\n    break", OP, "'break' outside loop", "break"),
        ("for i in pl.parallel(n):\n    break", OP, "not supported in parallel loops", "break"),
        (
            "for i in pl.parallel(n):\n    if i > 1:\n        continue",
            OP,
            "not supported in parallel loops",
            "continue",
        ),
        ("for i in pl.unroll(4):\n    break", OP, "not supported in unrolled loops", "break"),
        (
            "for i in pl.range(n):\n    for j in pl.unroll(4):\n        continue",
            OP,
            "not supported in unrolled",
            "continue",
        ),
    ],
)
def test_refused_control_flow(body: str, cls: type, phrase: str, line: str | None) -> None:
    error = None
    with pytest.raises(ParserError) as info:
        parse(opaque(f"{body}\nreturn"))
    error = info.value
    assert isinstance(error, cls), f"{type(error).__name__}: {error}"
    assert phrase in str(error)
    assert error.span is not None
    shown = opaque(f"{body}\nreturn").splitlines()[error.span["line"] - 1]
    assert error.span["line"] > 4  # inside the body
    assert line is None or line in shown, shown


def test_a_named_yield_in_a_scope_inside_a_branch_is_refused() -> None:
    for scope in ("pl.at(level=pl.Level.CORE_GROUP)", "pl.cluster()"):
        check_error(
            program(
                f"if n > 1:\n    with {scope}:\n        t = self.k(x, 1.0, y)\n        a = pl.yield_(t)\nelse:\n    a = pl.yield_(y)\nreturn"
            ),
            S,
            "",
            "a = pl.yield_(t)",
        )


@pytest.mark.parametrize(
    ("a", "b"), [("x", "x[0:8]"), ("x", "pl.load(x, [0, 0], [64, 128])"), ("x", "pl.cast(x, pl.FP16)"), ("x", "x[0]")]
)
def test_yields_of_branches_and_loops_agree_in_kind_dtype_rank_and_extents(a: str, b: str) -> None:
    text = f"if n > 1:\n    q = pl.yield_({a})\nelse:\n    q = pl.yield_({b})\nreturn"
    params = "x: pl.Tensor[[64, 128], pl.FP32], n: pl.Scalar[pl.INDEX]"
    with pytest.raises(ParserTypeError) as info:
        parse(kernel(text, params))
    assert info.value.span["line"] == 8  # at the yield that disagrees
    text = f"for i, (c,) in pl.range(n, init_values=({a},)):\n    q = pl.yield_({b})\nreturn"
    check_error(kernel(text, params), T, "", "pl.yield_")


def test_break_and_continue_are_allowed_in_sequential_loops() -> None:
    for head in ("for i in pl.range(n):", "for i in pl.pipeline(n, stage=2):", "while n > 1:"):
        loop = first(f"{head}\n    if n > 2:\n        break\n    continue\nreturn")
        assert isinstance(loop.body[0].then_body, ir.BreakStmt)
        assert isinstance(loop.body[1], ir.ContinueStmt)
    first(
        "for (k,) in pl.while_(init_values=(n,)):\n    pl.cond(k < 9)\n    if k > 3:\n        break\n    k2 = pl.yield_(k + 1)\nreturn"
    )
    # A sequential loop inside a parallel one may break.
    first("for i in pl.parallel(n):\n    for j in pl.range(3):\n        break\nreturn")


def test_break_inside_split_regions() -> None:
    check_error(
        kernel("for v in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n    break\nreturn"),
        OP,
        "not supported inside a 'for ... in pl.split_aiv(...)' body",
        "break",
    )
    parse(
        kernel("for v in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n    for i in pl.range(3):\n        break\nreturn")
    )


def test_direct_imports_of_iterators() -> None:
    text = opaque("for i in prange(3):\n    a = i\nreturn").replace(
        "import math", "from pypto.language import range as prange", 1
    )
    node = parse(text)
    assert isinstance(node.body[0], ir.ForStmt)
