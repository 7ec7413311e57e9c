"""Ops of programs that run on several ranks: type rules and surfaces."""

from __future__ import annotations

from . import builtin, collectives, host, point_to_point, signals, windows

__all__ = ["builtin", "collectives", "host", "point_to_point", "signals", "windows"]
