"""What tasks wait for: ids from everywhere, arrays of ids, barriers, derived edges."""

import re

import numpy as np
import pytest
from orchestration_kit import BASE, Suite, edges, final, generate, orchestration, ramp, zeros

from pypto import ir
from pypto.ir.enums import ArgDirection

suite = Suite("dependencies")
XY = "x: f32[8, 8], y: pl.InOut[f32[8, 8]]"
MANUAL = "with pl.scope():\n    with pl.scope(mode=pl.ScopeMode.MANUAL):\n"


def in_manual(signature, body):
    """An orchestration whose statements stand in a MANUAL scope: only explicit edges order the tasks."""
    return orchestration(signature, MANUAL + "\n".join(f"        {line}" for line in body.strip().splitlines()))


fresh = suite.add(
    "fresh",
    in_manual(
        XY,
        """
a, t = pl.submit(self.fix, x, y)
n = None
b, u = pl.submit(self.twice, a, deps=[t, n])
c, v = pl.submit(self.twice, b, deps=[u, t, u])
""",
    ),
)
fresh_lines = [
    "PTO2TaskId params_t1_deps[2];",
    "uint32_t params_t1_deps_count = 0;",
    "params_t1_deps[params_t1_deps_count++] = t;",
    "if (n.is_valid()) params_t1_deps[params_t1_deps_count++] = n;",
    "params_t1.set_dependencies(params_t1_deps, params_t1_deps_count);",
]


def test_fresh_and_invalid_ids():
    lines = fresh.lines
    at = lines.index(fresh_lines[0])
    assert lines[at : at + 5] == fresh_lines
    assert "PTO2TaskId n = PTO2TaskId::invalid();" in lines
    assert "PTO2TaskId params_t2_deps[2];" in lines  # one edge twice is one edge
    x, y = ramp(8, 8), zeros(8, 8)
    result = fresh.run([x, y])
    np.testing.assert_array_equal(y, 4 * x)
    assert edges(result, "explicit") == [(0, 1), (0, 2), (1, 2)]


def test_no_edges_no_block():
    assert not any("params_t0_deps" in line for line in fresh.lines)


carried = suite.add(
    "carried",
    orchestration(
        "x: f32[8, 8], y: pl.InOut[f32[8, 8]], n: idx",
        """
with pl.scope():
    t0 = None
    for i, (prev,) in pl.range(n, init_values=(t0,)):
        with pl.scope():
            a, t = pl.submit(self.twice, y, deps=[prev], attrs={"arg_directions": [pl.adir.no_dep]})
            last = pl.yield_(t)
    b, u = pl.submit(self.fix, x, y, deps=[last], attrs={"arg_directions": [pl.adir.input, pl.adir.no_dep]})
""",
    ),
)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_an_id_that_a_sequential_loop_carries_in_an_auto_scope(n):
    lines = carried.lines
    assert "PTO2TaskId last = t0;" in lines and "last = t;" in lines
    assert "if (last.is_valid()) params_t0_deps[params_t0_deps_count++] = last;" in lines
    assert "if (last.is_valid()) params_t1_deps[params_t1_deps_count++] = last;" in lines
    x, y = ramp(8, 8), ramp(8, 8)
    result = carried.run([x, y], [n])
    np.testing.assert_array_equal(y, ramp(8, 8) * 2**n + x)
    assert edges(result, "explicit") == [(i, i + 1) for i in range(n)]


branch = suite.add(
    "branch",
    in_manual(
        "x: f32[8, 8], y: pl.InOut[f32[8, 8]], n: idx",
        """
a, t0 = pl.submit(self.twice, y)
if n > 0:
    b, t = pl.submit(self.fix, x, y, deps=[t0])
    t1 = pl.yield_(t)
else:
    t1 = pl.yield_(t0)
c, t2 = pl.submit(self.twice, y, deps=[t1])
""",
    ),
)


@pytest.mark.parametrize("n", [0, 1])
def test_an_id_that_comes_out_of_a_branch(n):
    assert "PTO2TaskId t1 = PTO2TaskId::invalid();" in branch.lines
    assert "if (t1.is_valid()) params_t2_deps[params_t2_deps_count++] = t1;" in branch.lines
    x, y = ramp(8, 8), ramp(8, 8)
    result = branch.run([x, y], [n])
    np.testing.assert_array_equal(y, 2 * (2 * ramp(8, 8) + n * x))
    assert edges(result, "explicit") == ([(0, 1), (1, 2)] if n else [(0, 1)])


behind = suite.add(
    "behind",
    orchestration(
        "x: f32[8, 8], y: pl.InOut[f32[8, 8]]",
        """
with pl.scope():
    with pl.scope():
        a, t = pl.submit(self.fix, x, y, attrs={"arg_directions": [pl.adir.input, pl.adir.no_dep]})
        ids = pl.array.create(2, pl.TASK_ID)
        ids1 = pl.array.update_element(ids, 1, t)
    b, u = pl.submit(self.twice, y, deps=[t], attrs={"arg_directions": [pl.adir.no_dep]})
    with pl.scope(mode=pl.ScopeMode.MANUAL):
        c, v = pl.submit(self.twice, y, deps=[ids1, u])
    d, w = pl.submit(self.twice, y, deps=[v], attrs={"arg_directions": [pl.adir.no_dep]})
""",
    ),
)


def test_ids_outlive_the_scopes_that_launch_them():
    lines = behind.lines
    assert "PTO2TaskId t = PTO2TaskId::invalid();" in lines and "t = task_0_outs.task_id();" in lines
    assert "if (t.is_valid()) params_t1_deps[params_t1_deps_count++] = t;" in lines
    x, y = ramp(8, 8), zeros(8, 8)
    result = behind.run([x, y])
    np.testing.assert_array_equal(y, 8 * x)
    assert {(0, 1), (1, 2), (2, 3)} <= set(edges(result, "explicit"))


full = suite.add(
    "full",
    in_manual(
        XY,
        """
ids = pl.array.create(3, pl.TASK_ID)
for i, (b,) in pl.parallel(3, init_values=(ids,)):
    a, t = pl.submit(self.part, x, i, y)
    b1 = pl.array.update_element(b, i, t)
    b2 = pl.yield_(b1)
prev = pl.array.get_element(b2, 0)
c, u = pl.submit(self.twice, y, deps=[b2])
d = pl.array.update_element(b2, 0, u)
e, v = pl.submit(self.twice, y, deps=[prev, d])
""",
    ),
)
partly = suite.add(
    "partly",
    in_manual(
        XY,
        """
ids = pl.array.create(3, pl.TASK_ID)
a, t = pl.submit(self.fix, x, y)
ids1 = pl.array.update_element(ids, 1, t)
c, u = pl.submit(self.twice, y, deps=[ids1])
""",
    ),
)


def test_arrays_of_ids():
    lines = full.lines
    assert "ids[i] = t;" in lines and "PTO2TaskId prev = ids[0];" in lines
    at = lines.index("PTO2TaskId params_t1_deps[3];")
    assert lines[at + 2 : at + 5] == [
        f"if (ids[{k}].is_valid()) params_t1_deps[params_t1_deps_count++] = ids[{k}];" for k in range(3)
    ]
    x, y = ramp(8, 8), zeros(8, 8)
    result = full.run([x, y])
    np.testing.assert_array_equal(y, 4 * np.where(np.arange(8)[:, None] < 3, x + 1, 0))
    # prev is what the slot held when it was read
    assert edges(result, "explicit") == [(0, 3), (0, 4), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]
    x, y = ramp(8, 8), zeros(8, 8)
    assert edges(partly.run([x, y]), "explicit") == [(0, 1)]


wide = suite.add(
    "wide",
    in_manual(
        XY,
        """
ids = pl.array.create(40, pl.TASK_ID)
for i, (b,) in pl.parallel(8, init_values=(ids,)):
    a, t = pl.submit(self.part, x, i, y)
    b1 = pl.array.update_element(b, i * 5, t)
    b2 = pl.yield_(b1)
c, u = pl.submit(self.twice, y, deps=[b2])
""",
    ),
)


def test_wide_arrays_are_looked_through_in_a_loop():
    assert (
        "for (int64_t __dep_i = 0; __dep_i < 40; ++__dep_i) if (ids[__dep_i].is_valid()) "
        "params_t1_deps[params_t1_deps_count++] = ids[__dep_i];" in wide.lines
    )
    x, y = ramp(8, 8), zeros(8, 8)
    assert edges(wide.run([x, y]), "explicit") == [(i, 8) for i in range(8)]
    np.testing.assert_array_equal(y, 2 * (x + 1))


fence = suite.add(
    "fence",
    in_manual(
        XY,
        """
t0 = None
for p, (ph,) in pl.range(3, init_values=(t0,)):
    for j, (it,) in pl.parallel(2, 10, 2, init_values=(ph,)):
        r, t = pl.submit(self.mark, j, y, deps=[it])
        inner = pl.yield_(t)
    outer = pl.yield_(inner)
b, u = pl.submit(self.twice, y, deps=[outer])
""",
    ),
    kernels={"mark": lambda args: args.tensor(0)[args.scalar(1) - 2].__iadd__(1)},
)


def test_a_fence_of_parallel_loops():
    lines = fence.lines
    assert "PTO2TaskId outer[4]; for (int64_t __init_i = 0; __init_i < 4; ++__init_i) outer[__init_i] = t0;" in lines
    assert (
        "PTO2TaskId inner[4]; for (int64_t __init_i = 0; __init_i < 4; ++__init_i) inner[__init_i] = outer[__init_i];"
        in lines
    )
    assert "inner[((j - 2) / 2)] = t;" in lines
    assert "for (int64_t __yield_i = 0; __yield_i < 4; ++__yield_i) outer[__yield_i] = inner[__yield_i];" in lines
    y = zeros(8, 8)
    result = fence.run([ramp(8, 8), y])
    np.testing.assert_array_equal(y, np.tile(2 * np.where(np.arange(8)[:, None] % 2 == 0, 3.0, 0), 8))
    found = edges(result, "explicit")
    want = [(4 * p + a, 4 * (p + 1) + b) for p in range(2) for a in range(4) for b in range(4)]
    assert found == sorted(want + [(8 + a, 12) for a in range(4)])


phases = suite.add(
    "phases",
    in_manual(
        XY,
        """
prev = pl.array.create(2, pl.TASK_ID)
for p, (pv,) in pl.range(3, init_values=(prev,)):
    cur = pl.array.create(2, pl.TASK_ID)
    for j, (c,) in pl.parallel(2, init_values=(cur,)):
        r, t = pl.submit(self.mark, j, y, deps=[pv])
        c1 = pl.array.update_element(c, j, t)
        c2 = pl.yield_(c1)
    pv2 = pl.yield_(c2)
b, u = pl.submit(self.twice, y, deps=[pv2])
""",
    ),
)


def test_an_array_that_carries_the_phase_before():
    lines = phases.lines
    assert "for (int64_t __yield_i = 0; __yield_i < 2; ++__yield_i) prev[__yield_i] = cur[__yield_i];" in lines
    y = zeros(8, 8)
    found = edges(phases.run([ramp(8, 8), y]), "explicit")
    want = [(2 * p + a, 2 * (p + 1) + b) for p in range(2) for a in range(2) for b in range(2)]
    assert found == sorted(want + [(4, 6), (5, 6)])


dummy = suite.add(
    "dummy",
    in_manual(
        XY,
        """
a, t = pl.submit(self.fix, x, y)
bar = pl.system.task_dummy(deps=[t])
none = pl.system.task_dummy(deps=[])
b, u = pl.submit(self.twice, y, deps=[bar, none])
""",
    ),
)


def test_barriers():
    lines = dummy.lines
    at = lines.index("// Phase-fence barrier 0: dependency-only dummy task")
    assert lines[at + 1 : at + 10] == [
        "CoreTaskArgs params_phase_fence_barrier_0;",
        "PTO2TaskId params_phase_fence_barrier_0_deps[1];",
        "uint32_t params_phase_fence_barrier_0_deps_count = 0;",
        "params_phase_fence_barrier_0_deps[params_phase_fence_barrier_0_deps_count++] = t;",
        "params_phase_fence_barrier_0.set_dependencies(params_phase_fence_barrier_0_deps, "
        "params_phase_fence_barrier_0_deps_count);",
        "PTO2TaskId bar = PTO2TaskId::invalid();",
        "if (params_phase_fence_barrier_0_deps_count > 0) {",
        "TaskOutputTensors phase_fence_barrier_0_outs = rt_submit_dummy_task(params_phase_fence_barrier_0);",
        "bar = phase_fence_barrier_0_outs.task_id();",
    ]
    assert "TaskOutputTensors phase_fence_barrier_1_outs = rt_submit_dummy_task(params_phase_fence_barrier_1);" in lines
    assert "PTO2TaskId none = phase_fence_barrier_1_outs.task_id();" in lines
    x, y = ramp(8, 8), zeros(8, 8)
    result = dummy.run([x, y])
    np.testing.assert_array_equal(y, 2 * x)
    assert edges(result, "explicit") == [(0, 1), (1, 3), (2, 3)]


OUTLIVED = """
with pl.scope():
    for i in pl.range(3):
        with pl.scope():
            a, t = pl.submit(self.twice, y)
    b, u = pl.submit(self.twice, y, deps=[t])
"""


def test_an_id_of_a_loop_body_does_not_exist_behind_the_loop():
    with pytest.raises(ValueError, match=r"Task dependency deps=\[t\] cannot be honored") as caught:
        generate(orchestration(XY, OUTLIVED))
    assert "scope that has already closed" in str(caught.value)
    assert caught.value.span.begin_line and "carry the id out" in caught.value.hint
    assert caught.value.code == "PT1101"
    with pytest.raises(ValueError, match="cannot be honored"):
        generate(orchestration(XY, OUTLIVED.replace("for i in pl.range(3)", "if 3 > 2")))


def test_an_id_that_is_stored_must_exist():
    with pytest.raises(ValueError, match="the task id 't' is stored into an array, which cannot be honored"):
        generate(
            orchestration(
                XY,
                """
with pl.scope():
    ids = pl.array.create(2, pl.TASK_ID)
    for i in pl.range(3):
        a, t = pl.submit(self.twice, y)
    ids1 = pl.array.update_element(ids, 0, t)
    b, u = pl.submit(self.twice, y, deps=[ids1])
""",
            )
        )


# --- derived edges ----------------------------------------------------------------------------------------------------


def with_edges(methods, **wanted):
    """A program whose launches wait for other variables: kernel or kernel#n of the consumer -> names of what it waits for.

    All its tensors are taken out of the runtime's own ordering, so that only the edges order the tasks.
    """
    program = final(methods + BASE)
    run = program.get_function("run")
    by_name = {}
    for stmt in _stmts(run.body):
        for var in _defined(stmt):
            by_name[var.name_hint] = var
    by_name.update((p.name_hint, p) for p in run.params)
    seen = {}

    class Change(ir.IRMutator):
        def visit_call(self, op):
            if not isinstance(op.op, ir.GlobalVar):
                return super().visit_call(op)
            return self.launch(op)

        def visit_submit(self, op):
            return self.launch(op)

        def launch(self, op):
            number = seen[op.op.name] = seen.get(op.op.name, -1) + 1
            names = wanted.get(f"{op.op.name}{number}", [])
            directions = [d if d is ArgDirection.Scalar else ArgDirection.NoDep for d in op.arg_directions]
            attrs = {**op.attrs, "arg_directions": directions}
            if names:
                attrs["compiler_manual_dep_edges"] = [by_name[name] for name in names]
            return op.replace(attrs=ir.set_call_attrs(op, attrs).attrs if type(op) is ir.Call else attrs)

    changed = run.replace(body=Change().visit_stmt(run.body))
    return program.with_functions([changed, *(f for f in program.functions.values() if f is not run)])


def _stmts(body):
    from pypto.ir.tree import walk_stmts

    return walk_stmts(body)


def _defined(stmt):
    from pypto.ir.tree import own_definitions

    return own_definitions(stmt)


def add_edges(name, methods, **wanted):
    program = with_edges(methods, **wanted)
    made = suite.add(name, methods)
    made.program, made.function = program, program.get_function("run")
    return made


plain = add_edges(
    "plain",
    orchestration(
        XY,
        """
with pl.scope():
    a = self.fix(x, y)
    b = self.twice(y)
    self.fix(x, b)
    c = self.twice(b)
""",
    ),
    twice0=["a"],
    fix1=["b"],
    twice1=["y", "b"],
)


def test_captured_ids():
    lines = plain.lines
    assert "PTO2TaskId a_tid = task_0_outs.task_id();" in lines
    assert "params_t1_deps[params_t1_deps_count++] = a_tid;" in lines
    x, y = ramp(8, 8), zeros(8, 8)
    result = plain.run([x, y])
    np.testing.assert_array_equal(y, 2 * (2 * x + x))
    assert {(0, 1), (1, 2), (2, 3)} <= set(edges(result, "explicit"))


hoisted = add_edges(
    "hoisted",
    orchestration(
        "x: f32[8, 8], y: pl.InOut[f32[8, 8]], n: idx",
        """
with pl.scope():
    with pl.scope():
        a = self.fix(x, y)
    if n > 0:
        with pl.scope():
            b = self.twice(y)
            c = pl.yield_(b)
    else:
        with pl.scope():
            c = pl.yield_(a)
    d = self.twice(c)
""",
    ),
    twice0=["a"],
    twice1=["c"],
)


@pytest.mark.parametrize("n", [0, 1])
def test_hoisted_ids(n):
    assert "PTO2TaskId a_tid = PTO2TaskId::invalid();" in hoisted.lines
    assert "PTO2TaskId c_tid = PTO2TaskId::invalid();" in hoisted.lines
    x, y = ramp(8, 8), zeros(8, 8)
    result = hoisted.run([x, y], [n])
    np.testing.assert_array_equal(y, (4 if n else 2) * x)
    assert edges(result, "explicit") == ([(0, 1), (1, 2)] if n else [(0, 1)])


fan_in = add_edges(
    "fan_in",
    orchestration(
        XY,
        """
with pl.scope():
    for i, (c,) in pl.parallel(2, 8, 2, init_values=(y,)):
        with pl.scope():
            a = self.mark(i, c)
            for j, (d,) in pl.parallel(2, init_values=(a,)):
                with pl.scope():
                    e = self.mark(i, d)
                    f = pl.yield_(e)
            g = pl.yield_(f)
    z = self.twice(g)
""",
    ),
    twice0=["g"],
    mark1=["a"],
)


def test_a_loop_collects_the_ids_of_its_iterations():
    lines = fan_in.lines
    assert any(re.match(r"PTO2TaskId f_tids\[2\];", line) for line in lines)
    assert any(re.match(r"PTO2TaskId g_tids\[6\];", line) for line in lines)
    assert "params_t2.add_no_dep(ext_y);" in lines  # the tensor part of the carry stays what it was
    y = zeros(8, 8)
    result = fan_in.run([ramp(8, 8), y])
    found = edges(result, "explicit")
    assert [p for p, c in found if c == 9] == [1, 2, 4, 5, 7, 8]
    assert [(p, c) for p, c in found if c != 9] == [(0, 1), (0, 2), (3, 4), (3, 5), (6, 7), (6, 8)]


unknown = add_edges(
    "unknown",
    orchestration(
        "x: f32[8, 8], y: pl.InOut[f32[8, 8]], n: idx",
        """
with pl.scope():
    for i, (c,) in pl.parallel(0, n, 1, init_values=(y,)):
        with pl.scope():
            a = self.mark(i, c)
            g = pl.yield_(a)
    z = self.twice(g)
""",
    ),
    twice0=["g"],
)


@pytest.mark.parametrize("n", [0, 5])
def test_a_loop_of_unknown_length_collects_in_a_vector(n):
    assert "#include <vector>\n" in unknown.code
    assert "// Dynamic compiler-dependency barrier 0: compressed loop fan-in" in unknown.lines
    y = zeros(8, 8)
    result = unknown.run([ramp(8, 8), y], [n])
    want = [(i, n) for i in range(n)] + [(n, n + 1)] if n else []
    assert edges(result, "explicit") == want


compressed = add_edges(
    "compressed",
    orchestration(
        f"{XY}, o: pl.InOut[f32[8, 8]]",
        """
with pl.scope():
    for i, (c,) in pl.parallel(4, init_values=(y,)):
        with pl.scope():
            a = self.mark(i, c)
            g = pl.yield_(a)
    for j in pl.parallel(3):
        with pl.scope():
            b = self.part(g, j, o)
    z = self.twice(g)
""",
    ),
    part0=["g"],
    twice0=["g"],
)


def test_a_loop_of_consumers_waits_for_one_barrier():
    lines = compressed.lines
    at = lines.index("// Compiler-dependency barrier 0: compressed loop fan-in")
    assert at < lines.index("for (int64_t j = 0; j < 3; j += 1) {")
    found = edges(compressed.run([ramp(8, 8), zeros(8, 8), zeros(8, 8)]), "explicit")
    assert found == sorted([(i, 4) for i in range(4)] + [(4, 5 + j) for j in range(3)] + [(i, 8) for i in range(4)])


before = add_edges(
    "before",
    orchestration(
        "x: f32[8, 8], y: pl.InOut[f32[8, 8]], n: idx",
        """
with pl.scope():
    s = self.fix(x, y)
    for i, (c,) in pl.range(n, init_values=(s,)):
        with pl.scope():
            a = self.twice(c)
            g = pl.yield_(a)
""",
    ),
    twice0=["c"],
)


def test_an_edge_to_the_iteration_before():
    assert "PTO2TaskId c_tid = s_tid;" in before.lines and "c_tid = a_tid;" in before.lines
    x, y = ramp(8, 8), zeros(8, 8)
    result = before.run([x, y], [4])
    np.testing.assert_array_equal(y, 16 * x)
    assert edges(result, "explicit") == [(0, 1), (1, 2), (2, 3), (3, 4)]
