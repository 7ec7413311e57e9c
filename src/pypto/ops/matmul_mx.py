"""Block-scaled (MX) matrix products: FP8 data with one power-of-two scale for each 32 elements along K."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._lazy import np
from ..ir.dtype import DataType
from ..ir.enums import ArgEffect, CoreType, MemorySpace
from ..ir.expr import Expr
from ..ir.type import TileType, Type
from .definition import INHERIT, Alias, InferRule, Operand
from .matmul import (
    CUBE_SPEC,
    IN_PLACE,
    acc_tile,
    check_bias,
    compact_of,
    product_tile,
    require_cover,
    require_dimension,
)
from .product import Product, add_bias, add_product
from .regions import placed
from .registry import call, define
from .rules import require_args, same_extent, show_shape, tile_type
from .surface import Operand as Arg
from .surface import surface
from .values import ArrayValue, combine_masks, fresh
from .windows import is_zero, number

M = MemorySpace
GROUP = 32


# --- type rules -------------------------------------------------------------------------------------------------------


def _check_data(name: str, what: str, dtype: DataType) -> None:
    if dtype is not DataType.FP8E4M3FN:
        hint = ": cast FP4 data to FP8E4M3FN first" if dtype is DataType.FP4 else ""
        raise ValueError(f"{name} requires {what} dtype FP8E4M3FN, but got {dtype}{hint}")


def _check_scale(name: str, what: str, scale: TileType, rows: Expr, columns: Expr) -> None:
    if scale.dtype is not DataType.FP8E8M0:
        raise ValueError(f"{name} requires {what} dtype FP8E8M0, but got {scale.dtype}")
    if len(scale.shape) != 2:
        raise ValueError(f"{name} requires {what} of rank 2, but got rank {len(scale.shape)}")
    require_dimension(name, f"{what} rows to match", scale.shape[0], rows)
    require_dimension(name, f"{what} columns to match", scale.shape[1], columns)


def _check_multiple(name: str, what: str, extent: Expr, factor: int) -> None:
    value = number(extent)
    if value is not None and value % factor:
        raise ValueError(f"{name} requires {what} to be a multiple of {factor}, but got {value}")


def _mx_product(name: str, kinds: Sequence[TileType]) -> TileType:
    from .compare import ceil_div

    lhs, lhs_scale, rhs, rhs_scale = kinds
    _check_data(name, "lhs", lhs.dtype)
    _check_data(name, "rhs", rhs.dtype)
    shape, valid = product_tile(name, lhs, rhs)
    inner = lhs.shape[1]
    for what, extent, factor in (("M", shape[0], 16), ("K", inner, 64), ("N", shape[1], 32)):
        _check_multiple(name, what, extent, factor)
    _check_scale(name, "lhs_scale", lhs_scale, shape[0], ceil_div(inner, GROUP))
    _check_scale(name, "rhs_scale", rhs_scale, ceil_div(inner, GROUP), shape[1])
    valid_inner = lhs.valid_extents[1]
    if not same_extent(valid_inner, rhs.valid_extents[0]):
        raise ValueError(f"{name} requires lhs and rhs to have the same valid K")
    if is_zero(valid_inner):
        raise ValueError(f"{name} requires a positive valid K")
    have, want = number(valid_inner), number(inner)
    if have is not None and want is not None and -(-have // GROUP) != -(-want // GROUP):
        raise ValueError(
            f"{name} requires the scale-group count of valid K ({have}) and physical K ({want}) to be equal"
        )
    return acc_tile(shape, DataType.FP32, valid, compact_of(shape[0], valid[0]))


def _infer(name: str, with_acc: bool, with_bias: bool) -> InferRule:
    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(name, args, 5 if with_acc or with_bias else 4)
        kinds = [tile_type(name, args, i) for i in range(len(args))]
        if with_bias:
            result = _mx_product(name, kinds[:4])
            check_bias(name, kinds[4], DataType.FP32, result.shape[1], result.valid_extents[1])
            return result
        if not with_acc:
            return _mx_product(name, kinds)
        acc, result = kinds[0], _mx_product(name, kinds[1:])
        if acc.dtype is not DataType.FP32:
            raise ValueError(f"{name} requires accumulator dtype {DataType.FP32}, but got {acc.dtype}")
        if len(acc.shape) != 2:
            raise ValueError(f"{name} requires acc of rank 2, but got {show_shape(acc.shape)}")
        for i, axis in enumerate("MN"):
            require_dimension(name, f"acc {axis} dimension to match the product's", acc.shape[i], result.shape[i])
            require_cover(
                name, f"acc valid {axis} to cover the product's", acc.valid_extents[i], result.valid_extents[i]
            )
        return acc_tile(acc.shape, acc.dtype, acc.valid_extents, acc.get_effective_tile_view().compact)

    return infer


def _scale_addr_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    name = "tile.tget_scale_addr"
    require_args(name, args, 2)
    scale, src = tile_type(name, args, 0), tile_type(name, args, 1)
    if scale.dtype is not DataType.FP8E8M0:
        raise ValueError(f"{name} requires dst_scale dtype FP8E8M0, but got {scale.dtype}")
    _check_data(name, "src", src.dtype)
    pair = (scale.memory_space, src.memory_space)
    if pair not in ((M.LeftScale, M.Left), (M.RightScale, M.Right)):
        raise ValueError(f"{name} requires LeftScale with Left or RightScale with Right")
    return scale


# --- reference semantics ----------------------------------------------------------------------------------------------


def _scaled(data: ArrayValue, scale: ArrayValue, axis: int) -> ArrayValue:
    """Data in FP32 with each group of 32 along ``axis`` multiplied by its scale."""
    with np.errstate(all="ignore"):
        factors = np.repeat(scale.data.astype(np.float32), GROUP, axis=axis)
        window = tuple(slice(0, n) for n in data.shape)
        values = data.data.astype(np.float32) * factors[window]
    known = None if scale.mask is None else np.repeat(scale.mask, GROUP, axis=axis)[window]
    return fresh(values, combine_masks(data.mask, known), data.valid)


def _scaled_product(lhs: ArrayValue, lhs_scale: ArrayValue, rhs: ArrayValue, rhs_scale: ArrayValue) -> Product:
    return Product(_scaled(lhs, lhs_scale, 1), _scaled(rhs, rhs_scale, 0), DataType.FP32)


def _mx(ctx: Any, *operands: ArrayValue) -> ArrayValue:
    product = _scaled_product(*operands)
    return placed(product.values, product.mask, product.shape)


def _mx_acc(ctx: Any, acc: ArrayValue, *operands: ArrayValue) -> ArrayValue:
    return add_product(acc, _scaled_product(*operands), False)


def _mx_bias(ctx: Any, *operands: ArrayValue) -> ArrayValue:
    return add_bias(_scaled_product(*operands[:4]), operands[4])


def _scale_addr(ctx: Any, scale: ArrayValue, src: ArrayValue) -> ArrayValue:
    return scale  # binds an address; the scales themselves do not change


# --- definitions and surface ------------------------------------------------------------------------------------------

DATA = [Operand(name, "tile") for name in ("lhs", "lhs_scale", "rhs", "rhs_scale")]
SPACES = ((M.Left,), (M.LeftScale,), (M.Right,), (M.RightScale,))

define(
    "tile.matmul_mx",
    DATA,
    _infer("tile.matmul_mx", False, False),
    doc="(lhs * 2**lhs_scale) @ (rhs * 2**rhs_scale)",
    reference=_mx,
    input_memory=SPACES,
    priority="rare",
    **CUBE_SPEC,
)
define(
    "tile.matmul_mx_acc",
    [Operand("acc", "tile", "destination"), *DATA],
    _infer("tile.matmul_mx_acc", True, False),
    doc="acc + scaled product, in the accumulator",
    reference=_mx_acc,
    input_memory=((M.Acc,), *SPACES),
    priority="rare",
    **CUBE_SPEC,
    **IN_PLACE,
)
define(
    "tile.matmul_mx_bias",
    [*DATA, Operand("bias", "tile")],
    _infer("tile.matmul_mx_bias", False, True),
    doc="scaled product + bias",
    reference=_mx_bias,
    input_memory=(*SPACES, (M.Bias,)),
    priority="rare",
    **CUBE_SPEC,
)
define(
    "tile.tget_scale_addr",
    [Operand("dst_scale", "tile", "destination"), Operand("src", "tile")],
    _scale_addr_infer,
    doc="bind the address of a scale tile to its data tile",
    reference=_scale_addr,
    effects={0: ArgEffect.Write},
    alias=Alias.IS,
    alias_operand=0,
    output_memory=INHERIT,
    core=CoreType.CUBE,
    priority="rare",
)


@surface("tile", "pl", name="matmul_mx")
def matmul_mx(lhs: Arg, lhs_scale: Arg, rhs: Arg, rhs_scale: Arg) -> Expr:
    return call("tile.matmul_mx", lhs, lhs_scale, rhs, rhs_scale)


@surface("tile", "pl", name="matmul_mx_acc")
def matmul_mx_acc(acc: Arg, lhs: Arg, lhs_scale: Arg, rhs: Arg, rhs_scale: Arg) -> Expr:
    return call("tile.matmul_mx_acc", acc, lhs, lhs_scale, rhs, rhs_scale)


@surface("tile", "pl", name="matmul_mx_bias")
def matmul_mx_bias(lhs: Arg, lhs_scale: Arg, rhs: Arg, rhs_scale: Arg, bias: Arg) -> Expr:
    return call("tile.matmul_mx_bias", lhs, lhs_scale, rhs, rhs_scale, bias)


@surface("ir.tile", name="tget_scale_addr")
def tget_scale_addr(dst_scale: Arg, src: Arg) -> Expr:
    return call("tile.tget_scale_addr", dst_scale, src)
