"""Room for deep recursion.

Expression chains of several thousand levels are legal. What this package does with them keeps a stack of its own, but a
visitor that a user wrote recurses, with a few frames a level.
"""

from __future__ import annotations

import contextvars
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

# From Python 3.11 on, frames of Python functions take no C stack. Before, the usual 8 MiB hold some 17,000 of them.
FRAMES_ARE_CHEAP = sys.version_info >= (3, 11)
_LIMIT = 60_000
_SAFE_LIMIT = _LIMIT if FRAMES_ARE_CHEAP else 12_000
_STACK_BYTES = 128 << 20

_lock = threading.Lock()
_users = 0
_before = 0


class deep_recursion:  # noqa: N801 (used like a function)
    """Raise the recursion limit while the block runs (in any thread)."""

    # A class, since each small rewrite enters one: a generator would cost three times as much.
    __slots__ = ("_limit",)

    def __init__(self, limit: int = _SAFE_LIMIT) -> None:
        self._limit = limit

    def __enter__(self) -> None:
        global _users, _before
        with _lock:
            now = sys.getrecursionlimit()
            if _users == 0:
                _before = now
            _users += 1
            if now < self._limit:
                sys.setrecursionlimit(self._limit)

    def __exit__(self, *_error: object) -> None:
        global _users
        with _lock:
            _users -= 1
            if _users == 0:
                sys.setrecursionlimit(_before)


def with_big_stack(call: Callable[[], T]) -> T:
    """Run ``call`` in a thread with a large C stack, in the context of the caller, and give its result."""
    outcome: list[T] = []
    errors: list[BaseException] = []
    context = contextvars.copy_context()

    def run() -> None:
        try:
            with deep_recursion(_LIMIT):
                outcome.append(context.run(call))
        except BaseException as error:  # raised again in the caller's thread
            errors.append(error)

    with _lock:
        usual = threading.stack_size(_STACK_BYTES)
        try:
            thread = threading.Thread(target=run, name="pypto-deep-tree")
            thread.start()
        finally:
            threading.stack_size(usual)
    thread.join()
    if errors:
        raise errors[0]
    return outcome[0]


def deeper_than(root: Any, levels: int, pushers: dict[type, Any]) -> bool:
    """Whether a tree has more than so many levels; ``pushers`` give the children of each class."""
    level = [root]
    for _ in range(levels):
        below: list[Any] = []
        push = below.append
        for node in level:
            code = pushers.get(type(node))
            if code is not None:
                code(node, push)
        if not below:
            return False
        level = below
    return True
