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
from .expr import (
    BINARY_CLASSES,
    UNARY_CLASSES,
    Call,
    ConstBool,
    ConstFloat,
    ConstInt,
    GlobalVar,
    IterArg,
    MakeTuple,
    MemRef,
    Submit,
    TupleGetItemExpr,
    Var,
    WindowBuffer,
)
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

# Expressions without operands.
LEAVES: frozenset[type] = frozenset((Var, IterArg, ConstInt, ConstFloat, ConstBool))
_BINARY: frozenset[type] = frozenset(BINARY_CLASSES)
_UNARY: frozenset[type] = frozenset(UNARY_CLASSES)


def holds_call(e: Any) -> bool:
    """Whether there is a Call or Submit in an expression. (A MemRef or a window buffer never holds one.)

    Hardly ever, and asked of every operand: this is what has to be fast.
    """
    leaves, binary = LEAVES, _BINARY
    # A stack, since chains of operators may be thousands of levels deep.
    stack = [e]
    pop, push = stack.pop, stack.append
    while stack:
        e = pop()
        cls = type(e)
        if cls in binary:
            left, right = e.left, e.right
            if type(left) not in leaves:
                push(left)
            if type(right) not in leaves:
                push(right)
        elif cls is MakeTuple:
            for item in e.elements:
                if type(item) not in leaves:
                    push(item)
        elif cls is Call or cls is Submit:
            return True
        elif cls in _UNARY:
            push(e.operand)
        elif cls is TupleGetItemExpr:
            push(e.tuple)
    return False


def is_launch(call: Any) -> bool:
    """Whether a call launches a function of the program."""
    return (type(call) is Call or type(call) is Submit) and type(call.op) is GlobalVar


def is_op(call: Any, name: str) -> bool:
    """Whether a value is a call of an op."""
    return type(call) is Call and type(call.op) is not GlobalVar and call.op.name == name


__all__ = ["LEAVES", "OPERANDS", "attrs_operands", "holds_call", "is_launch", "is_op"]
