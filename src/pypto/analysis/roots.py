"""Which buffer the tensor variables of a region name.

The region is in SSA form. (In other code a variable is taken for all that is ever assigned to it, which is safe but
says less.) A variable is a copy of others: of what is assigned to it, of the operand whose buffer an op gives back, of
the argument that a function returns, of the initial and the yielded values of a carry, of the values of both branches.
These edges are collected in one walk; then each variable gets the one buffer that all of its sources name, beginning
with the assumption that what is not known yet agrees. So a carry names the buffer it starts from exactly if what the
body yields names that buffer when the carry does. A variable changes at most three times, so the work is linear.

:mod:`.buffers` adds what a region reads and writes; :mod:`.buffer_names` answers for whole functions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..ir.call import Call, Submit
from ..ir.call_types import holds_one_tuple
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
from ..ops.definition import Alias
from ..ops.registry import REGISTRY
from .callees import Callees, Results, argument_index

# A variable that a value is a copy of (None: a buffer of its own), and whether it may be only a part of that.
Source = tuple[Var | None, bool]

# What may be any buffer.
_UNKNOWN: list[Source] = [(None, True)]


class _Own:
    """The root of a buffer that the region makes."""


class _Mixed:
    """The root of what may name one buffer or another."""


class Roots:
    """The buffers that the tensor variables of one region name, and that it returns.

    ``basis``: what was believed of the functions that the region calls, by name.

    ``returns``: for each return statement the tensors from outside that its values are; ``launches``: the same for the
    results of each call of a function.
    """

    def __init__(self, region: Stmt, callees: Callees) -> None:
        self._callees = callees
        self.basis: dict[str, Results] = {}
        self._sources: dict[Var, list[Source]] = {}
        self._tuples: dict[Var, list[list[Source]]] = {}
        self._returned: list[list[list[Source]]] = []
        self._launched: list[Any] = []
        self._stmt(region)
        self._state: dict[Var, tuple[Any, bool]] = {}
        self._groups: _Groups | None = None
        self._solve()

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
        return [[self._root_of(sources) for sources in self._results(call)] for call in self._launched]

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
        if type(e) in CALLS and type(e.op) is GlobalVar:  # type: ignore[attr-defined]
            return self._results(e)
        if type(e) is TupleGetItemExpr and holds_one_tuple(e.tuple.type):
            return self._parts(e.tuple)  # the one result of the function is a tuple
        return None

    def _results(self, call: Any) -> list[list[Source]]:
        """The results of a call of a function."""
        name = call.op.name
        known = self.basis.get(name)
        if known is None:
            known = self.basis[name] = self._callees.results(name)
        params, returned, unclear = known
        if returned is None:
            return [self._any_argument(call)] * _result_count(call)
        found = []
        for i, parameter in enumerate(returned):
            argument = None if parameter is None else argument_index(params, len(call.args), parameter)
            if i in unclear:
                found.append(self._any_argument(call))
            else:
                found.append(_own() if argument is None else self._of(call.args[argument]))
        return found

    def _any_argument(self, call: Any) -> list[Source]:
        """Any of the arguments, a part of one, or something else."""
        return [*_UNKNOWN, *((v, True) for arg in call.args for v, _ in self._of(arg) if is_tensor(arg))]

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
        self._expr(stmt.value)
        self._define(stmt.var, stmt.value)

    def _eval(self, stmt: EvalStmt) -> None:
        self._expr(stmt.expr)

    def _return(self, stmt: ReturnStmt) -> None:
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
        for e in attrs_expressions(stmt.attrs):
            self._expr(e)
        self._stmt(stmt.body)

    def _expr(self, e: Any) -> None:
        """Note the calls in an expression."""
        cls = type(e)
        if cls in LEAVES:
            return
        if cls in CALLS:
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
                if type(node) in CALLS:
                    self._call(node)

    def _call(self, call: Any) -> None:
        if type(call.op) is GlobalVar:
            self._launched.append(call)

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
        users: dict[Var, list[Var]] = {}  # of those that have been looked at
        again: deque[Var] = deque()
        for var, found in sources.items():
            for source, _ in found:
                if source in sources:
                    users.setdefault(source, []).append(var)
            new = self._meet(found)
            if new is not None:
                state[var] = new
                if var in users:
                    again.extend(users[var])
        while again:
            var = again.popleft()
            new = self._meet(sources[var])
            if new is None:
                continue
            old = state.get(var)
            if old is None or old[0] is not new[0] or old[1] is not new[1]:
                state[var] = new
                again.extend(users.get(var, ()))

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


def is_tensor(e: Expr) -> bool:
    """Whether an expression is a tensor."""
    return isinstance(e.type, TensorType)


def _result_count(call: Any) -> int:
    kind = call.type
    if isinstance(kind, TupleType):
        return len(kind.types) - (type(call) is Submit)
    return int(not isinstance(kind, UnknownType) and type(call) is Call)


CALLS: frozenset[type] = frozenset((Call, Submit))
_STATEMENTS: dict[type, Callable[[Roots, Any], None]] = {
    SeqStmts: Roots._seq,
    AssignStmt: Roots._assign,
    EvalStmt: Roots._eval,
    ReturnStmt: Roots._return,
    IfStmt: Roots._if,
    ForStmt: Roots._loop,
    WhileStmt: Roots._loop,
    **{cls: Roots._scope for cls in SCOPE_CLASSES},
}

__all__ = ["CALLS", "Roots", "Source", "is_tensor"]
