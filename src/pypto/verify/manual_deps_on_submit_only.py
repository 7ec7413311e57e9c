"""ManualDepsOnSubmitOnly: the dependencies that a user states live in ``Submit.deps``."""

from __future__ import annotations

from ..ir.expr import Submit
from ..ir.program import Function
from .call_sites import call_sites
from .properties import IRProperty
from .registry import Findings, verifies

_KEY = "manual_dep_edges"


@verifies(IRProperty.ManualDepsOnSubmitOnly)
def check(function: Function, findings: Findings) -> None:
    """Code 0: a function Call with ``manual_dep_edges``; code 1: a Submit with it. Ops such as a dummy task may."""
    for site in call_sites(function).functions:
        call = site.call
        if not call.attrs or _KEY not in call.attrs:
            continue
        which = f"of '{call.op.name}' in function '{function.name}' has attrs['{_KEY}']"
        if type(call) is Submit:
            findings.error(1, f"Submit {which}: dependencies live in Submit.deps", call.span)
        else:
            findings.error(0, f"Call {which}: only a Submit has dependencies, in Submit.deps", call.span)
