"""``#`` comments and docstrings on their way to the statements that they describe."""

from __future__ import annotations

import ast
import io
import textwrap
import tokenize
import warnings
from typing import Any


class Comment:
    """A comment: ``line`` and ``column`` of its hash in the source; ``trailing`` when code stands before it."""

    __slots__ = ("column", "line", "text", "trailing")

    def __init__(self, line: int, column: int, text: str, trailing: bool) -> None:
        self.line = line
        self.column = column
        self.text = text
        self.trailing = trailing


class _Waiting(str):
    """The text of a comment that waits for a statement; unlike the lines of a docstring it knows its line."""

    line: int


def function_comments(source: Any, node: ast.FunctionDef) -> list[Comment]:
    """The comments of a function, with those behind its last statement that are indented like its body."""
    lines = source.lines
    last = node.end_lineno or node.lineno
    while last < len(lines):
        text = lines[last].lstrip()
        if text and not (text.startswith("#") and len(lines[last]) - len(text) > node.col_offset):
            break
        last += 1
    return scan_comments(source, node.lineno, last)


def scan_comments(source: Any, first: int = 1, last: int | None = None) -> list[Comment]:
    """All comments of lines ``first`` to ``last`` of a source, in line order.

    Only lines with a ``#`` are looked at; the tokenizer, which costs more than parsing, runs only for a text with
    triple-quoted strings, where a line alone does not tell what is a comment.
    """
    lines = source.lines[first - 1 : last]
    if not any("#" in line for line in lines):
        return []
    if any('"""' in line or "'''" in line for line in lines):
        return _tokenized_comments(lines, first)
    found = []
    for number, line in enumerate(lines, first):
        if "#" in line:
            column = _comment_start(line)
            if column >= 0:
                found.append(_comment(number, column, line[column:], bool(line[:column].strip())))
    return found


def _comment(line: int, column: int, text: str, trailing: bool) -> Comment:
    body = text[1:]
    return Comment(line, column, body[1:] if body.startswith(" ") else body, trailing)


def _comment_start(line: str) -> int:
    """Column of the comment of a line without multi-line strings, or -1."""
    quote = ""
    i = 0
    while i < len(line):
        char = line[i]
        if quote:
            if char == "\\":
                i += 1
            elif char == quote:
                quote = ""
        elif char in "\"'":
            quote = char
        elif char == "#":
            return i
        i += 1
    return -1


def _tokenized_comments(lines: list[str], first: int) -> list[Comment]:
    found = []
    code_lines: set[int] = set()
    readline = io.StringIO(textwrap.dedent("\n".join(lines)) + "\n").readline
    indent = len(lines[0]) - len(lines[0].lstrip())
    for token in tokenize.generate_tokens(readline):
        line = token.start[0]
        if token.type == tokenize.COMMENT:
            found.append(_comment(line + first - 1, token.start[1] + indent, token.string, line in code_lines))
        elif token.type not in (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
            code_lines.update(range(line, token.end[0] + 1))
    return found


class CommentQueue:
    """Comments in line order, consumed from the front as statements are reached."""

    __slots__ = ("_comments", "_next", "_pending")

    def __init__(self, comments: list[Comment]) -> None:
        self._comments = comments
        self._next = 0
        self._pending: list[str] = []

    def take_pending(self) -> list[str]:
        """The comments for the next emitted statement."""
        if not self._pending:
            return []  # a list of its own: callers hold it while the queue goes on
        taken, self._pending = [str(text) for text in self._pending], []
        return taken

    def add_docstring(self, text: str) -> None:
        self._pending.extend(line.strip() for line in text.strip().splitlines())

    def reach(self, stmt: ast.stmt, lines: list[str]) -> None:
        """Take the comments that belong to a statement: those above it, and trailing or header ones."""
        comments = self._comments
        if self._next >= len(comments) and not self._pending:
            return
        body = getattr(stmt, "body", None)
        last = _header_end(stmt, body, lines) if body else (stmt.end_lineno or stmt.lineno)
        while self._next < len(comments):
            comment = comments[self._next]
            if comment.line > last:
                break
            waiting = _Waiting(comment.text)
            waiting.line = comment.line
            self._pending.append(waiting)
            self._next += 1

    def skip_to(self, line: int) -> None:
        """Drop what is said of code that is never reached: up to ``line``."""
        while self._next < len(self._comments) and self._comments[self._next].line <= line:
            self._next += 1

    def end_block(self, last_line: int, indent: int, source: Any) -> None:
        """Close a block: comments that no statement of it took describe nothing and are dropped with a warning."""
        dropped = [(w.line, str(w)) for w in self._pending if type(w) is _Waiting]
        if self._pending:
            self._pending = []
        comments = self._comments
        while self._next < len(comments):
            comment = comments[self._next]
            if comment.line > last_line:
                if comment.trailing or not comment.column >= indent > 0:
                    break
                if any(source.lines[i].strip() for i in range(last_line, comment.line - 1)):
                    break  # code stands between: the comment is of a later block
                last_line = comment.line
            dropped.append((comment.line, comment.text))
            self._next += 1
        if dropped:
            shown = ", ".join(f"line {line + source.line_offset}: {text!r}" for line, text in dropped[:3])
            message = f"Dropped {len(dropped)} tail-of-block comment(s): {shown}"
            warnings.warn_explicit(message, UserWarning, source.filename, dropped[0][0] + source.line_offset)


def _header_end(stmt: ast.stmt, body: list[ast.stmt], lines: list[str]) -> int:
    """Last line of a compound statement's header: the one with the colon."""
    ends = [stmt.lineno]
    for field in ("test", "iter", "target"):
        node = getattr(stmt, field, None)
        if node is not None:
            ends.append(node.end_lineno)
    for item in getattr(stmt, "items", ()):
        ends.append(item.context_expr.end_lineno)
        if item.optional_vars is not None:
            ends.append(item.optional_vars.end_lineno)
    last, first = max(ends), body[0].lineno
    while last < first - 1:  # closing brackets may follow the last expression
        line = lines[last - 1]
        start = _comment_start(line) if "#" in line else -1
        if (line if start < 0 else line[:start]).rstrip().endswith(":"):
            break
        last += 1
    return min(last, first)
