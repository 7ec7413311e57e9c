"""What stands where in a function: one walk over its statements, shared by the verifiers.

A verifier that asks about statements ("where is a ``break``, in which loop?") reads the inventory and walks nothing.
It is made once for each function object and forgotten with it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary, ref

from ..ir.program import Function
from ..ir.stmt import (
    SCOPE_CLASSES,
    AssignStmt,
    ForStmt,
    IfStmt,
    InCoreScopeStmt,
    ScopeStmt,
    SeqStmts,
    SplitAivScopeStmt,
    Stmt,
    WhileStmt,
)


class Region:
    """Where statements stand: the loops and scopes around them. Branches and sequences make no region.

    ``owner`` is the loop or scope whose body this is (None: the function), ``parent`` the region of that statement.
    The others are the innermost statements of their kind around, the owner included, or None.
    """

    __slots__ = ("incore", "loop", "owner", "parent", "scope", "split")

    def __init__(self, owner: Stmt | None = None, parent: Region | None = None) -> None:
        self.owner = owner
        self.parent = parent
        self.loop: ForStmt | WhileStmt | None = None
        self.scope: ScopeStmt | None = None
        self.incore: InCoreScopeStmt | None = None
        self.split: SplitAivScopeStmt | None = None
        if parent is None:
            return
        self.loop, self.scope, self.incore, self.split = parent.loop, parent.scope, parent.incore, parent.split
        if isinstance(owner, ScopeStmt):
            self.scope = owner
            if type(owner) is InCoreScopeStmt:
                self.incore = owner
            elif type(owner) is SplitAivScopeStmt:
                self.split = owner
        elif isinstance(owner, (ForStmt, WhileStmt)):
            self.loop = owner


Placed = tuple[Any, Region]


class Inventory:
    """The statements of one function, in the order of the source. ``placed``: each with its region."""

    __slots__ = ("_by_class", "placed")

    def __init__(self, body: Stmt) -> None:
        self.placed: list[Placed] = []
        self._by_class: dict[type, list[Placed]] = {}
        self._collect(body)

    def of(self, *classes: type[Stmt]) -> list[Placed]:
        """The statements of these classes: class by class, each in the order of the source."""
        found = self._by_class
        if len(classes) == 1:
            if classes[0] is AssignStmt:
                return [item for item in self.placed if type(item[0]) is AssignStmt]
            return found.get(classes[0], _NONE)
        return [item for cls in classes for item in found.get(cls, ())]

    def has(self, *classes: type[Stmt]) -> bool:
        """Whether there is a statement of one of these classes."""
        return any(cls in self._by_class for cls in classes)

    def _collect(self, body: Stmt) -> None:
        # A stack, so that nesting costs no recursion; most statements are assignments and go straight to the list.
        stack: list[Placed] = [(body, Region())]
        pop, push, extend = stack.pop, stack.append, stack.extend
        append, by_class = self.placed.append, self._by_class
        while stack:
            item = pop()
            stmt, region = item
            cls = type(stmt)
            append(item)
            if cls is AssignStmt:
                continue
            alike = by_class.get(cls)
            if alike is None:
                by_class[cls] = [item]
            else:
                alike.append(item)
            if cls is SeqStmts:
                extend([(inner, region) for inner in stmt.stmts[::-1]])
            elif cls is IfStmt:
                if stmt.else_body is not None:
                    push((stmt.else_body, region))
                push((stmt.then_body, region))
            elif cls in _REGION_OWNERS:
                push((stmt.body, Region(stmt, region)))


_REGION_OWNERS: frozenset[type] = frozenset((ForStmt, WhileStmt, *SCOPE_CLASSES))

_NONE: list[Placed] = []

T = TypeVar("T")


class MadeOnce(Generic[T]):
    """Something about functions that is made once for each and forgotten with it."""

    def __init__(self, make: Callable[[Function], T]) -> None:
        self._make = make
        self._made: WeakKeyDictionary[Function, T] = WeakKeyDictionary()
        # A dozen verifiers ask for the same function, one after another.
        self._latest: tuple[Callable[[], Function | None], T] | None = None

    def __call__(self, function: Function) -> T:
        latest = self._latest
        if latest is not None and latest[0]() is function:
            return latest[1]
        found = self._made.get(function)
        if found is None:
            found = self._made[function] = self._make(function)
        self._latest = ref(function), found
        return found


# The inventory of a function.
inventory: MadeOnce[Inventory] = MadeOnce(lambda function: Inventory(function.body))

__all__ = ["Inventory", "MadeOnce", "Placed", "Region", "inventory"]
