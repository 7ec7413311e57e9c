"""Diagnostics: the lowest room. What is wrong, where in the user's source, and how to mend it.

Imports nothing from the rest of the compiler, and is cheap to import: the diagnostic model, the catalogue of codes
and the rich renderer are loaded when first needed.
"""

from pypto.diag.concise import BUG_CLASS_EXCEPTIONS, concise_error_message
from pypto.diag.errors import Error, InternalError, check, internal_check, internal_check_span
from pypto.diag.hook import install_excepthook
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
from pypto.diag.render import ErrorRenderer

__all__ = [
    "BUG_CLASS_EXCEPTIONS",
    "Error",
    "ErrorRenderer",
    "InternalError",
    "InvalidOperationError",
    "ParserError",
    "ParserSyntaxError",
    "ParserTypeError",
    "SSAViolationError",
    "ScopeIsolationError",
    "UndefinedVariableError",
    "UnsupportedFeatureError",
    "check",
    "concise_error_message",
    "install_excepthook",
    "internal_check",
    "internal_check_span",
]
