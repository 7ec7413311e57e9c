"""The walk that finds hazards between launches and says by which ids they can be waited for."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from ...analysis.callees import Callees
from ...analysis.constants import static_trip_count
from ...analysis.escapes import leaves_its_loop
from ...analysis.task_marks import is_task
from ...ir.dtype import DataType
from ...ir.enums import ArgDirection, ForKind, FunctionType
from ...ir.expr import Call, GlobalVar, Submit, TupleGetItemExpr, Var
from ...ir.program import Function
from ...ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    RuntimeScopeStmt,
    ScopeStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
)
from ...ir.tree import yielded_values
from ...ir.type import ArrayType, ScalarType, TensorType
from .launches import SURE, Access, Launch, Loop, TaskIds, covers
from .places import Part, Place, Places

_DEBUG = "PYPTO_AUTO_DEPS_LOOP_CARRY_DEBUG"
_READS = (ArgDirection.Input, ArgDirection.InOut)
_WRITES = (ArgDirection.InOut, ArgDirection.Output, ArgDirection.OutputExisting)
_LOWERED = {ArgDirection.Input: ArgDirection.NoDep, ArgDirection.InOut: ArgDirection.OutputExisting}

_LEFT_DYNAMIC = "prior_from_inactive_dynamic_loop"
_LEFT_STATIC = "dynamic_prior_producer_requires_scope_lift"
_NO_ID = "missing_prior_task_id"
_UNRESOLVED = "unresolved_location"


class Region:
    """A part of the program whose launches are analysed: an AUTO scope, or the body of a function."""

    def __init__(self, virtual: bool, outer: Region | None) -> None:
        self.virtual = virtual
        self.outer = outer
        self.launches: list[Launch] = []  # also those of regions inside
        self.candidates: list[tuple[Launch, int, ArgDirection]] = []
        self.fallback = ""
        self.unproven = False  # a hazard from one iteration to the next that no id stands for

    def fall_back(self, reason: str) -> None:
        self.fallback = self.fallback or reason


class _Frame:
    """The accesses of one body so far: buffer -> (writes, reads); and those that a later write waits for."""

    def __init__(self) -> None:
        self.accesses: dict[Any, tuple[list[Access], list[Access]]] = {}
        self.behind: dict[Any, list[Access]] = {}
        self._tracked: set[Any] = set()

    def push(self, access: Access) -> None:
        key = buffer_key(access.place)
        if access.tracked:  # one stands for all
            if key in self._tracked:
                return
            self._tracked.add(key)
            access.place, access.write = Place(access.place.root, Part.UNKNOWN, exact=False), True
        pair = self.accesses.get(key)
        if pair is None:
            pair = self.accesses[key] = ([], [])
        pair[not access.write].append(access)

    def set_behind(self, key: Any) -> None:
        """What touched a buffer so far has been waited for by a write of all of it."""
        if key in self.accesses:
            writes, reads = self.accesses.pop(key)
            self.behind.setdefault(key, []).extend(writes + reads)

    def all(self) -> Iterator[Access]:
        for writes, reads in self.accesses.values():
            yield from writes
            yield from reads


def buffer_key(place: Place) -> Any:
    """Buffers with one key may be the same memory."""
    memref = getattr(place.root.type, "memref", None)
    return place.root if memref is None else memref.base_


class Analysis:
    """The regions of one function. ``launches``: those that were analysed; ``layer``: whether the whole
    body may be one MANUAL scope."""

    def __init__(self, function: Function, callees: Callees) -> None:
        self.launches: list[Launch] = []
        self.marked: set[Launch] = set()
        self._callees = callees
        self._names = callees.names(function)
        self._places = Places(function, self._names)
        self._ids = TaskIds()
        self._launch_of: dict[Any, Launch] = {}  # ids and results
        self._collected: set[Var] = set()  # results of loops that stand for all iterations
        self._made: dict[Var, tuple[Loop, ...]] = {}  # buffers made here, with the loops around
        self._frames = [_Frame()]
        self._loops: tuple[Loop, ...] = ()
        self._branches = 0
        self._region: Region | None = None
        self._count = 0
        self._scopes = self._nested_creates = self._touched = self._open = False
        self._debug = os.environ.get(_DEBUG, "") not in ("", "0", "false")
        whole = function.func_type is FunctionType.Orchestration and function.attrs.get("auto_scope", True)
        if whole:
            self._region = Region(True, None)
        self._placed = not function.attrs.get("auto_scope", True)
        self._stmt(function.body)
        region = self._region
        if whole and region is not None:
            self._finish(region)
        self.layer = bool(
            region is not None
            and not (region.fallback or region.unproven or self._scopes or self._nested_creates)
            and not (self._touched or self._open or any(launch.allocates for launch in region.launches))
            and region.launches
        )

    # --- statements ---------------------------------------------------------------------------------------------------

    def _stmt(self, stmt: Any) -> None:
        cls = type(stmt)
        if cls is SeqStmts:
            for inner in stmt.stmts:
                self._stmt(inner)
        elif cls is AssignStmt:
            self._assign(stmt)
        elif cls is EvalStmt:
            if is_task(stmt.expr):
                self._launch(stmt, stmt.expr)
            else:
                self._builtin(stmt.expr)
        elif cls is ForStmt or cls is WhileStmt:
            self._loop(stmt)
        elif cls is IfStmt:
            self._branch(stmt)
        elif cls is RuntimeScopeStmt:
            self._scope(stmt)
        elif isinstance(stmt, ScopeStmt):
            self._stmt(stmt.body)

    def _assign(self, stmt: AssignStmt) -> None:
        var, value = stmt.var, stmt.value
        if is_task(value):
            launch = self._launch(stmt, value)
            self._launch_of[var] = launch
            if type(value) is Call:
                self._identify(launch, var)
            self._made_by(launch, var)
        elif type(value) is TupleGetItemExpr and value.tuple in self._launch_of:
            launch = self._launch_of[value.tuple]
            self._launch_of[var] = launch
            if isinstance(var.type, ScalarType) and var.type.dtype is DataType.TASK_ID:
                if launch.id is None:
                    self._identify(launch, var)
                self._ids.set(var, {launch: SURE})
            else:
                self._made_by(launch, var)
        elif isinstance(value, Var):
            if value in self._launch_of and value not in self._collected:
                self._launch_of[var] = self._launch_of[value]
            self._ids.assign(var, value, self._loops, self._branches > 0)
        elif type(value) is Call:
            self._builtin(value)
            if value.op.name == "tensor.create":
                self._made[var] = self._loops
                self._nested_creates |= bool(self._loops) or self._branches > 0
            self._ids.assign(var, value, self._loops, self._branches > 0)

    def _builtin(self, value: Any) -> None:
        # The host waits for the writers that the runtime tracks, and a MANUAL scope would track none.
        if type(value) is Call and value.op.name in ("tensor.read", "tensor.write"):
            self._touched = True

    def _identify(self, launch: Launch, var: Var) -> None:
        launch.id = var
        self._launch_of[var] = launch
        self._ids.set(var, {launch: SURE})

    def _made_by(self, launch: Launch, var: Var) -> None:
        """A result that is a buffer of its own: the runtime allocates it for the launch."""
        if isinstance(var.type, TensorType) and self._names.name(var) is var and var not in self._names.views:
            launch.allocates = True
            self._made[var] = self._loops
            self._frames[-1].push(Access(launch, Place(var, Part.FULL), True))

    def _scope(self, stmt: RuntimeScopeStmt) -> None:
        self._scopes = True
        if stmt.manual:
            return  # explicit dependencies are all that counts there, and they are the user's
        if not self._placed:
            self._stmt(stmt.body)
            return
        region = Region(False, self._region)
        self._region = region
        self._frames.append(_Frame())
        self._stmt(stmt.body)
        self._region = region.outer
        self._finish(region)
        frame = self._frames.pop()
        for access in frame.all() if region.fallback else ():
            access.tracked = True
        self._hand_on(frame, set() if region.fallback else _covered(frame))

    def _branch(self, stmt: IfStmt) -> None:
        left = []
        self._branches += 1
        for body in (stmt.then_body, stmt.else_body):
            if body is not None:
                self._frames.append(_Frame())
                self._stmt(body)
                left.append((self._frames.pop(), yielded_values(body)))
        self._branches -= 1
        for i, var in enumerate(stmt.return_vars):
            self._ids.join(var, [values[i] for _, values in left if i < len(values)])
        for frame, values in left:
            self._rename(frame, list(zip(stmt.return_vars, values, strict=False)), _NO_ID, ids_only=True)
        covered = set.intersection(*(_covered(frame) for frame, _ in left)) if len(left) == 2 else set()
        for frame, _ in left:
            self._hand_on(frame, covered)

    def _loop(self, stmt: Any) -> None:
        escapes = leaves_its_loop(stmt.body)
        trips = None
        if type(stmt) is ForStmt and not escapes:
            trips = static_trip_count(stmt.start, stmt.stop, stmt.step)
        loop = Loop(stmt, type(stmt) is ForStmt and stmt.kind is ForKind.Parallel, trips)
        first = self._count
        outer, self._loops = self._loops, (*self._loops, loop)
        self._ids.enter_loop(stmt)
        self._frames.append(_Frame())
        self._stmt(stmt.body)
        frame = self._frames.pop()
        values = yielded_values(stmt.body)
        # An iteration that is left early hands on other ids than its end does, and launches only part of the tasks.
        carried = {} if escapes else self._carried(stmt, values)
        self._loops = outer
        self._ids.leave_loop(stmt, values, trips == 1)
        if trips not in (0, 1) and self._meets_itself(loop, frame, carried):
            if self._region is not None:
                self._region.unproven = True
            for launch in self.launches if self._region is None else ():  # of scopes inside the loop
                if launch.index >= first:
                    launch.lowered.clear()
                    self.marked.discard(launch)
        nameable = (trips is not None and trips > 0) or (trips is None and loop.parallel and not outer and not escapes)
        pairs = list(zip(stmt.return_vars, values, strict=False)) if nameable else []
        reason = _LEFT_DYNAMIC if trips is None else _LEFT_STATIC
        self._rename(frame, pairs, reason, first, collects=trips != 1)
        self._hand_on(frame, _covered(frame) if trips else set())

    def _carried(self, stmt: Any, values: list[Any]) -> dict[Any, set[Launch]]:
        """Carried id -> the launches of the iteration before that it stands for."""
        found: dict[Any, set[Launch]] = {}
        for arg, value in zip(stmt.iter_args, values, strict=False):
            if not isinstance(arg.type, (TensorType, ArrayType)):
                found[arg] = {launch for launch, how in self._ids.of(value).items() if covers(how, launch, self._loops)}
        return found

    def _meets_itself(self, loop: Loop, frame: _Frame, carried: dict[Any, set[Launch]]) -> bool:
        """Whether an iteration has a hazard with the one before that no carried id stands for."""
        for key, (writes, reads) in frame.accesses.items():
            later = [*writes, *reads, *frame.behind.get(key, ())]
            if loop in self._made.get(key, ()) and all(access.place.exact for access in later):
                continue  # another buffer in each iteration
            for prior in writes + reads:
                for access in later:
                    if not (prior.write or access.write):
                        continue
                    if loop.parallel and not (prior.write and _is_tracked(access)):
                        continue  # iterations that the user calls independent, and the runtime orders no more than that
                    if access.place.overlaps(prior.place) and not _waits_for_carried(access.launch, prior, carried):
                        return True
        return False

    # --- leaving a body -----------------------------------------------------------------------------------------------

    def _rename(
        self,
        frame: _Frame,
        pairs: list[tuple[Var, Any]],
        reason: str,
        first: int = 0,
        ids_only: bool = False,
        collects: bool = False,
    ) -> None:
        """Give the accesses of a body that is left the names of its results, and hand them to the body around."""
        named: dict[Launch, Var] = {}
        for var, value in pairs:
            is_id = isinstance(var.type, ScalarType) and var.type.dtype is DataType.TASK_ID
            launch = self._launch_of.get(value)
            if launch is None or value in self._collected or not (is_id or isinstance(var.type, TensorType)):
                continue
            if ids_only and not is_id:
                continue
            if launch not in named or is_id:
                named[launch] = var
            if not ids_only:
                self._launch_of[var] = launch
                if collects:
                    self._collected.add(var)
        reach = {launch: _reached(launch, first) for launch in named} if named else {}
        for access in frame.all():
            if not (access.left and access.id is None):
                access.id = next((var for end, var in named.items() if access.launch in reach[end]), None)
                access.left = True
                access.reason = reason
            if access.id is None and self._region is not None and self._region.fallback:
                access.tracked = True  # the reason is known, so nobody needs to ask again

    def _hand_on(self, frame: _Frame, covered: set[Any]) -> None:
        """Give what happened in a body to the one around. ``covered``: buffers of which something in the body certainly
        writes all, behind all that was before."""
        outer = self._frames[-1]
        for key in covered:
            outer.set_behind(key)
        for access in frame.all():
            access.covering = access.covering and buffer_key(access.place) in covered
            outer.push(access)
        for key, accesses in frame.behind.items():
            outer.behind.setdefault(key, []).extend(accesses)

    # --- launches -----------------------------------------------------------------------------------------------------

    def _launch(self, stmt: Stmt, call: Any) -> Launch:
        launch = Launch(self._count, stmt, call, self._loops)
        self._count += 1
        region = self._region
        outer = region
        while outer is not None:
            outer.launches.append(launch)
            outer = outer.outer
        directions = call.arg_directions
        known = type(call.op) is GlobalVar and self._callees.of(call) is not None and len(directions) == len(call.args)
        if not known:
            self._open = True
            if region is not None:
                region.fall_back(_UNRESOLVED)
            return launch
        pushed: list[Access] = []
        for i, (arg, direction) in enumerate(zip(call.args, directions, strict=True)):
            reads, writes = direction in _READS, direction in _WRITES
            if not (reads or writes) or not isinstance(arg.type, TensorType):
                continue
            if writes and type(stmt) is EvalStmt and launch.id is None and isinstance(arg, Var):
                if arg not in self._launch_of and type(call) is Call:
                    self._identify(launch, arg)
            places = self._places.of(arg)
            if places is None:
                if region is not None and (writes or not self._waits_for_producer(launch, arg)):
                    region.fall_back(_UNRESOLVED)
                    self._say(launch, i, "fallback", _UNRESOLVED)
                continue
            covering = region is not None and self._argument(launch, i, direction, places, region)
            pushed += [Access(launch, place, writes, covering) for place in places]
        for access in pushed:
            self._frames[-1].push(access)
        return launch

    def _argument(self, launch: Launch, i: int, direction: ArgDirection, places: list[Place], region: Region) -> bool:
        """Look at one argument; whether it is a write of all of a buffer that waits for all that was before."""
        reads, writes = direction in _READS, direction in _WRITES
        found = proven = 0
        reason = ""
        covering = False
        for place in places:
            settled = True
            for prior in self._priors(place, writes):
                found += 1
                outcome = self._settle(launch, prior)
                proven += outcome is True
                settled = settled and outcome is True
                reason = reason or (outcome if isinstance(outcome, str) else "")
            # All that is before waits behind this write: nobody needs to look at it again.
            covering = writes and settled and place.part is Part.FULL and place.exact
            if covering:
                self._frames[-1].set_behind(buffer_key(place))
        if reason:
            region.fall_back(reason)
        if not reads or direction not in _LOWERED:
            bucket = "inout_or_output"
        elif any(place.part is Part.UNKNOWN for place in places):
            bucket = "unknown_region"
        elif any(place.part is Part.DYNAMIC for place in places):
            bucket = "dynamic_region"
        elif not found:
            bucket = "no_covered_hazard"
        elif reason:
            bucket = "fallback"
        elif proven < found:
            bucket = "no_covered_hazard"
        else:
            bucket = "applied"
            region.candidates.append((launch, i, _LOWERED[direction]))
        self._say(launch, i, bucket, reason)
        return covering

    def _priors(self, place: Place, writes: bool) -> Iterator[Access]:
        key = buffer_key(place)
        for frame in self._frames:
            pair = frame.accesses.get(key)
            if pair is not None:
                priors: Iterable[Access] = pair[0] if not writes else sorted(pair[0] + pair[1], key=_index)
                for prior in priors:
                    if prior.place.overlaps(place):
                        yield prior

    def _settle(self, launch: Launch, prior: Access) -> Any:
        """Make a launch wait for an earlier access. True: it does for certain; "": the runtime or the user's word sees
        to it; else the reason why it can't."""
        if prior.launch is launch:
            return True
        if prior.tracked:
            return ""
        for dep in _deps(launch.call):
            how = self._ids.of(dep).get(prior.launch)
            if how is not None or dep is prior.name():
                # A dependency of the user on the result of a loop waits for the last iteration only.
                if dep in self._collected or not (dep is prior.name() or covers(how, prior.launch, self._loops)):
                    return ""
                launch.awaited.add(prior.launch)
                return True
        name = prior.name()
        if name is None:
            return prior.reason or _NO_ID
        launch.edges[name] = None
        launch.awaited.add(self._launch_of.get(name, prior.launch))
        launch.awaited.add(prior.launch)
        return True

    def _waits_for_producer(self, launch: Launch, arg: Any) -> bool:
        producer = self._launch_of.get(arg)
        return producer is not None and any(producer in self._ids.of(dep) for dep in _deps(launch.call))

    # --- ends of regions ----------------------------------------------------------------------------------------------

    def _finish(self, region: Region) -> None:
        if region.fallback:
            if not region.virtual:
                for launch in region.launches:
                    launch.edges.clear()
            region.candidates.clear()
        if region.outer is not None:
            # What is lowered is decided by the outermost region.
            region.outer.candidates += region.candidates
            region.outer.unproven |= region.unproven
        elif not region.fallback and not region.unproven:
            for launch, i, direction in region.candidates:
                launch.lowered[i] = direction
            if not self._touched and not any(launch.allocates for launch in region.launches):
                self.marked.update(launch for launch in region.launches if launch.edges)
        if region.outer is None:
            self.launches += region.launches

    def _say(self, launch: Launch, i: int, bucket: str, reason: str) -> None:
        if self._debug:
            why = f" fallback_reason={reason}" if reason else ""
            text = f"call={launch.call.op.name} arg_index={i} bucket={bucket}{why}"
            print(f"[auto-deps-loop-debug] [auto-no-dep-bucket] {text}", file=sys.stderr)


def _covered(frame: _Frame) -> set[Any]:
    """Buffers that a body writes all of, behind all that was before, under a name that is known behind the body."""
    return {
        key
        for key, (writes, _) in frame.accesses.items()
        if any(access.covering and access.name() is not None for access in writes)
    }


def _index(access: Access) -> int:
    return access.launch.index


def _deps(call: Any) -> Iterable[Any]:
    return call.deps if type(call) is Submit else ()


def _is_tracked(access: Access) -> bool:
    """Whether the runtime looks for earlier writers of what is accessed."""
    call = access.launch.call
    return not access.write or any(direction is ArgDirection.InOut for direction in call.arg_directions)


def _waits_for_carried(launch: Launch, prior: Access, carried: dict[Any, set[Launch]]) -> bool:
    return any(prior.launch in carried.get(dep, ()) for dep in _deps(launch.call))


def _reached(launch: Launch, first: int) -> set[Launch]:
    """A launch and those of the same body, from number ``first`` on, that it waits for."""
    found = {launch}
    stack = [launch]
    while stack:
        for other in stack.pop().awaited:
            if other.index >= first and other not in found:
                found.add(other)
                stack.append(other)
    return found


__all__ = ["Analysis", "Region"]
