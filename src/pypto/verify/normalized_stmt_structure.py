"""NormalizedStmtStructure and NoRedundantBlocks: statement lists are flat, and yields stand last.

Both names stand for the same rules: the first is what NormalizeStmtStructure produces, the second is structural.
"""

from __future__ import annotations

from ..ir.program import Function
from ..ir.span import Span
from ..ir.stmt import SeqStmts, Stmt, YieldStmt
from .inventory import inventory
from .properties import IRProperty
from .registry import Findings, verifies


@verifies(IRProperty.NormalizedStmtStructure, implied_by=IRProperty.NoRedundantBlocks)
@verifies(IRProperty.NoRedundantBlocks, implied_by=IRProperty.NormalizedStmtStructure)
def check(function: Function, findings: Findings) -> None:
    """No list of one statement, no list in a list, no yield before the end of a list. An empty list is allowed."""
    for stmt, _region in inventory(function).of(SeqStmts):
        classes = [*map(type, stmt.stmts)]
        where = f"in function '{function.name}'"
        if len(classes) == 1:
            text = "SeqStmts with single child should be unwrapped"
            findings.error(0, f"{text} {where}: it holds one {classes[0].__name__}", _span(stmt))
        if SeqStmts in classes:
            for inner in stmt.stmts:
                if type(inner) is SeqStmts:
                    findings.error(0, f"nested SeqStmts should be flattened {where}", _span(inner))
        if YieldStmt in classes[:-1]:
            for inner in stmt.stmts[:-1]:
                if type(inner) is YieldStmt:
                    text = "YieldStmt before the terminating position of a statement list"
                    findings.error(0, f"{text} {where}: a yield comes last", inner.span)


def _span(stmt: Stmt) -> Span:
    """Where a statement is; for a list without a place of its own, that of its first statement."""
    while not stmt.span.is_valid() and type(stmt) is SeqStmts and stmt.stmts:
        stmt = stmt.stmts[0]
    return stmt.span
