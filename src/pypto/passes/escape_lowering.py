"""Takes the escapes of one loop out of its body: flags, branches and guards (the rules of CtrlFlowTransform).

A list of statements is lowered at its first statement S that contains an escape; R is what follows S in the list.
The *values* of a list are what its end yields: results of the branch that it is the body of, then one value a carry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..analysis.escapes import carried_at_escapes
from ..analysis.occurrences import Occurrences
from ..diag.errors import InternalError
from ..ir import scalar
from ..ir.expr import Call, ConstBool, Expr, Var
from ..ir.names import base_name, build_name
from ..ir.node import EMPTY_LIST, FrozenList
from ..ir.span import Span
from ..ir.stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    IfStmt,
    RuntimeScopeStmt,
    ScopeStmt,
    SplitAivScopeStmt,
    SpmdScopeStmt,
    Stmt,
    YieldStmt,
    attach_leading_comments,
    seq,
)
from ..ir.traversal import own_type_expressions, walk
from ..ir.tree import flatten_to_stmts
from ..ir.type import BOOL_TYPE, ArrayType, Type
from .any_value import any_value
from .errors import PassError
from .parsed_form import without_empty_else

# What a list or statement does to its loop, as a set of bits.
BREAKS, CONTINUES, ALWAYS = 1, 2, 4

_Values = list[Expr]
_Lowered = tuple[list[Stmt], _Values]


class Names:
    """Names of new variables: one counter for all of a function."""

    def __init__(self, occurrences: Occurrences) -> None:
        self._used = {var.name_hint for var in occurrences.first}
        self._next = 0

    def var(self, base: str, role: str, kind: Type, span: Span) -> Var:
        """A variable ``<base>__<role>_vN`` with the next number."""
        while True:
            name = build_name(base_name(base), None, role, self._next)
            self._next += 1
            if name not in self._used:
                self._used.add(name)
                return Var(name, kind, span)


class BodyLowering:
    """Lowers the escapes in the body of one loop, whose inner loops have none left."""

    def __init__(self, loop: Any, names: Names, occurrences: Occurrences, original: Stmt) -> None:
        self._loop = loop
        self._names = names
        self._occurrences = occurrences
        self._original = original  # the loop as ``occurrences`` knows it
        stmts, self._yield = split_yield(flatten_to_stmts(loop.body))
        operands = list(self._yield.value) if self._yield is not None and loop.iter_args else []
        self._carries = list(loop.iter_args) if operands else []
        if len(operands) != len(self._carries):
            raise InternalError(f"a loop with {len(loop.iter_args)} iter_args yields {len(operands)} values")
        self._stmts = stmts
        self._operands: _Values = operands
        self._at_escape = carried_at_escapes(loop) if operands else {}
        self._kinds: dict[Stmt, int] = {}  # what each branch and scope does to the loop
        self.kind = self._list_kind(stmts)
        self._flag: Var | None = None  # set: the loop was left
        self._skip: Var | None = None  # set: the rest of the iteration is left out
        self._marks_skips = False  # whether somebody around asks if an iteration was cut short
        self._comments: list[str] = []  # of removed statements, for the branch around them

    def run(self, flag: Var | None) -> tuple[list[Stmt], YieldStmt | None]:
        """The statements of the body and the yield that ends it; ``flag`` is set where the loop is left."""
        self._flag = flag
        stmts, values = self._list(self._stmts, 0, self._operands, [])
        if self._skip is not None:
            stmts.insert(0, AssignStmt(self._skip, ConstBool(False, self._loop.span), self._loop.span))
        if self._comments and stmts:
            stmts[-1] = _add_comments(stmts[-1].replace(), self._comments)
        if not values:
            return stmts, None
        assert self._yield is not None
        return stmts, self._yield.replace(value=FrozenList(values))

    # --- what statements do to the loop -------------------------------------------------------------------------------

    def _kind(self, stmt: Any) -> int:
        cls = type(stmt)
        if cls is BreakStmt:
            return BREAKS | ALWAYS
        if cls is ContinueStmt:
            return CONTINUES | ALWAYS
        if cls is not IfStmt and not isinstance(stmt, ScopeStmt):
            return 0
        found = self._kinds.get(stmt)
        if found is None:
            if cls is IfStmt:
                then = self._list_kind(flatten_to_stmts(stmt.then_body))
                other = 0 if stmt.else_body is None else self._list_kind(flatten_to_stmts(stmt.else_body))
                found = (then | other) & ~ALWAYS | (then & other & ALWAYS)
            else:
                found = self._list_kind(flatten_to_stmts(stmt.body))
            self._kinds[stmt] = found
        return found

    def _list_kind(self, stmts: Sequence[Stmt]) -> int:
        found = 0
        for stmt in stmts:
            found |= self._kind(stmt)
            if found & ALWAYS:
                break
        return found

    # --- lists --------------------------------------------------------------------------------------------------------

    def _list(self, stmts: Sequence[Stmt], start: int, tail: _Values, results: list[Var]) -> _Lowered:
        """Lower ``stmts[start:]``. ``tail``: what its normal end yields, for ``results`` first, then for carries."""
        for index in range(start, len(stmts)):
            stmt: Any = stmts[index]
            kind = self._kind(stmt)
            if not kind:
                continue
            before = list(stmts[start:index])
            rest = _Rest(stmts, index + 1, tail, results)
            if type(stmt) is IfStmt:
                made, values = self._if(stmt, kind, rest)
            elif isinstance(stmt, ScopeStmt):
                made, values = self._scope(stmt, kind, rest)
            else:
                made, values = self._escape(stmt, results)
            return before + made, values
        made = list(stmts[start:])
        values = list(tail[: len(results)])
        for operand in tail[len(results) :]:
            if not isinstance(operand, Var):
                var = self._names.var("yield", "tmp", operand.type, operand.span)
                made.append(AssignStmt(var, operand, operand.span))
                operand = var
            values.append(operand)
        return made, values

    def _escape(self, stmt: Stmt, results: list[Var]) -> _Lowered:
        values = [*(self._undefined(var, stmt.span) for var in results), *self._at_escape.get(stmt, self._carries)]
        flag = self._flag if type(stmt) is BreakStmt else self._skip if self._marks_skips else None
        if flag is None:
            self._comments += stmt.leading_comments
            return [], values
        made = AssignStmt(flag, ConstBool(True, stmt.span), stmt.span)
        return [_add_comments(made, stmt.leading_comments)], values

    # --- branches -----------------------------------------------------------------------------------------------------

    def _if(self, stmt: IfStmt, kind: int, rest: _Rest) -> _Lowered:
        then, other = _branch_list(stmt.then_body), _branch_list(stmt.else_body)
        then_kind, other_kind = self._list_kind(then[0]), self._list_kind(other[0])
        if kind & ALWAYS:
            made = [self._list(part[0], 0, rest.tail, rest.results) for part in (then, other)]
        elif then_kind & ALWAYS and not other_kind and not stmt.return_vars:
            left = self._list(then[0], 0, rest.tail, rest.results)
            made = [left, self._joined(other[0], rest)]
        elif other_kind & ALWAYS and not then_kind and not stmt.return_vars:
            right = self._list(other[0], 0, rest.tail, rest.results)
            made = [self._joined(then[0], rest), right]
        else:
            return self._partly(stmt, kind, then, other, rest)
        phis = self._phis(rest.results, stmt.span)
        bare = bool(kind & BREAKS) and not phis
        bodies = [self._body(stmts, values, stmt.span, bare) for stmts, values in made]
        return [self._rebuilt(stmt, bodies, phis)], list(phis)

    def _joined(self, stmts: Sequence[Stmt], rest: _Rest) -> _Lowered:
        behind, values = self._list(rest.stmts, rest.start, rest.tail, rest.results)
        return [*stmts, *behind], values

    def _partly(self, stmt: IfStmt, kind: int, then: _Branch, other: _Branch, rest: _Rest) -> _Lowered:
        """A branch that some paths leave by an escape and some by its end, or that has results of its own."""
        results, copies = self._branch_results(stmt)
        leaving = self._leaving(stmt, then[0], other[0])
        for var in leaving:
            result = self._names.var(var.name_hint, "phi", var.type, var.span)
            results.append(result)
            copies.append(AssignStmt(var, result, var.span))
        guarded = bool(copies) or self._needs_guard(rest)
        outer = self._mark_skips(kind, guarded, stmt.span)
        made = []
        for part, part_yield in (then, other):
            tail = [*(part_yield.value if part_yield is not None else ()), *leaving, *self._carries]
            made.append(self._list(part, 0, tail, results))
        self._marks_skips = outer
        phis = self._phis([], stmt.span)
        bodies = [self._body(stmts, values, stmt.span, False) for stmts, values in made]
        branch = self._rebuilt(stmt, bodies, [*results, *phis])
        if not guarded:
            return [branch], []
        behind, values = self._guard(kind, copies, rest, list(phis), stmt.span)
        return [branch, *behind], values

    def _leaving(self, stmt: IfStmt, then: Sequence[Stmt], other: Sequence[Stmt]) -> list[Var]:
        """The variables that every path to the end of a branch assigns, where they may be read behind it.

        The branch gets results, one a carry, and nothing else leaves a branch that has results.
        """
        if not self._carries or stmt.return_vars:
            return []
        seen = self._occurrences
        ends = _assigned(then), _assigned(other)
        inside = {var for part in ends for var in part or ()}
        return [
            var
            for var in _on_all_paths(*ends) or ()
            if seen.last_use[var] > seen.definitions[var][0]
            # A tile whose extent the branch computes has no name outside.
            and not any(node in inside for e in own_type_expressions(var) for node in walk(e))
            and undefined_value(var.type, stmt.span) is not None
        ]

    def _branch_results(self, stmt: IfStmt) -> tuple[list[Var], list[Stmt]]:
        """The results of a branch, and what to assign behind it.

        On a path that escapes a result gets some value that nobody may see. So a variable that may be read after such a
        path is assigned behind the guard, from a result of its own.
        """
        results: list[Var] = []
        copies: list[Stmt] = []
        for var in stmt.return_vars:
            defined = self._occurrences.definitions.get(var, ())
            if len(defined) > 1 or self._occurrences.occurs_outside(var, self._original):
                result = self._names.var(var.name_hint, "phi", var.type, var.span)
                copies.append(AssignStmt(var, result, var.span))
            else:
                result = var
            results.append(result)
        return results, copies

    def _rebuilt(self, stmt: IfStmt, bodies: Sequence[Stmt | None], results: Sequence[Var]) -> IfStmt:
        new: IfStmt = stmt.replace(then_body=bodies[0], else_body=bodies[1], return_vars=FrozenList(results))
        new = without_empty_else(new)
        comments, self._comments = self._comments, []
        _add_comments(new, comments)
        return new

    def _body(self, stmts: list[Stmt], values: _Values, span: Span, bare: bool) -> Stmt | None:
        if values:
            stmts = [*stmts, YieldStmt(FrozenList(values), span)]
        elif bare:  # the public form: branches of a lowered break of a loop without carries end so
            stmts = [*stmts, YieldStmt(EMPTY_LIST, span)]
        return seq(stmts, span)

    # --- scopes -------------------------------------------------------------------------------------------------------

    def _scope(self, stmt: Any, kind: int, rest: _Rest) -> _Lowered:
        if isinstance(stmt, (SpmdScopeStmt, SplitAivScopeStmt)):
            word = "break" if kind & BREAKS else "continue"
            where = "an spmd region" if isinstance(stmt, SpmdScopeStmt) else "a split_aiv region"
            raise PassError(
                f"'{word}' inside {where} can't leave a loop outside it: its blocks run side by side",
                self._first_escape(stmt).span,
                labels=((self._loop.span, "the loop"), (stmt.span, "the region")),
                hint="Decide in front of the region: put it behind the `if` that escapes",
            )
        always = bool(kind & ALWAYS)
        guarded = not always and self._needs_guard(rest)
        outer = self._mark_skips(kind, guarded, stmt.span)
        stmts, values = self._list(flatten_to_stmts(stmt.body), 0, list(self._carries), [])
        self._marks_skips = outer
        scope = stmt.replace(body=seq(stmts, stmt.body.span))
        if always:
            return [scope], [*(self._undefined(var, stmt.span) for var in rest.results), *values]
        if not guarded:
            return [scope], []
        behind, values = self._guard(kind, [], rest, values, stmt.span)
        return [scope, *behind], values

    def _first_escape(self, stmt: Any) -> Stmt:
        while True:
            bodies = [stmt.then_body, stmt.else_body] if type(stmt) is IfStmt else [stmt.body]
            inner = [s for body in bodies if body is not None for s in flatten_to_stmts(body)]
            stmt = next(s for s in inner if self._kind(s))
            if isinstance(stmt, (BreakStmt, ContinueStmt)):
                return stmt

    # --- guards -------------------------------------------------------------------------------------------------------

    def _needs_guard(self, rest: _Rest) -> bool:
        return rest.start < len(rest.stmts) or bool(rest.results) or bool(self._carries)

    def _mark_skips(self, kind: int, guarded: bool, span: Span) -> bool:
        """Ask the ``continue`` statements of a part to set a flag; gives what was asked before."""
        before = self._marks_skips
        if guarded and kind & CONTINUES:
            self._marks_skips = True
            if self._skip is None:
                self._skip = self._names.var("continue", "tmp", BOOL_TYPE, span)
        return before

    def _guard(self, kind: int, copies: list[Stmt], rest: _Rest, carried: _Values, span: Span) -> _Lowered:
        """R where no escape was taken; ``carried`` is what the carries go on with where one was."""
        flags = [
            flag for bit, flag in ((BREAKS, self._flag), (CONTINUES, self._skip)) if kind & bit and flag is not None
        ]
        condition: Expr = scalar.not_(flags[0], span)
        for flag in flags[1:]:
            condition = scalar.and_(condition, scalar.not_(flag, span), span)
        stmts, values = self._joined(copies, rest)
        phis = self._phis(rest.results, span)
        other = None
        if phis:
            other = YieldStmt(FrozenList([*(self._undefined(var, span) for var in rest.results), *carried]), span)
        body = self._body(stmts, values, span, False)
        comments, self._comments = self._comments, []
        return [_add_comments(IfStmt(condition, body, other, FrozenList(phis), span), comments)], list(phis)

    def _phis(self, results: Sequence[Var], span: Span) -> list[Var]:
        return [self._names.var(var.name_hint, "phi", var.type, span) for var in (*results, *self._carries)]

    def _undefined(self, var: Var, span: Span) -> Expr:
        value = undefined_value(var.type, span)
        if value is None:
            raise PassError(
                f"an `if` with the result '{base_name(var.name_hint)}' of type {var.type} can't be left by an escape",
                span,
                labels=((var.span, "the result"),),
                hint="Assign to the name in both branches instead of yielding to it",
            )
        return value


_Assigned = dict[Var, None] | None


def _assigned(stmts: Sequence[Stmt]) -> _Assigned:
    """The variables that each path to the end of a list assigns; None if no path comes to its end."""
    found: dict[Var, None] = {}
    for stmt in stmts:
        inside: _Assigned = {}
        if isinstance(stmt, AssignStmt):
            inside = {stmt.var: None}
        elif isinstance(stmt, IfStmt):
            other = {} if stmt.else_body is None else _assigned(flatten_to_stmts(stmt.else_body))
            inside = _on_all_paths(_assigned(flatten_to_stmts(stmt.then_body)), other)
        elif isinstance(stmt, ScopeStmt):
            inside = _assigned(flatten_to_stmts(stmt.body))
        elif isinstance(stmt, (BreakStmt, ContinueStmt)):
            inside = None
        if inside is None:
            return None
        found.update(inside)
    return found


def _on_all_paths(then: _Assigned, other: _Assigned) -> _Assigned:
    if then is None or other is None:
        return other if then is None else then
    return {var: None for var in then if var in other}


class _Rest:
    """R: the statements behind S, and what the end of their list yields."""

    __slots__ = ("results", "start", "stmts", "tail")

    def __init__(self, stmts: Sequence[Stmt], start: int, tail: _Values, results: list[Var]) -> None:
        self.stmts = stmts
        self.start = start
        self.tail = tail
        self.results = results


_Branch = tuple[list[Stmt], YieldStmt | None]


def _branch_list(body: Stmt | None) -> _Branch:
    return split_yield([] if body is None else flatten_to_stmts(body))


def split_yield(stmts: list[Stmt]) -> _Branch:
    """The statements of a body without the yield that ends it, and that yield.

    A yield at the end of a runtime scope or split region counts: what is assigned there is visible behind it.
    """
    last: Any = stmts[-1] if stmts else None
    if type(last) is YieldStmt:
        return stmts[:-1], last
    if isinstance(last, (RuntimeScopeStmt, SplitAivScopeStmt)):
        inner, found = split_yield(flatten_to_stmts(last.body))
        if found is not None:
            return [*stmts[:-1], last.replace(body=seq(inner, last.body.span))], found
    return stmts, None


def _add_comments(stmt: Stmt, comments: Sequence[str]) -> Stmt:
    """Comments added to those of a new statement."""
    return attach_leading_comments(stmt, [*stmt.leading_comments, *comments]) if comments else stmt


def undefined_value(kind: Type, span: Span) -> Expr | None:
    """:func:`any_value` of exactly this type, views included; None where a branch can't have such a result."""
    made = None if type(kind) is ArrayType else any_value(kind, span)
    return made.replace(type=kind) if isinstance(made, Call) else made


__all__ = ["ALWAYS", "BREAKS", "CONTINUES", "BodyLowering", "Names", "split_yield", "undefined_value"]
