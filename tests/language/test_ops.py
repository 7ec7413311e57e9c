"""The op functions over DSL values, and the constructors over expressions; both come from the tables of pypto.ops."""

import inspect
import types

import pytest

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir import expr as x
from pypto.ir import op as ir_op
from pypto.ir.location import current_span, use_parser_span
from pypto.ir.op.module import span_taker
from pypto.ir.span import Span
from pypto.ir.type import (
    ArrayType,
    AsyncEventType,
    AsyncSessionType,
    CommCtxType,
    DistributedTensorType,
    PrefetchAsyncContextType,
    PtrType,
    ScalarType,
    TensorType,
    TileType,
    TupleType,
    UnknownType,
)
from pypto.language import typing as pl_typing
from pypto.language.op import unified_ops
from pypto.language.op._wrap import on_values, on_values_with_span, unwrap, wrap
from pypto.ops.surface import INFO, IR_NAMESPACES, NAMESPACES

MODULES = {
    "pl": unified_ops,
    "tensor": pl.tensor,
    "tile": pl.tile,
    "system": pl.system,
    "array": pl.array,
    "prefetch": pl.prefetch,
    "pld": pld.op,
    "pld.tensor": pld.tensor,
    "pld.tile": pld.tile,
    "pld.system": pld.system,
}
IR_MODULES = {
    "tensor": ir_op.tensor,
    "tile": ir_op.tile,
    "system": ir_op.system,
    "array": ir_op.array,
    "prefetch": ir_op.prefetch,
}
# what a module defines itself because only the parser gives it a meaning
MARKERS = {"no_dep", "dump_tag", "aiv_shard", "aic_gather", "task_dummy"}

SPAN = Span("user.py", 7, 3)


def tensor(name="x", shape=(16, 32), dtype=pl.FP32):
    return x.Var(name, TensorType(list(shape), dtype))


def tile(name="t", shape=(16, 32), dtype=pl.FP32):
    return x.Var(name, TileType(list(shape), dtype, memory_space=pl.Mem.Vec))


# --- every op has its function ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("namespace", MODULES)
def test_every_surface_function_is_reachable_under_its_name(namespace):
    module = MODULES[namespace]
    assert set(NAMESPACES[namespace]) <= set(dir(module))
    for name, surface in NAMESPACES[namespace].items():
        if name.startswith("_"):
            continue  # a printed form only: the front end finds it in the table
        function = getattr(module, name)
        if name in MARKERS:
            continue
        assert function.__wrapped__ is surface and surface in INFO
        assert function.__name__ == name and function.__module__.startswith("pypto.language.")
        expected = [p for p in inspect.signature(surface).parameters if p != "span"]
        assert [p for p in inspect.signature(function).parameters if p != "span"] == expected


def test_short_names_are_names_of_pl():
    for name in NAMESPACES["pl"]:
        assert getattr(pl, name) is getattr(pl.op, name)
    assert set(NAMESPACES["pl"]) <= set(pl.__all__)
    for name in NAMESPACES["pld"]:
        assert getattr(pld, name) is getattr(pld.op, name)


def test_a_short_name_of_one_level_is_the_function_of_that_level():
    shared = [
        (namespace, name)
        for namespace in ("tensor", "tile", "system")
        for name, surface in NAMESPACES[namespace].items()
        if NAMESPACES["pl"].get(name) is surface and name not in MARKERS
    ]
    assert ("tile", "relu") in shared
    for namespace, name in shared:
        assert getattr(pl, name) is getattr(MODULES[namespace], name)


@pytest.mark.parametrize("namespace", IR_MODULES)
def test_every_constructor_takes_a_span(namespace):
    table = {**NAMESPACES[namespace], **IR_NAMESPACES[namespace]}
    module = IR_MODULES[namespace]
    assert set(table) <= set(dir(module))
    for name, surface in table.items():
        function = getattr(module, name)
        assert function.__wrapped__ is surface
        parameters = inspect.signature(function).parameters
        assert parameters["span"].default is None
        assert [p for p in parameters if p != "span"] == [
            p for p in inspect.signature(surface).parameters if p != "span"
        ]


def test_unknown_names():
    for module in (pl, pl.op, pl.tensor, pld, pld.op, pld.tile, ir_op.tensor, ir_op.distributed):
        with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'no_such_op'"):
            module.no_such_op
        assert not hasattr(module, "_private") and not hasattr(module, "__wrapped__")


def test_star_import_brings_ops():
    namespace: dict = {}
    exec("from pypto.language.op.tensor_ops import *\nfrom pypto.ir.op.tile_ops import *", namespace)
    assert namespace["no_dep"] is pl.no_dep and namespace["adds"] is ir_op.tile.adds


# --- values in, values out --------------------------------------------------------------------------------------------


def test_tensors_in_a_tensor_out():
    a, b = tensor("a"), tensor("b")
    result = pl.tensor.add(pl.Tensor(expr=a), b)
    assert type(result) is pl.Tensor
    call = result.unwrap()
    assert call.op.name == "tensor.add" and call.args[0] is a and call.args[1] is b


def test_unified_functions_pick_the_level_by_the_values():
    t, s = pl.Tile(expr=tile()), pl.Tensor(expr=tensor())
    assert pl.mul(t, t).unwrap().op.name == "tile.mul"
    assert type(pl.mul(t, 2.0)) is pl.Tile
    assert pl.mul(s, s).unwrap().op.name == "tensor.mul"
    scalar = pl.Scalar(expr=x.Var("k", ScalarType(pl.INT32)))
    assert type(pl.add(scalar, scalar).unwrap()) is x.Add
    with pytest.raises(TypeError, match=r"pl\.mul: cannot mix Tensor and Tile arguments"):
        pl.mul(s, t)
    with pytest.raises(TypeError, match=r"pl\.sub: expected Tensor or Tile operands"):
        pl.sub(1.0, s)


def test_an_annotation_is_no_operand():
    with pytest.raises(ValueError, match="annotation-only Tensor"):
        pl.add(pl.Tensor[[4], pl.FP32], 1)


def test_keyword_arguments():
    t = pl.Tensor(expr=tensor())
    assert pl.div(lhs=t, rhs=t, high_precision=True).unwrap().kwargs == {"high_precision": True}
    with pytest.raises(TypeError):
        pl.add(t, t, nope=1)


def test_operators_on_tensors_and_tiles_are_the_functions():
    for value in (pl.Tensor(expr=tensor()), pl.Tile(expr=tile())):
        level = "tensor" if isinstance(value, pl.Tensor) else "tile"
        for built, op in (
            (value + value, "add"),
            (value - value, "sub"),
            (value * value, "mul"),
            (value / value, "div"),
            (value + 1, "adds"),
            (2.0 * value, "muls"),
            (1 + value, "adds"),
            (value - 3, "subs"),
            (-value, "neg"),
        ):
            assert type(built) is type(value)
            assert built.unwrap().op.name == f"{level}.{op}"
        with pytest.raises(TypeError, match="unsupported operand"):
            1.0 - value
        with pytest.raises(TypeError, match="unsupported operand"):
            value + True
        with pytest.raises(TypeError, match="unsupported operand"):
            value + "x"


def test_scalars_and_expressions_on_either_side():
    t = pl.Tensor(expr=tensor())
    k = pl.Scalar(expr=x.Var("k", ScalarType(pl.FP32)))
    assert (k * t).unwrap().op.name == "tensor.muls" and (t * k).unwrap().args[1] is k.unwrap()
    raw = tensor("raw")
    assert (t + raw).unwrap().args[1] is raw
    assert (raw + t).unwrap().op.name == "tensor.add"


WRAPPERS = [
    (TensorType([4], pl.FP32), "Tensor"),
    (DistributedTensorType([4], pl.FP32), "DistributedTensor"),
    (TileType([4, 4], pl.FP32), "Tile"),
    (ArrayType(pl.INT32, 4), "Array"),
    (ScalarType(pl.FP32), "Scalar"),
    (PtrType(), "Ptr"),
    (CommCtxType(), "CommCtx"),
    (PrefetchAsyncContextType(), "PrefetchAsyncContext"),
    (AsyncEventType(), "AsyncEvent"),
    (AsyncSessionType(), "AsyncSession"),
]


@pytest.mark.parametrize(("kind", "name"), WRAPPERS, ids=[name for _, name in WRAPPERS])
def test_a_result_is_wrapped_by_its_type(kind, name):
    expr = x.Var("v", kind)
    value = wrap(expr)
    assert type(value) is getattr(pl_typing, name)
    assert value.unwrap() is expr and unwrap(value) is expr


def test_statements_stay_calls():
    call = x.Call(x.Op("system.bar_all"), [], UnknownType(), SPAN)
    assert wrap(call) is call
    assert wrap(None) is None and wrap("s") == "s"


def test_a_tuple_result_gives_its_elements():
    call = x.Call(x.Op("test.pair"), [], TupleType([TileType([4, 4], pl.FP32), ScalarType(pl.INT32)]), SPAN)
    first, second = wrap(call)
    assert type(first) is pl.Tile and type(second) is pl.Scalar
    for index, item in enumerate((first.unwrap(), second.unwrap())):
        assert type(item) is x.TupleGetItemExpr and item.tuple is call and item.index == index and item.span is SPAN


def test_values_inside_lists_are_unwrapped():
    m = pl.dynamic("m")
    seen = []

    def surface(shape, *, offsets=()):
        seen.append((shape, offsets))

    function = on_values(surface, "f", "m")
    function([m, 3], offsets=(m + 1, [m]))
    (shape, offsets) = seen[0]
    assert type(shape) is list and shape[0] is m.unwrap() and shape[1] == 3
    assert type(offsets) is tuple and type(offsets[0]) is x.Add and offsets[1][0] is m.unwrap()


# --- spans ------------------------------------------------------------------------------------------------------------


def test_a_call_takes_the_line_of_the_user():
    line = inspect.currentframe().f_lineno + 1
    built = pl.add(pl.Tensor(expr=tensor()), 1).unwrap()
    assert (built.span.filename, built.span.begin_line) == (__file__, line)


def test_the_span_of_the_parser_comes_first():
    with use_parser_span(SPAN):
        assert pl.add(pl.Tensor(expr=tensor()), 1).unwrap().span is SPAN
        assert ir_op.tensor.add(tensor(), tensor("y")).span is SPAN
        other = Span("other.py", 1, 1)
        assert ir_op.tensor.add(tensor(), tensor("y"), span=other).span is other


def test_constructors_give_calls_with_the_given_span():
    a, b = tensor("a"), tensor("b")
    by_name = ir_op.tensor.add(a, b, span=SPAN)
    assert type(by_name) is x.Call and by_name.span is SPAN
    assert ir_op.tensor.add(a, b, SPAN).span is SPAN
    assert ir_op.tensor.div(a, b, SPAN, high_precision=True).span is SPAN
    line = inspect.currentframe().f_lineno + 1
    for unset in (ir_op.tensor.add(a, b), ir_op.tensor.add(a, b, None), ir_op.tensor.add(a, b, span=None)):
        assert (unset.span.filename, unset.span.begin_line) == (__file__, line)


def test_a_span_does_not_outlive_its_call():
    with pytest.raises(TypeError):
        ir_op.tensor.add(tensor(), span=SPAN)
    assert ir_op.tensor.neg(tensor()).span is not SPAN


def test_where_the_span_stands_in_a_signature():
    def plain(a, b=1): ...

    def keyword_only(a, *, k): ...

    def variadic(a, *args, k): ...

    shown = [str(inspect.signature(span_taker(f, "f", "m"))) for f in (plain, keyword_only, variadic)]
    assert [s.replace(": pypto.ir.span.Span | None = ", "=") for s in shown] == [
        "(a, b=1, span=None)",
        "(a, span=None, *, k)",
        "(a, *args, span=None, k)",
    ]


def test_functions_of_the_system_level_take_values_and_a_span():
    seen = []

    def surface(event_id, *, pipe):
        seen.append((event_id, pipe, current_span()))

    function = on_values_with_span(surface, "f", "m")
    assert function.__wrapped__ is surface
    assert list(inspect.signature(function).parameters) == ["event_id", "span", "pipe"]
    m = pl.dynamic("m")
    function(m, pipe=1, span=SPAN)
    assert seen[0][0] is m.unwrap() and seen[0][1:] == (1, SPAN)


# --- modules ----------------------------------------------------------------------------------------------------------


def test_namespaces_are_modules():
    assert isinstance(pl.tensor, types.ModuleType) and pl.tensor.__name__ == "pypto.language.op.tensor_ops"
    assert ir_op.tensor.__name__ == "pypto.ir.op.tensor_ops"
    assert ir_op.distributed.tensor_ops.__name__ == "pypto.ir.op.distributed.tensor_ops"
    assert pl.op.tile is pl.tile and pld.tensor is pld.op.tensor


def test_constants_of_namespaces():
    assert pl.AUTO == pl.system.AUTO == ir_op.system.AUTO == -1
    assert pl.tile.MaskPattern.P0101 == 1 and pl.tile.MaskPattern.P1111 == 7
    assert pl.tile.MemRefType is pl.MemRefType


def test_functions_are_documented():
    assert pl.tensor.add.__doc__ and pl.exp.__doc__
