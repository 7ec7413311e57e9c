"""Which buffers from outside a region reads and writes."""

from __future__ import annotations

from typing import Any

from ..ir.enums import ArgEffect, ParamDirection
from ..ir.expr import Expr, GlobalVar, Var
from ..ir.stmt import SCOPE_CLASSES, AssignStmt, EvalStmt, ReturnStmt, Stmt
from ..ops.definition import Alias, OpDef
from ..ops.registry import REGISTRY
from .callees import Callees
from .roots import Roots, Source, is_tensor

READ, WRITE = 1, 2


class Store:
    """A write to a tensor from outside. ``direct``: the variable itself is the destination, not a copy of it."""

    __slots__ = ("call", "direct", "named", "stmt", "target")

    def __init__(self, target: Var, direct: bool, named: bool, call: Any, stmt: Stmt) -> None:
        self.target = target
        self.direct = direct
        self.named = named  # the result of the call is the buffer as it is after the write
        self.call = call
        self.stmt = stmt


class Buffers(Roots):
    """The buffers of one region, and what it does to those from outside.

    ``accesses``: tensor from outside -> ``READ | WRITE``; tensors that are only mentioned are not among them.
    ``stores``: the writes among these, in order.
    """

    def __init__(self, region: Stmt, callees: Callees) -> None:
        self.accesses: dict[Var, int] = {}
        self.stores: list[Store] = []
        self._touches: list[tuple[list[Source], int, bool, Any, Stmt]] = []
        self._where: Stmt = region
        super().__init__(region, callees)
        self._resolve_touches()

    def _stmt(self, stmt: Any) -> None:
        if type(stmt) in _PLACES:
            self._where = stmt
        super()._stmt(stmt)

    def _call(self, call: Any) -> None:
        """Note what a call reads and writes. What it only passes on is touched by who uses it."""
        super()._call(call)
        if type(call.op) is GlobalVar:
            for i, arg in enumerate(call.args):
                if is_tensor(arg):
                    direction = self._callees.direction(call, i)
                    self._touch(arg, FLAGS_OF_DIRECTION[direction], True, call)
            return
        definition = REGISTRY.get(call.op.name)
        for i, arg in enumerate(call.args):
            if is_tensor(arg):
                flags, named = _op_access(definition, i, call)
                if flags:
                    self._touch(arg, flags, named, call)

    def _touch(self, arg: Expr, flags: int, named: bool, call: Any) -> None:
        self._touches.append((self._of(arg), flags, named, call, self._where))

    def _resolve_touches(self) -> None:
        for sources, flags, named, call, stmt in self._touches:
            for var, _ in sources:
                if var is None:
                    continue
                for root in self._may_roots(var):
                    self.accesses[root] = self.accesses.get(root, 0) | flags
                    if flags & WRITE:
                        self.stores.append(Store(root, root is var, named, call, stmt))


# Looks at the type of its operand only.
_SHAPE_ONLY = "tensor.dim"


def _op_access(definition: OpDef | None, index: int, call: Any) -> tuple[int, bool]:
    """What an op does to an operand, and whether its result is the operand afterwards."""
    if definition is None:
        return READ | WRITE, False
    effect = definition.effect(index, call.kwargs)
    renamed = definition.alias is not Alias.FRESH and definition.alias_operand == index
    if effect is ArgEffect.Read:
        return (0 if renamed or definition.name == _SHAPE_ONLY else READ), False
    return (WRITE if effect is ArgEffect.Write else READ | WRITE), renamed and definition.alias is Alias.IS


FLAGS_OF_DIRECTION = {
    ParamDirection.In: READ,
    ParamDirection.Out: WRITE,
    ParamDirection.InOut: READ | WRITE,
}
_PLACES: frozenset[type] = frozenset((AssignStmt, EvalStmt, ReturnStmt, *SCOPE_CLASSES))

__all__ = ["FLAGS_OF_DIRECTION", "READ", "WRITE", "Buffers", "Store"]
