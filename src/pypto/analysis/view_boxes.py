"""Which part of a buffer a view shows, where that is constant."""

from __future__ import annotations

from typing import Any

from ..ir.expr import MakeTuple, Var
from ..ir.type import ShapedType
from .buffer_names import BufferNames
from .constants import constant_ints

# (first, behind the last) in each dimension of the buffer.
Box = tuple[tuple[int, int], ...]


class ViewBoxes:
    """The views of one function. ``of(var)``: the buffer that a tensor variable shows a part of, and the box of it.

    The box is None where it is not known: offsets that are computed, views of another shape. The buffer is None where
    it may be one or another. A variable that names a whole buffer has the buffer's box if that is constant.
    """

    def __init__(self, names: BufferNames) -> None:
        self._names = names
        self._found: dict[Var, tuple[Var, Box | None]] = {}

    def of(self, var: Any) -> tuple[Var | None, Box | None]:
        name = self._names.name(var)
        if name is None:
            return None, None
        chain = []
        while name not in self._found:
            call = self._names.views.get(name)
            parent = self._names.name(call.args[0]) if call is not None else None
            if call is None or parent is None:
                self._found[name] = name, _whole(name)
                break
            chain.append((name, call))
            name = parent
        for view, call in reversed(chain):
            base, box = self._found[name]
            self._found[view] = base, _part(call, box)
            name = view
        return self._found[name]


def disjoint(a: Box | None, b: Box | None) -> bool:
    """Whether two boxes of one buffer certainly have no element in common."""
    if a is None or b is None or len(a) != len(b):
        return False
    return any(
        low >= other_high or other_low >= high for (low, high), (other_low, other_high) in zip(a, b, strict=True)
    )


def _whole(var: Var) -> Box | None:
    extents = constant_ints(var.type.shape) if isinstance(var.type, ShapedType) else None
    return None if extents is None else tuple((0, extent) for extent in extents)


def _part(call: Any, box: Box | None) -> Box | None:
    """The box of a slice of a box with the parent's dimensions; None for any other view."""
    if box is None or call.op.name != "tensor.slice" or len(call.args) < 3:
        return None
    shape, offsets = _constants(call.args[1]), _constants(call.args[2])
    if shape is None or offsets is None or not len(shape) == len(offsets) == len(box):
        return None
    return tuple((low + at, low + at + n) for (low, _), at, n in zip(box, offsets, shape, strict=True))


def _constants(items: Any) -> tuple[int, ...] | None:
    """Constant integers of a tuple that is written out."""
    return constant_ints(items.elements) if type(items) is MakeTuple else None


__all__ = ["Box", "ViewBoxes", "disjoint"]
