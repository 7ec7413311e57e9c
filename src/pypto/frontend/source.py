"""Where the source of a decorated function or class comes from, and how syntax nodes map to spans in it."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import textwrap
from collections.abc import Mapping
from typing import Any

from ..diag.parser_errors import ParserSyntaxError
from ..ir.span import Span

SourceMap = Mapping[int, tuple[str, int, int]]


class Source:
    """Source text with the offsets that turn positions of its (dedented) syntax tree into positions in the file.

    ``lines`` are the dedented lines; ``line_offset`` is the first line minus 1, ``col_offset`` the stripped indentation.
    ``source_map`` maps a line of the text to ``(file, line, column0)`` of what it was generated from.
    """

    __slots__ = ("col_offset", "filename", "line_offset", "lines", "source_map", "text")

    def __init__(
        self,
        filename: str,
        text: str,
        line_offset: int = 0,
        col_offset: int = 0,
        source_map: SourceMap | None = None,
    ) -> None:
        self.filename = filename
        self.text = text
        self.lines = text.splitlines()
        self.line_offset = line_offset
        self.col_offset = col_offset
        self.source_map = source_map

    def column(self, lineno: int, byte_offset: int) -> int:
        """0-based character column of a UTF-8 byte offset in a dedented line."""
        line = self.lines[lineno - 1] if 0 < lineno <= len(self.lines) else ""
        if line.isascii():
            return byte_offset
        return len(line.encode()[:byte_offset].decode(errors="replace"))

    def span(self, node: Any) -> Span:
        """The span of a syntax node; the end column is the column behind its last character."""
        lineno = node.lineno
        if self.source_map is not None:
            mapped = self.source_map.get(lineno)
            if mapped is not None:
                file, line, column0 = mapped
                return Span(file, line, column0 + 1)
        end = node.end_lineno or lineno
        return Span(
            self.filename,
            lineno + self.line_offset,
            self.column(lineno, node.col_offset) + 1 + self.col_offset,
            end + self.line_offset,
            self.column(end, node.end_col_offset) + 1 + self.col_offset,
        )

    def error_lines(self) -> list[str]:
        """Lines indexed so that line N of a span is element N - 1."""
        whole = linecache.getlines(self.filename)
        if whole:
            return [line.rstrip("\n") for line in whole]
        return [""] * self.line_offset + [" " * self.col_offset + line for line in self.lines]


def source_of(entity: Any) -> Source:
    """The source of a function or class; ``ParserSyntaxError`` when there is none to be had."""
    try:
        lines, first = inspect.getsourcelines(entity)
    except (OSError, TypeError):
        lines, first = _search_line_cache(entity)
    filename = inspect.getsourcefile(entity) or _code_filename(entity)
    text = "".join(lines)
    dedented = textwrap.dedent(text)
    first_line = next((line for line in text.splitlines() if line.strip()), "")
    indent = len(first_line) - len(first_line.lstrip())
    return Source(filename, dedented, first - 1, indent)


def _code_filename(entity: Any) -> str:
    code = getattr(entity, "__code__", None)
    if code is not None:
        return str(code.co_filename)
    module = sys.modules.get(getattr(entity, "__module__", ""))
    return getattr(module, "__file__", None) or "<string>"


def _search_line_cache(entity: Any) -> tuple[list[str], int]:
    """Sources that ``inspect`` does not find: notebook cells, text entry points, ``python -c``."""
    kind = "class" if isinstance(entity, type) else "function"
    name = entity.__name__
    lines = linecache.getlines(_code_filename(entity))
    if not lines and "-c" in getattr(sys, "orig_argv", []):
        argv = sys.orig_argv
        lines = argv[argv.index("-c") + 1].splitlines(keepends=True)
    if lines:
        near = getattr(getattr(entity, "__code__", None), "co_firstlineno", 1)
        wanted = ast.ClassDef if kind == "class" else (ast.FunctionDef, ast.AsyncFunctionDef)
        found = [n for n in ast.walk(ast.parse("".join(lines))) if isinstance(n, wanted) and n.name == name]
        if found:
            best = min(found, key=lambda n: abs(_first_line(n) - near))
            return lines[_first_line(best) - 1 : best.end_lineno], _first_line(best)
    raise ParserSyntaxError(
        f"Cannot retrieve source code for {kind} '{name}'",
        hint="Save the code to a file, or give it as text to pl.parse(...)",
    )


def _first_line(node: Any) -> int:
    return min([node.lineno, *[d.lineno for d in node.decorator_list]])
