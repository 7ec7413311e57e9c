"""Optimizing the tensors of twice the program takes twice the work: calls are counted, not time."""

import sys
import textwrap
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "programs"))
sys.path.insert(0, str(Path(__file__).parent.parent / "passes"))

import test_optimize_orch_tensors as cases
from test_frontend_growth import LIMIT, calls_of

from pypto.passes.optimize_orch_tensors import optimize_orch_tensors

HEAD = "\n@Orchestration\ndef main(self, x: f32[32, 32], y: pl.Out[f32[32, 32]]) -> f32[32, 32]:\n"


def carries(n: int) -> str:
    lines = []
    for k in range(n):
        lines += [
            f"s{k} = pl.create_tensor([32, 32], dtype=pl.FP32)",
            f"a{k} = self.copy(x, s{k})",
            f"for i{k}, (c{k},) in pl.range(2, init_values=(a{k},)):",
            f"    o{k} = pl.create_tensor([32, 32], dtype=pl.FP32)",
            f"    u{k} = self.step(c{k}, o{k})",
            f"    r{k} = pl.yield_(u{k})",
        ]
    return "\n".join([*lines, f"y1 = self.look(r{n - 1}, y)", "return y1"])


def nested(n: int, depth: int = 16) -> str:
    """Loop nests, one behind another; the innermost loop makes the step."""
    found = ["s = pl.create_tensor([32, 32], dtype=pl.FP32)", "q0 = self.copy(x, s)"]
    for k in range(n // 8):
        body = f"o = pl.create_tensor([32, 32], dtype=pl.FP32)\nu = self.step(c{k}_{depth - 1}, o)\n"
        body += f"r{k}_{depth - 1} = pl.yield_(u)"
        for level in reversed(range(depth)):
            start = f"q{k}" if level == 0 else f"c{k}_{level - 1}"
            end = "" if level == 0 else f"\nr{k}_{level - 1} = pl.yield_(r{k}_{level})"
            head = f"for i{level}, (c{k}_{level},) in pl.range(2, init_values=({start},)):\n"
            body = head + textwrap.indent(body, "    ") + end
        found += [body, f"q{k + 1} = r{k}_0"]
    return "\n".join([*found, f"y1 = self.look(q{n // 8}, y)", "return y1"])


def carried_on(n: int) -> str:
    """Each loop goes on with what the one before gives."""
    lines = ["s = pl.create_tensor([32, 32], dtype=pl.FP32)", "r0 = self.copy(x, s)"]
    for k in range(n):
        lines += [
            f"for i{k}, (c{k},) in pl.range(2, init_values=(r{k},)):",
            f"    o{k} = pl.create_tensor([32, 32], dtype=pl.FP32)",
            f"    u{k} = self.step(c{k}, o{k})",
            f"    r{k + 1} = pl.yield_(u{k})",
        ]
    return "\n".join([*lines, f"y1 = self.look(r{n}, y)", "return y1"])


def chain(n: int) -> str:
    """Each call is made in place behind the one before."""
    lines = ["s = pl.create_tensor([32, 32], dtype=pl.FP32)", "a0 = self.copy(x, s)"]
    for k in range(n):
        lines += [f"o{k} = pl.create_tensor([32, 32], dtype=pl.FP32)", f"a{k + 1} = self.grow(a{k}, o{k})"]
    return "\n".join([*lines, f"y1 = self.look(a{n}, y)", "return y1"])


def slices(n: int) -> str:
    """Slices of slices; all but the outermost have one parent."""
    lines = ["s0 = pl.slice(x, [32, 32], [0, 0])"]
    for k in range(n):
        lines += [f"s{k + 1} = pl.slice(s{k}, [32, 32], [0, 0])", f"y{k} = self.copy(s{k + 1}, y)"]
    return "\n".join([*lines, f"return y{n - 1}"]).replace("self.copy", "self.look")


KERNELS = cases.STEP + cases.GROW


@pytest.mark.parametrize("shape", [carries, carried_on, nested, chain, slices])
def test_twice_the_program_is_twice_the_work(shape):
    counts = []
    for n in (64, 128):
        program = cases.before(KERNELS + HEAD + textwrap.indent(shape(n), "    "))
        counts.append(calls_of(lambda program=program: optimize_orch_tensors()(program)))
    assert counts[1] <= LIMIT * counts[0], counts


@pytest.mark.parametrize("shape", [carries, carried_on, nested, chain])
def test_what_is_measured_is_done(shape):
    program = cases.before(KERNELS + HEAD + textwrap.indent(shape(8), "    "))
    assert optimize_orch_tensors()(program) is not program


def pieces(n: int) -> str:
    """A kernel with ``n`` loops that put tiles together, and outputs for them."""
    outputs = ", ".join(f"o{k}: pl.Out[f32[64, 32]]" for k in range(n))
    lines = []
    for k in range(n):
        lines += [
            f"t{k} = pl.create_tile([64, 32], dtype=pl.FP32)",
            f"for i{k}, (a{k},) in pl.range(4, init_values=(t{k},)):",
            f"    p{k} = pl.load(x, [i{k} * 16, 0], [16, 32])",
            f"    b{k} = pl.tile.assemble(a{k}, p{k}, [i{k} * 16, 0])",
            f"    w{k} = pl.yield_(b{k})",
            f"u{k} = pl.store(w{k}, [0, 0], o{k})",
        ]
    text = textwrap.indent("\n".join([*lines, f"return u{n - 1}"]), "    ")
    return f"@InCore\ndef pieces(self, x: f32[64, 32], {outputs}) -> f32[64, 32]:\n{text}\n"


def test_many_loops_in_a_kernel():
    counts = []
    for n in (16, 32):
        program = cases.source(pieces(n))
        assert optimize_orch_tensors()(program) is not program
        counts.append(calls_of(lambda program=program: optimize_orch_tensors()(program)))
    assert counts[1] <= LIMIT * counts[0], counts
