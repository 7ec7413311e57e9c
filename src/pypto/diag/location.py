"""A place in the user's source, independent of the IR's own span class.

Lines and columns are 1-based and count characters; ``end_column`` is the column after the last character, as Python's
``ast`` has it. -1 stands for unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypedDict


class _Begin(TypedDict):
    filename: str
    file: str
    begin_line: int
    line: int
    begin_column: int
    column: int


class SpanDict(_Begin, total=False):
    """The form in which parser errors publish a span; the end is there only when it is known."""

    end_line: int
    end_column: int


class Location(NamedTuple):
    """A range of source text."""

    filename: str
    line: int
    column: int
    end_line: int = -1
    end_column: int = -1

    @classmethod
    def of(cls, span: object) -> Location | None:
        """The location of a span: ``None``, a mapping in either spelling of :class:`SpanDict`, or an object with
        the attributes ``filename``, ``begin_line``, ``begin_column`` and perhaps ``end_line``, ``end_column``."""
        if span is None or isinstance(span, Location):
            return span
        if isinstance(span, Mapping):
            filename = _first(span, "filename", "file", default="")
            line, column = _first(span, "begin_line", "line"), _first(span, "begin_column", "column")
            end_line, end_column = _first(span, "end_line"), _first(span, "end_column")
        else:
            filename = getattr(span, "filename", "")
            line, column = getattr(span, "begin_line", -1), getattr(span, "begin_column", -1)
            end_line, end_column = getattr(span, "end_line", -1), getattr(span, "end_column", -1)
        return cls(str(filename or ""), int(line), int(column), int(end_line), int(end_column))

    def as_dict(self) -> SpanDict:
        """The published form; holds no reference to any IR object."""
        span: SpanDict = {
            "filename": self.filename,
            "file": self.filename,
            "begin_line": self.line,
            "line": self.line,
            "begin_column": self.column,
            "column": self.column,
        }
        if self.end_line > 0 and self.end_column > 0:
            span["end_line"] = self.end_line
            span["end_column"] = self.end_column
        return span

    def describe(self) -> str:
        """``file:line:column`` with the parts that are known; empty without a file name."""
        if not self.filename or self.line <= 0:
            return self.filename
        if self.column <= 0:
            return f"{self.filename}:{self.line}"
        return f"{self.filename}:{self.line}:{self.column}"


def _first(span: Mapping[Any, Any], *keys: str, default: Any = -1) -> Any:
    for key in keys:
        value = span.get(key)
        if value is not None:
            return value
    return default
