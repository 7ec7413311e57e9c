"""Which class a failure becomes, where it points, and which failures are never wrapped (errors section 2)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import pypto.language as pl
from pypto.diag import InternalError
from pypto.diag.parser_errors import (
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    UndefinedVariableError,
)

from .dsl import HEAD, check_error, file_error, kernel, load_file, opaque, parse, program

X = "x: pl.Tensor[[64, 128], pl.FP32], n: pl.Scalar[pl.INDEX], g: pl.Scalar[pl.FP32]"


@pytest.mark.parametrize(
    ("call", "prefix"),
    [
        ("pl.add(x)", "pl operation 'add': "),
        ("pl.tensor.add(x)", "pl.tensor operation 'add': "),
        ("pl.tile.add(x)", "pl.tile operation 'add': "),
        ("pl.array.create(1, 2, 3, 4)", "pl.array operation 'create': "),
        ("pl.system.bar_all(1, 2)", "pl.system operation 'bar_all': "),
    ],
)
def test_operator_errors_name_the_operator(call: str, prefix: str) -> None:
    error = check_error(kernel(f"y = {call}\nreturn", X), InvalidOperationError, prefix, f"y = {call}")
    assert isinstance(error.__cause__, (TypeError, ValueError))
    assert str(error).startswith(prefix)


def test_a_message_that_names_the_operator_already_has_no_prefix() -> None:
    error = check_error(kernel("y = pl.exp(3)\nreturn", X), InvalidOperationError, "pl.exp: expected Tensor or Tile")
    assert not str(error).startswith("pl operation")


def test_the_span_is_that_of_the_call() -> None:
    text = kernel("y = pl.exp(pl.mul(x,\n    pl.add(x)))\nreturn", X)
    error = check_error(text, InvalidOperationError, "pl operation 'add'", "pl.add(x)))")
    assert error.span is not None and error.span["column"] == 9


def test_hint_for_scalar_operands() -> None:
    error = check_error(kernel("y = pl.exp(g)\nreturn", X), InvalidOperationError, "expected Tensor or Tile")
    assert error.__cause__ is not None


@pytest.mark.parametrize(
    ("statement", "phrase"),
    [
        ("a = n + g", "requires same numeric dtype category"),
        ("a = (n < 3) * 2", "does not accept bool dtype"),
        ("a = g << 1", "requires integer dtype"),
        ("if n + g > 0:\n    a = 1", "requires same numeric dtype category"),
    ],
)
@pytest.mark.parametrize("method", [False, True])
def test_scalar_typing_errors_are_wrapped_with_a_place(statement: str, phrase: str, method: bool) -> None:
    if method:
        text = program(f"b = n\n{statement}\nreturn").replace(
            "n: pl.Scalar[pl.INDEX],", "n: pl.Scalar[pl.INDEX], g: pl.Scalar[pl.FP32],"
        )
        name = "main"
    else:
        text, name = kernel(f"b = n\n{statement}\nreturn", X), "f"
    error = check_error(text, ParserSyntaxError, phrase, statement.split("\n")[0])
    assert str(error).startswith(f"Failed to parse function '{name}': ")
    assert error.hint == "Check your function definition for errors"
    assert isinstance(error.__cause__, (TypeError, ValueError))


def test_all_independent_errors_are_reported() -> None:
    text = program("a = nope1\nb = nope2\nc = a + 1\nd = pl.adn(x)\nreturn")
    with pytest.raises(UndefinedVariableError) as info:
        parse(text)
    found = [str(e) for e in info.value.all_errors()]
    assert [m for m in found if "nope" in m or "adn" in m] == found and len(found) == 3
    assert all(e.span is not None and e.source_lines is not None for e in info.value.all_errors())


def test_errors_of_several_methods() -> None:
    text = program("a = nope1\nreturn").replace("t = pl.load(a, [0, 0], [32, 64])", "t = pl.lod(a)")
    with pytest.raises(ParserError) as info:
        parse(text)
    found = [str(e) for e in info.value.all_errors()]
    assert any("nope1" in m for m in found) and sum("pl.lod" in m for m in found) == 2


class Broken:
    """A closure value whose evaluation fails like a compiler bug."""

    def __init__(self, error: type[BaseException]) -> None:
        self.error = error

    def __getattr__(self, name: str) -> Any:
        raise self.error("broken")

    def __index__(self) -> int:
        raise self.error("broken")


BUGS = ["x: pl.Tensor[[broken.rows + 1, 4], pl.FP32]", "x: pl.Array[broken.rows * 2, pl.INT32]"]


@pytest.mark.parametrize("kind", [AssertionError, InternalError])
@pytest.mark.parametrize("params", BUGS)
def test_bugs_are_never_wrapped(tmp_path: Path, kind: type[BaseException], params: str) -> None:
    text = f"from __future__ import annotations\n{HEAD}@pl.function\ndef f({params}):\n    return\n"
    path = tmp_path / "bug.py"
    path.write_text(text)
    with pytest.raises(kind):
        exec(compile(text, str(path), "exec"), {"__name__": "bug", "__file__": str(path), "broken": Broken(kind)})


@pytest.mark.parametrize(
    "body",
    [
        "pl.static_assert(broken.rows == 1)\nreturn",
        "y = pl.reshape(x, [broken.rows, 2])\nreturn",
        "a = broken.rows + 1\nreturn",
    ],
)
@pytest.mark.parametrize("kind", [AssertionError, InternalError])
def test_bugs_in_a_body_are_never_wrapped(tmp_path: Path, kind: type[BaseException], body: str) -> None:
    text = kernel(body, X)
    path = tmp_path / "bug.py"
    path.write_text(text)
    with pytest.raises(kind):
        exec(compile(text, str(path), "exec"), {"__name__": "bug", "__file__": str(path), "broken": Broken(kind)})


def test_other_failures_of_closure_expressions_are_type_errors(tmp_path: Path) -> None:
    head = "from __future__ import annotations\n" + HEAD + "cfg = {'a': 1}\n"
    for expression in ("cfg['b']", "cfg.rows + 1", "4 // 0", "len(3)"):
        text = head + f"@pl.function\ndef f(\n    x: pl.Tensor[[{expression}, 4], pl.FP32],\n):\n    return\n"
        file_error(
            tmp_path,
            text,
            ParserTypeError,
            "Failed to evaluate expression",
            f"x: pl.Tensor[[{expression}, 4], pl.FP32],",
        )


def test_a_broken_string_annotation_is_a_type_error(tmp_path: Path) -> None:
    text = HEAD + "@pl.function\ndef f(\n    x: 'pl.Tensor[[4',\n):\n    return\n"
    file_error(tmp_path, text, ParserTypeError, "Unsupported type annotation", "x: 'pl.Tensor[[4',")


def test_errors_in_a_nested_method(tmp_path: Path) -> None:
    text = (
        "# lead\n\n\n"
        + HEAD
        + (
            "def make():\n    class Outer:\n        @pl.program\n        class P:\n            K = 1\n\n"
            "            @pl.function(type=pl.FunctionType.InCore)\n            def f(self, x: pl.Tensor[[4, 4], pl.FP32]):\n"
            "                # a comment\n                y = pl.exp(x); z = pl.adn(y, 1.0)\n                return z\n"
            "    return Outer\n\nmake()\n"
        )
    )
    error = file_error(
        tmp_path, text, InvalidOperationError, "Unknown operation 'pl.adn'", "y = pl.exp(x); z = pl.adn(y, 1.0)"
    )
    assert error.span is not None and error.span["column"] == 36


def test_deep_nesting_is_an_error_and_not_a_crash() -> None:
    depth = 150
    body = "".join("    " * i + f"if n > {i}:\n" for i in range(90)) + "    " * 90 + "a = n\n"
    parse(opaque(body + "return"))
    expression = "(" * depth + "n" + " + 1)" * depth
    parse(opaque(f"a = {expression}\nreturn"))


def test_expressions_too_deep_are_errors_and_not_crashes() -> None:
    parse(opaque("a = n" + " + 1" * 700 + "\nreturn"))
    parse(opaque("a = " + "-(" * 60 + "n" + ")" * 60 + "\nreturn"))
    beyond = opaque("a = n" + " + 1" * 100_000 + "\nreturn")
    if sys.version_info < (3, 11):  # its parser has no limit here, and so there is none
        parse(beyond)
        return
    with pytest.raises(SyntaxError, match="Failed to compile code"):
        parse(beyond)


def test_loaded_functions_are_unaffected_by_an_earlier_failure(tmp_path: Path) -> None:
    with pytest.raises(UndefinedVariableError):
        load_file(tmp_path, opaque("a = nope\nreturn"))
    assert load_file(tmp_path, opaque("a = n\nreturn"))["f"].name == "f"
    assert pl.parse(opaque("a = n\nreturn")).name == "f"
