"""Runs without progress, within this process."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from test_isolation import KERNELS, SUBMIT_LINE, environment, program, run_kernel

from pypto.runtime.host_executor import RunOptions, TaskError


def test_a_kernel_that_takes_too_long_ends_the_run_and_the_next_one_works():
    with pytest.raises(TaskError) as caught:
        run_kernel("sleeps", 600, RunOptions(workers=2, timeout=0.4))
    error = caught.value
    assert (error.code, error.function, error.task, error.line) == (100, "sleeps", "#1", SUBMIT_LINE)
    assert "Running: task 1 (sleeps, line 100), awaited by 2; waiting: task 2 (fine, line 100)" in str(error)
    assert "isolate" not in str(error)  # it ended soon enough: nothing is left behind
    assert run_kernel("fine", options=RunOptions(workers=2, timeout=0.4)).tolist() == [3] * 4


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_run_that_goes_on_is_not_ended_however_long_it_takes(workers):
    array = np.zeros(1, np.int64)
    slow = [KERNELS.index("sleeps"), 300]
    for _ in range(2):
        program().run([array], slow, RunOptions(workers=workers, timeout=5))
    assert array.tolist() == [4]


def test_python_kernels_may_be_late_too():
    import time

    from test_isolation import library

    from pypto.runtime.host_executor import HostProgram, Kernel

    late = HostProgram(library(), [Kernel("late", lambda args: time.sleep(0.6))], entry="each_tensor", config=None)
    with pytest.raises(TaskError, match="late") as caught:
        late.run([np.zeros(1, np.int64)], [], RunOptions(workers=1, timeout=0.4))
    assert caught.value.code == 100


def test_a_kernel_that_never_ends_leaves_its_thread_and_says_what_helps():
    # In a process of its own, with which the thread ends.
    text = f"""
        import os, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from test_timeouts import *
        try:
            run_kernel("never_ends", options=RunOptions(workers=2, timeout=0.2))
        except TaskError as error:
            assert error.code == 100 and error.function == "never_ends", error
            assert "still inside kernels" in str(error) and "isolate=True" in str(error), error
            assert run_kernel("fine", options=RunOptions(workers=2)).tolist() == [3] * 4
            print("as expected", flush=True)
        os._exit(0)
    """
    command = [sys.executable, "-c", textwrap.dedent(text)]
    done = subprocess.run(command, stdout=subprocess.PIPE, env=environment(), timeout=120)
    assert done.stdout.strip() == b"as expected"
