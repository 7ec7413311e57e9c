"""Conversion of element types: ``cast``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..ir import scalar as scalars
from ..ir.dtype import DataType
from ..ir.enums import CoreType, MemorySpace
from ..ir.expr import Expr
from ..ir.location import current_span
from ..ir.type import Type
from .conversion import convert
from .definition import REQUIRED, InferRule, Operand
from .elementwise import as_scalar
from .normalize import CAST_MODE_NAMES, resolve_cast_mode
from .numpy_types import from_numpy_dtype
from .registry import call, define
from .rules import require_args, result_like, tensor_type, tile_type
from .surface import Attr, level_of, mixed_error, surface
from .surface import Operand as Arg
from .values import ArrayValue, combine_masks, fresh


def _infer(name: str, level: str) -> InferRule:
    operand_type = tensor_type if level == "tensor" else tile_type

    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(name, args, 1)
        a = operand_type(name, args, 0)
        target, mode = kwargs["target_type"], kwargs["mode"]
        if not 0 <= mode < len(CAST_MODE_NAMES):
            raise ValueError(f"{name}: Invalid rounding mode {mode}")
        if target is a.dtype:
            raise ValueError(f"{name}: same-dtype cast is not a valid operation (operand and target are {target})")
        for dtype in (a.dtype, target):
            if not (dtype.is_float_ or dtype.is_int_ or dtype is DataType.BOOL):
                raise ValueError(f"{name} converts numbers, not {dtype}")
        return result_like(a, a.shape, target, a.valid_extents)

    return infer


def _reference(ctx: Any, a: ArrayValue, target_type: DataType, mode: int) -> ArrayValue:
    data, fits = convert(a.data, from_numpy_dtype(a.dtype), target_type, mode)
    return fresh(data, combine_masks(a.mask, fits), a.valid)


for _level, _operand, _kind in (("tensor", "input", "window"), ("tile", "tile", "tile")):
    define(
        f"{_level}.cast",
        [Operand(_operand, _kind)],
        _infer(f"{_level}.cast", _level),
        doc="convert to target_type, rounding by mode",
        kwargs={"target_type": (DataType, REQUIRED), "mode": (int, REQUIRED)},
        reference=_reference,
        **(
            {"output_memory": MemorySpace.Vec, "input_memory": ((MemorySpace.Vec,),), "core": CoreType.VECTOR}
            if _level == "tile"
            else {}
        ),
    )


@surface("tensor", name="cast")
def tensor_cast(input: Arg, target_type: Attr, mode: Attr = "round") -> Expr:
    return call("tensor.cast", input, target_type=target_type, mode=resolve_cast_mode(mode))


@surface("tile", name="cast")
def tile_cast(tile: Arg, target_type: Attr, mode: Attr = "round") -> Expr:
    return call("tile.cast", tile, target_type=target_type, mode=resolve_cast_mode(mode))


@surface("pl", name="cast")
def cast(input: Arg, target_type: Attr, mode: Attr = "round") -> Expr:
    level = level_of(input)
    if level == "tensor":
        return tensor_cast(input, target_type, mode)
    if level == "tile":
        return tile_cast(input, target_type, mode)
    if level == "scalar":
        if resolve_cast_mode(mode) != CAST_MODE_NAMES["round"]:
            raise TypeError("pl.cast: Scalar inputs do not support non-default mode")
        return scalars.cast(as_scalar(input), target_type, current_span())
    raise mixed_error("cast", input)
