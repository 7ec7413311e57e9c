"""Modules that are imported on first use, so that ``import pypto.language`` stays fast."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any


class LazyModule(ModuleType):
    """Stands for a module; the first attribute access imports it."""

    def __getattr__(self, name: str) -> Any:
        module = importlib.import_module(self.__name__)
        value = getattr(module, name)
        # Cached on the proxy: later accesses cost what they cost on the module itself.
        self.__dict__[name] = value
        return value


if TYPE_CHECKING:
    import ml_dtypes
    import numpy as np
else:
    np = LazyModule("numpy")
    ml_dtypes = LazyModule("ml_dtypes")

__all__ = ["LazyModule", "ml_dtypes", "np"]
