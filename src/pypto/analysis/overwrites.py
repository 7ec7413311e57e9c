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

from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

from ..ir.enums import ArgDirection, FunctionType, is_incore_type
from ..ir.expr import Call, Expr, GlobalVar, MakeTuple, Submit, TupleGetItemExpr, Var
from ..ir.program import Function, Program
from ..ir.stmt import (
    SCOPE_CLASSES,
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    InlineStmt,
    ReturnStmt,
    RuntimeScopeStmt,
    SeqStmts,
    WhileStmt,
    YieldStmt,
)
from ..ir.tree import get_last_yield_stmt, walk
from ..ir.type import ScalarType, TensorType
from ..ops.definition import Alias
from ..ops.footprint import touched_operands
from ..ops.registry import REGISTRY
from .access import Access, Footprints, assigned_twice, placed_at
from .affine import UNBOUNDED, Affine, Range, form_of
from .buffer_names import BufferNames
from .buffers import READ, WRITE
from .callees import Callees, callees_of, parameter_index
from .constants import trip_count
from .touch import Dims, Span, Touch

_LIMIT = 4_096  # comparisons of launches a buffer
# Where a chain of edges has come: the same iteration, the next one, all later ones.
_HERE, _NEXT, _LATER = 0, 1, 2
_EDGES = 20_000  # questions about edges a function
_STEPS = 64  # launches that a search for a chain of edges looks at
_LOOKS_UP = frozenset((ArgDirection.Input, ArgDirection.InOut))
_REGISTERS = frozenset((ArgDirection.InOut, ArgDirection.OutputExisting, ArgDirection.Output))
_SCOPES: frozenset[type] = frozenset(SCOPE_CLASSES)
_LAUNCHED = frozenset((FunctionType.Group, FunctionType.Spmd))


class Overwrite:
    """A pair of launches without order: ``second`` overwrites what ``first`` reads, or both write it.

    ``reads``: the first one reads. ``loop``: the loop whose later iteration ``second`` belongs to; None for the same
    iteration. ``second`` may be ``first``.
    """

    __slots__ = ("buffer", "first", "loop", "reads", "second")

    def __init__(self, first: Any, second: Any, buffer: Var, reads: bool, loop: Any) -> None:
        self.first = first
        self.second = second
        self.buffer = buffer
        self.reads = reads
        self.loop = loop

    def __repr__(self) -> str:
        where = "" if self.loop is None else ", next iteration"
        return f"{self.second.op.name} overwrites {self.buffer.name_hint} behind {self.first.op.name}{where}"


class _Loop:
    """``range``: the values of its variable, as far as they are constant; ``step``; ``trips``."""

    __slots__ = ("range", "step", "stmt", "trips")

    def __init__(self, stmt: Any) -> None:
        self.stmt = stmt
        self.range: Range = UNBOUNDED
        self.step: int | None = None
        self.trips: int | None = None


class _Node:
    """A launch, or an op of the orchestrator: where it stands. ``branch``: the branches around it."""

    __slots__ = ("branch", "call", "deps", "host", "loops", "manual", "number", "opaque", "uses")

    def __init__(self, number: int, call: Any, loops: tuple[_Loop, ...], branch: tuple[Any, ...], manual: bool) -> None:
        self.number = number
        self.call = call
        self.loops = loops
        self.branch = branch
        self.manual = manual
        self.host = False
        self.opaque = False
        self.uses: list[_Use] = []
        self.deps: list[tuple[_Node, bool]] = []  # launches that it names: (launch, of the iteration before)


class _Use:
    """What a node does to one buffer. ``sure``: it is this buffer for certain. ``order``: the box that its argument
    has for the runtime, if that is known: there a dimension without a stretch is whole for certain; ``read``/``write``:
    a box that holds what is really touched."""

    __slots__ = ("looks", "node", "order", "read", "registers", "root", "sure", "write")

    def __init__(
        self, node: _Node, root: Var, sure: bool, looks: bool, registers: bool, read: Dims | None, write: Dims | None
    ) -> None:
        self.node = node
        self.root = root
        self.sure = sure
        self.looks = looks
        self.registers = registers
        self.read = read
        self.write = write
        self.order: Dims | None = None


class Orders:
    """The orchestration of one function."""

    def __init__(self, function: Function, footprints: Footprints) -> None:
        self.function = function
        self.complete = True
        self.compared = 0
        self._edges_left = _EDGES
        self._footprints = footprints
        self._callees = footprints.callees
        self._names = BufferNames(function, footprints.callees)
        self._loops: tuple[_Loop, ...] = ()
        self._branch: tuple[Any, ...] = ()
        self._manual = False
        self._modelled = True  # whether all that runs is known here
        self._forms: dict[Var, Affine] = {}
        self._depth: dict[Any, tuple[_Loop, ...]] = {}
        self._ids: dict[Any, list[tuple[_Node, bool]]] = {}
        self._twice = assigned_twice(function)
        self._untracked: set[Var] = set()  # tensors made with manual_dep
        self._allocates = False
        self._boxes: dict[Var, tuple[Var, Dims, bool] | None] = {}
        self._nodes: list[_Node] = []
        self._by_root: dict[Var, list[_Use]] = {}
        for param in function.params:
            self._depth[param] = ()
            for extent in getattr(param.type, "shape", ()):
                if type(extent) is Var:
                    self._depth[extent] = ()
        if not all(isinstance(var.type, ScalarType) for var in self._twice):
            self._modelled = False  # not in SSA form
        self._stmt(function.body)
        if self._allocates and any(node.manual for node in self._nodes):
            self._modelled = False  # a manual task does not wait for who made its argument
        self._named: dict[_Node, list[_Node]] = {}
        for node in self._nodes:
            for named, _ in node.deps:
                self._named.setdefault(named, []).append(node)
        self._pairs: list[Overwrite] | None = None

    # --- answers ------------------------------------------------------------------------------------------------------

    def unordered(self) -> list[Overwrite]:
        """Pairs without order, by the second launch, then by the first."""
        if self._pairs is None:
            found: list[tuple[int, int, Overwrite]] = []
            for uses in self._by_root.values():
                found += self._unordered_of(uses)
            found.sort(key=lambda item: item[:2])
            self._pairs = [pair for _, _, pair in found]
        return self._pairs

    @property
    def narrowable(self) -> bool:
        """Whether launches may be ordered by the parts that they touch, in place of whole arguments."""
        if not self._modelled:
            return False
        if self._pairs is None and any(next(self._unordered_of(uses), None) for uses in self._by_root.values()):
            return False  # one is enough
        return not self._pairs and self.complete

    # --- what runs ----------------------------------------------------------------------------------------------------

    def _stmt(self, stmt: Any) -> None:
        cls = type(stmt)
        if cls is SeqStmts:
            for inner in stmt.stmts:
                self._stmt(inner)
        elif cls is AssignStmt:
            self._expr(stmt.value)
            self._define(stmt.var, stmt.value)
        elif cls is EvalStmt:
            self._expr(stmt.expr)
        elif cls is ForStmt or cls is WhileStmt:
            self._loop(stmt)
        elif cls is IfStmt:
            self._expr(stmt.condition)
            outer = self._branch
            for side, body in enumerate((stmt.then_body, stmt.else_body)):
                if body is not None:
                    self._branch = (*outer, (stmt, side))
                    self._stmt(body)
            self._branch = outer
            self._results(stmt)
            self._ids_of_branch(stmt)
        elif cls is RuntimeScopeStmt:
            outer_mode, self._manual = self._manual, stmt.manual
            self._stmt(stmt.body)
            self._manual = outer_mode
        elif cls is YieldStmt or cls is ReturnStmt:
            for value in stmt.value:
                self._expr(value)
        elif cls is BreakStmt or cls is ContinueStmt:
            self._modelled = False
            self._edges_left = 0  # what stands behind may not run: no chain is certain
        elif cls is InlineStmt or cls in _SCOPES:
            self._modelled = False  # a kernel that is not outlined yet

    def _loop(self, stmt: Any) -> None:
        loop = _Loop(stmt)
        if type(stmt) is ForStmt:
            bounds = [self._form(e) for e in (stmt.start, stmt.stop, stmt.step)]
            start, stop, step = (form.value if form is not None else None for form in bounds)
            loop.step = step
            if start is not None and stop is not None and step:
                loop.trips = trip_count(start, stop, step)
                last = start + step * max(loop.trips - 1, 0)
                loop.range = (min(start, last), max(start, last))
            elif step:
                loop.range = (start, None) if step > 0 else (None, start)
        for arg in stmt.iter_args:
            self._expr(arg.initValue)
        first = len(self._nodes)
        outer, self._loops = self._loops, (*self._loops, loop)
        branch, self._branch = self._branch, (*self._branch, (stmt, 0))
        if type(stmt) is ForStmt:
            self._depth[stmt.loop_var] = self._loops
        else:
            self._expr(stmt.condition)
        self._stmt(stmt.body)
        self._loops, self._branch = outer, branch
        self._results(stmt)
        yielded = get_last_yield_stmt(stmt.body)
        if yielded is not None:
            for arg, value in zip(stmt.iter_args, yielded.value, strict=False):
                if isinstance(value, Var) and value in self._ids:
                    self._ids[arg] = [(node, True) for node, before in self._ids[value] if not before]
                    self._resolve_late(arg, first)

    def _ids_of_branch(self, stmt: IfStmt) -> None:
        """A result is the id of a launch in a branch exactly when that launch has run."""
        for side, body in enumerate((stmt.then_body, stmt.else_body)):
            last = get_last_yield_stmt(body)
            for var, value in zip(stmt.return_vars, last.value if last is not None else (), strict=False):
                for node, before in self._ids.get(value, ()):
                    if any(at is stmt and way == side for at, way in node.branch):
                        self._ids.setdefault(var, []).append((node, before))

    def _results(self, stmt: Any) -> None:
        for var in stmt.return_vars:
            self._depth[var] = self._loops

    def _resolve_late(self, arg: Any, first: int) -> None:
        """Launches of the body that named a carried id before it was known which one it is."""
        for node in self._nodes[first:]:
            for e in _edges_of(node.call):
                if e is arg:
                    node.deps += self._ids[arg]

    def _define(self, var: Var, value: Any) -> None:
        if type(value) is Submit:
            self._ids[var] = [(self._nodes[-1], False)]  # it has just been added
        elif type(value) is TupleGetItemExpr and isinstance(value.tuple, Var) and value.tuple in self._ids:
            self._ids[var] = self._ids[value.tuple]
        elif type(value) is Call and type(value.op) is GlobalVar:
            self._ids[var] = [(self._nodes[-1], False)]  # it has just been added
        elif isinstance(value, Var) and value in self._ids:
            self._ids[var] = self._ids[value]
        if isinstance(var.type, TensorType):
            self._depth[var] = self._loops
            if type(value) is Call and value.kwargs.get("manual_dep"):
                self._untracked.add(var)
        elif isinstance(var.type, ScalarType):
            form = self._form(value)
            self._depth[var] = self._loops
            if form is not None:
                self._forms[var] = form

    def _form(self, e: Any) -> Affine | None:
        return form_of(e, self._form_of_var)

    def _form_of_var(self, var: Var) -> Affine | None:
        form = self._forms.get(var)
        if form is not None or var in self._twice or var not in self._depth:
            return form if var not in self._twice else None
        return Affine(0, {var: 1})

    def _expr(self, e: Any) -> None:
        cls = type(e)
        if cls is Call or cls is Submit:
            self._call(e)
        elif not isinstance(e, Var):
            for node in walk(e):
                if type(node) in (Call, Submit):
                    self._call(node)

    def _call(self, call: Any) -> None:
        if type(call.op) is not GlobalVar:
            self._host(call)
            return
        node = self._add(call)
        function = self._callees.of(call)
        node.opaque = function is None or not (is_incore_type(function.func_type) or function.func_type in _LAUNCHED)
        directions = call.arg_directions
        if len(directions) != len(call.args):
            self._modelled = False  # ordered by the rules of the source
            return
        self._allocates = self._allocates or (function is not None and len(call.args) < len(function.params))
        overrides = call.attrs.get("arg_direction_overrides", ())
        footprint = self._footprints.of(function) if function is not None and not node.opaque else None
        placed = placed_at(function, call, self._form) if function is not None else None
        for i, arg in enumerate(call.args):
            if not isinstance(arg.type, TensorType):
                continue
            index = parameter_index(function, len(call.args), i) if function is not None else None
            access = footprint[index] if footprint is not None and index is not None else None
            direction = ArgDirection.NoDep if i in overrides else directions[i]
            if access is not None and placed is not None:
                read = None if access.read is None else placed(access.read)
                write = None if access.write is None else placed(access.write)
                order = _order_of(access, placed)
            else:
                flags = _flags(self._callees.direction(call, i))
                touch = Touch((None,) * len(arg.type.shape), False)
                read, write = (touch if flags & READ else None), (touch if flags & WRITE else None)
                order = touch.dims
            self._use(node, arg, direction in _LOOKS_UP, direction in _REGISTERS, read, write, order)
        predicate = call.predicate if type(call) is Submit else call.attrs.get("predicate")
        for e in walk(predicate) if predicate is not None else ():
            if isinstance(e, Var) and isinstance(e.type, TensorType):
                whole = Touch((None,) * len(e.type.shape), False)  # read when the task would start
                self._use(node, e, False, False, whole, None, None)
        for e in _edges_of(call):
            if isinstance(e, Var):
                node.deps += self._ids.get(e, ())

    def _host(self, call: Any) -> None:
        """An op that the orchestrator runs itself: it waits for tasks that have the tensor as an argument."""
        definition = REGISTRY.get(call.op.name)
        tensors = [arg for arg in call.args if isinstance(arg.type, TensorType)]
        if definition is None:
            if tensors:
                self._modelled = False
            return
        node = None
        for index, effect, _ in touched_operands(definition, call.kwargs, len(call.args)):
            arg = call.args[index]
            if not isinstance(arg.type, TensorType) or (definition.alias is Alias.VIEW and index == 0):
                continue
            if node is None:
                node = self._add(call)
                node.host = True
            touch = Touch((None,) * len(arg.type.shape), False)
            writes = effect.name != "Read"
            self._use(node, arg, True, writes, touch, touch if writes else None, touch.dims)

    def _add(self, call: Any) -> _Node:
        node = _Node(len(self._nodes), call, self._loops, self._branch, self._manual)
        self._nodes.append(node)
        return node

    def _use(
        self,
        node: _Node,
        arg: Any,
        looks: bool,
        registers: bool,
        read: Touch | None,
        write: Touch | None,
        order: Dims | None,
    ) -> None:
        if not isinstance(arg, Var):
            self._modelled = False
            return
        place = self._box(arg)
        roots = [place[0]] if place is not None else self._names.candidates(arg)
        if not roots:
            self._modelled = False
        for root in roots:
            rank = len(root.type.shape)  # type: ignore[attr-defined]
            base = place[1] if place is not None else (None,) * rank
            sure = place is not None
            use = _Use(node, root, sure, looks, registers, _seen(base, read), _seen(base, write))
            if place is not None and place[2] and order is not None and len(order) == rank:
                use.order = _seen(base, Touch(order, False))
            node.uses.append(use)
            self._by_root.setdefault(root, []).append(use)

    def _box(self, var: Var) -> tuple[Var, Dims, bool] | None:
        """The buffer that a variable shows a part of, which, and whether it is just that; None if it may be one buffer
        or another."""
        name = self._names.name(var)
        chain: list[tuple[Var, Any]] = []
        while name is not None and name not in self._boxes:
            call = self._names.views.get(name)
            if call is None:
                self._boxes[name] = (name, (None,) * len(name.type.shape), True)  # type: ignore[attr-defined]
                break
            chain.append((name, call))
            name = self._names.name(call.args[0])
        found = None if name is None else self._boxes[name]
        for view, call in reversed(chain):
            if found is not None:
                dims = _slice_of(found[1], call, self._form)
                known = found[2] and dims is not None
                found = found[0], dims or (None,) * len(found[1]), known
            self._boxes[view] = found
        return found

    # --- pairs --------------------------------------------------------------------------------------------------------

    def _unordered_of(self, uses: list[_Use]) -> Iterator[tuple[int, int, Overwrite]]:
        """Pairs of one buffer."""
        if all(use.write is None for use in uses):
            return
        manual_dep = uses[0].root in self._untracked
        # By what the rules make of them: most pairs of kinds are ordered whatever the boxes are.
        kinds: dict[Any, list[_Use]] = {}
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

    def _compare(self, one: _Use, other: _Use) -> Overwrite | None:
        """The first way in which ``other`` may come behind ``one``, touch the same, and not be ordered."""
        common = _common(one.node, other.node)
        ways: list[int | None] = []
        if one.node.number < other.node.number and not _apart(one.node, other.node):
            ways.append(None)
        # A buffer that is made in a loop is another one in each iteration.
        made = len(self._depth.get(one.root, ())) if one.sure and other.sure else 0
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
                return Overwrite(one.node.call, other.node.call, one.root, reads, loop)
        return None

    def _disjoint(self, a: Dims, b: Dims, first: _Node, second: _Node, way: int | None, common: int) -> bool:
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

    def _meet(self, a: Dims, b: Dims, first: _Node, second: _Node, way: int | None, common: int) -> bool:
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

    def _bounds(
        self, later: Affine, earlier: Affine, first: _Node, second: _Node, way: int | None, common: int
    ) -> Range:
        """The least and the largest difference of a form in an instance of ``second`` and one in one of ``first``.

        ``way``: the loop whose later iteration the second belongs to; None: the same iteration of all common loops.
        """
        same = common if way is None else way  # so many loops are at the same iteration
        low: int | None = later.const - earlier.const
        high: int | None = low
        for key in {**earlier.terms, **later.terms}:
            a, b = earlier.terms.get(key, 0), later.terms.get(key, 0)
            depth = self._depth.get(key, ())
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
        depth = self._depth.get(key, ())
        if depth and _is_var_of(key, depth[-1]):
            return depth[-1].range
        return UNBOUNDED

    # --- chains of edges ----------------------------------------------------------------------------------------------

    def _has_path(self, first: _Node, second: _Node, way: int | None) -> bool:
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

    def _steps(self, node: _Node, behind: _Node, place: int, level: int, way: int | None) -> Iterator[int]:
        """Where edges from one launch to another lead: the same iteration, the next one, all later ones."""
        if self._is_edge(node, behind, level, None):
            yield place
        if way is not None and place == _HERE:
            if self._is_edge(node, behind, level, way):
                yield _LATER
            if any(named is node and before for named, before in behind.deps) and _common(node, behind) == level:
                yield _NEXT

    def _arrives(self, node: _Node, place: int, level: int, way: int | None) -> bool:
        """Whether a chain of edges that has come so far is one to all instances that count."""
        if way is None or place == _LATER:
            return way is None or place == _LATER
        return place == _NEXT and self._is_edge(node, node, level, way)

    def _neighbours(self, node: _Node) -> Iterator[_Node]:
        """Nodes that may have an edge from this one: users of what it registers, and those that name it."""
        seen: set[_Node] = set()
        for use in node.uses:
            if use.registers and use.sure:
                for other in self._by_root[use.root][: _STEPS * 4]:
                    if other.looks and other.node not in seen:
                        seen.add(other.node)
                        yield other.node
        for follower in self._named.get(node, ()):
            if follower not in seen:
                seen.add(follower)
                yield follower

    def _is_edge(self, one: _Node, other: _Node, level: int, way: int | None) -> bool:
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
            if not use.registers or not use.sure or use.root in self._untracked:
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


def _edges_of(call: Any) -> list[Expr]:
    """The expressions that name the tasks that a launch waits for."""
    found: list[Expr] = list(call.deps) if type(call) is Submit else []
    for key in ("manual_dep_edges", "compiler_manual_dep_edges"):
        found += call.attrs.get(key, ())
    return found


def _flags(direction: Any) -> int:
    return {"In": READ, "Out": WRITE}.get(direction.name, READ | WRITE)


def _seen(base: Dims, touch: Touch | None) -> Dims | None:
    """A part of a part of a buffer, in the buffer's dimensions."""
    if touch is None:
        return None
    if len(base) != len(touch.dims):
        return (None,) * len(base)
    found: list[Span | None] = []
    for a, b in zip(base, touch.dims, strict=True):
        if a is None or b is None:
            found.append(b if a is None else a)
        else:
            found.append(Span(a.low.plus(b.low), b.size))
    return tuple(found)


def _slice_of(base: Dims, call: Any, form: Any) -> Dims | None:
    """The part of a part that a slice shows; None if that is not known."""
    if call.op.name != "tensor.slice" or len(call.args) not in (3, 4):
        return None
    shape, offsets = call.args[1], call.args[2]
    if type(shape) is not MakeTuple or type(offsets) is not MakeTuple:
        return None
    if not len(shape.elements) == len(offsets.elements) == len(base):
        return None
    dims: list[Span | None] = []
    for offset, extent in zip(offsets.elements, shape.elements, strict=True):
        low, size = form(offset), form(extent)
        if low is None or size is None:
            return None
        dims.append(Span(low, size))
    return _seen(base, Touch(tuple(dims), False))


def _order_of(access: Access, placed: Callable[[Touch], Touch]) -> Dims | None:
    """The box that the argument of a launch has when it runs, if that is certain.

    It is the numbers that count there: what has no form here may have a place then.
    """
    both = access.touched
    if both is None:
        return None
    parts = [touch for touch in (access.read, access.write) if touch is not None]
    dims = placed(both).dims
    for axis, span in enumerate(dims):
        if span is None and all(part.dims[axis] is not None for part in parts):
            return None
    return dims


def _kind(use: _Use) -> tuple[Any, ...]:
    node = use.node
    return use.looks, use.registers, use.read is None, use.write is None, node.manual, node.host, node.opaque


def _conflict(one: _Use, other: _Use) -> bool:
    return (one.write is not None) or (one.read is not None and other.write is not None)


def _is_ordered(one: _Use, other: _Use, manual_dep: bool) -> bool:
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


def _common(one: _Node, other: _Node) -> int:
    """How many loops are around both."""
    count = 0
    for a, b in zip(one.loops, other.loops, strict=False):
        if a is not b:
            break
        count += 1
    return count


def _apart(one: _Node, other: _Node) -> bool:
    """Whether two nodes stand in different branches of one branch statement."""
    for (a, side), (b, other_side) in zip(one.branch, other.branch, strict=False):
        if a is not b:
            return False
        if side != other_side:
            return True
    return False


def _is_var_of(key: Any, loop: _Loop) -> bool:
    return type(loop.stmt) is ForStmt and loop.stmt.loop_var is key


def _distance(loop: _Loop) -> Range:
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


class Narrowing:
    """Which launches of a program may be ordered by the parts that they touch."""

    def __init__(self, program: Program) -> None:
        self.footprints = Footprints(callees_of(program))
        self._called = {
            node.op.name
            for function in program.functions.values()
            for node in walk(function.body)
            if type(node) in (Call, Submit) and type(node.op) is GlobalVar
        }
        self._known: dict[Function, bool] = {}

    def allows(self, function: Function) -> bool:
        """Whether the launches of an orchestration may. Not those of one that another function calls: it may have
        started tasks that are not seen here."""
        known = self._known.get(function)
        if known is None:
            known = function.name not in self._called and Orders(function, self.footprints).narrowable
            self._known[function] = known
        return known


_NARROWING: WeakKeyDictionary[Program, Narrowing] = WeakKeyDictionary()


def narrowing_of(program: Program) -> Narrowing:
    """The answers for a program; kept as long as it lives."""
    found = _NARROWING.get(program)
    if found is None:
        found = _NARROWING[program] = Narrowing(program)
    return found


__all__ = ["Narrowing", "Orders", "Overwrite", "narrowing_of", "unordered_overwrites"]
