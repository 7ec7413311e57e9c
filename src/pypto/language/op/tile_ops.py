"""``pl.tile.*``: ops on tiles, from :mod:`pypto.ops.surface`, and the constructs that only the parser reads."""

from __future__ import annotations

from typing import Any, NoReturn

from pypto.ir.op.module import OpModule
from pypto.ir.type import MemRefType as MemRefType

from ._wrap import on_values

_ops = OpModule(globals(), ["tile"], on_values, own=("MaskPattern", "MemRefType", "aic_gather", "aiv_shard"))


class MaskPattern:
    """Values of ``mask_pattern``: which columns are selected; the pattern starts at column 0 and repeats."""

    P0101 = 1
    P1010 = 2
    P0001 = 3
    P0010 = 4
    P0100 = 5
    P1000 = 6
    P1111 = 7


def aiv_shard(x: Any, span: Any = None) -> NoReturn:
    """This vector core's half of a value, inside ``for ... in pl.split_aiv(...)``."""
    raise RuntimeError("pl.aiv_shard must be used inside a 'for ... in pl.split_aiv(...)' loop of a parsed body")


def aic_gather(x: Any, span: Any = None) -> NoReturn:
    """The whole value from the halves of both vector cores, inside ``for ... in pl.split_aiv(...)``."""
    raise RuntimeError("pl.aic_gather must be used inside a 'for ... in pl.split_aiv(...)' loop of a parsed body")


def __getattr__(name: str) -> Any:
    return _ops.load(name)


def __dir__() -> list[str]:
    return _ops.names()
