"""Rendering with rich: the same layout, with the code of the error and highlighted source.

Nothing else of this room imports this module, and rich itself is imported only when something is rendered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pypto.diag.layout import Line, Style, lay_out

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from pypto.diag.diagnostic import Diagnostic
    from pypto.diag.parser_errors import ParserError

_STYLES = {
    Style.TITLE: "bold red",
    Style.LOCATION: "cyan",
    Style.GUTTER: "blue",
    Style.CARET: "bold red",
    Style.HELP: "green",
    Style.PLAIN: "",
}


def rich_text(diagnostic: Diagnostic, source_lines: list[str] | None = None) -> Text:
    """A diagnostic as rich text; its title names the code, as in ``Error[PT0401]: ...``."""
    lines = lay_out(diagnostic, source_lines)
    (text, style), *rest = lines[0]
    word = diagnostic.severity.value
    lines[0] = [(f"{word}[{diagnostic.code}]{text[len(word) :]}", style), *rest]
    return painted(lines)


def painted(lines: list[Line]) -> Text:
    """Lines of styled pieces as rich text."""
    from rich.syntax import Syntax
    from rich.text import Text

    python = Syntax("", "python", background_color="default")
    result = Text()
    for number, line in enumerate(lines):
        if number:
            result.append("\n")
        for text, style in line:
            if style is Style.SOURCE:
                # highlighting strips leading blanks and adds a line end
                indent = len(text) - len(text.lstrip())
                highlighted = python.highlight(text[indent:])
                highlighted.rstrip()
                result.append(text[:indent]).append_text(highlighted)
            else:
                result.append(text, _STYLES[style])
    return result


def print_error(error: ParserError, console: Console | None = None) -> None:
    """Print an error, and the further ones it carries, to ``console`` (stderr without one)."""
    if console is None:
        from rich.console import Console

        console = Console(stderr=True)
    for number, each in enumerate(error.all_errors()):
        if number:
            console.print()
        text = rich_text(each.diagnostic, each.source_lines or error.source_lines)
        console.print(text, soft_wrap=True)  # wrapped lines would tear the carets from what they point at
