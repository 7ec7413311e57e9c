"""Comparison of types where a program gives a value to a name, a parameter or a result."""

from __future__ import annotations

from typing import Any

from ..arith.prove import prove_eq
from ..ir.dtype import DataType
from ..ir.expr import ConstFloat, ConstInt, Expr
from ..ir.type import (
    ArrayType,
    ScalarType,
    ShapedType,
    TensorType,
    TileType,
    TupleType,
    Type,
    UnknownType,
    extent_equal,
)


def kind_name(kind: Type) -> str:
    """Tensor, Tile, Scalar ...: as users name a type."""
    name = type(kind).__name__
    return name[:-4] if name.endswith("Type") else name


def _extents_agree(a: Any, b: Any) -> bool:
    return len(a) == len(b) and all(extent_equal(x, y) or prove_eq(x, y) is True for x, y in zip(a, b, strict=True))


def same_up_to_proof(a: Type, b: Type) -> bool:
    """Structural equality with memrefs ignored, extents compared by proof, INDEX and INT64 told apart."""
    if type(a) is not type(b):
        return False
    if isinstance(a, ShapedType) and isinstance(b, ShapedType):
        if a.dtype is not b.dtype or not _extents_agree(a.shape, b.shape):
            return False
        return _extents_agree(a.valid_extents, b.valid_extents) and _same_place(a, b)
    if isinstance(a, TupleType) and isinstance(b, TupleType):
        return len(a.types) == len(b.types) and all(map(same_up_to_proof, a.types, b.types))
    return bool(a == b)


def _same_place(a: ShapedType, b: ShapedType) -> bool:
    """Tiles: the same space and layout, where both are known; tensors: the any."""
    if isinstance(a, TileType) and isinstance(b, TileType):
        if a.memory_space is None or b.memory_space is None:
            return True
        return a.memory_space is b.memory_space and a.get_effective_tile_view().same_layout(b.get_effective_tile_view())
    return True


def _dtypes_agree(want: DataType, have: DataType, value: Expr | None) -> bool:
    if want is have:
        return True
    if DataType.INDEX in (want, have) and want.is_int_ and have.is_int_:
        return True
    if isinstance(value, ConstInt) and have is DataType.INDEX:
        return want.is_int_ or want is DataType.BOOL
    return isinstance(value, ConstFloat) and want.is_float_


def mismatch(want: Type, have: Type, value: Expr | None = None) -> str | None:
    """Why a value of type ``have`` does not fit ``want``: kind, dtype, rank or a static extent; None if it fits.

    The text completes "Type annotation for 'v' ..." and "argument 'v' ...".
    """
    if isinstance(want, UnknownType) or isinstance(have, UnknownType):
        return None
    if isinstance(want, TensorType) and isinstance(have, TensorType):
        pass  # a distributed tensor is a tensor
    elif type(want) is not type(have):
        return f"is {kind_name(want)} but expression has type {kind_name(have)}"
    if isinstance(want, TupleType) and isinstance(have, TupleType):
        if len(want.types) != len(have.types):
            return f"has {len(want.types)} elements but expression has {len(have.types)}"
        return next((m for m in map(mismatch, want.types, have.types) if m), None)
    if isinstance(want, ScalarType) and isinstance(have, ScalarType):
        if not _dtypes_agree(want.dtype, have.dtype, value):
            return f"has dtype {want.dtype} but expression has dtype {have.dtype}"
        return None
    if isinstance(want, ShapedType) and isinstance(have, ShapedType):
        if want.dtype is not have.dtype and not (
            isinstance(want, ArrayType) and _dtypes_agree(want.dtype, have.dtype, None)
        ):
            return f"has dtype {want.dtype} but expression has dtype {have.dtype}"
        if len(want.shape) != len(have.shape):
            return f"has rank {len(want.shape)} but expression has rank {len(have.shape)}"
        for i, (a, b) in enumerate(zip(want.shape, have.shape, strict=True)):
            if type(a) is ConstInt and type(b) is ConstInt and a.value != b.value:
                return f"has shape dimension {i} = {a.value} but expression has shape dimension {i} = {b.value}"
    return None
