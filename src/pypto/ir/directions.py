"""Directions of call arguments by short names, and calls that state them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .call import Call
from .enums import ArgDirection
from .expr_core import Expr, Op
from .span import UNKNOWN_SPAN, Span
from .type import Type

input = ArgDirection.Input
output = ArgDirection.Output
output_existing = ArgDirection.OutputExisting
inout = ArgDirection.InOut
no_dep = ArgDirection.NoDep
scalar = ArgDirection.Scalar


def make_call(
    op: Op,
    args: Sequence[Expr],
    *,
    directions: Sequence[ArgDirection] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    type: Type | None = None,
    span: Span | None = None,
) -> Call:
    """A call with one direction an argument; ``ValueError`` for another number of directions than arguments."""
    attrs = None
    if directions is not None:
        if len(directions) != len(args):
            raise ValueError(f"make_call: directions size ({len(directions)}) must match args length ({len(args)})")
        attrs = {"arg_directions": list(directions)}
    return Call(op, args, kwargs=kwargs, attrs=attrs, type=type, span=UNKNOWN_SPAN if span is None else span)


__all__ = ["ArgDirection", "inout", "input", "make_call", "no_dep", "output", "output_existing", "scalar"]
