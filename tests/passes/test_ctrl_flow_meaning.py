"""CtrlFlowTransform: every lowered program means what its source means, in all combinations and in generated programs."""

import random
import textwrap

import pytest
from ctrl_flow_kit import check, escapes, lower, python_function, version
from spec_kit import parse

from pypto.verify.facts import FACTS
from pypto.verify.properties import IRProperty, IRPropertySet

# --- the table of combinations ----------------------------------------------------------------------------------------

BOUNDS = {"up": "pl.range(n)", "down": "pl.range(n, -2, -2)", "while": ""}
PLACES = ("top", "if", "two", "else")


def escape(word: str, place: str, condition: str, values: str) -> str:
    """An escape at a place: ``#py`` lines are Python's (``values`` are what the carries go on with there)."""
    leave = f"{values} #py\n{word}" if values else word
    if place == "top":
        return leave
    if place == "if":
        return f"if {condition}:\n{textwrap.indent(leave, '    ')}"
    if place == "two":
        inner = f"if {condition}:\n    u = u + 3\n{textwrap.indent(leave, '    ')}\nu = u + 5"
        return f"if i % 2 == 0:\n{textwrap.indent(inner, '    ')}"
    return f"if not ({condition}):\n    u = u + 7\nelse:\n    u = u + 1\n{textwrap.indent(leave, '    ')}"


def both_escapes(kind: str, place: str, first: str, second: str) -> tuple[str, str]:
    """Text of the escapes in the middle and near the end of the body."""
    if kind == "both":
        early = escape("continue", "if" if place == "top" else place, "i % 3 == 1", first)
        return early, escape("break", place, "i == lim", second)
    condition = "i == lim" if kind == "break" else "i % 3 == lim % 3"
    return escape(kind, place, condition, first), ""


def natural(loop: str, escapes_: tuple[str, str]) -> str:
    early, late = escapes_
    head = f"for i in {BOUNDS[loop]}:" if loop != "while" else "i = 0 - 1\nwhile i < n:\n    i = i + 1"
    body = f"s = s + 1\n{early}\nt = t * 2 + i\n{late}\nu = u + s * 1000"
    return f"s = 0\nt = 1\nu = 0\n{head}\n{textwrap.indent(body, '    ')}"


def explicit(loop: str, escapes_: tuple[str, str]) -> str:
    early, late = escapes_
    pairs = "s, t = 0, 1 #py\n"
    if loop == "while":
        pairs = "k, s, t = -1, 0, 1 #py\n"
        head = "for (k, s, t) in pl.while_(init_values=(-1, 0, 1)): #pl\nwhile k < n: #py\n    pl.cond(k < n) #pl\n    i = k + 1"
        last = "    k_, s_, t_ = pl.yield_(i, s1, t1) #pl\n    k, s, t = i, s1, t1 #py"
    else:
        bounds = BOUNDS[loop]
        head = f"for i, (s, t) in {bounds.removesuffix(')')}, init_values=(0, 1)): #pl\nfor i in {bounds}: #py"
        last = "    s_, t_ = pl.yield_(s1, t1) #pl\n    s, t = s1, t1 #py"
    body = f"s1 = s + 1\n{early}\nt1 = t * 2 + i\n{late}\nu = u + s1 * 1000"
    after = "s, t = s_, t_ #pl"
    return f"u = 0\n{pairs}{head}\n{textwrap.indent(body, '    ')}\n{last}\n{after}"


def combination(style: str, loop: str, kind: str, place: str) -> str:
    if style == "natural":
        return natural(loop, both_escapes(kind, place, "", ""))
    # The counter of a while and s1 are known at the early escape, t1 at the late one.
    known = ("k, " if loop == "while" else "", "i, " if loop == "while" else "")
    early, late = f"{known[0]}s = {known[1]}s1", f"{known[0]}s, t = {known[1]}s1, t1"
    return explicit(loop, both_escapes(kind, place, early, late))


CALLER = {
    "kernel": "@InCore\ndef run(self, n: idx, lim: idx) -> tuple[idx, idx, idx]:\n{body}\n    return s, t, u\n",
    "scope": (
        "@Opaque\ndef run(self, n: idx, lim: idx) -> tuple[idx, idx, idx]:\n"
        "    with pl.at(level=pl.Level.CORE_GROUP):\n{scoped}\n    return s, t, u\n"
    ),
    "spmd": (
        "@Opaque\ndef run(self, n: idx, lim: idx) -> tuple[idx, idx, idx]:\n"
        "    with pl.spmd(1):\n        b = pl.tile.get_block_idx()\n{scoped}\n    return s, t, u\n"
    ),
    "host": "@Opaque\ndef run(self, n: idx, lim: idx) -> tuple[idx, idx, idx]:\n{body}\n    return s, t, u\n",
}


CASES = [(0, 0), (1, 0), (7, 0), (7, 3), (6, 5)]


@pytest.mark.parametrize("where", CALLER)
@pytest.mark.parametrize("kind", ["break", "continue", "both"])
@pytest.mark.parametrize("loop", BOUNDS)
@pytest.mark.parametrize("style", ["natural", "explicit"])
def test_every_combination_means_the_same(style, loop, kind, where):
    for place in PLACES:
        body = combination(style, loop, kind, place)
        python = version(body, "py").replace("pl.range", "range")
        want = python_function(f"def run(n, lim):\n{textwrap.indent(python, '    ')}\n    return s, t, u")
        dsl = version(body, "pl")
        text = CALLER[where].format(body=textwrap.indent(dsl, "    "), scoped=textwrap.indent(dsl, "        "))
        check(text, want, *CASES)


# --- generated programs -----------------------------------------------------------------------------------------------------


class Generator:
    """A random program over a, b, c with nested loops of all kinds, natural and explicit, and escapes everywhere.

    ``known``: for each explicit loop around, the operands that are assigned in this iteration so far.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.count = 0
        self.known: list[dict[str, str] | None] = []

    def add(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def name(self) -> str:
        return self.random.choice("abc")

    def value(self) -> str:
        pick = self.random.randrange(4)
        sides = [self.name(), self.random.choice(["n", "1", "7", self.name()])]
        return f"({sides[0]} {'+-*'[pick % 3]} {sides[1]}) % 101"

    def condition(self) -> str:
        return f"{self.value()} {self.random.choice(('<', '>', '!='))} {self.random.randrange(40)}"

    def block(self, depth: int, budget: int) -> None:
        for _ in range(self.random.randrange(1, 4)):
            self.statement(depth, budget)

    def escape(self, depth: int) -> None:
        word = self.random.choice(("break", "continue"))
        for carry, operand in (self.known[-1] or {}).items():
            self.add(depth, f"{carry} = {operand} #py")
        self.add(depth, word)

    def statement(self, depth: int, budget: int) -> None:
        pick = self.random.randrange(10)
        if budget == 0 or pick < 3:
            self.add(depth, f"{self.name()} = {self.value()}")
        elif pick < 5:
            self.add(depth, f"if {self.condition()}:")
            self.inside(depth + 1, budget - 1)
            if self.random.randrange(2):
                self.add(depth, "else:")
                self.inside(depth + 1, budget - 1)
        elif pick == 5:
            self.count += 1
            result = f"r{self.count}"
            for head in (f"if {self.condition()}:", "else:"):
                self.add(depth, head)
                self.inside(depth + 1, budget - 1, always=False)
                value = self.value()
                self.add(depth + 1, f"{result} = {value} #py")
                self.add(depth + 1, f"{result} = pl.yield_({value}) #pl")
            self.add(depth, f"{self.name()} = {result}")
        elif pick < 8:
            self.natural(depth, budget)
        else:
            self.explicit(depth, budget)

    def inside(self, depth: int, budget: int, always: bool = True) -> None:
        """The body of a branch."""
        kept = None if not self.known or self.known[-1] is None else dict(self.known[-1])
        self.block(depth, budget)
        if self.known and self.random.randrange(3) == 0:
            if always and self.random.randrange(2):
                self.escape(depth)
            else:
                self.add(depth, f"if {self.condition()}:")
                self.escape(depth + 1)
        if self.known:
            self.known[-1] = kept

    def natural(self, depth: int, budget: int) -> None:
        self.count += 1
        pick = self.random.randrange(3)
        if pick == 0:
            counter = f"w{self.count}"
            self.add(depth, f"{counter} = 0")
            self.add(depth, f"while {counter} < {self.random.randrange(5)}:")
            self.add(depth + 1, f"{counter} = {counter} + 1")
        else:
            bounds = self.random.choice(("n", "5, 0, -2", "4", "n, 9, 2"))
            self.add(depth, f"for i{self.count} in range_({bounds}):")
            self.add(depth + 1, f"{self.name()} = ({self.name()} + i{self.count}) % 97")
        self.known.append(None)
        self.inside(depth + 1, budget - 1)
        self.block(depth + 1, budget - 1)
        self.known.pop()

    def explicit(self, depth: int, budget: int) -> None:
        self.count += 1
        k = self.count
        seed = self.value()
        self.add(depth, f"p{k}, q{k} = {seed}, 0 #py")
        if self.random.randrange(3) == 0:
            limit = self.random.randrange(4)
            self.add(depth, f"while q{k} < {limit}: #py")
            self.add(depth, f"for (p{k}, q{k}) in pl.while_(init_values=({seed}, 0)): #pl")
            self.add(depth + 1, f"pl.cond(q{k} < {limit}) #pl")
        else:
            self.add(depth, f"for j{k} in range(n): #py")
            self.add(depth, f"for j{k}, (p{k}, q{k}) in pl.range(n, init_values=({seed}, 0)): #pl")
        self.add(depth + 1, f"y{k} = q{k} + 1")
        self.known.append({f"q{k}": f"y{k}"})
        self.inside(depth + 1, budget - 1)
        self.add(depth + 1, f"x{k} = (p{k} + {self.name()}) % 89")
        self.known[-1] = {f"q{k}": f"y{k}", f"p{k}": f"x{k}"}
        self.inside(depth + 1, budget - 1)
        self.known.pop()
        self.add(depth + 1, f"p{k}, q{k} = x{k}, y{k} #py")
        self.add(depth + 1, f"u{k}, v{k} = pl.yield_(x{k}, y{k}) #pl")
        self.add(depth, f"u{k}, v{k} = p{k}, q{k} #py")
        self.add(depth, f"{self.name()} = u{k} - v{k}")

    def program(self) -> str:
        self.lines += ["a = n", "b = n + 3", "c = 11"]
        for _ in range(2):
            self.statement(0, 3)
        self.natural(0, 3)
        self.explicit(0, 3)
        return "\n".join(self.lines)


@pytest.mark.parametrize("seed", range(40))
def test_generated_programs(seed):
    body = Generator(seed).program()
    python = textwrap.indent(version(body, "py").replace("range_", "range"), "    ")
    want = python_function(f"def run(n):\n{python}\n    return a, b, c")
    dsl = textwrap.indent(version(body, "pl").replace("range_", "pl.range"), "    ")
    where = ("@InCore", "@Opaque")[seed % 2]
    text = f"{where}\ndef run(self, n: idx) -> tuple[idx, idx, idx]:\n{dsl}\n    return a, b, c\n"
    check(text, want, (0,), (3,), lowered=False)
    if where == "@InCore":
        assert not escapes(lower(parse(text)))


def test_two_runs_give_the_same_text():
    text = Generator(3).program()
    dsl = textwrap.indent(version(text, "pl").replace("range_", "pl.range"), "    ")
    text = f"@InCore\ndef run(self, n: idx) -> tuple[idx, idx, idx]:\n{dsl}\n    return a, b, c\n"
    assert str(lower(parse(text))) == str(lower(parse(text)))


@pytest.mark.parametrize("again", ["w = 0", "w = w + 1"])
def test_a_name_of_all_paths_that_do_not_escape_is_known_behind_the_branch(again):
    """Also if the loop assigns it once more, behind its use or with it."""
    text = f"""
    @InCore
    def run(self, n: idx, lim: idx) -> idx:
        for i, (s,) in pl.range(n, init_values=(0,)):
            if i == 3:
                w = 5
            else:
                if i > lim:
                    continue
                w = i * 2
            if n > 2:
                s1 = s + w
                {again}
            else:
                s1 = s
            t = pl.yield_(s1)
        return t
    """
    result = check(
        text, lambda n, lim: sum(5 if i == 3 else i * 2 for i in range(n) if i == 3 or i <= lim), (6, 4), (7, 1)
    )
    wanted = IRPropertySet()
    wanted.insert(IRProperty.UseAfterDef)
    assert not [d for d in FACTS.establish(wanted, result) if d.is_error]


def test_a_tile_whose_extent_a_branch_computes_stays_in_it():
    text = """
    @InCore
    def run(self, n: idx, x: f32[8, 8]) -> idx:
        for i, (s,) in pl.range(n, init_values=(0,)):
            if i > 1:
                if i > 3:
                    continue
                m = i % 4 + 1
                t = pl.load(x, [0, 0], [8, 8], valid_shape=[m, 8])
                pl.store(pl.add(t, 1.0), [0, 0], x)
            else:
                continue
            r = pl.yield_(s + 1)
        return r
    """
    wanted = IRPropertySet()
    wanted.insert(IRProperty.UseAfterDef)
    result = lower(parse(textwrap.dedent(text)))
    assert not escapes(result)
    assert not [d for d in FACTS.establish(wanted, result) if d.is_error]
