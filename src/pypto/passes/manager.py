"""``PassManager``: the passes of a strategy, run and dumped."""

from __future__ import annotations

import os
from pathlib import Path

from ..ir.compile_options import MemoryPlanner, OptimizationStrategy, PassDumpLevel, coerce_dump_level
from ..ir.program import Program
from .base import Pass
from .context import PassContext
from .dump import PassDump, into_folder
from .pass_pipeline import PassPipeline
from .pipeline import passes_of


class PassManager:
    """The pass list of a strategy. The memory planner that is current at construction fixes the list.

    Reusable: runs do not influence each other.
    """

    def __init__(
        self,
        strategy: OptimizationStrategy = OptimizationStrategy.Default,
        *,
        analyze_auto_scopes_for_deps: bool = False,
    ) -> None:
        if not isinstance(strategy, OptimizationStrategy):
            raise ValueError(f"Unsupported optimization strategy: {strategy!r}")
        self._strategy = strategy
        self._planner = _planner()
        self._passes = tuple(passes_of(strategy, self._planner, analyze_auto_scopes_for_deps))

    @classmethod
    def get_strategy(
        cls,
        strategy: OptimizationStrategy = OptimizationStrategy.Default,
        *,
        analyze_auto_scopes_for_deps: bool = False,
    ) -> PassManager:
        """The manager of a strategy; ``ValueError`` for what is none."""
        return cls(strategy, analyze_auto_scopes_for_deps=analyze_auto_scopes_for_deps)

    @property
    def strategy(self) -> OptimizationStrategy:
        """The strategy that the passes are of."""
        return self._strategy

    @property
    def passes(self) -> tuple[Pass, ...]:
        """The passes, in order."""
        return self._passes

    @property
    def pass_names(self) -> list[str]:
        """The names of the passes, in order."""
        return [p.get_name() for p in self._passes]

    def get_pass_names(self) -> list[str]:
        """The names of the passes, in order."""
        return self.pass_names

    def run_passes(
        self,
        input_ir: Program,
        dump_ir: bool | PassDumpLevel = False,
        output_dir: str | os.PathLike[str] | None = None,
        prefix: str = "pl",
        *,
        limit: int | None = None,
    ) -> Program:
        """The program after all passes, or after the first ``limit`` of them.

        With ``dump_ir``, ``output_dir`` gets ``00_frontend.py`` and ``NN_after_<Pass>.py`` for each pass; ``prefix`` is
        the name of the language module in them. Dumping does not change the result.

        Raises ``ValueError`` for what is no program or a missing ``output_dir``, ``RuntimeError`` under another memory
        planner than the manager was made for, :class:`~pypto.passes.VerificationError` where a pass breaks the program.
        """
        if not isinstance(input_ir, Program):
            raise ValueError(f"run_passes takes an ir.Program, got {type(input_ir).__name__}")
        level = coerce_dump_level(dump_ir)
        if level is not PassDumpLevel.NONE and output_dir is None:
            raise ValueError("output_dir is required when dumping IR")
        planner = _planner()
        if planner is not self._planner:
            raise RuntimeError(
                f"PassManager was constructed under memory_planner={self._planner.name}, but runs under "
                f"memory_planner={planner.name}: make it inside the PassContext that it runs in"
            )
        pipeline = PassPipeline()
        for each in self._passes[:limit]:
            pipeline.add_pass(each)
        if level is PassDumpLevel.NONE or output_dir is None:
            return pipeline.run(input_ir)
        dump = PassDump(into_folder(Path(output_dir)), prefix, explicit=level is PassDumpLevel.EXPLICIT)
        dump.add_input(input_ir)
        around = PassContext.current()
        outer = [] if around is None else around.get_instruments()
        with PassContext.derive(instruments=[*outer, dump.instrument]):
            return pipeline.run(input_ir)


def _planner() -> MemoryPlanner:
    context = PassContext.current()
    return MemoryPlanner.PYPTO if context is None else context.get_memory_planner()


__all__ = ["PassManager"]
