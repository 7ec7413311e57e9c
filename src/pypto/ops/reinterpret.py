"""The same bytes read in another way: another layout or shape (``tensor.view``), another element type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._lazy import np
from ..ir.dtype import DataType
from ..ir.enums import PadValue, TensorLayout, TileLayout
from ..ir.expr import Expr, MakeTuple, Mul, index_const
from ..ir.location import current_span
from ..ir.node import FrozenList
from ..ir.tensor_view_semantics import build_logical_strides_from_layout, check_canonical_view
from ..ir.type import DistributedTensorType, TensorType, TensorView, TileType, Type, extent_equal
from .definition import INHERIT, REQUIRED, UNSET, Alias, InferRule, Operand
from .normalize import extents
from .numpy_types import numpy_dtype
from .partial_window import ReinterpretedValue, frozen_copy, plain
from .registry import call, define
from .rules import require_args, require_dtype, same_extent, show_shape, tensor_type, tile_type
from .surface import Attr, Extents, common_level, surface
from .surface import Operand as Arg
from .transfer import layout_of, refuse_mx, same_kind, with_valid
from .values import ArrayValue
from .view import exchanged, narrowed, reshaped, swapped
from .windows import ONE, check_volume, is_zero, multiply, number, optional_tuple, volume

D = DataType
ND, DN = TensorLayout.ND, TensorLayout.DN


# --- tensor.view ------------------------------------------------------------------------------------------------------


def _packed(source: TensorType, layout: TensorLayout) -> bool:
    view = source.tensor_view
    if view is None or not view.stride:
        return True
    return all(map(same_extent, view.stride, build_logical_strides_from_layout(source.shape, layout)))


def _view_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    op = "tensor.view"
    require_args(op, args, 1, 3)
    source = tensor_type(op, args, 0)
    refuse_mx(op, source)
    shape = optional_tuple(op, args, 1, "shape")
    requested = optional_tuple(op, args, 2, "valid_shape")
    have = layout_of(source)
    want: TensorLayout = kwargs.get("layout", have)
    if TensorLayout.NZ in (have, want):
        raise ValueError(f"{op}: NZ layout is not allowed on tensors")
    if want not in (ND, DN):
        raise ValueError(f"{op} does not support MX-layout tensors")
    if shape is None and "layout" not in kwargs:
        raise ValueError(f"{op} requires at least one of shape and layout")
    view = source.tensor_view or TensorView()
    if view.stride:
        canonical, why = check_canonical_view(source.shape, view.stride, have)
        if not canonical:
            raise ValueError(f"{op}: the source strides are not canonical for layout {have.name}: {why}")
    rank = len(source.shape)
    if want is not have and rank < 2:
        raise ValueError(f"{op}: a layout change requires rank >= 2, got {rank}")
    if shape is None:
        return _layout_only(op, source, view, have, want, requested)
    if not _packed(source, have):
        raise ValueError(f"{op} with a shape requires a packed source, got strides {show_shape(view.stride)}")
    for i, dim in enumerate(shape):
        value = number(dim)
        if value is not None and value <= 0:
            raise ValueError(f"{op}: shape[{i}] must be positive, got {value}")
    check_volume(op, source.shape, shape)
    valid = _view_valid(op, source, shape, requested, have, want)
    strides = build_logical_strides_from_layout(shape, want) if want is DN else None
    return same_kind(source, shape, TensorView(strides, want, valid, view.pad))


def _layout_only(
    op: str,
    source: TensorType,
    view: TensorView,
    have: TensorLayout,
    want: TensorLayout,
    requested: Sequence[Expr] | None,
) -> Type:
    shape, valid, strides = source.shape, source.valid_extents, view.stride
    if want is not have:
        a, b = len(shape) - 2, len(shape) - 1
        shape, valid = swapped(shape, a, b), swapped(valid, a, b)
        strides = swapped(strides, a, b) if strides else strides
    if not strides and want is DN:
        strides = FrozenList(build_logical_strides_from_layout(shape, want))
    if requested is not None:
        valid = FrozenList(narrowed(op, requested, valid))
    return same_kind(source, shape, TensorView(strides or None, want, valid, view.pad))


def _view_valid(
    op: str,
    source: TensorType,
    shape: Sequence[Expr],
    requested: Sequence[Expr] | None,
    have: TensorLayout,
    want: TensorLayout,
) -> Sequence[Expr]:
    if all(map(same_extent, source.valid_extents, source.shape)):
        return shape if requested is None else narrowed(op, requested, shape)
    if len(shape) == len(source.shape) and all(map(same_extent, shape, source.shape)) and have is want:
        return source.valid_extents if requested is None else narrowed(op, requested, source.valid_extents)
    if requested is None:
        raise ValueError(f"{op} of a partially valid source requires the valid_shape of the target")
    last, lead = source.shape[-1], source.shape[:-1]
    merged: Expr = ONE
    for dim in lead:
        merged = multiply(merged, dim)
    rows_form = len(shape) == 2 and same_extent(shape[1], last) and same_extent(shape[0], merged)
    flat_form = len(shape) == 2 and number(shape[0]) == 1
    if have is not ND or want is not ND or not (rows_form or flat_form):
        raise ValueError(
            f"{op} of a partially valid source accepts only an ND collapse to [{show_shape([merged])[1:-1]}, "
            f"{show_shape([last])[1:-1]}] or [1, total], got {show_shape(shape)}"
        )
    checked = source.shape[:-1] if rows_form else source.shape
    partial = source.valid_extents[: len(checked)]
    free = 0
    while free < len(checked) - 1 and same_extent(partial[free], ONE):
        free += 1
    if not all(map(same_extent, partial[free + 1 :], checked[free + 1 :])):
        raise ValueError(f"{op}: the leading valid dimensions {show_shape(partial)} form no contiguous prefix")
    return requested


def _is_dn(data: Any) -> bool:
    """Whether the bytes lie column-major (and not row-major as well)."""
    return data.ndim >= 2 and not data.flags.c_contiguous and data.swapaxes(-1, -2).flags.c_contiguous


def _view(
    ctx: Any,
    input: ArrayValue,
    shape: Sequence[int] | None = None,
    valid_shape: Sequence[int] | None = None,
    *,
    layout: TensorLayout | None = None,
) -> ArrayValue:
    source = plain(input)
    if not shape:
        result = exchanged(source, -2, -1) if _changes_layout(ctx, source, layout) else source
        return with_valid(result, valid_shape) if valid_shape else result
    if _is_dn(source.data):
        source = exchanged(source, -2, -1)
    to_dn = isinstance(ctx.type, TensorType) and layout_of(ctx.type) is DN
    target = [*shape[:-2], shape[-1], shape[-2]] if to_dn else list(shape)
    if not source.fully_valid:  # the declared region replaces the source's
        source = with_valid(source, source.shape)
    result = reshaped("tensor.view", source, target)
    if to_dn:
        result = exchanged(result, -2, -1)
    return with_valid(result, valid_shape) if valid_shape else result


def _changes_layout(ctx: Any, source: ArrayValue, layout: TensorLayout | None) -> bool:
    """Whether a view that names a layout only swaps the last two axes.

    The result type tells, where its shape is static and not square; else the bytes do.
    """
    a, b = source.shape[-2:] if len(source.shape) > 1 else (1, 1)
    static = [number(dim) for dim in ctx.type.shape[-2:]]
    if a != b and static == [a, b]:
        return False
    if a != b and static == [b, a]:
        return True
    return _is_dn(source.data) == (layout is ND)


define(
    "tensor.view",
    [Operand("input", "window"), Operand("shape", "tuple", "shape", optional=True),
     Operand("valid_shape", "tuple", "shape", optional=True)],
    _view_infer,
    doc="the same bytes under another shape or layout",
    kwargs={"layout": (TensorLayout, UNSET)},
    reference=_view,
    alias=Alias.VIEW,
    alias_operand=0,
    output_memory=INHERIT,
)  # fmt: skip


@surface("tensor")
def view(tensor: Arg, shape: Extents = None, valid_shape: Extents = None, *, layout: Attr = None) -> Expr:
    """The same bytes under another shape or layout."""
    more: list[Expr] = []
    if shape is not None:
        more.append(extents(shape))
    if valid_shape is not None:
        more += [] if more else [MakeTuple(FrozenList(), current_span())]
        more.append(extents(valid_shape))
    return call("tensor.view", tensor, *more, layout=layout)


# --- reinterpret_view -------------------------------------------------------------------------------------------------

_DTYPES = (
    D.INT8, D.UINT8, D.INT16, D.UINT16, D.INT32, D.UINT32, D.INT64, D.UINT64, D.FP16, D.BF16, D.FP32,
)  # fmt: skip


def _scaled(op: str, extent: Expr, have: int, want: int, what: str) -> Expr:
    """An extent of the contiguous axis counted in elements of ``want`` bits."""
    if have == want:
        return extent
    if have > want:
        factor = have // want
        return multiply(extent, index_const(factor))
    factor, value = want // have, number(extent)
    if value is not None and value % factor == 0:
        return index_const(value // factor)
    if type(extent) is Mul:
        for side, other in ((extent.left, extent.right), (extent.right, extent.left)):
            if number(side) == factor:
                return other
    raise ValueError(
        f"{op} cannot reinterpret {what} {show_shape([extent])[1:-1]}: it is not divisible by {factor}, the ratio "
        f"of the element sizes"
    )


def _reinterpret_infer(level: str) -> InferRule:
    op = f"{level}.reinterpret_view"

    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 1, 2)
        dtype: DataType = kwargs["dtype"]
        source: Any
        if level == "tensor":
            source = tensor_type(op, args, 0)
            _check_tensor(op, source)
            second_last = layout_of(source) is DN
        else:
            source = tile_type(op, args, 0)
            _check_tile(op, source)
            second_last = source.get_effective_tile_view().blayout is TileLayout.col_major
        require_dtype(op, "source", source.dtype, _DTYPES)
        require_dtype(op, "target", dtype, _DTYPES)
        if source.dtype is dtype:
            raise ValueError(f"{op} cannot reinterpret {dtype} as itself")
        rank = len(source.shape)
        axis = rank - 2 if second_last else rank - 1
        if axis < 0:
            raise ValueError(f"{op} cannot reinterpret rank {rank} in this layout")
        have, want = source.dtype.get_bit(), dtype.get_bit()
        shape, valid = list(source.shape), list(source.valid_extents)
        full = [extent_equal(v, s) for v, s in zip(valid, shape, strict=False)]
        shape[axis] = _scaled(op, shape[axis], have, want, "extent")
        valid[axis] = shape[axis] if full[axis] else _scaled(op, valid[axis], have, want, "valid extent")
        explicit = optional_tuple(op, args, 1, "shape")
        if explicit is not None and not (len(explicit) == rank and all(map(same_extent, explicit, shape))):
            if not all(full):
                raise ValueError(f"{op} cannot reinterpret a partially valid source under another shape")
            before, after = volume(source.shape), volume(explicit)
            if before is None or after is None or before * have != after * want:
                raise ValueError(
                    f"{op} requires equal source and target byte sizes, got {show_shape(source.shape)} of "
                    f"{source.dtype} and {show_shape(explicit)} of {dtype}"
                )
            shape, valid = list(explicit), list(explicit)
        if level == "tensor":
            pad = source.tensor_view.pad if source.tensor_view is not None else PadValue.null
            pad = pad if pad is PadValue.zero else PadValue.null
            layout = layout_of(source)
            strides = source.tensor_view.stride if source.tensor_view is not None else None
            strides = build_logical_strides_from_layout(shape, layout) if strides else None
            return TensorType(FrozenList(shape), dtype, None, TensorView(strides, layout, FrozenList(valid), pad))
        view = source.get_effective_tile_view()
        pad = view.pad if view.pad is PadValue.zero else PadValue.null
        view = view.replace(valid_shape=FrozenList(valid), pad=pad, stride=None)
        return TileType(FrozenList(shape), dtype, None, view, source.memory_space)

    return infer


def _check_tensor(op: str, source: TensorType) -> None:
    if type(source) is DistributedTensorType:
        raise ValueError(f"{op} cannot reinterpret a distributed tensor")
    refuse_mx(op, source)
    layout = layout_of(source)
    if layout is TensorLayout.NZ:
        raise ValueError(f"{op} cannot reinterpret an NZ tensor")
    if not _packed(source, layout):
        raise ValueError(f"{op} supports packed tensors only")


def _check_tile(op: str, source: TileType) -> None:
    view = source.get_effective_tile_view()
    if view.slayout is not TileLayout.none_box:
        raise ValueError(f"{op} cannot reinterpret a boxed tile (inner layout {view.slayout.name})")
    if view.start_offset is not None and not is_zero(view.start_offset):
        raise ValueError(f"{op} cannot reinterpret a tile with a start offset")
    if view.stride:
        raise ValueError(f"{op} supports packed tiles only")


def _reinterpret(op: str) -> Any:
    def reference(ctx: Any, data: ArrayValue, shape: Sequence[int] | None = None, **_: Any) -> ArrayValue:
        source = plain(data)
        dtype = numpy_dtype(ctx.type.dtype)
        ratio = (source.data.itemsize, dtype.itemsize)
        axis = _contiguous_axis(ctx, source)
        valid = list(source.valid)
        valid[axis] = valid[axis] * ratio[0] // ratio[1]
        moved = source.data.swapaxes(axis, -1)
        flat = np.ascontiguousarray(moved)
        viewed = flat.view(dtype)
        shared = np.shares_memory(viewed, source.data)
        viewed = viewed.swapaxes(axis, -1)
        if not shared:
            return frozen_copy(viewed.reshape(tuple(shape)) if shape else viewed, None, shape or valid)
        view = ReinterpretedValue(viewed, source.buffer, valid)
        return reshaped(op, view, shape) if shape and tuple(shape) != viewed.shape else view

    return reference


def _contiguous_axis(ctx: Any, source: ArrayValue) -> int:
    """The axis that a tensor or tile of the result's layout stores without gaps."""
    kind = ctx.type
    if isinstance(kind, TileType):
        column = kind.get_effective_tile_view().blayout is TileLayout.col_major
    else:
        column = layout_of(kind) is DN
    return len(source.shape) - 2 if column else len(source.shape) - 1


for _level in ("tensor", "tile"):
    define(
        f"{_level}.reinterpret_view",
        [Operand("data", _level), Operand("shape", "tuple", "shape", optional=True)],
        _reinterpret_infer(_level),
        doc="the same bytes as elements of another type",
        kwargs={"dtype": (DataType, REQUIRED)},
        reference=_reinterpret(f"{_level}.reinterpret_view"),
        alias=Alias.VIEW,
        alias_operand=0,
        output_memory=INHERIT,
        printed="reinterpret_view",
        priority="full",
    )


def _reinterpret_surface(op: str) -> Any:
    def reinterpret_view(data: Arg, dtype: Attr, *, shape: Extents = None) -> Expr:
        more = () if shape is None else (extents(shape),)
        return call(op, data, *more, dtype=dtype)

    return reinterpret_view


surface("tensor", name="reinterpret_view")(_reinterpret_surface("tensor.reinterpret_view"))
surface("tile", name="reinterpret_view")(_reinterpret_surface("tile.reinterpret_view"))


@surface("pl", name="reinterpret_view")
def unified_reinterpret_view(data: Arg, dtype: Attr, *, shape: Extents = None) -> Expr:
    """The same bytes as elements of another type."""
    level = common_level("reinterpret_view", data)
    more = () if shape is None else (extents(shape),)
    return call(f"{level}.reinterpret_view", data, *more, dtype=dtype)


__all__ = ["view"]
