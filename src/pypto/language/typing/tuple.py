"""``pl.Tuple``: several values as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class TupleMeta(type):
    """Makes ``Tuple[...]`` an annotation-only object."""

    def __getitem__(cls, item: Any) -> Tuple:
        return cls(item if type(item) is tuple else (item,))  # type: ignore[no-any-return]


class Tuple(metaclass=TupleMeta):
    """``Tuple[T1, T2]``, ``Tuple[()]``, or ``Tuple([T1, T2])``: annotates only."""

    __slots__ = ("types",)
    types: tuple[Any, ...]

    def __init__(self, types: Sequence[Any]) -> None:
        self.types = tuple(types)

    def __repr__(self) -> str:
        return f"Tuple[{', '.join(map(repr, self.types)) or '()'}]"
