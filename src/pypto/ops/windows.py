"""Rules for windows of tensors and tiles: reading one, writing one, reshaping, dropping axes.

Each rule exists twice: over extents in types (three-valued proofs: an op is refused only when it is provably wrong),
and over the ints of a run (where everything is known). Numbers in headings are those of the op catalogue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arith.prove import prove_le, simplify
from ..ir import scalar as scalars
from ..ir.expr import ConstInt, Expr, MakeTuple, Min, Var, index_const
from ..ir.location import current_span
from ..ir.node import FrozenList
from ..ir.type import ScalarType, extent_equal
from .rules import OperandKindError, is_one, min_extent, same_extent, show_shape
from .values import OutOfBoundsError

ZERO = index_const(0)
ONE = index_const(1)


# --- arithmetic and proofs over extents -------------------------------------------------------------------------------


def number(e: Any) -> int | None:
    """The value of a constant extent."""
    return e.value if type(e) is ConstInt else None


def at_most(a: Expr, b: Expr) -> bool | None:
    """Whether ``a <= b``: True or False when proven, else None."""
    if type(a) is ConstInt and type(b) is ConstInt:
        return bool(a.value <= b.value)
    if extent_equal(a, b) or (type(a) is Min and (extent_equal(a.left, b) or extent_equal(a.right, b))):
        return True
    return prove_le(a, b)


def provably(a: Expr, b: Expr) -> bool:
    """``a <= b`` is proven."""
    return at_most(a, b) is True


def provably_exceeds(a: Expr, b: Expr) -> bool:
    """``a > b`` is proven."""
    return at_most(a, b) is False


def provably_negative(e: Expr) -> bool:
    """``e < 0`` is proven."""
    return not isinstance(e, Var) and provably_exceeds(ZERO, e)  # that a variable is negative is never known


def sticks_out(offset: Expr, reach: Expr, extent: Expr) -> bool:
    """``offset + reach > extent`` is proven.

    With a constant room ``extent - reach`` the offset alone is compared with it: no sum is built and simplified.
    """
    a, b = number(reach), number(extent)
    if a is None or b is None:
        return provably_exceeds(add(offset, reach), extent)
    room = b - a
    if isinstance(offset, Var) and room >= 0:
        return False  # of a variable nothing but its sign is known
    return provably_exceeds(offset, index_const(room))


def is_zero(e: Expr) -> bool:
    """Provably zero."""
    value = number(e)
    return value == 0 if value is not None else same_extent(e, ZERO)


def add(a: Expr, b: Expr) -> Expr:
    """``a + b`` with constants folded."""
    x, y = number(a), number(b)
    if x is not None and y is not None:
        return index_const(x + y)
    if x == 0:
        return b
    return a if y == 0 else simplify(scalars.add(a, b, current_span()))


def subtract(a: Expr, b: Expr) -> Expr:
    """``a - b`` with constants folded."""
    x, y = number(a), number(b)
    if x is not None and y is not None:
        return index_const(x - y)
    return a if y == 0 else simplify(scalars.sub(a, b, current_span()))


def multiply(a: Expr, b: Expr) -> Expr:
    """``a * b`` with constants folded."""
    x, y = number(a), number(b)
    if x is not None and y is not None:
        return index_const(x * y)
    if x == 1:
        return b
    return a if y == 1 else simplify(scalars.mul(a, b, current_span()))


def max_extent(a: Expr, b: Expr) -> Expr:
    """The larger of two extents; a side is picked when that can be proven."""
    if extent_equal(a, b) or provably(b, a):
        return a
    if provably(a, b):
        return b
    return scalars.max_(a, b, current_span())


def smaller(a: Expr, b: Expr) -> Expr:
    """The smaller of two extents, constants folded."""
    x, y = number(a), number(b)
    if x is not None and y is not None:
        return a if x <= y else b
    for outer, inner in ((a, b), (b, a)):
        if type(inner) is Min:  # a part of the inner minimum that the outer extent does not exceed says nothing
            if provably(outer, inner.right):
                return smaller(outer, inner.left)
            if provably(outer, inner.left):
                return smaller(outer, inner.right)
    return min_extent(a, b)


def volume(shape: Sequence[Expr]) -> int | None:
    """The number of elements of a static shape."""
    total = 1
    for dim in shape:
        value = number(dim)
        if value is None:
            return None
        total *= value
    return total


# --- operands ---------------------------------------------------------------------------------------------------------


def tuple_operand(op: str, args: Sequence[Expr], index: int, what: str, *, constant: bool = False) -> FrozenList[Expr]:
    """The elements of an operand that must be a tuple of integer scalars (``constant``: of constants)."""
    operand = args[index]
    if type(operand) is not MakeTuple:
        raise OperandKindError(f"{op} requires {what} to be a literal tuple, but got {type(operand.type).__name__}")
    for i, element in enumerate(operand.elements):
        kind = element.type
        if type(kind) is not ScalarType or not kind.dtype.is_int_:
            raise OperandKindError(f"{op} requires {what}[{i}] to be an integer scalar, but got {kind}")
        if constant and type(element) is not ConstInt:
            raise ValueError(f"{op} requires {what}[{i}] to be a compile-time constant")
    return operand.elements


def optional_tuple(op: str, args: Sequence[Expr], index: int, what: str) -> FrozenList[Expr] | None:
    """As :func:`tuple_operand`; None when the operand is absent or empty."""
    if index >= len(args):
        return None
    return tuple_operand(op, args, index, what) or None


def static_shape(op: str, shape: Sequence[Expr], what: str = "shape") -> None:
    """Every extent must be a positive constant."""
    for i, dim in enumerate(shape):
        value = number(dim)
        if value is None:
            raise ValueError(f"{op} requires {what}[{i}] to be a compile-time constant")
        if value <= 0:
            raise ValueError(f"{op}: {what}[{i}] must be positive, got {value}")


def same_rank(op: str, what: str, items: Sequence[Any], rank: int) -> None:
    """``<what> rank`` must be the rank of the window."""
    if len(items) != rank:
        raise ValueError(f"{op}: {what} rank {len(items)} does not match rank {rank}")


# --- 8.4 window reads -------------------------------------------------------------------------------------------------

CLAMPED = "pass clamp=True to read only what is there, or give a valid_shape that fits"
ON_CHIP = "an on-chip window has no clamping mechanism, so all of it must lie inside the tile"
EXTRACT = "the extracted window must fit the source"


def read_window(
    op: str,
    shape: Sequence[Expr],
    valid: Sequence[Expr],
    offsets: Sequence[Expr],
    window: Sequence[Expr],
    requested: Sequence[Expr] | None,
    *,
    clamp: bool = False,
    exact: bool = False,
    remedy: str = CLAMPED,
    materialize: bool = False,
) -> FrozenList[Expr]:
    """Valid region of a window of ``shape`` (of which ``valid`` is valid) at ``offsets``.

    ``exact``: the whole window must fit; else only what is really read. ``materialize``: form ``min(requested,
    available)`` always, as remote loads do.
    """
    rank = len(shape)
    same_rank(op, "window", window, rank)
    same_rank(op, "offset", offsets, rank)
    if requested is not None:
        same_rank(op, "valid_shape", requested, rank)
    result: list[Expr] = []
    for i in range(rank):
        extent, w, o = shape[i], window[i], offsets[i]
        r = None if requested is None else requested[i]
        if provably_negative(o):
            raise ValueError(f"{op}: offset {i} is provably negative ({show_shape([o])[1:-1]})")
        if r is not None and provably_exceeds(r, w):
            raise ValueError(f"{op}: valid_shape[{i}] = {_text(r)} exceeds the window extent {_text(w)}")
        if r is not None and provably_negative(r):
            raise ValueError(f"{op}: valid_shape[{i}] = {_text(r)} must be >= 0")
        if not clamp:
            reach = w if exact or r is None else r
            if sticks_out(o, reach, extent):
                raise ValueError(
                    f"{op} reads past the end of dimension {i}: offset {_text(o)} + extent {_text(reach)} "
                    f"exceeds {_text(extent)}; {remedy}"
                )
        if not clamp and same_extent(valid[i], extent) and not (materialize and type(extent) is not ConstInt):
            available = w
        elif is_zero(o):
            available = smaller(valid[i], w)
        else:
            available = smaller(max_extent(subtract(valid[i], o), ZERO), w)
        if r is None:
            result.append(available)
        elif materialize:
            result.append(smaller(r, available))
        else:
            narrower = available is not w and provably(available, r)
            result.append(available if narrower else r)
    return FrozenList(result)


def _text(e: Expr) -> str:
    return show_shape([e])[1:-1]


def read_window_at_run(
    op: str,
    shape: Sequence[int],
    valid: Sequence[int],
    offsets: Sequence[int],
    window: Sequence[int],
    requested: Sequence[int] | None,
    *,
    clamp: bool = False,
    exact: bool = False,
) -> tuple[int, ...]:
    """The twin of :func:`read_window` on ints; :class:`OutOfBoundsError` when the window leaves the source."""
    result = []
    for i, (extent, w, o) in enumerate(zip(shape, window, offsets, strict=False)):
        r = w if requested is None else requested[i]
        if r > w or r < 0:
            raise OutOfBoundsError(f"{op}: valid_shape[{i}] = {r} is outside [0, {w}]")
        reach = w if exact else r
        if o < 0 or (o + reach > extent and not clamp):
            raise out_of_bounds(op, i, o, reach, extent)
        result.append(max(0, min(r, valid[i] - o)))
    return tuple(result)


def out_of_bounds(op: str, dimension: int, offset: int, reach: int, extent: int) -> OutOfBoundsError:
    """The error of a window or index that leaves its tensor or tile."""
    return OutOfBoundsError(
        f"{op}: offset {offset} with extent {reach} is out of range in dimension {dimension}, whose extent is {extent}"
    )


# --- 8.5 region writes ------------------------------------------------------------------------------------------------


def write_region(
    op: str,
    target_shape: Sequence[Expr],
    target_valid: Sequence[Expr],
    offsets: Sequence[Expr],
    source_shape: Sequence[Expr],
    source_valid: Sequence[Expr],
    *,
    exact: bool = False,
) -> Sequence[Expr]:
    """Valid region of a target after a source was written into it at ``offsets``.

    ``exact``: the whole source is copied, so all of it must fit; else its valid region only.
    """
    rank = len(target_shape)
    same_rank(op, "offset", offsets, rank)
    reach = source_shape if exact else source_valid
    for i in range(rank):
        if provably_negative(offsets[i]):
            raise ValueError(f"{op}: offset {i} is provably negative ({_text(offsets[i])})")
        if sticks_out(offsets[i], reach[i], target_shape[i]):
            raise ValueError(
                f"{op} writes past the end of dimension {i}: offset {_text(offsets[i])} + extent {_text(reach[i])} "
                f"exceeds {_text(target_shape[i])}; "
                + ("it copies the whole source subview" if exact else "narrow the source or move the window")
            )
    if any(provably(v, ZERO) for v in source_valid):
        return target_valid
    if any(provably(v, ZERO) for v in target_valid):
        for i in range(rank):
            if not is_zero(offsets[i]):
                raise ValueError(
                    f"{op}: the first write into an empty region does not start at the origin (dimension {i})"
                )
        return source_valid
    if target_valid is target_shape or all(map(same_extent, target_valid, target_shape)):
        return target_valid
    edges = [add(o, v) for o, v in zip(offsets, source_valid, strict=False)]
    growing = [i for i in range(rank) if not provably(edges[i], target_valid[i])]
    if not growing:
        return target_valid
    if all(map(is_zero, offsets)) and all(map(provably, target_valid, source_valid)):
        return source_valid
    if len(growing) > 1:
        i, j = growing[:2]
        raise ValueError(
            f"{op} grows the valid region in dimensions {i} and {j} at once: the union of "
            f"{show_shape(target_valid)} and the source is an L-shape; write the missing parts one dimension at a time"
        )
    k = growing[0]
    if not provably(offsets[k], target_valid[k]):
        raise ValueError(
            f"{op} leaves a gap in dimension {k}: offset {_text(offsets[k])} is not provably within the valid extent "
            f"{_text(target_valid[k])}"
        )
    for i in range(rank):
        if i == k:
            continue
        if not is_zero(offsets[i]):
            raise ValueError(f"{op} grows dimension {k}, so the source must span dimension {i} from the origin")
        if not same_extent(source_valid[i], target_valid[i]):
            raise ValueError(
                f"{op} grows dimension {k}, so the source extent {_text(source_valid[i])} of dimension {i} "
                f"must provably equal the target valid extent {_text(target_valid[i])}"
            )
    result = list(target_valid)
    result[k] = smaller(max_extent(target_valid[k], edges[k]), target_shape[k])
    return FrozenList(result)


def write_region_at_run(
    op: str,
    target_shape: Sequence[int],
    target_valid: Sequence[int],
    offsets: Sequence[int],
    reach: Sequence[int],
    source_valid: Sequence[int],
) -> tuple[int, ...]:
    """The twin of :func:`write_region`: bounds are checked, and the regions' hull is returned.

    A hull that holds elements which neither region had is sound: the mask of the buffer knows that they are undefined.
    """
    for i, (o, n, extent) in enumerate(zip(offsets, reach, target_shape, strict=False)):
        if o < 0 or o + n > extent:
            raise out_of_bounds(op, i, o, n, extent)
    if 0 in source_valid:
        return tuple(target_valid)
    if 0 in target_valid:
        return tuple(o + v for o, v in zip(offsets, source_valid, strict=False))
    return tuple(max(t, o + v) for t, o, v in zip(target_valid, offsets, source_valid, strict=False))


# --- 8.6 reshape ------------------------------------------------------------------------------------------------------


def check_volume(op: str, shape: Sequence[Expr], new_shape: Sequence[Expr]) -> None:
    """Static volumes must agree."""
    before, after = volume(shape), volume(new_shape)
    if before is not None and after is not None and before != after:
        raise ValueError(
            f"{op}: cannot reshape {show_shape(shape)} of size {before} into {show_shape(new_shape)} of size {after}"
        )


def reshape_valid(
    op: str, shape: Sequence[Expr], valid: Sequence[Expr], new_shape: Sequence[Expr], row_major: bool = True
) -> Sequence[Expr]:
    """Where the valid region lies after a reshape; ``ValueError`` when it is no box there."""
    check_volume(op, shape, new_shape)
    if valid is shape or all(map(same_extent, valid, shape)):
        return new_shape
    if any(provably(v, ZERO) for v in valid):
        return FrozenList([ZERO] * len(new_shape))
    aligned = _align_unit_axes(shape, valid, new_shape)
    if aligned is not None:
        return FrozenList(aligned)
    if not row_major:
        raise ValueError(
            f"{op}: the partially valid source {show_shape(shape)} is not stored row-major, so its valid region "
            f"{show_shape(valid)} has no place in {show_shape(new_shape)}"
        )
    return FrozenList(_reshape_prefix(op, shape, valid, new_shape))


def _align_unit_axes(shape: Sequence[Expr], valid: Sequence[Expr], new_shape: Sequence[Expr]) -> list[Expr] | None:
    """The mapped valid extents if the shapes differ by unit axes only, else None."""
    dead: set[tuple[int, int]] = set()
    result: list[Expr] = [ONE] * len(new_shape)

    def align(i: int, j: int) -> bool:
        if i == len(shape) and j == len(new_shape):
            return True
        if (i, j) in dead:
            return False
        if i < len(shape) and j < len(new_shape) and same_extent(shape[i], new_shape[j]) and align(i + 1, j + 1):
            result[j] = valid[i]
            return True
        if i < len(shape) and is_one(shape[i]) and same_extent(valid[i], ONE) and align(i + 1, j):
            return True
        if j < len(new_shape) and is_one(new_shape[j]) and align(i, j + 1):
            result[j] = ONE
            return True
        dead.add((i, j))
        return False

    return result if align(0, 0) else None


def _reshape_prefix(op: str, shape: Sequence[Expr], valid: Sequence[Expr], new_shape: Sequence[Expr]) -> list[Expr]:
    """The rule for valid regions that are a contiguous prefix of the row-major elements."""
    free = 0
    while free < len(shape) - 1 and same_extent(valid[free], ONE):
        free += 1
    if not all(map(same_extent, valid[free + 1 :], shape[free + 1 :])):
        raise ValueError(
            f"{op}: the valid region {show_shape(valid)} of {show_shape(shape)} is not one contiguous run: real "
            f"data is scattered across the buffer; reshape before narrowing, or fill the padding first"
        )
    trailing = volume(shape[free + 1 :])
    if trailing is None or volume(new_shape) is None:
        raise ValueError(
            f"{op}: reshaping a partially valid {show_shape(shape)} needs static extents behind axis {free} "
            f"and a static target shape"
        )
    suffixes = [volume(new_shape[i + 1 :]) or 0 for i in range(len(new_shape))]
    extents = [number(dim) or 0 for dim in new_shape]
    count = number(valid[free])
    for i, (suffix, extent) in enumerate(zip(suffixes, extents, strict=False)):
        if count is not None:
            prefix = count * trailing
            if suffix == 0 or prefix % suffix or prefix // suffix > extent:
                continue
            own: Expr = index_const(prefix // suffix)
        else:
            held = number(shape[free])
            if suffix != trailing or held is None or held > extent:
                continue
            own = valid[free]
        return [*[ONE] * i, own, *new_shape[i + 1 :]]
    if count is not None:
        raise ValueError(
            f"{op}: the {count * trailing} valid elements of {show_shape(shape)} do not fill a whole number of rows of "
            f"{show_shape(new_shape)}"
        )
    raise ValueError(
        f"{op}: no axis of {show_shape(new_shape)} has the matching row size {trailing} and room for the run-time "
        f"extent {_text(valid[free])}"
    )


def reshape_valid_at_run(
    op: str, shape: Sequence[int], valid: Sequence[int], new_shape: Sequence[int]
) -> tuple[int, ...]:
    """The twin of :func:`reshape_valid`: the same rule over constants."""
    if tuple(valid) == tuple(shape):
        return tuple(new_shape)
    mapped = reshape_valid(
        op, [index_const(n) for n in shape], [index_const(n) for n in valid], [index_const(n) for n in new_shape]
    )
    return tuple(e.value for e in mapped)  # type: ignore[attr-defined]


# --- 8.7 dropped axes -------------------------------------------------------------------------------------------------


def dropped_axes(
    op: str, drops: Sequence[Expr], shape: Sequence[Expr], valid: Sequence[Expr]
) -> tuple[FrozenList[Expr], FrozenList[Expr]]:
    """Shape and valid region without the dropped unit axes."""
    gone: set[int] = set()
    for drop in drops:
        axis = number(drop)
        if axis is None:
            raise ValueError(f"{op}: drop_dims must hold compile-time constants")
        if not 0 <= axis < len(shape):
            raise ValueError(f"{op}: drop_dims axis {axis} is out of range for rank {len(shape)}")
        if axis in gone:
            raise ValueError(f"{op}: drop_dims axis {axis} is repeated")
        if number(shape[axis]) != 1:
            raise ValueError(f"{op}: drop_dims axis {axis} must be a static unit dimension, got {_text(shape[axis])}")
        if not same_extent(valid[axis], ONE):
            raise ValueError(f"{op}: the valid extent {_text(valid[axis])} of dropped axis {axis} is not provably 1")
        gone.add(axis)
    kept = [i for i in range(len(shape)) if i not in gone]
    return FrozenList([shape[i] for i in kept]), FrozenList([valid[i] for i in kept])


def dropped_axes_at_run(op: str, drops: Sequence[int], valid: Sequence[int]) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """Index that removes the axes from data, and the remaining valid extents."""
    gone = set(drops)
    for axis in sorted(gone):
        if valid[axis] != 1:
            raise OutOfBoundsError(f"{op}: dropped axis {axis} has valid extent {valid[axis]}, not 1")
    index = tuple(0 if i in gone else slice(None) for i in range(len(valid)))
    return index, tuple(v for i, v in enumerate(valid) if i not in gone)
