"""Kernel scopes that only wait: ``pld.system.defer_wait`` registers what the completion of their task depends on."""

from __future__ import annotations

from typing import Any, NoReturn

from ...analysis.constants import static_trip_count
from ...ir.expr import Call, GlobalVar, Submit
from ...ir.stmt import ForStmt, IfStmt, ScopeStmt, SeqStmts, Stmt, WhileStmt
from ...ir.tree import stmt_children, walk
from ...ops.registry import REGISTRY
from ..errors import PassError
from .scan import ScopeInfo

WAIT = "pld.system.defer_wait"
_MOST = 64


def is_waiter(scope: ScopeStmt) -> bool:
    """Whether the body of a scope defers the completion of its task."""
    return any(type(node) is Call and node.op.name == WAIT for node in walk(scope.body))


def check_waiter(info: ScopeInfo) -> None:
    """Refuse a waiter that the runtime can't complete by itself."""
    scope = info.scope
    attrs = scope.attrs
    if attrs.get("task_id_var") is None or info.parent_scope is not None:
        _refuse(scope, "has to be a task of its own, at the top level of a function", "Write with pl.at(...) as tid:")
    if attrs.get("predicate") is not None:
        _refuse(scope, "can't have a predicate", "Put the condition around the scope.")
    if attrs.get("allow_early_resolve"):
        _refuse(scope, "can't resolve early (allow_early_resolve=True)", "Leave allow_early_resolve out.")
    registered = _Registrations()
    registered.stmt(scope.body)
    if registered.count > _MOST:
        _refuse(scope, f"may register at most {_MOST} conditions, not {registered.count}", "Use several waiting tasks.")


def _refuse(where: Any, rule: str, hint: str) -> NoReturn:
    raise PassError(f"a kernel scope with pld.system.defer_wait {rule}", where.span, hint=hint)


class _Registrations:
    """Counts the conditions of a body: all trips of a loop, the larger one of two branches."""

    def __init__(self) -> None:
        self.count = 0

    def stmt(self, stmt: Any) -> None:
        cls = type(stmt)
        if cls is SeqStmts:
            for inner in stmt.stmts:
                self.stmt(inner)
        elif cls is IfStmt:
            before, most = self.count, self.count
            for body in stmt_children(stmt):
                self.count = before
                self.stmt(body)
                most = max(most, self.count)
            self.count = most
        elif cls is ForStmt or cls is WhileStmt:
            self._loop(stmt)
        elif isinstance(stmt, ScopeStmt):
            self.stmt(stmt.body)
        else:
            self._leaf(stmt)

    def _loop(self, stmt: Any) -> None:
        before = self.count
        self.stmt(stmt.body)
        inside = self.count - before
        if not inside:
            return
        trips = static_trip_count(stmt.start, stmt.stop, stmt.step) if type(stmt) is ForStmt else None
        if not trips:
            _refuse(
                stmt, "registers in a loop, which needs a statically known positive trip count", "Use constant bounds."
            )
        self.count = before + inside * trips

    def _leaf(self, stmt: Stmt) -> None:
        for node in walk(stmt):
            if type(node) is Submit or (type(node) is Call and type(node.op) is GlobalVar):
                _refuse(stmt, "can't hold helper calls", "Register the conditions in the scope itself.")
            if type(node) is not Call:
                continue
            name = node.op.name
            if name == WAIT:
                self.count += 1
            elif name in ("tensor.read", "tile.read"):
                _refuse(
                    stmt,
                    "can't hold a tensor read after registration",
                    "Read it before the scope, or in the task behind it.",
                )
            elif name.startswith("pld.") or _writes(node):
                _refuse(
                    stmt,
                    "can't hold payload updates or other communication",
                    "Do that in another task, with deps=[tid].",
                )


def _writes(call: Call) -> bool:
    definition = REGISTRY.get(call.op.name)
    return definition is not None and bool(definition.effects)


__all__ = ["WAIT", "check_waiter", "is_waiter"]
