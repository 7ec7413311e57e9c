"""Edges that the compiler derived, when a program is interpreted: which tasks a variable stands for.

Such an edge names an id, the result of a launch, what a launch writes, or a result of a loop or branch. A result of a
loop stands for the tasks of all iterations, a carry for that of the iteration before. Nothing is noted in programs
without such edges.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from ..analysis.task_marks import EDGES
from ..ir import stmt as st
from ..ir.enums import ArgDirection
from ..ir.expr import Call, Submit, TupleGetItemExpr, Var
from ..ir.program import Program
from ..ir.traversal import walk
from .graph import Task

_LAUNCHES = (Call, Submit)
_CARRYING = (st.ForStmt, st.WhileStmt, st.IfStmt)
_WRITES = (ArgDirection.InOut, ArgDirection.Output, ArgDirection.OutputExisting)


_KNOWN: WeakKeyDictionary[Program, bool] = WeakKeyDictionary()


def has_derived_edges(program: Program) -> bool:
    """Whether any launch of a program has edges that the compiler derived."""
    known = _KNOWN.get(program)
    if known is None:
        known = any(type(node) in _LAUNCHES and EDGES in node.attrs for node in walk(program))
        _KNOWN[program] = known
    return known


class DerivedEdges:
    """The tasks behind variables, statement by statement."""

    def __init__(self) -> None:
        self.launched: Task | None = None  # by the statement that runs
        self._tasks: dict[Any, list[Task]] = {}
        self._open: list[tuple[Any, list[list[list[Task]]]]] = []  # loops and branches, with what they have yielded

    def of(self, edges: Any) -> list[Task]:
        """The tasks that edges stand for, beside those whose ids are values of the program."""
        return [task for edge in edges for task in self._tasks.get(edge, ())]

    def before(self, stmt: Any) -> None:
        """A statement begins."""
        self.launched = None
        if isinstance(stmt, _CARRYING):
            self._open.append((stmt, []))
            if type(stmt) is not st.IfStmt:
                for arg in stmt.iter_args:  # type: ignore[union-attr]
                    self._tasks[arg] = self._behind(arg.initValue)

    def after(self, stmt: Any) -> None:
        """A statement has run."""
        cls = type(stmt)
        if cls is st.AssignStmt:
            value = stmt.value
            if type(value) in _LAUNCHES and self.launched is not None:
                self._tasks[stmt.var] = [self.launched]
                for arg in _written(value):
                    self._tasks.setdefault(arg, [self.launched])
            else:
                root = value.tuple if type(value) is TupleGetItemExpr else value
                self._tasks[stmt.var] = self._behind(root)
        elif cls is st.EvalStmt and type(stmt.expr) in _LAUNCHES and self.launched is not None:
            for arg in _written(stmt.expr):
                self._tasks[arg] = [self.launched]
        elif cls is st.YieldStmt and self._open:
            self._yield(stmt)
        elif isinstance(stmt, _CARRYING):
            _, yielded = self._open.pop()
            for i, var in enumerate(stmt.return_vars):
                self._tasks[var] = [task for values in yielded if i < len(values) for task in values[i]]
        self.launched = None

    def _yield(self, stmt: st.YieldStmt) -> None:
        owner, yielded = self._open[-1]
        values = [self._behind(value) for value in stmt.value]
        yielded.append(values)
        if type(owner) is not st.IfStmt:
            for arg, tasks in zip(owner.iter_args, values, strict=False):
                self._tasks[arg] = tasks

    def _behind(self, value: Any) -> list[Task]:
        return self._tasks.get(value, []) if isinstance(value, Var) else []


def _written(call: Any) -> list[Any]:
    return [a for a, direction in zip(call.args, call.arg_directions, strict=False) if direction in _WRITES]


__all__ = ["EDGES", "DerivedEdges", "has_derived_edges"]
