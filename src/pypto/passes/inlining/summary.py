"""What the expansion of an Inline function needs to know of it: its locals, and what it does with its parameters.

A call hands over names, not copies. What an assignment to a parameter means for the caller depends on what is assigned:

* the parameter's own buffer after a write in place (``p = pl.store(t, [0, 0], p)``): the caller's variable names that
  buffer, so it is assigned, too;
* anything else: the parameter is a local name for the value of the argument, and the caller sees nothing of it.

With an annotation ``pl.Out`` or ``pl.InOut`` the caller's variable is meant in either case. One walk over the body,
in the order of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import is_
from typing import Any

from ...analysis.callees import argument_index
from ...analysis.lineage import return_lineage, returns_views
from ...ir.enums import ParamDirection
from ...ir.expr import Call, Expr, GlobalVar, MakeTuple, Submit, TupleGetItemExpr, Var
from ...ir.program import Function
from ...ir.stmt import AssignStmt, EvalStmt, ForStmt, IfStmt, ReturnStmt, Stmt, WhileStmt
from ...ir.tree import flatten_to_stmts, get_last_yield_stmt, own_definitions, stmt_children
from ...ir.type import ScalarType, TupleType
from ...ir.type_fields import is_closed
from ...ops.definition import Alias
from ...ops.registry import REGISTRY

SummaryOf = Callable[[str], "InlineSummary | None"]


class ParamUse:
    """What a body does with one parameter.

    ``of_caller``: an assignment to the parameter that is one to the caller's variable (None: there is none);
    ``in_place``: whether all of these only write to the buffer that the variable has; ``local_from``: the statement of
    the body (its position) from which on the parameter is a local of its own; -1: all along; None: nowhere.
    """

    __slots__ = ("in_place", "local_from", "of_caller")

    def __init__(self) -> None:
        self.of_caller: Stmt | None = None
        self.in_place = True
        self.local_from: int | None = None


class InlineSummary:
    """An Inline function, taken apart.

    ``stmts``: its statements without the trailing ``result``; ``early_return``: a return anywhere else; ``locals``:
    what the body defines, without parameters; ``uses``: what it does with each parameter; ``lineage``: for each
    returned value the parameter whose buffer it is, or None; ``symbolic``: whether calls decide extents in types of
    parameters.
    """

    def __init__(self, function: Function, functions: Mapping[str, Function], summary_of: SummaryOf) -> None:
        self.function = function
        self.name = function.name
        self.params: Sequence[Var] = function.params
        self.stmts = flatten_to_stmts(function.body)
        self.result: ReturnStmt | None = None
        if self.stmts and isinstance(self.stmts[-1], ReturnStmt):
            self.result = self.stmts.pop()  # type: ignore[assignment]
        self.symbolic = not all(is_closed(param.type) for param in self.params)
        self.uses = {param: ParamUse() for param in self.params}
        walk = _Walk(self, functions, summary_of)
        self.early_return = walk.early_return
        self.locals = walk.locals
        self.lineage = walk.lineage


class _Walk:
    def __init__(self, summary: InlineSummary, functions: Mapping[str, Function], summary_of: SummaryOf) -> None:
        self.early_return: ReturnStmt | None = None
        self.locals: set[Var] = set()
        self._uses = summary.uses
        self._functions = functions
        self._summary_of = summary_of
        directions = zip(summary.params, summary.function.param_directions, strict=True)
        self._written = {param for param, direction in directions if direction is not ParamDirection.In}
        # Variable -> the parameter whose buffer it is; absent or None for any other value.
        self._roots: dict[Var, Var | None] = {param: param for param in summary.params}
        self._tuples: dict[Var, list[Var | None]] = {}
        self._position = 0
        for self._position, stmt in enumerate(summary.stmts):
            self._stmt(stmt)
        self._position = len(summary.stmts)
        self.lineage = [] if summary.result is None else self._results(summary.result)

    def _results(self, result: ReturnStmt) -> list[Var | None]:
        self._inline_calls(result.value, result)
        parts = self._parts(result.value[0]) if len(result.value) == 1 else None
        roots = parts if parts is not None else [self._root(value) for value in result.value]
        # What is a parameter at first and a local later may be either.
        return [root if root is not None and self._uses[root].local_from is None else None for root in roots]

    # --- statements ---------------------------------------------------------------------------------------------------

    def _stmt(self, stmt: Any) -> None:
        cls = type(stmt)
        if cls is AssignStmt:
            self._inline_calls((stmt.value,), stmt)
            self._assign(stmt)
        elif cls is EvalStmt:
            self._inline_calls((stmt.expr,), stmt)
        elif cls is IfStmt:
            self._if(stmt)
        elif cls is ForStmt or cls is WhileStmt:
            self._loop(stmt)
        else:
            if cls is ReturnStmt and self.early_return is None:
                self.early_return = stmt
            for var in own_definitions(stmt):
                self._define(var, None, stmt)
            for inner in stmt_children(stmt):
                self._stmt(inner)

    def _assign(self, stmt: AssignStmt) -> None:
        var = stmt.var
        if isinstance(var.type, TupleType):
            parts = self._parts(stmt.value) or []
            known = self._tuples.get(var, parts)
            agree = len(known) == len(parts) and all(map(is_, known, parts))
            self._tuples[var] = parts if agree else []
        self._define(var, self._root(stmt.value), stmt)

    def _if(self, stmt: IfStmt) -> None:
        yielded: list[list[Var | None]] = []
        for body in (stmt.then_body, stmt.else_body):
            if body is not None:
                self._stmt(body)
                yielded.append(self._yields(body))
        for i, var in enumerate(stmt.return_vars):
            roots = {values[i] if i < len(values) else None for values in yielded}
            self._define(var, roots.pop() if len(roots) == 1 else None, stmt)

    def _loop(self, stmt: Any) -> None:
        for arg in stmt.iter_args:
            self._define(arg, self._root(arg.initValue), stmt)
        if type(stmt) is ForStmt:
            self._define(stmt.loop_var, None, stmt)
        self._stmt(stmt.body)
        values = self._yields(stmt.body)
        for i, (arg, var) in enumerate(zip(stmt.iter_args, stmt.return_vars, strict=False)):
            root = values[i] if i < len(values) else None
            self._define(var, root if root is self._roots.get(arg) else None, stmt)

    def _yields(self, body: Stmt) -> list[Var | None]:
        last = get_last_yield_stmt(body)
        return [] if last is None else [self._root(value) for value in last.value]

    def _define(self, var: Var, root: Var | None, stmt: Stmt) -> None:
        use = self._uses.get(var)
        if use is None:
            self.locals.add(var)
            # A variable that is assigned different things is none of them for certain.
            self._roots[var] = root if self._roots.get(var, root) is root else None
            return
        in_place = root is var and not isinstance(var.type, ScalarType)
        if use.local_from is not None:
            return
        if in_place or var in self._written:
            use.of_caller = use.of_caller or stmt
            use.in_place = use.in_place and in_place
            return
        # What was written in place until here the caller sees, so the local begins here only.
        use.local_from = -1 if use.of_caller is None else self._position
        self._roots[var] = None

    def _inline_calls(self, values: Sequence[Expr], stmt: Stmt) -> None:
        """The calls that will be expanded assign the variables that they are given for written parameters."""
        for value in values:
            callee = self._callee(value)
            if callee is None:
                continue
            self._inline_calls(value.args, stmt)  # type: ignore[attr-defined]
            for param, arg in zip(callee.params, value.args, strict=False):  # type: ignore[attr-defined]
                use = callee.uses[param]
                if use.of_caller is None:
                    continue
                root = self._roots.get(arg) if use.in_place else None
                if arg in self._uses:
                    self._define(arg, root, stmt)
                elif root is None:
                    self._roots[arg] = None

    def _callee(self, e: Any) -> InlineSummary | None:
        return self._summary_of(e.op.name) if type(e) is Call and type(e.op) is GlobalVar else None

    # --- which parameter's buffer a value is --------------------------------------------------------------------------

    def _root(self, e: Expr) -> Var | None:
        if isinstance(e, Var):
            return self._roots.get(e)
        index = 0
        parts: list[Var | None] | None = None
        if isinstance(e, TupleGetItemExpr):
            parts, index = self._parts(e.tuple), e.index
        elif isinstance(e, (Call, Submit)):
            parts = self._call_results(e)
        return parts[index] if parts is not None and index < len(parts) else None

    def _parts(self, e: Expr) -> list[Var | None] | None:
        """The elements of a tuple; None for anything else, and for one that nothing is known of."""
        if isinstance(e, Var):
            return self._tuples.get(e)
        if isinstance(e, MakeTuple):
            return [self._root(element) for element in e.elements]
        if isinstance(e, (Call, Submit)) and isinstance(e.type, TupleType):
            return self._call_results(e)
        return None

    def _call_results(self, call: Call | Submit) -> list[Var | None] | None:
        args = call.args
        if type(call.op) is not GlobalVar:
            definition = REGISTRY.get(call.op.name)
            # A pure op that gives an operand back gives it another type: that is a new value.
            if definition is None or definition.pure or definition.alias is not Alias.IS:
                return None
            return [self._root(args[definition.alias_operand])]  # type: ignore[index]
        callee = self._callee(call)
        if callee is not None:
            given = dict(zip(callee.params, args, strict=False))
            return [self._root(given[param]) if param in given else None for param in callee.lineage]
        function = self._functions.get(call.op.name)
        lineage = return_lineage(function) if function is not None else None
        if function is None or lineage is None or returns_views(function):
            return None
        indices = [None if i is None else argument_index(function.params, len(args), i) for i in lineage]
        return [None if i is None else self._root(args[i]) for i in indices]


__all__ = ["InlineSummary", "ParamUse"]
