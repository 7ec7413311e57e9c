"""Races: found where nothing orders two tasks that touch the same bytes, and nowhere else."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_support import F32, call, executable, program, ramp

from pypto.diag.location import Location
from pypto.runtime import RaceError
from pypto.runtime.races import Race, Search, check_races, find_races, report
from pypto.runtime.recording import run_record
from pypto.runtime.run_config import RunConfig
from pypto.runtime.task_records import (
    AccessRecord,
    ArgumentRecord,
    Box,
    BufferRecord,
    EdgeKind,
    EdgeRecord,
    HostRecord,
    Mode,
    RunRecord,
    TaskRecord,
)

R, W, A = Mode.READ, Mode.WRITE, Mode.ATOMIC

# --- the search, on records made by hand -------------------------------------------------------------------------------


def record(accesses, edges=(), tasks=None, hosts=()):
    """``accesses``: (task, mode, first byte, bytes); ``edges``: (producer, consumer); ``hosts``: after how many."""
    count = 1 + max([task for task, *_ in accesses], default=-1) - len(hosts) if tasks is None else tasks
    return RunRecord(
        tasks=[TaskRecord(i, f"t{i}") for i in range(count)],
        hosts=[HostRecord(count + i, "tensor.read", after) for i, after in enumerate(hosts)],
        buffers=[BufferRecord(0, "y", (1_000,), "uint8")],
        edges=[EdgeRecord(a, b, EdgeKind.EXPLICIT, "explicit") for a, b in edges],
        accesses=[AccessRecord(task, 0, mode, Box(low, (size,), (1,), 1)) for task, mode, low, size in accesses],
    )


def pairs(found):
    return [(race.first, race.second) for race in found]


@pytest.mark.parametrize("first", [R, W, A])
@pytest.mark.parametrize("second", [R, W, A])
def test_which_accesses_conflict(first, second):
    found = find_races(record([(0, first, 0, 8), (1, second, 4, 8)]))
    if first is second is R or first is second is A:
        assert found == []
    else:
        assert pairs(found) == [(0, 1)] and found[0].kind == f"{first.value}/{second.value}"
    assert find_races(record([(0, first, 0, 8), (1, second, 4, 8)], edges=[(0, 1)])) == []
    assert find_races(record([(0, first, 0, 8), (1, second, 8, 8)])) == []


def test_different_buffers_never_meet():
    made = record([(0, W, 0, 8)])
    made.tasks.append(TaskRecord(1, "t1"))
    made.buffers.append(BufferRecord(1, "z"))
    made.accesses.append(AccessRecord(1, 1, W, Box(0, (8,), (1,), 1)))
    assert find_races(made) == []


def test_a_path_through_others_orders():
    accesses = [(0, W, 0, 8), (3, R, 0, 8)]
    assert find_races(record(accesses, edges=[(0, 1), (1, 2), (2, 3)])) == []
    assert pairs(find_races(record(accesses, edges=[(0, 1), (2, 3)]))) == [(0, 3)]


def test_all_pairs_are_found_behind_accesses_that_stand_for_others():
    """0 -> 1 -> 2 write the same; 3 is not ordered behind any of them, 4 is behind 1 only."""
    accesses = [(0, W, 0, 8), (1, W, 0, 8), (2, W, 0, 16), (3, R, 2, 2), (4, R, 2, 2)]
    made = record(accesses, edges=[(0, 1), (1, 2), (1, 4)])
    assert pairs(find_races(made)) == [(0, 3), (1, 3), (2, 3), (2, 4)]


def test_the_orchestrator_waits_and_what_comes_later_comes_after():
    # Task 0 writes; the orchestrator (2) waits for it and reads; task 1 comes later and writes again.
    accesses = [(0, W, 0, 8), (1, W, 0, 8), (2, R, 0, 8)]
    assert find_races(record(accesses, edges=[(0, 2)], hosts=[1])) == []
    # It touches what nothing made it wait for.
    assert pairs(find_races(record(accesses, hosts=[1]))) == [(0, 2), (0, 1)]
    # Task 1 was there before, so that the orchestrator reads beside it.
    assert pairs(find_races(record(accesses, edges=[(0, 2)], hosts=[2]))) == [(0, 1), (1, 2)]


def test_accesses_of_the_orchestrator_are_in_order():
    accesses = [(0, R, 0, 8), (1, W, 0, 8), (2, R, 0, 8), (3, W, 0, 8)]
    assert find_races(record(accesses, hosts=[1, 1, 1], edges=[(0, 1)])) == []


def test_one_race_for_a_pair_and_the_worst_of_it():
    accesses = [(0, R, 0, 8), (0, W, 0, 8), (1, R, 0, 8), (1, W, 2, 2)]
    (race,) = find_races(record(accesses))
    assert race.kind == "write/write" and race.second_box.low == 2


def test_edges_go_forward():
    with pytest.raises(ValueError, match="does not come before"):
        find_races(record([(0, W, 0, 8)], edges=[(1, 0)], tasks=2))


def columns(task, first, step=2):
    return AccessRecord(task, 0, W, Box(4 * first, (8, 8 // step), (32, 4 * step), 4))


def test_columns():
    def found(*accesses):
        return pairs(
            find_races(
                RunRecord(record([], tasks=3).tasks, [], [BufferRecord(0, "y", (8, 8), "f", 4)], [], [], list(accesses))
            )
        )

    assert found(columns(0, 0), columns(1, 1)) == []
    assert found(columns(0, 0), columns(1, 2)) == [(0, 1)]
    assert found(columns(0, 1), columns(1, 0, 4), columns(2, 3, 4)) == [(0, 2)]


def brute_force(made):
    """All pairs, by sets of bytes and of ancestors."""
    order = [item.number for item in made.in_order()]
    position = {number: at for at, number in enumerate(order)}
    before = {number: set() for number in order}
    host = None
    for number in order:
        direct = [edge.producer for edge in made.edges if edge.consumer == number] + ([] if host is None else [host])
        for producer in direct:
            before[number] |= before[producer] | {producer}
        if number >= len(made.tasks):
            host = number
    found = set()
    for i, a in enumerate(made.accesses):
        for b in made.accesses[:i]:
            first, second = sorted((a.task, b.task), key=position.get)
            conflict = W in (a.mode, b.mode) or (A in (a.mode, b.mode) and a.mode != b.mode)
            if first != second and conflict and bytes_of(a) & bytes_of(b) and first not in before[second]:
                found.add((first, second))
    return sorted(found, key=lambda pair: (position[pair[1]], position[pair[0]]))


def bytes_of(access):
    found = {access.box.low}
    for n, stride in zip(access.box.shape, access.box.strides, strict=True):
        found = {byte + i * stride for byte in found for i in range(n)}
    return found


boxes = st.builds(
    lambda low, rows, columns, stride, step: Box(low, (rows, columns), (stride, step), 1),
    st.integers(0, 12), st.integers(1, 3), st.integers(1, 4), st.just(8), st.sampled_from([1, 2]),
)  # fmt: skip


@st.composite
def records(draw):
    tasks = draw(st.integers(1, 8))
    hosts = sorted(draw(st.lists(st.integers(0, tasks), max_size=2)))
    number = st.integers(0, tasks + len(hosts) - 1)
    made = record([], tasks=tasks, hosts=hosts)
    order = [item.number for item in made.in_order()]
    for a, b in draw(st.lists(st.tuples(number, number), max_size=12)):
        if a != b:
            made.edges.append(EdgeRecord(order[min(a, b)], order[max(a, b)], EdgeKind.EXPLICIT, "explicit"))
    made.accesses = draw(
        st.lists(st.builds(AccessRecord, number, st.just(0), st.sampled_from([R, W, A]), boxes), max_size=16)
    )
    return made


@given(records())
def test_agrees_with_all_pairs(made):
    assert pairs(find_races(made)) == brute_force(made)


# --- growth ------------------------------------------------------------------------------------------------------------


def bands(n):
    """Each task writes a band of its own; then each reads three."""
    writes = [(i, W, 8 * i, 8) for i in range(n)]
    reads = [(n + i, R, 8 * first, 8 * (min(i + 2, n) - first)) for i in range(n) for first in [max(0, i - 1)]]
    return record(writes + reads, [(j, n + i) for i in range(n) for j in (i - 1, i, i + 1) if 0 <= j < n])


def one_tensor_updated(n):
    return record([(i, W, 0, 64) for i in range(n)], [(i, i + 1) for i in range(n - 1)])


def one_input_for_all(n):
    """All in order: each reads the whole and writes its band."""
    accesses = [access for i in range(n) for access in ((i, R, 0, 8 * n), (i, W, 8 * i, 8))]
    return record(accesses, [(i, i + 1) for i in range(n - 1)])


def readers_between_two_writers(n):
    inner = range(1, n - 1)
    accesses = [(0, W, 0, 64), *((i, R, 0, 64) for i in inner), (n - 1, W, 0, 64)]
    return record(accesses, [*((0, i) for i in inner), *((i, n - 1) for i in inner)])


def all_read_then_each_writes(n):
    """Between them stands a task that waits for all."""
    gate = n
    accesses = [(i, R, 0, 8 * n) for i in range(n)] + [(gate + 1 + i, W, 8 * i, 8) for i in range(n)]
    return record(accesses, [*((i, gate) for i in range(n)), *((gate, gate + 1 + i) for i in range(n))])


@pytest.mark.parametrize(
    "shape", [bands, one_tensor_updated, one_input_for_all, readers_between_two_writers, all_read_then_each_writes]
)
def test_only_what_may_conflict_is_compared(shape):
    def work(n):
        search = Search(shape(n))
        assert search.run() == []
        return search.compared

    assert work(2_000) <= 2.3 * work(1_000) <= 2.3 * 8_000


def test_races_are_limited():
    """Of 5,000 tasks that all write one tensor every two race."""
    search = Search(record([(i, W, 0, 64) for i in range(5_000)]), limit=100)
    assert len(search.run()) == 100
    assert search.compared <= 100


# --- the report --------------------------------------------------------------------------------------------------------


def told(kind=(W, W), tags=("inout", "inout"), manual_dep=False, manual=(False, False), host=False):
    at = Location("case.py", 7, 5)
    tasks = [TaskRecord(i, f"k{i}", f"k{i}", at, manual=manual[i]) for i in range(1 if host else 2)]
    made = RunRecord(
        tasks=tasks,
        hosts=[HostRecord(1, "tensor.write", 1, at)] if host else [],
        buffers=[BufferRecord(0, "y", (4, 8), "float32", 4, manual_dep)],
        arguments=[ArgumentRecord(i, 0, tags[i]) for i in range(len(tasks)) if tags[i]],
        accesses=[AccessRecord(i, 0, kind[i], Box(32 * i, (2, 8), (32, 4), 4)) for i in range(2)],
    )
    return report(made, find_races(made))


def test_what_a_report_says():
    text = told()
    assert text.startswith("1 race: tasks touch the same bytes, at least one of them writes, and nothing orders them\n")
    assert "1. write/write of 'y'" in text
    assert "k0#0 writes y[0:2, 0:8] (case.py:7:5)" in text and "k1#1 writes y[1:3, 0:8] (case.py:7:5)" in text
    assert "missing: k1#1 after k0#0" in text


@pytest.mark.parametrize(
    ("case", "advice"),
    [
        ({}, "name k0#0 in the dependencies of k1#1: deps=[...]"),
        ({"kind": (R, W)}, "a write waits for no earlier reader: name k0#0 in the dependencies of k1#1"),
        ({"tags": ("inout", "output_existing")}, "declare the parameter of 'k1' pl.InOut, or name k0#0"),
        ({"kind": (W, R), "tags": ("inout", "no_dep")}, "drop no_dep of 'y' at k1#1, or name k0#0"),
        ({"kind": (W, R), "tags": ("no_dep", "input")}, "drop no_dep of 'y' at k0#0, or name k0#0"),
        ({"kind": (W, R), "tags": ("input", "input")}, "'k0' writes 'y', but its parameter says that it only reads"),
        ({"manual_dep": True}, "'y' was created with manual_dep=True"),
        ({"manual": (True, False)}, "in a manual scope only dependencies order tasks"),
        ({"host": True, "tags": ("", "")}, "pass it to the task"),
        ({"kind": (A, R)}, "k0#0 adds atomically to y[0:2, 0:8]"),
    ],
)
def test_advice(case, advice):
    assert advice in told(**case)


def test_a_long_report_is_cut():
    made = record([(i, W, 0, 8) for i in range(8)])
    races = find_races(made)
    assert len(races) == 28
    text = report(made, races, shown=3)
    assert text.startswith("28 races: ") and "3. write/write" in text and "4. write/write" not in text
    assert text.endswith("... and 25 more")
    assert report(made, races[:5], shown=3, limit=5).startswith("at least 5 races: ")
    assert text == report(made, find_races(made), shown=3)


def test_the_error_holds_the_races():
    made = record([(0, W, 0, 8), (1, R, 0, 8)])
    with pytest.raises(RaceError, match="1 race: ") as caught:
        check_races(made)
    assert caught.value.record is made
    assert [type(race) for race in caught.value.races] == [Race]
    check_races(record([(0, W, 0, 8)]))


# --- programs ----------------------------------------------------------------------------------------------------------

XYZ = "x: pl.InOut[pl.Tensor[[4, 8], pl.FP32]], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]], z: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]"


def arrays():
    return [ramp(4, 8), np.zeros((4, 8), F32), np.zeros((4, 8), F32)]


def races(body, more="", schedules=("default", "random")):
    """``(kind, first task, second task, buffer)`` of each race; the same in each schedule."""
    found = program(body, XYZ, more)
    results = []
    for schedule in schedules:
        try:
            call(found, *arrays(), check_races=True, schedule=schedule, seed=1)
        except RaceError as error:
            who, buffers = error.record.who, error.record.buffers
            results.append(
                [(r.kind, str(who(r.first)), str(who(r.second)), buffers[r.buffer].name) for r in error.races]
            )
        else:
            results.append([])
    assert all(result == results[0] for result in results)
    return results[0]


def directions(*names):
    return f'attrs={{"arg_directions": [{", ".join(f"pl.adir.{name}" for name in names)}]}}'


def test_a_program_in_source_order_has_none():
    assert races("y = self.copy(x, y)\ny = self.bump(y, 1.0)\nx = self.bump(x, 1.0)\nz = self.copy(y, z)") == []


def test_read_after_write_behind_no_dep():
    assert races("y = self.copy(x, y)\nz = self.copy(pl.no_dep(y), z)") == [("write/read", "copy#0", "copy#1", "y")]


def test_write_after_write_of_existing_outputs():
    copy = directions("input", "output_existing")
    body = f"y = self.copy(x, y, {copy})\ny = self.copy(z, y, {copy})"
    assert races(body) == [("write/write", "copy#0", "copy#1", "y")]
    second = directions("input", "inout")
    assert races(f"y = self.copy(x, y, {copy})\ny = self.copy(z, y, {second})") == []


def test_write_after_read():
    body = "y = self.copy(x, y, {0})\nx = self.bump(x, 1.0, {1})"
    stated = body.format(directions("input", "output_existing"), directions("inout", "scalar"))
    assert races(stated) == [("read/write", "copy#0", "bump#1", "x")]


def test_manual_scopes_need_dependencies():
    body = """
        with pl.manual_scope():
            y, first = pl.submit(self.copy, x, y)
            z, second = pl.submit(self.copy, y, z, deps=[{0}])
            y, _ = pl.submit(self.bump, y, 1.0, deps=[{1}])
    """
    assert races(body.format("", "")) == [
        ("write/read", "copy#0", "copy#1", "y"),
        ("write/write", "copy#0", "bump#2", "y"),
        ("read/write", "copy#1", "bump#2", "y"),
    ]
    assert races(body.format("first", "first")) == [("read/write", "copy#1", "bump#2", "y")]
    # The path through the second task orders the first and the third.
    assert races(body.format("first", "second")) == []


def test_a_path_through_a_dummy_task():
    body = """
        with pl.manual_scope():
            y, first = pl.submit(self.copy, x, y)
            gate = pl.system.task_dummy(deps=[{0}])
            y, _ = pl.submit(self.bump, y, 1.0, deps=[gate])
    """
    assert races(body.format("first")) == []
    assert races(body.format("")) == [("write/write", "copy#0", "bump#2", "y")]


PARTS = """
@pl.function(type=pl.FunctionType.InCore)
def fill_row(self, dst: pl.Out[pl.Tensor[[4, 8], pl.FP32]], row: pl.Scalar[pl.INDEX]) -> pl.Tensor[[4, 8], pl.FP32]:
    return pl.store(pl.tile.full([1, 8], pl.FP32, 1.0), [row, 0], dst)

@pl.function(type=pl.FunctionType.InCore)
def fill_columns(self, dst: pl.Out[pl.Tensor[[4, 8], pl.FP32]], first: pl.Scalar[pl.INDEX]
                 ) -> pl.Tensor[[4, 8], pl.FP32]:
    for i in pl.range(4):
        for j in pl.range(4):
            pl.write(dst, [i, 2 * j + first], 1.0)
    return dst

@pl.function(type=pl.FunctionType.InCore)
def add_row(self, dst: pl.InOut[pl.Tensor[[4, 8], pl.FP32]], row: pl.Scalar[pl.INDEX]) -> pl.Tensor[[4, 8], pl.FP32]:
    return pl.store(pl.tile.full([1, 8], pl.FP32, 1.0), [row, 0], dst, atomic=pl.AtomicType.Add)
"""
EXISTING = directions("output_existing", "scalar")


def test_what_a_kernel_stores_counts_and_not_what_it_declares():
    def body(a, b):
        return f"y = self.fill_row(y, {a}, {EXISTING})\ny = self.fill_row(y, {b}, {EXISTING})"

    assert races(body(0, 1), PARTS) == []
    assert races(body(2, 2), PARTS) == [("write/write", "fill_row#0", "fill_row#1", "y")]


def test_even_and_odd_columns():
    def body(a, b):
        return f"y = self.fill_columns(y, {a}, {EXISTING})\ny = self.fill_columns(y, {b}, {EXISTING})"

    assert races(body(0, 1), PARTS) == []
    assert races(body(1, 1), PARTS) == [("write/write", "fill_columns#0", "fill_columns#1", "y")]


def test_atomic_adds_race_with_others_only():
    add = directions("no_dep", "scalar")
    body = f"y = self.add_row(y, 1, {add})\ny = self.add_row(y, 1, {add})"
    assert races(body, PARTS) == []
    more = f"{body}\ny = self.fill_row(y, 1, {EXISTING})"
    assert races(more, PARTS) == [
        ("atomic/write", "add_row#0", "fill_row#2", "y"),
        ("atomic/write", "add_row#1", "fill_row#2", "y"),
    ]


def test_the_orchestrator_orders_what_comes_after_it():
    copy, bump = directions("input", "output_existing"), directions("output_existing", "scalar")

    def body(between):
        return f"y = self.copy(x, y, {copy})\n{between}\ny = self.bump(y, 1.0, {bump})"

    assert races(body("")) == [("write/write", "copy#0", "bump#1", "y")]
    assert races(body("v = pl.read(y, [0, 0])")) == []
    # A write waits for the readers, too; a read of another tensor waits for nobody.
    assert races(body("pl.write(x, [0, 0], 1.0)")) == []
    assert races(body("v = pl.read(z, [0, 0])")) == [("write/write", "copy#0", "bump#1", "y")]


def test_the_orchestrator_races_with_a_task_that_it_does_not_wait_for():
    found = races("y = self.copy(pl.no_dep(x), y)\npl.write(x, [1, 1], 5.0)")
    assert found == [("read/write", "copy#0", "tensor.write by the orchestrator", "x")]


def test_scopes_are_tasks_too():
    body = """
        with pl.manual_scope():
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="first") as a:
                y[0:2, :] = pl.add(x[0:2, :], 1.0)
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="second", deps=[{0}]):
                z[0:2, :] = pl.mul(y[{1}:{1} + 2, :], 3.0)
    """
    assert races(body.format("", 0)) == [("write/read", "first#0", "second#1", "y")]
    assert races(body.format("", 2)) == []
    assert races(body.format("a", 0)) == []


def test_what_a_scope_makes_belongs_to_it():
    body = """
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="first"):
            t = pl.add(x, 1.0)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="second"{0}):
            y[:] = pl.mul(t, 3.0)
    """
    assert races(body.format("")) == []
    manual = "with pl.manual_scope():" + body.format("").replace("\n", "\n    ")
    assert races(manual) == [("write/read", "first#0", "second#1", "t")]


def test_a_race_gives_no_results():
    found = program("y = self.copy(x, y)\nz = self.copy(pl.no_dep(y), z)\nreturn z", XYZ)
    # Contiguous arrays are written in place; what is packed for the run is not copied back.
    strided = np.zeros((4, 16), F32)[:, ::2]
    with pytest.raises(RaceError, match="drop no_dep of 'y' at copy#1"):
        call(found, ramp(4, 8), np.zeros((4, 8), F32), strided, check_races=True)
    assert (strided == 0).all()
    call(found, ramp(4, 8), np.zeros((4, 8), F32), strided)
    np.testing.assert_array_equal(strided, ramp(4, 8))


def test_the_report_names_the_lines():
    found = program("y = self.copy(x, y)\nz = self.copy(pl.no_dep(y), z)", XYZ)
    with pytest.raises(RaceError) as caught:
        call(found, *arrays(), check_races=True)
    lines = str(caught.value).splitlines()
    first, second = (line for line in lines if "case.py:" in line)
    assert "copy#0 writes y[0:4, 0:8] (case.py:" in first and "copy#1 reads y[0:4, 0:8] (case.py:" in second


def test_nothing_is_recorded_unasked():
    found = executable(program("y = self.copy(x, y)", XYZ))
    outcome = found.run(arrays(), {}, RunConfig())
    assert outcome.interpreter.graph.recorder is None
    with pytest.raises(ValueError, match="was not recorded"):
        run_record(outcome.interpreter.graph)
    plain = run_record(found.run(arrays(), {}, RunConfig(), record=True).interpreter.graph)
    assert len(plain.tasks) == 1 and plain.accesses == []


LOOPS = """
@pl.function(type=pl.FunctionType.InCore)
def walk(self, src: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INDEX], dst: pl.InOut[pl.Tensor[[64, 64], pl.FP32]]
         ) -> pl.Tensor[[64, 64], pl.FP32]:
    for i in pl.range(n):
        for j in pl.range(8):
            dst = pl.store(pl.load(src, [8 * i, 8 * j], [8, 8]), [8 * i, 8 * j], dst)
    return dst
"""


def test_adjoining_accesses_of_a_task_are_one():
    params = "x: pl.Tensor[[64, 64], pl.FP32], y: pl.InOut[pl.Tensor[[64, 64], pl.FP32]]"
    found = executable(program("y = self.walk(x, 5, y)", params, LOOPS))
    args = [ramp(64, 64), np.zeros((64, 64), F32)]
    made = run_record(found.run(args, {}, RunConfig(check_races=True)).interpreter.graph)
    described = {(a.mode, made.buffers[a.buffer].describe(a.box)) for a in made.accesses}
    assert described == {(R, "x[0:40, 0:64]"), (W, "y[0:40, 0:64]")}
