"""AssignTypeSymmetry: both sides of an assignment have equal types."""

from verify_kit import HERE, INDEX, expect, holds, main, nodes, program, swapped

from pypto import ir
from pypto.verify.properties import IRProperty

P = IRProperty.AssignTypeSymmetry
N = ir.Var("n", INDEX)
ADDRESS = ir.ConstInt(0, ir.INT64)


def assigning(kind, value_kind):
    value = ir.Call(ir.Op("test.op"), [], value_kind, HERE)
    body = ir.SeqStmts([ir.AssignStmt(ir.Var("v", kind), value, HERE), ir.ReturnStmt([])])
    return ir.Program([ir.Function("main", [N], [], body, HERE)])


def tensor(*shape, memref=None):
    return ir.TensorType(list(shape), ir.FP32, memref)


def test_types_that_differ():
    for kind, other in [
        (tensor(8), tensor(16)),
        (tensor(8), ir.TileType([8], ir.FP32)),
        (INDEX, ir.ScalarType(ir.INT32)),
        (tensor(N), tensor(ir.Var("n", INDEX))),
        (ir.TupleType([INDEX, tensor(8)]), ir.TupleType([INDEX, tensor(9)])),
        (ir.TupleType([INDEX]), ir.TupleType([INDEX, INDEX])),
    ]:
        [message] = expect(P, assigning(kind, other), 1)
        assert "'v'" in message


def test_types_that_agree():
    memref = ir.MemRef(ir.Var("buf", ir.PtrType()), ADDRESS, 32) if hasattr(ir, "PtrType") else None
    for kind, other in [
        (tensor(8), tensor(8)),
        (tensor(N), tensor(N)),
        (tensor(8), ir.UnknownType()),
        (ir.TupleType([INDEX, ir.UnknownType()]), ir.TupleType([INDEX, tensor(9)])),
        (tensor(8, memref=memref), tensor(8)),
    ]:
        holds(P, assigning(kind, other))


def test_programs_of_the_front_end():
    node = program("a = pl.add(pl.exp(x), 1.0)\nb, c = a, n\ny = self.k(b, y)\nreturn y")
    holds(P, node)
    [call] = [c for c in nodes(main(node), ir.Call) if c.op.name == "k"]
    expect(P, swapped(node, call, call.replace(type=tensor(4))), 1, says="'y'")
