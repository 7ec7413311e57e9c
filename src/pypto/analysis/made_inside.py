"""Which loop and branch bodies hand out a tensor that is made inside them.

A scope of the task runtime ends the lives of the buffers that are made in it, so such a body can't be one: the carry or
branch result names the buffer behind the body.

Each tensor variable gets the *depth* of the innermost body around it within which a buffer flows into it that is made
in that body: a buffer its own depth, a name the greatest depth of what it is a name of, but no more than its own (what
a nested body hands out arrives here). A body at depth d hands out a buffer of its own if a value that it yields has
depth d or more. Depths are handed on from the deepest to the others, each variable once: linear time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..ir.call import Call, Submit
from ..ir.enums import ParamDirection
from ..ir.expr import TupleGetItemExpr, Var
from ..ir.operands import is_launch
from ..ir.program import Function
from ..ir.stmt import AssignStmt, ForStmt, IfStmt, ScopeStmt, SeqStmts, Stmt, WhileStmt
from ..ir.tree import get_last_yield_stmt
from ..ir.type import TensorType
from .buffer_names import BufferNames
from .callees import Callees

# A body, known by the statement that it belongs to and the name of the field.
Body = tuple[Stmt, str]


def bodies_handing_out_buffers(function: Function, callees: Callees) -> frozenset[Body]:
    """The bodies of loops and branches that yield, in some slot, a buffer made inside them."""
    placed = _Placed(function.body)
    if not placed.yields:
        return frozenset()
    inner = _depths_of_buffers(placed, callees.names(function), callees)
    return frozenset(
        body
        for body, depth, values in placed.yields
        if any(isinstance(value, Var) and inner.get(value, 0) >= depth for value in values)
    )


class _Placed:
    """How deep each variable is defined (0: the function itself), and what the bodies yield."""

    def __init__(self, body: Stmt) -> None:
        self.depth: dict[Var, int] = {}
        self.assigns: list[AssignStmt] = []
        self.yields: list[tuple[Body, int, list[Any]]] = []
        stack: list[tuple[Any, int]] = [(body, 0)]
        while stack:
            stmt, depth = stack.pop()
            cls = type(stmt)
            if cls is AssignStmt:
                self.depth[stmt.var] = depth
                self.assigns.append(stmt)
            elif cls is SeqStmts:
                stack += [(inner, depth) for inner in reversed(stmt.stmts)]
            elif cls is IfStmt:
                self._define(stmt.return_vars, depth)
                for field in ("else_body", "then_body"):
                    stack += self._inside(stmt, field, depth + 1)
            elif cls is ForStmt or cls is WhileStmt:
                self._define(stmt.return_vars, depth)
                self._define(stmt.iter_args, depth + 1)
                stack += self._inside(stmt, "body", depth + 1)
            elif isinstance(stmt, ScopeStmt):
                stack.append((stmt.body, depth))

    def _define(self, variables: Iterable[Var], depth: int) -> None:
        self.depth.update((var, depth) for var in variables)

    def _inside(self, owner: Any, field: str, depth: int) -> list[tuple[Stmt, int]]:
        body = getattr(owner, field)
        if body is None:
            return []
        last = get_last_yield_stmt(body)
        if last is not None:
            self.yields.append(((owner, field), depth, last.value))
        return [(body, depth)]


def _depths_of_buffers(placed: _Placed, names: BufferNames, callees: Callees) -> dict[Var, int]:
    deepest = max(placed.depth.values())
    waiting: list[list[Var]] = [[] for _ in range(deepest + 1)]
    users: dict[Var, list[Var]] = {}
    for var in placed.depth:
        for source in names.sources(var):
            users.setdefault(source, []).append(var)
    launches: dict[Var, Any] = {}
    for stmt in placed.assigns:
        var, value = stmt.var, stmt.value
        if is_launch(value):
            launches[var] = value
        if not isinstance(var.type, TensorType) or names.sources(var):
            continue
        if type(value) is TupleGetItemExpr:
            value = launches.get(value.tuple, value)  # type: ignore[call-overload]
        if not is_launch(value):
            if type(value) is Call:
                waiting[placed.depth[var]].append(var)
            continue
        callee = callees.of(value)
        count = len(value.args)  # type: ignore[attr-defined]
        if type(value) is Submit and (callee is None or count < len(callee.params)):
            waiting[placed.depth[var]].append(var)  # the runtime allocates outputs that are not passed
        # Not known which argument the callee returns: it may be any that it writes.
        for i, arg in enumerate(value.args):  # type: ignore[attr-defined]
            if isinstance(arg, Var) and callees.direction(value, i) is not ParamDirection.In:
                users.setdefault(arg, []).append(var)
    found: dict[Var, int] = {}
    for depth in range(deepest, 0, -1):
        level = waiting[depth]
        while level:
            var = level.pop()
            if var in found:
                continue
            found[var] = depth
            for user in users.get(var, ()):
                waiting[min(depth, placed.depth[user])].append(user)
    return found


__all__ = ["Body", "bodies_handing_out_buffers"]
