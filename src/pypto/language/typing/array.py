"""``pl.Array``: a small on-core array."""

from __future__ import annotations

from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.expr import Expr

from .value import DslValue


class ArrayMeta(type):
    """Makes ``Array[...]`` an annotation-only object."""

    def __getitem__(cls, item: Any) -> Array:
        if type(item) is not tuple or len(item) != 2:
            raise TypeError(f"{cls.__name__} subscript requires [extent, dtype], as in pl.Array[4, pl.TASK_ID]")
        return cls(item[0], item[1], _annotation_only=True)  # type: ignore[no-any-return]


class Array(DslValue, metaclass=ArrayMeta):
    """``Array[4, pl.TASK_ID]`` annotates; ``Array(expr=e)`` wraps an expression."""

    __slots__ = ("dtype", "extent")
    extent: Any
    dtype: DataType | None

    def __init__(
        self,
        extent: Any = None,
        dtype: DataType | None = None,
        expr: Expr | None = None,
        _annotation_only: bool = False,
    ) -> None:
        if expr is None:
            if extent is None or dtype is None:
                raise ValueError("Array requires expr, or both extent and dtype")
        elif _annotation_only:
            raise ValueError("an annotation-only Array holds no expr")
        self._hold(expr)
        if expr is not None:
            extent = getattr(expr.type, "extent", None) if extent is None else extent
            dtype = getattr(expr.type, "dtype", None) if dtype is None else dtype
        self.extent = extent
        self.dtype = dtype

    @property
    def shape(self) -> tuple[Any]:
        """The one dimension."""
        return (self.extent,)

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError("Array subscripts are only available inside @pl.function bodies")

    def __setitem__(self, index: Any, value: Any) -> None:
        raise NotImplementedError("Array subscript assignment is only available inside @pl.function bodies")

    # Without this, Python would iterate by subscripts.
    __iter__ = None

    def _described(self) -> tuple[Any, ...]:
        return (self.extent, self.dtype)
