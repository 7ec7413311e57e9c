"""Subscripts of tensors, tiles and arrays: reads become read/slice calls, writes become assemble calls."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from ..arith.prove import simplify
from ..ir import scalar as scalars
from ..ir.dtype import DataType
from ..ir.expr import ConstInt, Expr, index_const
from ..ir.span import Span
from ..ir.type import ArrayType, ScalarType, TensorType, TileType, extent_equal
from ..ops.surface import NAMESPACES
from .errors import ParserTypeError, UnsupportedFeatureError
from .expressions import Expressions


class Axis:
    """One subscript axis: an index (``extent`` 1, ``scalar``) or a range."""

    __slots__ = ("extent", "lower", "offset", "scalar", "upper")

    def __init__(self, offset: Expr, extent: Expr, scalar: bool, lower: Expr | None, upper: Expr | None) -> None:
        self.offset = offset
        self.extent = extent
        self.scalar = scalar
        self.lower = lower
        self.upper = upper


ZERO = index_const(0)
ONE = index_const(1)


def const_of(e: Expr | None) -> int | None:
    return e.value if type(e) is ConstInt else None


class Subscripts(Expressions):
    """Subscript sugar."""

    def axes(self, node: ast.Subscript, shape: Sequence[Expr], what: str, write: bool = False) -> list[Axis]:
        """The axes of a subscript; missing trailing ones are full."""
        index = node.slice
        items = list(index.elts) if type(index) is ast.Tuple else [index]
        if len(items) > len(shape):
            if write:
                self.type_error(
                    f"{what} subscript-write has {len(items)} indices but the {what.lower()} is {len(shape)}D", node
                )
            self.type_error(f"{what} subscript has {len(items)} indices but the {what.lower()} is {len(shape)}D", node)
        axes = []
        for position, dim in enumerate(shape):
            if position >= len(items):
                axes.append(Axis(ZERO, dim, False, None, None))
                continue
            item = items[position]
            if type(item) is not ast.Slice:
                axes.append(Axis(self._index(item), ONE, True, None, None))
                continue
            if item.step is not None:
                where = "subscript-write" if write else "subscript"
                self.fail(f"Slice step is not supported in {what.lower()} {where}", item, None, UnsupportedFeatureError)
            lower = self._index(item.lower) if item.lower is not None else None
            upper = self._index(item.upper) if item.upper is not None else None
            axes.append(Axis(lower or ZERO, self._range_extent(lower, upper, dim), False, lower, upper))
        return axes

    def _index(self, node: ast.expr) -> Expr:
        value = self.expr(node)
        if not (isinstance(value.type, ScalarType) and value.type.dtype.is_int_):
            self.type_error(f"a subscript index must be an integer scalar, got {value.type}", node)
        return value

    def _range_extent(self, lower: Expr | None, upper: Expr | None, dim: Expr) -> Expr:
        high = dim if upper is None else upper
        if lower is None or const_of(lower) == 0:
            return high
        a, b = const_of(lower), const_of(high)
        if a is not None and b is not None:
            return index_const(b - a)
        return simplify(scalars.sub(high, lower, high.span))

    # --- reads --------------------------------------------------------------------------------------------------------

    def array_read(self, base: Expr, node: ast.Subscript) -> Expr:
        if type(node.slice) is ast.Tuple or type(node.slice) is ast.Slice:
            self.type_error("Array subscript requires a single index", node)
        return self._surface("array", "get_element", (base, self._index(node.slice)), node)

    def tensor_read(self, base: Expr, node: ast.Subscript) -> Expr:
        kind = base.type
        assert isinstance(kind, TensorType)
        axes = self.axes(node, kind.shape, "Tensor")
        if all(axis.scalar for axis in axes):
            return self._surface("tensor", "read", (base, [a.offset for a in axes]), node)
        dropped = [i for i, axis in enumerate(axes) if axis.scalar]
        kwargs: dict[str, Any] = {"drop_dims": dropped} if dropped else {}
        return self._surface(
            "tensor", "slice", (base, [a.extent for a in axes], [a.offset for a in axes]), node, **kwargs
        )

    def tile_read(self, base: Expr, node: ast.Subscript) -> Expr:
        kind = base.type
        assert isinstance(kind, TileType)
        axes = self.axes(node, kind.shape, "Tile")
        if all(axis.scalar for axis in axes):
            return self._surface("tile", "read", (base, [a.offset for a in axes]), node)
        shape: list[Expr] = []
        valid: list[Expr] = []
        for axis, dim, have in zip(axes, kind.shape, kind.valid_extents, strict=True):
            extent, seen = (ONE, ONE) if axis.scalar else self._tile_extent(axis, dim, have, node)
            shape.append(extent)
            valid.append(seen)
        dropped = [i for i, axis in enumerate(axes) if axis.scalar]
        kwargs: dict[str, Any] = {}
        if any(not extent_equal(a, b) for a, b in zip(shape, valid, strict=True)):
            kwargs["valid_shape"] = valid
        if dropped:
            kwargs["drop_dims"] = dropped
            if len(axes) - len(dropped) < 2:
                kept = [const_of(e) for e, axis in zip(shape, axes, strict=True) if not axis.scalar]
                promoted = [1] * (2 - len(kept)) + kept
                self.warn(
                    f"tile subscript reduces to {len(kept)}D; auto-promoting to 2D shape {promoted}",
                    node,
                    in_texts=True,
                )
        return self._surface("tile", "slice", (base, shape, [a.offset for a in axes]), node, **kwargs)

    def _tile_extent(self, axis: Axis, dim: Expr, have: Expr, node: ast.Subscript) -> tuple[Expr, Expr]:
        """(allocation extent, valid extent) of a range on a tile axis; the allocation extent is static."""
        if axis.lower is not None and const_of(axis.lower) is None:
            self.fail(
                "Dynamic lower bounds are not supported in tile subscript",
                node,
                "Use pl.slice(tile, [rows, cols], [row, 0]) with a static shape",
                UnsupportedFeatureError,
            )
        lower = const_of(axis.lower) or 0
        size = const_of(dim)
        if size is None:
            self.type_error("tile subscript needs a static tile shape", node)
        upper = const_of(axis.upper)
        extent = (min(upper, size) if upper is not None else size) - lower
        if extent <= 0:
            self.fail("tile subscript must produce a positive static extent", node, None, UnsupportedFeatureError)
        limit = axis.upper
        valid = have if limit is None else _min(limit, have)
        if lower:
            valid = (
                _max(scalars.sub(valid, index_const(lower)), ZERO)
                if const_of(valid) is None
                else index_const(max((const_of(valid) or 0) - lower, 0))
            )
        return index_const(extent), valid

    def _surface(self, namespace: str, name: str, args: tuple[Any, ...], node: ast.expr, **kwargs: Any) -> Expr:
        function = NAMESPACES[namespace][name]
        return self.call_surface(function, args, kwargs, f"pl.{namespace}.{name}", node)  # type: ignore[no-any-return]

    # --- writes -------------------------------------------------------------------------------------------------------

    def subscript_write(self, target: ast.Subscript, source: Expr, span: Span) -> None:
        """``dst[...] = src``: rebinds ``dst`` to the updated tensor, tile or array."""
        if type(target.value) is not ast.Name:
            self.fail("Subscript-write target must be a variable name", target)
        if self.strict_ssa:
            self.fail("Subscript-write is only supported before SSA conversion", target, None, UnsupportedFeatureError)
        name = target.value.id
        base = self.expr(target.value)
        kind = base.type
        if isinstance(kind, ArrayType):
            value = self._array_write(base, target, source)
        elif isinstance(kind, TensorType):
            value = self._region_write(base, target, source, "tensor", (TensorType,))
        elif isinstance(kind, TileType):
            value = self._region_write(base, target, source, "tile", (TileType,))
        else:
            self.type_error(f"Subscript-write requires a Tensor, Tile, or Array target, got {kind}", target)
        self.assign(name, value, span, target)

    def _array_write(self, base: Expr, target: ast.Subscript, source: Expr) -> Expr:
        if type(target.slice) in (ast.Tuple, ast.Slice):
            self.type_error("Array subscript-write requires a single index", target)
        dtype = base.type.dtype  # type: ignore[attr-defined]
        if type(source) is ConstInt and source.dtype is DataType.INDEX and dtype is not DataType.TASK_ID:
            source = ConstInt(source.value, dtype, source.span)
        return self._surface("array", "update_element", (base, self._index(target.slice), source), target)

    def _region_write(
        self, base: Expr, target: ast.Subscript, source: Expr, level: str, source_types: tuple[type, ...]
    ) -> Expr:
        what = level.capitalize()
        kind = base.type
        axes = self.axes(target, kind.shape, what, write=True)  # type: ignore[attr-defined]
        if all(axis.scalar for axis in axes):
            self.fail(
                "Element-write 'dst[i, j] = scalar' is not supported",
                target,
                "Use pl.write(dst, [i, j], value)",
                UnsupportedFeatureError,
            )
        if not isinstance(source.type, source_types):
            self.type_error(f"Subscript-write source must also be a {level}, got {source.type}", target)
        scalar_axes = [i for i, axis in enumerate(axes) if axis.scalar]
        wanted = len(axes) - len(scalar_axes)
        rank = len(source.type.shape)  # type: ignore[attr-defined]
        if rank != wanted and not (level == "tile" and rank == max(2, wanted)):
            self.type_error(
                f"Subscript-write source must be {wanted}D to match the rank-reduced window, got {rank}D", target
            )
        self._check_window(axes, source, target)
        if rank != len(axes):
            source = self._lift(source, axes, level, target)
        return self._surface(level, "assemble", (base, source, [a.offset for a in axes]), target)

    def _check_window(self, axes: list[Axis], source: Expr, target: ast.Subscript) -> None:
        kind = source.type
        window = [axis.extent for axis in axes if not axis.scalar]
        skip = len(kind.shape) - len(window)  # type: ignore[attr-defined]
        for i, extent in enumerate(window):
            a, b = const_of(extent), const_of(kind.shape[skip + i])  # type: ignore[attr-defined]
            if a is None or b is None or a == b:
                continue
            valid = const_of(kind.valid_extents[skip + i])  # type: ignore[attr-defined]
            if valid is None or valid == a:
                continue
            raise ParserTypeError(
                f"shape mismatch on source axis {i}: window expects {a} elements, source has {b}",
                self.span(target),
                hint="The window and the source must have equal extents",
            )

    def _lift(self, source: Expr, axes: list[Axis], level: str, target: ast.Subscript) -> Expr:
        """The source reshaped to the target's rank, with unit axes at the indexed positions."""
        kind = source.type
        skip = len(kind.shape) - sum(not a.scalar for a in axes)  # type: ignore[attr-defined]
        dims = iter(list(kind.shape)[skip:])  # type: ignore[attr-defined]
        shape = [ONE if axis.scalar else next(dims) for axis in axes]
        if level == "tensor" and kind.valid_extents is not kind.shape:  # type: ignore[attr-defined]
            from ..ops.normalize import extents
            from ..ops.registry import call

            valid = iter(kind.valid_extents)  # type: ignore[attr-defined]
            lifted = [ONE if axis.scalar else next(valid) for axis in axes]
            return call("tensor.reshape", source, extents(shape), extents(lifted))
        return self._surface(level, "reshape", (source, shape), target)


def _min(a: Expr, b: Expr) -> Expr:
    x, y = const_of(a), const_of(b)
    return index_const(min(x, y)) if x is not None and y is not None else scalars.min_(a, b)


def _max(a: Expr, b: Expr) -> Expr:
    x, y = const_of(a), const_of(b)
    return index_const(max(x, y)) if x is not None and y is not None else scalars.max_(a, b)
