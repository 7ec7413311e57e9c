"""The table of checks: warnings and performance hints, which never stop a compilation."""

from __future__ import annotations

import enum
import functools
import os
from collections.abc import Callable, Iterator

import msgspec

from ...diag.errors import InternalError
from ...ir.program import Function, Program
from ...ir.span import UNKNOWN_SPAN, Span
from ..diagnostics import Diagnostic, DiagnosticSeverity
from .silence import silenced


class DiagnosticPhase(enum.Enum):
    """When a check runs. As a setting it only switches the checks on, or (``NONE``) off."""

    NONE = 0
    PRE_PIPELINE = 1
    POST_PASS = 2
    POST_PIPELINE = 3


class DiagnosticCheck(enum.IntEnum):
    """The checks. The order is the order in which sets are printed and checks run."""

    UnusedVariable = 0
    UnusedControlFlowResult = 1
    TileInnermostDimGranularity = 2
    OutParamWriteDropped = 3


class DiagnosticCheckSet:
    """A mutable set of checks, listed and printed in the order of :class:`DiagnosticCheck`."""

    __slots__ = ("_members",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self) -> None:
        self._members: set[DiagnosticCheck] = set()

    def insert(self, check: DiagnosticCheck) -> None:
        """Add a check."""
        self._members.add(DiagnosticCheck(check))

    def remove(self, check: DiagnosticCheck) -> None:
        """Take a check out; nothing happens if it is not there."""
        self._members.discard(DiagnosticCheck(check))

    def contains(self, check: DiagnosticCheck) -> bool:
        """Whether a check is in the set."""
        return check in self._members

    __contains__ = contains

    def union_with(self, other: DiagnosticCheckSet) -> DiagnosticCheckSet:
        """A new set: what is in this set or in ``other``."""
        return check_set(*self._members, *other._members)

    def difference(self, other: DiagnosticCheckSet) -> DiagnosticCheckSet:
        """A new set: what is in this set and not in ``other``."""
        return check_set(*(self._members - other._members))

    def empty(self) -> bool:
        """Whether there is nothing in the set."""
        return not self._members

    def to_list(self) -> list[DiagnosticCheck]:
        """The checks in order."""
        return sorted(self._members)

    def __iter__(self) -> Iterator[DiagnosticCheck]:
        return iter(self.to_list())

    def __len__(self) -> int:
        return len(self._members)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DiagnosticCheckSet) and self._members == other._members

    def __str__(self) -> str:
        return "{" + ", ".join(check.name for check in self.to_list()) + "}"

    __repr__ = __str__


def check_set(*checks: DiagnosticCheck) -> DiagnosticCheckSet:
    """A set of these checks."""
    found = DiagnosticCheckSet()
    for check in checks:
        found.insert(check)
    return found


PHASE_VARIABLE = "PYPTO_WARNING_LEVEL"


@functools.cache
def get_default_diagnostic_phase() -> DiagnosticPhase:
    """What ``PYPTO_WARNING_LEVEL`` says (``none``, ``pre_pipeline``, ``post_pass``, ``post_pipeline``), read once.

    PRE_PIPELINE for anything else.
    """
    name = os.environ.get(PHASE_VARIABLE, "").strip().upper()
    return DiagnosticPhase.__members__.get(name, DiagnosticPhase.PRE_PIPELINE)


class Note(msgspec.Struct, frozen=True):
    """What a check finds. The registry adds severity, rule and codes: no check can report an error."""

    message: str
    span: Span = UNKNOWN_SPAN


class Rule(msgspec.Struct, frozen=True):
    """A check: what it looks at (one function at a time), when, and how its findings are called."""

    check: DiagnosticCheck
    name: str
    code: int
    phase: DiagnosticPhase
    severity: DiagnosticSeverity
    hint_code: str
    find: Callable[[Function], list[Note]]

    def run(self, program: Program) -> list[Diagnostic]:
        """The findings in a program, without those of functions that silence the check."""
        notes = [
            note
            for function in program.functions.values()
            if (found := self.find(function)) and not silenced(function, self.check.name)
            for note in found
        ]
        return [
            Diagnostic(self.severity, self.name, self.code, note.message, note.span, self.hint_code)
            for note in _merged(notes)
        ]


def _merged(notes: list[Note]) -> list[Note]:
    """Equal notes at one place as one that says how many; without a place each stays for itself."""
    counts: dict[tuple[str, object], list[Note]] = {}
    for index, note in enumerate(notes):
        counts.setdefault((note.message, str(note.span) if note.span.is_valid() else index), []).append(note)
    return [
        same[0]
        if len(same) == 1
        else Note(f"{same[0].message} ({len(same)} occurrences at this source location)", same[0].span)
        for same in counts.values()
    ]


RULES: dict[DiagnosticCheck, Rule] = {}

Find = Callable[[Function], list[Note]]


def warns(check: DiagnosticCheck, name: str, code: int) -> Callable[[Find], Find]:
    """Register a function as a check that warns about the user's program, before the first pass."""
    return _register(check, name, code, DiagnosticPhase.PRE_PIPELINE, DiagnosticSeverity.Warning)


def hints(check: DiagnosticCheck, name: str, code: int, hint_code: str) -> Callable[[Find], Find]:
    """Register a function as a check that gives performance hints, after the last pass."""
    return _register(check, name, code, DiagnosticPhase.POST_PIPELINE, DiagnosticSeverity.PerfHint, hint_code)


def _register(
    check: DiagnosticCheck,
    name: str,
    code: int,
    phase: DiagnosticPhase,
    severity: DiagnosticSeverity,
    hint_code: str = "",
) -> Callable[[Find], Find]:
    if severity is DiagnosticSeverity.Error:
        raise InternalError(f"check {check.name}: an error is the finding of a verifier, not of a check")

    def register(find: Find) -> Find:
        RULES[check] = Rule(check, name, code, phase, severity, hint_code, find)
        return find

    return register


class DiagnosticCheckRegistry:
    """The checks by hand."""

    @staticmethod
    def run_checks(checks: DiagnosticCheckSet, phase: DiagnosticPhase, program: Program) -> list[Diagnostic]:
        """The findings of those of the checks that belong to a phase: by check, functions in program order."""
        found: list[Diagnostic] = []
        for check in checks:
            rule = RULES[check]
            if rule.phase is phase:
                found += rule.run(program)
        return found

    @staticmethod
    def get_all_checks() -> DiagnosticCheckSet:
        """All checks."""
        return check_set(*RULES)

    @staticmethod
    def get_warning_checks() -> DiagnosticCheckSet:
        """The checks that warn."""
        return _of_severity(DiagnosticSeverity.Warning)

    @staticmethod
    def get_perf_hint_checks() -> DiagnosticCheckSet:
        """The checks that give performance hints."""
        return _of_severity(DiagnosticSeverity.PerfHint)


def _of_severity(severity: DiagnosticSeverity) -> DiagnosticCheckSet:
    return check_set(*(check for check, rule in RULES.items() if rule.severity is severity))


def default_disabled_checks() -> DiagnosticCheckSet:
    """The checks that do not run where a context does not say which: results that nobody uses are common."""
    return check_set(DiagnosticCheck.UnusedControlFlowResult)


__all__ = [
    "PHASE_VARIABLE",
    "RULES",
    "DiagnosticCheck",
    "DiagnosticCheckRegistry",
    "DiagnosticCheckSet",
    "DiagnosticPhase",
    "Note",
    "Rule",
    "check_set",
    "default_disabled_checks",
    "get_default_diagnostic_phase",
    "hints",
    "warns",
]
