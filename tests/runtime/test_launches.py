"""SPMD launches, predicates, scopes and what leaves them, results of kernels, mixed kernels."""

import numpy as np
import pytest
from run_support import F32, call, call_in_all_orders, edges, program, ramp


def arrays():
    return [ramp(4, 8), np.zeros((4, 8), F32)]


SPMD_KERNEL = """
@pl.function(type=pl.FunctionType.InCore)
def row(self, src: pl.Tensor[[4, 8], pl.FP32], by: pl.Scalar[pl.FP32], dst: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]
        ) -> pl.Tensor[[4, 8], pl.FP32]:
    i = pl.tile.get_block_idx()
    n = pl.tile.get_block_num()
    t = pl.load(src, [i, 0], [1, 8])
    return pl.store(pl.add(pl.mul(t, by), pl.cast(n, pl.FP32)), [i, 0], dst)
"""


@pytest.mark.parametrize(
    "body",
    [
        "y, _ = pl.spmd_submit(self.row, x, 2.0, y, core_num=3)",
        "with pl.spmd(3):\n    y = self.row(x, 2.0, y)",
    ],
    ids=["submit", "scope"],
)
def test_blocks(body):
    found = program(body, more=SPMD_KERNEL)
    _, names = edges(found, *arrays())
    assert len(names) == 1, "one task runs all blocks"
    x, y = call_in_all_orders(found, arrays)
    np.testing.assert_array_equal(y[:3], x[:3] * 2 + 3)
    np.testing.assert_array_equal(y[3], 0)


def test_an_spmd_loop():
    found = program(
        """
        for i in pl.spmd(4, name_hint="rows"):
            y[i : i + 1, :] = pl.add(x[i : i + 1, :], 1.0)
        """
    )
    _, names = edges(found, *arrays())
    assert names == ["rows_spmd"]
    x, y = call_in_all_orders(found, arrays)
    np.testing.assert_array_equal(y, x + 1)


PREDICATED = """
flag, made = pl.submit(self.set_flag, flag, n)
y, _ = pl.submit(self.bump, y, 1.0, deps=[made], predicate=(pl.tensor.read(flag, [0, 0]) > 2))
y, _ = pl.submit(self.bump, y, 10.0)
"""
PREDICATED_PARAMS = (
    "n: pl.Scalar[pl.INT32], flag: pl.InOut[pl.Tensor[[1, 8], pl.INT32]], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]"
)
SET_FLAG = """
@pl.function(type=pl.FunctionType.InCore)
def set_flag(self, flag: pl.InOut[pl.Tensor[[1, 8], pl.INT32]], n: pl.Scalar[pl.INT32]
             ) -> pl.Tensor[[1, 8], pl.INT32]:
    return pl.store(pl.add(pl.load(flag, [0, 0], [1, 8]), n), [0, 0], flag)
"""


@pytest.mark.parametrize(("n", "want"), [(2, 10), (3, 11)])
def test_predicates_are_evaluated_when_the_task_would_start(n, want):
    found = program(PREDICATED, PREDICATED_PARAMS, SET_FLAG)
    made = call_in_all_orders(found, lambda: [n, np.zeros((1, 8), np.int32), np.zeros((4, 8), F32)])
    np.testing.assert_array_equal(made[2], np.full((4, 8), want, F32))


def test_a_scope_gives_a_tensor_of_its_own():
    found = program(
        """
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="make"):
            doubled = pl.mul(x, 2.0)
        y = self.copy(doubled, y)
        """
    )
    recorded, names = edges(found, *arrays())
    assert names == ["make", "copy"]
    x, y = call_in_all_orders(found, arrays)
    np.testing.assert_array_equal(y, x * 2)


def test_a_scope_gives_a_scalar():
    found = program(
        """
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.add(x, 1.0)
            row = pl.cast(pl.tensor.read(x, [0, 3]), pl.INDEX)
        y = self.bump_row(y, row, 100.0)
        """
    )
    x, y = call_in_all_orders(found, arrays)
    want = x + 1
    want[3] += 100
    np.testing.assert_array_equal(y, want)


def test_a_scope_gives_a_part_of_a_tensor():
    found = program(
        """
        with pl.at(level=pl.Level.CORE_GROUP):
            part = x[1:3, :]
            y[0:2, :] = pl.add(part, 1.0)
        with pl.at(level=pl.Level.CORE_GROUP):
            y[2:4, :] = pl.mul(part, 10.0)
        """
    )
    x, y = call_in_all_orders(found, arrays)
    np.testing.assert_array_equal(y, np.concatenate([x[1:3] + 1, x[1:3] * 10]))


def test_a_scope_gives_one_tensor_or_another():
    found = program(
        """
        with pl.at(level=pl.Level.CORE_GROUP):
            if n > 0:
                out = pl.tensor.assemble(y, x, [0, 0])
            else:
                out = pl.tensor.assemble(z, x, [0, 0])
        out = self.bump(out, 1.0)
        """,
        "n: pl.Scalar[pl.INDEX], x: pl.Tensor[[4, 8], pl.FP32], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]], "
        "z: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]",
    )
    for n in (0, 1):
        made = call_in_all_orders(found, lambda n=n: [n, ramp(4, 8), np.zeros((4, 8), F32), np.zeros((4, 8), F32)])
        np.testing.assert_array_equal(made[2 if n else 3], ramp(4, 8) + 1)
        np.testing.assert_array_equal(made[3 if n else 2], 0)


def test_results_follow_the_return_statement_and_not_the_position():
    found = program(
        """
        b, a = self.both(x, y, z)
        a = self.bump(a, 1000.0)
        """,
        "x: pl.Tensor[[4, 8], pl.FP32], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]], "
        "z: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]",
        """
        @pl.function(type=pl.FunctionType.InCore)
        def both(self, s: pl.Tensor[[4, 8], pl.FP32], first: pl.Out[pl.Tensor[[4, 8], pl.FP32]],
                 second: pl.Out[pl.Tensor[[4, 8], pl.FP32]]
                 ) -> tuple[pl.Tensor[[4, 8], pl.FP32], pl.Tensor[[4, 8], pl.FP32]]:
            t = pl.load(s, [0, 0], [4, 8])
            f = pl.store(pl.add(t, 1.0), [0, 0], first)
            g = pl.store(pl.add(t, 2.0), [0, 0], second)
            return g, f
        """,
    )
    made = call_in_all_orders(found, lambda: [*arrays(), np.zeros((4, 8), F32)])
    np.testing.assert_array_equal(made[1], ramp(4, 8) + 1001)
    np.testing.assert_array_equal(made[2], ramp(4, 8) + 2)


def test_omitted_outputs_are_allocated():
    found = program(
        """
        with pl.manual_scope():
            tmp, made = pl.submit(self.scale, x, 3.0)
            y, _ = pl.submit(self.copy, tmp, y, deps=[made])
        """
    )
    x, y = call_in_all_orders(found, arrays)
    np.testing.assert_array_equal(y, x * 3)


def test_the_task_that_a_left_out_output_is_allocated_for_owns_it():
    """Directions are stated for what is passed: what is not passed is still a new buffer of that task."""
    found = program(
        """
        tmp, _ = pl.submit(self.scale, x, 3.0, attrs={"arg_directions": [pl.adir.input, pl.adir.scalar]})
        tmp = self.copy(x, tmp, attrs={"arg_directions": [pl.adir.input, pl.adir.output_existing]})
        y = self.copy(tmp, y)
        """
    )
    recorded, _ = edges(found, *arrays())
    assert recorded[1] == {0: "allocation of dst"}
    x, y = call_in_all_orders(found, arrays)
    np.testing.assert_array_equal(y, x)


def test_opaque_functions_run_in_the_orchestration():
    found = program(
        "y = self.steps(x, y)",
        more="""
        @pl.function(type=pl.FunctionType.Opaque)
        def steps(self, a: pl.Tensor[[4, 8], pl.FP32], b: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]
                  ) -> pl.Tensor[[4, 8], pl.FP32]:
            for i in pl.range(2):
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="step"):
                    b = pl.tensor.assemble(b, pl.add(a, pl.cast(i, pl.FP32)), [0, 0])
            return b
        """,
    )
    _, names = edges(found, *arrays())
    assert names == ["step", "step"]
    x, y = call_in_all_orders(found, arrays)
    np.testing.assert_array_equal(y, x + 1)


def test_the_orchestration_reads_what_tasks_wrote():
    found = program(
        """
        y = self.copy(x, y)
        total = pl.tensor.read(y, [3, 7])
        y = self.bump(y, total)
        """
    )
    x, y = call_in_all_orders(found, arrays)
    np.testing.assert_array_equal(y, x + 31)


def test_the_orchestration_writes_behind_its_readers():
    found = program(
        """
        y = self.copy(x, y)
        pl.tensor.write(x, [0, 0], 50.0)
        z = self.copy(x, z)
        """,
        "x: pl.InOut[pl.Tensor[[4, 8], pl.FP32]], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]], "
        "z: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]",
    )
    made = call_in_all_orders(found, lambda: [*arrays(), np.zeros((4, 8), F32)])
    assert made[1][0, 0] == 0 and made[2][0, 0] == 50


def test_the_task_of_an_error_in_a_block():
    found = program("y, _ = pl.spmd_submit(self.row, x, 2.0, y, core_num=5)", more=SPMD_KERNEL)
    from pypto.runtime.errors import ProgramError

    with pytest.raises(ProgramError, match="out of range") as caught:
        call(found, *arrays())
    assert caught.value.task == "row#0"
