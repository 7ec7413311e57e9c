"""What the distributed ops share: operand checks, and the reference that says that they can not run here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from ...ir.dtype import DataType
from ...ir.enums import AtomicType
from ...ir.expr import Expr
from ...ir.type import DistributedTensorType, ScalarType, TensorType, Type, UnknownType
from ..normalize import int_attr
from ..rules import OperandKindError, same_extent
from ..transfer import ATOMIC_DTYPES
from ..windows import number, tuple_operand

NO_VALUE: Type = UnknownType()
INT32 = DataType.INT32


def unsupported(ctx: Any, *_args: Any, **_kwargs: Any) -> NoReturn:
    """The reference of every distributed op, until ranks exist."""
    raise NotImplementedError("distributed programs are not supported on this platform yet")


def window_bound(op: str, args: Sequence[Expr], index: int, role: str) -> DistributedTensorType:
    """The type of an operand that must be a view of a window."""
    kind = args[index].type
    if type(kind) is not DistributedTensorType:
        raise OperandKindError(f"{op} expects a DistributedTensor {role} (window-bound); got {type(kind).__name__}")
    return kind


def local_tensor(op: str, args: Sequence[Expr], index: int, role: str, plain: bool = False) -> TensorType:
    """The type of an operand on this rank: a tensor, or (unless ``plain``) a view of its part of a window."""
    kind = args[index].type
    if type(kind) is TensorType or (not plain and type(kind) is DistributedTensorType):
        return kind
    raise OperandKindError(f"{op} expects a Tensor {role}; got {type(kind).__name__}")


def scalar(op: str, args: Sequence[Expr], index: int, what: str) -> None:
    """The operand must be a scalar."""
    if type(args[index].type) is not ScalarType:
        raise OperandKindError(f"{op}: {what} must be a scalar, got {type(args[index].type).__name__}")


def offsets_of(op: str, args: Sequence[Expr], index: int, rank: int, what: str = "offsets") -> Sequence[Expr]:
    """A literal tuple of the target's rank."""
    items = tuple_operand(op, args, index, what)
    if len(items) != rank:
        raise ValueError(f"{op}: {what} rank {len(items)} must match target tensor rank {rank}")
    for i, item in enumerate(items):
        value = number(item)
        if value is not None and value < 0:
            raise ValueError(f"{op}: {what}[{i}] must be non-negative, got {value}")
    return items


def same_dtype(op: str, a: Any, b: Any, what: str) -> None:
    """Element types must be equal."""
    if a.dtype is not b.dtype:
        raise ValueError(f"{op} requires {what} to have the same dtype, got {a.dtype} and {b.dtype}")


def atomic_add(op: str, mode: int, dtype: DataType) -> None:
    """An atomic add needs an element type that the memory can add."""
    if mode not in (AtomicType.None_.value, AtomicType.Add.value):
        raise ValueError(f"{op}: atomic must be AtomicType.None_ or AtomicType.Add, got {mode}")
    if mode == AtomicType.Add.value and dtype not in ATOMIC_DTYPES:
        raise ValueError(
            f"{op}: atomic Add requires an fp32/bf16/fp16/int32/int16/int8 dtype (hardware atomic-add dtypes), "
            f"got {dtype}"
        )


def signal_of(op: str, args: Sequence[Expr], index: int) -> DistributedTensorType:
    """The type of a signal: an INT32 window of rank 1 or 2."""
    kind = window_bound(op, args, index, "signal")
    if kind.dtype is not INT32:
        raise ValueError(f"{op}: signal must have INT32 element type, got {kind.dtype}")
    return kind


def equal_extents(op: str, a: Expr, b: Expr, message: str) -> None:
    """Two extents must not be provably different."""
    x, y = number(a), number(b)
    if x is not None and y is not None and x != y and not same_extent(a, b):
        raise ValueError(f"{op}: {message}, got {x} and {y}")


def enum_attr(value: Any, what: str) -> int:
    """An enumeration given as a member or its number."""
    if isinstance(value, bool):
        raise TypeError(f"{what} must be an enumeration member, got bool")
    return int_attr(value, what)
