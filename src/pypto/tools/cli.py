"""The command ``pypto``: run, print and check program files, explain orders of tasks and error codes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from .._lazy import np
from ..diag.codes import explain
from ..diag.errors import InternalError
from ..diag.parser_errors import ParserError
from ..ir.printer import python_print
from ..ir.program import Program
from ..runtime.checking import assert_close
from ..runtime.run_config import RunConfig
from .debugger import Debugger, DebuggerQuit, break_lines
from .loading import (
    Entry,
    UsageError,
    choose,
    collecting,
    entries_of,
    helpers_of,
    load_as_far_as_possible,
    load_module,
)
from .rendering import render_error

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__, pretty_exceptions_enable=False)

File = Annotated[str, typer.Argument(metavar="FILE", help="A Python file that defines programs.")]
EntryName = Annotated[str | None, typer.Option("--entry", metavar="NAME", help="Only this program or function.")]

FAILED, BAD_USAGE = 1, 2


def _guarded(path: str, action: Callable[[], int]) -> None:
    """Do it, show an error as the user's own, and leave with the exit status."""
    try:
        status = action()
    except UsageError as error:
        typer.echo(f"Error: {error}", err=True)
        status = BAD_USAGE
    except DebuggerQuit:
        typer.echo("quit")
        status = 0
    except InternalError:
        raise  # a bug of PyPTO: its traceback is what is needed
    except Exception as error:
        typer.echo(render_error(error, user_file=path), err=True)
        status = FAILED
    raise typer.Exit(status)


# --- run --------------------------------------------------------------------------------------------------------------


@app.command()
def run(
    file: File,
    entry: EntryName = None,
    break_at: Annotated[
        list[int] | None, typer.Option("--break", metavar="LINE", help="Stop before this line; may be repeated.")
    ] = None,
    schedule: Annotated[str, typer.Option(help="default, or random: tasks in a random legal order.")] = "default",
    seed: Annotated[int, typer.Option(help="Seed of the arguments and of the schedule.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, help="Run with this many seeds in a row.")] = 1,
    check_races: Annotated[
        bool, typer.Option("--check-races", help="Fail if tasks touch the same bytes and nothing orders them.")
    ] = False,
) -> None:
    """Compile and run the programs of a file and compare with its expected results."""

    def action() -> int:
        if schedule not in ("default", "random"):
            raise UsageError(f"--schedule must be 'default' or 'random', got '{schedule}'")
        module = load_module(file)
        failed = 0
        for each in choose(entries_of(module), entry, file):
            for number in range(seed, seed + seeds):
                config = RunConfig(schedule=schedule, seed=number, check_races=check_races)
                failed += not _run_entry(each, file, config, break_at or [])
        return FAILED if failed else 0

    _guarded(file, action)


@app.command()
def bench(
    file: File,
    entry: EntryName = None,
    rounds: Annotated[int, typer.Option(min=1, help="How many warm calls are measured.")] = 20,
    workers: Annotated[int | None, typer.Option(min=1, help="Threads; one for each core by default.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the arguments.")] = 0,
    trace: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write deps.json and trace.json (for Perfetto) of one run.")
    ] = None,
) -> None:
    """Measure the programs of a file: compiling, calls, and the time of each kernel."""

    def action() -> int:
        from .bench import measure, report, write_trace

        for each in choose(entries_of(load_module(file)), entry, file):
            args = each.arguments(np.random.default_rng(seed))
            found = measure(each, args, RunConfig(workers=workers), rounds)
            typer.echo("\n".join(report(each.name, each.kind, found)))
            if trace is not None:
                folder = trace / each.name
                write_trace(folder, found)
                typer.echo(f"  trace: {folder}")
        return 0

    _guarded(file, action)


def _run_entry(entry: Entry, path: str, config: RunConfig, breaks: list[int]) -> bool:
    """Run once and say how it went; whether the results are as expected (or nothing is)."""
    args = entry.arguments(np.random.default_rng(config.seed))
    wanted = entry.wanted(args)
    begin = time.perf_counter()
    compiled = entry.compile(args, config)
    compile_ms = 1e3 * (time.perf_counter() - begin)
    program: Program = compiled.executed_program
    functions = ", ".join(f"{f.name} ({f.func_type.name})" for f in program.functions.values())
    typer.echo(f"{entry.name} ({entry.kind}): compiled {functions} in {compile_ms:.1f} ms")
    hook = _debugger(program, path, breaks) if breaks else None
    outcome = compiled.execute(args, {}, config, on_statement=hook)
    elapsed = (outcome.timing.end - outcome.timing.begin) / 1e6
    tasks = outcome.timing.tasks
    order = f", random order {config.seed}" if config.schedule == "random" else ""
    typer.echo(
        f"  seed {config.seed}: {tasks} task{'' if tasks == 1 else 's'} by the {compiled.executor} "
        f"in {elapsed:.1f} ms{order}"
    )
    if wanted is None:
        typer.echo("  nothing to compare with: the file has no expected(*args)")
        return True
    return _compare(entry, compiled.param_names, args, wanted)


def _debugger(program: Program, path: str, breaks: list[int]) -> Debugger:
    found = break_lines([program], path, breaks)
    for wanted, line in found.items():
        if line is None:
            raise UsageError(f"--break {wanted}: no statement of '{program.name}' begins at or behind that line")
        if line != wanted:
            typer.echo(f"  no statement begins on line {wanted}: stopping at line {line}")
    return Debugger(path, {line for line in found.values() if line is not None})


def _compare(entry: Entry, names: list[str], args: list[Any], wanted: dict[int, Any]) -> bool:
    module = entry.module
    tolerance = (getattr(module, "RTOL", 1e-5), getattr(module, "ATOL", 1e-5))
    good = True
    for index, value in wanted.items():
        name = names[index] if index < len(names) else f"argument {index}"
        want = np.asarray(value)
        try:
            assert_close(name, np.asarray(args[index]), want, tolerance)
        except AssertionError as error:
            good = False
            typer.echo("  " + str(error).replace("\n", "\n  "))
        else:
            typer.echo(f"  {name}: matches (rtol={tolerance[0]:g}, atol={tolerance[1]:g})")
    return good


# --- print ------------------------------------------------------------------------------------------------------------


@app.command("print")
def print_program(
    file: File,
    entry: EntryName = None,
    concise: Annotated[bool, typer.Option("--concise", help="Without types that follow from their values.")] = False,
) -> None:
    """Print the programs of a file as the compiler reads them."""

    def action() -> int:
        module = load_module(file)
        for each in choose(entries_of(module), entry, file):
            args = each.arguments(np.random.default_rng(0)) if each.has_arguments else None
            text = python_print(each.program(args), "pl", concise=concise)
            typer.echo(text.rstrip("\n"))
        return 0

    _guarded(file, action)


# --- lower -----------------------------------------------------------------------------------------------------------


@app.command()
def lower(
    file: File,
    entry: EntryName = None,
    strategy: Annotated[str, typer.Option(help="Default or DebugTileOptimization.")] = "Default",
    limit: Annotated[int | None, typer.Option(min=0, metavar="N", help="Run the first N passes only.")] = None,
    dump: Annotated[
        str | None, typer.Option(metavar="DIR", help="Write the program before and after each pass.")
    ] = None,
    level: Annotated[str, typer.Option(help="Verification behind each pass: none, basic or roundtrip.")] = "basic",
    timing: Annotated[bool, typer.Option("--time", help="Print the time of each pass, not the program.")] = False,
    compare: Annotated[
        bool, typer.Option("--check", help="Run the program behind each pass and name the first that changes a value.")
    ] = False,
    cpp: Annotated[bool, typer.Option("--cpp", help="Print the C++ of the orchestrations, not the program.")] = False,
) -> None:
    """Run the passes over the programs of a file and print what they give."""

    def action() -> int:
        from .lowering import Request, lower_entry

        request = Request(strategy, limit, dump, level, timing, compare, cpp)
        module = load_module(file)
        good = [lower_entry(each, request, typer.echo) for each in choose(entries_of(module), entry, file)]
        return 0 if all(good) else FAILED

    _guarded(file, action)


# --- check ------------------------------------------------------------------------------------------------------------


@app.command()
def check(file: File) -> None:
    """Read everything in a file and report all errors."""

    def action() -> int:
        errors: list[ParserError] = []
        with collecting(errors):
            module, failure = load_as_far_as_possible(file)
        if failure is not None and not errors:
            raise failure
        # Behind a definition that was refused, what uses it may fail as well: such a failure is no news.
        checked, skipped = _check_jit(module, errors)
        for each in errors:
            typer.echo(render_error(each) + "\n", err=True)
        total = sum(len(list(e.all_errors())) for e in errors)
        if total:
            typer.echo(f"{file}: {total} error{'' if total == 1 else 's'}", err=True)
            return FAILED
        known = [e for e in entries_of(module) if e.kind != "@pl.jit"]
        typer.echo(f"{file}: no errors in {len(known) + checked} definition{'' if len(known) + checked == 1 else 's'}")
        for name, reason in skipped:
            typer.echo(f"  not checked: {name} ({reason})")
        return 0

    _guarded(file, action)


def _check_jit(module: Any, errors: list[ParserError]) -> tuple[int, list[tuple[str, str]]]:
    """Specialise the jit entries of a file: their source is read only then. Checked ones, and those that can't be."""
    checked = 0
    skipped: list[tuple[str, str]] = []
    reached: set[str] = set()
    for each in entries_of(module):
        if each.kind != "@pl.jit":
            continue
        try:
            args = each.arguments(np.random.default_rng(0)) if each.has_arguments else None
            reached |= {f.name for f in each.program(args).functions.values()}
        except ParserError as error:
            errors.append(error)
        except (UsageError, TypeError) as error:
            skipped.append((each.name, str(error)))
            continue
        checked += 1
    for helper in helpers_of(module):
        if helper.__name__ not in reached and not errors:
            skipped.append((helper.__name__, "a helper that no checked entry calls"))
    return checked, skipped


# --- explain ----------------------------------------------------------------------------------------------------------


@app.command("explain")
def explain_orders(
    file: File,
    entry: EntryName = None,
    tasks: Annotated[
        tuple[str, str] | None,
        typer.Option("--tasks", metavar="A B", help="Only these two tasks: 3, or softmax#3, or a name that is unique."),
    ] = None,
    after_passes: Annotated[
        bool, typer.Option("--after-passes", help="The program behind the passes, not as it is written.")
    ] = False,
    strategy: Annotated[str, typer.Option(help="Of the passes: Default or DebugTileOptimization.")] = "Default",
    seed: Annotated[int, typer.Option(help="Seed of the arguments.")] = 0,
    limit: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Tell this many orders: 20, and all with --json.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For programs to read.")] = False,
) -> None:
    """Run a program and tell why its tasks are ordered, which orders no byte needs, and what would remove them."""

    def action() -> int:
        from .explain import Request, explain_entries
        from .lowering import strategy_named

        chosen = strategy_named(strategy) if after_passes else None
        entries = choose(entries_of(load_module(file)), entry, file)
        explain_entries(entries, Request(tasks, seed, chosen, limit, as_json), typer.echo)
        return 0

    _guarded(file, action)


@app.command("explain-error")
def explain_error(code: Annotated[str, typer.Argument(metavar="CODE", help="Such as PT0501.")]) -> None:
    """Explain an error code and how to mend it."""
    try:
        text = explain(code)
    except KeyError:
        typer.echo(f"Error: there is no error code '{code}'. Codes look like PT0501", err=True)
        raise typer.Exit(FAILED) from None
    typer.echo(text.rstrip("\n"))


def main() -> None:
    """The entry point of the command."""
    app(prog_name="pypto")


if __name__ == "__main__":
    main()
