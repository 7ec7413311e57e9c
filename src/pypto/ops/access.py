"""Single elements, extents, and the position of a kernel instance in its launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._lazy import np
from ..ir.dtype import DataType
from ..ir.enums import ArgEffect, CoreType, MemorySpace, WriteChannel
from ..ir.expr import Expr
from ..ir.type import INDEX_TYPE, ScalarType, Type
from .creation import SHARED
from .definition import Alias, InferRule, Operand, Window
from .normalize import extent, extents, int_attr, scalar_operand
from .partial_window import PartialWindow, require_writable
from .registry import call, define
from .rules import OperandKindError, require_args, tensor_type, tile_type
from .surface import Attr, Extents, common_level, level_of, mixed_error, surface
from .surface import Operand as Arg
from .transfer import commit
from .values import ArrayValue, OutOfBoundsError, UndefinedValueError
from .windows import number, provably_negative, tuple_operand

# --- read and write ---------------------------------------------------------------------------------------------------


def _element(level: str, op: str, args: Sequence[Expr]) -> Any:
    kind: Any = tensor_type(op, args, 0) if level == "tensor" else tile_type(op, args, 0)
    indices = tuple_operand(op, args, 1, "indices")
    if len(indices) != len(kind.shape):
        raise ValueError(
            f"{op}: indices count {len(indices)} does not match rank {len(kind.shape)}: give one index per dimension"
        )
    for i, (index, bound) in enumerate(zip(indices, kind.shape, strict=False)):
        if provably_negative(index) or (number(index) is not None and number(bound) is not None
                                             and index.value >= bound.value):  # type: ignore[attr-defined]  # fmt: skip
            raise ValueError(f"{op}: index {number(index)} of dimension {i} is out of range")
    return kind


def _read_infer(level: str) -> InferRule:
    op = f"{level}.read"

    def infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 2)
        return ScalarType(_element(level, op, args).dtype)

    return infer


def _write_infer(level: str) -> InferRule:
    op = f"{level}.write"

    def infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 3)
        kind = _element(level, op, args)
        value = args[2].type
        if type(value) is not ScalarType:
            raise OperandKindError(f"{op} requires third argument to be a ScalarType, but got {type(value).__name__}")
        if value.dtype is not kind.dtype:
            raise ValueError(
                f"{op} requires a value of dtype {kind.dtype}, but got {value.dtype}: convert it with pl.cast"
            )
        return kind  # type: ignore[no-any-return]

    return infer


def _checked_index(op: str, value: ArrayValue, indices: Sequence[int]) -> tuple[int, ...]:
    shape = value.inner.shape if type(value) is PartialWindow else value.shape
    for i, (index, n) in enumerate(zip(indices, shape, strict=False)):
        if not 0 <= index < n:
            raise OutOfBoundsError(f"{op}: index {index} is out of range in dimension {i}, whose extent is {n}")
    return tuple(int(i) for i in indices)


def _read(op: str) -> Any:
    def reference(ctx: Any, source: ArrayValue, indices: Sequence[int]) -> Any:
        index = _checked_index(op, source, indices)
        mask = source.mask
        if any(i >= v for i, v in zip(index, source.valid, strict=False)) or (mask is not None and not mask[index]):
            name = source.buffer.name
            raise UndefinedValueError(
                f"{op}: element {list(index)}{f' of {name}' if name else ''} was never given a value"
            )
        element = source.data[index]
        return element.item() if element.dtype.kind in "biuf" else float(element)

    return reference


def _write(op: str) -> Any:
    def reference(ctx: Any, target: ArrayValue, indices: Sequence[int], value: Any) -> ArrayValue:
        require_writable(op, target)
        index = _checked_index(op, target, indices)
        commit(ctx, target, index, np.array(value).astype(target.dtype), None)
        return target

    return reference


for _level in ("tensor", "tile"):
    _kind = "window" if _level == "tensor" else "tile"
    _spec: dict[str, Any] = {"input_memory": ((MemorySpace.Vec,),), "core": CoreType.VECTOR} if _level == "tile" else {}
    define(
        f"{_level}.read",
        [Operand(_level, _kind), Operand("indices", "tuple", "index")],
        _read_infer(_level),
        doc="one element as a scalar",
        reference=_read(f"{_level}.read"),
        windows={0: Window(1)},
        **_spec,
    )
    define(
        f"{_level}.write",
        [Operand(_level, _kind, "destination"), Operand("indices", "tuple", "index"), Operand("value", "scalar")],
        _write_infer(_level),
        doc="store one element; the result is the operand's buffer",
        reference=_write(f"{_level}.write"),
        effects={0: ArgEffect.Write if _level == "tensor" else ArgEffect.ReadWrite},
        alias=Alias.IS,
        alias_operand=0,
        windows={0: Window(1)},
        channel=WriteChannel.Scalar if _level == "tensor" else None,
        **(dict(_spec, output_memory=MemorySpace.Vec) if _level == "tile" else {}),
    )


def _element_value(target: Arg, value: Arg) -> Expr:
    dtype: DataType = target.type.dtype
    if dtype is DataType.BOOL and isinstance(value, bool):
        from ..ir.expr import ConstBool

        return ConstBool(value)
    return scalar_operand(value, dtype)


@surface("tensor", name="read")
def tensor_read(tensor: Arg, indices: Extents) -> Expr:
    """One element of a tensor."""
    return call("tensor.read", tensor, extents(indices))


@surface("tile", name="read")
def tile_read(tile: Arg, indices: Extents) -> Expr:
    """One element of a tile."""
    return call("tile.read", tile, extents(indices))


@surface("pl", name="read")
def unified_read(src: Arg, offset: Extents) -> Expr:
    """One element of a tensor or tile."""
    level = common_level("read", src)
    return call(f"{level}.read", src, extents(offset))


def _write_call(level: str, target: Arg, indices: Extents, value: Arg) -> Expr:
    if level_of(target) != level:
        raise mixed_error("write", target)
    return call(f"{level}.write", target, extents(indices), _element_value(target, value))


@surface("tensor", name="write")
def tensor_write(tensor: Arg, indices: Extents, value: Arg) -> Expr:
    """Store one element of a tensor."""
    return _write_call("tensor", tensor, indices, value)


@surface("tile", name="write")
def tile_write(tile: Arg, indices: Extents, value: Arg) -> Expr:
    """Store one element of a tile."""
    return _write_call("tile", tile, indices, value)


@surface("pl", name="write")
def unified_write(dst: Arg, offset: Extents, value: Arg) -> Expr:
    """Store one element of a tensor or tile."""
    level = level_of(dst)
    return _write_call(level if level in ("tensor", "tile") else "tensor", dst, offset, value)


# --- dim --------------------------------------------------------------------------------------------------------------


def _dim_infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
    op = "tensor.dim"
    require_args(op, args, 2)
    rank = len(tensor_type(op, args, 0).shape)
    axis = number(args[1])
    if axis is None:
        raise ValueError(f"{op} requires axis to be a compile-time constant")
    if not -rank <= axis < rank:
        raise ValueError(f"{op}: axis {axis} is out of range for rank {rank}")
    return INDEX_TYPE


define(
    "tensor.dim",
    [Operand("tensor", "tensor", "shape"), Operand("axis", "const")],
    _dim_infer,
    doc="the extent of an axis",
    reference=lambda ctx, tensor, axis: int(tensor.shape[axis]),
)


@surface("tensor", "pl")
def dim(tensor: Arg, axis: Attr) -> Expr:
    """The extent of an axis."""
    return call("tensor.dim", tensor, extent(int_attr(axis, "dim axis")))


# --- position in the launch -------------------------------------------------------------------------------------------


def _geometry_infer(op: str) -> InferRule:
    def infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
        require_args(op, args, 0)
        return INDEX_TYPE

    return infer


def _geometry_surface(op: str) -> Any:
    def function() -> Expr:
        return call(op)

    return function


_GEOMETRY: tuple[tuple[str, Any, Any, str], ...] = (
    ("get_block_idx", SHARED, lambda ctx: ctx.block_idx, "index of this block in the launch"),
    ("get_block_num", SHARED, lambda ctx: ctx.block_num, "number of blocks in the launch"),
    ("get_subblock_idx", CoreType.VECTOR, lambda ctx: ctx.lane, "vector lane inside the block"),
)
for _name, _core, _reference, _doc in _GEOMETRY:
    define(f"tensor.{_name}", [], _geometry_infer(f"tensor.{_name}"), doc=_doc, reference=_reference)
    define(
        f"tile.{_name}",
        [],
        _geometry_infer(f"tile.{_name}"),
        doc=_doc,
        reference=_reference,
        no_memory_spec=True,
        core=_core,
    )
    surface("tensor", "pl", name=_name)(_geometry_surface(f"tensor.{_name}"))
    surface("tile", name=_name)(_geometry_surface(f"tile.{_name}"))
