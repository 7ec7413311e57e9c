"""The names of :mod:`pypto.ir`, the same objects; but ``IRBuilder`` is the flat begin/end builder."""

from __future__ import annotations

from typing import Any

import pypto.ir as _ir
from pypto.ir.builder_core import IRBuilder


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(_ir, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*dir(_ir), "IRBuilder"})


__all__ = ["IRBuilder"]
