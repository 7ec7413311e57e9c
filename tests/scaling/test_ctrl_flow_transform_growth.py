"""CtrlFlowTransform: twice the program, at most 2.3 times the calls."""

import sys

import pytest

import pypto.language as pl
from pypto.passes.ctrl_flow_transform import ctrl_flow_transform

LIMIT = 2.3
HEAD = (
    "import pypto.language as pl\n@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.{kind})\n"
    "    def run(self, n: pl.Scalar[pl.INDEX]) -> pl.Scalar[pl.INDEX]:\n        s = n\n"
)
TAIL = "        return s\n"


def calls_of(function) -> int:
    """Python and C functions called while ``function`` runs."""
    count = 0

    def note(_frame, event, _argument):
        nonlocal count
        if event in ("call", "c_call"):
            count += 1

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def lines(depth: int, *texts: str) -> str:
    return "".join("    " * (depth + 2) + text + "\n" for text in texts)


def long_body(n: int) -> str:
    half = lines(1, *["s = s + 1"] * n)
    return lines(0, "for i in pl.range(n):") + half + lines(1, "if s > 99:", "    break") + half


def long_explicit_body(n: int) -> str:
    head = lines(0, "for i, (a, b) in pl.range(n, init_values=(s, s)):", "    a1 = a + 1")
    work = lines(1, *(f"t{k} = a + {k}" for k in range(n)))
    return head + work + lines(1, "if a1 > 99:", "    break") + lines(1, "b1 = b + a1", "s, u = pl.yield_(a1, b1)")


def many_escapes(n: int) -> str:
    """Each further escape stands in a branch of the one before."""
    body = lines(
        1,
        *(t for k in range(n) for t in (f"if s > {k}:", "    continue", "s = s + 1", f"if s > {k + 9}:", "    break")),
    )
    return lines(0, "for i in pl.range(n):") + body


def many_explicit_escapes(n: int) -> str:
    head = lines(0, "for i, (a, b) in pl.range(n, init_values=(s, s)):")
    body = lines(
        1, *(t for k in range(n) for t in (f"x{k} = a + {k}", f"if x{k} > 9:", "    continue", f"    y{k} = a"))
    )
    return head + body + lines(1, "a1 = a + 1", "b1 = b + a1", "s, u = pl.yield_(a1, b1)")


def many_guards(n: int) -> str:
    """Some paths through each branch escape."""
    body = (
        "if s > {}:",
        "    s = s + 2",
        "    if s > 70:",
        "        continue",
        "    if i > 5:",
        "        break",
        "s = s + 1",
    )
    return lines(0, "for i in pl.range(n):") + lines(1, *(t.format(k) for k in range(n) for t in body))


def many_loops(n: int) -> str:
    loop = ("for i_{0} in pl.range(n):", "    if s > {0}:", "        break", "    s = s + 1")
    return lines(0, *(t.format(k) for k in range(n) for t in loop))


def nested(n: int, depth: int = 16) -> str:
    """Loops in each other, natural and explicit, each with escapes and n statements."""
    text = ""
    for d in range(depth):
        if d % 2:
            text += lines(d, f"for i_{d}, (c_{d},) in pl.range(n, init_values=(0,)):", f"    x_{d} = c_{d} + 1")
        else:
            text += lines(d, f"for i_{d} in pl.range(n, 0, -1):")
        text += lines(d + 1, *["s = s + 1"] * n, f"if s > {d}:", "    break")
    for d in reversed(range(depth)):
        text += lines(d + 1, "if s > 5:", "    continue", "s = s + 2")
        if d % 2:
            text += lines(d + 1, f"r_{d} = pl.yield_(x_{d})")
    return text


def branches(n: int) -> str:
    """A deep chain of branches with an escape at its end."""
    text = lines(0, "for i in pl.range(n):")
    for d in range(16):
        text += lines(d + 1, *["s = s + 1"] * n, f"if s > {d}:")
    text += lines(17, "break")
    for d in reversed(range(16)):
        text += lines(d + 1, "s = s + 3")
    return text


SHAPES = {
    "long_body": (long_body, 200),
    "long_explicit_body": (long_explicit_body, 150),
    "many_escapes": (many_escapes, 30),
    "many_explicit_escapes": (many_explicit_escapes, 60),
    "many_guards": (many_guards, 12),
    "many_loops": (many_loops, 60),
    "nested": (nested, 8),
    "branches": (branches, 10),
}


def work(kind: str, text: str) -> int:
    program = pl.parse(HEAD.format(kind=kind) + text + TAIL)
    lower = ctrl_flow_transform()
    lower(program)
    return calls_of(lambda: lower(program))


@pytest.mark.parametrize("kind", ["InCore", "Orchestration"])
@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_program_is_twice_the_work(shape, kind):
    make, n = SHAPES[shape]
    once, twice = work(kind, make(n)), work(kind, make(2 * n))
    assert twice <= LIMIT * once, f"{once} -> {twice}"


def test_twice_the_depth_is_twice_the_work():
    once, twice = work("InCore", nested(8, 8)), work("InCore", nested(8, 16))
    assert twice <= LIMIT * once, f"{once} -> {twice}"


def test_nothing_to_do_costs_a_look_at_each_statement():
    text = HEAD.format(kind="InCore") + lines(0, *["s = s + 1"] * 500) + TAIL
    program = pl.parse(text)
    lower = ctrl_flow_transform()
    lower(program)
    assert calls_of(lambda: lower(program)) < 3 * 500


def test_hundreds_of_escapes_in_one_list():
    """They nest as deep: no limit of Python's stack is met."""
    program = pl.parse(HEAD.format(kind="InCore") + many_escapes(400) + TAIL)
    assert ctrl_flow_transform()(program) is not program
