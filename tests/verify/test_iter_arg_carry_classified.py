"""IterArgCarryClassified: each carry of an orchestration is stamped, and with what it is."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "programs"))

from spec_kit import parse
from verify_kit import expect, holds

from pypto import ir
from pypto.ir.node import FrozenDict
from pypto.ir.tree import walk
from pypto.passes.classify_iter_arg_carry import classify_iter_arg_carry
from pypto.verify.properties import IRProperty

P = IRProperty.IterArgCarryClassified

TEXT = """
@InCore
def k(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    y1 = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], y)
    return y
@Orchestration
def main(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]], z: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    t0 = pl.system.task_invalid()
    with pl.manual_scope():
        for i, (c, d, t) in pl.parallel(4, init_values=(y, z, t0)):
            e, u = pl.submit(self.k, x, c)
            r, s, v = pl.yield_(e, x, u)
    return y
"""
RIGHT = {
    "iter_arg_rebind_0": False,
    "iter_arg_rebind_1": True,
    "iter_arg_rebind_2": True,
    "iter_arg_array_size_2": 4,
}


def stamped(attrs: dict) -> ir.Program:
    program = parse(TEXT)
    function = program.get_function("main")

    class Stamp(ir.IRMutator):
        def visit_for_stmt(self, op):
            return op.replace(attrs=FrozenDict(attrs))

    new = function.replace(body=Stamp().visit_stmt(function.body))
    return program.with_functions([new if f is function else f for f in program.functions.values()])


def test_what_the_pass_says():
    program = classify_iter_arg_carry()(parse(TEXT))
    (loop,) = (s for s in walk(program.get_function("main").body) if isinstance(s, ir.ForStmt))
    assert dict(loop.attrs) == RIGHT
    holds(P, program)
    holds(P, stamped(RIGHT))


def test_missing_stamps():
    texts = expect(P, parse(TEXT), 0, 0, 0)
    assert 'has no attrs["iter_arg_rebind_0"]' in texts[0] and 'has no attrs["iter_arg_rebind_2"]' in texts[2]
    assert "'c'" in texts[0] and "'i'" in texts[0]
    expect(P, stamped({k: v for k, v in RIGHT.items() if k != "iter_arg_rebind_1"}), 0, says="iter_arg_rebind_1")


def test_an_array_for_a_carry_that_needs_no_variable():
    expect(P, stamped({**RIGHT, "iter_arg_array_size_0": 4}), 1, says='attrs["iter_arg_array_size_0"]')


def test_another_class():
    expect(P, stamped({**RIGHT, "iter_arg_rebind_0": True}), 2, says="stamped as rebind, but is trivial")
    expect(P, stamped({**RIGHT, "iter_arg_rebind_1": False}), 2, says="stamped as trivial, but is rebind")
    expect(P, stamped({**RIGHT, "iter_arg_array_size_2": 3}), 2, says="stamped for 3 task ids, but has to hold 4")


def test_functions_that_are_no_orchestration():
    holds(P, parse(TEXT.replace("@Orchestration\ndef main", "@Opaque\ndef main")))
