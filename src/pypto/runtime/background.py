"""Work on threads that nobody has to wait for, and that a fork of the process may interrupt.

Threads of ``concurrent.futures`` are waited for when the process ends, which a compiler would delay by seconds. In
a forked child the threads do not exist: who needs a result there does the work again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Work(Generic[T]):
    """A call of a function on a thread of its own."""

    def __init__(self, function: Callable[..., T], args: tuple[Any, ...]) -> None:
        self._function = function
        self._args = args
        self._process = os.getpid()
        self._value: list[T] = []
        self._error: BaseException | None = None
        self._ended = threading.Event()
        threading.Thread(target=self._run, name=f"pypto-{function.__name__}", daemon=True).start()

    def _run(self) -> None:
        try:
            self._value.append(self._function(*self._args))
        except BaseException as error:  # whoever asks for the result gets it
            self._error = error
        finally:
            self._ended.set()

    def done(self) -> bool:
        """Whether :meth:`result` has nothing to wait for."""
        return self._ended.is_set()

    def wait(self) -> None:
        """Until the work has ended."""
        if self._process == os.getpid():
            self._ended.wait()
        elif not self.done():
            self._process = os.getpid()
            self._run()

    def result(self) -> T:
        """What the function returned, waiting for it; what it raised is raised."""
        self.wait()
        if self._error is not None:
            raise self._error
        return self._value[0]


def begin(function: Callable[..., T], *args: Any) -> Work[T]:
    """Call a function on a thread of its own."""
    return Work(function, args)


class ProcessLock:
    """A lock, for the life of a module, that is free in a forked child, where its holder does not exist.

    ``delays_fork``: a fork waits until nobody holds it, for what must not be copied to a child half done.
    """

    def __init__(self, delays_fork: bool = False) -> None:
        self._lock = threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)
            if delays_fork:
                os.register_at_fork(before=lambda: self._lock.acquire(), after_in_parent=lambda: self._lock.release())

    def _renew(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()


__all__ = ["ProcessLock", "Work", "begin"]
