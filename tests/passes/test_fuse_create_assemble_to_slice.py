"""FuseCreateAssembleToSlice: spec 06, section 6."""

import textwrap

import numpy as np
import pytest
from outlining_kit import expect, outline, run_all_orders, source
from spec_kit import noise, parse, zeros

from pypto import ir
from pypto.ir.tree import walk_stmts
from pypto.passes.fuse_create_assemble_to_slice import fuse_create_assemble_to_slice
from pypto.runtime.compilers import CompilerNotFound
from pypto.runtime.emitted import EmittedProgram
from pypto.verify.properties import IRProperty, property_set
from pypto.verify.registry import PropertyVerifierRegistry

KERNELS = """
@InCore
def fill(self, a: f32[64, 64], r: idx, o: pl.Out[f32[16, 64]]) -> f32[16, 64]:
    t = pl.load(a, [r * 16, 0], [16, 64])
    u = pl.add(t, 1.0)
    o2 = pl.store(u, [0, 0], o)
    return o2
@InCore
def copy(self, a: f32[64, 64], o: pl.Out[f32[64, 64]]) -> f32[64, 64]:
    t = pl.load(a, [0, 0], [64, 64])
    o2 = pl.store(t, [0, 0], o)
    return o2
"""
FORM = property_set(IRProperty.SSAForm, IRProperty.UseAfterDef)


def before(text: str) -> ir.Program:
    return outline(source(KERNELS + textwrap.dedent(text)))


def fused(text: str) -> ir.Program:
    step = fuse_create_assemble_to_slice()
    after = step(before(text))
    assert step(after) is after
    PropertyVerifierRegistry.verify_or_throw(FORM, after)
    return after


def stays(text: str) -> None:
    program = before(text)
    assert fuse_create_assemble_to_slice()(program) is program


LOOP = """
@Orchestration
def main(self, a: f32[64, 64], out: pl.Out[f32[64, 64]]) -> f32[64, 64]:
    for r, (acc,) in pl.range(4, init_values=(out,)):
        t = pl.create_tensor([16, 64], dtype=pl.FP32)
        u = self.fill(a, r, t)
        acc2 = pl.assemble(acc, u, [r * 16, 0])
        res = pl.yield_(acc2)
    return res
"""


def test_the_example():
    after = fused(LOOP)
    expect(
        after,
        KERNELS
        + """
@Orchestration
def main(self, a: f32[64, 64], out: pl.Out[f32[64, 64]]) -> f32[64, 64]:
    for r in pl.range(4):
        t = pl.slice(out, [16, 64], [r * 16, 0])
        u = self.fill(a, r, t)
    return out
""",
    )


def test_a_submit():
    after = fused(
        """
        @Orchestration
        def main(self, a: f32[64, 64], out: pl.Out[f32[64, 64]]) -> f32[64, 64]:
            t = pl.create_tensor([16, 64], dtype=pl.FP32)
            u, tid = pl.submit(self.fill, a, 1, t)
            out = pl.assemble(out, u, [16, 0])
            return out
        """
    )
    text = ir.python_print(after.get_function("main"), concise=True)
    assert "pl.tensor.slice(out" in text and "assemble" not in text and "create" not in text


def test_a_target_of_more_dimensions():
    after = fused(
        """
        @Orchestration
        def main(self, a: f32[64, 64], b: idx, vol: pl.Out[f32[4, 64, 64]]) -> f32[4, 64, 64]:
            t = pl.create_tensor([16, 64], dtype=pl.FP32)
            u = self.fill(a, 1, t)
            vol = pl.assemble(vol, u, [b, 16, 0])
            return vol
        """
    )
    text = ir.python_print(after.get_function("main"), concise=True)
    assert "[1, 16, 64], [b" in text and "assemble" not in text


def test_one_carry_of_two():
    """The other carry stays: its buffer is assembled twice."""
    after = fused(
        """
        @Orchestration
        def main(self, a: f32[64, 64], out: pl.Out[f32[64, 64]], two: pl.Out[f32[64, 64]]) -> tuple[f32[64, 64], f32[64, 64]]:
            for r, (acc, bcc) in pl.range(2, init_values=(out, two)):
                t = pl.create_tensor([16, 64], dtype=pl.FP32)
                u = self.fill(a, r, t)
                acc2 = pl.assemble(acc, u, [r * 16, 0])
                s = pl.create_tensor([16, 64], dtype=pl.FP32)
                v = self.fill(a, r, s)
                bcc1 = pl.assemble(bcc, v, [r * 16, 0])
                bcc2 = pl.assemble(bcc1, v, [r * 16 + 32, 0])
                one, other = pl.yield_(acc2, bcc2)
            return one, other
        """
    )
    [loop] = [n for n in walk_stmts(after.get_function("main").body) if isinstance(n, ir.ForStmt)]
    assert len(loop.iter_args) == 1 and loop.iter_args[0].name_hint.startswith("bcc")


@pytest.mark.parametrize(
    "body",
    {
        "atomic": "u = self.fill(a, 1, t)\nout = pl.assemble(out, u, [16, 0], atomic=pl.AtomicType.Add)",
        "assembled twice": "u = self.fill(a, 1, t)\nout = pl.assemble(out, u, [16, 0])\nout = pl.assemble(out, u, [0, 0])",
        "a part of it": "u = self.fill(a, 1, t)\nv = pl.slice(u, [8, 64], [0, 0])\nout = pl.assemble(out, v, [16, 0])",
        "offset comes later": "u = self.fill(a, 1, t)\nk = pl.tensor.read(f, [0])\nout = pl.assemble(out, u, [k, 0])",
        "target comes later": "u = self.fill(a, 1, t)\nout = self.copy(a, out)\nout = pl.assemble(out, u, [16, 0])",
        "a reader in between": "u = self.fill(a, 1, t)\nw = self.copy(out, w)\nout = pl.assemble(out, u, [16, 0])",
        "read again later": "u = self.fill(a, 1, t)\nout = pl.assemble(out, u, [16, 0])\nx = pl.tensor.read(u, [0, 0])\npl.tensor.write(w, [0, 0], x)",
        "one block further in": "u = self.fill(a, 1, t)\nif n > 0:\n    out = pl.assemble(out, u, [16, 0])",
        "one or another": "s = pl.create_tensor([16, 64], dtype=pl.FP32)\nif n > 0:\n    q = t\nelse:\n    q = s\nu = self.fill(a, 1, q)\nout = pl.assemble(out, u, [16, 0])",
    }.items(),
    ids=lambda item: item[0],
)
def test_left_alone(body):
    head = "@Orchestration\ndef main(self, a: f32[64, 64], n: idx, f: i32[4], out: pl.InOut[f32[64, 64]], w: pl.InOut[f32[64, 64]]) -> tuple[f32[64, 64], f32[64, 64]]:\n"
    text = "t = pl.create_tensor([16, 64], dtype=pl.FP32)\n" + body[1] + "\nreturn out, w\n"
    stays(head + textwrap.indent(text, "    "))


@pytest.mark.parametrize("how", ["init_value=0.0", "manual_dep=True"])
def test_what_a_slice_can_not_have(how):
    stays(LOOP.replace("dtype=pl.FP32)", f"dtype=pl.FP32, {how})"))


def test_kernels_are_not_looked_at():
    program = before("")
    assert fuse_create_assemble_to_slice()(program) is program


@pytest.mark.parametrize("loop", ["pl.range(4", "pl.parallel(4", "pl.range(0, 4, 3"])
def test_meaning(loop):
    text = LOOP.replace("pl.range(4", loop).replace("out: pl.Out", "out: pl.InOut")

    def args():
        return {"a": noise(64, 64), "out": zeros(64, 64)}

    a = args()["a"]
    want = zeros(64, 64)
    for r in range(0, 4, 3 if "3" in loop else 1):
        want[r * 16 : r * 16 + 16] = a[r * 16 : r * 16 + 16] + 1
    run_all_orders(before(text), args, {"out": want})
    run_all_orders(fused(text), args, {"out": want})
    assert np.abs(want).max() > 0


def test_meaning_of_a_page_of_a_volume():
    """The kernel sees the page as the matrix that it asks for, in the interpreter and as emitted code."""
    text = """
        @Orchestration
        def main(self, a: f32[64, 64], vol: pl.InOut[f32[4, 64, 64]]) -> f32[4, 64, 64]:
            for b in pl.range(4):
                t = pl.create_tensor([16, 64], dtype=pl.FP32)
                u = self.fill(a, b, t)
                vol = pl.assemble(vol, u, [b, 16, 0])
            return vol
        """

    def args():
        return {"a": noise(64, 64), "vol": zeros(4, 64, 64)}

    a, want = args()["a"], zeros(4, 64, 64)
    for b in range(4):
        want[b, 16:32] = a[b * 16 : b * 16 + 16] + 1
    assert fused(text) is not before(text)
    run_all_orders(fused(text), args, {"vol": want})
    values = args()
    try:
        program = EmittedProgram(ir.PassManager().run_passes(parse(KERNELS + textwrap.dedent(text))), "main")
    except CompilerNotFound as error:
        pytest.skip(f"emitted code is C++, and there is no compiler: {error}")
    program.run(list(values.values()))
    np.testing.assert_allclose(values["vol"], want)
