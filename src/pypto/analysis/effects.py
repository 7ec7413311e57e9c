"""What a piece of code reads and writes of the tensors defined outside it, and which tensors its names stand for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from operator import is_
from typing import Any

from ..ir import expr as x
from ..ir import stmt as st
from ..ir.attrs import attr_expressions
from ..ir.enums import ArgEffect, ParamDirection
from ..ir.expr import Expr, Var
from ..ir.program import Function
from ..ir.type import TensorType, TupleType
from ..ops.definition import Alias
from ..ops.registry import REGISTRY


class _Fresh:
    """The root of a value that the code computes itself."""


class _Unknown:
    """The root of a value that may name different tensors."""


FRESH: Any = _Fresh()
UNKNOWN: Any = _Unknown()


class TensorEffects:
    """``reads``/``writes``: outer tensor variables; ``order``: those in order of first use; ``leaks``: tensor variable
    assigned inside -> the outer variable that it names, or None for a value of its own; ``others``: variables of other
    types that are assigned inside; ``known``: no name may stand for different tensors, or for a part of one;
    ``conditional``: names of ``leaks`` that some paths do not assign, which then keep what they named before."""

    def __init__(self) -> None:
        self.reads: dict[Var, None] = {}
        self.writes: dict[Var, None] = {}
        self.order: dict[Var, None] = {}
        self.leaks: dict[Var, Var | None] = {}
        self.others: dict[Var, None] = {}
        self.conditional: dict[Var, None] = {}
        self.known = True


def tensor_effects(body: st.Stmt, functions: Mapping[str, Function]) -> TensorEffects:
    """Effects of a body on the tensors defined outside it. Linear in its size, but for an outermost loop that
    rebinds names (walked again until the roots settle)."""
    walker = _Walker(functions)
    walker.stmt(body)
    result = walker.effects
    for var, root in walker.roots.items():
        if not isinstance(var.type, TensorType):
            continue
        if root is UNKNOWN or var in walker.views:
            result.known = False
        result.leaks[var] = None if root in (FRESH, UNKNOWN) else root
    return result


class _Walker:
    def __init__(self, functions: Mapping[str, Function], outer: Collection[Var] = ()) -> None:
        self.functions = functions
        self.outer = outer  # variables that are known to have a value before
        self.effects = TensorEffects()
        self.roots: dict[Var, Any] = {}  # variable assigned inside -> outer variable, FRESH or UNKNOWN
        self.tuples: dict[Var, list[Any]] = {}
        self.views: set[Var] = set()  # variables whose value is, or may be, a view of their root
        self.depth = 0
        self.in_loop = False
        self.changed = False  # whether roots, tuples or views changed in this round of the outermost loop

    # --- roots --------------------------------------------------------------------------------------------------------

    def root(self, e: Expr) -> Any:
        """The outer tensor variable that an expression names, FRESH, or UNKNOWN."""
        if isinstance(e, Var):
            known = self.roots.get(e)
            if known is not None:
                return known
            return e if isinstance(e.type, TensorType) else FRESH
        if isinstance(e, x.TupleGetItemExpr):
            parts = self.value_roots(e.tuple)
            return parts[e.index] if parts is not None and e.index < len(parts) else UNKNOWN
        roots = self.value_roots(e)
        return roots[0] if roots else FRESH

    def value_roots(self, e: Expr) -> list[Any] | None:
        """Roots of the results of an expression, one each."""
        if isinstance(e, Var) and e in self.tuples:
            return self.tuples[e]
        if isinstance(e, x.MakeTuple):
            return [self.root(v) for v in e.elements]
        if isinstance(e, (x.Call, x.Submit)):
            if isinstance(e.op, x.GlobalVar):
                return self._function_roots(e)
            definition = REGISTRY.get(e.op.name)
            if definition is not None and definition.alias is not Alias.FRESH and definition.alias_operand is not None:
                return [self.root(e.args[definition.alias_operand])]
            return [FRESH]
        return None

    def _function_roots(self, e: Any) -> list[Any]:
        from .lineage import return_lineage

        function = self.functions.get(e.op.name)
        lineage = return_lineage(function) if function is not None else None
        if lineage is None:
            count = len(e.type.types) if isinstance(e.type, TupleType) else 1
            return [UNKNOWN] * count
        return [FRESH if i is None or i >= len(e.args) else self.root(e.args[i]) for i in lineage]

    def is_view(self, e: Expr) -> bool:
        """Whether the value may be a part of its root, or the root under another shape."""
        if isinstance(e, Var):
            return e in self.views
        if isinstance(e, x.TupleGetItemExpr):
            return self.is_view(e.tuple)
        if isinstance(e, x.MakeTuple):
            return any(self.is_view(v) for v in e.elements)
        if not isinstance(e, (x.Call, x.Submit)):
            return False
        if isinstance(e.op, x.GlobalVar):
            from .lineage import returns_views

            function = self.functions.get(e.op.name)
            return function is None or returns_views(function) or any(self.is_view(a) for a in e.args)
        definition = REGISTRY.get(e.op.name)
        if definition is None or definition.alias_operand is None or definition.alias is Alias.FRESH:
            return False
        return definition.alias is Alias.VIEW or self.is_view(e.args[definition.alias_operand])

    def assign(self, var: Var, e: Expr) -> None:
        if not isinstance(var.type, (TensorType, TupleType)):
            return
        if var not in self.views and self.is_view(e):
            self.views.add(var)
            self.changed = True
        if isinstance(var.type, TupleType):
            roots = self.value_roots(e)
            if roots is not None:
                known = self.tuples.get(var)
                if known is None or not (len(known) == len(roots) and all(map(is_, known, roots))):
                    self.changed = True
                self.tuples[var] = roots
            return
        self.merge(var, self.root(e))

    def merge(self, var: Var, root: Any) -> None:
        """Give a variable a root; inside loops and branches an earlier, different one makes it unknown."""
        old = self.roots.get(var)
        if old is None and self.depth:
            if self._is_outer(var):
                old = var
            else:
                self.effects.conditional.setdefault(var, None)
        elif not self.depth:
            self.effects.conditional.pop(var, None)
        if old is not None and old is not root and self.depth:
            root = UNKNOWN
        if self.roots.get(var) is not root:
            self.changed = True
        self.roots[var] = root

    def _is_outer(self, var: Var) -> bool:
        return var in self.effects.order or var in self.outer

    # --- accesses -----------------------------------------------------------------------------------------------------

    def touch(self, root: Any, read: bool, write: bool) -> None:
        if root is FRESH:
            return
        if root is UNKNOWN:
            self.effects.known = False
            return
        self.effects.order.setdefault(root, None)
        if read:
            self.effects.reads.setdefault(root, None)
        if write:
            self.effects.writes.setdefault(root, None)

    def expr(self, e: Expr) -> None:
        """Accesses of an expression; a variable that is only passed on is touched by who uses it."""
        if isinstance(e, (x.Call, x.Submit)):
            if isinstance(e.op, x.GlobalVar):
                self._function(e)
            else:
                self._operation(e)
            for value in e.attrs.values():
                for inner in attr_expressions(value):
                    self.expr(inner)
            return
        if isinstance(e, x.BinaryExpr):
            while isinstance(e, x.BinaryExpr):
                self.expr(e.right)
                e = e.left
            self.expr(e)
        elif isinstance(e, x.UnaryExpr):
            self.expr(e.operand)
        elif isinstance(e, x.MakeTuple):
            for inner in e.elements:
                self.expr(inner)
        elif isinstance(e, x.TupleGetItemExpr):
            self.expr(e.tuple)
        elif isinstance(e, Var) and isinstance(e.type, TensorType) and e not in self.roots:
            self.effects.order.setdefault(e, None)

    def _operation(self, e: Any) -> None:
        definition = REGISTRY.get(e.op.name)
        for i, arg in enumerate(e.args):
            self.expr(arg)
            if not isinstance(arg.type, TensorType):
                continue
            if definition is None:
                self.touch(self.root(arg), True, True)
                continue
            effect = definition.effect(i, e.kwargs)
            is_view = definition.alias is Alias.VIEW and definition.alias_operand == i
            reads = effect is not ArgEffect.Write and not is_view
            self.touch(self.root(arg), reads, effect is not ArgEffect.Read)

    def _function(self, e: Any) -> None:
        function = self.functions.get(e.op.name)
        for i, arg in enumerate(e.args):
            self.expr(arg)
            if not isinstance(arg.type, TensorType):
                continue
            direction = ParamDirection.InOut if function is None else function.param_directions[i]
            self.touch(self.root(arg), direction is not ParamDirection.Out, direction is not ParamDirection.In)

    # --- statements ---------------------------------------------------------------------------------------------------

    def stmt(self, s: st.Stmt) -> None:
        if isinstance(s, st.SeqStmts):
            for inner in s.stmts:
                self.stmt(inner)
        elif isinstance(s, st.AssignStmt):
            self.expr(s.value)
            if not isinstance(s.var.type, TensorType):
                self.effects.others.setdefault(s.var, None)
            self.assign(s.var, s.value)
        elif isinstance(s, st.EvalStmt):
            self.expr(s.expr)
        elif isinstance(s, (st.YieldStmt, st.ReturnStmt)):
            for value in s.value:
                self.expr(value)
        elif isinstance(s, st.IfStmt):
            self._if(s)
        elif isinstance(s, st.ForStmt):
            for bound in (s.start, s.stop, s.step):
                self.expr(bound)
            self._loop(s)
        elif isinstance(s, st.WhileStmt):
            self.expr(s.condition)
            self._loop(s)
        elif isinstance(s, st.ScopeStmt):
            self.stmt(s.body)

    def _if(self, s: st.IfStmt) -> None:
        from ..ir.tree import get_last_yield_stmt

        self.expr(s.condition)
        self.depth += 1
        for body in (s.then_body, s.else_body):
            if body is None:
                continue
            self.stmt(body)
            last = get_last_yield_stmt(body)
            if last is not None:
                for var, value in zip(s.return_vars, last.value, strict=False):
                    self.assign(var, value)
        self._results(s.return_vars)
        self.depth -= 1

    def _loop(self, s: Any) -> None:
        """Walk a loop until nothing changes: what the body makes of a name reaches the head of the next iteration.

        The outermost loop alone goes round, and takes the loops inside with it. A root only goes from none to a
        variable to UNKNOWN, so this ends.
        """
        if self.in_loop:
            self._iteration(s)
            return
        self.in_loop = self.changed = True
        while self.changed:
            self.changed = False
            self._iteration(s)
        self.in_loop = False

    def _iteration(self, s: Any) -> None:
        from ..ir.tree import get_last_yield_stmt

        self.depth += 1
        for arg in s.iter_args:
            self.expr(arg.initValue)
            self.assign(arg, arg.initValue)
        self.stmt(s.body)
        last = get_last_yield_stmt(s.body)
        if last is not None:
            for arg, var, value in zip(s.iter_args, s.return_vars, last.value, strict=False):
                self.assign(arg, value)
                self.assign(var, value)
        for arg, var in zip(s.iter_args, s.return_vars, strict=False):
            self.merge(var, self.roots.get(arg, UNKNOWN))
        self._carries(s.iter_args)
        self._results(s.return_vars)
        self.depth -= 1

    def _results(self, variables: Sequence[Var]) -> None:
        """What a branch or loop always assigns: only if it stands in another one, some paths do not come to it."""
        self._carries(variables)
        if self.depth > 1:
            self.effects.conditional.update(dict.fromkeys(v for v in variables if isinstance(v.type, TensorType)))

    def _carries(self, variables: Sequence[Var]) -> None:
        """Variables of a loop or branch alone: there is nothing that they named before."""
        for var in variables:
            self.effects.conditional.pop(var, None)
            if not isinstance(var.type, TensorType):
                self.effects.others.setdefault(var, None)
