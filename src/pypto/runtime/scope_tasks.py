"""What a kernel scope reads and writes of the tensors around it, and what it leaks: the arguments of its task."""

from __future__ import annotations

from collections.abc import Mapping

from ..analysis.effects import TensorEffects, tensor_effects
from ..ir import stmt as st
from ..ir.expr import Var
from ..ir.program import Function
from .graph import Tag


class ScopeSummary:
    """``accesses``: outer tensor variable -> tag. ``leaks``: variable assigned inside -> the outer tensor that it
    names, or None for a value of its own. ``deferrable``: everything leaked is known before the scope runs."""

    __slots__ = ("accesses", "deferrable", "leaks")

    def __init__(self, accesses: dict[Var, Tag], leaks: dict[Var, Var | None], deferrable: bool) -> None:
        self.accesses = accesses
        self.leaks = leaks
        self.deferrable = deferrable


def summarize(body: st.Stmt, functions: Mapping[str, Function]) -> ScopeSummary:
    """The summary of a scope body."""
    effects: TensorEffects = tensor_effects(body, functions)
    accesses: dict[Var, Tag] = {}
    for var in effects.order:
        reads, writes = var in effects.reads, var in effects.writes
        if writes:
            accesses[var] = Tag.SOURCE_WRITE
        elif reads:
            accesses[var] = Tag.INPUT
    return ScopeSummary(accesses, effects.leaks, effects.known)
