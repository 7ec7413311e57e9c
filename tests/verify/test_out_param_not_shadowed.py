"""OutParamNotShadowed: an output is written, not replaced."""

import pytest
from verify_kit import expect, holds, main, program, with_main

from pypto import ir
from pypto.verify.properties import IRProperty

P = IRProperty.OutParamNotShadowed


@pytest.mark.parametrize(
    "made, op",
    [
        ("pl.create_tensor([8, 8], dtype=pl.FP32)", "tensor.create"),
        ("pl.full([8, 8], dtype=pl.FP32, value=0.0)", "tensor.full"),
    ],
)
@pytest.mark.parametrize("direction", [ir.ParamDirection.Out, ir.ParamDirection.InOut])
def test_output_that_is_made_anew(made, op, direction):
    node = program(f"y = {made}\nreturn y")
    directions = [*main(node).param_directions[:-1], direction]
    node = with_main(node, param_directions=type(main(node).param_directions)(directions))
    [message] = expect(P, node, 501, says="cannot be reassigned via")
    assert "'y'" in message and op in message and direction.name in message


def test_in_branches_and_loops():
    made = "pl.create_tensor([8, 8], dtype=pl.FP32)"
    expect(P, program(f"for i in pl.range(4):\n    y = {made}\n    if n > 0:\n        y = {made}\nreturn y"), 501, 501)


def test_what_may_be():
    holds(P, program("y = self.k(x, y)\nreturn y"))
    holds(P, program("x = pl.create_tensor([8, 8], dtype=pl.FP32)\nreturn x"))
    holds(P, program("z = pl.create_tensor([8, 8], dtype=pl.FP32)\nreturn z"))
    holds(P, program("y = pl.add(x, 1.0)\nreturn y"))  # a warning of its own
