"""Simplify: twice the program, twice the work. Calls are counted, so that no clock decides."""

import sys
import textwrap

import pytest

import pypto.language as pl
from pypto.passes.simplify import simplify

LIMIT = 2.3

HEAD = """\
@pl.program
class Grown:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self, x: pl.Tensor[[256, 64], pl.FP32], n: pl.Scalar[pl.INDEX], m: pl.Scalar[pl.INDEX],
        y: pl.Out[pl.Tensor[[256, 64], pl.FP32]]
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


def kernel(*parts: str) -> str:
    return HEAD + textwrap.indent("".join(parts), " " * 8) + TAIL


def straight(n: int) -> str:
    return kernel("t = pl.add(t, 1.0)\n" * n)


def constants(n: int) -> str:
    lines = (f"c{i} = {i}\nt{i} = pl.load(x, [n * c{i} + c{i}, 0], [16, 64])\n" for i in range(n))
    return kernel(*lines)


def scalar_chain(n: int) -> str:
    """Each scalar is computed from the one before, and the last one is used in a condition."""
    lines = (f"v{i} = v{i - 1} * 2 + n\n" for i in range(1, n))
    return kernel("v0 = n\n", *lines, f"if v{n - 1} % 3 < 8:\n    t = pl.add(t, 1.0)\n")


def dead_chain(n: int) -> str:
    return kernel("v0 = n\n", *(f"v{i} = v{i - 1} * 2 + n\n" for i in range(1, n)))


def loops(n: int) -> str:
    text = "for i{k} in pl.range(n):\n    for j{k} in pl.range(4):\n        t = pl.load(x, [i{k} * 16 + j{k} % 4, 0], [16, 64])\n"
    return kernel(*(text.format(k=k) for k in range(n)))


def folded_loops(n: int) -> str:
    text = "for i{k}, (a{k},) in pl.range(n, n + 1, init_values=(t{p},)):\n    b{k} = pl.add(a{k}, 1.0)\n    t{k} = pl.yield_(b{k})\n"
    return kernel("t0 = pl.add(t, 1.0)\n", *(text.format(k=k, p=k - 1) for k in range(1, n)))


def branches(n: int) -> str:
    text = "v{k} = n - {k}\nif v{k} < m:\n    t = pl.load(x, [pl.min(v{k}, m), 0], [16, 64])\nelse:\n    t = pl.add(t, 1.0)\n"
    return kernel(*(text.format(k=k) for k in range(n)))


def decided_branches(n: int) -> str:
    text = "if {k} < 7:\n    s{k} = pl.add(t, 1.0)\n    r{k} = pl.yield_(s{k})\nelse:\n    r{k} = pl.yield_(t)\nu{k} = pl.add(r{k}, 1.0)\n"
    return kernel(*(text.format(k=k) for k in range(n)))


def dead_results(n: int) -> str:
    """Each unused result is fed by the one before."""
    text = "if n < {k}:\n    r{k} = pl.yield_(r{p} + 1)\nelse:\n    r{k} = pl.yield_(r{p} * 2)\n"
    return kernel("r0 = n\n", *(text.format(k=k, p=k - 1) for k in range(1, n)))


def in_one_branch(n: int) -> str:
    """Many questions under one condition."""
    text = "    if n < m + {k}:\n        t = pl.load(x, [pl.min(n, m + {k}) % 8, 0], [16, 64])\n"
    return kernel("if n < m:\n    t = pl.add(t, 1.0)\n", *(text.format(k=k) for k in range(n)))


def narrow(n: int) -> str:
    text = "w{k} = pl.cast(n, pl.INT32) + pl.const({k}, pl.INT32)\nif w{k} < 4:\n    t = pl.add(t, 1.0)\n"
    return kernel(*(text.format(k=k) for k in range(n)))


SHAPES = [
    straight,
    constants,
    scalar_chain,
    dead_chain,
    loops,
    folded_loops,
    branches,
    decided_branches,
    dead_results,
    in_one_branch,
    narrow,
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_twice_the_program_is_twice_the_work(shape):
    step = simplify()
    step(pl.parse(shape(4)))  # what is made on first use
    small, large = pl.parse(shape(30)), pl.parse(shape(60))
    once, twice = calls_of(lambda: step(small)), calls_of(lambda: step(large))
    assert twice <= LIMIT * once, f"{once} calls, then {twice}"


def nested(depth: int, loop: bool) -> str:
    lines = []
    for level in range(depth):
        indent = "    " * level
        lines.append(f"{indent}for i{level} in pl.range(n):\n" if loop else f"{indent}if n + {level * 3} < m:\n")
        lines.append(f"{indent}    t = pl.load(x, [pl.min(n, m) + {level}, 0], [16, 64])\n")
        if loop:
            lines.append(f"{indent}    if i{level} < m:\n{indent}        t = pl.add(t, 1.0)\n")
    return kernel(*lines)


@pytest.mark.parametrize("loop", [True, False], ids=["loops", "branches"])
def test_nesting_costs_no_more_than_its_depth(loop):
    """At each level the conditions around count: quadratic in the depth at worst, never exponential."""
    step = simplify()
    step(pl.parse(nested(2, loop)))
    shallow, deep = pl.parse(nested(8, loop)), pl.parse(nested(16, loop))
    once, twice = calls_of(lambda: step(shallow)), calls_of(lambda: step(deep))
    assert twice <= 4.2 * once, f"{once} calls, then {twice}"
    result = step(deep)
    assert step(result) is result


def test_a_simplified_program_costs_little():
    """Nothing to do: a few calls a statement."""
    program = simplify()(pl.parse(straight(200)))
    assert calls_of(lambda: simplify()(program)) <= 200 * 30
