"""BreakContinueValid: ``break`` and ``continue`` stand in a loop that can be left early, by the innermost loop."""

from __future__ import annotations

from ..ir.enums import ForKind
from ..ir.program import Function
from ..ir.stmt import BreakStmt, ContinueStmt, ForStmt
from .codes import BreakContinueErrorType as Code
from .inventory import inventory
from .properties import IRProperty
from .registry import Findings, verifies

# The codes outside of loops, in parallel loops and in unrolled ones.
_BREAKS = (Code.BREAK_OUTSIDE_LOOP, Code.BREAK_IN_PARALLEL_LOOP, Code.BREAK_IN_UNROLL_LOOP)
_CONTINUES = (Code.CONTINUE_OUTSIDE_LOOP, Code.CONTINUE_IN_PARALLEL_LOOP, Code.CONTINUE_IN_UNROLL_LOOP)


@verifies(IRProperty.BreakContinueValid, "BreakContinueCheck")
def check(function: Function, findings: Findings) -> None:
    """Sequential and pipeline loops and ``while`` may be left early; parallel and unrolled ones may not."""
    for stmt, region in inventory(function).of(BreakStmt, ContinueStmt):
        word, (outside, parallel, unroll) = ("break", _BREAKS) if type(stmt) is BreakStmt else ("continue", _CONTINUES)
        loop = region.loop
        where = f"in function '{function.name}'"
        if loop is None:
            findings.error(outside, f"'{word}' outside loop {where}", stmt.span)
        elif type(loop) is ForStmt and loop.kind in (ForKind.Parallel, ForKind.Unroll):
            is_parallel = loop.kind is ForKind.Parallel
            kind = "parallel" if is_parallel else "unrolled"
            text = f"'{word}' not supported in {kind} loops: the loop over '{loop.loop_var.name_hint}' {where}"
            findings.error(parallel if is_parallel else unroll, text, stmt.span)
