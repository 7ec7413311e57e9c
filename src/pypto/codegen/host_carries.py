"""Tensors that a loop makes and carries on take turns in two buffers, however often the loop runs.

What the host lets a kernel return (see :mod:`.host_kernels`) is a new tensor in each iteration.

Before::

    for i, (t,) in pl.range(n, init_values=(x,)):
        made = pl.tensor.create([16, 64])
        t1 = self.add(t, x, made)
        t2 = pl.yield_(t1)

After::

    a, b = pl.tensor.create([16, 64]), pl.tensor.create([16, 64])
    for i, (t, this, other) in pl.range(n, init_values=(x, a, b)):
        made = this
        t1 = self.add(t, x, made)
        t2, _, _ = pl.yield_(t1, other, this)

The last iteration's tensor stays as it is while the next one is made. Nothing else may carry it further.
"""

from __future__ import annotations

from typing import Any

from ..analysis.buffer_names import BufferNames
from ..ir.enums import ArgDirection, ForKind
from ..ir.expr import Call, IterArg, Submit, Var
from ..ir.mutator import IRMutator
from ..ir.node import FrozenDict, FrozenList
from ..ir.stmt import AssignStmt, BreakStmt, ContinueStmt, SeqStmts, Stmt, YieldStmt
from ..ir.traversal import walk
from ..ir.tree import get_last_yield_stmt, walk_stmts, with_last_yield
from .host_entry import statements_of


class Turns(IRMutator):
    """``made``: the tensors that are new in each iteration."""

    def __init__(self, names: BufferNames, made: frozenset[Var]) -> None:
        self._names = names
        self._made = made

    def visit_for_stmt(self, op: Any) -> Stmt:
        loop = super().visit_for_stmt(op)
        return loop if op.kind is ForKind.Parallel else self._loop(loop, op)

    def visit_while_stmt(self, op: Any) -> Stmt:
        return self._loop(super().visit_while_stmt(op), op)

    def _loop(self, loop: Any, before: Any) -> Stmt:
        # The names are those of the loop as it was; what changed inside it carries nothing of this loop.
        creates = {stmt.var: stmt for stmt in statements_of(loop.body) if self._is_made(stmt)}
        last = get_last_yield_stmt(before.body)
        if not creates or last is None:
            return loop  # type: ignore[no-any-return]
        if any(type(stmt) in (BreakStmt, ContinueStmt) for stmt in walk_stmts(loop.body)):
            return loop  # type: ignore[no-any-return]
        front: list[Stmt] = []
        for slot, value in enumerate(last.value):
            made = self._names.name(value)
            others = [v for i, v in enumerate(last.value) if i != slot]
            if made is None or made not in creates or any(made in set(self._names.candidates(v)) for v in others):
                continue
            loop, stmts = _taking_turns(loop, creates[made])
            front += stmts
        return SeqStmts([*front, loop], loop.span) if front else loop

    def _is_made(self, stmt: Any) -> bool:
        if type(stmt) is not AssignStmt or stmt.var not in self._made or type(stmt.value) is not Call:
            return False
        return not any(isinstance(node, Var) for node in walk(stmt.value))  # the same shape each time


def _taking_turns(loop: Any, create: Any) -> tuple[Any, list[Stmt]]:
    kind, span = create.var.type, create.span
    front, args, results = [], [], []
    for which in ("this", "other"):
        first = Var(f"{create.var.name_hint}_{which}", kind, span)
        front.append(AssignStmt(first, create.value, span))
        args.append(IterArg(f"{first.name_hint}_turn", kind, first, span))
        results.append(Var(f"{first.name_hint}_last", kind, span))
    body = _Reusing(create, args[0]).visit_stmt(loop.body)

    def both(stmt: YieldStmt) -> list[Stmt]:
        return [YieldStmt([*stmt.value, args[1], args[0]], stmt.span)]

    return (
        loop.replace(
            iter_args=FrozenList([*loop.iter_args, *args]),
            return_vars=FrozenList([*loop.return_vars, *results]),
            body=with_last_yield(body, both),
        ),
        list(front),
    )


class _Reusing(IRMutator):
    """Takes a buffer instead of making one. Who writes it is no longer the first one to do so."""

    def __init__(self, create: Any, buffer: Var) -> None:
        self._create = create
        self._buffer = buffer

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        if op.var is self._create.var:
            return AssignStmt(op.var, self._buffer, op.span)
        return super().visit_assign_stmt(op)

    def visit_call(self, op: Call) -> Any:
        return self._launch(op)

    def visit_submit(self, op: Submit) -> Any:
        return self._launch(op)

    def _launch(self, op: Any) -> Any:
        if not any(arg is self._create.var for arg in op.args) or not op.arg_directions:
            return op
        directions = [
            ArgDirection.InOut if arg is self._create.var and d is ArgDirection.OutputExisting else d
            for arg, d in zip(op.args, op.arg_directions, strict=True)
        ]
        return op.replace(attrs=FrozenDict({**op.attrs, "arg_directions": FrozenList(directions)}))


__all__ = ["Turns"]
