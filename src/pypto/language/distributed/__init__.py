"""``pld``: the part of the language that concerns several ranks."""

# ruff: noqa: F401 - what is imported here is what this module offers
from __future__ import annotations

from typing import Any

from pypto.ir.enums import AtomicType, NotifyOp, ReduceOp, WaitCmp
from pypto.ir.type import CommCtxType

from ..typing.distributed import CommCtx, DistributedTensor
from . import op
from .op import system, tensor, tile

_OWN = {
    "AtomicType",
    "CommCtx",
    "CommCtxType",
    "DistributedTensor",
    "NotifyOp",
    "ReduceOp",
    "WaitCmp",
    "system",
    "tensor",
    "tile",
}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    try:
        value = getattr(op, name)
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_OWN, *dir(op)})
