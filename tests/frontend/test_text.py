"""Text entry points: ``pl.parse``, ``pl.loads`` and their deprecated forms (language section 2.8)."""

from __future__ import annotations

import linecache
from pathlib import Path

import pytest

import pypto.language as pl
from pypto import ir
from pypto.diag.parser_errors import InvalidOperationError, ParserSyntaxError, UndefinedVariableError
from pypto.diag.render import ErrorRenderer

from .dsl import HEAD, opaque, program

PLAIN = "@pl.function\ndef f(n: pl.Scalar[pl.INDEX]):\n    return n\n"


def test_pl_and_pld_are_there() -> None:
    assert pl.parse(PLAIN).name == "f"
    node = pl.parse("@pl.function\ndef f(x: pld.DistributedTensor[[4], pl.FP32]):\n    return\n")
    assert isinstance(node.params[0].type, ir.DistributedTensorType)


def test_functions_and_programs() -> None:
    assert isinstance(pl.parse(PLAIN), ir.Function)
    assert isinstance(pl.parse(program("return")), ir.Program)


def test_no_item_and_several_items() -> None:
    with pytest.raises(ValueError, match="No @pl.function or @pl.program found"):
        pl.parse("a = 3\n")
    with pytest.raises(ValueError, match="Multiple functions/programs found") as info:
        pl.parse(PLAIN + PLAIN.replace("def f", "def g"))
    assert "f" in str(info.value) and "g" in str(info.value)
    with pytest.raises(ValueError, match="Multiple functions/programs found"):
        pl.parse(PLAIN + "alias = f\n")


def test_python_syntax_errors() -> None:
    with pytest.raises(SyntaxError, match="Failed to compile code from mine.py"):
        pl.parse("def f(:\n", filename="mine.py")


def test_undefined_names_are_one_symbol_each() -> None:
    node = pl.parse("@pl.function\ndef f(a: pl.Tensor[[q, 4], pl.FP32], b: pl.Tensor[[q, w], pl.FP32]):\n    return\n")
    assert node.params[0].type.shape[0] is node.params[1].type.shape[0]
    assert node.params[1].type.shape[1].name_hint == "w"


@pytest.mark.parametrize(
    ("keyword", "phrase", "member"),
    [
        ("type=pl.FunctionType.Incore", "Unknown FunctionType value: Incore", "Incore"),
        ("level=pl.Level.CHIPS", "Unknown Level value: CHIPS", "CHIPS"),
        ("role=pl.Role.Boss", "Unknown Role value: Boss", "Boss"),
        ("type=pl.Kind.InCore", "Expected pl.FunctionType.<name>", "InCore"),
        ("level=pl.Place.CHIP", "Expected pl.Level.<name>", "CHIP"),
    ],
)
@pytest.mark.parametrize("method", [False, True])
def test_enum_keywords_are_checked_before_running(keyword: str, phrase: str, member: str, method: bool) -> None:
    head = f"    @pl.function({keyword})\n" if method else f"@pl.function({keyword})\n"
    text = HEAD + "raised = 1 / 1\n"
    text += (
        "@pl.program\nclass P:\n" + head + "    def f(self):\n        return\n"
        if method
        else head + "def f():\n    return\n"
    )
    with pytest.raises(ParserSyntaxError) as info:
        pl.parse(text)
    error = info.value
    assert phrase in str(error) and error.span is not None and error.source_lines is not None
    line = text.split("\n")[error.span["line"] - 1]
    assert line[error.span["column"] - 1 :].startswith(member)
    assert error.source_lines[error.span["line"] - 1] == line
    if "Unknown" in phrase:
        assert "InCore" in error.hint if "Function" in phrase else error.hint


def test_other_exceptions_while_running() -> None:
    text = HEAD + "def helper():\n    return 1 // 0\n\nk = helper()\n" + PLAIN
    with pytest.raises(ParserSyntaxError, match="ZeroDivisionError: ") as info:
        pl.parse(text, filename="mine.py")
    error = info.value
    assert error.span is not None
    assert (error.span["filename"], error.span["line"], error.span["column"]) == ("mine.py", 4, 1)
    assert error.source_lines is not None and error.source_lines[3] == "    return 1 // 0"
    assert isinstance(error.__cause__, ZeroDivisionError)


def test_parser_errors_and_bugs_pass_through() -> None:
    with pytest.raises(UndefinedVariableError):
        pl.parse(opaque("a = nope\nreturn"))
    with pytest.raises(AssertionError):
        pl.parse("assert False\n" + PLAIN)


def test_source_maps() -> None:
    text = HEAD + "@pl.function\ndef f(n: pl.Scalar[pl.INDEX]):\n    a = n + 1\n    b = a\n    return b\n"
    node = pl.parse(text, filename="generated.py", source_map={5: ("orig.py", 70, 8)})
    first, second, _ = node.body.stmts
    span = first.span
    assert (span.filename, span.begin_line, span.begin_column, span.end_line, span.end_column) == (
        "orig.py",
        70,
        9,
        -1,
        -1,
    )
    assert (second.span.filename, second.span.begin_line) == ("generated.py", 6)


def test_lines_are_visible_while_parsing_and_removed_afterwards() -> None:
    text = opaque("a = nope\nreturn")
    with pytest.raises(UndefinedVariableError) as info:
        pl.parse(text, filename="made_up.py")
    assert "a = nope" in ErrorRenderer(use_color=False).render(info.value)
    assert "made_up.py" not in linecache.cache
    pl.parse(PLAIN, filename="made_up.py")
    assert "made_up.py" not in linecache.cache


def test_loads(tmp_path: Path) -> None:
    path = tmp_path / "größe.py"
    path.write_text("# größe\n" + PLAIN, encoding="utf-8")
    node = pl.loads(str(path))
    assert node.name == "f" and node.span.filename == str(path)
    assert pl.loads(path).name == "f"
    with pytest.raises(FileNotFoundError):
        pl.loads(str(tmp_path / "missing.py"))


def test_deprecated_forms(tmp_path: Path) -> None:
    path = tmp_path / "p.py"
    path.write_text(program("return"))
    with pytest.warns(DeprecationWarning):
        assert isinstance(pl.parse_program(program("return")), ir.Program)
    with pytest.warns(DeprecationWarning):
        assert isinstance(pl.loads_program(str(path)), ir.Program)
    with (
        pytest.warns(DeprecationWarning),
        pytest.raises(ValueError, match="Expected @pl.program but found @pl.function"),
    ):
        pl.parse_program(PLAIN)


def test_errors_in_text_have_their_lines() -> None:
    text = "\n\n" + opaque("t = 3\n\n\na = pl.adn(n)\nreturn")
    with pytest.raises(InvalidOperationError) as info:
        pl.parse(text)
    error = info.value
    assert error.span is not None and error.source_lines is not None
    assert error.source_lines[error.span["line"] - 1] == "    a = pl.adn(n)"


def test_the_text_may_postpone_annotations() -> None:
    text = HEAD + "R = 4\n@pl.function\ndef f(x: pl.Tensor[[R, 8], pl.FP32]):\n    return\n"
    node = pl.parse("from __future__ import annotations\n" + text)
    assert node.params[0].type == ir.TensorType([4, 8], pl.FP32)


def test_callers_future_imports_are_not_inherited() -> None:
    node = pl.parse("@pl.function\ndef f(x: pl.Tensor[[q], pl.FP32]):\n    return\n")
    assert node.params[0].type.shape[0].name_hint == "q"


def test_an_undeclared_name_in_a_method_signature_is_a_dynamic_symbol():
    text = """
import pypto.language as pl
@pl.program
class P:
    @pl.function
    def f(self, x: pl.Tensor[[Rows, 4], pl.FP32]) -> pl.Tensor[[Rows, 4], pl.FP32]:
        return x
"""
    function = pl.parse(text)["f"]
    assert function.params[0].type.shape[0].name_hint == "Rows"
    assert function.return_types[0].shape[0] is function.params[0].type.shape[0]
