"""SplitIncoreOrch: no InCore scope is left outside kernels."""

from __future__ import annotations

from ..ir.enums import FunctionType, is_incore_type
from ..ir.program import Function
from ..ir.stmt import InCoreScopeStmt
from .call_sites import call_sites
from .inventory import inventory
from .properties import IRProperty
from .registry import Findings, verifies

# What orchestration may do to tensors itself: it makes and views them, and touches single elements.
_METADATA = frozenset(
    f"tensor.{name}" for name in "create read write slice assemble dim reshape reinterpret_view transpose view".split()
)


@verifies(IRProperty.SplitIncoreOrch)
def check(function: Function, findings: Findings) -> None:
    """Code 0 (error): an InCore scope. Code 1 (warning): tensor compute in an Orchestration function."""
    if is_incore_type(function.func_type):
        return
    for scope, _region in inventory(function).of(InCoreScopeStmt):
        text = f"InCore ScopeStmt is left in {function.func_type.name} function '{function.name}'"
        findings.error(0, f"{text}: it should have been outlined", scope.span)
    if function.func_type is FunctionType.Orchestration:
        for name, sites in call_sites(function).ops.items():
            if name.startswith("tensor.") and name not in _METADATA:
                for site in sites:
                    text = f"compute op '{name}' in Orchestration function '{function.name}'"
                    findings.warning(1, f"{text}: put it into a kernel scope (pl.at)", site.call.span)
