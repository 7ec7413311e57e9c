"""Arrays and scalars of the caller, and what else goes on in the process during a run."""

import os
import signal
import threading
import time

import ml_dtypes
import numpy as np
import pytest
from native_kit import Suite, TaskError, edges, zeros
from numpy.lib.stride_tricks import as_strided

suite = Suite("external_arguments", include="#include <sched.h>")
suite.kernel("look")
suite.kernel("inner")
# (answer and question): asks somebody outside of the run, until its timeout
suite.kernel(
    "ask_outside",
    """
    auto* flags = reinterpret_cast<std::atomic<int32_t>*>(tensor_of(args, 0).data());
    flags[1] = 1;
    while (flags[0] == 0 && !rt_is_fatal()) sched_yield();
    """,
)

suite.entry("add_one", "launch(id::add, inout(x), 1);")
suite.entry("copy_one", "launch(id::copy, in(x), out(y));", tensors="x y")
suite.entry("look_at_one", "launch(id::look, inout(x));")
suite.entry("look_at_three", "launch(id::look, in(x), in(y), in(z));", tensors="x y z")
suite.entry("scalars", "for (uint32_t i = 0; i < orch_args.scalar_count(); ++i) launch(id::look, static_cast<int64_t>(orch_args.scalar(i)));", tensors="")  # fmt: skip

# --- arrays -----------------------------------------------------------------------------------------------------------

SHAPES = {
    "0-d": zeros(),
    "1-d": zeros(7),
    "2-d": zeros(3, 4),
    "5-d": zeros(2, 3, 1, 2, 2),
    "no elements": zeros(3, 0, 2),
    "one element": zeros(1, 1, 1),
    "every other": zeros(9, 10)[::2, 1::3],
    "transposed": zeros(3, 4, 2).transpose(2, 0, 1),
    "a column": zeros(5, 6)[:, 2],
    "in the middle": zeros(100)[40:60].reshape(4, 5),
    "one element, backwards": zeros(1)[::-1],
    "Fortran order": np.zeros((3, 4), np.float32, order="F"),
}


@pytest.mark.parametrize("case", SHAPES)
def test_views_of_arrays_are_changed_in_place(case):
    x = SHAPES[case]
    base = x if x.base is None else x.base
    base[...] = np.arange(base.size).reshape(base.shape)
    expected = x + 1
    suite.run("add_one", [x])
    np.testing.assert_array_equal(x, expected)
    others = base.sum() - np.arange(base.size).sum()
    assert others == x.size  # nothing else of the array


def test_read_only_and_broadcast_inputs():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    x.flags.writeable = False
    for source in (
        x,
        np.broadcast_to(x[1], (3, 4)),
        np.broadcast_to(x[:, 1:2], (3, 4)),
        np.broadcast_to(np.float32(3), (3, 4)),
    ):
        y = zeros(3, 4)
        suite.run("copy_one", [source, y])
        np.testing.assert_array_equal(y, source)


def test_wrong_arrays():
    for array, error, text in [
        (zeros(1, 1, 1, 1, 1, 1), ValueError, "tensor 0 has 6 dimensions, at most 5"),
        (zeros(4)[::-1], ValueError, "tensor 0 has byte strides"),
        (as_strided(zeros(10), (4,), (6,)), ValueError, "parts of elements"),
        (np.broadcast_to(np.float32(1), (2**32,)), ValueError, "below 2[*][*]32"),
        (np.zeros((2**32, 0), np.int8), ValueError, "below 2[*][*]32"),
        (zeros(4, dtype=np.float64), TypeError, "float64"),
        (zeros(4, dtype=np.complex64), TypeError, "complex64"),
        (np.array(["a"]), TypeError, "str"),
    ]:
        with pytest.raises(error, match=text):
            suite.run("add_one", [array])


DTYPES = [
    np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e8m0fnu,
    ml_dtypes.float4_e2m1fn, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.bool_,
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_element_types(dtype):
    x = np.ones((3, 4), dtype)
    seen = []

    def look(args):
        t = args.tensor(0)
        seen.append((t.dtype, t.shape, t.tolist()))
        t[1, 2] = 2

    expected = [(np.dtype(dtype), (3, 4), x.tolist())]
    suite.run("look_at_one", [x], kernels={"look": look})
    assert seen == expected
    assert x[1, 2] == np.array(2).astype(dtype) and x[1, 1] == 1


def buffers(arrays):
    """The buffers of a run with three arrays: (first argument in it, bytes)."""
    result = suite.run("look_at_three", arrays, kernels={"look": lambda args: None}, record=True)
    return sorted((b.argument, b.size) for b in result.records[3])


def test_overlapping_arrays_are_one_buffer():
    x = zeros(30)
    assert buffers([x[0:10], x[10:20], x[20:30]]) == [(0, 40), (1, 40), (2, 40)]  # side by side
    assert buffers([x[0:10], x[8:20], x[20:30]]) == [(0, 80), (2, 40)]
    assert buffers([x[20:30], x[8:21], x[0:9]]) == [(2, 120)]  # each with the next
    assert buffers([x, x[3:4], x[29:]]) == [(0, 120)]  # within
    assert buffers([x, x, zeros(1)]) == [(0, 120), (2, 4)]
    assert buffers([x[0::2], x[1::2], zeros(2, 0)])[0][1] == 120  # between each other


def test_arrays_between_each_other_are_not_ordered():
    """Even and odd elements of one array are one buffer, and yet apart."""
    x = np.arange(30, dtype=np.float32)
    result = suite.run("copy_one", [x[0::2], x[1::2]], record=True)
    assert edges(result) == []
    np.testing.assert_array_equal(x, np.repeat(np.arange(0, 30, 2), 2))


def test_overlapping_arrays_that_can_not_be_one_buffer():
    memory = np.zeros(64, np.uint8)
    arrays = [memory[0:8].view(np.float32), memory[2:10].view(np.float32)]
    suite.fails(5, "copy_one", arrays, match="argument 1 overlaps another one at a distance of 2 bytes")


def test_scalars():
    seen = []
    values = [
        3,
        -3,
        True,
        np.int8(-5),
        np.uint8(250),
        np.float32(1.5),
        np.float64(-2.5),
        np.bool_(True),
        2**64 - 1,
        -(2**63),
    ]
    suite.run("scalars", [], values, kernels={"look": lambda args: seen.append(args.scalar(0))})
    floats = [int(np.float32(1.5).view(np.int32)), int(np.float64(-2.5).view(np.int64))]
    assert seen == [3, -3, 1, -5, 250, *floats, 1, -1, -(2**63)]


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1])
def test_integers_that_do_not_fit(value):
    with pytest.raises(ValueError, match="scalar 0 is .*64 bits"):
        suite.run("scalars", [], [value])


@pytest.mark.parametrize("value", [1.5, "1", None, np.longdouble(1), np.complex128(1)])
def test_scalars_that_do_not_say_what_they_are(value):
    with pytest.raises(TypeError, match="scalar 0 is"):
        suite.run("scalars", [], [value])


# --- the rest of the process ------------------------------------------------------------------------------------------

suite.entry("wait_for_outside", "launch(id::ask_outside, inout(x)); launch(id::nop, in(x));")
suite.entry("outer", "launch(id::add, inout(x), 1); launch(id::inner, inout(x)); launch(id::add, inout(x), 100);")


@pytest.mark.parametrize("workers", [1, 2])
def test_other_python_threads_go_on_during_a_run(workers):
    """The kernel waits for such a thread, which needs the lock of the interpreter."""
    x = zeros(2, dtype=np.int32)  # the answer, the question

    def answer():
        while x[1] == 0:
            time.sleep(0.001)
        x[0] = 1

    thread = threading.Thread(target=answer)
    thread.start()
    suite.run("wait_for_outside", [x], workers=workers, timeout=60)
    thread.join()
    assert x.tolist() == [1, 1]


@pytest.mark.parametrize("workers", [1, 2])
def test_two_runs_at_once(workers):
    """Each run's kernel waits for the other's."""
    both = threading.Barrier(2)
    arrays = [zeros(1), zeros(1)]
    failures = []

    def look(args):
        both.wait(60)
        args.tensor(0)[0] += 1

    def run(x, by):
        try:
            for _ in range(by):
                suite.run("look_at_one", [x], kernels={"look": look}, workers=workers)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(x, 20)) for x in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert [x[0] for x in arrays] == [20, 20]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_kernel_may_run_a_program(workers):
    x, y = zeros(1), zeros(1)

    def inner(args):
        suite.run("add_one", [y], workers=workers)
        suite.run("add_one", [args.tensor(0)], workers=workers)

    suite.run("outer", [x], kernels={"inner": inner}, workers=workers)
    assert y[0] == 1
    assert x[0] == 1 + 1 + 100


@pytest.mark.parametrize("workers", [1, 2])
def test_a_program_that_a_kernel_runs_may_fail(workers):
    def inner(args):
        with pytest.raises(TaskError, match="no such tensor argument"):
            suite.run("copy_one", [zeros(1)], workers=workers)

    x = zeros(1)
    suite.run("outer", [x], kernels={"inner": inner}, workers=workers)  # the outer one goes on
    assert x[0] == 101

    def fails(args):
        suite.run("copy_one", [zeros(1)], workers=workers)

    with pytest.raises(TaskError, match="no such tensor argument"):  # not caught: so it fails, too
        suite.run("outer", [zeros(1)], kernels={"inner": fails}, workers=workers)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # threads do not come along: that is the point
@pytest.mark.parametrize("workers", [1, 3])
def test_a_forked_process_can_run(workers):
    x = zeros(1)
    suite.run("add_one", [x], workers=workers)  # leaves threads behind, which the child does not have
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # ends it if it hangs
        status = 1
        try:
            suite.run("add_one", [x], workers=workers)
            suite.run("add_one", [x], workers=workers)
            status = 0 if x[0] == 3 else 2
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    suite.run("add_one", [x], workers=workers)
    assert x[0] == 2
