"""Constant integers, and how often a loop with constant bounds runs."""

from __future__ import annotations

from typing import Any

from ..ir.expr import ConstInt, Neg


def constant_int(e: Any) -> int | None:
    """The value of an integer constant or of the negation of one; None for anything else."""
    if type(e) is ConstInt:
        return int(e.value)
    if type(e) is Neg and type(e.operand) is ConstInt:
        return -int(e.operand.value)
    return None


def static_trip_count(start: Any, stop: Any, step: Any) -> int | None:
    """The number of trips of a counted loop; None if a bound is not constant. A step of 0 gives no trips."""
    bounds = [constant_int(e) for e in (start, stop, step)]
    first, end, by = bounds
    if first is None or end is None or by is None:
        return None
    return len(range(first, end, by)) if by else 0


__all__ = ["constant_int", "static_trip_count"]
