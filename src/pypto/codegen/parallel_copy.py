"""Assignments that happen at once, written one after the other.

All sources are read before any destination is written. An assignment can stand as soon as no other one that is still
to come reads its destination; where they wait for each other in a circle, one source is kept in a temporary.

>>> moves = [Move("a", "b", "b"), Move("b", "a", "a")]
>>> [(move.target, "keep" if keep else "assign") for move, keep, _ in in_order(moves)]
[('b', 'keep'), ('a', 'assign'), ('b', 'assign')]
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Sequence
from typing import Any, NamedTuple


class Move:
    """``target = source``. ``reads``: the targets (as keys) that the source reads."""

    __slots__ = ("key", "reads", "source", "target")

    def __init__(self, target: Any, source: Any, reads: Collection[Hashable], key: Hashable = None) -> None:
        self.target = target
        self.source = source
        self.reads = reads
        self.key = target if key is None else key


class Step(NamedTuple):
    """``keep``: put the source into a temporary now; otherwise assign, from the temporary if ``kept``."""

    move: Move
    keep: bool
    kept: bool


def in_order(moves: Sequence[Move]) -> list[Step]:
    """The steps, in the order of the moves where nothing forbids it."""
    by_key = {move.key: i for i, move in enumerate(moves)}
    reads = [{by_key[key] for key in move.reads if key in by_key} - {i} for i, move in enumerate(moves)]
    readers = [0] * len(moves)  # moves to come that read this one's target
    for sources in reads:
        for i in sources:
            readers[i] += 1
    steps: list[Step] = []
    kept: set[int] = set()
    waiting = dict.fromkeys(range(len(moves)))
    ready = deque(i for i in waiting if not readers[i])

    def release(i: int) -> None:
        for source in sorted(reads[i]):
            readers[source] -= 1
            if not readers[source] and source in waiting:
                ready.append(source)
        reads[i] = set()

    while waiting:
        while ready:
            i = ready.popleft()
            if i not in waiting:
                continue
            del waiting[i]
            steps.append(Step(moves[i], False, i in kept))
            release(i)
        if waiting:  # somebody reads the first target: its source is kept, so that the target may be overwritten
            first = next(iter(waiting))
            reader = next(i for i in waiting if first in reads[i])
            kept.add(reader)
            steps.append(Step(moves[reader], True, True))
            release(reader)
    return steps


__all__ = ["Move", "Step", "in_order"]
