"""Task ids of the orchestrator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..ir.dtype import DataType
from ..ir.expr import Expr
from ..ir.type import BOOL_TYPE, TASK_ID_TYPE, ScalarType, Type
from .definition import Category, InferRule, Operand
from .registry import call, define
from .rules import OperandKindError, require_args
from .surface import Attr, surface
from .surface import Operand as Arg


def _constant(op: str, kind: Type) -> InferRule:
    def infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 0)
        return kind

    return infer


def _is_valid_infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
    op = "system.task_is_valid"
    require_args(op, args, 1)
    kind = args[0].type
    if type(kind) is not ScalarType or kind.dtype is not DataType.TASK_ID:
        raise OperandKindError(f"{op} requires a TASK_ID scalar, but got {kind}")
    return BOOL_TYPE


def _is_valid(ctx: Any, task_id: Any) -> bool:
    null = ctx.runtime.task_invalid() if ctx.runtime is not None else None
    return task_id is not None and task_id is not null and bool(task_id != null)


define(
    "system.task_invalid",
    Category.TASK,
    [],
    _constant("system.task_invalid", TASK_ID_TYPE),
    doc="the null task id",
    reference=lambda ctx: ctx.runtime.task_invalid() if ctx.runtime is not None else None,
)
define(
    "system.task_dummy",
    Category.TASK,
    [],
    _constant("system.task_dummy", TASK_ID_TYPE),
    doc="a task id that completes after its deps, which ride on the call's attribute manual_dep_edges",
    reference=None,  # the interpreter reads the attribute
    pure=False,
    printed="task_dummy",
)
define(
    "system.task_is_valid",
    Category.TASK,
    [Operand("task_id", "scalar")],
    _is_valid_infer,
    doc="whether a task id is not null",
    reference=_is_valid,
)


@surface("system")
def task_invalid() -> Expr:
    """The null task id."""
    return call("system.task_invalid")


@surface("system", ir=False)
def task_dummy(*, deps: Attr) -> Expr:
    """A barrier task; only the parser can make one, since its dependencies are variables of the program."""
    raise RuntimeError("pl.system.task_dummy(deps=[...]) can only be used inside a parsed function")


def _marker(name: str, doc: str) -> None:
    def marked(tensor: Arg) -> Arg:
        return tensor

    marked.__name__, marked.__doc__ = name, doc
    surface("tensor", name=name, ir=False)(marked)


# Only the front end gives these a meaning; by themselves they are the tensor.
_marker("no_dep", "Marks an argument of a launch that takes no part in automatic dependencies.")
_marker("dump_tag", "Marks a tensor to be dumped.")


@surface("ir.system", name="task_is_valid")
def _task_is_valid(task_id: Arg) -> Expr:
    """Whether a task id is not null; the compiler makes it."""
    return call("system.task_is_valid", task_id)
