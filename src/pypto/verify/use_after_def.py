"""UseAfterDef: a definition comes before each use.

Holds before SSA form, too: what a branch or loop without results defines stays visible behind it, since a name that is
bound there lives on; of one with results only these do. Uses in attributes and types count. One walk, linear.
"""

from __future__ import annotations

from typing import Any

from ..ir.program import Function
from .codes import UseAfterDefErrorType
from .properties import IRProperty
from .reaching import Reaching, run_walk
from .registry import Findings, verifies


class _UseAfterDef(Reaching):
    _LEAKS = True

    def report_use(self, var: Any) -> None:
        self.findings.error(
            UseAfterDefErrorType.USE_BEFORE_DEF,
            f"Variable '{var.name_hint}' used before definition in function '{self.function.name}'",
            self.at.span,
        )


@verifies(IRProperty.UseAfterDef, "UseAfterDefCheck", implied_by=IRProperty.SSAForm)
def check_use_after_def(function: Function, findings: Findings) -> None:
    """Report each variable that is used without a definition before, at its first such use."""
    run_walk(_UseAfterDef, function, findings)
