"""The operands of expressions: every class has them, and they are the children that are read."""

from pypto import ir
from pypto.ir.expr import Expr, IterArg, Var
from pypto.ir.operands import OPERANDS, attrs_operands
from pypto.ir.traversal import CONSTANTS, NODE_CLASSES, attrs_expressions

INDEX = ir.ScalarType(ir.INDEX)


def test_every_expression_class_is_known():
    known = {*OPERANDS, *CONSTANTS, Var, IterArg}
    assert {cls for cls in NODE_CLASSES if issubclass(cls, Expr)} == known


def test_operands_of_calls_and_submits():
    a, b, c, d, e, f = (ir.Var(name, INDEX) for name in "abcdef")
    kind = ir.TensorType([d, 8], ir.FP32)
    span = ir.Span.unknown()
    attrs = {"dump_vars": [b], "hint.x": c, "hint.n": 3}
    assert OPERANDS[ir.Call](ir.Call(ir.Op("f"), [a], {"k": e}, attrs, kind, span))[:5] == [a, b, c, e, d]
    submit = ir.Submit(ir.GlobalVar("k"), [a], [b], INDEX, span, core_num=c, predicate=f)
    assert OPERANDS[ir.Submit](submit) == [a, b, c, f]


def test_the_base_of_a_memory_reference_is_no_operand():
    base, offset, slot = ir.Var("mem_vec_0", ir.PtrType()), ir.Var("o", INDEX), ir.Var("s", INDEX)
    assert OPERANDS[ir.MemRef](ir.MemRef(base, offset, 64)) == (offset,)
    assert OPERANDS[ir.MemRef](ir.MemRef(base, offset, 64, slots=2, slot=slot)) == (offset, slot)


def test_attribute_maps():
    a, b = ir.Var("a", INDEX), ir.Var("b", INDEX)
    call = ir.Call(ir.Op("f"), [a], {}, {"x": a, "l": [a, b], "n": 1, "s": "t", "d": ir.FP32}, INDEX, ir.Span.unknown())
    assert attrs_operands(call.attrs) == attrs_expressions(call.attrs) == [a, a, b]
    directed = ir.Call(ir.Op("f"), [a], {}, {"arg_directions": [ir.ArgDirection.Input]}, INDEX, ir.Span.unknown())
    assert attrs_operands(directed.attrs) == []
