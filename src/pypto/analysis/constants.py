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
    first, end, by = (constant_int(e) for e in (start, stop, step))
    if first is None or end is None or by is None:
        return None
    return trip_count(first, end, by)


def trip_count(start: int, stop: int, step: int) -> int:
    """The number of trips for these bounds, however many; 0 for a step of 0. (``len`` of a range has a limit.)"""
    if step == 0:
        return 0
    return max(0, (stop - start + step - (1 if step > 0 else -1)) // step)


__all__ = ["constant_int", "static_trip_count", "trip_count"]
