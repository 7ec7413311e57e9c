"""The ops of the language: the namespaces, and every op that has a short name ``pl.<op>``."""

# ruff: noqa: F401 - what is imported here is what this module offers
from __future__ import annotations

from typing import Any

from . import array_ops as array
from . import prefetch_ops as prefetch
from . import system_ops as system
from . import tensor_ops as tensor
from . import tile_ops as tile
from . import unified_ops
from .tile_ops import aic_gather, aiv_shard

_OWN = {"aic_gather", "aiv_shard", "array", "prefetch", "system", "tensor", "tile"}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    try:
        value = getattr(unified_ops, name)
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_OWN, *dir(unified_ops)} - {"T"})
