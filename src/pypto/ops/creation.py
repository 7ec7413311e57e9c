"""Making tensors and tiles: empty ones, constant fills, ramps, triangles, allocations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._lazy import np
from ..ir.dtype import DataType
from ..ir.enums import CoreType, MemorySpace, TensorLayout, TileLayout
from ..ir.expr import ConstFloat, ConstInt, Expr, Neg
from ..ir.type import PtrType, ScalarType, TensorType, TensorView, TileType, TileView, Type
from .definition import DEFERRED, REQUIRED, UNSET, InferRule, Operand
from .normalize import extent, extents, typed_constant
from .numpy_types import numpy_dtype
from .registry import call, define
from .rules import OperandKindError, require_args, require_dtype
from .surface import Attr, Extents, surface
from .surface import Operand as Arg
from .values import ArrayValue, Buffer, empty, fresh
from .windows import number, provably_exceeds, same_rank, static_shape, tuple_operand

D = DataType
M = MemorySpace
SHARED = "SHARED"
RAMP_DTYPES = (D.INT16, D.INT32, D.UINT16, D.UINT32)
TRI_DTYPES = (D.INT8, D.UINT8, D.INT16, D.INT32, D.UINT16, D.UINT32, D.FP16, D.BF16, D.FP32)
SHAPE = Operand("shape", "tuple", "shape")


# --- tensor.create, tensor.create_l1 ----------------------------------------------------------------------------------


def _check_positive(op: str, shape: Sequence[Expr]) -> None:
    for i, dim in enumerate(shape):
        value = number(dim)
        if value is not None and value < 0:
            raise ValueError(f"{op}: shape[{i}] must be >= 0, got {value}")


def _create_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    op = "tensor.create"
    require_args(op, args, 1)
    shape = tuple_operand(op, args, 0, "shape")
    _check_positive(op, shape)
    layout = kwargs.get("layout", TensorLayout.ND)
    if layout is TensorLayout.NZ:
        raise ValueError(f"{op}: NZ layout is not allowed on tensors")
    if layout is TensorLayout.ND:
        return TensorType(shape, kwargs["dtype"])
    if layout is TensorLayout.DN and len(shape) < 2:
        raise ValueError(f"{op}: TensorLayout.DN requires rank >= 2, got {len(shape)}")
    return TensorType(shape, kwargs["dtype"], None, TensorView(None, layout))


def _create(
    ctx: Any,
    shape: Sequence[int],
    *,
    dtype: DataType,
    layout: TensorLayout = TensorLayout.ND,
    manual_dep: bool = False,
    init_value: float | None = None,
) -> ArrayValue:
    extents_ = tuple(shape)
    stored = (*extents_[:-2], extents_[-1], extents_[-2]) if layout is TensorLayout.DN else extents_
    value = empty(stored, numpy_dtype(dtype))
    if init_value is not None:
        data = np.full(stored, init_value).astype(numpy_dtype(dtype))
        value = ArrayValue(data, Buffer(data))
    value.buffer.manual_dep = manual_dep
    return ArrayValue(value.data.swapaxes(-1, -2), value.buffer) if layout is TensorLayout.DN else value


define(
    "tensor.create",
    [SHAPE],
    _create_infer,
    doc="a new tensor, undefined unless init_value is given",
    kwargs={
        "dtype": (DataType, REQUIRED),
        "layout": (TensorLayout, TensorLayout.ND),
        "manual_dep": (bool, False),
        "init_value": (float, UNSET),
    },
    reference=_create,
    pure=False,
)


@surface("tensor", name="create")
@surface("tensor", "pl", name="create_tensor")
def create_tensor(
    shape: Extents,
    dtype: Attr,
    layout: Attr = TensorLayout.ND,
    manual_dep: Attr = False,
    init_value: Attr = None,
) -> Expr:
    """A new tensor in global memory."""
    return call(
        "tensor.create",
        extents(shape),
        dtype=dtype,
        layout=layout,
        manual_dep=True if manual_dep else None,
        init_value=None if init_value is None else float(init_value),
    )


def _create_l1_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    op = "tensor.create_l1"
    require_args(op, args, 1)
    shape = tuple_operand(op, args, 0, "shape", constant=True)
    static_shape(op, shape)
    if kwargs.get("transpose") and len(shape) != 2:
        raise ValueError(f"{op}: transpose requires a 2D shape, got rank {len(shape)}")
    return TensorType(shape, kwargs["dtype"])


define(
    "tensor.create_l1",
    [SHAPE],
    _create_l1_infer,
    doc="an empty on-chip accumulator in Mat",
    kwargs={"dtype": (DataType, REQUIRED), "transpose": (bool, False)},
    reference=lambda ctx, shape, *, dtype, **_: empty(shape, numpy_dtype(dtype)),
    pure=False,
    priority="rare",
)


@surface("tensor", "pl")
def create_l1(shape: Extents, dtype: Attr, transpose: Attr = False) -> Expr:
    """An empty on-chip accumulator."""
    return call("tensor.create_l1", extents(shape), dtype=dtype, transpose=True if transpose else None)


# --- tile.create ------------------------------------------------------------------------------------------------------


def _tile_create_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    op = "tile.create"
    require_args(op, args, 1)
    shape = tuple_operand(op, args, 0, "shape")
    static_shape(op, shape)
    dtype, space = kwargs["dtype"], kwargs.get("target_memory")
    transpose, flat = kwargs.get("transpose", False), kwargs.get("flat_layout", False)
    if space in (M.LeftScale, M.RightScale):
        raise ValueError(f"{op}: a tile in {space.name} is made by pl.move, not by create")
    if transpose and (space is not M.Mat or len(shape) != 2):
        raise ValueError(f"{op}: transpose requires a 2D tile in Mat")
    if flat and space is not M.Mat:
        raise ValueError(f"{op}: flat_layout requires target_memory=Mat")
    if flat and transpose:
        raise ValueError(f"{op}: flat_layout and transpose exclude each other")
    if transpose:
        view = TileView(blayout=TileLayout.row_major, slayout=TileLayout.col_major)
        return TileType(shape, dtype, None, view, M.Mat)
    if flat:
        return TileType(shape, dtype, None, TileView(), M.Mat)
    if space is M.Acc:
        return TileType(shape, dtype, None, None, M.Acc)
    return TileType(shape, dtype)


define(
    "tile.create",
    [SHAPE],
    _tile_create_infer,
    doc="a new tile, undefined",
    kwargs={
        "dtype": (DataType, REQUIRED),
        "target_memory": (MemorySpace, UNSET),
        "transpose": (bool, False),
        "flat_layout": (bool, False),
    },
    reference=lambda ctx, shape, *, dtype, **_: empty(shape, numpy_dtype(dtype)),
    pure=False,
    output_memory=DEFERRED,
    core=SHARED,
)


@surface("tile", name="create")
@surface("tile", "pl", name="create_tile")
def create_tile(
    shape: Extents,
    dtype: Attr,
    target_memory: Attr = MemorySpace.Vec,
    transpose: Attr = None,
    *,
    flat_layout: Attr = None,
) -> Expr:
    """A new tile."""
    return call(
        "tile.create",
        extents(shape),
        dtype=dtype,
        target_memory=target_memory,
        transpose=True if transpose else None,
        flat_layout=True if flat_layout else None,
    )


# --- alloc ------------------------------------------------------------------------------------------------------------


def _alloc_infer(level: str) -> InferRule:
    op = f"{level}.alloc"

    def infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 2)
        space = number(args[0])
        if space is None or space not in {member.value for member in MemorySpace}:
            raise ValueError(f"{op} requires a memory space")
        if type(args[1].type) is not ScalarType or not args[1].type.dtype.is_int_:
            raise OperandKindError(f"{op} requires an integer size, but got {args[1].type}")
        result: Type = PtrType()
        return result

    return infer


define(
    "tensor.alloc",
    [Operand("memory_space", "const"), Operand("size", "scalar", "shape")],
    _alloc_infer("tensor"),
    doc="reserve bytes of global memory",
    reference=lambda ctx, memory_space, size: None,
    pure=False,
    printed="alloc",
    priority="full",
)
define(
    "tile.alloc",
    [Operand("memory_space", "const"), Operand("size", "const", "shape")],
    _alloc_infer("tile"),
    doc="reserve bytes of an on-chip memory",
    kwargs={"pinned": (bool, False)},
    reference=lambda ctx, memory_space, size, **_: None,
    pure=False,
    no_memory_spec=True,
    core=CoreType.VECTOR,
    printed="alloc",
)


def _space(memory_space: Any) -> Expr:
    return extent(memory_space.value if isinstance(memory_space, MemorySpace) else memory_space)


@surface("tensor", name="alloc")
def tensor_alloc(memory_space: Attr, size: Arg) -> Expr:
    """Reserve bytes of global memory."""
    return call("tensor.alloc", _space(memory_space), extent(size))


@surface("tile", name="alloc", ir=False)
def tile_alloc(memory_space: Attr, size: Arg, *, pinned: Attr = False) -> Expr:
    """Reserve bytes of an on-chip memory."""
    return call("tile.alloc", _space(memory_space), extent(size), pinned=True if pinned else None)


@surface("ir.tile", name="alloc")
def ir_tile_alloc(memory_space: Attr, addr: Arg, size: Arg, alloc_id: Arg) -> Expr:
    """Reserve bytes of an on-chip memory; the place and the number are the compiler's business and are not kept."""
    return tile_alloc(memory_space, size)


# --- full -------------------------------------------------------------------------------------------------------------


def _full_infer(level: str) -> InferRule:
    op = f"{level}.full"

    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 2)
        shape = tuple_operand(op, args, 0, "shape")
        if level == "tile":
            static_shape(op, shape)
        else:
            _check_positive(op, shape)
        if type(args[1]) not in (ConstInt, ConstFloat):
            raise ValueError(f"{op} requires a constant value; fill with a run-time scalar by pl.expands")
        return TileType(shape, kwargs["dtype"]) if level == "tile" else TensorType(shape, kwargs["dtype"])

    return infer


def filled(shape: Sequence[int], value: int | float, dtype: Any) -> ArrayValue:
    """A constant array; ints wrap in the element type."""
    data = np.empty(tuple(shape), dtype)
    data[...] = np.array(value).astype(dtype)
    return fresh(data)


for _level in ("tensor", "tile"):
    define(
        f"{_level}.full",
        [SHAPE, Operand("value", "const")],
        _full_infer(_level),
        doc="every element is value",
        kwargs={"dtype": (DataType, REQUIRED)},
        reference=lambda ctx, shape, value, *, dtype: filled(shape, value, numpy_dtype(dtype)),
        printed="full",
        **({"output_memory": M.Vec, "core": CoreType.VECTOR} if _level == "tile" else {}),
    )


def fill_value(value: Any, dtype: DataType) -> Expr:
    """The fill constant; its node kind follows the element type."""
    negative = type(value) is Neg
    inner = value.operand if negative else value
    if isinstance(inner, (ConstInt, ConstFloat)):
        value = -inner.value if negative else inner.value
    if isinstance(value, Expr):
        return value  # the type rule says that it must be constant
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"full requires a number, got {type(value).__name__}")
    if isinstance(value, float) and not dtype.is_float_ and value != int(value):
        raise ValueError(f"full: the value {value} is non-integral, but the element type is {dtype}")
    return typed_constant(value, dtype)


def _full_surface(op: str) -> Any:
    def full(shape: Extents, dtype: Attr, value: Arg) -> Expr:
        return call(op, extents(shape), fill_value(value, dtype), dtype=dtype)

    return full


surface("tensor", "pl", name="full")(_full_surface("tensor.full"))
surface("tile", name="full")(_full_surface("tile.full"))


# --- ci (arange) ------------------------------------------------------------------------------------------------------


def _ci_infer(level: str) -> InferRule:
    op = f"{level}.ci"

    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 2)
        dtype = kwargs.get("dtype", D.INT32)
        require_dtype(op, "result", dtype, RAMP_DTYPES)
        start = args[0].type
        if type(start) is not ScalarType or start.dtype is not dtype:
            raise ValueError(f"{op} requires the start dtype to be {dtype}, but got {start}")
        shape = tuple_operand(op, args, 1, "shape")
        if not shape:
            raise ValueError(f"{op} requires at least one dimension")
        if level == "tile":
            static_shape(op, shape)
        if number(shape[-1]) == 1:
            raise ValueError(f"{op}: the innermost dimension must not be 1")
        if any(number(dim) not in (None, 1) for dim in shape[:-1]):
            raise ValueError(f"{op}: the leading dimensions must be 1: the ramp runs over the innermost one")
        return TileType(shape, dtype) if level == "tile" else TensorType(shape, dtype)

    return infer


def _ci(
    ctx: Any, start: int, shape: Sequence[int], *, dtype: DataType = DataType.INT32, descending: bool = False
) -> ArrayValue:
    steps = np.arange(shape[-1], dtype=np.int64)
    ramp = (start - steps if descending else start + steps).astype(numpy_dtype(dtype))
    return fresh(np.broadcast_to(ramp, tuple(shape)).copy())


for _level in ("tensor", "tile"):
    define(
        f"{_level}.ci",
        [Operand("start", "scalar"), SHAPE],
        _ci_infer(_level),
        doc="start, start + 1, ... along the innermost axis (descending: start - 1, ...)",
        kwargs={"dtype": (DataType, DataType.INT32), "descending": (bool, False)},
        reference=_ci,
        **({"output_memory": M.Vec, "core": CoreType.VECTOR} if _level == "tile" else {}),
    )


def retyped_scalar(value: Any, dtype: DataType, what: str) -> Expr:
    """A scalar operand of a fixed dtype: constants take it, expressions must have it."""
    if type(value) is Neg and isinstance(value.operand, ConstInt):
        value = -value.operand.value
    if isinstance(value, (ConstInt, ConstFloat)):
        value = value.value
    if isinstance(value, Expr):
        kind = value.type
        if type(kind) is not ScalarType or kind.dtype is not dtype:
            raise ValueError(f"{what} must have dtype {dtype}, but got {kind}: convert it with pl.cast")
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
        raise TypeError(f"{what} must be an integer, got {value!r}")
    return typed_constant(int(value), dtype)


def _ci_surface(level: str) -> Any:
    def ci(start: Arg, shape: Extents, dtype: Attr = DataType.INT32, descending: Attr = False) -> Expr:
        return call(
            f"{level}.ci",
            retyped_scalar(start, dtype, "ci start"),
            extents(shape),
            dtype=dtype,
            descending=True if descending else None,
        )

    return ci


surface("tensor", name="ci")(_ci_surface("tensor"))
surface("tensor", "pl", name="arange")(_ci_surface("tensor"))
surface("tile", name="ci")(_ci_surface("tile"))
surface("tile", name="arange")(_ci_surface("tile"))


# --- tile.tri ---------------------------------------------------------------------------------------------------------


def checked_valid(op: str, args: Sequence[Expr], index: int, shape: Sequence[Expr]) -> Sequence[Expr]:
    """The optional valid region of a generator: constants in ``(0, shape[i]]``."""
    if index >= len(args):
        return shape
    valid = tuple_operand(op, args, index, "valid_shape") or shape
    same_rank(op, "valid_shape", valid, len(shape))
    for i, (v, n) in enumerate(zip(valid, shape, strict=False)):
        value = number(v)
        if (value is not None and value <= 0) or provably_exceeds(v, n):
            raise ValueError(f"{op}: valid_shape[{i}] must be in (0, {number(n)}]")
    return valid


def generated(shape: Sequence[Expr], dtype: DataType, valid: Sequence[Expr]) -> TileType:
    """The type of a generated tile."""
    return TileType(shape, dtype, None, TileView(valid_shape=valid) if valid is not shape else None)


def _tri_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    op = "tile.tri"
    require_args(op, args, 2, 3)
    dtype = kwargs.get("dtype", D.INT32)
    require_dtype(op, "result", dtype, TRI_DTYPES)
    diagonal = args[0].type
    if type(diagonal) is not ScalarType or diagonal.dtype is not D.INT32:
        raise ValueError(f"{op} requires the diagonal to be an INT32 scalar, but got {diagonal}")
    shape = tuple_operand(op, args, 1, "shape", constant=True)
    if len(shape) != 2:
        raise ValueError(f"{op} requires a 2D shape, got rank {len(shape)}")
    static_shape(op, shape)
    return generated(shape, dtype, checked_valid(op, args, 2, shape))


def _tri(
    ctx: Any,
    diagonal: int,
    shape: Sequence[int],
    valid_shape: Sequence[int] | None = None,
    *,
    dtype: DataType = DataType.INT32,
    upper: bool = False,
) -> ArrayValue:
    rows, columns = np.arange(shape[0])[:, None], np.arange(shape[1])[None, :]
    inside = columns >= rows + diagonal if upper else columns <= rows + diagonal
    return fresh(inside.astype(numpy_dtype(dtype)), None, valid_shape or None)


define(
    "tile.tri",
    [Operand("diagonal", "scalar"), SHAPE, Operand("valid_shape", "tuple", "shape", optional=True)],
    _tri_infer,
    doc="1 where j <= i + diagonal (upper: j >= i + diagonal), else 0",
    kwargs={"dtype": (DataType, DataType.INT32), "upper": (bool, False)},
    reference=_tri,
    output_memory=M.Vec,
    core=CoreType.VECTOR,
    priority="full",
)


@surface("tile", "pl")
def tri(
    diagonal: Arg, shape: Extents, valid_shape: Extents = None, dtype: Attr = DataType.INT32, upper: Attr = False
) -> Expr:
    """A triangle of ones."""
    more = () if valid_shape is None else (extents(valid_shape),)
    return call(
        "tile.tri",
        retyped_scalar(diagonal, D.INT32, "tri diagonal"),
        extents(shape),
        *more,
        dtype=dtype,
        upper=True if upper else None,
    )


__all__ = ["SHARED", "checked_valid", "create_tensor", "create_tile", "filled", "generated", "retyped_scalar"]
