"""A few hundred generated programs keep their meaning through every pass, and the generator makes what it should.

``python -m tests.differential --programs 5000`` runs more.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from pypto.ir.mutator import IRMutator
from pypto.ops.registry import call
from pypto.passes.base import FunctionPass

from .backend import STREAM, uniform_backend
from .explore import emitted, explore, shrink
from .generate import Generated, programs
from .harness import SOURCE, Checker
from .ops import catalogue
from .reduce import reduce

CHUNK = 25
QUICK = ("-O1", "-ftree-vectorize")  # half the time of what users get; long runs use that


@pytest.mark.parametrize("chunk", range(12))
def test_generated_programs_keep_their_meaning(chunk: int) -> None:
    checker = Checker(round_trip=chunk == 0)
    found = explore(checker, 1000 + chunk, CHUNK)
    assert checker.counts.programs == CHUNK
    if found:
        pytest.fail(shrink(checker, found[0], CHUNK, seconds=20).report(), pytrace=False)


@pytest.mark.usefixtures("cpp_compiler")
def test_generated_programs_as_emitted_code() -> None:
    """With kernels in the interpreter, and with native ones; nearly all have a native form."""
    report = emitted(77, 60, native=True, kernel_flags=QUICK)
    assert not report.faults, "\n".join(f"{f.text}\n{f.code}\n{f}" for f in report.faults[:2])
    assert report.emitted >= 40, report.refused
    assert report.kernels >= 50 and report.native_runs >= 200, report.native_share()
    assert report.native - report.hosted >= 0.95 * report.kernels, report.native_share()
    assert 0 < report.rounded < 0.3 * report.native_runs, report.native_share()


# What the issue lists, and in how many of 100 programs it must be.
FEATURES = {
    "kernel scope": 20,
    "kernel call": 15,
    "submit": 15,
    "submit with deps": 4,
    "scope with deps": 4,
    "scope as a task": 8,
    "seed of a task id": 5,
    "array of task ids": 1,
    "spmd scope": 5,
    "spmd launch": 3,
    "pl.range": 40,
    "pl.parallel": 12,
    "pl.unroll": 12,
    "pl.pipeline": 4,
    "descending loop": 15,
    "loop with step": 15,
    "zero-trip loop": 8,
    "one-trip loop": 8,
    "while": 20,
    "call in a while condition": 4,
    "carried loop": 20,
    "carried loop without yield": 5,
    "carried while": 10,
    "carries swapped": 3,
    "carried loop with an escape": 1,
    "swap in a loop": 2,
    "scalar rebound in a loop": 12,
    "tensor rebound in a loop": 2,
    "tensor or tile carried": 10,
    "loops nested 4 deep": 2,
    "if with else": 20,
    "if without else": 20,
    "if with yields": 15,
    "if in a loop": 15,
    "elif": 3,
    "break on the host": 2,
    "continue on the host": 2,
    "break in a kernel": 2,
    "continue in a kernel": 2,
    "nested escape": 3,
    "inline method": 5,
    "inline method with several results": 2,
    "inline method that assigns a parameter": 8,
    "inline method that launches": 5,
    "inline function": 5,
    "tensor created in a loop": 5,
    "tensor computed by a scope": 5,
    "scalar computed by a scope": 2,
    "runtime scope AUTO": 1,
    "runtime scope MANUAL": 8,
    "cluster": 1,
    "hierarchy scope": 4,
    "hierarchy scopes nested": 2,
    "hierarchy scope HOST": 1,
    "hierarchy scope CHIP": 2,
    "hierarchy scope CHIP_DIE": 1,
    "kernel scope in a hierarchy scope": 1,
    "store in a hierarchy scope": 2,
    "name reused": 12,
    "INDEX scalar": 40,
    "INT32 scalar": 8,
    "FP32 scalar": 20,
    "BOOL scalar": 15,
    "tensor.read in a condition": 20,
    "nested call": 40,
    "nested launch": 2,
    "ragged tile": 15,
    "valid extent known at run time": 12,
    "ragged tiles carried": 4,
    "ragged tile of a branch": 4,
    "tile changed in place": 4,
    "selection by a mask": 1,
}


def test_programs_contain_what_they_should() -> None:
    seen: Counter[str] = Counter()
    count = 300

    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        **uniform_backend(),
    )
    @given(programs())
    def collect(program: Generated) -> None:
        seen.update(program.features.keys())

    STREAM.seed(5)
    collect()
    rare = {name: 100 * seen[name] / count for name, least in FEATURES.items() if 100 * seen[name] / count < least}
    assert not rare
    assert sum(name.startswith("op ") for name in seen) >= 90


def test_the_operations_are_those_of_the_definitions() -> None:
    names = {entry.name for entries in catalogue().values() for entry in entries}
    assert {"tensor.add", "tile.add", "tile.row_max", "tensor.row_expand_mul", "tile.maximums", "tile.rems"} <= names
    assert len(names) >= 100


SOURCE_TEXT = """
import pypto.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[8, 16], pl.FP32], o: pl.Out[pl.Tensor[[8, 16], pl.FP32]]) -> pl.Tensor[[8, 16], pl.FP32]:
        return pl.store(pl.sub(pl.load(x, [0, 0], [8, 16]), 2.0), [0, 0], o)
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[8, 16], pl.FP32], out: pl.InOut[pl.Tensor[[8, 16], pl.FP32]]):
        out = self.k(x, out)
        return out
"""


class _SwapOps(IRMutator):
    def visit_call(self, op: Any) -> Any:
        found = super().visit_call(op)
        return call("tile.adds", *found.args) if found.op.name == "tile.subs" else found


class _Adds(FunctionPass):
    """A wrong pass: subtraction of a number becomes addition."""

    name = "Adds"

    def run_on(self, function: Any, program: Any) -> Any:
        return _SwapOps().visit_function(function)


class _Nothing(FunctionPass):
    """A pass that gives equal functions that are not the same."""

    name = "Nothing"

    def run_on(self, function: Any, program: Any) -> Any:
        return function.replace(body=function.body)


def test_a_wrong_pass_is_named() -> None:
    assert Checker([]).check_text(SOURCE_TEXT) is None
    fault = Checker([_Adds()]).check_text(SOURCE_TEXT)
    assert fault is not None and (fault.where, fault.kind) == ("Adds", "mismatch")
    assert "'out'" in fault.message
    fault = Checker([_Nothing()]).check_text(SOURCE_TEXT)
    assert fault is not None and (fault.where, fault.kind) == ("Nothing", "unstable")


def test_a_program_without_meaning_is_reported_as_the_source() -> None:
    fault = Checker([]).check_text(SOURCE_TEXT.replace("return out", "return late"))
    assert fault is not None and (fault.where, fault.kind) == (SOURCE, "parse")
    fault = Checker([]).check_text(
        SOURCE_TEXT.replace("self.k(x, out)", "self.k(x, pl.create_tensor([8, 16], dtype=pl.FP32))")
    )
    assert fault is None
    text = SOURCE_TEXT.replace("self.k(x, out)", "self.k(pl.create_tensor([8, 16], dtype=pl.FP32), out)")
    fault = Checker([]).check_text(text)
    assert fault is not None and (fault.where, fault.kind) == (SOURCE, "run")


def test_a_failing_program_shrinks() -> None:
    """By Hypothesis, however little time there is, and by taking parts out of the text, to the least that fails."""
    checker = Checker([_Adds()], orders=0)
    found = [f for start in range(12) for f in explore(checker, start, 20) if f.fault.kind == "mismatch"]
    assert found, "tile.subs is in none of the programs"
    small = shrink(checker, found[0], 20, seconds=2)
    assert small.fault.key == found[0].fault.key
    assert len(small.text) <= len(found[0].text)
    more = """
        if pl.tensor.read(x, [0, 0]) > 0.0:
            a = 5
        for i in pl.range(3):
            out = self.k(x, out)
        return out
"""
    text = SOURCE_TEXT.replace("        return out\n", more)
    fault = checker.check_text(text)
    assert fault is not None
    least, again = reduce(checker, text, fault, 120.0)
    assert again.key == fault.key
    assert "if " not in least and "for " not in least and least.count("self.k(") == 1
