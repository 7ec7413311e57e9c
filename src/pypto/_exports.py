"""Names of a package that are imported on first use (PEP 562): one table, one way."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def spread(table: Mapping[str, str]) -> dict[str, str]:
    """``{"module": "name name"}`` as ``{"name": "module:name"}``."""
    return {name: f"{module}:{name}" for module, names in table.items() for name in names.split()}


def lazy_exports(
    package: str, names: Mapping[str, str], submodules: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of ``package``.

    ``names`` maps a public name to ``module:attribute``, or to ``module`` where the module itself is meant. What was
    found becomes a plain attribute of the package. ``submodules`` are modules of the package by their own names.
    """
    table = {**{name: f"{package}.{name}" for name in submodules}, **names}

    def module_getattr(name: str) -> Any:
        source = table.get(name)
        if source is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, attribute = source.partition(":")
        try:
            value: Any = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            raise AttributeError(f"module {package!r} has no attribute {name!r}: there is no {module}") from error
        if attribute:
            value = getattr(value, attribute)
        setattr(sys.modules[package], name, value)
        return value

    def module_dir() -> list[str]:
        return sorted({*vars(sys.modules[package]), *table})

    return module_getattr, module_dir
