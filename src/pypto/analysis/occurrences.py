"""Where the variables of a function occur, as positions in reading order, and which part of it each loop covers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

from ..ir.expr import Expr, Var
from ..ir.node import Kind, Role
from ..ir.program import Function
from ..ir.stmt import AssignStmt, ForStmt, IfStmt, ScopeStmt, SeqStmts, Stmt, WhileStmt
from ..ir.traversal import attrs_expressions, child_fields, own_type_expressions, walk
from ..ir.type_fields import PLAIN_TYPES


class Occurrences:
    """Positions of definitions and uses, also those in attributes and types. One walk over the function.

    ``first``/``last``: the positions of a variable's first and last occurrence. ``definitions``: those of its
    definitions, ascending; ``last_use``: of its last use, which may be behind or in one of these. ``extent``: the first
    and the last position of a loop.
    """

    def __init__(self, function: Function) -> None:
        self.first: dict[Var, int] = {}
        self.last: dict[Var, int] = {}
        self.last_use: dict[Var, int] = {}
        self.definitions: dict[Var, list[int]] = {}
        self.extent: dict[Stmt, tuple[int, int]] = {}
        self._position = 0
        # The regions (function, loop body, branch) of first definitions, and where each region ends.
        self._home: dict[Var, int] = {}
        self._region_end: list[int] = [0]
        self._region = 0
        self._use([*own_type_expressions(function), *attrs_expressions(function.attrs)])
        self._define(function.params)
        self._stmt(function.body)
        self._region_end[0] = self._position

    def occurs_outside(self, var: Var, loop: Stmt) -> bool:
        """Whether a variable occurs anywhere but in a loop."""
        begin, end = self.extent[loop]
        return var in self.first and (self.first[var] < begin or self.last[var] > end)

    def defined_inside(self, var: Var, loop: Stmt) -> bool:
        """Whether the body of a loop assigns a variable."""
        begin, end = self.extent[loop]
        found = self.definitions.get(var, ())
        index = bisect_right(found, begin)
        return index < len(found) and found[index] < end

    def life(self, var: Var) -> tuple[int, int]:
        """The first and last position at which the value of a variable may matter.

        The first is -1 when an occurrence is not dominated by the variable's first definition: such a value may come
        from an earlier iteration of any loop around it.
        """
        home = self._home.get(var)
        last = self.last[var]
        if home is None or last > self._region_end[home]:
            return -1, last
        return self.first[var], last

    # --- the walk -----------------------------------------------------------------------------------------------------

    def _touch(self, root: Expr) -> None:
        if type(root) is Var and type(root.type) in PLAIN_TYPES:
            self.first.setdefault(root, self._position)
            self.last[root] = self.last_use[root] = self._position
            return
        for node in walk(root, types=True):
            if isinstance(node, Var):
                self.first.setdefault(node, self._position)
                self.last[node] = self.last_use[node] = self._position

    def _use(self, roots: Iterable[Expr]) -> None:
        for root in roots:
            self._touch(root)

    def _define(self, variables: Iterable[Var]) -> None:
        for var in variables:
            if var not in self.first:
                self._home[var] = self._region
            used = self.last_use.get(var, -1)
            self._touch(var)
            self.last_use[var] = used
            self.definitions.setdefault(var, []).append(self._position)

    def _inside(self, body: Stmt, variables: Iterable[Var] = ()) -> None:
        outer = self._region
        self._region = len(self._region_end)
        self._region_end.append(0)
        self._define(variables)
        self._stmt(body)
        self._region_end[self._region] = self._position
        self._region = outer

    def _stmt(self, stmt: Any) -> None:
        kind = type(stmt)
        if kind is SeqStmts:
            for inner in stmt.stmts:
                self._stmt(inner)
            return
        self._position += 1
        if kind is AssignStmt:
            self._touch(stmt.value)
            self._define((stmt.var,))
        elif kind is IfStmt:
            self._touch(stmt.condition)
            self._inside(stmt.then_body)
            if stmt.else_body is not None:
                self._inside(stmt.else_body)
            self._position += 1
            self._define(stmt.return_vars)
        elif kind is ForStmt or kind is WhileStmt:
            self._loop(stmt)
        elif isinstance(stmt, ScopeStmt):
            self._scope(stmt)
        else:
            self._own_uses(stmt)

    def _loop(self, stmt: Any) -> None:
        begin = self._position
        self._use([arg.initValue for arg in stmt.iter_args])
        inner = list(stmt.iter_args)
        if type(stmt) is ForStmt:
            self._use([stmt.start, stmt.stop, stmt.step, *attrs_expressions(stmt.attrs)])
            inner.append(stmt.loop_var)
        else:
            self._use([stmt.condition])
        self._inside(stmt.body, inner)
        self._position += 1
        self.extent[stmt] = begin, self._position
        self._define(stmt.return_vars)

    def _scope(self, stmt: ScopeStmt) -> None:
        self._own_uses(stmt)
        self._stmt(stmt.body)
        task_id = stmt.attrs.get("task_id_var")
        if task_id is not None:
            self._define((task_id,))

    def _own_uses(self, stmt: Stmt) -> None:
        for info in child_fields(type(stmt)):
            value = getattr(stmt, info.name)
            if info.kind is Kind.ATTRS:
                self._use(e for e in attrs_expressions(value) if e is not value.get("task_id_var"))
            elif info.role is Role.USE and value is not None and not isinstance(value, Stmt):
                self._use(value if info.kind is Kind.LIST else (value,))


__all__ = ["Occurrences"]
