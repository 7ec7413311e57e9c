"""Runtime scopes and task launches. Bodies are read as source; these objects do nothing when executed."""

from __future__ import annotations

from enum import Enum
from typing import Any, NoReturn


class ScopeMode(Enum):
    """Who orders the tasks of a runtime scope: the runtime (AUTO), or ``deps=`` alone (MANUAL)."""

    AUTO = "auto"
    MANUAL = "manual"


class scope:  # a context manager, used like a function
    """``with pl.scope():`` a runtime scope."""

    def __init__(self, mode: ScopeMode = ScopeMode.AUTO) -> None:
        self.mode = mode

    def __enter__(self) -> scope:
        return self

    def __exit__(self, *exc_info: object) -> None:
        return None


class manual_scope:
    """``with pl.manual_scope():`` the same as ``pl.scope(mode=pl.ScopeMode.MANUAL)``."""

    mode = ScopeMode.MANUAL

    def __enter__(self) -> manual_scope:
        return self

    def __exit__(self, *exc_info: object) -> None:
        return None


def parser_construct(name: str) -> RuntimeError:
    """The error of a function that means something in a parsed body only."""
    return RuntimeError(f"{name} is a DSL parser construct and cannot be called directly")


def submit(*args: Any, **kwargs: Any) -> NoReturn:
    """Launch a kernel as a task: ``out, tid = pl.submit(self.kernel, *args, deps=[...])``."""
    raise parser_construct("pl.submit")


def spmd_submit(*args: Any, **kwargs: Any) -> NoReturn:
    """Launch a kernel as a task of several blocks: ``pl.submit`` with ``core_num=``."""
    raise parser_construct("pl.spmd_submit")


__all__ = ["ScopeMode", "manual_scope", "scope", "spmd_submit", "submit"]
