"""PipelineResolved: no Pipeline loop is left."""

from __future__ import annotations

from ..ir.enums import ForKind
from ..ir.program import Function
from ..ir.stmt import ForStmt
from .inventory import inventory
from .properties import IRProperty
from .registry import Findings, verifies


@verifies(IRProperty.PipelineResolved)
def check(function: Function, findings: Findings) -> None:
    """Code 0 for each loop of kind Pipeline."""
    for loop, _region in inventory(function).of(ForStmt):
        if loop.kind is ForKind.Pipeline:
            which = f"the loop over '{loop.loop_var.name_hint}' in function '{function.name}'"
            findings.error(0, f"ForKind::Pipeline survived past CanonicalizeIOOrder: {which}", loop.span)
