from __future__ import annotations

from typing import Any

import pytest
from tree_kit import INDEX, U, const, seq, var

from pypto.ir import scalar
from pypto.ir.dtype import DataType
from pypto.ir.enums import MemorySpace, SplitMode
from pypto.ir.equality import assert_structural_equal, structural_equal
from pypto.ir.expr import Add, Call, Expr, IterArg, MakeTuple, MemRef, Op, Var, WindowBuffer
from pypto.ir.program import Function, Program
from pypto.ir.stmt import (
    AssignStmt,
    BreakStmt,
    ClusterScopeStmt,
    CommDomainScopeStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    InCoreScopeStmt,
    ReturnStmt,
    RuntimeScopeStmt,
    SeqStmts,
    SplitAivScopeStmt,
    Stmt,
    WhileStmt,
    YieldStmt,
)
from pypto.ir.traversal import NODE_CLASSES
from pypto.ir.tree import (
    ParentStmtAnalysis,
    collect_def_vars,
    deduce_call_return_type,
    deep_clone,
    definitions,
    find_yield_stmt,
    flatten_to_stmts,
    free_vars,
    get_last_yield_stmt,
    own_definitions,
    substitute,
    substitute_expr,
    substitute_stmt,
    walk,
)
from pypto.ir.type import PtrType, ScalarType, TensorType, TileType, TupleType


def assign(target: Var, value: Expr | None = None) -> AssignStmt:
    return AssignStmt(target, const(1) if value is None else value, U)


def loop(body: Stmt, carried: list[IterArg] | None = None, results: list[Var] | None = None) -> ForStmt:
    return ForStmt(var("i"), const(0), const(4), const(1), carried or [], body, results or [], U)


def ids(items: Any) -> list[int]:
    """Nodes by identity: ``==`` on expressions builds a node."""
    return [id(item) for item in items]


# --- walk -------------------------------------------------------------------------------------------------------------


def test_walk_meets_every_class(zoo: Program) -> None:
    assert {type(node) for node in walk(zoo, types=True)} == set(NODE_CLASSES)


def test_walk_is_pre_order_with_initial_values_at_definitions() -> None:
    x = var("x")
    carried = IterArg("c", INDEX, x, U)
    result = var("r")
    stmt = loop(YieldStmt([carried], U), [carried], [result])
    expected = [stmt, stmt.loop_var, stmt.start, stmt.stop, stmt.step, carried, x, stmt.body, carried, result]
    assert ids(walk(stmt)) == ids(expected)
    assert ids(walk(carried)) == ids([carried, x])


def test_walk_of_types() -> None:
    n, m = var("n"), var("m")
    x = var("x", TensorType([n, scalar.add(m, const(1))], DataType.FP32))
    assert ids(walk(x)) == [id(x)]
    names = [node.name_hint for node in walk(x, types=True) if isinstance(node, Var)]
    assert names == ["x", "n", "m"]
    f = Function("f", [], [x.type], ReturnStmt(U), U)
    assert [v.name_hint for v in walk(f, types=True) if isinstance(v, Var)] == ["n", "m"]


# --- statements -------------------------------------------------------------------------------------------------------


def test_flatten_to_stmts() -> None:
    a, b, c = BreakStmt(U), BreakStmt(U), BreakStmt(U)
    assert flatten_to_stmts(seq(a, seq(seq(b), seq()), c)) == [a, b, c]
    assert flatten_to_stmts(a) == [a]
    assert flatten_to_stmts(seq()) == []
    with pytest.raises(TypeError):
        flatten_to_stmts(const(1))  # type: ignore[arg-type]


def test_collect_def_vars_goes_into_loops_branches_and_scopes_but_two() -> None:
    names = [var(f"v{i}") for i in range(9)]
    body = seq(
        assign(names[0]),
        loop(seq(assign(names[1]), YieldStmt(U))),
        IfStmt(const(1), assign(names[2]), assign(names[3]), [var("phi")], U),
        WhileStmt(const(1), [], assign(names[4]), [], U),
        InCoreScopeStmt(body=assign(names[5])),
        ClusterScopeStmt(body=SplitAivScopeStmt(SplitMode.NONE, body=assign(names[6]))),
        RuntimeScopeStmt(body=assign(names[7])),
        CommDomainScopeStmt([], [], body=assign(names[8])),
    )
    assert ids(collect_def_vars(body)) == ids(names[:7])


def test_yields() -> None:
    first, last = YieldStmt([const(1)], U), YieldStmt([const(2)], U)
    assert find_yield_stmt(seq(BreakStmt(U), seq(first), last)) is first
    assert find_yield_stmt(RuntimeScopeStmt(body=first)) is None
    assert find_yield_stmt(BreakStmt(U)) is None
    assert get_last_yield_stmt(seq(first, seq(last))) is last
    assert get_last_yield_stmt(seq(RuntimeScopeStmt(body=seq(SplitAivScopeStmt(SplitMode.NONE, body=last))))) is last
    assert get_last_yield_stmt(InCoreScopeStmt(body=last)) is None
    assert get_last_yield_stmt(seq(last, BreakStmt(U))) is None
    assert get_last_yield_stmt(seq()) is None


def test_parents() -> None:
    leaf, other = BreakStmt(U), BreakStmt(U)
    inner = loop(leaf)
    branch = IfStmt(const(1), inner, other, [], U)
    body = seq(branch)
    analysis = ParentStmtAnalysis()
    assert not analysis.has_parent(leaf)
    analysis.build_map(Function("f", [], [], body, U))
    assert analysis.get_parent(leaf) is inner
    assert analysis.get_parent(inner) is branch and analysis.get_parent(other) is branch
    assert analysis.get_parent(branch) is body
    assert analysis.get_parent(body) is None and not analysis.has_parent(body)
    foreign = BreakStmt(U)
    assert analysis.get_parent(foreign) is None
    analysis.build_map(Function("g", [], [], seq(foreign), U))
    assert analysis.has_parent(foreign) and not analysis.has_parent(leaf)
    analysis.clear()
    assert not analysis.has_parent(foreign)


# --- free variables ---------------------------------------------------------------------------------------------------


def free(node: Any, types: bool = True) -> list[str]:
    return [v.name_hint for v in free_vars(node, types)]


def test_free_variables_of_ssa_code() -> None:
    n, x, a, b = var("n"), var("x"), var("a"), var("b")
    t = var("t", TensorType([n], DataType.FP32))
    carried = IterArg("c", INDEX, x, U)
    body = seq(assign(a, scalar.add(x, carried)), YieldStmt([a], U))
    stmt = seq(loop(body, [carried], [b]), EvalStmt(b, U), EvalStmt(t, U))
    assert free(stmt) == ["x", "t", "n"]
    assert free(stmt, types=False) == ["x", "t"]
    assert free(body) == ["x", "c"]
    assert free(Function("f", [x, t], [], stmt, U)) == ["n"]
    assert free(scalar.add(x, const(1))) == ["x"]


def test_free_variables_before_ssa() -> None:
    x, y = var("x"), var("y")
    again = assign(x, scalar.add(x, const(1)))
    assert free(again) == ["x"]
    assert free(seq(assign(x), again)) == []
    both = IfStmt(const(1), assign(x), assign(x), [], U)
    assert free(seq(both, EvalStmt(x, U))) == []
    one = IfStmt(const(1), seq(assign(x), assign(y)), assign(y), [], U)
    assert free(seq(one, EvalStmt(x, U), EvalStmt(y, U))) == ["x"]
    assert free(seq(loop(assign(x)), EvalStmt(x, U))) == ["x"]
    assert free(seq(InCoreScopeStmt(body=assign(x)), EvalStmt(x, U))) == []


def test_free_variables_in_attributes_and_memory() -> None:
    task, base = var("task", ScalarType(DataType.TASK_ID)), var("base", PtrType())
    scope = InCoreScopeStmt(body=BreakStmt(U), attrs={"manual_dep_edges": [task]})
    assert free(scope) == ["task"]
    tile = var("t", TileType([8], DataType.FP32, MemRef(base, 0, 32), None, MemorySpace.Vec))
    assert free(EvalStmt(tile, U)) == ["t", "base"]
    assert free(assign(tile)) == ["base"]
    window = WindowBuffer(base, const(64))
    assert free(CommDomainScopeStmt([], [window], body=BreakStmt(U))) == ["base"]


def test_a_scope_defines_its_task_id() -> None:
    task, x = var("task", ScalarType(DataType.TASK_ID)), var("x")
    scope = InCoreScopeStmt(body=assign(x), attrs={"task_id_var": task})
    after = InCoreScopeStmt(body=BreakStmt(U), attrs={"manual_dep_edges": [task]})
    assert free(seq(scope, after)) == [] and free(seq(after, scope)) == ["task"]
    assert ids(own_definitions(scope)) == [id(task)] and ids(own_definitions(assign(x))) == [id(x)]
    carried, result = IterArg("c", INDEX, x, U), var("r")
    stmt = loop(assign(x), [carried], [result])
    assert ids(own_definitions(stmt)) == [id(stmt.loop_var), id(carried), id(result)]


def test_a_whole_program_has_no_free_variables(zoo: Program) -> None:
    assert free_vars(zoo) == []


# --- substitution -----------------------------------------------------------------------------------------------------


def test_substitute_at_uses_definitions_and_in_types() -> None:
    n, x, y = var("n"), var("x"), var("y")
    t = var("t", TensorType([n], DataType.FP32))
    new: Any = substitute_stmt(seq(assign(x, n), EvalStmt(MakeTuple([x, t], U), U)), [(x, y), (n, const(8))])
    assert new[0].var is y and new[0].value.value == 8
    assert new[1].expr.elements[0] is y
    assert new[1].expr.elements[1].type.shape[0].value == 8


def test_substitute_without_a_match_gives_the_same_object(zoo: Program) -> None:
    e = scalar.add(var("x"), const(1))
    assert substitute_expr(e, [(var("z"), const(2))]) is e
    assert substitute_expr(e, []) is e
    assert substitute(zoo, [(var("z"), const(2))]) is zoo


def test_a_cyclic_map_is_applied_once() -> None:
    a, b = var("a"), var("b")
    new: Any = substitute_expr(scalar.sub(a, b), [(a, b), (b, a)])
    assert new.left is b and new.right is a
    # The same through types: each replacement's type mentions the other.
    x = var("x", TensorType([a], DataType.FP32))
    y = var("y", TensorType([b], DataType.FP32))
    swapped: Any = substitute_expr(MakeTuple([x, y], U), [(x, y), (y, x), (a, b), (b, a)])
    first, second = swapped.elements
    assert (first.name_hint, second.name_hint) == ("y", "x")
    assert first.type.shape[0] is a and second.type.shape[0] is b


def test_a_replacement_whose_type_is_substituted_is_made_anew_once() -> None:
    n, m = var("n"), var("m")
    x, y = var("x", TensorType([n], DataType.FP32)), var("y", TensorType([n], DataType.FP32))
    for pairs in ([(x, y), (n, m)], [(n, m), (x, y)]):
        new: Any = substitute_expr(MakeTuple([x, x, y], U), pairs)
        assert new.elements[0] is new.elements[1] is new.elements[2]
        assert new.elements[0].name_hint == "y" and new.elements[0].type.shape[0] is m


def test_substitute_checks_its_arguments() -> None:
    with pytest.raises(TypeError, match="only variables"):
        substitute_expr(const(1), [(const(1), const(2))])
    with pytest.raises(TypeError, match="by an expression"):
        substitute_expr(const(1), [(var("x"), 2)])
    with pytest.raises(TypeError, match="expects a statement"):
        substitute_stmt(const(1), [])  # type: ignore[arg-type]


# --- clones -----------------------------------------------------------------------------------------------------------


def test_deep_clone_of_everything(zoo: Program) -> None:
    clone, pairs = deep_clone(zoo)
    assert_structural_equal(clone, zoo, compare_memref=True)
    fresh = {id(new) for _, new in pairs}
    old = {id(was) for was, _ in pairs}
    assert len(fresh) == len(pairs) and not fresh & old
    assert {id(v) for v in definitions(zoo)} <= old
    assert {id(v) for v in definitions(clone)} <= fresh
    statements = {id(n) for n in walk(zoo) if isinstance(n, Stmt)}
    assert not any(id(n) in statements for n in walk(clone))
    assert {type(was) for was, _ in pairs} == {Var, IterArg, MemRef}
    for before, after in zip(walk(zoo), walk(clone), strict=True):
        assert before.span is after.span
        if isinstance(before, Stmt):
            assert before.leading_comments == after.leading_comments


def test_deep_clone_keeps_what_comes_from_outside() -> None:
    n, outer, inner = var("n"), var("outer", TensorType([8], DataType.FP32)), var("inner")
    memref = MemRef(var("base", PtrType()), 0, 32)
    shared = [var(f"t{i}", TileType([8], DataType.FP32, memref, None, MemorySpace.Vec)) for i in range(2)]
    use = Call(Op("f"), [outer, shared[0], n], shared[1].type, U)
    clone, pairs = deep_clone(seq(assign(shared[1], use), assign(inner, n)), [(n, const(3))])
    call: Any = clone[0].value  # type: ignore[attr-defined]
    assert call.args[0] is outer and call.args[1] is shared[0] and call.args[2].value == 3
    assert ids(was for was, _ in pairs) == ids([memref, shared[1], inner])
    new: Any = clone[0].var  # type: ignore[attr-defined]
    assert new.type.memref is not memref and MemRef.same_allocation(new.type.memref, memref)
    assert call.type.memref is new.type.memref


def test_deep_clone_of_loops_and_plain_statements() -> None:
    x = var("x")
    carried = IterArg("c", INDEX, x, U)
    result = var("r")
    body = seq(loop(seq(BreakStmt(U), YieldStmt([carried], U)), [carried], [result]), EvalStmt(result, U))
    clone, pairs = deep_clone(body)
    assert structural_equal(body, clone)
    assert [was.name_hint for was, _ in pairs] == ["i", "c", "r"]
    new: Any = clone[0]
    assert new.iter_args[0] is dict((id(a), b) for a, b in pairs)[id(carried)]
    assert new.iter_args[0].initValue is x
    assert new.body[1].value[0] is new.iter_args[0]
    assert clone[1].expr is new.return_vars[0]
    single = seq(BreakStmt(U))
    copy, none = deep_clone(single)
    assert copy is not single and type(copy) is SeqStmts and copy[0] is not single[0] and none == []


def test_a_variable_used_before_its_definition_is_cloned_too() -> None:
    x = var("x")
    body = loop(seq(EvalStmt(x, U), assign(x)))
    clone, _ = deep_clone(body)
    new: Any = clone.body
    assert new[0].expr is new[1].var and new[1].var is not x


# --- result types of calls --------------------------------------------------------------------------------------------


def tensor(*dims: Any) -> TensorType:
    return TensorType(list(dims), DataType.FP32)


def test_deduce_binds_symbolic_dims() -> None:
    n, m, k = var("n"), var("m"), var("k")
    params = [var("a", tensor(n, m)), var("b", tensor(m, 8))]
    args = [var("x", tensor(k, 16)), var("y", tensor(16, 8))]
    result: Any = deduce_call_return_type(
        params, args, [tensor(n, scalar.mul(m, const(2))), INDEX, TupleType([tensor(n)])]
    )
    assert result[0].shape[0] is k
    product = result[0].shape[1]
    assert type(product).__name__ == "Mul" and product.left.value == 16  # not folded
    assert result[1] is INDEX
    assert result[2].types[0].shape[0] is k


def test_deduce_errors() -> None:
    n, k = var("n"), var("k")
    square = [var("a", tensor(n, n))]
    assert deduce_call_return_type([], [const(1)], []) == []
    with pytest.raises(ValueError, match="must match args size"):
        deduce_call_return_type(square, [], [tensor(n)])
    with pytest.raises(ValueError, match="has conflicting bindings: .* are not provably equal"):
        deduce_call_return_type(square, [var("x", tensor(k, 4))], [tensor(n)])
    twice = scalar.add(k, k)
    same: Any = deduce_call_return_type(square, [var("x", tensor(twice, scalar.mul(const(2), k)))], [tensor(n)])
    assert same[0].shape[0] is twice
    with pytest.raises(ValueError, match="has conflicting bindings: .* are not provably equal"):
        deduce_call_return_type(square, [var("x", tensor(twice, scalar.mul(const(3), k)))], [tensor(n)])


def test_deduce_with_scalar_parameters() -> None:
    rows = var("rows")
    result: Any = deduce_call_return_type([rows], [const(12)], [tensor(rows)])
    assert result[0].shape[0].value == 12


# --- depth and growth -------------------------------------------------------------------------------------------------


def test_deep_chain() -> None:
    x = var("x")
    e: Expr = x
    for _ in range(5_000):
        e = Add(e, const(1), DataType.INDEX, U)
    stmt = assign(var("y"), e)
    assert sum(1 for _ in walk(stmt)) == 10_003
    assert ids(free_vars(stmt)) == [id(x)]
    assert free(substitute_stmt(stmt, [(x, var("z"))])) == ["z"]
    clone, pairs = deep_clone(stmt)
    assert len(pairs) == 1 and free(clone) == ["x"]


def test_deep_nesting_of_statements() -> None:
    body: Stmt = assign(var("x"), var("y"))
    for _ in range(400):
        body = loop(IfStmt(const(1), body, None, [], U))
    assert free(body) == ["y"]
    assert len(collect_def_vars(body)) == 1
    assert structural_equal(deep_clone(body)[0], body)
