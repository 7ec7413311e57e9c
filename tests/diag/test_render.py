"""Golden renderings. Each case is one rule of the layout."""

import linecache
import sys

import pytest

from pypto.diag import ErrorRenderer, ParserError, SSAViolationError
from pypto.diag.diagnostic import Diagnostic, Severity
from pypto.diag.location import Location

SOURCE = """\
@pl.function
def fold(self, a: pl.Tensor[[8, 8], pl.FP32]):
    with pl.manual_scope():
        mid = self.first(a, a)
        mid = pl.adn(mid, 1.0)
    return mid
"""
LINES = SOURCE.splitlines()


def at(line, column, end_line=None, end_column=None, filename="gone.py"):
    span = {"filename": filename, "line": line, "column": column}
    return span | ({"end_line": end_line, "end_column": end_column} if end_line else {})


def render(error):
    return ErrorRenderer(use_color=False).render(error)


def pointer(message, line, **span):
    """The caret line alone of an error in a one-line source."""
    text = render(ParserError(message, {"filename": "", "line": 1, **span}, source_lines=[line]))
    return text.split("\n")[3]


def test_whole_layout():
    error = ParserError(
        "Unknown operation 'pl.adn'",
        at(5, 15),
        hint="Did you mean 'pl.add'?",
        note="operators are listed in the reference",
        source_lines=LINES,
    )
    assert render(error) == (
        "Error: Unknown operation 'pl.adn'\n"
        "  --> gone.py:5:15\n"
        "  |\n"
        "3 |     with pl.manual_scope():\n"
        "4 |         mid = self.first(a, a)\n"
        "5 |         mid = pl.adn(mid, 1.0)\n"
        "  |               ^^^^^^ Unknown operation 'pl.adn'\n"
        "6 |     return mid\n"
        "  |\n"
        "   = help: Did you mean 'pl.add'?\n"
        "   = note: operators are listed in the reference"
    )


def test_line_numbers_are_aligned_to_the_last_shown_one():
    lines = [f"x{n} = {n}" for n in range(1, 20)]
    assert render(ParserError("m", at(8, 1), source_lines=lines)) == (
        "Error: m\n"
        "  --> gone.py:8:1\n"
        "   |\n"
        " 6 | x6 = 6\n"
        " 7 | x7 = 7\n"
        " 8 | x8 = 8\n"
        "   | ^^ m\n"
        " 9 | x9 = 9\n"
        "10 | x10 = 10\n"
        "   |"
    )


def test_context_is_clipped_to_the_file():
    assert render(ParserError("m", at(1, 1), source_lines=["first", "", "third", "fourth"])) == (
        "Error: m\n  --> gone.py:1:1\n  |\n1 | first\n  | ^^^^^ m\n2 |\n3 | third\n  |"
    )


def test_without_span_only_the_words():
    assert render(ParserError("two\nlines", hint="h\nmore")) == "Error: two\nlines\n   = help: h\n           more"


def test_no_location_line_without_a_file_name_but_the_excerpt():
    assert render(ParserError("m", at(1, 1, filename=""), source_lines=["abc"])) == (
        "Error: m\n  |\n1 | abc\n  | ^^^ m\n  |"
    )


@pytest.mark.parametrize(
    ("line", "column", "shown"), [(4, 9, "k.py:4:9"), (4, -1, "k.py:4"), (0, 9, "k.py"), (-1, -1, "k.py")]
)
def test_line_and_column_only_if_positive(line, column, shown):
    error = ParserError("m", {"filename": "k.py", "line": line, "column": column})
    assert render(error) == f"Error: m\n  --> {shown}"


def test_unknown_column_shows_the_line_without_carets():
    assert render(ParserError("m", at(1, -1), source_lines=["abc"])) == "Error: m\n  --> gone.py:1\n  |\n1 | abc\n  |"


def test_line_outside_of_the_source_shows_no_excerpt():
    assert render(ParserError("m", at(9, 1), source_lines=["abc"])) == "Error: m\n  --> gone.py:9:1"


class TestSourceText:
    def test_the_file_wins_over_source_lines(self, tmp_path):
        path = tmp_path / "kernel.py"
        path.write_text("from_file = 1\r\n", encoding="utf-8")
        error = ParserError("m", at(1, 1, filename=str(path)), source_lines=["from_lines = 1"])
        assert "1 | from_file = 1\n" in render(error)

    def test_an_edited_file_shows_its_new_text(self, tmp_path):
        path = tmp_path / "kernel.py"
        error = ParserError("m", at(1, 1, filename=str(path)))
        for text in ("old = 1\n", "new_and_longer = 1\n"):
            path.write_text(text, encoding="utf-8")
            assert f"1 | {text}" in render(error)

    def test_text_that_only_the_line_cache_has(self):
        name = "<pypto-test-text>"
        linecache.cache[name] = (5, None, ["here()\n"], name)
        try:
            assert "1 | here()\n  | ^^^^ m" in render(ParserError("m", at(1, 1, filename=name)))
        finally:
            del linecache.cache[name]

    def test_source_lines_when_the_file_is_too_short(self, tmp_path):
        path = tmp_path / "kernel.py"
        path.write_text("only = 1\n", encoding="utf-8")
        error = ParserError("m", at(2, 1, filename=str(path)), source_lines=["a = 1", "b = 2"])
        assert "2 | b = 2\n" in render(error)

    def test_nothing_without_either(self):
        assert render(ParserError("m", at(3, 4))) == "Error: m\n  --> gone.py:3:4"


class TestCarets:
    def test_dotted_name_is_one_token(self):
        assert pointer("m", "for i in pl.range(4):", column=10) == "  |          ^^^^^^^^ m"

    @pytest.mark.parametrize(("line", "carets"), [("a. b", 1), ("a.(b)", 1), ("a..b", 1), ("a.b.", 3), ("größe.x", 7)])
    def test_a_dot_counts_only_between_identifier_characters(self, line, carets):
        assert pointer("m", line, column=1) == f"  | {'^' * carets} m"

    def test_at_least_one(self):
        assert pointer("m", "x = (1, 2)", column=5) == "  |     ^ m"
        assert pointer("m", "x", column=4) == "  |    ^ m"

    def test_whole_node_when_its_end_is_on_the_line(self):
        line = "y = pl.add(x, [1, 2])  # sum"
        assert pointer("m", line, column=5, end_line=1, end_column=22) == "  |     ^^^^^^^^^^^^^^^^^ m"

    def test_end_beyond_the_line_is_clipped(self):
        assert pointer("m", "y = f(x)   ", column=5, end_line=1, end_column=99) == "  |     ^^^^ m"

    def test_leading_name_when_the_node_goes_on_in_the_next_line(self):
        assert pointer("m", "y = pl.add(x,", column=5, end_line=2, end_column=9) == "  |     ^^^^^^ m"

    def test_leading_name_when_the_span_is_a_point(self):
        assert pointer("m", "y = pl.add(x)", column=5, end_line=1, end_column=5) == "  |     ^^^^^^ m"

    def test_a_tab_counts_four_and_is_shown_as_four(self):
        text = render(ParserError("m", at(1, 3), source_lines=["\t\tfoo"]))
        assert text.split("\n")[3:5] == ["1 |         foo", "  |         ^^^ m"]

    def test_a_tab_inside_the_node(self):
        assert pointer("m", "f(\tx)", column=1, end_line=1, end_column=6) == "  | ^^^^^^^^ m"


class TestCaption:
    @pytest.mark.parametrize(
        ("message", "caption"),
        [
            ("Name is unknown. Nothing like it is near.", "Name is unknown"),
            ("Name is unknown.", "Name is unknown"),
            ("pl.tile.load is not here", "pl.tile.load is not here"),
            ("first line\nsecond line", "first line"),
            ("x" * 49, "x" * 49),
        ],
    )
    def test_first_sentence_of_the_first_line(self, message, caption):
        title_lines = message.count("\n")
        text = render(ParserError(message, at(1, 1, filename=""), source_lines=["a"]))
        assert text.split("\n")[3 + title_lines] == f"  | ^ {caption}"

    @pytest.mark.parametrize("message", ["x" * 50, "", "\nsecond"])
    def test_only_carets_otherwise(self, message):
        text = render(ParserError(message, at(1, 1, filename=""), source_lines=["a"]))
        assert "\n  | ^\n" in text


def test_previous_definition():
    lines = ["first = 1", "total = 0", "third = 3", "fourth = 4", "fifth = 5", "total = 6"]
    error = SSAViolationError(
        "Variable 'total' is already defined", at(6, 1), "rename it", "strict_ssa is on", lines, at(2, 1)
    )
    assert render(error) == (
        "Error: Variable 'total' is already defined\n"
        "  --> gone.py:6:1\n"
        "  |\n"
        "4 | fourth = 4\n"
        "5 | fifth = 5\n"
        "6 | total = 6\n"
        "  | ^^^^^ Variable 'total' is already defined\n"
        "  |\n"
        "\n"
        "   = note: Previous definition was here:\n"
        "     --> gone.py:2:1\n"
        "     1 | first = 1\n"
        "     2 | total = 0\n"
        "       | ^^^^^\n"
        "     3 | third = 3\n"
        "   = help: rename it\n"
        "   = note: strict_ssa is on"
    )


def test_previous_definition_in_another_file_does_not_show_this_ones_lines(tmp_path):
    other = tmp_path / "other.py"
    other.write_text("total = 'there'\n", encoding="utf-8")
    error = SSAViolationError(
        "m", at(1, 1), source_lines=["total = 'here'"], previous_span=at(1, 1, filename=str(other))
    )
    assert render(error).endswith(f"     --> {other}:1:1\n     1 | total = 'there'\n       | ^^^^^")
    error.previous_span = at(1, 1, filename="also_gone.py")
    assert render(error).endswith("     --> also_gone.py:1:1")


def test_further_errors_follow():
    first = ParserError("one", at(1, 1), source_lines=["a = b", "c = d"])
    first.errors.append(ParserError("two", at(2, 5), hint="h"))
    assert render(first) == (
        "Error: one\n  --> gone.py:1:1\n  |\n1 | a = b\n  | ^ one\n2 | c = d\n  |\n"
        "\n"
        "Error: two\n  --> gone.py:2:5\n  |\n1 | a = b\n2 | c = d\n  |     ^ two\n  |\n   = help: h"
    )


def test_a_warning_says_so():
    diagnostic = Diagnostic("PT0100", Severity.WARNING, "unused", Location("", 1, 1), help="remove it")
    assert ErrorRenderer(use_color=False).render_diagnostic(diagnostic, ["x = 1"]) == (
        "Warning: unused\n  |\n1 | x = 1\n  | ^ unused\n  |\n   = help: remove it"
    )


class TestColour:
    def test_colours(self):
        error = ParserError("bad", at(1, 1), "h", "n", ["x"])
        assert ErrorRenderer(use_color=True).render(error) == (
            "\033[1;31mError: bad\033[0m\n"
            "\033[34m  --> \033[0m\033[36mgone.py:1:1\033[0m\n"
            "\033[34m  |\033[0m\n"
            "\033[34m1 |\033[0m x\n"
            "\033[34m  | \033[0m\033[1;31m^ bad\033[0m\n"
            "\033[34m  |\033[0m\n"
            "\033[32m   = help: h\033[0m\n"
            "   = note: n"
        )

    @pytest.mark.parametrize(
        ("terminal", "environment", "coloured"),
        [
            (True, {}, True),
            (False, {}, False),
            (True, {"NO_COLOR": "1"}, False),
            (True, {"TERM": "dumb"}, False),
            (True, {"TERM": "dumb", "FORCE_COLOR": "1"}, True),
            (True, {"FORCE_COLOR": "0", "TERM": "dumb"}, False),
            (False, {"FORCE_COLOR": "1"}, False),
        ],
    )
    def test_when(self, monkeypatch, terminal, environment, coloured):
        for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
        assert ("\033[" in ErrorRenderer().render(ParserError("m"))) is coloured

    def test_argument_wins(self, monkeypatch):
        monkeypatch.setenv("NO_COLOR", "1")
        assert "\033[" in ErrorRenderer(use_color=True).render(ParserError("m"))
