"""Ops that exist so that tests can exercise the registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..diag.errors import InternalError
from ..ir.expr import Expr
from ..ir.type import Type
from .definition import UNSET, Operand
from .registry import define
from .rules import require_args, tensor_type


def _like_first(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
    require_args("test.op", args, 2)
    return args[0].type


def _raise_internal(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
    raise InternalError("test.deduce_raises_internal always fails")


def _raise_type(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
    raise TypeError("test.deduce_raises_type always fails")


def _no_conversion(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
    require_args("test.tensor_op_no_conv", args, 1)
    return tensor_type("test.tensor_op_no_conv", args, 0, plain=True)


define(
    "test.op",
    [Operand("arg1", "any"), Operand("arg2", "any")],
    _like_first,
    kwargs={"int_attr": (int, UNSET), "string_attr": (str, UNSET), "bool_attr": (bool, UNSET)},
    reference=lambda ctx, arg1, arg2, **_: arg1,
    priority="rare",
)
define("test.deduce_raises_internal", [Operand("x", "any")], _raise_internal, priority="rare")
define("test.deduce_raises_type", [Operand("x", "any")], _raise_type, priority="rare")
define(
    "test.tensor_op_no_conv",
    [Operand("x", "tensor")],
    _no_conversion,
    reference=lambda ctx, x: x,
    priority="rare",
)
