"""The native form of a program: orchestration and kernels as C++, run by the task runtime.

It is made when it pays: see :meth:`NativeExecutor.is_due`. Programs that can't be run natively, or not without the
interpreter's help, say why once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from .._lazy import np
from ..diag.errors import InternalError
from ..ir.program import Function, Program
from ..ops.values import ArrayValue
from ..verify.diagnostics import VerificationError
from .build import CompileFailed
from .compilers import CompilerNotFound
from .emitted import Compilation, EmittedProgram
from .host_executor import RunOptions, RunResult
from .log import logger
from .native_library import prepare_task_runtime
from .run_config import RunConfig

T = TypeVar("T")

EXECUTORS = ("auto", "native", "interpreter")
_VARIABLE = "PYPTO_EXECUTOR"
# Small programs run in the interpreter at once, which checks more, before a compiler has read a header. One that the
# interpreter has spent this long on is compiled beside it; calls wait for that if it has been longer, or arguments are
# at least so large.
_OFTEN_NS = 100_000_000
_LONG_NS = 500_000_000
_LARGE_BYTES = 1 << 20


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


def expect_call(values: Sequence[Any], config: RunConfig | None) -> None:
    """In front of the first compilation of a program that is called: if the call will run natively, begin with what it
    needs whatever the program is. ``values``: its arguments."""
    config = config or RunConfig()
    wanted = chosen_executor(config) if config.platform == "cpu" else "interpreter"
    if wanted == "native" or (wanted == "auto" and _are_large(values)):
        prepare_task_runtime()


def _are_large(arrays: Iterable[Any]) -> bool:
    return sum(getattr(array, "nbytes", 0) for array in arrays) >= _LARGE_BYTES


class NativeExecutor:
    """Runs one entry of a program natively. ``lower`` gives the program behind all passes."""

    def __init__(self, lower: Callable[[], Program], name: str) -> None:
        self._lower = lower
        self._name = name
        self._lock = threading.Lock()
        self._compilation: Compilation | None = None
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
        """Whether a call with these arguments should run natively, if it can. May begin to compile the program."""
        if self._reason:
            return False
        if self.is_made or self.interpreted_ns > _LONG_NS:
            return True
        if _are_large(v.data for v in values if type(v) is ArrayValue):
            return True
        if self.interpreted_ns <= _OFTEN_NS:
            return False
        compilation = self._compilation or self._attempt(self._begin)
        return compilation is not None and compilation.is_done

    def make(self) -> EmittedProgram:
        """The compiled program. Raises :class:`NotNative`."""
        made = self._made or self._attempt(self._finish)
        if made is None:
            raise NotNative(self._reason)
        return made

    def _attempt(self, step: Callable[[], T]) -> T | None:
        """A step to the compiled program. None: there is a reason why it has none."""
        with self._lock:
            if self._reason:
                return None
            try:
                return step()
            except CompilerNotFound as error:
                self._reason = str(error).partition("\n")[0]
                _tell_once(self._reason)
            except (ValueError, VerificationError, NotNative) as error:
                self._reason = str(error).partition("\n")[0]
            except (InternalError, CompileFailed) as error:
                # The program can run all the same, but somebody should know.
                self._reason = str(error).partition("\n")[0]
                logger.warning("'%s' has no native form, by a fault of PyPTO: %s", self._name, error)
            self._tell_notes()
            return None

    def _begin(self) -> Compilation:
        """Compile beside the caller."""
        compilation = self._compilation
        if compilation is None:
            compilation = self._compilation = self._generate()
            compilation.start()
        return compilation

    def _finish(self) -> EmittedProgram:
        if self._made is None:
            if self._compilation is None:
                prepare_task_runtime()
                self._compilation = self._generate()
            self._made = EmittedProgram.of(self._compilation)
            self._compilation = None
            self._tell_notes()
        return self._made

    def _generate(self) -> Compilation:
        program = self._lower()
        function: Function | None = program.get_function(self._name)
        if function is None:
            raise NotNative(f"there is no function '{self._name}' behind the passes")
        compilation = Compilation(program, self._name, native=True)
        if compilation.code.results.missing:
            raise NotNative(compilation.code.results.missing)
        return compilation

    def _tell_notes(self) -> None:
        for note in self.notes:
            logger.info("%s: %s", self._name, note)

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
        given = {id(v.data): v for v in values if type(v) is ArrayValue}
        return [
            given.get(id(value)) or (ArrayValue(value) if isinstance(value, np.ndarray) else value)
            for value in returned
        ], result


_told: set[str] = set()


def _tell_once(reason: str) -> None:
    """Programs run all the same, so one line for a process is enough."""
    if reason not in _told:
        _told.add(reason)
        logger.warning("the interpreter runs programs: %s", reason)


__all__ = ["EXECUTORS", "NativeExecutor", "NotNative", "chosen_executor", "expect_call"]
