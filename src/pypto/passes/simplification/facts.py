"""What is known of the scalars of a function wherever they are: what was assigned to them, ranges, residues."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from typing import Any

from ...arith.analyzer import Analyzer
from ...arith.bounds import EVERYTHING, INF, dtype_range
from ...arith.leaves import Leaves
from ...arith.structure import is_integer, operands, post_order, scalar_dtype
from ...ir import expr as x
from ...ir.dtype import DataType
from ...ir.expr import ConstInt, Expr
from .forms import OPERATORS, VARIABLES, rebuilt, variables_of

# Results that can't be negative, beside the extents of tensors.
_COUNTS = frozenset(
    f"{level}.{name}"
    for level in ("tensor", "tile")
    for name in ("dim", "get_block_idx", "get_block_num", "get_subblock_idx")
) | {"pld.system.world_size", "pld.system.rank", "pld.system.nranks"}

_ANY_RESIDUE = (1, 0)
_EXPANSION = 64  # how large a condition may become when variables are replaced by what they were assigned
_EXPANSION_ROUNDS = 3

_Fact = tuple[int, int]  # a range or a residue


class ScalarFacts(Leaves):
    """Facts that hold everywhere, and the analyzers that use them.

    ``replaced`` are the variables for which something else stands; nothing is remembered of ``reassigned`` variables.
    """

    def __init__(self, replaced: Mapping[Any, Any], reassigned: Container[Any]) -> None:
        self._replaced = replaced
        self._reassigned = reassigned
        self._values: dict[Any, Expr] = {}  # what was assigned to scalars
        self._loops: dict[Any, tuple[Expr, Expr, Expr]] = {}  # start, stop and step of loop variables
        self._ranges: dict[Any, tuple[int, int]] = {}  # found when first asked for
        self._residues: dict[Any, tuple[int, int]] = {}
        self._opened_ranges: set[Any] = set()  # variables whose ranges were asked for
        self._opened_residues: set[Any] = set()
        self._analyzer: Analyzer | None = None
        self._outside: Analyzer | None = None  # knows no assumptions: for types
        self.for_types = False  # whether what is being rewritten decides a type

    @property
    def analyzer(self) -> Analyzer:
        """The analyzer with the assumptions entered so far."""
        if self._analyzer is None:
            self._analyzer = Analyzer(self)
        return self._analyzer

    def _analyzer_outside(self) -> Analyzer:
        """One that knows no assumptions."""
        if self._outside is None:
            self._outside = Analyzer(self)
        return self._outside

    def _plain(self, e: Any) -> Any:
        """An expression as analyzers get it."""
        raise NotImplementedError

    def _rules(self) -> Analyzer:
        """The analyzer to use."""
        raise NotImplementedError

    def forget_replacements(self) -> None:
        """Variables that stood for something no longer do."""
        for analyzer in (self._analyzer, self._outside):
            if analyzer is not None:
                analyzer.rewrite_simplify.forget()

    # --- what the analyzers ask ---------------------------------------------------------------------------------------

    def range(self, e: Any) -> tuple[int, int] | None:
        found = self._ranges.get(e)
        if found is None:
            found = self._ranges[e] = self._found_range(e)
        return found

    def residue(self, e: Any) -> tuple[int, int] | None:
        found = self._residues.get(e)
        if found is None and (e in self._values or e in self._loops):
            found = self._residues[e] = self._resolved(e, self._residues, self._opened_residues, self._found_residue)
        return found

    def _found_range(self, e: Any) -> tuple[int, int]:
        if e in self._values or e in self._loops:
            return self._resolved(e, self._ranges, self._opened_ranges, self._assigned_range)
        if type(e) is x.Call and e.op.name in _COUNTS:
            return 0, INF
        dtype = scalar_dtype(e)
        # An INDEX may be a difference: only what is known to be a position or an extent is never negative.
        return EVERYTHING if dtype is None or dtype is DataType.INDEX else dtype_range(dtype)

    # --- facts --------------------------------------------------------------------------------------------------------

    def is_size(self, var: Any) -> None:
        """The variable is an extent, and so not negative."""
        self._ranges[var] = (0, INF)

    def define(self, var: Any, value: Expr) -> None:
        """``var`` was assigned ``value``, here and nowhere else."""
        self._values[var] = value

    def loop(self, var: Any, start: Expr, stop: Expr, step: Expr) -> None:
        """``var`` counts from ``start`` to ``stop``, here and nowhere else."""
        self._loops[var] = start, stop, step

    def _resolved(
        self, root: Any, known: dict[Any, _Fact], opened: set[Any], find: Callable[[Any], _Fact | None]
    ) -> _Fact:
        """The range or residue of an assigned or loop variable, by what holds everywhere.

        Long chains of variables are followed without recursion: what a value depends on comes first.
        """
        unknown = EVERYTHING if known is self._ranges else _ANY_RESIDUE
        if root in opened:
            return unknown  # before SSA form, names of one iteration may go round in the next
        waiting = [root]
        values, loops = self._values, self._loops
        while waiting:
            var = waiting[-1]
            if var in known:
                waiting.pop()
            elif var in opened:
                known[var] = find(var) or unknown
            else:
                opened.add(var)
                for part in (values[var],) if var in values else loops[var]:
                    waiting += [v for v in variables_of(part) if v in values or v in loops]
        return known[root]

    def _assigned_range(self, var: Any) -> tuple[int, int] | None:
        if var not in self._values:
            return self._loop_range(*self._loops[var])
        value = self._values[var]
        return self._analyzed_outside(value, Analyzer.range_of) if _is_counted(var, value) else None

    def _found_residue(self, var: Any) -> tuple[int, int] | None:
        if var not in self._values:
            return self._loop_residue(*self._loops[var])
        value = self._values[var]
        return self._analyzed_outside(value, Analyzer.residue_of) if _is_counted(var, value) else None

    def _loop_range(self, start: Any, stop: Any, step: Any) -> tuple[int, int] | None:
        first, bound, stride = (self._analyzed_outside(e, Analyzer.range_of) or EVERYTHING for e in (start, stop, step))
        low, high = _loop_range(first, bound, stride)
        if low > high:  # never runs
            return None
        if first[0] == first[1] and bound[0] == bound[1] and stride[0] == stride[1] > 0:
            high = first[0] + (bound[0] - first[0] - 1) // stride[0] * stride[0]
        return low, high

    def _loop_residue(self, start: Any, stop: Any, step: Any) -> tuple[int, int] | None:
        stride = self._analyzed_outside(step, Analyzer.range_of) or EVERYTHING
        if stride[0] != stride[1] or self._loop_range(start, stop, step) is None:
            return None
        residue = self._analyzed_outside(start, Analyzer.residue_of) or _ANY_RESIDUE
        coeff = math.gcd(residue[0], stride[0])
        return coeff, residue[1] % coeff if coeff else residue[1]

    def _analyzed_outside(self, e: Any, ask: Callable[[Analyzer, Any], _Fact]) -> _Fact | None:
        """What an analyzer says of an expression, by what holds everywhere."""
        outer, self.for_types = self.for_types, True
        try:
            form = self._plain(e)
            return ask(self._rules(), form)
        except ValueError:
            return None
        finally:
            self.for_types = outer

    def _range_of(self, e: Expr) -> tuple[int, int]:
        if type(e) is ConstInt:
            return e.value, e.value
        return self.analyzer.range_of(self._plain(e))

    # --- what variables mean ------------------------------------------------------------------------------------------

    def _expanded(self, e: Any) -> Any:
        """Variables replaced by what they were assigned, a few times over, while the result stays small."""
        if not self._values:
            return e
        for _ in range(_EXPANSION_ROUNDS):
            done: dict[Any, Any] = {}

            def visit(node: Any, done: dict[Any, Any] = done) -> None:
                if type(node) in OPERATORS:
                    done[node] = rebuilt(node, [done[part] for part in operands(node)])
                else:
                    done[node] = self._meaning(node)

            post_order(e, done, visit)
            new = done[e]
            if new is e or len(done) > _EXPANSION:
                break
            e = new
        return e

    def _meaning(self, leaf: Any) -> Any:
        """What was assigned to a variable, if that can be computed again."""
        value = self._values.get(leaf)
        if value is None or not (type(value) in OPERATORS or type(value) in VARIABLES):
            return leaf
        return leaf if scalar_dtype(value) is not scalar_dtype(leaf) or self._is_unstable(value) else value

    def _is_unstable(self, e: Any) -> bool:
        """Whether an expression may mean something else later on."""
        return bool(self._reassigned) and any(var in self._reassigned for var in variables_of(e))


def _is_counted(var: Any, value: Any) -> bool:
    """Whether a variable and what was assigned to it are integers."""
    dtype = scalar_dtype(var)
    return dtype is not None and dtype.is_int_ and is_integer(value)


def _loop_range(first: tuple[int, int], bound: tuple[int, int], stride: tuple[int, int]) -> tuple[int, int]:
    """The values that a loop variable may take."""
    last = bound[1] if bound[1] == INF else bound[1] - 1
    after = bound[0] if bound[0] == -INF else bound[0] + 1
    if stride[0] > 0:
        return first[0], last
    if stride[1] < 0:
        return after, first[1]
    return min(first[0], after), max(first[1], last)


__all__ = ["ScalarFacts"]
