"""Naming buffers, sorting results and classifying carries: twice the program takes twice the work, by counting calls."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "programs"))

from spec_kit import parse
from test_frontend_growth import LIMIT, calls_of

from pypto import ir
from pypto.analysis.buffer_names import BufferNames
from pypto.analysis.callees import Callees
from pypto.passes.classify_iter_arg_carry import classify_iter_arg_carry
from pypto.passes.normalize_return_order import normalize_return_order
from pypto.verify.properties import IRProperty, property_set
from pypto.verify.registry import PropertyVerifierRegistry

KERNELS = """
@InCore
def k(self, x: f32[8, 8], y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:
    y1 = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], y)
    return y1
@InCore
def two(self, x: f32[8, 8], p: pl.InOut[f32[8, 8]], q: pl.InOut[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8]]:
    q1 = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], q)
    p1 = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], p)
    return q1, p1
"""


def method(lines: list[str]) -> str:
    body = "".join(f"    {line}\n" for line in lines)
    return f"{KERNELS}\n@Orchestration\ndef f(self, n: idx, a: f32[8, 8], b: pl.InOut[f32[8, 8]]) -> f32[8, 8]:\n{body}"


def chain(n: int) -> str:
    lines = [f"b{i + 1} = self.k(a, b{i or ''})" for i in range(n)]
    return method([*lines, f"return b{n}"])


def views_of_views(n: int) -> str:
    lines = [f"b{i + 1} = pl.slice(b{i or ''}, [8, 8], [0, 0])" for i in range(n)]
    return method([*lines, f"return b{n}"])


def loops(n: int) -> str:
    lines = []
    for i in range(n):
        lines += [f"for i{i}, (c{i},) in pl.range(n, init_values=(b{i or ''},)):"]
        lines += [f"    d{i} = self.k(a, c{i})", f"    b{i + 1} = pl.yield_(d{i})"]
    return method([*lines, f"return b{n}"])


def slots_in_a_ring(n: int) -> str:
    args, inits = ", ".join(f"c{i}" for i in range(n)), ", ".join("b" for _ in range(n))
    ring = ", ".join(f"c{(i + 1) % n}" for i in range(n))
    results = ", ".join(f"r{i}" for i in range(n))
    lines = [f"for i, ({args}) in pl.range(n, init_values=({inits})):", f"    {results} = pl.yield_({ring})"]
    return method([*lines, "return r0"])


def nested_loops(n: int) -> str:
    lines = []
    for i in range(n):
        seed = f"c{i - 1}" if i else "b"
        lines += [f"{'    ' * i}for i{i}, (c{i},) in pl.range(2, init_values=({seed},)):"]
    lines += [f"{'    ' * n}s = self.k(a, c{n - 1})"]
    inner = "s"
    for i in reversed(range(n)):
        lines += [f"{'    ' * (i + 1)}r{i} = pl.yield_({inner})"]
        inner = f"r{i}"
    return method([*lines, "return r0"])


def nested_rebinds(n: int) -> str:
    text = nested_loops(n)
    new = "t = pl.create_tensor([8, 8], dtype=pl.FP32)"
    return text.replace("s = self.k(a, ", f"{new}\n{'    ' * (n + 1)}s = self.k(").replace(
        f"k(c{n - 1})", f"k(c{n - 1}, t)"
    )


def task_ids(n: int) -> str:
    lines = ["t0 = pl.system.task_invalid()", "with pl.manual_scope():"]
    for i in range(n):
        lines += [f"    for i{i}, (c{i},) in pl.range(3, init_values=(t{i},)):"]
        lines += [f"        for j{i}, (d{i},) in pl.parallel(5, init_values=(c{i},)):"]
        lines += [f"            u{i}, v{i} = pl.submit(self.k, a, b, deps=[d{i}])"]
        lines += [f"            w{i} = pl.yield_(v{i})", f"        t{i + 1} = pl.yield_(w{i})"]
    return method([*lines, "return b"])


def pairs(n: int) -> str:
    lines = []
    for i in range(n):
        lines += [f"r{i} = self.two(a, b, b)", f"x{i} = r{i}[0]", f"y{i} = self.k(a, x{i})"]
    return method([*lines, "return b"])


def kernels(n: int) -> str:
    two = KERNELS[KERNELS.index("@InCore\ndef two") :]
    text = "".join(two.replace("def two", f"def two{i}") for i in range(n))
    return text + method(
        [line for i in range(n) for line in (f"r{i} = self.two{i}(a, b, b)", f"x{i} = r{i}[1]")] + ["return b"]
    )


def names(program: ir.Program) -> None:
    function = program.get_function("f")
    found = BufferNames(function, Callees(program.functions.values()))
    for var in found.views:
        found.viewed(var)


def returns(program: ir.Program) -> None:
    normalize_return_order()(program)


def carries(program: ir.Program) -> None:
    after = classify_iter_arg_carry()(program)
    assert not PropertyVerifierRegistry.verify(property_set(IRProperty.IterArgCarryClassified), after)


CASES = [
    (names, chain, 60),
    (names, views_of_views, 60),
    (names, slots_in_a_ring, 40),
    (names, nested_loops, 8),
    (carries, loops, 40),
    (carries, nested_loops, 8),
    (carries, nested_rebinds, 8),
    (carries, task_ids, 20),
    (returns, chain, 60),
    (returns, pairs, 40),
    (returns, kernels, 30),
]


@pytest.mark.parametrize(("work", "grow", "n"), CASES, ids=[f"{w.__name__}-{g.__name__}" for w, g, _ in CASES])
def test_twice_the_program_takes_twice_the_work(work, grow, n):
    once, twice = parse(grow(n)), parse(grow(2 * n))
    work(parse(grow(2)))  # what is made once
    assert calls_of(lambda: work(twice)) <= LIMIT * calls_of(lambda: work(once))
