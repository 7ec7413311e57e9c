"""FuseCreateAssembleToSlice: a buffer that is only made to be assembled into another becomes a slice of that.

*Before*::

    for r, (acc,) in pl.range(4, init_values=(out,)):
        t = pl.create_tensor([16, 64], dtype=pl.FP32)
        u = self.fill(a, r, t)
        acc2 = pl.assemble(acc, u, [r * 16, 0])
        res = pl.yield_(acc2)
    return res

*After*::

    for r in pl.range(4):
        t = pl.slice(out, [16, 64], [r * 16, 0])
        u = self.fill(a, r, t)
    return out

In an orchestration ``tensor.assemble`` only gives a name, so the kernel has to write into the target itself. A
created buffer is replaced if it is assembled once, not atomically and whole, and all that the slice needs is there
where the buffer is created: both stand in one block, and the target and the offsets are defined in front of the
create. Nothing may see the difference: no statement between the two touches the target under any name, none behind
the assemble touches the buffer, and the buffer has no initial value (a slice can't be given one) and no
``manual_dep``. Everything else is left alone: the program is right either way.

A carry that afterwards only passes itself through goes, and its initial value takes its place.

Needs SplitIncoreOrch. Cost: linear; what happens between a create and its assemble is answered by positions of events.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import partial
from typing import Any

from ..analysis.callees import Callees, callees_of
from ..ir.call import Call
from ..ir.dtype import DataType
from ..ir.enums import FunctionType
from ..ir.expr import ConstInt, MakeTuple, Var
from ..ir.mutator import IRMutator
from ..ir.node import FrozenList
from ..ir.operands import is_op
from ..ir.program import Function, Program
from ..ir.stmt import AssignStmt, ForStmt, SeqStmts, Stmt, WhileStmt, YieldStmt
from ..ir.tree import get_last_yield_stmt, walk, with_last_yield
from ..ir.type import TensorType
from ..ops.registry import create_op_call
from ..verify.properties import IRProperty
from .base import FunctionPass, Pass


class FuseCreateAssembleToSlice(FunctionPass):
    """See the module."""

    name = "FuseCreateAssembleToSlice"
    required = (IRProperty.SplitIncoreOrch,)

    def run_on(self, function: Function, program: Program) -> Function:
        if function.func_type is not FunctionType.Orchestration:
            return function
        found = _Search(function, callees_of(program))
        if not found.slices:
            return function
        rewrite = _Rewrite(found)
        body = rewrite.visit_stmt(function.body)
        return function.replace(body=body)


class _Search:
    """What can be fused. ``slices``: create statement -> the assemble that it is made a slice for; ``names``: variable
    -> what takes its place; ``passed``: loop -> the slots that only pass themselves on afterwards.
    """

    def __init__(self, function: Function, callees: Callees) -> None:
        self.slices: dict[Stmt, AssignStmt] = {}
        self.names: dict[Var, Any] = {}
        self.passed: dict[Stmt, list[int]] = {}
        self._buffers = callees.names(function)
        self._position: dict[Stmt, int] = {}
        self._end: dict[Stmt, int] = {}
        self._first: dict[Any, int] = dict.fromkeys(
            function.params, -1
        )  # where a variable occurs first: its definition
        self._touched: dict[Var, list[int]] = {}  # buffer -> where any name of it, or of a part, occurs
        self._block: dict[Stmt, SeqStmts] = {}
        self._tuples: dict[Any, MakeTuple] = {}
        self._creates: dict[Var, AssignStmt] = {}
        self._assembled: dict[Var, list[AssignStmt]] = {}
        self._loops: list[Any] = []
        self._collect(function.body)
        for buffer, stmts in self._assembled.items():
            create = self._creates.get(buffer)
            if create is not None and len(stmts) == 1 and self._is_right(create, stmts[0], buffer):
                self.slices[create] = stmts[0]
                self.names[stmts[0].var] = stmts[0].value.args[0]  # type: ignore[attr-defined]
        if self.slices:
            for loop in reversed(self._loops):  # inner ones first
                self._pass_through(loop)

    def _collect(self, body: Stmt) -> None:
        for position, node in enumerate(walk(body)):
            if isinstance(node, Var):
                self._first.setdefault(node, position)
                if isinstance(node.type, TensorType):
                    for buffer in self._buffers.candidates(node):
                        self._touched.setdefault(buffer, []).append(position)
                continue
            cls = type(node)
            if cls is SeqStmts:
                self._block.update((stmt, node) for stmt in node.stmts)
            elif cls is AssignStmt:
                self._position[node] = position
                self._assign(node)
            elif cls is ForStmt or cls is WhileStmt:
                self._loops.append(node)

    def _assign(self, stmt: AssignStmt) -> None:
        value: Any = stmt.value
        if type(value) is MakeTuple:
            self._tuples[stmt.var] = value
        elif is_op(value, "tensor.create"):
            self._creates[stmt.var] = stmt
        elif is_op(value, "tensor.assemble"):
            source = self._buffers.name(value.args[1])
            for buffer in [source] if source is not None else self._buffers.candidates(value.args[1]):
                self._assembled.setdefault(buffer, []).append(stmt)

    # --- whether a pair is right --------------------------------------------------------------------------------------

    def _is_right(self, create: AssignStmt, assemble: AssignStmt, buffer: Var) -> bool:
        made: Any = create.value
        call: Any = assemble.value
        target, offsets = call.args[0], self.offsets(call)
        if call.kwargs.get("atomic") or made.kwargs.get("manual_dep") or made.kwargs.get("init_value") is not None:
            return False
        if not isinstance(target, Var) or offsets is None or self._buffers.name(call.args[1]) is not buffer:
            return False
        if create.var.type.tensor_view is not None or len(create.var.type.shape) > len(target.type.shape):  # type: ignore[attr-defined]
            return False
        block = self._block.get(create)
        if block is None or self._block.get(assemble) is not block:
            return False
        start, end = self._position[create], self._position[assemble]
        needed = [target, *(node for offset in offsets for node in walk(offset) if isinstance(node, Var))]
        if end < start or any(self._first.get(var, -1) >= start for var in needed):
            return False
        behind = end + sum(1 for _ in walk(assemble))
        if any(at >= behind for at in self._touched[buffer][-1:]):
            return False
        targets = self._buffers.candidates(target)
        return not any(each is buffer or self._occurs(each, start, end) for each in targets)

    def _occurs(self, buffer: Var, start: int, end: int) -> bool:
        places = self._touched.get(buffer, [])
        at = bisect_left(places, start)
        return at < len(places) and places[at] < end

    def offsets(self, call: Any) -> Sequence[Any] | None:
        """The offsets of an assemble; None if they are not written out."""
        found = call.args[2]
        found = self._tuples.get(found) if isinstance(found, Var) else found
        return found.elements if type(found) is MakeTuple else None

    # --- carries ------------------------------------------------------------------------------------------------------

    def resolved(self, value: Any) -> Any:
        """What takes the place of a value, through all that was replaced."""
        while value in self.names:
            value = self.names[value]
        return value

    def _pass_through(self, loop: Any) -> None:
        last = get_last_yield_stmt(loop.body)
        if last is None:
            return
        slots = []
        for i, (arg, value) in enumerate(zip(loop.iter_args, last.value, strict=False)):
            if value is not arg and self.resolved(value) is arg:
                slots.append(i)
        for i in slots:
            self.names[loop.iter_args[i]] = self.names[loop.return_vars[i]] = loop.iter_args[i].initValue
        if slots:
            self.passed[loop] = slots


class _Rewrite(IRMutator):
    def __init__(self, found: _Search) -> None:
        self._found = found
        self._dropped = set(found.slices.values())
        self._remap.update((var, found.resolved(var)) for var in found.names)

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        if op in self._dropped:
            return SeqStmts([], op.span)
        assemble = self._found.slices.get(op)
        return super().visit_assign_stmt(op) if assemble is None else self._slice(op, assemble)

    def _slice(self, create: AssignStmt, assemble: AssignStmt) -> Stmt:
        call: Any = assemble.value
        made: Any = create.value
        offsets = self._found.offsets(call)
        assert offsets is not None
        shape = list(create.var.type.shape)  # type: ignore[attr-defined]
        ones = [ConstInt(1, DataType.INDEX, made.span) for _ in range(len(offsets) - len(shape))]
        args = [
            self.visit_expr(call.args[0]),
            MakeTuple([*ones, *shape], made.span),
            MakeTuple(list(offsets), call.span),
        ]
        args[2] = self.visit_expr(args[2])
        value = create_op_call("tensor.slice", args, {}, made.span)
        var = create.var
        if ones:
            var = self._remap[create.var] = Var(create.var.name_hint, value.type, create.var.span)
        return create.replace(var=var, value=value)  # type: ignore[no-any-return]

    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        return super().visit_for_stmt(self._without_passed(op))

    def visit_while_stmt(self, op: WhileStmt) -> Stmt:
        return super().visit_while_stmt(self._without_passed(op))

    def _without_passed(self, loop: Any) -> Any:
        slots = self._found.passed.get(loop)
        if slots is None:
            return loop
        return loop.replace(
            iter_args=_without(loop.iter_args, slots),
            return_vars=_without(loop.return_vars, slots),
            body=with_last_yield(loop.body, partial(_yielding_less, slots=slots)),
        )


def _yielding_less(last: YieldStmt, slots: Sequence[int]) -> list[Stmt]:
    """A yield without some of its values; one of nothing goes."""
    values = _without(last.value, slots)
    return [last.replace(value=values)] if values else []


def _without(items: Sequence[Any], slots: Sequence[int]) -> FrozenList[Any]:
    return FrozenList(item for i, item in enumerate(items) if i not in slots)


def created_slices(function: Function, callees: Callees) -> dict[Var, Call]:
    """The buffers that this pass makes slices, each with the assemble that it is made a slice for."""
    slices = _Search(function, callees).slices
    return {create.var: assemble.value for create, assemble in slices.items()}  # type: ignore[attr-defined,misc]


def fuse_create_assemble_to_slice() -> Pass:
    """Let kernels write into the tensor that their output is assembled into."""
    return FuseCreateAssembleToSlice()


__all__ = ["FuseCreateAssembleToSlice", "created_slices", "fuse_create_assemble_to_slice"]
