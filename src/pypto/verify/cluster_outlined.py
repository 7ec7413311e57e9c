"""ClusterOutlined: no cluster scope and no spmd scope is left outside Group and Spmd functions."""

from __future__ import annotations

from ..ir.enums import FunctionType
from ..ir.program import Function
from ..ir.stmt import ClusterScopeStmt, SpmdScopeStmt
from .inventory import inventory
from .properties import IRProperty
from .registry import Findings, verifies

_WRAPPERS = (FunctionType.Group, FunctionType.Spmd)


@verifies(IRProperty.ClusterOutlined)
def check(function: Function, findings: Findings) -> None:
    """Code 0 for each such scope."""
    if function.func_type in _WRAPPERS:
        return
    for scope, _region in inventory(function).of(ClusterScopeStmt, SpmdScopeStmt):
        text = f"{scope.scope_kind.name} ScopeStmt is left in {function.func_type.name} function '{function.name}'"
        findings.error(0, f"{text}: it should have been outlined", scope.span)
