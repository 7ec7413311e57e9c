"""Types, views and memory references."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any, ClassVar

from ...diag.errors import InternalError
from .. import type as t
from ..enums import CompactMode, PadValue, TensorLayout
from ..expr import Expr, MemRef, Var
from ..type import extents_equal, implicit_tile_view
from .calls import CallPrinter
from .literals import quoted


class TypePrinter(CallPrinter):
    """Adds types. Texts are kept by identity of the type object, which the printed nodes keep alive."""

    _TYPES: ClassVar[dict[type, Callable[[Any, Any], str]]] = {}

    def __init__(
        self,
        prefix: str,
        names: Mapping[Expr, str],
        explicit_layout: bool = False,
        bases: Container[Var] = frozenset(),
    ) -> None:
        super().__init__(prefix, names)
        self.explicit_layout = explicit_layout
        self._bases = bases  # variables that may be named in a MemRef; any other base is quoted
        self._type_texts: dict[int, str] = {}

    def type(self, kind: t.Type) -> str:
        """The text of a type."""
        text = self._type_texts.get(id(kind))
        if text is None:
            handler = self._TYPES.get(type(kind))
            if handler is None:
                raise InternalError(f"{type(kind).__name__} has no printed form")
            text = self._type_texts[id(kind)] = handler(self, kind)
        return text

    def use_bases(self, bases: Container[Var]) -> None:
        """Which base pointers have a definition from here on."""
        self._bases = bases
        self._type_texts = {}

    # --- plain types --------------------------------------------------------------------------------------------------

    def _scalar(self, kind: t.ScalarType) -> str:
        return f"{self.pl}Scalar[{self._dtypes[kind.dtype]}]"

    def _array(self, kind: t.ArrayType) -> str:
        return f"{self.pl}Array[{self.extent(kind.extent)}, {self._dtypes[kind.dtype]}]"

    def _tuple(self, kind: t.TupleType) -> str:
        return f"{self.pl}Tuple[{', '.join([self.type(item) for item in kind.types]) or '()'}]"

    # --- tensors and tiles --------------------------------------------------------------------------------------------

    def _tensor(self, kind: t.TensorType) -> str:
        return f"{self.pl}Tensor[{self._tensor_parts(kind)}]"

    def _distributed(self, kind: t.DistributedTensorType) -> str:
        parts = self._tensor_parts(kind)
        if self.explicit_layout and kind.window_buffer is not None:
            parts += f", {quoted('window_buffer=' + self.expr(kind.window_buffer))}"
        return f"pld.DistributedTensor[{parts}]"

    def _tensor_parts(self, kind: t.TensorType) -> str:
        text = f"[{self.extents(kind.shape)}], {self._dtypes[kind.dtype]}"
        if kind.tensor_view is not None:
            text += f", {self._tensor_view(kind, kind.tensor_view)}"
        if kind.memref is not None:
            text += f", {self.memref(kind.memref)}"
        return text

    def _tensor_view(self, kind: t.TensorType, view: t.TensorView) -> str:
        fields = []
        if view.valid_shape and not extents_equal(view.valid_shape, kind.shape):
            fields.append(f"valid_shape=[{self.extents(view.valid_shape)}]")
        if fields or view.stride or view.layout is not TensorLayout.ND or view.pad is not PadValue.null:
            fields.append(f"stride=[{self.extents(view.stride)}]")
            fields.append(f"layout={self._enums[view.layout]}")
        if view.pad is not PadValue.null:
            fields.append(f"pad={self._enums[view.pad]}")
        return f"{self.pl}TensorView({', '.join(fields)})"

    def _tile(self, kind: t.TileType) -> str:
        text = f"{self.pl}Tile[[{self.extents(kind.shape)}], {self._dtypes[kind.dtype]}"
        if kind.memref is not None:
            text += f", {self.memref(kind.memref)}"
        if kind.memory_space is not None:
            text += f", {self._enums[kind.memory_space]}"
        if kind.tile_view is not None or self.explicit_layout:
            text += f", {self._tile_view(kind)}"
        return text + "]"

    def _tile_view(self, kind: t.TileType) -> str:
        implicit = implicit_tile_view(kind.shape, kind.memory_space)
        view = kind.tile_view or implicit
        every = self.explicit_layout
        fields = []
        if view.valid_shape and not extents_equal(view.valid_shape, kind.shape):
            fields.append(f"valid_shape=[{self.extents(view.valid_shape)}]")
        if view.stride:
            fields.append(f"stride=[{self.extents(view.stride)}]")
        if view.start_offset is not None:
            fields.append(f"start_offset={self.extent(view.start_offset)}")
        if every or view.blayout is not implicit.blayout:
            fields.append(f"blayout={self._enums[view.blayout]}")
        if every or view.slayout is not implicit.slayout:
            fields.append(f"slayout={self._enums[view.slayout]}")
        if every or view.fractal != implicit.fractal:
            fields.append(f"fractal={view.fractal}")
        if view.pad is not PadValue.null:
            fields.append(f"pad={self._enums[view.pad]}")
        if view.compact is not CompactMode.null:
            fields.append(f"compact={self.pl}CompactMode.{view.compact.name}")
        return f"{self.pl}TileView({', '.join(fields)})"

    # --- memory references --------------------------------------------------------------------------------------------

    def memref(self, ref: MemRef) -> str:
        """``pl.MemRef(base, offset, size)``, or ``pl.MemRef("name")`` for a declaration of the author."""
        name = self.names.get(ref.base_, ref.base_.name_hint)
        slots = f", slots={ref.slot_count_}" if ref.slot_count_ != 1 else ""
        if ref.is_pinned_:
            text = f"{self.pl}MemRef({quoted(name)}{slots})"
        else:
            base = name if ref.base_ in self._bases else quoted(name)
            text = f"{self.pl}MemRef({base}, {self.expr(ref.byte_offset_)}, {ref.size_}{slots})"
        return text if ref.slot_index_ is None else f"{text}[{self.expr(ref.slot_index_)}]"


def _fixed(text: str) -> Callable[[Any, Any], str]:
    return lambda printer, _kind: text if text.startswith("pld.") else printer.pl + text


TypePrinter._TYPES.update(
    {
        t.ScalarType: TypePrinter._scalar,
        t.TensorType: TypePrinter._tensor,
        t.DistributedTensorType: TypePrinter._distributed,
        t.TileType: TypePrinter._tile,
        t.ArrayType: TypePrinter._array,
        t.TupleType: TypePrinter._tuple,
        t.PtrType: _fixed("Ptr"),
        t.MemRefType: _fixed("MemRefType"),
        t.UnknownType: _fixed("UnknownType"),
        t.PrefetchAsyncContextType: _fixed("PrefetchAsyncContext"),
        t.AsyncEventType: _fixed("AsyncEvent"),
        t.AsyncSessionType: _fixed("AsyncSession"),
        t.WindowBufferType: _fixed("pld.WindowBufferType"),
        t.CommCtxType: _fixed("pld.CommCtxType"),
    }
)
