"""Reductions along rows and columns: sum, max, min, prod, argmax, argmin.

A tensor op takes any axis (rows: the last, columns: the second-to-last by default). A tile op reduces the last axis
(rows, with a scratch tile) or axis 0 (columns).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._lazy import np
from ..ir.dtype import DataType
from ..ir.enums import CoreType, MemorySpace, TileLayout
from ..ir.expr import Expr, index_const
from ..ir.type import ScalarType, TileType, TileView, Type
from .definition import InferRule, Operand, Reference
from .elementwise import compute_in
from .regions import as_scalar_value, placed
from .registry import call, define
from .rules import require_args, require_dtype, same_extent, tensor_result, tensor_type, tile_type
from .surface import Attr, common_level, level_of, mixed_error, surface
from .surface import Operand as Arg
from .values import ArrayValue
from .windows import is_zero, provably_exceeds

D = DataType
ROW_MIN_DTYPES = (D.INT16, D.INT32, D.FP16, D.FP32)
VEC = (MemorySpace.Vec,)
TILE_SPEC: dict[str, Any] = {"output_memory": MemorySpace.Vec, "core": CoreType.VECTOR}

# --- reference semantics ----------------------------------------------------------------------------------------------

Reducer = Callable[[Any, int], Any]


def _half_to_single(x: Any) -> Any:
    working = compute_in(x.dtype)
    return x.astype(np.float32 if working == np.float16 else working, copy=False)


def _fold(function: str) -> Reducer:
    def reduce(x: Any, axis: int) -> Any:
        wide = _half_to_single(x)
        # NumPy widens sums of small integers; they wrap at the element type here.
        extra = {"dtype": wide.dtype} if function in ("sum", "prod") else {}
        return getattr(np, function)(wide, axis=axis, keepdims=True, **extra).astype(x.dtype)

    return reduce


def _position(function: str) -> Reducer:
    def reduce(x: Any, axis: int) -> Any:
        return getattr(np, function)(_half_to_single(x), axis=axis, keepdims=True).astype(np.int32)

    return reduce


def reduce_value(a: ArrayValue, axis: int, reducer: Reducer, keep_dim: bool, name: str) -> Any:
    """Reduce the valid region; an undefined element makes the results that depend on it undefined."""
    axis %= len(a.shape)
    data, mask = a.valid_data(), a.valid_mask()
    defined = None
    if data.shape[axis] == 0:  # a run-time extent of 0: nothing to reduce, so nothing is known of the result
        shape = tuple(1 if i == axis else n for i, n in enumerate(data.shape))
        values = reducer(np.ones(shape, data.dtype), axis)
        defined = np.zeros(shape, np.bool_)
    else:
        with np.errstate(all="ignore"):
            values = reducer(data, axis)
        if mask is not None:
            defined = mask.all(axis=axis, keepdims=True)
    full = tuple(1 if i == axis else n for i, n in enumerate(a.shape))
    if not keep_dim:
        values = values.squeeze(axis)
        defined = None if defined is None else defined.squeeze(axis)
        full = full[:axis] + full[axis + 1 :]
        if not full:
            return as_scalar_value(values, defined, name)
    return placed(values, defined, full)


def _tensor_reference(name: str, reducer: Reducer, default_axis: int) -> Reference:
    def reference(ctx: Any, a: ArrayValue, axis: int = default_axis, keep_dim: bool = True) -> Any:
        return reduce_value(a, axis, reducer, keep_dim, name)

    return reference


def _tile_reference(name: str, reducer: Reducer, axis: int) -> Reference:
    def reference(ctx: Any, a: ArrayValue, tmp_tile: Any = None) -> Any:
        return reduce_value(a, axis, reducer, True, name)

    return reference


# --- type rules -------------------------------------------------------------------------------------------------------


def _reject_empty(name: str, valid: Sequence[Expr]) -> None:
    for i, extent in enumerate(valid):
        if is_zero(extent):
            raise ValueError(f"{name} has nothing to reduce: valid extent on axis {i} is 0")


def _tensor_infer(name: str, default_axis: int, result: DataType | None, allowed: Sequence[DataType]) -> InferRule:
    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(name, args, 1)
        a = tensor_type(name, args, 0, plain=True)
        if allowed:
            require_dtype(name, "input", a.dtype, allowed)
        rank = len(a.shape)
        if rank < -default_axis:
            raise ValueError(f"{name} requires an input of rank >= {-default_axis}, but got rank {rank}")
        axis = kwargs.get("axis", default_axis)
        if not -rank <= axis < rank:
            raise ValueError(f"{name}: axis {axis} is out of range for rank {rank}")
        axis %= rank
        valid = a.valid_extents
        _reject_empty(name, valid)
        dtype = result or a.dtype
        if kwargs.get("keep_dim", True):
            one = [index_const(1)]
            return tensor_result(
                [*a.shape[:axis], *one, *a.shape[axis + 1 :]], dtype, [*valid[:axis], *one, *valid[axis + 1 :]]
            )
        if rank == 1:
            return ScalarType(dtype)
        return tensor_result([*a.shape[:axis], *a.shape[axis + 1 :]], dtype, [*valid[:axis], *valid[axis + 1 :]])

    return infer


def _check_scratch(name: str, a: TileType, tmp: TileType, exact: bool) -> None:
    if tmp.dtype is not a.dtype:
        raise ValueError(f"{name} requires tmp_tile dtype to match the input's {a.dtype}, but got {tmp.dtype}")
    if len(tmp.shape) != len(a.shape):
        raise ValueError(
            f"{name} requires tmp_tile to have the same rank as the input ({len(a.shape)}), but got {len(tmp.shape)}"
        )
    if exact and not all(map(same_extent, tmp.shape, a.shape)):
        raise ValueError(f"{name} requires tmp_tile to exactly match the input shape")
    if any(map(provably_exceeds, a.shape, tmp.shape)):
        raise ValueError(f"{name} requires tmp_tile to be at least the input shape")


# What a tile reduction asks of its scratch operand.
_NO_SCRATCH, _OPTIONAL, _COVERING, _EXACT, _ANY = range(5)


def _tile_infer(
    name: str, rows: bool, result: DataType | None, scratch: int, allowed: Sequence[DataType], row_major: bool
) -> InferRule:
    low = 1 if scratch in (_NO_SCRATCH, _OPTIONAL) else 2
    high = 1 if scratch == _NO_SCRATCH else 2

    def infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
        require_args(name, args, low, high)
        a = tile_type(name, args, 0)
        if len(a.shape) < 2:
            raise ValueError(f"{name} requires a tile of rank >= 2, but got rank {len(a.shape)}")
        if allowed:
            require_dtype(name, "input", a.dtype, allowed)
        if row_major:
            view = a.get_effective_tile_view()
            if view.blayout is not TileLayout.row_major or view.slayout is not TileLayout.none_box:
                raise ValueError(f"{name} requires an ND input layout (row_major, none_box)")
        if len(args) == 2:
            tmp = tile_type(name, args, 1)
            if scratch in (_COVERING, _EXACT):
                _check_scratch(name, a, tmp, scratch == _EXACT)
            elif scratch == _OPTIONAL and tmp.dtype is not a.dtype:
                raise ValueError(f"{name} requires tmp_tile dtype to match the input's {a.dtype}, but got {tmp.dtype}")
        valid = a.valid_extents
        _reject_empty(name, valid)
        one = [index_const(1)]
        shape = [*a.shape[:-1], *one] if rows else [*one, *a.shape[1:]]
        valid_shape = [*valid[:-1], *one] if rows else [*one, *valid[1:]]
        view = TileView(valid_shape, blayout=TileLayout.col_major if rows else TileLayout.row_major)
        return TileType(shape, result or a.dtype, None, view)

    return infer


# --- definitions ------------------------------------------------------------------------------------------------------


def _define(
    name: str,
    reducer: Reducer,
    doc: str,
    *,
    result: DataType | None = None,
    scratch: int,
    priority: str,
    fold: str = "",
) -> None:
    rows = name.startswith("row_")
    axis = -1 if rows else -2
    allowed = ROW_MIN_DTYPES if name == "row_min" else ()
    define(
        f"tensor.{name}",
        [Operand("input", "tensor")],
        _tensor_infer(f"tensor.{name}", axis, result, allowed),
        doc=doc,
        kwargs={"axis": (int, axis), "keep_dim": (bool, True)},
        reference=_tensor_reference(f"tensor.{name}", reducer, axis),
        priority=priority,
        fold=fold,
    )
    operands = [Operand("tile", "tile")]
    if scratch != _NO_SCRATCH:
        operands.append(Operand("tmp_tile", "tile", "scratch", optional=scratch == _OPTIONAL))
    define(
        f"tile.{name}",
        operands,
        _tile_infer(f"tile.{name}", rows, result, scratch, allowed, name == "row_min"),
        doc=doc,
        reference=_tile_reference(f"tile.{name}", reducer, -1 if rows else 0),
        input_memory=(VEC,) * len(operands),
        not_in_place=rows or scratch == _ANY,
        priority=priority,
        fold=fold,
        **TILE_SPEC,
    )
    _register_surface(name, scratch)


def _register_surface(name: str, scratch: int) -> None:
    tensor_op, tile_op = f"tensor.{name}", f"tile.{name}"

    # axis and keep_dim are no part of what users write; printed calls that carry them must parse back.
    def tensor(input: Arg, *, axis: Attr = None, keep_dim: Attr = None) -> Expr:
        return call(tensor_op, input, axis=axis, keep_dim=keep_dim)

    def tile_plain(tile: Arg) -> Expr:
        return call(tile_op, tile)

    def tile_optional(tile: Arg, tmp_tile: Arg = None) -> Expr:
        return call(tile_op, tile) if tmp_tile is None else call(tile_op, tile, tmp_tile)

    def tile_scratch(tile: Arg, tmp_tile: Arg) -> Expr:
        return call(tile_op, tile, tmp_tile)

    def unified_plain(input: Arg) -> Expr:
        level = common_level(name, input)
        return call(f"{level}.{name}", input)

    def unified(input: Arg, tmp_tile: Arg = None) -> Expr:
        level = level_of(input)
        if level == "tensor":
            if tmp_tile is not None:
                raise TypeError(f"pl.{name}: Tensor inputs must not pass tmp_tile")
            return call(tensor_op, input)
        if level != "tile":
            raise mixed_error(name, input)
        if tmp_tile is None:
            if scratch != _OPTIONAL:
                raise TypeError(f"pl.{name}: Tile inputs require tmp_tile")
            return call(tile_op, input)
        return call(tile_op, input, tmp_tile)

    surface("tensor", name=name)(tensor)
    if scratch == _NO_SCRATCH:
        surface("tile", name=name)(tile_plain)
        surface("pl", name=name)(unified_plain)
    else:
        surface("tile", name=name)(tile_optional if scratch == _OPTIONAL else tile_scratch)
        surface("pl", name=name)(unified)


_define("row_sum", _fold("sum"), "sum of each row", scratch=_COVERING, priority="core", fold="sum")
_define("row_max", _fold("max"), "maximum of each row", scratch=_COVERING, priority="core", fold="max")
_define("row_min", _fold("min"), "minimum of each row", scratch=_COVERING, priority="core", fold="min")
_define("row_prod", _fold("prod"), "product of each row", scratch=_COVERING, priority="full", fold="prod")
_define(
    "col_sum", _fold("sum"), "sum of each column; tmp adds as a tree", scratch=_OPTIONAL, priority="core", fold="sum"
)
_define("col_max", _fold("max"), "maximum of each column", scratch=_NO_SCRATCH, priority="core", fold="max")
_define("col_min", _fold("min"), "minimum of each column", scratch=_NO_SCRATCH, priority="core", fold="min")
_define("col_prod", _fold("prod"), "product of each column", scratch=_NO_SCRATCH, priority="full", fold="prod")
for _rows, _scratch in (("row", _EXACT), ("col", _ANY)):
    for _which in ("argmax", "argmin"):
        _define(
            f"{_rows}_{_which}",
            _position(_which),
            f"position of the extreme value of each {'row' if _rows == 'row' else 'column'}; the first one on ties",
            result=DataType.INT32,
            scratch=_scratch,
            priority="full",
        )
