"""The sign of a polynomial, from the ranges of its atoms and a few case distinctions."""

from __future__ import annotations

import math

from .polynomial import ONE, Poly, Polynomials, as_constant, difference, scaled, shifted

# How many minima, maxima and quotients one proof may take apart; two cases share what is left.
_SPLITS = 12


def is_zero(normal: Polynomials, p: Poly) -> bool | None:
    """Whether ``p == 0``: True, False, or None if it is not known."""
    value = as_constant(p)
    if value is not None:
        return value == 0
    common = math.gcd(*(c for m, c in p.items() if m != ONE))
    if common > 1 and p.get(ONE, 0) % common:
        return False  # multiples of g, and something else
    opposite = scaled(p, -1)
    if at_least_zero(normal, p):
        if at_least_zero(normal, opposite):
            return True
        return False if at_least_zero(normal, shifted(p, -1)) else None
    return False if at_least_zero(normal, shifted(opposite, -1)) else None


def is_non_negative(normal: Polynomials, p: Poly) -> bool | None:
    """Whether ``p >= 0``: True, False, or None if it is not known."""
    value = as_constant(p)
    if value is not None:
        return value >= 0
    if at_least_zero(normal, p):
        return True
    return False if at_least_zero(normal, shifted(scaled(p, -1), -1)) else None


def at_least_zero(normal: Polynomials, p: Poly, splits: int = _SPLITS) -> bool:
    """Whether ``p >= 0`` is proved."""
    low, high = normal.bound(p)
    if low is not None and low >= 0:
        return True
    if splits <= 0 or (high is not None and high < 0):
        return False
    for monomial, coefficient in p.items():
        if len(monomial) != 1:
            continue
        atom = normal.atoms[monomial[0]]
        if atom.kind in ("min", "max"):
            rest = {m: c for m, c in p.items() if m != monomial}
            cases = (_plus(rest, part, coefficient) for part in atom.parts)
            # -min(a, b) is at least -a and at least -b: one case is enough. min(a, b) is one of them: both are needed.
            decide = any if (coefficient < 0) == (atom.kind == "min") else all
            return decide(at_least_zero(normal, case, splits // 2) for case in cases)
        if atom.kind == "//":
            # d*(r // d) == r - r % d. Scaled by d > 0 the sign is the same, and r joins the other terms.
            rest = {m: c * atom.divisor for m, c in p.items() if m != monomial}
            part = difference(atom.parts[0], normal.modulo(atom.parts[0], atom.divisor))
            return at_least_zero(normal, _plus(rest, part, coefficient), splits - 1)
    return False


def _plus(a: Poly, b: Poly, factor: int) -> Poly:
    return difference(a, scaled(b, -factor))


__all__ = ["at_least_zero", "is_non_negative", "is_zero"]
