"""The base of expressions, and variables, constants, operators and tuples."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .dtype import DataType
from .node import FrozenList, IRNode, Kind, attribute, checked_list, ignored, use, wrong_kind
from .span import UNKNOWN_SPAN, Span
from .type import BOOL_TYPE, ScalarType, TupleType, Type


class Expr(IRNode, abstract=True):
    """Base of expressions. Every expression is truthy; ``==`` builds an ``Eq`` node (see :mod:`pypto.ir.scalar`)."""

    __slots__ = ()
    type: Type = attribute(Kind.TYPE)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        return True

    if TYPE_CHECKING:  # installed by pypto.ir.scalar

        def __eq__(self, other: object) -> Any: ...
        def __ne__(self, other: object) -> Any: ...
        def __lt__(self, other: Any) -> Expr: ...
        def __le__(self, other: Any) -> Expr: ...
        def __gt__(self, other: Any) -> Expr: ...
        def __ge__(self, other: Any) -> Expr: ...
        def __neg__(self) -> Expr: ...
        def __invert__(self) -> Expr: ...
        def __add__(self, other: Any) -> Expr: ...
        def __radd__(self, other: Any) -> Expr: ...
        def __sub__(self, other: Any) -> Expr: ...
        def __rsub__(self, other: Any) -> Expr: ...
        def __mul__(self, other: Any) -> Expr: ...
        def __rmul__(self, other: Any) -> Expr: ...
        def __truediv__(self, other: Any) -> Expr: ...
        def __rtruediv__(self, other: Any) -> Expr: ...
        def __floordiv__(self, other: Any) -> Expr: ...
        def __rfloordiv__(self, other: Any) -> Expr: ...
        def __mod__(self, other: Any) -> Expr: ...
        def __rmod__(self, other: Any) -> Expr: ...
        def __pow__(self, other: Any) -> Expr: ...
        def __rpow__(self, other: Any) -> Expr: ...
        def __and__(self, other: Any) -> Expr: ...
        def __rand__(self, other: Any) -> Expr: ...
        def __or__(self, other: Any) -> Expr: ...
        def __ror__(self, other: Any) -> Expr: ...
        def __xor__(self, other: Any) -> Expr: ...
        def __rxor__(self, other: Any) -> Expr: ...
        def __lshift__(self, other: Any) -> Expr: ...
        def __rlshift__(self, other: Any) -> Expr: ...
        def __rshift__(self, other: Any) -> Expr: ...
        def __rrshift__(self, other: Any) -> Expr: ...


# --- operators that are functions of the registry or of the program ---------------------------------------------------


class Op:
    """The callee of a call. Ops compare by name; registered ones are made by the op registry."""

    __slots__ = ("__weakref__", "name")
    name: str

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            wrong_kind(type(self).__name__, "name", str, name)
        object.__setattr__(self, "name", name)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot set {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name,)

    def has_attr(self, key: str) -> bool:
        """Whether the registered op has a keyword of this name."""
        return key in self.get_attr_keys()

    def get_attr_keys(self) -> list[str]:
        """The keyword schema of a registered op."""
        return list(_keyword_schema(self.name))

    def get_attr(self, key: str) -> Any:
        """The kind of a keyword of a registered op."""
        return _keyword_schema(self.name)[key]

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Op) and self.name == other.name)

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class GlobalVar(Op):
    """Names a function of the program."""

    __slots__ = ()


KeywordSchema = Callable[[str], dict[str, Any]]


def _no_schema(_name: str) -> dict[str, Any]:
    return {}


_keyword_schema: KeywordSchema = _no_schema


def set_keyword_schema_source(source: KeywordSchema) -> None:
    """Called once by the op registry, which lies above this package, to answer ``Op.get_attr_keys``."""
    global _keyword_schema
    _keyword_schema = source


# --- variables --------------------------------------------------------------------------------------------------------

_next_id = itertools.count(1).__next__


def _number_copy(_old: Any, new: Any) -> None:
    _set_unique_id(new, _next_id())


class Var(Expr):
    """A variable. Identity is the object; ``name_hint`` is only a hint, ``unique_id`` orders deterministically."""

    __slots__ = ("unique_id",)
    _finish_copy = staticmethod(_number_copy)
    name_hint: str = ignored()
    unique_id: int

    def __init__(self, name_hint: str, type: Type, span: Span = UNKNOWN_SPAN) -> None:
        if not isinstance(name_hint, str):
            wrong_kind("Var", "name_hint", str, name_hint)
        if not isinstance(type, Type):
            wrong_kind("Var", "type", Type, type)
        _set_name_hint(self, name_hint)
        _set_type(self, type)
        _set_span(self, span)
        _set_unique_id(self, _next_id())

    if TYPE_CHECKING:

        def replace(self, **changes: Any) -> Any: ...


class IterArg(Var):
    """A variable carried around a loop, with its value before the first iteration."""

    __slots__ = ()
    initValue: Expr = use()

    def __init__(self, name_hint: str, type: Type, initValue: Expr, span: Span = UNKNOWN_SPAN) -> None:
        Var.__init__(self, name_hint, type, span)
        if not isinstance(initValue, Expr):
            wrong_kind("IterArg", "initValue", Expr, initValue)
        _set_init_value(self, initValue)


_set_type = Expr.__dict__["type"].__set__
_set_span = IRNode.__dict__["span"].__set__
_set_name_hint = Var.__dict__["name_hint"].__set__
_set_unique_id = Var.__dict__["unique_id"].__set__
_set_init_value = IterArg.__dict__["initValue"].__set__


# --- constants --------------------------------------------------------------------------------------------------------


class ConstInt(Expr):
    """A signed 64-bit integer constant of an element type."""

    __slots__ = ()
    value: int = attribute()

    def __init__(self, value: int, dtype: DataType, span: Span = UNKNOWN_SPAN) -> None:
        if type(value) is not int:
            value = _as_int(value)
        if not -_INT64 <= value < _INT64:
            raise ValueError(f"ConstInt: {value} does not fit a signed 64-bit integer")
        _set_int(self, value)
        _set_type(self, ScalarType(dtype))
        _set_span(self, span)

    @property
    def dtype(self) -> DataType:
        """The element type of its scalar type."""
        return self.type.dtype  # type: ignore[attr-defined, no-any-return]


_INT64 = 2**63


def _as_int(value: Any) -> int:
    if hasattr(value, "__index__"):
        return int(value.__index__())
    wrong_kind("ConstInt", "value", int, value)


class ConstFloat(Expr):
    """A double-precision constant of an element type."""

    __slots__ = ()
    value: float = attribute()

    def __init__(self, value: float, dtype: DataType, span: Span = UNKNOWN_SPAN) -> None:
        if type(value) is not float:
            value = _as_float(value)
        _set_float(self, value)
        _set_type(self, ScalarType(dtype))
        _set_span(self, span)

    @property
    def dtype(self) -> DataType:
        """The element type of its scalar type."""
        return self.type.dtype  # type: ignore[attr-defined, no-any-return]


def _as_float(value: Any) -> float:
    if isinstance(value, Expr) or not hasattr(value, "__float__"):
        wrong_kind("ConstFloat", "value", float, value)
    return float(value)


class ConstBool(Expr):
    """A BOOL constant."""

    __slots__ = ()
    value: bool = attribute()

    def __init__(self, value: bool, span: Span = UNKNOWN_SPAN) -> None:
        if not isinstance(value, int):
            wrong_kind("ConstBool", "value", bool, value)
        _set_bool(self, bool(value))
        _set_type(self, BOOL_TYPE)
        _set_span(self, span)

    @property
    def dtype(self) -> DataType:
        """Always BOOL."""
        return DataType.BOOL


_set_int = ConstInt.__dict__["value"].__set__
_set_float = ConstFloat.__dict__["value"].__set__
_set_bool = ConstBool.__dict__["value"].__set__

_INDEX_CONSTANTS: dict[int, ConstInt] = {}


def index_const(value: int) -> ConstInt:
    """The INDEX constant ``value`` without a span; small ones are shared."""
    found = _INDEX_CONSTANTS.get(value)
    if found is None:
        found = ConstInt(int(value), DataType.INDEX)
        if -1 <= value <= 1 << 16:
            _INDEX_CONSTANTS[int(value)] = found
    return found


# --- operators --------------------------------------------------------------------------------------------------------


class BinaryExpr(Expr, abstract=True):
    """Base of two-operand scalar operators; the constructor validates nothing."""

    __slots__ = ()
    left: Expr = use()
    right: Expr = use()

    def __init__(self, left: Expr, right: Expr, dtype: DataType, span: Span = UNKNOWN_SPAN) -> None:
        _set_left(self, left)
        _set_right(self, right)
        _set_type(self, ScalarType(dtype))
        _set_span(self, span)

    @property
    def dtype(self) -> DataType:
        """The element type of its scalar type."""
        return self.type.dtype  # type: ignore[attr-defined, no-any-return]


class UnaryExpr(Expr, abstract=True):
    """Base of one-operand scalar operators; the constructor validates nothing."""

    __slots__ = ()
    operand: Expr = use()

    def __init__(self, operand: Expr, dtype: DataType, span: Span = UNKNOWN_SPAN) -> None:
        _set_operand(self, operand)
        _set_type(self, ScalarType(dtype))
        _set_span(self, span)

    @property
    def dtype(self) -> DataType:
        """The element type of its scalar type."""
        return self.type.dtype  # type: ignore[attr-defined, no-any-return]


_set_left = BinaryExpr.__dict__["left"].__set__
_set_right = BinaryExpr.__dict__["right"].__set__
_set_operand = UnaryExpr.__dict__["operand"].__set__


class Add(BinaryExpr):
    __slots__ = ()


class Sub(BinaryExpr):
    __slots__ = ()


class Mul(BinaryExpr):
    __slots__ = ()


class FloorDiv(BinaryExpr):
    __slots__ = ()


class FloorMod(BinaryExpr):
    __slots__ = ()


class FloatDiv(BinaryExpr):
    __slots__ = ()


class Min(BinaryExpr):
    __slots__ = ()


class Max(BinaryExpr):
    __slots__ = ()


class Pow(BinaryExpr):
    __slots__ = ()


class Eq(BinaryExpr):
    __slots__ = ()


class Ne(BinaryExpr):
    __slots__ = ()


class Lt(BinaryExpr):
    __slots__ = ()


class Le(BinaryExpr):
    __slots__ = ()


class Gt(BinaryExpr):
    __slots__ = ()


class Ge(BinaryExpr):
    __slots__ = ()


class And(BinaryExpr):
    __slots__ = ()


class Or(BinaryExpr):
    __slots__ = ()


class Xor(BinaryExpr):
    __slots__ = ()


class BitAnd(BinaryExpr):
    __slots__ = ()


class BitOr(BinaryExpr):
    __slots__ = ()


class BitXor(BinaryExpr):
    __slots__ = ()


class BitShiftLeft(BinaryExpr):
    __slots__ = ()


class BitShiftRight(BinaryExpr):
    __slots__ = ()


class Abs(UnaryExpr):
    __slots__ = ()


class Neg(UnaryExpr):
    __slots__ = ()


class Not(UnaryExpr):
    __slots__ = ()


class BitNot(UnaryExpr):
    __slots__ = ()


class Cast(UnaryExpr):
    __slots__ = ()


# --- tuples -----------------------------------------------------------------------------------------------------------


class MakeTuple(Expr):
    """A tuple of expressions."""

    __slots__ = ()
    elements: FrozenList[Expr] = use(Kind.LIST)

    def __init__(self, elements: Sequence[Expr], span: Span = UNKNOWN_SPAN) -> None:
        items = checked_list(elements, Expr, "MakeTuple", "elements")
        _set_elements(self, items)
        _set_type(self, TupleType([e.type for e in items]))
        _set_span(self, span)


class TupleGetItemExpr(Expr):
    """One element of a tuple-typed expression."""

    __slots__ = ()
    tuple: Expr = use()
    index: int = attribute()

    def __init__(self, tuple: Expr, index: int, span: Span = UNKNOWN_SPAN) -> None:
        if not isinstance(tuple, Expr):
            wrong_kind("TupleGetItemExpr", "tuple", Expr, tuple)
        kind = tuple.type
        if not isinstance(kind, TupleType):
            raise ValueError(f"TupleGetItemExpr requires tuple to have TupleType, got {type(kind).__name__}")
        if not 0 <= index < len(kind.types):
            raise ValueError(f"TupleGetItemExpr index {index} out of bounds for a tuple of {len(kind.types)}")
        _set_tuple(self, tuple)
        _set_tuple_index(self, index)
        _set_type(self, kind.types[index])
        _set_span(self, span)


_set_elements = MakeTuple.__dict__["elements"].__set__
_set_tuple = TupleGetItemExpr.__dict__["tuple"].__set__
_set_tuple_index = TupleGetItemExpr.__dict__["index"].__set__

BINARY_CLASSES: tuple[type[BinaryExpr], ...] = tuple(BinaryExpr.__subclasses__())
UNARY_CLASSES: tuple[type[UnaryExpr], ...] = tuple(UnaryExpr.__subclasses__())
COMPARISONS = (Eq, Ne, Lt, Le, Gt, Ge)

__all__ = [
    "BINARY_CLASSES",
    "COMPARISONS",
    "UNARY_CLASSES",
    "Abs",
    "Add",
    "And",
    "BinaryExpr",
    "BitAnd",
    "BitNot",
    "BitOr",
    "BitShiftLeft",
    "BitShiftRight",
    "BitXor",
    "Cast",
    "ConstBool",
    "ConstFloat",
    "ConstInt",
    "Eq",
    "Expr",
    "FloatDiv",
    "FloorDiv",
    "FloorMod",
    "Ge",
    "GlobalVar",
    "Gt",
    "IterArg",
    "Le",
    "Lt",
    "MakeTuple",
    "Max",
    "Min",
    "Mul",
    "Ne",
    "Neg",
    "Not",
    "Op",
    "Or",
    "Pow",
    "Sub",
    "TupleGetItemExpr",
    "UnaryExpr",
    "Var",
    "Xor",
    "index_const",
]
