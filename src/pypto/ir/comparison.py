"""The comparison of two trees: the pairing of variables, and the loop over pairs of nodes."""

from __future__ import annotations

from typing import Any

from .equality_rules import LOOP_VAR, AttrFailure, Rules, interchangeable
from .expr import IterArg, MemRef, Var, WindowBuffer
from .mismatch import (
    Failure,
    Mismatch,
    Place,
    field_mismatch,
    mapping_mismatch,
    node_mismatch,
    pointer_mismatch,
    type_prefix,
    value_mismatch,
)
from .traversal import PUSH_CHILDREN, own_type_expressions
from .type_fields import TYPE_FIELDS, type_expressions


class Comparison:
    """One comparison of two trees.

    Variables are paired one to one: at definitions, with ``auto`` everywhere. A variable on both sides stands for
    itself; so what is one object on both sides need not be looked at, as long as every pair so far is of one variable
    with itself. ``_pending`` remembers such objects; the first pair of two different variables makes up for them.
    """

    def __init__(self, auto: bool, memrefs: bool, tell: bool) -> None:
        self.auto = auto
        self.memrefs = memrefs
        self.telling = tell
        self.left: dict[Any, Any] = {}
        self.right: dict[Any, Any] = {}
        self.stack: list[tuple[Any, Any, Any]] = []
        self._pending: list[Any] = []
        self._renamed = False
        self._walked: set[int] = set()

    def run(self, lhs: Any, rhs: Any) -> bool:
        """Whether the trees are equal; when telling, a :class:`Mismatch` is raised if not."""
        stack = self.stack
        rules = _TOLD if self.telling else _FAST
        stack.append((lhs, rhs, Place(None) if self.telling else 0))
        while stack:
            a, b, place = stack.pop()
            cls = type(a)
            if cls is not type(b):
                if self.telling:
                    raise Mismatch(node_mismatch(a, b), place)
                return False
            if not rules[cls](self, a, b, place):
                return False
        return True

    # --- what the telling rules call ---

    def put(self, items: list[tuple[Any, Any, Any]]) -> bool:
        """Compare these pairs next, in order."""
        self.stack.extend(reversed(items))
        return True

    def tell(self, items: list[tuple[Any, Any, Any]], failure: Failure, place: Place) -> bool:
        """Fail once these pairs have been found equal."""
        return self.put([*items, (failure, failure, place)])

    # --- one object on both sides ---

    def share(self, item: Any) -> bool:
        """Note that a node or type is the same object on both sides: its variables stand for themselves."""
        if not self._renamed:
            self._pending.append(item)
            return True
        return self._stand_for_themselves([item])

    def _stand_for_themselves(self, stack: list[Any]) -> bool:
        left, right, walked, push = self.left, self.right, self._walked, stack.append
        while stack:
            item = stack.pop()
            if id(item) in walked:
                continue
            walked.add(id(item))
            if isinstance(item, Var) and not isinstance(item, MemRef):
                known = left.get(item)
                if known is None and item not in right:
                    left[item] = right[item] = item
                elif known is not item:
                    return False
            code = PUSH_CHILDREN.get(type(item))
            if code is not None:
                code(item, push)
            kinds = type_expressions(item) if type(item) in TYPE_FIELDS else own_type_expressions(item)
            stack += kinds if self.memrefs else [e for e in kinds if not isinstance(e, MemRef)]
        return True

    # --- pairs of variables ---

    def conflict(self, a: Any, b: Any) -> Failure | None:
        """Why two variables cannot be paired, as far as earlier pairs are concerned."""
        image, origin = self.left.get(a), self.right.get(b)
        if image is None and origin is None:
            return None
        return mapping_mismatch(a, b, image, origin)

    def record(self, a: Any, b: Any) -> bool:
        """Pair two variables of which neither has a pair; False if one stands for itself in something shared."""
        if a is not b and not self._renamed:
            self._renamed = True
            pending, self._pending = self._pending, []
            self._stand_for_themselves(pending)
            if a in self.left or b in self.right:
                return False
        self.left[a] = b
        self.right[b] = a
        return True


def _fast_var(c: Comparison, a: Any, b: Any, role: int) -> bool:
    known = c.left.get(a)
    if known is not None or b in c.right:
        return known is b
    if a is not b and not role and not c.auto:
        return False
    if not c.record(a, b):
        return False
    push = c.stack.append
    if isinstance(a, IterArg):
        # Here and not at each use: that would be quadratic.
        x, y = a.initValue, b.initValue
        if x is not y:
            push((x, y, 0))
        elif not c.share(x):
            return False
    s, t = a.type, b.type
    if s is t:
        return c.share(s)
    if role != LOOP_VAR or not interchangeable(s, t):
        push((s, t, 0))
    return True


def _told_var(c: Comparison, a: Any, b: Any, place: Place) -> bool:
    if c.left.get(a) is b:
        return True
    items: list[Any] = []
    conflict = c.conflict(a, b)
    if conflict is None and a is not b and not place.role and not c.auto:
        return c.tell(items, pointer_mismatch(a, b), place)
    if place.role != LOOP_VAR or not interchangeable(a.type, b.type):
        items.append((a.type, b.type, Place(place, ".type", 0, True, type_prefix(a, b))))
    if conflict is None and not c.record(a, b):
        conflict = c.conflict(a, b)
    if conflict is not None:
        return c.tell(items, conflict, place)
    if isinstance(a, IterArg):
        where = Place(place, ".initValue", 0, False, "IterArg initValue mismatch")
        items.append((a.initValue, b.initValue, where))
    return c.put(items)


# --- descriptors of memory: their fields are compared, their names are not --------------------------------------------


def _fast_window_buffer(c: Comparison, a: Any, b: Any, _role: int) -> bool:
    known = c.left.get(a)
    if known is not None or b in c.right:
        return known is b
    if not c.record(a, b):
        return False
    if a is b:
        return c.share(a.base) and c.share(a.size)
    if a.load_from_host is not b.load_from_host or a.store_to_host is not b.store_to_host:
        return False
    c.stack += [(a.size, b.size, 0), (a.base, b.base, 0)]
    return True


def _told_window_buffer(c: Comparison, a: Any, b: Any, place: Place) -> bool:
    if c.left.get(a) is b:
        return True
    conflict = c.conflict(a, b)
    if conflict is None and not c.record(a, b):
        conflict = c.conflict(a, b)
    if conflict is not None:
        return c.tell([], conflict, place)
    items = [(a.base, b.base, Place(place, ".base")), (a.size, b.size, Place(place, ".size"))]
    for name in ("load_from_host", "store_to_host"):
        x, y = getattr(a, name), getattr(b, name)
        if x is not y:
            return c.tell(items, value_mismatch(x, y), Place(place, f".{name}"))
    return c.put(items)


def _fast_memref(c: Comparison, a: Any, b: Any, _role: int) -> bool:
    if a is b:
        return c.share(a)
    if a.size_ != b.size_ or a.is_pinned_ is not b.is_pinned_ or a.slot_count_ != b.slot_count_:
        return False
    if (a.slot_index_ is None) is not (b.slot_index_ is None):
        return False
    if a.slot_index_ is not None:
        c.stack.append((a.slot_index_, b.slot_index_, 0))
    c.stack += [(a.byte_offset_, b.byte_offset_, 0), (a.base_, b.base_, 0)]
    return True


def _told_memref(c: Comparison, a: Any, b: Any, place: Place) -> bool:
    items: list[Any] = [
        (a.base_, b.base_, Place(place, ".base_", 0, False, "MemRef base mismatch")),
        (a.byte_offset_, b.byte_offset_, Place(place, ".byte_offset_", 0, False, "MemRef byte_offset mismatch")),
    ]
    for name in ("size", "is_pinned", "slot_count"):
        x, y = getattr(a, f"{name}_"), getattr(b, f"{name}_")
        if x != y:
            return c.tell(items, field_mismatch("MemRef", name, x, y), Place(place, f".{name}_"))
    x, y = a.slot_index_, b.slot_index_
    where = Place(place, ".slot_index_", 0, False, "MemRef slot_index mismatch")
    if (x is None) is not (y is None):
        return c.tell(items, field_mismatch("MemRef", "slot_index", x, y), where)
    if x is not None:
        items.append((x, y, where))
    return c.put(items)


def _told_failure(_c: Comparison, failure: Failure, _same: Failure, place: Place) -> bool:
    raise Mismatch(failure, place)


def _both_absent(_c: Comparison, _a: None, _b: None, _place: Any) -> bool:
    return True


_FAST = Rules(
    False,
    {
        Var: _fast_var,
        IterArg: _fast_var,
        WindowBuffer: _fast_window_buffer,
        MemRef: _fast_memref,
        type(None): _both_absent,
    },
)
_TOLD = Rules(
    True,
    {
        Var: _told_var,
        IterArg: _told_var,
        WindowBuffer: _told_window_buffer,
        MemRef: _told_memref,
        Failure: _told_failure,
        AttrFailure: _told_failure,
        type(None): _both_absent,
    },
)
