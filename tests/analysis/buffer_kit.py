"""Kernels that give back their parameters, another buffer or a tuple, and a function that calls them."""

import textwrap

from spec_kit import parse

from pypto import ir
from pypto.ir.tree import definitions

KERNELS = """
@InCore
def k(self, x: f32[8, 8], y: pl.Out[f32[8, 8]]) -> f32[8, 8]:
    y1 = pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], y)
    return y1
@InCore
def swap(self, p: pl.InOut[f32[8, 8]], q: pl.InOut[f32[8, 8]]) -> tuple[f32[8, 8], f32[8, 8]]:
    q1 = pl.store(pl.load(p, [0, 0], [8, 8]), [0, 0], q)
    return q1, p
@InCore
def packed(self, p: pl.InOut[f32[8, 8]], q: pl.InOut[f32[8, 8]]) -> pl.Tuple[f32[8, 8], f32[8, 8]]:
    q1 = pl.store(pl.load(p, [0, 0], [8, 8]), [0, 0], q)
    return q1, p
@InCore
def fresh(self, x: f32[8, 8]) -> f32[8, 8]:
    y = pl.tensor.adds(x, 1.0)
    return y
@Opaque
def itself(self, x: f32[8, 8]) -> f32[8, 8]:
    y = self.itself(x)
    return y
"""


def function_of(kind: str, body: str, result: str = "") -> tuple[ir.Program, ir.Function, dict[str, ir.Var]]:
    """A program of the kernels and a function ``f`` of ``a``, ``b`` and ``n``; ``f``; its variables by name."""
    lines = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    program = parse(
        KERNELS + f"\n@{kind}\ndef f(self, n: idx, a: pl.InOut[f32[8, 8]], b: pl.InOut[f32[8, 8]]){result}:\n{lines}\n"
    )
    function = program.get_function("f")
    assert function is not None
    return program, function, {v.name_hint: v for v in definitions(function)}
