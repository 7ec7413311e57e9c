"""Small local arrays: integers, flags and task ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..ir.dtype import DataType
from ..ir.enums import ArgEffect
from ..ir.expr import ConstBool, ConstInt, Expr
from ..ir.type import ArrayType, ScalarType, Type
from .definition import REQUIRED, Alias, Operand
from .normalize import extent, int_attr, scalar_operand
from .registry import call, define
from .rules import OperandKindError, operand_error, require_args
from .surface import Attr, surface
from .surface import Operand as Arg
from .values import OutOfBoundsError
from .windows import number

D = DataType


def _create_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    op = "array.create"
    require_args(op, args, 1)
    size, dtype = number(args[0]), kwargs["dtype"]
    if size is None or size <= 0:
        raise ValueError(f"{op} requires a positive constant extent")
    if not (dtype.is_int_ or dtype in (D.BOOL, D.TASK_ID)):
        raise ValueError(f"{op} requires an integer, BOOL or TASK_ID dtype, got {dtype}")
    return ArrayType(dtype, args[0])


def _create(ctx: Any, extent: int, *, dtype: DataType) -> list[Any]:
    if dtype is D.TASK_ID:
        return [ctx.runtime.task_invalid() if ctx.runtime is not None else None for _ in range(extent)]
    return [False if dtype is D.BOOL else 0] * extent


define(
    "array.create",
    [Operand("extent", "const", "shape")],
    _create_infer,
    doc="a local array of zeros (task ids: null)",
    kwargs={"dtype": (DataType, REQUIRED)},
    reference=_create,
    pure=False,
)


def _array(op: str, args: Sequence[Expr]) -> ArrayType:
    kind = args[0].type
    if type(kind) is not ArrayType:
        raise operand_error(op, "first", "ArrayType", args[0])
    index = args[1].type
    if type(index) is not ScalarType or not index.dtype.is_int_:
        raise OperandKindError(f"{op} requires an integer index, but got {index}")
    value, size = number(args[1]), number(kind.extent)
    if value is not None and size is not None and not 0 <= value < size:
        raise ValueError(f"{op}: index {value} is out of range for extent {size}")
    return kind


def _get_infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
    op = "array.get_element"
    require_args(op, args, 2)
    return ScalarType(_array(op, args).dtype)


def _update_infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
    op = "array.update_element"
    require_args(op, args, 3)
    kind = _array(op, args)
    value = args[2].type
    if type(value) is not ScalarType:
        raise operand_error(op, "third", "ScalarType", args[2])
    have, want = value.dtype, kind.dtype
    interchangeable = have.is_int_ and want.is_int_ and D.INDEX in (have, want)
    if have is not want and not interchangeable:
        raise ValueError(f"{op}: the value dtype {have} must match array dtype {want}")
    return ArrayType(kind.dtype, kind.extent)


def _checked(op: str, array: Sequence[Any], index: int) -> int:
    if not 0 <= index < len(array):
        raise OutOfBoundsError(f"{op}: index {index} is out of range, the array has {len(array)} elements")
    return int(index)


def _get(ctx: Any, array: Sequence[Any], index: int) -> Any:
    return array[_checked("array.get_element", array, index)]


def _update(ctx: Any, array: list[Any], index: int, value: Any) -> list[Any]:
    array[_checked("array.update_element", array, index)] = value
    return array


define(
    "array.get_element",
    [Operand("array", "array"), Operand("index", "scalar", "index")],
    _get_infer,
    doc="one element",
    reference=_get,
)
define(
    "array.update_element",
    [Operand("array", "array", "destination"), Operand("index", "scalar", "index"), Operand("value", "scalar")],
    _update_infer,
    doc="store one element; the result is the same array",
    reference=_update,
    effects={0: ArgEffect.ReadWrite},
    alias=Alias.IS,
    alias_operand=0,
)


@surface("array")
def create(extent: Attr, dtype: Attr) -> Expr:
    """A local array."""
    return call("array.create", _size(extent), dtype=dtype)


def _size(size: Any) -> Expr:
    return extent(int_attr(size, "array.create extent"))


@surface("array")
def get_element(array: Arg, index: Arg) -> Expr:
    """One element."""
    return call("array.get_element", array, extent(index))


@surface("array")
def update_element(array: Arg, index: Arg, value: Arg) -> Expr:
    """Store one element."""
    dtype = array.type.dtype if isinstance(array, Expr) and isinstance(array.type, ArrayType) else D.INDEX
    if isinstance(value, bool):
        value = ConstBool(value)
    elif not isinstance(value, Expr) or (type(value) is ConstInt and value.dtype is D.INDEX and dtype.is_int_):
        value = scalar_operand(value, dtype)
    return call("array.update_element", array, extent(index), value)
