from __future__ import annotations

from typing import Any

import pytest
from tree_kit import INDEX, U, const, var

from pypto.diag.errors import InternalError
from pypto.ir import scalar
from pypto.ir.dtype import DataType
from pypto.ir.enums import MemorySpace, TensorLayout
from pypto.ir.equality import assert_structural_equal, structural_equal
from pypto.ir.expr import (
    Add,
    Call,
    ConstInt,
    Expr,
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
from pypto.ir.mutator import IRMutator
from pypto.ir.node import Role
from pypto.ir.program import Function, Program
from pypto.ir.span import Span
from pypto.ir.stmt import (
    AssignStmt,
    BreakStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    WhileStmt,
    YieldStmt,
    attach_leading_comments,
)
from pypto.ir.traversal import NODE_CLASSES, NODE_FIELDS, method_name, walk
from pypto.ir.type import (
    DistributedTensorType,
    PtrType,
    ScalarType,
    TensorType,
    TensorView,
    TileType,
    TupleType,
)


class Rename(IRMutator):
    """Replaces one variable."""

    def __init__(self, old: Var, new: Expr) -> None:
        self.old, self.new = old, new

    def visit_var(self, op: Var) -> Expr:
        return self.new if op is self.old else super().visit_var(op)


# --- identity ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["none", "visit_expr", "visit_stmt", *(method_name(c) for c in NODE_CLASSES)])
def test_unchanged_gives_the_same_object(zoo: Program, name: str) -> None:
    def forward(self: Any, op: Any) -> Any:
        return getattr(IRMutator, name)(self, op)

    cls = IRMutator if name == "none" else type("Same", (IRMutator,), {name: forward})
    assert cls().visit_program(zoo) is zoo


def test_rebuilding_everything_keeps_all_fields(zoo: Program) -> None:
    """Every constant, variable-free leaf and statement is made anew, so that no node can be returned as it was."""

    class Renew(IRMutator):
        def visit_const_int(self, op: ConstInt) -> Expr:
            return op.replace()

        def visit_var(self, op: Var) -> Expr:
            new = self._remap.get(op)
            if new is None:
                new = self._remap[op] = op.replace(type=self._rewrite_type(op.type))
            return new  # type: ignore[no-any-return]

        def visit_stmt(self, stmt: Stmt) -> Stmt:
            new = super().visit_stmt(stmt)
            return new.replace() if new is stmt else new

    new = Renew().visit_program(zoo)
    assert_structural_equal(new, zoo, compare_memref=True)
    before, after = list(walk(zoo, types=True)), list(walk(new, types=True))
    assert len(before) == len(after)
    shared = [type(b).__name__ for b, a in zip(before, after, strict=True) if a is b]
    assert set(shared) <= {"ConstFloat", "ConstBool", "Call", "Function"}  # what holds no variable and no integer
    for b, a in zip(before, after, strict=True):
        assert type(a) is type(b)
        for info in NODE_FIELDS[type(b)]:
            if info.role is Role.IGNORED:
                assert getattr(a, info.name) == getattr(b, info.name), info
        if isinstance(b, Stmt):
            assert a.leading_comments == b.leading_comments
    main, old = new.get_function("main"), zoo.get_function("main")
    assert main is not None and old is not None and main is not old
    assert main.requires_runtime_binding
    assert (main.func_type, main.level, main.role, main.name) == (old.func_type, old.level, old.role, old.name)


def test_a_change_leaves_the_rest_shared() -> None:
    x, y = var("x"), var("y")
    first, second = AssignStmt(var("a"), scalar.add(x, x), U), AssignStmt(var("b"), scalar.add(y, y), U)
    f = Function("f", [x, y], [], SeqStmts([first, second], U), U)
    g = Function("g", [], [], ReturnStmt(U), U)
    program = Program([f, g], "p", U)

    class Edit(IRMutator):
        def visit_add(self, op: Add) -> Expr:
            return scalar.sub(op.left, op.right) if op.left is y else super().visit_add(op)

    new = Edit().visit_program(program)
    assert new is not program and new.name == "p"
    assert new.get_function("g") is g
    body: Any = new.get_function("f").body  # type: ignore[union-attr]
    assert body[0] is first and body[1] is not second


# --- variables --------------------------------------------------------------------------------------------------------


def test_variables_whose_types_change_are_made_anew_once() -> None:
    n = var("n")
    view = TensorView([n, 1], TensorLayout.ND, [n, scalar.add(n, const(1))])
    kind = TensorType([n, 64], DataType.FP32, None, view)
    x, y = Var("x", kind, Span("f.py", 3, 4)), var("y", kind)
    body = SeqStmts([AssignStmt(y, Call(Op("f"), [x, x], {}, {"dump_vars": [x]}, kind, U), U), ReturnStmt([y], U)], U)
    f = Function("f", [x], [kind], body, U)
    new = Rename(n, const(8)).visit_function(f)
    new_x: Any = new.params[0]
    stmts: Any = new.body
    call = stmts[0].value
    assert new_x is not x and new_x.name_hint == "x" and str(new_x.span) == "f.py:3:4"
    assert new_x.unique_id != x.unique_id
    assert call.args[0] is new_x and call.args[1] is new_x and call.attrs["dump_vars"][0] is new_x
    assert stmts[1].value[0] is stmts[0].var
    dims = [[e.value for e in t.shape] for t in (new_x.type, call.type, new.return_types[0])]
    assert dims == [[8, 64]] * 3
    assert new_x.type.tensor_view.stride[0].value == 8
    assert isinstance(new_x.type.tensor_view.valid_shape[1], Add)


def test_types_are_brought_to_canonical_form() -> None:
    n = var("n")
    x = var("x", TensorType([8], DataType.FP32, None, TensorView([], TensorLayout.ND, [n])))
    new: Any = Rename(n, const(8)).visit_expr(x)
    assert new.type.tensor_view is None


def test_memrefs_and_window_buffers_stay_shared() -> None:
    base, new_base = var("mem_vec_1", PtrType()), var("mem_vec_2", PtrType())
    memref = MemRef(base, 0, 64)
    tile = [var(f"t{i}", TileType([16], DataType.FP32, memref, None, MemorySpace.Vec)) for i in range(2)]
    new: Any = Rename(base, new_base).visit_expr(MakeTuple(tile, U))
    a, b = new.elements
    assert a.type.memref is b.type.memref and a.type.memref is not memref
    assert a.type.memref.base_ is new_base and a.type.memref.name_hint == "mem_vec_2"
    window = WindowBuffer(base, const(64), True, False)
    pair = [var(f"w{i}", DistributedTensorType([16], DataType.FP32, window)) for i in range(2)]
    new = Rename(base, new_base).visit_expr(MakeTuple(pair, U))
    a, b = new.elements
    assert a.type.window_buffer is b.type.window_buffer
    assert a.type.window_buffer.base is new_base and a.type.window_buffer.load_from_host


def test_iter_args_are_remapped_in_their_loop_only() -> None:
    x, y = var("x"), var("y")
    carried = IterArg("c", INDEX, x, U)
    loop = ForStmt(var("i"), const(0), const(4), const(1), [carried], YieldStmt([carried], U), [var("r")], U)
    outside = EvalStmt(carried, U)
    new: Any = Rename(x, y).visit_stmt(SeqStmts([loop, outside], U))
    new_arg = new[0].iter_args[0]
    assert type(new_arg) is IterArg and new_arg.initValue is y
    assert new[0].body.value[0] is new_arg
    assert new[1].expr is carried
    spinning = WhileStmt(scalar.lt(carried, x), [carried], YieldStmt([carried], U), [var("r")], U)
    again: Any = Rename(x, y).visit_stmt(spinning)
    assert again.condition.left is again.iter_args[0] and again.condition.right is y


def test_initial_values_are_rewritten_once_however_often_the_iter_arg_is_used() -> None:
    x = var("x")
    visits = 0

    class Count(IRMutator):
        def visit_var(self, op: Var) -> Expr:
            nonlocal visits
            visits += op is x
            return super().visit_var(op)

    carried = IterArg("c", INDEX, x, U)
    body = SeqStmts([EvalStmt(carried, U)] * 10 + [YieldStmt([carried], U)], U)
    loop = ForStmt(var("i"), const(0), const(4), const(1), [carried], body, [var("r")], U)
    assert Count().visit_stmt(loop) is loop
    assert visits == 1


def test_attributes_of_all_scopes_follow_a_renamed_variable(zoo: Program) -> None:
    task: Any = next(n for n in walk(zoo) if isinstance(n, Var) and n.name_hint == "task")
    new = Rename(task, var("other", task.type)).visit_program(zoo)
    assert not any(n is task for n in walk(new, types=True))
    assert structural_equal(new, zoo)


def test_a_definition_must_stay_a_variable() -> None:
    x = var("x")
    with pytest.raises(InternalError, match="parameter of function 'f'.*must map to a Var"):
        Rename(x, const(1)).visit_function(Function("f", [x], [], ReturnStmt(U), U))
    with pytest.raises(InternalError, match=r"AssignStmt.var must map to a Var"):
        Rename(x, const(1)).visit_stmt(AssignStmt(x, const(2), U))
    carried = IterArg("c", INDEX, const(0), U)

    class Lose(IRMutator):
        def visit_iter_arg(self, op: IterArg) -> Expr:
            return x

    loop = ForStmt(var("i"), const(0), const(4), const(1), [carried], YieldStmt([carried], U), [var("r")], U)
    with pytest.raises(InternalError, match=r"ForStmt.iter_args must map to a IterArg"):
        Lose().visit_stmt(loop)


def test_a_forgotten_return_value_is_told() -> None:
    class Forget(IRMutator):
        def visit_call(self, op: Call) -> Expr:  # type: ignore[return]
            super().visit_call(op)

    with pytest.raises(TypeError, match=r"EvalStmt.expr must map to a Expr, got NoneType"):
        Forget().visit_stmt(EvalStmt(Call(Op("f"), [], U), U))


def test_types_of_tuples_follow_their_elements() -> None:
    x, y = var("x"), var("y", ScalarType(DataType.FP32))
    new: Any = Rename(x, y).visit_expr(TupleGetItemExpr(MakeTuple([x, x], U), 1, U))
    assert new.type is y.type
    assert [t.dtype for t in new.tuple.type.types] == [DataType.FP32] * 2


# --- statements -------------------------------------------------------------------------------------------------------


class Drop(IRMutator):
    """Deletes evaluations, doubles breaks."""

    def visit_eval_stmt(self, op: EvalStmt) -> Stmt:
        return SeqStmts([], U)

    def visit_break_stmt(self, op: BreakStmt) -> Stmt:
        return SeqStmts([op, SeqStmts([op.replace()], U)], U)


def test_sequences_are_flattened_where_they_change() -> None:
    keep, drop, twice = AssignStmt(var("a"), const(1), U), EvalStmt(const(2), U), BreakStmt(U)
    assert Drop().visit_stmt(SeqStmts([keep, drop], U)) is keep
    new: Any = Drop().visit_stmt(SeqStmts([keep, twice, drop], U))
    assert [type(s).__name__ for s in new.stmts] == ["AssignStmt", "BreakStmt", "BreakStmt"]
    single = SeqStmts([keep], U)
    assert Drop().visit_stmt(single) is single
    empty: Any = Drop().visit_stmt(IfStmt(const(1), drop, None, [], U))
    assert type(empty.then_body) is SeqStmts and len(empty.then_body) == 0


def test_comments_survive() -> None:
    stmt = attach_leading_comments(IfStmt(const(1), EvalStmt(const(2), U), None, [], U), ["why"])
    new = Drop().visit_stmt(stmt)
    assert new is not stmt and new.leading_comments == ["why"]


def test_submit_and_call_are_rewritten_alike() -> None:
    x, y = var("x"), var("y")
    submit = Submit(
        GlobalVar("k"), [x], [x], {"a": 1}, {"compiler_manual_dep_edges": [x]}, INDEX, U,
        core_num=x, sync_start=True, predicate=scalar.gt(x, const(0)),
    )  # fmt: skip
    new: Any = Rename(x, y).visit_expr(submit)
    assert new.args[0] is y and new.deps[0] is y and new.core_num is y and new.predicate.left is y
    assert new.attrs["compiler_manual_dep_edges"][0] is y
    assert new.sync_start and new.op is submit.op and new.kwargs == {"a": 1}


def test_statement_mutators_do_not_go_into_expressions_needlessly() -> None:
    """Nothing can change in an expression when no expression method is overridden; what is remapped later, is seen."""
    n = var("n")
    x = var("x", TensorType([n], DataType.FP32))
    define, use = AssignStmt(x, Call(Op("f"), [], x.type, U), U), EvalStmt(x, U)

    class Retype(IRMutator):
        def visit_assign_stmt(self, op: AssignStmt) -> Stmt:
            new = self._remap[op.var] = op.var.replace(type=TensorType([4], DataType.FP32))
            return op.replace(var=new)

    new: Any = Retype().visit_stmt(SeqStmts([define, use], U))
    assert new[1].expr is new[0].var


def test_a_use_of_an_iter_arg_is_never_taken_for_its_definition() -> None:
    x, y = var("x"), var("y")
    carried = IterArg("c", INDEX, x, U)

    class Late(IRMutator):
        """Starts to replace ``x`` inside the loop, when its definition has been passed."""

        def visit_for_stmt(self, op: ForStmt) -> Stmt:
            return super().visit_for_stmt(op)

        def visit_break_stmt(self, op: BreakStmt) -> Stmt:
            self._remap[x] = y
            return op

    body = SeqStmts([BreakStmt(U), EvalStmt(MakeTuple([carried, x], U), U)], U)
    new: Any = Late().visit_stmt(ForStmt(var("i"), const(0), const(4), const(1), [carried], body, [var("r")], U))
    use = new.body[1].expr
    assert new.iter_args[0] is carried and use.elements[0] is carried and use.elements[1] is y


@pytest.mark.parametrize("override", ["none", "visit_var", "visit_binary_expr", "visit_add", "visit_expr"])
def test_deep_chain(override: str) -> None:
    x = var("x")
    e: Expr = x
    for _ in range(5_000):
        e = Add(e, const(1), DataType.INDEX, U)

    def forward(self: Any, op: Any) -> Any:
        return getattr(IRMutator, override)(self, op)

    cls: Any = IRMutator if override == "none" else type("Deep", (IRMutator,), {override: forward})
    stmt = EvalStmt(e, U)
    assert cls().visit_stmt(stmt) is stmt
    mutator = cls()
    mutator._remap[x] = y = var("y")
    new: Any = mutator.visit_stmt(stmt).expr
    depth = 0
    while isinstance(new, Add):
        new, depth = new.left, depth + 1
    assert new is y and depth == 5_000


def test_empty_tuple_types_and_unknown_types_pass() -> None:
    call = Call(Op("f"), [var("x")], TupleType([]), U)
    new: Any = Rename(call.args[0], var("y")).visit_expr(call)  # type: ignore[arg-type]
    assert new.type is call.type
