"""UnrollLoops: copies of bodies with the index as a constant; refusals; the meaning stays."""

import textwrap

import numpy as np
import pytest
from meaning_kit import check_meaning
from spec_kit import Example, check_round_trips, noise, parse, ramp, zeros

from pypto import InternalError, ir
from pypto.ir.expr import index_const
from pypto.ir.traversal import walk
from pypto.passes.errors import PassError
from pypto.passes.unroll_loops import unroll_loops
from pypto.runtime.interpreter import Interpreter
from pypto.verify.properties import IRProperty, property_set
from pypto.verify.registry import verify_all

INDEX = ir.ScalarType(ir.DataType.INDEX)
SPAN = ir.Span("case.py", 7, 5)


def unrolled(program):
    """The result, which has no Unroll loop and does not change again."""
    after = unroll_loops()(program)
    assert unroll_loops()(after) is after
    assert verify_all(property_set(IRProperty.UnrollResolved, IRProperty.NormalizedStmtStructure), after) == []
    statements = [node for f in after.functions.values() for node in walk(f.body) if isinstance(node, ir.Stmt)]
    assert len(statements) == len(set(statements)), "a statement stands in two places"
    return after


def check_form(before, after):
    ir.assert_structural_equal(unrolled(parse(before)), parse(after), enable_auto_mapping=True)


def text_of(program, name="run"):
    return ir.python_print(program.get_function(name), format=False)


# --- form -------------------------------------------------------------------------------------------------------------


def test_descending():
    check_form(
        """
        @Opaque
        def run(self, v: f32[48], a: f32[8]) -> f32[8]:
            acc = a
            for c in pl.unroll(5, -1, -3):
                part = pl.slice(v, [8], [c * 8])
                acc = pl.add(acc, part)
            return acc
        """,
        """
        @Opaque
        def run(self, v: f32[48], a: f32[8]) -> f32[8]:
            acc = a
            part = pl.slice(v, [8], [pl.const(5, pl.INDEX) * 8])
            acc = pl.add(acc, part)
            part = pl.slice(v, [8], [pl.const(2, pl.INDEX) * 8])
            acc = pl.add(acc, part)
            return acc
        """,
    )


def test_nested_loops():
    check_form(
        """
        @Opaque
        def run(self, n: idx) -> idx:
            m = n
            for r in pl.unroll(2):
                for c in pl.unroll(3, 7, 3):
                    m = m + (r * 6 + c)
            return m
        """,
        """
        @Opaque
        def run(self, n: idx) -> idx:
            m = n
            m = m + (pl.const(0, pl.INDEX) * 6 + 3)
            m = m + (pl.const(0, pl.INDEX) * 6 + 6)
            m = m + (pl.const(1, pl.INDEX) * 6 + 3)
            m = m + (pl.const(1, pl.INDEX) * 6 + 6)
            return m
        """,
    )


def test_headers_of_loops_that_are_not_unrolled():
    program = parse(
        """
        @Opaque
        def run(self, n: idx) -> idx:
            for r in pl.unroll(2):
                for k in pl.range(r, n, r + 1):
                    n = n + k
                while n > r:
                    n = n - 1
            return n
        """
    )
    stmts = ir.flatten_to_stmts(unrolled(program).get_function("run").body)
    loops = [s for s in stmts if isinstance(s, ir.ForStmt)]
    assert [loop.start.value for loop in loops] == [0, 1]
    assert [loop.step.left.value for loop in loops] == [0, 1]
    assert [s.condition.right.value for s in stmts if isinstance(s, ir.WhileStmt)] == [0, 1]


def test_the_index_is_an_index_constant():
    program = parse(
        "@Opaque\ndef run(self, n: idx) -> idx:\n    for i in pl.unroll(2, 3):\n        n = n + i\n    return n"
    )
    add = next(node for node in walk(unrolled(program).get_function("run").body) if isinstance(node, ir.Add))
    assert type(add.right) is ir.ConstInt and add.right.value == 2 and add.right.type == INDEX


def test_copies_share_the_variables_of_the_body():
    program = parse(
        """
        @Opaque
        def run(self, n: idx) -> idx:
            m = n
            for i in pl.unroll(2):
                m = m + i
                for k, (s,) in pl.range(3, init_values=(m,)):
                    t = s + i
                    r = pl.yield_(t)
                m = r
            return m
        """
    )
    (loop,) = [s for s in walk(program.get_function("run").body) if isinstance(s, ir.ForStmt) and not s.iter_args]
    first = ir.flatten_to_stmts(loop.body)
    stmts = ir.flatten_to_stmts(unrolled(program).get_function("run").body)
    for copy in (stmts[1:4], stmts[4:7]):
        assert copy[0].var is first[0].var and copy[2].var is first[2].var
    # What the inner loop defines is its own in each copy; behind the loop the names mean the last ones.
    assert stmts[5].loop_var is first[1].loop_var and stmts[2].loop_var is not first[1].loop_var
    assert stmts[5].return_vars[0] is first[1].return_vars[0] is not stmts[2].return_vars[0]


@pytest.mark.parametrize(("header", "count"), [("0", 0), ("5, 5", 0), ("5, 2", 0), ("2, 5, -1", 0), ("1024", 1024), ("0, -1024, -1", 1024), ("-3, 2048, 2", None), ("0, 9, 100", 1), ("2047, -1, -2", 1024)])  # fmt: skip
def test_trip_counts(header, count):
    program = parse(
        f"@Opaque\ndef run(self, n: idx) -> idx:\n    for i in pl.unroll({header}):\n        n = n + i\n    return n"
    )
    if count is None:
        with pytest.raises(ValueError, match=r"trip count 1026 exceeds maximum allowed \(1024\)"):
            unroll_loops()(program)
    else:
        assert len(ir.flatten_to_stmts(unrolled(program).get_function("run").body)) == count + 1


def test_a_loop_that_never_runs_vanishes():
    check_form(
        "@Opaque\ndef run(self, n: idx) -> idx:\n    if n > 2:\n        for i in pl.unroll(0):\n            n = n + i\n    return n",
        "@Opaque\ndef run(self, n: idx) -> idx:\n    if n > 2:\n        pass\n    return n",
    )


def test_the_index_in_types():
    after = unrolled(
        parse(
            """
            @InCore
            def run(self, x: f32[8, 16], y: pl.Out[f32[8, 16]]) -> f32[8, 16]:
                for i in pl.unroll(1, 3):
                    t = pl.load(x, [i, 0], [8, 16], valid_shape=[i, 16])
                    if i > 1:
                        t = pl.load(x, [0, 0], [8, 16], valid_shape=[i, 16])
                    y = pl.store(t, [i, 0], y)
                return y
            """
        )
    )
    assigned = [node for node in walk(after.get_function("run").body) if isinstance(node, ir.AssignStmt)]
    tiles = [s.var for s in assigned if isinstance(s.var.type, ir.TileType)]
    assert [var.type.tile_view.valid_shape[0].value for var in tiles] == [1, 1, 2, 2]
    assert tiles[0] is tiles[1] and tiles[2] is tiles[3] and tiles[0] is not tiles[2]
    assert {var.name_hint for var in tiles} == {"t"}
    assert all(s.value.type == s.var.type for s in assigned if isinstance(s.var.type, ir.TileType))
    stored = [s.value.args[0] for s in assigned if s.var.name_hint == "y"]
    assert stored == [tiles[0], tiles[2]]


def test_a_typed_value_of_the_copy_before():
    """Until a copy assigns a variable whose type has the index, it is that of the copy before."""
    i, n = ir.Var("i", INDEX, SPAN), ir.Var("n", INDEX, SPAN)
    x = ir.Var("x", ir.TensorType([index_const(8)], ir.DataType.FP32), SPAN)
    t = ir.Var("t", ir.TensorType([index_const(8)], ir.DataType.FP32, None, ir.TensorView([index_const(1)], ir.TensorLayout.ND, [i])), SPAN)  # fmt: skip
    body = [ir.EvalStmt(t, SPAN), ir.AssignStmt(t, x, SPAN), ir.EvalStmt(t, SPAN)]
    loop = for_loop(i, 0, 3, body)
    function = ir.Function("run", [n, x], [], ir.SeqStmts([ir.AssignStmt(t, x, SPAN), loop], SPAN), SPAN)
    stmts = ir.flatten_to_stmts(unroll_loops()(ir.Program([function], "P", SPAN)).get_function("run").body)
    _, use0, set0, after0, use1, set1, after1, use2, *_ = stmts
    assert set0.var is after0.expr is use1.expr and set1.var is after1.expr is use2.expr
    assert set0.var is not set1.var
    assert [s.var.type.tensor_view.valid_shape[0].value for s in (set0, set1)] == [0, 1]
    assert use0.expr is not set0.var


def test_the_index_in_attributes_of_calls():
    """``device=`` of a host orchestration; the operands of a submit and its dependencies."""
    after = unrolled(
        parse(
            """
            @pl.function(level=pl.Level.CHIP, role=pl.Role.Orchestrator)
            def chip(self, x: f32[8, 8], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
                return y
            @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
            def run(self, x: f32[8, 8], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
                for d in pl.unroll(1, 3):
                    y = self.chip(x, y, device=d)
                return y
            """
        )
    )
    calls = [node for node in walk(after.get_function("run").body) if isinstance(node, ir.Call)]
    assert [call.attrs["device"].value for call in calls] == [1, 2]


def test_submits_and_scopes():
    after = unrolled(
        parse(
            """
            @InCore
            def part(self, x: f32[8, 8], i: idx, y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
                return y
            @Orchestration
            def run(self, x: f32[8, 8], n: i32[8], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
                for i in pl.unroll(2):
                    y, t = pl.submit(self.part, x, i, y, predicate=(pl.read(n, [i]) > 0))
                    with pl.at(level=pl.Level.CORE_GROUP, deps=[t], attrs={"mark": i}) as u:
                        y = pl.store(pl.load(x, [i, 0], [1, 8]), [i, 0], y)
                    with pl.spmd(i + 1):
                        y = self.part(x, i, y)
                return y
            """
        )
    )
    nodes = list(walk(after.get_function("run").body))
    submits = [node for node in nodes if isinstance(node, ir.Submit)]
    assert [s.args[1].value for s in submits] == [0, 1]
    indices = [[n.value for n in walk(s.predicate) if isinstance(n, ir.ConstInt)] for s in submits]
    assert indices == [[0, 0], [1, 0]]
    scopes = [node for node in nodes if isinstance(node, ir.InCoreScopeStmt)]
    assert [s.attrs["mark"].value for s in scopes] == [0, 1]
    assert all(list(s.attrs) == list(scopes[0].attrs) for s in scopes)
    assert [s.core_num.left.value for s in nodes if isinstance(s, ir.SpmdScopeStmt)] == [0, 1]


def test_comments():
    program = parse(
        """
        @Opaque
        def run(self, n: idx) -> idx:
            # about the loop
            for i in pl.unroll(2):
                # about the sum
                n = n + i
                # about the inner loop
                for j in pl.unroll(1):
                    n = n * 2
            return n
        """
    )
    stmts = ir.flatten_to_stmts(unrolled(program).get_function("run").body)
    assert [s.leading_comments for s in stmts] == [
        ["about the loop", "about the sum"], ["about the inner loop"], ["about the sum"], ["about the inner loop"], [],
    ]  # fmt: skip


def test_nothing_to_do():
    program = parse(
        "@Opaque\ndef run(self, n: idx) -> idx:\n    for i in pl.range(4):\n        n = n + i\n    return n"
    )
    assert unroll_loops()(program) is program
    two = parse(
        "@Opaque\ndef f(self, n: idx) -> idx:\n    return n\n"
        "@Opaque\ndef g(self, n: idx) -> idx:\n    for i in pl.unroll(2):\n        n = n + i\n    return n"
    )
    assert unrolled(two).get_function("f") is two.get_function("f")


# --- the loop variable outside its loop -------------------------------------------------------------------------------


def test_a_use_behind_the_loop_has_the_last_value():
    check_form(
        "@Opaque\ndef run(self, n: idx) -> idx:\n    for i in pl.unroll(0, 9, 4):\n        n = n + i\n    return n + i",
        "@Opaque\ndef run(self, n: idx) -> idx:\n    n = n + 0\n    n = n + 4\n    n = n + 8\n    return n + 8",
    )


def test_an_index_that_is_assigned_again_behind_the_loop():
    check_form(
        """
        @Opaque
        def run(self, n: idx) -> idx:
            for i in pl.unroll(2):
                n = n + i
            if n > 3:
                i = 7
            return n + i
        """,
        """
        @Opaque
        def run(self, n: idx) -> idx:
            n = n + 0
            n = n + 1
            i = 1
            if n > 3:
                i = 7
            return n + i
        """,
    )


def test_an_index_that_the_body_assigns():
    check_form(
        """
        @Opaque
        def run(self, n: idx) -> idx:
            for i in pl.unroll(2):
                i = i * 3
                n = n + i
            return n + i
        """,
        """
        @Opaque
        def run(self, n: idx) -> idx:
            i = 0
            i = i * 3
            n = n + i
            i = 1
            i = i * 3
            n = n + i
            return n + i
        """,
    )


def test_a_use_behind_a_loop_that_never_runs():
    program = parse(
        "@Opaque\ndef run(self, n: idx) -> idx:\n    for i in pl.unroll(0):\n        n = n + i\n    return n + i"
    )
    with pytest.raises(ValueError, match="'i' is used after its unroll loop, which has no iterations") as info:
        unroll_loops()(program)
    assert info.value.span.begin_line == info.value.labels[0][0].begin_line + 2
    assert info.value.code == "PT1014"


# --- refusals ---------------------------------------------------------------------------------------------------------


def for_loop(var, start, stop, body, step=1, iter_args=(), return_vars=()):
    bounds = [index_const(e) if isinstance(e, int) else e for e in (start, stop, step)]
    return ir.ForStmt(
        var, *bounds, list(iter_args), ir.SeqStmts(list(body), SPAN), list(return_vars), SPAN, ir.ForKind.Unroll
    )


def program_of(*stmts, params=()):
    return ir.Program([ir.Function("run", list(params), [INDEX], ir.SeqStmts(list(stmts), SPAN), SPAN)], "P", SPAN)


I, N = ir.Var("i", INDEX, SPAN), ir.Var("n", INDEX, SPAN)  # noqa: E741


@pytest.mark.parametrize(
    ("bounds", "phrase"),
    [
        ((N, 4, 1), "Unroll loop start must be a compile-time integer constant"),
        (
            (0, ir.Add(N, index_const(1), ir.DataType.INDEX, SPAN), 1),
            "Unroll loop stop must be a compile-time integer constant",
        ),
        ((0, 4, N), "Unroll loop step must be a compile-time integer constant"),
        (
            (0, ir.ConstFloat(4.0, ir.DataType.FP32, SPAN), 1),
            "Unroll loop stop must be a compile-time integer constant",
        ),
        ((0, 4, 0), "Unroll loop step cannot be zero"),
        ((0, 2000, 1), "Unroll loop trip count 2000 exceeds maximum allowed (1024)"),
        ((-(2**62), 2**62, 1), f"Unroll loop trip count {2**63} exceeds maximum allowed (1024)"),
    ],
)
def test_refused_headers(bounds, phrase):
    loop = for_loop(I, bounds[0], bounds[1], [ir.EvalStmt(I, SPAN)], bounds[2])
    with pytest.raises(ValueError) as info:
        unroll_loops()(program_of(loop, params=[N]))
    assert type(info.value) is PassError and phrase in str(info.value) and "[case.py:7:5]" in str(info.value)
    assert info.value.code == "PT1015"


def test_negated_constants_and_headers_that_use_the_outer_index():
    outer = ir.Var("o", INDEX, SPAN)
    inner = for_loop(I, ir.Neg(index_const(1), ir.DataType.INDEX, SPAN), outer + 1, [ir.EvalStmt(I, SPAN)])
    stmts = ir.flatten_to_stmts(unroll_loops()(program_of(for_loop(outer, 0, 2, [inner]))).get_function("run").body)
    assert [s.expr.value for s in stmts] == [-1, 0, -1, 0, 1]


@pytest.mark.parametrize(("stmt", "word"), [(ir.BreakStmt, "break"), (ir.ContinueStmt, "continue")])
def test_leaving_an_unrolled_loop(stmt, word):
    """The copies of a ``break`` would leave whatever loop is around."""
    body = ir.IfStmt(I < 2, stmt(SPAN), None, [], SPAN)
    with pytest.raises(ValueError, match=f"'{word}' is not supported in unrolled loops"):
        unroll_loops()(program_of(for_loop(I, 0, 3, [body])))
    inner = ir.ForStmt(ir.Var("k", INDEX, SPAN), index_const(0), N, index_const(1), [], body, [], SPAN)
    after = unroll_loops()(program_of(for_loop(I, 0, 3, [inner]), params=[N]))
    assert sum(isinstance(node, stmt) for node in walk(after.get_function("run").body)) == 3


# --- loops that carry values, built by hand ---------------------------------------------------------------------------


def carried(trips, body, count, extra=()):
    """``run(n, m)`` with an unroll loop over ``body(i, *args)``, a list of statements that ends with a yield."""
    m = ir.Var("m", INDEX, SPAN)
    args = [ir.IterArg(f"a{k}", INDEX, value, SPAN) for k, value in zip(range(count), (N, m, N + m), strict=False)]
    results = [ir.Var(f"r{k}", INDEX, SPAN) for k in range(count)]
    loop = for_loop(I, 0, trips, body(I, *args), iter_args=args, return_vars=results)
    function = ir.Function(
        "run", [N, m], [INDEX] * count, ir.SeqStmts([loop, *extra, ir.ReturnStmt(results, SPAN)], SPAN), SPAN
    )
    return ir.Program([function], "P", SPAN)


def value_of(program, *args):
    result = Interpreter(program).run(program.get_function("run"), list(args))
    return tuple(result) if len(result) > 1 else result[0]


T = ir.Var("t", INDEX, SPAN)


def summed(i, a):
    return [ir.AssignStmt(T, a + i, SPAN), ir.YieldStmt([T], SPAN)]


def swapped(i, a, b):
    return [ir.YieldStmt([b, a], SPAN)]


def fibonacci(i, a, b):
    return [ir.AssignStmt(T, a + b, SPAN), ir.YieldStmt([b, T], SPAN)]


def read_late(i, a, b):
    """``t`` is assigned before what the copy before yielded as ``a`` is read."""
    u = ir.Var("u", INDEX, SPAN)
    return [ir.AssignStmt(T, b * 2, SPAN), ir.AssignStmt(u, a + T, SPAN), ir.YieldStmt([T, u], SPAN)]


def expression(i, a):
    return [ir.AssignStmt(T, a * 3, SPAN), ir.YieldStmt([T + i], SPAN)]


def in_a_branch(i, a):
    branch = ir.IfStmt(a > 10, ir.AssignStmt(T, a - 7, SPAN), ir.AssignStmt(T, a + 4, SPAN), [], SPAN)
    return [branch, ir.YieldStmt([T], SPAN)]


def rotated(i, a, b, c):
    return [ir.YieldStmt([b, c, a], SPAN)]


def in_a_scope(i, a):
    return [ir.RuntimeScopeStmt(body=ir.SeqStmts(summed(i, a), SPAN), span=SPAN)]


def python_carried(body, trips, *state):
    """What the loop means."""
    step = {
        summed: lambda i, a: (a + i,),
        swapped: lambda i, a, b: (b, a),
        fibonacci: lambda i, a, b: (b, a + b),
        read_late: lambda i, a, b: (b * 2, a + b * 2),
        expression: lambda i, a: (a * 3 + i,),
        in_a_branch: lambda i, a: (a - 7 if a > 10 else a + 4,),
        rotated: lambda i, a, b, c: (b, c, a),
        in_a_scope: lambda i, a: (a + i,),
    }[body]
    for i in range(trips):
        state = step(i, *state)
    return state if len(state) > 1 else state[0]


@pytest.mark.parametrize("trips", [0, 1, 2, 5])
@pytest.mark.parametrize(
    ("body", "count"),
    [(summed, 1), (swapped, 2), (fibonacci, 2), (read_late, 2), (expression, 1), (in_a_branch, 1), (rotated, 3), (in_a_scope, 1)],
)  # fmt: skip
def test_carried_values(body, count, trips):
    program = unroll_loops()(carried(trips, body, count))
    assert unroll_loops()(program) is program
    assert verify_all(property_set(IRProperty.UnrollResolved, IRProperty.UseAfterDef), program) == []
    assert not any(isinstance(node, (ir.ForStmt, ir.YieldStmt)) for node in walk(program.get_function("run").body))
    assert value_of(program, 5, 11) == python_carried(body, trips, *(5, 11, 16)[:count])


def test_a_carried_value_is_the_yield_of_the_copy_before():
    program = unroll_loops()(carried(3, summed, 1))
    stmts = ir.flatten_to_stmts(program.get_function("run").body)
    assert [s.var.name_hint for s in stmts[:-1]] == ["t", "t", "t", "r0"]
    assert [s.value.left.name_hint for s in stmts[:3]] == ["n", "t", "t"] and stmts[3].value is T


def test_a_carry_without_a_yield_is_a_broken_program():
    with pytest.raises(InternalError, match="no yield"):
        unroll_loops()(carried(2, lambda i, a: [ir.EvalStmt(a, SPAN)], 1))
    with pytest.raises(InternalError, match="yields 1 values for 2"):
        unroll_loops()(carried(2, lambda i, a, b: [ir.YieldStmt([a], SPAN)], 2))


# --- meaning ----------------------------------------------------------------------------------------------------------

MEANING = [
    Example(
        "state flows through copies",
        {
            "written": """
            @Opaque
            def run(self, v: f32[48], a: f32[8]) -> f32[8]:
                acc = a
                last = a
                for c in pl.unroll(5, -1, -3):
                    part = pl.slice(v, [8], [c * 8])
                    acc = pl.add(acc, part)
                    if c > 3:
                        last = part
                return pl.add(acc, last)
            """
        },
        lambda: {"v": ramp(48), "a": noise(8)},
        lambda v, a: {"return": a + v[40:48] + v[16:24] + v[40:48]},
    ),
    Example(
        "nested, with loops that are not unrolled",
        {
            "written": """
            @Opaque
            def run(self, v: f32[12], a: f32[1], n: idx) -> f32[1]:
                acc = a
                for r in pl.unroll(2):
                    for k in pl.range(n):
                        for c in pl.unroll(0, 6, 3):
                            acc = pl.add(acc, pl.slice(v, [1], [r * 6 + c]))
                        acc = pl.add(acc, pl.slice(v, [1], [c]))
                return acc
            """
        },
        lambda: {"v": ramp(12), "a": noise(1), "n": 3},
        lambda v, a, n: {"return": a + n * (v[0] + v[3] + v[6] + v[9]) + 2 * n * v[3]},
    ),
    Example(
        "kernel scopes",
        {
            "written": """
            @Opaque
            def run(self, x: f32[8, 8], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
                for i in pl.unroll(0, 8, 2):
                    with pl.at(level=pl.Level.CORE_GROUP):
                        t = pl.mul(pl.load(x, [i, 0], [2, 8]), 2.0)
                        y = pl.store(t, [6 - i, 0], y)
                return y
            """
        },
        lambda: {"x": ramp(8, 8), "y": zeros(8, 8)},
        lambda x, y: {"y": 2 * np.concatenate([x[6:8], x[4:6], x[2:4], x[0:2]])},
    ),
]


@pytest.mark.parametrize("example", MEANING, ids=lambda e: e.name)
def test_the_meaning_stays(example):
    program = example.parse("written")
    check_meaning(example, program)
    check_meaning(example, unrolled(program))


def test_properties():
    p = unroll_loops()
    assert p.get_name() == "UnrollLoops" and p.get_produced_properties() == property_set(IRProperty.UnrollResolved)
    assert p.get_required_properties().empty() and p.get_invalidated_properties().empty()


# --- what loops and branches of the body define -------------------------------------------------------------------------


def test_each_copy_has_its_own_loops_and_results_as_if_written_out():
    before = parse(
        """
        @Opaque
        def run(self, n: idx) -> idx:
            s = n
            for c in pl.unroll(3):
                for j in pl.range(2):
                    s = s * 2 + j + c
                for k, (a,) in pl.range(2, init_values=(s,)):
                    r = pl.yield_(a + k)
                if r > 3:
                    q = pl.yield_(r)
                else:
                    q = pl.yield_(n)
                s = s + q
            return s + r
        """
    )
    copy = """
            for j in pl.range(2):
                s = s * 2 + j + {c}
            for k, (a,) in pl.range(2, init_values=(s,)):
                r = pl.yield_(a + k)
            if r > 3:
                q = pl.yield_(r)
            else:
                q = pl.yield_(n)
            s = s + q
    """
    head = "@Opaque\ndef run(self, n: idx) -> idx:\n    s = n\n"
    body = "".join(textwrap.indent(textwrap.dedent(copy.format(c=c)), "    ") for c in range(3))
    expected = parse(head + body + "    return s + r\n")
    after = unroll_loops()(before)
    ir.assert_structural_equal(after, expected, enable_auto_mapping=True)
    check_round_trips(after)

    def want(n):
        s = n
        for c in range(3):
            for j in range(2):
                s = s * 2 + j + c
            r = s + 1
            s = s + (r if r > 3 else n)
        return s + r

    for n in (0, 1, 5):
        for program in (before, after):
            assert Interpreter(program).run(program["run"], [n]) == [want(n)]


def test_a_negated_index_is_a_constant():
    check_form(
        "@Opaque\ndef run(self, n: idx) -> idx:\n    m = n\n    for i in pl.unroll(1, 3):\n        m = n + -i\n    return m",
        "@Opaque\ndef run(self, n: idx) -> idx:\n    m = n\n    m = n + -1\n    m = n + -2\n    return m",
    )


def test_an_else_branch_of_a_loop_without_iterations_goes():
    check_form(
        "@Opaque\ndef run(self, n: idx) -> idx:\n    m = n\n    if n > 2:\n        m = n + 1\n    else:\n"
        "        for i in pl.unroll(0):\n            m = m + i\n    return m",
        "@Opaque\ndef run(self, n: idx) -> idx:\n    m = n\n    if n > 2:\n        m = n + 1\n    return m",
    )
