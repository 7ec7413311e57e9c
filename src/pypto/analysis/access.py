"""Which part of each tensor parameter a kernel reads, and which it writes.

A part is a box: in each dimension an affine form of the kernel's scalar parameters (and of the extents of its tensors,
and of the block index) says where it begins, and another how far it goes; or a dimension is touched as a whole. All
accesses of a parameter become one box, which holds them all; ``exact`` says that it is touched entirely in every run
of the kernel. What is read and written comes from the definitions of the ops: their effects and their windows. Of
calls of other functions it is found in the same way, so a wrapper touches what the kernels inside touch.

Nothing is guessed: a place that is computed in another way, a view of another shape, an op that is not known, a kernel
whose text is elsewhere: then it is the whole tensor.

:class:`Footprints` is the answer for the functions of a program; :func:`touched_view` says it in the terms of a caller.
Cost: linear; of a kernel that calls no other function the answer is kept for as long as the function lives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ..ir.dtype import DataType
from ..ir.enums import ArgEffect, FunctionType, is_incore_type
from ..ir.expr import Add, Call, ConstInt, Expr, GlobalVar, MakeTuple, Mul, Submit, Var
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
    SeqStmts,
    SplitAivScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from ..ir.tree import walk, walk_stmts
from ..ir.type import ScalarType, ShapedType, TensorType
from ..ops.definition import OpDef
from ..ops.footprint import touched_operands
from ..ops.registry import REGISTRY
from .affine import BLOCK, Affine, form_of
from .buffers import READ, WRITE
from .callees import Callees, parameter_index
from .constants import trip_count
from .touch import Dims, Span, Touch, elements, run_over, same_dims, spans, substituted, window_box, within


class Access:
    """What a kernel does to one tensor parameter: the part that it reads, and the part that it writes, if any."""

    __slots__ = ("parameter", "read", "write")

    def __init__(self, parameter: int, read: Touch | None, write: Touch | None) -> None:
        self.parameter = parameter
        self.read = read
        self.write = write

    @property
    def touched(self) -> Touch | None:
        """All of it; None if it is not touched at all."""
        if self.read is None or self.write is None:
            return self.read or self.write
        return self.read.joined(self.write, True)

    def __repr__(self) -> str:
        return f"Access({self.parameter}, read={self.read}, write={self.write})"


# One entry a parameter; None for what is no plain tensor. The whole is None if nothing is known of the function.
Footprint = tuple[Access | None, ...]
_Key = tuple[int, int]  # parameter, READ or WRITE

_KEPT: WeakKeyDictionary[Function, Footprint | None] = WeakKeyDictionary()
_WRAPPERS = frozenset((FunctionType.Group, FunctionType.Spmd))
# Kernels of which the text does not say all, or that run in another way than it reads.
_OPAQUE_ATTRS = ("external_source", "deferred_completion_waiter", "split_aiv")


class Footprints:
    """The footprints of the kernels of a program."""

    def __init__(self, callees: Callees) -> None:
        self.callees = callees
        self._found: dict[Function, Footprint | None] = {}

    def of(self, function: Function) -> Footprint | None:
        """What a kernel, or a wrapper of kernels, touches; None if it may be anything."""
        if function in self._found:
            return self._found[function]
        if function in _KEPT:
            return _KEPT[function]
        self._found[function] = None  # a function that calls itself
        kernel = _Kernel(function, self) if _is_readable(function) else None
        found = kernel.footprint() if kernel is not None else None
        self._found[function] = found
        if kernel is None or not kernel.calls:
            _KEPT[function] = found
        return found


def _is_readable(function: Function) -> bool:
    kind = function.func_type
    if not (is_incore_type(kind) or kind in _WRAPPERS):
        return False
    return not any(function.attrs.get(key) for key in _OPAQUE_ATTRS)


class _Place:
    """Where a tensor variable of a kernel lies: in a parameter, from these offsets on (None: somewhere in it)."""

    __slots__ = ("dims", "parameter")

    def __init__(self, parameter: int, dims: Dims | None) -> None:
        self.parameter = parameter
        self.dims = dims


class _Kernel:
    """One walk over a kernel. Accesses are kept for each loop that is open, until it is left: then its variable runs
    over its range, and what is touched joins that of the loop outside."""

    def __init__(self, function: Function, footprints: Footprints) -> None:
        self.calls = False
        self._function = function
        self._footprints = footprints
        self._names = footprints.callees.names(function)
        self._positions = {param: i for i, param in enumerate(function.params)}
        self._places: dict[Var, _Place] = {}
        self._forms: dict[Var, Affine] = {}
        self._touched: dict[_Key, Touch] = {}
        self._unclear = 0  # depth in regions that run in another way than they read
        self._leaves = False
        self._anything = False
        self._twice = assigned_twice(function)
        for param in function.params:
            if isinstance(param.type, ScalarType):
                self._own(param)
            elif isinstance(param.type, ShapedType):
                for extent in param.type.shape:
                    if type(extent) is Var:
                        self._own(extent)
        self._free = {*self._forms, BLOCK}

    def footprint(self) -> Footprint | None:
        self._leaves = any(
            type(stmt) in (BreakStmt, ContinueStmt) for stmt in walk_stmts(self._function.body)
        ) or _returns_early(self._function.body)
        if not all(isinstance(var.type, ScalarType) for var in self._twice):
            return None  # not in SSA form
        self._stmt(self._function.body)
        if self._anything:
            return None
        found: list[Access | None] = []
        for i, param in enumerate(self._function.params):
            if type(param.type) is not TensorType or not _is_plain(param.type):
                found.append(None)
                continue
            found.append(Access(i, self._closed(i, READ), self._closed(i, WRITE)))
        return tuple(found)

    def _closed(self, parameter: int, flag: int) -> Touch | None:
        """A box in terms of what a caller knows."""
        touch = self._touched.get((parameter, flag))
        if touch is None:
            return None
        dims = tuple(
            span if span is not None and all(self._free.issuperset(form.terms) for form in span.forms()) else None
            for span in touch.dims
        )
        return Touch(dims, touch.exact and not self._leaves and same_dims(dims, touch.dims))

    # --- scalars ------------------------------------------------------------------------------------------------------

    def _own(self, var: Var) -> None:
        if var not in self._twice:
            self._forms[var] = Affine(0, {var: 1})

    def _form(self, e: Any) -> Affine | None:
        return form_of(e, self._forms.get)

    # --- statements ---------------------------------------------------------------------------------------------------

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
        elif cls is ForStmt:
            self._for(stmt)
        elif cls is IfStmt:
            self._if(stmt)
        elif cls is WhileStmt:
            self._expr(stmt.condition)
            outer = self._enter()
            self._stmt(stmt.body)
            self._leave(outer, False)
        elif cls is InlineStmt:
            self._anything = True
        elif cls is YieldStmt or cls is ReturnStmt:
            for value in stmt.value:
                self._expr(value)
        elif cls in _SCOPES:
            self._unclear += cls is SplitAivScopeStmt
            self._stmt(stmt.body)
            self._unclear -= cls is SplitAivScopeStmt

    def _define(self, var: Var, value: Any) -> None:
        if isinstance(var.type, ScalarType):
            form = self._form(value) if var.type.dtype.is_int_ and var not in self._twice else None
            if form is not None:
                self._forms[var] = form
        elif isinstance(var.type, TensorType) and self._names.views.get(var) is value:
            place = self._view(value)
            if place is not None:
                self._places[var] = place

    def _for(self, loop: ForStmt) -> None:
        for e in (loop.start, loop.stop, loop.step):
            self._expr(e)
        self._own(loop.loop_var)
        outer = self._enter()
        self._stmt(loop.body)
        start, stop, step = (self._form(e) for e in (loop.start, loop.stop, loop.step))
        by = step.value if step is not None else None
        sure = False
        if start is None or stop is None or not by:
            self._spread(loop.loop_var, None)
        else:
            length = stop.plus(start, -1).value
            trips = None if length is None else trip_count(0, length, by)
            sure = bool(trips)
            if trips == 0:
                self._touched.clear()
            elif trips is not None:
                ends = (start, start.shifted(by * (trips - 1)))
                self._spread(loop.loop_var, ends if by > 0 else ends[::-1], by)
            else:
                ends = (start, stop.shifted(-1)) if by > 0 else (stop.shifted(1), start)
                self._spread(loop.loop_var, ends)
        self._leave(outer, sure)

    def _spread(self, var: Var, ends: tuple[Affine, Affine] | None, step: int = 0) -> None:
        """Let a variable run over a range in the boxes of the loop at hand. ``step``: by which, if that is certain."""
        for key, touch in self._touched.items():
            self._touched[key] = run_over(touch, var, ends, step)

    def _if(self, stmt: IfStmt) -> None:
        self._expr(stmt.condition)
        outer = self._enter()
        self._stmt(stmt.then_body)
        one, self._touched = self._touched, {}
        if stmt.else_body is not None:
            self._stmt(stmt.else_body)
        other = self._touched
        joined = {}
        for key in {**one, **other}:
            a, b = one.get(key), other.get(key)
            if a is not None and b is not None:
                joined[key] = a.joined(b, False)
            else:
                only = a if a is not None else b
                assert only is not None
                joined[key] = Touch(only.dims, False)
        self._touched = joined
        self._leave(outer, True)

    def _enter(self) -> dict[_Key, Touch]:
        outer, self._touched = self._touched, {}
        return outer

    def _leave(self, outer: dict[_Key, Touch], sure: bool) -> None:
        inner, self._touched = self._touched, outer
        for key, touch in inner.items():
            self._add(key, touch if sure else Touch(touch.dims, False))

    def _add(self, key: _Key, touch: Touch) -> None:
        known = self._touched.get(key)
        self._touched[key] = touch if known is None else known.joined(touch, True)

    # --- expressions --------------------------------------------------------------------------------------------------

    def _expr(self, e: Any) -> None:
        cls = type(e)
        if cls is Call or cls is Submit:
            self._call(e)
            for arg in e.args:
                if type(arg) in _NESTING:
                    self._expr_inside(arg)
        elif cls not in _PLAIN:
            self._expr_inside(e)

    def _expr_inside(self, e: Any) -> None:
        for node in walk(e):
            if type(node) in (Call, Submit):
                self._call(node)

    def _call(self, call: Any) -> None:
        if type(call.op) is GlobalVar:
            self._launch(call)
            return
        definition = REGISTRY.get(call.op.name)
        if definition is None:
            for arg in call.args:
                self._touch_all(arg, READ | WRITE)
            return
        for index, effect, _ in touched_operands(definition, call.kwargs, len(call.args)):
            arg = call.args[index]
            if isinstance(arg.type, TensorType):
                flags = _FLAGS[effect]
                self._touch(arg, flags, self._window(definition, index, call))

    def _launch(self, call: Any) -> None:
        """A call of another function: its accesses, in terms of the arguments."""
        self.calls = True
        function = self._footprints.callees.of(call)
        footprint = self._footprints.of(function) if function is not None else None
        if function is None or footprint is None:
            for arg in call.args:
                self._touch_all(arg, READ | WRITE)
            return
        values = values_of(function, call, self._form)
        if core_num_of(call) is not None:
            values.pop(BLOCK, None)
        for i, arg in enumerate(call.args):
            if not isinstance(arg.type, TensorType):
                continue
            index = parameter_index(function.params, len(call.args), i)
            access = footprint[index] if index is not None else None
            if access is None:
                self._touch_all(arg, READ | WRITE)
                continue
            for flag, touch in ((READ, access.read), (WRITE, access.write)):
                if touch is not None:
                    self._touch(arg, flag, substituted(touch, values.get))

    # --- where --------------------------------------------------------------------------------------------------------

    def _window(self, definition: OpDef, index: int, call: Any) -> Touch:
        """The part of an operand that an op touches, in the operand's own dimensions."""
        rank = len(call.args[index].type.shape)
        window = definition.windows.get(index)
        if window is None:
            return Touch((None,) * rank, True)
        found = window_box(window, call, rank, self._form)
        if found is None:
            return Touch((None,) * rank, False)
        partly = any(
            isinstance(call.args[i].type, ShapedType) and call.args[i].type.valid_extents is not call.args[i].type.shape
            for i in window.extents
            if i < len(call.args)
        )
        return Touch(found, not partly and all(span is not None for span in found))

    def _view(self, call: Any) -> _Place | None:
        """The place of a view; None for one of a tensor that the kernel makes."""
        base = self._place(call.args[0])
        if base is None or base.dims is None:
            return base
        if call.op.name != "tensor.slice" or len(call.args) > 4 or len(call.args[1:3]) != 2:
            return _Place(base.parameter, None)
        shape, offsets = elements(call.args[1]), elements(call.args[2])
        if shape is None or offsets is None or not len(shape) == len(offsets) == len(base.dims):
            return _Place(base.parameter, None)
        return _Place(base.parameter, within(base.dims, spans(offsets, shape, self._form)))

    def _place(self, value: Any) -> _Place | None:
        """Of a value that lies in one parameter for certain."""
        name = self._names.name(value)
        if name is None:
            return None
        index = self._positions.get(name)
        if index is not None:
            return _Place(index, (None,) * len(name.type.shape))  # type: ignore[attr-defined]
        return self._places.get(name)

    def _touch(self, arg: Any, flags: int, touch: Touch) -> None:
        place = self._place(arg)
        if place is None:
            if self._names.name(arg) is None or self._names.viewed(arg) is None:
                self._touch_all(arg, flags)
            return
        kind: Any = self._function.params[place.parameter].type
        dims: Dims = (None,) * len(kind.shape)
        exact = False
        if not self._unclear and place.dims is not None and len(place.dims) == len(touch.dims) == len(dims):
            dims = within(place.dims, touch.dims)
            exact = touch.exact and all(
                span is not None or (a is None and b is None)
                for span, a, b in zip(dims, place.dims, touch.dims, strict=True)
            )
        self._record(place.parameter, flags, Touch(dims, exact))

    def _touch_all(self, arg: Any, flags: int) -> None:
        """All of the parameters that a value may lie in."""
        for node in (arg,) if isinstance(arg, Var) else walk(arg):
            if isinstance(node, Var) and isinstance(node.type, TensorType):
                for root in self._names.candidates(node):
                    index = self._positions.get(root)
                    if index is not None:
                        rank = len(root.type.shape)  # type: ignore[attr-defined]
                        self._record(index, flags, Touch((None,) * rank, False))

    def _record(self, parameter: int, flags: int, touch: Touch) -> None:
        for flag in (READ, WRITE):
            if flags & flag:
                self._add((parameter, flag), touch)


# --- call sites -------------------------------------------------------------------------------------------------------


def core_num_of(call: Any) -> Any:
    """How many blocks a launch has, as it says; None if it says nothing: one, or those of the launch around it."""
    return call.core_num if type(call) is Submit else call.attrs.get("core_num")


def values_of(function: Function, call: Any, form: Callable[[Any], Affine | None]) -> dict[Any, Affine]:
    """What the free variables of a callee's boxes are, as forms of the caller; those of the block index stay."""
    values: dict[Any, Affine] = {BLOCK: Affine(0, {BLOCK: 1})}
    for i, arg in enumerate(call.args):
        index = parameter_index(function.params, len(call.args), i)
        if index is None:
            continue
        param = function.params[index]
        if isinstance(param.type, ScalarType):
            found = form(arg)
            if found is not None:
                values[param] = found
        elif isinstance(param.type, ShapedType) and isinstance(arg.type, ShapedType):
            for extent, given in zip(param.type.shape, arg.type.shape, strict=False):
                if type(extent) is Var and extent not in values:
                    found = form(given)
                    if found is not None:
                        values[extent] = found
    return values


def over_blocks(touch: Touch, blocks: Affine | None) -> Touch:
    """The box that all instances of a launch touch together. ``blocks``: how many there are."""
    count = blocks.value if blocks is not None else None
    ends = None if blocks is None else (Affine(), blocks.shifted(-1))
    return run_over(touch, BLOCK, ends, 1 if count is not None and count > 0 else 0)


def placed_at(function: Function, call: Any, form: Callable[[Any], Affine | None]) -> Callable[[Touch], Touch]:
    """Boxes of a callee in the terms of its caller, for all blocks of the launch."""
    values = values_of(function, call, form)
    core_num = core_num_of(call)
    blocks = Affine(1) if core_num is None else form(core_num)
    return lambda touch: over_blocks(substituted(touch, values.get), blocks)


def touched_view(call: Any, argument: int, footprints: Footprints) -> tuple[list[Expr], list[Expr]] | None:
    """The part of an argument that a launch touches: where it begins and how far it goes, in terms of the caller.

    None if that is the whole tensor, or not known. The box may reach past the end of the tensor where the kernel's
    windows may: who makes a view of it has to cut it. Whether a launch may be ordered by it is another question, which
    :func:`.overwrites.narrowing_of` answers.
    """
    function = footprints.callees.of(call)
    footprint = footprints.of(function) if function is not None else None
    index = parameter_index(function.params, len(call.args), argument) if function is not None else None
    access = footprint[index] if footprint is not None and index is not None else None
    touch = access.touched if access is not None else None
    if touch is None or function is None:
        return None
    box = placed_at(function, call, _caller_form)(touch)
    shape = call.args[argument].type.shape
    if len(shape) != len(box.dims) or all(span is None for span in box.dims):
        return None
    offsets: list[Expr] = []
    extents: list[Expr] = []
    for span, extent in zip(box.dims, shape, strict=True):
        offsets.append(ConstInt(0, DataType.INDEX) if span is None else expression(span.low))
        extents.append(extent if span is None else expression(span.size))
    return offsets, extents


def _caller_form(e: Any) -> Affine | None:
    """Of an expression at a call: its variables stand for themselves."""
    return form_of(e, lambda var: Affine(0, {var: 1}))


def expression(form: Affine) -> Expr:
    """A form of variables as an expression of type INDEX."""
    found: Expr | None = None
    for key, factor in form.terms.items():
        term: Expr = key
        if factor != 1:
            term = Mul(key, ConstInt(factor, DataType.INDEX), DataType.INDEX)
        found = term if found is None else Add(found, term, DataType.INDEX)
    if found is None:
        return ConstInt(form.const, DataType.INDEX)
    return Add(found, ConstInt(form.const, DataType.INDEX), DataType.INDEX) if form.const else found


def box_at(
    access: Access, values: Callable[[Any], int | None], blocks: int, shape: Sequence[int]
) -> list[tuple[int, int]] | None:
    """The elements of an argument of this shape that a launch touches: (first, behind the last) in each dimension.

    ``values``: of scalar parameters and symbolic extents. None if the access says nothing, or of no box of this rank.
    """
    touches = [touch for touch in (access.read, access.write) if touch is not None]
    if not touches or any(len(touch.dims) != len(shape) for touch in touches):
        return None
    found = []
    for axis, extent in enumerate(shape):
        bounds = [_stretch(touch.dims[axis], values, blocks, extent) for touch in touches]
        found.append((max(0, min(low for low, _ in bounds)), min(extent, max(high for _, high in bounds))))
    return found


def _stretch(span: Span | None, values: Callable[[Any], int | None], blocks: int, extent: int) -> tuple[int, int]:
    if span is None:
        return 0, extent
    ends = []
    for block in (0, blocks - 1):
        low = span.low.at(lambda key, block=block: block if key is BLOCK else values(key))  # type: ignore[misc]
        size = span.size.at(lambda key, block=block: block if key is BLOCK else values(key))  # type: ignore[misc]
        if low is None or size is None:
            return 0, extent
        ends.append((low, low + size))
    return min(low for low, _ in ends), max(high for _, high in ends)


# --- helpers ----------------------------------------------------------------------------------------------------------


def assigned_twice(function: Function) -> set[Var]:
    """Variables with more than one definition: none in SSA form."""
    seen: set[Var] = set(function.params)
    twice: set[Var] = set()
    for stmt in walk_stmts(function.body):
        made: Any = ()
        if type(stmt) is AssignStmt:
            made = (stmt.var,)
        elif type(stmt) is ForStmt:
            made = (stmt.loop_var, *stmt.iter_args, *stmt.return_vars)
        elif type(stmt) is WhileStmt:
            made = (*stmt.iter_args, *stmt.return_vars)
        elif type(stmt) is IfStmt:
            made = stmt.return_vars
        for var in made:
            (twice if var in seen else seen).add(var)
    return twice


def _returns_early(body: Stmt) -> bool:
    """Whether there is a return statement that does not end the body."""
    returns = [stmt for stmt in walk_stmts(body) if type(stmt) is ReturnStmt]
    last: Any = body
    while type(last) is SeqStmts or type(last) in _SCOPES:
        if type(last) is SeqStmts:
            if not last.stmts:
                break
            last = last.stmts[-1]
        else:
            last = last.body
    return any(stmt is not last for stmt in returns)


def _is_plain(kind: TensorType) -> bool:
    """Whether indices count elements from the start of the tensor, row by row."""
    view = kind.tensor_view
    return view is None or (not view.stride and view.layout.name == "ND")


_SCOPES: frozenset[type] = frozenset(SCOPE_CLASSES)
_PLAIN: frozenset[type] = frozenset((Var, ConstInt))
_NESTING: frozenset[type] = frozenset((Call, Submit, MakeTuple))
_FLAGS = {ArgEffect.Read: READ, ArgEffect.Write: WRITE, ArgEffect.ReadWrite: READ | WRITE}

__all__ = [
    "Access",
    "Dims",
    "Footprint",
    "Footprints",
    "Span",
    "Touch",
    "assigned_twice",
    "box_at",
    "placed_at",
    "touched_view",
]
