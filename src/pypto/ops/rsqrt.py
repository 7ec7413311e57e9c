"""Reciprocal square root, with its high-precision forms (a flag on tensors, a scratch operand on tiles)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._lazy import np
from ..ir.dtype import DataType
from ..ir.enums import CoreType, MemorySpace
from ..ir.expr import Expr
from ..ir.type import Type
from .definition import Operand
from .elementwise import elementwise
from .registry import call, define
from .rules import require_args, result_like, same_extent, tensor_type, tile_type
from .surface import Attr, level_of, mixed_error, surface, unsupported_for_tile
from .surface import Operand as Arg
from .values import ArrayValue


def _tensor_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    require_args("tensor.rsqrt", args, 1)
    a = tensor_type("tensor.rsqrt", args, 0)
    return result_like(a, a.shape, a.dtype if a.dtype.is_float_ else DataType.FP32, a.valid_extents)


def _tile_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    require_args("tile.rsqrt", args, 1, 2)
    a = tile_type("tile.rsqrt", args, 0)
    if not a.dtype.is_float_:
        raise ValueError(f"tile.rsqrt requires a float tile, got {a.dtype}: cast it first with pl.cast")
    if len(args) == 2:
        tmp = tile_type("tile.rsqrt", args, 1)
        if tmp.dtype is not a.dtype:
            raise ValueError(f"tile.rsqrt requires tmp dtype to match the tile's {a.dtype}, but got {tmp.dtype}")
        if len(tmp.shape) != len(a.shape) or not all(map(same_extent, tmp.shape, a.shape)):
            raise ValueError("tile.rsqrt requires tmp shape to match the tile's shape")
    return result_like(a, a.shape, a.dtype, a.valid_extents)


def _reference(ctx: Any, a: ArrayValue, tmp: Any = None, **_: Any) -> ArrayValue:
    return elementwise(ctx, lambda x: 1 / np.sqrt(x), a)


define(
    "tensor.rsqrt",
    [Operand("input", "window")],
    _tensor_infer,
    doc="1 / sqrt(x)",
    kwargs={"high_precision": (bool, False)},
    reference=_reference,
    element="pto::math::recip(pto::step<{T}>(pto::math::sqrt({0})))",
)
define(
    "tile.rsqrt",
    [Operand("tile", "tile"), Operand("tmp", "tile", "scratch", optional=True)],
    _tile_infer,
    doc="1 / sqrt(x); tmp selects the high-precision form",
    reference=_reference,
    element="pto::math::recip(pto::step<{T}>(pto::math::sqrt({0})))",
    output_memory=MemorySpace.Vec,
    input_memory=((MemorySpace.Vec,), (MemorySpace.Vec,)),
    core=CoreType.VECTOR,
    not_in_place=True,
)


@surface("tensor", name="rsqrt")
def tensor_rsqrt(input: Arg, high_precision: Attr = False) -> Expr:
    return call("tensor.rsqrt", input, high_precision=True if high_precision else None)


@surface("tile", name="rsqrt")
def tile_rsqrt(tile: Arg, tmp: Arg = None) -> Expr:
    return call("tile.rsqrt", tile) if tmp is None else call("tile.rsqrt", tile, tmp)


@surface("pl", name="rsqrt")
def rsqrt(input: Arg, high_precision: Attr = False) -> Expr:
    level = level_of(input)
    if level == "tensor":
        return tensor_rsqrt(input, high_precision)
    if level == "tile":
        if high_precision:
            raise unsupported_for_tile("rsqrt", "high_precision", "Use pl.tile.rsqrt(tile, tmp) with a scratch tile.")
        return tile_rsqrt(input)
    raise mixed_error("rsqrt", input)
