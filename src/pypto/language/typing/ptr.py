"""The wrapper of pointer values. (As an annotation, ``pl.Ptr`` is the IR type.)"""

from __future__ import annotations

from .value import ValueOnly


class Ptr(ValueOnly):
    """Wraps the base pointer of an allocation."""

    __slots__ = ()
