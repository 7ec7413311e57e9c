"""Programs of every carry shape, each with a NumPy model: what a loop or branch hands on, and what orders its tasks.

A program is one choice on each axis of :data:`AXES`; the generator writes its text and, statement by statement, what it
does to NumPy arrays. So there are two independent meanings, this model and the interpreter, and what is compared with
them is the program behind the passes and the emitted C++ on the task runtime.

``python -m tests.codegen.carry_matrix [--every N] [--offset K]``: the full product, or each Nth program of it.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tests.differential.emitted import Job, Report, check

Env = dict[str, Any]

AXES: dict[str, tuple[str, ...]] = {
    "shape": (
        "seq", "parallel", "while", "if_else", "if_only", "nested", "nested_parallel", "dynamic", "zero", "descending",
        "stepped", "unroll", "if_loop", "break", "continue",
    ),
    "carry": ("trivial", "rebind", "nested_rebind", "swap", "rotate", "body_local", "phi"),
    "region": ("auto", "manual", "manual_inside", "bare", "hand"),
    "launch": ("call", "submit", "submit_new", "at", "spmd", "spmd_loop", "spmd_submit", "inline"),
    "outputs": ("one", "swapped", "scratch", "inout", "no_dep"),
}  # fmt: skip


@dataclass(frozen=True)
class Choice:
    """One program. ``manual``: only explicit dependencies order its tasks."""

    shape: str
    carry: str
    region: str
    launch: str
    outputs: str

    @property
    def name(self) -> str:
        return "-".join((self.shape, self.carry, self.region, self.launch, self.outputs))

    @property
    def manual(self) -> bool:
        return self.region in ("manual", "manual_inside")

    @property
    def parallel(self) -> bool:
        return self.shape in ("parallel", "nested_parallel")

    @property
    def chained(self) -> bool:
        """Each task waits for the one before."""
        return self.manual and not self.loose

    @property
    def loose(self) -> bool:
        """Launches that can't name dependencies, in a region where nothing else orders tasks."""
        return self.manual and self.launch in ("call", "spmd_loop")


def without_meaning(c: Choice) -> str | None:
    """The rule that leaves a combination out."""
    crosses = c.carry not in ("trivial", "body_local")
    if c.loose and (c.carry != "trivial" or c.shape in ("nested", "nested_parallel", "if_else")):
        return "a launch without deps= in a MANUAL region has no order: only single writes of disjoint parts are right"
    if c.region == "manual" and c.parallel and crosses:
        return "iterations of a parallel loop in a MANUAL region do not wait for each other: they can hand on nothing"
    if c.region == "manual_inside" and c.parallel:
        return "the last id of a parallel loop in an AUTO region does not stand for all iterations"
    if c.region == "manual_inside" and c.carry in ("nested_rebind", "phi"):
        return "a tensor made in a loop or branch of a MANUAL region ends with the region: it can't be handed on"
    if c.launch == "submit_new" and (c.outputs in ("swapped", "inout") or c.carry in ("trivial", "swap")):
        return "the runtime allocates trailing Out parameters alone, and only where a fresh tensor is wanted"
    if c.launch == "submit_new" and c.region == "manual_inside" and c.carry != "body_local":
        return "what the runtime allocates in a MANUAL region ends with the region: it can't be handed on"
    return None


def choices() -> Iterator[Choice]:
    """The full product, those without meaning included."""
    for values in itertools.product(*AXES.values()):
        yield Choice(*values)


# --- kernels ----------------------------------------------------------------------------------------------------------

T = "pl.Tensor[[8, 40], pl.FP32]"
X = "pl.Tensor[[8, 64], pl.FP32]"
INDEX = "pl.Scalar[pl.INDEX]"
TASK = "pl.Scalar[pl.TASK_ID]"


@dataclass(frozen=True)
class Body:
    """What one step does to its target ``o``, from ``x``, ``b`` and the index ``i``.

    ``part``: "all" columns, a "band" of 8 columns that no other index touches, or "overlap", 16 columns that the next
    index touches as well. ``update``: reads the target too. ``log``, ``scratch``: further targets.
    """

    part: str
    update: bool
    log: str = ""  # the part of the log that is updated
    scratch: bool = False

    def columns(self, part: str) -> tuple[str, int]:
        return ("0", 40) if part == "all" else ("i * 8", 8 if part == "band" else 16)

    def text(self, rows: str, height: int) -> list[str]:
        at, width = self.columns(self.part)
        tile = f"[{height}, {width}]"
        source = "i * 8" if self.part == "all" else "i * 16"
        lines = [f"xt = pl.load(x, [{rows}, {source}], {tile})", f"bt = pl.load(b, [{rows}, {at}], {tile})"]
        lines.append("v = pl.add(xt, bt)" if self.update else "v = pl.add(pl.mul(xt, 3.0), bt)")
        if self.scratch:
            lines.append(f"s = pl.store(v, [{rows}, 0], s)")
            lines.append(f"v = pl.load(s, [{rows}, 0], {tile})")
        if self.update:
            lines.append(f"v = pl.add(pl.mul(pl.load(o, [{rows}, {at}], {tile}), 2.0), v)")
        lines.append(f"o = pl.store(v, [{rows}, {at}], o)")
        if self.log:
            at, width = self.columns(self.log)
            tile = f"[{height}, {width}]"
            if self.log != self.part:
                source = "i * 8"
            lines.append(f"old = pl.mul(pl.load(log, [{rows}, {at}], {tile}), 2.0)")
            lines.append(f"lt = pl.add(old, pl.load(x, [{rows}, {source}], {tile}))")
            lines.append(f"log = pl.store(lt, [{rows}, {at}], log)")
        return lines

    def run(self, x: Any, b: Any, i: int, o: Any, log: Any, s: Any) -> None:
        def span(part: str) -> slice:
            return slice(0, 40) if part == "all" else slice(i * 8, i * 8 + (8 if part == "band" else 16))

        at = span(self.part)
        width = at.stop - at.start
        source = i * 8 if self.part == "all" else i * 16
        xt = x[:, source : source + width]
        v = xt + b[:, at] if self.update else xt * 3 + b[:, at]
        if s is not None:
            s[:, :width] = v
        o[:, at] = o[:, at] * 2 + v if self.update else v
        if log is not None:
            at = span(self.log)
            width = at.stop - at.start
            source = source if self.log == self.part else i * 8
            log[:, at] = log[:, at] * 2 + x[:, source : source + width]


def direction(body: Body) -> str:
    return "pl.InOut" if body.update else "pl.Out"


def kernel(name: str, body: Body, blocks: bool) -> list[str]:
    """A kernel function. Results stand in another order than the parameters where there is a log."""
    params = f"x: {X}, b: {T}, i: {INDEX}"
    if body.scratch:
        params += f", s: pl.Out[{T}]"
    params += f", o: {direction(body)}[{T}]"
    if body.log:
        params += f", log: pl.InOut[{T}]"
    result = f"tuple[{T}, {T}]" if body.log else T
    lines = ["@pl.function(type=pl.FunctionType.InCore)", f"def {name}(self, {params}) -> {result}:"]
    inner = ["block = pl.tile.get_block_idx()", *body.text("block * 4", 4)] if blocks else body.text("0", 8)
    inner.append("return log, o" if body.log else "return o")
    return lines + indent(inner)


def indent(lines: Iterable[str]) -> list[str]:
    return [f"    {line}" for line in lines]


# --- statements -------------------------------------------------------------------------------------------------------


@dataclass
class Statement:
    """Lines of text, and what they do to the environment of the model."""

    lines: list[str]
    run: Callable[[Env], None]


def sequence(statements: Sequence[Statement]) -> Statement:
    def run(env: Env) -> None:
        for s in statements:
            s.run(env)

    return Statement([line for s in statements for line in s.lines], run)


def inside(head: str, body: Statement) -> Statement:
    return Statement([head, *indent(body.lines)], body.run)


def loop(var: str, head: str, values: Callable[[Env], Iterable[int]], body: Statement) -> Statement:
    def run(env: Env) -> None:
        for value in values(env):
            env[var] = value
            body.run(env)

    return Statement([f"for {var} in {head}:", *indent(body.lines)], run)


def branch(condition: str, holds: Callable[[Env], bool], then: Statement, other: Statement | None) -> Statement:
    def run(env: Env) -> None:
        if holds(env):
            then.run(env)
        elif other is not None:
            other.run(env)

    lines = [f"if {condition}:", *indent(then.lines)]
    if other is not None:
        lines += ["else:", *indent(other.lines)]
    return Statement(lines, run)


def plain(line: str, run: Callable[[Env], None] = lambda env: None) -> Statement:
    return Statement([line], run)


# --- one program ------------------------------------------------------------------------------------------------------


class Maker:
    """Writes one program."""

    def __init__(self, choice: Choice) -> None:
        self.c = choice
        self.names = itertools.count()
        self.kernels: dict[str, list[str]] = {}

    # what a step computes

    def bodies(self) -> tuple[Body, Body]:
        """The step in place, and the step into a fresh tensor."""
        c = self.c
        apart = c.loose or c.region == "manual" and c.parallel  # iterations run in any order
        log = ("band" if apart else "all") if c.outputs == "swapped" else ""
        if c.outputs in ("one", "swapped"):
            in_place = Body("band" if apart or c.parallel else "overlap", False, log)
        else:
            in_place = Body("band" if apart else "all", True, "", c.outputs == "scratch")
        fresh = Body("all", c.outputs == "inout", log, c.outputs == "scratch")
        return in_place, fresh

    def step(self, index: str, b: str, target: str, fresh: bool) -> Statement:
        """One launch that writes ``target``; a fresh one is made here."""
        body = self.bodies()[fresh]
        made: list[Statement] = []
        helper = self.c.launch == "inline"
        if fresh and not helper:
            if self.c.launch != "submit_new":
                made.append(self.create(target, body.update))
        scratch = ""
        if body.scratch and not helper:
            scratch = f"s{next(self.names)}"
            if not fresh or self.c.launch != "submit_new":
                made.append(self.create(scratch, False))
        value = self.index(index)

        def run(env: Env) -> None:
            made_inside = fresh and self.c.launch in ("inline", "submit_new")
            o = fresh_array(body.update) if made_inside else env[target]
            s = fresh_array(False) if body.scratch else None
            body.run(env["x"], env[b], value(env), o, env["log"] if body.log else None, s)
            env[target] = o

        return sequence([*made, Statement(self.launch(index, b, target, scratch, body, fresh), run)])

    def index(self, index: str) -> Callable[[Env], int]:
        return (lambda env: int(index)) if index.isdigit() else lambda env: env[index]

    def create(self, name: str, filled: bool) -> Statement:
        text = f"{name} = pl.create_tensor([8, 40], dtype=pl.FP32{', init_value=1.0' if filled else ''})"

        def run(env: Env) -> None:
            env[name] = fresh_array(filled)

        return plain(text, run)

    def launch(self, index: str, b: str, target: str, scratch: str, body: Body, fresh: bool) -> list[str]:
        c = self.c
        no_dep = c.outputs == "no_dep"
        deps = "[t]" if c.chained else ""
        x = "pl.no_dep(x)" if no_dep else "x"
        args = ", ".join([x, b, index, *([scratch] if scratch else []), target, *(["log"] if body.log else [])])
        results = f"log, {target}" if body.log else target
        if c.launch in ("at", "spmd_loop"):
            number = next(self.names)  # a name has one type, and two steps may differ
            rename = {"o": target, "s": scratch, "b": b, "i": index}
            rename |= {name: f"{name}{number}" for name in ("xt", "bt", "v", "old", "lt")}
            lines = body.text("blk * 4", 4) if c.launch == "spmd_loop" else body.text("0", 8)
            inner = [re.sub(r"\b\w+\b", lambda m: rename.get(m[0], m[0]), line) for line in lines]
            if c.launch == "spmd_loop":
                return ["for blk in pl.spmd(2):", *indent(inner)]
            more = (", no_dep_args=[x]" if no_dep else "") + (f", deps={deps}" if deps else "")
            task = " as t" if deps else ""
            return [f"with pl.at(level=pl.Level.CORE_GROUP{more}){task}:", *indent(inner)]
        blocks = c.launch in ("spmd", "spmd_submit")
        name = "fresh" if fresh else "step"
        self.kernels[name] = kernel(name, body, blocks)
        call = f"self.{name}({args})"
        if c.launch == "call":
            return [f"{results} = {call}"]
        if c.launch == "spmd":
            head = f"with pl.spmd(2, deps={deps}) as t:" if deps else "with pl.spmd(2):"
            return [head, f"    {results} = {call}"]
        if c.launch == "submit_new" and fresh:
            return [self.submitted(name, ", ".join([x, b, index]), results, deps)]
        if c.launch in ("submit", "submit_new", "spmd_submit"):
            return [self.submitted(name, args, results, deps, ", core_num=2" if blocks else "")]
        return self.helper(name, index, b, target, body, fresh)

    def submitted(self, name: str, args: str, results: str, deps: str, more: str = "") -> str:
        shown = f"({results})" if "," in results else results
        form = "pl.spmd_submit" if more else "pl.submit"
        return f"{shown}, {'t' if deps else '_t'} = {form}(self.{name}, {args}{f', deps={deps}' if deps else ''}{more})"

    def helper(self, name: str, index: str, b: str, target: str, body: Body, fresh: bool) -> list[str]:
        """An inline method around the launch, which makes the tensors that the launch needs."""
        chained = self.c.chained
        params = f"x: {X}, b: {T}, i: {INDEX}"
        inner = []
        if body.scratch:
            inner.append("s = pl.create_tensor([8, 40], dtype=pl.FP32)")
        if fresh:
            inner.append(f"o = pl.create_tensor([8, 40], dtype=pl.FP32{', init_value=1.0' if body.update else ''})")
        else:
            params += f", o: {direction(body)}[{T}]"
        if body.log:
            params += f", log: pl.InOut[{T}]"
        x = "pl.no_dep(x)" if self.c.outputs == "no_dep" else "x"
        args = ", ".join([x, "b", "i", *(["s"] if body.scratch else []), "o", *(["log"] if body.log else [])])
        results = "log, o" if body.log else "o"
        types = [T, T] if body.log else [T]
        if chained:
            params += f", t: {TASK}"
            inner.append(self.submitted(name, args, results, "[t]"))
            results += ", t"
            types.append(TASK)
        else:
            inner.append(f"{results} = self.{name}({args})")
        inner.append(f"return {results}")
        annotation = types[0] if len(types) == 1 else f"tuple[{', '.join(types)}]"
        self.kernels[f"{name}_helper"] = [
            "@pl.function(type=pl.FunctionType.Inline)",
            f"def {name}_helper(self, {params}) -> {annotation}:",
            *indent(inner),
        ]
        outer = [
            "x",
            b,
            index,
            *([] if fresh else [target]),
            *(["log"] if body.log else []),
            *(["t"] if chained else []),
        ]
        taken = [*(["log"] if body.log else []), target, *(["t"] if chained else [])]
        return [f"{', '.join(taken)} = self.{name}_helper({', '.join(outer)})"]

    def total(self, source: str) -> Statement:
        """Reads a tensor as a whole behind everything; ``y`` shows in which order."""
        self.kernels["total"] = [
            "@pl.function(type=pl.FunctionType.InCore)",
            f"def total(self, c: {T}, y: pl.InOut[{T}]) -> {T}:",
            "    ct = pl.load(c, [0, 0], [8, 40])",
            "    y = pl.store(pl.add(pl.mul(pl.load(y, [0, 0], [8, 40]), 3.0), ct), [0, 0], y)",
            "    return y",
        ]
        text = f"y = self.total({source}, y)"
        if self.c.chained:
            text = f"y, t = pl.submit(self.total, {source}, y, deps=[t])"

        def run(env: Env) -> None:
            env["y"][:] = env["y"] * 3 + env[source]

        return plain(text, run)

    # what a loop or branch does

    def carry(self, index: str) -> Statement:
        """The statements of one iteration."""
        carry = self.c.carry
        if carry == "trivial":
            return self.step(index, "a", "acc", False)
        if carry == "rebind":
            return self.rebind(index)
        if carry == "nested_rebind":
            return loop("j", "pl.range(2)", lambda env: range(2), self.rebind("j"))
        if carry == "swap":

            def swap(env: Env) -> None:
                env["acc"], env["other"] = env["other"], env["acc"]

            return sequence([self.step(index, "other", "acc", False), plain("acc, other = other, acc", swap)])
        if carry == "rotate":

            def rotate(env: Env) -> None:
                env["acc"], env["other"] = env["nxt"], env["acc"]

            shift = sequence([plain("other = acc"), plain("acc = nxt", rotate)])
            return sequence([self.step(index, "other", "nxt", True), shift])
        if carry == "body_local":
            return sequence([self.step(index, "a", "tmp", True), self.step(index, "tmp", "acc", False)])
        assert carry == "phi"
        then, other = self.rebind(index), self.step(index, "a", "acc", False)
        if index.isdigit():  # not in a loop
            return branch("m > 0", lambda env: env["m"] > 0, then, other)
        return branch(f"{index} % 2 == 0", lambda env: env[index] % 2 == 0, then, other)

    def rebind(self, index: str) -> Statement:
        def run(env: Env) -> None:
            env["acc"] = env["nxt"]

        return sequence([self.step(index, "acc", "nxt", True), plain("acc = nxt", run)])

    def shaped(self) -> Statement:
        c = self.c

        def body(index: str) -> Statement:
            found = self.carry(index)
            if c.region == "manual_inside":
                return inside("with pl.manual_scope():", found)
            if c.region == "hand" and c.carry in ("trivial", "body_local", "swap"):
                return inside("with pl.scope():", found)
            return found

        plain_loops: dict[str, tuple[str, Callable[[Env], Iterable[int]]]] = {
            "seq": ("pl.range(4)", lambda env: range(4)),
            "parallel": ("pl.parallel(4)", lambda env: range(4)),
            "dynamic": ("pl.range(n)", lambda env: range(env["n"])),
            "zero": ("pl.range(2, 2)", lambda env: range(0)),
            "descending": ("pl.range(3, -1, -1)", lambda env: range(3, -1, -1)),
            "stepped": ("pl.range(n % 2, 4, 2)", lambda env: range(env["n"] % 2, 4, 2)),
            "unroll": ("pl.unroll(3)", lambda env: range(3)),
        }
        if c.shape in plain_loops:
            return loop("i", *plain_loops[c.shape], body("i"))
        if c.shape == "if_loop":
            return branch(
                "n > 1",
                lambda env: env["n"] > 1,
                loop("i", "pl.range(n)", lambda env: range(env["n"]), body("i")),
                None,
            )
        if c.shape == "break":
            found = body("i")
            ended = Statement([*found.lines, "if i == n - 1:", "    break"], found.run)
            return loop("i", "pl.range(4)", lambda env: range(env["n"] or 4), ended)
        if c.shape == "continue":
            found = body("i")
            skipped = Statement(["if i == n - 1:", "    continue", *found.lines], found.run)
            return loop("i", "pl.range(4)", lambda env: [i for i in range(4) if i != env["n"] - 1], skipped)
        if c.shape == "nested":
            inner = loop("i", "pl.range(2)", lambda env: range(2), body("i"))
            return loop("p", "pl.range(2)", lambda env: range(2), inner)
        if c.shape == "nested_parallel":
            inner = loop("i", "pl.parallel(3)", lambda env: range(3), body("i"))
            return loop("p", "pl.range(2)", lambda env: range(2), inner)
        if c.shape == "while":
            one = body("i")

            def run(env: Env) -> None:
                env["i"] = 0
                while env["i"] < env["n"]:
                    one.run(env)
                    env["i"] += 1

            return Statement(["i = 0", "while i < n:", *indent(one.lines), "    i = i + 1"], run)
        other = body("2") if c.shape == "if_else" else None
        return branch("n > 1", lambda env: env["n"] > 1, body("0"), other)

    def make(self) -> Case:
        c = self.c
        parts = []
        if c.chained:
            parts.append(plain("t = None"))
        parts.append(self.shaped())
        if not c.loose:
            parts.append(self.total("acc"))
            if c.carry in ("swap", "rotate"):
                parts.append(self.total("other"))
        body = sequence(parts)
        if c.region == "manual":
            start = parts[0] if c.chained else None
            body = inside("with pl.manual_scope():", sequence(parts[1:] if start else parts))
            body = sequence([start, body]) if start else body
        if c.region == "hand":
            body = inside("with pl.scope():", body)
        opened = ", auto_scope=False" if c.region in ("bare", "hand") else ""
        params = {
            "x": X, "a": T, "n": INDEX, "m": INDEX, "acc": f"pl.InOut[{T}]", "other": f"pl.InOut[{T}]",
            "log": f"pl.InOut[{T}]", "y": f"pl.InOut[{T}]",
        }  # fmt: skip
        used = "\n".join(body.lines)
        names = [name for name in params if re.search(rf"\b{name}\b", used)]
        signature = ", ".join(["self", *(f"{name}: {params[name]}" for name in names)])
        main = [
            f"@pl.function(type=pl.FunctionType.Orchestration{opened})",
            f"def main({signature}):",
            *indent([*body.lines, "return" if c.loose else "return y"]),
        ]
        methods: list[str] = []
        for name in sorted(self.kernels, key=lambda n: n.endswith("_helper")):
            methods += [*self.kernels[name], ""]
        text = "\n".join(["import pypto.language as pl", "", "@pl.program", "class P:", *indent([*methods, *main]), ""])
        return Case(c, text, names, body.run)


def fresh_array(filled: bool) -> Any:
    return np.full((8, 40), 1.0 if filled else np.nan)


@dataclass
class Case:
    """A program: its text, the parameters of ``main``, and its model."""

    choice: Choice
    text: str
    names: list[str]
    run: Callable[[Env], None]

    @property
    def inputs(self) -> list[list[Any]]:
        """Arguments to run it on: where ``n`` decides which statements run, several."""
        return [self.arguments(n) for n in ((3, 2, 0) if "n" in self.names else (3,))]

    def arguments(self, n: int) -> list[Any]:
        rng = np.random.default_rng(n)
        made: Env = {
            name: rng.integers(-3, 4, (8, 40)).astype(np.float32) for name in ("a", "acc", "other", "log", "y")
        }
        made |= {"x": rng.integers(-3, 4, (8, 64)).astype(np.float32), "n": n, "m": n % 2}
        return [made[name] for name in self.names]

    def expected(self, args: list[Any]) -> list[Any]:
        """The arguments as they end, by the model."""
        values = [a.astype(np.float64) if isinstance(a, np.ndarray) else a for a in args]
        env = dict(zip(self.names, values, strict=True))
        self.run(env)
        for value in values:
            assert not isinstance(value, np.ndarray) or np.abs(value).max() < 2**24, "not exact in FP32"
        return values


def make(choice: Choice) -> Case:
    return Maker(choice).make()


# --- which programs, and checking them --------------------------------------------------------------------------------


def meaningful() -> list[Choice]:
    return [c for c in choices() if without_meaning(c) is None]


def covering(wanted: Sequence[Choice], strength: int = 2) -> list[Choice]:
    """A few of these programs, such that each combination of values on any ``strength`` axes that they have is in one.

    Greedy, and deterministic: each program is the one, of a sample, that covers most that is new.
    """

    def combinations(c: Choice) -> list[tuple[Any, ...]]:
        values = list(zip(AXES, (getattr(c, axis) for axis in AXES), strict=True))
        return list(itertools.combinations(values, strength))

    order = list(wanted)
    np.random.default_rng(0).shuffle(order)  # type: ignore[arg-type]
    left = {k for c in order for k in combinations(c)}
    found = []
    at = 0
    while left:
        sample = [order[(at + k) % len(order)] for k in range(150)]
        at += 150
        best = max(sample, key=lambda c: sum(k in left for k in combinations(c)))
        new = [k for k in combinations(best) if k in left]
        if not new:  # what is left is rare: take the next that has it
            missing = min(left)
            best = next(c for c in order if missing in combinations(c))
            new = [k for k in combinations(best) if k in left]
        left.difference_update(new)
        found.append(best)
    return found


def job(choice: Choice, derive: bool = False) -> Job:
    case = make(choice)
    return Job(choice.name, case.text, case.inputs, case.expected, derive=derive, races=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.codegen.carry_matrix", description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="each Nth program only")
    parser.add_argument("--offset", type=int, default=0)
    parser.add_argument("--batch", type=int, default=100, help="programs in one library")
    parser.add_argument("--derive", action="store_true", help="with dependencies that the compiler finds")
    parser.add_argument("--only", default="", help="programs whose names match this regular expression")
    parser.add_argument("--show", action="store_true", help="texts and code of the first program of each fault")
    given = parser.parse_args()
    every = list(choices())
    rules = Counter(filter(None, map(without_meaning, every)))
    wanted = [c for c in meaningful()[given.offset :: given.every] if re.search(given.only, c.name)]
    if given.every > 1:
        np.random.default_rng(given.offset).shuffle(wanted)  # type: ignore[arg-type]
    begin = time.perf_counter()
    report = Report()
    seen: set[tuple[str, str]] = set()
    for start in range(0, len(wanted), given.batch):
        made = check(job(c, given.derive) for c in wanted[start : start + given.batch])
        report.add(made)
        for fault in made.faults:
            if fault.key not in seen:
                print(fault, flush=True)
                if given.show:
                    print(fault.text, fault.code, sep="\n", flush=True)
            seen.add(fault.key)
    for key, count in Counter(f.key for f in report.faults).most_common():
        print(f"{count} x {': '.join(key)}")
        for axis in AXES:
            values = Counter(f.name.split("-")[list(AXES).index(axis)] for f in report.faults if f.key == key)
            print(f"    {axis}: {', '.join(f'{v} {n}' for v, n in values.most_common())}")
    for message, count in report.refused.most_common():
        print(f"{count} refused: {message}")
    for rule, count in rules.items():
        print(f"{count} left out: {rule}")
    print(
        f"{len(every)} combinations, {len(every) - sum(rules.values())} with a meaning, {report.programs} checked,"
        f" {report.emitted} as C++, {sum(report.refused.values())} refused, {report.runs} runs, {len(report.faults)} mismatches"
        f" in {time.perf_counter() - begin:.0f} s"
    )
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
