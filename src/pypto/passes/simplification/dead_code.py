"""Removal of scalar computations and branch results that nobody uses.

One walk finds what is used at all, and ends the matter if that is everything. Otherwise uses are counted, a work list
follows what each removal leaves unused, and one more walk removes. What stays: everything that contains a call or a
launch, every value that is no scalar (it may name a buffer), the carries of loops, and the extraction of a task's id
from the results of its launch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...ir import stmt as st
from ...ir.expr import Call, Expr, MakeTuple, Submit, TupleGetItemExpr
from ...ir.node import EMPTY_LIST, FrozenList
from ...ir.operands import holds_call
from ...ir.program import Function
from ...ir.stmt import Stmt
from ...ir.traversal import PUSH_CHILDREN
from ...ir.tree import get_last_yield_stmt
from ...ir.type import TASK_ID_TYPE, ScalarType, TupleType
from ...ir.type_fields import PLAIN_TYPES, is_closed, type_expressions
from ..parsed_form import without_empty_else
from ..statement_lists import StatementRemover
from .parts import FunctionParts, types_of


def remove_dead_code(parts: FunctionParts) -> Function:
    """The function without dead scalars and dead results of branches; itself if there are none."""
    function = parts.function
    assignments = [stmt for stmt in parts.assignments if type(stmt.var.type) is ScalarType]
    if parts.has_text or not (assignments or parts.branches):
        return function
    roots = parts.roots()
    used = _nodes_in(roots)
    if not (
        any(stmt.var not in used and _may_go(stmt) for stmt in assignments)
        or any(_has_unused_result(stmt, used) for stmt in parts.branches)
    ):
        return function
    usage = _Usage(assignments, parts.branches, roots)
    usage.follow()
    removal = _Removal(usage)
    return function.replace(body=removal.finished(removal.visit_stmt(function.body)))


def _may_go(stmt: st.AssignStmt) -> bool:
    """Whether a scalar assignment may go if nothing uses it."""
    return not holds_call(stmt.value) and not _is_task_id(stmt.value)


class _Slot:
    """A result of an ``if`` that may go if nothing uses it: where it is, and what the branches yield for it."""

    __slots__ = ("index", "operands", "stmt")

    def __init__(self, stmt: st.IfStmt, index: int, operands: tuple[Expr, Expr]) -> None:
        self.stmt = stmt
        self.index = index
        self.operands = operands


def _slots(stmt: st.IfStmt) -> list[_Slot]:
    yields = _yields_of(stmt)
    if len(yields) < 2 or not len(yields[0].value) == len(yields[1].value) == len(stmt.return_vars):
        return []
    rows = enumerate(zip(yields[0].value, yields[1].value, strict=True))
    return [_Slot(stmt, index, row) for index, row in rows if not any(map(holds_call, row))]


def _yields_of(stmt: st.IfStmt) -> list[st.YieldStmt]:
    """The yields of the branches that end in one."""
    found = (get_last_yield_stmt(stmt.then_body), get_last_yield_stmt(stmt.else_body))
    return [last for last in found if last is not None]


def _has_unused_result(stmt: st.IfStmt, used: set[Any]) -> bool:
    results = stmt.return_vars
    for var in results:
        if var not in used:
            return any(results[slot.index] not in used for slot in _slots(stmt))
    return False


class _Usage:
    """Which variables could go, and how often each is used. An expression uses a variable once, however often."""

    def __init__(self, assignments: list[st.AssignStmt], branches: list[st.IfStmt], roots: list[Any]) -> None:
        self._uses: dict[Any, int] = {}
        self._assignments: dict[Any, list[st.AssignStmt]] = {}
        self._slots: dict[Any, _Slot] = {}
        self.dead_assignments: set[st.AssignStmt] = set()
        self.dead_slots: dict[st.IfStmt, set[int]] = {}
        for stmt in assignments:
            if _may_go(stmt):
                self._assignments.setdefault(stmt.var, []).append(stmt)
                self._uses[stmt.var] = 0
        for branch in branches:
            for slot in _slots(branch):
                var = branch.return_vars[slot.index]
                self._slots[var] = slot
                self._uses[var] = 0
        self._change(roots, 1)

    def _change(self, roots: Iterable[Any], by: int) -> list[Any]:
        """Count the uses in some expressions; gives the variables whose count became zero."""
        uses = self._uses
        unused = []
        for root in roots:
            for node in _nodes_in((root,)) if type(root) in PUSH_CHILDREN else (root,):
                if node in uses:
                    uses[node] += by
                    if not uses[node]:
                        unused.append(node)
        return unused

    def follow(self) -> None:
        """Find all that is dead, also because what used it is dead."""
        waiting = [var for var, count in self._uses.items() if not count]
        while waiting:
            var = waiting.pop()
            for stmt in self._assignments.pop(var, ()):
                self.dead_assignments.add(stmt)
                waiting += self._change((stmt.value,), -1)
            slot = self._slots.pop(var, None)
            if slot is not None:
                self.dead_slots.setdefault(slot.stmt, set()).add(slot.index)
                waiting += self._change((*slot.operands, *types_of((var,))), -1)


def _nodes_in(roots: Iterable[Any]) -> set[Any]:
    """All nodes in some expressions, also in the types of what they compute; types of variables are not looked at."""
    seen = set()
    stack = list(roots)
    push = stack.append
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        cls = type(node)
        code = PUSH_CHILDREN.get(cls)
        if code is not None:
            code(node, push)
            if cls in _TYPED:
                kind = node.type
                if type(kind) not in PLAIN_TYPES and not is_closed(kind):
                    stack += type_expressions(kind)
    return seen


# What may compute something whose type holds expressions; operators compute scalars.
_TYPED = frozenset((Call, Submit, MakeTuple, TupleGetItemExpr))


def _is_task_id(value: Any) -> bool:
    """Whether a value is the id that a launch gives as its last result: later passes find the task through it."""
    if type(value) is not TupleGetItemExpr or type(value.tuple.type) is not TupleType:
        return False
    kinds = value.tuple.type.types
    return value.index == len(kinds) - 1 and kinds[-1] is TASK_ID_TYPE


# --- removal ----------------------------------------------------------------------------------------------------------


class _Removal(StatementRemover):
    """Takes the dead assignments and slots out."""

    def __init__(self, usage: _Usage) -> None:
        self._usage = usage
        self._dead_operands: dict[st.YieldStmt, set[int]] = {}

    def visit_assign_stmt(self, op: st.AssignStmt) -> Stmt:
        return self.removed(op) if op in self._usage.dead_assignments else op

    def visit_yield_stmt(self, op: st.YieldStmt) -> Stmt:
        dead = self._dead_operands.get(op)
        if dead is None:
            return op
        values = _without(op.value, dead)
        return op.replace(value=values) if values else self.removed(op)

    def visit_if_stmt(self, op: st.IfStmt) -> Stmt:
        dead = self._usage.dead_slots.get(op)
        if dead is None:
            new = self._default_stmt(op)
            return new if new is op else without_empty_else(new)  # type: ignore[arg-type]
        for last in _yields_of(op):
            self._dead_operands[last] = dead
        then_body, else_body = self.visit_stmt(op.then_body), self.visit_stmt(op.else_body)  # type: ignore[arg-type]
        results = _without(op.return_vars, dead)
        return without_empty_else(op.replace(then_body=then_body, else_body=else_body, return_vars=results))


def _without(items: FrozenList[Any], dead: set[int]) -> FrozenList[Any]:
    kept = [item for index, item in enumerate(items) if index not in dead]
    return FrozenList(kept) if kept else EMPTY_LIST


__all__ = ["remove_dead_code"]
