"""No cyclic garbage collection while trees are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_gc() -> Iterator[None]:
    """No collector runs while trees grow: nodes make no cycles, and a program of a thousand loops has so many of them
    that looking at all of them again and again costs as much as compiling it. Also a decorator."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


__all__ = ["paused_gc"]
