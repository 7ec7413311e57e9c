"""Every shared program and example as emitted C++ on the task runtime: values, random orders, recorded edges."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
from tests.differential.test_programs import EXAMPLES, PROGRAMS, ProgramEntry, entries

import pypto.language as pl
from pypto import ir
from pypto.analysis.overwrites import narrowing_of
from pypto.ops.values import ArrayValue, Buffer
from pypto.runtime.emitted import EmittedProgram
from pypto.runtime.errors import ProgramError
from pypto.runtime.host_executor import RunOptions
from pypto.runtime.interpreter import Interpreter
from pypto.runtime.recording import run_record
from pypto.runtime.task_records import EdgeKind, RunRecord

OPTIONS = [
    RunOptions(workers=1),
    RunOptions(workers=2),
    *(RunOptions(workers=1, random=True, seed=seed) for seed in range(3)),
]


pytestmark = pytest.mark.usefixtures("cpp_compiler")


def copies(values: list[Any]) -> list[Any]:
    return [np.copy(v) if isinstance(v, np.ndarray) else v for v in values]


def emitted(entry: ProgramEntry) -> EmittedProgram:
    return EmittedProgram(ir.PassManager().run_passes(entry.program), entry.entry)


def interpreted(program: EmittedProgram, values: list[Any], by_parts: bool) -> RunRecord:
    """The record of the same program, run by the interpreter."""
    function = program.function
    order_reads = narrowing_of(program.program).leaves_overwrites(function)
    interpreter = Interpreter(program.program, record=True, by_parts=by_parts, order_reads=order_reads)
    boxed = [
        ArrayValue(v, Buffer(v, p.name_hint, external=True)) if isinstance(v, np.ndarray) else v
        for v, p in zip(values, function.params, strict=True)
    ]
    interpreter.run(function, boxed)
    return run_record(interpreter.graph)


def ordered(record: RunRecord) -> dict[tuple[int, int], str]:
    """Which task waits for which, without the orchestrator's own waits."""
    return {(e.producer, e.consumer): e.reason for e in record.edges if e.kind is not EdgeKind.SYNC}


@pytest.mark.parametrize("path", [*PROGRAMS, *EXAMPLES], ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_program(path: pathlib.Path) -> None:
    for entry in entries(path):
        program = emitted(entry)
        for options in OPTIONS:
            values = copies(entry.values())
            program.run(values, options)
            entry.check(values)
        for by_parts in (True, False):
            values = copies(entry.values())
            record = program.record(program.run(values, RunOptions(workers=2, record=True, by_parts=by_parts)))
            expected = interpreted(program, copies(entry.values()), by_parts)
            assert len(record.tasks) == len(expected.tasks)
            assert ordered(record).keys() == ordered(expected).keys()


@pl.program
class Reader:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[64, 16], pl.FP32],
        first: pl.Scalar[pl.INDEX],
        gain: pl.Scalar[pl.FP32],
        y: pl.Out[pl.Tensor[[64, 16], pl.FP32]],
    ) -> pl.Tensor[[64, 16], pl.FP32]:
        for band in pl.range(4):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="row"):
                t = pl.load(x, [first + band * 16, 0], [16, 16])
                y = pl.store(pl.mul(t, gain), [band * 16, 0], y)
        return y


def reader() -> EmittedProgram:
    return EmittedProgram(ir.PassManager().run_passes(Reader), "main")


def test_scalars() -> None:
    x, y = np.random.default_rng(0).random((64, 16), np.float32), np.zeros((64, 16), np.float32)
    reader().run([x, 0, 1.5, y], RunOptions(workers=2))
    np.testing.assert_array_equal(y, x * np.float32(1.5))


def test_an_error_names_the_users_line_and_the_next_run_works() -> None:
    program = reader()
    x, y = np.ones((64, 16), np.float32), np.zeros((64, 16), np.float32)
    with pytest.raises(ProgramError) as caught:
        program.run([x, 1, 1.0, y], RunOptions(workers=2))
    assert caught.value.source_line().startswith("t = pl.load(x, [first + band * 16, 0]")
    assert caught.value.function == "row" and caught.value.task == "row#3"
    program.run([x, 0, 2.0, y], RunOptions(workers=2))
    assert (y == 2).all()


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="'main' takes 4 arguments, got 1"):
        reader().run([np.zeros((64, 16), np.float32)])
    with pytest.raises(ValueError, match="there is no function 'other'"):
        EmittedProgram(Reader, "other")


PAIRS = """
import pypto.language as pl

@pl.inline
def pair(v):
    return v % 5, v % 7

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def put(
        self, at: pl.Scalar[pl.INDEX], value: pl.Scalar[pl.INDEX], o: pl.InOut[pl.Tensor[[4], pl.INT32]]
    ) -> pl.Tensor[[4], pl.INT32]:
        pl.tensor.write(o, [at], pl.cast(value, pl.INT32))
        return o

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, n: pl.Scalar[pl.INDEX], o: pl.InOut[pl.Tensor[[4], pl.INT32]]):
        for i, (p, q, r) in pl.range(3, init_values=(n, 0, 0)):
            a, b = pair(p)
            p2, q2, r2 = pl.yield_(p + 1, a, b)
        with pl.manual_scope():
            c, d = pair(p2 * 3)
        o = self.put(0, q2, o)
        o = self.put(1, r2, o)
        o = self.put(2, c, o)
        o = self.put(3, d, o)
        return o
"""


def test_elements_of_tuples_keep_their_values() -> None:
    """What they were computed from is another value behind the yield, and not there behind the scope."""
    program = EmittedProgram(ir.PassManager().run_passes(pl.parse(PAIRS, "pairs.py")), "main", native=True)
    o = np.zeros(4, np.int32)
    program.run([9, o])
    assert o.tolist() == [11 % 5, 11 % 7, 36 % 5, 36 % 7]
    assert program.notes == []
