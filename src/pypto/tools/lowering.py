"""``pypto lower``: the passes over a file's programs, with dumps, times and the pass at fault."""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from .._lazy import np
from ..codegen.host import orchestration_text
from ..compile_profiling import CompileProfiler
from ..ir.compile_options import OptimizationStrategy
from ..ir.printer import python_print
from ..ir.program import Program
from ..passes import Pass, PassContext, PassManager, VerificationLevel
from ..runtime.signature import orchestrations
from .loading import Entry, UsageError
from .pass_check import pass_at_fault

E = TypeVar("E", bound=enum.Enum)


class Request(msgspec.Struct, frozen=True):
    """The options of the command."""

    strategy: str
    limit: int | None
    dump: str | None
    level: str
    timing: bool
    compare: bool
    cpp: bool = False


def lower_entry(entry: Entry, request: Request, echo: Callable[[str], None]) -> bool:
    """Lower one program and say what was asked for; whether nothing was wrong."""
    strategy = strategy_named(request.strategy)
    level = _member(VerificationLevel, request.level.upper(), "--level")
    needs_arguments = request.compare or entry.has_arguments
    args = entry.arguments(np.random.default_rng(0)) if needs_arguments else None
    program = entry.program(args)
    with PassContext.derive(verification_level=level), CompileProfiler() as profiler:
        manager = PassManager(strategy)
        folder = None if request.dump is None else Path(request.dump) / entry.name
        lowered = manager.run_passes(program, folder is not None, folder, limit=request.limit)
    passes = manager.passes[: request.limit]
    if folder is not None:
        echo(f"{entry.name}: {len(passes)} passes dumped into {folder}")
    if request.timing:
        echo(profiler.summary())
    if args is not None and request.compare:
        return _compare(entry, args, program, passes, echo)
    if request.cpp:
        for function in orchestrations(lowered):
            echo(orchestration_text(lowered, function.name).rstrip("\n"))
    elif folder is None and not request.timing:
        echo(python_print(lowered).rstrip("\n"))
    return True


def _compare(
    entry: Entry, args: list[Any], program: Program, passes: Sequence[Pass], echo: Callable[[str], None]
) -> bool:
    found = pass_at_fault(program, passes, args)
    if found is None:
        echo(f"{entry.name}: the same values behind each of {len(passes)} passes")
        return True
    echo(f"{entry.name}: pass {found.index + 1}, {found.pass_name}, is at fault: {found.error}")
    return False


def strategy_named(name: str) -> OptimizationStrategy:
    """The strategy that an option ``--strategy`` names."""
    return _member(OptimizationStrategy, name, "--strategy")


def _member(kind: type[E], name: str, option: str) -> E:
    members = kind.__members__
    if name not in members:
        raise UsageError(f"{option} must be one of {', '.join(members)}, got '{name}'")
    return members[name]


__all__ = ["Request", "lower_entry", "strategy_named"]
