"""``ir.compile``: a program to a :class:`~pypto.ir.compiled_program.CompiledProgram`.

There are no passes and no code generation yet: the program that runs is the one that was given, and the interpreter
runs it. :attr:`CompiledProgram.report` says so.
"""

from __future__ import annotations

import logging
import os
from typing import Any

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

# What has no effect while there are no passes and no code generation: parameter -> its default.
_NO_EFFECT_YET: dict[str, Any] = {
    "skip_ptoas": False,
    "verification_level": None,
    "diagnostic_phase": None,
    "disabled_diagnostics": None,
    "memory_planner": None,
    "enable_pypto_l0c_double_buffer": None,
    "profiling": False,
    "distributed_config": None,
    "analyze_auto_scopes_for_deps": False,
    "emit_source_loc": None,
    "dump_ptoas_passes": False,
    "runtime": None,
}


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

    Raises ``ValueError`` for an unknown platform before anything is written, ``TypeError`` for what is no program.
    """
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
        f"{name}={given[name]!r} has no effect yet: there are no passes and no code generation"
        for name, default in _NO_EFFECT_YET.items()
        if given[name] != default
    ]
    return CompiledProgram.build(program, output_dir, place.name, backend_of(place, backend_type), level, notes)


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
