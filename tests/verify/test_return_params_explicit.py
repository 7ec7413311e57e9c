"""ReturnParamsExplicit: kernels and wrappers return their parameters under their own name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "programs"))

from spec_kit import parse
from verify_kit import expect, holds

from pypto import ir
from pypto.ir.node import FrozenDict
from pypto.verify.facts import Facts
from pypto.verify.properties import IRProperty, property_set

P = IRProperty.ReturnParamsExplicit

KERNEL = """
@InCore
def k(self, x: f32[8, 8], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
    y1 = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], y)
    return {}
"""
WRAPPER = """
@Group
def w(self, x: f32[8, 8], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
    z = self.k(x, y)
    return {}
"""
TWO = """
@InCore
def two(self, p: pl.InOut[f32[8, 8]], q: pl.InOut[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8]]:
    return q, p
@Spmd
def v(self, p: pl.InOut[f32[8, 8]], q: pl.InOut[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8]]:
    r = self.two(p, q)
    return {}
"""


def test_the_parameter_itself():
    holds(P, parse(KERNEL.format("y") + WRAPPER.format("y") + TWO.format("q, p")))


def test_another_name_of_a_parameter():
    (text,) = expect(P, parse(KERNEL.format("y1")), 1, function="k", says="aliases param index 1")
    assert "param-writeback returns must reference the param directly" in text and "'y1'" in text


def test_wrappers_are_traced_through_their_callees():
    (text,) = expect(P, parse(KERNEL.format("y") + WRAPPER.format("z")), 1, function="w")
    assert "'z', aliases param index 1" in text


def test_a_tuple_that_is_handed_on():
    texts = expect(P, parse(TWO.format("r")), 1, 1, function="v")
    assert "'r[0]', aliases param index 1" in texts[0] and "'r[1]', aliases param index 0" in texts[1]


def test_no_return_statement():
    program = parse(KERNEL.format("y"))
    (function,) = program.functions.values()
    bare = program.with_functions([function.replace(body=ir.SeqStmts([], function.span))])
    expect(P, bare, 0, function="k", says="declares tensor return types but has no ReturnStmt")
    # What is written elsewhere has no body.
    (function,) = bare.functions.values()
    holds(P, bare.with_functions([function.replace(attrs=FrozenDict({"external_source": "k.cpp"}))]))
    # Without tensor results there is nothing to say.
    holds(P, bare.with_functions([function.replace(return_types=type(function.return_types)())]))


def test_what_is_no_kernel_may_return_what_it_likes():
    holds(
        P,
        parse(
            KERNEL.format("y") + WRAPPER.format("z").replace("@Group", "@Orchestration").replace("return z", "return z")
        ),
    )


def test_values_of_its_own():
    holds(P, parse("@InCore\ndef f(self, x: f32[8, 8]) -> f32[8, 8]:\n    y = pl.tensor.adds(x, 1.0)\n    return y\n"))


def test_a_fact_lasts_while_what_callees_return_is_the_same():
    """The wrapper's result is a buffer of the kernel's own, until the kernel returns its argument."""
    fresh = "@InCore\ndef k(self, x: f32[8, 8], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:\n    y1 = pl.tensor.adds(x, 1.0)\n    return y1\n"
    one = parse(fresh + WRAPPER.format("z"))
    other = parse(KERNEL.format("y") + WRAPPER.format("z")).get_function("k")
    wrapper, kernel = one.get_function("w"), one.get_function("k")
    # The same signature, to the object.
    changed = kernel.replace(body=ir.ReturnStmt([kernel.params[1]], other.span))
    facts, found = Facts(), property_set(P)
    assert facts.establish(found, one) == [] and facts.checks == 2
    assert facts.establish(found, one) == [] and facts.checks == 2
    second = one.with_functions([changed, wrapper])
    (finding,) = facts.establish(found, second)
    assert "'w'" in finding.message and not facts.holds(P, wrapper, second) and facts.holds(P, wrapper, one)
