"""The common part of the objects that stand for IR values in Python code."""

from __future__ import annotations

from typing import Any, ClassVar

from pypto.ir.expr import Expr


class DslValue:
    """Wraps an IR expression (``X(expr=e)``), or only describes a type (``X[...]``): an *annotation-only* object."""

    __slots__ = ("_expr",)
    _expr: Expr | None
    _unwrap_error: ClassVar[type[Exception]] = ValueError

    def _hold(self, expr: Any) -> None:
        if expr is not None and not isinstance(expr, Expr):
            raise TypeError(f"{type(self).__name__}: expr must be an ir.Expr, got {type(expr).__name__}")
        self._expr = expr

    def unwrap(self) -> Expr:
        """The wrapped expression; an annotation-only object has none."""
        if self._expr is None:
            raise self._unwrap_error(
                f"Cannot unwrap an annotation-only {type(self).__name__}: it describes a type and holds no value"
            )
        return self._expr

    def __repr__(self) -> str:
        name = type(self).__name__
        if self._expr is not None:
            return f"{name}(expr={self._expr})"
        return f"{name}[{', '.join(map(str, self._described()))}]"

    def _described(self) -> tuple[Any, ...]:
        """The elements between the brackets of an annotation-only object."""
        return ()


class ValueOnly(DslValue):
    """Base of the classes that hold one expression and have no parameters: pointers, contexts, handles."""

    __slots__ = ()
    _unwrap_error = RuntimeError

    def __init__(self, expr: Expr | None = None) -> None:
        self._hold(expr)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(" + ("" if self._expr is None else f"expr={self._expr}") + ")"
