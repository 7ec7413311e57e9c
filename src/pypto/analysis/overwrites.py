"""Tasks that touch the same elements and that the rules of the task runtime do not order.

The runtime orders a task behind earlier writers of what it reads, and of what it passes as ``InOut``. It does not
order a writer behind earlier readers (write after read), and nothing by an argument that is ``NoDep``, in a manual
scope, or of a tensor with ``manual_dep``. :class:`Orders` finds such pairs of launches in an orchestration: in the
order of the source, and from one iteration of a loop to a later one. A pair counts if the parts that are touched
(:mod:`.access`) may have an element in common, and if no chain of certain edges leads from the first to the second:
stated dependencies, and arguments that overlap in every run.

Two uses. :func:`unordered_overwrites` gives the pairs of a reader and a writer that overwrites what it reads.
:meth:`Orders.narrowable`: whether the arguments of launches may be narrowed to the parts that are really touched. That
takes no edge away that the touched elements need; but a program may be right because of other edges, those between
tasks that touch different parts of one tensor. So nothing is narrowed in a function that has an unordered pair.

Cost: linear, and a comparison for each pair of launches of one buffer that is not ordered by its arguments. These are
counted; behind a limit a buffer counts as overwritten (``complete`` is then False).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

from ..ir.enums import ArgDirection, ForKind
from ..ir.expr import Var
from ..ir.operands import is_launch
from ..ir.program import Function, Program
from ..ir.stmt import AssignStmt, EvalStmt, ForStmt, WhileStmt
from ..ir.tree import stmt_children, walk
from ..ir.type import TASK_ID_TYPE, TensorType
from .access import Footprints
from .affine import UNBOUNDED, Affine, Range
from .buffer_names import BufferNames
from .callees import Callees, callees_of
from .launch_model import LaunchModel, Loop, Node, Use
from .touch import Dims

_LIMIT = 4_096  # comparisons of launches a buffer
# Where a chain of edges has come: the same iteration, the next one, all later ones.
_HERE, _NEXT, _LATER = 0, 1, 2
_EDGES = 20_000  # questions about edges a function
_STEPS = 64  # launches that a search for a chain of edges looks at


class Overwrite:
    """A pair of launches without order: ``second`` overwrites what ``first`` reads, or both write it.

    ``reads``: the first one reads. ``loop``: the loop whose later iteration ``second`` belongs to; None for the same
    iteration. ``second`` may be ``first``. ``certain``: it is one buffer, not perhaps another one. ``chosen``: the
    program wants no order: an argument is ``NoDep``, the buffer ``manual_dep``, ``second`` in a MANUAL scope, or the
    loop parallel. ``name``: a variable that stands for ``first`` where ``second`` is, by which it can be waited for, if
    there is one.
    """

    __slots__ = ("buffer", "certain", "chosen", "first", "loop", "name", "reads", "second")

    def __init__(
        self,
        first: Any,
        second: Any,
        buffer: Var,
        reads: bool,
        loop: Any,
        certain: bool = True,
        chosen: bool = False,
        name: Var | None = None,
    ) -> None:
        self.first = first
        self.second = second
        self.buffer = buffer
        self.reads = reads
        self.loop = loop
        self.certain = certain
        self.chosen = chosen
        self.name = name

    def __repr__(self) -> str:
        where = "" if self.loop is None else ", next iteration"
        return f"{self.second.op.name} overwrites {self.buffer.name_hint} behind {self.first.op.name}{where}"


class Orders:
    """Which launches of one function are ordered, and which are not."""

    def __init__(self, function: Function, footprints: Footprints) -> None:
        self.complete = True
        self.compared = 0
        self._model = LaunchModel(function, footprints)
        # Where a loop may be left early, what stands behind may not run: no chain is certain.
        self._edges_left = 0 if self._model.leaves else _EDGES
        self._pairs: list[Overwrite] | None = None
        self._standing_for: dict[tuple[Node, bool], list[Var]] | None = None

    # --- answers ------------------------------------------------------------------------------------------------------

    def unordered(self) -> list[Overwrite]:
        """Pairs without order, by the second launch, then by the first."""
        if self._pairs is None:
            found: list[tuple[int, int, Overwrite]] = []
            for uses in self._model.by_root.values():
                found += self._unordered_of(uses)
            found.sort(key=lambda item: item[:2])
            self._pairs = [pair for _, _, pair in found]
        return self._pairs

    @property
    def known(self) -> bool:
        """Whether all that runs is known here."""
        return self._model.complete

    @property
    def narrowable(self) -> bool:
        """Whether launches may be ordered by the parts that they touch, in place of whole arguments."""
        if not self.known:
            return False
        if self._pairs is None and any(next(self._unordered_of(uses), None) for uses in self._model.by_root.values()):
            return False  # one is enough
        return not self._pairs and self.complete

    # --- pairs --------------------------------------------------------------------------------------------------------

    def _unordered_of(self, uses: list[Use]) -> Iterator[tuple[int, int, Overwrite]]:
        """Pairs of one buffer."""
        if all(use.write is None for use in uses):
            return
        manual_dep = uses[0].root in self._model.untracked
        # By what the rules make of them: most pairs of kinds are ordered whatever the boxes are.
        kinds: dict[Any, list[Use]] = {}
        for use in uses:
            kinds.setdefault(_kind(use), []).append(use)
        compared = 0
        for first in kinds.values():
            for second in kinds.values():
                if _is_ordered(first[0], second[0], manual_dep) or not _conflict(first[0], second[0]):
                    continue
                for one in first:
                    for other in second:
                        compared += 1
                        if compared > _LIMIT:
                            self.complete = False
                            self.compared += compared
                            return
                        pair = self._compare(one, other)
                        if pair is not None:
                            yield other.node.number, one.node.number, pair
        self.compared += compared

    def _compare(self, one: Use, other: Use) -> Overwrite | None:
        """The first way in which ``other`` may come behind ``one``, touch the same, and not be ordered."""
        common = _common(one.node, other.node)
        ways: list[int | None] = []
        if one.node.number < other.node.number and not _apart(one.node, other.node):
            ways.append(None)
        # A buffer that is made in a loop is another one in each iteration.
        made = len(self._model.depth.get(one.root, ())) if one.sure and other.sure else 0
        ways += [k for k in range(made, common) if one.node.loops[k].trips not in (0, 1)]
        for way in ways:
            clashes = [
                (a, b)
                for a, b in ((one.read, other.write), (one.write, other.write), (one.write, other.read))
                if a is not None and b is not None and not self._disjoint(a, b, one.node, other.node, way, common)
            ]
            if clashes and not self._has_path(one.node, other.node, way):
                loop = None if way is None else one.node.loops[way].stmt
                reads = clashes[0][0] is one.read
                chosen = (
                    other.node.manual
                    or one.root in self._model.untracked
                    or not (one.looks or one.registers)
                    or not (other.looks or other.registers)
                    or (type(loop) is ForStmt and loop.kind is ForKind.Parallel)
                )
                name = self._name(one.node, other.node, loop)
                certain = one.sure and other.sure
                return Overwrite(one.node.call, other.node.call, one.root, reads, loop, certain, chosen, name)
        return None

    def _name(self, first: Node, second: Node, loop: Any) -> Var | None:
        """A variable that stands for all instances of one launch that another one has to wait for, where that is."""
        model = self._model
        if self._standing_for is None:
            self._standing_for = {}
            for var, launches in sorted(model.ids.items(), key=lambda item: _rank(item[0])):
                if len(launches) == 1:
                    self._standing_for.setdefault(launches[0], []).append(var)
        for var in self._standing_for.get((first, loop is not None), ()):
            home = model.home[var]
            if home == second.branch[: len(home)] and (loop is None or any(var is arg for arg in loop.iter_args)):
                return var
        return None

    def _disjoint(self, a: Dims, b: Dims, first: Node, second: Node, way: int | None, common: int) -> bool:
        """Whether a box of the first node and one of the second have no element in common, in any two instances."""
        if len(a) != len(b):
            return False
        for one, other in zip(a, b, strict=True):
            if one is None or other is None:
                continue
            behind, _ = self._bounds(other.low, one.high, first, second, way, common)
            if behind is not None and behind >= 0:
                return True
            _, before = self._bounds(other.high, one.low, first, second, way, common)
            if before is not None and before <= 0:
                return True
        return False

    def _meet(self, a: Dims, b: Dims, first: Node, second: Node, way: int | None, common: int) -> bool:
        """Whether two boxes have an element in common, in all instances. (A whole dimension holds each stretch.)"""
        if len(a) != len(b):
            return False
        for one, other in zip(a, b, strict=True):
            for span in (one, other):
                if span is not None and (span.size.value is None or span.size.value < 1):
                    return False
            if one is None or other is None:
                continue
            _, gap = self._bounds(other.low, one.high, first, second, way, common)
            least, _ = self._bounds(other.high, one.low, first, second, way, common)
            if gap is None or gap >= 0 or least is None or least <= 0:
                return False
        return True

    def _bounds(self, later: Affine, earlier: Affine, first: Node, second: Node, way: int | None, common: int) -> Range:
        """The least and the largest difference of a form in an instance of ``second`` and one in one of ``first``.

        ``way``: the loop whose later iteration the second belongs to; None: the same iteration of all common loops.
        """
        same = common if way is None else way  # so many loops are at the same iteration
        low: int | None = later.const - earlier.const
        high: int | None = low
        for key in {**earlier.terms, **later.terms}:
            a, b = earlier.terms.get(key, 0), later.terms.get(key, 0)
            depth = self._model.depth.get(key, ())
            if len(depth) <= same:
                parts = [_times(self._range(key), b - a)]
            elif way is not None and a == b and depth and len(depth) == way + 1 and _is_var_of(key, depth[way]):
                parts = [_times(_distance(depth[way]), a)]
            else:
                parts = [_times(self._range(key), b), _times(self._range(key), -a)]
            for least, most in parts:
                low = None if low is None or least is None else low + least
                high = None if high is None or most is None else high + most
        return low, high

    def _range(self, key: Any) -> Range:
        depth = self._model.depth.get(key, ())
        if depth and _is_var_of(key, depth[-1]):
            return depth[-1].range
        return UNBOUNDED

    # --- chains of edges ----------------------------------------------------------------------------------------------

    def _has_path(self, first: Node, second: Node, way: int | None) -> bool:
        """Whether certain edges lead from one launch to another: in the same iteration of all the loops around both
        (``way`` None), or from each iteration of a loop to all later ones."""
        level = _common(first, second) if way is None else way + 1
        start = (first, _HERE)
        seen = {start}
        waiting = [start]
        while waiting and len(seen) < _STEPS and self._edges_left > 0:
            node, place = waiting.pop()
            for behind in self._neighbours(node):
                if not any(behind.branch == end.branch[: len(behind.branch)] for end in (first, second)):
                    continue  # it does not run whenever one of the ends does
                for to in self._steps(node, behind, place, level, way):
                    if behind is second and self._arrives(second, to, level, way):
                        return True
                    if (behind, to) not in seen:
                        seen.add((behind, to))
                        waiting.append((behind, to))
        # From one iteration to the next, and so on; and from each of these to the second launch of the one behind.
        return (first, _NEXT) in seen and (second, _NEXT) in seen

    def _steps(self, node: Node, behind: Node, place: int, level: int, way: int | None) -> Iterator[int]:
        """Where edges from one launch to another lead: the same iteration, the next one, all later ones."""
        if self._is_edge(node, behind, level, None):
            yield place
        if way is not None and place == _HERE:
            if self._is_edge(node, behind, level, way):
                yield _LATER
            if any(named is node and before for named, before in behind.deps) and _common(node, behind) == level:
                yield _NEXT

    def _arrives(self, node: Node, place: int, level: int, way: int | None) -> bool:
        """Whether a chain of edges that has come so far is one to all instances that count."""
        if way is None or place == _LATER:
            return way is None or place == _LATER
        return place == _NEXT and self._is_edge(node, node, level, way)

    def _neighbours(self, node: Node) -> Iterator[Node]:
        """Nodes that may have an edge from this one: users of what it registers, and those that name it."""
        seen: set[Node] = set()
        for use in node.uses:
            if use.registers and use.sure:
                for other in self._model.by_root[use.root][: _STEPS * 4]:
                    if other.looks and other.node not in seen:
                        seen.add(other.node)
                        yield other.node
        for follower in self._model.named.get(node, ()):
            if follower not in seen:
                seen.add(follower)
                yield follower

    def _is_edge(self, one: Node, other: Node, level: int, way: int | None) -> bool:
        """Whether the runtime makes this edge for certain. ``level``: how many loops both are to be in."""
        self._edges_left -= 1
        if one.opaque or other.opaque or _common(one, other) < level:
            return False
        if way is None and (_common(one, other) != level or one.number >= other.number):
            return False
        for named, before in other.deps:
            # An id that is carried orders each iteration behind the one before only.
            if named is one and not before and way is None:
                return True
        if other.manual or other.host:
            return False
        for use in one.uses:
            if not use.registers or not use.sure or use.root in self._model.untracked:
                continue
            for found in other.uses:
                if (
                    found.root is use.root
                    and found.looks
                    and use.order is not None
                    and found.order is not None
                    and self._meet(use.order, found.order, one, other, way, _common(one, other))
                ):
                    return True
        return False


# --- helpers ----------------------------------------------------------------------------------------------------------


def _kind(use: Use) -> tuple[Any, ...]:
    node = use.node
    return use.looks, use.registers, use.read is None, use.write is None, node.manual, node.host, node.opaque


def _conflict(one: Use, other: Use) -> bool:
    return (one.write is not None) or (one.read is not None and other.write is not None)


def _is_ordered(one: Use, other: Use, manual_dep: bool) -> bool:
    """Whether the rules order the second behind the first where their arguments overlap."""
    first, second = one.node, other.node
    if first.host and second.host:
        return True
    if first.opaque or second.opaque:
        return False
    if first.host:
        return True  # it is over when the next task is submitted
    if second.host and not manual_dep:
        # It waits for registered writers; one that writes also for readers, if they take part in the ordering.
        return one.registers or (one.write is None and one.looks)
    if second.manual or manual_dep:
        return False
    return other.looks and one.registers


def _rank(var: Var) -> int:
    """Task ids are the clearest names of tasks, then what tasks write."""
    return 0 if var.type is TASK_ID_TYPE else 1 if isinstance(var.type, TensorType) else 2


def _common(one: Node, other: Node) -> int:
    """How many loops are around both."""
    count = 0
    for a, b in zip(one.loops, other.loops, strict=False):
        if a is not b:
            break
        count += 1
    return count


def _apart(one: Node, other: Node) -> bool:
    """Whether two nodes stand in different branches of one branch statement."""
    for (a, side), (b, other_side) in zip(one.branch, other.branch, strict=False):
        if a is not b:
            return False
        if side != other_side:
            return True
    return False


def _is_var_of(key: Any, loop: Loop) -> bool:
    return type(loop.stmt) is ForStmt and loop.stmt.loop_var is key


def _distance(loop: Loop) -> Range:
    """How far the variable of a loop is from what it was in an earlier iteration."""
    if not loop.step:
        return UNBOUNDED
    most = None if loop.trips is None else loop.step * max(loop.trips - 1, 1)
    return (loop.step, most) if loop.step > 0 else (most, loop.step)


def _times(bounds: Range, factor: int) -> Range:
    if factor == 0:
        return 0, 0
    low, high = bounds if factor > 0 else bounds[::-1]
    return (None if low is None else low * factor), (None if high is None else high * factor)


# --- questions about a function ---------------------------------------------------------------------------------------


def unordered_overwrites(function: Function, callees: Callees) -> list[Overwrite]:
    """Pairs of launches of which the second overwrites what the first reads, and nothing orders them."""
    return [pair for pair in Orders(function, Footprints(callees)).unordered() if pair.reads]


def may_overwrite(function: Function, callees: Callees) -> bool:
    """Whether there may be such pairs: some launch passes a buffer as written that an earlier one, or one in the same
    loop, passes as read. Quick, and rarely True."""
    return _MayOverwrite(callees.names(function)).stmt(function.body)[2]


_Roots = set[Var]


class _MayOverwrite:
    def __init__(self, names: BufferNames) -> None:
        self._names = names
        self._read: _Roots = set()  # so far

    def stmt(self, stmt: Any) -> tuple[_Roots, _Roots, bool]:
        """The buffers that are read, those that are written, and the answer."""
        cls = type(stmt)
        call = stmt.value if cls is AssignStmt else stmt.expr if cls is EvalStmt else None
        if call is not None:
            return self._launch(call) if is_launch(call) else (set(), set(), False)
        read: _Roots = set()
        written: _Roots = set()
        for child in stmt_children(stmt):
            reads, writes, found = self.stmt(child)
            if found:
                return read, written, True
            read |= reads
            written |= writes
        if (cls is ForStmt or cls is WhileStmt) and not read.isdisjoint(written):
            return read, written, True
        return read, written, False

    def _launch(self, call: Any) -> tuple[_Roots, _Roots, bool]:
        read: _Roots = set()
        written: _Roots = set()
        for arg, direction in zip(call.args, call.arg_directions, strict=False):
            if direction is ArgDirection.Input:
                read.update(self._names.candidates(arg))
            elif direction is ArgDirection.InOut or direction is ArgDirection.OutputExisting:
                written.update(self._names.candidates(arg))
        found = not self._read.isdisjoint(written) or not read.isdisjoint(written)
        self._read |= read
        return read, written, found


class Narrowing:
    """Which launches of a program may be ordered by the parts that they touch."""

    def __init__(self, program: Program) -> None:
        self.footprints = Footprints(callees_of(program))
        self._called = {
            node.op.name for function in program.functions.values() for node in walk(function.body) if is_launch(node)
        }
        self._orders: dict[Function, Orders] = {}
        self._known: dict[Function, bool] = {}

    def allows(self, function: Function) -> bool:
        """Whether the launches of an orchestration may. Not those of one that another function calls: it may have
        started tasks that are not seen here."""
        known = self._known.get(function)
        if known is None:
            known = function.name not in self._called and self._of(function).narrowable
            self._known[function] = known
        return known

    def leaves_overwrites(self, function: Function) -> bool:
        """Whether there may be launches that overwrite what others read, in no order, and the program does not say that
        it wants it so."""
        orders = self._of(function)
        pairs = orders.unordered()
        return not (orders.known and orders.complete) or any(pair.reads and not pair.chosen for pair in pairs)

    def _of(self, function: Function) -> Orders:
        found = self._orders.get(function)
        if found is None:
            found = self._orders[function] = Orders(function, self.footprints)
        return found


_NARROWING: WeakKeyDictionary[Program, Narrowing] = WeakKeyDictionary()


def narrowing_of(program: Program) -> Narrowing:
    """The answers for a program; kept as long as it lives."""
    found = _NARROWING.get(program)
    if found is None:
        found = _NARROWING[program] = Narrowing(program)
    return found


__all__ = ["Narrowing", "Orders", "Overwrite", "may_overwrite", "narrowing_of", "unordered_overwrites"]
