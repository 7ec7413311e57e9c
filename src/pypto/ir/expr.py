"""Expressions: variables, constants, operators, tuples, calls and submits."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, ClassVar

from .attrs import normalize_attrs
from .dtype import DataType
from .enums import ArgDirection, MemorySpace
from .node import EMPTY_DICT, EMPTY_LIST, FrozenDict, FrozenList, IRNode, Kind, attribute, frozen_list, ignored, use
from .span import UNKNOWN_SPAN, Span
from .type import (
    BOOL_TYPE,
    INDEX_TYPE,
    UNKNOWN,
    MemRefType,
    PtrType,
    ScalarType,
    TupleType,
    Type,
    WindowBufferType,
)


class Expr(IRNode):
    """Base of expressions. Every expression is truthy; ``==`` builds an ``Eq`` node (see :mod:`pypto.ir.scalar`)."""

    __slots__ = ()
    type: Type = attribute(Kind.TYPE)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        return True


# --- operators that are functions of the registry or of the program ---------------------------------------------------


class Op:
    """The callee of a call. Ops compare by name; registered ones are made by the op registry."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def has_attr(self, key: str) -> bool:
        """Whether the registered op has a keyword of this name."""
        return key in self.get_attr_keys()

    def get_attr_keys(self) -> list[str]:
        """The keyword schema of a registered op."""
        return list(_keyword_schema(self.name))

    def get_attr(self, key: str) -> Any:
        """The type of a keyword of a registered op."""
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


def _no_schema(_name: str) -> dict[str, Any]:
    return {}


_keyword_schema = _no_schema


def set_keyword_schema_source(source: Any) -> None:
    """Called once by the op registry, which lies above this package, to answer ``Op.get_attr_keys``."""
    global _keyword_schema
    _keyword_schema = source


# --- variables --------------------------------------------------------------------------------------------------------

_next_id = itertools.count(1).__next__


class Var(Expr):
    """A variable. Identity is the object; ``name_hint`` is only a hint, ``unique_id`` orders deterministically."""

    __slots__ = ("unique_id",)
    name_hint: str = ignored()
    unique_id: int

    def __init__(self, name_hint: str, type: Type, span: Span = UNKNOWN_SPAN) -> None:
        _set_name_hint(self, name_hint)
        _set_type(self, type)
        _set_span(self, span)
        _set_unique_id(self, _next_id())

    def replace(self, **changes: Any) -> Any:
        new = super().replace(**changes)
        _set_unique_id(new, _next_id())
        return new


class IterArg(Var):
    """A variable carried around a loop, with its value before the first iteration."""

    __slots__ = ()
    initValue: Expr = use()

    def __init__(self, name_hint: str, type: Type, initValue: Expr, span: Span = UNKNOWN_SPAN) -> None:
        Var.__init__(self, name_hint, type, span)
        _set_init_value(self, initValue)


_set_type = Expr.__dict__["type"].__set__
_set_span = IRNode.__dict__["span"].__set__
_set_name_hint = Var.__dict__["name_hint"].__set__
_set_unique_id = Var.__dict__["unique_id"].__set__
_set_init_value = IterArg.__dict__["initValue"].__set__


class MemRef(Var):
    """A byte range inside an allocation. Unlike other nodes its underscore fields may be assigned.

    Forms: ``MemRef()``, ``MemRef(name)`` (author-declared, pinned); ``MemRef(base, byte_offset, size)``;
    ``MemRef(space, addr, size, id)``; ``MemRef(addr, size, id)``; each with ``span``, and ``slots``/``slot`` where
    the first two kinds allow it.
    """

    __slots__ = ("base_", "byte_offset_", "is_pinned_", "size_", "slot_count_", "slot_index_")
    base_: Var
    byte_offset_: Expr
    size_: int
    is_pinned_: bool
    slot_count_: int
    slot_index_: Expr | None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        span = kwargs.pop("span", UNKNOWN_SPAN)
        slots = kwargs.pop("slots", 1)
        slot = kwargs.pop("slot", None)
        pinned = kwargs.pop("is_pinned", False)
        names = _memref_parameter_names(args, kwargs)
        values = list(args)
        for name in names[len(args) :]:
            if name in kwargs:
                values.append(kwargs.pop(name))
        if kwargs:
            raise TypeError(f"MemRef got an unexpected keyword argument {next(iter(kwargs))!r}")
        if values and isinstance(values[-1], Span):
            span = values.pop()
        if not isinstance(slots, int) or isinstance(slots, bool) or slots < 1:
            raise ValueError("MemRef slots must be a positive integer")
        base, offset, size, declared = _memref_parts(values)
        Var.__init__(self, base.name_hint, MemRefType(), span)
        _plain_set(self, "base_", base)
        _plain_set(self, "byte_offset_", offset)
        _plain_set(self, "size_", int(size))
        _plain_set(self, "is_pinned_", declared or pinned)
        _plain_set(self, "slot_count_", slots)
        _plain_set(self, "slot_index_", index_const(slot) if isinstance(slot, int) else slot)

    def __setattr__(self, name: str, value: object) -> None:
        if name not in MemRef.__slots__:
            raise AttributeError(f"MemRef is immutable apart from its underscore fields: cannot set {name!r}")
        _plain_set(self, name, value)

    def replace(self, **changes: Any) -> MemRef:
        own = {name: changes.pop(name, getattr(self, name)) for name in MemRef.__slots__}
        new: MemRef = super().replace(**changes)
        for name, value in own.items():
            _plain_set(new, name, value)
        return new

    def __getitem__(self, slot: int) -> MemRef:
        if not self.is_pinned_:
            raise TypeError("only an author-declared MemRef can be subscripted")
        if not 0 <= slot < self.slot_count_:
            raise IndexError(f"Slot index {slot} is out of range for {self.slot_count_} slot(s)")
        return self.replace(slot_index_=index_const(slot))

    @staticmethod
    def same_allocation(a: MemRef, b: MemRef) -> bool:
        """Whether both lie in the same allocation."""
        return a.base_ is b.base_

    @staticmethod
    def may_alias(a: MemRef, b: MemRef) -> bool:
        """Whether the byte ranges may overlap; a symbolic offset may be anywhere."""
        if a.base_ is not b.base_:
            return False
        if not (isinstance(a.byte_offset_, ConstInt) and isinstance(b.byte_offset_, ConstInt)):
            return True
        x, y = a.byte_offset_.value, b.byte_offset_.value
        return x < y + b.size_ and y < x + a.size_


_plain_set = object.__setattr__


def _memref_parameter_names(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, ...]:
    if "memory_space" in kwargs or (args and isinstance(args[0], MemorySpace)):
        return ("memory_space", "addr", "size", "id")
    if "addr" in kwargs or (args and isinstance(args[0], int)):
        return ("addr", "size", "id")
    if "name" in kwargs:
        return ("name",)
    return ("base", "byte_offset", "size")


def _memref_parts(values: list[Any]) -> tuple[Var, Expr, int, bool]:
    """(base, byte offset, size, author-declared) of the overloads of ``MemRef``."""

    def base_var(name: str) -> Var:
        return Var(name, PtrType())

    zero = ConstInt(0, DataType.INT64)
    if not values:
        return base_var(""), zero, 0, True
    first = values[0]
    if len(values) == 1 and isinstance(first, str):
        return base_var(first), zero, 0, True
    if isinstance(first, MemorySpace) and len(values) == 4:
        _, addr, size, ident = values
        offset = ConstInt(addr, DataType.INT64) if isinstance(addr, int) else addr
        return base_var(f"mem_{first.name.lower()}_{ident}"), offset, size, False
    if len(values) == 3:
        if isinstance(first, int):
            return base_var(f"mem_{values[2]}"), index_const(first), values[1], False
        _, offset, size = values
        if isinstance(offset, int):
            offset = ConstInt(offset, DataType.INT64)
        return (base_var(first) if isinstance(first, str) else first), offset, size, False
    raise TypeError("pl.MemRef requires 3 arguments (base, byte_offset, size)")


class WindowBuffer(Var):
    """A buffer that other ranks may reach."""

    __slots__ = ()
    base: Var = use()
    size: Expr = use()
    load_from_host: bool = attribute()
    store_to_host: bool = attribute()

    def __init__(
        self,
        base: Var,
        size: Expr,
        load_from_host: bool = False,
        store_to_host: bool = False,
        span: Span = UNKNOWN_SPAN,
    ) -> None:
        Var.__init__(self, base.name_hint, WindowBufferType(), span)
        table = {info.name: info.setter for info in WindowBuffer.node_fields}
        table["base"](self, base)
        table["size"](self, size)
        table["load_from_host"](self, load_from_host)
        table["store_to_host"](self, store_to_host)


# --- constants --------------------------------------------------------------------------------------------------------


class ConstInt(Expr):
    """A signed 64-bit integer constant of an element type."""

    __slots__ = ()
    value: int = attribute()

    def __init__(self, value: int, dtype: DataType, span: Span = UNKNOWN_SPAN) -> None:
        _set_int(self, value)
        _set_type(self, ScalarType(dtype))
        _set_span(self, span)

    @property
    def dtype(self) -> DataType:
        return self.type.dtype  # type: ignore[attr-defined, no-any-return]


class ConstFloat(Expr):
    """A double-precision constant of an element type."""

    __slots__ = ()
    value: float = attribute()

    def __init__(self, value: float, dtype: DataType, span: Span = UNKNOWN_SPAN) -> None:
        _set_float(self, float(value))
        _set_type(self, ScalarType(dtype))
        _set_span(self, span)

    @property
    def dtype(self) -> DataType:
        return self.type.dtype  # type: ignore[attr-defined, no-any-return]


class ConstBool(Expr):
    """A BOOL constant."""

    __slots__ = ()
    value: bool = attribute()

    def __init__(self, value: bool, span: Span = UNKNOWN_SPAN) -> None:
        _set_bool(self, bool(value))
        _set_type(self, BOOL_TYPE)
        _set_span(self, span)

    @property
    def dtype(self) -> DataType:
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


class BinaryExpr(Expr):
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
        return self.type.dtype  # type: ignore[attr-defined, no-any-return]


class UnaryExpr(Expr):
    """Base of one-operand scalar operators; the constructor validates nothing."""

    __slots__ = ()
    operand: Expr = use()

    def __init__(self, operand: Expr, dtype: DataType, span: Span = UNKNOWN_SPAN) -> None:
        _set_operand(self, operand)
        _set_type(self, ScalarType(dtype))
        _set_span(self, span)

    @property
    def dtype(self) -> DataType:
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
        items = frozen_list(elements)
        _set_elements(self, items)
        _set_type(self, TupleType([e.type for e in items]))
        _set_span(self, span)


class TupleGetItemExpr(Expr):
    """One element of a tuple-typed expression."""

    __slots__ = ()
    tuple: Expr = use()
    index: int = attribute()

    def __init__(self, tuple: Expr, index: int, span: Span = UNKNOWN_SPAN) -> None:
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


# --- calls ------------------------------------------------------------------------------------------------------------


def _check_directions(attrs: FrozenDict[str, Any], count: int) -> None:
    directions = attrs.get("arg_directions") if attrs else None
    if directions and len(directions) != count:
        raise TypeError(f"attrs['arg_directions'] size ({len(directions)}) must match args size ({count})")


class Call(Expr):
    """A call of an op or of a function.

    ``Call(op, args, [kwargs, [attrs,]] [type,] span)``. *kwargs* are compile-time parameters of the op; *attrs* are
    compiler metadata.
    """

    __slots__ = ()
    _field_order = ("type", "op", "args", "attrs", "kwargs")
    op: Op = attribute(Kind.OP)
    args: FrozenList[Expr] = use(Kind.LIST)
    attrs: FrozenDict[str, Any] = attribute(Kind.ATTRS)
    kwargs: FrozenDict[str, Any] = attribute(Kind.ATTRS)

    _PARAMETERS: ClassVar[tuple[str, ...]] = ("kwargs", "attrs", "type", "span")

    def __init__(self, op: Op, args: Sequence[Expr], *rest: Any, **named: Any) -> None:
        kwargs, attrs, kind, span = _call_tail(rest, named)
        items = frozen_list(args)
        stored = normalize_attrs(attrs)
        if "core_num" in stored and type(stored["core_num"]) is int:
            stored = FrozenDict({**stored, "core_num": index_const(stored["core_num"])})
        _check_directions(stored, len(items))
        _set_op(self, op)
        _set_args(self, items)
        _set_kwargs(self, normalize_attrs(kwargs))
        _set_attrs(self, stored)
        _set_type(self, kind)
        _set_span(self, span)

    @classmethod
    def make(
        cls,
        op: Op,
        args: FrozenList[Expr],
        kwargs: FrozenDict[str, Any],
        attrs: FrozenDict[str, Any],
        type: Type,
        span: Span,
    ) -> Call:
        """The constructor of hot paths: everything already has its stored form."""
        self = object.__new__(cls)
        _set_op(self, op)
        _set_args(self, args)
        _set_kwargs(self, kwargs)
        _set_attrs(self, attrs)
        _set_type(self, type)
        _set_span(self, span)
        return self

    @property
    def arg_directions(self) -> FrozenList[ArgDirection]:
        """One direction an argument; empty before directions are derived."""
        return self.attrs.get("arg_directions", EMPTY_LIST)


def _call_tail(rest: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any, Type, Span]:
    kwargs: Any = named.pop("kwargs", None)
    attrs: Any = named.pop("attrs", None)
    kind: Any = named.pop("type", None)
    span: Any = named.pop("span", None)
    if named:
        raise TypeError(f"Call got an unexpected keyword argument {next(iter(named))!r}")
    values = list(rest)
    if values and isinstance(values[-1], Span):
        span = values.pop()
    if values and isinstance(values[-1], Type):
        kind = values.pop()
    if values and kwargs is None:
        kwargs = values.pop(0)
    if values:
        attrs = values.pop(0)
    if values:
        raise TypeError("Call takes (op, args, [kwargs, [attrs,]] [type,] span)")
    if kwargs is not None and not isinstance(kwargs, dict):
        raise TypeError(f"Call kwargs must be a dict, got {type(kwargs).__name__}")
    return kwargs, attrs, UNKNOWN if kind is None else kind, UNKNOWN_SPAN if span is None else span


_set_op = Call.__dict__["op"].__set__
_set_args = Call.__dict__["args"].__set__
_set_attrs = Call.__dict__["attrs"].__set__
_set_kwargs = Call.__dict__["kwargs"].__set__


class Submit(Expr):
    """An asynchronous launch of a kernel function; its last result is the task id."""

    __slots__ = ()
    _field_order = (
        "type",
        "op",
        "args",
        "deps",
        "core_num",
        "sync_start",
        "allow_early_resolve",
        "predicate",
        "attrs",
        "kwargs",
    )
    op: Op = attribute(Kind.OP)
    args: FrozenList[Expr] = use(Kind.LIST)
    deps: FrozenList[Expr] = use(Kind.LIST)
    core_num: Expr | None = use(Kind.OPTIONAL)
    sync_start: bool = attribute()
    allow_early_resolve: bool = attribute()
    predicate: Expr | None = use(Kind.OPTIONAL)
    attrs: FrozenDict[str, Any] = attribute(Kind.ATTRS)
    kwargs: FrozenDict[str, Any] = attribute(Kind.ATTRS)

    def __init__(
        self,
        op: Op,
        args: Sequence[Expr],
        deps: Sequence[Expr],
        *rest: Any,
        core_num: Expr | int | None = None,
        sync_start: bool = False,
        allow_early_resolve: bool = False,
        predicate: Expr | None = None,
        **named: Any,
    ) -> None:
        kwargs, attrs, kind, span = _call_tail(rest, named)
        items = frozen_list(args)
        stored = normalize_attrs(attrs)
        _check_directions(stored, len(items))
        if isinstance(core_num, int) and not isinstance(core_num, bool):
            core_num = index_const(core_num)
        if sync_start and core_num is None:
            raise ValueError("Submit: sync_start requires core_num")
        if core_num is not None and not (isinstance(core_num.type, ScalarType) and core_num.type.dtype.is_int_):
            raise TypeError("Submit: core_num must be an integer scalar")
        table = {info.name: info.setter for info in Submit.node_fields}
        for name, value in (
            ("op", op),
            ("args", items),
            ("deps", frozen_list(deps)),
            ("core_num", core_num),
            ("sync_start", bool(sync_start)),
            ("allow_early_resolve", bool(allow_early_resolve)),
            ("predicate", predicate),
            ("attrs", stored),
            ("kwargs", normalize_attrs(kwargs)),
            ("type", kind),
            ("span", span),
        ):
            table[name](self, value)

    @property
    def arg_directions(self) -> FrozenList[ArgDirection]:
        """One direction an argument; empty before directions are derived."""
        return self.attrs.get("arg_directions", EMPTY_LIST)


BINARY_CLASSES: tuple[type[BinaryExpr], ...] = tuple(BinaryExpr.__subclasses__())
UNARY_CLASSES: tuple[type[UnaryExpr], ...] = tuple(UnaryExpr.__subclasses__())
COMPARISONS = (Eq, Ne, Lt, Le, Gt, Ge)

__all__ = [
    "BINARY_CLASSES",
    "COMPARISONS",
    "EMPTY_DICT",
    "INDEX_TYPE",
    "UNARY_CLASSES",
    *(cls.__name__ for cls in (*BINARY_CLASSES, *UNARY_CLASSES)),
    "BinaryExpr",
    "Call",
    "ConstBool",
    "ConstFloat",
    "ConstInt",
    "Expr",
    "GlobalVar",
    "IterArg",
    "MakeTuple",
    "MemRef",
    "Op",
    "Submit",
    "TupleGetItemExpr",
    "UnaryExpr",
    "Var",
    "WindowBuffer",
    "index_const",
]
