"""The model of a diagnostic: everything a renderer or a report needs to know, and nothing about how it looks."""

from __future__ import annotations

import enum

import msgspec

from pypto.diag.location import Location


class Severity(enum.Enum):
    """How much a diagnostic matters; the value is the word that starts its rendered form."""

    ERROR = "Error"
    WARNING = "Warning"
    PERF_HINT = "Performance hint"


class Label(msgspec.Struct, frozen=True):
    """A second place that explains the first, such as the previous definition of a name."""

    span: Location
    text: str


class Diagnostic(msgspec.Struct, frozen=True):
    """One finding about a user's program. ``span`` is the primary place; the carets of the excerpt stand there."""

    code: str
    severity: Severity
    message: str
    span: Location | None = None
    labels: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    help: str | None = None
