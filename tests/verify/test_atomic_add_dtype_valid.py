"""AtomicAddDtypeValid: BF16 atomic adds only where the target has them, at every op that can add."""

import pytest
from verify_kit import HERE, expect, holds

from pypto import ir
from pypto.backend import BackendType, using_backend
from pypto.ir.enums import AtomicType
from pypto.ops.registry import REGISTRY
from pypto.verify.properties import IRProperty

P = IRProperty.AtomicAddDtypeValid
SITES = [
    ("tile.store", 2),
    ("tensor.assemble", 0),
    ("pld.tensor.put", 0),
    ("pld.tile.put", 0),
    ("pld.tensor.remote_store", 1),
    ("pld.tile.remote_store", 1),
]


def adding(op, target, dtype=ir.BF16, atomic=AtomicType.Add):
    other = ir.Var("s", ir.TileType([8, 8], ir.BF16))
    args = [other] * len(REGISTRY[op].operands)
    args[target] = ir.Var("o", ir.TensorType([8, 8], dtype))
    call = ir.Call(ir.Op(op), args, {"atomic": int(atomic)}, ir.UnknownType(), HERE)
    return ir.Program([ir.Function("main", [], [], ir.EvalStmt(call, HERE), HERE)])


def test_the_ops_that_can_add():
    assert sorted(name for name, d in REGISTRY.items() if "atomic" in d.kwargs) == sorted(name for name, _ in SITES)


@pytest.mark.parametrize("op, target", SITES)
def test_bf16_where_it_is_not_supported(op, target):
    node = adding(op, target)
    with using_backend(BackendType.Ascend950):
        expect(P, node, 0, says="atomic-add into a bf16 global tensor is not supported")
        holds(P, adding(op, target, ir.FP32))
        holds(P, adding(op, target, atomic=AtomicType.None_))
    with using_backend(BackendType.Ascend910B):
        holds(P, node)
    holds(P, node)  # no target is selected
