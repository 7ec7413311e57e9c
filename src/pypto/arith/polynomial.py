"""Integer expressions as polynomials over atoms: the normal form behind the proofs of :mod:`pypto.arith.prove`.

A polynomial maps monomials to coefficients; a monomial is a sorted tuple of atom numbers, the empty one the constant.
Atoms are variables and whatever is not linear: quotients, remainders, minima, casts that may change the value. They are
interned by their normalised parts, so ``(1 + x) // 8`` and ``(x + 1) // 8`` are one atom.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..ir import expr as x
from ..ir.dtype import DataType
from ..ir.expr import BinaryExpr, Expr, UnaryExpr, Var
from .helpers import INT64_MAX, int_range, power_of_two_exponent
from .structure import is_float, post_order, scalar_dtype

Monomial = tuple[int, ...]
Poly = dict[Monomial, int]
Bound = tuple[int | None, int | None]  # None: unbounded

ONE: Monomial = ()
_MAX_TERMS = 64  # larger products and quotients stay opaque
_MAX_DEGREE = 8
EVERYTHING: Bound = (None, None)


class Atom:
    """One interned atom: its kind, its normalised parts and the range of its values."""

    __slots__ = ("bound", "divisor", "kind", "parts")

    def __init__(self, kind: Any, parts: tuple[Poly, ...], divisor: int, bound: Bound) -> None:
        self.kind = kind
        self.parts = parts
        self.divisor = divisor
        self.bound = bound


_LINEAR = (x.Add, x.Sub, x.Neg)


def is_linear(e: Any) -> bool:
    """Whether the node is a sum, a difference, a negation, or a product with a literal."""
    cls = type(e)
    if cls is x.Mul:
        return type(e.left) is x.ConstInt or type(e.right) is x.ConstInt
    return cls in _LINEAR


def linear_parts(e: Any) -> tuple[Any, ...]:
    """The operands of a linear node that are not the literal of a product."""
    cls = type(e)
    if cls is x.Mul:
        return (e.right,) if type(e.left) is x.ConstInt else (e.left,)
    return (e.operand,) if cls is x.Neg else (e.left, e.right)


def linear_leaves(root: Any, limit: int | None = None) -> list[tuple[Any, int]]:
    """``root`` as a sum of coefficients times leaves, in the order of their first appearance.

    Linear in the number of distinct nodes, also where subexpressions are shared. A partial sum whose own coefficient is
    beyond ``limit`` stays together as a leaf.
    """
    if not is_linear(root):
        return [(root, 1)]
    order: list[Any] = []
    seen: dict[Any, int] = {}

    def visit(node: Any) -> None:
        seen[node] = 0
        order.append(node)

    post_order(root, seen, visit, lambda node: linear_parts(node) if is_linear(node) else ())
    seen[root] = 1
    closed = set()
    for node in reversed(order):
        factor = seen[node]
        cls = type(node)
        if limit is not None and abs(factor) > limit:
            closed.add(node)
        elif cls is x.Add:
            seen[node.left] += factor
            seen[node.right] += factor
        elif cls is x.Sub:
            seen[node.left] += factor
            seen[node.right] -= factor
        elif cls is x.Neg:
            seen[node.operand] -= factor
        elif is_linear(node):
            literal = node.left if type(node.left) is x.ConstInt else node.right
            seen[linear_parts(node)[0]] += factor * literal.value
    return [(node, seen[node]) for node in order if node in closed or (not is_linear(node) and seen[node])]


def add_scaled(target: Poly, source: Poly, factor: int) -> None:
    """``target += factor * source`` in place."""
    for monomial, coefficient in source.items():
        total = target.get(monomial, 0) + factor * coefficient
        if total:
            target[monomial] = total
        else:
            target.pop(monomial, None)


def difference(a: Poly, b: Poly) -> Poly:
    """``a - b``."""
    result = dict(a)
    add_scaled(result, b, -1)
    return result


def shifted(a: Poly, value: int) -> Poly:
    """``a + value``."""
    result = dict(a)
    add_scaled(result, {ONE: value} if value else {}, 1)
    return result


def scaled(a: Poly, factor: int) -> Poly:
    """``factor * a``."""
    return {m: c * factor for m, c in a.items()} if factor else {}


def as_constant(a: Poly) -> int | None:
    """The value of a constant polynomial."""
    if not a:
        return 0
    return a.get(ONE) if len(a) == 1 else None


def _degree(a: Poly) -> int:
    return max(map(len, a), default=0)


def _scale_bound(bound: Bound, factor: int) -> Bound:
    low, high = bound
    if factor < 0:
        low, high = high, low
    return (None if low is None else low * factor), (None if high is None else high * factor)


def _product_bound(a: Bound, b: Bound) -> Bound:
    if a == (0, 0) or b == (0, 0):
        return 0, 0
    if None not in a and None not in b:
        corners = [p * q for p in a for q in b]  # type: ignore[operator]
        return min(corners), max(corners)
    if a[0] is not None and a[0] >= 0 and b[0] is not None and b[0] >= 0:
        return a[0] * b[0], None
    return EVERYTHING


class Polynomials:
    """The atoms met so far, and the polynomials of the expressions met so far."""

    def __init__(self, range_of: Callable[[Expr], Bound] | None = None) -> None:
        self._range_of = range_of  # of variables and other leaves; by default what their dtypes say
        self.atoms: list[Atom] = []
        self.visits = 0
        self._table: dict[Any, int] = {}
        self._memo: dict[Expr, Poly] = {}

    def size(self) -> int:
        """How much is remembered."""
        return len(self._memo) + len(self.atoms)

    def of(self, e: Expr) -> Poly:
        """The polynomial of an integer expression; it must not be changed."""
        found = self._memo.get(e)
        if found is None:
            post_order(e, self._memo, self._visit, self._children)
            found = self._memo[e]
        return found

    # --- from expressions ---------------------------------------------------------------------------------------------

    def _children(self, e: Any) -> tuple[Any, ...]:
        if is_float(e):
            return ()
        # A sum is looked at as a whole: polynomials of its partial sums would take quadratic time.
        if is_linear(e):
            return tuple(leaf for leaf, _ in linear_leaves(e))
        if isinstance(e, BinaryExpr):
            return e.left, e.right
        return (e.operand,) if isinstance(e, UnaryExpr) else ()

    def _visit(self, e: Any) -> None:
        self.visits += 1
        result = self._convert(e)
        if not is_linear(e) and (len(result) > _MAX_TERMS or any(abs(c) > INT64_MAX for c in result.values())):
            # Chains of quotients of sums would copy ever longer polynomials.
            result = self._atom("sum", (result,), 0, self.bound(result))
        self._memo[e] = result

    def _convert(self, e: Any) -> Poly:
        cls = type(e)
        if cls is x.ConstInt or cls is x.ConstBool:
            return {ONE: int(e.value)} if e.value else {}
        if is_float(e):
            return self._atom(e, (), 0, EVERYTHING)
        if is_linear(e):
            total: Poly = {}
            for leaf, factor in linear_leaves(e):
                add_scaled(total, self._memo[leaf], factor)
            return total
        handler = _HANDLERS.get(cls)
        if handler is not None:
            return handler(self, e)  # type: ignore[no-any-return]
        return self._opaque(e)

    def _opaque(self, e: Any) -> Poly:
        dtype = scalar_dtype(e)
        if isinstance(e, BinaryExpr):
            parts: tuple[Poly, ...] = (self._memo[e.left], self._memo[e.right])
        elif isinstance(e, UnaryExpr):
            parts = (self._memo[e.operand],)
        else:
            if self._range_of is not None:
                return self._atom(e, (), 0, self._range_of(e))
            return self._atom(e, (), 0, _variable_bound(dtype) if isinstance(e, Var) else EVERYTHING)
        bound: Bound = (0, 1) if dtype is DataType.BOOL else EVERYTHING
        if type(e) is x.Cast and dtype is not None and dtype.get_bit() < 64:
            bound = int_range(dtype) or EVERYTHING
        return self._atom((type(e), dtype), parts, 0, bound)

    def _atom(self, kind: Any, parts: tuple[Poly, ...], divisor: int, bound: Bound) -> Poly:
        # Nodes go into the key by identity; the atom keeps them alive.
        name = id(kind) if isinstance(kind, Expr) else kind
        key = (name, divisor, *(frozenset(p.items()) for p in parts))
        number = self._table.get(key)
        if number is None:
            number = self._table[key] = len(self.atoms)
            self.atoms.append(Atom(kind, parts, divisor, bound))
        return {(number,): 1}

    def _product(self, e: Any) -> Poly:
        return self.multiply(self._memo[e.left], self._memo[e.right], e)

    def multiply(self, a: Poly, b: Poly, e: Any) -> Poly:
        """``a * b``; a product of many terms becomes one atom."""
        if len(a) * len(b) > _MAX_TERMS or _degree(a) + _degree(b) > _MAX_DEGREE:
            return self._opaque(e)
        result: Poly = {}
        for m, c in a.items():
            add_scaled(result, {tuple(sorted(m + n)): d for n, d in b.items()}, c)
        return result

    def _quotient(self, e: Any) -> Poly:
        divisor = as_constant(self._memo[e.right])
        return self.divide(self._memo[e.left], divisor) if divisor else self._opaque(e)

    def _remainder(self, e: Any) -> Poly:
        divisor = as_constant(self._memo[e.right])
        return self.modulo(self._memo[e.left], divisor) if divisor else self._opaque(e)

    def divide(self, a: Poly, c: int) -> Poly:
        """``a // c`` for a constant ``c != 0``."""
        if c < 0:
            a, c = scaled(a, -1), -c
        whole: Poly = {}
        rest: Poly = {}
        for m, k in a.items():
            # Truncation keeps the sign of what is left, and with it the bounds.
            q = k // c if m == ONE or k > 0 else -(-k // c)
            if q:
                whole[m] = q
            if k - q * c:
                rest[m] = k - q * c
        common = math.gcd(c, *(k for m, k in rest.items() if m != ONE))
        if common > 1 and len(rest) > (ONE in rest):
            rest = {m: k // common for m, k in rest.items() if k // common}
            c //= common
        if not rest:
            return whole
        low, high = self.bound(rest)
        if low is not None and high is not None and low // c == high // c:
            add_scaled(whole, {ONE: low // c} if low // c else {}, 1)
            return whole
        offset = rest.get(ONE, 0)
        inner = self._sole_atom(shifted(rest, -offset))
        if inner is not None and inner.kind == "//":  # (x // a + k) // c == (x + a*k) // (a*c)
            part = self.divide(shifted(inner.parts[0], offset * inner.divisor), inner.divisor * c)
        else:
            bound = (None if low is None else low // c), (None if high is None else high // c)
            part = self._atom("//", (rest,), c, bound)
        add_scaled(whole, part, 1)
        return whole

    def modulo(self, a: Poly, c: int) -> Poly:
        """``a % c`` for a constant ``c != 0``."""
        if c < 0:
            return scaled(self.modulo(scaled(a, -1), -c), -1)
        rest = {m: k % c for m, k in a.items() if k % c}
        common = math.gcd(c, *rest.values())
        if common > 1:  # g*a % g*c == g * (a % c)
            return scaled(self.modulo({m: k // common for m, k in rest.items()}, c // common), common)
        low, high = self.bound(rest)
        if low is not None and high is not None and low >= 0 and high < c:
            return rest
        inner = self._sole_atom(rest)
        if inner is not None and inner.kind == "%" and inner.divisor % c == 0:
            return self.modulo(inner.parts[0], c)
        return self._atom("%", (rest,), c, (0, c - 1))

    def _sole_atom(self, a: Poly) -> Atom | None:
        if len(a) == 1:
            (monomial, coefficient), *_ = a.items()
            if coefficient == 1 and len(monomial) == 1:
                return self.atoms[monomial[0]]
        return None

    def variable(self, a: Poly) -> Expr | None:
        """The variable or call that ``a`` is, if it is one alone."""
        atom = self._sole_atom(a)
        return atom.kind if atom is not None and isinstance(atom.kind, Expr) else None

    def _minimum(self, e: Any) -> Poly:
        return self.choose("min", self._memo[e.left], self._memo[e.right])

    def _maximum(self, e: Any) -> Poly:
        return self.choose("max", self._memo[e.left], self._memo[e.right])

    def choose(self, kind: str, a: Poly, b: Poly) -> Poly:
        """The smaller or larger of two; common addends are taken out."""
        low, high = self.bound(difference(a, b))
        if low is not None and low >= 0:
            return b if kind == "min" else a
        if high is not None and high <= 0:
            return a if kind == "min" else b
        common = {m: c for m, c in a.items() if m != ONE and b.get(m) == c}
        inner_a, inner_b = difference(a, common), difference(b, common)
        parts = sorted((inner_a, inner_b), key=lambda p: sorted(p.items()))
        (l0, h0), (l1, h1) = self.bound(parts[0]), self.bound(parts[1])
        lows, highs = [v for v in (l0, l1) if v is not None], [v for v in (h0, h1) if v is not None]
        if kind == "min":
            bound = (min(lows) if len(lows) == 2 else None), (min(highs) if highs else None)
        else:
            bound = (max(lows) if lows else None), (max(highs) if len(highs) == 2 else None)
        result = dict(common)
        add_scaled(result, self._atom(kind, tuple(parts), 0, bound), 1)
        return result

    def _absolute(self, e: Any) -> Poly:
        a = self._memo[e.operand]
        return self.choose("max", a, scaled(a, -1))

    def _cast(self, e: Any) -> Poly:
        source, target = scalar_dtype(e.operand), e.dtype
        inner, outer = (int_range(source) if source is not None else None), int_range(target)
        a = self._memo[e.operand]
        if inner is None or outer is None or target is DataType.BOOL:
            return self._opaque(e)
        if outer[0] <= inner[0] and inner[1] <= outer[1]:
            return a
        low, high = self.bound(a)
        # Values are signed 64-bit integers: a non-negative one fits UINT64, and an UINT64 is taken to fit INT64.
        fits = (
            low is not None and low >= outer[0] and (outer[1] >= 2**63 - 1 or (high is not None and high <= outer[1]))
        )
        return a if fits else self._opaque(e)

    def _shift_left(self, e: Any) -> Poly:
        count = as_constant(self._memo[e.right])
        return scaled(self._memo[e.left], 2**count) if count is not None and 0 <= count < 63 else self._opaque(e)

    def _shift_right(self, e: Any) -> Poly:
        count = as_constant(self._memo[e.right])
        return self.divide(self._memo[e.left], 2**count) if count is not None and 0 <= count < 63 else self._opaque(e)

    def _bit_and(self, e: Any) -> Poly:
        mask = as_constant(self._memo[e.right])
        bits = None if mask is None else power_of_two_exponent(mask + 1)
        return self._opaque(e) if bits is None else self.modulo(self._memo[e.left], 2**bits)

    def _power(self, e: Any) -> Poly:
        exponent = as_constant(self._memo[e.right])
        base = self._memo[e.left]
        if exponent is None or not 0 <= exponent <= 4 or len(base) > 2:
            return self._opaque(e)
        result: Poly = {ONE: 1}
        for _ in range(exponent):
            result = self.multiply(result, base, e)
        return result

    # --- ranges -------------------------------------------------------------------------------------------------------

    def bound(self, a: Poly) -> Bound:
        """The range of a polynomial, from the ranges of its atoms."""
        low: int | None = 0
        high: int | None = 0
        atoms = self.atoms
        for monomial, coefficient in a.items():
            part: Bound = (1, 1)
            for number in monomial:
                part = _product_bound(part, atoms[number].bound) if part != (1, 1) else atoms[number].bound
            below, above = _scale_bound(part, coefficient)
            low = None if low is None or below is None else low + below
            high = None if high is None or above is None else high + above
            if low is None and high is None:
                return EVERYTHING
        return low, high


def _variable_bound(dtype: DataType | None) -> Bound:
    if dtype is None or dtype is DataType.INT64:
        return EVERYTHING
    if dtype is DataType.INDEX or dtype is DataType.UINT64:
        return 0, None
    return int_range(dtype) or EVERYTHING


_HANDLERS: dict[type, Any] = {
    x.Mul: Polynomials._product,
    x.FloorDiv: Polynomials._quotient,
    x.FloorMod: Polynomials._remainder,
    x.Min: Polynomials._minimum,
    x.Max: Polynomials._maximum,
    x.Abs: Polynomials._absolute,
    x.Cast: Polynomials._cast,
    x.BitShiftLeft: Polynomials._shift_left,
    x.BitShiftRight: Polynomials._shift_right,
    x.BitAnd: Polynomials._bit_and,
    x.Pow: Polynomials._power,
}

__all__ = [
    "ONE",
    "Poly",
    "Polynomials",
    "add_scaled",
    "as_constant",
    "difference",
    "is_linear",
    "linear_leaves",
    "scaled",
    "shifted",
]
