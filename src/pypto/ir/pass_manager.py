"""The public place of the pass manager's names. The manager itself comes with the passes."""

from __future__ import annotations

from .compile_options import OptimizationStrategy, PassDumpLevel, coerce_dump_level

__all__ = ["OptimizationStrategy", "PassDumpLevel", "coerce_dump_level"]
