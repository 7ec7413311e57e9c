"""The hook for uncaught exceptions, in real processes."""

import os
import subprocess
import sys
import textwrap

import pytest

SCRIPT = """\
import sys
from pypto.diag import InternalError, ParserError, install_excepthook
{before}
install_excepthook()
def fails():
    raise {error}
fails()
"""
PARSER_ERROR = 'ParserError("bad name", {"filename": "", "line": 1, "column": 5}, "mend it", None, ["x = y"])'
RENDERED = "Error: bad name\n  |\n1 | x = y\n  |     ^ bad name\n  |\n   = help: mend it\n"


def stderr_of(tmp_path, error=PARSER_ERROR, before="", backtrace=None):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(error=error, before=textwrap.dedent(before)), encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if key != "PTO_BACKTRACE"}
    if backtrace is not None:
        environment["PTO_BACKTRACE"] = backtrace
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=environment, timeout=60)
    assert done.returncode == 1
    assert done.stdout == ""
    return done.stderr


@pytest.mark.parametrize("backtrace", [None, "0", ""])
def test_rendered_form_and_a_note(tmp_path, backtrace):
    note = "   = note: set PTO_BACKTRACE=1 to see the Python traceback\n"
    assert stderr_of(tmp_path, backtrace=backtrace) == RENDERED + note


def test_backtrace(tmp_path):
    text = stderr_of(tmp_path, backtrace="1")
    start = RENDERED + "-" * 60 + "\nTraceback (most recent call last):\n"
    assert text.startswith(start)
    assert ", in fails\n" in text
    assert text.endswith("ParserError: bad name\n")
    assert "excepthook" not in text


def test_other_value_is_an_error(tmp_path):
    text = stderr_of(tmp_path, backtrace="full")
    assert "ValueError: PTO_BACKTRACE must be 0 or 1, got 'full'" in text
    assert "ParserError: bad name" in text  # Python shows the original exception as well


@pytest.mark.parametrize("error", ['ValueError("other")', 'InternalError("a bug")'])
def test_other_exceptions_go_to_the_previous_hook(tmp_path, error):
    before = """
    def previous(kind, error, trace):
        print("previous:", kind.__name__, error, trace is not None, file=sys.stderr)
    sys.excepthook = previous
    """
    name, message = error.split("(")[0], error.split('"')[1]
    assert stderr_of(tmp_path, error=error, before=before) == f"previous: {name} {message} True\n"


def test_second_installation_changes_nothing(tmp_path):
    before = """
    install_excepthook()
    first = sys.excepthook
    install_excepthook()
    assert sys.excepthook is first
    """
    assert stderr_of(tmp_path, before=before).count("Error: bad name") == 1


def test_importing_the_room_is_cheap():
    code = (
        "import sys; before = set(sys.modules); import pypto.diag, pypto.diag.logging; "
        "print([m for m in ('rich', 'msgspec', 'numpy', 'typer', 'inspect', 'pypto.ir') "
        "if m in sys.modules and m not in before])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"
