"""Gathering by index, by mask pattern, by comparison, and by 32-byte blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._lazy import np
from ..ir.dtype import DataType
from ..ir.enums import CoreType, MemorySpace, TileLayout
from ..ir.expr import Expr, index_const
from ..ir.type import TileType, TileView, TupleType, Type
from .compare import COMPARE_NAMES, check_compare_mode, compared
from .definition import REQUIRED, UNSET, InferRule, Operand
from .masks import pattern_of, selected_count
from .normalize import int_attr, scalar_operand
from .numpy_types import numpy_dtype
from .regions import defined_elements, inside, placed
from .registry import call, define
from .rules import (
    require_args,
    require_dtype,
    result_like,
    scalar_dtype,
    scratch_tile,
    show_shape,
    tensor_type,
    tile_type,
)
from .surface import Attr, level_of, surface
from .surface import Operand as Arg
from .values import ArrayValue, fresh
from .windows import multiply, number, provably_exceeds

D = DataType
GATHER_DTYPES = (D.INT16, D.INT32, D.FP16, D.FP32)
VEC = (MemorySpace.Vec,)
TILE_SPEC: dict[str, Any] = {"output_memory": MemorySpace.Vec, "core": CoreType.VECTOR, "not_in_place": True}


def _operand(name: str, level: str, args: Sequence[Expr], index: int) -> Any:
    return tile_type(name, args, index) if level == "tile" else tensor_type(name, args, index, plain=True)


def _require_rank(name: str, what: str, kind: Any, rank: int) -> None:
    if len(kind.shape) != rank:
        raise ValueError(f"{name} requires {what} of rank {rank}, but got rank {len(kind.shape)}")


def _require_index_dtype(name: str, data: DataType, index: DataType) -> None:
    if index is D.INT32:
        return
    if index is not D.INT16:
        raise ValueError(f"{name} requires index dtype INT32 (or INT16 with a 16-bit input), but got {index}")
    if data.get_bit() != 16:
        raise ValueError(f"{name} accepts an INT16 index only with a 16-bit input, but the input is {data}")


# --- index form -------------------------------------------------------------------------------------------------------


def _tensor_gather_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    name = "tensor.gather"
    require_args(name, args, 2)
    a, index = tensor_type(name, args, 0, plain=True), tensor_type(name, args, 1, plain=True)
    require_dtype(name, "input", a.dtype, GATHER_DTYPES)
    _require_index_dtype(name, a.dtype, index.dtype)
    rank = len(a.shape)
    if rank < 2:
        raise ValueError(f"{name} requires an input of rank >= 2, but got rank {rank}")
    _require_rank(name, "index", index, rank)
    dim = kwargs["dim"]
    if not -rank <= dim < rank:
        raise ValueError(f"{name}: dim {dim} is out of range for rank {rank}")
    for i in range(rank):
        if i != dim % rank and provably_exceeds(index.shape[i], a.shape[i]):
            raise ValueError(
                f"{name} requires index extents <= input extents on non-gather axes, "
                f"but got {show_shape(index.shape)} and {show_shape(a.shape)}"
            )
    return result_like(a, index.shape, a.dtype, index.valid_extents)


def _tensor_gather(ctx: Any, a: ArrayValue, index: ArrayValue, dim: int) -> ArrayValue:
    axis = dim % len(a.shape)
    window = tuple(slice(None) if i == axis else slice(0, n) for i, n in enumerate(index.shape))
    source, known = a.data[window], defined_elements(a)
    where = index.data.astype(np.int64)
    in_range = (where >= 0) & (where < source.shape[axis])
    where = np.where(in_range, where, 0)
    if known is not None:
        in_range = in_range & np.take_along_axis(known[window], where, axis)
    if index.mask is not None:
        in_range = in_range & index.mask
    return fresh(np.take_along_axis(source, where, axis), in_range, index.valid)


def _tile_gather_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    name = "tile.gather"
    require_args(name, args, 3)
    src, indices = tile_type(name, args, 0), tile_type(name, args, 1)
    scratch_tile(name, args, 2)
    require_dtype(name, "src", src.dtype, GATHER_DTYPES)
    _require_index_dtype(name, src.dtype, indices.dtype)
    return result_like(src, indices.shape, src.dtype, indices.valid_extents)


def _tile_gather(ctx: Any, src: ArrayValue, indices: ArrayValue, tmp: Any) -> ArrayValue:
    flat, known = src.data.reshape(-1), defined_elements(src)
    where = indices.data.astype(np.int64)
    in_range = (where >= 0) & (where < flat.size)
    where = np.where(in_range, where, 0)
    if known is not None:
        in_range = in_range & known.reshape(-1)[where]
    if indices.mask is not None:
        in_range = in_range & indices.mask
    return fresh(flat[where], in_range, indices.valid)


define(
    "tensor.gather",
    [Operand("input", "tensor"), Operand("index", "tensor", "index")],
    _tensor_gather_infer,
    doc="take_along_axis(input, index, dim)",
    kwargs={"dim": (int, REQUIRED)},
    reference=_tensor_gather,
    priority="full",
)
define(
    "tile.gather",
    [Operand("src", "tile"), Operand("indices", "tile", "index"), Operand("tmp", "tile", "scratch")],
    _tile_gather_infer,
    doc="elements of the row-major src by flat index",
    reference=_tile_gather,
    input_memory=(VEC, VEC, VEC),
    priority="full",
    **TILE_SPEC,
)


# --- blocks of 32 bytes -----------------------------------------------------------------------------------------------

BLOCK_BYTES = 32


def _gatherb_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    name = "tile.gatherb"
    require_args(name, args, 2)
    src, offset = tile_type(name, args, 0), tile_type(name, args, 1)
    _require_rank(name, "src", src, 2)
    _require_rank(name, "offset", offset, 2)
    if offset.dtype is not D.UINT32:
        raise ValueError(f"{name} requires offset dtype UINT32, but got {offset.dtype}")
    columns = number(offset.shape[1])
    if columns is None or columns <= 0 or columns % 8:
        raise ValueError(f"{name} requires the offset columns to be a static positive multiple of 8")
    dtype = kwargs.get("output_dtype") or src.dtype
    factor = index_const(BLOCK_BYTES // dtype.get_byte())
    shape = [offset.shape[0], multiply(offset.shape[1], factor)]
    valid = offset.valid_extents
    view = TileView([valid[0], multiply(valid[1], factor)], blayout=TileLayout.row_major)
    return TileType(shape, dtype, None, view)


def _gatherb(ctx: Any, src: ArrayValue, offset: ArrayValue, **_: Any) -> ArrayValue:
    dtype = numpy_dtype(ctx.type.dtype)
    raw = np.ascontiguousarray(src.data).view(np.uint8).reshape(-1)
    starts = offset.data.astype(np.int64)
    in_range = starts + BLOCK_BYTES <= raw.size
    where = np.where(in_range, starts, 0)[..., None] + np.arange(BLOCK_BYTES)
    where = np.minimum(where, raw.size - 1)
    known = np.broadcast_to(in_range[..., None], where.shape)
    defined = defined_elements(src)
    if defined is not None:
        known = known & np.repeat(defined.reshape(-1), src.dtype.itemsize)[where]
    if offset.mask is not None:
        known = known & offset.mask[..., None]
    per_block = BLOCK_BYTES // dtype.itemsize
    rows, columns = offset.shape
    data = np.ascontiguousarray(raw[where]).view(dtype).reshape(rows, columns * per_block)
    mask = known.reshape(rows, columns * per_block, dtype.itemsize).all(axis=-1)
    return fresh(data, mask, (offset.valid[0], offset.valid[1] * per_block))


define(
    "tile.gatherb",
    [Operand("src", "tile"), Operand("offset", "tile", "index")],
    _gatherb_infer,
    doc="one 32-byte block of src for each byte offset",
    kwargs={"output_dtype": (DataType, UNSET)},
    reference=_gatherb,
    input_memory=(VEC, VEC),
    priority="full",
    **TILE_SPEC,
)


# --- mask form --------------------------------------------------------------------------------------------------------


def _mask_infer(name: str, level: str) -> InferRule:
    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(name, args, 1)
        a = _operand(name, level, args, 0)
        _require_rank(name, "input", a, 2)
        require_dtype(name, "input", a.dtype, GATHER_DTYPES)
        group, position = pattern_of(name, kwargs["mask_pattern"])
        columns = number(a.shape[1])
        if columns is not None and columns % group:
            raise ValueError(f"{name} requires the column count {columns} to be divisible by {group}")
        if columns is None and group > 1:
            raise ValueError(f"{name} requires a static column count that is divisible by {group}")
        dtype = kwargs.get("output_dtype") or a.dtype
        if dtype.get_bit() != a.dtype.get_bit():
            raise ValueError(f"{name} requires output_dtype of the same bit width as {a.dtype}, but got {dtype}")
        shape = [a.shape[0], a.shape[1] if columns is None else index_const(columns // group)]
        valid = a.valid_extents
        return result_like(a, shape, dtype, [valid[0], selected_count(valid[1], group, position)])

    return infer


def _gather_mask(ctx: Any, a: ArrayValue, mask_pattern: int, **_: Any) -> ArrayValue:
    group, position = pattern_of("gather_mask", mask_pattern)
    picked = np.ascontiguousarray(a.data[:, position::group]).view(numpy_dtype(ctx.type.dtype))
    mask = None if a.mask is None else a.mask[:, position::group]
    return fresh(picked, mask, (a.valid[0], (a.valid[1] + group - 1 - position) // group))


# --- compare form -----------------------------------------------------------------------------------------------------


def _compare_infer(name: str, level: str) -> InferRule:
    scratch = level == "tile"

    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(name, args, 3 if scratch else 2)
        a = _operand(name, level, args, 0)
        _require_rank(name, "input", a, 2)
        require_dtype(name, "input", a.dtype, GATHER_DTYPES)
        kvalue = scalar_dtype(name, args, 1)
        if kvalue is not a.dtype:
            raise ValueError(f"{name} requires kvalue dtype {a.dtype}, but got {kvalue}")
        if scratch and scratch_tile(name, args, 2).dtype is not D.UINT8:
            raise ValueError(f"{name} requires tmp dtype UINT8, but got {args[2].type.dtype}")  # type: ignore[attr-defined]
        check_compare_mode(name, "cmp_mode", kwargs["cmp_mode"])
        out_cols = kwargs["out_cols"]
        if out_cols <= 0:
            raise ValueError(f"{name} requires out_cols > 0, but got {out_cols}")
        count = kwargs.get("count_dtype") or D.INT32
        require_dtype(name, "count_dtype", count, (D.INT32, D.UINT32))
        rows, valid_rows, one, width = a.shape[0], a.valid_extents[0], index_const(1), index_const(out_cols)
        first = result_like(a, [rows, width], D.INT32, [valid_rows, width])
        if scratch:
            view = TileView([one, valid_rows], blayout=TileLayout.row_major)
            return TupleType([first, TileType([one, rows], count, None, view)])
        return TupleType([first, result_like(a, [one, rows], count, [one, valid_rows])])

    return infer


def _gather_compare(
    ctx: Any, a: ArrayValue, kvalue: Any, tmp: Any = None, *, cmp_mode: int, out_cols: int, offset: int = 0, **_: Any
) -> list[ArrayValue]:
    truth, mask = compared(a, kvalue, cmp_mode)
    truth = truth & inside(a.shape, a.valid)
    rows = a.shape[0]
    positions, written = np.zeros((rows, out_cols), np.int32), np.zeros((rows, out_cols), np.bool_)
    counts = np.zeros((1, rows), numpy_dtype(ctx.type.types[1].dtype))
    for row in range(a.valid[0]):
        hits = np.flatnonzero(truth[row])
        taken = hits[:out_cols]
        positions[row, : taken.size] = offset + taken
        written[row, : taken.size] = True
        counts[0, row] = hits.size
    sure = np.ones(rows, np.bool_)
    if mask is not None:  # an undefined element makes the row's matches and their number undefined
        sure[: a.valid[0]] = mask[: a.valid[0], : a.valid[1]].all(axis=1)
    first = fresh(positions, written & sure[:, None], (a.valid[0], out_cols))
    return [first, placed(counts[:, : a.valid[0]], sure[None, : a.valid[0]], (1, rows))]


for _level in ("tensor", "tile"):
    _first = "src" if _level == "tile" else "input"
    define(
        f"{_level}.gather_mask",
        [Operand(_first, _level)],
        _mask_infer(f"{_level}.gather_mask", _level),
        doc="the columns that a mask pattern selects",
        kwargs={"mask_pattern": (int, REQUIRED), "output_dtype": (DataType, UNSET)},
        reference=_gather_mask,
        priority="full",
        **(dict(TILE_SPEC, input_memory=(VEC,)) if _level == "tile" else {}),
    )
    define(
        f"{_level}.gather_compare",
        [
            Operand(_first, _level),
            Operand("kvalue", "scalar"),
            *([Operand("tmp", "tile", "scratch")] if _level == "tile" else []),
        ],
        _compare_infer(f"{_level}.gather_compare", _level),
        doc="per row the numbers of the columns that compare true, and how many do",
        kwargs={
            "cmp_mode": (int, REQUIRED),
            "offset": (int, 0),
            "out_cols": (int, REQUIRED),
            "count_dtype": (DataType, UNSET),
        },
        reference=_gather_compare,
        priority="full",
        **(dict(TILE_SPEC, input_memory=(VEC, (), VEC)) if _level == "tile" else {}),
    )


# --- surface ----------------------------------------------------------------------------------------------------------


def resolve_compare_mode(cmp_mode: Any) -> int:
    """The int of a comparison given by name or number."""
    if isinstance(cmp_mode, str):
        if cmp_mode in COMPARE_NAMES:
            return COMPARE_NAMES.index(cmp_mode)
    elif isinstance(cmp_mode, int) and not isinstance(cmp_mode, bool) and 0 <= cmp_mode < len(COMPARE_NAMES):
        return int(cmp_mode)
    raise ValueError(f"cmp_mode must be one of {', '.join(COMPARE_NAMES)} or 0..5, got {cmp_mode!r}")


def _compare_kwargs(cmp_mode: Any, offset: Any, out_cols: Any, count_dtype: Any) -> dict[str, Any]:
    start = int_attr(offset, "offset")
    return {
        "cmp_mode": resolve_compare_mode(cmp_mode),
        "offset": start or None,
        "out_cols": int_attr(out_cols, "out_cols"),
        "count_dtype": count_dtype,
    }


@surface("tensor", "pl", name="gather")
def gather(
    input: Arg,
    *args: Any,
    dim: Attr = None,
    index: Arg = None,
    mask_pattern: Attr = None,
    output_dtype: Attr = None,
    kvalue: Arg = None,
    cmp_mode: Attr = None,
    out_cols: Attr = None,
    offset: Attr = 0,
    count_dtype: Attr = None,
) -> Expr:
    """``gather(input, dim, index)``, or by ``mask_pattern=``, or by ``kvalue=, cmp_mode=, out_cols=``.

    The printed form of the first, ``gather(input, index, dim=..)``, is understood as well.
    """
    dim, index = positional_dim("gather", args, {"dim": dim, "index": index})
    by_index = dim is not None or index is not None
    by_mask = mask_pattern is not None or output_dtype is not None
    shifted = int_attr(offset, "offset") != 0
    by_compare = shifted or any(v is not None for v in (kvalue, cmp_mode, out_cols, count_dtype))
    if by_index + by_mask + by_compare > 1:
        raise ValueError("gather: the index, mask_pattern and kvalue forms are mutually exclusive")
    if by_mask:
        _require_given("mask", mask_pattern=mask_pattern)
        return tensor_gather_mask(input, mask_pattern, output_dtype)
    if by_compare:
        _require_given("compare", kvalue=kvalue, cmp_mode=cmp_mode, out_cols=out_cols)
        return tensor_gather_compare(
            input, kvalue, cmp_mode=cmp_mode, offset=offset, out_cols=out_cols, count_dtype=count_dtype
        )
    _require_given("index", dim=dim, index=index)
    return call("tensor.gather", input, index, dim=int_attr(dim, "dim"))


def positional_dim(name: str, args: Sequence[Any], named: dict[str, Any]) -> list[Any]:
    """The values of ``named`` (in order, ``dim`` first) after the positional arguments took their places.

    Printed calls put the operands first and ``dim`` behind them by keyword, so ``dim`` may be left out in front.
    """
    keys = list(named)
    if args and args[0] is not None and level_of(args[0]) != "scalar":
        keys.remove("dim")
    if len(args) > len(keys):
        raise TypeError(f"{name} takes at most {', '.join(keys)} after the input, got {len(args)} positional arguments")
    for key, given in zip(keys, args, strict=False):
        if named[key] is not None:
            raise TypeError(f"{name} got multiple values for argument {key!r}")
        named[key] = given
    return list(named.values())


def _require_given(form: str, **arguments: Any) -> None:
    missing = [key for key, value in arguments.items() if value is None]
    if missing:
        raise ValueError(f"gather: the {form} form is missing {', '.join(missing)}")


@surface("ir.tensor", name="gather_mask")
def tensor_gather_mask(input: Arg, mask_pattern: Attr, output_dtype: Attr = None) -> Expr:
    return call(
        "tensor.gather_mask", input, mask_pattern=int_attr(mask_pattern, "mask_pattern"), output_dtype=output_dtype
    )


@surface("ir.tensor", name="gather_compare")
def tensor_gather_compare(
    input: Arg, kvalue: Arg, *, cmp_mode: Attr, offset: Attr = 0, out_cols: Attr, count_dtype: Attr = None
) -> Expr:
    scalar = scalar_operand(kvalue, input.type.dtype)
    return call("tensor.gather_compare", input, scalar, **_compare_kwargs(cmp_mode, offset, out_cols, count_dtype))


@surface("tile", name="gather")
def tile_gather(src: Arg, indices: Arg, tmp: Arg) -> Expr:
    return call("tile.gather", src, indices, tmp)


@surface("tile", "pl", name="gatherb")
def gatherb(src: Arg, offset: Arg, *, output_dtype: Attr = None) -> Expr:
    return call("tile.gatherb", src, offset, output_dtype=output_dtype)


@surface("tile", name="gather_mask")
def tile_gather_mask(src: Arg, mask_pattern: Attr, *, output_dtype: Attr = None) -> Expr:
    return call("tile.gather_mask", src, mask_pattern=int_attr(mask_pattern, "mask_pattern"), output_dtype=output_dtype)


@surface("tile", name="gather_compare")
def tile_gather_compare(
    src: Arg,
    kvalue: Arg,
    tmp: Arg,
    *,
    cmp_mode: Attr = "eq",
    offset: Attr = 0,
    out_cols: Attr,
    count_dtype: Attr = None,
) -> Expr:
    scalar = scalar_operand(kvalue, src.type.dtype)
    return call("tile.gather_compare", src, scalar, tmp, **_compare_kwargs(cmp_mode, offset, out_cols, count_dtype))


@surface("ir.tile", name="resolve_gather_compare_cmp_mode")
def resolve_gather_compare_cmp_mode(cmp_mode: Attr) -> int:
    return resolve_compare_mode(cmp_mode)
