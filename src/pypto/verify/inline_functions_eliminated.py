"""InlineFunctionsEliminated: no Inline function is left, no call to one, and no call to a function that is not there."""

from __future__ import annotations

from ..ir.enums import FunctionType
from ..ir.program import Function, Program
from .call_sites import call_sites
from .properties import IRProperty
from .registry import Findings, verifies


@verifies(IRProperty.InlineFunctionsEliminated, reads_callees=True)
def check(function: Function, findings: Findings, program: Program) -> None:
    """Code 0: an Inline function; 1: a call or submit of one; 2: of a function that the program does not have."""
    if function.func_type is FunctionType.Inline:
        findings.error(0, f"Inline function '{function.name}' is left in the program", function.span)
    for site in call_sites(function).functions:
        call = site.call
        callee = program.get_function(call.op.name)
        kind = type(call).__name__
        if callee is None:
            text = f"Dangling {kind} to function '{call.op.name}' in function '{function.name}'"
            findings.error(2, f"{text}: the program has no such function", call.span)
        elif callee.func_type is FunctionType.Inline:
            text = f"{kind} to Inline function '{call.op.name}' is left in function '{function.name}'"
            findings.error(1, text, call.span)
