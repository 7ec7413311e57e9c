"""The program before and after each pass as files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..ir.printer import python_print
from ..ir.program import Program
from ..verify.checks import DiagnosticCheckRegistry, DiagnosticPhase
from ..verify.diagnostics import Diagnostic
from .context import PassContext
from .instruments import CallbackInstrument

AddFile = Callable[[str, Callable[[], str]], None]


class PassDump:
    """Adds ``00_frontend.py`` and, as an instrument, ``NN_after_<Pass>.py`` behind each pass.

    What the checks of the phase POST_PASS find stands in ``NN_after_<Pass>.log``.

    ``add(name, text)`` takes a file's name and what makes its text: at once, or when the files are asked for.
    """

    def __init__(self, add: AddFile, prefix: str = "pl", explicit: bool = False) -> None:
        self._add_file = add
        self._prefix = prefix
        self._explicit = explicit
        self._count = 0
        self._last: tuple[Program, str] | None = None
        self.instrument = CallbackInstrument(after_pass=self._after, name="IRDump")

    def add_input(self, program: Program) -> None:
        """The program before the first pass."""
        self._add("00_frontend.py", program)

    def _after(self, pass_obj: Any, program: Program) -> None:
        self._count += 1
        stem = f"{self._count:02d}_after_{pass_obj.get_name()}"
        self._add(f"{stem}.py", program)
        found = _warnings(program)
        if found:
            self._add_file(f"{stem}.log", lambda: "".join(f"{_line(each)}\n" for each in found))

    def _add(self, name: str, program: Program) -> None:
        self._add_file(name, lambda: self._text(program))

    def _text(self, program: Program) -> str:
        # Most passes leave a program as it is, and its text with it.
        if self._last is None or self._last[0] is not program:
            text = python_print(program, self._prefix, format=False, explicit_layout=self._explicit)
            self._last = (program, text if text.endswith("\n") else text + "\n")
        return self._last[1]


def _warnings(program: Program) -> list[Diagnostic]:
    """What the checks that run behind each pass find."""
    checks = DiagnosticCheckRegistry.get_all_checks()
    context = PassContext.current()
    if context is not None:
        if context.get_diagnostic_phase() is DiagnosticPhase.NONE:
            return []
        checks = checks.difference(context.get_disabled_diagnostics())
    return DiagnosticCheckRegistry.run_checks(checks, DiagnosticPhase.POST_PASS, program)


def _line(found: Diagnostic) -> str:
    where = f"{found.span}: " if found.span.is_valid() else ""
    return f"{where}{found.severity.name.lower()}: {found.message}"


def into_folder(folder: Path) -> AddFile:
    """Write the files into a folder at once; it is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)

    def add(name: str, text: Callable[[], str]) -> None:
        (folder / name).write_text(text(), encoding="utf-8")

    return add


__all__ = ["AddFile", "PassDump", "into_folder"]
