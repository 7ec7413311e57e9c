"""SSAForm: each variable is defined once, uses lie in the scope of the definition, yields match what they are for.

A branch or loop keeps what it defines, but for its results; scopes keep nothing. One walk, linear.
"""

from __future__ import annotations

from typing import Any

from ..analysis.task_ids import is_null_id
from ..ir.program import Function
from ..ir.stmt import AssignStmt, IfStmt, Stmt
from ..ir.tree import get_last_yield_stmt
from .codes import SSAErrorType
from .excerpt import Excerpts
from .inventory import inventory
from .properties import IRProperty
from .reaching import Reaching, run_walk
from .registry import Findings, verifies


class _SSAForm(Reaching):
    _LEAKS = False

    def __init__(self, function: Function, findings: Findings) -> None:
        super().__init__(function, findings)
        self.ever = set()  # what was defined so far, visible or not
        self._again: dict[Any, list[Any]] = {}  # variable -> where it was defined again
        self._placeholders: set[Any] | None = None  # task ids that are assigned the null task, when asked for
        self._last_yield: Any = None  # the yield that ends the innermost body
        self._excerpts = Excerpts(function)

    def run(self) -> None:
        super().run()
        for var, places in self._again.items():
            self.at = places[0]
            self._error(
                SSAErrorType.MULTIPLE_ASSIGNMENT,
                f"Variable '{var.name_hint}' is assigned more than once ({len(places) + 1} times), violating SSA form",
            )

    def _error(self, code: SSAErrorType, message: str) -> None:
        text = f"{message}, in function '{self.function.name}'{self._excerpts.around(self.at)}"
        self.findings.error(code, text, self.at.span)

    # --- definitions and uses -----------------------------------------------------------------------------------------

    def defined_again(self, var: Any) -> None:
        if not self._fills_placeholder(var):
            self._again.setdefault(var, []).append(self.at)
        self._show(var)

    def bound(self, var: Any) -> None:
        # Loops side by side may share the object of a loop variable: it is another variable in each body.
        if var in self.visible:
            self._again.setdefault(var, []).append(self.at)

    def _fills_placeholder(self, var: Any) -> bool:
        """Whether this is the ``as tid`` of a scope, and the other definition the ``tid = system.task_invalid()`` that
        the parser puts in front of such a scope: they define one task id."""
        attrs = getattr(self.at, "attrs", None)
        if not attrs or attrs.get("task_id_var") is not var:
            return False
        if self._placeholders is None:
            self._placeholders = {
                stmt.var for stmt, _ in inventory(self.function).of(AssignStmt) if is_null_id(stmt.value)
            }
        if var not in self._placeholders:
            return False
        self._placeholders.discard(var)
        return True

    def report_use(self, var: Any) -> None:
        ended = var in self.ever
        why = "its definition is in a branch or loop that has ended" if ended else "nothing defines it before"
        self._error(SSAErrorType.SCOPE_VIOLATION, f"Variable '{var.name_hint}' used outside its defining scope: {why}")

    # --- yields -------------------------------------------------------------------------------------------------------

    def body(self, stmt: Stmt) -> None:
        outer, self._last_yield = self._last_yield, get_last_yield_stmt(stmt)
        self._TABLE[type(stmt)](self, stmt)
        self._last_yield = outer

    def _yield(self, stmt: Any) -> None:
        if stmt is not self._last_yield:
            self.at = stmt
            self._error(SSAErrorType.MISPLACED_YIELD, "YieldStmt before the terminating position of its body")
        self._return(stmt)

    def _results(self, stmt: Any) -> None:
        self.at = stmt
        if type(stmt) is IfStmt:
            if stmt.return_vars:
                self._check_branches(stmt)
        elif stmt.iter_args or stmt.return_vars:
            self._check_loop(stmt)
        super()._results(stmt)

    def _check_branches(self, stmt: IfStmt) -> None:
        if stmt.else_body is None:
            self._error(SSAErrorType.MISSING_YIELD, "IfStmt with return_vars must have else branch")
        for name, body in (("then", stmt.then_body), ("else", stmt.else_body)):
            if body is not None:
                self._check_yield(body, name, stmt)

    def _check_loop(self, stmt: Any) -> None:
        carried, results = len(stmt.iter_args), len(stmt.return_vars)
        if carried != results:
            self._error(
                SSAErrorType.ITER_ARGS_RETURN_VARS_MISMATCH,
                f"{type(stmt).__name__} iter_args count ({carried}) != return_vars count ({results})",
            )
        self._check_yield(stmt.body, "", stmt)

    def _check_yield(self, body: Stmt, branch: str, stmt: Any) -> None:
        found, results = get_last_yield_stmt(body), len(stmt.return_vars)
        if found is not None and len(found.value) == results:
            return
        what = f"{branch} branch of IfStmt with return_vars" if branch else f"{type(stmt).__name__} with iter_args"
        if found is None:
            self._error(SSAErrorType.MISSING_YIELD, f"{what} must have YieldStmt as last statement")
        else:
            self._error(
                SSAErrorType.YIELD_COUNT_MISMATCH,
                f"{what}: YieldStmt value count ({len(found.value)}) != return_vars count ({results})",
            )


@verifies(IRProperty.SSAForm, "SSAVerify")
def check_ssa_form(function: Function, findings: Findings) -> None:
    """Report what keeps a function from being in SSA form."""
    run_walk(_SSAForm, function, findings)
