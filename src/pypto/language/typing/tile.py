"""``pl.Tile``: a tile in on-chip memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pypto.ir.dtype import DataType
from pypto.ir.enums import MemorySpace
from pypto.ir.expr import Expr
from pypto.ir.expr import MemRef as IrMemRef
from pypto.ir.views import TileView

from .operators import ArrayOperators


class TileMeta(type):
    """Makes ``Tile[...]`` an annotation-only object."""

    def __getitem__(cls, item: Any) -> Tile:
        """``[shape, dtype]``, then a memref, a memory space and a view, each at most once and in any order."""
        parts = item if type(item) is tuple else (item,)
        if not 2 <= len(parts) <= 5:
            raise TypeError(
                f"{cls.__name__} subscript requires [shape, dtype], optionally followed by a memref, a memory space "
                f"and a tile view, got {len(parts)} element(s)"
            )
        extras: dict[str, Any] = {}
        for extra in parts[2:]:
            if isinstance(extra, IrMemRef):
                extras["memref"] = extra
            elif isinstance(extra, MemorySpace):
                extras["memory_space"] = extra
            elif isinstance(extra, TileView):
                extras["tile_view"] = extra
            # Anything else is wrong; the parser says so at its place in the source.
        return cls(parts[0], parts[1], _annotation_only=True, **extras)  # type: ignore[no-any-return]


class Tile(ArrayOperators, metaclass=TileMeta):
    """``Tile[[rows, cols], pl.FP32, pl.Mem.Vec]`` annotates; ``Tile(expr=e)`` wraps an expression."""

    __slots__ = ("dtype", "memory_space", "memref", "shape", "tile_view")
    shape: Sequence[Any] | None
    dtype: DataType | None
    memref: IrMemRef | None
    memory_space: MemorySpace | None
    tile_view: TileView | None

    def __init__(
        self,
        shape: Sequence[Any] | None = None,
        dtype: DataType | None = None,
        expr: Expr | None = None,
        memref: IrMemRef | None = None,
        memory_space: MemorySpace | None = None,
        tile_view: TileView | None = None,
        _annotation_only: bool = False,
    ) -> None:
        if expr is None:
            if shape is None or dtype is None:
                raise ValueError(f"{type(self).__name__} requires expr, or both shape and dtype")
        elif _annotation_only:
            raise ValueError(f"an annotation-only {type(self).__name__} holds no expr")
        self._hold(expr)
        values = {
            "shape": shape,
            "dtype": dtype,
            "memref": memref,
            "memory_space": memory_space,
            "tile_view": tile_view,
        }
        for name, value in values.items():
            if value is None and expr is not None:
                value = getattr(expr.type, name, None)
            setattr(self, name, value)

    def _described(self) -> tuple[Any, ...]:
        extras = (self.memref, self.memory_space, self.tile_view)
        return (self.shape, self.dtype, *(extra for extra in extras if extra is not None))
