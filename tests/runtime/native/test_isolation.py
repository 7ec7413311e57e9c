"""Runs in a worker process: what a crash leaves behind, and that the session goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from pypto.runtime import isolation
from pypto.runtime.build import build, load
from pypto.runtime.host_executor import HostProgram, Kernel, RunOptions, TaskError
from pypto.runtime.native_library import SOURCES, task_runtime

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="isolate=True is not implemented on Windows")

KERNELS = "fine segmentation division aborts killed exits overflows throws sleeps never_ends pid".split()
SUBMIT_LINE, CRASH_LINE = 100, 200  # of crashes.cpp, by its #line
ISOLATED = RunOptions(isolate=True, workers=2)


@cache
def library():
    return load(build([Path(__file__).with_name("crashes.cpp")], include_dirs=[SOURCES], flags=["-O0"], name="crashes"))


def program(entry="three_tasks", first="fine", **options):
    names = [first, *(name for name in KERNELS if name != first)]
    return HostProgram(
        library(), [Kernel(name, library()[name]) for name in names], entry=entry, config=None, **options
    )


def run_kernel(kernel, argument=0, options=ISOLATED, array=None):
    """Three tasks, of which the second runs ``kernel``."""
    array = np.zeros(4, np.int64) if array is None else array
    program().run([array], [KERNELS.index(kernel), argument], options)
    return array


def crash(kernel, argument=0, options=ISOLATED):
    array = np.full(4, 7, np.int64)
    with pytest.raises(TaskError) as caught:
        run_kernel(kernel, argument, options, array)
    assert array.tolist() == [7] * 4  # nothing of a failed run comes back
    return caught.value


def worker_pid():
    array = np.zeros(1, np.int64)
    program("each_tensor", first="pid").run([array], [], ISOLATED)
    return int(array[0])


# --- runs that succeed ------------------------------------------------------------------------------------------------


def test_results_come_back_from_another_process_which_stays():
    assert run_kernel("fine").tolist() == [3] * 4
    pid = worker_pid()
    assert pid != os.getpid()
    assert worker_pid() == pid


def test_counters_and_records_are_those_of_the_run_itself():
    results = {}
    for isolate in (False, True):
        options = RunOptions(isolate=isolate, workers=1, record=True)
        results[isolate] = program().run([np.zeros(4, np.int64)], [0, 0], options)
    here, there = results[False], results[True]
    assert [len(array) for array in there.records] == [len(array) for array in here.records]
    assert [(t.number, t.line, list(t.kernels)) for t in there.records[0]] == [
        (t.number, t.line, list(t.kernels)) for t in here.records[0]
    ]
    assert there.counters.tasks == 3
    assert [(e.producer, e.consumer) for e in there.records[1]] == [(0, 1), (1, 2)]


def test_strided_overlapping_read_only_and_empty_arrays():
    base = np.arange(12, dtype=np.int64).reshape(6, 2)
    column, even, twice = base[:, 1], base[::2, 0], base[:, 1]
    read_only = np.zeros(3, np.int64)
    read_only.flags.writeable = False
    empty = np.zeros((0,), np.int64)
    program("each_tensor").run([column, even, twice, read_only, empty], [], ISOLATED)
    expected = np.arange(12).reshape(6, 2)
    expected[:, 1] += 2
    expected[::2, 0] += 1
    np.testing.assert_array_equal(base, expected)
    assert not read_only.any()


def test_an_array_larger_than_all_before_and_than_what_is_kept(monkeypatch):
    monkeypatch.setattr(isolation, "KEEP_BYTES", 1 << 16)
    for size in (10, 1 << 17, 20, 1 << 18, 1 << 18):
        array = np.arange(size, dtype=np.int64)
        program("each_tensor").run([array], [], ISOLATED)
        np.testing.assert_array_equal(array, np.arange(1, size + 1))


def test_runs_of_several_threads_at_once():
    arrays = [np.zeros(4, np.int64) for _ in range(3)]
    threads = [threading.Thread(target=run_kernel, args=("sleeps", 100, ISOLATED, a)) for a in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(array.tolist() == [2] * 4 for array in arrays)


# --- runs that crash --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "what"),
    [
        ("segmentation", "segmentation fault at address 0x10,"),
        ("division", "arithmetic fault"),
        ("aborts", "abort()"),
        ("killed", "was killed"),
        ("exits", "status 3"),
        ("overflows", "segmentation fault"),  # of the stack: the handler needs one of its own
    ],
)
def test_a_crash_names_kernel_task_and_line_and_the_next_run_works(kernel, what):
    if kernel == "division" and os.uname().machine not in ("x86_64", "AMD64", "i686"):
        pytest.skip("dividing by zero is no fault on this processor")
    error = crash(kernel, 16)
    assert error.code == 101
    assert what in str(error)
    assert (error.function, error.task, error.line) == (kernel, "#1", SUBMIT_LINE)
    assert run_kernel("fine").tolist() == [3] * 4


def test_the_users_own_line_is_named(tmp_path):
    class Span:
        filename, begin_line, begin_column, end_line, end_column = "model.py", 42, 1, 42, 9

        def is_valid(self):
            return True

    with pytest.raises(TaskError, match=r"model\.py.*42"):
        program(positions=lambda line: Span() if line == SUBMIT_LINE else None).run(
            [np.zeros(4, np.int64)], [KERNELS.index("aborts"), 0], ISOLATED
        )


def test_a_crash_of_the_orchestration_names_its_last_submit():
    with pytest.raises(TaskError, match="segmentation fault at address 0x10, in the orchestration") as caught:
        program("crash_between_tasks").run([np.zeros(4, np.int64)], [], ISOLATED)
    assert (caught.value.code, caught.value.line, caught.value.task) == (101, CRASH_LINE, "")


def test_other_errors_are_as_without_isolation_and_keep_the_worker():
    pid = worker_pid()
    error = crash("throws")
    assert (error.code, error.function, error.line) == (101, "throws", SUBMIT_LINE)
    assert worker_pid() == pid


# --- runs that do not end -----------------------------------------------------------------------------------------------


def test_a_kernel_that_never_ends():
    start = time.monotonic()
    error = crash("never_ends", options=RunOptions(isolate=True, timeout=0.2))
    assert (error.code, error.function, error.task, error.line) == (100, "never_ends", "#1", SUBMIT_LINE)
    assert "isolate" not in str(error)  # nothing is left behind
    assert time.monotonic() - start < 60
    assert run_kernel("fine").tolist() == [3] * 4


def test_an_orchestration_that_never_ends():
    with pytest.raises(TaskError, match="no progress for .* s, in the orchestration") as caught:
        program("endless").run([], [], RunOptions(isolate=True, timeout=0.1))
    assert caught.value.code == 100
    assert run_kernel("fine").tolist() == [3] * 4


def test_an_interrupt_ends_the_run_and_its_worker():
    pid = worker_pid()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run_kernel("never_ends")
    finally:
        signal.signal(signal.SIGINT, before)
    assert not exists(pid)
    assert run_kernel("fine").tolist() == [3] * 4


# --- workers ------------------------------------------------------------------------------------------------------------


def exists(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_worker_that_was_killed_between_runs_is_replaced():
    pid = worker_pid()
    os.kill(pid, signal.SIGKILL)
    assert worker_pid() != pid


def test_a_worker_that_is_stopped_before_it_reads_is_no_crash_of_a_kernel():
    pid = worker_pid()
    os.kill(pid, signal.SIGSTOP)  # alive, as far as can be seen
    threading.Timer(0.2, os.kill, [pid, signal.SIGKILL]).start()
    assert run_kernel("fine").tolist() == [3] * 4


def test_workers_end_with_their_parent_even_in_the_middle_of_a_run():
    text = f"""
        import sys, os, threading
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from test_isolation import *
        print(worker_pid(), flush=True)
        threading.Timer(0.3, os._exit, [7]).start()
        run_kernel("never_ends")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], stdout=subprocess.PIPE, env=environment())
    assert done.returncode == 7
    until(lambda: not exists(int(done.stdout)))


def environment():
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCES.parents[2]), *sys.path])}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
def test_a_forked_child_has_workers_of_its_own():
    pid = worker_pid()
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if worker_pid() != pid and run_kernel("fine").tolist() == [3] * 4 else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert worker_pid() == pid


def test_the_monitor_is_that_of_the_worker():
    library = task_runtime().library
    library.pto_monitor_size.restype = isolation.ctypes.c_size_t
    assert library.pto_monitor_size() == isolation.ctypes.sizeof(isolation.Monitor)


# --- what can't be isolated ---------------------------------------------------------------------------------------------


def test_a_python_kernel_is_refused():
    def kernel(args):
        raise AssertionError("not called")

    program = HostProgram(library(), [Kernel("mine", kernel)], entry="each_tensor", config=None)
    with pytest.raises(TypeError, match="kernel 'mine' is a Python function"):
        program.run([np.zeros(1, np.int64)], [], ISOLATED)


def test_a_function_without_a_symbol_is_refused():
    place = isolation.ctypes.addressof(isolation.ctypes.create_string_buffer(8))
    program = HostProgram(library(), [Kernel("nowhere", place)], entry="each_tensor", config=None)
    with pytest.raises(TypeError, match="kernel 'nowhere' is no function that a shared library exports"):
        program.run([np.zeros(1, np.int64)], [], ISOLATED)
