"""OutlineClusterScopes: clusters become Group functions, stand-alone ``pl.spmd`` scopes become Spmd functions.

*Before* (kernels are functions already)::

    for b in pl.spmd(6, name_hint="row"):
        o1 = self.row(x, o0)
    with pl.cluster(name_hint="pair"):
        with pl.spmd(n):
            o2 = self.halve(x, o1)
    return o2

*After*::

    @pl.function(type=pl.FunctionType.Spmd)
    def row_spmd(self, x, o0: pl.Out[...]):
        o1 = self.row(x, o0)
        return o0

    @pl.function(type=pl.FunctionType.Group, attrs={"spmd_unwrapped": True})
    def pair(self, n, x, o1: pl.Out[...]):
        o2 = self.halve(x, o1)
        return o1

    o1 = self.row_spmd(x, o0, attrs={"core_num": 6})
    o2 = self.pair(n, x, o1, attrs={"core_num": n})
    return o2

How wide the launch is stands at the launch, never at the function, since it may depend on values of the caller. A
parameter has the strongest direction of what the body and the functions that it calls do to it.

Needs SSA form and keeps it. Cost: linear.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..ir.enums import FunctionType
from ..ir.expr import Call, Submit, Var
from ..ir.mutator import IRMutator
from ..ir.program import Function
from ..ir.stmt import ClusterScopeStmt, SpmdScopeStmt, Stmt
from ..ir.tree import definitions, walk, walk_stmts
from ..verify.inventory import inventory
from ..verify.properties import IRProperty
from .base import Pass
from .errors import PassError
from .outlining.launch import check_width
from .outlining.machine import OutlinePass
from .outlining.policy import Policy
from .outlining.scan import ScopeInfo


class ClusterPolicy(Policy):
    """Clusters, and ``pl.spmd`` scopes that stand alone."""

    scopes = frozenset((ClusterScopeStmt, SpmdScopeStmt))

    def check_function(self, function: Function) -> None:
        for scope, region in inventory(function).of(ClusterScopeStmt, SpmdScopeStmt):
            around = _launch_around(region)
            if around is None or (type(scope) is SpmdScopeStmt and type(around) is ClusterScopeStmt):
                continue
            inner, outer = _SPELLING[type(scope)], _SPELLING[type(around)]
            raise PassError(
                f"{inner} can't stand inside {outer}: one launch can't hold another",
                scope.span,
                labels=((around.span, f"the {outer} around it"),),
                hint="Write the two scopes one after the other.",
            )

    def check_scope(self, info: ScopeInfo, function: Function) -> None:
        if type(info.scope) is ClusterScopeStmt:
            widths = _inner_spmd(info.scope)
            if len(widths) > 1:
                raise PassError(
                    "Only one pl.spmd() block is allowed in a pl.cluster(): a group has one width",
                    widths[1].span,
                    labels=((widths[0].span, "the first block"), (info.scope.span, "the cluster")),
                    hint="Give each pl.spmd() block a cluster of its own.",
                )
            if widths:
                check_width(widths[0], info.scope, set(definitions(info.scope.body)))

    def suffix(self, scope: Any) -> str:
        return "cluster" if type(scope) is ClusterScopeStmt else "spmd"

    def func_type(self, scope: Any) -> FunctionType:
        return FunctionType.Group if type(scope) is ClusterScopeStmt else FunctionType.Spmd

    def body(self, scope: Any) -> Stmt:
        body: Stmt = scope.body
        return _Unwrap().visit_stmt(body) if type(scope) is ClusterScopeStmt and _inner_spmd(scope) else body

    def function_attrs(self, info: ScopeInfo) -> Mapping[str, Any]:
        unwrapped = type(info.scope) is ClusterScopeStmt and _inner_spmd(info.scope)
        return {"spmd_unwrapped": True} if unwrapped else {}

    def launch_scope(self, scope: Any) -> Any:
        if type(scope) is SpmdScopeStmt:
            return scope
        return next(iter(_inner_spmd(scope)), None)

    def no_dep_inputs(self, info: ScopeInfo) -> list[Any]:
        # The calls inside are no tasks of their own; the launch is.
        found = []
        for node in walk(info.scope.body):
            if type(node) is Call or type(node) is Submit:
                found += [node.args[i] for i in node.attrs.get("arg_direction_overrides", ())]
        return [arg for arg in found if isinstance(arg, Var)]


def _inner_spmd(scope: ClusterScopeStmt) -> list[SpmdScopeStmt]:
    return [stmt for stmt in walk_stmts(scope.body) if type(stmt) is SpmdScopeStmt]


def _launch_around(region: Any) -> Any:
    """The innermost cluster or ``pl.spmd`` scope around a place."""
    while region is not None:
        if type(region.owner) in (ClusterScopeStmt, SpmdScopeStmt):
            return region.owner
        region = region.parent
    return None


class _Unwrap(IRMutator):
    """The body of a cluster without the ``pl.spmd`` scope in it."""

    def visit_spmd_scope_stmt(self, op: SpmdScopeStmt) -> Stmt:
        return self.visit_stmt(op.body)


_SPELLING: dict[type, str] = {ClusterScopeStmt: "pl.cluster()", SpmdScopeStmt: "pl.spmd()"}


class OutlineClusterScopes(OutlinePass):
    """See the module."""

    name = "OutlineClusterScopes"
    required = (IRProperty.SSAForm,)
    produced = (IRProperty.SSAForm, IRProperty.ClusterOutlined)
    policy = ClusterPolicy()


def outline_cluster_scopes() -> Pass:
    """Turn clusters into Group functions and stand-alone ``pl.spmd`` scopes into Spmd functions."""
    return OutlineClusterScopes()


__all__ = ["OutlineClusterScopes", "outline_cluster_scopes"]
