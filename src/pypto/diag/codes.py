"""Looking up error codes: the stable ``PT`` codes, and the older ``E`` codes that existing programs import."""

from __future__ import annotations

import enum


class ErrorCategory(enum.Enum):
    """The first two characters of an :class:`ErrorCode`."""

    SYNTAX = "E0"
    TYPE = "E1"
    NAME = "E2"
    OPERATION = "E3"


class ErrorCode(enum.Enum):
    """The older code table. Kept for programs that import it; the codes are not printed."""

    UNSUPPORTED_STATEMENT = "E001"
    INVALID_ASSIGNMENT = "E002"
    INVALID_LOOP_TARGET = "E003"
    INVALID_RANGE_USAGE = "E004"
    MISSING_RANGE_CALL = "E005"
    TUPLE_UNPACKING_ERROR = "E006"
    ITER_ARG_MISMATCH = "E007"
    MISSING_TYPE_ANNOTATION = "E100"
    INVALID_TYPE_ANNOTATION = "E101"
    UNSUPPORTED_TYPE = "E102"
    INCOMPLETE_TYPE = "E103"
    TENSOR_TYPE_ERROR = "E104"
    DTYPE_ERROR = "E105"
    UNDEFINED_VARIABLE = "E200"
    SSA_VIOLATION = "E201"
    SCOPE_ISOLATION_ERROR = "E202"
    UNKNOWN_OPERATION = "E300"
    UNSUPPORTED_OPERATION = "E301"
    INVALID_OPERATION_ARGS = "E302"
    UNSUPPORTED_BINARY_OP = "E303"
    UNSUPPORTED_UNARY_OP = "E304"
    UNSUPPORTED_COMPARISON = "E305"


def get_error_code(exception_class: type[BaseException]) -> ErrorCode | None:
    """The older code of a parser exception class, which the class itself states; ``None`` for any other class."""
    code = getattr(exception_class, "legacy_code", None)
    return code if isinstance(code, ErrorCode) else None


def find_code(exception: str, message: str) -> str | None:
    """The code whose key phrase occurs in a message of that exception class; the longest phrase decides.

    Key phrases are part of the language's contract (users search for them), so they identify an error reliably.
    """
    from pypto.diag.catalogue import PHRASES

    best, best_length = None, 0
    for phrase, code in PHRASES.get(exception, ()):
        if len(phrase) > best_length and phrase in message:
            best, best_length = code, len(phrase)
    return best


def explain(code: str) -> str:
    """The explanation of a code as text: what it means and how to mend it. ``KeyError`` for an unknown code."""
    from pypto.diag.catalogue import CODES

    info = CODES[code.upper()]
    return f"{info.code}: {info.title} ({info.exception})\n\n{info.explanation}\n\nFix: {info.fix}\n"
