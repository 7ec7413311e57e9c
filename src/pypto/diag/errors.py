"""Exception classes that every room may raise, and the checks that raise them."""

from __future__ import annotations

from typing import Any


class Error(Exception):
    """Base of compiler errors that have no better class (verification failures surface as this type)."""


class InternalError(RuntimeError):
    """A broken invariant of the compiler itself: a bug of PyPTO, never the user's fault."""


def check(condition: object, message: str) -> None:
    """Raise ``ValueError(message)`` unless ``condition`` holds."""
    if not condition:
        raise ValueError(message)


def internal_check(condition: object, message: str) -> None:
    """Raise ``InternalError(message)`` unless ``condition`` holds."""
    if not condition:
        raise InternalError(message)


def internal_check_span(condition: object, message: str, span: Any) -> None:
    """As :func:`internal_check`; a valid span ends the message as ``[file:line:col]``."""
    if not condition:
        where = f" [{span}]" if span is not None and span.is_valid() else ""
        raise InternalError(message + where)
