"""Random programs for the task runtime, what they compute, and the order that the rules give their tasks.

A program is made step by step: each step is written down as words for the interpreter (``random_graph.cpp``), is executed
here serially, and is ordered by a model of the rules. Where two tasks conflict and no rule orders them, an explicit
dependency is added, so that any right execution gives the serial result.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

OPEN, CLOSE, TASK, ALLOC, GET, SET = 1, 2, 3, 4, 5, 6
INPUT, INOUT, OUTPUT, OUTPUT_EXISTING, NO_DEP = range(5)
AIC, AIV, MIXED, DUMMY = range(4)
READ, WRITE = 1, 2
TESTS = (np.equal, np.not_equal, np.greater, np.less, np.greater_equal, np.less_equal)  # in the order of PredicateOp
MAX_TENSORS = 6
MAX_BLOCKS = 4
_MASK = 2**64 - 1


def bits_of(indices: np.ndarray) -> int:
    """A set of element numbers as the bits of an integer."""
    return sum(1 << int(i) for i in indices.flat)


def members(bits: int) -> Iterator[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def rounded_storage(sizes: list[int]) -> int:
    """Bytes of a heap that buffers of one task take: each in steps of 64, together in eighths of a power of two."""
    total = sum(-(-size // 64) * 64 for size in sizes)
    if total <= 64:
        return 64
    step = max(64, (1 << (total - 1).bit_length() - 1) >> 3)
    return -(-total // step) * step


@dataclass(eq=False)
class Writer:
    task: int
    view: View
    replaced: bool = False  # perhaps: a task waits for it that covers it


@dataclass(eq=False)
class Buffer:
    handle: int
    values: np.ndarray  # rows x columns, uint64
    owner: int | None = None  # the task that allocated it
    manual: bool = False
    writers: list[Writer] = field(default_factory=list)
    users: list[tuple[int, View]] = field(default_factory=list)  # tasks that were given it
    predicated: int = 0  # tasks whose predicate reads it


@dataclass(eq=False)
class View:
    buffer: Buffer
    elements: np.ndarray  # their numbers in the buffer, in the view's shape
    words: list[int]
    simple: bool  # a box without steps: the runtime decides about two of them exactly

    def __post_init__(self) -> None:
        self.bits = bits_of(self.elements)
        self.low = int(self.elements.min()) if self.elements.size else 0
        self.high = int(self.elements.max()) + 1 if self.elements.size else 0
        self.contiguous = self.high - self.low == self.elements.size

    def overlaps(self, other: View) -> bool:
        return self.bits & other.bits != 0

    def may_overlap(self, other: View) -> bool:
        if (self.simple or self.contiguous) and (other.simple or other.contiguous):
            return self.overlaps(other)
        return self.bits != 0 and other.bits != 0 and self.low < other.high and other.low < self.high

    def covers(self, other: View) -> bool:
        return other.bits & ~self.bits == 0

    def surely_covers(self, other: View) -> bool:
        return self.covers(other) and (self.contiguous or (self.simple and other.simple))


@dataclass(eq=False)
class Edges:
    """Tasks that must come first, and tasks that a rule or dependency explains, as bits."""

    required: int = 0
    allowed: int = 0

    def add(self, task: int, required: bool = True) -> None:
        self.allowed |= 1 << task
        if required:
            self.required |= 1 << task


@dataclass(eq=False)
class Argument:
    tag: int
    use: int
    view: View


@dataclass(eq=False)
class Access:
    """What a task really touches."""

    task: int
    buffer: Buffer
    bits: int
    writes: bool


@dataclass(eq=False)
class Scope:
    manual: bool
    buffers: list[Buffer] = field(default_factory=list)
    bytes: int = 0


class RandomProgram:
    """``words``: the program; ``arguments``: initial values of its tensors; ``results``: final ones; ``found``: what its
    element reads give; ``edges``: for each task what must and may come first, ``syncs``: for each element access;
    ``heap``: the bytes for each ring that its open scopes need at most; ``skipped``: tasks whose predicate is false.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.words: list[int] = []
        self.edges: list[Edges] = []
        self.syncs: list[Edges] = []
        self.found: list[int] = []
        self.skipped: list[bool] = []
        self.heap = [64] * 4
        self.handles = 0
        self._explicit: list[int | None] = []  # task number by order of ids; None: an allocation
        self._before: list[int] = []  # all tasks that surely end before a task begins, as bits
        self._synced = 0  # tasks that have ended when the orchestration goes on
        self._accesses: list[Access] = []
        self._given = 0
        self._scopes = [Scope(False)]
        self._sizes = (self._random.randint(1, 9), self._random.randint(1, 12))
        self._steps = self._random.random() < 0.3  # views with steps, which the runtime compares roughly
        arguments = [self._buffer(self._shape(), 0) for _ in range(self._random.randint(1, 3))]
        for buffer in arguments:
            buffer.values[:] = self._random_values(buffer.values.shape)
        self.arguments = [buffer.values.view(np.int64).copy() for buffer in arguments]
        self._generate(self._random.choice([20, 40, 80, 160]))
        self.results = [buffer.values.view(np.int64) for buffer in arguments]

    def scratch(self) -> np.ndarray:
        """What the interpreter takes beside the program and its tensors."""
        return np.zeros(len(self.found) + MAX_BLOCKS * len(self.edges) + 1, np.uint64)

    # --- steps ----------------------------------------------------------------------------------------------------

    def _generate(self, steps: int) -> None:
        for _ in range(steps):
            choice = self._random.random()
            if choice < 0.07 and len(self._scopes) < 7:
                self._open()
            elif choice < 0.13 and len(self._scopes) > 1:
                self._close()
            elif choice < 0.18:
                self._allocate()
            elif choice < 0.22:
                self._get()
            elif choice < 0.25:
                self._set()
            else:
                self._task()
        while len(self._scopes) > 1:
            self._close()
        self.words.append(CLOSE)

    def _open(self) -> None:
        manual = self._scopes[-1].manual or self._random.random() < 0.25
        self.words += [OPEN, int(manual)]
        self._scopes.append(Scope(manual))

    def _close(self) -> None:
        self.words.append(CLOSE)
        self._scopes.pop()

    def _allocate(self) -> None:
        first = self.handles
        count = self._random.randint(1, 2)
        self.words += [ALLOC, first, count]
        buffers = []
        for _ in range(count):
            buffer = self._create(None, has_value=True)
            buffers.append(buffer)
        self._explicit.append(None)
        self._take_storage(buffers)

    def _task(self) -> None:
        task = len(self.edges)
        kind = self._random.choices([AIC, AIV, MIXED, DUMMY], [4, 6, 2, 1])[0]
        roles = {AIC: 1, AIV: 2, MIXED: self._random.choice([3, 5, 7, 6, 2]), DUMMY: 0}[kind]
        blocks = self._random.choice([1, 1, 1, 2, MAX_BLOCKS])
        alone = blocks == 1 and roles in (0, 1, 2, 4)  # one part does all: its own arguments may overlap
        first = self.handles
        predicate = self._random_element() if self._random.random() < 0.12 else None
        arguments, words, created = self._arguments(task, alone, predicate is not None or kind == DUMMY)
        edges = self._ordered_by_rules(arguments, predicate)
        accesses = self._touched(task, kind, arguments, predicate)
        dependencies = self._dependencies(edges, accesses)
        self.words += [TASK, kind, roles, blocks, first, len(arguments), *words]
        self.words += [len(dependencies), *dependencies]
        runs = self._add_predicate(predicate) and kind != DUMMY
        self.skipped.append(kind != DUMMY and not runs)
        self._register(task, arguments, predicate)
        self._accesses += accesses
        self._before.append(self._closure(edges.required) | self._synced)
        self.edges.append(edges)
        self._explicit.append(task)
        if created:
            self._take_storage(created)
        if runs:
            self._execute(task, arguments)

    def _arguments(self, task: int, alone: bool, may_skip: bool) -> tuple[list[Argument], list[int], list[Buffer]]:
        made: list[Argument] = []
        words: list[int] = []
        created: list[Buffer] = []
        visible = self._visible()  # not what this task creates
        for _ in range(self._random.randint(0, MAX_TENSORS)):
            tag = self._random.choices([INPUT, INOUT, OUTPUT, OUTPUT_EXISTING, NO_DEP], [6, 5, 3, 3, 1])[0]
            use = {INPUT: READ, INOUT: READ | WRITE}.get(tag, WRITE)
            if tag == NO_DEP:
                use = self._random.choice([READ, WRITE, READ | WRITE])
            if tag == OUTPUT:
                words += [tag, use]
                buffer = self._create(task, has_value=may_skip or self._random.random() < 0.3, words=words)
                created.append(buffer)
                made.append(Argument(tag, use, self._whole(buffer)))
                continue
            view = self._random_view(self._random.choice(visible))
            clash = [
                a for a in made if a.view.buffer is view.buffer and a.view.overlaps(view) and (a.use | use) & WRITE
            ]
            if clash and not alone:
                continue
            words += [tag, use, *view.words]
            made.append(Argument(tag, use, view))
        return made, words, created

    def _add_predicate(self, predicate: tuple[Buffer, int, int] | None) -> bool:
        """Whether the task is to run."""
        if predicate is None:
            self.words.append(0)
            return True
        buffer, row, column = predicate
        value = int(buffer.values.view(np.int64)[row, column])
        op = self._random.randrange(6)
        target = self._random.choice([value, value - 1, value + 1, 0])
        target = max(-(2**63), min(2**63 - 1, target))
        self.words += [1, buffer.handle, row, column, op, target]
        return bool(TESTS[op](value, target))

    def _get(self) -> None:
        buffer, row, column = self._random_element()
        element = self._view(buffer, [row, column, 1, 1, 1, 1, 0])
        edges = Edges()
        if buffer.owner is not None:
            edges.add(buffer.owner)
        self._add_writers(edges, buffer, element, element)
        ended = self._closure(edges.required) | self._synced
        if any(
            a.writes and a.buffer is buffer and a.bits & element.bits and not ended >> a.task & 1
            for a in self._accesses
        ):
            return  # a value that nothing orders: NO_DEP, say
        self._synced = ended
        self.syncs.append(edges)
        self._given = int(buffer.values[row, column])
        self.found.append(self._given)
        self.words += [GET, buffer.handle, row, column]

    def _set(self) -> None:
        buffer, row, column = self._random_element()
        element = self._view(buffer, [row, column, 1, 1, 1, 1, 0])
        edges = Edges(allowed=buffer.predicated)
        if buffer.owner is not None:
            edges.add(buffer.owner)
        for task, view in buffer.users:
            if view.may_overlap(element):
                edges.add(task, view.overlaps(element))
        self._synced |= self._closure(edges.required | buffer.predicated)
        self.syncs.append(edges)
        value = self._random_values(())
        buffer.values[row, column] = value
        self.words += [SET, buffer.handle, row, column, int(value.view(np.int64))]

    # --- order ----------------------------------------------------------------------------------------------------

    def _ordered_by_rules(self, arguments: list[Argument], predicate: tuple[Buffer, int, int] | None) -> Edges:
        edges = Edges()
        if self._scopes[-1].manual:
            return edges
        for argument in arguments:
            buffer = argument.view.buffer
            if argument.tag == OUTPUT:
                continue
            if buffer.owner is not None:
                edges.add(buffer.owner)
            if argument.tag in (INPUT, INOUT) and not buffer.manual:
                self._add_writers(edges, buffer, argument.view, argument.view)
        if predicate is not None:
            buffer, row, column = predicate
            if buffer.owner is not None:
                edges.add(buffer.owner)
            if not buffer.manual:  # the value itself must be found; the runtime may take the whole tensor for it
                element = self._view(buffer, [row, column, 1, 1, 1, 1, 0])
                self._add_writers(edges, buffer, element, self._whole(buffer))
        return edges

    @staticmethod
    def _add_writers(edges: Edges, buffer: Buffer, exact: View, rough: View) -> None:
        for writer in buffer.writers:
            if rough.may_overlap(writer.view):
                edges.add(writer.task, exact.overlaps(writer.view) and not writer.replaced)

    def _touched(
        self, task: int, kind: int, arguments: list[Argument], predicate: tuple[Buffer, int, int] | None
    ) -> list[Access]:
        made = []
        if kind != DUMMY:
            made = [Access(task, a.view.buffer, a.view.bits, bool(a.use & WRITE)) for a in arguments]
            if predicate is not None:
                buffer, row, column = predicate
                made.append(Access(task, buffer, 1 << row * buffer.values.shape[1] + column, False))
        return made

    def _dependencies(self, edges: Edges, accesses: list[Access]) -> list[int]:
        """Explicit dependencies, by order of ids: some at random, and those without which the result were not certain."""
        ids = (
            self._random.choices(range(len(self._explicit)), k=self._random.choice([0, 0, 1, 3]))
            if self._explicit
            else []
        )
        numbers = [self._explicit[i] for i in ids]
        for number in numbers:
            if number is not None:
                edges.add(number)
        ended = self._closure(edges.required) | self._synced
        for earlier in reversed(self._accesses):  # the latest first: it may bring others along
            if not ended >> earlier.task & 1 and any(
                earlier.buffer is access.buffer and earlier.bits & access.bits and (earlier.writes or access.writes)
                for access in accesses
            ):
                edges.add(earlier.task)
                ended |= self._closure(1 << earlier.task)
                ids.append(self._explicit.index(earlier.task))
        self._random.shuffle(ids)
        return ids

    def _closure(self, tasks: int) -> int:
        found = tasks
        for task in members(tasks):
            found |= self._before[task]
        return found

    def _register(self, task: int, arguments: list[Argument], predicate: tuple[Buffer, int, int] | None) -> None:
        automatic = not self._scopes[-1].manual
        for argument in arguments:
            buffer = argument.view.buffer
            buffer.users.append((task, argument.view))
            if argument.tag not in (INOUT, OUTPUT_EXISTING) or not argument.view.bits:
                continue
            if argument.tag == INOUT and automatic and not buffer.manual:
                # The new one waits for those that it covers, so waiting for it is enough.
                older = [w for w in buffer.writers if w.task != task and argument.view.covers(w.view)]
                for writer in older:
                    writer.replaced = True
                    if argument.view.surely_covers(writer.view):
                        buffer.writers.remove(writer)
            buffer.writers.append(Writer(task, argument.view))
        if predicate is not None:
            predicate[0].predicated |= 1 << task

    # --- execution ------------------------------------------------------------------------------------------------

    def _execute(self, task: int, arguments: list[Argument]) -> None:
        """What ``work`` of random_graph.cpp does."""
        total = task * 1000003 + self._given
        for argument in arguments:
            if argument.use == READ:
                flat = argument.view.buffer.values.reshape(-1)[argument.view.elements].reshape(-1)
                weights = np.arange(1, 2 * flat.size + 1, 2, dtype=np.uint64)
                total = total * 31 + int(np.sum(flat * weights, dtype=np.uint64))
        start = np.uint64(total & _MASK)
        for argument in arguments:
            if argument.use & WRITE:
                elements = argument.view.elements
                flat = argument.view.buffer.values.reshape(-1)
                index = np.arange(elements.size, dtype=np.uint64).reshape(elements.shape)
                if argument.use & READ:
                    flat[elements] = np.uint64(3) * flat[elements] + start + index
                else:
                    flat[elements] = start + np.uint64(7) * index

    # --- buffers and views ----------------------------------------------------------------------------------------

    def _shape(self) -> tuple[int, int]:
        rows, columns = self._sizes
        return self._random.randint(1, rows), self._random.randint(1, columns)

    def _random_values(self, shape: tuple[int, ...]) -> np.ndarray:
        count = int(np.prod(shape, dtype=int))
        values = [self._random.choice([0, 1, self._random.getrandbits(64)]) for _ in range(count)]
        return np.array(values, np.uint64).reshape(shape)

    def _visible(self) -> list[Buffer]:
        return [buffer for scope in self._scopes for buffer in scope.buffers]

    def _buffer(self, shape: tuple[int, int], value: int, owner: int | None = None, manual: bool = False) -> Buffer:
        made = Buffer(self.handles, np.full(shape, value, np.uint64), owner, manual)
        self.handles += 1
        self._scopes[-1].buffers.append(made)
        return made

    def _create(self, owner: int | None, has_value: bool, words: list[int] | None = None) -> Buffer:
        shape = self._shape()
        manual = self._random.random() < 0.1
        value = self._random.choice([0, self._random.getrandbits(63)]) if has_value else 0
        (self.words if words is None else words).extend([*shape, int(manual), int(has_value), value])
        return self._buffer(shape, value, owner, manual)

    def _take_storage(self, buffers: list[Buffer]) -> None:
        self._scopes[-1].bytes += rounded_storage([buffer.values.nbytes for buffer in buffers])
        ring = min(len(self._scopes) - 1, 3)
        open_bytes = sum(s.bytes for i, s in enumerate(self._scopes) if min(i, 3) == ring)
        self.heap[ring] = max(self.heap[ring], open_bytes)

    def _random_element(self) -> tuple[Buffer, int, int]:
        buffer = self._random.choice(self._visible())
        rows, columns = buffer.values.shape
        return buffer, self._random.randrange(rows), self._random.randrange(columns)

    def _whole(self, buffer: Buffer) -> View:
        return self._view(buffer, [0, 0, *buffer.values.shape, 1, 1, 0])

    def _random_view(self, buffer: Buffer) -> View:
        rows, columns = buffer.values.shape
        height = self._random.choice([rows, self._random.randint(0, rows), self._random.randint(1, rows)])
        width = self._random.choice([columns, self._random.randint(1, columns)])
        row_step, column_step = 1, 1
        form = self._random.choice([0, 0, 0, 1])
        if self._steps and self._random.random() < 0.3:
            row_step, column_step = self._random.randint(1, 3), self._random.randint(1, 3)
        elif (width == columns or height <= 1) and self._random.random() < 0.3:
            form = 2
        row, column = self._random.randint(0, rows - height), self._random.randint(0, columns - width)
        return self._view(buffer, [row, column, height, width, row_step, column_step, form])

    @staticmethod
    def _view(buffer: Buffer, words: list[int]) -> View:
        row, column, height, width, row_step, column_step, form = words
        numbers = np.arange(buffer.values.size).reshape(buffer.values.shape)
        chosen = numbers[row : row + height, column : column + width][::row_step, ::column_step]
        chosen = chosen.T if form == 1 else chosen.reshape(-1) if form == 2 else chosen
        return View(buffer, chosen, [buffer.handle, *words], row_step == column_step == 1)
