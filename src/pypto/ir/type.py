"""Types of expressions. Unlike nodes, types compare and hash structurally."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from .dtype import DataType
from .enums import MemorySpace
from .extents import (
    Extent,
    const_extent,
    extent_equal,
    extent_key,
    extents_equal,
    extents_key,
    normalize_extents,
)
from .node import FrozenList, checked_list, wrong_kind
from .views import (
    TensorView,
    TileView,
    canonical_tensor_view,
    canonical_tile_view,
    implicit_tile_view,
    is_column_vector,
)

if TYPE_CHECKING:
    from .expr import Expr, MemRef, WindowBuffer

_set = object.__setattr__


class Type:
    """Base of all types (abstract). ``==`` is structural, ``str`` is the printed form."""

    __slots__ = ("__weakref__", "_closed", "_hash")
    _closed: bool  # kept by type_fields.is_closed
    _hash: int

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        raise TypeError(f"{type(self).__name__} is abstract")

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
            return self._hash
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

    if not TYPE_CHECKING:  # the base refuses; an initialiser written in Python would cost each call
        __init__ = object.__init__

    def __new__(cls) -> Any:
        if cls.__dict__.get("_instance") is None:
            cls._instance = object.__new__(cls)
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
    """Type of a WindowBuffer."""

    __slots__ = ()


class CommCtxType(_Marker):
    """A communicator context."""

    __slots__ = ()


class PrefetchAsyncContextType(_Marker):
    """Context of asynchronous prefetches."""

    __slots__ = ()


class AsyncEventType(_Marker):
    """A handle of an asynchronous transfer."""

    __slots__ = ()


class AsyncSessionType(_Marker):
    """A session of asynchronous transfers."""

    __slots__ = ()


class ScalarType(Type):
    """A scalar of an element type; ``ScalarType(DataType.TASK_ID)`` is a task handle. One instance per dtype."""

    __slots__ = ("dtype",)
    dtype: DataType

    if not TYPE_CHECKING:  # the base refuses; an initialiser written in Python would cost each call
        __init__ = object.__init__

    def __new__(cls, dtype: DataType) -> ScalarType:
        if type(dtype) is not DataType:
            wrong_kind("ScalarType", "dtype", DataType, dtype)
        found: ScalarType | None = dtype.scalar_type_
        if found is None:
            found = object.__new__(cls)
            _set(found, "dtype", dtype)
            _set(dtype, "scalar_type_", found)
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
        _set(self, "types", checked_list(types, Type, "TupleType", "types"))

    def _key(self) -> tuple[Any, ...]:
        return tuple(self.types)

    def _same(self, other: Any) -> bool:
        return list(self.types) == list(other.types)


class ShapedType(Type):
    """Common part of tensors, tiles and arrays: element type, extents, optional placement."""

    __slots__ = ("dtype", "memref", "shape")
    dtype: DataType
    shape: FrozenList[Expr]
    memref: MemRef | None

    @property
    def memory_space(self) -> MemorySpace | None:
        """Where the data lies; None when not decided."""
        return None

    @property
    def valid_extents(self) -> FrozenList[Expr]:
        """The effective valid region: the view's, or the whole shape."""
        return self.shape

    def shares_memref_with(self, other: ShapedType) -> bool:
        """Whether both have a memref and it is the same object."""
        return self.memref is not None and self.memref is other.memref


def _init_shaped(self: ShapedType, owner: str, shape: Sequence[Extent], dtype: DataType, memref: Any) -> None:
    dims = normalize_extents(shape)
    if type(dtype) is not DataType:
        wrong_kind(owner, "dtype", DataType, dtype)
    if dtype is DataType.FP4:
        _check_packed_fp4(dims)
    if memref is not None and type(getattr(memref, "type", None)) is not MemRefType:
        raise TypeError(f"{owner}: memref must be a MemRef or None, got {type(memref).__name__}")
    _set_shape(self, dims)
    _set_dtype(self, dtype)
    _set_memref(self, memref)


_set_shape = ShapedType.__dict__["shape"].__set__
_set_dtype = ShapedType.__dict__["dtype"].__set__
_set_memref = ShapedType.__dict__["memref"].__set__


def _check_packed_fp4(shape: Sequence[Any]) -> None:
    last = const_extent(shape[-1]) if shape else None
    if last is None or last <= 0 or last % 2:
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
        _init_shaped(self, "TensorType", shape, dtype, memref)
        if tensor_view is not None:
            if not isinstance(tensor_view, TensorView):
                wrong_kind("TensorType", "tensor_view", TensorView, tensor_view)
            tensor_view = canonical_tensor_view(self.shape, tensor_view)
        _set_tensor_view(self, tensor_view)

    @property
    def memory_space(self) -> MemorySpace:
        """Always global memory."""
        return MemorySpace.DDR

    @property
    def valid_extents(self) -> FrozenList[Expr]:
        """The effective valid region: the view's, or the whole shape."""
        view = self.tensor_view
        return view.valid_shape if view is not None and view.valid_shape else self.shape

    def _key(self) -> tuple[Any, ...]:
        view = self.tensor_view
        return (self.dtype.code(), extents_key(self.shape), None if view is None else view._key())

    def _same(self, other: Any) -> bool:
        return (
            self.dtype is other.dtype
            and extents_equal(self.shape, other.shape)
            and (self.tensor_view is other.tensor_view or self.tensor_view == other.tensor_view)
        )


_set_tensor_view = TensorType.__dict__["tensor_view"].__set__


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
        if type(getattr(memref, "type", None)) is WindowBufferType:
            memref, window_buffer = None, memref
        if window_buffer is not None and type(getattr(window_buffer, "type", None)) is not WindowBufferType:
            raise TypeError("DistributedTensorType: window_buffer must be a WindowBuffer or None")
        super().__init__(shape, dtype, memref, tensor_view)
        _set(self, "window_buffer", window_buffer)

    def _key(self) -> tuple[Any, ...]:
        return (*super()._key(), self.window_buffer is None)

    def _same(self, other: Any) -> bool:
        return super()._same(other) and self.window_buffer is other.window_buffer


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


def _space_of_name(name: str) -> MemorySpace:
    for prefix, space in _MEMREF_PREFIXES:
        if name.startswith(prefix):
            return space
    raise ValueError("TileType with MemRef must have explicit memory_space")


class TileType(ShapedType):
    """A tile in on-chip memory. ``tile_view`` is None when it equals the implicit view of shape and space."""

    __slots__ = ("memory_space", "tile_view")
    tile_view: TileView | None
    memory_space: MemorySpace | None

    def __init__(
        self,
        shape: Sequence[Extent],
        dtype: DataType,
        memref: MemRef | None = None,
        tile_view: TileView | None = None,
        memory_space: MemorySpace | None = None,
    ) -> None:
        _init_shaped(self, "TileType", shape, dtype, memref)
        if memory_space is None:
            if memref is not None:
                memory_space = _space_of_name(memref.name_hint)
        elif type(memory_space) is not MemorySpace:
            wrong_kind("TileType", "memory_space", MemorySpace, memory_space)
        if tile_view is not None:
            if not isinstance(tile_view, TileView):
                wrong_kind("TileType", "tile_view", TileView, tile_view)
            tile_view = canonical_tile_view(self.shape, tile_view, memory_space)
        _set_memory_space(self, memory_space)
        _set_tile_view(self, tile_view)

    @property
    def valid_extents(self) -> FrozenList[Expr]:
        """The effective valid region: the view's, or the whole shape."""
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
            extents_key(self.shape),
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


_set_memory_space = TileType.__dict__["memory_space"].__set__
_set_tile_view = TileType.__dict__["tile_view"].__set__


class ArrayType(ShapedType):
    """A small on-core array; element type integer, BOOL or TASK_ID."""

    __slots__ = ()

    def __init__(self, dtype: DataType, extent: Any) -> None:
        _init_shaped(self, "ArrayType", [extent], dtype, None)
        size = const_extent(self.extent)
        if size is None or size <= 0:
            raise ValueError("ArrayType requires a positive constant extent")
        if not (dtype.is_int_ or dtype is DataType.BOOL or dtype is DataType.TASK_ID):
            raise ValueError(f"ArrayType element type must be an integer, BOOL or TASK_ID, got {dtype}")

    @property
    def extent(self) -> Expr:
        """The single dim."""
        return self.shape[0]

    @property
    def memory_space(self) -> MemorySpace:
        """Always the scalar unit's local memory."""
        return MemorySpace.ScalarLocal

    def _key(self) -> tuple[Any, ...]:
        return (self.dtype.code(), extent_key(self.extent))

    def _same(self, other: Any) -> bool:
        return self.dtype is other.dtype and extent_equal(self.extent, other.extent)


UNKNOWN = UnknownType()
BOOL_TYPE = ScalarType(DataType.BOOL)
INDEX_TYPE = ScalarType(DataType.INDEX)
TASK_ID_TYPE = ScalarType(DataType.TASK_ID)

__all__ = [
    "BOOL_TYPE",
    "INDEX_TYPE",
    "TASK_ID_TYPE",
    "UNKNOWN",
    "ArrayType",
    "AsyncEventType",
    "AsyncSessionType",
    "CommCtxType",
    "DistributedTensorType",
    "Extent",
    "MemRefType",
    "PrefetchAsyncContextType",
    "PtrType",
    "ScalarType",
    "ShapedType",
    "TensorType",
    "TensorView",
    "TileType",
    "TileView",
    "TupleType",
    "Type",
    "UnknownType",
    "WindowBufferType",
    "const_extent",
    "extent_equal",
    "extents_equal",
    "implicit_tile_view",
    "is_column_vector",
    "normalize_extents",
]
