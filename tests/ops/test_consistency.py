"""What the type rules promise is what the reference semantics compute: shape, element type and valid region.

Operands are drawn at random; whatever a type rule accepts must run, and must give a value of the promised type.
"""

import random

import numpy as np
import pytest
from ops_kit import D, run, scalar, tensor, tile, value

from pypto.ir.dtype import DataType
from pypto.ir.enums import PadValue
from pypto.ir.expr import ConstInt, MakeTuple, index_const
from pypto.ir.type import ScalarType, TupleType
from pypto.ops.definition import REQUIRED
from pypto.ops.numpy_types import numpy_dtype
from pypto.ops.registry import REGISTRY, create_op_call
from pypto.ops.values import UndefinedValueError

FAMILIES = "bitwise cast compare elementwise expand gather gemv matmul pad partial reduction rsqrt scatter sort ternary".split()
# These need operands that fit together in ways that chance does not find; their own tests cover them.
RARE = {"tensor.matmul_acc", "tile.matmul_bias", "tile.gemv_acc", "tile.gather_compare"}
RARE |= {"tensor.scatter", "tile.scatter", "tensor.scatter_mask", "tile.scatter_mask"}
NAMES = [
    name
    for name, definition in REGISTRY.items()
    if definition.infer.__module__.rsplit(".", 1)[-1] in FAMILIES and name not in RARE
]
DTYPES = [D.FP32, D.FP32, D.FP32, D.FP16, D.BF16, D.INT32, D.INT32, D.INT16, D.UINT16, D.UINT32, D.UINT8, D.INT8]
DIMS = [1, 2, 16, 32, 64]
KWARGS = {int: [-2, -1, 0, 1, 2, 4], bool: [False, True], str: ["final"], DataType: DTYPES, PadValue: list(PadValue)}


def operand(draw, spec, base):
    shape = list(base)
    if draw.random() < 0.3:
        shape[draw.randrange(len(shape))] = 1
    if spec.name == "row_vec":
        shape[-1] = 1
    elif spec.name in ("col_vec", "col_tile"):
        shape[-2] = 1
    dtype = D.UINT32 if spec.role == "index" and draw.random() < 0.5 else draw.choice(DTYPES)
    valid = [draw.choice([n, n, 1]) for n in shape] if draw.random() < 0.4 else None
    if spec.kind == "tuple":
        return MakeTuple([index_const(n) for n in base])
    if spec.kind == "const":
        return ConstInt(64, D.INDEX)
    if spec.kind == "scalar":
        return scalar(D.BOOL if spec.name == "init_cond" else dtype)
    return (tile if spec.kind == "tile" else tensor)(shape, dtype, valid)


def draw_call(draw, definition):
    base = [draw.choice(DIMS) for _ in range(draw.choice([2, 2, 2, 3]))]
    if definition.name.endswith("matmul"):
        base[-2] = base[-1]
    count = draw.choice([len(definition.operands), definition.min_operands])
    args = [operand(draw, spec, base) for spec in definition.operands[:count]]
    kwargs = {}
    for key, (kind, default) in definition.kwargs.items():
        if default is REQUIRED or draw.random() < 0.3:
            kwargs[key] = draw.choice(KWARGS[kind])
    return create_op_call(definition.name, args, kwargs)


def run_time_value(draw, arg):
    if type(arg) is MakeTuple:
        return [e.value for e in arg.elements]
    if type(arg) is ConstInt or type(arg.type) is ScalarType:
        return getattr(arg, "value", 1)
    shape, valid = ([e.value for e in extents] for extents in (arg.type.shape, arg.type.valid_extents))
    data = np.random.default_rng(draw.randrange(99)).integers(1, 9, shape)
    return value(data, arg.type.dtype, valid)


def check_against(kind, result):
    if type(kind) is TupleType:
        for part, value_of_part in zip(kind.types, result, strict=True):
            check_against(part, value_of_part)
    elif type(kind) is not ScalarType:
        assert result.shape == tuple(e.value for e in kind.shape)
        assert tuple(result.valid) == tuple(e.value for e in kind.valid_extents)
        assert result.dtype == numpy_dtype(kind.dtype)


@pytest.mark.parametrize("name", NAMES)
def test_results_have_the_promised_type(name):
    draw, accepted = random.Random(name), 0
    for _ in range(3000):
        try:
            call = draw_call(draw, REGISTRY[name])
        except (ValueError, TypeError):
            continue
        accepted += 1
        try:
            check_against(call.type, run(call, *(run_time_value(draw, arg) for arg in call.args)))
        except UndefinedValueError:
            continue  # a scalar result of a value that has undefined elements
        if accepted == 25:
            break
    assert accepted, "the generator draws no operands that the type rule accepts"
