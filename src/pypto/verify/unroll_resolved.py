"""UnrollResolved: no Unroll loop is left."""

from __future__ import annotations

from ..ir.enums import ForKind
from ..ir.program import Function
from ..ir.stmt import ForStmt
from .inventory import inventory
from .properties import IRProperty
from .registry import Findings, verifies


@verifies(IRProperty.UnrollResolved)
def check(function: Function, findings: Findings) -> None:
    """Code 0 for each loop of kind Unroll."""
    for loop, _region in inventory(function).of(ForStmt):
        if loop.kind is ForKind.Unroll:
            text = f"the loop over '{loop.loop_var.name_hint}' in function '{function.name}' has kind ForKind::Unroll"
            findings.error(0, f"{text}: it survived past UnrollLoops", loop.span)
