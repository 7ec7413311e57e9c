"""Which family is selected: a default for the process, and for the duration of a compilation the one it is for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..target.model import BackendType
from .backend import Backend, Backend910B, Backend950, BackendHandler

_default: BackendType | None = None
# Of this context only, so that threads may compile for different families at the same time.
_selected: ContextVar[BackendType | None] = ContextVar("pypto_backend", default=None)


def set_backend_type(backend_type: BackendType) -> None:
    """Set the default of the process. The same again is fine; another one is a ``ValueError``."""
    global _default
    if not isinstance(backend_type, BackendType):
        raise TypeError(f"backend_type must be a BackendType, got {type(backend_type).__name__}")
    if _default is not None and _default is not backend_type:
        raise ValueError(f"Backend type already set to {_default.name}, cannot change to {backend_type.name}")
    _default = backend_type


def get_backend_type() -> BackendType:
    """The selected family; ``ValueError`` while none is."""
    found = _selected.get() or _default
    if found is None:
        raise ValueError("Backend type not configured. Call pypto.backend.set_backend_type(...) first")
    return found


def is_backend_configured() -> bool:
    """Whether a family is selected."""
    return (_selected.get() or _default) is not None


def reset_for_testing() -> None:
    """Forget the default."""
    global _default
    _default = None


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


@contextmanager
def using_backend(backend_type: BackendType) -> Iterator[None]:
    """Select a family for a block, without touching the default."""
    token = _selected.set(backend_type)
    try:
        yield
    finally:
        _selected.reset(token)


__all__ = [
    "get_backend_instance",
    "get_backend_type",
    "get_handler",
    "is_backend_configured",
    "reset_for_testing",
    "set_backend_type",
    "using_backend",
]
