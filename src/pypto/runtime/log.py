"""The run-time logger: the Python logger ``pypto.runtime``."""

from __future__ import annotations

import logging
import os
import warnings

from ..diag.logging import LogLevel, set_log_level

logger = logging.getLogger("pypto.runtime")

TIMING = 25
_LEVELS = {"debug": 10, "info": 20, "timing": TIMING, "warn": 30, "warning": 30, "error": 40, "null": 60}
_COMPILER = ((10, LogLevel.DEBUG), (20, LogLevel.INFO), (30, LogLevel.WARN), (40, LogLevel.ERROR))


def configure_log(level: int | str, *, sync_pypto: bool = False) -> None:
    """Set the level of the run-time log: a number or a name. ``sync_pypto``: the compiler's log follows."""
    number = _level(level)
    logger.setLevel(number)
    if sync_pypto:
        set_log_level(next((own for limit, own in _COMPILER if number <= limit), LogLevel.NONE))


def log_level() -> int:
    """The level of the run-time log."""
    return logger.level


def _level(level: int | str) -> int:
    if isinstance(level, str):
        found = _LEVELS.get(level.lower())
        if found is None:
            raise ValueError(f"Unknown log level '{level}'. Expected one of {', '.join(_LEVELS)}, or an int")
        return found
    if isinstance(level, bool) or not isinstance(level, int):
        raise TypeError(f"a log level is an int or a name, got {type(level).__name__}")
    return level


def _apply_environment() -> None:
    logging.addLevelName(TIMING, "TIMING")
    logger.setLevel(TIMING)
    wanted = os.environ.get("PYPTO_RUNTIME_LOG")
    if not wanted:
        return
    try:
        configure_log(
            int(wanted) if wanted.isdigit() else wanted, sync_pypto=os.environ.get("PYPTO_RUNTIME_LOG_SYNC") == "1"
        )
    except ValueError as error:
        warnings.warn(f"PYPTO_RUNTIME_LOG is ignored: {error}", RuntimeWarning, stacklevel=2)


_apply_environment()

__all__ = ["configure_log", "log_level", "logger"]
