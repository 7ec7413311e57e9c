"""Every Call and Submit of a function, with where it stands: one walk over the expressions, shared by the verifiers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

from ..ir.expr import (
    BINARY_CLASSES,
    UNARY_CLASSES,
    Call,
    ConstBool,
    ConstFloat,
    ConstInt,
    Expr,
    GlobalVar,
    IterArg,
    MakeTuple,
    Submit,
    TupleGetItemExpr,
    Var,
)
from ..ir.program import Function
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
from .inventory import Inventory, Region, inventory

_ARGUMENT = NestedCallErrorType.CALL_IN_CALL_ARGS

# Expressions that have no operands (a MemRef or a window buffer has, but never a call in one).
_LEAVES: frozenset[type] = frozenset((Var, IterArg, ConstInt, ConstFloat, ConstBool))
_CALLS: frozenset[type] = frozenset((Call, Submit))
_BINARY: frozenset[type] = frozenset(BINARY_CLASSES)
_UNARY: frozenset[type] = frozenset(UNARY_CLASSES)
_SCOPES: frozenset[type] = frozenset(SCOPE_CLASSES)


class CallSite:
    """One occurrence of a call. ``stmt`` is the statement that it belongs to, ``code`` what it is an operand of.

    ``code`` is None for a call that is the whole right-hand side of an assignment or a whole expression statement, and
    for one in the ``predicate`` of a launch, which is to be an expression.
    """

    __slots__ = ("call", "code", "region", "stmt")

    def __init__(self, call: Any, stmt: Stmt, region: Region, code: NestedCallErrorType | None) -> None:
        self.call = call
        self.stmt = stmt
        self.region = region
        self.code = code


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
        calls, leaves, root, inside = _CALLS, _LEAVES, self._root, self._inside
        for stmt, region in placed.placed:
            cls = type(stmt)
            if cls is AssignStmt or cls is EvalStmt:
                value = stmt.value if cls is AssignStmt else stmt.expr
                if type(value) in calls:
                    root(value, stmt, region)
                elif type(value) not in leaves:
                    inside(value, stmt, region, _ARGUMENT)
            elif cls in _HEADERS:
                for e, code in _HEADERS[cls](stmt):
                    if type(e) not in leaves:
                        inside(e, stmt, region, code)
            if cls in _SCOPES or cls is ForStmt:
                self._attrs(stmt.attrs, stmt, region)

    def _add(self, call: Any, stmt: Stmt, region: Region, code: NestedCallErrorType | None) -> None:
        site = CallSite(call, stmt, region, code)
        if type(call.op) is GlobalVar:
            self.functions.append(site)
            self.callees.setdefault(call.op.name, []).append(site)
        else:
            self.ops.setdefault(call.op.name, []).append(site)
        if code is not None:
            self.nested.append(site)

    def _root(self, call: Any, stmt: Stmt, region: Region) -> None:
        """A call that is not an operand: itself, and what is in its operands."""
        self._add(call, stmt, region, None)
        leaves = _LEAVES
        for e in call.args:
            if type(e) not in leaves:
                self._inside(e, stmt, region, _ARGUMENT)
        if call.attrs:
            self._attrs(call.attrs, stmt, region)
        if type(call) is Submit:
            self._launch(call, stmt, region)

    def _launch(self, submit: Submit, stmt: Stmt, region: Region) -> None:
        for e in submit.deps:
            if type(e) not in _LEAVES:
                self._inside(e, stmt, region, _ARGUMENT)
        if submit.core_num is not None:
            self._inside(submit.core_num, stmt, region, _ARGUMENT)
        if submit.predicate is not None:
            self._inside(submit.predicate, stmt, region, None)

    def _attrs(self, attrs: dict[str, Any], stmt: Stmt, region: Region) -> None:
        for key, value in attrs.items():
            if isinstance(value, Expr) and type(value) not in _LEAVES:
                self._inside(value, stmt, region, None if key == "predicate" else _ARGUMENT)

    def _inside(self, e: Any, stmt: Stmt, region: Region, code: NestedCallErrorType | None) -> None:
        """The calls in an expression that is an operand of what ``code`` says (None: of a predicate)."""
        if not _holds_call(e):
            return
        leaves, binary = _LEAVES, _BINARY
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


def _holds_call(e: Any) -> bool:
    """Whether there is a call in an expression. Hardly ever, so this is what has to be fast."""
    leaves, binary = _LEAVES, _BINARY
    # A stack, since chains of operators may be thousands of levels deep.
    stack = [e]
    pop, push = stack.pop, stack.append
    while stack:
        e = pop()
        cls = type(e)
        if cls in binary:
            left, right = e.left, e.right
            if type(left) not in leaves:
                push(left)
            if type(right) not in leaves:
                push(right)
        elif cls is MakeTuple:
            for item in e.elements:
                if type(item) not in leaves:
                    push(item)
        elif cls in _CALLS:
            return True
        elif cls in _UNARY:
            push(e.operand)
        elif cls is TupleGetItemExpr:
            push(e.tuple)
    return False


def _initial_values(stmt: Any) -> list[tuple[Expr, NestedCallErrorType]]:
    return [(arg.initValue, _ARGUMENT) for arg in stmt.iter_args]


def _for_header(stmt: ForStmt) -> list[tuple[Expr, NestedCallErrorType]]:
    code = NestedCallErrorType.CALL_IN_FOR_RANGE
    return [(stmt.start, code), (stmt.stop, code), (stmt.step, code), *_initial_values(stmt)]


def _while_header(stmt: WhileStmt) -> list[tuple[Expr, NestedCallErrorType]]:
    return [*_initial_values(stmt), (stmt.condition, NestedCallErrorType.CALL_IN_WHILE_CONDITION)]


def _if_header(stmt: IfStmt) -> list[tuple[Expr, NestedCallErrorType]]:
    return [(stmt.condition, NestedCallErrorType.CALL_IN_IF_CONDITION)]


def _values(stmt: Any) -> list[tuple[Expr, NestedCallErrorType]]:
    return [(value, _ARGUMENT) for value in stmt.value]


def _spmd_header(stmt: SpmdScopeStmt) -> list[tuple[Expr, NestedCallErrorType]]:
    return [(stmt.core_num, _ARGUMENT)]


# The expressions of a statement that are evaluated before its bodies, each with what a call there is an operand of.
_HEADERS: dict[type, Any] = {
    ForStmt: _for_header,
    WhileStmt: _while_header,
    IfStmt: _if_header,
    ReturnStmt: _values,
    YieldStmt: _values,
    SpmdScopeStmt: _spmd_header,
}

_CACHE: WeakKeyDictionary[Function, CallSites] = WeakKeyDictionary()


def call_sites(function: Function) -> CallSites:
    """The calls of a function; collected once."""
    found = _CACHE.get(function)
    if found is None:
        found = _CACHE[function] = CallSites(inventory(function))
    return found


__all__ = ["CallSite", "CallSites", "call_sites"]
