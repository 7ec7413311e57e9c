"""Constant bounds: the range of an integer expression, from the ranges of its variables."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from ..ir import expr as x
from ..ir.dtype import DataType
from ..ir.expr import Expr, Var
from .helpers import int_range
from .leaves import Leaves
from .structure import Memo, conjuncts, is_integer, scalar_dtype

INF = 2**63 - 1
Range = tuple[int, int]  # INF and -INF mean unbounded
EVERYTHING: Range = (-INF, INF)
_UNIT: Range = (0, 1)


class ConstIntBound:
    """The range ``[min_value, max_value]``; ``kNegInf`` and ``kPosInf`` mean unbounded."""

    __slots__ = ("_max", "_min")

    kPosInf: ClassVar[int] = INF
    kNegInf: ClassVar[int] = -INF

    def __init__(self, min_value: int, max_value: int) -> None:
        self._min = min_value
        self._max = max_value

    @property
    def min_value(self) -> int:
        """The smallest value, or ``kNegInf``."""
        return self._min

    @property
    def max_value(self) -> int:
        """The largest value, or ``kPosInf``."""
        return self._max

    def is_const(self) -> bool:
        """Whether there is exactly one value."""
        return self._min == self._max and abs(self._min) != INF

    def is_non_negative(self) -> bool:
        """Whether all values are >= 0."""
        return self._min >= 0

    def is_positive(self) -> bool:
        """Whether all values are > 0."""
        return self._min > 0

    def is_everything(self) -> bool:
        """Whether nothing is known."""
        return self._min <= -INF and self._max >= INF

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConstIntBound) and (self._min, self._max) == (other._min, other._max)

    def __hash__(self) -> int:
        return hash((self._min, self._max))

    def __repr__(self) -> str:
        low = "-inf" if self._min <= -INF else str(self._min)
        high = "+inf" if self._max >= INF else str(self._max)
        return f"ConstIntBound[{low}, {high}]"


# --- saturating arithmetic --------------------------------------------------------------------------------------------


def _clamp(value: int) -> int:
    return max(-INF, min(INF, value))


def _plus(a: int, b: int, infinity: int) -> int:
    """A sum of two lower (``-INF``) or two upper (``INF``) ends."""
    return infinity if a == infinity or b == infinity else _clamp(a + b)


def _times(a: int, b: int) -> int:
    if a == 0 or b == 0:
        return 0
    if abs(a) == INF or abs(b) == INF:
        return INF if (a > 0) == (b > 0) else -INF
    return _clamp(a * b)


def _over(a: int, b: int) -> int:
    """``a // b`` for ``b > 0``."""
    if abs(a) == INF:
        return a
    if b == INF:
        return 0 if a >= 0 else -1
    return a // b


def _add(a: Range, b: Range) -> Range:
    return _plus(a[0], b[0], -INF), _plus(a[1], b[1], INF)


def _negative(a: Range) -> Range:
    return -a[1], -a[0]


def _sub(a: Range, b: Range) -> Range:
    return _add(a, _negative(b))


def _mul(a: Range, b: Range) -> Range:
    if b[0] == b[1] > 0:
        return _times(a[0], b[0]), _times(a[1], b[0])
    corners = [_times(p, q) for p in a for q in b]
    return min(corners), max(corners)


def _floor_div(a: Range, b: Range) -> Range:
    if b[1] < 0:
        a, b = _negative(a), _negative(b)
    if b[0] <= 0:
        return EVERYTHING
    return _over(a[0], b[1] if a[0] >= 0 else b[0]), _over(a[1], b[0] if a[1] >= 0 else b[1])


def _floor_mod(a: Range, b: Range) -> Range:
    if b[0] <= 0:
        return EVERYTHING
    top = INF if b[1] == INF else b[1] - 1
    return 0, (min(a[1], top) if a[0] >= 0 else top)


def _min(a: Range, b: Range) -> Range:
    return min(a[0], b[0]), min(a[1], b[1])


def _max(a: Range, b: Range) -> Range:
    return max(a[0], b[0]), max(a[1], b[1])


def _power_of(base: int, exponent: int) -> int:
    if base == INF or (base > 1 and exponent > 63):
        return INF
    return _clamp(base**exponent)


def _pow(a: Range, b: Range) -> Range:
    if b[0] != b[1] or b[0] < 0 or b[0] == INF:
        return EVERYTHING
    if b[0] == 0:
        return 1, 1
    if b[0] == 1:
        return a
    return (_power_of(a[0], b[0]), _power_of(a[1], b[0])) if a[0] >= 0 else EVERYTHING


def _bit_and(a: Range, b: Range) -> Range:
    return (0, min(a[1], b[1])) if a[0] >= 0 and b[0] >= 0 else EVERYTHING


def _bit_or(a: Range, b: Range) -> Range:
    return (max(a[0], b[0]), _plus(a[1], b[1], INF)) if a[0] >= 0 and b[0] >= 0 else EVERYTHING


def _shift_left(a: Range, b: Range) -> Range:
    if a[0] < 0 or b[0] < 0 or b[1] >= 63:
        return EVERYTHING
    return _times(a[0], 2 ** b[0]), _times(a[1], 2 ** b[1])


def _shift_right(a: Range, b: Range) -> Range:
    if a[0] < 0 or b[0] < 0 or b[1] >= 63:
        return EVERYTHING
    return _over(a[0], 2 ** b[1]), _over(a[1], 2 ** b[0])


def _abs(a: Range) -> Range:
    if a[0] >= 0:
        return a
    return _negative(a) if a[1] <= 0 else (0, max(-a[0], a[1]))


def _unit(_a: Range, _b: Range = _UNIT) -> Range:
    return _UNIT


_BINARY: dict[type, Callable[[Range, Range], Range]] = {
    x.Add: _add,
    x.Sub: _sub,
    x.Mul: _mul,
    x.FloorDiv: _floor_div,
    x.FloorMod: _floor_mod,
    x.Min: _min,
    x.Max: _max,
    x.Pow: _pow,
    x.BitAnd: _bit_and,
    x.BitOr: _bit_or,
    x.BitShiftLeft: _shift_left,
    x.BitShiftRight: _shift_right,
    **dict.fromkeys((*x.COMPARISONS, x.And, x.Or, x.Xor), _unit),
}


def dtype_range(dtype: DataType | None) -> Range:
    """What an unknown value of a dtype may be: INDEX is >= 0, other 64-bit signed integers are unknown."""
    if dtype is DataType.INDEX:
        return 0, INF
    bounds = None if dtype is None else int_range(dtype)
    return EVERYTHING if bounds is None else (_clamp(bounds[0]), _clamp(bounds[1]))


def cast_range(operand: Range, source: DataType | None, target: DataType) -> Range:
    """The range of a cast: the operand's if it fits the target, else all values of the target."""
    bounds = int_range(target)
    if bounds is None:
        return EVERYTHING
    low, high = _clamp(bounds[0]), _clamp(bounds[1])
    if target is DataType.BOOL or (source is not None and source.is_float_ and target.get_bit() < 64):
        return low, high
    if operand[0] >= low and operand[1] <= high:
        return operand
    return low, high


class ConstIntBoundAnalyzer:
    """Maps integer expressions to their ranges."""

    def __init__(self, leaves: Leaves | None = None) -> None:
        self._leaf_range = _nothing if leaves is None else leaves.range
        self._bound: dict[Var, Range] = {}
        self._memo = Memo()
        self.version = 0  # counts changes of what is known
        self.visits = 0  # counts nodes, for tests of growth

    def __call__(self, expr: Expr) -> ConstIntBound:
        return ConstIntBound(*self.range(expr))

    def range(self, expr: Expr) -> Range:
        """The bound of ``expr`` as a pair."""
        found = self._memo.get(expr)
        return self._memo.fill(expr, self._visit) if found is None else found  # type: ignore[no-any-return]

    def bind(self, var: Var, min_val: int, max_val_exclusive: int) -> None:
        """``min_val <= var < max_val_exclusive``."""
        if max_val_exclusive <= min_val:
            raise ValueError(f"bind: the range [{min_val}, {max_val_exclusive}) is empty")
        self._set(var, (_clamp(min_val), _clamp(max_val_exclusive - 1)))

    def update(self, var: Var, bound: ConstIntBound) -> None:
        """Replace what is known of ``var``."""
        if bound.min_value > bound.max_value:
            raise ValueError(f"update: {bound} is empty")
        self._set(var, (_clamp(bound.min_value), _clamp(bound.max_value)))

    def unbind(self, var: Var) -> None:
        """Return to what the dtype says."""
        self._set(var, None)

    def _set(self, var: Var, bound: Range | None) -> None:
        if self._bound.get(var) == bound:
            return
        if bound is None:
            del self._bound[var]
        else:
            self._bound[var] = bound
        self.version += 1
        self._memo.clear()

    def enter(self, constraint: Expr) -> tuple[Callable[[], None] | None, bool]:
        """Assume ``constraint``: what ends it (None if nothing was learned), and whether it can be true at all."""
        undo: list[tuple[Var, Range | None]] = []
        feasible = True
        for part in conjuncts(constraint):
            for var, bound in self._learn(part):
                known = self.range(var)
                tight = max(known[0], bound[0]), min(known[1], bound[1])
                if tight[0] > tight[1]:
                    feasible = False
                elif tight != known:
                    undo.append((var, self._bound.get(var)))
                    self._set(var, tight)
        if not undo:
            return None, feasible

        def leave() -> None:
            for var, bound in reversed(undo):
                self._set(var, bound)

        return leave, feasible

    def _learn(self, part: Any) -> list[tuple[Any, Range]]:
        found = []
        cls = type(part)
        if cls in _LIMITS and is_integer(part.left) and is_integer(part.right):
            if isinstance(part.left, Var):
                found.append((part.left, _LIMITS[cls](self.range(part.right), self.range(part.left))))
            if isinstance(part.right, Var):
                found.append((part.right, _LIMITS[MIRROR[cls]](self.range(part.left), self.range(part.right))))
        return found

    def _visit(self, e: Any) -> None:
        self.visits += 1
        self._memo[e] = self._evaluate(e)

    def _evaluate(self, e: Any) -> Range:
        cls = type(e)
        if cls is x.ConstInt or cls is x.ConstBool:
            value = _clamp(int(e.value))
            return value, value
        if isinstance(e, Var):
            found = self._bound.get(e) or self._leaf_range(e)
            return dtype_range(scalar_dtype(e)) if found is None else found
        if cls is x.ConstFloat:
            return (_clamp(math.floor(e.value)), _clamp(math.ceil(e.value))) if math.isfinite(e.value) else EVERYTHING
        memo = self._memo
        binary = _BINARY.get(cls)
        if binary is not None:
            return binary(memo[e.left], memo[e.right])
        if cls is x.Neg:
            return _negative(memo[e.operand])
        if cls is x.Abs:
            return _abs(memo[e.operand])
        if cls is x.Not:
            return _UNIT
        if cls is x.Cast:
            return cast_range(memo[e.operand], scalar_dtype(e.operand), e.dtype)
        return self._leaf_range(e) or EVERYTHING


def _nothing(_e: Any) -> None:
    return None


def _below(limit: Range, _known: Range) -> Range:
    return -INF, (INF if limit[1] == INF else limit[1] - 1)


def _above(limit: Range, _known: Range) -> Range:
    return (-INF if limit[0] == -INF else limit[0] + 1), INF


def _unequal(limit: Range, known: Range) -> Range:
    """Only the loss of an end point can be expressed."""
    if limit[0] == limit[1] and abs(limit[0]) != INF:
        if known[0] == limit[0]:
            return known[0] + 1, known[1]
        if known[1] == limit[0]:
            return known[0], known[1] - 1
    return known


# What ``var OP e`` says about var, from the range of e and that of var.
_LIMITS: dict[type, Callable[[Range, Range], Range]] = {
    x.Lt: _below,
    x.Le: lambda limit, _known: (-INF, limit[1]),
    x.Gt: _above,
    x.Ge: lambda limit, _known: (limit[0], INF),
    x.Eq: lambda limit, _known: limit,
    x.Ne: _unequal,
}
# ``a OP b`` is ``b MIRROR[OP] a``.
MIRROR: dict[type, type] = {x.Lt: x.Gt, x.Le: x.Ge, x.Gt: x.Lt, x.Ge: x.Le, x.Eq: x.Eq, x.Ne: x.Ne}

__all__ = ["MIRROR", "ConstIntBound", "ConstIntBoundAnalyzer", "cast_range", "dtype_range"]
