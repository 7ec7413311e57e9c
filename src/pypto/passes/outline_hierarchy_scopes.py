"""OutlineHierarchyScopes: scopes for other levels of the machine than a core group become functions.

*Before*::

    def stage(self, x):
        with pl.at(level=pl.Level.HOST, role=pl.Role.Orchestrator):
            y = pl.tensor.adds(x, 4.0)
            with pl.at(level=pl.Level.CHIP):
                z = pl.tensor.muls(y, 0.5)
        return z

*After*::

    @pl.function(level=pl.Level.CHIP)
    def stage_host_orch_0_chip_0(self, y):
        z = pl.tensor.muls(y, 0.5)
        return z

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def stage_host_orch_0(self, x):
        y = pl.tensor.adds(x, 4.0)
        z = self.stage_host_orch_0_chip_0(y)
        return z

    def stage(self, x):
        z = self.stage_host_orch_0(x)
        return z

What the body defines and others read leaves as a result; so does a tensor from outside that the body writes, if it is
read later (without a reader no name is needed: it is the caller's buffer, and the call keeps the order). Directions say
what the body does. Kernel scopes stay in the body.

Needs SSA form and keeps it. Cost: linear, one more walk for each level of nested hierarchy scopes.
"""

from __future__ import annotations

from typing import Any

from ..ir.enums import FunctionType, Level, Role
from ..ir.stmt import HierarchyScopeStmt
from ..verify.properties import IRProperty
from .base import Pass
from .outlining.machine import OutlinePass
from .outlining.policy import Policy

_LEVEL_NAMES = {
    Level.AIV: "aiv",
    Level.AIC: "aic",
    Level.CORE_GROUP: "core_group",
    Level.CHIP_DIE: "chip_die",
    Level.CHIP: "chip",
    Level.HOST: "host",
    Level.CLUSTER_0: "cluster0",
    Level.CLUSTER_1: "cluster1",
    Level.CLUSTER_2: "cluster2",
    Level.GLOBAL: "global",
}
_ROLE_NAMES = {None: "", Role.Orchestrator: "_orch", Role.SubWorker: "_sub_worker"}


class HierarchyPolicy(Policy):
    """Hierarchy scopes of Opaque functions, nested ones too."""

    visits = frozenset((FunctionType.Opaque,))
    scopes = frozenset((HierarchyScopeStmt,))
    nests = True
    exports_only_what_is_read = True
    names_stores = False
    # Runtime scopes that the user placed by hand need a function that says so.
    inherited_attrs = ("auto_scope",)

    def suffix(self, scope: Any) -> str:
        return _LEVEL_NAMES[scope.level] + _ROLE_NAMES[scope.role]

    def func_type(self, scope: Any) -> FunctionType:
        return FunctionType.Opaque

    def place(self, scope: Any) -> tuple[Level | None, Role | None]:
        return scope.level, scope.role


class OutlineHierarchyScopes(OutlinePass):
    """See the module."""

    name = "OutlineHierarchyScopes"
    required = (IRProperty.SSAForm,)
    produced = (IRProperty.SSAForm, IRProperty.HierarchyOutlined, IRProperty.OrchestrationReferencesResolved)
    policy = HierarchyPolicy()


def outline_hierarchy_scopes() -> Pass:
    """Turn hierarchy scopes into functions of their level and role."""
    return OutlineHierarchyScopes()


__all__ = ["OutlineHierarchyScopes", "outline_hierarchy_scopes"]
