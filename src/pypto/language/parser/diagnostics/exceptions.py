"""The parser's exception classes; the code is in ``pypto.diag``."""

from pypto.diag.concise import BUG_CLASS_EXCEPTIONS, concise_error_message
from pypto.diag.parser_errors import (
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    ScopeIsolationError,
    SSAViolationError,
    UndefinedVariableError,
    UnsupportedFeatureError,
)

__all__ = [
    "BUG_CLASS_EXCEPTIONS",
    "InvalidOperationError",
    "ParserError",
    "ParserSyntaxError",
    "ParserTypeError",
    "SSAViolationError",
    "ScopeIsolationError",
    "UndefinedVariableError",
    "UnsupportedFeatureError",
    "concise_error_message",
]
