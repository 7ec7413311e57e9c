"""Removal of scalar computations and branch results that nobody uses.

One walk counts uses; a work list then follows what each removal leaves unused; one more walk removes. What stays:
everything that contains a call or a launch, every value that is no scalar (it may name a buffer), the carries of loops,
and the extraction of a task's id from the results of its launch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..ir import stmt as st
from ..ir.attrs import attr_expressions
from ..ir.expr import Call, Expr, Submit, TupleGetItemExpr
from ..ir.node import EMPTY_LIST, FrozenList, Kind, Role
from ..ir.program import Function
from ..ir.stmt import Stmt
from ..ir.traversal import NODE_CLASSES, NODE_FIELDS, PUSH_CHILDREN, field_class_name
from ..ir.tree import flatten_to_stmts, get_last_yield_stmt, stmt_children
from ..ir.type import TASK_ID_TYPE, ScalarType, TupleType
from ..ir.type_fields import PLAIN_TYPES, is_closed, type_expressions
from .statement_lists import StatementRemover


def remove_dead_code(function: Function) -> Function:
    """The function without dead scalars and dead results of branches; itself if there are none."""
    usage = _Usage(function)
    if not usage.uses:
        return function
    usage.follow()
    if not usage.dead_assignments and not usage.dead_slots:
        return function
    removal = _Removal(usage)
    return function.replace(body=removal.finished(removal.visit_stmt(function.body)))


class _Slot:
    """A result of an ``if``: where it is, and what the branches yield for it."""

    __slots__ = ("index", "operands", "stmt")

    def __init__(self, stmt: st.IfStmt, index: int, operands: tuple[Expr, Expr]) -> None:
        self.stmt = stmt
        self.index = index
        self.operands = operands


class _Usage:
    """Which variables could go, and how often each is used. An expression uses a variable once, however often."""

    def __init__(self, function: Function) -> None:
        self.uses: dict[Any, int] = {}
        self._assignments: dict[Any, list[st.AssignStmt]] = {}
        self._slots: dict[Any, _Slot] = {}
        self._yields: dict[st.IfStmt, tuple[st.YieldStmt, st.YieldStmt]] = {}
        self.dead_assignments: set[st.AssignStmt] = set()
        self.dead_slots: dict[st.IfStmt, set[int]] = {}
        stmts = _all_statements(function.body)
        if any(type(stmt) is st.InlineStmt for stmt in stmts):
            return  # the text may name any variable
        for stmt in stmts:
            if type(stmt) is st.AssignStmt:
                self._note_assignment(stmt)
            elif type(stmt) is st.IfStmt and stmt.return_vars:
                self._note_results(stmt)
        if self.uses:
            self._count(function, stmts)

    def _note_assignment(self, stmt: st.AssignStmt) -> None:
        if type(stmt.var.type) is ScalarType and not _contains_call(stmt.value) and not _is_task_id(stmt.value):
            self._assignments.setdefault(stmt.var, []).append(stmt)
            self.uses[stmt.var] = 0

    def _note_results(self, stmt: st.IfStmt) -> None:
        yields = get_last_yield_stmt(stmt.then_body), get_last_yield_stmt(stmt.else_body)
        first, second = yields
        if first is None or second is None:
            return
        if not len(first.value) == len(second.value) == len(stmt.return_vars):
            return
        self._yields[stmt] = first, second
        for index, (var, *operands) in enumerate(zip(stmt.return_vars, first.value, second.value, strict=True)):
            if not any(map(_contains_call, operands)):
                self._slots[var] = _Slot(stmt, index, (operands[0], operands[1]))
                self.uses[var] = 0

    # --- counting -----------------------------------------------------------------------------------------------------

    def _count(self, function: Function, stmts: list[Stmt]) -> None:
        self._change(_type_roots(function.params), 1)
        for kind in function.return_types:
            self._change(type_expressions(kind), 1)
        for value in function.attrs.values():
            self._change(attr_expressions(value), 1)
        for stmt in stmts:
            for name, code in _USES[type(stmt)]:
                self._change(code(getattr(stmt, name)), 1)

    def _change(self, roots: Iterable[Any], by: int) -> list[Any]:
        """Count the uses in some expressions; gives the variables whose count became zero."""
        uses = self.uses
        unused = []
        for root in roots:
            if root in uses:  # a variable alone
                found: Iterable[Any] = (root,)
            elif type(root) in PUSH_CHILDREN:
                found = self._variables(root)
            else:
                continue
            for var in found:
                uses[var] += by
                if not uses[var]:
                    unused.append(var)
        return unused

    def _variables(self, root: Any) -> list[Any]:
        """The counted variables in an expression, also in the types of what it computes."""
        uses = self.uses
        found: dict[Any, None] = {}
        seen = set()
        stack = [root]
        push = stack.append
        while stack:
            node = stack.pop()
            if node in uses:
                found[node] = None
                continue
            code = PUSH_CHILDREN.get(type(node))
            if code is None:
                continue  # constants, and variables: the types of these count where they are defined
            if node in seen:
                continue
            seen.add(node)
            code(node, push)
            kind = node.type
            if type(kind) not in PLAIN_TYPES and not is_closed(kind):
                stack += type_expressions(kind)
        return list(found)

    # --- the work list ------------------------------------------------------------------------------------------------

    def follow(self) -> None:
        """Find all that is dead, also because what used it is dead."""
        waiting = [var for var, count in self.uses.items() if not count]
        while waiting:
            var = waiting.pop()
            for stmt in self._assignments.pop(var, ()):
                self.dead_assignments.add(stmt)
                waiting += self._change((stmt.value,), -1)
            slot = self._slots.pop(var, None)
            if slot is not None:
                self.dead_slots.setdefault(slot.stmt, set()).add(slot.index)
                for root in (*slot.operands, *_type_roots((var,))):
                    waiting += self._change((root,), -1)

    def yields_of(self, stmt: st.IfStmt) -> tuple[st.YieldStmt, st.YieldStmt]:
        """The yields of the two branches."""
        return self._yields[stmt]


def _all_statements(body: Stmt) -> list[Stmt]:
    found = []
    stack = [body]
    while stack:
        stmt = stack.pop()
        found.append(stmt)
        stack.extend(reversed(stmt_children(stmt)))
    return found


def _contains_call(root: Any) -> bool:
    stack = [root]
    seen = set()
    while stack:
        node = stack.pop()
        cls = type(node)
        if cls is Call or cls is Submit:
            return True
        code = PUSH_CHILDREN.get(cls)
        if code is not None and node not in seen:
            seen.add(node)
            code(node, stack.append)
    return False


def _is_task_id(value: Any) -> bool:
    """Whether a value is the id that a launch gives as its last result: later passes find the task through it."""
    if type(value) is not TupleGetItemExpr or type(value.tuple.type) is not TupleType:
        return False
    kinds = value.tuple.type.types
    return value.index == len(kinds) - 1 and kinds[-1] is TASK_ID_TYPE


# --- what a statement uses itself -------------------------------------------------------------------------------------


def _type_roots(variables: Iterable[Any]) -> list[Any]:
    return [
        e
        for var in variables
        if type(var.type) not in PLAIN_TYPES and not is_closed(var.type)
        for e in type_expressions(var.type)
    ]


def _of_definition(var: Any) -> list[Any]:
    return _type_roots((var,))


def _of_carries(iter_args: Any) -> list[Any]:
    return [*(arg.initValue for arg in iter_args), *_type_roots(iter_args)]


def _of_node(e: Any) -> tuple[Any, ...]:
    return () if e is None else (e,)


def _of_list(items: Any) -> Any:
    return items


def _of_attrs(attrs: Any) -> list[Any]:
    return [e for value in attrs.values() for e in attr_expressions(value)]


def _use_table(cls: type) -> tuple[tuple[str, Any], ...]:
    rows = []
    for info in NODE_FIELDS[cls]:
        held = field_class_name(cls, info.name) if info.kind in (Kind.NODE, Kind.OPTIONAL, Kind.LIST) else ""
        if held == "Stmt":
            continue
        if info.role is Role.DEFINITION:
            code: Any = _of_definition
            if info.kind is Kind.LIST:
                code = _of_carries if held == "IterArg" else _type_roots
        elif info.kind is Kind.ATTRS:
            code = _of_attrs
        elif info.kind is Kind.LIST:
            code = _of_list
        elif info.kind in (Kind.NODE, Kind.OPTIONAL):
            code = _of_node
        else:
            continue
        rows.append((info.name, code))
    return tuple(rows)


# For each statement class: its fields that hold expressions or definitions, and what gives the used expressions.
_USES: dict[type, tuple[tuple[str, Any], ...]] = {cls: _use_table(cls) for cls in NODE_CLASSES if issubclass(cls, Stmt)}


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
            return self._default_stmt(op)
        for last in self._usage.yields_of(op):
            self._dead_operands[last] = dead
        then_body, else_body = self.visit_stmt(op.then_body), self.visit_stmt(op.else_body)  # type: ignore[arg-type]
        results = _without(op.return_vars, dead)
        if not results and not flatten_to_stmts(else_body):
            return op.replace(then_body=then_body, else_body=None, return_vars=results)  # type: ignore[no-any-return]
        return op.replace(then_body=then_body, else_body=else_body, return_vars=results)  # type: ignore[no-any-return]


def _without(items: FrozenList[Any], dead: set[int]) -> FrozenList[Any]:
    kept = [item for index, item in enumerate(items) if index not in dead]
    return FrozenList(kept) if kept else EMPTY_LIST


__all__ = ["remove_dead_code"]
