"""``pl.Tensor``: a tensor in global memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from pypto.ir.dtype import DataType
from pypto.ir.enums import TensorLayout
from pypto.ir.expr import Expr
from pypto.ir.expr import MemRef as IrMemRef
from pypto.ir.views import TensorView

from .operators import ArrayOperators

TensorT = TypeVar("TensorT", bound="Tensor")


class TensorMeta(type):
    """Makes ``Tensor[...]`` an annotation-only object."""

    def __getitem__(cls: type[TensorT], item: Any) -> TensorT:  # type: ignore[misc]
        """``[shape, dtype]``, then a layout or view, then a memref; each of the last two may stand alone."""
        parts = cls._parts(item if type(item) is tuple else (item,))
        if not 2 <= len(parts) <= 4:
            raise TypeError(
                f"{cls.__name__} subscript requires [shape, dtype], [shape, dtype, layout, view or memref] or "
                f"[shape, dtype, layout or view, memref], got {len(parts)} element(s)"
            )
        layout = memref = None
        for extra in parts[2:]:
            if isinstance(extra, IrMemRef):
                memref = extra
            else:
                layout = extra
        return cls(parts[0], parts[1], layout=layout, memref=memref, _annotation_only=True)


class Tensor(ArrayOperators, metaclass=TensorMeta):
    """``Tensor[[rows, cols], pl.FP32]`` annotates; ``Tensor(expr=e)`` wraps an expression.

    ``layout`` is the third element of an annotation: a ``TensorLayout`` or a ``TensorView``.
    """

    __slots__ = ("dtype", "layout", "memref", "shape")
    shape: Sequence[Any] | None
    dtype: DataType | None
    layout: TensorLayout | TensorView | None
    memref: IrMemRef | None

    def __init__(
        self,
        shape: Sequence[Any] | None = None,
        dtype: DataType | None = None,
        expr: Expr | None = None,
        layout: TensorLayout | TensorView | None = None,
        memref: IrMemRef | None = None,
        _annotation_only: bool = False,
    ) -> None:
        if expr is None:
            if shape is None or dtype is None:
                raise ValueError(f"{type(self).__name__} requires expr, or both shape and dtype")
        elif _annotation_only:
            raise ValueError(f"an annotation-only {type(self).__name__} holds no expr")
        self._hold(expr)
        if expr is not None:
            view = getattr(expr.type, "tensor_view", None)
            shape = getattr(expr.type, "shape", None) if shape is None else shape
            dtype = getattr(expr.type, "dtype", None) if dtype is None else dtype
            memref = getattr(expr.type, "memref", None) if memref is None else memref
            layout = view.layout if layout is None and view is not None else layout
        self.shape = shape
        self.dtype = dtype
        self.layout = layout
        self.memref = memref

    @staticmethod
    def _parts(parts: tuple[Any, ...]) -> tuple[Any, ...]:
        """The elements of a subscript that mean something."""
        return parts

    def bind_dynamic(self, dim: int, var: Any) -> None:
        """Declare in the body of an ``@pl.jit`` function that dimension ``dim`` is dynamic; nothing when executed."""

    def _described(self) -> tuple[Any, ...]:
        extras = tuple(extra for extra in (self.layout, self.memref) if extra is not None)
        return (self.shape, self.dtype, *extras)
