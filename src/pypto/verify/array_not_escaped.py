"""ArrayNotEscaped: no array in a signature, since arrays live on one core."""

from __future__ import annotations

from ..ir.program import Function
from ..ir.type import ArrayType, TupleType, Type
from .properties import IRProperty
from .registry import Findings, verifies


@verifies(IRProperty.ArrayNotEscaped)
def check(function: Function, findings: Findings) -> None:
    """Code 0 for each parameter and each result with an array in its type, also inside tuples."""
    for param in function.params:
        if _holds_array(param.type):
            text = f"parameter '{param.name_hint}' of function '{function.name}' has an Array type: {param.type}"
            findings.error(0, f"{text}; arrays can't leave the function that makes them", param.span)
    for index, kind in enumerate(function.return_types):
        if _holds_array(kind):
            text = f"result {index} of function '{function.name}' has an Array type: {kind}"
            findings.error(0, f"{text}; arrays can't leave the function that makes them", function.span)


def _holds_array(kind: Type) -> bool:
    if type(kind) is TupleType:
        return any(_holds_array(item) for item in kind.types)
    return type(kind) is ArrayType
