"""Ranks, communicators and signals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...ir.dtype import DataType
from ...ir.enums import ArgEffect, NotifyOp, WaitCmp
from ...ir.expr import Expr
from ...ir.type import CommCtxType, ScalarType, Type
from ..definition import REQUIRED, InferRule, Operand
from ..normalize import extent, extents
from ..registry import call, define
from ..rules import OperandKindError, require_args
from ..surface import Attr, Extents, surface
from ..surface import Operand as Arg
from ..windows import number
from .common import INT32, NO_VALUE, enum_attr, offsets_of, scalar, signal_of, unsupported, window_bound

COMM_CTX: Type = CommCtxType()


def _query(op: str, kwargs: Mapping[str, Any], args: Sequence[Expr], count: int) -> None:
    if kwargs:
        raise ValueError(f"{op} takes no kwargs")
    if len(args) != count:
        raise ValueError(
            f"{op} takes no positional arguments" if count == 0 else f"{op} takes exactly 1 positional argument"
        )


def _world_size_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    _query("pld.system.world_size", kwargs, args, 0)
    return ScalarType(DataType.INT64)


def _comm_ctx_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    op = "pld.system.get_comm_ctx"
    _query(op, kwargs, args, 1)
    window_bound(op, args, 0, "operand")
    return COMM_CTX


def _rank_infer(op: str) -> InferRule:
    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        _query(op, kwargs, args, 1)
        if args[0].type != COMM_CTX:
            raise OperandKindError(f"{op} expects a CommCtx, got {type(args[0].type).__name__}")
        return ScalarType(INT32)

    return infer


define(
    "pld.system.world_size",
    [],
    _world_size_infer,
    doc="the number of ranks",
    reference=unsupported,
    priority="full",
)
define(
    "pld.system.get_comm_ctx",
    [Operand("dist_tensor", "dist")],
    _comm_ctx_infer,
    doc="the communicator of a window's domain",
    reference=unsupported,
    priority="full",
)
for _name, _doc in (("rank", "my rank in the domain"), ("nranks", "the size of the domain")):
    define(
        f"pld.system.{_name}",
        [Operand("ctx", "any")],
        _rank_infer(f"pld.system.{_name}"),
        doc=_doc,
        reference=unsupported,
        priority="full",
    )


@surface("pld", "pld.system")
def world_size() -> Expr:
    """The number of ranks."""
    return call("pld.system.world_size")


@surface("pld", "pld.system")
def get_comm_ctx(dist_tensor: Arg) -> Expr:
    """The communicator of a window's domain."""
    return call("pld.system.get_comm_ctx", dist_tensor)


@surface("pld", "pld.system")
def rank(ctx: Arg) -> Expr:
    """My rank in the domain."""
    return call("pld.system.rank", ctx)


@surface("pld", "pld.system")
def nranks(ctx: Arg) -> Expr:
    """The size of the domain."""
    return call("pld.system.nranks", ctx)


# --- notify, wait -----------------------------------------------------------------------------------------------------


def _notify_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    op = "pld.system.notify"
    require_args(op, args, 4)
    target = signal_of(op, args, 0)
    scalar(op, args, 1, "peer")
    offsets_of(op, args, 2, len(target.shape))
    scalar(op, args, 3, "value")
    if kwargs["op"] not in (NotifyOp.AtomicAdd.value, NotifyOp.Set.value):
        raise ValueError(f"{op}: op must be NotifyOp.AtomicAdd or NotifyOp.Set, got {kwargs['op']}")
    return NO_VALUE


def _wait_infer(op: str, deferred: bool) -> InferRule:
    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 3)
        signal = signal_of(op, args, 0)
        if deferred and not signal.shape:
            raise ValueError(f"{op} requires a signal of rank >= 1")
        offsets_of(op, args, 1, len(signal.shape))
        scalar(op, args, 2, "expected")
        mode = kwargs["cmp"]
        if deferred:
            if mode != WaitCmp.Ge.value:
                raise ValueError(f"{op} only supports WaitCmp.Ge")
            kind: Any = args[2].type
            if not kind.dtype.is_int_:
                raise ValueError(f"{op}: expected must be an integer, got {kind.dtype}")
            value = number(args[2])
            if value is not None and not 0 <= value < 2**31:
                raise ValueError(f"{op}: expected must be in [0, 2147483647], got {value}")
        elif mode not in (WaitCmp.Eq.value, WaitCmp.Ge.value):
            raise ValueError(f"{op}: cmp must be WaitCmp.Eq or WaitCmp.Ge, got {mode}")
        return NO_VALUE

    return infer


def _notify_effect(kwargs: Mapping[str, Any]) -> ArgEffect:
    return ArgEffect.Write if kwargs.get("op") == NotifyOp.Set.value else ArgEffect.ReadWrite


define(
    "pld.system.notify",
    [Operand("target", "dist"), Operand("peer", "scalar"), Operand("offsets", "tuple", "index"),
     Operand("value", "scalar")],
    _notify_infer,
    doc="add to, or set, one cell of a peer's signal",
    kwargs={"op": (int, REQUIRED)},
    reference=unsupported,
    effects={0: _notify_effect},
    pure=False,
    priority="full",
)  # fmt: skip
for _name, _doc in (
    ("wait", "block until a cell of my signal has a value"),
    ("defer_wait", "let the completion of this task wait for a cell of my signal"),
):
    define(
        f"pld.system.{_name}",
        [Operand("signal", "dist"), Operand("offsets", "tuple", "index"), Operand("expected", "scalar")],
        _wait_infer(f"pld.system.{_name}", _name == "defer_wait"),
        doc=_doc,
        kwargs={"cmp": (int, REQUIRED)},
        reference=unsupported,
        effects_declared=True,
        pure=False,
        priority="full",
    )


@surface("pld.system")
def notify(target: Arg, peer: Arg, offsets: Extents, value: Arg, *, op: Attr) -> Expr:
    """Add to, or set, one cell of a peer's signal."""
    mode = enum_attr(op, "op")
    return call("pld.system.notify", target, extent(peer), extents(offsets), extent(value), op=mode)


@surface("pld.system")
def wait(signal: Arg, offsets: Extents, expected: Arg, *, cmp: Attr) -> Expr:
    """Block until a cell of my signal has a value."""
    return call("pld.system.wait", signal, extents(offsets), extent(expected), cmp=enum_attr(cmp, "cmp"))


@surface("pld.system")
def defer_wait(signal: Arg, offsets: Extents, expected: Arg, *, cmp: Attr) -> Expr:
    """Let the completion of this task wait for a cell of my signal."""
    return call("pld.system.defer_wait", signal, extents(offsets), extent(expected), cmp=enum_attr(cmp, "cmp"))
