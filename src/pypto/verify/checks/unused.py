"""UnusedVariable and UnusedControlFlowResult: what is computed and read nowhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ...ir.expr import IterArg, MemRef, Var
from ...ir.operands import OPERANDS, attrs_operands
from ...ir.program import Function
from ...ir.stmt import (
    SCOPE_CLASSES,
    AssignStmt,
    CommDomainScopeStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    SpmdScopeStmt,
    WhileStmt,
    YieldStmt,
)
from ...ir.traversal import CONSTANTS
from ...ir.tree import own_definitions
from ...ir.type_fields import PLAIN_TYPES, is_closed, type_expressions
from ..inventory import inventory
from .registry import DiagnosticCheck, Note, warns


@warns(DiagnosticCheck.UnusedVariable, "UnusedVariableCheck", 1001)
def find_unused_variables(function: Function) -> list[Note]:
    """The assigned variables that nothing reads, at their first assignment.

    Parameters, loop variables and iter_args are exempt, and names that begin with an underscore.
    """
    assigned: dict[Any, Any] = {}
    for stmt, _ in inventory(function).of(AssignStmt):
        assigned.setdefault(stmt.var, stmt)
    return _unread(function, assigned.items())


@warns(DiagnosticCheck.UnusedControlFlowResult, "UnusedControlFlowResultCheck", 1002)
def find_unused_results(function: Function) -> list[Note]:
    """The results of branches and loops that nothing reads."""
    results = [
        (var, stmt) for stmt, _ in inventory(function).of(IfStmt, ForStmt, WhileStmt) for var in stmt.return_vars
    ]
    return _unread(function, results)


def _unread(function: Function, definitions: Iterable[tuple[Any, Any]]) -> list[Note]:
    reads = variables_read(function)
    return [
        Note(f"Unused variable '{var.name_hint}' in function '{function.name}'", stmt.span)
        for var, stmt in definitions
        if var not in reads and not var.name_hint.startswith("_")
    ]


_CACHE: WeakKeyDictionary[Function, frozenset[Any]] = WeakKeyDictionary()


def variables_read(function: Function) -> frozenset[Any]:
    """The variables that something reads: an expression, an attribute, a type, a memory reference as its base."""
    found = _CACHE.get(function)
    if found is None:
        reads = _Reads()
        reads.function(function)
        found = _CACHE[function] = frozenset(reads.found)
    return found


class _Reads:
    def __init__(self) -> None:
        self.found: set[Any] = set()
        self._types: set[int] = set()

    def function(self, function: Function) -> None:
        for param in function.params:
            self._type(param.type)
        for kind in function.return_types:
            self._type(kind)
        self._expressions(attrs_operands(function.attrs))
        expressions = self._expressions
        for stmt, _ in inventory(function).placed:
            if type(stmt) is AssignStmt:
                expressions((stmt.value,))
                self._type(stmt.var.type)
            else:
                operands = _OPERANDS.get(type(stmt))
                if operands is not None:
                    expressions(operands(stmt))
                for var in own_definitions(stmt):
                    self._type(var.type)

    def _expressions(self, roots: Sequence[Any]) -> None:
        found, constants, operands = self.found, CONSTANTS, OPERANDS
        stack = list(roots)
        while stack:
            e = stack.pop()
            cls = type(e)
            if cls is Var or cls is IterArg:
                found.add(e)
            elif cls not in constants:
                if cls is MemRef:
                    found.add(e.base_)
                stack += operands[cls](e)

    def _type(self, kind: Any) -> None:
        if type(kind) not in PLAIN_TYPES and not is_closed(kind) and id(kind) not in self._types:
            self._types.add(id(kind))
            self._expressions(type_expressions(kind))


def _scope_operands(stmt: Any) -> list[Any]:
    found = attrs_operands({key: value for key, value in stmt.attrs.items() if key != "task_id_var"})
    if type(stmt) is SpmdScopeStmt:
        found.append(stmt.core_num)
    elif type(stmt) is CommDomainScopeStmt:
        found += stmt.slots
    return found


# What a statement reads itself, without its bodies.
_OPERANDS: dict[type, Callable[[Any], Sequence[Any]]] = {
    EvalStmt: lambda stmt: (stmt.expr,),
    YieldStmt: lambda stmt: stmt.value,
    ReturnStmt: lambda stmt: stmt.value,
    IfStmt: lambda stmt: (stmt.condition,),
    ForStmt: lambda stmt: [stmt.start, stmt.stop, stmt.step, *[arg.initValue for arg in stmt.iter_args]],
    WhileStmt: lambda stmt: [stmt.condition, *[arg.initValue for arg in stmt.iter_args]],
    **dict.fromkeys(SCOPE_CLASSES, _scope_operands),
}
