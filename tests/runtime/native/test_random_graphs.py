"""Random programs in many ways of running them: the result of a serial execution each time, and the edges of the rules."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_graph import MAX_TENSORS, Edges, RandomProgram, members

from pypto.runtime.build import build, load
from pypto.runtime.host_executor import HostProgram, Kernel, RunOptions, RunResult
from pypto.runtime.native_library import REASONS, SOURCES

SEEDS = range(100)
SYNC = REASONS.index("sync")


@cache
def interpreter() -> HostProgram:
    source = Path(__file__).with_name("random_graph.cpp")
    library = load(build([source], include_dirs=[SOURCES], flags=["-Wextra", "-Werror"], name="random_graph"))
    library.kernel_of.restype = ctypes.c_void_p
    kernels = [Kernel(f"role {i % 3}", library.kernel_of(i)) for i in range(3 * (MAX_TENSORS + 1))]
    return HostProgram(library, kernels, entry="interpret", config=None)


@cache
def program_of(seed: int) -> RandomProgram:
    return RandomProgram(seed)


def run(program: RandomProgram, options: RunOptions) -> RunResult:
    words = np.array(program.words, np.int64)
    found = program.scratch()
    arguments = [values.copy() for values in program.arguments]
    result = interpreter().run([words, found, *arguments], [program.handles, len(program.found)], options)
    assert result.counters.tasks == len(program.edges)
    for i, (got, expected) in enumerate(zip(arguments, program.results, strict=True)):
        np.testing.assert_array_equal(got, expected, f"argument {i}, {options}")
    np.testing.assert_array_equal(found[: len(program.found)], np.array(program.found, np.uint64))
    return result


def ways(program: RandomProgram, seed: int) -> list[RunOptions]:
    small = RunOptions(window=4, heap=program.heap)
    return [
        RunOptions(workers=1),
        RunOptions(workers=2, window=16, heap=program.heap),
        RunOptions(workers=4, window=4, heap=program.heap),
        RunOptions(workers=4, fill=True),
        RunOptions(workers=2, window=4, timeout=60),
        RunOptions(workers=1, window=small.window, heap=small.heap),
        *[RunOptions(random=True, seed=10 * seed + i) for i in range(3)],
        RunOptions(random=True, seed=seed, window=16, heap=program.heap),
    ]


@pytest.mark.parametrize("decade", range(10))
def test_any_way_of_running_gives_the_serial_result(decade):
    for seed in SEEDS[10 * decade : 10 * decade + 10]:
        program = program_of(seed)
        for options in ways(program, seed):
            run(program, options)


@pytest.mark.parametrize("decade", range(10))
def test_recorded_edges_are_those_of_the_rules(decade):
    for seed in SEEDS[10 * decade : 10 * decade + 10]:
        program = program_of(seed)
        for options in (
            RunOptions(workers=1, record=True),
            RunOptions(workers=3, window=4, heap=program.heap, record=True),
        ):
            tasks, edges, *_ = run(program, options).records
            assert [bool(task.skipped) for task in tasks] == program.skipped
            check_edges(seed, edges, program)


def check_edges(seed: int, edges: Any, program: RandomProgram) -> None:
    found: dict[tuple[bool, int], int] = {}
    for edge in edges:
        consumer = (True, 2**64 - 2 - edge.consumer) if edge.reason == SYNC else (False, edge.consumer)
        before = found.get(consumer, 0)
        assert not before >> edge.producer & 1, f"seed {seed}: {consumer} waits for {edge.producer} twice"
        found[consumer] = before | 1 << edge.producer
    expected = {(False, i): each for i, each in enumerate(program.edges)}
    expected |= {(True, i): each for i, each in enumerate(program.syncs)}
    for consumer, edge_set in expected.items():
        check_producers(
            f"seed {seed}, {'access' if consumer[0] else 'task'} {consumer[1]}", found.pop(consumer, 0), edge_set
        )
    assert not found


def check_producers(who: str, found: int, expected: Edges) -> None:
    missing, extra = expected.required & ~found, found & ~expected.allowed
    assert not missing, f"{who} does not wait for {list(members(missing))}"
    assert not extra, f"{who} waits for {list(members(extra))}, which no rule explains"


def test_the_programs_have_what_is_to_be_tested():
    programs = [program_of(seed) for seed in SEEDS]
    tasks = sum(len(program.edges) for program in programs)
    required = sum(edges.required.bit_count() for program in programs for edges in program.edges)
    skipped = sum(sum(program.skipped) for program in programs)
    assert tasks > 3000 and required > 2 * tasks and skipped > 100
    assert sum(len(program.found) for program in programs) > 100
