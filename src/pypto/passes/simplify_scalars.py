"""Scalar expressions of a function under rewriting: what is known where, simplification, and truth of conditions."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from typing import Any

from ..arith.analyzer import Analyzer, ConstraintContext, order_of_ranges
from ..arith.bounds import EVERYTHING, INF, dtype_range
from ..arith.compare import ESTABLISHES
from ..arith.fold import fold_const
from ..arith.leaves import Leaves
from ..arith.rewrite.simplifier import RULES
from ..arith.structure import Interner, is_integer, operands, post_order, scalar_dtype
from ..ir import expr as x
from ..ir.dtype import DataType
from ..ir.expr import BinaryExpr, ConstBool, ConstFloat, ConstInt, Expr, GlobalVar, IterArg, UnaryExpr, Var
from ..ops.registry import REGISTRY

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


class _Assumption:
    """A condition that holds in the region being rewritten. Nothing is made of it until something depends on it."""

    __slots__ = ("condition", "context", "loop", "make", "variables")

    def __init__(self, make: Callable[[], Expr], loop: bool) -> None:
        self.make = make
        self.loop = loop  # the range of a loop variable is known anyway: only comparisons need it
        self.condition: Expr | None = None
        self.variables: dict[Any, None] = {}
        self.context: ConstraintContext | Callable[[], None] | None = None

    def prepare(self) -> None:
        """Make the condition."""
        if self.condition is None:
            self.condition = self.make()
            self.variables = variables_of(self.condition)

    def enter(self, analyzer: Analyzer) -> None:
        """Let the analyzer know."""
        assert self.condition is not None
        if self.loop:
            self.context = analyzer.transitive_cmp.enter_constraint(self.condition)
            return
        try:
            self.context = analyzer.constraint_context(self.condition)
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
        self._opened: set[Any] = set()  # variables whose facts were asked for
        self._assumptions: list[_Assumption] = []
        self._entered = 0  # how many of them the analyzer knows
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
        self.range(e)
        return self._residues.get(e)

    def _found_range(self, e: Any) -> tuple[int, int]:
        if e in self._opened:
            return EVERYTHING  # before SSA form, names of one iteration may go round in the next
        if e in self._values or e in self._loops:
            return self._resolved(e)
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
        if self._is_settled(e, 0):
            return e
        if self._assumptions and not self.for_types:
            self._enter_for(e)
        try:
            new = self._analyzed(e)
        except ValueError:  # a division by a constant zero: whoever runs it gets the error, and nobody else
            new = self.substituted(e)
        if new is e:
            return e
        if _has_effects(e):  # nothing may be dropped
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
        if not (self._is_settled(left, depth) and self._is_settled(right, depth)):
            return False
        rules = self.analyzer.rewrite_simplify
        for rule in RULES.candidates(e):  # noqa: SIM110  (a loop is faster here)
            if rule(rules, e) is not None:
                return False
        return True

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

    def _resolved(self, root: Any) -> tuple[int, int]:
        """The range of an assigned or loop variable, by what holds everywhere.

        Long chains of variables are followed without recursion: what a value depends on comes first.
        """
        waiting = [root]
        opened = self._opened
        while waiting:
            var = waiting[-1]
            if var in self._ranges:
                waiting.pop()
                continue
            parts = (self._values[var],) if var in self._values else self._loops[var]
            if var not in opened:
                opened.add(var)
                for part in parts:
                    waiting += [v for v in variables_of(part) if (v in self._values or v in self._loops)]
                continue
            self._ranges[var], self._residues[var] = (
                self._assigned_facts(var, *parts) if len(parts) == 1 else self._loop_facts(*parts)
            )
        return self._ranges[root]

    def _assigned_facts(self, var: Any, value: Any) -> tuple[tuple[int, int], tuple[int, int]]:
        dtype = scalar_dtype(var)
        if dtype is None or not dtype.is_int_ or not is_integer(value):
            return EVERYTHING, _ANY_RESIDUE
        return self._facts_of(value)

    def _loop_facts(self, start: Any, stop: Any, step: Any) -> tuple[tuple[int, int], tuple[int, int]]:
        first, residue = self._facts_of(start)
        bound, stride = self._facts_of(stop)[0], self._facts_of(step)[0]
        low, high = _loop_range(first, bound, stride)
        if low > high:  # never runs
            return EVERYTHING, _ANY_RESIDUE
        if stride[0] != stride[1]:
            return (low, high), _ANY_RESIDUE
        if first[0] == first[1] and bound[0] == bound[1] and stride[0] > 0:
            high = first[0] + (bound[0] - first[0] - 1) // stride[0] * stride[0]
        coeff = math.gcd(residue[0], stride[0])
        return (low, high), (coeff, residue[1] % coeff if coeff else residue[1])

    def _facts_of(self, e: Any) -> tuple[tuple[int, int], tuple[int, int]]:
        """Range and residue of an expression, by what holds everywhere."""
        if type(e) is ConstInt:
            return (e.value, e.value), (0, e.value)
        outer, self.for_types = self.for_types, True
        try:
            form = self._analyzed(e) if self._wrapping else e
            analyzer = self._rules()
        except ValueError:
            return EVERYTHING, _ANY_RESIDUE
        finally:
            self.for_types = outer
        return analyzer.range_of(form), analyzer.residue_of(form)

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
        self._assumptions.append(_Assumption(lambda: self._assumed(condition, negated), False))

    def assume_loop(self, var: Any) -> None:
        """Until :meth:`leave`, ``var`` lies between the ends of its loop."""
        self._assumptions.append(_Assumption(lambda: self._within_loop(var), True))

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

    def leave(self) -> None:
        """End the latest assumption."""
        assumption = self._assumptions.pop()
        self._branches -= not assumption.loop
        if self._entered > len(self._assumptions):
            self._entered -= 1
            assumption.leave()

    def _is_unstable(self, e: Any) -> bool:
        """Whether an expression may mean something else later on."""
        return bool(self._reassigned) and any(var in self._reassigned for var in variables_of(e))

    def _enter_for(self, e: Any) -> None:
        """Let the analyzer know the assumptions, if one of them may matter for ``e``."""
        if self._entered == len(self._assumptions) or not _is_informed(e):
            return
        # The expression is not rewritten yet, the assumptions are.
        self._enter_about({self._replaced.get(var, var): None for var in variables_of(e)}, False)

    def _enter_about(self, variables: dict[Any, None], loops: bool) -> bool:
        """Enter the assumptions if one is connected with the variables; loops only count for comparisons."""
        reached = set(variables)
        waiting = [a for a in self._assumptions if loops or not a.loop]
        for assumption in waiting:
            assumption.prepare()
        found = False
        while True:
            near = [a for a in waiting if not reached.isdisjoint(a.variables)]
            if not near:
                break
            found = True
            waiting = [a for a in waiting if a not in near]
            for assumption in near:
                reached.update(assumption.variables)
        if found and not self._entering:
            self._entering = True  # a condition may read a tensor at a place that is simplified on the way
            for assumption in self._assumptions[self._entered :]:
                assumption.prepare()
                assumption.enter(self.analyzer)
            self._entered = len(self._assumptions)
            self._entering = False
        return found

    # --- truth --------------------------------------------------------------------------------------------------------

    def truth(self, condition: Any) -> bool | None:
        """Whether a (simplified) condition is known to be true or false here."""
        if type(condition) in CONSTANTS:
            return bool(condition.value)
        if type(condition) not in _OPERATORS and condition not in self._values:
            return None
        try:
            known = self._known_truth(condition)
        except ValueError:
            return None
        return None if known is None or _has_effects(condition) else known

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
        variables = {**variables_of(condition), **variables_of(expanded)}
        if not self._assumptions or not self._enter_about(variables, True):
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
        wanted = ESTABLISHES[type(condition)]
        return True if known & wanted == known else None if known & wanted else False

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


def _nodes_of(e: Any) -> list[Any]:
    """The operators and leaves of an expression, operands first; what is in a call does not count."""
    seen: dict[Any, None] = {}
    post_order(e, seen, lambda node: seen.setdefault(node))
    return list(seen)


def variables_of(e: Any) -> dict[Any, None]:
    """The variables among the leaves of an expression, as keys."""
    return {node: None for node in _nodes_of(e) if type(node) in _VARIABLES}


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


def _has_effects(e: Any) -> bool:
    """Whether a scalar expression contains a launch or a call that changes something."""
    return any(type(node) in _CALLS and not _is_pure(node) for node in _nodes_of(e))


def _is_pure(e: Any) -> bool:
    if type(e) is x.Submit or type(e.op) is GlobalVar:
        return False
    definition = REGISTRY.get(e.op.name)
    return definition is not None and definition.pure


def _rebuilt(e: Any, parts: list[Any]) -> Any:
    if isinstance(e, BinaryExpr):
        left, right = parts
        return e if left is e.left and right is e.right else e.replace(left=left, right=right)
    assert isinstance(e, UnaryExpr)
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
