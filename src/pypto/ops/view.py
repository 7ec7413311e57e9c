"""Other shapes of the same data: reshape, transpose, valid regions, and the joining of two arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._lazy import np
from ..ir.dtype import DataType
from ..ir.enums import CoreType, MemorySpace, PadValue, TensorLayout, TileLayout
from ..ir.expr import Expr
from ..ir.node import FrozenList
from ..ir.tensor_view_semantics import build_logical_strides_from_layout
from ..ir.type import ScalarType, TensorType, TensorView, TileType, TileView, Type, implicit_tile_view
from .definition import INHERIT, Alias, InferRule, Operand
from .normalize import extent, extents, int_attr
from .partial_window import frozen_copy, plain
from .registry import call, define
from .rules import (
    OperandKindError,
    require_args,
    same_extent,
    show_shape,
    tensor_result,
    tensor_type,
    tile_type,
)
from .surface import Attr, Extents, common_level, surface
from .surface import Operand as Arg
from .transfer import INDEX_LIKE, layout_of, refuse_mx, same_kind, with_valid
from .values import ArrayValue, OutOfBoundsError, combine_masks, fresh
from .windows import (
    ZERO,
    add,
    number,
    optional_tuple,
    provably,
    provably_exceeds,
    reshape_valid,
    reshape_valid_at_run,
    same_rank,
    smaller,
    tuple_operand,
)

D = DataType


# --- reshape ----------------------------------------------------------------------------------------------------------


def _tensor_reshape_infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
    op = "tensor.reshape"
    require_args(op, args, 2, 3)
    source = tensor_type(op, args, 0, plain=True)
    refuse_mx(op, source)
    shape = tuple_operand(op, args, 1, "shape")
    requested = optional_tuple(op, args, 2, "valid_shape")
    packed = source.tensor_view is None or (layout_of(source) is TensorLayout.ND and not source.tensor_view.stride)
    valid = reshape_valid(op, source.shape, source.valid_extents, shape, packed)
    if requested is not None:
        valid = narrowed(op, requested, valid)
    pad = source.tensor_view.pad if source.tensor_view is not None else PadValue.null
    return TensorType(shape, source.dtype, None, TensorView(None, TensorLayout.ND, valid, pad))


def narrowed(op: str, requested: Sequence[Expr], derived: Sequence[Expr]) -> Sequence[Expr]:
    """A valid region that the caller states may only be smaller than the derived one."""
    same_rank(op, "valid_shape", requested, len(derived))
    for i, (want, have) in enumerate(zip(requested, derived, strict=False)):
        if not (provably(ZERO, want) and provably(want, have)):
            raise ValueError(
                f"{op}: valid_shape[{i}] = {show_shape([want])[1:-1]} is not provably within the source-derived extent "
                f"{show_shape([have])[1:-1]}"
            )
    return requested


def _tile_reshape_infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
    op = "tile.reshape"
    require_args(op, args, 2)
    source = tile_type(op, args, 0)
    shape = tuple_operand(op, args, 1, "shape")
    own = source.get_effective_tile_view()
    valid = reshape_valid(op, source.shape, source.valid_extents, shape, own.blayout is TileLayout.row_major)
    if source.tile_view is None:
        view = implicit_tile_view(shape, source.memory_space)
    elif own.slayout is TileLayout.none_box:
        view = implicit_tile_view(shape, None)
    else:
        view = TileView(blayout=own.blayout, slayout=own.slayout, fractal=own.fractal)
    view = view.replace(valid_shape=valid, pad=own.pad, compact=own.compact)
    return TileType(shape, source.dtype, None, view, source.memory_space)


def reshaped(op: str, source: ArrayValue, shape: Sequence[int], valid: Sequence[int] | None = None) -> ArrayValue:
    """The same elements under another shape: a view where NumPy has one, else a copy that refuses writes."""
    source = plain(source)
    size = 1
    for n in shape:
        size *= n
    if size != source.data.size:
        raise OutOfBoundsError(
            f"{op}: cannot reshape {list(source.shape)} of size {source.data.size} into {list(shape)} of size {size}"
        )
    mapped = reshape_valid_at_run(op, source.shape, source.valid, shape)
    data = source.data.reshape(tuple(shape))
    if data.size == 0 or np.shares_memory(data, source.data):
        result = type(source)(data, source.buffer, mapped)
        if not source.data.flags.writeable:
            data.flags.writeable = False
    else:
        mask = source.mask
        result = frozen_copy(data, None if mask is None else mask.reshape(data.shape), mapped)
    return result if not valid else with_valid(result, [min(a, b) for a, b in zip(valid, mapped, strict=False)])


def _tensor_reshape(
    ctx: Any, input: ArrayValue, shape: Sequence[int], valid_shape: Sequence[int] | None = None
) -> ArrayValue:
    return reshaped("tensor.reshape", input, shape, valid_shape)


def _tile_reshape(ctx: Any, input: ArrayValue, shape: Sequence[int]) -> ArrayValue:
    return reshaped("tile.reshape", input, shape)


define(
    "tensor.reshape",
    [Operand("input", "tensor"), Operand("shape", "tuple", "shape"),
     Operand("valid_shape", "tuple", "shape", optional=True)],
    _tensor_reshape_infer,
    doc="the same elements in row-major order under another shape",
    reference=_tensor_reshape,
    alias=Alias.VIEW,
    alias_operand=0,
    output_memory=INHERIT,
)  # fmt: skip
define(
    "tile.reshape",
    [Operand("input", "tile"), Operand("shape", "tuple", "shape")],
    _tile_reshape_infer,
    doc="the same elements in row-major order under another shape",
    reference=_tile_reshape,
    alias=Alias.VIEW,
    alias_operand=0,
    output_memory=INHERIT,
)


@surface("tensor", name="reshape")
def tensor_reshape(tensor: Arg, shape: Extents) -> Expr:
    """The same elements under another shape."""
    return call("tensor.reshape", tensor, extents(shape))


@surface("ir.tensor", name="reshape")
def ir_tensor_reshape(tensor: Arg, shape: Extents, valid_shape: Extents = None) -> Expr:
    """As ``pl.tensor.reshape``, with a valid region that may only narrow."""
    more = () if valid_shape is None else (extents(valid_shape),)
    return call("tensor.reshape", tensor, extents(shape), *more)


@surface("tile", name="reshape")
def tile_reshape(tile: Arg, shape: Extents) -> Expr:
    """The same elements under another shape."""
    return call("tile.reshape", tile, extents(shape))


@surface("pl", name="reshape")
def unified_reshape(input: Arg, shape: Extents) -> Expr:
    """The same elements under another shape."""
    level = common_level("reshape", input)
    return call(f"{level}.reshape", input, extents(shape))


# --- transpose --------------------------------------------------------------------------------------------------------


def _axes(op: str, args: Sequence[Expr], rank: int) -> tuple[int, int]:
    if rank < 2:
        raise ValueError(f"{op} requires rank >= 2, got {rank}")
    axes = []
    for i in (1, 2):
        axis = number(args[i])
        if axis is None:
            raise ValueError(f"{op} requires axis{i} to be a compile-time constant")
        if not -rank <= axis < rank:
            raise ValueError(f"{op}: axis{i} {axis} is out of range for rank {rank}")
        axes.append(axis % rank)
    if axes[0] == axes[1]:
        raise ValueError(f"{op} requires two different axes, got {axes[0]} twice")
    return axes[0], axes[1]


def swapped(items: Sequence[Any], a: int, b: int) -> FrozenList[Any]:
    """The items with two of them exchanged."""
    result = list(items)
    result[a], result[b] = result[b], result[a]
    return FrozenList(result)


_FLIPPED = {TensorLayout.ND: TensorLayout.DN, TensorLayout.DN: TensorLayout.ND}


def _tensor_transpose_infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
    op = "tensor.transpose"
    require_args(op, args, 3, 4)
    source = tensor_type(op, args, 0, plain=True)
    refuse_mx(op, source)
    rank = len(source.shape)
    a, b = _axes(op, args, rank)
    view, layout = source.tensor_view, layout_of(source)
    shape, valid = swapped(source.shape, a, b), swapped(source.valid_extents, a, b)
    requested = optional_tuple(op, args, 3, "valid_shape")
    if requested is not None:
        same_rank(op, "valid_shape", requested, rank)
        for i, (want, have) in enumerate(zip(requested, valid, strict=False)):
            if provably_exceeds(want, have):
                raise ValueError(f"{op}: valid_shape[{i}] exceeds the source-derived extent {show_shape([have])[1:-1]}")
        valid = requested
    given = view.stride if view is not None else None
    strides = swapped(given or build_logical_strides_from_layout(source.shape, layout), a, b)
    if {a, b} == {rank - 2, rank - 1}:
        layout = _FLIPPED[layout]
    packed = layout is TensorLayout.ND and all(
        map(same_extent, strides, build_logical_strides_from_layout(shape, layout))
    )
    pad = view.pad if view is not None else PadValue.null
    return TensorType(shape, source.dtype, None, TensorView(None if packed else strides, layout, valid, pad))


def _tile_transpose_infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
    op = "tile.transpose"
    require_args(op, args, 3, 4)
    source = tile_type(op, args, 0)
    a, b = _axes(op, args, len(source.shape))
    if len(args) == 4:
        scratch = tile_type(op, args, 3)
        if scratch.dtype is not source.dtype or len(scratch.shape) != len(source.shape):
            raise ValueError(f"{op} requires tmp to have the dtype and rank of the input")
    shape, valid = swapped(source.shape, a, b), swapped(source.valid_extents, a, b)
    view = implicit_tile_view(shape, source.memory_space).replace(valid_shape=valid)
    return TileType(shape, source.dtype, None, view, source.memory_space)


def exchanged(source: ArrayValue, a: int, b: int) -> ArrayValue:
    """The view with two axes exchanged."""
    source = plain(source)
    rank = len(source.shape)
    valid = swapped(source.valid, a % rank, b % rank)
    return type(source)(source.data.swapaxes(a, b), source.buffer, valid)


def _tensor_transpose(
    ctx: Any, input: ArrayValue, axis1: int, axis2: int, valid_shape: Sequence[int] | None = None
) -> ArrayValue:
    result = exchanged(input, axis1, axis2)
    return result if not valid_shape else with_valid(result, valid_shape)


def _tile_transpose(ctx: Any, input: ArrayValue, axis1: int, axis2: int, tmp: Any = None) -> ArrayValue:
    view = exchanged(input, axis1, axis2)
    return fresh(np.array(view.data, order="C"), view.mask, view.valid)


define(
    "tensor.transpose",
    [Operand("input", "tensor"), Operand("axis1", "const"), Operand("axis2", "const"),
     Operand("valid_shape", "tuple", "shape", optional=True)],
    _tensor_transpose_infer,
    doc="two axes exchanged, as a strided view",
    reference=_tensor_transpose,
    alias=Alias.VIEW,
    alias_operand=0,
)  # fmt: skip
define(
    "tile.transpose",
    [Operand("input", "tile"), Operand("axis1", "const"), Operand("axis2", "const"),
     Operand("tmp", "tile", "scratch", optional=True)],
    _tile_transpose_infer,
    doc="two axes exchanged, as a copy",
    reference=_tile_transpose,
    output_memory=INHERIT,
    not_in_place=True,
)  # fmt: skip


def _axis(axis: Any, name: str) -> Expr:
    return extent(int_attr(axis, f"transpose {name}"))


@surface("tensor", name="transpose")
def tensor_transpose(tensor: Arg, axis1: Attr, axis2: Attr) -> Expr:
    """Two axes exchanged."""
    return call("tensor.transpose", tensor, _axis(axis1, "axis1"), _axis(axis2, "axis2"))


@surface("ir.tensor", name="transpose")
def ir_tensor_transpose(tensor: Arg, axis1: Attr, axis2: Attr, valid_shape: Extents = None) -> Expr:
    """As ``pl.tensor.transpose``, with a valid region in output order."""
    more = () if valid_shape is None else (extents(valid_shape),)
    return call("tensor.transpose", tensor, _axis(axis1, "axis1"), _axis(axis2, "axis2"), *more)


@surface("tile", name="transpose")
def tile_transpose(tile: Arg, axis1: Attr, axis2: Attr, tmp_tile: Arg = None) -> Expr:
    """Two axes exchanged."""
    more = () if tmp_tile is None else (tmp_tile,)
    return call("tile.transpose", tile, _axis(axis1, "axis1"), _axis(axis2, "axis2"), *more)


@surface("ir.tile", name="transpose")
def ir_tile_transpose(tile: Arg, axis1: Attr, axis2: Attr, tmp: Arg = None) -> Expr:
    """Two axes exchanged."""
    return tile_transpose(tile, axis1, axis2, tmp)


@surface("pl", name="transpose")
def unified_transpose(input: Arg, axis1: Attr, axis2: Attr) -> Expr:
    """Two axes exchanged."""
    level = common_level("transpose", input)
    return call(f"{level}.transpose", input, _axis(axis1, "axis1"), _axis(axis2, "axis2"))


# --- tile.transpose_view ----------------------------------------------------------------------------------------------

_FLIPPED_TILE = {
    TileLayout.row_major: TileLayout.col_major,
    TileLayout.col_major: TileLayout.row_major,
    TileLayout.none_box: TileLayout.none_box,
}


def _transpose_view_infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
    op = "tile.transpose_view"
    require_args(op, args, 1)
    source = tile_type(op, args, 0)
    rank = len(source.shape)
    if rank < 2:
        raise ValueError(f"{op} requires rank >= 2, got {rank}")
    own = source.get_effective_tile_view()
    view = own.replace(
        valid_shape=swapped(source.valid_extents, rank - 2, rank - 1),
        stride=None,
        blayout=_FLIPPED_TILE[own.blayout],
        slayout=_FLIPPED_TILE[own.slayout],
    )
    return TileType(swapped(source.shape, rank - 2, rank - 1), source.dtype, None, view, source.memory_space)


define(
    "tile.transpose_view",
    [Operand("input", "tile")],
    _transpose_view_infer,
    doc="the last two axes exchanged, without moving a byte",
    reference=lambda ctx, input: exchanged(input, -2, -1),
    alias=Alias.VIEW,
    alias_operand=0,
    output_memory=INHERIT,
)


@surface("tile")
def transpose_view(tile: Arg) -> Expr:
    """The last two axes exchanged, without moving a byte."""
    return call("tile.transpose_view", tile)


# --- set_validshape ---------------------------------------------------------------------------------------------------


def _set_validshape_infer(level: str) -> InferRule:
    op = f"{level}.set_validshape"

    def infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 3)
        kind: Any = tensor_type(op, args, 0, plain=True) if level == "tensor" else tile_type(op, args, 0)
        if len(kind.shape) != 2:
            raise ValueError(f"{op} requires a 2D {level}, got rank {len(kind.shape)}")
        for i, what in ((1, "valid_rows"), (2, "valid_cols")):
            scalar = args[i].type
            if type(scalar) is not ScalarType or scalar.dtype not in INDEX_LIKE:
                raise OperandKindError(f"{op} requires {what} to be an INT64, UINT64 or INDEX scalar, but got {scalar}")
            value, bound = number(args[i]), number(kind.shape[i - 1])
            if value is not None and value < 0:
                raise ValueError(f"{op}: {what} must be >= 0, got {value}")
            if value is not None and bound is not None and value > bound:
                raise ValueError(f"{op}: {what} {value} exceeds {level} bound {bound}")
        valid = FrozenList(args[1:3])
        if level == "tensor":
            view = kind.tensor_view or TensorView()
            return same_kind(kind, kind.shape, TensorView(view.stride, view.layout, valid, view.pad))
        tile_view = kind.get_effective_tile_view().replace(valid_shape=valid)
        return TileType(kind.shape, kind.dtype, None, tile_view, kind.memory_space)

    return infer


def _set_validshape(op: str) -> Any:
    def reference(ctx: Any, value: ArrayValue, valid_rows: int, valid_cols: int) -> ArrayValue:
        for what, n, bound in (("valid_rows", valid_rows, value.shape[0]), ("valid_cols", valid_cols, value.shape[1])):
            if not 0 <= n <= bound:
                raise OutOfBoundsError(f"{op}: {what} {n} is outside [0, {bound}]")
        return with_valid(value, (valid_rows, valid_cols))

    return reference


for _level in ("tensor", "tile"):
    define(
        f"{_level}.set_validshape",
        [Operand(_level, _level), Operand("valid_rows", "scalar", "shape"), Operand("valid_cols", "scalar", "shape")],
        _set_validshape_infer(_level),
        doc="the same data with another valid region; nothing is written",
        reference=_set_validshape(f"{_level}.set_validshape"),
        effects_declared=_level == "tensor",
        alias=Alias.IS if _level == "tensor" else Alias.VIEW,
        alias_operand=0,
        output_memory=INHERIT,
    )


@surface("tensor", name="set_validshape")
def tensor_set_validshape(tensor: Arg, valid_rows: Arg, valid_cols: Arg) -> Expr:
    """The same tensor with another valid region."""
    return call("tensor.set_validshape", tensor, extent(valid_rows), extent(valid_cols))


@surface("tile", name="set_validshape")
def tile_set_validshape(tile: Arg, valid_rows: Arg, valid_cols: Arg) -> Expr:
    """The same tile with another valid region."""
    return call("tile.set_validshape", tile, extent(valid_rows), extent(valid_cols))


@surface("pl", name="set_validshape")
def unified_set_validshape(input: Arg, valid_rows: Arg, valid_cols: Arg) -> Expr:
    """The same tensor or tile with another valid region."""
    level = common_level("set_validshape", input)
    return call(f"{level}.set_validshape", input, extent(valid_rows), extent(valid_cols))


# --- concat -----------------------------------------------------------------------------------------------------------


def _concat_infer(level: str) -> InferRule:
    op = f"{level}.concat"

    def infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 2)
        a: Any
        b: Any
        if level == "tensor":
            a, b = tensor_type(op, args, 0, plain=True), tensor_type(op, args, 1, plain=True)
        else:
            a, b = tile_type(op, args, 0), tile_type(op, args, 1)
        if len(a.shape) != 2 or len(b.shape) != 2:
            raise ValueError(f"{op} requires 2D operands, got ranks {len(a.shape)} and {len(b.shape)}")
        if a.dtype is not b.dtype:
            raise ValueError(f"{op} requires both operands to have the same dtype, got {a.dtype} and {b.dtype}")
        rows = number(a.shape[0]), number(b.shape[0])
        if None not in rows and rows[0] != rows[1]:
            raise ValueError(f"{op} requires both operands to have the same row count, got {rows[0]} and {rows[1]}")
        if not same_extent(a.valid_extents[1], a.shape[1]):
            raise ValueError(
                f"{op} requires src0 to be fully valid in its columns: the gap between "
                f"{show_shape(a.valid_extents)} and {show_shape(a.shape)} would lie inside the result"
            )
        shape = FrozenList([a.shape[0], add(a.shape[1], b.shape[1])])
        valid: Any = None
        if a.valid_extents is not a.shape or b.valid_extents is not b.shape:
            rows_valid = smaller(a.valid_extents[0], b.valid_extents[0])
            valid = FrozenList([rows_valid, add(a.shape[1], b.valid_extents[1])])
        if level == "tensor":
            return tensor_result(shape, a.dtype, valid)
        view = implicit_tile_view(shape, None).replace(valid_shape=shape if valid is None else valid)
        return TileType(shape, a.dtype, None, view)

    return infer


def _concat(ctx: Any, src0: ArrayValue, src1: ArrayValue) -> ArrayValue:
    a, b = plain(src0), plain(src1)
    data = np.concatenate([a.data, b.data], 1)
    masks = [m if m is not None else np.ones(v.shape, np.bool_) for m, v in ((a.mask, a), (b.mask, b))]
    mask = None if a.mask is None and b.mask is None else np.concatenate(masks, 1)
    valid = (min(a.valid[0], b.valid[0]), a.valid[1] + b.valid[1])
    if a.valid[1] != a.shape[1]:
        raise OutOfBoundsError(f"concat: src0 has only {a.valid[1]} of {a.shape[1]} valid columns")
    return fresh(data, combine_masks(mask), valid)


for _level in ("tensor", "tile"):
    define(
        f"{_level}.concat",
        [Operand("src0", _level), Operand("src1", _level)],
        _concat_infer(_level),
        doc="src0 and src1 side by side",
        reference=_concat,
        priority="full",
        **(
            {
                "input_memory": ((MemorySpace.Vec,), (MemorySpace.Vec,)),
                "output_memory": MemorySpace.Vec,
                "core": CoreType.VECTOR,
                "not_in_place": True,
            }
            if _level == "tile"
            else {}
        ),
    )


def _concat_surface(op: str) -> Any:
    def concat(src0: Arg, src1: Arg) -> Expr:
        return call(op, src0, src1)

    return concat


surface("tensor", name="concat")(_concat_surface("tensor.concat"))
surface("tile", name="concat")(_concat_surface("tile.concat"))


@surface("pl", name="concat")
def unified_concat(src0: Arg, src1: Arg) -> Expr:
    """Two arrays side by side."""
    level = common_level("concat", src0, src1)
    return call(f"{level}.concat", src0, src1)


__all__ = ["exchanged", "narrowed", "reshaped", "swapped"]
