"""UseAfterDef: a definition before each use, also before SSA form."""

import pytest
from verify_kit import HERE, INDEX, expect, findings, holds, main, nodes, program, submit_of, swapped

from pypto import ir
from pypto.ir.node import FrozenDict, FrozenList
from pypto.ir.type import TASK_ID_TYPE
from pypto.verify.codes import UseAfterDefErrorType
from pypto.verify.facts import Facts
from pypto.verify.properties import IRProperty

P = IRProperty.UseAfterDef
CODE = UseAfterDefErrorType.USE_BEFORE_DEF
ONE = ir.ConstInt(1, ir.INDEX)
YES = ir.ConstBool(True)


def var(name, kind=INDEX):
    return ir.Var(name, kind)


def assign(variable, value=ONE, line=3):
    return ir.AssignStmt(variable, value, ir.Span("hand.py", line, 5))


def seq(*stmts):
    return ir.SeqStmts(list(stmts))


def loop(body, iter_args=(), return_vars=(), i=None):
    return ir.ForStmt(i or var("i"), ONE, ONE, ONE, list(iter_args), body, list(return_vars), HERE)


def branch(then, other=None, return_vars=()):
    return ir.IfStmt(YES, then, other, list(return_vars), HERE)


def give(*values):
    return ir.YieldStmt(list(values), HERE)


def function(*stmts, params=(), results=(), **rest):
    return ir.Program([ir.Function("main", list(params), list(results), seq(*stmts), HERE, **rest)], "P")


@pytest.mark.parametrize(
    "body",
    [
        "a = pl.add(x, 1.0)\na = pl.mul(a, a)\nreturn y",
        "for i in pl.range(4):\n    a = pl.add(x, 1.0)\nb = pl.add(a, 1.0)\nreturn y",
        "if n > 2:\n    a = pl.add(x, 1.0)\nb = pl.add(a, 1.0)\nreturn y",
        "if n > 2:\n    b = pl.add(x, 1.0)\nelse:\n    a = pl.add(x, 1.0)\nb = pl.add(a, 1.0)\nreturn y",
        "while n > 2:\n    a = pl.add(x, 1.0)\nb = pl.add(a, 1.0)\nreturn y",
        "with pl.at(level=pl.Level.CORE_GROUP) as t:\n    a = pl.add(x, 1.0)\n"
        "with pl.at(level=pl.Level.CORE_GROUP, deps=[t]):\n    b = pl.add(a, 1.0)\nreturn y",
        "for i, (c,) in pl.range(4, init_values=(y,)):\n    d = self.k(x, c)\n    r = pl.yield_(d)\nreturn r",
        "r, t = pl.submit(self.k, x, y)\nreturn r",
    ],
    ids=["reassigned", "loop", "branch", "both", "while", "scope", "carry", "submit"],
)
def test_names_that_live_on(body):
    holds(P, program(body, kind="Opaque"))


def test_used_before():
    a = var("a")
    node = function(assign(var("b"), a, line=4), assign(a))
    [text] = expect(P, node, CODE)
    assert text == "Variable 'a' used before definition in function 'main'"
    assert findings(P, node)[0].span.begin_line == 4


def test_the_else_branch_does_not_see_the_then_branch():
    a = var("a")
    expect(P, function(branch(assign(a), assign(var("b"), a))), CODE, says="'a'")
    holds(P, function(assign(a), branch(assign(a), assign(var("b"), a))))


def test_with_results_only_these_leave():
    a, b, r = var("a"), var("b"), var("r")
    node = function(branch(seq(assign(a), give(a)), give(ONE), [r]), assign(b, a))
    expect(P, node, CODE, says="'a'")
    holds(P, function(branch(seq(assign(a), give(a)), give(ONE), [r]), assign(b, r)))
    c = ir.IterArg("c", INDEX, ONE)
    for used in (a, c):
        expect(P, function(loop(seq(assign(a), give(a)), [c], [r]), assign(b, used)), CODE)
    holds(P, function(loop(seq(assign(a), give(a)), [c], [r]), assign(b, r)))


def test_a_name_from_before_a_loop_with_results_lives_on():
    a, c, r = var("a"), ir.IterArg("c", INDEX, ONE), var("r")
    holds(P, function(assign(a), loop(seq(assign(a), give(a)), [c], [r]), assign(var("b"), a)))


def test_each_variable_once_and_several_at_once():
    a, b = var("a"), var("b")
    expect(P, function(assign(var("c"), a), assign(var("c"), a), assign(var("d"), b)), CODE, CODE)


def test_types_and_attributes():
    a = var("a")
    kind = ir.TensorType([a, 8], ir.FP32)
    expect(P, function(assign(var("b", kind), ir.Call(ir.Op("f"), [], kind, HERE))), CODE, says="'a'")
    expect(P, function(seq(), attrs=FrozenDict({"width": a})), CODE, says="'a'")
    holds(P, function(seq(), attrs=FrozenDict({"width": a}), params=[a]))
    holds(P, function(assign(var("b"), a), results=[kind]))


def test_call_and_submit_read_alike():
    node = program("r = self.k(x, y)\nreturn r")
    [call] = [c for c in nodes(main(node), ir.Call) if type(c.op) is ir.GlobalVar]
    for other in (call, submit_of(call)):
        wrong = swapped(node, call, other.replace(args=FrozenList([ir.Var("b", call.args[0].type), call.args[1]])))
        expect(P, wrong, CODE, says="'b'")
    dep = ir.Var("dep", TASK_ID_TYPE)
    expect(P, swapped(node, call, submit_of(call, deps=[dep])), CODE, says="'dep'")


def test_ssa_form_says_it_all():
    node = program("r = self.k(x, y)\nreturn r")
    facts = Facts()
    assert facts.establish([IRProperty.SSAForm], node) == []
    before = facts.checks
    assert facts.establish([P], node) == []
    assert facts.checks == before


def test_deep_nesting():
    body = assign(var("a"))
    for _ in range(400):
        body = branch(seq(body))
    holds(P, function(body))
