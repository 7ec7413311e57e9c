"""``pld.DistributedTensor`` and ``pld.CommCtx``: values that concern several ranks."""

from __future__ import annotations

from typing import Any

from .tensor import Tensor
from .value import ValueOnly


class DistributedTensor(Tensor):
    """A view of a window that other ranks may reach; the same forms as ``pl.Tensor``.

    A trailing string element ``"window_buffer=<name>"``, which explicit dumps carry, is dropped.
    """

    __slots__ = ()

    @staticmethod
    def _parts(parts: tuple[Any, ...]) -> tuple[Any, ...]:
        return parts[:-1] if isinstance(parts[-1], str) else parts


class CommCtx(ValueOnly):
    """A communicator handle."""

    __slots__ = ()
