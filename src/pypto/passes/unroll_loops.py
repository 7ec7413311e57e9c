"""UnrollLoops: each ``for i in pl.unroll(...)`` becomes copies of its body, with ``i`` replaced by its values.

Before::

    for c in pl.unroll(5, -1, -3):
        part = pl.tensor.slice(v, [8], [c * 8])
        acc = pl.tensor.add(acc, part)

After::

    part = pl.tensor.slice(v, [8], [5 * 8])
    acc = pl.tensor.add(acc, part)
    part = pl.tensor.slice(v, [8], [2 * 8])
    acc = pl.tensor.add(acc, part)

The pass works before SSA form: copies share the variables of the body, so that state flows from one copy to the next by
assigning again, and nothing is renamed. Two kinds of variables are others in each copy, under the same name: those
whose type mentions the index, and what a loop or branch of the body alone defines (loop variable, carries, results), as
if the user had written the copies; behind the loop such a name means that of the last copy. Outer loops are expanded
first, so the header of an inner one may use the outer index; every statement of the result is made once, so the cost is
linear in the output.

Loops that carry values can't be written with ``pl.unroll``, but can be built: each copy then reads what the one before
yields. A loop variable that is used after its loop has the last value there.

The pass needs nothing and gives UnrollResolved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..analysis.constants import constant_int, trip_count
from ..analysis.task_ids import is_null_id
from ..arith.analyzer import Analyzer
from ..diag.errors import InternalError
from ..ir.enums import ForKind
from ..ir.expr import Expr, IterArg, Var, index_const
from ..ir.node import FrozenList
from ..ir.program import Function, Program
from ..ir.stmt import (
    AssignStmt,
    BreakStmt,
    ContinueStmt,
    ForStmt,
    IfStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
    seq,
)
from ..ir.traversal import PUSH_CHILDREN
from ..ir.tree import flatten_to_stmts, get_last_yield_stmt, own_definitions, walk
from ..ir.type_fields import PLAIN_TYPES, is_closed
from ..verify.inventory import inventory
from ..verify.properties import IRProperty
from .base import FunctionPass, Pass
from .errors import PassError
from .parsed_form import ParsedForm
from .statement_lists import with_comments

MAX_TRIPS = 1024


class UnrollLoops(FunctionPass):
    """See the text of the module."""

    name = "UnrollLoops"
    produced = (IRProperty.UnrollResolved,)

    def run_on(self, function: Function, program: Program) -> Function:
        if not any(_is_unroll(loop) for loop, _ in inventory(function).of(ForStmt)):
            return function
        return function.replace(body=_Unroller(_LoopVars(function)).visit_stmt(function.body))


def unroll_loops() -> Pass:
    """The pass that expands ``pl.unroll`` loops."""
    return UnrollLoops()


_CONSTRUCTS = (ForStmt, WhileStmt, IfStmt)
_NO_TYPED_DEFINITION = (AssignStmt, SeqStmts)  # an assignment is dealt with on its own


def _is_unroll(stmt: Any) -> bool:
    return type(stmt) is ForStmt and stmt.kind is ForKind.Unroll


# --- what a function does with its loop variables ---------------------------------------------------------------------


class _LoopVars:
    """The variables of unroll loops in a function.

    ``outside``: variable -> the first statement with a use of it that is in none of its loops; ``reassigned``: those
    that one of their loops defines again in its body; ``one_loop``: those that one unroll loop defines and nothing
    else. ``once``: the other variables of the function that one statement defines and nothing else.
    """

    def __init__(self, function: Function) -> None:
        self.outside: dict[Var, Stmt] = {}
        self.reassigned: set[Var] = set()
        self._loops: Counter[Var] = Counter()
        self._inside: Counter[Var] = Counter()  # how many of its loops are around what is looked at
        self._others: Counter[Var] = Counter(function.params)
        self._look(function.body)
        self.one_loop = {var for var, count in self._loops.items() if count == 1 and not self._others[var]}
        self.once = {var for var, count in self._others.items() if count == 1 and var not in self._loops}
        self.once.difference_update(function.params)

    def _look(self, body: Stmt) -> None:
        uses: dict[Var, Stmt] = {}
        at = body
        stack: list[Any] = [body]
        push = stack.append
        while stack:
            node = stack.pop()
            if type(node) is _End:
                self._inside[node.var] -= 1
                continue
            if isinstance(node, Var):
                if not self._inside[node]:
                    uses.setdefault(node, at)
                continue
            if isinstance(node, Stmt):
                at = node
                self._definitions(node, push)
                if type(node) is AssignStmt:
                    push(node.value)
                    continue
            code = PUSH_CHILDREN.get(type(node))
            if code is not None:
                code(node, push)
        self.outside = {var: stmt for var, stmt in uses.items() if var in self._loops}

    def _definitions(self, stmt: Stmt, push: Any) -> None:
        if type(stmt) is AssignStmt and is_null_id(stmt.value):
            return  # in front of a scope that defines the task id
        for var in own_definitions(stmt):
            if self._inside[var]:
                self.reassigned.add(var)
            if not _is_unroll(stmt):
                self._others[var] += 1
        if isinstance(stmt, ForStmt) and _is_unroll(stmt):
            self._loops[stmt.loop_var] += 1
            self._inside[stmt.loop_var] += 1
            push(_End(stmt.loop_var))


class _End:
    """Marks on a stack where a loop ends."""

    __slots__ = ("var",)

    def __init__(self, var: Var) -> None:
        self.var = var


class _Carries:
    """What the body of an unroll loop with iter_args does to variables, by its top statements.

    A copy reads for an iter_arg what the copy before yielded. That may name variables of the body, which the new copy
    assigns again: after that they are no longer what was yielded.
    """

    def __init__(self, loop: ForStmt) -> None:
        self._first_definition: dict[Var, int] = {}
        self._last_use: dict[Var, int] = {}
        self._simple: list[bool] = []
        for position, stmt in enumerate(flatten_to_stmts(loop.body)):
            self._simple.append(type(stmt) is AssignStmt)
            for node in walk(stmt, types=True):
                if isinstance(node, Stmt):
                    for var in own_definitions(node):
                        self._first_definition.setdefault(var, position)
                elif isinstance(node, Var):
                    self._last_use[node] = position

    def is_overwritten(self, value: Expr, iter_arg: Var) -> bool:
        """Whether a copy assigns a variable of ``value`` before it has read it for the last time as ``iter_arg``."""
        last = self._last_use.get(iter_arg, -1)
        for node in walk(value):
            first = self._first_definition.get(node) if isinstance(node, Var) else None
            if first is not None and (first < last or (first == last and not self._simple[first])):
                return True
        return False


# --- the rewrite ------------------------------------------------------------------------------------------------------


class _Unroller(ParsedForm):
    def __init__(self, loop_vars: _LoopVars) -> None:
        self._loop_vars = loop_vars
        self._copies = 0  # how many loops around are being unrolled
        self._innermost = False  # whether the innermost loop is one of them
        self._yield: YieldStmt | None = None  # that of the innermost loop, if it is one of them and carries values
        self._yielded: list[Expr] = []
        self._retyped: set[Var] = set()  # variables that have a new type in this copy
        self._is_last = True  # whether no copy of the same statements follows

    # --- statements in general ---

    def visit_stmt(self, stmt: Stmt) -> Stmt:
        if self._copies and type(stmt) not in _NO_TYPED_DEFINITION:
            self._forget_types(own_definitions(stmt))
        if self._copies and type(stmt) in _CONSTRUCTS and not _is_unroll(stmt):
            new = self._construct(stmt)
        else:
            new = super().visit_stmt(stmt)
        # A statement has one place in a function.
        return new.replace() if new is stmt and self._copies else new

    def visit_seq_stmts(self, op: SeqStmts) -> Stmt:
        new = self._all(op.stmts)
        if len(new) == len(op.stmts) and all(a is b for a, b in zip(new, op.stmts, strict=True)):
            return op
        return seq(new, op.span)

    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        if op.kind is ForKind.Unroll:
            return seq(self._all([op]), op.span)
        return self._other_loop(op)

    def visit_while_stmt(self, op: WhileStmt) -> Stmt:
        return self._other_loop(op)

    def _other_loop(self, op: ForStmt | WhileStmt) -> Stmt:
        outer, self._innermost = self._innermost, False
        new = self._default_stmt(op)
        self._innermost = outer
        return new

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        var = op.var
        if self._copies and is_null_id(op.value):  # the scope behind it defines the task id
            self._define_anew((var,))
        if not self._copies or type(var.type) in PLAIN_TYPES or is_closed(var.type):
            return self._default_stmt(op)
        value = self.visit_expr(op.value)  # before the variable gets the type of this copy
        self._forget_types((var,))
        target = self.visit_expr(var)
        if target is var and value is op.value:
            return op
        return op.replace(var=target, value=value)  # type: ignore[no-any-return]

    def _forget_types(self, defined: Sequence[Var]) -> None:
        """The first definition in a copy gives a variable its type there; until then it is that of the copy before."""
        for var in defined:
            if type(var.type) not in PLAIN_TYPES and var not in self._retyped:
                self._retyped.add(var)
                self._remap.pop(var, None)

    def _define_anew(self, variables: Sequence[Var]) -> None:
        """Give what a loop or branch defines another variable in each copy; the last one keeps the old."""
        for var in variables:
            if var not in self._loop_vars.once:
                continue
            self._remap.pop(var, None)
            changes: dict[str, Any] = {"type": self._rewrite_type(var.type)}
            if self._is_last and changes["type"] is var.type:
                continue
            if isinstance(var, IterArg):
                changes["initValue"] = self.visit_expr(var.initValue)
            self._remap[var] = var.replace(**changes)

    def _construct(self, stmt: Any) -> Stmt:
        """A loop or branch of a copy."""
        if type(stmt) is not IfStmt:
            header = [arg.initValue for arg in stmt.iter_args]
            if type(stmt) is ForStmt:
                header += [stmt.start, stmt.stop, stmt.step]
            # A name that the header reads means what the copy before left.
            read = {node for e in header for node in walk(e) if isinstance(node, Var)}
            inside = [*([stmt.loop_var] if type(stmt) is ForStmt else []), *stmt.iter_args]
            self._define_anew([var for var in inside if var not in read])
        results = stmt.return_vars
        new: Any = super().visit_stmt(stmt)
        self._define_anew(results)
        fresh = [self._target(var) for var in results]
        if any(a is not b for a, b in zip(fresh, new.return_vars, strict=True)):
            new = new.replace(return_vars=FrozenList(fresh))
        return new  # type: ignore[no-any-return]

    def visit_break_stmt(self, op: BreakStmt) -> Stmt:
        return self._leaving(op, "break")

    def visit_continue_stmt(self, op: ContinueStmt) -> Stmt:
        return self._leaving(op, "continue")

    def _leaving(self, op: Stmt, word: str) -> Stmt:
        if self._innermost:
            raise PassError(
                f"'{word}' is not supported in unrolled loops",
                op.span,
                hint="Use pl.range() for a loop that is left early",
            )
        return op

    def visit_yield_stmt(self, op: YieldStmt) -> Stmt:
        if op is not self._yield:
            return self._default_stmt(op)
        self._yielded = [self.visit_expr(value) for value in op.value]
        return SeqStmts([], op.span)

    # --- unroll loops ---

    def _all(self, stmts: Sequence[Stmt]) -> list[Stmt]:
        out: list[Stmt] = []
        for stmt in stmts:
            self._emit(stmt, out)
        return out

    def _emit(self, stmt: Stmt, out: list[Stmt]) -> None:
        if isinstance(stmt, ForStmt) and _is_unroll(stmt):
            self._unroll(stmt, out)
            return
        new = self.visit_stmt(stmt)
        if type(new) is SeqStmts:
            out += flatten_to_stmts(new)
        else:
            out.append(new)

    def _unroll(self, loop: ForStmt, out: list[Stmt]) -> None:
        values = self._values(loop)
        carried = [self.visit_expr(arg.initValue) for arg in loop.iter_args]
        first = len(out)
        self._copies += 1
        outer = self._innermost, self._yield, self._retyped, self._is_last
        self._innermost = True
        self._yield = get_last_yield_stmt(loop.body) if loop.iter_args else None
        if loop.iter_args and self._yield is None:
            raise InternalError(f"an unroll loop that carries values has no yield at its end, at {loop.span}")
        carries = _Carries(loop) if loop.iter_args else None
        for value in values:
            self._retyped = set()
            self._is_last = outer[3] and value == values[-1]
            self._remap.update(zip(loop.iter_args, carried, strict=True))
            self._copy(loop, value, out)
            if carries is not None:
                carried = self._carried(loop, carries, out, is_last=value == values[-1])
        self._innermost, self._yield, self._retyped, self._is_last = outer
        for arg in loop.iter_args:
            self._remap.pop(arg, None)
        for var, result in zip(loop.return_vars, carried, strict=True):
            out.append(AssignStmt(self._target(var), result, loop.span))
        self._leave(loop, values, out)
        self._copies -= 1
        if loop.leading_comments and len(out) > first:
            out[first] = with_comments(loop.leading_comments, out[first])

    def _values(self, loop: ForStmt) -> range:
        start, stop, step = (self._bound(loop, name) for name in ("start", "stop", "step"))
        if step == 0:
            raise PassError("Unroll loop step cannot be zero", loop.span, hint="Count up or down")
        trips = trip_count(start, stop, step)
        if trips > MAX_TRIPS:
            raise PassError(
                f"Unroll loop trip count {trips} exceeds maximum allowed ({MAX_TRIPS})",
                loop.span,
                hint="Use pl.range(), or unroll a smaller loop inside it",
            )
        return range(start, stop, step)

    def _bound(self, loop: ForStmt, name: str) -> int:
        expr = self.visit_expr(getattr(loop, name))
        value = constant_int(expr)
        if value is None:  # an inner header that computes with the outer index
            value = constant_int(Analyzer().simplify(expr))
        if value is None:
            raise PassError(
                f"Unroll loop {name} must be a compile-time integer constant",
                expr.span if expr.span.is_valid() else loop.span,
                hint="Use pl.range() for bounds that are known at run time only",
            )
        return value

    def _copy(self, loop: ForStmt, value: int, out: list[Stmt]) -> None:
        var = loop.loop_var
        if var in self._loop_vars.reassigned:
            self._remap.pop(var, None)
            out.append(AssignStmt(var, index_const(value), loop.span))
        else:
            self._remap[var] = index_const(value)
        for stmt in flatten_to_stmts(loop.body):
            self._emit(stmt, out)

    def _carried(self, loop: ForStmt, carries: _Carries, out: list[Stmt], is_last: bool) -> list[Expr]:
        """What the next copy reads for the iter_args: the values just yielded, or variables of their own for them."""
        carried = list(self._yielded)
        if len(carried) != len(loop.iter_args):
            raise InternalError(
                f"an unroll loop yields {len(carried)} values for {len(loop.iter_args)}, at {loop.span}"
            )
        for i, (arg, value) in enumerate(zip(loop.iter_args, carried, strict=True)):
            if not is_last and carries.is_overwritten(value, arg):
                kept = Var(arg.name_hint, value.type, arg.span)
                out.append(AssignStmt(kept, value, loop.span))
                carried[i] = kept
        return carried

    def _target(self, var: Var) -> Var:
        self._forget_types((var,))
        new = self.visit_expr(var)
        assert isinstance(new, Var)
        return new

    def _leave(self, loop: ForStmt, values: range, out: list[Stmt]) -> None:
        """Behind the loop its variable has the last value."""
        var = loop.loop_var
        use = self._loop_vars.outside.get(var)
        if var in self._loop_vars.reassigned:
            return
        if use is None or var not in self._loop_vars.one_loop:
            self._remap.pop(var, None)
            if use is not None and values:
                out.append(AssignStmt(var, index_const(values[-1]), loop.span))
        elif not values and var not in self._remap:
            raise PassError(
                f"'{var.name_hint}' is used after its unroll loop, which has no iterations",
                use.span,
                labels=((loop.span, "this loop never runs"),),
                hint="Give the name a value before the loop",
            )


__all__ = ["MAX_TRIPS", "UnrollLoops", "unroll_loops"]
