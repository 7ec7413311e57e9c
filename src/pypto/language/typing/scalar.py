"""``pl.Scalar``: a scalar value, with Python's operators; ``pl.RUNTIME``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

from pypto.ir import scalar as scalars
from pypto.ir.dtype import DataType
from pypto.ir.expr import ConstBool, ConstFloat, ConstInt, Expr
from pypto.ir.location import current_span
from pypto.ir.span import Span

from .value import DslValue


class ScalarMeta(type):
    """Makes ``Scalar[dtype]`` an annotation-only object, one for each dtype."""

    def __getitem__(cls, dtype: DataType) -> Scalar:
        if isinstance(dtype, tuple):
            raise TypeError(f"{cls.__name__} subscript requires [dtype], got {len(dtype)} elements")
        if cls is not Scalar or type(dtype) is not DataType:
            return cls(dtype, _annotation_only=True)  # type: ignore[no-any-return]
        found = _ANNOTATIONS.get(dtype)
        if found is None:
            found = _ANNOTATIONS[dtype] = cls(dtype, _annotation_only=True)
        return found


_ANNOTATIONS: dict[DataType, Scalar] = {}


def _operand(value: Any) -> Any:
    """A number or scalar as an expression: ints are INDEX, floats FP32; NotImplemented for anything else."""
    if isinstance(value, Scalar):
        return value.unwrap()
    if isinstance(value, Expr):
        return value
    if isinstance(value, bool):
        return NotImplemented
    if isinstance(value, float):
        return ConstFloat(value, DataType.FP32, current_span())
    if hasattr(value, "__index__"):  # also NumPy's integers
        return ConstInt(value.__index__(), DataType.INDEX, current_span())
    return NotImplemented


def _forward(helper: Callable[..., Expr]) -> Callable[[Any, Any], Any]:
    def method(self: Scalar, other: Any) -> Any:
        rhs = _operand(other)
        return rhs if rhs is NotImplemented else Scalar(expr=helper(self.unwrap(), rhs, current_span()))

    return method


def _reflected(helper: Callable[..., Expr]) -> Callable[[Any, Any], Any]:
    def method(self: Scalar, other: Any) -> Any:
        lhs = _operand(other)
        return lhs if lhs is NotImplemented else Scalar(expr=helper(lhs, self.unwrap(), current_span()))

    return method


def _unary(helper: Callable[..., Expr]) -> Callable[[Any], Any]:
    def method(self: Scalar) -> Any:
        return Scalar(expr=helper(self.unwrap(), current_span()))

    return method


class Scalar(DslValue, metaclass=ScalarMeta):
    """``Scalar[pl.INT32]`` annotates; ``Scalar(expr=e)`` wraps an expression, on which operators build expressions."""

    __slots__ = ("__weakref__", "dtype")
    _unwrap_error = RuntimeError
    dtype: DataType | None

    def __init__(self, dtype: DataType | None = None, expr: Expr | None = None, _annotation_only: bool = False) -> None:
        if dtype is None and expr is None:
            raise ValueError("Scalar requires a dtype or expr")
        if expr is not None and _annotation_only:
            raise ValueError("an annotation-only Scalar holds no expr")
        self._hold(expr)
        self.dtype = getattr(expr.type, "dtype", None) if dtype is None and expr is not None else dtype

    def _described(self) -> tuple[Any, ...]:
        return (self.dtype,)

    def _has_value(self) -> bool:
        return self._expr is not None

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a Scalar has no truth value outside @pl.function: its value is known at run time only "
            "(write `if` on it inside a kernel body)"
        )

    def __eq__(self, other: object) -> Any:
        # Annotations have no value to compare: they are equal when they are the same object.
        return _equal(self, other) if self._has_value() else NotImplemented

    def __ne__(self, other: object) -> Any:
        return _not_equal(self, other) if self._has_value() else NotImplemented

    def __hash__(self) -> int:
        return object.__hash__(self)

    __lt__ = _forward(scalars.lt)
    __le__ = _forward(scalars.le)
    __gt__ = _forward(scalars.gt)
    __ge__ = _forward(scalars.ge)
    __neg__ = _unary(scalars.neg)
    __abs__ = _unary(scalars.abs_)
    __invert__ = _unary(scalars.bit_not)


_equal = _forward(scalars.eq)
_not_equal = _forward(scalars.ne)

for _name, _helper in {
    "add": scalars.add,
    "sub": scalars.sub,
    "mul": scalars.mul,
    "truediv": scalars.truediv,
    "floordiv": scalars.floordiv,
    "mod": scalars.mod,
    "pow": scalars.pow,
    "and": scalars.bit_and,
    "or": scalars.bit_or,
    "xor": scalars.bit_xor,
    "lshift": scalars.bit_shift_left,
    "rshift": scalars.bit_shift_right,
}.items():
    setattr(Scalar, f"__{_name}__", _forward(_helper))
    setattr(Scalar, f"__r{_name}__", _reflected(_helper))


class RuntimeScalarMarker(Scalar):
    """Says to ``@pl.jit`` that a scalar parameter stays a run-time value. The one instance is ``pl.RUNTIME``."""

    __slots__ = ()

    def __new__(cls) -> RuntimeScalarMarker:
        found: RuntimeScalarMarker | None = globals().get("RUNTIME")
        return object.__new__(cls) if found is None else found

    def __init__(self) -> None:
        self._hold(None)
        self.dtype = None

    def unwrap(self) -> NoReturn:
        """A marker stands for no value."""
        raise RuntimeError(
            "pl.RUNTIME is a compile-time marker for @pl.jit rather than a value: use it as compile(name=pl.RUNTIME)"
        )

    def __repr__(self) -> str:
        return "pl.RUNTIME"

    def __reduce__(self) -> str:
        return "RUNTIME"


RUNTIME = RuntimeScalarMarker()

BoolLike: TypeAlias = bool | Scalar | Expr


def predicate_to_expr(value: BoolLike, span: Span | None = None) -> Expr:
    """A Python bool, scalar or expression as a BOOL expression."""
    if isinstance(value, bool):
        return ConstBool(value, current_span() if span is None else span)
    expr = value.unwrap() if isinstance(value, Scalar) else value
    if not isinstance(expr, Expr):
        raise TypeError(f"a predicate must be a bool, a Scalar or an ir.Expr, got {type(value).__name__}")
    if getattr(expr.type, "dtype", None) is not DataType.BOOL:
        raise TypeError(f"a predicate must be a BOOL scalar, got {expr.type}")
    return expr
