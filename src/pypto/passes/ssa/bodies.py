"""Statement lists of bodies: the same object when nothing changed, and yields that give more."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any

from ...ir import stmt as st
from ...ir.expr import Expr
from ...ir.node import FrozenList
from ...ir.span import Span
from ...ir.stmt import Stmt, YieldStmt, seq
from ...ir.tree import get_last_yield_stmt


def same(new: Sequence[Any], old: Sequence[Any]) -> bool:
    """Whether two lists hold the same objects."""
    return len(new) == len(old) and all(map(is_, new, old))


def rebuilt(body: Stmt, stmts: list[Stmt]) -> Stmt:
    """A body with these statements; the same object when they are those that it has."""
    # Statements are equal if they are the same object.
    if stmts == body.stmts if type(body) is st.SeqStmts else (len(stmts) == 1 and stmts[0] is body):
        return body
    return seq(stmts, body.span)


def add_statements(stmts: list[Stmt], new: list[Stmt]) -> None:
    """Put statements at the end of a body, in front of its yield."""
    ends = bool(stmts) and (get_last_yield_stmt(stmts[-1]) is not None or type(stmts[-1]) in _LEAVING)
    stmts[len(stmts) - int(ends) : len(stmts) - int(ends)] = new


_NO_BODY = (st.AssignStmt, st.EvalStmt)  # what most bodies end with
_LEAVING = (st.BreakStmt, st.ContinueStmt, st.ReturnStmt)


def add_yields(stmts: list[Stmt], operands: list[Expr], span: Span, first: bool) -> None:
    """Let the yield at the end of a body give more operands, in front of those that it has or behind."""
    if stmts and type(stmts[-1]) not in _NO_BODY and get_last_yield_stmt(stmts[-1]) is not None:
        stmts[-1] = _more_operands(stmts[-1], operands, first)
    else:
        stmts.append(YieldStmt(FrozenList(operands), span))


def _more_operands(stmt: Any, operands: list[Expr], first: bool) -> Stmt:
    if type(stmt) is YieldStmt:
        return stmt.replace(value=FrozenList([*operands, *stmt.value] if first else [*stmt.value, *operands]))  # type: ignore[no-any-return]
    if type(stmt) is st.SeqStmts:
        last = _more_operands(stmt.stmts[-1], operands, first)
        return stmt.replace(stmts=FrozenList([*stmt.stmts[:-1], last]))  # type: ignore[no-any-return]
    return stmt.replace(body=_more_operands(stmt.body, operands, first))  # type: ignore[no-any-return]


__all__ = ["add_statements", "add_yields", "rebuilt", "same"]
