"""Straight-line code made from the field tables: the one place that compiles it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_made: dict[tuple[Any, ...], Any] = {}


def make_function(name: str, parameters: str, lines: Iterable[str], env: dict[str, Any]) -> Any:
    """The function with these lines as body and ``env`` as globals.

    Classes with the same fields (all binary operators, say) get one function: equal text with the same globals is
    compiled once. The objects in ``env`` live as long as the package.
    """
    source = f"def {name}({parameters}):\n" + "".join(f"    {line}\n" for line in lines)
    key = (source, *(item for pair in env.items() for item in (pair[0], id(pair[1]))))
    found = _made.get(key)
    if found is None:
        scope = dict(env)
        exec(compile(source, f"<{name} generated from node_fields>", "exec"), scope)
        found = _made[key] = scope[name]
    return found
