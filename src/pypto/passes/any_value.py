"""Values for places where control flow needs one and nobody reads it: behind an escape, before an unread carry."""

from __future__ import annotations

from typing import Any

from ..ir.dtype import DataType
from ..ir.enums import MemorySpace, TensorLayout
from ..ir.expr import Call, ConstBool, ConstFloat, ConstInt, Expr, MakeTuple
from ..ir.node import EMPTY_DICT, FrozenDict, FrozenList
from ..ir.span import Span
from ..ir.type import TASK_ID_TYPE, ArrayType, ScalarType, TensorType, TileType, Type
from ..ops.registry import REGISTRY, build


def null_task_id(span: Span) -> Call:
    """``system.task_invalid()``."""
    return build(REGISTRY["system.task_invalid"], FrozenList(), EMPTY_DICT, span)


def any_value(kind: Type, span: Span) -> Expr | None:
    """A value of a type, whose contents nobody may rely on: a constant or a call. None if there is none."""
    if type(kind) is ScalarType:
        dtype = kind.dtype
        if kind == TASK_ID_TYPE:
            return null_task_id(span)
        if dtype is DataType.BOOL:
            return ConstBool(False, span)
        if dtype.is_float_:
            return ConstFloat(0.0, dtype, span)
        return ConstInt(0, dtype, span) if dtype.is_int_ else None
    if type(kind) is TensorType:
        shape = MakeTuple(kind.shape, span)
        return _create("tensor.create", shape, span, dtype=kind.dtype, layout=TensorLayout.ND)
    if type(kind) is TileType:
        space = kind.memory_space or MemorySpace.Vec
        return _create("tile.create", MakeTuple(kind.shape, span), span, dtype=kind.dtype, target_memory=space)
    if type(kind) is ArrayType:
        return _create("array.create", kind.shape[0], span, dtype=kind.dtype)
    return None


def _create(op: str, shape: Expr, span: Span, **kwargs: Any) -> Expr | None:
    try:
        return build(REGISTRY[op], FrozenList([shape]), FrozenDict(kwargs), span)
    except (ValueError, TypeError):
        return None


__all__ = ["any_value", "null_task_id"]
