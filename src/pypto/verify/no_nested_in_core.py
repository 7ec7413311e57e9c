"""NoNestedInCore: no InCore scope stands inside another."""

from __future__ import annotations

from ..ir.program import Function
from ..ir.stmt import InCoreScopeStmt
from .inventory import inventory
from .properties import IRProperty
from .registry import Findings, verifies


@verifies(IRProperty.NoNestedInCore)
def check(function: Function, findings: Findings) -> None:
    """Code 501: a kernel can't launch a kernel."""
    for scope, region in inventory(function).of(InCoreScopeStmt):
        if region.incore is not None:
            names = " in ".join(f"'{s.name_hint}'" for s in (scope, region.incore) if s.name_hint)
            text = "Nested InCore scope detected" + (f": {names}" if names else "")
            hint = f"the outer one begins at {region.incore.span}"
            findings.error(501, f"{text} in function '{function.name}'; {hint}", scope.span)
