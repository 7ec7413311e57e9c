"""CallDirectionsResolved: each code, each direction that a parameter allows."""

import pytest
from verify_kit import expect, holds, main, nodes, program, submit_of, swapped

import pypto.language as pl
from pypto import ir
from pypto.ir.node import FrozenDict, FrozenList
from pypto.verify.call_directions_resolved import ALLOWED
from pypto.verify.properties import IRProperty

P = IRProperty.CallDirectionsResolved
D = ir.ArgDirection
BODY = "y = self.k(x, y)\nreturn y"


def with_directions(*directions, submit: bool = False):
    node = program(BODY)
    call = next(c for c in nodes(main(node), ir.Call) if type(c.op) is ir.GlobalVar)
    new = submit_of(call) if submit else call
    return swapped(node, call, new.replace(attrs=FrozenDict({"arg_directions": FrozenList(directions)})))


@pytest.mark.parametrize("submit", [False, True])
def test_a_launch_with_directions(submit):
    holds(P, with_directions(D.Input, D.OutputExisting, submit=submit))
    expect(P, with_directions(submit=submit), 0, says="arg_directions'] is missing/empty")
    expect(P, with_directions(D.Scalar, D.InOut, submit=submit), 2, says="expected a tensor's direction")
    expect(P, with_directions(D.OutputExisting, D.Input, submit=submit), 3, 3, says="does not allow")


def test_missing():
    expect(P, program(BODY), 0, says="arg_directions'] is missing/empty")


def test_one_for_each_argument():
    node = program(BODY)
    call = next(c for c in nodes(main(node), ir.Call) if type(c.op) is ir.GlobalVar)
    short = ir.Call(call.op, [call.args[0]], {}, {"arg_directions": [D.Input]}, call.type, call.span)
    wrong = short.replace(args=call.args)
    expect(P, swapped(node, call, wrong), 1, says="1 arg_directions for 2 arguments")


def test_allowed_directions():
    assert {p.name: sorted(d.name for d in found) for p, found in ALLOWED.items()} == {
        "In": ["Input", "NoDep"],
        "InOut": ["InOut", "NoDep", "OutputExisting"],
        "Out": ["InOut", "NoDep", "Output", "OutputExisting"],
    }


def test_a_scalar_argument():
    text = """
import pypto.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def s(self, a: pl.Tensor[[8, 8], pl.FP32], n: pl.Scalar[pl.INDEX]):
        t = pl.load(a, [n, 0], [1, 8])
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[8, 8], pl.FP32], n: pl.Scalar[pl.INDEX]):
        self.s(x, n, attrs={"arg_directions": [pl.adir.input, pl.adir.%s]})
"""
    holds(P, pl.parse(text % "scalar"))
    expect(P, pl.parse(text % "input"), 2, says="expected Scalar")


def test_a_wrapper_that_says_less_than_it_launches():
    text = """
import pypto.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[8, 8], pl.FP32], b: pl.Out[pl.Tensor[[8, 8], pl.FP32]]) -> pl.Tensor[[8, 8], pl.FP32]:
        b = pl.store(pl.load(a, [0, 0], [8, 8]), [0, 0], b)
        return b
    @pl.function(type=pl.FunctionType.Spmd)
    def w(self, a: pl.Tensor[[8, 8], pl.FP32], b: %s) -> pl.Tensor[[8, 8], pl.FP32]:
        r = self.k(a, b, attrs={"arg_directions": [pl.adir.input, pl.adir.output_existing]})
        return r
"""
    holds(P, pl.parse(text % "pl.Out[pl.Tensor[[8, 8], pl.FP32]]"))
    expect(P, pl.parse(text % "pl.Tensor[[8, 8], pl.FP32]"), 4, function="w", says="has stale param_directions_")
