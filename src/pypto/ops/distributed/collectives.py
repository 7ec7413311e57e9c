"""Collectives: operations that all ranks of a domain do together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...ir.dtype import DataType
from ...ir.enums import ArgEffect, ReduceOp
from ...ir.expr import Expr
from ...ir.type import DistributedTensorType, Type
from ..definition import REQUIRED, Alias, InferRule, Operand
from ..registry import call, define
from ..rules import require_args
from ..surface import Attr, surface
from ..surface import Operand as Arg
from ..windows import number
from .common import (
    INT32,
    enum_attr,
    equal_extents,
    local_tensor,
    same_dtype,
    signal_of,
    unsupported,
    window_bound,
)

RW, W = ArgEffect.ReadWrite, ArgEffect.Write
FLOATS = (DataType.FP16, DataType.FP32)
MISSING: Any = type("Missing", (), {"__repr__": lambda self: "<missing>"})()


def check_reduce(op: str, kwargs: Mapping[str, Any], only_sum: bool) -> None:
    """The reduction must be one that the collective has."""
    mode = kwargs["op"]
    if only_sum and mode != ReduceOp.Sum.value:
        raise ValueError(f"{op}: op must be ReduceOp.Sum, got {mode}")
    if mode not in {member.value for member in ReduceOp}:
        raise ValueError(f"{op}: op must be ReduceOp.Sum, Max, Min, or Prod, got {mode}")


def allreduce_rule(op: str) -> InferRule:
    """Type rule of an all-reduce."""

    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 1, 2)
        target = window_bound(op, args, 0, "target")
        if target.dtype not in FLOATS:
            raise ValueError(f"{op}: target dtype must be FP16 or FP32, got {target.dtype}")
        if len(args) == 2:
            signal_of(op, args, 1)
        check_reduce(op, kwargs, only_sum=False)
        if kwargs.get("mode", "mesh") not in ("mesh", "ring"):
            raise ValueError(f"{op}: mode must be 'mesh' or 'ring', got {kwargs['mode']!r}")
        if kwargs.get("core_num", 1) <= 0:
            raise ValueError(f"{op}: core_num must be positive, got {kwargs['core_num']}")
        return target

    return infer


def barrier_rule(op: str) -> InferRule:
    """Type rule of a barrier."""

    def infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 1)
        return signal_of(op, args, 0)

    return infer


def broadcast_rule(op: str) -> InferRule:
    """Type rule of a broadcast."""

    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 2)
        target = window_bound(op, args, 0, "target")
        signal_of(op, args, 1)
        if kwargs["root"] < 0:
            raise ValueError(f"{op}: the root rank must be non-negative, got {kwargs['root']}")
        return target

    return infer


def _matrix(op: str, kind: Any, what: str) -> None:
    if len(kind.shape) != 2:
        raise ValueError(f"{op} requires a 2D {what}, got rank {len(kind.shape)}")


def allgather_rule(op: str, *, dist_input: bool = False) -> InferRule:
    """Type rule of an all-gather."""

    def infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 3)
        source: Any = window_bound(op, args, 0, "input") if dist_input else local_tensor(op, args, 0, "local_data")
        target = window_bound(op, args, 1, "target")
        signal = signal_of(op, args, 2)
        _distinct(op, args)
        same_dtype(op, source, target, "local_data and target")
        _matrix(op, source, "local_data")
        _matrix(op, target, "target")
        if number(source.shape[0]) not in (None, 1):
            raise ValueError(f"{op}: local_data first dimension must be 1, got {number(source.shape[0])}")
        equal_extents(op, target.shape[1], source.shape[1], "target SIZE must equal input SIZE")
        _ranks(op, target, signal)
        return target

    return infer


def _distinct(op: str, args: Sequence[Expr]) -> None:
    if args[0] is args[1]:
        both = all(type(a.type) is DistributedTensorType for a in args[:2])
        raise ValueError(f"{op}: input and target must be different {'windows' if both else 'buffers'}")


def _ranks(op: str, target: Any, signal: Any) -> None:
    if signal.shape:
        a, b = number(target.shape[0]), number(signal.shape[0])
        equal_extents(
            op,
            target.shape[0],
            signal.shape[0],
            f"target first dimension ({a}) must equal signal first dimension ({b})",
        )


def all_to_all_rule(op: str) -> InferRule:
    """Type rule of an all-to-all of equal parts."""

    def infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 3)
        source, target = local_tensor(op, args, 0, "input"), window_bound(op, args, 1, "target")
        signal = signal_of(op, args, 2)
        _distinct(op, args)
        same_dtype(op, source, target, "input and target")
        _matrix(op, source, "input")
        _matrix(op, target, "target")
        a, b = number(source.shape[0]), number(target.shape[0])
        equal_extents(
            op,
            source.shape[0],
            target.shape[0],
            f"input first dimension ({a}) must equal target first dimension ({b})",
        )
        equal_extents(op, target.shape[1], source.shape[1], "target SIZE must equal input SIZE")
        _ranks(op, target, signal)
        return target

    return infer


def all_to_all_v_rule(op: str) -> InferRule:
    """Type rule of an all-to-all of parts of run-time sizes."""

    def infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
        if len(args) != 5:
            raise ValueError(f"{op} requires 5 args, got {len(args)}")
        source, target = local_tensor(op, args, 0, "input"), window_bound(op, args, 1, "target")
        signal = signal_of(op, args, 2)
        sends, receives = local_tensor(op, args, 3, "send_counts"), window_bound(op, args, 4, "recv_counts")
        _distinct(op, args)
        same_dtype(op, source, target, "input and target")
        _matrix(op, source, "input")
        _matrix(op, target, "target")
        equal_extents(op, source.shape[0], target.shape[0], "input dim 0 must equal target dim 0")
        equal_extents(op, target.shape[1], source.shape[1], "target SIZE must equal input SIZE")
        if len(signal.shape) != 2:
            raise ValueError(f"{op}: signal must be 2D, got rank {len(signal.shape)}")
        ranks, rows = number(signal.shape[0]), number(target.shape[0])
        if ranks and rows is not None and rows % ranks:
            raise ValueError(f"{op}: signal dim 0 ({ranks}) must divide target dim 0 ({rows})")
        for what, kind in (("send_counts", sends), ("recv_counts", receives)):
            if kind.dtype is not INT32:
                raise ValueError(f"{op}: {what} must have INT32 element type, got {kind.dtype}")
        column = len(sends.shape) == 2 and number(sends.shape[1]) in (None, 1)
        if len(sends.shape) != 1 and not column:
            raise ValueError(f"{op}: send_counts must be 1D or [NR, 1], got rank {len(sends.shape)}")
        equal_extents(op, sends.shape[0], signal.shape[0], "send_counts dim 0 must equal signal dim 0")
        if len(receives.shape) != 2 or number(receives.shape[1]) not in (None, 1):
            raise ValueError(f"{op}: recv_counts second dimension must be 1")
        equal_extents(op, receives.shape[0], signal.shape[0], "recv_counts dim 0 must equal signal dim 0")
        return target

    return infer


def reduce_scatter_rule(op: str) -> InferRule:
    """Type rule of a reduce-scatter."""

    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 2)
        target = window_bound(op, args, 0, "target")
        signal = signal_of(op, args, 1)
        _matrix(op, target, "target")
        check_reduce(op, kwargs, only_sum=True)
        _ranks(op, target, signal)
        return target

    return infer


TARGET, SIGNAL = Operand("target", "dist", "destination"), Operand("signal", "dist")
INPUT = Operand("input", "window")


def _define(
    name: str,
    operands: Sequence[Operand],
    infer: InferRule,
    doc: str,
    effects: Mapping[int, ArgEffect],
    target: int,
    kwargs: Any,
) -> None:
    define(
        f"pld.tensor.{name}",
        operands,
        infer,
        doc=doc,
        kwargs=kwargs,
        reference=unsupported,
        effects=effects,
        alias=Alias.IS,
        alias_operand=target,
        pure=False,
        priority="full",
    )


_define(
    "allreduce",
    [TARGET, Operand("signal", "dist", optional=True)],
    allreduce_rule("pld.tensor.allreduce"),
    "target of every rank becomes the reduction over the ranks",
    {0: RW, 1: RW},
    0,
    {"op": (int, REQUIRED), "mode": (str, "mesh"), "core_num": (int, REQUIRED)},
)
_define("barrier", [SIGNAL], barrier_rule("pld.tensor.barrier"), "all ranks arrive", {0: RW}, 0, {})
_define(
    "broadcast",
    [TARGET, SIGNAL],
    broadcast_rule("pld.tensor.broadcast"),
    "target becomes the root's",
    {0: RW, 1: RW},
    0,
    {"root": (int, REQUIRED)},
)
_define(
    "allgather",
    [INPUT, TARGET, SIGNAL],
    allgather_rule("pld.tensor.allgather"),
    "target[r] becomes the input of rank r",
    {1: W, 2: RW},
    1,
    {},
)
_define(
    "all_to_all",
    [INPUT, TARGET, SIGNAL],
    all_to_all_rule("pld.tensor.all_to_all"),
    "target[s] becomes the row of rank s that is meant for me",
    {1: W, 2: RW},
    1,
    {},
)
_define(
    "all_to_all_v",
    [INPUT, TARGET, SIGNAL, Operand("send_counts", "window"), Operand("recv_counts", "dist", "destination")],
    all_to_all_v_rule("pld.tensor.all_to_all_v"),
    "an exchange of blocks with run-time row counts",
    {1: W, 2: RW, 4: W},
    1,
    {},
)
_define(
    "reduce_scatter",
    [TARGET, SIGNAL],
    reduce_scatter_rule("pld.tensor.reduce_scatter"),
    "target[me] becomes the sum over the ranks",
    {0: RW, 1: RW},
    0,
    {"op": (int, REQUIRED)},
)


# --- surfaces ---------------------------------------------------------------------------------------------------------


def _window(op: str, value: Arg, role: str) -> None:
    if not isinstance(value, Expr) or type(value.type) is not DistributedTensorType:
        got = type(value.type).__name__ if isinstance(value, Expr) else type(value).__name__
        raise TypeError(f"{op} expects a DistributedTensor {role} (window-bound); got {got}")


@surface("pld.tensor")
def allreduce(
    target: Arg, signal: Arg = MISSING, *, op: Attr = ReduceOp.Sum, mode: Attr = "mesh", core_num: Attr = 1
) -> Expr:
    """Reduce over all ranks."""
    name = "pld.tensor.allreduce"
    _window(name, target, "target")
    if isinstance(core_num, bool) or not isinstance(core_num, int):
        raise TypeError(f"{name}: core_num must be a positive compile-time int, got {type(core_num).__name__}")
    if core_num <= 0:
        raise ValueError(f"{name}: core_num must be positive, got {core_num}")
    if signal is None:
        raise TypeError(f"{name}: signal cannot be None: leave it out instead")
    if signal is MISSING:
        if mode != "mesh":
            raise ValueError(f"{name} with mode={mode!r} requires an explicit signal")
        more: tuple[Any, ...] = ()
    else:
        _window(name, signal, "signal")
        more = (signal,)
    return call(name, target, *more, op=enum_attr(op, "op"), mode=mode, core_num=core_num)


@surface("pld.tensor")
def barrier(signal: Arg) -> Expr:
    """Wait for all ranks."""
    _window("pld.tensor.barrier", signal, "signal")
    return call("pld.tensor.barrier", signal)


@surface("pld.tensor")
def broadcast(target: Arg, signal: Arg, *, root: Attr) -> Expr:
    """Send the root's data to all ranks."""
    op = "pld.tensor.broadcast"
    _window(op, target, "target")
    _window(op, signal, "signal")
    return call(op, target, signal, root=enum_attr(root, "root"))


@surface("pld.tensor")
def allgather(local_data: Arg, target: Arg, signal: Arg) -> Expr:
    """Collect a row of every rank."""
    op = "pld.tensor.allgather"
    _window(op, target, "target")
    _window(op, signal, "signal")
    return call(op, local_data, target, signal)


@surface("pld.tensor")
def reduce_scatter(target: Arg, signal: Arg, *, op: Attr = ReduceOp.Sum) -> Expr:
    """Reduce over all ranks, each keeping its own row."""
    name = "pld.tensor.reduce_scatter"
    _window(name, target, "target")
    _window(name, signal, "signal")
    return call(name, target, signal, op=enum_attr(op, "op"))


@surface("pld.tensor")
def all_to_all(input: Arg, target: Arg, signal: Arg) -> Expr:
    """Exchange one row with every rank."""
    op = "pld.tensor.all_to_all"
    _window(op, target, "target")
    _window(op, signal, "signal")
    return call(op, input, target, signal)


@surface("pld.tensor")
def all_to_all_v(input: Arg, target: Arg, signal: Arg, send_counts: Arg, recv_counts: Arg) -> Expr:
    """Exchange blocks with run-time row counts."""
    op = "pld.tensor.all_to_all_v"
    _window(op, target, "target")
    _window(op, signal, "signal")
    _window(op, recv_counts, "recv_counts")
    return call(op, input, target, signal, send_counts, recv_counts)
