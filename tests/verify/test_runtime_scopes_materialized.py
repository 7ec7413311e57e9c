"""RuntimeScopesMaterialized: placed, and nested as the runtime allows."""

import pytest
from verify_kit import expect, holds, main, program, with_main

from pypto import ir
from pypto.analysis.task_marks import CANDIDATE
from pypto.ir.node import FrozenDict
from pypto.verify.properties import IRProperty

P = IRProperty.RuntimeScopesMaterialized


def scope(body: ir.Stmt, manual: bool, owned: bool = False) -> ir.RuntimeScopeStmt:
    attrs = FrozenDict({CANDIDATE: True}) if owned else FrozenDict()
    return ir.RuntimeScopeStmt(manual, body=body, span=body.span).replace(attrs=attrs)


def nested(*kinds: str) -> ir.Program:
    """``main`` with its body in these scopes, outermost first: AUTO, MANUAL of the user, OWNED by the compiler."""
    node = program("y = self.k(x, y)\nreturn y")
    body = main(node).body
    for kind in reversed(kinds):
        body = scope(body, kind != "AUTO", kind == "OWNED")
    return with_main(node, body=body, attrs=FrozenDict({"auto_scope": False}))


@pytest.mark.parametrize("attrs", [{}, {"auto_scope": True}])
def test_scopes_are_to_be_placed(attrs):
    node = with_main(program("y = self.k(x, y)\nreturn y"), attrs=FrozenDict(attrs))
    expect(P, node, 0, says="still has auto_scope=True")


@pytest.mark.parametrize("kind", ["Opaque", "InCore"])
def test_other_functions_have_none(kind):
    holds(P, program("return y", kind))


@pytest.mark.parametrize(
    ("kinds", "codes"),
    [
        ((), ()),
        (("AUTO", "AUTO", "MANUAL"), ()),
        (("OWNED",), ()),
        (("OWNED", "MANUAL"), ()),
        (("MANUAL", "AUTO"), (1,)),
        (("OWNED", "AUTO"), (1,)),
        (("MANUAL", "MANUAL"), (2,)),
        (("MANUAL", "OWNED"), (2,)),
        (("MANUAL", "AUTO", "MANUAL"), (1, 2)),
    ],
)
def test_nesting(kinds, codes):
    says = "MANUAL scope" if codes else ""
    expect(P, nested(*kinds), *codes, says=says)


def test_a_loop_in_between_does_not_hide_the_scope_around():
    node = program("for i in pl.range(3):\n    y1 = self.k(x, y)\nreturn y")
    loop = next(s for s in ir.flatten_to_stmts(main(node).body) if isinstance(s, ir.ForStmt))
    body = ir.SeqStmts([scope(loop.replace(body=scope(loop.body, False)), True)])
    expect(P, with_main(node, body=body, attrs=FrozenDict({"auto_scope": False})), 1)
