"""Which parameters of a kernel are touched through one window only, and the kernel that is handed just the window.

A window is the box of all elements that a kernel reads and writes of a parameter (:mod:`...analysis.access`): where it
begins is an affine form of the kernel's scalar parameters and symbolic extents in each dimension, its extent a
constant; a dimension may also be whole. All of it is touched in every run, so that a caller who slices it stays
within the tensor exactly where the kernel does. One store or load is a window, and so are several, or a static loop
of at most :data:`TRIPS`, that cover a box together.

The kernel may load from the parameter, store to it, slice it, carry it and return it. In the clone all offsets count
from the start of the window.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...analysis.access import Footprints
from ...analysis.affine import BLOCK, Affine, form_of
from ...analysis.constants import constant_int, static_trip_count
from ...analysis.touch import Dims, Span
from ...ir.dtype import DataType
from ...ir.enums import FunctionType, ParamDirection
from ...ir.expr import Call, ConstInt, Expr, MakeTuple, Var
from ...ir.node import FrozenDict, FrozenList
from ...ir.operands import is_op
from ...ir.program import Function
from ...ir.stmt import ForStmt
from ...ir.substitution import deep_clone
from ...ir.traversal import walk
from ...ir.tree import free_vars
from ...ir.type import ScalarType, TensorType, TupleType
from .retyping import Retyping
from .uses import ARGUMENT, INITIAL, NAMED, RETURNED, YIELDED, Facts
from .window_offsets import ACCESSES, Offsets, offset_of, own_form

WINDOWIZE = "windowize"
# How many places one op may touch, by the loops around it.
TRIPS = 32
# What the task runtime takes: tensors and scalars a task.
TENSORS, SCALARS = 32, 16

_KERNELS = frozenset((FunctionType.InCore, FunctionType.AIC, FunctionType.AIV))
# Kernels of which the text does not say all, or that run in another way than it reads.
_OPAQUE_ATTRS = ("external_source", "deferred_completion_waiter", "split_aiv", "split", "dual_aiv_dispatch")


class Window:
    """The window of one parameter. ``result``: which result of the kernel it is; None for one that is only read."""

    __slots__ = ("accesses", "dims", "names", "param", "result")

    def __init__(self, param: int, dims: Dims, result: int | None, names: list[Var], accesses: list[Call]) -> None:
        self.param = param
        self.dims = dims
        self.result = result
        self.names = names
        self.accesses = accesses

    def shape(self, whole: Sequence[Expr]) -> list[Expr]:
        """Its extents, in a tensor of these."""
        return [
            extent if span is None else ConstInt(span.size.const, DataType.INDEX)
            for span, extent in zip(self.dims, whole, strict=True)
        ]


def is_windowized(function: Function) -> bool:
    """Whether the user asks for windows of a kernel."""
    return bool(function.attrs.get(WINDOWIZE)) and function.func_type in _KERNELS


class KernelWindows:
    """A kernel and the windows of its parameters, by position.

    ``scalars``: scalars of the kernel that callers can compute, with what they are: windows may begin at them.
    """

    def __init__(self, function: Function, footprints: Footprints) -> None:
        offsets = Offsets(function)
        self.function = function = offsets.function
        self.scalars = offsets.scalars
        self.windows: dict[int, Window] = {}
        self._found: dict[tuple[int, ...], Function] = {}
        self._facts = Facts(function, footprints.callees)
        self._returned = footprints.callees.returned_params(function) or ()
        self._forms = scalar_forms(function, self._facts)
        if self._is_open():
            self._loops = _trips_around(function, self._facts)
            self._views = frozenset(self._facts.names.views)
            for access in footprints.of(offsets.lifted) or ():
                window = self._window(access) if access is not None else None
                if window is not None:
                    self.windows[window.param] = window

    def _is_open(self) -> bool:
        function = self.function
        kinds = [param.type for param in function.params]
        tensors = sum(isinstance(kind, TensorType) for kind in kinds)
        scalars = sum(isinstance(kind, ScalarType) for kind in kinds)
        if tensors > TENSORS or scalars > SCALARS or self._facts.uses.opaque:
            return False
        if not function.return_types or any(isinstance(kind, TupleType) for kind in function.return_types):
            return False
        return not any(function.attrs.get(key) for key in _OPAQUE_ATTRS)

    # --- windows ------------------------------------------------------------------------------------------------------

    def _window(self, access: Any) -> Window | None:
        index, touch = access.parameter, access.touched
        function = self.function
        param = function.params[index]
        if touch is None or not touch.exact or param.type.valid_extents is not param.type.shape:
            return None
        dims = tuple(map(_narrower, touch.dims, param.type.shape))
        count = self._returned.count(index)
        written = function.param_directions[index] is not ParamDirection.In
        if all(span is None for span in dims) or count != (1 if written else 0):
            return None
        names = list(self._facts.other_names([param], self._views))
        accesses = self._accesses(param, names)
        if accesses is None:
            return None
        return Window(index, dims, self._returned.index(index) if written else None, names, accesses)

    def _accesses(self, param: Var, names: list[Var]) -> list[Call] | None:
        """The ops that touch a parameter; None if something else is done with it."""
        facts = self._facts
        found: list[Call] = []
        for name in names:
            if facts.names.name(name) is not param or name.type != param.type:
                return None
            for use in facts.uses.of.get(name, ()):
                if use.kind == ARGUMENT:
                    if not _is_access(use) or self._trips(use) > TRIPS:
                        return None
                    found.append(use.node)
                elif use.kind not in (NAMED, INITIAL, YIELDED, RETURNED):
                    return None
        return found

    def _trips(self, use: Any) -> int:
        """How many places an op touches."""
        at = ACCESSES[use.node.op.name][1]
        moving = {key for offset in use.node.args[at].elements for key in self._terms(offset)}
        count = 1
        for var, trips in self._loops.get(self._facts.uses.loop_of[use.stmt], ()):
            if var in moving:
                count *= trips if trips is not None else TRIPS + 1
        return count

    def _terms(self, offset: Any) -> Iterable[Any]:
        form = form_of(offset, self._forms.get)
        return form.terms if form is not None else ()

    # --- clones -------------------------------------------------------------------------------------------------------

    def clone(self, params: tuple[int, ...], name: str) -> Function:
        """The kernel with the windows of these parameters in their place."""
        # Each function has variables of its own.
        return deep_clone(self._rebased(params).replace(name=name))[0]

    def _rebased(self, params: tuple[int, ...]) -> Function:
        found = self._found.get(params)
        if found is None:
            found = self._found[params] = self._rebase(params)
        return found

    def _rebase(self, params: tuple[int, ...]) -> Function:
        windows = [self.windows[i] for i in params]
        function = self.function
        types: dict[Var, TensorType] = {}
        for window in windows:
            kind: Any = function.params[window.param].type
            types.update(dict.fromkeys(window.names, TensorType(window.shape(kind.shape), kind.dtype)))
        rewrite = _Rebase(types, windows, self._forms)
        results = list(function.return_types)
        for window in windows:
            if window.result is not None:
                results[window.result] = types[function.params[window.param]]
        return function.replace(
            params=FrozenList([rewrite.renamed(param) for param in function.params]),
            return_types=FrozenList(results),
            attrs=FrozenDict({key: value for key, value in function.attrs.items() if key != WINDOWIZE}),
            body=rewrite.visit_stmt(function.body),
        )

    def is_closed(self, params: tuple[int, ...]) -> bool:
        """Whether all symbolic extents that the kernel mentions are still bound when these parameters are windows."""
        function = self.function
        bound: set[Var] = set()
        lost: set[Var] = set()
        for i, param in enumerate(function.params):
            kind: Any = param.type
            if not isinstance(kind, TensorType):
                continue
            for axis, extent in enumerate(kind.shape):
                gone = i in params and self.windows[i].dims[axis] is not None
                symbols = [node for node in walk(extent) if isinstance(node, Var)]
                (lost if gone else bound).update(symbols)
        lost -= bound
        return not lost or lost.isdisjoint(free_vars(self._rebased(params).body))


def _narrower(span: Span | None, extent: Any) -> Span | None:
    """A stretch that a caller can slice; None for all of the dimension."""
    if span is None or span.size.value is None or span.size.const < 1 or BLOCK in span.low.terms:
        return None
    return None if span.low.value == 0 and span.size.value == constant_int(extent) else span


def _is_access(use: Any) -> bool:
    call: Any = use.node
    if type(call) is not Call or call.op.name not in ACCESSES:
        return False
    tensor, offsets = ACCESSES[call.op.name]
    places: Any = call.args[offsets]
    if use.index != tensor or type(places) is not MakeTuple or call.kwargs.get("clamp"):
        return False
    return len(places.elements) == len(call.args[tensor].type.shape)  # type: ignore[attr-defined]


def scalar_forms(function: Function, facts: Facts) -> dict[Any, Affine]:
    """The integer scalars of a function as affine forms of those that are not computed in an affine way."""
    forms: dict[Any, Affine] = {}

    def form_of_var(var: Var) -> Affine:
        form = forms.get(var)
        return form if form is not None else own(var)

    def own(var: Var) -> Affine:
        form = forms[var] = own_form(var)
        return form

    for param in function.params:
        if isinstance(param.type, ScalarType):
            own(param)
        for extent in getattr(param.type, "shape", ()):
            if type(extent) is Var:
                own(extent)
    for loop in facts.uses.extent:
        if type(loop) is ForStmt:
            own(loop.loop_var)
    for var, stmt in facts.uses.assigned.items():
        if isinstance(var.type, ScalarType) and var.type.dtype.is_int_:
            form = form_of(stmt.value, form_of_var)
            forms[var] = form if form is not None else own(var)
    return forms


def _trips_around(function: Function, facts: Facts) -> dict[Any, tuple[tuple[Var, int | None], ...]]:
    """For each loop the variables of the loops around its body, with how often they run."""
    found: dict[Any, tuple[tuple[Var, int | None], ...]] = {}
    for loop in sorted(facts.uses.extent, key=lambda each: facts.uses.extent[each][0]):
        around = found.get(facts.uses.loop_of[loop], ())
        if type(loop) is ForStmt:
            around = (*around, (loop.loop_var, static_trip_count(loop.start, loop.stop, loop.step)))
        found[loop] = around
    return found


class _Rebase(Retyping):
    """Parameters become their windows: other types of all their names, and offsets from the start of the window."""

    def __init__(self, types: dict[Var, TensorType], windows: Sequence[Window], forms: dict[Any, Affine]) -> None:
        super().__init__(types)
        self._window_of = {call: window for window in windows for call in window.accesses}
        self._forms = forms

    def visit_call(self, op: Call) -> Expr:
        new: Any = super().visit_call(op)
        window = self._window_of.get(op)
        if window is None:
            return new  # type: ignore[no-any-return]
        at = ACCESSES[op.op.name][1]
        old: Any = new.args[at]
        offsets = [self._rebased(*each) for each in zip(window.dims, op.args[at].elements, old.elements, strict=True)]  # type: ignore[attr-defined]
        args = list(new.args)
        args[at] = old.replace(elements=FrozenList(offsets))
        kind = self._types[window.names[0]] if is_op(op, "tile.store") else new.type
        return new.replace(args=FrozenList(args), type=kind)  # type: ignore[no-any-return]

    def _rebased(self, span: Span | None, offset: Expr, new: Expr) -> Expr:
        if span is None:
            return new
        form = form_of(offset, self._forms.get)
        assert form is not None, "the footprint knew a form of this offset"
        return offset_of(form.plus(span.low, -1))


__all__ = ["KernelWindows", "Window", "is_windowized", "scalar_forms"]
