"""What leaves a loop body early: ``break`` and ``continue``, and the values that the loop's carries go on with then.

A loop that carries values by ``yield`` names the next values at the end of its body. An escape in front of that end
goes on with what is known there: an operand of the yield whose value the iteration has computed already, and otherwise
the value that the iteration began with.
"""

from __future__ import annotations

from typing import Any

from ..ir.expr import Expr, IterArg, Var
from ..ir.stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    ScopeStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
)
from ..ir.traversal import walk
from ..ir.tree import get_last_yield_stmt, stmt_children

ESCAPES: tuple[type[Stmt], ...] = (BreakStmt, ContinueStmt)
_PARENTS = (SeqStmts, IfStmt, ForStmt, WhileStmt)


def has_escapes(body: Stmt) -> bool:
    """Whether there is a ``break`` or ``continue`` anywhere in a tree of statements."""
    stack = [body]
    while stack:
        stmt = stack.pop()
        kind = type(stmt)
        if kind is SeqStmts:
            stack.extend(stmt.stmts)  # type: ignore[attr-defined]
        elif kind in ESCAPES:
            return True
        elif kind in _PARENTS or isinstance(stmt, ScopeStmt):
            stack.extend(stmt_children(stmt))
    return False


def leaves_its_loop(body: Stmt) -> bool:
    """Whether ``body`` holds an escape of a loop around it."""
    stack = [body]
    while stack:
        stmt = stack.pop()
        if type(stmt) in ESCAPES:
            return True
        if not isinstance(stmt, (ForStmt, WhileStmt)):
            stack.extend(stmt_children(stmt))
    return False


def carried_at_escapes(loop: Any) -> dict[Stmt, list[Expr]]:
    """For each reachable escape of a loop the values that its carries go on with; empty if it yields none.

    Operand j of the yield, if it is an iter arg or a variable that is assigned on every path from the start of the
    iteration to the escape (also as a result of a branch or of an inner loop); for ``continue`` also an expression over
    such variables. Otherwise iter arg j.
    """
    if not loop.iter_args:
        return {}
    last = get_last_yield_stmt(loop.body)
    if last is None or len(last.value) != len(loop.iter_args):
        return {}
    search = _Availability(loop.iter_args, last.value)
    search.run(loop.body)
    return search.found


class _Availability:
    """Walks a loop body once, without going into inner loops: what these assign may not be assigned at all."""

    def __init__(self, iter_args: list[IterArg], operands: list[Expr]) -> None:
        self.found: dict[Stmt, list[Expr]] = {}
        self._iter_args = iter_args
        self._operands = [
            (arg, operand, [v for v in walk(operand) if isinstance(v, Var)])
            for arg, operand in zip(iter_args, operands, strict=True)
        ]
        self._wanted = {v for _, _, variables in self._operands for v in variables}
        self._available: set[Var] = set(iter_args)
        self._trail: list[Var] = []  # what became available, in order, so that a branch can take it back

    def _assign(self, var: Var) -> None:
        if var in self._wanted and var not in self._available:
            self._available.add(var)
            self._trail.append(var)

    def _take_back(self, mark: int) -> list[Var]:
        inside = self._trail[mark:]
        del self._trail[mark:]
        self._available.difference_update(inside)
        return inside

    def _escape(self, stmt: Stmt) -> None:
        values: list[Expr] = []
        for arg, operand, variables in self._operands:
            known = isinstance(operand, Var) or type(stmt) is ContinueStmt
            values.append(operand if known and all(v in self._available for v in variables) else arg)
        earlier = self.found.get(stmt)
        if earlier is not None:  # one statement object in two places: what holds in both
            values = [a if a is b else arg for a, b, arg in zip(earlier, values, self._iter_args, strict=True)]
        self.found[stmt] = values

    def run(self, stmt: Any) -> bool:
        """Whether the end of the statement can be reached."""
        kind = type(stmt)
        if kind is AssignStmt:
            self._assign(stmt.var)
        elif kind is SeqStmts:
            return all(self.run(inner) for inner in stmt.stmts)
        elif kind is IfStmt:
            return self._if(stmt)
        elif kind is ForStmt or kind is WhileStmt:
            for var in stmt.return_vars:
                self._assign(var)
        elif kind in ESCAPES:
            self._escape(stmt)
            return False
        elif isinstance(stmt, ScopeStmt):
            if not self.run(stmt.body):
                return False
            task_id = stmt.attrs.get("task_id_var")
            if task_id is not None:
                self._assign(task_id)
        return kind is not ReturnStmt

    def _if(self, stmt: IfStmt) -> bool:
        mark = len(self._trail)
        then_ends = self.run(stmt.then_body)
        then = self._take_back(mark)
        else_ends = stmt.else_body is None or self.run(stmt.else_body)
        other = self._take_back(mark)
        if then_ends and else_ends:
            both = set(other)
            then = [var for var in then if var in both]
        elif else_ends:
            then = other
        elif not then_ends:
            return False
        for var in (*then, *stmt.return_vars):
            self._assign(var)
        return True


__all__ = ["ESCAPES", "carried_at_escapes", "has_escapes", "leaves_its_loop"]
