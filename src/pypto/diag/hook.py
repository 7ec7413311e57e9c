"""The hook for uncaught exceptions: a parser error shows the user's source instead of a traceback."""

from __future__ import annotations

import os
import sys
import traceback
from types import TracebackType

from pypto.diag.parser_errors import ParserError
from pypto.diag.render import ErrorRenderer

_MARK = "_pypto_parser_error_hook"
_SEPARATOR = "-" * 60
_NOTE = "   = note: set PTO_BACKTRACE=1 to see the Python traceback"


def install_excepthook() -> None:
    """Wrap ``sys.excepthook``. A second call changes nothing."""
    previous = sys.excepthook
    if getattr(previous, _MARK, False):
        return

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, ParserError) and sys.stderr is not None:
            _report(error)
        else:
            previous(kind, error, trace)

    setattr(hook, _MARK, True)
    sys.excepthook = hook


def _report(error: ParserError) -> None:
    with_backtrace = _backtrace_wanted()
    print(ErrorRenderer().render(error), file=sys.stderr)
    if with_backtrace:
        print(_SEPARATOR, file=sys.stderr)
        traceback.print_exception(error)
    else:
        print(_NOTE, file=sys.stderr)


def _backtrace_wanted() -> bool:
    value = os.environ.get("PTO_BACKTRACE", "")
    if value not in ("", "0", "1"):
        raise ValueError(f"PTO_BACKTRACE must be 0 or 1, got {value!r}")
    return value == "1"
