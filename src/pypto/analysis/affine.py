"""Integer expressions as sums of multiples of variables: the places of windows, and how they move with a loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..arith.polynomial import linear_leaves
from ..ir.expr import Call, Cast, ConstInt, Mul, Var
from ..ir.type import ScalarType


class BlockIndex:
    """The position of a kernel instance in its launch, as a variable of affine forms."""

    def __repr__(self) -> str:
        return "block"


BLOCK = BlockIndex()
_BLOCK_OPS = frozenset(("tile.get_block_idx", "tensor.get_block_idx"))

# What is not known of a bound of a range.
Range = tuple[int | None, int | None]
UNBOUNDED: Range = (None, None)


class Affine:
    """``const + sum(factor * key)``; no factor is 0. Never changed once made."""

    __slots__ = ("const", "terms")

    def __init__(self, const: int = 0, terms: Mapping[Any, int] | None = None) -> None:
        self.const = const
        self.terms: Mapping[Any, int] = terms if terms is not None else {}

    @property
    def value(self) -> int | None:
        """The number, if no variable takes part."""
        return None if self.terms else self.const

    def plus(self, other: Affine, factor: int = 1) -> Affine:
        """``self + factor * other``."""
        if not other.terms:
            return Affine(self.const + factor * other.const, self.terms)
        terms = dict(self.terms)
        for key, by in other.terms.items():
            total = terms.get(key, 0) + factor * by
            if total:
                terms[key] = total
            else:
                terms.pop(key, None)
        return Affine(self.const + factor * other.const, terms)

    def shifted(self, by: int) -> Affine:
        """``self + by``."""
        return Affine(self.const + by, self.terms)

    def without(self, key: Any) -> Affine:
        """The rest beside one variable."""
        return Affine(self.const, {k: f for k, f in self.terms.items() if k is not key})

    def substituted(self, values: Callable[[Any], Affine | None]) -> Affine | None:
        """With forms in place of variables; None if one has none."""
        found = Affine(self.const)
        for key, factor in self.terms.items():
            value = values(key)
            if value is None:
                return None
            found = found.plus(value, factor)
        return found

    def at(self, values: Callable[[Any], int | None]) -> int | None:
        """The number for these values; None if one is missing."""
        found = self.const
        for key, factor in self.terms.items():
            value = values(key)
            if value is None:
                return None
            found += factor * value
        return found

    def same(self, other: Affine) -> bool:
        """Whether both are the same form."""
        return self.const == other.const and self.terms == other.terms

    def __repr__(self) -> str:
        parts = [f"{f}*{getattr(k, 'name_hint', k)}" for k, f in self.terms.items()]
        return " + ".join([*parts, str(self.const)])


def form_of(e: Any, form_of_var: Callable[[Var], Affine | None]) -> Affine | None:
    """The form of an integer expression; None if it is not affine, or a variable in it has no form.

    Arithmetic is that of mathematical integers, as in all of :mod:`pypto.arith`.
    """
    if type(e) is ConstInt:
        return Affine(e.value)
    found = Affine()
    waiting = [(e, 1)]
    while waiting:
        root, factor = waiting.pop()
        for leaf, by in linear_leaves(root):
            cls = type(leaf)
            if cls is Cast and _keeps_value(leaf):
                waiting.append((leaf.operand, factor * by))
                continue
            value: Affine | None = None
            if cls is ConstInt:
                value = Affine(leaf.value)
            elif isinstance(leaf, Var):
                value = form_of_var(leaf)
            elif cls is Mul:
                value = _product(leaf, form_of_var)
            elif cls is Call and leaf.op.name in _BLOCK_OPS:
                value = Affine(0, {BLOCK: 1})
            if value is None:
                return None
            found = found.plus(value, factor * by)
    return found


def _keeps_value(cast: Any) -> bool:
    """Whether a cast is one of an integer to an integer type that holds all its values."""
    have, want = cast.operand.type, cast.type
    if not isinstance(have, ScalarType) or not isinstance(want, ScalarType):
        return False
    one, other = have.dtype, want.dtype
    if not (one.is_int_ and other.is_int_) or one.is_signed_ is not other.is_signed_:
        return False
    return bool(one.get_bit() <= other.get_bit())


def _product(e: Any, form_of_var: Callable[[Var], Affine | None]) -> Affine | None:
    """A product of variables one of which is a constant."""
    if not isinstance(e.left, Var) or not isinstance(e.right, Var):
        return None
    left, right = form_of_var(e.left), form_of_var(e.right)
    if left is None or right is None:
        return None
    if right.terms:
        left, right = right, left
    return None if right.terms else Affine().plus(left, right.const)


__all__ = ["BLOCK", "UNBOUNDED", "Affine", "Range", "form_of"]
