"""Work grows linearly with the number of nodes, and deep expressions need no recursion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pypto.arith import (
    Analyzer,
    CanonicalSimplifier,
    ConstIntBoundAnalyzer,
    IntSetAnalyzer,
    ModularSetAnalyzer,
    RewriteSimplifier,
    TransitiveComparisonAnalyzer,
)
from pypto.arith.polynomial import Polynomials
from pypto.ir import expr as x
from pypto.ir import scalar as s
from pypto.ir.dtype import DataType

from .expressions import const, var

V = [var(f"v{i}") for i in range(50)]
I = var("i", DataType.INDEX)  # noqa: E741


def left_sum(n: int) -> Any:
    e: Any = V[0]
    for k in range(n):
        e = e + (V[k % 50] if k % 2 else const(k))
    return e


def right_sum(n: int) -> Any:
    e: Any = V[0]
    for k in range(n):
        e = (V[k % 50] if k % 2 else const(k)) + e
    return e


def right_and(n: int) -> Any:
    e: Any = V[0] < const(5)
    for k in range(n):
        e = s.and_(V[k % 50] < const(k), e)
    return e


def minima(n: int) -> Any:
    e: Any = V[0]
    for k in range(n):
        e = s.min_(e, var("fresh") if k % 3 else const(10**6 - k))
    return e


def doublings(n: int) -> Any:
    """2**n as a tree, n nodes as a graph."""
    e: Any = V[0]
    for k in range(n):
        e = s.max_(e, e + V[k % 50])
    return e


def mixed(n: int) -> Any:
    e: Any = V[0]
    for k in range(n):
        e = (e + I * 16) % 64 + (I * 4 + k % 7) // 4 - s.max_(e, I)
    return e


SHAPES = (left_sum, right_sum, right_and, minima, doublings, mixed)


def rewriter(e: Any) -> int:
    r = RewriteSimplifier()
    r(e)
    return r.visits + r.applied


def analyzer(e: Any) -> int:
    a = Analyzer()
    a.simplify(e)
    return a.rewrite_simplify.visits + a.rewrite_simplify.applied + a.const_int_bound.visits + a.modular_set.visits


def visits_of(make: Callable[[], Any]) -> Callable[[Any], int]:
    def count(e: Any) -> int:
        one = make()
        one(e)
        return int(one.visits)

    return count


def normal_form(e: Any) -> int:
    p = Polynomials()
    p.of(e)
    return p.visits


WORK: dict[str, Callable[[Any], int]] = {
    "rewriter": rewriter,
    "analyzer": analyzer,
    "canonical": visits_of(CanonicalSimplifier),
    "bounds": visits_of(ConstIntBoundAnalyzer),
    "modular": visits_of(ModularSetAnalyzer),
    "intervals": visits_of(IntSetAnalyzer),
    "normal form": normal_form,
}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", WORK)
def test_work_is_linear(name: str, shape: Callable[[int], Any]) -> None:
    small, large = WORK[name](shape(300)), WORK[name](shape(600))
    assert 0 < large <= 2.3 * small + 50


@pytest.mark.parametrize("shape", [left_sum, right_sum, right_and, minima], ids=lambda f: f.__name__)
def test_deep_expressions(shape: Callable[[int], Any]) -> None:
    e = shape(5000)
    for work in WORK.values():
        work(e)
    goal = e if shape is right_and else x.Le(e, e + 1, DataType.BOOL)
    assert Analyzer().can_prove(goal) is (shape is not right_and)


def test_chains_of_facts() -> None:
    def search(n: int) -> int:
        t = TransitiveComparisonAnalyzer()
        names = [var("c") for _ in range(n)]
        for p, q in zip(names, names[1:], strict=False):
            t.enter_constraint(p < q)
            t.enter_constraint(names[0] <= q)  # many paths to each key
        assert t.try_compare(names[0], names[-1] + (1 - n)).name == "kLE"
        return t.visits

    assert search(200) <= 2.3 * search(100) + 50


def test_contradictory_facts_end() -> None:
    t = TransitiveComparisonAnalyzer()
    names = [var("c") for _ in range(40)]
    for p, q in zip(names, names[1:] + names[:1], strict=True):
        t.enter_constraint(p < q)
    assert t.try_compare(names[0], names[20]).value == 0
    assert t.visits <= 20 * 40 * 2 * 40
