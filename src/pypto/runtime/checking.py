"""Comparing results with what was expected."""

from __future__ import annotations

from typing import Any

from .._lazy import np
from .arrays import host_view, is_array

# Relative and absolute tolerance where the caller gives none.
_TOLERANCES = {"float32": 1e-5, "float16": 1e-3, "bfloat16": 8e-3}
_SHOWN = 20


def tolerance_of(dtype: Any) -> float:
    """The default tolerance of an element type: exact for integers, 6e-2 for 8-bit floats."""
    name = np.dtype(dtype).name
    if name in _TOLERANCES:
        return _TOLERANCES[name]
    return 6e-2 if name.startswith("float8") else 0.0


def assert_close(
    name: str,
    actual: Any,
    expected: Any,
    tolerance: tuple[float, float] | None = None,
    *,
    ignore: Any = None,
    equal_nan: bool = True,
) -> None:
    """``AssertionError`` unless ``|actual - expected| <= atol + rtol * |expected|`` for each element.

    ``tolerance``: ``(rtol, atol)``; by element type without. ``ignore``: mask of elements that don't matter. NaN equals
    NaN unless ``equal_nan`` is false; infinities are equal to themselves only.
    """
    got = host_view(actual, name, False) if is_array(actual) else np.asarray(actual)
    want = host_view(expected, name, False) if is_array(expected) else np.asarray(expected)
    if got.shape != want.shape:
        raise AssertionError(f"Output '{name}' has shape {got.shape}, expected {want.shape}")
    rtol, atol = tolerance if tolerance is not None else (tolerance_of(got.dtype),) * 2
    a, e = _comparable(got), _comparable(want)
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.abs(a - e)
        right = (a == e) | (difference <= atol + rtol * np.abs(e))
    if a.dtype.kind == "f":
        right = np.where(np.isinf(a) | np.isinf(e), a == e, right)
        if equal_nan:
            right |= np.isnan(a) & np.isnan(e)
    ignored = 0
    if ignore is not None:
        ignored = int(np.count_nonzero(ignore))
        right |= ignore
    if right.all():
        return
    raise AssertionError(_report(name, a, e, ~right, difference, ignored, rtol, atol))


def _comparable(array: Any) -> Any:
    """Integers stay exact; all floats are compared in double precision."""
    if array.dtype.kind in "iub":
        return array.astype(object) if array.dtype.itemsize == 8 else array.astype(np.int64)
    return array.astype(np.float64)


def _report(name: str, a: Any, e: Any, wrong: Any, difference: Any, ignored: int, rtol: float, atol: float) -> str:
    places = np.argwhere(wrong)
    finite = difference[wrong].astype(np.float64)
    finite = finite[np.isfinite(finite)]
    scale = np.abs(e[wrong].astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = difference[wrong].astype(np.float64) / scale
    relative = relative[np.isfinite(relative)]
    lines = [
        f"Output '{name}' does not match: {len(places)} of {wrong.size} elements differ"
        + (f" ({ignored} ignored)" if ignored else "")
        + f" (rtol={rtol:g}, atol={atol:g})",
        f"  largest absolute error {finite.max() if finite.size else float('nan'):g}, "
        f"relative {relative.max() if relative.size else float('nan'):g}",
    ]
    for place in places[:_SHOWN]:
        index = tuple(int(i) for i in place)
        flat = int(np.ravel_multi_index(index, a.shape)) if index else 0
        lines.append(f"  [{flat}] {list(index)}: actual={a[index]}, expected={e[index]}")
    if len(places) > _SHOWN:
        lines.append(f"  ... and {len(places) - _SHOWN} more")
    return "\n".join(lines)


__all__ = ["assert_close", "tolerance_of"]
