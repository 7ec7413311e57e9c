"""Generated scalar programs: helpers, loops of each kind and rebinding mean what Python means, before and after the passes
that expand helpers and unroll loops."""

import random
import textwrap
from types import SimpleNamespace

import pytest
from spec_kit import program_text

import pypto.language as pl
from pypto.passes.inline_functions import inline_functions
from pypto.passes.normalize_stmt_structure import normalize_stmt_structure
from pypto.passes.unroll_loops import unroll_loops
from pypto.runtime.interpreter import Interpreter
from pypto.verify.properties import IRProperty, property_set
from pypto.verify.registry import verify_all

NAMES = ("a", "b", "c")
HOLDS = property_set(
    IRProperty.InlineFunctionsEliminated,
    IRProperty.UnrollResolved,
    IRProperty.UseAfterDef,
    IRProperty.NormalizedStmtStructure,
)


class Writer:
    """Writes programs that both Python and the language read."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.loops = 0

    def program(self) -> str:
        helpers = [self.helper(k) for k in range(3)]
        body = ["c = a - b", *self.block(3, helpers=3), "return a, b, c"]
        run = "@Opaque\ndef run(self, a: idx, b: idx) -> tuple[idx, idx, idx]:\n" + textwrap.indent(
            "\n".join(body), "    "
        )
        return "\n".join([*helpers, run]) + "\n"

    def helper(self, k: int) -> str:
        """One result, two results, or a tuple variable; may call the helpers before it."""
        results = [["return c"], ["return b, c"], ["t = (c, a)", "return t"]][k]
        body = ["c = b * 2 - a", *self.block(2, helpers=k), *results]
        return f"@Inline\ndef h{k}(self, a: idx, b: idx):\n" + textwrap.indent("\n".join(body), "    ")

    def block(self, depth: int, helpers: int) -> list[str]:
        return [line for _ in range(self.random.randint(1, 3)) for line in self.statement(depth, helpers)]

    def statement(self, depth: int, helpers: int) -> list[str]:
        kind = self.random.choice(["assign", "assign", "call", "call", "loop", "unroll", "if", "statement"])
        if kind in ("call", "statement") and helpers:
            return [self.call(self.random.randrange(helpers), kind == "statement")]
        if kind in ("loop", "unroll", "if") and depth:
            return self.compound(kind, depth, helpers)
        return [f"{self.name()} = {self.expr()}"]

    def compound(self, kind: str, depth: int, helpers: int) -> list[str]:
        if kind == "if":
            head, other = f"if {self.expr()} > {self.expr()}:", self.block(depth - 1, helpers)
            return [head, *self.indented(self.block(depth - 1, helpers)), "else:", *self.indented(other)]
        self.loops += 1
        index = f"i{self.loops}"
        bounds = self.random.choice(["2", "1, 4, 2", "3, 0, -2"])
        body = [f"{self.name()} = {self.name()} + {index}", *self.block(depth - 1, helpers)]
        return [f"for {index} in pl.{'range' if kind == 'loop' else 'unroll'}({bounds}):", *self.indented(body)]

    @staticmethod
    def indented(lines: list[str]) -> list[str]:
        return ["    " + line for line in lines]

    def call(self, k: int, alone: bool) -> str:
        call = f"self.h{k}({self.expr()}, {self.expr()})"
        if alone:
            return call
        if k == 0:
            return f"{self.name()} = {call}"
        first, second = self.random.sample(NAMES, 2)
        return f"{first}, {second} = {call}"

    def name(self) -> str:
        return self.random.choice(NAMES)

    def expr(self) -> str:
        left, right = self.name(), self.random.choice([*NAMES, "1", "3"])
        return self.random.choice([left, left, f"{left} + {right}", f"{left} - {right}", f"{left} * 2"])


def python_results(text: str, *args: int) -> list[int]:
    language = SimpleNamespace(range=range, unroll=range)
    names: dict = {"pl": language}
    body = (
        text.replace("@Inline\n", "")
        .replace("@Opaque\n", "")
        .replace(": idx", "")
        .replace(" -> tuple[idx, idx, idx]", "")
    )
    exec("class P:\n" + textwrap.indent(body, "    "), names)
    return list(names["P"]().run(*args))


@pytest.mark.parametrize("seed", range(40))
def test_generated_programs(seed):
    text = Writer(seed).program()
    program = pl.parse(program_text(text), "case.py")
    result = program
    for step in (inline_functions(), unroll_loops(), normalize_stmt_structure()):
        result = step(result)
        assert step(result) is result
    assert verify_all(HOLDS, result) == []
    for args in ((0, 1), (5, 2), (-3, 4)):
        wanted = python_results(text, *args)
        for node in (program, result):
            assert Interpreter(node).run(node["run"], list(args)) == wanted, f"{args}\n{text}\n{result}"


def test_the_generator_covers_what_it_is_for():
    texts = [Writer(seed).program() for seed in range(40)]
    for phrase in ("self.h0(", "self.h1(", "self.h2(", "pl.unroll(3, 0, -2)", "pl.range(", "    self.h", "else:"):
        assert sum(phrase in text for text in texts) > 5, phrase
