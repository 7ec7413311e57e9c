"""Assignment, unpacking, expression statements, return, directives: section 9 of the language description."""

from __future__ import annotations

import textwrap

import pytest

import pypto.language as pl
from pypto import ir
from pypto.diag.parser_errors import (
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    SSAViolationError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)

from .dsl import HEAD, body_text, check_error, expect, kernel, opaque, parse, program, round_trip

F, S, T, OP, U, V = (
    UnsupportedFeatureError,
    ParserSyntaxError,
    ParserTypeError,
    InvalidOperationError,
    UndefinedVariableError,
    SSAViolationError,
)


# --- 9.1 --------------------------------------------------------------------------------------------------------------


def test_a_second_assignment_defines_the_same_variable() -> None:
    node = parse(opaque("a = n\na = a + 1\nreturn a"))
    first, second, last = node.body.stmts
    assert first.var is second.var is second.value.left is last.value[0]
    round_trip(node)


def test_a_parameter_can_be_assigned() -> None:
    node = parse(opaque("n = n + 1\nreturn n"))
    assert node.body[0].var is node.params[0]


def test_an_iter_arg_is_never_assigned() -> None:
    node = parse(opaque("for i, (a,) in pl.range(n, init_values=(n,)):\n    a = a + 1\nreturn a_out"))
    loop = node.body[0]
    assert loop.body[0].var is not loop.iter_args[0]
    assert loop.body[0].var.name_hint == "a"
    assert loop.body[0].value.left is loop.iter_args[0]


def test_underscore_is_an_ordinary_name_that_never_constrains_types() -> None:
    node = parse(opaque("_ = n\n_ = g\nreturn _"))
    assert node.body[2].value[0].type == ir.ScalarType(pl.FP32)
    node = parse(opaque("_ = n\nreturn _ + 1"))
    assert type(node.body[1].value[0]) is ir.Add


@pytest.mark.parametrize(
    ("body", "phrase"),
    [
        ("a = n\na = g", "Cannot reassign 'a' with a different type: was"),
        ("a = n\na = m", "Cannot reassign 'a' with a different type: was"),
        ("a = (n, g)\na = (n, n)", "Cannot reassign 'a' with a different type: was"),
        ("n = g", "Cannot reassign 'n' with a different type: was"),
        ("a = n\nif n > 1:\n    a = g", "Cannot reassign 'a' with a different type: was"),
    ],
)
def test_reassignment_keeps_the_type(body: str, phrase: str) -> None:
    check_error(opaque(f"{body}\nreturn"), T, phrase, body.splitlines()[-1].strip())


@pytest.mark.parametrize(
    "body",
    [
        "t = pl.load(x, [0, 0], [8, 16])\nt = x",
        "t = pl.load(x, [0, 0], [8, 16])\nt = pl.load(x, [0, 0], [4, 16])",
        "t = pl.load(x, [0, 0], [8, 16])\nt = pl.cast(t, pl.FP16)",
        "t = x[0:4]\nt = x[0:8]",
    ],
)
def test_reassignment_of_arrays_keeps_kind_shape_and_dtype(body: str) -> None:
    text = kernel(f"{body}\nreturn", "x: pl.Tensor[[64, 16], pl.FP32]")
    check_error(text, T, "Cannot reassign 't' with a different type", body.splitlines()[-1])


def test_reassignment_compares_provably_equal_extents() -> None:
    params = "x: pl.Tensor[[64, 16], pl.FP32], n: pl.Scalar[pl.INDEX]"
    parse(kernel("t = x[0:n + n]\nt = x[0:2 * n]\nreturn", params))


@pytest.mark.parametrize(
    ("statement", "cls", "phrase"),
    [
        ("a = b = n", S, "Unsupported assignment"),
        ("a.b = n", S, "Unsupported assignment"),
        ("*a, b = (n, n)", S, "Unsupported assignment"),
        ("a, (b, c) = (n, n)", S, "Tuple unpacking target must be a variable name"),
        ("a, b[0] = (n, n)", S, "Tuple unpacking target must be a variable name"),
        ("a: pl.Scalar[pl.INDEX]", F, "with no value is not supported"),
        ("a[0]: pl.Scalar[pl.INDEX] = n", S, "Only simple variable assignments supported"),
        ("a, b = n", T, "requires tuple to have TupleType"),
        ("a, b = (n, n, n)", T, "cannot unpack 3 values into 2 names"),
        ("a, b, c = (n, n)", T, "cannot unpack 2 values into 3 names"),
        ("a += 1", U, "Undefined variable 'a'"),
        ("n @= n", F, "Unsupported binary operator: MatMult"),
        ("a.b += 1", S, "Unsupported assignment"),
        ("del n", F, "Unsupported statement type: Delete"),
        ("global n", F, "Unsupported statement type: Global"),
        ("raise n", F, "Unsupported statement type: Raise"),
        ("assert n > 1", F, "Unsupported statement type: Assert"),
        ("import os", F, "Unsupported statement type: Import"),
        ("from os import path", F, "Unsupported statement type: ImportFrom"),
        ("class A: pass", F, "Unsupported statement type: ClassDef"),
        ("def h(): pass", F, "Unsupported statement type: FunctionDef"),
        ("a: pl.Scalar[pl.FP32] = n", T, "has dtype"),
        ("a: pl.Scalar[pl.FP32] = 1", T, "has dtype"),
        ("a: pl.Tensor[[4], pl.FP32] = n", T, "Type annotation for 'a' is Tensor but expression has type Scalar"),
    ],
)
def test_refused_statements(statement: str, cls: type, phrase: str) -> None:
    check_error(opaque(f"{statement}\nreturn"), cls, phrase, statement)


def test_pass_strings_and_ellipsis_emit_nothing() -> None:
    node = parse(opaque("pass\n'text'\na = n\npass"))
    assert isinstance(node.body, ir.AssignStmt)
    node = parse(opaque("pass"))
    assert isinstance(node.body, ir.SeqStmts)
    assert len(node.body.stmts) == 0
    round_trip(node)


# --- augmented assignment ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("symbol", "node"),
    [
        ("+", ir.Add),
        ("-", ir.Sub),
        ("*", ir.Mul),
        ("/", ir.FloatDiv),
        ("//", ir.FloorDiv),
        ("%", ir.FloorMod),
        ("<<", ir.BitShiftLeft),
        (">>", ir.BitShiftRight),
        ("**", ir.Pow),
        ("&", ir.BitAnd),
        ("|", ir.BitOr),
        ("^", ir.BitXor),
    ],
)
def test_augmented_assignment(symbol: str, node: type) -> None:
    found = parse(opaque(f"a = n\na {symbol}= 2\nreturn a"))
    ir.assert_structural_equal(found, parse(opaque(f"a = n\na = a {symbol} 2\nreturn a")), enable_auto_mapping=True)
    assert type(found.body[1].value) is node
    assert found.body[1].var is found.body[0].var


def test_augmented_subscripts_read_compute_and_write() -> None:
    params = "d: pl.Tensor[[8, 16], pl.FP32], v: pl.Tensor[[16], pl.FP32], i: pl.Scalar[pl.INDEX]"
    for short, long in (
        ("d[i] += v", "d[i] = d[i] + v"),
        ("d[0:4, :] *= 2.0", "d[0:4, :] = d[0:4, :] * 2.0"),
        ("d[:] -= d", "d[:] = d[:] - d"),
    ):
        one, two = (parse(kernel(f"{s}\nreturn", params)) for s in (short, long))
        ir.assert_structural_equal(one, two, enable_auto_mapping=True)
        round_trip(one)
    one, two = (
        parse(kernel(f"a = pl.array.create(4, pl.INT32)\n{s}\nreturn", params))
        for s in ("a[i] += pl.const(3, pl.INT32)", "a[i] = a[i] + pl.const(3, pl.INT32)")
    )
    ir.assert_structural_equal(one, two, enable_auto_mapping=True)
    check_error(kernel("d[0, 0] += 1.0\nreturn", params), F, "Element-write", "d[0, 0]")


# --- annotations ------------------------------------------------------------------------------------------------------


def test_scalar_annotations_restamp_and_widen() -> None:
    expect(
        opaque(
            "a: pl.Scalar[pl.INT64] = 0\nb: pl.Scalar[pl.INT32] = -3\nc: pl.Scalar[pl.INT64] = n + 1\nd: 'text' = n\ne: pl.UnknownType = n\nreturn c"
        ),
        """
        a: pl.Scalar[pl.INT64] = pl.const(0, pl.INT64)
        b: pl.Scalar[pl.INT32] = pl.const(-3, pl.INT32)
        c: pl.Scalar[pl.INT64] = n + 1
        d: pl.Scalar[pl.INDEX] = n
        e: pl.Scalar[pl.INDEX] = n
        return c
        """,
    )
    node = parse(opaque("c: pl.Scalar[pl.INT64] = n + 1\nreturn c"))
    assert node.body[0].var.type == ir.ScalarType(pl.INT64)


# --- 9.3 --------------------------------------------------------------------------------------------------------------


def test_unpacking_goes_through_one_value_so_that_a_swap_swaps() -> None:
    expect(
        opaque("a = n\nb = n + 1\na, b = b, a\nreturn a, b"),
        """
        a: pl.Scalar[pl.INDEX] = n
        b: pl.Scalar[pl.INDEX] = n + 1
        _tuple_tmp: pl.Tuple[pl.Scalar[pl.INDEX], pl.Scalar[pl.INDEX]] = [b, a]
        a: pl.Scalar[pl.INDEX] = _tuple_tmp[0]
        b: pl.Scalar[pl.INDEX] = _tuple_tmp[1]
        return a, b
        """,
    )
    node = parse(opaque("[a, b] = n, g\nreturn a"))
    assert [s.var.name_hint for s in node.body.stmts[:3]] == ["_tuple_tmp", "a", "b"]


def test_unpacking_an_operation_with_two_results() -> None:
    params = "x: pl.Tensor[[16, 32], pl.FP32]"
    node = parse(kernel("a, b = pl.gather(x, kvalue=1.0, cmp_mode='eq', out_cols=8)\nreturn", params))
    round_trip(node)
    assert [type(s.value) for s in node.body.stmts[1:3]] == [ir.TupleGetItemExpr] * 2
    assert type(node.body[0].value) is ir.Call


# --- 9.4, 9.5 ---------------------------------------------------------------------------------------------------------


def test_expression_statements_and_returns() -> None:
    expect(
        kernel("pl.system.bar_all()\npl.store(pl.load(x, [0, 0], [64, 128]), [0, 0], o)\nreturn x, 1"),
        """
        pl.system.bar_all()
        pl.tile.store(pl.tile.load(x, [0, 0], [64, 128], [64, 128], target_memory=pl.Mem.Vec), [0, 0], o)
        return x, 1
        """,
    )
    node = parse(opaque("return (n, g)"))
    assert len(node.body.value) == 2
    node = parse(opaque("t = (n, g)\nreturn t"))
    assert len(node.body[1].value) == 1
    node = parse(opaque("return"))
    assert isinstance(node.body, ir.ReturnStmt)


def returning(results: str, values: str) -> str:
    return f"{HEAD}@pl.function\ndef f(x: pl.Tensor[[8, 16], pl.FP32], n: pl.Scalar[pl.INT32]) -> {results}:\n    return {values}\n"


@pytest.mark.parametrize(
    ("results", "values", "phrase"),
    [
        ("pl.Tensor[[8, 16], pl.FP32]", "x, x", "return has 2 value(s)"),
        ("tuple[pl.Tensor[[8, 16], pl.FP32], pl.Scalar[pl.INT32]]", "x", "return has 1 value(s)"),
        ("tuple[pl.Tensor[[8, 16], pl.FP32], pl.Scalar[pl.INT32]]", "n, x", "return value 0"),
        ("pl.Tensor[[8, 16], pl.FP16]", "x", "has dtype"),
        ("pl.Tensor[[8], pl.FP32]", "x", "has rank 1 but expression has rank 2"),
        ("pl.Tensor[[8, 8], pl.FP32]", "x", "has shape dimension 1 = 8 but expression has shape dimension 1 = 16"),
        ("pl.Scalar[pl.FP32]", "n", "has dtype"),
        ("pl.Scalar[pl.INT32]", "", "return has 0 value(s)"),
    ],
)
def test_returned_values_fit_the_declared_results(results: str, values: str, phrase: str) -> None:
    check_error(returning(results, values), T, phrase, "return")


@pytest.mark.parametrize(
    ("results", "values"),
    [
        ("pl.Tensor[[8, 16], pl.FP32]", "x"),
        ("tuple[pl.Tensor[[8, 16], pl.FP32], pl.Scalar[pl.INT32]]", "x, n"),
        ("pl.Tuple[pl.Tensor[[8, 16], pl.FP32], pl.Scalar[pl.INT32]]", "x, n"),
        ("pl.Scalar[pl.INT32]", "3"),
        ("pl.Scalar[pl.INT32]", "n"),
    ],
)
def test_fitting_results(results: str, values: str) -> None:
    round_trip(parse(returning(results, values)))


# --- 13 ---------------------------------------------------------------------------------------------------------------


def test_directives_emit_nothing() -> None:
    node = parse(
        opaque("pl.static_assert(ROWS == 4, 'rows')\npl.static_print('n')\na = n\nreturn").replace(
            "@pl", "ROWS = 4\n@pl", 1
        )
    )
    assert len(node.body.stmts) == 2


@pytest.mark.parametrize(
    ("statement", "cls", "phrase"),
    [
        ("pl.static_print()", S, "static_print() requires at least 1 argument"),
        ("pl.static_print(f'{n!r}')", F, "f-string"),
        ("pl.static_print(f'{n:>4}')", F, "f-string"),
        ("pl.static_assert()", S, "static_assert() requires 1 or 2 arguments"),
        ("pl.static_assert(1 < 2, 'a', 'b')", S, "static_assert() requires 1 or 2 arguments"),
        ("pl.static_assert(1 < 2, n)", S, "message must be a string literal"),
        ("pl.static_assert(2 < 1)", ParserError, "static_assert failed"),
        ("pl.static_assert(2 < 1, 'too small')", ParserError, "static_assert failed: too small"),
        ("pl.static_assert(n < 2)", ParserError, "must be compile-time evaluable"),
        ("pl.dump_tag(n)", S, "is only valid inside an Orchestration or Inline function"),
        ("pl.func_attr({'a': 1})", S, "must appear before every other statement"),
        ("pl.cond(n < 3)", S, "can only be the first statement"),
    ],
)
def test_refused_directives(statement: str, cls: type, phrase: str) -> None:
    check_error(opaque(f"a = n\n{statement}\nreturn"), cls, phrase, statement)


@pytest.mark.parametrize(
    ("statement", "cls", "phrase"),
    [
        ("pl.dump_tag()", S, "takes exactly one positional argument"),
        ("pl.dump_tag(x, y)", S, "takes exactly one positional argument"),
        ("pl.dump_tag(x[0:1])", S, "must be a bare variable name"),
        ("pl.dump_tag(q)", S, "is not defined at this point"),
        ("pl.dump_tag(n)", T, "is not a tensor"),
    ],
)
def test_refused_dump_tags(statement: str, cls: type, phrase: str) -> None:
    check_error(program(f"{statement}\nreturn"), cls, phrase, statement)


def test_dump_tags_stick_to_later_launches() -> None:
    main = parse(
        program(
            "y = self.k(x, 1.0, y)\npl.dump_tag(x)\ny = self.k(x, 1.0, y)\nself.plain(y)\ny, t = pl.submit(self.k, x, 1.0, y)\n"
            "with pl.at(level=pl.Level.CORE_GROUP):\n    z[:] = y\nreturn"
        )
    )["main"]
    calls = [s for s in main.body.stmts if type(s) is not ir.ReturnStmt]
    assert "dump_vars" not in calls[0].value.attrs
    assert (
        calls[1].value.attrs["dump_vars"] == [main.params[0]]
        or list(calls[1].value.attrs["dump_vars"])[0] is main.params[0]
    )
    assert "dump_vars" not in calls[2].expr.attrs
    assert calls[3].value.attrs["dump_vars"][0] is main.params[0]
    scope = calls[-1]
    assert scope.attrs["dump_vars"][0] is main.params[0]


def test_a_dump_tag_survives_a_plain_reassignment() -> None:
    main = parse(program("pl.dump_tag(y)\ny = self.k(x, 1.0, y)\ny = self.k(x, 1.0, y)\nreturn"))["main"]
    assert main.body[1].value.attrs["dump_vars"][0] is main.params[3]


# --- errors -----------------------------------------------------------------------------------------------------------


def test_the_first_error_carries_the_others() -> None:
    error = check_error(opaque("a = one\nb = a + two\nc = n + g\nreturn"), U, "Undefined variable 'one'", "a = one")
    rest = [str(e) for e in error.all_errors()]
    assert any("requires same numeric dtype category" in e for e in rest)
    assert sum("Undefined variable" in e for e in rest) == 1  # `b` reads a name that failed already


def test_errors_inside_carried_loops_are_their_own() -> None:
    for head in (
        "for i, (a,) in pl.range(n, init_values=(n,)):\n    ",
        "for (a,) in pl.while_(init_values=(n,)):\n    pl.cond(a < 3)\n    ",
        "for i, (a,) in pl.range(n, init_values=(n,)):\n    if n > 1:\n        b = 1\n    ",
    ):
        check_error(
            opaque(f"{head}b = undefined_name\n    c = pl.yield_(b)\nreturn c"),
            U,
            "'undefined_name'",
            "b = undefined_name",
        )


def test_typing_errors_have_the_statement_as_location() -> None:
    check_error(opaque("a = n\nif a > 1:\n    b = n + g\nreturn"), S, "Failed to parse function", "b = n + g")


def test_suggestions() -> None:
    error = check_error(opaque("counter = n\na = countr\nreturn"), U, "Undefined variable 'countr'")
    assert "counter" in error.hint
    error = check_error(kernel("a = pl.exq(x)\nreturn"), OP, "Unknown operation 'pl.exq'")
    assert "pl.exp" in error.hint
    error = check_error(program("y = self.plan(y)\nreturn"), U, "'plan' not defined in program")
    assert "plain" in error.hint


# --- 16.3 -------------------------------------------------------------------------------------------------------------


def strict(body: str) -> str:
    return opaque(body).replace("@pl.function", "@pl.function(strict_ssa=True)", 1)


def test_strict_ssa() -> None:
    error = check_error(strict("a = n\na = n + 1\nreturn"), V, "Variable 'a' is already defined", "a = n + 1")
    assert error.previous_span["line"] == 5
    check_error(strict("a = n\nfor i in pl.range(3):\n    a = a + 1\nreturn"), V, "is already defined", "a = a + 1")
    # Parameters, loop variables and iter args may be shadowed; an inner scope makes a new variable.
    parse(strict("if n > 1:\n    a = n\nelse:\n    a = n + 1\nreturn"))
    parse(strict("for i in pl.range(3):\n    b = i\nfor i in pl.range(3):\n    c = i\nreturn"))
    node = parse(strict("for i, (a,) in pl.range(3, init_values=(n,)):\n    b = pl.yield_(a + 1)\nreturn b"))
    round_trip_strict = node.as_python(format=False)
    assert "pl.yield_" in round_trip_strict
    node = parse(strict("n = n + 1\nreturn n"))
    assert node.body[0].var is not node.params[0]


def test_a_program_shares_its_names_with_no_method() -> None:
    text = HEAD + textwrap.dedent("""
        @pl.program
        class P:
            @pl.function
            def a(self, n: pl.Scalar[pl.INDEX]):
                local = n
                return local
            @pl.function
            def b(self, m: pl.Scalar[pl.INDEX]):
                return local
        """)
    check_error(text, U, "Undefined variable 'local'", "return local")
    assert body_text(opaque("return n")) == "return n"
