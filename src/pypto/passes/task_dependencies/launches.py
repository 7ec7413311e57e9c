"""Launches, what they touch, and what task ids say about which launches."""

from __future__ import annotations

from typing import Any

from ...analysis.constants import constant_int
from ...ir.enums import ArgDirection
from ...ir.expr import Var
from ...ir.stmt import Stmt
from ...ir.type import ArrayType
from .places import Place


class Loop:
    """A loop that the walk is in or has left."""

    __slots__ = ("parallel", "stmt", "trips")

    def __init__(self, stmt: Any, parallel: bool, trips: int | None) -> None:
        self.stmt = stmt
        self.parallel = parallel
        self.trips = trips  # None: not known while compiling


class Launch:
    """A call or submit of a task, and what is found out about it."""

    __slots__ = ("allocates", "awaited", "call", "edges", "id", "index", "loops", "lowered", "stmt")

    def __init__(self, index: int, stmt: Stmt, call: Any, loops: tuple[Loop, ...]) -> None:
        self.index = index
        self.stmt = stmt
        self.call = call
        self.loops = loops
        self.id: Var | None = None  # what names its task in the body that it stands in
        self.edges: dict[Var, None] = {}
        self.lowered: dict[int, ArgDirection] = {}
        self.awaited: set[Launch] = set()  # launches of the same iteration that it waits for for certain
        self.allocates = False


class Access:
    """One launch reads or writes one place."""

    __slots__ = ("covering", "id", "launch", "left", "place", "reason", "tracked", "write")

    def __init__(self, launch: Launch, place: Place, write: bool, covering: bool = False) -> None:
        self.launch = launch
        self.place = place
        self.write = write
        self.covering = covering  # a write of all of the buffer that waits for all earlier accesses
        self.left = False  # the body that holds the launch has been left
        self.id: Var | None = None  # then: what names the task, or all of the tasks, behind the body
        self.reason = ""  # then, without such a name: why there is none
        self.tracked = False  # stands for any accesses of the buffer that only the runtime itself keeps track of

    def name(self) -> Var | None:
        """The variable to wait for."""
        return self.id if self.left else self.launch.id


# What a dependency on an id says about a launch: it is waited for; or only in some iterations.
SURE, MAYBE = True, False

Lineage = dict[Launch, Any]  # SURE, MAYBE, or the loop all of whose iterations are waited for


class IdArray:
    """What the slots of an array of ids hold."""

    __slots__ = ("every", "extent", "slots", "unknown")

    def __init__(self, extent: int | None) -> None:
        self.extent = extent
        self.slots: dict[int, Lineage] = {}
        self.every: Lineage = {}  # ids that the iterations of a loop put into all slots
        self.unknown = extent is None

    def lineage(self) -> Lineage:
        """The launches that a dependency on the whole array covers; none if a slot is not known."""
        if self.unknown or (not self.every and len(self.slots) != self.extent):
            return {}
        found = dict(self.every)
        for held in self.slots.values():
            found.update(held)
        return found


class TaskIds:
    """Which launches the ids and arrays of ids stand for, as far as the walk has come."""

    def __init__(self) -> None:
        self._ids: dict[Var, Lineage] = {}
        self._arrays: dict[Var, IdArray] = {}
        self._moving: set[Var] = set()  # arrays that may be others in the next iteration of an open loop

    def set(self, var: Var, lineage: Lineage) -> None:
        self._ids[var] = lineage

    def of(self, var: Any) -> Lineage:
        """The launches that a dependency on an id or an array waits for."""
        array = self._arrays.get(var)
        if array is None:
            return self._ids.get(var, {})
        found = array.lineage()
        return dict.fromkeys(found, MAYBE) if var in self._moving else found

    def assign(self, var: Var, value: Any, loops: tuple[Loop, ...], conditional: bool) -> None:
        """``var = value`` for a copy or an op on arrays."""
        if isinstance(value, Var):
            if value in self._arrays:
                self._arrays[var] = self._arrays[value]
            elif value in self._ids:
                self._ids[var] = self._ids[value]
            return
        name = value.op.name
        if name == "array.create":
            self._arrays[var] = IdArray(constant_int(value.args[0]))
        elif name == "array.get_element":
            array, slot = self._arrays.get(value.args[0]), constant_int(value.args[1])
            if array is not None and slot is not None and not array.unknown:
                held = array.slots.get(slot) or array.every
                self._ids[var] = dict.fromkeys(held, MAYBE) if value.args[0] in self._moving else held
        elif name == "array.update_element" and value.args[0] in self._arrays:
            self._arrays[var] = array = self._arrays[value.args[0]]
            if value.args[0] in self._moving:
                self._moving.add(var)
            self._update(array, value, loops, conditional)

    def _update(self, array: IdArray, value: Any, loops: tuple[Loop, ...], conditional: bool) -> None:
        _, index, item = value.args
        lineage = self._ids.get(item, {})
        slot = constant_int(index)
        if slot is not None:
            # In a branch the slot may still hold what it held.
            array.slots[slot] = {} if conditional else lineage
            array.every = {} if not conditional else array.every
        elif not conditional and loops and _fills(loops[-1], index, array):
            array.slots, array.every = {}, dict.fromkeys(lineage, loops[-1])
        else:
            array.unknown = True

    def enter_loop(self, loop: Any) -> None:
        """Carries start as the initial values, which the later iterations do not see."""
        for arg in loop.iter_args:
            if isinstance(arg.type, ArrayType):
                if arg.initValue in self._arrays:
                    self._arrays[arg] = self._arrays[arg.initValue]
                    self._moving.add(arg)
            else:
                self._ids[arg] = dict.fromkeys(self.of(arg.initValue), MAYBE)

    def leave_loop(self, loop: Any, values: list[Any], once: bool) -> None:
        """Results stand for what the last iteration yields."""
        for arg, var, value in zip(loop.iter_args, loop.return_vars, values, strict=False):
            if isinstance(var.type, ArrayType):
                if value in self._arrays:
                    self._arrays[var] = self._arrays[value]
            else:
                lineage = self.of(value)
                first = {} if once else dict.fromkeys(self.of(arg.initValue), MAYBE)
                self._ids[var] = {**first, **(lineage if once else dict.fromkeys(lineage, MAYBE))}

    def join(self, var: Var, values: list[Any]) -> None:
        """The result of a branch: in each branch its own, so a launch in one of them is waited for if it was made."""
        if not isinstance(var.type, ArrayType):
            self._ids[var] = {launch: how for value in values for launch, how in self.of(value).items()}
        elif len({self._arrays.get(value) for value in values}) == 1 and values[0] in self._arrays:
            self._arrays[var] = self._arrays[values[0]]


def _fills(loop: Loop, index: Any, array: IdArray) -> bool:
    """Whether the iterations of a loop put one id each into all slots of an array."""
    stmt = loop.stmt
    return (
        index is getattr(stmt, "loop_var", None)
        and loop.trips == array.extent
        and constant_int(stmt.start) == 0
        and constant_int(stmt.step) == 1
    )


def covers(how: Any, launch: Launch, loops: tuple[Loop, ...]) -> bool:
    """Whether a dependency that says ``how`` of a launch waits for all of its tasks that were made before, seen from
    inside these loops."""
    left = [loop for loop in launch.loops if loop not in loops and loop.trips != 1]
    return how is not MAYBE and (not left or (len(left) == 1 and how is left[0]))


__all__ = ["MAYBE", "SURE", "Access", "IdArray", "Launch", "Lineage", "Loop", "TaskIds", "covers"]
