"""``pl.*``: the functions that pick the level by their operands, and those of one level that have a short name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pypto.ir.op.module import OpModule

from ..typing import Tensor, Tile
from . import system_ops, tensor_ops, tile_ops
from ._wrap import on_values

T = TypeVar("T", Tensor, Tile)


def _shared(function: Callable[..., Any], name: str, module: str) -> Callable[..., Any]:
    """The function of ``pl.tensor``, ``pl.tile`` or ``pl.system`` where ``pl.<name>`` is the same."""
    from pypto.ops.surface import NAMESPACES

    for namespace, owner in (("tensor", tensor_ops), ("tile", tile_ops), ("system", system_ops)):
        if NAMESPACES[namespace].get(name) is function:
            return getattr(owner, name)  # type: ignore[no-any-return]
    return on_values(function, name, module)


_ops = OpModule(globals(), ["pl"], _shared, own=("T",))


def __getattr__(name: str) -> Any:
    return _ops.load(name)


def __dir__() -> list[str]:
    return _ops.names()
