"""``pl.Out`` and ``pl.InOut``: what a function does to a parameter."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from pypto.ir.enums import ParamDirection

T = TypeVar("T")


class DirectionMeta(type):
    """Makes ``Out[T]`` an object with ``inner`` and ``direction``."""

    def __getitem__(cls, inner: T) -> Any:  # at run time the direction; to a reader the type T
        return cls(inner)


class Out(metaclass=DirectionMeta):
    """``Out[T]``: the function writes the parameter and does not read it."""

    __slots__ = ("inner",)
    direction: ClassVar[ParamDirection] = ParamDirection.Out
    inner: Any

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.inner!r}]"


class InOut(metaclass=DirectionMeta):
    """``InOut[T]``: the function reads and writes the parameter."""

    __slots__ = ("inner",)
    direction: ClassVar[ParamDirection] = ParamDirection.InOut
    inner: Any

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    __repr__ = Out.__repr__
