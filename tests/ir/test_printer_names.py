"""Names of variables in printed text (spec 16.3)."""

from hypothesis import given
from hypothesis import strategies as st
from tree_kit import INDEX, U, var

from pypto.ir.dtype import DataType
from pypto.ir.expr import Call, ConstInt, IterArg, Op, index_const
from pypto.ir.printer import python_print
from pypto.ir.printer.names import distinct_names
from pypto.ir.program import Function, Program
from pypto.ir.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    InCoreScopeStmt,
    ReturnStmt,
    SeqStmts,
    WhileStmt,
    YieldStmt,
)
from pypto.ir.type import ScalarType, TensorType


def assign(target, value):
    return AssignStmt(target, value, U)


def lines(node, **options):
    return python_print(node, format=False, concise=True, **options).split("\n")


def function(params, *stmts):
    return Function("f", params, [], SeqStmts(list(stmts), U), U)


def test_a_shared_hint_goes_to_parameters_then_definitions():
    param, first, second = var("x"), var("x"), var("x")
    body = (assign(first, param + 1), assign(second, first + 2), ReturnStmt([second], U))
    assert lines(function([param], *body))[1:] == [
        "def f(x: pl.Scalar[pl.INDEX]):",
        "    x_1 = x + 1",
        "    x_2 = x_1 + 2",
        "    return x_2",
    ]


def test_a_hint_that_only_one_variable_has_is_reserved():
    a, b, taken = var("x"), var("x"), var("x_1")
    body = (assign(a, index_const(0)), assign(b, a + 1), assign(taken, b + 1))
    assert lines(function([], *body))[2:] == ["    x = 0", "    x_2 = x + 1", "    x_1 = x_2 + 1"]


def test_loops_name_their_variables_in_order():
    n, x0 = var("n"), var("x0")
    loop, out, carried, inner = var("v"), var("v"), IterArg("v", INDEX, x0, U), var("v")
    body = SeqStmts([assign(inner, carried + loop), YieldStmt([inner], U)], U)
    stmt = ForStmt(loop, index_const(0), n, index_const(1), [carried], body, [out], U)
    assert lines(stmt) == [
        "for v, (v_2,) in pl.range(n, init_values=(x0,)):",
        "    v_3 = v_2 + v",
        "    v_1 = pl.yield_(v_3)",
    ]


def test_a_while_names_its_results_before_its_carries():
    x0, out = var("x0"), var("v")
    carried = IterArg("v", INDEX, x0, U)
    stmt = WhileStmt(carried < 3, [carried], YieldStmt([carried + 1], U), [out], U)
    assert lines(stmt) == [
        "for (v_1,) in pl.while_(init_values=(x0,)):",
        "    pl.cond(v_1 < 3)",
        "    v = pl.yield_(v_1 + 1)",
    ]


def test_an_if_names_its_results_before_its_branches():
    a, out, inner = var("a"), var("v"), var("v")
    then = SeqStmts([assign(inner, a + 1), YieldStmt([inner], U)], U)
    assert lines(IfStmt(a > 0, then, YieldStmt([a], U), [out], U)) == [
        "if a > 0:",
        "    v_1 = a + 1",
        "    v = pl.yield_(v_1)",
        "else:",
        "    v = pl.yield_(a)",
    ]


def test_a_free_variable_of_a_function_is_marked():
    free, x = var("ghost"), var("x")
    assert lines(function([x], assign(var("y"), x + free)))[2] == "    y = x + ghost__FREE_VAR"
    assert lines(assign(var("y"), x + free)) == ["y = x + ghost"]


def test_free_variables_with_one_hint_differ():
    assert lines(function([], EvalStmt(var("g") + var("g"), U)))[2] == "    g__FREE_VAR + g_1__FREE_VAR"


def test_variables_in_attributes_print_with_their_names():
    a, b = var("x", TensorType([4], DataType.FP32)), var("x", TensorType([4], DataType.FP32))
    call = Call(Op("tile.f"), [a], {}, {"dump_vars": [b]}, a.type, U)
    assert lines(function([a, b], EvalStmt(call, U)))[2] == '    pl.tile.f(x, attrs={"dump_vars": [x_1]})'


def test_as_binds_a_task_id():
    tid = var("tid", ScalarType(DataType.TASK_ID))
    scope = InCoreScopeStmt(body=EvalStmt(Call(Op("tile.f"), [], U), U), span=U, attrs={"task_id_var": tid})
    assert lines(function([], scope, ReturnStmt([tid], U)))[2:] == [
        "    with pl.at(level=pl.Level.CORE_GROUP) as tid:",
        "        pl.tile.f()",
        "    return tid",
    ]


def test_a_dim_that_nobody_defines_is_no_free_variable():
    n = var("N")
    tensor = var("x", TensorType([n, 4], DataType.FP32))
    func = function([tensor], assign(var("m"), n + 1))
    assert lines(func)[1:] == ["def f(x: pl.Tensor[[N, 4], pl.FP32]):", "    m = N + 1"]


def test_local_variables_avoid_the_names_of_dynamic_dims():
    n, local = var("N"), var("N")
    tensor = var("x", TensorType([n, 4], DataType.FP32))
    program = Program([function([tensor], assign(local, n + 1), ReturnStmt([local], U))], "P", U)
    assert lines(program)[3:] == [
        'N = pl.dynamic("N")',
        "",
        "@pl.program",
        "class P:",
        "    @pl.function",
        "    def f(self, x: pl.Tensor[[N, 4], pl.FP32]):",
        "        N_1 = N + 1",
        "        return N_1",
    ]


def test_names_do_not_depend_on_unique_ids():
    def build():
        a, b = var("x"), var("x")
        return function([a], assign(b, a + ConstInt(1, DataType.INDEX)), ReturnStmt([b], U))

    assert lines(build()) == lines(build())


@given(st.lists(st.sampled_from(["x", "x_1", "x_2", "x_1_1", "y"]), max_size=12), st.sets(st.sampled_from(["x", "y"])))
def test_names_are_distinct_and_keep_their_hint_where_they_can(hints, reserved):
    variables = [var(hint) for hint in hints]
    names = distinct_names(variables, None, reserved)
    assert len(set(names.values())) == len(variables)
    assert not set(names.values()) & reserved
    for variable in variables:
        name, hint = names[variable], variable.name_hint
        assert name == hint or name.startswith(hint + "_")
        if hints.count(hint) == 1 and hint not in reserved:
            assert name == hint
