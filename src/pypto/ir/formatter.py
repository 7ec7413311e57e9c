"""Optional formatting of printed text with ``ruff``."""

from __future__ import annotations

from collections.abc import Callable

_TIME_LIMIT = 5.0
_LINE_LENGTH = 200


def ruff_format(code: str, line_length: int = _LINE_LENGTH) -> str:
    """``code`` as ``ruff format`` lays it out; unchanged on any failure.

    A final newline is kept only if the input had one.
    """
    import subprocess

    # Isolated: the text must not depend on whose project the process runs in.
    command = ["ruff", "format", "--isolated", "--line-length", str(line_length), "-"]
    try:
        done = subprocess.run(
            command, input=code, capture_output=True, encoding="utf-8", timeout=_TIME_LIMIT, check=True
        )
    except (OSError, subprocess.SubprocessError, UnicodeError):
        return code
    return done.stdout if code.endswith("\n") else done.stdout.rstrip("\n")


def format_lines(code: str) -> str:
    """:func:`ruff_format` where it can make a difference: a short single line costs no process."""
    return ruff_format(code) if "\n" in code or len(code) > _LINE_LENGTH else code


def default_callback() -> Callable[[str], str] | None:
    """The callback for printing when nobody chose one: ruff, if it is installed."""
    import shutil

    return format_lines if shutil.which("ruff") else None
