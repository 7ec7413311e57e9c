"""Twice the program, twice the work of ConvertToSSA: calls are counted, so that no clock decides."""

import sys

import pytest

import pypto.language as pl
from pypto import ir
from pypto.passes.convert_to_ssa import convert_to_ssa

LIMIT = 2.3

HEAD = """\
@pl.program
class Grown:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: pl.Tensor[[256, 64], pl.FP32], n: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[256, 64], pl.FP32]]):
        t = pl.load(x, [0, 0], [16, 64])
        a = n
"""
TAIL = "        y = pl.store(t, [0, 0], y)\n"
PAD = "        "


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


def statements(n: int) -> str:
    return f"{PAD}t = pl.add(t, 1.0)\n" * n


def variables(n: int) -> str:
    """Many names, all of which are read later."""
    lines = [f"{PAD}v_{i} = n + {i}\n" for i in range(n)]
    return "".join(lines + [f"{PAD}a = a + v_{i}\n" for i in range(n)])


def sequential_loops(n: int) -> str:
    """Loops side by side, each with locals of its own and carries that all share."""
    loop = "{p}for k_{i} in pl.range(n):\n{p}    t = pl.add(t, 1.0)\n{p}    off = k_{i} * 2\n{p}    a = a + off\n"
    return "".join(loop.format(p=PAD, i=i) for i in range(n))


def loops_over_tensors(n: int) -> str:
    """Each loop carries another variable."""
    first = "".join(f"{PAD}v_{i} = n\n" for i in range(n))
    return first + "".join(f"{PAD}for k in pl.range(n):\n{PAD}    v_{i} = v_{i} + k\n" for i in range(n))


def one_wide_loop(n: int) -> str:
    """One loop that carries many variables."""
    first = "".join(f"{PAD}v_{i} = n\n" for i in range(n))
    return first + f"{PAD}for k in pl.range(n):\n" + "".join(f"{PAD}    v_{i} = v_{i} + k\n" for i in range(n))


def sequential_branches(n: int) -> str:
    branch = (
        "{p}if a > {i}:\n{p}    t = pl.add(t, 1.0)\n{p}    b_{i} = a\n{p}else:\n{p}    b_{i} = n\n{p}a = a + b_{i}\n"
    )
    return "".join(branch.format(p=PAD, i=i) for i in range(n))


def lopsided_branches(n: int) -> str:
    """Names that one branch alone defines, read in it."""
    branch = "{p}if a > {i}:\n{p}    only = a * 2\n{p}    a = only + 1\n"
    return "".join(branch.format(p=PAD, i=i) for i in range(n))


def escaping(n: int) -> str:
    """Names that are defined in loops alone and read behind them."""
    loop = "{p}for k in pl.range(4):\n{p}    last_{i} = k * 3\n{p}a = a + last_{i}\n"
    return "".join(loop.format(p=PAD, i=i) for i in range(n))


def flags(n: int) -> str:
    """Variables that have a value where a flag is set."""
    loop = (
        "{p}found_{i} = False\n{p}for k in pl.range(n):\n{p}    if k == a:\n{p}        at_{i} = k\n"
        "{p}        found_{i} = True\n{p}if found_{i}:\n{p}    a = a + at_{i}\n"
    )
    return "".join(loop.format(p=PAD, i=i) for i in range(n))


def lowered_escapes(n: int) -> str:
    """Loops side by side whose ``break`` became a flag: names that have a value where it is not set."""
    return "".join(lowered_loop(i, PAD) for i in range(n))


def lowered_loop(i: int, pad: str) -> str:
    """A loop up to the guard behind a lowered ``break``."""
    lines = [f"for k_{i} in pl.range(n):", f"    left_{i} = False", f"    if a > {i}:", f"        if a > k_{i}:"]
    lines += [
        f"            left_{i} = True",
        "        else:",
        f"            b_{i} = a",
        "    else:",
        f"        b_{i} = n",
    ]
    return "".join(f"{pad}{line}\n" for line in [*lines, f"    if not left_{i}:", f"        a = a + b_{i}"])


def nested_escapes(depth: int) -> str:
    """The same, each loop in the guard of the one around it."""
    return "".join(lowered_loop(i, PAD + "        " * i) for i in range(depth))


def nested(depth: int, width: int) -> str:
    """Loops and branches in turn, ``depth`` of them, around ``width`` statements."""
    lines, pad = [], PAD
    for i in range(depth):
        lines.append(f"{pad}for k_{i} in pl.range(n):\n" if i % 2 else f"{pad}if a > {i}:\n")
        pad += "    "
        lines.append(f"{pad}a = a + {i}\n")
    lines += [f"{pad}a = a + {i}\n{pad}c_{i} = a\n" for i in range(width)]
    return "".join(lines)


SHAPES = [
    statements,
    variables,
    sequential_loops,
    loops_over_tensors,
    one_wide_loop,
    sequential_branches,
    lopsided_branches,
    escaping,
    flags,
    lowered_escapes,
]
N = 40


def program(body: str) -> ir.Program:
    return pl.parse(HEAD + body + TAIL)


def work(body: str, again: bool = False) -> int:
    parsed = program(body)
    if again:
        parsed = convert_to_ssa()(parsed)
    return calls_of(lambda: convert_to_ssa()(parsed))


@pytest.fixture(scope="module", autouse=True)
def warm():
    """Imports and caches of the first use are no part of the growth."""
    for shape in SHAPES:
        work(shape(4))


@pytest.mark.parametrize("shape", SHAPES)
def test_grows_linearly(shape):
    assert work(shape(2 * N)) <= LIMIT * work(shape(N))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_function_in_ssa_form_grows_linearly(shape):
    assert work(shape(2 * N), again=True) <= LIMIT * work(shape(N), again=True)


def test_statements_below_16_levels_grow_linearly():
    assert work(nested(16, 2 * N)) <= LIMIT * work(nested(16, N))


def test_each_level_of_nesting_costs_the_same():
    # A body that is walked once for each level, or twice for each loop, would grow with the square or the power.
    assert work(nested(16, 2)) <= LIMIT * work(nested(8, 2))
    assert work(nested(16, N)) <= 3 * work(nested(2, N))


def test_nested_loops_with_lowered_escapes():
    # Each name is carried by the loops around it, at most once each.
    assert work(nested_escapes(16)) <= 3 * work(nested_escapes(8))
