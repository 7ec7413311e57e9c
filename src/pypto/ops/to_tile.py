"""How tensor ops become tile ops: renames, and rules that build the tile form. Read by the tensor-to-tile conversion.

A tensor op whose tile twin has the same name is renamed unless a rule says otherwise; what needs more than a rename has
a rule in the pass or one registered by the user. A user's rule replaces the built-in one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ir.call import Call
from ..ir.expr import Expr, Var
from ..ir.location import current_span
from ..ir.span import Span
from ..ir.stmt import AssignStmt, Stmt
from .registry import REGISTRY, lookup

Rule = Callable[["ConversionContext", Sequence[Expr], list[tuple[str, Any]], Span], Expr]


class ConversionContext:
    """What a conversion rule adds in front of the statement that it converts."""

    def __init__(self, span: Span | None = None) -> None:
        self._span = span
        self._stmts: list[Stmt] = []

    @property
    def stmts(self) -> list[Stmt]:
        """The statements added so far, in order."""
        return list(self._stmts)

    def let(self, name: str, value: Expr) -> Var:
        """Bind ``value`` to a new variable; returns it."""
        span = current_span() if self._span is None else self._span
        var = Var(name, value.type, span)
        self._stmts.append(AssignStmt(var, value, span))
        return var

    def emit(self, stmt: Stmt) -> None:
        """Add a statement."""
        if not isinstance(stmt, Stmt):
            raise TypeError(f"ConversionContext.emit expects a statement, got {type(stmt).__name__}")
        self._stmts.append(stmt)


_RENAMES: dict[str, str] = {}
_RULES: dict[str, Rule] = {}


def register_op_conversion(from_op: str, to_op: str) -> None:
    """Convert calls of ``from_op`` to calls of ``to_op`` with the same operands; ``ValueError`` for unknown ops."""
    lookup(from_op)
    lookup(to_op)
    _RULES.pop(from_op, None)
    _RENAMES[from_op] = to_op


def register_op_conversion_custom(from_op: str, func: Rule) -> None:
    """Convert calls of ``from_op`` by ``func(ctx, args, kwargs, span) -> Expr``; ``kwargs`` is a list of pairs."""
    lookup(from_op)
    if not callable(func):
        raise TypeError(f"a conversion rule must be callable, got {type(func).__name__}")
    _RENAMES.pop(from_op, None)
    _RULES[from_op] = func


def op_conversion(from_op: str) -> Callable[[Rule], Rule]:
    """Decorator form of :func:`register_op_conversion_custom`."""

    def decorate(func: Rule) -> Rule:
        register_op_conversion_custom(from_op, func)
        return func

    return decorate


def unregister_op_conversion(from_op: str) -> None:
    """Take a user's conversion back; the built-in one, if any, holds again."""
    _RENAMES.pop(from_op, None)
    _RULES.pop(from_op, None)


def renamed(op_name: str) -> str | None:
    """The tile op that a tensor op is renamed to, or None."""
    found = _RENAMES.get(op_name)
    if found is not None:
        return found
    namespace, _, name = op_name.partition(".")
    twin = f"tile.{name}"
    return twin if namespace == "tensor" and twin in REGISTRY else None


def has_op_conversion(op_name: str) -> bool:
    """Whether a tensor op has a tile form: by the user's registration or by a twin of the same name."""
    return op_name in _RULES or renamed(op_name) is not None


def convert(call: Call, context: ConversionContext) -> Expr | None:
    """The tile form of a call by the user's rule or rename; None where only the conversion pass can tell."""
    rule = _RULES.get(call.op.name)
    if rule is not None:
        return rule(context, call.args, list(call.kwargs.items()), call.span)
    target = _RENAMES.get(call.op.name)
    if target is None:
        return None
    from .registry import create_op_call

    return create_op_call(target, call.args, dict(call.kwargs), call.span)


__all__ = [
    "ConversionContext",
    "Rule",
    "convert",
    "has_op_conversion",
    "op_conversion",
    "register_op_conversion",
    "register_op_conversion_custom",
    "renamed",
    "unregister_op_conversion",
]
