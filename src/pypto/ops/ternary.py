"""Tile ops with a third operand or a slope: floored remainder, three-operand sums, leaky and parametric ReLU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._lazy import np
from ..ir.dtype import DataType
from ..ir.enums import CoreType, MemorySpace
from ..ir.expr import Expr
from ..ir.type import Type
from .definition import InferRule, Operand
from .elementwise import HALF_OR_SINGLE, elementwise
from .normalize import scalar_operand
from .registry import call, define
from .rules import (
    broadcast_shapes,
    broadcast_valid,
    require_args,
    require_dtype,
    result_dtype,
    result_like,
    same_extent,
    scalar_dtype,
    scratch_tile,
    tile_type,
)
from .surface import Operand as Arg
from .surface import surface
from .values import ArrayValue

VEC = (MemorySpace.Vec,)
ANY: tuple[MemorySpace, ...] = ()
TILE_SPEC: dict[str, Any] = {"output_memory": MemorySpace.Vec, "core": CoreType.VECTOR}


# --- rem: the remainder with the sign of the divisor ------------------------------------------------------------------


def _rem_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    require_args("tile.rem", args, 3)
    a, b = tile_type("tile.rem", args, 0), tile_type("tile.rem", args, 1)
    scratch_tile("tile.rem", args, 2)
    shape = broadcast_shapes("tile.rem", a.shape, b.shape)
    return result_like(a, shape, result_dtype(a.dtype, b.dtype), broadcast_valid(shape, a, b))


def _rems_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    require_args("tile.rems", args, 3)
    a, scalar = tile_type("tile.rems", args, 0), scalar_dtype("tile.rems", args, 1)
    scratch_tile("tile.rems", args, 2)
    return result_like(a, a.shape, result_dtype(a.dtype, scalar), a.valid_extents)


def _rem_reference(ctx: Any, a: ArrayValue, b: Any, tmp: Any) -> ArrayValue:
    return elementwise(ctx, np.remainder, a, b)


for _name, _kind, _infer in (("tile.rem", "tile", _rem_infer), ("tile.rems", "scalar", _rems_infer)):
    define(
        _name,
        [Operand("lhs", "tile"), Operand("rhs", _kind), Operand("tmp", "tile", "scratch")],
        _infer,
        doc="lhs - floor(lhs / rhs) * rhs",
        reference=_rem_reference,
        element="pto::math::remainder({0}, {1})",
        input_memory=(VEC, VEC if _kind == "tile" else ANY, VEC),
        priority="full",
        **TILE_SPEC,
    )


@surface("tile", "pl", name="rem")
def rem(lhs: Arg, rhs: Arg, tmp: Arg) -> Expr:
    return call("tile.rem", lhs, rhs, tmp)


@surface("tile", "pl", name="rems")
def rems(lhs: Arg, rhs: Arg, tmp: Arg) -> Expr:
    return call("tile.rems", lhs, scalar_operand(rhs, lhs.type.dtype), tmp)


# --- three-operand sums -----------------------------------------------------------------------------------------------


def _three_infer(name: str) -> InferRule:
    with_scalar = name.endswith("sc")

    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(name, args, 3)
        a, c = tile_type(name, args, 0), tile_type(name, args, 2)
        if with_scalar:
            shape = broadcast_shapes(name, a.shape, c.shape)
            dtype = result_dtype(result_dtype(a.dtype, scalar_dtype(name, args, 1)), c.dtype)
            return result_like(a, shape, dtype, broadcast_valid(shape, a, c))
        b = tile_type(name, args, 1)
        shape = broadcast_shapes(name, broadcast_shapes(name, a.shape, b.shape), c.shape)
        dtype = result_dtype(result_dtype(a.dtype, b.dtype), c.dtype)
        return result_like(a, shape, dtype, broadcast_valid(shape, a, b, c))

    return infer


def _three_reference(function: Callable[[Any, Any, Any], Any]) -> Callable[..., ArrayValue]:
    def reference(ctx: Any, a: ArrayValue, b: Any, c: ArrayValue) -> ArrayValue:
        return elementwise(ctx, function, a, b, c)

    return reference


for _base, _function, _doc, _sign in (
    ("add", lambda a, b, c: a + b + c, "lhs + rhs + rhs2", "+"),
    ("sub", lambda a, b, c: a - b - c, "lhs - rhs - rhs2", "-"),
):
    for _suffix, _kind in (("c", "tile"), ("sc", "scalar")):
        define(
            f"tile.{_base}{_suffix}",
            [Operand("lhs", "tile"), Operand("rhs", _kind), Operand("rhs2", "tile")],
            _three_infer(f"tile.{_base}{_suffix}"),
            doc=_doc,
            reference=_three_reference(_function),
            element=f"(pto::step<{{T}}>({{0}} {_sign} {{1}}) {_sign} {{2}})",
            input_memory=(VEC, VEC if _kind == "tile" else ANY, VEC),
            priority="rare",
            **TILE_SPEC,
        )


def _three_surface(name: str) -> None:
    op, with_scalar = f"tile.{name}", name.endswith("sc")

    def function(lhs: Arg, rhs: Arg, rhs2: Arg) -> Expr:
        return call(op, lhs, scalar_operand(rhs, lhs.type.dtype) if with_scalar else rhs, rhs2)

    surface("tile", "pl", name=name)(function)


for _name in ("addc", "subc", "addsc", "subsc"):
    _three_surface(_name)


# --- ReLU with a slope ------------------------------------------------------------------------------------------------


def _lrelu_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    name = "tile.lrelu"
    require_args(name, args, 2)
    a = tile_type(name, args, 0)
    scalar_dtype(name, args, 1)
    if not a.dtype.is_float_:
        raise ValueError(f"{name} requires a float tile, got {a.dtype}: the slope would be truncated; cast it first")
    return result_like(a, a.shape, a.dtype, a.valid_extents)


def _prelu_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    name = "tile.prelu"
    require_args(name, args, 3)
    a, slope, tmp = (tile_type(name, args, i) for i in range(3))
    require_dtype(name, "tile", a.dtype, HALF_OR_SINGLE)
    for what, kind in (("tile", a), ("slope", slope), ("tmp", tmp)):
        if len(kind.shape) != 2:
            raise ValueError(f"{name} requires {what} of rank 2, but got rank {len(kind.shape)}")
    if slope.dtype is not a.dtype:
        raise ValueError(f"{name} requires slope to have the same dtype as the tile, {a.dtype}, but got {slope.dtype}")
    if not all(map(same_extent, a.shape, slope.shape)):
        raise ValueError(f"{name} requires slope to have the same shape as the tile")
    if not all(map(same_extent, a.valid_extents, slope.valid_extents)):
        raise ValueError(f"{name} requires slope to have the same valid_shape as the tile")
    return result_like(a, a.shape, a.dtype, a.valid_extents)


def _leak(x: Any, slope: Any) -> Any:
    return np.where(x > 0, x, x * slope)  # NaN takes the product


def _leak_reference(ctx: Any, a: ArrayValue, slope: Any, tmp: Any = None) -> ArrayValue:
    return elementwise(ctx, _leak, a, slope)


define(
    "tile.lrelu",
    [Operand("tile", "tile"), Operand("slope", "scalar")],
    _lrelu_infer,
    doc="x where x > 0, else x * slope",
    reference=_leak_reference,
    element="({0} > 0 ? {0} : {0} * {1})",
    input_memory=(VEC,),
    priority="full",
    **TILE_SPEC,
)
define(
    "tile.prelu",
    [Operand("tile", "tile"), Operand("slope", "tile"), Operand("tmp", "tile", "scratch")],
    _prelu_infer,
    doc="x where x > 0, else x * slope, element by element",
    reference=_leak_reference,
    element="({0} > 0 ? {0} : {0} * {1})",
    input_memory=(VEC, VEC, VEC),
    not_in_place=True,
    priority="full",
    **TILE_SPEC,
)


@surface("tile", "pl", name="lrelu")
def lrelu(tile: Arg, slope: Arg) -> Expr:
    return call("tile.lrelu", tile, scalar_operand(slope, DataType.FP32))


@surface("tile", "pl", name="prelu")
def prelu(tile: Arg, slope: Arg, tmp: Arg) -> Expr:
    return call("tile.prelu", tile, slope, tmp)
