"""``ir.op.array``: constructors of calls of the ops on small on-core arrays, over IR expressions."""

from __future__ import annotations

from typing import Any

from .module import OpModule, span_taker

_ops = OpModule(globals(), ["ir.array", "array"], span_taker)


def __getattr__(name: str) -> Any:
    return _ops.load(name)


def __dir__() -> list[str]:
    return _ops.names()
