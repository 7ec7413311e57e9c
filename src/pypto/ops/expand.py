"""Expansion of a vector over rows or columns, alone or with an arithmetic function; fills and clones.

A *row vector* holds one value per row (``[.., M, 1]``), a *column vector* one per column (``[.., 1, N]``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._lazy import np
from ..ir.dtype import DataType
from ..ir.enums import CoreType, MemorySpace, TileLayout
from ..ir.expr import Expr
from ..ir.type import TileType, Type
from .definition import InferRule, Operand, Reference
from .elementwise import as_number, compute_in, divide, elementwise
from .normalize import scalar_operand
from .numpy_types import numpy_dtype
from .registry import call, define
from .rules import (
    broadcast_valid,
    is_one,
    require_args,
    require_dtype,
    result_dtype,
    result_like,
    same_extent,
    scalar_dtype,
    show_shape,
    tensor_result,
    tensor_type,
    tile_type,
)
from .surface import Operand as Arg
from .surface import by_first, common_level, surface
from .values import ArrayValue, fresh
from .windows import number

D = DataType
ROW_ADD_DTYPES = (D.INT8, D.INT16, D.INT32, D.FP16, D.FP32)
VEC = (MemorySpace.Vec,)
TILE_SPEC: dict[str, Any] = {"output_memory": MemorySpace.Vec, "core": CoreType.VECTOR}

Function = Callable[[Any, Any], Any]
# suffix -> (function, doc, priority, element); "" copies the vector
FUNCTIONS: dict[str, tuple[Function | None, str, str, str]] = {
    "": (None, "the vector repeated over the shape of the first operand", "core", "{1}"),
    "_add": (lambda a, v: a + v, "first + vector", "core", "({0} + {1})"),
    "_sub": (lambda a, v: a - v, "first - vector", "core", "({0} - {1})"),
    "_mul": (lambda a, v: a * v, "first * vector", "core", "({0} * {1})"),
    "_div": (lambda a, v: divide(a, v), "first / vector", "core", "pto::quotient({0}, {1})"),
    "_max": (lambda a, v: np.maximum(a, v), "maximum(first, vector)", "full", "pto::math::maximum({0}, {1})"),
    "_min": (lambda a, v: np.minimum(a, v), "minimum(first, vector)", "full", "pto::math::minimum({0}, {1})"),
    "_expdif": (lambda a, v: np.exp(a - v), "exp(first - vector)", "full", "pto::math::exp(pto::step<{T}>({0} - {1}))"),
}


# --- reference semantics ----------------------------------------------------------------------------------------------


def _repeat(ctx: Any, target: ArrayValue, vector: ArrayValue) -> ArrayValue:
    """The vector over the target's shape. The target's elements are not read; its valid region stays."""
    dtype = numpy_dtype(ctx.type.dtype)
    shape = target.shape
    mask = vector.mask
    valid = list(target.valid)
    for i in range(-len(vector.shape), 0):
        if vector.shape[i] != 1 or shape[i] == 1:
            valid[i] = min(valid[i], vector.valid[i])
    return fresh(
        np.broadcast_to(vector.data, shape).astype(dtype),
        None if mask is None else np.broadcast_to(mask, shape),
        valid,
    )


def _reference(function: Function | None) -> Reference:
    def reference(ctx: Any, a: ArrayValue, vector: ArrayValue, tmp: Any = None) -> ArrayValue:
        if function is None:
            return _repeat(ctx, a, vector)
        return elementwise(ctx, function, a, vector)

    return reference


def _row_add_reference(ctx: Any, a: ArrayValue, vector: ArrayValue, tmp: Any = None) -> ArrayValue:
    if vector.valid[-1] != 1:
        # A row-major vector holds each row's value in a 32-byte block: element j of a row takes element j of the block.
        block, columns = vector.valid[-1], np.arange(a.shape[-1])
        data = vector.data[..., columns % block]
        mask = vector.mask
        spread = None if mask is None else mask[..., columns % block]
        vector = fresh(data, spread, (*vector.valid[:-1], a.shape[-1]))
    elif vector.shape[-1] != 1:
        vector = vector.view(vector.data[..., :1], (*vector.valid[:-1], 1))
    return elementwise(ctx, lambda x, y: x + y, a, vector)


# --- type rules -------------------------------------------------------------------------------------------------------


def check_vector(name: str, a: Any, vector: Any, rows: bool, what: str) -> None:
    """The shape rules of a row or column vector against the operand that it expands over."""
    for kind in (a, vector):
        if len(kind.shape) < 2:
            raise ValueError(f"{name} requires operands of rank >= 2, but got rank {len(kind.shape)}")
    unit, kept = (-1, -2) if rows else (-2, -1)
    if not is_one(vector.shape[unit]):
        position = "last" if rows else "second-to-last"
        raise ValueError(
            f"{name} requires the {what}'s {position} dimension to be 1, but got shape {show_shape(vector.shape)}"
        )
    dimensions = "row" if rows else "column"
    differ = _provably_differ(a.shape[kept], vector.shape[kept])
    lead = zip(reversed(a.shape[:-2]), reversed(vector.shape[:-2]), strict=False)
    if differ or len(vector.shape) > len(a.shape) or any(_provably_differ(m, v) and not is_one(v) for m, v in lead):
        raise ValueError(
            f"{name} requires matching {dimensions} dimensions, "
            f"but got shapes {show_shape(a.shape)} and {show_shape(vector.shape)}"
        )


def _provably_differ(a: Expr, b: Expr) -> bool:
    x, y = number(a), number(b)
    return x is not None and y is not None and x != y


def _vector_infer(name: str, level: str, rows: bool, what: str) -> InferRule:
    operand_type: Callable[..., Any] = tile_type if level == "tile" else _plain_tensor

    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(name, args, 2)
        a, vector = operand_type(name, args, 0), operand_type(name, args, 1)
        check_vector(name, a, vector, rows, what)
        dtype = result_dtype(a.dtype, vector.dtype)
        if name.endswith("_expdif") and not dtype.is_float_:
            raise ValueError(f"{name} requires a float operand, got {a.dtype} and {vector.dtype}: cast with pl.cast")
        return result_like(a, a.shape, dtype, broadcast_valid(a.shape, a, vector))

    return infer


def _plain_tensor(name: str, args: Sequence[Expr], index: int) -> Type:
    return tensor_type(name, args, index, plain=True)


def _check_row_add_dtypes(name: str, a: Any, vector: Any) -> None:
    require_dtype(name, "operand", a.dtype, ROW_ADD_DTYPES)
    if a.dtype is not vector.dtype:
        raise ValueError(f"{name} requires operands of the same dtype, but got {a.dtype} and {vector.dtype}")


def _tensor_row_add_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    name = "tensor.row_expand_add"
    kind = _vector_infer(name, "tensor", True, "row_vec")(args, kwargs)
    _check_row_add_dtypes(name, args[0].type, args[1].type)
    return kind


def _tile_row_add_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    name = "tile.row_expand_add"
    require_args(name, args, 2, 3)
    a, vector = tile_type(name, args, 0), tile_type(name, args, 1)
    if len(args) == 3:
        tile_type(name, args, 2)
    _check_row_add_dtypes(name, a, vector)
    if len(a.shape) < 2 or len(vector.shape) < 2:
        raise ValueError(f"{name} requires operands of rank >= 2")
    if a.get_effective_tile_view().blayout is not TileLayout.row_major:
        raise ValueError(f"{name} requires the src0 effective blayout to be row_major")
    if _provably_differ(a.shape[-2], vector.shape[-2]):
        raise ValueError(
            f"{name} requires matching row dimensions, "
            f"but got shapes {show_shape(a.shape)} and {show_shape(vector.shape)}"
        )
    if not same_extent(a.valid_extents[-2], vector.valid_extents[-2]):
        raise ValueError(f"{name} requires the valid row extent of row_vec to provably equal that of the tile")
    row_major = vector.get_effective_tile_view().blayout is TileLayout.row_major
    wanted = 256 // a.dtype.get_bit() if row_major else 1
    last = number(vector.valid_extents[-1])
    if last != wanted:
        raise ValueError(f"{name} requires row_vec's valid last dimension to be {wanted}")
    return result_like(a, a.shape, a.dtype, a.valid_extents)


# --- definitions ------------------------------------------------------------------------------------------------------


def _operands(rows: bool, level: str, suffix: str) -> tuple[list[Operand], str]:
    kind = "tensor" if level == "tensor" else "tile"
    if rows:
        first, second = ("target" if not suffix else level), "row_vec"
    elif level == "tensor":
        first, second = "tensor", "col_vec"
    else:
        first, second = "target", "col_tile"
    return [Operand(first, kind), Operand(second, kind)], second


def _define(rows: bool, suffix: str) -> None:
    function, doc, priority, element = FUNCTIONS[suffix]
    base = ("row_expand" if rows else "col_expand") + suffix
    row_add = base == "row_expand_add"
    for level in ("tensor", "tile"):
        operands, what = _operands(rows, level, suffix)
        name = f"{level}.{base}"
        infer = _vector_infer(name, level, rows, what)
        reference = _reference(function)
        spec: dict[str, Any] = {}
        if level == "tile":
            spec = dict(TILE_SPEC, input_memory=(VEC, VEC), no_alias=(1,))
            if row_add:
                operands.append(Operand("tmp", "tile", "scratch", optional=True))
                spec.update(input_memory=(VEC, VEC, VEC), no_alias=(1, 2))
                infer, reference = _tile_row_add_infer, _row_add_reference
        elif row_add:
            infer = _tensor_row_add_infer
        define(name, operands, infer, doc=doc, reference=reference, priority=priority, element=element, **spec)


def _register_surface(rows: bool, suffix: str) -> None:
    base = ("row_expand" if rows else "col_expand") + suffix
    tensor_op, tile_op = f"tensor.{base}", f"tile.{base}"
    tensor: Callable[..., Expr]
    tile: Callable[..., Expr]
    if rows and not suffix:

        def tensor(target: Arg, row_vec: Arg) -> Expr:
            return call(tensor_op, target, row_vec)

        def tile(target: Arg, row_vec: Arg) -> Expr:
            return call(tile_op, target, row_vec)

    elif rows:

        def tensor(tensor: Arg, row_vec: Arg) -> Expr:
            return call(tensor_op, tensor, row_vec)

        def tile(tile: Arg, row_vec: Arg) -> Expr:
            return call(tile_op, tile, row_vec)

    else:

        def tensor(tensor: Arg, col_vec: Arg) -> Expr:
            return call(tensor_op, tensor, col_vec)

        if suffix:

            def tile(tile: Arg, col_vec: Arg) -> Expr:
                return call(tile_op, tile, col_vec)

        else:

            def tile(target: Arg, col_vec: Arg) -> Expr:
                return call(tile_op, target, col_vec)

    def unified(lhs: Arg, rhs: Arg) -> Expr:
        level = common_level(base, lhs, rhs)
        return call(f"{level}.{base}", lhs, rhs)

    surface("tensor", name=base)(tensor)
    if base != "row_expand_add":
        surface("tile", name=base)(tile)
        surface("pl", name=base)(unified)


for _suffix in FUNCTIONS:
    for _rows in (True, False):
        _define(_rows, _suffix)
        _register_surface(_rows, _suffix)


@surface("tile", name="row_expand_add")
def tile_row_expand_add(tile: Arg, row_vec: Arg, tmp: Arg = None) -> Expr:
    operands = (tile, row_vec) if tmp is None else (tile, row_vec, tmp)
    return call("tile.row_expand_add", *operands)


@surface("ir.tile", name="row_expand_add")
def ir_tile_row_expand_add(tile: Arg, row_vec: Arg, *, tmp: Arg = None) -> Expr:
    return tile_row_expand_add(tile, row_vec, tmp)


@surface("pl", name="row_expand_add")
def row_expand_add(lhs: Arg, rhs: Arg, tmp: Arg = None) -> Expr:
    level = common_level("row_expand_add", lhs, rhs)
    if level == "tile":
        return tile_row_expand_add(lhs, rhs, tmp)
    if tmp is not None:
        raise TypeError("pl.row_expand_add: Tensor inputs must not pass tmp")
    return call("tensor.row_expand_add", lhs, rhs)


# --- expands: one scalar over a shape ---------------------------------------------------------------------------------


def _expands_infer(name: str) -> InferRule:
    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(name, args, 2)
        if name == "tile.expands":
            tile = tile_type(name, args, 0)
            dtype = result_dtype(tile.dtype, scalar_dtype(name, args, 1))
            return result_like(tile, tile.shape, dtype, tile.valid_extents)
        tensor = tensor_type(name, args, 0, plain=True)
        scalar_dtype(name, args, 1)
        return tensor_result(tensor.shape, tensor.dtype)

    return infer


def _fill(ctx: Any, target: ArrayValue, scalar: Any) -> ArrayValue:
    dtype = numpy_dtype(ctx.type.dtype)
    # The tensor form fills the whole shape, the tile form the target's valid region.
    valid = target.valid if type(ctx.type) is TileType else None
    number = np.asarray(as_number(compute_in(dtype), scalar)).astype(dtype)
    return fresh(np.full(target.shape, number, dtype), None, valid)


for _level in ("tensor", "tile"):
    define(
        f"{_level}.expands",
        [Operand("target", _level), Operand("scalar", "scalar")],
        _expands_infer(f"{_level}.expands"),
        doc="the scalar over the shape of target",
        reference=_fill,
        priority="full",
        element="{1}",
        **(dict(TILE_SPEC, input_memory=(VEC,)) if _level == "tile" else {}),
    )


@surface("tensor", name="expands")
def tensor_expands(target: Arg, scalar: Arg) -> Expr:
    return call("tensor.expands", target, scalar_operand(scalar, target.type.dtype))


@surface("tile", name="expands")
def tile_expands(target: Arg, scalar: Arg) -> Expr:
    return call("tile.expands", target, scalar_operand(scalar, target.type.dtype))


@surface("pl", name="expands")
def expands(target: Arg, scalar: Arg) -> Expr:
    expand: Expr = by_first("expands", tensor_expands, tile_expands, target)(target, scalar)
    return expand


# --- expand_clone -----------------------------------------------------------------------------------------------------


def _clone_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    name = "tensor.expand_clone"
    require_args(name, args, 2)
    source, target = tensor_type(name, args, 0, plain=True), tensor_type(name, args, 1, plain=True)
    for what, kind in (("input", source), ("target", target)):
        if len(kind.shape) != 3:
            raise ValueError(f"{name} requires {what} of rank 3, but got rank {len(kind.shape)}")
    repeated = [i for i in range(3) if not same_extent(source.shape[i], target.shape[i])]
    if any(not is_one(source.shape[i]) for i in repeated):
        raise ValueError(
            f"{name} broadcasts from a constant extent 1 only: "
            f"{show_shape(source.shape)} does not expand to {show_shape(target.shape)}"
        )
    if len(repeated) > 1:
        raise ValueError(f"{name} broadcasts at most one dimension, but {len(repeated)} differ")
    return tensor_result(target.shape, result_dtype(source.dtype, target.dtype), broadcast_valid(target.shape, source))


def _clone_reference(ctx: Any, source: ArrayValue, target: ArrayValue) -> ArrayValue:
    shape, mask = target.shape, source.mask
    valid = [
        n if own == 1 and n != 1 and v == 1 else v for n, own, v in zip(shape, source.shape, source.valid, strict=True)
    ]
    data = np.broadcast_to(source.data, shape).astype(numpy_dtype(ctx.type.dtype))
    return fresh(data, None if mask is None else np.broadcast_to(mask, shape), valid)


define(
    "tensor.expand_clone",
    [Operand("input", "tensor"), Operand("target", "tensor", "shape")],
    _clone_infer,
    doc="input repeated along one axis to the shape of target",
    reference=_clone_reference,
    priority="full",
)


@surface("tensor", name="expand_clone")
def expand_clone(src: Arg, target: Arg) -> Expr:
    return call("tensor.expand_clone", src, target)


surface("pl", name="expand_clone")(expand_clone)
