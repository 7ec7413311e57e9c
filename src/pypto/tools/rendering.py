"""Errors as text for a terminal: the user's own source with the place marked, and no frames of PyPTO."""

from __future__ import annotations

import traceback
from pathlib import Path

from ..diag.diagnostic import Diagnostic, Severity
from ..diag.location import Location
from ..diag.parser_errors import ParserError
from ..diag.render import ErrorRenderer
from ..runtime.errors import ProgramError


def render_error(error: BaseException, use_color: bool | None = None, user_file: str | None = None) -> str:
    """An error as text with an excerpt of the source.

    ``user_file``: for an exception of Python itself, the file whose frame is shown.
    """
    renderer = ErrorRenderer(use_color)
    if isinstance(error, ParserError):
        return renderer.render(error)
    return renderer.render_diagnostic(_diagnostic(error, user_file))


def _diagnostic(error: BaseException, user_file: str | None) -> Diagnostic:
    if isinstance(error, ProgramError):
        notes = []
        if error.function:
            notes.append(f"in '{error.function}'" + (f", task {error.task}" if error.task else ""))
        return Diagnostic("", Severity.ERROR, error.message, Location.of(error.span), notes=tuple(notes))
    if isinstance(error, SyntaxError) and error.filename:
        place = Location(error.filename, error.lineno or -1, error.offset or -1)
        return Diagnostic("", Severity.ERROR, f"{type(error).__name__}: {error.msg}", place)
    return Diagnostic("", Severity.ERROR, f"{type(error).__name__}: {error}", _frame_in(error, user_file))


def _frame_in(error: BaseException, user_file: str | None) -> Location | None:
    """The innermost frame in the user's file."""
    if user_file is None:
        return None
    wanted = Path(user_file).resolve()
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(frame.filename).resolve() == wanted:
            column = getattr(frame, "colno", None)  # known from Python 3.11 on
            return Location(frame.filename, frame.lineno or -1, -1 if column is None else column + 1)
    return None


__all__ = ["render_error"]
