"""The printed lines around a statement, for messages about IR that no source line shows."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.program import Function
from ..ir.stmt import SeqStmts, Stmt
from ..ir.tree import ParentStmtAnalysis

_MOST = 10  # excerpts a function: beyond that a reader looks at the dump


class Excerpts:
    """Makes excerpts of one function; costs nothing until the first one is asked for."""

    __slots__ = ("_function", "_made", "_parents")

    def __init__(self, function: Function) -> None:
        self._function = function
        self._parents: ParentStmtAnalysis | None = None
        self._made = 0

    def around(self, stmt: object) -> str:
        """The statement between its neighbours, each by its first line, behind a line break; empty if there is none."""
        if not isinstance(stmt, Stmt) or self._made >= _MOST:
            return ""
        self._made += 1
        group, at = self._group(stmt)
        lines = [f"  {'>' if item is stmt else ' '} {_first_line(item)}" for item in group[max(at - 1, 0) : at + 2]]
        return "\n" + "\n".join(lines)

    def _group(self, stmt: Stmt) -> tuple[Sequence[Stmt], int]:
        if self._parents is None:
            self._parents = ParentStmtAnalysis()
            self._parents.build_map(self._function)
        parent = self._parents.get_parent(stmt)
        group = parent.stmts if isinstance(parent, SeqStmts) else [stmt]
        return group, next((i for i, item in enumerate(group) if item is stmt), 0)


def _first_line(stmt: Stmt) -> str:
    try:
        lines = stmt.as_python(concise=True, format=False).split("\n")
    except Exception:  # IR that is at fault may have no printed form
        return f"<{type(stmt).__name__}>"
    return next((line for line in lines if not line.startswith("#")), lines[0])


__all__ = ["Excerpts"]
