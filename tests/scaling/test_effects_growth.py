"""The effects of a body cost twice as much for twice the depth of its loops."""

import pytest
from test_frontend_growth import LIMIT, calls_of

import pypto.language as pl
from pypto.analysis.effects import tensor_effects

HEAD = """
@pl.program
class P:
    @pl.function
    def main(self, x: pl.Tensor[[4, 8], pl.FP32], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]]):
"""


def nest(depth: int, carried: bool) -> str:
    """Loops in one another, all of which write ``y``; with ``carried`` each takes it over as a carry."""
    text, name, pad = HEAD, "y", " " * 8
    for d in range(depth):
        carry = f", (y{d},) in pl.range(2, init_values=({name},))" if carried else " in pl.range(2)"
        text += f"{pad}for i{d}{carry}:\n"
        pad += "    "
        name = f"y{d}" if carried else name
    text += f"{pad}z = pl.tensor.assemble({name}, x, [0, 0])\n"
    name = "z"
    for d in reversed(range(depth if carried else 0)):
        text += f"{pad}r{d} = pl.yield_({name})\n"
        pad = pad[4:]
        name = f"r{d}"
    return text


def work(depth: int, carried: bool) -> int:
    program = pl.parse(nest(depth, carried))
    body = program.get_function("main").body
    return calls_of(lambda: tensor_effects(body, {}))


@pytest.mark.parametrize("carried", [False, True])
def test_linear_in_the_depth_of_loops(carried):
    work(2, carried)
    assert work(16, carried) <= LIMIT * work(8, carried)
    assert work(32, carried) <= LIMIT * work(16, carried)
