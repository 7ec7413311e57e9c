"""Verifiers do twice the work for twice the function, at any depth, and share one walk over the statements."""

import pytest
from test_frontend_growth import LIMIT, calls_of

import pypto.language as pl
from pypto import ir
from pypto.verify.registry import VERIFIERS

HEAD = """
import pypto.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[8, 8], pl.FP32], b: pl.Out[pl.Tensor[[8, 8], pl.FP32]]) -> pl.Tensor[[8, 8], pl.FP32]:
        r = pl.store(pl.load(a, [0, 0], [8, 8]), [0, 0], b)
        return r
    @pl.function
    def main(self, x: pl.Tensor[[8, 8], pl.FP32], g: pl.Tensor[[64], pl.INT32], n: pl.Scalar[pl.INDEX],
             y: pl.Out[pl.Tensor[[8, 8], pl.FP32]]) -> pl.Tensor[[8, 8], pl.FP32]:
"""
TAIL = "        return y\n"
PAD = " " * 8


def lines(n, one):
    return "".join(PAD + line + "\n" for i in range(n) for line in one.format(i=i, e=i % 8).split("\n"))


def straight(n):
    return lines(n, "v_{i} = pl.add(x, {i}.0)")


def windows(n):
    return lines(n, "v_{i} = x[n * 2 + {e}:n * 2 + {e} + 1, 0:8]")


def calls(n):
    return lines(n, "y = self.k(x, y)")


def nested(n):
    return lines(n, "v_{i} = pl.add(pl.exp(x), pl.neg(pl.exp(x)))")


def branches(n):
    return lines(n, "if n > {i}:\n    y = self.k(x, y)\nelse:\n    v_{i} = pl.neg(x)")


def loops(n):
    return lines(n, "for i_{i} in pl.range(4):\n    v_{i} = pl.add(x, 1.0)")


def scopes(n):
    return lines(n, "with pl.at(level=pl.Level.CORE_GROUP):\n    y = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], y)")


def long_expression(n):
    return f"{PAD}s = n{' + n * 2' * n}\n"


def depth(levels, width):
    """Loops, branches and scopes in one another, with statements at each level."""
    text, pad = "", PAD
    for d in range(levels):
        text += "".join(f"{pad}v_{d}_{w} = pl.add(x, {w}.0)\n" for w in range(width))
        text += pad + (f"for i_{d} in pl.range(4):\n", f"if n > {d}:\n", f"while n > {d}:\n")[d % 3]
        pad += "    "
    return text + f"{pad}z = pl.neg(x)\n"


def carried(levels):
    """Loops in one another that carry the tensor which the innermost one hands to a kernel."""
    text, pad, name = "", PAD, "y"
    for d in range(levels):
        text += f"{pad}for i_{d}, (y_{d},) in pl.range(4, init_values=({name},)):\n"
        pad, name = pad + "    ", f"y_{d}"
    text += f"{pad}r = self.k(x, {name})\n"
    name = "r"
    for d in reversed(range(levels)):
        text += f"{pad}r_{d} = pl.yield_({name})\n"
        pad, name = pad[4:], f"r_{d}"
    return text


def parsed(body):
    return pl.parse(HEAD + body + TAIL)


def verify_everything(program):
    for verifier in VERIFIERS.values():
        for function in program.functions.values():
            verifier.run(function, program)


def work(body):
    """Calls made by all verifiers on a program that they have not seen."""
    program = parsed(body)
    return calls_of(lambda: verify_everything(program))


SHAPES = [straight, windows, calls, nested, branches, loops, scopes, long_expression]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.__name__)
def test_all_verifiers_are_linear(shape):
    work(shape(4))
    assert work(shape(200)) <= LIMIT * work(shape(100))


def test_linear_at_depth_16():
    work(depth(3, 2))
    assert work(depth(16, 20)) <= LIMIT * work(depth(16, 10))
    assert work(depth(16, 10)) <= LIMIT * work(depth(8, 10))


def test_launches_cost_the_same_at_any_depth():
    work(carried(2))
    assert work(carried(16)) <= LIMIT * work(carried(8))
    assert work(carried(32)) <= LIMIT * work(carried(16))


def test_the_statements_are_walked_once():
    """All verifiers share one inventory: a second function object is needed for a second walk."""
    program = parsed(straight(50))
    verify_everything(program)
    seen = calls_of(lambda: verify_everything(program))
    again = ir.Program([f.replace() for f in program.functions.values()])
    assert seen < calls_of(lambda: verify_everything(again))
