"""Sorting of (value, index) pairs: sort32 sorts blocks of 32, mrgsort merges sorted lists.

A sorted list is a sequence of 8-byte pairs. FP32 pairs take two elements (the value, then the bits of its UINT32
index); FP16 pairs take four (value, zero, low and high half of the index).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._lazy import np
from ..ir.dtype import DataType
from ..ir.enums import CoreType, MemorySpace
from ..ir.expr import ConstInt, Expr, index_const
from ..ir.type import ScalarType, TileType, Type
from .definition import InferRule, Operand
from .elementwise import HALF_OR_SINGLE
from .normalize import extent
from .registry import call, define
from .rules import require_args, require_dtype, result_like, same_extent, tensor_type, tile_type
from .surface import Attr, common_level, level_of, mixed_error, surface
from .surface import Operand as Arg
from .values import ArrayValue, fresh
from .windows import add, multiply, number, provably_exceeds

VEC = (MemorySpace.Vec,)
TILE_SPEC: dict[str, Any] = {"output_memory": MemorySpace.Vec, "core": CoreType.VECTOR, "not_in_place": True}
BLOCK = 32
PAIR_BYTES = 8


def _slots(itemsize: int) -> int:
    """Elements of a pair."""
    return PAIR_BYTES // itemsize


# --- type rules -------------------------------------------------------------------------------------------------------


def _require_full_last(name: str, what: str, kind: Any) -> None:
    """A list with undefined elements has no order: its last axis must not be provably partial."""
    if not kind.shape:
        raise ValueError(f"{name} requires {what} of rank >= 1")
    if provably_exceeds(kind.shape[-1], kind.valid_extents[-1]):
        raise ValueError(f"{name} requires {what} to be fully valid along its last dimension")


def _require_pairs(name: str, what: str, kind: Any) -> None:
    """A sorted list consists of whole pairs."""
    _require_full_last(name, what, kind)
    last, slots = number(kind.shape[-1]), _slots(kind.dtype.get_byte())
    if last is not None and last % slots:
        raise ValueError(f"{name} requires {what} to hold whole pairs of {slots} elements, but got {last} in a row")


def _operand(name: str, level: str, args: Sequence[Expr], index: int) -> Any:
    return tile_type(name, args, index) if level == "tile" else tensor_type(name, args, index, plain=True)


def _sort32_infer(name: str, level: str) -> InferRule:
    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(name, args, 2)
        src, idx = _operand(name, level, args, 0), _operand(name, level, args, 1)
        require_dtype(name, "src", src.dtype, HALF_OR_SINGLE)
        if idx.dtype is not DataType.UINT32:
            raise ValueError(f"{name} requires idx dtype UINT32, but got {idx.dtype}")
        if len(idx.shape) != len(src.shape):
            raise ValueError(f"{name} requires idx rank {len(src.shape)}, but got {len(idx.shape)}")
        if not all(map(same_extent, src.shape, idx.shape)):
            raise ValueError(f"{name} requires idx shape to match src shape")
        _require_full_last(name, "src", src)
        _require_full_last(name, "idx", idx)
        last = number(src.shape[-1])
        if last is not None and (last <= 0 or last % BLOCK):
            raise ValueError(f"{name} requires the last dimension to be a positive multiple of {BLOCK}, but got {last}")
        doubled = multiply(src.shape[-1], index_const(_slots(src.dtype.get_byte())))
        return result_like(src, [*src.shape[:-1], doubled], src.dtype, [*src.valid_extents[:-1], doubled])

    return infer


def _format1_infer(name: str, level: str) -> InferRule:
    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(name, args, 2)
        src = _operand(name, level, args, 0)
        require_dtype(name, "src", src.dtype, HALF_OR_SINGLE)
        block = args[1]
        kind = block.type
        if type(kind) is not ScalarType or not kind.dtype.is_int_:
            raise ValueError(f"{name} requires block_len to be an integer scalar")
        if type(block) is not ConstInt or block.value <= 0 or block.value % 64:
            raise ValueError(f"{name} requires block_len to be a constant positive multiple of 64")
        _require_pairs(name, "src", src)
        return result_like(src, src.shape, src.dtype, src.valid_extents)

    return infer


def _format2_infer(name: str, level: str) -> InferRule:
    scratch = level == "tile"

    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(name, args, 3 if scratch else 2, 5 if scratch else 4)
        kinds = [_operand(name, level, args, i) for i in range(len(args))]
        tmp = kinds.pop() if scratch else None
        first = kinds[0]
        require_dtype(name, "src0", first.dtype, HALF_OR_SINGLE)
        for i, kind in enumerate(kinds):
            if kind.dtype is not first.dtype:
                raise ValueError(f"{name} requires sources of matching dtype, but src{i} is {kind.dtype}")
            if len(kind.shape) != len(first.shape):
                raise ValueError(f"{name} requires sources of matching rank, but src{i} has rank {len(kind.shape)}")
            if not all(map(same_extent, kind.shape[:-1], first.shape[:-1])):
                raise ValueError(f"{name} requires sources of matching leading dimensions")
            _require_pairs(name, f"src{i}", kind)
        if tmp is not None:
            if tmp.dtype is not first.dtype:
                raise ValueError(f"{name} requires tmp of matching dtype {first.dtype}, but got {tmp.dtype}")
            return result_like(first, tmp.shape, first.dtype, None)
        total = first.shape[-1]
        for kind in kinds[1:]:
            total = add(total, kind.shape[-1])
        return result_like(first, [*first.shape[:-1], total], first.dtype, None)

    return infer


# --- reference semantics ----------------------------------------------------------------------------------------------


def _descending(values: Any, tie: Any = None) -> Any:
    """The order of values from large to small along the last axis; ties by ``tie``, else by position; NaN last."""
    keys = -values.astype(np.float64)
    return np.argsort(keys, axis=-1, kind="stable") if tie is None else np.lexsort((tie, keys), axis=-1)


def _sort32(ctx: Any, src: ArrayValue, idx: ArrayValue) -> ArrayValue:
    lead, last = src.shape[:-1], src.shape[-1]
    blocks = (*lead, last // BLOCK, BLOCK)
    values, indices = src.data.reshape(blocks), idx.data.reshape(blocks)
    order = _descending(values, indices)
    values = np.take_along_axis(values, order, -1)
    indices = np.ascontiguousarray(np.take_along_axis(indices, order, -1))
    slots = _slots(src.dtype.itemsize)
    out = np.zeros((*blocks, slots), src.dtype)
    out[..., 0] = values
    index_slots = 4 // src.dtype.itemsize  # the four bytes of the index fill the end of the pair
    out[..., slots - index_slots :] = indices.view(src.dtype).reshape(*blocks, index_slots)
    shape = (*lead, last * slots)
    mask = None
    for operand in (src, idx):
        if operand.mask is not None:
            known = np.repeat(operand.mask.reshape(blocks).all(axis=-1), BLOCK * slots, axis=-1)
            mask = known if mask is None else mask & known
    return fresh(out.reshape(shape), mask, (*src.valid[:-1], last * slots))


def _pairs(data: Any) -> Any:
    slots = _slots(data.dtype.itemsize)
    return np.ascontiguousarray(data).reshape(*data.shape[:-1], data.shape[-1] // slots, slots)


def _merge(pairs: Any) -> tuple[Any, Any]:
    """Concatenated sorted lists as one, and the order taken; on ties the earlier list wins."""
    order = _descending(pairs[..., 0])
    return np.take_along_axis(pairs, order[..., None], -2), order


def _format1(ctx: Any, src: ArrayValue, block_len: int) -> ArrayValue:
    out, mask = src.data.copy(), src.mask
    known = None if mask is None else mask.copy()
    group = 4 * block_len
    for start in range(0, src.shape[-1], group):
        part = slice(start, start + group)
        merged, _ = _merge(_pairs(src.data[..., part]))
        out[..., part] = merged.reshape(out[..., part].shape)
        if known is not None:
            known[..., part] = known[..., part].all(axis=-1, keepdims=True)
    return fresh(out, known, src.valid)


def _format2(ctx: Any, *operands: ArrayValue, exhausted: bool = False) -> ArrayValue:
    scratch = type(ctx.type) is TileType
    sources = operands[:-1] if scratch else operands
    merged, order = _merge(np.concatenate([_pairs(s.data) for s in sources], axis=-2))
    slots = merged.shape[-1]
    data = merged.reshape(*merged.shape[:-2], -1)
    known = np.ones(data.shape, np.bool_)
    for source in sources:
        if source.mask is not None:
            known &= source.mask.all(axis=-1, keepdims=True)
    if exhausted:  # merging stops when the first list is used up
        bounds = np.cumsum([s.shape[-1] // slots for s in sources])
        position = np.argsort(order, axis=-1)
        last = np.min(np.stack([position[..., b - 1] for b in bounds], axis=-1), axis=-1)
        known &= np.repeat(np.arange(order.shape[-1]) <= last[..., None], slots, axis=-1)
    if scratch and operands[-1].shape != data.shape:
        shape = operands[-1].shape
        window = tuple(slice(0, min(m, n)) for m, n in zip(shape, data.shape, strict=True))
        full, full_known = np.zeros(shape, data.dtype), np.zeros(shape, np.bool_)
        full[window], full_known[window] = data[window], known[window]
        return fresh(full, full_known)
    return fresh(data, known)


# --- definitions ------------------------------------------------------------------------------------------------------

for _level in ("tensor", "tile"):
    _tile = _level == "tile"
    define(
        f"{_level}.sort32",
        [Operand("src", _level), Operand("idx", _level, "index")],
        _sort32_infer(f"{_level}.sort32", _level),
        doc="sort each block of 32 by value descending, ties by smaller index; interleaves values and indices",
        reference=_sort32,
        priority="full",
        **(dict(TILE_SPEC, input_memory=(VEC, VEC)) if _tile else {}),
    )
    define(
        f"{_level}.mrgsort_format1",
        [Operand("src", _level), Operand("block_len", "const")],
        _format1_infer(f"{_level}.mrgsort_format1", _level),
        doc="merge each group of four consecutive sorted runs of block_len elements",
        reference=_format1,
        priority="full",
        **(dict(TILE_SPEC, input_memory=(VEC,)) if _tile else {}),
    )
    define(
        f"{_level}.mrgsort_format2",
        [
            Operand("src0", _level),
            Operand("src1", _level),
            Operand("src2", _level, optional=True),
            Operand("src3", _level, optional=True),
            *([Operand("tmp", "tile", "scratch")] if _tile else []),
        ],
        _format2_infer(f"{_level}.mrgsort_format2", _level),
        doc="merge two to four sorted lists; exhausted stops when the first is used up",
        kwargs={"exhausted": (bool, False)},
        reference=_format2,
        priority="full",
        **(dict(TILE_SPEC, input_memory=(VEC,) * 5) if _tile else {}),
    )


# --- surface ----------------------------------------------------------------------------------------------------------


@surface("tensor", name="sort32")
def tensor_sort32(src: Arg, idx: Arg) -> Expr:
    return call("tensor.sort32", src, idx)


@surface("tile", name="sort32")
def tile_sort32(src: Arg, idx: Arg) -> Expr:
    return call("tile.sort32", src, idx)


@surface("pl", name="sort32")
def sort32(src: Arg, idx: Arg) -> Expr:
    level = common_level("sort32", src, idx)
    return call(f"{level}.sort32", src, idx)


def _sources(
    src0: Arg, src1: Arg, src2: Arg, src3: Arg, tmp: Arg, exhausted: bool, block_len: Any
) -> list[Expr] | None:
    """The sources of format 2, or None for format 1."""
    if block_len is not None:
        if exhausted or any(s is not None for s in (src1, src2, src3, tmp)):
            raise ValueError("mrgsort: block_len (format 1) and the operands of format 2 are mutually exclusive")
        return None
    if src1 is None:
        raise ValueError("mrgsort: missing block_len (format 1) or src1 (format 2)")
    if src3 is not None and src2 is None:
        raise ValueError("mrgsort: src3 requires src2")
    return [s for s in (src0, src1, src2, src3) if s is not None]


def _mrgsort(level: str, sources: list[Expr] | None, src0: Arg, tmp: Arg, exhausted: bool, block_len: Any) -> Expr:
    if sources is None:
        return call(f"{level}.mrgsort_format1", src0, extent(block_len))
    operands = sources if tmp is None else [*sources, tmp]
    return call(f"{level}.mrgsort_format2", *operands, exhausted=True if exhausted else None)


@surface("tensor", name="mrgsort")
def tensor_mrgsort(
    src0: Arg,
    src1: Arg = None,
    src2: Arg = None,
    src3: Arg = None,
    *,
    exhausted: Attr = False,
    block_len: Attr = None,
) -> Expr:
    sources = _sources(src0, src1, src2, src3, None, exhausted, block_len)
    return _mrgsort("tensor", sources, src0, None, exhausted, block_len)


@surface("tile", name="mrgsort")
def tile_mrgsort(
    src0: Arg,
    src1: Arg = None,
    src2: Arg = None,
    src3: Arg = None,
    tmp: Arg = None,
    exhausted: Attr = False,
    *,
    block_len: Attr = None,
) -> Expr:
    sources = _sources(src0, src1, src2, src3, tmp, exhausted, block_len)
    if sources is not None and tmp is None:
        raise TypeError("mrgsort: Tile inputs require tmp")
    return _mrgsort("tile", sources, src0, tmp, exhausted, block_len)


@surface("pl", name="mrgsort")
def mrgsort(
    src0: Arg,
    src1: Arg = None,
    src2: Arg = None,
    src3: Arg = None,
    tmp: Arg = None,
    *,
    exhausted: Attr = False,
    block_len: Attr = None,
) -> Expr:
    given = [s for s in (src0, src1, src2, src3) if s is not None]
    level = level_of(src0)
    if level not in ("tensor", "tile") or any(level_of(s) != level for s in given):
        raise mixed_error("mrgsort", *given)
    if level == "tile":
        return tile_mrgsort(src0, src1, src2, src3, tmp, exhausted, block_len=block_len)
    if tmp is not None:
        raise TypeError("pl.mrgsort: Tensor inputs must not pass tmp")
    return tensor_mrgsort(src0, src1, src2, src3, exhausted=exhausted, block_len=block_len)


def _register_formats(level: str) -> None:
    """The two ops under their own names: what printed calls use."""

    def mrgsort_format1(src0: Arg, block_len: Arg) -> Expr:
        return call(f"{level}.mrgsort_format1", src0, extent(block_len))

    def mrgsort_format2(*args: Arg, exhausted: Attr = False) -> Expr:
        return call(f"{level}.mrgsort_format2", *args, exhausted=True if exhausted else None)

    surface(f"ir.{level}", name="mrgsort_format1")(mrgsort_format1)
    surface(f"ir.{level}", name="mrgsort_format2")(mrgsort_format2)


for _level in ("tensor", "tile"):
    _register_formats(_level)
