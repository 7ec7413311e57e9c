"""Where the source of a decorated function or class comes from, and how syntax nodes map to spans in it."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from collections.abc import Mapping
from typing import Any

from ..diag.parser_errors import ParserSyntaxError
from ..ir.span import Span

SourceMap = Mapping[int, tuple[str, int, int]]


def split_lines(text: str) -> list[str]:
    """The lines of a text as Python counts them: other separators (form feeds, U+2028 ...) do not end a line."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


class Source:
    """Source text with the offsets that turn positions of its (dedented) syntax tree into positions in the file.

    ``line_offset``: lines before the text; ``col_offset``: indentation stripped from it (both 0 for a whole file).
    ``source_map`` maps a line of the text to ``(file, line, column0)`` of what it was generated from.
    """

    __slots__ = ("col_offset", "filename", "is_ascii", "line_offset", "lines", "source_map", "text")

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
        self.is_ascii = text.isascii()
        self.lines = split_lines(text)
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
        if self.is_ascii:  # byte offsets are character columns
            return Span(
                self.filename,
                lineno + self.line_offset,
                node.col_offset + 1 + self.col_offset,
                end + self.line_offset,
                node.end_col_offset + 1 + self.col_offset,
            )
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


class ParsedFile:
    """A file's lines and syntax tree, with its definitions by name; parsed once however many decorators it has."""

    __slots__ = ("classes", "functions", "lines", "source", "text", "tree")

    def __init__(self, filename: str, lines: list[str], tree: ast.Module | None = None) -> None:
        self.lines = lines
        self.text = "".join(lines)
        self.tree = ast.parse(self.text, filename) if tree is None else tree
        self.source = Source(filename, self.text)
        self.functions: dict[str, list[ast.FunctionDef]] = {}
        self.classes: dict[str, list[ast.ClassDef]] = {}
        self._index(self.tree.body, "")

    def _index(self, body: list[ast.stmt], prefix: str) -> None:
        """Definitions by qualified name, without the ``<locals>`` parts. Only blocks that can hold one are entered."""
        for node in body:
            kind = type(node)
            if kind in (ast.FunctionDef, ast.AsyncFunctionDef):
                self.functions.setdefault(prefix + node.name, []).append(node)  # type: ignore[attr-defined, arg-type]
                self._index(node.body, f"{prefix}{node.name}.")  # type: ignore[attr-defined]
            elif kind is ast.ClassDef:
                self.classes.setdefault(prefix + node.name, []).append(node)  # type: ignore[attr-defined, arg-type]
                self._index(node.body, f"{prefix}{node.name}.")  # type: ignore[attr-defined]
            elif kind in _BLOCKS:
                for field in ("body", "orelse", "finalbody"):
                    self._index(getattr(node, field, []), prefix)
                for handler in getattr(node, "handlers", ()):
                    self._index(handler.body, prefix)


_BLOCKS = (ast.If, ast.For, ast.While, ast.With, ast.Try)
_FILES: dict[str, ParsedFile] = {}
_FILES_KEPT = 8


def remember(filename: str, lines: list[str], tree: ast.Module) -> None:
    """Put a text that is parsed already into the cache (text entry points)."""
    _FILES.pop(filename, None)
    _FILES[filename] = ParsedFile(filename, lines, tree)
    while len(_FILES) > _FILES_KEPT:
        del _FILES[next(iter(_FILES))]


def forget(filename: str) -> None:
    """Drop a text from the cache."""
    _FILES.pop(filename, None)


def parsed_file(filename: str, lines: list[str]) -> ParsedFile:
    """The parsed form of a file; kept for the last few files, valid while the lines are the same."""
    found = _FILES.get(filename)
    if found is None or (found.lines is not lines and found.lines != lines):
        found = ParsedFile(filename, lines)
        _FILES.pop(filename, None)
        _FILES[filename] = found
        while len(_FILES) > _FILES_KEPT:
            del _FILES[next(iter(_FILES))]
    return found


Located = tuple[Source, Any]


def locate_function(function: Any) -> Located:
    """Source and ``def`` node of a function object; ``ParserSyntaxError`` when the source can't be had."""
    code = inspect.unwrap(function).__code__
    name = function.__name__
    file = _file_of(code.co_filename, function, "function", name)
    qualified = function.__qualname__.replace(".<locals>", "")
    found = file.functions.get(qualified) or [
        n for k, v in file.functions.items() if k.split(".")[-1] == name for n in v
    ]
    near = code.co_firstlineno
    if not found:
        if code.co_filename == "<string>":
            raise _no_source("function", name)
        raise ParserSyntaxError(f"Could not find function definition of '{name}' in its source")
    return file.source, min(found, key=lambda n: min(abs(_first_line(n) - near), abs(n.lineno - near)))


def locate_class(cls: type, decorator_line: int = -1) -> Located:
    """Source and ``class`` node of a class that is being decorated at ``decorator_line``."""
    module = sys.modules.get(cls.__module__)
    filename = _class_filename(cls, module)
    file = _file_of(filename, cls, "class", cls.__name__)
    found = file.classes.get(cls.__qualname__.replace(".<locals>", ""), [])
    if not found:
        if filename == "<string>":
            raise _no_source("class", cls.__name__)
        raise ParserSyntaxError(f"Failed to parse class source: class '{cls.__name__}' not found in {filename}")
    if decorator_line > 0:
        found = [n for n in found if _first_line(n) <= decorator_line <= (n.end_lineno or n.lineno)] or found
    return file.source, found[0]


def _class_filename(cls: type, module: Any) -> str:
    for value in cls.__dict__.values():
        code = getattr(getattr(value, "__func__", value), "__code__", None)
        if code is not None and getattr(value, "__module__", cls.__module__) == cls.__module__:
            return str(code.co_filename)
    return getattr(module, "__file__", None) or "<string>"


def _file_of(filename: str, entity: Any, kind: str, name: str) -> ParsedFile:
    """The parsed file of an entity: from the line cache (files, notebook cells, texts), or ``python -c``."""
    module = sys.modules.get(getattr(entity, "__module__", ""), None)
    cached: Any = linecache.cache.get(filename)
    linecache.checkcache(filename)  # the file may have changed since an earlier import
    lines = linecache.getlines(filename, getattr(module, "__dict__", None))
    if not lines and cached is not None and len(cached) == 4:  # a text that was put there by hand, without a file
        linecache.cache[filename] = cached
        lines = cached[2]
    argv = getattr(sys, "orig_argv", [])
    if not lines and filename == "<string>" and "-c" in argv:
        lines = [line + "\n" for line in split_lines(argv[argv.index("-c") + 1])]
    if not lines:
        raise _no_source(kind, name)
    try:
        return parsed_file(filename, lines)
    except SyntaxError as error:
        raise ParserSyntaxError(f"Failed to parse {kind} source: {error}") from error


def _no_source(kind: str, name: str) -> ParserSyntaxError:
    return ParserSyntaxError(
        f"Cannot retrieve source code for {kind} '{name}'",
        hint="Save the code to a file, or give it as text to pl.parse(...)",
    )


def _first_line(node: Any) -> int:
    return min([node.lineno, *[d.lineno for d in node.decorator_list]])
