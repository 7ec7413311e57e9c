"""Removing implementation noise from a message before it is shown to a user."""

from __future__ import annotations

import re

from pypto.diag.errors import InternalError

#: Compiler bugs. They are never wrapped, swallowed or turned into another diagnosis.
BUG_CLASS_EXCEPTIONS = (InternalError, AssertionError)

_BACKTRACE = re.compile(r"^[ \t]*(?:[\w+]+ )?(?:traceback|backtrace|stack ?trace)\b[^\n]*:[ \t]*$", re.I | re.M)
_CHECK_LINE = re.compile(r"(?:^|\n)[ \t]*Check failed:[^\n]*\s*\Z")
_TRAILING_SPAN = re.compile(r"\s*\[[^\[\]\n]*:-?\d+:-?\d+\]\s*\Z")

_ONLY_A_CHECK = "The operation was rejected by a backend check that has no message"


def concise_error_message(exc: BaseException, strip_trailing_span: bool = False) -> str:
    """The message of ``exc`` without a back-trace block and without a final ``Check failed: ...`` line.

    ``strip_trailing_span`` also removes a trailing ``[file:line:col]``, for callers that show the place themselves.
    """
    # str(KeyError("x")) is the repr of its argument
    text = str(exc.args[0]) if isinstance(exc, KeyError) and len(exc.args) == 1 else str(exc)
    if block := _BACKTRACE.search(text):
        text = text[: block.start()]
    text = text.strip()
    if check_line := _CHECK_LINE.search(text):
        text = text[: check_line.start()].strip() or _ONLY_A_CHECK
    if strip_trailing_span:
        text = _TRAILING_SPAN.sub("", text)
    return text or type(exc).__name__
