from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tree_kit import INDEX, U, const, var

from pypto.ir import scalar
from pypto.ir.dtype import DataType
from pypto.ir.expr import Add, Call, Expr, IterArg, MemRef, Mul, Op, Var, WindowBuffer
from pypto.ir.program import Function, Program
from pypto.ir.stmt import AssignStmt, EvalStmt, ForStmt, ReturnStmt, SeqStmts, Stmt, YieldStmt
from pypto.ir.traversal import NODE_CLASSES, method_name, walk
from pypto.ir.type import DistributedTensorType, PtrType, TensorType
from pypto.ir.visitor import IRVisitor


class Recorder(IRVisitor):
    """Notes every expression and statement."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def visit_expr(self, expr: Expr) -> None:
        self.seen.append(expr)
        super().visit_expr(expr)

    def visit_stmt(self, stmt: Stmt) -> None:
        self.seen.append(stmt)
        super().visit_stmt(stmt)


def test_visits_what_walk_gives_but_for_memory_descriptors_and_dims(zoo: Program) -> None:
    class Plain(Recorder):
        def visit_var_like(self, op: Var) -> None:
            pass

    visitor = Plain()
    visitor.visit_program(zoo)
    inside = {
        child
        for node in walk(zoo)
        if isinstance(node, (MemRef, WindowBuffer))
        for child in walk(node)
        if child is not node
    }
    expected = [n for n in walk(zoo) if not isinstance(n, (Program, Function))]
    left_out = [n for n in expected if n in inside]
    seen = Counter(map(id, visitor.seen))
    wanted = Counter(map(id, expected))
    for node in left_out:
        wanted.pop(id(node), None)
        seen.pop(id(node), None)
    assert seen == wanted


def test_every_node_class_has_a_method_of_its_own(zoo: Program) -> None:
    for cls in NODE_CLASSES:
        name = method_name(cls)
        calls: list[Any] = []

        def note(self: Any, op: Any, calls: list[Any] = calls, name: str = name) -> None:
            calls.append(op)
            getattr(IRVisitor, name)(self, op)

        visitor = type("Probe", (IRVisitor,), {name: note})()
        visitor.visit_program(zoo)
        assert calls, name
        assert all(type(op) is cls for op in calls), name


def test_order_of_statements_and_loops() -> None:
    loop_var, start, stop, step = var("i"), const(0), var("stop"), const(2)
    init, value, result = var("init"), var("value"), var("result")
    carried = IterArg("carried", INDEX, init, U)
    loop = ForStmt(loop_var, start, stop, step, [carried], YieldStmt([value], U), [result], U)
    visitor = Recorder()
    visitor.visit_stmt(loop)
    assert [id(n) for n in visitor.seen] == [
        id(n) for n in (loop, loop_var, start, stop, step, carried, init, loop.body, value, result)
    ]


def test_order_of_scopes_and_attributes(zoo: Program) -> None:
    scope: Any = next(n for n in walk(zoo) if type(n).__name__ == "SpmdScopeStmt")

    class Shallow(Recorder):
        def visit_binary_expr(self, op: Any) -> None:
            pass

    visitor = Shallow()
    visitor.visit_stmt(scope)
    attrs = scope.attrs
    expected = [scope, scope.core_num, attrs["task_id_var"], attrs["manual_dep_edges"][0], attrs["predicate"]]
    assert [id(n) for n in visitor.seen[:6]] == [id(n) for n in (*expected, scope.body)]


def test_initial_value_is_visited_with_the_definition_only() -> None:
    init = const(7)
    carried = IterArg("c", INDEX, init, U)
    body = SeqStmts([EvalStmt(Add(carried, carried, DataType.INDEX, U), U), YieldStmt([carried], U)], U)
    loop = ForStmt(var("i"), const(0), const(1), const(1), [carried], body, [var("r")], U)
    visitor = Recorder()
    visitor.visit_stmt(loop)
    assert sum(n is init for n in visitor.seen) == 1
    assert sum(n is carried for n in visitor.seen) == 4
    # An iter_arg as the root is looked at as a definition, in every traversal.
    for _ in range(2):
        visitor = Recorder()
        visitor.visit_expr(carried)
        assert [id(n) for n in visitor.seen] == [id(carried), id(init)]
    uses = Recorder()
    uses.visit_stmt(body)
    assert not any(n is init for n in uses.seen)


def test_initial_value_with_overridden_loop() -> None:
    init = const(7)
    carried = IterArg("c", INDEX, init, U)
    loop = ForStmt(var("i"), const(0), const(1), const(1), [carried], YieldStmt([carried], U), [var("r")], U)

    class ByHand(Recorder):
        def visit_for_stmt(self, op: ForStmt) -> None:
            for arg in op.iter_args:
                self.visit_expr(arg)
            self.visit_stmt(op.body)

    visitor = ByHand()
    visitor.visit_stmt(loop)
    assert sum(n is init for n in visitor.seen) == 1


def test_nested_carries_are_linear() -> None:
    def visits(depth: int) -> int:
        inner: Stmt = YieldStmt([const(0)], U)
        value: Expr = const(1)
        loops = []
        for level in range(depth):
            carried = IterArg(f"c{level}", INDEX, value, U)
            loops.append(carried)
            value = carried
        for carried in reversed(loops):
            inner = ForStmt(var("i"), const(0), const(1), const(1), [carried], inner, [var("r")], U)
        visitor = Recorder()
        visitor.visit_stmt(inner)
        return len(visitor.seen)

    assert visits(60) <= 2.1 * visits(30)


def test_dims_of_plain_tensor_types_only() -> None:
    n = var("n")
    tensor = var("t", TensorType([n, 4], DataType.FP32))
    window = WindowBuffer(var("b", PtrType()), const(64))
    distributed = var("d", DistributedTensorType([n, 4], DataType.FP32, window))
    visitor = Recorder()
    visitor.visit_expr(tensor)
    assert [id(v) for v in visitor.seen] == [id(tensor), id(n), id(tensor.type.shape[1])]  # type: ignore[attr-defined]
    visitor = Recorder()
    visitor.visit_expr(distributed)
    assert [id(v) for v in visitor.seen] == [id(distributed)]


def test_operator_methods_fall_back() -> None:
    calls = []

    class Binary(IRVisitor):
        def visit_binary_expr(self, op: Any) -> None:
            calls.append(type(op).__name__)
            super().visit_binary_expr(op)

        def visit_mul(self, op: Mul) -> None:
            calls.append("own")
            super().visit_mul(op)

    a = var("a")
    Binary().visit_expr(scalar.add(scalar.mul(a, a), a))
    assert calls == ["Add", "own", "Mul"]


def test_mixins_and_var_like() -> None:
    names = []

    class Names:
        def visit_var_like(self, op: Var) -> None:
            names.append(op.name_hint)

    class Both(Names, IRVisitor):
        pass

    carried = IterArg("c", INDEX, const(0), U)
    Both().visit_expr(scalar.add(var("a"), carried))
    assert names == ["a", "c"]


def test_subclass_need_not_call_super_init_and_a_visitor_may_start_anywhere() -> None:
    class Count(IRVisitor):
        def __init__(self, start: int) -> None:
            self.count = start

        def visit_var(self, op: Var) -> None:
            self.count += 1
            super().visit_var(op)

    counter = Count(10)
    a = var("a")
    counter.visit_assign_stmt(AssignStmt(a, scalar.add(a, const(1)), U))
    counter.visit_call(Call(Op("f"), [a], U))
    counter.visit_var(a)
    assert counter.count == 14


def test_refuses_what_is_no_node() -> None:
    with pytest.raises(TypeError, match="cannot visit int"):
        IRVisitor().visit_expr(3)  # type: ignore[arg-type]


def chain(depth: int) -> Expr:
    e: Expr = var("x")
    for _ in range(depth):
        e = Add(e, const(1), DataType.INDEX, U)
    return e


@pytest.mark.parametrize("override", ["none", "visit_const_int", "visit_binary_expr", "visit_add", "visit_expr"])
def test_deep_chain(override: str) -> None:
    depth = 5_000
    count = 0

    def note(self: Any, op: Any) -> None:
        nonlocal count
        count += 1
        getattr(IRVisitor, override)(self, op)

    cls = IRVisitor if override == "none" else type("Deep", (IRVisitor,), {override: note})
    cls().visit_stmt(ReturnStmt([chain(depth)], U))
    assert count == {"none": 0, "visit_expr": 2 * depth + 1}.get(override, depth)


def test_the_walk_is_linear_in_the_number_of_statements() -> None:
    def visits(count: int) -> int:
        a = var("a")
        body = []
        for _ in range(count):
            b = var("b")
            body.append(AssignStmt(b, scalar.add(a, const(1)), U))
            a = b
        visitor = Recorder()
        visitor.visit_function(Function("f", [], [], SeqStmts(body, U), U))
        return len(visitor.seen)

    assert visits(2_000) <= 2.01 * visits(1_000)
