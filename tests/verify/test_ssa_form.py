"""SSAForm: one definition each, uses inside the scope of the definition, yields that fit."""

import pytest
from verify_kit import HERE, INDEX, expect, findings, holds, main, nodes, program, submit_of, swapped, with_main

from pypto import ir
from pypto.ir.node import FrozenDict, FrozenList
from pypto.ir.stmt import RuntimeScopeStmt
from pypto.ir.type import TASK_ID_TYPE
from pypto.verify.codes import SSAErrorType as Code
from pypto.verify.properties import IRProperty

P = IRProperty.SSAForm
ONE = ir.ConstInt(1, ir.INDEX)
YES = ir.ConstBool(True)
DTYPE = ir.FP32


def at(line: int) -> ir.Span:
    return ir.Span("hand.py", line, 5)


def var(name: str, kind=INDEX) -> ir.Var:
    return ir.Var(name, kind)


def assign(variable, value=ONE, line: int = 3) -> ir.AssignStmt:
    return ir.AssignStmt(variable, value, at(line))


def seq(*stmts) -> ir.Stmt:
    return ir.SeqStmts(list(stmts))


def loop(body, iter_args=(), return_vars=(), i=None, line: int = 5) -> ir.ForStmt:
    return ir.ForStmt(i or var("i"), ONE, ONE, ONE, list(iter_args), body, list(return_vars), at(line))


def branch(then, other=None, return_vars=(), line: int = 6) -> ir.IfStmt:
    return ir.IfStmt(YES, then, other, list(return_vars), at(line))


def give(*values, line: int = 7) -> ir.YieldStmt:
    return ir.YieldStmt(list(values), at(line))


def function(*stmts, params=(), results=(), **rest) -> ir.Program:
    return ir.Program([ir.Function("main", list(params), list(results), seq(*stmts), at(1), **rest)], "P")


def back(*values) -> ir.ReturnStmt:
    return ir.ReturnStmt(list(values), at(9))


# --- programs in SSA form ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        "a = pl.add(x, 1.0)\nb = pl.mul(a, a)\nr = self.k(b, y)\nreturn r",
        "for i, (c,) in pl.range(4, init_values=(y,)):\n    d = self.k(x, c)\n    r = pl.yield_(d)\nreturn r",
        "if n > 2:\n    a = self.k(x, y)\n    r = pl.yield_(a)\nelse:\n    r = pl.yield_(y)\nreturn r",
        "for (c,) in pl.while_(init_values=(n,)):\n    pl.cond(c > 0)\n    d = c - 1\n    r = pl.yield_(d)\nreturn y",
        "for i in pl.range(4):\n    a = pl.add(x, 1.0)\nfor j in pl.range(4):\n    b = pl.add(x, 1.0)\nreturn y",
        "for i in pl.range(n):\n    if i > 2:\n        a = pl.add(x, 1.0)\n    else:\n        b = pl.add(x, 2.0)\nreturn y",
        "with pl.at(level=pl.Level.CORE_GROUP):\n    a = pl.add(x, 1.0)\nb = pl.add(a, 1.0)\nreturn y",
        "with pl.at(level=pl.Level.CORE_GROUP) as t:\n    a = pl.add(x, 1.0)\n"
        "with pl.at(level=pl.Level.CORE_GROUP, deps=[t]):\n    b = pl.add(a, 1.0)\nreturn y",
        "r, t = pl.submit(self.k, x, y)\ns, u = pl.submit(self.k, x, r, deps=[t])\nreturn s",
    ],
    ids=["straight", "for", "if", "while", "locals", "nested", "scope", "task_ids", "submit"],
)
def test_programs_in_ssa_form(body):
    holds(P, program(body, kind="Opaque"))


def test_a_yield_at_the_end_of_a_runtime_scope_is_that_of_the_loop():
    node = program(
        "for i, (c,) in pl.range(4, init_values=(y,)):\n"
        "    with pl.manual_scope():\n        d, t = pl.submit(self.k, x, c)\n        r = pl.yield_(d)\nreturn r"
    )
    [scope] = nodes(main(node), RuntimeScopeStmt)
    assert isinstance(scope.body.stmts[-1], ir.YieldStmt)
    holds(P, node)


def test_a_yield_in_a_runtime_scope_that_does_not_end_the_body_is_misplaced():
    a, c, r = var("a"), ir.IterArg("c", INDEX, ONE), var("r")
    scope = RuntimeScopeStmt(True, body=give(c, line=4), span=HERE)
    expect(P, function(loop(seq(scope, assign(a)), [c], [r]), back()), Code.MISPLACED_YIELD, Code.MISSING_YIELD)
    holds(P, function(loop(seq(assign(a), scope), [c], [r]), back()))


def test_symbols_of_the_signature_are_defined():
    m, k = var("M"), var("K")
    kind = ir.TensorType([m, 8], DTYPE)
    x = var("x", kind)
    out = ir.TensorType([m, k], DTYPE)
    twice = ir.Mul(m, k, ir.INDEX)
    holds(P, function(assign(var("s"), twice), back(), params=[x], results=[out]))
    expect(P, function(assign(var("s"), twice), back(), params=[x]), Code.SCOPE_VIOLATION, says="'K'")


def test_loops_side_by_side_may_share_a_loop_variable():
    i = var("i")
    holds(P, function(loop(assign(var("a"), i), i=i), loop(assign(var("b"), i), i=i), back()))


# --- code 1 -----------------------------------------------------------------------------------------------------------


def test_assigned_twice():
    a = var("a")
    [text] = expect(P, function(assign(a), assign(a, line=4), back()), Code.MULTIPLE_ASSIGNMENT)
    assert "Variable 'a' is assigned more than once (2 times), violating SSA form" in text
    [found] = findings(P, function(assign(a), assign(a, line=4), assign(a, line=8), back()))
    assert "(3 times)" in found.message and found.span.begin_line == 4


def test_branches_that_assign_one_variable():
    a = var("a")
    expect(P, function(branch(assign(a), assign(a)), back()), Code.MULTIPLE_ASSIGNMENT, says="'a'")


def test_results_count_as_assignments():
    a = var("a")
    expect(P, function(assign(a), branch(give(ONE), give(ONE), [a]), back()), Code.MULTIPLE_ASSIGNMENT)
    c = ir.IterArg("c", INDEX, ONE)
    expect(P, function(assign(a), loop(give(c), [c], [a]), back()), Code.MULTIPLE_ASSIGNMENT)


@pytest.mark.parametrize("what", ["parameter", "loop variable", "iter_arg"])
def test_what_is_bound_may_not_be_assigned(what):
    p, i, c = var("p"), var("i"), ir.IterArg("c", INDEX, ONE)
    target = {"parameter": p, "loop variable": i, "iter_arg": c}[what]
    node = function(loop(seq(assign(target), give(c)), [c], [var("r")], i), back(), params=[p])
    expect(P, node, Code.MULTIPLE_ASSIGNMENT, says=f"'{target.name_hint}'")


def test_nested_loops_may_not_share_a_loop_variable():
    i = var("i")
    expect(P, function(loop(loop(assign(var("a"), i), i=i), i=i), back()), Code.MULTIPLE_ASSIGNMENT, says="'i'")


def test_one_name_for_two_variables_is_fine():
    holds(P, function(assign(var("a")), assign(var("a")), back()))


def test_the_placeholder_and_its_scope_define_one_task_id():
    text = "with pl.at(level=pl.Level.CORE_GROUP) as t:\n    a = pl.add(x, 1.0)\nreturn y"
    node = program(text, kind="Opaque")
    assert isinstance(main(node).body.stmts[0], ir.AssignStmt)
    holds(P, node)
    [scope] = nodes(main(node), ir.InCoreScopeStmt)
    again = scope.replace(body=seq())
    body = main(node).body
    doubled = with_main(node, body=body.replace(stmts=FrozenList([*body.stmts[:2], again, *body.stmts[2:]])))
    expect(P, doubled, Code.MULTIPLE_ASSIGNMENT, says="'t'")


# --- code 6 -----------------------------------------------------------------------------------------------------------


def test_used_behind_the_loop_that_defines_it():
    a = var("a")
    node = function(loop(assign(a)), assign(var("b"), a, line=8), back())
    [text] = expect(P, node, Code.SCOPE_VIOLATION)
    assert "Variable 'a' used outside its defining scope" in text and "has ended" in text
    assert findings(P, node)[0].span.begin_line == 8


def test_the_message_shows_the_lines_around():
    a = var("a")
    [text] = expect(P, function(loop(assign(a)), assign(var("b"), a), back()), Code.SCOPE_VIOLATION)
    assert text.split("\n")[1:] == ["    for i in pl.range(1, 1):", "  > b = a", "    return"]


@pytest.mark.parametrize("place", ["then in else", "behind a branch", "loop variable", "iter_arg", "nowhere", "before"])
def test_uses_outside(place):
    a, i, c = var("a"), var("i"), ir.IterArg("c", INDEX, ONE)
    use = assign(var("b"), a)
    node = {
        "then in else": lambda: function(branch(assign(a), use), back()),
        "behind a branch": lambda: function(branch(assign(a)), use, back()),
        "loop variable": lambda: function(loop(seq(), i=i), assign(var("b"), i), back()),
        "iter_arg": lambda: function(loop(give(c), [c], [var("r")]), assign(var("b"), c), back()),
        "nowhere": lambda: function(use, back()),
        "before": lambda: function(use, assign(a), back()),
    }[place]()
    expect(P, node, Code.SCOPE_VIOLATION)


def test_each_variable_is_reported_once():
    a = var("a")
    expect(P, function(assign(var("b"), a), assign(var("c"), a), back(a)), Code.SCOPE_VIOLATION)


def test_a_use_in_every_place_counts():
    a, t = var("a"), var("t", TASK_ID_TYPE)
    tensor = ir.TensorType([8, 8], DTYPE)
    x = var("x", tensor)
    open_type = ir.TensorType([a, 8], DTYPE)
    call = ir.Call(ir.Op("tensor.adds"), [x, ONE], {}, {}, tensor, HERE)
    places = {
        "call type": assign(var("b", tensor), ir.Call(ir.Op("f"), [], open_type, HERE)),
        "variable type": assign(var("b", open_type), call),
        "valid shape": assign(
            var("b", ir.TensorType([8, 8], DTYPE, tensor_view=ir.TensorView([], ir.TensorLayout.ND, [a, 8]))), call
        ),
        "tuple type": assign(var("b", ir.TupleType([tensor, open_type])), call),
        "call attribute": assign(var("b", tensor), ir.Call(call.op, call.args, {}, {"core_num": a}, tensor, HERE)),
        "keyword": assign(var("b", tensor), ir.Call(call.op, call.args, {"k": a}, {}, tensor, HERE)),
        "list attribute": assign(var("b", tensor), ir.Call(call.op, [x], {}, {"dump_vars": [a]}, tensor, HERE)),
        "nested": assign(var("b"), ir.Add(ir.MakeTuple([ONE, ir.Neg(a, ir.INDEX)]), ONE, ir.INDEX)),
        "tuple item": assign(var("b"), ir.TupleGetItemExpr(ir.MakeTuple([a, ONE]), 0)),
        "submit": assign(
            var("b", TASK_ID_TYPE), submit_of(ir.Call(ir.GlobalVar("k"), [a], TASK_ID_TYPE, HERE), deps=[t])
        ),
        "dependency": assign(
            var("b", TASK_ID_TYPE), submit_of(ir.Call(ir.GlobalVar("k"), [], TASK_ID_TYPE, HERE), deps=[a])
        ),
        "core_num": assign(
            var("b", TASK_ID_TYPE), submit_of(ir.Call(ir.GlobalVar("k"), [], TASK_ID_TYPE, HERE), core_num=a)
        ),
        "predicate": assign(
            var("b", TASK_ID_TYPE),
            submit_of(ir.Call(ir.GlobalVar("k"), [], TASK_ID_TYPE, HERE), predicate=ir.Gt(a, ONE, ir.BOOL)),
        ),
        "condition": ir.IfStmt(ir.Gt(a, ONE, ir.BOOL), seq(), None, [], HERE),
        "bound": ir.ForStmt(var("i"), ONE, a, ONE, [], seq(), [], HERE),
        "initial value": loop(seq(give(ONE)), [ir.IterArg("c", INDEX, a)], [var("r")]),
        "while": ir.WhileStmt(ir.Gt(a, ONE, ir.BOOL), [], seq(), [], HERE),
        "scope attribute": ir.InCoreScopeStmt(body=seq(), span=HERE, attrs={"manual_dep_edges": [a]}),
        "launch width": ir.SpmdScopeStmt(a, body=seq(), span=HERE),
        "expression statement": ir.EvalStmt(ir.Call(ir.Op("f"), [a], HERE), HERE),
        "memory reference": assign(
            var("b", ir.TileType([8, 8], DTYPE, ir.MemRef(var("mem_vec_0"), a, 256), None, ir.MemorySpace.Vec)), call
        ),
    }
    for place, stmt in places.items():
        node = function(assign(t, ir.Call(ir.Op("system.task_invalid"), [], TASK_ID_TYPE, HERE)), stmt, params=[x])
        codes = [d.error_code for d in findings(P, node)]
        assert codes == [Code.SCOPE_VIOLATION], place
        assert "'a'" in findings(P, node)[0].message, place
    attrs = FrozenDict({"width": a})
    expect(P, function(back(), attrs=attrs), Code.SCOPE_VIOLATION, says="'a'")


def test_types_of_carries_and_results_do_not_mention_the_loop_variable():
    i = var("i")
    kind = ir.TensorType([i, 8], DTYPE)
    x = var("x", ir.TensorType([8, 8], DTYPE))
    c = ir.IterArg("c", kind, x)
    expect(P, function(loop(give(x), [c], [var("r", x.type)], i), back(), params=[x]), Code.SCOPE_VIOLATION, says="'i'")
    c = ir.IterArg("c", x.type, x)
    expect(P, function(loop(give(x), [c], [var("r", kind)], i), back(), params=[x]), Code.SCOPE_VIOLATION, says="'i'")


def test_types_of_carries_may_mention_other_carries():
    x = var("x", ir.TensorType([8, 8], DTYPE))
    n = ir.IterArg("n", INDEX, ONE)
    c = ir.IterArg("c", ir.TensorType([n, 8], DTYPE), x)
    m = var("m")
    r = var("r", ir.TensorType([m, 8], DTYPE))
    holds(P, function(loop(give(x, n), [c, n], [r, m]), back(), params=[x]))


def test_call_and_submit_read_alike():
    node = program("a = pl.add(x, 1.0)\nr = self.k(a, y)\nreturn r")
    [call] = [c for c in nodes(main(node), ir.Call) if type(c.op) is ir.GlobalVar]
    for other in (call, submit_of(call)):
        wrong = swapped(node, call, other.replace(args=FrozenList([ir.Var("b", call.args[0].type), call.args[1]])))
        expect(P, wrong, Code.SCOPE_VIOLATION, says="'b'")


# --- yields -----------------------------------------------------------------------------------------------------------


def test_missing_yields():
    c, r = ir.IterArg("c", INDEX, ONE), var("r")
    says = "must have YieldStmt as last statement"
    expect(P, function(loop(assign(var("a")), [c], [r]), back()), Code.MISSING_YIELD, says=says)
    expect(P, function(loop(seq(), [c], [r]), back()), Code.MISSING_YIELD, says=says)
    expect(P, function(branch(assign(var("a")), give(ONE), [r]), back()), Code.MISSING_YIELD, says=says)
    expect(P, function(branch(give(ONE), seq(), [r]), back()), Code.MISSING_YIELD, says=says)
    expect(P, function(branch(give(ONE), None, [r]), back()), Code.MISSING_YIELD, says="must have else branch")
    w = ir.WhileStmt(YES, [c], seq(), [r], HERE)
    expect(P, function(w, back()), Code.MISSING_YIELD, says=says)


def test_counts():
    c, d, r, s = ir.IterArg("c", INDEX, ONE), ir.IterArg("d", INDEX, ONE), var("r"), var("s")
    expect(P, function(loop(give(c), [c, d], [r]), back()), Code.ITER_ARGS_RETURN_VARS_MISMATCH, says="(2)")
    says = "YieldStmt value count (1) != return_vars count (2)"
    expect(P, function(loop(give(c), [c, d], [r, s]), back()), Code.YIELD_COUNT_MISMATCH, says=says)
    expect(P, function(branch(give(ONE, ONE), give(ONE), [r, s]), back()), Code.YIELD_COUNT_MISMATCH, says=says)
    expect(P, function(ir.WhileStmt(YES, [c, d], give(c), [r, s], HERE), back()), Code.YIELD_COUNT_MISMATCH, says=says)


def test_a_yield_in_the_middle_of_a_body():
    c, r = ir.IterArg("c", INDEX, ONE), var("r")
    says = "YieldStmt before the terminating position"
    node = function(loop(seq(give(c, line=6), assign(var("a")), give(c)), [c], [r]), back())
    expect(P, node, Code.MISPLACED_YIELD, says=says)
    assert findings(P, node)[0].span.begin_line == 6
    expect(P, function(branch(seq(give(ONE), assign(var("a")))), back()), Code.MISPLACED_YIELD, says=says)


def test_a_yield_in_a_kernel_scope_ends_no_body():
    c, r = ir.IterArg("c", INDEX, ONE), var("r")
    scope = ir.InCoreScopeStmt(body=give(c), span=HERE)
    expect(P, function(loop(scope, [c], [r]), back()), Code.MISPLACED_YIELD, Code.MISSING_YIELD)


def test_several_findings_at_once():
    a, b = var("a"), var("b")
    node = function(
        assign(a), assign(a), loop(assign(b)), assign(var("c"), b), branch(give(ONE), None, [var("r")]), back()
    )
    assert [d.error_code for d in findings(P, node)] == [
        Code.SCOPE_VIOLATION,
        Code.MISSING_YIELD,
        Code.MULTIPLE_ASSIGNMENT,
    ]


def test_deep_nesting():
    body = assign(var("a"))
    for _ in range(400):
        body = loop(seq(body))
    holds(P, function(body, back()))
    a = var("a")
    body = assign(var("b"), a)
    for _ in range(400):
        body = branch(seq(body))
    assert [d.error_code for d in findings(P, function(body, back()))] == [Code.SCOPE_VIOLATION]


def test_a_long_expression():
    e = ONE
    for _ in range(5000):
        e = ir.Add(e, ONE, ir.INDEX)
    holds(P, function(assign(var("a"), e), back()))
