"""TensorViewCanonical, strict and weak."""

import pytest

from pypto import ir
from pypto.verify.properties import IRProperty, property_set
from pypto.verify.registry import PropertyVerifierRegistry
from pypto.verify.tensor_view_canonical import verify_tensor_view_canonical

SPAN = ir.Span("views.py", 4, 9)


def program(view: ir.TensorView | None) -> ir.Program:
    """A function with one tensor parameter that has this view."""
    x = ir.Var("x", ir.TensorType([4, 8], ir.FP32, None, view), SPAN)
    return ir.Program([ir.Function("f", [x], [], ir.SeqStmts([]))])


@pytest.mark.parametrize(
    ("view", "weak", "strict"),
    [
        (None, 0, 0),
        (ir.TensorView([8, 1], ir.TensorLayout.ND), 0, 0),
        (ir.TensorView([16, 1], ir.TensorLayout.ND), 0, 0),  # padded rows
        (ir.TensorView([1, 4], ir.TensorLayout.DN), 0, 0),
        (ir.TensorView([], ir.TensorLayout.DN), 0, 1),
        (ir.TensorView([8, 2], ir.TensorLayout.ND), 1, 1),
        (ir.TensorView([1], ir.TensorLayout.ND), 1, 1),
    ],
)
def test_views(view, weak, strict):
    p = program(view)
    assert len(verify_tensor_view_canonical(p)) == weak
    found = verify_tensor_view_canonical(p, require_materialized=True)
    assert len(found) == strict
    registered = PropertyVerifierRegistry.verify(property_set(IRProperty.TensorViewCanonical), p)
    assert [d.message for d in registered] == [d.message for d in found]
    if found:
        assert found[0].error_code == 1 and "'x' in function 'f'" in found[0].message and found[0].span is SPAN


def test_results_and_tuples_are_looked_at():
    bad = ir.TensorType([4, 8], ir.FP32, None, ir.TensorView([8, 2], ir.TensorLayout.ND))
    pair = ir.Var("pair", ir.TupleType([bad, ir.ScalarType(ir.INDEX)]), SPAN)
    p = ir.Program([ir.Function("f", [pair], [bad], ir.SeqStmts([]))])
    assert len(verify_tensor_view_canonical(p)) == 2
