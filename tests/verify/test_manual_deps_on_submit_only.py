"""ManualDepsOnSubmitOnly: dependencies live in ``Submit.deps``."""

import pytest
from verify_kit import expect, holds, main, nodes, program, submit_of, swapped

from pypto import ir
from pypto.ir.node import FrozenDict, FrozenList
from pypto.ir.type import TASK_ID_TYPE
from pypto.verify.properties import IRProperty

P = IRProperty.ManualDepsOnSubmitOnly
CALL = "y = self.k(x, y)\nreturn y"
NESTED = "y = pl.exp(self.k(x, y))\nreturn y"


def edges():
    task = ir.Var("t", TASK_ID_TYPE)
    return FrozenDict({"manual_dep_edges": FrozenList([task])})


@pytest.mark.parametrize("body", [CALL, NESTED])
def test_call_and_submit(body):
    node = program(body)
    call = next(c for c in nodes(main(node), ir.Call) if type(c.op) is ir.GlobalVar)
    attrs = edges()
    expect(P, swapped(node, call, call.replace(attrs=attrs)), 0, says="'k'")
    expect(P, swapped(node, call, submit_of(call).replace(attrs=attrs)), 1, says="Submit.deps")
    holds(P, node)
    holds(P, swapped(node, call, submit_of(call, deps=list(attrs["manual_dep_edges"]))))


def test_ops_may():
    node = program("a = pl.exp(x)\nreturn y")
    [call] = nodes(main(node), ir.Call)
    holds(P, swapped(node, call, call.replace(attrs=edges())))
