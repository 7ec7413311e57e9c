"""The strategies: which passes run, in which order. Read this file to see the whole pipeline at a glance."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..ir.compile_options import MemoryPlanner, OptimizationStrategy
from .base import Pass
from .convert_to_ssa import convert_to_ssa
from .ctrl_flow_transform import ctrl_flow_transform
from .flatten_call_expr import flatten_call_expr
from .inline_functions import inline_functions
from .normalize_stmt_structure import normalize_stmt_structure
from .outline_cluster_scopes import outline_cluster_scopes
from .outline_hierarchy_scopes import outline_hierarchy_scopes
from .outline_incore_scopes import outline_incore_scopes
from .simplify import simplify
from .unroll_loops import unroll_loops

PassFactory = Callable[[], Pass]

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

# The passes over kernels (tiles, memory, pipelines) and over the orchestration come here as they are built.

DEFAULT: tuple[PassFactory, ...] = (*_FRONT, *_OUTLINING, simplify)

# Programs that are written with tile operations and explicit kernels from the start.
DEBUG_TILE_OPTIMIZATION: tuple[PassFactory, ...] = (*_FRONT, simplify)

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

    ``planner`` and ``analyze_auto_scopes_for_deps`` concern MemoryReuse, AllocateMemoryAddr and
    AutoDeriveTaskDependencies, which are not built yet: today they change nothing.
    """
    del planner, analyze_auto_scopes_for_deps
    return [make() for make in STRATEGIES[strategy]]


__all__ = ["DEBUG_TILE_OPTIMIZATION", "DEFAULT", "STRATEGIES", "PassFactory", "passes_of"]
