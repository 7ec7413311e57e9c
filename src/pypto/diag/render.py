"""Rendering diagnostics as plain text or with ANSI colours."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from pypto.diag.layout import Line, Style, lay_out

if TYPE_CHECKING:
    from pypto.diag.diagnostic import Diagnostic
    from pypto.diag.parser_errors import ParserError

_RESET = "\033[0m"
_ANSI = {
    Style.TITLE: "\033[1;31m",
    Style.LOCATION: "\033[36m",
    Style.GUTTER: "\033[34m",
    Style.CARET: "\033[1;31m",
    Style.HELP: "\033[32m",
}


class ErrorRenderer:
    """Renders parser errors with an excerpt of the user's source.

    ``use_color=None`` colours only when stderr is a terminal that wants it (see :func:`stderr_wants_color`).
    """

    def __init__(self, use_color: bool | None = None) -> None:
        self.use_color = stderr_wants_color() if use_color is None else use_color

    def render(self, error: ParserError) -> str:
        """The rendered form of an error and of the further ones it carries, an empty line between them."""
        return "\n\n".join(
            self.render_diagnostic(each.diagnostic, each.source_lines or error.source_lines)
            for each in error.all_errors()
        )

    def render_diagnostic(self, diagnostic: Diagnostic, source_lines: list[str] | None = None) -> str:
        """The rendered form of one diagnostic, without a final line end."""
        return "\n".join(self._paint(line) for line in lay_out(diagnostic, source_lines))

    def _paint(self, line: Line) -> str:
        if not self.use_color:
            return "".join(text for text, _ in line)
        return "".join(f"{_ANSI[style]}{text}{_RESET}" if style in _ANSI else text for text, style in line)


def stderr_wants_color() -> bool:
    """Whether stderr is a terminal and neither ``NO_COLOR`` nor ``TERM=dumb`` forbids colours.

    ``FORCE_COLOR`` overrides both, but never colours what is not a terminal.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        return False
    if os.environ.get("FORCE_COLOR", "") not in ("", "0"):
        return True
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
