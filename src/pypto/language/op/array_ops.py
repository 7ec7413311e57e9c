"""``pl.array.*``: ops on small on-core arrays, from :mod:`pypto.ops.surface`."""

from __future__ import annotations

from typing import Any

from pypto.ir.op.module import OpModule

from ._wrap import on_values

_ops = OpModule(globals(), ["array"], on_values)


def __getattr__(name: str) -> Any:
    return _ops.load(name)


def __dir__() -> list[str]:
    return _ops.names()
