"""Twice the program, twice the work: calls are counted, so that no clock decides."""

import sys

import pytest

import pypto.language as pl
from pypto import ir

LIMIT = 2.3

HEAD = """\
@pl.program
class Grown:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self, x: pl.Tensor[[256, 64], pl.FP32], n: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[256, 64], pl.FP32]]
    ) -> pl.Tensor[[256, 64], pl.FP32]:
        t = pl.load(x, [0, 0], [16, 64])
"""
TAIL = "        return pl.store(t, [0, 0], y)\n"


def calls_of(function) -> int:
    """Python and C functions called while ``function`` runs."""
    count = 0

    def note(_frame, event, _argument):
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def straight(n: int) -> str:
    return HEAD + "".join(f"        v_{i} = pl.add(t, {i}.0)\n" for i in range(n)) + TAIL


def rebinding(n: int) -> str:
    return HEAD + "        t = pl.add(t, 1.0)\n" * n + TAIL


def chain(n: int) -> str:
    """Each statement reads the one before: types and expressions must not be derived again and again."""
    lines = ["        v_0 = n\n", *(f"        v_{i} = v_{i - 1} * 2 + n\n" for i in range(1, n))]
    return HEAD + "".join(lines) + TAIL


def long_expression(n: int) -> str:
    return HEAD + f"        s = n{' + n * 2' * n}\n" + TAIL


def constant_expression(n: int) -> str:
    return HEAD + f"        s = n + (1{' + 2 * 3' * n})\n" + TAIL


def commented(n: int) -> str:
    return HEAD + "        # about the next statement\n        t = pl.add(t, 1.0)  # why\n" * n + TAIL


def loops(n: int) -> str:
    body = "        for k_{i} in pl.range(4):\n            t = pl.add(t, 1.0)\n            s_{i} = k_{i} + n\n"
    return HEAD + "".join(body.format(i=i) for i in range(n)) + TAIL


def branches(n: int) -> str:
    body = "        if n > {i}:\n            t = pl.add(t, 1.0)\n        else:\n            t = pl.mul(t, 2.0)\n"
    return HEAD + "".join(body.format(i=i) for i in range(n)) + TAIL


def windows(n: int) -> str:
    body = "        w_{i} = x[n * 2 + {k} : n * 2 + {k} + 16, 0:64]\n"
    return HEAD + "".join(body.format(i=i, k=i % 50) for i in range(n)) + TAIL


def dynamic(n: int) -> str:
    """Many symbols, and names that are assigned again."""
    symbols = "".join(f"D{i} = pl.dynamic('D{i}')\n" for i in range(n))
    parameters = "".join(f"        p_{i}: pl.Tensor[[D{i}, 64], pl.FP32],\n" for i in range(n))
    head = HEAD.replace("        self, x", f"        self,\n{parameters}        x")
    return symbols + head + "        t = pl.add(t, 1.0)\n" * n + TAIL


def methods(n: int) -> str:
    one = HEAD.partition("class Grown:\n")[2] + TAIL
    kernels = "".join(one.replace("def kernel", f"def kernel_{i}") + "\n" for i in range(n))
    calls = "".join(f"        y = self.kernel_{i}(x, {i}, y)\n" for i in range(n))
    main = (
        "    @pl.function(type=pl.FunctionType.Orchestration)\n"
        "    def main(self, x: pl.Tensor[[256, 64], pl.FP32], y: pl.Out[pl.Tensor[[256, 64], pl.FP32]])"
        " -> pl.Tensor[[256, 64], pl.FP32]:\n" + calls + "        return y\n"
    )
    return "@pl.program\nclass Grown:\n" + kernels + main


def tasks(n: int) -> str:
    """A chain of submits, each with the one before as dependency."""
    submits = "            y, t_{i} = pl.submit(self.kernel, x, {i}, y, deps=[{before}])\n"
    body = "".join(submits.format(i=i, before=f"t_{i - 1}" if i else "") for i in range(n))
    return (
        HEAD
        + TAIL
        + "\n    @pl.function(type=pl.FunctionType.Orchestration)\n"
        + "    def main(self, x: pl.Tensor[[256, 64], pl.FP32], y: pl.Out[pl.Tensor[[256, 64], pl.FP32]])"
        + " -> pl.Tensor[[256, 64], pl.FP32]:\n        with pl.manual_scope():\n"
        + body
        + "        return y\n"
    )


SHAPES = [
    straight,
    rebinding,
    chain,
    long_expression,
    constant_expression,
    commented,
    loops,
    branches,
    windows,
    dynamic,
    methods,
    tasks,
]
N = 60


@pytest.fixture(scope="module", autouse=True)
def warm():
    """Imports and caches of the first use are no part of the growth."""
    for shape in SHAPES:
        program = pl.parse(shape(4))
        ir.python_print(program, format=False)
        ir.structural_equal(program, pl.parse(shape(4)))
        ir.serialize(program)
        ir.IRMutator().visit_program(program)


@pytest.mark.parametrize("shape", SHAPES)
def test_parsing_grows_linearly(shape):
    small, large = shape(N), shape(2 * N)
    assert calls_of(lambda: pl.parse(large)) <= LIMIT * calls_of(lambda: pl.parse(small))


class WholeTree(ir.IRMutator):
    """Looks at every expression and changes nothing."""

    def visit_var(self, op):
        return super().visit_var(op)


WALKS = {
    "print": lambda program: ir.python_print(program, format=False),
    "mutate": lambda program: WholeTree().visit_program(program),
    "serialize": ir.serialize,
}


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_walk_over_the_ir_grows_linearly(shape, walk):
    small, large = pl.parse(shape(N)), pl.parse(shape(2 * N))
    count = WALKS[walk]
    assert calls_of(lambda: count(large)) <= LIMIT * calls_of(lambda: count(small))


@pytest.mark.parametrize("shape", SHAPES)
def test_comparison_grows_linearly(shape):
    pairs = [(pl.parse(shape(n)), pl.parse(shape(n))) for n in (N, 2 * N)]
    small, large = (calls_of(lambda pair=pair: ir.structural_equal(*pair)) for pair in pairs)
    assert large <= LIMIT * small


def test_the_count_sees_quadratic_work():
    """The measure itself can fail."""

    def quadratic(n):
        return [len(str(j)) for i in range(n) for j in range(i)]

    assert calls_of(lambda: quadratic(2 * N)) > LIMIT * calls_of(lambda: quadratic(N))
