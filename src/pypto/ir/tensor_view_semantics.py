"""What the strides and layouts of tensor views mean: packed strides, canonical views, layouts from strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .dtype import DataType
from .enums import DYNAMIC_DIM, TensorLayout
from .expr import ConstInt, Expr, Mul, index_const
from .type import TensorView, const_extent, extent_equal, normalize_extents

_INT64_MAX = 2**63 - 1


def _product(a: Expr, b: Expr) -> Expr:
    """``a * b`` in INDEX, constants folded and factors of one dropped; an overflow stays symbolic."""
    x, y = const_extent(a), const_extent(b)
    if x is not None and y is not None and abs(x * y) <= _INT64_MAX:
        return index_const(x * y)
    if x == 1:
        return _as_index(b)
    if y == 1:
        return _as_index(a)
    return Mul(_as_index(a), _as_index(b), DataType.INDEX)


def _as_index(e: Expr) -> Expr:
    return index_const(e.value) if isinstance(e, ConstInt) else e


def build_logical_strides_from_layout(shape: Sequence[Any], layout: TensorLayout) -> list[Expr]:
    """The strides of a packed tensor.

    Row-major for ND and the MX layouts; DN swaps the last two dims. ``ValueError`` for NZ, whose fractal order no
    strides describe, and for DN below rank 2.
    """
    dims = normalize_extents(shape)
    if layout is TensorLayout.NZ:
        raise ValueError("NZ layout is tile-only and not allowed on a tensor type: no strides describe it")
    if layout is TensorLayout.DN:
        return _packed_dn(dims)
    return _packed_over(dims, index_const(1))


def _packed_over(dims: Sequence[Expr], inner: Expr) -> list[Expr]:
    """Row-major strides whose innermost one is ``inner``."""
    strides = [inner] if dims else []
    for dim in reversed(dims[1:]):
        strides.append(_product(strides[-1], dim))
    return strides[::-1]


def _packed_dn(dims: Sequence[Expr]) -> list[Expr]:
    if len(dims) < 2:
        raise ValueError(f"TensorLayout.DN requires rank >= 2, got rank {len(dims)}")
    rows, columns = dims[-2], dims[-1]
    outer = _packed_over(dims[:-2], _product(rows, columns))
    return [*outer, index_const(1), _as_index(rows)]


def derive_layout_from_strides(shape: Sequence[Any], stride: Sequence[Any]) -> TensorLayout | None:
    """ND if the last stride is the constant 1, else DN if the second last is, else None."""
    strides = normalize_extents(stride)
    if strides and const_extent(strides[-1]) == 1:
        return TensorLayout.ND
    if len(strides) >= 2 and const_extent(strides[-2]) == 1:
        return TensorLayout.DN
    return None


def check_canonical_view(
    shape: Sequence[Any], stride: Sequence[Any], layout: TensorLayout, relaxed_symbolic: bool = True
) -> tuple[bool, str]:
    """Whether a view with these strides is canonical, and why not.

    Rows may be padded: outer strides larger than the packed ones are fine. With ``relaxed_symbolic`` an outer stride
    that can't be compared is accepted.
    """
    dims, strides = normalize_extents(shape), normalize_extents(stride)
    reason = _fault(dims, strides, layout, relaxed_symbolic)
    return reason == "", reason


def _fault(dims: Sequence[Expr], strides: Sequence[Expr], layout: TensorLayout, relaxed: bool) -> str:
    if layout is TensorLayout.NZ:
        return "NZ layout is tile-only and not allowed on a tensor type"
    if not strides:
        return "stride is empty: a canonical view states its strides"
    rank = len(dims)
    if len(strides) != rank:
        return f"stride rank {len(strides)} does not match shape rank {rank}"
    if layout is TensorLayout.DN and rank < 2:
        return f"TensorLayout.DN requires rank >= 2, got rank {rank}"
    innermost = rank - 2 if layout is TensorLayout.DN else rank - 1
    if const_extent(strides[innermost]) != 1:
        return f"innermost stride of {layout.name} (dim {innermost}) must be the constant 1"
    outer = [axis for axis in range(rank) if axis != innermost]
    packed = build_logical_strides_from_layout(dims, layout)
    unverified = None
    for axis in outer:
        have, least = const_extent(strides[axis]), const_extent(packed[axis])
        if have is not None and least is not None:
            if have < least:
                return f"stride[{axis}] = {have} is smaller than packed stride {least}"
        elif unverified is None and not extent_equal(strides[axis], packed[axis]):
            unverified = axis
    if unverified is not None and not relaxed:
        return f"stride[{unverified}] is symbolic and cannot be verified against the packed stride"
    return ""


def is_canonical_view(
    shape: Sequence[Any], stride: Sequence[Any], layout: TensorLayout, relaxed_symbolic: bool = True
) -> bool:
    """The verdict of :func:`check_canonical_view`."""
    return check_canonical_view(shape, stride, layout, relaxed_symbolic)[0]


def canonicalize_view(shape: Sequence[Any], layout: TensorLayout) -> TensorView:
    """The view of a packed tensor with its strides spelled out."""
    return TensorView(build_logical_strides_from_layout(shape, layout), layout)


def compute_shape_product(shape: Sequence[Any]) -> int:
    """The number of elements, or -1 if any dim is dynamic."""
    total = 1
    for dim in normalize_extents(shape):
        size = const_extent(dim)
        if size is None:
            return DYNAMIC_DIM
        total *= size
    return total


__all__ = [
    "build_logical_strides_from_layout",
    "canonicalize_view",
    "check_canonical_view",
    "compute_shape_product",
    "derive_layout_from_strides",
    "is_canonical_view",
]
