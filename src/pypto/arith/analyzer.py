"""The analyzer: bounds, modular sets, rewriting, comparison and intervals, connected; and constraint contexts."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from ..ir import expr as x
from ..ir.dtype import DataType
from ..ir.expr import ConstBool, ConstInt, Expr, Var
from .arguments import bind_arguments
from .bounds import INF, ConstIntBound, ConstIntBoundAnalyzer
from .canonical import CanonicalSimplifier
from .compare import (
    ESTABLISHES,
    GE,
    GT,
    INCONSISTENT,
    LE,
    LT,
    UNKNOWN,
    WANTED,
    TransitiveComparisonAnalyzer,
    establishes,
)
from .intset import IntSet, IntSetAnalyzer
from .leaves import Leaves
from .modular import ModularSet, ModularSetAnalyzer
from .polynomial import Polynomials, difference
from .rewrite import RewriteSimplifier
from .signs import is_non_negative, is_zero
from .structure import MEMO_LIMIT, conjuncts, is_integer, joined, post_order, scalar_dtype


class Analyzer:
    """Knows facts about variables, simplifies with them, and proves conditions. False means "not proved".

    ``leaves`` says more about what the analyzer does not look into: variables, calls, operators declared opaque.
    """

    def __init__(self, leaves: Leaves | None = None) -> None:
        self._bounds = ConstIntBoundAnalyzer(leaves)
        self._modular = ModularSetAnalyzer(self._bounds.range, leaves)
        self._modular.outside_version = lambda: self._bounds.version
        self._rewrite = RewriteSimplifier(self, leaves)
        self._transitive = TransitiveComparisonAnalyzer()
        self._int_set = IntSetAnalyzer(self)
        self._canonical = CanonicalSimplifier()
        self._normal: tuple[int, Polynomials] | None = None
        self._symbolic = False  # whether a proof by intervals is in progress
        self._infeasible = 0  # how many open contexts contradict what was known
        self._waiting: list[tuple[ConstraintContext, Expr]] = []  # constraints that the intervals don't know yet

    @property
    def const_int_bound(self) -> ConstIntBoundAnalyzer:
        """Ranges of expressions."""
        return self._bounds

    @property
    def modular_set(self) -> ModularSetAnalyzer:
        """Residues of expressions."""
        return self._modular

    @property
    def rewrite_simplify(self) -> RewriteSimplifier:
        """The simplifier, which uses what the analyzer knows."""
        return self._rewrite

    @property
    def transitive_cmp(self) -> TransitiveComparisonAnalyzer:
        """Facts between expressions."""
        return self._transitive

    @property
    def int_set(self) -> IntSetAnalyzer:
        """Symbolic intervals of expressions."""
        self._learn_intervals()
        return self._int_set

    def _learn_intervals(self) -> None:
        """Enter constraints into the intervals: that takes long, and few proofs need them."""
        waiting, self._waiting = self._waiting, []
        for context, constraint in waiting:
            context._keep(self._int_set.enter_constraint(constraint))

    # --- what the parts ask -------------------------------------------------------------------------------------------

    def version(self) -> int:
        """Changes with what is known of ranges and residues."""
        return self._bounds.version + self._modular.version

    def range_of(self, e: Expr) -> tuple[int, int]:
        """The constant range of an expression."""
        return self._bounds.range(e)

    def residue_of(self, e: Expr) -> tuple[int, int]:
        """(coeff, base) of an expression."""
        return self._modular.residue(e)

    # --- facts --------------------------------------------------------------------------------------------------------

    def bind(self, var: Var, *args: Any, **kwargs: Any) -> None:
        """``bind(var, expr, allow_override=False)``: ``var`` is ``expr``.

        ``bind(var, min_val, max_val_exclusive, allow_override=False)``: ``min_val <= var < max_val_exclusive``; the
        ends may be ints or expressions. What was bound before is replaced.
        """
        low, high, _ = bind_arguments(var, args, kwargs)
        self._learn_intervals()
        low = self._rewrite(low)
        high = None if high is None else self._rewrite(high)
        self._clear(var)
        if high is None or type(low) is ConstInt and type(high) is ConstInt and low.value + 1 == high.value:
            self._bind_value(var, low)
        elif not (_mentions(low, var) or _mentions(high, var)):
            floor, ceiling = self.range_of(low)[0], self.range_of(high)[1]
            ceiling = INF if ceiling == INF else ceiling - 1
            if floor <= ceiling:
                self._bounds.update(var, ConstIntBound(floor, ceiling))
            self._transitive.bind(var, low, high)
            self._int_set.bind(var, low, high)

    def _bind_value(self, var: Var, value: Expr) -> None:
        if _mentions(value, var):
            return  # a fact like i == i + 1 is about two values of i
        if not is_integer(value):
            if scalar_dtype(value) is scalar_dtype(var):
                self._rewrite.update(var, value)
            return
        self._bounds.update(var, ConstIntBound(*self.range_of(value)))
        self._modular.update(var, ModularSet(*self.residue_of(value)))
        if type(value) is ConstInt and scalar_dtype(var) is not None:
            self._rewrite.update(var, ConstInt(value.value, scalar_dtype(var)))  # type: ignore[arg-type]
        elif scalar_dtype(value) is scalar_dtype(var):
            self._rewrite.update(var, value)
        self._transitive.bind(var, value)
        self._int_set.update(var, IntSet.single_point(value))

    def unbind(self, var: Var) -> None:
        """Forget what was bound."""
        self._learn_intervals()
        self._clear(var)
        self._transitive.unbind(var)

    def _clear(self, var: Var) -> None:
        self._bounds.unbind(var)
        self._modular.unbind(var)
        self._rewrite.update(var, None)
        self._int_set.unbind(var)

    def constraint_context(self, constraint: Expr) -> ConstraintContext:
        """Assume ``constraint`` until the context ends."""
        return ConstraintContext(_PRIVATE, self, constraint)

    # --- simplification -----------------------------------------------------------------------------------------------

    def simplify(self, expr: Expr, steps: int = 2) -> Expr:
        """The rewriter, applied up to ``steps`` times."""
        if steps < 0:
            raise ValueError(f"simplify: steps must be non-negative, got {steps}")
        for _ in range(steps):
            result = self._rewrite(expr)
            if result is expr:
                break
            expr = result
        return expr

    # --- proofs -------------------------------------------------------------------------------------------------------

    def can_prove_greater_equal(self, expr: Expr, lower_bound: int) -> bool:
        """Whether ``expr >= lower_bound`` is known."""
        return bool(self._infeasible) or self.range_of(self.simplify(expr))[0] >= lower_bound

    def can_prove_less(self, expr: Expr, upper_bound: int) -> bool:
        """Whether ``expr < upper_bound`` is known."""
        if self._infeasible:
            return True
        high = self.range_of(self.simplify(expr))[1]
        return high != INF and high < upper_bound

    def can_prove_equal(self, lhs: Expr, rhs: Expr) -> bool:
        """Whether both are the same object, or integers whose difference is 0."""
        if lhs is rhs or self._infeasible:
            return True
        if not (is_integer(lhs) and is_integer(rhs)):
            return False
        gap = self._difference(lhs, rhs)
        return _is_zero(gap) or self._zero_polynomial(lhs, rhs) is True

    def can_prove(self, cond: Expr) -> bool:
        """Whether the condition is known to be true."""
        if self._infeasible:
            return True
        waiting = [self.simplify(cond)]
        while waiting:
            part: Any = waiting.pop()
            if type(part) is x.And:
                waiting += (part.left, part.right)
            elif type(part) is ConstBool or type(part) is ConstInt:
                if not part.value:
                    return False
            elif not self._holds(part):
                return False
        return True

    def truth(self, cond: Expr) -> bool | None:
        """What is known of a condition: True, False or, mostly, None.

        Cheaper than to prove it and then its negation: ranges, differences and facts are asked, nothing is expanded.
        Under contradictory constraints nothing is known.
        """
        return None if self._infeasible else self._truth(self.simplify(cond))

    def _truth(self, cond: Any) -> bool | None:
        cls = type(cond)
        if cls is ConstBool or cls is ConstInt:
            return bool(cond.value)
        if cls is x.Not:
            inner = self._truth(cond.operand)
            return None if inner is None else not inner
        if cls is x.And or cls is x.Or:
            decisive = cls is x.Or
            parts = [self._truth(part) for part in joined(cond, cls)]
            if decisive in parts:
                return decisive
            return None if None in parts else not decisive
        if cls not in ESTABLISHES or not (is_integer(cond.left) and is_integer(cond.right)):
            return None
        left, right = cond.left, cond.right
        known = order_of_ranges(self.range_of(left), self.range_of(right))
        verdict = verdict_of(known, cls)
        if verdict is not None:
            return verdict
        constant = type(left) is ConstInt or type(right) is ConstInt
        if constant and not self._transitive.knows_facts():
            return None
        gap = self._difference(left, right)
        if not constant:  # else the ranges have said it
            known &= order_of_ranges(self.range_of(gap), (0, 0))
        known &= self._transitive.order(left, right)
        known &= self._compared_terms(gap)
        return verdict_of(known, cls)

    def _compared_terms(self, gap: Any) -> int:
        """How a difference compares with 0, by the facts about ``a + c`` and ``b`` if it is ``a - b + c``."""
        offset = gap.right if type(gap) is x.Add and type(gap.right) is ConstInt else None
        terms = gap if offset is None else gap.left
        if type(terms) is not x.Sub:
            return UNKNOWN
        first = terms.left if offset is None else x.Add(terms.left, offset, gap.dtype)
        return self._transitive.order(first, terms.right)

    def _holds(self, part: Any) -> bool:
        cls = type(part)
        if cls is x.Or:
            return self.can_prove(part.left) or self.can_prove(part.right)
        if cls not in ESTABLISHES or not (is_integer(part.left) and is_integer(part.right)):
            return False
        left, right = part.left, part.right
        if _fulfils(cls, self.range_of(self._difference(left, right))):
            return True
        if establishes(self._transitive.order(left, right), WANTED[cls]):
            return True
        return self._by_intervals(cls, left, right) or self._by_normal_form(cls, left, right)

    def _difference(self, left: Any, right: Any) -> Expr:
        dtype = left.type.dtype
        if dtype is not DataType.INDEX and dtype is not DataType.INT64:
            dtype = DataType.INT64  # where the difference of narrow integers does not wrap
        return self.simplify(x.Sub(left, right, dtype))

    def _by_intervals(self, cls: type, left: Any, right: Any) -> bool:
        """For orders: an end of one side's interval against the other side."""
        if cls in (x.Eq, x.Ne) or self._symbolic:
            return False
        self._symbolic = True
        try:
            ascending = cls in (x.Lt, x.Le)
            for end, other, first in (
                (self._int_set.interval(left)[1 if ascending else 0], right, True),
                (self._int_set.interval(right)[0 if ascending else 1], left, False),
            ):
                if end is None:
                    continue
                a, b = (end, other) if first else (other, end)
                gap = self._difference(a, b)
                if _fulfils(cls, self.range_of(gap)) or _fulfils(cls, self.range_of(self._canonical(gap))):
                    return True
                if self._by_normal_form(cls, a, b):
                    return True
            return False
        finally:
            self._symbolic = False

    def _polynomials(self) -> Polynomials:
        version = self.version()
        if self._normal is None or self._normal[0] != version or self._normal[1].size() > MEMO_LIMIT:
            self._normal = version, Polynomials(self._finite_range)
        return self._normal[1]

    def _finite_range(self, e: Expr) -> tuple[int | None, int | None]:
        low, high = self.range_of(e)
        return (None if low == -INF else low), (None if high == INF else high)

    def _zero_polynomial(self, left: Any, right: Any) -> bool | None:
        normal = self._polynomials()
        left, right = self.simplify(left), self.simplify(right)
        return is_zero(normal, difference(normal.of(left), normal.of(right)))

    def _by_normal_form(self, cls: type, left: Any, right: Any) -> bool:
        """By the sign of the polynomial of the difference."""
        if cls is x.Eq or cls is x.Ne:
            return self._zero_polynomial(left, right) is (cls is x.Eq)
        normal = self._polynomials()
        small, large = (left, right) if cls in (x.Lt, x.Le) else (right, left)
        if cls in (x.Lt, x.Gt):  # small < large is not large <= small
            return is_non_negative(normal, difference(normal.of(small), normal.of(large))) is False
        return is_non_negative(normal, difference(normal.of(large), normal.of(small))) is True


def _mentions(e: Any, var: Var) -> bool:
    seen: set[Any] = set()
    post_order(e, seen, seen.add)
    return var in seen


def _is_zero(e: Any) -> bool:
    return type(e) is ConstInt and e.value == 0


def verdict_of(known: int, cls: type) -> bool | None:
    """Whether what is known of two expressions implies a comparison of them, or rules it out."""
    wanted = WANTED[cls]
    if known == INCONSISTENT:
        return None
    return True if known & wanted == known else None if known & wanted else False


def order_of_ranges(a: tuple[int, int], b: tuple[int, int]) -> int:
    """How values of two ranges compare."""
    known = UNKNOWN
    if a[1] <= b[0] and a[1] != INF and b[0] != -INF:
        known &= LT if a[1] < b[0] else LE
    if a[0] >= b[1] and a[0] != -INF and b[1] != INF:
        known &= GT if a[0] > b[1] else GE
    return known


def _fulfils(cls: type, gap: tuple[int, int]) -> bool:
    """Whether ``left - right`` in the range ``gap`` implies the comparison."""
    low, high = gap
    if cls is x.Eq:
        return low == high == 0
    if cls is x.Ne:
        return low > 0 or high < 0
    if cls is x.Lt:
        return high < 0
    if cls is x.Le:
        return high <= 0
    return low > 0 if cls is x.Gt else low >= 0


_PRIVATE = object()


class ConstraintContext:
    """A constraint that is assumed from its making until the end of the ``with`` block or :meth:`exit_scope`.

    Made by :meth:`Analyzer.constraint_context` only; contexts end in reverse order.
    """

    def __init__(self, made_by: object, analyzer: Analyzer, constraint: Expr) -> None:
        if made_by is not _PRIVATE:
            raise TypeError("ConstraintContext is made by Analyzer.constraint_context")
        self._analyzer = analyzer
        self._undo: list[Callable[[], None]] = []
        self._enter(analyzer, analyzer.simplify(constraint))

    def _enter(self, analyzer: Analyzer, constraint: Expr) -> None:
        feasible = True
        bounds, possible = analyzer._bounds.enter(constraint)
        feasible = feasible and possible
        self._keep(bounds)
        for part in conjuncts(constraint):
            if type(part) is ConstBool and not part.value:
                feasible = False
            residues, possible = analyzer._modular.enter(part)
            feasible = feasible and possible
            self._keep(residues)
        self._keep(analyzer._rewrite.enter_constraint(constraint))
        self._keep(analyzer._transitive.enter_constraint(constraint))
        feasible = feasible and not analyzer._transitive.contradicts(constraint)
        analyzer._waiting.append((self, constraint))
        if not feasible:
            analyzer._infeasible += 1
            self._keep(self._feasible_again)

    def _feasible_again(self) -> None:
        self._analyzer._infeasible -= 1

    def _keep(self, leave: Callable[[], None] | None) -> None:
        if leave is not None:
            self._undo.append(leave)

    def exit_scope(self) -> None:
        """End the constraint; again does nothing."""
        waiting = self._analyzer._waiting
        if waiting:
            self._analyzer._waiting = [entry for entry in waiting if entry[0] is not self]
        while self._undo:
            self._undo.pop()()

    def __enter__(self) -> ConstraintContext:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        self.exit_scope()


__all__ = ["Analyzer", "ConstraintContext", "order_of_ranges", "verdict_of"]
