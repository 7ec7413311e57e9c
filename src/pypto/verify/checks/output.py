"""Findings of checks in the log, and hints in the report folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...diag.logging import log_info, log_warn
from ..diagnostics import Diagnostic, DiagnosticSeverity

HINT_FILE = "perf_hints.log"


def emit(diagnostics: Sequence[Diagnostic], label: str, report_dir: str | Path | None = None) -> None:
    """Write findings: warnings to the log with the label of what was looked at, hints to the log or the report folder.

    With a folder, hints are appended to ``perf_hints.log`` there, and one line of the log says how many. Findings of
    one rule at one place with the same text are one line that says how many.
    """
    lines = merged(diagnostics)
    for found in lines:
        if found.severity is not DiagnosticSeverity.PerfHint:
            log_warn(f"[warning] [{found.rule_name}] ({label}) {found.message}{_at(found)}")
    hints = [found for found in lines if found.severity is DiagnosticSeverity.PerfHint]
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


def merged(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Equal findings at one place as one, with their number; without a place each stays for itself."""
    counts: dict[tuple[object, ...], int] = {}
    first: dict[tuple[object, ...], Diagnostic] = {}
    for index, found in enumerate(diagnostics):
        place = str(found.span) if found.span.is_valid() else index
        key = (found.severity, found.rule_name, found.error_code, found.hint_code, found.message, place)
        counts[key] = counts.get(key, 0) + 1
        first.setdefault(key, found)
    return [_times(found, counts[key]) for key, found in first.items()]


def _times(found: Diagnostic, count: int) -> Diagnostic:
    if count == 1:
        return found
    message = f"{found.message} ({count} occurrences at this source location)"
    return Diagnostic(found.severity, found.rule_name, found.error_code, message, found.span, found.hint_code)


def _at(found: Diagnostic) -> str:
    return f" at {found.span}" if found.span.is_valid() else ""


def _sites(hints: Sequence[Diagnostic]) -> int:
    """The number of distinct places; a hint without one is a place of its own."""
    return len({str(found.span) if found.span.is_valid() else id(found) for found in hints})


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


__all__ = ["HINT_FILE", "emit", "hint_line", "merged"]
