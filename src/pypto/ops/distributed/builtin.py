"""Collectives as chip programs of their own: what the host's collectives become. Users can not write them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...ir.dtype import DataType
from ...ir.enums import ArgEffect
from ...ir.expr import Expr
from ...ir.type import DistributedTensorType, Type
from ..definition import REQUIRED, Alias, InferRule, Operand
from ..registry import call, define
from ..surface import Attr, surface
from ..windows import number
from .collectives import (
    RW,
    SIGNAL,
    TARGET,
    W,
    all_to_all_rule,
    all_to_all_v_rule,
    allgather_rule,
    allreduce_rule,
    barrier_rule,
    broadcast_rule,
    check_reduce,
    reduce_scatter_rule,
)
from .common import signal_of, unsupported, window_bound

INPUT = Operand("input", "dist")
SRC = Operand("src", "dist", "destination")
OP: Any = (int, REQUIRED)
DTYPE: Any = (DataType, REQUIRED)


def _ring_rule(op: str) -> InferRule:
    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        if len(args) != 2:
            raise ValueError(f"{op} requires exactly 2 arguments, but got {len(args)}")
        source, signal = window_bound(op, args, 0, "src"), signal_of(op, args, 1)
        check_reduce(op, kwargs, only_sum=True)
        if source.dtype is not DataType.FP32 or any(number(dim) is None for dim in source.shape):
            raise ValueError(f"{op}: src must be a static FP32 window")
        dims = [number(dim) for dim in signal.shape]
        if len(dims) != 2 or dims[0] is None or dims[1] is None or dims[0] != 2 * (dims[1] - 1) + 1 or dims[1] > 16:
            raise ValueError(f"{op}: signal must be [2*(NR-1)+1, NR] with NR <= 16")
        return source

    return infer


def _checked(
    op: str,
    rule: InferRule,
    *,
    ranks: Mapping[int, Sequence[int]],
    fp32: int | None = None,
    windows: Sequence[int] = (),
) -> InferRule:
    """The rule of the collective, with the stricter demands of its chip program."""

    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        result = rule(args, kwargs)
        for index, allowed in ranks.items():
            if index < len(args):
                kind: Any = args[index].type
                if len(kind.shape) not in allowed:
                    raise ValueError(f"{op}: operand {index} must have rank {allowed[0]}, got {len(kind.shape)}")
        if fp32 is not None:
            target: Any = args[fp32].type
            if target.dtype is not DataType.FP32:
                raise ValueError(f"{op}: target dtype must be FP32, got {target.dtype}")
        for index in windows:
            if type(args[index].type) is not DistributedTensorType:
                window_bound(op, args, index, "operand")
        return result

    return infer


def _builtin(
    name: str,
    operands: Sequence[Operand],
    infer: InferRule,
    effects: Mapping[int, ArgEffect],
    target: int,
    kwargs: Mapping[str, Any],
) -> None:
    define(
        f"builtin.tensor.{name}",
        operands,
        infer,
        doc="the chip program of a host collective",
        kwargs=kwargs,
        reference=unsupported,
        effects=effects,
        alias=Alias.IS,
        alias_operand=target,
        pure=False,
        internal=True,
        priority="full",
    )

    def printed(*operands: Expr, op: Attr = None, dtype: Attr = None, core_num: Attr = None, root: Attr = None) -> Expr:
        return call(f"builtin.tensor.{name}", *operands, op=op, dtype=dtype, core_num=core_num, root=root)

    surface("ir.builtin.tensor", name=name)(printed)


_P = "builtin.tensor."
_builtin(
    "allreduce",
    [SRC, SIGNAL],
    _checked(_P + "allreduce", allreduce_rule(_P + "allreduce"), ranks={1: (1, 2)}),
    {0: RW, 1: RW},
    0,
    {"op": OP, "dtype": DTYPE, "core_num": OP},
)
_builtin(
    "allreduce_ring",
    [SRC, SIGNAL],
    _ring_rule(_P + "allreduce_ring"),
    {0: RW, 1: RW},
    0,
    {"op": OP, "dtype": DTYPE},
)
_builtin("barrier", [SIGNAL], _checked(_P + "barrier", barrier_rule(_P + "barrier"), ranks={0: (1,)}), {0: RW}, 0, {})
_builtin(
    "broadcast",
    [TARGET, SIGNAL],
    _checked(_P + "broadcast", broadcast_rule(_P + "broadcast"), ranks={1: (1,)}, fp32=0),
    {0: RW, 1: RW},
    0,
    {"root": OP, "dtype": DTYPE},
)
_builtin(
    "reduce_scatter",
    [TARGET, SIGNAL],
    _checked(_P + "reduce_scatter", reduce_scatter_rule(_P + "reduce_scatter"), ranks={1: (1,)}, fp32=0),
    {0: RW, 1: RW},
    0,
    {"op": OP, "dtype": DTYPE},
)
_builtin(
    "allgather",
    [INPUT, TARGET, SIGNAL],
    _checked(_P + "allgather", allgather_rule(_P + "allgather", dist_input=True), ranks={}, fp32=1),
    {1: W, 2: RW},
    1,
    {"dtype": DTYPE},
)
_builtin(
    "all_to_all",
    [INPUT, TARGET, SIGNAL],
    _checked(_P + "all_to_all", all_to_all_rule(_P + "all_to_all"), ranks={}, fp32=1, windows=(0,)),
    {1: W, 2: RW},
    1,
    {"dtype": DTYPE},
)
_builtin(
    "all_to_all_v",
    [INPUT, TARGET, SIGNAL, Operand("send_counts", "dist"), Operand("recv_counts", "dist", "destination")],
    _checked(_P + "all_to_all_v", all_to_all_v_rule(_P + "all_to_all_v"), ranks={}, windows=(0, 3)),
    {1: W, 2: RW, 4: W},
    1,
    {"dtype": DTYPE},
)
