"""The order among the statements of a region, and the rule about variables that a launch wrote."""

from __future__ import annotations

from ..analysis.inout_use import stale_reads
from ..analysis.stmt_dependencies import StmtDependencyGraph, build_stmt_dependency_graph
from ..ir.program import Function, Program
from ..ir.stmt import Stmt
from ..verify.diagnostics import Diagnostic, DiagnosticSeverity, VerificationError, generate_report
from ..verify.in_out_use_valid import RULE, describe
from ..verify.properties import IRProperty


def check_inout_use_discipline(region: Stmt | Function, program: Program) -> None:
    """Raise :class:`VerificationError` if a region reads a variable that a launch before wrote."""
    body = region.body if isinstance(region, Function) else region
    found = [
        Diagnostic(DiagnosticSeverity.Error, RULE, 0, describe(read), read.stmt.span)
        for read in stale_reads(body, program)
    ]
    if found:
        raise VerificationError(generate_report(found), found, properties=[IRProperty.InOutUseValid])


__all__ = ["StmtDependencyGraph", "build_stmt_dependency_graph", "check_inout_use_discipline"]
