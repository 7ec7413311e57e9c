"""Kernels in which one object has several names, or one name may stand for several: what is no copy in the interpreter is
none in native code, or the kernel has no native form. Arguments that overlap: the interpreter takes those calls."""

from __future__ import annotations

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir
from pypto.ops.values import ArrayValue
from pypto.runtime.emitted import EmittedCode, EmittedProgram
from pypto.runtime.interpreted_kernels import _InterpretedKernel
from pypto.runtime.interpreter import Interpreter

HEAD = """
import pypto.language as pl

@pl.inline
def both(a, b):
    return b % 3, a + b

@pl.inline
def tiles(a, b):
    return pl.add(a, b), pl.sub(a, b)

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self,
        x: pl.Tensor[[8, 16], pl.FP32],
        n: pl.Scalar[pl.INDEX],
        o: pl.InOut[pl.Tensor[[8, 16], pl.FP32]],
        u: pl.InOut[pl.Tensor[[8, 16], pl.FP32]],
    ) -> tuple[pl.Tensor[[8, 16], pl.FP32], pl.Tensor[[8, 16], pl.FP32]]:
"""
TAIL = """
        return o, u

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[8, 16], pl.FP32],
        n: pl.Scalar[pl.INDEX],
        o: pl.InOut[pl.Tensor[[8, 16], pl.FP32]],
        u: pl.InOut[pl.Tensor[[8, 16], pl.FP32]],
    ):
        o, u = self.k(x, n, o, u)
        return o, u
"""
# Of x = 1, n = 2, o = 10, u = 20: what the first elements of o and u are then.
CASES: dict[str, tuple[str, bool, float, float]] = {
    "a tensor that is not the first parameter is carried": (
        """
        t = pl.load(x, [0, 0], [8, 16])
        for i, (p, a) in pl.range(3, init_values=(t, u)):
            a2 = pl.store(pl.add(pl.load(a, [0, 0], [8, 16]), p), [0, 0], a)
            q, r = pl.yield_(pl.add(p, 1.0), a2)
        o = pl.store(pl.add(pl.load(r, [0, 0], [8, 16]), q), [0, 0], o)
        """, True, 30.0, 26.0,
    ),
    "tensors that change places are written": (
        """
        t = pl.load(x, [0, 0], [8, 16])
        for i, (a, b) in pl.range(3, init_values=(o, u)):
            c = pl.store(pl.add(pl.load(a, [0, 0], [8, 16]), t), [0, 0], a)
            r, s = pl.yield_(b, c)
        """, False, 12.0, 21.0,
    ),
    "tensors that change places are read": (
        """
        zero = pl.tile.full([8, 16], dtype=pl.FP32, value=0.0)
        for i, (sum, a, b) in pl.range(3, init_values=(zero, x, o)):
            more = pl.add(pl.mul(sum, 2.0), pl.load(a, [0, 0], [8, 16]))
            total, r, s = pl.yield_(more, b, a)
        u = pl.store(total, [0, 0], u)
        """, True, 10.0, 25.0,
    ),
    "one of two tensors is written": (
        """
        t = pl.load(x, [0, 0], [8, 16])
        if n > 1:
            a = pl.yield_(o)
        else:
            a = pl.yield_(u)
        b = pl.store(t, [0, 0], a)
        """, False, 1.0, 20.0,
    ),
    "one of two tensors is read behind a store to it": (
        """
        t = pl.load(x, [0, 0], [8, 16])
        if n > 1:
            a = pl.yield_(o)
        else:
            a = pl.yield_(x)
        o = pl.store(t, [0, 0], o)
        u = pl.store(pl.add(pl.load(a, [0, 0], [8, 16]), 5.0), [0, 0], u)
        """, False, 1.0, 6.0,
    ),
    "a tile is changed under the name of a carry": (
        """
        t = pl.add(pl.load(x, [0, 0], [8, 16]), 1.0)
        for i, (a,) in pl.range(2, init_values=(t,)):
            pl.tile.write(a, [0, 0], 7.0)
            (r,) = pl.yield_(a)
        o = pl.store(t, [0, 0], o)
        u = pl.store(r, [0, 0], u)
        """, False, 7.0, 7.0,
    ),
    "a carry is changed that nobody else knows": (
        """
        t = pl.add(pl.load(x, [0, 0], [8, 16]), 1.0)
        for i, (a,) in pl.range(2, init_values=(t,)):
            v = pl.tile.read(a, [0, 0])
            pl.tile.write(a, [0, 0], v * 2.0)
            (r,) = pl.yield_(a)
        u = pl.store(r, [0, 0], u)
        """, True, 10.0, 8.0,
    ),
    "a tile from outside becomes the carry, which is changed": (
        """
        t = pl.add(pl.load(x, [0, 0], [8, 16]), 1.0)
        s = pl.add(pl.load(x, [0, 0], [8, 16]), 2.0)
        for i, (a,) in pl.range(2, init_values=(s,)):
            pl.tile.write(a, [0, 0], 7.0)
            (r,) = pl.yield_(t)
        o = pl.store(t, [0, 0], o)
        """, False, 7.0, 20.0,
    ),
    "two carries begin as one tile": (
        """
        t = pl.add(pl.load(x, [0, 0], [8, 16]), 1.0)
        for i, (a, b) in pl.range(2, init_values=(t, t)):
            pl.tile.write(a, [0, 0], 7.0)
            r, s = pl.yield_(a, b)
        u = pl.store(s, [0, 0], u)
        """, False, 10.0, 7.0,
    ),
    "one of two tiles is changed": (
        """
        t = pl.add(pl.load(x, [0, 0], [8, 16]), 1.0)
        s = pl.add(pl.load(x, [0, 0], [8, 16]), 2.0)
        if n > 1:
            a = pl.yield_(t)
        else:
            a = pl.yield_(s)
        pl.tile.write(a, [0, 0], 7.0)
        o = pl.store(t, [0, 0], o)
        u = pl.store(s, [0, 0], u)
        """, False, 7.0, 3.0,
    ),
    "the copy of a tile is changed, and the tile is used again": (
        """
        t = pl.add(pl.load(x, [0, 0], [8, 16]), 1.0)
        s = pl.move(t, target_memory=pl.Mem.Vec)
        for i, (a,) in pl.range(2, init_values=(s,)):
            pl.tile.write(a, [0, 0], 7.0)
            (r,) = pl.yield_(a)
        o = pl.store(t, [0, 0], o)
        u = pl.store(r, [0, 0], u)
        """, True, 2.0, 7.0,
    ),
    "what is loaded is used behind a store to another tensor": (
        """
        t = pl.load(x, [0, 0], [8, 16])
        o = pl.store(pl.add(t, 1.0), [0, 0], o)
        u = pl.store(pl.col_expand_mul(t, pl.col_sum(t)), [0, 0], u)
        """, True, 2.0, 8.0,
    ),
    "a new tensor is carried, written, and used again": (
        """
        t = pl.tensor.full([8, 16], dtype=pl.FP32, value=1.0)
        for i, (a,) in pl.range(2, init_values=(t,)):
            a2 = pl.assemble(a, pl.tensor.full([1, 16], dtype=pl.FP32, value=5.0), [i, 0])
            (r,) = pl.yield_(a2)
        o = pl.assemble(o, pl.add(t, 1.0), [0, 0])
        u = pl.assemble(u, pl.add(r, 1.0), [0, 0])
        """, True, 6.0, 6.0,
    ),
    "a part of a new tensor is written under the tensor's name": (
        """
        t = pl.mul(x, 3.0)
        part = pl.slice(t, [4, 16], [2, 0])
        t2 = pl.assemble(t, pl.tensor.full([1, 16], dtype=pl.FP32, value=5.0), [2, 0])
        o = pl.assemble(o, pl.add(part, 1.0), [0, 0])
        u = pl.assemble(u, t2, [0, 0])
        """, True, 6.0, 3.0,
    ),
    "a part of a tile, and the tile, are changed": (
        """
        t = pl.add(pl.load(x, [0, 0], [8, 16]), 1.0)
        part = pl.slice(t, [4, 16], [2, 0])
        pl.tile.write(t, [2, 0], 9.0)
        pl.tile.write(part, [1, 0], 7.0)
        o = pl.store(part, [0, 0], o)
        u = pl.store(t, [0, 0], u)
        """, True, 9.0, 2.0,
    ),
    "a tile in another shape is changed": (
        """
        t = pl.add(pl.load(x, [0, 0], [8, 16]), 1.0)
        part = pl.reshape(t, [16, 8])
        pl.tile.write(t, [0, 0], 9.0)
        o = pl.store(pl.reshape(part, [8, 16]), [0, 0], o)
        pl.tile.write(part, [0, 0], 4.0)
        u = pl.store(t, [0, 0], u)
        """, True, 9.0, 4.0,
    ),
    "a part of a parameter is read behind a store": (
        """
        part = pl.slice(o, [8, 16], [0, 0])
        a = pl.load(x, [0, 0], [8, 16])
        o = pl.store(a, [0, 0], o)
        u = pl.assemble(u, pl.add(part, 1.0), [0, 0])
        """, True, 1.0, 2.0,
    ),
    "a tensor is loaded, stored to, and loaded again": (
        """
        a = pl.load(o, [0, 0], [8, 16])
        o = pl.store(pl.mul(a, 2.0), [0, 0], o)
        b = pl.load(o, [0, 0], [8, 16])
        o = pl.store(pl.add(a, b), [0, 0], o)
        u = pl.store(pl.sub(b, a), [0, 0], u)
        """, True, 30.0, 10.0,
    ),
    "a branch stores what was loaded in front of it": (
        """
        a = pl.load(o, [0, 0], [8, 16])
        if n > 1:
            o = pl.store(pl.mul(a, 3.0), [0, 0], o)
        u = pl.store(pl.add(a, pl.load(o, [0, 0], [8, 16])), [0, 0], u)
        """, True, 30.0, 40.0,
    ),
    "an element is read, written, and read again": (
        """
        v = pl.tensor.read(o, [0, 0])
        pl.tensor.write(o, [0, 0], 3.0)
        w = pl.tensor.read(o, [0, 0])
        u = pl.store(pl.add(pl.mul(pl.load(x, [0, 0], [8, 16]), v), w), [0, 0], u)
        """, True, 3.0, 13.0,
    ),
    "a condition reads what the loop stores": (
        """
        t = pl.add(pl.load(x, [0, 0], [8, 16]), 0.0)
        for (k, a) in pl.while_(init_values=(0, t)):
            pl.cond(k < 5 and pl.tensor.read(o, [0, 0]) < 14.0)
            o = pl.store(pl.add(pl.load(o, [0, 0], [8, 16]), 1.0), [0, 0], o)
            k2, r = pl.yield_(k + 1, pl.add(a, a))
        u = pl.store(r, [0, 0], u)
        """, True, 14.0, 16.0,
    ),
    "results of an inline function are numbers": (
        """
        t = pl.load(x, [0, 0], [8, 16])
        a, b = both(n, n + 3)
        o = pl.store(pl.mul(t, pl.cast(a * 10 + b, pl.FP32)), [0, 0], o)
        """, True, 27.0, 20.0,
    ),
    "results of an inline function are tiles": (
        """
        t = pl.load(x, [0, 0], [8, 16])
        a, b = tiles(t, pl.mul(t, 3.0))
        c = pl.exp(pl.sub(t, t))
        o = pl.store(pl.add(b, c), [0, 0], o)
        u = pl.store(a, [0, 0], u)
        """, True, -1.0, 4.0,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def programs(cpp_compiler: Any) -> dict[str, EmittedProgram]:
    codes = [EmittedCode(ir.PassManager().run_passes(parsed(case)), "main") for case in CASES]
    return dict(zip(CASES, EmittedProgram.build_all(codes, native=True), strict=True))


def parsed(case: str) -> ir.Program:
    return pl.parse(HEAD + CASES[case][0].strip("\n") + TAIL, "names.py")


def arrays() -> list[np.ndarray]:
    return [np.full((8, 16), value, np.float32) for value in (1.0, 10.0, 20.0)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
def test_names(case: str, programs: dict[str, EmittedProgram]) -> None:
    _, is_native, *wanted = CASES[case]
    x, o, u = arrays()
    source = parsed(case)
    Interpreter(source).run(source["main"], [ArrayValue(x), 2, ArrayValue(o), ArrayValue(u)])
    assert [o[0, 0], u[0, 0]] == wanted
    program = programs[case]
    a, b, c = arrays()
    program.run([a, 2, b, c])
    np.testing.assert_array_equal(b, o)
    np.testing.assert_array_equal(c, u)
    if is_native:
        assert program.notes == []
    else:
        assert len(program.notes) == 1 and "under one of several names" in program.notes[0]


OVERLAPS = {
    "apart": (lambda b: (b[:8, :16], b[8:16, :16]), True),
    "side by side": (lambda b: (b[:8, :16], b[:8, 16:32]), True),
    "in other rows of the same columns": (lambda b: (b[8:16, 3:19], b[:8, 3:19]), True),
    "across": (lambda b: (b[1:9, 20:36], b[:8, 2:18]), True),
    "the same": (lambda b: (b[:8, :16], b[:8, :16]), False),
    "a row further": (lambda b: (b[:8, :16], b[1:9, :16]), False),
    "a row back, some columns further": (lambda b: (b[1:9, :16], b[:8, 15:31]), False),
    "a column back": (lambda b: (b[:8, 1:17], b[:8, :16]), False),
    "other strides": (lambda b: (b[:8, :16], b[::2, :16]), False),
}


@pytest.mark.parametrize("overlap", OVERLAPS)
def test_arguments_that_overlap(
    overlap: str, programs: dict[str, EmittedProgram], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values of the interpreter, which runs the kernel if there is an element in common, and only then."""
    place, is_apart = OVERLAPS[overlap]
    called = []
    run = _InterpretedKernel.__call__
    monkeypatch.setattr(_InterpretedKernel, "__call__", lambda self, args: (called.append(1), run(self, args)))
    case = "what is loaded is used behind a store to another tensor"
    base = np.arange(16 * 40, dtype=np.float32).reshape(16, 40) % 7
    x, o = place(base)
    loaded, u = x.copy(), np.zeros((8, 16), np.float32)
    programs[case].run([x, 2, o, u])
    np.testing.assert_array_equal(u, loaded * loaded.sum(0))
    np.testing.assert_array_equal(o, loaded + 1)
    assert called == ([] if is_apart else [1])
