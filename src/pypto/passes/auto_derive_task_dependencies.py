"""AutoDeriveTaskDependencies: edges between launches are found by the compiler, so that the runtime looks less.

Before (``buf`` is written by one launch and read by the next)::

    buf1 = self.produce(a, buf, attrs={"arg_directions": [input, inout]})
    y1 = self.consume(buf1, y, attrs={"arg_directions": [input, inout]})

After::

    buf1 = self.produce(a, buf, attrs={"arg_directions": [input, inout]})
    y1 = self.consume(buf1, y, attrs={"arg_directions": [no_dep, inout], "compiler_manual_dep_edges": [buf1], ...})

There are two analyses, both off by default.

``order_overwrites``: what the runtime does not see. It never orders a launch that overwrites a buffer behind the
launches that read it. Where nothing else orders the two, either (see :mod:`pypto.analysis.overwrites`), and a variable
stands for the reader, it becomes an edge::

    t1 = self.produce(a, t)                 t1 = self.produce(a, t)
    y1 = self.consume(t1, y)                y1 = self.consume(t1, y)
    t2 = self.produce(b, t1)                t2 = self.produce(b, t1)  # edges: [y1]

In a loop that is the carry of what the reader writes. Nothing is added for what the program leaves open itself: NoDep
arguments, ``manual_dep`` buffers, MANUAL scopes, parallel iterations.

``analyze_auto_scopes``: what the runtime would find at run time. What is analysed are *regions*: the whole body of an
Orchestration function whose scopes the compiler places, and the AUTO scopes that a user placed. A MANUAL scope of the
user is never touched.

Each launch is compared with the earlier ones that touch the same place (:mod:`.task_dependencies.places`) where one of
the two writes. If the user's ``deps`` cover the earlier one, that is all; else its id becomes an edge. The id of a
launch is the task id of a submit, the result of a plain call, or what the call writes. An argument all of whose hazards
are covered for certain is *lowered*: ``Input`` to ``NoDep``, ``InOut`` to ``OutputExisting``.

A hazard without an id that can be named makes the region *fall back*: nothing is lowered in it, and a scope that the
user placed loses its edges, too. So does a hazard from one iteration of a loop to the next that no carried id stands
for, except that edges stay. Behind a loop of known length, and behind an outermost parallel one, a result of the loop
stands for the tasks of all iterations whose last one yields it, and for what these wait for; behind a branch, a result
of the branch that is a task id does.

Launches with edges are marked, for MaterializeRuntimeScopes, if all of the outermost region is ordered by edges alone;
so is a function that has nothing else (no scope, no access of the host, no buffer made by a launch or in a loop: a
MANUAL scope would not keep these alive).

Requires SplitIncoreOrch and CallDirectionsResolved, gives CallDirectionsResolved. Cost: linear in launches and edges,
times the depth of loops; parts of one buffer are compared pairwise until all of the buffer is written.
"""

from __future__ import annotations

from typing import Any

from ..analysis.callees import Callees, callees_of
from ..analysis.overwrites import may_overwrite, unordered_overwrites
from ..analysis.task_marks import CANDIDATE, EDGES, LAYER_CANDIDATE
from ..ir.enums import FunctionType, is_incore_type
from ..ir.expr import Var
from ..ir.mutator import IRMutator
from ..ir.node import FrozenDict, FrozenList
from ..ir.program import Function, Program
from ..ir.stmt import AssignStmt, EvalStmt, Stmt
from ..verify.call_sites import call_sites
from ..verify.properties import IRProperty
from .base import Pass
from .task_dependencies.launches import Launch
from .task_dependencies.walk import Analysis


class AutoDeriveTaskDependencies(Pass):
    """See the text of the module."""

    name = "AutoDeriveTaskDependencies"
    required = (IRProperty.SplitIncoreOrch, IRProperty.CallDirectionsResolved)
    produced = (IRProperty.CallDirectionsResolved,)

    def __init__(self, analyze_auto_scopes: bool = False, order_overwrites: bool = False) -> None:
        self.analyze_auto_scopes = bool(analyze_auto_scopes)
        self.order_overwrites = bool(order_overwrites)

    def run(self, program: Program) -> Program:
        if self.analyze_auto_scopes:
            callees = callees_of(program)
            program = program.with_functions([_derived(function, callees) for function in program.functions.values()])
        if self.order_overwrites:
            callees = callees_of(program)
            program = program.with_functions([_ordered(function, callees) for function in program.functions.values()])
        return program


def _derived(function: Function, callees: Callees) -> Function:
    sites = call_sites(function).functions
    # A lowered direction does not tell any more what the launch does, so a function is analysed once.
    if is_incore_type(function.func_type) or any(EDGES in site.call.attrs for site in sites):
        return function
    found = Analysis(function, callees)
    attrs = {key: value for key, value in function.attrs.items() if key != LAYER_CANDIDATE}
    if found.layer:
        attrs[LAYER_CANDIDATE] = True
    body = _Apply(found).visit_stmt(function.body)
    if body is function.body and attrs == dict(function.attrs):
        return function
    return function.replace(body=body, attrs=FrozenDict(attrs))


def _ordered(function: Function, callees: Callees) -> Function:
    if function.func_type is not FunctionType.Orchestration or not may_overwrite(function, callees):
        return function
    edges: dict[Any, list[Var]] = {}
    for pair in unordered_overwrites(function, callees):
        if pair.name is not None and pair.certain and not pair.chosen:
            edges.setdefault(pair.second, []).append(pair.name)
    return function.replace(body=_AddEdges(edges).visit_stmt(function.body)) if edges else function


class _AddEdges(IRMutator):
    def __init__(self, edges: dict[Any, list[Var]]) -> None:
        self._edges = edges

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        edges = self._edges.get(op.value)
        return op if edges is None else op.replace(value=_with_edges(op.value, edges))

    def visit_eval_stmt(self, op: EvalStmt) -> Stmt:
        edges = self._edges.get(op.expr)
        return op if edges is None else op.replace(expr=_with_edges(op.expr, edges))


def _with_edges(call: Any, edges: list[Var]) -> Any:
    known = dict.fromkeys([*call.attrs.get(EDGES, ()), *edges])
    return call.replace(attrs=FrozenDict({**call.attrs, EDGES: FrozenList(known)}))


class _Apply(IRMutator):
    """Writes edges, marks and lowered directions into the launches."""

    def __init__(self, found: Analysis) -> None:
        self._marked = found.marked
        self._launches: dict[Stmt, Launch] = {
            launch.stmt: launch for launch in found.launches if launch.edges or launch.lowered
        }

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        launch = self._launches.get(op)
        return op if launch is None else op.replace(value=self._changed(launch))

    def visit_eval_stmt(self, op: EvalStmt) -> Stmt:
        launch = self._launches.get(op)
        return op if launch is None else op.replace(expr=self._changed(launch))

    def _changed(self, launch: Launch) -> object:
        attrs = dict(launch.call.attrs)
        if launch.lowered:
            directions = list(launch.call.arg_directions)
            for i, direction in launch.lowered.items():
                directions[i] = direction
            attrs["arg_directions"] = FrozenList(directions)
        if launch.edges:
            attrs[EDGES] = FrozenList(launch.edges)
        if launch in self._marked:
            attrs[CANDIDATE] = True
        return launch.call.replace(attrs=FrozenDict(attrs))


def auto_derive_task_dependencies(analyze_auto_scopes: bool = False, order_overwrites: bool = False) -> Pass:
    """The pass that finds edges between launches; with neither analysis it does nothing."""
    return AutoDeriveTaskDependencies(analyze_auto_scopes, order_overwrites)


__all__ = ["AutoDeriveTaskDependencies", "auto_derive_task_dependencies"]
