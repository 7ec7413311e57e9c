"""Operations that no draw of :mod:`.test_native_ops` finds, native against the interpreter, and that every operation of a
kernel has a case in one of the two, or a reason why not."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.native_ops_kit import (
    INDEX,
    Arguments,
    Builder,
    D,
    Native,
    by_hand,
    constant,
    difference,
    exactly,
    extents,
    interpret,
    matrix,
    products_within,
)
from tests.runtime.test_native_ops import BUILDERS, NAMES

from pypto.ir import scalar
from pypto.ir.enums import MemorySpace, ParamDirection, TensorLayout
from pypto.ir.expr import Call, ConstInt, MakeTuple, TupleGetItemExpr, Var, index_const
from pypto.ir.traversal import walk
from pypto.ir.type import ScalarType, TensorType, TupleType
from pypto.ops.registry import REGISTRY

ROW, ELEMENT = 0, 1  # how mgather coalesces


def vector(count: int, dtype: Any = D.FP32) -> TensorType:
    return TensorType(extents([count]).elements, dtype)


def parts(b: Builder, value: Var) -> list[Var]:
    assert isinstance(value.type, TupleType)
    return [b.assign(TupleGetItemExpr(value, i)) for i in range(len(value.type.types))]


def indexed_loads(b: Builder) -> None:
    """Rows and elements; what is out of range is clamped, wrapped, zero, or anything."""
    table = b.param(matrix(4, 8))
    rows = b.load(b.param(matrix(1, 6, D.INT32), style="index"), [1, 6])
    m = b.extent(6)
    some = b.load(b.param(matrix(1, 6, D.INT32), style="index"), [1, 6], [index_const(1), m])
    anything = b.load(b.param(matrix(2, 5, D.INT32)), [2, 5])
    b.store(b.op("tile.neg", b.op("tile.mgather", table, rows)))
    b.store(b.op("tile.mgather", table, some, coalesce=ELEMENT))
    for mode in range(4):
        b.store(b.op("tile.mgather", table, anything, coalesce=ELEMENT, gather_oob=mode))
    many, scratch = b.param(matrix(16, 16, D.INT32), style="index"), b.param(matrix(16, 16), ParamDirection.InOut)
    t = b.op("tile.mgather", table, many, scratch, coalesce=ELEMENT, target_memory=MemorySpace.Mat)
    b.store(b.op("tile.move", t, target_memory=MemorySpace.Vec))


def indexed_stores(b: Builder) -> None:
    """Of equal positions the last wins; a position may be out of range."""
    x = b.op("tile.adds", b.load(b.param(matrix(3, 5)), [3, 5]), constant(1, D.FP32))
    index = b.param(matrix(3, 5, D.INT32), style="index")
    at = b.param(INDEX)
    out = b.param(matrix(4, 3), ParamDirection.InOut)
    moved = b.op("tile.adds", b.load(index, [3, 5], [b.extent(3), index_const(5)]), b.assign(scalar.cast(at, D.INT32)))
    b.op("tile.mscatter", x, moved, out)
    b.store(b.op("tile.neg", b.load(out, [4, 3])))


def paged(b: Builder) -> None:
    src = b.param(matrix(16, 16))
    index, table = b.param(matrix(1, 4, D.INT32), style="index"), b.param(vector(4, D.INT32), style="index")
    for more in ({}, {"is_trans": True, "space": MemorySpace.Mat}):
        t = b.op("tensor.paged_gather", src, index, table, block_size=4, size=8, max_indices=4, col_off=2, **more)
        b.store(b.op("tensor.adds", t, constant(1, D.FP32)))


def blocks_of_bytes(b: Builder) -> None:
    x = b.load(b.param(matrix(8, 16)), [8, 16])
    at = b.op("tile.muls", b.load(b.param(matrix(2, 8, D.UINT32), style="index"), [2, 8]), constant(32, D.UINT32))
    b.store(b.op("tile.gatherb", x, at, output_dtype=D.FP32))
    b.store(b.op("tile.gatherb", x, at, output_dtype=D.INT16))


def compared(b: Builder) -> None:
    """Positions and counts."""
    x = b.param(matrix(4, 16, D.INT32), style="index")
    value = b.param(ScalarType(D.INT32))
    scratch = b.op("tile.create", extents([1, 64]), dtype=D.UINT8)
    for mode in (0, 2, 5):
        how = {"cmp_mode": mode, "offset": 3, "out_cols": 16, "count_dtype": D.INT32}
        for level, more in (("tile", [scratch]), ("tensor", [])):
            found = b.op(f"{level}.gather_compare", b.load(x, [4, 16], level=level), value, *more, **how)
            for part in parts(b, found):
                b.store(part)


def masked(b: Builder) -> None:
    """Every second or fourth column."""
    for pattern, group in ((1, 2), (2, 2), (4, 4), (7, 1)):
        x, into = b.param(matrix(3, 4)), b.param(matrix(3, 4 * group))
        fresh = b.op("tile.neg", b.load(into, [3, 4 * group]))
        b.store(b.op("tile.scatter_mask", fresh, b.load(x, [3, 4]), mask_pattern=pattern))
        t, u = b.load(x, [3, 4], level="tensor"), b.load(into, [3, 4 * group], level="tensor")
        b.store(b.op("tensor.scatter_mask", t, u, mask_pattern=pattern))


def scaled_products(b: Builder) -> None:
    """Blocks of 32 with a power of two for each."""
    small, scale = D.FP8E4M3FN, D.FP8E8M0
    x, y = b.load(b.param(matrix(16, 64, small)), [16, 64]), b.load(b.param(matrix(64, 32, small)), [64, 32])
    p = b.load(b.param(matrix(16, 2, scale), style="power"), [16, 2])
    q = b.load(b.param(matrix(2, 32, scale), style="power"), [2, 32])
    total = b.op("tile.matmul_mx", x, p, y, q)
    b.store(b.op("tile.move", total, target_memory=MemorySpace.Vec))
    bias = b.load(b.param(matrix(1, 32)), [1, 32])
    b.store(b.op("tile.matmul_mx_bias", x, p, y, q, bias))
    b.store(b.op("tile.matmul_mx_acc", total, x, p, y, q))


def tensors(b: Builder) -> None:
    """Operations of tensors that have a form of tiles with a case."""
    x = b.param(matrix(4, 16))
    start = b.param(ScalarType(D.INT32))
    b.store(b.op("tensor.full", extents([3, 5]), constant(2.5, D.FP32), dtype=D.FP32))
    b.store(b.op("tensor.ci", start, extents([1, 16]), dtype=D.INT32, descending=True))
    t = b.load(x, [4, 16], level="tensor")
    rows = b.op("tensor.dim", t, index_const(0))
    b.store(b.op("tensor.adds", t, b.assign(scalar.cast(rows, D.FP32))))
    own = b.op("tensor.muls", t, constant(1, D.FP32))
    at = b.param(INDEX)
    place = MakeTuple([at, index_const(0)])
    b.store(b.op("tensor.gather_row", own, x, place, place, extents([2, 8])))
    index = b.param(matrix(1, 32, D.UINT32))
    pairs = b.op("tensor.sort32", b.load(b.param(matrix(1, 32)), [1, 32], level="tensor"), index)
    b.store(pairs)
    b.store(
        b.op("tensor.mrgsort_format1", b.load(b.param(matrix(1, 64)), [1, 64], level="tensor"), ConstInt(64, D.INT32))
    )


def where(b: Builder) -> None:
    """The block that runs: one of one here."""
    out = b.param(vector(8, D.INT64), ParamDirection.Out)
    for i, name in enumerate(("get_block_idx", "get_block_num", "get_subblock_idx")):
        for j, level in enumerate(("tensor", "tile")):
            b.op("tensor.write", out, extents([2 * i + j]), b.assign(scalar.cast(b.op(f"{level}.{name}"), D.INT64)))


def other_types(b: Builder) -> None:
    """The same bytes as elements of another type or in another shape."""
    x = b.param(matrix(4, 16))
    t = b.op("tensor.reinterpret_view", b.op("tensor.muls", b.load(x, [4, 16], level="tensor"), constant(1, D.FP32)),
             dtype=D.INT32)  # fmt: skip
    b.store(b.op("tensor.ands", t, constant(255, D.INT32)))
    u = b.op("tile.reinterpret_view", b.op("tile.muls", b.load(x, [4, 16]), constant(1, D.FP32)), dtype=D.INT32)
    b.store(b.op("tile.ands", u, constant(255, D.INT32)))
    v = b.op("tensor.view", x, extents([8, 8]), layout=TensorLayout.ND)
    b.store(b.op("tensor.neg", v))


CASES = [
    indexed_loads,
    indexed_stores,
    paged,
    blocks_of_bytes,
    compared,
    masked,
    scaled_products,
    tensors,
    where,
    other_types,
]
# The interpreter runs kernels with these as a whole.
INTERPRETED = {"other_types"}

PIPE = "exchanges data with another core while both run: the interpreter runs such kernels"
ALLOCATION = "what the memory passes leave behind; nothing reads it on this CPU"
NOT_HERE = {
    **dict.fromkeys(
        ("tile.tpush_to_aiv", "tile.tpush_to_aic", "tile.tpop_from_aic", "tile.tpop_from_aiv", "tile.aiv_shard",
         "tile.aic_gather", "tensor.aiv_shard", "tensor.aic_gather"), PIPE),
    "tensor.alloc": ALLOCATION,
    "tile.alloc": ALLOCATION,
    "tensor.create_l1": "memory of a matrix core, which a later pass replaces",
    "tile.tget_scale_addr": "an address of the device",
}  # fmt: skip


@pytest.fixture(scope="module")
def rare(cpp_compiler: Any) -> tuple[Native, dict[str, Builder]]:
    builders = {}
    for make in CASES:
        b = builders[make.__name__] = Builder(make.__name__)
        make(b)
    return Native([b.function() for b in builders.values()]), builders


@pytest.mark.parametrize("make", CASES, ids=lambda make: make.__name__)
def test_rare(make: Any, rare: tuple[Native, dict[str, Builder]]) -> None:
    """Where a place is out of range both fail, with the same words; in some runs none is."""
    native, builders = rare
    function = next(f for f in native.functions if f.name == make.__name__)
    assert (native.source(function) is None) == (make.__name__ in INTERPRETED), native.made.notes
    if native.source(function) is None:
        return
    failed = 0
    for seed in range(12):
        values = by_hand(builders[make.__name__], seed, 1 + seed)
        found = difference(native, function, values, products_within if make is scaled_products else exactly)
        assert not found, f"{found}\n{function}\n{native.text(function)}"
        failed += bool(interpret(function, Arguments(values))[0])
    assert failed < 12


def test_every_operation_has_a_case_or_a_reason() -> None:
    covered = set(NAMES)
    builders = [make(make.__name__) for make in BUILDERS]
    for make in CASES:
        builders.append(Builder(make.__name__))
        make(builders[-1])
    for b in builders:
        covered |= {node.op.name for node in walk(b.function().body) if isinstance(node, Call)}
    every = {name for name in REGISTRY if name.startswith(("tile.", "tensor."))}
    assert not covered & set(NOT_HERE)
    assert every - covered == set(NOT_HERE)
