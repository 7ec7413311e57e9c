"""Kernels of single operations and of random chains, run natively and in the interpreter, and their comparison."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import pypto.ops
from pypto.codegen.cpu.kernel import KernelSource
from pypto.ir.dtype import DataType
from pypto.ir.enums import FunctionType, ParamDirection
from pypto.ir.expr import ConstBool, ConstFloat, ConstInt, Expr, MakeTuple, Var, index_const
from pypto.ir.program import Function, Program
from pypto.ir.stmt import AssignStmt, SeqStmts, Stmt
from pypto.ir.type import ScalarType, TensorType, TileType
from pypto.ops.numpy_types import numpy_dtype
from pypto.ops.registry import create_op_call
from pypto.ops.values import ArrayValue, Buffer
from pypto.runtime.interpreter import Interpreter
from pypto.runtime.native_kernels import NativeKernels, build_kernels, native_kernels
from pypto.runtime.native_library import ELEMENT_TYPES, ChipTensor, GlobalContext, LocalContext
from pypto.runtime.scalar_args import to_bits

assert pypto.ops
D = DataType
INDEX = ScalarType(D.INDEX)
GUARD = 5  # columns that belong to nobody behind each row of an argument


# --- building kernels -------------------------------------------------------------------------------------------------


class Builder:
    """A kernel under construction: parameters and statements."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.params: list[tuple[Var, ParamDirection]] = []
        self.stmts: list[Stmt] = []
        self.extents: dict[Var, int] = {}  # scalar parameter that is a valid extent -> the most that it may be
        self.styles: dict[Var, str] = {}  # what a parameter's numbers are, see :func:`numbers`
        self._count = 0

    def param(self, kind: Any, direction: ParamDirection = ParamDirection.In, style: str = "mild") -> Var:
        var = Var(f"p{len(self.params)}", kind)
        self.styles[var] = style
        self.params.append((var, direction))
        return var

    def extent(self, most: int) -> Var:
        """A scalar parameter that is the valid extent of a dimension."""
        for var, limit in self.extents.items():
            if limit == most:
                return var
        var = self.param(INDEX)
        self.extents[var] = most
        return var

    def op(self, name: str, *args: Expr, **kwargs: Any) -> Var:
        return self.assign(create_op_call(name, list(args), kwargs))

    def assign(self, value: Expr) -> Var:
        self._count += 1
        var = Var(f"t{self._count}", value.type)
        self.stmts.append(AssignStmt(var, value))
        return var

    @contextlib.contextmanager
    def body(self) -> Iterator[list[Stmt]]:
        """Statements that are made meanwhile go to a list of their own."""
        outer, self.stmts = self.stmts, []
        try:
            yield self.stmts
        finally:
            self.stmts = outer

    def load(self, source: Var, shape: Sequence[int], valid: Sequence[Expr] | None = None, level: str = "tile") -> Var:
        zeros = extents([0] * len(shape))
        more = [] if valid is None else [MakeTuple(list(valid))]
        if level == "tile":
            return self.op("tile.load", source, zeros, extents(shape), *more)
        return self.op("tensor.slice", source, extents(shape), zeros, *more)

    def store(self, value: Expr, target: Var | None = None) -> Var:
        """Store a whole value into a parameter, by default a new one."""
        kind: Any = value.type
        if target is None:
            target = self.param(TensorType(kind.shape, kind.dtype), ParamDirection.Out)
        zeros = extents([0] * len(kind.shape))
        if isinstance(kind, TileType):
            self.op("tile.store", value, zeros, target)
        else:
            self.op("tensor.assemble", target, value, zeros)
        return target

    def function(self) -> Function:
        return Function(self.name, self.params, [], SeqStmts(self.stmts), type=FunctionType.AIV)


def extents(shape: Sequence[int]) -> MakeTuple:
    return MakeTuple([index_const(n) for n in shape])


def matrix(rows: int, columns: int, dtype: DataType = DataType.FP32) -> TensorType:
    return TensorType(extents([rows, columns]).elements, dtype)


def constant(value: Any, dtype: DataType) -> Expr:
    if dtype is D.BOOL:
        return ConstBool(bool(value))
    return ConstFloat(float(value), dtype) if dtype.is_float_ else ConstInt(int(value), dtype)


# --- data -------------------------------------------------------------------------------------------------------------


def extreme_numbers(dtype: DataType) -> list[Any]:
    if dtype is D.BOOL:
        return [0, 1]
    if dtype.is_int_:
        bits = dtype.get_bit()
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if dtype.is_signed_ else (0, (1 << bits) - 1)
        return [low, low + 1, 0, 0, 1, 2, 3, 7, high // 2, high - 1, high, *([-1, -2, -7] if dtype.is_signed_ else [])]
    largest, smallest = {
        "FP16": (65504.0, 6e-8),
        "BF16": (3.38e38, 9.2e-41),
    }.get(dtype.name, (3.4028235e38, 1.4e-45))
    tiny = {"FP16": 6.1e-5}.get(dtype.name, 1.1754944e-38)
    values = [0.0, 0.0, 1.0, 0.5, 2.5, 3.0, 1e-3, 1e3, largest, smallest, tiny, np.inf, 88.0, 89.5, 104.0]
    return [np.nan, *values, *(-v for v in values)]


def numbers(shape: Sequence[int], dtype: DataType, rng: np.random.Generator, style: str) -> Any:
    """``mild``: numbers that sums and products of stay harmless; ``extreme``: all sorts; ``special``: also infinities
    and NaN, but no number whose sums overflow by their order; ``index``: small ones; ``power``: of two."""
    kind = numpy_dtype(dtype)
    if style == "power":
        return (2.0 ** rng.integers(-2, 3, shape)).astype(np.float32).astype(kind)
    if style == "index":
        return rng.integers(0, 4, shape).astype(kind)
    if style == "mild":
        if dtype.is_float_:
            return rng.uniform(-4, 4, shape).astype(kind)
        low = -9 if dtype.is_int_ and dtype.is_signed_ else 0
        return rng.integers(low, 2 if dtype is D.BOOL else 10, shape).astype(kind)
    known = extreme_numbers(dtype)
    if style == "special" and dtype.is_float_:
        known = [x for x in known if not 1e4 < abs(x) < np.inf]
    pool = np.array(known, np.float64 if dtype.is_float_ else object)
    with np.errstate(all="ignore"):
        picked = pool[rng.integers(0, len(pool), shape)].astype(kind)
        if dtype.is_float_:
            common = (rng.normal(size=shape) * 2.0 ** rng.integers(-12, 13, shape)).astype(np.float32).astype(kind)
        elif dtype is D.BOOL:
            return picked
        else:
            common = rng.integers(-40, 41, shape).astype(kind)
    return np.where(rng.random(shape) < 0.3, picked, common)


def by_hand(builder: Builder, seed: int, most: int) -> list[Any]:
    """Arguments of a kernel whose scalars are places: from -1 to below ``most``."""
    rng = np.random.default_rng(seed)
    made: list[Any] = []
    for param, _ in builder.params:
        kind: Any = param.type
        if param in builder.extents:
            made.append(int(rng.integers(0, builder.extents[param] + 1)))
        elif isinstance(kind, ScalarType):
            whole = int(rng.integers(-1, most))
            made.append(whole % 5 / 2 if kind.dtype.is_float_ else whole > 0 if kind.dtype is D.BOOL else whole)
        else:
            made.append(numbers([e.value for e in kind.shape], kind.dtype, rng, builder.styles[param]))
    return made


# --- running ----------------------------------------------------------------------------------------------------------


class Arguments:
    """The arguments of one call: arrays that lie in larger ones, whose other elements nobody may touch."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = list(values)
        self._around: list[Any] = []
        self.arrays: list[Any] = []
        for value in self.values:
            if isinstance(value, np.ndarray) and value.ndim:
                around = np.zeros((*value.shape[:-1], value.shape[-1] + GUARD), value.dtype)
                around.view(np.uint8)[...] = 0x5A
                inner = around[..., : value.shape[-1]]
                inner[...] = value
                self._around.append(around)
                self.arrays.append(inner)
            else:
                self._around.append(None)
                self.arrays.append(value)

    def check_guards(self) -> None:
        for around, array in zip(self._around, self.arrays, strict=True):
            if around is not None:
                outside = np.ascontiguousarray(around[..., array.shape[-1] :]).view(np.uint8)
                assert (outside == 0x5A).all(), "something was written behind the end of a row"


# An exception must not leave C++.
_CALL = r"""
#include <exception>
#include <string>
#include "pto_kernel_api.h"
PTO_EXPORT const char* pto_call_kernel(PtoKernel kernel, int64_t* args) {
    static thread_local std::string text;
    try {
        kernel(args);
        return nullptr;
    } catch (const std::exception& error) {
        text = error.what();
        return text.c_str();
    }
}
"""


class Native:
    """Kernels that were compiled together."""

    def __init__(self, functions: Sequence[Function], per_source: int = 40, flags: Sequence[str] = ()) -> None:
        self.functions = list(functions)
        self.made: NativeKernels = native_kernels(self.functions)
        self.library = build_kernels(self.made, per_source=per_source, flags=flags, more=[("call.cpp", _CALL)])
        self.library.pto_call_kernel.restype = ctypes.c_char_p
        self._by_name = {f.name: s for f, s in zip(self.functions, self.made.sources, strict=True)}

    def source(self, function: Function) -> KernelSource | None:
        return self._by_name[function.name]

    def text(self, function: Function) -> str:
        source = self.source(function)
        return source.text if source is not None else ""

    def run(self, function: Function, arguments: Arguments) -> str:
        """What the kernel threw, or nothing."""
        source = self.source(function)
        assert source is not None, [n for n in self.made.notes if f"'{function.name}'" in n]
        places = (ctypes.c_int64 * 50)()
        alive: list[Any] = []
        at = 0
        for array in arguments.arrays:
            if isinstance(array, np.ndarray):
                alive.append(chip_tensor(array))
                places[at] = ctypes.addressof(alive[-1])
                at += 1
        for param, value in zip(function.params, arguments.arrays, strict=True):
            if not isinstance(value, np.ndarray):
                bits = to_bits(value, param.type.dtype)  # type: ignore[attr-defined]
                places[at] = bits - (1 << 64) if bits >> 63 else bits
                at += 1
        local, around = LocalContext(0, 1, 0), GlobalContext(0, 1, 1)
        places[48], places[49] = ctypes.addressof(local), ctypes.addressof(around)
        kernel = getattr(self.library, source.name)
        return (self.library.pto_call_kernel(kernel, places) or b"").decode()


def chip_tensor(array: Any) -> ChipTensor:
    made = ChipTensor(buffer_addr=array.ctypes.data, buffer_size=array.nbytes, ndims=array.ndim)
    code = {numpy_dtype(d): i for i, d in reversed(list(enumerate(ELEMENT_TYPES)))}
    made.dtype = code[array.dtype]
    for i, (n, s) in enumerate(zip(array.shape, array.strides, strict=True)):
        made.shapes[i], made.strides[i] = n, s // array.itemsize
    made.is_contiguous = array.flags.c_contiguous
    return made


def interpret(function: Function, arguments: Arguments) -> tuple[str, list[Any]]:
    """What the interpreter raised, or nothing; for each array which elements are defined (None: all)."""
    boxed = [
        ArrayValue(a, Buffer(_base(a), external=True)) if isinstance(a, np.ndarray) else a for a in arguments.arrays
    ]
    program = Program([function], "cases")
    try:
        Interpreter(program).run_kernel(function, boxed, 0, 1, function.name)
    except Exception as error:
        return str(error), []
    return "", [v.mask if isinstance(v, ArrayValue) else None for v in boxed]


def _base(array: Any) -> Any:
    return array.base if array.base is not None and array.base.flags.c_contiguous else array


# --- comparison -------------------------------------------------------------------------------------------------------


def ulps(have: Any, want: Any) -> Any:
    """The distance of floats in units in the last place; huge where one is NaN or infinite and the other is not."""
    bits = {1: np.int8, 2: np.int16, 4: np.int32}[have.dtype.itemsize]
    a, b = (x.view(bits).astype(np.int64) for x in (np.ascontiguousarray(have), np.ascontiguousarray(want)))
    low = np.iinfo(bits).min
    a, b = np.where(a < 0, low - a, a), np.where(b < 0, low - b, b)
    wide_have, wide_want = have.astype(np.float32), want.astype(np.float32)
    nan_a, nan_b = np.isnan(wide_have), np.isnan(wide_want)
    return np.where(nan_a & nan_b, 0, np.where(nan_a | nan_b, 1 << 40, np.abs(a - b)))


Tolerance = Callable[[Any, Any], Any]  # (have, want) -> which elements are near enough


def exactly(have: Any, want: Any) -> Any:
    if have.dtype.kind in "iub":
        return have == want
    return ulps(have, want) == 0


def within(count: int) -> Tolerance:
    def near(have: Any, want: Any) -> Any:
        return have == want if have.dtype.kind in "iub" else ulps(have, want) <= count

    return near


def sums_within(have: Any, want: Any) -> Any:
    """For up to 100 numbers of moderate size, added in any order, with products fused or not: some 1e-7 of the sum of
    the magnitudes, which is at most 1600."""
    if have.dtype.kind in "iub":
        return have == want
    a, b = have.astype(np.float64), want.astype(np.float64)
    with np.errstate(all="ignore"):
        near = np.abs(a - b) <= 2e-5 * np.abs(b) + 1e-4
    return near | (ulps(have, want) <= 2)


products_within = sums_within


def compare(native: Arguments, wanted: Arguments, masks: Sequence[Any], near: Tolerance) -> str:
    """Where the arrays differ in elements that are defined, or nothing."""
    for i, (have, want) in enumerate(zip(native.arrays, wanted.arrays, strict=True)):
        if not isinstance(have, np.ndarray):
            continue
        ok = near(have, want)
        if masks and masks[i] is not None:
            ok = ok | ~masks[i]
        if not np.all(ok):
            at = tuple(int(x) for x in np.argwhere(~np.asarray(ok))[0])
            return f"argument {i} {list(have.shape)} {have.dtype}: {(~ok).sum()} differ, first {at}: native {have[at]!r}, wanted {want[at]!r}"
    return ""


def difference(native: Native, function: Function, values: Sequence[Any], near: Tolerance) -> str:
    """How a native run differs from one in the interpreter."""
    a, b = Arguments(values), Arguments(values)
    thrown = native.run(function, a)
    raised, masks = interpret(function, b)
    if thrown or raised:
        words = thrown.partition("@")[2].partition("@")[2]  # behind the number of the line
        return "" if words and words in raised else f"native: {thrown or 'fine'}; interpreter: {raised or 'fine'}"
    a.check_guards()
    return compare(a, b, masks, near)


__all__ = [
    "INDEX",
    "Arguments",
    "Builder",
    "D",
    "Native",
    "Tolerance",
    "by_hand",
    "constant",
    "difference",
    "exactly",
    "extents",
    "interpret",
    "matrix",
    "numbers",
    "products_within",
    "sums_within",
    "within",
]
