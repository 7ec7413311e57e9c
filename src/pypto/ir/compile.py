"""``ir.compile``: a program to a :class:`~pypto.ir.compiled_program.CompiledProgram`.

The passes lower and verify the program, and the orchestration is emitted as C++. Kernels have no code of their own yet,
so the interpreter runs the program that was given; :attr:`CompiledProgram.report` says so.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from ..compile_profiling import CompileProfiler, get_active_profiler, profiling_asked_for
from ..target.model import BackendType
from ..target.platforms import backend_of, platform_of
from .callable_module import make_callable
from .compile_options import (
    MemoryPlanner,
    OptimizationStrategy,
    PassDumpLevel,
    RuntimeKind,
    coerce_dump_level,
)
from .compiled_program import CompiledProgram
from .program import Program

logger = logging.getLogger(__name__)

# What has no effect while there are no passes over tiles and no code of kernels: parameter -> its default.
_NO_EFFECT_YET: dict[str, Any] = {
    "skip_ptoas": False,
    "memory_planner": None,
    "enable_pypto_l0c_double_buffer": None,
    "distributed_config": None,
    "emit_source_loc": None,
    "dump_ptoas_passes": False,
    "runtime": None,
}
# Parameters that are fields of a PassContext.
_CONTEXT_FIELDS = (
    "verification_level",
    "diagnostic_phase",
    "disabled_diagnostics",
    "memory_planner",
    "enable_pypto_l0c_double_buffer",
    "runtime",
)


def compile(
    program: Any,
    output_dir: str | os.PathLike[str] | None = None,
    strategy: OptimizationStrategy = OptimizationStrategy.Default,
    dump_passes: bool | PassDumpLevel = True,
    backend_type: BackendType = BackendType.Ascend910B,
    skip_ptoas: bool = False,
    verification_level: Any = None,
    diagnostic_phase: Any = None,
    disabled_diagnostics: Any = None,
    memory_planner: MemoryPlanner | None = None,
    enable_pypto_l0c_double_buffer: bool | None = None,
    profiling: bool = False,
    platform: str | None = None,
    distributed_config: Any = None,
    analyze_auto_scopes_for_deps: bool = False,
    emit_source_loc: bool | None = None,
    dump_ptoas_passes: bool = False,
    runtime: RuntimeKind | None = None,
) -> CompiledProgram:
    """Compile a program (or a ``@pl.jit`` function whose signature says everything).

    ``output_dir``: where files go; a new directory under ``build_output`` (or ``$PYPTO_PROG_BUILD_DIR``) by default.
    ``platform``: ``"cpu"`` by default; a device platform decides ``backend_type``. The result is called with arrays.

    Raises ``ValueError`` for an unknown platform before anything is written, ``TypeError`` for what is no program,
    ``RuntimeError`` for a choice that an active PassContext makes too, and what the passes find in the program.
    """
    from ..passes.lower import check_no_conflict

    given = locals()
    place = platform_of("cpu" if platform is None else platform)
    if not isinstance(backend_type, BackendType):
        raise TypeError(f"backend_type must be a BackendType, got {type(backend_type).__name__}")
    if not isinstance(strategy, OptimizationStrategy):
        raise ValueError(f"Unknown strategy {strategy!r}. Expected OptimizationStrategy.Default")
    level = coerce_dump_level(dump_passes)
    if not isinstance(program, Program):
        program = _specialized(program)
    notes = [
        f"{name}={given[name]!r} has no effect yet: there are no passes over tiles and no code of kernels"
        for name, default in _NO_EFFECT_YET.items()
        if given[name] != default
    ]
    choices = {name: given[name] for name in _CONTEXT_FIELDS}
    check_no_conflict("compile", choices)
    backend = backend_of(place, backend_type)

    with _profile(profiling) as profiler:

        def lower(given_program: Program, directory: Path, instruments: list[Any]) -> tuple[Program, Sequence[str]]:
            try:
                return _lowered(given_program, choices, strategy, analyze_auto_scopes_for_deps, directory, instruments)
            finally:  # also where a pass fails: that is when the times of the others are of interest
                if profiler is not None:
                    profiler.write_report(directory / "report")

        return CompiledProgram.build(program, output_dir, place.name, backend, level, lower, notes)


def _lowered(
    program: Program,
    choices: dict[str, Any],
    strategy: OptimizationStrategy,
    analyze: bool,
    directory: Path,
    instruments: list[Any],
) -> tuple[Program, Sequence[str]]:
    from ..passes.instruments import CallbackInstrument, ReportInstrument
    from ..passes.lower import lower_program

    ran: list[str] = []
    note = CallbackInstrument(after_pass=lambda each, _program: ran.append(each.get_name()), name="PassNames")
    profiler = get_active_profiler()
    with profiler.stage("passes") if profiler is not None else nullcontext():
        lowered = lower_program(
            program,
            choices,
            strategy=strategy,
            analyze_auto_scopes_for_deps=analyze,
            instruments=[ReportInstrument(directory / "report"), *instruments, note],
        )
    return lowered, ran


@contextmanager
def _profile(asked_for: bool) -> Iterator[CompileProfiler | None]:
    """A profiler of this compilation where one is asked for, here or in the environment, and none is active."""
    if CompileProfiler.current() is not None or not (asked_for or profiling_asked_for()):
        yield None
        return
    with CompileProfiler() as profiler:
        yield profiler


def _specialized(program: Any) -> Program:
    specialize = getattr(program, "specialize", None)
    if specialize is None:
        raise TypeError(
            f"ir.compile expects an ir.Program (a @pl.program class gives one), got {type(program).__name__}"
        )
    found = specialize()
    if not isinstance(found, Program):
        raise TypeError(f"{program!r} gave no program, but {type(found).__name__}")
    return found


make_callable(__name__)
