"""The rich renderer shows the same text, with the code in the title."""

import io

from rich.console import Console

from pypto.diag import ErrorRenderer, InvalidOperationError, UndefinedVariableError
from pypto.diag.rich_render import print_error, rich_text

LINES = ["def f(a):", "    b = pl.adn(a, 1.0)", "", "\treturn [b]  # [bold]no markup[/bold]"]


def sample():
    error = InvalidOperationError(
        "Unknown operation 'pl.adn'", {"filename": "k.py", "line": 2, "column": 9}, hint="pl.add", source_lines=LINES
    )
    error.errors.append(UndefinedVariableError("Undefined variable 'c'", {"filename": "k.py", "line": 4, "column": 9}))
    return error


def test_same_text_but_for_the_code():
    error = sample()
    plain = ErrorRenderer(use_color=False).render_diagnostic(error.diagnostic, LINES)
    assert rich_text(error.diagnostic, LINES).plain == plain.replace("Error:", "Error[PT0501]:", 1)


def test_print_shows_every_error_and_wraps_nothing():
    out = io.StringIO()
    print_error(sample(), Console(file=out, width=20))
    plain = ErrorRenderer(use_color=False).render(sample())
    want = plain.replace("Error: Unknown", "Error[PT0501]: Unknown").replace("Error: Undef", "Error[PT0103]: Undef")
    assert out.getvalue() == want + "\n"


def test_source_is_highlighted_on_a_terminal():
    out = io.StringIO()
    print_error(sample(), Console(file=out, force_terminal=True, width=80, color_system="truecolor"))
    assert "\033[1;31m" in out.getvalue()
    assert "b = pl.adn(a, 1.0)" not in out.getvalue()  # split up by the highlighting
