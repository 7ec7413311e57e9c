"""Comparison and selection.

At tensor level a comparison gives 0/1 of the promoted element type. At tile level it gives a *packed predicate*: bytes
in which bit b of byte k of a row is column ``8k + b``; rows are independent, bits beyond the valid columns are 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._lazy import np
from ..ir.dtype import DataType
from ..ir.enums import CoreType, MemorySpace
from ..ir.expr import ConstFloat, ConstInt, Expr, index_const
from ..ir.location import current_span
from ..ir.scalar import floordiv
from ..ir.type import TileType, Type
from .definition import REQUIRED, InferRule, Operand
from .elementwise import array_pair, as_number, broadcast_result_valid, compute_in, elementwise
from .normalize import int_attr, scalar_operand
from .numpy_types import from_numpy_dtype, numpy_dtype
from .regions import inside, row_bytes, window_of
from .registry import call, define
from .rules import (
    broadcast_shapes,
    broadcast_valid,
    promote_dtypes,
    require_args,
    result_dtype,
    result_like,
    scalar_dtype,
    tensor_type,
    tile_result,
    tile_type,
)
from .surface import Attr, level_of, mixed_error, surface
from .surface import Operand as Arg
from .values import ArrayValue, combine_masks, fresh
from .windows import add, multiply, number, provably, provably_exceeds

VEC = (MemorySpace.Vec,)
TILE_SPEC: dict[str, Any] = {"output_memory": MemorySpace.Vec, "core": CoreType.VECTOR}

COMPARE_NAMES = ("eq", "ne", "lt", "le", "gt", "ge")
COMPARISONS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda a, b: a == b,
    lambda a, b: a != b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
)


def check_compare_mode(name: str, key: str, mode: int) -> None:
    """The range of a comparison kwarg."""
    if not 0 <= mode < len(COMPARE_NAMES):
        raise ValueError(f"{name}: {key} must be 0..5 (eq, ne, lt, le, gt, ge), but got {mode}")


def ceil_div(extent: Expr, divisor: int) -> Expr:
    """``ceil(extent / divisor)``, constants folded."""
    value = number(extent)
    if value is not None:
        return index_const(-(-value // divisor))
    return floordiv(add(extent, index_const(divisor - 1)), index_const(divisor), current_span())


# --- type rules -------------------------------------------------------------------------------------------------------


def _tensor_cmp_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    name = "tensor.cmp"
    require_args(name, args, 2)
    check_compare_mode(name, "cmp_type", kwargs.get("cmp_type", 0))
    a = tensor_type(name, args, 0)
    if level_of(args[1]) == "scalar":
        return result_like(a, a.shape, result_dtype(a.dtype, scalar_dtype(name, args, 1)), a.valid_extents)
    b = tensor_type(name, args, 1)
    shape = broadcast_shapes(name, a.shape, b.shape)
    return result_like(a, shape, result_dtype(a.dtype, b.dtype), broadcast_valid(shape, a, b))


def packed_predicate(a: TileType, shape: Sequence[Expr], valid: Sequence[Expr]) -> TileType:
    """The type of the packed predicate of a tile of this shape and valid region."""
    width = multiply(ceil_div(ceil_div(shape[-1], 8), 32), index_const(32))
    return tile_result([*shape[:-1], width], DataType.UINT8, a, [*valid[:-1], ceil_div(valid[-1], 8)])


def _tile_cmp_infer(name: str, with_scalar: bool) -> InferRule:
    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(name, args, 2)
        check_compare_mode(name, "cmp_type", kwargs["cmp_type"])
        a = tile_type(name, args, 0)
        if not a.shape:
            raise ValueError(f"{name} requires a tile of rank >= 1")
        if with_scalar:
            scalar_dtype(name, args, 1)
            return packed_predicate(a, a.shape, a.valid_extents)
        b = tile_type(name, args, 1)
        shape = broadcast_shapes(name, a.shape, b.shape)
        return packed_predicate(a, shape, broadcast_valid(shape, a, b))

    return infer


def _sel_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    name = "tile.sel"
    require_args(name, args, 4)
    mask, a, b = (tile_type(name, args, i) for i in range(3))
    tile_type(name, args, 3)
    if not (mask.dtype.is_int_ and mask.dtype.get_bit() in (8, 16, 32)):
        raise ValueError(f"{name} requires a packed mask of 8-, 16- or 32-bit integers, but got {mask.dtype}")
    shape = broadcast_shapes(name, a.shape, b.shape)
    valid = broadcast_valid(shape, a, b)
    if not shape:
        raise ValueError(f"{name} requires operands of rank >= 1")
    if len(mask.shape) != len(shape):
        raise ValueError(f"{name} requires a mask of rank {len(shape)}, but got rank {len(mask.shape)}")
    have = mask.valid_extents
    if any(map(provably_exceeds, valid[:-1], have[:-1])):
        raise ValueError(f"{name} requires the mask carrier rows to cover the valid rows of the operands")
    if provably_exceeds(ceil_div(valid[-1], 8), multiply(have[-1], index_const(mask.dtype.get_byte()))):
        raise ValueError(f"{name} requires each mask carrier row to hold a bit for each valid column")
    return result_like(a, shape, result_dtype(a.dtype, b.dtype), valid)


_SIGNED_OF = {DataType.UINT8: DataType.INT8, DataType.UINT16: DataType.INT16, DataType.UINT32: DataType.INT32}


def _sels_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    name = "tile.sels"
    require_args(name, args, 4)
    mask, src, tmp = (tile_type(name, args, i) for i in range(3))
    scalar = scalar_dtype(name, args, 3)
    for what, kind in (("mask", mask), ("src", src), ("tmp", tmp)):
        if len(kind.shape) != 2:
            raise ValueError(f"{name} requires {what} of rank 2, but got rank {len(kind.shape)}")
    if not (mask.dtype.is_int_ and mask.dtype.get_bit() in (8, 16, 32)):
        raise ValueError(f"{name} requires a packed mask of 8-, 16- or 32-bit integers, but got {mask.dtype}")
    wanted = _SIGNED_OF.get(src.dtype, src.dtype)
    if scalar is not wanted:
        raise ValueError(f"{name} requires scalar dtype {wanted} for data of dtype {src.dtype}, but got {scalar}")
    have, valid = mask.valid_extents, src.valid_extents
    # A valid extent never exceeds its dimension, so covering the dimension is enough.
    if not (provably(valid[0], have[0]) or provably(src.shape[0], have[0])):
        raise ValueError(f"{name} requires the mask carrier rows to provably cover the valid rows of src")
    row_bytes_held = multiply(have[1], index_const(mask.dtype.get_byte()))
    if not any(provably(ceil_div(extent, 8), row_bytes_held) for extent in (valid[1], src.shape[1])):
        raise ValueError(
            f"{name} requires each mask carrier row to provably hold ceil(valid columns / 8) bytes for src"
        )
    return result_like(src, src.shape, src.dtype, valid)


# --- reference semantics ----------------------------------------------------------------------------------------------


def compared(a: ArrayValue, b: Any, mode: int) -> tuple[Any, Any]:
    """The truth values of a comparison in the promoted element type, and which of them are defined (None: all)."""
    if isinstance(b, ArrayValue):
        dtype = promote_dtypes(from_numpy_dtype(a.dtype), from_numpy_dtype(b.dtype))
        masks = [a.mask, b.mask]
    else:
        own = from_numpy_dtype(a.dtype)
        dtype = DataType.FP32 if isinstance(b, float) and not own.is_float_ else own
        masks = [a.mask]
    working = compute_in(numpy_dtype(dtype))
    right = b.data.astype(working, copy=False) if isinstance(b, ArrayValue) else as_number(working, b)
    with np.errstate(all="ignore"):
        truth = COMPARISONS[mode](a.data.astype(working, copy=False), right)
    mask = combine_masks(*masks)
    return truth, None if mask is None else np.broadcast_to(mask, truth.shape)


def _tensor_cmp(ctx: Any, a: ArrayValue, b: Any, cmp_type: int = 0) -> ArrayValue:
    return elementwise(ctx, COMPARISONS[cmp_type], a, b)


def _tile_cmp(ctx: Any, a: ArrayValue, b: Any, cmp_type: int) -> ArrayValue:
    truth, mask = compared(a, b, cmp_type)
    valid = broadcast_result_valid(truth.shape, *[o for o in (a, b) if isinstance(o, ArrayValue)])
    width = (truth.shape[-1] + 255) // 256 * 32
    used = (valid[-1] + 7) // 8
    region = window_of(valid)
    bits = np.zeros((*truth.shape[:-1], width * 8), np.bool_)
    bits[region] = truth[region]
    data = np.packbits(bits, axis=-1, bitorder="little")
    defined = None
    if mask is not None:
        known = np.ones(bits.shape, np.bool_)
        known[region] = mask[region]
        defined = known.reshape(*truth.shape[:-1], width, 8).all(axis=-1)
    return fresh(data, defined, (*valid[:-1], used))


def unpacked(mask: ArrayValue, shape: Sequence[int]) -> tuple[Any, Any]:
    """The bits of a packed predicate for data of this shape, and which are defined (None: all).

    Columns beyond those that the carrier holds are undefined.
    """
    columns, lead = shape[-1], tuple(shape[:-1])
    rows = row_bytes(mask.data)
    bits = np.unpackbits(rows, axis=-1, bitorder="little").astype(np.bool_)
    carried = inside(mask.shape, mask.valid)
    if mask.mask is not None:
        carried &= mask.mask
    known = np.repeat(carried, 8 * mask.dtype.itemsize, axis=-1)
    result = np.zeros((*lead, columns), np.bool_)
    defined = np.zeros((*lead, columns), np.bool_)
    common = tuple(slice(0, min(m, n)) for m, n in zip(bits.shape, result.shape, strict=True))
    result[common] = bits[common]
    defined[common] = known[common]
    return result, None if defined.all() else defined


def _choose(ctx: Any, mask: ArrayValue, a: ArrayValue, b: Any) -> ArrayValue:
    dtype = numpy_dtype(ctx.type.dtype)
    both = isinstance(b, ArrayValue)
    shape = np.broadcast_shapes(a.shape, b.shape) if both else a.shape
    # The scalar of unsigned data is the signed twin of its element type: it wraps.
    other = b.data.astype(dtype, copy=False) if both else np.asarray(as_number(compute_in(dtype), b)).astype(dtype)
    bits, defined = unpacked(mask, shape)
    data = np.where(bits, a.data.astype(dtype, copy=False), other)
    left, right = a.mask, b.mask if both else None
    if left is not None or right is not None:  # only the side that a bit selects matters
        chosen = np.where(bits, True if left is None else left, True if right is None else right)
        defined = chosen if defined is None else defined & chosen
    valid = broadcast_result_valid(shape, a, *([b] if both else []))
    return fresh(data.astype(dtype, copy=False), defined, valid)


def _sel(ctx: Any, mask: ArrayValue, a: ArrayValue, b: ArrayValue, tmp: Any) -> ArrayValue:
    return _choose(ctx, mask, a, b)


def _sels(ctx: Any, mask: ArrayValue, src: ArrayValue, tmp: Any, scalar: Any) -> ArrayValue:
    return _choose(ctx, mask, src, scalar)


# --- definitions ------------------------------------------------------------------------------------------------------

define(
    "tensor.cmp",
    [Operand("lhs", "window"), Operand("rhs", "window")],
    _tensor_cmp_infer,
    doc="1 where lhs OP rhs, else 0, in the promoted element type",
    kwargs={"cmp_type": (int, 0)},
    reference=_tensor_cmp,
)
for _name, _with_scalar in (("tile.cmp", False), ("tile.cmps", True)):
    define(
        _name,
        [Operand("lhs", "tile"), Operand("rhs", "scalar" if _with_scalar else "tile")],
        _tile_cmp_infer(_name, _with_scalar),
        doc="packed predicate of lhs OP rhs",
        kwargs={"cmp_type": (int, REQUIRED)},
        reference=_tile_cmp,
        input_memory=(VEC,) if _with_scalar else (VEC, VEC),
        **TILE_SPEC,
    )
define(
    "tile.sel",
    [
        Operand("mask", "tile", "predicate"),
        Operand("lhs", "tile"),
        Operand("rhs", "tile"),
        Operand("tmp", "tile", "scratch"),
    ],
    _sel_infer,
    doc="lhs where the packed mask has a 1 bit, else rhs",
    reference=_sel,
    input_memory=(VEC, VEC, VEC, VEC),
    no_alias=(0, 3),
    **TILE_SPEC,
)
define(
    "tile.sels",
    [
        Operand("mask", "tile", "predicate"),
        Operand("src", "tile"),
        Operand("tmp", "tile", "scratch"),
        Operand("scalar", "scalar"),
    ],
    _sels_infer,
    doc="src where the packed mask has a 1 bit, else the scalar",
    reference=_sels,
    input_memory=(VEC, VEC, VEC),
    no_alias=(0,),
    priority="full",
    **TILE_SPEC,
)


# --- surface ----------------------------------------------------------------------------------------------------------


def _mode(cmp_type: Any) -> int:
    return int_attr(cmp_type, "cmp_type")


@surface("tensor", name="cmp")
def tensor_cmp(lhs: Arg, rhs: Arg, cmp_type: Attr = 0) -> Expr:
    return array_pair("tensor.cmp", lhs, rhs, cmp_type=_mode(cmp_type))


@surface("tile", name="cmp")
def tile_cmp(lhs: Arg, rhs: Arg, cmp_type: Attr = 0) -> Expr:
    return array_pair("tile.cmp", lhs, rhs, "tile.cmps", cmp_type=_mode(cmp_type))


@surface("tile", "pl", name="cmps")
def cmps(lhs: Arg, rhs: Arg, cmp_type: Attr = 0) -> Expr:
    return call("tile.cmps", lhs, scalar_operand(rhs, lhs.type.dtype), cmp_type=_mode(cmp_type))


@surface("pl", name="cmp")
def cmp(lhs: Arg, rhs: Arg, cmp_type: Attr = 0) -> Expr:
    a, b = level_of(lhs), level_of(rhs)
    if a == "tensor" and b in ("tensor", "scalar"):
        return tensor_cmp(lhs, rhs, cmp_type)
    if a == "tile" and b in ("tile", "scalar"):
        return tile_cmp(lhs, rhs, cmp_type)
    raise mixed_error("cmp", lhs, rhs)


@surface("tile", "pl", name="sel")
def sel(mask: Arg, lhs: Arg, rhs: Arg, tmp: Arg) -> Expr:
    return call("tile.sel", mask, lhs, rhs, tmp)


def sels_scalar(scalar: Arg, dtype: DataType) -> Expr:
    """The scalar of ``sels``: constants take the data's type (signed, of the same width, wrapping)."""
    wanted = _SIGNED_OF.get(dtype, dtype)
    value: Any = scalar.value if isinstance(scalar, (ConstInt, ConstFloat)) else scalar
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return scalar_operand(scalar, wanted)
    if wanted.is_float_:
        return ConstFloat(float(value), wanted, current_span())
    if value != int(value):
        raise ValueError(f"tile.sels: non-integral scalar {value} for data of dtype {dtype}")
    bits = wanted.get_bit()
    wrapped = (int(value) + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
    return ConstInt(wrapped if wanted.is_signed_ else int(value), wanted, current_span())


@surface("tile", "pl", name="sels")
def sels(mask: Arg, src: Arg, tmp: Arg, scalar: Arg) -> Expr:
    return call("tile.sels", mask, src, tmp, sels_scalar(scalar, src.type.dtype))
