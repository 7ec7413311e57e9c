"""The public place of the pass manager's names."""

from __future__ import annotations

from ..passes.manager import PassManager
from ..passes.pipeline import PassFactory
from .compile_options import OptimizationStrategy, PassDumpLevel, coerce_dump_level

__all__ = ["OptimizationStrategy", "PassDumpLevel", "PassFactory", "PassManager", "coerce_dump_level"]
