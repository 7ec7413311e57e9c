"""Row-wise gathers from global memory: gather_row into a tile or an accumulator, paged_gather through a block table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._lazy import np
from ..ir.dtype import DataType
from ..ir.enums import ArgEffect, MemorySpace
from ..ir.expr import Expr, index_const
from ..ir.type import Type
from .definition import INHERIT, REQUIRED, Alias, InferRule, Operand, Window
from .normalize import extents, int_attr
from .numpy_types import numpy_dtype
from .regions import defined_elements
from .registry import call, define
from .rules import is_one, require_args, require_dtype, show_shape, tensor_result, tensor_type, tile_type
from .surface import Attr, common_level, surface
from .surface import Operand as Arg
from .values import ArrayValue, OutOfBoundsError, fresh
from .windows import add, number, provably_exceeds, smaller, static_shape, tuple_operand

D = DataType
PAGED_DTYPES = (D.FP16, D.BF16, D.FP32, D.INT8)


# --- gather_row -------------------------------------------------------------------------------------------------------


def _require_ranks(name: str, **tuples: tuple[Sequence[Expr], int]) -> None:
    for what, (items, rank) in tuples.items():
        if len(items) != rank:
            raise ValueError(f"{name} requires {what} of rank {rank}, but got {len(items)} entries")


def _require_inside(name: str, what: str, offset: Sequence[Expr], size: Sequence[Expr], shape: Sequence[Expr]) -> None:
    for i, (start, length, extent) in enumerate(zip(offset, size, shape, strict=True)):
        if provably_exceeds(index_const(0), start):
            raise ValueError(f"{name}: {what} offset {i} is provably negative")
        if provably_exceeds(add(start, length), extent):
            raise ValueError(f"{name}: the window leaves {what} {show_shape(shape)} in dimension {i}")


def _row_infer(name: str, level: str) -> InferRule:
    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(name, args, 5, 6)
        dst: Any = tile_type(name, args, 0) if level == "tile" else tensor_type(name, args, 0, plain=True)
        src = tensor_type(name, args, 1)
        if dst.dtype is not src.dtype:
            raise ValueError(f"{name} requires destination and src of the same dtype, but got {dst.dtype}, {src.dtype}")
        rank = len(src.shape)
        dst_offset = tuple_operand(name, args, 2, "dst_offset")
        src_offset = tuple_operand(name, args, 3, "src_offset")
        shapes = tuple_operand(name, args, 4, "shapes")
        static_shape(name, shapes, "shapes")
        _require_ranks(
            name, dst_offset=(dst_offset, len(dst.shape)), src_offset=(src_offset, rank), shapes=(shapes, rank)
        )
        if len(dst.shape) != rank:
            raise ValueError(f"{name} requires destination and src of equal rank, but got {len(dst.shape)} and {rank}")
        transpose = kwargs.get("transpose", False)
        if transpose and rank < 2:
            raise ValueError(f"{name} requires rank >= 2 with transpose=True")
        moved: Sequence[Expr] = shapes
        if len(args) == 6:
            moved = tuple_operand(name, args, 5, "valid_shape")
            _require_ranks(name, valid_shape=(moved, rank))
            if transpose and any(number(e) is None for e in moved):
                raise ValueError(f"{name} requires a static valid_shape with transpose=True")
            if any(map(provably_exceeds, moved, shapes)):
                raise ValueError(f"{name} requires valid_shape within shapes")
        _require_inside(name, "src", src_offset, moved, src.shape)
        placed = [*moved[:-2], moved[-1], moved[-2]] if transpose else moved
        _require_inside(name, "destination", dst_offset, placed, dst.shape)
        return dst  # type: ignore[no-any-return]

    return infer


def _gather_row(
    ctx: Any,
    dst: ArrayValue,
    src: ArrayValue,
    dst_offset: Sequence[int],
    src_offset: Sequence[int],
    shapes: Sequence[int],
    valid_shape: Sequence[int] | None = None,
    transpose: bool = False,
) -> ArrayValue:
    size = tuple(shapes if valid_shape is None else valid_shape)
    source = _window("src", src_offset, size, src.shape)
    values, known = src.data[source], defined_elements(src)
    known = None if known is None else known[source]
    if transpose:
        values = np.swapaxes(values, -1, -2)
        known = None if known is None else np.swapaxes(known, -1, -2)
    dst.write(_window("destination", dst_offset, values.shape, dst.shape), values, known)
    return dst


def _window(what: str, offset: Sequence[int], size: Sequence[int], shape: Sequence[int]) -> tuple[slice, ...]:
    for i, (start, length, extent) in enumerate(zip(offset, size, shape, strict=True)):
        if start < 0 or start + length > extent:
            raise OutOfBoundsError(
                f"gather_row: rows {start}..{start + length} leave {what} of extent {extent} in dimension {i}"
            )
    return tuple(slice(start, start + length) for start, length in zip(offset, size, strict=True))


for _level, _first in (("tensor", "acc"), ("tile", "dst")):
    define(
        f"{_level}.gather_row",
        [
            Operand(_first, _level, "destination"),
            Operand("src", "window"),
            Operand("dst_offset", "tuple", "index"),
            Operand("src_offset", "tuple", "index"),
            Operand("shapes", "tuple", "shape"),
            Operand("valid_shape", "tuple", "shape", optional=True),
        ],
        _row_infer(f"{_level}.gather_row", _level),
        doc="a window of src into the destination at dst_offset, transposed when asked",
        kwargs={"transpose": (bool, False)},
        reference=_gather_row,
        effects={0: ArgEffect.ReadWrite},
        alias=Alias.IS,
        alias_operand=0,
        windows={0: Window(2, (5, 4), transposed="transpose"), 1: Window(3, (5, 4))},
        printed="gather_row",
        priority="rare",
        **({"output_memory": INHERIT} if _level == "tile" else {}),
    )


def _row_call(
    level: str, dst: Arg, src: Arg, dst_offset: Any, src_offset: Any, shapes: Any, transpose: Any, valid_shape: Any
) -> Expr:
    operands = [dst, src, extents(dst_offset), extents(src_offset), extents(shapes)]
    if valid_shape is not None:
        operands.append(extents(valid_shape))
    return call(f"{level}.gather_row", *operands, transpose=True if transpose else None)


@surface("tensor", name="gather_row")
def tensor_gather_row(
    acc: Arg,
    src: Arg,
    dst_offset: Arg,
    src_offset: Arg,
    shapes: Arg,
    transpose: Attr = False,
    *,
    valid_shape: Arg = None,
) -> Expr:
    return _row_call("tensor", acc, src, dst_offset, src_offset, shapes, transpose, valid_shape)


@surface("tile", name="gather_row")
def tile_gather_row(
    dst: Arg,
    src: Arg,
    dst_offset: Arg,
    src_offset: Arg,
    shapes: Arg,
    transpose: Attr = False,
    *,
    valid_shape: Arg = None,
) -> Expr:
    return _row_call("tile", dst, src, dst_offset, src_offset, shapes, transpose, valid_shape)


@surface("pl", name="gather_row")
def gather_row(
    dst: Arg,
    src: Arg,
    dst_offset: Arg,
    src_offset: Arg,
    shapes: Arg,
    transpose: Attr = False,
    *,
    valid_shape: Arg = None,
) -> Expr:
    level = common_level("gather_row", dst)
    return _row_call(level, dst, src, dst_offset, src_offset, shapes, transpose, valid_shape)


# --- paged_gather -----------------------------------------------------------------------------------------------------


def _require_list(name: str, what: str, kind: Any) -> Expr:
    """A list is 1-D or ``[1, n]``; its valid length."""
    if kind.dtype is not D.INT32:
        raise ValueError(f"{name} requires {what} dtype INT32, but got {kind.dtype}")
    if len(kind.shape) not in (1, 2) or (len(kind.shape) == 2 and not is_one(kind.shape[0])):
        raise ValueError(f"{name} requires {what} of shape [n] or [1, n], but got {show_shape(kind.shape)}")
    return kind.valid_extents[-1]  # type: ignore[no-any-return]


def _paged_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    name = "tensor.paged_gather"
    require_args(name, args, 3)
    src, indices, table = (tensor_type(name, args, i, plain=True) for i in range(3))
    require_dtype(name, "src", src.dtype, PAGED_DTYPES)
    if len(src.shape) != 2:
        raise ValueError(f"{name} requires src of rank 2, but got rank {len(src.shape)}")
    length = _require_list(name, "indices", indices)
    _require_list(name, "block_table", table)
    for key in ("block_size", "size", "max_indices"):
        if kwargs[key] <= 0:
            raise ValueError(f"{name} requires {key} > 0, but got {kwargs[key]}")
    column, size, count = kwargs.get("col_off", 0), kwargs["size"], kwargs["max_indices"]
    if column < 0:
        raise ValueError(f"{name} requires col_off >= 0, but got {column}")
    if provably_exceeds(index_const(column + size), src.shape[1]):
        raise ValueError(f"{name} requires col_off + size <= the {show_shape(src.shape)[1:-1]} columns of src")
    space, transposed = kwargs.get("space", MemorySpace.Mat), kwargs.get("is_trans", False)
    if transposed and space is not MemorySpace.Mat:
        raise ValueError(f"{name} requires space=Mat with is_trans=True")
    if space not in (MemorySpace.Mat, MemorySpace.Vec):
        raise ValueError(f"{name} requires space Mat or Vec, but got {space.name}")
    rows, width = index_const(count), index_const(size)
    valid_rows = smaller(length, rows)
    if transposed:
        return tensor_result([width, rows], src.dtype, [width, valid_rows])
    return tensor_result([rows, width], src.dtype, [valid_rows, width])


def _paged_gather(
    ctx: Any,
    src: ArrayValue,
    indices: ArrayValue,
    block_table: ArrayValue,
    *,
    block_size: int,
    size: int,
    max_indices: int,
    col_off: int = 0,
    is_trans: bool = False,
    **_: Any,
) -> ArrayValue:
    data = np.zeros((max_indices, size), numpy_dtype(ctx.type.dtype))
    known = np.zeros(data.shape, np.bool_)
    defined = defined_elements(src)
    count = min(indices.valid[-1], max_indices)
    logical, table = indices.data.reshape(-1), block_table.data.reshape(-1)
    for i in range(count):
        block, row = divmod(int(logical[i]), block_size)
        if not 0 <= block < block_table.valid[-1]:
            continue
        physical = int(table[block]) * block_size + row
        if 0 <= physical < src.shape[0]:
            data[i] = src.data[physical, col_off : col_off + size]
            known[i] = True if defined is None else defined[physical, col_off : col_off + size]
    for operand in (indices, block_table):
        if operand.mask is not None and not operand.mask.all():
            known[...] = False
    valid = (count, size)
    if is_trans:
        return fresh(data.T, known.T, valid[::-1])
    return fresh(data, known, valid)


define(
    "tensor.paged_gather",
    [Operand("src", "tensor"), Operand("indices", "tensor", "index"), Operand("block_table", "tensor", "index")],
    _paged_infer,
    doc="rows of src by logical index through a table of blocks",
    kwargs={
        "block_size": (int, REQUIRED),
        "size": (int, REQUIRED),
        "max_indices": (int, REQUIRED),
        "col_off": (int, 0),
        "is_trans": (bool, False),
        "is_b_matrix": (bool, False),
        "space": (MemorySpace, MemorySpace.Mat),
    },
    reference=_paged_gather,
    priority="rare",
)


@surface("tensor", "pl", name="paged_gather")
def paged_gather(
    src: Arg,
    indices: Arg,
    block_table: Arg,
    block_size: Attr,
    size: Attr,
    max_indices: Attr,
    *,
    space: Attr = MemorySpace.Mat,
    col_off: Attr = 0,
    is_trans: Attr = False,
    is_b_matrix: Attr = False,
) -> Expr:
    return call(
        "tensor.paged_gather",
        src,
        indices,
        block_table,
        block_size=int_attr(block_size, "block_size"),
        size=int_attr(size, "size"),
        max_indices=int_attr(max_indices, "max_indices"),
        space=None if space is MemorySpace.Mat else space,
        col_off=int_attr(col_off, "col_off") or None,
        is_trans=True if is_trans else None,
        is_b_matrix=True if is_b_matrix else None,
    )
