"""OrchestrationReferencesResolved: what orchestration calls or submits is a function of the program."""

from __future__ import annotations

from ..ir.enums import is_incore_type
from ..ir.program import Function, Program
from .call_sites import call_sites
from .properties import IRProperty
from .registry import Findings, verifies


@verifies(IRProperty.OrchestrationReferencesResolved, reads_callees=True)
def check(function: Function, findings: Findings, program: Program) -> None:
    """Code 0. Every function but kernels is looked at: wrappers and graphs launch, too."""
    if is_incore_type(function.func_type):
        return
    for name, sites in call_sites(function).callees.items():
        if program.get_function(name) is not None:
            continue
        for site in sites:
            text = f"{function.func_type.name} function '{function.name}' references undefined function '{name}'"
            findings.error(0, f"{text} in a {type(site.call).__name__}", site.call.span)
