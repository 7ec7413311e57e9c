"""How each carry of the loops of a function has to be kept: as another name, in a variable, in an array of task ids.

A *trivial* carry is the same object in all iterations and behind the loop, so it needs no variable of its own; any
other is a *rebind*. A task id always is one, since every iteration launches a new task. Inside a manual scope of the
user one id is not enough for a parallel loop, whose iterations run side by side: it needs one for each, and so does a
sequential loop that hands on what a loop inside gives.

The answer covers ``for`` and ``while`` alike. See spec 06 section 12.
"""

from __future__ import annotations

from typing import Any

from ..ir.enums import ForKind
from ..ir.expr import Var
from ..ir.program import Function
from ..ir.stmt import ForStmt, RuntimeScopeStmt, WhileStmt
from ..ir.tree import get_last_yield_stmt, stmt_children
from ..ir.type import TASK_ID_TYPE
from .callees import Callees
from .constants import static_trip_count
from .task_marks import is_compiler_owned

Loop = ForStmt | WhileStmt


def is_user_manual(stmt: Any) -> bool:
    """Whether a statement is a manual scope that the user wrote.

    In one of the compiler's, ids are edges that the compiler found, which are collected apart.
    """
    return type(stmt) is RuntimeScopeStmt and stmt.manual and not is_compiler_owned(stmt)


class Carries:
    """The carries of one function in SSA form.

    ``loops``: those that carry values, outer ones first; ``unsized``: parallel loops among them that would need an
    array of ids, but whose number of iterations is not known.
    """

    def __init__(self, function: Function, callees: Callees) -> None:
        self.loops: list[Loop] = []
        self.unsized: list[ForStmt] = []
        self._sizes: dict[Var, int] = {}  # by the result of the loop
        manual: dict[Loop, bool] = {}
        stack: list[tuple[Any, bool]] = [(function.body, False)]
        while stack:
            stmt, inside = stack.pop()
            if isinstance(stmt, Loop) and stmt.iter_args:
                self.loops.append(stmt)
                manual[stmt] = inside
            inside = inside or is_user_manual(stmt)
            stack += [(child, inside) for child in reversed(stmt_children(stmt))]
        if not self.loops:
            return
        self._names = callees.names(function)
        for loop in reversed(self.loops):  # inner loops before those around them
            if manual[loop]:
                self._size_slots(loop)
        self.unsized.reverse()

    def is_rebind(self, loop: Loop, slot: int) -> bool:
        """Whether a carry needs a variable of its own."""
        return not self._names.is_trivial(loop, slot)

    def array_size(self, loop: Loop, slot: int) -> int:
        """How many task ids a carry holds; 0 for a single value."""
        return self._sizes.get(loop.return_vars[slot], 0)

    def slots(self, loop: Loop) -> list[tuple[bool, int]]:
        """Both answers for each slot of a loop."""
        return [(self.is_rebind(loop, i), self.array_size(loop, i)) for i in range(len(loop.iter_args))]

    def _size_slots(self, loop: Loop) -> None:
        ids = [i for i, arg in enumerate(loop.iter_args) if arg.type is TASK_ID_TYPE]
        if not ids:
            return
        if type(loop) is ForStmt and loop.kind is ForKind.Parallel:
            trips = static_trip_count(loop.start, loop.stop, loop.step)
            if trips is None:
                self.unsized.append(loop)
                return
            for i in ids:
                self._sizes[loop.return_vars[i]] = trips
            return
        last = get_last_yield_stmt(loop.body)
        for i in ids if last is not None else ():
            inner = self._names.representative(last.value[i])  # type: ignore[union-attr]
            size = self._sizes.get(inner, 0) if inner is not None else 0
            if size:
                self._sizes[loop.return_vars[i]] = size


__all__ = ["Carries", "is_user_manual"]
