"""Which part of a parameter a kernel touches: the box that is found, and that nothing outside of it is touched."""

import textwrap

import numpy as np
import pytest
from spec_kit import parse

from pypto import ir
from pypto.analysis.access import Footprints, box_at, touched_view
from pypto.analysis.callees import callees_of
from pypto.analysis.touch import Touch
from pypto.ir.tree import walk
from pypto.ops.values import ArrayValue, Buffer
from pypto.passes.convert_to_ssa import convert_to_ssa
from pypto.runtime.interpreter import Interpreter
from pypto.runtime.recording import run_record

ROWS, COLUMNS = 64, 16
PARAMS = "self, x: f32[64, 16], k: idx, n: idx, o: pl.InOut[f32[64, 16]]"


def kernel(body: str, more: str = "", params: str = PARAMS) -> ir.Program:
    """A program of one kernel ``f`` and a caller of it."""
    text = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return in_ssa(
        f"{textwrap.dedent(more)}\n@InCore\ndef f({params}) -> f32[64, 16]:\n{text}\n    return o\n"
        "@Orchestration\ndef main(self, x: f32[64, 16], k: idx, n: idx, o: pl.InOut[f32[64, 16]]) -> f32[64, 16]:\n"
        "    o1 = self.f(x, k, n, o)\n    return o1\n"
    )


def in_ssa(text: str) -> ir.Program:
    return convert_to_ssa()(parse(text))


def name_of(key: object) -> str:
    return str(getattr(key, "name_hint", key)).split("__")[0]


def text_of(touch: Touch | None) -> str:
    """A box as text: ``16*k+0:16`` is 16 elements from there on, ``all`` a whole dimension; ``?``: perhaps less."""
    if touch is None:
        return "none"
    dims = []
    for span in touch.dims:
        if span is None:
            dims.append("all")
            continue
        low, size = (
            "+".join([*(f"{f}*{name_of(k)}" for k, f in form.terms.items()), str(form.const)])
            for form in (span.low, span.size)
        )
        dims.append(f"{low}:{size}")
    return ", ".join(dims) + ("" if touch.exact else " ?")


def found(program: ir.Program, function: str = "f", parameter: int = 3) -> tuple[str, str]:
    """What is read and what is written of the parameter ``o``."""
    footprint = Footprints(callees_of(program)).of(program.get_function(function))
    assert footprint is not None
    access = footprint[parameter]
    return text_of(access.read), text_of(access.write)


STORE = "o = pl.store(pl.load(x, [0, 0], [16, 16]), {}, o)"
CASES = {
    "constant": (STORE.format("[16, 0]"), ("none", "16:16, 0:16")),
    "scalar": (STORE.format("[k * 16, 0]"), ("none", "16*k+0:16, 0:16")),
    "two scalars": (STORE.format("[k * 8 + n + 1, 0]"), ("none", "8*k+1*n+1:16, 0:16")),
    "named scalar": (f"r = k * 8\ns = r + 1\n{STORE.format('[s, 0]')}", ("none", "8*k+1:16, 0:16")),
    "quotient": (STORE.format("[k // 2, 0]"), ("none", "all, 0:16 ?")),
    "read offset": (
        f"r: pl.Scalar[pl.FP32] = pl.tensor.read(x, [0, 0])\ns = pl.cast(r, pl.INDEX)\n{STORE.format('[s, 0]')}",
        ("none", "all, 0:16 ?"),
    ),
    "element": ("pl.tensor.write(o, [k, 3], 1.0)", ("none", "1*k+0:1, 3:1")),
    "read and write": (
        "o = pl.store(pl.load(o, [k, 0], [16, 16]), [n, 0], o)",
        ("1*k+0:16, 0:16", "1*n+0:16, 0:16"),
    ),
    "loop of tiles": (
        "for i in pl.range(4):\n    pl.store(pl.load(x, [0, 0], [16, 16]), [i * 16, 0], o)",
        ("none", "0:64, 0:16"),
    ),
    "loop with gaps": (
        "for i in pl.range(3):\n    pl.store(pl.load(x, [0, 0], [8, 16]), [i * 16, 0], o)",
        ("none", "0:40, 0:16 ?"),
    ),
    "loop from a scalar on": (
        "for i in pl.range(k, k + 8, 4):\n    pl.store(pl.load(x, [0, 0], [4, 16]), [i, 0], o)",
        ("none", "1*k+0:8, 0:16"),
    ),
    "descending loop": (
        "for i in pl.range(3, 0, -1):\n    pl.store(pl.load(x, [0, 0], [16, 16]), [i * 16, 0], o)",
        ("none", "16:48, 0:16"),
    ),
    "loop over n": (
        "for i in pl.range(n):\n    pl.store(pl.load(x, [0, 0], [16, 16]), [i * 16, 0], o)",
        ("none", "0:16*n+0, 0:16 ?"),
    ),
    "loop without trips": (
        "for i in pl.range(4, 2):\n    pl.store(pl.load(x, [0, 0], [16, 16]), [i * 16, 0], o)",
        ("none", "none"),
    ),
    "nested loops": (
        "for i in pl.range(2):\n    for j in pl.range(2):\n"
        "        pl.store(pl.load(x, [0, 0], [8, 16]), [k + i * 16 + j * 8, 0], o)",
        ("none", "1*k+0:32, 0:16"),
    ),
    "diagonal": (
        "for i in pl.range(4):\n    pl.store(pl.load(x, [0, 0], [4, 4]), [i * 4, i * 4], o)",
        ("none", "0:16, 0:16 ?"),
    ),
    "branch": (
        f"if k > 0:\n    {STORE.format('[0, 0]')}\nelse:\n    {STORE.format('[32, 0]')}",
        ("none", "0:48, 0:16 ?"),
    ),
    "one branch": (f"if k > 0:\n    {STORE.format('[0, 0]')}", ("none", "0:16, 0:16 ?")),
    "both branches alike": (
        f"if k > 0:\n    {STORE.format('[0, 0]')}\nelse:\n    {STORE.format('[0, 0]')}",
        ("none", "0:16, 0:16"),
    ),
    "places of unknown order": (
        f"{STORE.format('[k, 0]')}\n{STORE.format('[n, 0]')}",
        ("none", "all, 0:16 ?"),
    ),
    "while": (
        f"i = 0\nwhile i < k:\n    i = i + 1\n    {STORE.format('[i, 0]')}",
        ("none", "all, 0:16 ?"),
    ),
    "view": (
        "v = pl.slice(o, [16, 8], [k * 16, 8])\nv = pl.store(pl.load(x, [0, 0], [4, 4]), [n, 2], v)",
        ("none", "16*k+1*n+0:4, 10:4"),
    ),
    "whole view": (
        "v = pl.slice(o, [16, 8], [k * 16, 8])\nw = pl.tensor.adds(v, 1.0)",
        ("16*k+0:16, 8:8", "none"),
    ),
    "view of another shape": (
        "v = pl.reshape(o, [128, 8])\nv = pl.store(pl.load(x, [0, 0], [8, 8]), [k, 0], v)",
        ("none", "all, all ?"),
    ),
    "assembled": (
        "t = pl.tensor.adds(pl.slice(x, [16, 16], [0, 0]), 1.0)\no = pl.assemble(o, t, [k * 16, 0])",
        ("none", "16*k+0:16, 0:16"),
    ),
    "block": (
        "b = pl.tile.get_block_idx()\n" + STORE.format("[b * 16 + k, 0]"),
        ("none", "16*block+1*k+0:16, 0:16"),
    ),
    "lane": (
        "b = pl.tile.get_subblock_idx()\n" + STORE.format("[b * 16, 0]"),
        ("none", "all, 0:16 ?"),
    ),
    "loop variable of a loop that is left": (
        "j = 0\nfor i in pl.range(4):\n    j = i * 16\n" + STORE.format("[j, 0]"),
        ("none", "all, 0:16 ?"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_boxes(case):
    body, want = CASES[case]
    assert found(kernel(body)) == want


def touched(program: ir.Program, k: int, n: int) -> set[tuple[int, int]]:
    """The elements of ``o`` that a run of the kernel touches."""
    values = [ArrayValue(a, Buffer(a, name, external=True)) for a, name in ((np.ones((64, 16), np.float32), "x"),
                                                                             (np.ones((64, 16), np.float32), "o"))]  # fmt: skip
    interpreter = Interpreter(program, accesses=True)
    interpreter.run(program.get_function("main"), [values[0], k, n, values[1]])
    record = run_record(interpreter.graph)
    elements = set()
    for access in record.accesses:
        if record.buffers[access.buffer].name == "o":
            box = access.box
            for index in np.ndindex(*box.shape):
                at = (box.low + sum(i * s for i, s in zip(index, box.strides, strict=True))) // 4
                elements.add((at // COLUMNS, at % COLUMNS))
    return elements


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("k", "n"), [(0, 0), (1, 2), (2, 3), (3, 1)])
def test_a_run_touches_nothing_else(case, k, n):
    """What a run really touches lies in the box; and it is all of the box where that is said."""
    program = kernel(CASES[case][0])
    function = program.get_function("f")
    access = Footprints(callees_of(program)).of(function)[3]
    inside = touched(program, k, n)
    box = box_at(access, {function.params[1]: k, function.params[2]: n}.get, 1, (ROWS, COLUMNS))
    if box is None:
        assert not inside
        return
    whole = {(r, c) for r in range(*box[0]) for c in range(*box[1])}
    assert inside <= whole
    if access.touched.exact:
        assert inside == whole


def test_a_wrapper_touches_what_the_kernels_inside_touch():
    program = kernel(
        "o = self.inner(n, k + 1, o)",
        """
        @InCore
        def inner(self, a: idx, b: idx, o: pl.InOut[f32[64, 16]]) -> f32[64, 16]:
            t = pl.load(o, [b * 8, 0], [8, 16])
            o = pl.store(t, [a, 0], o)
            return o
        """,
    )
    assert found(program) == ("8*k+8:8, 0:16", "1*n+0:8, 0:16")


def test_nothing_is_known_of_a_kernel_that_calls_itself_or_stands_elsewhere():
    program = kernel("o = self.f(x, k, n, o)")
    assert found(program) == ("all, all ?", "all, all ?")
    function = kernel(STORE.format("[0, 0]")).get_function("f")
    elsewhere = function.replace(attrs={**function.attrs, "external_source": "f.cpp"})
    assert Footprints(callees_of(ir.Program([elsewhere], "P", ir.Span.unknown()))).of(elsewhere) is None


def test_a_scalar_that_is_not_affine_at_the_call_makes_its_dimension_whole():
    program = kernel(
        "o = self.inner(k // 2, o)",
        """
        @InCore
        def inner(self, a: idx, o: pl.InOut[f32[64, 16]]) -> f32[64, 16]:
            o = pl.store(pl.load(o, [a * 8, 4], [8, 4]), [a * 8, 4], o)
            return o
        """,
    )
    assert found(program) == ("all, 4:4 ?", "all, 4:4 ?")


def test_a_symbolic_extent_is_that_of_the_argument():
    program = in_ssa(
        """
        @InCore
        def f(self, x: f32[M, 16], o: pl.Out[f32[M, 16]]) -> f32[M, 16]:
            for i in pl.range(0, M, 16):
                o = pl.store(pl.load(x, [i, 0], [16, 16]), [i, 0], o)
            return o
        @Orchestration
        def main(self, x: f32[48, 16], o: pl.Out[f32[48, 16]]) -> f32[48, 16]:
            o1 = self.f(x, o)
            return o1
        """
    )
    assert found(program, parameter=1)[1] == "0:1*M+15, 0:16 ?"
    assert view_text(program, 1) == ("0, 0", "63, 16")


def view_text(program: ir.Program, argument: int) -> tuple[str, str] | None:
    """The view of an argument of the only launch in ``main``."""
    calls = [
        node
        for node in walk(program.get_function("main").body)
        if isinstance(node, (ir.Call, ir.Submit)) and isinstance(node.op, ir.GlobalVar)
    ]
    view = touched_view(calls[-1], argument, Footprints(callees_of(program)))
    if view is None:
        return None
    return tuple(", ".join(str(e).replace("__ssa_v0", "") for e in part) for part in view)


CALLER = """
@InCore
def f(self, k: idx, o: pl.Out[f32[64, 16]]) -> f32[64, 16]:
    b = pl.tile.get_block_idx()
    o = pl.store(pl.tile.full([4, 16], dtype=pl.FP32, value=1.0), [k * 4 + b * 8, 0], o)
    return o
@Orchestration
def main(self, n: idx, o: pl.Out[f32[64, 16]]) -> f32[64, 16]:
"""


@pytest.mark.parametrize(
    ("launch", "want"),
    [
        ("o1 = self.f(n, o)", ("n * 4, 0", "4, 16")),
        ("o1 = self.f(n * 2 - 1, o)", ("n * 8 + -4, 0", "4, 16")),
        ("o1 = self.f(3, o)", ("12, 0", "4, 16")),
        ("o1 = self.f(n // 2, o)", ("0, 0", "64, 16")),
        ("o1, t = pl.spmd_submit(self.f, n, o, core_num=3)", ("n * 4, 0", "20, 16")),
        ("o1, t = pl.submit(self.f, n, o)", ("n * 4, 0", "4, 16")),
    ],
)
def test_views_at_calls(launch, want):
    program = in_ssa(f"{CALLER}    {launch}\n    return o1\n")
    assert view_text(program, 1) == want


def test_an_argument_that_is_touched_as_a_whole_has_no_view():
    program = kernel("o1 = pl.tensor.adds(o, 1.0)")
    assert view_text(program, 3) is None
    assert view_text(program, 0) is None  # not touched: perhaps it is there for the order


def test_facts_of_a_kernel_are_kept():
    program = kernel(STORE.format("[0, 0]"))
    function = program.get_function("f")
    one, other = Footprints(callees_of(program)), Footprints(callees_of(program))
    assert one.of(function) is other.of(function)
