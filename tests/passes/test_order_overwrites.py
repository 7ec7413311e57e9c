"""AutoDeriveTaskDependencies with ``order_overwrites``: a launch waits for those that read what it overwrites."""

import random
import textwrap

import numpy as np
import pytest
from spec_kit import parse

import pypto.language as pl
from pypto import ir
from pypto.analysis.callees import callees_of
from pypto.analysis.overwrites import may_overwrite, narrowing_of
from pypto.analysis.task_marks import EDGES
from pypto.ir.tree import walk
from pypto.ops.values import ArrayValue, Buffer
from pypto.passes.auto_derive_task_dependencies import auto_derive_task_dependencies
from pypto.passes.convert_to_ssa import convert_to_ssa
from pypto.passes.derive_call_directions import derive_call_directions
from pypto.passes.flatten_call_expr import flatten_call_expr
from pypto.passes.normalize_stmt_structure import normalize_stmt_structure
from pypto.runtime.errors import RaceError
from pypto.runtime.interpreter import Interpreter
from pypto.runtime.races import check_races
from pypto.runtime.recording import run_record
from pypto.verify.properties import IRProperty, property_set
from pypto.verify.registry import PropertyVerifierRegistry

KERNELS = """
@InCore
def make(self, x: f32[16, 16], i: idx, t: pl.Out[f32[16, 16]]) -> f32[16, 16]:
    t1 = pl.store(pl.add(pl.load(x, [0, 0], [16, 16]), pl.cast(i, pl.FP32)), [0, 0], t)
    return t1
@InCore
def use(self, t: f32[16, 16], i: idx, y: pl.InOut[f32[16, 16]]) -> f32[16, 16]:
    v = pl.add(pl.load(y, [i, 0], [1, 16]), pl.load(t, [i, 0], [1, 16]))
    y1 = pl.store(v, [i, 0], y)
    return y1
@InCore
def drop(self, t: f32[16, 16], i: idx, y: pl.InOut[f32[16, 16]]):
    v = pl.add(pl.load(y, [i, 0], [1, 16]), pl.load(t, [i, 0], [1, 16]))
    y1 = pl.store(v, [i, 0], y)
@InCore
def row(self, i: idx, t: pl.InOut[f32[16, 16]]) -> f32[16, 16]:
    t1 = pl.store(pl.add(pl.load(t, [i, 0], [1, 16]), 1.0), [i, 0], t)
    return t1
"""
HEAD = "self, n: idx, x: pl.InOut[f32[16, 16]], y: pl.InOut[f32[16, 16]]"
NEW = "t = pl.create_tensor([16, 16], dtype=pl.FP32)\n"
FORM = property_set(
    IRProperty.SSAForm, IRProperty.UseAfterDef, IRProperty.CallDirectionsResolved, IRProperty.TypeChecked
)


def source(body):
    lines = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    program = parse(
        f"{KERNELS}\n@Orchestration\ndef run({HEAD}) -> tuple[f32[16, 16], f32[16, 16]]:\n{lines}\n    return x, y\n"
    )
    for each in (convert_to_ssa(), normalize_stmt_structure(), flatten_call_expr(), derive_call_directions()):
        program = each(program)
    return program


def ordered(program):
    after = auto_derive_task_dependencies(order_overwrites=True)(program)
    PropertyVerifierRegistry.verify_or_throw(FORM, after)
    assert auto_derive_task_dependencies(order_overwrites=True)(after) is after
    ir.assert_structural_equal(after, pl.parse(str(after)), enable_auto_mapping=True)
    return after


def edges(program):
    """Each launch that got edges: its kernel, and the base names of the edges."""
    found = [node for node in walk(program.get_function("run")) if EDGES in getattr(node, "attrs", {})]
    return [f"{c.op.name}: {' '.join(v.name_hint.split('__')[0] for v in c.attrs[EDGES])}" for c in found]


# What is run, and which launches get edges.
CASES = {
    "one behind the other": ("y = self.use(x, 0, y)\nx = self.row(0, x)", ["row: y"]),
    "two readers": ("y = self.use(x, 0, y)\nz = self.use(x, 1, y)\nx = self.row(1, x)\ny = z", ["row: z"]),
    "a submit is known by its id": ("y, made = pl.submit(self.use, x, 0, y)\nx = self.row(0, x)", ["row: made"]),
    "a call without a result": (NEW + "t = self.make(x, 1, t)\nself.drop(t, 0, y)\nt = self.row(0, t)", ["row: y"]),
    "a scratch that each iteration fills": (
        NEW + "for i in pl.range(4):\n    t = self.make(x, i, t)\n    y = self.use(t, i, y)",
        ["make: y"],
    ),
    "of unknown length": (
        NEW + "for i in pl.range(n):\n    t = self.make(x, i, t)\n    y = self.use(t, i, y)",
        ["make: y"],
    ),
    "all iterations before": (
        "for i in pl.range(4):\n    y = self.use(x, i, y)\nx = self.row(0, x)",
        ["row: y"],
    ),
    "all iterations of a parallel loop of unknown length": (
        "for i in pl.parallel(n):\n    y = self.use(x, i, y)\nx = self.row(0, x)",
        ["row: y"],
    ),
    # Nothing names them: the host looks at readers itself.
    "all iterations of a sequential loop of unknown length": (
        "for i in pl.range(n):\n    y = self.use(x, i, y)\nx = self.row(0, x)",
        [],
    ),
    "in a branch": ("if n > 2:\n    y = self.use(x, 0, y)\nx = self.row(0, x)", []),
    "into a branch": ("y = self.use(x, 0, y)\nif n > 2:\n    x = self.row(0, x)", ["row: y"]),
    # Nothing is to be added.
    "other rows": ("y = self.use(x, 0, y)\nx = self.row(1, x)", []),
    "what is read is what was written before": ("x = self.row(0, x)\ny = self.use(x, 0, y)", []),
    "a chain orders them": (NEW + "t = self.make(x, 1, t)\ny = self.use(t, 0, y)\nx = self.make(y, 2, x)", []),
    "the result is read": ("y = self.use(x, 0, y)\nx = self.use(y, 0, x)", []),
    "a new buffer in each iteration": (
        "for i in pl.range(4):\n    t = pl.create_tensor([16, 16], dtype=pl.FP32)\n    t = self.make(x, i, t)\n"
        "    y = self.use(t, i, y)",
        [],
    ),
    "a carry that moves from buffer to buffer": (
        NEW + "t = self.make(x, 0, t)\nfor i in pl.range(4):\n    u = pl.create_tensor([16, 16], dtype=pl.FP32)\n"
        "    u = self.make(t, i, u)\n    t = u\ny = self.use(t, 0, y)",
        [],
    ),
    # The program says so.
    "a writer opts out": ("y = self.use(x, 0, y)\nx = self.row(0, pl.no_dep(x))", []),
    "a reader opts out": ("y = self.use(pl.no_dep(x), 0, y)\nx = self.row(0, x)", []),
    "a buffer opts out": (
        "t = pl.create_tensor([16, 16], dtype=pl.FP32, manual_dep=True)\nt = self.make(x, 1, t)\n"
        "y = self.use(t, 0, y)\nt = self.row(0, t)",
        [],
    ),
    "manual scopes": ("with pl.manual_scope():\n    y = self.use(x, 0, y)\n    x = self.row(0, x)", []),
    "parallel iterations": ("for i in pl.parallel(4):\n    y = self.use(x, i, y)\n    x = self.row(i, x)", ["row: y"]),
    "said by the program": (
        "y, read = pl.submit(self.use, x, 0, y)\nx, done = pl.submit(self.row, 0, x, deps=[read])",
        [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_edges(case):
    body, want = CASES[case]
    assert edges(ordered(source(body))) == want


def test_before_and_after():
    before = source(NEW + "for i in pl.range(4):\n    t = self.make(x, i, t)\n    y = self.use(t, i, y)")
    after = ordered(before)
    text = ir.python_print(after.get_function("run"), format=False)
    assert '"compiler_manual_dep_edges": [y__iter_v1]' in text
    assert text.replace(', "compiler_manual_dep_edges": [y__iter_v1]', "") == ir.python_print(
        before.get_function("run"), format=False
    )


def test_both_analyses_are_off_unless_asked_for():
    program = source(CASES["one behind the other"][0])
    assert auto_derive_task_dependencies()(program) is program
    assert edges(ir.PassManager().run_passes(program)) == ["row: y"]  # the compiler asks


def values(n=3):
    return [n, np.arange(256, dtype=np.float32).reshape(16, 16), np.zeros((16, 16), np.float32)]


def boxed(args):
    return [ArrayValue(a, Buffer(a, external=True)) if isinstance(a, np.ndarray) else a for a in args]


def races(program):
    """What one run finds, ordered by whole arguments as on a device."""
    interpreter = Interpreter(program, accesses=True, by_parts=False)
    interpreter.run(program.get_function("run"), boxed(values()))
    try:
        check_races(run_record(interpreter.graph))
    except RaceError:
        return True
    return False


@pytest.mark.parametrize("case", CASES)
def test_values_in_all_orders(case):
    program = source(CASES[case][0])
    want = values()
    Interpreter(program).run(program.get_function("run"), boxed(want))
    after = ordered(program)
    if edges(after):
        assert races(program)
        assert not races(after)
    function = after.get_function("run")
    chosen = " opts out" in case or case in ("manual scopes", "parallel iterations")
    order_reads = narrowing_of(after).leaves_overwrites(function)
    for seed in () if chosen else range(8):
        got = values()
        Interpreter(after, "random", seed, order_reads=order_reads).run(function, boxed(got))
        for one, other in zip(got, want, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("seed", range(40))
def test_the_quick_question_never_misses_a_pair(seed):
    rng = random.Random(seed)
    lines = [NEW.strip(), "t = self.make(x, 1, t)"]
    indent = ""
    for _ in range(rng.randint(2, 7)):
        one, other = rng.sample("xyt", 2)
        launch = rng.choice([f"{other} = self.use({one}, {rng.randint(0, 2)}, {other})", f"{one} = self.row(1, {one})"])
        if rng.random() < 0.3 and not indent:
            lines.append(rng.choice(["for i in pl.range(3):", "if n > 1:"]))
            indent = "    "
        lines.append(indent + launch)
        if rng.random() < 0.3:
            indent = ""
    program = source("\n".join(lines))
    main, callees = program.get_function("run"), callees_of(program)
    if narrowing_of(program).leaves_overwrites(main):
        assert may_overwrite(main, callees)
