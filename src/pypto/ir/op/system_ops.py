"""``ir.op.system``: constructors of synchronisation, cross-core queue and task id calls, over IR expressions."""

from __future__ import annotations

from typing import Any, TypeAlias

from ..expr import Expr
from .module import OpModule, span_taker

AUTO: int = -1
"""As the base of a buffer: the compiler places it."""

PipeBufOperand: TypeAlias = int | Expr

_ops = OpModule(globals(), ["ir.system", "system"], span_taker, own=("AUTO", "PipeBufOperand"))


def __getattr__(name: str) -> Any:
    return _ops.load(name)


def __dir__() -> list[str]:
    return _ops.names()
