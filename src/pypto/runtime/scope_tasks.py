"""What a kernel scope reads and writes of the tensors around it, and what it leaks: the arguments of its task."""

from __future__ import annotations

from collections.abc import Mapping

from ..analysis.effects import TensorEffects, tensor_effects
from ..analysis.escapes import leaves_its_loop
from ..ir import stmt as st
from ..ir.expr import Var
from ..ir.node import IRNode
from ..ir.program import Function
from ..ir.tree import stmt_children, walk, walk_stmts
from .graph import Tag


class ScopeSummary:
    """``accesses``: outer tensor variable -> tag. ``leaks``: tensor variable assigned inside -> the outer tensor that
    it names, or None for a value of its own. ``others``: variables of other types that are assigned inside.
    ``known``: what the leaked names stand for is known before the scope runs. ``conditional``: leaked names that some
    paths do not assign."""

    __slots__ = ("accesses", "conditional", "known", "leaks", "others")

    def __init__(
        self,
        accesses: dict[Var, Tag],
        leaks: dict[Var, Var | None],
        others: frozenset[Var],
        known: bool,
        conditional: frozenset[Var] = frozenset(),
    ) -> None:
        self.accesses = accesses
        self.leaks = leaks
        self.others = others
        self.known = known
        self.conditional = conditional


def summarize(body: st.Stmt, functions: Mapping[str, Function]) -> ScopeSummary:
    """The summary of a scope body."""
    effects: TensorEffects = tensor_effects(body, functions)
    accesses: dict[Var, Tag] = {}
    for var in effects.order:
        reads, writes = var in effects.reads, var in effects.writes
        if writes:
            accesses[var] = Tag.SOURCE_WRITE
        elif reads:
            accesses[var] = Tag.INPUT
    returns = any(type(stmt) is st.ReturnStmt for stmt in walk_stmts(body))
    known = effects.known and not returns and not leaves_its_loop(body)
    return ScopeSummary(accesses, effects.leaks, frozenset(effects.others), known, frozenset(effects.conditional))


def exposed_uses(function: Function) -> frozenset[Var]:
    """Variables that are used outside of kernel scopes, or in a kernel scope that does not assign them.

    A scalar that a scope computes and that is among these leaves the scope.
    """
    found: set[Var] = set()
    _expose(function.body, found)
    return frozenset(found)


def _expose(stmt: st.Stmt, found: set[Var]) -> None:
    if isinstance(stmt, (st.InCoreScopeStmt, st.SpmdScopeStmt)):
        inside: set[Var] = set()
        defined: set[Var] = set()
        for node in walk(stmt):
            if isinstance(node, Var):
                inside.add(node)
            elif isinstance(node, st.AssignStmt):
                defined.add(node.var)
        found |= inside - defined
        return
    children = stmt_children(stmt)
    if not children:
        read = stmt.value if isinstance(stmt, st.AssignStmt) else stmt
        found.update(n for n in walk(read) if isinstance(n, Var))
        return
    below = set(map(id, children))
    for child in children:
        _expose(child, found)
    # What the statement itself evaluates: conditions, bounds, initial values.
    for info in stmt.node_fields:
        value = getattr(stmt, info.name)
        for item in value if isinstance(value, list) else (value,):
            if isinstance(item, IRNode) and id(item) not in below:
                found.update(n for n in walk(item) if isinstance(n, Var))
