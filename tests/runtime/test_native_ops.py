"""Each operation that kernels can use, native against the interpreter, with operands that are drawn at random.

What a type rule accepts is a case: element types, broadcasting, ragged extents, valid regions that are known at run
time, scalars that are constants or parameters. Data are harmless numbers once and extreme ones once.
"""

from __future__ import annotations

import os
import random
from typing import Any
from unittest import mock

import numpy as np
import pytest
from tests.runtime.native_chains_kit import Chain, spread
from tests.runtime.native_ops_kit import (
    INDEX,
    Arguments,
    Builder,
    D,
    Native,
    Tolerance,
    by_hand,
    constant,
    difference,
    exactly,
    extents,
    interpret,
    matrix,
    numbers,
    products_within,
    sums_within,
    within,
)

from pypto.codegen.cpu import rows
from pypto.ir.dtype import DataType
from pypto.ir.enums import MemorySpace, PadValue, ParamDirection
from pypto.ir.expr import ConstInt, Expr, MakeTuple, index_const
from pypto.ir.type import ScalarType, ShapedType, TensorType
from pypto.ops.definition import REQUIRED, OpDef
from pypto.ops.registry import REGISTRY

CASES = int(os.environ.get("PYPTO_NATIVE_CASES", "4"))  # of each operation
DTYPES = [D.FP32, D.FP32, D.FP16, D.BF16, D.INT32, D.INT16, D.INT8, D.UINT8, D.UINT16, D.UINT32, D.INT64, D.UINT64]
COLUMNS = [1, 3, 16, 17, 64, 100]
ROWS = [1, 2, 8]
KWARGS: dict[Any, list[Any]] = {
    int: [-2, -1, 0, 1, 2, 3, 4, 5],
    bool: [False, True],
    str: ["final"],
    DataType: [*DTYPES, D.BOOL],
    PadValue: list(PadValue),
}
PARTS = ("add", "mul", "max", "min")
FAMILIES = "bitwise cast compare elementwise expand matmul gemv pad partial reduction rsqrt ternary view".split()
FAMILIES += "gather matmul_mx random scatter sort".split()
# These need operands that fit together in ways that chance does not find.
RARE = {"tile.gemv_acc", "tensor.gather_compare", "tile.gather_compare", "tensor.scatter_mask", "tile.scatter_mask"}
RARE |= {"tile.gatherb", "tensor.mrgsort_format1", "tile.mrgsort_format1", "tensor.sort32", "tile.sort32"}
RARE |= {"tile.matmul_mx", "tile.matmul_mx_acc", "tile.matmul_mx_bias", "tile.tget_scale_addr"}
NAMES = [
    name
    for name, definition in REGISTRY.items()
    if definition.infer.__module__.rsplit(".", 1)[-1] in FAMILIES
    and name.startswith(("tile.", "tensor."))
    and name not in RARE
]
# These NumPy runs, called by the kernel.
HOSTED = {
    "tensor.gather", "tile.gather", "tensor.gather_mask", "tile.gather_mask", "tensor.scatter", "tile.scatter",
    "tensor.scatter_update", "tile.scatter_update", "tensor.random", "tile.random", "tensor.mrgsort_format2",
    "tile.mrgsort_format2",
}  # fmt: skip
# Products with a float and an integer, operands of which one is valid where the other is not.
SOMETIMES_HOSTED = {"tensor.matmul", *(f"{level}.part_{how}" for level in ("tensor", "tile") for how in PARTS)}


class Draw(random.Random):
    """Choices of one case: all operands of an operation tend to have the same element type and shape."""

    def start(self) -> None:
        self.dtype = self.choice(DTYPES)
        self.uniform_dtype = self.random() < 0.7
        rank = self.choice([2, 2, 2, 2, 3])
        self.base = [*([self.choice([1, 2, 3])] * (rank - 2)), self.choice(ROWS), self.choice(COLUMNS)]
        self.valid = self.choice([None, None, "dynamic", "constant"])

    def element(self) -> DataType:
        return self.dtype if self.uniform_dtype else self.choice(DTYPES)


def operand_shape(draw: Draw, definition: OpDef, index: int, name: str) -> list[int]:
    shape = list(draw.base)
    if "matmul" in definition.name or "gemv" in definition.name:
        inner = COLUMNS[draw.base[-1] % len(COLUMNS)]
        rows = 1 if "gemv" in definition.name else draw.base[-2]
        own = {"lhs": [rows, inner], "rhs": [inner, draw.base[-1]], "bias": [1, draw.base[-1]]}.get(
            name, [16 if "gemv" in definition.name else rows, draw.base[-1]]
        )
        lead = draw.base[:-2] if "batch" in definition.name or definition.name.startswith("tensor") else []
        return [*lead, *own]
    if name == "row_vec":
        shape[-1] = 1
    elif name in ("col_vec", "col_tile"):
        shape[-2] = 1
    elif index and draw.random() < 0.25:
        axis = draw.randrange(len(shape))
        shape[axis] = 1
    return shape


class Case:
    """A kernel of one operation, and how its arguments are made."""

    def __init__(self, draw: Draw, definition: OpDef, name: str) -> None:
        draw.start()
        self.definition = definition
        self.builder = Builder(name)
        self.level = definition.name.partition(".")[0]
        self.styles: dict[int, str] = {}
        count = draw.choice([len(definition.operands), definition.min_operands])
        args = [self._operand(draw, i, spec) for i, spec in enumerate(definition.operands[:count])]
        kwargs = {}
        for key, (kind, default) in definition.kwargs.items():
            if default is REQUIRED or draw.random() < 0.4:
                kwargs[key] = draw.choice(KWARGS[kind])
        self.result = self.builder.op(definition.name, *args, **kwargs)
        kind = self.result.type
        if not isinstance(kind, ShapedType):
            raise ValueError("a result that can't be stored")
        if definition.effects:
            self.builder.store(args[next(iter(definition.effects))])
        self.builder.store(self.result)
        self.function = self.builder.function()
        self.kwargs = kwargs

    def _operand(self, draw: Draw, index: int, spec: Any) -> Expr:
        b = self.builder
        shape = operand_shape(draw, self.definition, index, spec.name)
        dtype = draw.element()
        if spec.kind == "tuple":
            return extents(draw.base)
        if spec.kind == "const" or (spec.role == "index" and spec.kind == "scalar"):
            return index_const(draw.choice([0, 1]))
        if spec.kind == "scalar":
            if spec.name == "init_cond":
                dtype = D.BOOL
            elif spec.name == "axis1":
                return ConstInt(0, D.INDEX)
            if draw.random() < 0.5:
                var = b.param(ScalarType(dtype))
                return var
            value = draw.choice([0, 1, 2, 3, -1, 1.5, 7])
            return constant(value if dtype.is_float_ else int(value), dtype)
        if spec.name == "indexes" or spec.role == "index":
            dtype = D.INT32
        source = b.param(TensorType(extents(shape).elements, dtype))
        if spec.role == "index":
            self.styles[len(b.params) - 1] = "index"
        valid: list[Expr] | None = None
        if draw.valid == "dynamic":
            valid = [index_const(1) if n == 1 else b.extent(n) for n in shape]
        elif draw.valid == "constant":
            valid = [index_const(max(1, n - 1)) for n in shape]
        return b.load(source, shape, valid, self.level)

    def values(self, seed: int, style: str) -> list[Any]:
        rng = np.random.default_rng(seed)
        made: list[Any] = []
        for i, (param, _) in enumerate(self.builder.params):
            kind: Any = param.type
            if param in self.builder.extents:
                made.append(int(rng.integers(1, self.builder.extents[param] + 1)))
            elif isinstance(kind, ScalarType):
                made.append(numbers((), kind.dtype, rng, "mild").item())
            else:
                shape = [e.value for e in kind.shape]
                made.append(numbers(shape, kind.dtype, rng, self.styles.get(i, style)))
        return made

    def data_styles(self) -> tuple[str, ...]:
        name = self.definition.name.partition(".")[2]
        # Of large numbers the sine is NaN, and sums overflow or not by their order.
        tame = name in ("sin", "cos") or "matmul" in name or "gemv" in name
        return ("mild", "special", "special") if tame else ("mild", "extreme", "extreme")

    def tolerance(self) -> Tolerance:
        name = self.definition.name.partition(".")[2]
        if "sum" in name or "prod" in name:
            return sums_within
        if "matmul" in name or "gemv" in name:
            return products_within
        if name in ("log", "sin", "cos"):
            return within(4)
        if "exp" in name.replace("expand", "") or name == "rsqrt":
            return within(3)
        return exactly


def drawn(name: str, count: int = CASES) -> list[Case]:
    """Cases of an operation that differ in more than their data."""
    draw = Draw(name)
    found: list[Case] = []
    seen: set[Any] = set()
    for _ in range(4000):
        try:
            case = Case(draw, REGISTRY[name], f"{name.replace('.', '_')}_{len(found)}")
        except (ValueError, TypeError):
            continue
        key = tuple(str(p.type) for p, _ in case.builder.params)
        if key in seen:
            continue
        seen.add(key)
        found.append(case)
        if len(found) == count:
            break
    return found


@pytest.fixture(scope="module")
def everything(cpp_compiler: Any) -> tuple[Native, dict[str, list[Case]]]:
    cases = {name: drawn(name) for name in NAMES}
    return Native([case.function for found in cases.values() for case in found]), cases


@pytest.mark.parametrize("name", NAMES)
def test_op(name: str, everything: tuple[Native, dict[str, list[Case]]]) -> None:
    native, cases = everything
    assert cases[name], "nothing was drawn that the type rule accepts"
    for case in cases[name]:
        for seed, style in enumerate(case.data_styles()):
            found = difference(native, case.function, case.values(seed, style), case.tolerance())
            assert not found, f"{found} ({style})\n{case.function}\n{native.text(case.function)}"


def test_what_numpy_runs(everything: tuple[Native, dict[str, list[Case]]]) -> None:
    """An operation that loses its native form must be noticed; the notes say which have none."""
    native, cases = everything
    for name, found in cases.items():
        for case in found:
            source = native.source(case.function)
            assert source is not None, f"{name} makes its whole kernel run in the interpreter"
            by_numpy = {hosted.call.op.name for hosted in source.hosted}
            if name in HOSTED:
                assert by_numpy == {name} and source.notes == [f"{name} (it has no native form)"]
            elif name not in SOMETIMES_HOSTED:
                assert not by_numpy, source.notes


# --- operations whose operands chance does not find -------------------------------------------------------------------


def windows(name: str) -> Builder:
    """Windows at places known at run time, with every kind of extent; stores that touch neighbours of what was read."""
    b = Builder(name)
    x = b.param(matrix(20, 40))
    at, along = b.param(INDEX), b.param(INDEX)
    m = b.extent(8)
    out = b.param(matrix(20, 40), ParamDirection.InOut)
    t = b.op("tile.load", x, MakeTuple([at, along]), extents([8, 16]), MakeTuple([m, index_const(16)]))
    b.op("tile.store", t, MakeTuple([along, at]), out)
    part = b.op("tile.slice", t, extents([4, 16]), MakeTuple([at, index_const(0)]))
    b.op("tile.store", part, MakeTuple([at, at]), out)
    again = b.op("tile.load", out, MakeTuple([at, at]), extents([8, 16]))
    b.op("tile.store", again, extents([0, 3]), out)
    return b


def reads_and_writes(name: str) -> Builder:
    b = Builder(name)
    x = b.param(matrix(8, 17))
    row, column = b.param(INDEX), b.param(INDEX)
    out = b.param(matrix(8, 17), ParamDirection.InOut)
    t = b.load(x, [8, 17])
    before = b.op("tile.read", t, MakeTuple([row, column]))
    changed = b.op("tile.write", b.op("tile.muls", t, constant(2, D.FP32)), MakeTuple([column, row]), before)
    b.op("tensor.write", out, MakeTuple([row, row]), b.op("tensor.read", x, MakeTuple([column, column])))
    b.op("tile.store", b.load(out, [1, 17]), extents([3, 0]), out)
    b.store(changed)
    return b


def assembled(name: str) -> Builder:
    """Tiles in tiles, of which one is only loaded: the tensor must not change."""
    b = Builder(name)
    x, y = b.param(matrix(8, 16)), b.param(matrix(8, 16))
    at = b.param(INDEX)
    t, u = b.load(x, [8, 16]), b.load(y, [8, 16])
    kept = b.op("tile.move", t, target_memory=MemorySpace.Vec)
    part = b.op("tile.slice", u, extents([2, 8]), MakeTuple([at, at]))
    whole = b.op("tile.assemble", t, part, MakeTuple([at, index_const(8)]))
    whole = b.op("tile.assemble", whole, b.op("tile.slice", whole, extents([2, 8]), extents([1, 4])), extents([0, 0]))
    b.store(whole)
    b.store(kept)
    b.store(b.op("tile.add", whole, u))
    return b


def extracted(name: str) -> Builder:
    b = Builder(name)
    x = b.param(matrix(16, 32))
    at = b.param(INDEX)
    t = b.load(x, [16, 32])
    part = b.op("tile.extract", t, at, index_const(16), extents([8, 16]), target_memory=MemorySpace.Vec)
    b.store(b.op("tile.exp", part))
    turned = b.op("tile.transpose", part, index_const(0), index_const(1))
    b.store(turned)
    b.store(b.op("tile.reshape", b.op("tile.transpose_view", part), extents([8, 16])))
    return b


def three_dimensions(name: str) -> Builder:
    b = Builder(name)
    x = b.param(TensorType(extents([3, 8, 16]).elements, D.FP32))
    at = b.param(INDEX)
    one = b.op("tensor.slice", x, extents([1, 8, 16]), MakeTuple([at, index_const(0), index_const(0)]), extents([]),
               extents([0]))  # fmt: skip
    b.store(b.op("tensor.adds", one, constant(1, D.FP32)))
    t = b.load(x, [3, 8, 16])
    b.store(b.op("tile.transpose", t, index_const(0), index_const(2)))
    b.store(b.op("tile.reshape", t, extents([24, 16])))
    flat = b.op("tile.reshape", t, extents([24, 16]))
    out = b.param(TensorType(extents([4, 8, 16]).elements, D.FP32), ParamDirection.Out)
    b.op(
        "tile.store", b.op("tile.neg", flat), MakeTuple([at, index_const(0), index_const(0)]), out, extents([3, 8, 16])
    )
    for axis in (0, 1, 2):
        for op in ("row_sum", "row_argmax"):
            b.store(b.op(f"tensor.{op}", b.load(x, [3, 8, 16], level="tensor"), axis=axis, keep_dim=axis != 1))
    return b


def clamped(name: str) -> Builder:
    b = Builder(name)
    x = b.param(matrix(10, 20))
    at = b.param(INDEX)
    t = b.op("tile.load", x, MakeTuple([at, at]), extents([8, 16]), clamp=True)
    out = b.param(matrix(8, 16), ParamDirection.InOut)
    b.op("tile.store", b.op("tile.adds", t, constant(1, D.FP32)), extents([0, 0]), out)
    b.store(b.op("tile.fillpad", t, pad_value=PadValue.max))
    return b


def rows_gathered(name: str) -> Builder:
    b = Builder(name)
    x, y = b.param(matrix(16, 8)), b.param(matrix(8, 16))
    at = b.param(INDEX)
    t = b.op("tile.muls", b.load(y, [8, 16]), constant(1, D.FP32))
    place = MakeTuple([at, index_const(0)])
    t = b.op("tile.gather_row", t, x, place, place, extents([2, 8]))
    t = b.op("tile.gather_row", t, x, place, place, extents([4, 3]), transpose=True)
    b.store(t)
    return b


def made(name: str) -> Builder:
    b = Builder(name)
    start = b.param(ScalarType(D.INT32))
    for down in (False, True):
        b.store(b.op("tile.ci", start, extents([1, 32]), dtype=D.INT32, descending=down))
    ones = b.op("tile.full", extents([4, 17]), constant(1, D.FP32), dtype=D.FP32)
    b.store(b.op("tile.concat", ones, b.op("tile.full", extents([4, 3]), constant(2, D.FP32), dtype=D.FP32)))
    b.store(b.op("tile.tri", start, extents([4, 16]), dtype=D.FP16))
    b.store(b.op("tensor.create", extents([3, 5]), dtype=D.FP16, init_value=1.5))
    b.store(b.op("tile.expands", ones, b.param(ScalarType(D.FP32))))
    return b


def small_floats(name: str) -> Builder:
    """Scalars of 16 bits travel by their bits; eight-bit floats are stored and converted."""
    b = Builder(name)
    x = b.param(matrix(8, 17, D.FP16))
    t = b.op("tile.muls", b.load(x, [8, 17]), b.param(ScalarType(D.FP16)))
    u = b.op("tile.cast", t, target_type=D.BF16, mode=1)
    b.store(b.op("tile.adds", u, b.param(ScalarType(D.BF16))))
    for dtype in (D.FP8E4M3FN, D.FP8E5M2):
        small = b.op("tile.cast", t, target_type=dtype, mode=1)
        b.store(small)
        b.store(b.op("tile.cast", small, target_type=D.FP32, mode=1))
    return b


def sorted_rows(name: str) -> Builder:
    """Several results, from NumPy."""
    b = Builder(name)
    x, index = b.param(matrix(2, 64)), b.param(matrix(2, 64, D.UINT32))
    t = b.op("tile.sort32", b.op("tile.neg", b.load(x, [2, 64])), b.load(index, [2, 64]))
    b.store(b.op("tile.adds", t, constant(1, D.FP32)))
    first = b.op("tile.slice", t, extents([1, 64]), extents([0, 0]))
    b.store(b.op("tile.mrgsort_format1", first, ConstInt(64, D.INT32)))
    return b


def sums_of_products(name: str) -> Builder:
    """Products that are added to, first in a loop whose first round overwrites; one row times a matrix."""
    b = Builder(name)
    x, y, z = b.param(matrix(16, 16)), b.param(matrix(16, 16)), b.param(matrix(1, 16))
    first = b.param(ScalarType(D.BOOL))
    t, u, v = b.load(x, [16, 16]), b.load(y, [16, 16]), b.load(z, [1, 16])
    total = b.op("tile.matmul_acc", b.op("tile.matmul", t, u), u, t, first)
    b.store(b.op("tile.move", total, target_memory=MemorySpace.Vec))
    b.store(b.op("tile.matmul_acc", total, t, t))
    b.store(b.op("tile.gemv_acc", b.op("tile.gemv", v, t), v, u))
    wide = b.load(y, [16, 16], level="tensor")
    before = b.op("tensor.matmul", b.load(x, [16, 16], level="tensor"), wide, b_trans=True)
    b.store(b.op("tensor.matmul_acc", before, wide, wide, a_trans=True))
    b.store(b.op("tensor.adds", before, constant(1, D.FP32)))
    return b


BUILDERS = [
    windows, reads_and_writes, assembled, extracted, three_dimensions, clamped, rows_gathered, made, small_floats,
    sorted_rows, sums_of_products,
]  # fmt: skip


@pytest.fixture(scope="module")
def handmade(cpp_compiler: Any) -> tuple[Native, dict[str, Builder]]:
    builders = {make.__name__: make(make.__name__) for make in BUILDERS}
    return Native([b.function() for b in builders.values()]), builders


@pytest.mark.parametrize("make", BUILDERS, ids=lambda make: make.__name__)
def test_windows_and_others(make: Any, handmade: tuple[Native, dict[str, Builder]]) -> None:
    """Places are out of range in some of the runs: both fail then, with the same words."""
    native, builders = handmade
    builder = builders[make.__name__]
    function = next(f for f in native.functions if f.name == make.__name__)
    failed = 0
    for seed in range(12):
        values = by_hand(builder, seed, 1 + seed)
        found = difference(
            native, function, values, sums_within if make in (three_dimensions, sums_of_products) else within(2)
        )
        assert not found, f"{found}\n{function}\n{native.text(function)}"
        failed += bool(interpret(function, Arguments(values))[0])
    assert failed < 12


# --- chains -----------------------------------------------------------------------------------------------------------

EXACT, ROUNDED = 150, 50


@pytest.fixture(scope="module")
def chains(cpp_compiler: Any) -> tuple[Native, list[Chain]]:
    made = [Chain(f"chain_{seed}", seed, exact=seed < EXACT) for seed in range(EXACT + ROUNDED)]
    # Long rows of large tensors are done by parts: here all of 64 columns and more.
    with mock.patch.multiple(rows, _FAR_BYTES=0, _LONG_ROW=64, _PART=16, _STREAMED_BYTES=0, _STREAMED_PART=24):
        native = Native([chain.function for chain in made], per_source=16)
    for found in ("pto::fetch<0>", "pto::stream("):
        assert any(found in native.text(chain.function) for chain in made)
    return native, made


@pytest.mark.parametrize("seed", range(EXACT))
def test_exact_chain(seed: int, chains: tuple[Native, list[Chain]]) -> None:
    native, made = chains
    chain = made[seed]
    for data in range(2):
        found = difference(native, chain.function, chain.values(data), exactly)
        assert not found, f"{found}\n{chain.function}\n{native.text(chain.function)}"


@pytest.mark.parametrize("seed", range(EXACT, EXACT + ROUNDED))
def test_rounded_chain(seed: int, chains: tuple[Native, list[Chain]]) -> None:
    native, made = chains
    chain = made[seed]
    for data in range(2):
        values = chain.values(data)
        have, want = Arguments(values), Arguments(values)
        assert not native.run(chain.function, have)
        raised, masks = interpret(chain.function, want)
        assert not raised
        reach = iter(spread(chain.function, values, want))
        far = [next(reach) for _ in want.arrays]

        def near(i: int, a: Any, b: Any, far: Any = far) -> Any:
            a, b = a.astype(np.float64), b.astype(np.float64)
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            with np.errstate(invalid="ignore"):
                return same | (np.abs(a - b) <= 8 * far[i] + 1e-6 * np.abs(b))

        for i, (a, b) in enumerate(zip(have.arrays, want.arrays, strict=True)):
            if isinstance(a, np.ndarray):
                ok = near(i, a, b) if masks[i] is None else near(i, a, b) | ~masks[i]
                assert ok.all(), f"argument {i}: {a[~ok][:3]} instead of {b[~ok][:3]}\n{chain.function}"
