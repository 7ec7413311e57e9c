"""Footprints and the search for pairs without order: twice the program takes twice the work, by counting calls."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "programs"))

from spec_kit import parse
from test_frontend_growth import LIMIT, calls_of

from pypto import ir
from pypto.analysis.access import Footprints
from pypto.analysis.callees import Callees
from pypto.analysis.overwrites import Orders
from pypto.passes.convert_to_ssa import convert_to_ssa
from pypto.passes.derive_call_directions import derive_call_directions

HEAD = "@InCore\ndef f(self, x: f32[64, 16], k: idx, o: pl.Out[f32[64, 16]]) -> f32[64, 16]:\n"
BAND = f"{HEAD}    o = pl.store(pl.load(x, [k, 0], [16, 16]), [k, 0], o)\n    return o\n"
WHOLE = (
    "@InCore\ndef g(self, x: f32[64, 16], o: pl.Out[f32[64, 16]]) -> f32[64, 16]:\n"
    "    o = pl.store(pl.load(x, [0, 0], [64, 16]), [0, 0], o)\n    return o\n"
)
STORE = "o = pl.store(pl.load(x, [0, 0], [16, 16]), [{}, 0], o)"


def work(step, program: ir.Program) -> int:
    return calls_of(lambda: step(program))


def kernel(lines: list[str]) -> ir.Program:
    return convert_to_ssa()(parse(HEAD + "".join(f"    {line}\n" for line in [*lines, "return o"])))


def stores(n: int) -> ir.Program:
    return kernel([STORE.format(f"k + {i % 40}") for i in range(n)])


def views_of_views(n: int) -> ir.Program:
    lines = [f"v{i + 1} = pl.slice({f'v{i}' if i else 'o'}, [64, 16], [k, 0])" for i in range(n)]
    return kernel([*lines, f"w = pl.tensor.adds(v{n}, 1.0)"])


def long_sums(n: int) -> ir.Program:
    return kernel(["s0 = k", *(f"s{i + 1} = s{i} + k" for i in range(n)), STORE.format(f"s{n}")])


def nested_loops(n: int) -> ir.Program:
    lines = [f"{'    ' * i}for i{i} in pl.range(2):" for i in range(n)]
    total = " + ".join(f"i{i}" for i in range(n))
    return kernel([*lines, "    " * n + STORE.format(total)])


def wrappers(n: int) -> ir.Program:
    text = BAND
    for i in range(n):
        inner = f"w{i - 1}" if i else "f"
        text += HEAD.replace("def f", f"def w{i}") + f"    o = self.{inner}(x, k, o)\n    return o\n"
    return convert_to_ssa()(parse(text))


def footprints(program: ir.Program) -> None:
    functions = list(program.functions.values())
    found = Footprints(Callees(functions))
    for function in reversed(functions):
        assert found.of(function) is not None


@pytest.mark.parametrize("make", [stores, views_of_views, long_sums, wrappers], ids=lambda f: f.__name__)
def test_footprints(make):
    small, large = [work(footprints, make(n)) for n in (40, 80)]
    assert large <= LIMIT * small


def test_deep_loops_in_a_kernel():
    small, large = [work(footprints, nested_loops(n)) for n in (8, 16)]
    assert large <= 2 * LIMIT * small  # each loop is left with boxes of all that are outside of it


def main(lines: list[str]) -> ir.Program:
    text = "".join(f"    {line}\n" for line in [*lines, "return y"])
    program = parse(
        f"{BAND}{WHOLE}@Orchestration\n"
        f"def main(self, x: pl.InOut[f32[64, 16]], y: pl.InOut[f32[64, 16]], n: idx) -> f32[64, 16]:\n{text}"
    )
    return derive_call_directions()(convert_to_ssa()(program))


def chain(n: int) -> ir.Program:
    return main([f"y = self.f(x, {i}, y)" for i in range(n)])


def scratches(n: int) -> ir.Program:
    lines = []
    for i in range(n):
        lines += [f"t{i} = pl.create_tensor([64, 16], dtype=pl.FP32)"]
        lines += [f"t{i} = self.g(x, t{i})", f"y = self.g(t{i}, y)"]
    return main(lines)


def loops(n: int) -> ir.Program:
    return main([line for i in range(n) for line in (f"for i{i} in pl.range(n):", f"    y = self.f(x, i{i} * 16, y)")])


def nests(n: int) -> ir.Program:
    lines = [f"{'    ' * i}for i{i} in pl.range(2):" for i in range(n)]
    return main([*lines, "    " * n + "y = self.f(x, i0, y)"])


def search(program: ir.Program) -> None:
    functions = list(program.functions.values())
    found = Orders(program.get_function("main"), Footprints(Callees(functions)))
    assert found.narrowable


@pytest.mark.parametrize("make", [chain, scratches, loops], ids=lambda f: f.__name__)
def test_pairs_without_order(make):
    small, large = [work(search, make(n)) for n in (40, 80)]
    assert large <= LIMIT * small


def test_deep_loops_in_an_orchestration():
    small, large = [work(search, nests(n)) for n in (8, 16)]
    assert large <= LIMIT * small


def test_comparisons_of_one_buffer_are_limited():
    """Readers and writers that take turns: all pairs are compared, up to a number."""
    counts = []
    for n in (100, 200):
        program = main(
            [line for i in range(n) for line in (f"y = self.f(x, {i % 3}, y)", f"x = self.f(y, {i % 3}, x)")]
        )
        found = Orders(program.get_function("main"), Footprints(Callees(program.functions.values())))
        assert not found.narrowable
        counts.append(found.compared)
    assert counts[1] <= LIMIT * counts[0]
