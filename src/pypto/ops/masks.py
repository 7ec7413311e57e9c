"""Mask patterns of gather and scatter: which columns of each group of four (or two) a pattern selects."""

from __future__ import annotations

from typing import Any

from ..ir.expr import Expr, index_const
from ..ir.location import current_span
from ..ir.scalar import floordiv
from .windows import add, number

# pattern -> (group size, position in the group)
PATTERNS: dict[int, tuple[int, int]] = {1: (2, 0), 2: (2, 1), 3: (4, 0), 4: (4, 1), 5: (4, 2), 6: (4, 3), 7: (1, 0)}


def pattern_of(name: str, pattern: Any) -> tuple[int, int]:
    """Group size and position of a ``mask_pattern`` kwarg."""
    found = PATTERNS.get(pattern)
    if found is None:
        raise ValueError(f"{name} requires mask_pattern in 1..7, but got {pattern}")
    return found


def selected_count(extent: Expr, group: int, position: int) -> Expr:
    """How many of the first ``extent`` columns a pattern selects."""
    shift = group - 1 - position
    value = number(extent)
    if value is not None:
        return index_const((value + shift) // group)
    if group == 1:
        return extent
    return floordiv(add(extent, index_const(shift)), index_const(group), current_span())
