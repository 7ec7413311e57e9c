"""HierarchyOutlined: no hierarchy scope is left in Opaque functions."""

from __future__ import annotations

from ..ir.enums import FunctionType
from ..ir.program import Function
from ..ir.stmt import HierarchyScopeStmt
from .inventory import inventory
from .properties import IRProperty
from .registry import Findings, verifies


@verifies(IRProperty.HierarchyOutlined)
def check(function: Function, findings: Findings) -> None:
    """Code 0 for each hierarchy scope."""
    if function.func_type is not FunctionType.Opaque:
        return
    for scope, _region in inventory(function).of(HierarchyScopeStmt):
        text = f"Hierarchy ScopeStmt (level {scope.level.name}) is left in function '{function.name}'"
        findings.error(0, f"{text}: it should have been outlined", scope.span)
