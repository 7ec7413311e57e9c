"""Errors of running programs: the line at fault, the function, the task; and the process goes on."""

import re

import numpy as np
import pytest
from pypto.runtime.errors import ProgramError
from run_support import F32, call, kernel, program, ramp


def arrays():
    return [ramp(4, 8), np.zeros((4, 8), F32)]


def fails(found, *args, **config):
    with pytest.raises(ProgramError) as caught:
        call(found, *args, **config)
    return caught.value


BODY = """
a = pl.load(x, [0, 0], [4, 8])
{statement}
o = pl.store(b, [0, 0], o)
"""
FAULTS = {
    "a load that leaves its tensor": ("b = pl.load(x, [2, 0], [4, 8])", "out of range"),
    "a store that leaves its tensor": ("b = pl.add(a, 1.0)\no = pl.store(b, [1, 0], o)", "out of range"),
    "an undefined value": ("b = pl.add(a, pl.create_tile([4, 8], dtype=pl.FP32))", "undefined"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_line_of_a_kernel(fault):
    statement, phrase = FAULTS[fault]
    error = fails(kernel(BODY.format(statement=statement)), *arrays())
    assert phrase in str(error)
    # The body begins on line 5: head, decorator, class, decorator, def; the statement at fault is its second line.
    lines = BODY.format(statement=statement).strip().splitlines()
    wanted = [6 + lines.index(line) for line in statement.splitlines()]
    assert error.span.filename == "case.py" and error.span.begin_line in wanted
    assert error.function == "f" and error.task.startswith("f#")
    assert re.search(r"case\.py:\d+:\d+", str(error))


def test_reading_what_no_task_wrote():
    found = program(
        """
        tmp = pl.create_tensor([4, 8], dtype=pl.FP32)
        y = self.scale(tmp, 2.0, y)
        """
    )
    error = fails(found, *arrays())
    assert "undefined" in str(error) and error.function == "scale"
    error = fails(found, *arrays(), schedule="random")
    assert "undefined" in str(error)


def test_an_unbound_name():
    found = program("if n > 0:\n    row = n\ny = self.bump_row(y, row, 1.0)",
                    "n: pl.Scalar[pl.INDEX], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]")
    call(found, 1, arrays()[1])
    error = fails(found, 0, arrays()[1])
    assert "'row' is used before it has a value" in str(error)
    assert error.function == "main"


def test_a_row_outside_of_the_tensor():
    found = program("y = self.bump_row(y, n, 1.0)", "n: pl.Scalar[pl.INDEX], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]")
    for n in (4, -1):
        error = fails(found, n, arrays()[1])
        assert "out of range" in str(error) and error.task == "bump_row#0"


def test_dynamic_extents_must_agree_in_a_call():
    found = program(
        "y = self.both(x, y)",
        "x: pl.Tensor[[A, 8], pl.FP32], y: pl.InOut[pl.Tensor[[B, 8], pl.FP32]]",
        more="""
        @pl.function(type=pl.FunctionType.InCore)
        def both(self, a: pl.Tensor[[M, 8], pl.FP32], b: pl.InOut[pl.Tensor[[M, 8], pl.FP32]]
                 ) -> pl.Tensor[[M, 8], pl.FP32]:
            return pl.store(pl.load(a, [0, 0], [2, 8]), [0, 0], b)
        """,
    )
    x, y = ramp(4, 8), np.zeros((4, 8), F32)
    call(found, x, y)
    error = fails(found, x, np.zeros((5, 8), F32))
    assert "dynamic dimension 'M' is 4 before but 5 in 'b'" in str(error)


def test_a_loop_step_of_zero():
    found = program("for i in pl.range(0, 4, n):\n    y = self.bump(y, 1.0)",
                    "n: pl.Scalar[pl.INDEX], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]")
    assert "step of a loop is zero" in str(fails(found, 0, arrays()[1]))


def test_no_blocks():
    found = program("y, _ = pl.spmd_submit(self.bump, y, 1.0, core_num=n)",
                    "n: pl.Scalar[pl.INDEX], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]")
    assert "core_num must be positive" in str(fails(found, 0, arrays()[1]))


def test_strided_outputs_are_untouched_by_a_failed_run_and_the_next_run_works():
    found = program("y = self.copy(x, y)\ny = self.bump_row(y, n, 1.0)",
                    "n: pl.Scalar[pl.INDEX], x: pl.Tensor[[4, 8], pl.FP32], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]")
    x = ramp(4, 8)
    y = np.zeros((4, 16), F32)[:, ::2]
    fails(found, 9, x, y)
    assert not y.any()
    call(found, 0, x, y)
    np.testing.assert_array_equal(y[1:], x[1:])


def test_a_plain_text_of_the_whole_error():
    error = ProgramError("it went wrong")
    assert str(error) == "it went wrong" and error.span is None and error.source_line() == ""
