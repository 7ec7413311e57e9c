"""Entry points of the parser. Importing this installs the hook that shows an uncaught parser error in the source."""

from __future__ import annotations

from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any

from pypto.diag.hook import install_excepthook
from pypto.diag.parser_errors import ParserError
from pypto.diag.render import ErrorRenderer

from ..dsl_api import range, yield_
from ..typing import Scalar, Tensor, Tile

if TYPE_CHECKING:
    from pypto.frontend.entry import InlineFunction, function, inline, program
    from pypto.frontend.text import loads, loads_program, parse, parse_program

# The parser itself is loaded when it is first used.
SOURCES = {
    "InlineFunction": "pypto.frontend.entry",
    "function": "pypto.frontend.entry",
    "inline": "pypto.frontend.entry",
    "program": "pypto.frontend.entry",
    "loads": "pypto.frontend.text",
    "loads_program": "pypto.frontend.text",
    "parse": "pypto.frontend.text",
    "parse_program": "pypto.frontend.text",
}

__all__ = [
    "ErrorRenderer",
    "InlineFunction",
    "ParserError",
    "Scalar",
    "Tensor",
    "Tile",
    "TracebackType",
    "function",
    "inline",
    "loads",
    "loads_program",
    "parse",
    "parse_program",
    "program",
    "range",
    "yield_",
]

install_excepthook()


def __getattr__(name: str) -> Any:
    source = SOURCES.get(name)
    if source is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(source), name)
    return value


def __dir__() -> list[str]:
    return __all__
