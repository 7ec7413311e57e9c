"""Scalar expressions taken apart: their variables, what counts for them, operators put together again."""

from __future__ import annotations

from typing import Any

from ...arith.compare import ESTABLISHES
from ...arith.fold import fold_const
from ...arith.structure import is_integer, operands, scalar_dtype
from ...ir import expr as x
from ...ir.expr import ConstBool, ConstFloat, ConstInt, IterArg, Var

CONSTANTS = frozenset((ConstInt, ConstFloat, ConstBool))
VARIABLES = frozenset((Var, IterArg))
OPERATORS = frozenset((*x.BINARY_CLASSES, *x.UNARY_CLASSES))
# Rules for sums and products match shapes only; for the others it counts what is known of the operands.
SHAPE_ONLY = frozenset((x.Add, x.Sub, x.Mul))
_BLIND = frozenset((*SHAPE_ONLY, x.Neg, x.Cast))


def nodes_of(e: Any) -> list[Any]:
    """The operators and leaves of an expression; what is in a call does not count."""
    if type(e) not in OPERATORS:
        return [e]
    seen = {e: None}
    stack = [e]
    while stack:
        for part in operands(stack.pop()):
            if part not in seen:
                seen[part] = None
                if type(part) in OPERATORS:
                    stack.append(part)
    return list(seen)


def variables_of(e: Any) -> list[Any]:
    """The variables among the leaves of an expression."""
    return [node for node in nodes_of(e) if type(node) in VARIABLES]


def is_informed(e: Any) -> bool:
    """Whether what is known of the operands may count for an expression."""
    return any(type(node) in OPERATORS and type(node) not in _BLIND for node in nodes_of(e))


def is_simple(condition: Any) -> bool:
    """Whether a condition compares variables and constants up to constant distances: facts decide that alone."""
    for node in nodes_of(condition):
        cls = type(node)
        if cls not in OPERATORS or cls in x.COMPARISONS:
            continue
        if cls is not x.Add and cls is not x.Sub:
            return False
        if type(node.right) is not ConstInt:
            return False
    return True


def against_constant(condition: Any) -> bool:
    if type(condition) not in ESTABLISHES or not (is_integer(condition.left) and is_integer(condition.right)):
        return False
    return type(condition.left) is ConstInt or type(condition.right) is ConstInt


def rebuilt(e: Any, parts: list[Any]) -> Any:
    if len(parts) == 2:
        left, right = parts
        return e if left is e.left and right is e.right else e.replace(left=left, right=right)
    return e if parts[0] is e.operand else e.replace(operand=parts[0])


def folded(e: Any) -> Any:
    """The constant (or operand) that an operator comes to, if it has the operator's dtype."""
    found = fold_const(e)
    return found if found is not None and scalar_dtype(found) is e.type.dtype else None


__all__ = ["CONSTANTS", "OPERATORS", "SHAPE_ONLY", "VARIABLES", "nodes_of", "variables_of"]
