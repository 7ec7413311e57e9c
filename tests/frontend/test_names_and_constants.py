"""Names, closure values, literals, folding (language section 5), scope leaks and strict SSA (section 16)."""

from __future__ import annotations

from typing import Any

import pytest

import pypto.language as pl
from pypto import ir
from pypto.diag.parser_errors import (
    InvalidOperationError,
    ParserSyntaxError,
    ParserTypeError,
    SSAViolationError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)

from .dsl import HEAD, check_error, kernel, opaque, parse, program, round_trip

BEFORE = """
class cfg:
    rows = 12
    half = 0.5
ROWS = 6
RATE = 1.5
FLAG = True
DIMS = (3, 7)
M = pl.dynamic("M")
from pypto import ir as _ir
EXPR = _ir.ConstInt(9, pl.INT32)
SCALED = M * 2
NESTED = [1, (2, 2.5)]
"""


def value(
    expression: str, params: str = "n: pl.Scalar[pl.INDEX], m: pl.Scalar[pl.INT32], g: pl.Scalar[pl.FP32]"
) -> Any:
    text = opaque(f"a = {expression}\nreturn", params).replace("@pl.function", BEFORE + "@pl.function", 1)
    node = parse(text)
    round_trip(node)
    return node.body.stmts[0].value


# --- closure values ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind", "number", "dtype"),
    [
        ("FLAG", ir.ConstBool, True, pl.BOOL),
        ("True", ir.ConstBool, True, pl.BOOL),
        ("ROWS", ir.ConstInt, 6, pl.INDEX),
        ("42", ir.ConstInt, 42, pl.INDEX),
        ("RATE", ir.ConstFloat, 1.5, pl.FP32),
        ("3.5", ir.ConstFloat, 3.5, pl.FP32),
        ("EXPR", ir.ConstInt, 9, pl.INT32),
        ("-ROWS", ir.ConstInt, -6, pl.INDEX),
        ("-2.5", ir.ConstFloat, -2.5, pl.FP32),
        ("+ROWS", ir.ConstInt, 6, pl.INDEX),
        ("ROWS * 2 // 3", ir.ConstInt, 4, pl.INDEX),
        ("7 / 2", ir.ConstFloat, 3.5, pl.FP32),
        ("2 ** 5", ir.ConstInt, 32, pl.INDEX),
        ("6 & 3 | 8 ^ 1", ir.ConstInt, 11, pl.INDEX),
        ("1 << 4 >> 1", ir.ConstInt, 8, pl.INDEX),
        ("ROWS % 4 - -1", ir.ConstInt, 3, pl.INDEX),
        ("pl.const(-3, pl.INT16)", ir.ConstInt, -3, pl.INT16),
        ("pl.const(2.5, pl.FP16)", ir.ConstFloat, 2.5, pl.FP16),
        ("-pl.const(3, pl.INT32)", ir.ConstInt, -3, pl.INT32),
        ("pl.FP32.get_byte()", ir.ConstInt, 4, pl.INDEX),
        ("pl.INT4.get_byte()", ir.ConstInt, 1, pl.INDEX),
    ],
)
def test_constants(name: str, kind: type, number: Any, dtype: Any) -> None:
    found = value(name)
    assert type(found) is kind and found.value == number and type(found.value) is type(number)
    assert found.type.dtype is dtype


def test_an_expression_with_a_call_is_not_folded() -> None:
    found = value("2 * pl.FP32.get_byte()")
    assert isinstance(found, ir.Mul) and found.right.value == 4


def test_symbols_and_wrapped_expressions() -> None:
    params = "x: pl.Tensor[[M, 4], pl.FP32]"
    symbol = value("M", params)
    assert isinstance(symbol, ir.Var) and symbol.name_hint == "M"
    scaled = value("SCALED", params)
    assert isinstance(scaled, ir.Mul) and scaled.left.name_hint == "M" and scaled.right.value == 2
    product = value("M * 3", params)
    assert isinstance(product, ir.Mul) and product.right.value == 3


def test_sequences_are_tuples() -> None:
    found = value("DIMS")
    assert isinstance(found, ir.MakeTuple) and [e.value for e in found.elements] == [3, 7]
    text = opaque("a = NESTED\nreturn").replace("@pl.function", BEFORE + "@pl.function", 1)
    nested = parse(text).body.stmts[0].value
    assert isinstance(nested.elements[1], ir.MakeTuple) and nested.elements[1].elements[1].value == 2.5
    assert isinstance(nested.elements[1].elements[1], ir.ConstFloat)


@pytest.mark.parametrize(("name", "kind"), [("cfg", "type"), ("HEADER", "str"), ("pl", "module"), ("len", "builtin")])
def test_other_values_are_refused(name: str, kind: str) -> None:
    text = opaque(f"a = {name}\nreturn").replace("@pl.f", BEFORE + "HEADER = 'x'\n@pl.f", 1)
    error = check_error(text, ParserTypeError, "Unsupported closure variable type", f"a = {name}")
    assert kind in str(error)


def test_none_is_a_task_without_producer() -> None:
    found = value("None")
    assert found.op.name == "system.task_invalid" and found.type == ir.ScalarType(pl.TASK_ID)


@pytest.mark.parametrize("literal", ["'text'", "b'bytes'", "2j"])
def test_other_literals_are_refused(literal: str) -> None:
    check_error(opaque(f"a = {literal}\nreturn"), ParserTypeError, "Unsupported constant type", "a = ")
    check_error(opaque("a = ...\nreturn"), ParserTypeError, "Unsupported constant type", "a = ")


def test_a_dsl_variable_shadows_a_closure_name_and_stops_folding() -> None:
    found = value("ROWS * 2", "ROWS: pl.Scalar[pl.INDEX]")
    assert isinstance(found, ir.Mul) and isinstance(found.left, ir.Var) and found.right.value == 2
    partly = value("n + ROWS * 2")
    assert isinstance(partly, ir.Add) and partly.right.value == 12


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("not FLAG", "Not"),
        ("~ROWS", "BitNot"),
        ("ROWS < 7", "Lt"),
        ("ROWS == 6", "Eq"),
        ("FLAG and True", "And"),
        ("FLAG or False", "Or"),
    ],
)
def test_what_is_never_folded(expression: str, kind: str) -> None:
    assert type(value(expression)).__name__ == kind


def test_an_if_on_constants_is_kept() -> None:
    node = parse(opaque("if 1 < 2:\n    a = 1\nelse:\n    a = 2\nreturn"))
    assert isinstance(node.body.stmts[0], ir.IfStmt)


def test_division_by_zero_of_constants_is_an_error_at_the_place() -> None:
    check_error(opaque("a = 4 // 0\nreturn"), ParserTypeError, "Failed to evaluate expression", "a = 4 // 0")


def test_numeric_attributes_and_items_of_closure_values() -> None:
    assert value("cfg.rows").value == 12
    assert value("cfg.rows * 2 + DIMS[1]").value == 31
    assert value("cfg.half").value == 0.5
    assert isinstance(value("n + cfg.rows"), ir.Add)


@pytest.mark.parametrize("expression", ["cfg.missing", "n.rows", "x.shape"])
def test_other_attributes_are_refused(expression: str) -> None:
    text = kernel(f"a = {expression}\nreturn", "x: pl.Tensor[[4], pl.FP32], n: pl.Scalar[pl.INDEX]")
    check_error(
        text.replace("@pl.f", BEFORE + "@pl.f", 1),
        UnsupportedFeatureError,
        "Standalone attribute access not supported",
        f"a = {expression}",
    )


def test_unknown_dtypes_of_get_byte() -> None:
    with pytest.raises((ParserTypeError, InvalidOperationError), match="Unknown DataType"):
        parse(opaque("a = pl.FP99.get_byte()\nreturn"))


@pytest.mark.parametrize(
    ("call", "phrase"),
    [
        ("pl.const(1)", "requires exactly 2 arguments"),
        ("pl.const(1, pl.INT32, 3)", "requires exactly 2 arguments"),
        ("pl.const(n, pl.INT32)", "must be a numeric literal"),
        ("pl.const('a', pl.INT32)", "must be a numeric literal"),
        ("pl.const(1 + 1, pl.INT32)", "must be a numeric literal"),
    ],
)
def test_bad_constants(call: str, phrase: str) -> None:
    check_error(opaque(f"a = {call}\nreturn"), ParserSyntaxError, phrase, "a = pl.const")


def test_undefined_names_suggest_a_spelling() -> None:
    error = check_error(
        opaque("count = n\na = coumt + 1\nreturn"), UndefinedVariableError, "Undefined variable 'coumt'"
    )
    assert "count" in (error.hint or "")


def test_operands_of_tensor_operations_take_the_element_dtype() -> None:
    def operand(expression: str, dtype: str) -> Any:
        node = parse(kernel(f"y = {expression}\nreturn", f"x: pl.Tensor[[4], pl.{dtype}]"))
        return node.body.stmts[0].value.args[1]

    found = operand("pl.add(x, 1)", "FP32")
    assert isinstance(found, ir.ConstFloat) and found.value == 1.0 and found.dtype is pl.FP32
    found = operand("pl.add(x, 1)", "INT32")
    assert isinstance(found, ir.ConstInt) and found.dtype is pl.INT32
    assert operand("pl.add(x, 1.5)", "INT32").dtype is pl.FP32
    assert operand("pl.add(x, pl.const(1, pl.INT16))", "INT32").dtype is pl.INT16
    params = "x: pl.Tensor[[4], pl.FP32], n: pl.Scalar[pl.INDEX]"
    check_error(kernel("y = pl.add(x, n)\nreturn", params), InvalidOperationError, "has dtype `index`", "y = ")


# --- what leaks --------------------------------------------------------------------------------------------------------

ALL_LEAK = [
    "for i in pl.range(n):\n    inner = i + 1\nb = inner + i",
    "for i in pl.parallel(n):\n    inner = i + 1\nb = inner + i",
    "for i in pl.unroll(4):\n    inner = i + 1\nb = inner + i",
    "for i in pl.pipeline(n, stage=2):\n    inner = i + 1\nb = inner + i",
    "while n > 1:\n    inner = n - 1\n    n = inner\nb = inner",
    "if n > 1:\n    inner = n\nb = inner",
    "if n > 1:\n    other = n\nelse:\n    inner = n\nb = inner + other",
]


@pytest.mark.parametrize("body", ALL_LEAK)
def test_names_of_natural_constructs_leak(body: str) -> None:
    round_trip(parse(opaque(body + "\nreturn")))


HIDDEN = [
    (
        "for i, (a,) in pl.range(n, init_values=(n,)):\n    inner = a + 1\n    out = pl.yield_(inner)\nb = {}",
        "inner a i",
    ),
    ("for i, (a,) in pl.range(n, init_values=(n,)):\n    inner = a + 1\nb = {}", "inner a i"),
    (
        "for (a,) in pl.while_(init_values=(n,)):\n    pl.cond(a < 9)\n    inner = a + 1\n    out = pl.yield_(inner)\nb = {}",
        "inner a",
    ),
    ("if n > 1:\n    inner = n\n    out = pl.yield_(inner)\nelse:\n    out = pl.yield_(n)\nb = {}", "inner"),
]


@pytest.mark.parametrize(("body", "name"), [(body, name) for body, names in HIDDEN for name in names.split()])
def test_names_of_yielding_constructs_do_not_leak(body: str, name: str) -> None:
    check_error(opaque(body.format(name) + "\nreturn"), UndefinedVariableError, f"Undefined variable '{name}'", "b = ")


@pytest.mark.parametrize("body", [body for body, _ in HIDDEN if "out" in body])
def test_yielded_names_are_visible(body: str) -> None:
    round_trip(parse(opaque(body.format("out") + "\nreturn")))


SCOPES = [
    "with pl.at(level=pl.Level.CORE_GROUP):\n    inner = pl.mul(x, 2.0)\ny = self.k(inner, 1.0, y)",
    "with pl.cluster():\n    inner = pl.mul(x, 2.0)\ny = self.k(inner, 1.0, y)",
    "with pl.manual_scope():\n    inner = pl.mul(x, 2.0)\ny = self.k(inner, 1.0, y)",
    "for i in pl.spmd(4):\n    inner = i + 1\nb = inner + i",
    "for i in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n    inner = i + 1\nb = inner + i",
]


@pytest.mark.parametrize("body", SCOPES)
def test_names_of_scopes_leak(body: str) -> None:
    round_trip(parse(program(body + "\nreturn")))


def test_an_inner_assignment_reuses_the_outer_variable() -> None:
    node = parse(opaque("a = n\nif n > 1:\n    a = n + 1\nwhile a > 1:\n    a = a - 1\nreturn a"))
    outer = node.body.stmts[0].var
    assert node.body.stmts[1].then_body.var is outer
    assert node.body.stmts[2].body.var is outer
    assert node.body.stmts[3].value[0] is outer


# --- strict SSA --------------------------------------------------------------------------------------------------------


def strict(body: str, params: str = "n: pl.Scalar[pl.INDEX], x: pl.Tensor[[8, 4], pl.FP32]") -> str:
    return opaque(body, params).replace("@pl.function", "@pl.function(strict_ssa=True)", 1)


def test_a_second_definition_is_refused_with_the_first_place() -> None:
    text = strict("a = n\na = n + 1\nreturn a")
    error = check_error(text, SSAViolationError, "Variable 'a' is already defined", "a = n + 1")
    assert isinstance(error, SSAViolationError) and error.previous_span is not None
    assert text.splitlines()[error.previous_span["line"] - 1].strip() == "a = n"
    assert error.hint and error.note


def test_strict_programs() -> None:
    text = program("b = n\nb = n + 1\nreturn").replace("@pl.program", "@pl.program(strict_ssa=True)")
    check_error(text, SSAViolationError, "Variable 'b' is already defined", "b = n + 1")


@pytest.mark.parametrize(
    "body",
    [
        "for n in pl.range(4):\n    a = n\nreturn",
        "for i, (n,) in pl.range(4, init_values=(n,)):\n    b = pl.yield_(n + 1)\nreturn b",
        "if n > 1:\n    a = n\nelse:\n    a = n + 1\nreturn",
    ],
)
def test_shadowing_and_branches_are_allowed(body: str) -> None:
    parse(strict(body))


def test_an_inner_scope_assignment_makes_a_new_variable() -> None:
    node = parse(strict("a = n\nif n > 1:\n    a = n + 1\nreturn a"))
    assert node.body.stmts[1].then_body.var is not node.body.stmts[0].var


def test_an_accumulating_loop_is_refused() -> None:
    error = check_error(
        strict("a = n\nfor i in pl.range(3):\n    a = a + i\nreturn a"),
        SSAViolationError,
        "already defined",
        "a = a + i",
    )
    assert "init_values" in (error.hint or "")


def test_strict_subscript_writes() -> None:
    check_error(
        strict("x[0:2, :] = x[2:4, :]\nreturn"),
        UnsupportedFeatureError,
        "only supported before SSA conversion",
        "x[0:2",
    )


# --- dimensions (section 15) -------------------------------------------------------------------------------------------

ORCHESTRATION = (
    HEAD
    + "R = pl.dynamic('R')\nAXIS = 0\n@pl.function(type=pl.FunctionType.{kind})\n"
    + "def f(x: pl.Tensor[[R, 8], pl.FP32], y: pl.Tensor[[4, R], pl.FP32]):\n{body}"
)


def dims(body: str, kind: str = "Orchestration") -> Any:
    node = parse(ORCHESTRATION.format(kind=kind, body="".join(f"    {line}\n" for line in body.split("\n"))))
    round_trip(node)
    return node


@pytest.mark.parametrize(
    "call",
    [
        "pl.tensor.dim(x, 0)",
        "pl.tensor.dim(x, axis=0)",
        "pl.tensor.dim(x, AXIS)",
        "pl.tensor.dim(x, -2)",
        "pl.tensor.dim(y, 1)",
    ],
)
def test_a_dimension_of_a_parameter_is_its_symbol(call: str) -> None:
    node = dims(f"n = {call}\na = n + 1\nb: pl.Scalar[pl.INDEX] = {call}\nc = b * {call}\nreturn")
    symbol = node.params[0].type.shape[0]
    first, second = node.body.stmts[:2]
    assert len(node.body.stmts) == 3
    assert first.value.left is symbol and second.value.left is symbol and second.value.right is symbol


def test_a_static_dimension_is_not_folded() -> None:
    node = dims("n = pl.tensor.dim(x, 1)\nreturn")
    assert isinstance(node.body.stmts[0], ir.AssignStmt)


@pytest.mark.parametrize("kind", ["InCore", "Opaque"])
def test_other_kinds_of_functions_read_the_dimension(kind: str) -> None:
    node = dims("n = pl.tensor.dim(x, 0)\nreturn", kind)
    assert node.body.stmts[0].value.op.name == "tensor.dim"


def test_rebinding_a_folded_name_makes_a_new_variable() -> None:
    node = dims("n = pl.tensor.dim(x, 0)\nn = n + 1\nm = n\nreturn")
    symbol = node.params[0].type.shape[0]
    first, second = node.body.stmts[:2]
    assert first.value.left is symbol and first.var is not symbol and second.value is first.var


def test_rebinding_a_folded_name_in_a_loop_carries_it() -> None:
    node = dims("n = pl.tensor.dim(x, 0)\nfor i in pl.range(3):\n    n = n + i\nm = n\nreturn")
    copy, loop, last = node.body.stmts[:3]
    assert copy.value is node.params[0].type.shape[0]
    assert loop.body.var is copy.var and loop.body.value.left is copy.var and last.value is copy.var


def test_a_scalar_parameter_symbol_is_what_its_dimension_folds_to() -> None:
    text = (
        HEAD + "R = pl.dynamic('R')\n@pl.function(type=pl.FunctionType.Orchestration)\n"
        "def f(R: pl.Scalar[pl.INDEX], x: pl.Tensor[[R, 8], pl.FP32]):\n"
        "    n = pl.tensor.dim(x, 0)\n    n = n + 1\n    return\n"
    )
    node = parse(text)
    assert node.body.stmts[0].value.left is node.params[0] and node.body.stmts[0].var is not node.params[0]
    round_trip(node)
