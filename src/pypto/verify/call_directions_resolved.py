"""CallDirectionsResolved: every launch says how each of its arguments takes part in the ordering of tasks."""

from __future__ import annotations

from typing import Any

from ..analysis.callees import parameter_index, promises_less
from ..ir.enums import ArgDirection, FunctionType, ParamDirection
from ..ir.program import Function, Program
from ..ir.type import TensorType
from .call_sites import call_sites
from .properties import IRProperty
from .registry import Findings, verifies

_KEY = "arg_directions"
_D = ArgDirection
ALLOWED: dict[ParamDirection, frozenset[ArgDirection]] = {
    ParamDirection.In: frozenset((_D.Input, _D.NoDep)),
    ParamDirection.InOut: frozenset((_D.InOut, _D.OutputExisting, _D.NoDep)),
    ParamDirection.Out: frozenset((_D.Output, _D.OutputExisting, _D.InOut, _D.NoDep)),
}


@verifies(IRProperty.CallDirectionsResolved, reads_callees=True)
def check(function: Function, findings: Findings, program: Program) -> None:
    """Code 0: no directions; 1: not one for each argument; 2: ``Scalar`` for a tensor, or another for a scalar; 3: a
    direction that the parameter does not allow; 4: a wrapper that says less than its inner calls do."""
    position = {param: i for i, param in enumerate(function.params)}
    wraps = function.func_type in (FunctionType.Group, FunctionType.Spmd)
    for site in call_sites(function).functions:
        call = site.call
        callee = program.get_function(call.op.name)
        if callee is None:
            continue  # OrchestrationReferencesResolved says so
        if wraps:
            _check_wrapper(function, call, callee, position, findings)
        _check_launch(function, call, callee, findings)


def _check_launch(function: Function, call: Any, callee: Function, findings: Findings) -> None:
    which = f"launch of '{callee.name}' in function '{function.name}'"
    given = call.attrs.get(_KEY)
    if not given:
        if call.args:
            findings.error(0, f"{which}: attrs['{_KEY}'] is missing/empty; run DeriveCallDirections", call.span)
        return
    if len(given) != len(call.args):
        findings.error(1, f"{which}: {len(given)} {_KEY} for {len(call.args)} arguments", call.span)
        return
    for i, (arg, direction) in enumerate(zip(call.args, given, strict=True)):
        tensor = isinstance(arg.type, TensorType)
        if tensor is (direction is _D.Scalar):
            expected = "a tensor's direction" if tensor else "Scalar"
            text = f"argument {i} of type {arg.type} has direction {direction.name}, expected {expected}"
            findings.error(2, f"{which}: {text}", call.span)
            continue
        index = parameter_index(callee.params, len(call.args), i)
        if not tensor or index is None:
            continue
        param = callee.param_directions[index]
        if direction not in ALLOWED[param]:
            text = f"argument {i} has direction {direction.name}, which parameter '{callee.params[index].name_hint}' "
            findings.error(3, f"{which}: {text}of direction {param.name} does not allow", call.span)


def _check_wrapper(
    function: Function, call: Any, callee: Function, position: dict[Any, int], findings: Findings
) -> None:
    for i, arg in enumerate(call.args):
        mine, inner = position.get(arg), parameter_index(callee.params, len(call.args), i)
        if mine is None or inner is None:
            continue
        declared, needed = function.param_directions[mine], callee.param_directions[inner]
        if promises_less(declared, needed):
            text = f"{function.func_type.name} function '{function.name}' has stale param_directions_: parameter "
            text += f"'{function.params[mine].name_hint}' is {declared.name}, '{callee.name}' takes it as {needed.name}"
            findings.error(4, text, call.span)


__all__ = ["ALLOWED"]
