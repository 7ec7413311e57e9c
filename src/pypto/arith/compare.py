"""Transitive comparison: facts ``a OP b + offset``, and what chains of them say about two expressions."""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable
from typing import Any

from ..ir import expr as x
from ..ir.expr import ConstInt, Expr, Var
from .arguments import bind_arguments
from .structure import Interner, conjuncts, is_integer


class CompareResult(enum.IntFlag):
    """What is known of the order of two expressions: the bits say that they may be equal, less, greater."""

    kInconsistent = 0
    kEQ = 1
    kLT = 2
    kLE = 3
    kGT = 4
    kGE = 5
    kNE = 6
    kUnknown = 7


ESTABLISHES: dict[type, CompareResult] = {
    x.Eq: CompareResult.kEQ,
    x.Ne: CompareResult.kNE,
    x.Lt: CompareResult.kLT,
    x.Le: CompareResult.kLE,
    x.Gt: CompareResult.kGT,
    x.Ge: CompareResult.kGE,
}


# The same as plain integers: operations on these take a tenth of the time.
INCONSISTENT, EQ, LT, LE, GT, GE, NE, UNKNOWN = range(8)
WANTED: dict[type, int] = {cls: int(relation) for cls, relation in ESTABLISHES.items()}


def establishes(known: int, wanted: int) -> bool:
    """Whether ``known`` implies ``wanted``."""
    return known != UNKNOWN and known != INCONSISTENT and known & wanted == known


# How many keys a search for contradictions looks at: it runs for each constraint, however many facts there are.
_NEAR = 200
_ZERO = -1  # stands for the number 0; other keys are numbers of structurally equal expressions
Edge = tuple[int, int]  # (b, w) at a: a - b <= w


class _Fact:
    """``left - right OP offset`` with OP one of ``<= >= == !=``."""

    __slots__ = ("left", "offset", "op", "owner", "right", "scoped")

    def __init__(self, left: int, op: type, right: int, offset: int, owner: Var | None, scoped: bool) -> None:
        if op is x.Lt:
            op, offset = x.Le, offset - 1
        elif op is x.Gt:
            op, offset = x.Ge, offset + 1
        self.left = left
        self.op = op
        self.right = right
        self.offset = offset
        self.owner = owner
        self.scoped = scoped

    def edges(self) -> list[tuple[int, Edge]]:
        """The upper limits of differences that the fact states."""
        found = []
        if self.op is x.Le or self.op is x.Eq:
            found.append((self.left, (self.right, self.offset)))
        if self.op is x.Ge or self.op is x.Eq:
            found.append((self.right, (self.left, -self.offset)))
        return found


class TransitiveComparisonAnalyzer:
    """Knows facts between expressions, and compares through chains of them."""

    def __init__(self) -> None:
        self._intern = Interner()
        self._facts: dict[int, _Fact] = {}  # in the order of their arrival
        self._edges: dict[int, dict[int, tuple[Edge, bool]]] = {}  # by key and fact; whether it is of an equality
        self._mentions: dict[int, int] = {}  # in how many facts a key is
        self._count = 0
        self.visits = 0  # counts keys taken from work lists, for tests of growth

    # --- facts --------------------------------------------------------------------------------------------------------

    def bind(self, var: Var, *args: Any, **kwargs: Any) -> None:
        """``bind(var, expr, allow_override=False)``: ``var == expr``.

        ``bind(var, min_val, max_val_exclusive, allow_override=False)``: ``min_val <= var < max_val_exclusive``.
        What an earlier ``bind`` of the variable said is replaced.
        """
        low, high, _ = bind_arguments(var, args, kwargs)
        for number in [n for n, fact in self._facts.items() if fact.owner is var]:
            self._remove(number)
        if high is None or type(low) is ConstInt and type(high) is ConstInt and low.value + 1 == high.value:
            self._add(x.Eq, var, low, var, False)
        else:
            self._add(x.Ge, var, low, var, False)
            self._add(x.Lt, var, high, var, False)

    def unbind(self, var: Var) -> None:
        """Drop the facts about ``var`` that no constraint made."""
        key = self._intern(var)
        for number, fact in list(self._facts.items()):
            if not fact.scoped and (fact.owner is var or key in (fact.left, fact.right)):
                self._remove(number)

    def enter_constraint(self, constraint: Expr) -> Callable[[], None]:
        """Assume the comparisons in ``constraint``; returns what ends that."""
        added: list[int] = []
        for part in conjuncts(constraint):
            if type(part) in ESTABLISHES and is_integer(part.left) and is_integer(part.right):
                number = self._add(type(part), part.left, part.right, None, True)
                if number is not None:
                    added.append(number)

        def leave() -> None:
            for number in reversed(added):
                self._remove(number)
            added.clear()

        return leave

    def contradicts(self, constraint: Expr) -> bool:
        """Whether facts near the comparisons in ``constraint``, itself among them, contradict each other."""
        for part in conjuncts(constraint):
            if type(part) in ESTABLISHES and is_integer(part.left) and is_integer(part.right):
                if self._compared(part.left, part.right, _NEAR) == INCONSISTENT:
                    return True
        return False

    def _key(self, e: Any) -> tuple[int, int]:
        """(key, offset): ``e`` without the constants added to it."""
        offset = 0
        while True:
            cls = type(e)
            if cls is ConstInt:
                return _ZERO, offset + e.value
            if cls is x.Add and type(e.right) is ConstInt:
                e, offset = e.left, offset + e.right.value
            elif cls is x.Add and type(e.left) is ConstInt:
                e, offset = e.right, offset + e.left.value
            elif cls is x.Sub and type(e.right) is ConstInt:
                e, offset = e.left, offset - e.right.value
            else:
                return self._intern(e), offset

    def _add(self, op: type, left: Any, right: Any, owner: Var | None, scoped: bool) -> int | None:
        (a, p), (b, q) = self._key(left), self._key(right)
        if a == b:
            return None
        self._count += 1
        number = self._count
        fact = self._facts[number] = _Fact(a, op, b, q - p, owner, scoped)
        for key in (a, b):
            self._mentions[key] = self._mentions.get(key, 0) + 1
        for key, edge in fact.edges():
            self._edges.setdefault(key, {})[number] = (edge, fact.op is x.Eq)
        return number

    def _remove(self, number: int) -> None:
        fact = self._facts.pop(number, None)
        if fact is not None:
            for key in (fact.left, fact.right):
                self._mentions[key] -= 1
            for key, _ in fact.edges():
                self._edges[key].pop(number, None)

    # --- questions ----------------------------------------------------------------------------------------------------

    def knows_facts(self) -> bool:
        """Whether there is anything to compare by."""
        return bool(self._facts)

    def try_compare(self, lhs: Expr, rhs: Expr, propagate_inequalities: bool = True) -> CompareResult:
        """What the facts say about ``lhs`` and ``rhs``; without propagation only facts about just these two count."""
        return CompareResult(self.order(lhs, rhs, propagate_inequalities))

    def order(self, lhs: Expr, rhs: Expr, propagate_inequalities: bool = True) -> int:
        """:meth:`try_compare` as a plain integer."""
        if not (is_integer(lhs) and is_integer(rhs)):
            return UNKNOWN
        self._intern.trim()
        return self._compared(lhs, rhs, None if propagate_inequalities else 0)

    def _compared(self, lhs: Any, rhs: Any, reach: int | None) -> int:
        """:meth:`order` looking at no more than ``reach`` keys; 0 stands for facts about just these two."""
        (a, p), (b, q) = self._key(lhs), self._key(rhs)
        wanted = q - p  # lhs OP rhs is a - b OP wanted
        if a == b:
            return _order(0, wanted)
        above, below = (self._limit(a, b, reach), self._limit(b, a, reach)) if reach != 0 else self._direct(a, b)
        result = UNKNOWN
        if above is not None and above <= wanted:
            result &= LT if above < wanted else LE
        if below is not None and -below >= wanted:
            result &= GT if -below > wanted else GE
        if self._differ(a, b, wanted, reach != 0):
            result &= NE
        return result

    def _direct(self, a: int, b: int) -> tuple[int | None, int | None]:
        def least(p: int, q: int) -> int | None:
            return min((edge[1] for edge, _ in self._edges.get(p, {}).values() if edge[0] == q), default=None)

        return least(a, b), least(b, a)

    def _limit(self, a: int, b: int, reach: int | None = None) -> int | None:
        """The least known ``w`` with ``a - b <= w``: the length of the shortest chain."""
        if not self._edges.get(a) or not self._mentions.get(b):
            return None
        distance = {a: 0}
        visited: dict[int, int] = {}
        # Without contradictions a shortest chain passes each fact at most once; contradictions would go on for ever.
        limit = 2 * len(self._facts)
        waiting = deque([a])
        queued = {a}
        while waiting:
            key = waiting.popleft()
            queued.discard(key)
            visited[key] = visited.get(key, 0) + 1
            if visited[key] > limit or (reach is not None and len(visited) > reach):
                break
            self.visits += 1
            here = distance[key]
            for (other, weight), _ in self._edges.get(key, {}).values():
                reached = here + weight
                if other not in distance or reached < distance[other]:
                    distance[other] = reached
                    if other not in queued:
                        queued.add(other)
                        waiting.append(other)
        return distance.get(b)

    def _equals(self, a: int) -> dict[int, int]:
        """key -> offset of all keys with ``a == key + offset``."""
        found = {a: 0}
        waiting = [a]
        while waiting:
            key = waiting.pop()
            for (other, weight), equality in self._edges.get(key, {}).values():
                if equality and other not in found:
                    found[other] = found[key] + weight
                    waiting.append(other)
        return found

    def _differ(self, a: int, b: int, wanted: int, propagate: bool) -> bool:
        """Whether some fact says ``a - b != wanted``."""
        unequal = [fact for fact in self._facts.values() if fact.op is x.Ne]
        if not unequal:
            return False
        left, right = (self._equals(a), self._equals(b)) if propagate else ({a: 0}, {b: 0})
        for fact in unequal:
            for p, q, offset in ((fact.left, fact.right, fact.offset), (fact.right, fact.left, -fact.offset)):
                # a == p + left[p], b == q + right[q], p - q != offset
                if p in left and q in right and offset + left[p] - right[q] == wanted:
                    return True
        return False


def _order(a: int, b: int) -> int:
    return EQ if a == b else LT if a < b else GT


__all__ = ["ESTABLISHES", "WANTED", "CompareResult", "TransitiveComparisonAnalyzer", "establishes"]
