"""Names of a DSL body: nested tables from names to expressions."""

from __future__ import annotations

from typing import Any


class Poison:
    """Bound to a name whose definition was an error: later uses are silent, since the error was reported already."""


POISON: Any = Poison()


class Conflict:
    """Bound to a name that means values of different types on different paths: a use of it is an error."""

    __slots__ = ("types",)

    def __init__(self, *types: Any) -> None:
        self.types = types


class ScopeStack:
    """The open scopes, innermost last. ``siblings`` holds, for an else branch, the names of its then branch."""

    __slots__ = ("siblings", "tables")

    def __init__(self) -> None:
        self.tables: list[dict[str, Any]] = [{}]
        self.siblings: list[dict[str, Any] | None] = [None]

    def lookup(self, name: str) -> Any:
        """What the name is bound to, or None."""
        for table in reversed(self.tables):
            found = table.get(name)
            if found is not None:
                return found
        return None

    def lookup_sibling(self, name: str) -> Any:
        """What the other branch of an open ``if`` bound the name to, innermost first, or None.

        An ``elif`` chain is an ``if`` in an else branch, so that the outer ones count as well.
        """
        for sibling in reversed(self.siblings):
            if sibling is not None:
                found = sibling.get(name)
                if found is not None:
                    return found
        return None

    def bind(self, name: str, value: Any) -> None:
        """Bind in the innermost scope."""
        self.tables[-1][name] = value

    def rebind(self, name: str, value: Any) -> None:
        """Bind where the name is bound now, or in the innermost scope."""
        for table in reversed(self.tables):
            if name in table:
                table[name] = value
                return
        self.tables[-1][name] = value

    def depth_of(self, name: str) -> int:
        """Index of the scope that binds the name, or -1."""
        for depth in range(len(self.tables) - 1, -1, -1):
            if name in self.tables[depth]:
                return depth
        return -1

    @property
    def depth(self) -> int:
        return len(self.tables) - 1

    def push(self, sibling: dict[str, Any] | None = None) -> None:
        self.tables.append({})
        self.siblings.append(sibling)

    def pop(self, leak: bool = False) -> dict[str, Any]:
        """Close the innermost scope; with ``leak`` its names go to the enclosing one."""
        table = self.tables.pop()
        self.siblings.pop()
        if leak:
            self.tables[-1].update(table)
        return table

    def names(self) -> list[str]:
        """All visible names, for suggestions."""
        return [name for table in self.tables for name in table]
