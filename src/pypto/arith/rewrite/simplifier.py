"""The rewrite simplifier: applies the rule tables bottom up, until nothing changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir import expr as x
from ...ir.dtype import DataType
from ...ir.expr import ConstBool, ConstInt, Expr, Var
from ..fold import FALSE, TRUE, fold_const
from ..helpers import int_range
from ..leaves import Leaves
from ..structure import BINARY, MEMO_LIMIT, UNARY, Interner, conjuncts, is_float, post_order, scalar_dtype
from . import comparisons, division, extrema, logic, sums
from .compiler import RuleSet

RULES = RuleSet(
    {
        x.Add: sums.ADD,
        x.Sub: sums.SUB,
        x.Mul: sums.MUL,
        x.Neg: sums.NEG,
        x.FloorDiv: division.FLOOR_DIV,
        x.FloorMod: division.FLOOR_MOD,
        x.Min: extrema.MIN,
        x.Eq: comparisons.EQ,
        x.Ne: comparisons.NE,
        x.Lt: comparisons.LT,
        x.Le: comparisons.LE,
        x.Not: logic.NOT,
        x.And: logic.AND,
        x.Or: logic.OR,
    },
    duals={x.Max: extrema.MIN},
)

# Rules tend to shrink what they match, so a chain of this length is rare; it bounds the time spent on one node.
_STEPS = 200
_DEPTH = 40


class RewriteSimplifier:
    """Rewrites integer and logical expressions by rules; the same object comes back if none applies.

    Standing alone it knows no ranges, so the rules that need them stay silent; the one inside an ``Analyzer`` asks it.
    """

    def __init__(self, knowledge: Any = None, leaves: Leaves | None = None) -> None:
        self._knowledge = knowledge  # an Analyzer, or None
        self._opaque = is_float if leaves is None else leaves.is_opaque
        self._leaf = _itself if leaves is None else leaves.rewrite
        self._replace: dict[Var, Expr] = {}
        self._facts: dict[int, ConstBool] = {}  # by the number of the condition
        self._memo: dict[Expr, Expr] = {}
        self._turned: dict[Expr, Expr] = {}
        self._intern = Interner()
        self._steps = 0
        self._depth = 0
        self._proving = False
        self._seen_version = 0
        self.visits = 0  # counts nodes, for tests of growth
        self.applied = 0  # counts rules

    def __call__(self, expr: Expr) -> Expr:
        self._refresh()
        self._steps = _STEPS
        return self._run(expr)

    def update(self, var: Var, new_expr: Expr | None) -> None:
        """Replace ``var`` by ``new_expr`` wherever it is used; None ends that."""
        if new_expr is None:
            self._replace.pop(var, None)
        else:
            self._replace[var] = new_expr
        self.forget()

    def enter_constraint(self, constraint: Expr) -> Callable[[], None]:
        """Assume ``constraint``: conditions equal to it are true, their negations false. Returns what ends that."""
        before = self._facts
        facts = dict(before)
        for part in conjuncts(self(constraint)):
            if type(part) is not ConstBool:
                facts[self._intern(part)] = TRUE
                facts[self._intern(self(x.Not(part, DataType.BOOL)))] = FALSE
        self._facts = facts
        self.forget()

        def leave() -> None:
            self._facts = before
            self.forget()

        return leave

    # --- what rules ask -----------------------------------------------------------------------------------------------

    def same(self, a: Any, b: Any) -> bool:
        """Structural equality of two matched parts."""
        if a is b:
            return True
        cls = type(a)
        return cls is type(b) and cls is not Var and self._intern(a) == self._intern(b)

    def symbolic(self, e: Any) -> bool:
        """Whether ``e`` is no constant."""
        return type(e) is not ConstInt

    def positive(self, e: Any) -> bool:
        """Whether ``e >= 1`` is known."""
        return self._knowledge is not None and self._knowledge.range_of(e)[0] >= 1

    def nonzero(self, e: Any) -> bool:
        """Whether ``e != 0`` is known."""
        if self._knowledge is None:
            return False
        low, high = self._knowledge.range_of(e)
        if low >= 1 or high <= -1:
            return True
        coeff, base = self._knowledge.residue_of(e)
        return bool(base % coeff if coeff else base)

    def multiple(self, e: Any, c: int) -> bool:
        """Whether ``e`` is known to be a multiple of ``c``."""
        if self._knowledge is None or c == 0:
            return False
        coeff, base = self._knowledge.residue_of(e)
        return bool(coeff % c == 0 and base % c == 0)

    def within(self, e: Any, c: int) -> bool:
        """Whether ``0 <= e < c`` is known."""
        if self._knowledge is None:
            return False
        low, high = self._knowledge.range_of(e)
        return bool(low >= 0 and high < c)

    def at_most(self, a: Any, b: Any) -> bool:
        """Whether ``a <= b`` is known: from the ranges, or from that of the simplified difference."""
        knowledge = self._knowledge
        if knowledge is None or is_float(a):
            return False
        if knowledge.range_of(a)[1] <= knowledge.range_of(b)[0]:
            return True
        if self._proving or type(a) is ConstInt or type(b) is ConstInt:
            return False
        self._proving = True
        self._depth += 1
        try:
            difference = self._run(x.Sub(a, b, a.type.dtype))
        finally:
            self._depth -= 1
            self._proving = False
        return bool(knowledge.range_of(difference)[1] <= 0)

    # --- the walk -----------------------------------------------------------------------------------------------------

    def forget(self) -> None:
        """Drop what is remembered of expressions: what stands for a variable has changed."""
        self._memo.clear()
        self._turned.clear()

    def _refresh(self) -> None:
        self._intern.trim()
        if self._knowledge is not None and self._seen_version != self._knowledge.version():
            self._seen_version = self._knowledge.version()
            self.forget()
        elif len(self._memo) > MEMO_LIMIT:
            self.forget()

    def _run(self, expr: Expr) -> Expr:
        found = self._memo.get(expr)
        if found is None:
            post_order(expr, self._memo, self._visit, self._children)
            found = self._memo[expr]
        return found

    def _children(self, e: Any) -> tuple[Any, ...]:
        cls = type(e)
        if cls in BINARY:
            if self._opaque(e):
                return ()
            if (cls is x.And or cls is x.Or) and type(e.right) is cls:
                return (self._lean_left(e),)
            return e.left, e.right
        return (e.operand,) if cls in UNARY and not self._opaque(e) else ()

    def _lean_left(self, e: Any) -> Expr:
        """``a and (b and (c and d))`` as ``((a and b) and c) and d``: step by step that takes quadratic time."""
        found = self._turned.get(e)
        if found is None:
            cls = type(e)
            parts = []
            stack = [e]
            while stack:
                item = stack.pop()
                if type(item) is cls:
                    stack += (item.right, item.left)
                else:
                    parts.append(item)
            found = parts[0]
            for part in parts[1:]:
                found = cls(found, part, e.dtype, e.span)
            self._turned[e] = found
        return found

    def _visit(self, e: Any) -> None:
        self.visits += 1
        memo = self._memo
        turned = self._turned.get(e)
        if turned is not None:
            memo[e] = memo[turned]
            return
        if not self._depth:
            self._steps = _STEPS
        result = self._simplified(e)
        if self._facts and scalar_dtype(result) is DataType.BOOL:
            result = self._facts.get(self._intern(result), result)
        memo[e] = result
        memo.setdefault(result, result)

    def _simplified(self, e: Any) -> Any:
        cls = type(e)
        memo = self._memo
        if cls in BINARY:
            if self._opaque(e):
                return self._leaf(e)
            left, right = memo[e.left], memo[e.right]
            if cls is x.Gt or cls is x.Ge:
                node: Any = (x.Lt if cls is x.Gt else x.Le)(right, left, e.dtype, e.span)
            elif left is e.left and right is e.right:
                node = e
            else:
                node = cls(left, right, e.dtype, e.span)
            compared = cls in x.COMPARISONS
        elif cls in UNARY:
            if self._opaque(e):
                return self._leaf(e)
            operand = memo[e.operand]
            node = e if operand is e.operand else cls(operand, e.dtype, e.span)
            compared = False
        else:
            found = self._replace.get(e)
            return self._leaf(e) if found is None else found
        folded = fold_const(node)
        if folded is not None:
            fitting = _with_dtype(folded, node)
            if fitting is not None:
                return fitting
        if compared and (is_float(node.left) or is_float(node.right)):
            return node
        return self._rewritten(node)

    def _rewritten(self, node: Any) -> Any:
        for rule in RULES.candidates(node):
            result = rule(self, node)
            if result is None:
                continue
            result = _with_dtype(result, node)
            if result is None:
                continue
            self.applied += 1
            self._steps -= 1
            if self._steps <= 0 or self._depth >= _DEPTH:
                return result
            self._depth += 1
            try:
                return self._run(result)
            finally:
                self._depth -= 1
        return node


def _itself(e: Any) -> Any:
    return e


def _with_dtype(result: Any, node: Any) -> Any:
    """``result`` if it has the dtype of ``node``, a constant brought to that dtype; None if neither is possible."""
    dtype = node.type.dtype
    have = scalar_dtype(result)
    if have is dtype:
        return result
    if type(result) is ConstInt:
        bounds = int_range(dtype)
        if bounds is not None and dtype is not DataType.BOOL and bounds[0] <= result.value <= bounds[1]:
            return ConstInt(result.value, dtype)
    return None


__all__ = ["RULES", "RewriteSimplifier"]
