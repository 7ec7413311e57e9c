"""Symbolic intervals: the range of an expression with expressions as its ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir import expr as x
from ..ir.dtype import DataType
from ..ir.expr import BinaryExpr, ConstInt, Expr, UnaryExpr, Var
from .bounds import ConstIntBoundAnalyzer
from .fold import fold_const
from .structure import Memo, conjuncts, is_float, is_integer, scalar_dtype

Interval = tuple[Any, Any]  # expressions; None: unbounded
EVERYTHING: Interval = (None, None)


class IntSet:
    """The interval ``[min_value, max_value]`` of expressions; None means unbounded."""

    __slots__ = ("max_value", "min_value")

    def __init__(self, min_value: Expr | None, max_value: Expr | None) -> None:
        self.min_value = min_value
        self.max_value = max_value

    def is_everything(self) -> bool:
        """Whether both sides are unbounded."""
        return self.min_value is None and self.max_value is None

    def is_single_point(self) -> bool:
        """Whether both ends are the same object."""
        return self.min_value is not None and self.min_value is self.max_value

    def is_nothing(self) -> bool:
        """Never: an empty interval is not represented."""
        return False

    @staticmethod
    def everything() -> IntSet:
        """The unbounded interval."""
        return IntSet(None, None)

    @staticmethod
    def single_point(val: Expr) -> IntSet:
        """``[val, val]``."""
        return IntSet(val, val)

    @staticmethod
    def interval(min_value: Expr | None, max_value: Expr | None) -> IntSet:
        """``[min_value, max_value]``."""
        return IntSet(min_value, max_value)

    def __repr__(self) -> str:
        low = "-inf" if self.min_value is None else str(self.min_value)
        high = "+inf" if self.max_value is None else str(self.max_value)
        return f"IntSet[{low}, {high}]"


def _same(a: Interval) -> bool:
    return a[0] is not None and a[0] is a[1]


class IntSetAnalyzer:
    """Maps expressions to symbolic intervals. An unknown variable is its own bound."""

    def __init__(self, knowledge: Any = None) -> None:
        self._knowledge = knowledge  # an Analyzer, or None: then nothing is simplified
        self._ranges = ConstIntBoundAnalyzer() if knowledge is None else None
        self._known: dict[Var, Interval] = {}
        self._memo = Memo()
        self._seen_version = 0
        self.visits = 0  # counts nodes, for tests of growth

    def __call__(self, expr: Expr) -> IntSet:
        return IntSet(*self.interval(expr))

    def interval(self, expr: Expr) -> Interval:
        """The set of ``expr`` as a pair."""
        if self._knowledge is not None and self._seen_version != self._knowledge.version():
            self._seen_version = self._knowledge.version()
            self._memo.clear()
        found = self._memo.get(expr)
        return self._memo.fill(expr, self._visit, self._children) if found is None else found  # type: ignore[no-any-return]

    def update(self, var: Var, int_set: IntSet) -> None:
        """Replace what is known of ``var``."""
        self._set(var, (int_set.min_value, int_set.max_value))

    def bind(self, var: Var, min_val: Expr, max_val_exclusive: Expr) -> None:
        """``min_val <= var <= max_val_exclusive - 1``."""
        self._set(var, (min_val, self._shifted(max_val_exclusive, x.Sub)))

    def unbind(self, var: Var) -> None:
        """Forget what is known of ``var``."""
        self._set(var, None)

    def _set(self, var: Var, interval: Interval | None) -> None:
        if interval is None:
            self._known.pop(var, None)
        else:
            self._known[var] = interval
        self._memo.clear()

    # --- constraints --------------------------------------------------------------------------------------------------

    def enter_constraint(self, constraint: Expr) -> Callable[[], None] | None:
        """Assume the comparisons in ``constraint`` that have a variable on a side; what ends that, or None."""
        undo: list[tuple[Any, Interval | None]] = []
        for part in conjuncts(constraint):
            cls = type(part)
            if cls not in _MIRROR or not (is_integer(part.left) and is_integer(part.right)):
                continue
            for var, op, limit in ((part.left, cls, part.right), (part.right, _MIRROR[cls], part.left)):
                if isinstance(var, Var) and var is not limit:
                    before = self._known.get(var)
                    undo.append((var, before))
                    self._set(var, self._tightened(before or EVERYTHING, op, limit))
        if not undo:
            return None

        def leave() -> None:
            for var, interval in reversed(undo):
                self._set(var, interval)
            undo.clear()

        return leave

    def _tightened(self, known: Interval, op: type, limit: Any) -> Interval:
        low, high = known
        if op is x.Eq:
            return limit, limit
        if op is x.Lt or op is x.Le:
            top = self._shifted(limit, x.Sub) if op is x.Lt else limit
            return low, (top if high is None else self._choose(x.Min, high, top))
        bottom = self._shifted(limit, x.Add) if op is x.Gt else limit
        return (bottom if low is None else self._choose(x.Max, low, bottom)), high

    def _shifted(self, e: Any, op: type) -> Any:
        """``e - 1`` or ``e + 1``."""
        dtype = scalar_dtype(e) or DataType.INT64
        return self._made(op, e, ConstInt(1, dtype), dtype)

    # --- evaluation ---------------------------------------------------------------------------------------------------

    def _made(self, cls: Any, a: Any, b: Any, dtype: Any) -> Any:
        node = cls(a, b, dtype)
        if self._knowledge is not None:
            return self._knowledge.rewrite_simplify(node)
        # Alone, nothing is simplified but constants.
        folded = fold_const(node) if type(a) is ConstInt and type(b) is ConstInt else None
        return node if folded is None else folded

    def _range(self, e: Any) -> tuple[int, int]:
        if self._knowledge is not None:
            return self._knowledge.range_of(e)  # type: ignore[no-any-return]
        assert self._ranges is not None
        return self._ranges.range(e)

    def _choose(self, cls: Any, a: Any, b: Any) -> Any:
        """The smaller or larger of two ends: one of them where that is known, else a node."""
        if a is b:
            return a
        dtype = scalar_dtype(a) or DataType.INT64
        if self._knowledge is not None:
            low, high = self._knowledge.range_of(self._knowledge.rewrite_simplify(x.Sub(a, b, dtype)))
            if high <= 0:
                return a if cls is x.Min else b
            if low >= 0:
                return b if cls is x.Min else a
        return self._made(cls, a, b, dtype)

    def _children(self, e: Any) -> tuple[Any, ...]:
        if is_float(e) or type(e) in _UNIT_CLASSES:
            return ()
        if isinstance(e, BinaryExpr):
            return e.left, e.right
        return (e.operand,) if isinstance(e, UnaryExpr) else ()

    def _visit(self, e: Any) -> None:
        self.visits += 1
        self._memo[e] = self._evaluate(e)

    def _evaluate(self, e: Any) -> Interval:
        cls = type(e)
        if isinstance(e, Var):
            return self._known.get(e, (e, e))
        if cls in _CONSTANTS:
            return e, e
        if cls in _UNIT_CLASSES:
            return ConstInt(0, DataType.INT64), ConstInt(1, DataType.INT64)
        if is_float(e):
            return EVERYTHING
        handler = _HANDLERS.get(cls)
        return EVERYTHING if handler is None else handler(self, e)

    def _point_of(self, e: Any, *parts: Interval) -> Interval | None:
        """The point of a node over points: ``e`` itself where the operands are their own bounds."""
        if not all(map(_same, parts)):
            return None
        kids = self._children(e)
        if all(part[0] is kid for part, kid in zip(parts, kids, strict=True)) and self._knowledge is None:
            return e, e
        point = (
            self._made(type(e), parts[0][0], parts[1][0], e.dtype)
            if len(parts) == 2
            else self._negative(parts[0][0], e.dtype)
        )
        return point, point

    def _negative(self, e: Any, dtype: Any) -> Any:
        node = x.Neg(e, dtype)
        if self._knowledge is not None:
            return self._knowledge.rewrite_simplify(node)
        folded = fold_const(node)
        return node if folded is None else folded

    def _ends(self, e: Any, low: tuple[Any, Any], high: tuple[Any, Any], cls: Any = None) -> Interval:
        """An interval from two pairs of operands; a pair with None is unbounded."""
        cls = cls or type(e)
        made = [None if None in map(_kind, pair) else self._made(cls, *pair, e.dtype) for pair in (low, high)]
        return made[0], made[1]

    def _add(self, e: Any) -> Interval:
        a, b = self._memo[e.left], self._memo[e.right]
        return self._point_of(e, a, b) or self._ends(e, (a[0], b[0]), (a[1], b[1]))

    def _sub(self, e: Any) -> Interval:
        a, b = self._memo[e.left], self._memo[e.right]
        return self._point_of(e, a, b) or self._ends(e, (a[0], b[1]), (a[1], b[0]))

    def _neg(self, e: Any) -> Interval:
        a = self._memo[e.operand]
        point = self._point_of(e, a)
        if point is not None:
            return point
        low, high = (None if end is None else self._negative(end, e.dtype) for end in (a[1], a[0]))
        return low, high

    def _mul(self, e: Any) -> Interval:
        a, b = self._memo[e.left], self._memo[e.right]
        point = self._point_of(e, a, b)
        if point is not None:
            return point
        if _same(a):
            a, b = b, a
        if _same(b):
            low, high = self._range(b[0])
            if low >= 0:
                return self._ends(e, (a[0], b[0]), (a[1], b[0]))
            if high <= 0:
                return self._ends(e, (a[1], b[0]), (a[0], b[0]))
            return EVERYTHING
        if self._at_least_zero(a[0]) and self._at_least_zero(b[0]):
            return self._ends(e, (a[0], b[0]), (a[1], b[1]))
        return EVERYTHING

    def _at_least_zero(self, end: Any) -> bool:
        return end is not None and self._range(end)[0] >= 0

    def _floor_div(self, e: Any) -> Interval:
        a, b = self._memo[e.left], self._memo[e.right]
        if not _positive(b):
            return EVERYTHING
        return self._point_of(e, a, b) or self._ends(e, (a[0], b[0]), (a[1], b[0]))

    def _floor_mod(self, e: Any) -> Interval:
        b = self._memo[e.right]
        if not _positive(b):
            return EVERYTHING
        return ConstInt(0, DataType.INT64), ConstInt(b[0].value - 1, DataType.INT64)

    def _extremum(self, e: Any) -> Interval:
        a, b = self._memo[e.left], self._memo[e.right]
        cls = type(e)
        if self._knowledge is None:
            point = self._point_of(e, a, b)
            if point is not None:
                return point
        ends = []
        for i in (0, 1):
            if a[i] is None or b[i] is None:
                # The smaller of two has the upper end of either, but needs both lower ends.
                known = b[i] if a[i] is None else a[i]
                ends.append(known if (cls is x.Min) == (i == 1) else None)
            else:
                ends.append(self._choose(cls, a[i], b[i]))
        if _same(a) and _same(b):
            return ends[0], ends[0]
        return ends[0], ends[1]

    def _cast(self, e: Any) -> Interval:
        source, target = scalar_dtype(e.operand), e.dtype
        if source is None or not source.is_int_ or not target.is_int_ or source.get_bit() > target.get_bit():
            return EVERYTHING
        return self._memo[e.operand] if source.is_signed_ == target.is_signed_ else EVERYTHING


def _kind(end: Any) -> Any:
    return None if end is None else type(end)


def _positive(b: Interval) -> bool:
    return type(b[0]) is ConstInt and b[0] is b[1] and b[0].value > 0


_CONSTANTS = (x.ConstInt, x.ConstFloat, x.ConstBool)
_UNIT_CLASSES = frozenset((*x.COMPARISONS, x.And, x.Or, x.Xor, x.Not))
_MIRROR: dict[type, type] = {x.Lt: x.Gt, x.Le: x.Ge, x.Gt: x.Lt, x.Ge: x.Le, x.Eq: x.Eq}
_HANDLERS: dict[type, Callable[[IntSetAnalyzer, Any], Interval]] = {
    x.Add: IntSetAnalyzer._add,
    x.Sub: IntSetAnalyzer._sub,
    x.Neg: IntSetAnalyzer._neg,
    x.Mul: IntSetAnalyzer._mul,
    x.FloorDiv: IntSetAnalyzer._floor_div,
    x.FloorMod: IntSetAnalyzer._floor_mod,
    x.Min: IntSetAnalyzer._extremum,
    x.Max: IntSetAnalyzer._extremum,
    x.Cast: IntSetAnalyzer._cast,
}

__all__ = ["IntSet", "IntSetAnalyzer"]
