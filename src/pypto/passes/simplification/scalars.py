"""Scalar expressions of a function under rewriting: simplification, and truth of conditions."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

from ...analysis.purity import has_effects
from ...arith.analyzer import Analyzer, order_of_ranges, verdict_of
from ...arith.compare import ESTABLISHES
from ...arith.rewrite.simplifier import RULES
from ...arith.structure import Interner, is_integer, operands, post_order, scalar_dtype
from ...ir import expr as x
from ...ir.dtype import DataType
from ...ir.expr import ConstBool, ConstInt, Expr, Var
from .assumptions import Assumptions
from .forms import (
    CONSTANTS,
    OPERATORS,
    SHAPE_ONLY,
    VARIABLES,
    against_constant,
    folded,
    is_simple,
    rebuilt,
    variables_of,
)
from .limits import Limit

_INDEX, _INT64, _BOOL = DataType.INDEX, DataType.INT64, DataType.BOOL
_FIXPOINT_STEPS = 8
_FAST_DEPTH = 12  # how deep the quick look into an expression goes
# Comparisons that are turned round, and what they become.
_TURNED: dict[type, type[x.BinaryExpr]] = {x.Gt: x.Lt, x.Ge: x.Le}


class Scalars(Assumptions):
    """Rewrites the scalars of one function, and decides its conditions.

    ``rewrite_leaf`` rewrites what is no operator.

    Arithmetic that may wrap (integers narrower than INDEX and INT64) is folded where it is constant and never
    rearranged: the analyzer sees a variable of its own in its place.
    """

    def __init__(
        self, rewrite_leaf: Callable[[Any], Any], replaced: Mapping[Any, Any], reassigned: Container[Any]
    ) -> None:
        super().__init__(replaced, reassigned)
        self._rewrite_leaf = rewrite_leaf
        self._wrapping: dict[Any, Expr] = {}  # stand-in -> arithmetic that may wrap
        self._stand_ins: dict[int, Var] = {}
        self._interner = Interner()

    # --- what the analyzers ask ---------------------------------------------------------------------------------------

    def is_opaque(self, e: Any) -> bool:
        """Floats, and arithmetic that may wrap."""
        dtype = e.type.dtype
        if dtype is _INDEX or dtype is _INT64 or dtype is _BOOL:
            return False
        return not (type(e) is x.Cast and dtype.is_int_)

    def rewrite(self, e: Any) -> Any:
        if type(e) in OPERATORS:
            new = self._with_operands(e)
            return self._stand_in(new) if type(new) in OPERATORS and is_integer(new) else new
        return self._rewrite_leaf(e)

    def _stand_in(self, e: Any) -> Var:
        number = self._interner(e)
        found = self._stand_ins.get(number)
        if found is None:
            found = self._stand_ins[number] = Var("wrapping", e.type)
            self._wrapping[found] = e
        return found

    def _with_operands(self, root: Any, fold: bool = True) -> Any:
        """An operator with its operands rewritten; opaque operators are looked through, and folded if constant.

        Without ``fold`` every operator stays.
        """
        done: dict[Any, Any] = {}

        def inside(e: Any) -> tuple[Any, ...]:
            return operands(e) if type(e) in OPERATORS and (not fold or self.is_opaque(e)) else ()

        def visit(e: Any) -> None:
            parts = inside(e)
            if not parts:
                done[e] = self._analyzed(e) if fold and type(e) in OPERATORS else self.rewrite(e)
                return
            new = rebuilt(e, [done[part] for part in parts])
            if fold and is_integer(new):
                new = folded(new) or new
            done[e] = new

        post_order(root, done, visit, inside)
        return done[root]

    # --- simplification -----------------------------------------------------------------------------------------------

    def simplify(self, e: Any) -> Any:
        """The expression in simplest form, with everything in it rewritten; the same object if nothing changes."""
        if type(e) in ESTABLISHES:
            settled, limit = self._settled_comparison(e)
            if settled is not None and self._is_independent(settled, limit):
                return settled
        elif self._is_settled(e, 0):
            return e
        if self._assumptions and not self.for_types:
            self._enter_for(e)
        try:
            new = self._analyzed(e)
        except ValueError:  # a division by a constant zero: whoever runs it gets the error, and nobody else
            new = self.substituted(e)
        if new is e:
            return e
        if has_effects(e):  # nothing may be dropped
            return self.substituted(e)
        if self._wrapping:
            new = self._shown(new)
            if new is e or self._interner.equal(new, e):
                return e
        if type(new) not in VARIABLES and not new.span.is_valid() and e.span.is_valid():
            new = new.replace(span=e.span)
        return new

    def substituted(self, e: Any) -> Any:
        """The expression with its leaves rewritten, but every operator kept."""
        return self._with_operands(e, fold=False) if type(e) in OPERATORS else self._rewrite_leaf(e)

    def _analyzed(self, e: Any) -> Any:
        """Simplified, with stand-ins."""
        rewrite = self._rules().rewrite_simplify
        for _ in range(_FIXPOINT_STEPS):
            new = rewrite(e)
            if new is e:
                break
            e = new
        return e

    def _plain(self, e: Any) -> Any:
        return self._analyzed(e) if self._wrapping else e

    def _rules(self) -> Analyzer:
        # Types must stay equal in and outside of a branch, so they are simplified by what holds everywhere.
        return self._analyzer_outside() if self.for_types and self._entered else self.analyzer

    def _is_settled(self, e: Any, depth: int) -> bool:
        """A quick look: whether an expression is of variables, constants, sums and products, and no rule applies."""
        cls = type(e)
        if cls in VARIABLES:
            return e not in self._replaced
        if cls is ConstInt:
            return True
        if cls not in SHAPE_ONLY or depth > _FAST_DEPTH:
            return False
        dtype = e.type.dtype
        if dtype is not _INDEX and dtype is not _INT64:
            return False
        left, right = e.left, e.right
        if type(left) is ConstInt or (type(right) is ConstInt and -1 < right.value < 2):
            return False  # constants go to the right, and those that matter little go
        depth += 1
        return self._is_settled(left, depth) and self._is_settled(right, depth) and not self._a_rule_applies(e)

    def _a_rule_applies(self, e: Any) -> bool:
        """Whether a rule applies at the top of an expression."""
        rules = RULES.candidates(e)
        if not rules:
            return False
        simplifier = self.analyzer.rewrite_simplify
        return any(rule(simplifier, e) is not None for rule in rules)

    def _shown(self, e: Any) -> Any:
        """Stand-ins replaced by what they stand for."""
        done: dict[Any, Any] = {}

        def visit(node: Any) -> None:
            if type(node) in OPERATORS:
                done[node] = rebuilt(node, [done[part] for part in operands(node)])
            else:
                hidden = self._wrapping.get(node)
                done[node] = node if hidden is None else self._shown(hidden)

        post_order(e, done, visit)
        return done[e]

    # --- comparisons --------------------------------------------------------------------------------------------------

    def _settled_comparison(self, e: Any) -> tuple[Any, Limit | None]:
        """A comparison in simplest form, and as a limit, if a quick look finds it; None if it takes more."""
        turned = _TURNED.get(type(e))
        form = e if turned is None else turned(e.right, e.left, _BOOL, e.span)
        limit = self._limit(form)
        if limit is None:
            left, right = form.left, form.right
            if not (is_integer(left) and is_integer(right)) or type(left) is ConstInt is type(right):
                return None, None
            if not (self._is_settled(left, 1) and self._is_settled(right, 1)):
                return None, None
        elif limit.var in self._replaced:
            return None, None
        return (None, None) if self._a_rule_applies(form) else (form, limit)

    def _is_independent(self, form: Any, limit: Limit | None) -> bool:
        """Whether no assumption says that a comparison is true or false."""
        if not self._assumptions or self.for_types:
            return True
        values = None if limit is None else self._values_for(limit, False)
        if limit is None or values is None:
            return not self._are_assumed(variables_of(form), False)
        return values[0] <= values[1] and limit.truth(values) is None

    # --- truth --------------------------------------------------------------------------------------------------------

    def decided(self, condition: Any) -> tuple[Any, bool | None]:
        """A condition in simplest form, and whether it is known to be true or false here."""
        if type(condition) in ESTABLISHES:
            settled, limit = self._settled_comparison(condition)
            if limit is not None:
                values = self._values_for(limit, True)
                if values is not None and limit.truth(values) is None and values[0] <= values[1]:
                    return settled, None
        condition = self._rewrite_leaf(condition)
        return condition, self.truth(condition)

    def truth(self, condition: Any) -> bool | None:
        """Whether a (simplified) condition is known to be true or false here."""
        cls = type(condition)
        if cls in CONSTANTS:
            return bool(condition.value)
        if cls not in OPERATORS and condition not in self._values:
            return None
        limit = self._limit(condition)
        if limit is not None:
            values = self._values_for(limit, True)
            if values is not None:
                return limit.truth(values)
        try:
            known = self._known_truth(condition)
        except ValueError:
            return None
        return None if known is None or has_effects(condition) else known

    def _known_truth(self, condition: Any) -> bool | None:
        if not self._assumptions and not self._values and against_constant(condition):
            return self._by_ranges(condition)
        expanded = self._expanded(condition)
        # Without assumptions a scalar has no facts but those of what it was assigned.
        forms = [condition, expanded] if self._assumptions and expanded is not condition else [expanded]
        forms = [self._analyzed(form) for form in forms]
        for form in forms:
            known = self.analyzer.truth(form)
            if known is not None:
                return known
        if not self._assumptions or not self._enter_about((*variables_of(condition), *variables_of(expanded)), True):
            return None
        for form in forms:
            form = self._analyzed(form)
            known = self.analyzer.truth(form)
            if known is None and not is_simple(form) and self._branches:
                known = self._proved(form)
            if known is not None:
                return known
        return None

    def _by_ranges(self, condition: Any) -> bool | None:
        """The truth of a comparison with a constant, from the range of the other side."""
        known = order_of_ranges(self._range_of(condition.left), self._range_of(condition.right))
        return verdict_of(known, type(condition))

    def _proved(self, condition: Expr) -> bool | None:
        """With all that the analyzer can do."""
        if self.analyzer.truth(ConstBool(True)) is None:
            return None  # the assumptions contradict each other: nothing runs here
        if self.analyzer.can_prove(condition):
            return True
        return False if self.analyzer.can_prove(x.Not(condition, _BOOL)) else None

    # --- loops --------------------------------------------------------------------------------------------------------

    def trips(self, start: Any, stop: Any, step: Any) -> int | None:
        """0 or 1 if a loop with a positive step provably runs so often, otherwise None."""
        if type(start) is ConstInt and type(stop) is ConstInt and type(step) is ConstInt:
            if step.value < 1:
                return None
            return 0 if start.value >= stop.value else 1 if start.value + step.value >= stop.value else None
        if not (is_integer(start) and is_integer(stop) and is_integer(step)) or self._range_of(step)[0] < 1:
            return None
        entered = self.truth(x.Lt(start, stop, _BOOL))
        if not entered:
            return None if entered is None else 0
        after_one = x.Add(start, step, _INT64 if scalar_dtype(start) is not _INDEX else _INDEX)
        return 1 if self.truth(x.Le(stop, after_one, _BOOL)) else None


__all__ = ["CONSTANTS", "Scalars", "variables_of"]
