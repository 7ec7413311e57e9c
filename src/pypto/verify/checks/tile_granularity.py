"""TileInnermostDimGranularity (PH001): transfers whose rows are short for the memory system of the target."""

from __future__ import annotations

import math
from typing import Any

from ...ir.program import Function
from ...ir.type import TileType, const_extent
from ...target.model import Target
from ...target.selection import selected_target
from ..call_sites import call_sites
from .registry import DiagnosticCheck, Note, hints

# op -> where the tile is: None: the result, else the operand.
_TRANSFERS: dict[str, int | None] = {"tile.load": None, "tile.store": 0}


@hints(DiagnosticCheck.TileInnermostDimGranularity, "TileInnermostDimGranularity", 1, "PH001")
def find_short_rows(function: Function) -> list[Note]:
    """The loads and stores between global memory and tiles whose innermost extent is below what the target recommends.

    Nothing without a selected target, and nothing about extents that are not constants.
    """
    target = selected_target()
    if target is None:
        return []
    found = []
    for site in call_sites(function).of_ops(_TRANSFERS):
        operand = _TRANSFERS[site.call.op.name]
        kind = site.call.type if operand is None else site.call.args[operand].type
        message = _short_row(site.call.op.name, kind, target)
        if message is not None:
            found.append(Note(message, site.call.span if site.call.span.is_valid() else site.stmt.span))
    return found


def _short_row(op: str, kind: Any, target: Target) -> str | None:
    if not isinstance(kind, TileType) or not kind.shape:
        return None
    innermost = const_extent(kind.shape[-1])
    if innermost is None:
        return None
    size = _bytes(innermost, kind)
    if size >= target.recommended_innermost:
        return None
    memory = kind.memory_space.name if kind.memory_space is not None else "unset"
    return (
        f"{op} has innermost dim = {size}B (tile {kind.dtype}[{innermost}], target_memory={memory});{_moved(kind)} "
        f"recommended >= {target.recommended_innermost}B for backend {target.arch} (L2 cache line = "
        f"{target.l2_cache_line}B). Consider increasing tile shape on the innermost axis."
    )


def _moved(kind: TileType) -> str:
    """How much is moved: the valid region by rows."""
    valid = [const_extent(e) for e in kind.valid_extents]
    if any(extent is None for extent in valid):
        return ""
    *outer, innermost = [extent for extent in valid if extent is not None]
    rows, size = math.prod(outer), _bytes(innermost, kind)
    return f" moves {rows * size}B as {rows} x {size}B rows;"


def _bytes(extent: int, kind: TileType) -> int:
    return (extent * kind.dtype.get_bit() + 7) // 8
