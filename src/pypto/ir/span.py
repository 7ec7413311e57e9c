"""Source positions."""

from __future__ import annotations


class Span:
    """A range of the user's source: 1-based lines and character columns; -1 stands for unknown."""

    __slots__ = ("__weakref__", "begin_column", "begin_line", "end_column", "end_line", "filename")

    filename: str
    begin_line: int
    begin_column: int
    end_line: int
    end_column: int

    def __init__(
        self, filename: str, begin_line: int, begin_column: int, end_line: int = -1, end_column: int = -1
    ) -> None:
        _filename(self, filename)
        _begin_line(self, begin_line)
        _begin_column(self, begin_column)
        _end_line(self, end_line)
        _end_column(self, end_column)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Span is immutable: cannot set {name!r}")

    @staticmethod
    def unknown() -> Span:
        """The span of a node that stems from no source text."""
        return UNKNOWN_SPAN

    def is_valid(self) -> bool:
        """Whether the span names a real position (an unknown end is fine)."""
        if self.begin_line <= 0 or not (self.begin_column > 0 or self.begin_column == -1):
            return False
        if self.end_line == -1 or self.end_column == -1:
            return True
        if self.end_line <= 0 or self.end_line < self.begin_line:
            return False
        return self.end_line > self.begin_line or self.end_column >= self.begin_column

    def to_string(self) -> str:
        """``file:line:column``."""
        return f"{self.filename}:{self.begin_line}:{self.begin_column}"

    __str__ = to_string
    __repr__ = to_string

    def __reduce__(self) -> tuple[type[Span], tuple[str, int, int, int, int]]:
        return Span, (self.filename, self.begin_line, self.begin_column, self.end_line, self.end_column)


_filename = Span.__dict__["filename"].__set__
_begin_line = Span.__dict__["begin_line"].__set__
_begin_column = Span.__dict__["begin_column"].__set__
_end_line = Span.__dict__["end_line"].__set__
_end_column = Span.__dict__["end_column"].__set__

UNKNOWN_SPAN = Span("", -1, -1, -1, -1)
