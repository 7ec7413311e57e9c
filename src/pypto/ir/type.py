"""Types of expressions, and the views that shaped types carry.

Types, unlike nodes, compare and hash structurally. Extents are expressions; Python ints become INDEX constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from .dtype import DataType
from .enums import CompactMode, MemorySpace, PadValue, TensorLayout, TileLayout
from .node import EMPTY_LIST, FrozenList

if TYPE_CHECKING:
    from .expr import Expr, MemRef, WindowBuffer

Extent = Any  # int or Expr


def _expr_module() -> Any:
    from . import expr

    return expr


def normalize_extents(extents: Sequence[Extent] | None) -> FrozenList[Expr]:
    """Extents as expressions: ints become (shared) INDEX constants."""
    if not extents:
        return EMPTY_LIST
    if type(extents) is FrozenList:
        return extents
    index_const = _expr_module().index_const
    return FrozenList([index_const(e) if type(e) is int else _as_extent(e) for e in extents])


def _as_extent(value: Any) -> Expr:
    expr = _expr_module()
    if isinstance(value, expr.Expr):
        return value  # type: ignore[no-any-return]
    if isinstance(value, int) and not isinstance(value, bool):
        return expr.index_const(int(value))  # type: ignore[no-any-return]
    raise TypeError(f"a shape extent must be an int or an ir.Expr, got {type(value).__name__}")


def extent_equal(a: Any, b: Any) -> bool:
    """Structural equality of two extent expressions; constants by value, variables by identity."""
    if a is b:
        return True
    x = _expr_module()
    ta, tb = type(a), type(b)
    if ta is x.ConstInt:
        return tb is x.ConstInt and bool(a.value == b.value)
    if ta is not tb:
        return False
    if isinstance(a, x.BinaryExpr):
        return extent_equal(a.left, b.left) and extent_equal(a.right, b.right)
    if isinstance(a, x.UnaryExpr):
        return bool(a.type == b.type) and extent_equal(a.operand, b.operand)
    if ta is x.Call:
        return bool(a.op.name == b.op.name) and extents_equal(a.args, b.args)
    if ta is x.MakeTuple:
        return extents_equal(a.elements, b.elements)
    if ta in (x.ConstFloat, x.ConstBool):
        return bool(a.value == b.value)
    return False


def extents_equal(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Pairwise :func:`extent_equal`, with equal length."""
    return a is b or (len(a) == len(b) and all(map(extent_equal, a, b)))


def _extent_key(e: Any) -> Any:
    """A hash key that agrees with :func:`extent_equal`."""
    x = _expr_module()
    if type(e) is x.ConstInt:
        return e.value
    if isinstance(e, x.Var):
        return id(e)
    if isinstance(e, x.BinaryExpr):
        return (type(e).__name__, _extent_key(e.left), _extent_key(e.right))
    return type(e).__name__


def _extents_key(extents: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(map(_extent_key, extents))


class Type:
    """Base of all types. ``==`` is structural, ``str`` is the printed form."""

    __slots__ = ("__weakref__", "_hash")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: cannot set {name!r}")

    def _key(self) -> tuple[Any, ...]:
        return ()

    def _same(self, other: Any) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return type(self) is type(other) and self._same(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        try:
            return self._hash  # type: ignore[has-type, no-any-return]
        except AttributeError:
            value = hash((type(self).__name__, *self._key()))
            object.__setattr__(self, "_hash", value)
            return value

    def __str__(self) -> str:
        from .printer import python_print_type

        return python_print_type(self)

    __repr__ = __str__


class _Marker(Type):
    """A type without fields: all instances are equal, and there is one."""

    __slots__ = ()
    _instance: ClassVar[Any] = None

    def __new__(cls) -> Any:
        if cls.__dict__.get("_instance") is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    @classmethod
    def get(cls) -> Any:
        """The one instance."""
        return cls()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()


class UnknownType(_Marker):
    """Type not known (yet)."""

    __slots__ = ()


class PtrType(_Marker):
    """Base pointer of an allocation."""

    __slots__ = ()


class MemRefType(_Marker):
    """Type of a MemRef."""

    __slots__ = ()


class WindowBufferType(_Marker):
    __slots__ = ()


class CommCtxType(_Marker):
    __slots__ = ()


class PrefetchAsyncContextType(_Marker):
    __slots__ = ()


class AsyncEventType(_Marker):
    __slots__ = ()


class AsyncSessionType(_Marker):
    __slots__ = ()


class ScalarType(Type):
    """A scalar of an element type; ``ScalarType(DataType.TASK_ID)`` is a task handle. One instance per dtype."""

    __slots__ = ("dtype",)
    dtype: DataType
    _cache: ClassVar[dict[DataType, ScalarType]] = {}

    def __new__(cls, dtype: DataType) -> ScalarType:
        found = cls._cache.get(dtype)
        if found is None:
            if not isinstance(dtype, DataType):
                raise TypeError(f"ScalarType requires a DataType, got {type(dtype).__name__}")
            found = super().__new__(cls)
            _set(found, "dtype", dtype)
            cls._cache[dtype] = found
        return found

    def _key(self) -> tuple[Any, ...]:
        return (self.dtype.code(),)

    def _same(self, other: Any) -> bool:
        return self.dtype is other.dtype

    def __reduce__(self) -> tuple[Any, ...]:
        return ScalarType, (self.dtype,)


class TupleType(Type):
    """A tuple of types; may be empty."""

    __slots__ = ("types",)
    types: FrozenList[Type]

    def __init__(self, types: Sequence[Type]) -> None:
        _set(self, "types", FrozenList(types))

    def _key(self) -> tuple[Any, ...]:
        return tuple(self.types)

    def _same(self, other: Any) -> bool:
        return list(self.types) == list(other.types)


class TensorView:
    """How a tensor lies in its buffer: strides, layout, valid region, pad value of what lies outside."""

    __slots__ = ("layout", "pad", "stride", "valid_shape")

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
        self.stride: FrozenList[Expr] = normalize_extents(stride)
        self.layout = layout
        self.valid_shape: FrozenList[Expr] = normalize_extents(valid_shape)
        self.pad = pad

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, TensorView)
            and self.layout is other.layout
            and self.pad is other.pad
            and extents_equal(self.stride, other.stride)
            and extents_equal(self.valid_shape, other.valid_shape)
        )

    def _key(self) -> tuple[Any, ...]:
        return (_extents_key(self.stride), self.layout.value, _extents_key(self.valid_shape), self.pad.value)

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
        _set(self, "valid_shape", normalize_extents(valid_shape))
        _set(self, "stride", normalize_extents(stride))
        _set(self, "start_offset", None if start_offset is None else _as_extent(start_offset))
        _set(self, "blayout", blayout)
        _set(self, "slayout", slayout)
        _set(self, "fractal", fractal)
        _set(self, "pad", pad)
        _set(self, "compact", compact)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"TileView is immutable: cannot set {name!r}")

    def replace(self, **changes: Any) -> TileView:
        """A copy with some fields changed."""
        values = {name: getattr(self, name) for name in TileView.__slots__}
        values.update(changes)
        return TileView(**values)

    def same_layout(self, other: TileView) -> bool:
        """Whether all fields but ``valid_shape`` agree."""
        return (
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
        offset = None if self.start_offset is None else _extent_key(self.start_offset)
        return (
            _extents_key(self.valid_shape),
            _extents_key(self.stride),
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


class ShapedType(Type):
    """Common part of tensors, tiles and arrays: element type, extents, optional placement."""

    __slots__ = ("dtype", "memref", "shape")
    dtype: DataType
    shape: FrozenList[Expr]
    memref: MemRef | None

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        raise TypeError("ShapedType is abstract")

    @property
    def memory_space(self) -> MemorySpace | None:
        return None

    @property
    def valid_extents(self) -> FrozenList[Expr]:
        """The effective valid region: the view's, or the whole shape."""
        return self.shape

    def shares_memref_with(self, other: ShapedType) -> bool:
        """Whether both have a memref and it is the same object."""
        return self.memref is not None and self.memref is other.memref


def _check_packed_fp4(dtype: DataType, shape: Sequence[Any]) -> None:
    if dtype is not DataType.FP4:
        return
    last = shape[-1] if shape else None
    value = getattr(last, "value", None)
    if not isinstance(value, int) or value <= 0 or value % 2:
        raise ValueError("Packed FP4 types require rank >= 1 and a static, positive, even last dimension")


class TensorType(ShapedType):
    """A tensor in global memory. ``tensor_view`` is None for a packed, row-major, fully valid one."""

    __slots__ = ("tensor_view",)
    tensor_view: TensorView | None

    def __init__(
        self,
        shape: Sequence[Extent],
        dtype: DataType,
        memref: MemRef | None = None,
        tensor_view: TensorView | None = None,
    ) -> None:
        dims = normalize_extents(shape)
        _check_packed_fp4(dtype, dims)
        _set(self, "shape", dims)
        _set(self, "dtype", dtype)
        _set(self, "memref", memref)
        _set(self, "tensor_view", None if tensor_view is None else _canonical_tensor_view(dims, tensor_view))

    @property
    def memory_space(self) -> MemorySpace:
        return MemorySpace.DDR

    @property
    def valid_extents(self) -> FrozenList[Expr]:
        view = self.tensor_view
        return view.valid_shape if view is not None and view.valid_shape else self.shape

    def _key(self) -> tuple[Any, ...]:
        view = self.tensor_view
        return (self.dtype.code(), _extents_key(self.shape), None if view is None else view._key())

    def _same(self, other: Any) -> bool:
        return (
            self.dtype is other.dtype
            and extents_equal(self.shape, other.shape)
            and (self.tensor_view is other.tensor_view or self.tensor_view == other.tensor_view)
        )


def _canonical_tensor_view(shape: FrozenList[Expr], view: TensorView) -> TensorView | None:
    valid = view.valid_shape
    if valid and extents_equal(valid, shape):
        valid = EMPTY_LIST
    if not view.stride and view.layout is TensorLayout.ND and not valid and view.pad is PadValue.null:
        return None
    return TensorView(view.stride, view.layout, valid, view.pad)


class DistributedTensorType(TensorType):
    """A tensor that other ranks may reach, optionally bound to a window buffer."""

    __slots__ = ("window_buffer",)
    window_buffer: WindowBuffer | None

    def __init__(
        self,
        shape: Sequence[Extent],
        dtype: DataType,
        memref: Any = None,
        tensor_view: TensorView | None = None,
        window_buffer: WindowBuffer | None = None,
    ) -> None:
        if memref is not None and isinstance(memref, _expr_module().WindowBuffer):
            memref, window_buffer = None, memref
        super().__init__(shape, dtype, memref, tensor_view)
        _set(self, "window_buffer", window_buffer)

    def _key(self) -> tuple[Any, ...]:
        return (*super()._key(), self.window_buffer is None)

    def _same(self, other: Any) -> bool:
        return super()._same(other) and self.window_buffer is other.window_buffer


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
    if len(shape) != 2:
        return False
    rows, cols = getattr(shape[0], "value", None), getattr(shape[1], "value", None)
    return cols == 1 and isinstance(rows, int) and rows > 1


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


_MEMREF_PREFIXES = (
    ("mem_ddr_", MemorySpace.DDR),
    ("mem_vec_", MemorySpace.Vec),
    ("mem_mat_", MemorySpace.Mat),
    ("mem_leftscale_", MemorySpace.LeftScale),
    ("mem_rightscale_", MemorySpace.RightScale),
    ("mem_left_", MemorySpace.Left),
    ("mem_right_", MemorySpace.Right),
    ("mem_acc_", MemorySpace.Acc),
    ("mem_bias_", MemorySpace.Bias),
)


class TileType(ShapedType):
    """A tile in on-chip memory. ``tile_view`` is None when it equals the implicit view of shape and space."""

    __slots__ = ("_memory_space", "tile_view")
    tile_view: TileView | None

    def __init__(
        self,
        shape: Sequence[Extent],
        dtype: DataType,
        memref: MemRef | None = None,
        tile_view: TileView | None = None,
        memory_space: MemorySpace | None = None,
    ) -> None:
        dims = normalize_extents(shape)
        _check_packed_fp4(dtype, dims)
        if memref is not None and memory_space is None:
            memory_space = next((s for p, s in _MEMREF_PREFIXES if memref.name_hint.startswith(p)), None)
            if memory_space is None:
                raise ValueError("TileType with MemRef must have explicit memory_space")
        _set(self, "shape", dims)
        _set(self, "dtype", dtype)
        _set(self, "memref", memref)
        _set(self, "_memory_space", memory_space)
        _set(
            self, "tile_view", None if tile_view is None else _canonical_tile_view(dims, tile_view, memory_space)
        )

    @property
    def memory_space(self) -> MemorySpace | None:
        return self._memory_space  # type: ignore[attr-defined, no-any-return]

    @property
    def valid_extents(self) -> FrozenList[Expr]:
        view = self.tile_view
        return view.valid_shape if view is not None and view.valid_shape else self.shape

    def get_effective_tile_view(self) -> TileView:
        """The stored view or the implicit one, always with the valid region spelled out."""
        view = self.tile_view or implicit_tile_view(self.shape, self.memory_space)
        return view if view.valid_shape else view.replace(valid_shape=self.shape)

    def _key(self) -> tuple[Any, ...]:
        view, space = self.tile_view, self.memory_space
        return (
            self.dtype.code(),
            _extents_key(self.shape),
            None if view is None else view._key(),
            None if space is None else space.value,
        )

    def _same(self, other: Any) -> bool:
        return (
            self.dtype is other.dtype
            and self.memory_space is other.memory_space
            and extents_equal(self.shape, other.shape)
            and (self.tile_view is other.tile_view or self.tile_view == other.tile_view)
        )


def _canonical_tile_view(
    shape: FrozenList[Expr], view: TileView, memory_space: MemorySpace | None
) -> TileView | None:
    if view.valid_shape and extents_equal(view.valid_shape, shape):
        view = view.replace(valid_shape=EMPTY_LIST)
    if not view.valid_shape and view.same_layout(implicit_tile_view(shape, memory_space)):
        return None
    return view


class ArrayType(ShapedType):
    """A small on-core array; element type integer, BOOL or TASK_ID."""

    __slots__ = ()

    def __init__(self, dtype: DataType, extent: Any) -> None:
        dims = normalize_extents([extent])
        value = getattr(dims[0], "value", None)
        if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
            raise ValueError("ArrayType requires a positive constant extent")
        if not (dtype.is_int_ or dtype in (DataType.BOOL, DataType.TASK_ID)):
            raise ValueError(f"ArrayType element type must be an integer, BOOL or TASK_ID, got {dtype}")
        _set(self, "shape", dims)
        _set(self, "dtype", dtype)
        _set(self, "memref", None)

    @property
    def extent(self) -> Expr:
        return self.shape[0]

    @property
    def memory_space(self) -> MemorySpace:
        return MemorySpace.ScalarLocal

    def _key(self) -> tuple[Any, ...]:
        return (self.dtype.code(), _extent_key(self.extent))

    def _same(self, other: Any) -> bool:
        return self.dtype is other.dtype and extent_equal(self.extent, other.extent)


UNKNOWN = UnknownType()
BOOL_TYPE = ScalarType(DataType.BOOL)
INDEX_TYPE = ScalarType(DataType.INDEX)
TASK_ID_TYPE = ScalarType(DataType.TASK_ID)
