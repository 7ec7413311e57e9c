"""RuntimeScopesMaterialized: the scopes of the task runtime are statements of the program, nested as it allows."""

from __future__ import annotations

from ..analysis.task_marks import is_compiler_owned
from ..ir.enums import FunctionType
from ..ir.program import Function
from ..ir.stmt import RuntimeScopeStmt
from .inventory import Region, inventory
from .properties import IRProperty
from .registry import Findings, verifies


@verifies(IRProperty.RuntimeScopesMaterialized)
def check(function: Function, findings: Findings) -> None:
    """Of Orchestration functions. Code 0: scopes are still to be placed. Code 1: an AUTO scope in a MANUAL one.
    Code 2: a MANUAL scope in a MANUAL one of the user."""
    if function.func_type is not FunctionType.Orchestration:
        return
    where = f"in Orchestration function '{function.name}'"
    if function.attrs.get("auto_scope", True):
        text = f"Orchestration function '{function.name}' still has auto_scope=True"
        findings.error(0, f"{text}: run MaterializeRuntimeScopes before orchestration codegen", function.span)
    for scope, region in inventory(function).of(RuntimeScopeStmt):
        outer = _manual_around(region)
        if outer is None:
            continue
        if not scope.manual:
            text = f"an AUTO scope is inside the MANUAL scope at {outer.span}, {where}"
            findings.error(1, f"{text}: the runtime allows none there", scope.span)
        elif not is_compiler_owned(outer):
            text = f"a MANUAL scope is inside the MANUAL scope at {outer.span}, {where}"
            findings.error(2, f"{text}: what is inside is MANUAL already", scope.span)


def _manual_around(region: Region | None) -> RuntimeScopeStmt | None:
    """The nearest MANUAL scope around."""
    while region is not None:
        if type(region.owner) is RuntimeScopeStmt and region.owner.manual:
            return region.owner
        region = region.parent
    return None
