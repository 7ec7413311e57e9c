"""The builders: context managers (pypto.ir) and flat begin/end calls (pypto.pypto_core.ir)."""

import inspect

import pytest

from pypto import ir
from pypto.pypto_core import ir as core

S = ir.Span.unknown()
INDEX = ir.ScalarType(ir.INDEX)
F32 = ir.ScalarType(ir.FP32)


def line():
    return inspect.currentframe().f_back.f_lineno


def names(stmts):
    return [s.var.name_hint for s in stmts]


@pytest.fixture
def ib():
    return ir.IRBuilder()


# --- functions --------------------------------------------------------------------------------------------------------


def test_the_example_of_the_specification(ib):
    with ib.function("tri") as f:
        n = f.param("n", ir.ScalarType(ir.INDEX))
        f.return_type(ir.ScalarType(ir.INDEX))
        i = ib.var("i", ir.ScalarType(ir.INDEX))
        with ib.for_loop(i, 0, n, 1) as loop:
            acc = loop.iter_arg("acc", 0)
            loop.return_var("acc_out")
            nxt = ib.let("nxt", acc + i)
            ib.emit(ir.YieldStmt([nxt], ir.Span.unknown()))
        ib.return_stmt(loop.output())
    assert f.get_result().as_python(format=False) == (
        "@pl.function\n"
        "def tri(n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:\n"
        "    for i, (acc,) in pl.range(n, init_values=(0,)):\n"
        "        nxt: pl.Scalar[pl.INDEX] = acc + i\n"
        "        acc_out: pl.Scalar[pl.INDEX] = pl.yield_(nxt)\n"
        "    return acc_out"
    )


def test_function_fields(ib):
    with ib.function(
        "k", type=ir.FunctionType.InCore, role=ir.Role.SubWorker, attrs={"split": 1}, requires_runtime_binding=True
    ) as f:
        x = f.param("x", INDEX)
        y = f.param("y", INDEX, direction=ir.ParamDirection.Out)
        f.return_type(INDEX)
        f.return_type(F32)
        ib.add_function_attrs({"auto_scope": False})
    k = f.get_result()
    assert (k.name, k.func_type, k.level, k.role) == ("k", ir.InCore, ir.Level.CHIP_DIE, ir.Role.SubWorker)
    assert k.params[0] is x
    assert k.params[1] is y
    assert k.param_directions == [ir.ParamDirection.In, ir.ParamDirection.Out]
    assert list(k.return_types) == [INDEX, F32]
    assert dict(k.attrs) == {"split": 1, "auto_scope": False}
    assert k.requires_runtime_binding
    assert k.split is ir.SplitMode.UP_DOWN


def test_body_shapes(ib):
    with ib.function("none") as none:
        pass
    with ib.function("one") as one:
        ib.let("a", 1)
    with ib.function("two") as two:
        ib.let("a", 1)
        ib.let("b", 2)
    assert type(none.get_result().body) is ir.SeqStmts
    assert none.get_result().body.stmts == []
    assert type(one.get_result().body) is ir.AssignStmt
    assert names(two.get_result().body.stmts) == ["a", "b"]


def test_duplicate_function_attributes(ib):
    with ib.function("f", attrs={"a": 1}):
        with ib.if_stmt(ir.ConstBool(True, S)):
            ib.add_function_attrs([("b", 2)])
        for attrs in ({"a": 1}, {"b": 3}):
            with pytest.raises(ValueError, match="Duplicate function attribute"):
                ib.add_function_attrs(attrs)
    with pytest.raises(RuntimeError):
        ib.add_function_attrs({"a": 1})


def test_a_function_inside_a_function(ib):
    with ib.function("f") as f:
        with pytest.raises(RuntimeError, match="Cannot begin function"), ib.function("g"):
            pass
        with ib.if_stmt(ir.ConstBool(True, S)):
            with pytest.raises(RuntimeError, match="Cannot begin function"), ib.function("g"):
                pass
            ib.let("a", 1)
    assert type(f.get_result().body) is ir.IfStmt


def test_a_contradicting_level_is_reported_where_it_is_written(ib):
    with pytest.raises(ValueError, match="implies level"), ib.function("f", type=ir.InCore, level=ir.Level.HOST):
        pytest.fail("the block must not be entered")
    with ib.function("f"):
        pass


def test_results_before_the_end(ib):
    with ib.function("f") as f:
        with pytest.raises(RuntimeError, match="not finished"):
            f.get_result()
        i = ib.var("i", INDEX)
        with ib.for_loop(i, 0, 4, 1) as loop:
            loop.iter_arg("a", 0)
            loop.return_var("r")
            for ask in (loop.get_result, loop.output, loop.outputs):
                with pytest.raises(RuntimeError, match="not finished"):
                    ask()
        assert loop.get_result().loop_var is i
    assert f.get_result().name == "f"


# --- spans ------------------------------------------------------------------------------------------------------------


def test_spans_default_to_the_callers_lines(ib):
    with ib.function("f") as f:
        first = line() - 1
        p = f.param("p", INDEX)
        a = ib.let("a", p)
        i = ib.var("i", INDEX)
        with ib.for_loop(i, 0, p, 1) as loop:
            start = line() - 1
            ib.eval_stmt(a)
        ib.return_stmt(a)
        last = line() - 1
    function, stmt = f.get_result(), loop.get_result()
    assert (function.span.filename, function.span.begin_line, function.span.end_line) == (__file__, first, last)
    assert (stmt.span.begin_line, stmt.span.end_line) == (start, start + 2)
    assert p.span.begin_line == first + 2
    assert a.span.begin_line == first + 3
    assert i.span.begin_line == first + 4
    assert function.body[0].span.begin_line == first + 3


def test_explicit_spans(ib):
    here = ir.Span("user.py", 3, 1)
    with ib.function("f", span=here) as f:
        assert f.param("p", INDEX, span=here).span is here
        assert ib.let("a", 1, span=here).span is here
        assert ib.return_stmt(span=here).span is here
    span = f.get_result().span
    assert (span.filename, span.begin_line, span.begin_column) == ("user.py", 3, 1)
    assert span.is_valid()


# --- statements -------------------------------------------------------------------------------------------------------


def test_statements(ib):
    with ib.function("f") as f:
        p = f.param("p", INDEX)
        v = ib.var("v", INDEX)
        made = [
            ib.assign(v, 3),
            ib.eval_stmt(p),
            ib.break_stmt(),
            ib.continue_stmt(),
            ib.inline_stmt("print()"),
            ib.return_stmt(),
            ib.return_stmt(p),
            ib.return_stmt([p, 2]),
        ]
        own = ir.YieldStmt([p], S)
        ib.emit(own)
    body = f.get_result().body
    assert list(body.stmts) == [*made, own]
    assert (made[0].var is v, made[0].value.value, made[0].value.dtype) == (True, 3, ir.INDEX)
    assert (made[4].body, made[4].language) == ("print()", ir.InlineLanguage.Python)
    assert [len(s.value) for s in made[5:]] == [0, 1, 2]
    assert made[7].value[1].value == 2
    with pytest.raises(TypeError):
        ib.emit(p)


def test_nothing_can_be_emitted_outside(ib):
    for act in (
        lambda: ib.let("a", 1),
        lambda: ib.emit(ir.BreakStmt(S)),
        lambda: ib.return_stmt(),
        lambda: ib.if_stmt(ir.ConstBool(True, S)).__enter__(),
        lambda: ib.for_loop(ib.var("i", INDEX), 0, 1, 1).__enter__(),
        lambda: ib.while_loop(ir.ConstBool(True, S)).__enter__(),
        lambda: ib.scope(ir.ScopeKind.Cluster).__enter__(),
    ):
        with pytest.raises(RuntimeError, match="Cannot"):
            act()
    with ib.program("P"), pytest.raises(RuntimeError, match="Cannot emit"):
        ib.let("a", 1)


def test_make_tuple(ib):
    x = ib.var("x", F32)
    made = ib.make_tuple([x, 2])
    assert made.elements[0] is x
    assert made.type == ir.TupleType([F32, INDEX])


def test_state_of_the_innermost_construct(ib):
    def state():
        return ib.in_function(), ib.in_loop(), ib.in_if()

    assert state() == (False, False, False)
    with ib.function("f"):
        assert state() == (True, False, False)
        with ib.for_loop(ib.var("i", INDEX), 0, 1, 1):
            assert state() == (False, True, False)
            with ib.if_stmt(ir.ConstBool(True, S)):
                assert state() == (False, False, True)
        with ib.while_loop(ir.ConstBool(True, S)):
            assert state() == (False, True, False)
        with ib.scope(ir.ScopeKind.Cluster):
            assert state() == (False, False, False)
    assert state() == (False, False, False)


# --- let --------------------------------------------------------------------------------------------------------------


def test_let_infers_the_type(ib):
    with ib.function("f") as f:
        x = f.param("x", F32)
        assert ib.let("a", 1).type == INDEX
        assert ib.let("b", 1.5).type == F32
        assert ib.let("c", x).type == F32
        assert ib.let("d", ib.make_tuple([x])).type == ir.TupleType([F32])
        assert ib.let("e", 1, type=INDEX).type == INDEX
        assert ib.let("flag", True).type == ir.ScalarType(ir.BOOL)
        with pytest.raises(TypeError, match="Cannot convert"):
            ib.let("g", "text")


def test_let_with_an_incompatible_type(ib):
    tensor = ir.TensorType([4, 8], ir.FP32)
    tile = ir.TileType([4, 8], ir.FP32, memory_space=ir.MemorySpace.Vec)
    with ib.function("f") as f:
        x, t, s = f.param("x", F32), f.param("t", tensor), f.param("s", tile)
        for value, kind in (
            (x, INDEX),
            (x, ir.ScalarType(ir.FP16)),
            (x, tensor),
            (t, ir.TensorType([4, 9], ir.FP32)),
            (t, ir.TensorType([4], ir.FP32)),
            (t, ir.TensorType([4, 8], ir.FP16)),
            (t, ir.DistributedTensorType([4, 8], ir.FP32)),
            (s, ir.TileType([4, 8], ir.FP32, memory_space=ir.MemorySpace.Mat)),
        ):
            with pytest.raises(TypeError, match="incompatible"):
                ib.let("a", value, type=kind)


def test_let_with_a_type_that_says_more(ib):
    n = ir.Var("n", INDEX, S)
    untyped = ir.Call(ir.Op("my.op"), [], S)
    with ib.function("f") as f:
        t = f.param("t", ir.TileType([4, 8], ir.FP32))
        placed = ir.TileType([4, 8], ir.FP32, None, ir.TileView([n, 8]), ir.MemorySpace.Vec)
        assert ib.let("a", t, type=placed).type is placed
        assert ib.let("b", ib.var("i", ir.ScalarType(ir.INT64)), type=INDEX).type == INDEX
        v = ib.let("c", untyped, type=F32)
    assert v.type == F32
    # the call itself takes the type: an assignment and its value agree
    assert f.get_result().body[2].value.type == F32
    assert untyped.type == ir.UnknownType()


def test_let_takes_the_declared_return_type(ib):
    one, two = ir.TensorType([4], ir.FP32), ir.TupleType([F32, INDEX])
    with ib.program("P") as p:
        single, pair, later = p.declare_function("single"), p.declare_function("pair"), p.declare_function("later")
        with ib.function("single") as f:
            f.return_type(one)
            assert ib.let("again", ir.Call(single, [], S)).type == one  # recursion
        p.add_function(f.get_result())
        with ib.function("pair") as f:
            f.return_type(F32)
            f.return_type(INDEX)
        p.add_function(f.get_result())
        with ib.function("main") as f:
            v = ib.let("v", ir.Call(single, [], S))
            with pytest.raises(ValueError, match="returns 2 values"):
                ib.let("w", ir.Call(pair, [], S))
            w = ib.let("w", ir.Call(pair, [], S), type=two)
            with pytest.raises(TypeError, match="incompatible"):
                ib.let("x", ir.Call(pair, [], S), type=ir.TupleType([INDEX, INDEX]))
            with pytest.raises(TypeError, match="incompatible"):
                ib.let("x", ir.Call(single, [], S), type=F32)
            u = ib.let("u", ir.Call(later, [], S))
            typed = ib.let("t", ir.Call(single, [], F32, S))
        p.add_function(f.get_result())
    assert (v.type, w.type, u.type, typed.type) == (one, two, ir.UnknownType(), F32)
    assert [s.value.type for s in p.get_result()["main"].body.stmts] == [one, two, ir.UnknownType(), F32]


# --- loops ------------------------------------------------------------------------------------------------------------


def test_for_loop(ib):
    with ib.function("f") as f:
        n, init = f.param("n", INDEX), f.param("init", F32)
        i = ib.var("i", INDEX)
        with ib.for_loop(i, 1, n, 2, kind=ir.ForKind.Parallel, attrs={"iter_arg_rebind_0": True}) as loop:
            a, b = loop.iter_arg("a", init), loop.iter_arg("b", 0, type=INDEX)
            ra, rb = loop.return_var("ra"), loop.return_var("rb", type=INDEX)
            ib.emit(ir.YieldStmt([a, b], S))
        assert loop.output() is loop.output(0) is ra
        assert loop.output(1) is rb
        assert [id(v) for v in loop.outputs()] == [id(ra), id(rb)]
        for index in (2, -1):
            with pytest.raises(IndexError, match=f"Return variable index {index} out of range"):
                loop.output(index)
    stmt = loop.get_result()
    assert f.get_result().body is stmt
    assert (stmt.start.value, stmt.step.value, stmt.start.dtype) == (1, 2, ir.INDEX)
    assert stmt.stop is n
    assert (stmt.kind, dict(stmt.attrs)) == (ir.ForKind.Parallel, {"iter_arg_rebind_0": True})
    assert a.initValue is init
    assert (a.type, b.type, ra.type, rb.type) == (F32, INDEX, F32, INDEX)
    assert b.initValue.value == 0
    assert type(stmt.body) is ir.YieldStmt


def test_type_mismatch_of_carried_values(ib):
    with ib.function("f"), pytest.raises(ZeroDivisionError), ib.for_loop(ib.var("i", INDEX), 0, 4, 1) as loop:
        with pytest.raises(ValueError, match="Type mismatch"):
            loop.iter_arg("a", 0, type=F32)
        loop.iter_arg("a", 0)
        with pytest.raises(ValueError, match="Type mismatch"):
            loop.return_var("r", type=F32)
        raise ZeroDivisionError


@pytest.mark.parametrize("kind", ["for", "while"])
def test_counts_must_match(ib, kind):
    def loop():
        if kind == "for":
            return ib.for_loop(ib.var("i", INDEX), 0, 4, 1)
        return ib.while_loop(ir.ConstBool(True, S))

    with ib.function("f") as f:
        with pytest.raises(RuntimeError, match="They must match"), loop() as one:
            one.iter_arg("a", 0)
        with pytest.raises(RuntimeError, match="They must match"), loop() as one:
            one.return_var("r", type=INDEX)
        with pytest.raises(RuntimeError, match="They must match"), loop() as one:
            one.return_var("r")
        assert ib.in_function()
        ib.let("after", 1)
    assert f.get_result().body.var.name_hint == "after"


def test_a_pipeline_loop_needs_its_stages(ib):
    with ib.function("f"):
        i = ib.var("i", INDEX)
        with pytest.raises(ValueError, match="pipeline_stages"), ib.for_loop(i, 0, 4, 1, kind=ir.ForKind.Pipeline):
            pass
        with ib.for_loop(i, 0, 4, 1, kind=ir.ForKind.Pipeline, attrs={"pipeline_stages": 2}) as loop:
            pass
    assert loop.get_result().attrs["pipeline_stages"] == 2


def test_while_loop(ib):
    with ib.function("f") as f:
        n = f.param("n", INDEX)
        with ib.while_loop(ir.ConstBool(True, S)) as loop:
            x = loop.iter_arg("x", 0)
            loop.set_condition(x < n)
            r = loop.return_var("r")
            ib.emit(ir.YieldStmt([ib.let("y", x + 1)], S))
        ib.return_stmt(loop.output())
    stmt = loop.get_result()
    assert type(stmt) is ir.WhileStmt
    assert stmt.condition.left is x
    assert stmt.return_vars[0] is r
    assert [type(s) for s in stmt.body.stmts] == [ir.AssignStmt, ir.YieldStmt]


# --- branches ---------------------------------------------------------------------------------------------------------


def test_if(ib):
    with ib.function("f") as f:
        c = f.param("c", ir.ScalarType(ir.BOOL))
        with ib.if_stmt(c) as branch:
            ib.let("a", 1)
            ib.emit(ir.YieldStmt([ib.let("b", 2)], S))
            branch.else_()
            ib.emit(ir.YieldStmt([c], S))
            r = branch.return_var("r", INDEX)
        assert branch.output() is r
        assert branch.outputs()[0] is r
        with pytest.raises(IndexError, match="Return variable index 1 out of range"):
            branch.output(1)
    stmt = branch.get_result()
    assert f.get_result().body is stmt
    assert stmt.condition is c
    assert [type(s) for s in stmt.then_body.stmts] == [ir.AssignStmt, ir.AssignStmt, ir.YieldStmt]
    assert type(stmt.else_body) is ir.YieldStmt
    assert stmt.return_vars[0] is r


def test_absent_and_empty_else(ib):
    with ib.function("f"):
        with ib.if_stmt(ir.ConstBool(True, S)) as absent:
            ib.let("a", 1)
        with ib.if_stmt(ir.ConstBool(True, S)) as empty:
            ib.let("a", 1)
            empty.else_()
            with pytest.raises(RuntimeError, match="second else"):
                empty.else_()
    assert absent.get_result().else_body is None
    assert empty.get_result().else_body is None


# --- scopes -----------------------------------------------------------------------------------------------------------


def test_scopes(ib):
    K = ir.ScopeKind
    with ib.function("f") as f:
        with ib.scope(K.InCore, split=ir.SplitMode.UP_DOWN, name_hint="n", attrs=[("windowize", True)]) as incore:
            ib.let("a", 1)
        with ib.scope(K.Cluster) as cluster:
            pass
        with ib.scope(K.Hierarchy, level=ir.Level.HOST, role=ir.Role.SubWorker) as hierarchy:
            pass
        with ib.scope(K.Spmd, core_num=8, sync_start=True) as spmd:
            pass
        with ib.scope(K.SplitAiv, split=ir.SplitMode.LEFT_RIGHT) as split:
            pass
        with ib.scope(K.Runtime, manual=False) as runtime:
            pass
    scopes = [b.get_result() for b in (incore, cluster, hierarchy, spmd, split, runtime)]
    assert list(f.get_result().body.stmts) == scopes
    assert [s.scope_kind for s in scopes] == [K.InCore, K.Cluster, K.Hierarchy, K.Spmd, K.SplitAiv, K.Runtime]
    assert (scopes[0].split, scopes[0].name_hint, dict(scopes[0].attrs)) == (
        ir.SplitMode.UP_DOWN,
        "n",
        {"windowize": True},
    )
    assert type(scopes[0].body) is ir.AssignStmt
    assert (scopes[2].level, scopes[2].role) == (ir.Level.HOST, ir.Role.SubWorker)
    assert (scopes[3].core_num.value, scopes[3].sync_start) == (8, True)
    assert (scopes[4].split, scopes[5].manual) == (ir.SplitMode.LEFT_RIGHT, False)


@pytest.mark.parametrize(
    ("kind", "arguments", "words"),
    [
        ("Hierarchy", {}, "requires level"),
        ("Spmd", {}, "requires core_num"),
        ("SplitAiv", {}, "requires split"),
        ("Runtime", {}, "requires manual"),
        ("CommDomain", {}, "cannot be built"),
        ("Cluster", {"core_num": 4}, "takes no core_num"),
        ("InCore", {"level": ir.Level.HOST}, "takes no level"),
    ],
)
def test_scope_arguments(ib, kind, arguments, words):
    with ib.function("f"):
        with pytest.raises(ValueError, match=words), ib.scope(ir.ScopeKind[kind], **arguments):
            pytest.fail("the block must not be entered")
        with ib.scope(ir.ScopeKind.InCore, level=ir.Level.CORE_GROUP, sync_start=False):
            pass


# --- programs ---------------------------------------------------------------------------------------------------------


def build(ib, name):
    with ib.function(name) as f:
        pass
    return f.get_result()


def test_program(ib):
    with ib.program("P") as p:
        b = p.declare_function("b")
        assert p.declare_function("b") is b
        assert p.get_global_var("b") is b
        with pytest.raises(RuntimeError, match="not declared"):
            p.get_global_var("a")
        p.add_function(build(ib, "b"))
        p.add_function(build(ib, "a"))
        assert p.get_global_var("a") == ir.GlobalVar("a")
        with pytest.raises(ValueError, match='Duplicate function name "a"'):
            p.add_function(build(ib, "a"))
        with pytest.raises(RuntimeError, match="not finished"):
            p.get_result()
    program = p.get_result()
    assert (program.name, [g.name for g in program.functions]) == ("P", ["a", "b"])
    with ib.function("f"), pytest.raises(RuntimeError, match="Cannot begin program"), ib.program("Q"):
        pass
    with pytest.raises(RuntimeError, match="no program"):
        p.declare_function("late")


# --- comments ---------------------------------------------------------------------------------------------------------


def test_pending_comments(ib):
    with ib.function("f") as f:
        ib.push_pending_leading_comments(["one", "two"])
        first = ib.assign(ib.var("a", INDEX), 1)
        second = ib.assign(ib.var("b", INDEX), 2)
        assert ib.pop_pending_leading_comments() == []
        ib.push_pending_leading_comments(["lost"])
        assert ib.pop_pending_leading_comments() == ["lost"]
        third = ib.assign(ib.var("c", INDEX), 3)
    assert [s.leading_comments for s in (first, second, third)] == [["one", "two"], [], []]
    assert f.get_result().body[0].leading_comments == ["one", "two"]


def test_comments_before_a_construct_belong_to_it(ib):
    with ib.function("f"):
        ib.push_pending_leading_comments(["about the loop"])
        with ib.for_loop(ib.var("i", INDEX), 0, 4, 1) as loop:
            inner = ib.assign(ib.var("a", INDEX), 1)
            ib.push_pending_leading_comments(["inside"])
            with ib.if_stmt(ir.ConstBool(True, S)) as branch:
                ib.break_stmt()
            ib.pop_pending_leading_comments()
        ib.pop_pending_leading_comments()
        after = ib.assign(ib.var("b", INDEX), 1)
    assert loop.get_result().leading_comments == ["about the loop"]
    assert branch.get_result().leading_comments == ["inside"]
    assert inner.leading_comments == after.leading_comments == []


def test_comments_of_an_emitted_sequence_go_to_its_first_statement(ib):
    stmt = ir.attach_leading_comments(ir.BreakStmt(S), ["own"])
    with ib.function("f"):
        ib.push_pending_leading_comments(["pending"])
        ib.emit(ir.SeqStmts([ir.SeqStmts([stmt], S), ir.ContinueStmt(S)], S))
    assert stmt.leading_comments == ["pending", "own"]


# --- exceptions -------------------------------------------------------------------------------------------------------


class Oops(Exception):
    pass


def test_an_exception_passes_and_drops_its_construct(ib):
    with ib.function("f") as f:
        ib.let("before", 1)
        with pytest.raises(Oops), ib.for_loop(ib.var("i", INDEX), 0, 4, 1) as loop:
            loop.iter_arg("a", 0)  # no return variable: closing would complain of the counts
            with ib.if_stmt(ir.ConstBool(True, S)), ib.scope(ir.ScopeKind.Cluster):
                raise Oops
        assert ib.in_function()
        ib.let("after", 2)
    assert names(f.get_result().body.stmts) == ["before", "after"]
    with pytest.raises(RuntimeError, match="not finished"):
        loop.get_result()


def test_the_builder_is_usable_after_a_failed_function_and_program(ib):
    with pytest.raises(Oops), ib.program("P") as p, ib.function("f"):
        raise Oops
    with pytest.raises(RuntimeError):
        p.get_result()
    with ib.program("Q") as q:
        q.add_function(build(ib, "f"))
    assert q.get_result()["f"] is not None


# --- types ------------------------------------------------------------------------------------------------------------


def test_memref(ib):
    made = ib.memref(ir.MemorySpace.Vec, 0, 64, 3)
    assert (made.name_hint, made.size_, made.byte_offset_.value) == ("mem_vec_3", 64, 0)
    old = ib.memref(0, 64, 3)
    assert (old.name_hint, old.byte_offset_.dtype) == ("mem_3", ir.INDEX)
    with pytest.raises(TypeError, match="accepts exactly three positional arguments"):
        ib.memref(0, 64, 3, 4)
    with pytest.raises(TypeError, match="id"):
        ib.memref(ir.MemorySpace.Vec, 0, 64)


def test_views_and_types(ib):
    n = ib.var("n", INDEX)
    view = ib.tile_view([4, n], [8, 1], 0, pad=ir.PadValue.zero, compact=ir.CompactMode.normal)
    assert view == ir.TileView([4, n], [8, 1], 0, pad=ir.PadValue.zero, compact=ir.CompactMode.normal)
    tensor_view = ib.tensor_view([n, 1], ir.TensorLayout.ND)
    assert tensor_view == ir.TensorView([n, 1], ir.TensorLayout.ND)
    assert ib.tensor_type([4, n], ir.FP32, tensor_view=tensor_view) == ir.TensorType([4, n], ir.FP32, None, tensor_view)
    ref = ib.memref(ir.MemorySpace.Vec, 0, 64, 3)
    tile = ib.tile_type([4, 4], ir.FP32, ref, view)
    assert (tile.memref is ref, tile.memory_space, tile.tile_view == view) == (True, ir.MemorySpace.Vec, True)
    assert tile.shape[0].span.begin_line == line() - 2


# --- the flat builder -------------------------------------------------------------------------------------------------


def test_flat_builder():
    ib = core.IRBuilder()
    at = [ir.Span("flat.py", i, 1) for i in range(1, 12)]
    ib.begin_program("P", at[0])
    assert ib.in_program()
    gvar = ib.declare_function("f")
    assert ib.get_global_var("f") is gvar
    assert ib.get_function_return_types(gvar) == []
    ib.begin_function("f", at[1], type=ir.InCore)
    assert ib.in_function()
    assert not ib.in_program()
    n = ib.func_arg("n", INDEX, at[1])
    out = ib.func_arg("out", INDEX, at[1], direction=ir.ParamDirection.Out)
    ib.return_type(INDEX)
    assert ib.get_function_return_types(gvar) == [INDEX]
    ib.add_function_attrs({"split": 1})
    i = ib.var("i", INDEX, at[2])
    ib.begin_for_loop(i, ir.ConstInt(0, ir.INDEX, S), n, ir.ConstInt(1, ir.INDEX, S), at[2])
    assert ib.in_loop()
    carried, result = ir.IterArg("c", INDEX, n, at[2]), ib.var("r", INDEX, at[2])
    ib.add_iter_arg(carried)
    with pytest.raises(RuntimeError, match="They must match"):
        ib.end_for_loop(at[4])
    ib.add_return_var(result)
    ib.begin_while_loop(ir.ConstBool(True, S), at[3])
    ib.set_while_loop_condition(carried < n)
    ib.add_while_iter_arg(ir.IterArg("w", INDEX, carried, at[3]))
    ib.add_while_return_var(ib.var("wr", INDEX, at[3]))
    ib.emit(ir.BreakStmt(at[3]))
    while_ = ib.end_while_loop(at[4])
    ib.begin_if(carried < n, at[4])
    assert ib.in_if()
    ib.assign(out, n, at[4])
    ib.begin_else(at[5])
    ib.assign(out, carried, at[5])
    ib.add_if_return_var(ib.var("ir", INDEX, at[4]))
    if_ = ib.end_if(at[6])
    ib.begin_scope(ir.ScopeKind.Spmd, at[6], core_num=4, name_hint="s")
    ib.emit(ir.YieldStmt([carried], at[6]))
    scope = ib.end_scope(at[7])
    loop = ib.end_for_loop(at[8])
    returned = ib.return_([result], at[9])
    bare = ib.return_(at[9])
    function = ib.end_function(at[10])
    ib.add_function(function)
    assert ib.get_function_return_types(gvar) == [INDEX]
    program = ib.end_program(at[10])

    assert program["f"] is function
    assert list(loop.body.stmts) == [while_, if_, scope]
    assert list(function.body.stmts) == [loop, returned, bare]
    assert bare.value == []
    assert returned.value[0] is result
    assert while_.condition.left is carried
    assert if_.then_body.value is n
    assert if_.else_body.value is carried
    assert (scope.core_num.value, scope.name_hint) == (4, "s")
    assert (loop.span.begin_line, loop.span.end_line) == (3, 9)
    assert (function.level, function.split) == (ir.Level.CHIP_DIE, ir.SplitMode.UP_DOWN)


def test_flat_builder_misuse():
    ib = core.IRBuilder()
    here = ir.Span("flat.py", 1, 1)
    for act in (
        lambda: ib.end_function(here),
        lambda: ib.end_for_loop(here),
        lambda: ib.end_program(here),
        lambda: ib.func_arg("x", INDEX, here),
        lambda: ib.begin_else(here),
        lambda: ib.add_function(None),
        lambda: ib.declare_function("f"),
    ):
        with pytest.raises((RuntimeError, TypeError)):
            act()
    ib.begin_function("f", here)
    with pytest.raises(RuntimeError, match="no for loop is open"):
        ib.end_for_loop(here)
    with pytest.raises(RuntimeError, match="Cannot begin function"):
        ib.begin_function("g", here)
    ib.begin_if(ir.ConstBool(True, S), here)
    with pytest.raises(RuntimeError, match="no function is open here"):
        ib.end_function(here)
    ib.end_if(here)
    assert ib.end_function(here).name == "f"


def test_the_two_builders_are_different_classes():
    assert core.IRBuilder is not ir.IRBuilder
    assert hasattr(core.IRBuilder, "begin_function")
    assert hasattr(ir.IRBuilder, "function")
