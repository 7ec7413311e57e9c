"""Windows of tensors and tiles as views of the same bytes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from ..ir.enums import PadValue, TensorLayout
from ..ir.expr import Expr, MakeTuple
from ..ir.location import current_span
from ..ir.node import FrozenList
from ..ir.type import TensorView, TileType, Type
from .definition import INHERIT, UNSET, Alias, Operand
from .normalize import extents
from .partial_window import PartialWindow, plain
from .registry import call, define
from .rules import require_args, same_extent, tensor_type, tile_type
from .surface import Attr, Extents, level_of, mixed_error, surface
from .surface import Operand as Arg
from .transfer import refuse_mx, same_kind, with_valid
from .values import ArrayValue
from .windows import (
    ON_CHIP,
    ONE,
    dropped_axes,
    dropped_axes_at_run,
    optional_tuple,
    read_window,
    read_window_at_run,
    same_rank,
    static_shape,
    tuple_operand,
)


def _operands(level: str) -> list[Operand]:
    return [
        Operand("input", "window" if level == "tensor" else "tile"),
        Operand("shape", "tuple", "shape"),
        Operand("offset", "tuple", "index"),
        Operand("valid_shape", "tuple", "shape", optional=True),
        Operand("drop_dims", "tuple", "shape", optional=True),
    ]


# --- type rules -------------------------------------------------------------------------------------------------------


def _tensor_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    op = "tensor.slice"
    require_args(op, args, 3, 5)
    source = tensor_type(op, args, 0)
    refuse_mx(op, source)
    shape = tuple_operand(op, args, 1, "shape")
    offsets = tuple_operand(op, args, 2, "offset")
    requested = optional_tuple(op, args, 3, "valid_shape")
    drops = optional_tuple(op, args, 4, "drop_dims")
    if requested is not None:
        same_rank(op, "valid_shape", requested, len(shape))
    if len(shape) != len(source.shape):
        valid = shape if requested is None else requested
    else:
        valid = read_window(
            op, source.shape, source.valid_extents, offsets, shape, requested, clamp=bool(kwargs.get("clamp", False))
        )
    if drops is not None:
        if len(drops) >= len(shape):
            raise ValueError(f"{op} cannot erase every dimension: drop_dims must leave one axis")
        shape, valid = dropped_axes(op, drops, shape, valid)
    own = source.tensor_view.pad if source.tensor_view is not None else PadValue.null
    view = TensorView(None, TensorLayout.ND, valid, kwargs.get("pad_value", own))
    return same_kind(source, shape, view)


def _tile_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    op = "tile.slice"
    require_args(op, args, 3, 5)
    source = tile_type(op, args, 0)
    shape = tuple_operand(op, args, 1, "shape", constant=True)
    static_shape(op, shape)
    offsets = tuple_operand(op, args, 2, "offset")
    requested = optional_tuple(op, args, 3, "valid_shape")
    drops = optional_tuple(op, args, 4, "drop_dims")
    if requested is not None:
        same_rank(op, "valid_shape", requested, len(shape))
    valid: Sequence[Expr] = read_window(
        op, source.shape, source.valid_extents, offsets, shape, requested, exact=True, remedy=ON_CHIP
    )
    if drops is not None:
        shape, valid = dropped_axes(op, drops, shape, valid)
        missing = 2 - len(shape)
        if missing > 0:
            shape, valid = FrozenList([ONE] * missing + list(shape)), [ONE] * missing + list(valid)
    view = source.get_effective_tile_view()
    view = view.replace(valid_shape=valid, stride=None, start_offset=None, pad=kwargs.get("pad_value", view.pad))
    return TileType(shape, source.dtype, None, view, source.memory_space)


# --- reference semantics ----------------------------------------------------------------------------------------------


def _view(
    op: str,
    source: ArrayValue,
    shape: Sequence[int],
    offset: Sequence[int],
    valid_shape: Sequence[int] | None,
    drop_dims: Sequence[int] | None,
    clamp: bool,
    exact: bool,
) -> ArrayValue:
    if len(shape) != len(source.shape):
        source, shape, offset = _same_rank_view(op, source, shape, offset)
    valid = read_window_at_run(
        op, source.shape, source.valid, offset, shape, valid_shape or None, clamp=clamp, exact=exact
    )
    whole = source.inner if type(source) is PartialWindow else source.data
    part = whole[tuple(slice(o, o + n) for o, n in zip(offset, shape, strict=False))]
    full = tuple(shape)
    if drop_dims:
        index, valid = dropped_axes_at_run(op, drop_dims, valid)
        full = tuple(n for i, n in enumerate(full) if i not in set(drop_dims))
        if part.shape != tuple(shape) and 0 in part.shape:
            part = part[tuple(slice(0, 0) if i == 0 else slice(None) for i in index)].reshape(
                [n for i, n in enumerate(part.shape) if i not in set(drop_dims)]
            )
        else:
            part = part[index]
    if part.shape != full:
        return PartialWindow(part, source.buffer, full, valid)
    return _same_class(source, part, valid)


def _same_class(source: ArrayValue, data: Any, valid: Sequence[int]) -> ArrayValue:
    if type(source) in (ArrayValue, PartialWindow):
        return ArrayValue(data, source.buffer, valid)
    return type(source)(data, source.buffer, valid)


def _same_rank_view(
    op: str, source: ArrayValue, shape: Sequence[int], offset: Sequence[int]
) -> tuple[ArrayValue, Sequence[int], Sequence[int]]:
    """A window of fewer axes than its source lies in the last ones, one of more axes has unit axes in front."""
    source = plain(source)
    missing = len(source.shape) - len(shape)
    if missing > 0:
        index = tuple(offset[:missing]) if len(offset) == len(source.shape) else (0,) * missing
        data = source.data[index]
        return source.view(data, source.valid[missing:]), shape, offset[len(offset) - len(shape) :]
    data = source.data[(None,) * -missing]
    return source.view(data, (1,) * -missing + source.valid), shape, offset


def _tensor_slice(
    ctx: Any,
    input: ArrayValue,
    shape: Sequence[int],
    offset: Sequence[int],
    valid_shape: Sequence[int] | None = None,
    drop_dims: Sequence[int] | None = None,
    *,
    clamp: bool = False,
    **_: Any,
) -> ArrayValue:
    return _view("tensor.slice", input, shape, offset, valid_shape, drop_dims, clamp, False)


def _tile_slice(
    ctx: Any,
    input: ArrayValue,
    shape: Sequence[int],
    offset: Sequence[int],
    valid_shape: Sequence[int] | None = None,
    drop_dims: Sequence[int] | None = None,
    **_: Any,
) -> ArrayValue:
    result = _view("tile.slice", input, shape, offset, valid_shape, drop_dims, False, True)
    missing = 2 - len(result.shape)
    if drop_dims and missing > 0:
        data = result.data.reshape((1,) * missing + result.shape)
        return _same_class(result, data, (1,) * missing + result.valid)
    return with_valid(result, result.valid)


define(
    "tensor.slice",
    _operands("tensor"),
    _tensor_infer,
    doc="a window of a tensor, as a view of the same bytes",
    kwargs={"pad_value": (PadValue, UNSET), "clamp": (bool, False)},
    reference=_tensor_slice,
    alias=Alias.VIEW,
    alias_operand=0,
    output_memory=INHERIT,
)
define(
    "tile.slice",
    _operands("tile"),
    _tile_infer,
    doc="a window of a tile, as a view of the same bytes",
    kwargs={"pad_value": (PadValue, UNSET)},
    reference=_tile_slice,
    alias=Alias.VIEW,
    alias_operand=0,
    output_memory=INHERIT,
)


# --- surfaces ---------------------------------------------------------------------------------------------------------


def slice_pad_value(pad_value: Any) -> PadValue | None:
    """The pad of a slice given as a ``PadValue`` or one of the numbers that stand for one; None stays None."""
    if pad_value is None or isinstance(pad_value, PadValue):
        return pad_value
    if isinstance(pad_value, bool) or not isinstance(pad_value, (int, float)):
        kind = type(pad_value).__name__
        raise TypeError(f"slice pad_value must be a pl.PadValue, 0, math.inf or -math.inf, got {kind}")
    if pad_value == 0:
        return PadValue.zero
    if math.isinf(pad_value):
        return PadValue.max if pad_value > 0 else PadValue.min
    raise ValueError(f"slice pad_value must be a pl.PadValue, 0, math.inf or -math.inf, got {pad_value}")


def _make(
    op: str,
    source: Arg,
    shape: Extents,
    offset: Extents,
    valid_shape: Extents,
    drop_dims: Extents,
    pad: Any,
    **kwargs: Any,
) -> Expr:
    window = extents(shape)
    more: list[Expr] = []
    if valid_shape is not None:
        more.append(extents(valid_shape))
    if drop_dims is not None:
        dropped = extents(drop_dims)
        if dropped.elements:
            more += [dropped] if more else [MakeTuple(FrozenList(), current_span()), dropped]
    pad_value = slice_pad_value(pad)
    made = call(op, source, window, extents(offset), *more, pad_value=pad_value, **kwargs)
    if pad_value is not None:
        _warn_without_effect(made)
    return made


def _warn_without_effect(made: Expr) -> None:
    """A pad value fills what a window narrows; where nothing is narrowed the user's line is told so."""
    kind: Any = made.type
    if all(map(same_extent, kind.valid_extents, kind.shape)):
        span = made.span
        warnings.warn_explicit(
            "pad_value has no effect: the slice is fully valid, give it a valid_shape",
            UserWarning,
            span.filename or "<unknown>",
            max(span.begin_line, 1),
        )


@surface("tensor", name="slice")
def tensor_slice(
    tensor: Arg,
    shape: Extents,
    offset: Extents,
    valid_shape: Extents = None,
    drop_dims: Extents = None,
    pad_value: Attr = None,
    clamp: Attr = False,
) -> Expr:
    """A window of a tensor."""
    return _make(
        "tensor.slice", tensor, shape, offset, valid_shape, drop_dims, pad_value, clamp=True if clamp else None
    )


@surface("tile", name="slice")
def tile_slice(
    tile: Arg,
    shape: Extents,
    offset: Extents,
    valid_shape: Extents = None,
    drop_dims: Extents = None,
    pad_value: Attr = None,
) -> Expr:
    """A window of a tile."""
    return _make("tile.slice", tile, shape, offset, valid_shape, drop_dims, pad_value)


@surface("pl", name="slice")
def unified_slice(
    input: Arg,
    shape: Extents,
    offset: Extents,
    valid_shape: Extents = None,
    drop_dims: Extents = None,
    pad_value: Attr = None,
    clamp: Attr = False,
) -> Expr:
    """A window of a tensor or tile."""
    level = level_of(input)
    if level == "tensor":
        return tensor_slice(input, shape, offset, valid_shape, drop_dims, pad_value, clamp)
    if level != "tile":
        raise mixed_error("slice", input)
    if clamp:
        raise TypeError("pl.slice: clamp=True is not supported for a Tile: a tile window must lie inside the tile")
    return tile_slice(input, shape, offset, valid_shape, drop_dims, pad_value)
