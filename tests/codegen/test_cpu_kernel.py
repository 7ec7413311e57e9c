"""What is generated for kernels: loops, what is kept and what is computed again, memory, carries, order of accesses."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from tests.runtime.native_ops_kit import INDEX, Builder, D, constant, extents, matrix

import pypto.language as pl
from pypto import ir
from pypto.codegen.cpu.arrays import Unsupported
from pypto.codegen.cpu.kernel import KernelSource, kernel_source
from pypto.ir.enums import ForKind, FunctionType, ParamDirection
from pypto.ir.expr import IterArg, MakeTuple, Var, index_const
from pypto.ir.program import Function
from pypto.ir.stmt import ForStmt, SeqStmts, YieldStmt
from pypto.ops.registry import REGISTRY
from pypto.runtime import RunConfig
from pypto.runtime.emitted import EmittedProgram
from pypto.runtime.errors import ProgramError
from pypto.runtime.host_executor import RunOptions
from pypto.runtime.native_kernels import native_kernels


def source(b: Builder) -> KernelSource:
    return kernel_source(b.function(), b.name)


def column_loops(made: KernelSource) -> int:
    return len(re.findall(r"for \(int64_t c = 0", made.text))


def row_loops(made: KernelSource) -> int:
    return len(re.findall(r"for \(int64_t r0 = 0", made.text))


def scratch(b: Builder, like: Var) -> Var:
    kind: Any = like.type
    return b.op("tile.create", MakeTuple(kind.shape), dtype=kind.dtype)


def softmax(b: Builder, x: Var) -> Var:
    highest = b.op("tile.row_max", x, scratch(b, x))
    e = b.op("tile.exp", b.op("tile.row_expand_sub", x, highest))
    return b.op("tile.row_expand_div", e, b.op("tile.row_sum", e, scratch(b, x)))


# --- loops ------------------------------------------------------------------------------------------------------------


def test_a_tile_that_is_only_loaded_is_read_in_place() -> None:
    b = Builder("scale")
    x = b.load(b.param(matrix(8, 17)), [8, 17])
    b.store(b.op("tile.adds", b.op("tile.exp", x), constant(1, D.FP32)))
    made = source(b)
    assert made.scratch == 0 and column_loops(made) == row_loops(made) == 1


def test_packed_values_are_one_loop() -> None:
    """The first value stands in the arena for a reduction of columns; what follows runs over all of it at once."""
    b = Builder("flat")
    x = b.op("tile.exp", b.load(b.param(matrix(8, 17)), [8, 17]))
    b.store(b.op("tile.col_sum", x))
    y = b.op("tile.neg", x)
    b.store(b.op("tile.col_sum", y))
    made = source(b)
    assert "c < 136" in made.text


def test_softmax_is_three_loops_and_keeps_its_exponentials() -> None:
    b = Builder("softmax")
    b.store(softmax(b, b.load(b.param(matrix(64, 100)), [64, 100])))
    made = source(b)
    assert column_loops(made) == 3 and row_loops(made) == 1
    assert made.text.count("math::exp(") == 1
    assert made.scratch < 64 * 100 * 4 * 2 + 1024  # the scratch operands of the reductions, and one row


@pytest.mark.parametrize(
    "rows, columns, ahead, streamed",
    [(2048, 1024, True, False), (8192, 1024, True, True), (65536, 1023, False, False), (512, 512, False, False)],
)
def test_long_rows_of_large_tensors(rows: int, columns: int, ahead: bool, streamed: bool) -> None:
    """The next row is asked for in the loop over exponentials, and so is room for the results, unless they go around the
    caches."""
    b = Builder("softmax")
    x = b.load(b.param(matrix(rows, columns)), [8, columns])
    b.op("tile.store", softmax(b, x), extents([0, 0]), b.param(matrix(rows, columns), ParamDirection.Out))
    text = source(b).text
    before, found, behind = text.partition("pto::fetch<0>(next0 + b, e - b);")
    assert bool(found) is ahead
    assert not ahead or "exp" not in before
    assert ("pto::fetch<1>" in behind.partition("exp")[0]) is (ahead and not streamed)
    assert ("pto::stream(" in text) is ("pto::end_streams();" in text) is streamed


def test_results_that_are_read_are_not_streamed() -> None:
    b = Builder("change")
    x = b.param(matrix(8192, 1024), ParamDirection.InOut)
    b.op("tile.store", b.op("tile.exp", b.load(x, [8, 1024])), extents([0, 0]), x)
    assert "pto::stream(" not in source(b).text


def test_cheap_values_are_computed_again() -> None:
    """Layer normalisation: the difference from the mean is not kept, so that there is no buffer for it."""
    b = Builder("norm")
    x = b.load(b.param(matrix(64, 128)), [64, 128])
    count = constant(1 / 128, D.FP32)
    mean = b.op("tile.muls", b.op("tile.row_sum", x, scratch(b, x)), count)
    centred = b.op("tile.row_expand_sub", x, mean)
    variance = b.op("tile.muls", b.op("tile.row_sum", b.op("tile.mul", centred, centred), scratch(b, x)), count)
    b.store(b.op("tile.row_expand_mul", centred, b.op("tile.rsqrt", variance)))
    made = source(b)
    assert column_loops(made) == 3 and row_loops(made) == 1
    assert made.text.count("pto::store_element(") == 1


def test_reductions_of_one_operand_share_a_loop() -> None:
    b = Builder("both")
    x = b.load(b.param(matrix(8, 64)), [8, 64])
    b.store(b.op("tile.row_sum", x, scratch(b, x)))
    b.store(b.op("tile.row_max", x, scratch(b, x)))
    assert column_loops(source(b)) == 1


# --- memory -----------------------------------------------------------------------------------------------------------


def test_the_arena_is_used_again() -> None:
    """Twenty products one after the other need the memory of two."""
    b = Builder("products")
    x = b.load(b.param(matrix(32, 32)), [32, 32])
    for _ in range(20):
        x = b.op("tile.matmul", x, b.load(b.param(matrix(32, 32)), [32, 32]))
    b.store(x)
    assert source(b).scratch == 2 * 32 * 32 * 4


def test_a_sum_of_products_is_added_in_place() -> None:
    b = Builder("accumulate")
    x, y = (b.load(b.param(matrix(32, 32)), [32, 32]) for _ in range(2))
    total = b.op("tile.matmul", x, y)
    for _ in range(3):
        total = b.op("tile.matmul_acc", total, x, y)
    b.store(total)
    made = source(b)
    assert made.scratch == 32 * 32 * 4
    assert len(set(re.findall(r"pto::matmul\((\w+),", made.text))) == 1


# --- loops that carry -------------------------------------------------------------------------------------------------


def loop(b: Builder, carried: list[Var], body: Any) -> list[Var]:
    args = [IterArg(f"c{i}", v.type, v) for i, v in enumerate(carried)]
    i = Var("i", INDEX)
    with b.body() as stmts:
        b.stmts.append(YieldStmt(body(i, args)))
    results = [Var(f"l{n}", v.type) for n, v in enumerate(carried)]
    kind = ForKind.Sequential
    b.stmts.append(
        ForStmt(i, index_const(0), index_const(4), index_const(1), args, SeqStmts(stmts), results, kind=kind)
    )
    return results


def test_a_carry_is_updated_in_place() -> None:
    b = Builder("sum")
    x = b.param(matrix(32, 17))
    zero = b.op("tile.full", extents([8, 17]), constant(0, D.FP32), dtype=D.FP32)

    def body(i: Var, args: list[Any]) -> list[Var]:
        part = b.op("tile.load", x, MakeTuple([i * 8, index_const(0)]), extents([8, 17]))  # type: ignore[operator]
        return [b.op("tile.add", args[0], part)]

    b.store(loop(b, [zero], body)[0])
    made = source(b)
    assert made.scratch == 576  # the carry: 8 * 17 floats, rounded up to lines
    assert column_loops(made) == 3  # its first value, the addition, the store


def test_carries_that_change_places_go_through_a_copy() -> None:
    b = Builder("exchange")
    x, y = (b.op("tile.neg", b.load(b.param(matrix(8, 16)), [8, 16])) for _ in range(2))
    first, second = loop(b, [x, y], lambda i, args: [args[1], args[0]])
    b.store(first)
    b.store(second)
    assert source(b).scratch >= 3 * 8 * 16 * 4


def summed(how: str) -> Any:
    @pl.jit
    def summed(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor], d: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="block"):
            first = pl.matmul(a[:, 0:16], b[0:16, :], out_dtype=pl.FP32)
            acc = first
            other = pl.add(first, 1.0)
            if how == "two":
                other = first
            for k in pl.range(16, 64, 16):
                if how == "factor":
                    acc = pl.matmul_acc(acc, acc, b[k : k + 16, :])
                elif how == "old":
                    new = pl.matmul_acc(acc, a[:, k : k + 16], b[k : k + 16, :])
                    other = pl.add(other, acc)
                    acc = new
                elif how == "exchange":
                    new = pl.matmul_acc(acc, a[:, k : k + 16], b[k : k + 16, :])
                    acc = other
                    other = new
                else:
                    acc = pl.matmul_acc(acc, a[:, k : k + 16], b[k : k + 16, :])
                    if how == "two":
                        other = pl.matmul_acc(other, a[:, k : k + 16], b[0:16, :])
            c[:, :] = acc
            if how == "first":
                d[:, :] = first
            elif how != "plain":
                d[:, :] = other
        return c, d

    return summed


def summed_in_numpy(a: Any, b: Any, how: str) -> tuple[Any, Any]:
    first = a[:, :16] @ b[:16]
    acc, other = first, first if how == "two" else first + 1
    for k in range(16, 64, 16):
        step = acc + (acc if how == "factor" else a[:, k : k + 16]) @ b[k : k + 16]
        if how == "old":
            other = other + acc
        if how == "two":
            other = other + a[:, k : k + 16] @ b[:16]
        acc, other = (other, step) if how == "exchange" else (step, other)
    return acc, {"plain": np.zeros_like(acc), "first": first}.get(how, other)


@pytest.mark.parametrize("how", ["plain", "first", "two", "old", "exchange", "factor"])
def test_a_product_is_added_to_the_carry_unless_somebody_needs_what_it_was(how: str, cpp_compiler: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, shape).astype(np.float32) for shape in ((16, 64), (64, 16)))
    c, d = (np.zeros((16, 16), np.float32) for _ in range(2))
    summed(how)(a, b, c, d, config=RunConfig(executor="native"))
    want = summed_in_numpy(a, b, how)
    np.testing.assert_array_equal(c, want[0])
    np.testing.assert_array_equal(d, want[1])


def test_a_product_that_is_carried_is_never_copied() -> None:
    a, b, c, d = (np.zeros(shape, np.float32) for shape in ((16, 64), (64, 16), (16, 16), (16, 16)))
    program = summed("plain").lower(a, b, c, d)
    (kernel,) = [f for f in program.functions.values() if f.func_type is not FunctionType.Orchestration]
    made = kernel_source(kernel, "block")
    assert len(set(re.findall(r"pto::matmul\((\w+),", made.text))) == 1
    assert column_loops(made) == 1  # the store


# --- order of accesses ------------------------------------------------------------------------------------------------


def in_place(offset: int, *, late: bool = False) -> KernelSource:
    """x[offset:] = exp(x), and what was loaded is used again behind that."""
    b = Builder("change")
    x = b.param(matrix(10, 17), ParamDirection.InOut)
    t = b.load(x, [8, 17])
    b.op("tile.store", b.op("tile.exp", t), extents([offset, 0]), x)
    if late:
        b.store(b.op("tile.neg", t))
    return source(b)


def test_elements_may_be_replaced_one_by_one() -> None:
    made = in_place(0)
    assert made.scratch == 0 and column_loops(made) == 1


def test_a_store_that_overlaps_what_is_read_waits() -> None:
    made = in_place(1)
    assert made.scratch >= 8 * 17 * 4 and column_loops(made) == 2


def test_a_tile_does_not_change_with_its_tensor() -> None:
    made = in_place(0, late=True)
    assert made.scratch >= 8 * 17 * 4
    first_loop = made.text.split("#pragma omp simd")[1]
    assert "exp" not in first_loop  # a copy, before anything is written


def test_a_tile_that_is_changed_is_the_kernels_own() -> None:
    b = Builder("own")
    t = b.load(b.param(matrix(8, 17)), [8, 17])
    b.store(b.op("tile.write", t, extents([0, 0]), constant(1, D.FP32)))
    assert source(b).scratch >= 8 * 17 * 4


# --- what has no native form ------------------------------------------------------------------------------------------


def test_opaque_kernels_are_refused() -> None:
    b = Builder("opaque")
    b.store(b.load(b.param(matrix(8, 17)), [8, 17]))
    function = b.function().replace(attrs={"external_source": "somewhere.cpp"})
    with pytest.raises(Unsupported, match="a kernel with external_source"):
        kernel_source(function, "opaque")
    made = native_kernels([function])
    assert made.sources == [None] and made.text == ""
    assert made.notes == ["kernel 'opaque' runs in the interpreter: a kernel with external_source has no native form"]


def test_an_exchange_between_cores_is_refused() -> None:
    b = Builder("pipe")
    t = b.load(b.param(matrix(16, 16)), [16, 16])
    b.op("tile.tpush_to_aic", t, split=0)
    with pytest.raises(Unsupported, match="tpush_to_aic"):
        source(b)


def test_one_operation_without_native_form_runs_in_numpy() -> None:
    b = Builder("sorts")
    x, index = b.load(b.param(matrix(2, 32)), [2, 32]), b.load(b.param(matrix(2, 32, D.UINT32)), [2, 32])
    b.store(b.op("tile.exp", b.op("tile.sort32", x, index)))
    made = native_kernels([b.function()])
    (kernel,) = made.sources
    assert kernel is not None and [h.call.op.name for h in kernel.hosted] == ["tile.sort32"]
    assert made.notes == [
        "operation tile.sort32 (it has no native form) of kernel 'sorts' runs in NumPy, which is slow when the kernel "
        "is short"
    ]


@pl.program
class Triangles:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]) -> pl.Tensor[[16, 32], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="triangle"):
            t = pl.tile.tri(0, [16, 32], dtype=pl.FP32)
            y = pl.store(pl.mul(t, 2.0), [0, 0], y)
        return y


def test_an_error_in_numpy_names_the_users_line(monkeypatch: pytest.MonkeyPatch, cpp_compiler: Any) -> None:
    program = EmittedProgram(ir.PassManager().run_passes(Triangles), "main", native=True)
    assert program.notes and "tile.tri" in program.notes[0]
    y = np.zeros((16, 32), np.float32)
    program.run([y], RunOptions(workers=2))
    np.testing.assert_array_equal(y, 2 * np.tri(16, 32, dtype=np.float32))

    def wrong(*_: Any, **__: Any) -> Any:
        raise ValueError("no triangles today")

    monkeypatch.setattr(REGISTRY["tile.tri"], "reference", wrong)
    with pytest.raises(ProgramError, match="tile.tri: no triangles today") as caught:
        program.run([y], RunOptions(workers=2))
    assert caught.value.source_line().startswith("t = pl.tile.tri(0")


def test_functions_of_other_kinds() -> None:
    """A kernel without parameters and statements is one, too."""
    made = kernel_source(Function("nothing", [], [], SeqStmts([]), type=FunctionType.AIV), "nothing")
    assert made.scratch == 0 and made.places == []
