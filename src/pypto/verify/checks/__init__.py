"""Checks: warnings and performance hints, one file each. Importing this package registers them all."""

from __future__ import annotations

from . import out_params, tile_granularity, unused  # noqa: F401 (they register themselves)
from .output import emit
from .registry import (
    DiagnosticCheck,
    DiagnosticCheckRegistry,
    DiagnosticCheckSet,
    DiagnosticPhase,
    check_set,
    default_disabled_checks,
    get_default_diagnostic_phase,
)

__all__ = [
    "DiagnosticCheck",
    "DiagnosticCheckRegistry",
    "DiagnosticCheckSet",
    "DiagnosticPhase",
    "check_set",
    "default_disabled_checks",
    "emit",
    "get_default_diagnostic_phase",
]
