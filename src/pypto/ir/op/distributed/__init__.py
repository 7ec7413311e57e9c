"""Constructors of calls of the distributed ops; a name of several levels means the tensor level."""

# ruff: noqa: F401 - what is imported here is what this module offers
from __future__ import annotations

from typing import Any

from ..module import OpModule, span_taker
from . import system_ops, tensor_ops, tile_ops

_ops = OpModule(
    globals(),
    ["ir.pld.tensor", "pld.tensor", "ir.pld.system", "pld.system", "ir.pld.tile", "pld.tile"],
    span_taker,
    own=("system_ops", "tensor_ops", "tile_ops"),
)


def __getattr__(name: str) -> Any:
    return _ops.load(name)


def __dir__() -> list[str]:
    return _ops.names()
