"""Rewrites that take statements away: their comments go to the statement that comes next."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.mutator import IRMutator
from ..ir.stmt import SeqStmts, Stmt, attach_leading_comments, seq
from ..ir.tree import flatten_to_stmts


def with_comments(comments: Sequence[str], stmt: Stmt) -> Stmt:
    """The statement with more comments above its own."""
    if not comments:
        return stmt
    copy: Stmt = stmt.replace()
    return attach_leading_comments(copy, [*comments, *stmt.leading_comments])


class StatementRemover(IRMutator):
    """A mutator whose visits of statements may give several statements or none.

    Before a statement goes, its comments are put into ``homeless``; they are given to the next statement that stays.
    """

    homeless: list[str]  # never changed in place

    def _setup(self) -> None:
        super()._setup()
        self.homeless = []

    def removed(self, op: Stmt) -> Stmt:
        """What a visit gives for a statement that goes."""
        self.homeless = self.homeless + op.leading_comments
        return SeqStmts([], op.span)

    def replaced(self, op: Stmt, stmts: Sequence[Stmt]) -> Stmt:
        """What a visit gives for a statement that others take the place of."""
        if not stmts:
            self.homeless = op.leading_comments + self.homeless
            return SeqStmts([], op.span)
        return seq([with_comments(op.leading_comments, stmts[0]), *stmts[1:]], op.span)

    def visit_seq_stmts(self, op: SeqStmts) -> Stmt:
        dispatch = self._dispatch
        kept: list[Stmt] | None = None
        for position, old in enumerate(op.stmts):
            above = self.homeless
            if above:
                self.homeless = []
            new = dispatch[type(old)](self, old)
            if new is not old and kept is None:
                kept = list(op.stmts[:position])
            if not above and type(new) is not SeqStmts:
                if kept is not None:
                    kept.append(new)
                continue
            if kept is None:
                kept = list(op.stmts[:position])
            stmts = flatten_to_stmts(new)
            if stmts:
                kept += [with_comments(above, stmts[0]), *stmts[1:]]
            else:
                self.homeless = above + self.homeless
        return op if kept is None else seq(kept, op.span)

    def finished(self, body: Stmt) -> Stmt:
        """A function's rewritten body; comments that found no next statement go to its last one."""
        stmts = flatten_to_stmts(body)
        if not self.homeless or not stmts:
            return body
        last = stmts[-1]
        copy = attach_leading_comments(last.replace(), [*last.leading_comments, *self.homeless])
        return seq([*stmts[:-1], copy], body.span)


__all__ = ["StatementRemover", "with_comments"]
