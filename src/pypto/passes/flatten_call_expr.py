"""FlattenCallExpr: three-address form for calls.

Afterwards a Call or Submit is only the whole right-hand side of an assignment or a whole expression statement. Each
nested call is bound to a new variable ``t__tmp_vN`` in front of its statement, depth first and from left to right, so
that calls are evaluated in the order in which they were. ``and`` and ``or`` evaluate both sides, so a call in one is
bound like any other. The ``predicate`` of a launch stays an expression: the runtime evaluates it.

*Before*::

    return pl.mul(pl.add(a, pl.exp(b)), pl.neg(a))

*After*::

    t__tmp_v0 = pl.exp(b)
    t__tmp_v1 = pl.add(a, t__tmp_v0)
    t__tmp_v2 = pl.neg(a)
    t__tmp_v3 = pl.mul(t__tmp_v1, t__tmp_v2)
    return t__tmp_v3

The condition of a ``while`` is evaluated before each iteration. A call that gives the same value every time is bound in
front of the loop, another one becomes a carry:

*Before*::

    for (i,) in pl.while_(init_values=(i0,)):
        pl.cond(pl.read(f, [i]) > 0)
        i2 = pl.yield_(i + 1)

*After*::

    t__tmp_v0 = pl.read(f, [i0])
    for (i, t__iter_v0) in pl.while_(init_values=(i0, t__tmp_v0)):
        pl.cond(t__iter_v0 > 0)
        t__tmp_v1 = pl.read(f, [i + 1])
        i2, t__rv_v0 = pl.yield_(i + 1, t__tmp_v1)

Needs SSAForm and NormalizedStmtStructure, keeps both and gives NoNestedCalls. A task launch in the condition of a
``while`` is a :class:`PassError`.

Cost: linear. A function without nested calls is found by the walk that also verifies it.
"""

from __future__ import annotations

from typing import Any

from ..ir.expr import Expr, IterArg, Var
from ..ir.extents import extent_equal, extent_key
from ..ir.mutator import IRMutator
from ..ir.node import FrozenList
from ..ir.program import Function, Program
from ..ir.stmt import (
    AssignStmt,
    ClusterScopeStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    SeqStmts,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from ..ir.substitution import substitute
from ..ir.traversal import walk
from ..ir.tree import get_last_yield_stmt, stmt_children
from ..ir.type import ScalarType
from ..verify.call_sites import call_sites
from ..verify.properties import IRProperty
from .base import FunctionPass, Pass
from .flatten_while import (
    LoopFacts,
    check_repeatable,
    in_front,
    is_shared,
    own_operands,
    reads_memory,
    tested_inside,
    with_latch,
)
from .naming import NameSupply


class FlattenCallExpr(FunctionPass):
    """See the module."""

    name = "FlattenCallExpr"
    required = (IRProperty.SSAForm, IRProperty.NormalizedStmtStructure)
    produced = (IRProperty.SSAForm, IRProperty.NoNestedCalls, IRProperty.NormalizedStmtStructure)

    def run_on(self, function: Function, program: Program) -> Function:
        nested = call_sites(function).nested
        if not nested:
            return function
        body = _Flatten(function, {site.stmt: None for site in nested}).visit_stmt(function.body)
        return function if body is function.body else function.replace(body=body)


def flatten_call_expr() -> Pass:
    """The pass FlattenCallExpr."""
    return FlattenCallExpr()


class _Flatten(IRMutator):
    """Binds nested calls. ``affected``: the statements with one in their own expressions."""

    def __init__(self, function: Function, affected: dict[Stmt, None]) -> None:
        self._affected = affected
        self._names = NameSupply(function)
        self._loops = LoopFacts(function)
        # What goes in front of the statement that is being rewritten.
        self._prelude: list[Stmt] = []
        # Nested calls -> their temporaries; and the calls in predicates, which stay.
        self._bound: dict[Any, Var] = {}
        self._calls: list[Any] = []
        self._exempt: dict[Any, None] = {}
        self._in_type = False
        self._extents = _BoundExtents()
        # Bodies of loops, branches and scopes: what is bound inside one is not visible behind it.
        self._bodies: dict[Stmt, None] = {}
        # The spmd scope that begins the cluster being rewritten: its width belongs to the launch of the cluster.
        self._cluster_head: Stmt | None = None

    # --- expressions --------------------------------------------------------------------------------------------------

    def visit_call(self, op: Any) -> Expr:
        return self._operand(op, super().visit_call)

    def visit_submit(self, op: Any) -> Expr:
        return self._operand(op, super().visit_submit)

    def _operand(self, op: Any, rewrite: Any) -> Expr:
        """A call that is an operand: its temporary."""
        if self._in_type:
            return self._extents.find(rewrite(op))
        if op in self._exempt:
            return rewrite(op)  # type: ignore[no-any-return]
        self._note_predicates(op)
        call = rewrite(op)
        var = Var(self._names.fresh("t", "tmp"), call.type, op.span)
        self._prelude.append(AssignStmt(var, call, op.span))
        self._bound[op] = var
        self._calls.append(op)
        self._extents.add(call, var)
        return var

    def _whole(self, e: Any) -> Expr:
        """A whole right-hand side: a call stays one."""
        name = type(e).__name__
        if name not in ("Call", "Submit"):
            return self._rewrite_child(e)  # type: ignore[no-any-return]
        self._note_predicates(e)
        return super().visit_call(e) if name == "Call" else super().visit_submit(e)

    def _note_predicates(self, holder: Any) -> None:
        """The calls in the predicate of a launch or scope are left where they are."""
        found = (getattr(holder, "predicate", None), holder.attrs.get("predicate") if holder.attrs else None)
        for predicate in found:
            if isinstance(predicate, Expr):
                self._exempt.update((node, None) for node in walk(predicate) if hasattr(node, "op"))

    def _rewrite_type(self, kind: Any) -> Any:
        return self._of_types(super()._rewrite_type, kind)

    def _retype(self, op: Any) -> Any:
        return self._of_types(super()._retype, op)

    def _of_types(self, rewrite: Any, item: Any) -> Any:
        """In a type there is no place for statements: a call in one becomes the temporary of an equal call, if any."""
        outer, self._in_type = self._in_type, True
        try:
            return rewrite(item)
        finally:
            self._in_type = outer

    # --- statements ---------------------------------------------------------------------------------------------------

    def _statement(self, op: Any, rewrite: Any) -> Any:
        """A statement with what its operands need in front of it."""
        outer, self._prelude = self._prelude, []
        mark = self._extents.mark() if op in self._bodies else None
        try:
            new = rewrite(op)
            return in_front(self._prelude, op, new)
        finally:
            self._prelude = outer
            if mark is not None:
                self._extents.forget(mark)

    def _leaf(self, op: Any, rewrite: Any) -> Any:
        """A statement without a body; most have nothing to be bound."""
        if op not in self._affected and not self._remap:
            return op
        return self._statement(op, rewrite)

    def _compound(self, op: Any, rewrite: Any) -> Any:
        """A statement with bodies. The default rewrite reads the header before it goes into them."""
        self._bodies.update((body, None) for body in stmt_children(op))
        return self._statement(op, rewrite)

    def visit_seq_stmts(self, op: SeqStmts) -> Stmt:
        if op not in self._bodies:
            return super().visit_seq_stmts(op)
        mark = self._extents.mark()
        new = super().visit_seq_stmts(op)
        self._extents.forget(mark)
        return new

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        return self._leaf(op, self._assign)  # type: ignore[no-any-return]

    def _assign(self, op: AssignStmt) -> Stmt:
        value = self._whole(op.value)  # before the variable, whose type may mention what is bound here
        var = self._rewrite_child(op.var)
        return op if value is op.value and var is op.var else op.replace(var=var, value=value)

    def visit_eval_stmt(self, op: EvalStmt) -> Stmt:
        return self._leaf(op, self._eval)  # type: ignore[no-any-return]

    def _eval(self, op: EvalStmt) -> Stmt:
        expr = self._whole(op.expr)
        return op if expr is op.expr else op.replace(expr=expr)

    def visit_yield_stmt(self, op: YieldStmt) -> Stmt:
        return self._leaf(op, super().visit_yield_stmt)  # type: ignore[no-any-return]

    def visit_return_stmt(self, op: Any) -> Stmt:
        return self._leaf(op, super().visit_return_stmt)  # type: ignore[no-any-return]

    def visit_if_stmt(self, op: IfStmt) -> Stmt:
        return self._compound(op, super().visit_if_stmt)  # type: ignore[no-any-return]

    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        return self._compound(op, super().visit_for_stmt)  # type: ignore[no-any-return]

    def visit_while_stmt(self, op: WhileStmt) -> Stmt:
        return self._compound(op, self._while)  # type: ignore[no-any-return]

    def _scope(self, op: Any, rewrite: Any) -> Any:
        self._note_predicates(op)
        return self._compound(op, rewrite)

    def visit_in_core_scope_stmt(self, op: Any) -> Stmt:
        return self._scope(op, super().visit_in_core_scope_stmt)  # type: ignore[no-any-return]

    def visit_cluster_scope_stmt(self, op: ClusterScopeStmt) -> Stmt:
        outer, self._cluster_head = self._cluster_head, _first(op.body)
        try:
            return self._scope(op, super().visit_cluster_scope_stmt)  # type: ignore[no-any-return]
        finally:
            self._cluster_head = outer

    def visit_spmd_scope_stmt(self, op: SpmdScopeStmt) -> Stmt:
        if op is not self._cluster_head:
            return self._scope(op, super().visit_spmd_scope_stmt)  # type: ignore[no-any-return]
        # Nothing in the cluster runs before the width is evaluated: bind it in front of the cluster.
        self._note_predicates(op)
        self._bodies[op.body] = None
        return super().visit_spmd_scope_stmt(op)

    def visit_hierarchy_scope_stmt(self, op: Any) -> Stmt:
        return self._scope(op, super().visit_hierarchy_scope_stmt)  # type: ignore[no-any-return]

    def visit_split_aiv_scope_stmt(self, op: Any) -> Stmt:
        return self._scope(op, super().visit_split_aiv_scope_stmt)  # type: ignore[no-any-return]

    def visit_runtime_scope_stmt(self, op: Any) -> Stmt:
        return self._scope(op, super().visit_runtime_scope_stmt)  # type: ignore[no-any-return]

    def visit_comm_domain_scope_stmt(self, op: Any) -> Stmt:
        return self._scope(op, super().visit_comm_domain_scope_stmt)  # type: ignore[no-any-return]

    # --- the condition of a while loop --------------------------------------------------------------------------------

    def _while(self, op: WhileStmt) -> Stmt:
        iter_args = FrozenList([self._rewrite_child(arg) for arg in op.iter_args])
        condition, bound, calls = self._condition(op)
        varying = self._varying(op, bound, calls)
        body = self._dispatch[type(op.body)](self, op.body)
        return_vars = FrozenList([self._rewrite_child(var) for var in op.return_vars])
        for arg in op.iter_args:  # an iter_arg means its new self in the loop only
            self._remap.pop(arg, None)
        loop = _replaced(op, condition=condition, iter_args=iter_args, body=body, return_vars=return_vars)
        self._prelude += [stmt for stmt in bound if stmt.var not in varying]
        bound = [stmt for stmt in bound if stmt.var in varying]
        if not bound:
            return loop  # type: ignore[no-any-return]
        latch = get_last_yield_stmt(loop.body)
        operands = latch.value if latch is not None else []
        if len(operands) == len(loop.iter_args) == len(loop.return_vars):
            # A ``continue`` does not pass the end of the body; it carries on with the same iter_args.
            if all(varying.values()) or not self._loops.continues(op):
                return self._carried(loop, bound, operands)
        return tested_inside(loop, bound)

    def _condition(self, op: WhileStmt) -> tuple[Expr, list[AssignStmt], list[Any]]:
        """The condition without calls, what is bound for it, and the calls themselves."""
        outer, self._prelude = self._prelude, []
        mark, first = self._extents.mark(), len(self._calls)
        condition = self._rewrite_child(op.condition)
        bound: list[Any] = self._prelude
        self._prelude = outer
        self._extents.forget(mark)
        for stmt in bound:
            check_repeatable(stmt.value, op.condition)
        return condition, bound, self._calls[first:]

    def _varying(self, loop: WhileStmt, bound: list[AssignStmt], calls: list[Any]) -> dict[Var, bool]:
        """The temporaries that may have another value in a later iteration; True: only if an iter_arg has."""
        found: dict[Var, bool] = {}
        iter_args = dict.fromkeys(loop.iter_args)
        for call, stmt in zip(calls, bound, strict=True):
            variables, operands = own_operands(call, self._bound)
            inner = [found[self._bound[c]] for c in operands if self._bound[c] in found]
            carried = any(v in iter_args for v in variables)
            changed = any(v not in iter_args and self._loops.defines(loop, v) for v in variables)
            if reads_memory(call):
                changed = changed or self._loops.writes(loop) or is_shared(call)
            if inner or carried or changed:
                found[stmt.var] = not changed and all(inner)
        return found

    def _carried(self, loop: WhileStmt, bound: list[AssignStmt], operands: list[Expr]) -> WhileStmt:
        """The loop with the results of the calls as carries: computed before it and at the end of each iteration."""
        before = self._instance(bound, {arg: arg.initValue for arg in loop.iter_args}, keep=True)
        again = self._instance(bound, dict(zip(loop.iter_args, operands, strict=True)), keep=False)
        self._prelude += before
        tested = {node: None for node in walk(loop.condition) if isinstance(node, Var)}
        carries: dict[Var, IterArg] = {}
        results: list[Var] = []
        nexts: list[Expr] = []
        for stmt, first, following in zip(bound, before, again, strict=True):
            if stmt.var in tested:
                kind, span = first.value.type, stmt.span
                carries[stmt.var] = IterArg(self._names.fresh("t", "iter"), kind, first.var, span)
                results.append(Var(self._names.fresh("t", "rv"), kind, span))
                nexts.append(following.var)
        return loop.replace(  # type: ignore[no-any-return]
            condition=substitute(loop.condition, carries),
            iter_args=FrozenList([*loop.iter_args, *carries.values()]),
            body=with_latch(loop.body, again, nexts),
            return_vars=FrozenList([*loop.return_vars, *results]),
        )

    def _instance(self, bound: list[AssignStmt], values: dict[Any, Expr], keep: bool) -> list[AssignStmt]:
        """The bindings for given values of the iter_args, with the variables that they have or with new ones."""
        values = dict(values)
        made = []
        for stmt in bound:
            value = substitute(stmt.value, values)
            if keep and value.type is stmt.var.type:
                made.append(AssignStmt(stmt.var, value, stmt.span))
                continue
            values[stmt.var] = var = Var(self._names.fresh("t", "tmp"), value.type, stmt.span)
            made.append(AssignStmt(var, value, stmt.span))
        return made


# --- statements -------------------------------------------------------------------------------------------------------


def _replaced(op: Any, **changes: Any) -> Any:
    """The node with changed fields; itself when they are what it has."""
    changed = {}
    for name, value in changes.items():
        old = getattr(op, name)
        same = all(a is b for a, b in zip(old, value, strict=True)) if isinstance(old, list) else old is value
        if not same:
            changed[name] = value
    return op.replace(**changed) if changed else op


def _first(body: Stmt) -> Stmt | None:
    while type(body) is SeqStmts:
        if not body.stmts:
            return None
        body = body.stmts[0]
    return body


class _BoundExtents:
    """The scalar temporaries that are visible, by the call that they stand for: extents in types may be equal calls."""

    def __init__(self) -> None:
        self._found: dict[Any, list[tuple[Any, Var]]] = {}
        self._trail: list[Any] = []

    def add(self, call: Any, var: Var) -> None:
        if isinstance(var.type, ScalarType):
            key = extent_key(call)
            self._found.setdefault(key, []).append((call, var))
            self._trail.append(key)

    def find(self, call: Expr) -> Expr:
        """The temporary of an equal call, the last one bound; the call itself if there is none."""
        found = self._found.get(extent_key(call), ())
        return next((var for other, var in reversed(found) if extent_equal(other, call)), call)

    def mark(self) -> int:
        return len(self._trail)

    def forget(self, mark: int) -> None:
        """What was bound since the mark is not visible any more."""
        while len(self._trail) > mark:
            self._found[self._trail.pop()].pop()


__all__ = ["FlattenCallExpr", "flatten_call_expr"]
