"""Scattering by index, by mask pattern, and by rows (scatter_update).

The tensor ops give a changed copy; the tile ops write into the destination operand, which is also the result. Of
several values for one place the last in row-major order stays (undefined on the target).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._lazy import np
from ..ir.dtype import DataType
from ..ir.enums import ArgEffect, CoreType, MemorySpace
from ..ir.expr import Expr
from ..ir.type import Type
from .definition import REQUIRED, Alias, InferRule, Operand
from .gather import positional_dim
from .masks import pattern_of
from .matmul import require_dimension
from .normalize import int_attr
from .registry import call, define
from .rules import (
    require_args,
    require_dtype,
    result_like,
    same_extent,
    show_shape,
    tensor_type,
    tile_type,
)
from .surface import Attr, by_first, surface
from .surface import Operand as Arg
from .values import ArrayValue, fresh
from .windows import at_most, number, provably_exceeds, volume

D = DataType
SCATTER_DTYPES = (D.INT8, D.INT16, D.INT32, D.FP16, D.FP32, D.BF16)
VEC = (MemorySpace.Vec,)
TILE_SPEC: dict[str, Any] = {
    "output_memory": MemorySpace.Vec,
    "core": CoreType.VECTOR,
    "effects": {0: ArgEffect.ReadWrite},
    "alias": Alias.IS,
    "alias_operand": 0,
}


# --- type rules -------------------------------------------------------------------------------------------------------


def _operand(name: str, level: str, args: Sequence[Expr], index: int) -> Any:
    return tile_type(name, args, index) if level == "tile" else tensor_type(name, args, index, plain=True)


def _require_rank(name: str, what: str, kind: Any, rank: int) -> None:
    if len(kind.shape) != rank:
        raise ValueError(f"{name} requires {what} of rank {rank}, but got rank {len(kind.shape)}")


def _require_same_dtype(name: str, what: str, have: DataType, want: DataType) -> None:
    if have is not want:
        raise ValueError(f"{name} requires {what} of the same dtype {want}, but got {have}")


def _index_infer(name: str, level: str) -> InferRule:
    """The index forms: ``tensor.scatter(input, index, src)`` and ``tile.scatter(dst, src, indexes)``."""
    tile = level == "tile"

    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(name, args, 3)
        dst, second, third = (_operand(name, level, args, i) for i in range(3))
        src, index = (second, third) if tile else (third, second)
        for what, kind in (("dst" if tile else "input", dst), ("src", src), ("index", index)):
            _require_rank(name, what, kind, 2)
        require_dtype(name, "dst" if tile else "input", dst.dtype, SCATTER_DTYPES)
        _require_same_dtype(name, "src", src.dtype, dst.dtype)
        wanted = D.INT32 if dst.dtype.get_byte() == 4 else D.INT16
        if index.dtype is not wanted:
            raise ValueError(f"{name} requires index dtype {wanted} for {dst.dtype} data, but got {index.dtype}")
        if not tile and kwargs["dim"] != -1:
            raise ValueError(f"{name} supports only dim=-1, but got {kwargs['dim']}")
        if not all(map(same_extent, index.shape, src.shape)):
            raise ValueError(
                f"{name} requires the index shape to equal the src shape, "
                f"but got {show_shape(index.shape)} and {show_shape(src.shape)}"
            )
        if not tile:
            if any(map(provably_exceeds, src.shape, dst.shape)):
                raise ValueError(
                    f"{name} requires src extents <= input extents, "
                    f"but got {show_shape(src.shape)} and {show_shape(dst.shape)}"
                )
            return result_like(dst, dst.shape, dst.dtype, dst.valid_extents)
        return dst  # type: ignore[no-any-return]

    return infer


def _mask_infer(name: str, level: str) -> InferRule:
    """The mask forms: ``tensor.scatter_mask(input, dst)`` and ``tile.scatter_mask(dst, src)``."""
    tile = level == "tile"

    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(name, args, 2)
        first, second = _operand(name, level, args, 0), _operand(name, level, args, 1)
        dst, src = (first, second) if tile else (second, first)
        _require_rank(name, "dst", dst, 2)
        _require_rank(name, "src" if tile else "input", src, 2)
        require_dtype(name, "dst", dst.dtype, SCATTER_DTYPES)
        _require_same_dtype(name, "src" if tile else "input", src.dtype, dst.dtype)
        group, _ = pattern_of(name, kwargs["mask_pattern"])
        if at_most(src.shape[0], dst.shape[0]) is False or at_most(dst.shape[0], src.shape[0]) is False:
            raise ValueError(f"{name} requires dst and src to have equal rows")
        have, narrow = number(dst.shape[1]), number(src.shape[1])
        if have is not None and narrow is not None and have != narrow * group:
            raise ValueError(
                f"{name} requires dst columns to be {group} times the source columns ({narrow}), but got {have}"
            )
        if tile:
            return dst  # type: ignore[no-any-return]
        return result_like(dst, dst.shape, dst.dtype, dst.valid_extents)

    return infer


def _update_infer(name: str, level: str) -> InferRule:
    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(name, args, 3)
        dst, index, src = (_operand(name, level, args, i) for i in range(3))
        rank = len(dst.shape)
        if rank not in (2, 4):
            raise ValueError(f"{name} requires input of rank 2 or 4, but got rank {rank}")
        _require_rank(name, "index", index, 2)
        if not index.dtype.is_int_:
            raise ValueError(f"{name} requires an integer index, but got {index.dtype}")
        _require_rank(name, "src", src, rank)
        _require_same_dtype(name, "src", src.dtype, dst.dtype)
        count, rows = volume(index.shape), volume(src.shape[:-1])
        if count is not None and rows is not None and count != rows:
            raise ValueError(f"{name} requires one row of src for each index, but got {rows} rows and {count} indices")
        require_dimension(name, "rows of src and input to have the same length", src.shape[-1], dst.shape[-1])
        if kwargs.get("dim", -2) != -2:
            raise ValueError(f"{name} supports only dim=-2, but got {kwargs['dim']}")
        if level == "tile":
            return dst  # type: ignore[no-any-return]
        return result_like(dst, dst.shape, dst.dtype, dst.valid_extents)

    return infer


# --- reference semantics ----------------------------------------------------------------------------------------------


def _copy(a: ArrayValue) -> ArrayValue:
    mask = a.mask
    return fresh(a.data.copy(), None if mask is None else mask.copy(), a.valid)


def _put(dst: ArrayValue, where: Any, values: Any, known: Any) -> None:
    """Store ``values`` (defined where ``known`` says) at the flat positions ``where`` of ``dst``, in order."""
    size = dst.data.size
    in_range = (where >= 0) & (where < size)
    places, values = where[in_range], values[in_range]
    data, mask = dst.data, None if known is None else known[in_range]
    index = np.unravel_index(places, data.shape)
    dst.write(index, values, mask)


def _region(value: ArrayValue) -> tuple[Any, Any]:
    return value.valid_data(), value.valid_mask()


def _both(*masks: Any) -> Any:
    known = [m for m in masks if m is not None]
    return None if not known else np.logical_and.reduce(np.broadcast_arrays(*known))


def _index_positions(index: Any, columns: int) -> Any:
    """Flat positions of ``dim=-1`` indices: row by row; an index outside its row leaves the tensor."""
    where = index.astype(np.int64)
    rows = np.arange(where.shape[0])[:, None]
    return np.where((where >= 0) & (where < columns), rows * columns + where, -1)


def _scatter_into(dst: ArrayValue, src: ArrayValue, index: ArrayValue, by_row: bool) -> ArrayValue:
    rows, columns = (min(m, n) for m, n in zip(src.valid, index.valid, strict=True))
    values, where = src.data[:rows, :columns], index.data[:rows, :columns]
    known = src.mask if src.mask is None else src.mask[:rows, :columns]
    if index.mask is not None and not index.mask[:rows, :columns].all():
        # An undefined index may have written anywhere.
        dst.mark(tuple(slice(None) for _ in dst.shape), np.zeros(dst.shape, np.bool_))
        return dst
    places = _index_positions(where, dst.shape[1]) if by_row else where.astype(np.int64)
    _put(dst, places.reshape(-1), values.reshape(-1), None if known is None else known.reshape(-1))
    return dst


def _tensor_scatter(ctx: Any, dst: ArrayValue, index: ArrayValue, src: ArrayValue, dim: int) -> ArrayValue:
    return _scatter_into(_copy(dst), src, index, True)


def _tile_scatter(ctx: Any, dst: ArrayValue, src: ArrayValue, indexes: ArrayValue) -> ArrayValue:
    return _scatter_into(dst, src, indexes, False)


def _spread(dst: ArrayValue, src: ArrayValue, mask_pattern: int) -> ArrayValue:
    group, position = pattern_of("scatter_mask", mask_pattern)
    rows, columns = src.valid
    window = (slice(0, rows), slice(position, position + group * columns, group))
    values, mask = _region(src)
    dst.write(window, values, mask)
    return dst


def _tensor_scatter_mask(ctx: Any, src: ArrayValue, dst: ArrayValue, mask_pattern: int) -> ArrayValue:
    return _spread(_copy(dst), src, mask_pattern)


def _tile_scatter_mask(ctx: Any, dst: ArrayValue, src: ArrayValue, mask_pattern: int) -> ArrayValue:
    # The instruction zeroes the columns that the pattern does not select.
    dst.write(tuple(slice(None) for _ in dst.shape), np.zeros(dst.shape, dst.dtype), None)
    return _spread(dst, src, mask_pattern)


def _update(dst: ArrayValue, index: ArrayValue, src: ArrayValue) -> ArrayValue:
    width = dst.shape[-1]
    rows = src.data.reshape(-1, src.shape[-1])
    known = None if src.mask is None else src.mask.reshape(-1, src.shape[-1])
    where = index.data.astype(np.int64)
    live = np.zeros(where.shape, np.bool_)
    live[index.valid_window()] = True
    if index.mask is not None and not index.mask[index.valid_window()].all():
        dst.mark(tuple(slice(None) for _ in dst.shape), np.zeros(dst.shape, np.bool_))
        return dst
    target, used, live_rows = where.reshape(-1), src.valid[-1], live.reshape(-1)
    places = np.where(live_rows[:, None], target[:, None] * width + np.arange(used), -1)
    values = rows[: target.size, :used]
    mask = None if known is None else known[: target.size, :used]
    _put(dst, places.reshape(-1), values.reshape(-1), None if mask is None else mask.reshape(-1))
    return dst


def _tensor_update(ctx: Any, dst: ArrayValue, index: ArrayValue, src: ArrayValue, dim: int = -2) -> ArrayValue:
    return _update(_copy(dst), index, src)


def _tile_update(ctx: Any, dst: ArrayValue, index: ArrayValue, src: ArrayValue, dim: int = -2) -> ArrayValue:
    return _update(dst, index, src)


# --- definitions ------------------------------------------------------------------------------------------------------

define(
    "tensor.scatter",
    [Operand("input", "tensor"), Operand("index", "tensor", "index"), Operand("src", "tensor")],
    _index_infer("tensor.scatter", "tensor"),
    doc="a copy of input with src put along the last axis at index",
    kwargs={"dim": (int, REQUIRED)},
    reference=_tensor_scatter,
    priority="full",
)
define(
    "tile.scatter",
    [Operand("dst", "tile", "destination"), Operand("src", "tile"), Operand("indexes", "tile", "index")],
    _index_infer("tile.scatter", "tile"),
    doc="put src into dst at flat positions",
    reference=_tile_scatter,
    input_memory=(VEC, VEC, VEC),
    priority="full",
    **TILE_SPEC,
)
define(
    "tensor.scatter_mask",
    [Operand("input", "tensor"), Operand("dst", "tensor")],
    _mask_infer("tensor.scatter_mask", "tensor"),
    doc="a copy of dst with input in the columns that a mask pattern selects",
    kwargs={"mask_pattern": (int, REQUIRED)},
    reference=_tensor_scatter_mask,
    priority="full",
)
define(
    "tile.scatter_mask",
    [Operand("dst", "tile", "destination"), Operand("src", "tile")],
    _mask_infer("tile.scatter_mask", "tile"),
    doc="src into the columns of dst that a mask pattern selects; the other columns become 0",
    kwargs={"mask_pattern": (int, REQUIRED)},
    reference=_tile_scatter_mask,
    input_memory=(VEC, VEC),
    priority="full",
    **TILE_SPEC,
)
define(
    "tensor.scatter_update",
    [Operand("input", "tensor"), Operand("index", "tensor", "index"), Operand("src", "tensor")],
    _update_infer("tensor.scatter_update", "tensor"),
    doc="a copy of input with the rows at index replaced by src",
    kwargs={"dim": (int, -2)},
    reference=_tensor_update,
    priority="full",
)
define(
    "tile.scatter_update",
    [Operand("input", "tile", "destination"), Operand("index", "tile", "index"), Operand("src", "tile")],
    _update_infer("tile.scatter_update", "tile"),
    doc="replace the rows of input at index by src, in place",
    kwargs={"dim": (int, -2)},
    reference=_tile_update,
    input_memory=(VEC, VEC, VEC),
    priority="full",
    **TILE_SPEC,
)


# --- surface ----------------------------------------------------------------------------------------------------------


@surface("tensor", "pl", name="scatter")
def scatter(
    input: Arg,
    *args: Any,
    dim: Attr = None,
    index: Arg = None,
    src: Arg = None,
    mask_pattern: Attr = None,
    dst: Arg = None,
) -> Expr:
    """``scatter(input, dim, index, src)`` or ``scatter(input, mask_pattern=.., dst=..)``.

    The printed form of the first, ``scatter(input, index, src, dim=..)``, is understood as well.
    """
    dim, index, src = positional_dim("scatter", args, {"dim": dim, "index": index, "src": src})
    by_index = any(v is not None for v in (dim, index, src))
    by_mask = mask_pattern is not None or dst is not None
    if by_index and by_mask:
        raise ValueError("scatter: the index and mask_pattern forms are mutually exclusive")
    if by_mask:
        _require_given("mask", mask_pattern=mask_pattern, dst=dst)
        return tensor_scatter_mask(input, dst, mask_pattern)
    _require_given("index", dim=dim, index=index, src=src)
    return call("tensor.scatter", input, index, src, dim=int_attr(dim, "dim"))


def _require_given(form: str, **arguments: Any) -> None:
    missing = [key for key, value in arguments.items() if value is None]
    if missing:
        raise ValueError(f"scatter: the {form} form is missing {', '.join(missing)}")


@surface("ir.tensor", name="scatter_mask")
def tensor_scatter_mask(input: Arg, dst: Arg, mask_pattern: Attr) -> Expr:
    return call("tensor.scatter_mask", input, dst, mask_pattern=int_attr(mask_pattern, "mask_pattern"))


@surface("tile", name="scatter")
def tile_scatter(dst: Arg, src: Arg, indexes: Arg) -> Expr:
    return call("tile.scatter", dst, src, indexes)


@surface("tile", name="scatter_mask")
def tile_scatter_mask(dst: Arg, src: Arg, mask_pattern: Attr) -> Expr:
    return call("tile.scatter_mask", dst, src, mask_pattern=int_attr(mask_pattern, "mask_pattern"))


def _update_operands(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Expr, Expr]:
    """``([dim,] index, src)``, each positional or by keyword; dim is the constant -2."""
    unknown = [key for key in named if key not in ("dim", "index", "src")]
    if unknown:
        raise TypeError(f"scatter_update got an unexpected keyword argument {unknown[0]!r}")
    values = {key: named.get(key) for key in ("dim", "index", "src")}
    dim, index, src = positional_dim("scatter_update", args, values)
    if dim is not None and int_attr(dim, "scatter_update dim") != -2:
        raise ValueError(f"scatter_update supports only dim=-2, but got {int_attr(dim, 'scatter_update dim')}")
    missing = [name for name, operand in (("index", index), ("src", src)) if operand is None]
    if missing:
        raise TypeError(f"scatter_update requires {' and '.join(missing)}")
    return index, src


def _update_surface(level: str) -> Any:
    op = f"{level}.scatter_update"

    def scatter_update(input: Arg, *args: Any, **kwargs: Any) -> Expr:
        index, src = _update_operands(args, kwargs)
        return call(op, input, index, src, dim=-2)

    surface(level, name="scatter_update")(scatter_update)
    return scatter_update


_tensor_scatter_update = _update_surface("tensor")
_tile_scatter_update = _update_surface("tile")


@surface("pl", name="scatter_update")
def scatter_update(input: Arg, *args: Any, **kwargs: Any) -> Expr:
    update = by_first("scatter_update", _tensor_scatter_update, _tile_scatter_update, input)
    return update(input, *args, **kwargs)  # type: ignore[no-any-return]
