"""NormalizeStmtStructure: lists become flat in every body; nothing else changes."""

import pytest
from spec_kit import parse

from pypto import ir
from pypto.ir.stmt import SCOPE_CLASSES
from pypto.passes.normalize_stmt_structure import normalize_stmt_structure
from pypto.verify.properties import IRProperty, property_set
from pypto.verify.registry import verify_all

SPAN = ir.Span("case.py", 3, 1)
N = ir.Var("n", ir.ScalarType(ir.DataType.INDEX), SPAN)
ZERO = ir.ConstInt(0, ir.DataType.INDEX, SPAN)
ONE = ir.ConstInt(1, ir.DataType.INDEX, SPAN)


def assign(name):
    return ir.AssignStmt(ir.Var(name, ir.ScalarType(ir.DataType.INDEX), SPAN), N, SPAN)


def seq(*stmts):
    """As it is given: the plain constructor."""
    return ir.SeqStmts(list(stmts), SPAN)


def function(body, **more):
    return ir.Function("f", [N], [], body, SPAN, **more)


def normalized(body, **more):
    before = ir.Program([function(body, **more)], "P", SPAN)
    after = normalize_stmt_structure()(before)
    assert normalize_stmt_structure()(after) is after
    assert verify_all(property_set(IRProperty.NormalizedStmtStructure), after) == []
    return after.get_function("f")


A, B, C = assign("a"), assign("b"), assign("c")


def test_nested_lists_are_spliced():
    after = normalized(seq(seq(A), seq(B, seq(C))))
    assert list(after.body.stmts) == [A, B, C]
    assert after.body.span is SPAN


def test_a_list_of_one_is_that_statement():
    assert normalized(seq(seq(seq(A)))).body is A


def test_empty_lists():
    assert list(normalized(seq()).body.stmts) == []
    assert list(normalized(seq(seq(), seq(seq()))).body.stmts) == []
    assert normalized(seq(seq(), A, seq())).body is A


def for_loop(body):
    return ir.ForStmt(assign("i").var, ZERO, N, ONE, [], body, [], SPAN)


def branch(body):
    return ir.IfStmt(N < 3, body, None, [], SPAN)


def else_branch(body):
    return ir.IfStmt(N < 3, seq(), body, [], SPAN)


def while_loop(body):
    return ir.WhileStmt(N < 3, [], body, [], SPAN)


@pytest.mark.parametrize("wrap", [for_loop, branch, while_loop])
def test_bodies(wrap):
    after = normalized(seq(wrap(seq(seq(A))), wrap(seq(seq(B), C)))).body
    inner = [stmt.then_body if isinstance(stmt, ir.IfStmt) else stmt.body for stmt in after.stmts]
    assert inner[0] is A and list(inner[1].stmts) == [B, C]


def test_an_empty_branch_stays_beside_a_flattened_one():
    after = normalized(else_branch(seq(B))).body
    assert list(after.then_body.stmts) == [] and after.else_body is B


SCOPES = {
    "InCoreScopeStmt": lambda cls, body: cls(body=body, span=SPAN),
    "ClusterScopeStmt": lambda cls, body: cls(body=body, span=SPAN),
    "RuntimeScopeStmt": lambda cls, body: cls(body=body, span=SPAN),
    "HierarchyScopeStmt": lambda cls, body: cls(ir.Level.HOST, body=body, span=SPAN),
    "SpmdScopeStmt": lambda cls, body: cls(4, body=body, span=SPAN),
    "SplitAivScopeStmt": lambda cls, body: cls(ir.SplitMode.UP_DOWN, body=body, span=SPAN),
    "CommDomainScopeStmt": lambda cls, body: cls([], [], body=body, span=SPAN),
}


@pytest.mark.parametrize("cls", SCOPE_CLASSES)
def test_scope_bodies(cls):
    scope = SCOPES[cls.__name__](cls, seq(seq(A), seq(B)))
    after = normalized(scope).body
    assert type(after) is cls and list(after.body.stmts) == [A, B]


def test_comments_attributes_and_kind_stay():
    commented = ir.attach_leading_comments(assign("d"), ["why"])
    scope = ir.attach_leading_comments(
        ir.InCoreScopeStmt(name_hint="k", body=seq(commented), span=SPAN, attrs={"windowize": True}), ["about"]
    )
    after = normalized(seq(scope), attrs={"mark": 1}, requires_runtime_binding=True)
    assert after.attrs == {"mark": 1} and after.requires_runtime_binding
    assert after.body.leading_comments == ["about"] and after.body.attrs == {"windowize": True}
    assert after.body.body is commented and commented.leading_comments == ["why"]


def test_a_flat_function_comes_back_itself():
    program = parse(
        """
        @Opaque
        def f(self, x: f32[8, 8], n: idx) -> f32[8, 8]:
            for i in pl.range(n):
                if i > 2:
                    x = pl.add(x, 1.0)
                    x = pl.mul(x, 2.0)
                else:
                    x = pl.exp(x)
            while n > 0:
                n = n - 1
            with pl.at(level=pl.Level.CORE_GROUP):
                x = pl.add(x, 1.0)
            return x
        """
    )
    assert normalize_stmt_structure()(program) is program


def test_only_the_function_that_changes_is_a_new_object():
    flat = ir.Function("flat", [N], [], seq(A, B), SPAN)
    program = ir.Program([flat, function(seq(seq(A), B))], "P", SPAN)
    after = normalize_stmt_structure()(program)
    assert after is not program and after.get_function("flat") is flat


def test_a_yield_in_the_middle_is_left_for_the_verifier():
    loop = for_loop(seq(seq(ir.YieldStmt([], SPAN)), A))
    after = normalize_stmt_structure()(ir.Program([function(loop)], "P", SPAN))
    assert [type(s).__name__ for s in after.get_function("f").body.body.stmts] == ["YieldStmt", "AssignStmt"]
    assert verify_all(property_set(IRProperty.NormalizedStmtStructure), after)


def test_lists_nested_very_deep():
    body = A
    for _ in range(5000):
        body = ir.SeqStmts([body, B], SPAN)
    assert list(normalized(body).body.stmts) == [A, *[B] * 5000]


def test_properties():
    p = normalize_stmt_structure()
    assert p.get_name() == "NormalizeStmtStructure"
    assert p.get_produced_properties() == property_set(IRProperty.NormalizedStmtStructure)
    assert p.get_required_properties().empty() and p.get_invalidated_properties().empty()
