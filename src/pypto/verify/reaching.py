"""Which definitions reach a use: the walk that SSAForm and UseAfterDef share.

One walk over a function with one set of the variables that are visible. What a region defines is remembered on a
trail, so that the end of the region takes it back: no set is ever copied. Variables in attributes and types count like
operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from ..ir.expr import Call, ConstInt, IterArg, Var
from ..ir.operands import OPERANDS, attrs_operands
from ..ir.program import Function
from ..ir.recursion import deep_recursion
from ..ir.stmt import (
    SCOPE_CLASSES,
    AssignStmt,
    BreakStmt,
    CommDomainScopeStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    InlineStmt,
    ReturnStmt,
    SeqStmts,
    SpmdScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from ..ir.traversal import CONSTANTS, walk
from ..ir.type import Type
from ..ir.type_fields import PLAIN_TYPES, is_closed, type_expressions
from .registry import Findings


class Reaching:
    """The walk. Subclasses say what leaves a branch or loop, and report."""

    # Whether what a branch or loop without results defines is visible behind it.
    _LEAKS: ClassVar[bool]
    _TABLE: ClassVar[dict[type, Callable[[Any, Any], None]]]

    def __init_subclass__(cls) -> None:
        cls._TABLE = {node: getattr(cls, name) for node, name in _METHODS.items()}

    def __init__(self, function: Function, findings: Findings) -> None:
        self.function = function
        self.findings = findings
        self.at: Any = function  # what is being looked at
        self.visible: set[Any] = set()
        # What a definition need not show any more: what is visible, or more.
        self.ever: set[Any] = self.visible
        self._trail: list[Any] = []  # what became visible, in order
        self._reported: set[Any] = set()

    def run(self) -> None:
        """Look at the whole function."""
        self._signature()
        self.body(self.function.body)

    # --- what subclasses say ------------------------------------------------------------------------------------------

    def report_use(self, var: Any) -> None:
        """A variable is used where no definition is visible; called once for each variable."""
        raise NotImplementedError

    def body(self, stmt: Stmt) -> None:
        """The body of the function, of a branch or of a loop."""
        self._TABLE[type(stmt)](self, stmt)

    def defined_again(self, var: Any) -> None:
        """A variable of ``ever`` is assigned, or receives a result."""

    def bound(self, var: Any) -> None:
        """A variable is bound for a body: a parameter, a loop variable or an iter_arg."""

    # --- definitions --------------------------------------------------------------------------------------------------

    def _define(self, var: Any) -> None:
        if var in self.ever:
            self.defined_again(var)
        else:
            self.ever.add(var)
            self.visible.add(var)
            self._trail.append(var)

    def _define_all(self, variables: Sequence[Any]) -> None:
        """Variables defined at once, whose types may mention each other."""
        for var in variables:
            self._define(var)
        for var in variables:
            self._type(var.type)

    def _bind(self, variables: Sequence[Any]) -> None:
        """Variables bound for a body."""
        for var in variables:
            self.bound(var)
            self._show(var)
        for var in variables:
            if type(var.type) not in PLAIN_TYPES:
                self._type(var.type)

    def _show(self, var: Any) -> None:
        if var not in self.visible:
            self.visible.add(var)
            self._trail.append(var)
        self.ever.add(var)

    def _hide(self, mark: int) -> list[Any]:
        """End a region: take back what became visible since ``mark``."""
        trail = self._trail
        if len(trail) == mark:
            return []
        inside = trail[mark:]
        del trail[mark:]
        self.visible.difference_update(inside)
        return inside

    def _show_again(self, variables: list[Any]) -> None:
        fresh = [var for var in variables if var not in self.visible]
        self.visible.update(fresh)
        self._trail += fresh

    def _signature(self) -> None:
        function = self.function
        # Symbols of the signature have a value when the function is called; a scalar parameter may be one of them.
        symbolic = False
        for kind in (*[param.type for param in function.params], *function.return_types):
            if type(kind) not in PLAIN_TYPES and not is_closed(kind):
                symbolic = True
                for e in type_expressions(kind):
                    self.visible.update(node for node in walk(e, types=True) if isinstance(node, Var))
        if symbolic:
            self.visible.difference_update(function.params)
        for param in function.params:
            self.bound(param)
            self._show(param)
        if function.attrs:
            self._attrs(function.attrs)

    # --- uses ---------------------------------------------------------------------------------------------------------

    def _use(self, e: Any) -> None:
        cls = type(e)
        if cls is Var or cls is IterArg:
            if e not in self.visible:
                self._undefined(e)
        elif cls not in CONSTANTS:
            self._inside(e)

    def _undefined(self, var: Any) -> None:
        if var not in self._reported:
            self._reported.add(var)
            self.report_use(var)

    def _inside(self, e: Any) -> None:
        """The uses in an expression; a stack, since chains may be thousands of levels deep."""
        visible, operands, constants = self.visible, OPERANDS, CONSTANTS
        stack = [e]
        while stack:
            e = stack.pop()
            for item in operands[type(e)](e):
                cls = type(item)
                if cls is Var or cls is IterArg:
                    if item not in visible:
                        self._undefined(item)
                elif cls not in constants:
                    stack.append(item)

    def _attrs(self, attrs: dict[str, Any]) -> None:
        for e in attrs_operands(attrs):
            self._use(e)

    def _type(self, kind: Type) -> None:
        if type(kind) not in PLAIN_TYPES and not is_closed(kind):
            self._open_type(kind)

    def _open_type(self, kind: Type) -> None:
        for e in type_expressions(kind):
            self._use(e)

    # --- statements ---------------------------------------------------------------------------------------------------

    def _seq(self, stmt: Any) -> None:
        self._stmts(stmt.stmts)

    def _assign(self, stmt: Any) -> None:
        self._stmts((stmt,))

    def _stmts(self, stmts: Sequence[Any]) -> None:
        # The common statement, an assignment of a call, without a detour.
        table, visible, ever = self._TABLE, self.visible, self.ever
        constants, plain = CONSTANTS, PLAIN_TYPES
        for stmt in stmts:
            if type(stmt) is not AssignStmt:
                table[type(stmt)](self, stmt)
                continue
            self.at = stmt
            value: Any = stmt.value
            var = stmt.var
            kind = var.type
            if type(value) is Call:
                for e in value.args:
                    cls = type(e)
                    if cls is Var or cls is IterArg:
                        if e not in visible:
                            self._undefined(e)
                    elif cls not in constants:
                        self._inside(e)
                if value.attrs:
                    self._attrs(value.attrs)
                if value.kwargs:
                    self._attrs(value.kwargs)
                if value.type is not kind:
                    self._type(value.type)
            else:
                self._use(value)
            if type(kind) not in plain and not is_closed(kind):
                self._open_type(kind)
            if var in ever:
                self.defined_again(var)
            else:
                ever.add(var)
                visible.add(var)
                self._trail.append(var)

    def _eval(self, stmt: Any) -> None:
        self.at = stmt
        self._use(stmt.expr)

    def _return(self, stmt: Any) -> None:
        self.at = stmt
        visible = self.visible
        for e in stmt.value:
            if e not in visible:
                self._use(e)

    def _yield(self, stmt: Any) -> None:
        self._return(stmt)

    def _leaf(self, stmt: Any) -> None:
        pass

    def _if(self, stmt: Any) -> None:
        self.at = stmt
        self._use(stmt.condition)
        mark = len(self._trail)
        keep = self._LEAKS and not stmt.return_vars
        self.body(stmt.then_body)
        if stmt.else_body is not None:
            inside = self._hide(mark)
            self.body(stmt.else_body)
            if keep:
                self._show_again(inside)
        if not keep:
            self._hide(mark)
        self._results(stmt)

    def _for(self, stmt: Any) -> None:
        self.at = stmt
        for e in (stmt.start, stmt.stop, stmt.step):
            if type(e) is not ConstInt:
                self._use(e)
        if stmt.attrs:
            self._attrs(stmt.attrs)
        mark = self._carries(stmt)
        self._bind((stmt.loop_var,))
        self._loop_body(stmt, mark)

    def _while(self, stmt: Any) -> None:
        self.at = stmt
        mark = self._carries(stmt)
        self._use(stmt.condition)
        self._loop_body(stmt, mark)

    def _carries(self, stmt: Any) -> int:
        """The initial values, then the carries; gives the mark of the loop's region.

        The loop variable is bound behind them: no carry may have a type that mentions it.
        """
        for arg in stmt.iter_args:
            self._use(arg.initValue)
        mark = len(self._trail)
        if stmt.iter_args:
            self._bind(stmt.iter_args)
        return mark

    def _loop_body(self, stmt: Any, mark: int) -> None:
        self.body(stmt.body)
        if stmt.return_vars or not self._LEAKS:
            self._hide(mark)
        self._results(stmt)

    def _results(self, stmt: Any) -> None:
        if stmt.return_vars:
            self.at = stmt
            self._define_all(stmt.return_vars)

    def _scope(self, stmt: Any) -> None:
        self.at = stmt
        own = _SCOPE_EXPRESSIONS.get(type(stmt))
        if own is not None:
            for e in own(stmt):
                self._use(e)
        task_id = None
        if stmt.attrs:
            task_id = stmt.attrs.get("task_id_var")
            if task_id is None:
                self._attrs(stmt.attrs)
            else:
                self._attrs({key: value for key, value in stmt.attrs.items() if key != "task_id_var"})
        self._TABLE[type(stmt.body)](self, stmt.body)
        if task_id is not None:
            self.at = stmt
            self._define_all((task_id,))


# The expressions that a scope itself holds.
_SCOPE_EXPRESSIONS: dict[type, Callable[[Any], Sequence[Any]]] = {
    SpmdScopeStmt: lambda stmt: (stmt.core_num,),
    CommDomainScopeStmt: lambda stmt: stmt.slots,
}

_METHODS: dict[type, str] = {
    SeqStmts: "_seq",
    AssignStmt: "_assign",
    EvalStmt: "_eval",
    YieldStmt: "_yield",
    ReturnStmt: "_return",
    IfStmt: "_if",
    ForStmt: "_for",
    WhileStmt: "_while",
    BreakStmt: "_leaf",
    ContinueStmt: "_leaf",
    InlineStmt: "_leaf",
    **dict.fromkeys(SCOPE_CLASSES, "_scope"),
}


def run_walk(walk_class: type[Reaching], function: Function, findings: Findings) -> None:
    """Run a walk, with room for deeply nested statements only where it is needed."""
    before = len(findings.found)
    try:
        walk_class(function, findings).run()
    except RecursionError:
        del findings.found[before:]
        with deep_recursion():
            walk_class(function, findings).run()


__all__ = ["Reaching", "run_walk"]
