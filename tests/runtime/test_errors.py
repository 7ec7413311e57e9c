"""Errors of running programs: the line at fault, the function, the task; and the process goes on."""

import re

import numpy as np
import pytest
from run_support import F32, call, kernel, program, ramp

from pypto.ops.values import ArrayValue
from pypto.runtime.errors import ProgramError
from pypto.runtime.interpreter import Interpreter


def arrays():
    return [ramp(4, 8), np.zeros((4, 8), F32)]


def fails(found, *args, **config):
    with pytest.raises(ProgramError) as caught:
        call(found, *args, **config)
    return caught.value


BODY = """
a = pl.load(x, [0, 0], [2, 8])
a = pl.add(a, 1.0)
b = {load}
o = {store}
"""
LOAD, STORE = "pl.load(x, [n, 0], [2, 8])", "pl.store(b, [m, 0], o)"
PARAMS = (
    "x: pl.Tensor[[4, 8], pl.FP32], n: pl.Scalar[pl.INDEX], m: pl.Scalar[pl.INDEX], "
    "o: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]"
)
FIRST_LINE = 8  # of the body, in the file that ``kernel`` makes


@pytest.mark.parametrize(
    ("n", "m", "line", "operation"), [(3, 0, FIRST_LINE + 2, "tile.load"), (0, 3, FIRST_LINE + 3, "tile.store")]
)
def test_windows_that_leave_their_tensor(n, m, line, operation):
    found = kernel(BODY.format(load=LOAD, store=STORE), PARAMS)
    call(found, arrays()[0], 1, 2, arrays()[1])
    error = fails(found, arrays()[0], n, m, arrays()[1])
    assert str(error).startswith(operation) and "out of range" in str(error)
    assert (error.span.filename, error.span.begin_line) == ("case.py", line)
    assert error.function == "f" and error.task.startswith("f#")
    assert re.search(rf"\(at case\.py:{line}:\d+, in 'f', task f#0\)$", str(error))


def test_undefined_values_that_reach_the_caller():
    body = BODY.format(load="pl.add(a, pl.create_tile([2, 8], dtype=pl.FP32))", store="pl.store(b, [1, 0], o)")
    error = fails(kernel(body, PARAMS), arrays()[0], 0, 0, arrays()[1])
    assert "'o' ends with undefined values (first at index [1, 0])" in str(error)
    assert error.span.begin_line == FIRST_LINE + 3


@pytest.mark.parametrize("schedule", ["default", "random"])
def test_reading_what_no_task_wrote(schedule):
    found = program(
        """
        tmp = pl.create_tensor([4, 8], dtype=pl.FP32)
        y = self.scale(tmp, 2.0, y)
        """
    )
    error = fails(found, *arrays(), schedule=schedule)
    assert "'y' ends with undefined values" in str(error)
    # In both orders the statement of the kernel is named that stored them.
    assert error.span.filename == "case.py"


def test_undefined_values_that_are_overwritten_are_no_error():
    found = program(
        """
        tmp = pl.create_tensor([4, 8], dtype=pl.FP32)
        y = self.scale(tmp, 2.0, y)
        y = self.copy(x, y)
        """
    )
    x, y = arrays()
    call(found, x, y)
    np.testing.assert_array_equal(x, y)


def test_undefined_values_that_are_returned():
    found = program("tmp = pl.create_tensor([4, 8], dtype=pl.FP32)\nreturn tmp", "x: pl.Tensor[[4, 8], pl.FP32]")
    assert "returned value 0 holds undefined values" in str(fails(found, arrays()[0]))


def test_an_unbound_name():
    found = program(
        "if n > 0:\n    row = n\ny = self.bump_row(y, row, 1.0)",
        "n: pl.Scalar[pl.INDEX], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]",
    )
    call(found, 1, arrays()[1])
    error = fails(found, 0, arrays()[1])
    assert "'row' is used before it has a value" in str(error)
    assert error.function == "main"


def test_a_row_outside_of_the_tensor():
    found = program("y = self.bump_row(y, n, 1.0)", "n: pl.Scalar[pl.INDEX], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]")
    for n in (4, -1):
        error = fails(found, n, arrays()[1])
        assert "out of range" in str(error) and error.task == "bump_row#0"


def test_what_a_function_takes():
    """The interpreter checks every activation, also where no compiled program has checked the caller's arrays."""
    found = kernel(
        "o = pl.store(pl.load(x, [0, 0], [2, 8]), [0, 0], o)",
        "x: pl.Tensor[[M, 8], pl.FP32], o: pl.InOut[pl.Tensor[[M, 8], pl.FP32]]",
    )
    function = found.get_function("f")

    def run(*arrays):
        Interpreter(found).run(function, [ArrayValue(a) for a in arrays])

    run(ramp(4, 8), ramp(4, 8))
    for arrays_, phrase in (
        ((ramp(4, 8), ramp(5, 8)), "dynamic dimension 'M' is 4 before but 5 in 'o'"),
        ((ramp(4, 9), ramp(4, 8)), "has extent 9 in dimension 1, the parameter has 8"),
        ((ramp(4, 8).astype(np.float16), ramp(4, 8)), "has element type float16, the parameter has fp32"),
        ((ramp(8), ramp(4, 8)), "has rank 1, the parameter has rank 2"),
        ((ramp(4, 8),), "takes 2 arguments, got 1"),
    ):
        with pytest.raises(ProgramError, match=re.escape(phrase)):
            run(*arrays_)


def test_a_loop_step_of_zero():
    found = program(
        "for i in pl.range(0, 4, n):\n    y = self.bump(y, 1.0)",
        "n: pl.Scalar[pl.INDEX], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]",
    )
    assert "step of a loop is zero" in str(fails(found, 0, arrays()[1]))


def test_no_blocks():
    found = program(
        "y, _ = pl.spmd_submit(self.bump, y, 1.0, core_num=n)",
        "n: pl.Scalar[pl.INDEX], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]",
    )
    assert "core_num must be positive" in str(fails(found, 0, arrays()[1]))


def test_strided_outputs_are_untouched_by_a_failed_run_and_the_next_run_works():
    found = program(
        "y = self.copy(x, y)\ny = self.bump_row(y, n, 1.0)",
        "n: pl.Scalar[pl.INDEX], x: pl.Tensor[[4, 8], pl.FP32], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]",
    )
    x = ramp(4, 8)
    y = np.zeros((4, 16), F32)[:, ::2]
    fails(found, 9, x, y)
    assert not y.any()
    call(found, 0, x, y)
    np.testing.assert_array_equal(y[1:], x[1:])


def test_a_plain_text_of_the_whole_error():
    error = ProgramError("it went wrong")
    assert str(error) == "it went wrong" and error.span is None and error.source_line() == ""
