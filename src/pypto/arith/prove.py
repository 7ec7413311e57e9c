"""Quick proofs about integer scalars, for type rules and the parser: no state, no analyzer, one answer per question.

Constants are compared as numbers and identical objects at once; other pairs go through a normal form
(:mod:`pypto.arith.polynomial`) and are remembered. Variables of an INDEX or unsigned dtype are taken to be >= 0, and
arithmetic is that of mathematical integers. Questions about operands that are not integers of one signedness have the
answer None.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ..ir.expr import BinaryExpr, ConstInt, Expr, UnaryExpr, Var
from .fold import fold_const
from .helpers import fits_int64
from .polynomial import Poly, Polynomials, as_constant, difference
from .signs import is_non_negative, is_zero
from .structure import MEMO_LIMIT, scalar_dtype

Answer = bool | None  # None: unknown

_lock = threading.RLock()
_normal = Polynomials()
_analyzer: Any = None  # made when first needed
# Keyed by identity; the values keep the expressions alive, so that an id is not given to another one.
_Memo = dict[tuple[int, int], tuple[Any, Any, Answer]]
_equal: _Memo = {}
_at_most: _Memo = {}
_simplified: dict[int, tuple[Any, Any]] = {}


def forget() -> None:
    """Empty all memories."""
    global _normal, _analyzer
    with _lock:
        _normal = Polynomials()
        _analyzer = None
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


def _decided(memo: _Memo, a: Any, b: Any, decide: Callable[[Polynomials, Poly], Answer]) -> Answer:
    """What ``decide`` says of ``b - a``; remembered."""
    found = memo.get((id(a), id(b)))
    if found is not None:
        return found[2]
    if not _comparable(a, b):
        return None
    with _lock:
        _trim()
        answer = decide(_normal, difference(_normal.of(b), _normal.of(a)))
        memo[id(a), id(b)] = (a, b, answer)
    return answer


def prove_eq(a: Any, b: Any) -> Answer:
    """Whether ``a == b``: True, False, or None if it is not known."""
    if a is b:
        return True
    if type(a) is ConstInt and type(b) is ConstInt:
        return bool(a.value == b.value)
    if type(a) is int or type(b) is int:
        return _with_ints(prove_eq, a, b)
    return _decided(_equal, b, a, is_zero)


def prove_le(a: Any, b: Any) -> Answer:
    """Whether ``a <= b``: True, False, or None if it is not known."""
    if a is b:
        return True
    if type(a) is ConstInt and type(b) is ConstInt:
        return bool(a.value <= b.value)
    if type(a) is int or type(b) is int:
        return _with_ints(prove_le, a, b)
    return _decided(_at_most, a, b, is_non_negative)


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
    answer: Answer = question(ConstInt(a, dtype) if type(a) is int else a, ConstInt(b, dtype) if type(b) is int else b)
    return answer


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
        normal = _normal.of(expr)
        value = as_constant(normal)
        if value is not None and fits_int64(value):
            return ConstInt(value, dtype)
        sole = _normal.variable(normal)
        if sole is not None and scalar_dtype(sole) is dtype:
            return sole
    if not isinstance(expr, (BinaryExpr, UnaryExpr)):
        return expr
    # Nothing is ever bound here, so one analyzer serves all.
    from .analyzer import Analyzer

    global _analyzer
    if _analyzer is None:
        _analyzer = Analyzer()
    result: Expr = _analyzer.simplify(expr)
    return result


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
