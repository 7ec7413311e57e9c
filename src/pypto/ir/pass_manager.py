"""The public place of the pass manager's names."""

from __future__ import annotations

from ..passes.manager import PassManager
from .compile_options import OptimizationStrategy, PassDumpLevel, coerce_dump_level

__all__ = ["OptimizationStrategy", "PassDumpLevel", "PassManager", "coerce_dump_level"]
