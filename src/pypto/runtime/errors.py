"""Errors of a run: each names the program's own source line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..diag.location import Location

if TYPE_CHECKING:
    from .races import Race
    from .task_records import RunRecord


class ProgramError(RuntimeError):
    """A running program did something that has no meaning: left a tensor, used an undefined value, divided by zero.

    ``span`` is the statement's source position; ``function`` and ``task`` say where it ran. ``str`` is the whole text.
    """

    def __init__(self, message: str, span: Any = None, function: str = "", task: str = "") -> None:
        self.message = message
        self.span = span if span is not None and span.is_valid() else None
        self.function = function
        self.task = task
        super().__init__(self._text())

    def _text(self) -> str:
        where = []
        if self.span is not None:
            place = Location.of(self.span)
            where.append(f"at {place.describe() if place is not None else self.span}")
        if self.function:
            where.append(f"in '{self.function}'")
        if self.task:
            where.append(f"task {self.task}")
        return self.message + (f" ({', '.join(where)})" if where else "")

    def source_line(self) -> str:
        """The statement's text, when its file can be read."""
        import linecache

        return linecache.getline(self.span.filename, self.span.begin_line).strip() if self.span is not None else ""


class RaceError(RuntimeError):
    """A run with ``check_races=True`` found tasks that touch the same bytes without an order between them.

    The run is over but gives no results, since they depend on chance: nothing is returned and strided outputs are as
    they were. Contiguous arrays, which programs write in place, hold whatever this run left there. ``races``: the pairs
    (:class:`~pypto.runtime.races.Race`); ``record``: the run that they are part of.
    """

    def __init__(self, message: str, races: Sequence[Race], record: RunRecord) -> None:
        self.races = list(races)
        self.record = record
        super().__init__(message)
