"""NormalizedStmtStructure and NoRedundantBlocks: lists are flat, yields come last."""

import pytest
from verify_kit import expect, holds, main, nodes, program, with_main

from pypto import ir
from pypto.verify.properties import IRProperty

both = pytest.mark.parametrize("prop", [IRProperty.NormalizedStmtStructure, IRProperty.NoRedundantBlocks])
LOOP = "for i, (s,) in pl.range(4, init_values=(x,)):\n    a = pl.exp(s)\n    r = pl.yield_(a)\nreturn r"


def with_body(change):
    """The program with another body of its loop."""
    node = program(LOOP)
    loop, last = main(node).body.stmts
    return with_main(node, body=ir.SeqStmts([loop.replace(body=change(loop.body)), last]))


@both
def test_flat_lists_and_empty_ones(prop):
    holds(prop, program(LOOP))
    holds(prop, program("if n > 0:\n    pass\nreturn x"))
    holds(prop, program("return x"))


@both
def test_list_of_one(prop):
    expect(
        prop, with_body(lambda b: ir.SeqStmts([b.stmts[1]])), 0, says="SeqStmts with single child should be unwrapped"
    )
    node = program("return x")
    expect(prop, with_main(node, body=ir.SeqStmts([main(node).body])), 0, says="single child")


@both
def test_list_in_a_list(prop):
    expect(prop, with_body(lambda b: ir.SeqStmts([b.stmts[0], ir.SeqStmts(b.stmts)])), 0, says="nested SeqStmts")


@both
def test_several_findings_at_once(prop):
    deep = with_body(lambda b: ir.SeqStmts([ir.SeqStmts([b])]))
    found = expect(prop, deep, 0, 0, 0, 0)
    assert sum("single child" in m for m in found) == 2 and sum("nested" in m for m in found) == 2


@both
def test_yield_in_the_middle(prop):
    twice = with_body(lambda b: ir.SeqStmts([b.stmts[1], *b.stmts]))
    expect(prop, twice, 0, says="YieldStmt before the terminating position")


@both
def test_lists_in_scopes_and_branches(prop):
    node = program("if n > 0:\n    a = pl.exp(x)\nreturn x")
    [branch] = nodes(main(node), ir.IfStmt)
    for change in ({"then_body": ir.SeqStmts([branch.then_body])}, {"else_body": ir.SeqStmts([branch.then_body])}):
        stmts = [branch.replace(**change), main(node).body.stmts[1]]
        expect(prop, with_main(node, body=ir.SeqStmts(stmts)), 0)
