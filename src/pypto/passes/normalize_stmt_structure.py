"""NormalizeStmtStructure: statement lists become flat, and a list of one statement that statement.

Before::

    SeqStmts([SeqStmts([a]), SeqStmts([b, SeqStmts([c])])])
    for: SeqStmts([SeqStmts([a])])
    if: then = SeqStmts([]), else = SeqStmts([b])

After::

    SeqStmts([a, b, c])
    for: a
    if: then = SeqStmts([]), else = b

This holds for every body: of the function, of branches, loops and scopes. An empty list stays, and so does everything
else; a yield that is not the last statement is for the verifier to report. The pass needs nothing and gives
NormalizedStmtStructure. Its cost is linear in the number of statements: expressions are not looked at.
"""

from __future__ import annotations

from ..ir.mutator import IRMutator
from ..ir.program import Function, Program
from ..ir.stmt import SeqStmts, Stmt
from ..ir.tree import flatten_to_stmts
from ..verify.properties import IRProperty
from .base import FunctionPass, Pass


class NormalizeStmtStructure(FunctionPass):
    """See the text of the module."""

    name = "NormalizeStmtStructure"
    produced = (IRProperty.NormalizedStmtStructure,)

    def run_on(self, function: Function, program: Program) -> Function:
        body = _Flatten().visit_stmt(function.body)
        return function if body is function.body else function.replace(body=body)


class _Flatten(IRMutator):
    def visit_seq_stmts(self, op: SeqStmts) -> Stmt:
        old = op.stmts
        # All levels at once: flattening level by level would copy what is deep inside again and again.
        flat = flatten_to_stmts(op) if any(type(stmt) is SeqStmts for stmt in old) else old
        dispatch = self._dispatch
        new: list[Stmt] = [dispatch[type(stmt)](self, stmt) for stmt in flat]
        if len(new) == 1:
            return new[0]
        if len(new) == len(old) and all(a is b for a, b in zip(new, old, strict=True)):
            return op
        return SeqStmts(new, op.span)


def normalize_stmt_structure() -> Pass:
    """The pass that makes statement lists flat."""
    return NormalizeStmtStructure()


__all__ = ["NormalizeStmtStructure", "normalize_stmt_structure"]
