"""Windows of twice the program take twice the work: calls are counted, not time."""

import sys
import textwrap
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "programs"))
sys.path.insert(0, str(Path(__file__).parent.parent / "passes"))

import test_windowize as cases
from test_frontend_growth import LIMIT, calls_of

from pypto.passes.optimize_orch_tensors import optimize_orch_tensors


def chain(n: int) -> str:
    """Each call goes on with the result of the one before."""
    lines = [f"y{k + 1} = self.part(x, {k % 4 * 16}, y{k})" for k in range(n)]
    return cases.PART + cases.main("\n".join(["y0 = y", *lines, f"return y{n}"]))


def loops(n: int) -> str:
    """Each loop goes on with what the one before gives."""
    lines = []
    for k in range(n):
        lines += [
            f"for i{k}, (a{k},) in pl.range(4, init_values=(y{k},)):",
            f"    b{k} = self.part(x, i{k} * 16, a{k})",
            f"    y{k + 1} = pl.yield_(b{k})",
        ]
    return cases.PART + cases.main("\n".join(["y0 = y", *lines, f"return y{n}"]))


def kernels(n: int) -> str:
    """Each call has a kernel of its own."""
    texts = [cases.PART.replace("def part", f"def part{k}") for k in range(n)]
    lines = [f"y{k + 1} = self.part{k}(x, {k % 4 * 16}, y{k})" for k in range(n)]
    return "\n".join(texts) + cases.main("\n".join(["y0 = y", *lines, f"return y{n}"]))


def accesses(n: int) -> str:
    """One kernel that touches its window often, at offsets that are no affine forms."""
    lines = [f"s{k + 1} = s{k} // 2\nt{k} = pl.load(x, [r // 4 * 16, 0], [16, 64])" for k in range(n)]
    lines += [f"u{k + 1} = pl.add(u{k}, t{k})" for k in range(n)]
    body = "\n".join([cases.WINDOWIZE, "s0 = r", *lines, "y1 = pl.store(u0, [0, 0], y)", "return y"])
    body = body.replace("u1 = pl.add(u0,", "u0 = pl.load(x, [r // 4 * 16, 0], [16, 64])\nu1 = pl.add(u0,")
    head = "\n@InCore\ndef read(self, x: f32[64, 64], r: idx, y: pl.Out[f32[16, 64]]) -> f32[16, 64]:\n"
    return head + textwrap.indent(body, "    ") + cases.main("y1 = self.read(x, n, y)\nreturn y1", cases.READ_HEAD)


SHAPES = [chain, loops, kernels, accesses]


@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_program_is_twice_the_work(shape):
    counts = []
    for n in (32, 64):
        program = cases.before(shape(n))
        counts.append(calls_of(lambda program=program: optimize_orch_tensors()(program)))
    assert counts[1] <= LIMIT * counts[0], counts


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_measured_is_done(shape):
    after = cases.windowed(shape(8))
    assert any(name.endswith("__window") for name in cases.names_of(after))


def test_trips_of_loops_are_not_run_through():
    """A kernel's loop that does not move the window costs the same, however often it runs."""
    text = """
@InCore
def many(self, x: f32[64, 64], r: idx, y: pl.Out[f32[64, 64]]) -> f32[64, 64]:
    pl.func_attr({"windowize": True})
    s = pl.load(x, [r, 0], [16, 64])
    for k, (a,) in pl.range(TRIPS, init_values=(s,)):
        t = pl.load(x, [r, 0], [16, 64])
        a1 = pl.add(a, t)
        b = pl.yield_(a1)
    y1 = pl.store(b, [r, 0], y)
    return y
""" + cases.main("y1 = self.many(x, 8, y)\nreturn y1")
    counts = []
    for trips in ("10", "1000000"):
        program = cases.before(text.replace("TRIPS", trips))
        counts.append(calls_of(lambda program=program: optimize_orch_tensors()(program)))
    assert abs(counts[0] - counts[1]) < 10, counts
