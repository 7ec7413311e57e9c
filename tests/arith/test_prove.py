"""The quick proofs of type rules and parser."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from pypto.arith import prove
from pypto.arith.prove import compare, fold, provably_equal, prove_eq, prove_ge0, prove_le, prove_lt, simplify
from pypto.ir import scalar as s
from pypto.ir.dtype import DataType
from pypto.ir.expr import ConstInt, index_const

from .expressions import const, var

INDEX = DataType.INDEX
n, k, i, t = (var(name, INDEX) for name in "nkit")
S, o, w = (var(name, INDEX) for name in "Sow")
a = var("a")


@pytest.mark.parametrize(
    ("left", "right", "answer"),
    [
        (n + n, 2 * n, True),
        (k * t + t - k * t, t, True),
        ((i + 1) * 64 - i * 64, index_const(64), True),
        ((n + k) * (n - k), n * n - k * k, True),
        ((n // 8) * 8 + n % 8, n, True),
        (n // 8 // 4, n // 32, True),
        ((n * 16 + k) // 16, n + k // 16, True),
        ((n * 16 + k) % 16, k % 16, True),
        (s.min_(n, k), s.min_(k, n), True),
        (s.cast(n, DataType.INT64) + 1, n + 1, True),
        (n, n + 1, False),
        (2 * n, 2 * k + 1, False),
        (n + 1, index_const(0), False),
        (n, k, None),
        (n * k, n, None),
        (n, s.cast(n, DataType.INT32), None),
        (n, s.cast(n, DataType.UINT64), None),  # another signedness
        (a, 7, None),
        (const(7), 7, True),
    ],
    ids=str,
)
def test_equality(left: Any, right: Any, answer: bool | None) -> None:
    assert prove_eq(left, right) is answer
    assert prove_eq(right, left) is answer
    assert provably_equal(left, right) is (answer is True)
    assert compare("!=", left, right) is (None if answer is None else not answer)


@pytest.mark.parametrize(
    ("left", "right", "answer"),
    [
        (n, n + 1, True),
        (n + 1, n, False),
        (s.min_(n, k), n, True),
        (n, s.max_(k, n), True),
        (s.min_(s.max_(S - o, index_const(0)), w), w, True),
        (s.max_(o, n) - o, s.max_(n, o), True),
        ((n // 8) * 8, n, True),
        (n, ((n + 7) // 8) * 8, True),
        ((n + 7) // 8 * 8, n + 7, True),
        (n % 8, index_const(7), True),
        (index_const(0), n * k, True),
        (index_const(0), n - k, None),
        (n, k, None),
        (a, a + 0, True),
        (index_const(0), a, None),
        (index_const(9), n % 8, False),
    ],
    ids=str,
)
def test_order(left: Any, right: Any, answer: bool | None) -> None:
    assert prove_le(left, right) is answer
    assert prove_lt(right, left) is (None if answer is None else not answer)
    assert compare("<=", left, right) is answer
    assert compare(">=", right, left) is answer


def test_signs() -> None:
    assert prove_ge0(n) is True
    assert prove_ge0(n + k) is True
    assert prove_ge0(-n - 1) is False
    assert prove_ge0(n - 1) is None
    assert prove_ge0(a) is None
    assert prove_ge0(index_const(-1)) is False
    assert prove_ge0(var("f", DataType.FP32)) is None


def test_unknown_comparison() -> None:
    with pytest.raises(ValueError, match="unknown comparison"):
        compare("=", n, k)


def test_simplify() -> None:
    assert simplify(n) is n
    assert simplify((n // 8) * 8 + n % 8) is n
    folded = simplify((i + 1) * 64 - i * 64)
    assert type(folded) is ConstInt and folded.value == 64 and folded.dtype is INDEX
    plain = n + k
    assert simplify(plain) is plain
    assert fold(plain) is plain
    assert fold(index_const(3) + 4).value == 7  # type: ignore[attr-defined]
    # The form that the window rules print.
    window = simplify(s.min_(s.max_(S, o) - o, w))
    assert str(window).replace("pl.const(0, pl.INDEX)", "0") == "pl.min(pl.max(S - o, 0), w)"


def test_constants_do_not_reach_the_normal_form(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: Any) -> Any:
        raise AssertionError("a constant was normalised")

    monkeypatch.setattr("pypto.arith.polynomial.Polynomials.of", refuse)
    p, q = index_const(70_001), const(5)
    assert prove_eq(p, q) is False and prove_le(q, p) is True and prove_lt(p, p) is False
    assert prove_ge0(p) is True and simplify(p) is p and prove_eq(n, n) is True


def test_answers_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    left, right = n + k, k + n
    assert prove_eq(left, right) is True
    before = prove._normal.visits
    assert prove_eq(left, right) is True
    assert prove._normal.visits == before
    monkeypatch.setattr(prove, "MEMO_LIMIT", 10)
    for number in range(50):
        assert prove_eq(n + number, number + n) is True
        assert len(prove._equal) <= 12


def test_importing_is_cheap() -> None:
    code = "import sys, pypto.arith.prove; print('numpy' in sys.modules, 'pypto.arith.analyzer' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
