"""The function around the scopes: scopes become launches, and what they write changes its name.

A written tensor has another name behind each launch that writes it. A name that is made in a loop or branch leaves it
only as a carry or a result of the branch. The scan knows beforehand which tensors leave which construct, so on entry
the carry takes over the current name, the body is visited once, and at its end the name that is current then is
yielded: nothing that was rewritten is rewritten again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...analysis.task_ids import is_placeholder
from ...ir.expr import Expr, IterArg, Var
from ...ir.mutator import IRMutator
from ...ir.names import base_name
from ...ir.node import FrozenList
from ...ir.program import Function
from ...ir.span import Span
from ...ir.stmt import (
    AssignStmt,
    ForStmt,
    IfStmt,
    RuntimeScopeStmt,
    SeqStmts,
    SplitAivScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
    seq,
)
from ..naming import NameSupply
from .comments import commented
from .kernel import Parameters, Result, make_function, recomputed
from .launch import Launch
from .names import FunctionNames
from .policy import Policy
from .scan import Family, Scan, ScopeInfo


class Rewriter(IRMutator):
    """Rewrites one function. ``made``: the functions of its scopes."""

    def __init__(self, policy: Policy, scan: Scan, name: str, names: FunctionNames, supply: NameSupply) -> None:
        self.made: list[Function] = []
        self._policy = policy
        self._scan = scan
        self._families = dict(scan.roots)  # by the names that mean a written tensor from here on
        self._names = names
        self._supply = supply
        self._parent = name
        self._count = 0
        self._opening: dict[IterArg, Family] = {}

    # --- names --------------------------------------------------------------------------------------------------------

    def visit_var(self, op: Var) -> Expr:
        family = self._families.get(op)
        return super().visit_var(op) if family is None else family.current

    def visit_iter_arg(self, op: IterArg) -> Expr:
        if op not in self._fresh:
            return self.visit_var(op)
        new = super().visit_iter_arg(op)
        family = self._opening.pop(op, None) or self._families.get(op)
        if family is not None:
            family.current = new
        return new

    def _named(self, family: Family, role: str) -> str:
        return self._supply.fresh(base_name(family.root.name_hint), role)

    # --- loops and branches -------------------------------------------------------------------------------------------

    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        return self._loop(op, super().visit_for_stmt)

    def visit_while_stmt(self, op: WhileStmt) -> Stmt:
        return self._loop(op, super().visit_while_stmt)

    def _loop(self, op: Any, visit: Any) -> Stmt:
        families = self._scan.carried.get(op)
        if families is None:
            return visit(op)  # type: ignore[no-any-return]
        args = [IterArg(self._named(f, "iter"), f.root.type, f.root, op.span) for f in families]
        results = self._result_vars(families, op.span)
        self._opening.update(zip(args, families, strict=True))
        # Written in the old names: visiting it gives each mention the name that is current there.
        new = visit(
            op.replace(
                iter_args=FrozenList([*op.iter_args, *args]),
                body=yielding(op.body, [f.root for f in families], op.span),
                return_vars=FrozenList([*op.return_vars, *results]),
            )
        )
        self._leave(families, results)
        return new  # type: ignore[no-any-return]

    def visit_if_stmt(self, op: IfStmt) -> Stmt:
        families = self._scan.carried.get(op)
        if families is None:
            return super().visit_if_stmt(op)
        roots = [f.root for f in families]
        results = self._result_vars(families, op.span)
        condition = self.visit_expr(op.condition)
        before = [f.current for f in families]
        then_body = self.visit_stmt(yielding(op.then_body, roots, op.span))
        for family, current in zip(families, before, strict=True):
            family.current = current
        else_body = op.else_body if op.else_body is not None else SeqStmts([], op.span)
        new = op.replace(
            condition=condition,
            then_body=then_body,
            else_body=self.visit_stmt(yielding(else_body, roots, op.span)),
            return_vars=FrozenList([*op.return_vars, *results]),
        )
        self._leave(families, results)
        return new  # type: ignore[no-any-return]

    def _result_vars(self, families: Sequence[Family], span: Span) -> list[Var]:
        return [Var(self._named(f, "rv"), f.root.type, span) for f in families]

    def _leave(self, families: Sequence[Family], results: Sequence[Var]) -> None:
        for family, var in zip(families, results, strict=True):
            family.current = var

    # --- scopes -------------------------------------------------------------------------------------------------------

    def visit_seq_stmts(self, op: SeqStmts) -> Stmt:
        new: list[Stmt] = []
        changed = False
        comments: list[str] = []
        stmts = op.stmts
        for i, stmt in enumerate(stmts):
            if type(stmt) is AssignStmt and i + 1 < len(stmts) and self._is_placeholder(stmt, stmts[i + 1]):
                comments = stmt.leading_comments
                changed = True
                continue
            item = self.visit_stmt(stmt)
            if comments:
                item = commented(item, comments)
                comments = []
            changed = changed or item is not stmt
            new.append(item)
        return seq(new, op.span) if changed else op

    def _is_placeholder(self, stmt: AssignStmt, behind: Any) -> bool:
        """A null task id that only stands for the id of the scope behind it."""
        return behind in self._scan.infos and is_placeholder(stmt, behind)

    def visit_in_core_scope_stmt(self, op: Any) -> Stmt:
        return self._scope(op, super().visit_in_core_scope_stmt)

    def visit_hierarchy_scope_stmt(self, op: Any) -> Stmt:
        return self._scope(op, super().visit_hierarchy_scope_stmt)

    def visit_cluster_scope_stmt(self, op: Any) -> Stmt:
        return self._scope(op, super().visit_cluster_scope_stmt)

    def visit_spmd_scope_stmt(self, op: Any) -> Stmt:
        return self._scope(op, super().visit_spmd_scope_stmt)

    def _scope(self, op: Any, visit: Any) -> Stmt:
        info = self._scan.infos.get(op)
        return visit(op) if info is None else self._outlined(op, info)

    def _outlined(self, scope: Any, info: ScopeInfo) -> Stmt:
        policy = self._policy
        name = self._names.allocate(
            self._parent, scope.name_hint, f"{self._parent}_{policy.suffix(scope)}_{self._count}"
        )
        self._count += 1
        launch = Launch(info, policy, self.visit_expr)
        parameters = Parameters(info, [(var, self.visit_expr(var)) for var in info.inputs])
        before = [(family, family.current) for family in info.targets]
        given = self._scan.given(info)
        again = recomputed(info, given)
        outside: list[Stmt] = [self.visit_stmt(stmt) for stmt in again]
        body = policy.body(scope)
        if info.inner:
            body = self._inside(name, body)
        made_again = {stmt.var for stmt in again}
        results = self._results(info, [var for var in given if var not in made_again])
        if policy.nests:
            self._return_last_names(info, results)
        defined = [*(stmt.var for stmt in again), *(result.var for result in results)]
        if info.outer is not None:
            defined += info.visible  # a launch of the scope around it may give any of them
        self.made.append(make_function(name, policy, info, parameters, results, body, defined))
        for family, current in before:
            family.current = current
        for result in results:
            if result.family is not None:
                result.family.current = result.var
        self._families.update(info.aliases)
        outside += launch.statements(name, parameters, results, self._supply)
        return commented(seq(outside, scope.span), scope.leading_comments)

    def _inside(self, name: str, body: Stmt) -> Stmt:
        """The body of a scope, the scopes in it outlined."""
        parent, count = self._parent, self._count
        self._parent, self._count = name, 0
        body = self.visit_stmt(body)
        self._parent, self._count = parent, count
        return body

    def _return_last_names(self, info: ScopeInfo, results: Sequence[Result]) -> None:
        """A tensor that was handed to a launch inside must not be read under an old name, not by the return either."""
        last = {info.aliases[var]: var for var in info.visible if var in info.aliases}
        stale = self._scan.written_by_launches(info.scope.body)
        for result in results:
            if result.family is not None and (info.inner or result.value in stale):
                name: Any = self.visit_expr(last.get(result.family, result.value))
                result.value = name
            elif result.family is None:
                # A scope inside may have written it, and then a result of that stands for it: here, not in the caller.
                name = self.visit_expr(result.var if result.value in stale else result.value)
                result.value = name
                self._families.pop(result.var, None)

    def _results(self, info: ScopeInfo, given: Sequence[Var]) -> list[Result]:
        """Needed definitions in order, then written tensors; one result for each buffer."""
        exported = dict.fromkeys(self._scan.exported(info))
        results: list[Result] = []
        done: set[Family] = set()
        for var in given:
            family = info.aliases.get(var)
            if family is None:
                root = info.buffers.root(var)
                results.append(Result(var, var if root is None else root, None))
            elif family in exported and not info.targets[family].direct and family not in done:
                done.add(family)
                results.append(Result(var, info.targets[family].var, family))
        for family in exported:
            if family not in done:
                var = Var(self._named(family, "ssa"), family.root.type, info.scope.span)
                results.append(Result(var, info.targets[family].var, family))
        return results


def yielding(body: Stmt, values: Sequence[Expr], span: Span) -> Stmt:
    """The body with more values yielded at its end; the end of a trailing runtime scope is that of the body."""
    stmts = list(body.stmts) if type(body) is SeqStmts else [body]
    last: Any = stmts[-1] if stmts else None
    if type(last) is YieldStmt:
        stmts[-1] = last.replace(value=FrozenList([*last.value, *values]))
    elif isinstance(last, (RuntimeScopeStmt, SplitAivScopeStmt)):
        stmts[-1] = last.replace(body=yielding(last.body, values, span))
    else:
        stmts.append(YieldStmt(list(values), span))
    return seq(stmts, body.span)


__all__ = ["Rewriter", "yielding"]
