"""The text of ``kernel.explain(...)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..frontend.closure import MISSING

if TYPE_CHECKING:
    from .binding import Bound
    from .decorator import JITFunction
    from .graph import Graph


def explained(function: JITFunction, bound: Bound, fingerprint: Any, graph: Graph, options: Any) -> str:
    """Shapes, dynamic dimensions, baked numbers, constants with their values, hit or miss and why."""
    lines = [f"{function.__name__}: source {graph.source_hash}"]
    dynamic_dims = graph.dynamic_dims(function)
    for parameter, item in zip(function._parameters(), bound.items, strict=True):
        if isinstance(item, tuple):
            symbols = dynamic_dims.get(parameter.name, {})
            shape = [symbols[i].name if i in symbols else str(extent) for i, extent in enumerate(item[0])]
            what = f"[{', '.join(shape)}] {item[1].name}"
        else:
            what = "left to the call" if item is MISSING else f"baked as {item!r}"
        lines.append(f"  {parameter.name}: {what}")
    for member in graph.members:
        for chain in member._chains():
            value = member._namespace.resolve(chain)
            if isinstance(value, (bool, int, float, str, list, tuple)):
                lines.append(f"  {'.'.join(chain)} in {member.__name__}: {value!r}")
    entry = function._cache.get((bound.key, fingerprint, options))
    cached = entry is not None and entry.compiled is not None
    lines.append("  cached" if cached else "  not cached: " + _reason(function, bound, fingerprint, options))
    return "\n".join(lines)


def _reason(function: JITFunction, bound: Bound, fingerprint: Any, options: Any) -> str:
    """What the nearest cached compilation differs in."""
    parts = (("argument types or numbers", bound.key), ("constants", fingerprint), ("compile options", options))
    nearest: list[str] | None = None
    for key in function._cache:
        differing = [what for (what, want), have in zip(parts, key, strict=True) if want != have]
        if nearest is None or len(differing) < len(nearest):
            nearest = differing
    return "nothing was compiled yet" if nearest is None else f"other {' and '.join(nearest)}"


__all__ = ["explained"]
