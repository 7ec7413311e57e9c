"""Which buffer each tensor variable of a function names: the one answer for passes, verifiers and code generators.

A buffer is known by the variable that first names it: a parameter, what ``tensor.create`` or any other op with a result
of its own makes, an output that the runtime allocates for a launch. A view (slice, reshape, transpose) is a tensor of
its own, too, since it is another object for the runtime; ``views`` tells of what. Everything else is another name:
copies, what a function returns of its arguments, assembled targets, carries and results of branches as far as all that
flows into them names one buffer.

``BufferNames`` is :class:`.roots.Roots` for a whole function: the same edges, the same solution, in linear time.

A carry that moves from buffer to buffer has no name in this sense. Still, within one iteration it is one buffer, and a
loop inside that carries it on must be seen to keep it. So behind the names there is a second, weaker answer, which is
found from inner loops to outer ones: ``representative``, one variable for all that are the same object *wherever they
are visible together*. Scalars and arrays take part in that one, by copies, carries and branches. The array that a loop
gives is never taken for the one that it began with: an array carry has storage of its own.
"""

from __future__ import annotations

from operator import is_
from typing import Any

from ..ir.call import Call
from ..ir.expr import Expr, GlobalVar, IterArg, TupleGetItemExpr, Var
from ..ir.program import Function
from ..ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    RuntimeScopeStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from ..ir.tree import stmt_children, yielded_values
from ..ir.type import TASK_ID_TYPE, ArrayType, ScalarType, TensorType
from .callees import Callees
from .roots import CALLS, Roots, Source

_JOINS: frozenset[type] = frozenset((IfStmt, ForStmt, WhileStmt))


def naming_facts(function: Function) -> list[Any]:
    """All that the names of a function depend on, beside the results of its callees: the same items, the same names.

    Attributes of launches and loops are not among it, nor are runtime scopes.
    """
    found: list[Any] = list(function.params)
    _note(function.body, found)
    return found


def _note(stmt: Any, found: list[Any]) -> None:
    cls = type(stmt)
    if cls is AssignStmt:
        value = stmt.value
        if type(value) in CALLS and type(value.op) is GlobalVar:
            found += (stmt.var, type(value), value.op.name, *value.args, None)
        else:
            found += (stmt.var, value)
    elif cls is SeqStmts:
        for inner in stmt.stmts:
            _note(inner, found)
    elif cls is RuntimeScopeStmt:
        _note(stmt.body, found)
    elif cls is YieldStmt or cls is ReturnStmt:
        found += (cls, *stmt.value)
    elif cls in _JOINS:
        found += (cls, *stmt.return_vars, None)
        if cls is not IfStmt:
            found += stmt.iter_args
        for body in stmt_children(stmt):
            _note(body, found)
            found.append(None)
    elif cls is not EvalStmt:
        found.append(stmt)  # a scope: a name of what is in it is rarely asked for
        for body in stmt_children(stmt):
            _note(body, found)


def same_facts(one: list[Any], other: list[Any]) -> bool:
    """Whether two functions have the same names."""
    return len(one) == len(other) and all(map(is_, one, other))


class BufferNames(Roots):
    """The buffers of a function in SSA form.

    ``views``: variable -> the call that makes it a view of its first operand. ``facts``: see :func:`naming_facts`.
    """

    def __init__(self, function: Function, callees: Callees, facts: list[Any] | None = None) -> None:
        self.facts = naming_facts(function) if facts is None else facts
        self.views: dict[Var, Call] = {}
        self._joined_vars: set[Var] = set()
        # Loops and branches with results, inner ones first, with the sources of what each of their bodies yields.
        self._joins: list[tuple[Any, list[list[list[Source]]]]] = []
        self._parent: dict[Var, Var] = {}
        self._trivial: set[IterArg] = set()
        self._viewed: dict[Var, Var | None] = {}
        super().__init__(function.body, callees)
        for stmt, yielded in self._joins:
            if type(stmt) is IfStmt:
                self._resolve_branch(stmt, yielded)
            else:
                self._resolve_loop(stmt, yielded[0])
        # Kept with the function, so that it must not hold the program.
        del self._callees, self._joins

    # --- answers ------------------------------------------------------------------------------------------------------

    def name(self, value: Any) -> Var | None:
        """The variable that a tensor's buffer is known by; None for what may be one buffer or another, and for what is
        no tensor variable."""
        if not isinstance(value, Var) or not isinstance(value.type, TensorType):
            return None
        return self.root(value)

    def representative(self, value: Any) -> Var | None:
        """One variable for all variables that are the same object wherever they are visible together; None for what is
        no variable."""
        return self._same([(value, False)]) if isinstance(value, Var) else None

    def is_trivial(self, loop: ForStmt | WhileStmt, slot: int) -> bool:
        """Whether a carry is the same object in all iterations, and behind the loop. A task id never is."""
        return loop.iter_args[slot] in self._trivial

    def viewed(self, var: Var) -> Var | None:
        """The buffer that a variable is a view of, through views of views; the buffer itself for one that is none."""
        name = self.name(var)
        seen: list[Var] = []
        while name is not None and name in self.views and name not in self._viewed:
            seen.append(name)
            name = self.name(self.views[name].args[0])
        if name in self._viewed:
            name = self._viewed[name]
        self._viewed.update(dict.fromkeys(seen, name))
        return name

    def candidates(self, value: Any) -> list[Var]:
        """The buffers that a tensor variable may be, or may be a part of: those that views are of, not the views."""
        if not isinstance(value, Var):
            return []
        found: dict[Var, None] = {}
        waiting = list(self._may_roots(value))
        while waiting:
            name = waiting.pop()
            view = self.views.get(name)
            whole = self.viewed(name) if view is not None else name
            if whole is not None:
                found[whole] = None
            elif view is not None and isinstance(view.args[0], Var):
                waiting += self._may_roots(view.args[0])
            else:
                found[name] = None
        return list(found)

    def sources(self, var: Var) -> list[Var]:
        """What a variable is another name or a view of, one step back on each path; nothing for a new buffer."""
        view = self.views.get(var)
        if view is not None:
            return [arg for arg in view.args[:1] if isinstance(arg, Var)]
        return [source for source, _ in self._sources.get(var, ()) if source is not None]

    def origins(self, var: Var, limit: int) -> list[Var] | None:
        """The variables that first name the buffers that a variable may be; None if it may be something else as well,
        or a part of one, or if more than ``limit`` variables are on the way to them."""
        found: dict[Var, None] = {}
        seen = {var}
        waiting = [var]
        while waiting:
            at = waiting.pop()
            if at in self.views:
                return None
            if at not in self._sources:
                found[at] = None
            for source, is_part in self._sources.get(at, ()):
                if source is None or is_part:
                    return None
                if source not in seen:
                    if len(seen) >= limit:
                        return None
                    seen.add(source)
                    waiting.append(source)
        return list(found)

    # --- what is collected --------------------------------------------------------------------------------------------

    def _stmt(self, stmt: Any) -> None:
        if type(stmt) not in _JOINS or not stmt.return_vars:
            super()._stmt(stmt)
            return
        self._joined_vars.update(stmt.return_vars)
        if type(stmt) is not IfStmt:
            self._joined_vars.update(stmt.iter_args)
        super()._stmt(stmt)
        bodies = (stmt.then_body, stmt.else_body) if type(stmt) is IfStmt else (stmt.body,)
        self._joins.append((stmt, [self._yielded(body) for body in bodies]))

    def _expr(self, e: Any) -> None:
        """What is read and written is not asked here."""

    def _yielded(self, body: Stmt | None) -> list[list[Source]]:
        return [self._of(value) for value in yielded_values(body)]

    def _define(self, var: Var, value: Expr) -> None:
        kind = var.type
        if isinstance(kind, TensorType):
            if var not in self._joined_vars and self._is_named_here(var, value):
                return
        elif isinstance(kind, (ScalarType, ArrayType)):
            self._define_value(var, value)
            return
        super()._define(var, value)

    def _is_named_here(self, var: Var, value: Expr) -> bool:
        """Whether a variable names a buffer of its own. (It then has no sources.)"""
        found = self._of(value)
        if any(source is None and unknown for source, unknown in found):
            return False
        if any(source is None for source, _ in found):
            if type(value) is TupleGetItemExpr:
                found[:] = [(var, False)]  # taken out again it is the same buffer
            return True
        if type(value) is Call and any(is_view for _, is_view in found):
            self.views[var] = value
            return True
        return False

    def _define_value(self, var: Var, value: Expr) -> None:
        """A scalar or array: another name of what is copied, or else a value of its own."""
        if var not in self._joined_vars:
            if isinstance(value, Var):
                self._sources.setdefault(var, []).append((value, False))
        elif isinstance(var.type, ScalarType) or type(var) is IterArg:
            self._sources.setdefault(var, []).append((value if isinstance(value, Var) else None, False))

    # --- what is the same object --------------------------------------------------------------------------------------

    def _same(self, sources: list[Source]) -> Var | None:
        """The representative of a value that is a copy of these."""
        if len(sources) != 1 or sources[0][0] is None or sources[0][1]:
            return None
        found = self._find(sources[0][0])
        root, is_view = self._meet([(found, False)]) or (None, False)
        return root if isinstance(root, Var) and not is_view else found

    def _find(self, var: Var) -> Var:
        path = []
        while (above := self._above(var)) is not None:
            path.append(var)
            var = above
        self._parent.update(dict.fromkeys(path, var))
        return var

    def _above(self, var: Var) -> Var | None:
        found = self._parent.get(var)
        if found is not None or var in self._joined_vars:
            return found
        sources = self._sources.get(var, ())
        return sources[0][0] if len(sources) == 1 and not sources[0][1] else None

    def _resolve_branch(self, stmt: IfStmt, yielded: list[list[list[Source]]]) -> None:
        for var, one, other in zip(stmt.return_vars, *yielded, strict=False):
            found = self._same(one)
            if found is not None and found is self._same(other) and not isinstance(var.type, ArrayType):
                self._parent[var] = found

    def _resolve_loop(self, loop: Any, yielded: list[list[Source]]) -> None:
        args = loop.iter_args
        start = [self.representative(arg.initValue) for arg in args]
        stays = self._staying(args, start, [self._same(sources) for sources in yielded] or list(args))
        for arg, var, first, kept in zip(args, loop.return_vars, start, stays, strict=False):
            if not kept:
                continue
            self._trivial.add(arg)
            if first is not None:
                self._parent[arg] = first
            if not isinstance(var.type, ArrayType):
                self._parent[var] = arg if first is None else first

    def _staying(self, args: Any, start: list[Var | None], after: list[Var | None]) -> list[bool]:
        """Which slots keep what they start with. Slots that swap do, if both start with the same."""
        slot_of = {arg: i for i, arg in enumerate(args)}
        stays = [arg.type is not TASK_ID_TYPE for arg in args]
        followers: dict[int, list[int]] = {}
        for i, value in enumerate(after[: len(args)]):
            source = slot_of.get(value) if value is not None else None
            if value is None:
                stays[i] = False
            elif source is None:
                stays[i] = stays[i] and value is start[i]
            elif source != i:
                stays[i] = stays[i] and start[i] is not None and start[i] is start[source]
                followers.setdefault(source, []).append(i)
        moving = [i for i, kept in enumerate(stays) if not kept]
        while moving:
            for i in followers.get(moving.pop(), ()):
                if stays[i]:
                    stays[i] = False
                    moving.append(i)
        return stays


__all__ = ["BufferNames", "naming_facts", "same_facts"]
