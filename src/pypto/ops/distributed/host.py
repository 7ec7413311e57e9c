"""Intrinsics of the generated host program: their types are of no interest to the compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...ir.expr import Expr
from ...ir.type import Type
from ..definition import Operand
from ..registry import define
from .common import NO_VALUE, unsupported


def _infer(_args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
    return NO_VALUE


for _name, _operands in (
    ("make_tensor", ("rt", "count")),
    ("tree_reduce", ("rt", "leaves")),
    ("submit_worker", ("rt",)),
    ("submit_orchestrator", ("rt",)),
    ("future_get", ("future",)),
):
    define(
        f"dist.{_name}",
        [Operand(operand, "any") for operand in _operands],
        _infer,
        doc="host runtime intrinsic",
        reference=unsupported,
        pure=False,
        priority="full",
    )
