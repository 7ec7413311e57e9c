"""What a launch of a function starts: one kernel, or those of a group, and which argument each parameter gets.

A wrapper (Spmd, Group) is looked through to its inner calls. Task parameters follow the order of the inner call's
arguments, each of which is a parameter of the wrapper, a constant, or arithmetic on these, so nothing is matched by
position.
"""

from __future__ import annotations

from typing import Any

from ...analysis.callees import Callees, argument_index
from ...diag.errors import InternalError
from ...ir.enums import CoreType, FunctionType
from ...ir.expr import Call, ConstBool, ConstFloat, ConstInt, Expr, GlobalVar, Neg, Submit, TupleGetItemExpr, Var
from ...ir.program import Function, Program
from ...ir.stmt import AssignStmt
from ...ir.substitution import substitute
from ...ir.traversal import walk
from ...ir.tree import walk_stmts
from ...ir.type import ScalarType, TensorType
from ..errors import CodegenError

CONSTANTS = (ConstInt, ConstFloat, ConstBool, Neg)


class Target:
    """What is started. ``slots``: for each task parameter the index of a parameter of the function that is launched,
    or a number: a constant, or an expression of such parameters. ``kernels``: the functions that run; ``lanes``: those
    of ``MixedKernels`` by position, or None for a plain submit. ``dumped``: parameters that an inner call marks."""

    __slots__ = ("comment", "dumped", "function", "kernels", "lanes", "launch", "slots")

    def __init__(self, function: Function, comment: str, kernels: list[Function], lanes: Any, slots: list[Any]) -> None:
        self.function = function
        self.comment = comment  # with {} for the number of the task
        self.kernels = kernels
        self.lanes: tuple[Function | None, Function | None, Function | None] | None = lanes
        self.slots = slots
        self.dumped: list[int] = []
        self.launch: dict[str, Any] = dict(function.attrs)  # for core_num and sync_start of older programs


def infer_function_core_type(function: Function) -> CoreType:
    """The core that a kernel runs on."""
    core = _CORES.get(function.func_type)
    if core is None:
        raise InternalError(
            f"function '{function.name}' is {function.func_type.name}, which no single core runs: mixed-kernel "
            f"expansion (ExpandMixedKernel) should have made AIC and AIV kernels of it"
        )
    return core


_CORES = {FunctionType.AIC: CoreType.CUBE, FunctionType.AIV: CoreType.VECTOR}


class Targets:
    """The targets of a program's functions, each found once."""

    def __init__(self, program: Program, callees: Callees) -> None:
        self._program = program
        self._callees = callees
        self._found: dict[Function, Target] = {}

    def of(self, function: Function, place: Any) -> Target:
        """What a launch of a function starts."""
        found = self._found.get(function)
        if found is None:
            found = self._found[function] = self._find(function, place)
        return found

    def _find(self, function: Function, place: Any) -> Target:
        kind = function.func_type
        if kind is FunctionType.Graph:
            raise CodegenError(
                f"the Graph function '{function.name}' cannot be compiled yet: launches of graphs are not supported",
                place,
            )
        if kind is FunctionType.Group:
            return self._group(function)
        if kind is FunctionType.Spmd:
            return self._spmd(function, place)
        infer_function_core_type(function)
        lanes = (None, function, function) if _is_dual(function) else None
        return Target(function, f"Task {{}}: {function.name}", [function], lanes, list(range(len(function.params))))

    def _spmd(self, function: Function, place: Any) -> Target:
        calls = inner_calls(function)
        if len(calls) != 1:
            raise InternalError(f"Spmd function '{function.name}' must hold one launch, it holds {len(calls)}")
        inner = self._target(calls[0], place)
        found = self._wrapped(function, calls[0], inner)
        if inner.function.func_type not in (FunctionType.Group, FunctionType.Spmd):
            found.comment = f"Spmd {function.name}: {inner.function.name}"
        return found

    def _group(self, function: Function) -> Target:
        calls = inner_calls(function)
        by_core: dict[CoreType, tuple[Any, Function]] = {}
        for call in calls:
            kernel = self._callee(call)
            by_core.setdefault(infer_function_core_type(kernel), (call, kernel))
        if not by_core or len(calls) > len(by_core):
            raise InternalError(
                f"Group function '{function.name}' must hold one AIC and one AIV launch, or one of them "
                "(ExpandMixedKernel)"
            )
        call, kernel = by_core.get(CoreType.CUBE) or by_core[CoreType.VECTOR]
        inner = Target(kernel, "", [kernel], None, list(range(len(kernel.params))))
        found = self._wrapped(function, call, inner)
        if len(by_core) == 1:
            found.comment = f"Group {function.name}: AIV-only SPMD"
            found.lanes = (None, kernel, kernel) if _is_dual(kernel) or _is_dual(function) else None
            if kernel.func_type is FunctionType.AIC:
                found.comment = f"Group {function.name}: AIC-only"
                found.lanes = None
            return found
        vector_call, vector = by_core[CoreType.VECTOR]
        other = self._wrapped(
            function, vector_call, Target(vector, "", [vector], None, list(range(len(vector.params))))
        )
        if [_slot_key(s) for s in other.slots] != [_slot_key(s) for s in found.slots]:
            raise InternalError(
                f"Group function '{function.name}' gives '{kernel.name}' and '{vector.name}' different arguments: the "
                "lanes of one task share them (ExpandMixedKernel)"
            )
        found.dumped += [i for i in other.dumped if i not in found.dumped]
        found.comment = f"Group {function.name}: MixedKernels (AIC + AIV lanes)"
        found.kernels = [kernel, vector]
        found.lanes = (kernel, vector, vector if _is_dual(vector) or _is_dual(function) else None)
        return found

    def _target(self, call: Any, place: Any) -> Target:
        return self.of(self._callee(call), place)

    def _callee(self, call: Any) -> Function:
        function = self._program.get_function(call.op.name)
        if function is None:
            raise InternalError(f"the program has no function '{call.op.name}' [{call.span}]")
        return function

    def _wrapped(self, wrapper: Function, call: Any, inner: Target) -> Target:
        """``inner`` as it is started through a call in a wrapper."""
        names = self._callees.names(wrapper)
        numbers = _Numbers(wrapper)
        position = {param: i for i, param in enumerate(wrapper.params)}

        def slot(e: Expr) -> Any:
            if type(e) in CONSTANTS:
                return e
            if isinstance(e, Var):
                named = names.name(e) if isinstance(e.type, TensorType) else e
                index = position.get(named) if named is not None else None
                if index is not None:
                    return index
            if isinstance(e.type, ScalarType):
                return numbers.of(e, call)
            raise InternalError(
                f"wrapper '{wrapper.name}': an argument of '{call.op.name}' is neither a parameter nor a constant "
                f"(FlattenCallExpr, outlining) [{e.span}]"
            )

        given = [slot(e) for e in call.args]
        passed = [] if all(type(s) is int for s in inner.slots) else arguments_of(inner.function, call)
        # A number that an inner wrapper computes is computed from what this one passes.
        slots = [given[s] if type(s) is int else slot(substitute(s, passed)) for s in inner.slots]
        found = Target(wrapper, inner.comment, inner.kernels, inner.lanes, slots)
        marks = [slot(e) for e in call.attrs.get("dump_vars", ())]
        found.dumped = list(dict.fromkeys([*(m for m in marks if type(m) is int), *(given[i] for i in inner.dumped)]))
        width = {"core_num": call.attrs.get("core_num"), "sync_start": call.attrs.get("sync_start")}
        if type(call) is Submit:
            width = {"core_num": call.core_num, "sync_start": call.sync_start}
        found.launch = {**inner.launch, **{k: v for k, v in width.items() if v}, **wrapper.attrs}
        return found


def arguments_of(function: Function, call: Any) -> list[tuple[Var, Expr]]:
    """The scalar parameters of a callee and what is passed for them."""
    found = []
    for i, param in enumerate(function.params):
        index = argument_index(function.params, len(call.args), i)
        if index is not None and isinstance(param.type, ScalarType):
            found.append((param, call.args[index]))
    return found


class _Numbers:
    """The scalars that a wrapper computes, in terms of its parameters: its launch computes them where it stands."""

    def __init__(self, wrapper: Function) -> None:
        self._wrapper = wrapper
        self._known = set(wrapper.params)
        self._values: dict[Var, Expr] = {}
        for stmt in walk_stmts(wrapper.body):
            if type(stmt) is AssignStmt and isinstance(stmt.var.type, ScalarType):
                self._values[stmt.var] = substitute(stmt.value, self._values)

    def of(self, e: Expr, call: Any) -> Expr:
        """A scalar argument of the inner call."""
        found = substitute(e, self._values)
        for node in walk(found):
            if isinstance(node, (Call, Submit, TupleGetItemExpr)) or isinstance(node, Var) and node not in self._known:
                raise CodegenError(
                    f"an argument of '{call.op.name}' is computed inside the scope that launches it, and not from "
                    "scalars alone",
                    e.span if e.span.is_valid() else call.span,
                    hint="compute it in front of the scope",
                )
        return found


def inner_calls(function: Function) -> list[Any]:
    """The launches in a wrapper, in order."""
    return [node for node in walk(function.body) if type(node) in (Call, Submit) and type(node.op) is GlobalVar]


def _is_dual(function: Function) -> bool:
    return bool(function.attrs.get("dual_aiv_dispatch"))


def _slot_key(slot: Any) -> Any:
    return slot if type(slot) is int else (type(slot), getattr(slot, "value", None) or str(slot))


__all__ = ["CONSTANTS", "Target", "Targets", "arguments_of", "infer_function_core_type", "inner_calls"]
