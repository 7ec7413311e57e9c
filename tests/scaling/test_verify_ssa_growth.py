"""The verifiers of definitions, types and launches, the checks, and the order of statements: twice the function, twice
the work, however deep it nests."""

import pytest
from test_frontend_growth import LIMIT, calls_of

import pypto.language as pl
from pypto.analysis.inout_use import stale_reads
from pypto.analysis.stmt_dependencies import build_stmt_dependency_graph
from pypto.verify.checks import DiagnosticCheckRegistry, DiagnosticPhase
from pypto.verify.properties import IRProperty
from pypto.verify.registry import VERIFIERS

HEAD = """
import pypto.language as pl
M = pl.dynamic("M")
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, a: pl.Tensor[[M, 8], pl.FP32], b: pl.InOut[pl.Tensor[[M, 8], pl.FP32]]) -> pl.Tensor[[M, 8], pl.FP32]:
        r = pl.store(pl.load(a, [0, 0], [8, 8]), [0, 0], b)
        return r
    @pl.function
    def main(self, x: pl.Tensor[[M, 8], pl.FP32], n: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[M, 8], pl.FP32]]
             ) -> pl.Tensor[[M, 8], pl.FP32]:
"""
PAD = " " * 8


def lines(n, one):
    return "".join(PAD + line + "\n" for i in range(n) for line in one.format(i=i).split("\n"))


def straight(n):
    return lines(n, "v_{i} = pl.add(x, {i}.0)\nw_{i} = pl.mul(v_{i}, v_{i})")


def scalars(n):
    return lines(n, "s_{i} = n * 2 + {i}\nv_{i} = pl.slice(x, [8, 8], [s_{i} * 8, 0])")


def launches(n):
    """Without rebinding: every variable that was written stays dead."""
    return lines(n, "a_{i} = pl.create_tensor([M, 8], dtype=pl.FP32)\nb_{i} = self.k(x, a_{i})")


def submits(n):
    return lines(n, "y, t_{i} = pl.submit(self.k, x, y)")


def carries(n):
    return lines(
        n,
        "for i_{i}, (c_{i},) in pl.range(4, init_values=(y,)):\n    d_{i} = self.k(x, c_{i})\n    y = pl.yield_(d_{i})",
    )


def loops(n):
    return lines(n, "for i_{i} in pl.range(4):\n    y = self.k(x, y)\n    v_{i} = pl.add(x, 1.0)")


def branches(n):
    return lines(n, "if n > {i}:\n    v_{i} = pl.add(x, 1.0)\n    y = self.k(x, y)\nelse:\n    w_{i} = pl.neg(x)")


def escapes(n):
    return lines(n, "while n > {i}:\n    if n > 4:\n        y = self.k(x, y)\n        break\n    y = self.k(x, y)")


def scopes(n):
    return lines(n, "with pl.at(level=pl.Level.CORE_GROUP) as t_{i}:\n    v_{i} = pl.add(x, 1.0)")


SHAPES = [straight, scalars, launches, submits, carries, loops, branches, escapes, scopes]


def deep(depth, width):
    """Loops and branches in one another; each level launches and defines, and leaves variables dead."""
    text, pad = "", PAD
    for d in range(depth):
        text += pad + (f"for i_{d} in pl.range(n):\n", f"if n > {d}:\n", f"while n > {d}:\n")[d % 3]
        pad += "    "
        for w in range(width):
            text += f"{pad}a_{d}_{w} = pl.create_tensor([M, 8], dtype=pl.FP32)\n{pad}b_{d}_{w} = self.k(x, a_{d}_{w})\n"
    return text


def nested_loops(depth):
    """Only loops: each body is walked a fixed number of times, not once more for each loop around it."""
    text, pad = "", PAD
    for d in range(depth):
        text += f"{pad}for i_{d} in pl.range(n):\n"
        pad += "    "
        text += f"{pad}a_{d} = pl.create_tensor([M, 8], dtype=pl.FP32)\n{pad}b_{d} = self.k(x, a_{d})\n"
    return text


def verifier(prop):
    def run(program):
        for function in program.functions.values():
            VERIFIERS[prop].run(function, program)

    return run


def checks(program):
    DiagnosticCheckRegistry.run_checks(DiagnosticCheckRegistry.get_all_checks(), DiagnosticPhase.PRE_PIPELINE, program)


def dependencies(program):
    build_stmt_dependency_graph(program.get_function("main"), program)


WORK = {
    "UseAfterDef": verifier(IRProperty.UseAfterDef),
    "SSAForm": verifier(IRProperty.SSAForm),
    "TypeChecked": verifier(IRProperty.TypeChecked),
    "InOutUseValid": verifier(IRProperty.InOutUseValid),
    "checks": checks,
    "dependencies": dependencies,
}


def parsed(body):
    return pl.parse(HEAD + body + PAD + "return y\n")


def work(body, run):
    """Calls made on a program that was not looked at before."""
    program = parsed(body)
    return calls_of(lambda: run(program))


@pytest.fixture(scope="module", autouse=True)
def warm():
    for shape in SHAPES:
        for run in WORK.values():
            run(parsed(shape(2)))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
@pytest.mark.parametrize("name", WORK)
def test_linear(name, shape):
    run = WORK[name]
    assert work(shape(120), run) <= LIMIT * work(shape(60), run)


@pytest.mark.parametrize("name", WORK)
def test_linear_at_depth_16(name):
    run = WORK[name]
    assert work(deep(16, 12), run) <= LIMIT * work(deep(16, 6), run)
    assert work(deep(16, 6), run) <= LIMIT * work(deep(8, 6), run)


@pytest.mark.parametrize("name", WORK)
def test_nested_loops_do_not_multiply(name):
    run = WORK[name]
    assert work(nested_loops(16), run) <= LIMIT * work(nested_loops(8), run)


def test_every_loop_is_walked_at_most_twice(monkeypatch):
    """All loops leave something dead, so the second walk is needed, and only that."""
    from pypto.analysis import inout_use

    entered = []
    loop = inout_use._Walk._for
    monkeypatch.setitem(inout_use._STATEMENTS, pl_for(), lambda walk, stmt: entered.append(stmt) or loop(walk, stmt))
    program = parsed(nested_loops(16))
    assert stale_reads(program.get_function("main").body, program) == []
    assert len(entered) == 2 * 16 and len(set(entered)) == 16


def pl_for():
    from pypto.ir.stmt import ForStmt

    return ForStmt
