"""AutoDeriveTaskDependencies: which edges are found, what is lowered, and when the runtime keeps the order instead."""

import random
import textwrap
from typing import Any

import numpy as np
import pytest
from outlining_kit import _run, run_all_orders
from spec_kit import parse

import pypto.language as pl
from pypto import ir
from pypto.analysis.task_marks import CANDIDATE, EDGES, LAYER_CANDIDATE
from pypto.ir.node import FrozenDict
from pypto.ir.tree import walk
from pypto.ops.values import ArrayValue
from pypto.passes.auto_derive_task_dependencies import auto_derive_task_dependencies
from pypto.passes.convert_to_ssa import convert_to_ssa
from pypto.passes.derive_call_directions import derive_call_directions
from pypto.passes.flatten_call_expr import flatten_call_expr
from pypto.passes.materialize_runtime_scopes import materialize_runtime_scopes
from pypto.passes.normalize_stmt_structure import normalize_stmt_structure
from pypto.runtime.interpreter import Interpreter
from pypto.verify.properties import IRProperty, property_set
from pypto.verify.registry import PropertyVerifierRegistry

KERNELS = """
@InCore
def plus(self, x: f32[8, 8], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
    t = pl.add(pl.load(x, [0, 0], [8, 8]), 1.0)
    y1 = pl.store(t, [0, 0], y)
    return y1
@InCore
def bump(self, y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    t = pl.mul(pl.load(y, [0, 0], [8, 8]), 2.0)
    y1 = pl.store(t, [0, 0], y)
    return y1
@InCore
def half(self, x: f32[8, 8], y: pl.Out[f32[4, 8]]) -> f32[4, 8]:
    t = pl.add(pl.load(x, [0, 0], [4, 8]), 3.0)
    y1 = pl.store(t, [0, 0], y)
    return y1
@InCore
def from_half(self, x: f32[4, 8], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
    t = pl.add(pl.load(x, [0, 0], [4, 8]), 5.0)
    y1 = pl.store(t, [0, 0], y)
    return y1
@InCore
def row(self, x: f32[8, 8], i: idx, y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
    t = pl.add(pl.load(x, [i, 0], [1, 8]), 1.0)
    y1 = pl.store(t, [i, 0], y)
    return y1
"""
PARAMS = "self, x: f32[8, 8], b: pl.InOut[f32[8, 8]], y: pl.InOut[f32[8, 8]], n: idx"
FORM = property_set(IRProperty.SSAForm, IRProperty.UseAfterDef, IRProperty.CallDirectionsResolved)
OWN_SCOPES = "@pl.function(type=pl.FunctionType.Orchestration, auto_scope=False)"


def source(body: str, head: str = "@Orchestration") -> ir.Program:
    """The kernels and ``run(x, b, y, n)`` with this body, directions derived."""
    lines = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    return derive_call_directions()(parse(f"{KERNELS}\n{head}\ndef run({PARAMS}):\n{lines}\n"))


def derive(program: ir.Program) -> ir.Program:
    """The pass with its switch on; its result keeps the form, reads back, and gives the pass nothing to do."""
    PropertyVerifierRegistry.verify_or_throw(FORM, program)
    after = auto_derive_task_dependencies(analyze_auto_scopes=True)(program)
    PropertyVerifierRegistry.verify_or_throw(FORM, after)
    assert auto_derive_task_dependencies(True)(after) is after
    ir.assert_structural_equal(after, pl.parse(str(after)), enable_auto_mapping=True)
    return after


def run_of(program: ir.Program) -> Any:
    return program.get_function("run")


def launches(program: ir.Program) -> list[Any]:
    return [
        node
        for node in walk(run_of(program))
        if isinstance(node, (ir.Call, ir.Submit)) and type(node.op) is ir.GlobalVar
    ]


def edges(program: ir.Program) -> list[list[str]]:
    return [[v.name_hint for v in call.attrs.get(EDGES, ())] for call in launches(program)]


def directions(program: ir.Program) -> list[str]:
    short = {"Input": "in", "InOut": "inout", "OutputExisting": "out", "NoDep": "none", "Scalar": "scalar"}
    return [" ".join(short[d.name] for d in call.arg_directions) for call in launches(program)]


def is_layer(program: ir.Program) -> bool:
    return bool(run_of(program).attrs.get(LAYER_CANDIDATE))


def args() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {**{name: rng.random((8, 8), np.float32) for name in "xby"}, "n": 3}


def same_meaning(body: str, want: Any, head: str = "@Orchestration", ordered: bool = True) -> ir.Program:
    """Before, after, and with scopes placed, the program computes what NumPy does, in every tried order.

    ``ordered``: the runtime orders the program by itself. (It lets a writer pass an earlier reader; edges do not.)
    """
    before = source(body, head)
    after = derive(before)
    wanted = want(**args())
    for program in (*[before] * ordered, after, materialize_runtime_scopes()(after)):
        run_all_orders(program, args, wanted)
    return after


READ_AFTER_WRITE = "b1 = self.plus(x, b)\ny1 = self.plus(b1, y)\n"


@pytest.mark.parametrize("make", [auto_derive_task_dependencies, lambda: auto_derive_task_dependencies(False)])
def test_off_is_the_identity(make):
    program = source(READ_AFTER_WRITE)
    assert make()(program) is program


# --- each kind of hazard --------------------------------------------------------------------------------------------------


def test_read_after_write():
    after = same_meaning(READ_AFTER_WRITE, lambda x, b, y, n: {"b": x + 1, "y": x + 2})
    assert edges(after) == [[], ["b1"]]
    assert directions(after) == ["in inout", "none inout"]
    assert [CANDIDATE in call.attrs for call in launches(after)] == [False, True]
    assert is_layer(after)


def test_write_after_write_and_write_after_read():
    after = same_meaning(
        "b1 = self.plus(x, b)\ny1 = self.plus(b1, y)\nb2 = self.bump(b1)\n",
        lambda x, b, y, n: {"b": (x + 1) * 2, "y": x + 2},
        ordered=False,
    )
    assert edges(after) == [[], ["b1"], ["b1", "y1"]]
    assert directions(after) == ["in inout", "none inout", "out"]


def test_reads_do_not_wait_for_reads():
    after = derive(source("b1 = self.plus(x, b)\ny1 = self.plus(x, y)\n"))
    assert edges(after) == [[], []]
    assert directions(after) == ["in inout", "in inout"]


def test_a_write_of_all_stands_for_what_it_waits_for():
    after = derive(source("b1 = self.bump(b)\nb2 = self.bump(b1)\nb3 = self.bump(b2)\n"))
    assert edges(after) == [[], ["b1"], ["b2"]]


def test_submits_and_calls_without_results():
    after = derive(source("r, t = pl.submit(self.plus, x, b)\nself.plus(r, y)\nz = self.bump(y)\n"))
    assert edges(after) == [[], ["t"], ["y"]]


def test_boxes():
    body = """
    left = pl.slice(b, [4, 8], [0, 0])
    right = pl.slice(b, [4, 8], [4, 0])
    l1 = self.half(x, left)
    y1 = self.from_half(right, y)
    b1 = self.bump(b)
    """

    def want(x, b, y, n):
        y = y.copy()
        y[:4] = b[4:] + 5
        b = b.copy()
        b[:4] = x[:4] + 3
        return {"b": b * 2, "y": y}

    after = same_meaning(body, want)
    assert edges(after) == [[], [], ["l1", "y1"]]
    assert directions(after)[1].split()[0] == "in"


def test_overlapping_boxes():
    body = """
    left = pl.slice(b, [4, 8], [0, 0])
    middle = pl.slice(b, [4, 8], [2, 0])
    l1 = self.half(x, left)
    y1 = self.from_half(middle, y)
    """
    after = derive(source(body))
    assert edges(after) == [[], ["l1"]]
    assert directions(after)[1].split()[0] == "none"


def test_slices_of_slices():
    body = """
    right = pl.slice(b, [6, 8], [2, 0])
    low = pl.slice(right, [4, 8], [2, 0])
    high = pl.slice(b, [4, 8], [0, 0])
    l1 = self.half(x, low)
    y1 = self.from_half(high, y)
    """
    assert edges(derive(source(body))) == [[], []]


def test_computed_windows_wait_but_keep_their_direction():
    body = """
    b1 = self.bump(b)
    part = pl.slice(b1, [4, 8], [n, 0])
    y1 = self.from_half(part, y)
    """
    after = derive(source(body))
    assert edges(after) == [[], ["b1"]]
    assert directions(after)[1].split()[0] == "in"


# --- the user's own dependencies ------------------------------------------------------------------------------------------


def test_dependencies_of_the_user_are_not_repeated():
    after = derive(source("r, t = pl.submit(self.plus, x, b)\nr2, t2 = pl.submit(self.plus, r, y, deps=[t])\n"))
    assert edges(after) == [[], []]
    assert directions(after)[1].split()[0] == "none"
    assert is_layer(after)


ARRAY = """
ids = pl.array.create({extent}, pl.TASK_ID)
r, t = pl.submit(self.plus, x, b)
ids1 = pl.array.update_element(ids, 0, t)
s, u = pl.submit(self.plus, x, y)
ids2 = pl.array.update_element(ids1, 1, u)
r2, t2 = pl.submit(self.plus, r, s, deps=[ids2])
"""


def test_complete_arrays_cover():
    assert edges(derive(source(ARRAY.format(extent=2)))) == [[], [], []]


def test_partial_arrays_do_not():
    assert edges(derive(source(ARRAY.format(extent=3)))) == [[], [], ["t", "u"]]


def test_elements_of_arrays():
    body = ARRAY.format(extent=3).replace("deps=[ids2]", "deps=[e]")
    body = body.replace("r2, t2", "e = pl.array.get_element(ids2, 0)\nr2, t2")
    assert edges(derive(source(body))) == [[], [], ["u"]]


@pytest.mark.parametrize(("extent", "slot", "lowered"), [(4, "i", True), (1, "0", False)])
def test_ids_of_all_iterations(extent, slot, lowered):
    """The one slot holds the id of the last iteration, which is the user's word, but no proof."""
    body = f"""
    ids = pl.array.create({extent}, pl.TASK_ID)
    made = pl.create_tensor([8, 8], dtype=pl.FP32)
    for i, (c, a) in pl.parallel(4, init_values=(made, ids)):
        c1, t = pl.submit(self.row, x, i, c)
        a1 = pl.array.update_element(a, {slot}, t)
        c2, a2 = pl.yield_(c1, a1)
    r, u = pl.submit(self.plus, c2, y, deps=[a2])
    """
    after = derive(source(body))
    assert edges(after) == [[], []]
    assert directions(after)[1].split()[0] == ("none" if lowered else "in")


def test_any_other_id_covers_nothing():
    body = """
    r, t = pl.submit(self.plus, x, b)
    s, u = pl.submit(self.plus, x, y)
    r2, t2 = pl.submit(self.bump, r, deps=[u])
    """
    assert edges(derive(source(body))) == [[], [], ["t"]]


def test_manual_scopes_are_not_touched():
    body = """
    with pl.manual_scope():
        r, t = pl.submit(self.plus, x, b)
        s, u = pl.submit(self.plus, r, y, deps=[t])
        s2, u2 = pl.submit(self.bump, s)
    """
    program = source(body)
    assert auto_derive_task_dependencies(True)(program) is program


# --- loops ----------------------------------------------------------------------------------------------------------------


def rows(loop: str, launch: str = "self.row(x, i, cur)") -> str:
    return f"for i, (cur,) in pl.{loop}, init_values=(b,)):\n    nxt = {launch}\n    res = pl.yield_(nxt)\n"


@pytest.mark.parametrize("loop", ["parallel(8", "parallel(7, -1, -1", "range(1"])
def test_results_of_loops_of_known_length(loop):
    def want(x, b, y, n):
        b = b.copy()
        count = 1 if loop == "range(1" else 8
        b[:count] = x[:count] + 1
        return {"b": b, "y": b + 1}

    after = same_meaning(rows(loop) + "z = self.plus(res, y)\n", want)
    assert edges(after)[-1] == ["res"]
    # The iterations write one buffer that was handed in as InOut, so the runtime orders them; no edge does.
    assert directions(after)[-1] == ("none inout" if loop == "range(1" else "in inout")
    assert is_layer(after) == (loop == "range(1")


def test_a_loop_that_the_runtime_orders_is_not_lowered():
    """``bump`` of each iteration waits for the one before, which no edge says."""
    after = same_meaning(
        "for i, (cur,) in pl.range(3, init_values=(b,)):\n    nxt = self.bump(cur)\n    res = pl.yield_(nxt)\n"
        "z = self.plus(res, y)\n",
        lambda x, b, y, n: {"b": b * 8, "y": b * 8 + 1},
    )
    assert edges(after) == [[], ["res"]]
    assert directions(after) == ["inout", "in inout"]
    assert not is_layer(after)


def test_results_of_dynamic_parallel_loops():
    after = derive(
        source(
            rows("parallel(n", "self.plus(x, cur)")
            .replace("init_values=(b,)", "init_values=(t,)")
            .join(["t = pl.create_tensor([8, 8], dtype=pl.FP32)\n", "z = self.plus(res, y)\n"])
        )
    )
    assert edges(after)[-1] == ["res"]
    assert directions(after) == ["in out", "none inout"]
    assert is_layer(after)


def test_dynamic_sequential_loops_fall_back():
    after = derive(source(rows("range(n") + "z = self.plus(res, y)\n"))
    assert edges(after) == [[], []]
    assert not is_layer(after)


@pytest.mark.parametrize("escape", ["break", "continue"])
def test_loops_that_are_left_early_fall_back(escape):
    """Their results do not stand for all iterations: the runtime keeps the order, with the same values."""
    program = source(
        f"""
        for i, (c,) in pl.range(4, init_values=(b,)):
            if i == n:
                {escape}
            d = self.row(x, i, c)
            r = pl.yield_(d)
        y = self.plus(r, y)
        """
    )
    after = derive(convert_to_ssa()(program))
    assert not any(EDGES in call.attrs for call in launches(after))
    assert all(d is not ir.ArgDirection.NoDep for call in launches(after) for d in call.arg_directions)


def test_launches_of_one_iteration():
    body = """
    for i, (c, d) in pl.range(4, init_values=(b, y)):
        c1 = self.plus(x, c)
        d1 = self.plus(c1, d)
        c2, d2 = pl.yield_(c1, d1)
    """
    assert edges(derive(source(body))) == [[], ["c1"]]


def test_back_edges():
    """The reader waits for the writer of the iteration before: only the runtime sees that."""
    body = """
    b0 = self.plus(x, b)
    for i, (c, d) in pl.range({}, init_values=(b0, y)):
        d1 = self.plus(c, d)
        c1 = self.bump(c)
        c2, d2 = pl.yield_(c1, d1)
    """

    def want(x, b, y, n):
        return {"b": (x + 1) * 8, "y": (x + 1) * 4 + 1}

    for trips in ("n", "3"):
        after = same_meaning(body.format(trips), want, ordered=False)
        assert not is_layer(after)
        assert directions(after) == ["in inout", "in inout", "inout"]
        assert edges(after) == [[], ["b0"], ["b0", "d1"]]


def test_back_edges_behind_a_covering_write():
    """``bump`` carries its own id, the reader does not: it must still be seen, though ``bump`` waits for it."""
    body = """
    none = pl.system.task_invalid()
    b0 = self.plus(x, b)
    for i, (c, p) in pl.range(n, init_values=(b0, none)):
        t = pl.create_tensor([8, 8], dtype=pl.FP32)
        t1{tid} = {launch}(self.plus, c, t{deps})
        c1, q = pl.submit(self.bump, c, deps=[p])
        c2, p2 = pl.yield_(c1, q)
    """
    for deps, lowered in (("", False), (", deps=[p]", True)):
        after = derive(source(body.format(tid=", u", launch="pl.submit", deps=deps)))
        assert edges(after) == [[], ["b0"], ["b0", "u"]]
        assert directions(after)[1].split()[0] == ("none" if lowered else "in")


def test_a_loop_covers_only_what_it_writes_all_of():
    body = """
    b1 = self.bump(b)
    for i, (c,) in pl.parallel(4, init_values=(y,)):
        d = self.row(b1, i, c)
        y1 = pl.yield_(d)
    b2 = self.bump(b1)
    """
    assert edges(derive(source(body)))[-1] == ["b1", "y1"]
    # This loop may not run at all.
    assert edges(
        derive(source("b0 = self.bump(b)\n" + rows("parallel(n").replace("(b,)", "(b0,)") + "z = self.plus(res, y)\n"))
    )[-1] == ["b0", "res"]
    assert edges(
        derive(source("b0 = self.bump(b)\n" + rows("parallel(4").replace("(b,)", "(b0,)") + "z = self.plus(res, y)\n"))
    )[-1] == ["res"]


def test_a_carried_id_stands_for_the_iteration_before():
    body = """
    none = pl.system.task_invalid()
    for i, (c, p) in pl.range(n, init_values=(b, none)):
        c1, q = pl.submit(self.bump, c, deps=[p])
        c2, p2 = pl.yield_(c1, q)
    """
    after = same_meaning(body, lambda x, b, y, n: {"b": b * 8})
    assert is_layer(after)


def test_a_read_behind_the_last_write_of_an_iteration_is_not_what_the_loop_gives():
    body = """
    for i, (c, d) in pl.parallel(4, init_values=(b, y)):
        c1 = self.row(x, i, c)
        d1 = self.row(c1, i, d)
        c2, d2 = pl.yield_(c1, d1)
    e = self.bump(c2)
    """
    after = derive(source(body))
    # The launch that writes `d` has read `b`: its id is the other result.
    assert edges(after)[-1] == ["c2", "d2"]
    after = derive(source(body.replace("c2, d2 = pl.yield_(c1, d1)", "c2, d2 = pl.yield_(c1, d)")))
    assert edges(after)[-1] == ["c2"]
    assert not is_layer(after)
    assert directions(after)[-1] == "inout"


# --- branches -------------------------------------------------------------------------------------------------------------


def test_branches_are_not_behind_each_other():
    body = """
    if n > 2:
        c = self.plus(x, b)
        p = pl.yield_(c)
    else:
        d = self.bump(b)
        p = pl.yield_(d)
    """
    assert edges(derive(source(body))) == [[], []]


def test_an_id_in_a_branch_is_no_id_behind_it():
    body = """
    if n > 2:
        c = self.plus(x, b)
        p = pl.yield_(c)
    else:
        p = pl.yield_(b)
    z = self.plus(p, y)
    """
    after = same_meaning(body, lambda x, b, y, n: {"b": x + 1, "y": x + 2})
    assert edges(after) == [[], []]
    assert directions(after)[1] == "in inout"
    assert not is_layer(after)


def test_an_id_that_a_branch_gives():
    body = """
    none = pl.system.task_invalid()
    if n > 2:
        c, t = pl.submit(self.plus, x, b)
        p, q = pl.yield_(c, t)
    else:
        p, q = pl.yield_(b, none)
    z = self.plus(p, y)
    """
    after = same_meaning(body, lambda x, b, y, n: {"b": x + 1, "y": x + 2})
    assert edges(after) == [[], ["q"]]
    assert directions(after)[1].split()[0] == "none"


# --- scopes of the user ---------------------------------------------------------------------------------------------------


def test_scopes_see_what_earlier_ones_wrote():
    body = "with pl.scope():\n    b1 = self.plus(x, b)\nwith pl.scope():\n    y1 = self.plus(b1, y)\n"
    after = same_meaning(body, lambda x, b, y, n: {"b": x + 1, "y": x + 2}, OWN_SCOPES)
    assert edges(after) == [[], ["b1"]]
    assert not is_layer(after)
    scopes = [s for s in walk(run_of(after)) if isinstance(s, ir.RuntimeScopeStmt)]
    assert [s.manual for s in scopes] == [False, False]


def test_outside_of_scopes_nothing_is_derived():
    program = source("b1 = self.plus(x, b)\ny1 = self.plus(b1, y)\n", OWN_SCOPES)
    assert auto_derive_task_dependencies(True)(program) is program


FALLING = """
with pl.scope():
    y0 = self.plus(x, y)
    for i, (c,) in pl.range(n, init_values=(b,)):
        c1 = self.bump(c)
        c2 = pl.yield_(c1)
    y1 = self.bump(y0)
    y2 = self.plus(c2, y1)
"""


def test_a_scope_that_falls_back_has_no_edges():
    after = derive(source(FALLING, OWN_SCOPES))
    assert edges(after) == [[], [], [], []]
    assert directions(after) == ["in inout", "inout", "inout", "in inout"]


def test_behind_it_nothing_is_lowered_on_what_it_wrote():
    after = derive(source(FALLING + "with pl.scope():\n    b3 = self.bump(c2)\n", OWN_SCOPES))
    assert edges(after)[-1] == []
    assert directions(after)[-1] == "inout"


def test_the_whole_body_keeps_edges_when_it_falls_back():
    after = derive(source(textwrap.dedent(FALLING.replace("with pl.scope():\n", ""))))
    assert edges(after) == [[], [], ["y0"], ["y1"]]
    assert not is_layer(after)
    assert not any(CANDIDATE in call.attrs for call in launches(after))


def test_a_scope_in_a_loop_of_the_user():
    """The hazard goes over the back edge of a loop that no region is around."""
    body = """
    with pl.scope():
        b0 = self.plus(x, b)
    for i, (c, d) in pl.range(3, init_values=(b0, y)):
        with pl.scope():
            d1 = self.plus(c, d)
            c1 = self.bump(c)
            c2, d2 = pl.yield_(c1, d1)
    """
    after = same_meaning(body, lambda x, b, y, n: {"b": (x + 1) * 8, "y": (x + 1) * 4 + 1}, OWN_SCOPES, False)
    assert directions(after) == ["in inout", "in inout", "inout"]


# --- what may not be one MANUAL scope -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "layer"),
    [
        ("t = pl.create_tensor([8, 8], dtype=pl.FP32)\nt1 = self.plus(x, t)\nb1 = self.plus(t1, b)\n", True),
        # The scope would not keep this buffer alive.
        (
            "if n > 2:\n    t = pl.create_tensor([8, 8], dtype=pl.FP32)\n    t1 = self.plus(x, t)\nb1 = self.plus(x, b)\n",
            False,
        ),
        ("t1, t = pl.submit(self.plus, x)\nb1 = self.plus(t1, b)\n", False),
        ("b1 = self.plus(x, b)\ns = pl.tensor.read(b1, [0, 0])\n", False),
        ("with pl.manual_scope():\n    y1 = self.plus(x, y)\nb1 = self.plus(x, b)\n", False),
        ("m = n + 1\n", False),
    ],
    ids="created in-a-branch allocated host scope empty".split(),
)
def test_layers(body, layer):
    assert is_layer(derive(source(body))) == layer


def test_outputs_that_the_runtime_allocates():
    after = derive(source("t1, t = pl.submit(self.plus, x)\nb1 = self.plus(t1, b)\n"))
    assert edges(after) == [[], ["t"]]


def test_stale_layer_marks_go():
    program = source("b1 = self.plus(x, b)\ns = pl.tensor.read(b1, [0, 0])\n")
    run = run_of(program)
    marked = run.replace(attrs=FrozenDict({LAYER_CANDIDATE: True}))
    program = program.with_functions([marked if f is run else f for f in program.functions.values()])
    assert not is_layer(derive(program))


def test_a_layer_becomes_one_manual_scope():
    after = materialize_runtime_scopes()(derive(source(READ_AFTER_WRITE)))
    assert type(run_of(after).body) is ir.RuntimeScopeStmt
    assert run_of(after).body.manual
    assert not any(CANDIDATE in call.attrs for call in launches(after))


def test_what_the_debug_switch_says(monkeypatch, capsys):
    monkeypatch.setenv("PYPTO_AUTO_DEPS_LOOP_CARRY_DEBUG", "1")
    auto_derive_task_dependencies(True)(source(rows("range(n") + "z = self.plus(res, y)\n"))
    lines = capsys.readouterr().err.splitlines()
    prefix = "[auto-deps-loop-debug] [auto-no-dep-bucket] "
    assert prefix + "call=plus arg_index=0 bucket=fallback fallback_reason=prior_from_inactive_dynamic_loop" in lines
    monkeypatch.setenv("PYPTO_AUTO_DEPS_LOOP_CARRY_DEBUG", "0")
    auto_derive_task_dependencies(True)(source(READ_AFTER_WRITE))
    assert not capsys.readouterr().err


# --- generated programs ---------------------------------------------------------------------------------------------------


def generated(rng: random.Random) -> str:
    """The body of ``run``: launches on three buffers in loops and branches, as a user writes them."""
    lines = ["t = pl.create_tensor([8, 8], dtype=pl.FP32)", "t = self.plus(x, t)", "r, tid = pl.submit(self.bump, t)"]
    count = 0

    def block(indent: str, depth: int) -> None:
        nonlocal count
        for _ in range(rng.randint(1, 4)):
            count += 1
            to, by = rng.choice("bybyt"), rng.choice("xbyt")
            kind = rng.randrange(10 if depth < 2 else 8)
            if kind < 3 and to != by:
                lines.append(f"{indent}{to} = self.plus({by}, {to})")
            elif kind == 3:
                lines.append(f"{indent}{to} = self.bump({to})")
            elif kind == 4:
                where = rng.choice(["0", "4", "2", "n"])
                lines.append(f"{indent}s{count} = pl.slice({to}, [4, 8], [{where}, 0])")
                lines.append(f"{indent}s{count} = self.half({'x' if by == to else by}, s{count})")
            elif kind == 5 and to != by:
                lines.append(f"{indent}s{count} = pl.slice({by}, [4, 8], [{rng.choice([0, 4])}, 0])")
                lines.append(f"{indent}{to} = self.from_half(s{count}, {to})")
            elif kind < 8:
                deps = rng.choice(["", ", deps=[tid]", ", deps=[tid]"])
                lines.append(f"{indent}{to}, tid = pl.submit(self.bump, {to}{deps})")
            elif kind == 8:
                loop = rng.choice(["parallel(3)", "range(3)", "range(n)", "parallel(n)", "range(1)"])
                lines.append(f"{indent}for i{count} in pl.{loop}:")
                block(indent + "    ", depth + 1)
            else:
                lines.append(f"{indent}if n > {rng.choice([1, 5])}:")
                block(indent + "    ", depth + 1)
                if rng.random() < 0.5:
                    lines.append(f"{indent}else:")
                    block(indent + "    ", depth + 1)

    for _ in range(3):
        block("", 0)
    return "\n".join(lines)


def order(program: ir.Program) -> list[int]:
    """For each task, in the order of submission, the set of tasks that are done before it starts, as bits."""
    run = Interpreter(program, record=True)
    run.run(run_of(program), [ArrayValue(v) if isinstance(v, np.ndarray) else v for v in args().values()])
    position = {task: i for i, task in enumerate(run.graph.tasks)}
    before: list[int] = []
    for task in run.graph.tasks:
        found = 0
        for producer in task.edges:
            found |= before[position[producer]] | 1 << position[producer]
        before.append(found)
    return before


def ready(body: str, head: str = "@Orchestration") -> ir.Program:
    lines = textwrap.indent(body, "    ")
    program = parse(f"{KERNELS}\n{head}\ndef run({PARAMS}):\n{lines}\n")
    for step in (convert_to_ssa(), normalize_stmt_structure(), flatten_call_expr(), derive_call_directions()):
        program = step(program)
    return program


@pytest.mark.parametrize("seed", range(60))
def test_no_order_is_lost(seed):
    """What the runtime orders by itself is ordered still, with and without scopes; a layer has the meaning of the text."""
    body = generated(random.Random(seed))
    if seed % 3 == 0:
        body = "with pl.scope():\n" + textwrap.indent(body, "    ")
    before = ready(body, OWN_SCOPES if seed % 3 == 0 else "@Orchestration")
    after = derive(before)
    wanted = order(before)
    for program in (after, materialize_runtime_scopes()(after)):
        for i, (had, has) in enumerate(zip(wanted, order(program), strict=True)):
            assert had & ~has == 0, f"task {i} of\n{body}"
    if is_layer(after):
        values = args()
        _run(after, values, "submit", 0)
        run_all_orders(materialize_runtime_scopes()(after), args, {name: values[name] for name in "by"})
