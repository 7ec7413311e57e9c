"""Why tasks of a run are ordered, whether any byte needs the order, and how much of the program runs in a row.

All of it is read from one :class:`~pypto.runtime.task_records.RunRecord` with accesses. An order between two tasks is

* *needed* where they touch a common byte and one of them writes it;
* *indirect* where the program or the compiler names it, the two share no such byte, but other tasks that do may be in
  order through it alone: the edges of a barrier;
* *unneeded* otherwise. Most often the arguments overlap and what is really touched does not: then the size of an
  argument alone makes one task wait for the other.

What is touched is that of one run: with other arguments a program may touch other bytes.

Cost: two look-ups for each edge and each tensor that both tasks touch, two searches for races (see
:mod:`pypto.runtime.races`), and sweeps over tasks and edges: linear, but for what races cost.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence

import msgspec

from ..runtime.accesses import RegionIndex
from ..runtime.races import LIMIT, Race, find_races
from ..runtime.task_records import (
    ArgumentRecord,
    Box,
    EdgeKind,
    EdgeRecord,
    HostRecord,
    Mode,
    RunRecord,
    TaskRecord,
)

_CHOSEN = {EdgeKind.EXPLICIT, EdgeKind.COMPILER}  # not by a rule about arguments
_WRITING = {"inout", "output", "output_existing", "source_write"}
_WAITING = {"input", "inout", "source_write"}
_FEW = 64  # comparisons that are cheaper than an index


class Verdict(str, enum.Enum):
    """Whether an order is needed; see the module."""

    NEEDED = "needed"
    INDIRECT = "indirect"
    UNNEEDED = "unneeded"


class Touch:
    """Bytes of a buffer that a task touches."""

    __slots__ = ("box", "mode", "region")

    def __init__(self, mode: Mode, box: Box) -> None:
        self.mode = mode
        self.box = box
        self.region = box.region()


class Touches(list[Touch]):
    """What a task touches of a buffer. ``modes``: all ways in which it does."""

    def __init__(self) -> None:
        self.modes: set[Mode] = set()

    def add(self, touch: Touch) -> None:
        """Add one."""
        self.append(touch)
        self.modes.add(touch.mode)


_NOTHING = Touches()


class Shared(msgspec.Struct, frozen=True):
    """A buffer that two tasks touch or have as an argument. ``conflict``: a touch of each, of common bytes, one a
    write; None where there is none."""

    buffer: int
    first: Touches
    second: Touches
    conflict: tuple[Touch, Touch] | None

    @property
    def only_read(self) -> bool:
        """Whether neither writes anything."""
        return self.first.modes | self.second.modes <= {Mode.READ}


class Order(msgspec.Struct, frozen=True):
    """An edge of the graph and whether it is needed."""

    edge: EdgeRecord
    verdict: Verdict

    @property
    def kinds(self) -> tuple[EdgeKind, ...]:
        """All that puts the two in order."""
        return (self.edge.kind, *self.edge.also)


class Chain(msgspec.Struct, frozen=True):
    """Tasks that run one behind the other. ``length``: how many tasks these are, or ns."""

    length: int
    numbers: list[int]


class Explanation:
    """``orders`` by consumer and producer; ``races``: conflicts that nothing orders, the first ``LIMIT`` of them."""

    def __init__(self, record: RunRecord) -> None:
        self.record = record
        self._sequence = [item.number for item in record.in_order()]
        self._position = [0] * len(self._sequence)
        for at, number in enumerate(self._sequence):
            self._position[number] = at
        self._touches: list[dict[int, Touches]] = [{} for _ in self._sequence]
        for access in record.accesses:
            touch = Touch(access.mode, access.box)
            self._touches[access.task].setdefault(access.buffer, Touches()).add(touch)
        self._arguments: list[dict[int, list[ArgumentRecord]]] = [{} for _ in self._sequence]
        for argument in record.arguments:
            self._arguments[argument.task].setdefault(argument.buffer, []).append(argument)
        self._indexes: dict[tuple[int, int], RegionIndex[Touch]] = {}
        self._last: tuple[tuple[int, int], list[Shared]] = (-1, -1), []
        self.races = find_races(record)
        self.orders = self._judged()
        self._of_pair = {(order.edge.producer, order.edge.consumer): order for order in self.orders}

    # --- verdicts -----------------------------------------------------------------------------------------------------

    def _judged(self) -> list[Order]:
        place = self._position
        edges = sorted(self.record.edges, key=lambda e: (place[e.consumer], place[e.producer]))
        verdicts = [Verdict.NEEDED if self._share_bytes(e) else Verdict.UNNEEDED for e in edges]
        chosen = [
            i for i, e in enumerate(edges) if verdicts[i] is Verdict.UNNEEDED and _CHOSEN.issuperset((e.kind, *e.also))
        ]
        for i in self._carrying(edges, chosen):
            verdicts[i] = Verdict.INDIRECT
        return [Order(edge, verdict) for edge, verdict in zip(edges, verdicts, strict=True)]

    def _carrying(self, edges: Sequence[EdgeRecord], chosen: Sequence[int]) -> list[int]:
        """Those of the chosen edges that may keep tasks in order which conflict: some way from one to the other leads
        over them. The others can all go at once."""
        if not chosen:
            return []
        left_out = set(chosen)
        new = self._new_races([e for i, e in enumerate(edges) if i not in left_out])
        if new is None:
            return list(chosen)
        place = self._position
        behind = [False] * len(place)  # an earlier task of a race, and all that come after it
        ahead = [False] * len(place)  # a later one, and all that come before it
        for race in new:
            behind[place[race.first]] = True
            ahead[place[race.second]] = True
        before = self._before(edges)
        for at, producers in enumerate(before):
            behind[at] = behind[at] or any(behind[p] for p in producers)
        for at in range(len(before) - 1, -1, -1):
            if ahead[at]:
                for producer in before[at]:
                    ahead[producer] = True
        return [i for i in chosen if behind[place[edges[i].producer]] and ahead[place[edges[i].consumer]]]

    def _new_races(self, edges: list[EdgeRecord]) -> list[Race] | None:
        """Races that the run would have had with these edges only; None where there are too many to tell."""
        limit = max(LIMIT, 2 * len(self._sequence))
        record = self.record
        found = find_races(RunRecord(record.tasks, record.hosts, record.buffers, [], edges, record.accesses), limit)
        if len(found) >= limit:
            return None
        known = {(race.first, race.second) for race in self.races}
        return [race for race in found if (race.first, race.second) not in known]

    def _share_bytes(self, edge: EdgeRecord) -> bool:
        return any(shared.conflict for shared in self._both_touch(edge.producer, edge.consumer))

    def _both_touch(self, first: int, second: int) -> Iterator[Shared]:
        mine, others = self._touches[first], self._touches[second]
        for buffer in mine if len(mine) <= len(others) else others:
            if buffer in mine and buffer in others:
                yield self._shared(first, second, buffer)

    def _shared(self, first: int, second: int, buffer: int) -> Shared:
        mine, others = self.touches(first, buffer), self.touches(second, buffer)
        return Shared(buffer, mine, others, self._conflict(first, second, buffer, mine, others))

    def _conflict(
        self, first: int, second: int, buffer: int, mine: Sequence[Touch], others: Sequence[Touch]
    ) -> tuple[Touch, Touch] | None:
        # Writes come first: of several ways the worst is told.
        if len(mine) * len(others) <= _FEW:
            pairs = [(a, b) for a in mine for b in others if _excludes(a, b) and a.region.overlaps(b.region)]
        elif len(mine) >= len(others):
            pairs = [(a, b) for b in others for a in self._index(first, buffer).find(b.region) if _excludes(a, b)]
        else:
            pairs = [(a, b) for a in mine for b in self._index(second, buffer).find(a.region) if _excludes(a, b)]
        return min(pairs, key=_rank, default=None)

    def _index(self, task: int, buffer: int) -> RegionIndex[Touch]:
        index = self._indexes.get((task, buffer))
        if index is None:
            index = self._indexes[task, buffer] = RegionIndex()
            for touch in self._touches[task][buffer]:
                index.insert(touch)
        return index

    # --- two tasks ----------------------------------------------------------------------------------------------------

    def earlier(self, a: int, b: int) -> tuple[int, int]:
        """Two tasks, the one that was submitted first in front."""
        return (a, b) if self._position[a] <= self._position[b] else (b, a)

    def order(self, first: int, second: int) -> Order | None:
        """The direct order of two tasks."""
        return self._of_pair.get((first, second))

    def shared(self, first: int, second: int) -> list[Shared]:
        """All buffers that two tasks touch, or have as an argument, by number."""
        if self._last[0] != (first, second):  # who tells about two tasks asks several times
            common = self._used(first, second) & self._used(second, first)
            self._last = (first, second), [self._shared(first, second, buffer) for buffer in sorted(common)]
        return self._last[1]

    def _used(self, task: int, other: int) -> set[int]:
        """Buffers that a task uses; looked up in those of the other where these are fewer."""
        mine = self._touches[task], self._arguments[task]
        others = self._touches[other], self._arguments[other]
        if len(mine[0]) + len(mine[1]) <= len(others[0]) + len(others[1]):
            return {*mine[0], *mine[1]}
        return {buffer for used in others for buffer in used if buffer in mine[0] or buffer in mine[1]}

    def touches(self, task: int, buffer: int) -> Touches:
        """What a task touches of a buffer."""
        return self._touches[task].get(buffer, _NOTHING)

    def arguments(self, task: int, buffer: int) -> list[ArgumentRecord]:
        """The arguments of a task that are of a buffer."""
        return self._arguments[task].get(buffer, [])

    def overlapping_arguments(
        self, first: int, second: int, buffer: int
    ) -> tuple[ArgumentRecord, ArgumentRecord] | None:
        """Arguments of the two that overlap, and whose tags put the second behind the first."""
        for a in self.arguments(first, buffer):
            for b in self.arguments(second, buffer):
                waits = (a.tag in _WRITING and b.tag in _WAITING) or (a.tag != "no_dep" and b.tag == "source_write")
                if waits and a.box is not None and b.box is not None and a.box.region().overlaps(b.box.region()):
                    return a, b
        return None

    def path(self, first: int, second: int) -> list[int] | None:
        """The shortest way from one task to a later one over orders; None where there is none.

        Where several are as short, the one over the tasks that were submitted first.
        """
        start, end = self._position[first], self._position[second]
        before = self._before(self.record.edges)
        toward = {end: end}
        level = [end]
        while level and start not in toward:
            reached: list[int] = []
            for at in level:
                for producer in before[at]:
                    if producer >= start and producer not in toward:
                        toward[producer] = at
                        reached.append(producer)
            level = sorted(reached)
        if start not in toward:
            return None
        found = [start]
        while found[-1] != end:
            found.append(toward[found[-1]])
        return [self._sequence[at] for at in found]

    def _before(self, edges: Sequence[EdgeRecord]) -> list[list[int]]:
        """By position, the positions of all that come directly before. The orchestrator does one thing at a time, and
        what it submits after it waited comes behind that."""
        before: list[list[int]] = [[] for _ in self._sequence]
        for edge in edges:
            before[self._position[edge.consumer]].append(self._position[edge.producer])
        host = -1
        for at, number in enumerate(self._sequence):
            if host >= 0:
                before[at].append(host)
            if number >= len(self.record.tasks):
                host = at
            before[at].sort()
        return before

    # --- the whole ----------------------------------------------------------------------------------------------------

    def count(self, verdict: Verdict) -> int:
        """How many orders have a verdict."""
        return sum(order.verdict is verdict for order in self.orders)

    def critical(self) -> Chain:
        """The longest chain of tasks that wait for each other."""
        return self._longest(self._before(self.record.edges), [1] * len(self.record.tasks))

    def critical_in_time(self) -> Chain:
        """The chain that takes longest, in ns."""
        times = [max(0, task.ended - task.started) for task in self.record.tasks]
        return self._longest(self._before(self.record.edges), times)

    def critical_by_bytes(self) -> Chain | None:
        """The longest chain when tasks are in order where they conflict, and nowhere else; None where the conflicts
        without a direct order are too many to tell."""
        kept = [order.edge for order in self.orders if order.verdict is Verdict.NEEDED]
        races = self._new_races(kept)
        if races is None:
            return None
        kept += [EdgeRecord(race.first, race.second, EdgeKind.EXPLICIT, "") for race in races]
        return self._longest(self._before(kept), [1] * len(self.record.tasks))

    def _longest(self, before: list[list[int]], weights: list[int]) -> Chain:
        totals: list[int] = []
        came_from: list[int] = []
        for number, producers in zip(self._sequence, before, strict=True):
            best = max(producers, key=totals.__getitem__, default=-1)
            weight = weights[number] if number < len(weights) else 0
            totals.append(weight + (totals[best] if best >= 0 else 0))
            came_from.append(best)
        at = max(range(len(totals)), key=totals.__getitem__, default=-1)
        length = totals[at] if at >= 0 else 0
        numbers: list[int] = []
        while at >= 0:
            if self._sequence[at] < len(weights):
                numbers.append(self._sequence[at])
            at = came_from[at]
        return Chain(length, numbers[::-1])


def _excludes(a: Touch, b: Touch) -> bool:
    """Whether it matters which of the two comes first, if they share bytes."""
    if a.mode is b.mode:
        return a.mode is Mode.WRITE
    return True


_MODES = [Mode.WRITE, Mode.ATOMIC, Mode.READ]


def _rank(pair: tuple[Touch, Touch]) -> tuple[int, ...]:
    """Data that is handed on is the best reason for an order, then writes; then by place."""
    a, b = pair
    handed_on = a.mode is not Mode.READ and b.mode is Mode.READ
    return (not handed_on, _MODES.index(a.mode), _MODES.index(b.mode), a.region.low, b.region.low)


def find_task(record: RunRecord, wanted: str) -> int | str:
    """The number of a task that is named ``3``, ``#3``, ``name#3``, or ``name`` if it is the only one; else what is
    wrong with that."""
    tasks = record.tasks
    if not tasks:
        return "the program launches no task"
    name, _, digits = wanted.rpartition("#")
    if digits.isascii() and digits.isdigit():
        number = int(digits)
        if number >= len(tasks):
            known = "there is only task 0" if len(tasks) == 1 else f"tasks are numbered from 0 to {len(tasks) - 1}"
            return f"there is no task {number}: {known}"
        if name and tasks[number].name != name:
            return f"task {number} is {tasks[number]}, not {wanted}"
        return number
    same = [task for task in tasks if task.name == wanted]
    if len(same) == 1:
        return same[0].number
    if same:
        return f"there are {len(same)} tasks '{wanted}': say which, such as {same[0]} or {same[-1]}"
    names = list(dict.fromkeys(task.name for task in tasks))
    shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    return f"there is no task '{wanted}': the tasks are {shown}; give a number, or a name with its number as {tasks[0]}"


Node = TaskRecord | HostRecord

__all__ = ["Chain", "Explanation", "Node", "Order", "Shared", "Touch", "Touches", "Verdict", "find_task"]
