"""Conversion of tensor ops to tile ops: built-in twins, renames and rules of users."""

import pytest

from pypto import ir
from pypto.ops.to_tile import ConversionContext, convert, has_op_conversion, renamed, unregister_op_conversion

TENSOR = ir.TensorType([16, 32], ir.FP32)
TILE = ir.TileType([16, 32], ir.FP32)


@pytest.fixture(autouse=True)
def clean():
    yield
    for name in ("tensor.exp", "test.tensor_op_no_conv"):
        unregister_op_conversion(name)


def test_twins_convert_by_name():
    assert has_op_conversion("tensor.add") and renamed("tensor.row_sum") == "tile.row_sum"
    assert not has_op_conversion("test.tensor_op_no_conv")
    assert not has_op_conversion("tile.add") and not has_op_conversion("no.such_op")


def test_a_registered_rename_is_used():
    ir.register_op_conversion("tensor.exp", "tile.abs")
    x = ir.Var("x", TILE, ir.Span.unknown())
    call = ir.Call(ir.Op("tensor.exp"), [x], TILE, ir.Span("f.py", 3, 1))
    made = convert(call, ConversionContext())
    assert made.op.name == "tile.abs" and made.args[0] is x and str(made.span) == "f.py:3:1"
    with pytest.raises(ValueError, match="not found in registry"):
        ir.register_op_conversion("tensor.exp", "tile.nothing")


def test_a_rule_builds_the_tile_form_and_its_prologue():
    @ir.op_conversion("test.tensor_op_no_conv")
    def rule(ctx, args, kwargs, span):
        assert kwargs == []
        twice = ctx.let("twice", ir.create_op_call("tile.add", [args[0], args[0]], span))
        return ir.create_op_call("tile.neg", [twice], span)

    assert has_op_conversion("test.tensor_op_no_conv")
    x = ir.Var("x", TILE, ir.Span.unknown())
    context = ir.ConversionContext(ir.Span("f.py", 3, 1))
    made = convert(ir.Call(ir.Op("test.tensor_op_no_conv"), [x], TENSOR, ir.Span("f.py", 3, 1)), context)
    (prologue,) = context.stmts
    assert made.args[0] is prologue.var and prologue.var.name_hint == "twice"
    context.emit(ir.EvalStmt(made, made.span))
    assert len(context.stmts) == 2
    with pytest.raises(TypeError, match="expects a statement"):
        context.emit(made)
