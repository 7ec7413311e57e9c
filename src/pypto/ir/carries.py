"""How the carries of a loop are printed: what ClassifyIterArgCarry found, stored flat in the attributes of the loop.

``iter_arg_rebind_<i>`` is there for every slot, so its absence says that the pass did not run;
``iter_arg_array_size_<i>`` only for a slot that needs an array of task ids. Ask here; nobody else spells the keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ..diag.errors import InternalError
from .node import FrozenDict
from .stmt import ForStmt

_STAMP = re.compile(r"iter_arg_(?:rebind|array_size)_\d+")


def rebind_key(slot: int) -> str:
    """The attribute that says whether a slot needs a variable."""
    return f"iter_arg_rebind_{slot}"


def array_size_key(slot: int) -> str:
    """The attribute that says how many task ids a slot holds."""
    return f"iter_arg_array_size_{slot}"


def is_classified(loop: ForStmt, slot: int) -> bool:
    """Whether the pass has looked at a slot."""
    return rebind_key(slot) in loop.attrs


def iter_arg_is_rebind(loop: ForStmt, slot: int) -> bool:
    """Whether a carry needs a variable, since it names another buffer or value after an iteration.

    Otherwise the iter_arg and the result of the loop are other names of the initial value.
    """
    found = loop.attrs.get(rebind_key(slot))
    if found is None:
        raise InternalError(
            f'the loop at {loop.span} has no attrs["{rebind_key(slot)}"]: ClassifyIterArgCarry did not run'
        )
    return bool(found)


def iter_arg_array_size(loop: ForStmt, slot: int) -> int:
    """How many task ids a carry holds, one for each iteration of a parallel loop; 0 for a single value."""
    return int(loop.attrs.get(array_size_key(slot), 0))


def with_carries(attrs: FrozenDict[str, Any], slots: Iterable[tuple[bool, int]]) -> FrozenDict[str, Any]:
    """The attributes of a loop with what is known of its slots (rebind, array size) in the place of what was known."""
    new = {key: value for key, value in attrs.items() if _STAMP.fullmatch(key) is None}
    for slot, (rebind, size) in enumerate(slots):
        new[rebind_key(slot)] = rebind
        if size > 0:
            new[array_size_key(slot)] = size
    return attrs if list(new.items()) == list(attrs.items()) else FrozenDict(new)


__all__ = [
    "array_size_key",
    "is_classified",
    "iter_arg_array_size",
    "iter_arg_is_rebind",
    "rebind_key",
    "with_carries",
]
