"""Platform names: which family a name stands for, and whether this machine can run what is compiled for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import cpu
from .model import BackendType

if TYPE_CHECKING:
    from .model import Target


@dataclass(frozen=True)
class Platform:
    """``backend_type`` None: whatever the caller asks for. ``is_device``: runs on hardware, not on the host."""

    name: str
    backend_type: BackendType | None
    is_device: bool


PLATFORMS = {
    p.name: p
    for p in (
        Platform(cpu.PLATFORM, None, False),
        Platform("a2a3sim", BackendType.Ascend910B, False),
        Platform("a2a3", BackendType.Ascend910B, True),
        Platform("a5sim", BackendType.Ascend950, False),
        Platform("a5", BackendType.Ascend950, True),
    )
}


def platform_of(name: str) -> Platform:
    """The platform of a name; ``ValueError`` for one that does not exist."""
    found = PLATFORMS.get(name) if isinstance(name, str) else None
    if found is None:
        names = [f"'{n}'" for n in PLATFORMS]
        raise ValueError(f"Invalid platform '{name}'. Expected {', '.join(names[:-1])}, or {names[-1]}.")
    return found


def backend_of(platform: Platform, wanted: BackendType) -> BackendType:
    """The family to compile for: the platform's own, or the wanted one where the platform takes any."""
    return platform.backend_type if platform.backend_type is not None else wanted


def target_of(backend_type: BackendType) -> Target:
    """The facts of a family."""
    if backend_type is BackendType.Ascend910B:
        from .ascend910b import TARGET
    elif backend_type is BackendType.Ascend950:
        from .ascend950 import TARGET
    else:
        raise TypeError(f"backend_type must be a BackendType, got {type(backend_type).__name__}")
    return TARGET


__all__ = ["PLATFORMS", "Platform", "backend_of", "platform_of", "target_of"]
