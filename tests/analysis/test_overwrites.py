"""Pairs of launches that nothing orders, and when arguments may be narrowed to what is touched."""

import textwrap

import pytest
from spec_kit import parse

from pypto import ir
from pypto.analysis.access import Footprints
from pypto.analysis.callees import callees_of
from pypto.analysis.overwrites import Orders, narrowing_of, unordered_overwrites
from pypto.passes.convert_to_ssa import convert_to_ssa
from pypto.passes.derive_call_directions import derive_call_directions

KERNELS = """
@InCore
def part(self, x: f32[64, 16], i: idx, o: pl.Out[f32[64, 16]]) -> f32[64, 16]:
    o = pl.store(pl.load(x, [i * 16, 0], [16, 16]), [i * 16, 0], o)
    return o
@InCore
def band(self, x: f32[64, 16], o: pl.Out[f32[16, 16]]) -> f32[16, 16]:
    o = pl.store(pl.load(x, [0, 0], [16, 16]), [0, 0], o)
    return o
@InCore
def copy(self, x: f32[64, 16], o: pl.Out[f32[64, 16]]) -> f32[64, 16]:
    o = pl.store(pl.load(x, [0, 0], [64, 16]), [0, 0], o)
    return o
@InCore
def bump(self, o: pl.InOut[f32[64, 16]]) -> f32[64, 16]:
    o = pl.store(pl.add(pl.load(o, [0, 0], [64, 16]), 1.0), [0, 0], o)
    return o
@InCore
def add(self, x: f32[64, 16], o: pl.InOut[f32[64, 16]]) -> f32[64, 16]:
    o = pl.store(pl.add(pl.load(o, [0, 0], [64, 16]), pl.load(x, [0, 0], [64, 16])), [0, 0], o)
    return o
@InCore
def pair(self, x: pl.InOut[f32[64, 16]], o: pl.InOut[f32[64, 16]]) -> tuple[f32[64, 16], f32[64, 16]]:
    x = pl.store(pl.add(pl.load(x, [0, 0], [64, 16]), 1.0), [0, 0], x)
    o = pl.store(pl.add(pl.load(o, [0, 0], [16, 16]), 1.0), [0, 0], o)
    return x, o
@InCore
def row(self, i: idx, o: pl.InOut[f32[64, 16]]) -> f32[64, 16]:
    o = pl.store(pl.add(pl.load(o, [i * 16, 0], [16, 16]), 1.0), [i * 16, 0], o)
    return o
"""
A, B = "pl.InOut[f32[64, 16]]", "pl.InOut[f32[64, 16]]"
T = "pl.create_tensor([64, 16], dtype=pl.FP32)"


def orchestration(body: str) -> ir.Program:
    """A program with an orchestration ``main`` of ``x``, ``a``, ``b`` and ``n``, with directions."""
    text = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    program = parse(
        f"{KERNELS}@Orchestration\ndef main(self, n: idx, x: f32[64, 16], a: {A}, b: {B}) -> tuple[f32[64, 16], f32[64, 16]]:\n"
        f"{text}\n    return a, b\n"
    )
    return derive_call_directions()(convert_to_ssa()(program))


def orders(body: str) -> Orders:
    program = orchestration(body)
    return Orders(program.get_function("main"), Footprints(callees_of(program)))


def pairs(found: Orders) -> list[str]:
    """Pairs as text: first and second launch, the buffer, and ``next`` if that is in a later iteration."""
    return [
        f"{p.first.op.name} {p.second.op.name} {p.buffer.name_hint.split('__')[0]}{'' if p.loop is None else ' next'}"
        for p in found.unordered()
    ]


CASES = {
    # A reader, and behind it a writer of the same buffer.
    "write after read": ("b = self.copy(a, b)\na = self.bump(a)", ["copy bump a"]),
    "disjoint parts": ("b = self.part(a, 0, b)\na = self.row(1, a)", []),
    "the same part": ("b = self.part(a, 1, b)\na = self.row(1, a)", ["part row a"]),
    "parts that may be the same": ("b = self.part(a, n, b)\na = self.row(1, a)", ["part row a"]),
    "parts that differ by a constant": ("b = self.part(a, n, b)\na = self.row(n + 1, a)", []),
    # The first writes the second's other argument: it is ordered by that one.
    "ordered by another buffer": ("b = self.copy(a, b)\na = self.add(b, a)", []),
    "ordered through a third launch": (
        f"t = {T}\nt = self.copy(a, t)\nb = self.copy(t, b)\na = self.add(b, a)",
        [],
    ),
    "ordered by a task id": (
        "b, t = pl.submit(self.copy, a, b)\na, u = pl.submit(self.bump, a, deps=[t])",
        [],
    ),
    "ordered by the wrong task id": (
        f"t = {T}\nt, s = pl.submit(self.copy, x, t)\nb, r = pl.submit(self.copy, a, b)\n"
        "a, u = pl.submit(self.bump, a, deps=[s])",
        ["copy bump a"],
    ),
    # An edge counts if it is there whatever the numbers are: a place may be another one when it runs.
    "ordered by a whole and a part": ("b = self.copy(a, b)\na, b = self.pair(a, b)", []),
    "ordered by the same part": ("b = self.part(a, 0, b)\na, b = self.pair(a, b)", []),
    "perhaps ordered by a part": ("b = self.part(a, n, b)\na, b = self.pair(a, b)", ["part pair a"]),
    "perhaps ordered by a part of unknown place": (
        "b = self.part(a, n // 2, b)\na, b = self.pair(a, b)",
        ["part pair a"],
    ),
    "perhaps ordered by a slice of unknown place": (
        "s = pl.slice(b, [16, 16], [n // 2, 0])\ns = self.band(a, s)\na, b = self.pair(a, b)",
        ["band pair a"],
    ),
    "ordered by a slice": ("s = pl.slice(b, [16, 16], [8, 0])\ns = self.band(a, s)\na, b = self.pair(a, b)", []),
    # A chain of edges must run whenever an end does.
    "third launch in a branch": (
        f"t = {T}\nt = self.copy(a, t)\nif n > 0:\n    b = self.copy(t, b)\na = self.add(b, a)",
        ["copy add a"],
    ),
    "exclusive branches": ("if n > 0:\n    b = self.copy(a, b)\nelse:\n    a = self.bump(a)", []),
    "writer in a branch": ("b = self.copy(a, b)\nif n > 0:\n    a = self.bump(a)", ["copy bump a"]),
    "ids of branches": (
        "if n > 0:\n    b, t = pl.submit(self.copy, a, b)\nelse:\n    b, t = pl.submit(self.part, a, 0, b)\n"
        "a, u = pl.submit(self.bump, a, deps=[t])",
        [],
    ),
    # Loops: the next iteration is behind this one.
    "bands of a loop": ("for i in pl.range(4):\n    b = self.part(a, i, b)", []),
    "scratch of a loop": (
        f"t = {T}\nfor i in pl.range(4):\n    t = self.part(x, i, t)\n    b = self.part(t, i, b)",
        [],
    ),
    "scratch that is written anew": (
        f"t = {T}\nfor i in pl.range(4):\n    t = self.copy(x, t)\n    b = self.part(t, i, b)",
        ["part copy t next"],
    ),
    "scratch of each iteration": (
        f"for i in pl.range(4):\n    t = {T}\n    t = self.copy(x, t)\n    b = self.part(t, i, b)",
        [],
    ),
    "scratch of each iteration of the outer loop": (
        f"for i in pl.range(4):\n    t = {T}\n    for j in pl.range(2):\n"
        "        t = self.copy(x, t)\n        b = self.part(t, j, b)",
        ["part copy t next"],
    ),
    "one trip": (f"t = {T}\nfor i in pl.range(1):\n    t = self.copy(x, t)\n    b = self.part(t, i, b)", []),
    "accumulated in order": ("for i in pl.range(n):\n    b = self.add(a, b)\n    a = self.add(b, a)", []),
    "reads what the next iteration writes": (
        "for i in pl.range(1, 4):\n    b = self.part(a, i, b)\n    a = self.row(i - 1, a)",
        ["part row a next"],
    ),
    "writes what the iteration before has read": (
        "for i in pl.range(1, 4):\n    b = self.part(a, i, b)\n    a = self.row(i, a)",
        ["part row a"],
    ),
    "reads what the iteration before has written": (
        "for i in pl.range(3):\n    b = self.part(a, i, b)\n    a = self.row(i + 1, a)",
        [],
    ),
    "reads what an iteration far away writes": (
        "for i in pl.range(2):\n    b = self.part(a, i + 2, b)\n    a = self.row(i, a)",
        [],
    ),
    "halved index": (
        "for i in pl.range(4):\n    t = i // 2\n    b = self.part(a, t, b)\n    a = self.row(t + 2, a)",
        ["part row a next"],
    ),
    "nested bands": (
        "for i in pl.range(2):\n    for j in pl.range(2):\n"
        "        b = self.part(a, i * 2 + j, b)\n        a = self.row(i * 2 + j - 4, a)",
        [],
    ),
    "descending loop": (
        "for i in pl.range(3, 0, -1):\n    b = self.part(a, i, b)\n    a = self.row(i - 1, a)",
        [],
    ),
    "descending loop that overwrites": (
        "for i in pl.range(2, -1, -1):\n    b = self.part(a, i, b)\n    a = self.row(i + 1, a)",
        ["part row a next"],
    ),
    # Slices are parts of their buffer.
    "slices": (
        "s = pl.slice(a, [64, 16], [0, 0])\nb = self.copy(s, b)\na = self.bump(a)",
        ["copy bump a"],
    ),
    # Arguments out of the automatic order.
    "no_dep on bands": ("for i in pl.range(4):\n    b = self.part(a, i, pl.no_dep(b))", []),
    "no_dep on the whole": (
        "for i in pl.range(4):\n    b = self.copy(a, pl.no_dep(b))",
        ["copy copy b next"],
    ),
    "manual scope": (
        "with pl.manual_scope():\n    a = self.bump(a)\n    b = self.copy(a, b)",
        ["bump copy a"],
    ),
    "manual scope with ids": (
        "with pl.manual_scope():\n    a, t = pl.submit(self.bump, a)\n    b, s = pl.submit(self.copy, a, b, deps=[t])",
        [],
    ),
    "parallel writers": ("for i in pl.parallel(4):\n    b = self.copy(a, b)", []),
}


@pytest.mark.parametrize("case", CASES)
def test_pairs(case):
    body, want = CASES[case]
    found = orders(body)
    assert pairs(found) == want
    assert found.complete
    assert found.narrowable is not bool(want)


def test_carried_ids_order_a_scratch_that_is_written_anew():
    """Each iteration's writer waits for the reader before, and that one for the writer before, and so on."""
    body = """
    t = {T}
    last = pl.system.task_invalid()
    for i, (t1, b1, before) in pl.range(4, init_values=(t, b, last)):
        t2, made = pl.submit(self.{maker}t1, deps=[{deps}])
        b2, used = pl.submit(self.{user}, b1)
        t3, b3, last1 = pl.yield_(t2, b2, used)
    b = b3
    """
    # Writers of the whole are ordered among each other, too.
    assert pairs(orders(body.format(T=T, maker="copy, x, ", user="part, t2, i", deps="before"))) == []
    assert pairs(orders(body.format(T=T, maker="copy, x, ", user="part, t2, i", deps=""))) == ["part copy t next"]
    # Writers of bands are not, but each reader of the whole waits for them.
    assert pairs(orders(body.format(T=T, maker="part, x, i, ", user="copy, t2", deps="before"))) == []
    # A reader of another band waits for nobody, so that of two iterations before may still run.
    text = body.format(T=T, maker="part, x, i, ", user="part, t2, i + 2", deps="before")
    assert pairs(orders(text.replace("pl.range(4", "pl.range(n"))) == ["part part t next"]


def test_overwrites_are_those_of_readers():
    program = orchestration("b = self.copy(a, pl.no_dep(b))\nb = self.bump(pl.no_dep(b))\na = self.bump(a)")
    main = program.get_function("main")
    found = unordered_overwrites(main, callees_of(program))
    assert [(p.first.op.name, p.second.op.name, p.buffer is main.params[2], p.loop) for p in found] == [
        ("copy", "bump", True, None)
    ]
    assert len(Orders(main, Footprints(callees_of(program))).unordered()) == 2


def test_many_comparisons_end_in_a_whole_answer():
    lines = [line for i in range(70) for line in (f"b = self.part(a, {i % 4}, b)", f"a = self.row({i % 4}, a)")]
    found = orders("\n".join(lines))
    assert found.unordered()
    assert not found.complete
    assert not found.narrowable


def test_what_is_not_modelled_is_not_narrowed():
    program = orchestration("b = self.part(a, 0, b)")
    assert narrowing_of(program).allows(program.get_function("main"))
    # Directions that are not there yet: the order is that of the source.
    text = f"{KERNELS}@Orchestration\ndef main(self, x: f32[64, 16], b: {B}) -> f32[64, 16]:\n    b1 = self.part(x, 0, b)\n    return b1\n"
    program = convert_to_ssa()(parse(text))
    assert not narrowing_of(program).allows(program.get_function("main"))
    # A function that another one calls: what runs before it is not seen.
    text += f"@Orchestration\ndef outer(self, x: f32[64, 16], b: {B}) -> f32[64, 16]:\n    b1 = self.main(x, b)\n    return b1\n"
    program = derive_call_directions()(convert_to_ssa()(parse(text)))
    assert not narrowing_of(program).allows(program.get_function("main"))
