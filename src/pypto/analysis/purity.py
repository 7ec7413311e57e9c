"""Whether evaluating an expression does more than give a value."""

from __future__ import annotations

from typing import Any

from ..ir.expr import Call, Expr, GlobalVar, Submit
from ..ir.tree import walk
from ..ops.registry import REGISTRY


def is_pure_call(call: Any) -> bool:
    """Whether a call only computes its result. A launch does more, and so may an op that is not known."""
    if type(call) is Submit or type(call.op) is GlobalVar:
        return False
    definition = REGISTRY.get(call.op.name)
    return definition is not None and definition.pure


def has_effects(e: Expr) -> bool:
    """Whether an expression contains a launch, or a call that changes something."""
    return any(isinstance(node, (Call, Submit)) and not is_pure_call(node) for node in walk(e))


__all__ = ["has_effects", "is_pure_call"]
