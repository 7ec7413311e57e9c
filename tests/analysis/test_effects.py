"""What code reads and writes of outer tensors, which tensors its names stand for, and what functions return."""

import textwrap

import pytest

import pypto.language as pl
from pypto.analysis.effects import tensor_effects
from pypto.analysis.lineage import return_lineage, returns_views
from pypto.ir.program import Program

PARAMS = "x: pl.Tensor[[4, 8], pl.FP32], y: pl.InOut[pl.Tensor[[4, 8], pl.FP32]], n: pl.Scalar[pl.INDEX]"
HELPERS = """
    @pl.function(type=pl.FunctionType.InCore)
    def copy(self, src: pl.Tensor[[4, 8], pl.FP32], dst: pl.Out[pl.Tensor[[4, 8], pl.FP32]]
             ) -> pl.Tensor[[4, 8], pl.FP32]:
        return pl.store(pl.load(src, [0, 0], [4, 8]), [0, 0], dst)
"""


def function(body, params=PARAMS, kind="Opaque"):
    text = (
        f"import pypto.language as pl\n@pl.program\nclass P:{HELPERS}\n"
        f"    @pl.function(type=pl.FunctionType.{kind})\n    def f(self, {params}):\n"
        f"{textwrap.indent(textwrap.dedent(body).strip(), '        ')}\n"
    )
    program = pl.parse(text)
    assert isinstance(program, Program)
    return program, program.get_function("f")


def effects(body):
    program, f = function(body)
    found = tensor_effects(f.body, {g.name: h for g, h in program.functions.items()})

    def names(variables):
        return [v.name_hint for v in variables]

    leaks = {v.name_hint: None if root is None else root.name_hint for v, root in found.leaks.items()}
    return names(found.reads), names(found.writes), leaks, found.known


@pytest.mark.parametrize(
    ("body", "reads", "writes", "leaks", "known"),
    [
        ("t = pl.add(x, 1.0)", ["x"], [], {"t": None}, True),
        ("y[:] = pl.add(x, y)", ["x", "y"], ["y"], {"y": "y"}, True),
        ("z = pl.tensor.assemble(y, x, [0, 0])", ["x"], ["y"], {"z": "y"}, True),
        ("y = self.copy(x, y)", ["x"], ["y"], {"y": "y"}, True),
        ("pl.tensor.write(y, [0, 0], 1.0)", [], ["y"], {}, True),
        ("v = pl.tensor.read(x, [0, 0])", ["x"], [], {}, True),
        ("part = x[0:2, :]", [], [], {"part": "x"}, False),
        ("part = x[0:2, :]\nt = pl.add(part, 1.0)", ["x"], [], {"part": "x", "t": None}, False),
        ("t = pl.create_tensor([4, 8], dtype=pl.FP32)\nt = pl.tensor.assemble(t, x, [0, 0])", ["x"], [], {"t": None}, True),
        ("a = pl.mul(x, 2.0)\nb = pl.mul(a, a)", ["x"], [], {"a": None, "b": None}, True),
    ],
)  # fmt: skip
def test_straight_code(body, reads, writes, leaks, known):
    assert effects(body) == (reads, writes, leaks, known)


def test_a_name_that_may_stand_for_two_tensors_is_unknown():
    _, _, _, known = effects("if n > 0:\n    z = pl.tensor.assemble(y, x, [0, 0])\nelse:\n    z = pl.add(x, 1.0)")
    assert not known
    _, _, _, known = effects("if n > 0:\n    y[:] = x\nelse:\n    y[:] = pl.add(x, 1.0)")
    assert known


def test_a_name_that_some_paths_do_not_assign_may_stay_what_it_was():
    program, f = function(
        "for i in pl.range(n):\n    a = x\nb = y\nif n > 0:\n    c = pl.yield_(x)\nelse:\n    c = pl.yield_(x)"
    )
    found = tensor_effects(f.body, {})
    assert [v.name_hint for v in found.conditional] == ["a"]
    # A parameter has a value before the body: it may be one tensor or the other.
    _, f = function("for i in pl.range(n):\n    y = x\nreturn y", kind="InCore")
    assert return_lineage(f) is None


def test_a_loop_that_exchanges_tensors_is_unknown():
    _, _, _, known = effects("for i, (a, b) in pl.range(3, init_values=(x, y)):\n    c, d = pl.yield_(b, a)")
    assert not known


def test_a_name_that_reaches_the_head_of_a_loop_only_after_some_rounds():
    _, _, leaks, _ = effects(
        "for i, (a, b, c, d) in pl.range(9, init_values=(x, x, x, y)):\n    e, f, g, h = pl.yield_(b, c, d, x)"
    )
    assert leaks == dict.fromkeys("abcdefgh")


def test_loops_reach_their_own_head():
    reads, writes, _, known = effects(
        "for i, (acc,) in pl.range(3, init_values=(y,)):\n    z = pl.tensor.assemble(acc, x, [0, 0])\n    out = pl.yield_(z)"
    )
    assert (reads, writes, known) == (["x"], ["y"], True)


RETURNS = "a: pl.Tensor[[4, 8], pl.FP32], b: pl.Out[pl.Tensor[[4, 8], pl.FP32]], c: pl.Out[pl.Tensor[[4, 8], pl.FP32]], n: pl.Scalar[pl.INDEX]"
STORES = "t = pl.load(a, [0, 0], [4, 8])\nb2 = pl.store(t, [0, 0], b)\nc2 = pl.store(t, [0, 0], c)\n"


@pytest.mark.parametrize(
    ("body", "lineage", "views"),
    [
        (STORES + "return b2, c2", [1, 2], False),
        (STORES + "return c2, b2", [2, 1], False),
        (STORES + "return c2", [2], False),
        (STORES + "return a, c2", [0, 2], False),
        (STORES, [], False),
        (STORES + "if n > 0:\n    r = pl.yield_(b2)\nelse:\n    r = pl.yield_(c2)\nreturn r", None, True),
        (STORES + "if n > 0:\n    return b2\nreturn c2", None, True),
        (STORES + "if n > 0:\n    return b2\nreturn b", [1], False),
        ("for i in pl.range(3):\n    b = pl.store(pl.load(a, [i, 0], [1, 8]), [i, 0], b)\nreturn b", [1], False),
        ("t = pl.tensor.add(a, 1.0)\nreturn t", [None], False),
        ("part = pl.tensor.slice(a, [2, 8], [0, 0])\nreturn part", [0], True),
    ],
)
def test_lineage(body, lineage, views):
    _, f = function(body, RETURNS, "InCore")
    assert return_lineage(f) == lineage
    assert return_lineage(f) is return_lineage(f), "a fact about an immutable function is found once"
    if lineage is not None:
        assert returns_views(f) is views
