"""Extents: the dims, strides and offsets in types. Ints become INDEX constants; comparison is structural."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .node import EMPTY_LIST, FrozenList

if TYPE_CHECKING:
    from .expr import Expr

Extent = Any  # int or Expr

expressions: Any = None  # the module of expression classes: it needs this one, and so binds itself when loaded


def bind_expressions(module: Any) -> None:
    """Called once by the module of expression classes."""
    global expressions
    expressions = module


def normalize_extents(extents: Sequence[Extent] | None) -> FrozenList[Expr]:
    """Extents as expressions: ints become (shared) INDEX constants."""
    if type(extents) is FrozenList:
        return extents
    if extents is None:
        return EMPTY_LIST
    index_const = expressions.index_const
    items = [index_const(e) if type(e) is int else as_extent(e) for e in extents]
    return FrozenList(items) if items else EMPTY_LIST


def as_extent(value: Any) -> Expr:
    """One extent as an expression."""
    if isinstance(value, expressions.Expr):
        return value  # type: ignore[no-any-return]
    if hasattr(value, "__index__") and not isinstance(value, bool):  # also NumPy's integers
        return expressions.index_const(value.__index__())  # type: ignore[no-any-return]
    raise TypeError(f"a shape extent must be an int or an ir.Expr, got {type(value).__name__}")


def const_extent(value: Any) -> int | None:
    """The number of a constant extent, None for a symbolic one."""
    return value.value if type(value) is expressions.ConstInt else None


def extent_equal(a: Any, b: Any) -> bool:
    """Structural equality of two extent expressions; constants by value, variables by identity."""
    if a is b:
        return True
    x = expressions
    ta, tb = type(a), type(b)
    if ta is x.ConstInt:
        return tb is x.ConstInt and bool(a.value == b.value)
    if ta is not tb:
        return False
    if isinstance(a, x.BinaryExpr):
        return extent_equal(a.left, b.left) and extent_equal(a.right, b.right)
    if isinstance(a, x.UnaryExpr):
        return bool(a.type == b.type) and extent_equal(a.operand, b.operand)
    if ta is x.Call:
        return bool(a.op.name == b.op.name) and extents_equal(a.args, b.args)
    if ta is x.MakeTuple:
        return extents_equal(a.elements, b.elements)
    if ta in (x.ConstFloat, x.ConstBool):
        return bool(a.value == b.value)
    return False


def extents_equal(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Pairwise :func:`extent_equal`, with equal length."""
    return a is b or (len(a) == len(b) and all(map(extent_equal, a, b)))


def extent_key(e: Any) -> Any:
    """A hash key that agrees with :func:`extent_equal`."""
    x = expressions
    if type(e) is x.ConstInt:
        return e.value
    if isinstance(e, x.Var):
        return id(e)
    if isinstance(e, x.BinaryExpr):
        return (type(e).__name__, extent_key(e.left), extent_key(e.right))
    if type(e) is x.MakeTuple:
        return ("MakeTuple", *extents_key(e.elements))
    if type(e) is x.Call:
        return (e.op.name, *extents_key(e.args))
    return type(e).__name__


def extents_key(extents: Sequence[Any]) -> tuple[Any, ...]:
    """The keys of several extents."""
    return tuple(map(extent_key, extents))
