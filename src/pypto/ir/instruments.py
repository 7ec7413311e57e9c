"""The round trip of a program through its text, as a check behind each pass."""

from __future__ import annotations

import warnings
from typing import Any

from ..passes.instruments import CallbackInstrument
from .program import Program


def make_roundtrip_instrument() -> CallbackInstrument:
    """An instrument that prints the program after each pass, parses the text, and compares."""

    def check(pass_obj: Any, program: Program) -> None:
        check_roundtrip(program, pass_obj.get_name())

    return CallbackInstrument(after_pass=check, name="RoundtripInstrument")


def check_roundtrip(program: Program, pass_name: str) -> None:
    """Print, parse and compare a program; ``RuntimeError`` that names the pass when the IR does not come back."""
    from ..frontend.text import parse
    from .equality import assert_structural_equal
    from .printer import python_print

    where = "[RoundtripInstrument]"
    try:
        text = python_print(program, format=False)
    except Exception as error:
        if "does not support iter_args" in str(error):
            warnings.warn(f"{where} IR not printable after pass '{pass_name}': {error}", UserWarning, stacklevel=2)
            return
        raise RuntimeError(f"{where} Printer failed after pass '{pass_name}': {error}") from error
    try:
        again = parse(text, "<roundtrip>")
    except Exception as error:
        raise RuntimeError(f"{where} Parse failed after pass '{pass_name}':\n{_rendered(error)}") from error
    try:
        assert_structural_equal(program, again)
    except Exception as error:
        raise RuntimeError(
            f"{where} Structural equality failed after pass '{pass_name}': {error}\n--- Printed IR ---\n{text}"
        ) from error


def _rendered(error: Exception) -> str:
    from ..diag.parser_errors import ParserError
    from ..diag.render import ErrorRenderer

    return ErrorRenderer(False).render(error) if isinstance(error, ParserError) else str(error)


__all__ = ["check_roundtrip", "make_roundtrip_instrument"]
