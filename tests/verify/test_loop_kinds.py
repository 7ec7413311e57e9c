"""UnrollResolved, PipelineResolved, PipelineLoopValid."""

from verify_kit import expect, holds, main, nodes, program, swapped

from pypto import ir
from pypto.ir.node import FrozenDict
from pypto.verify.properties import IRProperty

LOOPS = "for i in pl.{0}:\n    for j in pl.{0}:\n        a = pl.exp(x)\nreturn x"
PIPELINE = "pipeline(4, stage=2)"


def test_unroll_resolved():
    p = IRProperty.UnrollResolved
    messages = expect(p, program(LOOPS.format("unroll(4)")), 0, 0)
    assert "'i'" in messages[0] and "'j'" in messages[1]
    holds(p, program(LOOPS.format("range(4)")))


def test_pipeline_resolved():
    p = IRProperty.PipelineResolved
    expect(p, program(LOOPS.format(PIPELINE)), 0, 0, says="ForKind::Pipeline survived past CanonicalizeIOOrder")
    holds(p, program(LOOPS.format("range(4)")))


def test_pipeline_loop_valid():
    p = IRProperty.PipelineLoopValid
    node = program(LOOPS.format(PIPELINE))
    holds(p, node)
    holds(p, program(LOOPS.format("parallel(4)")))
    _, inner = nodes(main(node), ir.ForStmt)
    expect(p, swapped(node, inner, inner.replace(attrs=FrozenDict())), 0, says="pipeline_stages")
    expect(p, swapped(node, inner, inner.replace(kind=ir.ForKind.Sequential)), 1, says="pipeline_stages")
