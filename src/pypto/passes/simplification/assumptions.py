"""Conditions that hold where an expression stands: of branches, and of the loops around it.

Nothing is made of an assumption until something depends on it. Comparisons of a variable with a constant, by far the
most, are kept as limits of that variable; others are entered into the analyzer.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

from ...arith.analyzer import Analyzer, ConstraintContext
from ...arith.bounds import EVERYTHING
from ...arith.structure import is_integer
from ...ir import expr as x
from ...ir.dtype import DataType
from ...ir.expr import ConstBool, Expr
from .facts import ScalarFacts
from .forms import is_informed, variables_of
from .limits import NO_HOLES, Limit, Values, limit_of

_BOOL = DataType.BOOL
_TRUE = ConstBool(True)

# A condition that holds in the region being rewritten, and whether it is negated; or a loop variable, which lies
# between the ends of its loop.
_Source = tuple[Any, bool, Any]


class _Assumption:
    """What was made of a source. Of a loop only comparisons learn: the range of its variable is known anyway."""

    __slots__ = ("before", "condition", "context", "limit", "loop_var", "variables")

    def __init__(self, loop_var: Any) -> None:
        self.loop_var = loop_var
        self.limit: Limit | None = None  # if that is all it says
        self.before: Values | None = None  # what was known of the variable of the limit
        self.variables: dict[Any, None] = {}  # what it mentions, if it says more
        self.condition: Expr | None = None
        self.context: ConstraintContext | Callable[[], None] | None = None

    def enter(self, analyzer: Analyzer, condition: Expr) -> None:
        """Let the analyzer know."""
        if self.loop_var is not None:
            self.context = analyzer.transitive_cmp.enter_constraint(condition)
            return
        try:
            self.context = analyzer.constraint_context(condition)
        except ValueError:  # it divides by zero: nothing to learn from it
            self.context = None

    def leave(self) -> None:
        """Let it forget."""
        if isinstance(self.context, ConstraintContext):
            self.context.exit_scope()
        elif self.context is not None:
            self.context()


class Assumptions(ScalarFacts):
    """What holds here, beside what holds everywhere."""

    def __init__(self, replaced: Mapping[Any, Any], reassigned: Container[Any]) -> None:
        super().__init__(replaced, reassigned)
        self._assumptions: list[_Source] = []
        self._noted: list[_Assumption] = []  # the first of them, of which the next three know
        self._limited: dict[Any, Values] = {}  # what comparisons with constants say of variables
        self._mentioned: dict[Any, int] = {}  # how many other conditions of branches mention a variable
        self._loop_mentioned: dict[Any, int] = {}  # the same for the ends of loops
        self._parts: dict[Any, list[Any]] = {}  # the variables in what was assigned
        self._limits: dict[Any, Limit | None] = {}  # conditions as limits
        self._entered = 0  # how many assumptions the analyzer knows
        self._entering = False
        self._branches = 0  # how many of them are conditions of branches

    @property
    def conditional(self) -> bool:
        """Whether this is a place that is only reached under a condition."""
        return self._branches > 0

    # --- assumptions --------------------------------------------------------------------------------------------------

    def assume(self, condition: Expr, negated: bool = False) -> None:
        """Until :meth:`leave`, the condition holds (or its negation)."""
        self._branches += 1
        self._assumptions.append((condition, negated, None))

    def assume_loop(self, var: Any) -> None:
        """Until :meth:`leave`, ``var`` lies between the ends of its loop."""
        self._assumptions.append((None, False, var))

    def leave(self) -> None:
        """End the latest assumption."""
        assumptions, noted = self._assumptions, self._noted
        if assumptions.pop()[2] is None:
            self._branches -= 1
        remaining = len(assumptions)
        if len(noted) > remaining:
            assumption = noted.pop()
            self._forget(assumption)
            if self._entered > remaining:
                self._entered = remaining
                assumption.leave()

    def _note(self) -> None:
        """Note which variables the assumptions are about."""
        assumptions, noted = self._assumptions, self._noted
        while len(noted) < len(assumptions):
            source, negated, loop_var = assumptions[len(noted)]
            assumption = _Assumption(loop_var)
            noted.append(assumption)
            limit = self._limit(source) if loop_var is None else None
            if limit is not None and limit.var not in self._values and limit.var not in self._reassigned:
                limit = limit.negated() if negated else limit
                assumption.limit = limit
                assumption.before = self._limited.get(limit.var)
                self._limited[limit.var] = limit.narrow(self._known_values(limit.var))
                continue
            assumption.variables = dict.fromkeys(variables_of(self._condition(len(noted) - 1)))
            counts = self._mentioned if loop_var is None else self._loop_mentioned
            for var in assumption.variables:
                counts[var] = counts.get(var, 0) + 1

    def _forget(self, assumption: _Assumption) -> None:
        """Take back what was noted of an assumption."""
        limit = assumption.limit
        if limit is not None:
            if assumption.before is None:
                del self._limited[limit.var]
            else:
                self._limited[limit.var] = assumption.before
            return
        counts = self._mentioned if assumption.loop_var is None else self._loop_mentioned
        for var in assumption.variables:
            if counts[var] == 1:
                del counts[var]
            else:
                counts[var] -= 1

    def _known_values(self, var: Any) -> Values:
        found = self._limited.get(var)
        if found is None:
            low, high = self.range(var) or EVERYTHING
            return low, high, NO_HOLES
        return found

    def _condition(self, position: int) -> Expr:
        """The condition of a noted assumption, as the analyzer gets it."""
        assumption = self._noted[position]
        if assumption.condition is None:
            source, negated, loop_var = self._assumptions[position]
            if loop_var is None:
                assumption.condition = self._assumed(source, negated)
            else:
                assumption.condition = self._within_loop(loop_var)
        return assumption.condition

    def _assumed(self, condition: Expr, negated: bool) -> Expr:
        if self._is_unstable(condition):
            return _TRUE
        if negated:
            condition = x.Not(condition, _BOOL)
        expanded = self._expanded(condition)
        return condition if expanded is condition else x.And(condition, expanded, _BOOL)

    def _within_loop(self, var: Any) -> Expr:
        if var not in self._loops:
            return _TRUE
        start, stop, step = self._loops[var]
        low, high = self._range_of(step)
        if (low <= 0 <= high) or not (is_integer(var) and is_integer(start) and is_integer(stop)):
            return _TRUE
        first = x.Le(start, var, _BOOL) if low > 0 else x.Ge(start, var, _BOOL)
        last = x.Lt(var, stop, _BOOL) if low > 0 else x.Gt(var, stop, _BOOL)
        return self._assumed(x.And(first, last, _BOOL), False)

    def _enter_for(self, e: Any) -> None:
        """Let the analyzer know the assumptions, if one of them may matter for ``e``."""
        if self._entered == len(self._assumptions) or not is_informed(e):
            return
        # The expression is not rewritten yet, the assumptions are.
        replaced = self._replaced
        self._enter_about([replaced.get(var, var) for var in variables_of(e)], False)

    def _are_assumed(self, variables: Iterable[Any], loops: bool) -> bool:
        """Whether an assumption mentions one of the variables; the ends of loops only count for comparisons."""
        self._note()
        limited, mentioned, loop_mentioned = self._limited, self._mentioned, self._loop_mentioned
        return any(var in limited or var in mentioned or (loops and var in loop_mentioned) for var in variables)

    def _enter_about(self, variables: Iterable[Any], loops: bool) -> bool:
        """Enter the assumptions if one mentions one of the variables; whether that is so."""
        if not self._are_assumed(variables, loops):
            return False
        if not self._entering:
            self._entering = True  # a condition may read a tensor at a place that is simplified on the way
            for position in range(self._entered, len(self._noted)):
                self._noted[position].enter(self.analyzer, self._condition(position))
            self._entered = len(self._noted)
            self._entering = False
        return True

    # --- comparisons with constants -----------------------------------------------------------------------------------

    def _limit(self, condition: Any) -> Limit | None:
        """A condition as a limit; None if it is none."""
        limits = self._limits
        if condition not in limits:
            limits[condition] = limit_of(condition)
        return limits[condition]

    def _values_for(self, limit: Limit, loops: bool) -> Values | None:
        """The values of the limited variable; None if the range and other limits may not be all that is known."""
        var = limit.var
        if self._assumptions:
            self._note()
            if var in self._mentioned or (loops and var in self._loop_mentioned):
                return None
        if var in self._values:
            # By a value of one step the range says all. What its variables were assigned may say more.
            parts = self._parts.get(var)
            if parts is None:
                parts = self._parts[var] = variables_of(self._values[var])
            for part in parts:
                if part in self._values or part in self._reassigned:
                    return None
            if self._assumptions and self._are_assumed(parts, loops):
                return None
        return self._known_values(var)


__all__ = ["Assumptions"]
