"""OptimizeOrchTensors: spec 06, section 4."""

import random
import textwrap

import numpy as np
import pytest
from outlining_kit import expect, outline, run_all_orders, source
from spec_kit import noise, parse, zeros

import pypto.language as pl
from pypto import ir
from pypto.ops.values import ArrayValue, Buffer
from pypto.passes.base import Pass
from pypto.passes.derive_call_directions import derive_call_directions
from pypto.passes.fuse_create_assemble_to_slice import fuse_create_assemble_to_slice
from pypto.passes.normalize_return_order import normalize_return_order
from pypto.passes.optimize_orch_tensors import optimize_orch_tensors
from pypto.runtime.compilers import CompilerNotFound, find_compiler
from pypto.runtime.emitted import EmittedProgram
from pypto.runtime.host_executor import RunOptions
from pypto.runtime.interpreter import Interpreter
from pypto.verify.properties import IRProperty, get_structural_properties, property_set
from pypto.verify.registry import PropertyVerifierRegistry

FORM = property_set(IRProperty.SSAForm, IRProperty.UseAfterDef).union_with(get_structural_properties())


def before(text: str) -> ir.Program:
    return outline(source(text))


def optimized(text: str) -> ir.Program:
    """The result: in form, printed and parsed the same, and the pass has nothing more to do."""
    step = optimize_orch_tensors()
    after = step(before(text))
    assert step(after) is after
    PropertyVerifierRegistry.verify_or_throw(FORM, after)
    ir.assert_structural_equal(after, pl.parse(after.as_python()), enable_auto_mapping=True)
    return after


def stays(text: str) -> None:
    program = before(text)
    assert optimize_orch_tensors()(program) is program


def same_meaning(text: str, args, want) -> ir.Program:
    """Before, behind the pass, and behind those that follow, the program computes what NumPy does."""
    program = before(text)
    after = optimize_orch_tensors()(program)
    assert after is not program
    wanted = want(**args())
    run_all_orders(program, args, wanted)
    run_all_orders(after, args, wanted)
    last = after
    for step in (normalize_return_order, fuse_create_assemble_to_slice, derive_call_directions):
        last = step()(last)
    run_all_orders(last, args, wanted)
    return after


def directions(program: ir.Program, name: str) -> list[str]:
    return [d.name for d in program.get_function(name).param_directions]


def strides(program: ir.Program, name: str, param: int) -> list[int] | None:
    view = program.get_function(name).params[param].type.tensor_view
    return None if view is None else [int(s.value) for s in view.stride]


# --- rewrite 1: a carry in place --------------------------------------------------------------------------------------

STEP = """
@InCore
def step(self, v: f32[32, 32], o: pl.Out[f32[32, 32]]) -> f32[32, 32]:
    t = pl.load(v, [0, 0], [32, 32])
    u = pl.add(t, 1.0)
    r = pl.store(u, [0, 0], o)
    return r
@InCore
def look(self, v: f32[32, 32], o: pl.Out[f32[32, 32]]) -> f32[32, 32]:
    t = pl.load(v, [0, 0], [32, 32])
    u = pl.mul(t, 2.0)
    r = pl.store(u, [0, 0], o)
    return r
@InCore
def copy(self, v: f32[32, 32], w: pl.Out[f32[32, 32]]) -> f32[32, 32]:
    t = pl.load(v, [0, 0], [32, 32])
    r = pl.store(t, [0, 0], w)
    return r
"""

IN_PLACE = """
@InCore
def step(self, v: pl.InOut[f32[32, 32]]) -> f32[32, 32]:
    t = pl.load(v, [0, 0], [32, 32])
    u = pl.add(t, 1.0)
    r = pl.store(u, [0, 0], v)
    return r
""" + STEP.partition("return r\n")[2]

LOOP = """
@Orchestration
def main(self, x: f32[32, 32], y: pl.Out[f32[32, 32]]) -> f32[32, 32]:
    x0 = pl.create_tensor([32, 32], dtype=pl.FP32)
    x1 = self.copy(x, x0)
    for i, (cur,) in pl.range(8, init_values=(x1,)):
        nxt = pl.create_tensor([32, 32], dtype=pl.FP32)
        res = self.step(cur, nxt)
        fin = pl.yield_(res)
    y1 = self.look(fin, y)
    return y1
"""


def one_input():
    return {"x": noise(32, 32), "y": zeros(32, 32)}


def test_the_example():
    expect(
        optimized(STEP + LOOP),
        IN_PLACE
        + """
@Orchestration
def main(self, x: f32[32, 32], y: pl.Out[f32[32, 32]]) -> f32[32, 32]:
    x0 = pl.create_tensor([32, 32], dtype=pl.FP32)
    x1 = self.copy(x, x0)
    for i, (cur,) in pl.range(8, init_values=(x1,)):
        res = self.step(cur)
        fin = pl.yield_(res)
    y1 = self.look(fin, y)
    return y1
""",
    )
    same_meaning(STEP + LOOP, one_input, lambda x, y: {"y": (x + 8) * 2, "x": x.copy()})


def carried(body: str, *, first: str = "x1", before: str = "", behind: str = "") -> str:
    """The example with another loop body, other statements around the loop or another start."""
    return STEP + "\n".join(
        [
            "@Orchestration",
            "def main(self, x: f32[32, 32], n: idx, y: pl.Out[f32[32, 32]], z: pl.InOut[f32[32, 32]])"
            " -> tuple[f32[32, 32], f32[32, 32]]:",
            "    x0 = pl.create_tensor([32, 32], dtype=pl.FP32)",
            "    x1 = self.copy(x, x0)",
            *([textwrap.indent(before, "    ")] if before else []),
            f"    for i, (cur, oth) in pl.range(8, init_values=({first}, z)):",
            textwrap.indent(textwrap.dedent(body).strip(), "        "),
            "    y1 = self.look(fin, y)",
            *([textwrap.indent(behind, "    ")] if behind else []),
            "    return y1, also",
        ]
    )


CREATE = "nxt = pl.create_tensor([32, 32], dtype=pl.FP32)\n"
PLAIN = CREATE + "res = self.step(cur, nxt)\nfin, also = pl.yield_(res, oth)"


def test_with_a_carry_beside_it():
    assert directions(optimized(carried(PLAIN)), "step") == ["InOut"]


@pytest.mark.parametrize(
    "text",
    {
        "read again in the body": carried(
            CREATE + "res = self.step(cur, nxt)\noth2 = self.look(cur, oth)\nfin, also = pl.yield_(res, oth2)"
        ),
        "read by a task before": carried(
            CREATE + "oth2 = self.look(cur, oth)\nres = self.step(cur, nxt)\nfin, also = pl.yield_(res, oth2)"
        ),
        "the result is read by a task": carried(
            CREATE + "res = self.step(cur, nxt)\noth2 = self.look(res, oth)\nfin, also = pl.yield_(res, oth2)"
        ),
        "yielded to another carry": carried(CREATE + "res = self.step(cur, nxt)\nfin, also = pl.yield_(oth, res)"),
        "yielded twice": carried(CREATE + "res = self.step(cur, nxt)\nfin, also = pl.yield_(res, res)"),
        "kept in another carry": carried(CREATE + "res = self.step(cur, nxt)\nfin, also = pl.yield_(res, cur)"),
        "a parameter of the caller": carried(PLAIN, first="x"),
        "a written parameter of the caller": carried(PLAIN, first="z"),
        "its start is read later": carried(PLAIN, behind="z1 = self.look(x1, z)"),
        "its start is read by a task before": carried(
            PLAIN, before="s0 = pl.create_tensor([32, 32], dtype=pl.FP32)\ns1 = self.look(x1, s0)"
        ),
        "a part of another": carried(
            PLAIN,
            first="part",
            before="big = pl.create_tensor([64, 32], dtype=pl.FP32)\npart = pl.slice(big, [32, 32], [0, 0])",
        ),
        "an output with a value": carried(PLAIN.replace("dtype=pl.FP32)", "dtype=pl.FP32, init_value=0.0)")),
        "an output out of order": carried(PLAIN.replace("dtype=pl.FP32)", "dtype=pl.FP32, manual_dep=True)")),
        "an output that is used again": carried(
            CREATE + "res = self.step(cur, nxt)\noth2 = self.look(nxt, oth)\nfin, also = pl.yield_(res, oth2)"
        ),
        "no dependency": carried(PLAIN.replace("self.step(cur", "self.step(pl.no_dep(cur)")),
        "a call elsewhere that needs its input": carried(
            PLAIN, behind="m0 = pl.create_tensor([32, 32], dtype=pl.FP32)\nm1 = self.step(x, m0)\nz1 = self.look(m1, z)"
        ),
        "a call elsewhere into a parameter": carried(PLAIN, behind="z1 = self.step(y1, z)"),
        "blocks": carried(
            CREATE + "res, tid = pl.spmd_submit(self.step, cur, nxt, core_num=2)\nfin, also = pl.yield_(res, oth)"
        ),
    }.items(),
    ids=lambda item: item[0].replace(" ", "_"),
)
def test_left_alone(text):
    stays(text[1])


def test_what_the_caller_reads_itself_may_be_read():
    """``tensor.read`` waits for who writes, and is over before the next statement."""
    body = CREATE + "f = pl.tensor.read(cur, [0, 0])\nres = self.step(cur, nxt)\nfin, also = pl.yield_(res, oth)"
    assert directions(optimized(carried(body)), "step") == ["InOut"]


def test_a_submit_and_its_dependency():
    body = CREATE + "res, tid = pl.submit(self.step, cur, nxt, dumps=[cur, nxt])\nfin, also = pl.yield_(res, oth)"
    after = optimized(carried(body))
    assert directions(after, "step") == ["InOut"]
    text = ir.python_print(after.get_function("main"), concise=True)
    assert "pl.submit(step, cur, dumps=[cur])" in text


def test_an_output_that_the_runtime_allocates():
    body = "res, tid = pl.submit(self.step, cur)\nfin, also = pl.yield_(res, oth)"
    after = optimized(carried(body))
    assert directions(after, "step") == ["InOut"]


def test_a_while_loop():
    text = STEP + textwrap.dedent(
        """
        @Orchestration
        def main(self, x: f32[32, 32], y: pl.Out[f32[32, 32]]) -> f32[32, 32]:
            x0 = pl.create_tensor([32, 32], dtype=pl.FP32)
            x1 = self.copy(x, x0)
            for k, cur in pl.while_(init_values=(0, x1)):
                pl.cond(k < 3)
                nxt = pl.create_tensor([32, 32], dtype=pl.FP32)
                res = self.step(cur, nxt)
                k1, fin = pl.yield_(k + 1, res)
            y1 = self.look(fin, y)
            return y1
        """
    )
    assert directions(optimized(text), "step") == ["InOut"]
    same_meaning(text, one_input, lambda x, y: {"y": (x + 3) * 2, "x": x.copy()})


NEST = STEP + textwrap.dedent(
    """
    @Orchestration
    def main(self, x: f32[32, 32], y: pl.Out[f32[32, 32]]) -> f32[32, 32]:
        x0 = pl.create_tensor([32, 32], dtype=pl.FP32)
        x1 = self.copy(x, x0)
        for i, (a,) in pl.range(2, init_values=(x1,)):
            for j, (b,) in pl.range(3, init_values=(a,)):
                nxt = pl.create_tensor([32, 32], dtype=pl.FP32)
                res = self.step(b, nxt)
                inner = pl.yield_(res)
            outer = pl.yield_(inner)
        y1 = self.look(outer, y)
        return y1
    """
)


def test_a_carry_of_two_loops():
    assert directions(optimized(NEST), "step") == ["InOut"]
    same_meaning(NEST, one_input, lambda x, y: {"y": (x + 6) * 2, "x": x.copy()})


def test_a_carry_of_an_inner_loop_alone():
    """Each iteration of the outer loop begins with the same buffer: it must not be written."""
    stays(NEST.replace("init_values=(a,)", "init_values=(x1,)"))


PARAM = STEP + textwrap.dedent(
    """
    @Orchestration
    def main(self, x0: pl.InOut[f32[32, 32]], y: pl.Out[f32[32, 32]]) -> f32[32, 32]:
        for i, (cur,) in pl.range(8, init_values=(x0,)):
            nxt = pl.create_tensor([32, 32], dtype=pl.FP32)
            res = self.step(cur, nxt)
            fin = pl.yield_(res)
        y1 = self.look(fin, y)
        return y1
    """
)


def test_a_parameter_that_is_declared_as_written():
    assert directions(optimized(PARAM), "step") == ["InOut"]
    program = parse(PARAM)
    for step in with_the_pass():
        program = step(program)
    run_all_orders(program, lambda: {"x0": noise(32, 32), "y": zeros(32, 32)}, {"y": (noise(32, 32) + 8) * 2})


def test_the_outcome_is_a_result_of_the_program():
    """A returned parameter is not handed back as a result."""
    stays(PARAM.replace("return y1", "return fin"))


def test_a_parameter_that_is_declared_as_read():
    """The caller's own array would change."""
    stays(PARAM.replace("x0: pl.InOut[f32[32, 32]]", "x0: f32[32, 32]"))


@pytest.mark.parametrize("direction", ["Out", "InOut"])
def test_a_parameter_that_is_written_before(direction):
    """The caller of the program is to see what was written there."""
    text = PARAM.replace("x0: pl.InOut", f"x: f32[32, 32], x0: pl.{direction}")
    stays(text.replace("    for", "    x1 = self.copy(x, x0)\n    for").replace("=(x0,)", "=(x1,)"))


def test_loops_one_behind_another():
    """The second loop goes on with the buffer of the first."""
    loop = LOOP[LOOP.index("    for") : LOOP.index("    y1")]
    more = loop.replace("cur", "c2").replace("nxt", "n2").replace("res", "r2").replace("fin", "f2").replace("x1", "fin")
    text = STEP + LOOP.replace(loop, loop + more).replace("look(fin", "look(f2")
    after = optimized(text)
    assert directions(after, "step") == ["InOut"]
    assert ir.python_print(after.get_function("main")).count("create") == 1
    same_meaning(text, one_input, lambda x, y: {"y": (x + 16) * 2, "x": x.copy()})


def test_a_caller_that_is_no_orchestration_yet():
    after = optimized(STEP + LOOP.replace("@Orchestration", "@Opaque"))
    assert directions(after, "step") == ["InOut"]


def test_a_wrapper_that_calls_the_kernel_as_well():
    group = """
@Group
def wrap(self, v: f32[32, 32], o: pl.Out[f32[32, 32]]) -> f32[32, 32]:
    r = self.step(v, o)
    return r
"""
    stays(STEP + group + LOOP)


def test_made_anew_in_the_outer_loop():
    text = STEP + textwrap.dedent(
        """
        @Orchestration
        def main(self, x: f32[32, 32], y: pl.InOut[f32[32, 32]]) -> f32[32, 32]:
            for i, (acc,) in pl.range(2, init_values=(y,)):
                x0 = pl.create_tensor([32, 32], dtype=pl.FP32)
                x1 = self.copy(x, x0)
                for j, (b,) in pl.range(3, init_values=(x1,)):
                    nxt = pl.create_tensor([32, 32], dtype=pl.FP32)
                    res = self.step(b, nxt)
                    inner = pl.yield_(res)
                acc1 = self.look(inner, acc)
                last = pl.yield_(acc1)
            return last
        """
    )
    assert directions(optimized(text), "step") == ["InOut"]
    same_meaning(text, one_input, lambda x, y: {"y": (x + 3) * 2})


TWO = """
@InCore
def two(self, a: f32[32, 32], b: f32[32, 32], n: idx, p: pl.Out[f32[32, 32]], q: pl.Out[f32[32, 32]]) -> tuple[f32[32, 32], f32[32, 32]]:
    s = pl.load(a, [0, 0], [32, 32])
    t = pl.load(b, [0, 0], [32, 32])
    if n > 0:
        p1 = pl.store(pl.add(s, t), [0, 0], p)
        p2 = pl.yield_(p1)
    else:
        p3 = pl.store(s, [0, 0], p)
        p2 = pl.yield_(p3)
    q1 = pl.store(pl.mul(t, 2.0), [0, 0], q)
    return p2, q1
"""

TWO_LOOP = (
    STEP
    + TWO
    + textwrap.dedent(
        """
        @Orchestration
        def main(self, x: f32[32, 32], y: pl.Out[f32[32, 32]], z: pl.Out[f32[32, 32]]) -> tuple[f32[32, 32], f32[32, 32]]:
            x0 = pl.create_tensor([32, 32], dtype=pl.FP32)
            x1 = self.copy(x, x0)
            y0 = pl.create_tensor([32, 32], dtype=pl.FP32)
            y1 = self.copy(x, y0)
            for i, (c, d) in pl.range(3, init_values=(x1, y1)):
                o = pl.create_tensor([32, 32], dtype=pl.FP32)
                u = pl.create_tensor([32, 32], dtype=pl.FP32)
                r = self.two(c, d, i, o, u)
                r0 = r[0]
                r1 = r[1]
                e, f = pl.yield_(r0, r1)
            y2 = self.look(e, y)
            z2 = self.look(f, z)
            return y2, z2
        """
    )
)


def test_two_results_and_a_branch_in_the_kernel():
    """``p`` is written behind all reads of ``a`` and ``b``, and so is ``q``."""
    after = optimized(TWO_LOOP)
    assert directions(after, "two") == ["InOut", "InOut", "In"]
    text = ir.python_print(after.get_function("main"), concise=True)
    assert "two(c, d, i__idx_v0)" in text and text.count("create") == 2

    def want(x, y, z):
        c, d = x.copy(), x.copy()
        for i in range(3):
            c, d = (c + d if i > 0 else c), d * 2
        return {"y": c * 2, "z": d * 2, "x": x.copy()}

    same_meaning(TWO_LOOP, lambda: {"x": noise(32, 32), "y": zeros(32, 32), "z": zeros(32, 32)}, want)


def test_arguments_marked_no_dep_keep_their_marks():
    """Positions move when an argument goes."""
    text = TWO_LOOP.replace(
        "def two(self, a: f32[32, 32], b: f32[32, 32], n: idx, p: pl.Out[f32[32, 32]], q:",
        "def two(self, a: f32[32, 32], p: pl.Out[f32[32, 32]], b: f32[32, 32], n: idx, q:",
    ).replace("self.two(c, d, i, o, u)", "self.two(c, o, pl.no_dep(d), i, u)")
    after = optimized(text)
    assert directions(after, "two") == ["InOut", "In", "In", "Out"]
    [call] = [
        n.value
        for n in ir.tree.walk_stmts(after.get_function("main").body)
        if isinstance(n, ir.AssignStmt) and isinstance(n.value, ir.Call) and n.value.op.name == "two"
    ]
    assert list(call.attrs["arg_direction_overrides"]) == [1] and call.args[1].name_hint.startswith("d")


@pytest.mark.parametrize(
    "body",
    {
        "reads behind its write": """
    t = pl.load(v, [0, 0], [16, 32])
    o1 = pl.store(t, [0, 0], o)
    u = pl.load(v, [16, 0], [16, 32])
    r = pl.store(u, [16, 0], o1)
    return r
""",
        "reads and writes in one loop": """
    for k, (a,) in pl.range(2, init_values=(o,)):
        t = pl.load(v, [16 - k * 16, 0], [16, 32])
        a1 = pl.store(t, [k * 16, 0], a)
        r = pl.yield_(a1)
    return r
""",
    }.items(),
    ids=lambda item: item[0].replace(" ", "_"),
)
def test_a_kernel_that_reads_what_it_would_have_overwritten(body):
    kernel = "\n@InCore\ndef step(self, v: f32[32, 32], o: pl.Out[f32[32, 32]]) -> f32[32, 32]:" + body[1]
    stays(kernel + STEP.partition("return r\n")[2] + LOOP)


# --- rewrite 1: plain calls -------------------------------------------------------------------------------------------

GROW = """
@InCore
def grow(self, v: f32[32, 32], o: pl.Out[f32[32, 32]]) -> f32[32, 32]:
    t = pl.load(v, [0, 0], [32, 32])
    for k, (a,) in pl.range(3, init_values=(t,)):
        a1 = pl.add(a, a)
        b = pl.yield_(a1)
    r = pl.store(b, [0, 0], o)
    return r
"""

CALL = """
@Orchestration
def main(self, x: f32[32, 32], y: pl.Out[f32[32, 32]]) -> f32[32, 32]:
    x0 = pl.create_tensor([32, 32], dtype=pl.FP32)
    x1 = self.copy(x, x0)
    o = pl.create_tensor([32, 32], dtype=pl.FP32)
    g = self.grow(x1, o)
    y1 = self.look(g, y)
    return y1
"""


def test_a_plain_call():
    after = optimized(STEP + GROW + CALL)
    assert directions(after, "grow") == ["InOut"]
    assert ir.python_print(after.get_function("main")).count("create") == 1
    same_meaning(STEP + GROW + CALL, one_input, lambda x, y: {"y": x * 16, "x": x.copy()})


def test_a_chain_of_calls():
    text = (
        STEP
        + GROW
        + CALL.replace(
            "    y1 = self.look(g, y)",
            "    o2 = pl.create_tensor([32, 32], dtype=pl.FP32)\n    g2 = self.grow(g, o2)\n    y1 = self.look(g2, y)",
        )
    )
    after = optimized(text)
    assert ir.python_print(after.get_function("main")).count("create") == 1
    same_meaning(text, one_input, lambda x, y: {"y": x * 128, "x": x.copy()})


@pytest.mark.parametrize(
    "change",
    {
        "no loop in the kernel": ("self.grow(x1, o)", "self.step(x1, o)"),
        "a parameter of the caller": ("self.grow(x1, o)", "self.grow(x, o)"),
        "read again": ("    return y1", "    y1 = self.look(x1, y1)\n    return y1"),
        "one of two calls": (
            "    return y1",
            "    p = pl.create_tensor([32, 32], dtype=pl.FP32)\n    q = self.grow(x, p)\n    y1 = self.look(q, y1)\n    return y1",
        ),
        "returned": (
            "    y1 = self.look(g, y)\n    return y1",
            "    y1 = self.look(g, y)\n    return x1",
        ),
    }.items(),
    ids=lambda item: item[0].replace(" ", "_"),
)
def test_plain_calls_left_alone(change):
    old, new = change[1]
    assert old in CALL
    stays(STEP + GROW + CALL.replace(old, new))


@pytest.mark.parametrize("window", ["[8, 0], [16, 32]", "[0, 0], [32, 16]"])
def test_a_part_of_the_input_is_not_carried(window):
    shape = window.split("], ")[1]
    kernel = GROW.replace("[0, 0], [32, 32]", window).replace("pl.store(b, [0, 0], o)", "pl.store(b, [0, 0], o)")
    assert shape in kernel
    stays(STEP + kernel + CALL)


# --- rewrite 2: strides from an assemble target -----------------------------------------------------------------------

FILL = """
@InCore
def fill(self, a: f32[64, 64], r: idx, o: pl.Out[f32[16, 32]]) -> f32[16, 32]:
    t = pl.load(a, [r * 16, 0], [16, 32])
    u = pl.add(t, 1.0)
    o2 = pl.store(u, [0, 0], o)
    return o2
"""

INTO = """
@Orchestration
def main(self, a: f32[64, 64], out: pl.Out[f32[64, 128]]) -> f32[64, 128]:
    for r, (acc,) in pl.range(4, init_values=(out,)):
        t = pl.create_tensor([16, 32], dtype=pl.FP32)
        u = self.fill(a, r, t)
        acc2 = pl.assemble(acc, u, [r * 16, 64])
        res = pl.yield_(acc2)
    return res
"""

VIEW = "pl.TensorView(stride=[128, 1], layout=pl.TensorLayout.ND)"


def test_strides_of_the_target():
    strided = f"pl.Tensor[[16, 32], pl.FP32, {VIEW}]"
    expect(
        optimized(FILL + INTO),
        f"""
@InCore
def fill(self, a: f32[64, 64], r: idx, o: pl.Out[{strided}]) -> {strided}:
    t = pl.load(a, [r * 16, 0], [16, 32])
    u = pl.add(t, 1.0)
    o2 = pl.store(u, [0, 0], o)
    return o2
"""
        + INTO,
    )

    def want(a, out):
        out = out.copy()
        out[:, 64:96] = a[:, :32] + 1
        return {"out": out}

    same_meaning(FILL + INTO, lambda: {"a": noise(64, 64), "out": zeros(64, 128)}, want)


def test_strides_of_a_target_of_more_dimensions():
    text = INTO.replace("f32[64, 128]", "f32[4, 16, 256]").replace("[r * 16, 64]", "[r, 0, 0]")
    assert strides(optimized(FILL + text), "fill", 2) == [256, 1]


def test_strides_through_a_submit_and_a_tuple():
    text = INTO.replace("u = self.fill(a, r, t)", "u, tid = pl.submit(self.fill, a, r, t)")
    assert strides(optimized(FILL + text), "fill", 2) == [128, 1]


def test_a_target_of_the_same_width_needs_no_strides():
    stays(FILL + INTO.replace("64, 128]", "64, 32]").replace("[r * 16, 64]", "[r * 16, 0]"))


def test_targets_of_different_width():
    other = INTO.replace("def main", "def more").replace("64, 128]", "64, 96]")
    assert strides(optimized(FILL + INTO + other.replace("64, 96]", "64, 128]")), "fill", 2) == [128, 1]
    stays(FILL + INTO + other)


@pytest.mark.parametrize(
    "change",
    {
        "assembled twice": (
            "res = pl.yield_(acc2)",
            "acc3 = pl.assemble(acc2, u, [r * 16, 0])\n        res = pl.yield_(acc3)",
        ),
        "atomic": ("[r * 16, 64])", "[r * 16, 64], atomic=pl.AtomicType.Add)"),
    }.items(),
    ids=lambda item: item[0].replace(" ", "_"),
)
def test_a_buffer_that_stays_packed(change):
    """It does not become a slice of the target, so the kernel would write past its end."""
    old, new = change[1]
    assert old in INTO
    stays(FILL + INTO.replace(old, new))


def test_a_kernel_that_a_wrapper_calls_as_well():
    group = """
@Group
def wrap(self, a: f32[64, 64], r: idx, o: pl.Out[f32[16, 32]]) -> f32[16, 32]:
    o2 = self.fill(a, r, o)
    return o2
"""
    stays(FILL + group + INTO)


def test_a_kernel_with_a_carry_and_a_branch():
    """All names of the parameter have its strides."""
    kernel = """
@InCore
def fill(self, a: f32[64, 64], r: idx, o: pl.Out[f32[16, 32]]) -> f32[16, 32]:
    for k, (c,) in pl.range(2, init_values=(o,)):
        t = pl.load(a, [r * 16 + k * 8, 0], [8, 32])
        if k > 0:
            c1 = pl.store(pl.add(t, 1.0), [k * 8, 0], c)
            c2 = pl.yield_(c1)
        else:
            c3 = pl.store(pl.add(t, 1.0), [k * 8, 0], c)
            c2 = pl.yield_(c3)
        d = pl.yield_(c2)
    return d
"""
    after = optimized(kernel + INTO)
    fill = after.get_function("fill")
    tensors = [v for v in ir.tree.definitions(fill) if isinstance(v.type, ir.TensorType) and v.name_hint[0] != "a"]
    assert len(tensors) == 6 and all(v.type.tensor_view is not None for v in tensors)

    def want(a, out):
        return {"out": np.hstack([out[:, :64], a[:, :32] + 1, out[:, 96:]])}

    same_meaning(kernel + INTO, lambda: {"a": noise(64, 64), "out": zeros(64, 128)}, want)


def test_a_target_of_unknown_shape():
    stays(FILL + INTO.replace("64, 128]", "64, N]"))


# --- rewrite 3: an assembling loop ------------------------------------------------------------------------------------

PIECES = """
@InCore
def pieces(self, x: f32[64, 32], o: pl.Out[f32[64, 32]]) -> f32[64, 32]:
    t = pl.create_tile([64, 32], dtype=pl.FP32)
    for i, (a,) in pl.range(4, init_values=(t,)):
        p = pl.load(x, [i * 16, 0], [16, 32])
        q = pl.mul(p, 2.0)
        a2 = pl.tile.assemble(a, q, [48 - i * 16, 0])
        w = pl.yield_(a2)
    o2 = pl.store(w, [0, 0], o)
    return o2
"""

RUN = """
@Orchestration
def main(self, x: f32[64, 32], y: pl.Out[f32[64, 32]]) -> f32[64, 32]:
    y1 = self.pieces(x, y)
    return y1
"""


def test_an_assembling_loop():
    expect(
        optimized(PIECES + RUN),
        """
@InCore
def pieces(self, x: f32[64, 32], o: pl.Out[f32[64, 32]]) -> f32[64, 32]:
    for i, (a,) in pl.range(4, init_values=(o,)):
        p = pl.load(x, [i * 16, 0], [16, 32])
        q = pl.mul(p, 2.0)
        a2 = pl.store(q, [48 - i * 16, 0], a)
        w = pl.yield_(a2)
    return w
"""
        + RUN,
    )
    same_meaning(
        PIECES + RUN,
        lambda: {"x": noise(64, 32), "y": zeros(64, 32)},
        lambda x, y: {"y": np.concatenate([x[48:], x[32:48], x[16:32], x[:16]]) * 2},
    )


@pytest.mark.parametrize(
    "change",
    {
        "read in the loop": ("q = pl.mul(p, 2.0)", "b = pl.tile.slice(a, [16, 32], [0, 0])\n        q = pl.add(p, b)"),
        "stored elsewhere": ("pl.store(w, [0, 0], o)", "pl.store(w, [N0, 0], o)"),
        "stored twice": ("    return o2", "    o3 = pl.store(w, [0, 0], o2)\n    return o3"),
        "the output is written before": (
            "    for i",
            "    z = pl.load(x, [0, 0], [16, 32])\n    o0 = pl.store(z, [0, 0], o)\n    for i",
        ),
        "an output that is read": ("o: pl.Out[", "o: pl.InOut["),
        "atomic": ("pl.store(w, [0, 0], o)", "pl.store(w, [0, 0], o, atomic=pl.AtomicType.Add)"),
        "two carries": (
            "    for i, (a,) in pl.range(4, init_values=(t,)):",
            "    for i, (a, c) in pl.range(4, init_values=(t, 0)):",
        ),
    }.items(),
    ids=lambda item: item[0].replace(" ", "_"),
)
def test_loops_left_alone(change):
    old, new = change[1]
    assert old in PIECES
    text = PIECES.replace(old, new)
    if "N0" in text:
        text = text.replace("x: f32[64, 32], o", "x: f32[64, 32], N0: idx, o").replace(
            "o: pl.Out[f32[64, 32]]) -> f32[64, 32]", "o: pl.Out[f32[80, 32]]) -> f32[80, 32]"
        )
        run = RUN.replace("y: pl.Out[f32[64, 32]]) -> f32[64, 32]", "y: pl.Out[f32[80, 32]]) -> f32[80, 32]").replace(
            "(x, y)", "(x, 16, y)"
        )
    else:
        run = RUN
    if "(a, c)" in text:
        text = text.replace("w = pl.yield_(a2)", "w, d = pl.yield_(a2, c + 1)")
    if "b = pl.tile.slice" in text:
        assert "pl.add(p, b)" in text
    stays(text + run)


def test_a_while_loop_is_left_alone():
    stays(
        """
@InCore
def pieces(self, x: f32[64, 32], o: pl.Out[f32[64, 32]]) -> f32[64, 32]:
    t = pl.create_tile([64, 32], dtype=pl.FP32)
    k0 = 0
    for k, a in pl.while_(init_values=(0, t)):
        pl.cond(k < 4)
        p = pl.load(x, [k * 16, 0], [16, 32])
        a2 = pl.tile.assemble(a, p, [k * 16, 0])
        k1, w = pl.yield_(k + 1, a2)
    o2 = pl.store(w, [0, 0], o)
    return o2
"""
        + RUN
    )


# --- rewrite 4: strides from a slice ----------------------------------------------------------------------------------

TAKE = """
@InCore
def take(self, s: f32[16, 64], y: pl.Out[f32[16, 64]]) -> f32[16, 64]:
    t = pl.load(s, [0, 0], [16, 64])
    y1 = pl.store(pl.add(t, 1.0), [0, 0], y)
    return y1
"""

SLICE = """
@Orchestration
def main(self, big: f32[128, 256], r: idx, y: pl.Out[f32[16, 64]]) -> f32[16, 64]:
    s = pl.slice(big, [16, 64], [r * 16, 0])
    y1 = self.take(s, y)
    return y1
"""


def test_strides_of_a_slice():
    expect(
        optimized(TAKE + SLICE),
        """
@InCore
def take(self, s: pl.Tensor[[16, 64], pl.FP32, pl.TensorView(stride=[256, 1], layout=pl.TensorLayout.ND)], y: pl.Out[f32[16, 64]]) -> f32[16, 64]:
    t = pl.load(s, [0, 0], [16, 64])
    y1 = pl.store(pl.add(t, 1.0), [0, 0], y)
    return y1
"""
        + SLICE,
    )
    same_meaning(
        TAKE + SLICE,
        lambda: {"big": noise(128, 256), "r": 3, "y": zeros(16, 64)},
        lambda big, r, y: {"y": big[48:64, :64] + 1},
    )


@pytest.mark.parametrize(
    ("slices", "wanted"),
    [
        ("s0 = pl.slice(big, [32, 128], [r, 0])\n    s = pl.slice(s0, [16, 64], [0, 0])", [256, 1]),
        ("s0 = big\n    s = pl.slice(s0, [16, 64], [0, 0])", [256, 1]),
    ],
    ids=["a slice of a slice", "a copy"],
)
def test_strides_of_the_whole_tensor(slices, wanted):
    text = SLICE.replace("s = pl.slice(big, [16, 64], [r * 16, 0])", slices)
    assert strides(optimized(TAKE + text), "take", 0) == wanted


def test_strides_of_three_dimensions():
    text = (TAKE + SLICE).replace("[16, 64]", "[2, 16, 64]").replace("[0, 0]", "[0, 0, 0]")
    text = text.replace("f32[128, 256]", "f32[8, 128, 256]").replace("[r * 16, 0]", "[r, 0, 0]")
    assert strides(optimized(text), "take", 0) == [128 * 256, 256, 1]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    return y1", "    y1 = self.take(y1, y1)\n    return y1"),
        ("    return y1", "    s2 = pl.slice(other, [16, 64], [0, 0])\n    y1 = self.take(s2, y1)\n    return y1"),
        ("f32[128, 256]", "f32[128, N]"),
        (
            "s = pl.slice(big, [16, 64], [r * 16, 0])",
            "s0 = pl.transpose(big, 0, 1)\n    s = pl.slice(s0, [16, 64], [0, 0])",
        ),
    ],
    ids=["a packed tensor elsewhere", "another width elsewhere", "unknown shape", "transposed"],
)
def test_strides_left_alone(old, new):
    text = SLICE.replace("r: idx,", "r: idx, other: f32[64, 128],")
    assert old in text
    stays(TAKE + text.replace(old, new))


def test_a_kernel_that_computes_on_the_tensor_itself():
    kernel = TAKE.replace(
        "t = pl.load(s, [0, 0], [16, 64])", "v = pl.tensor.add(s, s)\n    t = pl.load(v, [0, 0], [16, 64])"
    )
    stays(kernel + SLICE)


def test_nothing_to_do():
    stays(TAKE + SLICE.replace("f32[128, 256]", "f32[128, 64]"))


# --- the whole pipeline -----------------------------------------------------------------------------------------------

WHOLE = {
    "carry": (STEP + LOOP, one_input, lambda x, y: {"y": (x + 8) * 2, "x": x.copy()}),
    "nest": (NEST, one_input, lambda x, y: {"y": (x + 6) * 2, "x": x.copy()}),
    "plain call": (STEP + GROW + CALL, one_input, lambda x, y: {"y": x * 16, "x": x.copy()}),
    "target": (
        FILL + INTO,
        lambda: {"a": noise(64, 64), "out": zeros(64, 128)},
        lambda a, out: {"out": np.hstack([out[:, :64], a[:, :32] + 1, out[:, 96:]])},
    ),
    "pieces": (
        PIECES + RUN,
        lambda: {"x": noise(64, 32), "y": zeros(64, 32)},
        lambda x, y: {"y": np.concatenate([x[48:], x[32:48], x[16:32], x[:16]]) * 2},
    ),
    "slice": (
        TAKE + SLICE,
        lambda: {"big": noise(128, 256), "r": 3, "y": zeros(16, 64)},
        lambda big, r, y: {"y": big[48:64, :64] + 1},
    ),
}


def with_the_pass() -> list[Pass]:
    """The passes of the Default strategy with this one where it belongs."""
    others = [step for step in ir.PassManager().passes if step.get_name() != "OptimizeOrchTensors"]
    at = next(i for i, step in enumerate(others) if step.get_name() == "NormalizeReturnOrder")
    return [*others[:at], optimize_orch_tensors(), *others[at:]]


@pytest.mark.parametrize("name", WHOLE)
def test_whole_pipeline_and_emitted_code(name):
    text, args, want = WHOLE[name]
    program = parse(text)
    for step in with_the_pass():
        program = step(program)
        if step.get_name() == "OptimizeOrchTensors":
            assert program is not previous
        previous = program
    wanted = want(**args())
    run_all_orders(program, args, wanted)
    try:
        find_compiler()
    except CompilerNotFound as error:
        pytest.skip(f"emitted code is C++, and there is no compiler: {error}")
    emitted = EmittedProgram(program, "main")
    for options in (RunOptions(workers=2), RunOptions(workers=1, random=True, seed=1)):
        values = args()
        emitted.run(list(values.values()), options)
        for key, value in wanted.items():
            np.testing.assert_allclose(values[key], value, rtol=1e-5, atol=1e-6, err_msg=f"{key}, {options}")


# --- generated callers ------------------------------------------------------------------------------------------------


class _Callers:
    """Callers of the kernels above, made at random: buffers that are read once or often, in and behind loops."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0
        # How often programs of one kind choose an older tensor: 0 makes chains, in which most can be done in place.
        self.old = self.random.choice([0.0, 0.0, 0.2, 0.5])

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def pick(self, known: list[str]) -> str:
        return self.random.choice(known) if self.random.random() < self.old else known[-1]

    def call(self, kernel: str, value: str) -> tuple[list[str], str]:
        out, result = self.name(), self.name()
        create = f"{out} = pl.create_tensor([32, 32], dtype=pl.FP32)"
        if self.random.random() < 0.3:
            return [create, f"{result}, t{result} = pl.submit(self.{kernel}, {value}, {out})"], result
        return [create, f"{result} = self.{kernel}({value}, {out})"], result

    def loop(self, known: list[str], depth: int) -> list[str]:
        carry, result = self.name(), self.name()
        inner = [*known, carry]
        body = self.block(inner, depth + 1, self.random.randint(0, 1))
        if depth < 2 and self.random.random() < 0.4:
            body += self.loop(inner, depth + 1)
        else:
            lines, value = self.call("step", self.pick([*known, carry] if self.old else [carry]))
            body += lines
            inner.append(value)
        start = self.pick(known)
        known.append(result)
        text = "\n".join([*body, f"{result} = pl.yield_({inner[-1]})"])
        head = f"for i{carry}, ({carry},) in pl.range({self.random.randint(0, 3)}, init_values=({start},)):"
        return [head, textwrap.indent(text, "    ")]

    def block(self, known: list[str], depth: int, length: int) -> list[str]:
        lines = []
        for _ in range(length):
            kind = self.random.choice(["copy", "grow", "loop", "step"])
            if kind == "loop" and depth < 2:
                lines += self.loop(known, depth)
            else:
                more, value = self.call("copy" if kind == "loop" else kind, self.pick(known))
                lines += more
                known.append(value)
        return lines

    def text(self) -> str:
        known = ["x"]
        lines, value = self.call("copy", "x")
        known.append(value)
        lines += self.block(known, 0, self.random.randint(1, 5))
        lines += [f"y1 = self.look({known[-1]}, y)", f"z1 = self.look({self.pick(known)}, z)", "return y1, z1"]
        head = "def main(self, x: f32[32, 32], y: pl.Out[f32[32, 32]], z: pl.Out[f32[32, 32]])"
        head = f"\n@Orchestration\n{head} -> tuple[f32[32, 32], f32[32, 32]]:\n"
        return STEP + GROW + head + textwrap.indent("\n".join(lines), "    ")


def outputs(program: ir.Program) -> dict[str, np.ndarray]:
    values = {"x": noise(32, 32), "y": zeros(32, 32), "z": zeros(32, 32)}
    boxed = [ArrayValue(value, Buffer(value, name, external=True)) for name, value in values.items()]
    Interpreter(program, "submit", 0).run(program.get_function("main"), boxed)
    return values


def check_generated(seed: int) -> bool:
    """Whether the pass changed a program; its meaning is that of the text, in all orders that are tried."""
    program = before(_Callers(seed).text())
    step = optimize_orch_tensors()
    after = step(program)
    if after is program:
        return False
    assert step(after) is after
    PropertyVerifierRegistry.verify_or_throw(FORM, after)
    wanted = outputs(program)
    args = lambda: {"x": noise(32, 32), "y": zeros(32, 32), "z": zeros(32, 32)}  # noqa: E731
    run_all_orders(after, args, wanted)
    run_all_orders(derive_call_directions()(normalize_return_order()(after)), args, wanted)
    return True


def test_generated_callers():
    changed = [seed for seed in range(60) if check_generated(seed)]
    assert len(changed) > 15, changed
