"""The exception classes that the front end raises for errors in DSL source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from pypto.diag.codes import ErrorCode, find_code
from pypto.diag.location import Location, SpanDict

if TYPE_CHECKING:  # loaded when a diagnostic is asked for, so that importing the exceptions stays cheap
    from pypto.diag.diagnostic import Diagnostic, Label


class ParserError(Exception):
    """An error in DSL source. ``str(error)`` is the message alone; a renderer adds the place and the excerpt.

    ``span`` accepts any object with ``filename``, ``begin_line``, ``begin_column`` (and an end, if known) and is kept
    as a dict, so that an error kept for long keeps no IR alive. ``errors`` holds the further independent errors that
    were found in the same function or program.
    """

    default_code: ClassVar[str] = "PT0100"
    legacy_code: ClassVar[ErrorCode | None] = None

    def __init__(
        self,
        message: str,
        span: Any = None,
        hint: str | None = None,
        note: str | None = None,
        source_lines: list[str] | None = None,
        *,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.hint = hint
        self.note = note
        self.source_lines = source_lines
        self.errors: list[ParserError] = []
        self._code = code

    def __str__(self) -> str:
        return self.message

    @property
    def span(self) -> SpanDict | None:
        """Where the error is, as a dict, or ``None``."""
        return self._span

    @span.setter
    def span(self, value: Any) -> None:
        self._span = _published(value)

    @property
    def code(self) -> str:
        """The stable ``PT`` code: the one given, or the one whose key phrase the message contains."""
        return self._code or find_code(type(self).__name__, self.message) or self.default_code

    @property
    def diagnostic(self) -> Diagnostic:
        """This error alone (without ``errors``) as a diagnostic."""
        from pypto.diag.diagnostic import Diagnostic, Severity

        notes = (self.note, *getattr(self, "__notes__", ()))
        return Diagnostic(
            code=self.code,
            severity=Severity.ERROR,
            message=self.message,
            span=Location.of(self.span),
            labels=self._labels(),
            notes=tuple(note for note in notes if note),
            help=self.hint or None,
        )

    def all_errors(self) -> Iterator[ParserError]:
        """This error and then the further ones, each once."""
        seen: set[int] = set()
        pending = [self]
        while pending:
            error = pending.pop()
            if id(error) not in seen:
                seen.add(id(error))
                yield error
                pending.extend(reversed(error.errors))

    def _labels(self) -> tuple[Label, ...]:
        return ()


class ParserSyntaxError(ParserError):
    """A construct is used in a form that the DSL does not allow; also the wrapper for unexpected failures."""

    default_code = "PT0101"
    legacy_code = ErrorCode.UNSUPPORTED_STATEMENT


class ParserTypeError(ParserError):
    """Annotations, argument counts and kinds, condition types, types of a reassignment."""

    default_code = "PT0102"
    legacy_code = ErrorCode.INVALID_TYPE_ANNOTATION


class UndefinedVariableError(ParserError):
    """An unknown name or an unknown method."""

    default_code = "PT0103"
    legacy_code = ErrorCode.UNDEFINED_VARIABLE


class SSAViolationError(ParserError):
    """A second definition of a name under ``strict_ssa``; ``previous_span`` is the first one."""

    default_code = "PT0104"
    legacy_code = ErrorCode.SSA_VIOLATION

    def __init__(
        self,
        message: str,
        span: Any = None,
        hint: str | None = None,
        note: str | None = None,
        source_lines: list[str] | None = None,
        previous_span: Any = None,
        *,
        code: str | None = None,
    ) -> None:
        super().__init__(message, span, hint, note, source_lines, code=code)
        self.previous_span = previous_span

    @property
    def previous_span(self) -> SpanDict | None:
        """Where the name was defined first, as a dict, or ``None``."""
        return self._previous_span

    @previous_span.setter
    def previous_span(self, value: Any) -> None:
        self._previous_span = _published(value)

    def _labels(self) -> tuple[Label, ...]:
        from pypto.diag.diagnostic import Label

        place = Location.of(self.previous_span)
        return () if place is None else (Label(place, "Previous definition was here"),)


class UnsupportedFeatureError(ParserError):
    """Valid Python that the DSL does not have."""

    default_code = "PT0105"
    legacy_code = ErrorCode.UNSUPPORTED_OPERATION


class InvalidOperationError(ParserError):
    """An unknown operator, an operator that rejected its arguments, a misplaced ``break`` or ``continue``."""

    default_code = "PT0106"
    legacy_code = ErrorCode.UNKNOWN_OPERATION


class ScopeIsolationError(ParserError):
    """Reserved: defined and exported, not raised by the parser."""

    default_code = "PT0107"


def _published(span: object) -> SpanDict | None:
    place = Location.of(span)
    return None if place is None else place.as_dict()
