"""What a RunConfig and the active PassContext say of a compilation, as keys and as arguments."""

from __future__ import annotations

import os
import sys
from typing import Any

from ..ir.compile_options import OptimizationStrategy
from ..ir.program import Program

# Fields of a RunConfig that decide what a compilation gives.
_OPTION_FIELDS = (
    "platform",
    "strategy",
    "backend_type",
    "dump_passes",
    "dump_ptoas_passes",
    "compile_profiling",
    "diagnostic_phase",
    "disabled_diagnostics",
    "analyze_auto_scopes_for_deps",
    "save_kernels_dir",
    "memory_planner",
    "enable_pypto_l0c_double_buffer",
    "runtime",
    "distributed_config",
    "verification_level",
    "disk_cache",
)
# Field of a RunConfig -> keyword of ``ir.compile``, passed on when set.
_FORWARDED = {
    "strategy": "strategy",
    "dump_passes": "dump_passes",
    "dump_ptoas_passes": "dump_ptoas_passes",
    "compile_profiling": "profiling",
    "diagnostic_phase": "diagnostic_phase",
    "disabled_diagnostics": "disabled_diagnostics",
    "analyze_auto_scopes_for_deps": "analyze_auto_scopes_for_deps",
    "save_kernels_dir": "output_dir",
    "distributed_config": "distributed_config",
    "memory_planner": "memory_planner",
    "platform": "platform",
    "backend_type": "backend_type",
}


def options_key(config: Any) -> Any:
    context = _active_context()
    around = () if context is None else _context_key(context)
    if config is None:
        return around or None
    return (*(_hashable(getattr(config, field, None)) for field in _OPTION_FIELDS), around)


def _hashable(value: Any) -> Any:
    if value is None or type(value) in (str, bool, int):
        return value
    if isinstance(value, (set, frozenset, list, tuple)):
        return tuple(sorted(map(str, value)))
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value


def uses_disk(config: Any) -> bool:
    """Whether compilations are kept on disk: asked for by the config, or by naming the place in the environment."""
    if getattr(config, "save_kernels_dir", None) is not None:
        return False  # the files have to be there
    return bool(getattr(config, "disk_cache", False)) or bool(os.environ.get("PYPTO_JIT_CACHE_DIR"))


def _active_context() -> Any:
    """The active PassContext, if the passes are loaded and one is open."""
    module = sys.modules.get("pypto.passes")
    context = getattr(module, "PassContext", None) if module is not None else None
    return context.current() if context is not None else None


_CONTEXT_GETTERS = (
    "get_memory_planner",
    "get_enable_pypto_l0c_double_buffer",
    "get_runtime",
    "get_verification_level",
    "get_diagnostic_phase",
)


def _context_key(context: Any) -> tuple[Any, ...]:
    return (
        *(getattr(context, getter)() for getter in _CONTEXT_GETTERS),
        _hashable(frozenset(map(str, context.get_disabled_diagnostics()))),
    )


def context_choices(config: Any) -> tuple[Any, bool, Any]:
    """Planner, double-buffer flag and runtime: from the config, else the active context, else defaults."""
    context = _active_context()
    found = []
    for field, getter in (
        ("memory_planner", "get_memory_planner"),
        ("enable_pypto_l0c_double_buffer", "get_enable_pypto_l0c_double_buffer"),
        ("runtime", "get_runtime"),
    ):
        value = getattr(config, field, None)
        found.append(getattr(context, getter)() if value is None and context is not None else value)
    return found[0], bool(found[1]), found[2]


def compile_arguments(config: Any) -> dict[str, Any]:
    if config is None:
        return {}
    found = {}
    for field, keyword in _FORWARDED.items():
        value = getattr(config, field, None)
        if value is not None:
            found[keyword] = value
    return found


# Fields of a RunConfig that ``lower`` makes fields of the PassContext.
_CONTEXT_FIELDS = (
    "diagnostic_phase",
    "disabled_diagnostics",
    "memory_planner",
    "enable_pypto_l0c_double_buffer",
    "runtime",
    "verification_level",
)


def run_passes(program: Program, config: Any) -> Program:
    """The program after the passes of the config's strategy. No files are written."""
    from ..passes.lower import check_no_conflict, lower_program

    choices = {field: getattr(config, field, None) for field in _CONTEXT_FIELDS}
    check_no_conflict("lower", choices)
    return lower_program(
        program,
        choices,
        strategy=getattr(config, "strategy", None) or OptimizationStrategy.Default,
        analyze_auto_scopes_for_deps=bool(getattr(config, "analyze_auto_scopes_for_deps", False)),
        keep_reports=False,
    )


__all__ = ["compile_arguments", "context_choices", "options_key", "run_passes", "uses_disk"]
