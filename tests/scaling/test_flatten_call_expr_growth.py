"""FlattenCallExpr does twice the work for twice the program."""

import pytest
from test_frontend_growth import LIMIT, calls_of

import pypto.language as pl
from pypto import ir
from pypto.passes.flatten_call_expr import flatten_call_expr

HEAD = """
import pypto.language as pl
from pypto import ir
@pl.function
def f(x: pl.Tensor[[8, 8], pl.FP32], g: pl.Tensor[[64], pl.INT32], n: pl.Scalar[pl.INDEX]) -> pl.Tensor[[8, 8], pl.FP32]:
"""


def nested_arguments(n):
    return "".join(f"    v_{i} = pl.add(pl.exp(x), pl.mul(pl.neg(x), {i}.0))\n" for i in range(n))


def nothing_nested(n):
    return "".join(f"    v_{i} = pl.add(x, {i}.0)\n" for i in range(n))


def conditions(n):
    return "".join(f"    if pl.read(g, [{i % 64}]) > 0:\n        v_{i} = pl.exp(x)\n" for i in range(n))


def whiles(n):
    one = "    for (i_{0},) in pl.while_(init_values=(n,)):\n        pl.cond(pl.read(g, [i_{0}]) > 0)\n"
    one += "        pl.write(g, [i_{0}], pl.const(0, pl.INT32))\n        r_{0} = pl.yield_(i_{0} + 1)\n"
    return "".join(one.format(i) for i in range(n))


def extents(n):
    one = "    u_{0} = pl.create_tensor([pl.read(g, [{1}]), 8], dtype=pl.FP32)\n    w_{0} = pl.add(u_{0}, 1.0)\n"
    return "".join(one.format(i, i % 64) for i in range(n))


def one_long_expression(n):
    return f"    s = n{' + pl.read(g, [n])' * n}\n"


def nested_loops(depth, width):
    """Loops around loops, with nested calls at every level."""
    lines = []
    for d in range(depth):
        pad = "    " * (d + 1)
        lines += [f"{pad}for (i_{d},) in pl.while_(init_values=(n,)):", f"{pad}    pl.cond(pl.read(g, [i_{d}]) > 0)"]
        lines += [f"{pad}    v_{d}_{w} = pl.add(pl.exp(x), {w}.0)" for w in range(width)]
    for d in reversed(range(depth)):
        pad = "    " * (d + 1)
        lines += [f"{pad}    r_{d} = pl.yield_(i_{d} + 1)"]
    return "\n".join(lines) + "\n"


def work(body):
    """Calls made by flattening a program that was not looked at before."""
    node = pl.parse(HEAD + body + "    return x\n")
    program = ir.Program([node])
    return calls_of(lambda: flatten_call_expr()(program))


@pytest.mark.parametrize(
    "shape",
    [nested_arguments, nothing_nested, conditions, whiles, extents, one_long_expression],
    ids=lambda s: s.__name__,
)
def test_linear_in_statements(shape):
    work(shape(4))
    assert work(shape(120)) <= LIMIT * work(shape(60))


def test_linear_at_depth_16():
    work(nested_loops(2, 2))
    assert work(nested_loops(16, 12)) <= LIMIT * work(nested_loops(16, 6))
    assert work(nested_loops(16, 6)) <= LIMIT * work(nested_loops(8, 6))
