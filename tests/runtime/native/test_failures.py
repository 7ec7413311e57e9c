"""Runs that fail: what is said, what is left undone, and that the next run works."""

import re
import threading
import time

import numpy as np
import pytest
from native_kit import Suite, entry_name, zeros

from pypto.runtime import host_executor
from pypto.runtime.host_executor import HostProgram, RunOptions, TaskError

suite = Suite(
    "failures",
    include="#include <stdexcept>\n#include <sched.h>",
    more="""
    // Tells Python kernels, which run on the runtime's threads, whether their run has failed.
    PTO_EXPORT bool run_has_failed() { return rt_is_fatal(); }

    static std::atomic<bool> let_go{false};
    PTO_EXPORT void let_stuck_kernels_go(bool on) { let_go = on; }

    PTO_EXPORT PTO2OrchestrationConfig wants_three(const ChipTaskArgs&) {
        return PTO2OrchestrationConfig{.expected_arg_count = 3};
    }
    """,
)
suite.kernel("throws", 'throw std::runtime_error("the tile is " + std::to_string(args[1]));')
suite.kernel("throws_a_number", "throw 5;")
suite.kernel("reports", 'rt_report_fatal(pto::ERROR_PROGRAM, "row %d of %s", static_cast<int>(args[1]), "x");')
suite.kernel("asserts", "always_assert(args[1] == 0);")
suite.kernel("makes_a_wrong_view", "rows(tensor_of(args, 0), 3, 9);")
suite.kernel("until_fatal", "while (!rt_is_fatal()) sched_yield();")
suite.kernel("stuck", "while (!let_go) sched_yield();")
suite.kernel("python")

WORKERS = pytest.mark.parametrize(
    "options", [{"workers": 1}, {"workers": 2}, {"workers": 2, "timeout": 60}, {"random": True, "seed": 5}], ids=str
)

# --- errors of the orchestration --------------------------------------------------------------------------------------

# Text in which line 2 fails; the code; what is said.
ORCHESTRATION = {
    "reported": ('int rows = 3;\nrt_report_fatal(9, "%d rows of %s", rows, "x");', 9, "3 rows of x"),
    "reported by another code": ('\nrt_report_fatal(1234, "no");', 1234, "no"),
    "reported by code 0 is an error nevertheless": ('\nrt_report_fatal(0, "nothing");', 9, "nothing"),
    "assertion": ("int n = 1;\nalways_assert(n == 2);", 9, "line 2: assertion failed: n == 2"),
    "exception": ('\nthrow std::runtime_error("too many");', 9, "the orchestration threw an exception: too many"),
    "exception of another type": ("\nthrow 5;", 9, "the orchestration was stopped"),
    "no such tensor": ("\norch_args.tensor(1).ref();", 5, "no such tensor argument"),
    "no such scalar": ("\norch_args.scalar(0);", 5, "no such scalar argument"),
    "view": ("\nrows(x, 2, 3);", 5, "offset [+] extent is beyond the parent's shape"),
    "reshape to another size": (
        "const uint32_t shape[] = {5};\nx.reshape(shape, 1);",
        5,
        "the number of elements changes",
    ),
    "reshape to 6 dimensions": (
        "const uint32_t shape[] = {1, 1, 1, 1, 4, 2};\nx.reshape(shape, 6);",
        5,
        "more than 5 dim",
    ),
    "reshape of columns": ("const uint32_t shape[] = {4};\ncolumns(x, 0, 1).reshape(shape, 1);", 5, "not contiguous"),
    "transpose": ("\nx.transpose(0, 2);", 5, "no such dimension"),
    "permute": ("const uint32_t order[] = {1, 1};\nx.permute(order);", 5, "not a permutation"),
    "slice": ("\nx.slice(0, 1, 5);", 5, "no such range"),
    "slice by nothing": ("\nx.slice(0, 1, 2, 0);", 5, "no such range"),
    "kernel": ("\nlaunch(55, in(x));", 5, "there is no kernel 55"),
    "scope": ("PTO2_SCOPE(PTO2ScopeMode::MANUAL) {\nPTO2_SCOPE() {}\n}", 5, "AUTO scope inside a MANUAL one"),
}
_ENTRIES = {case: f"orchestration_{n}" for n, case in enumerate(ORCHESTRATION)}
for case, (body, _, _) in ORCHESTRATION.items():
    suite.entry(_ENTRIES[case], f"/**/{body}\nlaunch(id::add, inout(x), 1);")
suite.entry("good", "for (int64_t i = 0; i < n; ++i) launch(id::add, inout(x), 1);", scalars="n")


def assert_works(options):
    """The next run of the same options, and so of the same threads, is a good one."""
    x = zeros(1)
    suite.run("good", [x], [50], **options)
    assert x[0] == 50


@WORKERS
@pytest.mark.parametrize("case", ORCHESTRATION)
def test_errors_of_the_orchestration(case, options):
    _, code, text = ORCHESTRATION[case]
    x = zeros(4, 2)
    suite.fails(code, _ENTRIES[case], [x], match=text, **options)
    assert (x == 0).all()  # nothing behind the error was launched
    assert_works(options)


suite.entry(
    "goes_on",
    """
    launch(id::add, inout(x), 1);
    rt_report_fatal(9, "the first");
    always_assert(rt_is_fatal());
    rt_report_fatal(9, "the second");
    launch(77, in(x));
    PTO2_SCOPE() {
        const auto made = launch(id::add, matrix(2, 2), inout(y), 1);
        if (made.task_id().is_valid() || made.size() != 1) return;
        launch(id::add, inout(made.get_ref(0)), inout(y), 1);
        const auto more = alloc_tensors(matrix(2, 2), matrix(3, 3));
        launch(id::add, in(more.get_ref(1)), inout(y), 1);
        CoreTaskArgs args;
        args.add_inout(y);
        rt_submit_dummy_task(args);
        const uint32_t at[] = {0};
        set_tensor_data<float>(y, 1, at, 5);
        launch(id::add, inout(y), 1);
    }
    """,
    tensors="x y",
)


@WORKERS
def test_the_first_error_wins_and_later_calls_do_nothing(options):
    x, y = zeros(1), zeros(1)
    suite.fails(9, "goes_on", [x, y], match="^the first", **options)
    assert y[0] == 0
    assert_works(options)


def test_the_number_of_arguments_is_checked():
    program = HostProgram(suite.library, [], entry=entry_name("good"), config="wants_three")
    with pytest.raises(TaskError, match="the orchestration expects 3 arguments, 2 were given") as caught:
        program.run([zeros(1)], [0], RunOptions(workers=1))
    assert caught.value.code == 5


# --- errors of kernels ------------------------------------------------------------------------------------------------

KERNELS = {
    "throws": (101, "the kernel threw an exception: the tile is 7"),
    "throws_a_number": (101, "the kernel threw an exception"),
    "reports": (9, "row 7 of x"),
    "asserts": (9, "assertion failed: args[1] == 0"),
    "makes_a_wrong_view": (5, "view: offset + extent is beyond the parent's shape"),
}
for kernel in KERNELS:
    suite.entry(
        f"kernel_{kernel}",
        f"""
        launch(id::add, inout(x), 1);
        launch(id::{kernel}, inout(x), 7);
        launch(id::add, inout(x), 10);
        """,
    )


@WORKERS
@pytest.mark.parametrize("kernel", KERNELS)
def test_errors_of_kernels(kernel, options):
    code, text = KERNELS[kernel]
    x = zeros(4, 2)
    error = suite.fails(code, f"kernel_{kernel}", [x], match=re.escape(text), **options)
    assert error.line == 2
    assert error.function == kernel and error.task == "#1"
    assert f"in '{kernel}', task #1" in str(error) and "orchestration line 2" in str(error)
    assert (x == 1).all()  # consumers of the task did not run
    assert_works(options)


suite.entry(
    "part_fails",
    """
    CoreTaskArgs args;
    args.add_inout(x);
    args.add_scalar(int64_t{7});
    rt_submit_task(MixedKernels{id::nop, id::until_fatal, id::throws}, args);
    """,
)
suite.entry(
    "block_fails",
    """
    CoreTaskArgs args;
    args.add_inout(x);
    args.add_scalar(int64_t{7});
    args.launch_spec.set_block_num(100);
    rt_submit_aiv_task(id::throws, args);
    launch(id::add, inout(x), 10);
    """,
)


@WORKERS
def test_an_error_names_the_part_that_failed(options):
    error = suite.fails(101, "part_fails", [zeros(1)], match="the tile is 7", **options)
    assert error.function == "throws"
    assert_works(options)


@WORKERS
def test_blocks_that_fail(options):
    x = zeros(1)
    suite.fails(101, "block_fails", [x], match="the tile is 7", **options)
    assert x[0] == 0
    assert_works(options)


# --- Python kernels ---------------------------------------------------------------------------------------------------

suite.entry("python", "launch(id::python, inout(x));\nlaunch(id::add, inout(x), 1);")
suite.entry(
    "python_behind",
    'launch(id::python, inout(x));\nlaunch(id::python, inout(y));\nrt_report_fatal(9, "the first");',
    tensors="x y",
)


@WORKERS
@pytest.mark.parametrize("kind", [ValueError, KeyError, KeyboardInterrupt, SystemExit])
def test_what_a_python_kernel_raises_arrives(kind, options):
    x = zeros(1)
    raised = kind("very wrong")

    def python(args):
        raise raised

    with pytest.raises(kind) as caught:
        suite.run("python", [x], kernels={"python": python}, **options)
    assert caught.value is raised
    assert x[0] == 0
    assert_works(options)


def test_runs_at_the_same_time_get_their_own_errors():
    both = threading.Barrier(2)

    def python(args):
        both.wait(60)
        raise ValueError(str(args.tensor(0)[0]))

    program = suite.program("python", {"python": python})
    found = {}

    def run(number):
        try:
            program.run([np.full(1, number, np.float32)], [], RunOptions(workers=1))
        except ValueError as error:
            found[number] = str(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {1: "1.0", 2: "2.0"}
    assert not host_executor._raised


def test_what_a_python_kernel_raises_behind_the_first_error_does_not_replace_it():
    started = threading.Event()

    def python(args):
        started.set()
        while not suite.library.run_has_failed():
            time.sleep(0.001)
        raise ValueError("the second")

    suite.fails(
        9, "python_behind", [zeros(1), zeros(1)], match="^the first", kernels={"python": python}, workers=2, timeout=60
    )


# --- no progress ------------------------------------------------------------------------------------------------------

suite.entry(
    "no_progress",
    """
    launch(id::until_fatal, inout(x));
    launch(id::add, inout(x), 1);
    launch(id::nop, in(x));
    """,
)
suite.entry("no_progress_in_a_window", "for (;;) {\nlaunch(id::until_fatal, inout(x));\nif (rt_is_fatal()) break;\n}")
suite.entry("stuck", "launch(id::stuck, inout(x)); launch(id::add, inout(x), 1);")


@pytest.mark.parametrize("workers", [1, 2])
def test_no_progress(workers):
    x = zeros(1)
    error = suite.fails(100, "no_progress", [x], workers=workers, timeout=0.1, match="no task has ended for 0.1 s")
    assert (
        "Running: task 0 (until_fatal, line 1), awaited by 1; "
        "waiting: task 1 (add, line 2) for 1 producers task 2 (nop, line 3) for 1 producers"
    ) in str(error)
    assert x[0] == 0
    assert_works({"workers": workers})


def test_no_progress_while_a_window_is_full():
    error = suite.fails(100, "no_progress_in_a_window", [zeros(1)], window=4, workers=2, timeout=0.1)
    assert error.line == 2


def test_a_kernel_that_never_ends():
    """Its thread can't be ended, so the caller is told; other runs go on."""
    x = zeros(1)
    suite.library.let_stuck_kernels_go(False)
    try:
        error = suite.fails(100, "stuck", [x], workers=1, timeout=0.05, match=r"Running: task 0 \(stuck, line 1\)")
        assert "can't be stopped within this process" in str(error)
        assert_works({"workers": 1, "timeout": 60})
        assert x[0] == 0
    finally:
        suite.library.let_stuck_kernels_go(True)
