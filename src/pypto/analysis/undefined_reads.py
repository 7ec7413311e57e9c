"""Which variables may be read where they have no value, when what flags say is taken into account.

A *flag* is a variable that is assigned True or False. A lowered ``break`` or ``continue`` leaves code such as ::

    if a > 0:
        if b > 0:
            break__tmp_v0 = True      # nothing is assigned to `t`
        else:
            t = a
    else:
        t = b
    if not break__tmp_v0:
        use(t)                        # has a value

All other conditions may hold or not. From each read of a variable in question the search goes backwards along the
paths that lead there, with what the flags must be for the path to be taken. It ends where the variable is assigned and
where a flag is assigned another value; a variable is undefined for a read if the search reaches the beginning.

Meant for the few variables for which a plain look finds such a path. Cost: for each of them the places that may be in
front of a read, times the sets of flags that matter there; bounded, and a search that gives up counts as a path.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ..ir import expr as x
from ..ir import stmt as st
from ..ir.expr import ConstBool, Expr, Var
from ..ir.program import Function
from ..ir.recursion import deep_recursion
from ..ir.stmt import Stmt
from ..ir.traversal import attrs_expressions, walk
from .liveness import runs_at_least_once

_MAX_CASES = 16  # alternatives that a condition is split into
_STEPS = 32  # a search gives up after so many steps for each place of the function

Flags = Mapping[Var, bool]
_ANY: tuple[Flags, ...] = ({},)


class _Place:
    """A place in a function: what happens there, and the places that may be in front of it."""

    __slots__ = ("before", "cases", "defines", "values")

    def __init__(self, *before: _Place | None) -> None:
        self.before = [p for p in before if p is not None]
        self.defines: Collection[Var] = ()
        self.values: dict[Var, bool | None] = {}  # flags that are assigned; None: a value that is not known
        self.cases: Sequence[Flags] = _ANY  # the flags have the values of one of these


def undefined_reads(function: Function, variables: Collection[Var], entered: Collection[Stmt]) -> dict[Var, None]:
    """Those of ``variables`` that may be read without a value. ``entered``: loops that have an iteration."""
    paths = _Paths(function, dict.fromkeys(variables), entered)
    with deep_recursion():
        paths.run()
    return dict.fromkeys(var for var, places in paths.reads.items() if paths.reaches_start(var, places))


class _Paths:
    """The places of one function."""

    def __init__(self, function: Function, variables: dict[Var, None], entered: Collection[Stmt]) -> None:
        self._function = function
        self._variables = variables
        self._entered = entered
        self._flags = _flags(function)
        self._here: _Place | None = None  # None: not reached
        self._size = 0
        self._start: _Place | None = None
        self._loops: list[tuple[list[_Place], list[_Place]]] = []  # the breaks and continues of the open ones
        self.reads: dict[Var, list[_Place]] = {}

    def run(self) -> None:
        self._start = self._step()
        self._define(self._function.params)
        self._stmt(self._function.body)

    # --- the search ---------------------------------------------------------------------------------------------------

    def reaches_start(self, var: Var, reads: Sequence[_Place]) -> bool:
        """Whether a path leads from the beginning to one of these places on which a variable gets no value."""
        seen: dict[_Place, list[Flags]] = {}
        stack: list[tuple[_Place, Flags]] = [(place, {}) for place in reversed(reads)]
        steps = _STEPS * self._size
        while stack:
            here, flags = stack.pop()
            known = seen.setdefault(here, [])
            if any(old.items() <= flags.items() for old in known):
                continue
            known.append(flags)
            steps -= 1
            if not steps:
                return True
            if var in here.defines:
                continue
            before = _before(here, flags)
            if before and here is self._start:
                return True
            stack += [(place, case) for place in here.before for case in before]
        return False

    # --- places -------------------------------------------------------------------------------------------------------

    def _step(self, *others: _Place | None) -> _Place:
        """A new place behind this one, and behind others."""
        self._size += 1
        self._here = _Place(self._here, *others)
        return self._here

    def _join(self, *places: _Place | None) -> None:
        self._here = None
        if any(place is not None for place in places):
            self._step(*places)

    def _assume(self, cases: Sequence[Flags]) -> None:
        if self._here is not None and cases is not _ANY:
            self._step().cases = cases

    def _define(self, variables: Sequence[Var], value: Expr | None = None) -> None:
        flags = [var for var in variables if var in self._flags]
        wanted = [var for var in variables if var in self._variables]
        if self._here is None or not (flags or wanted):
            return
        place = self._step()
        place.defines = wanted
        place.values = dict.fromkeys(flags, value.value if type(value) is ConstBool else None)

    def _read(self, *expressions: Expr) -> None:
        if self._here is None:
            return
        for e in expressions:
            for node in walk(e):
                if isinstance(node, Var) and node in self._variables:
                    self.reads.setdefault(node, []).append(self._here)

    # --- statements ---------------------------------------------------------------------------------------------------

    def _stmt(self, stmt: Any) -> None:
        if self._here is not None:
            method = _METHODS.get(type(stmt))
            if method is not None:
                method(self, stmt)

    def _seq(self, stmt: st.SeqStmts) -> None:
        for inner in stmt.stmts:
            self._stmt(inner)

    def _assign(self, stmt: st.AssignStmt) -> None:
        self._read(stmt.value)
        self._define([stmt.var], stmt.value)

    def _eval(self, stmt: st.EvalStmt) -> None:
        self._read(stmt.expr)

    def _yield(self, stmt: st.YieldStmt) -> None:
        self._read(*stmt.value)

    def _return(self, stmt: st.ReturnStmt) -> None:
        self._read(*stmt.value)
        self._here = None

    def _break(self, _stmt: Stmt) -> None:
        self._leave(0)

    def _continue(self, _stmt: Stmt) -> None:
        self._leave(1)

    def _leave(self, which: int) -> None:
        if self._loops and self._here is not None:
            self._loops[-1][which].append(self._here)
        self._here = None

    def _if(self, stmt: st.IfStmt) -> None:
        self._read(stmt.condition)
        start = self._here
        ends = []
        for body, holds in ((stmt.then_body, True), (stmt.else_body, False)):
            self._here = start
            self._assume(self._cases(stmt.condition, holds))
            if body is not None:
                self._stmt(body)
            ends.append(self._here)
        self._join(*ends)
        self._define(stmt.return_vars)

    def _loop(self, stmt: Any) -> None:
        counted = type(stmt) is st.ForStmt
        if counted:
            self._read(stmt.start, stmt.stop, stmt.step, *attrs_expressions(stmt.attrs))
        self._read(*(arg.initValue for arg in stmt.iter_args))
        once = stmt in self._entered or (counted and runs_at_least_once(stmt))
        # The first iteration and the others begin at places of their own: a loop that is entered ends behind others.
        _, first = self._head(stmt)
        self._here = None
        again, other = self._head(stmt)
        breaks: list[_Place] = []
        continues: list[_Place] = []
        self._loops.append((breaks, continues))
        self._join(first, other)
        if not counted:
            self._assume(self._cases(stmt.condition, True))
        self._define([stmt.loop_var] if counted else [])
        self._stmt(stmt.body)
        self._loops.pop()
        again.before = [p for p in (self._here, *continues) if p is not None]
        self._join(None if once else first, other)
        if not counted:
            self._assume(self._cases(stmt.condition, False))
        self._join(self._here, *breaks)
        self._define(stmt.return_vars)

    def _head(self, stmt: Any) -> tuple[_Place, _Place]:
        """Places where an iteration may begin: the first of them, and the last."""
        first = self._step()
        self._define(stmt.iter_args)
        if type(stmt) is st.WhileStmt:
            self._read(stmt.condition)
        assert self._here is not None
        return first, self._here

    def _scope(self, stmt: Any) -> None:
        task_id = stmt.attrs.get("task_id_var") if stmt.attrs else None
        self._read(*(e for e in attrs_expressions(stmt.attrs) if e is not task_id))
        if type(stmt) is st.SpmdScopeStmt:
            self._read(stmt.core_num)
        elif type(stmt) is st.CommDomainScopeStmt:
            self._read(*stmt.slots)
        self._stmt(stmt.body)
        if task_id is not None:
            self._define([task_id])

    # --- conditions ---------------------------------------------------------------------------------------------------

    def _cases(self, condition: Expr, holds: bool) -> Sequence[Flags]:
        """The cases of flags in which a condition may have a value; none if it never has."""
        kind = type(condition)
        if kind is ConstBool:
            return _ANY if condition.value is holds else ()  # type: ignore[attr-defined]
        if isinstance(condition, Var):
            return ({condition: holds},) if condition in self._flags else _ANY
        if kind is x.Not:
            return self._cases(condition.operand, not holds)  # type: ignore[attr-defined]
        if kind is not x.And and kind is not x.Or:
            return _ANY
        left, right = (self._cases(e, holds) for e in (condition.left, condition.right))  # type: ignore[attr-defined]
        if kind is (x.Or if holds else x.And):
            either = [*left, *right]
            return _ANY if {} in either or len(either) > _MAX_CASES else either
        if left is _ANY or right is _ANY:
            return right if left is _ANY else left
        both = [case for a in left for b in right if (case := _and(a, b)) is not None]
        return both if len(both) <= _MAX_CASES else left


def _flags(function: Function) -> dict[Var, None]:
    """The variables that are assigned True or False."""
    found: dict[Var, None] = {}
    for node in walk(function.body):
        if type(node) is st.AssignStmt and type(node.value) is ConstBool:
            found[node.var] = None
    return found


def _and(a: Flags, b: Flags) -> Flags | None:
    """Both; None if they exclude each other."""
    if any(b.get(flag, value) is not value for flag, value in a.items()):
        return None
    return {**a, **b}


def _before(place: _Place, flags: Flags) -> list[Flags]:
    """The cases of flags in front of a place for them to be ``flags`` behind it."""
    if place.values:
        rest = {}
        for flag, value in flags.items():
            if flag not in place.values:
                rest[flag] = value
            elif place.values[flag] is (not value):
                return []
        return [rest]
    if place.cases is _ANY:
        return [flags]
    return [case for other in place.cases if (case := _and(flags, other)) is not None]


_METHODS: dict[type, Callable[[_Paths, Any], None]] = {
    st.SeqStmts: _Paths._seq,
    st.AssignStmt: _Paths._assign,
    st.EvalStmt: _Paths._eval,
    st.YieldStmt: _Paths._yield,
    st.ReturnStmt: _Paths._return,
    st.BreakStmt: _Paths._break,
    st.ContinueStmt: _Paths._continue,
    st.IfStmt: _Paths._if,
    st.ForStmt: _Paths._loop,
    st.WhileStmt: _Paths._loop,
    **dict.fromkeys(st.SCOPE_CLASSES, _Paths._scope),
}


__all__ = ["undefined_reads"]
