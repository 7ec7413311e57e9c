"""Compatibility: the names of the former native layer. No logic; everything is re-exported from where it lives."""

from __future__ import annotations

from .._exports import lazy_exports
from ..diag.errors import Error, InternalError, check, internal_check, internal_check_span
from ..diag.logging import (
    LogLevel,
    get_log_level,
    log_debug,
    log_error,
    log_event,
    log_fatal,
    log_info,
    log_warn,
    set_log_level,
)
from ..ir.dtype import DataType

__getattr__, __dir__ = lazy_exports(__name__, {}, ("arith", "backend", "codegen", "ir", "passes", "testing"))

__all__ = [
    "DataType",
    "Error",
    "InternalError",
    "LogLevel",
    "check",
    "get_log_level",
    "internal_check",
    "internal_check_span",
    "log_debug",
    "log_error",
    "log_event",
    "log_fatal",
    "log_info",
    "log_warn",
    "set_log_level",
]
