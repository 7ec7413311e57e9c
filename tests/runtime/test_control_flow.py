"""Loops of all kinds, carried values, branches, yields, ways out."""

import textwrap

import numpy as np
import pytest
from run_support import F32, call, call_in_all_orders, kernel, program, ramp


def arrays():
    return [ramp(4, 8), np.zeros((4, 8), F32)]


@pytest.mark.parametrize("kind", ["range", "parallel", "unroll", "pipeline"])
def test_loops_rebind_and_carry(kind):
    stage = ", stage=2" if kind == "pipeline" else ""
    rebinding = program(f"for i in pl.{kind}(1, 7, 2{stage}):\n    y = self.bump(y, pl.cast(i, pl.FP32))")
    np.testing.assert_array_equal(call_in_all_orders(rebinding, arrays)[1], np.full((4, 8), 9, F32))
    if kind == "unroll":  # carries nothing by name
        return
    carrying = program(
        f"""
        for i, (acc, total) in pl.{kind}(4, init_values=(y, 0){stage}):
            bumped = self.bump(acc, 1.0)
            acc2, total2 = pl.yield_(bumped, total + i)
        acc2 = self.bump(acc2, pl.cast(total2, pl.FP32))
        """
    )
    np.testing.assert_array_equal(call_in_all_orders(carrying, arrays)[1], np.full((4, 8), 4 + 6, F32))


def test_a_loop_that_does_not_run_gives_its_initial_values():
    found = program(
        """
        for i, (acc,) in pl.range(3, 3, init_values=(y,)):
            bumped = self.bump(acc, 1.0)
            out = pl.yield_(bumped)
        out = self.bump(out, 5.0)
        """
    )
    np.testing.assert_array_equal(call_in_all_orders(found, arrays)[1], np.full((4, 8), 5, F32))


def test_downward_loops():
    found = program("for i in pl.range(3, -1, -1):\n    y = self.bump_row(y, i, pl.cast(i, pl.FP32))")
    _, y = call_in_all_orders(found, arrays)
    np.testing.assert_array_equal(y, np.arange(4, dtype=F32)[:, None] * np.ones((4, 8), F32))


@pytest.mark.parametrize("trips", range(4))
def test_a_yield_assigns_all_its_slots_at_once(trips):
    found = program(
        f"""
        for i, (p, q) in pl.range({trips}, init_values=(x, y)):
            a, b = pl.yield_(q, p)
        z = self.copy(a, z)
        """,
        "x: pl.Tensor[[4, 8], pl.FP32], y: pl.Tensor[[4, 8], pl.FP32], z: pl.Out[pl.Tensor[[4, 8], pl.FP32]]",
    )
    made = call_in_all_orders(found, lambda: [ramp(4, 8), -ramp(4, 8), np.zeros((4, 8), F32)])
    np.testing.assert_array_equal(made[2], ramp(4, 8) * (-1 if trips % 2 else 1))


def test_tuple_assignment_swaps():
    found = program("x, y = y, x\ny = self.bump(y, 1.0)", PARAMS_INOUT)
    x, y = call_in_all_orders(found, arrays)
    np.testing.assert_array_equal(x, ramp(4, 8) + 1)
    np.testing.assert_array_equal(y, 0)


PARAMS_INOUT = "x: pl.InOut[pl.Tensor[[4, 8], pl.FP32]], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]"


def scalar_program(body, result="r"):
    """A program that stores a scalar computed by ``body`` from ``n`` in ``y[0]``."""
    return program(
        f"{body}\npl.tensor.write(y, [0], pl.cast({result}, pl.INT64))",
        "n: pl.Scalar[pl.INDEX], y: pl.InOut[pl.Tensor[[1], pl.INT64]]",
    )


def scalar_result(body, n, result="r"):
    y = np.zeros(1, np.int64)
    call(scalar_program(body, result), n, y)
    return int(y[0])


NESTED = """
r = n
for i, (a,) in pl.range(3, init_values=(n,)):
    for j, (b,) in pl.range(2, init_values=(a,)):
        if j > 0:
            c = pl.yield_(b + 10)
        else:
            c = pl.yield_(b + 1)
        d = pl.yield_(c * 2)
    e = pl.yield_(d + i)
r = e
"""


def test_nested_yields():
    def reference(n):
        a = n
        for i in range(3):
            b = a
            for j in range(2):
                b = (b + (10 if j > 0 else 1)) * 2
            a = b + i
        return a

    for n in (0, 1, -3):
        assert scalar_result(NESTED, n) == reference(n)


COLLATZ = """
steps = 0
m = n
while m != 1:
    if m % 2 == 0:
        m = m // 2
    else:
        m = 3 * m + 1
    steps = steps + 1
"""


@pytest.mark.parametrize(("n", "steps"), [(1, 0), (6, 8), (27, 111)])
def test_while(n, steps):
    assert scalar_result(COLLATZ, n, "steps") == steps


CARRIED_WHILE = """
for (m, s) in pl.while_(init_values=(n, 0)):
    pl.cond(m > 0)
    m2, s2 = pl.yield_(m - 1, s + m)
"""


def test_carried_while():
    assert scalar_result(CARRIED_WHILE, 5, "s2") == 15
    assert scalar_result(CARRIED_WHILE, 0, "s2") == 0


BREAK_CONTINUE = """
r = 0
for i in pl.range(10):
    if i == n:
        break
    if i % 2 == 0:
        continue
    for j in pl.range(10):
        if j > 2:
            break
        r = r + i
"""


@pytest.mark.parametrize("n", [0, 4, 20])
def test_break_and_continue_leave_the_innermost_loop(n):
    want = sum(3 * i for i in range(10) if i < n and i % 2)
    assert scalar_result(BREAK_CONTINUE, n) == want


WHILE_BREAK = """
r = 0
while n > 0:
    r = r + 1
    if r >= 7:
        break
    if r > 3:
        continue
    r = r + 1
"""


def test_break_and_continue_in_while():
    assert scalar_result(WHILE_BREAK, 1) == 7
    assert scalar_result(WHILE_BREAK, 0) == 0


def test_branches():
    body = "if n > 3:\n    r = n * 2\nelif n > 0:\n    r = n + 100\nelse:\n    r = -n"
    assert [scalar_result(body, n) for n in (5, 2, -4)] == [10, 102, 4]


def test_a_branch_on_data():
    found = program(
        """
        y = self.copy(x, y)
        flag = pl.tensor.read(y, [1, 0])
        if flag > 7.0:
            y = self.bump(y, 1.0)
        else:
            y = self.bump(y, -1.0)
        """
    )
    np.testing.assert_array_equal(call_in_all_orders(found, arrays)[1], ramp(4, 8) + 1)


def test_a_branch_chooses_a_tensor():
    found = program(
        """
        if n > 0:
            chosen = pl.yield_(x)
        else:
            chosen = pl.yield_(y)
        z = self.copy(chosen, z)
        """,
        "n: pl.Scalar[pl.INDEX], x: pl.Tensor[[4, 8], pl.FP32], y: pl.Tensor[[4, 8], pl.FP32], "
        "z: pl.Out[pl.Tensor[[4, 8], pl.FP32]]",
    )
    for n in (0, 1):
        made = call_in_all_orders(found, lambda n=n: [n, ramp(4, 8), -ramp(4, 8), np.zeros((4, 8), F32)])
        np.testing.assert_array_equal(made[3], ramp(4, 8) if n else -ramp(4, 8))


def test_early_return():
    found = program(
        """
        y = self.copy(x, y)
        if n > 0:
            return y
        y = self.bump(y, 1.0)
        return y
        """,
        "n: pl.Scalar[pl.INDEX], x: pl.Tensor[[4, 8], pl.FP32], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]",
    )
    for n in (0, 1):
        made = call_in_all_orders(found, lambda n=n: [n, *arrays()])
        np.testing.assert_array_equal(made[2], ramp(4, 8) + (0 if n else 1))


def test_loops_in_kernels_keep_tiles():
    found = kernel(
        """
        acc = pl.load(x, [0, 0], [1, 8])
        for i in pl.range(1, 4):
            acc = pl.add(acc, pl.load(x, [i, 0], [1, 8]))
        o = pl.store(acc, [0, 0], o)
        """
    )
    x, o = arrays()
    call(found, x, o)
    np.testing.assert_array_equal(o[0], x.sum(0))
    np.testing.assert_array_equal(o[1:], 0)


def test_helpers_are_called_in_place():
    found = program(
        "y = self.twice(x, y)\ny = self.bump(y, 1.0)",
        more="""
        @pl.function(type=pl.FunctionType.Inline)
        def twice(self, a: pl.Tensor[[4, 8], pl.FP32], b: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]
                  ) -> pl.Tensor[[4, 8], pl.FP32]:
            b = self.copy(a, b)
            b = self.scale(b, 2.0, b)
            return b
        """,
    )
    np.testing.assert_array_equal(call_in_all_orders(found, arrays)[1], ramp(4, 8) * 2 + 1)


@pytest.mark.parametrize("n", [0, 1])
def test_a_scope_may_leave_a_name_as_it_was(n):
    """Whether `chosen` is x or y is not known before the scope has run: it must not be deferred as if it were."""
    found = program(
        """
        chosen = y
        with pl.at(level=pl.Level.CORE_GROUP):
            for i in pl.range(n):
                chosen = x
            z = pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], z)
        z = self.copy(chosen, z)
        """,
        "n: pl.Scalar[pl.INDEX], x: pl.Tensor[[4, 8], pl.FP32], y: pl.Tensor[[4, 8], pl.FP32], "
        "z: pl.Out[pl.Tensor[[4, 8], pl.FP32]]",
    )
    _, x, y, z = call_in_all_orders(found, lambda: [n, ramp(4, 8), -ramp(4, 8), np.zeros((4, 8), F32)])
    np.testing.assert_array_equal(x, ramp(4, 8))
    np.testing.assert_array_equal(y, -ramp(4, 8))
    np.testing.assert_array_equal(z, ramp(4, 8) if n else -ramp(4, 8))


EARLY = """
for i, (s, t) in pl.range(6, init_values=(0, 0)):
    s1 = s + 1
    if i == n:
        {word}
    t1 = t + s1
    r, q = pl.yield_(s1, t1)
r = r * 100 + q
"""


@pytest.mark.parametrize("n", [0, 2, 9])
def test_an_escape_carries_on_what_the_iteration_has_computed(n):
    """`s1` is known where the loop goes on or ends early, `t1` is not: that carry keeps its value."""
    for word in ("break", "continue"):
        s = t = 0
        for i in range(6):
            s = s + 1
            if i == n:
                if word == "break":
                    break
                continue
            t = t + s
        assert scalar_result(EARLY.format(word=word), n) == s * 100 + t


def test_an_escape_leaves_a_kernel_scope():
    found = program(
        """
        for i in pl.range(5):
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], y)
                if i == 2:
                    break
            x = self.bump(x, 1.0)
        """,
        "x: pl.InOut[pl.Tensor[[4, 8], pl.FP32]], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]]",
    )
    for made in call_in_all_orders(found, arrays):
        np.testing.assert_array_equal(made, ramp(4, 8) + 2)


def test_a_number_that_a_loop_of_a_scope_gives_leaves_the_scope():
    found = program(
        """
        with pl.at(level=pl.Level.CORE_GROUP):
            for k, (a,) in pl.range(n, init_values=(0,)):
                b = pl.yield_(a + 2)
            y = pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], y)
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.store(pl.mul(pl.load(y, [0, 0], [4, 8]), pl.cast(b, pl.FP32)), [0, 0], y)
        """,
        "n: pl.Scalar[pl.INDEX], x: pl.Tensor[[4, 8], pl.FP32], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]",
    )
    for n in (0, 3):
        _, _, y = call_in_all_orders(found, lambda n=n: [n, *arrays()])
        np.testing.assert_array_equal(y, ramp(4, 8) * 2 * n)


@pytest.mark.parametrize("flag", [0, 1])
@pytest.mark.parametrize("body", ["y = x", "if n > 5:\n    y = pl.yield_(x)\nelse:\n    y = pl.yield_(x)"])
def test_a_kernel_scope_that_rebinds_a_tensor_on_some_paths_only(body, flag):
    """In a random order the scope is deferred: on the other path the name must keep what it named."""
    found = program(
        "with pl.at(level=pl.Level.CORE_GROUP):\n    if n > 0:\n"
        + textwrap.indent(body, "        ")
        + "\nz = self.copy(y, z)",
        "x: pl.Tensor[[4, 8], pl.FP32], y: pl.Tensor[[4, 8], pl.FP32], z: pl.InOut[pl.Tensor[[4, 8], pl.FP32]], "
        "n: pl.Scalar[pl.INDEX]",
    )
    x, y = ramp(4, 8), -ramp(4, 8)
    for schedule in ("default", "random"):
        args = [x.copy(), y.copy(), np.zeros((4, 8), F32), flag]
        call(found, *args, schedule=schedule)
        np.testing.assert_array_equal(args[2], x if flag else y)
        np.testing.assert_array_equal(args[1], y)


@pytest.mark.parametrize("schedule", ["default", "random"])
def test_a_number_of_a_kernel_scope_that_an_assignment_to_its_own_name_reads(schedule):
    found = program(
        "with pl.at(level=pl.Level.CORE_GROUP):\n    a = n + 1\na = a\ny = self.bump_row(y, a, 1.0)",
        "n: pl.Scalar[pl.INDEX], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]",
    )
    y = np.zeros((4, 8), F32)
    call(found, 1, y, schedule=schedule)
    np.testing.assert_array_equal(y.sum(axis=1), [0, 0, 8, 0])
