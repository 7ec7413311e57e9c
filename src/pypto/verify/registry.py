"""The table of verifiers: one function for each property, registered where it is defined."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from ..ir.program import Function, Program
from ..ir.span import UNKNOWN_SPAN, Span
from .diagnostics import Diagnostic, DiagnosticSeverity, VerificationError, generate_report
from .properties import IRProperty, IRPropertySet


class Findings:
    """Where a verifier puts what it finds. ``rule`` names it in the report."""

    __slots__ = ("found", "rule")

    def __init__(self, rule: str) -> None:
        self.rule = rule
        self.found: list[Diagnostic] = []

    def error(self, code: int, message: str, span: Span | None = None) -> None:
        """The property does not hold."""
        self._add(DiagnosticSeverity.Error, code, message, span)

    def warning(self, code: int, message: str, span: Span | None = None) -> None:
        """The property holds, but something deserves a look."""
        self._add(DiagnosticSeverity.Warning, code, message, span)

    def _add(self, severity: DiagnosticSeverity, code: int, message: str, span: Span | None) -> None:
        self.found.append(Diagnostic(severity, self.rule, int(code), message, span or UNKNOWN_SPAN))


FunctionCheck = Callable[[Function, Findings], None]
CalleeCheck = Callable[[Function, Findings, Program], None]


class Verifier(msgspec.Struct, frozen=True):
    """How a property is verified, function by function.

    ``check(function, findings)`` looks at one function only. With ``reads_callees`` it is ``check(function, findings,
    program)`` and may also ask for the *signatures* of functions that the function calls (that they exist, their kind,
    parameters, directions, result types, attributes), never for their bodies. With ``reads_returns`` it is called the
    same way, and may ask for all this and for which parameters their results are. ``reads_target``: what it says
    depends on the selected target. ``implied_by``: a property of which this one is a part, so that nothing is left to
    verify where that one is known to hold.
    """

    prop: IRProperty
    rule: str
    check: Callable[..., None]
    reads_callees: bool = False
    reads_target: bool = False
    implied_by: IRProperty | None = None
    reads_returns: bool = False

    def run(self, function: Function, program: Program) -> list[Diagnostic]:
        """The findings in one function of a program."""
        findings = Findings(self.rule)
        self.look_at(function, findings, program)
        return findings.found

    def look_at(self, function: Function, findings: Findings, program: Program) -> None:
        """Add the findings in one function of a program to those of others."""
        if self.reads_callees or self.reads_returns:
            self.check(function, findings, program)
        else:
            self.check(function, findings)


VERIFIERS: dict[IRProperty, Verifier] = {}


def verifies(
    prop: IRProperty,
    rule: str | None = None,
    *,
    reads_callees: bool = False,
    reads_target: bool = False,
    implied_by: IRProperty | None = None,
    reads_returns: bool = False,
) -> Callable[[Any], Any]:
    """Register a function as the verifier of a property; see :class:`Verifier`. The default rule is the property."""

    def register(check: Any) -> Any:
        if prop in VERIFIERS:
            raise ValueError(f"there is a verifier of {prop.name} already")
        VERIFIERS[prop] = Verifier(
            prop, rule or prop.name, check, reads_callees, reads_target, implied_by, reads_returns
        )
        return check

    return register


class PropertyVerifierRegistry:
    """Verification by hand: always looks at the whole program, whatever was verified before."""

    @staticmethod
    def verify(properties: IRPropertySet, program: Program) -> list[Diagnostic]:
        """All findings: properties in the order of :class:`IRProperty`, functions in program order.

        A property without a verifier contributes nothing.
        """
        return verify_all(properties, program)

    @staticmethod
    def verify_or_throw(properties: IRPropertySet, program: Program) -> None:
        """Raises :class:`VerificationError` (a ``pypto.Error``) with the report if there is an error."""
        found = verify_all(properties, program)
        if any(d.is_error for d in found):
            raise VerificationError(generate_report(found), found, properties=properties.to_list())

    @staticmethod
    def generate_report(diagnostics: list[Diagnostic]) -> str:
        """The findings as text."""
        return generate_report(diagnostics)


def verify_all(properties: Iterable[IRProperty], program: Program) -> list[Diagnostic]:
    """The findings of these properties in the whole program."""
    found: list[Diagnostic] = []
    for prop in properties:
        verifier = VERIFIERS.get(prop)
        if verifier is not None:
            for function in program.functions.values():
                found += verifier.run(function, program)
    return found


__all__ = ["VERIFIERS", "Findings", "PropertyVerifierRegistry", "Verifier", "verifies", "verify_all"]
