"""Element-wise arithmetic: binary ops on two arrays or an array and a scalar, and unary functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from .._lazy import np
from ..ir import scalar as scalars
from ..ir.dtype import DataType
from ..ir.enums import CoreType, MemorySpace
from ..ir.expr import Expr
from ..ir.location import current_span
from ..ir.type import TensorType, TileType, Type
from .definition import REQUIRED, InferRule, Operand
from .normalize import extent, scalar_operand
from .numpy_types import numpy_dtype
from .registry import call, define
from .rules import (
    broadcast_shapes,
    broadcast_valid,
    promote_dtypes,
    require_args,
    require_dtype,
    result_dtype,
    result_like,
    same_extent,
    scalar_dtype,
    tensor_type,
    tile_type,
)
from .surface import Attr, level_of, level_with_scalar, mixed_error, surface
from .surface import Operand as Arg
from .values import ArrayValue, combine_masks, fresh

VEC = (MemorySpace.Vec,)
TILE_SPEC: dict[str, Any] = {"output_memory": MemorySpace.Vec, "core": CoreType.VECTOR, "effects_declared": False}

D = DataType
SUB_DTYPES = (D.INT8, D.INT16, D.INT32, D.FP16, D.FP32, D.BF16)
DIV_DTYPES = (D.INT16, D.INT32, D.FP16, D.FP32)
HALF_OR_SINGLE = (D.FP16, D.FP32)


# --- reference semantics ----------------------------------------------------------------------------------------------


@cache  # the name of a NumPy dtype is made anew each time that it is asked for
def compute_in(dtype: Any) -> Any:
    """The dtype in which arithmetic for results of ``dtype`` runs: bf16, fp8 and friends compute in float32."""
    return np.dtype(np.float32) if dtype.kind == "V" or dtype.name.startswith(("bfloat", "float8", "float4")) else dtype


def as_number(dtype: Any, value: Any) -> Any:
    """A Python number as a NumPy scalar of ``dtype``; integers wrap."""
    if dtype.kind in "iu" and isinstance(value, int):
        bits = 8 * dtype.itemsize
        value &= (1 << bits) - 1
        if dtype.kind == "i" and value >> bits - 1:
            value -= 1 << bits
    return dtype.type(value)


def broadcast_result_valid(shape: Sequence[int], *operands: ArrayValue) -> tuple[int, ...]:
    """The run-time twin of :func:`~pypto.ops.rules.broadcast_valid`."""
    result = list(shape)
    for operand in operands:
        if operand.fully_valid:
            continue
        for i in range(1, len(operand.shape) + 1):
            if operand.shape[-i] == 1 and shape[-i] != 1 and operand.valid[-i] == 1:
                continue
            result[-i] = min(result[-i], operand.valid[-i])
    return tuple(result)


def elementwise(ctx: Any, function: Callable[..., Any], *operands: Any) -> ArrayValue:
    """Apply ``function`` to arrays and numbers in the call's result dtype; masks and valid regions combine."""
    dtype = numpy_dtype(ctx.type.dtype)
    working = compute_in(dtype)
    arrays = [o for o in operands if isinstance(o, ArrayValue)]
    with np.errstate(all="ignore"):
        inputs = [
            o.data.astype(working, copy=False) if isinstance(o, ArrayValue) else as_number(working, o) for o in operands
        ]
        data = np.asarray(function(*inputs)).astype(dtype, copy=False)
    mask = combine_masks(*[a.mask for a in arrays])
    if mask is not None and mask.shape != data.shape:
        mask = np.broadcast_to(mask, data.shape)
    return fresh(data, mask, broadcast_result_valid(data.shape, *arrays))


def divide(a: Any, b: Any) -> Any:
    if a.dtype.kind in "iu":
        quotient = np.floor_divide(a, b)
        inexact = (np.remainder(a, b) != 0) & ((a < 0) != (b < 0))
        return quotient + inexact.astype(a.dtype)  # integers round toward zero
    return np.divide(a, b)


# --- type rules -------------------------------------------------------------------------------------------------------


def _binary_infer(name: str, level: str, check: Callable[..., None] | None) -> InferRule:
    operand_type = tensor_type if level == "tensor" else tile_type

    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(name, args, 2)
        a, b = operand_type(name, args, 0), operand_type(name, args, 1)
        if check is not None:
            check(name, a, b, kwargs)
        shape = broadcast_shapes(name, a.shape, b.shape)
        return result_like(a, shape, result_dtype(a.dtype, b.dtype), broadcast_valid(shape, a, b))

    return infer


def _scalar_infer(name: str, level: str, keep_dtype: bool, allowed: Sequence[DataType]) -> InferRule:
    operand_type = tensor_type if level == "tensor" else tile_type

    def infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
        require_args(name, args, 2)
        a, b = operand_type(name, args, 0), scalar_dtype(name, args, 1)
        if allowed:
            require_dtype(name, level, a.dtype, allowed)
            require_dtype(name, "scalar", b, allowed)
        if level == "tile" and b.is_float_ and a.dtype.is_int_:
            raise ValueError(
                f"{name}: a float scalar on an integer tile ({a.dtype}) would be truncated; cast the tile first"
            )
        dtype = a.dtype if keep_dtype else result_dtype(a.dtype, b)
        return result_like(a, a.shape, dtype, a.valid_extents)

    return infer


def _unary_infer(
    name: str, level: str, dtype_rule: Callable[[str, DataType, Mapping[str, Any]], DataType]
) -> InferRule:
    operand_type = tensor_type if level == "tensor" else tile_type

    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(name, args, 1)
        a = operand_type(name, args, 0)
        return result_like(a, a.shape, dtype_rule(name, a.dtype, kwargs), a.valid_extents)

    return infer


# --- binary ops -------------------------------------------------------------------------------------------------------


def _check_div(name: str, a: Any, b: Any, kwargs: Mapping[str, Any]) -> None:
    for kind in (a, b):
        require_dtype(name, "operand", kind.dtype, DIV_DTYPES)
    if kwargs.get("high_precision") and not promote_dtypes(a.dtype, b.dtype).is_float_:
        raise ValueError(f"{name} supports high_precision only for FP16 or FP32")
    if isinstance(a, TileType):
        if a.dtype is not b.dtype:
            raise ValueError(f"{name} requires both tiles to have the same dtype, got {a.dtype} and {b.dtype}")
        if len(a.shape) != len(b.shape) or not all(map(same_extent, a.shape, b.shape)):
            raise ValueError(f"{name} requires both tiles to have the same physical shape")
        if not all(map(same_extent, a.valid_extents, b.valid_extents)):
            raise ValueError(f"{name} requires both tiles to have the same valid_shape")


def binary(
    name: str,
    function: Callable[[Any, Any], Any],
    doc: str,
    *,
    scalar_suffix: str | None = "s",
    scalar_keeps: bool = False,
    scalar_dtypes: Sequence[DataType] = (),
    check: Callable[..., None] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    not_in_place: bool = False,
    priority: str = "core",
    element: str = "",
) -> None:
    """Define ``tensor.<name>`` and ``tile.<name>`` with their scalar forms.

    ``scalar_suffix`` None: the tensor op takes a scalar under the same name, the tile op has an ``s`` form.
    """

    def reference(ctx: Any, a: Any, b: Any, **_: Any) -> ArrayValue:
        return elementwise(ctx, function, a, b)

    for level in ("tensor", "tile"):
        spec: dict[str, Any] = dict(TILE_SPEC, input_memory=(VEC, VEC)) if level == "tile" else {}
        full = f"{level}.{name}"
        infer = _binary_infer(full, level, check)
        if level == "tensor" and scalar_suffix is None:
            with_scalar = _scalar_infer(full, level, scalar_keeps, scalar_dtypes)
            infer = _either(infer, with_scalar)
        kind = "window" if level == "tensor" else "tile"
        define(
            full,
            [Operand("lhs", kind), Operand("rhs", kind)],
            infer,
            doc=doc,
            kwargs=kwargs,
            reference=reference,
            not_in_place=not_in_place and level == "tile",
            priority=priority,
            element=element,
            **spec,
        )
        if level == "tensor" and scalar_suffix is None:
            continue
        scalar_spec: dict[str, Any] = dict(TILE_SPEC, input_memory=(VEC,)) if level == "tile" else {}
        define(
            f"{full}s",
            [Operand("lhs", kind), Operand("rhs", "scalar")],
            _scalar_infer(f"{full}s", level, scalar_keeps or level == "tile", scalar_dtypes),
            doc=doc,
            reference=reference,
            not_in_place=not_in_place and level == "tile",
            priority=priority,
            element=element,
            **scalar_spec,
        )


def _either(pair: InferRule, with_scalar: InferRule) -> InferRule:
    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        if len(args) == 2 and level_of(args[1]) == "scalar":
            return with_scalar(args, kwargs)
        return pair(args, kwargs)

    return infer


HIGH_PRECISION = {"high_precision": (bool, False)}

binary("add", lambda a, b: a + b, "lhs + rhs", element="({0} + {1})")
binary("sub", lambda a, b: a - b, "lhs - rhs", scalar_keeps=True, scalar_dtypes=SUB_DTYPES, element="({0} - {1})")
binary("mul", lambda a, b: a * b, "lhs * rhs", element="({0} * {1})")
binary(
    "div",
    divide,
    "lhs / rhs; integers round toward zero",
    check=_check_div,
    kwargs=HIGH_PRECISION,
    element="pto::quotient({0}, {1})",
)
binary(
    "maximum",
    lambda a, b: np.maximum(a, b),
    "element-wise maximum; NaN propagates",
    scalar_suffix=None,
    element="pto::math::maximum({0}, {1})",
)
binary(
    "minimum",
    lambda a, b: np.minimum(a, b),
    "element-wise minimum; NaN propagates",
    scalar_suffix=None,
    element="pto::math::minimum({0}, {1})",
)
binary(
    "fmod",
    lambda a, b: np.fmod(a, b),
    "remainder with the sign of lhs",
    not_in_place=True,
    priority="full",
    element="pto::math::fmod({0}, {1})",
)


def _element_dtype(operand: Expr) -> DataType:
    return operand.type.dtype  # type: ignore[attr-defined, no-any-return]


def array_pair(op: str, lhs: Arg, rhs: Arg, scalar_op: str | None = None, **kwargs: Any) -> Expr:
    """A call of ``op``, or of its scalar form when ``rhs`` is a scalar."""
    if level_of(rhs) == "scalar":
        return call(scalar_op or op, lhs, scalar_operand(rhs, _element_dtype(lhs)), **kwargs)
    return call(op, lhs, rhs, **kwargs)


def _tensor_binary(name: str) -> Callable[..., Expr]:
    op, scalar_op = f"tensor.{name}", f"tensor.{name}s" if name not in ("maximum", "minimum") else None

    def function(lhs: Arg, rhs: Arg) -> Expr:
        return array_pair(op, lhs, rhs, scalar_op)

    return function


def _tile_binary(name: str) -> Callable[..., Expr]:
    op, scalar_op = f"tile.{name}", f"tile.{name}s"

    def function(lhs: Arg, rhs: Arg) -> Expr:
        return array_pair(op, lhs, rhs, scalar_op)

    return function


def scalar_form(op: str) -> Callable[..., Expr]:
    """The surface function of a scalar form ``(lhs, rhs)``."""

    def function(lhs: Arg, rhs: Arg) -> Expr:
        return call(op, lhs, scalar_operand(rhs, _element_dtype(lhs)))

    return function


_SCALAR_HELPERS = {"add": scalars.add, "sub": scalars.sub, "mul": scalars.mul, "div": scalars.truediv}


def as_scalar(value: Arg) -> Expr:
    """A number or scalar expression as an expression: ints are INDEX, floats FP32."""
    if isinstance(value, float):
        from ..ir.expr import ConstFloat

        return ConstFloat(value, DataType.FP32, current_span())
    return extent(value)


def unified_binary(name: str, tensor: Callable[..., Expr], tile: Callable[..., Expr]) -> Callable[..., Expr]:
    """``pl.<name>(lhs, rhs)``: tensor, tile or scalar by operand class."""
    scalar_helper = _SCALAR_HELPERS.get(name)

    def function(lhs: Arg, rhs: Arg) -> Expr:
        a, b = level_of(lhs), level_of(rhs)
        if a == "tensor" and b in ("tensor", "scalar"):
            return tensor(lhs, rhs)
        if a == "tile" and b in ("tile", "scalar"):
            return tile(lhs, rhs)
        if a == b == "scalar" and scalar_helper is not None:
            return scalar_helper(as_scalar(lhs), as_scalar(rhs), current_span())
        raise mixed_error(name, lhs, rhs)

    return function


for _name in ("add", "sub", "mul", "maximum", "minimum", "fmod"):
    _tensor, _tile = _tensor_binary(_name), _tile_binary(_name)
    surface("tensor", name=_name)(_tensor)
    surface("tile", name=_name)(_tile)
    surface("pl", name=_name)(unified_binary(_name, _tensor, _tile))
    surface("tile", name=f"{_name}s")(scalar_form(f"tile.{_name}s"))
    if _name not in ("maximum", "minimum"):
        surface("tensor", name=f"{_name}s")(scalar_form(f"tensor.{_name}s"))
surface("tensor", name="divs")(scalar_form("tensor.divs"))
surface("tile", name="divs")(scalar_form("tile.divs"))
surface("pl", name="maximums")(scalar_form("tile.maximums"))
surface("pl", name="minimums")(scalar_form("tile.minimums"))


@surface("pl", name="fmods")
def _fmods(lhs: Arg, rhs: Arg) -> Expr:
    level = level_with_scalar("fmods", lhs, rhs)
    return call(f"{level}.fmods", lhs, scalar_operand(rhs, _element_dtype(lhs)))


@surface("tensor", name="div")
def _tensor_div(lhs: Arg, rhs: Arg, high_precision: Attr = False) -> Expr:
    if high_precision and level_of(rhs) == "scalar":
        raise TypeError("pl.div: high_precision requires a Tensor rhs")
    return array_pair("tensor.div", lhs, rhs, "tensor.divs", high_precision=True if high_precision else None)


@surface("tile", name="div")
def _tile_div(lhs: Arg, rhs: Arg, high_precision: Attr = False) -> Expr:
    if high_precision and level_of(rhs) == "scalar":
        raise TypeError("pl.div: high_precision requires a Tile rhs")
    return array_pair("tile.div", lhs, rhs, "tile.divs", high_precision=True if high_precision else None)


@surface("ir.tensor", name="div")
def _ir_tensor_div(lhs: Arg, rhs: Arg, *, high_precision: Attr = False) -> Expr:
    return _tensor_div(lhs, rhs, high_precision)


@surface("ir.tile", name="div")
def _ir_tile_div(lhs: Arg, rhs: Arg, *, high_precision: Attr = False) -> Expr:
    return _tile_div(lhs, rhs, high_precision)


@surface("pl", name="div")
def _div(lhs: Arg, rhs: Arg, high_precision: Attr = False) -> Expr:
    a, b = level_of(lhs), level_of(rhs)
    if a == "tensor" and b in ("tensor", "scalar"):
        return _tensor_div(lhs, rhs, high_precision)
    if a == "tile" and b in ("tile", "scalar"):
        return _tile_div(lhs, rhs, high_precision)
    if a == b == "scalar":
        if high_precision:
            raise TypeError("pl.div: high_precision is not supported for scalars")
        return scalars.truediv(as_scalar(lhs), as_scalar(rhs), current_span())
    raise mixed_error("div", lhs, rhs)


def _scalar_pair(name: str, helper: Callable[..., Expr]) -> None:
    def function(lhs: Arg, rhs: Arg) -> Expr:
        if level_of(lhs) != "scalar" or level_of(rhs) != "scalar":
            raise TypeError(f"pl.{name}: expected two scalars; use pl.{name}imum for tensors and tiles")
        return helper(as_scalar(lhs), as_scalar(rhs), current_span())

    surface("tile", "pl", name=name, ir=False)(function)


_scalar_pair("max", scalars.max_)
_scalar_pair("min", scalars.min_)


# --- unary ops --------------------------------------------------------------------------------------------------------


def _keep(_name: str, dtype: DataType, _kwargs: Mapping[str, Any]) -> DataType:
    return dtype


def _to_float(name: str, dtype: DataType, kwargs: Mapping[str, Any]) -> DataType:
    if kwargs.get("high_precision") and dtype not in HALF_OR_SINGLE:
        raise ValueError(f"{name} supports high_precision only for FP16 or FP32")
    return dtype if dtype.is_float_ else DataType.FP32


def _float_only(name: str, dtype: DataType, kwargs: Mapping[str, Any]) -> DataType:
    # Public behaviour keeps an integer dtype here; exp of an INT32 tile as INT32 is never what a user means.
    if not dtype.is_float_:
        raise ValueError(f"{name} requires a float tile, got {dtype}: cast it first with pl.cast")
    return _to_float(name, dtype, kwargs)


def _one_of(*allowed: DataType, phrase: str = "") -> Callable[[str, DataType, Mapping[str, Any]], DataType]:
    def rule(name: str, dtype: DataType, _kwargs: Mapping[str, Any]) -> DataType:
        if dtype not in allowed:
            names = ", ".join(d.name for d in allowed)
            text = f"{name} {phrase}" if phrase else f"{name} requires dtype in {{{names}}}"
            raise ValueError(f"{text}, but got {dtype}: convert with pl.cast")
        return dtype

    return rule


def unary(
    name: str,
    function: Callable[[Any], Any],
    doc: str,
    tensor_dtype: Callable[..., DataType] = _keep,
    tile_dtype: Callable[..., DataType] | None = None,
    *,
    levels: Sequence[str] = ("tensor", "tile"),
    kwargs: Mapping[str, Any] | None = None,
    not_in_place: bool = False,
    priority: str = "core",
    element: str = "",
) -> None:
    """Define ``tensor.<name>`` and ``tile.<name>`` of one operand."""

    def reference(ctx: Any, a: ArrayValue, **_: Any) -> ArrayValue:
        return elementwise(ctx, function, a)

    for level in levels:
        full = f"{level}.{name}"
        spec: dict[str, Any] = dict(TILE_SPEC, input_memory=(VEC,)) if level == "tile" else {}
        define(
            full,
            [Operand("input" if level == "tensor" else "tile", "window" if level == "tensor" else "tile")],
            _unary_infer(full, level, tensor_dtype if level == "tensor" else tile_dtype or tensor_dtype),
            doc=doc,
            kwargs=kwargs,
            reference=reference,
            not_in_place=not_in_place and level == "tile",
            priority=priority,
            element=element,
            **spec,
        )


unary("neg", lambda a: -a, "-x", element="(-{0})")
unary("abs", lambda a: np.abs(a), "absolute value", element="pto::magnitude({0})")
unary("exp", lambda a: np.exp(a), "e ** x", _to_float, _float_only, element="pto::math::exp({0})")
unary("sqrt", lambda a: np.sqrt(a), "square root", _to_float, _float_only, element="pto::math::sqrt({0})")
unary(
    "recip",
    lambda a: 1 / a,
    "1 / x",
    _to_float,
    _float_only,
    kwargs=HIGH_PRECISION,
    not_in_place=True,
    element="pto::math::recip({0})",
)
unary(
    "log",
    lambda a: np.log(a),
    "natural logarithm",
    _one_of(*HALF_OR_SINGLE),
    kwargs=HIGH_PRECISION,
    element="pto::math::log({0})",
)
unary(
    "sin",
    lambda a: np.sin(a),
    "sine",
    _one_of(D.FP32, phrase="is FP32-only"),
    priority="full",
    element="pto::math::sin({0})",
)
unary(
    "cos",
    lambda a: np.cos(a),
    "cosine",
    _one_of(D.FP32, phrase="is FP32-only"),
    priority="full",
    element="pto::math::cos({0})",
)
unary("not", lambda a: ~a, "bitwise complement", _one_of(D.INT16, D.UINT16), priority="full", element="(~{0})")
unary("relu", lambda a: np.maximum(a, 0), "max(x, 0)", levels=("tile",), element="pto::positive({0})")


def _register_unary(name: str, high_precision: bool, levels: Sequence[str] = ("tensor", "tile")) -> None:
    op = name.rstrip("_")

    def tensor(input: Arg) -> Expr:
        return call(f"tensor.{op}", input)

    def tile(tile: Arg) -> Expr:
        return call(f"tile.{op}", tile)

    def unified(input: Arg) -> Expr:
        level = level_of(input)
        if level not in levels:
            raise mixed_error(name, input)
        return call(f"{level}.{op}", input)

    def tensor_hp(input: Arg, high_precision: Attr = False) -> Expr:
        return call(f"tensor.{op}", input, high_precision=True if high_precision else None)

    def tile_hp(tile: Arg, high_precision: Attr = False) -> Expr:
        return call(f"tile.{op}", tile, high_precision=True if high_precision else None)

    def unified_hp(input: Arg, high_precision: Attr = False) -> Expr:
        level = level_of(input)
        if level not in levels:
            raise mixed_error(name, input)
        return call(f"{level}.{op}", input, high_precision=True if high_precision else None)

    if high_precision:  # at IR level the flag is a keyword, since span= comes before it

        def ir_tensor(input: Arg, *, high_precision: Attr = False) -> Expr:
            return tensor_hp(input, high_precision)

        def ir_tile(tile: Arg, *, high_precision: Attr = False) -> Expr:
            return tile_hp(tile, high_precision)

        surface("ir.tensor", name=name)(ir_tensor)
        surface("ir.tile", name=name)(ir_tile)
    if "tensor" in levels:
        surface("tensor", name=name)(tensor_hp if high_precision else tensor)
    surface("tile", name=name)(tile_hp if high_precision else tile)
    if levels == ("tile",):
        surface("pl", name=name)(tile)
    else:
        surface("pl", name=name)(unified_hp if high_precision else unified)


for _name in ("neg", "abs", "exp", "sqrt", "sin", "cos", "not_"):
    _register_unary(_name, False)
for _name in ("recip", "log"):
    _register_unary(_name, True)
_register_unary("relu", False, ("tile",))

__all__ = ["REQUIRED", "TensorType", "array_pair", "binary", "elementwise", "scalar_form", "unary", "unified_binary"]
