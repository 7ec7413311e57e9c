"""Which memory an argument of a launch is: a buffer, and what part of it."""

from __future__ import annotations

import enum
from typing import Any

from ...analysis.buffer_names import BufferNames
from ...analysis.view_boxes import Box, ViewBoxes, disjoint
from ...ir.enums import PadValue, TensorLayout
from ...ir.expr import Call, GlobalVar, Submit, TupleGetItemExpr, Var
from ...ir.extents import extents_equal
from ...ir.program import Function
from ...ir.stmt import AssignStmt
from ...ir.tensor_view_semantics import build_logical_strides_from_layout
from ...ir.tree import walk_stmts
from ...ir.type import TensorType

# A variable that may be more buffers than this is not followed.
_ALTERNATIVES = 4


class Part(enum.Enum):
    """How much is known of the part of a buffer that is touched."""

    FULL = "full"
    BOX = "box"
    CONSERVATIVE = "conservative"  # some part; the buffer is sure
    DYNAMIC = "dynamic"  # a window at a place that is computed
    UNKNOWN = "unknown"


class Place:
    """A part of a buffer. ``exact``: it is this buffer and no other one."""

    __slots__ = ("box", "exact", "part", "root")

    def __init__(self, root: Var, part: Part, box: Box | None = None, exact: bool = True) -> None:
        self.root = root
        self.part = part
        self.box = box
        self.exact = exact

    def overlaps(self, other: Place) -> bool:
        """Whether two places of one buffer may have an element in common."""
        return self.root is not other.root or not disjoint(self.box, other.box)

    @property
    def lowerable(self) -> bool:
        """Whether a direction may be lowered when all hazards are covered by edges."""
        return self.part not in (Part.DYNAMIC, Part.UNKNOWN)


class Places:
    """The places of the tensor variables of one function."""

    def __init__(self, function: Function, names: BufferNames) -> None:
        self._names = names
        self._boxes = ViewBoxes(names)
        self._known: dict[Var, list[Place] | None] = {}
        self._roots: set[Any] = set(function.params)
        for stmt in walk_stmts(function.body):
            if type(stmt) is AssignStmt and isinstance(stmt.var.type, TensorType) and _makes_buffer(stmt.value):
                self._roots.add(stmt.var)

    def of(self, var: Any) -> list[Place] | None:
        """The places that a tensor variable may be; None if that is not known."""
        if not isinstance(var, Var) or not isinstance(var.type, TensorType):
            return None
        if var not in self._known:
            self._known[var] = self._find(var)
        return self._known[var]

    def _find(self, var: Var) -> list[Place] | None:
        name = self._names.name(var)
        if name is not None:
            place = self._of_name(name)
            return None if place is None else [_filtered(place, var)]
        roots = self._names.candidates(var)
        if not 0 < len(roots) <= _ALTERNATIVES or not self._roots.issuperset(roots):
            return None
        return [_filtered(Place(root, Part.CONSERVATIVE, exact=False), var) for root in roots]

    def _of_name(self, name: Var) -> Place | None:
        views = self._names.views
        if name not in views:
            return Place(name, Part.FULL) if name in self._roots else None
        root: Any = name
        # Only slices show elements of the buffer in their places.
        while root in views:
            if views[root].op.name != "tensor.slice":
                return None
            root = self._names.name(views[root].args[0])
        if not isinstance(root, Var) or root not in self._roots:
            return None
        base, box = self._boxes.of(name)
        return Place(root, Part.BOX, box) if box is not None and base is root else Place(root, Part.DYNAMIC)


def _makes_buffer(value: Any) -> bool:
    if type(value) is TupleGetItemExpr:
        return True  # an output that the runtime allocates, if it is a buffer of its own at all
    return type(value) is Submit or (
        type(value) is Call and (type(value.op) is GlobalVar or value.op.name == "tensor.create")
    )


def _filtered(place: Place, var: Var) -> Place:
    """What the type of the variable leaves of the knowledge: its view may show less, or other elements."""
    view = var.type.tensor_view  # type: ignore[attr-defined]
    if view is None:
        return place
    shape = var.type.shape  # type: ignore[attr-defined]
    packed = not view.stride or extents_equal(view.stride, build_logical_strides_from_layout(shape, TensorLayout.ND))
    if view.layout is not TensorLayout.ND or view.pad is not PadValue.null or not packed:
        return Place(place.root, Part.UNKNOWN, exact=place.exact)
    if view.valid_shape and place.part in (Part.FULL, Part.BOX):
        return Place(place.root, Part.CONSERVATIVE, exact=place.exact)
    return place


__all__ = ["Part", "Place", "Places"]
