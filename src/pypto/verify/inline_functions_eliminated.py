"""InlineFunctionsEliminated: no Inline function is left, no call to one, and none to a function that is not there."""

from __future__ import annotations

from ..ir.enums import FunctionType
from ..ir.program import Function, Program
from .call_sites import call_sites
from .properties import IRProperty
from .registry import Findings, verifies

# InlineFunctions leaves a call that it can't expand, and removes the function.
_INLINE = "an Inline function is called as a statement, or as the whole value of an assignment or of a return"


@verifies(IRProperty.InlineFunctionsEliminated, reads_callees=True)
def check(function: Function, findings: Findings, program: Program) -> None:
    """Code 0: an Inline function; 1: a call or submit of one; 2: of a function that the program does not have."""
    if function.func_type is FunctionType.Inline:
        findings.error(0, f"Inline function '{function.name}' is left in the program", function.span)
    for name, sites in call_sites(function).callees.items():
        callee = program.get_function(name)
        if callee is not None and callee.func_type is not FunctionType.Inline:
            continue
        for site in sites:
            kind, where = type(site.call).__name__, f"in function '{function.name}'"
            if callee is None:
                text = f"Dangling {kind} to function '{name}' {where}: the program has no such function; {_INLINE}"
                findings.error(2, text, site.call.span)
            else:
                findings.error(1, f"{kind} to Inline function '{name}' is left {where}", site.call.span)
