"""Findings of verifiers and checks, their report, and the error that carries them."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import msgspec

from ..diag.errors import Error
from ..ir.span import UNKNOWN_SPAN, Span
from .properties import IRProperty


class DiagnosticSeverity(enum.Enum):
    """How much a finding matters. Only errors stop a compilation."""

    Error = 0
    Warning = 1
    PerfHint = 2


class Diagnostic(msgspec.Struct, frozen=True):
    """One finding. ``error_code`` is 0 if the rule has no codes, ``hint_code`` is empty but for performance hints."""

    severity: DiagnosticSeverity
    rule_name: str
    error_code: int
    message: str
    span: Span = UNKNOWN_SPAN
    hint_code: str = ""

    @property
    def is_error(self) -> bool:
        """Whether it stops a compilation."""
        return self.severity is DiagnosticSeverity.Error


class VerificationError(Error):
    """A program is not what a pass promised or needs.

    ``diagnostics``: all findings; ``pass_name``: behind (or before) which pass, ``pipeline_input`` for the input of a
    pipeline; ``properties``: what was verified, in order.
    """

    def __init__(
        self,
        message: str,
        diagnostics: Sequence[Diagnostic] = (),
        pass_name: str = "",
        properties: Sequence[IRProperty] = (),
    ) -> None:
        super().__init__(message)
        self.diagnostics = list(diagnostics)
        self.pass_name = pass_name
        self.properties = list(properties)


_TITLE = "IR Verification Report"


def generate_report(diagnostics: Sequence[Diagnostic]) -> str:
    """The findings as text, one numbered paragraph each, ending with a line of status."""
    errors = sum(d.is_error for d in diagnostics)
    warnings = len(diagnostics) - errors
    lines = [_TITLE, "=" * len(_TITLE)]
    lines += [f"Total diagnostics: {len(diagnostics)} ({errors} errors, {warnings} warnings)", ""]
    for number, found in enumerate(diagnostics, 1):
        lines += [f"[{number}] {found.severity.name.upper()} - {found.rule_name}", f"    Message: {found.message}"]
        if found.span.is_valid():
            lines += [f"    Location: {found.span}"]
        if found.error_code:
            lines += [f"    Error Code: {found.error_code}"]
        lines += [""]
    if errors:
        lines += [f"Status: FAILED ({errors} error(s) found)"]
    elif warnings:
        lines += [f"Status: PASSED with {warnings} warning(s)"]
    else:
        lines += ["Status: PASSED"]
    return "\n".join(lines)


__all__ = ["Diagnostic", "DiagnosticSeverity", "VerificationError", "generate_report"]
