"""Every Call and Submit of a function, with where it stands: one walk over the expressions, shared by the verifiers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from ..ir.expr import (
    BINARY_CLASSES,
    UNARY_CLASSES,
    Call,
    Expr,
    GlobalVar,
    MakeTuple,
    Submit,
    TupleGetItemExpr,
)
from ..ir.operands import LEAVES, holds_call
from ..ir.stmt import (
    SCOPE_CLASSES,
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from .codes import NestedCallErrorType
from .inventory import Inventory, MadeOnce, Region, inventory

_ARGUMENT = NestedCallErrorType.CALL_IN_CALL_ARGS

_CALLS: frozenset[type] = frozenset((Call, Submit))
_BINARY: frozenset[type] = frozenset(BINARY_CLASSES)
_UNARY: frozenset[type] = frozenset(UNARY_CLASSES)
_SCOPES: frozenset[type] = frozenset(SCOPE_CLASSES)


class CallSite(msgspec.Struct, frozen=True, eq=False):
    """One occurrence of a call. ``stmt`` is the statement that it belongs to, ``code`` what it is an operand of.

    ``code`` is None for a call that is the whole right-hand side of an assignment or a whole expression statement, and
    for one in the ``predicate`` of a launch, which is to be an expression.
    """

    call: Any
    stmt: Any
    region: Region
    code: NestedCallErrorType | None


class CallSites:
    """The calls of one function, in the order of the source.

    ``functions``: calls and submits of functions of the program; ``callees``: the same, by the name of the function;
    ``ops``: calls of ops, by the name of the op; ``nested``: those of either kind that are operands, outer ones first.
    """

    __slots__ = ("callees", "functions", "nested", "ops")

    def __init__(self, placed: Inventory) -> None:
        self.functions: list[CallSite] = []
        self.callees: dict[str, list[CallSite]] = {}
        self.ops: dict[str, list[CallSite]] = {}
        self.nested: list[CallSite] = []
        self._collect(placed)

    def of_ops(self, names: Iterable[str]) -> list[CallSite]:
        """The calls of these ops."""
        return [site for name in names for site in self.ops.get(name, ())]

    def _collect(self, placed: Inventory) -> None:
        calls, leaves, root, inside, headers = _CALLS, LEAVES, self._root, self._inside, _HEADERS
        for stmt, region in placed.placed:
            cls = type(stmt)
            if cls is AssignStmt or cls is EvalStmt:
                value = stmt.value if cls is AssignStmt else stmt.expr
                if type(value) in calls:
                    root(value, stmt, region)
                elif type(value) not in leaves:
                    inside(value, stmt, region, _ARGUMENT)
                continue
            if cls in headers:
                code, operands = headers[cls]
                for e in operands(stmt):
                    if type(e) not in leaves:
                        inside(e, stmt, region, code)
            if cls is ForStmt or cls is WhileStmt:
                for arg in stmt.iter_args:
                    if type(arg.initValue) not in leaves:
                        inside(arg.initValue, stmt, region, _ARGUMENT)
                if cls is WhileStmt:
                    inside(stmt.condition, stmt, region, NestedCallErrorType.CALL_IN_WHILE_CONDITION)
                elif stmt.attrs:
                    self._attrs(stmt.attrs, stmt, region)
            elif cls in _SCOPES and stmt.attrs:
                self._attrs(stmt.attrs, stmt, region)

    def _add(self, call: Any, stmt: Stmt, region: Region, code: NestedCallErrorType | None) -> None:
        site = CallSite(call, stmt, region, code)
        op = call.op
        by_name = self.ops
        if type(op) is GlobalVar:
            self.functions.append(site)
            by_name = self.callees
        alike = by_name.get(op.name)
        if alike is None:
            by_name[op.name] = [site]
        else:
            alike.append(site)
        if code is not None:
            self.nested.append(site)

    def _root(self, call: Any, stmt: Stmt, region: Region) -> None:
        """A call that is not an operand: itself, and what is in its operands."""
        self._add(call, stmt, region, None)
        leaves = LEAVES
        for e in call.args:
            if type(e) not in leaves:
                self._inside(e, stmt, region, _ARGUMENT)
        if call.attrs:
            self._attrs(call.attrs, stmt, region)
        if type(call) is Submit:
            self._launch(call, stmt, region)

    def _launch(self, submit: Submit, stmt: Stmt, region: Region) -> None:
        for e in submit.deps:
            if type(e) not in LEAVES:
                self._inside(e, stmt, region, _ARGUMENT)
        if submit.core_num is not None:
            self._inside(submit.core_num, stmt, region, _ARGUMENT)
        if submit.predicate is not None:
            self._inside(submit.predicate, stmt, region, None)

    def _attrs(self, attrs: dict[str, Any], stmt: Stmt, region: Region) -> None:
        for key, value in attrs.items():
            if isinstance(value, Expr) and type(value) not in LEAVES:
                self._inside(value, stmt, region, None if key == "predicate" else _ARGUMENT)

    def _inside(self, e: Any, stmt: Stmt, region: Region, code: NestedCallErrorType | None) -> None:
        """The calls in an expression that is an operand of what ``code`` says (None: of a predicate)."""
        if not holds_call(e):
            return
        leaves, binary = LEAVES, _BINARY
        stack = [(e, code)]
        while stack:
            e, code = stack.pop()
            cls = type(e)
            if cls in leaves:
                continue
            if cls is MakeTuple:
                stack += [(item, code and _ARGUMENT) for item in reversed(e.elements) if type(item) not in leaves]
            elif cls in binary:
                code = code and NestedCallErrorType.CALL_IN_BINARY_EXPR
                if type(e.right) not in leaves:
                    stack.append((e.right, code))
                if type(e.left) not in leaves:
                    stack.append((e.left, code))
            elif cls in _CALLS:
                self._operand_call(e, stmt, region, code, stack)
            elif cls in _UNARY:
                stack.append((e.operand, code and NestedCallErrorType.CALL_IN_UNARY_EXPR))
            elif cls is TupleGetItemExpr:
                stack.append((e.tuple, code and _ARGUMENT))

    def _operand_call(
        self,
        call: Any,
        stmt: Stmt,
        region: Region,
        code: NestedCallErrorType | None,
        stack: list[tuple[Any, NestedCallErrorType | None]],
    ) -> None:
        self._add(call, stmt, region, code)
        inner = code and _ARGUMENT
        pending: list[tuple[Any, NestedCallErrorType | None]] = [(e, inner) for e in call.args]
        pending += [
            (value, None if key == "predicate" else inner)
            for key, value in call.attrs.items()
            if isinstance(value, Expr)
        ]
        if type(call) is Submit:
            pending += [(e, inner) for e in call.deps]
            pending += [(call.core_num, inner), (call.predicate, None)]
        stack += [item for item in reversed(pending) if item[0] is not None]


# The expressions of a statement that are evaluated before its bodies, and what a call there is an operand of. Those of
# assignments, and the conditions and carries of loops, are looked at apart.
_HEADERS: dict[type, tuple[NestedCallErrorType, Callable[[Any], Sequence[Any]]]] = {
    ForStmt: (NestedCallErrorType.CALL_IN_FOR_RANGE, attrgetter("start", "stop", "step")),
    IfStmt: (NestedCallErrorType.CALL_IN_IF_CONDITION, lambda stmt: (stmt.condition,)),
    ReturnStmt: (_ARGUMENT, attrgetter("value")),
    YieldStmt: (_ARGUMENT, attrgetter("value")),
    SpmdScopeStmt: (_ARGUMENT, lambda stmt: (stmt.core_num,)),
}

# The calls of a function.
call_sites: MadeOnce[CallSites] = MadeOnce(lambda function: CallSites(inventory(function)))


__all__ = ["CallSite", "CallSites", "call_sites"]
