"""Programs run at every stage: as parsed, behind the passes, and as emitted C++ on the task runtime.

The C++ of many programs is compiled together, since starting the compiler costs more than a program. The same
orchestration runs with its kernels in the interpreter and, if wanted, with native ones.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

import pypto.language as pl
from pypto import ir, passes
from pypto.ir.enums import FunctionType
from pypto.ops.values import ArrayValue, Buffer
from pypto.passes.errors import PassError
from pypto.runtime.build import CompileFailed
from pypto.runtime.emitted import EmittedCode, EmittedProgram
from pypto.runtime.errors import RaceError
from pypto.runtime.host_executor import RunOptions, TaskError
from pypto.runtime.interpreter import Interpreter
from pypto.runtime.races import check_races
from pypto.runtime.recording import run_record
from pypto.runtime.task_records import RunRecord

from .nearness import EXACT_FLAGS, near
from .run import arguments, difference, run

# Fresh buffers hold NaN, so that memory that is reused too early shows.
OPTIONS = (
    RunOptions(workers=1, fill=True),
    RunOptions(workers=2, fill=True),
    RunOptions(workers=1, random=True, seed=1, fill=True),
    RunOptions(workers=1, random=True, seed=2, fill=True),
)

# A tensor that a loop or branch of a MANUAL scope makes is used behind the scope.
_ENDED = "a tensor is used after the scope that allocated it has ended"
STRATEGY = ir.OptimizationStrategy.Default


@dataclass(frozen=True)
class Fault:
    """What went wrong at which stage, by a name for the program and its text."""

    name: str
    stage: str
    message: str
    text: str = ""
    code: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Equal for faults that look like the same one."""
        return self.stage, re.sub(r"'[^']*'|\d+|\[[^\]]*\]", "_", self.message.split("\n")[0])[:100]

    def __str__(self) -> str:
        return f"{self.name}: {self.stage}: {self.message}"


@dataclass
class Job:
    """A program to check. ``inputs``: arguments to run it on, None: two that are made up; ``model``: from arguments, how
    they end (None: the interpreter alone says it). ``ordered``: all orders of its tasks mean the same. ``derive``: with
    dependencies that the compiler finds in AUTO regions. ``races``: no two tasks may touch the same bytes without an
    order, whatever the values are."""

    name: str
    text: str
    inputs: Sequence[Sequence[Any]] | None = None
    model: Callable[[Any], Sequence[Any]] | None = None
    entry: str = "main"
    ordered: bool = True
    derive: bool = False
    races: bool = False


@dataclass
class Report:
    """What was done. ``refused``: programs that a user is told to change, by message. ``kernels``: of the programs that
    also ran with native kernels; ``native``: those that have a native form, ``hosted``: in part, with operations that
    NumPy runs; ``notes``: why not, and which operations. ``rounded``: native runs that differed in last places."""

    programs: int = 0
    emitted: int = 0
    runs: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    faults: list[Fault] = field(default_factory=list)
    kernels: int = 0
    native: int = 0
    hosted: int = 0
    native_runs: int = 0
    rounded: int = 0
    notes: Counter[str] = field(default_factory=Counter)

    def add(self, other: Report) -> None:
        for name in ("programs", "emitted", "runs", "kernels", "native", "hosted", "native_runs", "rounded"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.refused.update(other.refused)
        self.notes.update(other.notes)
        self.faults += other.faults

    def native_share(self) -> str:
        """A line on native kernels, and one for each reason why others are not."""
        lines = [f"{count} {note}" for note, count in self.notes.most_common()]
        return "\n".join(
            [
                f"{self.native} of {self.kernels} kernels native, {self.hosted} of them with operations in NumPy; "
                f"{self.native_runs} executions, {self.rounded} of them with other last places",
                *lines,
            ]
        )


class _Wrong(Exception):
    def __init__(self, stage: str, message: str) -> None:
        self.stage = stage
        self.message = message


@dataclass
class _Ready:
    """A program whose C++ is there: still to be compiled and run."""

    job: Job
    program: ir.Program  # as parsed
    code: EmittedCode
    names: list[str]
    inputs: Sequence[Sequence[Any]]
    expected: list[list[Any]]


def check(jobs: Iterable[Job], native: bool = False, kernel_flags: Sequence[str] = ()) -> Report:
    """Check programs; their C++ is compiled together. ``native``: with native kernels, too; ``kernel_flags``: for their
    compilation."""
    report = Report()
    ready = []
    for job in jobs:
        report.programs += 1
        try:
            made = _prepare(job, report)
        except _Wrong as wrong:
            report.faults.append(Fault(job.name, wrong.stage, wrong.message, job.text))
            continue
        if made is not None:
            ready.append(made)
    for one, program in _compile(ready, report, native, (*EXACT_FLAGS, *kernel_flags)):
        report.emitted += 1
        stages = [("emitted", program.interpreted() if native else program)]
        if native:
            _count_kernels(program, report)
            stages.append(("native", program))
        for stage, made in stages:
            fault = _run_emitted(one, made, report)
            if fault is not None:
                code = one.code.result.code
                if made.native is not None:
                    code += made.native.text
                report.faults.append(Fault(one.job.name, stage, fault, one.job.text, code))
                break
    return report


def _count_kernels(program: EmittedProgram, report: Report) -> None:
    assert program.native is not None
    report.kernels += len(program.native.sources)
    report.native += len(program.native.made)
    report.hosted += sum(bool(source.hosted) for source in program.native.made)
    report.notes.update(re.sub(r" of kernel '[^']*'|'[^']*'", "", note) for note in program.notes)


def _prepare(job: Job, report: Report) -> _Ready | None:
    """Everything before C++. None: refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            program = pl.parse(job.text, "generated.py")
        except Exception as error:
            raise _Wrong("parse", shown(error)) from error
        names = [p.name_hint for p in program[job.entry].params]
        inputs = job.inputs if job.inputs is not None else [arguments(program[job.entry], seed) for seed in (1, 2)]
        expected = []
        for args in inputs:
            report.runs += 1
            try:
                outcome = run(program, job.entry, args)
            except Exception as error:
                raise _Wrong("source", shown(error)) from error
            if job.model is not None:
                want = [_like(w, a) for w, a in zip(job.model(args), args, strict=True)]
                _same("source", want, outcome[: len(want)], names)
            expected.append(outcome)
        try:
            with passes.PassContext([], diagnostic_phase=passes.DiagnosticPhase.NONE):
                lowered = ir.PassManager.get_strategy(STRATEGY, analyze_auto_scopes_for_deps=job.derive).run_passes(
                    program
                )
        except Exception as error:
            if _is_refusal(error):
                report.refused[_message(error)] += 1
                return None
            raise _Wrong("passes", shown(error)) from error
    _interpret(job, lowered, names, inputs, expected, report)
    if lowered[job.entry].func_type is not FunctionType.Orchestration:
        report.refused["the entry is no Orchestration function: it launches nothing"] += 1
        return None
    try:
        code = EmittedCode(lowered, job.entry)
    except Exception as error:
        if _is_refusal(error):
            report.refused[_message(error)] += 1
            return None
        raise _Wrong("codegen", shown(error)) from error
    return _Ready(job, program, code, names, inputs, expected)


def _interpret(
    job: Job,
    program: ir.Program,
    names: list[str],
    inputs: Sequence[Sequence[Any]],
    expected: list[list[Any]],
    report: Report,
) -> None:
    """The program behind the passes means the same, in submit order and in two others."""
    orders = [("submit", 0), *([("random", 1), ("random", 2)] if job.ordered else [])]
    for args, want in zip(inputs, expected, strict=True):
        for schedule, seed in orders:
            stage = f"lowered, {schedule}"
            report.runs += 1
            try:
                outcome = run(program, job.entry, args, schedule, seed)
            except Exception as error:
                raise _Wrong(stage, shown(error)) from error
            _same(stage, want, outcome, names)
    if job.races:
        for args in inputs:
            report.runs += 1
            try:
                check_races(_recorded(program, job.entry, args))
            except RaceError as error:
                raise _Wrong("races", shown(error)) from error


def _recorded(program: ir.Program, entry: str, args: Sequence[Any]) -> RunRecord:
    """What each task of a run touches, and the edges, which are those of emitted code."""
    interpreter = Interpreter(program, record=True, accesses=True, by_parts=False)
    values = []
    for param, arg in zip(program[entry].params, args, strict=True):
        data = arg.copy() if isinstance(arg, np.ndarray) else arg
        shaped = isinstance(arg, np.ndarray)
        values.append(ArrayValue(data, Buffer(data, param.name_hint, external=True)) if shaped else data)
    interpreter.run(program[entry], values)
    return run_record(interpreter.graph)


def _compile(
    ready: list[_Ready], report: Report, native: bool, kernel_flags: Sequence[str]
) -> list[tuple[_Ready, EmittedProgram]]:
    try:
        made = EmittedProgram.build_all([one.code for one in ready], native=native, kernel_flags=kernel_flags)
        return list(zip(ready, made, strict=True))
    except CompileFailed as error:
        if len(ready) == 1:
            (one,) = ready
            report.faults.append(Fault(one.job.name, "compile", str(error), one.job.text, one.code.result.code))
            return []
        half = len(ready) // 2
        parts = (ready[:half], ready[half:])
        return [made for part in parts for made in _compile(part, report, native, kernel_flags)]


def _run_emitted(one: _Ready, program: EmittedProgram, report: Report) -> str | None:
    native = program.native is not None
    for options in OPTIONS if one.job.ordered else OPTIONS[:1]:
        for args, want in zip(one.inputs, one.expected, strict=True):
            values = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
            report.runs += 1
            report.native_runs += native
            how = f"workers={options.workers}" + (f" random seed={options.seed}" if options.random else "")
            try:
                program.run(values, options)
            except TaskError as error:
                if error.span is None or _ENDED not in str(error):
                    return f"{how}: {shown(error)}"
                # The runtime says it at the user's line; the compiler does not see it.
                report.refused[f"when it runs: {_ENDED}"] += not native
                return None
            except Exception as error:
                return f"{how}: {shown(error)}"
            if not one.job.ordered:  # which of the values it gives is open
                continue
            wanted = list(want[: len(values)])
            message = difference(wanted, values, one.names)
            if message is not None and native:
                again = partial(_ends, one, args)
                message = near(wanted, values, one.names, again)
                report.rounded += message is None
            if message is not None:
                return f"{how}: {message}"
    return None


def _ends(one: _Ready, args: Sequence[Any]) -> list[Any]:
    """How the arguments end in the interpreter."""
    return run(one.program, one.job.entry, args)[: len(args)]


def _like(value: Any, arg: Any) -> Any:
    return np.asarray(value).astype(arg.dtype) if isinstance(arg, np.ndarray) else value


def _same(stage: str, want: Sequence[Any], got: Sequence[Any], names: Sequence[str]) -> None:
    message = difference(list(want), list(got), names)
    if message is not None:
        raise _Wrong(stage, message)


def _is_refusal(error: Exception) -> bool:
    """The user is told what can't be translated, at a line of the program."""
    return isinstance(error, PassError) and error.span is not None


def _message(error: Exception) -> str:
    message = getattr(error, "message", str(error)).split("\n")[0]
    return re.sub(r"'[^']*'", "'...'", message)


def shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


__all__ = ["OPTIONS", "Fault", "Job", "Report", "check", "shown"]
