"""Handles of asynchronous prefetches: annotations and wrappers."""

from __future__ import annotations

from .value import ValueOnly


class PrefetchAsyncContext(ValueOnly):
    """Context in which prefetches are issued."""

    __slots__ = ()


class AsyncEvent(ValueOnly):
    """One asynchronous transfer."""

    __slots__ = ()


class AsyncSession(ValueOnly):
    """A session in which asynchronous transfers are awaited."""

    __slots__ = ()
