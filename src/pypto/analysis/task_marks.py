"""Which calls launch tasks, and the marks by which passes tell each other about launches and scopes."""

from __future__ import annotations

from typing import Any

from ..ir.expr import Call, GlobalVar, Submit
from ..ir.stmt import RuntimeScopeStmt

# On a launch: its order is stated by edges. On a MANUAL scope: the compiler made it.
CANDIDATE = "__compiler_auto_manual_scope_candidate"
# On a launch: the variables that name the tasks it waits for, as the compiler found them.
EDGES = "compiler_manual_dep_edges"
# On a function: its whole body may be one MANUAL scope.
LAYER_CANDIDATE = "__compiler_auto_manual_layer_candidate"

_OP_FAMILIES = ("tile.", "tensor.", "system.", "array.")
_CONTEXT = "pld.system.get_comm_ctx"


def is_task(call: Any) -> bool:
    """Whether an expression launches a task: a call of a function, or of an op that is no op of the orchestrator."""
    cls = type(call)
    if cls is Submit:
        return True
    if cls is not Call:
        return False
    name = call.op.name
    return type(call.op) is GlobalVar or not (name.startswith(_OP_FAMILIES) or name == _CONTEXT)


def is_compiler_owned(scope: RuntimeScopeStmt) -> bool:
    """Whether a runtime scope is a MANUAL one that the compiler made."""
    return scope.manual and bool(scope.attrs.get(CANDIDATE))


__all__ = ["CANDIDATE", "EDGES", "LAYER_CANDIDATE", "is_compiler_owned", "is_task"]
