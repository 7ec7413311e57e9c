"""The views that shaped types carry: how a tensor lies in its buffer, how a tile lies in on-chip memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from .enums import CompactMode, MemorySpace, PadValue, TensorLayout, TileLayout
from .extents import Extent, as_extent, extent_equal, extent_key, extents_equal, extents_key, normalize_extents
from .node import EMPTY_LIST, FrozenList, wrong_kind

if TYPE_CHECKING:
    from .expr import Expr


class TensorView:
    """How a tensor lies in its buffer: strides, layout, valid region, pad value of what lies outside.

    Fields may be assigned, until the view belongs to a type: a type keeps a copy of its own that refuses.
    """

    __slots__ = ("_frozen", "layout", "pad", "stride", "valid_shape")

    stride: FrozenList[Expr]
    layout: TensorLayout
    valid_shape: FrozenList[Expr]
    pad: PadValue
    _frozen: bool

    def __init__(
        self,
        stride: Sequence[Extent] | None = None,
        layout: TensorLayout | None = None,
        valid_shape: Sequence[Extent] | None = None,
        pad: PadValue = PadValue.null,
    ) -> None:
        if layout is None:
            if stride is not None or valid_shape is not None or pad is not PadValue.null:
                raise ValueError("TensorView: layout is required when any other argument is given")
            layout = TensorLayout.ND
        if type(layout) is not TensorLayout:
            wrong_kind("TensorView", "layout", TensorLayout, layout)
        if type(pad) is not PadValue:
            wrong_kind("TensorView", "pad", PadValue, pad)
        _set(self, "stride", normalize_extents(stride))
        _set(self, "layout", layout)
        _set(self, "valid_shape", normalize_extents(valid_shape))
        _set(self, "pad", pad)
        _set(self, "_frozen", False)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._frozen:
            raise AttributeError(f"this TensorView belongs to a type: copy it before setting {name!r}")
        if name in ("stride", "valid_shape"):
            value = normalize_extents(value)
        elif name == "layout" and type(value) is not TensorLayout:
            wrong_kind("TensorView", "layout", TensorLayout, value)
        elif name == "pad" and type(value) is not PadValue:
            wrong_kind("TensorView", "pad", PadValue, value)
        _set(self, name, value)

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, TensorView)
            and self.layout is other.layout
            and self.pad is other.pad
            and extents_equal(self.stride, other.stride)
            and extents_equal(self.valid_shape, other.valid_shape)
        )

    def _key(self) -> tuple[Any, ...]:
        return (extents_key(self.stride), self.layout.value, extents_key(self.valid_shape), self.pad.value)

    def __hash__(self) -> int:
        return hash(self._key())


class TileView:
    """How a tile lies in its memory: block and inner layout, fractal size, valid region, pad. Immutable."""

    __slots__ = ("blayout", "compact", "fractal", "pad", "slayout", "start_offset", "stride", "valid_shape")

    valid_shape: FrozenList[Expr]
    stride: FrozenList[Expr]
    start_offset: Expr | None
    blayout: TileLayout
    slayout: TileLayout
    fractal: int
    pad: PadValue
    compact: CompactMode

    def __init__(
        self,
        valid_shape: Sequence[Extent] | None = None,
        stride: Sequence[Extent] | None = None,
        start_offset: Extent | None = None,
        blayout: TileLayout = TileLayout.row_major,
        slayout: TileLayout = TileLayout.none_box,
        fractal: int = 512,
        pad: PadValue = PadValue.null,
        compact: CompactMode = CompactMode.null,
    ) -> None:
        for name, value, wanted in (
            ("blayout", blayout, TileLayout),
            ("slayout", slayout, TileLayout),
            ("fractal", fractal, int),
            ("pad", pad, PadValue),
            ("compact", compact, CompactMode),
        ):
            if not isinstance(value, wanted):
                wrong_kind("TileView", name, wanted, value)
            _set(self, name, value)
        _set(self, "valid_shape", normalize_extents(valid_shape))
        _set(self, "stride", normalize_extents(stride))
        _set(self, "start_offset", None if start_offset is None else as_extent(start_offset))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"TileView is immutable: cannot set {name!r}")

    def replace(self, **changes: Any) -> TileView:
        """A copy with some fields changed."""
        values = {name: getattr(self, name) for name in TileView.__slots__}
        values.update(changes)
        return TileView(**values)

    def same_layout(self, other: TileView) -> bool:
        """Whether all fields but ``valid_shape`` agree."""
        return self is other or (
            self.blayout is other.blayout
            and self.slayout is other.slayout
            and self.fractal == other.fractal
            and self.pad is other.pad
            and self.compact is other.compact
            and extents_equal(self.stride, other.stride)
            and (self.start_offset is None) == (other.start_offset is None)
            and (self.start_offset is None or extent_equal(self.start_offset, other.start_offset))
        )

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, TileView)
            and self.same_layout(other)
            and extents_equal(self.valid_shape, other.valid_shape)
        )

    def _key(self) -> tuple[Any, ...]:
        offset = None if self.start_offset is None else extent_key(self.start_offset)
        return (
            extents_key(self.valid_shape),
            extents_key(self.stride),
            offset,
            self.blayout.value,
            self.slayout.value,
            self.fractal,
            self.pad.value,
            self.compact.value,
        )

    def __hash__(self) -> int:
        return hash(self._key())


_set = object.__setattr__


# --- canonical forms: two types that mean the same hold the same view -------------------------------------------------


def canonical_tensor_view(shape: FrozenList[Expr], view: TensorView) -> TensorView | None:
    """The view as a tensor type of this shape stores it: None when it says nothing."""
    valid = view.valid_shape
    if valid and extents_equal(valid, shape):
        valid = EMPTY_LIST
    if not view.stride and view.layout is TensorLayout.ND and not valid and view.pad is PadValue.null:
        return None
    if view._frozen and valid is view.valid_shape:
        return view
    own = TensorView(view.stride, view.layout, valid, view.pad)
    _set(own, "_frozen", True)
    return own


# memory space -> (block layout or None for "by shape", inner layout, fractal)
_IMPLICIT_LAYOUT: dict[MemorySpace | None, tuple[TileLayout | None, TileLayout, int]] = {
    MemorySpace.Mat: (TileLayout.col_major, TileLayout.row_major, 512),
    MemorySpace.Left: (TileLayout.col_major, TileLayout.row_major, 512),
    MemorySpace.Right: (None, TileLayout.col_major, 512),
    MemorySpace.Acc: (TileLayout.col_major, TileLayout.row_major, 1024),
    MemorySpace.LeftScale: (TileLayout.row_major, TileLayout.row_major, 32),
    MemorySpace.RightScale: (TileLayout.col_major, TileLayout.col_major, 32),
}
_IMPLICIT_CACHE: dict[tuple[Any, ...], TileView] = {}


def is_column_vector(shape: Sequence[Any]) -> bool:
    """Whether a shape is statically ``[r, 1]`` with ``r > 1``: such tiles lie column-major by default."""
    if len(shape) != 2 or getattr(shape[1], "value", None) != 1:
        return False
    rows = getattr(shape[0], "value", None)
    return isinstance(rows, int) and rows > 1


def implicit_tile_view(shape: Sequence[Any], memory_space: MemorySpace | None) -> TileView:
    """The layout that a tile of this shape has in this space when nothing is said (without ``valid_shape``)."""
    column = is_column_vector(shape)
    key = (column, memory_space)
    view = _IMPLICIT_CACHE.get(key)
    if view is None:
        block, inner, fractal = _IMPLICIT_LAYOUT.get(memory_space, (None, TileLayout.none_box, 512))
        if block is None:
            block = TileLayout.col_major if column else TileLayout.row_major
        view = _IMPLICIT_CACHE[key] = TileView(blayout=block, slayout=inner, fractal=fractal)
    return view


def canonical_tile_view(shape: FrozenList[Expr], view: TileView, memory_space: MemorySpace | None) -> TileView | None:
    """The view as a tile type of this shape and space stores it: None when it equals the implicit one."""
    if view.valid_shape and extents_equal(view.valid_shape, shape):
        view = view.replace(valid_shape=EMPTY_LIST)
    if not view.valid_shape and view.same_layout(implicit_tile_view(shape, memory_space)):
        return None
    return view


def boxed_alignment(view: TileView, bits: int) -> tuple[int, int]:
    """Rows and columns to which the physical tile is rounded: the box of its inner layout and fractal."""
    rows_first = view.slayout is TileLayout.row_major
    if view.slayout is TileLayout.none_box:
        return 1, 1
    if view.fractal == 1024:
        return 16, 16
    if view.fractal == 32:
        return (16, 2) if rows_first else (2, 16)
    if view.fractal == 512:
        return (16, 256 // bits) if rows_first else (256 // bits, 16)
    raise ValueError(f"a boxed tile has fractal 32, 512 or 1024, got {view.fractal}")
