"""The examples of the specification, and its list of what must be better than it was."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import pypto.arith as arith
from pypto.arith import (
    Analyzer,
    CanonicalSimplifier,
    CompareResult,
    ConstIntBound,
    ConstIntBoundAnalyzer,
    ConstraintContext,
    IntSet,
    IntSetAnalyzer,
    ModularSet,
    ModularSetAnalyzer,
    RewriteSimplifier,
    TransitiveComparisonAnalyzer,
    extended_euclidean,
    floordiv,
    floormod,
    fold_const,
    gcd,
    lcm,
)
from pypto.arith.structure import Interner
from pypto.diag.errors import InternalError
from pypto.ir import expr as x
from pypto.ir import scalar as s
from pypto.ir.dtype import DataType
from pypto.ir.expr import ConstBool, ConstFloat, ConstInt

from .expressions import const, var

INF = ConstIntBound.kPosInf
X, Y, Z = var("x"), var("y"), var("z")
N, K = var("n", DataType.INDEX), var("k", DataType.INDEX)


def same(a: Any, b: Any) -> bool:
    """Structural equality."""
    return Interner().equal(a, b)


def cmp(cls: Any, a: Any, b: Any) -> Any:
    return cls(a if isinstance(a, x.Expr) else const(a), b if isinstance(b, x.Expr) else const(b), DataType.BOOL)


def op(cls: Any, a: Any, b: Any) -> Any:
    """A node of dtype INT64, ints as INT64 constants."""
    return cls(a if isinstance(a, x.Expr) else const(a), b if isinstance(b, x.Expr) else const(b), DataType.INT64)


def add(a: Any, b: Any) -> Any:
    return op(x.Add, a, b)


def sub(a: Any, b: Any) -> Any:
    return op(x.Sub, a, b)


def mul(a: Any, b: Any) -> Any:
    return op(x.Mul, a, b)


def div(a: Any, b: Any) -> Any:
    return op(x.FloorDiv, a, b)


def mod(a: Any, b: Any) -> Any:
    return op(x.FloorMod, a, b)


# --- helpers and folding ----------------------------------------------------------------------------------------------


def test_integer_helpers() -> None:
    assert (floordiv(-7, 2), floormod(-7, 2), floormod(7, -2)) == (-4, 1, -1)
    assert (gcd(0, 0), gcd(0, -6), gcd(12, 18), lcm(4, 6), lcm(0, 3)) == (0, 6, 6, 12, 0)
    assert extended_euclidean(12, 18) == (6, -1, 1)
    for a in range(-12, 13):
        for b in range(-12, 13):
            g, p, q = extended_euclidean(a, b)
            assert g == gcd(a, b) == a * p + b * q
    for bad in ((1, 0), (-(2**63), -1)):
        with pytest.raises(InternalError):
            floordiv(*bad)
    with pytest.raises(InternalError):
        floormod(1, 0)


def test_folding_of_identities() -> None:
    assert fold_const(add(X, 0)) is X
    assert fold_const(add(0, X)) is X
    assert fold_const(sub(X, 0)) is X
    assert fold_const(mul(X, 1)) is X
    assert fold_const(div(X, 1)) is X
    assert fold_const(mul(0, X)).value == 0  # type: ignore[union-attr]
    assert fold_const(mod(X, 1)).value == 0  # type: ignore[union-attr]
    assert fold_const(op(x.Pow, X, 1)) is X
    assert fold_const(op(x.Pow, X, 0)).value == 1  # type: ignore[union-attr]
    assert fold_const(op(x.Min, X, X)) is X
    for untouched in (div(0, X), mod(0, X), add(X, Y), sub(0, X), add(const(2**63 - 1), 1), op(x.BitShiftLeft, 1, 64)):
        assert fold_const(untouched) is None
    f = ConstFloat(0.0, DataType.FP32)
    assert fold_const(x.Mul(var("f", DataType.FP32), f, DataType.FP32)) is None
    assert fold_const(x.Add(f, const(1), DataType.FP32)) is None


def test_folding_of_constants() -> None:
    def value(e: Any) -> Any:
        return fold_const(e).value  # type: ignore[union-attr]

    assert value(div(-7, 2)) == -4
    assert value(mod(-7, 2)) == 1
    assert value(op(x.BitShiftLeft, 1, 63)) == -(2**63)
    assert value(op(x.BitShiftRight, -5, 1)) == -3
    assert value(op(x.Pow, 2, 10)) == 1024
    assert value(cmp(x.Lt, 1, 2)) is True
    assert value(x.FloatDiv(ConstFloat(-1.0, DataType.FP32), ConstFloat(0.0, DataType.FP32), DataType.FP32)) == -float(
        "inf"
    )
    t, f = ConstBool(True), ConstBool(False)
    b = var("b", DataType.BOOL)
    assert fold_const(s.and_(t, b)) is b
    assert fold_const(s.or_(b, t)) is t
    assert fold_const(s.and_(b, f)) is f
    assert fold_const(x.Neg(const(-(2**63)), DataType.INT64)) is None
    assert fold_const(x.BitNot(ConstInt(5, DataType.UINT8), DataType.UINT8)).value == 250  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("e", "words"),
    [
        (div(X, 0), "division by zero"),
        (mod(X, 0), "modulo by zero"),
        (div(-(2**63), -1), "overflow"),
        (op(x.Pow, 2, -1), "non-negative exponent"),
    ],
)
def test_folding_refuses(e: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        fold_const(e)


# --- rewriting --------------------------------------------------------------------------------------------------------

_REWRITES = [
    (div(mul(X, 10), 5), mul(X, 2)),
    (div(div(X, 6), 5), div(X, 30)),
    (div(add(X, 9), 3), add(div(X, 3), 3)),
    (mod(mul(X, 7), 4), mod(mul(X, 3), 4)),
    (sub(X, mul(div(X, 8), 8)), mod(X, 8)),
    (op(x.Min, add(X, 2), add(X, 9)), add(X, 2)),
    (mul(sub(X, Y), -4), mul(sub(Y, X), 4)),
    (cmp(x.Gt, add(X, Y), add(X, Z)), cmp(x.Lt, Z, Y)),
    (cmp(x.Lt, div(X, 4), 5), cmp(x.Lt, X, 20)),
    (add(X, X), mul(X, 2)),
    (add(5, X), add(X, 5)),
    (cmp(x.Ge, X, Y), cmp(x.Le, Y, X)),
    (s.not_(cmp(x.Lt, X, Y)), cmp(x.Le, Y, X)),
    (add(sub(X, 3), 5), add(X, 2)),
]


@pytest.mark.parametrize(("e", "expected"), _REWRITES, ids=[str(e) for e, _ in _REWRITES])
def test_rewrites(e: Any, expected: Any) -> None:
    assert same(RewriteSimplifier()(e), expected)
    assert same(Analyzer().simplify(e), expected)


@pytest.mark.parametrize("e", [div(X, X), mod(mul(X, Y), Y), add(X, Y), div(add(mul(X, Z), Y), Z)], ids=str)
def test_what_is_not_known_stays(e: Any) -> None:
    assert RewriteSimplifier()(e) is e
    assert Analyzer().simplify(e) is e


def test_floats_are_left_alone() -> None:
    f = var("f", DataType.FP32)
    e = x.Sub(x.Add(f, f, DataType.FP32), f, DataType.FP32)
    assert RewriteSimplifier()(e) is e
    # not (f < g) is no f >= g: both are false of NaN.
    g = var("g", DataType.FP32)
    assert type(RewriteSimplifier()(s.not_(cmp(x.Lt, f, g)))) is x.Not


def test_updates_substitute() -> None:
    for simplifier in (RewriteSimplifier(), CanonicalSimplifier()):
        simplifier.update(X, const(3))
        assert simplifier(add(X, 4)).value == 7  # type: ignore[attr-defined]
        simplifier.update(X, None)
        assert same(simplifier(add(X, 4)), add(X, 4))


def test_steps() -> None:
    e = add(X, 0)
    assert Analyzer().simplify(e, steps=0) is e
    with pytest.raises(ValueError):
        Analyzer().simplify(e, steps=-1)


def test_long_rewrites_reach_a_fixpoint() -> None:
    e: Any = X
    for i in range(40):
        e = op(x.Min, const(100 - i), e)  # each step moves a constant outwards
    assert same(Analyzer().simplify(e, steps=1), op(x.Min, X, 61))


def test_ranges_help_rewriting() -> None:
    analyzer = Analyzer()
    i, j = var("i"), var("j")
    zero = ConstInt(0, DataType.INDEX)
    assert analyzer.simplify(s.max_(N, zero)) is N
    assert analyzer.simplify(s.max_(zero, N)) is N
    analyzer.bind(i, 0, 8)
    assert analyzer.simplify(div(i, 8)).value == 0  # type: ignore[attr-defined]
    assert analyzer.simplify(mod(i, 8)) is i
    analyzer.unbind(i)
    assert same(analyzer.simplify(mod(i, 8)), mod(i, 8))
    analyzer.bind(i, 0, 4)
    analyzer.bind(j, 0, 16)
    flat = add(mul(i, 16), j)
    assert analyzer.simplify(div(flat, 16)) is i
    assert analyzer.simplify(mod(flat, 16)) is j


def test_casts_that_are_equal_cancel() -> None:
    narrow = var("n", DataType.INT32)
    e = sub(s.cast(narrow, DataType.INT64), sub(s.cast(narrow, DataType.INT64), 1))
    assert Analyzer().simplify(e).value == 1  # type: ignore[attr-defined]


# --- canonical form ---------------------------------------------------------------------------------------------------


def test_canonical_examples() -> None:
    simplify = CanonicalSimplifier()
    assert simplify(add(mul(div(X, 8), 8), mod(X, 8))) is X
    assert same(simplify(div(mul(div(X, 2), 3), 6)), div(X, 4))
    assert simplify(mod(add(add(mul(6, X), mul(9, Y)), 5), 3)).value == 2  # type: ignore[attr-defined]
    assert same(simplify(mul(2, add(X, 3))), add(mul(X, 2), 6))
    assert same(simplify(x.Neg(add(X, 3), DataType.INT64)), add(x.Neg(X, DataType.INT64), -3))
    both = simplify(cmp(x.Eq, add(X, 0), X))
    assert type(both) is x.Eq and both.left is X and both.right is X
    assert simplify.enter_constraint(cmp(x.Lt, X, Y)) is None


def test_canonical_terms_merge_when_their_indices_are_equal() -> None:
    # Two distinct objects for x * y.
    e = add(mul(div(mul(X, Y), 4), 4), mod(mul(X, Y), 4))
    assert same(CanonicalSimplifier()(e), mul(X, Y))


def test_canonical_coefficients_do_not_overflow() -> None:
    e: Any = X
    for _ in range(5):
        e = mul(add(e, Y), 2**30)
    result: Any = CanonicalSimplifier()(e)
    stack = [result]
    while stack:
        node = stack.pop()
        assert type(node) is not ConstInt or abs(node.value) < 2**63
        stack += [getattr(node, f) for f in ("left", "right", "operand") if hasattr(node, f)]


# --- bounds -----------------------------------------------------------------------------------------------------------


def test_bounds() -> None:
    bound = ConstIntBoundAnalyzer()
    assert bound(X).is_everything()
    assert bound(N) == ConstIntBound(0, INF)
    bound.bind(X, 0, 8)
    assert bound(add(mul(X, 2), 1)) == ConstIntBound(1, 15)
    assert bound(sub(0, X)) == ConstIntBound(-7, 0)
    assert bound(div(X, 3)) == ConstIntBound(0, 2)
    bound.update(X, ConstIntBound(-5, 5))
    assert bound(x.Abs(X, DataType.INT64)) == ConstIntBound(0, 5)
    assert bound(mod(X, 4)) == ConstIntBound(0, 3)
    bound.unbind(X)
    assert bound(X).is_everything()
    for bad in (lambda: bound.bind(X, 3, 3), lambda: bound.update(X, ConstIntBound(3, 2))):
        with pytest.raises(ValueError):
            bad()
    assert repr(ConstIntBound(-INF, 7)) == "ConstIntBound[-inf, 7]"
    assert repr(ConstIntBound(0, INF)) == "ConstIntBound[0, +inf]"
    assert not ConstIntBound(INF, INF).is_const()
    assert ConstIntBound(1, 4).is_positive() and ConstIntBound(0, 4).is_non_negative()


def test_infinities_stay_infinite() -> None:
    bound = ConstIntBoundAnalyzer()
    bound.update(Y, ConstIntBound(1, INF))
    assert bound(mod(X, Y)).max_value == INF
    assert bound(div(N, 7)).max_value == INF
    assert bound(div(X, 7)).min_value == -INF


def test_dtypes_bound_their_values() -> None:
    bound = ConstIntBoundAnalyzer()
    assert bound(var("u", DataType.UINT8)) == ConstIntBound(0, 255)
    assert bound(var("u", DataType.UINT64)) == ConstIntBound(0, INF)
    assert bound(var("i", DataType.INT16)) == ConstIntBound(-(2**15), 2**15 - 1)
    # A cast that may wrap gives all values of the type, not the part that fits.
    bound.bind(X, 100, 201)
    assert bound(s.cast(X, DataType.INT8)) == ConstIntBound(-128, 127)
    assert bound(s.cast(X, DataType.UINT8)) == ConstIntBound(100, 200)


# --- modular sets -----------------------------------------------------------------------------------------------------


def test_modular_sets() -> None:
    sets = ModularSetAnalyzer()
    assert sets(X).is_everything()
    assert sets(const(5)).is_exact()
    sets.update(X, ModularSet(4, 1))
    assert sets(add(X, 2)) == ModularSet(4, 3)
    assert sets(mul(X, 2)) == ModularSet(8, 2)
    assert sets(div(mul(X, 2), 2)) == ModularSet(4, 1)
    assert sets(op(x.Min, const(3), const(7))) == ModularSet(4, 3)
    assert sets(mod(7, 4)) == ModularSet(0, 3)
    assert sets(s.cast(X, DataType.INT8)).is_everything()
    assert sets(div(X, -4)) == ModularSet(1, 0)
    with pytest.raises(ValueError, match="non-negative"):
        sets.update(X, ModularSet(-4, 1))
    assert ModularSet(-4, 9).coeff == -4 and ModularSet(-4, 9).base == 9
    assert repr(ModularSet(4, 1)) == "ModularSet(coeff=4, base=1)"


def test_modular_constraints() -> None:
    sets = ModularSetAnalyzer()
    leave = sets.enter_constraint(cmp(x.Eq, mod(X, 6), 2))
    assert leave is not None
    assert sets(X) == ModularSet(6, 2) and sets(add(X, 4)) == ModularSet(6, 0)
    inner = sets.enter_constraint(cmp(x.Eq, 3, mod(X, 4)))
    assert sets(X).is_everything()  # 2 modulo 6 is even
    inner()  # type: ignore[misc]
    inner = sets.enter_constraint(cmp(x.Eq, mod(X, 5), 3))
    assert sets(X) == ModularSet(30, 8)
    inner()  # type: ignore[misc]
    leave()
    assert sets(X).is_everything()
    assert sets.enter_constraint(cmp(x.Lt, X, 3)) is None


def test_modular_facts_help_rewriting() -> None:
    analyzer = Analyzer()
    i = var("i")
    analyzer.modular_set.update(X, ModularSet(8, 0))
    analyzer.bind(i, 0, 4)
    assert analyzer.simplify(mod(X, 4)).value == 0  # type: ignore[attr-defined]
    assert same(analyzer.simplify(div(add(X, i), 4)), div(X, 4))
    assert analyzer.simplify(mod(add(X, i), 4)) is i
    assert analyzer.simplify(mul(div(X, 8), 8)) is X


# --- comparison and intervals -----------------------------------------------------------------------------------------


def test_compare_result_bits() -> None:
    assert [r.value for r in CompareResult] and CompareResult.kLE == CompareResult.kEQ | CompareResult.kLT
    values = {name: getattr(CompareResult, name).value for name in CompareResult.__members__}
    assert values == {
        "kInconsistent": 0,
        "kEQ": 1,
        "kLT": 2,
        "kLE": 3,
        "kGT": 4,
        "kGE": 5,
        "kNE": 6,
        "kUnknown": 7,
    }


def test_transitive_comparison() -> None:
    t = TransitiveComparisonAnalyzer()
    t.bind(X, add(Y, 2))
    assert t.try_compare(X, Y) == CompareResult.kGT
    assert t.try_compare(X, add(Y, 2)) == CompareResult.kEQ
    leave = t.enter_constraint(cmp(x.Le, Y, Z))
    assert t.try_compare(Y, Z) == CompareResult.kLE
    assert t.try_compare(X, Z) == CompareResult.kUnknown
    assert t.try_compare(X, add(Z, 2)) == CompareResult.kLE
    assert t.try_compare(X, add(Z, 2), propagate_inequalities=False) == CompareResult.kUnknown
    leave()
    assert t.try_compare(X, add(Z, 2)) == CompareResult.kUnknown
    t.unbind(X)
    assert t.try_compare(X, Y) == CompareResult.kUnknown
    t.bind(X, 2, 5)
    assert t.try_compare(X, const(5)) == CompareResult.kLT
    assert t.try_compare(X, const(1)) == CompareResult.kGT
    assert t.try_compare(X, const(4)) == CompareResult.kLE
    t.enter_constraint(cmp(x.Gt, X, 9))
    assert t.try_compare(X, const(6)) == CompareResult.kInconsistent
    assert t.try_compare(const(3), const(4)) == CompareResult.kLT


def test_inequality_passes_through_equalities() -> None:
    t = TransitiveComparisonAnalyzer()
    t.bind(X, add(Y, 1))
    t.enter_constraint(cmp(x.Ne, Y, Z))
    assert t.try_compare(X, add(Z, 1)) == CompareResult.kNE
    assert t.try_compare(X, add(Z, 2)) == CompareResult.kUnknown


def test_transitive_keys_are_structural() -> None:
    t = TransitiveComparisonAnalyzer()
    t.enter_constraint(cmp(x.Lt, X, mul(N, 2)))
    assert t.try_compare(X, mul(N, 2)) == CompareResult.kLT


def test_symbolic_intervals() -> None:
    sets = IntSetAnalyzer()
    e = add(X, Y)
    assert sets(e).is_single_point() and sets(e).min_value is e
    sets.bind(X, const(0), Z)
    found = sets(add(X, 1))
    assert same(found.min_value, const(1)) and same(found.max_value, add(sub(Z, 1), 1))
    assert same(sets(mul(X, -2)).max_value, const(0))
    assert sets(mul(X, Y)).is_everything()
    low_high = sets(mod(X, 8))
    assert (low_high.min_value.value, low_high.max_value.value) == (0, 7)  # type: ignore[union-attr]
    sets.update(X, IntSet.everything())
    assert sets(X).is_everything() and not sets(X).is_nothing()
    leave = sets.enter_constraint(cmp(x.Gt, Z, X))
    assert same(sets(X).max_value, sub(Z, 1))
    leave()  # type: ignore[misc]
    assert sets(X).is_everything()
    assert sets.enter_constraint(s.not_(cmp(x.Lt, X, Y))) is None
    point = IntSet.single_point(X)
    point.max_value = Y
    assert not point.is_single_point()


# --- the analyzer -----------------------------------------------------------------------------------------------------


def test_proofs_under_constraints() -> None:
    analyzer = Analyzer()
    k = var("k")
    with analyzer.constraint_context(s.and_(cmp(x.Le, 0, k), cmp(x.Lt, k, N))):
        assert analyzer.can_prove(cmp(x.Lt, k, N))
        assert analyzer.can_prove(cmp(x.Le, add(k, 1), N))
        assert analyzer.can_prove(cmp(x.Ge, k, 0))
    assert not analyzer.can_prove(cmp(x.Lt, k, N))
    with analyzer.constraint_context(s.not_(cmp(x.Lt, k, N))):
        assert analyzer.can_prove(cmp(x.Ge, k, N))


def test_proofs_by_symbolic_intervals() -> None:
    analyzer = Analyzer()
    k = var("k")
    analyzer.int_set.bind(k, const(0), N)
    assert analyzer.can_prove(cmp(x.Lt, k, N))
    assert not analyzer.can_prove(cmp(x.Lt, N, k))


def test_nested_constraints() -> None:
    analyzer = Analyzer()
    a, b, c = var("a"), var("b"), var("c")
    with analyzer.constraint_context(cmp(x.Lt, b, c)):
        with analyzer.constraint_context(cmp(x.Le, a, b)):
            assert analyzer.can_prove(cmp(x.Lt, a, c))
        assert not analyzer.can_prove(cmp(x.Lt, a, c))


def test_contexts_restore_what_was_before() -> None:
    analyzer = Analyzer()
    analyzer.bind(X, 0, 100)
    outer = analyzer.constraint_context(s.and_(cmp(x.Lt, X, 50), cmp(x.Gt, X, 3)))
    assert analyzer.const_int_bound(X) == ConstIntBound(4, 49)
    with analyzer.constraint_context(cmp(x.Eq, X, 7)):
        assert analyzer.const_int_bound(X) == ConstIntBound(7, 7)
    assert analyzer.const_int_bound(X) == ConstIntBound(4, 49)
    outer.exit_scope()
    outer.exit_scope()
    assert analyzer.const_int_bound(X) == ConstIntBound(0, 99)
    with analyzer.constraint_context(cmp(x.Lt, Y, 3)):
        assert analyzer.can_prove_less(Y, 3)
    assert analyzer.const_int_bound(Y).is_everything()
    with pytest.raises(TypeError):
        ConstraintContext()  # type: ignore[call-arg]


def test_contradictions_make_everything_provable_and_nothing_nonsense() -> None:
    analyzer = Analyzer()
    impossible: list[list[Any]] = [
        [cmp(x.Lt, X, 3), cmp(x.Gt, X, 5)],
        [cmp(x.Eq, mod(X, 6), 2), cmp(x.Eq, mod(X, 4), 3)],
        [cmp(x.Lt, X, Y), cmp(x.Lt, Y, X)],
        [ConstBool(False)],
    ]
    for facts in impossible:
        contexts = [analyzer.constraint_context(fact) for fact in facts]
        assert analyzer.can_prove(cmp(x.Eq, Y, Z))
        bound = analyzer.const_int_bound(X)
        assert bound.min_value <= bound.max_value
        for context in reversed(contexts):
            context.exit_scope()
        assert not analyzer.can_prove(cmp(x.Eq, Y, Z))


def test_a_condition_that_was_assumed_is_true() -> None:
    analyzer = Analyzer()
    flag = var("flag", DataType.BOOL)
    with analyzer.constraint_context(s.and_(flag, cmp(x.Lt, X, Y))):
        assert analyzer.simplify(flag).value is True  # type: ignore[attr-defined]
        assert analyzer.simplify(s.not_(flag)).value is False  # type: ignore[attr-defined]
        assert analyzer.simplify(cmp(x.Ge, X, Y)).value is False  # type: ignore[attr-defined]
    assert analyzer.simplify(flag) is flag


def test_bind_to_an_expression() -> None:
    analyzer = Analyzer()
    i, j = var("i"), var("j")
    analyzer.bind(i, 0, 8)
    analyzer.bind(j, add(mul(i, 2), 1))
    assert analyzer.const_int_bound(j) == ConstIntBound(1, 15)
    assert analyzer.modular_set(j) == ModularSet(2, 1)
    assert analyzer.can_prove(cmp(x.Gt, j, mul(i, 2)))
    assert analyzer.can_prove_equal(sub(j, 1), mul(i, 2))
    # A re-bind leaves nothing of the substitution, and unbind leaves nothing at all.
    analyzer.bind(j, 3, 5, allow_override=True)
    assert analyzer.simplify(j) is j
    assert analyzer.const_int_bound(j) == ConstIntBound(3, 4)
    analyzer.unbind(j)
    assert analyzer.const_int_bound(j).is_everything()
    assert analyzer.modular_set(j).is_everything()
    assert analyzer.int_set(j).min_value is j
    assert analyzer.transitive_cmp.try_compare(j, const(9)) == CompareResult.kUnknown


def test_bind_forms() -> None:
    analyzer = Analyzer()
    analyzer.bind(X, 4, 5)
    assert analyzer.simplify(add(X, 1)).value == 5  # type: ignore[attr-defined]
    analyzer.bind(X, min_val=1, max_val_exclusive=9)
    assert analyzer.const_int_bound(X) == ConstIntBound(1, 8)
    analyzer.bind(X, expr=add(Y, 1), allow_override=True)
    assert same(analyzer.simplify(X), add(Y, 1))
    analyzer.bind(X, const(0), N)
    assert analyzer.can_prove(cmp(x.Lt, X, N))
    with pytest.raises(ValueError):
        analyzer.bind(X, 5, 5)
    with pytest.raises(TypeError):
        analyzer.bind(X)
    with pytest.raises(TypeError):
        analyzer.bind(X, 1, 2, True, 4)


def test_a_variable_bound_to_itself_is_not_known() -> None:
    analyzer = Analyzer()
    analyzer.bind(X, add(X, 1))
    assert analyzer.simplify(X) is X
    assert not analyzer.can_prove(cmp(x.Lt, X, X))


def test_bounds_of_simplified_expressions() -> None:
    analyzer = Analyzer()
    assert analyzer.can_prove_greater_equal(sub(add(X, 5), X), 5)
    assert analyzer.can_prove_less(mod(X, 8), 8)
    assert not analyzer.can_prove_less(X, 8)
    assert analyzer.can_prove_equal(mul(add(X, 1), 4), add(mul(X, 4), 4))
    assert not analyzer.can_prove_equal(X, Y)


def test_division_by_a_variable_needs_it_not_to_be_zero() -> None:
    analyzer = Analyzer()
    e = div(add(mul(X, N), Y), N)
    assert analyzer.simplify(e) is e
    with analyzer.constraint_context(cmp(x.Gt, N, 0)):
        assert same(analyzer.simplify(e), add(X, div(Y, N)))
        assert analyzer.simplify(div(N, N)).value == 1  # type: ignore[attr-defined]


# --- surface ----------------------------------------------------------------------------------------------------------

_SIGNATURES = {
    (Analyzer, "simplify"): ["expr", "steps"],
    (Analyzer, "can_prove_greater_equal"): ["expr", "lower_bound"],
    (Analyzer, "can_prove_less"): ["expr", "upper_bound"],
    (Analyzer, "can_prove_equal"): ["lhs", "rhs"],
    (Analyzer, "can_prove"): ["cond"],
    (Analyzer, "constraint_context"): ["constraint"],
    (ConstIntBoundAnalyzer, "bind"): ["var", "min_val", "max_val_exclusive"],
    (ConstIntBoundAnalyzer, "update"): ["var", "bound"],
    (ModularSetAnalyzer, "update"): ["var", "info"],
    (RewriteSimplifier, "update"): ["var", "new_expr"],
    (CanonicalSimplifier, "update"): ["var", "new_expr"],
    (TransitiveComparisonAnalyzer, "try_compare"): ["lhs", "rhs", "propagate_inequalities"],
    (IntSetAnalyzer, "update"): ["var", "int_set"],
    (IntSetAnalyzer, "bind"): ["var", "min_val", "max_val_exclusive"],
    (IntSet, "interval"): ["min_value", "max_value"],
    (IntSet, "single_point"): ["val"],
    (ConstraintContext, "__exit__"): ["exc_type", "exc_val", "exc_tb"],
}


def test_parameter_names() -> None:
    for (cls, name), expected in _SIGNATURES.items():
        parameters = [p for p in inspect.signature(getattr(cls, name)).parameters if p != "self"]
        assert parameters == expected, f"{cls.__name__}.{name}"
    assert all(hasattr(arith, name) for name in arith.__all__)
    analyzer = Analyzer()
    for name in ("const_int_bound", "modular_set", "rewrite_simplify", "transitive_cmp", "int_set"):
        with pytest.raises(AttributeError):
            setattr(analyzer, name, None)
