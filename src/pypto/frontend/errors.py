"""Raising and collecting the errors of a body."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from ..diag.concise import BUG_CLASS_EXCEPTIONS
from ..diag.parser_errors import (
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    SSAViolationError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)


class Suppressed(Exception):
    """Raised where a statement reads a name whose definition already failed: that error is the one to show."""


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """``Did you mean 'x'?`` for the closest known spelling, or None."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.7)
    return f"Did you mean '{close[0]}'?" if close else None


def first_of(errors: list[ParserError]) -> ParserError:
    """The first error, carrying the others."""
    first = errors[0]
    first.errors = [*first.errors, *errors[1:]]
    return first


__all__ = [
    "BUG_CLASS_EXCEPTIONS",
    "Any",
    "InvalidOperationError",
    "ParserError",
    "ParserSyntaxError",
    "ParserTypeError",
    "SSAViolationError",
    "Suppressed",
    "UndefinedVariableError",
    "UnsupportedFeatureError",
    "did_you_mean",
    "first_of",
]
