"""Device families as objects: their facts, and which one is selected."""

from __future__ import annotations

from ..target.model import BackendType, Cluster, Core, Die, Mem, SoC
from .backend import Backend, Backend910B, Backend950, BackendHandler
from .selection import (
    get_backend_instance,
    get_backend_type,
    get_handler,
    is_backend_configured,
    reset_for_testing,
    set_backend_type,
    using_backend,
)

__all__ = [
    "Backend",
    "Backend910B",
    "Backend950",
    "BackendHandler",
    "BackendType",
    "Cluster",
    "Core",
    "Die",
    "Mem",
    "SoC",
    "get_backend_instance",
    "get_backend_type",
    "get_handler",
    "is_backend_configured",
    "reset_for_testing",
    "set_backend_type",
    "using_backend",
]
