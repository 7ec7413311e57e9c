"""Constant integers, and how often a loop with constant bounds runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..ir.expr import ConstInt, Neg


def constant_int(e: Any) -> int | None:
    """The value of an integer constant or of the negation of one; None for anything else."""
    if type(e) is ConstInt:
        return int(e.value)
    if type(e) is Neg and type(e.operand) is ConstInt:
        return -int(e.operand.value)
    return None


def constant_ints(items: Iterable[Any]) -> tuple[int, ...] | None:
    """The values of integer constants; None if one of them is none."""
    found = tuple(constant_int(item) for item in items)
    return None if None in found else found  # type: ignore[return-value]


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


__all__ = ["constant_int", "constant_ints", "static_trip_count", "trip_count"]
