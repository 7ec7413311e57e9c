"""TileTypeCoherence: a tile view that equals the implicit one is stored as absent."""

from __future__ import annotations

from typing import Any

from ..ir.program import Function
from ..ir.span import Span
from ..ir.stmt import AssignStmt, ForStmt, IfStmt, WhileStmt
from ..ir.type import TileType, TupleType
from ..ir.views import canonical_tile_view
from .inventory import inventory
from .properties import IRProperty
from .registry import Findings, verifies


@verifies(IRProperty.TileTypeCoherence)
def check(function: Function, findings: Findings) -> None:
    """Code 1 for each variable, value and result whose type stores the implicit view."""

    def look_at(what: str, name: str, kind: Any, span: Span) -> None:
        if _is_implicit(kind):
            text = f"implicit-but-present tile_view in the type of {what}'{name}' in function '{function.name}'"
            findings.error(1, f"{text}: it equals the implicit view and must be absent", span)

    for index, kind in enumerate(function.return_types):
        look_at("result ", str(index), kind, function.span)
    for var in function.params:
        look_at("parameter ", var.name_hint, var.type, var.span)
    placed = inventory(function)
    for stmt, _region in placed.of(AssignStmt):
        var, value = stmt.var, stmt.value
        kind = var.type
        if type(kind) in _HOLDERS:
            look_at("", var.name_hint, kind, stmt.span)
        if value.type is not kind and type(value.type) in _HOLDERS:
            look_at("the value of ", var.name_hint, value.type, stmt.span)
    for stmt, _region in placed.of(ForStmt, WhileStmt, IfStmt):
        carried = stmt.return_vars if type(stmt) is IfStmt else [*stmt.iter_args, *stmt.return_vars]
        for var in carried:
            look_at("", var.name_hint, var.type, stmt.span)


_HOLDERS = frozenset((TileType, TupleType))


def _is_implicit(kind: Any) -> bool:
    if type(kind) is TupleType:
        return any(map(_is_implicit, kind.types))
    view = kind.tile_view if type(kind) is TileType else None
    return view is not None and canonical_tile_view(kind.shape, view, kind.memory_space) is None
