"""Which family is selected: a default for the process, and for the duration of a compilation the one it is for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .model import BackendType, Target
from .platforms import target_of

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


def selected_target() -> Target | None:
    """The facts about the selected family, or None."""
    found = _selected.get() or _default
    return target_of(found) if found is not None else None


def reset_for_testing() -> None:
    """Forget the default."""
    global _default
    _default = None


@contextmanager
def using_backend(backend_type: BackendType) -> Iterator[None]:
    """Select a family for a block, without touching the default."""
    token = _selected.set(backend_type)
    try:
        yield
    finally:
        _selected.reset(token)


__all__ = [
    "get_backend_type",
    "is_backend_configured",
    "reset_for_testing",
    "selected_target",
    "set_backend_type",
    "using_backend",
]
