"""Rewrite 5 of OptimizeOrchTensors, windows of kernels that ask for them: spec 06, section 4.6."""

import textwrap

import numpy as np
import pytest
from outlining_kit import expect, outline, run_all_orders, source
from spec_kit import noise, parse, zeros

import pypto.language as pl
from pypto import ir
from pypto.ir.tree import walk
from pypto.passes.optimize_orch_tensors import optimize_orch_tensors
from pypto.passes.orch_tensors.windows import externalise_windows
from pypto.runtime.compilers import CompilerNotFound, find_compiler
from pypto.runtime.emitted import EmittedProgram
from pypto.runtime.host_executor import RunOptions
from pypto.verify.properties import IRProperty, get_structural_properties, property_set
from pypto.verify.registry import PropertyVerifierRegistry

FORM = property_set(IRProperty.SSAForm, IRProperty.UseAfterDef).union_with(get_structural_properties())
WINDOWIZE = 'pl.func_attr({"windowize": True})'

# What a kernel does with 16 rows, from row ``r`` on.
PART = """
@InCore
def part(self, x: f32[64, 64], r: idx, y: pl.Out[f32[64, 64]]) -> f32[64, 64]:
    pl.func_attr({"windowize": True})
    t = pl.load(x, [0, 0], [64, 64])
    u = pl.slice(t, [16, 64], [0, 0])
    y1 = pl.store(u, [r, 0], y)
    return y
"""
PART_WINDOWED = """
@InCore
def part__windowed(self, x: f32[64, 64], r: idx, y: pl.Out[f32[16, 64]]) -> f32[16, 64]:
    t = pl.load(x, [0, 0], [64, 64])
    u = pl.slice(t, [16, 64], [0, 0])
    y1 = pl.store(u, [0, 0], y)
    return y
"""
HEAD = "@Orchestration\ndef main(self, x: f32[64, 64], y: pl.Out[f32[64, 64]]) -> f32[64, 64]:\n"


def main(body: str, head: str = HEAD) -> str:
    return "\n" + head + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n"


def before(text: str) -> ir.Program:
    return outline(source(text, flatten=True))


def windowed(text: str) -> ir.Program:
    """The result: in form, printed and parsed the same, and the pass has nothing more to do."""
    program = before(text)
    step = optimize_orch_tensors()
    after = step(program)
    assert after is not program
    assert step(after) is after
    PropertyVerifierRegistry.verify_or_throw(FORM, after)
    ir.assert_structural_equal(after, pl.parse(after.as_python()), enable_auto_mapping=True)
    return after


def stays(text: str) -> None:
    program = before(text)
    assert externalise_windows(program) is program


def both() -> dict:
    return {"x": noise(64, 64), "y": zeros(64, 64)}


def same_meaning(text: str, want, args=both) -> ir.Program:
    """Behind the pass and behind the pipeline, which verifies each step, also as emitted C++, NumPy's values."""
    after = windowed(text)
    wanted = want(**args())
    run_all_orders(before(text), args, wanted)
    run_all_orders(after, args, wanted)
    lowered = ir.PassManager().run_passes(parse(textwrap.dedent(text)))
    assert any("__windowed" in g.name for g in lowered.functions)
    run_all_orders(lowered, args, wanted)
    try:
        find_compiler()
    except CompilerNotFound:
        return after
    values = args()
    EmittedProgram(lowered, "main").run(list(values.values()), RunOptions(workers=2))
    for name, value in wanted.items():
        np.testing.assert_allclose(values[name], value, rtol=1e-5, atol=1e-6, err_msg=f"{name}, emitted")
    return after


def names_of(program: ir.Program, name: str = "main") -> list[str]:
    """The names that a function assigns."""
    body = program.get_function(name).body
    return [n.var.name_hint for n in walk(body) if isinstance(n, ir.AssignStmt)]


# --- one store, one window --------------------------------------------------------------------------------------------


def test_a_final_store():
    text = PART + main("""
        y1 = self.part(x, 16, y)
        return y1
    """)
    after = same_meaning(text, lambda x, y: {"y": np.concatenate([y[:16], x[:16], y[32:]])})
    expect(
        after,
        PART
        + PART_WINDOWED
        + main("""
            y0 = pl.slice(y, [16, 64], [16, 0])
            y1 = self.part__windowed(x, 16, y0)
            y2 = pl.assemble(y, y1, [16, 0])
            return y2
        """),
    )
    assert names_of(after) == ["y__window", "y1__windowed", "y1__assembled_0_0"]
    assert all("windowize" not in f.attrs for g, f in after.functions.items() if g.name == "part__windowed")


READ = """
@InCore
def read(self, x: f32[64, 64], r: idx, y: pl.Out[f32[16, 64]]) -> f32[16, 64]:
    pl.func_attr({"windowize": True})
    s = r * 16
    t = pl.load(x, [s, 0], [16, 64])
    u = pl.load(x, [r * 16, 0], [16, 64])
    w = pl.add(t, u)
    y1 = pl.store(w, [0, 0], y)
    return y
"""
READ_HEAD = "@Orchestration\ndef main(self, x: f32[64, 64], n: idx, y: pl.Out[f32[16, 64]]) -> f32[16, 64]:\n"


def test_a_pure_input():
    text = READ + main("y1 = self.read(x, n + 1, y)\nreturn y1", READ_HEAD)
    after = same_meaning(
        text, lambda x, n, y: {"y": 2 * x[32:48]}, lambda: {"x": noise(64, 64), "n": 1, "y": zeros(16, 64)}
    )
    expect(
        after,
        READ
        + """
@InCore
def read__windowed(self, x: f32[16, 64], r: idx, y: pl.Out[f32[16, 64]]) -> f32[16, 64]:
    s = r * 16
    t = pl.load(x, [0, 0], [16, 64])
    u = pl.load(x, [0, 0], [16, 64])
    w = pl.add(t, u)
    y1 = pl.store(w, [0, 0], y)
    return y
"""
        + main(
            "x0 = pl.slice(x, [16, 64], [n * 16 + 16, 0])\ny1 = self.read__windowed(x0, n + 1, y)\nreturn y1",
            READ_HEAD,
        ),
    )


def test_a_slice_in_the_kernel():
    text = READ.replace(
        "t = pl.load(x, [s, 0], [16, 64])", "v = pl.slice(x, [16, 64], [s, 0])\n    t = pl.load(v, [0, 0], [16, 64])"
    )
    text += main("y1 = self.read(x, n + 1, y)\nreturn y1", READ_HEAD)
    same_meaning(text, lambda x, n, y: {"y": 2 * x[32:48]}, lambda: {"x": noise(64, 64), "n": 1, "y": zeros(16, 64)})


STEP = """
for i in pl.{loop}(4):
    with pl.at(level=pl.Level.CORE_GROUP, windowize=True):
        t = pl.load(x, [i * 16, 0], [16, 64])
        y = pl.store(t + 1.0, [i * 16, 0], y)
return y
"""


@pytest.mark.parametrize("loop", ["range", "parallel"])
def test_both_in_a_loop(loop):
    text = main(STEP.format(loop=loop))
    after = same_meaning(text, lambda x, y: {"y": x + 1})
    assert [n for n in names_of(after) if "window" in n] == ["x__window", "y__window", "y__windowed"]
    kernel = after.get_function("main_incore_0__windowed")
    assert [ir.python_print(p.type) for p in kernel.params] == [
        "pl.Tensor[[16, 64], pl.FP32]",
        "pl.Scalar[pl.INDEX]",
        "pl.Tensor[[16, 64], pl.FP32]",
    ]


def test_windows_have_the_strides_of_their_tensor():
    text = main(
        STEP.format(loop="range")
        .replace("[i * 16, 0], [16, 64]", "[0, i * 16], [64, 16]")
        .replace("[i * 16, 0]", "[0, i * 16]")
    )
    after = same_meaning(text, lambda x, y: {"y": x + 1})
    kernel = after.get_function("main_incore_0__windowed")
    for at in (0, 2):
        view = kernel.params[at].type.tensor_view
        assert [int(s.value) for s in view.stride] == [64, 1]
        assert [int(n.value) for n in kernel.params[at].type.shape] == [64, 16]


def test_two_windows_and_two_results():
    kernel = """
@InCore
def two(self, x: f32[64, 64], r: idx, y: pl.Out[f32[64, 64]], z: pl.InOut[f32[64, 64]]) -> tuple[f32[64, 64], f32[64, 64]]:
    {attr}t = pl.load(x, [0, 0], [64, 64])
    u = pl.slice(t, [16, 64], [0, 0])
    v = pl.load(z, [{r} 0], [16, 64])
    w = pl.add(u, v)
    z1 = pl.store(w, [{r} 0], z)
    y1 = pl.store(v, [{q} 0], y)
    return y, z
"""
    given = kernel.format(attr=WINDOWIZE + "\n    ", r="r,", q="r + 16,")
    clone = kernel.format(attr="", r="0,", q="0,").replace("def two", "def two__windowed")
    head = "@Orchestration\ndef main(self, x: f32[64, 64], y: pl.Out[f32[64, 64]], z: pl.InOut[f32[64, 64]]) -> tuple[f32[64, 64], f32[64, 64]]:\n"
    text = given + main("r = self.two(x, 16, y, z)\ny1 = r[0]\nz1 = r[1]\nreturn y1, z1", head)

    def want(x, y, z):
        y[32:48] = z[16:32]
        z[16:32] += x[:16]
        return {"y": y, "z": z}

    after = same_meaning(text, want, lambda: {"x": noise(64, 64), "y": zeros(64, 64), "z": noise(64, 64)})
    for name in "yz":
        clone = clone.replace(f"{name}: pl.Out[f32[64, 64]]", f"{name}: pl.Out[f32[16, 64]]")
        clone = clone.replace(f"{name}: pl.InOut[f32[64, 64]]", f"{name}: pl.InOut[f32[16, 64]]")
    expect(
        after,
        given
        + clone.replace("tuple[f32[64, 64], f32[64, 64]]", "tuple[f32[16, 64], f32[16, 64]]")
        + main(
            """
            y0 = pl.slice(y, [16, 64], [32, 0])
            z0 = pl.slice(z, [16, 64], [16, 0])
            r = self.two__windowed(x, 16, y0, z0)
            y1 = r[0]
            y2 = pl.assemble(y, y1, [32, 0])
            z1 = r[1]
            z2 = pl.assemble(z, z1, [16, 0])
            return y2, z2
            """,
            head,
        ),
    )
    assert names_of(after)[2:] == [
        "r__windowed", "y1__windowed", "y1__assembled_0_0", "z1__windowed", "z1__assembled_1_0",
    ]  # fmt: skip


# --- loops in the kernel ----------------------------------------------------------------------------------------------

BLOCKS = """
@InCore
def blocks(self, x: f32[64, 64], r: idx, y: pl.Out[f32[64, 64]]) -> f32[64, 64]:
    {attr}for k, (a,) in pl.range({trips}, init_values=(y,)):
        t = pl.load(x, [{r} + k * {step}, 0], [{step}, 64])
        u = pl.add(t, 1.0)
        a1 = pl.store(u, [{q} + k * {step}, 0], a)
        b = pl.yield_(a1)
    return y
"""
ATTR = WINDOWIZE + "\n    "


def blocks(trips: int, step: int, offset: str = "r + 16") -> str:
    return BLOCKS.format(attr=ATTR, trips=trips, step=step, r=offset, q="r")


def test_loops_of_loads_and_stores():
    text = blocks(4, 8) + main("y1 = self.blocks(x, 8, y)\nreturn y1")
    after = same_meaning(text, lambda x, y: {"y": np.concatenate([y[:8], x[24:56] + 1, y[40:]])})
    clone = BLOCKS.format(attr="", trips=4, step=8, r="", q="").replace(" + k", "k")
    clone = clone.replace("f32[64, 64]", "f32[32, 64]").replace("def blocks", "def blocks__windowed")
    expect(
        after,
        blocks(4, 8)
        + clone
        + main(
            """
            x0 = pl.slice(x, [32, 64], [24, 0])
            y0 = pl.slice(y, [32, 64], [8, 0])
            y1 = self.blocks__windowed(x0, 8, y0)
            y2 = pl.assemble(y, y1, [8, 0])
            return y2
            """
        ),
    )


def test_the_largest_loop():
    """32 pieces are one window, 33 are none. (32 rows of ``x`` from row 0 on are, too.)"""
    windowed(blocks(32, 1) + main("y1 = self.blocks(x, 8, y)\nreturn y1"))
    stays(blocks(33, 1) + main("y1 = self.blocks(x, 8, y)\nreturn y1"))


def test_a_loop_with_gaps_is_no_window():
    stays(blocks(2, 8).replace("k * 8", "k * 16") + main("y1 = self.blocks(x, 8, y)\nreturn y1"))


def test_a_loop_around_that_touches_the_same_window():
    """Only loops that move the window count."""
    text = """
@InCore
def many(self, x: f32[64, 64], r: idx, y: pl.Out[f32[64, 64]]) -> f32[64, 64]:
    pl.func_attr({"windowize": True})
    s = pl.load(x, [r, 0], [16, 64])
    for k, (a,) in pl.range(100, init_values=(s,)):
        t = pl.load(x, [r, 0], [16, 64])
        a1 = pl.add(a, t)
        b = pl.yield_(a1)
    y1 = pl.store(b, [r, 0], y)
    return y
""" + main("y1 = self.many(x, 8, y)\nreturn y1")
    after = same_meaning(text, lambda x, y: {"y": np.concatenate([y[:8], x[8:24] * 101, y[24:]])})
    assert names_of(after)[:2] == ["x__window", "y__window"]


# --- offsets ----------------------------------------------------------------------------------------------------------


def test_offsets_that_are_no_affine_forms():
    text = READ.replace("s = r * 16", "s = r // 2 * 16 + pl.min(r, 3) * 8").replace(
        "[r * 16, 0]", "[r // 2 * 16 + pl.min(r, 3) * 8, 0]"
    ) + main("y1 = self.read(x, n, y)\nreturn y1", READ_HEAD)
    after = same_meaning(
        text, lambda x, n, y: {"y": 2 * x[40:56]}, lambda: {"x": noise(64, 64), "n": 3, "y": zeros(16, 64)}
    )
    assert names_of(after)[:3] == ["s__expr_tmp_0", "s__expr_tmp_1", "x__window"]
    text = text.replace("pl.load(x, [s, 0]", "pl.load(x, [r // 2 * 16 + pl.min(r, 3) * 8, 0]")
    text = text.replace("    s = r // 2 * 16 + pl.min(r, 3) * 8\n", "")
    assert names_of(windowed(text))[:3] == ["x__expr_tmp_0", "x__expr_tmp_1", "x__window"]


def test_an_argument_that_is_no_affine_form():
    text = READ + main("y1 = self.read(x, n // 2, y)\nreturn y1", READ_HEAD)
    after = same_meaning(
        text, lambda x, n, y: {"y": 2 * x[32:48]}, lambda: {"x": noise(64, 64), "n": 5, "y": zeros(16, 64)}
    )
    assert names_of(after)[:2] == ["r__expr_tmp_0", "x__window"]


def test_a_chain_of_scalars_is_not_written_out():
    """Each of them is computed once, however often it is mentioned."""
    chain = "\n    ".join(f"s{k + 1} = (s{k} + s{k}) // 2" for k in range(40))
    text = READ.replace("s = r * 16", f"s0 = r * 16\n    {chain}\n    s = s40").replace("[r * 16, 0]", "[s, 0]")
    after = windowed(text + main("y1 = self.read(x, n, y)\nreturn y1", READ_HEAD))
    assert len(names_of(after)) == 41 + 2


def test_dynamic_extents():
    """The extent of a whole dimension is that of the tensor that is passed."""
    text = """
@InCore
def read(self, x: pl.Tensor[[M, 64], pl.FP32], r: idx, y: pl.Out[f32[16, 64]]) -> f32[16, 64]:
    pl.func_attr({"windowize": True})
    t = pl.load(x, [M - 16, r], [16, 8])
    y1 = pl.store(t, [0, 0], y)
    return y
""" + main("y1 = self.read(x, n, y)\nreturn y1", READ_HEAD)

    def want(x, n, y):
        y[:, :8] = x[48:, n : n + 8]
        return {"y": y}

    after = same_meaning(text, want, lambda: {"x": noise(64, 64), "n": 5, "y": zeros(16, 64)})
    [kernel] = [f for g, f in after.functions.items() if g.name == "read__windowed"]
    assert [int(n.value) for n in kernel.params[0].type.shape] == [16, 8]


def test_an_extent_that_is_used_elsewhere():
    """Without the tensor nothing would say what it is."""
    stays(
        """
@InCore
def read(self, x: pl.Tensor[[M, 64], pl.FP32], r: idx, y: pl.Out[f32[16, 64]]) -> f32[16, 64]:
    pl.func_attr({"windowize": True})
    t = pl.load(x, [r, 0], [16, 64])
    u = pl.mul(t, pl.cast(M, pl.FP32))
    y1 = pl.store(u, [0, 0], y)
    return y
"""
        + main("y1 = self.read(x, n, y)\nreturn y1", READ_HEAD)
    )


# --- launches ---------------------------------------------------------------------------------------------------------


def test_a_submit_keeps_its_form():
    text = """
@Orchestration
def main(self, x: f32[64, 64], y: pl.InOut[f32[64, 64]]) -> f32[64, 64]:
    with pl.at(level=pl.Level.CORE_GROUP, windowize=True) as tid:
        t = pl.load(x, [0, 0], [16, 64])
        y = pl.store(t, [0, 0], y)
    with pl.at(level=pl.Level.CORE_GROUP, windowize=True, deps=[tid], dumps=[x, y], allow_early_resolve=True):
        t = pl.load(x, [16, 0], [16, 64])
        u = pl.load(y, [16, 0], [16, 64])
        y = pl.store(t + u, [16, 0], y)
    return y
"""
    after = same_meaning(
        text,
        lambda x, y: {"y": np.concatenate([x[:16], x[16:32] + y[16:32], y[32:]])},
        lambda: {"x": noise(64, 64), "y": zeros(64, 64)},
    )
    main_ = after.get_function("main")
    launches = [n for n in walk(main_.body) if isinstance(n, ir.Submit)]
    assert [s.op.name for s in launches] == ["main_incore_0__windowed", "main_incore_1__windowed"]
    tid = [n.var for n in walk(main_.body) if isinstance(n, ir.AssignStmt) and n.var.type == ir.ScalarType(pl.TASK_ID)]
    assert list(launches[1].deps) == tid[:1] and launches[1].allow_early_resolve
    assert {v.name_hint for v in launches[1].attrs["dump_vars"]} == {"x__window_1", "y__window_1"}
    assert set(launches[1].attrs["dump_vars"]) <= set(launches[1].args)


def test_a_loop_result_is_sliced_under_its_first_name():
    text = PART + main("""
        for i, (a,) in pl.range(2, init_values=(y,)):
            a1 = self.part(x, i * 16, a)
            b = pl.yield_(a1)
        y1 = self.part(x, 48, b)
        return y1
    """)
    after = same_meaning(text, lambda x, y: {"y": np.concatenate([x[:16], x[:16], y[:16], x[:16]])})
    slices = [
        n for n in walk(after.get_function("main").body) if isinstance(n, ir.Call) and n.op.name == "tensor.slice"
    ]
    assert [n.args[0].name_hint for n in slices] == ["a", "y__ssa_v0"]


def test_sites_share_a_kernel():
    text = PART + main("""
        y1 = self.part(x, 0, y)
        y2 = self.part(x, 32, y1)
        return y2
    """)
    after = same_meaning(text, lambda x, y: {"y": np.concatenate([x[:16], y[:16], x[:16], y[:16]])})
    assert sorted(g.name for g in after.functions) == ["main", "part", "part__windowed"]
    assert names_of(after) == [
        "y__window", "y1__windowed", "y1__assembled_0_0", "y1__window", "y2__windowed", "y2__assembled_0_0",
    ]  # fmt: skip


def test_names_that_are_taken():
    text = (
        PART
        + PART_WINDOWED.replace("[16, 64]]", "[64, 64]]").replace("f32[16, 64]", "f32[64, 64]")
        + main("""
        y0 = self.part__windowed(x, 0, y)
        y1 = self.part(x, 0, y0)
        return y1
    """)
    )
    stays(text)  # another writer beside it
    text = text.replace("y0 = self.part__windowed(x, 0, y)", "y0 = y")
    assert "part__windowed_1" in {g.name for g in windowed(text).functions}


# --- what stays -------------------------------------------------------------------------------------------------------

FILL = """
@InCore
def fill(self, x: f32[64, 64], y: pl.Out[f32[64, 64]]) -> f32[64, 64]:
    t = pl.load(x, [0, 0], [64, 64])
    y1 = pl.store(t, [0, 0], y)
    return y
"""
CALL = main("y1 = self.part(x, 16, y)\nreturn y1")


@pytest.mark.parametrize(
    "text",
    {
        "nothing asks for it": PART.replace(WINDOWIZE, "s = r") + CALL,
        "it is False": PART.replace("True", "False") + CALL,
        "the whole tensor": FILL.replace("    t =", f"    {WINDOWIZE}\n    t =") + main("y1 = self.fill(x, y)\nreturn y1"),
        "windows of iterations overlap": PART + main("""
            for i, (a,) in pl.range(4, init_values=(y,)):
                a1 = self.part(x, i * 8, a)
                b = pl.yield_(a1)
            return b
        """),
        "windows of iterations that may overlap": PART + main("""
            for i, (a,) in pl.range(4, init_values=(y,)):
                a1 = self.part(x, i // 2 * 16, a)
                b = pl.yield_(a1)
            return b
        """),
        "windows of outer iterations overlap": PART + main("""
            for i, (a,) in pl.range(2, init_values=(y,)):
                for j, (c,) in pl.range(2, init_values=(a,)):
                    c1 = self.part(x, i * 16 + j * 16, c)
                    d = pl.yield_(c1)
                b = pl.yield_(d)
            return b
        """),
        "the tensor twice": PART + main("y1 = self.part(y, 16, y)\nreturn y1"),
        "a part of the tensor beside it": PART + main("""
            big = pl.create_tensor([128, 64], dtype=pl.FP32)
            one = pl.slice(big, [64, 64], [0, 0])
            two = pl.slice(big, [64, 64], [64, 0])
            one1 = self.part(two, 16, one)
            y1 = self.fill(one1, y)
            return y1
        """) + FILL,
        "assembled later": PART + main("""
            o = pl.create_tensor([64, 64], dtype=pl.FP32)
            o1 = self.part(x, 16, o)
            y1 = pl.assemble(y, o1, [0, 0])
            return y1
        """),
        "in a while": PART + main("""
            n = 0
            for i, (a, n1) in pl.while_(init_values=(y, n)):
                pl.cond(n1 < 4)
                a1 = self.part(x, n1 * 16, a)
                b, m = pl.yield_(a1, n1 + 1)
            return b
        """.replace("for i, (a, n1)", "for (a, n1)")),
        "another writer": PART + FILL + main("y1 = self.part(x, 16, y)\ny2 = self.fill(x, y1)\nreturn y2"),
        "a predicate": PART
        + main("r, tid = pl.submit(self.part, x, 16, y, predicate=(pl.tensor.read(c, [0]) > 0))\nreturn r", HEAD.replace("y:", "c: i32[1], y:")),
        "under a condition": PART.replace(
            "    y1 = pl.store(u, [r, 0], y)\n    return y",
            "    if r > 0:\n        y1 = pl.store(u, [r, 0], y)\n        y2 = pl.yield_(y1)\n"
            "    else:\n        y2 = pl.yield_(y)\n    return y",
        ) + CALL,
        "something else is done with it": PART.replace("    return y", "    v = pl.read(y, [0, 0])\n    return y") + CALL,
        "the extent is computed": PART.replace("pl.slice(t, [16, 64], [0, 0])", "pl.slice(t, [16, 64], [0, 0], valid_shape=[r, 64])") + CALL,
        "clamped": READ.replace("[16, 64])\n    u", "[16, 64], clamp=True)\n    u") + main("y1 = self.read(x, n + 1, y)\nreturn y1", READ_HEAD),
        "nothing is returned": PART.replace(") -> f32[64, 64]", ")").replace("    return y\n", "") + main("self.part(x, 16, y)\nreturn y"),
        "the result is not kept": PART + main("self.part(x, 16, y)\nreturn y"),
    }.items(),
    ids=lambda item: item[0].replace(" ", "_"),
)  # fmt: skip
def test_left_alone(text):
    stays(text[1])


@pytest.mark.parametrize(
    "body",
    {
        "nested loops": """
            for i, (a,) in pl.range(2, init_values=(y,)):
                for j, (c,) in pl.range(2, init_values=(a,)):
                    c1 = self.part(x, i * 32 + j * 16, c)
                    d = pl.yield_(c1)
                b = pl.yield_(d)
            return b
        """,
        "another tensor in each iteration": """
            for i, (a,) in pl.range(4, init_values=(y,)):
                o = pl.create_tensor([64, 64], dtype=pl.FP32)
                o1 = self.part(x, 0, o)
                a1 = self.copy(o1, i * 16, a)
                b = pl.yield_(a1)
            return b
        """,
        "a branch": """
            for i, (a,) in pl.range(4, init_values=(y,)):
                if i > 1:
                    a1 = self.part(x, i * 16, a)
                    c = pl.yield_(a1)
                else:
                    a2 = self.part(x, 32 - i * 16 - 16, a)
                    c = pl.yield_(a2)
                b = pl.yield_(c)
            return b
        """,
        "a writer in front of the loop": """
            y1 = self.copy(x, 48, y)
            for i, (a,) in pl.range(3, init_values=(y1,)):
                a1 = self.part(x, i * 16, a)
                b = pl.yield_(a1)
            return b
        """,
    }.items(),
    ids=lambda item: item[0].replace(" ", "_"),
)
def test_places_of_calls(body):
    copy = PART.replace("def part", "def copy").replace(f"    {WINDOWIZE}\n", "")
    text = PART + copy + main(body[1])
    same_meaning(text, lambda x, y: {"y": np.concatenate([x[:16]] * 4)})


def test_a_program_that_asks_for_nothing_costs_one_look():
    program = before(PART.replace(WINDOWIZE, "s = r") + CALL)
    looked = []

    class Attrs(dict):
        def get(self, key, default=None):
            looked.append(key)
            return super().get(key, default)

    class Plain:
        func_type = ir.FunctionType.InCore
        attrs = Attrs()

    class Asked:
        functions = {"a": Plain(), "b": Plain()}

    assert externalise_windows(Asked) is Asked and looked == ["windowize"] * 2
    assert externalise_windows(program) is program
