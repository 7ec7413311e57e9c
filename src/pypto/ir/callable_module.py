"""Modules that can be called, for a name that is a function and a module at once.

``pypto.ir.compile`` is a module that holds a function ``compile``, and ``pypto.ir.compile(program)`` must work as
well. The import system puts the module into its package whenever somebody imports it, so that the module itself has
to stand for the function.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class CallableModule(ModuleType):
    """A module whose call is the call of its function of the same name."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function()(*args, **kwargs)

    def _function(self) -> Any:
        return getattr(self, self.__name__.rpartition(".")[2])

    @property
    def __signature__(self) -> Any:
        import inspect

        return inspect.signature(self._function())


def make_callable(module_name: str) -> None:
    """Make a module callable; to be called as ``make_callable(__name__)`` in the module itself."""
    sys.modules[module_name].__class__ = CallableModule


__all__ = ["CallableModule", "make_callable"]
