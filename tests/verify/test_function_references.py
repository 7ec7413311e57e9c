"""InlineFunctionsEliminated and OrchestrationReferencesResolved: what is called is there, and is not inline."""

import pytest
from verify_kit import expect, findings, holds, main, nodes, program, submit_of, swapped

from pypto import ir
from pypto.verify.properties import IRProperty

CALL = "y = self.k(x, y)\nreturn y"


def launching(launch, op="k", kind="Orchestration", nested=False):
    """A program whose ``main`` calls or submits a function."""
    node = program(CALL if not nested else "y = pl.exp(self.k(x, y))\nreturn y", kind=kind)
    call = next(c for c in nodes(main(node), ir.Call) if type(c.op) is ir.GlobalVar)
    new = submit_of(call) if launch == "Submit" else call
    return swapped(node, call, new.replace(op=ir.GlobalVar(op)))


launches = pytest.mark.parametrize("launch", ["Call", "Submit"])


@launches
@pytest.mark.parametrize("nested", [False, True])
def test_dangling(launch, nested):
    node = launching(launch, "gone", nested=nested)
    expect(IRProperty.InlineFunctionsEliminated, node, 2, says=f"Dangling {launch} to function 'gone'")
    expect(IRProperty.OrchestrationReferencesResolved, node, 0, says="references undefined function 'gone'")


@launches
def test_inline_functions(launch):
    node = launching(launch)
    inline = node.get_function("k").replace(func_type=ir.FunctionType.Inline)
    node = node.with_functions([inline, main(node)])
    codes = [(d.error_code, d.message) for d in findings(IRProperty.InlineFunctionsEliminated, node)]
    assert [code for code, _ in codes] == [0, 1]
    assert "Inline function 'k'" in codes[0][1] and "'k'" in codes[1][1] and "'main'" in codes[1][1]


@launches
def test_what_is_there(launch):
    for prop in (IRProperty.InlineFunctionsEliminated, IRProperty.OrchestrationReferencesResolved):
        holds(prop, launching(launch))


@launches
@pytest.mark.parametrize("kind", ["Orchestration", "Graph", "Group", "Opaque"])
def test_kinds_that_launch(launch, kind):
    node = launching(launch, "gone")
    node = node.with_functions([node.get_function("k"), _of_kind(main(node), kind)])
    expect(IRProperty.OrchestrationReferencesResolved, node, 0)


def test_kernels_are_not_orchestration():
    node = launching("Call", "gone")
    holds(IRProperty.OrchestrationReferencesResolved, node.with_functions([_of_kind(main(node), "InCore")]))


def _of_kind(f, kind):
    kind = ir.FunctionType[kind]
    params = list(zip(f.params, f.param_directions, strict=True))
    return ir.Function(f.name, params, f.return_types, f.body, f.span, type=kind)
