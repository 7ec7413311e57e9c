"""``ir.op.prefetch``: constructors of calls of the ops on asynchronous prefetches, over IR expressions."""

from __future__ import annotations

from typing import Any

from .module import OpModule, span_taker

_ops = OpModule(globals(), ["ir.prefetch", "prefetch"], span_taker)


def __getattr__(name: str) -> Any:
    return _ops.load(name)


def __dir__() -> list[str]:
    return _ops.names()
