"""The parser's diagnostics under the path that existing programs import; the code is in ``pypto.diag``."""

from pypto.diag.codes import ErrorCategory, ErrorCode, get_error_code
from pypto.language.parser.diagnostics.exceptions import (
    BUG_CLASS_EXCEPTIONS,
    InvalidOperationError,
    ParserError,
    ParserSyntaxError,
    ParserTypeError,
    ScopeIsolationError,
    SSAViolationError,
    UndefinedVariableError,
    UnsupportedFeatureError,
    concise_error_message,
)
from pypto.language.parser.diagnostics.renderer import ErrorRenderer

__all__ = [
    "BUG_CLASS_EXCEPTIONS",
    "ErrorCategory",
    "ErrorCode",
    "ErrorRenderer",
    "InvalidOperationError",
    "ParserError",
    "ParserSyntaxError",
    "ParserTypeError",
    "SSAViolationError",
    "ScopeIsolationError",
    "UndefinedVariableError",
    "UnsupportedFeatureError",
    "concise_error_message",
    "get_error_code",
]
