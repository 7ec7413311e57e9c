"""The objects of the families, and of the selected one; see :mod:`pypto.target.selection`."""

from __future__ import annotations

from ..target.model import BackendType
from ..target.selection import (
    get_backend_type,
    is_backend_configured,
    reset_for_testing,
    set_backend_type,
    using_backend,
)
from .backend import Backend, Backend910B, Backend950, BackendHandler


def get_backend_instance(backend_type: BackendType) -> Backend:
    """The object of a family, whichever is selected."""
    if backend_type is BackendType.Ascend910B:
        return Backend910B.instance()
    if backend_type is BackendType.Ascend950:
        return Backend950.instance()
    raise TypeError(f"backend_type must be a BackendType, got {type(backend_type).__name__}")


def get_handler() -> BackendHandler:
    """The queries of the selected family."""
    return get_backend_instance(get_backend_type()).get_handler()


__all__ = [
    "get_backend_instance",
    "get_backend_type",
    "get_handler",
    "is_backend_configured",
    "reset_for_testing",
    "set_backend_type",
    "using_backend",
]
