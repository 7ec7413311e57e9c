"""The strategies: which passes run, in which order. Read this file to see the whole pipeline at a glance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ir.compile_options import MemoryPlanner, OptimizationStrategy
from .auto_derive_task_dependencies import auto_derive_task_dependencies
from .base import Pass
from .classify_iter_arg_carry import classify_iter_arg_carry
from .convert_to_ssa import convert_to_ssa
from .ctrl_flow_transform import ctrl_flow_transform
from .derive_call_directions import derive_call_directions
from .expand_manual_phase_fence import expand_manual_phase_fence
from .flatten_call_expr import flatten_call_expr
from .fuse_create_assemble_to_slice import fuse_create_assemble_to_slice
from .inline_functions import inline_functions
from .materialize_runtime_scopes import materialize_runtime_scopes
from .normalize_return_order import normalize_return_order
from .normalize_stmt_structure import normalize_stmt_structure
from .optimize_orch_tensors import optimize_orch_tensors
from .outline_cluster_scopes import outline_cluster_scopes
from .outline_hierarchy_scopes import outline_hierarchy_scopes
from .outline_incore_scopes import outline_incore_scopes
from .simplify import simplify
from .unroll_loops import unroll_loops

PassFactory = Callable[..., Pass]

# From the parsed program to functions in SSA form whose calls are statements.
_FRONT: tuple[PassFactory, ...] = (
    inline_functions,
    unroll_loops,
    ctrl_flow_transform,
    convert_to_ssa,
    simplify,
    normalize_stmt_structure,
    flatten_call_expr,
)

# Kernel scopes become functions.
_OUTLINING: tuple[PassFactory, ...] = (
    outline_hierarchy_scopes,
    outline_incore_scopes,
    outline_cluster_scopes,
)

# The passes over kernels (tiles, memory, pipelines) come here as they are built.

# What the orchestration means to the task runtime. Behind the last Simplify nothing moves or folds statements any more.
_ORCHESTRATION: tuple[PassFactory, ...] = (
    optimize_orch_tensors,
    normalize_return_order,
    fuse_create_assemble_to_slice,
    derive_call_directions,
    auto_derive_task_dependencies,
    expand_manual_phase_fence,
    simplify,
    materialize_runtime_scopes,
    classify_iter_arg_carry,
)

DEFAULT: tuple[PassFactory, ...] = (*_FRONT, *_OUTLINING, *_ORCHESTRATION)

# Programs that are written with tile operations and explicit kernels from the start.
DEBUG_TILE_OPTIMIZATION: tuple[PassFactory, ...] = (*_FRONT, *_ORCHESTRATION)

STRATEGIES: dict[OptimizationStrategy, tuple[PassFactory, ...]] = {
    OptimizationStrategy.Default: DEFAULT,
    OptimizationStrategy.DebugTileOptimization: DEBUG_TILE_OPTIMIZATION,
}


def passes_of(
    strategy: OptimizationStrategy,
    planner: MemoryPlanner = MemoryPlanner.PYPTO,
    analyze_auto_scopes_for_deps: bool = False,
) -> Sequence[Pass]:
    """Fresh passes of a strategy.

    ``analyze_auto_scopes_for_deps`` is for AutoDeriveTaskDependencies. ``planner`` concerns MemoryReuse and
    AllocateMemoryAddr, which are not built yet: today it changes nothing.
    """
    del planner
    options: dict[PassFactory, dict[str, Any]] = {
        auto_derive_task_dependencies: {"analyze_auto_scopes": analyze_auto_scopes_for_deps, "order_overwrites": True}
    }
    return [make(**options.get(make, {})) for make in STRATEGIES[strategy]]


__all__ = ["DEBUG_TILE_OPTIMIZATION", "DEFAULT", "STRATEGIES", "PassFactory", "passes_of"]
