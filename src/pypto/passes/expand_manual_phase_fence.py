"""ExpandManualPhaseFence: one dependency-only task between two phases, in place of an edge for each pair of tasks.

Before::

    with pl.manual_scope():
        for i in pl.parallel(4): ... tids[i] = t               # phase 1
        for j in pl.parallel(8):                               # 4 * 8 = 32 edges
            r, u = pl.submit(self.use, x, j, deps=[tids])

After::

    with pl.manual_scope():
        for i in pl.parallel(4): ... tids[i] = t
        phase_fence_barrier_0_tid = pl.system.task_dummy(deps=[tids])
        for j in pl.parallel(8):                               # 4 + 8 = 12 edges
            r, u = pl.submit(self.use, x, j, deps=[phase_fence_barrier_0_tid])

A *consumer* is a submit whose only dependency is an array of N task ids. For each loop in a MANUAL scope of an
Orchestration function, outermost first, and each array that the loop neither defines nor carries nor updates (under any
name: :mod:`pypto.analysis.array_names`), the consumers in the loop are counted: M is how often they run. Of a parallel
loop only those directly in its body count, and its trip count must be known; a sequential loop of unknown length counts
once, and consumers in loops inside it count with the trips of these, as far as they are known. If N * M > N + M, the
barrier goes directly before the loop, and the counted consumers wait for it.

All else is left alone: consumers with other dependencies besides, single slots, AUTO regions.

Requires and gives NoNestedCalls, NormalizedStmtStructure and CallDirectionsResolved. Linear in the statements times the
depth of loops around them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from math import prod
from typing import Any

from ..analysis.array_names import UPDATE, ArrayNames
from ..analysis.constants import constant_int, static_trip_count
from ..ir.dtype import DataType
from ..ir.enums import ForKind, FunctionType
from ..ir.expr import Call, Submit, Var
from ..ir.mutator import IRMutator
from ..ir.node import EMPTY_DICT, EMPTY_LIST, FrozenDict, FrozenList
from ..ir.program import Function, Program
from ..ir.stmt import AssignStmt, EvalStmt, ForStmt, IfStmt, RuntimeScopeStmt, ScopeStmt, SeqStmts, Stmt, WhileStmt, seq
from ..ir.tree import definitions
from ..ir.type import TASK_ID_TYPE, ArrayType
from ..ops.registry import lookup
from ..verify.properties import IRProperty
from .base import FunctionPass, Pass

_FORM = (IRProperty.NoNestedCalls, IRProperty.NormalizedStmtStructure, IRProperty.CallDirectionsResolved)
_DUMMY = "system.task_dummy"


class ExpandManualPhaseFence(FunctionPass):
    """See the text of the module."""

    name = "ExpandManualPhaseFence"
    required = _FORM
    produced = _FORM

    def run_on(self, function: Function, program: Program) -> Function:
        if function.func_type is not FunctionType.Orchestration:
            return function
        phases = _Phases()
        phases.stmt(function.body)
        if not phases.consumed:
            return function
        fences = _fences(phases, ArrayNames(function.body), function)
        if not fences.before:
            return function
        return function.replace(body=_Expand(fences).visit_stmt(function.body))


class _Loop:
    """A loop around the statement that is looked at."""

    def __init__(self, stmt: Any, manual: bool) -> None:
        self.stmt = stmt
        self.manual = manual
        self.counted = type(stmt) is ForStmt
        self.parallel = self.counted and stmt.kind is ForKind.Parallel
        self.trips = static_trip_count(stmt.start, stmt.stop, stmt.step) if self.counted else None
        self.updated: list[Any] = []  # arrays that the body updates

    def runs(self, inside: Iterable[_Loop]) -> int:
        """How often a consumer under these loops of the body runs for each entry into this loop; 0: not counted."""
        nested = list(inside)
        if not self.counted or (self.parallel and (nested or not self.trips)) or self.trips == 0:
            return 0
        return (self.trips or 1) * prod(loop.trips or 0 for loop in nested)


class _Phases:
    """The consumers of a function, loop by loop."""

    def __init__(self) -> None:
        # Loop -> array -> consumers and how often they run; loops from outside to inside, arrays in order of use.
        self.consumed: dict[_Loop, dict[Var, list[tuple[Stmt, int]]]] = {}
        self._loops: list[_Loop] = []
        self._manual = False
        self._depth: dict[Any, int] = {}  # array -> how many loops are around its definition

    def stmt(self, stmt: Any) -> None:
        cls = type(stmt)
        if cls is SeqStmts:
            for inner in stmt.stmts:
                self.stmt(inner)
        elif cls is AssignStmt:
            self._define((stmt.var,))
            self._value(stmt, stmt.value)
        elif cls is EvalStmt:
            self._value(stmt, stmt.expr)
        elif cls is ForStmt or cls is WhileStmt:
            self._loops.append(loop := _Loop(stmt, self._manual))
            if loop.manual and loop.counted:
                self.consumed[loop] = {}  # entered now, so that loops stay in order
            self._define(stmt.iter_args)
            self.stmt(stmt.body)
            self._loops.pop()
            self._define(stmt.return_vars)
        elif cls is IfStmt:
            self.stmt(stmt.then_body)
            if stmt.else_body is not None:
                self.stmt(stmt.else_body)
            self._define(stmt.return_vars)
        elif isinstance(stmt, ScopeStmt):
            outer = self._manual
            self._manual = outer or (type(stmt) is RuntimeScopeStmt and stmt.manual)
            self.stmt(stmt.body)
            self._manual = outer

    def _define(self, variables: Iterable[Var]) -> None:
        for var in variables:
            if isinstance(var.type, ArrayType):
                self._depth[var] = len(self._loops)

    def _value(self, stmt: Stmt, value: Any) -> None:
        if type(value) is Call and value.op.name == UPDATE:
            for loop in self._loops:
                loop.updated.append(value.args[0])
        array = _awaited_array(value)
        if array is None:
            return
        for i in range(self._depth.get(array, 0), len(self._loops)):
            loop = self._loops[i]
            runs = loop.runs(self._loops[i + 1 :]) if loop.manual else 0
            if runs:
                self.consumed[loop].setdefault(array, []).append((stmt, runs))


def _awaited_array(value: Any) -> Var | None:
    """The array of task ids that is all that a submit waits for."""
    if type(value) is Submit and len(value.deps) == 1:
        array = value.deps[0]
        if isinstance(array, Var) and isinstance(array.type, ArrayType) and array.type.dtype is DataType.TASK_ID:
            return array
    return None


class _Fences:
    """The barriers: those to put before a loop, and which consumer waits for which."""

    def __init__(self) -> None:
        self.before: dict[Stmt, list[AssignStmt]] = {}
        self.awaited: dict[Stmt, Var] = {}


def _fences(phases: _Phases, names: ArrayNames, function: Function) -> _Fences:
    fences = _Fences()
    free_names = _names(function)
    for loop, arrays in phases.consumed.items():
        updated: dict[Var, set[Var]] = {}
        for name in map(names.name, loop.updated if arrays else ()):
            updated.setdefault(names.kin(name), set()).add(name)
        for array, consumers in arrays.items():
            waiting = [(stmt, runs) for stmt, runs in consumers if stmt not in fences.awaited]
            size = constant_int(array.type.extent)  # type: ignore[attr-defined]
            total = sum(runs for _, runs in waiting)
            if size is None or size * total <= size + total:
                continue
            name = names.name(array)
            if any(names.may_be_same(name, other) for other in updated.get(names.kin(name), ())):
                continue
            barrier = _barrier(next(free_names), array, loop.stmt)
            fences.before.setdefault(loop.stmt, []).append(barrier)
            fences.awaited.update((stmt, barrier.var) for stmt, _ in waiting)
    return fences


def _names(function: Function) -> Iterator[str]:
    used: set[str] | None = None
    for number in count():
        if used is None:
            used = {var.name_hint for var in definitions(function)}
        name = f"phase_fence_barrier_{number}_tid"
        if name not in used:
            yield name


def _barrier(name: str, array: Var, loop: Stmt) -> AssignStmt:
    attrs = FrozenDict({"dummy_task": True, "manual_dep_edges": FrozenList([array])})
    call = Call.make(lookup(_DUMMY).op, EMPTY_LIST, EMPTY_DICT, attrs, TASK_ID_TYPE, loop.span)
    return AssignStmt(Var(name, TASK_ID_TYPE, loop.span), call, loop.span)


class _Expand(IRMutator):
    def __init__(self, fences: _Fences) -> None:
        self._fences = fences

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        awaited = self._fences.awaited.get(op)
        return op if awaited is None else op.replace(value=op.value.replace(deps=FrozenList([awaited])))

    def visit_eval_stmt(self, op: EvalStmt) -> Stmt:
        awaited = self._fences.awaited.get(op)
        return op if awaited is None else op.replace(expr=op.expr.replace(deps=FrozenList([awaited])))

    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        new = super().visit_for_stmt(op)
        barriers = self._fences.before.get(op)
        return new if barriers is None else seq([*barriers, new], op.span)


def expand_manual_phase_fence() -> Pass:
    """The pass that puts a barrier task between two phases where that takes fewer edges."""
    return ExpandManualPhaseFence()


__all__ = ["ExpandManualPhaseFence", "expand_manual_phase_fence"]
