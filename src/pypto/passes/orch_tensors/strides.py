"""Rewrites 2 and 4 of OptimizeOrchTensors: a kernel knows the strides of the part of a larger tensor that it is handed.

A tensor parameter gets strides if every call hands it a tensor with the same ones, and these are not those of a packed
tensor of its shape. What a call hands is

* a slice of a tensor of constant shape (rewrite 4), also a slice of a slice;
* a buffer that is made to be assembled into such a tensor (rewrite 2): FuseCreateAssembleToSlice makes it a slice. A
  buffer that will not become one stays packed, so its kernel must stay as it is.

Kernels load from such a parameter and store to it; one that does anything else with it is left alone. What the kernel
stores, carries and returns of it gets the same strides, and so do the results of the calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...analysis.callees import Callees, argument_index, callees_of
from ...analysis.constants import constant_ints
from ...ir.call_types import holds_one_tuple
from ...ir.enums import FunctionType, TensorLayout
from ...ir.expr import MakeTuple, Submit, Var
from ...ir.mutator import IRMutator
from ...ir.node import FrozenList
from ...ir.operands import is_launch, is_op
from ...ir.program import Function, Program
from ...ir.stmt import AssignStmt, Stmt
from ...ir.type import TensorType, TensorView, TupleType
from ...verify.call_sites import call_sites
from ..fuse_create_assemble_to_slice import created_slices
from .retyping import Retyping
from .uses import ARGUMENT, INITIAL, NAMED, RETURNED, YIELDED, Facts

_CALLERS = frozenset((FunctionType.Orchestration, FunctionType.Opaque))

Strides = tuple[int, ...]


def with_real_strides(program: Program) -> Program:
    """The program with the strides of slices on the parameters of kernels."""
    functions = program.functions.values()
    kernels = {f.name: f for f in functions if f.func_type is FunctionType.InCore}
    handed = _Handed(functions, kernels, callees_of(program))
    new: dict[str, _Kernel] = {}
    for name, kernel in kernels.items():
        strides = handed.of(kernel)
        if strides:
            found = _Kernel(kernel, handed.callees, strides)
            if found.strides:
                new[name] = found
    if not new:
        return program
    return program.with_functions([_rewritten(function, new) for function in functions])


def _rewritten(function: Function, kernels: dict[str, _Kernel]) -> Function:
    if function.name in kernels:
        function = kernels[function.name].rewritten()
    if kernels.keys().isdisjoint(call_sites(function).callees):
        return function
    body = _Calls(kernels).visit_stmt(function.body)
    return function.replace(body=body) if body is not function.body else function


# --- what calls hand --------------------------------------------------------------------------------------------------


class _Handed:
    """The strides of the tensors that the calls of kernels pass."""

    def __init__(self, functions: Any, kernels: dict[str, Function], callees: Callees) -> None:
        self.callees = callees
        called = {name for function in functions for name in call_sites(function).callees}
        # Kernel -> parameter -> the strides that all calls so far agree on, None if they don't or it is not known.
        self._found: dict[str, dict[int, Strides | None]] = {}
        for function in functions:
            sites = [site.call for site in call_sites(function).functions if site.call.op.name in kernels]
            if sites:
                lies = _Lies(function, self.callees, function.name not in called)
                for call in sites:
                    self._add(kernels[call.op.name], call, lies)

    def _add(self, kernel: Function, call: Any, lies: _Lies) -> None:
        found = self._found.setdefault(kernel.name, {})
        for i, param in enumerate(kernel.params):
            if type(param.type) is TensorType:
                at = argument_index(kernel.params, len(call.args), i)
                # What the runtime allocates is packed, and so is no reason for strides.
                strides = lies.strides(call.args[at]) if at is not None else None
                found[i] = strides if found.get(i, strides) == strides else None

    def of(self, kernel: Function) -> dict[int, Strides]:
        """The parameters of a kernel that should have strides."""
        return {
            i: strides
            for i, strides in self._found.get(kernel.name, {}).items()
            if strides is not None and _is_news(kernel.params[i].type, strides)
        }


def _is_news(kind: Any, strides: Strides) -> bool:
    """Whether a type does not say yet that a tensor has these strides, and can."""
    view = kind.tensor_view
    if view is not None and (view.stride or view.layout is not TensorLayout.ND):
        return False
    shape = constant_ints(kind.shape)
    return shape is not None and len(shape) == len(strides) and strides[-1:] == (1,) and strides != _packed(shape)


class _Lies:
    """How the tensors of one function lie in memory."""

    def __init__(self, function: Function, callees: Callees, is_entry: bool) -> None:
        self._facts = Facts(function, callees)
        self._slices = created_slices(function, callees) if "tensor.assemble" in call_sites(function).ops else {}
        self._is_caller = function.func_type in _CALLERS
        # Who calls the program hands packed tensors. Who else calls this function may hand parts of others.
        self._unknown = frozenset(() if is_entry else function.params)
        self._known: dict[Var, Strides | None] = {}

    def strides(self, value: Any) -> Strides | None:
        """The strides of a tensor; None if they are not known."""
        if not self._is_caller:
            return None
        chain: list[tuple[Var, Any]] = []
        name = self._facts.names.name(value)
        strides: Strides | None = None
        while name is not None:
            if name in self._known:
                strides = self._known[name]
                break
            view = self._slices.get(name) or self._facts.names.views.get(name)
            if view is None:
                strides = self._known[name] = self._of_buffer(name)
                break
            chain.append((name, view))
            name = self._facts.names.name(view.args[0])
        for part, view in reversed(chain):
            strides = self._known[part] = _of_part(part, view, strides)
        return strides

    def _of_buffer(self, name: Var) -> Strides | None:
        kind: Any = name.type
        view, shape = kind.tensor_view, constant_ints(kind.shape)
        if name in self._unknown or shape is None or (view is not None and view.layout is not TensorLayout.ND):
            return None
        return constant_ints(view.stride) if view is not None and view.stride else _packed(shape)


def _of_part(part: Var, view: Any, whole: Strides | None) -> Strides | None:
    """The strides of a slice of a tensor, or of what becomes one (an assemble)."""
    if whole is None or view.op.name not in ("tensor.slice", "tensor.assemble"):
        return None
    dropped: set[int] = set()
    rank = len(part.type.shape)  # type: ignore[attr-defined]
    if view.op.name == "tensor.slice":
        rank = len(view.args[1].type.types)
        if len(view.args) > 4:
            axes = constant_ints(view.args[4].elements) if type(view.args[4]) is MakeTuple else None
            if axes is None:
                return None
            dropped = {axis % rank for axis in axes}
    if not 0 < rank <= len(whole):
        return None
    return tuple(stride for i, stride in enumerate(whole[len(whole) - rank :]) if i not in dropped)


def _packed(shape: Sequence[int]) -> Strides:
    strides = [1] if shape else []
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * extent)
    return tuple(reversed(strides))


# --- kernels ----------------------------------------------------------------------------------------------------------


def strided(kind: Any, strides: Strides) -> TensorType:
    """A tensor type with these strides."""
    view = kind.tensor_view or TensorView()
    return TensorType(
        kind.shape, kind.dtype, kind.memref, TensorView(strides, TensorLayout.ND, view.valid_shape, view.pad)
    )


class _Kernel:
    """A kernel with strides on some of its parameters. ``strides``: which; ``results``: those of its results."""

    def __init__(self, function: Function, callees: Callees, strides: dict[int, Strides]) -> None:
        self.function = function
        facts = Facts(function, callees)
        if facts.uses.opaque or function.attrs.get("external_source"):
            strides = {}
        # All names of these parameters.
        self._types: dict[Var, Strides] = {}
        self.strides: dict[int, Strides] = {}
        for i, found in strides.items():
            param = function.params[i]
            names = list(facts.other_names([param]))
            if (
                not facts.uses.opaque
                and not function.attrs.get("external_source")
                and _is_only_moved(facts, param, names)
            ):
                self.strides[i] = found
                self._types.update(dict.fromkeys(names, found))
        returned = callees.returned_params(function) or ()
        self.results = {i: self.strides[p] for i, p in enumerate(returned) if p in self.strides}

    def rewritten(self) -> Function:
        function = self.function
        rewrite = _Body(self._types)
        params = [rewrite.renamed(param) for param in function.params]
        body = rewrite.visit_stmt(function.body)
        types: list[Any] = list(function.return_types)
        if len(types) == 1 and isinstance(types[0], TupleType):
            types = [_strided_elements(types[0], self.results)]
        else:
            types = [strided(kind, self.results[i]) if i in self.results else kind for i, kind in enumerate(types)]
        return function.replace(params=FrozenList(params), body=body, return_types=FrozenList(types))


def _is_only_moved(facts: Facts, param: Var, names: list[Var]) -> bool:
    """Whether a kernel does nothing with a parameter but load from it, store to it, carry it and return it."""
    for name in names:
        if facts.names.name(name) is not param:
            return False
        for use in facts.uses.of.get(name, ()):
            if use.kind == ARGUMENT:
                loads = use.index == 0 and is_op(use.node, "tile.load")
                if not loads and not (use.index == 2 and is_op(use.node, "tile.store")):
                    return False
            elif use.kind not in (NAMED, INITIAL, YIELDED, RETURNED):
                return False
    return True


class _Body(Retyping):
    def __init__(self, strides: dict[Var, Strides]) -> None:
        super().__init__({var: strided(var.type, each) for var, each in strides.items()})
        self._strides = strides

    def assigned(self, op: AssignStmt) -> Any:
        value = super().assigned(op)
        if is_op(value, "tile.store") and op.var in self._strides:
            return value.replace(type=strided(value.type, self._strides[op.var]))
        return value


# --- calls ------------------------------------------------------------------------------------------------------------


def _strided_elements(kind: Any, results: dict[int, Strides]) -> TupleType:
    return TupleType([strided(t, results[i]) if i in results else t for i, t in enumerate(kind.types)])


class _Calls(IRMutator):
    """Calls whose results have other types, with the variables that they are assigned to."""

    def __init__(self, kernels: dict[str, _Kernel]) -> None:
        self._kernels = kernels

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        value: Any = self.visit_expr(op.value)
        if is_launch(value) and value.op.name in self._kernels:
            value = self._retyped(value)
        if value is op.value:
            return op
        var: Any = op.var
        if value.type is not op.value.type and var.type == op.value.type:
            var = self._remap[op.var] = var.replace(type=value.type)
        return op.replace(var=var, value=value)  # type: ignore[no-any-return]

    def _retyped(self, call: Any) -> Any:
        results = self._kernels[call.op.name].results
        kind: Any = call.type
        if not results:
            return call
        if isinstance(kind, TensorType):
            return call.replace(type=strided(kind, results[0]))
        if type(call) is Submit and holds_one_tuple(kind):
            return call.replace(type=TupleType([_strided_elements(kind.types[0], results), *kind.types[1:]]))
        return call.replace(type=_strided_elements(kind, results))


__all__ = ["with_real_strides"]
