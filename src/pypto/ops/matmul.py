"""Matrix products on tensors and tiles: matmul, matmul_acc, matmul_bias, batch_matmul and gemv.

Products accumulate in FP32 (integers: INT32). A tensor product is rounded once to its result type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..ir.dtype import DataType
from ..ir.enums import ArgEffect, CompactMode, CoreType, MemorySpace, TileLayout
from ..ir.expr import Call, ConstBool, Expr
from ..ir.location import current_span
from ..ir.printer.calls import CallPrinter
from ..ir.type import TileType, TileView, Type
from .definition import UNSET, Alias, InferRule, Operand
from .numpy_types import from_numpy_dtype, numpy_dtype
from .printing import PRINTED_FORMS
from .product import Product, accumulator_dtype, add_bias, add_product
from .regions import placed
from .registry import call, define
from .rules import (
    broadcast_shapes,
    is_one,
    min_extent,
    require_args,
    result_dtype,
    same_extent,
    scalar_dtype,
    show_shape,
    tensor_result,
    tensor_type,
    tile_type,
)
from .surface import Attr, common_level, level_of, mixed_error, surface, unsupported_for_tile
from .surface import Operand as Arg
from .values import ArrayValue
from .windows import at_most, provably_exceeds

M = MemorySpace
CUBE_SPEC: dict[str, Any] = {"output_memory": M.Acc, "core": CoreType.CUBE}
IN_PLACE: dict[str, Any] = {"effects": {0: ArgEffect.ReadWrite}, "alias": Alias.IS, "alias_operand": 0}


# --- reference semantics ----------------------------------------------------------------------------------------------


def _tensor_matmul(
    ctx: Any, a: ArrayValue, b: ArrayValue, a_trans: bool = False, b_trans: bool = False, **_: Any
) -> ArrayValue:
    dtypes = (from_numpy_dtype(a.dtype), from_numpy_dtype(b.dtype))
    product = Product(a, b, accumulator_dtype(*dtypes), a_trans, b_trans)
    return placed(product.values.astype(numpy_dtype(ctx.type.dtype)), product.mask, product.shape)


def _tile_matmul(ctx: Any, a: ArrayValue, b: ArrayValue, **_: Any) -> ArrayValue:
    product = Product(a, b, ctx.type.dtype)
    return placed(product.values, product.mask, product.shape)


def _tile_matmul_acc(ctx: Any, acc: ArrayValue, a: ArrayValue, b: ArrayValue, init_cond: Any = False, **_: Any) -> Any:
    return add_product(acc, Product(a, b, ctx.type.dtype), bool(init_cond))


def _tensor_matmul_acc(
    ctx: Any,
    acc: ArrayValue,
    a: ArrayValue,
    b: ArrayValue,
    init_cond: Any = False,
    a_trans: bool = False,
    b_trans: bool = False,
) -> ArrayValue:
    product = Product(a, b, ctx.type.dtype, a_trans, b_trans)
    region = tuple(slice(0, n) for n in acc.valid)
    mask = acc.valid_mask()
    result = placed(acc.data[region].copy(), None if mask is None else mask.copy(), acc.shape)
    return add_product(result, product, bool(init_cond))


def _bias_reference(ctx: Any, a: ArrayValue, b: ArrayValue, bias: ArrayValue, **_: Any) -> ArrayValue:
    return add_bias(Product(a, b, ctx.type.dtype), bias)


# --- type rules that the family shares --------------------------------------------------------------------------------


def require_same_inner(name: str, k_lhs: Expr, k_rhs: Expr, phrase: str = "inner dimensions") -> None:
    """Static inner dimensions must agree."""
    if at_most(k_lhs, k_rhs) is False or at_most(k_rhs, k_lhs) is False:
        raise ValueError(
            f"{name} requires matching {phrase}, but got "
            f"lhs K={show_shape([k_lhs])[1:-1]} and rhs K={show_shape([k_rhs])[1:-1]}"
        )


def require_cover(name: str, what: str, have: Expr, need: Expr) -> None:
    """A valid extent that is provably too small is refused."""
    if provably_exceeds(need, have):
        raise ValueError(
            f"{name} requires {what} of {show_shape([need])[1:-1]}, but only {show_shape([have])[1:-1]} are valid"
        )


def require_dimension(name: str, what: str, have: Expr, want: Expr) -> None:
    """Static extents must agree."""
    if at_most(have, want) is False or at_most(want, have) is False:
        raise ValueError(f"{name} requires {what}, but got {show_shape([have])[1:-1]} and {show_shape([want])[1:-1]}")


def _require_bool(name: str, args: Sequence[Expr], index: int) -> None:
    if len(args) <= index:
        return
    dtype = scalar_dtype(name, args, index)
    if dtype is not DataType.BOOL:
        raise ValueError(
            f"{name} requires init_cond to have dtype BOOL, but got {dtype}: write a comparison such as `k == 0`"
        )


def acc_tile(shape: Sequence[Expr], dtype: DataType, valid: Sequence[Expr], compact: CompactMode) -> TileType:
    """A tile in the accumulator: its layout, and whether its valid rows are stored compactly."""
    view = TileView(valid, blayout=TileLayout.col_major, slayout=TileLayout.row_major, fractal=1024, compact=compact)
    return TileType(shape, dtype, None, view, M.Acc)


def compact_of(rows: Expr, valid_rows: Expr) -> CompactMode:
    """Results whose valid rows are not provably all rows are stored compactly."""
    return CompactMode.null if same_extent(rows, valid_rows) else CompactMode.normal


# --- tensors ----------------------------------------------------------------------------------------------------------


class _Side:
    """One operand of a tensor product after its transposition flag: (batch, row, inner, column) parts."""

    __slots__ = ("shape", "valid")

    def __init__(self, name: str, what: str, kind: Any, transposed: bool) -> None:
        self.shape, self.valid = list(kind.shape), list(kind.valid_extents)
        if not self.shape:
            raise ValueError(f"{name} requires {what} of rank >= 1")
        if transposed:
            if len(self.shape) == 1:
                raise ValueError(f"{name}: a 1-D {what} cannot be transposed")
            for extents in (self.shape, self.valid):
                extents[-2], extents[-1] = extents[-1], extents[-2]


def _product_type(name: str, a: _Side, b: _Side) -> tuple[list[Expr], list[Expr]]:
    """Shape and valid region of a tensor product."""
    vector = len(b.shape) == 1
    require_same_inner(name, a.shape[-1], b.shape[0 if vector else -2])
    require_cover(name, "rhs valid K to cover lhs valid K", b.valid[0 if vector else -2], a.valid[-1])
    lead = broadcast_shapes(name, a.shape[:-2], b.shape[:-2])
    lead_valid = list(lead)
    for i in range(1, len(lead) + 1):
        for side in (a, b):
            if i <= len(side.shape) - 2:
                own, valid = side.shape[-2 - i], side.valid[-2 - i]
                if not same_extent(own, valid):
                    limit = lead_valid[-i]
                    lead_valid[-i] = valid if limit is lead[-i] else min_extent(limit, valid)
    shape, valid = list(lead), lead_valid
    if len(a.shape) > 1:
        shape.append(a.shape[-2])
        valid.append(a.valid[-2])
    if not vector:
        shape.append(b.shape[-1])
        valid.append(b.valid[-1])
    return shape, valid


def _tensor_matmul_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    name = "tensor.matmul"
    require_args(name, args, 2)
    lhs, rhs = tensor_type(name, args, 0, plain=True), tensor_type(name, args, 1, plain=True)
    a = _Side(name, "lhs", lhs, kwargs.get("a_trans", False))
    b = _Side(name, "rhs", rhs, kwargs.get("b_trans", False))
    shape, valid = _product_type(name, a, b)
    return tensor_result(shape, kwargs.get("out_dtype") or result_dtype(lhs.dtype, rhs.dtype), valid)


def _tensor_matmul_acc_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    name = "tensor.matmul_acc"
    require_args(name, args, 3, 4)
    acc, lhs, rhs = (tensor_type(name, args, i, plain=True) for i in range(3))
    _require_bool(name, args, 3)
    for what, kind in (("acc", acc), ("lhs", lhs), ("rhs", rhs)):
        if len(kind.shape) < 2:
            raise ValueError(f"{name} requires {what} of rank >= 2, but got rank {len(kind.shape)}")
    _check_accumulator(name, acc.dtype, lhs.dtype, rhs.dtype)
    a = _Side(name, "lhs", lhs, kwargs.get("a_trans", False))
    b = _Side(name, "rhs", rhs, kwargs.get("b_trans", False))
    shape, valid = _product_type(name, a, b)
    _check_acc_shape(name, acc, shape, valid)
    return tensor_result(acc.shape, acc.dtype, acc.valid_extents)


def _check_accumulator(name: str, acc: DataType, lhs: DataType, rhs: DataType) -> None:
    _require_identical(name, lhs, rhs)
    wanted = accumulator_dtype(lhs, rhs)
    if acc is not wanted:
        raise ValueError(f"{name} requires accumulator dtype {wanted} for {lhs} operands, but got {acc}")


def _require_identical(name: str, lhs: DataType, rhs: DataType) -> None:
    if lhs is not rhs:
        raise ValueError(f"{name} requires identical lhs and rhs dtypes, but got {lhs} and {rhs}")


def _check_acc_shape(name: str, acc: Any, shape: Sequence[Expr], valid: Sequence[Expr]) -> None:
    """The accumulator against shape and valid region of the product."""
    if len(acc.shape) != len(shape):
        raise ValueError(
            f"{name} requires each acc batch dim to equal the product's: acc {show_shape(acc.shape)}, "
            f"product {show_shape(shape)}"
        )
    for i, (have, want) in enumerate(zip(acc.shape[:-2], shape[:-2], strict=True)):
        require_dimension(name, f"acc batch dim {i} to equal the product's", have, want)
    require_dimension(name, "acc M dimension to match the product's", acc.shape[-2], shape[-2])
    require_dimension(name, "acc N dimension to match the product's", acc.shape[-1], shape[-1])
    require_cover(name, "acc valid M to cover the product's", acc.valid_extents[-2], valid[-2])
    require_cover(name, "acc valid N to cover the product's", acc.valid_extents[-1], valid[-1])


def _printed_acc(printer: CallPrinter, call: Call) -> list[str]:
    """``init_cond=`` by keyword: a fourth positional argument of ``pl.tensor.matmul_acc`` is ``a_trans``."""
    texts = printer.args(call)
    return [*texts[:3], *(f"init_cond={text}" for text in texts[3:]), *printer.kwargs(call)]


PRINTED_FORMS["matmul_acc"] = _printed_acc

TRANSPOSED = {"a_trans": (bool, False), "b_trans": (bool, False)}

define(
    "tensor.matmul",
    [Operand("lhs", "tensor"), Operand("rhs", "tensor")],
    _tensor_matmul_infer,
    doc="lhs @ rhs; a_trans and b_trans swap the last two axes of an operand",
    kwargs={"out_dtype": (DataType, UNSET), **TRANSPOSED, "c_matrix_nz": (bool, False)},
    reference=_tensor_matmul,
)
define(
    "tensor.matmul_acc",
    [
        Operand("acc", "tensor"),
        Operand("lhs", "tensor"),
        Operand("rhs", "tensor"),
        Operand("init_cond", "scalar", optional=True),
    ],
    _tensor_matmul_acc_infer,
    doc="acc + lhs @ rhs; where init_cond holds, acc counts as 0",
    kwargs=TRANSPOSED,
    reference=_tensor_matmul_acc,
    printed="matmul_acc",
)


# --- tiles ------------------------------------------------------------------------------------------------------------


def product_tile(name: str, lhs: TileType, rhs: TileType) -> tuple[list[Expr], list[Expr]]:
    """Checks of a two-dimensional tile product; its shape and valid region."""
    for what, kind in (("lhs", lhs), ("rhs", rhs)):
        if len(kind.shape) != 2:
            raise ValueError(f"{name} requires {what} of rank 2, but got rank {len(kind.shape)}")
    require_same_inner(name, lhs.shape[1], rhs.shape[0], "physical inner dimensions")
    a, b = lhs.valid_extents, rhs.valid_extents
    require_cover(name, "rhs valid K to cover lhs valid K", b[0], a[1])
    return [lhs.shape[0], rhs.shape[1]], [a[0], b[1]]


def check_bias(name: str, bias: TileType, dtype: DataType, columns: Expr, valid_columns: Expr) -> None:
    """A bias holds one value per column of the product, in the accumulator's element type."""
    if len(bias.shape) != 2 or not is_one(bias.shape[0]):
        raise ValueError(f"{name} requires a bias of shape [1, N], but got {show_shape(bias.shape)}")
    if bias.dtype is not dtype:
        raise ValueError(f"{name} requires the bias to have the accumulator dtype {dtype}, but got {bias.dtype}")
    require_dimension(name, "bias N dimension to match the product's", bias.shape[1], columns)
    require_cover(name, "bias valid N to cover the product's", bias.valid_extents[1], valid_columns)


def _tile_matmul_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    name = "tile.matmul"
    require_args(name, args, 2)
    lhs, rhs = tile_type(name, args, 0), tile_type(name, args, 1)
    _require_identical(name, lhs.dtype, rhs.dtype)
    shape, valid = product_tile(name, lhs, rhs)
    return acc_tile(shape, accumulator_dtype(lhs.dtype), valid, compact_of(shape[0], valid[0]))


def _tile_matmul_acc_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    name = "tile.matmul_acc"
    require_args(name, args, 3, 4)
    acc, lhs, rhs = (tile_type(name, args, i) for i in range(3))
    _require_bool(name, args, 3)
    if len(acc.shape) != 2:
        raise ValueError(f"{name} requires acc of rank 2, but got rank {len(acc.shape)}")
    _check_accumulator(name, acc.dtype, lhs.dtype, rhs.dtype)
    shape, valid = product_tile(name, lhs, rhs)
    _check_acc_shape(name, acc, shape, valid)
    return acc_tile(acc.shape, acc.dtype, acc.valid_extents, acc.get_effective_tile_view().compact)


def _tile_matmul_bias_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    name = "tile.matmul_bias"
    require_args(name, args, 3)
    lhs, rhs, bias = (tile_type(name, args, i) for i in range(3))
    _require_identical(name, lhs.dtype, rhs.dtype)
    shape, valid = product_tile(name, lhs, rhs)
    dtype = accumulator_dtype(lhs.dtype)
    check_bias(name, bias, dtype, shape[1], valid[1])
    return acc_tile(shape, dtype, valid, compact_of(shape[0], valid[0]))


def _batch_infer(name: str, with_acc: bool) -> InferRule:
    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(name, args, 3 if with_acc else 2)
        kinds = [tile_type(name, args, i) for i in range(len(args))]
        for what, kind in zip(("acc", "lhs", "rhs")[-len(kinds) :], kinds, strict=True):
            if len(kind.shape) < 2:
                raise ValueError(f"{name} requires {what} of rank >= 2, but got rank {len(kind.shape)}")
        lhs, rhs = kinds[-2:]
        _require_identical(name, lhs.dtype, rhs.dtype)
        shape, valid = _product_type(name, _Side(name, "lhs", lhs, False), _Side(name, "rhs", rhs, False))
        if not with_acc:
            return acc_tile(shape, accumulator_dtype(lhs.dtype), valid, CompactMode.null)
        acc = kinds[0]
        _check_accumulator(name, acc.dtype, lhs.dtype, rhs.dtype)
        _check_acc_shape(name, acc, shape, valid)
        return acc_tile(acc.shape, acc.dtype, acc.valid_extents, acc.get_effective_tile_view().compact)

    return infer


LEFT_RIGHT = ((M.Left,), (M.Right,))
LHS_RHS = [Operand("lhs", "tile"), Operand("rhs", "tile")]
ACC_LHS_RHS = [Operand("acc", "tile", "destination"), *LHS_RHS]

define(
    "tile.matmul",
    LHS_RHS,
    _tile_matmul_infer,
    doc="lhs @ rhs",
    reference=_tile_matmul,
    input_memory=LEFT_RIGHT,
    **CUBE_SPEC,
)
define(
    "tile.matmul_acc",
    [*ACC_LHS_RHS, Operand("init_cond", "scalar", optional=True)],
    _tile_matmul_acc_infer,
    doc="acc + lhs @ rhs in the accumulator; where init_cond holds, it is overwritten",
    reference=_tile_matmul_acc,
    input_memory=((M.Acc,), *LEFT_RIGHT),
    **CUBE_SPEC,
    **IN_PLACE,
)
define(
    "tile.matmul_bias",
    [*LHS_RHS, Operand("bias", "tile")],
    _tile_matmul_bias_infer,
    doc="lhs @ rhs + bias",
    reference=_bias_reference,
    input_memory=(*LEFT_RIGHT, (M.Bias,)),
    **CUBE_SPEC,
)
define(
    "tile.batch_matmul",
    LHS_RHS,
    _batch_infer("tile.batch_matmul", False),
    doc="lhs @ rhs for each batch index",
    reference=_tile_matmul,
    input_memory=LEFT_RIGHT,
    **CUBE_SPEC,
)
define(
    "tile.batch_matmul_acc",
    ACC_LHS_RHS,
    _batch_infer("tile.batch_matmul_acc", True),
    doc="acc + lhs @ rhs for each batch index",
    reference=_tile_matmul_acc,
    input_memory=((M.Acc,), *LEFT_RIGHT),
    priority="full",
    **CUBE_SPEC,
    **IN_PLACE,
)


# --- surface ----------------------------------------------------------------------------------------------------------


def _flag(value: Any) -> bool | None:
    """A flag as stored: its default is left out."""
    return True if value else None


def _condition(init_cond: Arg) -> Expr:
    return ConstBool(init_cond, current_span()) if isinstance(init_cond, bool) else init_cond


@surface("tensor", name="matmul")
def tensor_matmul(
    lhs: Arg,
    rhs: Arg,
    out_dtype: Attr = None,
    a_trans: Attr = False,
    b_trans: Attr = False,
    c_matrix_nz: Attr = False,
) -> Expr:
    return call(
        "tensor.matmul",
        lhs,
        rhs,
        out_dtype=out_dtype,
        a_trans=_flag(a_trans),
        b_trans=_flag(b_trans),
        c_matrix_nz=_flag(c_matrix_nz),
    )


@surface("tensor", name="matmul_acc")
def tensor_matmul_acc(
    acc: Arg, lhs: Arg, rhs: Arg, a_trans: Attr = False, b_trans: Attr = False, init_cond: Arg = None
) -> Expr:
    operands = (acc, lhs, rhs) if init_cond is None else (acc, lhs, rhs, _condition(init_cond))
    return call("tensor.matmul_acc", *operands, a_trans=_flag(a_trans), b_trans=_flag(b_trans))


@surface("ir.tensor", name="matmul_acc")
def ir_tensor_matmul_acc(
    acc: Arg, lhs: Arg, rhs: Arg, a_trans: Attr = False, b_trans: Attr = False, *, init_cond: Arg = None
) -> Expr:
    return tensor_matmul_acc(acc, lhs, rhs, a_trans, b_trans, init_cond)


@surface("tile", name="matmul")
def tile_matmul(lhs: Arg, rhs: Arg) -> Expr:
    return call("tile.matmul", lhs, rhs)


@surface("tile", name="matmul_acc")
def tile_matmul_acc(acc: Arg, lhs: Arg, rhs: Arg, init_cond: Arg = None) -> Expr:
    operands = (acc, lhs, rhs) if init_cond is None else (acc, lhs, rhs, _condition(init_cond))
    return call("tile.matmul_acc", *operands)


@surface("ir.tile", name="matmul_acc")
def ir_tile_matmul_acc(acc: Arg, lhs: Arg, rhs: Arg, *, init_cond: Arg = None) -> Expr:
    return tile_matmul_acc(acc, lhs, rhs, init_cond)


@surface("tile", "pl", name="matmul_bias")
def matmul_bias(lhs: Arg, rhs: Arg, bias: Arg) -> Expr:
    return call("tile.matmul_bias", lhs, rhs, bias)


@surface("tile", name="batch_matmul")
def tile_batch_matmul(lhs: Arg, rhs: Arg) -> Expr:
    return call("tile.batch_matmul", lhs, rhs)


@surface("tile", name="batch_matmul_acc")
def tile_batch_matmul_acc(acc: Arg, lhs: Arg, rhs: Arg) -> Expr:
    return call("tile.batch_matmul_acc", acc, lhs, rhs)


_REMEDY = "Transpose the operand with pl.tile.transpose_view."


def _reject_flags(name: str, a_trans: Any, b_trans: Any) -> None:
    for flag, value in (("a_trans", a_trans), ("b_trans", b_trans)):
        if value:
            raise unsupported_for_tile(name, flag, _REMEDY)


@surface("pl", name="matmul")
def matmul(
    lhs: Arg,
    rhs: Arg,
    out_dtype: Attr = None,
    a_trans: Attr = False,
    b_trans: Attr = False,
    c_matrix_nz: Attr = False,
) -> Expr:
    level = common_level("matmul", lhs, rhs)
    if level == "tensor":
        return tensor_matmul(lhs, rhs, out_dtype, a_trans, b_trans, c_matrix_nz)
    _reject_flags("matmul", a_trans, b_trans)
    if c_matrix_nz:
        raise unsupported_for_tile("matmul", "c_matrix_nz")
    product = tile_matmul(lhs, rhs)
    deduced = product.type.dtype  # type: ignore[attr-defined]
    if out_dtype is not None and out_dtype is not deduced:
        raise unsupported_for_tile(
            "matmul", "out_dtype", f"A tile product has its accumulator's dtype, {deduced}; convert it with pl.cast."
        )
    return product


@surface("pl", name="matmul_acc")
def matmul_acc(
    acc: Arg, lhs: Arg, rhs: Arg, a_trans: Attr = False, b_trans: Attr = False, init_cond: Arg = None
) -> Expr:
    level = common_level("matmul_acc", acc, lhs, rhs)
    if level == "tensor":
        return tensor_matmul_acc(acc, lhs, rhs, a_trans, b_trans, init_cond)
    _reject_flags("matmul_acc", a_trans, b_trans)
    return tile_matmul_acc(acc, lhs, rhs, init_cond)


@surface("pl", name="batch_matmul")
def batch_matmul(lhs: Arg, rhs: Arg) -> Expr:
    levels = {level_of(lhs), level_of(rhs)}
    if levels == {"tensor"}:
        raise TypeError("pl.batch_matmul: expected Tile operands, got (Tensor, Tensor); pl.matmul batches tensors")
    if levels != {"tile"}:
        raise mixed_error("batch_matmul", lhs, rhs)
    return tile_batch_matmul(lhs, rhs)
