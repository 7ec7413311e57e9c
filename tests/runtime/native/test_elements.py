"""Elements that the orchestration itself reads and writes."""

import threading
import time

import numpy as np
import pytest
from native_kit import Suite, zeros

suite = Suite(
    "elements",
    more="""
    template <typename T>
    static T get(const ChipTensor& tensor, std::initializer_list<uint32_t> at, uint32_t line = __builtin_LINE()) {
        return get_tensor_data<T>(tensor, static_cast<uint32_t>(at.size()), at.begin(), line);
    }
    template <typename T>
    static void set(const ChipTensor& tensor, std::initializer_list<uint32_t> at, T value,
                    uint32_t line = __builtin_LINE()) {
        set_tensor_data<T>(tensor, static_cast<uint32_t>(at.size()), at.begin(), value, line);
    }
    """,
)
suite.kernel("slow_fill")
suite.kernel("slow_copy")
suite.kernel("wait")
suite.kernel("release")
suite.kernel("until_fatal", "while (!rt_is_fatal()) {}")


def slow_fill(args):
    time.sleep(0.02)
    args.tensor(0)[...] = args.scalar(1)


def slow_copy(args):
    time.sleep(0.02)
    args.tensor(1)[...] = args.tensor(0)


SLOW = {"slow_fill": slow_fill, "slow_copy": slow_copy}
WORKERS = pytest.mark.parametrize(
    "options",
    [{"workers": 1}, {"workers": 2}, {"workers": 2, "timeout": 60}, {"random": True}],
    ids=["1", "2", "2, none is the orchestrator", "random"],
)

# --- reading ----------------------------------------------------------------------------------------------------------

suite.entry(
    "read",
    """
    launch(id::slow_fill, inout(x), 3);
    launch(id::add, inout(box(x, 1, 1, 1, 1)), 4);
    const auto made = launch(id::slow_fill, row_of(4), 100);
    launch(id::fill, out(y), static_cast<int64_t>(get<float>(x, {1, 1}) + get<float>(x, {0, 1})));
    launch(id::add, inout(y), static_cast<int64_t>(get<float>(made.get_ref(0), {2})));
    always_assert(get<float>(x.transpose(0, 1), {1, 0}) == 3 && get<float>(box(x, 1, 1, 1, 1), {0, 0}) == 7);
    """,
    tensors="x y",
)
suite.entry(
    "read_of_other_tasks",
    """
    launch(id::wait, in(y));
    launch(id::wait, inout(rows(x, 1, 1)));
    launch(id::fill, out(rows(x, 0, 1)), 5);
    launch(id::fill, inout(z), static_cast<int64_t>(get<float>(x, {0, 1})));
    launch(id::release, in(y));
    """,
    tensors="x y z",
)


@WORKERS
def test_reading_waits_for_the_value(options):
    x, y = zeros(2, 2), zeros(1)
    suite.run("read", [x, y], kernels=SLOW, **options)
    assert y[0] == 7 + 3 + 100


def test_reading_does_not_wait_for_others():
    """Neither for a task of another buffer, nor for a writer of other elements: they end behind the read."""
    released = threading.Event()
    x, y, z = zeros(2, 2), zeros(1), zeros(1)

    def wait(args):
        assert released.wait(60)

    kernels = {"wait": wait, "release": lambda args: released.set()}
    # With a timeout the orchestrator executes nothing, so that no waiting task can fall to it.
    suite.run("read_of_other_tasks", [x, y, z], kernels=kernels, workers=3, timeout=60)
    assert z[0] == 5


# --- writing ----------------------------------------------------------------------------------------------------------

suite.entry(
    "write",
    """
    launch(id::slow_copy, in(x), out(y));
    launch(id::slow_copy, in(x.slice(1, 0, 2, 1)), inout(z));
    set(x, {1, 0}, 9.0f);
    launch(id::copy, in(x), inout(w));
    always_assert(get<float>(x, {1, 0}) == 9);
    """,
    tensors="x y z w",
)
suite.entry(
    "write_over",
    """
    launch(id::slow_fill, inout(x), 3);
    set(x, {0, 1}, 9.0f);
    const auto made = launch(id::slow_fill, row_of(2), 4);
    set(made.get_ref(0), {1}, 8.0f);
    launch(id::copy, in(made.get_ref(0)), inout(part(y, 0, 2)));
    """,
    tensors="x y",
)


@WORKERS
def test_writing_waits_for_readers(options):
    x, y, z, w = np.ones((2, 2), np.float32), zeros(2, 2), zeros(2, 2), zeros(2, 2)
    suite.run("write", [x, y, z, w], kernels=SLOW, **options)
    assert (y == 1).all() and (z == 1).all()
    assert w.tolist() == x.tolist() == [[1, 1], [9, 1]]


@WORKERS
def test_writing_waits_for_writers(options):
    x, y = zeros(1, 2), zeros(2)
    suite.run("write_over", [x, y], kernels=SLOW, **options)
    assert x.tolist() == [[3, 9]]
    assert y.tolist() == [4, 8]


suite.entry(
    "of_all_types",
    """
    set<int8_t>(a, {1}, -5); always_assert(get<int8_t>(a, {1}) == -5);
    set<uint16_t>(b, {1}, 65535); always_assert(get<uint16_t>(b, {1}) == 65535);
    set<int64_t>(c, {1}, -(int64_t{1} << 40)); always_assert(get<int64_t>(c, {1}) == -(int64_t{1} << 40));
    set<bool>(d, {1}, true); always_assert(get<bool>(d, {1}) && !get<bool>(d, {0}));
    set<float>(e, {}, 2.5f); always_assert(get<float>(e, {}) == 2.5f);
    """,
    tensors="a b c d e",
)


def test_elements_of_all_sizes():
    arrays = [np.zeros(3, dtype) for dtype in (np.int8, np.uint16, np.int64, np.bool_)] + [zeros()]
    suite.run("of_all_types", arrays)
    assert [a.tolist() for a in arrays] == [[0, -5, 0], [0, 65535, 0], [0, -(2**40), 0], [False, True, False], 2.5]


# --- elements that decide what is launched ----------------------------------------------------------------------------

suite.entry("until", "while (get<float>(x, {0}) < static_cast<float>(n)) launch(id::add, inout(x), 3);", scalars="n")
suite.entry(
    "counted",
    """
    launch(id::fill, out(part(x, 0, 1)), n);
    const auto count = static_cast<int64_t>(get<float>(x, {0}));
    for (int64_t i = 0; i < count; ++i) {
        if (get<float>(y, {static_cast<uint32_t>(i)}) != 0) launch(id::add, inout(part(x, 1, 1)), i);
    }
    """,
    tensors="x y",
    scalars="n",
)


@WORKERS
def test_a_loop_until_a_value(options):
    x = zeros(1)
    assert suite.run("until", [x], [100], **options).counters.tasks == 34
    assert x[0] == 102


@WORKERS
def test_data_decides_what_is_launched(options):
    x = zeros(2)
    y = np.array([1, 0, 0, 1, 1, 1], np.float32)
    counters = suite.run("counted", [x, y], [5], **options).counters
    assert x.tolist() == [5, 0 + 3 + 4]
    assert counters.tasks == 1 + 3


# --- errors -----------------------------------------------------------------------------------------------------------

WRONG = {
    "rank": ("\nget<float>(x, {0});", "with 1 indices and 4 bytes to a tensor of 2 dimensions and 4 bytes"),
    "size": ("\nget<double>(x, {0, 0});", "with 2 indices and 8 bytes to a tensor of 2 dimensions and 4 bytes"),
    "index": ("\nget<float>(x, {1, 3});", "index 3 of dimension 1, which has 3"),
    "index of a view": ("\nget<float>(columns(x, 1, 2), {1, 2});", "index 2 of dimension 1, which has 2"),
    "uninitialised": ("ChipTensor nothing;\nget<float>(nothing, {0});", "never given a value"),
    "written rank": ("\nset<float>(x, {0, 0, 0}, 1);", "with 3 indices"),
    "written index": ("\nset<float>(x, {2, 0}, 1);", "index 2 of dimension 0, which has 2"),
}
_WRONG_ENTRIES = {case: f"wrong_{n}" for n, case in enumerate(WRONG)}
for case, (body, _) in WRONG.items():
    suite.entry(_WRONG_ENTRIES[case], f"/**/{body}\nlaunch(id::fill, out(x), 1);")


@pytest.mark.parametrize("case", WRONG)
def test_wrong_elements(case):
    x = zeros(2, 3)
    error = suite.fails(5, _WRONG_ENTRIES[case], [x], match=WRONG[case][1])
    assert error.line == 2
    assert (x == 0).all()


suite.entry(
    "too_late",
    """
    launch(id::until_fatal, inout(x));
    launch(id::fill, inout(y), static_cast<int64_t>(get<float>(x, {0})));
    """,
    tensors="x y",
)
suite.entry("for_ever", "launch(id::wait, in(x)); while (get<float>(x, {0}) < 1) launch(id::wait, inout(x));")


def test_waiting_for_an_element_ends_at_the_timeout():
    y = zeros(1)
    error = suite.fails(
        8, "too_late", [zeros(1), y], workers=2, timeout=0.1, match=r"Running: task 0 \(until_fatal, line 1\)"
    )
    assert error.line == 2


@WORKERS
def test_a_loop_until_a_value_ends_when_a_task_fails(options):
    """There is no value then, and never will be."""

    def wait(args):
        raise ValueError("no value")

    with pytest.raises(ValueError, match="no value"):
        suite.run("for_ever", [zeros(1)], kernels={"wait": wait}, **options)
