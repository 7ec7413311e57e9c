"""Names of the functions that scopes become."""

from __future__ import annotations

from collections.abc import Iterable


class FunctionNames:
    """The function names of a program. ``begin`` starts another function whose scopes are outlined."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._own: set[str] = set()
        self._next: dict[str, int] = {}

    def begin(self) -> None:
        """What was handed out before now belongs to another function."""
        self._own = set()

    def allocate(self, parent: str, hint: str, unnamed: str) -> str:
        """A new name: the hint, or ``unnamed`` without one.

        A hint that this function used already is numbered; one that another function has is put behind ``parent``.
        """
        base = hint or unnamed
        if hint and hint in self._taken and hint not in self._own:
            base = f"{parent}_{hint}"
        name = base
        number = self._next.get(base, 0)
        while name in self._taken:
            name = f"{base}_{number}"
            number += 1
        self._next[base] = number
        self._taken.add(name)
        self._own.add(name)
        return name
