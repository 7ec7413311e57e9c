"""The expressions that an expression reads, class by class, for walks that must not cost more than they have to.

Unlike the children of a traversal these are reads: the base of a MemRef names an allocation and is none; the
expressions in the type of a call are some.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

from .dtype import DataType
from .enums import ArgDirection, MemorySpace, PadValue, TensorLayout, TileLayout
from .expr import BINARY_CLASSES, UNARY_CLASSES, Call, MakeTuple, MemRef, Submit, TupleGetItemExpr, WindowBuffer
from .node import FrozenList
from .type_fields import PLAIN_TYPES, is_closed, type_expressions

_PLAIN_VALUES = frozenset(
    (bool, int, float, str, DataType, MemorySpace, TensorLayout, TileLayout, PadValue, ArgDirection)
)


def attrs_operands(attrs: dict[str, Any]) -> list[Any]:
    """The expressions in an attribute map: :func:`traversal.attrs_expressions`, faster where there are none."""
    found: list[Any] = []
    for value in attrs.values():
        cls = type(value)
        if cls is FrozenList:
            if value and type(value[0]) not in _PLAIN_VALUES:
                found += value
        elif cls not in _PLAIN_VALUES:
            found.append(value)
    return found


def _of_call(e: Any) -> list[Any]:
    found = list(e.args)
    if e.attrs:
        found += attrs_operands(e.attrs)
    if e.kwargs:
        found += attrs_operands(e.kwargs)
    kind = e.type
    if type(kind) not in PLAIN_TYPES and not is_closed(kind):
        found += type_expressions(kind)
    return found


def _of_submit(e: Any) -> list[Any]:
    found = _of_call(e)
    found += e.deps
    return found + [x for x in (e.core_num, e.predicate) if x is not None]


def _of_memref(e: Any) -> tuple[Any, ...]:
    return (e.byte_offset_,) if e.slot_index_ is None else (e.byte_offset_, e.slot_index_)


# Class of an expression that is neither a variable nor a constant -> its operands. (A MemRef and a window buffer are
# variables, too, but are found in types, where they are read.)
OPERANDS: dict[type, Callable[[Any], Sequence[Any]]] = {
    Call: _of_call,
    Submit: _of_submit,
    MakeTuple: attrgetter("elements"),
    TupleGetItemExpr: lambda e: (e.tuple,),
    MemRef: _of_memref,
    WindowBuffer: lambda e: (e.size,),
    **dict.fromkeys(BINARY_CLASSES, attrgetter("left", "right")),
    **dict.fromkeys(UNARY_CLASSES, lambda e: (e.operand,)),
}

__all__ = ["OPERANDS", "attrs_operands"]
