"""Scalar arithmetic on expressions by name; Python's operators on expressions are the same functions."""

from __future__ import annotations

from .scalar import *  # noqa: F403  (this is another public path of the same names)
from .scalar import __all__ as __all__
