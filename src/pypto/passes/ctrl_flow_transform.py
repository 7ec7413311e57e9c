"""CtrlFlowTransform: takes ``break`` and ``continue`` out of kernels, whose loops have structured control flow only.

*Before*::

    for i in pl.range(lo, hi, 3):
        s = s + 1
        if i >= lim:
            break
        s = s + i

*After*: a ``for`` with ``break`` is a ``while`` with a counter and a flag; statements behind an escape move to the
other branch, or behind a guard ``if not flag`` where only some paths through a branch escape::

    i__idx_v1 = lo
    break__tmp_v0 = False
    while i__idx_v1 < hi and not break__tmp_v0:
        s = s + 1
        if i__idx_v1 >= lim:
            break__tmp_v0 = True
            pl.yield_()
        else:
            s = s + i__idx_v1
            pl.yield_()
        if not break__tmp_v0:
            i__idx_v1 = i__idx_v1 + 3

A loop with only ``continue`` stays a ``for``. A loop that carries values yields on each path what
:func:`~pypto.analysis.escapes.carried_at_escapes` says: each ``if`` of the lowering has one result a carry.

Needs nothing; gives StructuredCtrlFlow. Kernel functions and kernel scopes of host-side functions are treated alike; of
other host-side loops those where conversion to SSA would lose a value (:mod:`~pypto.passes.host_escapes`). A function
without escapes comes back as it is after one look at its statements. Otherwise linear: each statement is moved at most
once for each loop around it, and nothing is duplicated.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..analysis.escapes import has_escapes
from ..analysis.occurrences import Occurrences
from ..arith.prove import prove_lt
from ..ir import expr as x
from ..ir import scalar
from ..ir.enums import ForKind, is_incore_type
from ..ir.expr import ConstBool, ConstInt, Expr, Var
from ..ir.program import Function, Program
from ..ir.recursion import deep_recursion
from ..ir.stmt import (
    AssignStmt,
    ForStmt,
    IfStmt,
    ScopeStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    attach_leading_comments,
    seq,
)
from ..ir.substitution import substitute
from ..ir.traversal import walk
from ..ir.type import BOOL_TYPE, ScalarType
from ..verify.properties import IRProperty
from .base import FunctionPass, Pass
from .errors import PassError
from .escape_lowering import BREAKS, BodyLowering, Names
from .host_escapes import KERNEL_SCOPES, host_loops_to_lower


class CtrlFlowTransform(FunctionPass):
    """Lowers ``break`` and ``continue`` to flags, branches and guards."""

    name = "CtrlFlowTransform"
    produced = (IRProperty.StructuredCtrlFlow,)

    def run_on(self, function: Function, program: Program) -> Function:
        if not has_escapes(function.body):
            return function
        with deep_recursion():
            body = _Transform(function).run()
        return function if body is function.body else function.replace(body=body)


class _Transform:
    """The rewrite of one function; innermost loops first."""

    def __init__(self, function: Function) -> None:
        self._body = function.body
        self._occurrences = Occurrences(function)
        self._names = Names(self._occurrences)
        self._in_kernel = is_incore_type(function.func_type)
        self._host_loops = {} if self._in_kernel else host_loops_to_lower(function, self._occurrences)
        self._counters: dict[Var, Var] = {}  # loop variable -> the counter that replaces it

    def run(self) -> Stmt:
        body = self._stmt(self._body)
        return substitute(body, self._counters)

    def _stmt(self, stmt: Any) -> Stmt:
        kind = type(stmt)
        if kind is SeqStmts:
            stmts = [self._stmt(inner) for inner in stmt.stmts]
            if all(a is b for a, b in zip(stmts, stmt.stmts, strict=True)):
                return stmt  # type: ignore[no-any-return]
            return seq(stmts, stmt.span)
        if kind is IfStmt:
            then = self._stmt(stmt.then_body)
            other = None if stmt.else_body is None else self._stmt(stmt.else_body)
            if then is stmt.then_body and other is stmt.else_body:
                return stmt  # type: ignore[no-any-return]
            return stmt.replace(then_body=then, else_body=other)  # type: ignore[no-any-return]
        if kind is ForStmt or kind is WhileStmt:
            return self._loop(stmt)
        if isinstance(stmt, ScopeStmt):
            outer, self._in_kernel = self._in_kernel, self._in_kernel or kind in KERNEL_SCOPES
            body = self._stmt(stmt.body)
            self._in_kernel = outer
            return stmt if body is stmt.body else stmt.replace(body=body)
        return stmt  # type: ignore[no-any-return]

    # --- loops --------------------------------------------------------------------------------------------------------

    def _loop(self, original: Any) -> Stmt:
        body = self._stmt(original.body)
        loop = original if body is original.body else original.replace(body=body)
        if not self._in_kernel and original not in self._host_loops:
            return loop  # type: ignore[no-any-return]
        lowering = BodyLowering(loop, self._names, self._occurrences, original)
        if not lowering.kind:
            return loop  # type: ignore[no-any-return]
        breaks = bool(lowering.kind & BREAKS)
        _check_kind(loop, breaks)
        if breaks:
            return self._left_by_flag(loop, original, lowering)
        stmts, last = lowering.run(None)
        return loop.replace(body=_body(stmts, last, loop))  # type: ignore[no-any-return]

    def _left_by_flag(self, loop: Any, original: Any, lowering: BodyLowering) -> Stmt:
        """The ``while`` loop that a loop with ``break`` becomes, with what stands in front of it."""
        span = loop.span
        flag = self._names.var("break", "tmp", BOOL_TYPE, span)
        if type(loop) is WhileStmt:
            count = _Count(loop.condition)
        else:
            count = self._count(loop, original)
        stmts, last = lowering.run(flag)
        stmts = [*count.first, *stmts]
        if count.step is not None:
            stmts.append(IfStmt(scalar.not_(flag, span), count.step, None, [], span))
        made = WhileStmt(
            scalar.and_(count.condition, scalar.not_(flag, span), span),
            loop.iter_args,
            _body(stmts, last, loop),
            loop.return_vars,
            span,
        )
        head = [*count.head, AssignStmt(flag, ConstBool(False, span), span)]
        attach_leading_comments(head[0], loop.leading_comments)
        return seq([*head, made], span)

    def _count(self, loop: ForStmt, original: ForStmt) -> _Count:
        """How to count without ``for``."""
        span, var = loop.span, loop.loop_var
        counter = self._counters.get(var)
        own_value = self._occurrences.occurs_outside(var, original) or self._occurrences.defined_inside(var, original)
        if own_value or counter is None:
            counter = self._names.var(var.name_hint, "idx", var.type, var.span)
        head: list[Stmt] = []
        start = _as_type_of(var, loop.start)
        stop = self._kept(loop.stop, "stop", original, head)
        step = self._kept(loop.step, "step", original, head)
        first: list[Stmt] = []
        if own_value:
            # The variable is one of its own: it keeps its value behind the loop, and assigning it counts nothing.
            first.append(AssignStmt(var, counter, span))
        else:
            self._counters[var] = counter
        head.append(AssignStmt(counter, start, span))
        if own_value and _sign(step) == 1 and prove_lt(start, stop) is True:
            head.append(AssignStmt(var, counter, span))  # never seen, since the loop is entered: a value on each path
        advance = AssignStmt(counter, _as_type_of(var, scalar.add(counter, step, span)), span)
        return _Count(_more(counter, stop, step, span), head, first, advance)

    def _kept(self, bound: Expr, base: str, original: Stmt, head: list[Stmt]) -> Expr:
        """A bound that a condition may read in each iteration: kept in a variable if the body may change it."""
        for node in walk(bound):
            changes = isinstance(node, Var) and self._occurrences.defined_inside(node, original)
            if changes or isinstance(node, (x.Call, x.Submit)):
                var = self._names.var(base, "tmp", bound.type, bound.span)
                head.append(AssignStmt(var, bound, bound.span))
                return var
        return bound


class _Count(NamedTuple):
    """When a loop goes on, what stands in front of it and first in its body, and what ends an iteration."""

    condition: Expr
    head: Sequence[Stmt] = ()
    first: Sequence[Stmt] = ()
    step: Stmt | None = None


def _body(stmts: list[Stmt], last: Stmt | None, loop: Any) -> Stmt:
    return seq(stmts if last is None else [*stmts, last], loop.body.span)


def _check_kind(loop: Any, breaks: bool) -> None:
    kind = ForKind.Sequential if type(loop) is WhileStmt else loop.kind
    if kind is ForKind.Pipeline and breaks:
        raise PassError(
            "'break' can't leave a pipelined loop: its iterations overlap",
            loop.span,
            hint="Use pl.range, or compute the number of iterations in front of the loop",
        )
    if kind in (ForKind.Parallel, ForKind.Unroll):
        word, name = ("break" if breaks else "continue"), ("parallel" if kind is ForKind.Parallel else "unrolled")
        raise PassError(f"'{word}' is not supported in {name} loops", loop.span, hint="Use pl.range")


def _as_type_of(var: Var, value: Expr) -> Expr:
    """``value`` as a value of ``var``'s dtype."""
    kind = var.type
    assert isinstance(kind, ScalarType)
    if value.type is kind:
        return value
    if type(value) is ConstInt:
        return ConstInt(value.value, kind.dtype, value.span)
    return scalar.cast(value, kind.dtype, value.span)


def _more(counter: Var, stop: Expr, step: Expr, span: Any) -> Expr:
    """Whether the counter has not reached its end."""
    up, down = scalar.lt(counter, stop, span), scalar.gt(counter, stop, span)
    sign = _sign(step)
    if sign is not None and sign:
        return up if sign > 0 else down
    kind = step.type
    assert isinstance(kind, ScalarType)
    zero = ConstInt(0, kind.dtype, span)
    rising, falling = scalar.gt(step, zero, span), scalar.lt(step, zero, span)
    return scalar.or_(scalar.and_(rising, up, span), scalar.and_(falling, down, span), span)


def _sign(expr: Any) -> Any:
    """1, 0 or -1 for the sign of an integer; None if it is not known.

    The proofs of :mod:`pypto.arith` take a variable of dtype INDEX to be an extent, so not negative. A step may be.
    """
    kind = type(expr)
    if kind is ConstInt:
        return (expr.value > 0) - (expr.value < 0)
    if kind is x.Neg:
        sign = _sign(expr.operand)
        return None if sign is None else -sign
    if kind not in (x.Add, x.Mul, x.Max, x.Min):
        return None
    a, b = _sign(expr.left), _sign(expr.right)
    if kind is x.Max and 1 in (a, b):
        return 1
    if kind is x.Min and -1 in (a, b):
        return -1
    if a is None or b is None:
        return None
    if kind is x.Mul:
        return a * b
    if kind is x.Add:
        return None if a * b < 0 else a or b
    return max(a, b) if kind is x.Max else min(a, b)


def ctrl_flow_transform() -> Pass:
    """The pass CtrlFlowTransform."""
    return CtrlFlowTransform()


__all__ = ["CtrlFlowTransform", "ctrl_flow_transform"]
