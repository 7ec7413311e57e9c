"""What a generated function knows at a point of its body: names, types, and which tensors may share storage."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Ty:
    """``kind``: scalar, tensor, tile, task (an id) or tasks (an array of ids). ``dtype``: its name in ``pl``."""

    kind: str
    dtype: str = ""
    shape: tuple[int, ...] = ()

    def __str__(self) -> str:
        if self.kind == "scalar":
            return f"pl.Scalar[pl.{self.dtype}]"
        return f"pl.{self.kind.capitalize()}[{list(self.shape)}, pl.{self.dtype}]"

    @property
    def shaped(self) -> bool:
        return self.kind in ("tensor", "tile")

    def tile(self) -> Ty:
        return replace(self, kind="tile")

    def tensor(self) -> Ty:
        return replace(self, kind="tensor")


ROWS, COLS = 8, 16
INDEX, INT32, FLOAT, BOOL = (Ty("scalar", d) for d in ("INDEX", "INT32", "FP32", "BOOL"))
TASK = Ty("task", "TASK_ID")
F32 = Ty("tensor", "FP32", (ROWS, COLS))
I32 = Ty("tensor", "INT32", (ROWS, COLS))
TALL = Ty("tensor", "FP32", (2 * ROWS, COLS))  # two bands of F32
FLAGS = Ty("tensor", "INT32", (ROWS,))


class Root:
    """Storage that tensor or tile names may share. ``fixed``: never written by these names (an In parameter).
    ``touched``: some task was launched on it; ``read``: some task reads it. ``level``: how many loops are around its
    creation."""

    __slots__ = ("fixed", "level", "read", "touched")

    def __init__(self, level: int, fixed: bool = False) -> None:
        self.level = level
        self.fixed = fixed
        self.touched = self.read = False

    @classmethod
    def earlier(cls, level: int) -> Root:
        """Whatever an earlier iteration left behind: tasks that nobody knows here may still be writing it."""
        found = cls(level, True)
        found.touched = True
        return found


@dataclass(frozen=True)
class Value:
    """What a name holds. ``writable``: may be updated in place. ``full``: every element is defined. ``limit``: an
    INDEX scalar in ``0 .. limit - 1``."""

    type: Ty
    roots: frozenset[Root] = frozenset()
    writable: bool = False
    full: bool = True
    limit: int | None = None


class Env:
    """``live``: names that surely have a value here. ``bound``: the type that the parser knows a name by. ``promised``:
    the type of names that get their first value at the end of a construct that is open."""

    def __init__(self) -> None:
        self.live: dict[str, Value] = {}
        self.bound: dict[str, Ty] = {}
        self.promised: dict[str, Ty] = {}

    def bind(self, name: str, value: Value) -> None:
        self.promised.pop(name, None)
        self.live[name] = value
        self.bound[name] = value.type

    def of(self, kind: Ty, full: bool = True) -> list[str]:
        """Names of values of a type."""
        return [n for n, v in self.live.items() if v.type == kind and (v.full or not full)]

    def sharing(self, roots: Iterable[Root], but: str = "") -> list[str]:
        """Other names that may stand for this storage."""
        wanted = frozenset(roots)
        return [n for n, v in self.live.items() if n != but and not wanted.isdisjoint(v.roots)]


Live = dict[str, Value]


def merge(paths: list[Live]) -> Live:
    """What is known where several paths meet. No path: nothing is reached, and anything may be assumed."""
    first, *others = paths
    found: Live = {}
    for name, value in first.items():
        known = value
        for other in others:
            there = other.get(name)
            if there is value and known is value:
                continue
            if there is None or there.type != known.type:
                break
            known = Value(
                known.type,
                known.roots | there.roots,
                known.writable and there.writable,
                known.full and there.full,
                None if None in (known.limit, there.limit) else max(known.limit or 0, there.limit or 0),
            )
        else:
            found[name] = known
    return found
