"""What the source of a jit function says before any call: names it reads from outside, calls, dynamic dimensions.

Done once a function. A call of the function then only looks at values, never at source.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from ..diag.parser_errors import ParserSyntaxError
from ..frontend.closure import MISSING, dotted
from ..frontend.source import Source, locate_function
from ..ir.dtype import DataType
from ..language.typing import DynVar
from .cache import scalar_key

Chain = tuple[str, ...]


class CallSite:
    """A call that may be one of a helper: the names in front of the brackets, and arguments that are plain names."""

    __slots__ = ("chain", "keywords", "line", "positional")

    def __init__(self, node: ast.Call, chain: Chain) -> None:
        self.chain = chain
        self.line = node.lineno
        self.positional = [a.id if type(a) is ast.Name else None for a in node.args]
        self.keywords = {k.arg: k.value.id for k in node.keywords if k.arg and type(k.value) is ast.Name}


class Scan:
    """The facts about one function's source."""

    source: Source
    node: ast.FunctionDef

    __slots__ = (
        "binds",
        "calls",
        "chains",
        "local_symbols",
        "local_types",
        "nested_stores",
        "node",
        "source",
        "store_counts",
    )

    def __init__(self, func: Callable[..., Any]) -> None:
        try:
            self.source, self.node = locate_function(func)
        except ParserSyntaxError as error:
            if error.message.startswith("Could not find"):
                raise OSError(f"@pl.jit could not locate function definition of '{func.__name__}'") from None
            raise OSError(
                f"@pl.jit cannot retrieve source code for '{func.__name__}'. Source code must be available on disk. "
                "Save the function to a file, or define it in a notebook cell"
            ) from None
        self.store_counts: dict[str, int] = {}
        self.nested_stores: set[str] = set()
        self.local_symbols: dict[str, str] = {}
        self.binds: list[tuple[str, int, str]] = []
        self.calls: list[CallSite] = []
        self.chains: list[Chain] = []
        self._stores(self.node.body, nested=False)
        self._reads()

    @property
    def text(self) -> str:
        """The function's source."""
        node = self.node
        first = min([node.lineno, *[d.lineno for d in node.decorator_list]])
        return "\n".join(self.source.lines[first - 1 : node.end_lineno])

    def is_local(self, name: str) -> bool:
        """Whether a name is a parameter or assigned anywhere in the function."""
        return name in self.store_counts

    def _stores(self, statements: list[ast.stmt], nested: bool) -> None:
        for statement in statements:
            inner_nested = nested or isinstance(statement, (ast.For, ast.While, ast.If))
            for field, value in ast.iter_fields(statement):
                if field in ("body", "orelse"):
                    self._stores(value, inner_nested)
                    continue
                for part in value if isinstance(value, list) else [value]:
                    if isinstance(part, ast.AST):
                        self._note_stores(part, inner_nested)

    def _note_stores(self, part: ast.AST, nested: bool) -> None:
        for inner in ast.walk(part):
            if type(inner) is ast.Name and type(inner.ctx) is ast.Store:
                self.store_counts[inner.id] = self.store_counts.get(inner.id, 0) + 1
                if nested:
                    self.nested_stores.add(inner.id)

    def _reads(self) -> None:
        parameters = {a.arg for a in self.node.args.args}
        chains: dict[Chain, None] = {}
        roots: list[ast.AST] = [*self.node.body, self.node.args]
        if self.node.returns is not None:
            roots.append(self.node.returns)
        for root in roots:
            self._read(root, parameters, chains)
        self.chains = list(chains)

    def _read(self, node: ast.AST, parameters: set[str], chains: dict[Chain, None]) -> None:
        kind = type(node)
        if kind is ast.Call:
            self._note_call(node, parameters)  # type: ignore[arg-type]
        elif kind is ast.Assign:
            self._note_symbol(node)  # type: ignore[arg-type]
        elif kind in (ast.Attribute, ast.Name):
            parts = dotted(node)  # type: ignore[arg-type]
            if parts is not None:
                # A local name may be a helper's name as well (`scores = scores(q, k)`): it is kept.
                if parts[0] not in parameters and type(getattr(node, "ctx", None)) is not ast.Store:
                    chains.setdefault(parts)
                return
        elif kind is ast.Constant and isinstance(node.value, str) and node.value.isascii():  # type: ignore[attr-defined]
            self._note_text(node.value, parameters, chains)  # type: ignore[attr-defined]
        for child in ast.iter_child_nodes(node):
            self._read(child, parameters, chains)

    def _note_text(self, text: str, parameters: set[str], chains: dict[Chain, None]) -> None:
        """A string may be a quoted annotation: the names in it count as read."""
        if "[" not in text and "." not in text:
            return
        try:
            parsed = ast.parse(text, mode="eval")
        except SyntaxError:
            return
        for inner in ast.walk(parsed):
            if type(inner) is ast.Name and inner.id not in parameters:
                chains.setdefault((inner.id,))

    def _note_call(self, node: ast.Call, parameters: set[str]) -> None:
        parts = dotted(node.func)
        if parts is None:
            return
        if len(parts) == 2 and parts[1] == "bind_dynamic" and parts[0] in parameters:
            if len(node.args) == 2 and type(node.args[0]) is ast.Constant and type(node.args[1]) is ast.Name:
                self.binds.append((parts[0], node.args[0].value, node.args[1].id))  # type: ignore[arg-type]
            return
        if parts[-1] in ("submit", "spmd_submit") and node.args:
            head = dotted(node.args[0])
            if head is not None and head[0] != "self":
                launched = ast.Call(node.args[0], node.args[1:], node.keywords, lineno=node.lineno)
                self.calls.append(CallSite(launched, head))
        if parts[0] not in parameters:
            self.calls.append(CallSite(node, parts))

    def _note_symbol(self, node: ast.Assign) -> None:
        """``rows = pl.dynamic("N")`` in a body."""
        name = dynamic_name(node.value)
        if name is not None and len(node.targets) == 1 and type(node.targets[0]) is ast.Name:
            self.local_symbols[node.targets[0].id] = name


def dynamic_name(node: ast.expr) -> str | None:
    """The name in ``pl.dynamic("N")``, or None for any other expression."""
    if type(node) is not ast.Call or len(node.args) != 1 or node.keywords:
        return None
    parts = dotted(node.func)
    literal = node.args[0]
    if parts is None or parts[-1] != "dynamic" or type(literal) is not ast.Constant:
        return None
    return literal.value if isinstance(literal.value, str) else None


class Namespace(Mapping[str, Any]):
    """The names that a function sees outside itself: closure cells, then its module, then the names around its ``def``.

    Cells are read when asked for, so a rebound variable is seen. ``around`` is only needed for annotations that Python
    did not evaluate: those make no closure.
    """

    __slots__ = ("around", "cells", "globals")

    def __init__(self, func: Callable[..., Any], around: Mapping[str, Any] | None = None) -> None:
        cells = func.__closure__ or ()
        self.cells = dict(zip(func.__code__.co_freevars, cells, strict=True))
        self.globals: dict[str, Any] = func.__globals__
        self.around = around or {}

    def lookup(self, name: str) -> Any:
        cell = self.cells.get(name)
        if cell is not None:
            try:
                return cell.cell_contents
            except ValueError:  # not bound yet
                return MISSING
        value = self.globals.get(name, MISSING)
        return self.around.get(name, MISSING) if value is MISSING else value

    def resolve(self, chain: Chain) -> Any:
        value = self.lookup(chain[0])
        for part in chain[1:]:
            if value is MISSING:
                return MISSING
            value = getattr(value, part, MISSING)
        return value

    def local_values(self) -> dict[str, Any]:
        """What shadows the module's names."""
        found = {name: value for name, value in self.around.items() if name not in self.globals}
        for name in self.cells:
            value = self.lookup(name)
            if value is not MISSING:
                found[name] = value
        return found

    def __getitem__(self, name: str) -> Any:
        value = self.lookup(name)
        if value is MISSING:
            raise KeyError(name)
        return value

    def __iter__(self) -> Any:
        return iter({**self.globals, **self.around, **dict.fromkeys(self.cells)})

    def __len__(self) -> int:
        return len({**self.globals, **self.around, **self.cells})


_IDENTITY = (FunctionType, BuiltinFunctionType, type, ModuleType)


def is_language(value: Any) -> bool:
    """Whether a value is the language module (or its distributed part), whose content never changes."""
    return isinstance(value, ModuleType) and value in (
        sys.modules.get("pypto.language"),
        sys.modules.get("pypto.language.distributed"),
    )


class Same:
    """A key that equals only a key of the same object, which it keeps alive."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is Same and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value) >> 4

    def __repr__(self) -> str:
        return getattr(self.value, "__name__", None) or type(self.value).__name__


def frozen(value: Any) -> Any:
    """A hashable stand-in for an outside value: numbers, text and containers by value, other objects by identity.

    An object of a kind that no body can use as a constant stands for its type alone, since some are made anew at each
    access.
    """
    kind = type(value)
    if kind in (int, float, bool):
        return scalar_key(value)
    if kind is str or value is None or value is MISSING or kind is DataType:
        return value
    if kind in (list, tuple):
        return (kind, *map(frozen, value))
    if kind is dict:
        return (dict, *((frozen(k), frozen(v)) for k, v in value.items()))
    if kind is DynVar:
        return (kind, value.name)
    if kind is MethodType:
        return (Same(value.__self__), Same(value.__func__))
    if isinstance(value, _IDENTITY) or kind.__module__.startswith("pypto") and not isinstance(value, Enum):
        return Same(value)
    if isinstance(value, Enum):
        return value
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return (kind, scalar_key(value.item()))
    return kind


__all__ = ["CallSite", "Chain", "Namespace", "Same", "Scan", "dynamic_name", "frozen", "is_language"]
