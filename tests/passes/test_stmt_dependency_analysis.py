"""The order among the statements of a region."""

import textwrap

import pytest

import pypto
import pypto.language as pl
from pypto import ir
from pypto.passes.stmt_dependency_analysis import (
    StmtDependencyGraph,
    build_stmt_dependency_graph,
    check_inout_use_discipline,
)
from pypto.verify.diagnostics import VerificationError

HEAD = """
import pypto.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[8, 8], pl.FP32], b: pl.Out[pl.Tensor[[8, 8], pl.FP32]]) -> pl.Tensor[[8, 8], pl.FP32]:
        r = pl.store(pl.load(a, [0, 0], [8, 8]), [0, 0], b)
        return r
    @pl.function{kind}
    def main(self, x: pl.Tensor[[8, 8], pl.FP32], n: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[8, 8], pl.FP32]]
             ) -> pl.Tensor[[8, 8], pl.FP32]:
"""


def parse(body, kind=""):
    return pl.parse(HEAD.replace("{kind}", kind) + textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8) + "\n")


def order(body, with_program=True, kind=""):
    """For each statement the positions of those that it must follow directly."""
    program = parse(body, kind)
    region = program.get_function("main").body
    graph = build_stmt_dependency_graph(region, program if with_program else None)
    position = {stmt: i for i, stmt in enumerate(graph.stmts)}
    return [[position[p] for p in graph.get_predecessors(stmt)] for stmt in graph.stmts]


def test_a_use_follows_its_definition():
    assert order("a = pl.add(x, 1.0)\nb = pl.add(x, 2.0)\nc = pl.add(a, b)\nreturn c") == [[], [], [0, 1], [2]]


def test_uses_inside_a_construct_belong_to_it():
    body = """
    a = pl.add(x, 1.0)
    for i in pl.range(4):
        if i > n:
            b = pl.add(a, 1.0)
    c = pl.add(x, 1.0)
    return c
    """
    assert order(body) == [[], [0], [], [2]]


def test_results_and_what_a_construct_assigns():
    body = """
    for i, (s,) in pl.range(4, init_values=(x,)):
        t = pl.add(s, 1.0)
        r = pl.yield_(t)
    a = pl.add(r, 1.0)
    return a
    """
    assert order(body) == [[], [0], [1]]


def test_variables_that_are_assigned_again():
    body = "a = pl.add(x, 1.0)\nb = pl.add(a, 1.0)\na = pl.add(x, 2.0)\nc = pl.add(a, 1.0)\nreturn c"
    assert order(body) == [[], [0], [0, 1], [2], [3]]


def test_types_and_attributes_are_uses():
    program = parse("a = pl.add(x, 1.0)\nreturn a")
    a, m = program.get_function("main").body.stmts[0], ir.Var("m", ir.ScalarType(ir.INDEX))
    first = ir.AssignStmt(m, ir.ConstInt(4, ir.INDEX), ir.Span.unknown())
    kind = ir.TensorType([m, 8], ir.FP32)
    typed = ir.AssignStmt(ir.Var("b", kind), a.value, ir.Span.unknown())
    call = ir.Call(a.value.op, a.value.args, {}, {"hint.m": m}, a.value.type, ir.Span.unknown())
    noted = ir.AssignStmt(ir.Var("c", a.var.type), call, ir.Span.unknown())
    graph = build_stmt_dependency_graph(ir.SeqStmts([first, typed, noted], ir.Span.unknown()))
    assert graph.get_predecessors(typed) == [first]
    assert graph.get_predecessors(noted) == [first]


@pytest.mark.parametrize("launch", ["r = self.k(x, y)", "r, t = pl.submit(self.k, x, y)"])
def test_an_argument_that_is_written_is_ordered_behind_its_readers(launch):
    body = f"a = pl.add(y, 1.0)\n{launch}\nreturn a"
    assert order(body)[1] == [0]
    assert order(body, with_program=False)[1] == []


def test_an_operand_that_an_op_writes():
    body = "t = pl.load(y, [0, 0], [8, 8])\npl.store(t, [0, 0], y)\nu = pl.load(y, [0, 0], [8, 8])\npl.store(u, [0, 0], y)\nreturn y"
    assert order(body, kind="(type=pl.FunctionType.InCore)") == [[], [0], [1], [1, 2], [3]]


def test_regions():
    program = parse("a = pl.add(x, 1.0)\nreturn a")
    function = program.get_function("main")
    graph = build_stmt_dependency_graph(function)
    assert isinstance(graph, StmtDependencyGraph) and graph.stmts == list(function.body.stmts)
    one = function.body.stmts[0]
    single = build_stmt_dependency_graph(one)
    assert single.stmts == [one] and single.get_predecessors(one) == []
    assert single.get_predecessors(function.body.stmts[1]) == []
    assert StmtDependencyGraph().stmts == []


def test_the_discipline_raises():
    program = parse("r = self.k(x, y)\nz = pl.add(y, 1.0)\nreturn r")
    function = program.get_function("main")
    for region in (function, function.body):
        with pytest.raises(pypto.Error, match="variable 'y' was passed as InOut/Out at") as info:
            check_inout_use_discipline(region, program)
        assert type(info.value) is VerificationError and "InOutUseDiscipline" in str(info.value)
    check_inout_use_discipline(function.body, ir.Program([function], "P"))
    right = parse("r = self.k(x, y)\nz = pl.add(r, 1.0)\nreturn r")
    check_inout_use_discipline(right.get_function("main").body, right)


def test_the_submodule_of_passes():
    from pypto import passes

    assert passes.stmt_dependency_analysis.build_stmt_dependency_graph is build_stmt_dependency_graph
