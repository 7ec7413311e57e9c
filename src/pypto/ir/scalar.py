"""Scalar arithmetic: promotion, the helper functions ``ir.add`` ..., and Python's operators on expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import expr as x
from .dtype import DataType
from .expr import ConstFloat, ConstInt, Expr
from .location import current_span
from .span import UNKNOWN_SPAN, Span
from .type import ScalarType


def scalar_dtype(operand: Any, what: str) -> DataType:
    """The dtype of a scalar expression; ``TypeError`` for anything else."""
    if isinstance(operand, Expr):
        kind = operand.type
        if isinstance(kind, ScalarType):
            return kind.dtype
        raise TypeError(
            f"operator '{what}' needs scalars, got {kind}: "
            f"Expression must be ScalarExpr or Var with ScalarType, got {type(kind).__name__}"
        )
    raise TypeError(
        f"operator '{what}' needs scalars: Expression must be ScalarExpr or Var with ScalarType, "
        f"got {type(operand).__name__}"
    )


def promote(lhs: Expr, rhs: Expr, what: str, integers: bool = False) -> tuple[Expr, Expr, DataType]:
    """Both operands brought to one dtype: the wider one, the left one on equal width.

    INDEX and INT64 mix without a cast. ``TypeError`` for BOOL, non-numeric or mixed integer/float operands.
    """
    a, b = scalar_dtype(lhs, what), scalar_dtype(rhs, what)
    if a is b and a.is_int_:
        return lhs, rhs, a
    for dtype in (a, b):
        if dtype is DataType.BOOL:
            raise TypeError(f"operator '{what}' does not accept bool dtype")
        if not (dtype.is_int_ or dtype.is_float_):
            raise TypeError(f"operator '{what}' requires numeric scalar dtype, got {dtype}")
        if integers and not dtype.is_int_:
            raise TypeError(f"operator '{what}' requires integer dtype, got {dtype}")
    if a.is_int_ != b.is_int_:
        literal = next((e for e in (lhs, rhs) if type(e) is x.ConstInt), None)
        remedy = "convert one with pl.cast" if literal is None else f"write {literal.value}.0 for the constant"
        raise TypeError(f"operator '{what}' requires same numeric dtype category, got {a} and {b}: {remedy}")
    result = b if b.get_bit() > a.get_bit() else a
    return _to(lhs, a, result), _to(rhs, b, result), result


_WIDE = (DataType.INDEX, DataType.INT64)


def _to(operand: Expr, have: DataType, want: DataType) -> Expr:
    if have is want or (have in _WIDE and want in _WIDE):
        return operand
    return x.Cast(operand, want, operand.span)


Helper = Callable[..., Expr]


def _arithmetic(node: type[x.BinaryExpr], name: str, integers: bool = False) -> Helper:
    def helper(lhs: Expr, rhs: Expr, span: Span = UNKNOWN_SPAN) -> Expr:
        a, b, dtype = promote(lhs, rhs, name, integers)
        return node(a, b, dtype, span)

    helper.__doc__ = f"``{node.__name__}`` of two promoted scalars."
    return helper


def _comparison(node: type[x.BinaryExpr], name: str) -> Helper:
    def helper(lhs: Expr, rhs: Expr, span: Span = UNKNOWN_SPAN) -> Expr:
        a, b, _ = promote(lhs, rhs, name)
        return node(a, b, DataType.BOOL, span)

    helper.__doc__ = f"``{node.__name__}`` of two promoted scalars, of dtype BOOL."
    return helper


def _logical(node: type[x.BinaryExpr]) -> Helper:
    def helper(lhs: Expr, rhs: Expr, span: Span = UNKNOWN_SPAN) -> Expr:
        return node(lhs, rhs, DataType.BOOL, span)

    helper.__doc__ = f"``{node.__name__}`` of two operands, unchecked, of dtype BOOL."
    return helper


add = _arithmetic(x.Add, "+")
sub = _arithmetic(x.Sub, "-")
mul = _arithmetic(x.Mul, "*")
truediv = _arithmetic(x.FloatDiv, "/")
floordiv = _arithmetic(x.FloorDiv, "//")
mod = _arithmetic(x.FloorMod, "%")
pow = _arithmetic(x.Pow, "**")
min_ = _arithmetic(x.Min, "min")
max_ = _arithmetic(x.Max, "max")
bit_and = _arithmetic(x.BitAnd, "&", integers=True)
bit_or = _arithmetic(x.BitOr, "|", integers=True)
bit_xor = _arithmetic(x.BitXor, "^", integers=True)
bit_shift_left = _arithmetic(x.BitShiftLeft, "<<", integers=True)
bit_shift_right = _arithmetic(x.BitShiftRight, ">>", integers=True)
eq = _comparison(x.Eq, "==")
ne = _comparison(x.Ne, "!=")
lt = _comparison(x.Lt, "<")
le = _comparison(x.Le, "<=")
gt = _comparison(x.Gt, ">")
ge = _comparison(x.Ge, ">=")
and_ = _logical(x.And)
or_ = _logical(x.Or)


def neg(operand: Expr, span: Span = UNKNOWN_SPAN) -> Expr:
    """``Neg``; keeps the dtype."""
    return x.Neg(operand, scalar_dtype(operand, "-"), span)


def abs_(operand: Expr, span: Span = UNKNOWN_SPAN) -> Expr:
    """``Abs``; keeps the dtype."""
    return x.Abs(operand, scalar_dtype(operand, "abs"), span)


def bit_not(operand: Expr, span: Span = UNKNOWN_SPAN) -> Expr:
    """``BitNot`` of an integer; keeps the dtype."""
    dtype = scalar_dtype(operand, "~")
    if not dtype.is_int_:
        raise TypeError(f"operator '~' requires integer dtype, got {dtype}")
    return x.BitNot(operand, dtype, span)


def not_(operand: Expr, span: Span = UNKNOWN_SPAN) -> Expr:
    """``Not``, unchecked, of dtype BOOL."""
    return x.Not(operand, DataType.BOOL, span)


def cast(operand: Expr, dtype: DataType, span: Span = UNKNOWN_SPAN) -> Expr:
    """``Cast`` of a scalar to ``dtype``."""
    scalar_dtype(operand, "cast")
    return x.Cast(operand, dtype, span)


# --- Python's operators -----------------------------------------------------------------------------------------------


def _operand(value: Any) -> Any:
    if isinstance(value, Expr):
        return value
    if isinstance(value, bool):
        return NotImplemented
    if isinstance(value, int):
        return ConstInt(value, DataType.INDEX)
    if isinstance(value, float):
        return ConstFloat(value, DataType.FP32)
    if hasattr(value, "__index__"):  # NumPy's integers
        return ConstInt(value.__index__(), DataType.INDEX)
    return NotImplemented


def _forward(helper: Helper) -> Callable[[Expr, Any], Any]:
    def method(self: Expr, other: Any) -> Any:
        value = _operand(other)
        return value if value is NotImplemented else helper(self, value, current_span())

    return method


def _reflected(helper: Helper) -> Callable[[Expr, Any], Any]:
    def method(self: Expr, other: Any) -> Any:
        value = _operand(other)
        return value if value is NotImplemented else helper(value, self, current_span())

    return method


def _install() -> None:
    both = {
        "add": add,
        "sub": sub,
        "mul": mul,
        "truediv": truediv,
        "floordiv": floordiv,
        "mod": mod,
        "pow": pow,
        "and": bit_and,
        "or": bit_or,
        "xor": bit_xor,
        "lshift": bit_shift_left,
        "rshift": bit_shift_right,
    }
    for name, helper in both.items():
        setattr(Expr, f"__{name}__", _forward(helper))
        setattr(Expr, f"__r{name}__", _reflected(helper))
    for name, helper in {"eq": eq, "ne": ne, "lt": lt, "le": le, "gt": gt, "ge": ge}.items():
        setattr(Expr, f"__{name}__", _forward(helper))
    Expr.__array_ufunc__ = None  # type: ignore[attr-defined]  # NumPy scalars on the left defer to the reflected form
    Expr.__hash__ = object.__hash__  # type: ignore[method-assign, assignment]
    Expr.__neg__ = lambda self: neg(self, current_span())  # type: ignore[method-assign]
    Expr.__invert__ = lambda self: bit_not(self, current_span())  # type: ignore[method-assign]


_install()

__all__ = [
    "abs_",
    "add",
    "and_",
    "bit_and",
    "bit_not",
    "bit_or",
    "bit_shift_left",
    "bit_shift_right",
    "bit_xor",
    "cast",
    "eq",
    "floordiv",
    "ge",
    "gt",
    "le",
    "lt",
    "max_",
    "min_",
    "mod",
    "mul",
    "ne",
    "neg",
    "not_",
    "or_",
    "pow",
    "promote",
    "scalar_dtype",
    "sub",
    "truediv",
]
