from __future__ import annotations

import re
from typing import Any

import pytest
from tree_kit import FP32, INDEX, U, call, check, const, failure, for_loop, seq, var

from pypto.ir import scalar
from pypto.ir.dtype import DataType
from pypto.ir.enums import (
    ArgDirection,
    CompactMode,
    ForKind,
    FunctionType,
    Level,
    MemorySpace,
    PadValue,
    ParamDirection,
    SplitMode,
    TensorLayout,
    TileLayout,
)
from pypto.ir.equality import structural_equal
from pypto.ir.expr import (
    ConstBool,
    ConstFloat,
    IterArg,
    MakeTuple,
    MemRef,
    Var,
    WindowBuffer,
)
from pypto.ir.node import FrozenList
from pypto.ir.program import Function, Program
from pypto.ir.span import Span
from pypto.ir.stmt import (
    AssignStmt,
    BreakStmt,
    EvalStmt,
    HierarchyScopeStmt,
    IfStmt,
    InCoreScopeStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    YieldStmt,
)
from pypto.ir.type import (
    ArrayType,
    DistributedTensorType,
    PtrType,
    ScalarType,
    TensorType,
    TensorView,
    TileType,
    TileView,
    TupleType,
    UnknownType,
)

# --- messages ---------------------------------------------------------------------------------------------------------


def program(*stmts: Stmt, **functions: Function) -> Program:
    main = Function("main", [var("p")], [], SeqStmts([*stmts, ReturnStmt(U)], U), U)
    return Program([main, *functions.values()], "P", U)


def test_paths_from_the_root() -> None:
    x = var("x")

    def build(value: int) -> Program:
        deep = scalar.add(scalar.add(x, scalar.mul(x, const(value))), const(9))
        return program(AssignStmt(var("a"), const(1), U), AssignStmt(var("b"), deep, U))

    check(build(1), build(2), "['main'].body[1].value.left.right.right.value", "int64_t value mismatch (1 != 2)")
    f = [Function("f", [var("a", ScalarType(t))], [], seq(), U) for t in (DataType.INDEX, FP32)]
    check(f[0], f[1], "params[0]", "Variable type mismatch (")
    check(*(IfStmt(x, YieldStmt([const(v)], U), None, [], U) for v in (1, 2)), "then_body.value[0].value", "int64_t")
    check(*(SeqStmts([EvalStmt(const(v), U)], U) for v in (1, 2)), "[0].expr.value", "int64_t value mismatch")
    check(const(1), const(2), "value", "int64_t value mismatch (1 != 2)")
    check(TensorType([4], FP32), TensorType([5], FP32), "value", "int64_t value mismatch (4 != 5)")
    window = [WindowBuffer(var("b", PtrType()), const(v)) for v in (1, 2)]
    check(*window, "size.value", "int64_t value mismatch (1 != 2)", auto=True)


def test_the_first_mismatch_in_field_order_is_told() -> None:
    a = for_loop(EvalStmt(const(1), U), kind=ForKind.Parallel, stop=const(5))
    b = for_loop(EvalStmt(const(2), U), kind=ForKind.Sequential, stop=const(6))
    check(a, b, "stop.value", "int64_t value mismatch (5 != 6)")
    b = for_loop(EvalStmt(const(2), U), kind=ForKind.Sequential, stop=const(5))
    check(a, b, "body.expr.value", "int64_t value mismatch (1 != 2)")
    b = for_loop(EvalStmt(const(1), U), kind=ForKind.Sequential, stop=const(5))
    check(a, b, "kind", "ForKind mismatch (Parallel != Sequential)")


def test_reasons_of_values() -> None:
    x = var("x")
    check(scalar.add(x, x), scalar.sub(x, x), "", "Node type mismatch (Add != Sub)", sides=True)
    check(ConstFloat(1.5, FP32, U), ConstFloat(2.5, FP32, U), "value", "double value mismatch (1.5 != 2.5)")
    check(ConstBool(True, U), ConstBool(False, U), "value", "Bool value mismatch (true != false)")
    a, b = (InCoreScopeStmt(name_hint=n, body=seq()) for n in "ab")
    check(a, b, "name_hint", 'String value mismatch ("a" != "b")')
    a, b = (InCoreScopeStmt(split, body=seq()) for split in (SplitMode.NONE, SplitMode.UP_DOWN))
    check(a, b, "split", "SplitMode mismatch (NONE != UP_DOWN)")
    a, b = (HierarchyScopeStmt(level, body=seq()) for level in (Level.HOST, Level.CHIP))  # type: ignore[assignment]
    check(a, b, "level", "Level mismatch (HOST != CHIP)")


def test_reasons_of_lists_maps_and_options() -> None:
    x = var("x")
    check(call(x), call(x, x), "args", "Vector size mismatch (1 items != 2 items)")
    check(seq(), seq(BreakStmt(U)), "", "Vector size mismatch (0 items != 1 items)")
    g = Function("g", [], [], seq(), U)
    check(program(), program(g=g), "", "Map size mismatch")
    h = Function("h", [], [], seq(), U)
    check(program(f=g), program(f=h), "", "Map key mismatch ('g' != 'h')")
    a, b = IfStmt(x, seq(), None, [], U), IfStmt(x, seq(), seq(), [], U)
    text = check(a, b, "else_body", "Optional field presence mismatch", sides=True)
    assert "Left-hand side:\n  (null)" in text
    a, b = Function("f", [], [], seq(), U), Function("f", [], [], seq(), U, level=Level.HOST)  # type: ignore[assignment]
    check(a, b, "level", "Level optional presence mismatch")


def test_reasons_of_functions() -> None:
    f = Function("f", [var("a")], [], seq(), U)
    g = Function("f", [(var("a"), ParamDirection.Out)], [], seq(), U)
    check(f, g, "param_directions[0]", "ParamDirection mismatch (In != Out)")
    g = Function("f", [var("a")], [], seq(), U, FunctionType.Inline)
    check(f, g, "func_type", "FunctionType mismatch (Opaque != Inline)")
    g = Function("f", [var("a")], [INDEX], seq(), U)
    check(f, g, "return_types", "Vector size mismatch (0 items != 1 items)")
    g = Function("f", [var("a")], [], seq(), U, requires_runtime_binding=True)
    check(f, g, "requires_runtime_binding", "Bool value mismatch (false != true)")


def test_reasons_of_operators_and_attributes() -> None:
    x, y = var("x"), var("y")
    check(call(op="my.a"), call(op="my.b"), "op", "Operator name mismatch ('my.a' != 'my.b')")
    check(call(kwargs={"k": 1}), call(), "kwargs", "Kwargs size mismatch (1 != 0)")
    check(call(kwargs={"k": 1}), call(kwargs={"l": 1}), "kwargs", "Kwargs key 'k' present on one side only")
    check(call(kwargs={"k": 1}), call(kwargs={"k": True}), "kwargs['k']", "Kwargs value type mismatch for key 'k'")
    check(call(attrs={"k": 1}), call(attrs={"k": 2}), "attrs['k']", "Kwargs value mismatch for key 'k'")
    check(call(attrs={"k": 1}), call(attrs={"k": x}), "attrs['k']", "Kwargs value type mismatch for key 'k'")
    a, b = (call(attrs={"device": scalar.add(x, const(v))}) for v in (1, 2))
    check(
        a, b, "attrs['device'].right.value", "Kwargs value mismatch for key 'device': int64_t value mismatch (1 != 2)"
    )
    a, b = (call(x, attrs={"arg_directions": [d]}) for d in (ArgDirection.Input, ArgDirection.Output))
    check(a, b, "attrs['arg_directions']", "Kwargs value mismatch for key 'arg_directions' (ArgDirection mismatch")
    a, b = (call(attrs={"dump_vars": v}) for v in ([x], [x, y]))
    check(a, b, "attrs['dump_vars']", "Kwargs value mismatch for key 'dump_vars' (1 items != 2 items)")
    a, b = (call(attrs={"dump_vars": v}) for v in ([x], [y]))
    check(a, b, "attrs['dump_vars'][0]", "Variable pointer mismatch", sides=True)
    a, b = (call(attrs={"dump_vars": v}) for v in ([], [y]))
    check(a, b, "attrs['dump_vars']", "Kwargs value mismatch for key 'dump_vars'")


def test_reasons_of_variables() -> None:
    x, y, z = var("x"), var("y"), var("z")
    check(x, y, "", "Variable pointer mismatch (without auto-mapping)", sides=True)
    text = check(
        MakeTuple([x, x], U), MakeTuple([y, z], U), "elements[1]",
        "Variable mapping inconsistent ('x' cannot map to both 'y' and 'z')", sides=True, auto=True,
    )  # fmt: skip
    assert "Left-hand side:\n  x" in text and "Right-hand side:\n  z" in text
    check(
        MakeTuple([x, y], U), MakeTuple([z, z], U), "elements[1]",
        "Variable mapping inconsistent ('z' is already mapped from 'x', cannot map from 'y')", sides=True, auto=True,
    )  # fmt: skip
    a, b = (AssignStmt(var("v", t), const(1), U) for t in (INDEX, ScalarType(FP32)))
    check(a, b, "var", "Variable type mismatch (")
    assert "ScalarType dtype mismatch (index != fp32)" in failure(a, b)
    first, second = (Var("same", INDEX, Span(f, 3, 1)) for f in ("a.py", "b.py"))
    assert "left from a.py:3:1, right from b.py:3:1" in failure(first, second)


VIEW = TensorView([1, 8], TensorLayout.DN)


@pytest.mark.parametrize(
    ("a", "b", "field", "reason"),
    [
        (TensorType([4], FP32), TileType([4], FP32), "", "Type name mismatch (TensorType != TileType)"),
        (TensorType([4], FP32), DistributedTensorType([4], FP32), "", "Type name mismatch"),
        (ScalarType(DataType.INT64), ScalarType(DataType.INT32), "dtype", "ScalarType dtype mismatch (int64 != int32)"),
        (TensorType([4], FP32), TensorType([4], DataType.FP16), "dtype", "TensorType dtype mismatch (fp32 != fp16)"),
        (TensorType([4, 8], FP32), TensorType([4], FP32), "shape", "TensorType shape rank mismatch (2 != 1)"),
        (
            TensorType([4, 8], FP32),
            TensorType([4, 8], FP32, None, VIEW),
            "tensor_view",
            "TensorType tensor_view presence mismatch",
        ),
        (
            TensorType([4, 8], FP32, None, TensorView([1, 8], TensorLayout.ND)),
            TensorType([4, 8], FP32, None, VIEW),
            "tensor_view.layout",
            "TensorView layout mismatch (ND != DN)",
        ),
        (
            TensorType([4, 8], FP32, None, TensorView([1], TensorLayout.DN)),
            TensorType([4, 8], FP32, None, VIEW),
            "tensor_view.stride",
            "TensorView stride size mismatch (1 != 2)",
        ),
        (
            TensorType([4, 8], FP32, None, TensorView([], TensorLayout.ND, [2, 8])),
            TensorType([4, 8], FP32, None, TensorView([], TensorLayout.ND, [3, 8])),
            "tensor_view.valid_shape[0].value",
            "int64_t value mismatch (2 != 3)",
        ),
        (
            TileType([4], FP32, None, None, MemorySpace.Vec),
            TileType([4], FP32, None, None, MemorySpace.Mat),
            "memory_space",
            "TileType memory_space mismatch (Vec != Mat)",
        ),
        (
            TileType([4], FP32, None, None, MemorySpace.Vec),
            TileType([4], FP32),
            "memory_space",
            "TileType memory_space presence mismatch",
        ),
        (
            TileType([4, 8], FP32, None, TileView(pad=PadValue.zero)),
            TileType([4, 8], FP32, None, TileView(pad=PadValue.max)),
            "tile_view.pad",
            "TileView pad mismatch (zero != max)",
        ),
        (
            TileType([4, 8], FP32, None, TileView(fractal=32)),
            TileType([4, 8], FP32, None, TileView(fractal=1024)),
            "tile_view.fractal",
            "TileView fractal mismatch (32 != 1024)",
        ),
        (
            TileType([4, 8], FP32, None, TileView(fractal=32)),
            TileType([4, 8], FP32, None, TileView(fractal=32, start_offset=0)),
            "tile_view.start_offset",
            "TileView start_offset presence mismatch",
        ),
        (
            TileType([4, 8], FP32, None, TileView(blayout=TileLayout.col_major, compact=CompactMode.normal)),
            TileType([4, 8], FP32, None, TileView(blayout=TileLayout.col_major)),
            "tile_view.compact",
            "TileView compact mismatch (normal != null)",
        ),
        (ArrayType(DataType.INT32, 4), ArrayType(DataType.INT32, 5), "extent.value", "ArrayType extent mismatch"),
        (ArrayType(DataType.INT32, 4), ArrayType(DataType.INT8, 4), "dtype", "ArrayType dtype mismatch"),
        (TupleType([INDEX, INDEX]), TupleType([INDEX]), "types", "TupleType size mismatch (2 != 1)"),
        (TupleType([INDEX]), TupleType([UnknownType()]), "types[0]", "Type name mismatch (ScalarType != UnknownType)"),
        (
            DistributedTensorType([4], FP32),
            DistributedTensorType([4], FP32, WindowBuffer(var("b", PtrType()), const(4))),
            "window_buffer",
            "DistributedTensorType window_buffer presence mismatch",
        ),
    ],
)
def test_reasons_of_types(a: Any, b: Any, field: str, reason: str) -> None:
    path = "value" if field.endswith("value") else ""
    text = check(a, b, path, reason)
    if field and field != path:
        assert f"\nType field: {field}" in text
    variables = [AssignStmt(var("v", t), const(1), U) for t in (a, b)]
    text = check(*variables, "var.value" if path else "var", reason)
    assert re.search(r"Reason: Variable type mismatch \(.+\): ", text)
    assert f"\nType field: var.type{'.' if field else ''}{field}" in text
    assert structural_equal(a, a) and structural_equal(b, b)


def test_reasons_of_memrefs() -> None:
    base, other = var("m", PtrType()), var("n", PtrType())

    def memref(**changes: Any) -> MemRef:
        arguments: dict[str, Any] = {"base": base, "byte_offset": 0, "size": 64, "slots": 2, "slot": 0}
        return MemRef(**{**arguments, **changes})

    a = memref()
    assert structural_equal(a, memref())
    check(a, memref(base=other), "base_", "MemRef base mismatch", sides=True)
    check(a, memref(byte_offset=32), "byte_offset_.value", "MemRef byte_offset mismatch")
    check(a, memref(size=32), "size_", "MemRef size mismatch (64 != 32)")
    check(a, memref(is_pinned=True), "is_pinned_", "MemRef is_pinned mismatch")
    check(a, memref(slots=3), "slot_count_", "MemRef slot_count mismatch")
    check(a, memref(slot=None), "slot_index_", "MemRef slot_index presence mismatch")
    check(a, memref(slot=1), "slot_index_.value", "MemRef slot_index mismatch")


def test_reason_of_carries() -> None:
    a, b = (for_loop(seq(), iter_args=[IterArg("c", INDEX, const(v), U)]) for v in (0, 1))
    check(a, b, "iter_args[0].initValue.value", "IterArg initValue mismatch: int64_t value mismatch (0 != 1)")
    plain = for_loop(seq(), iter_args=[IterArg("c", INDEX, const(0), U)])
    other = plain.replace(iter_args=FrozenList([var("c")]))
    check(plain, other, "iter_args[0]", "Node type mismatch (IterArg != Var)", sides=True)


def test_a_node_that_cannot_be_printed_does_not_hide_the_mismatch() -> None:
    x = var("x")
    loop = for_loop(EvalStmt(x, U), kind=ForKind.Pipeline)  # without its stages: refused by the printer
    text = check(seq(loop), seq(BreakStmt(U)), "[0]", "Node type mismatch (ForStmt != BreakStmt)", sides=True)
    assert "without a printed form" in text
