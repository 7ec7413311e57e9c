"""Scalar expressions of a function under rewriting: what is known where, simplification, and truth of conditions."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

from ...analysis.purity import has_effects
from ...arith.analyzer import Analyzer, ConstraintContext, order_of_ranges, verdict_of
from ...arith.bounds import EVERYTHING, INF, dtype_range
from ...arith.compare import ESTABLISHES
from ...arith.fold import fold_const
from ...arith.leaves import Leaves
from ...arith.rewrite.simplifier import RULES
from ...arith.structure import Interner, is_integer, operands, post_order, scalar_dtype
from ...ir import expr as x
from ...ir.dtype import DataType
from ...ir.expr import ConstBool, ConstFloat, ConstInt, Expr, IterArg, Var
from .limits import NO_HOLES, Limit, Values, limit_of

_INDEX, _INT64, _BOOL = DataType.INDEX, DataType.INT64, DataType.BOOL
CONSTANTS = frozenset((ConstInt, ConstFloat, ConstBool))
_VARIABLES = frozenset((Var, IterArg))
_CALLS = frozenset((x.Call, x.Submit))
_OPERATORS = frozenset((*x.BINARY_CLASSES, *x.UNARY_CLASSES))
# Rules for sums and products match shapes only; for the others it counts what is known of the operands.
_SHAPE_ONLY = frozenset((x.Add, x.Sub, x.Mul))
_BLIND = frozenset((*_SHAPE_ONLY, x.Neg, x.Cast))
# Results that can't be negative, beside the extents of tensors.
_COUNTS = frozenset(
    f"{level}.{name}"
    for level in ("tensor", "tile")
    for name in ("dim", "get_block_idx", "get_block_num", "get_subblock_idx")
) | {"pld.system.world_size", "pld.system.rank", "pld.system.nranks"}

_ANY_RESIDUE = (1, 0)
_TRUE = ConstBool(True)
_FIXPOINT_STEPS = 8
_FAST_DEPTH = 12  # how deep the quick look into an expression goes
_EXPANSION = 64  # how large a condition may become when variables are replaced by what they were assigned
_EXPANSION_ROUNDS = 3
# Comparisons that are turned round, and what they become.
_TURNED: dict[type, type[x.BinaryExpr]] = {x.Gt: x.Lt, x.Ge: x.Le}


_Fact = tuple[int, int]  # a range or a residue

# A condition that holds in the region being rewritten, and whether it is negated; or a loop variable, which lies
# between the ends of its loop. Nothing is made of it until something depends on it.
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


class Scalars(Leaves):
    """Knows facts about the scalars of one function.

    ``rewrite_leaf`` rewrites what is no operator; ``replaced`` are the variables for which something else stands;
    nothing is remembered of ``reassigned`` variables.

    Arithmetic that may wrap (integers narrower than INDEX and INT64) is folded where it is constant and never
    rearranged: the analyzer sees a variable of its own in its place.
    """

    def __init__(
        self, rewrite_leaf: Callable[[Any], Any], replaced: Mapping[Any, Any], reassigned: Container[Any]
    ) -> None:
        self._rewrite_leaf = rewrite_leaf
        self._replaced = replaced
        self._reassigned = reassigned
        self._values: dict[Any, Expr] = {}  # what was assigned to scalars
        self._loops: dict[Any, tuple[Expr, Expr, Expr]] = {}  # start, stop and step of loop variables
        self._ranges: dict[Any, tuple[int, int]] = {}  # found when first asked for
        self._residues: dict[Any, tuple[int, int]] = {}
        self._opened_ranges: set[Any] = set()  # variables whose ranges were asked for
        self._opened_residues: set[Any] = set()
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
        self._analyzer: Analyzer | None = None
        self._outside: Analyzer | None = None  # knows no assumptions: for types
        self.for_types = False  # whether what is being rewritten decides a type
        self._wrapping: dict[Any, Expr] = {}  # stand-in -> arithmetic that may wrap
        self._stand_ins: dict[int, Var] = {}
        self._interner = Interner()

    @property
    def analyzer(self) -> Analyzer:
        """The analyzer with the assumptions entered so far."""
        if self._analyzer is None:
            self._analyzer = Analyzer(self)
        return self._analyzer

    @property
    def conditional(self) -> bool:
        """Whether this is a place that is only reached under a condition."""
        return self._branches > 0

    # --- what the analyzers ask ---------------------------------------------------------------------------------------

    def is_opaque(self, e: Any) -> bool:
        """Floats, and arithmetic that may wrap."""
        dtype = e.type.dtype
        if dtype is _INDEX or dtype is _INT64 or dtype is _BOOL:
            return False
        return not (type(e) is x.Cast and dtype.is_int_)

    def rewrite(self, e: Any) -> Any:
        if type(e) in _OPERATORS:
            new = self._with_operands(e)
            return self._stand_in(new) if type(new) in _OPERATORS and is_integer(new) else new
        return self._rewrite_leaf(e)

    def range(self, e: Any) -> tuple[int, int] | None:
        found = self._ranges.get(e)
        if found is None:
            found = self._ranges[e] = self._found_range(e)
        return found

    def residue(self, e: Any) -> tuple[int, int] | None:
        found = self._residues.get(e)
        if found is None and (e in self._values or e in self._loops):
            found = self._residues[e] = self._resolved(e, self._residues, self._opened_residues, self._found_residue)
        return found

    def _found_range(self, e: Any) -> tuple[int, int]:
        if e in self._values or e in self._loops:
            return self._resolved(e, self._ranges, self._opened_ranges, self._assigned_range)
        if type(e) is x.Call and e.op.name in _COUNTS:
            return 0, INF
        dtype = scalar_dtype(e)
        # An INDEX may be a difference: only what is known to be a position or an extent is never negative.
        return EVERYTHING if dtype is None or dtype is _INDEX else dtype_range(dtype)

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
            return operands(e) if type(e) in _OPERATORS and (not fold or self.is_opaque(e)) else ()

        def visit(e: Any) -> None:
            parts = inside(e)
            if not parts:
                done[e] = self._analyzed(e) if fold and type(e) in _OPERATORS else self.rewrite(e)
                return
            new = _rebuilt(e, [done[part] for part in parts])
            if fold and is_integer(new):
                new = _folded(new) or new
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
        if type(new) not in _VARIABLES and not new.span.is_valid() and e.span.is_valid():
            new = new.replace(span=e.span)
        return new

    def substituted(self, e: Any) -> Any:
        """The expression with its leaves rewritten, but every operator kept."""
        return self._with_operands(e, fold=False) if type(e) in _OPERATORS else self._rewrite_leaf(e)

    def _analyzed(self, e: Any) -> Any:
        """Simplified, with stand-ins."""
        rewrite = self._rules().rewrite_simplify
        for _ in range(_FIXPOINT_STEPS):
            new = rewrite(e)
            if new is e:
                break
            e = new
        return e

    def _rules(self) -> Analyzer:
        if not self.for_types or not self._entered:
            return self.analyzer
        # Types must stay equal in and outside of a branch, so they are simplified by what holds everywhere.
        if self._outside is None:
            self._outside = Analyzer(self)
        return self._outside

    def _is_settled(self, e: Any, depth: int) -> bool:
        """A quick look: whether an expression is of variables, constants, sums and products, and no rule applies."""
        cls = type(e)
        if cls in _VARIABLES:
            return e not in self._replaced
        if cls is ConstInt:
            return True
        if cls not in _SHAPE_ONLY or depth > _FAST_DEPTH:
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
            if type(node) in _OPERATORS:
                done[node] = _rebuilt(node, [done[part] for part in operands(node)])
            else:
                hidden = self._wrapping.get(node)
                done[node] = node if hidden is None else self._shown(hidden)

        post_order(e, done, visit)
        return done[e]

    # --- facts --------------------------------------------------------------------------------------------------------

    def is_size(self, var: Any) -> None:
        """The variable is an extent, and so not negative."""
        self._ranges[var] = (0, INF)

    def define(self, var: Any, value: Expr) -> None:
        """``var`` was assigned ``value``, here and nowhere else."""
        self._values[var] = value

    def loop(self, var: Any, start: Expr, stop: Expr, step: Expr) -> None:
        """``var`` counts from ``start`` to ``stop``, here and nowhere else."""
        self._loops[var] = start, stop, step

    def _resolved(
        self, root: Any, known: dict[Any, _Fact], opened: set[Any], find: Callable[[Any], _Fact | None]
    ) -> _Fact:
        """The range or residue of an assigned or loop variable, by what holds everywhere.

        Long chains of variables are followed without recursion: what a value depends on comes first.
        """
        unknown = EVERYTHING if known is self._ranges else _ANY_RESIDUE
        if root in opened:
            return unknown  # before SSA form, names of one iteration may go round in the next
        waiting = [root]
        values, loops = self._values, self._loops
        while waiting:
            var = waiting[-1]
            if var in known:
                waiting.pop()
            elif var in opened:
                known[var] = find(var) or unknown
            else:
                opened.add(var)
                for part in (values[var],) if var in values else loops[var]:
                    waiting += [v for v in variables_of(part) if v in values or v in loops]
        return known[root]

    def _assigned_range(self, var: Any) -> tuple[int, int] | None:
        if var not in self._values:
            return self._loop_range(*self._loops[var])
        value = self._values[var]
        return self._analyzed_outside(value, Analyzer.range_of) if _is_counted(var, value) else None

    def _found_residue(self, var: Any) -> tuple[int, int] | None:
        if var not in self._values:
            return self._loop_residue(*self._loops[var])
        value = self._values[var]
        return self._analyzed_outside(value, Analyzer.residue_of) if _is_counted(var, value) else None

    def _loop_range(self, start: Any, stop: Any, step: Any) -> tuple[int, int] | None:
        first, bound, stride = (self._analyzed_outside(e, Analyzer.range_of) or EVERYTHING for e in (start, stop, step))
        low, high = _loop_range(first, bound, stride)
        if low > high:  # never runs
            return None
        if first[0] == first[1] and bound[0] == bound[1] and stride[0] == stride[1] > 0:
            high = first[0] + (bound[0] - first[0] - 1) // stride[0] * stride[0]
        return low, high

    def _loop_residue(self, start: Any, stop: Any, step: Any) -> tuple[int, int] | None:
        stride = self._analyzed_outside(step, Analyzer.range_of) or EVERYTHING
        if stride[0] != stride[1] or self._loop_range(start, stop, step) is None:
            return None
        residue = self._analyzed_outside(start, Analyzer.residue_of) or _ANY_RESIDUE
        coeff = math.gcd(residue[0], stride[0])
        return coeff, residue[1] % coeff if coeff else residue[1]

    def _analyzed_outside(self, e: Any, ask: Callable[[Analyzer, Any], _Fact]) -> _Fact | None:
        """What an analyzer says of an expression, by what holds everywhere."""
        outer, self.for_types = self.for_types, True
        try:
            form = self._analyzed(e) if self._wrapping else e
            return ask(self._rules(), form)
        except ValueError:
            return None
        finally:
            self.for_types = outer

    def _range_of(self, e: Expr) -> tuple[int, int]:
        if type(e) is ConstInt:
            return e.value, e.value
        return self.analyzer.range_of(self._analyzed(e) if self._wrapping else e)

    def forget_replacements(self) -> None:
        """Variables that stood for something no longer do."""
        for analyzer in (self._analyzer, self._outside):
            if analyzer is not None:
                analyzer.rewrite_simplify.forget()

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

    def _is_unstable(self, e: Any) -> bool:
        """Whether an expression may mean something else later on."""
        return bool(self._reassigned) and any(var in self._reassigned for var in variables_of(e))

    def _enter_for(self, e: Any) -> None:
        """Let the analyzer know the assumptions, if one of them may matter for ``e``."""
        if self._entered == len(self._assumptions) or not _is_informed(e):
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
        if cls not in _OPERATORS and condition not in self._values:
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
        if not self._assumptions and not self._values and _against_constant(condition):
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
            if known is None and not _is_simple(form) and self._branches:
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

    def _expanded(self, e: Any) -> Any:
        """Variables replaced by what they were assigned, a few times over, while the result stays small."""
        if not self._values:
            return e
        for _ in range(_EXPANSION_ROUNDS):
            done: dict[Any, Any] = {}

            def visit(node: Any, done: dict[Any, Any] = done) -> None:
                if type(node) in _OPERATORS:
                    done[node] = _rebuilt(node, [done[part] for part in operands(node)])
                else:
                    done[node] = self._meaning(node)

            post_order(e, done, visit)
            new = done[e]
            if new is e or len(done) > _EXPANSION:
                break
            e = new
        return e

    def _meaning(self, leaf: Any) -> Any:
        """What was assigned to a variable, if that can be computed again."""
        value = self._values.get(leaf)
        if value is None or not (type(value) in _OPERATORS or type(value) in _VARIABLES):
            return leaf
        return leaf if scalar_dtype(value) is not scalar_dtype(leaf) or self._is_unstable(value) else value

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


def _is_counted(var: Any, value: Any) -> bool:
    """Whether a variable and what was assigned to it are integers."""
    dtype = scalar_dtype(var)
    return dtype is not None and dtype.is_int_ and is_integer(value)


def _nodes_of(e: Any) -> list[Any]:
    """The operators and leaves of an expression; what is in a call does not count."""
    if type(e) not in _OPERATORS:
        return [e]
    seen = {e: None}
    stack = [e]
    while stack:
        for part in operands(stack.pop()):
            if part not in seen:
                seen[part] = None
                if type(part) in _OPERATORS:
                    stack.append(part)
    return list(seen)


def variables_of(e: Any) -> list[Any]:
    """The variables among the leaves of an expression."""
    return [node for node in _nodes_of(e) if type(node) in _VARIABLES]


def _is_informed(e: Any) -> bool:
    """Whether what is known of the operands may count for an expression."""
    return any(type(node) in _OPERATORS and type(node) not in _BLIND for node in _nodes_of(e))


def _is_simple(condition: Any) -> bool:
    """Whether a condition compares variables and constants up to constant distances: facts decide that alone."""
    for node in _nodes_of(condition):
        cls = type(node)
        if cls not in _OPERATORS or cls in x.COMPARISONS:
            continue
        if cls is not x.Add and cls is not x.Sub:
            return False
        if type(node.right) is not ConstInt:
            return False
    return True


def _against_constant(condition: Any) -> bool:
    if type(condition) not in ESTABLISHES or not (is_integer(condition.left) and is_integer(condition.right)):
        return False
    return type(condition.left) is ConstInt or type(condition.right) is ConstInt


def _rebuilt(e: Any, parts: list[Any]) -> Any:
    if len(parts) == 2:
        left, right = parts
        return e if left is e.left and right is e.right else e.replace(left=left, right=right)
    return e if parts[0] is e.operand else e.replace(operand=parts[0])


def _folded(e: Any) -> Any:
    """The constant (or operand) that an operator comes to, if it has the operator's dtype."""
    found = fold_const(e)
    return found if found is not None and scalar_dtype(found) is e.type.dtype else None


def _loop_range(first: tuple[int, int], bound: tuple[int, int], stride: tuple[int, int]) -> tuple[int, int]:
    """The values that a loop variable may take."""
    last = bound[1] if bound[1] == INF else bound[1] - 1
    after = bound[0] if bound[0] == -INF else bound[0] + 1
    if stride[0] > 0:
        return first[0], last
    if stride[1] < 0:
        return after, first[1]
    return min(first[0], after), max(first[1], last)


__all__ = ["CONSTANTS", "Scalars", "variables_of"]
