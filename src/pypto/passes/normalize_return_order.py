"""NormalizeReturnOrder: what a kernel or wrapper returns of its parameters is the parameter itself, in their order.

*Before*::

    def two(self, x, p: pl.Out[T], q: pl.Out[T]):
        q1 = pl.store(u, [0, 0], q)
        p1 = pl.store(v, [0, 0], p)
        return q1, p1

    r = self.two(x, p, q)
    a = r[0]
    b = r[1]

*After*::

    def two(self, x, p: pl.Out[T], q: pl.Out[T]):
        q1 = pl.store(u, [0, 0], q)
        p1 = pl.store(v, [0, 0], p)
        return p, q

    r = self.two(x, p, q)
    a = r[1]
    b = r[0]

Behind this pass "result i of this call is argument j" is a look at the return statement of the callee. Three steps:

1. In kernels (InCore, AIC, AIV) and wrappers (Group, Spmd) a returned tensor that is a parameter's buffer becomes that
   parameter. A tuple that a wrapper hands on is written out. (A call in the return statement moves in front of it.)
2. If a kernel returns just its written parameters, they are returned in the order of the parameters. (A read-write
   parameter need not be among them.) One that returns a written parameter twice is refused: its two results would be
   one buffer, which holds what was written last.
3. Callers take the elements of the result where they are now. Used as a whole, the tuple is put together again in the
   old order.

A kernel with a call that is itself an operand keeps its order; NoNestedCalls leaves no such call.

Needs SplitIncoreOrch and IncoreTileOps; gives ReturnParamsExplicit. Cost: linear.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from ..analysis.callees import Callees, callees_of
from ..analysis.roots import Roots
from ..ir.call_types import holds_one_tuple
from ..ir.enums import FunctionType, ParamDirection
from ..ir.expr import Call, Expr, GlobalVar, MakeTuple, Submit, TupleGetItemExpr, Var
from ..ir.mutator import IRMutator
from ..ir.node import FrozenList
from ..ir.operands import holds_call
from ..ir.program import Function, Program
from ..ir.stmt import AssignStmt, ReturnStmt, SeqStmts, Stmt, seq
from ..ir.tree import flatten_to_stmts, own_definitions
from ..ir.type import TensorType, TupleType, Type
from ..verify.call_sites import call_sites
from ..verify.inventory import inventory
from ..verify.properties import IRProperty
from .base import Pass
from .errors import PassError
from .naming import NameSupply

_KERNELS = frozenset((FunctionType.InCore, FunctionType.AIC, FunctionType.AIV))
_RETURNING = _KERNELS | {FunctionType.Group, FunctionType.Spmd}

# For each position of a result before the pass the position of the same value after it.
Moves = Sequence[int]


class NormalizeReturnOrder(Pass):
    """See the module."""

    name = "NormalizeReturnOrder"
    required = (IRProperty.SplitIncoreOrch, IRProperty.IncoreTileOps)
    produced = (IRProperty.ReturnParamsExplicit,)

    def run(self, program: Program) -> Program:
        callees = callees_of(program)
        functions = [_with_explicit_params(function, callees) for function in program.functions.values()]
        moves = _moves_of_all(functions)
        if moves:
            functions = [_redirected(_sorted(function, moves.get(function.name)), moves) for function in functions]
        return program.with_functions(functions)


# --- parameters instead of other names for them -----------------------------------------------------------------------


def _with_explicit_params(function: Function, callees: Callees) -> Function:
    returns = [stmt for stmt, _ in inventory(function).of(ReturnStmt)]
    params = set(function.params)
    if function.func_type not in _RETURNING or all(_is_clear(value, params) for s in returns for value in s.value):
        return function
    roots = Roots(function.body, callees).returns
    new: dict[Stmt, Stmt] = {}
    names: NameSupply | None = None
    for stmt, found in zip(returns, roots, strict=True):
        known = [root if root in params else None for root in found]
        if not _is_to_change(function, stmt, known):
            continue
        names = names or NameSupply(function)
        new[stmt] = _explicit_return(stmt, known, names)
    return function.replace(body=_Replace(new).visit_stmt(function.body)) if new else function


def _is_clear(value: Expr, params: Collection[Any]) -> bool:
    """Whether a returned value says by itself which parameter it is, or can be none."""
    return value in params or not isinstance(value.type, (TensorType, TupleType))


def _is_to_change(function: Function, stmt: Any, roots: list[Var | None]) -> bool:
    if len(stmt.value) == len(roots):
        return any(_is_other_name(value, root) for value, root in zip(stmt.value, roots, strict=True))
    # One value, a tuple of several.
    return len(function.return_types) == len(roots) and any(root is not None for root in roots)


def _is_other_name(value: Expr, root: Var | None) -> bool:
    return root is not None and root is not value and isinstance(value.type, TensorType)


def _explicit_return(stmt: Any, roots: list[Var | None], names: NameSupply) -> Stmt:
    """The same return with parameters in the place of other names for them."""
    made: list[Stmt] = []
    values: list[Expr] = []
    for value in stmt.value:
        if holds_call(value):  # what it does has to be done, in the same order
            var = Var(names.fresh("ret", "tmp"), value.type, value.span)
            made.append(AssignStmt(var, value, stmt.span))
            value = var
        values.append(value)
    if len(values) == len(roots):
        found = [
            root if root and _is_other_name(value, root) else value for value, root in zip(values, roots, strict=True)
        ]
    else:
        found = [TupleGetItemExpr(values[0], i, stmt.span) if r is None else r for i, r in enumerate(roots)]
    return seq([*made, stmt.replace(value=FrozenList(found))], stmt.span)


class _Replace(IRMutator):
    def __init__(self, new: Mapping[Stmt, Stmt]) -> None:
        self._new = new

    def visit_return_stmt(self, op: ReturnStmt) -> Stmt:
        return self._new.get(op, op)


# --- their order ------------------------------------------------------------------------------------------------------


def _moves_of_all(functions: Iterable[Function]) -> dict[str, Moves]:
    """The kernels whose results are to be sorted, by name."""
    moves = {}
    for function in functions:
        found = _moves(function) if function.func_type in _KERNELS else None
        if found is not None:
            moves[function.name] = found
    if moves:
        for function in functions:
            for site in call_sites(function).nested:
                moves.pop(site.call.op.name, None)
    return moves


def _moves(function: Function) -> Moves | None:
    """Where each result of a kernel goes; None if they stay as they are."""
    returns: list[Any] = [stmt for stmt, _ in inventory(function).of(ReturnStmt)]
    position = {
        param: i
        for i, (param, direction) in enumerate(zip(function.params, function.param_directions, strict=True))
        if direction is not ParamDirection.In and isinstance(param.type, TensorType)
    }
    for stmt in returns:
        _check_distinct(function, stmt, position)
    if len(returns) != 1 or flatten_to_stmts(function.body)[-1] is not returns[0]:
        return None
    last: Any = returns[0]
    values: Sequence[Any] = last.value
    found = [position[value] for value in values if value in position]
    outputs = {i for i in position.values() if function.param_directions[i] is ParamDirection.Out}
    if len(found) < len(values) or not outputs.issubset(found) or not _has_type_for_each(function, len(found)):
        return None
    ranks = {i: rank for rank, i in enumerate(sorted(found))}
    moves = [ranks[i] for i in found]
    return moves if moves != sorted(moves) else None


def _check_distinct(function: Function, stmt: Any, position: Mapping[Any, int]) -> None:
    seen = set()
    for value in stmt.value:
        if value in position and value in seen:
            raise PassError(
                f"kernel '{function.name}' returns its parameter '{value.name_hint}' twice: both results would be "
                "one buffer, which holds what was written last",
                stmt.span if stmt.span.is_valid() else function.span,
                hint="Return each written parameter once, or write the second value to a parameter of its own.",
            )
        seen.add(value)


def _has_type_for_each(function: Function, count: int) -> bool:
    types = function.return_types
    return len(types) == count or (_declares_tuple(function) and len(types[0].types) == count)  # type: ignore[attr-defined]


def _declares_tuple(function: Function) -> bool:
    return len(function.return_types) == 1 and isinstance(function.return_types[0], TupleType)


def _moved(items: Sequence[Any], moves: Moves) -> list[Any]:
    """Items in the new order; what stands behind those that move, such as a task id, stays."""
    new = list(items)
    for old, to in enumerate(moves):
        new[to] = items[old]
    return new


def _moved_tuple(kind: Type, moves: Moves) -> Type:
    assert isinstance(kind, TupleType)
    types = _moved(kind.types, moves)
    return kind if all(a == b for a, b in zip(types, kind.types, strict=True)) else TupleType(types)


def _sorted(function: Function, moves: Moves | None) -> Function:
    if moves is None:
        return function
    ((stmt, _),) = inventory(function).of(ReturnStmt)
    new = stmt.replace(value=FrozenList(_moved(stmt.value, moves)))
    old = function.return_types
    types = [_moved_tuple(old[0], moves)] if _declares_tuple(function) else _moved(old, moves)
    body = _Replace({stmt: new}).visit_stmt(function.body)
    return function.replace(body=body, return_types=FrozenList(types))


# --- callers ----------------------------------------------------------------------------------------------------------


def _redirected(function: Function, moves: Mapping[str, Moves]) -> Function:
    if moves.keys().isdisjoint(call_sites(function).callees):
        return function
    body = _Redirect(function, moves).visit_stmt(function.body)
    return function if body is function.body else function.replace(body=body)


def _is_launched_tuple(call: Any) -> bool:
    """Whether a call is a submit of a kernel that declares one tuple: its results are one level deeper."""
    return type(call) is Submit and holds_one_tuple(call.type)


class _Redirect(IRMutator):
    """Takes the results of kernels from where they are now."""

    def __init__(self, function: Function, moves: Mapping[str, Moves]) -> None:
        self._function = function
        self._moves = moves
        self._names: NameSupply | None = None
        # The variables that hold the results of a kernel whose order changes, or a submit with such a tuple in front.
        # None: they hold other values as well, so that an index means one thing here and another there.
        self._launched = self._holders(lambda e: self._moves_of(e) if _is_launched_tuple(e) else None)
        self._tuples = self._holders(self._moves_of_elements)
        self._whole: dict[Var, Expr] = {}  # what these variables held before

    def _holders(self, moves_of: Callable[[Expr], Moves | None]) -> dict[Var, Moves | None]:
        found: dict[Var, Moves | None] = {}
        others: set[Any] = set()
        for stmt, _ in inventory(self._function).placed:
            moves = moves_of(stmt.value) if type(stmt) is AssignStmt else None
            if moves is None:
                others.update(own_definitions(stmt))
            elif found.setdefault(stmt.var, moves) != moves:
                found[stmt.var] = None
        return {var: None if var in others else moves for var, moves in found.items()}

    def _moves_of(self, e: Any) -> Moves | None:
        if (type(e) is Call or type(e) is Submit) and type(e.op) is GlobalVar:
            return self._moves.get(e.op.name)
        return None

    def _moves_of_elements(self, e: Any) -> Moves | None:
        """How the elements of a value move; None for all but tuples of results."""
        if type(e) is TupleGetItemExpr:
            return self._launched.get(e.tuple) if e.index == 0 and isinstance(e.tuple, Var) else None
        return None if _is_launched_tuple(e) else self._moves_of(e)

    # --- calls ---

    def visit_call(self, op: Call) -> Expr:
        return self._retyped(self._default_expr(op))

    def visit_submit(self, op: Submit) -> Expr:
        return self._retyped(self._default_expr(op))

    def _retyped(self, call: Any) -> Expr:
        moves = self._moves_of(call)
        if moves is None:
            return call  # type: ignore[no-any-return]
        old = call.type
        if _is_launched_tuple(call):
            first = _moved_tuple(old.types[0], moves)
            new: Type = old if first is old.types[0] else TupleType([first, *old.types[1:]])
        else:
            new = _moved_tuple(old, moves)
        return call if new is old else call.replace(type=new)  # type: ignore[no-any-return]

    # --- the variables that they are assigned to ---

    def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
        elements, launch = self._moves_of_elements(op.value), _is_launched_tuple(op.value)
        moves = self._moves_of(op.value) if launch else elements
        if moves is None:
            return self._default_stmt(op)
        value: Any = op.value
        value = self._item(value, value.tuple) if type(value) is TupleGetItemExpr else self.visit_expr(value)
        if (self._launched if launch else self._tuples)[op.var] is None:
            return self._rebuilt(op, value, moves, launch)
        target = self._remap.get(op.var)
        if target is None and value.type is not op.value.type:
            target = self._remap[op.var] = op.var.replace(type=value.type)
        if target is None and value is op.value:
            return op
        return op.replace(var=target or op.var, value=value)  # type: ignore[no-any-return]

    def _rebuilt(self, op: AssignStmt, value: Expr, moves: Moves, launch: bool) -> Stmt:
        """The tuple in the old order, through a variable of its own."""
        if self._names is None:
            self._names = NameSupply(self._function)
        made = Var(self._names.fresh("ret", "tmp"), value.type, op.var.span)
        whole = _old_launch(made, moves) if launch else _in_old_order(made, moves)
        return SeqStmts([op.replace(var=made, value=value), AssignStmt(op.var, whole, op.span)])

    # --- what reads them ---

    def visit_tuple_get_item_expr(self, op: TupleGetItemExpr) -> Expr:
        inner = op.tuple
        if isinstance(inner, Var):
            moves = self._tuples.get(inner)
            if moves is not None:
                return self._item(op, inner, moves[op.index] if op.index < len(moves) else op.index)
            launched = self._launched.get(inner)
            if launched is not None:
                item = self._item(op, inner)
                return _in_old_order(item, launched) if op.index == 0 else item
        moves = self._moves_of_elements(inner)
        if moves is not None and type(inner) is TupleGetItemExpr:
            return TupleGetItemExpr(self._item(inner, inner.tuple), moves[op.index], op.span)
        return self._default_expr(op)

    def _item(self, op: TupleGetItemExpr, var: Any, index: int | None = None) -> TupleGetItemExpr:
        """An element of a variable as it is now."""
        target = self._remap.get(var, var)
        index = op.index if index is None else index
        if target is var and index == op.index:
            return op
        return TupleGetItemExpr(target, index, op.span)

    def visit_return_stmt(self, op: ReturnStmt) -> Stmt:
        new: Any = self._default_stmt(op)
        if len(op.value) == 1 and len(self._function.return_types) > 1 and type(new.value[0]) is MakeTuple:
            return new.replace(value=new.value[0].elements)  # type: ignore[no-any-return]
        return new  # type: ignore[no-any-return]

    def visit_var(self, op: Var) -> Expr:
        moves, launched = self._tuples.get(op), self._launched.get(op)
        if moves is None and launched is None:
            return self._default_expr(op)
        if op not in self._whole:
            var = self._remap.get(op, op)
            self._whole[op] = _in_old_order(var, moves) if moves is not None else _old_launch(var, launched or ())
        return self._whole[op]


def _in_old_order(e: Expr, moves: Moves) -> Expr:
    """The tuple that an expression was before."""
    count = len(e.type.types)  # type: ignore[attr-defined]
    order = [*moves, *range(len(moves), count)]
    return MakeTuple([TupleGetItemExpr(e, i, e.span) for i in order], e.span)


def _old_launch(var: Var, moves: Moves) -> Expr:
    """The same for a submit whose first element is the tuple."""
    first, *others = (TupleGetItemExpr(var, i, var.span) for i in range(len(var.type.types)))  # type: ignore[attr-defined]
    return MakeTuple([_in_old_order(first, moves), *others], var.span)


def normalize_return_order() -> Pass:
    """The pass that makes kernels and wrappers return their parameters, in the order of the parameters."""
    return NormalizeReturnOrder()


__all__ = ["NormalizeReturnOrder", "normalize_return_order"]
