"""Partial element-wise ops: combine where both operands are valid, copy the only valid one elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._lazy import np
from ..ir.enums import CoreType, MemorySpace
from ..ir.expr import Expr
from ..ir.extents import extent_equal
from ..ir.node import FrozenList
from ..ir.type import Type
from .definition import InferRule, Operand, Reference
from .elementwise import compute_in
from .numpy_types import numpy_dtype
from .regions import inside
from .registry import call, define
from .rules import (
    broadcast_shapes,
    is_one,
    require_args,
    result_dtype,
    result_like,
    same_extent,
    show_shape,
    tensor_type,
    tile_type,
)
from .surface import Operand as Arg
from .surface import common_level, surface
from .values import ArrayValue, fresh
from .windows import max_extent, provably, provably_exceeds

VEC = (MemorySpace.Vec,)
Function = Callable[[Any, Any], Any]


def _spread(shape: Sequence[Expr], kind: Any) -> list[Expr]:
    """The valid region of an operand after broadcasting to ``shape``."""
    own, valid = kind.shape, kind.valid_extents
    result = list(shape)
    for i in range(1, len(own) + 1):
        if not is_one(own[-i]) or is_one(shape[-i]) or not is_one(valid[-i]):
            result[-i] = valid[-i]
    return result


def _within(inner: Sequence[Expr], outer: Sequence[Expr], shape: Sequence[Expr]) -> bool:
    """Whether one region provably lies in another; no region exceeds the shape."""
    return all(extent_equal(n, whole) or provably(m, n) for m, n, whole in zip(inner, outer, shape, strict=True))


def partial_valid(name: str, shape: Sequence[Expr], a: Any, b: Any) -> Sequence[Expr]:
    """The valid region of a partial op: the larger of the operands' regions.

    Where neither provably contains the other, regions that differ along one axis still make a box; two regions that
    provably cross are refused; otherwise only the first operand's region is sure to be defined.
    """
    first, second = _spread(shape, a), _spread(shape, b)
    if _within(second, first, shape):
        return first
    if _within(first, second, shape):
        return second
    differing = [i for i, (m, n) in enumerate(zip(first, second, strict=True)) if not same_extent(m, n)]
    if len(differing) == 1:
        i = differing[0]
        return [*first[:i], max_extent(first[i], second[i]), *first[i + 1 :]]
    crossing = any(map(provably_exceeds, first, second)) and any(map(provably_exceeds, second, first))
    if crossing:
        raise ValueError(
            f"{name} requires the valid region of one operand to contain the other's, "
            f"but got {show_shape(first)} and {show_shape(second)}: their union is no rectangle"
        )
    return first


def _infer(name: str, level: str) -> InferRule:
    operand_type: Callable[..., Any] = tensor_type if level == "tensor" else tile_type

    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(name, args, 2)
        a, b = operand_type(name, args, 0), operand_type(name, args, 1)
        shape = broadcast_shapes(name, a.shape, b.shape)
        valid = FrozenList(partial_valid(name, shape, a, b))
        return result_like(a, shape, result_dtype(a.dtype, b.dtype), valid)

    return infer


def _reference(function: Function) -> Reference:
    def reference(ctx: Any, a: ArrayValue, b: ArrayValue) -> ArrayValue:
        dtype = numpy_dtype(ctx.type.dtype)
        working = compute_in(dtype)
        shape = np.broadcast_shapes(a.shape, b.shape)
        x, y = (np.broadcast_to(o.data, shape).astype(working) for o in (a, b))
        in_a, in_b = (np.broadcast_to(inside(o.shape, o.valid), shape) for o in (a, b))
        with np.errstate(all="ignore"):
            both = np.asarray(function(x, y)).astype(dtype)
        data = np.where(in_a & in_b, both, np.where(in_a, x.astype(dtype), y.astype(dtype)))
        known = in_a | in_b
        for operand, region in ((a, in_a), (b, in_b)):
            if operand.mask is not None:
                known = known & (~region | np.broadcast_to(operand.mask, shape))
        return fresh(data, known, _valid_at_run(shape, a, b))

    return reference


def _valid_at_run(shape: Sequence[int], a: ArrayValue, b: ArrayValue) -> tuple[int, ...]:
    regions = []
    for operand in (a, b):
        region = list(shape)
        for i in range(1, len(operand.shape) + 1):
            if operand.shape[-i] != 1 or shape[-i] == 1 or operand.valid[-i] != 1:
                region[-i] = operand.valid[-i]
        regions.append(tuple(region))
    first, second = regions
    larger = tuple(map(max, first, second))
    if larger == second or sum(m != n for m, n in zip(first, second, strict=True)) == 1:
        return larger
    return first


def _define(name: str, function: Function, doc: str) -> None:
    for level in ("tensor", "tile"):
        kind = "window" if level == "tensor" else "tile"
        spec: dict[str, Any] = {}
        if level == "tile":
            spec = {"output_memory": MemorySpace.Vec, "input_memory": (VEC, VEC), "core": CoreType.VECTOR}
        define(
            f"{level}.{name}",
            [Operand("src0", kind), Operand("src1", kind)],
            _infer(f"{level}.{name}", level),
            doc=doc,
            reference=_reference(function),
            priority="full",
            **spec,
        )

    def tensor(lhs: Arg, rhs: Arg) -> Expr:
        return call(f"tensor.{name}", lhs, rhs)

    def tile(src0: Arg, src1: Arg) -> Expr:
        return call(f"tile.{name}", src0, src1)

    def unified(lhs: Arg, rhs: Arg) -> Expr:
        level = common_level(name, lhs, rhs)
        return call(f"{level}.{name}", lhs, rhs)

    surface("tensor", name=name)(tensor)
    surface("tile", name=name)(tile)
    surface("pl", name=name)(unified)


_define("part_add", lambda a, b: a + b, "sum where both are valid, else the valid one")
_define("part_mul", lambda a, b: a * b, "product where both are valid, else the valid one")
_define("part_max", lambda a, b: np.maximum(a, b), "maximum where both are valid, else the valid one")
_define("part_min", lambda a, b: np.minimum(a, b), "minimum where both are valid, else the valid one")
