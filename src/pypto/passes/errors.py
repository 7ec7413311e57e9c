"""Errors that a pass finds in the user's program."""

from __future__ import annotations

from typing import Any

from ..diag.codes import find_code
from ..diag.diagnostic import Diagnostic, Label, Severity
from ..diag.location import Location


class PassError(ValueError):
    """A pass found something in the user's program that it can't translate.

    ``str`` is the message and the place, ``[file:line:column]``. ``labels`` are further places, each with a text;
    ``hint`` says what to do.
    """

    default_code = "PT1000"

    def __init__(
        self, message: str, span: Any = None, *, labels: tuple[tuple[Any, str], ...] = (), hint: str | None = None
    ) -> None:
        self.message = message
        self.span = span if span is not None and span.is_valid() else None
        self.labels = tuple((place, text) for place, text in labels if place is not None and place.is_valid())
        self.hint = hint
        where = f" [{self.span}]" if self.span is not None else ""
        super().__init__(message + where)

    @property
    def code(self) -> str:
        """The stable ``PT`` code of the message's key phrase."""
        return find_code("PassError", self.message) or self.default_code

    @property
    def diagnostic(self) -> Diagnostic:
        """The error as a diagnostic, for renderers."""
        labels = []
        for place, text in self.labels:
            found = Location.of(place)
            if found is not None:
                labels.append(Label(found, text))
        return Diagnostic(
            self.code, Severity.ERROR, self.message, Location.of(self.span), labels=tuple(labels), help=self.hint
        )


class PassTypeError(PassError, TypeError):
    """The same where types do not fit."""


__all__ = ["PassError", "PassTypeError"]
