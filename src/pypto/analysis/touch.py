"""Boxes of elements whose ends are affine forms: what a kernel touches of a tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..ir.expr import MakeTuple
from ..ir.type import ShapedType
from ..ops.definition import Window
from .affine import Affine


class Span:
    """A stretch of one dimension. ``low + size`` is behind its last element; a size below 1 is nothing."""

    __slots__ = ("low", "size")

    def __init__(self, low: Affine, size: Affine) -> None:
        self.low = low
        self.size = size

    @property
    def high(self) -> Affine:
        return self.low.plus(self.size)

    def forms(self) -> tuple[Affine, Affine]:
        return self.low, self.size

    def __repr__(self) -> str:
        return f"[{self.low} : +{self.size}]"


# The stretch of each dimension (None: all of it).
Dims = tuple[Span | None, ...]


class Touch:
    """A box that holds all that is touched. ``exact``: every element of it is touched in every run."""

    __slots__ = ("dims", "exact")

    def __init__(self, dims: Dims, exact: bool) -> None:
        self.dims = dims
        self.exact = exact

    def joined(self, other: Touch, both: bool) -> Touch:
        """A box that holds two. ``both``: both are touched, not one or the other."""
        dims = tuple(_hull(a, b) for a, b in zip(self.dims, other.dims, strict=True))
        exact = False
        if (both and (self.exact or other.exact)) or (self.exact and other.exact):
            exact = (self.exact and same_dims(dims, self.dims) and (both or same_dims(dims, other.dims))) or (
                other.exact and both and same_dims(dims, other.dims)
            )
        return Touch(dims, exact)

    def __repr__(self) -> str:
        return f"{'' if self.exact else 'within '}{list(self.dims)}"


def window_box(window: Window, call: Any, rank: int, form: Callable[[Any], Affine | None]) -> Dims | None:
    """The box that a window of an op says; None if it does not say one in ``rank`` dimensions."""
    offsets = elements(call.args[window.offsets])
    if offsets is None or len(offsets) != rank:
        return None
    extents: Sequence[Any] | None = [1] * rank
    for i in window.extents:
        if i < len(call.args):
            arg = call.args[i]
            given = elements(arg) if not isinstance(arg.type, ShapedType) else arg.type.shape
            if given is None:
                return None
            if given:
                extents = given
                break
    if extents is None or len(extents) != rank:
        return None
    if window.transposed and call.kwargs.get(window.transposed):
        extents = [*extents[:-2], extents[-1], extents[-2]]
    return spans(offsets, extents, form)


def spans(offsets: Iterable[Any], extents: Iterable[Any], form: Callable[[Any], Affine | None]) -> Dims:
    """A stretch for each offset and extent; None where one of them is no affine form."""
    found: list[Span | None] = []
    for offset, extent in zip(offsets, extents, strict=True):
        low = form(offset)
        size = Affine(extent) if type(extent) is int else form(extent)
        found.append(None if low is None or size is None else Span(low, size))
    return tuple(found)


def elements(e: Any) -> Sequence[Any] | None:
    """The elements of a tuple that is written out."""
    return e.elements if type(e) is MakeTuple else None


def within(outer: Dims, inner: Dims) -> Dims:
    """A box in the dimensions of another one, seen from where that one lies."""
    found: list[Span | None] = []
    for a, b in zip(outer, inner, strict=True):
        if a is None or b is None:
            found.append(b if a is None else a)
        else:
            found.append(Span(a.low.plus(b.low), b.size))
    return tuple(found)


def _hull(a: Span | None, b: Span | None) -> Span | None:
    """A stretch that holds two; None where it is not known which one begins first."""
    if a is None or b is None:
        return None
    first = b.low.plus(a.low, -1).value
    last = b.high.plus(a.high, -1).value
    if first is None or last is None:
        return None
    low = a.low if first >= 0 else b.low
    high = b.high if last >= 0 else a.high
    return Span(low, high.plus(low, -1))


def same_dims(a: Dims, b: Dims) -> bool:
    """Whether two boxes are the same by their forms."""
    return all(
        x is y or (x is not None and y is not None and x.low.same(y.low) and x.size.same(y.size))
        for x, y in zip(a, b, strict=True)
    )


def run_over(touch: Touch, key: Any, ends: tuple[Affine, Affine] | None, step: int) -> Touch:
    """A box that holds a box at all values of a variable between two ends; it is never negative in them.

    ``step``: how far apart the values are, which then are all taken; 0 if that is not certain.
    """
    dims = []
    moving = 0
    exact = touch.exact
    for span in touch.dims:
        if span is None or (key not in span.low.terms and key not in span.size.terms):
            dims.append(span)
            continue
        if ends is None or key in span.size.terms:
            dims.append(None)
            exact = False
            continue
        factor = span.low.terms[key]
        least, most = ends if factor > 0 else ends[::-1]
        low = span.low.without(key).plus(least, factor)
        size = span.size.plus(most, factor).plus(least, -factor)
        moving += 1
        extent = span.size.value
        exact = exact and step != 0 and extent is not None and abs(factor * step) <= extent
        dims.append(Span(low, size))
    return Touch(tuple(dims), exact and moving <= 1 and (step != 0 or not moving))


def substituted(touch: Touch, values: Callable[[Any], Affine | None]) -> Touch:
    """A box with forms in place of variables; a dimension in which one has none is touched as a whole."""
    dims: list[Span | None] = []
    exact = touch.exact
    for span in touch.dims:
        low = span.low.substituted(values) if span is not None else None
        size = span.size.substituted(values) if span is not None else None
        dims.append(None if low is None or size is None else Span(low, size))
        exact = exact and (span is None or dims[-1] is not None)
    return Touch(tuple(dims), exact)


__all__ = ["Dims", "Span", "Touch", "elements", "run_over", "same_dims", "spans", "substituted", "window_box", "within"]
