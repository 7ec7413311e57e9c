"""The reference semantics that matrix products share: the product over valid regions, accumulation, bias."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._lazy import np
from ..ir.dtype import DataType
from .regions import placed
from .values import ArrayValue


def accumulator_dtype(*dtypes: DataType) -> DataType:
    """FP32 when all operands are floats, else INT32."""
    return DataType.FP32 if all(d.is_float_ for d in dtypes) else DataType.INT32


def accumulate(a: Any, b: Any, result: DataType) -> Any:
    """``a @ b`` accumulated in ``result``: FP32, or INT32 with wrap-around."""
    if result.is_float_:
        return np.matmul(a.astype(np.float32, copy=False), b.astype(np.float32, copy=False))
    if a.dtype.itemsize <= 2 and b.dtype.itemsize <= 2:  # exact in float64, where a BLAS does the work
        whole = np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64)
    else:
        whole = np.matmul(a.astype(np.int64), b.astype(np.int64))
    return whole.astype(np.int32)


class Product:
    """The product of two values over their valid regions: numbers, which are defined, and the full result shape."""

    __slots__ = ("mask", "shape", "values")

    def __init__(self, a: ArrayValue, b: ArrayValue, result: DataType, a_trans: bool = False, b_trans: bool = False):
        lead = _lead_region(a, b)
        x, known_x = _take(a, lead)
        y, known_y = _take(b, lead)
        full_x, full_y = a.shape, b.shape
        if a_trans:
            x, known_x, full_x = _swap(x), _swap(known_x), (*full_x[:-2], full_x[-1], full_x[-2])
        if b_trans:
            y, known_y, full_y = _swap(y), _swap(known_y), (*full_y[:-2], full_y[-1], full_y[-2])
        axis = 0 if y.ndim == 1 else -2
        inner = x.shape[-1]
        covered = y.shape[axis] >= inner
        inner = min(inner, y.shape[axis])
        x = x[..., :inner]
        y = y[:inner] if y.ndim == 1 else y[..., :inner, :]
        with np.errstate(all="ignore"):
            self.values = np.asarray(accumulate(x, y, result))
        self.shape = _product_shape(full_x, full_y)
        mask: Any = None
        if not covered:  # the contraction runs past the valid rows of rhs
            mask = np.zeros(self.values.shape, np.bool_)
        elif known_x is not None or known_y is not None:
            rows = np.ones(x.shape[:-1], np.bool_) if known_x is None else known_x[..., :inner].all(axis=-1)
            if known_y is None:
                columns = np.ones(y.shape[:axis] + (y.shape[-1],) if y.ndim > 1 else (), np.bool_)
            else:
                columns = (known_y[:inner] if y.ndim == 1 else known_y[..., :inner, :]).all(axis=axis)
            # A row is known when all of it is; so is a column. Products need both.
            if x.ndim > 1 and y.ndim > 1:
                rows, columns = rows[..., :, None], columns[..., None, :]
            mask = np.broadcast_to(rows & columns, self.values.shape)
        self.mask = None if mask is not None and mask.all() else mask


def _lead_region(a: ArrayValue, b: ArrayValue) -> tuple[int, ...]:
    """The valid region of the batch dimensions of a product."""
    lead = list(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]))
    region = list(lead)
    for operand in (a, b):
        own, valid = operand.shape[:-2], operand.valid[:-2]
        for i in range(-len(own), 0):
            if own[i] == lead[i] or valid[i] != 1:
                region[i] = min(region[i], valid[i])
    return tuple(region)


def _take(operand: ArrayValue, lead: Sequence[int]) -> tuple[Any, Any]:
    """Data and mask of an operand over its valid matrix, for the batch entries that the product has."""
    window = list(operand.valid_window())
    for i in range(-len(operand.shape[:-2]), 0):
        # An extent of 1 repeats; it is not cut, unless nothing is left.
        count = lead[i] if operand.shape[:-2][i] != 1 else min(1, lead[i])
        window[i - 2] = slice(0, count)
    if operand.fully_valid and all(part.stop == n for part, n in zip(window, operand.shape, strict=True)):
        return operand.data, operand.mask
    mask = operand.mask
    return operand.data[tuple(window)], None if mask is None else mask[tuple(window)]


def _swap(x: Any) -> Any:
    return None if x is None else np.swapaxes(x, -1, -2)


def _product_shape(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    lead = np.broadcast_shapes(tuple(a[:-2]), tuple(b[:-2]))
    return (*lead, *(a[-2:-1] if len(a) > 1 else ()), *(b[-1:] if len(b) > 1 else ()))


def add_product(acc: ArrayValue, product: Product, overwrite: bool) -> ArrayValue:
    """Add a product to an accumulator in place, or overwrite it; what lies outside the product's region stays."""
    window = tuple(slice(0, n) for n in product.values.shape)
    acc.write(window, product.values, product.mask, accumulate=not overwrite)
    return acc


def add_bias(product: Product, bias: ArrayValue, shape: Sequence[int] | None = None) -> ArrayValue:
    """A product plus one bias per column, as a value of ``shape`` (None: that of the product)."""
    columns = product.values.shape[-1]
    values, mask = product.values + bias.data[..., :columns], product.mask
    known = np.zeros((1, columns), np.bool_)
    known[..., : bias.valid[-1]] = True
    if bias.mask is not None:
        known &= bias.mask[..., :columns]
    if not known.all():
        mask = np.broadcast_to(known if mask is None else mask & known, values.shape)
    return placed(values.astype(product.values.dtype), mask, shape or product.shape)
