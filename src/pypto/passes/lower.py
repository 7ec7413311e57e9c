"""Lowering a program with the choices of a caller: what ``ir.compile`` and ``kernel.lower()`` share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.compile_options import OptimizationStrategy
from ..ir.program import Program
from .context import PassContext
from .instruments import PassInstrument, ReportInstrument
from .manager import PassManager

# What a caller may not say once more while a context says it.
_EXCLUSIVE = ("verification_level", "diagnostic_phase", "memory_planner", "runtime")


def check_no_conflict(caller: str, choices: dict[str, Any]) -> None:
    """``RuntimeError`` when ``choices`` (None: not given) say what an active PassContext says already."""
    if PassContext.current() is None:
        return
    for name in _EXCLUSIVE:
        if choices.get(name) is not None:
            raise RuntimeError(
                f"{caller}() was called with {name} while a PassContext is already active. "
                f"Set the {name} on the existing PassContext instead."
            )


def lower_program(
    program: Program,
    choices: dict[str, Any],
    *,
    strategy: OptimizationStrategy = OptimizationStrategy.Default,
    analyze_auto_scopes_for_deps: bool = False,
    instruments: Sequence[PassInstrument] = (),
    keep_reports: bool = True,
) -> Program:
    """The program after the passes of a strategy.

    ``choices`` are fields of :class:`PassContext`; what is None there comes from the active context, else from the
    defaults. ``instruments`` run after those of the active context, whose report instruments are left out without
    ``keep_reports``.
    """
    around = PassContext.current()
    inherited = around.get_instruments() if around is not None else []
    if not keep_reports:
        inherited = [i for i in inherited if not isinstance(i, ReportInstrument)]
    given = {name: value for name, value in choices.items() if value is not None}
    with PassContext.derive(**{**given, "instruments": [*inherited, *instruments]}):
        manager = PassManager.get_strategy(strategy, analyze_auto_scopes_for_deps=analyze_auto_scopes_for_deps)
        return manager.run_passes(program)


__all__ = ["check_no_conflict", "lower_program"]
