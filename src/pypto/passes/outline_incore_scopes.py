"""OutlineIncoreScopes: kernel scopes become InCore functions, and the function around them becomes an orchestration.

*Before*::

    @pl.function
    def f(self, src, dst: pl.Out[...]):
        for r in pl.range(3):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(src, [r * 16, 0], [16, 32]), [r * 16, 0], dst)
        return dst

*After*::

    @pl.function(type=pl.FunctionType.InCore)
    def f_incore_0(self, src, r, dst: pl.Out[...]):
        dst__store = pl.store(pl.load(src, [r * 16, 0], [16, 32]), [r * 16, 0], dst)
        return dst

    @pl.function(type=pl.FunctionType.Orchestration)
    def f(self, src, dst: pl.Out[...]):
        for r, (dst__iter_v0,) in pl.range(3, init_values=(dst,)):
            dst__ssa_v0 = self.f_incore_0(src, r, dst__iter_v0)
            dst__rv_v0 = pl.yield_(dst__ssa_v0)
        return dst__rv_v0

A kernel takes in what its body reads from outside, in the order of first read, and gives back what others need of its
definitions, then every tensor from outside that it writes. A result that is the buffer of a parameter is returned as
that parameter. Scalars that are arithmetic on values from outside are not returned but computed again by the caller.

Needs SSA form and keeps it. Cost: linear.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..analysis.buffers import Buffers
from ..analysis.callees import Callees
from ..analysis.constants import constant_int
from ..ir.enums import FunctionType, Level, Role, SplitMode
from ..ir.expr import Call, Var
from ..ir.mutator import IRMutator
from ..ir.program import Function
from ..ir.stmt import AssignStmt, InCoreScopeStmt, SplitAivScopeStmt, Stmt, seq
from ..ir.substitution import substitute
from ..ir.tree import definitions, walk_stmts
from ..ir.type import TensorType
from ..verify.call_sites import call_sites
from ..verify.inventory import inventory
from ..verify.properties import IRProperty
from .base import Pass
from .errors import PassError
from .outlining.deferred import WAIT, check_waiter, is_waiter
from .outlining.machine import OutlinePass
from .outlining.policy import Policy
from .outlining.scan import ScopeInfo


class IncorePolicy(Policy):
    """Kernel scopes of host-side functions."""

    scopes = frozenset((InCoreScopeStmt,))

    def check_function(self, function: Function) -> None:
        for scope, region in inventory(function).of(InCoreScopeStmt):
            if region.incore is not None:
                raise PassError(
                    f"Nested InCore scope detected in '{function.name}': a kernel can't launch a kernel",
                    scope.span,
                    labels=((region.incore.span, "inside this kernel scope"),),
                    hint="Write the two scopes one after the other, or leave out the inner one.",
                )
        if function.func_type is FunctionType.Opaque:
            self._check_place(function)

    def _check_place(self, function: Function) -> None:
        if function.level in (None, Level.CHIP) and function.role in (None, Role.Orchestrator):
            return
        scope = inventory(function).of(InCoreScopeStmt)[0][0]
        where = "a sub-worker" if function.role is Role.SubWorker else ""
        if function.level not in (None, Level.CHIP):
            where = f"level {function.level.name}"
        raise PassError(
            f"a kernel scope needs an enclosing CHIP level, but '{function.name}' is {where}",
            scope.span,
            labels=((function.span, "the function of that level"),),
            hint="Put the kernel scope into a with pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator): block.",
        )

    def check_scope(self, info: ScopeInfo, function: Function) -> None:
        info.only_waits = WAIT in call_sites(function).ops and is_waiter(info.scope)
        if info.only_waits:
            check_waiter(info)

    def suffix(self, scope: Any) -> str:
        return "incore"

    def func_type(self, scope: Any) -> FunctionType:
        return FunctionType.InCore

    def gives_nothing(self, info: ScopeInfo) -> bool:
        return info.only_waits

    def function_attrs(self, info: ScopeInfo) -> Mapping[str, Any]:
        scope = info.scope
        attrs: dict[str, Any] = {}
        if scope.split is not SplitMode.NONE:
            attrs["split"] = scope.split
        for key in ("slot_num", "windowize"):
            if key in scope.attrs:
                attrs[key] = scope.attrs[key]
        regions = _split_regions(scope)
        if regions:
            if scope.split is not SplitMode.NONE:
                raise PassError(
                    "a kernel scope with pl.split(...) holds a pl.split_aiv region: mutually exclusive AIV-split "
                    "mechanisms",
                    regions[0].span,
                    labels=((scope.span, "split here, too"),),
                    hint="Keep one of them.",
                )
            attrs["split_aiv"] = True
            modes = {region.split for region in regions}
            if len(modes) == 1 and regions[0].split is not SplitMode.NONE:
                attrs["split"] = regions[0].split
        if info.only_waits:
            attrs["deferred_completion_waiter"] = True
        return attrs

    def finish(self, function: Function, callees: Callees) -> Function:
        if function.func_type is not FunctionType.Opaque:
            return function
        function = fold_declared_extents(function, callees)
        return function.replace(func_type=FunctionType.Orchestration, level=Level.CHIP, role=Role.Orchestrator)


def _split_regions(scope: InCoreScopeStmt) -> list[SplitAivScopeStmt]:
    return [stmt for stmt in walk_stmts(scope.body) if type(stmt) is SplitAivScopeStmt]


# --- extents that the signature declares ------------------------------------------------------------------------------


def fold_declared_extents(function: Function, callees: Callees) -> Function:
    """``n = tensor.dim(p, 0)`` goes away where parameter ``p`` declares that extent as a symbol: uses name that."""
    folded = _DeclaredExtents(function, callees).folded
    if not folded:
        return function
    body = _DropReads(folded).visit_stmt(function.body)
    return substitute(function.replace(body=body), folded)


class _DeclaredExtents:
    """``folded``: variables that hold an extent that the signature declares -> the symbol."""

    def __init__(self, function: Function, callees: Callees) -> None:
        self.folded: dict[Var, Var] = {}
        self._function = function
        self._params = set(function.params)
        self._callees = callees
        self._buffers: Buffers | None = None
        self._defined: set[Any] = set()
        for stmt in inventory(function).of(AssignStmt):
            symbol = self._symbol(stmt[0].value)
            if symbol is not None:
                self.folded[stmt[0].var] = symbol

    def _symbol(self, value: Any) -> Var | None:
        if type(value) is Var:
            return self.folded.get(value)
        if type(value) is not Call or value.op.name != "tensor.dim" or not isinstance(value.args[0], Var):
            return None
        if self._buffers is None:
            self._buffers = Buffers(self._function.body, self._callees)
            self._defined = set(definitions(self._function))
        tensor = self._buffers.root(value.args[0])
        axis = constant_int(value.args[1])
        if tensor is None or tensor not in self._params or axis is None or not isinstance(tensor.type, TensorType):
            return None
        shape = tensor.type.shape
        extent = shape[axis] if -len(shape) <= axis < len(shape) else None
        return extent if type(extent) is Var and extent not in self._defined else None


class _DropReads(IRMutator):
    def __init__(self, folded: Mapping[Var, Var]) -> None:
        self._folded = folded

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        return seq([], op.span) if op.var in self._folded else op


class OutlineIncoreScopes(OutlinePass):
    """See the module."""

    name = "OutlineIncoreScopes"
    required = (IRProperty.SSAForm,)
    produced = (IRProperty.SSAForm, IRProperty.SplitIncoreOrch, IRProperty.AivSplitValid)
    policy = IncorePolicy()


def outline_incore_scopes() -> Pass:
    """Turn kernel scopes into InCore functions, and functions with such scopes into orchestrations."""
    return OutlineIncoreScopes()


__all__ = ["OutlineIncoreScopes", "fold_declared_extents", "outline_incore_scopes"]
