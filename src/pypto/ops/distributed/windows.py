"""Windows: memory that every rank of a domain reserves, and typed views of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...ir.dtype import DataType
from ...ir.expr import ConstInt, Expr, MakeTuple
from ...ir.location import current_span
from ...ir.node import FrozenList
from ...ir.type import DistributedTensorType, PtrType, ScalarType, Type
from ..definition import REQUIRED, Operand
from ..normalize import extent, extents
from ..registry import build, check_kwargs, define, lookup
from ..registry import call as call_op
from ..rules import OperandKindError, require_args
from ..surface import Attr, Extents, surface
from ..surface import Operand as Arg
from ..windows import multiply, number, tuple_operand
from .common import unsupported


def _alloc_infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
    op = "pld.tensor.alloc_window_buffer"
    require_args(op, args, 1)
    kind = args[0].type
    if type(kind) is not ScalarType or not kind.dtype.is_int_:
        raise OperandKindError(f"{op} requires the size in bytes as an integer scalar, but got {kind}")
    size = number(args[0])
    if size is not None and size <= 0:
        raise ValueError(f"{op}: the size must be positive, got {size}")
    result: Type = PtrType()
    return result


def _window_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    op = "pld.tensor.window"
    require_args(op, args, 2)
    if args[0].type != PtrType():
        raise OperandKindError(f"{op} expects a Ptr handle, got {type(args[0].type).__name__}")
    return DistributedTensorType(tuple_operand(op, args, 1, "shape"), kwargs["dtype"])


define(
    "pld.tensor.alloc_window_buffer",
    [Operand("size", "scalar", "shape")],
    _alloc_infer,
    doc="reserve bytes on every rank of the domain, zeroed",
    kwargs={"name": (str, REQUIRED)},
    reference=unsupported,
    pure=False,
    printed="alloc_window_buffer",
    priority="full",
)
define(
    "pld.tensor.window",
    [Operand("buf", "any"), Operand("shape", "tuple", "shape")],
    _window_infer,
    doc="a typed view of a window from its first byte",
    kwargs={"dtype": (DataType, REQUIRED)},
    reference=unsupported,
    priority="full",
)


@surface("pld", "pld.tensor")
def alloc_window_buffer(size: Arg, *, dtype: Attr = None, name: Attr = "") -> Expr:
    """Reserve a window: so many bytes, or room for a shape of ``dtype``."""
    definition = lookup("pld.tensor.alloc_window_buffer")
    operand = _bytes(size, dtype)
    kwargs = check_kwargs(definition, {"name": name})  # ``call`` has a parameter ``name`` of its own
    return build(definition, FrozenList([operand]), kwargs, current_span())


def _bytes(size: Any, dtype: DataType | None) -> Expr:
    if not isinstance(size, (list, tuple, MakeTuple)):
        if dtype is not None:
            raise ValueError("alloc_window_buffer: dtype= is only valid when the first argument is a shape")
        value = size.value if isinstance(size, ConstInt) else size
        if isinstance(value, int) and not isinstance(value, bool):
            return ConstInt(value, DataType.INT64, current_span())
        return extent(size)
    dims = extents(size).elements
    if dtype is None:
        raise ValueError("alloc_window_buffer of a shape requires dtype=")
    if not dims:
        raise ValueError("alloc_window_buffer: the shape must be non-empty")
    if any((number(dim) or 1) <= 0 or number(dim) == 0 for dim in dims):
        raise ValueError("alloc_window_buffer: all dimensions must be positive")
    constants = [number(dim) for dim in dims]
    if None not in constants:
        total = dtype.get_byte()
        for value in constants:
            total *= value or 1
        return ConstInt(total, DataType.INT64, current_span())
    total_expr = dims[0]
    for dim in (*dims[1:], extent(dtype.get_byte())):
        total_expr = multiply(total_expr, dim)
    return total_expr


@surface("pld", "pld.tensor")
def window(buf: Arg, shape: Extents, *, dtype: Attr) -> Expr:
    """A typed view of a window."""
    if not isinstance(buf, Expr) or buf.type != PtrType():
        got = type(buf.type).__name__ if isinstance(buf, Expr) else type(buf).__name__
        raise TypeError(f"pld.window expects a Ptr handle, got {got}")
    return call_op("pld.tensor.window", buf, extents(shape), dtype=dtype)
