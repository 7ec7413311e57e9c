"""FlattenCallExpr: nested calls become assignments in front, in the order of evaluation; the meaning stays."""

import textwrap

import numpy as np
import pytest

import pypto.language as pl
from pypto import ir, passes
from pypto.ir.traversal import walk
from pypto.ops.values import ArrayValue
from pypto.passes.errors import PassError
from pypto.passes.flatten_call_expr import flatten_call_expr
from pypto.runtime.interpreter import Interpreter
from pypto.verify.properties import IRProperty, property_set
from pypto.verify.registry import verify_all

HEAD = """
import pypto.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[8, 8], pl.FP32], s: pl.Scalar[pl.FP32], b: pl.Out[pl.Tensor[[8, 8], pl.FP32]]
          ) -> pl.Tensor[[8, 8], pl.FP32]:
        t = pl.load(a, [0, 0], [8, 8])
        u = pl.mul(t, s)
        r = pl.store(u, [0, 0], b)
        return r
    @pl.function(type=pl.FunctionType.InCore)
    def count(self, b: pl.InOut[pl.Tensor[[4], pl.INT32]]) -> pl.Scalar[pl.INT32]:
        c = pl.read(b, [0])
        pl.write(b, [0], pl.cast(c - 1, pl.INT32))
        return c
"""
PARAMS = (
    "self, x: pl.Tensor[[8, 8], pl.FP32], f: pl.Tensor[[4], pl.INT32], n: pl.Scalar[pl.INDEX], "
    "y: pl.Out[pl.Tensor[[8, 8], pl.FP32]]"
)
T = "pl.Tensor[[8, 8], pl.FP32]"


def text(body, result=T, kind="Orchestration", params=PARAMS):
    decorator = f"    @pl.function(type=pl.FunctionType.{kind})\n    def main({params}) -> {result}:\n"
    return HEAD + decorator + textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8) + "\n"


def program(body, **options):
    return pl.parse(text(body, **options), "case.py")


def flatten(node):
    """The flattened program, checked for what holds of every result: no nested call, and nothing more to do."""
    after = flatten_call_expr()(node)
    props = property_set(IRProperty.NoNestedCalls, IRProperty.NormalizedStmtStructure)
    assert verify_all(props, after) == []
    scoped = property_set(IRProperty.SSAForm, IRProperty.UseAfterDef)
    if verify_all(scoped, node) == []:
        assert verify_all(scoped, after) == []
    assert flatten_call_expr()(after) is after
    return after


def check(before, expected, **options):
    """The second body is what flattening makes of the first."""
    after = flatten(program(before, **options))
    ir.assert_structural_equal(after, program(expected, **options), enable_auto_mapping=True)
    return after


def run(node, x, f, n):
    """What ``main`` leaves in ``y``, and in ``f``."""
    y, flags = np.zeros((8, 8), np.float32), np.array(f, np.int32)
    Interpreter(node).run(node["main"], [ArrayValue(x.copy()), ArrayValue(flags), n, ArrayValue(y)])
    return y, flags


def same_values(body, f, n=0, want=None, result=T, seed=0):
    """The program computes the same before and after, and what is expected."""
    x = np.random.default_rng(seed).integers(-4, 5, (8, 8)).astype(np.float32)
    before = program(body, result=result)
    (y, flags), (y_after, flags_after) = (run(node, x, f, n) for node in (before, flatten(before)))
    np.testing.assert_array_equal(y, y_after)
    np.testing.assert_array_equal(flags, flags_after)
    if want is not None:
        np.testing.assert_array_equal(y_after, want(x))


# --- one nested call in each position ---------------------------------------------------------------------------------


def test_arguments_depth_first_left_to_right():
    check(
        "return pl.mul(pl.add(x, pl.exp(x)), pl.neg(x))",
        """
        a = pl.exp(x)
        b = pl.add(x, a)
        c = pl.neg(x)
        d = pl.mul(b, c)
        return d
        """,
    )


def test_names_count_up_for_each_function():
    after = flatten(program("return pl.mul(pl.add(x, pl.exp(x)), pl.neg(x))"))
    stmts = after.get_function("main").body.stmts
    assert [s.var.name_hint for s in stmts[:-1]] == [f"t__tmp_v{i}" for i in range(4)]


def test_names_that_the_user_has_are_left_alone():
    before = program("return pl.exp(x)")
    once = flatten(before).get_function("main")
    again = once.replace(body=ir.SeqStmts([once.body.stmts[0], program("return pl.exp(x)").get_function("main").body]))
    names = [s.var.name_hint for s in flatten_call_expr()(ir.Program([again])).get_function("main").body.stmts[:-1]]
    assert names == ["t__tmp_v0", "t__tmp_v1"]


def test_argument_of_a_function_call_and_of_a_list():
    check(
        "y = self.k(pl.exp(x), pl.cast(pl.read(f, [pl.read(f, [0])]), pl.FP32), y)\nreturn y",
        """
        a = pl.exp(x)
        b = pl.read(f, [0])
        c = pl.read(f, [b])
        y = self.k(a, pl.cast(c, pl.FP32), y)
        return y
        """,
    )


def test_arguments_of_a_submit():
    check(
        """
        with pl.manual_scope():
            y, t = pl.submit(self.k, pl.exp(x), 1.0, y)
        return y
        """,
        """
        with pl.manual_scope():
            a = pl.exp(x)
            y, t = pl.submit(self.k, a, 1.0, y)
        return y
        """,
    )


def main_of(node):
    return node.get_function("main")


def only(node, cls):
    found = [item for item in walk(main_of(node).body) if type(item) is cls]
    assert len(found) == 1
    return found[0]


def test_launch_fields_of_a_submit_and_its_predicate():
    """``core_num`` is bound in front; ``predicate`` stays an expression; all else is kept."""
    node = program(
        "with pl.manual_scope():\n    y, t = pl.submit(self.k, x, 1.0, y, allow_early_resolve=True)\nreturn y"
    )
    before = only(node, ir.Submit)
    read = main_of(program("a = pl.read(f, [0])\nreturn y")).body.stmts[0].value
    more = before.replace(core_num=read, predicate=read.replace() > 0, attrs=before.attrs)
    node = node.with_functions([_swap(fn, before, more) for fn in node.functions.values()])
    after = only(flatten(node), ir.Submit)
    assert isinstance(after.core_num, ir.Var) and after.core_num.name_hint == "t__tmp_v0"
    assert after.predicate is more.predicate
    assert after.allow_early_resolve and after.op == more.op and after.span == more.span and after.type is more.type
    # a call that occurs in a predicate only is nothing to do
    kept = before.replace(predicate=more.predicate)
    node = node.with_functions([_swap(fn, more, kept) for fn in node.functions.values()])
    assert flatten(node) is node


def _swap(function, old, new):
    class Swap(ir.IRMutator):
        def visit_submit(self, op):
            return new if op is old else op

    return Swap().visit_function(function)


def test_operands_of_binary_and_unary_expressions():
    check(
        "v = -pl.read(f, [0]) + pl.read(f, [1]) * 2\ny = self.k(x, pl.cast(v, pl.FP32), y)\nreturn y",
        """
        a = pl.read(f, [0])
        b = pl.read(f, [1])
        v = -a + b * 2
        y = self.k(x, pl.cast(v, pl.FP32), y)
        return y
        """,
    )


def test_if_condition_and_a_condition_in_an_else():
    check(
        """
        if pl.read(f, [0]) > 0:
            y = self.k(x, 1.0, y)
        else:
            if pl.read(f, [1]) > 0:
                y = self.k(x, 2.0, y)
        return y
        """,
        """
        a = pl.read(f, [0])
        if a > 0:
            y = self.k(x, 1.0, y)
        else:
            b = pl.read(f, [1])
            if b > 0:
                y = self.k(x, 2.0, y)
        return y
        """,
    )


def test_range_of_a_for_in_the_order_start_stop_step():
    check(
        """
        for i in pl.range(pl.read(f, [0]), pl.read(f, [1]), pl.read(f, [2])):
            y = self.k(x, 1.0, y)
        return y
        """,
        """
        a = pl.read(f, [0])
        b = pl.read(f, [1])
        c = pl.read(f, [2])
        for i in pl.range(a, b, c):
            y = self.k(x, 1.0, y)
        return y
        """,
    )


def test_initial_value_of_a_carry_and_yields_in_a_loop():
    check(
        """
        for i, (s,) in pl.range(4, init_values=(pl.exp(x),)):
            r = pl.yield_(pl.add(s, 1.0))
        return r
        """,
        """
        a = pl.exp(x)
        for i, (s,) in pl.range(4, init_values=(a,)):
            b = pl.add(s, 1.0)
            r = pl.yield_(b)
        return r
        """,
    )


def test_yields_of_branches():
    check(
        """
        if n > 0:
            r = pl.yield_(pl.exp(x))
        else:
            r = pl.yield_(pl.neg(pl.exp(x)))
        return r
        """,
        """
        if n > 0:
            a = pl.exp(x)
            r = pl.yield_(a)
        else:
            b = pl.exp(x)
            c = pl.neg(b)
            r = pl.yield_(c)
        return r
        """,
    )


def test_a_single_returned_call():
    check("return self.k(x, 1.0, y)", "a = self.k(x, 1.0, y)\nreturn a")


def test_a_single_statement_as_body():
    check(
        "for i in pl.range(4):\n    y = self.k(pl.exp(x), 1.0, y)\nreturn y",
        "for i in pl.range(4):\n    a = pl.exp(x)\n    y = self.k(a, 1.0, y)\nreturn y",
    )


def test_inside_scopes():
    check(
        """
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.store(pl.exp(pl.load(x, [0, 0], [8, 8])), [0, 0], y)
        return y
        """,
        """
        with pl.at(level=pl.Level.CORE_GROUP):
            a = pl.load(x, [0, 0], [8, 8])
            b = pl.exp(a)
            y = pl.store(b, [0, 0], y)
        return y
        """,
    )


def test_elements_of_tuples_and_tuple_access():
    check(
        "a, b = pl.exp(x), pl.neg(x)\nreturn pl.add(a, b)",
        "c = pl.exp(x)\nd = pl.neg(x)\na, b = c, d\ne = pl.add(a, b)\nreturn e",
    )
    pair = program("a, b = pl.exp(x), pl.neg(x)\nreturn a")
    made, first, *_ = main_of(pair).body.stmts
    item = ir.TupleGetItemExpr(ir.MakeTuple(made.value.elements), 1)
    function = main_of(pair).replace(body=ir.ReturnStmt([item]))
    after = main_of(flatten(ir.Program([function])))
    assert [type(s) for s in after.body.stmts] == [ir.AssignStmt, ir.AssignStmt, ir.ReturnStmt]


def test_tuple_access_of_a_call():
    kernel = pl.parse(HEAD, "case.py").get_function("k")
    call = ir.Call(
        ir.GlobalVar("pair"), [kernel.params[0]], ir.TupleType([kernel.params[0].type] * 2), ir.Span("a.py", 3, 1)
    )
    function = kernel.replace(body=ir.ReturnStmt([ir.TupleGetItemExpr(call, 1)]))
    first, last = main_of_single(flatten(ir.Program([function]))).body.stmts
    assert first.value is call and first.span == call.span
    assert last.value[0].tuple is first.var and last.value[0].index == 1


def main_of_single(node):
    [function] = node.functions.values()
    return function


def test_width_of_an_spmd_scope():
    check(
        """
        for b in pl.spmd(pl.read(f, [0])):
            t = pl.load(x, [b, 0], [1, 8])
            y = pl.store(t, [b, 0], y)
        return y
        """,
        """
        w = pl.read(f, [0])
        for b in pl.spmd(w):
            t = pl.load(x, [b, 0], [1, 8])
            y = pl.store(t, [b, 0], y)
        return y
        """,
    )


def test_width_of_an_spmd_scope_that_begins_a_cluster():
    """The width goes to the launch of the cluster, so what it is computed from must not stay inside."""
    body = "    with pl.spmd({}):\n        y = self.k(x, 1.0, y)\nreturn y\n"
    check(
        "with pl.cluster():\n" + body.format("pl.read(f, [0])"),
        "w = pl.read(f, [0])\nwith pl.cluster():\n" + body.format("w"),
    )


def test_expression_statement():
    node = program("pl.write(f, [pl.read(f, [1])], pl.read(f, [0]))\nreturn y")
    stmts = main_of(flatten(node)).body.stmts
    assert [type(s) for s in stmts] == [ir.AssignStmt, ir.AssignStmt, ir.EvalStmt, ir.ReturnStmt]
    assert [s.value.op.name for s in stmts[:2]] == ["tensor.read"] * 2


def test_kernels_too():
    after = program("return y")
    kernel = pl.parse(HEAD.replace("return r", "return pl.store(pl.exp(pl.exp(u)), [0, 0], b)"), "case.py")
    body = flatten(kernel).get_function("k").body
    assert [s.value.op.name for s in body.stmts[-4:-1]] == ["tile.exp", "tile.exp", "tile.store"]
    assert flatten(after) is after


# --- what is kept -----------------------------------------------------------------------------------------------------


def test_nothing_to_do_gives_the_same_object():
    node = program("a = pl.exp(x)\nb = pl.add(a, 1.0)\nreturn b")
    assert flatten_call_expr()(node) is node


def test_functions_without_nested_calls_are_shared():
    node = program("return pl.exp(x)")
    assert flatten(node).get_function("k") is node.get_function("k")


def test_comments_go_to_the_first_statement_that_takes_the_place():
    after = main_of(flatten(program("# why\nv = pl.add(x, pl.exp(x))\nreturn v")))
    assert [s.leading_comments for s in after.body.stmts] == [["why"], [], []]


def test_spans_attributes_and_types():
    node = program("v = pl.add(x, pl.exp(x))\nreturn v")
    outer = main_of(node).body.stmts[0].value
    inner = outer.args[1]
    first, second, _ = main_of(flatten(node)).body.stmts
    assert first.value is inner and first.span == inner.span and first.var.type is inner.type
    assert second.value.span == outer.span and second.span == main_of(node).body.stmts[0].span
    assert second.value.attrs is outer.attrs and second.value.kwargs is outer.kwargs


def test_extents_that_are_calls_become_the_temporary_in_types_too():
    after = main_of(
        flatten(program("u = pl.create_tensor([pl.read(f, [0]), 8], dtype=pl.FP32)\nw = pl.add(u, 1.0)\nreturn y"))
    )
    temp, u, w, _ = after.body.stmts
    assert u.var.type.shape[0] is temp.var and u.value.type.shape[0] is temp.var
    assert w.var.type.shape[0] is temp.var and w.value.args[0] is u.var


def test_an_extent_is_not_taken_from_another_branch():
    body = """
    if n > 0:
        u = pl.create_tensor([pl.read(f, [0]), 8], dtype=pl.FP32)
    else:
        v = pl.create_tensor([pl.read(f, [0]), 8], dtype=pl.FP32)
    return y
    """
    branch = main_of(flatten(program(body))).body.stmts[0]
    for side in (branch.then_body, branch.else_body):
        temp, made = side.stmts
        assert made.var.type.shape[0] is temp.var


def test_deep_expressions():
    node = program("v = pl.read(f, [0]) + n\nreturn y")
    first, last = main_of(node).body.stmts
    value = first.value
    for _ in range(5000):
        value = value + first.value.right
    for _ in range(500):
        value = ir.Neg(value, value.dtype)
    function = main_of(node).replace(body=ir.SeqStmts([first.replace(value=value), last]))
    assert len(main_of(flatten(ir.Program([function]))).body.stmts) == 3


# --- while conditions -------------------------------------------------------------------------------------------------


def test_invariant_call_is_bound_before_the_loop():
    check(
        """
        for (i,) in pl.while_(init_values=(0,)):
            pl.cond(i < pl.read(f, [3]))
            r = pl.yield_(i + 1)
        return y
        """,
        """
        d = pl.read(f, [3])
        for (i,) in pl.while_(init_values=(0,)):
            pl.cond(i < d)
            r = pl.yield_(i + 1)
        return y
        """,
    )


def test_call_of_a_carry_is_carried():
    check(
        """
        for (i,) in pl.while_(init_values=(n,)):
            pl.cond(pl.read(f, [i]) > 0)
            j = i + 1
            r = pl.yield_(j)
        return y
        """,
        """
        c0 = pl.read(f, [n])
        for i, c in pl.while_(init_values=(n, c0)):
            pl.cond(c > 0)
            j = i + 1
            c1 = pl.read(f, [j])
            r, cr = pl.yield_(j, c1)
        return y
        """,
    )


def test_yielded_expressions_and_nested_calls_of_carries():
    check(
        """
        for i, j in pl.while_(init_values=(n, 0)):
            pl.cond(pl.read(f, [pl.read(f, [i]) + j]) > 0)
            a, b = pl.yield_(j + 1, i)
        return y
        """,
        """
        c0 = pl.read(f, [n])
        d0 = pl.read(f, [c0 + 0])
        for i, j, d in pl.while_(init_values=(n, 0, d0)):
            pl.cond(d > 0)
            c1 = pl.read(f, [j + 1])
            d1 = pl.read(f, [c1 + i])
            a, b, e = pl.yield_(j + 1, i, d1)
        return y
        """,
    )


def test_call_that_reads_what_the_loop_writes_is_carried():
    check(
        """
        for (i,) in pl.while_(init_values=(n,)):
            pl.cond(pl.read(f, [0]) > 0)
            pl.write(f, [0], pl.const(0, pl.INT32))
            r = pl.yield_(i + 1)
        return y
        """,
        """
        c0 = pl.read(f, [0])
        for i, c in pl.while_(init_values=(n, c0)):
            pl.cond(c > 0)
            pl.write(f, [0], pl.const(0, pl.INT32))
            c1 = pl.read(f, [0])
            r, s = pl.yield_(i + 1, c1)
        return y
        """,
    )


def test_loop_without_carries():
    check(
        "while pl.read(f, [0]) > 0:\n    pl.write(f, [0], pl.const(0, pl.INT32))\nreturn y",
        """
        c0 = pl.read(f, [0])
        for (c,) in pl.while_(init_values=(c0,)):
            pl.cond(c > 0)
            pl.write(f, [0], pl.const(0, pl.INT32))
            c1 = pl.read(f, [0])
            r = pl.yield_(c1)
        return y
        """,
    )


def test_carry_in_a_scope_at_the_end_of_the_body():
    after = flatten(
        program(
            """
            for (i,) in pl.while_(init_values=(n,)):
                pl.cond(pl.read(f, [i]) > 0)
                with pl.scope():
                    j = i + 1
                    r = pl.yield_(j)
            return y
            """,
            kind="Orchestration, auto_scope=False",
        )
    )
    loop = only(after, ir.WhileStmt)
    assert len(loop.iter_args) == len(loop.return_vars) == 2
    *_, again, last = loop.body.body.stmts
    assert last.value[1] is again.var


def test_calls_in_initial_values_come_first():
    check(
        """
        for (i,) in pl.while_(init_values=(pl.read(f, [1]),)):
            pl.cond(pl.read(f, [i]) > 0)
            r = pl.yield_(i)
        return y
        """,
        """
        a = pl.read(f, [1])
        c0 = pl.read(f, [a])
        for i, c in pl.while_(init_values=(a, c0)):
            pl.cond(c > 0)
            c1 = pl.read(f, [i])
            r, s = pl.yield_(i, c1)
        return y
        """,
    )


def test_condition_that_is_a_call():
    call = main_of(program("a = pl.read(f, [0])\nreturn y")).body.stmts[0].value
    function = main_of(program("while n > 0:\n    pl.write(f, [0], pl.const(0, pl.INT32))\nreturn y"))
    loop, last = function.body.stmts
    body = ir.SeqStmts([loop.replace(condition=call), last])
    after = only(flatten(ir.Program([function.replace(body=body)])), ir.WhileStmt)
    assert after.condition is after.iter_args[0]


@pytest.mark.parametrize("launch", ["Call", "Submit"])
def test_a_task_launch_in_a_condition_is_refused(launch):
    body = "while self.count(f) > 0:\n    y = self.k(x, 1.0, y)\nreturn y"
    node = program(body)
    if launch == "Submit":
        loop, last = main_of(node).body.stmts
        call = loop.condition.left
        while not isinstance(call, ir.Call):
            call = call.operand
        submit = ir.Submit(call.op, call.args, [], call.type, call.span)
        loop = loop.replace(condition=loop.condition.replace(left=submit))
        node = ir.Program([main_of(node).replace(body=ir.SeqStmts([loop, last]))])
    with pytest.raises(PassError, match="call of 'count' in the condition of a while loop can't be evaluated") as info:
        flatten_call_expr()(node)
    assert isinstance(info.value, ValueError) and info.value.code == "PT1040"
    assert text(body).split("\n")[info.value.span.begin_line - 1].strip() == "while self.count(f) > 0:"
    assert "before the loop" in info.value.hint


# --- meaning ----------------------------------------------------------------------------------------------------------

COUNTED = """
i = 0
s = 0
while {condition}:
    {body}
return self.k(x, pl.cast(i + 10 * s, pl.FP32), y)
"""


def counted(condition, body):
    return COUNTED.format(condition=condition, body="\n    ".join(textwrap.dedent(body).strip().split("\n")))


WHILES = [
    ("pl.read(f, [i]) > 0", "i = i + 1", 3, 0),
    ("pl.read(f, [i]) > 0 and i < 2", "i = i + 1", 2, 0),
    ("pl.read(f, [0]) > i", "i = i + 1", 5, 0),
    ("pl.read(f, [0]) > 0", "pl.write(f, [0], pl.cast(pl.read(f, [0]) - 1, pl.INT32))\ni = i + 1", 5, 0),
    ("pl.read(f, [i]) > 0", "i = i + 1\nif i == 2:\n    break\ns = s + 1", 2, 1),
    ("pl.read(f, [i]) > 0", "i = i + 1\nif i == 2:\n    continue\ns = s + 1", 3, 2),
    (
        "pl.read(f, [0]) > 0",
        "pl.write(f, [0], pl.cast(pl.read(f, [0]) - 1, pl.INT32))\nif pl.read(f, [0]) == 2:\n    continue\ni = i + 1",
        4,
        0,
    ),
    ("pl.read(f, [3]) > 0", "i = i + 1", 0, 0),
    ("pl.read(f, [pl.read(f, [i]) - 5]) > 0 and i < 1", "i = i + 1", 1, 0),
]


@pytest.mark.parametrize("condition, body, i, s", WHILES)
def test_while_loops_mean_the_same(condition, body, i, s):
    same_values(counted(condition, body), [5, 6, 7, 0], want=lambda x: x * np.float32(i + 10 * s))


@pytest.mark.parametrize("condition, body, i, s", WHILES)
def test_while_loops_in_ssa_form_mean_the_same(condition, body, i, s):
    node = program(counted(condition, body))
    for step in (passes.ctrl_flow_transform(), passes.convert_to_ssa(), passes.normalize_stmt_structure()):
        node = step(node)
    assert verify_all(property_set(IRProperty.SSAForm, IRProperty.UseAfterDef), node) == []
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    np.testing.assert_array_equal(run(flatten(node), x, [5, 6, 7, 0], 0)[0], x * np.float32(i + 10 * s))


def test_nested_while_loops_mean_the_same():
    body = """
    i = 0
    s = 0
    while pl.read(f, [i]) > 0:
        j = 0
        while pl.read(f, [j]) > i:
            j = j + 1
            s = s + 1
        i = i + 1
    return self.k(x, pl.cast(s, pl.FP32), y)
    """
    same_values(body, [1, 2, 3, 0], want=lambda x: x * 3)


def test_both_sides_of_and_are_evaluated_before_and_after():
    """No side of ``and`` guards the other: an index out of range is an error before the pass as after it."""
    body = "if n < 4 and pl.read(f, [n]) > 0:\n    y = self.k(x, 1.0, y)\nreturn y"
    same_values(body, [1, 0, 0, 0], n=1)
    before = program(body)
    for node in (before, flatten(before)):
        with pytest.raises(Exception, match="read"):
            run(node, np.zeros((8, 8), np.float32), [0] * 4, 9)


def test_order_of_effects_is_kept():
    """Each call reads what the ones before it have written: f[0] counts down."""
    body = """
    v = pl.cast(self.count(f), pl.FP32) + pl.cast(self.count(f), pl.FP32) * 10.0
    return self.k(x, v + pl.cast(self.count(f), pl.FP32) * 100.0, y)
    """
    same_values(body, [5, 0, 0, 0], want=lambda x: x * (5 + 40 + 300))


def test_expressions_mean_the_same():
    body = """
    for i in pl.range(pl.read(f, [0]), pl.read(f, [1])):
        if pl.read(f, [i]) > 2:
            y = self.k(pl.add(x, pl.mul(x, 2.0)), pl.cast(pl.read(f, [i]), pl.FP32), y)
    return self.k(pl.add(pl.mul(y, 2.0), pl.neg(x)), 1.0, y)
    """
    same_values(body, [1, 4, 7, 2], want=lambda x: 2 * 7 * 3 * x - x)
