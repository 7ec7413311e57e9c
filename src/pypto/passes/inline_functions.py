"""InlineFunctions: calls of Inline functions are replaced by their bodies, and the functions disappear.

Before::

    @pl.function(type=pl.FunctionType.Inline)
    def sum_diff(self, p, q):
        up = pl.tensor.add(p, q)
        dn = pl.tensor.sub(p, q)
        return up, dn
    @pl.function
    def run(self, a, b):
        h, l = self.sum_diff(a, b)
        return pl.tensor.mul(h, l)

After::

    @pl.function
    def run(self, a, b):
        up_inline0 = pl.tensor.add(a, b)
        dn_inline1 = pl.tensor.sub(a, b)
        h = up_inline0
        l = dn_inline1
        return pl.tensor.mul(h, l)

A call is expanded where it is the value of an assignment, a statement, the only value of a ``return``, or an argument
of another such call; anywhere else it stays, and the verifier reports it. Parameters stand for the argument
expressions (:mod:`pypto.passes.inlining.summary` says what becomes of those that the body assigns); an argument that
contains a call is evaluated once, into a local. Locals are made anew in each expansion and numbered through the
program, in the order of the text. A launch that the function returns stays a statement where nobody takes the result.

The pass works before SSA form, needs nothing and gives InlineFunctionsEliminated. Expansion goes from the callers
down, so each statement of the result is made once: the cost is linear in the output.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..ir.enums import FunctionType
from ..ir.program import Function, Program
from ..ir.recursion import deep_recursion
from ..verify.call_sites import call_sites
from ..verify.properties import IRProperty
from .base import Pass
from .errors import PassError
from .inlining.expansion import Expander


class InlineFunctions(Pass):
    """See the text of the module."""

    name = "InlineFunctions"
    produced = (IRProperty.InlineFunctionsEliminated,)

    def run(self, program: Program) -> Program:
        functions = list(program.functions.values())
        inline = {f.name: f for f in functions if f.func_type is FunctionType.Inline}
        if not inline:
            return program
        _refuse_cycles(inline)
        expander = Expander(program, inline)
        with deep_recursion():
            return program.with_functions([expander.expanded(f) for f in functions if f.name not in inline])


def inline_functions() -> Pass:
    """The pass that expands Inline functions."""
    return InlineFunctions()


def _refuse_cycles(inline: Mapping[str, Function]) -> None:
    """An Inline function that calls itself, also through others, has no finite expansion."""
    done: set[str] = set()
    for start in inline:
        path = [start]
        pending = [_calls_of(inline, start)]
        while pending:
            call = pending[-1].pop() if pending[-1] else None
            if call is None:
                pending.pop()
                done.add(path.pop())
            elif call.op.name in path:
                cycle = [*path[path.index(call.op.name) :], call.op.name]
                raise PassError(
                    f"Cycle detected in FunctionType::Inline call graph: {' -> '.join(cycle)}",
                    call.span,
                    hint="An Inline function is expanded at each call, so it can't call itself",
                )
            elif call.op.name not in done:
                path.append(call.op.name)
                pending.append(_calls_of(inline, call.op.name))


def _calls_of(inline: Mapping[str, Function], name: str) -> list[Any]:
    """The calls and submits of Inline functions in one of them, the last one first."""
    sites = call_sites(inline[name]).functions
    return [site.call for site in reversed(sites) if site.call.op.name in inline]


__all__ = ["InlineFunctions", "inline_functions"]
