"""Simplify: what it rewrites, folds and removes, and what it must leave alone."""

import numpy as np
import pytest
from simplify_kit import body, run, same_form, same_meaning, simplified, source, unchanged
from spec_kit import check_round_trips, parse

from pypto import ir
from pypto.ir.traversal import walk
from pypto.passes.convert_to_ssa import convert_to_ssa
from pypto.passes.simplify import simplify
from pypto.verify.properties import IRProperty, property_set
from pypto.verify.registry import PropertyVerifierRegistry

F32 = np.float32
XY = "x: f32[8, 8], y: f32[8, 8], n: idx, m: idx"
OUT = "f32[8, 8]"


def of_kind(program, *classes):
    return [node for node in walk(program) if isinstance(node, classes)]


# --- the pass -----------------------------------------------------------------------------------------------------------


def test_name_and_properties():
    step = simplify()
    assert step.get_name() == "Simplify"
    assert step.get_required_properties().empty()
    assert step.get_produced_properties().empty() and step.get_invalidated_properties().empty()


def test_a_program_without_anything_to_do_is_returned_itself():
    unchanged(
        """
        @InCore
        def run(self, x: f32[64, 64], n: idx, y: pl.Out[f32[64, 64]]) -> f32[64, 64]:
            for i in pl.range(n):
                t = pl.load(x, [i * 16, n + i], [16, 64], valid_shape=[n, 64])
                if i < n - 4:
                    y = pl.store(pl.add(t, 1.0), [i * 16, 0], y)
            return y
        """
    )


def test_an_untouched_function_of_a_changed_program_is_the_same_object():
    program = source(body("k = 4\nreturn n + k", "idx") + body("return n", "idx").replace("run", "other"))
    result = simplified(program)
    assert result is not program and result["other"] is program["other"]


# --- constants ----------------------------------------------------------------------------------------------------------


def test_the_example_of_the_specification():
    result = same_form(
        """
        @Opaque
        def run(self, x: f32[8, 8], n: idx) -> f32[8, 8]:
            k = 4
            half = n // 2
            for i, (y,) in pl.range(k, init_values=(x,)):
                if i < 4:
                    y1 = pl.add(y, 1.0)
                    p = pl.yield_(y1)
                else:
                    p = pl.yield_(y)
                r = pl.yield_(p)
            u = pl.mul(x, 9.0)
            return r
        """,
        """
        @Opaque
        def run(self, x: f32[8, 8], n: idx) -> f32[8, 8]:
            for i, (y,) in pl.range(4, init_values=(x,)):
                y1 = pl.add(y, 1.0)
                r = pl.yield_(y1)
            u = pl.mul(x, 9.0)
            return r
        """,
    )
    np.testing.assert_array_equal(run(result, np.ones((8, 8), F32), 7)[0], np.full((8, 8), 5, F32))


def test_constants_reach_operands_bounds_types_and_core_num():
    same_form(
        """
        @InCore
        def k(self, x: f32[64, 64], i: idx, y: pl.Out[f32[64, 64]]) -> f32[64, 64]:
            rows = 8
            t = pl.load(x, [i, 0], [16, 64], valid_shape=[rows, 64])
            t2 = pl.add(t, t)
            y1 = pl.store(t2, [i, 0], y)
            return y1
        @Orchestration
        def run(self, x: f32[64, 64], y: pl.Out[f32[64, 64]]):
            wide = 3
            for i in pl.range(wide * 2):
                r, t = pl.spmd_submit(self.k, x, i * wide, y, core_num=wide + 1)
            with pl.spmd(wide):
                y = self.k(x, 0, y)
        """,
        """
        @InCore
        def k(self, x: f32[64, 64], i: idx, y: pl.Out[f32[64, 64]]) -> f32[64, 64]:
            t = pl.load(x, [i, 0], [16, 64], valid_shape=[8, 64])
            t2 = pl.add(t, t)
            y1 = pl.store(t2, [i, 0], y)
            return y1
        @Orchestration
        def run(self, x: f32[64, 64], y: pl.Out[f32[64, 64]]):
            for i in pl.range(6):
                r, t = pl.spmd_submit(self.k, x, i * 3, y, core_num=4)
            with pl.spmd(3):
                y = self.k(x, 0, y)
        """,
    )


def test_a_constant_counts_in_its_region_only():
    program = simplified(
        body(
            """
            if n > 3:
                c = 12
                a = pl.add(x, y)
                r = pl.yield_(pl.slice(a, [8, 8], [c - 12, 0]))
            else:
                r = pl.yield_(x)
            return r
            """,
            OUT,
            XY,
        )
    )
    offsets = [call.args[2] for call in of_kind(program, ir.Call) if call.op.name == "tensor.slice"]
    assert [e.value for e in offsets[0].elements] == [0, 0] and len(of_kind(program, ir.AssignStmt)) == 1
    # Before SSA form a name leaks out of its branch: there it is not known.
    leaking = body("if n > 3:\n    c = 12\n    use = c + n\n    m = use\nreturn c + m", "idx")
    result = simplified(source(leaking))
    returned = of_kind(result, ir.ReturnStmt)[0]
    assert any(isinstance(node, ir.Var) and node.name_hint == "c" for node in walk(returned))
    assert run(result, 4, 0) == [12 + 16]


def test_scalars_that_are_assigned_more_than_once_are_not_bound():
    program = same_meaning(
        body("c = 5\nif n > 2:\n    c = 7\nfor i in pl.range(3):\n    c = c + i\nreturn c * m", "idx"),
        lambda n, m: ((7 if n > 2 else 5) + 3) * m,
        (0, 2),
        (3, 2),
    )
    assert len(of_kind(program, ir.AssignStmt)) == 3


def test_parameters_that_are_assigned_again_are_not_bound():
    same_meaning(body("a = n\nn = 4\nif n > 3:\n    m = m + a\nreturn m + n", "idx"), lambda n, m: m + n + 4, (1, 2))


def test_floats_and_booleans_are_constants_too():
    same_form(
        body("s = 0.5\nf = True\nr = pl.mul(x, s)\nif f:\n    r2 = pl.add(r, s)\nreturn r", OUT, XY),
        body("r = pl.mul(x, 0.5)\nr2 = pl.add(r, 0.5)\nreturn r", OUT, XY),
    )


def test_float_arithmetic_is_left_alone():
    unchanged(body("b = g * 1.0 + 0.0\nreturn b - b", "pl.Scalar[pl.FP32]", "g: pl.Scalar[pl.FP32]"))


def test_constants_keep_the_dtype_of_their_variable():
    result = simplified(body("k: pl.Scalar[pl.INT32] = 5\nreturn k", "pl.Scalar[pl.INT32]"))
    (returned,) = of_kind(result, ir.ReturnStmt)[0].value
    assert isinstance(returned, ir.ConstInt) and returned.dtype == ir.DataType.INT32


# --- arithmetic ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(n * 10) // 5", "n * 2"),
        ("n + 3 + 4", "n + 7"),
        ("(n + m) - m", "n"),
        ("pl.min(n + 2, n + 9)", "n + 2"),
        ("0 + n * 1", "n"),
        ("8 * n", "n * 8"),
    ],
)
def test_expressions_are_simplified(before, after):
    same_form(body(f"return {before}", "idx"), body(f"return {after}", "idx"))


def test_loop_ranges_count_in_the_body():
    same_form(
        body("for i in pl.range(8):\n    a = pl.slice(x, [1, 8], [i % 8, i // 8])\nreturn x", OUT, XY),
        body("for i in pl.range(8):\n    a = pl.slice(x, [1, 8], [i, 0])\nreturn x", OUT, XY),
    )


def test_steps_count_for_remainders():
    same_form(
        body("for i in pl.range(0, n, 4):\n    a = pl.slice(x, [1, 8], [i % 4, 0])\nreturn x", OUT, XY),
        body("for i in pl.range(0, n, 4):\n    a = pl.slice(x, [1, 8], [0, 0])\nreturn x", OUT, XY),
    )


def test_descending_loops_have_their_range():
    same_meaning(
        body(
            "s = 0\nfor i in pl.range(7, -1, -1):\n    if i < 8:\n        s = s + i\n    if i < 0:\n        s = s + 100\nreturn s",
            "idx",
        ),
        lambda n, m: 28,
        (0, 0),
    )


def test_bounds_and_equality_of_an_assigned_scalar_are_known():
    program = simplified(
        body(
            """
            b = pl.tile.get_block_idx() * 2
            k = b + 1
            if k >= 1:
                x = pl.add(x, 1.0)
            if b == k - 1:
                x = pl.add(x, 2.0)
            if k % 2 == 0:
                x = pl.add(x, 4.0)
            return x
            """,
            OUT,
            XY,
        ).replace("@Opaque", "@InCore")
    )
    assert not of_kind(program, ir.IfStmt)
    assert sorted(call.args[1].value for call in of_kind(program, ir.Call) if call.op.name == "tensor.adds") == [
        1.0,
        2.0,
    ]


def test_differences_of_indices_may_be_negative():
    """Wrong in PyPTO: an INDEX scalar was taken to be >= 0 also when it is a difference."""
    text = body("d = n - m\nr = n\nif d >= 0:\n    r = r + 100\nreturn r", "idx")
    program = same_meaning(text, lambda n, m: n + 100 if n >= m else n, (2, 5), (5, 2))
    assert of_kind(program, ir.IfStmt)
    same_meaning(body("return pl.max(n - m, 0)", "idx"), lambda n, m: max(n - m, 0), (2, 5), (5, 2))


def test_parameters_carries_and_results_may_be_negative():
    text = body(
        """
        c = n
        for i in pl.range(3):
            c = c - 2
            if c >= 0:
                m = m + 1
        if c >= 0:
            m = m + 10
        return m
        """,
        "idx",
    )
    same_meaning(text, lambda n, m: m + sum(n - 2 * k >= 0 for k in (1, 2, 3)) + 10 * (n >= 6), (-1, 0), (3, 0), (9, 0))


def test_extents_and_positions_are_not_negative():
    program = simplified(
        """
        @Opaque
        def run(self, x: f32[M, 8], n: idx) -> idx:
            r = n
            if M >= 0:
                r = r + 1
            d = pl.tensor.dim(x, 0)
            if d < 0:
                r = r + 10
            for i in pl.range(M):
                if i >= 0:
                    r = r + i
            return r
        """
    )
    assert not of_kind(program, ir.IfStmt)


@pytest.mark.parametrize("dtype", ["INT8", "INT32", "UINT8", "UINT32"])
def test_arithmetic_that_may_wrap_is_not_rearranged(dtype):
    params = f"a: pl.Scalar[pl.{dtype}], b: pl.Scalar[pl.{dtype}]"
    text = body(
        f"""
        r = 0
        if a + b < a:
            r = r + 1
        if a - b < a:
            r = r + 10
        if a + b - b == a:
            r = r + 100
        c = (a + pl.const(100, pl.{dtype})) + pl.const(100, pl.{dtype})
        if c > a:
            r = r + 1000
        return r
        """,
        "idx",
        params,
    )

    def want(a, b):
        kind = np.dtype(dtype.lower()).type
        with np.errstate(over="ignore"):
            a, b = kind(a), kind(b)
            c = kind(kind(a + kind(100)) + kind(100))
            return int(a + b < a) + 10 * int(a - b < a) + 100 * int(a + b - b == a) + 1000 * int(c > a)

    info = np.iinfo(dtype.lower())
    same_meaning(text, want, (0, 0), (1, 2), (info.max, 1), (info.max, info.max), (info.min, 1), (20, 50))


def test_constants_of_narrow_types_fold_where_they_fit():
    small = "pl.Scalar[pl.INT8]"
    same_form(
        body("return pl.const(100, pl.INT8) + pl.const(27, pl.INT8)", small),
        body("return pl.const(127, pl.INT8)", small),
    )
    same_meaning(body("return pl.const(100, pl.INT8) + pl.const(100, pl.INT8)", small), lambda n, m: -56, (0, 0))


def test_a_division_by_zero_stays_where_it_is():
    """Only a run that comes to it may fail."""
    text = body("z = 0\nr = n\nif n > 3:\n    r = m // z\nreturn r", "idx")
    program = simplified(source(text))
    assert run(program, 2, 1) == [2]
    with pytest.raises(Exception, match="division"):
        run(program, 4, 1)


def test_a_condition_that_divides_by_zero_is_no_help():
    text = body("z = 0\nr = n\nif n > 3:\n    if m // z > n:\n        r = pl.min(m, n)\nreturn r", "idx")
    assert run(simplified(source(text)), 2, 1) == [2]


# --- branches -----------------------------------------------------------------------------------------------------------


def test_provable_branches_are_replaced_by_their_branch():
    same_form(
        body(
            """
            k = 3
            if k > 2:
                a = pl.add(x, y)
                r = pl.yield_(a)
            else:
                b = pl.mul(x, y)
                r = pl.yield_(b)
            if k > 5:
                s = pl.add(r, 1.0)
            if k > 5:
                u = pl.sub(r, 1.0)
            else:
                u = pl.sub(r, 2.0)
            return r
            """,
            OUT,
            XY,
        ),
        body("a = pl.add(x, y)\nu = pl.sub(a, 2.0)\nreturn a", OUT, XY),
    )


def test_conditions_hold_in_their_branches():
    same_form(
        body(
            """
            if n < 4:
                if n < 8:
                    a = pl.add(x, y)
                if n >= 4:
                    b = pl.mul(x, y)
                c = pl.slice(x, [1, 8], [pl.min(n, 4), 0])
            else:
                if n > 3:
                    a2 = pl.sub(x, y)
                c2 = pl.slice(x, [1, 8], [pl.max(n, 4), 0])
            if n < 8:
                d = pl.slice(x, [1, 8], [pl.min(n, 4), 0])
            return x
            """,
            OUT,
            XY,
        ),
        body(
            """
            if n < 4:
                a = pl.add(x, y)
                c = pl.slice(x, [1, 8], [n, 0])
            else:
                a2 = pl.sub(x, y)
                c2 = pl.slice(x, [1, 8], [n, 0])
            if n < 8:
                d = pl.slice(x, [1, 8], [pl.min(n, 4), 0])
            return x
            """,
            OUT,
            XY,
        ),
    )


def test_conditions_connect_several_variables():
    program = simplified(
        body(
            """
            if n < m:
                for i in pl.range(n):
                    if i < m:
                        a = pl.add(x, y)
                    if i + 1 <= m:
                        b = pl.add(x, y)
                    if i > m:
                        c = pl.mul(x, y)
            return x
            """,
            OUT,
            XY,
        )
    )
    assert len(of_kind(program, ir.IfStmt)) == 1
    assert [call.op.name for call in of_kind(program, ir.Call)] == ["tensor.add", "tensor.add"]


def test_conditions_about_assigned_scalars():
    program = simplified(body("d = n - m\nif n >= m:\n    if d >= 0:\n        a = pl.add(x, y)\nreturn x", OUT, XY))
    assert len(of_kind(program, ir.IfStmt)) == 1


def test_conditions_about_names_that_are_assigned_again_do_not_hold():
    same_meaning(
        body(
            "r = 0\nif n < 4:\n    n = n + 10\n    if n < 4:\n        r = 1\n    m = pl.min(n, 4)\nreturn r + m", "idx"
        ),
        lambda n, m: 4 if n < 4 else m,
        (1, 9),
        (5, 9),
    )


def test_the_condition_of_a_while_holds_in_its_body():
    program = same_meaning(
        body("i = n\ns = 0\nwhile i < 8:\n    if i < 9:\n        s = s + 1\n    i = i + m\nreturn s", "idx"),
        lambda n, m: len(range(n, 8, m)),
        (0, 3),
        (9, 1),
    )
    assert len(of_kind(program, ir.IfStmt)) == 1  # i is assigned twice here; in SSA form the branch goes
    in_ssa = simplified(
        convert_to_ssa()(
            source(body("i = n\ns = 0\nwhile i < 8:\n    if i < 9:\n        s = s + 1\n    i = i + m\nreturn s", "idx"))
        )
    )
    assert not of_kind(in_ssa, ir.IfStmt) and len(of_kind(in_ssa, ir.WhileStmt)) == 1


def test_a_while_loop_is_not_taken_for_its_first_iteration():
    same_meaning(body("i = 0\nwhile i < 3:\n    i = i + 1\nreturn i + n", "idx"), lambda n, m: 3 + n, (0, 0))


def test_a_yield_for_the_enclosing_loop_stays_in_the_branch():
    same_form(
        body(
            """
            for i, (c,) in pl.range(n, init_values=(x,)):
                d = pl.add(c, 1.0)
                k = 2
                if k > 1:
                    e = pl.add(d, 2.0)
                r = pl.yield_(d)
            return r
            """,
            OUT,
            XY,
        ),
        body(
            """
            for i, (c,) in pl.range(n, init_values=(x,)):
                d = pl.add(c, 1.0)
                e = pl.add(d, 2.0)
                r = pl.yield_(d)
            return r
            """,
            OUT,
            XY,
        ),
    )


def test_a_call_that_is_yielded_is_made_once():
    same_form(
        body(
            "k = 1\nif k == 1:\n    r = pl.yield_(pl.add(x, y))\nelse:\n    r = pl.yield_(x)\nreturn pl.add(r, r)",
            OUT,
            XY,
        ),
        body("r = pl.add(x, y)\nreturn pl.add(r, r)", OUT, XY),
    )


# --- loops --------------------------------------------------------------------------------------------------------------


def test_loops_without_iterations_go():
    program = same_form(
        body(
            """
            for i, (c,) in pl.range(3, 3, init_values=(x,)):
                d = pl.add(c, 1.0)
                r = pl.yield_(d)
            for j in pl.range(m, m - 2):
                e = pl.add(r, 1.0)
            if n <= 0:
                for k in pl.range(n):
                    f = pl.add(r, 1.0)
                g = pl.mul(r, 2.0)
            return r
            """,
            OUT,
            XY,
        ),
        body("if n <= 0:\n    g = pl.mul(x, 2.0)\nreturn x", OUT, XY),
    )
    x = np.arange(64, dtype=F32).reshape(8, 8)
    np.testing.assert_array_equal(run(program, x, x, 1, 1)[0], x)


def test_loops_of_one_iteration_are_replaced_by_their_body():
    same_form(
        body(
            """
            for i, (c,) in pl.range(2, 3, init_values=(x,)):
                d = pl.add(c, pl.slice(y, [8, 8], [i - 2, 0]))
                r = pl.yield_(d)
            for j in pl.range(n, n + 1):
                e = pl.slice(r, [1, 8], [j, 0])
            for k in pl.range(0, 5, 8):
                f = pl.slice(r, [1, 8], [k, 0])
            return r
            """,
            OUT,
            XY,
        ),
        body(
            """
            d = pl.add(x, pl.slice(y, [8, 8], [0, 0]))
            e = pl.slice(d, [1, 8], [n, 0])
            f = pl.slice(d, [1, 8], [0, 0])
            return d
            """,
            OUT,
            XY,
        ),
    )


def test_a_computed_start_is_computed_once():
    same_form(
        body("for j in pl.range(n * m, n * m + 1):\n    a = pl.slice(x, [1, 8], [j, j])\nreturn x", OUT, XY),
        body("j = n * m\na = pl.slice(x, [1, 8], [j, j])\nreturn x", OUT, XY),
    )


@pytest.mark.parametrize(
    "loop",
    [
        "pl.parallel(1)",
        "pl.parallel(0)",
        "pl.unroll(1)",
        "pl.pipeline(1, stage=2)",
        'pl.range(1, attrs={"note": 3})',
        'pl.range(0, attrs={"note": 3})',
        "pl.range(2)",
        "pl.range(3, 1, -1)",
        "pl.range(n)",
    ],
)
def test_other_loops_stay(loop):
    program = simplified(body(f"for i in {loop}:\n    a = pl.add(x, y)\nreturn x", OUT, XY))
    assert len(of_kind(program, ir.ForStmt)) == 1


def test_a_symbolic_step_may_be_negative():
    same_meaning(
        body("s = 0\nfor i in pl.range(3, 3 - m, n):\n    s = s + i\nreturn s", "idx"),
        lambda n, m: sum(range(3, 3 - m, n)),
        (-1, 3),
        (1, 3),
        (2, -3),
    )


def test_one_iteration_with_an_escape_of_its_own_stays():
    """Wrong in PyPTO: after the folding, the ``break`` left the outer loop."""
    text = body(
        """
        s = 0
        for i in pl.range(6):
            for j in pl.range(1):
                if i > m:
                    break
                s = s + 1
            for k in pl.range(1):
                if i > m:
                    continue
                s = s + 10
            s = s + 100
        return s
        """,
        "idx",
    )
    program = same_meaning(text, lambda n, m: 600 + 11 * (m + 1), (0, 3), ssa=False)
    assert len(of_kind(program, ir.ForStmt)) == 3


def test_a_loop_whose_escape_went_is_folded():
    program = same_form(
        body(
            "for i in pl.range(n, n + 1):\n    if 2 < 5:\n        a = pl.slice(x, [1, 8], [i, 0])\n    else:\n        break\nreturn x",
            OUT,
            XY,
        ),
        body("a = pl.slice(x, [1, 8], [n, 0])\nreturn x", OUT, XY),
    )
    assert not of_kind(program, ir.ForStmt)


def test_conditions_that_read_at_a_computed_place():
    """What a condition reads is simplified under the condition itself."""
    text = body(
        """
        r = n
        if pl.tensor.read(f, [pl.min(m, 3)]) > 0:
            if pl.tensor.read(f, [pl.min(m, 3)]) > 0:
                r = pl.min(m, 7)
        return r
        """,
        "idx",
        "f: i32[8], n: idx, m: idx",
    )
    f = np.array([1, 0, 1, 0, 1, 1, 1, 1], np.int32)
    same_meaning(text, lambda f, n, m: min(m, 7) if f[min(m, 3)] > 0 else n, (f, 5, 2), (f, 5, 1), (f, 5, 9))


def test_an_escape_of_an_inner_loop_does_not_hold_the_outer_one():
    text = body(
        "s = 0\nfor i in pl.range(1):\n    for j in pl.range(5):\n        if j > m:\n            break\n        s = s + 1\nreturn s",
        "idx",
    )
    program = same_meaning(text, lambda n, m: min(5, m + 1), (0, 2), (0, 9), ssa=False)
    assert len(of_kind(program, ir.ForStmt)) == 1


def test_folded_loops_before_ssa_form():
    """Names that are assigned again may not be replaced by what they were."""
    text = body(
        """
        lo = n
        s = 0
        for j in pl.range(lo, lo + 1):
            lo = lo + 5
            s = s + j
        for i in pl.range(2, 3):
            s = s + i * 100
        return s + lo
        """,
        "idx",
    )
    program = same_meaning(text, lambda n, m: n + 200 + n + 5, (3, 0), (-2, 0))
    assert not of_kind(program, ir.ForStmt)


def test_a_swap_in_a_folded_loop():
    text = body(
        """
        for i, (a, b) in pl.range(1, init_values=(n, m)):
            p, q = pl.yield_(b, a)
        return p * 10 + q
        """,
        "idx",
    )
    program = same_meaning(text, lambda n, m: m * 10 + n, (3, 4))
    assert not of_kind(program, ir.ForStmt)


def test_a_yield_in_a_scope_at_the_end_of_a_folded_loop():
    same_form(
        """
        @InCore
        def k(self, x: f32[8, 8], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
            y1 = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], y)
            return y1
        @Orchestration
        def run(self, x: f32[8, 8], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
            for i, (c,) in pl.range(1, init_values=(y,)):
                with pl.manual_scope():
                    c1 = self.k(x, c)
                    r = pl.yield_(c1)
            return r
        """,
        """
        @InCore
        def k(self, x: f32[8, 8], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
            y1 = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], y)
            return y1
        @Orchestration
        def run(self, x: f32[8, 8], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
            with pl.manual_scope():
                c1 = self.k(x, y)
            return c1
        """,
    )


def test_a_constant_first_value_of_a_carry_is_put_into_the_carry():
    same_form(
        body("z = 5\nfor i, (c,) in pl.range(n, init_values=(z,)):\n    r = pl.yield_(c + i)\nreturn r", "idx"),
        body("for i, (c,) in pl.range(n, init_values=(5,)):\n    r = pl.yield_(c + i)\nreturn r", "idx"),
    )


# --- types --------------------------------------------------------------------------------------------------------------


def test_types_follow():
    same_form(
        """
        @InCore
        def run(self, x: f32[64, 64], n: idx, y: pl.Out[f32[64, 64]]) -> f32[64, 64]:
            v = 8 + 4
            for i in pl.range(4):
                t = pl.load(x, [i * 16, 0], [16, 64], valid_shape=[pl.min(v, 64 - i * 16), 64])
                y = pl.store(pl.add(t, 1.0), [i * 16, 0], y)
            u = pl.load(x, [0, 0], [16, 64], valid_shape=[n * 1 + 0, 64])
            y = pl.store(u, [0, 0], y)
            return y
        """,
        """
        @InCore
        def run(self, x: f32[64, 64], n: idx, y: pl.Out[f32[64, 64]]) -> f32[64, 64]:
            for i in pl.range(4):
                t = pl.load(x, [i * 16, 0], [16, 64], valid_shape=[12, 64])
                y = pl.store(pl.add(t, 1.0), [i * 16, 0], y)
            u = pl.load(x, [0, 0], [16, 64], valid_shape=[n, 64])
            y = pl.store(u, [0, 0], y)
            return y
        """,
    )


def test_types_in_branches_do_not_depend_on_the_condition():
    """Both branches yield values of one type; what holds in one of them only must not change that."""
    text = """
        @InCore
        def run(self, x: f32[64, 64], n: idx, y: pl.Out[f32[64, 64]]) -> f32[64, 64]:
            if 1 < n:
                a = pl.load(x, [0, 0], [16, 64], valid_shape=[pl.max(n, 1), 64])
                t = pl.yield_(a)
            else:
                b = pl.load(x, [16, 0], [16, 64], valid_shape=[pl.max(n, 1), 64])
                t = pl.yield_(b)
            y1 = pl.store(t, [0, 0], y)
            return y1
        """
    unchanged(text)


def test_the_result_of_a_branch_takes_the_type_of_what_is_yielded():
    same_form(
        """
        @InCore
        def run(self, x: f32[64, 64], n: idx, y: pl.Out[f32[64, 64]]) -> f32[64, 64]:
            v = 9
            if 1 < n:
                a = pl.load(x, [0, 0], [16, 64], valid_shape=[v, 64])
                t = pl.yield_(a)
            else:
                b = pl.load(x, [16, 0], [16, 64], valid_shape=[v, 64])
                t = pl.yield_(b)
            y1 = pl.store(t, [0, 0], y)
            return y1
        """,
        """
        @InCore
        def run(self, x: f32[64, 64], n: idx, y: pl.Out[f32[64, 64]]) -> f32[64, 64]:
            if 1 < n:
                a = pl.load(x, [0, 0], [16, 64], valid_shape=[9, 64])
                t = pl.yield_(a)
            else:
                b = pl.load(x, [16, 0], [16, 64], valid_shape=[9, 64])
                t = pl.yield_(b)
            y1 = pl.store(t, [0, 0], y)
            return y1
        """,
    )


def test_distributed_types_stay_distributed():
    program = simplified(
        """
        @InCore
        def run(self, x: pld.DistributedTensor[[16 * 4, 8], pl.FP32], y: pl.Out[f32[64, 8]]) -> f32[64, 8]:
            y1 = pl.store(pl.load(x, [0, 0], [64, 8]), [0, 0], y)
            return y1
        """
    )
    assert type(program["run"].params[0].type) is ir.DistributedTensorType


def test_a_view_that_changes_nothing_is_its_source():
    same_form(
        body("v = pl.tensor.view(x, layout=pl.TensorLayout.ND)\nreturn pl.add(v, v)", OUT, XY),
        body("v = x\nreturn pl.add(v, v)", OUT, XY),
    )
    unchanged(body("v = pl.tensor.view(x, layout=pl.TensorLayout.DN)\nreturn x", OUT, XY))


# --- dead code ----------------------------------------------------------------------------------------------------------


def test_chains_of_unused_scalars_go():
    same_form(
        body("a = n + 1\nb = a * m\nc = b + a\nd = n * 3\nreturn d", "idx"),
        body("d = n * 3\nreturn d", "idx"),
    )


def test_unused_results_of_branches_go_in_both_branches_by_identity():
    """Row 14: never by position."""
    same_form(
        body(
            """
            if 1 < n:
                a = n + 1
                b = pl.add(x, y)
                u, r, v = pl.yield_(a, b, x)
            else:
                c = m * 2
                d = pl.mul(x, y)
                u, r, v = pl.yield_(c, d, y)
            return r
            """,
            OUT,
            XY,
        ),
        body(
            """
            if 1 < n:
                b = pl.add(x, y)
                r = pl.yield_(b)
            else:
                d = pl.mul(x, y)
                r = pl.yield_(d)
            return r
            """,
            OUT,
            XY,
        ),
    )


def test_results_that_only_feed_unused_results_go_too():
    same_form(
        body(
            """
            if 1 < n:
                if 1 < m:
                    p = pl.yield_(n)
                else:
                    p = pl.yield_(m)
                q = pl.yield_(p)
            else:
                q = pl.yield_(n + m)
            return x
            """,
            OUT,
            XY,
        ),
        body("if 1 < n:\n    if 1 < m:\n        pass\nreturn x", OUT, XY),
    )


def test_calls_and_values_that_are_no_scalars_stay():
    unchanged(
        body(
            """
            a = pl.add(x, y)
            b = x
            c = pl.tensor.read(x, [0, 0])
            return x
            """,
            OUT,
            XY,
        )
    )


def test_a_yielded_call_keeps_its_result():
    unchanged(body("if 1 < n:\n    r = pl.yield_(pl.add(x, y))\nelse:\n    r = pl.yield_(x)\nreturn x", OUT, XY))


def test_carries_stay():
    unchanged(body("for i, (c,) in pl.range(n, init_values=(m,)):\n    r = pl.yield_(c + i)\nreturn x", OUT, XY))


TASKS = """
@InCore
def k(self, x: f32[8, 8], i: idx, y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    y1 = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], y)
    return y1
"""


def orchestration(lines: str) -> str:
    import textwrap

    head = "@Orchestration\ndef run(self, x: f32[8, 8], n: idx, y: pl.InOut[f32[8, 8]]):\n"
    return TASKS + head + textwrap.indent(textwrap.dedent(lines).strip(), "    ") + "\n"


def test_the_id_of_a_task_stays():
    program = unchanged(orchestration("r, t = pl.submit(self.k, x, 0, y)"))
    ids = [s for s in of_kind(program, ir.AssignStmt) if s.var.name_hint == "t"]
    assert len(ids) == 1 and isinstance(ids[0].value, ir.TupleGetItemExpr)


@pytest.mark.parametrize(
    "lines",
    [
        "r, t0 = pl.submit(self.k, x, 0, y)\nr1, t1 = pl.submit(self.k, x, 0, r, deps=[t0])",
        "r, t0 = pl.submit(self.k, x, 0, y)\nwith pl.at(level=pl.Level.CORE_GROUP, deps=[t0]):\n    a = pl.add(x, 1.0)",
        "r, t0 = pl.submit(self.k, x, 0, y)\nt1 = t0\nwith pl.at(level=pl.Level.CORE_GROUP, deps=[t1]):\n    a = pl.add(x, 1.0)",
    ],
    ids=["submit", "scope", "copy"],
)
def test_an_id_that_only_deps_name_survives(lines):
    """Row 24."""
    unchanged(orchestration(lines))


@pytest.mark.parametrize(
    "use",
    [
        "r, t = pl.spmd_submit(self.k, x, 0, y, core_num=wide)",
        "with pl.spmd(wide):\n    y = self.k(x, 0, y)",
    ],
    ids=["submit", "scope"],
)
def test_a_width_from_a_loop_local_scalar_survives(use):
    """Row 9."""
    import textwrap

    program = simplified(orchestration("for g in pl.range(n):\n    wide = g * 4 + 2\n" + textwrap.indent(use, "    ")))
    assert [s.var.name_hint for s in of_kind(program, ir.AssignStmt)].count("wide") == 1


def test_predicates_are_kept_as_written():
    text = orchestration("i = 3\nr, t = pl.submit(self.k, x, 0, y, predicate=(f[i] > 0))").replace(
        "n: idx, y", "n: idx, f: i32[8], y"
    )
    program = simplified(text)
    (submit,) = of_kind(program, ir.Submit)
    assert isinstance(submit.predicate, ir.Gt) and not [
        s for s in of_kind(program, ir.AssignStmt) if s.var.name_hint == "i"
    ]


def test_scalars_that_types_mention_survive():
    unchanged(
        """
        @InCore
        def run(self, x: f32[64, 64], n: idx, y: pl.Out[f32[64, 64]]) -> f32[64, 64]:
            v = n * 2
            t = pl.load(x, [0, 0], [16, 64], valid_shape=[v, 64])
            y1 = pl.store(t, [0, 0], y)
            return y1
        """
    )


def test_scalars_that_host_text_may_name_survive():
    program = source(body("a = n + 1\nreturn n", "idx"))
    function = program["run"]
    inline = ir.InlineStmt("print(a)", ir.InlineLanguage.Python, ir.Span.unknown())
    with_text = function.replace(body=ir.SeqStmts([*function.body.stmts[:-1], inline, function.body.stmts[-1]]))
    changed = program.with_functions([with_text])
    assert simplify()(changed) is changed


def test_removing_a_branch_that_leaves_one_assignment_is_still_idempotent():
    program = simplified(source(body("c = 12\nif 3 > 4:\n    c = 13\nreturn n + c", "idx")))
    assert not of_kind(program, ir.AssignStmt) and run(program, 1, 0) == [13]


# --- comments and spans -------------------------------------------------------------------------------------------------


def comments_of(program):
    return {type(s).__name__: s.leading_comments for s in of_kind(program, ir.Stmt) if s.leading_comments}


def test_comments_move_to_the_next_statement():
    program = simplified(
        body(
            """
            # the width
            k = 4
            # unused
            h = n * k
            # the sum
            a = pl.add(x, y)
            # once
            for i in pl.range(1):
                # inside
                b = pl.mul(a, a)
            # never
            for j in pl.range(0):
                # gone with the loop
                c = pl.mul(a, a)
            # always
            if k > 3:
                d = pl.mul(a, 3.0)
            # the end
            return a
            """,
            OUT,
            XY,
        )
    )
    found = [
        (s.leading_comments, str(s).split(" = ")[0].split(":")[0])
        for s in of_kind(program, ir.Stmt)
        if s.leading_comments
    ]
    assert [(comments, name.split("\n")[-1].strip().split(" ")[0]) for comments, name in found] == [
        (["the width", "unused", "the sum"], "a"),
        (["once", "inside"], "b"),
        (["never", "always"], "d"),
        (["the end"], "return"),
    ]


def test_simplifying_does_not_change_the_comments_of_the_input():
    program = source(body("# one\nk = 4\n# two\na = pl.add(x, y)\nreturn a", OUT, XY))
    before = str(program)
    simplified(program)
    assert str(program) == before


def test_spans_survive():
    program = source(body("k = 2 * 3\na = pl.slice(x, [1, 8], [n + k + 1, 0])\nreturn a", "f32[1, 8]", XY))
    stmt = next(s for s in of_kind(program, ir.AssignStmt) if s.var.name_hint == "a")
    after = next(s for s in of_kind(simplified(program), ir.AssignStmt) if s.var.name_hint == "a")
    assert after.span == stmt.span and after.value.span == stmt.value.span
    assert after.value.args[2].elements[0].span == stmt.value.args[2].elements[0].span


# --- whole programs -----------------------------------------------------------------------------------------------------


def test_the_result_is_in_ssa_form():
    text = body(
        """
        s = n
        for i in pl.range(4):
            if i < m:
                s = s + i
            for j in pl.range(i, i + 1):
                s = s + j * 2
            if i >= 0:
                s = s + 1
        return s
        """,
        "idx",
    )

    def want(n, m):
        return n + sum((i if i < m else 0) + 2 * i + 1 for i in range(4))

    same_meaning(text, want, (3, 2), (0, 0), (1, 9))
    after = simplified(convert_to_ssa()(source(text)))
    checks = property_set(IRProperty.SSAForm, IRProperty.UseAfterDef, IRProperty.NoRedundantBlocks)
    PropertyVerifierRegistry.verify_or_throw(checks, after)
    assert len(of_kind(after, ir.IfStmt)) == 1 and len(of_kind(after, ir.ForStmt)) == 1


def test_long_chains_of_operators_and_of_scalars():
    program = source(body("return n + m", "idx"))
    function = program["run"]
    n, m = function.params
    chain = n
    for _ in range(4000):
        chain = ir.Add(chain, m, ir.DataType.INDEX)
    for _ in range(4000):
        chain = ir.Max(m, chain, ir.DataType.INDEX)
    long = program.with_functions(
        [function.replace(body=function.body.replace(value=type(function.body.value)([chain])))]
    )
    assert simplify()(long)["run"].params == function.params
    lines = "v0 = n\n" + "".join(f"v{i} = v{i - 1} * 2 - v{i - 1}\n" for i in range(1, 800))
    program = simplified(body(lines + "if v799 >= 0:\n    a = pl.add(x, y)\nreturn x", OUT, XY))
    assert len(of_kind(program, ir.IfStmt)) == 1


def test_an_else_branch_that_loses_its_statements_goes_too():
    before = parse(
        """
        @Opaque
        def run(self, n: idx) -> idx:
            if n > 2:
                m = self.other(n)
            else:
                unused = n + 1
            return n
        @Opaque
        def other(self, n: idx) -> idx:
            return n
        """
    )
    after = simplify()(before)
    [branch] = [s for s in walk(after["run"].body) if isinstance(s, ir.IfStmt)]
    assert branch.else_body is None
    check_round_trips(after)
