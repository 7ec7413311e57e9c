"""AssignTypeSymmetry: both sides of an assignment have equal types."""

from __future__ import annotations

from typing import Any

from ..ir.program import Function
from ..ir.stmt import AssignStmt
from ..ir.type import TupleType, UnknownType
from .inventory import inventory
from .properties import IRProperty
from .registry import Findings, verifies


@verifies(IRProperty.AssignTypeSymmetry)
def check(function: Function, findings: Findings) -> None:
    """Code 1. Memory references are no part of a type's equality; a type that is not known agrees with any."""
    for stmt, _region in inventory(function).of(AssignStmt):
        left, right = stmt.var.type, stmt.value.type
        if left is not right and not _agree(left, right):
            text = f"'{stmt.var.name_hint}' in function '{function.name}' has type {left}"
            findings.error(1, f"{text}, but its value has type {right}", stmt.span)


def _agree(a: Any, b: Any) -> bool:
    if type(a) is UnknownType or type(b) is UnknownType:
        return True
    if type(a) is TupleType and type(b) is TupleType:
        return len(a.types) == len(b.types) and all(map(_agree, a.types, b.types))
    return bool(a == b)
