"""Which buffer each tensor variable of a function names: the one answer for passes, verifiers and code generators.

A buffer is known by the variable that first names it: a parameter, what ``tensor.create`` or any other op with a result
of its own makes, an output that the runtime allocates for a launch. A view (slice, reshape, transpose) is a tensor of
its own, too, since it is another object for the runtime; ``views`` tells of what. Everything else is another name:
copies, what a function returns of its arguments, assembled targets, carries and results of branches as far as all that
flows into them names one buffer.

``BufferNames`` is :class:`.buffers.Buffers` for a whole function: the same edges, the same solution, in linear time.
"""

from __future__ import annotations

from typing import Any

from ..ir.call import Call
from ..ir.expr import Expr, Var
from ..ir.program import Function
from ..ir.stmt import ForStmt, WhileStmt
from ..ir.type import TensorType
from .buffers import Buffers
from .callees import Callees


class BufferNames(Buffers):
    """The buffers of a function in SSA form.

    ``views``: variable -> the call that makes it a view of its first operand.
    """

    def __init__(self, function: Function, callees: Callees) -> None:
        self.views: dict[Var, Call] = {}
        super().__init__(function.body, callees)

    def name(self, value: Any) -> Var | None:
        """The variable that a tensor's buffer is known by; None for what may be one buffer or another, and for what is
        no tensor variable."""
        if not isinstance(value, Var) or not isinstance(value.type, TensorType):
            return None
        return self.root(value)

    def is_trivial(self, loop: ForStmt | WhileStmt, slot: int) -> bool:
        """Whether a tensor carry is the same buffer in all iterations, and behind the loop."""
        arg = loop.iter_args[slot]
        first = self.name(arg.initValue)
        return first is not None and self.name(arg) is first

    def viewed(self, var: Var) -> Var | None:
        """The buffer that a variable is a view of, through views of views; the buffer itself for one that is none."""
        name = self.name(var)
        while name is not None and name in self.views:
            name = self.name(self.views[name].args[0])
        return name

    def sources(self, var: Var) -> list[Var]:
        """What a variable is another name or a view of, one step back on each path; nothing for a new buffer."""
        view = self.views.get(var)
        if view is not None:
            return [arg for arg in view.args[:1] if isinstance(arg, Var)]
        return [source for source, _ in self._sources.get(var, ()) if source is not None]

    def _define(self, var: Var, value: Expr) -> None:
        if isinstance(var.type, TensorType):
            found = self._of(value)
            if any(source is None or view for source, view in found):
                # Made here: a name of its own. (A carry or a branch result never gets here: what flows in are variables.)
                if type(value) is Call and any(view for _, view in found):
                    self.views[var] = value
                return
        super()._define(var, value)


__all__ = ["BufferNames"]
