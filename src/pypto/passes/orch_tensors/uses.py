"""Where the variables of a function are used, in which way, and which loops stand around."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...analysis.callees import Callees
from ...ir.expr import Call, Expr, Submit, TupleGetItemExpr, Var
from ...ir.node import Kind, Role
from ...ir.program import Function
from ...ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    InlineStmt,
    ReturnStmt,
    ScopeStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from ...ir.traversal import attrs_expressions, child_fields, walk
from ...verify.inventory import MadeOnce

# How a variable is used: as an argument of an op or of a launch, as the whole value of an assignment or the tuple an
# element is taken of, as the initial value of a carry, as what a body yields, as a result, in an attribute of a call.
ARGUMENT, NAMED, INITIAL, YIELDED, RETURNED, MENTIONED, OTHER = range(7)


class Use:
    """One use. ``position``: that of the statement, in reading order (of a loop or branch that gets a yielded value:
    of the yield). ``node``: the call, or the loop or branch; ``index``: the argument, or the slot."""

    __slots__ = ("index", "kind", "node", "position", "stmt")

    def __init__(self, position: int, kind: int, stmt: Any, node: Any = None, index: int = -1) -> None:
        self.position = position
        self.kind = kind
        self.stmt = stmt
        self.node = node
        self.index = index

    def is_(self, kind: int, node: Any, index: int) -> bool:
        return self.kind == kind and self.node is node and self.index == index


class Uses:
    """The uses of the variables of one function in SSA form. One walk.

    ``of``: variable -> its uses, in reading order; ``defined``: variable -> position of the statement that defines it,
    -1 for parameters; ``assigned``: variable -> its assignment; ``extent``: loop -> its first and last position;
    ``loop_of``: statement -> the innermost loop around it; ``opaque``: whether there is text of another language.
    """

    def __init__(self, function: Function) -> None:
        self.of: dict[Var, list[Use]] = {}
        self.defined: dict[Var, int] = dict.fromkeys(function.params, -1)
        self.assigned: dict[Var, AssignStmt] = {}
        self.extent: dict[Stmt, tuple[int, int]] = {}
        self.loop_of: dict[Stmt, Any] = {}
        self.opaque = False
        self._position = 0
        self._loop: Any = None
        self._joins: list[Any] = []
        self._stmt(function.body)

    def inside(self, position: int, loop: Stmt | None) -> bool:
        """Whether a position is in the body of a loop (None: of the function)."""
        if loop is None:
            return True
        first, last = self.extent[loop]
        return first < position <= last

    # --- the walk -----------------------------------------------------------------------------------------------------

    def _use(self, e: Expr, kind: int, stmt: Any, node: Any = None, index: int = -1) -> None:
        if isinstance(e, Var):
            self.of.setdefault(e, []).append(Use(self._position, kind, stmt, node, index))
            return
        for inner in walk(e):
            if isinstance(inner, Var):
                self.of.setdefault(inner, []).append(Use(self._position, OTHER, stmt))

    def _others(self, items: Iterable[Expr], stmt: Any, kind: int = OTHER, node: Any = None) -> None:
        for e in items:
            self._use(e, kind, stmt, node)

    def _value(self, value: Any, stmt: Any) -> None:
        cls = type(value)
        if cls is Call or cls is Submit:
            for i, arg in enumerate(value.args):
                self._use(arg, ARGUMENT, stmt, value, i)
            self._others(attrs_expressions(value.attrs), stmt, MENTIONED, value)
            if cls is Submit:
                self._others([e for e in (*value.deps, value.core_num, value.predicate) if e is not None], stmt)
        elif cls is TupleGetItemExpr:
            self._use(value.tuple, NAMED, stmt, value, value.index)
        else:
            self._use(value, NAMED, stmt)

    def _stmt(self, stmt: Any) -> None:
        cls = type(stmt)
        if cls is SeqStmts:
            for inner in stmt.stmts:
                self._stmt(inner)
            return
        self._position += 1
        self.loop_of[stmt] = self._loop
        if cls is AssignStmt:
            self._value(stmt.value, stmt)
            self.defined[stmt.var] = self._position
            self.assigned[stmt.var] = stmt
        elif cls is EvalStmt:
            self._value(stmt.expr, stmt)
        elif cls is YieldStmt:
            for i, value in enumerate(stmt.value):
                self._use(value, YIELDED, stmt, self._joins[-1] if self._joins else None, i)
        elif cls is ReturnStmt:
            self._others(stmt.value, stmt, RETURNED)
        elif cls is IfStmt:
            self._others([stmt.condition], stmt)
            self._joins.append(stmt)
            for body in (stmt.then_body, stmt.else_body):
                if body is not None:
                    self._stmt(body)
            self._joins.pop()
            self._define(stmt.return_vars)
        elif cls is ForStmt or cls is WhileStmt:
            self._enter(stmt)
        else:
            self.opaque = self.opaque or cls is InlineStmt
            self._others(_own_expressions(stmt), stmt)
            if isinstance(stmt, ScopeStmt):
                self._stmt(stmt.body)

    def _enter(self, loop: Any) -> None:
        first, outer = self._position, self._loop
        for i, arg in enumerate(loop.iter_args):
            self._use(arg.initValue, INITIAL, loop, loop, i)
            self.defined[arg] = first
        if type(loop) is ForStmt:
            self._others([loop.start, loop.stop, loop.step, *attrs_expressions(loop.attrs)], loop)
        else:
            self._others([loop.condition], loop)
        self._loop = loop
        self._joins.append(loop)
        self._stmt(loop.body)
        self._joins.pop()
        self._loop = outer
        self.extent[loop] = first, self._position
        self._define(loop.return_vars)

    def _define(self, variables: Iterable[Var]) -> None:
        self._position += 1
        self.defined.update((var, self._position) for var in variables)


def _own_expressions(stmt: Stmt) -> list[Any]:
    found: list[Any] = []
    for info in child_fields(type(stmt)):
        value = getattr(stmt, info.name)
        if info.kind is Kind.ATTRS:
            found += attrs_expressions(value)
        elif info.role is Role.USE and value is not None and not isinstance(value, Stmt):
            found += value if info.kind is Kind.LIST else [value]
    return found


uses_of: MadeOnce[Uses] = MadeOnce(Uses)


class Facts:
    """The uses of a function's variables and the buffers that they name."""

    def __init__(self, function: Function, callees: Callees) -> None:
        self.function = function
        self.callees = callees
        self.uses = uses_of(function)
        self.names = callees.names(function)
        self._users: dict[Var, list[Var]] | None = None

    def other_names(self, roots: Iterable[Var], but: Iterable[Var] = ()) -> Iterator[Var]:
        """These variables and all that may name the same buffers or parts of them, except through those in ``but``."""
        if self._users is None:
            self._users = {}
            for var in self.uses.defined:
                for source in self.names.sources(var):
                    self._users.setdefault(source, []).append(var)
        found = dict.fromkeys(roots)
        closed = set(but)
        waiting = list(found)
        yield from waiting
        while waiting:
            for user in self._users.get(waiting.pop(), ()):
                if user not in found and user not in closed:
                    found[user] = None
                    waiting.append(user)
                    yield user


__all__ = [
    "ARGUMENT",
    "INITIAL",
    "MENTIONED",
    "NAMED",
    "OTHER",
    "RETURNED",
    "YIELDED",
    "Facts",
    "Use",
    "Uses",
    "uses_of",
]
