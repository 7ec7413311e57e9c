"""TensorViewCanonical: the views of tensor types have explicit strides in canonical form.

Code 1. The registered verifier is strict: a view without strides is an error. The weak form, for programs before
strides are made explicit, lets it pass; see :func:`verify_tensor_view_canonical`.
"""

from __future__ import annotations

from typing import Any

from ..ir.expr import Expr
from ..ir.program import Function, Program
from ..ir.tensor_view_semantics import check_canonical_view
from ..ir.traversal import walk
from ..ir.type import TensorType, TupleType, Type
from .diagnostics import Diagnostic
from .properties import IRProperty
from .registry import Findings, verifies

_CODE = 1


@verifies(IRProperty.TensorViewCanonical)
def verify_strict(function: Function, found: Findings) -> None:
    """Every view has strides."""
    _verify(function, found, require_materialized=True)


def verify_tensor_view_canonical(program: Program, require_materialized: bool = False) -> list[Diagnostic]:
    """The findings of a whole program; without ``require_materialized`` absent strides are fine."""
    found = Findings(IRProperty.TensorViewCanonical.name)
    for function in program.functions.values():
        _verify(function, found, require_materialized)
    return found.found


def _verify(function: Function, found: Findings, require_materialized: bool) -> None:
    seen: set[Any] = set()
    for kind in function.return_types:
        _look(kind, f"a result of function '{function.name}'", function.span, found, require_materialized)
    for node in [*function.params, *walk(function.body)]:
        # One finding a type object: a type is shared by all uses of a variable.
        if isinstance(node, Expr) and isinstance(node.type, (TensorType, TupleType)) and node.type not in seen:
            seen.add(node.type)
            name = getattr(node, "name_hint", None)
            what = f"'{name}'" if name else "a value"
            _look(node.type, f"{what} in function '{function.name}'", node.span, found, require_materialized)


def _look(kind: Type, what: str, span: Any, found: Findings, require_materialized: bool) -> None:
    if isinstance(kind, TupleType):
        for part in kind.types:
            _look(part, what, span, found, require_materialized)
        return
    if not isinstance(kind, TensorType) or kind.tensor_view is None:
        return
    view = kind.tensor_view
    if not view.stride and not require_materialized:
        return
    good, reason = check_canonical_view(kind.shape, view.stride, view.layout)
    if not good:
        found.error(_CODE, f"the view of {what} is not canonical: {reason}", span)


__all__ = ["verify_tensor_view_canonical"]
