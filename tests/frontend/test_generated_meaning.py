"""Generated scalar programs mean what Python means: branches, loops, breaks, swaps, augmented assignment, inline calls."""

from __future__ import annotations

import random
import textwrap
from typing import Any

import pytest

from pypto.runtime.interpreter import Interpreter

from .dsl import HEAD, parse, round_trip

NAMES = ("a", "b", "c", "d")
HELPERS = """
def twice(v):
    w = (v + v) % 2003
    return w
def mixed(v, a):
    b = v - a
    if b > 0:
        c = b
    else:
        c = a
    return (c * 2 + v) % 2003
"""


class Generator:
    """A random program over the names a, b, c, d (all defined first) and branch-local names t0, t1."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.loops = 0
        self.carries: list[str] = []  # of the carried loops around

    def expression(self, depth: int = 2) -> str:
        pick = self.random.randrange(9)
        if depth == 0 or pick < 3:
            return self.random.choice([*NAMES, *NAMES, str(self.random.randrange(-3, 9))])
        left, right = self.expression(depth - 1), self.expression(depth - 1)
        if pick == 3:
            return f"min({left}, {right})"
        if pick == 4:
            return f"({left}) % 7"
        if pick == 5:
            return f"({left}) // {self.random.choice((2, 3, -4))}"
        if pick == 6:
            return self.random.choice((f"twice({left})", f"mixed({left}, {right})"))
        return f"({left} {self.random.choice('+-*')} {right}) % 1009"

    def condition(self) -> str:
        text = f"{self.expression(1)} {self.random.choice(('<', '>', '==', '!=', '<=', '>='))} {self.expression(1)}"
        pick = self.random.randrange(6)
        if pick == 0:
            return f"not ({text})"
        return f"({text}) {self.random.choice(('and', 'or'))} ({self.condition()})" if pick == 1 else text

    def block(self, indent: int, depth: int, in_loop: bool) -> None:
        for _ in range(self.random.randrange(1, 4)):
            self.statement(indent, depth, in_loop)

    def statement(self, indent: int, depth: int, in_loop: bool) -> None:
        pad, pick = "    " * indent, self.random.randrange(12)
        if depth == 0 or pick < 4:
            self.lines.append(f"{pad}{self.random.choice([*NAMES, *self.carries])} = {self.expression()}")
        elif pick == 4:
            self.lines.append(
                f"{pad}{self.random.choice([*NAMES, *self.carries])} {self.random.choice('+-')}= {self.expression()}"
            )
        elif pick == 5:
            one, two = self.random.sample(NAMES, 2)
            self.lines.append(f"{pad}{one}, {two} = {self.expression(1)}, {self.expression(1)}")
        elif pick < 8:
            self.branch(pad, indent, depth, in_loop)
        elif pick == 8 and indent < 12:
            self.results(pad, indent, depth)
        elif pick == 9 and in_loop:
            self.lines.append(f"{pad}if {self.condition()}:\n{pad}    {self.random.choice(('break', 'continue'))}")
        elif pick == 10:
            self.loops += 1
            counter = f"k{self.loops}"
            self.lines.append(
                f"{pad}{counter} = 0\n{pad}while {counter} < {self.random.randrange(4)}:\n{pad}    {counter} = {counter} + 1"
            )
            self.block(indent + 1, depth - 1, True)
        else:
            self.loops += 1
            bounds = self.random.choice(("n", "1, n", "n, 0, -2", "0", "a % 4", "2, 3"))
            self.lines.append(f"{pad}for i{self.loops} in range_({bounds}):")
            if self.random.random() < 0.5:
                self.lines.append(f"{pad}    {self.random.choice(NAMES)} = i{self.loops} + {self.random.choice(NAMES)}")
            self.block(indent + 1, depth - 1, True)

    def results(self, pad: str, indent: int, depth: int) -> None:
        """A branch, a loop or a while loop whose results are yielded; ``#py`` lines are Python's, ``#pl`` lines the DSL's."""
        self.loops += 1
        k = self.loops
        pick, add = self.random.randrange(3), self.lines.append
        one, two = self.random.choice(((f"r{k}", f"s{k}"), tuple(self.random.sample(NAMES, 2))))
        if pick == 0:
            for head in (f"if {self.condition()}:", "else:"):
                add(f"{pad}{head}")
                self.block(indent + 1, depth - 1, False)
                values = f"{self.expression()}, {self.expression()}"
                add(f"{pad}    {one}, {two} = {values} #py")
                add(f"{pad}    {one}, {two} = pl.yield_({values}) #pl")
        else:
            first, second = self.expression(1), self.expression(1)
            add(f"{pad}p{k}, q{k} = {first}, {second} #py")
            if pick == 1:
                bound = self.random.choice(("n", "0", "3"))
                add(f"{pad}for j{k} in range({bound}): #py")
                add(f"{pad}for j{k}, (p{k}, q{k}) in pl.range({bound}, init_values=({first}, {second})): #pl")
                inner = [f"p{k}", f"q{k}"]
            else:
                bound = self.random.randrange(4)
                add(f"{pad}p{k} = min(p{k}, {bound}) #py")
                add(f"{pad}while p{k} < {bound}: #py")
                add(f"{pad}for (p{k}, q{k}) in pl.while_(init_values=(min({first}, {bound}), {second})): #pl")
                add(f"{pad}    pl.cond(p{k} < {bound}) #pl")
                inner = [f"q{k}"]
            self.carries += inner
            self.block(indent + 1, depth - 1, False)
            left = f"p{k} + 1" if pick == 2 else f"(q{k} - p{k}) % 97"
            right = f"(q{k} + {self.expression(1)}) % 97"
            del self.carries[-len(inner) :]
            if self.random.randrange(3) == 0:  # the names at the end of the body are carried on
                add(f"{pad}    p{k}, q{k} = {left}, {right}")
                add(f"{pad}{one}, {two} = p{k}, q{k} #py")
                add(f"{pad}{one}, {two} = p{k}_out, q{k}_out #pl")
            else:
                add(f"{pad}    p{k}, q{k} = {left}, {right} #py")
                add(f"{pad}    {one}, {two} = pl.yield_({left}, {right}) #pl")
                add(f"{pad}{one}, {two} = p{k}, q{k} #py")
        add(f"{pad}{self.random.choice(NAMES)} = {one} - {two}")

    def branch(self, pad: str, indent: int, depth: int, in_loop: bool) -> None:
        """Every branch gives the same new name a value; the code behind reads it."""
        self.loops += 1
        name = f"t{self.loops}"
        heads = ["if", *["elif"] * self.random.randrange(3), "else"]
        for head in heads:
            self.lines.append(f"{pad}{head}:" if head == "else" else f"{pad}{head} {self.condition()}:")
            self.block(indent + 1, depth - 1, False)
            self.lines.append(f"{pad}    {name} = {self.expression()}")
        self.lines.append(f"{pad}{self.random.choice(NAMES)} = {name}")

    def program(self) -> str:
        self.lines += [f"{name} = {value}" for name, value in zip(NAMES, ("n", "n + 1", "3", "0 - n"), strict=True)]
        for _ in range(5):
            self.statement(0, 3, False)
        self.lines.append("return a, b, c, d")
        return "\n".join(self.lines)


def version(body: str, language: str) -> str:
    """The lines of a generated body that are for ``py`` or for ``pl``."""
    other = " #py" if language == "pl" else " #pl"
    lines = [line.removesuffix(f" #{language}") for line in body.split("\n") if not line.endswith(other)]
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(60))
def test_generated_programs(seed: int) -> None:
    body = Generator(seed).program()
    names: dict[str, Any] = {"range_": range}
    exec(f"{HELPERS}\ndef f(n):\n{textwrap.indent(version(body, 'py'), '    ')}", names)
    body = version(body, "pl")
    helpers = HELPERS.replace("def ", "@pl.inline\ndef ")
    text = (
        f"{HEAD}{helpers}@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.Orchestration)\n"
        f"    def main(self, n: pl.Scalar[pl.INDEX]):\n{textwrap.indent(body.replace('range_', 'pl.range'), ' ' * 8)}\n"
    )
    node = parse(text)
    round_trip(node)
    for n in (0, 1, 5):
        assert Interpreter(node).run(node["main"], [n]) == list(names["f"](n)), body
