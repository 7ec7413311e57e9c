"""A random well-typed program as DSL text: kernels, helpers and an orchestration that uses them.

Only programs whose meaning is defined are made: names are read where every path has given them a value, loops are
bounded, integers are not divided by zero, floats stay small, and tasks that touch the same storage are ordered by the
rules of the task model or by explicit dependencies.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from hypothesis import strategies as st

from .body import HOST, Budget
from .choices import Choices
from .env import BOOL, F32, FLAGS, FLOAT, I32, INDEX, TALL, Value
from .host import Host
from .kernels import Callee, Param, enter_params, kernel, signature
from .statements import Statements

INPUTS = (
    Param("x", F32),
    Param("y", F32),
    Param("z", TALL),
    Param("w", I32),
    Param("flags", FLAGS),
    Param("n", INDEX, limit=4),
    Param("m", INDEX, limit=3),
    Param("s", FLOAT),
    Param("out", F32, "InOut"),
    Param("out2", F32, "Out"),
    Param("tall", TALL, "InOut"),
    Param("ints", I32, "InOut"),
)
HEAD = "import pypto.language as pl\n"
INLINES = {
    "twice": """
@pl.inline
def twice(v):
    w = (v + v) % 83
    return w
""",
    "apart": """
@pl.inline
def apart(v, a):
    if v > a:
        b = v - a
    else:
        b = a - v
    return b % 79
""",
    "ordered": """
@pl.inline
def ordered(a, b):
    c = min(a, b)
    b = max(a, b)
    return c % 73, b % 71
""",
    "blend": """
@pl.inline
def blend(t, u):
    v = pl.add(t, u)
    w = pl.mul(v, 0.5)
    return w
""",
}


@dataclass(frozen=True)
class Generated:
    """``text``: the module; ``features``: how often it uses what."""

    text: str
    features: Counter[str]


def scalar_helper(g: Choices, number: int) -> Callee:
    """An inline method on numbers, which may assign its parameters."""
    params = (Param("a", INDEX), Param("b", INDEX), Param("c", INDEX))[: g.between(1, 3)]
    body = Statements(g, HOST, Budget(3))
    enter_params(body, params)
    if g.chance(60):
        text = body.integer(1)
        body.put(f"a = ({text}) % 97")
        g.saw("inline method that assigns a parameter")
    body.statements(0, 3)
    scalars = g.between(1, 2)
    values = [g.pick(body.ints()) if g.chance(60) else f"({body.integer(1)}) % 89" for _ in range(scalars)]
    body.put(f"return {', '.join(values)}")
    name = f"h{number}"
    head = signature(name, params, (INDEX,) * scalars, "Inline")
    return Callee(name, params, (), frozenset(), "\n".join([*head, *body.lines]), inline=True, scalars=scalars)


def launching_helper(g: Choices, number: int, callees: list[Callee], scopes: bool) -> Callee:
    """An inline method that launches kernels on its parameters."""
    params = (Param("v", F32), Param("k", INDEX, limit=4), Param("p", F32, "InOut"))
    body = Host(g, callees, Budget(4))
    body.scopes = scopes
    body.manual = False  # tasks of the caller may use the same tensors
    enter_params(body, params)
    body.pinned.add("p")
    body.protected.add("v")
    body.statements(1, 3)
    body.put("return p")
    name = f"h{number}"
    head = signature(name, params, (F32,), "Inline")
    g.saw("inline method that launches")
    return Callee(name, params, (2,), frozenset(), "\n".join([*head, *body.lines]), inline=True)


def used(lines: list[str], params: tuple[Param, ...]) -> tuple[Param, ...]:
    """The parameters that a body mentions."""
    text = "\n".join(lines)
    return tuple(p for p in params if re.search(rf"\b{p.name}\b", text))


def generate(g: Choices) -> Generated:
    """One program."""
    style = g.weighted(((5, "kernels"), (5, "scopes"), (5, "both"), (1, "math")))
    callees: list[Callee] = []
    if style in ("kernels", "both"):
        callees = [kernel(g, i, g.between(1, 6)) for i in range(g.between(1, 3))]
    helpers = []
    for number in range(g.weighted(((3, 0), (2, 1), (1, 2)))):
        if callees and g.chance(50):
            helpers.append(launching_helper(g, number, [c for c in callees if not c.blocks], style == "both"))
        else:
            helpers.append(scalar_helper(g, number))
    auto_scope = not g.chance(15)
    main = Host(g, [*callees, *helpers], Budget(g.between(3, 22)), auto_scope)
    main.scopes = style in ("scopes", "both")
    opaque = style != "kernels" and g.chance(40)
    main.levelled = opaque
    main.host_math = style == "math"
    enter_params(main, INPUTS)
    main.protected |= {"x", "flags"}
    main.pinned |= {p.name for p in INPUTS if p.direction != "In"}
    main.statements(2, 9)
    if opaque and g.chance(15):
        main.budget.statements += 6
        main.hierarchy_scope()
        main.statements(0, 2)
    if style == "math":
        name = g.pick(main.operands(F32))
        main.put(f"return {name}")
        returned = (F32,)
        g.saw("tensor math on the host")
    else:
        names = [
            n
            for kind in (F32, TALL, I32)
            for n in main.env.of(kind)
            if any(not r.fixed for r in main.env.live[n].roots)
        ]
        chosen = [n for n in names[-6:] if g.chance(50)][:3]
        returned = tuple(main.env.live[n].type for n in chosen)
        main.put(f"return {', '.join(chosen)}" if chosen else "return")
    kind = "Opaque" if opaque else "Orchestration"
    head = signature("main", used(main.lines, INPUTS), returned, kind)
    if not auto_scope:
        head[0] = head[0].replace(")", ", auto_scope=False)", 1)
    g.saw(f"style {style}", kind)
    methods = ["\n".join([*head, *main.lines])]
    for callee in reversed([*callees, *helpers]):  # who is called stands before who calls
        if any(f"self.{callee.name}" in text for text in methods):
            methods.insert(0, callee.text)
    return _module(g, methods)


def generate_kernels(g: Choices) -> Generated:
    """A program of large kernels, each launched once or twice."""
    callees = [kernel(g, i, g.between(6, 16), g.pick((6, 60))) for i in range(g.between(4, 8))]
    main = Host(g, callees, Budget(0))
    enter_params(main, INPUTS)
    main.protected |= {"x", "flags"}
    main.pinned |= {p.name for p in INPUTS if p.direction != "In"}
    for callee in callees:
        for _ in range(g.between(1, 2)):
            main.launch_of(callee, g.chance(20))
    main.put("return")
    methods = [callee.text for callee in callees if any(f"self.{callee.name}" in line for line in main.lines)]
    methods.append("\n".join([*signature("main", used(main.lines, INPUTS), (), "Orchestration"), *main.lines]))
    return _module(g, methods)


def _module(g: Choices, methods: list[str]) -> Generated:
    text = "\n\n".join(methods)
    inlines = "".join(f"\n{code}" for name, code in INLINES.items() if f"{name}(" in text)
    return Generated(f"{HEAD}{inlines}\n\n@pl.program\nclass P:\n{text}\n", g.features)


@st.composite
def kernel_programs(draw: st.DrawFn) -> Generated:
    """The strategy for programs whose kernels are what matters."""
    return generate_kernels(Choices(draw))


@st.composite
def programs(draw: st.DrawFn) -> Generated:
    """The strategy."""
    return generate(Choices(draw))


__all__ = ["BOOL", "Generated", "Value", "generate", "kernel_programs", "programs"]
