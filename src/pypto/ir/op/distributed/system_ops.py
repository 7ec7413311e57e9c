"""``ir.op.distributed.system_ops``: constructors of calls of the ``pld.system`` ops, over IR expressions."""

from __future__ import annotations

from typing import Any

from ..module import OpModule, span_taker

_ops = OpModule(globals(), ["ir.pld.system", "pld.system"], span_taker)


def __getattr__(name: str) -> Any:
    return _ops.load(name)


def __dir__() -> list[str]:
    return _ops.names()
