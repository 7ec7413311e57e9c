"""Work on threads that nobody has to wait for.

Those of ``concurrent.futures`` are waited for when the process ends, which a compiler at work would delay by seconds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")


def begin(function: Callable[..., T], *args: Any) -> Future[T]:
    """Call a function on a thread of its own. What it raises, ``result()`` of the future raises."""
    from concurrent.futures import Future

    future: Future[T] = Future()

    def run() -> None:
        try:
            result = function(*args)
        except BaseException as error:  # whoever asks for the result gets it
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=run, name=f"pypto-{function.__name__}", daemon=True).start()
    return future


__all__ = ["begin"]
