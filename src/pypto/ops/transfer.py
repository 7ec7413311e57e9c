"""Moving data: between global memory and tiles, and between on-chip memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._lazy import np
from ..ir.dtype import DataType
from ..ir.enums import ArgEffect, AtomicType, CompactMode, MemorySpace, TensorLayout, TileLayout, WriteChannel
from ..ir.expr import Expr
from ..ir.node import FrozenList
from ..ir.type import (
    DistributedTensorType,
    TensorType,
    TensorView,
    TileType,
    TileView,
    Type,
    implicit_tile_view,
)
from .definition import DEFERRED, REQUIRED, UNSET, Alias, Operand, Window
from .normalize import extent, extents
from .numpy_types import numpy_dtype
from .partial_window import PartialWindow, plain, require_writable
from .registry import call, define
from .rules import OperandKindError, require_args, same_extent, tensor_type, tile_type
from .surface import Attr, Extents, surface
from .surface import Operand as Arg
from .values import ArrayValue, empty, fresh
from .windows import (
    CLAMPED,
    EXTRACT,
    number,
    optional_tuple,
    out_of_bounds,
    read_window,
    read_window_at_run,
    reshape_valid_at_run,
    same_rank,
    tuple_operand,
    write_region,
    write_region_at_run,
)

D = DataType
M = MemorySpace
ROW, COL, FLAT = TileLayout.row_major, TileLayout.col_major, TileLayout.none_box
MX_LAYOUTS = (TensorLayout.MX_A_ZZ, TensorLayout.MX_B_NN)
INDEX_LIKE = (D.INDEX, D.INT64, D.UINT64)
ATOMIC_DTYPES = (D.FP32, D.BF16, D.FP16, D.INT32, D.INT16, D.INT8)


def layout_of(kind: TensorType) -> TensorLayout:
    """The layout of a tensor type."""
    return kind.tensor_view.layout if kind.tensor_view is not None else TensorLayout.ND


def refuse_mx(op: str, kind: TensorType) -> None:
    """Most ops have no meaning on MX layouts."""
    if layout_of(kind) in MX_LAYOUTS:
        raise ValueError(f"{op} does not support MX-layout tensors")


# --- run-time helpers -------------------------------------------------------------------------------------------------


def with_valid(value: ArrayValue, valid: Sequence[int]) -> ArrayValue:
    """The same bytes with another valid region."""
    if tuple(valid) == value.valid:
        return value
    if type(value) is PartialWindow:
        return PartialWindow(value.inner, value.buffer, value.full_shape, valid)
    return type(value)(value.data, value.buffer, valid)


def commit(
    ctx: Any, target: ArrayValue, window: tuple[Any, ...], values: Any, mask: Any, accumulate: bool = False
) -> None:
    """Store values, remembering the statement that first stored undefined ones."""
    if target.write(window, values, mask, accumulate) and target.buffer.poisoned_at is None:
        target.buffer.poisoned_at = ctx.span


def of_rank(op: str, source: ArrayValue, rank: int) -> ArrayValue:
    """The source seen with ``rank`` axes: leading axes are merged, or unit axes put in front."""
    have = len(source.shape)
    if have == rank:
        return source
    source = plain(source)
    if have < rank:
        shape = (1,) * (rank - have) + source.shape
        return source.view(source.data.reshape(shape), (1,) * (rank - have) + source.valid)
    shape = (-1, *source.shape[have - rank + 1 :])
    data = source.data.reshape(shape)
    valid = reshape_valid_at_run(op, source.shape, source.valid, data.shape)
    if np.shares_memory(data, source.data) or data.size == 0:
        return source.view(data, valid)
    mask = source.mask
    return fresh(data, None if mask is None else mask.reshape(data.shape), valid)


# --- tile.load --------------------------------------------------------------------------------------------------------


def _load_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    op = "tile.load"
    require_args(op, args, 3, 4)
    source = tensor_type(op, args, 0)
    offsets = tuple_operand(op, args, 1, "offsets")
    shapes = tuple_operand(op, args, 2, "shapes")
    requested = optional_tuple(op, args, 3, "valid_shape")
    rank = len(shapes)
    same_rank(op, "offsets", offsets, rank)
    if requested is not None:
        same_rank(op, "valid_shape", requested, rank)
    if len(source.shape) != rank:
        valid: Sequence[Expr] = shapes if requested is None else requested
    else:
        valid = read_window(
            op,
            source.shape,
            source.valid_extents,
            offsets,
            shapes,
            requested,
            clamp=bool(kwargs.get("clamp", False)),
            remedy=CLAMPED,
        )
    space = kwargs.get("target_memory")
    layout = layout_of(source)
    if layout in MX_LAYOUTS:
        view = _mx_view(op, source, layout, rank, space)
    else:
        view = _load_view(shapes, layout, space)
    return TileType(shapes, source.dtype, None, view.replace(valid_shape=valid), space)


def _load_view(shapes: Sequence[Expr], layout: TensorLayout, space: MemorySpace | None) -> TileView:
    if space is M.Mat:
        if len(shapes) == 2 and number(shapes[0]) == 1:
            return TileView(blayout=ROW, slayout=FLAT)
        return TileView(blayout=ROW, slayout=COL) if layout is TensorLayout.DN else TileView(blayout=COL, slayout=ROW)
    if shapes and number(shapes[-1]) == 1:
        return TileView(blayout=COL)
    return TileView()


def _mx_view(op: str, source: TensorType, layout: TensorLayout, rank: int, space: MemorySpace | None) -> TileView:
    if rank != 2 or len(source.shape) != 2:
        raise ValueError(f"{op} of an MX-layout tensor requires a 2D window")
    if source.dtype not in (D.UINT8, D.FP8E8M0):
        raise ValueError(f"{op} of an MX-layout tensor requires dtype UINT8 or FP8E8M0, got {source.dtype}")
    if source.tensor_view is not None and source.tensor_view.stride:
        raise ValueError(f"{op} of an MX-layout tensor requires a packed tensor")
    if space is not M.Mat:
        raise ValueError(f"{op} of an MX-layout tensor requires target_memory=Mat")
    order = ROW if layout is TensorLayout.MX_A_ZZ else COL
    return TileView(blayout=order, slayout=order, fractal=32)


def _load(
    ctx: Any,
    tensor: ArrayValue,
    offsets: Sequence[int],
    shapes: Sequence[int],
    valid_shape: Sequence[int] | None = None,
    *,
    clamp: bool = False,
    **_: Any,
) -> ArrayValue:
    source = of_rank("tile.load", tensor, len(shapes))
    valid = read_window_at_run(
        "tile.load", source.shape, source.valid, offsets, shapes, valid_shape or None, clamp=clamp
    )
    index = tuple(slice(o, o + v) for o, v in zip(offsets, valid, strict=False))
    part, mask = source.data[index], source.mask
    if mask is not None:
        mask = mask[index]
    rank = len(ctx.type.shape) if isinstance(ctx.type, TileType) else len(shapes)
    shape = tuple(shapes)
    if rank != len(shape) and rank >= 1:  # the compiler flattened the tile but kept the window's rank
        shape = _flat(shape, rank)
        valid = _flat(valid, rank)
        part = part.reshape(valid)
        mask = None if mask is None else mask.reshape(valid)
    if valid == shape:
        return fresh(np.array(part, order="C"), mask)
    result = empty(shape, part.dtype)
    result.valid = valid
    result.write(result.valid_window(), part, mask)
    return result


def _flat(shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
    cut = len(shape) - rank + 1
    if cut < 1:
        return (1,) * (rank - len(shape)) + shape
    leading = 1
    for n in shape[:cut]:
        leading *= n
    return (leading, *shape[cut:])


define(
    "tile.load",
    [Operand("tensor", "window"), Operand("offsets", "tuple", "index"), Operand("shapes", "tuple", "shape"),
     Operand("valid_shape", "tuple", "shape", optional=True)],
    _load_infer,
    doc="copy a window of a tensor into a tile; what lies outside the valid region is undefined",
    kwargs={"target_memory": (MemorySpace, UNSET), "clamp": (bool, False)},
    reference=_load,
    windows={0: Window(1, (3, 2))},
    output_memory=DEFERRED,
)  # fmt: skip


@surface("tile", "pl")
def load(
    tensor: Arg,
    offsets: Extents,
    shapes: Extents,
    valid_shape: Extents = None,
    target_memory: Attr = MemorySpace.Vec,
    clamp: Attr = False,
) -> Expr:
    """Copy a window of a tensor into a tile."""
    if target_memory not in (M.Vec, M.Mat):
        raise ValueError(f"pl.load: target_memory must be Vec or Mat, got {target_memory}: load to Mat, then pl.move")
    window = extents(shapes)
    return call(
        "tile.load",
        tensor,
        extents(offsets),
        window,
        window if valid_shape is None else extents(valid_shape),
        target_memory=target_memory,
        clamp=True if clamp else None,
    )


# --- tile.store -------------------------------------------------------------------------------------------------------


def check_store_dtype(op: str, source: DataType, target: DataType, converts: bool) -> None:
    """Source and target dtypes must be equal, or a pair that the store converts."""
    if source is target or (converts and source is D.FP32 and target in (D.FP16, D.BF16)):
        return
    raise ValueError(
        f"{op}: the source has dtype {source}, but the target has dtype {target}: convert it with pl.cast first"
    )


def check_atomic(op: str, kwargs: Mapping[str, Any], target: DataType) -> None:
    """An atomic add needs an element type that the memory can add."""
    mode = kwargs.get("atomic", 0)
    if mode not in (AtomicType.None_.value, AtomicType.Add.value):
        raise ValueError(f"{op}: atomic must be AtomicType.None_ or AtomicType.Add, got {mode}")
    if mode == AtomicType.Add.value and target not in ATOMIC_DTYPES:
        names = ", ".join(d.name for d in ATOMIC_DTYPES)
        raise ValueError(f"{op}: atomic Add requires a target dtype in {{{names}}}, got {target}")


def retyped(kind: TensorType, valid: Sequence[Expr]) -> TensorType:
    """The tensor type with another valid region."""
    if valid is kind.valid_extents:
        return kind
    view = kind.tensor_view or TensorView()
    return same_kind(kind, kind.shape, TensorView(view.stride, view.layout, valid, view.pad), kind.memref)


def same_kind(kind: TensorType, shape: Sequence[Expr], view: TensorView | None, memref: Any = None) -> TensorType:
    """A tensor type of another shape and view; a distributed tensor stays one, in its window."""
    if isinstance(kind, DistributedTensorType):
        return DistributedTensorType(shape, kind.dtype, memref, view, kind.window_buffer)
    return TensorType(shape, kind.dtype, memref, view)


def _store_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    op = "tile.store"
    require_args(op, args, 3, 4)
    tile = tile_type(op, args, 0)
    offsets = tuple_operand(op, args, 1, "offsets")
    target = tensor_type(op, args, 2)
    shapes = optional_tuple(op, args, 3, "shapes")
    same_rank(op, "offsets", offsets, len(target.shape))
    check_atomic(op, kwargs, target.dtype)
    check_store_dtype(op, tile.dtype, target.dtype, tile.memory_space in (M.Acc, None))
    if shapes is not None or len(tile.shape) != len(target.shape):
        if shapes is not None:
            same_rank(op, "shapes", shapes, len(target.shape))
        return target
    valid = write_region(op, target.shape, target.valid_extents, offsets, tile.shape, tile.valid_extents)
    return retyped(target, valid)


def write_valid(
    ctx: Any,
    op: str,
    source: ArrayValue,
    offsets: Sequence[int],
    target: ArrayValue,
    shapes: Sequence[int] | None = None,
    accumulate: bool = False,
) -> ArrayValue:
    """Write the valid region of ``source`` into ``target`` at ``offsets``; the target with the union region.

    ``shapes`` is the window in the target of a source that was flattened.
    """
    require_writable(op, target)
    rank = len(target.shape)
    if shapes and tuple(shapes) != source.shape:
        _write_flattened(ctx, op, plain(source), offsets, target, tuple(shapes), accumulate)
        return target
    tracked = len(source.shape) == rank
    source = of_rank(op, source, rank)
    valid = write_region_at_run(op, target.shape, target.valid, offsets, source.valid, source.valid)
    window = tuple(slice(o, o + v) for o, v in zip(offsets, source.valid, strict=False))
    commit(ctx, target, window, source.valid_data(), source.valid_mask(), accumulate)
    return with_valid(target, valid) if tracked and not shapes else target


def _write_flattened(
    ctx: Any,
    op: str,
    source: ArrayValue,
    offsets: Sequence[int],
    target: ArrayValue,
    shapes: tuple[int, ...],
    accumulate: bool,
) -> None:
    inside = np.zeros(source.shape, np.bool_)
    inside[source.valid_window()] = True
    where = np.nonzero(inside.reshape(shapes))
    for i, (axis, o, extent_) in enumerate(zip(where, offsets, target.shape, strict=False)):
        reach = int(axis.max()) + 1 if axis.size else 0
        if o < 0 or o + reach > extent_:
            raise out_of_bounds(op, i, o, reach, extent_)
    mask = source.mask
    commit(
        ctx,
        target,
        tuple(axis + o for axis, o in zip(where, offsets, strict=False)),
        source.data.reshape(shapes)[where],
        None if mask is None else mask.reshape(shapes)[where],
        accumulate,
    )


def _store(
    ctx: Any,
    tile: ArrayValue,
    offsets: Sequence[int],
    output_tensor: ArrayValue,
    shapes: Sequence[int] | None = None,
    *,
    atomic: int = 0,
) -> ArrayValue:
    return write_valid(ctx, "tile.store", tile, offsets, output_tensor, shapes, bool(atomic))


def write_effect(kwargs: Mapping[str, Any]) -> ArgEffect:
    """An atomic combine also reads its target."""
    return ArgEffect.ReadWrite if kwargs.get("atomic", 0) else ArgEffect.Write


define(
    "tile.store",
    [Operand("tile", "tile"), Operand("offsets", "tuple", "index"), Operand("output_tensor", "window", "destination"),
     Operand("shapes", "tuple", "shape", optional=True)],
    _store_infer,
    doc="write the valid region of a tile into a tensor; the result is that tensor",
    kwargs={"atomic": (int, 0)},
    reference=_store,
    effects={2: write_effect},
    alias=Alias.IS,
    alias_operand=2,
    windows={2: Window(1, (3, 0))},
    channel=WriteChannel.Dma,
    input_memory=((M.Vec, M.Acc),),
)  # fmt: skip


def atomic_attr(atomic: Any) -> int | None:
    """The stored form of an ``atomic`` argument: absent when it is the default."""
    if isinstance(atomic, bool) or not isinstance(atomic, int):
        raise TypeError(f"atomic must be a pl.AtomicType, got {type(atomic).__name__}")
    return int(atomic) or None


@surface("tile", "pl")
def store(
    tile: Arg,
    offsets: Extents,
    output_tensor: Arg,
    shapes: Extents = None,
    *,
    atomic: Attr = AtomicType.None_,
) -> Expr:
    """Write a tile into a tensor."""
    more = () if shapes is None else (extents(shapes),)
    return call("tile.store", tile, extents(offsets), output_tensor, *more, atomic=atomic_attr(atomic))


# --- tile.move --------------------------------------------------------------------------------------------------------

_SCALE = (M.LeftScale, M.RightScale)
_IMPLYING = (M.Mat, M.Left, M.Right, M.Acc, *_SCALE)


def _move_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    op = "tile.move"
    require_args(op, args, 1)
    tile = tile_type(op, args, 0)
    space = kwargs["target_memory"]
    source = tile.get_effective_tile_view()
    blayout, slayout = kwargs.get("blayout"), kwargs.get("slayout")
    dtype = tile.dtype
    if space in _IMPLYING:
        view = implicit_tile_view(tile.shape, space)
        if space is M.Right:
            view = view.replace(blayout=ROW)
    else:
        view = TileView(blayout=source.blayout, slayout=source.slayout)
    if space in _SCALE:
        if (blayout or view.blayout) is not view.blayout or (slayout or view.slayout) is not view.slayout:
            raise ValueError(f"{op}: {space.name} has a hardware-fixed layout: blayout and slayout can not be chosen")
        if len(tile.shape) != 2:
            raise ValueError(f"{op} to {space.name} requires a 2D tile")
        if dtype not in (D.UINT8, D.FP8E8M0):
            raise ValueError(f"{op} to {space.name} requires dtype UINT8 or FP8E8M0, got {dtype}")
        if source.blayout is not view.blayout or source.slayout is not view.slayout:
            raise ValueError(
                f"{op} to {space.name} requires a source layout matching {view.blayout.name}/{view.slayout.name}"
            )
        dtype = D.FP8E8M0
    changes: dict[str, Any] = {"valid_shape": tile.valid_extents, "pad": source.pad}
    if blayout is not None:
        changes["blayout"] = blayout
    if slayout is not None:
        changes["slayout"] = slayout
    return TileType(tile.shape, dtype, None, view.replace(**changes), space)


def copied(value: ArrayValue, data: Any = None, dtype: Any = None) -> ArrayValue:
    """A copy in a buffer of its own, with the same valid region."""
    source = plain(value)
    data = np.array(source.data, order="C")
    return fresh(data if dtype is None else data.view(dtype), source.mask, source.valid)


def _move(ctx: Any, tile: ArrayValue, **_: Any) -> ArrayValue:
    return copied(tile, dtype=numpy_dtype(ctx.type.dtype))


define(
    "tile.move",
    [Operand("tile", "tile")],
    _move_infer,
    doc="copy a tile to another on-chip memory or layout",
    kwargs={"target_memory": (MemorySpace, REQUIRED), "blayout": (TileLayout, UNSET), "slayout": (TileLayout, UNSET)},
    reference=_move,
    output_memory=DEFERRED,
    not_in_place=True,
)


@surface("tile", "pl")
def move(tile: Arg, target_memory: Attr, blayout: Attr = None, slayout: Attr = None) -> Expr:
    """Copy a tile to another on-chip memory or layout."""
    return call("tile.move", tile, target_memory=target_memory, blayout=blayout, slayout=slayout)


# --- tile.extract -----------------------------------------------------------------------------------------------------


def index_like(op: str, what: str, operand: Expr) -> None:
    """The operand must be an INDEX, INT64 or UINT64 scalar."""
    dtype = getattr(operand.type, "dtype", None)
    if dtype not in INDEX_LIKE or hasattr(operand.type, "shape"):
        raise OperandKindError(f"{op} requires {what} to be an INT64, UINT64 or INDEX scalar, but got {operand.type}")


def _extract_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    op = "tile.extract"
    require_args(op, args, 4)
    source = tile_type(op, args, 0)
    shape = tuple_operand(op, args, 3, "shape", constant=True)
    if len(source.shape) != 2 or len(shape) != 2:
        raise ValueError(f"{op} requires a 2D source and a 2D shape")
    for i, what in enumerate(("row", "col")):
        offset, size, have = args[1 + i], number(shape[i]) or 0, number(source.shape[i])
        index_like(op, f"index_{what}", offset)
        if size <= 0:
            raise ValueError(f"{op}: shape[{i}] must be positive, got {size}")
        start = number(offset)
        if start is not None and start < 0:
            raise ValueError(f"{op}: index_{what} must be >= 0, got {start}")
        if have is not None and (start or 0) + size > have:
            raise ValueError(f"{op}: index_{what} {start or 0} + {size} exceeds src {what} extent {have}; {EXTRACT}")
    space = kwargs.get("target_memory", M.Vec)
    valid = read_window(
        op, source.shape, source.valid_extents, FrozenList(args[1:3]), shape, None, exact=True, remedy=EXTRACT
    )
    if space is M.Left:
        view = TileView(blayout=ROW, slayout=ROW)
    elif space is M.Right:
        view = TileView(blayout=ROW, slayout=COL)
    else:
        view = implicit_tile_view(shape, space)
    partial = not all(map(same_extent, valid, shape))
    if partial and space in (M.Left, M.Right):
        view = view.replace(compact=CompactMode.normal)
    return TileType(shape, source.dtype, None, view.replace(valid_shape=valid), space)


def _extract(ctx: Any, src: ArrayValue, index_row: int, index_col: int, shape: Sequence[int], **_: Any) -> ArrayValue:
    offsets = (index_row, index_col)
    valid = read_window_at_run("tile.extract", src.shape, src.valid, offsets, shape, None, exact=True)
    index = tuple(slice(o, o + n) for o, n in zip(offsets, shape, strict=False))
    mask = src.mask
    return fresh(np.array(src.data[index], order="C"), None if mask is None else mask[index], valid)


define(
    "tile.extract",
    [Operand("src", "tile"), Operand("index_row", "scalar", "index"), Operand("index_col", "scalar", "index"),
     Operand("shape", "tuple", "shape")],
    _extract_infer,
    doc="copy a window of a tile into another on-chip memory",
    kwargs={"target_memory": (MemorySpace, MemorySpace.Vec)},
    reference=_extract,
    output_memory=DEFERRED,
    not_in_place=True,
)  # fmt: skip


@surface("tile")
def extract(src: Arg, index_row: Arg, index_col: Arg, shape: Extents, *, target_memory: Attr) -> Expr:
    """Copy a window of a tile into another on-chip memory."""
    return call("tile.extract", src, extent(index_row), extent(index_col), extents(shape), target_memory=target_memory)
