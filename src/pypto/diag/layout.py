"""The layout of a rendered diagnostic as lines of styled pieces; the renderers only paint them.

::

    Error: <message>
      --> <file>:<line>:<column>
       |
    14 |         mid = pl.adn(mid, 1.0)
       |               ^^^^^^ Unknown operation 'pl.adn'
       |
       = help: <hint>
       = note: <note>
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pypto.diag.source import lines_for

if TYPE_CHECKING:
    from pypto.diag.diagnostic import Diagnostic, Label
    from pypto.diag.location import Location


class Style(enum.Enum):
    """What a piece of text is; a renderer decides on its colour."""

    TITLE = enum.auto()
    LOCATION = enum.auto()
    GUTTER = enum.auto()
    SOURCE = enum.auto()
    CARET = enum.auto()
    HELP = enum.auto()
    PLAIN = enum.auto()


Piece = tuple[str, Style]
Line = list[Piece]

_CONTEXT = 2
_LABEL_CONTEXT = 1
_LABEL_INDENT = " " * 5
_TAB = " " * 4
_CAPTION_LIMIT = 50

_DOTTED_NAME = re.compile(r"\w+(?:\.\w+)*")
_SENTENCE_END = re.compile(r"\.(?=\s|$)")


def lay_out(diagnostic: Diagnostic, source_lines: list[str] | None = None) -> list[Line]:
    """The lines of a diagnostic. ``source_lines`` is shown when the file that the span names cannot be read."""
    title = f"{diagnostic.severity.value}: {diagnostic.message}"
    lines: list[Line] = [[(text, Style.TITLE)] for text in title.split("\n")]
    if diagnostic.span is not None:
        lines += _place(diagnostic.span, indent="  ")
        lines += _primary_excerpt(diagnostic.span, source_lines, _caption(diagnostic.message))
    for label in diagnostic.labels:
        lines += _label(label, diagnostic.span, source_lines)
    if diagnostic.help:
        lines += _remark("help", diagnostic.help, Style.HELP)
    for note in diagnostic.notes:
        lines += _remark("note", note, Style.PLAIN)
    return lines


def _place(location: Location, indent: str) -> Iterable[Line]:
    where = location.describe()
    if where:
        yield [(f"{indent}--> ", Style.GUTTER), (where, Style.LOCATION)]


def _primary_excerpt(location: Location, source_lines: list[str] | None, caption: str) -> list[Line]:
    text = lines_for(location.filename, location.line, source_lines)
    block = _excerpt(location, text, _CONTEXT, caption, indent="")
    if not block:
        return []
    blank: Line = [(" " * _gutter_width(location, text, _CONTEXT) + " |", Style.GUTTER)]
    return [blank, *block, blank]


def _label(label: Label, primary: Location | None, source_lines: list[str] | None) -> list[Line]:
    # the lines that came with the error belong to the primary span's file
    same_file = primary is None or not label.span.filename or label.span.filename == primary.filename
    text = lines_for(label.span.filename, label.span.line, source_lines if same_file else None)
    return [
        [],
        *_remark("note", f"{label.text}:", Style.PLAIN),
        *_place(label.span, _LABEL_INDENT),
        *_excerpt(label.span, text, _LABEL_CONTEXT, "", _LABEL_INDENT),
    ]


def _remark(kind: str, text: str, style: Style) -> list[Line]:
    start = f"   = {kind}: "
    first, *rest = text.split("\n")
    return [[(start + first, style)], *([(" " * len(start) + line, style)] for line in rest)]


def _excerpt(location: Location, text: list[str], context: int, caption: str, indent: str) -> list[Line]:
    """The line of ``location`` with its carets, and ``context`` lines around it; empty if there is no such line."""
    if not text:
        return []
    width = _gutter_width(location, text, context)
    lines: list[Line] = []
    first, last = max(1, location.line - context), min(len(text), location.line + context)
    for number in range(first, last + 1):
        shown = text[number - 1].replace("\t", _TAB).rstrip()
        gutter = f"{indent}{number:>{width}} |"
        lines.append([(gutter, Style.GUTTER)] + ([(f" {shown}", Style.SOURCE)] if shown else []))
        if number == location.line and location.column > 0:
            pad, carets = _carets(location, text[number - 1])
            pointer = f"{' ' * pad}{'^' * carets} {caption}".rstrip()
            lines.append([(f"{indent}{' ' * width} | ", Style.GUTTER), (pointer, Style.CARET)])
    return lines


def _gutter_width(location: Location, text: list[str], context: int) -> int:
    return len(str(min(len(text), location.line + context)))


def _carets(location: Location, line: str) -> tuple[int, int]:
    """Where the carets start and how many there are, in shown characters (a tab counts four)."""
    start, end = location.column - 1, location.column
    if location.end_line == location.line and location.end_column > location.column:
        end = max(end, min(location.end_column - 1, len(line.rstrip())))
    elif name := _DOTTED_NAME.match(line, start):
        end = name.end()
    before, under = line[:start].replace("\t", _TAB), line[start:end].replace("\t", _TAB)
    return len(before) + max(0, start - len(line)), max(1, len(under))


def _caption(message: str) -> str:
    """The first sentence of the first line, if it is short enough to stand behind the carets."""
    line = message.split("\n", 1)[0]
    sentence = _SENTENCE_END.split(line, maxsplit=1)[0].strip()
    return sentence if len(sentence) < _CAPTION_LIMIT else ""
