"""Op definitions, one file a family. Importing this package registers and checks the whole catalogue."""

from __future__ import annotations

from . import elementwise
from .registry import REGISTRY, validate

validate()

__all__ = ["REGISTRY", "elementwise"]
