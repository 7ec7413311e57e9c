"""The source position that nodes built by helper functions take: pinned by the parser, else the caller's line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .span import Span

_pinned: ContextVar[Span | None] = ContextVar("pypto_parser_span", default=None)

pin = _pinned.set
unpin = _pinned.reset
pinned_span = _pinned.get

_PACKAGE = __name__.split(".", 1)[0]


def current_span() -> Span:
    """The pinned span, else the line of the nearest caller outside this package."""
    span = _pinned.get()
    return span if span is not None else caller_span()


def caller_span(depth: int = 2) -> Span:
    """The line of the nearest calling frame outside this package."""
    frame = sys._getframe(depth)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".", 1)[0] == _PACKAGE:
        frame = frame.f_back
    return Span(frame.f_code.co_filename, frame.f_lineno, -1)


@contextmanager
def use_parser_span(span: Span) -> Iterator[None]:
    """Pin ``span`` for everything built inside the block."""
    token = _pinned.set(span)
    try:
        yield
    finally:
        _pinned.reset(token)
