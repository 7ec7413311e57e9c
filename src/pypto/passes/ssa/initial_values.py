"""The values that loops and branches of SSA form start from where the source gives a variable none.

A variable that is assigned in a loop alone needs an initial value once the loop carries it out. If it stands for the
buffer of an outer tensor that the loop writes, that tensor *is* the value after zero iterations. Otherwise nobody may
read the initial value, and any value of the type will do. It is never some other variable that happens to fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...analysis.lineage import return_lineage
from ...ir import expr as x
from ...ir.expr import Call, GlobalVar, IterArg, MakeTuple, Submit, Var
from ...ir.program import Function
from ...ir.stmt import AssignStmt, ForStmt, IfStmt, Stmt, WhileStmt
from ...ir.traversal import walk
from ...ir.tree import get_last_yield_stmt
from ...ops.definition import Alias
from ...ops.registry import REGISTRY


class WrittenBuffers:
    """Which outer tensor a variable of a function stands for, through writes in place. Before SSA form: an answer holds
    for all assignments of the variable, wherever they stand."""

    def __init__(self, function: Function, functions: Mapping[GlobalVar, Function]) -> None:
        self._functions = {g.name: f for g, f in functions.items()}
        self._values: dict[Var, list[Any]] = {}  # variable -> values assigned to it; None: a value of its own
        self._known: dict[Var, Var | None] = {}
        for param in function.params:
            self._values.setdefault(param, []).append(None)
        for node in walk(function.body):
            if isinstance(node, Stmt):
                self._note(node)

    def root(self, var: Var) -> Var | None:
        """The variable whose buffer ``var`` always is, written through ``var``; None if there is no single one."""
        if var not in self._known:
            self._known[var] = self._search(var)
        return self._known[var]

    def _note(self, stmt: Any) -> None:
        kind = type(stmt)
        if kind is AssignStmt:
            self._values.setdefault(stmt.var, []).append(stmt.value)
        elif kind is ForStmt or kind is WhileStmt:
            for i, arg in enumerate(stmt.iter_args):
                self._values.setdefault(arg, []).append(arg.initValue)
                self._merge(arg, stmt.body, i)
            for arg, result in zip(stmt.iter_args, stmt.return_vars, strict=False):
                self._values.setdefault(result, []).append(arg)
        elif kind is IfStmt:
            for i, result in enumerate(stmt.return_vars):
                self._merge(result, stmt.then_body, i)
                self._merge(result, stmt.else_body, i)

    def _merge(self, var: Var, body: Stmt | None, index: int) -> None:
        last = get_last_yield_stmt(body)
        value = last.value[index] if last is not None and index < len(last.value) else None
        self._values.setdefault(var, []).append(value)

    def _search(self, var: Var) -> Var | None:
        roots: list[Var] = []
        written = False
        seen = {var}
        stack = [var]
        while stack:
            item = stack.pop()
            for value in self._values.get(item, (None,)):
                source, writes = self._source(value)
                if source is None:
                    roots.append(item)
                else:
                    written |= writes
                    if source not in seen:
                        seen.add(source)
                        stack.append(source)
        return roots[0] if written and len(roots) == 1 and roots[0] is not var else None

    def _source(self, value: Any) -> tuple[Var | None, bool]:
        """The variable whose buffer a value is, and whether that is the result of a write."""
        if type(value) is Var or type(value) is IterArg:
            return value, False
        if isinstance(value, x.TupleGetItemExpr):
            return self._element(value.tuple, value.index)
        return self._element(value, 0)

    def _element(self, value: Any, index: int) -> tuple[Var | None, bool]:
        if type(value) is Var:
            definitions = self._values.get(value, ())
            value = definitions[0] if len(definitions) == 1 else None
        if type(value) is MakeTuple:
            element = value.elements[index]
            return (element, False) if isinstance(element, Var) else (None, False)
        if type(value) not in (Call, Submit):
            return None, False
        position = self._operand(value, index)
        if position is None or position >= len(value.args):
            return None, False
        target = value.args[position]
        return (target, True) if isinstance(target, Var) else (None, False)

    def _operand(self, call: Any, index: int) -> int | None:
        if type(call.op) is GlobalVar:
            function = self._functions.get(call.op.name)
            lineage = return_lineage(function) if function is not None else None
            return lineage[index] if lineage is not None and index < len(lineage) else None
        definition = REGISTRY.get(call.op.name)
        return definition.alias_operand if definition is not None and definition.alias is Alias.IS else None


__all__ = ["WrittenBuffers"]
