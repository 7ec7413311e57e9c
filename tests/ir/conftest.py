"""One program with every node class and every type class, and with no field at its default."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import pypto.ops  # noqa: F401  (special printed forms come with the op definitions)
from pypto.ir import scalar
from pypto.ir.dtype import DataType
from pypto.ir.enums import (
    ArgDirection,
    ForKind,
    FunctionType,
    InlineLanguage,
    Level,
    MemorySpace,
    PadValue,
    ParamDirection,
    Role,
    SplitMode,
    TensorLayout,
    TileLayout,
)
from pypto.ir.expr import (
    BINARY_CLASSES,
    UNARY_CLASSES,
    Call,
    ConstBool,
    ConstFloat,
    ConstInt,
    GlobalVar,
    IterArg,
    MakeTuple,
    MemRef,
    Op,
    Submit,
    TupleGetItemExpr,
    Var,
    WindowBuffer,
)
from pypto.ir.program import Function, Program
from pypto.ir.span import Span
from pypto.ir.stmt import (
    AssignStmt,
    BreakStmt,
    ClusterScopeStmt,
    CommDomainScopeStmt,
    ContinueStmt,
    EvalStmt,
    ForStmt,
    HierarchyScopeStmt,
    IfStmt,
    InCoreScopeStmt,
    InlineStmt,
    ReturnStmt,
    RuntimeScopeStmt,
    SeqStmts,
    SplitAivScopeStmt,
    SpmdScopeStmt,
    WhileStmt,
    YieldStmt,
    attach_leading_comments,
)
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
    TensorView,
    TileType,
    TileView,
    TupleType,
    UnknownType,
)

sys.path.insert(0, str(Path(__file__).parent))  # tree_kit

INDEX, FP32 = DataType.INDEX, DataType.FP32


def make_zoo() -> Program:
    """A new copy of the program: nothing but constants is shared between two calls."""
    line = 0

    def at() -> Span:
        nonlocal line
        line += 1
        return Span("zoo.py", line, 1, line, 9)

    def var(name: str, kind: Any = None) -> Var:
        return Var(name, ScalarType(INDEX) if kind is None else kind, at())

    def const(value: int, dtype: DataType = INDEX) -> ConstInt:
        return ConstInt(value, dtype, at())

    def assign(name: str, value: Any, kind: Any = None) -> AssignStmt:
        return AssignStmt(var(name, kind or value.type), value, at())

    n, m, flag = var("n"), var("m"), var("flag", ScalarType(DataType.BOOL))
    base, window_base = var("mem_vec_7", PtrType()), var("w_base", PtrType())
    window = WindowBuffer(window_base, const(4096), True, True, at())
    memref = MemRef(base, const(128, DataType.INT64), 2048, is_pinned=True, slots=2, slot=const(1), span=at())
    tensor = TensorType(
        [n, 64], FP32, None, TensorView([const(70), 1], TensorLayout.ND, [m, scalar.add(m, const(1))], PadValue.zero)
    )
    window_tensor = DistributedTensorType([n, 8], DataType.FP16, window)
    tile = TileType(
        [16, 32],
        FP32,
        memref,
        TileView([m, 32], [n, 1], const(4), TileLayout.col_major, TileLayout.row_major, 1024, PadValue.max),
        MemorySpace.Vec,
    )
    task = var("task", ScalarType(DataType.TASK_ID))
    x, out = var("x", tensor), var("out", tensor)

    statements: list[Any] = [
        assign("mem_vec_7_alloc", Call(Op("tile.alloc"), [const(2048)], {"space": MemorySpace.Vec}, PtrType(), at())),
        AssignStmt(base, Call(Op("tile.alloc"), [const(2048)], PtrType(), at()), at()),
        AssignStmt(window_base, Call(Op("pld.alloc"), [const(1)], PtrType(), at()), at()),
        assign("buffer", Call(Op("pld.tensor"), [n], window_tensor, at())),
        attach_leading_comments(assign("half", ConstFloat(0.5, FP32, at())), ["a comment", "of two lines"]),
        assign("yes", ConstBool(True, at())),
        assign("array", Call(Op("array.make"), [], ArrayType(DataType.INT32, 8), at())),
        assign("handles", Call(Op("prefetch"), [], TupleType([AsyncEventType(), AsyncSessionType()]), at())),
        assign("ctx", Call(Op("ctx"), [], CommCtxType(), at())),
        assign("prefetch", Call(Op("p"), [], PrefetchAsyncContextType(), at())),
        assign("unknown", Call(Op("u"), [], at()), UnknownType()),
    ]
    for cls in BINARY_CLASSES:
        statements.append(assign(f"b_{cls.__name__}", cls(n, const(3), INDEX, at())))
    for one in UNARY_CLASSES:
        statements.append(assign(f"u_{one.__name__}", one(m, INDEX, at())))
    pair = assign("pair", MakeTuple([n, const(2)], at()))
    loaded = assign(
        "loaded",
        Call(
            Op("tile.load"),
            [x, n],
            {"target": MemorySpace.Vec, "mode": 3, "scale": 0.5, "name": "s", "exact": True, "dtype": DataType.BF16},
            {
                "arg_directions": [ArgDirection.Input, ArgDirection.Scalar],
                "dump_vars": [x],
                "device": scalar.add(n, const(1)),
            },
            tile,
            at(),
        ),
        tile,
    )
    statements += [
        pair,
        assign("first", TupleGetItemExpr(pair.var, 1, at())),
        loaded,
        EvalStmt(Call(Op("use"), [loaded.var, memref, window], at()), at()),
        InlineStmt("print(1)\nprint(2)", InlineLanguage.Python, at()),
    ]
    carried = IterArg("carried", ScalarType(INDEX), n, at())
    after = var("after")
    loop = ForStmt(
        var("i"),
        const(0),
        n,
        const(2),
        [carried],
        SeqStmts(
            [
                IfStmt(flag, BreakStmt(at()), ContinueStmt(at()), [], at()),
                YieldStmt([scalar.add(carried, const(1))], at()),
            ],
            at(),
        ),
        [after],
        at(),
        ForKind.Pipeline,
        {"pipeline_stages": 2},
    )
    turning = IterArg("turning", ScalarType(INDEX), after, at())
    turned, chosen = var("turned"), var("chosen")
    spinning = WhileStmt(scalar.lt(turning, n), [turning], YieldStmt([scalar.add(turning, m)], at()), [turned], at())
    choice = IfStmt(flag, YieldStmt([turned], at()), YieldStmt([m], at()), [chosen], at())
    launch = Submit(
        GlobalVar("kernel"),
        [x, out],
        [task],
        {"k": 1},
        {"arg_directions": [ArgDirection.Input, ArgDirection.OutputExisting], "compiler_manual_dep_edges": [task]},
        TupleType([tensor, ScalarType(DataType.TASK_ID)]),
        at(),
        core_num=scalar.add(n, const(1)),
        sync_start=True,
        allow_early_resolve=True,
        predicate=scalar.gt(n, const(0)),
    )
    launched = assign("launched", launch)
    scope_attrs = {"task_id_var": task, "manual_dep_edges": [task], "slot_num": 2, "predicate": scalar.gt(m, n)}
    inner: Any = assign("in_scope", scalar.add(n, m))
    inner = InCoreScopeStmt(SplitMode.UP_DOWN, "core", body=inner, span=at(), attrs=scope_attrs)
    inner = ClusterScopeStmt("group", body=inner, span=at(), attrs=scope_attrs)
    inner = HierarchyScopeStmt(Level.HOST, Role.SubWorker, "host", body=inner, span=at(), attrs=scope_attrs)
    inner = SpmdScopeStmt(scalar.add(n, const(2)), True, "spmd", body=inner, span=at(), attrs=scope_attrs)
    inner = SplitAivScopeStmt(SplitMode.LEFT_RIGHT, 2, "split", body=inner, span=at(), attrs=scope_attrs)
    inner = RuntimeScopeStmt(True, "manual", body=inner, span=at(), attrs=scope_attrs)
    inner = CommDomainScopeStmt([0, 1], [window], "domain", body=inner, span=at(), attrs=scope_attrs)
    statements += [loop, spinning, choice, launched, attach_leading_comments(inner, ["the scopes"])]
    statements.append(ReturnStmt([x, chosen], at()))
    main = Function(
        "main",
        [n, m, flag, task, (x, ParamDirection.In), (out, ParamDirection.InOut)],
        [tensor, ScalarType(INDEX)],
        SeqStmts(statements, at()),
        at(),
        FunctionType.Spmd,
        Level.CLUSTER_0,
        Role.Orchestrator,
        {"split": 1, "bound": scalar.add(n, const(5))},
        True,
    )
    k = var("k", TensorType([8], FP32))
    kernel = Function("kernel", [k], [k.type], ReturnStmt([k], at()), at(), FunctionType.InCore)
    return Program([main, kernel], "Zoo", at())


@pytest.fixture
def zoo() -> Program:
    return make_zoo()


@pytest.fixture
def twin_zoos() -> tuple[Program, Program]:
    """The same program twice, with different variables."""
    return make_zoo(), make_zoo()
