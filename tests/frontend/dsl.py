"""Short ways to write DSL programs in tests."""

from __future__ import annotations

import textwrap
import warnings
from typing import Any

import pytest

import pypto.language as pl
from pypto import ir
from pypto.diag.parser_errors import ParserError
from pypto.diag.render import ErrorRenderer

HEAD = "import pypto.language as pl\nimport math\n"


def kernel(
    body: str, params: str = "x: pl.Tensor[[64, 128], pl.FP32], o: pl.Out[pl.Tensor[[64, 128], pl.FP32]]"
) -> str:
    """A module with one InCore function ``f``."""
    return f"{HEAD}@pl.function(type=pl.FunctionType.InCore)\ndef f({params}):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n"


def opaque(body: str, params: str = "n: pl.Scalar[pl.INDEX], m: pl.Scalar[pl.INT32], g: pl.Scalar[pl.FP32]") -> str:
    """A module with one Opaque function ``f`` over scalars."""
    return f"{HEAD}@pl.function\ndef f({params}):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n"


PROGRAM = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[32, 64], pl.FP32], s: pl.Scalar[pl.FP32],
          b: pl.Out[pl.Tensor[[32, 64], pl.FP32]]) -> pl.Tensor[[32, 64], pl.FP32]:
        t = pl.load(a, [0, 0], [32, 64])
        return pl.store(pl.mul(t, s), [0, 0], b)
    @pl.function(type=pl.FunctionType.InCore)
    def two(self, a: pl.Tensor[[32, 64], pl.FP32], b: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
            c: pl.Out[pl.Tensor[[32, 64], pl.FP32]]) -> tuple[pl.Tensor[[32, 64], pl.FP32], pl.Tensor[[32, 64], pl.FP32]]:
        t = pl.load(a, [0, 0], [32, 64])
        return pl.store(t, [0, 0], b), pl.store(t, [0, 0], c)
    @pl.function(type=pl.FunctionType.InCore)
    def plain(self, a: pl.InOut[pl.Tensor[[32, 64], pl.FP32]]):
        pl.store(pl.load(a, [0, 0], [32, 64]), [0, 0], a)
    @pl.function(type=pl.FunctionType.Orchestration{options})
    def main(self, x: pl.Tensor[[32, 64], pl.FP32], flags: pl.Tensor[[4], pl.INT32], n: pl.Scalar[pl.INDEX],
             y: pl.Out[pl.Tensor[[32, 64], pl.FP32]], z: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):
{body}
"""


def program(body: str, options: str = "") -> str:
    """A module with one program whose orchestration ``main`` has this body."""
    return HEAD + PROGRAM.format(body=textwrap.indent(textwrap.dedent(body), " " * 8), options=options)


def parse(text: str) -> Any:
    return pl.parse(text)


def load_file(folder: Any, text: str, name: str = "user_module.py") -> dict[str, Any]:
    """The names that a user's file defines: the text is written to a file and run as a module."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    names: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    exec(compile(text, str(path), "exec", dont_inherit=True), names)
    return names


def file_error(folder: Any, text: str, cls: type, phrase: str, line: str) -> ParserError:
    """A user's file is refused: class, phrase, and the source line that the span and the excerpt name."""
    with pytest.raises(cls) as info:
        load_file(folder, text)
    error = info.value
    assert type(error) is cls and phrase in str(error), f"{type(error).__name__}: {error}"
    assert isinstance(error, ParserError) and error.span is not None, f"no location: {error}"
    number = error.span["line"]
    assert text.split("\n")[number - 1].strip() == line.strip()
    assert error.source_lines is not None and error.source_lines[number - 1].strip() == line.strip()
    assert f"{number} | {text.split(chr(10))[number - 1]}" in ErrorRenderer(use_color=False).render(error)
    return error


def body_text(text: str, function: str = "f") -> str:
    """The printed body of a parsed module's function, without the header."""
    node = parse(text)
    shown = node.as_python(format=False)
    lines = shown.splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip().startswith(f"def {function}("))
    indent = len(lines[start]) - len(lines[start].lstrip())
    found = []
    for line in lines[start + 1 :]:
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        found.append(line[indent + 4 :])
    return "\n".join(found).rstrip()


def check_error(text: str, cls: type, phrase: str, line: str | None = None) -> ParserError:
    """The text is refused with this class and phrase; ``line``: text of the source line that the span names."""
    with pytest.raises(Exception) as info:
        parse(text)
    error = info.value
    assert type(error) is cls, f"{type(error).__name__}: {error}"
    assert phrase in str(error), str(error)
    if isinstance(error, ParserError):
        assert error.span is not None, f"no location: {error}"
        if line is not None:
            shown = text.splitlines()[error.span["line"] - 1]
            assert line in shown, shown
    return error  # type: ignore[return-value]


def round_trip(node: Any) -> None:
    """parse(print(node)) is structurally equal and prints the same; under another module alias as well."""
    text = node.as_python(format=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # printed IR never warns
        again = parse(text)
    ir.assert_structural_equal(node, again, enable_auto_mapping=True)
    assert again.as_python(format=False) == text
    other = node.as_python(prefix="lang", format=False)
    head = "" if isinstance(node, ir.Program) else "from pypto import language as lang\n"
    aliased = parse(head + other)
    assert aliased.as_python(format=False) == text


def expect(text: str, expected: str, function: str = "f") -> None:
    """The printed body is the expected one, and the module survives a round trip."""
    assert body_text(text, function) == textwrap.dedent(expected).strip("\n")
    round_trip(parse(text))
