"""``pypto explain``: run a program once and tell why its tasks are ordered, and why not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from .._lazy import np
from ..diag.layout import Line
from ..diag.location import Location
from ..ir.compile_options import OptimizationStrategy
from ..ir.enums import ForKind
from ..ir.program import Program
from ..ir.stmt import ForStmt
from ..ir.tree import walk_stmts
from ..ops.values import ArrayValue
from ..passes import PassManager
from ..runtime.execute import Executable
from ..runtime.interpreter import Interpreter
from ..runtime.recording import run_record
from ..runtime.signature import entry_function, param_infos
from ..runtime.task_records import NOWHERE, RunRecord
from .explain_orders import Explanation, find_task
from .explain_report import LIMIT, Report, plain, print_rich
from .loading import Entry, UsageError


class Request(msgspec.Struct, frozen=True):
    """The options of the command. ``strategy``: that of the passes; None: the program as it is written."""

    tasks: tuple[str, str] | None
    seed: int
    strategy: OptimizationStrategy | None
    limit: int | None
    as_json: bool


def recorded(program: Program, args: Sequence[Any]) -> tuple[RunRecord, set[int]]:
    """The record of one run with all that was touched, and which buffers are arguments of the call.

    Races are no error here: they are among what is to be explained.
    """
    function = entry_function(program)
    bound = Executable(program, function, param_infos(function)).bind(args, {})
    interpreter = Interpreter(program, accesses=True)
    interpreter.run(function, bound.values)
    graph = interpreter.graph
    external = {graph.info_of(value.buffer).number for value in bound.values if isinstance(value, ArrayValue)}
    return run_record(graph), external


def explain_entries(entries: Sequence[Entry], request: Request, echo: Callable[[str], None]) -> None:
    """Run the entries and print what was found."""
    if request.tasks is not None and len(entries) > 1:
        names = ", ".join(entry.name for entry in entries)
        raise UsageError(f"--tasks is about one program, and the file has several: choose with --entry: {names}")
    found: list[Any] = []
    for number, entry in enumerate(entries):
        report = _report(entry, request)
        pair = None if request.tasks is None else _pair(entry.name, report.record, request.tasks)
        if request.as_json:
            found.append(report.as_dict(request.limit, pair))
            continue
        lines: list[Line] = [[]] if number else []
        if pair is not None:
            lines += report.pair(*pair)
        else:
            lines += [*report.summary(), *report.orders(LIMIT if request.limit is None else request.limit)]
        if sys.stdout.isatty():
            print_rich(lines)
        else:
            echo(plain(lines))
    if request.as_json:
        echo(msgspec.json.format(msgspec.json.encode(found), indent=1).decode())


def _report(entry: Entry, request: Request) -> Report:
    args = entry.arguments(np.random.default_rng(request.seed))
    program = entry.program(args)
    title = f"{entry.name} ({entry.kind})"
    if request.strategy is not None:
        manager = PassManager(request.strategy)
        program = manager.run_passes(program)
        title += f" behind {len(manager.passes)} passes"
    record, external = recorded(program, args)
    return Report(title, Explanation(record), external, parallel_loops(program))


def parallel_loops(program: Program) -> list[Location]:
    """Where the loops of a program are whose iterations are said to be independent."""
    return [
        Location.of(stmt.span) or NOWHERE
        for function in program.functions.values()
        for stmt in walk_stmts(function.body)
        if isinstance(stmt, ForStmt) and stmt.kind is ForKind.Parallel
    ]


def _pair(program: str, record: RunRecord, wanted: tuple[str, str]) -> tuple[int, int]:
    numbers: list[int] = []
    for each in wanted:
        number = find_task(record, each)
        if isinstance(number, str):
            raise UsageError(f"{program}: {number}")
        numbers.append(number)
    if numbers[0] == numbers[1]:
        raise UsageError(f"{program}: --tasks needs two tasks, and both are {record.tasks[numbers[0]]}")
    return numbers[0], numbers[1]


__all__ = ["Request", "explain_entries", "recorded"]
