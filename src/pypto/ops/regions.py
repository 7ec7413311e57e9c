"""Run-time helpers over valid regions: results computed on a region, placed into a value of the full shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._lazy import np
from .values import ArrayValue, UndefinedValueError, fresh


def placed(values: Any, mask: Any, shape: Sequence[int]) -> ArrayValue:
    """A fresh value of ``shape`` whose valid region, at the origin, holds ``values`` (defined where ``mask`` says)."""
    shape, region = tuple(shape), values.shape
    if region == shape:
        return fresh(values, mask)
    window = tuple(slice(0, n) for n in region)
    data = np.zeros(shape, values.dtype)
    data[window] = values
    defined = None
    if mask is not None and not mask.all():
        defined = np.zeros(shape, np.bool_)
        defined[window] = mask
    return fresh(data, defined, region)


def as_scalar_value(values: Any, mask: Any, what: str) -> Any:
    """The Python number of a rank-0 result."""
    if mask is not None and not np.all(mask):
        raise UndefinedValueError(f"{what}: the result depends on an element that nothing has defined")
    return values.item() if values.dtype.kind in "iufb" else float(values)


def window_of(extents: Sequence[int]) -> tuple[slice, ...]:
    """Index of a region at the origin."""
    return tuple(slice(0, n) for n in extents)


def inside(shape: Sequence[int], valid: Sequence[int]) -> Any:
    """A boolean array that is True in the valid region."""
    result = np.zeros(tuple(shape), np.bool_)
    result[window_of(valid)] = True
    return result


def defined_elements(value: ArrayValue) -> Any:
    """A boolean array of the whole shape: inside the valid region and defined. None when that is everything."""
    mask = value.mask
    if value.fully_valid:
        return mask
    region = inside(value.shape, value.valid)
    return region if mask is None else region & mask


def row_bytes(data: Any) -> Any:
    """The bytes of each row: the last axis of a contiguous copy, as uint8."""
    return np.ascontiguousarray(data).view(np.uint8)
