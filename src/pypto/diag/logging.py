"""The compiler's own log: levelled lines on stderr."""

from __future__ import annotations

import datetime
import enum
import os
import sys
import threading


class LogLevel(enum.IntEnum):
    """A message passes if its level is at least the threshold; ``NONE`` as a threshold silences everything."""

    DEBUG = 0
    INFO = 1
    WARN = 2
    ERROR = 3
    FATAL = 4
    EVENT = 5
    NONE = 6


_LETTERS = "DIWEFV"
_VARIABLE = "PYPTO_LOG_LEVEL"
_DEFAULT = LogLevel.INFO

_chosen: LogLevel | None = None
_thread = threading.local()
_write_lock = threading.Lock()
_complained_about: set[str] = set()


def set_log_level(level: int) -> None:
    """Set the global threshold; it wins over ``PYPTO_LOG_LEVEL``."""
    global _chosen
    _chosen = LogLevel(level)


def get_log_level() -> LogLevel:
    """The global threshold. Thread overrides don't count, so that it pairs with :func:`set_log_level`."""
    return _from_environment() if _chosen is None else _chosen


def log_debug(msg: str) -> None:
    """Log at DEBUG."""
    _log(LogLevel.DEBUG, msg)


def log_info(msg: str) -> None:
    """Log at INFO."""
    _log(LogLevel.INFO, msg)


def log_warn(msg: str) -> None:
    """Log at WARN."""
    _log(LogLevel.WARN, msg)


def log_error(msg: str) -> None:
    """Log at ERROR."""
    _log(LogLevel.ERROR, msg)


def log_fatal(msg: str) -> None:
    """Log at FATAL; the process goes on."""
    _log(LogLevel.FATAL, msg)


def log_event(msg: str) -> None:
    """Log at EVENT, which every threshold but ``NONE`` lets pass."""
    _log(LogLevel.EVENT, msg)


def _set_thread_log_level(level: int) -> None:
    """Override the threshold for the calling thread."""
    _thread.level = LogLevel(level)


def _clear_thread_log_level() -> None:
    """End the calling thread's override."""
    _thread.level = None


def _log(level: LogLevel, msg: str) -> None:
    override: LogLevel | None = getattr(_thread, "level", None)
    if level >= (get_log_level() if override is None else override):
        _write(level, msg)


def _write(level: LogLevel, msg: str) -> None:
    now = datetime.datetime.now()
    line = f"{now:%Y-%m-%d %H:%M:%S}.{now.microsecond // 1000:03d} {_LETTERS[level]} | {msg}\n"
    with _write_lock:  # one write a message, so that threads don't tear each other's lines
        if sys.stderr is not None:
            sys.stderr.write(line)
            sys.stderr.flush()


def _from_environment() -> LogLevel:
    """The level that the environment names, read at each use so that it can be changed while running."""
    name = os.environ.get(_VARIABLE, "").strip()
    if not name:
        return _DEFAULT
    level = LogLevel.__members__.get(name.upper())
    if level is not None:
        return level
    if name not in _complained_about:
        _complained_about.add(name)
        names = ", ".join(member.name.lower() for member in LogLevel)
        _write(LogLevel.WARN, f"{_VARIABLE}={name!r} is ignored; the levels are {names}")
    return _DEFAULT
