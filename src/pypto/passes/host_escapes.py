"""Which loops of a host-side function can't keep their ``break`` and ``continue``.

Conversion to SSA turns a variable that a loop reassigns into a value that the loop carries, and the next value of a
carry is what the *end* of the body yields. A ``break`` that stays would leave with the value from the start of the
iteration. So a loop is lowered like those of kernels when, on the way to an escape, a variable is assigned whose value
may matter after that iteration, when a carry goes on with a value that the iteration computed, or when the escape
stands in a kernel scope that the loop is around. All others keep their escapes: the orchestration can print both.
"""

from __future__ import annotations

from typing import Any

from ..analysis.escapes import ESCAPES, carried_at_escapes
from ..analysis.occurrences import Occurrences
from ..ir.expr import Var
from ..ir.program import Function
from ..ir.stmt import (
    AssignStmt,
    ForStmt,
    IfStmt,
    InCoreScopeStmt,
    ScopeStmt,
    SeqStmts,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
)

KERNEL_SCOPES: tuple[type[Stmt], ...] = (InCoreScopeStmt, SpmdScopeStmt)

_Life = tuple[int, int]
_NOTHING: _Life = (1 << 60, -1)


def host_loops_to_lower(function: Function, occurrences: Occurrences) -> dict[Stmt, None]:
    """The loops outside of kernel scopes whose escapes must be lowered."""
    search = _Search(occurrences)
    search.stmt(function.body)
    return search.found


class _Search:
    def __init__(self, occurrences: Occurrences) -> None:
        self.found: dict[Stmt, None] = {}
        self._occurrences = occurrences
        self._loop: Any = None  # the innermost loop here
        self._in_kernel = False  # a kernel scope stands between it and here
        # The positions between which the values of the variables matter that this iteration may have assigned so far.
        self._assigned = _NOTHING

    def _assign(self, *variables: Var) -> None:
        for var in variables:
            self._assigned = _join(self._assigned, self._occurrences.life(var))

    def stmt(self, stmt: Any) -> None:
        kind = type(stmt)
        if kind is SeqStmts:
            for inner in stmt.stmts:
                self.stmt(inner)
        elif kind is AssignStmt:
            self._assign(stmt.var)
        elif kind is IfStmt:
            before = self._assigned
            self.stmt(stmt.then_body)
            then, self._assigned = self._assigned, before
            if stmt.else_body is not None:
                self.stmt(stmt.else_body)
            self._assigned = _join(self._assigned, then)
            self._assign(*stmt.return_vars)
        elif kind is ForStmt or kind is WhileStmt:
            self._visit_loop(stmt)
        elif kind in ESCAPES:
            self._escape()
        elif isinstance(stmt, ScopeStmt):
            outer, self._in_kernel = self._in_kernel, self._in_kernel or kind in KERNEL_SCOPES
            self.stmt(stmt.body)
            self._in_kernel = outer
            task_id = stmt.attrs.get("task_id_var")
            if task_id is not None:
                self._assign(task_id)

    def _visit_loop(self, loop: Any) -> None:
        outer = self._loop, self._in_kernel, self._assigned
        self._loop, self._in_kernel, self._assigned = loop, False, _NOTHING
        if type(loop) is ForStmt:
            self._assign(loop.loop_var)
        self.stmt(loop.body)
        inside = self._assigned
        self._loop, self._in_kernel, before = outer
        self._assigned = _join(before, inside)
        self._assign(*loop.return_vars)
        values = carried_at_escapes(loop)
        if any(value is not arg for found in values.values() for value, arg in zip(found, loop.iter_args, strict=True)):
            self.found[loop] = None

    def _escape(self) -> None:
        if self._loop is None:
            return
        begin, end = self._occurrences.extent[self._loop]
        first, last = self._assigned
        if self._in_kernel or first < begin or last > end:
            self.found[self._loop] = None


def _join(a: _Life, b: _Life) -> _Life:
    return min(a[0], b[0]), max(a[1], b[1])


__all__ = ["KERNEL_SCOPES", "host_loops_to_lower"]
