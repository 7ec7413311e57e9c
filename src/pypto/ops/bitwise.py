"""Bitwise logic and shifts of integers, with their scalar forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._lazy import np
from ..ir.enums import CoreType, MemorySpace
from ..ir.expr import Expr
from ..ir.type import Type
from .definition import InferRule, Operand, Reference
from .elementwise import array_pair, broadcast_result_valid, elementwise
from .normalize import const_value, scalar_operand
from .numpy_types import numpy_dtype
from .registry import call, define
from .rules import (
    broadcast_shapes,
    broadcast_valid,
    require_args,
    result_dtype,
    result_like,
    same_extent,
    scalar_dtype,
    scratch_tile,
    show_shape,
    tensor_type,
    tile_type,
)
from .surface import Operand as Arg
from .surface import level_of, level_with_scalar, mixed_error, surface
from .values import ArrayValue, combine_masks, fresh

VEC = (MemorySpace.Vec,)
TILE_SPEC: dict[str, Any] = {"output_memory": MemorySpace.Vec, "core": CoreType.VECTOR}

Function = Callable[[Any, Any], Any]


# --- reference semantics ----------------------------------------------------------------------------------------------


def _logic_reference(function: Function) -> Reference:
    def reference(ctx: Any, a: ArrayValue, b: Any, tmp: Any = None) -> ArrayValue:
        return elementwise(ctx, function, a, b)

    return reference


def _shift_reference(left: bool) -> Reference:
    def reference(ctx: Any, a: ArrayValue, b: Any) -> ArrayValue:
        dtype = numpy_dtype(ctx.type.dtype)
        bits = ctx.type.dtype.get_bit()
        distance = b.data.astype(np.int64) if isinstance(b, ArrayValue) else np.int64(b)
        in_range = (distance >= 0) & (distance < bits)
        steps = np.where(in_range, distance, 0).astype(dtype)
        working = a.data.astype(dtype, copy=False)
        data = (np.left_shift if left else np.right_shift)(working, steps).astype(dtype, copy=False)
        arrays = [a, b] if isinstance(b, ArrayValue) else [a]
        # A distance outside [0, bits) gives an undefined element.
        known = combine_masks(*(o.mask for o in arrays), None if in_range.all() else in_range)
        known = None if known is None else np.broadcast_to(known, data.shape)
        valid = broadcast_result_valid(data.shape, *arrays)
        return fresh(data, known, valid)

    return reference


# --- type rules -------------------------------------------------------------------------------------------------------


def _pair_infer(name: str, level: str, shift: bool, scratch: bool) -> InferRule:
    operand_type: Callable[..., Any] = tensor_type if level == "tensor" else tile_type

    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(name, args, 3 if scratch else 2)
        a, b = operand_type(name, args, 0), operand_type(name, args, 1)
        _require_integers(name, level, a, b)
        if scratch:
            scratch_tile(name, args, 2)
        if level == "tensor":
            if len(a.shape) != len(b.shape) or not all(map(same_extent, a.shape, b.shape)):
                raise ValueError(
                    f"{name} requires both operands to have the same shape, "
                    f"but got {show_shape(a.shape)} and {show_shape(b.shape)}"
                )
            shape = a.shape
        else:
            shape = broadcast_shapes(name, a.shape, b.shape)
        dtype = a.dtype if shift else result_dtype(a.dtype, b.dtype)
        return result_like(a, shape, dtype, broadcast_valid(shape, a, b))

    return infer


def _scalar_infer(name: str, level: str, shift: bool, scratch: bool) -> InferRule:
    operand_type: Callable[..., Any] = tensor_type if level == "tensor" else tile_type

    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(name, args, 3 if scratch else 2)
        a, scalar = operand_type(name, args, 0), scalar_dtype(name, args, 1)
        _require_integers(name, level, a)
        if scratch:
            scratch_tile(name, args, 2)
        if not scalar.is_int_:
            raise ValueError(f"{name} requires the shift/bitwise scalar to be an integer, but got {scalar}")
        value = const_value(args[1])
        if shift and value is not None and value < 0:
            raise ValueError(f"{name} requires a non-negative shift count, but got {value}")
        return result_like(a, a.shape, a.dtype, a.valid_extents)

    return infer


def _require_integers(name: str, level: str, *kinds: Any) -> None:
    for kind in kinds:
        if not kind.dtype.is_int_:
            raise ValueError(f"{name} requires an integer {level} dtype, but got {kind.dtype}")


# --- definitions and surface ------------------------------------------------------------------------------------------


def _define(name: str, reference: Reference, doc: str, shift: bool, element: str = "") -> None:
    xor = name == "xor"
    for level in ("tensor", "tile"):
        kind = "window" if level == "tensor" else "tile"
        scratch = xor and level == "tile"
        extra = [Operand("tmp", "tile", "scratch")] if scratch else []
        tile_pair: dict[str, Any] = dict(TILE_SPEC, input_memory=(VEC,) * (3 if scratch else 2))
        any_space: tuple[MemorySpace, ...] = ()
        tile_scalar: dict[str, Any] = dict(
            TILE_SPEC, input_memory=(VEC, any_space, VEC) if scratch else (VEC,), not_in_place=not shift
        )
        define(
            f"{level}.{name}",
            [Operand("lhs", kind), Operand("rhs", kind), *extra],
            _pair_infer(f"{level}.{name}", level, shift, scratch),
            doc=doc,
            reference=reference,
            priority="full",
            element=element,
            **(tile_pair if level == "tile" else {}),
        )
        define(
            f"{level}.{name}s",
            [Operand("lhs", kind), Operand("rhs", "scalar"), *extra],
            _scalar_infer(f"{level}.{name}s", level, shift, scratch),
            doc=doc,
            reference=reference,
            priority="full",
            element=element,
            **(tile_scalar if level == "tile" else {}),
        )


def _register_surface(name: str) -> None:
    known = name + "_" if name in ("and", "or") else name

    def array(level: str) -> Callable[..., Expr]:
        op = f"{level}.{name}"

        def function(lhs: Arg, rhs: Arg) -> Expr:
            return array_pair(op, lhs, rhs, f"{op}s")

        return function

    def scalar(level: str) -> Callable[..., Expr]:
        op = f"{level}.{name}s"

        def function(lhs: Arg, rhs: Arg) -> Expr:
            return call(op, lhs, scalar_operand(rhs, lhs.type.dtype))

        return function

    def unified(lhs: Arg, rhs: Arg) -> Expr:
        a, b = level_of(lhs), level_of(rhs)
        if a in ("tensor", "tile") and b in (a, "scalar"):
            return array_pair(f"{a}.{name}", lhs, rhs, f"{a}.{name}s")
        raise mixed_error(known, lhs, rhs)

    def unified_scalar(lhs: Arg, rhs: Arg) -> Expr:
        level = level_with_scalar(f"{name}s", lhs, rhs)
        return call(f"{level}.{name}s", lhs, scalar_operand(rhs, lhs.type.dtype))

    for level in ("tensor", "tile"):
        if name == "xor" and level == "tile":
            continue
        surface(level, name=known)(array(level))
        surface(level, name=f"{name}s")(scalar(level))
    if name != "xor":
        surface("pl", name=known)(unified)
        surface("pl", name=f"{name}s")(unified_scalar)


for _name, _function, _doc, _sign in (
    ("and", lambda a, b: a & b, "bitwise and", "&"),
    ("or", lambda a, b: a | b, "bitwise or", "|"),
    ("xor", lambda a, b: a ^ b, "bitwise exclusive or", "^"),
):
    _define(_name, _logic_reference(_function), _doc, False, f"({{0}} {_sign} {{1}})")
    _register_surface(_name)
_define("shl", _shift_reference(True), "shift left", True)
_register_surface("shl")
_define("shr", _shift_reference(False), "shift right: arithmetic for signed, logical for unsigned types", True)
_register_surface("shr")


@surface("tile", name="xor")
def tile_xor(lhs: Arg, rhs: Arg, tmp: Arg) -> Expr:
    if level_of(rhs) == "scalar":
        return tile_xors(lhs, rhs, tmp)
    return call("tile.xor", lhs, rhs, tmp)


@surface("tile", name="xors")
def tile_xors(lhs: Arg, rhs: Arg, tmp: Arg) -> Expr:
    return call("tile.xors", lhs, scalar_operand(rhs, lhs.type.dtype), tmp)


@surface("pl", name="xor")
def xor(lhs: Arg, rhs: Arg, tmp: Arg = None) -> Expr:
    a, b = level_of(lhs), level_of(rhs)
    if a not in ("tensor", "tile") or b not in (a, "scalar"):
        raise mixed_error("xor", lhs, rhs)
    return _xor("xor", a, lhs, rhs, tmp)


@surface("pl", name="xors")
def xors(lhs: Arg, rhs: Arg, tmp: Arg = None) -> Expr:
    level = level_with_scalar("xors", lhs, rhs)
    return _xor("xors", level, lhs, rhs, tmp)


def _xor(name: str, level: str, lhs: Arg, rhs: Arg, tmp: Arg) -> Expr:
    if level == "tensor":
        if tmp is not None:
            raise TypeError(f"pl.{name}: Tensor inputs must not pass tmp")
        return array_pair("tensor.xor", lhs, rhs, "tensor.xors")
    if tmp is None:
        raise TypeError(f"pl.{name}: Tile inputs require tmp")
    return tile_xor(lhs, rhs, tmp)
