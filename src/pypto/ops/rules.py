"""Type rules that ops share: promotion, broadcasting, valid regions of element-wise results."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ..arith.prove import prove_eq, prove_le
from ..ir.dtype import DataType
from ..ir.enums import TensorLayout
from ..ir.expr import ConstInt, Expr, Min
from ..ir.location import pinned_span
from ..ir.node import FrozenList, frozen_list
from ..ir.type import (
    DistributedTensorType,
    ScalarType,
    TensorType,
    TensorView,
    TileType,
    TileView,
    Type,
    extent_equal,
    implicit_tile_view,
)
from .conversion import SIGNIFICAND_BITS


def promote_dtypes(a: DataType, b: DataType) -> DataType:
    """Result dtype of two element types; never fails (spec 03, 8.1)."""
    if a is b:
        return a
    if a.is_float_ != b.is_float_:
        return a if a.is_float_ else b
    if a.get_bit() != b.get_bit():
        return a if a.get_bit() > b.get_bit() else b
    if not a.is_signed_ and b.is_signed_:
        return b
    return a


def result_dtype(a: DataType, b: DataType) -> DataType:
    """:func:`promote_dtypes` of two operands, with a warning at the user's line where the result loses values."""
    result = promote_dtypes(a, b)
    if a is not b:
        span = pinned_span()
        if span is not None and not span.filename.startswith("<"):  # written by a user: neither IR nor its text
            loss = _loss(a, b) or _loss(b, a)
            if loss is not None:
                message = f"lossy promotion: {loss}; say what you mean with pl.cast"
                warnings.warn_explicit(message, UserWarning, span.filename, max(span.begin_line, 1))
    return result


def _loss(a: DataType, b: DataType) -> str | None:
    """What is lost when ``a`` meets the float type ``b``."""
    bits = SIGNIFICAND_BITS.get(b)
    if bits is None:
        return None
    if a.is_int_ and a.get_bit() - a.is_signed_ > bits:
        return f"{a.name} with {b.name} computes in {b.name}, which holds integers exactly up to 2**{bits}"
    if a is DataType.FP16 and b is DataType.BF16:
        return "FP16 with BF16 computes in the type of the first operand, and neither holds the other's values"
    return None


class OperandKindError(TypeError, ValueError):
    """An operand of the wrong class: a wrong type to Python readers, a rejected value in the op contract (03, 17)."""


def operand_error(op: str, position: str, wanted: str, operand: Any) -> OperandKindError:
    kind = operand.type if isinstance(operand, Expr) else operand
    return OperandKindError(f"{op} requires {position} argument to be a {wanted}, but got {type(kind).__name__}")


_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


def require_args(op: str, args: Sequence[Expr], low: int, high: int | None = None) -> None:
    """Arity check."""
    high = low if high is None else high
    if not low <= len(args) <= high:
        wanted = f"exactly {low}" if low == high else f"{low} to {high}"
        raise ValueError(f"{op} requires {wanted} arguments, but got {len(args)}")


def tensor_type(op: str, args: Sequence[Expr], index: int, plain: bool = False) -> TensorType:
    """The type of an operand that must be a tensor (``plain``: not a distributed one)."""
    kind = args[index].type
    if type(kind) is TensorType or (not plain and type(kind) is DistributedTensorType):
        return kind
    wanted = "TensorType" if plain else "TensorType or DistributedTensorType"
    raise operand_error(op, _ORDINALS[index], wanted, args[index])


def tile_type(op: str, args: Sequence[Expr], index: int) -> TileType:
    """The type of an operand that must be a tile."""
    kind = args[index].type
    if type(kind) is TileType:
        return kind
    raise operand_error(op, _ORDINALS[index], "TileType", args[index])


def scratch_tile(op: str, args: Sequence[Expr], index: int, label: str = "tmp") -> TileType:
    """The type of a scratch operand: it must be a tile, and takes no other part in inference."""
    kind = args[index].type
    if type(kind) is TileType:
        return kind
    raise OperandKindError(
        f"{op} requires {_ORDINALS[index]} argument ({label}) to be a TileType, but got {type(kind).__name__}"
    )


def scalar_dtype(op: str, args: Sequence[Expr], index: int) -> DataType:
    """The dtype of an operand that must be a scalar."""
    kind = args[index].type
    if type(kind) is ScalarType:
        return kind.dtype
    raise operand_error(op, _ORDINALS[index], "ScalarType", args[index])


def require_dtype(op: str, what: str, dtype: DataType, allowed: Sequence[DataType]) -> None:
    """Element type check: "<op> requires <what> dtype in {...}"."""
    if dtype not in allowed:
        names = ", ".join(d.name for d in allowed)
        raise ValueError(f"{op} requires {what} dtype in {{{names}}}, but got {dtype}")


def same_extent(a: Expr, b: Expr) -> bool:
    """Equal by structure or by proof."""
    return extent_equal(a, b) or prove_eq(a, b) is True


def is_one(e: Expr) -> bool:
    return type(e) is ConstInt and e.value == 1


def broadcast_shapes(op: str, a: Sequence[Expr], b: Sequence[Expr]) -> FrozenList[Expr]:
    """Right-aligned broadcasting as in NumPy; symbols equal only themselves (spec 03, 8.2)."""
    if a is b or (len(a) == len(b) and all(map(extent_equal, a, b))):
        return frozen_list(a)
    result: list[Expr] = []
    for i in range(1, max(len(a), len(b)) + 1):
        if i > len(a):
            result.append(b[-i])
        elif i > len(b) or same_extent(a[-i], b[-i]) or is_one(b[-i]):
            result.append(a[-i])
        elif is_one(a[-i]):
            result.append(b[-i])
        else:
            raise ValueError(
                f"{op} requires compatible shapes: Cannot broadcast shapes: dimension {i - 1} mismatch "
                f"({show_shape(a)} and {show_shape(b)})"
            )
    return FrozenList(reversed(result))


def show_shape(shape: Sequence[Expr]) -> str:
    """A shape in an error message."""
    return "[" + ", ".join(str(d.value) if type(d) is ConstInt else d.as_python(format=False) for d in shape) + "]"


def min_extent(a: Expr, b: Expr) -> Expr:
    """The smaller of two extents; a side is picked when that can be proven."""
    if a is b or extent_equal(a, b) or prove_le(a, b) is True:
        return a
    if prove_le(b, a) is True:
        return b
    return Min(a, b, DataType.INDEX)


def broadcast_valid(shape: Sequence[Expr], *operands: Any) -> FrozenList[Expr]:
    """Valid region of an element-wise result: the intersection of the operands' regions after broadcasting.

    A dimension that an operand broadcasts (extent 1 against more) does not narrow the result, provided that its one
    element is valid. The sound rule of spec 03, section 19 (items 2 and 3).
    """
    if all(operand.valid_extents is operand.shape for operand in operands):
        return frozen_list(shape)
    result = list(shape)
    for i in range(1, len(shape) + 1):
        limit = None  # a valid extent never exceeds its dimension, so the shape itself is no candidate for the minimum
        for operand in operands:
            valid, own = operand.valid_extents, operand.shape
            if i <= len(own) and not extent_equal(valid[-i], own[-i]):
                limit = valid[-i] if limit is None else min_extent(limit, valid[-i])
        if limit is not None:
            result[-i] = limit
    return FrozenList(result)


def tensor_result(shape: Sequence[Expr], dtype: DataType, valid: Sequence[Expr] | None = None) -> TensorType:
    """A fresh plain tensor type: packed, ND, no pad."""
    if valid is None or valid is shape:
        return TensorType(shape, dtype)
    return TensorType(shape, dtype, None, TensorView(None, TensorLayout.ND, valid))


def tile_result(
    shape: Sequence[Expr], dtype: DataType, like: TileType | None = None, valid: Sequence[Expr] | None = None
) -> TileType:
    """A fresh tile type with the layout (block, inner, pad, compact) of ``like``; the space is stamped later."""
    if (valid is None or valid is shape) and (like is None or like.tile_view is None) and _implicit_agrees(like, shape):
        return TileType(shape, dtype)
    source = like.get_effective_tile_view() if like is not None else implicit_tile_view(shape, None)
    view = TileView(
        valid_shape=shape if valid is None else valid,
        blayout=source.blayout,
        slayout=source.slayout,
        pad=source.pad,
        compact=source.compact,
    )
    return TileType(shape, dtype, None, view)


def _implicit_agrees(like: TileType | None, shape: Sequence[Expr]) -> bool:
    """Whether a tile like ``like`` of this shape has the implicit vector layout, so that no view need be stored."""
    if like is None:
        return True
    return implicit_tile_view(like.shape, like.memory_space).same_layout(implicit_tile_view(shape, None))


def result_like(kind: Type, shape: Sequence[Expr], dtype: DataType, valid: Sequence[Expr] | None) -> Type:
    """A fresh result of the level of ``kind``."""
    if type(kind) is TileType:
        return tile_result(shape, dtype, kind, valid)
    return tensor_result(shape, dtype, valid)
