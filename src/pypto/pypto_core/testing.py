"""Functions that raise each error of the public error classes, for tests of how errors pass through layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from ..diag.errors import Error, InternalError, internal_check_span
from ..ir.span import Span


def raise_value_error(message: str) -> NoReturn:
    """Raise ``ValueError``."""
    raise ValueError(message)


def raise_type_error(message: str) -> NoReturn:
    """Raise ``TypeError``."""
    raise TypeError(message)


def raise_runtime_error(message: str) -> NoReturn:
    """Raise ``RuntimeError``."""
    raise RuntimeError(message)


def raise_not_implemented_error(message: str) -> NoReturn:
    """Raise ``NotImplementedError``."""
    raise NotImplementedError(message)


def raise_index_error(message: str) -> NoReturn:
    """Raise ``IndexError``."""
    raise IndexError(message)


def raise_generic_error(message: str) -> NoReturn:
    """Raise ``pypto.Error``."""
    raise Error(message)


def raise_assertion_error(message: str) -> NoReturn:
    """Raise ``AssertionError``."""
    raise AssertionError(message)


def raise_internal_error(message: str) -> NoReturn:
    """Raise ``pypto.InternalError``."""
    raise InternalError(message)


def raise_internal_error_with_span(message: str, filename: str, line: int, col: int) -> None:
    """Raise ``pypto.InternalError`` about a node at a source position."""
    internal_check_span(False, message, Span(filename, line, col))


_RAISERS: dict[str, Callable[[str], NoReturn]] = {
    "value": raise_value_error,
    "type": raise_type_error,
    "runtime": raise_runtime_error,
    "not_implemented": raise_not_implemented_error,
    "index": raise_index_error,
    "generic": raise_generic_error,
    "assertion": raise_assertion_error,
    "internal": raise_internal_error,
}


def rethrow_with_message(kind: str, original: str, replacement: str) -> NoReturn:
    """Raise an error of a kind (``value``, ``type``, ...), catch it, and raise its class with another message."""
    if kind not in _RAISERS:
        raise ValueError(f"unknown kind of error {kind!r}: one of {', '.join(_RAISERS)}")
    try:
        _RAISERS[kind](original)
    except Exception as error:
        raise type(error)(replacement) from error


__all__ = [raiser.__name__ for raiser in _RAISERS.values()] + ["raise_internal_error_with_span", "rethrow_with_message"]
