"""``pl.system.*``: synchronisation, cross-core queues, task ids, from :mod:`pypto.ops.surface`."""

from __future__ import annotations

from typing import Any, NoReturn

from pypto.ir.op.module import OpModule
from pypto.ir.op.system_ops import AUTO as AUTO

from ..scope import parser_construct
from ._wrap import on_values_with_span

_ops = OpModule(globals(), ["system"], on_values_with_span, own=("AUTO", "task_dummy"))


def task_dummy(*, deps: Any) -> NoReturn:
    """A task that does nothing and completes after ``deps``."""
    raise parser_construct("pl.system.task_dummy")


def __getattr__(name: str) -> Any:
    return _ops.load(name)


def __dir__() -> list[str]:
    return _ops.names()
