"""Modular sets: what is known of an expression modulo some number."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..ir import expr as x
from ..ir.expr import ConstInt, Expr, Var
from .helpers import extended_euclidean, fits_int64, int_range, power_of_two_exponent
from .leaves import Leaves
from .structure import Memo, scalar_dtype

Residue = tuple[int, int]  # (coeff, base): the values coeff*k + base; coeff 0 is one value
EVERYTHING: Residue = (1, 0)


class ModularSet:
    """The values ``coeff*k + base``; ``coeff == 0`` is the exact value ``base``, ``(1, 0)`` is everything."""

    __slots__ = ("_base", "_coeff")

    def __init__(self, coeff: int, base: int) -> None:
        self._coeff = coeff
        self._base = base

    @property
    def coeff(self) -> int:
        """The distance of two neighbouring values; 0 if there is one value."""
        return self._coeff

    @property
    def base(self) -> int:
        """One of the values."""
        return self._base

    def is_exact(self) -> bool:
        """Whether there is one value."""
        return self._coeff == 0

    def is_everything(self) -> bool:
        """Whether nothing is known."""
        return self._coeff == 1 and self._base == 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ModularSet) and (self._coeff, self._base) == (other._coeff, other._base)

    def __hash__(self) -> int:
        return hash((self._coeff, self._base))

    def __repr__(self) -> str:
        return f"ModularSet(coeff={self._coeff}, base={self._base})"


def _normal(coeff: int, base: int) -> Residue:
    """Positive coefficient (its sign means nothing: k may be negative), base reduced; everything on overflow."""
    coeff = abs(coeff)
    if coeff:
        base %= coeff
    return (coeff, base) if fits_int64(coeff) and fits_int64(base) else EVERYTHING


def _add(a: Residue, b: Residue) -> Residue:
    return _normal(math.gcd(a[0], b[0]), a[1] + b[1])


def _sub(a: Residue, b: Residue) -> Residue:
    return _normal(math.gcd(a[0], b[0]), a[1] - b[1])


def _mul(a: Residue, b: Residue) -> Residue:
    return _normal(math.gcd(a[0] * b[0], a[0] * b[1], a[1] * b[0]), a[1] * b[1])


def _divide(a: Residue, c: int) -> Residue:
    # floor((c*m*k + b) / c) == m*k + floor(b / c), for either sign of c.
    return _normal(a[0] // c, a[1] // c) if c and a[0] % c == 0 else EVERYTHING


def _modulo(a: Residue, c: int) -> Residue:
    if c == 0:
        return EVERYTHING
    # One value has one remainder. Otherwise a - c*q: known modulo both a's coefficient and c.
    return (0, a[1] % c) if a[0] == 0 else _normal(math.gcd(a[0], c), a[1])


def _floor_div(a: Residue, b: Residue) -> Residue:
    return _divide(a, b[1]) if b[0] == 0 else EVERYTHING


def _floor_mod(a: Residue, b: Residue) -> Residue:
    return _modulo(a, b[1]) if b[0] == 0 else EVERYTHING


def _union(a: Residue, b: Residue) -> Residue:
    return a if a == b else _normal(math.gcd(a[0], b[0], a[1] - b[1]), a[1])


def _bit_and(a: Residue, b: Residue) -> Residue:
    bits = power_of_two_exponent(b[1] + 1) if b[0] == 0 else None
    return EVERYTHING if bits is None else _modulo(a, 2**bits)


def _shift_left(a: Residue, b: Residue) -> Residue:
    return _mul(a, (0, 2 ** b[1])) if b[0] == 0 and 0 <= b[1] < 63 else EVERYTHING


def _shift_right(a: Residue, b: Residue) -> Residue:
    return _divide(a, 2 ** b[1]) if b[0] == 0 and 0 <= b[1] < 63 else EVERYTHING


_BINARY: dict[type, Callable[[Residue, Residue], Residue]] = {
    x.Add: _add,
    x.Sub: _sub,
    x.Mul: _mul,
    x.FloorDiv: _floor_div,
    x.FloorMod: _floor_mod,
    x.Min: _union,
    x.Max: _union,
    x.BitAnd: _bit_and,
    x.BitShiftLeft: _shift_left,
    x.BitShiftRight: _shift_right,
}


def intersect(a: Residue, b: Residue) -> Residue | None:
    """What lies in both sets (the Chinese remainder theorem); None if nothing does."""
    if a[0] == 0 or b[0] == 0:
        exact, other = (a, b) if a[0] == 0 else (b, a)
        gap = exact[1] - other[1]
        return exact if (gap == 0 if other[0] == 0 else gap % other[0] == 0) else None
    g, p, _ = extended_euclidean(a[0], b[0])
    if (b[1] - a[1]) % g:
        return None
    step = a[0] // g * b[0]
    merged = a[0] * ((b[1] - a[1]) // g * p % (b[0] // g)) + a[1]
    return (step, merged % step) if fits_int64(step) else a


class ModularSetAnalyzer:
    """Maps integer expressions to their modular sets."""

    def __init__(self, range_of: Callable[[Expr], tuple[int, int]] | None = None, leaves: Leaves | None = None) -> None:
        self._range_of = range_of
        self._leaves = leaves
        self._known: dict[Var, Residue] = {}
        self._memo = Memo()
        self._outside = 0
        self.outside_version: Callable[[], int] | None = None  # of the ranges, which casts ask for
        self.version = 0
        self.visits = 0

    def __call__(self, expr: Expr) -> ModularSet:
        return ModularSet(*self.residue(expr))

    def residue(self, expr: Expr) -> Residue:
        """The modular set of ``expr`` as a pair."""
        if self.outside_version is not None and self._outside != self.outside_version():
            self._outside = self.outside_version()
            self._memo.clear()
        found = self._memo.get(expr)
        return self._memo.fill(expr, self._visit) if found is None else found  # type: ignore[no-any-return]

    def update(self, var: Var, info: ModularSet) -> None:
        """Replace what is known of ``var``."""
        if info.coeff < 0:
            raise ValueError(f"update: the coefficient must be non-negative, got {info.coeff}")
        self._set(var, _normal(info.coeff, info.base))

    def unbind(self, var: Var) -> None:
        """Forget what is known of ``var``."""
        self._set(var, None)

    def _set(self, var: Var, info: Residue | None) -> None:
        if self._known.get(var) == info:
            return
        if info is None:
            del self._known[var]
        else:
            self._known[var] = info
        self.version += 1
        self._memo.clear()

    def enter_constraint(self, constraint: Expr) -> Callable[[], None] | None:
        """Assume ``var % c == b`` or ``var == c``; what ends it, or None for other constraints."""
        return self.enter(constraint)[0]

    def enter(self, constraint: Any) -> tuple[Callable[[], None] | None, bool]:
        """As :meth:`enter_constraint`, and whether the constraint can be true at all."""
        found = _residue_constraint(constraint)
        if found is None:
            return None, True
        var, wanted = found
        before = self._known.get(var)
        merged = None if wanted is None else intersect(self.residue(var), wanted)
        self._set(var, EVERYTHING if merged is None else merged)
        return (lambda: self._set(var, before)), merged is not None

    def _visit(self, e: Any) -> None:
        self.visits += 1
        self._memo[e] = self._evaluate(e)

    def _evaluate(self, e: Any) -> Any:
        cls = type(e)
        if cls is x.ConstInt or cls is x.ConstBool:
            return 0, int(e.value)
        if isinstance(e, Var):
            found = self._known.get(e)
            if found is None and self._leaves is not None:
                found = self._leaves.residue(e)
            return EVERYTHING if found is None else found
        memo = self._memo
        binary = _BINARY.get(cls)
        if binary is not None:
            return binary(memo[e.left], memo[e.right])
        if cls is x.Neg:
            coeff, base = memo[e.operand]
            return _normal(coeff, -base)
        if cls is x.Cast:
            return self._cast(e)
        return EVERYTHING

    def _cast(self, e: Any) -> Any:
        """The operand's set, if the cast can't change the value."""
        operand = self._memo[e.operand]
        source, target = scalar_dtype(e.operand), int_range(e.dtype)
        inner = None if source is None else int_range(source)
        if inner is None or target is None:
            return EVERYTHING
        if operand[0] == 0:
            low = high = operand[1]
        elif target[0] <= inner[0] and inner[1] <= target[1]:
            return operand
        elif self._range_of is not None:
            low, high = self._range_of(e.operand)
        elif target[0] <= -(2**63) and target[1] >= 2**63 - 1:
            return operand  # values are signed 64-bit integers
        else:
            low, high = inner
        return operand if target[0] <= low and high <= target[1] else EVERYTHING


def _residue_constraint(constraint: Any) -> tuple[Any, Residue | None] | None:
    """(variable, set) of ``var % c == b`` or ``var == c``; the set is None if no value fulfils it."""
    if type(constraint) is not x.Eq:
        return None
    for side, other in ((constraint.left, constraint.right), (constraint.right, constraint.left)):
        if type(other) is not ConstInt:
            continue
        if isinstance(side, Var):
            return side, (0, other.value)
        if type(side) is x.FloorMod and isinstance(side.left, Var) and type(side.right) is ConstInt:
            divisor = side.right.value
            if divisor:
                value = other.value
                return side.left, (_normal(divisor, value) if value % divisor == value else None)
    return None


__all__ = ["ModularSet", "ModularSetAnalyzer", "intersect"]
