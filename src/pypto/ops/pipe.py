"""Cross-core pipes: tiles that travel between the cube core and the vector cores of a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..ir import scalar as scalars
from ..ir.dtype import DataType
from ..ir.enums import CoreType, MemorySpace, TensorLayout
from ..ir.expr import Expr, index_const
from ..ir.location import current_span
from ..ir.node import FrozenList
from ..ir.type import (
    DistributedTensorType,
    ScalarType,
    TensorType,
    TensorView,
    TileType,
    Type,
    UnknownType,
    implicit_tile_view,
)
from .definition import REQUIRED, UNSET, Category, InferRule, Operand
from .normalize import const_value, extents, typed_constant
from .partial_window import plain
from .pipe_set import PipeSet, join_halves, split_half
from .registry import build, call, check_kwargs, define, lookup
from .rules import OperandKindError, operand_error, require_args, same_extent, show_shape, tile_type
from .surface import Attr, Extents, surface
from .surface import Operand as Arg
from .values import ArrayValue
from .windows import multiply, number, static_shape

D = DataType
M = MemorySpace
CUBE, VECTOR, MIXED = CoreType.CUBE, CoreType.VECTOR, "MIXED"
AUTO = -1
NO_VALUE: Type = UnknownType()
C2V, V2C = "c2v", "v2c"


def _pipes(ctx: Any, op: str) -> PipeSet:
    if ctx.pipes is None:
        raise ValueError(f"{op}: there is no other core here: call the cube and the vector function from one group")
    pipes: PipeSet = ctx.pipes
    return pipes


def _split_code(op: str, split: int, highest: int) -> None:
    if not 0 <= split <= highest:
        raise ValueError(f"{op}: split must be in 0..{highest}, got {split}")


# --- push and pop -----------------------------------------------------------------------------------------------------


def _push_infer(op: str, highest: int) -> InferRule:
    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 1)
        tile_type(op, args, 0)
        _split_code(op, kwargs["split"], highest)
        _positive_stride(op, kwargs)
        return NO_VALUE

    return infer


def _positive_stride(op: str, kwargs: Mapping[str, Any]) -> None:
    stride = kwargs.get("lane_stride")
    if stride is not None and stride <= 0:
        raise ValueError(f"{op}: lane_stride must be positive, got {stride}")


def _pop_infer(op: str, highest: int) -> InferRule:
    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 0)
        _split_code(op, kwargs.get("split", 0), highest)
        _positive_stride(op, kwargs)
        return NO_VALUE

    return infer


def _push_to_aiv(
    ctx: Any, tile: ArrayValue, *, split: int, lane_stride: int | None = None, id: int | None = None
) -> None:
    pipes = _pipes(ctx, "tile.tpush_to_aiv")
    value = plain(tile)
    for lane in range(pipes.lanes):
        pipes.push(C2V, id or 0, lane, split_half(value, split, lane, lane_stride))


def _push_to_aic(ctx: Any, tile: ArrayValue, *, split: int, id: int | None = None) -> None:
    pipes = _pipes(ctx, "tile.tpush_to_aic")
    pipes.push(V2C, id or 0, ctx.lane, split_half(plain(tile), 0, 0, None))


def _pop_from_aic(ctx: Any, *, split: int = 0, id: int | None = None, **_: Any) -> ArrayValue:
    value: ArrayValue = _pipes(ctx, "tile.tpop_from_aic").pop(C2V, id or 0, ctx.lane)
    return value


def _pop_from_aiv(ctx: Any, *, split: int = 0, id: int | None = None, **_: Any) -> ArrayValue:
    pipes = _pipes(ctx, "tile.tpop_from_aiv")
    halves = [pipes.pop(V2C, id or 0, lane) for lane in range(pipes.lanes)]
    return halves[0] if split == 0 or len(halves) == 1 else join_halves(halves, split)


_ID = {"id": (int, UNSET)}
_SPLIT = {"split": (int, REQUIRED)}
_STRIDE = {"lane_stride": (int, UNSET)}


def _define_transfer(
    name: str,
    operands: Sequence[Operand],
    infer: InferRule,
    doc: str,
    kwargs: Any,
    reference: Any,
    core: Any,
    role: str,
) -> None:
    define(
        name,
        Category.CROSS_CORE,
        operands,
        infer,
        doc=doc,
        kwargs=kwargs,
        reference=reference,
        core=core,
        pipe_role=role,
        pure=False,
        no_memory_spec=True,
    )


_define_transfer(
    "tile.tpush_to_aiv",
    [Operand("tile", "tile")],
    _push_infer("tile.tpush_to_aiv", 4),
    "send a tile to the vector cores, in halves when split",
    {**_SPLIT, **_STRIDE, **_ID},
    _push_to_aiv,
    CUBE,
    "TPush",
)
_define_transfer(
    "tile.tpush_to_aic",
    [Operand("tile", "tile")],
    _push_infer("tile.tpush_to_aic", 2),
    "send this lane's tile to the cube core",
    {**_SPLIT, **_ID},
    _push_to_aic,
    VECTOR,
    "TPush",
)
_define_transfer(
    "tile.tpop_from_aic",
    [],
    _pop_infer("tile.tpop_from_aic", 4),
    "take this lane's tile from the cube core",
    {"split": (int, 0), **_STRIDE, **_ID},
    _pop_from_aic,
    VECTOR,
    "TPop",
)
_define_transfer(
    "tile.tpop_from_aiv",
    [],
    _pop_infer("tile.tpop_from_aiv", 2),
    "take the joined tile from the vector cores",
    {"split": (int, 0), **_ID},
    _pop_from_aiv,
    CUBE,
    "TPop",
)


@surface("system", "pl", "ir.tile", ir=False)
def tpush_to_aiv(tile: Arg, *, split: Attr, lane_stride: Attr = None, id: Attr = None) -> Expr:
    """Send a tile to the vector cores."""
    return call("tile.tpush_to_aiv", tile, split=split, lane_stride=lane_stride, id=id)


@surface("system", "pl", "ir.tile", ir=False)
def tpush_to_aic(tile: Arg, *, split: Attr, id: Attr = None) -> Expr:
    """Send a tile to the cube core."""
    return call("tile.tpush_to_aic", tile, split=split, id=id)


def _typed_pop(
    op: str, space: MemorySpace, result_type: Any, shape: Any, dtype: Any, kwargs: Mapping[str, Any]
) -> Expr:
    if (shape is None) != (dtype is None):
        raise ValueError(f"{op}: shape and dtype are given together or not at all")
    if result_type is not None and shape is not None:
        raise ValueError(f"{op}: result_type excludes shape and dtype")
    made = call(op, **kwargs)
    if shape is not None:
        dims = extents(shape).elements
        static_shape(op, dims)
        result_type = TileType(dims, dtype, None, None, space)
    return made if result_type is None else made.replace(type=result_type)


@surface("system", "pl", ir=False)
def tpop_from_aic(
    *, shape: Extents = None, dtype: Attr = None, split: Attr = 0, lane_stride: Attr = None, id: Attr = None
) -> Expr:
    """Take this lane's tile from the cube core."""
    kwargs = {"split": split, "lane_stride": lane_stride, "id": id}
    return _typed_pop("tile.tpop_from_aic", M.Vec, None, shape, dtype, kwargs)


@surface("system", "pl", ir=False)
def tpop_from_aiv(*, shape: Extents = None, dtype: Attr = None, split: Attr = 0, id: Attr = None) -> Expr:
    """Take the joined tile from the vector cores."""
    return _typed_pop("tile.tpop_from_aiv", M.Mat, None, shape, dtype, {"split": split, "id": id})


@surface("ir.tile", name="tpop_from_aic")
def ir_tpop_from_aic(
    *,
    result_type: Attr = None,
    shape: Extents = None,
    dtype: Attr = None,
    split: Attr = 0,
    lane_stride: Attr = None,
    id: Attr = None,
) -> Expr:
    """Take this lane's tile from the cube core."""
    kwargs = {"split": split, "lane_stride": lane_stride, "id": id}
    return _typed_pop("tile.tpop_from_aic", M.Vec, result_type, shape, dtype, kwargs)


@surface("ir.tile", name="tpop_from_aiv")
def ir_tpop_from_aiv(
    *, result_type: Attr = None, shape: Extents = None, dtype: Attr = None, split: Attr = 0, id: Attr = None
) -> Expr:
    """Take the joined tile from the vector cores."""
    return _typed_pop("tile.tpop_from_aiv", M.Mat, result_type, shape, dtype, {"split": split, "id": id})


# --- free -------------------------------------------------------------------------------------------------------------


def _free_infer(op: str) -> InferRule:
    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 1)
        if args[0].type is not NO_VALUE:  # the result of an untyped pop is not a tile yet
            tile_type(op, args, 0)
        _split_code(op, kwargs.get("split", 0), 4)
        return NO_VALUE

    return infer


for _name, _core in (("tfree_to_aic", VECTOR), ("tfree_to_aiv", CUBE)):
    _define_transfer(
        f"system.{_name}",
        [Operand("tile", "tile")],
        _free_infer(f"system.{_name}"),
        "release the slot of a popped tile",
        {"split": (int, UNSET), **_ID},
        lambda ctx, tile, **_: None,
        _core,
        "TFree",
    )


@surface("system", "pl")
def tfree_to_aic(tile: Arg, *, split: Attr = None, id: Attr = None) -> Expr:
    """Release the slot of a tile popped from the cube core."""
    return call("system.tfree_to_aic", tile, split=split, id=id)


@surface("system", "pl")
def tfree_to_aiv(tile: Arg, *, split: Attr = None, id: Attr = None) -> Expr:
    """Release the slot of a tile popped from the vector cores."""
    return call("system.tfree_to_aiv", tile, split=split, id=id)


# --- set-up -----------------------------------------------------------------------------------------------------------


def _initialize_infer(op: str) -> InferRule:
    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 2)
        for i, what in enumerate(("c2v_consumer_buf", "v2c_consumer_buf")):
            kind = args[i].type
            if type(kind) is not ScalarType or kind.dtype is not D.INT32:
                raise OperandKindError(f"{op} requires {what} to be an INT32 scalar, but got {kind}")
        if kwargs["dir_mask"] not in (1, 2, 3):
            raise ValueError(f"{op}: dir_mask must be 1 (C to V), 2 (V to C) or 3, got {kwargs['dir_mask']}")
        for key in ("slot_size", "slot_num", "local_slot_num"):
            if kwargs.get(key, 1) <= 0:
                raise ValueError(f"{op}: {key} must be positive, got {kwargs[key]}")
        return NO_VALUE

    return infer


def _initialize(
    ctx: Any, c2v: Any, v2c: Any, *, dir_mask: int, slot_num: int | None = None, id: int | None = None, **_: Any
) -> None:
    if ctx.pipes is not None:
        slots = slot_num if slot_num is not None else (4 if dir_mask == 3 else 8)
        for bit, direction in ((1, C2V), (2, V2C)):
            if dir_mask & bit:
                ctx.pipes.configure(direction, id or 0, slots)


for _name, _core in (("aic_initialize_pipe", CUBE), ("aiv_initialize_pipe", VECTOR)):
    _define_transfer(
        f"system.{_name}",
        [Operand("c2v_consumer_buf", "scalar"), Operand("v2c_consumer_buf", "scalar")],
        _initialize_infer(f"system.{_name}"),
        "set up a cross-core queue",
        {
            "dir_mask": (int, REQUIRED),
            "slot_size": (int, REQUIRED),
            "slot_num": (int, UNSET),
            "local_slot_num": (int, UNSET),
            **_ID,
        },
        _initialize,
        _core,
        "InitializePipe",
    )


def _buffer_operand(value: Any) -> Expr:
    constant = const_value(value)
    return typed_constant(constant, D.INT32) if isinstance(constant, int) else value


def _initialize_surface(op: str) -> Any:
    def initialize_pipe(
        c2v_consumer_buf: Arg = 0,
        v2c_consumer_buf: Arg = 0,
        *,
        dir_mask: Attr,
        slot_size: Attr,
        slot_num: Attr = None,
        local_slot_num: Attr = None,
        id: Attr = None,
    ) -> Expr:
        return call(
            op,
            _buffer_operand(c2v_consumer_buf),
            _buffer_operand(v2c_consumer_buf),
            dir_mask=dir_mask,
            slot_size=slot_size,
            slot_num=slot_num,
            local_slot_num=local_slot_num,
            id=id,
        )

    return initialize_pipe


for _name in ("aic_initialize_pipe", "aiv_initialize_pipe"):
    surface("system", "pl", name=_name)(_initialize_surface(f"system.{_name}"))


def _buffer_infer(op: str) -> InferRule:
    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 0)
        if kwargs.get("size", 1) <= 0:
            raise ValueError(f"{op}: size must be positive, got {kwargs['size']}")
        return ScalarType(D.INT32)

    return infer


define(
    "system.reserve_buffer",
    Category.CROSS_CORE,
    [],
    _buffer_infer("system.reserve_buffer"),
    doc="reserve a buffer of the consumer of a cross-core queue; its base address",
    kwargs={"name": (str, REQUIRED), "size": (int, REQUIRED), "base": (int, AUTO)},
    reference=lambda ctx, *, base=AUTO, **_: max(base, 0),
    pure=False,
)
define(
    "system.import_peer_buffer",
    Category.CROSS_CORE,
    [],
    _buffer_infer("system.import_peer_buffer"),
    doc="the base address of a buffer that the peer function reserves",
    kwargs={"name": (str, REQUIRED), "peer_func": (str, REQUIRED)},
    reference=lambda ctx, **_: 0,
    pure=False,
)


def _named_call(op: str, kwargs: Mapping[str, Any]) -> Expr:
    definition = lookup(op)  # ``call`` has a parameter ``name`` of its own
    return build(definition, FrozenList(), check_kwargs(definition, kwargs), current_span())


@surface("system", "pl")
def reserve_buffer(*, name: Attr, size: Attr, base: Attr = AUTO) -> Expr:
    """Reserve a buffer of a cross-core queue."""
    return _named_call("system.reserve_buffer", {"name": name, "size": size, "base": base})


@surface("system", "pl")
def import_peer_buffer(*, name: Attr, peer_func: Attr) -> Expr:
    """The base address of a buffer that the peer reserves."""
    peer = peer_func if isinstance(peer_func, str) else getattr(peer_func, "name", peer_func)
    return _named_call("system.import_peer_buffer", {"name": name, "peer_func": peer})


# --- aiv_shard, aic_gather --------------------------------------------------------------------------------------------


def _halved(e: Expr) -> Expr:
    value = number(e)
    if value is not None:
        return index_const((value + 1) // 2)
    span = current_span()
    return scalars.floordiv(scalars.add(e, index_const(1), span), index_const(2), span)


def _crossing(
    op: str, args: Sequence[Expr], kwargs: Mapping[str, Any], level: str, shard: bool
) -> tuple[Any, Any, Any]:
    require_args(op, args, 1)
    kind: Any = args[0].type
    wanted = TensorType if level == "tensor" else TileType
    if type(kind) is not wanted:
        if isinstance(kind, DistributedTensorType):
            raise OperandKindError(f"{op} does not support distributed tensors")
        raise operand_error(op, "first", wanted.__name__, args[0])
    split = kwargs["split"]
    if split not in (0, 1, 2):
        raise ValueError(f"{op} requires an integer split of 0, 1 or 2, got {split}")
    if split == 0:
        return kind, kind.shape, kind.valid_extents
    if len(kind.shape) != 2:
        raise ValueError(f"{op} requires a 2D operand when split, got rank {len(kind.shape)}")
    axis = split - 1
    change = _halved if shard else _doubled
    shape, valid = list(kind.shape), list(kind.valid_extents)
    full = same_extent(valid[axis], shape[axis])
    shape[axis] = change(shape[axis])
    stride = kwargs.get("lane_stride")
    if stride is not None:
        half = number(shape[axis])
        if stride <= 0 or (half is not None and stride > half):
            raise ValueError(f"{op}: lane_stride {stride} must be positive and at most the physical half {half}")
    valid[axis] = shape[axis] if full else change(valid[axis])
    return kind, FrozenList(shape), FrozenList(valid)


def _doubled(e: Expr) -> Expr:
    return multiply(e, index_const(2))


def _check_boundary(op: str, kind: TileType, split: int) -> None:
    """The queue transports full columns, so a shard whose valid columns do not fill the box is restricted."""
    if len(kind.shape) != 2 or split == 0:
        return
    rows, columns = kind.valid_extents
    if same_extent(columns, kind.shape[1]):
        return
    fix = "widen it with pl.set_validshape(tile, rows, cols) before the crossing and treat the padding as don't-care"
    shown = show_shape(kind.valid_extents)
    if split == 2:
        raise ValueError(
            f"{op}: LEFT_RIGHT splits the column axis, but the valid columns of {shown} do not fill the box; {fix}"
        )
    if number(columns) is None:
        raise ValueError(
            f"{op}: the valid column extent of {shown} is a runtime value narrower than the physical box; {fix}"
        )
    if number(rows) is None:
        raise ValueError(
            f"{op}: the valid row extent of {shown} is a runtime value while the columns are narrowed; {fix}"
        )
    if not same_extent(rows, kind.shape[0]):
        raise ValueError(f"{op}: UP_DOWN split with BOTH rows and columns of {shown} narrowed; {fix}")


def _crossing_infer(level: str, shard: bool) -> InferRule:
    op = f"{level}.{'aiv_shard' if shard else 'aic_gather'}"

    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        kind, shape, valid = _crossing(op, args, kwargs, level, shard)
        if level == "tensor":
            if kwargs["split"] == 0:
                return kind  # type: ignore[no-any-return]
            return TensorType(shape, kind.dtype, None, TensorView(None, TensorLayout.ND, valid))
        if shard:
            _check_boundary(op, kind, kwargs["split"])
        space = M.Vec if shard else M.Mat
        view = implicit_tile_view(shape, space).replace(valid_shape=valid)
        return TileType(shape, kind.dtype, None, view, space)

    return infer


def _aiv_shard(ctx: Any, tile: ArrayValue, *, split: int, lane_stride: int | None = None) -> ArrayValue:
    return split_half(plain(tile), split, ctx.lane, lane_stride)


def _aic_gather(ctx: Any, tile: ArrayValue, *, split: int) -> ArrayValue:
    value = split_half(plain(tile), 0, 0, None)
    if split == 0:
        return value
    return join_halves(_pipes(ctx, "aic_gather").exchange(ctx.lane, value), split)


for _level in ("tensor", "tile"):
    for _name, _shard in (("aiv_shard", True), ("aic_gather", False)):
        define(
            f"{_level}.{_name}",
            Category.TENSOR if _level == "tensor" else Category.CROSS_CORE,
            [Operand(_level, _level)],
            _crossing_infer(_level, _shard),
            doc="this lane's half" if _shard else "the two lanes' halves joined",
            kwargs={**_SPLIT, **(_STRIDE if _shard and _level == "tile" else {})},
            reference=_aiv_shard if _shard else _aic_gather,
            core=MIXED,
            pure=False,
            printed="hide_split_in_region",
            priority="full",
            **({"output_memory": M.Vec if _shard else M.Mat} if _level == "tile" else {}),
        )


def _region_only(name: str) -> Any:
    def function(x: Arg) -> Expr:
        raise RuntimeError(f"pl.{name}(x) must be used inside a 'for ... in pl.split_aiv(...)' loop of a function")

    return function


for _name in ("aiv_shard", "aic_gather"):
    surface("tile", "pl", name=_name, ir=False)(_region_only(_name))


@surface("ir.tile")
def aiv_shard(tile: Arg, *, split: Attr, lane_stride: Attr = None) -> Expr:
    """This lane's half of a tile."""
    return call("tile.aiv_shard", tile, split=split, lane_stride=lane_stride)


@surface("ir.tile")
def aic_gather(tile: Arg, *, split: Attr) -> Expr:
    """The two lanes' halves joined."""
    return call("tile.aic_gather", tile, split=split)


__all__ = ["AUTO", "PipeSet"]
