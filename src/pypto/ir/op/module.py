"""Modules of op functions that take their names from the tables of :mod:`pypto.ops.surface`.

A function is looked up, adapted and kept when its name is first used, so that importing such a module does not load
the op catalogue.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ..location import pin, unpin
from ..span import Span

Function = Callable[..., Any]
Adapter = Callable[[Function, str, str], Function]


class OpModule:
    """The lazy part of one module. ``own`` are the public names that the module defines itself."""

    def __init__(
        self, module_globals: dict[str, Any], namespaces: Sequence[str], adapt: Adapter, own: Sequence[str] = ()
    ) -> None:
        self._globals = module_globals
        self._namespaces = tuple(namespaces)
        self._adapt = adapt
        self._own = tuple(own)

    def _tables(self) -> list[dict[str, Function]]:
        from ... import ops  # noqa: F401 - fills the tables
        from ...ops.surface import IR_NAMESPACES, NAMESPACES

        found = []
        for namespace in self._namespaces:
            table = IR_NAMESPACES.get(namespace[3:]) if namespace.startswith("ir.") else NAMESPACES[namespace]
            if table is not None:
                found.append(table)
        return found

    def find(self, name: str) -> Function | None:
        """The surface function of a name, from the first table that has it."""
        for table in self._tables():
            if name in table:
                return table[name]
        return None

    def load(self, name: str) -> Any:
        """The module's attribute ``name``: what a module-level ``__getattr__`` calls."""
        module = self._globals["__name__"]
        if name == "__all__":
            return self.names()
        # Private names are probed by tools; they must not load the catalogue.
        function = None if name.startswith("_") else self.find(name)
        if function is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = self._globals[name] = self._adapt(function, name, module)
        return value

    def names(self) -> list[str]:
        """All public names."""
        return sorted({*self._own, *(name for table in self._tables() for name in table)})


def adapted(call: Function, function: Function, name: str, module: str) -> Function:
    """``call``, which stands for ``function``, under its public name, with its signature and a docstring."""
    functools.update_wrapper(call, function)
    call.__name__ = call.__qualname__ = name
    call.__module__ = module
    if call.__doc__ is None:
        call.__doc__ = _documented(name)
    return call


def _documented(name: str) -> str | None:
    from ...ops.registry import REGISTRY

    for level in ("tensor", "tile", "system", "array", "prefetch"):
        definition = REGISTRY.get(f"{level}.{name.rstrip('_')}")
        if definition is not None and definition.doc:
            return definition.doc
    return None


def span_taker(function: Function, name: str, module: str) -> Function:
    """``function`` with a further parameter ``span``; a positional span may come last, wherever that is."""

    def call(*args: Any, span: Span | None = None, **kwargs: Any) -> Any:
        if args and isinstance(args[-1], Span):
            span, args = args[-1], args[:-1]
        elif span is None and args and args[-1] is None and len(args) > positional:
            args = args[:-1]
        if span is None:
            return function(*args, **kwargs)
        token = pin(span)
        try:
            return function(*args, **kwargs)
        finally:
            unpin(token)

    signature, positional = _with_span(inspect.signature(function))
    adapted(call, function, name, module)
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def _with_span(signature: inspect.Signature) -> tuple[inspect.Signature, float]:
    """The signature with ``span`` behind the positional parameters, and how many of these there are."""
    parameters = list(signature.parameters.values())
    kinds = [parameter.kind for parameter in parameters]
    variadic = inspect.Parameter.VAR_POSITIONAL in kinds
    at = sum(kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD) for kind in kinds)
    kind = inspect.Parameter.KEYWORD_ONLY if variadic else inspect.Parameter.POSITIONAL_OR_KEYWORD
    span = inspect.Parameter("span", kind, default=None, annotation=Span | None)
    parameters.insert(at + variadic, span)
    return signature.replace(parameters=parameters), float("inf") if variadic else at
