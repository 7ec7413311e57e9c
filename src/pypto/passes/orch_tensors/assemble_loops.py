"""Rewrite 3 of OptimizeOrchTensors: a loop that puts a tile together stores its pieces instead.

The tile is empty before the loop, each iteration assembles one piece into it, and behind the loop it is stored whole
into an output of the kernel that is not used in any other way. So the pieces can go where they end up at once.
"""

from __future__ import annotations

from typing import Any

from ...analysis.callees import Callees, callees_of
from ...analysis.constants import constant_int
from ...ir.enums import FunctionType, MemorySpace, ParamDirection
from ...ir.expr import IterArg, MakeTuple, Var
from ...ir.mutator import IRMutator
from ...ir.node import FrozenList
from ...ir.operands import is_op
from ...ir.program import Function, Program
from ...ir.stmt import AssignStmt, ForStmt, SeqStmts, Stmt
from ...ir.tree import get_last_yield_stmt
from ...ir.type import TensorType
from ...ops.registry import create_op_call
from ...verify.call_sites import call_sites
from .uses import ARGUMENT, INITIAL, YIELDED, Facts, Use

# What a tile can be stored from.
_STORED = (None, MemorySpace.Vec, MemorySpace.Acc)


def store_pieces(program: Program) -> Program:
    """The program with these loops rewritten, in all its kernels."""
    callees = callees_of(program)
    return program.with_functions([_rewritten(function, callees) for function in program.functions.values()])


def _rewritten(function: Function, callees: Callees) -> Function:
    if function.func_type is not FunctionType.InCore or function.attrs.get("external_source"):
        return function
    if "tile.assemble" not in call_sites(function).ops:
        return function
    facts = Facts(function, callees)
    found = [loop for stmt in facts.uses.extent if (loop := _found(facts, stmt)) is not None]
    if not found:
        return function
    rewrite = _Rewrite(found)
    return function.replace(body=rewrite.visit_stmt(function.body))


class _Assembling:
    """Such a loop: the assemble in it, the create in front of it, the store behind it, and the output."""

    def __init__(self, loop: Any, assemble: Any, create: Any, store: Any, target: Var) -> None:
        self.loop = loop
        self.assemble = assemble
        self.create = create
        self.store = store
        self.target = target


def _found(facts: Facts, loop: Any) -> _Assembling | None:
    if type(loop) is not ForStmt or len(loop.iter_args) != 1:
        return None
    uses = facts.uses
    arg, result = loop.iter_args[0], loop.return_vars[0]
    last: Any = get_last_yield_stmt(loop.body)
    assemble = uses.assigned.get(last.value[0]) if last is not None else None
    start: Any = arg.initValue
    create = uses.assigned.get(start)
    store_use = _only(facts, result)
    if assemble is None or create is None or store_use is None:
        return None
    store, call = store_use.stmt, assemble.value
    if not is_op(call, "tile.assemble") or not is_op(create.value, "tile.create") or type(store) is not AssignStmt:
        return None
    if not _is(facts, arg, ARGUMENT, call, 0) or not _is(facts, assemble.var, YIELDED, loop, 0):
        return None
    if uses.loop_of[assemble] is not loop or not _is(facts, create.var, INITIAL, loop, 0):
        return None
    target = _target(facts, store, result)
    if target is None or not _fits(call, result, target):
        return None
    return _Assembling(loop, assemble, create, store, target)


def _only(facts: Facts, var: Var) -> Use | None:
    found = facts.uses.of.get(var, ())
    return found[0] if len(found) == 1 else None


def _is(facts: Facts, var: Var, kind: int, node: Any, index: int) -> bool:
    use = _only(facts, var)
    return use is not None and use.is_(kind, node, index)


def _target(facts: Facts, store: Any, result: Var) -> Var | None:
    """The output that a statement stores a tile into as a whole, if nothing else is done with it."""
    call, function = store.value, facts.function
    if not is_op(call, "tile.store") or call.args[0] is not result or len(call.args) > 3 or call.kwargs.get("atomic"):
        return None
    target: Any = call.args[2]
    at = next((i for i, param in enumerate(function.params) if param is target), None)
    if at is None or function.param_directions[at] is not ParamDirection.Out or _only(facts, target) is None:
        return None
    origin = type(call.args[1]) is MakeTuple and all(constant_int(e) == 0 for e in call.args[1].elements)
    return target if origin else None


def _fits(assemble: Any, whole: Any, target: Any) -> bool:
    """Whether a piece can be stored where it was assembled."""
    piece, kind, wanted = assemble.args[1].type, whole.type, target.type
    if type(wanted) is not TensorType or not piece.dtype is kind.dtype is wanted.dtype:
        return False
    if not len(piece.shape) == len(kind.shape) == len(wanted.shape) or piece.memory_space not in _STORED:
        return False
    return all(t.valid_extents is t.shape for t in (piece, kind, wanted))


class _Rewrite(IRMutator):
    def __init__(self, found: list[_Assembling]) -> None:
        self._loops = {item.loop: item for item in found}
        self._assembles = {item.assemble: item for item in found}
        self._gone = {item.create for item in found} | {item.store for item in found}

    def visit_for_stmt(self, op: ForStmt) -> Stmt:
        item = self._loops.get(op)
        if item is None:
            return super().visit_for_stmt(op)
        kind = item.target.type
        old, result = op.iter_args[0], op.return_vars[0]
        arg = self._remap[old] = IterArg(old.name_hint, kind, item.target, old.span)
        after = self._remap[result] = result.replace(type=kind)
        self._remap[item.store.var] = after
        return super().visit_for_stmt(op.replace(iter_args=FrozenList([arg]), return_vars=FrozenList([after])))

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        if op in self._gone:
            return SeqStmts([], op.span)
        item = self._assembles.get(op)
        if item is None:
            return super().visit_assign_stmt(op)
        target, piece, offsets = (self.visit_expr(arg) for arg in op.value.args)  # type: ignore[attr-defined]
        value = create_op_call("tile.store", [piece, offsets, target], {}, op.value.span)
        var = self._remap[op.var] = op.var.replace(type=value.type)
        return op.replace(var=var, value=value)  # type: ignore[no-any-return]


__all__ = ["store_pieces"]
