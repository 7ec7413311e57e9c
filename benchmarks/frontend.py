"""Cost of the front end and of the basic IR walks, on generated programs of 100, 1,000 and 10,000 statements.

    python benchmarks/frontend.py [--quick] [--profile]

A statement is one Python statement of the program's body; a node is one IR statement or expression, counted as often
as it occurs. Times are the best of several runs, for one thing each: what a user waits for, without the noise of the
machine. `--profile` prints where parsing the 1,000-statement program spends its time.
"""

from __future__ import annotations

import argparse
import ast
import cProfile
import gc
import io
import pstats
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

# What is measured -> the goal at every size, in its own unit (None: no goal set).
GOALS: dict[str, float | None] = {
    "parse, us/statement": 60,
    "parse / ast.parse": 4,
    "print, us/statement": 5,
    "identity mutator, us/node": 1,
    "whole-tree mutator, us/node": None,
    "structural_equal, us/node": None,
    "serialize, us/node": None,
}
IMPORT_GOAL_MS = 150

_HEAD = """\
@pl.program
class Generated:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        x: pl.Tensor[[256, 128], pl.FP32],
        row: pl.Scalar[pl.INDEX],
        y: pl.Out[pl.Tensor[[256, 128], pl.FP32]],
    ) -> pl.Tensor[[256, 128], pl.FP32]:
        total: pl.Tile[[16, 128], pl.FP32] = pl.load(x, [0, 0], [16, 128])
"""
_HEAD_STATEMENTS = 1

# Ten statements of the kinds that kernels are made of: transfers, arithmetic on tiles and scalars, a loop, a branch.
_BLOCK = """\
        a_{i} = pl.load(x, [row, 0], [16, 128])
        b_{i} = pl.mul(a_{i}, 0.5)
        c_{i} = pl.add(pl.exp(b_{i}), a_{i})
        d_{i}: pl.Tile[[16, 128], pl.FP32] = pl.sub(c_{i}, total)
        n_{i} = row * 2 + {i} % 7
        for k_{i} in pl.range(0, 4, 1):
            total = pl.add(total, d_{i})
            s_{i} = k_{i} + n_{i}
        if n_{i} > {i}:
            y = pl.store(d_{i}, [n_{i}, 0], y)
"""
_BLOCK_STATEMENTS = 10
_TAIL = "        return y\n"
_TAIL_STATEMENTS = 1


def generate(statements: int) -> str:
    """DSL text of a program of about that many statements; the names of different blocks differ."""
    blocks = max(1, (statements - _HEAD_STATEMENTS - _TAIL_STATEMENTS) // _BLOCK_STATEMENTS)
    return _HEAD + "".join(_BLOCK.format(i=i) for i in range(blocks)) + _TAIL


def count_statements(text: str) -> int:
    """Python statements inside the functions of a program text."""
    tree = ast.parse(text)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return sum(isinstance(node, ast.stmt) for function in functions for node in ast.walk(function)) - len(functions)


def count_nodes(program: Any) -> int:
    """Statements and expressions of a program, each as often as it occurs."""
    from pypto.ir.expr import Expr
    from pypto.ir.stmt import Stmt

    count = 0
    stack: list[Any] = [function.body for function in program.functions.values()]
    while stack:
        node = stack.pop()
        count += 1
        for field in type(node).node_fields:
            value = getattr(node, field.name)
            if isinstance(value, (Expr, Stmt)):
                stack.append(value)
            elif isinstance(value, list):
                stack.extend(item for item in value if isinstance(item, (Expr, Stmt)))
    return count


def best(function: Callable[[], Any], repeats: int) -> float:
    """Seconds of the fastest call in several series of 20 ms or more.

    Garbage is collected before a series, not in it; all but its first call find caches as a program in use has them.
    """
    times = []
    for _ in range(repeats):
        gc.collect()
        gc.disable()
        try:
            begin = end = time.perf_counter()
            while end == begin or end - begin < 0.02:
                start = time.perf_counter()
                function()
                end = time.perf_counter()
                times.append(end - start)
        finally:
            gc.enable()
    return min(times)


def start_times(runs: int) -> tuple[float, float]:
    """Milliseconds in a fresh process: the import, and the first parse; medians."""
    code = f"""
import time
begin = time.perf_counter()
import pypto.language as pl
imported = time.perf_counter()
pl.parse({generate(12)!r})
print(imported - begin, time.perf_counter() - imported)
"""
    times = []
    for _ in range(runs):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        times.append([1e3 * float(part) for part in done.stdout.split()])
    imports, parses = zip(*times, strict=True)
    return statistics.median(imports), statistics.median(parses)


def measure(statements: int, quick: bool) -> dict[str, float]:
    """All figures of one program size."""
    import pypto.language as pl
    from pypto import ir

    class WholeTree(ir.IRMutator):
        """Looks at every expression and changes nothing."""

        def visit_var(self, op: Any) -> Any:
            return super().visit_var(op)

    text = generate(statements)
    size = count_statements(text)
    repeats = 3 if quick or statements >= 10_000 else 7
    program = pl.parse(text)
    twin = pl.parse(text)
    nodes = count_nodes(program)

    parsing = best(lambda: pl.parse(text), repeats)
    syntax = best(lambda: ast.parse(text), repeats)
    us_per_node = 1e6 / nodes
    return {
        "statements": size,
        "nodes": nodes,
        "parse, us/statement": 1e6 * parsing / size,
        "parse / ast.parse": parsing / syntax,
        "print, us/statement": 1e6 * best(lambda: ir.python_print(program, format=False), repeats) / size,
        "identity mutator, us/node": us_per_node * best(lambda: ir.IRMutator().visit_program(program), repeats),
        "whole-tree mutator, us/node": us_per_node * best(lambda: WholeTree().visit_program(program), repeats),
        "structural_equal, us/node": us_per_node * best(lambda: ir.structural_equal(program, twin), repeats),
        "serialize, us/node": us_per_node * best(lambda: ir.serialize(program), repeats),
    }


def report(sizes: list[int], rows: list[dict[str, float]], start: tuple[float, float]) -> str:
    """The table: one line a figure, one column a size, the goal and the growth of the total cost."""
    import_ms, first_ms = start
    mark = "" if import_ms < IMPORT_GOAL_MS else "  MISSED"
    lines = [
        f"import pypto.language: {import_ms:.0f} ms (goal {IMPORT_GOAL_MS}){mark}",
        f"first parse, which loads parser and operators: {first_ms:.0f} ms",
        "",
    ]
    head = f"{'':<30}" + "".join(f"{size:>10,}" for size in sizes) + f"{'goal':>8}  growth of the total"
    lines += [head, "-" * len(head)]
    for name in ("statements", "nodes"):
        lines.append(f"{name:<30}" + "".join(f"{row[name]:>10,.0f}" for row in rows))
    for name, goal in GOALS.items():
        per = "nodes" if name.endswith("/node") else "statements"
        growth = ""
        if "/ ast.parse" not in name:
            totals = [row[name] * row[per] for row in rows]
            growth = ", ".join(f"x{b / a:.1f}" for a, b in zip(totals, totals[1:], strict=False))
        missed = goal is not None and any(row[name] > goal for row in rows)
        lines.append(
            f"{name:<30}"
            + "".join(f"{row[name]:>10.2f}" for row in rows)
            + (f"{goal:>8g}" if goal is not None else f"{'':>8}")
            + f"  {growth}"
            + ("  MISSED" if missed else "")
        )
    return "\n".join(lines)


def profile(statements: int) -> str:
    """The functions that parsing spends most of its time in."""
    import pypto.language as pl

    text = generate(statements)
    pl.parse(text)
    profiler = cProfile.Profile()
    profiler.enable()
    pl.parse(text)
    profiler.disable()
    out = io.StringIO()
    pstats.Stats(profiler, stream=out).strip_dirs().sort_stats("tottime").print_stats(30)
    return out.getvalue()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="100 and 1,000 statements only, fewer repetitions")
    parser.add_argument("--profile", action="store_true", help="profile the parser as well")
    options = parser.parse_args()
    sizes = [100, 1_000] if options.quick else [100, 1_000, 10_000]
    rows = [measure(size, options.quick) for size in sizes]
    print(report(sizes, rows, start_times(3 if options.quick else 5)))
    if options.profile:
        print(profile(1_000))
    return 0


if __name__ == "__main__":
    sys.exit(main())
