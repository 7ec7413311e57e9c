"""Random scalar arithmetic of kernels, native against the interpreter: every operator with operands of every type, in expressions
whose parts are used without being stored."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from tests.runtime.native_ops_kit import Arguments, Builder, D, Native, compare, constant, exactly, extents, interpret

from pypto.ir import scalar
from pypto.ir.dtype import DataType
from pypto.ir.enums import ParamDirection
from pypto.ir.expr import ConstInt, Expr
from pypto.ir.type import ScalarType, TensorType
from pypto.ops.numpy_types import numpy_dtype

INTEGERS = [D.INT8, D.INT16, D.INT32, D.INT64, D.INDEX, D.UINT8, D.UINT16, D.UINT32, D.UINT64]
FLOATS = [D.FP32, D.FP16, D.BF16]
KERNELS, VALUES = 40, 12
ARITHMETIC = [scalar.add, scalar.sub, scalar.mul, scalar.min_, scalar.max_]
BITS = [scalar.bit_and, scalar.bit_or, scalar.bit_xor]
COMPARISONS = [scalar.eq, scalar.ne, scalar.lt, scalar.le, scalar.gt, scalar.ge]


class Scalars:
    """A kernel that computes numbers of one type, and what it is called with."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.b = Builder(f"scalars_{seed}")
        self.dtype = self.draw.choice([*INTEGERS, *FLOATS])
        self.params = {d: [self.b.param(ScalarType(d)) for _ in range(2)] for d in {self.dtype, D.INT32, D.FP32}}
        out = self.b.param(TensorType(extents([VALUES]).elements, self.dtype), ParamDirection.Out)
        for i in range(VALUES):
            self.b.op("tensor.write", out, extents([i]), self.b.assign(self.make(self.dtype, 3)))
        self.function = self.b.function()

    def leaf(self, dtype: DataType) -> Expr:
        if dtype in self.params and self.draw.random() < 0.8:
            return self.draw.choice(self.params[dtype])
        if dtype.is_float_:
            return constant(self.draw.choice([0.5, -2.0, 3.0]), dtype)
        return constant(self.draw.choice([1, 2, 3, 5, 100]), dtype)

    def make(self, dtype: DataType, depth: int) -> Expr:
        draw = self.draw
        if depth == 0:
            return self.leaf(dtype)
        a, b = self.make(dtype, depth - 1), self.make(dtype, depth - 1)
        pick = draw.randrange(10)
        if pick < 4:
            return draw.choice(ARITHMETIC)(a, b)
        if pick == 4:
            return draw.choice([scalar.neg, scalar.abs_])(a)
        if dtype.is_float_:
            if pick == 5:
                return scalar.cast(self.make(draw.choice([D.INT32, self.dtype, D.FP32]), depth - 1), dtype)
            if pick == 6:
                return draw.choice([scalar.floordiv, scalar.mod])(a, b)
            return scalar.truediv(a, b) if pick == 7 else a
        if pick == 5:
            return draw.choice(BITS)(a, b)
        if pick == 6:
            return draw.choice([scalar.floordiv, scalar.mod, scalar.truediv])(a, self.not_zero(b, dtype))
        if pick == 7:
            distance = draw.choice([1, 7, 31, 40, 63])
            return draw.choice([scalar.bit_shift_left, scalar.bit_shift_right])(a, ConstInt(distance, dtype))
        if pick == 8:
            return scalar.cast(draw.choice(COMPARISONS)(a, b), dtype) if draw.random() < 0.5 else scalar.bit_not(a)
        return scalar.cast(self.make(draw.choice([D.INT32, D.FP32]), depth - 1), dtype)

    @staticmethod
    def not_zero(e: Expr, dtype: DataType) -> Expr:
        return scalar.bit_or(e, constant(1, dtype))

    def values(self, seed: int) -> list[Any]:
        draw = random.Random(seed)
        made: list[Any] = []
        for param, _ in self.b.params:
            kind: Any = param.type
            if not isinstance(kind, ScalarType):
                made.append(np.zeros(VALUES, numpy_dtype(kind.dtype)))
            elif kind.dtype.is_float_:
                made.append(draw.choice([0.0, 1.0, -1.5, 2.5, 100.0, -7.0, 0.25, draw.randrange(-64, 64) / 8]))
            else:
                bits, signed = kind.dtype.get_bit(), kind.dtype.is_signed_
                low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
                made.append(draw.choice([0, 1, 2, 7, high, low, high - 1, draw.randint(low, high), 100]))
        return made


@pytest.fixture(scope="module")
def kernels(cpp_compiler: Any) -> tuple[Native, list[Scalars]]:
    made = [Scalars(seed) for seed in range(KERNELS)]
    return Native([k.function for k in made], flags=("-O1", "-ffp-contract=off")), made


@pytest.mark.parametrize("seed", range(KERNELS))
def test_scalars(seed: int, kernels: tuple[Native, list[Scalars]]) -> None:
    native, made = kernels
    kernel = made[seed]
    for data in range(8):
        values = kernel.values(data)
        have, want = Arguments(values), Arguments(values)
        raised, masks = interpret(kernel.function, want)
        thrown = native.run(kernel.function, have)
        assert bool(thrown) == bool(raised), f"native: {thrown or 'fine'}; interpreter: {raised or 'fine'}"
        if not raised:
            found = compare(have, want, masks, exactly)
            assert not found, f"{found} of {values}\n{kernel.function}\n{native.text(kernel.function)}"
