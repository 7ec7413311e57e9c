"""Which parameter each result of a function is: results are mapped to outputs by tracing, never by position."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from ..ir import stmt as st
from ..ir.expr import Var
from ..ir.program import Function
from ..ir.tree import walk
from ..ir.type import TensorType

_CACHE: WeakKeyDictionary[Function, list[int | None] | None] = WeakKeyDictionary()


def return_lineage(function: Function) -> list[int | None] | None:
    """For each returned value the index of the parameter whose buffer it is, or None for a value of its own.

    The whole answer is None when a value may be one parameter or another, or when returns differ. A fact about an
    immutable function: computed once.
    """
    if function not in _CACHE:
        _CACHE[function] = _trace(function)
    return _CACHE[function]


def _trace(function: Function) -> list[int | None] | None:
    from .effects import FRESH, UNKNOWN, _Walker

    walker = _Walker({})
    walker.stmt(function.body)
    index = {param: i for i, param in enumerate(function.params)}
    found: list[int | None] | None = None
    for node in walk(function.body):
        if not isinstance(node, st.ReturnStmt):
            continue
        roots: list[int | None] = []
        for value in node.value:
            parts = walker.tuples.get(value) if isinstance(value, Var) else None
            for root in parts if parts is not None else [walker.root(value)]:
                if root is UNKNOWN:
                    return None
                if root is FRESH or not isinstance(root.type, TensorType):
                    roots.append(None)
                else:
                    roots.append(index.get(root))
        if found is not None and found != roots:
            return None
        found = roots
    return found
