"""The canonical simplifier: integer expressions as sums of scaled split terms.

A term is ``((index % upper) // lower) * scale``; ``upper`` may be infinite (None). A sum is a list of terms, in the
order of their first appearance, plus a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir import expr as x
from ..ir.dtype import DataType
from ..ir.expr import BinaryExpr, ConstInt, Expr, UnaryExpr, Var
from .fold import fold_const
from .helpers import fits_int64
from .polynomial import is_linear, linear_leaves
from .structure import Interner, is_float, is_integer, operands, post_order, scalar_dtype

# The coefficients in a sum that itself has a larger one would soon exceed 64 bits.
_OPEN_LIMIT = 2**60


class Term:
    """``((index % upper) // lower) * scale``."""

    __slots__ = ("index", "lower", "node", "scale", "upper")

    def __init__(self, index: Any, lower: int = 1, upper: int | None = None, scale: int = 1, node: Any = None) -> None:
        self.index = index
        self.lower = lower
        self.upper = upper
        self.scale = scale
        self.node = node  # an expression for the term with scale 1, if there is one already

    def with_scale(self, scale: int) -> Term:
        """The same split, scaled differently."""
        return Term(self.index, self.lower, self.upper, scale, self.node)


class Sum:
    """Terms plus a constant."""

    __slots__ = ("base", "terms")

    def __init__(self, terms: list[Term], base: int) -> None:
        self.terms = terms
        self.base = base

    def fits(self) -> bool:
        """Whether all coefficients are 64-bit integers."""
        return fits_int64(self.base) and all(fits_int64(t.scale) for t in self.terms)


class CanonicalSimplifier:
    """Brings integer expressions into canonical sums."""

    def __init__(self) -> None:
        self._replace: dict[Var, Expr] = {}
        self.visits = 0  # counts nodes, for tests of growth

    def __call__(self, expr: Expr) -> Expr:
        run = _Run(self._replace)
        result = run.simplified(expr)
        self.visits += run.visits
        return result

    def update(self, var: Var, new_expr: Expr | None) -> None:
        """Replace ``var`` by ``new_expr`` wherever it is used; None ends that."""
        if new_expr is None:
            self._replace.pop(var, None)
        else:
            self._replace[var] = new_expr

    def enter_constraint(self, constraint: Expr) -> Callable[[], None] | None:
        """Constraints teach this simplifier nothing."""
        return None


class _Run:
    """One call: sums are remembered no longer."""

    def __init__(self, replace: dict[Var, Expr]) -> None:
        self._replace = replace
        self._sums: dict[Any, Sum] = {}  # of integer expressions
        self._exprs: dict[Any, Expr] = {}  # of expressions that had to be rebuilt
        self._intern = Interner()
        self.visits = 0

    def simplified(self, e: Any) -> Expr:
        """``e`` in canonical form."""
        if e not in self._exprs:
            post_order(e, self._exprs, self._visit, self._children)
        return self._exprs[e]

    def _children(self, e: Any) -> tuple[Any, ...]:
        if is_float(e):
            return ()
        if is_linear(e) and is_integer(e):
            # A sum is looked at as a whole; its partial sums would take quadratic time.
            return tuple(leaf for leaf, _ in linear_leaves(e, _OPEN_LIMIT))
        return operands(e)

    def _visit(self, e: Any) -> None:
        self.visits += 1
        if is_integer(e):
            total = self._sum(e)
            if total.fits():
                self._sums[e] = total
                self._exprs[e] = self._built(total, e)
                return
        # No integer, or its coefficients overflow: only the parts are simplified.
        node = self._rebuilt(e)
        if is_integer(e):
            self._sums[e] = Sum([Term(node)], 0) if type(node) is not ConstInt else Sum([], node.value)
        self._exprs[e] = node

    # --- sums ---------------------------------------------------------------------------------------------------------

    def _of(self, e: Any) -> Sum:
        found = self._sums.get(e)
        return Sum([Term(self._exprs[e])], 0) if found is None else found

    def _sum(self, e: Any) -> Sum:
        cls = type(e)
        if cls is ConstInt:
            return Sum([], e.value)
        if isinstance(e, Var) and e in self._replace:
            inner = _Run({})  # a replacement is not replaced again: it may mention the variable
            inner.simplified(self._replace[e])
            return inner._of(self._replace[e])
        if is_linear(e):
            terms: list[Term] = []
            base = 0
            for leaf, factor in linear_leaves(e, _OPEN_LIMIT):
                # A sum among the leaves is one that would overflow: it stays together.
                part = Sum([Term(self._exprs[leaf])], 0) if is_linear(leaf) else self._of(leaf)
                base += part.base * factor
                terms += [t.with_scale(t.scale * factor) for t in part.terms]
            return Sum(self._merged(terms), base)
        if cls is x.Mul:
            return self._product(e)
        if cls is x.FloorDiv or cls is x.FloorMod:
            divisor = self._of(e.right)
            if not divisor.terms and divisor.base > 0:
                return (self._quotient if cls is x.FloorDiv else self._remainder)(e, self._of(e.left), divisor.base)
        node = self._rebuilt(e)
        return Sum([], node.value) if type(node) is ConstInt else Sum([Term(node)], 0)

    def _product(self, e: Any) -> Sum:
        left, right = self._of(e.left), self._of(e.right)
        for a, b in ((left, right), (right, left)):
            if not b.terms:
                terms = [t.with_scale(t.scale * b.base) for t in a.terms] if b.base else []
                return Sum(terms, a.base * b.base)
        return Sum([Term(self._rebuilt(e))], 0)

    def _quotient(self, e: Any, a: Sum, c: int) -> Sum:
        if c == 1:
            return a
        if a.base % c == 0 and all(t.scale % c == 0 for t in a.terms):
            return Sum([t.with_scale(t.scale // c) for t in a.terms], a.base // c)
        if len(a.terms) == 1 and a.base == 0:
            term = a.terms[0]
            if term.scale > 0 and c % term.scale == 0:
                lower = term.lower * (c // term.scale)
                if fits_int64(lower) and (term.upper is None or term.upper % lower == 0):
                    return Sum([Term(term.index, lower, term.upper)], 0)
        index = self._built(a, e.left)
        return Sum([Term(index, lower=c, node=self._node(x.FloorDiv, e, index, c))], 0)

    def _remainder(self, e: Any, a: Sum, c: int) -> Sum:
        if all(t.scale % c == 0 for t in a.terms):
            return Sum([], a.base % c)
        if len(a.terms) == 1 and a.base == 0:
            term = a.terms[0]
            # Below a multiple of c, the remainder is that of the index itself.
            if term.scale == 1 and term.lower == 1 and term.upper is not None and term.upper % c == 0:
                return Sum([Term(term.index, upper=c)], 0)
        index = self._built(a, e.left)
        return Sum([Term(index, upper=c, node=self._node(x.FloorMod, e, index, c))], 0)

    def _node(self, cls: Any, e: Any, index: Any, c: int) -> Any:
        """``index // c`` or ``index % c``: ``e`` itself where nothing changed."""
        if index is e.left and type(e.right) is ConstInt:
            return e
        return cls(index, ConstInt(c, e.right.type.dtype), e.dtype, e.span)

    def _merged(self, terms: list[Term]) -> list[Term]:
        """Equal splits added up; quotient and remainder parts of one index joined; zeros left out."""
        if len(terms) < 2:
            return [t for t in terms if t.scale]
        groups: dict[int, list[Term]] = {}  # by index; each keeps the order of its terms
        order: list[Term] = []
        for term in terms:
            group = groups.setdefault(self._intern(term.index), [])
            for known in group:
                if known.lower == term.lower and known.upper == term.upper:
                    known.scale += term.scale
                    break
            else:
                fresh = term.with_scale(term.scale)
                group.append(fresh)
                order.append(fresh)
        for group in groups.values():
            while len(group) > 1 and self._join(group):
                pass
        kept = {id(t) for group in groups.values() for t in group}
        return [t for t in order if t.scale and id(t) in kept]

    @staticmethod
    def _join(group: list[Term]) -> bool:
        """Join a pair ``((i % U) // L) * L*s`` and ``(i % L) * s`` into ``(i % U) * s``, in the place of the first."""
        for low in group:
            if low.lower != 1 or low.upper is None or not low.scale:
                continue
            for high in group:
                if high.lower == low.upper and high.scale == low.scale * high.lower and high is not low:
                    first, second = (high, low) if group.index(high) < group.index(low) else (low, high)
                    upper, scale = high.upper, low.scale
                    first.lower, first.upper, first.scale, first.node = 1, upper, scale, None
                    group.remove(second)
                    for other in group:
                        if other is not first and other.lower == 1 and other.upper == upper:
                            other.scale += scale
                            group.remove(first)
                            break
                    return True
        return False

    # --- back to expressions ------------------------------------------------------------------------------------------

    def _built(self, total: Sum, e: Any) -> Any:
        """The expression of a sum; ``e`` itself if they are equal."""
        dtype = scalar_dtype(e)
        assert dtype is not None
        if not total.terms:
            return e if type(e) is ConstInt else ConstInt(total.base, dtype)
        result: Any = None
        for term in total.terms:
            part = self._term(term, dtype)
            result = part if result is None else x.Add(result, part, dtype)
        if total.base:
            result = x.Add(result, ConstInt(total.base, dtype), dtype)
        if result is e or self._intern(result) == self._intern(e):
            return e
        return result if scalar_dtype(result) is dtype else self._rebuilt(e)

    def _term(self, term: Term, dtype: DataType) -> Any:
        node = term.node
        if node is None:
            node = term.index
            if term.upper is not None:
                node = x.FloorMod(node, ConstInt(term.upper, dtype), dtype)
            if term.lower != 1:
                node = x.FloorDiv(node, ConstInt(term.lower, dtype), dtype)
        if term.scale == 1:
            return node
        return x.Neg(node, dtype) if term.scale == -1 else x.Mul(node, ConstInt(term.scale, dtype), dtype)

    def _rebuilt(self, e: Any) -> Any:
        """The node over its simplified children, folded."""
        if is_float(e):
            return e
        if isinstance(e, Var):
            return self._replace.get(e, e)
        if is_linear(e) and is_integer(e):
            return self._sum_over_leaves(e)
        return self._over(e, self._exprs)

    def _sum_over_leaves(self, e: Any) -> Any:
        """A sum that overflows, as it is but for its leaves."""
        made: dict[Any, Any] = {leaf: self._exprs[leaf] for leaf, _ in linear_leaves(e, _OPEN_LIMIT)}
        made.pop(e, None)

        def visit(node: Any) -> None:
            made[node] = self._over(node, made) if is_linear(node) else node

        post_order(e, made, visit, lambda node: operands(node) if is_linear(node) else ())
        return made[e]

    @staticmethod
    def _over(e: Any, made: dict[Any, Any]) -> Any:
        """The node over other children, folded."""
        if isinstance(e, BinaryExpr):
            left, right = made[e.left], made[e.right]
            node: Any = e
            if left is not e.left or right is not e.right:
                node = type(e)(left, right, e.dtype, e.span)
        elif isinstance(e, UnaryExpr):
            operand = made[e.operand]
            node = e if operand is e.operand else type(e)(operand, e.dtype, e.span)
        else:
            return e
        folded = fold_const(node)
        return node if folded is None or scalar_dtype(folded) is not scalar_dtype(node) else folded


__all__ = ["CanonicalSimplifier"]
