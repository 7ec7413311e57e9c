"""Which parameter each result of a function is: results are mapped to outputs by tracing, never by position."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from ..ir import stmt as st
from ..ir.expr import Var
from ..ir.program import Function
from ..ir.tree import walk
from ..ir.type import TensorType

_CACHE: WeakKeyDictionary[Function, tuple[list[int | None] | None, bool]] = WeakKeyDictionary()


def return_lineage(function: Function) -> list[int | None] | None:
    """For each returned value the index of the parameter whose buffer it is, or None for a value of its own.

    Empty for a function that returns nothing. The whole answer is None when a value may be one parameter or another, or
    when returns differ. A fact about an immutable function: computed once.
    """
    return _facts(function)[0]


def returns_views(function: Function) -> bool:
    """Whether a returned value may be a part of a parameter, or the parameter under another shape."""
    return _facts(function)[1]


def _facts(function: Function) -> tuple[list[int | None] | None, bool]:
    found = _CACHE.get(function)
    if found is None:
        found = _CACHE[function] = _trace(function)
    return found


def _trace(function: Function) -> tuple[list[int | None] | None, bool]:
    from .effects import FRESH, UNKNOWN, _Walker

    walker = _Walker({}, frozenset(function.params))
    walker.stmt(function.body)
    index = {param: i for i, param in enumerate(function.params)}
    found: list[int | None] | None = None
    views = False
    for node in walk(function.body):
        if not isinstance(node, st.ReturnStmt):
            continue
        roots: list[int | None] = []
        for value in node.value:
            views = views or walker.is_view(value)
            parts = walker.tuples.get(value) if isinstance(value, Var) else None
            for root in parts if parts is not None else [walker.root(value)]:
                if root is UNKNOWN:
                    return None, True
                if root is FRESH or not isinstance(root.type, TensorType):
                    roots.append(None)
                else:
                    roots.append(index.get(root))
        if found is not None and found != roots:
            return None, True
        found = roots
    return found or [], views
