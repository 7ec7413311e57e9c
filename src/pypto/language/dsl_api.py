"""Loops, yields, scopes and directives. Bodies are read as source; executed directly, these do what is harmless."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any, Generic, NoReturn, TypeAlias, TypeVar, overload

from pypto.ir.dtype import DataType
from pypto.ir.enums import Level, Role, SplitMode
from pypto.ir.expr import Expr

from .typing import Scalar

RangeArg: TypeAlias = int | Scalar | Expr
CondArg: TypeAlias = bool | Scalar | Expr
ExprType: TypeAlias = int | float | bool | Scalar | Expr

T = TypeVar("T")
W = TypeVar("W")
T1 = TypeVar("T1")
T2 = TypeVar("T2")
T3 = TypeVar("T3")
T4 = TypeVar("T4")
T5 = TypeVar("T5")


# --- loops ------------------------------------------------------------------------------------------------------------


class RangeIterator(Generic[T]):
    """What ``pl.range`` and its kin give: iterates like ``range``, with ``init_values`` over ``(i, init_values)``."""

    def __init__(
        self,
        start: RangeArg,
        stop: RangeArg,
        step: RangeArg = 1,
        init_values: Any = None,
        pipeline_stages: int | None = None,
    ) -> None:
        self.start = start
        self.stop = stop
        self.step = step
        self.init_values = init_values
        self.pipeline_stages = pipeline_stages

    def __iter__(self) -> Iterator[T]:
        for i in builtins.range(self.start, self.stop, self.step):  # type: ignore[arg-type]
            yield i if self.init_values is None else (i, self.init_values)  # type: ignore[misc]


def _iterator(name: str, args: tuple[Any, ...], init_values: Any = None, stages: int | None = None) -> Any:
    if not 1 <= len(args) <= 3:
        raise ValueError(f"{name}() takes 1 to 3 positional arguments, got {len(args)}")
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    return RangeIterator(start, stop, step, init_values, stages)


@overload
def range(*args: RangeArg, init_values: None = None) -> RangeIterator[int]: ...


@overload
def range(*args: RangeArg, init_values: W) -> RangeIterator[tuple[int, W]]: ...


def range(*args: RangeArg, init_values: Any = None) -> Any:
    """A sequential loop ``pl.range([start,] stop[, step])``, carrying ``init_values`` if given."""
    return _iterator("range", args, init_values)


@overload
def parallel(*args: RangeArg, init_values: None = None) -> RangeIterator[int]: ...


@overload
def parallel(*args: RangeArg, init_values: W) -> RangeIterator[tuple[int, W]]: ...


def parallel(*args: RangeArg, init_values: Any = None) -> Any:
    """A loop whose iterations are independent."""
    return _iterator("parallel", args, init_values)


def unroll(*args: int) -> RangeIterator[int]:
    """A loop that the compiler unrolls; its bounds are compile-time integers."""
    return _iterator("unroll", args)  # type: ignore[no-any-return]


@overload
def pipeline(*args: RangeArg, stage: int, init_values: None = None) -> RangeIterator[int]: ...


@overload
def pipeline(*args: RangeArg, stage: int, init_values: W) -> RangeIterator[tuple[int, W]]: ...


def pipeline(*args: RangeArg, stage: int, init_values: Any = None) -> Any:
    """A loop of which ``stage`` iterations are in flight at once."""
    if isinstance(stage, bool) or not isinstance(stage, int) or stage <= 0:
        raise ValueError(f"pipeline() stage must be a positive integer, got {stage!r}")
    return _iterator("pipeline", args, init_values, stage)


class WhileIterator(Generic[W]):
    """What ``pl.while_`` gives: yields the initial values once."""

    def __init__(self, init_values: W) -> None:
        self.init_values = init_values

    def __iter__(self) -> Iterator[W]:
        yield self.init_values


def while_(*, init_values: Any = None) -> WhileIterator[Any]:
    """A loop that carries ``init_values`` and goes on while the ``pl.cond(...)`` at its head holds."""
    if init_values is None:
        raise ValueError("while_() requires init_values")
    return WhileIterator(init_values)


@overload
def yield_(value: T1, /) -> T1: ...


@overload
def yield_(value1: T1, value2: T2, /) -> tuple[T1, T2]: ...


@overload
def yield_(value1: T1, value2: T2, value3: T3, /) -> tuple[T1, T2, T3]: ...


@overload
def yield_(value1: T1, value2: T2, value3: T3, value4: T4, /) -> tuple[T1, T2, T3, T4]: ...


@overload
def yield_(value1: T1, value2: T2, value3: T3, value4: T4, value5: T5, /) -> tuple[T1, T2, T3, T4, T5]: ...


@overload
def yield_(*values: Any) -> Any: ...


def yield_(*values: Any) -> Any:
    """The values that a loop iteration or a branch hands on."""
    return values[0] if len(values) == 1 else values


def cond(condition: CondArg) -> None:
    """The condition of a ``pl.while_`` loop: its first statement."""


# --- constants and directives -----------------------------------------------------------------------------------------


def const(value: T, dtype: DataType) -> T:
    """A constant of an element type."""
    return value


def static_print(*args: Any) -> None:
    """Print a description of the arguments while the body is parsed."""


def static_assert(condition: CondArg, msg: str = "") -> None:
    """Refuse the program if a compile-time condition does not hold."""


def func_attr(attrs: dict[str, Any]) -> None:
    """Set attributes of the function; stands before every other statement."""


# --- scopes -----------------------------------------------------------------------------------------------------------


class ClusterContext:
    """What ``pl.cluster`` gives."""

    def __init__(self, name_hint: str = "") -> None:
        self.name_hint = name_hint

    def __enter__(self) -> ClusterContext:
        return self

    def __exit__(self, *exc_info: object) -> None:
        return None


def cluster(*, name_hint: str = "") -> ClusterContext:
    """Work of the cube core and the vector cores of one core group, launched together."""
    return ClusterContext(name_hint)


class SpmdContext:
    """What ``pl.spmd`` gives."""

    def __init__(
        self,
        core_num: RangeArg,
        sync_start: bool = False,
        name_hint: str = "",
        optimizations: list[Any] | None = None,
        deps: Any = None,
        allow_early_resolve: bool = False,
        predicate: CondArg | None = None,
    ) -> None:
        self.core_num = core_num
        self.sync_start = sync_start
        self.name_hint = name_hint
        self.optimizations = optimizations
        self.deps = deps
        self.allow_early_resolve = allow_early_resolve
        self.predicate = predicate

    def __enter__(self) -> SpmdContext:
        return self

    def __exit__(self, *exc_info: object) -> None:
        return None

    def __iter__(self) -> NoReturn:
        raise RuntimeError("the pl.spmd loop form is only valid inside @pl.function or @pl.program bodies")


def spmd(
    core_num: RangeArg,
    *,
    sync_start: bool = False,
    name_hint: str = "",
    optimizations: list[Any] | None = None,
    deps: Any = None,
    allow_early_resolve: bool = False,
    predicate: CondArg | None = None,
) -> SpmdContext:
    """Run the body as ``core_num`` blocks: ``for block in pl.spmd(n):`` or ``with pl.spmd(n):``."""
    if isinstance(core_num, bool) or not isinstance(core_num, (int, Scalar, Expr)):
        raise ValueError(f"spmd() core_num must be an integer or an integer expression, got {core_num!r}")
    if isinstance(core_num, int) and core_num <= 0:
        raise ValueError(f"spmd() core_num must be a positive integer, got {core_num}")
    return SpmdContext(core_num, sync_start, name_hint, optimizations, deps, allow_early_resolve, predicate)


class SplitAivContext:
    """What ``pl.split_aiv`` gives."""

    def __init__(self, n: int, mode: SplitMode) -> None:
        self.n = n
        self.mode = mode

    def __iter__(self) -> NoReturn:
        raise RuntimeError("the pl.split_aiv loop form is only valid inside @pl.function or @pl.program bodies")


def split_aiv(n: int, *, mode: SplitMode) -> SplitAivContext:
    """Run the body once on each of the two vector cores of a core group: ``for aiv in pl.split_aiv(2, mode=...):``."""
    if isinstance(n, bool) or not isinstance(n, int) or n != 2:
        raise ValueError(f"split_aiv() requires n == 2, got {n!r}")
    if not isinstance(mode, SplitMode):
        raise ValueError(f"split_aiv() mode must be a pl.SplitMode member, got {mode!r}")
    return SplitAivContext(n, mode)


class AtContext:
    """What ``pl.at`` gives."""

    def __init__(
        self,
        level: Level,
        role: Role | None = None,
        optimizations: list[Any] | None = None,
        deps: Any = None,
        no_dep_args: list[Any] | None = None,
        dumps: list[Any] | None = None,
        allow_early_resolve: bool = False,
        name_hint: str = "",
        windowize: bool = False,
    ) -> None:
        self.level = level
        self.role = role
        self.optimizations = optimizations
        self.deps = deps
        self.no_dep_args = no_dep_args
        self.dumps = dumps
        self.allow_early_resolve = allow_early_resolve
        self.name_hint = name_hint
        self.windowize = windowize

    def __enter__(self) -> AtContext:
        return self

    def __exit__(self, *exc_info: object) -> None:
        return None


def at(
    level: Level,
    role: Role | None = None,
    *,
    optimizations: list[Any] | None = None,
    deps: Any = None,
    no_dep_args: list[Any] | None = None,
    dumps: list[Any] | None = None,
    allow_early_resolve: bool = False,
    name_hint: str = "",
    windowize: bool = False,
) -> AtContext:
    """Run the body at a level of the machine; at ``CORE_GROUP`` it becomes a kernel."""
    return AtContext(level, role, optimizations, deps, no_dep_args, dumps, allow_early_resolve, name_hint, windowize)
