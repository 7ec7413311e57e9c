"""What watches passes run: verification, callbacks, reports, warnings.

The round trip through text is in :mod:`pypto.ir.instruments`, since it needs the parser.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..ir.program import Program
from ..verify.diagnostics import VerificationError, generate_report
from ..verify.properties import IRPropertySet, get_structural_properties
from ..verify.registry import verify_all

if TYPE_CHECKING:
    from ..verify.checks import DiagnosticCheckSet
    from .base import Pass


class PassInstrument:
    """Base of instruments: hooks before and after each pass, and at the end of a pipeline."""

    def __init__(self, name: str = "PassInstrument") -> None:
        self._name = name

    def get_name(self) -> str:
        """The instrument's name."""
        return self._name

    def run_before_pass(self, pass_obj: Pass, program: Program) -> None:
        """Called with the input of a pass."""

    def run_after_pass(self, pass_obj: Pass, program: Program) -> None:
        """Called with the result of a pass."""

    def run_after_pipeline(self, program: Program) -> None:
        """Called with the result of a pipeline."""


class VerificationMode(enum.Enum):
    """When a :class:`VerificationInstrument` verifies."""

    NONE = 0
    BEFORE = 1
    AFTER = 2
    BEFORE_AND_AFTER = 3


class VerificationInstrument(PassInstrument):
    """Verifies what a pass requires before it, and what it produces after it, each with the structural properties.

    Raises :class:`VerificationError` (a ``pypto.Error``). The level of the context plays no part.
    """

    def __init__(self, mode: VerificationMode = VerificationMode.AFTER) -> None:
        super().__init__("VerificationInstrument")
        self._mode = mode

    def run_before_pass(self, pass_obj: Pass, program: Program) -> None:
        if self._mode in (VerificationMode.BEFORE, VerificationMode.BEFORE_AND_AFTER):
            self._verify(pass_obj.get_required_properties(), program, pass_obj, "Pre-verification failed before")

    def run_after_pass(self, pass_obj: Pass, program: Program) -> None:
        if self._mode in (VerificationMode.AFTER, VerificationMode.BEFORE_AND_AFTER):
            self._verify(pass_obj.get_produced_properties(), program, pass_obj, "Post-verification failed after")

    def _verify(self, wanted: IRPropertySet, program: Program, pass_obj: Pass, what: str) -> None:
        properties = wanted.union_with(get_structural_properties())
        found = verify_all(properties, program)
        if any(d.is_error for d in found):
            name = pass_obj.get_name()
            raise VerificationError(f"{what} pass '{name}':\n{generate_report(found)}", found, name, list(properties))


Callback = Callable[[Any, Program], Any]


class CallbackInstrument(PassInstrument):
    """Calls functions with ``(pass, program)``. What they return is ignored, what they raise passes on."""

    def __init__(
        self,
        before_pass: Callback | None = None,
        after_pass: Callback | None = None,
        name: str = "CallbackInstrument",
    ) -> None:
        super().__init__(name)
        self._before = before_pass
        self._after = after_pass

    def run_before_pass(self, pass_obj: Pass, program: Program) -> None:
        if self._before is not None:
            self._before(pass_obj, program)

    def run_after_pass(self, pass_obj: Pass, program: Program) -> None:
        if self._after is not None:
            self._after(pass_obj, program)


class ReportInstrument(PassInstrument):
    """Names the folder into which others write reports; writes nothing itself."""

    def __init__(self, output_dir: str | os.PathLike[str]) -> None:
        super().__init__("ReportInstrument")
        self._output_dir = os.fspath(output_dir)

    def get_output_dir(self) -> str:
        """The folder for reports."""
        return self._output_dir


class DiagnosticInstrument(PassInstrument):
    """Takes over warnings and hints from the pipeline: its own checks run, each in its phase."""

    def __init__(self, checks: DiagnosticCheckSet | None = None) -> None:
        super().__init__("DiagnosticInstrument")
        from ..verify.checks import DiagnosticCheckRegistry

        self.checks = DiagnosticCheckRegistry.get_all_checks() if checks is None else checks


__all__ = [
    "CallbackInstrument",
    "DiagnosticInstrument",
    "PassInstrument",
    "ReportInstrument",
    "VerificationInstrument",
    "VerificationMode",
]
