"""Products of one row with a matrix on the matrix unit: gemv, gemv_acc, gemv_bias. The physical result has 16 rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..ir.dtype import DataType
from ..ir.enums import CompactMode, MemorySpace
from ..ir.expr import Expr, index_const
from ..ir.type import TileType, Type
from .definition import InferRule, Operand
from .matmul import (
    CUBE_SPEC,
    IN_PLACE,
    LEFT_RIGHT,
    LHS_RHS,
    acc_tile,
    check_bias,
    product_tile,
)
from .product import Product, add_bias, add_product
from .regions import placed
from .registry import call, define
from .rules import is_one, require_args, same_extent, show_shape, tile_type
from .surface import Attr, surface
from .surface import Operand as Arg
from .values import ArrayValue

D = DataType
GEMV_DTYPES = (D.INT8, D.FP16, D.BF16, D.FP32)
PHASES = ("unspecified", "partial", "final")
ROWS = 16


# --- type rules -------------------------------------------------------------------------------------------------------


def _product(name: str, lhs: TileType, rhs: TileType) -> TileType:
    for kind in (lhs, rhs):
        if kind.dtype not in GEMV_DTYPES:
            raise ValueError(f"{name} supports only INT8, FP16, BF16 and FP32 operands, but got {kind.dtype}")
    if lhs.dtype is not rhs.dtype:
        raise ValueError(f"{name} requires identical lhs and rhs dtypes, but got {lhs.dtype} and {rhs.dtype}")
    shape, valid = product_tile(name, lhs, rhs)
    if not (is_one(shape[0]) and is_one(valid[0])):
        raise ValueError(f"{name} requires an lhs of exactly one row, physically and logically")
    dtype = D.INT32 if lhs.dtype is D.INT8 else D.FP32
    return acc_tile([index_const(ROWS), shape[1]], dtype, valid, CompactMode.null)


def _infer(name: str) -> InferRule:
    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(name, args, 2 if name == "tile.gemv" else 3)
        if kwargs.get("acc_phase", "unspecified") not in PHASES:
            raise ValueError(f"{name}: acc_phase must be one of {', '.join(PHASES)}, but got {kwargs['acc_phase']!r}")
        kinds = [tile_type(name, args, i) for i in range(len(args))]
        if name == "tile.gemv_acc":
            acc, lhs, rhs = kinds
            result = _product(name, lhs, rhs)
            _check_acc(name, acc, result)
            return result
        result = _product(name, kinds[0], kinds[1])
        if name == "tile.gemv_bias":
            check_bias(name, kinds[2], result.dtype, result.shape[1], result.valid_extents[1])
        return result

    return infer


def _check_acc(name: str, acc: TileType, result: TileType) -> None:
    if acc.dtype is not result.dtype:
        raise ValueError(f"{name} requires accumulator dtype {result.dtype}, but got {acc.dtype}")
    if len(acc.shape) != 2 or not all(map(same_extent, acc.shape, result.shape)):
        raise ValueError(
            f"{name} requires an accumulator of shape {show_shape(result.shape)}, but got {show_shape(acc.shape)}"
        )
    if not all(map(same_extent, acc.valid_extents, result.valid_extents)):
        raise ValueError(
            f"{name} requires the accumulator valid_shape to equal the product's {show_shape(result.valid_extents)}, "
            f"but got {show_shape(acc.valid_extents)}"
        )


# --- reference semantics ----------------------------------------------------------------------------------------------


def _gemv(ctx: Any, a: ArrayValue, b: ArrayValue, **_: Any) -> ArrayValue:
    product = Product(a, b, ctx.type.dtype)
    return placed(product.values, product.mask, (ROWS, product.shape[-1]))


def _gemv_acc(ctx: Any, acc: ArrayValue, a: ArrayValue, b: ArrayValue, **_: Any) -> ArrayValue:
    return add_product(acc, Product(a, b, ctx.type.dtype), False)


def _gemv_bias(ctx: Any, a: ArrayValue, b: ArrayValue, bias: ArrayValue, **_: Any) -> ArrayValue:
    product = Product(a, b, ctx.type.dtype)
    return add_bias(product, bias, (ROWS, product.shape[-1]))


# --- definitions and surface ------------------------------------------------------------------------------------------

PHASE_SCHEMA = {"acc_phase": (str, "unspecified")}

define(
    "tile.gemv",
    LHS_RHS,
    _infer("tile.gemv"),
    doc="one row times a matrix",
    kwargs=PHASE_SCHEMA,
    reference=_gemv,
    input_memory=LEFT_RIGHT,
    priority="full",
    **CUBE_SPEC,
)
define(
    "tile.gemv_acc",
    [Operand("acc", "tile", "destination"), *LHS_RHS],
    _infer("tile.gemv_acc"),
    doc="acc + one row times a matrix, in the accumulator",
    kwargs=PHASE_SCHEMA,
    reference=_gemv_acc,
    input_memory=((MemorySpace.Acc,), *LEFT_RIGHT),
    priority="full",
    **CUBE_SPEC,
    **IN_PLACE,
)
define(
    "tile.gemv_bias",
    [*LHS_RHS, Operand("bias", "tile")],
    _infer("tile.gemv_bias"),
    doc="one row times a matrix, plus bias",
    kwargs=PHASE_SCHEMA,
    reference=_gemv_bias,
    input_memory=(*LEFT_RIGHT, (MemorySpace.Bias,)),
    priority="full",
    **CUBE_SPEC,
)


def _phase(acc_phase: str) -> str | None:
    return None if acc_phase == "unspecified" else acc_phase


@surface("tile", "pl", name="gemv")
def gemv(lhs: Arg, rhs: Arg, acc_phase: Attr = "unspecified") -> Expr:
    return call("tile.gemv", lhs, rhs, acc_phase=_phase(acc_phase))


@surface("tile", "pl", name="gemv_acc")
def gemv_acc(acc: Arg, lhs: Arg, rhs: Arg, acc_phase: Attr = "unspecified") -> Expr:
    return call("tile.gemv_acc", acc, lhs, rhs, acc_phase=_phase(acc_phase))


@surface("tile", "pl", name="gemv_bias")
def gemv_bias(lhs: Arg, rhs: Arg, bias: Arg, acc_phase: Attr = "unspecified") -> Expr:
    return call("tile.gemv_bias", lhs, rhs, bias, acc_phase=_phase(acc_phase))


@surface("ir.tile", name="gemv")
def ir_gemv(lhs: Arg, rhs: Arg, *, acc_phase: Attr = "unspecified") -> Expr:
    return gemv(lhs, rhs, acc_phase)


@surface("ir.tile", name="gemv_acc")
def ir_gemv_acc(acc: Arg, lhs: Arg, rhs: Arg, *, acc_phase: Attr = "unspecified") -> Expr:
    return gemv_acc(acc, lhs, rhs, acc_phase)


@surface("ir.tile", name="gemv_bias")
def ir_gemv_bias(lhs: Arg, rhs: Arg, bias: Arg, *, acc_phase: Attr = "unspecified") -> Expr:
    return gemv_bias(lhs, rhs, bias, acc_phase)
