"""Quick proofs about integer scalars, for type rules and the parser: no state, no analyzer, one answer per question.

Constants are compared as numbers and identical objects at once; other pairs go through a normal form
(:mod:`pypto.arith.polynomial`) and are remembered. Variables of an INDEX or unsigned dtype are taken to be >= 0, and
arithmetic is that of mathematical integers. Questions about operands that are not integers of one signedness have the
answer None.
"""

from __future__ import annotations

import threading
from typing import Any

from ..ir.expr import ConstInt, Expr, Var
from .fold import fold_const
from .helpers import fits_int64
from .polynomial import ONE, Poly, Polynomials, as_constant, difference, scaled, shifted
from .structure import MEMO_LIMIT, scalar_dtype

Answer = bool | None  # None: unknown

_lock = threading.RLock()
_normal = Polynomials()
# Keyed by identity; the values keep the expressions alive, so that an id is not given to another one.
_equal: dict[tuple[int, int], tuple[Any, Any, Answer]] = {}
_at_most: dict[tuple[int, int], tuple[Any, Any, Answer]] = {}
_simplified: dict[int, tuple[Any, Any]] = {}

# How many minima, maxima and quotients one proof may take apart.
_SPLITS = 12


def forget() -> None:
    """Empty all memories."""
    global _normal
    with _lock:
        _normal = Polynomials()
        _equal.clear()
        _at_most.clear()
        _simplified.clear()


def _trim() -> None:
    if _normal.size() > MEMO_LIMIT or len(_equal) + len(_at_most) + len(_simplified) > MEMO_LIMIT:
        forget()


def _comparable(a: Any, b: Any) -> bool:
    """Both integer scalars of one signedness."""
    p, q = scalar_dtype(a), scalar_dtype(b)
    return p is not None and q is not None and p.is_int_ and q.is_int_ and p.is_signed_ == q.is_signed_


def prove_eq(a: Any, b: Any) -> Answer:
    """Whether ``a == b``: True, False, or None if it is not known."""
    if a is b:
        return True
    if type(a) is ConstInt and type(b) is ConstInt:
        return bool(a.value == b.value)
    if type(a) is int or type(b) is int:
        return _with_ints(prove_eq, a, b)
    found = _equal.get((id(a), id(b)))
    if found is not None:
        return found[2]
    if not _comparable(a, b):
        return None
    with _lock:
        _trim()
        gap = difference(_normal.of(a), _normal.of(b))
        answer = _is_zero(gap)
        _equal[id(a), id(b)] = (a, b, answer)
    return answer


def prove_le(a: Any, b: Any) -> Answer:
    """Whether ``a <= b``: True, False, or None if it is not known."""
    if a is b:
        return True
    if type(a) is ConstInt and type(b) is ConstInt:
        return bool(a.value <= b.value)
    if type(a) is int or type(b) is int:
        return _with_ints(prove_le, a, b)
    found = _at_most.get((id(a), id(b)))
    if found is not None:
        return found[2]
    if not _comparable(a, b):
        return None
    with _lock:
        _trim()
        answer = _is_non_negative(difference(_normal.of(b), _normal.of(a)))
        _at_most[id(a), id(b)] = (a, b, answer)
    return answer


def prove_lt(a: Any, b: Any) -> Answer:
    """Whether ``a < b``: True, False, or None if it is not known."""
    if a is b:
        return False
    answer = prove_le(b, a)
    return None if answer is None else not answer


_ZERO: dict[Any, ConstInt] = {}


def prove_ge0(a: Any) -> Answer:
    """Whether ``a >= 0``: True, False, or None if it is not known."""
    if type(a) is ConstInt:
        return bool(a.value >= 0)
    if type(a) is int:
        return bool(a >= 0)
    dtype = scalar_dtype(a)
    if dtype is None or not dtype.is_int_:
        return None
    zero = _ZERO.get(dtype)
    if zero is None:
        zero = _ZERO[dtype] = ConstInt(0, dtype)
    return prove_le(zero, a)


def provably_equal(a: Any, b: Any) -> bool:
    """Whether ``a == b`` is proved."""
    return prove_eq(a, b) is True


def compare(op: str, a: Any, b: Any) -> Answer:
    """Whether ``a op b``, with op one of ``== != <= < >= >``: True, False, or None if it is not known."""
    if op == "==":
        return prove_eq(a, b)
    if op == "!=":
        answer = prove_eq(a, b)
        return None if answer is None else not answer
    if op == "<=":
        return prove_le(a, b)
    if op == "<":
        return prove_lt(a, b)
    if op == ">=":
        return prove_le(b, a)
    if op == ">":
        return prove_lt(b, a)
    raise ValueError(f"unknown comparison {op!r}: expected one of == != <= < >= >")


def _with_ints(question: Any, a: Any, b: Any) -> Answer:
    """A question where a Python int stands for a constant of the other operand's dtype."""
    if type(a) is int and type(b) is int:
        return bool(a == b if question is prove_eq else a <= b)
    dtype = scalar_dtype(b if type(a) is int else a)
    if dtype is None or not dtype.is_int_:
        return None
    answer: Answer = question(
        ConstInt(a, dtype) if type(a) is int else a, ConstInt(b, dtype) if type(b) is int else b
    )
    return answer


# --- signs of polynomials ---------------------------------------------------------------------------------------------


def _is_zero(gap: Poly) -> Answer:
    value = as_constant(gap)
    if value is not None:
        return value == 0
    # A sum of multiples of g plus something else is never 0.
    if _no_integer_root(gap):
        return False
    above, below = _non_negative(gap, _SPLITS), _non_negative(scaled(gap, -1), _SPLITS)
    if above and below:
        return True
    if _non_negative(shifted(gap, -1), _SPLITS) or _non_negative(shifted(scaled(gap, -1), -1), _SPLITS):
        return False
    return None


def _no_integer_root(gap: Poly) -> bool:
    import math

    common = math.gcd(*(c for m, c in gap.items() if m != ONE))
    return bool(common > 1 and gap.get(ONE, 0) % common)


def _is_non_negative(gap: Poly) -> Answer:
    value = as_constant(gap)
    if value is not None:
        return value >= 0
    if _non_negative(gap, _SPLITS):
        return True
    return False if _non_negative(shifted(scaled(gap, -1), -1), _SPLITS) else None


def _non_negative(p: Poly, splits: int) -> bool:
    """Whether ``p >= 0`` for all values of its atoms, as far as ranges and a few case distinctions tell."""
    low, high = _normal.bound(p)
    if low is not None and low >= 0:
        return True
    if splits <= 0 or (high is not None and high < 0):
        return False
    for monomial, coefficient in p.items():
        if len(monomial) != 1:
            continue
        atom = _normal.atoms[monomial[0]]
        if atom.kind in ("min", "max"):
            rest = {m: c for m, c in p.items() if m is not monomial}
            cases = (_plus(rest, part, coefficient) for part in atom.parts)
            # c * min(a, b) is at most each c * a (c > 0), so one case is enough only where the value is an upper end.
            helpful = (coefficient < 0) == (atom.kind == "min")
            half = splits // 2
            decide = any if helpful else all
            return decide(_non_negative(case, half) for case in cases)
        if atom.kind == "//":
            # d*(r // d) == r - r % d. Scaled by d, the sign is the same, and r joins the other terms.
            rest = {m: c * atom.divisor for m, c in p.items() if m is not monomial}
            part = difference(atom.parts[0], _normal.modulo(atom.parts[0], atom.divisor))
            return _non_negative(_plus(rest, part, coefficient), splits - 1)
    return False


def _plus(a: Poly, b: Poly, factor: int) -> Poly:
    return difference(a, scaled(b, -factor))


# --- simplification ---------------------------------------------------------------------------------------------------


def fold(expr: Expr) -> Expr:
    """``expr`` folded by its top node, or as it is."""
    folded = fold_const(expr)
    return expr if folded is None else folded


def simplify(expr: Expr) -> Expr:
    """A simpler expression of the same value and dtype; the same object if there is none."""
    cls = type(expr)
    if cls is ConstInt or cls is Var:
        return expr
    found = _simplified.get(id(expr))
    if found is not None:
        return found[1]  # type: ignore[no-any-return]
    with _lock:
        _trim()
        result = _simplify(expr)
        _simplified[id(expr)] = (expr, result)
        _simplified.setdefault(id(result), (result, result))
    return result


def _simplify(expr: Expr) -> Expr:
    dtype = scalar_dtype(expr)
    if dtype is None or dtype.is_float_:
        return expr
    if dtype.is_int_:
        value = as_constant(_normal.of(expr))
        if value is not None and fits_int64(value):
            return ConstInt(value, dtype)
        sole = _normal.variable(_normal.of(expr))
        if sole is not None and scalar_dtype(sole) is dtype:
            return sole
    return fold(expr)


__all__ = [
    "compare",
    "fold",
    "forget",
    "prove_eq",
    "prove_ge0",
    "prove_le",
    "prove_lt",
    "provably_equal",
    "simplify",
]
