"""Calls of ops and functions, and submits: asynchronous launches of kernel functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .attrs import normalize_attrs
from .enums import ArgDirection
from .expr_core import Expr, Op, index_const
from .node import (
    EMPTY_DICT,
    EMPTY_LIST,
    FrozenDict,
    FrozenList,
    IRNode,
    Kind,
    attribute,
    checked_list,
    use,
    wrong_kind,
)
from .span import UNKNOWN_SPAN, Span
from .type import UNKNOWN, ScalarType, Type


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

    def __init__(self, op: Op, args: Sequence[Expr], *rest: Any, **named: Any) -> None:
        if not isinstance(op, Op):
            wrong_kind("Call", "op", Op, op)
        kwargs, attrs, kind, span, extra = _tail("Call", rest, named)
        if extra or named:
            raise TypeError("Call takes (op, args, [kwargs, [attrs,]] [type,] span)")
        items = checked_list(args, Expr, "Call", "args")
        _set_op(self, op)
        _set_args(self, items)
        _set_kwargs(self, EMPTY_DICT if kwargs is None else normalize_attrs(kwargs))
        _set_attrs(self, call_attrs(attrs, len(items)))
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
        directions: FrozenList[ArgDirection] = self.attrs.get("arg_directions", EMPTY_LIST)
        return directions


_set_type = Expr.__dict__["type"].__set__
_set_span = IRNode.__dict__["span"].__set__
_set_op = Call.__dict__["op"].__set__
_set_args = Call.__dict__["args"].__set__
_set_attrs = Call.__dict__["attrs"].__set__
_set_kwargs = Call.__dict__["kwargs"].__set__


class Submit(Expr):
    """An asynchronous launch of a kernel function; its last result is the task id.

    ``Submit(op, args, deps, [kwargs, [attrs,]] type, span, core_num=None, sync_start=False,
    allow_early_resolve=False, predicate=None)``.
    """

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

    def __init__(self, op: Op, args: Sequence[Expr], deps: Sequence[Expr], *rest: Any, **named: Any) -> None:
        if not isinstance(op, Op):
            wrong_kind("Submit", "op", Op, op)
        kwargs, attrs, kind, span, extra = _tail("Submit", rest, named)
        launch = _launch_fields(extra, named)
        items = checked_list(args, Expr, "Submit", "args")
        values = {
            "op": op,
            "args": items,
            "deps": checked_list(deps, Expr, "Submit", "deps"),
            "attrs": call_attrs(attrs, len(items)),
            "kwargs": normalize_attrs(kwargs),
            "type": kind,
            "span": span,
            **launch,
        }
        for info in Submit.node_fields:
            info.setter(self, values[info.name])

    @property
    def arg_directions(self) -> FrozenList[ArgDirection]:
        """One direction an argument; empty before directions are derived."""
        directions: FrozenList[ArgDirection] = self.attrs.get("arg_directions", EMPTY_LIST)
        return directions


_LAUNCH = {"core_num": None, "sync_start": False, "allow_early_resolve": False, "predicate": None}


def _launch_fields(positional: list[Any], named: dict[str, Any]) -> dict[str, Any]:
    if len(positional) > len(_LAUNCH):
        raise TypeError("Submit got too many positional arguments")
    values = {**_LAUNCH, **dict(zip(_LAUNCH, positional, strict=False))}
    for name, value in named.items():
        if name not in values:
            raise TypeError(f"Submit got an unexpected keyword argument {name!r}")
        values[name] = value
    core_num, predicate = values["core_num"], values["predicate"]
    if type(core_num) is int:
        core_num = values["core_num"] = index_const(core_num)
    for name in ("sync_start", "allow_early_resolve"):
        if not isinstance(values[name], bool):
            wrong_kind("Submit", name, bool, values[name])
    if values["sync_start"] and core_num is None:
        raise ValueError("Submit: sync_start requires core_num")
    if core_num is not None:
        kind = core_num.type if isinstance(core_num, Expr) else None
        if not (isinstance(kind, ScalarType) and kind.dtype.is_int_):
            raise TypeError("Submit: core_num must be an integer scalar")
    if predicate is not None and not isinstance(predicate, Expr):
        wrong_kind("Submit", "predicate", Expr, predicate)
    return values


# --- common to both ---------------------------------------------------------------------------------------------------


def _tail(owner: str, rest: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any, Type, Span, list[Any]]:
    """kwargs, attrs, type and span of the overloads, and the positional arguments behind the span."""
    values = list(rest)
    extra: list[Any] = []
    kwargs = attrs = kind = span = None
    if named:
        kwargs, attrs = named.pop("kwargs", None), named.pop("attrs", None)
        kind, span = named.pop("type", None), named.pop("span", None)
    if values and isinstance(values[-1], Span):
        span = values.pop()
    else:  # behind the span there may be more positional arguments
        for at, value in enumerate(values):
            if isinstance(value, Span):
                span, extra = value, values[at + 1 :]
                del values[at:]
                break
    if values and isinstance(values[-1], Type):
        kind = values.pop()
    if values and kwargs is None:
        kwargs = values.pop(0)
    if values and attrs is None:
        attrs = values.pop(0)
    if values:
        raise TypeError(f"{owner}: cannot tell what {type(values[0]).__name__} is for among the positional arguments")
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise TypeError(f"{owner}: kwargs must be a dict, got {type(kwargs).__name__}")
    if kind is not None and not isinstance(kind, Type):
        wrong_kind(owner, "type", Type, kind)
    if span is not None and not isinstance(span, Span):
        wrong_kind(owner, "span", Span, span)
    return kwargs, attrs, UNKNOWN if kind is None else kind, UNKNOWN_SPAN if span is None else span, extra


def call_attrs(attrs: Any, arg_count: int) -> FrozenDict[str, Any]:
    """The stored attrs of a call of so many arguments: checked, and a launch width as an expression."""
    stored = normalize_attrs(attrs) if attrs is not None else EMPTY_DICT
    if stored:
        directions = stored.get("arg_directions")
        if directions and len(directions) != arg_count:
            raise TypeError(f"attrs['arg_directions'] size ({len(directions)}) must match args size ({arg_count})")
        if type(stored.get("core_num")) is int:
            stored = FrozenDict({**stored, "core_num": index_const(stored["core_num"])})
    return stored


def set_call_attrs(call: Call, attrs: Any) -> Call:
    """A copy of ``call`` whose attrs are ``attrs``."""
    if not isinstance(call, Call):
        wrong_kind("set_call_attrs", "call", Call, call)
    return call.replace(attrs=call_attrs(attrs, len(call.args)))


__all__ = ["Call", "Submit", "call_attrs", "set_call_attrs"]
