"""Comments of statements that others take the place of."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.stmt import SeqStmts, Stmt, attach_leading_comments, seq


def commented(stmt: Stmt, comments: Sequence[str]) -> Stmt:
    """The statement, or the first one of a sequence, with these comments in front of its own."""
    if not comments:
        return stmt
    if type(stmt) is not SeqStmts:
        # A copy: statements are shared with the program before the pass.
        return attach_leading_comments(stmt.replace(), [*comments, *stmt.leading_comments])
    if not stmt.stmts:
        return stmt
    return seq([commented(stmt.stmts[0], comments), *stmt.stmts[1:]], stmt.span)
