"""Cost of compiling: parsing, each pass, the verification behind it, and printing the orchestrations.

    python benchmarks/compile.py [--quick] [--family NAME] [--programs DIR] [--profile NAME]

Two tables. The first compiles generated programs of some families at 10, 100 and 1,000 units (a unit is one loop, call,
branch, kernel or kernel statement, see FAMILIES); a cell is microseconds a statement, for the pass with the
verification behind it, and the last column the growth of the total from 100 to 1,000 units. The second compiles the
programs of a folder (`../shared/programs` if it is there, else `examples`). A statement is one Python statement of a
function body. Times are the best of several runs.
"""

from __future__ import annotations

import argparse
import ast
import cProfile
import gc
import importlib.util
import io
import pstats
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

GOAL_US = 10.0  # a pass with the verification behind it, a statement
GROWTH_GOAL = 12.0  # from 100 to 1,000 units

_HEAD = """\
@pl.program
class Generated:
"""
_KERNEL = """\
    @pl.function(type=pl.FunctionType.InCore)
    def kernel{i}(
        self, x: pl.Tensor[[256, 64], pl.FP32], row: pl.Scalar[pl.INDEX], y: pl.InOut[pl.Tensor[[256, 64], pl.FP32]]
    ) -> pl.Tensor[[256, 64], pl.FP32]:
        t = pl.load(x, [row, 0], [16, 64])
        u = pl.add(t, {i}.0)
        y = pl.store(u, [row, 0], y)
        return y
"""
_MAIN = """\
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[256, 64], pl.FP32], n: pl.Scalar[pl.INDEX], y: pl.InOut[pl.Tensor[[256, 64], pl.FP32]]
    ) -> pl.Tensor[[256, 64], pl.FP32]:
"""
_OPAQUE = _MAIN.replace("(type=pl.FunctionType.Orchestration)", "")


def sequential_loops(n: int) -> str:
    """Loops one after another, each with a kernel scope that writes the same tensor."""
    body = "".join(
        f"        for i{i} in pl.range(4):\n"
        "            with pl.at(level=pl.Level.CORE_GROUP):\n"
        f"                t{i} = pl.load(x, [i{i} * 16, 0], [16, 64])\n"
        f"                y = pl.store(pl.add(t{i}, {i}.0), [i{i} * 16, 0], y)\n"
        for i in range(n)
    )
    return _HEAD + _OPAQUE + body + "        return y\n"


def loops_with_calls(n: int) -> str:
    """Loops one after another, each with a call of one kernel."""
    body = "".join(
        f"        for i{i} in pl.range(4):\n            y = self.kernel0(x, i{i} * 16, y)\n" for i in range(n)
    )
    return _HEAD + _KERNEL.format(i=0) + _MAIN + body + "        return y\n"


def calls(n: int) -> str:
    """Calls of one kernel, one after another."""
    body = "".join(f"        y = self.kernel0(x, {i} % 16 * 16, y)\n" for i in range(n))
    return _HEAD + _KERNEL.format(i=0) + _MAIN + body + "        return y\n"


def nested_ifs(n: int) -> str:
    """Branches four deep, each innermost branch with a call."""
    block = (
        "        if n > {i}:\n"
        "            if n > {i} + 1:\n"
        "                if n > {i} + 2:\n"
        "                    if n > {i} + 3:\n"
        "                        y = self.kernel0(x, n, y)\n"
        "                else:\n"
        "                    y = self.kernel0(x, n + {i}, y)\n"
    )
    body = "".join(block.format(i=i) for i in range(n))
    return _HEAD + _KERNEL.format(i=0) + _MAIN + body + "        return y\n"


def many_kernels(n: int) -> str:
    """Kernels of their own, each called once."""
    kernels = "".join(_KERNEL.format(i=i) for i in range(n))
    body = "".join(f"        y = self.kernel{i}(x, n, y)\n" for i in range(n))
    return _HEAD + kernels + _MAIN + body + "        return y\n"


def long_kernel(n: int) -> str:
    """One kernel with a long body: arithmetic on tiles and scalars, some loops."""
    head = _KERNEL.format(i=0).partition("        u = ")[0]
    block = (
        "        a{i} = pl.add(pl.mul(t, {i}.5), t)\n"
        "        s{i} = row * 2 + {i} % 7\n"
        "        for k{i} in pl.range(4):\n"
        "            t = pl.add(t, a{i})\n"
        "        if s{i} > {i}:\n"
        "            y = pl.store(t, [s{i}, 0], y)\n"
    )
    return _HEAD + head + "".join(block.format(i=i) for i in range(n)) + "        return y\n"


def deep_loops(n: int) -> str:
    """Loops nested 16 deep, as many nests as it takes."""
    lines = []
    for i in range(max(1, n // 16)):
        for depth in range(16):
            lines.append(f"{'    ' * (2 + depth)}for d{i}_{depth} in pl.range(2):\n")
        lines.append(f"{'    ' * 18}y = self.kernel0(x, d{i}_0 + d{i}_15, y)\n")
    return _HEAD + _KERNEL.format(i=0) + _MAIN + "".join(lines) + "        return y\n"


FAMILIES: dict[str, Callable[[int], str]] = {
    "sequential loops": sequential_loops,
    "loops with a call": loops_with_calls,
    "calls": calls,
    "nested ifs": nested_ifs,
    "many kernels": many_kernels,
    "long kernel": long_kernel,
    "loops 16 deep": deep_loops,
}


def count_statements(text: str) -> int:
    """Python statements inside the functions of a program text."""
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    return sum(isinstance(node, ast.stmt) for function in functions for node in ast.walk(function)) - len(functions)


def statements_of(program: Any) -> int:
    """IR statements of a program, without sequences and yields: what a parsed text has about as many lines of."""
    from pypto import ir
    from pypto.ir.traversal import walk

    skipped = (ir.SeqStmts, ir.YieldStmt)
    return sum(isinstance(n, ir.Stmt) and not isinstance(n, skipped) for n in walk(program))


def best(function: Callable[[], Any], repeats: int) -> float:
    """Seconds of the fastest of some calls; garbage is collected before, not in them."""
    times = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(repeats):
            begin = time.process_time()
            function()
            times.append(time.process_time() - begin)
    finally:
        gc.enable()
    return min(times)


class Costs(dict[str, tuple[float, float]]):
    """Seconds by stage, in order: of the stage itself and of the verification behind it."""

    def total(self) -> float:
        return sum(run + verify for run, verify in self.values())


def measure_passes(program: Any, repeats: int) -> Costs:
    """Time each pass of the default strategy, and verify behind it what a pipeline verifies."""
    from pypto import ir
    from pypto.passes import get_structural_properties

    found = Costs()
    expected = get_structural_properties()
    for each in ir.PassManager().passes:
        before, known = program, expected
        expected = expected.difference(each.get_invalidated_properties()).union_with(each.get_produced_properties())
        expected = expected.union_with(get_structural_properties())
        runs = [measure_pass(each, before, known, expected) for _ in range(repeats)]
        program = runs[-1][2]
        name = each.get_name()
        name = name if name not in found else f"{name} (second)"
        found[name] = (min(run[0] for run in runs), min(run[1] for run in runs))
    runs = [measure_codegen(program) for _ in range(repeats)]
    found["orchestration code"] = (min(run[0] for run in runs), min(run[1] for run in runs))
    return found


def measure_codegen(program: Any) -> tuple[float, float]:
    """Seconds of printing the orchestrations of a program, and of what is checked before."""
    from pypto.codegen.host import for_host
    from pypto.codegen.orchestration import generate_orchestration
    from pypto.runtime.signature import orchestrations

    placed = for_host(program)
    checked = 0.0
    gc.collect()
    gc.disable()
    try:
        begin = time.process_time()
        for function in orchestrations(placed):
            generate_orchestration(placed, function)
        first = time.process_time() - begin
        # What was checked once is known: the second time costs the printing alone.
        begin = time.process_time()
        for function in orchestrations(placed):
            generate_orchestration(placed, function)
        printed = min(first, time.process_time() - begin)
        checked = first - printed
    finally:
        gc.enable()
    return printed, checked


def measure_pass(each: Any, before: Any, known: Any, expected: Any) -> tuple[float, float, Any]:
    """Seconds of one run of a pass, of the verification of its result, and the result.

    Every run makes new functions, so that nothing that is remembered of them helps.
    """
    from pypto.verify.facts import Facts

    facts = Facts()
    facts.establish(known, before)
    gc.collect()
    gc.disable()
    try:
        before = type(before)(list(before.functions.values()), before.name, before.span)  # nothing is known of it
        begin = time.process_time()
        after = each.run(before)
        ran = time.process_time()
        facts.establish(expected, after)
        return ran - begin, time.process_time() - ran, after
    finally:
        gc.enable()


def measure_text(text: str, repeats: int) -> tuple[int, float, Costs]:
    """Statements, seconds of parsing, and the costs of the passes."""
    import pypto.language as pl

    program = pl.parse(text)
    return count_statements(text), best(lambda: pl.parse(text), repeats), measure_passes(program, repeats)


def family_table(name: str, sizes: list[int], repeats: int) -> tuple[list[str], list[str]]:
    """The lines of one family, and its goals that were missed."""
    rows = {
        size: measure_text(FAMILIES[name](size), repeats if size < 1_000 else max(2, repeats // 2)) for size in sizes
    }
    statements = {size: row[0] for size, row in rows.items()}
    head = f"{name:<34}" + "".join(f"{f'{size:,} units':>16}" for size in sizes) + f"{'growth':>10}"
    lines = [head, "-" * len(head), f"{'statements':<34}" + "".join(f"{statements[s]:>16,}" for s in sizes)]
    missed = []

    def line(label: str, seconds: dict[int, tuple[float, float]], goal: float | None) -> None:
        cells, marks = "", ""
        for size in sizes:
            run, verify = (1e6 * part / statements[size] for part in seconds[size])
            cells += f"{run:>8.2f} +{verify:>6.2f}" if goal is not None else f"{run:>16.2f}"
            if goal is not None and size >= 100 and run + verify > goal:
                marks = f"  over {goal:g}"
        growth = ""
        if 100 in seconds and 1_000 in seconds:
            factor = sum(seconds[1_000]) / sum(seconds[100]) * 10 * statements[100] / statements[1_000]
            growth = f"{factor:>9.1f}x"
            # Below 50 us in total, the growth is of the clock.
            if factor > GROWTH_GOAL and sum(seconds[1_000]) > 1e-3:
                marks += f"  grows over {GROWTH_GOAL:g}x"
        if marks:
            missed.append(f"{name}, {label}:{marks}")
        lines.append(f"{label:<34}{cells}{growth:>10}{marks}")

    line("parse", {size: (row[1], 0.0) for size, row in rows.items()}, None)
    for label in rows[sizes[0]][2]:
        line(label, {size: row[2][label] for size, row in rows.items()}, GOAL_US)
    line("passes, verification, code", {size: (row[2].total(), 0.0) for size, row in rows.items()}, None)
    return [*lines, ""], missed


def programs_of(folder: Path) -> list[tuple[str, Any]]:
    """The programs of a folder's files, by name."""
    from pypto import ir
    from pypto.tools.loading import entries_of

    found = []
    for path in sorted(folder.glob("*.py")):
        if path.name == "run_all.py":
            continue
        spec = importlib.util.spec_from_file_location(f"compiled_{path.stem}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        for entry in entries_of(module):
            import numpy as np

            args = entry.arguments(np.random.default_rng(0)) if entry.has_arguments else None
            program = entry.program(args)
            if isinstance(program, ir.Program):
                found.append((f"{path.stem}:{entry.name}", program))
    return found


def programs_table(folder: Path, repeats: int) -> list[str]:
    """One line for each program of a folder."""
    head = (
        f"{'program':<44}{'statements':>11}{'passes, us/st':>15}{'verify, us/st':>15}{'in all, ms':>12}  slowest pass"
    )
    lines = [head, "-" * len(head)]
    for name, program in programs_of(folder):
        costs = measure_passes(program, repeats)
        count = statements_of(program)
        run, verify = (sum(pair[k] for pair in costs.values()) for k in (0, 1))
        slowest = max(costs, key=lambda key: sum(costs[key]))
        lines.append(
            f"{name:<44}{count:>11}{1e6 * run / count:>15.1f}{1e6 * verify / count:>15.1f}{1e3 * (run + verify):>12.2f}"
            f"  {slowest} {1e6 * sum(costs[slowest]) / count:.1f} us/st"
        )
    return lines


def profile(family: str, units: int) -> str:
    """Where compiling a family spends its time."""
    import pypto.language as pl
    from pypto import ir

    program = pl.parse(FAMILIES[family](units))
    manager = ir.PassManager()
    manager.run_passes(program)
    profiler = cProfile.Profile()
    profiler.enable()
    manager.run_passes(program)
    profiler.disable()
    out = io.StringIO()
    pstats.Stats(profiler, stream=out).sort_stats("tottime").print_stats(45)
    return out.getvalue()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, no 1,000 units")
    parser.add_argument("--family", choices=list(FAMILIES), help="only this family")
    parser.add_argument("--programs", type=Path, help="the folder of the second table")
    parser.add_argument("--profile", choices=list(FAMILIES), help="profile compiling this family instead")
    options = parser.parse_args()
    sys.setrecursionlimit(20_000)
    if options.profile:
        print(profile(options.profile, 1_000))
        return 0
    sizes = [10, 100] if options.quick else [10, 100, 1_000]
    repeats = 3 if options.quick else 5
    print("microseconds a statement, the pass + the verification behind it\n")
    missed = []
    for name in [options.family] if options.family else list(FAMILIES):
        lines, over = family_table(name, sizes, repeats)
        missed += over
        print("\n".join(lines), flush=True)
    if not options.family:
        root = Path(__file__).resolve().parent.parent
        shared = root.parent / "shared" / "programs"
        folder = options.programs or (shared if shared.is_dir() else root / "examples")
        print("\n".join(programs_table(folder, repeats)))
    print(f"\n{len(missed)} goals missed" + "".join(f"\n  {each}" for each in missed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
