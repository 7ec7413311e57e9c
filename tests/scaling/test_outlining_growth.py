"""Outlining twice the program takes twice the work: calls are counted, so that no clock decides."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "programs"))

from spec_kit import parse
from test_frontend_growth import LIMIT, calls_of

from pypto import ir
from pypto.passes.outline_cluster_scopes import outline_cluster_scopes
from pypto.passes.outline_hierarchy_scopes import outline_hierarchy_scopes
from pypto.passes.outline_incore_scopes import outline_incore_scopes

AT = "with pl.at(level=pl.Level.CORE_GROUP):"
BUMP = "pl.store(pl.add(pl.load({x}, [0, 0], [8, 8]), 1.0), [0, 0], {x})"


def method(lines: list[str], params: str = "x: pl.InOut[f32[8, 8]]") -> str:
    return f"@Opaque\ndef f(self, n: idx, {params}):\n" + "".join(f"    {line}\n" for line in lines)


def scopes_in_sequence(n: int) -> str:
    return method([line for _ in range(n) for line in (AT, "    " + BUMP.format(x="x"))] + ["return x"])


def scopes_in_ssa_form(n: int) -> str:
    lines = []
    for i in range(n):
        old, new = ("x" if i == 0 else f"x{i}"), f"x{i + 1}"
        lines += [AT, f"    {new} = " + BUMP.format(x=old)]
    return method([*lines, f"return x{n}"])


def scopes_that_read_each_other(n: int) -> str:
    lines = [AT, "    y0 = pl.add(x, 1.0)"]
    for i in range(1, n):
        lines += [AT, f"    y{i} = pl.add(y{i - 1}, 1.0)"]
    return method([*lines, f"return y{n - 1}"])


def loops_with_a_scope(n: int) -> str:
    """Each loop writes a tensor of its own: a construct may touch only what moves in it."""
    lines = []
    for i in range(n):
        lines += [f"for i{i} in pl.range(4):", f"    {AT}", "        " + BUMP.format(x=f"x{i}")]
    return method([*lines, "return x0"], ", ".join(f"x{i}: pl.InOut[f32[8, 8]]" for i in range(n)))


def branches_with_a_scope(n: int) -> str:
    lines = []
    for i in range(n):
        lines += [f"if n > {i}:", f"    {AT}", "        " + BUMP.format(x="x")]
    return method([*lines, "return x"])


def targets_of_one_scope(n: int) -> str:
    lines = [AT, *("    " + BUMP.format(x=f"x{i}") for i in range(n)), "return x0"]
    return method(lines, ", ".join(f"x{i}: pl.InOut[f32[8, 8]]" for i in range(n)))


def statements_in_one_scope(n: int) -> str:
    return method([AT, *(f"    v{i} = pl.add(x, {i}.0)" for i in range(n)), f"return v{n - 1}"])


def stores_in_one_scope(n: int) -> str:
    return method([AT, *("    " + BUMP.format(x="x") for _ in range(n)), "return x"])


def scalars_that_leave(n: int) -> str:
    lines = []
    for i in range(n):
        lines += [AT, f"    k{i} = n + {i}", "    " + BUMP.format(x="x")]
    lines += [AT, *(f"    t{i} = pl.load(x, [k{i}, 0], [1, 8])" for i in range(n))]
    return method([*lines, "return x"])


def hints(n: int) -> str:
    named = AT.replace("GROUP", 'GROUP, name_hint="k"')
    return method([line for _ in range(n) for line in (named, "    " + BUMP.format(x="x"))] + ["return x"])


def tasks(n: int) -> str:
    lines = []
    for i in range(n):
        deps = f", deps=[t{i - 1}]" if i else ""
        lines += [f"with pl.at(level=pl.Level.CORE_GROUP{deps}) as t{i}:", "    " + BUMP.format(x="x")]
    return method([*lines, "return x"])


def nested_loops(n: int) -> str:
    """One tensor, written in each of ``n`` nested loops."""
    lines = []
    for i in range(n):
        lines += [f"{'    ' * i}for i{i} in pl.range(2):", f"{'    ' * (i + 1)}{AT}"]
        lines += [f"{'    ' * (i + 2)}{BUMP.format(x='x')}"]
    return method([*lines, "return x"])


def nested_loops_in_a_kernel(n: int) -> str:
    lines = [AT]
    for i in range(n):
        lines += [f"{'    ' * (i + 1)}for i{i} in pl.range(2):"]
    return method([*lines, "    " * (n + 1) + BUMP.format(x="x"), "return x"])


def carried_loops_in_a_kernel(n: int) -> str:
    """Nested loops that carry the tensor: each depends on what the inner one yields."""
    lines = [AT]
    for i in range(n):
        seed = f"c{i - 1}" if i else "x"
        lines += [f"{'    ' * (i + 1)}for i{i}, (c{i},) in pl.range(2, init_values=({seed},)):"]
    lines += [f"{'    ' * (n + 1)}s = {BUMP.format(x=f'c{n - 1}')}"]
    inner = "s"
    for i in reversed(range(n)):
        lines += [f"{'    ' * (i + 2)}r{i} = pl.yield_({inner})"]
        inner = f"r{i}"
    return method([*lines, "return r0"])


def spmd_scopes(n: int) -> str:
    lines = []
    for i in range(n):
        lines += [f"with pl.spmd({i + 1}):", f"    x{i + 1} = self.k(x{i or ''})"]
    kernel = (
        "@InCore\ndef k(self, y: pl.InOut[f32[8, 8]]) -> f32[8, 8]:\n    " + BUMP.format(x="y") + "\n    return y\n"
    )
    return kernel + method([*lines, f"return x{n}"])


def hierarchy_scopes(n: int) -> str:
    lines = []
    for _ in range(n):
        lines += ["with pl.at(level=pl.Level.CHIP):", f"    {AT}", "        " + BUMP.format(x="x")]
    return method([*lines, "return x"])


CASES = [
    (outline_incore_scopes, scopes_in_sequence, 60),
    (outline_incore_scopes, scopes_in_ssa_form, 60),
    (outline_incore_scopes, scopes_that_read_each_other, 60),
    (outline_incore_scopes, loops_with_a_scope, 40),
    (outline_incore_scopes, branches_with_a_scope, 40),
    (outline_incore_scopes, targets_of_one_scope, 60),
    (outline_incore_scopes, statements_in_one_scope, 100),
    (outline_incore_scopes, stores_in_one_scope, 60),
    (outline_incore_scopes, scalars_that_leave, 40),
    (outline_incore_scopes, hints, 60),
    (outline_incore_scopes, tasks, 60),
    (outline_incore_scopes, nested_loops, 8),
    (outline_incore_scopes, nested_loops_in_a_kernel, 8),
    (outline_incore_scopes, carried_loops_in_a_kernel, 8),
    (outline_cluster_scopes, spmd_scopes, 60),
    (outline_hierarchy_scopes, hierarchy_scopes, 60),
]


def work(factory, program: ir.Program) -> int:
    return calls_of(lambda: factory()(program))


@pytest.mark.parametrize(("factory", "grow", "n"), CASES, ids=[grow.__name__ for _, grow, _ in CASES])
def test_twice_the_program_takes_twice_the_work(factory, grow, n):
    once, twice = parse(grow(n)), parse(grow(2 * n))
    factory()(parse(grow(2)))  # what is made once
    assert work(factory, twice) <= LIMIT * work(factory, once)
