"""Which tasks of a graph are certainly over when another one starts.

Nodes are numbered in a topological order and visited in it. What lies before a node is the union of what lies before
its producers, and these: a set of numbers, kept as blocks of bits of which only those that hold something are there.
It is exact, whatever the shape of the graph.

Cost: a node that follows one other shares the set made for it; nodes that follow the same ones share theirs; a set is
forgotten with the last node that follows it directly. Else a union visits the blocks of its parts: one operation on
2048 bits each, and sets of few tasks are few blocks. So forks, joins, chains and bands cost nodes and edges times
1 + n / 2048 at the very most. This is the closure by bit vectors of S. Warshall (J. ACM 9(1), 1962), which on a graph
without cycles needs a single sweep, in blocks that leave out the empty part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_SHIFT = 11
_LOW = (1 << _SHIFT) - 1
_REMEMBERED = 64

# Block number -> its bits, of which at least one is set.
Numbers = dict[int, int]


def contains(numbers: Numbers, number: int) -> bool:
    """Whether a number is in the set."""
    bits = numbers.get(number >> _SHIFT)
    return bits is not None and bool(bits >> (number & _LOW) & 1)


def insert(numbers: Numbers, number: int) -> None:
    """Add a number."""
    block = number >> _SHIFT
    numbers[block] = numbers.get(block, 0) | 1 << (number & _LOW)


def split(numbers: Numbers, by: Numbers) -> tuple[Numbers, Numbers]:
    """The part of a set that is in another one, and the rest."""
    common: Numbers = {}
    rest: Numbers = {}
    for block, bits in numbers.items():
        both = bits & by.get(block, 0)
        if both:
            common[block] = both
        if both != bits:
            rest[block] = bits ^ both
    return common, rest


def within(numbers: Numbers, others: Numbers) -> bool:
    """Whether all numbers of a set are in another one."""
    return all(not bits & ~others.get(block, 0) for block, bits in numbers.items())


def members(numbers: Numbers) -> Iterator[int]:
    """The numbers of a set in ascending order."""
    for block in sorted(numbers):
        bits = numbers[block]
        while bits:
            low = bits & -bits
            yield (block << _SHIFT) + low.bit_length() - 1
            bits ^= low


class Ancestors:
    """Visits the nodes of a graph; ``producers[i]``: what node i follows directly. ``blocks`` counts the work.

    ``ValueError`` for a node that follows itself or a later one.
    """

    def __init__(self, producers: Sequence[Sequence[int]]) -> None:
        self.blocks = 0
        self._producers = producers
        self._left = [0] * len(producers)  # those that have still to come of the nodes that follow each
        for number, before in enumerate(producers):
            for producer in before:
                if producer >= number:
                    raise ValueError(f"node {number} follows node {producer}, which does not come before it")
                self._left[producer] += 1
        self._before: dict[int, Numbers] = {}
        self._through: dict[int, Numbers] = {}
        self._recent: dict[tuple[int, ...], Numbers] = {}

    def __iter__(self) -> Iterator[Numbers]:
        """For each node the set of those before it; it must not be changed."""
        for number, before in enumerate(self._producers):
            found = self._union(before)
            if self._left[number]:
                self._before[number] = found
            yield found
            for producer in before:
                self._left[producer] -= 1
                if not self._left[producer]:
                    del self._before[producer]
                    self._through.pop(producer, None)

    def _union(self, producers: Sequence[int]) -> Numbers:
        if not producers:
            return {}
        if len(producers) == 1:
            return self._with_itself(producers[0])
        # The latest first: of what it follows itself nothing is new.
        key = tuple(sorted(set(producers), reverse=True))
        found = self._recent.get(key)
        if found is None:
            found = self._merged(key)
            if len(self._recent) >= _REMEMBERED:
                self._recent.clear()
            self._recent[key] = found
        return found

    def _merged(self, producers: Sequence[int]) -> Numbers:
        result = dict(self._before[producers[0]])
        insert(result, producers[0])
        seen = {id(self._before[producers[0]])}
        self.blocks += len(result)
        for producer in producers[1:]:
            self.blocks += 1
            if contains(result, producer):
                continue
            before = self._before[producer]
            if id(before) not in seen:
                seen.add(id(before))
                self.blocks += len(before)
                for block, bits in before.items():
                    result[block] = result.get(block, 0) | bits
            insert(result, producer)
        return result

    def _with_itself(self, number: int) -> Numbers:
        found = self._through.get(number)
        if found is None:
            found = dict(self._before[number])
            insert(found, number)
            self.blocks += len(found)
            if self._left[number] > 1:
                self._through[number] = found
        return found


__all__ = ["Ancestors", "Numbers", "contains", "insert", "members", "split", "within"]
