"""OutParamNotShadowed: an Out or InOut parameter is not bound to a new tensor, which the caller would never see."""

from __future__ import annotations

from ..ir.enums import ParamDirection
from ..ir.program import Function
from ..ir.stmt import AssignStmt
from .call_sites import call_sites
from .properties import IRProperty
from .registry import Findings, verifies

_CREATES = ("tensor.create", "tensor.full")


@verifies(IRProperty.OutParamNotShadowed)
def check(function: Function, findings: Findings) -> None:
    """Code 501 for each assignment of ``tensor.create`` or ``tensor.full`` to such a parameter."""
    created = call_sites(function).of_ops(_CREATES)
    if not created:
        return
    directions = dict(zip(function.params, function.param_directions, strict=True))
    for site in created:
        if site.code is not None or type(site.stmt) is not AssignStmt:
            continue
        direction = directions.get(site.stmt.var, ParamDirection.In)
        if direction is not ParamDirection.In:
            text = f"{direction.name} parameter '{site.stmt.var.name_hint}' of function '{function.name}'"
            hint = "the caller's buffer would not be written; store into the parameter, or use another name"
            findings.error(501, f"{text} cannot be reassigned via {site.call.op.name}: {hint}", site.stmt.span)
