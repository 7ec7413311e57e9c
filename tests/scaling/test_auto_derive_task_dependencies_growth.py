"""Deriving edges in twice the program takes twice the work: calls are counted, not time."""

import sys
import textwrap
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "programs"))
sys.path.insert(0, str(Path(__file__).parent.parent / "passes"))

from test_auto_derive_task_dependencies import source
from test_frontend_growth import LIMIT, calls_of

from pypto.passes.auto_derive_task_dependencies import auto_derive_task_dependencies


def chain(n: int) -> str:
    """One buffer, written by all."""
    return "\n".join(f"b{k + 1} = self.bump({f'b{k}' if k else 'b'})" for k in range(n))


def readers(n: int) -> str:
    """Many readers of one buffer, then a writer that waits for them."""
    made = [f"t{k} = pl.create_tensor([8, 8], dtype=pl.FP32)" for k in range(n)]
    return "\n".join([*made, *(f"r{k} = self.plus(b, t{k})" for k in range(n)), "b1 = self.bump(b)"])


def buffers(n: int) -> str:
    lines = []
    for k in range(n):
        lines += [f"t{k} = pl.create_tensor([8, 8], dtype=pl.FP32)", f"u{k} = self.plus(x, t{k})"]
    return "\n".join([*lines, *(f"v{k} = self.bump(u{k})" for k in range(n))])


def loops(n: int) -> str:
    lines = []
    for k in range(n):
        old = f"b{k}" if k else "b"
        lines += [f"for i{k}, (c{k},) in pl.parallel(4, init_values=({old},)):", f"    d{k} = self.row(x, i{k}, c{k})"]
        lines += [f"    b{k + 1} = pl.yield_(d{k})"]
    return "\n".join(lines)


def branches(n: int) -> str:
    lines = []
    for k in range(n):
        old = f"b{k}" if k else "b"
        lines += [f"if n > {k}:", f"    c{k} = self.bump({old})", f"    b{k + 1} = pl.yield_(c{k})"]
        lines += ["else:", f"    b{k + 1} = pl.yield_({old})"]
    return "\n".join(lines)


def nest(n: int, depth: int = 14) -> str:
    body = "\n".join(f"c{depth}_{k} = self.bump({f'c{depth}_{k - 1}' if k else f'c{depth - 1}'})" for k in range(n))
    body += f"\nr{depth - 1} = pl.yield_(c{depth}_{n - 1})"
    for level in reversed(range(depth)):
        before = "b" if level == 0 else f"c{level - 1}"
        end = "" if level == 0 else f"\nr{level - 1} = pl.yield_(r{level})"
        head = f"for i{level}, (c{level},) in pl.range(2, init_values=({before},)):\n"
        body = head + textwrap.indent(body, "    ") + end
    return body


@pytest.mark.parametrize("shape", [chain, readers, buffers, loops, branches, nest])
def test_linear(shape):
    small, large = (source(shape(n)) for n in (30, 60))
    work = [calls_of(lambda p=p: auto_derive_task_dependencies(True)(p)) for p in (small, large)]
    assert work[1] <= LIMIT * work[0], work


def test_depth_costs_no_more_than_statements():
    flat, deep = (source(nest(8, depth)) for depth in (8, 16))
    work = [calls_of(lambda p=p: auto_derive_task_dependencies(True)(p)) for p in (flat, deep)]
    assert work[1] <= LIMIT * work[0], work
