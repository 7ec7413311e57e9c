"""ExpandManualPhaseFence: where a barrier saves edges, and everything that is left alone."""

import textwrap
from typing import Any

import numpy as np
import pytest
from outlining_kit import run_all_orders
from spec_kit import parse

import pypto.language as pl
from pypto import ir
from pypto.ir.tree import substitute, walk
from pypto.passes.convert_to_ssa import convert_to_ssa
from pypto.passes.expand_manual_phase_fence import expand_manual_phase_fence
from pypto.passes.flatten_call_expr import flatten_call_expr
from pypto.verify.properties import IRProperty, property_set
from pypto.verify.registry import PropertyVerifierRegistry

KERNELS = """
@InCore
def put(self, x: f32[8, 8], i: idx, y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    y1 = pl.store(pl.add(pl.load(x, [i, 0], [1, 8]), 1.0), [i, 0], y)
    return y1
@InCore
def total(self, y: f32[8, 8], j: idx, z: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    a = pl.add(pl.load(y, [0, 0], [1, 8]), pl.load(y, [3, 0], [1, 8]))
    z1 = pl.store(a, [j, 0], z)
    return z1
"""
PARAMS = "self, x: f32[8, 8], y: pl.InOut[f32[8, 8]], z: pl.InOut[f32[8, 8]], n: idx"
FORM = property_set(
    IRProperty.SSAForm, IRProperty.UseAfterDef, IRProperty.NoNestedCalls, IRProperty.NormalizedStmtStructure
)


def source(body: str, kind: str = "Orchestration") -> ir.Program:
    """The kernels and ``run(x, y, z, n)`` with this body, in SSA form."""
    lines = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    return flatten_call_expr()(convert_to_ssa()(parse(f"{KERNELS}\n@{kind}\ndef run({PARAMS}):\n{lines}\n")))


def apply(program: ir.Program) -> ir.Program:
    """The pass; its result keeps the form, reads back from its text, and gives the pass nothing to do."""
    PropertyVerifierRegistry.verify_or_throw(FORM, program)
    after = expand_manual_phase_fence()(program)
    PropertyVerifierRegistry.verify_or_throw(FORM, after)
    assert expand_manual_phase_fence()(after) is after
    again = pl.parse(str(after))
    ir.assert_structural_equal(after, again, enable_auto_mapping=True)
    return after


def expect(before: str, after: str) -> ir.Program:
    found = apply(source(before))
    ir.assert_structural_equal(found, source(after), enable_auto_mapping=True)
    return found


def left_alone(body: str, kind: str = "Orchestration") -> None:
    program = source(body, kind)
    assert expand_manual_phase_fence()(program) is program


def barriers(program: ir.Program) -> list[str]:
    return [
        s.var.name_hint
        for s in walk(program.get_function("run"))
        if isinstance(s, ir.AssignStmt) and isinstance(s.value, ir.Call) and s.value.op.name == "system.task_dummy"
    ]


def phase(n: Any, ids: str = "tids", at: str = "i") -> str:
    """Tasks that fill the array."""
    return f"for {at} in pl.parallel({n}):\n    ry, t = pl.submit(self.put, x, {at}, y)\n    {ids}[{at}] = t\n"


def use(m: Any, deps: str = "tids", loop: str = "parallel", extra: str = "") -> str:
    """Tasks that wait."""
    return f"for j in pl.{loop}({m}):\n    rz, u = pl.submit(self.total, y, j, z, deps=[{deps}])\n" + textwrap.indent(
        extra, "    "
    )


def manual(*parts: str, n: Any = 4) -> str:
    return "with pl.manual_scope():\n" + textwrap.indent(
        f"tids = pl.array.create({n}, pl.TASK_ID)\n" + "".join(parts), "    "
    )


BARRIER = "phase_fence_barrier_0_tid = pl.system.task_dummy(deps=[tids])\n"


def test_a_barrier_between_two_phases():
    expect(manual(phase(4), use(8)), manual(phase(4), BARRIER, use(8, "phase_fence_barrier_0_tid")))


def args() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    made = {name: rng.random((8, 8), np.float32) for name in "xyz"}
    return {**made, "n": 3}


def test_meaning():
    program = source(manual(phase(4), use(8)))
    x, y, z = (args()[name] for name in "xyz")
    y[:4] = x[:4] + 1
    z[:8] = y[0] + y[3]
    after = apply(program)
    assert barriers(after)
    for one in (program, after):
        run_all_orders(one, args, {"y": y, "z": z})


@pytest.mark.parametrize(
    ("n", "m", "found"),
    [(3, 3, 1), (2, 2, 0), (2, 3, 1), (3, 2, 1), (1, 8, 0), (8, 1, 0)],
)
def test_thresholds(n, m, found):
    assert len(barriers(apply(source(manual(phase(n), use(m), n=n))))) == found


@pytest.mark.parametrize(
    ("trips", "loop", "found"),
    [
        ("n", "parallel", 0),
        ("n", "range", 0),  # counts once, and once saves nothing
        ("0", "parallel", 0),
        ("0", "range", 0),
        ("8, 0, -1", "parallel", 1),
        ("2, 8, 2", "range", 1),
        ("8", "range", 1),
    ],
)
def test_trips(trips, loop, found):
    assert len(barriers(apply(source(manual(phase(4), use(trips, loop=loop)))))) == found


def test_an_unknown_number_of_iterations_counts_once_for_each_consumer():
    two = "rz2, u2 = pl.submit(self.total, y, j, z, deps=[tids])\n"
    assert barriers(apply(source(manual(phase(4), use("n", loop="range", extra=two))))) == ["phase_fence_barrier_0_tid"]
    assert not barriers(apply(source(manual(phase(4), use("n", loop="parallel", extra=two)))))


def nested(outer: str, inner: str) -> str:
    return f"for k in pl.{outer}:\n" + textwrap.indent(use("8").replace("pl.parallel(8)", f"pl.{inner}"), "    ")


def test_a_sequential_loop_counts_what_is_in_its_loops():
    expect(
        manual(phase(4), nested("range(3)", "parallel(2)")),
        manual(phase(4), BARRIER, nested("range(3)", "parallel(2)").replace("[tids]", "[phase_fence_barrier_0_tid]")),
    )


def test_a_parallel_loop_does_not():
    inner = use("8").replace("[tids]", "[phase_fence_barrier_0_tid]")
    expect(
        manual(phase(4), nested("parallel(3)", "parallel(8)")),
        manual(phase(4), "for k in pl.parallel(3):\n", textwrap.indent(BARRIER + inner, "    ")),
    )


def test_loops_of_unknown_length_inside_are_not_counted():
    left_alone(manual(phase(4), nested("range(8)", "range(n)")))
    left_alone(manual(phase(4), nested("range(8)", "parallel(0)")))


def test_deep_loops():
    body = use("2")
    for k in range(15):
        body = f"for k{k} in pl.range(2):\n" + textwrap.indent(body, "    ")
    after = apply(source(manual(phase(4), body)))
    assert len(barriers(after)) == 1
    stmts = [s for s in walk(after.get_function("run")) if isinstance(s, (ir.ForStmt, ir.AssignStmt))]
    at = next(i for i, s in enumerate(stmts) if getattr(s, "var", None) and s.var.name_hint.startswith("phase_fence"))
    assert stmts[at + 1].loop_var.name_hint.startswith("k14")


def test_two_arrays_give_two_barriers():
    both = use(4) + use(4, "more").replace("j", "k")
    more = "more = pl.array.create(4, pl.TASK_ID)\n"
    after = apply(source(manual(more, phase(4), phase(4, "more", "h"), both)))
    assert barriers(after) == ["phase_fence_barrier_0_tid", "phase_fence_barrier_1_tid"]
    in_one = use(4, extra="rz2, u2 = pl.submit(self.total, y, j, z, deps=[more])\n")
    after = apply(source(manual(more, phase(4), phase(4, "more", "h"), in_one)))
    assert barriers(after) == ["phase_fence_barrier_0_tid", "phase_fence_barrier_1_tid"]


def test_a_barrier_of_the_user_does_not_interfere():
    """Not even if it has the name of the first barrier."""
    program = source(manual(phase(4), "mine = pl.system.task_dummy(deps=[tids])\n", use(4)))
    [mine] = [s.var for s in walk(program) if isinstance(s, ir.AssignStmt) and s.var.name_hint.startswith("mine")]
    program = substitute(program, [(mine, ir.Var("phase_fence_barrier_0_tid", mine.type))])
    assert barriers(apply(program)) == ["phase_fence_barrier_0_tid", "phase_fence_barrier_1_tid"]


@pytest.mark.parametrize(
    "body",
    [
        manual(phase(4), use(8, "tids[0]")),
        manual(phase(4), "ry2, s = pl.submit(self.put, x, 0, y)\n", use(8, "s")),
        manual(phase(4), "ry2, s = pl.submit(self.put, x, 0, y)\n", use(8, "tids, s")),
        manual("more = pl.array.create(4, pl.TASK_ID)\n", phase(4), use(8, "tids, more")),
        manual(phase(4), "rz, u = pl.submit(self.total, y, 0, z, deps=[tids])\n"),
        manual(phase(4), use(8)).replace("with pl.manual_scope():", "if n > 0:"),
    ],
    ids="slot scalar and-scalar two-arrays no-loop auto".split(),
)
def test_left_alone(body):
    left_alone(body)


def test_a_manual_scope_inside_the_loop_is_not_around_it():
    inner = "ry, t = pl.submit(self.put, x, 0, y)\ntids[0] = t\n"
    body = f"tids = pl.array.create(4, pl.TASK_ID)\n{inner}for j in pl.range(8):\n    with pl.manual_scope():\n"
    left_alone(body + "        rz, u = pl.submit(self.total, y, j, z, deps=[tids])\n")


def test_other_functions_are_left_alone():
    left_alone(manual(phase(4), use(8)), "Opaque")


# --- arrays that change in the loop ---------------------------------------------------------------------------------------


def test_an_array_that_the_loop_updates():
    left_alone(manual(phase(4), use(4, extra="tids[j] = u\n")))
    left_alone(manual(phase(4), use(8, extra="if n > 2:\n    tids[0] = u\n")))


def test_an_array_that_a_loop_around_updates():
    """Hoisted out of the inner loop, which does not change it; not out of the outer one, which does."""
    body = "for p in pl.range(3):\n" + textwrap.indent(
        use(8) + "ry2, s = pl.submit(self.put, x, p, y)\ntids[p] = s\n", "    "
    )
    after = apply(source(manual(phase(4), body)))
    assert len(barriers(after)) == 1
    outer = [s for s in walk(after.get_function("run")) if isinstance(s, ir.ForStmt)][1]
    assert isinstance(ir.flatten_to_stmts(outer.body)[0].value, ir.Call)


def explicit(body: str) -> str:
    """A manual scope with two filled arrays and a loop in SSA form."""
    more = "more = pl.array.create(4, pl.TASK_ID)\n"
    return manual(more, phase(4), phase(4, "more", "h"), textwrap.dedent(body).strip("\n") + "\n")


def test_an_update_under_the_name_of_a_carry():
    # `it` starts as `tids`, so the update changes what the consumers wait for.
    left_alone(
        explicit("""
        for j, (it,) in pl.range(8, init_values=(tids,)):
            rz, u = pl.submit(self.total, y, j, z, deps=[tids])
            it2 = pl.array.update_element(it, 0, u)
            last = pl.yield_(it2)
        """)
    )


def test_an_update_in_a_loop_inside_of_the_loop():
    left_alone(
        explicit("""
        for j in pl.range(8):
            rz, u = pl.submit(self.total, y, j, z, deps=[tids])
            for k, (it,) in pl.range(4, init_values=(tids,)):
                it2 = pl.array.update_element(it, k, u)
                last = pl.yield_(it2)
        """)
    )


def test_a_carry_of_the_loop_itself():
    left_alone(
        explicit("""
        for j, (it,) in pl.range(8, init_values=(tids,)):
            rz, u = pl.submit(self.total, y, j, z, deps=[it])
            last = pl.yield_(it)
        """)
    )


def test_an_array_made_in_the_loop():
    left_alone(
        explicit("""
        for j in pl.range(8):
            own = pl.array.create(4, pl.TASK_ID)
            rz, u = pl.submit(self.total, y, j, z, deps=[own])
        """)
    )


SWAP = """
for p, (prev, next) in pl.range(3, init_values=(tids, more)):
    for j, (it,) in pl.parallel(4, init_values=(next,)):
        rz, u = pl.submit(self.total, y, j, z, deps=[{awaited}])
        it2 = pl.array.update_element(it, j, u)
        full = pl.yield_(it2)
    a, b = pl.yield_({ends})
"""


def test_a_double_buffered_pair():
    """What is read and what is written change places, and are never one array."""
    after = apply(source(explicit(SWAP.format(awaited="prev", ends="full, prev"))))
    assert len(barriers(after)) == 1
    outer = [s for s in walk(after.get_function("run")) if isinstance(s, ir.ForStmt)][2]
    first, second = ir.flatten_to_stmts(outer.body)[:2]
    assert first.value.attrs["manual_dep_edges"] == [outer.iter_args[0]]
    assert isinstance(second, ir.ForStmt)


@pytest.mark.parametrize(
    ("awaited", "ends", "starts"),
    [
        ("next", "full, prev", "tids, more"),  # read what is written
        ("prev", "full, prev", "tids, tids"),  # one array from the beginning
        ("prev", "full, full", "tids, more"),  # one array from the second iteration on
        ("tids", "full, prev", "tids, more"),  # becomes the written one
    ],
)
def test_pairs_that_meet(awaited, ends, starts):
    left_alone(explicit(SWAP.format(awaited=awaited, ends=ends).replace("(tids, more)", f"({starts})")))


def test_a_branch_result_may_be_the_updated_array():
    left_alone(
        explicit("""
        if n > 2:
            which = pl.yield_(tids)
        else:
            which = pl.yield_(more)
        for j in pl.range(8):
            rz, u = pl.submit(self.total, y, j, z, deps=[which])
            more[0] = u
        """)
    )


def test_comments_and_spans_stay():
    body = manual(phase(4), "# all of it\n" + use(8, extra=""))
    before = source(body)
    after = apply(before)
    loops = [s for s in walk(after.get_function("run")) if isinstance(s, ir.ForStmt)]
    old = [s for s in walk(before.get_function("run")) if isinstance(s, ir.ForStmt)]
    assert list(loops[1].leading_comments) == ["all of it"]
    assert loops[1].span is old[1].span
    assert ir.python_print(after) == ir.python_print(apply(source(body)))
