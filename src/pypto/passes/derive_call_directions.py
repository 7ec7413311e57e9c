"""DeriveCallDirections: each launch says of each argument how it takes part in the ordering of tasks.

*Before*::

    for i in pl.parallel(4):
        y1 = self.part(x, i, y)                       # part(x, i, o: pl.Out[...])
    z = self.fix(x, y)                                # fix(x, o: pl.Out[...])

*After*::

    for i in pl.parallel(4):
        y1 = self.part(x, i, y, attrs={"arg_directions": [input, scalar, output_existing]})
    z = self.fix(x, y, attrs={"arg_directions": [input, inout]})

An argument for an ``Out`` parameter need not wait for earlier writers if there are none: it is ``OutputExisting`` for
the first writer of the buffer, and ``InOut`` behind others, in sequential loops (the next iteration is behind this
one), for a buffer that the enclosing function is handed as ``InOut`` (or as ``Out``, if the function is called by
another one, of whose tasks it is a part), and for what may be one buffer or another. Slices are parts of their
buffer: a writer of an overlapping slice, or of one whose place is not constant, is an earlier writer. (At run time
``InOut`` orders only regions that overlap.) ``pl.no_dep`` makes an argument ``NoDep``, whatever the rest says.

Before that the parameters of Group and Spmd wrappers are raised to what their inner calls do. Directions that a call
has already are kept. Needs SplitIncoreOrch; gives CallDirectionsResolved. Cost: linear; a wrapper is looked at again
at most twice for each of its parameters.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container
from typing import Any

from ..analysis.callees import Callees, callees_of, parameter_index, promises_less
from ..analysis.view_boxes import Box, ViewBoxes, disjoint
from ..ir.call import Submit
from ..ir.enums import ArgDirection, ForKind, FunctionType, ParamDirection
from ..ir.expr import GlobalVar, Var
from ..ir.mutator import IRMutator
from ..ir.node import FrozenDict, FrozenList
from ..ir.program import Function, Program
from ..ir.stmt import ForStmt, IfStmt, Stmt, WhileStmt
from ..ir.type import TensorType
from ..verify.call_sites import call_sites
from ..verify.properties import IRProperty
from .base import Pass
from .outlining.policy import HOST_SIDE

_IN, _OUT, _INOUT = ParamDirection.In, ParamDirection.Out, ParamDirection.InOut
_WRAPPERS = frozenset((FunctionType.Group, FunctionType.Spmd))
# How many written parts of one buffer are told apart; behind that it counts as written everywhere.
_PARTS = 64


class DeriveCallDirections(Pass):
    """See the module."""

    name = "DeriveCallDirections"
    required = (IRProperty.SplitIncoreOrch,)
    produced = (IRProperty.CallDirectionsResolved,)

    def run(self, program: Program) -> Program:
        program = program.with_functions(_with_raised_wrappers(list(program.functions.values())))
        functions = program.functions.values()
        called = {name for function in functions for name in call_sites(function).callees}
        callees = callees_of(program)
        return program.with_functions([_with_directions(f, callees, f.name in called) for f in functions])


# --- wrappers ---------------------------------------------------------------------------------------------------------


def _with_raised_wrappers(functions: list[Function]) -> list[Function]:
    """Wrappers write what the functions that they launch write."""
    wrappers = {f.name: f for f in functions if f.func_type in _WRAPPERS}
    if not wrappers:
        return functions
    known = {f.name: list(f.param_directions) for f in functions}
    by_name = {f.name: f for f in functions}
    launchers: dict[str, dict[str, None]] = {}
    for wrapper in wrappers.values():
        for callee in call_sites(wrapper).callees:
            launchers.setdefault(callee, {})[wrapper.name] = None
    waiting = deque(wrappers)
    queued = set(wrappers)
    while waiting:
        name = waiting.popleft()
        queued.discard(name)
        if _raise(wrappers[name], known, by_name):
            for launcher in launchers.get(name, ()):
                if launcher not in queued:
                    queued.add(launcher)
                    waiting.append(launcher)
    return [
        f if f.name not in wrappers or known[f.name] == list(f.param_directions) else _redirected(f, known[f.name])
        for f in functions
    ]


def _raise(wrapper: Function, known: dict[str, list[ParamDirection]], functions: dict[str, Function]) -> bool:
    """Raise the directions of one wrapper; whether any rose."""
    position = {param: i for i, param in enumerate(wrapper.params)}
    own = known[wrapper.name]
    rose = False
    for site in call_sites(wrapper).functions:
        callee = functions.get(site.call.op.name)
        if callee is None:
            continue
        for i, arg in enumerate(site.call.args):
            mine = position.get(arg)
            inner = parameter_index(callee.params, len(site.call.args), i)
            if mine is None or inner is None:
                continue
            direction = known[callee.name][inner]
            if promises_less(own[mine], direction):
                own[mine] = direction
                rose = True
    return rose


def _redirected(function: Function, directions: list[ParamDirection]) -> Function:
    return function.replace(param_directions=FrozenList(directions))


# --- call sites -------------------------------------------------------------------------------------------------------


def _with_directions(function: Function, callees: Callees, is_called: bool) -> Function:
    if not any(_is_open(site.call, callees) for site in call_sites(function).functions):
        return function
    # A host function runs as a part of its caller, whose tasks may have written what is handed in, also as Out.
    written = {_INOUT, _OUT} if is_called and function.func_type in HOST_SIDE else {_INOUT}
    body = _Directions(function, callees, written).visit_stmt(function.body)
    return function if body is function.body else function.replace(body=body)


def _is_open(call: Any, callees: Callees) -> bool:
    """Whether a launch has no directions yet, and its arguments fit what it launches."""
    callee = callees.of(call)
    if callee is None or "arg_directions" in call.attrs:
        return False
    given, total = len(call.args), len(callee.params)
    if type(call) is not Submit:
        return given == total
    passed = {parameter_index(callee.params, given, i) for i in range(given)}
    return given <= total and all(i in passed or callee.param_directions[i] is _OUT for i in range(total))


class _Written:
    """What of one buffer has been written: some parts of it, or anything."""

    __slots__ = ("anywhere", "parts")

    def __init__(self) -> None:
        self.anywhere = False
        self.parts: dict[Box, None] = {}

    def meets(self, box: Box | None) -> bool:
        return self.anywhere or (bool(self.parts) and any(not disjoint(part, box) for part in self.parts))


class _Directions(IRMutator):
    """Writes directions into the launches of one function, in the order of the source.

    ``_written`` is what has been written in front of the statement at hand; ``_log`` takes it back at the end of a
    branch, since the other branch is not behind it.
    """

    def __init__(self, function: Function, callees: Callees, written: Container[ParamDirection]) -> None:
        self._callees = callees
        self._boxes = ViewBoxes(callees.names(function))
        self._handed = {
            param
            for param, direction in zip(function.params, function.param_directions, strict=True)
            if direction in written
        }
        self._written: dict[Var, _Written] = {}
        self._log: list[tuple[Var, Box | None]] = []
        self._sequential = 0

    # --- statements ---------------------------------------------------------------------------------------------------

    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        if op.kind is ForKind.Parallel:
            return super().visit_for_stmt(op)
        self._sequential += 1
        new = super().visit_for_stmt(op)
        self._sequential -= 1
        return new

    def visit_while_stmt(self, op: WhileStmt) -> Stmt:
        self._sequential += 1
        new = super().visit_while_stmt(op)
        self._sequential -= 1
        return new

    def visit_if_stmt(self, op: IfStmt) -> Stmt:
        start = len(self._log)
        then_body = self.visit_stmt(op.then_body)
        else_body = op.else_body
        if else_body is not None:
            of_then = self._take_back(start)
            else_body = self.visit_stmt(else_body)
            for root, box in of_then:
                self._write(root, box)
        if then_body is op.then_body and else_body is op.else_body:
            return op
        return op.replace(then_body=then_body, else_body=else_body)  # type: ignore[no-any-return]

    # --- calls --------------------------------------------------------------------------------------------------------

    def visit_call(self, op: Any) -> Any:
        return self._launch(op) if type(op.op) is GlobalVar else op

    def visit_submit(self, op: Any) -> Any:
        return self._launch(op)

    def _launch(self, call: Any) -> Any:
        callee = self._callees.of(call)
        if callee is None:
            return call
        given = call.args
        inner = [parameter_index(callee.params, len(given), i) for i in range(len(given))]
        params = [callee.param_directions[i] if i is not None else _INOUT for i in inner]
        new = call
        if _is_open(call, self._callees):
            directions = [self._direction(arg, param) for arg, param in zip(given, params, strict=True)]
            for i in call.attrs.get("arg_direction_overrides", ()):
                directions[i] = ArgDirection.NoDep
            new = call.replace(attrs=FrozenDict({**call.attrs, "arg_directions": FrozenList(directions)}))
        for arg, param in zip(given, params, strict=True):
            if param is not _IN and isinstance(arg.type, TensorType):
                root, box = self._boxes.of(arg)
                if root is not None:
                    self._write(root, box)
        return new

    def _direction(self, arg: Any, param: ParamDirection) -> ArgDirection:
        if not isinstance(arg.type, TensorType):
            return ArgDirection.Scalar
        if param is _IN:
            return ArgDirection.Input
        if param is _INOUT or self._sequential:
            return ArgDirection.InOut
        root, box = self._boxes.of(arg)
        if root is None or root in self._handed:
            return ArgDirection.InOut
        written = self._written.get(root)
        return ArgDirection.InOut if written is not None and written.meets(box) else ArgDirection.OutputExisting

    # --- what has been written ----------------------------------------------------------------------------------------

    def _write(self, root: Var, box: Box | None) -> None:
        written = self._written.get(root)
        if written is None:
            written = self._written[root] = _Written()
        if written.anywhere or box in written.parts:
            return
        if box is None or len(written.parts) == _PARTS:
            written.anywhere = True
            self._log.append((root, None))
        else:
            written.parts[box] = None
            self._log.append((root, box))

    def _take_back(self, start: int) -> list[tuple[Var, Box | None]]:
        """Undo the writes logged from a position on; they are returned."""
        taken = self._log[start:]
        for root, box in reversed(taken):
            if box is None:
                self._written[root].anywhere = False
            else:
                del self._written[root].parts[box]
        del self._log[start:]
        return taken


def derive_call_directions() -> Pass:
    """Write the direction of each argument of each launch."""
    return DeriveCallDirections()


__all__ = ["DeriveCallDirections", "derive_call_directions"]
