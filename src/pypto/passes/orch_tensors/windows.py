"""Rewrite 5 of OptimizeOrchTensors: kernels are handed the window of a tensor that they touch, not all of it.

Only for kernels that ask for it (``pl.at(..., windowize=True)``, or the attribute of a function). Tasks that touch
windows of one tensor that don't overlap then no longer look like users of one buffer.

*Before*, with ``part`` storing 16 rows of its output from row ``r`` on::

    y1 = self.part(x, r, y)

*After*::

    y__window = pl.slice(y, [16, 64], [r, 0])
    y1__windowed = self.part__windowed(x, r, y__window)
    y1__assembled_0_0 = pl.assemble(y, y1__windowed, [r, 0])   # another name of y: the kernel wrote there

Which parameters have a window is said by :mod:`.window_forms`. A call hands a window if

* it stands in no ``while``, and its launch has no predicate (the slice is made in any case);
* its tensor is an argument once, and the window is not all of it;
* a written window is disjoint from those of other iterations of the sequential loops around, by their affine forms;
* no other call in the same loop writes the same tensor in another way;
* the result is not assembled into a larger tensor: FuseCreateAssembleToSlice makes the tensor a slice then;
* what it gives is kept in a variable, or taken apart.

Each of these tasks still waits for all that wrote what it touches. An order that two tasks had by chance, since both
were handed one whole tensor, is gone. AutoDeriveTaskDependencies makes edges from readers to writers where it has a
name for the reader, and the host's runtime sees to the others; on a device these may race: the program has to see to
that.

Other calls keep the kernel. It stays in the program in any case: it is a function that the program has, and code is
only made for kernels that something launches.

Cost: linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...analysis.access import Footprints
from ...analysis.affine import BLOCK, Affine, form_of
from ...analysis.buffer_names import BufferNames
from ...analysis.callees import Callees, argument_index, callees_of
from ...analysis.constants import constant_int, static_trip_count
from ...ir.call_types import holds_one_tuple
from ...ir.enums import ForKind, FunctionType, ParamDirection
from ...ir.expr import ConstInt, Expr, GlobalVar, MakeTuple, Submit, TupleGetItemExpr, Var
from ...ir.mutator import IRMutator
from ...ir.names import base_name
from ...ir.node import FrozenDict, FrozenList
from ...ir.operands import holds_call
from ...ir.program import Function, Program
from ...ir.stmt import AssignStmt, ForStmt, Stmt, seq
from ...ir.substitution import substitute
from ...ir.tree import definitions, walk
from ...ir.type import ScalarType, ShapedType, TensorType, TupleType
from ...ops.registry import create_op_call
from ...verify.call_sites import call_sites
from ..outlining.comments import commented
from .uses import NAMED, Facts
from .window_forms import KernelWindows, Window, is_windowized, scalar_forms
from .window_offsets import FreshNames, offset_of, own_form

_CALLERS = frozenset((FunctionType.Orchestration, FunctionType.Opaque))


def externalise_windows(program: Program) -> Program:
    """The program with windows in place of tensors, where kernels ask for it and it is right."""
    marked = [function for function in program.functions.values() if is_windowized(function)]
    if not marked:
        return program
    callees = callees_of(program)
    footprints = Footprints(callees)
    kernels = {f.name: found for f in marked if (found := KernelWindows(f, footprints)).windows}
    clones = _Clones(program, kernels)
    new = [_rewritten(function, kernels, callees, clones) for function in program.functions.values()]
    return program.with_functions([*new, *clones.made])


def _rewritten(function: Function, kernels: dict[str, KernelWindows], callees: Callees, clones: _Clones) -> Function:
    if function.func_type not in _CALLERS or kernels.keys().isdisjoint(call_sites(function).callees):
        return function
    search = _Search(function, kernels, callees)
    sites = search.sites()
    if not sites:
        return function
    rewrite = _Rewrite(function, search.names, sites, clones)
    return function.replace(body=rewrite.visit_stmt(function.body))


class _Clones:
    """The kernels that take windows: one for each set of windows of a kernel."""

    def __init__(self, program: Program, kernels: dict[str, KernelWindows]) -> None:
        self.made: list[Function] = []
        self._kernels = kernels
        self._found: dict[tuple[str, tuple[int, ...]], Function] = {}
        self._names = FreshNames(function.name for function in program.functions.values())

    def of(self, name: str, params: tuple[int, ...]) -> Function:
        found = self._found.get((name, params))
        if found is None:
            found = self._kernels[name].clone(params, self._names.fresh(f"{name}__windowed"))
            self._found[name, params] = found
            self.made.append(found)
        return found


class _Site:
    """A call that hands windows. ``windows``: which, by position of the parameter; ``loops``: those around, inner ones
    first; ``given``: what the scalars and symbolic extents of the kernel are."""

    __slots__ = ("call", "given", "kernel", "loops", "stmt", "windows")

    def __init__(self, call: Any, stmt: Any, loops: list[Any], kernel: KernelWindows) -> None:
        self.call = call
        self.stmt = stmt
        self.loops = loops
        self.kernel = kernel
        self.windows: dict[int, Window] = {}
        self.given = self._given()

    def argument(self, param: int) -> Any:
        """The tensor that is handed for a parameter; None if the runtime makes it."""
        at = self.position(param)
        return self.call.args[at] if at is not None else None

    def position(self, param: int) -> int | None:
        return argument_index(self.kernel.function.params, len(self.call.args), param)

    def _given(self) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for i, param in enumerate(self.kernel.function.params):
            arg = self.argument(i)
            if arg is None:
                continue
            if isinstance(param.type, ScalarType):
                found[param] = _typed_like(arg, param)
            elif isinstance(param.type, ShapedType) and isinstance(arg.type, ShapedType):
                for extent, value in zip(param.type.shape, arg.type.shape, strict=False):
                    if type(extent) is Var:
                        found.setdefault(extent, _typed_like(value, extent))
        return found


def _typed_like(e: Any, var: Any) -> Any:
    """An argument; a literal may be written in another type than that of the parameter."""
    return ConstInt(e.value, var.type.dtype, e.span) if type(e) is ConstInt else e


# --- which calls ------------------------------------------------------------------------------------------------------

# A tensor that a call writes, and the innermost loop around the call: who else writes it there must do it by windows.
_Group = tuple[Any, Var]


class _Search:
    """The calls of one function that hand windows."""

    def __init__(self, function: Function, kernels: dict[str, KernelWindows], callees: Callees) -> None:
        self._function = function
        self._kernels = kernels
        self._callees = callees
        self._facts = Facts(function, callees)
        self._uses = self._facts.uses
        self.names = self._facts.names
        self._forms = scalar_forms(function, self._facts)

    def sites(self) -> list[_Site]:
        if self._uses.opaque:
            return []
        assembled = self._assembled()
        found: list[_Site] = []
        writers: dict[_Group, list[tuple[_Site | None, int]]] = {}
        for each in call_sites(self._function).functions:
            call, loop = each.call, each.region.loop
            kernel = self._kernels.get(call.op.name)
            site: _Site | None = None
            if kernel is not None and each.code is None and type(each.stmt) is AssignStmt:
                site = _Site(call, each.stmt, _loops_around(each.region), kernel)
                self._fill(site, assembled)
                if not kernel.is_closed(tuple(sorted(site.windows))):
                    site.windows.clear()
                if site.windows:
                    found.append(site)
            self._note_writes(call, loop, site, writers)
        for group in writers.values():
            if any(site is None or param not in site.windows for site, param in group):
                for site, param in group:
                    if site is not None:
                        site.windows.pop(param, None)
        # With fewer windows, offsets that are left may mention extents that nothing says any more.
        return [site for site in found if site.windows and site.kernel.is_closed(tuple(sorted(site.windows)))]

    def _assembled(self) -> set[Var]:
        """The tensors that are assembled into others."""
        found: set[Var] = set()
        for site in call_sites(self._function).ops.get("tensor.assemble", ()):
            source = self.names.name(site.call.args[1])
            found.update([source] if source is not None else self.names.candidates(site.call.args[1]))
        return found

    def _note_writes(self, call: Any, loop: Any, site: _Site | None, writers: Any) -> None:
        callee = self._callees.of(call)
        for at, arg in enumerate(call.args):
            if not isinstance(arg.type, TensorType) or self._callees.direction(call, at) is ParamDirection.In:
                continue
            name = self.names.name(arg)
            param = -1
            if site is not None and callee is not None:
                param = next((i for i in range(len(callee.params)) if site.position(i) == at), -1)
            for root in [name] if name is not None else self.names.candidates(arg):
                writers.setdefault((loop, root), []).append((site, param))

    # --- one call -----------------------------------------------------------------------------------------------------

    def _fill(self, site: _Site, assembled: set[Var]) -> None:
        call = site.call
        if any(type(loop) is not ForStmt for loop in site.loops):
            return
        predicate = call.predicate if type(call) is Submit else call.attrs.get("predicate")
        if predicate is not None or not self._is_kept(site):
            return
        buffers = [self.names.candidates(arg) if isinstance(arg.type, TensorType) else [] for arg in call.args]
        count: dict[Var, int] = {}
        for each in buffers:
            for buffer in each:
                count[buffer] = count.get(buffer, 0) + 1
        values = {key: form for key, e in site.given.items() if (form := form_of(e, self._forms.get)) is not None}
        for param, window in site.kernel.windows.items():
            at = site.position(param)
            if at is None or any(count[buffer] > 1 for buffer in buffers[at]):
                continue
            if self._fits(site, window, values) and (
                window.result is None or self._is_written_apart(site, window, values, assembled)
            ):
                site.windows[param] = window

    def _is_kept(self, site: _Site) -> bool:
        """Whether the results are in variables."""
        stmt = site.stmt
        if isinstance(stmt.var.type, TensorType):
            return True
        if holds_one_tuple(stmt.var.type) or not isinstance(stmt.var.type, TupleType):
            return False
        uses = self._uses.of.get(stmt.var, ())
        return all(use.kind == NAMED and type(use.node) is TupleGetItemExpr for use in uses)

    def _fits(self, site: _Site, window: Window, values: dict[Any, Affine]) -> bool:
        """Whether the window is a part of the argument, and the caller can say where it begins."""
        arg = site.argument(window.param)
        kind = arg.type
        if not isinstance(arg, Var) or type(kind) is not TensorType or kind.tensor_view is not None:
            return False
        if len(kind.shape) != len(window.dims):
            return False
        if not all(self._is_known(site, key) for span in window.dims if span is not None for key in span.low.terms):
            return False
        for span, extent in zip(window.dims, kind.shape, strict=True):
            low = span.low.substituted(values.get) if span is not None else None
            if span is not None and not (
                low is not None and low.value == 0 and span.size.value == constant_int(extent)
            ):
                return True
        return False

    def _is_known(self, site: _Site, key: Any) -> bool:
        """Whether the caller can compute a scalar or symbolic extent of the kernel."""
        waiting, seen = [key], {key}
        while waiting:
            var = waiting.pop()
            value = site.given.get(var)
            if value is not None:
                if value.type != var.type or holds_call(value):
                    return False
            elif var in site.kernel.scalars:
                reads = [node for node in walk(site.kernel.scalars[var]) if isinstance(node, Var) and node not in seen]
                seen.update(reads)
                waiting += reads
            else:
                return False
        return True

    def _is_written_apart(self, site: _Site, window: Window, values: dict[Any, Affine], assembled: set[Var]) -> bool:
        arg = site.argument(window.param)
        root = self.names.name(arg)
        if root is None or root in assembled:
            return False
        want = TensorType(arg.type.shape, arg.type.dtype)
        if any(var.type != want for var in self._results(site, window)):
            return False
        lows = [span.low.substituted(values.get) if span is not None else None for span in window.dims]
        sizes = [span.size.const if span is not None else 0 for span in window.dims]
        inner: list[Any] = []
        for loop in site.loops:
            if self._uses.inside(self._uses.defined[root], loop):
                break  # another tensor in each iteration
            inner.append(loop)
            if loop.kind is not ForKind.Parallel and static_trip_count(loop.start, loop.stop, loop.step) not in (0, 1):
                if not any(
                    low is not None and self._moves_apart(low, size, inner)
                    for low, size in zip(lows, sizes, strict=True)
                ):
                    return False
        return True

    def _results(self, site: _Site, window: Window) -> list[Var]:
        """The variables that hold what was written."""
        var = site.stmt.var
        if isinstance(var.type, TensorType):
            return [var]
        return [use.stmt.var for use in self._uses.of.get(var, ()) if use.index == window.result]

    def _moves_apart(self, low: Affine, size: int, loops: Sequence[Any]) -> bool:
        """Whether stretches are disjoint in different iterations of the last of these loops, inner ones first."""
        reach = size
        step: int | None = 0
        for key, factor in low.terms.items():
            loop = next((each for each in loops if each.loop_var is key), None)
            if loop is loops[-1]:
                by = constant_int(loop.step)
                step = None if by is None else factor * by
            elif loop is not None:
                by, trips = constant_int(loop.step), static_trip_count(loop.start, loop.stop, loop.step)
                if by is None or trips is None:
                    return False
                reach += abs(factor * by) * max(trips - 1, 0)
            elif key is BLOCK or self._uses.inside(self._uses.defined.get(key, -1), loops[-1]):
                return False
        return step is not None and abs(step) >= reach


def _loops_around(region: Any) -> list[Any]:
    """The loops around a call, inner ones first."""
    found = []
    while region is not None:
        if region.owner is not None and region.owner is region.loop:
            found.append(region.owner)
        region = region.parent
    return found


# --- the rewrite ------------------------------------------------------------------------------------------------------


class _Part:
    """What is to be assembled: into which tensor, and where."""

    __slots__ = ("kind", "offsets", "parent", "result")

    def __init__(self, parent: Expr, offsets: MakeTuple, kind: TensorType, result: int) -> None:
        self.parent = parent
        self.offsets = offsets
        self.kind = kind
        self.result = result


class _Rewrite(IRMutator):
    """The caller, call by call. A later mention of a result names the tensor that it was assembled into."""

    def __init__(self, function: Function, names: BufferNames, sites: list[_Site], clones: _Clones) -> None:
        self._sites = {site.stmt: site for site in sites}
        self._names = names
        self._clones = clones
        self._supply = FreshNames(var.name_hint for var in definitions(function))
        # Results of loops -> what they begin with, where it is the same tensor.
        self._initial: dict[Var, Any] = {}
        # Results that are tuples -> the tuple that takes their place, and what is to be assembled of it.
        self._tuples: dict[Any, tuple[Var, dict[int, _Part]]] = {}

    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        for arg, var in zip(op.iter_args, op.return_vars, strict=False):
            name = self._names.name(var)
            if name is not None and name is self._names.name(arg.initValue):
                self._initial[var] = arg.initValue
        return super().visit_for_stmt(op)

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        site = self._sites.get(op)
        if site is not None:
            return commented(seq(self._launch(op, site), op.span), op.leading_comments)
        value: Any = op.value
        if type(value) is TupleGetItemExpr and value.tuple in self._tuples:
            whole, parts = self._tuples[value.tuple]
            item = TupleGetItemExpr(whole, value.index, value.span)
            part = parts.get(value.index)
            if part is None:
                return op.replace(value=item)  # type: ignore[no-any-return]
            return commented(seq(self._assemble(op, item, part), op.span), op.leading_comments)
        return super().visit_assign_stmt(op)

    # --- a call -------------------------------------------------------------------------------------------------------

    def _launch(self, op: AssignStmt, site: _Site) -> list[Stmt]:
        call: Any = self.visit_expr(op.value)
        span = call.span
        params = tuple(sorted(site.windows))
        values = _Values(site, self._supply, self.visit_expr)
        args = list(call.args)
        slices: list[Stmt] = []
        handed: dict[Any, Var] = {}
        parts: dict[int, _Part] = {}
        for param in params:
            window, at = site.windows[param], site.position(param)
            assert at is not None
            parent: Any = self._parent(site.argument(param))
            shape = MakeTuple(window.shape(parent.type.shape), span)
            offsets = MakeTuple([values.offset(span_) for span_ in window.dims], span)
            value = create_op_call("tensor.slice", [parent, shape, offsets], {}, span)
            name = f"{base_name(site.argument(param).name_hint)}__window"
            handed[args[at]] = args[at] = Var(self._supply.fresh(name), value.type, span)
            slices.append(AssignStmt(args[at], value, span))
            if window.result is not None:
                kind = TensorType(shape.elements, parent.type.dtype)
                parts[window.result] = _Part(parent, offsets, kind, window.result)
        clone = self._clones.of(call.op.name, params)
        attrs = call.attrs
        if "dump_vars" in attrs:
            dumps = FrozenList(handed.get(var, var) for var in attrs["dump_vars"])
            attrs = FrozenDict({**attrs, "dump_vars": dumps})
        call = call.replace(op=GlobalVar(clone.name), args=FrozenList(args), attrs=attrs)
        return [*values.statements, *slices, *self._results(op, call, parts)]

    def _results(self, op: AssignStmt, call: Any, parts: dict[int, _Part]) -> list[Stmt]:
        if not parts:
            return [AssignStmt(op.var, call, op.span)]
        if isinstance(op.var.type, TensorType):
            return self._assemble(op, call.replace(type=parts[0].kind), parts[0])
        types = [parts[i].kind if i in parts else kind for i, kind in enumerate(call.type.types)]
        whole = self._fresh_like(op.var, "windowed", TupleType(types))
        self._tuples[op.var] = whole, parts
        return [AssignStmt(whole, call.replace(type=whole.type), op.span)]

    def _assemble(self, op: AssignStmt, value: Expr, part: _Part) -> list[Stmt]:
        result = self._fresh_like(op.var, "windowed", part.kind)
        whole = create_op_call("tensor.assemble", [part.parent, result, part.offsets], {}, value.span)
        var = self._remap[op.var] = self._fresh_like(op.var, f"assembled_{part.result}_0", whole.type)
        return [AssignStmt(result, value, op.span), AssignStmt(var, whole, op.span)]

    def _fresh_like(self, var: Var, what: str, kind: Any) -> Var:
        return Var(self._supply.fresh(f"{base_name(var.name_hint)}__{what}"), kind, var.span)

    def _parent(self, value: Any) -> Expr:
        """The tensor that is sliced: what a loop gives is what it began with."""
        while value in self._initial:
            value = self._initial[value]
        return self.visit_expr(value)


class _Values:
    """The offsets of the windows of one call, in terms of the caller. ``statements`` compute what is no affine form."""

    def __init__(self, site: _Site, supply: FreshNames, renamed: Any) -> None:
        self.statements: list[Stmt] = []
        self._site = site
        self._values: dict[Any, Expr] = {}
        self._supply = supply
        self._renamed = renamed
        self._forms: dict[Any, Affine] = {}

    def offset(self, span: Any) -> Expr:
        low = span.low.substituted(self._form) if span is not None else Affine()
        return offset_of(low)

    def _form(self, key: Any) -> Affine:
        found = self._forms.get(key)
        if found is None:
            found = form_of(self._value(key), own_form)
            if found is None:
                found = own_form(self._computed(key, self._values[key]))
            self._forms[key] = found
        return found

    def _value(self, key: Any) -> Expr:
        """A scalar or symbolic extent of the kernel, in terms of the caller."""
        found = self._values.get(key)
        if found is None:
            given = self._site.given.get(key)
            if given is not None:
                found = self._renamed(given)
            else:
                # Its own scalars, one after another: written into each other they could become long.
                value = self._site.kernel.scalars[key]
                reads = dict.fromkeys(node for node in walk(value) if isinstance(node, Var))
                found = self._computed(key, substitute(value, {var: self._value(var) for var in reads}))
            self._values[key] = found
        return found

    def _computed(self, key: Var, value: Expr) -> Var:
        var = self._values[key] = Var(self._supply.scalar(key.name_hint), value.type, value.span)
        self.statements.append(AssignStmt(var, value, value.span))
        return var


__all__ = ["externalise_windows"]
