"""Helpers of op wrappers and builders: Python values to expressions, and source positions."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from .dtype import DataType
from .expr import ConstBool, ConstFloat, ConstInt, Expr, MakeTuple
from .extents import extents_equal
from .location import caller_span, pinned_span, use_parser_span
from .span import UNKNOWN_SPAN, Span
from .type import ScalarType, ShapedType

_PACKAGE = __name__.partition(".")[0]

CAST_MODE_NAMES: dict[str, int] = {"none": 0, "rint": 1, "round": 2, "floor": 3, "ceil": 4, "trunc": 5, "odd": 6}


def resolve_cast_mode(mode: str | int) -> int:
    """The int of a rounding mode given by name or number; ``ValueError`` for anything else."""
    if isinstance(mode, str):
        if mode in CAST_MODE_NAMES:
            return CAST_MODE_NAMES[mode]
    elif isinstance(mode, int) and not isinstance(mode, bool) and 0 <= mode < len(CAST_MODE_NAMES):
        return int(mode)
    raise ValueError(
        f"Invalid rounding mode {mode!r}: expected one of {', '.join(CAST_MODE_NAMES)} or 0..{len(CAST_MODE_NAMES) - 1}"
    )


def has_partial_valid_region(expr: Expr) -> bool:
    """Whether the valid region of a tensor or tile expression differs from its shape."""
    kind = expr.type
    return isinstance(kind, ShapedType) and not extents_equal(kind.valid_extents, kind.shape)


# --- values to expressions --------------------------------------------------------------------------------------------


def _normalize_expr(
    value: Any,
    span: Span | None = None,
    int_dtype: DataType = DataType.INDEX,
    float_dtype: DataType = DataType.FP32,
) -> Expr:
    """A number as a constant; an expression as it is; ``TypeError`` for anything else."""
    if isinstance(value, Expr):
        return value
    where = UNKNOWN_SPAN if span is None else span
    if isinstance(value, bool):
        return ConstBool(value, where)
    if isinstance(value, float):
        return ConstFloat(value, float_dtype, where)
    if hasattr(value, "__index__"):
        return ConstInt(value, int_dtype, where)
    raise TypeError(f"Cannot convert {type(value).__name__} to an ir.Expr")


def _normalize_shape(shape: Iterable[Any], span: Span | None = None) -> list[Expr]:
    """A sequence of ints and expressions as expressions; ints become INDEX constants."""
    return [_normalize_expr(extent, span) for extent in shape]


def _to_make_tuple(value: Sequence[Any] | MakeTuple, span: Span | None = None) -> MakeTuple:
    """A sequence as one ``MakeTuple``; an existing one passes."""
    if isinstance(value, MakeTuple):
        return value
    return MakeTuple(_normalize_shape(value, span), UNKNOWN_SPAN if span is None else span)


def _element_dtype(operand: Any) -> DataType | None:
    kind = operand.type if isinstance(operand, Expr) else operand
    return kind.dtype if isinstance(kind, (ShapedType, ScalarType)) else None


def _normalize_scalar_operand(
    operand: Any,
    scalar: Any,
    span: Span | None,
    *,
    fallback_int_dtype: DataType = DataType.INT32,
    fallback_float_dtype: DataType = DataType.FP32,
    retype_constants: bool = False,
) -> Expr:
    """The scalar operand of an op whose other operand is the tensor or tile ``operand``.

    Literals take its element dtype; without one, the fall-backs. See :func:`_normalize_const_to_dtype`.
    """
    dtype = _element_dtype(operand)
    if dtype is None:
        if isinstance(scalar, ConstInt) and scalar.dtype is DataType.INDEX:
            return ConstInt(scalar.value, fallback_int_dtype, scalar.span)
        return _normalize_expr(scalar, span, fallback_int_dtype, fallback_float_dtype)
    if isinstance(scalar, (ConstInt, ConstFloat)) and scalar.dtype is not DataType.INDEX and not retype_constants:
        return scalar
    return _normalize_const_to_dtype(scalar, dtype, span, float_dtype=fallback_float_dtype)


def _normalize_const_to_dtype(
    scalar: Any, dtype: DataType, span: Span | None, *, float_dtype: DataType = DataType.FP32
) -> Expr:
    """A literal or constant in ``dtype``; the node kind follows the dtype.

    A float against an integer dtype keeps ``float_dtype``, so that promotion can widen the result. Other expressions
    stay as they are, but a run-time INDEX scalar is refused: which element type it should take is the user's choice.
    """
    if isinstance(scalar, Expr) and not isinstance(scalar, (ConstInt, ConstFloat)):
        kind = scalar.type
        if isinstance(kind, ScalarType) and kind.dtype is DataType.INDEX and dtype is not DataType.INDEX:
            raise ValueError(
                f"Scalar operand has dtype `index`, but the other operand has element type {dtype}: "
                f"convert it with pl.cast(value, pl.{dtype.name})"
            )
        return scalar
    constant = _normalize_expr(scalar, span)
    if isinstance(constant, ConstFloat):
        return ConstFloat(constant.value, dtype if dtype.is_float_ else float_dtype, constant.span)
    if isinstance(constant, ConstInt):
        if dtype.is_float_:
            return ConstFloat(float(constant.value), dtype, constant.span)
        return ConstInt(constant.value, dtype, constant.span)
    return constant


# --- source positions -------------------------------------------------------------------------------------------------


def _get_span_or_capture(span: Span | None = None, frame_offset: int = 1) -> Span:
    """``span``; else the span pinned by :func:`use_parser_span`; else the line of a calling frame.

    ``frame_offset`` counts from the caller of this function: 1 is the function that called it in turn. Frames of
    this package are passed over, for they mean nothing to a user.
    """
    if span is not None:
        return span
    pinned = pinned_span()
    return caller_span(frame_offset + 2) if pinned is None else pinned


def caller_warning_stacklevel() -> int:
    """The ``stacklevel`` with which ``warnings.warn`` names the nearest line outside this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        level, frame = level + 1, frame.f_back
    return level


__all__ = [
    "CAST_MODE_NAMES",
    "caller_warning_stacklevel",
    "has_partial_valid_region",
    "resolve_cast_mode",
    "use_parser_span",
]
