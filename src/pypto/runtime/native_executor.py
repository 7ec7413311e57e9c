"""The native form of a program: orchestration and kernels as C++, run by the task runtime.

It is made when it pays: see :meth:`NativeExecutor.is_due`. Programs that can't be run natively, or not without the
interpreter's help, say why once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

from .._lazy import np
from ..diag.errors import InternalError
from ..ir.program import Function, Program
from ..ops.values import ArrayValue
from ..verify.diagnostics import VerificationError
from .build import CompileFailed
from .compilers import CompilerNotFound
from .emitted import EmittedProgram
from .host_executor import RunOptions, RunResult
from .log import logger
from .native_library import prepare_task_runtime
from .run_config import RunConfig

EXECUTORS = ("auto", "native", "interpreter")
_VARIABLE = "PYPTO_EXECUTOR"
# A program whose arguments are at least this large, or that the interpreter has spent that long on, is compiled. Small
# programs run in the interpreter at once, which checks more, before a compiler has read a header.
_LARGE_BYTES = 1 << 20
_LONG_NS = 500_000_000


class NotNative(RuntimeError):
    """A program that has no native form here."""


def chosen_executor(config: RunConfig) -> str:
    """``auto``, ``native`` or ``interpreter``: what the configuration says, or else the environment."""
    wanted = config.executor or os.environ.get(_VARIABLE) or "auto"
    if config.timeout is not None or config.isolate or config.strict_rings:
        wanted = "native"  # only a native run can
    if wanted not in EXECUTORS:
        raise ValueError(f"{_VARIABLE} must be one of {', '.join(EXECUTORS)}, got {wanted!r}")
    return wanted


class NativeExecutor:
    """Runs one entry of a program natively. ``lower`` gives the program behind all passes."""

    def __init__(self, lower: Callable[[], Program], name: str) -> None:
        self._lower = lower
        self._name = name
        self._lock = threading.Lock()
        self._made: EmittedProgram | None = None
        self._reason = ""
        self.interpreted_ns = 0

    @property
    def is_made(self) -> bool:
        return self._made is not None

    @property
    def notes(self) -> list[str]:
        """What of the program the interpreter runs, and why; known once it is made."""
        if self._reason:
            return [f"the interpreter runs the program: {self._reason}"]
        return list(self._made.notes) if self._made is not None else []

    def is_due(self, values: Sequence[Any]) -> bool:
        """Whether a call with these arguments should run natively, if it can."""
        if self._reason:
            return False
        if self.is_made or self.interpreted_ns > _LONG_NS:
            return True
        return sum(v.data.nbytes for v in values if type(v) is ArrayValue) >= _LARGE_BYTES

    def make(self) -> EmittedProgram:
        """The compiled program. Raises :class:`NotNative`."""
        with self._lock:
            if self._made is None and not self._reason:
                try:
                    self._made = self._build()
                except CompilerNotFound as error:
                    self._reason = str(error).partition("\n")[0]
                    _tell_once(self._reason)
                except (ValueError, VerificationError, NotNative) as error:
                    self._reason = str(error).partition("\n")[0]
                except (InternalError, CompileFailed) as error:
                    # The program can run all the same, but somebody should know.
                    self._reason = str(error).partition("\n")[0]
                    logger.warning("'%s' has no native form, by a fault of PyPTO: %s", self._name, error)
                for note in self.notes:
                    logger.info("%s: %s", self._name, note)
            if self._made is None:
                raise NotNative(self._reason)
            return self._made

    def _build(self) -> EmittedProgram:
        prepare_task_runtime()
        program = self._lower()
        function: Function | None = program.get_function(self._name)
        if function is None:
            raise NotNative(f"there is no function '{self._name}' behind the passes")
        made = EmittedProgram(program, self._name, native=True)
        if made.results.missing:
            raise NotNative(made.results.missing)
        return made

    def run(self, values: Sequence[Any], config: RunConfig) -> tuple[list[Any], RunResult]:
        """Run on bound values; what the program returns, and how it went."""
        program = self.make()
        arguments = [v.data if type(v) is ArrayValue else v for v in values]
        options = RunOptions(
            workers=config.workers,
            window=config.ring_task_window,
            heap=config.ring_heap,
            strict=config.strict_rings,
            timeout=config.timeout,
            isolate=config.isolate,
        )
        returned, result = program.call(arguments, options)
        return [ArrayValue(value) if isinstance(value, np.ndarray) else value for value in returned], result


_told: set[str] = set()


def _tell_once(reason: str) -> None:
    """Programs run all the same, so one line for a process is enough."""
    if reason not in _told:
        _told.add(reason)
        logger.warning("the interpreter runs programs: %s", reason)


__all__ = ["EXECUTORS", "NativeExecutor", "NotNative", "chosen_executor"]
