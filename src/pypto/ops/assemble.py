"""Writing one tensor or tile into another, in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..ir.dtype import DataType
from ..ir.enums import ArgEffect, AtomicType, TensorLayout, WriteChannel
from ..ir.expr import Expr
from ..ir.type import TensorView, TileType, Type
from .definition import INHERIT, Alias, Operand, Window
from .normalize import extents
from .partial_window import require_writable
from .regions import defined_elements
from .registry import call, define
from .rules import require_args, tensor_type, tile_type
from .surface import Attr, Extents, common_level, surface, unsupported_for_tile
from .surface import Operand as Arg
from .transfer import (
    atomic_attr,
    check_atomic,
    check_store_dtype,
    commit,
    of_rank,
    same_kind,
    with_valid,
    write_effect,
    write_valid,
)
from .values import ArrayValue
from .windows import same_rank, tuple_operand, write_region, write_region_at_run

D = DataType


def _tensor_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    op = "tensor.assemble"
    require_args(op, args, 3)
    target, source = tensor_type(op, args, 0), tensor_type(op, args, 1)
    offsets = tuple_operand(op, args, 2, "offset")
    check_atomic(op, kwargs, target.dtype)
    # Inside a kernel a matrix product is still a tensor here, and its store converts.
    check_store_dtype(op, source.dtype, target.dtype, converts=True)
    same_rank(op, "offset", offsets, len(target.shape))
    valid: Sequence[Expr] = target.shape
    if len(source.shape) == len(target.shape):
        valid = write_region(op, target.shape, target.valid_extents, offsets, source.shape, source.valid_extents)
    return same_kind(target, target.shape, TensorView(None, TensorLayout.ND, valid))


def _tensor_assemble(
    ctx: Any, target: ArrayValue, source: ArrayValue, offset: Sequence[int], *, atomic: int = 0
) -> ArrayValue:
    result = write_valid(ctx, "tensor.assemble", source, offset, target, accumulate=bool(atomic))
    return result if len(source.shape) == len(target.shape) else with_valid(result, result.shape)


define(
    "tensor.assemble",
    [Operand("target", "window", "destination"), Operand("source", "window"), Operand("offset", "tuple", "index")],
    _tensor_infer,
    doc="write the valid region of source into target at offset; the result is the target's buffer",
    kwargs={"atomic": (int, 0)},
    reference=_tensor_assemble,
    effects={0: write_effect},
    alias=Alias.IS,
    alias_operand=0,
    windows={0: Window(2, (1,))},
    channel=WriteChannel.Dma,
)


def _tile_infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
    op = "tile.assemble"
    require_args(op, args, 3)
    target, source = tile_type(op, args, 0), tile_type(op, args, 1)
    offsets = tuple_operand(op, args, 2, "offset")
    if source.dtype is not target.dtype and not (source.dtype is D.FP32 and target.dtype in (D.FP16, D.BF16)):
        raise ValueError(
            f"{op} requires target and source to have the same dtype, got {target.dtype} and {source.dtype}"
        )
    same_rank(op, "offset", offsets, len(target.shape))
    valid: Sequence[Expr] = target.shape
    if len(source.shape) == len(target.shape):
        valid = write_region(
            op, target.shape, target.valid_extents, offsets, source.shape, source.valid_extents, exact=True
        )
    if valid is target.valid_extents:
        return (
            target
            if target.memref is None
            else TileType(target.shape, target.dtype, None, target.tile_view, target.memory_space)
        )
    view = target.get_effective_tile_view().replace(valid_shape=valid)
    return TileType(target.shape, target.dtype, None, view, target.memory_space)


def _tile_assemble(ctx: Any, target: ArrayValue, source: ArrayValue, offset: Sequence[int]) -> ArrayValue:
    op = "tile.assemble"
    require_writable(op, target)
    tracked = len(source.shape) == len(target.shape)
    source = of_rank(op, source, len(target.shape))
    valid = write_region_at_run(op, target.shape, target.valid, offset, source.shape, source.valid)
    window = tuple(slice(o, o + n) for o, n in zip(offset, source.shape, strict=False))
    commit(ctx, target, window, source.data, defined_elements(source))
    return with_valid(target, valid if tracked else target.shape)


define(
    "tile.assemble",
    [Operand("target", "tile", "destination"), Operand("source", "tile"), Operand("offset", "tuple", "index")],
    _tile_infer,
    doc="copy the whole source subview into target at offset; the result is the target's buffer",
    reference=_tile_assemble,
    effects={0: ArgEffect.ReadWrite},
    alias=Alias.IS,
    alias_operand=0,
    output_memory=INHERIT,
)


@surface("tensor")
def assemble(target: Arg, source: Arg, offset: Extents, *, atomic: Attr = AtomicType.None_) -> Expr:
    """Write a tensor into a tensor."""
    return call("tensor.assemble", target, source, extents(offset), atomic=atomic_attr(atomic))


@surface("tile", name="assemble")
def tile_assemble(target: Arg, source: Arg, offset: Extents) -> Expr:
    """Copy a tile into a tile."""
    return call("tile.assemble", target, source, extents(offset))


@surface("pl", name="assemble")
def unified_assemble(target: Arg, source: Arg, offset: Extents, *, atomic: Attr = AtomicType.None_) -> Expr:
    """Write a tensor into a tensor, or a tile into a tile."""
    level = common_level("assemble", target, source)
    if level == "tensor":
        return assemble(target, source, offset, atomic=atomic)
    if atomic_attr(atomic) is not None:
        raise unsupported_for_tile("assemble", "atomic", "An atomic combine needs a GM target: use pl.store.")
    return tile_assemble(target, source, offset)
