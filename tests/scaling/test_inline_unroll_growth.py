"""InlineFunctions, UnrollLoops and NormalizeStmtStructure: twice the result, twice the work, however it is nested."""

import pytest
from test_frontend_growth import LIMIT, calls_of

import pypto.language as pl
from pypto import ir
from pypto.passes.inline_functions import inline_functions
from pypto.passes.normalize_stmt_structure import normalize_stmt_structure
from pypto.passes.unroll_loops import unroll_loops

N = 40

HEAD = "import pypto.language as pl\n@pl.program\nclass Grown:\n"
TENSOR = "pl.Tensor[[64, 64], pl.FP32]"
RUN = f"    @pl.function\n    def run(self, x: {TENSOR}, n: pl.Scalar[pl.INDEX]) -> {TENSOR}:\n"
INLINE = "    @pl.function(type=pl.FunctionType.Inline)\n    def {name}(self, x: {tensor}, n: pl.Scalar[pl.INDEX]) -> {tensor}:\n"


def helper(name: str, *lines: str) -> str:
    return INLINE.format(name=name, tensor=TENSOR) + "".join(f"        {line}\n" for line in lines)


def run(*lines: str) -> str:
    return RUN + "".join(f"        {line}\n" for line in lines) + "        return x\n"


STEP = helper("step", "y = pl.add(x, 1.0)", "m = n * 2", "z = pl.slice(y, [8, 64], [m, 0])", "return y")


def many_calls(n: int) -> str:
    return HEAD + STEP + run(*["x = self.step(x, n)"] * n)


def many_functions(n: int) -> str:
    """Each called once."""
    helpers = "".join(helper(f"f{i}", "y = pl.add(x, 1.0)", "return y") for i in range(n))
    return HEAD + helpers + run(*(f"x = self.f{i}(x, n)" for i in range(n)))


def a_chain(n: int) -> str:
    """Each calls the next: what is inside must not be copied once for each level."""
    last = helper(f"f{n}", "y = pl.add(x, 1.0)", "return y")
    chain = "".join(
        helper(f"f{i}", "a = pl.add(x, 2.0)", f"y = self.f{i + 1}(a, n)", "return y") for i in reversed(range(n))
    )
    return HEAD + last + chain + run("x = self.f0(x, n)")


def a_long_body(n: int) -> str:
    return HEAD + helper("long", *["x = pl.add(x, 1.0)"] * n, "return x") + run("x = self.long(x, n)")


def by_value(n: int) -> str:
    return (
        HEAD
        + helper("count", "n = n + 1", "y = pl.slice(x, [64, 64], [n, 0])", "return y")
        + run(*["x = self.count(x, n)"] * n)
    )


def tuples(n: int) -> str:
    pair = helper("pair", "y = pl.add(x, 1.0)", "return y, x").replace(f") -> {TENSOR}:", "):")
    return HEAD + pair + run(*["x, z = self.pair(x, n)", "t = self.pair(x, n)", "x = pl.add(t[0], t[1])"] * n)


def dumps(n: int) -> str:
    kernel = (
        f"    @pl.function(type=pl.FunctionType.InCore)\n    def k(self, x: {TENSOR}) -> {TENSOR}:\n        return x\n"
    )
    text = HEAD + kernel + helper("launch", *["x = self.k(x)"] * n, "return x")
    main = RUN.replace("@pl.function", "@pl.function(type=pl.FunctionType.Orchestration)")
    return text + main + "        pl.dump_tag(x)\n        x = self.launch(x, n)\n        return x\n"


def doubled_arguments(n: int) -> str:
    """Each level hands on twice its number: as a tree the last one would have 2**n leaves."""
    return a_chain(n).replace("(a, n)", "(a, n + n)")


INLINED = [many_calls, many_functions, a_chain, a_long_body, by_value, tuples, dumps, doubled_arguments]


@pytest.mark.parametrize("shape", INLINED)
def test_inlining_grows_linearly(shape):
    inline_functions()(pl.parse(shape(3)))
    small, large = pl.parse(shape(N)), pl.parse(shape(2 * N))
    assert calls_of(lambda: inline_functions()(large)) <= LIMIT * calls_of(lambda: inline_functions()(small))


def test_helpers_that_double():
    """Sixteen levels, each called twice: the work is that of the result."""
    levels = "".join(
        helper(f"f{i}", f"y = self.f{i + 1}(x, n)", f"z = self.f{i + 1}(y, n)", "return z") for i in range(16)
    )

    def text(depth: int) -> str:
        return HEAD + levels + helper("f16", "y = pl.add(x, 1.0)", "return y") + run(f"x = self.f{depth}(x, n)")

    inline_functions()(pl.parse(text(14)))
    small, large = pl.parse(text(9)), pl.parse(text(8))
    assert calls_of(lambda: inline_functions()(large)) <= LIMIT * calls_of(lambda: inline_functions()(small))


def loops(n: int) -> str:
    return HEAD + run(*["for i in pl.unroll(3):", "    x = pl.add(x, 1.0)", "    m = n + i"] * n)


def trips(n: int) -> str:
    return HEAD + run(f"for i in pl.unroll({8 * n}):", "    x = pl.add(x, 1.0)", "    m = n + i")


def loops_inside(n: int) -> str:
    body = ["    for k in pl.range(n):", "        x = pl.add(x, 1.0)", "        m = n + i"] * n
    return HEAD + run("for i in pl.unroll(3):", *body)


def used_behind(n: int) -> str:
    return HEAD + run(*["for i in pl.unroll(2):", "    m = n + i", "m = n + i"] * n)


def nested(n: int, depth: int = 16) -> str:
    """Sixteen loops around n statements; two of them run twice."""
    lines = [f"{'    ' * i}for i{i} in pl.unroll({2 if i in (0, depth - 1) else 1}):" for i in range(depth)]
    return HEAD + run(*lines, *[f"{'    ' * depth}m = n + i0 + i{depth - 1}"] * n)


UNROLLED = [loops, trips, loops_inside, used_behind, nested]


@pytest.mark.parametrize("shape", UNROLLED)
def test_unrolling_grows_linearly(shape):
    unroll_loops()(pl.parse(shape(3)))
    small, large = pl.parse(shape(N)), pl.parse(shape(2 * N))
    assert calls_of(lambda: unroll_loops()(large)) <= LIMIT * calls_of(lambda: unroll_loops()(small))


def test_unrolling_one_level_more_costs_its_copies():
    """Each level of two trips doubles the result: no statement is substituted once for each level."""

    def text(depth: int) -> str:
        lines = [f"{'    ' * i}for i{i} in pl.unroll(2):" for i in range(depth)]
        return HEAD + run(*lines, f"{'    ' * depth}m = n + i0 + i{depth - 1}")

    unroll_loops()(pl.parse(text(3)))
    small, large = pl.parse(text(7)), pl.parse(text(8))
    assert calls_of(lambda: unroll_loops()(large)) <= LIMIT * calls_of(lambda: unroll_loops()(small))


SPAN = ir.Span("grown.py", 1, 1)
V = ir.Var("v", ir.ScalarType(ir.DataType.INDEX), SPAN)


def nested_lists(n: int) -> ir.Program:
    body: ir.Stmt = ir.AssignStmt(V, V, SPAN)
    for _ in range(n):
        body = ir.SeqStmts([body, ir.AssignStmt(V, V, SPAN)], SPAN)
    return ir.Program([ir.Function("f", [V], [], body, SPAN)], "P", SPAN)


def test_normalizing_grows_linearly():
    for shape in (nested_lists, lambda n: pl.parse(loops(n))):
        normalize_stmt_structure()(shape(3))
        small, large = shape(5 * N), shape(10 * N)
        work = [calls_of(lambda program=program: normalize_stmt_structure()(program)) for program in (small, large)]
        assert work[1] <= LIMIT * work[0]
