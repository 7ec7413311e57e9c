"""Asynchronous prefetch of global memory into the cache: handles without numeric effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..ir.enums import CoreType
from ..ir.expr import Expr, Var
from ..ir.type import BOOL_TYPE, AsyncEventType, AsyncSessionType, PrefetchAsyncContextType, Type
from .definition import InferRule, Operand
from .registry import call, define
from .rules import operand_error, require_args, tensor_type
from .surface import Operand as Arg
from .surface import surface
from .windows import number


def _handle(op: str, args: Sequence[Expr], index: int, wanted: type[Type]) -> None:
    if type(args[index].type) is not wanted:
        raise operand_error(op, ("first", "second")[index], wanted.__name__, args[index])


def _prefetch_infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
    op = "prefetch.async_prefetch"
    require_args(op, args, 2)
    kind = tensor_type(op, args, 0)
    if not isinstance(args[0], Var):
        raise ValueError(f"{op} requires src to be a tensor variable")
    dims = [number(dim) for dim in kind.shape]
    if None in dims or any(dim != 1 for dim in dims[:-1]):
        raise ValueError(f"{op} requires src to be flat contiguous logical 1D: static, all leading dimensions 1")
    _handle(op, args, 1, PrefetchAsyncContextType)
    event: Type = AsyncEventType()
    return event


def _infer(op: str, wanted: Sequence[type[Type]], result: Type) -> InferRule:
    def infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, len(wanted))
        for i, kind in enumerate(wanted):
            _handle(op, args, i, kind)
        return result

    return infer


define(
    "prefetch.make_context",
    [],
    _infer("prefetch.make_context", (), PrefetchAsyncContextType()),
    doc="a context for asynchronous prefetches",
    reference=lambda ctx: "context",
    pure=False,
    core=CoreType.VECTOR,
    priority="rare",
)
define(
    "prefetch.async_prefetch",
    [Operand("src", "window"), Operand("ctx", "any")],
    _prefetch_infer,
    doc="start fetching a tensor into the cache",
    reference=lambda ctx, src, context: "event",
    pure=False,
    core=CoreType.VECTOR,
    priority="rare",
)
define(
    "prefetch.session",
    [Operand("ctx", "any")],
    _infer("prefetch.session", (PrefetchAsyncContextType,), AsyncSessionType()),
    doc="the session of a context",
    reference=lambda ctx, context: "session",
    pure=False,
    core=CoreType.VECTOR,
    priority="rare",
)
define(
    "prefetch.wait",
    [Operand("event", "any"), Operand("session", "any")],
    _infer("prefetch.wait", (AsyncEventType, AsyncSessionType), BOOL_TYPE),
    doc="wait for a prefetch; true once it is done",
    reference=lambda ctx, event, session: True,
    pure=False,
    core=CoreType.VECTOR,
    priority="rare",
)


@surface("prefetch")
def make_context() -> Expr:
    """A context for asynchronous prefetches."""
    return call("prefetch.make_context")


@surface("prefetch")
def async_prefetch(src: Arg, ctx: Arg) -> Expr:
    """Start fetching a tensor into the cache."""
    return call("prefetch.async_prefetch", src, ctx)


@surface("prefetch")
def session(ctx: Arg) -> Expr:
    """The session of a context."""
    return call("prefetch.session", ctx)


@surface("prefetch")
def wait(event: Arg, session_handle: Arg) -> Expr:
    """Wait for a prefetch."""
    return call("prefetch.wait", event, session_handle)
