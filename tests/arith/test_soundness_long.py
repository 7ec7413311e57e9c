"""Random expressions: what the analyzers say holds for the values of the variables."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pypto.arith import (
    Analyzer,
    CanonicalSimplifier,
    CompareResult,
    ConstIntBound,
    ConstIntBoundAnalyzer,
    IntSetAnalyzer,
    ModularSet,
    ModularSetAnalyzer,
    RewriteSimplifier,
    TransitiveComparisonAnalyzer,
    fold_const,
)
from pypto.arith.prove import prove_eq, prove_ge0, prove_le, prove_lt, simplify
from pypto.ir import expr as x
from pypto.ir import scalar as s
from pypto.ir.dtype import DataType

from .expressions import VARIABLES, Undefined, assignments, comparisons, conditions, const, integers, value_of

INF = ConstIntBound.kPosInf
relaxed = settings(
    max_examples=6000, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)
anything = st.one_of(integers, conditions)


def worth(e: Any, values: dict[Any, int]) -> Any:
    try:
        return value_of(e, values)
    except Undefined:
        assume(False)


def attempt(action: Any, *args: Any) -> Any:
    """A division by a constant zero is the user's error, and reported."""
    try:
        return action(*args)
    except ValueError as error:
        assert "by zero" in str(error)
        assume(False)


def around(values: dict[Any, int], spread: int = 3) -> dict[Any, tuple[int, int]]:
    """Ranges that contain the values; of different widths, so that rules fire."""
    return {v: (n - abs(n) % spread, n + (abs(n) + i) % spread) for i, (v, n) in enumerate(values.items())}


def informed(values: dict[Any, int]) -> Analyzer:
    analyzer = Analyzer()
    for i, (v, (low, high)) in enumerate(around(values).items()):
        if i % 2 == 0:
            analyzer.bind(v, low, high + 1)
        else:
            coeff = (2, 3, 4, 8)[abs(values[v]) % 4]
            analyzer.modular_set.update(v, ModularSet(coeff, values[v]))
    return analyzer


@relaxed
@given(anything, assignments)
def test_rewriting_keeps_value_and_dtype(e: Any, values: dict[Any, int]) -> None:
    before = worth(e, values)
    result = attempt(RewriteSimplifier(), e)
    assert value_of(result, values) == before
    assert result.type == e.type


@relaxed
@given(anything, assignments)
def test_canonical_form_keeps_value_and_dtype(e: Any, values: dict[Any, int]) -> None:
    before = worth(e, values)
    result = attempt(CanonicalSimplifier(), e)
    assert value_of(result, values) == before
    assert result.type == e.type


@relaxed
@given(anything, assignments)
def test_simplifying_with_knowledge_keeps_the_value(e: Any, values: dict[Any, int]) -> None:
    before = worth(e, values)
    result = attempt(informed(values).simplify, e)
    assert value_of(result, values) == before
    assert result.type == e.type


@relaxed
@given(anything)
def test_simplifying_again_changes_nothing(e: Any) -> None:
    for simplifier in (RewriteSimplifier(), Analyzer().simplify):
        once = attempt(simplifier, e)
        again = attempt(simplifier, once)
        assert again is once, f"{e} -> {once} -> {again}"


@relaxed
@given(anything, assignments)
def test_folding_keeps_the_value(e: Any, values: dict[Any, int]) -> None:
    before = worth(e, values)
    result = attempt(fold_const, e)
    if result is not None:
        assert value_of(result, values) == before


@relaxed
@given(anything, assignments)
def test_bounds_contain_the_value(e: Any, values: dict[Any, int]) -> None:
    value = worth(e, values)
    analyzer = ConstIntBoundAnalyzer()
    for v, (low, high) in around(values).items():
        analyzer.bind(v, low, high + 1)
    bound = analyzer(e)
    assert bound.min_value <= value <= bound.max_value
    bound = ConstIntBoundAnalyzer()(e)
    assert bound.min_value <= value <= bound.max_value


@relaxed
@given(integers, assignments, st.integers(1, 12))
def test_modular_sets_contain_the_value(e: Any, values: dict[Any, int], coeff: int) -> None:
    value = worth(e, values)
    analyzer = ModularSetAnalyzer()
    for i, v in enumerate(VARIABLES):
        analyzer.update(v, ModularSet(coeff * (i % 3), values[v]))
    found = analyzer(e)
    assert found.coeff >= 0
    gap = value - found.base
    assert gap % found.coeff == 0 if found.coeff else gap == 0


@relaxed
@given(integers, assignments)
def test_intervals_contain_the_value(e: Any, values: dict[Any, int]) -> None:
    value = worth(e, values)
    for analyzer in (IntSetAnalyzer(), Analyzer().int_set):
        for i, v in enumerate(VARIABLES[:3]):
            # Symbolic ends: v lies between n - a and n + b.
            low = s.sub(VARIABLES[3], const(values[VARIABLES[3]] - values[v] + i, DataType.INDEX))
            high = s.add(VARIABLES[3], const(values[v] - values[VARIABLES[3]] + 1, DataType.INDEX))
            analyzer.bind(v, low, high)
        found = attempt(analyzer, e)
        try:
            assert found.min_value is None or value_of(found.min_value, values) <= value
            assert found.max_value is None or value <= value_of(found.max_value, values)
        except Undefined:
            assume(False)


_OPPOSITE = {x.Eq: x.Ne, x.Ne: x.Eq, x.Lt: x.Ge, x.Le: x.Gt, x.Gt: x.Le, x.Ge: x.Lt}


def made_true(e: Any, values: dict[Any, int]) -> Any:
    """``e`` or its negation, whichever is true."""
    if worth(e, values):
        return e
    if type(e) in _OPPOSITE:
        return _OPPOSITE[type(e)](e.left, e.right, DataType.BOOL)
    return s.not_(e)


@relaxed
@given(st.lists(conditions, max_size=4), conditions, assignments)
def test_what_is_proved_under_true_constraints_is_true(facts: list[Any], goal: Any, values: dict[Any, int]) -> None:
    truth = worth(goal, values)
    analyzer = informed(values)
    before = attempt(analyzer.can_prove, goal)
    contexts = [attempt(analyzer.constraint_context, made_true(fact, values)) for fact in facts]
    proved = attempt(analyzer.can_prove, goal)
    refuted = attempt(analyzer.can_prove, s.not_(goal))
    simplified = attempt(analyzer.simplify, goal)
    assert not (proved and not truth)
    assert not (refuted and truth)
    assert value_of(simplified, values) == truth
    for context in reversed(contexts):
        context.exit_scope()
    assert analyzer.can_prove(goal) == before


@relaxed
@given(
    st.lists(comparisons, min_size=1, max_size=6),
    integers,
    integers,
    assignments,
    st.booleans(),
)
def test_transitive_comparison_agrees_with_the_values(
    facts: list[Any], a: Any, b: Any, values: dict[Any, int], chains: bool
) -> None:
    p, q = worth(a, values), worth(b, values)
    analyzer = TransitiveComparisonAnalyzer()
    for fact in facts:
        analyzer.enter_constraint(made_true(fact, values))
    for left, right, u, v in ((a, b, p, q), (VARIABLES[0], VARIABLES[1], values[VARIABLES[0]], values[VARIABLES[1]])):
        truth = CompareResult.kEQ if u == v else CompareResult.kLT if u < v else CompareResult.kGT
        assert truth & analyzer.try_compare(left, right, chains) == truth


@relaxed
@given(integers, integers, assignments)
def test_quick_proofs_agree_with_the_values(a: Any, b: Any, values: dict[Any, int]) -> None:
    p, q = worth(a, values), worth(b, values)
    for answer, truth in (
        (prove_eq(a, b), p == q),
        (prove_le(a, b), p <= q),
        (prove_lt(a, b), p < q),
        (prove_ge0(a), p >= 0),
        (prove_eq(a, attempt(RewriteSimplifier(), a)), True),
        (prove_le(s.min_(a, b), a), True),
    ):
        assert answer is None or answer is truth
    assert value_of(attempt(simplify, a), values) == p
