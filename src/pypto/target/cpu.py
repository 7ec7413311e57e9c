"""The host CPU as a place to run: it has no facts of its own, programs keep the rules of the family they are for."""

from __future__ import annotations

from .model import BackendType

PLATFORM = "cpu"
DEFAULT_BACKEND = BackendType.Ascend910B
