"""The only source of chance of the generator: Hypothesis, so that failing programs shrink."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


@cache
def _below(n: int) -> st.SearchStrategy[int]:
    return st.integers(0, n - 1)


class Choices:
    """Draws of a program. Whoever adds an alternative puts the simplest first: failing programs shrink towards it.

    ``features`` counts what the program contains, for the statistics.
    """

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self._draw = draw
        self.features: Counter[str] = Counter()

    def below(self, n: int) -> int:
        """A number of ``0 .. n - 1``."""
        return self._draw(_below(n)) if n > 1 else 0

    def between(self, low: int, high: int) -> int:
        """A number of ``low .. high``."""
        return low + self.below(high - low + 1)

    def chance(self, percent: int) -> bool:
        """True in ``percent`` of 100 cases; False is simpler."""
        return self.below(100) >= 100 - percent

    def pick(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def weighted(self, table: Sequence[tuple[int, T]]) -> T:
        """One item of ``(weight, item)`` pairs."""
        at = self.below(sum(weight for weight, _ in table))
        for weight, item in table:
            if at < weight:
                return item
            at -= weight
        raise AssertionError("weights are positive")

    def saw(self, *features: str) -> None:
        self.features.update(features)
