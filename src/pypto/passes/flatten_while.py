"""What FlattenCallExpr asks about a ``while`` loop whose condition holds calls, and how it rebuilds one."""

from __future__ import annotations

from typing import Any

from ..ir.dtype import DataType
from ..ir.expr import ConstBool, Expr, GlobalVar, Not, Var
from ..ir.node import FrozenList
from ..ir.program import Function
from ..ir.stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    ForStmt,
    IfStmt,
    InlineStmt,
    RuntimeScopeStmt,
    SeqStmts,
    SplitAivScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    attach_leading_comments,
    seq,
)
from ..ir.traversal import PUSH_CHILDREN
from ..ir.tree import get_last_yield_stmt
from ..ir.type import DistributedTensorType, ShapedType
from ..ops.registry import REGISTRY
from ..verify.call_sites import call_sites
from ..verify.inventory import Region, inventory
from .errors import PassError

# --- statements -------------------------------------------------------------------------------------------------------


def in_front(prelude: list[Stmt], op: Stmt, new: Stmt) -> Stmt:
    """A statement behind others that take its place; the comments go to the first of them."""
    if not prelude:
        return new
    if op.leading_comments:
        if new is op:
            new = op.replace()
        attach_leading_comments(prelude[0], op.leading_comments)
        attach_leading_comments(new, ())
    return seq([*prelude, new], op.span)


def with_latch(body: Stmt, stmts: list[AssignStmt], values: list[Expr]) -> Stmt:
    """A loop body that ends with more statements and yields more values."""
    if get_last_yield_stmt(body) is None:
        return seq([body, *stmts, YieldStmt(values, stmts[0].span)], body.span)
    if type(body) is SeqStmts:
        return seq([*body.stmts[:-1], with_latch(body.stmts[-1], stmts, values)], body.span)
    if isinstance(body, (RuntimeScopeStmt, SplitAivScopeStmt)):
        return body.replace(body=with_latch(body.body, stmts, values))  # type: ignore[no-any-return]
    assert isinstance(body, YieldStmt)
    return in_front([*stmts], body, body.replace(value=FrozenList([*body.value, *values])))


def tested_inside(loop: WhileStmt, bound: list[AssignStmt]) -> WhileStmt:
    """The loop with its condition evaluated at the beginning of each iteration, however the one before ended."""
    span = loop.condition.span
    leave = IfStmt(Not(loop.condition, DataType.BOOL, span), BreakStmt(span), None, [], span)
    return loop.replace(  # type: ignore[no-any-return]
        condition=ConstBool(True, span), body=seq([*bound, leave, loop.body], loop.body.span)
    )


# --- calls ------------------------------------------------------------------------------------------------------------


def check_repeatable(call: Any, condition: Expr) -> None:
    """Refuse a call that can't be made anew for each iteration."""
    definition = None if type(call.op) is GlobalVar else REGISTRY.get(call.op.name)
    if definition is None or not definition.pure:
        raise PassError(
            f"a call of '{call.op.name}' in the condition of a while loop can't be evaluated before each iteration: "
            "it launches a task or has an effect of its own",
            condition.span if condition.span.is_valid() else call.span,
            hint="assign its result to a variable before the loop and at the end of the loop's body, and test that",
        )


def own_operands(call: Any, bound: dict[Any, Var]) -> tuple[list[Var], list[Any]]:
    """The variables and the bound calls that are operands of a call, not those inside these calls."""
    variables: list[Var] = []
    calls: list[Any] = []
    stack: list[Any] = []
    PUSH_CHILDREN[type(call)](call, stack.append)
    while stack:
        node = stack.pop()
        if node in bound:
            calls.append(node)
        elif isinstance(node, Var):
            variables.append(node)
        elif type(node) in PUSH_CHILDREN:
            PUSH_CHILDREN[type(node)](node, stack.append)
    return variables, calls


# Ops that look at the type of a tensor and not at its elements.
_SHAPE_ONLY = frozenset(("tensor.dim",))


def reads_memory(call: Any) -> bool:
    """Whether the value of a call depends on what is in memory."""
    return call.op.name not in _SHAPE_ONLY and any(isinstance(e.type, ShapedType) for e in call.args)


def is_shared(call: Any) -> bool:
    """Whether others may write what a call reads, at any time."""
    return any(isinstance(e.type, DistributedTensorType) for e in call.args)


# --- loops ------------------------------------------------------------------------------------------------------------


class LoopFacts:
    """What happens inside each loop of a function."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._continuing: dict[Any, None] | None = None
        self._writing: dict[Stmt, None] | None = None
        self._defining: dict[Any, dict[Stmt, None]] | None = None

    def continues(self, loop: Stmt) -> bool:
        """Whether there is a ``continue`` of this loop."""
        if self._continuing is None:
            self._continuing = {region.loop: None for _, region in inventory(self._function).of(ContinueStmt)}
        return loop in self._continuing

    def writes(self, loop: Stmt) -> bool:
        """Whether something in a loop may write memory."""
        if self._writing is None:
            self._writing = {}
            sites = call_sites(self._function)
            for region in (*(site.region for site in sites.functions), *_host_text(self._function)):
                _mark(self._writing, region)
            for name, found in sites.ops.items():
                definition = REGISTRY.get(name)
                if definition is None or not definition.pure:
                    for site in found:
                        _mark(self._writing, site.region)
        return loop in self._writing

    def defines(self, loop: Stmt, var: Var) -> bool:
        """Whether a variable is assigned in a loop, or is a loop variable or iter_arg of one in it."""
        if self._defining is None:
            self._defining = {}
            for stmt, region in inventory(self._function).placed:
                for defined in _DEFINED[type(stmt)](stmt) if type(stmt) in _DEFINED else ():
                    _mark(self._defining.setdefault(defined, {}), region)
        return loop in self._defining.get(var, {})


def _host_text(function: Function) -> list[Region]:
    return [region for _, region in inventory(function).of(InlineStmt)]


_DEFINED: dict[type, Any] = {
    AssignStmt: lambda stmt: (stmt.var,),
    IfStmt: lambda stmt: stmt.return_vars,
    ForStmt: lambda stmt: (stmt.loop_var, *stmt.iter_args, *stmt.return_vars),
    WhileStmt: lambda stmt: (*stmt.iter_args, *stmt.return_vars),
}


def _mark(table: dict[Any, None], region: Region | None) -> None:
    """Enter the loops around a region; those around a loop that is entered already are, too."""
    while region is not None:
        owner = region.owner
        if owner is not None and owner is region.loop:
            if owner in table:
                return
            table[owner] = None
        region = region.parent


__all__ = [
    "LoopFacts",
    "check_repeatable",
    "in_front",
    "is_shared",
    "own_operands",
    "reads_memory",
    "tested_inside",
    "with_latch",
]
