"""Padding: give the elements outside the valid region a value, in place, in a copy, or in a larger copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._lazy import np
from ..ir.dtype import DataType
from ..ir.enums import ArgEffect, CoreType, MemorySpace, PadValue, TensorLayout
from ..ir.expr import ConstInt, Expr, MakeTuple
from ..ir.type import TensorType, TensorView, TileType, TileView, Type
from .conversion import lowest_and_largest
from .definition import Alias, InferRule, Operand
from .normalize import extents, resolve_pad_value
from .numpy_types import from_numpy_dtype
from .registry import call, define
from .rules import require_args, show_shape, tensor_type, tile_type
from .surface import Attr, by_first, surface
from .surface import Operand as Arg
from .values import ArrayValue, fresh
from .windows import provably_exceeds

VEC = (MemorySpace.Vec,)
TILE_SPEC: dict[str, Any] = {"output_memory": MemorySpace.Vec, "input_memory": (VEC,), "core": CoreType.VECTOR}
PAD_SCHEMA = {"pad_value": (PadValue, PadValue.zero)}


# --- type rules -------------------------------------------------------------------------------------------------------


def _pad_of(name: str, kwargs: Mapping[str, Any]) -> PadValue:
    pad = kwargs.get("pad_value", PadValue.zero)
    if pad is PadValue.null:
        raise ValueError(f"{name}: fillpad pad_value must be zero, max or min, but got {pad}")
    return pad  # type: ignore[no-any-return]


def _padded_tile(tile: TileType, shape: Sequence[Expr], pad: PadValue) -> TileType:
    view = tile.get_effective_tile_view()
    padded = TileView(shape, blayout=view.blayout, slayout=view.slayout, pad=pad, compact=view.compact)
    return TileType(shape, tile.dtype, None, padded, tile.memory_space)


def _tensor_fillpad_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    name = "tensor.fillpad"
    require_args(name, args, 1)
    a = tensor_type(name, args, 0, plain=True)
    _pad_of(name, kwargs)
    view = a.tensor_view
    if view is None:
        return TensorType(a.shape, a.dtype)
    return TensorType(a.shape, a.dtype, None, TensorView(view.stride, view.layout, a.shape, view.pad))


def _tile_fillpad_infer(name: str) -> InferRule:
    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(name, args, 1)
        a = tile_type(name, args, 0)
        return _padded_tile(a, a.shape, _pad_of(name, kwargs))

    return infer


def _expand_infer(name: str) -> InferRule:
    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(name, args, 2)
        a: Any = tile_type(name, args, 0) if name == "tile.fillpad_expand" else tensor_type(name, args, 0, plain=True)
        pad = _pad_of(name, kwargs)
        target = args[1]
        if type(target) is not MakeTuple or any(type(e) is not ConstInt for e in target.elements):
            raise ValueError(f"{name} requires shape to be a literal tuple of constants")
        shape = target.elements
        if len(shape) != len(a.shape):
            raise ValueError(f"{name} requires a shape of rank {len(a.shape)}, but got rank {len(shape)}")
        for i, (new, old) in enumerate(zip(shape, a.shape, strict=True)):
            if provably_exceeds(old, new):
                raise ValueError(
                    f"{name}: dimension {i} must be >= source dimension, but got {show_shape(shape)} "
                    f"for a source of {show_shape(a.shape)}"
                )
        if type(a) is TileType:
            return _padded_tile(a, shape, pad)
        return TensorType(shape, a.dtype, None, TensorView(None, TensorLayout.ND, shape, pad))

    return infer


# --- reference semantics ----------------------------------------------------------------------------------------------


def pad_number(pad: PadValue, dtype: DataType) -> Any:
    """The number that a pad value stands for: 0, or the infinities (integers: the extreme values)."""
    if pad is PadValue.zero:
        return 0
    lowest, largest = lowest_and_largest(dtype)
    return largest if pad is PadValue.max else lowest


def _filled(a: ArrayValue, shape: Sequence[int], pad: PadValue) -> ArrayValue:
    number = pad_number(pad, from_numpy_dtype(a.dtype))
    data = np.full(tuple(shape), np.array(number).astype(a.dtype), a.dtype)
    window = a.valid_window()
    data[window] = a.valid_data()
    known, mask = None, a.valid_mask()
    if mask is not None:
        known = np.ones(tuple(shape), np.bool_)
        known[window] = mask
    return fresh(data, known)


def _fillpad(ctx: Any, a: ArrayValue, pad_value: PadValue = PadValue.zero) -> ArrayValue:
    return _filled(a, a.shape, pad_value)


def _fillpad_expand(ctx: Any, a: ArrayValue, shape: Sequence[int], pad_value: PadValue = PadValue.zero) -> ArrayValue:
    return _filled(a, shape, pad_value)


def _fillpad_inplace(ctx: Any, a: ArrayValue, pad_value: PadValue = PadValue.zero) -> ArrayValue:
    filled = _filled(a, a.shape, pad_value)
    a.write(tuple(slice(None) for _ in a.shape), filled.data, filled.mask)
    return a.view(a.data)


# --- definitions and surface ------------------------------------------------------------------------------------------

define(
    "tensor.fillpad",
    [Operand("tensor", "tensor")],
    _tensor_fillpad_infer,
    doc="a copy in which the elements outside the valid region have the pad value",
    kwargs=PAD_SCHEMA,
    reference=_fillpad,
)
define(
    "tensor.fillpad_expand",
    [Operand("tensor", "tensor"), Operand("shape", "tuple", "shape")],
    _expand_infer("tensor.fillpad_expand"),
    doc="a copy of a larger shape, filled up with the pad value",
    kwargs=PAD_SCHEMA,
    reference=_fillpad_expand,
    priority="full",
)
define(
    "tile.fillpad",
    [Operand("tile", "tile")],
    _tile_fillpad_infer("tile.fillpad"),
    doc="a copy in which the elements outside the valid region have the pad value",
    kwargs=PAD_SCHEMA,
    reference=_fillpad,
    **TILE_SPEC,
)
define(
    "tile.fillpad_inplace",
    [Operand("tile", "tile", "destination")],
    _tile_fillpad_infer("tile.fillpad_inplace"),
    doc="give the elements outside the valid region the pad value, in place",
    kwargs=PAD_SCHEMA,
    reference=_fillpad_inplace,
    effects={0: ArgEffect.ReadWrite},
    alias=Alias.IS,
    alias_operand=0,
    priority="full",
    **TILE_SPEC,
)
define(
    "tile.fillpad_expand",
    [Operand("tile", "tile"), Operand("shape", "tuple", "shape")],
    _expand_infer("tile.fillpad_expand"),
    doc="a copy of a larger shape, filled up with the pad value",
    kwargs=PAD_SCHEMA,
    reference=_fillpad_expand,
    not_in_place=True,
    priority="full",
    **TILE_SPEC,
)


@surface("tensor", name="fillpad")
def tensor_fillpad(tensor: Arg, pad_value: Attr = PadValue.zero) -> Expr:
    return call("tensor.fillpad", tensor, pad_value=resolve_pad_value(pad_value))


@surface("tile", name="fillpad")
def tile_fillpad(tile: Arg, pad_value: Attr = PadValue.zero) -> Expr:
    return call("tile.fillpad", tile, pad_value=resolve_pad_value(pad_value))


@surface("tile", name="fillpad_inplace")
def tile_fillpad_inplace(tile: Arg, pad_value: Attr = PadValue.zero) -> Expr:
    return call("tile.fillpad_inplace", tile, pad_value=resolve_pad_value(pad_value))


@surface("tensor", name="fillpad_expand")
def tensor_fillpad_expand(tensor: Arg, shape: Arg, pad_value: Attr = PadValue.zero) -> Expr:
    return call("tensor.fillpad_expand", tensor, extents(shape), pad_value=resolve_pad_value(pad_value))


@surface("tile", name="fillpad_expand")
def tile_fillpad_expand(tile: Arg, shape: Arg, pad_value: Attr = PadValue.zero) -> Expr:
    return call("tile.fillpad_expand", tile, extents(shape), pad_value=resolve_pad_value(pad_value))


@surface("pl", name="fillpad")
def fillpad(value: Arg, pad_value: Attr = PadValue.zero) -> Expr:
    return by_first("fillpad", tensor_fillpad, tile_fillpad, value)(value, pad_value)  # type: ignore[no-any-return]


@surface("pl", name="fillpad_expand")
def fillpad_expand(value: Arg, shape: Arg, pad_value: Attr = PadValue.zero) -> Expr:
    expand = by_first("fillpad_expand", tensor_fillpad_expand, tile_fillpad_expand, value)
    return expand(value, shape, pad_value)  # type: ignore[no-any-return]
