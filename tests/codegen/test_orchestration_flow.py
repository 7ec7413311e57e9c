"""Scopes, loops with their carries, branches, as C++ that is compiled and run."""

import numpy as np
import pytest
from orchestration_kit import Suite, edges, generate, orchestration, ramp, zeros

from pypto import ir
from pypto.diag.errors import InternalError

suite = Suite("flow")

XY = "x: f32[8, 8], y: pl.InOut[f32[8, 8]]"

trivial = suite.add(
    "trivial",
    orchestration(
        XY,
        """
with pl.scope():
    for i, (c__iter_v1,) in pl.range(4, init_values=(y,)):
        with pl.scope():
            c__ssa_v2 = self.part(x, i, c__iter_v1)
            c__rv_v3 = pl.yield_(c__ssa_v2)
    z = self.fix(x, c__rv_v3)
""",
    ),
)


def test_a_trivial_carry_prints_nothing():
    assert "ChipTensor" not in "".join(trivial.lines[2:])[len("// External tensors") :].replace(
        "const ChipTensor& ext_", ""
    )
    assert "params_t0.add_inout(ext_y);" in trivial.lines
    assert "params_t1.add_inout(ext_y);" in trivial.lines
    x, y = ramp(8, 8), zeros(8, 8)
    result = trivial.run([x, y])
    np.testing.assert_array_equal(y, x + np.where(np.arange(8)[:, None] < 4, x + 1, 0))
    assert result.counters.tasks == 5


rebind = suite.add(
    "rebind",
    orchestration(
        "x: f32[8, 8], y: pl.InOut[f32[8, 8]], n: idx",
        """
with pl.scope():
    for i, (cur__iter_v1,) in pl.range(n, init_values=(x,)):
        nxt = pl.create_tensor([8, 8], dtype=pl.FP32)
        nxt2 = self.plus(cur__iter_v1, nxt)
        cur__rv_v2 = pl.yield_(nxt2)
    z = self.fix(cur__rv_v2, y)
""",
    ),
)


@pytest.mark.parametrize("n", [0, 1, 6])
def test_a_rebinding_carry_is_a_variable(n):
    assert "ChipTensor cur__rv_v2 = ext_x;" in rebind.lines
    assert "params_t0.add_input(cur__rv_v2);" in rebind.lines
    assert "cur__rv_v2 = nxt;" in rebind.lines
    assert "params_t1.add_input(cur__rv_v2);" in rebind.lines
    x, y = ramp(8, 8), ramp(8, 8)
    rebind.run([x, y], [n])
    np.testing.assert_array_equal(y, ramp(8, 8) + x + n)


nested = suite.add(
    "nested",
    orchestration(
        XY,
        """
with pl.scope():
    for i, (a,) in pl.range(3, init_values=(x,)):
        for j, (b,) in pl.range(2, init_values=(a,)):
            t = pl.create_tensor([8, 8], dtype=pl.FP32)
            t2 = self.plus(b, t)
            b2 = pl.yield_(t2)
        a2 = pl.yield_(b2)
    z = self.fix(a2, y)
""",
    ),
)


def test_nested_rebinding_carries():
    x, y = ramp(8, 8), zeros(8, 8)
    nested.run([x, y])
    np.testing.assert_array_equal(y, x + 6)


swap = suite.add(
    "swap",
    orchestration(
        "x: f32[8, 8], y: f32[8, 8], o: pl.InOut[f32[8, 8]], n: idx",
        """
with pl.scope():
    for i, (p, q, k) in pl.range(n, init_values=(x, y, 0)):
        p2, q2, k2 = pl.yield_(q, p, k + 1)
    r = self.part(p2, k2, o)
""",
    ),
)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_yields_assign_at_once(n):
    x, y, o = ramp(8, 8), -ramp(8, 8), zeros(8, 8)
    swap.run([x, y, o], [n])
    want = zeros(8, 8)
    want[n] = (y if n % 2 else x)[n] + 1
    np.testing.assert_array_equal(o, want)
    assert "ChipTensor __yield_tmp_0 = p2;" in swap.lines
    assert "int64_t k2 = 0;" in swap.lines


fibonacci = suite.add(
    "fibonacci",
    orchestration(
        "o: pl.InOut[f32[8, 8]], n: idx",
        """
with pl.scope():
    for i, (a, b) in pl.range(n, init_values=(0, 1)):
        a2, b2 = pl.yield_(b, a + b)
    m = self.mark(a2, o)
""",
    ),
)


@pytest.mark.parametrize(("n", "want"), [(0, 0), (1, 1), (4, 3), (5, 5)])
def test_yields_of_expressions_over_other_carries(n, want):
    o = zeros(8, 8)
    fibonacci.run([o], [n])
    assert np.nonzero(o[:, 0])[0].tolist() == [want]


HEADERS = [("up", "pl.range(1, 8, 3)", [1, 4, 7]), ("down", "pl.range(6, 0, -2)", [6, 4, 2])]
stepped = {
    name: suite.add(
        f"stepped_{name}",
        orchestration(
            "o: pl.InOut[f32[8, 8]]",
            f"""
with pl.scope():
    for i in {loop}:
        with pl.scope():
            m = self.mark(i, o)
""",
        ),
    )
    for name, loop, _ in HEADERS
}
dynamic = suite.add(
    "dynamic",
    orchestration(
        "o: pl.InOut[f32[8, 8]], a: idx, b: idx, s: idx",
        """
with pl.scope():
    for i in pl.range(a, b, s):
        with pl.scope():
            m = self.mark(i, o)
""",
    ),
)


def test_loop_headers():
    assert "for (int64_t i = 1; i < 8; i += 3) {" in stepped["up"].lines
    assert "for (int64_t i = 6; i > 0; i += -2) {" in stepped["down"].lines
    assert "for (int64_t i = a; (((s) > 0 && i < b) || ((s) < 0 && i > b)); i += s) {" in dynamic.lines
    for name, _, want in HEADERS:
        o = zeros(8, 8)
        stepped[name].run([o])
        assert np.nonzero(o[:, 0])[0].tolist() == sorted(want)


@pytest.mark.parametrize(("a", "b", "s"), [(0, 8, 3), (7, 0, -3), (3, 3, 1), (5, 1, 2), (0, 8, 0)])
def test_a_loop_with_bounds_of_run_time(a, b, s):
    o = zeros(8, 8)
    dynamic.run([o], [a, b, s])
    assert np.nonzero(o[:, 0])[0].tolist() == sorted(range(a, b, s) if s else [])


counted = suite.add(
    "counted",
    orchestration(
        "n: idx, x: f32[8, 8], y: pl.InOut[f32[8, 8]]",
        """
with pl.scope():
    for (i, c) in pl.while_(init_values=(0, y)):
        pl.cond(i < n)
        c1 = self.part(x, i, c)
        i1, c2 = pl.yield_(i + 1, c1)
    z = self.fix(x, c2)
""",
    ),
)
rebound = suite.add(
    "rebound",
    orchestration(
        "n: idx, x: f32[8, 8], y: pl.InOut[f32[8, 8]]",
        """
with pl.scope():
    for (i, c) in pl.while_(init_values=(0, x)):
        pl.cond(i < n)
        t = pl.create_tensor([8, 8], dtype=pl.FP32)
        c1 = self.plus(c, t)
        i1, c2 = pl.yield_(i + 1, c1)
    z = self.fix(c2, y)
""",
    ),
)


@pytest.mark.parametrize("n", [0, 3])
def test_while_loops(n):
    x, y = ramp(8, 8), zeros(8, 8)
    counted.run([x, y], [n])
    np.testing.assert_array_equal(y, x + np.where(np.arange(8)[:, None] < n, x + 1, 0))
    assert "while ((i1 < n)) {" in counted.lines
    assert not any("c2" in line for line in counted.lines)  # the carry is the parameter all the time
    y = zeros(8, 8)
    rebound.run([x, y], [n])
    np.testing.assert_array_equal(y, x + n)


left = suite.add(
    "left",
    orchestration(
        "n: idx, m: idx, x: f32[8, 8], y: pl.InOut[f32[8, 8]]",
        """
with pl.scope():
    for i, (c, d) in pl.range(8, init_values=(x, 0)):
        with pl.scope():
            if i == m:
                continue
            t = pl.slice(x, [8, 8], [0, 0])
            if i >= n:
                break
            c2, d2 = pl.yield_(t, d + 1)
    z = self.part(c2, d2, y)
""",
    ),
)


@pytest.mark.parametrize(("n", "m"), [(0, 7), (3, 1), (7, 3), (5, 0)])
def test_break_and_continue_hand_on_what_is_known(n, m):
    x, y = ramp(8, 8), zeros(8, 8)
    left.run([x, y], [n, m])
    want = zeros(8, 8)
    want[n] = x[n] + 1  # a continue goes on with d + 1, a break with d
    np.testing.assert_array_equal(y, want)
    assert "break;" in left.lines and "continue;" in left.lines


phi = suite.add(
    "phi",
    orchestration(
        "n: idx, x: f32[8, 8], y: f32[8, 8], o: pl.InOut[f32[8, 8]]",
        """
with pl.scope():
    tmp = pl.create_tensor([8, 8], dtype=pl.FP32)
    k: idx = 3
    if n > 3:
        with pl.scope():
            y__phi_v3, k__phi_v4 = pl.yield_(y, 1)
    else:
        with pl.scope():
            tmp1 = self.plus(y, tmp)
            y__phi_v3, k__phi_v4 = pl.yield_(tmp1, k + 1)
    o1 = self.part(y__phi_v3, k__phi_v4, o)
""",
    ),
)


@pytest.mark.parametrize("n", [2, 5])
def test_results_of_branches(n):
    lines = phi.lines
    at = lines.index("if ((n > 3)) {")
    assert lines[at - 2 : at] == ["ChipTensor y__phi_v3 = ext_x;", "int64_t k__phi_v4;"]
    for line in ("y__phi_v3 = ext_y;", "k__phi_v4 = 1;", "y__phi_v3 = tmp;", "k__phi_v4 = (k + 1);", "} else {"):
        assert line in lines
    x, y, o = ramp(8, 8), ramp(8, 8) * 2, zeros(8, 8)
    phi.run([x, y, o], [n])
    want, row = zeros(8, 8), 1 if n > 3 else 4
    want[row] = (y if n > 3 else y + 1)[row] + 1
    np.testing.assert_array_equal(o, want)


same = suite.add(
    "same",
    orchestration(
        "n: idx, x: f32[8, 8], y: pl.InOut[f32[8, 8]]",
        """
with pl.scope():
    if n > 0:
        with pl.scope():
            a = self.fix(x, y)
            y1 = pl.yield_(a)
    else:
        with pl.scope():
            y1 = pl.yield_(y)
    y2 = self.twice(y1)
""",
    ),
)


def test_both_branches_give_the_same_buffer():
    assert not any("y1" in line or "phi" in line for line in same.lines)
    for n in (0, 1):
        x, y = ramp(8, 8), ramp(8, 8)
        same.run([x, y], [n])
        np.testing.assert_array_equal(y, 2 * (ramp(8, 8) + n * x))


fresh = suite.add(
    "fresh",
    orchestration(
        "n: idx",
        """
with pl.scope():
    if n > 0:
        a = pl.create_tensor([8, 8], dtype=pl.FP32, init_value=1.0)
        t = pl.yield_(a)
    else:
        b = pl.create_tensor([8, 8], dtype=pl.FP32, init_value=2.0)
        t = pl.yield_(b)
    y2 = self.twice(t)
""",
    ),
)


def test_a_branch_result_in_a_function_without_tensors():
    assert "ChipTensor t;" in fresh.lines
    assert fresh.run([], [1]).counters.tasks >= 1


carried_phi = suite.add(
    "carried_phi",
    orchestration(
        "n: idx, x: f32[8, 8], y: pl.InOut[f32[8, 8]]",
        """
with pl.scope():
    a = pl.create_tensor([8, 8], dtype=pl.FP32)
    b = pl.create_tensor([8, 8], dtype=pl.FP32)
    a1 = self.plus(x, a)
    b1 = self.plus(a1, b)
    for i, (c,) in pl.range(4, init_values=(a1,)):
        if i == n:
            d = pl.yield_(b1)
        else:
            d = pl.yield_(c)
        e = pl.yield_(d)
    z = self.fix(e, y)
""",
    ),
)


@pytest.mark.parametrize("n", [1, 9])
def test_a_loop_that_carries_a_branch_result(n):
    x, y = ramp(8, 8), zeros(8, 8)
    carried_phi.run([x, y], [n])
    np.testing.assert_array_equal(y, x + (2 if n < 4 else 1))


manual = suite.add(
    "manual",
    orchestration(
        "n: idx, x: f32[8, 8], y: pl.InOut[f32[8, 8]]",
        """
with pl.scope():
    with pl.scope(mode=pl.ScopeMode.MANUAL):
        tmp = pl.create_tensor([8, 8], dtype=pl.FP32)
        r, t = pl.submit(self.plus, x, tmp)
        for i, (c,) in pl.range(n, init_values=(tmp,)):
            c2 = pl.yield_(x)
        if n > 0:
            f = pl.yield_(tmp)
        else:
            f = pl.yield_(x)
        view = pl.slice(tmp, [8, 8], [0, 0])
        u = pl.create_tensor([8, 8], dtype=pl.FP32)
        u1, t1 = pl.submit(self.plus, view, u, deps=[t])
        v1, t2 = pl.submit(self.fix, u1, view, deps=[t1])
        w1, t3 = pl.submit(self.twice, v1, deps=[t2])
    z, t4 = pl.submit(self.fix, f, y, deps=[t3])
""",
    ),
)


@pytest.mark.parametrize("n", [0, 1])
def test_what_a_manual_scope_makes_outlives_it(n):
    lines = manual.lines
    header = lines.index("PTO2_SCOPE(PTO2ScopeMode::MANUAL) {")
    for line in ("const ChipTensor& tmp = alloc_0.get_ref(0);", "ChipTensor c2 = tmp;", "ChipTensor f = ext_x;"):
        assert lines.index(line) < header, line
    assert lines.index("const ChipTensor& v1 = view;") > header
    assert "PTO2TaskId t3 = PTO2TaskId::invalid();" in lines[:header]
    assert "t3 = task_3_outs.task_id();" in lines[header:]
    x, y = ramp(8, 8), zeros(8, 8)
    manual.run([x, y], [n])
    np.testing.assert_array_equal(y, 2 * (2 * x + 3) if n else x)


bare = suite.add("bare", orchestration(XY, "a = self.fix(x, y)\nb = self.twice(a)"))
auto_in_auto = suite.add(
    "auto_in_auto",
    orchestration(
        XY,
        """
with pl.scope():
    a = self.fix(x, y)
    with pl.scope():
        b = self.twice(a)
    with pl.scope():
        c = self.twice(b)
""",
    ),
)


def test_scopes_stand_where_the_program_has_them():
    assert not any("PTO2_SCOPE" in line for line in bare.lines)
    assert [line for line in auto_in_auto.lines if line[0] in "P}"][:6] == ["PTO2_SCOPE() {", "PTO2_SCOPE() {", "}"] + [
        "PTO2_SCOPE() {",
        "}",
        "}",
    ]
    for case, times in ((bare, 2), (auto_in_auto, 4)):
        x, y = ramp(8, 8), ramp(8, 8)
        assert edges(case.run([x, y]))
        np.testing.assert_array_equal(y, times * 2 * x)


scalars_behind = suite.add(
    "scalars_behind",
    orchestration(
        "x: f32[8, 8], y: pl.InOut[f32[8, 8]], c: i32[4]",
        """
with pl.scope():
    k = pl.read(c, [1])
    n: idx = pl.cast(k, pl.INDEX)
with pl.scope():
    a = self.part(x, n, y)
""",
    ),
)


def test_a_scalar_is_known_behind_its_scope():
    assert "int64_t n{};" in scalars_behind.lines and "n = static_cast<int64_t>(k);" in scalars_behind.lines
    x, y = ramp(8, 8), zeros(8, 8)
    scalars_behind.run([x, y, np.array([0, 5, 0, 0], np.int32)])
    assert np.nonzero(y[:, 0])[0].tolist() == [5]


def test_a_tensor_ends_with_the_scope_that_allocated_it():
    with pytest.raises(ValueError, match="behind the scope that allocates it"):
        generate(
            orchestration(
                XY,
                """
with pl.scope():
    tmp = pl.create_tensor([8, 8], dtype=pl.FP32)
    a = self.plus(x, tmp)
with pl.scope():
    b = self.fix(a, y)
""",
            )
        )


def test_statements_that_orchestration_does_not_know():
    program = bare.program
    run = bare.function
    odd = run.replace(body=ir.SeqStmts([ir.InlineStmt("pass", ir.InlineLanguage.Python, ir.Span.unknown()), run.body]))
    program = program.with_functions([odd, *(f for f in program.functions.values() if f is not run)])
    from pypto import codegen

    with pytest.raises(InternalError, match="InlineStmt"):
        codegen.generate_orchestration(program, odd)
