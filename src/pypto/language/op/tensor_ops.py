"""``pl.tensor.*``: ops on tensors, from :mod:`pypto.ops.surface`, and the markers that only the parser reads."""

from __future__ import annotations

from typing import Any

from pypto.ir.op.module import OpModule

from ..typing.tensor import TensorT
from ._wrap import on_values

_ops = OpModule(globals(), ["tensor"], on_values, own=("dump_tag", "no_dep"))


def no_dep(tensor: TensorT) -> TensorT:
    """Around an argument of a kernel call: the call's use of this tensor orders no tasks."""
    return tensor


def dump_tag(tensor: TensorT) -> TensorT:
    """From here on, dump this tensor at every task that takes it."""
    return tensor


def __getattr__(name: str) -> Any:
    return _ops.load(name)


def __dir__() -> list[str]:
    return _ops.names()
