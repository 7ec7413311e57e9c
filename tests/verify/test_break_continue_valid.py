"""BreakContinueValid: by the innermost loop."""

import pytest
from verify_kit import HERE, expect, holds, main, nodes, program, swapped, with_main

from pypto import ir
from pypto.verify.codes import BreakContinueErrorType as Code
from pypto.verify.properties import IRProperty

P = IRProperty.BreakContinueValid
LOOP = "for i in pl.{}:\n    if i > 1:\n        a = pl.exp(x)\nreturn x"
LEAVES = [(ir.BreakStmt, 0), (ir.ContinueStmt, 1)]


def leaving(body, cls, at=0):
    """The program with a break or continue in the place of an assignment."""
    node = program(body)
    return swapped(node, nodes(main(node), ir.AssignStmt)[at], cls(HERE))


@pytest.mark.parametrize("cls, second", LEAVES)
@pytest.mark.parametrize(
    "loop, codes",
    [
        ("parallel(4)", (Code.BREAK_IN_PARALLEL_LOOP, Code.CONTINUE_IN_PARALLEL_LOOP)),
        ("unroll(4)", (Code.BREAK_IN_UNROLL_LOOP, Code.CONTINUE_IN_UNROLL_LOOP)),
    ],
)
def test_loops_that_can_not_be_left(cls, second, loop, codes):
    [message] = expect(P, leaving(LOOP.format(loop), cls), codes[second])
    assert "'i'" in message


@pytest.mark.parametrize("cls, second", LEAVES)
def test_outside_a_loop(cls, second):
    code = (Code.BREAK_OUTSIDE_LOOP, Code.CONTINUE_OUTSIDE_LOOP)[second]
    expect(P, leaving("a = pl.exp(x)\nreturn x", cls), code, says="outside loop")
    expect(P, leaving("if n > 0:\n    a = pl.exp(x)\nreturn x", cls), code)


@pytest.mark.parametrize("cls, second", LEAVES)
def test_loops_that_can_be_left(cls, second):
    del second
    holds(P, leaving(LOOP.format("range(4)"), cls))
    holds(P, leaving(LOOP.format("pipeline(4, stage=2)"), cls))
    holds(P, leaving("while n > 0:\n    a = pl.exp(x)\nreturn x", cls))


def test_the_innermost_loop_decides():
    inner = "for i in pl.{}:\n    for j in pl.{}:\n        a = pl.exp(x)\nreturn x"
    holds(P, leaving(inner.format("parallel(4)", "range(4)"), ir.BreakStmt))
    expect(P, leaving(inner.format("range(4)", "parallel(4)"), ir.BreakStmt), 301)
    scope = "for i in pl.parallel(4):\n    with pl.at(level=pl.Level.CORE_GROUP):\n        a = pl.exp(x)\nreturn x"
    expect(P, leaving(scope, ir.BreakStmt), 301)


def test_several_findings():
    node = program("a = pl.exp(x)\nreturn x")
    body = ir.SeqStmts([ir.BreakStmt(HERE), ir.ContinueStmt(HERE), ir.BreakStmt(HERE)])
    expect(P, with_main(node, body=body), 305, 305, 306)
