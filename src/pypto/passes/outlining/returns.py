"""Return statements in scopes: they leave the function around the scope, which the scope's own function can't do."""

from __future__ import annotations

from typing import Any

from ...ir.mutator import IRMutator
from ...ir.program import Function
from ...ir.stmt import ReturnStmt, ScopeStmt, SeqStmts, Stmt, seq
from ...verify.inventory import Region, inventory
from ..errors import PassError
from .policy import Policy


def hoist_returns(function: Function, policy: Policy) -> Function:
    """The function with a return that ends a scope put behind the scope. Any other return in a scope is refused."""
    if not _inside(function, policy):
        return function
    hoisted = function.replace(body=_Hoist().visit_stmt(function.body))
    left = _inside(hoisted, policy)
    if left:
        stmt, scope = left[0]
        raise PassError(
            "a return in the middle of a scope that becomes a function can't leave the function around it",
            stmt.span,
            labels=((scope.span, "the scope"),),
            hint="Return behind the scope: what it computes is visible there.",
        )
    return hoisted


def _inside(function: Function, policy: Policy) -> list[tuple[ReturnStmt, Any]]:
    found = []
    for stmt, region in inventory(function).of(ReturnStmt):
        scope = _outlined_around(region, policy)
        if scope is not None:
            found.append((stmt, scope))
    return found


def _outlined_around(region: Region | None, policy: Policy) -> Any:
    while region is not None:
        if type(region.owner) in policy.scopes:
            return region.owner
        region = region.parent
    return None


class _Hoist(IRMutator):
    """Puts the return at the end of each scope behind the scope, also of those between it and an outlined one."""

    def visit_stmt(self, stmt: Stmt) -> Stmt:
        new: Any = super().visit_stmt(stmt)
        if not isinstance(new, ScopeStmt):
            return new  # type: ignore[no-any-return]
        body = new.body
        last = body.stmts[-1] if type(body) is SeqStmts and body.stmts else body
        if type(last) is not ReturnStmt:
            return new
        rest = seq(body.stmts[:-1], body.span) if type(body) is SeqStmts else SeqStmts([], body.span)
        return seq([new.replace(body=rest), last], new.span)


__all__ = ["hoist_returns"]
