"""Compile and run in one call, and run what a directory holds."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..ir.compile_options import MemoryPlanner, OptimizationStrategy, PassDumpLevel
from ..target.model import BackendType
from .checking import assert_close
from .run_config import RunConfig
from .tensor_spec import ScalarSpec, TensorSpec


@dataclass
class RunResult:
    """The outcome of a checked run."""

    passed: bool
    test_name: str | None = None
    error: str | None = None
    execution_time: float | None = None
    profile: dict[str, Any] | None = None

    def __str__(self) -> str:
        name = f": {self.test_name}" if self.test_name else ""
        if self.passed:
            return f"PASS{name}" + (f" ({self.execution_time:.2f}s)" if self.execution_time else "")
        reason = f" - {self.error}" if name and self.error else f": {self.error}" if self.error else ""
        return f"FAIL{name}{reason}" + (f" ({self.execution_time:.2f}s)" if self.execution_time else "")


def run(program: Any, *tensors: Any, config: RunConfig | None = None) -> Any:
    """Compile a program and, if arguments are given, run it; gives the ``CompiledProgram``.

    What a call in return style gives is kept in ``compiled.last_result``.
    """
    from ..ir.compile import compile as compile_program

    config = config or RunConfig()
    compiled = compile_program(program, **compile_arguments(config))
    if tensors and not config.codegen_only:
        compiled.last_result = compiled(*tensors, config=config)
    return compiled


def compile_arguments(config: RunConfig) -> dict[str, Any]:
    """The keywords of ``ir.compile`` that a config stands for."""
    return {
        "output_dir": config.save_kernels_dir,
        "strategy": config.strategy,
        "dump_passes": config.dump_passes,
        "backend_type": config.backend_type,
        "diagnostic_phase": config.diagnostic_phase,
        "disabled_diagnostics": config.disabled_diagnostics,
        "memory_planner": config.memory_planner,
        "profiling": config.compile_profiling,
        "platform": config.platform,
        "distributed_config": config.distributed_config,
        "analyze_auto_scopes_for_deps": config.analyze_auto_scopes_for_deps,
        "dump_ptoas_passes": config.dump_ptoas_passes,
    }


def compile_program(
    program: Any,
    work_dir: str | os.PathLike[str],
    *,
    strategy: OptimizationStrategy,
    backend_type: BackendType,
    dump_passes: bool | PassDumpLevel = False,
    dump_ptoas_passes: bool = False,
    diagnostic_phase: Any = None,
    disabled_diagnostics: Any = None,
    profiling: bool = False,
    analyze_auto_scopes_for_deps: bool = False,
    memory_planner: MemoryPlanner | None = None,
    enable_pypto_l0c_double_buffer: bool | None = None,
) -> None:
    """Compile into a directory that :func:`execute_compiled` can run."""
    from ..ir.compile import compile as compile_to_directory

    compile_to_directory(
        program,
        work_dir,
        strategy,
        dump_passes,
        backend_type,
        diagnostic_phase=diagnostic_phase,
        disabled_diagnostics=disabled_diagnostics,
        memory_planner=memory_planner,
        enable_pypto_l0c_double_buffer=enable_pypto_l0c_double_buffer,
        profiling=profiling,
        analyze_auto_scopes_for_deps=analyze_auto_scopes_for_deps,
        dump_ptoas_passes=dump_ptoas_passes,
    )


@dataclass(frozen=True)
class _DfxOpts:
    """The run-time diagnostics of a dispatch from a directory."""

    enable_chip_swimlane: int = 0
    enable_dump_args: int = 0
    enable_pmu: int = 0
    enable_dep_gen: bool = False
    enable_scope_stats: bool = False


def execute_compiled(
    work_dir: str | os.PathLike[str],
    args: Sequence[Any],
    *,
    platform: str,
    device_id: int,
    dfx: _DfxOpts = _DfxOpts(),  # noqa: B008  (immutable)
    level: int = 2,
    aicpu_thread_num: int | None = None,
    analyze_auto_scopes_for_deps: bool = False,
) -> None:
    """Run the program of a directory on all its arguments, outputs in place.

    ``FileNotFoundError`` when the directory holds none.
    """
    from ..ir.compiled_program import CompiledProgram

    if level != 2:
        raise ValueError(f"level must be 2 (a single chip), got {level}")
    compiled = CompiledProgram.from_dir(work_dir, platform=platform)
    config = RunConfig(
        platform=platform,
        device_id=device_id,
        aicpu_thread_num=aicpu_thread_num,
        analyze_auto_scopes_for_deps=analyze_auto_scopes_for_deps,
        enable_chip_swimlane=dfx.enable_chip_swimlane,
        enable_dump_args=dfx.enable_dump_args,
        enable_pmu=dfx.enable_pmu,
        enable_dep_gen=dfx.enable_dep_gen,
        enable_scope_stats=dfx.enable_scope_stats,
    )
    names = compiled.param_names
    if len(args) != len(names):
        raise TypeError(f"execute_compiled takes all {len(names)} arguments, got {len(args)}. Parameters: {names}")
    compiled(*args, config=config)


def run_test(
    program: Any,
    tensor_specs: Sequence[TensorSpec],
    golden: Callable[[dict[str, Any], dict[str, Any]], None],
    *,
    config: RunConfig | None = None,
    scalar_specs: Sequence[ScalarSpec] = (),
    name: str | None = None,
) -> RunResult:
    """Compile, run and check a program in one call.

    ``golden(tensors, params)`` writes the expected outputs into the dict of tensors, in place or by assignment. The
    tolerance follows the element type unless the config gives one.
    """
    config = config or RunConfig()
    default = RunConfig()
    chosen = (config.rtol, config.atol) != (default.rtol, default.atol)
    tolerance = (config.rtol, config.atol) if chosen else None
    tensors = {spec.name: spec.create_tensor() for spec in tensor_specs}
    expected = {key: _copy(value) for key, value in tensors.items()}
    scalars = {spec.name: spec.value for spec in scalar_specs}
    begin = time.perf_counter()
    try:
        run(program, *tensors.values(), *scalars.values(), config=config)
        elapsed = time.perf_counter() - begin
        golden(expected, dict(scalars))
        for spec in tensor_specs:
            if spec.is_output:
                assert_close(spec.name, tensors[spec.name], expected[spec.name], tolerance)
    except Exception as error:  # the outcome of a check is a value, whatever went wrong
        return RunResult(False, name, f"{type(error).__name__}: {error}", time.perf_counter() - begin)
    return RunResult(True, name, None, elapsed)


def _copy(array: Any) -> Any:
    return array.clone() if hasattr(array, "clone") else array.copy()


__all__ = [
    "RunConfig",
    "RunResult",
    "compile_arguments",
    "compile_program",
    "execute_compiled",
    "run",
    "run_test",
]
