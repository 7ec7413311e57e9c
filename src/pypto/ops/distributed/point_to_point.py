"""Transfers between two ranks: remote loads and stores, put and get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...ir.enums import AtomicType, CoreType, MemorySpace, TensorLayout, TileLayout, WriteChannel
from ...ir.expr import Expr, MakeTuple
from ...ir.type import TileType, TileView, Type
from ..definition import REQUIRED, InferRule, Operand
from ..normalize import extent, extents
from ..registry import call, define
from ..rules import OperandKindError, require_args, same_extent, show_shape
from ..surface import Attr, Extents, level_of, surface
from ..surface import Operand as Arg
from ..transfer import atomic_attr, layout_of, refuse_mx, write_effect
from ..windows import add, number, optional_tuple, provably_exceeds, read_window, tuple_operand
from .common import NO_VALUE, atomic_add, local_tensor, offsets_of, same_dtype, scalar, unsupported, window_bound

M = MemorySpace


# --- remote_load ------------------------------------------------------------------------------------------------------


def _remote_load_infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
    op = "pld.tile.remote_load"
    require_args(op, args, 4, 5)
    target = window_bound(op, args, 0, "target")
    refuse_mx(op, target)
    scalar(op, args, 1, "peer")
    offsets = offsets_of(op, args, 2, len(target.shape))
    shape = tuple_operand(op, args, 3, "shape")
    requested = optional_tuple(op, args, 4, "valid_shape")
    valid = read_window(op, target.shape, target.valid_extents, offsets, shape, requested, materialize=True)
    column = layout_of(target) is TensorLayout.DN
    view = TileView(valid_shape=valid, blayout=TileLayout.col_major if column else TileLayout.row_major)
    return TileType(shape, target.dtype, None, view)


define(
    "pld.tile.remote_load",
    [Operand("target", "dist"), Operand("peer", "scalar"), Operand("offsets", "tuple", "index"),
     Operand("shape", "tuple", "shape"), Operand("valid_shape", "tuple", "shape", optional=True)],
    _remote_load_infer,
    doc="read a window of a peer's part",
    kwargs={"allow_physical_tail_padding": (bool, False)},
    reference=unsupported,
    effects_declared=True,
    printed="physical_tail_padding",
    priority="full",
)  # fmt: skip


@surface("pld", "pld.tile")
def remote_load(target: Arg, peer: Arg, offsets: Extents, shape: Extents, valid_shape: Extents = None) -> Expr:
    """Read a window of a peer's part."""
    more = () if valid_shape is None else (extents(valid_shape),)
    return call("pld.tile.remote_load", target, extent(peer), extents(offsets), extents(shape), *more)


@surface("pld.tile", name="_remote_load_with_physical_tail_padding")
def remote_load_with_tail(
    target: Arg, peer: Arg, offsets: Extents, shape: Extents, valid_shape: Extents = None
) -> Expr:
    """The printed form of a load that may read the physical padding of the last row."""
    more = () if valid_shape is None else (extents(valid_shape),)
    return call(
        "pld.tile.remote_load",
        target,
        extent(peer),
        extents(offsets),
        extents(shape),
        *more,
        allow_physical_tail_padding=True,
    )


# --- remote_store -----------------------------------------------------------------------------------------------------


def _remote_store_infer(op: str, tile: bool) -> InferRule:
    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 4)
        source: Any = args[0].type
        if tile:
            if type(source) is not TileType:
                raise OperandKindError(f"{op} expects a Tile src; got {type(source).__name__}")
        else:
            local_tensor(op, args, 0, "src", plain=True)
        target = window_bound(op, args, 1, "target")
        scalar(op, args, 2, "peer")
        same_dtype(op, source, target, "src and target")
        atomic_add(op, kwargs.get("atomic", 0), target.dtype)
        if len(target.shape) < 2 or len(source.shape) < 2:
            raise ValueError(f"{op}: src and target must be at least 2-D")
        for i, dim in enumerate(source.shape[:-2]):
            if number(dim) != 1:
                raise ValueError(f"{op}: src leading dimension {i} must be 1")
        offsets = offsets_of(op, args, 3, len(target.shape))
        for axis in (-2, -1):
            dimension = len(target.shape) + axis
            if provably_exceeds(add(offsets[axis], source.valid_extents[axis]), target.shape[axis]):
                raise ValueError(f"{op}: the push exceeds the peer's target region in dimension {dimension}")
        return NO_VALUE

    return infer


for _level, _source in (("tensor", "src"), ("tile", "src_tile")):
    define(
        f"pld.{_level}.remote_store",
        [Operand(_source, "tensor" if _level == "tensor" else "tile"), Operand("target", "dist", "destination"),
         Operand("peer", "scalar"), Operand("offsets", "tuple", "index")],
        _remote_store_infer(f"pld.{_level}.remote_store", _level == "tile"),
        doc="write into a peer's part, or add to it",
        kwargs={"atomic": (int, 0)},
        reference=unsupported,
        effects={1: write_effect},
        channel=WriteChannel.Dma,
        pure=False,
        input_memory=((M.Vec, M.Acc),) if _level == "tile" else (),
        priority="full",
    )  # fmt: skip


def _remote_store(level: str, source: Arg, target: Arg, peer: Arg, offsets: Extents, atomic: Any) -> Expr:
    op = f"pld.{level}.remote_store"
    return call(op, source, target, extent(peer), extents(offsets), atomic=atomic_attr(atomic))


@surface("pld.tensor", name="remote_store")
def tensor_remote_store(src: Arg, target: Arg, peer: Arg, offsets: Extents, *, atomic: Attr = AtomicType.None_) -> Expr:
    """Write a tensor into a peer's part."""
    return _remote_store("tensor", src, target, peer, offsets, atomic)


@surface("pld.tile", name="remote_store")
def tile_remote_store(
    src_tile: Arg, target: Arg, peer: Arg, offsets: Extents, *, atomic: Attr = AtomicType.None_
) -> Expr:
    """Write a tile into a peer's part."""
    return _remote_store("tile", src_tile, target, peer, offsets, atomic)


@surface("pld", name="remote_store")
def unified_remote_store(
    src: Arg, target: Arg, peer: Arg, offsets: Extents, *, atomic: Attr = AtomicType.None_
) -> Expr:
    """Write a tensor or tile into a peer's part."""
    level = "tile" if level_of(src) == "tile" else "tensor"
    return _remote_store(level, src, target, peer, offsets, atomic)


# --- put, get ---------------------------------------------------------------------------------------------------------


def _region(op: str, args: Sequence[Expr], first: int, dst: Any, src: Any) -> Sequence[Expr]:
    """The shape that travels: the whole of both, or a region of each."""
    same_dtype(op, dst, src, "dst and src")
    if len(dst.shape) != len(src.shape):
        raise ValueError(f"{op} requires dst and src to have the same rank, got {len(dst.shape)} and {len(src.shape)}")
    given = len(args) - first
    if given not in (0, 3):
        raise ValueError(f"{op}: dst_offsets, src_offsets and shape must be provided together")
    if given == 0:
        static = all(number(dim) is not None for dim in (*dst.shape, *src.shape))
        if not all(map(same_extent, dst.shape, src.shape)):
            raise ValueError(
                f"{op}: dst and src must have the same {'static ' if static else ''}shape, got {show_shape(dst.shape)} "
                f"and {show_shape(src.shape)}"
            )
        shape: Sequence[Expr] = dst.shape
    else:
        rank = len(dst.shape)
        starts = {"dst": offsets_of(op, args, first, rank, "dst_offsets")}
        starts["src"] = offsets_of(op, args, first + 1, rank, "src_offsets")
        shape = offsets_of(op, args, first + 2, rank, "shape")
        for side, kind in (("dst", dst), ("src", src)):
            for i in range(rank):
                if provably_exceeds(add(starts[side][i], shape[i]), kind.shape[i]):
                    raise ValueError(f"{op}: {side} subregion dimension {i} exceeds {side} shape")
    for i, dim in enumerate(shape):
        value = number(dim)
        if value is not None and value <= 0:
            raise ValueError(f"{op}: extent {i} must be positive, got {value}")
    return shape


def _check_chunks(op: str, shape: Sequence[Expr], kwargs: Mapping[str, Any]) -> None:
    rows, columns = kwargs.get("chunk_rows", 0), kwargs.get("chunk_cols", 0)
    for what, value in (("chunk_rows", rows), ("chunk_cols", columns)):
        if value < 0:
            raise ValueError(f"{op}: {what} must be non-negative (0 = full), got {value}")
    if kwargs.get("pipeline") and not (rows and columns):
        raise ValueError(f"{op}: pipeline=True requires both chunk_rows>0 and chunk_cols>0")
    if not shape:
        return
    if number(shape[-1]) is None and not columns:
        raise ValueError(f"{op}: a dynamic innermost transfer dim needs a static chunk_cols")
    if any(number(dim) is None for dim in shape[:-1]) and not rows:
        raise ValueError(f"{op}: a dynamic leading transfer dim needs a static chunk_rows")


def _transfer_ends(op: str, args: Sequence[Expr], kwargs: Mapping[str, Any], put: bool) -> tuple[Any, Any]:
    """Types of ``dst`` and ``src``: the remote one is bound to a window, the other one is local."""
    dst: Any = window_bound(op, args, 0, "dst") if put else local_tensor(op, args, 0, "dst")
    scalar(op, args, 1, "peer")
    src: Any = local_tensor(op, args, 2, "src") if put else window_bound(op, args, 2, "src")
    if put:
        atomic_add(op, kwargs["atomic"], dst.dtype)
    return dst, src


def _tensor_transfer_infer(op: str, put: bool) -> InferRule:
    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 3, 6)
        dst, src = _transfer_ends(op, args, kwargs, put)
        _check_chunks(op, _region(op, args, 3, dst, src), kwargs)
        return NO_VALUE

    return infer


def _tile_transfer_infer(op: str, put: bool) -> InferRule:
    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 4, 8)
        dst, src = _transfer_ends(op, args, kwargs, put)
        stages = 2 if len(args) > 4 and type(args[4]) is not MakeTuple else 1
        shape = _region(op, args, 3 + stages, dst, src)
        _check_stages(op, args[3 : 3 + stages], dst, shape)
        return NO_VALUE

    return infer


def _check_stages(op: str, stages: Sequence[Expr], dst: Any, shape: Sequence[Expr]) -> None:
    for stage in stages:
        kind: Any = stage.type
        if type(kind) is not TileType or len(kind.shape) != 2 or kind.memory_space not in (None, M.Vec):
            raise OperandKindError(f"{op}: stage must be a 2D VEC staging tile, got {kind}")
        if kind.dtype is not dst.dtype:
            raise ValueError(f"{op}: stage dtype must match dst dtype, got {kind.dtype} and {dst.dtype}")
    first: Any = stages[0].type
    if len(stages) == 2:
        second: Any = stages[1].type
        if not all(map(same_extent, first.shape, second.shape)):
            raise ValueError(f"{op}: ping/pong staging tiles must have identical shape")
    rows = 1
    for dim in shape[:-1]:
        rows = 0 if number(dim) is None or not rows else rows * (number(dim) or 1)
    height = number(first.shape[0])
    too_high = rows and height is not None and height > rows
    if too_high or (shape and provably_exceeds(first.shape[1], shape[-1])):
        raise ValueError(f"{op}: the staging tile {show_shape(first.shape)} must fit within the transfer")


_REGIONS = [
    Operand("dst_offsets", "tuple", "index", optional=True),
    Operand("src_offsets", "tuple", "index", optional=True),
    Operand("shape", "tuple", "shape", optional=True),
]
_CHUNKS: dict[str, Any] = {"chunk_rows": (int, 0), "chunk_cols": (int, 0), "pipeline": (bool, False)}
for _name in ("put", "get"):
    _put = _name == "put"
    _sides = [
        Operand("dst", "dist" if _put else "window", "destination"),
        Operand("peer", "scalar"),
        Operand("src", "window" if _put else "dist"),
    ]
    _atomic: dict[str, Any] = {"atomic": (int, REQUIRED)} if _put else {}
    _common: dict[str, Any] = dict(
        doc="copy into a peer's part" if _put else "copy from a peer's part",
        reference=unsupported,
        effects={0: write_effect},
        channel=WriteChannel.Dma,
        core=CoreType.VECTOR,
        pure=False,
        priority="full",
    )
    define(
        f"pld.tensor.{_name}",
        [*_sides, *_REGIONS],
        _tensor_transfer_infer(f"pld.tensor.{_name}", _put),
        kwargs={**_atomic, **_CHUNKS},
        **_common,
    )
    define(
        f"pld.tile.{_name}",
        [*_sides, Operand("stage", "tile", "scratch"), Operand("stage2", "tile", "scratch", optional=True), *_REGIONS],
        _tile_transfer_infer(f"pld.tile.{_name}", _put),
        kwargs=_atomic,
        **_common,
    )


def _regions(op: str, *given: Any) -> list[Expr]:
    if all(g is None for g in given):
        return []
    if any(g is None for g in given):
        raise ValueError(f"{op}: dst_offsets, src_offsets and shape must be provided together")
    return [extents(g) for g in given]


def _chunk_kwargs(op: str, chunk_rows: Any, chunk_cols: Any, pipeline: Any) -> dict[str, Any]:
    for what, value in (("chunk_rows", chunk_rows), ("chunk_cols", chunk_cols)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{op}: {what} must be an int (static), got {type(value).__name__}")
    return {
        "chunk_rows": chunk_rows or None,
        "chunk_cols": chunk_cols or None,
        "pipeline": True if pipeline else None,
    }


@surface("pld.tensor")
def put(
    dst: Arg,
    peer: Arg,
    src: Arg,
    dst_offsets: Extents = None,
    src_offsets: Extents = None,
    shape: Extents = None,
    *,
    atomic: Attr = AtomicType.None_,
    chunk_rows: Attr = 0,
    chunk_cols: Attr = 0,
    pipeline: Attr = False,
) -> Expr:
    """Copy into a peer's part."""
    op = "pld.tensor.put"
    regions = _regions(op, dst_offsets, src_offsets, shape)
    kwargs = _chunk_kwargs(op, chunk_rows, chunk_cols, pipeline)
    return call(op, dst, extent(peer), src, *regions, atomic=atomic_attr(atomic) or 0, **kwargs)


@surface("pld.tensor")
def get(
    dst: Arg,
    peer: Arg,
    src: Arg,
    dst_offsets: Extents = None,
    src_offsets: Extents = None,
    shape: Extents = None,
    *,
    chunk_rows: Attr = 0,
    chunk_cols: Attr = 0,
    pipeline: Attr = False,
) -> Expr:
    """Copy from a peer's part."""
    op = "pld.tensor.get"
    regions = _regions(op, dst_offsets, src_offsets, shape)
    kwargs = _chunk_kwargs(op, chunk_rows, chunk_cols, pipeline)
    return call(op, dst, extent(peer), src, *regions, **kwargs)


def _stages(op: str, stage: Arg, stage2: Any, regions: Sequence[Any]) -> list[Expr]:
    """Stages and regions; a list in the place of ``stage2`` is the first region argument."""
    if isinstance(stage2, (list, tuple, MakeTuple)):
        return [stage, *_regions(op, stage2, *regions[:2])]
    return [stage, *([] if stage2 is None else [stage2]), *_regions(op, *regions)]


@surface("pld.tile", name="put")
def tile_put(
    dst: Arg,
    peer: Arg,
    src: Arg,
    stage: Arg,
    stage2: Arg = None,
    dst_offsets: Extents = None,
    src_offsets: Extents = None,
    shape: Extents = None,
    *,
    atomic: Attr = AtomicType.None_,
) -> Expr:
    """Copy into a peer's part through staging tiles."""
    op = "pld.tile.put"
    rest = _stages(op, stage, stage2, (dst_offsets, src_offsets, shape))
    return call(op, dst, extent(peer), src, *rest, atomic=atomic_attr(atomic) or 0)


@surface("pld.tile", name="get")
def tile_get(
    dst: Arg,
    peer: Arg,
    src: Arg,
    stage: Arg,
    stage2: Arg = None,
    dst_offsets: Extents = None,
    src_offsets: Extents = None,
    shape: Extents = None,
) -> Expr:
    """Copy from a peer's part through staging tiles."""
    op = "pld.tile.get"
    return call(op, dst, extent(peer), src, *_stages(op, stage, stage2, (dst_offsets, src_offsets, shape)))
