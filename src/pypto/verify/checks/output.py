"""Findings of checks in the log, and hints in the report folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...diag.logging import log_info, log_warn
from ..diagnostics import Diagnostic, DiagnosticSeverity

HINT_FILE = "perf_hints.log"


def emit(diagnostics: Sequence[Diagnostic], label: str, report_dir: str | Path | None = None) -> None:
    """Write findings: warnings to the log with the label of what was looked at, hints to the log or the report folder.

    With a folder, hints are appended to ``perf_hints.log`` there, and one line of the log says how many.
    """
    for found in diagnostics:
        if found.severity is not DiagnosticSeverity.PerfHint:
            log_warn(f"[warning] [{found.rule_name}] ({label}) {found.message}{_at(found)}")
    hints = [found for found in diagnostics if found.severity is DiagnosticSeverity.PerfHint]
    if not hints:
        return
    if report_dir is not None:
        path = Path(report_dir) / HINT_FILE
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.writelines(f"{hint_line(found)}\n" for found in hints)
        except OSError as error:
            log_warn(f"[perf_hint] cannot write {path}: {error.strerror or error}; all hints follow")
        else:
            log_info(f"[perf_hint] {_count(len(hints), 'hint')} across {_count(_sites(hints), 'site')}; see {path}")
            return
    for found in hints:
        log_info(hint_line(found))


def hint_line(found: Diagnostic) -> str:
    """A hint as one line."""
    text = " ".join(found.message.split("\n"))
    return f"[perf_hint {found.hint_code}] {found.rule_name}: {text}{_at(found)}"


def _at(found: Diagnostic) -> str:
    return f" at {found.span}" if found.span.is_valid() else ""


def _sites(hints: Sequence[Diagnostic]) -> int:
    """The number of distinct places; a hint without one is a place of its own."""
    return len({str(found.span) if found.span.is_valid() else id(found) for found in hints})


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


__all__ = ["HINT_FILE", "emit", "hint_line"]
