"""Values that the surrounding Python code gives to a DSL body: constants, dtypes, enums, helpers."""

from __future__ import annotations

import ast
import builtins
import operator
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from ..diag.concise import BUG_CLASS_EXCEPTIONS

MISSING: Any = object()

# Builtins that a body may name; nothing else of Python's builtins is visible.
_BUILTINS = {
    name: getattr(builtins, name)
    for name in "len max min abs sum round int float bool list tuple range isinstance type".split()
}

BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}


class Closure:
    """Name lookup and evaluation in the snapshot that the decorator took: overrides, locals, globals, builtins."""

    __slots__ = ("globals", "locals", "module_aliases")

    def __init__(self, globals_: Mapping[str, Any], locals_: Mapping[str, Any] | None = None) -> None:
        self.globals = globals_
        self.locals = locals_ if locals_ is not None else {}
        self.module_aliases: dict[str, str | None] = {"pl": "pl", "pld": "pld"}

    def get(self, name: str) -> Any:
        """The value of a name, or :data:`MISSING`."""
        value = self.locals.get(name, MISSING)
        if value is MISSING:
            value = self.globals.get(name, MISSING)
            if value is MISSING:
                value = _BUILTINS.get(name, MISSING)
        return value

    def alias(self, name: str) -> str | None:
        """``"pl"`` or ``"pld"`` when the name stands for the language (or its distributed part), else None."""
        found = self.module_aliases.get(name, MISSING)
        if found is MISSING:
            value = self.get(name)
            found = None
            if isinstance(value, ModuleType):
                if value is sys.modules.get("pypto.language"):
                    found = "pl"
                elif value is sys.modules.get("pypto.language.distributed"):
                    found = "pld"
            self.module_aliases[name] = found
        return found  # type: ignore[no-any-return]

    def attribute_chain(self, parts: tuple[str, ...]) -> Any:
        """The value of ``a.b.c``, or :data:`MISSING`."""
        value = self.get(parts[0])
        if value is MISSING and parts[0] == "pl":
            value = sys.modules.get("pypto.language", MISSING)
        for part in parts[1:]:
            if value is MISSING:
                return MISSING
            value = getattr(value, part, MISSING)
        return value

    def evaluate(self, node: ast.expr) -> Any:
        """The Python value of an expression over closure names, or :data:`MISSING` when it is not evaluable.

        An exception other than an unknown name propagates, save that it is told apart by the caller: bug-class
        exceptions are never swallowed.
        """
        namespace: dict[str, Any] = {"__builtins__": _BUILTINS}
        for inner in ast.walk(node):
            if type(inner) is ast.Name:
                value = self.get(inner.id)
                if value is not MISSING:
                    namespace[inner.id] = value
                elif inner.id == "pl" and "pypto.language" in sys.modules:
                    namespace["pl"] = sys.modules["pypto.language"]
        try:
            return eval(compile(ast.Expression(node), "<closure>", "eval"), namespace)
        except BUG_CLASS_EXCEPTIONS:
            raise
        except NameError:
            return MISSING


def dotted(node: ast.expr) -> tuple[str, ...] | None:
    """The names of ``a.b.c``; None for anything else."""
    if type(node) is ast.Attribute and type(node.value) is ast.Name:  # nearly always: pl.name
        return node.value.id, node.attr
    parts = []
    while type(node) is ast.Attribute:
        parts.append(node.attr)
        node = node.value
    if type(node) is not ast.Name:
        return None
    parts.append(node.id)
    parts.reverse()
    return tuple(parts)
