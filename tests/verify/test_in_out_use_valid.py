"""InOutUseValid: what a launch wrote is read from the launch's result."""

import random

import pytest
from verify_kit import HERE, INDEX, expect, findings, holds, main, nodes, program, submit_of, swapped, with_main

from pypto import ir
from pypto.analysis.inout_use import stale_reads
from pypto.ir.node import FrozenDict, FrozenList
from pypto.ir.stmt import SeqStmts
from pypto.verify.properties import IRProperty

P = IRProperty.InOutUseValid
TENSOR = ir.TensorType([8, 8], ir.FP32)
LAUNCHES = ("{r} = self.k(x, {v})", "{r}, t_{r} = pl.submit(self.k, x, {v})")

RIGHT = {
    "rebound": "y = L\nz = pl.add(y, 1.0)\nreturn y",
    "renamed": "r = L\nz = pl.add(r, 1.0)\nreturn r",
    "loop": "for i in pl.range(4):\n    y = L\nreturn y",
    "carry": "for i, (c,) in pl.range(4, init_values=(y,)):\n    d = L(c)\n    r = pl.yield_(d)\nreturn r",
    "branch": "if n > 2:\n    y = L\nelse:\n    y = L\nreturn y",
    "one branch": "if n > 2:\n    y = L\nreturn y",
    "local": "for i in pl.range(4):\n    a = pl.create_tensor([8, 8], dtype=pl.FP32)\n    b = L(a)\nreturn y",
    "parallel": "for i in pl.parallel(4):\n    r = L\nreturn x",
    "return in a branch": "if n > 2:\n    r = L\n    return r\nz = pl.add(y, 1.0)\nreturn y",
    "break": "while n > 2:\n    if n > 5:\n        r = L\n        break\n    z = pl.add(y, 1.0)\nreturn x",
    "yielded into a result that nobody reads": "if n > 2:\n    a = L\n    r = pl.yield_(y)\nelse:\n    r = pl.yield_(x)\nreturn x",
    "yielded through results that nobody reads": (
        "if n > 2:\n    a = L\n    if n > 3:\n        q = pl.yield_(y)\n    else:\n        q = pl.yield_(x)\n    r = pl.yield_(q)\n"
        "else:\n    r = pl.yield_(x)\nreturn x"
    ),
    "carry that nobody reads": "a = L\nfor i, (c,) in pl.range(4, init_values=(y,)):\n    r = pl.yield_(c)\nreturn a",
    "initial value that an iteration replaces": (
        "a = L\nfor i, (c,) in pl.range(4, init_values=(y,)):\n    b = pl.create_tensor([8, 8], dtype=pl.FP32)\n"
        "    r = pl.yield_(b)\nreturn r"
    ),
    "rebound in a loop that runs": "r = L\nfor i in pl.range(2):\n    y = pl.create_tensor([8, 8], dtype=pl.FP32)\nreturn y",
}
WRONG = {
    "straight": ("r = L\nz = pl.add(y, 1.0)\nreturn r", 5),
    "returned": ("r = L\nreturn y", 5),
    "passed again": ("r = L\ns = L\nreturn s", 5),
    "second iteration": ("for i in pl.range(4):\n    r = L\nreturn x", 5),
    "while condition": ("while n > 2:\n    r = L\nreturn x", 5),
    "either branch": ("if n > 2:\n    r = L\nelse:\n    z = pl.add(y, 1.0)\nz = pl.add(y, 1.0)\nreturn x", 8),
    "behind a loop": ("for i in pl.parallel(4):\n    r = L\nreturn y", 6),
    "behind a break": (
        "while n > 2:\n    r = L\n    if n > 5:\n        break\n    y = pl.create_tensor([8, 8], dtype=pl.FP32)\nreturn y",
        9,
    ),
    "rebound in a loop that may not run": (
        "r = L\nfor i in pl.range(n):\n    y = pl.create_tensor([8, 8], dtype=pl.FP32)\nreturn y",
        7,
    ),
    "yielded": ("if n > 2:\n    a = L\n    r = pl.yield_(y)\nelse:\n    r = pl.yield_(x)\nreturn r", 6),
    "yielded through a result": (
        "if n > 2:\n    a = L\n    if n > 3:\n        q = pl.yield_(y)\n    else:\n        q = pl.yield_(x)\n    r = pl.yield_(q)\n"
        "else:\n    r = pl.yield_(x)\nreturn r",
        7,
    ),
    "carry that the body reads": (
        "a = L\nfor i, (c,) in pl.range(4, init_values=(y,)):\n    z = pl.add(c, 1.0)\n    r = pl.yield_(c)\nreturn a",
        5,
    ),
    "initial value that no iteration may replace": (
        "a = L\nfor i, (c,) in pl.range(n, init_values=(y,)):\n    b = pl.create_tensor([8, 8], dtype=pl.FP32)\n"
        "    r = pl.yield_(b)\nreturn r",
        5,
    ),
    "initial value that goes on at a break": (
        "a = L\nfor i, (c,) in pl.range(4, init_values=(y,)):\n    if n > 2:\n        break\n"
        "    b = pl.create_tensor([8, 8], dtype=pl.FP32)\n    r = pl.yield_(b)\nreturn r",
        5,
    ),
    "initial value": ("a = L\nfor i, (c,) in pl.range(4, init_values=(y,)):\n    r = pl.yield_(c)\nreturn r", 5),
    "dependencies": ("a = L\nwith pl.at(level=pl.Level.CORE_GROUP):\n    b = pl.add(y, 1.0)\nreturn a", 6),
}


def written(body: str, launch: str) -> ir.Program:
    """The program of a body in which ``r = L`` is a launch that writes y, ``r = L(v)`` one that writes v."""
    lines = []
    for line in body.split("\n"):
        if " = L" in line:
            target, _, rest = line.partition(" = L")
            pad = target[: len(target) - len(target.lstrip())]
            variable = rest.strip("()") or "y"
            line = pad + launch.format(r=target.strip(), v=variable)
        lines.append(line)
    return program("\n".join(lines), kind="Opaque")


def start(node: ir.Program) -> int:
    """The line in front of the body."""
    return main(node).body.stmts[0].span.begin_line - 1


@pytest.mark.parametrize("launch", LAUNCHES, ids=["call", "submit"])
@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_right(body, launch):
    holds(P, written(body, launch))


@pytest.mark.parametrize("launch", LAUNCHES, ids=["call", "submit"])
@pytest.mark.parametrize(("body", "line"), WRONG.values(), ids=WRONG)
def test_wrong(body, line, launch):
    node = written(body, launch)
    [text] = expect(P, node, 0, says="'y'")
    [found] = findings(P, node)
    assert text.startswith("variable 'y' was passed as InOut/Out at case.py:")
    assert "; read the post-call return value instead of the pre-call variable" in text
    assert "(argument 1 of 'k', Out)" in text
    assert found.span.begin_line == start(node) + line - 3


def test_the_reading_statement_is_reported_once():
    node = program("r = self.k(x, y)\nz = pl.add(y, y)\nw = pl.add(y, 1.0)\nreturn r", kind="Opaque")
    expect(P, node, 0, 0)


def test_a_second_argument_of_the_same_call():
    holds(P, program("r = self.k(y, y)\nreturn r", kind="Opaque"))


def test_the_next_iteration_is_said():
    node = program("for i in pl.range(4):\n    r = self.k(x, y)\nreturn x", kind="Opaque")
    expect(P, node, 0, says="is read in the next iteration")


def test_ops_kill_nothing():
    holds(P, program("pl.store(pl.load(x, [0, 0], [8, 8]), [0, 0], y)\nreturn y", kind="InCore"))
    holds(
        P,
        program(
            "with pl.at(level=pl.Level.CORE_GROUP):\n    pl.assemble(y, pl.add(x, 1.0), [0, 0])\nreturn y",
            kind="Opaque",
        ),
    )


@pytest.mark.parametrize("launch", ["r = self.k(x, pl.no_dep(y))", "r, t = pl.submit(self.k, x, pl.no_dep(y))"])
def test_no_dep_orders_nothing(launch):
    holds(P, program(f"for i in pl.range(4):\n    {launch}\nreturn y", kind="Opaque"))
    node = program(f"{launch}\nreturn y".replace("pl.no_dep(y)", "y"), kind="Opaque")
    expect(P, node, 0)
    [call] = [c for c in nodes(main(node), ir.Call, ir.Submit) if type(c.op) is ir.GlobalVar]
    directions = FrozenDict({"arg_directions": FrozenList([ir.ArgDirection.Input, ir.ArgDirection.NoDep])})
    holds(P, swapped(node, call, call.replace(attrs=directions)))


@pytest.mark.parametrize("launch", LAUNCHES, ids=["call", "submit"])
def test_what_the_next_iteration_sees(launch):
    """Both the read in front of the launch and the launch itself."""
    again = "for i in pl.range(2):\n    for j in pl.range(2):\n        z = pl.add(y, 1.0)\n    r = L\nreturn x"
    expect(P, written(again, launch), 0, 0)
    escaping = (
        "while n > 2:\n    z = pl.add(y, 1.0)\n    r = L\n    if n > 5:\n        {}\n"
        "    y = pl.create_tensor([8, 8], dtype=pl.FP32)\nreturn x"
    )
    expect(P, written(escaping.format("continue"), launch), 0, 0)
    holds(P, written(escaping.format("break"), launch))


def test_an_edge_of_the_compiler_names_a_launch():
    """A tensor in it stands for the launch that wrote it, whoever has written the tensor since."""
    node = program("r = self.k(x, y)\ns = self.k(x, r)\nu = self.k(x, s)\nreturn u", kind="Orchestration")
    launches = [c for c in nodes(main(node), ir.Call) if type(c.op) is ir.GlobalVar]
    edges = FrozenList([launches[1].args[1]])
    holds(P, swapped(node, launches[2], launches[2].replace(attrs=FrozenDict({"compiler_manual_dep_edges": edges}))))
    expect(P, swapped(node, launches[2], launches[2].replace(args=FrozenList([*edges, launches[2].args[1]]))), 0)


def test_submits_in_a_manual_scope_are_ordered_by_deps():
    body = "r, t = pl.submit(self.k, x, y)\nwith {}:\n    s, u = pl.submit(self.k, x, z, deps=[t])\nw = pl.add(z, 1.0)\nreturn r"
    body = "z = pl.create_tensor([8, 8], dtype=pl.FP32)\n" + body
    holds(P, program(body.format("pl.manual_scope()"), kind="Orchestration"))
    expect(P, program(body.format("pl.at(level=pl.Level.CHIP)"), kind="Opaque"), 0, says="'z'")
    call = "z = pl.create_tensor([8, 8], dtype=pl.FP32)\nwith pl.manual_scope():\n    s = self.k(x, z)\nw = pl.add(z, 1.0)\nreturn y"
    expect(P, program(call), 0, says="'z'")


def test_inline_calls_and_unknown_callees():
    node = program("self.k(x, y)\nreturn y", kind="Opaque")
    expect(P, node, 0)
    kernel = node.get_function("k")
    inline = kernel.replace(func_type=ir.FunctionType.Inline, level=None, role=None)
    holds(P, node.with_functions([inline, main(node)]))
    holds(P, node.with_functions([main(node)]))


def test_bodies_of_wrappers_are_not_looked_at():
    node = program("self.k(x, y)\nreturn y", kind="Opaque")
    for kind in (ir.FunctionType.Group, ir.FunctionType.Spmd):
        holds(P, with_main(node, func_type=kind))


def test_a_callee_that_returns_nothing():
    node = program("self.k(x, y)\nreturn y", kind="Opaque")
    silent = node.get_function("k").replace(return_types=ir.Function("f", [], [], SeqStmts([])).return_types)
    expect(P, node.with_functions([silent, main(node)]), 0, says="'k' returns nothing: let it return the parameter")


def test_trailing_contexts_of_a_submit():
    a, out, ctx = ir.Var("a", TENSOR), ir.Var("out", TENSOR), ir.Var("ctx", ir.CommCtxType())
    kernel = ir.Function("k", [a, (out, ir.ParamDirection.Out), ctx], [TENSOR], SeqStmts([]), HERE)
    x, c = ir.Var("x", TENSOR), ir.Var("c", ir.CommCtxType())
    launch = ir.Submit(ir.GlobalVar("k"), [x, c], [], ir.TupleType([TENSOR]), HERE)
    read = ir.EvalStmt(ir.Call(ir.Op("f"), [x, c], HERE), HERE)
    body = SeqStmts([ir.AssignStmt(ir.Var("r", launch.type), launch, HERE), read])
    function = ir.Function("main", [x, c], [], body, HERE)
    holds(P, ir.Program([kernel, function], "P"))


def test_nested_calls_and_submits():
    node = program("z = pl.add(self.k(x, y), 1.0)\nw = pl.add(y, 1.0)\nreturn x", kind="Opaque")
    expect(P, node, 0)
    [call] = [c for c in nodes(main(node), ir.Call) if type(c.op) is ir.GlobalVar]
    expect(P, swapped(node, call, submit_of(call)), 0)


# --- against all paths ------------------------------------------------------------------------------------------------


class Paths:
    """The same question by following every path: the sets of dead variables that may arrive at each statement."""

    def __init__(self, writes):
        self.writes = writes  # launch -> variables that it writes
        self.stale = set()

    def reads(self, stmt, expr, states):
        for node in [expr] if isinstance(expr, ir.Var) else expr.args:
            if any(node in dead for dead in states):
                self.stale.add((stmt, node))
        if isinstance(expr, ir.Call) and expr in self.writes:
            return {dead | set(self.writes[expr]) for dead in states}
        return states

    def run(self, stmt, states):
        """(falls through, broken out, continued)."""
        none = set()
        if not states:
            return none, none, none
        kind = type(stmt)
        if kind is SeqStmts:
            broken, continued = set(), set()
            for inner in stmt.stmts:
                states, b, c = self.run(inner, states)
                broken |= b
                continued |= c
            return states, broken, continued
        if kind is ir.AssignStmt:
            states = self.reads(stmt, stmt.value, states)
            return {dead - {stmt.var} for dead in states}, none, none
        if kind is ir.EvalStmt:
            return self.reads(stmt, stmt.expr, states), none, none
        if kind is ir.BreakStmt:
            return none, states, none
        if kind is ir.ContinueStmt:
            return none, none, states
        if kind is ir.ReturnStmt:
            for value in stmt.value:
                self.reads(stmt, value, states)
            return none, none, none
        if kind is ir.IfStmt:
            then = self.run(stmt.then_body, states)
            other = self.run(stmt.else_body, states) if stmt.else_body is not None else (states, none, none)
            return tuple(a | b for a, b in zip(then, other, strict=True))
        return self.loop(stmt, states), none, none

    def loop(self, stmt, states):
        heads, exits, seen = set(states), set(), set()
        ends = set()
        while heads - seen:
            seen |= heads
            through, broken, continued = self.run(stmt.body, set(heads))
            exits |= broken
            ends |= through | continued
            if stmt.kind is ir.ForKind.Parallel:
                break
            heads |= ends
        escapes = any(type(node) in (ir.BreakStmt, ir.ContinueStmt) for node in nodes_of(stmt.body))
        runs = stmt.stop is TWO and not escapes and self.run(stmt.body, {frozenset()})[0]
        return exits | ends | (set() if runs else heads)


def nodes_of(stmt):
    found = []
    stack = [stmt]
    while stack:
        item = stack.pop()
        found.append(item)
        if isinstance(item, ir.ForStmt):
            continue
        stack += [c for c in (getattr(item, n, None) for n in ("body", "then_body", "else_body")) if c is not None]
        stack += getattr(item, "stmts", [])
    return found


ZERO, ONE, TWO = (ir.ConstInt(i, ir.INDEX) for i in range(3))
N = ir.Var("n", INDEX)


class Generator:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.vars = [ir.Var(name, TENSOR) for name in "abc"]
        self.writes = {}

    def launch(self):
        var = self.random.choice(self.vars)
        call = ir.Call(ir.GlobalVar("k"), [self.random.choice(self.vars), var], TENSOR, HERE)
        self.writes[call] = [var]
        return call

    def stmt(self, depth, in_loop):
        pick = self.random.random()
        if depth and pick < 0.2:
            other = self.block(depth - 1, in_loop) if self.random.random() < 0.6 else None
            return ir.IfStmt(ir.ConstBool(True), self.block(depth - 1, in_loop), other, [], HERE)
        if depth and pick < 0.4:
            kind = self.random.choice([ir.ForKind.Sequential, ir.ForKind.Sequential, ir.ForKind.Parallel])
            stop = self.random.choice([TWO, N])
            return ir.ForStmt(ir.Var("i", INDEX), ZERO, stop, ONE, [], self.block(depth - 1, True), [], HERE, kind)
        if in_loop and pick < 0.48:
            return self.random.choice([ir.BreakStmt, ir.ContinueStmt])(HERE)
        if pick < 0.52:
            return ir.ReturnStmt([self.random.choice(self.vars)], HERE)
        value = self.launch() if pick < 0.75 else ir.Call(ir.Op("f"), [self.random.choice(self.vars)], TENSOR, HERE)
        if self.random.random() < 0.5:
            return ir.EvalStmt(value, HERE)
        return ir.AssignStmt(self.random.choice(self.vars), value, HERE)

    def block(self, depth, in_loop):
        return SeqStmts([self.stmt(depth, in_loop) for _ in range(self.random.randint(1, 4))])


def kernel():
    a, b = ir.Var("a", TENSOR), ir.Var("b", TENSOR)
    return ir.Function("k", [a, (b, ir.ParamDirection.InOut)], [TENSOR], SeqStmts([]), HERE)


def test_agrees_with_following_every_path():
    library = ir.Program([kernel()], "P")
    found = 0
    for seed in range(600):
        generator = Generator(seed)
        body = generator.block(3, False)
        reference = Paths(generator.writes)
        reference.run(body, {frozenset()})
        got = {(read.stmt, read.var) for read in stale_reads(body, library)}
        assert got == reference.stale, f"seed {seed}\n{body}"
        found += len(got)
    assert found > 300
