"""The functions that a jit entry reaches, and the dimensions that are dynamic in each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..language.typing import DynVar
from .cache import compute_source_hash

if TYPE_CHECKING:
    from .decorator import JITFunction
    from .scan import CallSite

# kind of the caller -> kinds of functions it may call
HELPERS = ("incore", "inline", "opaque", "extern")


def admits(caller: str, callee: str) -> bool:
    """Whether a function of one kind may call one of another."""
    return callee in HELPERS or (caller == "host" and callee == "orchestration")


class Graph:
    """The call graph of an entry: members leaves first, and dynamic dimensions, which callers inherit."""

    __slots__ = ("dynamic", "entry", "members", "source_hash")

    def __init__(self, entry: JITFunction) -> None:
        self.entry = entry
        self.members: list[JITFunction] = []
        self.dynamic: dict[JITFunction, dict[str, dict[int, DynVar]]] = {}
        self._visit(entry, [])
        self.source_hash = compute_source_hash([entry._scan().text, *(m._scan().text for m in self.members[:-1])])

    def _visit(self, function: JITFunction, path: list[JITFunction]) -> None:
        if function in self.dynamic:
            return
        if function in path:
            names = [f.__name__ for f in [*path[path.index(function) :], function]]
            raise TypeError(f"@pl.jit functions cannot be recursive: {' -> '.join(names)}")
        path.append(function)
        dynamic = function._declared_dynamic()
        for callee, site in function._callees():
            self._visit(callee, path)
            _inherit(dynamic, function, callee, site, self.dynamic[callee])
        path.pop()
        self.dynamic[function] = dynamic
        self.members.append(function)

    def dynamic_dims(self, function: JITFunction) -> dict[str, dict[int, DynVar]]:
        """Parameter -> dimension -> symbol."""
        return self.dynamic[function]

    @property
    def dep_layouts(self) -> list[tuple[str, str, Any]]:
        """The layouts that helpers declare, as the cache key holds them."""
        return [
            (member.__name__, parameter.name, parameter.layout)
            for member in self.members[:-1]
            for parameter in member._parameters()
            if parameter.layout is not None
        ]


def _inherit(
    dynamic: dict[str, dict[int, DynVar]],
    caller: JITFunction,
    callee: JITFunction,
    site: CallSite,
    callee_dynamic: dict[str, dict[int, DynVar]],
) -> None:
    """A dynamic dimension of a callee's parameter makes that of the passed parameter of the caller dynamic too."""
    own = {p.name for p in caller._parameters() if p.kind == "tensor" or p.kind == "none"}
    names = [p.name for p in callee._parameters()]
    passed = {**dict(zip(names, site.positional, strict=False)), **site.keywords}
    for parameter, dims in callee_dynamic.items():
        name = passed.get(parameter)
        if name in own:
            for dim, symbol in dims.items():
                dynamic.setdefault(name, {}).setdefault(dim, symbol)


__all__ = ["HELPERS", "Graph", "admits"]
