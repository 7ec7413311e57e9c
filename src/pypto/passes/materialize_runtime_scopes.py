"""MaterializeRuntimeScopes: the scopes of the task runtime become statements; code generation prints these, no others.

Before::

    @pl.function(type=pl.FunctionType.Orchestration)
    def run(self, x, y):
        for i, (c,) in pl.parallel(2, init_values=(y,)):
            c2 = self.fill(x, i, c)
            y1 = pl.yield_(c2)
        return y1

After::

    @pl.function(type=pl.FunctionType.Orchestration, auto_scope=False)
    def run(self, x, y):
        with pl.scope():
            for i, (c,) in pl.parallel(2, init_values=(y,)):
                with pl.scope():
                    c2 = self.fill(x, i, c)
                    y1 = pl.yield_(c2)
            return y1

An Orchestration function whose scopes the compiler owns (``auto_scope`` absent or true) gets an AUTO scope around its
body and around the body of each loop and branch, except

* inside a MANUAL scope, where the runtime allows none;
* where there is one already;
* around a body that hands out a tensor which it makes itself (:mod:`pypto.analysis.made_inside`): a scope would end the
  life of the buffer, and who reads the carry or the branch result is launched later. It lives in the next scope around.

``auto_scope`` is false afterwards: the scopes are placed, which is also what lets the printed program be read again.

AutoDeriveTaskDependencies marks the launches whose order it could state in full. A body of nothing but these, with no
other scope in it, becomes a MANUAL scope of the compiler (the scope bears the mark, too); so does the whole body of a
function that is marked as a layer. The marks on launches have done their duty then, and are taken away, also in
functions whose author places the scopes.

All bodies are wrapped, also those that launch nothing, and those of ``while`` loops like those of ``for`` loops.

Needs SplitIncoreOrch and CallDirectionsResolved, gives RuntimeScopesMaterialized. Linear: one walk upwards that counts
launches, marks and scopes, and one to trace buffers.
"""

from __future__ import annotations

from typing import Any

from ..analysis.callees import Callees, callees_of
from ..analysis.made_inside import Body, bodies_handing_out_buffers
from ..analysis.task_marks import CANDIDATE, LAYER_CANDIDATE, is_task
from ..ir.enums import FunctionType, is_incore_type
from ..ir.expr import Call, Expr, Submit
from ..ir.mutator import IRMutator
from ..ir.node import FrozenDict
from ..ir.program import Function, Program
from ..ir.span import Span
from ..ir.stmt import ForStmt, IfStmt, RuntimeScopeStmt, SeqStmts, Stmt, WhileStmt
from ..verify.properties import IRProperty
from .base import Pass


class MaterializeRuntimeScopes(Pass):
    """See the text of the module."""

    name = "MaterializeRuntimeScopes"
    required = (IRProperty.SplitIncoreOrch, IRProperty.CallDirectionsResolved)
    produced = (IRProperty.RuntimeScopesMaterialized,)

    def run(self, program: Program) -> Program:
        callees = callees_of(program)
        return program.with_functions([_placed(function, callees) for function in program.functions.values()])


def _placed(function: Function, callees: Callees) -> Function:
    if is_incore_type(function.func_type):
        return function
    if function.func_type is not FunctionType.Orchestration or not function.attrs.get("auto_scope", True):
        body = _Unmarked().visit_stmt(function.body)
        return function if body is function.body else function.replace(body=body)
    attrs: dict[str, Any] = {k: v for k, v in function.attrs.items() if k != LAYER_CANDIDATE}
    attrs["auto_scope"] = False
    body = None
    if function.attrs.get(LAYER_CANDIDATE):
        counted = _Unmarked()
        body = counted.visit_stmt(function.body)
        body = None if counted.scopes else _scope(body, True, function.span)
    if body is None:
        placer = _Placer(bodies_handing_out_buffers(function, callees))
        body = _wrapped(placer.visit_stmt(function.body), False, function.span)
    return function.replace(body=body, attrs=FrozenDict(attrs))


class _Unmarked(IRMutator):
    """Takes the marks off the launches, and counts launches, marks and runtime scopes on the way."""

    def _setup(self) -> None:
        super()._setup()
        self.tasks = self.marked = self.scopes = 0

    def visit_call(self, op: Call) -> Expr:
        return self._unmark(super().visit_call(op))

    def visit_submit(self, op: Submit) -> Expr:
        return self._unmark(super().visit_submit(op))

    def visit_runtime_scope_stmt(self, op: RuntimeScopeStmt) -> Stmt:
        self.scopes += 1
        return super().visit_runtime_scope_stmt(op)

    def _unmark(self, call: Any) -> Expr:
        if is_task(call):
            self.tasks += 1
            if CANDIDATE in call.attrs:
                self.marked += bool(call.attrs[CANDIDATE])
                attrs = FrozenDict({k: v for k, v in call.attrs.items() if k != CANDIDATE})
                return call.replace(attrs=attrs)  # type: ignore[no-any-return]
        return call  # type: ignore[no-any-return]


class _Placer(_Unmarked):
    """Wraps the bodies of loops and branches, inner ones first."""

    def __init__(self, bare: frozenset[Body]) -> None:
        self._bare = bare  # bodies that can't be scopes
        self._manual = False

    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        return self._with_bodies(op, "body")

    def visit_while_stmt(self, op: WhileStmt) -> Stmt:
        return self._with_bodies(op, "body")

    def visit_if_stmt(self, op: IfStmt) -> Stmt:
        return self._with_bodies(op, "then_body", "else_body")

    def visit_runtime_scope_stmt(self, op: RuntimeScopeStmt) -> Stmt:
        outer = self._manual
        self._manual = outer or op.manual
        new = super().visit_runtime_scope_stmt(op)
        self._manual = outer
        return new

    def _with_bodies(self, op: Any, *fields: str) -> Stmt:
        bodies = {field: self._body(op, field) for field in fields if getattr(op, field) is not None}
        if all(new is getattr(op, field) for field, new in bodies.items()):
            return op  # type: ignore[no-any-return]
        return op.replace(**bodies)  # type: ignore[no-any-return]

    def _body(self, op: Any, field: str) -> Stmt:
        before = self.tasks, self.marked, self.scopes
        body = self.visit_stmt(getattr(op, field))
        tasks, marked, scopes = self.tasks - before[0], self.marked - before[1], self.scopes - before[2]
        if self._manual or (op, field) in self._bare:
            return body
        new = _wrapped(body, marked > 0 and marked == tasks and not scopes, op.span)
        self.scopes += new is not body
        return new


def _wrapped(body: Stmt, manual: bool, owner: Span) -> Stmt:
    """A body in a scope, unless it is an AUTO scope already."""
    only = body
    while type(only) is SeqStmts and len(only.stmts) == 1:
        only = only.stmts[0]
    if type(only) is RuntimeScopeStmt and not only.manual:
        return body
    return _scope(body, manual, owner)


def _scope(body: Stmt, manual: bool, owner: Span) -> Stmt:
    span = body.span if body.span.is_valid() else owner
    return RuntimeScopeStmt(manual, body=body, span=span, attrs={CANDIDATE: True} if manual else None)


def materialize_runtime_scopes() -> Pass:
    """The pass that places the scopes of the task runtime."""
    return MaterializeRuntimeScopes()


__all__ = ["MaterializeRuntimeScopes", "materialize_runtime_scopes"]
