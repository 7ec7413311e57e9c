"""Statement lists and branches: which variables a branch has results for."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter, is_
from typing import Any

from ...diag.errors import InternalError
from ...ir import stmt as st
from ...ir.expr import Expr, Var
from ...ir.node import FrozenList
from ...ir.span import Span
from ...ir.stmt import Stmt, YieldStmt, seq
from ...ir.tree import flatten_to_stmts
from ...ir.type import TASK_ID_TYPE
from ..any_value import any_value
from .bodies import add_statements, add_yields, rebuilt
from .definedness import NEVER_ASSIGNED, NO_VALUE, NOT_KEPT, Reason, Undefined, in_branch
from .versions import State, Versions, closed_types_first


class _Side:
    """One branch of an ``if``, visited."""

    __slots__ = ("ends", "states", "stmts")

    def __init__(self, stmts: list[Stmt], ends: bool) -> None:
        self.stmts = stmts
        self.ends = ends  # the end of the branch is reached
        self.states: dict[Var, State] = {}


class Branches(Versions):
    """Renames statement lists and branches."""

    # --- statement lists ----------------------------------------------------------------------------------------------

    def _body(self, body: Stmt) -> Stmt:
        return rebuilt(body, self._list(body))

    def _list(self, body: Stmt) -> list[Stmt]:
        """The statements that replace those of a body."""
        stmts: Sequence[Stmt] = body.stmts if type(body) is st.SeqStmts else (body,)
        if st.SeqStmts in map(type, stmts):
            stmts = flatten_to_stmts(body)
        outer, before = self._out, self._previous
        self._out = out = []
        self._previous = None
        dispatch = self._dispatch
        for stmt in stmts:
            if type(stmt) is YieldStmt and stmt is not stmts[-1]:
                raise InternalError(
                    f"YieldStmt at position {stmts.index(stmt)} of {len(stmts)}: a yield must end the body it is in, "
                    f"{stmt.span}"
                )
            out.append(dispatch[type(stmt)](self, stmt))
            self._previous = stmt
        self._out, self._previous = outer, before
        return out

    def visit_seq_stmts(self, op: Any) -> Stmt:
        return self._body(op)

    # --- branches -----------------------------------------------------------------------------------------------------

    def visit_if_stmt(self, op: Any) -> Stmt:
        self._at = op
        condition = self._dispatch[type(op.condition)](self, op.condition)
        assigned = list(self._live.assigned(op))
        if op.return_vars:
            results = dict.fromkeys(op.return_vars)
            assigned = [v for v in assigned if v not in results]
        before, since = self._dead, len(self._origins)
        then = self._side(op, op.then_body, condition, True, assigned)
        other = self._side(op, op.else_body, condition, False, assigned)
        self._at = op
        self._dead = before or not (then.ends or other.ends)
        merges = [v for v in assigned if self._is_merged(op, v, then, other)]
        if len(merges) > 1:
            merges.sort(key=by_name)
        phis = self._merge(op, merges, then, other, since) if merges else []
        own = self._branch_results(op) if op.return_vars else op.return_vars
        return_vars = FrozenList([*phis, *own]) if phis else own
        then_body, else_body = op.then_body, op.else_body
        if phis:
            for side in (then, other):
                operands: list[Expr] = [side.states[var] for var in merges]
                if not NO_VALUE.isdisjoint(map(type, operands)):
                    operands = [self._operand(var, side, phi, op.span) for var, phi in zip(merges, phis, strict=True)]
                add_yields(side.stmts, operands, op.span, first=True)
        then_body = rebuilt(then_body, then.stmts)
        if else_body is not None or phis:
            else_body = seq(other.stmts, op.span) if else_body is None else rebuilt(else_body, other.stmts)
        if (
            condition is op.condition
            and then_body is op.then_body
            and else_body is op.else_body
            and return_vars is op.return_vars
        ):
            return op  # type: ignore[no-any-return]
        return op.replace(  # type: ignore[no-any-return]
            condition=condition, then_body=then_body, else_body=else_body, return_vars=return_vars
        )

    def _side(self, op: Any, body: Stmt | None, condition: Expr, value: bool, assigned: list[Var]) -> _Side:
        before = self._dead
        mark = len(self._trail)
        known = self._facts.enter(condition, value)
        side = _Side([] if body is None else self._list(body), not self._dead or before)
        states, remap = side.states, self._remap
        for var in assigned:
            states[var] = remap.get(var)
        self._facts.leave(known)
        self._undo(mark)
        self._dead = before
        return side

    def _is_merged(self, op: Any, var: Var, then: _Side, other: _Side) -> bool:
        """Whether the branch has a result for a variable. If not, its state behind the branch is set here."""
        a, b = then.states[var], other.states[var]
        if a is b and a is self._remap.get(var):
            return False
        both = type(a) not in NO_VALUE and type(b) not in NO_VALUE
        if both and not (self._careful(var) or self._is_foreign(a) or self._is_foreign(b)):
            return True
        if not self._live.needed_after(op, var):
            if self._is_value(var) or both:
                self._set(var, Undefined(NOT_KEPT))
            return False
        if both:
            return True
        if (type(a) not in NO_VALUE or not then.ends) and (type(b) not in NO_VALUE or not other.ends):
            return self._can_stand_in(op, var)
        if var.type == TASK_ID_TYPE:
            return True
        if var in self._trusted and self._can_stand_in(op, var):
            return True
        self._set(var, Undefined(self._branch_reason(op, a, b)))
        return False

    def _can_stand_in(self, op: Any, var: Var) -> bool:
        return any_value(self._rewrite_type(var.type), op.span) is not None

    def _branch_reason(self, op: Any, a: State, b: State) -> Reason:
        if type(a) not in NO_VALUE:
            return in_branch(op, "then", a.span)
        if type(b) not in NO_VALUE:
            return in_branch(op, "else", b.span)
        state = a if type(a) is Undefined else b
        return state.reason if type(state) is Undefined else NEVER_ASSIGNED

    def _merge(self, op: Any, merges: list[Var], then: _Side, other: _Side, since: int) -> list[Var]:
        """The results for these variables, and the states of the variables behind the branch."""
        phis: dict[Var, Var] = {}
        for var in closed_types_first(merges, attrgetter("type")):
            a, b = then.states[var], other.states[var]
            phis[var] = self._phi(op, var, a, b, since)
        return [phis[var] for var in merges]

    def _phi(self, op: Any, var: Var, a: State, b: State, since: int) -> Var:
        value = b if type(a) in NO_VALUE else a
        if type(value) in NO_VALUE:
            kind = self._rewrite_type(var.type)
        else:
            if value is a and type(b) not in NO_VALUE:
                self._check_agreement(var, a, b, op, "the branches give it")
            kind = self._merged_type(var, value, self._kept_extents(value, since))
        phi = Var(self._name(var, "phi"), kind, op.span)
        self._set(var, phi)
        return phi

    def _operand(self, var: Var, side: _Side, phi: Var, span: Span) -> Expr:
        """What a branch gives for a variable; anything where it has no value or the end is not reached."""
        state = side.states[var]
        if type(state) not in NO_VALUE:
            return state  # type: ignore[no-any-return]
        if type(state) is Undefined and state.stand_in is not None:
            return state.stand_in
        value = any_value(phi.type, span)
        assert value is not None  # merged only if there is one
        outer, self._out = self._out, []
        found = self._bind(var, value, span)
        add_statements(side.stmts, self._out)
        self._out = outer
        return found

    def _branch_results(self, op: Any) -> Any:
        """The results that the source states."""
        made = []
        for var in op.return_vars:
            kind = self._rewrite_type(var.type)
            made.append(self._define(var, kind, var.span, "rv"))
        return op.return_vars if all(map(is_, made, op.return_vars)) else FrozenList(made)


def by_name(var: Var) -> str:
    return var.name_hint


__all__ = ["Branches", "by_name"]
