"""Operators, their typing, tensor operators, tuples, folding: written from section 6 of the language description."""

from __future__ import annotations

import pytest

import pypto.language as pl
from pypto import ir
from pypto.diag.parser_errors import (
    InvalidOperationError,
    ParserSyntaxError,
    ParserTypeError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)

from .dsl import HEAD, body_text, check_error, expect, kernel, opaque, parse, round_trip

F, S, T, OP = UnsupportedFeatureError, ParserSyntaxError, ParserTypeError, InvalidOperationError
SCALARS = "i: pl.Scalar[pl.INDEX], l: pl.Scalar[pl.INT64], m: pl.Scalar[pl.INT32], u: pl.Scalar[pl.UINT8], g: pl.Scalar[pl.FP32], h: pl.Scalar[pl.FP16], b: pl.Scalar[pl.BOOL]"


def value(expression: str, setup: str = "") -> ir.Expr:
    """The IR of one expression over scalars; the function also survives a round trip."""
    node = parse(opaque(f"r = {expression}\nreturn", SCALARS).replace("@pl", setup + "\n@pl", 1))
    round_trip(node)
    return node.body[0].value


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
def test_arithmetic_operators(symbol: str, node: type) -> None:
    found = value(f"m {symbol} m")
    assert type(found) is node
    assert found.type == ir.ScalarType(pl.INT32)
    assert type(found.left) is ir.Var
    assert found.left is found.right


@pytest.mark.parametrize(
    ("symbol", "node"), [("==", ir.Eq), ("!=", ir.Ne), ("<", ir.Lt), ("<=", ir.Le), (">", ir.Gt), (">=", ir.Ge)]
)
def test_comparisons_are_bool(symbol: str, node: type) -> None:
    found = value(f"g {symbol} g")
    assert type(found) is node
    assert found.type == ir.ScalarType(pl.BOOL)


def test_boolean_operators_lean_left() -> None:
    found = value("b and b and b")
    assert type(found) is ir.And
    assert type(found.left) is ir.And
    found = value("b or b or b")
    assert type(found) is ir.Or
    assert type(found.left) is ir.Or


def test_unary_operators() -> None:
    assert type(value("-m")) is ir.Neg
    assert value("-m").type == ir.ScalarType(pl.INT32)
    assert type(value("not b")) is ir.Not
    assert value("not b").type == ir.ScalarType(pl.BOOL)
    assert type(value("~m")) is ir.BitNot
    assert type(value("+m")) is ir.Var


def test_sequences_are_make_tuple() -> None:
    assert type(value("(i, g)")) is ir.MakeTuple
    assert type(value("[i, i]")) is ir.MakeTuple


def test_memory_space_alone_is_its_number() -> None:
    found = value("pl.Mem.Vec")
    assert type(found) is ir.ConstInt
    assert found.value == pl.Mem.Vec.value
    assert found.type == ir.ScalarType(pl.INDEX)


# --- typing -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "dtype", "casts"),
    [
        ("m + i", "INDEX", (True, False)),  # 32 < 64
        ("i + m", "INDEX", (False, True)),
        ("i + l", "INDEX", (False, False)),  # no cast between INDEX and INT64; the left one on a tie
        ("l + i", "INT64", (False, False)),
        ("m + 1", "INDEX", (True, False)),  # a bare literal is INDEX
        ("m + pl.const(1, pl.INT32)", "INT32", (False, False)),
        ("u + m", "INT32", (True, False)),
        ("g + h", "FP32", (False, True)),
        ("h + g", "FP32", (True, False)),
        ("g + 1.0", "FP32", (False, False)),
        ("h * 2.0", "FP32", (True, False)),
    ],
)
def test_promotion(expression: str, dtype: str, casts: tuple[bool, bool]) -> None:
    found = value(expression)
    assert found.type == ir.ScalarType(getattr(pl, dtype))
    assert (type(found.left) is ir.Cast, type(found.right) is ir.Cast) == casts


def test_comparison_promotes_its_operands() -> None:
    found = value("m < i")
    assert type(found.left) is ir.Cast
    assert found.left.type == ir.ScalarType(pl.INDEX)


def test_integer_division_stays_integer() -> None:
    assert value("m / m").type == ir.ScalarType(pl.INT32)


@pytest.mark.parametrize(
    ("expression", "remedy"),
    [
        ("g > 0", "write 0.0 for the constant"),
        ("3 + g", "write 3.0 for the constant"),
        ("g < i", "convert one with pl.cast"),
    ],
)
def test_a_mix_of_integer_and_float_names_the_remedy(expression: str, remedy: str) -> None:
    try:
        value(expression)
    except S as error:
        assert str(error).endswith(remedy), str(error)
    else:
        pytest.fail("accepted")


@pytest.mark.parametrize(
    ("expression", "cls", "phrase"),
    [
        ("i + g", S, "requires same numeric dtype category"),
        ("i < g", S, "requires same numeric dtype category"),
        ("b + b", S, "does not accept bool dtype"),
        ("b == b", S, "does not accept bool dtype"),
        ("g << 1", S, "requires integer dtype"),
        ("~g", S, "requires integer dtype"),
        ("g & g", S, "requires integer dtype"),
        ("i @ i", F, "Unsupported binary operator: MatMult"),
        ("i is i", F, "Unsupported comparison: Is"),
        ("i not in i", F, "Unsupported comparison: NotIn"),
        ("i < i < i", S, "Only simple comparisons supported"),
        ("lambda: 1", F, "Unsupported expression type: Lambda"),
        ("{1}", F, "Unsupported expression type: Set"),
        ("{1: 2}", F, "Unsupported expression type: Dict"),
        ("[k for k in i]", F, "Unsupported expression type: ListComp"),
        ("f'{i}'", F, "Unsupported expression type: JoinedStr"),
        ("(y := i)", F, "Unsupported expression type: NamedExpr"),
        ("[*i]", F, "Unsupported expression type: Starred"),
        ("i if b else m", F, "Unsupported expression type: IfExp"),
        ("'s'", T, "Unsupported constant type"),
        ("b'1'", T, "Unsupported constant type"),
        ("2j", T, "Unsupported constant type"),
        ("...", T, "Unsupported constant type"),
        ("pl.FP32", F, "Standalone attribute access not supported"),
        ("i.rows", F, "Standalone attribute access not supported"),
        ("-math", T, "Unsupported closure variable type"),
        ("missing + 1", UndefinedVariableError, "Undefined variable 'missing'"),
        ("min(i, m) @ i", F, "Unsupported binary operator"),
        ("1 // 0", T, "Failed to evaluate expression"),
    ],
)
def test_refused_expressions(expression: str, cls: type, phrase: str) -> None:
    check_error(opaque(f"r = {expression}\nreturn", SCALARS), cls, phrase, "r = ")


# --- folding ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "cls", "number", "dtype"),
    [
        ("ROWS * 2 // 3", ir.ConstInt, 32, "INDEX"),
        ("7 / 2", ir.ConstFloat, 3.5, "FP32"),
        ("2 ** 5", ir.ConstInt, 32, "INDEX"),
        ("6 & 3 | 8", ir.ConstInt, 10, "INDEX"),
        ("-ROWS", ir.ConstInt, -48, "INDEX"),
        ("+ROWS", ir.ConstInt, 48, "INDEX"),
        ("-(ROWS + 1)", ir.ConstInt, -49, "INDEX"),
        ("-2.5", ir.ConstFloat, -2.5, "FP32"),
        ("-pl.const(3, pl.INT32)", ir.ConstInt, -3, "INT32"),
        ("pl.const(-3, pl.INT16)", ir.ConstInt, -3, "INT16"),
        ("pl.const(1.5, pl.FP16)", ir.ConstFloat, 1.5, "FP16"),
        ("pl.FP32.get_byte()", ir.ConstInt, 4, "INDEX"),
        ("pl.INT4.get_byte()", ir.ConstInt, 1, "INDEX"),
        ("FLAG", ir.ConstBool, True, "BOOL"),
        ("3 if FLAG else 4", ir.ConstInt, 3, "INDEX"),
    ],
)
def test_folding(expression: str, cls: type, number: float, dtype: str) -> None:
    found = value(expression, "ROWS = 48\nFLAG = True")
    assert type(found) is cls
    assert found.value == number
    assert found.type == ir.ScalarType(getattr(pl, dtype))


def test_not_invert_comparison_and_booleans_are_never_folded() -> None:
    assert type(value("not FLAG", "FLAG = True")) is ir.Not
    assert type(value("~3")) is ir.BitNot
    assert type(value("1 < 2")) is ir.Lt
    assert type(value("FLAG and True", "FLAG = True")) is ir.And


def test_a_dsl_name_shadows_a_closure_name_and_stops_folding() -> None:
    found = value("i + 2", "i = 5")
    assert type(found) is ir.Add


def test_a_branch_on_constants_is_kept() -> None:
    node = parse(opaque("if 1 < 2:\n    r = i\nelse:\n    r = i + 1\nreturn r", SCALARS))
    assert isinstance(node.body[0], ir.IfStmt)


def test_none_is_an_invalid_task() -> None:
    found = value("None")
    assert type(found) is ir.Call
    assert found.op.name == "system.task_invalid"
    assert found.type == ir.ScalarType(pl.TASK_ID)


def test_closure_values() -> None:
    text = opaque("e = E\nd = DIMS\nc = M * 2\nreturn", SCALARS).replace(
        "@pl", "DIMS = (3, 4.5)\nM = pl.dynamic('M')\nfrom pypto import ir\nE = ir.ConstInt(7, pl.INT16)\n@pl", 1
    )
    node = parse(text)
    stmts = node.body.stmts
    assert stmts[0].value.value == 7
    assert stmts[0].value.type == ir.ScalarType(pl.INT16)
    assert type(stmts[1].value) is ir.MakeTuple
    assert [type(e) for e in stmts[1].value.elements] == [ir.ConstInt, ir.ConstFloat]
    assert type(stmts[2].value) is ir.Mul
    assert stmts[2].value.left.name_hint == "M"


# --- tensors and tiles ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "printed"),
    [
        ("x + x", "pl.tensor.add(x, x)"),
        ("x - x", "pl.tensor.sub(x, x)"),
        ("x * x", "pl.tensor.mul(x, x)"),
        ("x / x", "pl.tensor.div(x, x)"),
        ("x + 1", "pl.tensor.adds(x, 1.0)"),  # an untyped literal takes the element dtype
        ("x - 1.0", "pl.tensor.subs(x, 1.0)"),
        ("x * s", "pl.tensor.muls(x, s)"),
        ("s * x", "pl.tensor.muls(x, s)"),
        ("2 + x", "pl.tensor.adds(x, 2.0)"),
        ("-x", "pl.tensor.neg(x)"),
        ("t + t", "pl.tile.add(t, t)"),
        ("t * 0.5", "pl.tile.muls(t, 0.5)"),
        ("0.5 * t", "pl.tile.muls(t, 0.5)"),
        ("t / s", "pl.tile.divs(t, s)"),
        ("-t", "pl.tile.neg(t)"),
        ("(x + x) * s - x", "pl.tensor.sub(pl.tensor.muls(pl.tensor.add(x, x), s), x)"),
    ],
)
def test_operators_on_tensors_and_tiles_dispatch_like_the_unified_operators(expression: str, printed: str) -> None:
    params = "x: pl.Tensor[[16, 32], pl.FP32], s: pl.Scalar[pl.FP32]"
    text = kernel(f"t = pl.load(x, [0, 0], [16, 32])\nr = {expression}\nreturn", params)
    assert body_text(text).splitlines()[1].split(" = ", 1)[1] == printed
    round_trip(parse(text))


@pytest.mark.parametrize(
    ("expression", "phrase"),
    [
        ("x + t", "cannot mix Tensor and Tile"),
        ("x % x", "must be ScalarExpr or Var with ScalarType"),
        ("x == x", "must be ScalarExpr or Var with ScalarType"),
        ("x + n", "has dtype `index`"),
        ("n > 1 and x", "must be ScalarExpr or Var with ScalarType"),
        ("t or n > 1", "must be ScalarExpr or Var with ScalarType"),
        ("not x", "must be ScalarExpr or Var with ScalarType"),
    ],
)
def test_refused_tensor_operators(expression: str, phrase: str) -> None:
    params = "x: pl.Tensor[[16, 32], pl.FP32], n: pl.Scalar[pl.INDEX]"
    check_error(kernel(f"t = pl.load(x, [0, 0], [16, 32])\nr = {expression}\nreturn", params), OP, phrase, "r = ")


@pytest.mark.parametrize(
    ("dtype", "literal", "printed"),
    [
        ("FP32", "1", "1.0"),
        ("INT32", "1", "pl.const(1, pl.INT32)"),
        ("INT32", "2.5", "2.5"),
        ("INT32", "pl.const(3, pl.INT16)", "pl.const(3, pl.INT16)"),
    ],
)
def test_literal_operands_take_the_element_dtype(dtype: str, literal: str, printed: str) -> None:
    params = f"x: pl.Tensor[[16, 32], pl.{dtype}]"
    shown = body_text(kernel(f"r = pl.add(x, {literal})\nreturn", params))
    assert f"pl.tensor.adds(x, {printed})" in shown


# --- tuples -----------------------------------------------------------------------------------------------------------


def test_tuple_items() -> None:
    expect(
        opaque("p = (i, g)\na = p[0]\nb = p[1]\nreturn a", "i: pl.Scalar[pl.INDEX], g: pl.Scalar[pl.FP32]"),
        """
        p: pl.Tuple[pl.Scalar[pl.INDEX], pl.Scalar[pl.FP32]] = [i, g]
        a: pl.Scalar[pl.INDEX] = p[0]
        b: pl.Scalar[pl.FP32] = p[1]
        return a
        """,
    )


@pytest.mark.parametrize(
    ("subscript", "cls", "phrase"),
    [
        ("p[i]", F, "Only constant integer indices supported for tuple access"),
        ("p[0:1]", F, "Only constant integer indices supported for tuple access"),
        ("p['a']", S, "Tuple index must be an integer"),
        ("p[1.5]", S, "Tuple index must be an integer"),
        ("p[2]", OP, "out of bounds"),
    ],
)
def test_refused_tuple_items(subscript: str, cls: type, phrase: str) -> None:
    params = "i: pl.Scalar[pl.INDEX], g: pl.Scalar[pl.FP32]"
    check_error(opaque(f"p = (i, g)\na = {subscript}\nreturn", params), cls, phrase, subscript)


# --- builtins ---------------------------------------------------------------------------------------------------------


def test_scalar_builtins() -> None:
    assert type(value("min(i, 3)")) is ir.Min
    assert type(value("max(g, 0.0)")) is ir.Max
    assert type(value("abs(m)")) is ir.Abs
    assert type(value("pl.min(i, 3)")) is ir.Min
    assert type(value("pl.max(i, m)")) is ir.Max
    assert value("min(ROWS, 3)", "ROWS = 48").value == 3
    found = value("min(i, m, 3)")
    assert type(found) is ir.Min
    assert type(found.left) is ir.Min


def test_printed_precedence_survives() -> None:
    for expression in (
        "(i + 1) * 2",
        "i - (1 - i)",
        "-(i + 1)",
        "(-i) ** 2",
        "-i ** 2",
        "2 ** -i",
        "(i ** i) ** i",
        "i ** i ** i",
        "not (b and b)",
        "(not b) and b",
        "(i < 2) and not (i > 3) or b",
        "~(i | 1) & (i ^ 2) << 1",
        "i // 2 * 2 + i % 2",
        "i - pl.const(2, pl.INDEX) * pl.const(3, pl.INDEX)",
        "pl.cast(i, pl.FP32) * g",
        "abs(i - 3) + min(i, max(2, i))",
        "(-3) ** i",
    ):
        value(expression)


def test_evaluation_order_is_left_to_right() -> None:
    # Two undefined names: the first one read is reported first.
    error = check_error(opaque("r = first + second\nreturn"), UndefinedVariableError, "Undefined variable 'first'")
    assert error.span["column"] == 9


def test_spans_name_the_node() -> None:
    node = parse(HEAD + "@pl.function\ndef f(n: pl.Scalar[pl.INDEX]):\n    r = n + n * 2\n    return\n")
    add = node.body[0].value
    assert (add.span.begin_line, add.span.begin_column) == (5, 9)
    assert (add.right.span.begin_line, add.right.span.begin_column) == (5, 13)
