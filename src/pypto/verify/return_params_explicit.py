"""ReturnParamsExplicit: what a kernel or wrapper returns of its parameters is the parameter itself.

Then "which argument is result i" is a look at the return statement. Functions that are written elsewhere have none.
"""

from __future__ import annotations

from typing import Any

from ..analysis.callees import callees_of
from ..analysis.roots import Roots
from ..ir.enums import FunctionType
from ..ir.program import Function, Program
from ..ir.stmt import ReturnStmt
from ..ir.type import TensorType, TupleType
from .inventory import inventory
from .properties import IRProperty
from .registry import Findings, verifies

_CHECKED = frozenset((FunctionType.InCore, FunctionType.AIC, FunctionType.AIV, FunctionType.Group, FunctionType.Spmd))


@verifies(IRProperty.ReturnParamsExplicit, reads_returns=True)
def check(function: Function, findings: Findings, program: Program) -> None:
    """Code 0: results without a return statement; code 1: another name of a parameter is returned."""
    if function.func_type not in _CHECKED or "external_source" in function.attrs:
        return
    if not any(_has_tensor(kind) for kind in function.return_types):
        return
    returns = [stmt for stmt, _ in inventory(function).of(ReturnStmt)]
    if not returns:
        text = f"function '{function.name}' declares tensor return types but has no ReturnStmt"
        findings.error(0, text, function.span)
        return
    position = {param: i for i, param in enumerate(function.params)}
    if all(value in position for stmt in returns for value in stmt.value):
        return
    for stmt, roots in zip(returns, Roots(function.body, callees_of(program)).returns, strict=True):
        if len(stmt.value) != len(roots):
            _check_tuple(function, stmt, [position.get(root) for root in roots], findings)  # type: ignore[arg-type]
            continue
        for i, (value, root) in enumerate(zip(stmt.value, roots, strict=True)):
            if root is not None and root in position and value is not root and isinstance(value.type, TensorType):
                findings.error(1, _text(function, i, _name(value), position[root]), stmt.span)


def _check_tuple(function: Function, stmt: ReturnStmt, found: list[int | None], findings: Findings) -> None:
    """A whole tuple in the place of several results hides which parameters they are."""
    if len(found) != len(function.return_types):
        return
    for i, index in enumerate(found):
        if index is not None:
            findings.error(1, _text(function, i, f"{_name(stmt.value[0])}[{i}]", index), stmt.span)


def _text(function: Function, result: int, name: str, index: int) -> str:
    return (
        f"result {result} of function '{function.name}', '{name}', aliases param index {index}; param-writeback "
        f"returns must reference the param directly (return '{function.params[index].name_hint}')"
    )


def _name(value: Any) -> str:
    return getattr(value, "name_hint", None) or value.as_python(format=False)  # type: ignore[no-any-return]


def _has_tensor(kind: Any) -> bool:
    return isinstance(kind, TensorType) or (isinstance(kind, TupleType) and any(_has_tensor(k) for k in kind.types))
