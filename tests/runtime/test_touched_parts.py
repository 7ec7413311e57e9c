"""Launches are ordered by the parts of their arguments that they touch: parallelism that nobody asked for."""

import random
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from run_support import F32, ramp

sys.path.insert(0, str(Path(__file__).parent.parent / "programs"))

from spec_kit import parse

import pypto.language as pl
from pypto import ir
from pypto.analysis.access import Footprints
from pypto.analysis.callees import Callees
from pypto.analysis.overwrites import narrowing_of
from pypto.ops.values import ArrayValue, Buffer
from pypto.passes.convert_to_ssa import convert_to_ssa
from pypto.passes.derive_call_directions import derive_call_directions
from pypto.runtime.compilers import CompilerNotFound, find_compiler
from pypto.runtime.emitted import EmittedCode, EmittedProgram
from pypto.runtime.errors import ProgramError
from pypto.runtime.execute import Executable
from pypto.runtime.host_executor import RunOptions
from pypto.runtime.interpreter import Interpreter
from pypto.runtime.races import find_races
from pypto.runtime.recording import run_record
from pypto.runtime.run_config import RunConfig
from pypto.runtime.signature import entry_function, param_infos
from pypto.runtime.task_records import EdgeKind, RunRecord
from pypto.runtime.touched_parts import part_words


@pl.jit
def bands_inferred(x: pl.Tensor[[256, 64], pl.FP32], out: pl.Out[pl.Tensor[[256, 64], pl.FP32]]):
    for k in pl.range(4):
        with pl.at(level=pl.Level.CORE_GROUP):
            band = pl.load(x, [k * 64, 0], [64, 64])
            pl.store(pl.mul(band, 2.0), [k * 64, 0], out)
    return out


@pl.jit
def bands_scratch(x: pl.Tensor[[256, 64], pl.FP32], out: pl.Out[pl.Tensor[[256, 64], pl.FP32]]):
    stage = pl.create_tensor([256, 64], pl.FP32, manual_dep=True)
    makers = pl.array.create(4, pl.TASK_ID)
    for k in pl.range(4):
        with pl.at(level=pl.Level.CORE_GROUP) as made:
            band = pl.load(x, [k * 64, 0], [64, 64])
            pl.store(pl.mul(band, 2.0), [k * 64, 0], stage)
        makers[k] = made
    with pl.at(level=pl.Level.CORE_GROUP, deps=[makers]):
        for k in pl.range(4):
            done = pl.load(stage, [k * 64, 0], [64, 64])
            pl.store(done, [k * 64, 0], out)
    return out


@pl.jit
def bands_argument(x: pl.Tensor[[256, 64], pl.FP32], out: pl.Out[pl.Tensor[[256, 64], pl.FP32]]):
    for k in pl.range(4):
        with pl.at(level=pl.Level.CORE_GROUP, no_dep_args=[out]):
            band = pl.load(x, [k * 64, 0], [64, 64])
            pl.store(pl.mul(band, 2.0), [k * 64, 0], out)
    return out


@pl.jit
def bands_region(x: pl.Tensor[[256, 64], pl.FP32], out: pl.Out[pl.Tensor[[256, 64], pl.FP32]]):
    with pl.manual_scope():
        for k in pl.range(4):
            with pl.at(level=pl.Level.CORE_GROUP):
                band = pl.load(x, [k * 64, 0], [64, 64])
                pl.store(pl.mul(band, 2.0), [k * 64, 0], out)
    return out


BANDS = {f.__name__: f for f in (bands_inferred, bands_scratch, bands_argument, bands_region)}


def edges_of(
    program: ir.Program, values: list, by_parts: bool = True, order_reads: bool = False
) -> dict[int, list[int]]:
    """Which tasks each task waits for."""
    interpreter = Interpreter(program, record=True, by_parts=by_parts, order_reads=order_reads)
    boxed = [ArrayValue(v, Buffer(v, external=True)) if isinstance(v, np.ndarray) else v for v in values]
    interpreter.run(entry_function(program), boxed)
    return {t.number: sorted(e.producer.number for e in t.edges.values()) for t in interpreter.graph.tasks}


def results(program: ir.Program, make: object, seeds: int = 8) -> list:
    """The arrays after a run: the same in every legal order, and no two tasks race."""
    function = entry_function(program)
    executable = Executable(program, function, param_infos(function), "the program")
    want = None
    for config in [RunConfig(check_races=True), *(RunConfig(schedule="random", seed=s) for s in range(seeds))]:
        values = make()
        executable.run(values, {}, config)
        if want is None:
            want = values
        for got, expected in zip(values, want, strict=True):
            np.testing.assert_array_equal(got, expected)
    return want


@pytest.mark.parametrize("name", BANDS)
def test_bands_are_right_in_every_order(name):
    def make():
        return [ramp(256, 64), np.zeros((256, 64), F32)]

    program = BANDS[name].lower(*make())
    np.testing.assert_array_equal(results(program, make)[1], 2 * ramp(256, 64))


def test_nothing_said_is_as_parallel_as_all_said():
    values = [ramp(256, 64), np.zeros((256, 64), F32)]
    program = bands_inferred.lower(*values)
    alone = {0: [], 1: [], 2: [], 3: []}
    assert edges_of(program, values) == alone
    for other in (bands_argument, bands_region):
        assert edges_of(other.lower(*values), values) == alone
    # The arguments alone order them one behind the other; and that is what the directions still say.
    assert edges_of(program, values, by_parts=False) == {0: [], 1: [0], 2: [1], 3: [2]}
    assert "pl.adir.inout" in ir.python_print(program, format=False)


KERNELS = """
@InCore
def part(self, x: f32[64, 16], at: idx, o: pl.Out[f32[64, 16]]) -> f32[64, 16]:
    o = pl.store(pl.add(pl.load(x, [at, 0], [16, 16]), 1.0), [at, 0], o)
    return o
@InCore
def bump(self, at: idx, o: pl.InOut[f32[64, 16]]) -> f32[64, 16]:
    o = pl.store(pl.add(pl.load(o, [at, 0], [16, 16]), 1.0), [at, 0], o)
    return o
@InCore
def half(self, at: idx, o: pl.InOut[f32[64, 16]]) -> f32[64, 16]:
    o = pl.store(pl.add(pl.load(o, [0, at], [64, 8]), 1.0), [0, at], o)
    return o
@InCore
def mark(self, x: f32[64, 16], at: idx, o: pl.InOut[f32[64, 16]]) -> f32[64, 16]:
    o = pl.store(pl.load(x, [0, 0], [16, 16]), [at, 0], o)
    return o
@InCore
def both(self, at: idx, x: pl.InOut[f32[64, 16]], o: pl.InOut[f32[64, 16]]) -> tuple[f32[64, 16], f32[64, 16]]:
    x = pl.store(pl.add(pl.load(x, [0, 0], [16, 16]), 1.0), [0, 0], x)
    o = pl.store(pl.load(o, [at, 0], [16, 16]), [at, 0], o)
    return x, o
@InCore
def whole(self, x: f32[64, 16], o: pl.Out[f32[64, 16]]) -> f32[64, 16]:
    o = pl.store(pl.add(pl.load(x, [0, 0], [64, 16]), 1.0), [0, 0], o)
    return o
@InCore
def blocks(self, x: f32[64, 16], at: idx, o: pl.Out[f32[64, 16]]) -> f32[64, 16]:
    b = pl.tile.get_block_idx()
    o = pl.store(pl.add(pl.load(x, [at + b * 16, 0], [16, 16]), 1.0), [at + b * 16, 0], o)
    return o
@InCore
def narrow(self, o: pl.InOut[f32[16, 16]]) -> f32[16, 16]:
    o = pl.store(pl.add(pl.load(o, [0, 0], [16, 16]), 1.0), [0, 0], o)
    return o
"""


def orchestration(body: str) -> ir.Program:
    text = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    program = parse(
        f"{KERNELS}@Orchestration\n"
        "def main(self, n: idx, x: pl.InOut[f32[64, 16]], y: pl.InOut[f32[64, 16]]) -> tuple[f32[64, 16], f32[64, 16]]:\n"
        f"{text}\n    return x, y\n"
    )
    return derive_call_directions()(convert_to_ssa()(program))


def make(n: int = 4):
    return [n, ramp(64, 16), np.zeros((64, 16), F32)]


def counted(steps):
    """Zeros with 1 added to 16 rows from each of these on."""
    y = np.zeros((64, 16), F32)
    for at in steps:
        y[at : at + 16] += 1
    return y


ALONE = {0: [], 1: [], 2: [], 3: []}
CHAIN = {0: [], 1: [0], 2: [1], 3: [2]}
LOOPS = {
    "disjoint tiles": ("for i in pl.range(n):\n    y = self.bump(i * 16, y)", ALONE, [0, 16, 32, 48]),
    "reached by carries": (
        "for i, (c,) in pl.range(n, init_values=(y,)):\n    d = self.bump(i * 16, c)\n    y = pl.yield_(d)",
        ALONE,
        [0, 16, 32, 48],
    ),
    "nested loops": (
        "for i in pl.range(2):\n    for j in pl.range(2):\n        y = self.bump(i * 32 + j * 16, y)",
        ALONE,
        [0, 16, 32, 48],
    ),
    "a stride below the tile": ("for i in pl.range(n):\n    y = self.bump(i * 8, y)", CHAIN, [0, 8, 16, 24]),
    "halved index": (
        "for i in pl.range(n):\n    y = self.bump(i // 2 * 16, y)",
        {0: [], 1: [0], 2: [], 3: [2]},
        [0, 0, 16, 16],
    ),
    "an offset that is read": (
        "for i in pl.range(n):\n    f: pl.Scalar[pl.FP32] = pl.tensor.read(x, [0, i])\n"
        "    k = pl.cast(f, pl.INDEX)\n    y = self.bump(k * 8, y)",
        CHAIN,
        [0, 8, 16, 24],
    ),
    "the same place": ("for i in pl.range(n):\n    y = self.bump(16, y)", CHAIN, [16] * 4),
    "slices": (
        "for i in pl.range(n):\n    s = pl.slice(y, [16, 16], [i * 16, 0])\n    s = self.narrow(s)",
        ALONE,
        [0, 16, 32, 48],
    ),
}


@pytest.mark.parametrize("case", LOOPS)
def test_iterations(case):
    body, want, steps = LOOPS[case]
    program = orchestration(body)
    assert edges_of(program, make()) == want
    np.testing.assert_array_equal(results(program, make)[2], counted(steps))


def test_a_reader_waits_for_those_that_write_what_it_reads():
    program = orchestration(
        """
        for i in pl.range(4):
            x = self.bump(i * 16, x)
        for i in pl.range(3):
            y = self.part(x, i * 16 + 8, y)
        """
    )
    assert edges_of(program, make()) == {**ALONE, 4: [0, 1], 5: [1, 2], 6: [2, 3]}
    want = np.zeros((64, 16), F32)
    want[8:56] = ramp(64, 16)[8:56] + 2
    np.testing.assert_array_equal(results(program, make)[2], want)


def test_columns_are_parts_too():
    program = orchestration("for i in pl.range(2):\n    y = self.half(i * 8, y)\ny = self.bump(16, y)")
    assert edges_of(program, make()) == {0: [], 1: [], 2: [0, 1]}
    want = np.ones((64, 16), F32)
    want[16:32] += 1
    np.testing.assert_array_equal(results(program, make)[2], want)


def test_all_blocks_of_a_launch_count():
    program = orchestration(
        """
        y, t = pl.spmd_submit(self.blocks, x, 0, y, core_num=2)
        y, u = pl.spmd_submit(self.blocks, x, 32, y, core_num=2)
        x = self.whole(y, x)
        """
    )
    # The third overwrites what the first two read, but it reads what they write.
    assert edges_of(program, make()) == {0: [], 1: [], 2: [0, 1]}
    got = results(program, make)
    np.testing.assert_array_equal(got[2], ramp(64, 16) + 1)
    np.testing.assert_array_equal(got[1], ramp(64, 16) + 2)


def test_an_order_that_another_argument_gives_by_chance_stays():
    """``mark`` reads what ``both`` overwrites. Only that both have ``y`` as an argument orders them."""
    program = orchestration("y = self.mark(x, 0, y)\nx, y = self.both(32, x, y)")
    assert edges_of(program, make()) == {0: [], 1: [0]}
    want = np.zeros((64, 16), F32)
    want[:16] = ramp(64, 16)[:16]
    got = results(program, make)
    np.testing.assert_array_equal(got[2], want)
    # Where it reads something else, they are independent.
    program = orchestration("y = self.part(x, 16, y)\nx, y = self.both(32, x, y)")
    assert edges_of(program, make()) == {0: [], 1: []}
    results(program, make)


def test_a_false_index_is_told_as_before():
    """What leaves the tensor is refused by the kernel, not by the look at its parts."""
    program = orchestration("for i in pl.range(n):\n    y = self.bump(i * 16, y)")
    function = entry_function(program)
    executable = Executable(program, function, param_infos(function), "the program")
    for config in (RunConfig(), RunConfig(schedule="random", seed=0), RunConfig(check_races=True)):
        with pytest.raises(ProgramError, match="out of range in dimension 0"):
            executable.run(make(5), {}, config)


SCRATCH = ["t = pl.create_tensor([64, 16], dtype=pl.FP32)", "t = self.whole(x, t)"]


def random_body(rng: random.Random, depth: int = 0, no_dep: bool = True) -> list[str]:
    """Launches of all kinds on two tensors and a scratch, at places that may or may not overlap. Without ``no_dep`` it
    leaves no order open itself: no such arguments, no manual scopes, no parallel loops."""
    lines: list[str] = []
    index = rng.choice(["i0", "i1"][:depth]) if depth else "n"
    for _ in range(rng.randint(2, 4)):
        at = rng.choice(["0", "16", "40", f"{index} * 16", f"{index} * 8", f"{index} * 16 + 16", f"{index} // 2 * 16"])
        one, other = rng.sample(["x", "y", "t"], 2)
        target = f"pl.no_dep({other})" if no_dep and rng.random() < 0.1 else other
        kind = rng.choice(["part", "part", "bump", "mark", "both", "whole", "loop", "branch", "manual"])
        if kind == "part":
            lines.append(f"{other} = self.part({one}, {at}, {target})")
        elif kind == "bump":
            lines.append(f"{other} = self.bump({at}, {target})")
        elif kind == "mark":
            lines.append(f"{other} = self.mark({one}, {at}, {target})")
        elif kind == "both":
            lines.append(f"{one}, {other} = self.both({at}, {one}, {target})")
        elif kind == "whole":
            lines.append(f"{other} = self.whole({one}, {target})")
        elif kind == "loop" and depth < 2:
            start, stop, step = rng.choice([(0, 3, 1), (1, 3, 1), (0, 4, 2), (2, -1, -1)])
            loop = rng.choice(["range", "range", "parallel"]) if no_dep else "range"
            lines.append(f"for i{depth} in pl.{loop}({start}, {stop}, {step}):")
            lines += [f"    {line}" for line in random_body(rng, depth + 1, no_dep)]
        elif kind == "branch" and depth < 2:
            lines.append(f"if {index} > {rng.randint(0, 2)}:")
            lines += [f"    {line}" for line in random_body(rng, depth, no_dep)]
        elif kind == "manual" and depth == 0 and no_dep:
            lines.append("with pl.manual_scope():")
            lines += [f"    {other}, d = pl.submit(self.bump, {at}, {other})"]
            lines += [f"    {one}, e = pl.submit(self.part, {other}, {at}, {one}, deps=[d])"]
    return lines or ["y = self.bump(0, y)"]


@pytest.mark.parametrize("seed", range(100))
def test_no_race_comes_from_narrowing(seed):
    """Races of a program that is ordered by parts are races under the plain rules, too."""
    rng = random.Random(seed)
    lines = [*SCRATCH, *random_body(rng)]
    program = orchestration("\n".join(lines))
    found = []
    for by_parts in (True, False):
        interpreter = Interpreter(program, accesses=True, by_parts=by_parts)
        values = [2, *make()[1:]]
        boxed = [ArrayValue(v, Buffer(v, external=True)) if isinstance(v, np.ndarray) else v for v in values]
        interpreter.run(entry_function(program), boxed)
        record = run_record(interpreter.graph)
        found.append({(r.first, r.second, r.buffer) for r in find_races(record)})
    by_parts_races, plain_races = found
    assert by_parts_races <= plain_races
    if narrowing_of(program).allows(program.get_function("main")):
        assert not by_parts_races


# --- the task runtime -------------------------------------------------------------------------------------------------


def skip_without_compiler():
    try:
        find_compiler()
    except CompilerNotFound as error:
        pytest.skip(f"the task runtime is C++, and there is no compiler: {error}")


def without_barriers(record: RunRecord) -> dict[int, list[int]]:
    """Which tasks each task waits for, by their numbers among the tasks that run kernels. (Barriers that stand for many
    edges are tasks of the emitted code only.)"""
    producers: dict[int, set[int]] = {task.number: set() for task in record.tasks}
    for edge in record.edges:
        if edge.kind is not EdgeKind.SYNC:
            producers[edge.consumer].add(edge.producer)
    number: dict[int, int] = {}
    found = {}
    for task in record.tasks:
        for barrier in [p for p in producers[task.number] if p not in number]:
            producers[task.number] |= producers[barrier]
            producers[task.number].discard(barrier)
        if task.kernel:
            number[task.number] = len(number)
            found[number[task.number]] = sorted(number[p] for p in producers[task.number])
    return found


def test_the_task_runtime_makes_the_same_edges():
    skip_without_compiler()
    programs = {case: orchestration(body) for case, (body, _, _) in LOOPS.items()}
    for seed in range(60):
        lines = [*SCRATCH, *random_body(random.Random(seed))]
        programs[f"seed {seed}"] = orchestration("\n".join(lines))
    lowered = {name: ir.PassManager().run_passes(program) for name, program in programs.items()}
    built = EmittedProgram.build_all([EmittedCode(program, "main") for program in lowered.values()])
    fewer = left_open = 0
    for name, program in zip(lowered, built, strict=True):
        found = []
        open_pairs = narrowing_of(program.program).leaves_overwrites(program.function)
        for by_parts in (True, False):
            result = program.run(make(2), RunOptions(workers=2, record=True, by_parts=by_parts))
            found.append(without_barriers(program.record(result)))
            assert found[-1] == edges_of(program.program, make(2), by_parts, open_pairs), name
        fewer += found[0] != found[1]
        left_open += open_pairs
    assert fewer > 5 and left_open > 5  # it is not that nothing is ever known, or everything


def test_no_order_is_missing_on_the_host():
    """What a program does not leave open itself gives the values of the source, however tasks are scheduled."""
    skip_without_compiler()
    bodies = [random_body(random.Random(seed), no_dep=False) for seed in range(60)]
    programs = [orchestration("\n".join([*SCRATCH, *lines])) for lines in bodies]
    built = EmittedProgram.build_all([EmittedCode(ir.PassManager().run_passes(p), "main") for p in programs])
    schedules = [RunOptions(workers=2), *(RunOptions(random=True, seed=seed) for seed in range(6))]
    for number, (program, source) in enumerate(zip(built, programs, strict=True)):
        want = make(2)
        boxed = [ArrayValue(v, Buffer(v, external=True)) if isinstance(v, np.ndarray) else v for v in want]
        Interpreter(source).run(entry_function(source), boxed)
        for options in schedules:
            got = make(2)
            program.run(got, options)
            for one, other in zip(got, want, strict=True):
                np.testing.assert_array_equal(one, other, f"seed {number}, {options}")


def words_of(text):
    kernel = parse(text).get_function("k")
    return part_words(kernel, Footprints(Callees([kernel])).of(kernel))


def test_the_words_of_a_kernel():
    """Tensors first, then scalars; a tensor that is not touched, and one of unknown places, have no box."""
    text = """
@InCore
def k(self, a: pl.Scalar[pl.UINT8], x: f32[M, 16], b: pl.Scalar[pl.INT32], y: f32[64, 16], o: pl.Out[f32[64, 16]],
      z: f32[64, 16]) -> f32[64, 16]:
    t = pl.load(x, [M - 16, 0], [16, 16])
    r = pl.store(t, [pl.cast(b, pl.INDEX) * 2 + 4, 0], o)
    return r
"""
    words = words_of(text)
    rows = [1, 0, 0, 16, 0]  # one box dimension: from 0 on, 16
    x = [1, 2, 1, -16, 1, 1, 1, 0, 0, 16, 0, *rows]
    o = [1, 2, 1, 4, 1, 2, 0, 1, -32, 16, 0, *rows]
    assert words == (4, 5, 0, 5 + len(x), 0, *x, *o)
