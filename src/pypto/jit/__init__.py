"""``@pl.jit``: specialise a function for the arguments of a call, compile it, run it."""

from __future__ import annotations

from .decorator import JITFunction, jit

__all__ = ["JITFunction", "jit"]
