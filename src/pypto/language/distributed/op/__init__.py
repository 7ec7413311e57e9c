"""The distributed ops: the namespaces, and the ops that have a short name ``pld.<op>``."""

# ruff: noqa: F401 - what is imported here is what this module offers
from __future__ import annotations

from typing import Any

from pypto.ir.op.module import OpModule

from ...op._wrap import on_values
from . import system_ops as system
from . import tensor_ops as tensor
from . import tile_ops as tile

_ops = OpModule(globals(), ["pld"], on_values, own=("system", "tensor", "tile"))


def __getattr__(name: str) -> Any:
    return _ops.load(name)


def __dir__() -> list[str]:
    return _ops.names()
