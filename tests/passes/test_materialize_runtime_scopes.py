"""MaterializeRuntimeScopes: where scopes are placed, where none may be, and that the result reads back."""

import textwrap
from typing import Any

import numpy as np
import pytest
from outlining_kit import run_all_orders
from spec_kit import parse

import pypto.language as pl
from pypto import ir
from pypto.analysis.task_marks import CANDIDATE, LAYER_CANDIDATE
from pypto.ir.node import FrozenDict
from pypto.ir.tree import walk
from pypto.passes.materialize_runtime_scopes import materialize_runtime_scopes
from pypto.verify.properties import IRProperty, get_structural_properties, property_set
from pypto.verify.registry import PropertyVerifierRegistry

KERNELS = """
@InCore
def fill(self, x: f32[8, 8], i: idx, y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    y1 = pl.store(pl.add(pl.load(x, [i, 0], [1, 8]), 1.0), [i, 0], y)
    return y1
@InCore
def plus(self, x: f32[8, 8], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
    y1 = pl.store(pl.add(pl.load(x, [0, 0], [8, 8]), 1.0), [0, 0], y)
    return y1
@InCore
def fix(self, y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    y1 = pl.store(pl.mul(pl.load(y, [0, 0], [8, 8]), 2.0), [0, 0], y)
    return y1
"""
FORM = property_set(IRProperty.SSAForm, IRProperty.UseAfterDef)
RESULT = FORM.union_with(property_set(IRProperty.RuntimeScopesMaterialized))
PARAMS = "self, x: f32[8, 8], y: pl.InOut[f32[8, 8]], n: pl.Scalar[pl.INT64]"


def source(body: str, head: str = "@Orchestration", result: str = " -> f32[8, 8]") -> ir.Program:
    """The kernels and ``run(x, y, n)`` with this body."""
    lines = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    return parse(f"{KERNELS}\n{head}\ndef run({PARAMS}){result}:\n{lines}\n")


def apply(program: ir.Program) -> ir.Program:
    """The pass; its result is as valid as its input, reads back from its text, and gives the pass nothing to do."""
    after = materialize_runtime_scopes()(program)
    rules = get_structural_properties()
    valid = not PropertyVerifierRegistry.verify(rules, program)
    PropertyVerifierRegistry.verify_or_throw(RESULT.union_with(rules) if valid else RESULT, after)
    assert materialize_runtime_scopes()(after) is after
    text = str(after)
    again = pl.parse(text)
    ir.assert_structural_equal(after, again, enable_auto_mapping=True)
    assert str(again) == text
    return after


def expect(before: str, after: str) -> ir.Program:
    found = apply(source(before))
    wanted = source(after, "@pl.function(type=pl.FunctionType.Orchestration, auto_scope=False)")
    ir.assert_structural_equal(found, wanted, enable_auto_mapping=True)
    return found


def run_of(program: ir.Program) -> Any:
    return program.get_function("run")


def scopes(program: ir.Program) -> list[str]:
    return ["MANUAL" if s.manual else "AUTO" for s in walk(run_of(program)) if type(s) is ir.RuntimeScopeStmt]


def marked(program: ir.Program, *callees: str, **attrs: Any) -> ir.Program:
    """The program with the mark of AutoDeriveTaskDependencies on the launches of these functions."""

    class Mark(ir.IRMutator):
        def _mark(self, op):
            return op.replace(attrs=FrozenDict({**op.attrs, CANDIDATE: True})) if op.op.name in callees else op

        def visit_call(self, op):
            return self._mark(op)

        def visit_submit(self, op):
            return self._mark(op)

    run = run_of(program)
    new = run.replace(body=Mark().visit_stmt(run.body), attrs=FrozenDict({**run.attrs, **attrs}))
    return program.with_functions([new if f is run else f for f in program.functions.values()])


def marks(program: ir.Program) -> int:
    return sum(CANDIDATE in c.attrs for c in walk(program) if isinstance(c, (ir.Call, ir.Submit)))


LOOP_AND_BRANCH = """
for i, (c,) in pl.parallel(2, init_values=(y,)):
    c2 = self.fill(x, i, c)
    y1 = pl.yield_(c2)
if n > 1:
    y2 = self.fix(y1)
    y3 = pl.yield_(y2)
else:
    y3 = pl.yield_(y1)
return y3
"""


def test_loops_and_branches():
    expect(
        LOOP_AND_BRANCH,
        """
        with pl.scope():
            for i, (c,) in pl.parallel(2, init_values=(y,)):
                with pl.scope():
                    c2 = self.fill(x, i, c)
                    y1 = pl.yield_(c2)
            if n > 1:
                with pl.scope():
                    y2 = self.fix(y1)
                    y3 = pl.yield_(y2)
            else:
                with pl.scope():
                    y3 = pl.yield_(y1)
            return y3
        """,
    )


def args(n: int = 3) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {"x": rng.random((8, 8), np.float32), "y": rng.random((8, 8), np.float32), "n": n}


@pytest.mark.parametrize("n", [1, 3])
def test_meaning(n):
    def want(x, y, n):
        y = y.copy()
        y[:2] = x[:2] + 1
        return y * 2 if n > 1 else y

    program = source(LOOP_AND_BRANCH)
    wanted = {"y": want(**args(n)), "return": want(**args(n))}
    run_all_orders(program, lambda: args(n), wanted)
    run_all_orders(apply(program), lambda: args(n), wanted)


def test_nested_loops_and_a_missing_else():
    expect(
        """
        for i in pl.range(n):
            for j in pl.parallel(4):
                y1 = self.fill(x, j, y)
            if i > 1:
                y2 = self.fix(y)
        return y
        """,
        """
        with pl.scope():
            for i in pl.range(n):
                with pl.scope():
                    for j in pl.parallel(4):
                        with pl.scope():
                            y1 = self.fill(x, j, y)
                    if i > 1:
                        with pl.scope():
                            y2 = self.fix(y)
            return y
        """,
    )


def test_while_bodies():
    expect(
        """
        for (k, c) in pl.while_(init_values=(n, y)):
            pl.cond(k > 0)
            c2 = self.fix(c)
            k1, y1 = pl.yield_(k - 1, c2)
        return y1
        """,
        """
        with pl.scope():
            for (k, c) in pl.while_(init_values=(n, y)):
                pl.cond(k > 0)
                with pl.scope():
                    c2 = self.fix(c)
                    k1, y1 = pl.yield_(k - 1, c2)
            return y1
        """,
    )


def test_manual_scopes_stay_bare_inside():
    expect(
        """
        with pl.manual_scope():
            for i in pl.parallel(4):
                r, t = pl.submit(self.fill, x, i, y)
                if n > 1:
                    r2, t2 = pl.submit(self.fill, x, i, y, deps=[t])
        return y
        """,
        """
        with pl.scope():
            with pl.scope(mode=pl.ScopeMode.MANUAL):
                for i in pl.parallel(4):
                    r, t = pl.submit(self.fill, x, i, y)
                    if n > 1:
                        r2, t2 = pl.submit(self.fill, x, i, y, deps=[t])
            return y
        """,
    )


def test_a_manual_scope_in_a_loop():
    expect(
        """
        for p in pl.range(2):
            with pl.manual_scope():
                for i in pl.parallel(4):
                    r, t = pl.submit(self.fill, x, i, y)
        return y
        """,
        """
        with pl.scope():
            for p in pl.range(2):
                with pl.scope():
                    with pl.scope(mode=pl.ScopeMode.MANUAL):
                        for i in pl.parallel(4):
                            r, t = pl.submit(self.fill, x, i, y)
            return y
        """,
    )


def test_an_auto_scope_that_is_there_is_enough():
    program = source(LOOP_AND_BRANCH)
    after = materialize_runtime_scopes()(program)
    run = run_of(after)
    # As if the compiler owned the scopes again, and one-statement sequences around the scopes.
    body = ir.SeqStmts([ir.SeqStmts([run.body])])
    again = after.with_functions(
        [run.replace(attrs=FrozenDict(), body=body) if f is run else f for f in after.functions.values()]
    )
    assert scopes(materialize_runtime_scopes()(again)) == scopes(after) == ["AUTO"] * 4


@pytest.mark.parametrize(
    "head",
    [
        "@pl.function(type=pl.FunctionType.Orchestration, auto_scope=False)",
        "@pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)",
        "@Opaque",
    ],
)
def test_other_functions_are_left_alone(head):
    program = source(LOOP_AND_BRANCH, head)
    assert materialize_runtime_scopes()(program) is program


# --- buffers that leave the body that makes them ------------------------------------------------------------------------

FRESH = """
for i, (c,) in pl.range(3, init_values=(x,)):
    t = pl.create_tensor([8, 8], dtype=pl.FP32)
    t2 = self.plus(c, t)
    r = pl.yield_(t2)
y2 = self.plus(r, y)
return y2
"""


def test_a_created_carry_outlives_the_body():
    expect(FRESH, "with pl.scope():\n" + textwrap.indent(FRESH.strip("\n"), "    "))


def test_a_created_carry_means_the_same():
    program = source(FRESH)
    wanted = {"y": args()["x"] + 4, "return": args()["x"] + 4}
    run_all_orders(program, args, wanted)
    run_all_orders(apply(program), args, wanted)


@pytest.mark.parametrize(
    ("body", "places"),
    [
        # One branch only.
        (
            """
            if n > 1:
                t = pl.create_tensor([8, 8], dtype=pl.FP32)
                t2 = self.plus(x, t)
                r = pl.yield_(t2)
            else:
                r = pl.yield_(x)
            """,
            ["run", "else"],
        ),
        # Out of a branch, and so out of the loop around it.
        (
            """
            for i, (c,) in pl.range(3, init_values=(x,)):
                if n > 1:
                    t = pl.create_tensor([8, 8], dtype=pl.FP32)
                    t2 = self.plus(c, t)
                    p = pl.yield_(t2)
                else:
                    p = pl.yield_(c)
                r = pl.yield_(p)
            """,
            ["run", "else"],
        ),
        # Only as far as the buffer goes: the outer loop keeps its scope.
        (
            """
            for k in pl.range(2):
                for i, (c,) in pl.range(3, init_values=(x,)):
                    t = pl.create_tensor([8, 8], dtype=pl.FP32)
                    t2 = self.plus(c, t)
                    r = pl.yield_(t2)
                y2 = self.plus(r, y)
            """,
            ["run", "k"],
        ),
        # A part of a buffer keeps the buffer alive.
        (
            """
            for i, (c,) in pl.range(3, init_values=(x,)):
                t = pl.create_tensor([16, 8], dtype=pl.FP32)
                s = pl.slice(t, [8, 8], [0, 0])
                s2 = self.plus(c, s)
                r = pl.yield_(s2)
            """,
            ["run"],
        ),
        # An output that the runtime allocates.
        (
            """
            for i, (c,) in pl.range(3, init_values=(x,)):
                t2, t = pl.submit(self.plus, c)
                r = pl.yield_(t2)
            """,
            ["run"],
        ),
        # The buffer of the iteration before leaves through the other slot.
        (
            """
            for k in pl.range(2):
                for i, (a, b) in pl.range(3, init_values=(x, x)):
                    t = pl.create_tensor([8, 8], dtype=pl.FP32)
                    t2 = self.plus(a, t)
                    r, q = pl.yield_(t2, a)
                y2 = self.plus(q, y)
            """,
            ["run", "k"],
        ),
        # In a branch of the next iteration it comes from outside the branch.
        (
            """
            for i, (a,) in pl.range(3, init_values=(x,)):
                if n > 1:
                    p = pl.yield_(a)
                else:
                    p = pl.yield_(x)
                t = pl.create_tensor([8, 8], dtype=pl.FP32)
                t2 = self.plus(p, t)
                r = pl.yield_(t2)
            """,
            ["run", "then", "else"],
        ),
        # Made here, but not handed out.
        (
            """
            for i, (c,) in pl.range(3, init_values=(y,)):
                t = pl.create_tensor([8, 8], dtype=pl.FP32)
                t2 = self.plus(x, t)
                c2 = self.fill(t2, i, c)
                r = pl.yield_(c2)
            """,
            ["run", "i"],
        ),
        # Made in front of the loop.
        (
            """
            t = pl.create_tensor([8, 8], dtype=pl.FP32)
            for i, (c,) in pl.range(3, init_values=(t,)):
                c2 = self.fill(x, i, c)
                r = pl.yield_(c2)
            """,
            ["run", "i"],
        ),
        (
            """
            for (k, c) in pl.while_(init_values=(n, x)):
                pl.cond(k > 0)
                t = pl.create_tensor([8, 8], dtype=pl.FP32)
                t2 = self.plus(c, t)
                k1, r = pl.yield_(k - 1, t2)
            """,
            ["run"],
        ),
    ],
    ids="branch branch-in-loop inner-only view allocated previous later-branch kept before while".split(),
)
def test_where_a_created_buffer_may_not_die(body, places):
    after = apply(source(textwrap.dedent(body).strip("\n") + "\nreturn y"))
    found = []
    for stmt in walk(run_of(after)):
        if isinstance(stmt, ir.Function) and type(stmt.body) is ir.RuntimeScopeStmt:
            found.append("run")
        elif isinstance(stmt, ir.IfStmt):
            found += ["then"] * (type(stmt.then_body) is ir.RuntimeScopeStmt)
            found += ["else"] * (type(stmt.else_body) is ir.RuntimeScopeStmt)
        elif isinstance(stmt, (ir.ForStmt, ir.WhileStmt)) and type(stmt.body) is ir.RuntimeScopeStmt:
            found.append(stmt.loop_var.name_hint if isinstance(stmt, ir.ForStmt) else "while")
    assert found == places


# --- scopes of the compiler -----------------------------------------------------------------------------------------------

TWO_LAUNCHES = """
for i in pl.range(3):
    y1 = self.fill(x, i, y)
    r, t = pl.submit(self.fix, y)
return y
"""


@pytest.mark.parametrize(
    ("callees", "wanted"),
    [(("fill", "fix"), ["AUTO", "MANUAL"]), (("fill",), ["AUTO", "AUTO"]), ((), ["AUTO", "AUTO"])],
)
def test_a_body_of_marked_launches_is_manual(callees, wanted):
    after = apply(marked(source(TWO_LAUNCHES), *callees))
    assert scopes(after) == wanted
    assert marks(after) == 0
    inner = [s for s in walk(run_of(after)) if type(s) is ir.RuntimeScopeStmt][1]
    assert bool(inner.attrs.get(CANDIDATE)) == (wanted[1] == "MANUAL")


def test_only_innermost_bodies_are_manual():
    body = """
        for k in pl.range(2):
            y0 = self.fix(y)
            for i in pl.range(3):
                y1 = self.fill(x, i, y)
        return y
    """
    after = apply(marked(source(body), "fill", "fix"))
    assert scopes(after) == ["AUTO", "AUTO", "MANUAL"]


def test_a_scope_of_the_user_keeps_the_body_auto():
    body = """
        for k in pl.range(2):
            y0 = self.fix(y)
            with pl.manual_scope():
                y1 = self.fix(y)
        return y
    """
    assert scopes(apply(marked(source(body), "fix"))) == ["AUTO", "AUTO", "MANUAL"]


def test_a_layer_is_one_manual_scope():
    program = marked(source(LOOP_AND_BRANCH), "fill", **{LAYER_CANDIDATE: True})
    after = apply(program)
    assert scopes(after) == ["MANUAL"]
    assert type(run_of(after).body) is ir.RuntimeScopeStmt
    assert dict(run_of(after).attrs) == {"auto_scope": False}
    assert marks(after) == 0


def test_a_layer_with_a_scope_is_placed_as_usual():
    body = "with pl.manual_scope():\n    y1 = self.fix(y)\nreturn y"
    after = apply(marked(source(body), "fix", **{LAYER_CANDIDATE: True}))
    assert scopes(after) == ["AUTO", "MANUAL"]
    assert LAYER_CANDIDATE not in run_of(after).attrs


def test_marks_go_where_the_user_places_the_scopes():
    head = "@pl.function(type=pl.FunctionType.Orchestration, auto_scope=False)"
    program = source("with pl.scope():\n    y1 = self.fix(y)\nreturn y", head)
    after = materialize_runtime_scopes()(marked(program, "fix"))
    assert marks(after) == 0
    ir.assert_structural_equal(after, program)


def test_comments_spans_and_attributes_stay():
    text = LOOP_AND_BRANCH.replace("    c2 =", "    # into y\n    c2 =").replace("return y3", "# done\nreturn y3")
    before = source(text)
    after = apply(before)
    comments = [list(s.leading_comments) for s in walk(run_of(after)) if isinstance(s, ir.Stmt) and s.leading_comments]
    assert comments == [["into y"], ["done"]]
    for scope in walk(run_of(after)):
        if type(scope) is ir.RuntimeScopeStmt:
            assert scope.span.is_valid()
    kept = source(LOOP_AND_BRANCH)
    run = run_of(kept)
    kept = kept.with_functions(
        [run.replace(attrs=FrozenDict({"slot_num": 2})) if f is run else f for f in kept.functions.values()]
    )
    assert dict(run_of(materialize_runtime_scopes()(kept)).attrs) == {"slot_num": 2, "auto_scope": False}
