"""Task ids of scopes: the variable of ``with pl.at(...) as tid`` and the null id that stands in front."""

from __future__ import annotations

from typing import Any

from ..ir.expr import Call, Var
from ..ir.stmt import AssignStmt, ScopeStmt, Stmt


def task_id_of(scope: ScopeStmt) -> Var | None:
    """The variable that a scope binds to the id of its task."""
    found: Any = scope.attrs.get("task_id_var")
    return found  # type: ignore[no-any-return]


def is_null_id(value: Any) -> bool:
    """Whether an expression is ``system.task_invalid()``."""
    return type(value) is Call and value.op.name == "system.task_invalid"


def is_placeholder(stmt: Stmt, scope: ScopeStmt) -> bool:
    """Whether ``stmt``, the statement in front of a scope, gives the scope's own task id a null value.

    The parser puts it there, and outlining takes it away. The two count as one definition of the variable.
    """
    return (
        type(stmt) is AssignStmt
        and bool(scope.attrs)
        and scope.attrs.get("task_id_var") is stmt.var
        and is_null_id(stmt.value)
    )


__all__ = ["is_null_id", "is_placeholder", "task_id_of"]
