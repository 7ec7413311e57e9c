"""Names for the variables that passes make."""

from __future__ import annotations

from collections.abc import Iterable

from ..ir.expr import Var
from ..ir.names import build_name, fresh_name_like
from ..ir.program import Function
from ..ir.tree import definitions


class NameSupply:
    """Hands out names that no variable of a function has yet.

    Names are hints and carry no meaning; different ones make dumps readable and the same in every run.
    """

    def __init__(self, function: Function, defined: Iterable[Var] | None = None) -> None:
        """``defined``: the variables that the function defines, for a caller who knows them."""
        self.used = {variable.name_hint for variable in (definitions(function) if defined is None else defined)}
        self._next: dict[tuple[str, str | None], int] = {}

    def fresh(self, base: str, role: str | None = None, qualifier: str | None = None) -> str:
        """``base__[qualifier_][role_]vN`` with the lowest unused N, counted for base and role."""
        key = (base if qualifier is None else f"{base}__{qualifier}", role)
        version = self._next.get(key, 0)
        while (name := build_name(base, qualifier, role, version)) in self.used:
            version += 1
        self._next[key] = version + 1
        self.used.add(name)
        return name

    def like(self, name: str) -> str:
        """Same base, qualifier and role as ``name`` (``ssa`` if none), with the next version that is not used."""
        found = fresh_name_like(name, self.used)
        self.used.add(found)
        return found


__all__ = ["NameSupply"]
