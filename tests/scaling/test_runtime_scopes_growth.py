"""Placing scopes and phase fences in twice the program takes twice the work: calls are counted, not time."""

import sys
import textwrap
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "programs"))
sys.path.insert(0, str(Path(__file__).parent.parent / "passes"))

import test_expand_manual_phase_fence as fences
import test_materialize_runtime_scopes as scopes
from test_frontend_growth import LIMIT, calls_of

from pypto.passes.expand_manual_phase_fence import expand_manual_phase_fence
from pypto.passes.materialize_runtime_scopes import materialize_runtime_scopes


def loops_in_sequence(n: int) -> str:
    lines = []
    for k in range(n):
        lines += [f"for i{k} in pl.range(2):", f"    y{k} = self.fill(x, i{k}, y)"]
    return "\n".join([*lines, "return y"])


def nested(n: int, depth: int = 16) -> str:
    """A loop nest with ``n`` launches inside; every carry is handed on."""
    body = "\n".join(f"c{depth}_{k} = self.fill(x, {k % 8}, c{depth - 1})" for k in range(n))
    body += f"\nr{depth - 1} = pl.yield_(c{depth}_0)"
    for level in reversed(range(depth)):
        before = "y" if level == 0 else f"c{level - 1}"
        end = "" if level == 0 else f"\nr{level - 1} = pl.yield_(r{level})"
        head = f"for i{level}, (c{level},) in pl.range(2, init_values=({before},)):\n"
        body = head + textwrap.indent(body, "    ") + end
    return body + "\nreturn r0"


def created_carries(n: int) -> str:
    lines = []
    for k in range(n):
        lines += [
            f"for i{k}, (c{k},) in pl.range(2, init_values=(x,)):",
            f"    t{k} = pl.create_tensor([8, 8], dtype=pl.FP32)",
            f"    u{k} = self.plus(c{k}, t{k})",
            f"    r{k} = pl.yield_(u{k})",
        ]
    return "\n".join([*lines, "return y"])


def branches(n: int) -> str:
    lines = []
    for k in range(n):
        old = "y" if k == 0 else f"y{k - 1}"
        lines += [f"if n > {k}:", f"    a{k} = self.fix({old})", f"    y{k} = pl.yield_(a{k})"]
        lines += ["else:", f"    y{k} = pl.yield_({old})"]
    return "\n".join([*lines, f"return y{n - 1}"])


@pytest.mark.parametrize("shape", [loops_in_sequence, nested, created_carries, branches])
def test_scopes_grow_linearly(shape):
    small, large = (scopes.source(shape(n)) for n in (30, 60))
    work = [calls_of(lambda p=p: materialize_runtime_scopes()(p)) for p in (small, large)]
    assert work[1] <= LIMIT * work[0], work


def test_depth_costs_no_more_than_statements():
    flat, deep = (scopes.source(nested(8, depth)) for depth in (8, 16))
    work = [calls_of(lambda p=p: materialize_runtime_scopes()(p)) for p in (flat, deep)]
    assert work[1] <= LIMIT * work[0], work


def phases(n: int) -> str:
    parts = []
    for k in range(n):
        parts += [f"t{k} = pl.array.create(4, pl.TASK_ID)\n", fences.phase(4, f"t{k}", f"i{k}"), fences.use(8, f"t{k}")]
    return fences.manual(*parts)


def consumers(n: int) -> str:
    more = "".join(f"r{k}, u{k} = pl.submit(self.total, y, j, z, deps=[tids])\n" for k in range(n))
    return fences.manual(fences.phase(4), fences.use(8, extra=more))


def many_arrays_in_one_loop(n: int) -> str:
    """Half of the arrays are updated in the loop, the others are waited for."""
    made = "".join(f"a{k} = pl.array.create(4, pl.TASK_ID)\n" for k in range(n))
    body = "".join(f"r{k}, u{k} = pl.submit(self.total, y, j, z, deps=[a{k}])\n" for k in range(n // 2))
    body += "".join(f"a{k}[0] = u0\n" for k in range(n // 2, n))
    return fences.manual(made, "for j in pl.range(8):\n" + textwrap.indent(body, "    "))


def consumers_in_a_nest(n: int) -> str:
    body = "".join(f"r{k}, u{k} = pl.submit(self.total, y, 0, z, deps=[tids])\n" for k in range(n))
    for level in range(14):
        body = f"for k{level} in pl.range(2):\n" + textwrap.indent(body, "    ")
    return fences.manual(fences.phase(4), body)


@pytest.mark.parametrize("shape", [phases, consumers, many_arrays_in_one_loop, consumers_in_a_nest])
def test_phase_fences_grow_linearly(shape):
    small, large = (fences.source(shape(n)) for n in (20, 40))
    assert expand_manual_phase_fence()(large) is not large
    work = [calls_of(lambda p=p: expand_manual_phase_fence()(p)) for p in (small, large)]
    assert work[1] <= LIMIT * work[0], work
