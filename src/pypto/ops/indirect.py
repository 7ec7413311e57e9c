"""Indexed transfers between global memory and tiles: gather rows or elements, scatter elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._lazy import np
from ..ir.dtype import DataType
from ..ir.enums import ArgEffect, CoreType, MemorySpace, TensorLayout, WriteChannel
from ..ir.expr import Expr, MakeTuple
from ..ir.node import FrozenList
from ..ir.type import TensorType, TileType, TileView, Type, implicit_tile_view
from .definition import DEFERRED, Alias, Operand
from .normalize import extents
from .partial_window import plain, require_writable
from .regions import defined_elements
from .registry import call, define
from .rules import operand_error, require_args, require_dtype, same_extent, tensor_type, tile_type
from .surface import Attr, Extents, surface
from .surface import Operand as Arg
from .transfer import commit, layout_of
from .values import ArrayValue, OutOfBoundsError, fresh
from .windows import number, provably_exceeds, same_rank, tuple_operand, volume

D = DataType
M = MemorySpace
ROW, ELEMENT = 0, 1
COALESCE = {"row": ROW, "elem": ELEMENT}
GATHER_OOB = {"undefined": 0, "clamp": 1, "wrap": 2, "zero": 3}
ELEMENT_DTYPES = (D.FP16, D.FP32, D.INT16, D.INT32)


# --- mscatter ---------------------------------------------------------------------------------------------------------


def _mscatter_infer(args: Sequence[Expr], _kwargs: Mapping[str, Any]) -> Type:
    op = "tile.mscatter"
    require_args(op, args, 3)
    source, index, target = tile_type(op, args, 0), tile_type(op, args, 1), tensor_type(op, args, 2)
    require_dtype(op, "src", source.dtype, ELEMENT_DTYPES)
    require_dtype(op, "idx", index.dtype, (D.INT32,))
    if len(index.shape) != len(source.shape) or not all(map(same_extent, index.shape, source.shape)):
        raise ValueError(f"{op} requires idx to have the shape of src")
    if target.dtype is not source.dtype:
        raise ValueError(f"{op} requires output_tensor dtype {source.dtype}, but got {target.dtype}")
    if not target.shape:
        raise ValueError(f"{op} requires an output_tensor of rank >= 1")
    return target


def _mscatter(ctx: Any, src: ArrayValue, idx: ArrayValue, output_tensor: ArrayValue) -> ArrayValue:
    op = "tile.mscatter"
    require_writable(op, output_tensor)
    region = tuple(slice(0, min(a, b)) for a, b in zip(src.valid, idx.valid, strict=True))
    index = np.asarray(idx.data[region]).reshape(-1).astype(np.int64)
    size = output_tensor.data.size
    bad = index[(index < 0) | (index >= size)]
    if bad.size:
        raise OutOfBoundsError(f"{op}: index {int(bad[0])} is out of range for {size} elements")
    values, mask = src.data[region].reshape(-1), src.mask
    # NumPy leaves the winner among equal indices open: keep the last one.
    _, last = np.unique(index[::-1], return_index=True)
    keep = np.sort(index.size - 1 - last)
    where = np.unravel_index(index[keep], output_tensor.shape)
    commit(ctx, output_tensor, where, values[keep], None if mask is None else mask[region].reshape(-1)[keep])
    return output_tensor


define(
    "tile.mscatter",
    [Operand("src", "tile"), Operand("idx", "tile", "index"), Operand("output_tensor", "window", "destination")],
    _mscatter_infer,
    doc="store the elements of a tile at flat positions of a tensor; of equal positions the last wins",
    reference=_mscatter,
    effects={2: ArgEffect.Write},
    alias=Alias.IS,
    alias_operand=2,
    channel=WriteChannel.Dma,
    input_memory=((M.Vec,), (M.Vec,)),
    core=CoreType.VECTOR,
    priority="full",
)


@surface("tile", "pl")
def mscatter(src: Arg, idx: Arg, output_tensor: Arg) -> Expr:
    """Store the elements of a tile at flat positions of a tensor."""
    return call("tile.mscatter", src, idx, output_tensor)


# --- mgather ----------------------------------------------------------------------------------------------------------


def _mgather_infer(args: Sequence[Expr], kwargs: Mapping[str, Any]) -> Type:
    op = "tile.mgather"
    require_args(op, args, 2, 4)
    table = tensor_type(op, args, 0)
    coalesce, space = kwargs.get("coalesce", ROW), kwargs.get("target_memory", M.Vec)
    if coalesce not in (ROW, ELEMENT):
        raise ValueError(f"{op}: coalesce must be 'row' or 'elem', got {coalesce}")
    if kwargs.get("gather_oob", 0) not in GATHER_OOB.values():
        raise ValueError(f"{op}: gather_oob must be one of {', '.join(GATHER_OOB)}")
    if space not in (M.Vec, M.Mat):
        raise ValueError(f"{op}: target_memory must be Vec or Mat, got {space.name}")
    scratch, stated = _optional_operands(op, args)
    if scratch is not None and not (space is M.Mat and coalesce == ELEMENT):
        raise ValueError(f"{op}: only an element gather into Mat takes a scratch tensor")
    index = tile_type(op, args, 1) if space is M.Vec else _gm_index(op, args)
    require_dtype(op, "idx", index.dtype, (D.INT32,))
    if len(index.shape) != 2:
        raise ValueError(f"{op} requires a rank-2 idx, got rank {len(index.shape)}")
    shape, valid = _gather_shape(op, table, index, coalesce, space)
    if space is M.Mat:
        _check_mat(op, table, shape, coalesce, scratch, args)
    if stated is not None:
        if space is not M.Mat:
            raise ValueError(f"{op}: valid_shape is for gathers into Mat; in Vec it follows from idx")
        same_rank(op, "valid_shape", stated, 2)
        for i, (v, n) in enumerate(zip(stated, shape, strict=True)):
            if (number(v) or 0) <= 0 or provably_exceeds(v, n):
                raise ValueError(f"{op}: valid_shape[{i}] must be in (0, {number(n)}]")
        valid = stated
    view = implicit_tile_view(shape, space) if space is M.Mat else TileView()
    return TileType(shape, table.dtype, None, view.replace(valid_shape=valid), space)


def _optional_operands(op: str, args: Sequence[Expr]) -> tuple[Expr | None, FrozenList[Expr] | None]:
    scratch: Expr | None = None
    valid: FrozenList[Expr] | None = None
    for i in range(2, len(args)):
        if type(args[i]) is MakeTuple:
            valid = tuple_operand(op, args, i, "valid_shape", constant=True)
        elif i == 2:
            scratch = args[i]
        else:
            raise ValueError(f"{op}: the fourth operand must be the valid_shape tuple")
    return scratch, valid


def _gm_index(op: str, args: Sequence[Expr]) -> TensorType:
    kind = args[1].type
    if not isinstance(kind, TensorType):
        raise operand_error(op, "second", "TensorType (idx stays in global memory for Mat)", args[1])
    if layout_of(kind) is not TensorLayout.ND:
        raise ValueError(f"{op} requires an ND idx tensor")
    return kind


def _gather_shape(
    op: str, table: TensorType, index: TileType | TensorType, coalesce: int, space: MemorySpace
) -> tuple[FrozenList[Expr], FrozenList[Expr]]:
    valid = index.valid_extents
    if coalesce == ELEMENT:
        return index.shape, valid
    rows, columns = number(index.shape[0]), number(index.shape[1])
    by_column = rows != 1 and columns == 1
    if rows is None or columns is None or (rows != 1 and columns != 1) or (by_column and space is M.Mat):
        wanted = "[1, R]" if space is M.Mat else "[1, R] or [R, 1]"
        raise ValueError(f"{op} by rows requires a static idx of shape {wanted}")
    if len(table.shape) < 2:
        raise ValueError(f"{op} by rows requires mem of rank >= 2, got {len(table.shape)}")
    axis = 0 if by_column else 1
    last = table.shape[-1]
    return FrozenList([index.shape[axis], last]), FrozenList([valid[axis], last])


def _check_mat(
    op: str,
    table: TensorType,
    shape: Sequence[Expr],
    coalesce: int,
    scratch: Expr | None,
    args: Sequence[Expr],
) -> None:
    rows, columns = number(shape[0]), number(shape[1])
    step = 32 // table.dtype.get_byte()
    if rows is None or columns is None or rows % 16 or columns % step:
        raise ValueError(f"{op} into Mat requires static rows that are a multiple of 16 and columns of {step}")
    if coalesce != ELEMENT:
        return
    if scratch is None:
        raise ValueError(f"{op} of elements into Mat requires a scratch tensor")
    kind = scratch.type
    if not isinstance(kind, TensorType):
        raise operand_error(op, "third", "TensorType", scratch)
    size = volume(kind.shape)
    strided = kind.tensor_view is not None and bool(kind.tensor_view.stride)
    if kind.dtype is not table.dtype or layout_of(kind) is not TensorLayout.ND or strided or size is None:
        raise ValueError(f"{op} requires a contiguous static ND scratch of dtype {table.dtype}, but got {kind}")
    if size < rows * columns:
        raise ValueError(f"{op} requires a scratch of at least {rows * columns} elements, got {size}")
    if scratch is args[0] or scratch is args[1]:
        raise ValueError(f"{op} requires a scratch distinct from mem and idx")


def _mgather(
    ctx: Any, mem: ArrayValue, idx: ArrayValue, *optional: Any, coalesce: int = 0, gather_oob: int = 0, **_: Any
) -> ArrayValue:
    op = "tile.mgather"
    table, index = plain(mem), idx.data.astype(np.int64)
    stated = next((tuple(o) for o in optional if isinstance(o, list)), None)
    data = table.data.reshape(-1) if coalesce == ELEMENT else table.data.reshape(-1, table.shape[-1])
    table_mask = defined_elements(table)
    valid: tuple[int, ...] = idx.valid
    known = defined_elements(idx)
    if coalesce == ROW:
        axis = 0 if index.shape[0] != 1 and index.shape[1] == 1 else 1
        index, valid = index.reshape(-1), (idx.valid[axis], table.shape[-1])
        known = None if known is None else known.reshape(-1)
    size = data.shape[0]
    outside = (index < 0) | (index >= size)
    inside_valid = np.zeros(index.shape, np.bool_)
    inside_valid[tuple(slice(0, v) for v in valid[: index.ndim])] = True
    where = np.clip(index, 0, max(size - 1, 0)) if gather_oob != GATHER_OOB["wrap"] else index % size
    if size == 0:
        raise OutOfBoundsError(f"{op}: mem is empty")
    result = data[where]
    mask = np.ones(result.shape, np.bool_)
    if table_mask is not None:
        mask &= table_mask.reshape(data.shape)[where]

    def spread(of_index: Any) -> Any:
        return of_index if coalesce == ELEMENT else of_index[:, None]

    if gather_oob == GATHER_OOB["zero"]:
        result = np.where(spread(outside), np.zeros((), result.dtype), result)
        mask |= spread(outside)
    elif gather_oob == GATHER_OOB["undefined"]:
        mask &= ~spread(outside)
    if known is not None:
        mask &= spread(known | ~inside_valid)
    return fresh(np.array(result, order="C"), mask, stated if stated is not None else valid)


def _scratch_effect(kwargs: Mapping[str, Any]) -> ArgEffect:
    element_to_mat = kwargs.get("coalesce", ROW) == ELEMENT and kwargs.get("target_memory") is M.Mat
    return ArgEffect.Write if element_to_mat else ArgEffect.Read


define(
    "tile.mgather",
    [Operand("mem", "window"), Operand("idx", "any", "index"), Operand("scratch", "window", "scratch", optional=True),
     Operand("valid_shape", "tuple", "shape", optional=True)],
    _mgather_infer,
    doc="gather rows or elements of a tensor into a tile",
    kwargs={"coalesce": (int, 0), "gather_oob": (int, 0), "target_memory": (MemorySpace, MemorySpace.Vec)},
    reference=_mgather,
    effects={2: _scratch_effect},
    channel=WriteChannel.Dma,
    output_memory=DEFERRED,
    not_in_place=True,
    printed="mgather",
    priority="full",
)  # fmt: skip


def _choice(what: str, value: Any, names: Mapping[str, int]) -> int | None:
    """The stored number of a named choice; absent for the default."""
    if isinstance(value, str) and value in names:
        return names[value] or None
    if isinstance(value, int) and not isinstance(value, bool) and value in names.values():
        return int(value) or None
    raise ValueError(f"mgather: {what} must be one of {', '.join(names)}, got {value!r}")


@surface("tile", "pl")
def mgather(
    mem: Arg,
    idx: Arg,
    coalesce: Attr = "row",
    *,
    gather_oob: Attr = "undefined",
    target_memory: Attr = MemorySpace.Vec,
    scratch: Arg = None,
    valid_shape: Extents = None,
) -> Expr:
    """Gather rows or elements of a tensor into a tile."""
    optional = [] if scratch is None else [scratch]
    if valid_shape is not None:
        optional.append(extents(valid_shape))
    return call(
        "tile.mgather",
        mem,
        idx,
        *optional,
        coalesce=_choice("coalesce", coalesce, COALESCE),
        gather_oob=_choice("gather_oob", gather_oob, GATHER_OOB),
        target_memory=target_memory,
    )
