"""NoNestedCalls: a call is a whole right-hand side or a whole expression statement, never an operand."""

from __future__ import annotations

from ..ir.program import Function
from .call_sites import call_sites
from .codes import NestedCallErrorType
from .properties import IRProperty
from .registry import Findings, verifies

_WHERE = {
    NestedCallErrorType.CALL_IN_CALL_ARGS: "among the operands of another call, a tuple, a yield or a return",
    NestedCallErrorType.CALL_IN_IF_CONDITION: "as the condition of an if",
    NestedCallErrorType.CALL_IN_FOR_RANGE: "in the range of a for loop",
    NestedCallErrorType.CALL_IN_BINARY_EXPR: "as an operand of a binary expression",
    NestedCallErrorType.CALL_IN_UNARY_EXPR: "as the operand of a unary expression",
    NestedCallErrorType.CALL_IN_WHILE_CONDITION: "as the condition of a while loop",
}


@verifies(IRProperty.NoNestedCalls, "NoNestedCall")
def check(function: Function, findings: Findings) -> None:
    """Each nested call is a finding, the predicate of a launch apart. The code is that of what it is an operand of."""
    for site in call_sites(function).nested:
        assert site.code is not None
        text = f"call of '{site.call.op.name}' {_WHERE[site.code]} in function '{function.name}'"
        findings.error(site.code, f"{text}: assign it to a variable first", site.call.span)
