"""Synchronisation, caches and the device's geometry. Numerically these do nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..ir.dtype import DataType
from ..ir.enums import ArgEffect
from ..ir.expr import Expr
from ..ir.type import ScalarType, Type, UnknownType
from .definition import REQUIRED, UNSET, InferRule, Operand
from .normalize import const_value, extents, typed_constant
from .registry import call, define
from .rules import OperandKindError, require_args, tensor_type
from .surface import Attr, Extents, level_of, surface
from .surface import Operand as Arg
from .windows import number, tuple_operand

D = DataType
NO_VALUE: Type = UnknownType()
CORE_TYPES = ("mix", "aic_only", "aiv_only")


def _nothing(ctx: Any, *_args: Any, **_kwargs: Any) -> None:
    return None


def _no_operands(op: str) -> InferRule:
    def infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 0)
        return NO_VALUE

    return infer


# --- barriers, flags --------------------------------------------------------------------------------------------------

for _name, _doc in (
    ("bar_v", "wait for the vector pipe"),
    ("bar_m", "wait for the cube pipe"),
    ("bar_all", "wait for all pipes"),
    ("fence", "order accesses to global memory"),
):
    define(
        f"system.{_name}",
        [],
        _no_operands(f"system.{_name}"),
        doc=_doc,
        reference=_nothing,
        pure=False,
        priority="full" if _name == "fence" else "core",
    )

for _name in ("sync_src", "sync_dst"):
    define(
        f"system.{_name}",
        [],
        _no_operands(f"system.{_name}"),
        doc="order two pipes of a core by an event",
        kwargs={"set_pipe": (int, REQUIRED), "wait_pipe": (int, REQUIRED), "event_id": (int, REQUIRED)},
        reference=_nothing,
        pure=False,
        priority="full",
    )


def _bare(op: str) -> Any:
    def function() -> Expr:
        return call(op)

    return function


for _name in ("bar_v", "bar_m", "bar_all", "fence"):
    surface("system", name=_name)(_bare(f"system.{_name}"))


@surface("system")
def sync_src(*, set_pipe: Attr, wait_pipe: Attr, event_id: Attr) -> Expr:
    """Signal an event from one pipe to another."""
    return call("system.sync_src", set_pipe=set_pipe, wait_pipe=wait_pipe, event_id=event_id)


@surface("system")
def sync_dst(*, set_pipe: Attr, wait_pipe: Attr, event_id: Attr) -> Expr:
    """Wait for an event from another pipe."""
    return call("system.sync_dst", set_pipe=set_pipe, wait_pipe=wait_pipe, event_id=event_id)


def _event_infer(op: str) -> InferRule:
    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 0, 1)
        static = kwargs.get("event_id")
        if (static is None) == (not args):
            raise ValueError(f"{op} requires exactly one of a static event_id and a run-time event id")
        if static is not None and not 0 <= static <= 13:
            raise ValueError(f"{op}: event_id {static} is outside the user-available range 0..13")
        if args:
            kind = args[0].type
            if type(kind) is not ScalarType or kind.dtype is not D.INDEX:
                raise OperandKindError(f"{op} requires the run-time event id to be an INDEX scalar, but got {kind}")
        if kwargs.get("ffts_mode", 0) not in (0, 1, 2):
            raise ValueError(f"{op}: ffts_mode must be 0, 1 or 2, got {kwargs['ffts_mode']}")
        if kwargs.get("core_type", "aic") not in ("aic", "aiv"):
            raise ValueError(f"{op}: core_type must be 'aic' or 'aiv', got {kwargs['core_type']!r}")
        return NO_VALUE

    return infer


for _name, _more in (("sync_set", {"ffts_mode": (int, UNSET)}), ("sync_wait", {})):
    define(
        f"system.{_name}",
        [Operand("event_id_dyn", "scalar", optional=True)],
        _event_infer(f"system.{_name}"),
        doc="signal the other cores" if _name == "sync_set" else "wait for the signal of another core",
        kwargs={"pipe": (int, REQUIRED), "event_id": (int, UNSET), **_more, "core_type": (str, UNSET)},
        reference=_nothing,
        pure=False,
        priority="full",
    )


def _event(op: str, event_id: Any, pipe: Any, **kwargs: Any) -> Expr:
    value = const_value(event_id)
    if isinstance(value, int):
        return call(op, pipe=pipe, event_id=value, **kwargs)
    if not isinstance(event_id, Expr):
        raise TypeError(f"{op}: event_id must be an int or an INDEX scalar, got {type(event_id).__name__}")
    return call(op, event_id, pipe=pipe, **kwargs)


@surface("system")
def sync_set(event_id: Arg, *, pipe: Attr, ffts_mode: Attr = None, core_type: Attr = None) -> Expr:
    """Signal the other cores."""
    return _event("system.sync_set", event_id, pipe, ffts_mode=ffts_mode, core_type=core_type)


@surface("system")
def sync_wait(event_id: Arg, *, pipe: Attr, core_type: Attr = None) -> Expr:
    """Wait for the signal of another core."""
    return _event("system.sync_wait", event_id, pipe, core_type=core_type)


def _set_ffts_infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
    op = "system.set_ffts"
    require_args(op, args, 1)
    kind = tensor_type(op, args, 0)
    size = number(kind.shape[0]) if len(kind.shape) == 1 else None
    if kind.dtype is not D.INT64 or len(kind.shape) != 1 or size is None or size < 256:
        raise ValueError(f"{op} requires a 1-D INT64 workspace with a static length of at least 256, but got {kind}")
    return NO_VALUE


define(
    "system.set_ffts",
    [Operand("workspace", "window")],
    _set_ffts_infer,
    doc="declare the workspace of cross-core flags",
    reference=_nothing,
    effects_declared=True,
    pure=False,
    priority="full",
)


@surface("system")
def set_ffts(workspace: Arg) -> Expr:
    """Declare the workspace of cross-core flags."""
    return call("system.set_ffts", workspace)


# --- syncall ----------------------------------------------------------------------------------------------------------


def _syncall_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    op = "system.syncall"
    mode, core_type = kwargs.get("mode", "hard"), kwargs.get("core_type", "mix")
    if core_type not in CORE_TYPES:
        raise ValueError(f"{op}: core_type must be one of {', '.join(CORE_TYPES)}, got {core_type!r}")
    if mode not in ("hard", "soft"):
        raise ValueError(f"{op}: mode must be 'hard' or 'soft', got {mode!r}")
    if mode == "hard":
        if args:
            raise ValueError(f"{op} with mode='hard' takes no workspace")
        return NO_VALUE
    require_args(op, args, 1, 2)
    kind = tensor_type(op, args, 0)
    size = 1
    for dim in kind.shape:
        size = -1 if number(dim) is None or size < 0 else size * (number(dim) or 0)
    if kind.dtype is not D.INT32 or 0 <= size < 16:
        raise ValueError(f"{op} requires a gm_workspace of at least 16 INT32 elements, but got {kind}")
    if len(args) == 2:
        cores = args[1].type
        if type(cores) is not ScalarType or cores.dtype is not D.INT32:
            raise OperandKindError(f"{op} requires used_cores to be an INT32 scalar, but got {cores}")
    return NO_VALUE


define(
    "system.syncall",
    [Operand("gm_workspace", "window", optional=True), Operand("used_cores", "scalar", optional=True)],
    _syncall_infer,
    doc="a barrier of all participating cores",
    kwargs={"core_type": (str, "mix"), "mode": (str, "hard")},
    reference=_nothing,
    effects={0: lambda kwargs: ArgEffect.ReadWrite if kwargs.get("mode") == "soft" else ArgEffect.Read},
    pure=False,
    printed="syncall",
    priority="full",
)


@surface("system", ir=False)
def syncall(*, core_type: Attr = "mix", mode: Attr = "hard", gm_workspace: Arg = None, used_cores: Arg = None) -> Expr:
    """A barrier of all participating cores."""
    if mode == "soft":
        if gm_workspace is None:
            raise ValueError("syncall: mode='soft' requires gm_workspace")
        if used_cores is None:
            raise ValueError("syncall: mode='soft' requires an explicit used_cores (0: all)")
        return syncall_soft(core_type, gm_workspace, used_cores)
    if mode != "hard":
        raise ValueError(f"syncall: mode must be 'hard' or 'soft', got {mode!r}")
    if gm_workspace is not None or used_cores is not None:
        raise ValueError("syncall: mode='hard' takes no gm_workspace and no used_cores")
    return ir_syncall(core_type=core_type)


@surface("ir.system", name="syncall")
def ir_syncall(*, core_type: Attr = "mix") -> Expr:
    """A hardware barrier."""
    return call("system.syncall", core_type=core_type, mode="hard")


@surface("ir.system", name="syncall_soft")
def syncall_soft(core_type: Attr, gm_workspace: Arg, used_cores: Arg = None) -> Expr:
    """A barrier through a workspace in global memory."""
    cores = const_value(used_cores)
    more: tuple[Expr, ...] = ()
    if isinstance(cores, float) or isinstance(used_cores, bool):
        raise TypeError("syncall: used_cores must be an integer")
    if cores is not None:
        if not 0 <= cores < 2**31:
            raise ValueError(f"syncall: used_cores {cores} is out of range")
        more = (typed_constant(cores, D.INT32),) if cores else ()
    elif used_cores is not None:
        if level_of(used_cores) != "scalar":
            raise TypeError("syncall: used_cores must be an int or an INT32 scalar")
        more = (used_cores,)
    return call("system.syncall", gm_workspace, *more, core_type=core_type, mode="soft")


# --- cacheinvalid -----------------------------------------------------------------------------------------------------


def _cacheinvalid_infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
    op = "system.cacheinvalid"
    if not args:
        return NO_VALUE
    require_args(op, args, 3)
    kind = tensor_type(op, args, 0)
    for i, what in ((1, "shapes"), (2, "offsets")):
        entries = tuple_operand(op, args, i, what)
        if len(entries) != len(kind.shape):
            raise ValueError(f"{op} requires one entry of {what} per dimension ({len(kind.shape)}), got {len(entries)}")
    return NO_VALUE


define(
    "system.cacheinvalid",
    [Operand("tensor", "window", optional=True), Operand("shapes", "tuple", "shape", optional=True),
     Operand("offsets", "tuple", "index", optional=True)],
    _cacheinvalid_infer,
    doc="drop cached lines of global memory",
    reference=_nothing,
    pure=False,
    priority="full",
)  # fmt: skip


@surface("system")
def cacheinvalid(tensor: Arg = None, shapes: Extents = None, offsets: Extents = None) -> Expr:
    """Drop cached lines of global memory: all, or those of a window."""
    given = [value is not None for value in (tensor, shapes, offsets)]
    if not any(given):
        return call("system.cacheinvalid")
    if not all(given):
        raise ValueError("cacheinvalid takes no operand, or tensor, shapes and offsets together")
    return call("system.cacheinvalid", tensor, extents(shapes), extents(offsets))


# --- geometry of the device -------------------------------------------------------------------------------------------


def _count_infer(op: str) -> InferRule:
    def infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 0)
        return ScalarType(D.INT32)

    return infer


def _count(name: str, fallback: int) -> Any:
    def reference(ctx: Any) -> int:
        ask = getattr(ctx.runtime, name, None)
        return int(ask()) if ask is not None else fallback

    return reference


for _name, _fallback, _doc in (
    ("available_cluster_count", 1, "clusters that a launch can use"),
    ("available_aiv_count", 2, "vector cores that a launch can use"),
):
    define(
        f"system.{_name}",
        [],
        _count_infer(f"system.{_name}"),
        doc=_doc,
        reference=_count(_name, _fallback),
        priority="full",
    )
    surface("system", name=_name)(_bare(f"system.{_name}"))
