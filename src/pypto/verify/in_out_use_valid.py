"""InOutUseValid: after a launch that writes ``x``, the old ``x`` is not read; the result of the launch is the value.

Calls and submits alike. Bodies of Group and Spmd functions are not looked at. See :mod:`pypto.analysis.inout_use`.
"""

from __future__ import annotations

from ..analysis.inout_use import StaleRead, stale_reads
from ..ir.enums import FunctionType
from ..ir.program import Function, Program
from .call_sites import call_sites
from .properties import IRProperty
from .registry import Findings, verifies

RULE = "InOutUseDiscipline"
_WRAPPERS = (FunctionType.Group, FunctionType.Spmd)


@verifies(IRProperty.InOutUseValid, RULE, reads_callees=True)
def check_inout_use(function: Function, findings: Findings, program: Program) -> None:
    """Report each read of a variable that a launch before it wrote."""
    if function.func_type in _WRAPPERS or not call_sites(function).functions:
        return
    for read in stale_reads(function.body, program):
        findings.error(0, f"{describe(read)}, in function '{function.name}'", read.stmt.span)


def describe(read: StaleRead) -> str:
    """A stale read as a message."""
    launch = read.launch
    callee = launch.callee
    name = read.var.name_hint
    evaluated = getattr(read.stmt, "value", None) or getattr(read.stmt, "expr", None)
    again = " in the next iteration" if evaluated is launch.call else ""
    text = (
        f"variable '{name}' was passed as InOut/Out at {launch.call.span} (argument {launch.argument} of "
        f"'{callee.name}', {launch.direction.name}) and is read{again}; "
        "read the post-call return value instead of the pre-call variable"
    )
    if not callee.return_types:
        text += f" ('{callee.name}' returns nothing: let it return the parameter)"
    return text
