"""The launches of an orchestration: where each stands, which tasks it names, and which part of which buffer it touches.

One pass over the function, in the order of its source. Parts are boxes of affine forms over the loop variables and
parameters (:mod:`.touch`), those of a kernel placed at its arguments (:mod:`.access`). :mod:`.overwrites` asks which of
the launches are ordered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir.enums import ArgDirection, ForKind, FunctionType, ParamDirection, is_incore_type
from ..ir.expr import Call, Expr, GlobalVar, Submit, TupleGetItemExpr, Var
from ..ir.operands import is_launch
from ..ir.program import Function
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
from ..ir.type import TASK_ID_TYPE, ScalarType, TensorType
from ..ops.definition import Alias
from ..ops.footprint import touched_operands
from ..ops.registry import REGISTRY
from .access import Access, Footprints, assigned_twice, placed_at
from .affine import UNBOUNDED, Affine, Range, form_of
from .buffers import FLAGS_OF_DIRECTION, READ, WRITE
from .callees import parameter_index
from .constants import trip_count
from .escapes import leaves_its_loop
from .task_marks import EDGES
from .touch import Dims, Touch, elements, spans, within

_LOOKS_UP = frozenset((ArgDirection.Input, ArgDirection.InOut))
_REGISTERS = frozenset((ArgDirection.InOut, ArgDirection.OutputExisting, ArgDirection.Output))
_SCOPES: frozenset[type] = frozenset(SCOPE_CLASSES)
_LAUNCHED = frozenset((FunctionType.Group, FunctionType.Spmd))


class Loop:
    """``range``: the values of its variable, as far as they are constant; ``step``; ``trips``."""

    __slots__ = ("range", "step", "stmt", "trips")

    def __init__(self, stmt: Any) -> None:
        self.stmt = stmt
        self.range: Range = UNBOUNDED
        self.step: int | None = None
        self.trips: int | None = None


class Node:
    """A launch, or an op of the orchestrator: where it stands. ``branch``: the branches around it."""

    __slots__ = ("branch", "call", "deps", "host", "loops", "manual", "number", "opaque", "uses")

    def __init__(self, number: int, call: Any, loops: tuple[Loop, ...], branch: tuple[Any, ...], manual: bool) -> None:
        self.number = number
        self.call = call
        self.loops = loops
        self.branch = branch
        self.manual = manual
        self.host = False
        self.opaque = False
        self.uses: list[Use] = []
        self.deps: list[tuple[Node, bool]] = []  # launches that it names: (launch, of the iteration before)


class Use:
    """What a node does to one buffer. ``sure``: it is this buffer for certain. ``order``: the box that its argument
    has for the runtime, if that is known: there a dimension without a stretch is whole for certain; ``read``/``write``:
    a box that holds what is really touched."""

    __slots__ = ("looks", "node", "order", "read", "registers", "root", "sure", "write")

    def __init__(
        self, node: Node, root: Var, sure: bool, looks: bool, registers: bool, read: Dims | None, write: Dims | None
    ) -> None:
        self.node = node
        self.root = root
        self.sure = sure
        self.looks = looks
        self.registers = registers
        self.read = read
        self.write = write
        self.order: Dims | None = None


class LaunchModel:
    """What an orchestration launches, in the order of its source.

    ``nodes``: its launches and ops; ``by_root``: what they do to each buffer. ``depth``: the loops that a variable is
    defined in. ``ids``: what each variable that stands for launches stands for: (launch, of the iteration before), and
    ``home`` the branches that it is defined in; a tensor that a loop gives stands for the launches of all iterations.
    ``untracked``: tensors made with ``manual_dep``. ``complete``: whether all that runs is known here.
    ``leaves``: whether a loop may be left early, so that what stands behind may not run.
    """

    def __init__(self, function: Function, footprints: Footprints) -> None:
        self.complete = True
        self.leaves = False
        self.nodes: list[Node] = []
        self.by_root: dict[Var, list[Use]] = {}
        self.depth: dict[Any, tuple[Loop, ...]] = {}
        self.untracked: set[Var] = set()
        self._footprints = footprints
        self._callees = footprints.callees
        self._names = footprints.callees.names(function)
        self._loops: tuple[Loop, ...] = ()
        self._branch: tuple[Any, ...] = ()
        self._manual = False
        self._forms: dict[Var, Affine] = {}
        self.ids: dict[Any, list[tuple[Node, bool]]] = {}
        self.home: dict[Any, tuple[Any, ...]] = {}
        self._twice = assigned_twice(function)
        self._allocates = False
        self._boxes: dict[Var, tuple[Var, Dims, bool] | None] = {}
        for param in function.params:
            self.depth[param] = ()
            for extent in getattr(param.type, "shape", ()):
                if type(extent) is Var:
                    self.depth[extent] = ()
        if not all(isinstance(var.type, ScalarType) for var in self._twice):
            self.complete = False  # not in SSA form
        self._stmt(function.body)
        if self._allocates and any(node.manual for node in self.nodes):
            self.complete = False  # a manual task does not wait for who made its argument
        self.named: dict[Node, list[Node]] = {}
        for node in self.nodes:
            for named, _ in node.deps:
                self.named.setdefault(named, []).append(node)

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
            self._launch_without_result(stmt.expr)
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
            self.complete = False
            self.leaves = True
        elif cls is InlineStmt or cls in _SCOPES:
            self.complete = False  # a kernel that is not outlined yet

    def _loop(self, stmt: Any) -> None:
        loop = Loop(stmt)
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
        first = len(self.nodes)
        outer, self._loops = self._loops, (*self._loops, loop)
        branch, self._branch = self._branch, (*self._branch, (stmt, 0))
        if type(stmt) is ForStmt:
            self.depth[stmt.loop_var] = self._loops
        else:
            self._expr(stmt.condition)
        self._stmt(stmt.body)
        self._loops, self._branch = outer, branch
        self._results(stmt)
        # An iteration that is left early hands on other ids than its end does.
        yielded = get_last_yield_stmt(stmt.body) if not leaves_its_loop(stmt.body) else None
        if yielded is not None:
            carries = zip(stmt.iter_args, stmt.return_vars, yielded.value, strict=False)
            for arg, var, value in carries:
                if isinstance(value, Var) and value in self.ids:
                    made = [node for node, before in self.ids[value] if not before]
                    self._name(arg, [(node, True) for node in made], (*branch, (stmt, 0)))
                    self._resolve_late(arg, first)
                    if isinstance(var.type, TensorType) and self._can_collect(loop):
                        self._name(var, [(node, False) for node in made if node.loops == (*outer, loop)], branch)

    def _can_collect(self, loop: Loop) -> bool:
        """Whether a result of a loop can stand for the tasks of all iterations: how many there are is known, or a
        parallel loop that is in no other one counts them."""
        if loop.trips is not None:
            return loop.trips > 0
        return not self._loops and type(loop.stmt) is ForStmt and loop.stmt.kind is ForKind.Parallel

    def _name(self, var: Any, launches: list[tuple[Node, bool]], home: tuple[Any, ...]) -> None:
        if launches:
            self.ids[var] = launches
            self.home[var] = home

    def _launch_without_result(self, call: Any) -> None:
        """What it writes stands for it."""
        if is_launch(call) and type(call) is Call:
            for i, arg in enumerate(call.args):
                if isinstance(arg, Var) and arg not in self.ids and isinstance(arg.type, TensorType):
                    if self._callees.direction(call, i) is not ParamDirection.In:
                        self._name(arg, [(self.nodes[-1], False)], self._branch)

    def _ids_of_branch(self, stmt: IfStmt) -> None:
        """A result is the id of a launch in a branch exactly when that launch has run."""
        for side, body in enumerate((stmt.then_body, stmt.else_body)):
            last = get_last_yield_stmt(body)
            for var, value in zip(stmt.return_vars, last.value if last is not None else (), strict=False):
                for node, before in self.ids.get(value, ()) if var.type is TASK_ID_TYPE else ():
                    if any(at is stmt and way == side for at, way in node.branch):
                        self._name(var, [*self.ids.get(var, ()), (node, before)], self._branch)

    def _results(self, stmt: Any) -> None:
        for var in stmt.return_vars:
            self.depth[var] = self._loops

    def _resolve_late(self, arg: Any, first: int) -> None:
        """Launches of the body that named a carried id before it was known which one it is."""
        for node in self.nodes[first:]:
            for e in _edges_of(node.call):
                if e is arg:
                    node.deps += self.ids[arg]

    def _define(self, var: Var, value: Any) -> None:
        if is_launch(value):
            self._name(var, [(self.nodes[-1], False)], self._branch)  # it has just been added
        else:
            source = value.tuple if type(value) is TupleGetItemExpr else value
            if isinstance(source, Var) and source in self.ids:
                self._name(var, self.ids[source], self._branch)
        if isinstance(var.type, TensorType):
            self.depth[var] = self._loops
            if type(value) is Call and value.kwargs.get("manual_dep"):
                self.untracked.add(var)
        elif isinstance(var.type, ScalarType):
            form = self._form(value)
            self.depth[var] = self._loops
            if form is not None:
                self._forms[var] = form

    def _form(self, e: Any) -> Affine | None:
        return form_of(e, self._form_of_var)

    def _form_of_var(self, var: Var) -> Affine | None:
        form = self._forms.get(var)
        if form is not None or var in self._twice or var not in self.depth:
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
            self.complete = False  # ordered by the rules of the source
            return
        self._allocates = self._allocates or (function is not None and len(call.args) < len(function.params))
        overrides = call.attrs.get("arg_direction_overrides", ())
        footprint = self._footprints.of(function) if function is not None and not node.opaque else None
        placed = placed_at(function, call, self._form) if function is not None else None
        for i, arg in enumerate(call.args):
            if not isinstance(arg.type, TensorType):
                continue
            index = parameter_index(function.params, len(call.args), i) if function is not None else None
            access = footprint[index] if footprint is not None and index is not None else None
            direction = ArgDirection.NoDep if i in overrides else directions[i]
            if access is not None and placed is not None:
                read = None if access.read is None else placed(access.read)
                write = None if access.write is None else placed(access.write)
                order = _order_of(access, placed)
            else:
                flags = FLAGS_OF_DIRECTION[self._callees.direction(call, i)]
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
                node.deps += self.ids.get(e, ())

    def _host(self, call: Any) -> None:
        """An op that the orchestrator runs itself: it waits for tasks that have the tensor as an argument."""
        definition = REGISTRY.get(call.op.name)
        tensors = [arg for arg in call.args if isinstance(arg.type, TensorType)]
        if definition is None:
            if tensors:
                self.complete = False
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

    def _add(self, call: Any) -> Node:
        node = Node(len(self.nodes), call, self._loops, self._branch, self._manual)
        self.nodes.append(node)
        return node

    def _use(
        self,
        node: Node,
        arg: Any,
        looks: bool,
        registers: bool,
        read: Touch | None,
        write: Touch | None,
        order: Dims | None,
    ) -> None:
        if not isinstance(arg, Var):
            self.complete = False
            return
        place = self._box(arg)
        roots = [place[0]] if place is not None else self._names.candidates(arg)
        if not roots:
            self.complete = False
        for root in roots:
            rank = len(root.type.shape)  # type: ignore[attr-defined]
            base = place[1] if place is not None else (None,) * rank
            sure = place is not None
            use = Use(node, root, sure, looks, registers, _seen(base, read), _seen(base, write))
            if place is not None and place[2] and order is not None and len(order) == rank:
                use.order = _seen(base, Touch(order, False))
            node.uses.append(use)
            self.by_root.setdefault(root, []).append(use)

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


# --- helpers ----------------------------------------------------------------------------------------------------------


def _edges_of(call: Any) -> list[Expr]:
    """The expressions that name the tasks that a launch waits for."""
    found: list[Expr] = list(call.deps) if type(call) is Submit else []
    for key in ("manual_dep_edges", EDGES):
        found += call.attrs.get(key, ())
    return found


def _seen(base: Dims, touch: Touch | None) -> Dims | None:
    """A part of a part of a buffer, in the buffer's dimensions."""
    if touch is None:
        return None
    return within(base, touch.dims) if len(base) == len(touch.dims) else (None,) * len(base)


def _slice_of(base: Dims, call: Any, form: Any) -> Dims | None:
    """The part of a part that a slice shows; None if that is not known."""
    if call.op.name != "tensor.slice" or len(call.args) not in (3, 4):
        return None
    extents, offsets = elements(call.args[1]), elements(call.args[2])
    if extents is None or offsets is None or not len(extents) == len(offsets) == len(base):
        return None
    dims = spans(offsets, extents, form)
    return None if None in dims else within(base, dims)


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


__all__ = ["LaunchModel", "Loop", "Node", "Use"]
