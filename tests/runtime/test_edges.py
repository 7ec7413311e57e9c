"""The order that programs get from their arguments, in automatic and in manual scopes: recorded edges and results."""

import numpy as np
import pytest
from run_support import F32, call, call_in_all_orders, edges, program, ramp


def arrays():
    return [ramp(4, 8), np.zeros((4, 8), F32)]


# Row of the table: (directions of the second call's tensor, ordered behind the first call's write, found by a third).
ROWS = {
    "input": (True, False),
    "inout": (True, True),
    "output_existing": (False, True),
    "no_dep": (False, False),
}


@pytest.mark.parametrize("direction", ROWS)
@pytest.mark.parametrize("manual", [False, True], ids=["auto", "manual"])
def test_stated_directions(direction, manual):
    found = program(
        f"""
        with pl.{"manual_scope" if manual else "cluster"}():
            y = self.bump(y, 1.0, attrs={{"arg_directions": [pl.adir.inout, pl.adir.scalar]}})
            y = self.bump(y, 1.0, attrs={{"arg_directions": [pl.adir.{direction}, pl.adir.scalar]}})
            y = self.bump(y, 1.0, attrs={{"arg_directions": [pl.adir.input, pl.adir.scalar]}})
        """
    )
    recorded, names = edges(found, *arrays())
    assert names == ["bump"] * 3
    if manual:
        assert recorded == {0: {}, 1: {}, 2: {}}
        return
    ordered, registers = ROWS[direction]
    assert (0 in recorded[1]) is ordered
    # A whole INOUT replaces the first writer; nothing else does.
    assert (0 in recorded[2]) is (direction != "inout")
    assert (1 in recorded[2]) is registers
    reasons = {reason for found in recorded.values() for reason in found.values()}
    assert reasons <= {"overlap with the write of y"}


def test_tensors_made_in_the_orchestration_have_an_owner():
    found = program(
        """
        tmp = pl.create_tensor([4, 8], dtype=pl.FP32)
        tmp = self.copy(x, tmp)
        y = self.copy(tmp, y)
        """
    )
    recorded, names = edges(found, *arrays())
    assert names == ["copy", "copy"]
    assert list(recorded[1]) == [0]
    np.testing.assert_array_equal(call_in_all_orders(found, arrays)[1], ramp(4, 8))


def test_source_writes_wait_for_readers():
    found = program(
        """
        y = self.copy(x, y)
        x = self.bump(x, 100.0)
        """,
        "x: pl.InOut[pl.Tensor[[4, 8], pl.FP32]], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]",
    )
    recorded, _ = edges(found, *arrays())
    assert recorded == {0: {}, 1: {0: "overwrites what is read of x"}}
    x, y = call_in_all_orders(found, arrays)
    np.testing.assert_array_equal(y, ramp(4, 8))
    np.testing.assert_array_equal(x, ramp(4, 8) + 100)


ROW_KERNEL = """
@pl.function(type=pl.FunctionType.InCore)
def bump_band(self, band: pl.InOut[pl.Tensor[[1, 8], pl.FP32]], by: pl.Scalar[pl.FP32]) -> pl.Tensor[[1, 8], pl.FP32]:
    return pl.store(pl.add(pl.load(band, [0, 0], [1, 8]), by), [0, 0], band)
"""


def test_disjoint_bands_are_independent():
    found = program(
        """
        for i in pl.range(4):
            band = pl.slice(y, [1, 8], [i, 0])
            band = self.bump_band(band, 1.0)
        y = self.bump(y, 10.0)
        """,
        more=ROW_KERNEL,
    )
    recorded, names = edges(found, *arrays())
    assert names == ["bump_band"] * 4 + ["bump"]
    assert [list(recorded[i]) for i in range(5)] == [[], [], [], [], [0, 1, 2, 3]]
    np.testing.assert_array_equal(call_in_all_orders(found, arrays)[1], np.full((4, 8), 11, F32))


def test_a_scope_takes_the_tensors_that_it_names():
    found = program(
        """
        for i in pl.range(3):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="band"):
                y[i : i + 1, :] = pl.add(x[i : i + 1, :], 1.0)
        """
    )
    recorded, names = edges(found, *arrays())
    assert names == ["band"] * 3
    assert [list(recorded[i]) for i in range(3)] == [[], [0], [1]]
    x, y = call_in_all_orders(found, arrays)
    np.testing.assert_array_equal(y[:3], x[:3] + 1)
    np.testing.assert_array_equal(y[3], 0)


def test_task_ids_order_manual_tasks():
    found = program(
        """
        with pl.manual_scope():
            y, first = pl.submit(self.copy, x, y)
            y, second = pl.submit(self.scale, y, 2.0, y, deps=[first])
            y, _ = pl.submit(self.bump, y, 5.0, deps=[first, second])
        """
    )
    recorded, names = edges(found, *arrays())
    assert names == ["copy", "scale", "bump"]
    assert recorded == {0: {}, 1: {0: "explicit"}, 2: {0: "explicit", 1: "explicit"}}
    np.testing.assert_array_equal(call_in_all_orders(found, arrays)[1], ramp(4, 8) * 2 + 5)


def test_a_missing_edge_in_a_manual_scope_shows():
    """The second task needs the first one's result but does not say so: some legal order gives another value."""
    found = program(
        """
        with pl.manual_scope():
            y, first = pl.submit(self.copy, x, y)
            y, second = pl.submit(self.scale, y, 2.0, y)
        """
    )
    right = ramp(4, 8) * 2
    results = []
    for seed in range(16):
        x, y = arrays()
        call(found, x, y, schedule="random", seed=seed)
        results.append(np.array_equal(y, right))
    assert True in results and False in results
    x, y = arrays()
    call(found, x, y)  # in the order of the text it is right by luck
    np.testing.assert_array_equal(y, right)


def test_automatic_tasks_behind_a_manual_scope_wait_for_it():
    found = program(
        """
        with pl.manual_scope():
            y, _ = pl.submit(self.copy, x, y)
        y = self.bump(y, 1.0)
        """
    )
    recorded, _ = edges(found, *arrays())
    assert list(recorded[1]) == [0]
    np.testing.assert_array_equal(call_in_all_orders(found, arrays)[1], ramp(4, 8) + 1)


def test_no_dep_arguments_of_the_source():
    body = """
        y = self.copy(x, y)
        y = self.scale({0}, 2.0, y)
    """
    ordered, _ = edges(program(body.format("x")), *arrays())
    assert ordered[1] == {0: "overlap with the write of y"}
    free = program("y = self.copy(x, y)\nz = self.copy(pl.no_dep(y), z)", PARAMS_XYZ)
    recorded, _ = edges(free, *arrays(), np.zeros((4, 8), F32))
    assert recorded[1] == {}


PARAMS_XYZ = (
    "x: pl.Tensor[[4, 8], pl.FP32], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]], z: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]"
)


def test_arrays_of_task_ids_and_dummy_tasks():
    found = program(
        """
        with pl.manual_scope():
            ids = pl.array.create(4, pl.TASK_ID)
            for i in pl.range(4):
                y, done = pl.submit(self.bump_row, y, i, 1.0)
                ids[i] = done
            gate = pl.system.task_dummy(deps=[ids])
            z, _ = pl.submit(self.copy, y, z, deps=[gate])
        """,
        PARAMS_XYZ,
    )
    recorded, names = edges(found, *arrays(), np.zeros((4, 8), F32))
    assert names == ["bump_row"] * 4 + ["dummy", "copy"]
    assert recorded[4] == dict.fromkeys(range(4), "explicit")
    assert recorded[5] == {4: "explicit"}
    made = call_in_all_orders(found, lambda: [*arrays(), np.zeros((4, 8), F32)])
    np.testing.assert_array_equal(made[2], np.ones((4, 8), F32))


def test_unfilled_slots_are_no_dependency():
    found = program(
        """
        with pl.manual_scope():
            ids = pl.array.create(3, pl.TASK_ID)
            y, done = pl.submit(self.copy, x, y)
            ids[1] = done
            y, _ = pl.submit(self.bump, y, 1.0, deps=[ids])
        """
    )
    recorded, _ = edges(found, *arrays())
    assert recorded == {0: {}, 1: {0: "explicit"}}


def test_a_carried_task_id():
    found = program(
        """
        with pl.manual_scope():
            before = None
            for i in pl.range(3):
                y, before = pl.submit(self.bump, y, 1.0, deps=[before])
        """
    )
    recorded, _ = edges(found, *arrays())
    assert recorded == {0: {}, 1: {0: "explicit"}, 2: {1: "explicit"}}
    np.testing.assert_array_equal(call_in_all_orders(found, arrays)[1], np.full((4, 8), 3, F32))


def test_scopes_with_task_ids():
    found = program(
        """
        with pl.manual_scope():
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="first") as a:
                y[:] = pl.add(x, 1.0)
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="second", deps=[a]) as b:
                y[:] = pl.mul(y, 3.0)
        """
    )
    recorded, names = edges(found, *arrays())
    assert names == ["first", "second"]
    assert recorded == {0: {}, 1: {0: "explicit"}}
    np.testing.assert_array_equal(call_in_all_orders(found, arrays)[1], (ramp(4, 8) + 1) * 3)


def test_another_view_of_the_bytes_is_ordered_like_them():
    """A window past the end of its tensor, and a view under another element type, name the tensor's own bytes."""
    part = """
    @pl.function(type=pl.FunctionType.InCore)
    def part(self, src: pl.Tensor[[4, 8], pl.FP32], dst: pl.Out[pl.Tensor[[4, 8], pl.FP32]]
             ) -> pl.Tensor[[4, 8], pl.FP32]:
        return pl.store(pl.load(src, [0, 0], [4, 8], [2, 8]), [0, 0], dst)

    @pl.function(type=pl.FunctionType.InCore)
    def bits(self, acc: pl.InOut[pl.Tensor[[4, 8], pl.INT32]], by: pl.Scalar[pl.INT32]) -> pl.Tensor[[4, 8], pl.INT32]:
        return pl.store(pl.add(pl.load(acc, [0, 0], [4, 8]), by), [0, 0], acc)
    """
    found = program(
        """
        y = self.copy(x, y)
        z = self.part(pl.slice(y, [4, 8], [2, 0], clamp=True), z)
        v = pl.reinterpret_view(y, dtype=pl.INT32)
        v = self.bits(v, 1)
        last = pl.read(v, [0, 0])
        pl.write(out, [0], last)
        """,
        PARAMS_XYZ + ", out: pl.InOut[pl.Tensor[[1], pl.INT32]]",
        part,
    )

    def make():
        return [*arrays(), np.zeros((4, 8), F32), np.zeros(1, np.int32)]

    recorded, _ = edges(found, *make())
    assert list(recorded[1]) == [0] and list(recorded[2]) == [0, 1]
    _, y, z, out = call_in_all_orders(found, make)
    np.testing.assert_array_equal(z[:2], ramp(4, 8)[2:])
    np.testing.assert_array_equal(y.view(np.int32), ramp(4, 8).view(np.int32) + 1)
    assert out == [1]


def test_a_tensor_that_the_orchestrator_made_belongs_to_no_task():
    """Its first writer is its writer: an output that is there already waits for nobody."""
    existing = 'attrs={"arg_directions": [pl.adir.input, pl.adir.output_existing]}'
    found = program(
        f"""
        tmp = pl.create_tensor([4, 8], dtype=pl.FP32)
        tmp = self.copy(x, tmp, {existing})
        tmp = self.copy(x, tmp, {existing})
        y = self.copy(tmp, y)
        """
    )
    recorded, _ = edges(found, *arrays())
    overlap = "overlap with the write of tmp"
    assert recorded == {0: {}, 1: {}, 2: {0: overlap, 1: overlap}}
