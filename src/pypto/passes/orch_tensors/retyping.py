"""The rewrite of a body some of whose variables get other types."""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_
from typing import Any

from ...ir.expr import Var
from ...ir.mutator import IRMutator
from ...ir.node import FrozenList
from ...ir.stmt import AssignStmt, ForStmt, Stmt, WhileStmt
from ...ir.type import Type


class Retyping(IRMutator):
    """Gives variables their new types where they are defined; uses follow. ``types``: of those that change."""

    def __init__(self, types: Mapping[Var, Type]) -> None:
        self._types = types

    def renamed(self, var: Any, **changes: Any) -> Any:
        """The variable with the type that it has now."""
        kind = self._types.get(var)
        if kind is None:
            return var
        new = self._remap[var] = var.replace(type=kind, **changes)
        return new

    def assigned(self, op: AssignStmt) -> Any:
        """The value that an assignment has now."""
        return self.visit_expr(op.value)

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        value = self.assigned(op)
        var = self.renamed(op.var)
        return op if var is op.var and value is op.value else op.replace(var=var, value=value)

    def visit_if_stmt(self, op: Any) -> Stmt:
        for var in op.return_vars:
            self.renamed(var)
        return super().visit_if_stmt(op)

    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        return super().visit_for_stmt(self._loop(op))

    def visit_while_stmt(self, op: WhileStmt) -> Stmt:
        return super().visit_while_stmt(self._loop(op))

    def _loop(self, op: Any) -> Any:
        args = [
            self.renamed(arg, initValue=self.visit_expr(arg.initValue)) if arg in self._types else arg
            for arg in op.iter_args
        ]
        for var in op.return_vars:
            self.renamed(var)
        return op.replace(iter_args=FrozenList(args)) if not all(map(is_, args, op.iter_args)) else op


__all__ = ["Retyping"]
