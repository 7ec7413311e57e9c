"""Which buffer the tensor variables of a region name, and which buffers from outside the region reads and writes.

The region is in SSA form. (In other code a variable is taken for all that is ever assigned to it, which is safe but
says less.) A variable is a copy of others: of what is assigned to it, of the operand whose buffer an op gives back, of
the argument that a function returns, of the initial and the yielded values of a carry, of the values of both branches.
These edges are collected in one walk; then each variable gets the one buffer that all of its sources name, beginning
with the assumption that what is not known yet agrees. So a carry names the buffer it starts from exactly if what the
body yields names that buffer when the carry does. A variable changes at most three times, so the work is linear.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..ir.call import Call, Submit
from ..ir.call_types import holds_one_tuple
from ..ir.enums import ArgEffect, ParamDirection
from ..ir.expr import Expr, GlobalVar, IterArg, MakeTuple, TupleGetItemExpr, Var
from ..ir.operands import LEAVES, holds_call
from ..ir.stmt import (
    SCOPE_CLASSES,
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
)
from ..ir.traversal import attrs_expressions
from ..ir.tree import get_last_yield_stmt, walk
from ..ir.type import TensorType, TupleType, UnknownType
from ..ops.definition import Alias, OpDef
from ..ops.registry import REGISTRY
from .callees import Callees, argument_index

READ, WRITE = 1, 2

# A variable that a value is a copy of (None: a buffer of its own), and whether it may be only a part of that.
Source = tuple[Var | None, bool]

# What may be any buffer.
_UNKNOWN: list[Source] = [(None, True)]


class _Own:
    """The root of a buffer that the region makes."""


class _Mixed:
    """The root of what may name one buffer or another."""


class Store:
    """A write to a tensor from outside. ``direct``: the variable itself is the destination, not a copy of it."""

    __slots__ = ("call", "direct", "named", "stmt", "target")

    def __init__(self, target: Var, direct: bool, named: bool, call: Any, stmt: Stmt) -> None:
        self.target = target
        self.direct = direct
        self.named = named  # the result of the call is the buffer as it is after the write
        self.call = call
        self.stmt = stmt


class Buffers:
    """The buffers of one region.

    ``accesses``: tensor from outside -> ``READ | WRITE``; tensors that are only mentioned are not among them.
    ``stores``: the writes among these, in order; ``returns``: for each return statement the tensors from outside that
    its values are; ``launches``: the same for the results of each call of a function.
    """

    def __init__(self, region: Stmt, callees: Callees) -> None:
        self.accesses: dict[Var, int] = {}
        self.stores: list[Store] = []
        self._callees = callees
        self._sources: dict[Var, list[Source]] = {}
        self._tuples: dict[Var, list[list[Source]]] = {}
        self._touches: list[tuple[list[Source], int, bool, Any, Stmt]] = []
        self._returned: list[list[list[Source]]] = []
        self._launched: list[list[list[Source]]] = []
        self._where: Stmt = region
        self._stmt(region)
        self._state: dict[Var, tuple[Any, bool]] = {}
        self._groups: _Groups | None = None
        self._solve()
        self._resolve_touches()

    # --- answers ------------------------------------------------------------------------------------------------------

    def root(self, var: Var) -> Var | None:
        """The tensor from outside whose buffer a variable is, all of it; None if it is no such buffer for certain."""
        return self._root_of([(var, False)])

    @property
    def returns(self) -> list[list[Var | None]]:
        return [[self._root_of(sources) for sources in values] for values in self._returned]

    @property
    def returns_made(self) -> list[list[bool]]:
        """For each return statement whether its values are buffers that the region makes, or no tensors."""
        return [[self._is_made(sources) for sources in values] for values in self._returned]

    def _is_made(self, sources: list[Source]) -> bool:
        root, view = self._meet(sources) or (_Own, False)
        return (root is _Own and not view) or (isinstance(root, Var) and not isinstance(root.type, TensorType))

    @property
    def calls_functions(self) -> bool:
        """Whether functions are called in the region."""
        return bool(self._launched)

    @property
    def launches(self) -> list[list[Var | None]]:
        return [[self._root_of(sources) for sources in values] for values in self._launched]

    def _root_of(self, sources: list[Source]) -> Var | None:
        root, view = self._meet(sources) or (_Own, False)
        return root if isinstance(root, Var) and not view and isinstance(root.type, TensorType) else None

    # --- what values are copies of ------------------------------------------------------------------------------------

    def _of(self, e: Expr) -> list[Source]:
        cls = type(e)
        if cls is Var or cls is IterArg:
            return [(e, False)]  # type: ignore[list-item]
        if cls is TupleGetItemExpr:
            parts = self._parts(e.tuple)  # type: ignore[attr-defined]
            index = e.index  # type: ignore[attr-defined]
            return parts[index] if parts is not None and index < len(parts) else _UNKNOWN
        if cls is Call or cls is Submit:
            if type(e.op) is GlobalVar:  # type: ignore[attr-defined]
                results = self._results(e)
                return results[0] if results else _own()
            definition = REGISTRY.get(e.op.name)  # type: ignore[attr-defined]
            if definition is not None and definition.alias is not Alias.FRESH and definition.alias_operand is not None:
                found = self._of(e.args[definition.alias_operand])  # type: ignore[attr-defined]
                return found if definition.alias is Alias.IS else [(v, True) for v, _ in found]
        return _own()

    def _parts(self, e: Expr) -> list[list[Source]] | None:
        """The elements of a tuple."""
        if isinstance(e, Var):
            return self._tuples.get(e)
        if type(e) is MakeTuple:
            return [self._of(element) for element in e.elements]
        if type(e) in _CALLS and type(e.op) is GlobalVar:  # type: ignore[attr-defined]
            return self._results(e)
        if type(e) is TupleGetItemExpr and holds_one_tuple(e.tuple.type):
            return self._parts(e.tuple)  # the one result of the function is a tuple
        return None

    def _results(self, call: Any) -> list[list[Source]]:
        """The results of a call of a function."""
        function = self._callees.of(call)
        returned = self._callees.returned_params(function) if function is not None else None
        if function is None or returned is None:
            return [self._any_argument(call)] * _result_count(call)
        unclear = self._callees.unclear_results(function)
        found = []
        for i, parameter in enumerate(returned):
            argument = None if parameter is None else argument_index(function, len(call.args), parameter)
            if i in unclear:
                found.append(self._any_argument(call))
            else:
                found.append(_own() if argument is None else self._of(call.args[argument]))
        return found

    def _any_argument(self, call: Any) -> list[Source]:
        """Any of the arguments, a part of one, or something else."""
        return [*_UNKNOWN, *((v, True) for arg in call.args for v, _ in self._of(arg) if _is_tensor(arg))]

    def _define(self, var: Var, value: Expr) -> None:
        if isinstance(var.type, TensorType):
            self._sources.setdefault(var, []).extend(self._of(value))
        elif isinstance(var.type, TupleType):
            parts = self._parts(value)
            if parts is not None:
                self._tuples[var] = parts

    def _join(self, var: Var, value: Expr) -> None:
        """One of several values that flow into a carry or a result of a branch."""
        if isinstance(var.type, TupleType):
            self._tuples[var] = [_UNKNOWN] * len(var.type.types)
        else:
            self._define(var, value)

    # --- statements ---------------------------------------------------------------------------------------------------

    def _stmt(self, stmt: Any) -> None:
        handler = _STATEMENTS.get(type(stmt))
        if handler is not None:
            handler(self, stmt)

    def _seq(self, stmt: SeqStmts) -> None:
        for inner in stmt.stmts:
            self._stmt(inner)

    def _assign(self, stmt: AssignStmt) -> None:
        self._where = stmt
        self._expr(stmt.value)
        self._define(stmt.var, stmt.value)

    def _eval(self, stmt: EvalStmt) -> None:
        self._where = stmt
        self._expr(stmt.expr)

    def _return(self, stmt: ReturnStmt) -> None:
        self._where = stmt
        for value in stmt.value:
            self._expr(value)
        values = list(stmt.value)
        parts = self._parts(values[0]) if len(values) == 1 else None
        self._returned.append(parts if parts is not None else [self._of(value) for value in values])

    def _if(self, stmt: IfStmt) -> None:
        self._expr(stmt.condition)
        for body in (stmt.then_body, stmt.else_body):
            if body is not None:
                self._stmt(body)
                self._joined(stmt.return_vars, body)

    def _joined(self, variables: Sequence[Var], body: Stmt) -> None:
        last = get_last_yield_stmt(body)
        if last is not None:
            for var, value in zip(variables, last.value, strict=False):
                self._expr(value)
                self._join(var, value)

    def _loop(self, stmt: Any) -> None:
        if type(stmt) is ForStmt:
            for bound in (stmt.start, stmt.stop, stmt.step):
                self._expr(bound)
        for arg, var in zip(stmt.iter_args, stmt.return_vars, strict=False):
            self._expr(arg.initValue)
            self._join(arg, arg.initValue)
            self._join(var, arg.initValue)
        if type(stmt) is WhileStmt:
            self._expr(stmt.condition)
        self._stmt(stmt.body)
        self._joined(stmt.iter_args, stmt.body)
        self._joined(stmt.return_vars, stmt.body)

    def _scope(self, stmt: Any) -> None:
        self._where = stmt
        for e in attrs_expressions(stmt.attrs):
            self._expr(e)
        self._stmt(stmt.body)

    # --- accesses -----------------------------------------------------------------------------------------------------

    def _expr(self, e: Any) -> None:
        """Note what an expression reads and writes. What it only passes on is touched by who uses it."""
        cls = type(e)
        if cls in LEAVES:
            return
        if cls in _CALLS:
            self._call(e)
            for arg in e.args:
                if type(arg) not in LEAVES:
                    self._expr(arg)
            if cls is Submit and e.predicate is not None:
                self._expr(e.predicate)
            if e.attrs:
                for inner in attrs_expressions(e.attrs):
                    self._expr(inner)
            return
        if holds_call(e):
            for node in walk(e):
                if type(node) in _CALLS:
                    self._call(node)

    def _call(self, call: Any) -> None:
        if type(call.op) is GlobalVar:
            for i, arg in enumerate(call.args):
                if _is_tensor(arg):
                    direction = self._callees.direction(call, i)
                    self._touch(arg, FLAGS_OF_DIRECTION[direction], True, call)
            self._launched.append(self._results(call))
            return
        definition = REGISTRY.get(call.op.name)
        for i, arg in enumerate(call.args):
            if _is_tensor(arg):
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

    def _may_roots(self, var: Var) -> Iterable[Var]:
        if var not in self._sources:
            return (var,)
        root, _ = self._state.get(var, (_Own, False))
        if root is _Own:
            return ()
        if root is not _Mixed:
            return (root,)
        if self._groups is None:
            self._groups = _Groups(self._sources)
        return self._groups.outside(var)

    # --- the one buffer that all sources name -------------------------------------------------------------------------

    def _solve(self) -> None:
        state, sources = self._state, self._sources
        users: dict[Var, list[Var]] = {}
        for var, found in sources.items():
            for source, _ in found:
                if source in sources:
                    users.setdefault(source, []).append(var)
        work = deque(sources)
        while work:
            var = work.popleft()
            new = self._meet(sources[var])
            if new is None:
                continue
            old = state.get(var)
            if old is None or old[0] is not new[0] or old[1] is not new[1]:
                state[var] = new
                work.extend(users.get(var, ()))

    def _meet(self, sources: list[Source]) -> tuple[Any, bool] | None:
        found: Any = None
        view = False
        for var, is_view in sources:
            if var is None:
                root, is_part = _Own, False
            elif var in self._sources:
                known = self._state.get(var)
                if known is None:  # no source of it is known yet
                    continue
                root, is_part = known
            else:
                root, is_part = var, False  # type: ignore[assignment]
            view = view or is_view or is_part
            if found is None:
                found = root
            elif found is not root:
                found = _Mixed
        return None if found is None else (found, view)


class _Groups:
    """Variables that may name the same buffer, for those that may name several."""

    def __init__(self, sources: dict[Var, list[Source]]) -> None:
        self._parent: dict[Var, Var] = {}
        for var, found in sources.items():
            for source, _ in found:
                if source is not None:
                    self._parent[self._find(source)] = self._find(var)
        self._outside: dict[Var, dict[Var, None]] = {}
        for var in list(self._parent):
            if var not in sources:
                self._outside.setdefault(self._find(var), {})[var] = None

    def _find(self, var: Var) -> Var:
        parent = self._parent
        parent.setdefault(var, var)
        while parent[var] is not var:
            parent[var] = parent[parent[var]]
            var = parent[var]
        return var

    def outside(self, var: Var) -> Iterable[Var]:
        return self._outside.get(self._find(var), ())


def _own() -> list[Source]:
    """What is made here: a list each, so that who takes it out of a tuple first may give it a name."""
    return [(None, False)]


def _is_tensor(e: Expr) -> bool:
    return isinstance(e.type, TensorType)


def _result_count(call: Any) -> int:
    kind = call.type
    if isinstance(kind, TupleType):
        return len(kind.types) - (type(call) is Submit)
    return int(not isinstance(kind, UnknownType) and type(call) is Call)


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
_CALLS: frozenset[type] = frozenset((Call, Submit))
_STATEMENTS: dict[type, Callable[[Buffers, Any], None]] = {
    SeqStmts: Buffers._seq,
    AssignStmt: Buffers._assign,
    EvalStmt: Buffers._eval,
    ReturnStmt: Buffers._return,
    IfStmt: Buffers._if,
    ForStmt: Buffers._loop,
    WhileStmt: Buffers._loop,
    **{cls: Buffers._scope for cls in SCOPE_CLASSES},
}

__all__ = ["FLAGS_OF_DIRECTION", "READ", "WRITE", "Buffers", "Store"]
