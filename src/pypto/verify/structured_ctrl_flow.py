"""StructuredCtrlFlow: kernels contain neither ``break`` nor ``continue``."""

from __future__ import annotations

from ..ir.enums import is_incore_type
from ..ir.program import Function
from ..ir.stmt import BreakStmt, ContinueStmt
from .inventory import inventory
from .properties import IRProperty
from .registry import Findings, verifies


@verifies(IRProperty.StructuredCtrlFlow)
def check(function: Function, findings: Findings) -> None:
    """``break`` is code 0, ``continue`` code 1; in kernel functions and, elsewhere, in kernel scopes."""
    whole = is_incore_type(function.func_type)
    for stmt, region in inventory(function).of(BreakStmt, ContinueStmt):
        if whole or region.incore is not None:
            is_break = type(stmt) is BreakStmt
            word = "break" if is_break else "continue"
            text = f"'{word}' in the kernel code of function '{function.name}'"
            findings.error(0 if is_break else 1, f"{text}: hardware loops can't be left early", stmt.span)
