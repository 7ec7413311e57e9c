"""Races: two tasks touch the same bytes, one of them writes, and no path of the task graph orders them.

The search reads a :class:`~pypto.runtime.task_records.RunRecord` and nothing else, so it serves every executor. It
visits the tasks in submit order, which is a topological order, with the set of tasks that are certainly over when the
task starts (:mod:`pypto.runtime.reachability`). The accesses so far stand in an index of intervals for each buffer, so
that only accesses of overlapping regions are compared.

An earlier access A gives way to a later one B of the same bytes, or more, where A is ordered before B and whatever
conflicts with A conflicts with B: what is not ordered behind A is not ordered behind B either. So each access meets
the last ones only. Where it races with B, the accesses that gave way to B are looked at after all: every pair is found.
The idea is that of FastTrack (C. Flanagan and S. Freund, PLDI 2009), with regions in place of variables.

Cost: that of the sets, a look-up in the index for each access, and one test of a set for each found region. It is
linear in tasks and accesses for chains, bands, forks and joins; each race that is found costs more, and their number is
limited.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Sequence
from functools import partial
from operator import is_

import msgspec

from ..diag.location import Location
from .accesses import RegionIndex
from .errors import RaceError
from .reachability import Ancestors, Numbers, insert, members, split, within
from .regions import Region
from .task_records import AccessRecord, Box, BufferRecord, HostRecord, Mode, RunRecord, TaskRecord

# Pairs that are looked for, and pairs that are told in full.
LIMIT = 1_000
SHOWN = 20

_CONFLICTS = {
    Mode.READ: (Mode.WRITE, Mode.ATOMIC),
    Mode.WRITE: (Mode.WRITE, Mode.ATOMIC, Mode.READ),
    Mode.ATOMIC: (Mode.WRITE, Mode.READ),
}
_MODES = list(_CONFLICTS[Mode.WRITE])


class Race(msgspec.Struct, frozen=True):
    """A pair of accesses without order. ``first`` was submitted first; numbers are those of the record."""

    first: int
    second: int
    buffer: int
    first_mode: Mode
    second_mode: Mode
    first_box: Box
    second_box: Box

    @property
    def kind(self) -> str:
        """Such as ``write/read``: what the first does, and what the second does."""
        return f"{self.first_mode.value}/{self.second_mode.value}"


class _Group:
    """Accesses of one region in one mode of which none gave way. ``below``: what gave way to each of them."""

    __slots__ = ("below", "mode", "region", "tasks")

    def __init__(self, mode: Mode, region: Region) -> None:
        self.mode = mode
        self.region = region
        self.tasks: Numbers = {}
        self.below: dict[int, list[tuple[_Group, Numbers]]] = {}


class _Storage:
    """The accesses of one buffer so far."""

    def __init__(self) -> None:
        self.groups: dict[tuple[object, ...], _Group] = {}
        self.indexes: dict[Mode, RegionIndex[_Group]] = {mode: RegionIndex() for mode in _MODES}
        self.tasks: dict[Mode, Numbers] = {mode: {} for mode in _MODES}

    def is_quiet(self, mode: Mode, before: Numbers) -> bool:
        """Whether all that could conflict with an access of this mode is over. Then no region needs to be compared:
        a task that reads what many before it wrote piece by piece costs no more than one that reads a piece."""
        return all(within(self.tasks[other], before) for other in _CONFLICTS[mode])

    def conflicting(self, mode: Mode, region: Region) -> Iterator[_Group]:
        """Groups whose accesses conflict with one of this mode and region."""
        for other in _CONFLICTS[mode]:
            yield from self.indexes[other].find(region)

    def add(self, number: int, mode: Mode, region: Region, before: Numbers, covered: Sequence[_Group]) -> None:
        """Add an access. ``covered``: groups in its region of which all are ordered before it."""
        insert(self.tasks[mode], number)
        key = mode, region.key
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = _Group(mode, region)
            self.indexes[mode].insert(group)
        below, group.tasks = split(group.tasks, before)
        insert(group.tasks, number)
        if below:
            group.below.setdefault(number, []).append((group, below))
        for other in covered:
            if other is not group and self.groups.pop((other.mode, other.region.key), None) is not None:
                group.below.setdefault(number, []).append((other, other.tasks))
                self.indexes[other.mode].drop(other.region, partial(is_, other))


class Search:
    """Looks for races; ``compared`` counts the groups of accesses that were compared with one."""

    def __init__(self, record: RunRecord, limit: int = LIMIT) -> None:
        self.record = record
        self.limit = limit
        self.compared = 0
        self._order = [item.number for item in record.in_order()]
        self._found: dict[tuple[int, int, int], Race] = {}

    def run(self) -> list[Race]:
        """All races, or the first ``limit``, by the place of the second task in submit order."""
        record = self.record
        position = [0] * len(self._order)
        for at, number in enumerate(self._order):
            position[number] = at
        accesses: list[list[AccessRecord]] = [[] for _ in position]
        for access in record.accesses:
            accesses[position[access.task]].append(access)
        storages: dict[int, _Storage] = {}
        ancestors = Ancestors(self._producers(position))
        for at, before in enumerate(ancestors):
            if accesses[at]:
                self._visit(at, accesses[at], before, storages)
            if len(self._found) >= self.limit:
                break
        races = list(self._found.values())[: self.limit]
        return sorted(races, key=lambda race: (position[race.second], position[race.first], race.buffer))

    def _producers(self, position: Sequence[int]) -> list[list[int]]:
        """By position. The orchestrator's own accesses follow each other, and later tasks follow them."""
        producers: list[list[int]] = [[] for _ in position]
        for edge in self.record.edges:
            producers[position[edge.consumer]].append(position[edge.producer])
        tasks = len(self.record.tasks)
        host = -1
        for at, number in enumerate(self._order):
            if host >= 0:
                producers[at].append(host)
            if number >= tasks:
                host = at
        return producers

    def _visit(self, at: int, accesses: list[AccessRecord], before: Numbers, storages: dict[int, _Storage]) -> None:
        own = [(access.mode, access.box.region(), access) for access in accesses]
        # Writes first: of a pair that conflicts in several ways the worst is told.
        own.sort(key=lambda item: (item[2].buffer, _MODES.index(item[0]), item[1].key))
        covered: list[list[_Group]] = []
        for mode, region, access in own:
            storage = storages.setdefault(access.buffer, _Storage())
            inside: list[_Group] = []
            covered.append(inside)
            # A write is compared in any case, since it may stand for what lies in its region.
            if mode is not Mode.WRITE and storage.is_quiet(mode, before):
                continue
            for group in storage.conflicting(mode, region):
                self.compared += 1
                _, missing = split(group.tasks, before)
                if missing:
                    self._report(at, access, region, group, missing, before)
                elif mode is Mode.WRITE and region.covers(group.region):
                    inside.append(group)
        for (mode, region, access), inside in zip(own, covered, strict=True):
            storages[access.buffer].add(at, mode, region, before, inside)

    def _report(
        self, at: int, access: AccessRecord, region: Region, group: _Group, missing: Numbers, before: Numbers
    ) -> None:
        """The races of an access with these of a group, and with those that gave way to them."""
        todo = [(group, missing)]
        while todo:
            group, missing = todo.pop()
            for other in members(missing):
                if len(self._found) >= self.limit:
                    return
                self._add(at, access, group, other)
                for below, numbers in group.below.get(other, ()):
                    if below.mode in _CONFLICTS[access.mode] and below.region.overlaps(region):
                        _, rest = split(numbers, before)
                        if rest:
                            todo.append((below, rest))

    def _add(self, at: int, access: AccessRecord, group: _Group, other: int) -> None:
        first = self._order[other]
        key = first, access.task, access.buffer
        if key not in self._found:
            box = Box(group.region.low, group.region.shape, group.region.strides, group.region.itemsize)
            self._found[key] = Race(first, access.task, access.buffer, group.mode, access.mode, box, access.box)


def find_races(record: RunRecord, limit: int = LIMIT) -> list[Race]:
    """Every pair of tasks that race, at most ``limit`` of them, in submit order; one for each pair and buffer.

    ``ValueError`` for a record whose edges go backwards.
    """
    return Search(record, limit).run()


def check_races(record: RunRecord) -> None:
    """:class:`RaceError`, which tells them, if there are races."""
    races = find_races(record)
    if races:
        raise RaceError(report(record, races), races, record)


# --- telling ----------------------------------------------------------------------------------------------------------


def report(record: RunRecord, races: Sequence[Race], shown: int = SHOWN, limit: int = LIMIT) -> str:
    """Races as text: the first ``shown`` in full, then how many more there are."""
    count = f"{len(races)} race{'' if len(races) == 1 else 's'}"
    if len(races) >= limit:
        count = f"at least {count}"
    lines = [f"{count}: tasks touch the same bytes, at least one of them writes, and nothing orders them"]
    arguments: dict[tuple[int, int], set[str]] = {}
    for argument in record.arguments:
        arguments.setdefault((argument.task, argument.buffer), set()).add(argument.tag)
    for number, race in enumerate(races[:shown], 1):
        lines += ["", *_told(number, record, race, arguments)]
    if len(races) > shown:
        lines += ["", f"... and {len(races) - shown} more"]
    return "\n".join(lines)


def _told(number: int, record: RunRecord, race: Race, arguments: dict[tuple[int, int], set[str]]) -> list[str]:
    buffer = record.buffers[race.buffer]
    first, second = record.who(race.first), record.who(race.second)
    lines = [f"{number}. {race.kind} of '{buffer.name or 'a tensor'}'"]
    for who, mode, box in ((first, race.first_mode, race.first_box), (second, race.second_mode, race.second_box)):
        lines.append(f"   {who} {_VERBS[mode]} {buffer.describe(box)}{_place(who.source)}")
        text = linecache.getline(who.source.filename, who.source.line).strip() if who.source.line > 0 else ""
        if text:
            lines.append(f"       {text}")
    tags = tuple(arguments.get((who.number, race.buffer), set()) for who in (first, second))
    lines.append(f"   missing: {second} after {first}; {_advice(race, buffer, first, second, *tags)}")
    return lines


_VERBS = {Mode.READ: "reads", Mode.WRITE: "writes", Mode.ATOMIC: "adds atomically to"}


def _place(source: Location) -> str:
    text = source.describe()
    return f" ({text})" if text else ""


def _advice(
    race: Race,
    buffer: BufferRecord,
    first: TaskRecord | HostRecord,
    second: TaskRecord | HostRecord,
    first_tags: set[str],
    second_tags: set[str],
) -> str:
    """What to change in the program so that the edge is there."""
    name = buffer.name or "the tensor"
    sides = ((first, first_tags, race.first_mode), (second, second_tags, race.second_mode))
    deps = f"name {first} in the dependencies of {second}: deps=[...] with its task id"
    for who, tags, mode in sides:
        if isinstance(who, TaskRecord) and mode is not Mode.READ and tags and tags <= {"input"}:
            return (
                f"'{who.kernel}' writes '{name}', but its parameter says that it only reads: declare it pl.InOut "
                "(pl.Out if it reads nothing of it)"
            )
    for who, tags, _ in sides:
        if "no_dep" in tags:
            return f"drop no_dep of '{name}' at {who}, or {deps}"
    if buffer.manual_dep:
        return f"'{name}' was created with manual_dep=True, so only dependencies order its users: {deps}"
    if any(isinstance(who, TaskRecord) and who.manual for who, _, _ in sides):
        return f"in a manual scope only dependencies order tasks: {deps}"
    if isinstance(second, HostRecord):
        return "the orchestrator waits only for tasks that have the tensor as an argument: pass it to the task"
    if race.first_mode is not Mode.READ and "output_existing" in second_tags:
        return f"an output waits for no earlier writer: declare the parameter of '{second.kernel}' pl.InOut, or {deps}"
    if race.first_mode is Mode.READ:
        return f"a write waits for no earlier reader: {deps}"
    return deps


__all__ = ["LIMIT", "Race", "Search", "check_races", "find_races", "report"]
